//! Who is blamed for a wait, by LEO's rule and by ours, beside what the wait is really for: on the emulator's timing
//! model one operation after the other is given a latency of 0, and what that takes off the wait's cycles is the
//! operation's share ([`truth`]).
//!
//! Neither rule is told the latencies: those of kernels in machine code and of compiled ones are drawn by chance, each
//! instruction with a share of hits of its own ([`wavetap::emulator::Timing::chance`]); those of the samples are what
//! the model's caches and queues give.
//!
//! Quick: some kernels in machine code. Full: more of them, compiled ones and the samples; with `BLESS=1` that writes
//! `docs/results/blame.md`:
//!
//!     BLESS=1 WAVETAP_FULL_TESTS=1 cargo test -p rewriter-tests --test interventions -- --nocapture
//!
//! `WAVETAP_BLAMED=machine` takes these alone (others: `compiled`, `samples`), and prints the page.

mod page;
mod subjects;
mod truth;

use std::sync::Mutex;

use page::Survey;
use rewriter_tests::cores::on_all_cores;
use rewriter_tests::kernels::build::Variant;
use rewriter_tests::machine_code::{self, Frame};
use rewriter_tests::{Failure, full, made_up, place, real_code};
use truth::{LEO, OURS, Outcome, SAMPLED};

/// Kernels in machine code.
const QUICK: u64 = 120;
const FULL: u64 = 1_500;
/// One of so many sources is compiled for a target.
const SOURCES: usize = 25;
/// Of a hundred waits, how many are blamed right at least with samples that tell for what waves waited.
const ENOUGH: f64 = 75.0;
/// Waits that are printed for whoever wants to know why.
const SHOWN: usize = 12;
/// The target on which the samples are run.
const SAMPLE_TARGET: &str = "gfx90a";

/// What is run, one after the other.
enum Task {
    Machine(u64),
    Compiled(usize, Variant),
    Sample(usize),
}

#[test]
fn blames_beside_what_waits_are_for() {
    let targets = machine_code::targets();
    let frames: Vec<Frame> = targets.iter().map(|target| Frame::new(*target).expect("a frame")).collect();
    let sources = made_up::sources().expect("the sources");
    let samples = real_code::sample_files();
    let parts = std::env::var("WAVETAP_BLAMED").ok();
    let wanted =
        |part: &str| parts.as_deref().unwrap_or("machine,compiled,samples").split(',').any(|other| other == part);
    let mut tasks: Vec<Task> = Vec::new();
    if wanted("machine") {
        tasks.extend((0..if full() { FULL } else { QUICK }).map(Task::Machine));
    }
    if full() && wanted("compiled") {
        let pairs = targets
            .iter()
            .enumerate()
            .flat_map(|(n, target)| (0..sources.files().len()).map(move |file| (n, *target, file)));
        let chosen = pairs.filter(|(n, _, file)| (n + file) % SOURCES == 0);
        tasks.extend(chosen.map(|(n, target, file)| {
            let level = if n % 2 == 0 { "O1" } else { "O3" };
            Task::Compiled(file, Variant { target, level, version: 5 })
        }));
    }
    if full() && wanted("samples") {
        tasks.extend((0..samples.len()).map(Task::Sample));
    }
    let do_it = |task: &Task| -> Result<(&'static str, Vec<Outcome>), Failure> {
        Ok(match task {
            Task::Machine(seed) => {
                let frame = &frames[*seed as usize % frames.len()];
                let kernel = frame.kernel(*seed, subjects::wish(*seed))?;
                ("machine code", vec![subjects::machine(frame, &kernel)?])
            }
            Task::Compiled(file, variant) => {
                ("compiled", subjects::compiled(&sources, &sources.files()[*file], *variant)?)
            }
            Task::Sample(n) => ("samples", subjects::sample(&samples[*n], SAMPLE_TARGET)?),
        })
    };
    let survey = Mutex::new(Survey::default());
    on_all_cores(&tasks, |task| {
        let (source, outcomes) = do_it(task).unwrap_or_else(|failure| panic!("{failure}"));
        outcomes.into_iter().for_each(|outcome| survey.lock().expect("no panic").add(source, outcome));
    });
    let survey = survey.into_inner().expect("no panic");
    println!("{}", survey.page());
    survey.lost().take(SHOWN).for_each(|lost| println!("leo's is right and ours is not: {lost}"));
    if parts.is_none() {
        let [leo, ours, sampled] = [LEO, OURS, SAMPLED].map(|column| survey.top(column));
        assert!(ours > leo && sampled >= ENOUGH, "{leo} {ours} {sampled}");
    }
    assert!(survey.waits() > 50 || parts.is_some(), "{} waits", survey.waits());
    if full() && parts.is_none() {
        survey.keep(&place::root().join("docs/results/blame.md"));
    }
}
