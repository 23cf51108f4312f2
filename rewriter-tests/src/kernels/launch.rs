//! One kernel on the emulator.

use wavetap::code_object::{CodeObject, Kernel, ValueKind};
use wavetap::emulator::{DispatchStats, Options};
use wavetap::isa::{self, EventHazards, Target};

use super::{Buffers, Test};
use crate::Failure;
use crate::dispatch::{self, Launch};

/// What `s_endpgm` is, on one target or the other.
const END_WORDS: [u32; 2] = [0xbf81_0000, 0xbfb0_0000];

/// The high halves of flat addresses of LDS and of scratch: what the runtime tells kernels that cannot ask the
/// hardware. They are the emulator's choice.
const HIGH_SHARED: u64 = 0x0001_0000;
const HIGH_PRIVATE: u64 = 0x0002_0000;

/// Runs a kernel of a code object; gives its output.
///
/// # Errors
/// What the loader or the emulator did not like, as text.
pub fn run(
    object: &[u8],
    target: Target,
    test: &Test,
    buffers: &Buffers,
    options: &Options,
) -> Result<(Vec<u8>, DispatchStats), Failure> {
    let launch = of_test(test, buffers, options.fuel);
    let mut ran = dispatch::run(object, target, &launch, options, None).map_err(|stopped| stopped.to_string())?;
    Ok((ran.buffers.pop().ok_or("no output")?, ran.stats))
}

/// The launch of a test kernel: its buffers are the input and the output.
#[must_use]
pub fn of_test<'a>(test: &'a Test, buffers: &Buffers, fuel: u64) -> Launch<'a> {
    Launch {
        kernel: &test.name,
        grid: test.grid,
        group: test.group,
        dynamic: test.dynamic,
        buffers: vec![buffers.input.clone(), buffers.start.clone()],
        arguments: Box::new(|kernel, at| kernarg(kernel, test, at[0], at[1])),
        fuel,
        tolerated: EventHazards::empty(),
        undefined: false,
    }
}

/// The kernel arguments as the metadata places them.
///
/// # Errors
/// If the kernel has others than a test gives.
pub fn kernarg(kernel: &Kernel, test: &Test, input: u64, output: u64) -> Result<Vec<u8>, Failure> {
    let mut pointers = [input, output].into_iter();
    let mut values = [test.grid[0].to_le_bytes().to_vec(), test.extra.clone()].into_iter();
    let sizes = LaunchSizes { grid: test.grid, group: test.group, dynamic: test.dynamic };
    kernarg_with(kernel, &sizes, |kind| match kind {
        ValueKind::GlobalBuffer => Ok(pointers.next().ok_or("more pointers than the buffers")?.to_le_bytes().to_vec()),
        _ => Ok(values.next().ok_or("more values than the test has")?),
    })
}

/// What the hidden arguments of a launch say.
#[derive(Debug, Clone, Copy)]
pub struct LaunchSizes {
    /// Work-items in x, y, z.
    pub grid: [u32; 3],
    /// Work-items of a workgroup.
    pub group: [u16; 3],
    /// Bytes of LDS that the launch adds.
    pub dynamic: u32,
}

/// The kernel arguments as the metadata places them, with these pointers and values.
///
/// # Errors
/// If the kernel has no metadata, and what `explicit` returns.
pub fn kernarg_with(
    kernel: &Kernel,
    sizes: &LaunchSizes,
    mut explicit: impl FnMut(&ValueKind) -> Result<Vec<u8>, Failure>,
) -> Result<Vec<u8>, Failure> {
    let metadata = kernel.metadata.as_ref().ok_or("no metadata")?;
    let mut bytes = vec![0; metadata.kernarg_segment_size as usize];
    let (grid, group) = (sizes.grid, sizes.group.map(u32::from));
    let axis = |n: usize, f: fn(u32, u32) -> u32| u64::from(f(grid[n], group[n])).to_le_bytes().to_vec();
    let whole: fn(u32, u32) -> u32 = |grid, group| grid / group;
    let size: fn(u32, u32) -> u32 = |_, group| group;
    let rest: fn(u32, u32) -> u32 = |grid, group| grid % group;
    for argument in &metadata.args {
        let value = match &argument.value_kind {
            kind @ (ValueKind::GlobalBuffer | ValueKind::ByValue) => explicit(kind)?,
            ValueKind::HiddenBlockCountX => axis(0, whole),
            ValueKind::HiddenBlockCountY => axis(1, whole),
            ValueKind::HiddenBlockCountZ => axis(2, whole),
            ValueKind::HiddenGroupSizeX => axis(0, size),
            ValueKind::HiddenGroupSizeY => axis(1, size),
            ValueKind::HiddenGroupSizeZ => axis(2, size),
            ValueKind::HiddenRemainderX => axis(0, rest),
            ValueKind::HiddenRemainderY => axis(1, rest),
            ValueKind::HiddenRemainderZ => axis(2, rest),
            ValueKind::HiddenGridDims => 3u64.to_le_bytes().to_vec(),
            ValueKind::HiddenDynamicLdsSize => u64::from(sizes.dynamic).to_le_bytes().to_vec(),
            ValueKind::HiddenSharedBase => HIGH_SHARED.to_le_bytes().to_vec(),
            ValueKind::HiddenPrivateBase => HIGH_PRIVATE.to_le_bytes().to_vec(),
            _ => continue,
        };
        let place = &mut bytes[argument.offset as usize..(argument.offset + argument.size) as usize];
        let length = place.len().min(value.len());
        place[..length].copy_from_slice(&value[..length]);
    }
    Ok(bytes)
}

/// The object with every kernel ending at once.
///
/// # Errors
/// If it cannot be taken apart, or the target has no known end of a program.
pub fn without_kernels(object: &[u8], target: Target) -> Result<Vec<u8>, Failure> {
    let code = CodeObject::parse(object).map_err(|e| e.to_string())?;
    let ends = |word: &u32| isa::decode(target, &word.to_le_bytes()).is_ok_and(|inst| inst.name() == "s_endpgm");
    let end = END_WORDS.into_iter().find(ends).ok_or("no end of a program is known")?;
    let mut bytes = object.to_vec();
    for kernel in code.kernels() {
        let offset = code.file_offset(kernel.entry, 4).ok_or("the kernel's entry is not in the file")? as usize;
        bytes[offset..offset + 4].copy_from_slice(&end.to_le_bytes());
    }
    Ok(bytes)
}
