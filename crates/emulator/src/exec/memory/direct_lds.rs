//! Loads from memory to LDS that pass by the vector registers, and `buffer_store_lds_dword`, the other way.
//!
//! The place in LDS is `M0 + the instruction's offset + lane · size` (CDNA3 and CDNA4 ISA guides, 9.1.9 and 10.3;
//! LLVM, `llvm.amdgcn.raw.buffer.load.lds`, "applied to both"; ROCm/rocm-systems pull request 10192). The offset is
//! the memory address's, too; the scalar and the vector one are the memory's alone.
//!
//! * Of M0 as many bits count as LDS needs: 16, or 18 on gfx950. Flat instructions drop the lowest two: `M0[17:2] * 4`.
//! * A lane has 4 bytes; with 3 and 4 dwords it has 16, the last 4 of which 3 dwords leave as they are.
//! * A lane of a buffer load whose place is not in LDS neither loads nor writes ("LDS address clamping"): Triton
//!   switches waves off so (pull request 10332). It says that flat loads do not (10588), and no document says what
//!   they do: there it is a fault. So is a lane that is in LDS in part.

use wavetap_amdgpu::{Encoding, scalar};

use super::buffer;
use super::vmem::{MAX_BYTES, count, extend, issue_store, kind_at, read_place, write_place};
use crate::address::place::LanePlace;
use crate::address::range::ANYWHERE;
use crate::fault::MemoryAccess;
use crate::fault::stop::{ExecResult, at_lane, undefined};
use crate::lanes::{LANES, active};
use crate::shadow::races::access::LaneAccess;
use crate::state::core::Core;
use crate::state::op::Op;
use crate::strict::store_order::order;

/// Bytes that a lane has in LDS with so many bytes of data.
fn stride(size: usize) -> usize {
    if size > 8 { 16 } else { size.max(4) }
}

/// Where the lanes begin in LDS.
fn base(core: &mut Core, op: &Op) -> ExecResult<u64> {
    if core.launch.strict {
        core.passed(core.wave.hazards.check_m0())?;
    }
    let m0 = core.scalar(op, scalar::M0)? & core.launch.target.lds_offset_mask();
    Ok(u64::from(if is_buffer(op) { m0 } else { m0 & !3 }))
}

fn is_buffer(op: &Op) -> bool {
    op.inst.variant.encoding == Encoding::Mubuf
}

/// The load of an instruction whose lanes' places in memory are known.
pub(crate) fn load(core: &mut Core, op: &Op, places: &[LanePlace; LANES], size: usize, signed: bool) -> ExecResult {
    let base = base(core, op)?.wrapping_add_signed(i64::from(op.inst.modifiers.offset));
    let width = size.max(4);
    let at = |lane: usize| base.wrapping_add((stride(size) * lane) as u64);
    let mut mask = core.wave.exec();
    if is_buffer(op) {
        let end = core.lds.len() as u64;
        mask = active(mask).filter(|&lane| at(lane) < end).fold(0, |mask, lane| mask | 1 << lane);
    }
    count(core, places, mask, size);
    for lane in active(mask) {
        let mut buffer = [0; MAX_BYTES];
        at_lane(read_place(core, lane, places[lane], &mut buffer[..size], MemoryAccess::Load), lane)?;
        if size < 4 {
            let value = extend(&buffer[..size], signed);
            buffer[..4].copy_from_slice(&value.to_le_bytes());
        }
        let Some(at) = core.of_lane(core.lds_place(at(lane), width), lane)? else { continue };
        core.note(LaneAccess::write(lane, at, &buffer[..width], 0));
        core.lds[at..at + width].copy_from_slice(&buffer[..width]);
    }
    if core.launch.strict {
        let kind = kind_at(core, op, places, mask);
        core.wave.in_flight.issue(op, kind, &[]);
    }
    Ok(())
}

/// `buffer_store_lds_dword`: a dword of LDS at M0 and the lane's place goes to memory.
pub(crate) fn store(core: &mut Core, op: &Op) -> ExecResult {
    if op.inst.modifiers.offset != 0 {
        return undefined("a store from LDS with an offset: whether it is LDS's, too, is not documented");
    }
    let base = base(core, op)?;
    let places = buffer::places(core, op)?;
    order(core, op, true, ANYWHERE)?;
    let mask = core.wave.exec();
    count(core, &places, mask, 4);
    for lane in active(mask) {
        let Some(at) = core.of_lane(core.lds_place(base + 4 * lane as u64, 4), lane)? else { continue };
        let bytes = [core.lds[at], core.lds[at + 1], core.lds[at + 2], core.lds[at + 3]];
        core.note(LaneAccess::read(lane, at, 4, 0));
        at_lane(write_place(core, lane, places[lane], &bytes, MemoryAccess::Store), lane)?;
    }
    issue_store(core, op);
    Ok(())
}
