//! Inserted code is what it was: digests of what rewriting adds to every sample and, with `./test.sh --full`, to some
//! two thousand kernels of the corpora, in every counter mode. `BLESS=1` writes them after a change that is meant to be
//! one.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use md5::{Digest, Md5};
use rewriter_tests::corpora::CORPORA;
use rewriter_tests::{full, place};
use wavetap::code_object::{CodeObject, DESCRIPTOR_SIZE};
use wavetap::emit::code_object::CODE_SECTION;
use wavetap::offload_bundle::Input;
use wavetap::pipeline::{CounterPlacement, Counters, Options, Selection, probe, rewrite};

/// Kernels that are taken of each code object of the corpora, at even distances.
const OF_EACH_OBJECT: usize = 6;

/// What the tables are compared in.
const MODES: [(&str, Counters, CounterPlacement); 4] = [
    ("lds", Counters::Lds, CounterPlacement::Minimal),
    ("lds-all", Counters::Lds, CounterPlacement::All),
    ("global", Counters::Global, CounterPlacement::Minimal),
    ("global-all", Counters::Global, CounterPlacement::All),
];

/// The digest of the code that was added and of all descriptors, and the number of kernels that count.
fn digest(rewritten: &CodeObject<'_>, kernels: usize) -> (usize, String) {
    let mut md5 = Md5::new();
    if let Some(code) = rewritten.elf().section(CODE_SECTION) {
        md5.update(rewritten.elf().contents(code).expect("code"));
    }
    for kernel in rewritten.kernels() {
        md5.update(rewritten.bytes_at(kernel.descriptor_address, DESCRIPTOR_SIZE).expect("a descriptor"));
    }
    (kernels, md5.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A line for each mode of each code object of a file; of each object so many kernels, or all.
fn lines(name: &str, file: &[u8], of_each: Option<usize>, out: &mut String) -> usize {
    let mut all = 0;
    let input = Input::parse(file).expect("parses");
    for (number, found) in input.code_objects().enumerate() {
        let Ok(object) = CodeObject::parse(found.bytes) else { continue };
        if object.target().is_none() || object.kernels().is_empty() {
            continue;
        }
        let step = of_each.map_or(1, |of_each| object.kernels().len().div_ceil(of_each));
        let kernels: Vec<String> = object.kernels().iter().step_by(step).map(|kernel| kernel.name.clone()).collect();
        all += kernels.len();
        for (mode, counters, placement) in MODES {
            let selection = Selection { kernels: kernels.clone(), ..Selection::default() };
            let probes = vec![probe::BRANCHES];
            let options = Options { probes, counters, placement, selection, ..Options::default() };
            let rewritten =
                rewrite(found.bytes, &options).unwrap_or_else(|error| panic!("{name}, object {number}: {error}"));
            let counting = rewritten.maps.iter().map(|map| map.kernels.len()).sum();
            let code = CodeObject::parse(&rewritten.bytes).expect("an object");
            let (kernels, digest) = digest(&code, counting);
            writeln!(out, "{name} {number} {} {mode} {kernels} {digest}", object.target_id()).expect("a string");
        }
    }
    all
}

/// Compares with the table in `golden/instrumented`, or writes it.
fn compare(table: &str, now: &str) {
    let path = place::root().join("rewriter-tests/golden/instrumented").join(table);
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(&path, now).expect("written");
        return;
    }
    let before = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let changed: Vec<String> = before
        .lines()
        .zip(now.lines())
        .filter(|(before, now)| before != now)
        .map(|(before, now)| format!("- {before}\n+ {now}"))
        .collect();
    assert!(
        changed.is_empty() && before.lines().count() == now.lines().count(),
        "{table}: inserted code changed:\n{}",
        changed.join("\n")
    );
}

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[test]
fn samples() {
    let mut now = String::new();
    for sample in place::sample_names() {
        lines(&sample, &fs::read(place::samples().join(&sample)).expect("readable"), None, &mut now);
    }
    compare("samples.txt", &now);
}

#[test]
fn corpora() {
    if !full() {
        return;
    }
    let (mut now, mut kernels) = (String::new(), 0);
    for path in CORPORA.iter().flat_map(|corpus| corpus.files()) {
        kernels += lines(&name(&path), &fs::read(&path).expect("readable"), Some(OF_EACH_OBJECT), &mut now);
    }
    assert!(kernels >= 2000, "{kernels} kernels are not the selection");
    compare("corpora.txt", &now);
}
