//! The kernels of libraries, by target: in their order those whose arguments can be made up and that end well in strict
//! mode, until there are enough of the target.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use libtest_mimic::{Failed, Trial};
use rewriter_tests::corpora::kernels::{self, Candidate, LEFT_IN};
use rewriter_tests::corpora::{self, arguments};
use rewriter_tests::dispatch::{self, Launch, Stopped};
use rewriter_tests::tally::add_counts;
use rewriter_tests::{Failure, chosen, full, some_processors};
use wavetap::cfg::Program;
use wavetap::code_object::{CodeObject, Kernel};
use wavetap::emulator::{FaultKind, Options};
use wavetap::isa::Target;
use wavetap::kernel::Image;

use crate::subject::{Output, Rewritten, Subject};
use crate::{TALLIES, Tally};

/// What names of trials begin with.
const NAME: &str = "corpora ";
/// Kernels of a target, in full runs and in quick ones.
const SHARE: u64 = 5;
const QUICK: u64 = 1;
/// Kernels that a full run has, at least.
const KERNELS: u64 = 100;
/// Targets of the quick run.
const QUICK_TARGETS: [&str; 3] = ["gfx803", "gfx90a", "gfx1030"];
/// Sets of arguments that a kernel is tried with, and with how many of those that it ends well with it is compared.
const SETS: u64 = 5;
const COMPARED: usize = 2;
/// Seeds of the strict mode.
const SEEDS: u64 = 2;

/// A trial for each target; they are ignored if no library was fetched.
pub fn trials() -> Vec<Trial> {
    let is_ours = |target: &Target| {
        let some = full() || QUICK_TARGETS.contains(&target.name());
        some && target.rewritable() && target.emulated() && chosen(target.name())
    };
    let is_there = !corpora::libraries().is_empty();
    let trial = |target: Target| {
        let name = format!("{NAME}{}", target.name());
        Trial::test(name, move || run(target).map_err(Failed::from)).with_ignored_flag(!is_there)
    };
    Target::all().filter(is_ours).map(trial).collect()
}

/// Whether a trial is of this file.
pub fn is_name(name: &str) -> bool {
    name.starts_with(NAME)
}

/// Whether a full run has compared as many kernels as it is to.
pub fn are_enough(measured: u64) -> Result<(), Failure> {
    let whole = full() && !some_processors() && std::env::var_os("WAVETAP_KERNEL").is_none();
    if whole && !corpora::libraries().is_empty() && measured < KERNELS {
        return Err(format!("{measured} kernels of libraries are not {KERNELS}"));
    }
    Ok(())
}

fn run(target: Target) -> Result<(), Failure> {
    static ALL: OnceLock<BTreeMap<&'static str, Vec<Candidate>>> = OnceLock::new();
    let all = ALL.get_or_init(|| kernels::candidates(&corpora::libraries(), false));
    let (mut tally, mut wrong) = (Tally::default(), Vec::new());
    for candidate in all.get(target.name()).into_iter().flatten() {
        // One that accesses nothing with the arguments that were made up shows nothing.
        let is_enough = if full() { tally.measured == SHARE } else { tally.measured >= QUICK && tally.executions > 0 };
        if is_enough {
            break;
        }
        if let Err(failure) = look_at(candidate, target, &mut tally) {
            wrong.push(format!("{} {}: {failure}", candidate.library, candidate.name));
        }
    }
    if !full() && tally.measured == 0 && wrong.is_empty() {
        wrong.push(format!("no kernel was compared: {tally:?}"));
    }
    TALLIES.add(format!("{NAME}{}", target.name()), tally);
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Compares a kernel, or says why it is left out.
fn look_at(candidate: &Candidate, target: Target, tally: &mut Tally) -> Result<(), Failure> {
    let code = CodeObject::parse(&candidate.object).map_err(|e| e.to_string())?;
    let kernel = code.kernel(&candidate.name).ok_or("no kernel")?;
    let mut leave_out = |why: String| add_counts(&mut tally.left_out, [(why, 1)]);
    if let Some(why) = arguments::cannot_be_made_up(kernel, false) {
        leave_out(why.to_owned());
        return Ok(());
    }
    let launches = match launches(&candidate.object, target, kernel)? {
        Ok(launches) => launches,
        Err(why) => {
            leave_out(why);
            return Ok(());
        }
    };
    tally.kernels += 1;
    let rewritten = Rewritten::of(&candidate.object, std::slice::from_ref(&candidate.name))?;
    let Some(index) = rewritten.kernel(&candidate.name) else {
        let refused = rewritten.map.refused.iter().find(|refused| refused.name == candidate.name);
        add_counts(&mut tally.refused, refused.map(|refused| (refused.reason.clone(), 1)));
        return Ok(());
    };
    let image = Image::of(&code).map_err(|e| e.to_string())?;
    let program = Program::of(target, &image);
    tally.measured += 1;
    for (set, launch) in launches {
        let object = &candidate.object[..];
        let bodies = program.bodies();
        let output = Output::AsOriginal;
        let subject = Subject { object, rewritten: &rewritten, index, bodies, target, launch, output };
        subject.compare(0..SEEDS, tally).map_err(|e| format!("arguments {set}: {e}"))?;
    }
    Ok(())
}

/// Launches that the original ends well with, or why there is none.
fn launches<'k>(
    object: &[u8],
    target: Target,
    kernel: &'k Kernel,
) -> Result<Result<Vec<(u64, Launch<'k>)>, String>, Failure> {
    let (mut found, mut why) = (Vec::new(), String::new());
    for set in 0..SETS {
        let mut launch = arguments::launch(kernel, set);
        let run = |launch: &Launch<'_>| {
            let options = Options { seed: set, fuel: launch.fuel, tolerated: launch.tolerated, ..Options::default() };
            dispatch::run(object, target, launch, &options, None)
        };
        let mut ran = run(&launch);
        if matches!(&ran, Err(Stopped::Fault(fault)) if matches!(fault.kind, FaultKind::Hazard { .. })) {
            launch.tolerated = LEFT_IN;
            ran = run(&launch);
        }
        match ran {
            Ok(_) => found.push((set, launch)),
            Err(Stopped::Fault(fault)) => why = format!("it faults: {}", kernels::kind(&fault)),
            Err(Stopped::Failure(failure)) => return Err(failure),
        }
        if found.len() == COMPARED {
            break;
        }
    }
    Ok(if found.is_empty() { Err(why) } else { Ok(found) })
}
