//! Every instruction of every emulated target against a second definition of what it does.
//!
//! For each row of the instruction tables the test chooses operands and modifiers, makes states from edge values and
//! random bits, has the emulator execute the instruction in them and compares every register, SCC and memory with what
//! the definition here makes of the same states. The definitions share no code with the emulator: integers are Rust's
//! in more bits than needed, floating-point arithmetic is another library's, and the rest are the formulas of the
//! instruction set manuals.
//!
//! `WAVETAP_SEMANTICS=NAME` runs operations whose names contain NAME only, and `WAVETAP_SEMANTICS_TARGET=gfx90a` one
//! target only.

mod access;
mod brain;
mod chance;
mod choose;
mod compare;
mod control;
mod convert;
mod copies;
mod cross;
mod definition;
mod division;
mod dots;
mod exchange;
mod float;
mod formats;
mod image;
mod integer;
mod lane;
mod machine;
mod matrix;
mod matrix_mixed;
mod matrix_rdna;
mod memory;
mod number;
mod odd;
mod ordered;
mod packed;
mod pairs;
mod programs;
mod random;
mod scalar_float;
mod scalars;
mod small;
mod smem;
mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use rewriter_tests::cores::on_all_cores;
use wavetap::emulator;
use wavetap::isa::{self, Target, Variant};

use choose::Special;
use machine::{Machine, Uses};
use random::Random;

/// What became of a row.
enum Outcome {
    Same,
    /// There is no definition, or none of this form.
    Undefined,
    /// The emulator says that it does not know the instruction.
    Refused,
    Different(String),
}

/// What was found out about the operations of an instruction set.
#[derive(Default)]
struct Tally {
    compared: BTreeSet<&'static str>,
    refused: BTreeSet<&'static str>,
    undefined: BTreeSet<&'static str>,
    rows: usize,
    failures: Vec<String>,
}

/// The instruction sets of all emulated targets, each with each of its wave sizes: for each the first target that has
/// it. What else differs between targets of one instruction set is no instruction's meaning.
fn targets() -> Vec<(Target, Vec<&'static str>)> {
    let chosen = std::env::var("WAVETAP_SEMANTICS_TARGET").ok();
    let mut sets: Vec<(Target, Vec<&'static str>)> = Vec::new();
    let all = Target::all()
        .filter(|target| target.emulated() && target.has_instructions())
        .filter(|target| chosen.as_ref().is_none_or(|name| name == target.name()))
        .flat_map(|target| [64, 32].into_iter().filter_map(move |lanes| target.with_wave_size(lanes)));
    for target in all {
        let same = |(other, _): &&mut (Target, _)| {
            other.instruction_table() == target.instruction_table() && other.wave_size() == target.wave_size()
        };
        match sets.iter_mut().find(same) {
            Some((_, names)) => names.push(target.name()),
            None => sets.push((target, vec![target.name()])),
        }
    }
    sets
}

/// How thoroughly rows are tested.
#[derive(Clone, Copy)]
struct Effort {
    /// Encodings of a row.
    instances: usize,
    /// States for each.
    states: usize,
    /// One in so many rows also in strict mode.
    strict: usize,
}

/// Tests one row.
fn row(
    target: Target,
    machine: &mut Machine,
    strict: &mut Machine,
    variant: &'static Variant,
    seed: u64,
    effort: Effort,
) -> Outcome {
    let Some(definition) = definition::of(variant, target) else { return Outcome::Undefined };
    let mut random = Random::new(seed);
    let mut compared = 0;
    for _ in 0..40 * effort.instances {
        let modifier = |random: &mut Random, modifier| definition.modifier.and_then(|choose| choose(random, modifier));
        let operand = |random: &mut Random, role| definition.operand.and_then(|choose| choose(random, role));
        let special = Special { modifier: &modifier, operand: &operand };
        let Some((inst, bytes)) = choose::instance(&mut random, target, variant, definition.wishes, &special) else {
            continue;
        };
        let modes: u64 = if target.has_float_mode_bits() { 0x400 } else { 0x100 };
        // Half of the time as compilers set it.
        let mode = if random.one_in(2) { random.below(modes) as u32 } else { 0x3f0 & (modes as u32 - 1) };
        // Without these bits it is always so.
        let mode = if modes == 0x100 { mode | 0x300 } else { mode };
        let mode = if definition.wishes.denormals { mode | 0xf0 } else { mode };
        // How an output modifier overflows is not documented for the other rounding modes.
        let mode = if inst.modifiers.omod != 0 { mode & !0xf } else { mode };
        let registers = definition::registers(&definition, &inst);
        let text = |what: String| {
            format!("{} wave{}: `{}`: {what}", target.name(), target.wave_size(), isa::print(target, &inst))
        };
        let uses = Uses {
            memory: definition.memory,
            lds: definition.lds,
            scratch: definition.scratch,
            ladder: definition.ladder,
        };
        let probe = definition::state(&mut random.clone(), &definition, &inst, target, mode, machine.data, 0x1000);
        if definition::execute(&definition, &inst, &mut probe.clone(), target).is_none() {
            continue;
        }
        let in_strict = (seed as usize).is_multiple_of(effort.strict);
        for machine in [Some(&mut *machine), in_strict.then_some(&mut *strict)].into_iter().flatten() {
            let mut program = machine.program(&bytes, registers.clone(), mode, uses);
            let pc = match machine.load_program(&mut program) {
                Ok(pc) => pc,
                Err(error) => return Outcome::Different(text(error)),
            };
            let mut before = Vec::new();
            let mut expected = Vec::new();
            for _ in 0..effort.states {
                let state = definition::state(&mut random, &definition, &inst, target, mode, machine.data, pc);
                let mut after = state.clone();
                if definition::execute(&definition, &inst, &mut after, target).is_some() {
                    before.push(state);
                    expected.push(after);
                }
            }
            let found = match machine.run(&program, &before) {
                Ok(found) => found,
                Err(fault) if fault.contains("the emulator has no meaning for") => return Outcome::Refused,
                Err(fault) => return Outcome::Different(text(fault)),
            };
            for ((before, expected), found) in before.iter().zip(&expected).zip(&found) {
                if let Some(difference) = definition::difference(&inst, before, expected, found, &registers) {
                    return Outcome::Different(text(difference));
                }
            }
        }
        compared += 1;
        if compared == effort.instances {
            break;
        }
    }
    if compared > 0 { Outcome::Same } else { Outcome::Undefined }
}

/// Tests the rows of one operation. In quick mode those that no other instruction set had before, and at least one.
fn operation(
    target: Target,
    rows: &[&'static Variant],
    seen: &Mutex<BTreeSet<usize>>,
    tally: &Mutex<Tally>,
    machines: (&mut Machine, &mut Machine),
) {
    let name = rows[0].name;
    let full = rewriter_tests::full();
    let effort = if full {
        Effort { instances: 8, states: 3, strict: 1 }
    } else {
        Effort { instances: 1, states: 2, strict: 3 }
    };
    if let Some(verdict) = programs::test(target, name, [(&mut *machines.0, false), (&mut *machines.1, true)]) {
        let mut tally = tally.lock().expect("no panic while it was held");
        tally.failures.extend(verdict.err());
        tally.compared.insert(name);
    }
    // Another row each time.
    let start = target.index() * 7 % rows.len();
    let mut compared = false;
    for n in 0..rows.len() {
        let variant = rows[(start + n) % rows.len()];
        let key = std::ptr::from_ref(variant).addr();
        let known = seen.lock().expect("no panic while it was held").contains(&key);
        if known && compared && !full {
            continue;
        }
        let seed = key_of(variant) ^ target.index() as u64;
        let outcome = row(target, machines.0, machines.1, variant, seed, effort);
        let mut tally = tally.lock().expect("no panic while it was held");
        tally.rows += 1;
        match outcome {
            Outcome::Same => {}
            Outcome::Different(failure) => tally.failures.push(failure),
            Outcome::Refused => {
                tally.refused.insert(name);
                continue;
            }
            Outcome::Undefined => continue,
        }
        compared = true;
        tally.compared.insert(name);
        seen.lock().expect("no panic while it was held").insert(key);
    }
    let mut tally = tally.lock().expect("no panic while it was held");
    if compared || tally.compared.contains(name) {
        tally.refused.remove(name);
    } else if !tally.refused.contains(name) {
        tally.undefined.insert(name);
    }
}

/// A number that stays the same from run to run.
fn key_of(variant: &Variant) -> u64 {
    variant.mnemonic.bytes().fold(variant.matches as u64 ^ (variant.matches >> 64) as u64, |key, byte| {
        key.wrapping_mul(31).wrapping_add(byte.into())
    })
}

fn tally(target: Target, seen: &Mutex<BTreeSet<usize>>) -> Tally {
    let wanted = std::env::var("WAVETAP_SEMANTICS").unwrap_or_default();
    let mut names: BTreeMap<&'static str, Vec<&'static Variant>> = BTreeMap::new();
    for variant in isa::variants(target).filter(|variant| variant.name.contains(&wanted)) {
        names.entry(variant.name).or_default().push(variant);
    }
    let operations: Vec<Vec<&'static Variant>> = names.into_values().collect();
    let tally = Mutex::new(Tally::default());
    // A device keeps what it has decoded: a new one now and then.
    let some: Vec<_> = operations.chunks(24).collect();
    on_all_cores(&some, |some| {
        let mut machine = Machine::new(target, false, 1);
        let mut strict = Machine::new(target, true, 1);
        for rows in *some {
            operation(target, rows, seen, &tally, (&mut machine, &mut strict));
        }
    });
    tally.into_inner().expect("no panic while it was held")
}

/// The operations without a test, by reason: lines that begin with `#` are reasons, and names follow.
fn listed() -> BTreeMap<String, String> {
    let mut reason = String::new();
    let mut names = BTreeMap::new();
    for line in include_str!("untested.txt").lines() {
        match line.strip_prefix('#') {
            Some(text) => reason = text.trim().to_owned(),
            None => names.extend(line.split_whitespace().map(|name| (name.to_owned(), reason.clone()))),
        }
    }
    names
}

/// Writes the list anew, with the reasons that were known.
fn write_list(untested: &BTreeSet<&str>) {
    let known = listed();
    let mut by_reason: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in untested {
        by_reason
            .entry(known.get(*name).cloned().unwrap_or_else(|| "Not yet defined here".to_owned()))
            .or_default()
            .push(name);
    }
    let mut text = String::new();
    for (reason, names) in by_reason {
        text += &format!("# {reason}\n");
        for line in names.chunks(8) {
            text += &format!("{}\n", line.join(" "));
        }
    }
    let file = rewriter_tests::place::root().join("rewriter-tests/tests/instruction_semantics/untested.txt");
    std::fs::write(file, text).expect("the list is written");
}

#[test]
fn every_instruction_does_what_its_definition_says() {
    let seen = Mutex::new(BTreeSet::new());
    let (mut failures, mut untested, mut compared) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for (target, names) in targets() {
        let tally = tally(target, &seen);
        let all = tally.compared.len() + tally.refused.len() + tally.undefined.len();
        println!(
            "{} wave{}: {} of {all} operations compared, {} refused by the emulator, {} without a definition ({} rows)",
            names.join(" "),
            target.wave_size(),
            tally.compared.len(),
            tally.refused.len(),
            tally.undefined.len(),
            tally.rows
        );
        if std::env::var_os("WAVETAP_SEMANTICS_NAMES").is_some() {
            println!("  refused: {:?}\n  without: {:?}", tally.refused, tally.undefined);
        }
        // What the emulator does not know needs no test.
        let missing: BTreeSet<&str> = emulator::missing(target).into_iter().map(|(name, _)| name).collect();
        let runs = |name: &&&str| !name.split("::").any(|half| missing.contains(half.trim()));
        let left: Vec<&str> = tally.undefined.iter().filter(runs).copied().collect();
        if !left.is_empty() {
            println!("  run by the emulator and not compared: {}", left.join(" "));
        }
        untested.extend(left);
        compared.extend(tally.compared);
        failures.extend(tally.failures);
    }
    assert!(failures.is_empty(), "{} rows differ:\n{}", failures.len(), failures.join("\n"));
    if ["WAVETAP_SEMANTICS", "WAVETAP_SEMANTICS_TARGET"].iter().any(|name| std::env::var_os(name).is_some()) {
        return;
    }
    if std::env::var_os("BLESS").is_some() {
        return write_list(&untested);
    }
    let listed = listed();
    let unlisted: Vec<&&str> = untested.iter().filter(|name| !listed.contains_key(**name)).collect();
    let tested: Vec<&String> = listed.keys().filter(|name| !untested.contains(name.as_str())).collect();
    println!("{} operations compared on some target, {} not on all", compared.len(), untested.len());
    assert!(unlisted.is_empty(), "without a test and not in untested.txt: {unlisted:?}");
    assert!(tested.is_empty(), "in untested.txt although they have a test (BLESS=1 writes the list anew): {tested:?}");
}

/// The definitions that have a tolerance are those of functions of which the emulator does not say that they are as
/// documented, and the other way round.
#[test]
fn tolerances_are_those_of_the_classes() {
    use definition::Meaning;
    use state::Loose;
    use wavetap::profile::fidelity::Exactness;
    // "0.5ULP accuracy": rounded.
    const ROUNDED: [&str; 3] = ["v_fract_f16", "v_fract_f32", "v_fract_f64"];
    let mut compared = BTreeSet::new();
    for (target, _) in targets() {
        let missing: BTreeSet<&str> = emulator::missing(target).into_iter().map(|(name, _)| name).collect();
        let alone = isa::variants(target).filter(|variant| variant.halves.is_none() && !missing.contains(variant.name));
        for variant in alone {
            let Some(definition) = definition::of(variant, target) else { continue };
            let Meaning::Lane(lane) = &definition.meaning else { continue };
            let tolerated = matches!(
                lane.loose,
                Some(
                    Loose::Ulp16(_)
                        | Loose::UlpBrain(_)
                        | Loose::Ulp32(_)
                        | Loose::Ulp64(_)
                        | Loose::Near16(_)
                        | Loose::NearBrain(_)
                        | Loose::Near32(_)
                        | Loose::NearPair
                )
            );
            let inst = isa::Inst { variant, wave_size: target.wave_size() as u8, ..isa::Inst::blank() };
            let exactness = emulator::exactness(target, &inst);
            let place = format!("{} {}: {exactness}", target.name(), variant.name);
            if !ROUNDED.contains(&variant.name) {
                assert!(!tolerated || exactness != Exactness::Documented, "{place}, with a tolerance");
                assert!(tolerated || !matches!(exactness, Exactness::WithinUlps { .. }), "{place}, without one");
            }
            if tolerated {
                compared.insert(variant.name);
            }
        }
    }
    assert!(compared.len() > 20, "{compared:?}");
}
