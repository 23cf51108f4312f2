//! The instructions of global wave sync ([`crate::state::gws`]).

use wavetap_amdgpu::{Opcode, scalar};

use crate::fault::stop::{ExecResult, undefined};
use crate::lanes::active;
use crate::op::semantics::Semantics;
use crate::state::core::Core;
use crate::state::gws::GwsRequest;
use crate::state::op::{Meaning, Op};
use crate::state::wave::Status;

/// Resources have numbers below this.
const RESOURCES: u32 = 64;
/// M0 has the first resource in these bits.
const BASE_SHIFT: u32 = 16;

pub(crate) fn resource(core: &mut Core, op: &Op) -> ExecResult<u32> {
    if core.launch.strict {
        core.passed(core.wave.hazards.check_m0())?;
    }
    Ok((op.inst.modifiers.offset as u32).wrapping_add(core.scalar(op, scalar::M0)? >> BASE_SHIFT) % RESOURCES)
}

/// Resource and number of an instruction: the number is that of the first active lane.
fn operands(core: &mut Core, op: &Op) -> ExecResult<(u32, u32)> {
    let resource = resource(core, op)?;
    let Some(source) = op.inst.operands.iter().find_map(|operand| operand.reg()) else { return undefined("no data") };
    core.reading(op, source.file, source.first, 1)?;
    let Some(lane) = active(core.wave.exec()).next() else {
        return undefined(format!("{} without active lanes", op.inst.name()));
    };
    Ok((resource, core.file(source.file)[usize::from(source.first)][lane]))
}

fn init(core: &mut Core, op: &Op) -> ExecResult {
    let (resource, number) = operands(core, op)?;
    ask(core, GwsRequest::Init { resource, number })
}

fn barrier(core: &mut Core, op: &Op) -> ExecResult {
    let (resource, number) = operands(core, op)?;
    ask(core, GwsRequest::Barrier { resource, number })
}

fn add(core: &mut Core, op: &Op) -> ExecResult {
    let (resource, by) = operands(core, op)?;
    ask(core, GwsRequest::Up { resource, by })
}

/// Makes a request that has a resource and no number.
fn alone(core: &mut Core, op: &Op, of: fn(u32) -> GwsRequest) -> ExecResult {
    let resource = resource(core, op)?;
    ask(core, of(resource))
}

pub(crate) fn ask(core: &mut Core, ask: GwsRequest) -> ExecResult {
    core.wave.gws_request = Some(ask);
    core.wave.status = Status::AtGws;
    Ok(())
}

/// The meaning of such an instruction.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    match opcode {
        Opcode::DS_GWS_INIT => Some((init, Semantics::Own)),
        Opcode::DS_GWS_BARRIER => Some((barrier, Semantics::Own)),
        Opcode::DS_GWS_SEMA_BR => Some((add, Semantics::Own)),
        Opcode::DS_GWS_SEMA_P => {
            Some((|core, op| alone(core, op, |resource| GwsRequest::Down { resource }), Semantics::Own))
        }
        Opcode::DS_GWS_SEMA_V => {
            Some((|core, op| alone(core, op, |resource| GwsRequest::Up { resource, by: 1 }), Semantics::Own))
        }
        Opcode::DS_GWS_SEMA_RELEASE_ALL => {
            Some((|core, op| alone(core, op, |resource| GwsRequest::Release { resource }), Semantics::Own))
        }
        _ => None,
    }
}
