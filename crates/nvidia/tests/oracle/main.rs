//! The decoder against the vendor's disassembler, `nvdisasm -c -lrm narrow`: of each instruction the registers that it
//! reads and writes, and where branches go. It is asked where the folder is that `fetch.sh` fills:
//!
//!     crates/nvidia/tests/oracle/fetch.sh target/nvidia
//!     WAVETAP_NVIDIA=$PWD/target/nvidia cargo test -p wavetap-nvidia --test oracle -- --nocapture
//!
//! Without it, the fixtures alone are compared, with a listing of theirs that is committed.

mod changed;
mod compare;
mod completeness;
mod golden;
mod listing;
mod puzzles;
mod tool;

use std::collections::BTreeMap;

use compare::Tally;
use completeness::Reads;
use wavetap_nvidia::container::{Cubin, ImageKind, images};

fn report(tally: &Tally) {
    println!("  compared {} instructions, targets of {} branches", tally.instructions, tally.branches);
    println!("  not compared {:?}, refused {:?}", tally.not_compared, tally.refused);
    for (what, (count, example)) in &tally.differences {
        println!("  {what}: {count}  {example}");
    }
}

const MODELS: [u16; 7] = [75, 80, 86, 89, 90, 100, 120];

fn fixture(model: u16) -> Vec<u8> {
    std::fs::read(format!("fixtures/sm_{model}.cubin")).expect("a fixture")
}

/// The cubins of the library that have functions, by model. The linker adds some without.
fn library() -> Option<BTreeMap<u16, Vec<Vec<u8>>>> {
    let Some(folder) = tool::folder() else {
        println!("skipped: WAVETAP_NVIDIA is not set");
        return None;
    };
    let file = std::fs::read(folder.join(tool::LIBRARY)).expect("the library");
    let mut all: BTreeMap<u16, Vec<Vec<u8>>> = BTreeMap::new();
    for image in images(&file).expect("a library").iter().filter(|image| image.kind == ImageKind::Cubin) {
        let contents = image.contents().expect("an entry").into_owned();
        let cubin = Cubin::parse(contents.clone(), tool::LIBRARY).expect("a cubin");
        if cubin.functions().len() > 0 {
            all.entry(cubin.model().number()).or_default().push(contents);
        }
    }
    assert_eq!(all.keys().copied().collect::<Vec<_>>(), MODELS);
    Some(all)
}

/// Every instruction of every function of a library, on all seven targets.
#[test]
fn real_code() {
    let mut faults = 0;
    for (model, cubins) in library().unwrap_or_default() {
        let mut tally = Tally::default();
        for contents in cubins {
            let listing = tool::disassemble(&["-c", "-lrm", "narrow"], &contents).expect("a listing");
            let cubin = Cubin::parse(contents, tool::LIBRARY).expect("a cubin");
            compare::cubin(&mut tally, &cubin, &listing::read(&listing));
        }
        println!("sm_{model}");
        report(&tally);
        assert!(tally.instructions > 90_000 && tally.branches > 3_000, "too little was compared");
        faults += tally.differences.len() + tally.refused.len();
    }
    assert_eq!(faults, 0, "differences");
}

/// The fixtures, against committed listings of theirs.
#[test]
fn fixtures() {
    let mut tally = Tally::default();
    for model in MODELS {
        let path = format!("fixtures/roles/sm_{model}.txt");
        if std::env::var_os("BLESS").is_some() {
            let listing = tool::disassemble(&["-c", "-lrm", "narrow"], &fixture(model)).expect("a listing");
            std::fs::create_dir_all("fixtures/roles").expect("a folder");
            std::fs::write(&path, golden::text(&listing::read(&listing))).expect("written");
        }
        let listing = golden::read(&std::fs::read_to_string(path).expect("a listing"));
        let cubin = Cubin::parse(fixture(model), "fixture").expect("a cubin");
        compare::cubin(&mut tally, &cubin, &listing);
    }
    report(&tally);
    assert!(tally.instructions > 2_500 && tally.branches > 100, "too little was compared");
    assert!(tally.differences.is_empty() && tally.refused.is_empty());
}

/// No read of a result in flight, and nearly nothing but such reads with masks that are off by one.
fn reads_come_after_waits(model: u16, cubins: &[Vec<u8>]) -> Reads {
    let (mut found, mut shifted) = (Reads::default(), Reads::default());
    for contents in cubins {
        let cubin = Cubin::parse(contents.clone(), "a cubin").expect("a cubin");
        found += completeness::of_cubin(&cubin, true);
        shifted += completeness::of_cubin(&completeness::with_shifted_masks(contents, &cubin), false);
    }
    println!("sm_{model}: {found:?}");
    let rate = shifted.violations as f64 / shifted.pairs as f64;
    println!("  masks off by one: {} of {} pairs, {:.1} %", shifted.violations, shifted.pairs, 100.0 * rate);
    assert_eq!(found.violations, 0);
    assert!(rate >= 0.95, "the test has no teeth");
    found
}

#[test]
fn reads_of_fixtures() {
    for model in MODELS {
        let found = reads_come_after_waits(model, &[fixture(model)]);
        assert!(found.pairs > 20, "too little was compared");
    }
}

#[test]
fn reads_of_real_code() {
    for (model, cubins) in library().unwrap_or_default() {
        let found = reads_come_after_waits(model, &cubins);
        assert!(found.pairs > 8_000, "too little was compared");
    }
}

/// Real instructions with one to three other bits, where the disassembler takes them for instructions: roles that are
/// decoded must be right, or the instruction refused. Numbers that mean none (`???`, `INVALID`) say nothing.
#[test]
fn changed_words() {
    if tool::folder().is_none() {
        println!("skipped: WAVETAP_NVIDIA is not set");
        return;
    }
    let rounds: u64 = std::env::var("WAVETAP_MUTATIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(1);
    for model in MODELS {
        let host = std::fs::read(format!("fixtures/one/sm_{model}.cubin")).expect("a fixture");
        let tally = changed::compare(model, &fixture(model), &host, rounds);
        println!("sm_{model}");
        report(&tally);
        assert!(tally.instructions > 100 * rounds, "too little was compared");
        assert!(tally.differences.len() <= changed::KNOWN.len(), "differences");
        assert!(tally.differences.keys().all(|what| changed::KNOWN.contains(&what.as_str())), "differences");
    }
}
