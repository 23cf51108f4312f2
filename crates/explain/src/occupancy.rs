//! Occupancy: how many waves of a kernel a SIMD holds, what limits it, and how far the next step is.

use serde::{Deserialize, Serialize};

use crate::words::grouped;
use wavetap_amdgpu::{Demand, Target};

/// What one wave, and its workgroup, are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Vector registers of a lane as allocated, AGPRs included where they share the allocation.
    pub vgprs: u32,
    /// Scalar registers as allocated.
    pub sgprs: u32,
    /// Bytes of LDS of a workgroup.
    pub lds_bytes: u32,
    /// Work-items of a workgroup.
    pub workgroup: u32,
    /// Whether a workgroup always has that many: then only whole workgroups count. Otherwise it is the occupancy that
    /// the best size reaches.
    pub exact: bool,
    /// Whether a workgroup has the two compute units of a workgroup processor. Of no effect where there are none.
    pub wgp_mode: bool,
}

/// Something that waves share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Vector registers.
    Vgprs,
    /// Scalar registers.
    Sgprs,
    /// Local data share.
    Lds,
    /// Only whole workgroups fit.
    Workgroup,
    /// Each workgroup of more than one wave needs a barrier.
    Barriers,
}

impl Resource {
    /// As a person would say it.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["VGPRs", "SGPRs", "LDS", "workgroup size", "barriers"][self as usize]
    }
}

/// What one resource allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limit {
    /// The resource.
    pub resource: Resource,
    /// How much of it a wave takes (registers), or its workgroup (bytes of LDS, work-items).
    pub used: u32,
    /// Waves per SIMD that this allows.
    pub waves: u32,
    /// The most that could be taken without lowering the kernel's occupancy; none for a workgroup's size, and for what
    /// every wave has whole.
    pub room: Option<u32>,
    /// The most that may be taken if there shall be more waves than now; none where no amount is small enough.
    pub for_more: Option<u32>,
}

/// Waves per SIMD of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Occupancy {
    /// Waves per SIMD; 0 if not even one workgroup fits.
    pub waves: u32,
    /// The most that a SIMD holds.
    pub most: u32,
    /// Work-items of the workgroup that this is for.
    pub workgroup: u32,
    /// What keeps it from being more; empty at the most.
    pub limited_by: Vec<Resource>,
    /// Every resource.
    pub limits: Vec<Limit>,
    /// The number of waves that [`Limit::for_more`] of all that limits would give (at least, where the size of
    /// workgroups is open); none at the most.
    pub next: Option<u32>,
}

impl Occupancy {
    /// The occupancy of a kernel with these needs.
    ///
    /// ```
    /// use wavetap_amdgpu::Target;
    /// use wavetap_explain::occupancy::{Needs, Occupancy, Resource};
    ///
    /// let target = Target::by_name("gfx906").unwrap();
    /// let needs = Needs { vgprs: 84, sgprs: 32, lds_bytes: 0, workgroup: 256, exact: false, wgp_mode: false };
    /// let occupancy = Occupancy::of(target, &needs);
    /// assert_eq!((occupancy.waves, occupancy.most), (3, 10));
    /// assert_eq!(occupancy.limited_by, [Resource::Vgprs]);
    /// assert_eq!(occupancy.limits[0].for_more, Some(64)); // at most 64 registers for 4 waves
    /// ```
    #[must_use]
    pub fn of(target: Target, needs: &Needs) -> Occupancy {
        let most = target.max_waves_per_simd();
        let Needs { workgroup: workgroup_size, wgp_mode, exact, .. } = *needs;
        let group = workgroup_size.max(1).div_ceil(target.wave_size());
        // Whole workgroups by one resource, as if there were enough of all others.
        let little = Demand { vgprs: 1, sgprs: 0, lds_bytes: 0, workgroup_size, wgp_mode };
        let whole = |demand: Demand| target.occupancy(&demand).waves;
        let by_vgprs =
            |vgprs: u32| if exact { whole(Demand { vgprs, ..little }) } else { target.waves_by_vgprs(vgprs) };
        let by_sgprs =
            |sgprs: u32| if exact { whole(Demand { sgprs, ..little }) } else { target.waves_by_sgprs(sgprs) };
        let by_lds = |lds_bytes: u32| match exact {
            true => whole(Demand { lds_bytes, ..little }),
            false => target.waves_by_lds(lds_bytes, group, wgp_mode),
        };
        let mut allowed = vec![
            (Resource::Vgprs, needs.vgprs, by_vgprs(needs.vgprs)),
            (Resource::Sgprs, needs.sgprs, by_sgprs(needs.sgprs)),
            (Resource::Lds, needs.lds_bytes, by_lds(needs.lds_bytes)),
        ];
        let by_size = target.occupancy(&little);
        if exact {
            let what =
                if by_size.limit == wavetap_amdgpu::Limit::Barriers { Resource::Barriers } else { Resource::Workgroup };
            allowed.push((what, workgroup_size, by_size.waves));
        }
        let waves = allowed.iter().map(|(_, _, waves)| *waves).min().unwrap_or(most).min(most);
        let largest = |resource: Resource, wanted: u32| match resource {
            Resource::Vgprs => largest(target.max_vgprs(), target.vgpr_granule(), |count| by_vgprs(count) >= wanted),
            // From gfx10 on every wave has all of them: there is nothing to take more or less of.
            Resource::Sgprs if by_sgprs(target.addressable_sgprs() + NAMED_SGPRS) == most => None,
            // Whatever the granule, a limit may be any number.
            Resource::Sgprs => largest(target.addressable_sgprs() + NAMED_SGPRS, 1, |count| by_sgprs(count) >= wanted),
            Resource::Lds => largest(target.lds_bytes(), target.lds_granule(), |bytes| by_lds(bytes) >= wanted),
            Resource::Workgroup | Resource::Barriers => None,
        };
        let limits = allowed
            .into_iter()
            .map(|(resource, used, by)| Limit {
                resource,
                used,
                waves: by,
                room: largest(resource, waves).filter(|room| *room >= used),
                for_more: if waves < most { largest(resource, waves + 1) } else { None },
            })
            .collect::<Vec<_>>();
        // Where the size alone allows no more, less of another resource does not help.
        let by_size_alone = exact && waves == by_size.waves;
        let is_size = |resource| matches!(resource, Resource::Workgroup | Resource::Barriers);
        let limiting =
            |limit: &&Limit| waves < most && limit.waves == waves && (!by_size_alone || is_size(limit.resource));
        let limited_by: Vec<Resource> = limits.iter().filter(limiting).map(|limit| limit.resource).collect();
        let with_less = |limit: &Limit| match (limit.for_more, limit.resource) {
            (Some(less), Resource::Vgprs) if limit.waves == waves => by_vgprs(less),
            (Some(less), Resource::Sgprs) if limit.waves == waves => by_sgprs(less),
            (Some(less), Resource::Lds) if limit.waves == waves => by_lds(less),
            _ => limit.waves,
        };
        let next = if exact { limits.iter().map(with_less).min().unwrap_or(most) } else { waves + 1 };
        Occupancy {
            waves,
            most,
            workgroup: needs.workgroup,
            limited_by,
            limits,
            next: (waves < most).then_some(next.max(waves + 1)),
        }
    }

    /// The limit of one resource.
    #[must_use]
    pub fn limit(&self, resource: Resource) -> Option<&Limit> {
        self.limits.iter().find(|limit| limit.resource == resource)
    }

    /// `VGPRs, LDS`, or nothing at the most.
    #[must_use]
    pub fn limited_by(&self) -> String {
        self.limited_by.iter().map(|resource| resource.name()).collect::<Vec<_>>().join(", ")
    }

    /// What the next step needs: `6 with ≤ 80 VGPRs`. Empty at the most, or where nothing that the kernel could give
    /// back helps.
    #[must_use]
    pub fn next_step(&self) -> String {
        let Some(next) = self.next else { return String::new() };
        let mut needs = Vec::new();
        for resource in &self.limited_by {
            let Some(most) = self.limit(*resource).and_then(|limit| limit.for_more) else { return String::new() };
            needs.push(format!("≤ {}", amount(*resource, most)));
        }
        format!("{next} with {}", needs.join(" and "))
    }

    /// One sentence: waves, what limits them, what the next step needs, how much room there is.
    #[must_use]
    pub fn sentence(&self) -> String {
        let mut text = format!("{} of {} waves per SIMD", self.waves, self.most);
        if self.limited_by.is_empty() {
            let room = |resource| self.limit(resource).and_then(|limit| limit.room).map(|most| amount(resource, most));
            let room: Vec<String> = [Resource::Vgprs, Resource::Sgprs].into_iter().filter_map(room).collect();
            text.push_str(", the most");
            if !room.is_empty() {
                text.push_str(&format!("; stays so up to {}", room.join(" and ")));
            }
            return text;
        }
        text.push_str(&format!(", limited by {}", self.limited_by()));
        let step = self.next_step();
        if !step.is_empty() {
            text.push_str(&format!("; {step}"));
        }
        text
    }
}

/// VCC, FLAT_SCRATCH and XNACK_MASK are allocated with the numbered scalar registers.
const NAMED_SGPRS: u32 = 10;

/// The largest multiple of `step`, at least one step and at most `most`, that satisfies `fits`, which larger ones do
/// only if smaller ones do.
fn largest(most: u32, step: u32, fits: impl Fn(u32) -> bool) -> Option<u32> {
    let step = step.max(1);
    (1..=most / step).rev().map(|steps| steps * step).find(|amount| fits(*amount))
}

/// `80 VGPRs`, `10,240 bytes of LDS`.
fn amount(resource: Resource, value: u32) -> String {
    match resource {
        Resource::Lds => format!("{} bytes of LDS", grouped(value.into())),
        Resource::Vgprs | Resource::Sgprs => format!("{value} {}", resource.name()),
        Resource::Workgroup | Resource::Barriers => format!("{value} work-items"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn occupancy(target: &str, vgprs: u32, sgprs: u32, lds_bytes: u32, workgroup: u32, exact: bool) -> Occupancy {
        let target = Target::by_name(target).expect("a target");
        Occupancy::of(target, &Needs { vgprs, sgprs, lds_bytes, workgroup, exact, wgp_mode: false })
    }

    #[test]
    fn what_limits_and_what_would_help() {
        let full = occupancy("gfx90a", 8, 16, 0, 1024, false);
        assert_eq!(full.sentence(), "8 of 8 waves per SIMD, the most; stays so up to 64 VGPRs and 100 SGPRs");
        assert!(full.limited_by.is_empty() && full.next_step().is_empty());
        // Every wave has all scalar registers there.
        assert_eq!(
            occupancy("gfx1100", 8, 106, 0, 1024, false).sentence(),
            "16 of 16 waves per SIMD, the most; stays so up to 96 VGPRs"
        );
        let registers = occupancy("gfx90a", 96, 16, 0, 256, false);
        assert_eq!(registers.sentence(), "5 of 8 waves per SIMD, limited by VGPRs; 6 with ≤ 80 VGPRs");
        let lds = occupancy("gfx90a", 8, 16, 40_000, 256, false);
        assert_eq!((lds.waves, lds.limited_by.as_slice()), (1, &[Resource::Lds][..]));
        assert_eq!(lds.next_step(), "2 with ≤ 32,768 bytes of LDS");
        let both = occupancy("gfx90a", 512, 16, 40_000, 256, false);
        assert_eq!(both.next_step(), "2 with ≤ 256 VGPRs and ≤ 32,768 bytes of LDS");
    }

    #[test]
    fn whole_workgroups_count_where_their_size_is_known() {
        // 40 waves fit a compute unit of gfx906; of workgroups of 16 waves, two.
        assert_eq!(occupancy("gfx906", 24, 16, 0, 1024, false).waves, 10);
        let exact = occupancy("gfx906", 24, 16, 0, 1024, true);
        assert_eq!((exact.waves, exact.limited_by.as_slice()), (8, &[Resource::Workgroup][..]));
        assert_eq!(exact.sentence(), "8 of 10 waves per SIMD, limited by workgroup size");
    }

    #[test]
    fn advice_is_for_whole_workgroups() {
        // 96 registers leave room for 5 waves on each of 4 SIMDs.
        let of = |workgroup| {
            let now = occupancy("gfx90a", 96, 16, 0, workgroup, true);
            (now.waves, now.limited_by.clone(), now.next_step())
        };
        let vgprs = |waves, step: &str| (waves, vec![Resource::Vgprs], step.to_owned());
        assert_eq!(of(64), vgprs(5, "6 with ≤ 80 VGPRs"));
        // Two of 8 waves; three are 24 waves, 6 for each SIMD.
        assert_eq!(of(512), vgprs(4, "6 with ≤ 80 VGPRs"));
        // One of 12 waves; two are 24.
        assert_eq!(of(768), vgprs(3, "6 with ≤ 80 VGPRs"));
        // One of 16 waves; two are 32.
        assert_eq!(of(1024), vgprs(4, "8 with ≤ 64 VGPRs"));
        // 128 waves of registers, and 16 are needed at once.
        let none = occupancy("gfx906", 128, 16, 0, 1024, true);
        assert_eq!((none.waves, none.next_step().as_str()), (0, "4 with ≤ 64 VGPRs"));
        // Both have to be less; a workgroup more is 4 waves, one for each SIMD.
        let both = occupancy("gfx90a", 512, 16, 40_000, 256, true);
        assert_eq!(both.next_step(), "2 with ≤ 256 VGPRs and ≤ 32,768 bytes of LDS");
    }

    #[test]
    fn steps_are_real_steps() {
        for target in Target::all() {
            for vgprs in (target.vgpr_granule()..=target.max_vgprs()).step_by(target.vgpr_granule() as usize) {
                let needs = Needs { vgprs, sgprs: 16, lds_bytes: 0, workgroup: 64, exact: false, wgp_mode: false };
                let now = Occupancy::of(target, &needs);
                let limit = *now.limit(Resource::Vgprs).expect("VGPRs are a resource");
                let room = limit.room.expect("what is used is room enough");
                assert_eq!(target.waves_by_vgprs(room).min(now.most), now.waves, "{} {vgprs}", target.name());
                if let Some(fewer) = limit.for_more {
                    let more = Occupancy::of(target, &Needs { vgprs: fewer, ..needs });
                    assert!(fewer < vgprs && more.waves > now.waves, "{} {vgprs}: {fewer}", target.name());
                    let still = Occupancy::of(target, &Needs { vgprs: fewer + target.vgpr_granule(), ..needs });
                    assert_eq!(still.waves, now.waves);
                }
            }
        }
    }
}
