//! From instructions to [`Code`]: counters, waits, flow.
//!
//! Counters are the two events of each token (`$t.dst`, `$t.src`) and the in-order pipes. Distances count the
//! instructions of a pipe in the order of the code, whether or not their predicate holds: so what is waited for is
//! worked out without guards of instructions of pipes, and they are added afterwards. What an instruction may wait for
//! without saying so (a token that it sets anew), or names only by "all", is a wait where something may be in flight.

use std::borrow::Cow;

use smallvec::SmallVec;
use wavetap_base::error::Result;
use wavetap_code::{
    CallEffect, Class, Code, CodeBuilder, Counter, CounterId, Cycles, Event, Exit, Flow, Guard, Instruction, Issue,
    Location, Properties, Read, ReadRole, SourceLines, StallReason, Wait, WaitFor, Write,
};

use crate::container::Target;
use crate::isa::{
    Arf, DistanceOf, File, GRF_BYTES, Inst, Operand, Pipe, Predicate, PredicateMode, Region, Slot, Sync, TOKENS,
    TokenUse,
};
use crate::latency;

/// The largest distance that scoreboard bits can name.
const LARGEST_DISTANCE: u8 = 7;

/// What samples call the reasons of stalls.
const STALL_REASONS: &[(&str, StallReason)] = &[
    ("ControlStall", StallReason::Other),
    ("DistStall", StallReason::Dependency),
    ("InstrFetchStall", StallReason::InstructionFetch),
    ("OtherStall", StallReason::Other),
    ("PSDepStall", StallReason::Other),
    ("PipeStall", StallReason::BusyPipe),
    ("SbidStall", StallReason::InFlight),
    ("SendStall", StallReason::BusyPipe),
    ("SyncStall", StallReason::Barrier),
];

/// What is built.
pub(crate) struct Program<'a> {
    pub name: &'a str,
    pub is_kernel: bool,
    pub target: &'static str,
    pub lanes: u32,
}

/// Counters: results of tokens, operands of tokens, pipes.
fn counters() -> Vec<Counter> {
    let results = (0..TOKENS).map(|token| Counter::named(format!("${token}.dst")));
    let operands = (0..TOKENS).map(|token| Counter::named(format!("${token}.src")));
    let pipe = |pipe: Pipe| Counter { name: Cow::Borrowed(pipe.letter()), depth: Some(LARGEST_DISTANCE) };
    results.chain(operands).chain(Pipe::ALL.map(pipe)).collect()
}

fn result_of(token: u8) -> CounterId {
    CounterId(token)
}

fn operands_of(token: u8) -> CounterId {
    CounterId(TOKENS + token)
}

fn counter_of(pipe: Pipe) -> CounterId {
    let index = Pipe::ALL.iter().position(|other| *other == pipe).unwrap_or_default();
    CounterId(2 * TOKENS + index as u8)
}

/// The waits of an instruction.
#[derive(Debug, Default)]
struct Waits {
    all: SmallVec<[WaitFor; 2]>,
    /// Of each, whether it is one only where something may be in flight.
    droppable: SmallVec<[bool; 2]>,
}

impl Waits {
    fn push(&mut self, counter: CounterId, count: u8, name: String, droppable: bool) {
        self.all.push(WaitFor { counter, count, name: Some(Cow::Owned(name)), guarded: false });
        self.droppable.push(droppable);
    }

    fn of(inst: &Inst) -> Result<Waits> {
        let mut waits = Waits::default();
        if let Some(distance) = inst.swsb.distance {
            let (count, name) = (distance.distance - 1, distance.to_string());
            match distance.of {
                DistanceOf::All => {
                    for pipe in Pipe::ALL {
                        waits.push(counter_of(pipe), count, name.clone(), true);
                    }
                }
                DistanceOf::Own => waits.push(counter_of(inst.own_pipe()?), count, name, false),
                DistanceOf::Pipe(pipe) => waits.push(counter_of(pipe), count, name, false),
            }
        }
        if let Some(token) = inst.swsb.token {
            let (number, name) = (token.number, token.to_string());
            match token.usage {
                TokenUse::Result => waits.push(result_of(number), 0, name, false),
                TokenUse::Operands => waits.push(operands_of(number), 0, name, false),
                // A token that is in flight is waited for before it is set again.
                TokenUse::Set => waits.push(result_of(number), 0, name, true),
            }
        }
        let (counter, event): (fn(u8) -> CounterId, _) = match inst.sync {
            Some(Sync::AllOperands) => (operands_of, "src"),
            Some(Sync::AllResults) => (result_of, "dst"),
            _ => return Ok(waits),
        };
        let (mask, is_all) = match inst.sources.first() {
            Some(Operand::Immediate { bits, .. }) => (*bits as u32, false),
            _ => (u32::MAX, true),
        };
        for token in (0..TOKENS).filter(|token| mask >> token & 1 == 1) {
            waits.push(counter(token), 0, format!("${token}.{event}"), is_all);
        }
        Ok(waits)
    }
}

impl Program<'_> {
    /// The code of decoded instructions.
    ///
    /// # Errors
    /// As [`CodeBuilder::build`]; unsupported, with the address, if it is not known what an instruction waits for.
    pub(crate) fn code<'l>(&self, insts: &[Inst], lines: &'l dyn SourceLines) -> Result<Code<'l>> {
        // What fills up the end is not reached.
        let is_filling = |inst: &&Inst| &*inst.name == "nop";
        let insts = &insts[..insts.len() - insts.iter().rev().take_while(is_filling).count()];
        let waits = insts.iter().map(Waits::of).collect::<Result<Vec<_>>>()?;
        let mut instructions: Vec<Instruction> =
            insts.iter().zip(&waits).map(|(inst, waits)| instruction(inst, waits.all.clone())).collect();
        let mut without_guards = self.builder();
        for (inst, instruction) in insts.iter().zip(&instructions) {
            let guard = instruction.guard.filter(|_| inst.pipe().is_none());
            without_guards.push(Instruction { guard, ..instruction.clone() });
        }
        let without_guards = without_guards.build()?;
        let mut found: Vec<Vec<Wait>> = vec![Vec::new(); insts.len()];
        for wait in without_guards.waits() {
            found[wait.inst.index()].push(wait.clone());
        }
        let mut kept = Vec::new();
        for ((instruction, waits), found) in instructions.iter_mut().zip(&waits).zip(found) {
            // Instructions that are not reached have no waits in the list.
            let mut links = found.into_iter().map(Some).chain(std::iter::repeat_with(|| None));
            let mut stays = SmallVec::new();
            for (wait, droppable) in waits.all.iter().zip(&waits.droppable) {
                let link = links.next().flatten();
                if *droppable && link.as_ref().is_none_or(|link| link.operations.is_empty()) {
                    continue;
                }
                stays.push(wait.clone());
                kept.extend(link);
            }
            instruction.waits = stays;
        }
        let mut builder = self.builder().lines(lines).graph(without_guards.graph().clone()).waits(kept);
        for instruction in instructions {
            builder.push(instruction);
        }
        builder.build()
    }

    fn builder<'b>(&self) -> CodeBuilder<'b> {
        let properties = Properties {
            unknown_latency: latency::of(Class::Global),
            stall_reasons: STALL_REASONS,
            ..Properties::new(self.target, self.lanes)
        };
        let builder = CodeBuilder::new(self.name, properties, counters());
        if self.is_kernel { builder } else { builder.function() }
    }
}

fn instruction(inst: &Inst, waits: SmallVec<[WaitFor; 2]>) -> Instruction {
    let mut instruction = Instruction::new(inst.address, inst.length, inst.to_string());
    instruction.name = inst.name.clone();
    let is_uniform = inst.predicate.is_some_and(|predicate| predicate.mode != PredicateMode::PerLane);
    let accesses = inst.accesses();
    let selects = accesses.iter().all(|access| access.slot != Slot::Predicate);
    instruction.guard = inst.predicate.filter(|_| !is_uniform && !selects).map(guard);
    let is_aligned = inst.message.is_none() && is_by_lane(&inst.result);
    for access in &accesses {
        if access.slot.is_written() {
            let partial = access.partial || is_uniform || instruction.guard.is_some() && !is_aligned;
            instruction.writes.push(Write { location: access.location, partial });
        } else {
            let role = role(inst, access.slot, access.location);
            instruction.reads.push(Read { location: access.location, role });
        }
    }
    let implied = accesses.iter().any(|access| access.slot == Slot::ImpliedSource);
    instruction.crosses_lanes = inst.message.is_some() || implied || !inst.sources.iter().all(is_by_lane);
    let operands = inst.sources.iter().chain([&inst.result]);
    instruction.is_indirect = operands.clone().any(|operand| matches!(operand, Operand::Indirect { .. }));
    instruction.flow = flow(inst);
    instruction.class = class(inst);
    instruction.latency = latency::of(instruction.class);
    let bytes = operands.filter_map(Operand::ty).map(|ty| ty.bytes).max().unwrap_or(4);
    instruction.issue_cycles = (inst.lanes * bytes).div_ceil(GRF_BYTES).max(1);
    instruction.operand_latency = Cycles::fixed(instruction.issue_cycles);
    instruction.is_wait = inst.sync.is_some();
    instruction.waits = waits;
    instruction.issues = issues(inst);
    instruction
}

fn guard(predicate: Predicate) -> Guard {
    let (first, units) = (predicate.bits.first, predicate.bits.count);
    let predicate_bits = Location { file: File::Flag as u8, first, units };
    Guard { predicate: predicate_bits, negated: predicate.inverted }
}

/// Whether each lane has its own 32 bits there, in the order of lanes. Other operands reach into other lanes.
fn is_by_lane(operand: &Operand) -> bool {
    match *operand {
        Operand::Null | Operand::Immediate { .. } => true,
        Operand::Register { register, region, ty, extension: None, .. } => {
            let Region { vertical, width, horizontal } = region;
            let is_linear = match width {
                u32::MAX => horizontal == 1,
                1 => vertical == 1,
                _ => horizontal == 1 && vertical == width,
            };
            is_linear && register.byte == 0 && ty.bytes == 4
        }
        _ => false,
    }
}

fn role(inst: &Inst, slot: Slot, location: Location) -> ReadRole {
    if slot == Slot::Predicate {
        return ReadRole::Mask;
    }
    let arf = |operand: &Operand| match operand {
        Operand::Register { register, .. } => register.arf,
        _ => None,
    };
    if location.file == File::State as u8 && inst.sources.iter().filter_map(arf).any(Arf::is_mode) {
        return ReadRole::Mode;
    }
    let is_memory = inst.message.is_some_and(|message| message.class().is_memory());
    match slot {
        Slot::Descriptor => ReadRole::Address,
        Slot::Source(0) if is_memory => ReadRole::Address,
        Slot::Source(_) if is_memory => ReadRole::Data,
        _ if location.file == File::Address as u8 && arf_is_address(inst) => ReadRole::Address,
        _ => ReadRole::Value,
    }
}

/// Whether an address register chooses an operand, rather than being one.
fn arf_is_address(inst: &Inst) -> bool {
    inst.sources.iter().any(|source| matches!(source, Operand::Indirect { .. }))
}

fn flow(inst: &Inst) -> Flow {
    let falls_through = inst.predicate.is_some();
    if inst.ends_thread {
        return Flow::Exit { exit: Exit::End, falls_through };
    }
    let Some(branch) = inst.branch else { return Flow::Next };
    match &*inst.name {
        "call" | "calla" => Flow::Call(CallEffect::UNKNOWN),
        "ret" => Flow::Exit { exit: Exit::Return, falls_through },
        _ if branch.is_indirect => Flow::Exit { exit: Exit::Unknown, falls_through: true },
        name => {
            let mut targets: SmallVec<[u64; 1]> = [branch.jump, branch.update].into_iter().flatten().collect();
            targets.sort_unstable();
            targets.dedup();
            // All other branches take some lanes, and may leave others.
            Flow::Branch { targets, falls_through: name != "jmpi" || falls_through }
        }
    }
}

fn class(inst: &Inst) -> Class {
    if inst.ends_thread || inst.branch.is_some() {
        return Class::Control;
    }
    if let Some(message) = inst.message {
        return message.class();
    }
    match inst.sync {
        Some(Sync::Barrier) => return Class::Barrier,
        Some(Sync::Fence) => return Class::Fence,
        Some(_) => return Class::Wait,
        None => {}
    }
    match inst.pipe() {
        Some(Pipe::Math) => Class::Special,
        Some(_) => Class::Alu,
        None if inst.name.starts_with("dpas") => Class::Matrix,
        None => Class::Other,
    }
}

fn issues(inst: &Inst) -> SmallVec<[Issue; 2]> {
    let mut issues = SmallVec::new();
    if let Some(token) = inst.swsb.set() {
        issues.push(Issue { counter: result_of(token), event: Event::Result, order: None });
        issues.push(Issue { counter: operands_of(token), event: Event::Operands, order: None });
    }
    if let Some(pipe) = inst.pipe() {
        issues.push(Issue { counter: counter_of(pipe), event: Event::Result, order: Some(0) });
    }
    issues
}

/// The code of instructions that are in no zebin, of a kernel with so many lanes. Without source lines.
///
/// # Errors
/// As [`crate::Function::code`].
pub fn program_code(name: &str, target: Target, lanes: u32, insts: &[Inst]) -> Result<Code<'static>> {
    Program { name, is_kernel: true, target: target.name(), lanes }.code(insts, &())
}
