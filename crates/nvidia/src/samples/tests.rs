//! The texts are made by hand from the columns that the tools' documents and readers of others name: no report of a GPU
//! was at hand.

use super::{FunctionSamples, read};

const PAGE: &str = include_str!("../../fixtures/samples/source_page.csv");
const OLDER: &str = include_str!("../../fixtures/samples/older_source_page.csv");
const CUPTI: &str = include_str!("../../fixtures/samples/cupti.txt");

fn at(samples: &FunctionSamples, offset: u64) -> (u64, u64, Vec<(&str, u64)>, Option<u64>) {
    let place = &samples.places[&offset];
    let stalled = place.stalled.iter().map(|(reason, count)| (reason.as_str(), *count)).collect();
    (place.samples, place.issued, stalled, place.executions)
}

#[test]
fn source_pages() {
    let samples = read(PAGE).expect("a page");
    assert_eq!(
        samples.iter().map(|each| each.name.as_str()).collect::<Vec<_>>(),
        ["stream(const float *, int)", "reduce"]
    );
    assert_eq!(samples[0].places.keys().copied().collect::<Vec<_>>(), [0, 16, 32, 48]);
    assert_eq!(at(&samples[0], 16), (1_530, 30, vec![("lg", 100), ("long_sb", 1_400)], Some(2_048)));
    assert_eq!(samples[0].places[&16].instruction.as_deref(), Some("@!P0 LDG.E R2, [R2.64]"));
    // Two launches: the sum.
    assert_eq!(at(&samples[1], 0), (11, 1, vec![("barrier", 10)], Some(6)));
}

#[test]
fn older_pages_have_no_name() {
    let samples = read(OLDER).expect("a page");
    assert_eq!(samples.len(), 1);
    assert_eq!(samples[0].name, "");
    assert_eq!(at(&samples[0], 16), (12, 2, vec![("wait", 10)], Some(64)));
}

#[test]
fn cupti_text() {
    let samples = read(CUPTI).expect("samples");
    assert_eq!(samples.iter().map(|each| each.name.as_str()).collect::<Vec<_>>(), ["void pair<int, 4>(int*)", "k"]);
    assert_eq!(at(&samples[0], 0x50), (9, 2, vec![("long_scoreboard", 7)], None));
}

#[test]
fn what_has_no_addresses_is_refused() {
    let refused = |text: &str| read(text).expect_err("refused").to_string();
    assert!(refused("").contains("empty"));
    assert!(refused("hello").contains("neither"));
    assert!(
        refused("\"Kernel Name\",\"k\"\n\"#\",\"Source\",\"# Samples\"\n\"1\",\"x = 1;\",\"3\"\n")
            .contains("CUDA source")
    );
    assert!(refused("\"ID\",\"Kernel Name\",\"Metric\"\n\"0\",\"k\",\"x\"\n").contains("no header of a source page"));
    assert!(refused("\"#\",\"Address\",\"Source\"\n\"1\",\"0\",\"EXIT\"\n").contains("SourceCounters"));
    let page = |row: &str| format!("\"#\",\"Address\",\"Source\",\"# Samples\"\n\"1\",\"0\",\"NOP\",\"0\"\n{row}\n");
    assert!(refused(&page("\"2\",\"zz\",\"EXIT\",\"0\"")).contains("line 3: \"zz\" is no address"));
    assert!(refused(&page("\"2\",\"16\",\"EXIT\",\"1.5\"")).contains("\"1.5\" is no whole number"));
    assert!(refused(&page("\"2\",\"16\",\"EXIT\"")).contains("3 columns, the header has 4"));
    assert!(refused(&page("\"2\",\"8\",\"EXIT\",\"0\"")).contains("16 bytes"));
    assert!(
        refused("functionName: k, functionIndex: 0, pcOffset: x, lineNumber: 1, fileName: a, stallReasonCount: 0")
            .contains("is no offset")
    );
    assert!(
        refused(
            "functionName: k, functionIndex: 0, pcOffset: 0, lineNumber: 1, fileName: a, stallReasonCount: 2, a: 1"
        )
        .contains("stallReasonCount says 2")
    );
}
