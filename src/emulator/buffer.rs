//! Buffer addressing: the resource descriptor (V#) of gfx9.

use crate::isa::{Operand, Role};

use super::core::{Core, LANES, Step, active, undefined};
use super::op::{Op, Source, Ty};
use super::vector_memory::{Place, scratch_offset_of};

/// The fields of a buffer resource descriptor (AMD ISA guides, "Buffer resource descriptor").
struct Descriptor {
    base: u64,
    stride: u64,
    swizzle: bool,
    records: u64,
    index_stride: u64,
    add_lane: bool,
}

impl Descriptor {
    fn new(words: [u32; 4]) -> Self {
        let high = words[1];
        let add_lane = words[3] >> 23 & 1 != 0;
        let stride = u64::from(high >> 16 & 0x3fff);
        Descriptor {
            base: u64::from(words[0]) | u64::from(high & 0xffff) << 32,
            // With ADD_TID_ENABLE the data format field extends the stride.
            stride: if add_lane { stride | u64::from(words[3] >> 15 & 0xf) << 14 } else { stride },
            swizzle: high >> 31 != 0,
            records: u64::from(words[2]),
            index_stride: 8 << (words[3] >> 21 & 3),
            add_lane,
        }
    }

    /// The offset from the base, or none out of range.
    fn offset(&self, index: u64, offset: u64, size: u64) -> Option<u64> {
        /// Swizzled elements are dwords on gfx9.
        const ELEMENT: u64 = 4;
        if self.swizzle {
            if self.stride != 0 && (index >= self.records || offset >= self.stride) {
                return None;
            }
            let (index_high, index_low) = (index / self.index_stride, index % self.index_stride);
            let (offset_high, offset_low) = (offset / ELEMENT, offset % ELEMENT);
            Some((index_high * self.stride + offset_high * ELEMENT) * self.index_stride + index_low * ELEMENT + offset_low)
        } else if self.stride == 0 {
            (offset.checked_add(size)? <= self.records).then_some(offset)
        } else {
            (index < self.records).then_some(index * self.stride + offset)
        }
    }
}

/// Where the lanes of a buffer instruction go.
pub(super) fn places(core: &mut Core, op: &Op) -> Step<[Place; LANES]> {
    let modifiers = op.inst.modifiers;
    let Some(resource) = op.inst.operand(Role::Srsrc).and_then(Operand::reg) else {
        return undefined("a buffer instruction without descriptor");
    };
    let mut words = [0; 4];
    for (n, word) in words.iter_mut().enumerate() {
        *word = core.scalar(op, resource.first + n as u16)?;
    }
    let descriptor = Descriptor::new(words);
    let soffset = match op.source(Role::Soffset, Ty::B32) {
        Source::Scalar(code) => u64::from(core.scalar(op, code)?),
        Source::Const(bits) => bits & 0xffff_ffff,
        _ => 0,
    };
    let vaddr = op.source(Role::Vaddr, Ty::B32);
    let (indices, offsets) = match (modifiers.idxen, modifiers.offen) {
        (false, false) => ([0; LANES], [0; LANES]),
        (true, false) => (core.lanes(op, vaddr, Ty::B32, 0)?, [0; LANES]),
        (false, true) => ([0; LANES], core.lanes(op, vaddr, Ty::B32, 0)?),
        (true, true) => {
            let both = core.lanes(op, vaddr, Ty::B64, 0)?;
            (both.map(|pair| pair & 0xffff_ffff), both.map(|pair| pair >> 32))
        }
    };
    let size = u64::from(op.inst.variant.memory_bytes).max(1);
    let mut places = [Place::Nowhere; LANES];
    for lane in active(core.wave.exec()) {
        let index = indices[lane] + if descriptor.add_lane { lane as u64 } else { 0 };
        let offset = offsets[lane] + u64::from(modifiers.offset as u32);
        // A scratch descriptor: interleaved by lane. Its accesses stay in the wave's own scratch.
        if descriptor.swizzle && descriptor.add_lane && descriptor.stride == 0 {
            let address = descriptor.base + soffset + descriptor.offset(index, offset, size).unwrap_or(0);
            places[lane] = Place::Scratch(scratch_offset_of(core, address, lane)?);
        } else if let Some(offset) = descriptor.offset(index, offset, size) {
            places[lane] = Place::Global(descriptor.base + soffset + offset);
        }
    }
    Ok(places)
}
