//! Arguments that are made up from what the metadata says of a kernel: every pointer points to a buffer of its own,
//! with small numbers in it, which are good indices, counts and offsets; scalars are small. The emulator keeps a gap
//! around each buffer that nothing may be read from or written to.

use wavetap::code_object::{Argument, Field, Kernel, KernelMetadata, ValueKind};
use wavetap::isa::EventHazards;

use super::products::Product;
use crate::dispatch::Launch;
use crate::random::Random;

/// Bytes of a buffer.
const BUFFER: usize = 1 << 15;
/// So many pointers are at the start of a structure.
const MOST_IN_STRUCTURE: u64 = 16;
/// Wave-instructions: what is made up may loop for long.
const FUEL: u64 = 150_000;
/// Where the emulator puts the apertures: high halves of flat addresses of LDS and of scratch.
const HIGH_SHARED: u32 = 0x0001_0000;
const HIGH_PRIVATE: u32 = 0x0002_0000;

/// Why a kernel's arguments cannot be made up. What is in a structure nobody says: it is made up where `structures` may
/// be.
#[must_use]
pub fn cannot_be_made_up(kernel: &Kernel, structures: bool) -> Option<&'static str> {
    let Some(metadata) = &kernel.metadata else { return Some("no metadata") };
    if metadata.max_flat_workgroup_size == 0 {
        return Some("no size of a workgroup");
    }
    for argument in &metadata.args {
        match &argument.value_kind {
            ValueKind::ByValue if argument.size > 8 && !structures => {
                return Some("a structure by value, which may hold pointers");
            }
            ValueKind::DynamicSharedPointer
            | ValueKind::Sampler
            | ValueKind::Image
            | ValueKind::Pipe
            | ValueKind::Queue => {
                return Some("an argument that is neither a pointer to memory nor a number");
            }
            ValueKind::Other(_) => return Some("an argument of a kind that is not known"),
            _ => {}
        }
    }
    None
}

/// A dispatch of a kernel whose arguments can be made up, with one of the sets of arguments.
///
/// # Panics
/// If [`cannot_be_made_up`] says that it has no metadata.
#[must_use]
pub fn launch(kernel: &Kernel, seed: u64) -> Launch<'_> {
    let metadata = kernel.metadata.as_ref().expect("looked at before");
    let mut random = Random::new(
        seed ^ kernel.name.bytes().fold(0, |hash: u64, byte| hash.wrapping_mul(131).wrapping_add(byte.into())),
    );
    let product = Product::of(metadata, &mut random);
    let group = match product {
        // It is made for workgroups of one size.
        Some(_) => [metadata.max_flat_workgroup_size.min(1024) as u16, 1, 1],
        None => workgroup(kernel, metadata, &mut random),
    };
    let mut grid = group.map(u32::from);
    grid[0] *= product.map_or_else(|| 1 + random.below(3) as u32, |product| product.workgroups);
    // Sometimes the last workgroup is partial.
    let remainder = metadata.args.iter().any(|argument| argument.value_kind == ValueKind::HiddenRemainderX);
    if metadata.reqd_workgroup_size.is_none() && remainder && group[0] > 8 && random.chance(30) {
        grid[0] -= 5;
    }
    let dynamic = if metadata.args.iter().any(|a| a.value_kind == ValueKind::HiddenDynamicLdsSize) { 4096 } else { 0 };
    let limit = [3, 50, 1 << 11][random.below(3)];
    let pointers: u64 = metadata.args.iter().map(pointers).sum();
    let buffers = (0..pointers)
        .map(|_| (0..BUFFER / 4).flat_map(|_| ((random.bits() % limit) as u32).to_le_bytes()).collect())
        .collect();
    let scalars = random.bits();
    Launch {
        kernel: &kernel.name,
        grid,
        group,
        dynamic,
        buffers,
        arguments: Box::new(move |kernel, at| {
            let metadata = kernel.metadata.as_ref().ok_or("no metadata")?;
            Ok(kernarg(metadata, product, [grid, group.map(u32::from)], dynamic, at, &mut Random::new(scalars)))
        }),
        fuel: FUEL,
        tolerated: EventHazards::empty(),
        undefined: false,
    }
}

/// How many pointers an argument may have.
fn pointers(argument: &Argument) -> u64 {
    match argument.value_kind {
        ValueKind::GlobalBuffer => 1,
        ValueKind::ByValue if argument.size > 8 => (argument.size / 8).min(MOST_IN_STRUCTURE),
        _ => 0,
    }
}

fn workgroup(kernel: &Kernel, metadata: &KernelMetadata, random: &mut Random) -> [u16; 3] {
    if let Some(size) = metadata.reqd_workgroup_size {
        return size.map(|n| n as u16);
    }
    // A dimension that the kernel does not look at would make several work-items do the same.
    let deep = kernel.descriptor.is_set(Field::ENABLE_WORKGROUP_ID_Y) && random.chance(30);
    let shapes: &[[u16; 3]] =
        if deep { &[[16, 8, 1], [32, 4, 1], [8, 8, 1]] } else { &[[64, 1, 1], [128, 1, 1], [256, 1, 1], [100, 1, 1]] };
    let items = |shape: &[u16; 3]| shape.iter().map(|&n| u64::from(n)).product::<u64>();
    let fits: Vec<[u16; 3]> =
        shapes.iter().copied().filter(|shape| items(shape) <= metadata.max_flat_workgroup_size).collect();
    // Many kernels are made for the largest workgroup that they are bounded to.
    let largest = metadata.max_flat_workgroup_size.min(512) as u16;
    if fits.is_empty() || random.chance(50) { [largest, 1, 1] } else { fits[random.below(fits.len())] }
}

fn kernarg(
    metadata: &KernelMetadata,
    product: Option<Product>,
    [grid, group]: [[u32; 3]; 2],
    dynamic: u32,
    at: &[u64],
    random: &mut Random,
) -> Vec<u8> {
    let mut bytes = vec![0; metadata.kernarg_segment_size as usize];
    let mut buffers = at.iter();
    for argument in &metadata.args {
        let place =
            bytes.get_mut(argument.offset as usize..(argument.offset + argument.size) as usize).unwrap_or_default();
        if argument.value_kind == ValueKind::ByValue && argument.size > 8 {
            let mut members = buffers.by_ref().take(pointers(argument) as usize);
            for word in place.chunks_mut(8) {
                let pointer = members.next().filter(|_| word.len() == 8 && random.chance(50));
                let value = pointer.copied().unwrap_or_else(|| scalar(4, random) | scalar(4, random) << 32);
                word.copy_from_slice(&value.to_le_bytes()[..word.len()]);
            }
            continue;
        }
        let value: u64 = match argument.value_kind {
            ValueKind::GlobalBuffer => *buffers.next().unwrap_or(&0),
            ValueKind::ByValue => {
                let known = product.zip(argument.name.as_deref()).and_then(|(product, name)| product.argument(name));
                known.map_or_else(|| scalar(argument.size, random), u64::from)
            }
            ValueKind::HiddenBlockCountX => (grid[0] / group[0]).into(),
            ValueKind::HiddenBlockCountY => (grid[1] / group[1]).into(),
            ValueKind::HiddenBlockCountZ => (grid[2] / group[2]).into(),
            ValueKind::HiddenGroupSizeX => group[0].into(),
            ValueKind::HiddenGroupSizeY => group[1].into(),
            ValueKind::HiddenGroupSizeZ => group[2].into(),
            ValueKind::HiddenRemainderX => (grid[0] % group[0]).into(),
            ValueKind::HiddenRemainderY => (grid[1] % group[1]).into(),
            ValueKind::HiddenRemainderZ => (grid[2] % group[2]).into(),
            ValueKind::HiddenGridDims => 3,
            ValueKind::HiddenDynamicLdsSize => dynamic.into(),
            ValueKind::HiddenSharedBase => HIGH_SHARED.into(),
            ValueKind::HiddenPrivateBase => HIGH_PRIVATE.into(),
            _ => 0,
        };
        let length = place.len().min(8);
        place[..length].copy_from_slice(&value.to_le_bytes()[..length]);
    }
    bytes
}

/// A small number, as an integer or in floating point.
fn scalar(size: u64, random: &mut Random) -> u64 {
    let small = [0, 1, 2, 3, 7, 16, 32, 64, 100, 200][random.below(10)];
    match (size, random.chance(30)) {
        (4, true) => (small as f32 * 0.5).to_bits().into(),
        (8, true) => (small as f64 * 0.25).to_bits(),
        _ => small,
    }
}
