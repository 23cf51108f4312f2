//! Dispatches that are not counted: why, as the profile says it.

use wavetap_profile::launches::NotCounted;
use wavetap_profile::map::{EVERY_KERNEL, ObjectMap, Refused};

/// Why a dispatch is not counted, and the same in a sentence.
pub type Why = (NotCounted, String);

/// Why a kernel has no counters, if it has none. `map` is the site table of its code object if that was rewritten;
/// `refused` are the kernels of one that was to be rewritten when it was loaded and of which no kernel counts.
#[must_use]
pub fn without_counters(map: Option<&ObjectMap>, refused: Option<&[Refused]>, kernel: &str) -> Option<Why> {
    let listed = map.map_or(refused.unwrap_or_default(), |map| &map.refused);
    let reason = listed.iter().find(|refused| refused.name == kernel || refused.name == EVERY_KERNEL);
    let reason = reason.map(|refused| (NotCounted::Refused, format!("{}: {}", refused.reason, refused.detail)));
    if map.is_none() && refused.is_none() {
        let detail = "its code object has no counters: its file was not rewritten, or no kernel of it was instrumented";
        return Some((NotCounted::NotRewritten, detail.to_owned()));
    }
    if map.is_some_and(|map| map.kernels.iter().any(|mapped| mapped.name == kernel)) {
        return None;
    }
    Some(reason.unwrap_or_else(not_selected))
}

fn not_selected() -> Why {
    (NotCounted::NotSelected, "it was not selected when its file was rewritten".to_owned())
}

/// LDS in bytes that the workgroups of a launch have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkgroupLds {
    /// Static LDS of the kernel with its counters.
    pub with_counters: u64,
    /// Static LDS of the original kernel.
    pub original: u64,
    /// What the launch adds.
    pub dynamic: u64,
    /// What a workgroup can have.
    pub most: u64,
}

impl WorkgroupLds {
    /// Bytes that the launch needs with counters, or those of the original and the reason if there is no room for
    /// counters.
    #[must_use]
    pub fn needed(self) -> (u64, Option<Why>) {
        let WorkgroupLds { with_counters, original, dynamic, most } = self;
        let (all, without) = (with_counters.saturating_add(dynamic), original.saturating_add(dynamic));
        if all <= most {
            return (all, None);
        }
        let counters = with_counters.saturating_sub(original);
        let detail = format!(
            "its counters take {counters} bytes of LDS, and the launch with {dynamic} bytes of dynamic LDS and \
                {original} of static has room for {} of {most}: --counters global counts it",
            most.saturating_sub(without)
        );
        (without, Some((NotCounted::LdsDoesNotFit, detail)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_has_the_lds_of_the_original_where_counters_do_not_fit() {
        let of = |dynamic| {
            let lds = WorkgroupLds { with_counters: 3000, original: 1000, dynamic, most: 65536 };
            let (size, why) = lds.needed();
            (size, why.map(|(why, _)| why))
        };
        assert_eq!(of(0), (3000, None));
        assert_eq!(of(65536 - 3000), (65536, None));
        assert_eq!(of(65536 - 2999), (63537, Some(NotCounted::LdsDoesNotFit)));
        assert_eq!(of(65536 - 1000), (65536, Some(NotCounted::LdsDoesNotFit)));
    }
}
