//! The addresses of an access that was recorded with what its registers held.

use crate::accesses::Space;
use crate::descriptor::{Described, LaneAddress, LaneOffsets};
use wavetap_amdgpu::{Inst, Memory, OpcodeFlags, Target};
use wavetap_analysis::kernel::{AddressForm, AddressOperands};
use wavetap_profile::accesses::{Apertures, DispatchAccesses, RecordedAccess};

/// What recorded lanes access: of an instruction that accesses two places in each lane, one of them; of one with flat
/// addresses, the lanes of one memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedAccess {
    /// [`Space::Global`], [`Space::Lds`] or, where flat addresses are in neither, [`Space::Scratch`].
    pub space: Space,
    /// Bytes at each address.
    pub bytes: u32,
    /// The lanes.
    pub lanes: u64,
    /// Their addresses, from the first lane on; of scratch what the registers say.
    pub addresses: Vec<u64>,
}

/// The addresses of what was recorded of an instruction in a dispatch, in the order of its memories and places. None of
/// a descriptor that is not of plain memory, or where a lane is at the end of what it describes; and if what was
/// recorded is not that of the instruction.
#[must_use]
pub fn resolve(
    target: Target,
    inst: &Inst,
    recorded: &RecordedAccess,
    dispatch: &DispatchAccesses,
) -> Option<Vec<ResolvedAccess>> {
    let operands = AddressOperands::of(inst)?;
    if operands.scalars.len() != recorded.scalars.len() {
        return None;
    }
    let places = if inst.is_any(OpcodeFlags::TWO_ADDRESSES) { 2 } else { 1 };
    let bytes = u32::from(inst.variant.memory_bytes) / places;
    let m = &inst.modifiers;
    let offset = i64::from(m.offset).cast_unsigned();
    let low = |value: u64| value & u64::from(u32::MAX);
    let each = |address: &dyn Fn(u64) -> u64| recorded.values.iter().map(|value| address(*value)).collect();
    let of = |space, addresses| ResolvedAccess { space, bytes, lanes: recorded.lanes, addresses };
    let bases: Vec<u64> = match operands.form {
        AddressForm::Lanes => recorded.values.clone(),
        AddressForm::BaseAndLanes => {
            let base = u64::from(recorded.scalars[0]) | u64::from(recorded.scalars[1]) << u32::BITS;
            let scale = if m.scale_offset { u64::from(bytes) } else { 1 };
            let lane = |value: u64| match target.signed_global_offsets() {
                true => i64::from(low(value) as i32).cast_unsigned(),
                false => low(value),
            };
            each(&|value| base.wrapping_add(lane(value).wrapping_mul(scale)))
        }
        AddressForm::Lds => {
            let unit = u64::from(bytes) * if inst.is_any(OpcodeFlags::STRIDE64) { 64 } else { 1 };
            let offsets = match places {
                1 => vec![offset],
                _ => vec![low(offset) * unit, u64::from(m.offset1) * unit],
            };
            let at = |offset: u64| of(Space::Lds, each(&|value| low(low(value).wrapping_add(offset))));
            return Some(offsets.into_iter().map(at).collect());
        }
        AddressForm::Buffer => return described(target, inst, recorded, bytes),
    };
    if inst.variant.memory == Memory::Global {
        return Some(vec![of(Space::Global, bases.iter().map(|base| base.wrapping_add(offset)).collect())]);
    }
    // Which memory a flat address is in follows from it without the offset.
    let Apertures { shared, private } = dispatch.apertures;
    let below = if target.has_flat_scratch_base() { 26 } else { 0 };
    let space = |base: u64| match (base >> u32::BITS) as u32 {
        high if (high ^ private) >> below == 0 => Space::Scratch,
        high if high == shared => Space::Lds,
        _ => Space::Global,
    };
    let split = |wanted: Space| {
        let mut found = ResolvedAccess { space: wanted, bytes, lanes: 0, addresses: Vec::new() };
        let lanes = (0..u64::BITS).filter(|lane| recorded.lanes >> lane & 1 != 0);
        for (lane, base) in lanes.zip(&bases).filter(|(_, base)| space(**base) == wanted) {
            found.lanes |= 1 << lane;
            let address = base.wrapping_add(offset);
            found.addresses.push(if wanted == Space::Lds { low(address) } else { address });
        }
        (found.lanes != 0).then_some(found)
    };
    Some([Space::Global, Space::Scratch, Space::Lds].into_iter().filter_map(split).collect())
}

/// Where lanes go through a descriptor. Those that are out of its range go nowhere.
fn described(target: Target, inst: &Inst, recorded: &RecordedAccess, bytes: u32) -> Option<Vec<ResolvedAccess>> {
    let (words, soffset) = recorded.scalars.split_first_chunk::<4>()?;
    let scalar = soffset.first().copied().unwrap_or(0);
    let mut found = ResolvedAccess { space: Space::Global, bytes, lanes: 0, addresses: Vec::new() };
    let descriptor = match Described::of(*words, target, inst)? {
        Described::Plain(descriptor) => descriptor,
        Described::Scratch => {
            return Some(vec![ResolvedAccess {
                space: Space::Scratch,
                lanes: recorded.lanes,
                addresses: recorded.values.clone(),
                ..found
            }]);
        }
    };
    let m = &inst.modifiers;
    let lanes = (0..u64::BITS).filter(|lane| recorded.lanes >> lane & 1 != 0);
    for (lane, value) in lanes.zip(&recorded.values) {
        let (first, second) = (*value as u32, (*value >> u32::BITS) as u32);
        let (index, offset) = match (m.idxen, m.offen) {
            (true, true) => (first, second),
            (true, false) => (first, 0),
            (false, true) => (0, first),
            (false, false) => (0, 0),
        };
        let at = LaneOffsets { index: index.into(), offset: offset.wrapping_add(m.offset as u32), scalar };
        match descriptor.address(at, bytes.into(), target, inst) {
            LaneAddress::At(address) => {
                found.lanes |= 1 << lane;
                found.addresses.push(address);
            }
            LaneAddress::Nowhere => {}
            LaneAddress::Unknown => return None,
        }
    }
    Some(if found.lanes == 0 { Vec::new() } else { vec![found] })
}
