//! 300 kernels of libraries of third parties (`rewriter-tests/fetch-corpora.sh` fetches them), with arguments
//! made up from their metadata, as compiled and as instrumented: the same memory afterwards, the counts that the
//! emulator saw, and where the original faults, the same faults.
//!
//! Nobody chose them. Each target that is rewritten and emulated has an equal share of the 300. The kernels of a target
//! are those of different names, in the order of a hash of target and name; they are taken until the share is full, and
//! one is left out if
//! - its arguments cannot be made up (`rewriter_tests::corpora::arguments` says why),
//! - it is refused by the rewriter in both modes (`docs/results/corpora.md` counts those), or
//! - no set of arguments of a few lets the original end well within its fuel.
//!
//! What a target lacks is made good by the others. `docs/results/corpus-kernels.md` says how many were looked at and
//! left out; written by
//!
//!     BLESS=1 WAVETAP_FULL_TESTS=1 cargo test --release -p rewriter-tests --test corpus_kernels -- --nocapture
//!
//! The quick run takes a few kernels of the first libraries. `WAVETAP_KERNEL_TARGETS=gfx1030` takes these targets
//! alone, `WAVETAP_KERNEL=generate` kernels with this in their mangled names. `WAVETAP_KERNEL_FILES=folder` takes the
//! kernels of all files below a folder in place of the libraries', all of them or `WAVETAP_KERNELS=100` of each target,
//! and writes no document; structures by value are made up there, too, as pointers and numbers by chance.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use rewriter_tests::cores::on_all_cores;
use rewriter_tests::corpora::kernels::{self, Candidate, LEFT_IN};
use rewriter_tests::corpora::{self, CORPORA, arguments};
use rewriter_tests::instrumented::{Compared, Stopped, Subject};
use rewriter_tests::{Failure, full, place, some_processors};
use wavetap::code_object::CodeObject;
use wavetap::emulator::FaultKind;

/// Kernels of a full run.
const KERNELS: usize = 300;
/// Of a quick run, for every so manyth target.
const QUICK: usize = 1;
const QUICK_TARGETS: usize = 6;
/// Sets of arguments that a kernel is tried with.
const SETS: u64 = 5;
const COMMAND: &str = "BLESS=1 WAVETAP_FULL_TESTS=1 cargo test --release -p rewriter-tests --test corpus_kernels";

/// What became of the kernels of a target.
#[derive(Debug, Default)]
struct Tally {
    all: usize,
    looked_at: usize,
    taken: usize,
    /// Dispatches that ended well and that faulted.
    compared: Compared,
    faulted: u64,
    left_out: BTreeMap<String, usize>,
}

/// What a kernel did.
enum Outcome {
    Taken(Compared, u64),
    LeftOut(String),
}

/// The folder that files of somebody's choice are in.
fn folder() -> Option<PathBuf> {
    std::env::var_os("WAVETAP_KERNEL_FILES").map(PathBuf::from)
}

/// How many kernels of each target are taken from somebody's folder.
fn most() -> usize {
    std::env::var("WAVETAP_KERNELS").map_or(usize::MAX, |most| most.parse().expect("WAVETAP_KERNELS is a number"))
}

/// The files that kernels are taken from.
fn files() -> Vec<PathBuf> {
    if let Some(folder) = folder() {
        return below(&folder);
    }
    for corpus in CORPORA.iter().filter(|_| full()) {
        let name = corpus.name;
        assert!(!corpus.files().is_empty(), "{name} is not there: rewriter-tests/fetch-corpora.sh {name} fetches it");
    }
    corpora::libraries()
}

/// The files below a folder, sorted.
fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.into_iter().flat_map(|path| if path.is_dir() { below(&path) } else { vec![path] }).collect()
}

/// Takes a kernel or leaves it out.
fn look_at(candidate: &Candidate) -> Result<Outcome, Failure> {
    let code = CodeObject::parse(&candidate.object).map_err(|e| e.to_string())?;
    let (kernel, target) = (code.kernel(&candidate.name).ok_or("no kernel")?, code.target().ok_or("no target")?);
    if let Some(why) = arguments::cannot_be_made_up(kernel, folder().is_some()) {
        return Ok(Outcome::LeftOut(why.to_owned()));
    }
    let subject = Subject::of_kernel(&candidate.object, target, &candidate.name)?;
    if subject.refusals(&candidate.name).len() == 2 {
        return Ok(Outcome::LeftOut("refused by the rewriter".to_owned()));
    }
    let (mut compared, mut faulted, mut why) = (Compared::default(), 0, String::new());
    for set in 0..SETS {
        let mut launch = arguments::launch(kernel, set);
        let seeds = set * 10..set * 10 + 2;
        let mut original = subject.original(&launch, seeds.start);
        if matches!(&original, Err(Stopped::Fault(fault)) if matches!(fault.kind, FaultKind::Hazard { .. })) {
            launch.tolerated = LEFT_IN;
            original = subject.original(&launch, seeds.start);
        }
        let at =
            |e: Failure| format!("{} {} {}, arguments {set}: {e}", candidate.library, target.name(), candidate.name);
        match original {
            Ok(_) => compared.add(subject.compare(&launch, seeds).map_err(at)?),
            Err(Stopped::Fault(fault)) if fault.kind == FaultKind::OutOfFuel => {
                why = "does not end within its fuel".to_owned()
            }
            Err(Stopped::Fault(fault)) => {
                why = format!("faults with all arguments: {}", kernels::kind(&fault));
                if folder().is_some() {
                    println!("{}, arguments {set}: {fault}", candidate.name);
                }
                faulted += subject.compare_faults(&launch, seeds).map_err(at)?;
            }
            Err(Stopped::Failure(failure)) => return Err(at(failure)),
        }
    }
    Ok(if compared.dispatches > 0 { Outcome::Taken(compared, faulted) } else { Outcome::LeftOut(why) })
}

#[test]
fn kernels_of_the_corpora_do_the_same_when_they_count() {
    let all = kernels::candidates(&files(), folder().is_some());
    if all.is_empty() {
        println!("SKIPPED: rewriter-tests/fetch-corpora.sh fetches the libraries");
        return;
    }
    let (mut tallies, mut wrong): (BTreeMap<&str, Tally>, Vec<Failure>) = (BTreeMap::new(), Vec::new());
    // The targets with the fewest kernels first: what they lack is the others' share.
    let mut order: Vec<_> = all.iter().collect();
    order.sort_by_key(|(_, kernels)| kernels.len());
    let mut left = KERNELS;
    if !full() && folder().is_none() {
        order = order.into_iter().step_by(QUICK_TARGETS).collect();
    }
    for (n, (target, kernels)) in order.iter().enumerate() {
        let share = match folder() {
            Some(_) => most(),
            None if full() => left.div_ceil(order.len() - n),
            None => QUICK,
        };
        let tally = target_of(kernels, share, &mut wrong);
        println!("{target}: {tally:?}");
        left -= tally.taken.min(left);
        tallies.insert(*target, tally);
    }
    let page = page(&tallies);
    println!("{page}");
    let taken: usize = tallies.values().map(|tally| tally.taken).sum();
    let whole = !some_processors() && std::env::var_os("WAVETAP_KERNEL").is_none() && folder().is_none();
    if full() && whole {
        if taken < KERNELS {
            wrong.push(format!("{taken} kernels are not {KERNELS}"));
        }
        let file = place::root().join("docs/results/corpus-kernels.md");
        if std::env::var_os("BLESS").is_some() {
            fs::write(&file, &page).expect("written");
        }
        if fs::read_to_string(&file).unwrap_or_default() != page {
            wrong.push("docs/results/corpus-kernels.md is not what was found; BLESS=1 writes it anew".to_owned());
        }
    }
    assert!(taken > 0, "no kernel ran");
    assert!(wrong.is_empty(), "{} kernels:\n{}", wrong.len(), wrong.join("\n"));
}

/// The kernels of a target in their order, until the share is full. Threads look at some kernels ahead; those after
/// the last one taken do not count.
fn target_of(kernels: &[Candidate], share: usize, wrong: &mut Vec<Failure>) -> Tally {
    let mut tally = Tally { all: kernels.len(), ..Tally::default() };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    for some in kernels.chunks(threads * 4) {
        for outcome in on_all_cores(some, look_at) {
            if tally.taken == share {
                return tally;
            }
            tally.looked_at += 1;
            match outcome {
                Ok(Outcome::Taken(compared, faulted)) => {
                    tally.taken += 1;
                    tally.compared.add(compared);
                    tally.faulted += faulted;
                }
                Ok(Outcome::LeftOut(why)) => *tally.left_out.entry(why).or_default() += 1,
                Err(failure) => {
                    println!("{failure}");
                    wrong.push(failure);
                }
            }
        }
    }
    tally
}

fn page(tallies: &BTreeMap<&str, Tally>) -> String {
    let mut page = format!(
        "# Kernels of the corpora, original against instrumented\n\nWritten by `{COMMAND}`: kernels of real libraries \
            with arguments made up from their metadata, as compiled and instrumented in both counter modes on the \
            strict emulator. Memory and counts are the same for every dispatch that ends well, and faults are the same \
            where the original faults; excused is what the original itself does otherwise in another order of its \
            waves, and what it does beyond its LDS. `rewriter-tests/tests/corpus_kernels` says by which rule kernels \
            are taken.\n\n\
         | target | kernels | looked at | run | dispatches compared | faults compared | site counts compared | left \
         out |\n|---|---|---|---|---|---|---|---|\n"
    );
    let mut sum = Tally::default();
    for (target, tally) in tallies {
        page += &line(target, tally);
        sum.all += tally.all;
        sum.looked_at += tally.looked_at;
        sum.taken += tally.taken;
        sum.compared.add(tally.compared);
        sum.faulted += tally.faulted;
        tally.left_out.iter().for_each(|(why, times)| *sum.left_out.entry(why.clone()).or_default() += times);
    }
    page += &line("all", &sum);
    page
}

fn line(name: &str, tally: &Tally) -> String {
    let Tally { all, looked_at, taken, compared, faulted, left_out } = tally;
    let mut line = format!(
        "| {name} | {all} | {looked_at} | {taken} | {} | {faulted} | {} |",
        compared.dispatches, compared.sites
    );
    let reasons: Vec<String> = left_out.iter().map(|(why, times)| format!("{times} {why}")).collect();
    writeln!(line, " {} |", reasons.join("; ")).expect("text");
    line
}
