//! Undefined bits that an instruction only moves: to other registers, lanes or register files.
//!
//! The rule of [`super::undefined`] tries an instruction several times. Unoptimised code keeps its scalar
//! registers in lanes of vector registers that are undefined elsewhere, so most of what it would try are moves, and
//! where their bits go needs no trial.

use wavetap_amdgpu::{RegFile, Role, scalar};

use crate::lanes::active;
use crate::op::definedness::BitMove;
use crate::op::registers::slot;
use crate::op::semantics::{Source, Ty};
use crate::shadow::init_shadow::{InitShadow, UndefinedOrigin, scalar_slot};
use crate::state::core::Core;
use crate::state::op::Op;

impl BitMove {
    /// Takes undefined bits along. Returns whether it did: not where another rule applies to a register.
    ///
    /// What selects a lane must be defined.
    pub(crate) fn carry(self, core: &mut Core, op: &Op) -> bool {
        let (Some(to), Some(from)) = (op.dst, From::of(op)) else { return false };
        let exec = core.wave.exec();
        let lane = selected_lane(core, op);
        let shadow = &mut core.wave.checks.init_shadow;
        let origin = from.origin(shadow);
        match (self, to.file, lane) {
            (BitMove::FromLane, RegFile::Scalar, Some(lane)) if to.first < scalar::EXEC => {
                let bits = from.bits(shadow, lane);
                shadow.set_scalar(to.first, bits);
                if bits != 0 {
                    shadow.set_origin(scalar_slot(to.first), origin);
                }
            }
            (BitMove::ToLane, RegFile::Vector, Some(lane)) => {
                let (to, bits) = (slot(to.file, to.first), from.bits(shadow, lane));
                shadow.vector_mut(to).set(lane, bits);
                if bits != 0 {
                    shadow.set_origin(to, origin);
                }
            }
            (BitMove::Lanes, RegFile::Vector | RegFile::Accum, _) => {
                let to = slot(to.file, to.first);
                let mut any = false;
                for lane in active(exec) {
                    let bits = from.bits(shadow, lane);
                    any |= bits != 0;
                    shadow.vector_mut(to).set(lane, bits);
                }
                if any {
                    shadow.set_origin(to, origin);
                }
            }
            _ => return false,
        }
        true
    }
}

/// The source of a moved bit.
#[derive(Clone, Copy)]
enum From {
    /// The slot of a VGPR or AGPR.
    Row(usize),
    /// A scalar register.
    Scalar(u16),
    /// What is always defined.
    Defined,
}

impl From {
    fn of(op: &Op) -> Option<From> {
        match op.source(Role::Src0, Ty::B32) {
            Source::Vector(register) => Some(From::Row(slot(RegFile::Vector, register))),
            Source::Accum(register) => Some(From::Row(slot(RegFile::Accum, register))),
            Source::Scalar(code) if code < 128 => Some(From::Scalar(code)),
            Source::Scalar(_) | Source::Const(_) => Some(From::Defined),
            _ => None,
        }
    }

    fn bits(self, shadow: &InitShadow, lane: usize) -> u32 {
        match self {
            From::Row(at) => shadow.vector(at).get(lane),
            From::Scalar(code) => shadow.scalar(code),
            From::Defined => 0,
        }
    }

    fn origin(self, shadow: &InitShadow) -> UndefinedOrigin {
        match self {
            From::Row(at) => shadow.origin(at),
            From::Scalar(code) => shadow.origin(scalar_slot(code)),
            From::Defined => UndefinedOrigin::Condition,
        }
    }
}

/// The lane that an instruction's second source selects.
fn selected_lane(core: &Core, op: &Op) -> Option<usize> {
    let number = match op.source(Role::Src1, Ty::B32) {
        Source::Scalar(code) if code < 128 => core.wave.sgpr[usize::from(code)],
        Source::Const(bits) => bits as u32,
        _ => return None,
    };
    Some(number as usize & (core.launch.lanes - 1))
}
