//! What a page says of made-up kernels.

use super::*;
use crate::disassembly::{CodeKind, CodeText, InstText};
use crate::mix::{KernelMix, MixCounts, OperationRow, OperationSum};
use crate::{Report, RunInfo};
use wavetap_profile::file::{Backend, KernelTotals, Origin, Profile, Work};
use wavetap_profile::map::Source;
use wavetap_profile::time::{DispatchTime, MemoryTime, TimeProfile};

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
            dispatches: vec![DispatchTime { dispatch: 0, modelled_cycles: 17_000 }],
            memory: MemoryTime { l1_misses: 32, l2_misses: 16, ..MemoryTime::default() },
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
