//! The kernel argument segment: the launch's arguments at the places the metadata names, and the hidden ones that a
//! runtime fills in.

use wavetap_base::error::{Error, Result};
use wavetap_object::code_object::{Argument, KernelMetadata, ValueKind};
use wavetap_profile::launches::LaunchShape;

/// A scalar load may read on to the end of the 16 bytes that its last argument lies in.
const LEAST: usize = 16;

/// An argument of a launch: a number, the address of a buffer, or the bytes of a structure.
///
/// ```
/// use wavetap::emulated::KernelArgument;
///
/// assert_eq!(KernelArgument::from(3_u32), KernelArgument::bytes([3, 0, 0, 0]));
/// assert_eq!(KernelArgument::from(1.0_f32), KernelArgument::bytes([0, 0, 0x80, 0x3f]));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelArgument(Vec<u8>);

impl KernelArgument {
    /// An argument with these bytes in memory.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> KernelArgument {
        KernelArgument(bytes.into())
    }
}

macro_rules! from_numbers {
    ($($number:ty)*) => { $(
        impl From<$number> for KernelArgument {
            fn from(value: $number) -> KernelArgument {
                KernelArgument(value.to_le_bytes().to_vec())
            }
        }
    )* };
}

from_numbers! { u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 }

/// What a hidden argument tells a kernel of a launch (AMDGPUUsage, "Code Object V5 Metadata"); none for those that are
/// no property of the launch: addresses of services and of apertures, which the host or the hardware has.
///
/// ```
/// use wavetap::code_object::ValueKind;
/// use wavetap::emulated::hidden_argument;
/// use wavetap::profile::launches::LaunchShape;
///
/// let shape = LaunchShape { grid: Some([1000, 1, 1]), workgroup: [256, 1, 1], dynamic_lds: 0, dispatches: 1 };
/// assert_eq!(hidden_argument(&ValueKind::HiddenBlockCountX, &shape), Some(3), "complete workgroups");
/// assert_eq!(hidden_argument(&ValueKind::HiddenRemainderX, &shape), Some(232));
/// assert_eq!(hidden_argument(&ValueKind::HiddenHostcallBuffer, &shape), None);
/// ```
#[must_use]
pub fn hidden_argument(kind: &ValueKind, shape: &LaunchShape) -> Option<u64> {
    let size = |axis: usize| Some(u64::from(shape.workgroup[axis]));
    let items = |axis: usize| shape.grid.map(|grid| grid[axis]);
    let whole = |axis: usize| items(axis)?.checked_div(shape.workgroup[axis]).map(u64::from);
    let rest = |axis: usize| items(axis)?.checked_rem(shape.workgroup[axis]).map(u64::from);
    match kind {
        ValueKind::HiddenBlockCountX => whole(0),
        ValueKind::HiddenBlockCountY => whole(1),
        ValueKind::HiddenBlockCountZ => whole(2),
        ValueKind::HiddenGroupSizeX => size(0),
        ValueKind::HiddenGroupSizeY => size(1),
        ValueKind::HiddenGroupSizeZ => size(2),
        ValueKind::HiddenRemainderX => rest(0),
        ValueKind::HiddenRemainderY => rest(1),
        ValueKind::HiddenRemainderZ => rest(2),
        // HIP launches every grid as three-dimensional.
        ValueKind::HiddenGridDims => Some(3),
        ValueKind::HiddenDynamicLdsSize => Some(u64::from(shape.dynamic_lds)),
        ValueKind::HiddenGlobalOffsetX | ValueKind::HiddenGlobalOffsetY | ValueKind::HiddenGlobalOffsetZ => Some(0),
        _ => None,
    }
}

/// Builds the segment of a launch. A hidden argument that no launch says is 0: a kernel that uses it faults on a null
/// address.
pub(super) fn segment(kernel: &KernelMetadata, shape: &LaunchShape, given: &[KernelArgument]) -> Result<Vec<u8>> {
    let size = usize::try_from(kernel.kernarg_segment_size)
        .map_err(|_| Error::malformed("the size of the kernel arguments"))?;
    let mut segment = vec![0; size.next_multiple_of(LEAST).max(LEAST)];
    let explicit: Vec<&Argument> = kernel.args.iter().filter(|argument| !argument.value_kind.is_hidden()).collect();
    if explicit.len() != given.len() {
        let (found, expected) = (given.len(), explicit.len());
        return Err(Error::unsupported(format!("{found} arguments, the kernel has {expected}")));
    }
    for (number, (argument, KernelArgument(bytes))) in explicit.into_iter().zip(given).enumerate() {
        let place = place(&mut segment, argument)?;
        if place.len() != bytes.len() {
            let name = argument.name.as_deref().map_or_else(String::new, |name| format!(" ({name})"));
            let (found, expected, kind) = (bytes.len(), place.len(), argument.value_kind.name());
            return Err(Error::unsupported(format!(
                "argument {number}{name} has {found} bytes, the kernel takes {expected} ({kind})"
            )));
        }
        place.copy_from_slice(bytes);
    }
    for argument in kernel.args.iter().filter(|argument| argument.value_kind.is_hidden()) {
        let value = hidden_argument(&argument.value_kind, shape).unwrap_or_default().to_le_bytes();
        let place = place(&mut segment, argument)?;
        let length = place.len().min(value.len());
        place[..length].copy_from_slice(&value[..length]);
    }
    Ok(segment)
}

fn place<'s>(segment: &'s mut [u8], argument: &Argument) -> Result<&'s mut [u8]> {
    let outside = || {
        let Argument { offset, size, .. } = argument;
        Error::malformed(format!("an argument of {size} bytes at {offset}, which is outside the segment"))
    };
    let start = usize::try_from(argument.offset).map_err(|_| outside())?;
    let end = usize::try_from(argument.size).ok().and_then(|size| start.checked_add(size)).ok_or_else(outside)?;
    segment.get_mut(start..end).ok_or_else(outside)
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
        KernelMetadata { kernarg_segment_size: 100, args: args.collect(), ..KernelMetadata::default() }
    }

    const SHAPE: LaunchShape =
        LaunchShape { grid: Some([1000, 6, 4]), workgroup: [256, 2, 3], dynamic_lds: 0x1234, dispatches: 1 };

    #[test]
    fn arguments_are_where_the_metadata_says() {
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
            ("hidden_dynamic_lds_size", 84, 4),
            ("hidden_hostcall_buffer", 88, 8),
        ]);
        let segment = segment(&kernel, &SHAPE, &[0x1_0000_0002_u64.into(), 7_u32.into()]).expect("they fit");
        assert_eq!(segment.len(), 112, "whole 16 bytes");
        assert_eq!(segment[..12], [2, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0]);
        let half = |at: usize| u16::from_le_bytes([segment[at], segment[at + 1]]);
        // 1000 / 256, 6 / 2, 4 / 3; 1000 % 256, 4 % 3.
        assert_eq!([16, 20, 24, 28, 34, 38, 80, 84, 88].map(half), [3, 3, 1, 256, 232, 1, 3, 0x1234, 0]);
    }

    #[test]
    fn arguments_that_do_not_fit_are_refused() {
        let kernel = kernel(&[("global_buffer", 0, 8), ("by_value", 8, 4), ("hidden_grid_dims", 80, 2)]);
        let error = |given: &[KernelArgument]| segment(&kernel, &SHAPE, given).expect_err("refused").to_string();
        assert_eq!(error(&[1_u64.into()]), "1 arguments, the kernel has 2");
        assert_eq!(error(&[1_u64.into(), 2_u64.into()]), "argument 1 has 8 bytes, the kernel takes 4 (by_value)");
        let outside = self::kernel(&[("by_value", 110, 4)]);
        assert!(segment(&outside, &SHAPE, &[1_u32.into()]).is_err_and(|error| error.to_string().contains("outside")));
    }
}
