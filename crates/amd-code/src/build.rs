//! The [`Code`] of one body.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::answers::{Answers, exec, is_followed};
use crate::stores::Stores;
use wavetap_amdgpu::{Counter, Flags, Latency, MachineFact, Memory, Opcode, OpcodeFlags, Reg, RegFile, Role, Value};
use wavetap_analysis::cfg::{self, Cfg};
use wavetap_analysis::dataflow::{
    Certainty, CompletionOrder, Definitions, FlatMemory, Operation, Summaries, Wait, WaitSummaries, WaitedOperation,
    Waits, completion_order, may_not_count,
};
use wavetap_analysis::kernel::{Body, BodyKind, Flow};
use wavetap_base::entity::InstId;
use wavetap_base::error::Result;
use wavetap_code as code;
use wavetap_code::{
    Class, Code, CodeBuilder, CounterId, Cycles, Event, Graph, Instruction, Issue, Location, Properties, Read,
    ReadRole, SourceLines, StallReason, WaitCertainty, WaitFor, Write,
};
use wavetap_memory::{Accesses, Launched, WaveAccesses};

/// Reasons of stalls as rocprofiler-sdk names them, without what all its names begin with.
const STALL_REASONS: &[(&str, StallReason)] = &[
    ("WAITCNT", StallReason::InFlight),
    ("ALU_DEPENDENCY", StallReason::Dependency),
    ("BARRIER_WAIT", StallReason::Barrier),
    ("NO_INSTRUCTION_AVAILABLE", StallReason::InstructionFetch),
    ("ARBITER_NOT_WIN", StallReason::IssueContention),
    ("ARBITER_WIN_EX_STALL", StallReason::BusyPipe),
    ("SLEEP_WAIT", StallReason::Sleep),
];

/// What the code of a body is made from.
#[derive(Clone, Copy)]
pub struct CodeInputs<'a> {
    /// The body.
    pub body: &'a Body,
    /// What calls do to operations outstanding.
    pub waits_of_calls: &'a WaitSummaries,
    /// What calls do to registers.
    pub registers_of_calls: &'a Summaries,
    /// What is known of its launches.
    pub launched: Launched,
    /// The places of pointers to global memory among its arguments, in bytes.
    pub pointers: &'a BTreeSet<u32>,
    /// Its source lines.
    pub lines: &'a dyn SourceLines,
}

impl<'a> CodeInputs<'a> {
    /// A body of which nothing is known but its code and what it calls.
    #[must_use]
    pub fn new(body: &'a Body, waits_of_calls: &'a WaitSummaries, registers_of_calls: &'a Summaries) -> CodeInputs<'a> {
        CodeInputs {
            body,
            waits_of_calls,
            registers_of_calls,
            launched: Launched::default(),
            pointers: const { &BTreeSet::new() },
            lines: &(),
        }
    }
}

/// Hands the code of a body to `then`.
///
/// # Errors
/// As [`CodeBuilder::build`].
pub fn with_code<R>(inputs: &CodeInputs<'_>, then: impl FnOnce(&Code<'_>) -> R) -> Result<R> {
    let CodeInputs { body, waits_of_calls, registers_of_calls, launched, pointers, lines } = *inputs;
    let cfg = Cfg::build(body);
    let definitions = Definitions::new(body, &cfg, registers_of_calls);
    let accesses = Accesses::of(body, &definitions, pointers.clone());
    let lanes = RefCell::new((WaveAccesses::new(&accesses, &launched), Default::default()));
    let stores = Stores::of(body, &definitions);
    let answers = Answers { body, cfg: &cfg, definitions: &definitions, stores, accesses: &accesses, lanes, launched };
    let waits = Waits::compute(body, &cfg, waits_of_calls);
    let counters = Counter::ALL.into_iter().map(|counter| code::Counter::named(counter.name())).collect();
    let mut builder = CodeBuilder::new(body.name(), properties(body), counters);
    for id in body.ids() {
        builder.push(instruction(body, id));
    }
    if body.kind() == BodyKind::Function {
        builder = builder.function();
    }
    let waits = waits.all().iter().map(|each| wait(body, each)).collect();
    let code = builder.graph(graph(&cfg)).waits(waits).dataflow(answers).lines(lines).build()?;
    Ok(then(&code))
}

fn interval(body: &Body) -> u32 {
    body.target().machine(MachineFact::IssueInterval).typical.max(1)
}

fn cycles(range: wavetap_amdgpu::LatencyRange) -> Cycles {
    Cycles { min: range.min, typical: range.typical, max: range.max }
}

fn properties(body: &Body) -> Properties {
    let target = body.target();
    Properties {
        issue_interval: interval(body),
        // Anything from an LDS access to a vector memory access.
        unknown_latency: Cycles { min: target.latency(Latency::Lds).min, ..cycles(target.latency(Latency::Vmem)) },
        stall_reasons: STALL_REASONS,
        is_counted: true,
        ..Properties::new(target.name(), target.wave_size())
    }
}

/// The control-flow graph of a body: the same blocks and edges.
#[must_use]
pub fn graph(cfg: &Cfg) -> Graph {
    let edge = |edge: &cfg::Edge| code::Edge {
        block: edge.block,
        kind: match edge.kind {
            cfg::EdgeKind::FallThrough => code::EdgeKind::FallThrough,
            cfg::EdgeKind::Taken => code::EdgeKind::Taken,
            cfg::EdgeKind::CallReturn => code::EdgeKind::CallReturn,
        },
    };
    let exit = |exit: cfg::Exit| match exit {
        cfg::Exit::End => code::Exit::End,
        cfg::Exit::Return => code::Exit::Return,
        cfg::Exit::TailCall => code::Exit::TailCall,
        cfg::Exit::Unknown => code::Exit::Unknown,
    };
    let block = |block: &cfg::Block| code::Block {
        first: block.first,
        last: block.last,
        successors: block.successors.iter().map(edge).collect(),
        predecessors: Default::default(),
        exit: block.exit.map(exit),
    };
    Graph::new(cfg.blocks().iter().map(block).collect(), cfg.entry())
}

fn wait(body: &Body, wait: &Wait) -> code::Wait {
    let operation = |each: &WaitedOperation| code::WaitedOperation {
        operation: match each.operation {
            Operation::Inst(id) => code::Operation::Inst(id),
            Operation::Callee(id) => code::Operation::Callee(id),
            Operation::Caller => code::Operation::Caller,
        },
        certainty: match (each.certainty, each.operation) {
            (Certainty::May, Operation::Inst(id)) if may_not_count(body, id) && !body.may_be_skipped(id) => {
                WaitCertainty::IfCounted
            }
            (Certainty::Must, _) => WaitCertainty::Must,
            (Certainty::May, _) => WaitCertainty::May,
            (Certainty::Unordered, _) => WaitCertainty::Unordered,
        },
        event: Event::Result,
        covered_by: None,
    };
    code::Wait {
        inst: wait.inst,
        counter: CounterId(wait.counter as u8),
        count: wait.count,
        name: None,
        operations: wait.operations.iter().map(operation).collect(),
    }
}

fn instruction(body: &Body, id: InstId) -> Instruction {
    let (target, inst) = (body.target(), body.inst(id));
    let issued = wavetap_amdgpu::issued(inst);
    let counts = wavetap_amdgpu::wait_count(target, inst);
    let issues = Counter::ALL.into_iter().filter(|counter| issued.contains(counter.flag()));
    let order = |counter| match completion_order(body, FlatMemory::Any, counter, id) {
        CompletionOrder::Unordered => None,
        order => Some(order as u8),
    };
    let wait_for = |(counter, count): (Counter, u8)| WaitFor {
        counter: CounterId(counter as u8),
        count,
        name: None,
        guarded: false,
    };
    let has_role = |reg: Reg, roles: fn(Role) -> bool| {
        inst.operands.iter().any(|operand| roles(operand.role) && body.register(id, operand) == Some(reg))
    };
    let role = |reg: Reg| match () {
        () if reg.file == RegFile::Scalar && reg.overlaps(Reg::EXEC) => ReadRole::Mask,
        () if !is_followed(reg) => ReadRole::Mode,
        () if has_role(reg, |role| matches!(role, Role::Vdata | Role::Data0 | Role::Data1)) => ReadRole::Data,
        () if has_role(reg, Role::is_address) => ReadRole::Address,
        () => ReadRole::Value,
    };
    Instruction {
        name: Cow::Borrowed(inst.name()),
        reads: body.reads(id).filter_map(|reg| Some(Read { location: location(reg)?, role: role(reg) })).collect(),
        // Lanes that EXEC does not enable keep their value.
        writes: body
            .writes(id)
            .filter_map(|reg| Some(Write { location: location(reg)?, partial: reg.file != RegFile::Scalar }))
            .collect(),
        is_indirect: inst.is_any(OpcodeFlags::SCALAR_RELATIVE | OpcodeFlags::VECTOR_RELATIVE),
        flow: flow(body, id),
        class: class(body, id),
        latency: cycles(target.latency(inst.variant.latency)),
        issue_cycles: interval(body).saturating_mul(slots(body, id)),
        issues: issues
            .map(|counter| Issue { counter: CounterId(counter as u8), event: Event::Result, order: order(counter) })
            .collect(),
        waits: counts.iter().flat_map(|counts| counts.iter().map(wait_for)).collect(),
        is_wait: counts.is_some(),
        ..Instruction::new(body.address(id), inst.size.into(), wavetap_amdgpu::print(target, inst))
    }
}

/// Registers of 32 bits; the null register is none.
fn location(reg: Reg) -> Option<Location> {
    let units = u32::from(reg.dwords);
    (!reg.is_null()).then_some(Location { file: reg.file as u8, first: reg.first.into(), units })
}

/// Issue slots that an instruction takes.
fn slots(body: &Body, id: InstId) -> u32 {
    let inst = body.inst(id);
    match inst.operand(Role::Simm16).map(|operand| operand.value) {
        Some(Value::Imm(more)) if inst.opcode() == Opcode::S_NOP => more as u32 % 16 + 1,
        _ => 1,
    }
}

/// The graph says more of where control goes: only whether it is a plain instruction is told here.
fn flow(body: &Body, id: InstId) -> code::Flow {
    let falls_through = body.flow(id).falls_through();
    match body.flow(id) {
        Flow::Next => code::Flow::Next,
        Flow::Jump(to) | Flow::Branch(to) => {
            code::Flow::Branch { targets: [body.address(to)].into_iter().collect(), falls_through }
        }
        Flow::Call(_) => code::Flow::Call(code::CallEffect::UNKNOWN),
        Flow::End => code::Flow::Exit { exit: code::Exit::End, falls_through },
        Flow::Return => code::Flow::Exit { exit: code::Exit::Return, falls_through },
        Flow::TailCall(_) => code::Flow::Exit { exit: code::Exit::TailCall, falls_through },
        _ => code::Flow::Exit { exit: code::Exit::Unknown, falls_through },
    }
}

fn class(body: &Body, id: InstId) -> Class {
    let inst = body.inst(id);
    let is_wait = wavetap_amdgpu::wait_count(body.target(), inst).is_some();
    match inst.variant.memory {
        Memory::Scalar => Class::Constant,
        Memory::Lds | Memory::Gds => Class::Shared,
        Memory::Scratch => Class::Private,
        Memory::Global | Memory::Buffer => Class::Global,
        Memory::Image => Class::Image,
        Memory::Flat => Class::Generic,
        Memory::None | Memory::Message if inst.variant.flags.contains(Flags::BARRIER) => Class::Barrier,
        Memory::Message => Class::Message,
        Memory::None if is_wait => Class::Wait,
        Memory::None if body.flow(id) != Flow::Next => Class::Control,
        Memory::None if body.reads(id).any(|reg| reg.overlaps(exec(body))) => Class::Alu,
        Memory::None => Class::Other,
    }
}
