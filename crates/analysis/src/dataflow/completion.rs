//! The order in which memory operations complete, counter by counter, and what they write then.
//!
//! The rules that [`Waits`](super::Waits) and the verifier's wait checks build on: operations of one
//! [`CompletionOrder`] in one counter complete in the order in which they were issued, those of different ones in any
//! order, and [`CompletionOrder::Unordered`] ones in any order even among each other. A wait that leaves N operations
//! of a counter outstanding therefore proves complete every operation with N younger ones of its own order; of an
//! unordered one only a wait for 0 proves anything.
//!
//! An order that is too fine loses precision; one that is too coarse would prove too much. So where documents leave the
//! order open, operations have orders of their own.

use crate::kernel::Body;
use wavetap_amdgpu::{Counter, Encoding, Inst, Memory, Opcode, OpcodeFlags, Role, Target, Value};
use wavetap_base::entity::InstId;

/// The order in which an operation completes relative to others of its counter: those of one kind complete in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CompletionOrder {
    /// A load from memory through vector memory.
    Vmem,
    /// A store to memory that is certainly not scratch.
    Store,
    /// Another store.
    ScratchStore,
    /// An LDS operation.
    Lds,
    /// A GDS operation.
    Gds,
    /// A load from LDS into a register without an address (`lds_direct_load`).
    LdsDirect,
    /// An export of a colour or of something else.
    Export,
    /// An export of a position.
    ExportPosition,
    /// An export of parameters.
    ExportParameter,
    /// A message.
    Message,
    /// SCC, written when a barrier answers.
    Barrier,
    /// A copy to LDS or a tensor load.
    AsyncLoad,
    /// A copy from LDS or a tensor store.
    AsyncStore,
    /// An operation that completes in no order.
    Unordered,
}

/// What FLAT operations are taken to access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlatMemory {
    /// Any memory, LDS too: complete only when both counters were waited for.
    #[default]
    Any,
    /// No LDS, as a compiler may know that wrote waits for one counter only: then they are as other vector memory
    /// operations.
    NoLds,
}

/// What an instruction of a body completes in order with, in a counter.
pub fn completion_order(body: &Body, flat: FlatMemory, counter: Counter, id: InstId) -> CompletionOrder {
    let inst = body.inst(id);
    let memory = inst.variant.memory;
    if memory == Memory::Flat && flat == FlatMemory::Any && !body.target().flat_in_order() {
        return CompletionOrder::Unordered;
    }
    match counter {
        Counter::Vm | Counter::Load | Counter::Sample | Counter::Bvh => CompletionOrder::Vmem,
        Counter::Vs | Counter::Store if matches!(memory, Memory::Global | Memory::Image) => CompletionOrder::Store,
        Counter::Vs | Counter::Store => CompletionOrder::ScratchStore,
        Counter::X if memory == Memory::Scalar || inst.variant.encoding == Encoding::Smem => CompletionOrder::Unordered,
        Counter::X => CompletionOrder::Vmem,
        Counter::Async | Counter::Tensor if inst.is_any(OpcodeFlags::TO_LDS) => CompletionOrder::AsyncLoad,
        Counter::Async | Counter::Tensor => CompletionOrder::AsyncStore,
        Counter::Exp if memory == Memory::Gds || inst.modifiers.gds => CompletionOrder::Gds,
        Counter::Exp => export_kind(inst),
        Counter::Lgkm | Counter::Ds | Counter::Km => match memory {
            _ if inst.variant.encoding == Encoding::Smem => CompletionOrder::Unordered,
            Memory::Scalar => CompletionOrder::Unordered,
            Memory::Gds => CompletionOrder::Gds,
            _ if inst.modifiers.gds => CompletionOrder::Gds,
            Memory::Message => CompletionOrder::Message,
            _ if answers_in_scc(inst) => CompletionOrder::Barrier,
            _ if inst.opcode() == Opcode::S_GET_BARRIER_STATE => CompletionOrder::Unordered,
            _ if inst.is_any(OpcodeFlags::SENDMSG) => CompletionOrder::Message,
            _ => CompletionOrder::Lds,
        },
    }
}

/// Which registers operations of a counter write when they arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenRegs {
    /// Registers of every kind.
    All,
    /// Vector registers only.
    Vectors,
    /// None.
    Nothing,
}

/// Only scalar loads and messages write scalar registers.
pub fn written_by(counter: Counter) -> WrittenRegs {
    match counter {
        Counter::Lgkm | Counter::Km => WrittenRegs::All,
        Counter::Vm | Counter::Load | Counter::Sample | Counter::Bvh | Counter::Ds | Counter::Exp => {
            WrittenRegs::Vectors
        }
        Counter::Vs | Counter::Store | Counter::X | Counter::Async | Counter::Tensor => WrittenRegs::Nothing,
    }
}

/// Barrier instructions that write SCC when the barrier answers (gfx12).
fn answers_in_scc(inst: &Inst) -> bool {
    matches!(inst.opcode(), Opcode::S_BARRIER_SIGNAL_ISFIRST | Opcode::S_BARRIER_LEAVE)
}

/// Exports to positions, to parameters and to the rest complete in an order of their own (export targets: LLVM,
/// SIDefines).
fn export_kind(inst: &Inst) -> CompletionOrder {
    match inst.operand(Role::ExportTarget).map(|operand| operand.value) {
        Some(Value::Imm(12..=19)) => CompletionOrder::ExportPosition,
        Some(Value::Imm(32..)) => CompletionOrder::ExportParameter,
        Some(_) => CompletionOrder::Export,
        None => CompletionOrder::LdsDirect,
    }
}

/// Whether the operation may count in a counter or not: LLVM takes it that cache invalidation through buffer
/// instructions does not, but they are acknowledged like loads. What is skipped does not.
pub fn may_not_count(body: &Body, id: InstId) -> bool {
    let inst = body.inst(id);
    body.may_be_skipped(id) || inst.variant.encoding == Encoding::Mubuf && inst.variant.memory == Memory::None
}

/// The counters in which a target's operations count.
pub fn counters_of(target: Target) -> impl Iterator<Item = Counter> {
    Counter::ALL.into_iter().filter(move |counter| target.counts_in(*counter))
}
