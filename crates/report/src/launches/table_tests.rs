//! Launch tables, with numbers worked out by hand: an MI210 has 104 compute units of four SIMDs, each with room for
//! eight waves of few registers.

use super::*;
use crate::Report;
use crate::summary::SummaryInputs;
use crate::text::{Details, Style, render_part};
use wavetap_amdgpu::Board;
use wavetap_profile::file::{Backend, KernelTotals, Origin, Profile, SiteTotals, WaveCounts, Work};
use wavetap_profile::host::{HostOperation, LaunchSize};
use wavetap_profile::launches::LaunchShape;
use wavetap_profile::map::{Resources, Source};
use wavetap_profile::probes::branches::{ExecCounts, ScalarCounts};
use wavetap_profile::time::{DispatchTime, KernelTime, MemoryTime, TimeProfile};

fn shape(grid: u32, workgroup: u32, dispatches: u64) -> LaunchShape {
    LaunchShape { grid: Some([grid, 1, 1]), workgroup: [workgroup, 1, 1], dynamic_lds: 0, dispatches }
}

fn kernel(name: &str, launches: Vec<LaunchShape>) -> KernelTotals {
    KernelTotals {
        name: name.to_owned(),
        demangled: name.to_owned(),
        target: "gfx90a:xnack-".to_owned(),
        object: "00".to_owned(),
        dispatches: launches.iter().map(|launch| launch.dispatches).sum(),
        launches,
        before: Some(Resources { sgprs: 16, vgprs: 8, wave_size: 64, waves_per_simd: 8, ..Resources::default() }),
        work: Some(Work { instructions: 100, ..Work::default() }),
        ..KernelTotals::default()
    }
}

fn profile(kernels: Vec<KernelTotals>) -> Profile {
    let mut profile = Profile::new(Origin::Launches, Backend::Emulator);
    profile.kernels = kernels;
    profile.end();
    profile
}

fn table(profile: &Profile, code: &[CodeOfKernel], time: Option<&TimeProfile>) -> LaunchTable {
    LaunchTable::new(LaunchInputs { profile, board: None, time, code })
}

fn kinds(table: &LaunchTable) -> Vec<WarningKind> {
    table.warnings.iter().map(|warning| warning.kind).collect()
}

/// The warnings of one kernel with these launches.
fn warned(launches: Vec<LaunchShape>) -> Vec<WarningKind> {
    kinds(&table(&profile(vec![kernel("k", launches)]), &[], None))
}

#[test]
fn numbers_follow_from_grid_registers_and_board() {
    // 2080 workgroups of four waves; a compute unit holds eight, the board 832: two and a half rounds.
    let table = table(&profile(vec![kernel("k", vec![shape(2080 * 256, 256, 3)])]), &[], None);
    let [row] = table.rows.as_slice() else { panic!("{table:?}") };
    assert_eq!(
        (row.workgroups, row.waves, row.lanes, row.idle_lanes),
        (Some(2080), Some(8320), Some(532_480), Some(0))
    );
    assert_eq!((row.waves_per_cu, row.occupancy, row.most_waves), (Some(80.0), Some(8), Some(8)));
    assert_eq!((row.workgroups_at_once, row.rounds), (Some(832), Some(2.5)));
    assert!(row.tail_efficiency.is_some_and(|tail| (tail - 2.5 / 3.0).abs() < 1e-9), "{row:?}");
    assert_eq!(table.boards[0].board.as_deref(), Some("mi210"));
    assert!(table.warnings.is_empty(), "{:?}", table.warnings);
    // The last workgroup has 40 of 100 work-items: two waves for each of the two whole ones, one for it.
    let partial = LaunchTable::new(LaunchInputs {
        profile: &profile(vec![kernel("k", vec![shape(240, 100, 1)])]),
        board: Board::by_name("mi250x"),
        time: None,
        code: &[],
    });
    assert_eq!((partial.rows[0].waves, partial.rows[0].idle_lanes), (Some(5), Some(5 * 64 - 240)));
    assert_eq!((partial.boards[0].compute_units, partial.boards[0].chosen), (Some(110), true));
}

#[test]
fn launches_are_tiny_below_a_workgroup_for_each_unit_or_a_wave_for_each_simd() {
    assert_eq!(warned(vec![shape(416 * 64, 256, 1)]), [], "104 workgroups, 416 waves");
    assert_eq!(warned(vec![shape(103 * 256, 256, 1)]), [WarningKind::Tiny], "103 workgroups");
    assert_eq!(warned(vec![shape(415 * 64, 64, 99)]), [WarningKind::Tiny], "415 waves");
    assert_eq!(warned(vec![shape(415 * 64, 64, 100)]), [WarningKind::ManyTiny]);
    let mixed = warned(vec![shape(416 * 64, 256, 1000), shape(64, 64, 3)]);
    assert_eq!(mixed, [WarningKind::Tiny], "1000 large launches are not tiny ones");
    let two = profile(vec![kernel("k", vec![shape(64, 64, 3), shape(1024, 256, 2), shape(416 * 64, 256, 1)])]);
    assert_eq!(table(&two, &[], None).warnings[0].text, "5 launches of 1 to 4 workgroups (1 to 16 waves) on 104 CUs");
}

#[test]
fn what_takes_ten_modelled_microseconds_is_not_short() {
    let time = |cycles: u64| {
        let mut time = TimeProfile::new(Vec::new());
        time.kernels.push(KernelTime {
            name: "k".to_owned(),
            demangled: "k".to_owned(),
            target: "gfx90a".to_owned(),
            object: "00".to_owned(),
            waves: 416,
            most_waves_per_simd: 1,
            modelled_cycles: cycles,
            modelled_wave_cycles: cycles,
            modelled_added_cycles: 0,
            dispatches: vec![DispatchTime {
                dispatch: 0,
                modelled_cycles: cycles,
                modelled_start: None,
                region: None,
                extrapolated: None,
            }],
            memory: MemoryTime::default(),
            traced: None,
            resources: Vec::new(),
            instructions: Vec::new(),
        });
        time
    };
    // 1700 cycles are a microsecond.
    let large = profile(vec![kernel("k", vec![shape(416 * 64, 256, 1)])]);
    assert_eq!(kinds(&table(&large, &[], Some(&time(17_000)))), []);
    let short = table(&large, &[], Some(&time(16_999)));
    assert_eq!(kinds(&short), [WarningKind::Short], "many waves are not tiny, however short they run");
    assert_eq!(short.warnings[0].weight, 0.0, "one launch has nothing to be merged with");
    let both = profile(vec![kernel("k", vec![shape(64, 64, 3)])]);
    let mut found = kinds(&table(&both, &[], Some(&time(1700))));
    found.sort();
    assert_eq!(found, [WarningKind::Tiny, WarningKind::Short]);
}

#[test]
fn tails_are_warned_of_where_few_rounds_are_not_full() {
    let rounds = |workgroups: u32| warned(vec![shape(workgroups * 256, 256, 1)]);
    assert_eq!(rounds(832 + 1), [WarningKind::Tail]);
    assert_eq!(rounds(2 * 832), []);
    assert_eq!(rounds(832 / 2), [], "less than one round leaves no tail");
    // 1.6 of 2 is 0.8, and 4 rounds of 5 are more than four rounds.
    assert_eq!(rounds(1332), []);
    assert_eq!(rounds(1331), [WarningKind::Tail]);
    assert_eq!(rounds(4 * 832 + 1), [], "4.001 of 5 rounds is 80.02 %");
}

#[test]
fn lanes_without_work_items_are_warned_of() {
    assert_eq!(warned(vec![shape(10_000 * 100, 100, 1)]), [WarningKind::PartialWaves]);
    assert_eq!(warned(vec![shape(10_000 * 128, 128, 1)])[..], []);
}

#[test]
fn lanes_that_leave_at_the_beginning_are_counted() {
    let guarded = |after: u64| {
        let mut kernel = kernel("k", vec![shape(416 * 64, 256, 1)]);
        let counts =
            ExecCounts { executions: 416, agreements: 415, lanes_before: 26_624, lanes_after: after, empty: 0 };
        kernel.sites.push(SiteTotals {
            address: 0x20,
            instruction: "s_and_saveexec_b64 s[0:1], vcc".to_owned(),
            source: Some(Source { file: "k.hip".to_owned(), line: 4 }),
            counts: counts.into(),
        });
        profile(vec![kernel])
    };
    let code = |guard| {
        [CodeOfKernel {
            object: "00".to_owned(),
            name: "k".to_owned(),
            barriers: false,
            guard,
            memory: None,
            executed: None,
        }]
    };
    let found = table(&guarded(19_968), &code(Some(0x20)), None);
    assert_eq!(kinds(&found), [WarningKind::LanesLeftOut], "a quarter");
    assert!(
        found.warnings[0].text.contains("6656 of 26,624") && found.warnings[0].text.contains("k.hip:4"),
        "{found:?}"
    );
    assert_eq!(kinds(&table(&guarded(19_969), &code(Some(0x20)), None)), []);
    assert_eq!(kinds(&table(&guarded(100), &code(None), None)), [], "it is no guard");
}

#[test]
fn barriers_and_large_workgroups() {
    let code = [CodeOfKernel {
        object: "00".to_owned(),
        name: "k".to_owned(),
        barriers: true,
        guard: None,
        memory: None,
        executed: None,
    }];
    let of = |launch| kinds(&table(&profile(vec![kernel("k", vec![launch])]), &code, None));
    assert_eq!(of(shape(416 * 64, 64, 1)), [WarningKind::OneWaveBarriers]);
    assert_eq!(of(shape(416 * 128, 128, 1)), []);
    // 16 waves of 40 registers: room for 12 waves on each SIMD of 512 registers, but eight is the most: two workgroups.
    assert_eq!(of(shape(208 * 1024, 1024, 1)), []);
    let mut large = kernel("k", vec![shape(208 * 1024, 1024, 1)]);
    large.before = large.before.map(|before| Resources { vgprs: 96, ..before });
    // Five waves on a SIMD are 20 on a compute unit: one workgroup of 16.
    assert_eq!(kinds(&table(&profile(vec![large]), &[], None)), [WarningKind::OneWorkgroup]);
}

#[test]
fn uneven_work_is_seen_in_the_counters_of_waves() {
    let uneven = |executions: [u64; 4]| {
        let mut kernel = kernel("k", vec![shape(416 * 64, 256, 1)]);
        kernel.sites.push(SiteTotals {
            address: 0x20,
            instruction: "s_cbranch_scc1 4".to_owned(),
            source: None,
            counts: ScalarCounts { executions: executions.iter().sum(), taken: 0 }.into(),
        });
        let mut profile = profile(vec![kernel]);
        profile.waves = (0..4)
            .map(|number| WaveCounts {
                region: None,
                kernel: 0,
                dispatch: Some(0),
                workgroup: [number, 0, 0],
                wave: 0,
                counters: vec![executions[number as usize], 7],
            })
            .collect();
        kinds(&table(&profile, &[], None))
    };
    assert_eq!(uneven([10, 10, 10, 10]), []);
    assert_eq!(uneven([10, 10, 10, 17]), [], "1.45 times the mean");
    assert_eq!(uneven([10, 10, 10, 18]), [WarningKind::Uneven], "18 is 1.5 times 12");
}

#[test]
fn a_target_without_a_board_has_no_numbers_that_need_one() {
    let mut unknown = kernel("k", vec![shape(64, 64, 1000)]);
    unknown.target = "gfx1036".to_owned();
    unknown.before = unknown.before.map(|before| Resources { wave_size: 32, ..before });
    let table = table(&profile(vec![unknown]), &[], None);
    assert_eq!((table.boards[0].board.as_deref(), table.warnings.len()), (None, 0));
    assert_eq!((table.rows[0].waves, table.rows[0].waves_per_cu, table.rows[0].rounds), (Some(2), None, None));
}

#[test]
fn a_report_has_the_table_after_a_summary_of_ten_lines() {
    let kernels = (0..1000).map(|number| kernel(&format!("k{number}"), vec![shape(64, 64, 200)])).collect();
    let mut profile = profile(kernels);
    profile.host.add(HostOperation::HostToDevice, 4096);
    let mut report = Report::new(&profile, crate::RunInfo::default());
    report.summarise(&SummaryInputs { profile: &profile, board: None, code: &[] });
    let text = render_part(&report, Details::Summary, Style::default());
    assert!(text.lines().count() <= 10, "{text}");
    assert!(text.contains("many tiny launches: 200 launches of 1 workgroup (1 wave) on 104 CUs"), "{text}");
    assert!(text.contains("more kernels"), "{text}");
    let whole = render_part(&report, Details::All, Style::default());
    assert!(whole.starts_with(text.trim_end()) && whole.contains("host to device 1 time, 4096 bytes"), "{whole}");
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["launch_table"]["rows"][0]["dispatches"], 200);
    assert_eq!(json["launch_table"]["warnings"][0]["kind"], "many_tiny");
    assert_eq!(serde_json::from_value::<Report>(json).unwrap(), report);
}

#[test]
fn launches_in_their_order_are_those_of_the_rows() {
    let shapes = vec![shape(64, 64, 1), shape(128, 64, 2)];
    let order: Vec<LaunchSize> = shapes.iter().filter_map(LaunchSize::of).collect();
    let mut profile = profile(vec![kernel("k", shapes), kernel("other", vec![shape(64, 64, 2)])]);
    profile.host.add(HostOperation::HostToDevice, 4096);
    for size in [order[0], order[1], order[1]] {
        profile.host.add_launch("k", size);
    }
    (0..2).for_each(|_| profile.host.add_launch("other", order[0]));
    let mut lines = Vec::new();
    text::host_lines(&table(&profile, &[], None), &mut lines);
    let expected = "in order: host to device (4096 bytes); k [64×1×1 of 64×1×1]; k [128×1×1 of 64×1×1] × 2; other × 2";
    assert_eq!(lines.last().map(|line| line.trim()), Some(expected));
}
