//! Accesses that lanes out of bounds do not execute.
//!
//! The check takes these lanes out of EXEC ([`narrow`]), and code after the instruction restores it. A load or atomic
//! gives them 0 then ([`zeros`]), once it is complete. Members of a clause have such code between them: the clause is
//! dissolved, as `s_clause` is a hint.

use std::ops::Range;

use crate::asm::{Asm, c, v};
use crate::frame::kept_ranges::BAD_LANE;
use crate::function::ClonedFunction;
use crate::probe::Measurement;
use wavetap_amdgpu::{Counter, D16, Flags, Inst, Operand, Reg, RegFile, Value};
use wavetap_analysis::kernel::Reason;
use wavetap_base::entity::InstId;
use wavetap_base::error::Result;

/// Refuses an access that cannot be dropped.
pub(super) fn check(function: &ClonedFunction<'_>, id: InstId) -> std::result::Result<(), (Reason, &'static str)> {
    let (body, inst) = (function.body, function.body.inst(id));
    let opcode = inst.opcode();
    if opcode.load().is_none() && opcode.store().is_none() && !inst.variant.flags.contains(Flags::ATOMIC) {
        return Err((Reason::UncheckedAccess, "what it does for lanes that are not active is not known"));
    }
    if inst.modifiers.tfe {
        return Err((Reason::UncheckedAccess, "what it writes of memory that is not resident (tfe) is not known"));
    }
    // Above v255 the high bits of numbers are elsewhere, and inserted code does without.
    let is_low = |operand: &Operand| match operand.reg() {
        Some(reg) => reg.file == RegFile::Vector && body.register(id, operand) == Some(reg),
        None => true,
    };
    if !inst.operands.iter().filter(|operand| operand.access.writes()).all(is_low) {
        return Err((Reason::UncheckedAccess, "it loads into AGPRs or registers above v255, which are not set to 0"));
    }
    // Where addresses may be translated later, the members of a clause may be replayed together.
    let replays = body.target().largest_wait(Counter::X).is_some();
    if replays && function.neighbours.clauses().iter().any(|clause| (clause.first..=clause.last).contains(&id)) {
        return Err((Reason::InsideClause, "the target may replay clauses, which are not dissolved"));
    }
    Ok(())
}

/// Lets no lane be out of bounds as long as none is found.
pub(super) fn none_bad(m: &mut Measurement<'_>) -> Result<()> {
    let kept = v(m.data() + 1);
    halves(m).try_for_each(|half| m.asm.op("v_writelane_b32", &[kept, c(0), c(BAD_LANE + half)]))
}

/// Takes the lanes that were found out of bounds out of EXEC. Destroys SCC and the pair of the first register.
pub(super) fn narrow(m: &mut Measurement<'_>) -> Result<()> {
    let (exec, first, kept) = (m.exec(), m.r.first, m.data() + 1);
    for half in halves(m) {
        m.asm.read_lane(first + half as u16, kept, BAD_LANE + half)?;
    }
    let bad = m.asm.mask(first);
    m.asm.masks("s_andn2_b", &[exec, exec, bad])
}

/// The halves of a mask of lanes.
fn halves(m: &Measurement<'_>) -> Range<u32> {
    0..m.asm.target().wave_size() / u32::BITS
}

/// What sets the registers that an access writes to 0 in all active lanes, or the halves that it writes; none if it
/// writes no vector registers.
pub(super) fn zeros(function: &ClonedFunction<'_>, id: InstId) -> Option<impl FnOnce(&mut Asm) -> Result<()> + use<>> {
    let inst = function.body.inst(id);
    let written: Vec<Reg> = function.body.writes(id).filter(|reg| reg.file == RegFile::Vector).collect();
    let kept = kept_half(inst);
    // A comparing atomic of a buffer has its data where it returns its result, which is half as wide.
    let most = inst.variant.memory_bytes.div_ceil(4) as u16;
    let zero = move |asm: &mut Asm| {
        for reg in written.iter().flat_map(|reg| reg.first..reg.first + u16::from(reg.dwords).min(most)) {
            let register = Value::Reg(Reg::vector(reg, 1));
            match kept {
                Some(bits) => asm.op("v_and_b32_e32", &[register, c(bits), register])?,
                None => asm.op("v_mov_b32_e32", &[register, c(0)])?,
            }
        }
        Ok(())
    };
    function.body.writes(id).any(|reg| reg.file == RegFile::Vector).then_some(zero)
}

/// The half of its register that a load of the other half keeps.
fn kept_half(inst: &Inst) -> Option<u32> {
    match inst.opcode().load()?.d16 {
        D16::Whole => None,
        D16::Low => Some(0xffff_0000),
        D16::High => Some(0xffff),
    }
}
