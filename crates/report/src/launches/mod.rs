//! Launches as text. The data is that of [`wavetap_explain::launches`].

#[cfg(test)]
mod table_tests;
mod text;

pub(crate) use text::{COLUMNS, cells, host_lines};
pub use wavetap_explain::launches::*;

#[cfg(test)]
mod tests {
    use crate::text::{Style, render};
    use crate::{Report, RunInfo, html};
    use wavetap_profile::file::KernelTotals;
    use wavetap_profile::file::{Backend, Origin, Profile};
    use wavetap_profile::launches::LaunchShape;
    use wavetap_profile::launches::NotCounted;
    use wavetap_profile::launches::UncountedDispatches;
    use wavetap_profile::map::Resources;

    fn shape(workgroup: [u32; 3], dynamic_lds: u32, dispatches: u64) -> LaunchShape {
        LaunchShape { grid: Some([1024, 1, 1]), workgroup, dynamic_lds, dispatches }
    }

    /// A kernel whose counters take 2 KiB of LDS on a target with 64 KiB, 4 SIMDs and 8 waves of each.
    fn report(launches: Vec<LaunchShape>) -> Report {
        let before = Resources {
            sgprs: 32,
            vgprs: 16,
            lds_bytes: 512,
            waves_per_simd: 8,
            wave_size: 64,
            ..Resources::default()
        };
        let after = Resources { lds_bytes: 2560, ..before };
        let mut profile = Profile::new(Origin::Counters, Backend::Emulator);
        let totals =
            KernelTotals { demangled: "k()".to_owned(), target: "gfx90a:xnack-".to_owned(), ..KernelTotals::default() };
        profile.kernels.push(KernelTotals { before: Some(before), after: Some(after), launches, ..totals });
        profile.end();
        Report::new(&profile, RunInfo::default())
    }

    fn facts(launches: Vec<LaunchShape>) -> Vec<String> {
        let text = render(&report(launches), Style::default());
        text.lines().skip(3).take_while(|line| !line.contains("no branches")).map(str::to_owned).collect()
    }

    #[test]
    fn occupancy_is_that_of_the_launches() {
        // 64 KiB are 25 workgroups of 2560 bytes: 25 waves on 4 SIMDs. With 256 work-items it is 100 waves, of which 8
        // each have room.
        let one = facts(vec![shape([64, 1, 1], 0, 3)]);
        assert_eq!(one.len(), 1);
        assert!(one[0].ends_with(", occupancy 8 → 7 waves per SIMD"), "{one:?}");
        assert!(facts(vec![shape([16, 16, 1], 0, 1)])[0].ends_with(", occupancy 8 waves per SIMD, unchanged"));
        let several = facts(vec![
            shape([64, 1, 1], 0, 3),
            shape([256, 1, 1], 0, 1),
            shape([8, 8, 1], 8192, 2),
            shape([64, 1, 1], 0, 4),
        ]);
        assert!(several[0].ends_with(", occupancy differs between launches"), "{several:?}");
        assert_eq!(
            several[1..],
            [
                "    7 dispatches of 64×1×1: 8 → 7 waves per SIMD",
                "    1 dispatch of 256×1×1: 8 waves per SIMD, unchanged",
                "    2 dispatches of 8×8×1 with 8192 bytes of dynamic LDS: 2 waves per SIMD, unchanged",
            ]
        );
        let unknown = facts(Vec::new());
        assert!(
            unknown[0]
                .ends_with(", occupancy at best 8 waves per SIMD, unchanged (how it was launched is not recorded)"),
            "{unknown:?}"
        );
    }

    #[test]
    fn what_is_not_counted_is_in_every_form_of_a_report() {
        let mut profile = Profile::new(Origin::Counters, Backend::Emulator);
        let uncounted = |why, name: &str, dispatches| UncountedDispatches {
            region: None,
            name: name.to_owned(),
            demangled: format!("{name}<int>()"),
            target: "gfx90a".to_owned(),
            object: "00".to_owned(),
            why,
            detail: "a sentence".to_owned(),
            dispatches,
        };
        for (why, complete) in
            [(NotCounted::NotSelected, true), (NotCounted::LaunchFailed, true), (NotCounted::LdsDoesNotFit, false)]
        {
            uncounted(why, "k", 2).add_to(&mut profile.uncounted);
            uncounted(why, "k", 1).add_to(&mut profile.uncounted);
            profile.end();
            let report = Report::new(&profile, RunInfo::default());
            assert_eq!((report.complete, report.ended, report.has_gaps()), (complete, true, !complete), "{why:?}");
            let text = render(&report, Style::default());
            assert!(
                text.contains(&format!(
                    "dispatched and not counted\n  k<int>() (gfx90a): 3 dispatches: {}: a sentence\n",
                    why.name()
                )),
                "{text}"
            );
            assert!(!text.contains("the run did not end"), "{text}");
            let page = html::render(&report, &html::PageData::default());
            assert!(
                page.contains("Dispatched and not counted")
                    && page.contains("k&lt;int&gt;()")
                    && page.contains(why.name()),
                "{page}"
            );
            let json = serde_json::to_value(&report).expect("JSON");
            assert_eq!(
                (&json["uncounted"][0]["why"], &json["uncounted"][0]["dispatches"]),
                (&why.name().into(), &3.into())
            );
            profile.uncounted.clear();
        }
        let mut other = Profile::new(Origin::Counters, Backend::Emulator);
        uncounted(NotCounted::Faulted, "k", 1).add_to(&mut other.uncounted);
        other.end();
        profile.end();
        assert!(profile.complete && !other.complete);
        profile.merge(&other).expect("alike");
        assert_eq!((profile.complete, profile.has_ended(), profile.uncounted.len()), (false, true, 1));
    }
}
