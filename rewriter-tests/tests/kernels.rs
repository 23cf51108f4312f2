//! Kernels that are written once, compiled for the CPU and for GPUs, and run on both: the outputs must be the same, bit
//! for bit or within a documented error. One test for each source and way of compiling it.
//!
//! Quick: every kernel on one target, and every kernel of every target in one or two ways. Full
//! (`WAVETAP_FULL_TESTS=1`): every target that can be compiled for and the emulator runs, at three levels of
//! optimisation, with all its wave sizes, several seeds of the strict mode, and the fast mode.
//! `WAVETAP_KERNEL_TARGETS=gfx1030,gfx1100` takes these targets alone.
//!
//! A pass cannot be empty: outputs start with a pattern, and every kernel is also run with its code replaced by the end
//! of the program, which must fail.

use std::collections::BTreeSet;
use std::process::ExitCode;

use libtest_mimic::{Failed, Trial};
use rewriter_tests::kernels::build::{self, Variant};
use rewriter_tests::kernels::compare::Rule;
use rewriter_tests::kernels::{Test, launch};
use rewriter_tests::made_up::{self, Built};
use rewriter_tests::{Failure, full};
use wavetap::code_object::CodeObject;
use wavetap::emulator::Options;
use wavetap::isa::Target;

/// A kernel that executes more than this many wave-instructions does not end by itself.
const FUEL: u64 = 3_000_000;

/// Fewer would not be the survey that this test is.
const LEAST_KERNELS: usize = 60;

/// Ways of compiling in the quick run: target, wave size, level, code object version. Those that the emulator does not
/// run are left out, and those that there is no compiler for.
const QUICK: &[(&str, u32, &str, u8)] = &[
    ("gfx90a", 64, "O2", 5),
    ("gfx90a", 64, "O0", 4),
    ("gfx942", 64, "O3", 5),
    ("gfx906", 64, "O2", 4),
    ("gfx803", 64, "O2", 4),
    ("gfx950", 64, "O2", 5),
    ("gfx1030", 32, "O2", 5),
    ("gfx1010", 64, "O2", 5),
    ("gfx1100", 32, "O3", 5),
    ("gfx1201", 32, "O2", 5),
    ("gfx11-generic", 32, "O2", 6),
    ("gfx1250", 32, "O2", 6),
];

const FULL_SEEDS: std::ops::Range<u64> = 0..3;

fn main() -> ExitCode {
    rewriter_tests::run_trials(trials())
}

fn trials() -> Result<Vec<Trial>, Failure> {
    let mut trials =
        vec![Trial::test("there are enough kernels, each on some target", || enough().map_err(Failed::from))];
    trials.push(Trial::test("code objects are for the processors that they were asked for", || {
        asked_for().map_err(Failed::from)
    }));
    trials.extend(made_up::compiled(variants()?)?.into_iter().map(|compiled| compiled.trial(run)));
    Ok(trials)
}

/// The ways of compiling that are tested.
fn variants() -> Result<Vec<Variant>, Failure> {
    if !full() {
        let known = build::known_processors()?;
        let quick = QUICK.iter().filter_map(|&(name, lanes, level, version)| {
            let target = Target::by_name(name)?.with_wave_size(lanes)?;
            (chosen(target) && known.contains(name)).then_some(Variant { target, level, version })
        });
        return Ok(quick.collect());
    }
    let mut all = Vec::new();
    for target in targets()? {
        let generic = target.name().ends_with("-generic");
        // Before gfx9 there are no registers of the apertures: in the fifth version, code finds them among the hidden
        // arguments. Without optimisation clang 19 takes the pointer to these for null in every function that is no
        // kernel (`s_mov_b64 s[4:5], 0xc0; s_load_dword s8, s[4:5], 0x0`), so such code is wrong on any machine; in the
        // fourth version the queue has the apertures.
        let wrong_apertures = target.name().starts_with("gfx8");
        for level in ["O0", "O2", "O3"] {
            // Generic targets came with the sixth version.
            let version = if generic { 6 } else { 5 };
            all.push(Variant { target, level, version: if level == "O0" && wrong_apertures { 4 } else { version } });
        }
        if !generic {
            all.push(Variant { target, level: "O2", version: 4 });
        }
    }
    Ok(all)
}

/// Every target that can be compiled for and the emulator runs, with each of its wave sizes.
fn targets() -> Result<Vec<Target>, Failure> {
    let known = build::known_processors()?;
    let emulated = Target::all().filter(|&target| chosen(target) && known.contains(target.name()));
    Ok(emulated.flat_map(|target| [64, 32].into_iter().filter_map(move |lanes| target.with_wave_size(lanes))).collect())
}

/// Whether a target is tested.
fn chosen(target: Target) -> bool {
    target.emulated() && rewriter_tests::chosen(target.name())
}

/// A kernel that runs nowhere is a mistake in its list of targets, and a pattern in such a list that fits no target is
/// one too.
fn enough() -> Result<(), Failure> {
    let tests = &build::reference(64)?.tests;
    let names: BTreeSet<&str> = tests.iter().map(|test| test.name.as_str()).collect();
    if names.len() != tests.len() {
        return Err("two kernels have one name".to_owned());
    }
    if names.len() < LEAST_KERNELS {
        return Err(format!("{} kernels, at least {LEAST_KERNELS} are expected", names.len()));
    }
    for test in tests {
        for pattern in test.on.split_whitespace() {
            let alone = Test { on: pattern.to_owned(), ..test.clone() };
            if !Target::all().any(|target| alone.runs_on(target.name())) {
                return Err(format!("{}: no target is {pattern}", test.name));
            }
        }
    }
    Ok(())
}

/// Objects of the processors that the toolchain's LLVM makes code for, whether the emulator runs them or not.
fn asked_for() -> Result<(), Failure> {
    let known = build::known_processors()?;
    for target in Target::all().filter(|target| known.contains(target.name())) {
        if !build::is_newer(target)? {
            continue;
        }
        for (level, version) in [("O2", 5), ("O2", 6), ("O0", 6)] {
            let variant = Variant { target, level, version };
            let object = build::object("control", variant)?;
            let code = CodeObject::parse(&object).map_err(|e| format!("{variant}: {e}"))?;
            let found = (code.processor(), code.version(), code.target().map(Target::wave_size));
            if found != (Some(target.name()), version, Some(target.wave_size())) || code.kernels().is_empty() {
                return Err(format!("{variant}: the object is {found:?} with {} kernels", code.kernels().len()));
            }
        }
    }
    Ok(())
}

/// All kernels of a source, compiled in one way.
fn run(built: &Built) -> Result<(), Failure> {
    let (object, variant) = (&built.object, built.variant);
    let ended = launch::without_kernels(object, variant.target)?;
    built.each(|test, buffers| {
        let mut wrong = Vec::new();
        let mut check = |what: &str, outcome: Result<(), Failure>| {
            wrong.extend(outcome.err().map(|failure| format!("{what}: {failure}")));
        };
        let rule = Rule::parse(&test.compare)?;
        for mut options in ways() {
            options.tolerated = made_up::left_in(&test.name, variant);
            let outcome = launch::run(object, variant.target, test, buffers, &options);
            let outcome = outcome.and_then(|(found, _)| rule.check(&found, &buffers.expected));
            check(&format!("{}, seed {}", if options.strict { "strict" } else { "fast" }, options.seed), outcome);
        }
        let options = Options { fuel: FUEL, tolerated: made_up::left_in(&test.name, variant), ..Options::default() };
        let outcome = match launch::run(&ended, variant.target, test, buffers, &options) {
            Ok((found, _)) if rule.check(&found, &buffers.expected).is_ok() => {
                Err("passes when the kernel does nothing".to_owned())
            }
            Ok(_) => Ok(()),
            Err(failure) => Err(failure),
        };
        check("a kernel that does nothing", outcome);
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    })
}

/// The ways of running a kernel.
fn ways() -> Vec<Options> {
    let options = |strict, seed| Options { strict, seed, fuel: FUEL, trace: false, ..Options::default() };
    if full() {
        FULL_SEEDS.map(|seed| options(true, seed)).chain([options(false, 0)]).collect()
    } else {
        vec![options(true, 1), options(false, 0)]
    }
}
