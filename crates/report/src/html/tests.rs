//! What a page says of made-up kernels.

use super::*;
use crate::disassembly::{CodeKind, CodeText, InstText};
use crate::mix::{KernelMix, MixCounts, OperationRow, OperationSum};
use crate::{Report, RunInfo};
use wavetap_profile::accuracy::Accuracy;
use wavetap_profile::file::{Backend, Dimension, KernelTotals, Origin, Profile, Work};
use wavetap_profile::map::Source;
use wavetap_profile::time::{DispatchTime, InstructionCycles, MemoryTime, TimeProfile};

/// A kernel of two instructions on line 7 and one on line 9.
fn code(instructions: usize) -> CodeText {
    let instruction = |number: usize| InstText {
        address: 4 * number as u64,
        bytes: "00000000".to_owned(),
        instruction: format!("s_nop {number}"),
        times: 1,
        reachable: true,
        source: Some(Source { file: "k.hip".to_owned(), line: if number < 2 { 7 } else { 9 } }),
        ..InstText::default()
    };
    CodeText {
        kind: CodeKind::Kernel,
        name: Some("k".to_owned()),
        demangled: Some("k()".to_owned()),
        target: "gfx90a".to_owned(),
        section: ".text".to_owned(),
        address: 0,
        end: 4 * instructions as u64,
        kernel: None,
        problem: None,
        pressure: None,
        counted: None,
        blocks: Vec::new(),
        loops: Vec::new(),
        instructions: (0..instructions).map(instruction).collect(),
    }
}

fn report(kernels: &[(&str, u64, Option<u64>)]) -> Report {
    let mut profile = Profile::new(Origin::Counters, Backend::Emulator);
    for (name, waves, instructions) in kernels {
        profile.kernels.push(KernelTotals {
            name: (*name).to_owned(),
            demangled: format!("{name}()"),
            target: "gfx90a".to_owned(),
            object: "00".to_owned(),
            waves: *waves,
            work: instructions.map(|instructions| Work { instructions, ..Work::default() }),
            ..KernelTotals::default()
        });
    }
    profile.set_ended(true);
    Report::new(&profile, RunInfo::default())
}

#[test]
fn shares_are_of_what_is_known_of_all_kernels() {
    let page = render(&report(&[("few", 9, Some(100)), ("many", 1, Some(300))]), &PageData::default());
    assert!(page.contains("as the emulator saw them") && page.contains("75.0 %"), "{page}");
    assert!(page.find("many()").unwrap() < page.find("few()").unwrap(), "the largest share first");
    let page = render(&report(&[("few", 9, Some(100)), ("many", 1, None)]), &PageData::default());
    assert!(page.contains("Shares are of waves") && page.contains("90.0 %"), "{page}");
    assert!(page.find("few()").unwrap() < page.find("many()").unwrap());
}

#[test]
fn what_is_not_known_is_not_added_up() {
    let report = report(&[("k", 1, None)]);
    let mut data = PageData::default();
    let known = data.kernel_mut("00", "k");
    known.code = Some(code(3));
    let facts = |address, executions| InstructionFacts { address, executions, ..InstructionFacts::default() };
    known.instructions = vec![facts(0, Some(5)), facts(4, None), facts(8, Some(2))];
    let page = render(&report, &data);
    let row = |line: u32| {
        let row = page.split_once(&format!("<tr id=\"k1-s0-{line}\">")).expect("the line").1;
        row.split_once("</tr>").expect("its end").0.to_owned()
    };
    assert!(row(7).contains("≥ 5"), "one of its two instructions is not known: {}", row(7));
    assert!(row(9).contains(">2<") && !row(9).contains('≥'), "{}", row(9));
}

#[test]
fn a_page_says_what_it_has_no_room_for() {
    let report = report(&[("k", 1, None)]);
    let mut data = PageData::default();
    data.kernel_mut("00", "k").code = Some(code(60_000));
    let page = render(&report, &data);
    assert!(page.contains("because the page would be too large: code."), "{}", page.len());
    assert!(page.len() < 1 << 20 && !page.contains("href=\"#k1-0\""), "no link to what is not there");
    data.kernel_mut("00", "k").code = Some(code(100));
    let page = render(&report, &data);
    assert!(!page.contains("too large") && page.contains("href=\"#k1-0\""));
}

/// Of a kernel whose blocks were counted: 4096 floating-point operations of f32.
fn mix() -> KernelMix {
    let sum = OperationSum { convention: 4096, effective: 4096, lanes_unknown: 0 };
    KernelMix {
        name: "k".to_owned(),
        demangled: "k()".to_owned(),
        target: "gfx90a".to_owned(),
        object: "00".to_owned(),
        wave_size: 64,
        dispatches: 1,
        waves: 1,
        dropped: 0,
        unfinished: 0,
        uncounted_callees: Vec::new(),
        addresses_known: true,
        total: MixCounts {
            instructions: 64,
            operations: vec![OperationRow { number: "f32".to_owned(), sum }],
            flops: sum,
            ..MixCounts::default()
        },
        loops: Vec::new(),
        lines: Vec::new(),
    }
}

#[test]
fn kernels_are_under_the_roofs_of_the_usual_board() {
    let mut report = report(&[("k", 1, None)]);
    let mut data = PageData::default();
    data.kernel_mut("00", "k").mix = Some(mix());
    let page = render(&report, &data);
    assert!(page.contains("gfx90a on mi210") && page.contains("vector f32, counted"), "{page}");
    assert!(page.contains("Points need modelled time") && !page.contains("svg class=\"roofline\""), "{page}");
    // 17,000 cycles at 1700 MHz are 10 µs; 16 lines of 128 bytes of memory are 2048 bytes.
    report.time = Some(TimeProfile {
        schema: wavetap_profile::time::SCHEMA.to_owned(),
        modelled: true,
        latencies: Vec::new(),
        board: None,
        accuracy: vec![Accuracy::of("gfx90a", "Instinct MI210", false)],
        clock_mhz: None,
        complete: true,
        processes: 1,
        kernels: vec![KernelTime {
            name: "k".to_owned(),
            demangled: "k()".to_owned(),
            target: "gfx90a".to_owned(),
            object: "00".to_owned(),
            waves: 1,
            most_waves_per_simd: 1,
            modelled_cycles: 17_000,
            modelled_wave_cycles: 17_000,
            modelled_added_cycles: 0,
            dispatches: vec![DispatchTime {
                dispatch: 0,
                modelled_cycles: 17_000,
                modelled_start: None,
                region: None,
                extrapolated: None,
            }],
            memory: MemoryTime { l1_misses: 32, l2_misses: 16, ..MemoryTime::default() },
            traced: None,
            resources: Vec::new(),
            instructions: Vec::new(),
        }],
    });
    let page = render(&report, &data);
    let drawing =
        page.split_once("svg class=\"roofline\"").expect("a drawing").1.split_once("</svg>").expect("its end").0;
    assert!(drawing.contains("memory: 2.000 operations for each byte, 0.4 GFLOP/s, modelled"), "{drawing}");
    assert!(drawing.contains("memory: 1638 GB/s") && drawing.contains("vector f32: 45261 GFLOP/s"), "{drawing}");
    assert!(!drawing.contains("NaN") && !drawing.contains("inf"), "{drawing}");
    assert!(page.contains("<td class=\"n\">10.0</td>"), "the modelled time in µs: {page}");
    let accuracy = "Cycles and times: modelled for Instinct MI210, error not measured on this board";
    assert!(page.contains(accuracy), "{page}");
}

#[test]
fn measured_latencies_are_those_of_executed_loads() {
    use wavetap_explain::sections::{MeasuredLatency, MeasuredLoad};
    use wavetap_profile::probes::latency::{LatencyBucket, LatencyCounts, LatencyKind};
    let counts = |executions, cycles| LatencyCounts {
        executions,
        cycles,
        wrapped: 0,
        shortest: Some(200),
        idle: 0,
        longest: 700,
        buckets: vec![LatencyBucket { from: 192, below: Some(256), executions }],
    };
    let load = |address, executions| MeasuredLoad {
        address,
        instruction: format!("global_load_{address:x}"),
        source: None,
        kind: LatencyKind::ClauseAtItsWait,
        counts: counts(executions, 300 * executions),
    };
    let mut report = report(&[("k", 1, None)]);
    assert!(!render(&report, &PageData::default()).contains("Measured latency"));
    let loads = vec![load(0x10, 4), load(0x20, 0)];
    report.kernels[0].sections.measured_latency = Some(MeasuredLatency { empty: counts(2, 152), loads });
    let page = render(&report, &PageData::default());
    for expected in ["nothing between them take 76.0", "global_load_10", "192–255", "from its clause to its wait"] {
        assert!(page.contains(expected), "{expected}\n{page}");
    }
    assert!(page.contains("<td class=\"n\">224.0</td>") && !page.contains("global_load_20"), "{page}");
}

/// Modelled time of the kernel `k`: cycles of issue and of stalls of instructions at these addresses and lines.
fn time(instructions: &[(u64, u32, u64, u64)], dispatches: &[u64]) -> TimeProfile {
    let instruction = |(address, line, issued, stalled): &(u64, u32, u64, u64)| InstructionCycles {
        address: *address,
        instruction: "s_waitcnt vmcnt(0)".to_owned(),
        source: Some(Source { file: "k.hip".to_owned(), line: *line }),
        executions: 1,
        modelled_issued: *issued,
        modelled_stalled: [("WAITCNT".to_owned(), *stalled)].into(),
        modelled_waits_for: Vec::new(),
        modelled_vector_alu: 0,
        lines: 0,
        modelled_lds_conflict_cycles: 0,
    };
    let mut time = TimeProfile::new(Vec::new());
    time.complete = true;
    time.kernels.push(KernelTime {
        name: "k".to_owned(),
        demangled: "k()".to_owned(),
        target: "gfx90a".to_owned(),
        object: "00".to_owned(),
        waves: 1,
        most_waves_per_simd: 1,
        modelled_cycles: dispatches.iter().sum(),
        modelled_wave_cycles: 1000,
        modelled_added_cycles: 0,
        dispatches: (0..)
            .zip(dispatches)
            .map(|(dispatch, cycles)| DispatchTime {
                dispatch,
                modelled_cycles: *cycles,
                modelled_start: None,
                region: None,
                extrapolated: None,
            })
            .collect(),
        memory: MemoryTime::default(),
        traced: None,
        resources: Vec::new(),
        instructions: instructions.iter().map(instruction).collect(),
    });
    time
}

/// A predicted cause of the wait at an address.
fn chain(address: u64, cycles: u64, reading: &str) -> crate::slice::Chain {
    serde_json::from_value(serde_json::json!({
        "address": format!("{address:#x}"), "counter": "vmcnt", "share": 1.0, "predicted_cycles": cycles,
        "kernel_share": 0.5, "reading": reading, "path": [],
        "evidence": {
            "certainty": "must", "executions": "counted", "latency": { "min": 1, "typical": 500, "max": 900 },
            "hidden_cycles": 0, "stable": true, "active_lanes": null,
        },
    }))
    .expect("a chain")
}

/// Between two texts of a page.
fn part<'p>(page: &'p str, begin: &str, end: &str) -> &'p str {
    let rest = page.split_once(begin).unwrap_or_else(|| panic!("no {begin}: {page}")).1;
    rest.split_once(end).unwrap_or_else(|| panic!("no {end}: {rest}")).0
}

#[test]
fn modelled_stalls_rank_waits_where_there_are_some() {
    let mut report = report(&[("k", 1, None)]);
    // The prediction is that waves wait at 0x8, on line 506; the model has them stand at 0x4, on line 444.
    report.kernels[0].chains = vec![chain(8, 9000, "for the load of 506"), chain(4, 100, "for the load of 444")];
    let predicted = render(&report, &PageData::default());
    assert!(predicted.contains("Waits most for (predicted)") && predicted.contains("for the load of 506"));
    let at = |page: &str, text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}: {page}"));
    assert!(at(&predicted, "for the load of 506") < at(&predicted, "for the load of 444"));
    report.time = Some(time(&[(4, 444, 1, 310), (8, 506, 1, 140), (12, 9, 400, 50)], &[1000]));
    let modelled = render(&report, &PageData::default());
    assert!(!modelled.contains("Waits most for (predicted)"), "{modelled}");
    // 310 of 500 cycles of stalls.
    assert!(modelled.contains("k.hip:444: 62.0 % of stall cycles, WAITCNT"), "{modelled}");
    assert!(at(&modelled, "for the load of 444") < at(&modelled, "for the load of 506"));
    let why = part(&modelled, "Why it waits", "</details>");
    assert!(why.contains("310 modelled stall cycles at <b>k.hip:444</b>") && why.contains("WAITCNT"), "{why}");
    // The text agrees.
    let text = crate::text::render(&report, crate::text::Style::default());
    let why = text.split_once("why (modelled stall cycles").expect("the causes").1;
    assert!(at(why, "for the load of 444") < at(why, "for the load of 506"), "{why}");
    assert!(why.contains("62 %  310 modelled stall cycles, most of them WAITCNT: for the load of 444"), "{why}");
}

#[test]
fn source_text_comes_before_the_numbers() {
    let mut report = report(&[("k", 1, None)]);
    report.time = Some(time(&[(0, 7, 10, 20), (4, 7, 10, 5), (8, 9, 1, 900)], &[1000]));
    let text = |_: &str, line: u32| (line < 20).then(|| format!("line <{line}> of the source"));
    let mut data = PageData::default();
    data.source_text = Some(&text);
    data.kernel_mut("00", "k").code = Some(code(3));
    let page = render(&report, &data);
    let table = part(&page, "<table data-name=\"source\">", "</table>");
    let cells = |row: &str, cell: &str| -> Vec<String> {
        let begin = format!("<{cell}");
        let cells = row.split(&begin).skip(1);
        cells.map(|cell| cell.split_once('>').map_or("", |(_, text)| text).to_owned()).collect()
    };
    let heads = cells(part(table, "<thead>", "</thead>"), "th");
    assert!(
        heads[0].starts_with("Line") && heads[1].starts_with("k.hip") && heads[2].starts_with("Modelled"),
        "{heads:?}"
    );
    let row = cells(part(table, "<tr id=\"k1-s0-9\">", "</tr>"), "td");
    assert!(row[1].starts_with("line &lt;9&gt; of the source") && row[2].contains("901"), "{row:?}");
    // The line that costs most is named before the code, with its text and its wait.
    let hottest = part(&page, "data-name=\"hottest\"", "</table>");
    let first = part(part(hottest, "<tbody>", "</tbody>"), "<tr>", "</tr>");
    assert!(first.contains("k.hip:9") && first.contains("line &lt;9&gt;") && first.contains("WAITCNT"), "{first}");
    assert!(page.find("data-name=\"hottest\"") < page.find("data-name=\"source\""));
}

#[test]
fn dispatches_have_their_launches_and_cycles() {
    use wavetap_profile::host::{HostOperation, HostStep, LaunchSize};
    use wavetap_profile::launches::LaunchShape;
    let mut profile = Profile::new(Origin::Counters, Backend::Emulator);
    let shape = |grid: u32, dispatches| LaunchShape {
        grid: Some([grid, 1, 1]),
        workgroup: [64, 1, 1],
        dynamic_lds: 0,
        dispatches,
    };
    let step = |grid: u32, count| HostStep {
        operation: HostOperation::Launch,
        kernel: Some("k".to_owned()),
        size: Some(LaunchSize { grid: [grid, 1, 1], workgroup: [64, 1, 1], dynamic_lds: 0 }),
        count,
        bytes: 0,
    };
    profile.kernels.push(KernelTotals {
        name: "k".to_owned(),
        demangled: "k()".to_owned(),
        target: "gfx90a".to_owned(),
        object: "00".to_owned(),
        launches: vec![shape(128, 2), shape(4096, 1)],
        ..KernelTotals::default()
    });
    profile.host.order = vec![step(128, 1), step(4096, 1), step(128, 1)];
    profile.set_ended(true);
    let page = |cycles: &[u64]| {
        let mut report = Report::new(&profile, RunInfo::default());
        report.time = Some(time(&[(0, 7, 1, 1)], cycles));
        report.summarise(&crate::summary::SummaryInputs { profile: &profile, board: None, code: &[] });
        render(&report, &PageData::default())
    };
    let shown = page(&[100, 700, 200]);
    let table = part(&shown, "data-name=\"dispatches\"", "</table>");
    let rows: Vec<&str> = table.split("<tr>").skip(2).collect();
    assert_eq!(rows.len(), 3, "{table}");
    assert!(
        rows[1].contains("<td>4096×1×1</td>") && rows[1].contains(">700<") && rows[1].contains("70.0 %"),
        "{table}"
    );
    assert!(rows[0].contains("<td>128×1×1</td>") && rows[2].contains("<td>128×1×1</td>"), "{table}");
    // 700 cycles at the 1700 MHz of an MI210.
    assert!(rows[1].contains(">0.41<"), "{table}");
    // Another number of dispatches: which launch was which is not known, and not guessed.
    let other = page(&[100, 700]);
    let table = part(&other, "data-name=\"dispatches\"", "</table>");
    assert!(table.contains("not known") && !table.contains("4096"), "{table}");
    // Of many, the kinds and those that cost most.
    profile.kernels[0].launches = vec![shape(128, 100)];
    profile.host.order = vec![step(128, 100)];
    let mut report = Report::new(&profile, RunInfo::default());
    report.time = Some(time(&[(0, 7, 1, 1)], &(1..=100).collect::<Vec<u64>>()));
    report.summarise(&crate::summary::SummaryInputs { profile: &profile, board: None, code: &[] });
    let many = render(&report, &PageData::default());
    let kinds = part(&many, "data-name=\"kinds\"", "</table>");
    assert!(kinds.contains(">100<") && kinds.contains(">5050<") && kinds.contains(">50<"), "{kinds}");
    let table = part(&many, "data-name=\"dispatches\"", "</table>");
    assert_eq!(table.matches("<tr>").count(), 1 + 16, "{table}");
    assert!(many.contains("The 16 dispatches with most modelled cycles, of 100:"));
}

#[test]
fn labels_of_rooflines_do_not_overlap() {
    // Six kernels at nearly the same place.
    let names = ["a", "b", "c", "d", "e", "f"];
    let mut report = report(&names.map(|name| (name, 1, None)));
    let mut data = PageData::default();
    let mut all = TimeProfile::new(Vec::new());
    for (number, name) in (0..).zip(names) {
        let demangled = format!("{name}()");
        data.kernel_mut("00", name).mix = Some(KernelMix { name: name.to_owned(), demangled, ..mix() });
        let mut of_kernel = time(&[], &[17_000 + number]).kernels.remove(0);
        of_kernel.name = name.to_owned();
        of_kernel.memory =
            MemoryTime { l1_misses: 32, l2_misses: 16, l2_hits: 16, l1_hits: 4, ..MemoryTime::default() };
        all.kernels.push(of_kernel);
    }
    report.time = Some(all);
    let page = render(&report, &data);
    let drawing = part(&page, "svg class=\"roofline\"", "</svg>");
    let attribute = |tag: &str, name: &str| -> f64 {
        part(tag, &format!("{name}=\""), "\"").parse().unwrap_or_else(|_| panic!("{name} of {tag}"))
    };
    // Letters of a text of 11 units are 6.4 units wide on average; they reach 9.5 units up and 2.5 down.
    let boxes: Vec<(String, [f64; 4])> = drawing
        .split("<text class=\"label\"")
        .skip(1)
        .map(|label| {
            let (tag, rest) = label.split_once('>').expect("a tag");
            let text = rest.split_once('<').expect("its end").0;
            let (x, y) = (attribute(tag, " x"), attribute(tag, " y"));
            (text.to_owned(), [x, y - 9.5, x + 6.4 * text.chars().count() as f64, y + 2.5])
        })
        .collect();
    assert!(boxes.len() >= 6 + 4, "points and roofs have labels: {boxes:?}");
    for (at, (text, area)) in boxes.iter().enumerate() {
        assert!(area[0] >= 0.0 && area[2] <= 1000.0 && area[1] >= 0.0 && area[3] <= 380.0, "{text}: {area:?}");
        let overlaps = |other: &[f64; 4]| {
            area[0] < other[2] - 0.11
                && other[0] < area[2] - 0.11
                && area[1] < other[3] - 0.11
                && other[1] < area[3] - 0.11
        };
        let other = boxes[..at].iter().find(|(_, other)| overlaps(other));
        assert!(other.is_none(), "{text} {area:?} is on {other:?}");
    }
}

#[test]
fn instances_of_a_template_are_told_apart() {
    let mut profile = Profile::new(Origin::Counters, Backend::Emulator);
    for (waves, argument) in [(3, "float"), (2, "double"), (1, "int")] {
        profile.kernels.push(KernelTotals {
            name: format!("k_{argument}"),
            demangled: format!("void a_template_with_a_long_name_of_its_own<{argument}>({argument}*)"),
            target: "gfx90a".to_owned(),
            object: "00".to_owned(),
            waves,
            ..KernelTotals::default()
        });
    }
    profile.set_ended(true);
    let mut report = Report::new(&profile, RunInfo::default());
    let mut all = TimeProfile::new(Vec::new());
    for argument in ["float", "double", "int"] {
        let mut of_kernel = time(&[], &[100]).kernels.remove(0);
        of_kernel.name = format!("k_{argument}");
        all.kernels.push(of_kernel);
    }
    report.time = Some(all);
    report.summarise(&crate::summary::SummaryInputs { profile: &profile, board: None, code: &[] });
    let summary = report.summary.as_mut().expect("a summary");
    assert_eq!(summary.kernels[0].title, "a_template_with_a_long_name_of_its_own<…> (3 instances)");
    let page = render(&report, &PageData::default());
    // Lanes of the timeline are no longer than 34 letters, and differ.
    let drawing = part(&page, "svg class=\"timeline\"", "</svg>");
    let text = |text| part(text, ">", "<").replace("&lt;", "<").replace("&gt;", ">");
    let mut lanes: Vec<String> = drawing.split("<text").skip(1).map(text).collect();
    assert!(lanes.len() == 3 && lanes.iter().all(|lane| lane.chars().count() <= 34), "{lanes:?}");
    lanes.sort_unstable();
    lanes.dedup();
    assert_eq!(lanes.len(), 3, "{lanes:?}");
    assert!(CSS.contains("@media print") && CSS.contains("details-content"));
}

#[test]
fn the_most_uneven_kernels_and_sites_of_ranks_are_shown() {
    use wavetap_explain::imbalance::{Imbalance, KernelImbalance, SiteImbalance, Spread};
    let spread = |what: &str, max: u64| Spread {
        what: what.to_owned(),
        min: 1,
        min_at: "0".to_owned(),
        mean: f64::midpoint(1.0, max as f64),
        max,
        max_at: "1".to_owned(),
        imbalance: Some(max as f64 / f64::midpoint(1.0, max as f64)),
    };
    let site = |number: u64| SiteImbalance {
        address: number,
        instruction: "s_nop".to_owned(),
        source: None,
        probe: "branches".to_owned(),
        kind: "scalar".to_owned(),
        fields: vec![spread("taken", 2 + number)],
    };
    let kernel = |number: u64| KernelImbalance {
        name: format!("k{number}"),
        demangled: format!("k{number}()"),
        target: "gfx90a".to_owned(),
        object: "00".to_owned(),
        totals: vec![spread("waves", 3 + 2 * number)],
        sites: (0..3).map(|site_of| site(3 * number + site_of)).collect(),
    };
    let mut report = report(&[("k250", 9, None)]);
    assert!(!render(&report, &PageData::default()).contains("id=\"imbalance\""), "nothing was kept apart");
    let of = |by, count| Imbalance { by, count, kernels: (0..251).map(kernel).collect() };
    report.imbalance = vec![of(Dimension::Rank, 2), of(Dimension::Host, 1)];
    let page = render(&report, &PageData::default());
    assert!(page.contains("Imbalance of 2 ranks") && page.contains("1 host: nothing to compare."), "{page}");
    // Most beyond the mean first: the last kernels.
    assert!(page.contains(">k250()<") && page.contains("k51()") && !page.contains("k50()"), "{page}");
    assert!(page.contains("And 51 more kernels") && page.contains("And 253 more numbers of sites"), "{page}");
    assert!(page.find(">2ee<") < page.find(">2ed<") && page.contains(">fd<") && !page.contains(">fc<"), "{page}");
}
