//! Buffer addressing: the resource descriptor (V#).

use crate::isa::{Operand, Role};

use super::core::{Core, LANES, Step, active, undefined};
use super::op::{Op, Source, Ty};
use super::vector_memory::{Place, scratch_offset_of};

/// Which accesses are out of bounds (RDNA ISA guides, "Buffer out of bounds selection"; `Index` is also gfx9's way with a stride, `Bytes` that without).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bounds {
    /// The index, or the offset in the element.
    Structured,
    /// The index.
    Index,
    /// None but of an empty buffer.
    Empty,
    /// The offset, in a buffer of bytes.
    Bytes,
}

/// The fields of a buffer resource descriptor (AMD ISA guides, "Buffer resource descriptor").
struct Descriptor {
    base: u64,
    stride: u64,
    swizzle: bool,
    /// Bytes that stay together where it is swizzled.
    element: u64,
    records: u64,
    index_stride: u64,
    add_lane: bool,
    bounds: Bounds,
}

impl Descriptor {
    fn new(words: [u32; 4], generation: u32) -> Self {
        let high = words[1];
        let add_lane = words[3] >> 23 & 1 != 0;
        let stride = u64::from(high >> 16 & 0x3fff);
        let modern = generation >= 10;
        // A field of two bits from gfx11 on: 1 is for elements of 4 bytes, 3 of 16.
        let swizzle = if generation >= 11 { high >> 30 } else { high >> 31 };
        let bounds = match words[3] >> 28 & 3 {
            _ if !modern && stride == 0 => Bounds::Bytes,
            _ if !modern => Bounds::Index,
            0 => Bounds::Structured,
            1 => Bounds::Index,
            2 => Bounds::Empty,
            _ if swizzle != 0 && stride != 0 => Bounds::Structured,
            _ => Bounds::Bytes,
        };
        Descriptor {
            base: u64::from(words[0]) | u64::from(high & 0xffff) << 32,
            // With ADD_TID_ENABLE the data format field extends the stride.
            stride: if add_lane && !modern { stride | u64::from(words[3] >> 15 & 0xf) << 14 } else { stride },
            swizzle: swizzle != 0,
            element: if swizzle == 3 { 16 } else { 4 },
            records: u64::from(words[2]),
            index_stride: 8 << (words[3] >> 21 & 3),
            add_lane,
            bounds,
        }
    }

    /// The offset from the base, or none out of range.
    fn offset(&self, index: u64, offset: u64, size: u64) -> Option<u64> {
        let linear = index.checked_mul(self.stride)?.checked_add(offset)?;
        let inside = match self.bounds {
            Bounds::Structured => index < self.records && (self.stride == 0 || offset + size <= self.stride),
            Bounds::Index if self.swizzle => self.stride == 0 || (index < self.records && offset < self.stride),
            Bounds::Index => index < self.records,
            Bounds::Empty => self.records != 0,
            Bounds::Bytes if self.swizzle => true,
            Bounds::Bytes => linear.checked_add(size)? <= self.records,
        };
        if !inside {
            return None;
        }
        if !self.swizzle {
            return Some(linear);
        }
        let (index_high, index_low) = (index / self.index_stride, index % self.index_stride);
        let (offset_high, offset_low) = (offset / self.element, offset % self.element);
        Some((index_high * self.stride + offset_high * self.element) * self.index_stride + index_low * self.element + offset_low)
    }
}

/// Where the lanes of a buffer instruction go.
pub(super) fn places(core: &mut Core, op: &Op) -> Step<[Place; LANES]> {
    places_of(core, op, u64::from(op.inst.variant.memory_bytes).max(1))
}

/// [`places`] for accesses of so many bytes.
pub(super) fn places_of(core: &mut Core, op: &Op, size: u64) -> Step<[Place; LANES]> {
    let modifiers = op.inst.modifiers;
    let Some(resource) = op.inst.operand(Role::Srsrc).and_then(Operand::reg) else {
        return undefined("a buffer instruction without descriptor");
    };
    let mut words = [0; 4];
    for (n, word) in words.iter_mut().enumerate() {
        *word = core.scalar(op, resource.first + n as u16)?;
    }
    let descriptor = Descriptor::new(words, core.launch.target.generation());
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
    let mut places = [Place::Nowhere; LANES];
    let exec = core.wave.exec();
    // A scratch descriptor: interleaved by lane. Its accesses stay in the wave's own scratch.
    let in_scratch = descriptor.swizzle && descriptor.add_lane && descriptor.stride == 0;
    if in_scratch && !modifiers.idxen && exec != 0 {
        let [first, last] = [exec.trailing_zeros() as usize, LANES - 1 - exec.leading_zeros() as usize];
        let offset = offsets[first] + u64::from(modifiers.offset as u32);
        let is_same = !modifiers.offen || active(exec).all(|lane| offsets[lane] == offsets[first]);
        // With the lane as its index, dwords of a lane are as far behind those of the first as where its scratch begins, and if the last index is in range, all are.
        let in_order = is_same && descriptor.element == 4 && (last as u64) < descriptor.index_stride;
        if in_order && let [Some(of_first), Some(_)] = [first, last].map(|lane| descriptor.offset(lane as u64, offset, size)) {
            let place = Place::Scratch(scratch_offset_of(core, descriptor.base + soffset + of_first, first)?);
            active(exec).for_each(|lane| places[lane] = place);
            return Ok(places);
        }
    }
    for lane in active(exec) {
        let index = indices[lane] + if descriptor.add_lane { lane as u64 } else { 0 };
        let offset = offsets[lane] + u64::from(modifiers.offset as u32);
        if in_scratch {
            let address = descriptor.base + soffset + descriptor.offset(index, offset, size).unwrap_or(0);
            places[lane] = Place::Scratch(scratch_offset_of(core, address, lane)?);
        } else if let Some(offset) = descriptor.offset(index, offset, size) {
            places[lane] = Place::Global(descriptor.base + soffset + offset);
        }
    }
    Ok(places)
}
