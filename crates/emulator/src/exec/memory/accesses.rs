//! The addresses of a memory instruction that is about to be executed, by the functions that it will use itself.

use wavetap_amdgpu::{Encoding, Flags, OpcodeFlags, Role};

use super::vmem::{places, swizzled};
use super::{image, lds, smem};
use crate::address::place::LanePlace;
use crate::lanes::{LANES, active};
use crate::op::Class;
use crate::op::semantics::Semantics;
use crate::state::core::Core;
use crate::state::op::Op;

/// What an instruction does to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Load,
    Store,
    Atomic,
}

/// Accesses of lanes to LDS, all at once.
#[derive(Debug, Clone)]
pub(crate) struct LdsAccess {
    pub addresses: [u64; LANES],
    pub mask: u64,
    pub size: u64,
}

/// What the lanes of an instruction do.
#[derive(Debug, Clone)]
pub(crate) struct Accesses {
    pub how: How,
    /// Bytes that a lane reads or writes at each address.
    pub size: u64,
    /// Addresses in memory.
    pub memory: Vec<u64>,
    /// The lanes that these are of, where each of them is of a lane.
    pub lanes: u64,
    /// Lanes of these that access fewer bytes at their addresses, and how many: the others are out of range of a
    /// buffer.
    pub heads: Vec<(u32, u32)>,
    /// The lanes of these whose private memory it is.
    pub scratch: u64,
    pub lds: Vec<LdsAccess>,
    /// Values go from lane to lane through LDS's crossbar.
    pub crossbar: bool,
    /// The L1 cache is passed by.
    pub bypass: bool,
}

/// The accesses of an instruction, none if it has none. Where an address cannot be worked out, the instruction itself
/// will say so.
pub(crate) fn gather(core: &mut Core, op: &Op) -> Option<Accesses> {
    let flags = op.inst.variant.flags;
    let how = if flags.contains(Flags::ATOMIC) {
        How::Atomic
    } else if flags.contains(Flags::STORE) {
        How::Store
    } else {
        How::Load
    };
    let size = match op.semantics {
        Semantics::Load { bytes, .. } | Semantics::Store { bytes, .. } | Semantics::Atomic { bytes, .. } => {
            u64::from(bytes)
        }
        _ => u64::from(op.inst.variant.memory_bytes).max(4),
    };
    let mut accesses = Accesses {
        how,
        size,
        memory: Vec::new(),
        lanes: 0,
        heads: Vec::new(),
        scratch: 0,
        lds: Vec::new(),
        crossbar: false,
        bypass: false,
    };
    match op.class {
        Class::Vmem if flags.intersects(Flags::LOAD | Flags::STORE | Flags::ATOMIC) => vector(core, op, &mut accesses)?,
        Class::Lds => local(core, op, &mut accesses)?,
        Class::Smem if flags.intersects(Flags::LOAD | Flags::STORE | Flags::ATOMIC) => {
            let (address, valid) = smem::address(core, op, size).ok()?;
            accesses.memory.push(address);
            accesses.size = valid.max(1);
        }
        _ => return None,
    }
    Some(accesses)
}

fn vector(core: &mut Core, op: &Op, accesses: &mut Accesses) -> Option<()> {
    if op.inst.variant.encoding == Encoding::Tensor {
        // A unit of its own: its time is not modelled.
        return None;
    }
    if op.inst.variant.image.is_some() {
        (accesses.memory, accesses.size) = image::accesses(core, op).ok()?;
        return Some(());
    }
    let places = places(core, op).ok()?;
    let mut local = LdsAccess { addresses: [0; LANES], mask: 0, size: accesses.size };
    let (mut scratch, mut heads) = (0, Vec::new());
    let mut in_memory = |lane: usize, address| {
        accesses.memory.push(address);
        accesses.lanes |= 1 << lane;
    };
    for lane in active(core.wave.exec()) {
        match places[lane] {
            LanePlace::Global(address) => in_memory(lane, address),
            LanePlace::Head(address, bytes) => {
                in_memory(lane, address);
                heads.push((lane as u32, bytes.into()));
            }
            LanePlace::Scratch(offset) => {
                in_memory(lane, swizzled(core, lane, u64::try_from(offset).ok()?));
                scratch |= 1 << lane;
            }
            LanePlace::Lds(offset) => {
                local.addresses[lane] = offset;
                local.mask |= 1 << lane;
            }
            LanePlace::Nowhere => {}
        }
    }
    (accesses.scratch, accesses.heads) = (scratch, heads);
    if local.mask != 0 {
        accesses.lds.push(local);
    }
    let (target, modifiers) = (core.launch.target, &op.inst.modifiers);
    // Coherent beyond the compute unit: a scope beyond it on gfx12, `sc1` on gfx94x, `glc` elsewhere.
    accesses.bypass = match () {
        () if target.has_cache_scope() => modifiers.scope >= 1,
        () if target.sc_cache_bits() => modifiers.scc,
        () => modifiers.glc,
    };
    Some(())
}

fn local(core: &mut Core, op: &Op, accesses: &mut Accesses) -> Option<()> {
    accesses.crossbar = op.inst.is_any(OpcodeFlags::CROSSBAR);
    if accesses.crossbar || op.inst.modifiers.gds {
        return Some(());
    }
    let mask = core.wave.exec();
    if op.inst.operand(Role::Addr).is_none() {
        // One counter for the wave, or consecutive dwords.
        let addresses =
            if op.inst.is_any(OpcodeFlags::ADDTID) { std::array::from_fn(|lane| 4 * lane as u64) } else { [0; LANES] };
        accesses.lds.push(LdsAccess { addresses, mask, size: 4 });
        return Some(());
    }
    let base = lds::addresses(core, op).ok()?;
    let two = op.inst.is_any(OpcodeFlags::TWO_ADDRESSES);
    // What is loaded from two addresses is in one run of registers.
    let each = || {
        let loaded = || op.inst.operand(Role::Vdst).map_or(1, |to| u64::from(to.dwords) / 2);
        4 * op.inst.operand(Role::Data0).map_or_else(loaded, |data| data.dwords.into())
    };
    let size = if two { each() } else { accesses.size };
    let stride = if op.inst.is_any(OpcodeFlags::STRIDE64) { 64 } else { 1 };
    let offsets = if two { lds::two_offsets(op, size, stride).to_vec() } else { vec![lds::single_offset(op)] };
    for offset in offsets {
        let addresses = base.map(|address| (address + offset) & 0xffff_ffff);
        accesses.lds.push(LdsAccess { addresses, mask, size });
    }
    Some(())
}
