//! Every instruction of libraries of third parties, for all their targets (`rewriter-tests/fetch-corpora.sh`
//! fetches them):
//!
//! - what is in each container is found, kernel by kernel, as other tools count it;
//! - every word that decodes encodes to its own bytes;
//! - nothing that control can reach stays undecoded, and the blocks of every kernel cover its code up to padding;
//! - each distinct instruction of a target has the size and text that LLVM 22 gives it, and LLVM 19 where it knows the
//!   target (`differential.rs` has the reasoned differences).
//!
//! The quick run takes the small libraries and a sample of the texts; `./test.sh --full`, or `WAVETAP_FULL_TESTS=1`,
//! takes everything:
//!
//!     rewriter-tests/fetch-corpora.sh
//!     WAVETAP_FULL_TESTS=1 cargo test -p rewriter-tests --test corpora -- --nocapture

mod differential;
mod object;
mod tally;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use differential::{Differential, Seen};
use rewriter_tests::cores::on_all_cores_with;
use rewriter_tests::corpora::{CORPORA, Corpus};
use rewriter_tests::full;
use tally::Tally;
use wavetap::isa::Target;
use wavetap::offload_bundle::Input;
use wavetap::pipeline::{self, Inspected};

/// Processors whose code must be decoded. Code for others is counted as not handled.
const HANDLED: [&str; 31] = [
    "gfx803", "gfx900", "gfx906", "gfx908", "gfx90a", "gfx90c", "gfx940", "gfx941", "gfx942", "gfx950", "gfx1010",
    "gfx1011", "gfx1012", "gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036", "gfx1100",
    "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153", "gfx1200", "gfx1201", "gfx1250",
];
/// As many complaints as a person can use.
const SHOWN: usize = 60;
/// Corpora that are small enough for every run.
const QUICK: [&str; 2] = ["jax-rocm60-plugin", "jax-rocm7-plugin"];

/// The corpora that this run looks at.
fn corpora() -> Vec<Corpus> {
    let asked = CORPORA.into_iter().filter(|corpus| full() || QUICK.contains(&corpus.name));
    asked
        .filter(|corpus| {
            let there = !corpus.files().is_empty();
            assert!(
                there || !full(),
                "{} is not there: rewriter-tests/fetch-corpora.sh {} fetches it",
                corpus.name,
                corpus.name
            );
            if !there {
                println!("SKIPPED {}: rewriter-tests/fetch-corpora.sh {} fetches it", corpus.name, corpus.name);
            }
            there
        })
        .collect()
}

fn read(file: &Path) -> Vec<u8> {
    fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

#[test]
fn inspect_lists_everything_in_every_library() {
    for corpus in corpora() {
        let (mut objects, mut kernels, mut code_bytes) = (0, 0, 0);
        for file in corpus.files() {
            let inspection = pipeline::inspect(&read(&file), &Inspected::default(), None)
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let entries: usize = inspection.bundles.iter().map(|bundle| bundle.entries.len()).sum();
            // Each bundle has an empty entry for the host beside those of the device.
            assert_eq!(inspection.objects.len(), entries - inspection.bundles.len(), "{}", file.display());
            objects += inspection.objects.len();
            for object in &inspection.objects {
                let processor = object.target.split(':').next().unwrap_or_default();
                let known = Target::by_name(processor).is_some_and(Target::has_instructions);
                assert_eq!(object.handled, known, "{}: {processor}", file.display());
                assert!(known || !HANDLED.contains(&processor), "{}: {processor} is not handled", file.display());
                kernels += object.kernels.len();
                code_bytes += object.kernels.iter().map(|kernel| kernel.code_bytes).sum::<u64>();
                for kernel in &object.kernels {
                    let occupancy = kernel
                        .facts
                        .occupancy
                        .as_ref()
                        .unwrap_or_else(|| panic!("{}: {processor} is not known", file.display()));
                    assert!(
                        occupancy.waves > 0 && occupancy.waves <= occupancy.most,
                        "{}: {}",
                        file.display(),
                        kernel.name
                    );
                    assert!(
                        kernel.facts.workgroup_size.is_some(),
                        "{}: no metadata for {}",
                        file.display(),
                        kernel.name
                    );
                }
            }
        }
        assert_eq!(
            (corpus.files().len(), objects, kernels),
            (corpus.libraries, corpus.objects, corpus.kernels),
            "{}",
            corpus.name
        );
        println!("{}: {objects} code objects, {kernels} kernels, {code_bytes} bytes in them", corpus.name);
    }
}

#[test]
fn every_instruction_decodes_is_reached_or_padding_and_reads_as_llvm_reads_it() {
    let corpora = corpora();
    let tally = Mutex::new(Tally::default());
    let seen = Seen::default();
    let libraries: Vec<(Corpus, PathBuf)> =
        corpora.iter().flat_map(|corpus| corpus.files().into_iter().map(|file| (*corpus, file))).collect();
    let own = || Differential::new(&seen);
    on_all_cores_with(&libraries, own, |differential, (corpus, file)| library(*corpus, file, differential, &tally));
    let tally = tally.into_inner().expect("no thread panicked");
    println!("{}", tally.table());
    println!("{}", seen.summary());
    let mut wrong = tally.wrong.clone();
    wrong.extend(seen.differences());
    wrong.extend(corpora.iter().flat_map(|corpus| tally.unexpected(corpus)));
    // All of them for whoever looks closer, some of every sort in the failure.
    wrong.iter().for_each(|wrong| println!("{wrong}"));
    let shown: Vec<&str> = wrong.iter().step_by(wrong.len().div_ceil(SHOWN).max(1)).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} complaints, among them:\n{}", wrong.len(), shown.join("\n"));
}

/// One library: its objects one after the other, so that memory holds one decoded object for each thread.
fn library(corpus: Corpus, file: &Path, differential: &mut Differential<'_>, tally: &Mutex<Tally>) {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let data = read(file);
    let input = Input::parse(&data).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    for found in input.code_objects() {
        let mut counts = object::check(&name, &found, differential);
        for wrong in &mut counts.wrong {
            *wrong = format!("{} {wrong}", corpus.name);
        }
        tally.lock().expect("no thread panicked").add(corpus.name, counts);
    }
}
