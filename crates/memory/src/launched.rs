//! The workgroups that a kernel is launched with.

use wavetap_code::WorkgroupSource;
use wavetap_object::code_object::{Field, Kernel};
use wavetap_profile::file::KernelTotals;

/// The most work-items of a workgroup where nothing says less.
pub const MOST_WORK_ITEMS: u32 = 1024;

/// What is known of the launches of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launched {
    /// Work-items of a workgroup in x, y, z.
    pub workgroup: [u32; 3],
    /// How they are known.
    pub source: WorkgroupSource,
    /// How many work-item ids a lane is given: x alone, x and y, or all three.
    pub given: u32,
}

impl Default for Launched {
    fn default() -> Launched {
        Launched { workgroup: [MOST_WORK_ITEMS, 1, 1], source: WorkgroupSource::Assumed, given: 3 }
    }
}

impl Launched {
    /// What a profile says, or else the metadata.
    #[must_use]
    pub fn of(kernel: Option<&Kernel>, totals: Option<&KernelTotals>) -> Launched {
        let mut launched = Launched::default();
        let metadata = kernel.and_then(|kernel| kernel.metadata.as_ref());
        if let Some(kernel) = kernel {
            launched.given = kernel.descriptor.get(Field::ENABLE_VGPR_WORKITEM_ID) + 1;
        }
        let number = |size: u64| u32::try_from(size).unwrap_or(MOST_WORK_ITEMS).clamp(1, MOST_WORK_ITEMS);
        if let Some(largest) =
            metadata.map(|metadata| metadata.max_flat_workgroup_size).filter(|size| *size > 0).map(number)
        {
            launched.workgroup = [largest, 1, 1];
        }
        if let Some(required) =
            metadata.and_then(|metadata| metadata.reqd_workgroup_size).filter(|sizes| !sizes.contains(&0))
        {
            launched = Launched { workgroup: required.map(number), source: WorkgroupSource::Required, ..launched };
        }
        let launches = totals.map(|totals| totals.launches.as_slice()).unwrap_or_default();
        let dispatches = |workgroup: [u32; 3]| -> u64 {
            launches.iter().filter(|launch| launch.workgroup == workgroup).map(|launch| launch.dispatches).sum()
        };
        if let Some(usual) =
            launches.iter().map(|launch| launch.workgroup).max_by_key(|workgroup| dispatches(*workgroup))
        {
            launched = Launched { workgroup: usual, source: WorkgroupSource::Launched, ..launched };
        }
        launched
    }
}
