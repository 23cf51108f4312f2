//! Addresses through a buffer descriptor: plain ones, without a swizzle. `docs/reference/buffer-bounds.md` has the
//! rules of all targets, and where they are from.

use crate::accesses::Operation;
use wavetap_amdgpu::{Inst, Target};

/// A descriptor of four dwords, as far as addresses follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Descriptor {
    base: u64,
    stride: u64,
    records: u64,
    range: Range,
}

/// The rule by which accesses of a buffer are in range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Range {
    /// Elements with a number below that of the records; of each its bytes, if the flag is set.
    Elements { each: bool },
    /// Everything, unless there are no records.
    All,
    /// As many bytes as there are records, from the base on without the element's place; with it, if the flag is set.
    Bytes { with_element: bool },
    /// That with the element's place, and of each element its bytes.
    BytesOfElements,
}

/// The memory that a descriptor describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Described {
    /// Plain memory.
    Plain(Descriptor),
    /// The private memory of lanes.
    Scratch,
}

/// What a lane adds to the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaneOffsets {
    /// The element.
    pub index: u64,
    /// The offset of the lane, with that of the instruction.
    pub offset: u32,
    /// The offset of all lanes.
    pub scalar: u32,
}

/// Where a lane goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaneAddress {
    /// To this address, with all its bytes.
    At(u64),
    /// Nowhere: it is out of range.
    Nowhere,
    /// With some of its bytes, or where documents and measurements differ.
    Unknown,
}

impl Described {
    /// What an instruction's descriptor is of; none if it is swizzled or adds the number of the lane, or if a format
    /// says how many bytes are accessed.
    pub(crate) fn of(words: [u32; 4], target: Target, inst: &Inst) -> Option<Described> {
        let [low, high, length, last] = words.map(u64::from);
        let bit = |number: u32| last >> number & 1 != 0;
        if inst.variant.memory_bytes == 0 {
            return None;
        }
        if target.has_wide_buffers() {
            let range = if bit(29) { Range::BytesOfElements } else { Range::Bytes { with_element: true } };
            let unit = [1, 4, 8, 32][(last >> 26 & 3) as usize];
            return (!bit(28)).then_some(Described::Plain(Descriptor {
                base: low | (high & 0x1ff_ffff) << u32::BITS,
                stride: (last >> 12 & 0x3fff) * unit,
                records: high >> 25 | length << 7 | (last & 0x3f) << 39,
                range,
            }));
        }
        let generation = target.generation();
        let swizzle = if generation >= 11 { high >> 30 } else { high >> 31 };
        let (stride, adds_lane) = (high >> 16 & 0x3fff, bit(23));
        match (swizzle, adds_lane) {
            (0, false) => {}
            (1.., true) if stride == 0 => return Some(Described::Scratch),
            _ => return None,
        }
        let range = match last >> 28 & 3 {
            _ if generation == 8 => Range::Bytes { with_element: true },
            _ if generation == 9 && inst.modifiers.idxen && stride != 0 => Range::Elements { each: false },
            _ if generation == 9 => Range::Bytes { with_element: false },
            0 => Range::Elements { each: true },
            1 => Range::Elements { each: false },
            2 => Range::All,
            _ => Range::Bytes { with_element: false },
        };
        let base = low | (high & 0xffff) << u32::BITS;
        Some(Described::Plain(Descriptor { base, stride, records: length, range }))
    }
}

impl Descriptor {
    /// Where a lane goes with so many bytes.
    pub(crate) fn address(&self, at: LaneOffsets, bytes: u64, target: Target, inst: &Inst) -> LaneAddress {
        let (offset, scalar) = (u64::from(at.offset), u64::from(at.scalar));
        let Some(element) = self.stride.checked_mul(at.index) else { return LaneAddress::Unknown };
        let all = |inside: bool| if inside { u64::MAX } else { 0 };
        let left = |of: u64, used: u64| of.saturating_sub(used);
        let room = match self.range {
            Range::Elements { each } if at.index < self.records => {
                if each {
                    left(self.stride, offset)
                } else {
                    u64::MAX
                }
            }
            Range::Elements { .. } => 0,
            Range::All => all(self.records != 0),
            // The guides leave out the element's place, AMD's own emulator does not.
            Range::Bytes { with_element: false } if target.generation() >= 10 && element != 0 => {
                return LaneAddress::Unknown;
            }
            Range::Bytes { with_element } => {
                left(self.records, if with_element { element } else { 0 } + offset + scalar)
            }
            Range::BytesOfElements => {
                left(self.records, element + offset + scalar).min(left(self.stride, offset + scalar))
            }
        };
        match room {
            room if room >= bytes => LaneAddress::At(self.base.wrapping_add(element + offset + scalar)),
            // Atomics are whole, and other accesses whole dwords.
            0..4 => LaneAddress::Nowhere,
            _ if bytes <= 4 || Operation::of(inst) == Some(Operation::Atomic) => LaneAddress::Nowhere,
            _ => LaneAddress::Unknown,
        }
    }
}
