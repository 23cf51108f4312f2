//! Dispatches that are not counted: why, as the profile says it.

use std::collections::HashMap;

use wavetap::code_object::demangle;
use wavetap::emulator::Fault;
use wavetap::error::Result;
use wavetap::isa::Target;
use wavetap::profile::launches::{NotCounted, UncountedDispatches};
use wavetap::profile::map::EVERY_KERNEL;

use crate::images::Loaded;
use crate::kernarg::Shape;
use crate::runtime::KernelRef;
use crate::status::{self, Status};
use crate::trace::identity;

/// Why a dispatch is not counted, and the same in a sentence.
pub(crate) type Why = (NotCounted, String);

/// Why a kernel has no counters, if it has none.
pub(crate) fn without_counters(loaded: &Loaded, kernel: &str) -> Option<Why> {
    let refused = loaded.refused().iter().find(|refused| refused.name == kernel || refused.name == EVERY_KERNEL);
    let refused = refused.map(|refused| (NotCounted::Refused, format!("{}: {}", refused.reason, refused.detail)));
    let Some(counters) = &loaded.counters else {
        if loaded.unrewritten.is_some() {
            return Some(refused.unwrap_or_else(not_selected));
        }
        let detail = "its code object has no counters: its file was not rewritten, or no kernel of it was instrumented";
        return Some((NotCounted::NotRewritten, detail.to_owned()));
    };
    if counters.index_of(kernel).is_some() {
        return None;
    }
    Some(refused.unwrap_or_else(not_selected))
}

fn not_selected() -> Why {
    (NotCounted::NotSelected, "it was not selected when its file was rewritten".to_owned())
}

/// LDS of the workgroups of a launch, and why there is no room in it for the kernel's counters, if there is none: then
/// they have what they would have without counters.
pub(crate) fn lds(with_counters: u64, original: u64, shape: &Shape, target: Target) -> (u64, Option<Why>) {
    let (dynamic, most) = (u64::from(shape.dynamic_lds), u64::from(target.lds_bytes()));
    if with_counters + dynamic <= most {
        return (with_counters + dynamic, None);
    }
    let counters = with_counters.saturating_sub(original);
    let detail = format!(
        "its counters take {counters} bytes of LDS, and the launch with {dynamic} bytes of dynamic LDS and {original} \
            of static has room for {} of {most}: --counters global counts it",
        most.saturating_sub(original + dynamic)
    );
    (original + dynamic, Some((NotCounted::LdsDoesNotFit, detail)))
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

/// Why a dispatch with this fault is not counted.
pub(crate) fn faulted(fault: &Fault) -> Why {
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
        (why, detail): Why,
    ) -> Result<UncountedDispatches> {
        let (object, target) = match (self.objects.get(&kernel.image), loaded) {
            (Some(known), Some(_)) => known.clone(),
            (None, Some(loaded)) => self.objects.entry(kernel.image).or_insert(identity(loaded)?).clone(),
            (_, None) => Default::default(),
        };
        let demangled = demangle(&kernel.name).into_owned();
        Ok(UncountedDispatches { name: kernel.name.clone(), demangled, target, object, why, detail, dispatches: 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_has_the_lds_of_the_original_where_counters_do_not_fit() {
        let target = Target::by_name("gfx90a").unwrap();
        let of = |dynamic_lds| {
            let shape = Shape { items: [64, 1, 1], workgroup: [64, 1, 1], dynamic_lds };
            let (size, why) = lds(3000, 1000, &shape, target);
            (size, why.map(|(why, _)| why))
        };
        assert_eq!(of(0), (3000, None));
        assert_eq!(of(65536 - 3000), (65536, None));
        assert_eq!(of(65536 - 2999), (63537, Some(NotCounted::LdsDoesNotFit)));
        assert_eq!(of(65536 - 1000), (65536, Some(NotCounted::LdsDoesNotFit)));
    }
}
