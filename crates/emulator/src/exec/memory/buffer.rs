//! Buffer addressing: the resource descriptor (V#).

use wavetap_amdgpu::{Operand, Role, Target};

use crate::address::place::LanePlace;
use crate::fault::stop::{ExecResult, undefined};
use crate::lanes::{LANES, active};
use crate::op::semantics::{Semantics, Source, Ty};
use crate::state::core::Core;
use crate::state::op::Op;

/// Which bytes of a buffer are in range. `docs/reference/buffer-bounds.md` has the rules of all targets, and where they
/// are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bounds {
    /// The index, or the end of the dword in the element.
    Structured,
    /// The index.
    Index,
    /// All but of an empty buffer.
    NotEmpty,
    /// The end of the dword in a buffer of bytes, the scalar offset included and the element's place not.
    Bytes,
    /// The end of the dword in a buffer of bytes, all that is added to the base included.
    AllBytes,
    /// [`Bounds::AllBytes`], and the end of the dword in the element.
    AllBytesAndElement,
    /// Everything: scratch, which has bounds of its own.
    Unchecked,
}

/// What an instruction adds to the base of a buffer.
#[derive(Debug, Clone, Copy)]
struct Offsets {
    index: u64,
    /// The register's and the instruction's, 32 bits together.
    vector: u64,
    scalar: u64,
}

/// The bytes that a lane accesses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub bytes: u64,
    /// All of them are in range or none is: formats and atomics. Of others each dword is by itself.
    pub whole: bool,
    /// Whether their format is that of the descriptor or of the instruction.
    pub format: bool,
}

/// A buffer resource descriptor (AMD ISA guides, "Buffer resource descriptor").
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
    generation: u32,
}

/// Base, length and stride of a buffer by its descriptor, as scalar memory needs them, too.
pub(crate) fn extent_of(target: Target, words: [u32; 4]) -> (u64, u64, u64) {
    let [low, high, length, last] = words.map(u64::from);
    if target.has_wide_buffers() {
        // 57 bits of base, 45 of length, a stride in units of 1, 4, 8 or 32 bytes (LLVM's lowering of
        // `llvm.amdgcn.make.buffer.rsrc`, gfx1250).
        let stride = (last >> 12 & 0x3fff) * [1, 4, 8, 32][(last >> 26 & 3) as usize];
        return (low | (high & 0x1ff_ffff) << 32, high >> 25 | length << 7 | (last & 0x3f) << 39, stride);
    }
    (low | (high & 0xffff) << 32, length, high >> 16 & 0x3fff)
}

impl Descriptor {
    fn new(words: [u32; 4], target: Target, has_index: bool, format: bool) -> ExecResult<Self> {
        let (base, records, stride) = extent_of(target, words);
        let generation = target.generation();
        let (high, last) = (words[1], words[3]);
        if target.has_wide_buffers() {
            if last >> 28 & 1 != 0 || format {
                return undefined("a swizzled or typed buffer of gfx125x");
            }
            let bounds = if last >> 29 & 1 != 0 { Bounds::AllBytesAndElement } else { Bounds::AllBytes };
            return Ok(Descriptor {
                base,
                stride,
                swizzle: false,
                element: 4,
                records,
                index_stride: 8,
                add_lane: false,
                bounds,
                generation,
            });
        }
        let add_lane = last >> 23 & 1 != 0;
        // A field of two bits from gfx11 on: 1 is for elements of 4 bytes, 3 of 16.
        let swizzle = if generation >= 11 { high >> 30 } else { high >> 31 };
        let bounds = match last >> 28 & 3 {
            _ if generation < 10 && add_lane && !has_index => Bounds::Unchecked,
            _ if generation == 8 && swizzle != 0 && stride != 0 => Bounds::Index,
            _ if generation == 8 => Bounds::AllBytes,
            _ if generation < 10 && has_index && stride != 0 => Bounds::Index,
            _ if generation < 10 => Bounds::Bytes,
            0 => Bounds::Structured,
            1 => Bounds::Index,
            2 => Bounds::NotEmpty,
            _ if swizzle != 0 && stride != 0 => Bounds::Structured,
            _ => Bounds::Bytes,
        };
        // With ADD_TID_ENABLE the data format field extends the stride.
        let extended = add_lane && generation < 10 && !format;
        Ok(Descriptor {
            base,
            stride: if extended { stride | u64::from(last >> 15 & 0xf) << 14 } else { stride },
            swizzle: swizzle != 0,
            element: if swizzle == 3 { 16 } else { 4 },
            records,
            index_stride: 8 << (last >> 21 & 3),
            add_lane,
            bounds,
            generation,
        })
    }

    /// Whether this is a wave's scratch: interleaved by lane.
    fn is_scratch(&self) -> bool {
        self.swizzle && self.add_lane && self.stride == 0
    }

    /// Where documents and measurements differ, or say nothing.
    fn check(&self, has_index: bool, bytes: u64, scalar: u64) -> ExecResult {
        let what = match () {
            () if self.add_lane && has_index && (self.generation >= 10 || !self.swizzle) => {
                "a buffer that adds the lane to an index that is given"
            }
            () if !self.swizzle => return Ok(()),
            () if self.generation == 9 && !self.add_lane => "a swizzled buffer that does not add the lane",
            () if bytes > self.element => "an access of a swizzled buffer that is wider than what stays together",
            () if self.generation >= 12 && scalar != 0 => "a scalar offset in a swizzled buffer",
            () => return Ok(()),
        };
        undefined(what)
    }

    /// How many bytes from the first one on are in range.
    fn room(&self, at: Offsets) -> u64 {
        let all = |inside: bool| if inside { u64::MAX } else { 0 };
        let element = self.stride * at.index;
        match self.bounds {
            Bounds::Structured if at.index < self.records => self.stride.saturating_sub(at.vector),
            Bounds::Structured => 0,
            Bounds::Index => all(at.index < self.records),
            Bounds::NotEmpty => all(self.records != 0),
            Bounds::Bytes => self.records.saturating_sub(at.vector + at.scalar),
            Bounds::AllBytes => self.records.saturating_sub(element + at.vector + at.scalar),
            Bounds::AllBytesAndElement => self
                .records
                .saturating_sub(element + at.vector + at.scalar)
                .min(self.stride.saturating_sub(at.vector + at.scalar)),
            Bounds::Unchecked => u64::MAX,
        }
    }

    /// Where a lane's bytes are.
    fn place(&self, at: Offsets, extent: Extent) -> ExecResult<LanePlace> {
        let room = self.room(at);
        let inside = match extent {
            Extent { bytes, .. } if room >= bytes => bytes,
            // There, documents have the first byte decide, and nothing says what comes of the others.
            _ if self.generation == 8 && !room.is_multiple_of(4) => {
                return undefined("a dword across the end of a buffer on gfx8");
            }
            Extent { whole: true, .. } => 0,
            Extent { .. } => room / 4 * 4,
        };
        if inside == 0 {
            return Ok(LanePlace::Nowhere);
        }
        if self.bounds == Bounds::Bytes && self.generation >= 10 && !self.swizzle && at.index * self.stride != 0 {
            return undefined("an index into a raw buffer with a stride");
        }
        let address = self.base + self.offset(at.index, at.vector) + at.scalar;
        Ok(if inside == extent.bytes { LanePlace::Global(address) } else { LanePlace::Head(address, inside as u8) })
    }

    /// The offset from the base.
    fn offset(&self, index: u64, offset: u64) -> u64 {
        if !self.swizzle {
            return index * self.stride + offset;
        }
        let (index_high, index_low) = (index / self.index_stride, index % self.index_stride);
        let (offset_high, offset_low) = (offset / self.element, offset % self.element);
        (index_high * self.stride + offset_high * self.element) * self.index_stride
            + index_low * self.element
            + offset_low
    }
}

/// Where the lanes of a buffer instruction go.
pub(crate) fn places(core: &mut Core, op: &Op) -> ExecResult<[LanePlace; LANES]> {
    let (bytes, whole) = match op.semantics {
        Semantics::Load { bytes, .. } | Semantics::Store { bytes, .. } => (bytes, false),
        Semantics::Atomic { bytes, .. } => (bytes, true),
        _ => (op.inst.variant.memory_bytes.max(1), false),
    };
    places_of(core, op, Extent { bytes: bytes.into(), whole, format: false })
}

/// [`places`] for accesses of so many bytes.
pub(crate) fn places_of(core: &mut Core, op: &Op, extent: Extent) -> ExecResult<[LanePlace; LANES]> {
    let modifiers = op.inst.modifiers;
    let Some(resource) = op.inst.operand(Role::Srsrc).and_then(Operand::reg) else {
        return undefined("a buffer instruction without descriptor");
    };
    let mut words = [0; 4];
    for (n, word) in words.iter_mut().enumerate() {
        *word = core.scalar(op, resource.first + n as u16)?;
    }
    let descriptor = Descriptor::new(words, core.launch.target, modifiers.idxen, extent.format)?;
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
    let mut places = [LanePlace::Nowhere; LANES];
    let exec = core.wave.exec();
    // The sum of these two has 32 bits.
    let vector = |lane: usize| u64::from((offsets[lane] as u32).wrapping_add(modifiers.offset as u32));
    // Accesses of scratch stay in the wave's own.
    let in_scratch = descriptor.is_scratch();
    if in_scratch && !modifiers.idxen && exec != 0 {
        let [first, last] = [exec.trailing_zeros() as usize, LANES - 1 - exec.leading_zeros() as usize];
        let is_same = !modifiers.offen || active(exec).all(|lane| offsets[lane] == offsets[first]);
        // With the lane as its index, dwords of a lane are as far from those of the first as where its scratch begins.
        if is_same && descriptor.element == 4 && (last as u64) < descriptor.index_stride {
            let address = descriptor.base + soffset + descriptor.offset(first as u64, vector(first));
            let place = LanePlace::Scratch(scratch_offset_of(core, address, first));
            active(exec).for_each(|lane| places[lane] = place);
            return Ok(places);
        }
    }
    if !in_scratch {
        descriptor.check(modifiers.idxen, extent.bytes, soffset)?;
    }
    for lane in active(exec) {
        let index = indices[lane] + if descriptor.add_lane { lane as u64 } else { 0 };
        places[lane] = if in_scratch {
            LanePlace::Scratch(scratch_offset_of(
                core,
                descriptor.base + soffset + descriptor.offset(index, vector(lane)),
                lane,
            ))
        } else {
            descriptor.place(Offsets { index, vector: vector(lane), scalar: soffset }, extent)?
        };
    }
    Ok(places)
}

/// The offset in a lane's scratch of a device address. What is outside of it is so for every access: a wrong scratch
/// descriptor would reach another wave's scratch.
fn scratch_offset_of(core: &Core, address: u64, lane: usize) -> i64 {
    let distance = address.wrapping_sub(core.wave.scratch + 4 * lane as u64) as i64;
    distance.div_euclid(4 * core.launch.lanes as i64) * 4 + distance.rem_euclid(4)
}
