//! Dispatches that are not counted: why, as the profile says it.

use std::collections::HashMap;

use wavetap::code_object::demangle;
use wavetap::collect::uncounted::{self, Why, WorkgroupLds};
use wavetap::error::Result;
use wavetap::isa::Target;
use wavetap::profile::launches::{NotCounted, UncountedDispatches};

use crate::images::{KernelRef, Loaded};
use crate::kernarg::Shape;
use crate::status::{self, Status};
use crate::trace::identity;

/// Why a kernel has no counters, if it has none.
pub(crate) fn without_counters(loaded: &Loaded, kernel: &str) -> Option<Why> {
    let map = loaded.counters.as_ref().map(|counters| &*counters.map);
    uncounted::without_counters(map, loaded.unrewritten.as_deref(), kernel)
}

/// LDS of the workgroups of a launch, and why there is no room in it for the kernel's counters, if there is none: then
/// they have what they would have without counters.
pub(crate) fn lds(with_counters: u64, original: u64, shape: &Shape, target: Target) -> (u64, Option<Why>) {
    let (dynamic, most) = (u64::from(shape.dynamic_lds), u64::from(target.lds_bytes()));
    WorkgroupLds { with_counters, original, dynamic, most }.needed()
}

/// Why a launch that was refused with this status is not counted.
pub(crate) fn refused(status: Status) -> Why {
    let name = status::name(status).to_string_lossy();
    if status == status::NO_BINARY_FOR_GPU {
        return (
            NotCounted::NoCode,
            format!("{name}: there is no code for the device that is emulated, or it could not be loaded"),
        );
    }
    (NotCounted::LaunchFailed, format!("the launch was refused with {name}, with counters or without"))
}

/// Why a dispatch with a fault, as a person is told of it, is not counted.
pub(crate) fn faulted(fault: &str) -> Why {
    (NotCounted::Faulted, format!("it ended with a fault: {fault}"))
}

/// Makes entries of the profile.
#[derive(Default)]
pub(crate) struct Uncounted {
    /// MD5 of the original and target id, by image.
    objects: HashMap<usize, (String, String)>,
}

impl Uncounted {
    /// One dispatch of a kernel; there is nothing loaded if there is no code for the device.
    pub(crate) fn dispatch(
        &mut self,
        kernel: &KernelRef,
        loaded: Option<&Loaded>,
        region: Option<&str>,
        (why, detail): Why,
    ) -> Result<UncountedDispatches> {
        let (object, target) = match (self.objects.get(&kernel.image), loaded) {
            (Some(known), Some(_)) => known.clone(),
            (None, Some(loaded)) => self.objects.entry(kernel.image).or_insert(identity(loaded)?).clone(),
            (_, None) => Default::default(),
        };
        let demangled = demangle(&kernel.name).into_owned();
        let (name, region) = (kernel.name.clone(), region.map(str::to_owned));
        Ok(UncountedDispatches { name, demangled, target, object, region, why, detail, dispatches: 1 })
    }
}
