//! Copies between memory and LDS that the wave does not wait for by itself (gfx1250): each lane's own bytes, from or to
//! a place in LDS that a vector register has. The offset of the instruction is for both places (CDNA5 ISA guide, async
//! loads and stores). `asynccnt` counts them, loads and stores each in order.

use wavetap_amdgpu::{Opcode, Role};

use super::lds;
use super::vmem::{MAX_BYTES, count, places, read_place, write_place};
use crate::address::range::ANYWHERE;
use crate::fault::MemoryAccess;
use crate::fault::stop::{ExecResult, at_lane, undefined};
use crate::lanes::{LANES, active};
use crate::op::semantics::{Semantics, Ty};
use crate::shadow::in_flight::OperationKind;
use crate::shadow::races::access::LaneAccess;
use crate::state::core::Core;
use crate::state::op::{Handler, Meaning, Op};
use crate::strict::store_order::order;

/// Where each lane's bytes are in LDS, by the register in an operand; none if the hardware drops the copy to there.
fn local(core: &mut Core, op: &Op, role: Role, size: usize) -> ExecResult<[Option<usize>; LANES]> {
    let offset = op.inst.modifiers.offset as u32;
    let starts = core.lanes(op, op.source(role, Ty::B32), Ty::B32, 0)?;
    let mut places = [None; LANES];
    for lane in active(core.wave.exec()) {
        // The sum wraps around at 32 bits, as that of LDS instructions does: LLVM gives bases below 0 that the offset
        // makes right (pull requests 176816 and 185078).
        let start = u64::from((starts[lane] as u32).wrapping_add(offset));
        let dropped = role == Role::Vdst && lds::is_dropped(core, start, size);
        places[lane] = if dropped { None } else { core.of_lane(core.lds_place(start, size), lane)? };
    }
    Ok(places)
}

fn load(core: &mut Core, op: &Op) -> ExecResult {
    let Semantics::Load { bytes, .. } = op.semantics else { return undefined("meaning") };
    let size = usize::from(bytes);
    let from = places(core, op)?;
    let to = local(core, op, Role::Vdst, size)?;
    order(core, op, true, ANYWHERE)?;
    // Those that are dropped do not come to memory (Triton pull request 9761).
    let mask = active(core.wave.exec()).filter(|lane| to[*lane].is_some()).fold(0, |mask, lane| mask | 1 << lane);
    count(core, &from, mask, size);
    for lane in active(mask) {
        let Some(to) = to[lane] else { continue };
        let mut buffer = [0; MAX_BYTES];
        at_lane(read_place(core, lane, from[lane], &mut buffer[..size], MemoryAccess::Load), lane)?;
        core.note(LaneAccess::write(lane, to, &buffer[..size], 0));
        core.lds[to..to + size].copy_from_slice(&buffer[..size]);
    }
    issue(core, op, OperationKind::AsyncLoad);
    Ok(())
}

fn store(core: &mut Core, op: &Op) -> ExecResult {
    let size = usize::from(op.inst.variant.memory_bytes);
    let to = places(core, op)?;
    let from = local(core, op, Role::Vdata, size)?;
    order(core, op, true, ANYWHERE)?;
    let mask = core.wave.exec();
    count(core, &to, mask, size);
    for lane in active(mask) {
        let Some(from) = from[lane] else { continue };
        let mut buffer = [0; MAX_BYTES];
        buffer[..size].copy_from_slice(&core.lds[from..from + size]);
        core.note(LaneAccess::read(lane, from, size, 0));
        at_lane(write_place(core, lane, to[lane], &buffer[..size], MemoryAccess::Store), lane)?;
    }
    issue(core, op, OperationKind::AsyncStore);
    Ok(())
}

fn issue(core: &mut Core, op: &Op, kind: OperationKind) {
    if core.launch.strict {
        core.wave.in_flight.issue(op, kind, &[]);
    }
}

/// The meaning of such a copy.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    // Without other workgroups in a cluster those that load for all of them are as others (CDNA5 ISA guide, 10.7).
    let bytes = match opcode {
        Opcode::GLOBAL_LOAD_ASYNC_TO_LDS_B8 | Opcode::CLUSTER_LOAD_ASYNC_TO_LDS_B8 => 1,
        Opcode::GLOBAL_LOAD_ASYNC_TO_LDS_B32 | Opcode::CLUSTER_LOAD_ASYNC_TO_LDS_B32 => 4,
        Opcode::GLOBAL_LOAD_ASYNC_TO_LDS_B64 | Opcode::CLUSTER_LOAD_ASYNC_TO_LDS_B64 => 8,
        Opcode::GLOBAL_LOAD_ASYNC_TO_LDS_B128 | Opcode::CLUSTER_LOAD_ASYNC_TO_LDS_B128 => 16,
        Opcode::GLOBAL_STORE_ASYNC_FROM_LDS_B8
        | Opcode::GLOBAL_STORE_ASYNC_FROM_LDS_B32
        | Opcode::GLOBAL_STORE_ASYNC_FROM_LDS_B64
        | Opcode::GLOBAL_STORE_ASYNC_FROM_LDS_B128 => return Some((store as Handler, Semantics::Own)),
        _ => return None,
    };
    Some((load, Semantics::Load { bytes, signed: false, d16: None }))
}
