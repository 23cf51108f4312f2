//! What must not be in a kernel, or not where code is inserted.

use crate::frame::entry::begins_with_arguments;
use wavetap_amdgpu::{Memory, Opcode, OpcodeFlags, Reg, Role, Value};
use wavetap_analysis::cfg::{Cfg, Program};
use wavetap_analysis::dataflow::{Indexing, RegSet};
use wavetap_analysis::kernel::{
    Body, BodyKind, BundlingConstraint, BundlingConstraints, Flow, Reason, Refusal, Scheduling, Stop,
};
use wavetap_base::entity::{InstId, ProgramPoint};
use wavetap_object::code_object::{Field, KernargPreload, KernelDescriptor, initial_registers};

/// `HW_REG_MODE` in a `hwreg` operand (bits 5:0).
const HWREG_MODE: u8 = 1;
/// First bit of MODE that changes which instructions execute or which registers they name: GPR_IDX_EN; VSKIP follows.
const MODE_INDEX_BIT: u32 = 27;

/// The register that says which dependences the hardware leaves to software (gfx12).
const SCHED_MODE: &str = "HW_REG_WAVE_SCHED_MODE";
/// The message that gives a wave's vector registers back before it ends.
const DEALLOC_VGPRS: &str = "MSG_DEALLOC_VGPRS";
/// Bits of `s_sendmsg`'s operand that say which message it is.
const MESSAGE_BITS: i64 = 0xff;

/// Refuses kernels whose waves change how many vector registers they have, or which ones the numbers mean.
pub(crate) fn check_allocation(body: &Body, descriptor: &KernelDescriptor) -> Result<(), Refusal> {
    if let Some(id) = body.ids().find(|id| body.inst(*id).variant.opcode_flags.contains(OpcodeFlags::ALLOC_VGPR)) {
        return Err(Refusal::at(
            Reason::VectorAllocation,
            body.address(id),
            "s_alloc_vgpr changes the number of vector registers",
        ));
    }
    if Field::enable_dynamic_vgpr(body.target()).is_some_and(|field| descriptor.get(field) != 0) {
        return Err(Refusal::new(Reason::VectorAllocation, "the descriptor requests dynamic vector registers"));
    }
    if body.target().has_shared_vgprs()
        && body.target().wave_size() == 64
        && descriptor.get(Field::SHARED_VGPR_COUNT) != 0
    {
        return Err(Refusal::new(Reason::VectorAllocation, "the descriptor requests shared vector registers"));
    }
    Ok(())
}

/// What code at the entry has to load of a kernel's preloaded arguments. Refuses kernels where neither that can be done
/// nor the original does it, as it must for firmware that preloads nothing: with the code from the entry up to
/// [`PRELOADED_ENTRY`] bytes after it.
pub(crate) fn preload(body: &Body, descriptor: &KernelDescriptor) -> Result<Option<KernargPreload>, Stop> {
    let registers = initial_registers(descriptor, body.target())?;
    let Some(preload) = registers.kernarg_preload else { return Ok(None) };
    if begins_with_arguments(body.target()) {
        return Ok(None);
    }
    if body.begins_after_entry() {
        if registers.kernarg_ptr.is_none() {
            let detail =
                format!("{} dwords of kernel arguments are preloaded without a pointer to them", preload.length);
            return Err(Refusal::at(Reason::KernargPreload, body.entry_address(), detail).into());
        }
        return Ok(Some(preload));
    }
    if !body.target().has_preload_prologue() {
        let detail =
            format!("{} dwords of kernel arguments are preloaded, and nothing else loads them", preload.length);
        return Err(Refusal::at(Reason::KernargPreload, body.entry_address(), detail).into());
    }
    let preloaded: RegSet =
        (preload.first..preload.first + preload.length).map(|number| Reg::scalar(number, 1)).collect();
    let mut missing = preloaded;
    let mut at = body.entry();
    let entry = body.address(at);
    for _ in 0..PRELOADED_ENTRY {
        if body.address(at) == entry + PRELOADED_ENTRY {
            break;
        }
        let inst = body.inst(at);
        if inst.variant.memory == Memory::Scalar {
            missing = missing.difference(inst.writes().collect());
        }
        match (body.flow(at), body.next(at)) {
            (Flow::Jump(to), _) | (Flow::Next, Some(to)) => at = to,
            _ => break,
        }
    }
    if body.address(at) == entry + PRELOADED_ENTRY && missing.is_empty() {
        return Ok(None);
    }
    let detail =
        format!("{} dwords of kernel arguments are preloaded, and the entry does not load them", preload.length);
    Err(Refusal::at(Reason::KernargPreload, entry, detail).into())
}

/// The instruction at which waves with preloaded arguments start, where the code before it loads them for firmware that
/// preloads none.
pub(crate) fn preloaded_entry(body: &Body, descriptor: &KernelDescriptor) -> Result<Option<InstId>, Stop> {
    let preloads = initial_registers(descriptor, body.target())?.kernarg_preload.is_some()
        && !begins_with_arguments(body.target());
    Ok(body.at(body.entry_address() + PRELOADED_ENTRY).filter(|_| preloads))
}

/// Where waves with preloaded arguments start, after the entry (AMDGPUUsage, "Preloaded Kernel Arguments").
const PRELOADED_ENTRY: u64 = 256;

/// Before which instruction code for the end of a wave goes: the end itself, or the message before it that gives
/// the vector registers back, with the `s_nop` that it needs.
pub(crate) fn place_before_end(body: &Body, cfg: &Cfg, end: InstId) -> InstId {
    let block = cfg.block(cfg.block_of(end));
    let mut place = end;
    for id in block.insts().filter(|id| *id < end) {
        if is_dealloc(body, id) {
            let nop = block
                .insts()
                .take_while(|other| *other < id)
                .last()
                .filter(|before| body.inst(*before).opcode() == Opcode::S_NOP);
            place = nop.unwrap_or(id);
        }
    }
    place
}

/// Refuses kernels that give their vector registers back at a place that is not right before the end.
pub(crate) fn check_dealloc(body: &Body, cfg: &Cfg) -> Result<(), Refusal> {
    for id in body.ids().filter(|id| is_dealloc(body, *id)) {
        if body.flow(cfg.block(cfg.block_of(id)).last) != Flow::End {
            return Err(Refusal::at(
                Reason::VectorAllocation,
                body.address(id),
                "the vector registers are deallocated before the end",
            ));
        }
    }
    Ok(())
}

fn is_dealloc(body: &Body, id: InstId) -> bool {
    let inst = body.inst(id);
    let message = match inst.operand(Role::Message).or_else(|| inst.operand(Role::Simm16)).map(|operand| operand.value)
    {
        Some(Value::Imm(message)) => message,
        _ => return false,
    };
    inst.opcode() == Opcode::S_SENDMSG && body.target().message((message & MESSAGE_BITS) as u8) == Some(DEALLOC_VGPRS)
}

/// Refuses an insertion between instructions that must follow each other.
pub(crate) fn check_clause(body: &Body, neighbours: &BundlingConstraints, point: ProgramPoint) -> Result<(), Refusal> {
    if point.previous().is_some_and(|id| matches!(neighbours.tie_after(id), Some(BundlingConstraint::Clause(_)))) {
        let detail = format!("{} is in the middle of a clause", body.inst(point.inst).name());
        return Err(Refusal::at(Reason::InsideClause, body.address(point.inst), detail));
    }
    Ok(())
}

/// Refuses code that ends with a call which may come back: control would go on in whatever lies after.
pub(crate) fn check_ends(program: &Program, body: &Body) -> Result<(), Refusal> {
    match program.runs_past_its_end(body) {
        Some(id) => Err(Refusal::at(
            Reason::Undecodable,
            body.address(id),
            "control runs off the end of its code after a call that may return",
        )),
        None => Ok(()),
    }
}

/// Refuses writes to the parts of MODE that would change what inserted instructions do.
pub(crate) fn check_mode(body: &Body) -> Result<(), Refusal> {
    for id in body.ids() {
        let inst = body.inst(id);
        if !inst.is_any(OpcodeFlags::SETREG) {
            continue;
        }
        // Unknown: as if it wrote all of MODE.
        let (register, bits) = inst.hardware_register().unwrap_or((HWREG_MODE, 0..32));
        if register == HWREG_MODE && bits.end > MODE_INDEX_BIT {
            return Err(Refusal::at(
                Reason::ModeWrite,
                body.address(id),
                format!("{} writes MODE bits {} and up", inst.name(), bits.start),
            ));
        }
        // As far as it is followed, inserted code handles it.
        let followed = body.sets_scheduling() && body.scheduling_after(id) != Scheduling::Unknown;
        if body.target().hardware_register(register) == Some(SCHED_MODE) && !followed {
            let detail = format!("{} writes {SCHED_MODE}: dependences may be left to software", inst.name());
            return Err(Refusal::at(Reason::ModeWrite, body.address(id), detail));
        }
    }
    Ok(())
}

/// Refuses code that enters other code while dependences may be left to software, and code that calls where a function
/// does so: nothing follows that.
pub(crate) fn check_scheduling(program: &Program, body: &Body) -> Result<(), Refusal> {
    if let Some(id) = body.leaves_without_checks() {
        let detail = format!("other code is entered while dependences may be left to software ({SCHED_MODE})");
        return Err(Refusal::at(Reason::ModeWrite, body.address(id), detail));
    }
    let function_leaves = || {
        program
            .bodies()
            .iter()
            .any(|other| other.kind() == BodyKind::Function && other.leaves_without_checks().is_some())
    };
    if let Some((id, _)) = body.calls().next().filter(|_| function_leaves()) {
        let detail = format!("a function leaves dependences to software ({SCHED_MODE})");
        return Err(Refusal::at(Reason::ModeWrite, body.address(id), detail));
    }
    Ok(())
}

/// Refuses an insertion where the index mode may be on, vector instructions may be skipped, or it is not known whether
/// the hardware interlocks dependences.
pub(crate) fn check_modes(body: &Body, indexing: &Indexing, id: InstId) -> Result<(), Refusal> {
    if body.skips_vectors_before(id) {
        let detail = format!("{} where vector instructions may be skipped (s_setvskip)", body.inst(id).name());
        return Err(Refusal::at(Reason::ModeWrite, body.address(id), detail));
    }
    if body.scheduling_before(id) == Scheduling::Unknown {
        let detail =
            format!("{} where it depends on the path what resolves dependences ({SCHED_MODE})", body.inst(id).name());
        return Err(Refusal::at(Reason::ModeWrite, body.address(id), detail));
    }
    if indexing.may_be_on(id) {
        let detail = format!("{} between s_set_gpr_idx_on and s_set_gpr_idx_off", body.inst(id).name());
        return Err(Refusal::at(Reason::RegisterIndexMode, body.address(id), detail));
    }
    Ok(())
}
