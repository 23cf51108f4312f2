//! Image instructions without a sampler: loads, stores, atomics and the size of an image; and what an image descriptor
//! says.
//!
//! Known are linear images with one mip level of the formats of typed buffers. What a descriptor or an instruction asks
//! for beyond that is refused by a fault that names it.

use wavetap_amdgpu::{Flags, ImageField, Opcode, Operand, Reg, Role, Value};

use super::typed::{Format, Number};
use super::vmem::{buffer_store, count, issue_load, read_place, write_place};
use super::{atomic, sampler};
use crate::address::place::LanePlace;
use crate::address::range::ANYWHERE;
use crate::fault::stop::{ExecResult, at_lane, undefined};
use crate::fault::{FaultKind, MemoryAccess};
use crate::float::{Round, from_f16, to_f16};
use crate::lanes::{LANES, active};
use crate::op::sampling;
use crate::op::semantics::Semantics;
use crate::shadow::in_flight::OperationKind;
use crate::shadow::races::How;
use crate::state::core::Core;
use crate::state::op::{Meaning, Op};
use crate::strict::store_order::{self, order};
use crate::strict::undefined::require_defined_address;

/// The dimensions of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImageKind {
    D1,
    D2,
    D3,
    D1Array,
    D2Array,
}

impl ImageKind {
    /// By the number in a descriptor, and that of the field `dim` of instructions.
    const ALL: [(u64, u8, ImageKind); 5] = [
        (8, 0, ImageKind::D1),
        (9, 1, ImageKind::D2),
        (10, 2, ImageKind::D3),
        (12, 4, ImageKind::D1Array),
        (13, 5, ImageKind::D2Array),
    ];

    /// Axes along which there are texels.
    pub(crate) fn axes(self) -> usize {
        match self {
            ImageKind::D1 | ImageKind::D1Array => 1,
            ImageKind::D2 | ImageKind::D2Array => 2,
            ImageKind::D3 => 3,
        }
    }

    pub(crate) fn is_array(self) -> bool {
        matches!(self, ImageKind::D1Array | ImageKind::D2Array)
    }
}

/// An image as its descriptor has it.
pub(crate) struct Image {
    base: u64,
    pub format: Format,
    /// By component of a result: 0, 1, or (from 4 on) a component of memory.
    select: [u64; 4],
    pub kind: ImageKind,
    /// Width, height, and depth or number of slices; 1 where it has no such side.
    pub size: [i64; 3],
    first_slice: u64,
    /// Bytes from row to row and from slice to slice.
    row: u64,
    slice: u64,
}

/// The name of a kind of images, for messages.
fn kind_of(number: u64) -> ExecResult<ImageKind> {
    let found = ImageKind::ALL.iter().find(|(known, ..)| *known == number);
    found.map_or_else(
        || undefined(format!("an image of type {number}: not 1D, 2D, 3D or an array of 1D or 2D")),
        |(.., kind)| Ok(*kind),
    )
}

impl Image {
    /// What the descriptor of an instruction says.
    pub(crate) fn of(core: &mut Core, op: &Op) -> ExecResult<Image> {
        let modifiers = op.inst.modifiers;
        let target = core.launch.target;
        let Some(layout) = target.image_descriptors() else { return undefined("an image of a target that has none") };
        if modifiers.tfe || modifiers.lwe {
            return undefined("the status of a partly resident image (tfe, lwe)");
        }
        if modifiers.d16 {
            return undefined("16-bit data of an image (d16): how they are rounded is not documented");
        }
        if modifiers.r128 || (modifiers.a16 && target.generation() < 10) {
            return undefined("a short image descriptor (r128), or 16-bit addresses of gfx9");
        }
        let Some(resource) = op.inst.operand(Role::Srsrc).and_then(Operand::reg) else {
            return undefined("an image instruction without descriptor");
        };
        let mut words = [0; 8];
        for (n, word) in words.iter_mut().enumerate() {
            *word = core.scalar(op, resource.first + n as u16)?;
        }
        if let Some(bit) = layout.unknown_of_resource(&words) {
            return undefined(format!(
                "an image descriptor whose bit {bit} is set: known are linear images of one mip level, without \
                    compression"
            ));
        }
        let field = |field| layout.resource(&words, field);
        let value = |of| field(of).unwrap_or(0);
        let mode = value(ImageField::Layout);
        if mode != u64::from(layout.linear) {
            return undefined(format!(
                "an image with swizzle or tiling mode {mode}: known is the linear one, {}",
                layout.linear
            ));
        }
        let number = value(ImageField::Format);
        let Some(format) = Format::of_image(target, number) else {
            return undefined(format!("image format {}", Format::name_of_image(target, number)));
        };
        let kind = kind_of(value(ImageField::Kind))?;
        check_dimension(op, kind)?;
        let (width, height, depth) =
            (value(ImageField::Width) + 1, value(ImageField::Height) + 1, value(ImageField::Depth));
        let height = if kind.axes() == 1 { 1 } else { height };
        let last = field(ImageField::LastSlice).unwrap_or(depth);
        let first_slice = if kind.is_array() { value(ImageField::FirstSlice) } else { 0 };
        let slices = match kind {
            ImageKind::D3 => depth + 1,
            _ if kind.is_array() && last < first_slice => {
                return undefined("an array of images whose last slice is before the first");
            }
            _ if kind.is_array() => last - first_slice + 1,
            _ => 1,
        };
        let bytes = format.bytes() as u64;
        let sliced = kind == ImageKind::D3 || kind.is_array();
        let (row, slice) = match field(ImageField::Pitch) {
            Some(pitch) if layout.pitch_of_slices || !sliced => ((pitch + 1) * bytes, (pitch + 1) * bytes * height),
            _ => (layout.row_bytes(width, bytes), layout.slice_bytes(width, height, bytes)),
        };
        if row < width * bytes {
            return undefined(format!("an image of {width} elements in rows of {row} bytes"));
        }
        let select = value(ImageField::Select);
        Ok(Image {
            base: value(ImageField::Base) << 8,
            format,
            select: std::array::from_fn(|n| select >> (3 * n) & 7),
            kind,
            size: [width as i64, height as i64, slices as i64],
            first_slice,
            row,
            slice,
        })
    }

    /// Where a texel is; the third coordinate is depth or slice. `Nowhere` outside the image.
    pub(crate) fn place(&self, at: [i64; 3]) -> LanePlace {
        if at.iter().zip(&self.size).any(|(at, size)| !(0..*size).contains(at)) {
            return LanePlace::Nowhere;
        }
        let [x, y, z] = at.map(|at| at as u64);
        LanePlace::Global(
            self.base + (z + self.first_slice) * self.slice + y * self.row + x * self.format.bytes() as u64,
        )
    }

    /// A component of a result, from the components of memory.
    pub(crate) fn selected(&self, component: usize, memory: &[u32; 4]) -> ExecResult<u32> {
        match self.select[component] {
            0 => Ok(0),
            1 => Ok(self.format.absent(3)),
            from @ 4..=7 => Ok(memory[from as usize - 4]),
            other => undefined(format!("an image descriptor that selects {other}")),
        }
    }

    /// The components of memory that an element has.
    pub(crate) fn components(&self, element: u128) -> ExecResult<[u32; 4]> {
        let mut values = [0; 4];
        for (n, value) in values.iter_mut().enumerate() {
            *value = if n < self.format.widths.len() {
                let Some(value) = self.format.load(element, n) else { return undefined("a component of an image") };
                value
            } else {
                self.format.absent(n)
            };
        }
        Ok(values)
    }

    /// Reads a texel.
    pub(crate) fn read(&self, core: &mut Core, lane: usize, place: LanePlace) -> ExecResult<[u32; 4]> {
        let mut bytes = [0; 16];
        at_lane(read_place(core, lane, place, &mut bytes[..self.format.bytes()], MemoryAccess::Load), lane)?;
        self.components(u128::from_le_bytes(bytes))
    }

    /// Whether a result has a constant 1 among some components.
    fn has_one(&self, mask: usize) -> bool {
        (0..4).any(|n| mask >> n & 1 != 0 && self.select[n] == 1)
    }
}

/// The instruction must be for the image's dimension.
fn check_dimension(op: &Op, kind: ImageKind) -> ExecResult {
    let fits = match op.inst.variant.image.and_then(|image| image.address) {
        Some(_) => ImageKind::ALL.iter().any(|(_, dim, other)| (*dim, *other) == (op.inst.modifiers.dim, kind)),
        None => op.inst.modifiers.da == kind.is_array(),
    };
    if fits { Ok(()) } else { undefined(format!("an instruction of another dimension for an image that is {kind:?}")) }
}

/// The first so many registers of an address.
pub(crate) fn address(core: &mut Core, op: &Op, wanted: usize) -> ExecResult<Vec<[u32; LANES]>> {
    let mut registers = Vec::new();
    for operand in op.inst.operands.iter().filter(|operand| operand.role.is_address()) {
        if let Value::Reg(reg) = operand.value {
            registers.extend((reg.first..reg.first + u16::from(reg.dwords)).map(|register| (reg.file, register)));
        }
    }
    if registers.len() < wanted {
        return undefined("an image address with fewer registers than the image has coordinates");
    }
    let mut values = Vec::new();
    for (file, register) in registers.into_iter().take(wanted) {
        core.reading(op, file, register, 1)?;
        if core.launch.strict {
            require_defined_address(core, file, register)?;
        }
        values.push(core.file(file)[usize::from(register)].0);
    }
    Ok(values)
}

/// So many values after the first registers of an address: 32 bits each, or 16.
pub(crate) fn values(core: &mut Core, op: &Op, before: usize, wanted: usize) -> ExecResult<Vec<[u32; LANES]>> {
    if !op.inst.modifiers.a16 {
        let mut all = address(core, op, before + wanted)?;
        all.drain(..before);
        return Ok(all);
    }
    let pairs = address(core, op, before + wanted.div_ceil(2))?;
    let half = |n: usize| pairs[before + n / 2].map(|pair| pair >> (16 * (n % 2)) & 0xffff);
    Ok((0..wanted).map(half).collect())
}

/// Where the lanes of an instruction with whole coordinates go. `mip`: a mip level follows, which must be the first.
fn places(core: &mut Core, op: &Op, image: &Image, mip: bool) -> ExecResult<[LanePlace; LANES]> {
    let count = image.kind.axes() + usize::from(image.kind.is_array());
    let coordinates = values(core, op, 0, count + usize::from(mip))?;
    let mut places = [LanePlace::Nowhere; LANES];
    for lane in active(core.wave.exec()) {
        if mip && coordinates[count][lane] != 0 {
            return undefined(format!("mip level {} of an image that has one", coordinates[count][lane]));
        }
        places[lane] = image.place(position(image.kind, |n| i64::from(coordinates[n][lane])));
    }
    Ok(places)
}

/// A position with the slice of an array last.
pub(crate) fn position(kind: ImageKind, coordinate: impl Fn(usize) -> i64) -> [i64; 3] {
    match kind {
        ImageKind::D1 => [coordinate(0), 0, 0],
        ImageKind::D2 => [coordinate(0), coordinate(1), 0],
        ImageKind::D1Array => [coordinate(0), 0, coordinate(1)],
        ImageKind::D3 | ImageKind::D2Array => [coordinate(0), coordinate(1), coordinate(2)],
    }
}

fn is_mip(op: &Op) -> bool {
    matches!(op.inst.opcode(), Opcode::IMAGE_LOAD_MIP | Opcode::IMAGE_STORE_MIP)
}

/// The components that an instruction names.
pub(crate) fn mask(op: &Op) -> ExecResult<usize> {
    match op.imm(Role::Dmask) {
        0 => undefined("an image instruction without components"),
        mask => Ok(mask as usize & 15),
    }
}

pub(crate) fn data(op: &Op) -> ExecResult<Reg> {
    match op.inst.operand(Role::Vdata).and_then(Operand::reg) {
        Some(reg) => Ok(reg),
        None => undefined("an image instruction without data"),
    }
}

/// The numbers of the bits that are set.
pub(crate) fn bits(mask: usize) -> impl Iterator<Item = usize> {
    (0..4).filter(move |n| mask >> n & 1 != 0)
}

fn load(core: &mut Core, op: &Op) -> ExecResult {
    let image = Image::of(core, op)?;
    let places = places(core, op, &image, is_mip(op))?;
    let (mask, dst) = (mask(op)?, data(op)?);
    order(core, op, true, ANYWHERE)?;
    let words = mask.count_ones() as u16;
    core.writing(op, dst.file, dst.first, words)?;
    let exec = core.wave.exec();
    count(core, &places, exec, image.format.bytes());
    for lane in active(exec) {
        let outside = places[lane] == LanePlace::Nowhere;
        if outside && image.has_one(mask) {
            return undefined("a component that is always 1, loaded from outside an image");
        }
        let memory = if outside { [0; 4] } else { image.read(core, lane, places[lane])? };
        for (register, component) in (usize::from(dst.first)..).zip(bits(mask)) {
            let value = image.selected(component, &memory)?;
            core.file(dst.file)[register][lane] = value;
        }
    }
    issue_load(core, op, (dst.file, dst.first, words));
    Ok(())
}

/// A component as memory has it; an error says why that is not known.
fn stored(number: Number, width: u32, value: u32) -> Result<u64, &'static str> {
    let most = ((1_u64 << width) - 1) as u32;
    let float = f32::from_bits(value);
    // Rounding to the nearest is only sure away from the middle.
    let scaled = |float: f64| {
        let nearest = float.round();
        if (float - nearest).abs() > 0.45 {
            Err("a value in the middle between two that the format has")
        } else {
            Ok(nearest as i64)
        }
    };
    match number {
        _ if width == 32 && matches!(number, Number::Uint | Number::Sint | Number::Float) => Ok(value.into()),
        Number::Uint if value <= most => Ok(value.into()),
        Number::Sint if (value as i32) << (32 - width) >> (32 - width) == value as i32 => Ok((value & most).into()),
        Number::Uint | Number::Sint => Err("a number that the format does not have"),
        Number::Float if width == 16 => {
            let half = to_f16(f64::from(float), Round::Nearest);
            if from_f16(half).to_bits() == f64::from(float).to_bits() {
                Ok(half.into())
            } else {
                Err("a float that 16 bits do not have")
            }
        }
        Number::Unorm if !float.is_nan() => {
            scaled(f64::from(float).clamp(0.0, 1.0) * f64::from(most)).map(|found| found as u64)
        }
        Number::Snorm if !float.is_nan() => {
            let most = f64::from(most >> 1);
            scaled(f64::from(float).clamp(-1.0, 1.0) * most).map(|found| found as u64 & ((1 << width) - 1))
        }
        _ => Err("such numbers"),
    }
}

/// An element as memory has it.
fn element(core: &mut Core, image: &Image, src: Reg, lane: usize) -> ExecResult<u128> {
    let mut element = 0;
    let mut shift = 0;
    for n in 0..image.format.widths.len() {
        let width = image.format.widths[n];
        let value = core.file(src.file)[usize::from(src.first) + n][lane];
        match stored(image.format.number, width, value) {
            Ok(bits) => element |= u128::from(bits) << shift,
            Err(why) => {
                return at_lane(Err(FaultKind::Undefined { what: format!("a store to an image: {why}").into() }), lane);
            }
        }
        shift += width;
    }
    Ok(element)
}

fn store(core: &mut Core, op: &Op) -> ExecResult {
    let image = Image::of(core, op)?;
    let places = places(core, op, &image, is_mip(op))?;
    let (mask, src) = (mask(op)?, data(op)?);
    let components = image.format.widths.len();
    if mask & ((1 << components) - 1) != (1 << components) - 1
        || (0..components).any(|n| image.select[n] != 4 + n as u64)
    {
        return undefined("a store to an image of only some of its components, or in another order");
    }
    core.reading(op, src.file, src.first, components as u16)?;
    order(core, op, false, ANYWHERE)?;
    let (exec, size) = (core.wave.exec(), image.format.bytes());
    count(core, &places, exec, size);
    let id = if core.launch.strict { core.wave.in_flight.issue(op, OperationKind::Vmem, &[]) } else { 0 };
    for lane in active(exec) {
        if places[lane] == LanePlace::Nowhere {
            continue;
        }
        let bytes = element(core, &image, src, lane)?.to_le_bytes();
        match places[lane] {
            LanePlace::Global(address) if core.launch.strict => {
                if core.of_lane(core.memory.check_store(address, size), lane)?.is_some() {
                    buffer_store(core, (lane, id), address, &bytes[..size]);
                }
            }
            place => at_lane(write_place(core, lane, place, &bytes[..size], MemoryAccess::Store), lane)?,
        }
    }
    store_order::after_store(core)
}

/// Whether an atomic returns the old value.
fn returns(core: &Core, op: &Op) -> bool {
    // On gfx12 the lowest bit of the temporal hint.
    if core.launch.target.has_cache_scope() { op.inst.modifiers.th & 1 != 0 } else { op.inst.modifiers.glc }
}

fn run_atomic(core: &mut Core, op: &Op) -> ExecResult {
    let Semantics::Atomic { f, compare, .. } = op.semantics else { return undefined("meaning") };
    let image = Image::of(core, op)?;
    let places = places(core, op, &image, false)?;
    let data = data(op)?;
    let size = image.format.bytes();
    let words = if compare { mask(op)?.count_ones() / 2 } else { mask(op)?.count_ones() } as u16;
    if size != 4 * usize::from(words) || words != 1 || image.format.widths.len() != 1 {
        return undefined(format!(
            "an atomic of {words} dwords on elements of {size} bytes: known are those of one component of 32 bits"
        ));
    }
    core.reading(op, data.file, data.first, if compare { 2 } else { 1 })?;
    order(core, op, true, ANYWHERE)?;
    let returns = returns(core, op);
    if returns {
        core.writing(op, data.file, data.first, 1)?;
    }
    let exec = core.wave.exec();
    count(core, &places, exec, 2 * size);
    for lane in active(exec) {
        let word = |core: &mut Core, n: u16| u64::from(core.file(data.file)[usize::from(data.first + n)][lane]);
        let (value, comparison) = (word(core, 0), if compare { word(core, 1) } else { 0 });
        let old = match places[lane] {
            LanePlace::Global(address) => {
                core.note_global(lane, address, size, How::Atomic);
                let updated = core.memory.update(address, size, |old| f(old, value, comparison));
                core.of_lane(updated, lane)?.unwrap_or_default()
            }
            _ => 0,
        };
        if returns {
            core.file(data.file)[usize::from(data.first)][lane] = old as u32;
        }
    }
    if core.launch.strict {
        let written = (data.file, data.first, u16::from(returns && exec != 0));
        core.wave.in_flight.issue(op, OperationKind::Vmem, &[written]);
    }
    Ok(())
}

/// Width, height, depth or slices, and mip levels.
fn size(core: &mut Core, op: &Op) -> ExecResult {
    let image = Image::of(core, op)?;
    let level = address(core, op, 1)?;
    let (mask, dst) = (mask(op)?, data(op)?);
    let known = match image.kind {
        ImageKind::D1 => 0b1001,
        ImageKind::D2 => 0b1011,
        ImageKind::D3 | ImageKind::D2Array => 0b1111,
        ImageKind::D1Array => return undefined("the size of an array of one-dimensional images"),
    };
    if mask & !known != 0 {
        return undefined("a side that the image does not have");
    }
    let words = mask.count_ones() as u16;
    core.writing(op, dst.file, dst.first, words)?;
    let sizes = [image.size[0], image.size[1], image.size[2], 1];
    for lane in active(core.wave.exec()) {
        if level[0][lane] != 0 {
            return undefined(format!("the size of mip level {} of an image that has one", level[0][lane]));
        }
        for (register, component) in (usize::from(dst.first)..).zip(bits(mask)) {
            core.file(dst.file)[register][lane] = sizes[component] as u32;
        }
    }
    issue_load(core, op, (dst.file, dst.first, words));
    Ok(())
}

/// The addresses that an image instruction which is about to run will read or write, and the bytes at each.
pub(crate) fn accesses(core: &mut Core, op: &Op) -> ExecResult<(Vec<u64>, u64)> {
    let opcode = op.inst.opcode();
    let image = Image::of(core, op)?;
    let size = image.format.bytes() as u64;
    let places = match () {
        () if opcode == Opcode::IMAGE_GET_RESINFO => Vec::new(),
        () if sampling::is_sampling(opcode) => sampler::texels(core, op, &image)?,
        () => {
            let exec = core.wave.exec();
            let places = places(core, op, &image, is_mip(op))?;
            active(exec).map(|lane| places[lane]).collect()
        }
    };
    let addresses = places
        .into_iter()
        .filter_map(|place| if let LanePlace::Global(address) = place { Some(address) } else { None });
    Ok((addresses.collect(), size))
}

/// The meaning of an image instruction.
pub(crate) fn meaning(opcode: Opcode, flags: Flags) -> Option<Meaning> {
    match opcode {
        Opcode::IMAGE_LOAD | Opcode::IMAGE_LOAD_MIP => return Some((load, Semantics::Own)),
        Opcode::IMAGE_STORE | Opcode::IMAGE_STORE_MIP => return Some((store, Semantics::Own)),
        Opcode::IMAGE_GET_RESINFO => return Some((size, Semantics::Own)),
        _ => {}
    }
    if opcode.atomic().is_some() {
        let found = atomic::of(opcode).filter(|found| found.bytes == 4 && flags.contains(Flags::ATOMIC))?;
        return Some((
            run_atomic,
            Semantics::Atomic { f: found.f, bytes: found.bytes, compare: found.compare, returns: true },
        ));
    }
    sampler::meaning(opcode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_memory_has_them() {
        let float = |number, width, value: f32| stored(number, width, value.to_bits());
        assert_eq!(stored(Number::Uint, 8, 255), Ok(255));
        assert!(stored(Number::Uint, 8, 256).is_err() && stored(Number::Sint, 8, 128).is_err());
        assert_eq!(stored(Number::Sint, 8, -128_i32 as u32), Ok(0x80));
        assert_eq!(
            (float(Number::Unorm, 8, 2.0), float(Number::Unorm, 8, 0.2), float(Number::Unorm, 16, -1.0)),
            (Ok(255), Ok(51), Ok(0))
        );
        assert!(float(Number::Unorm, 8, 0.5).is_err(), "127.5");
        assert_eq!((float(Number::Snorm, 8, -1.0), float(Number::Snorm, 16, 1.0)), (Ok(0x81), Ok(0x7fff)));
        assert_eq!((float(Number::Float, 16, 1.5), float(Number::Float, 16, 0.1).is_err()), (Ok(0x3e00), true));
    }
}
