//! A function as a slicer reads it: [`wavetap_code::Code`] from decoded instructions.
//!
//! The wait counters are the six scoreboards of a warp. An instruction counts in its write scoreboard until its result
//! is there and in its read scoreboard until its operands were read. Its wait mask waits for scoreboards to be empty,
//! `DEPBAR.LE SBk, N` until at most N are left. Copies to shared memory (`LDGSTS`) have no write scoreboard: the
//! `LDGDEPBAR` after them has it for the group.
//!
//! Calls: of the callee nothing is known, so operations that were in flight may be after it, and so may others.

use std::ops::Range;

use smallvec::SmallVec;
use wavetap_base::error::{Result, ResultExt as _};
use wavetap_code::{
    CallEffect, Class, Code, CodeBuilder, Counter, CounterId, Cycles, Event, Exit, Flow, Guard, Instruction, Issue,
    Location, Properties, Read, ReadRole, SourceLines, StallReason, WaitFor, Write,
};

use crate::container::Function;
use crate::isa::{Action, INST_BYTES, Inst, Register, SCOREBOARDS, Use};

/// Lanes of a warp.
const WARP: u32 = 32;

/// Operations that leave a scoreboard in the order in which they were issued: groups of copies, and textures, which the
/// compiler counts with `DEPBAR.LE`.
const ORDER_OF_GROUPS: u8 = 0;
const ORDER_OF_IMAGES: u8 = 1;

/// From issue until operands were read. There is no published measurement: a guess.
const OPERANDS_READ: Cycles = Cycles { min: 4, typical: 12, max: 40 };
/// Latency of an operation of which only the scoreboard is known: a load from global memory.
const UNKNOWN_LATENCY: Cycles = Cycles { min: 28, typical: 290, max: 800 };

/// What samples call the reasons of stalls, without `stall_` and `smsp__pcsamp_warps_issue_stalled_` ("Nsight Compute",
/// Profiling Guide, "Warp Stall Reasons"). The short names are those of columns of a source page, the long ones those
/// of metrics.
const STALL_REASONS: &[(&str, StallReason)] = &[
    ("long_sb", StallReason::InFlight),
    ("long_scoreboard", StallReason::InFlight),
    ("short_sb", StallReason::InFlight),
    ("short_scoreboard", StallReason::InFlight),
    ("wait", StallReason::Dependency),
    ("barrier", StallReason::Barrier),
    ("membar", StallReason::Barrier),
    ("gmma", StallReason::InFlight),
    ("warpgroup_arrive", StallReason::Barrier),
    ("no_inst", StallReason::InstructionFetch),
    ("no_inst_available", StallReason::InstructionFetch),
    ("no_instruction", StallReason::InstructionFetch),
    ("no_instructions", StallReason::InstructionFetch),
    ("imc", StallReason::InstructionFetch),
    ("imc_miss", StallReason::InstructionFetch),
    ("not_selected", StallReason::IssueContention),
    ("lg", StallReason::BusyPipe),
    ("lg_throttle", StallReason::BusyPipe),
    ("mio", StallReason::BusyPipe),
    ("mio_throttle", StallReason::BusyPipe),
    ("tex", StallReason::BusyPipe),
    ("tex_throttle", StallReason::BusyPipe),
    ("math", StallReason::BusyPipe),
    ("math_pipe_throttle", StallReason::BusyPipe),
    ("sleep", StallReason::Sleep),
    ("sleeping", StallReason::Sleep),
    ("drain", StallReason::Other),
    ("branch_resolving", StallReason::Other),
    ("branch_resolve", StallReason::Other),
    ("dispatch", StallReason::Other),
    ("dispatch_stall", StallReason::Other),
    ("misc", StallReason::Other),
];

/// What holds for all code of this target.
fn properties(target: String) -> Properties {
    Properties { unknown_latency: UNKNOWN_LATENCY, stall_reasons: STALL_REASONS, ..Properties::new(target, WARP) }
}

impl<'c> Function<'c> {
    /// The function as a slicer reads it. Addresses are those of its section, which are the offsets that samples have;
    /// `lines` are [`Function::lines`], or `&()`.
    ///
    /// # Errors
    /// Unsupported, with the opcode and the address, if an instruction is not in the tables; malformed if a branch goes
    /// where no instruction of the function begins or the function has no end.
    pub fn code<'a>(&self, lines: &'a dyn SourceLines) -> Result<Code<'a>> {
        let instructions = self.instructions()?;
        let counters = (0..SCOREBOARDS).map(|number| Counter::named(format!("SB{number}"))).collect();
        let mut code = CodeBuilder::new(self.name(), properties(self.model().to_string()), counters).lines(lines);
        if !self.is_kernel() {
            code = code.function();
        }
        let returns = instructions.iter().any(|inst| inst.action() == Action::Return);
        for inst in &instructions {
            code.push(instruction(inst, self.flow(inst, returns)));
        }
        code.build().within(|| format!("{} of {}", self.model(), self.section()))
    }

    /// Where control goes after an instruction. `returns`: the function has an instruction that returns.
    fn flow(&self, inst: &Inst, returns: bool) -> Flow {
        let falls_through = inst.is_conditional();
        let branch = |targets: &[u64], falls_through| Flow::Branch { targets: targets.into(), falls_through };
        match inst.action() {
            _ if inst.is_never_executed() => Flow::Next,
            Action::Plain | Action::Wait | Action::Refused => Flow::Next,
            Action::Branch if self.is_relocated(inst.address) => Flow::Exit { exit: Exit::TailCall, falls_through },
            Action::Branch => branch(&[inst.target()], falls_through),
            Action::Indirect => match self.indirect_targets(inst.address) {
                Some(targets) => branch(targets, falls_through),
                None => Flow::Exit { exit: Exit::Unknown, falls_through },
            },
            // The compiler calls labels of the same function for code that does not return.
            Action::Call if self.calls_label(inst) => branch(&[inst.target()], falls_through || returns),
            Action::Call => Flow::Call(CallEffect::UNKNOWN),
            Action::Return => Flow::Exit { exit: Exit::Return, falls_through },
            Action::Exit => Flow::Exit { exit: Exit::End, falls_through },
        }
    }

    /// Whether it calls a place after the begin of this function. What the linker fills in is another function.
    fn calls_label(&self, inst: &Inst) -> bool {
        let Range { start, end } = self.range();
        inst.callee().is_some_and(|callee| start < callee && callee < end) && !self.is_relocated(inst.address)
    }
}

fn location(register: Register) -> Location {
    Location { file: register.file as u8, first: register.first.into(), units: register.count.into() }
}

fn instruction(inst: &Inst, flow: Flow) -> Instruction {
    let control = inst.control();
    let is_never_executed = inst.is_never_executed();
    let guard = inst.guard.map(|(register, negated)| Guard { predicate: location(register), negated });
    let mut result = Instruction {
        name: inst.name().into(),
        guard,
        crosses_lanes: inst.crosses_lanes(),
        flow,
        class: inst.class(),
        latency: inst.latency(),
        operand_latency: OPERANDS_READ,
        issue_cycles: u32::from(control.stall).max(1),
        waits: waits(inst),
        is_wait: inst.action() == Action::Wait,
        ..Instruction::new(inst.address, INST_BYTES as u32, inst.to_string())
    };
    if is_never_executed {
        return result;
    }
    result.unit = inst.unit();
    result.reads.extend(guard.map(|guard| Read { location: guard.predicate, role: ReadRole::Mask }));
    for register in &inst.operands {
        let role = match register.usage {
            Use::Result => {
                result.writes.push(Write { location: location(*register), partial: false });
                continue;
            }
            Use::Address => ReadRole::Address,
            Use::Source if inst.class().is_memory() && !register.file.is_predicate() => ReadRole::Data,
            Use::Source => ReadRole::Value,
        };
        result.reads.push(Read { location: location(*register), role });
    }
    let order = match inst.class() {
        Class::Image => Some(ORDER_OF_IMAGES),
        Class::Wait => Some(ORDER_OF_GROUPS),
        _ => None,
    };
    let issue =
        |scoreboard: Option<u8>, event| scoreboard.map(|number| Issue { counter: CounterId(number), event, order });
    result.issues.extend(issue(control.write, Event::Result));
    result.issues.extend(issue(control.read, Event::Operands));
    result
}

/// The scoreboards that an instruction waits for. Those of its mask it waits for whether its guard holds or not.
fn waits(inst: &Inst) -> SmallVec<[WaitFor; 2]> {
    let of_mask = inst.control().waits().map(|number| WaitFor {
        counter: CounterId(number),
        count: 0,
        name: Some(format!("SB{number}").into()),
        guarded: false,
    });
    let mut waits: SmallVec<[WaitFor; 2]> = of_mask.collect();
    if !inst.is_never_executed() {
        waits.extend(inst.depbar().into_iter().map(|(number, count)| WaitFor {
            counter: CounterId(number),
            count,
            name: Some(if count == 0 { format!("SB{number}") } else { format!("SB{number}, {count:#x}") }.into()),
            guarded: true,
        }));
    }
    waits
}
