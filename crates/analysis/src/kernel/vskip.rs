//! Where vector instructions may be skipped (`s_setvskip`, gfx8 and gfx9).
//!
//! A bit of MODE, VSKIP, lets a wave pass over all instructions of vector units, memory and LDS: they write nothing and
//! count in no counter. Hand-written code switches it on for single instructions, by a bit of a scalar register. A wave
//! starts with it off (Vega ISA guide, "Mode register" and "SOPC Instructions").
//!
//! Forward over the control-flow graph: where it *may* be on, on some path.

use crate::kernel::{Body, BodyKind, Flow, Instructions};
use crate::solver::{Analysis, Lattice, solve};
use wavetap_amdgpu::{Encoding, Inst, Opcode, OpcodeFlags, Role, Value};
use wavetap_base::entity::InstId;
use wavetap_base::error::{Error, Result};

/// Hardware register MODE, and its bit VSKIP.
const MODE: u8 = 1;
const VSKIP: u32 = 28;

/// Whether an instruction is one of those that are skipped.
pub(super) fn is_vector(inst: &Inst) -> bool {
    use Encoding::{Smem, Sop1, Sop2, Sopc, Sopk, Sopp};
    !matches!(inst.variant.encoding, Sop1 | Sop2 | Sopk | Sopc | Sopp | Smem)
}

/// Whether the bit may be on after an instruction.
fn step(inst: &Inst, before: bool) -> bool {
    let constant = |role| match inst.operand(role).map(|operand| operand.value) {
        Some(Value::InlineInt(value)) => Some(i32::from(value) as u32),
        Some(Value::Literal(value)) => Some(value),
        _ => None,
    };
    if inst.variant.opcode_flags.contains(OpcodeFlags::SET_VSKIP) {
        return match (constant(Role::Src0), constant(Role::Src1)) {
            (Some(0), _) => false,
            (Some(bits), Some(index)) => bits >> (index & 31) & 1 != 0,
            _ => true,
        };
    }
    before || writes_by_mode(inst)
}

/// Whether an instruction writes the bit as a part of MODE.
fn writes_by_mode(inst: &Inst) -> bool {
    inst.is_any(OpcodeFlags::SETREG)
        && inst.hardware_register().is_none_or(|(number, bits)| number == MODE && bits.contains(&VSKIP))
}

/// Whether the bit may be on before each instruction.
struct MaySkip<'a>(&'a Body);

impl Analysis for MaySkip<'_> {
    type Node = InstId;
    type State = bool;

    fn transfer(&mut self, id: InstId, state: &mut bool) {
        *state = step(self.0.inst(id), *state);
    }

    fn join(&mut self, _: InstId, state: &mut bool, incoming: &bool) -> bool {
        state.join(incoming)
    }
}

/// Whether the bit may be on before each instruction of a body; empty if it is off everywhere.
///
/// # Errors
/// Unsupported if it may be on where other code is entered, or if a function sets it: nothing here follows it from one
/// body to another.
pub(super) fn states(body: &Body) -> Result<Vec<bool>> {
    let opcode_flags = body.opcode_flags();
    // On later targets the bit of MODE is another one.
    let by_mode =
        || wavetap_amdgpu::has_operation(body.target(), Opcode::S_SETVSKIP) && body.insts().iter().any(writes_by_mode);
    let sets = opcode_flags.contains(OpcodeFlags::SET_VSKIP)
        || opcode_flags.contains(OpcodeFlags::HARDWARE_REGISTER) && by_mode();
    if !sets {
        return Ok(Vec::new());
    }
    if let Some(id) = body.ids().find(|id| {
        body.kind() == BodyKind::Function && body.inst(*id).variant.opcode_flags.contains(OpcodeFlags::SET_VSKIP)
    }) {
        return Err(
            Error::unsupported("a function lets vector instructions be skipped (s_setvskip)").at(body.address(id))
        );
    }
    let before = solve(&Instructions::of(body), &mut MaySkip(body), [(body.entry(), false)]);
    let before: Vec<bool> = before.into_iter().map(|state| state.unwrap_or(false)).collect();
    let leaves =
        |id: InstId| matches!(body.flow(id), Flow::Call(_) | Flow::TailCall(_) | Flow::Return | Flow::IndirectJump);
    match body.ids().find(|id| before[id.index()] && leaves(*id)) {
        Some(id) => {
            let what = "other code is entered while vector instructions may be skipped (s_setvskip)";
            Err(Error::unsupported(what).at(body.address(id)))
        }
        None => Ok(before),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Image;
    use crate::kernel::assembly::{Listing, Op, branch_scc1, end, op, swappc};
    use wavetap_amdgpu::Reg;

    fn skip() -> Op {
        op("s_setvskip").reads(Reg::scalar(20, 1)).int(0)
    }

    fn add() -> Op {
        op("v_add_f32").encoding(Encoding::Vop2).writes(Reg::vector(1, 1)).reads(Reg::vector(2, 1))
    }

    fn off() -> Op {
        op("s_setvskip").int(0).int(0)
    }

    fn skipped(listing: Listing) -> Vec<bool> {
        let body = listing.kernel();
        body.ids().map(|id| body.may_be_skipped(id)).collect()
    }

    #[test]
    fn it_lasts_until_it_is_switched_off() {
        let listing =
            Listing::at(0).push(add()).push(skip()).push(add()).push(op("s_nop")).push(off()).push(add()).push(end());
        assert_eq!(skipped(listing), [false, false, true, false, false, false, false]);
        let by_constant =
            |bits, index| Listing::at(0).push(op("s_setvskip").int(bits).int(index)).push(add()).push(end());
        assert!(skipped(by_constant(4, 2))[1] && !skipped(by_constant(4, 1))[1]);
    }

    #[test]
    fn one_path_is_enough() {
        let listing =
            Listing::at(0).push(branch_scc1("there")).push(skip()).label("there").push(add()).push(off()).push(end());
        assert!(skipped(listing)[2]);
    }

    #[test]
    fn it_is_not_followed_into_other_code() {
        let call = |before: Op| {
            let listing = Listing::at(0).push(before).push(swappc(30, 4)).push(off()).push(end());
            listing.try_body(&Image::new(), BodyKind::Kernel, 0)
        };
        assert!(call(off()).is_ok());
        assert_eq!(call(skip()).expect_err("it may be on at a call").offset(), Some(4));
        let function = Listing::at(0).push(off()).push(end()).try_body(&Image::new(), BodyKind::Function, 0);
        assert_eq!(function.expect_err("a function sets it").kind(), wavetap_base::error::Kind::Unsupported);
    }
}
