//! Long code and code that no compiler wrote: original against instrumented in both counter modes, on the strict
//! emulator, with the counts that it saw; or refused for the reason that the case names. And kernels that are long in
//! shapes that analyses could take too long for ([`bounds`]).
//!
//! Quick: every small case on every target, and a long kernel on one. Full (`WAVETAP_FULL_TESTS=1`): a kernel of a
//! megabyte on four targets, and more seeds. `WAVETAP_KERNEL_TARGETS=gfx1030,gfx1100` takes these targets alone. The
//! texts and code objects are then in `target/debug/kernels`.

mod assembly;
mod bounds;
mod calls;
mod generated;
mod high_registers;
mod homes;
mod linked;
mod preloaded;
mod scheduling;
mod written;

use std::process::ExitCode;

use assembly::{counted, file, instrumented, variant};
use libtest_mimic::{Failed, Trial};
use rewriter_tests::instrumented::Subject;
use rewriter_tests::kernels::build;
use rewriter_tests::{Failure, chosen, full, some_processors};
use wavetap::code_object::CodeObject;
use wavetap::isa::Target;

/// Targets and wave sizes.
const TARGETS: [(&str, u32); 6] =
    [("gfx90a", 64), ("gfx1030", 32), ("gfx1100", 32), ("gfx1200", 32), ("gfx1010", 64), ("gfx1201", 64)];
/// Those of the long kernel; the first one in the quick run.
const LONG: [&str; 4] = ["gfx90a", "gfx1030", "gfx1100", "gfx1200"];
/// A block has at least so many bytes.
const BLOCK: u64 = 1 << 10;

fn main() -> ExitCode {
    rewriter_tests::run_trials(Ok(trials()))
}

fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    if let Some(target) = Target::by_name(LONG[0]).filter(|target| chosen(target.name())) {
        trials.extend(bounds::SHAPES.map(|(name, shape)| {
            Trial::test(format!("work_of_{name}"), move || bounds::check(name, shape, target).map_err(Failed::from))
        }));
    }
    for (name, lanes) in TARGETS {
        let Some(target) = Target::by_name(name).and_then(|target| target.with_wave_size(lanes)) else { continue };
        if !chosen(name) {
            continue;
        }
        for case in written::cases() {
            trials.push(Trial::test(format!("{} {name} wave{lanes}", case.name), move || {
                case.check(target).map_err(|e| Failed::from(format!("{} {name}: {e}", case.name)))
            }));
        }
        trials.push(Trial::test(format!("linked {name} wave{lanes}"), move || {
            linked::check(target).map_err(Failed::from)
        }));
        let mut long = |name: &str, blocks| {
            let name = format!("{name} {} wave{lanes}", target.name());
            trials.push(Trial::test(name, move || run_long(target, blocks).map_err(Failed::from)));
        };
        if LONG.contains(&name) && (full() || some_processors() || name == LONG[0]) {
            long("long", generated::SHORT);
        }
        if LONG.contains(&name) && full() {
            long("megabyte", generated::MEGABYTE);
        }
    }
    for target in preloaded::TARGETS.into_iter().filter(|name| chosen(name)).filter_map(Target::by_name) {
        let run = move || preloaded::check(target).map_err(Failed::from);
        trials.push(Trial::test(format!("preloaded_arguments {}", target.name()), run));
    }
    if chosen(high_registers::TARGET) {
        for (name, above) in [("high_registers_of_which_some_are_free", 200), ("high_registers_all_of_them", 256)] {
            let run = move || high_registers::check(above).map_err(Failed::from);
            trials.push(Trial::test(format!("{name} {}", high_registers::TARGET), run));
        }
    }
    for (name, lanes, elsewhere) in homes::TARGETS {
        let Some(target) = Target::by_name(name).and_then(|target| target.with_wave_size(lanes)) else { continue };
        if !chosen(name) {
            continue;
        }
        for (case, calls) in
            [("all_registers_and_a_prologue_that_sets_flat_scratch", false), ("all_registers_and_a_function", true)]
        {
            let run = move || homes::check(target, elsewhere, calls).map_err(Failed::from);
            trials.push(Trial::test(format!("{case} {name} wave{lanes}"), run));
        }
    }
    trials
}

/// How many seeds.
fn seeds() -> u64 {
    let named = std::env::var("WAVETAP_SEEDS").ok().and_then(|n| n.parse().ok());
    named.unwrap_or(if full() { 20 } else { 5 })
}

/// A kernel that is long because it has many blocks.
fn run_long(target: Target, blocks: usize) -> Result<(), Failure> {
    let object = build::assembled(&file(&generated::text(blocks), &[generated::NAME], target), variant(target))?;
    let code = CodeObject::parse(&object).map_err(|e| e.to_string())?;
    let size = code.kernel(generated::NAME).map_or(0, |kernel| kernel.code.end - kernel.code.start);
    if size < blocks as u64 * BLOCK {
        return Err(format!("{blocks} blocks have {size} bytes"));
    }
    let subject = Subject::of(&object, target)?;
    instrumented(&subject, generated::NAME)?;
    let executions = counted(&subject, generated::NAME, seeds())?;
    println!("{} {}: {size} bytes, {executions} executions counted", generated::NAME, target.name());
    Ok(())
}
