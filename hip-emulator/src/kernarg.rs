//! The kernel argument segment: the launch's arguments at the places the metadata names, and the hidden ones that a
//! runtime fills in.

use wavetap::code_object::{Argument, KernelMetadata, ValueKind};
use wavetap::emulated::hidden_argument;
use wavetap::isa::Target;
use wavetap::profile::launches::LaunchShape;

use crate::raw::loaded_as_hip_5;
use crate::status::{INVALID_CONFIGURATION, INVALID_VALUE, LAUNCH_FAILURE, OUT_OF_MEMORY, Outcome};

/// What a launch asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Work-items of the grid in x, y, z.
    pub(crate) items: [u32; 3],
    /// Work-items of a workgroup in x, y, z.
    pub(crate) workgroup: [u32; 3],
    /// Bytes of LDS beside the kernel's own.
    pub(crate) dynamic_lds: u32,
}

impl Shape {
    /// As a profile has it: one dispatch.
    pub(crate) fn launched(&self) -> LaunchShape {
        LaunchShape { grid: Some(self.items), workgroup: self.workgroup, dynamic_lds: self.dynamic_lds, dispatches: 1 }
    }
}

/// What hidden arguments tell a kernel of the host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Services {
    /// Address of the buffer by which kernels ask the host for something.
    pub(crate) hostcall: u64,
    /// Address of the heap of `malloc` in kernels.
    pub(crate) heap: u64,
}

/// Segments are at least this long: a scalar load may read on to the end of the 16 bytes that its last argument lies
/// in.
const LEAST: usize = 16;

/// Puts the launch's own arguments at their places; `value` gets an argument's index and the place for its bytes.
pub(crate) fn explicit(
    kernel: &KernelMetadata,
    mut value: impl FnMut(usize, &mut [u8]) -> Outcome,
) -> Outcome<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(kernel.kernarg_segment_size).map_err(|_| INVALID_VALUE)?];
    for (index, argument) in kernel.args.iter().filter(|argument| !argument.value_kind.is_hidden()).enumerate() {
        value(index, place(&mut bytes, argument)?)?;
    }
    Ok(bytes)
}

/// Whether a kernel has a hidden argument of a kind.
pub(crate) fn has(kernel: &KernelMetadata, kind: &ValueKind) -> bool {
    kernel.args.iter().any(|argument| argument.value_kind == *kind)
}

/// Whether a kernel that can ask the host may ask for memory: with code objects before version 5, which know no heap
/// and no counts of workgroups, any may.
pub(crate) fn may_allocate(kernel: &KernelMetadata) -> bool {
    has(kernel, &ValueKind::HiddenHeapV1)
        || (has(kernel, &ValueKind::HiddenGlobalOffsetX) && !has(kernel, &ValueKind::HiddenBlockCountX))
}

/// Builds the segment from the launch's own arguments and the hidden ones.
pub(crate) fn segment(
    kernel: &KernelMetadata,
    shape: &Shape,
    arguments: &[u8],
    services: &Services,
) -> Outcome<Vec<u8>> {
    let size = usize::try_from(kernel.kernarg_segment_size).map_err(|_| INVALID_VALUE)?;
    let mut segment = vec![0; size.next_multiple_of(LEAST).max(LEAST)];
    let length = arguments.len().min(size);
    segment[..length].copy_from_slice(&arguments[..length]);
    for argument in kernel.args.iter().filter(|argument| argument.value_kind.is_hidden()) {
        let value = hidden(&argument.value_kind, shape, services).to_le_bytes();
        let place = place(&mut segment, argument)?;
        let length = place.len().min(value.len());
        place[..length].copy_from_slice(&value[..length]);
    }
    Ok(segment)
}

/// Bytes of what a cooperative launch has after its arguments: what the device libraries know of the grids that run
/// together (`mg_info`), and the words by which grids wait for each other (`mg_sync`).
const GRIDS: usize = 64;
const GRIDS_SYNC: usize = 48;

/// Makes room for it; where the argument that names it is, and where it is, if the kernel wants it.
pub(crate) fn add_grids(segment: &mut Vec<u8>, kernel: &KernelMetadata) -> Option<(usize, usize)> {
    let argument = kernel.args.iter().find(|argument| argument.value_kind == ValueKind::HiddenMultigridSyncArg)?;
    let at = segment.len().next_multiple_of(GRIDS);
    segment.resize(at + GRIDS, 0);
    Some((argument.offset as usize, at))
}

/// Describes the one grid of a launch whose segment of arguments is at an address.
pub(crate) fn describe_grid(segment: &mut [u8], address: u64, (argument, at): (usize, usize), shape: &Shape) {
    let mut put = |at: usize, bytes: &[u8]| segment[at..at + bytes.len()].copy_from_slice(bytes);
    let items: u64 = shape.items.iter().map(|items| u64::from(*items)).product();
    let groups: u32 = shape.items.iter().zip(shape.workgroup).map(|(items, size)| items.div_ceil(size)).product();
    put(argument, &(address + at as u64).to_le_bytes());
    put(at, &(address + (at + GRIDS_SYNC) as u64).to_le_bytes());
    // Grid 0 of 1; work-items before it, and of all.
    put(at + 12, &1_u32.to_le_bytes());
    put(at + 24, &items.to_le_bytes());
    // Newer libraries: the words by which workgroups wait for each other, and how many they are.
    put(at + 40, &groups.to_le_bytes());
}

/// What HIP refuses before it launches anything.
pub(crate) fn check(kernel: &KernelMetadata, shape: &Shape, target: Target) -> Outcome {
    let threads: u64 = shape.workgroup.iter().map(|size| u64::from(*size)).product();
    if threads == 0 {
        return Err(if loaded_as_hip_5() { INVALID_VALUE } else { INVALID_CONFIGURATION });
    }
    if shape.items.contains(&0) {
        return Err(INVALID_VALUE);
    }
    if threads > u64::from(target.max_workgroup()) {
        return Err(INVALID_CONFIGURATION);
    }
    if threads > kernel.max_flat_workgroup_size {
        return Err(LAUNCH_FAILURE);
    }
    if u64::from(shape.dynamic_lds) + kernel.group_segment_fixed_size > u64::from(target.lds_bytes()) {
        return Err(OUT_OF_MEMORY);
    }
    Ok(())
}

fn place<'s>(segment: &'s mut [u8], argument: &Argument) -> Outcome<&'s mut [u8]> {
    let start = usize::try_from(argument.offset).map_err(|_| INVALID_VALUE)?;
    let end = usize::try_from(argument.size).ok().and_then(|size| start.checked_add(size)).ok_or(INVALID_VALUE)?;
    segment.get_mut(start..end).ok_or(INVALID_VALUE)
}

/// The value of a hidden argument. What there is no service for is 0, so a
/// kernel that uses it faults on a null address and does not read something else.
fn hidden(kind: &ValueKind, shape: &Shape, services: &Services) -> u64 {
    match kind {
        ValueKind::HiddenHostcallBuffer => services.hostcall,
        ValueKind::HiddenHeapV1 => services.heap,
        _ => hidden_argument(kind, &shape.launched()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(args: &[(&str, u64, u64)]) -> KernelMetadata {
        let args = args.iter().map(|(kind, offset, size)| Argument {
            name: None,
            offset: *offset,
            size: *size,
            value_kind: ValueKind::parse(kind),
        });
        KernelMetadata { kernarg_segment_size: 280, args: args.collect(), ..KernelMetadata::default() }
    }

    const SHAPE: Shape = Shape { items: [1000, 6, 4], workgroup: [256, 2, 3], dynamic_lds: 0x1234 };

    #[test]
    fn places_by_offset_and_kind() {
        let kernel = kernel(&[
            ("global_buffer", 0, 8),
            ("by_value", 8, 4),
            ("hidden_block_count_x", 16, 4),
            ("hidden_block_count_y", 20, 4),
            ("hidden_block_count_z", 24, 4),
            ("hidden_group_size_x", 28, 2),
            ("hidden_remainder_x", 34, 2),
            ("hidden_remainder_z", 38, 2),
            ("hidden_grid_dims", 80, 2),
            ("hidden_hostcall_buffer", 96, 8),
            ("hidden_heap_v1", 112, 8),
            ("hidden_dynamic_lds_size", 136, 4),
        ]);
        let mut order = Vec::new();
        let arguments = explicit(&kernel, |index, place| {
            order.push((index, place.len()));
            place.fill(0xa0 + index as u8);
            Ok(())
        });
        let segment =
            segment(&kernel, &SHAPE, &arguments.unwrap(), &Services { hostcall: 0x1122, heap: 0x3344 }).unwrap();
        assert_eq!(order, [(0, 8), (1, 4)]);
        assert_eq!(segment.len(), 288);
        assert_eq!(segment[..12], [0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa1, 0xa1, 0xa1, 0xa1]);
        let u16_at = |at: usize| u16::from_le_bytes([segment[at], segment[at + 1]]);
        assert_eq!(
            [16, 20, 24, 28, 34, 38, 80, 96, 112, 136].map(u16_at),
            [3, 3, 1, 256, 232, 1, 3, 0x1122, 0x3344, 0x1234]
        );
        assert!(segment[12..16].iter().chain(&segment[140..]).all(|byte| *byte == 0));
    }

    #[test]
    fn packed_arguments_keep_their_place_and_hidden_ones_follow() {
        let kernel = kernel(&[("by_value", 0, 4), ("hidden_group_size_x", 4, 2)]);
        let segment = segment(&kernel, &SHAPE, &[1, 2, 3, 4, 9, 9], &Services::default()).unwrap();
        assert_eq!(segment[..8], [1, 2, 3, 4, 0, 1, 0, 0]);
    }

    #[test]
    fn metadata_that_points_outside_is_refused() {
        let kernel = kernel(&[("by_value", 284, 8)]);
        assert_eq!(explicit(&kernel, |_, _| Ok(())), Err(INVALID_VALUE));
    }

    #[test]
    fn refuses_impossible_launches() {
        let target = Target::by_name("gfx90a").unwrap();
        let kernel = KernelMetadata {
            max_flat_workgroup_size: 256,
            group_segment_fixed_size: 1024,
            ..KernelMetadata::default()
        };
        let try_shape = |items: [u32; 3], workgroup: [u32; 3], dynamic_lds| {
            check(&kernel, &Shape { items, workgroup, dynamic_lds }, target)
        };
        assert_eq!(try_shape([256, 1, 1], [256, 1, 1], 64 << 10), Err(OUT_OF_MEMORY));
        assert_eq!(try_shape([256, 1, 1], [256, 1, 1], 63 << 10), Ok(()));
        assert_eq!(try_shape([512, 1, 1], [512, 1, 1], 0), Err(LAUNCH_FAILURE));
        assert_eq!(try_shape([2048, 1, 1], [2048, 1, 1], 0), Err(INVALID_CONFIGURATION));
        assert_eq!(try_shape([0, 1, 1], [64, 1, 1], 0), Err(INVALID_VALUE));
        assert_eq!(try_shape([64, 1, 1], [0, 1, 1], 0), Err(INVALID_CONFIGURATION));
    }
}
