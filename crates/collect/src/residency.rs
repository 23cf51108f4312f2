//! Launches whose workgroups wait for each other: all of them have to run at the same time, and an application that
//! makes such a launch was told how many can.

use wavetap_amdgpu::{Demand, Target};
use wavetap_profile::launches::NotCounted;
use wavetap_profile::map::Resources;

use crate::uncounted::Why;

/// Why a cooperative launch has to run the original kernel: with counters fewer of its workgroups run at the same time
/// than the application was told. `target` is the target id of the code object; `before` and `after` are what the
/// kernel needs without counters and with them.
#[must_use]
pub fn fewer_workgroups(
    target: &str,
    (before, after): (&Resources, &Resources),
    workgroup_size: u32,
    dynamic_lds: u32,
) -> Option<Why> {
    let fewer = |detail: String| Some((NotCounted::FewerWorkgroups, detail));
    let processor = target.split(':').next().and_then(Target::by_name);
    let Some(machine) = processor.and_then(|target| target.with_wave_size(before.wave_size)) else {
        return fewer("its workgroups wait for each other, and how many run at the same time is not known".to_owned());
    };
    let demand = |of: &Resources| Demand {
        vgprs: of.vgprs,
        sgprs: of.sgprs,
        lds_bytes: of.lds_bytes.saturating_add(dynamic_lds),
        workgroup_size,
        wgp_mode: of.wgp_mode,
    };
    let (before, after) = (demand(before), demand(after));
    // What a runtime says and what hardware has may differ: neither has to be able to hold more than the other.
    let told = machine.workgroups(&before).min(machine.workgroups_by_runtime(&before));
    let held = machine.workgroups(&after);
    if held >= told {
        return None;
    }
    let unit = if before.wgp_mode && machine.has_wgp_mode() { "workgroup processor" } else { "compute unit" };
    fewer(format!(
        "its workgroups wait for each other (a cooperative launch): of {workgroup_size} work-items, a {unit} holds \
            {told} of them without counters and {held} with counters; the original ran"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resources(vgprs: u32, lds_bytes: u32) -> Resources {
        Resources { vgprs, sgprs: 32, lds_bytes, wave_size: 64, ..Resources::default() }
    }

    #[test]
    fn a_cooperative_launch_has_as_many_workgroups_with_counters() {
        let counted = |target: &str, before: Resources, after: Resources, size, dynamic| {
            fewer_workgroups(target, (&before, &after), size, dynamic).is_none()
        };
        // 512 registers: 4 waves of a SIMD with 128, 3 with 136; of 256 work-items, a wave on each SIMD.
        let (less, more) = (resources(128, 0), resources(136, 0));
        assert!(counted("gfx90a:xnack-", less, less, 256, 0));
        assert!(!counted("gfx90a:xnack-", less, more, 256, 0));
        // One workgroup of 12 waves either way.
        assert!(counted("gfx90a", less, more, 768, 0));
        // 40 KiB of the launch leave room for one workgroup either way.
        assert!(counted("gfx90a", less, more, 256, 40 << 10));
        // LDS for counters: 32 KiB each, and then more.
        assert!(!counted("gfx90a", resources(16, 0), resources(16, 1000), 256, 32 << 10));
        // The runtime counts 8 waves of a SIMD where there are 10.
        assert!(counted("gfx906", resources(24, 0), resources(32, 0), 256, 0));
        assert!(!counted("gfx906", resources(32, 0), resources(36, 0), 256, 0));
        assert!(!counted("gfx1", less, less, 256, 0), "not known");
    }

    #[test]
    fn it_says_what_fits() {
        let (less, more) = (resources(128, 0), resources(136, 0));
        let (why, detail) = fewer_workgroups("gfx90a", (&less, &more), 256, 0).expect("fewer fit");
        assert_eq!(why, NotCounted::FewerWorkgroups);
        assert!(detail.contains("holds 4 of them without counters and 3 with counters"), "{detail}");
    }
}
