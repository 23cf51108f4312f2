//! Decoded kernels against what `iga64` says of them: names, lanes, predicates, scoreboard bits, branch targets, the
//! bytes of each operand, the definitions that reach each instruction; and whether waits cover all reads.
//!
//!     crates/intel/compile-kernels.sh target/intel-kernels
//!     WAVETAP_INTEL_KERNELS=$PWD/target/intel-kernels cargo test -p wavetap-intel --test oracle -- --nocapture
//!
//! `WAVETAP_INTEL_KERNELS` is a folder of zebins for Ponte Vecchio. Without it nothing is compared.

mod flight;
mod listing;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use flight::Paths;
use listing::{Byte, Line};
use wavetap_base::entity::InstId;
use wavetap_code::{Code, Definition, Instruction, reaching};
use wavetap_intel::isa::{File, Inst, Operand, SharedFunction, Slot};
use wavetap_intel::open;

/// How the listing names slots.
const SLOTS: [(Slot, &str); 9] = [
    (Slot::Result, "d"),
    (Slot::ImpliedResult, "d-impl"),
    (Slot::Condition, "d-fl"),
    (Slot::Source(0), "s0"),
    (Slot::Source(1), "s1"),
    (Slot::Source(2), "s2"),
    (Slot::ImpliedSource, "s-impl"),
    (Slot::Predicate, "s-pr"),
    (Slot::Descriptor, "s-desc"),
];

/// Kernels that are compared at least, where the folder is named.
const LEAST_KERNELS: usize = 150;
/// Reads without a wait, of all kernels, on paths that a machine may take.
const MOST_VIOLATIONS: usize = 1;

/// What was compared, what was not and why, and what differs.
#[derive(Default)]
struct Counts {
    compared: BTreeMap<&'static str, usize>,
    skipped: BTreeMap<&'static str, usize>,
    differences: Vec<String>,
}

impl Counts {
    fn compare<T: PartialEq + std::fmt::Debug>(&mut self, what: &'static str, place: &str, ours: T, theirs: T) {
        *self.compared.entry(what).or_default() += 1;
        if ours != theirs {
            self.differences.push(format!("{place}: {what}: {ours:?}, iga64 says {theirs:?}"));
        }
    }

    fn skip(&mut self, why: &'static str) {
        *self.skipped.entry(why).or_default() += 1;
    }
}

fn bytes_of(inst: &Inst, slot: Slot) -> BTreeSet<Byte> {
    let accesses = inst.accesses().into_iter().filter(|access| access.slot == slot);
    let units = accesses.flat_map(|access| {
        (access.location.first..access.location.end()).map(move |unit| (access.location.file, unit))
    });
    units
        .filter_map(|(file, unit)| match file {
            file if file == File::General as u8 => Some(("r", unit / 64, unit % 64)),
            file if file == File::Accumulator as u8 => Some(("acc", unit / 64, unit % 64)),
            file if file == File::Flag as u8 => Some(("f", unit / 32, unit % 32 / 8)),
            file if file == File::Address as u8 => Some(("a", unit / 64, unit % 64)),
            _ => None,
        })
        .collect()
}

/// Whether the message's descriptor tells its bytes to us, too.
fn is_load_store(inst: &Inst) -> bool {
    use SharedFunction::{Slm, Ugm, Ugml};
    inst.message.is_some_and(|message| matches!(message.function, Ugm | Ugml | Slm))
}

fn operands(inst: &Inst, line: &Line, place: &str, counts: &mut Counts) {
    for (slot, key) in SLOTS {
        let (ours, theirs) = (bytes_of(inst, slot), line.slots.get(key).cloned().unwrap_or_default());
        let is_indirect = matches!(inst.result, Operand::Indirect { .. });
        if is_indirect && matches!(slot, Slot::Result | Slot::Descriptor) {
            counts.skip("operand: an indirect result, of which iga64 says nothing");
        } else if slot == Slot::Descriptor && inst.message.is_some_and(|message| message.extended_in.is_some()) {
            counts.skip("operand: a0.N of an extended descriptor, which iga64 takes for word N");
        } else if inst.message.is_some() && !is_load_store(inst) && ours != theirs {
            assert!(ours.is_superset(&theirs), "{place}: {key}: {ours:?} lacks some of {theirs:?}");
            counts.skip("operand: bytes of a legacy message, of which all registers are taken");
        } else if !ours.is_empty() || !theirs.is_empty() {
            counts.compare("operands", place, ours, theirs);
        }
    }
    if inst.accesses().iter().any(|access| access.location.file == File::State as u8) {
        counts.skip("operand: control and state registers, of which iga64 says nothing");
    }
}

fn fields(inst: &Inst, line: &Line, place: &str, counts: &mut Counts) {
    let text = inst.to_string();
    match inst.name.starts_with("bfn.") {
        true => counts.compare("names", place, line.name.starts_with("bfn."), true),
        false => counts.compare("names", place, &*inst.name, line.name.as_str()),
    }
    if let Some(lanes) = &line.lanes {
        counts.compare("lanes", place, format!("({}|M{})", inst.lanes, inst.first_lane), lanes.clone());
    }
    let predicate = text.split_whitespace().next().filter(|word| word.starts_with('(')).unwrap_or_default();
    counts.compare("predicates", place, predicate, line.predicate.as_str());
    let scoreboard = inst.swsb.to_string();
    let ours: BTreeSet<&str> = scoreboard.split(',').filter(|word| !word.is_empty()).collect();
    let theirs: BTreeSet<&str> = line.scoreboard.iter().map(String::as_str).collect();
    if !ours.is_empty() || !theirs.is_empty() {
        counts.compare("scoreboard bits", place, ours, theirs);
    }
    let mut targets: Vec<u64> = inst.branch.iter().flat_map(|branch| [branch.jump, branch.update]).flatten().collect();
    let mut labels = line.labels.clone();
    targets.sort_unstable();
    labels.sort_unstable();
    if !targets.is_empty() || !labels.is_empty() {
        counts.compare("branches", place, targets, labels);
    }
}

fn definitions(code: &Code<'_>, insts: &[Inst], lines: &BTreeMap<u64, Line>, name: &str, counts: &mut Counts) {
    for (id, inst) in code.ids().zip(insts) {
        let ours = definitions_of(code, id, inst);
        let theirs: BTreeSet<InstId> = lines[&inst.address].definitions.iter().map(|(id, _)| InstId(*id)).collect();
        let place = format!("{name} {:#x} {inst}", inst.address);
        let is_legacy = inst.message.is_some() && !is_load_store(inst);
        if is_legacy && ours != theirs {
            assert!(ours.is_superset(&theirs), "{place}: {ours:?} lacks some of {theirs:?}");
            counts.skip("definitions: of all registers of a legacy message");
            continue;
        }
        let reader = code.inst(id);
        for only_ours in ours.difference(&theirs) {
            let writer = code.inst(*only_ours);
            if writer.is_indirect {
                counts.skip("definition: an indirect write, which may be any register");
            } else if theirs.iter().any(|other| code.inst(*other).guard.is_some()) {
                counts.skip("definition: iga64 takes it that writes under opposite predicates end it");
            } else {
                counts.differences.push(format!("{place}: only we say {:#x} {}", writer.address, writer.text));
            }
        }
        for only_theirs in theirs.difference(&ours) {
            let writer = code.inst(*only_theirs);
            if is_opposite(writer, reader) {
                counts.skip("definition: under the opposite predicate, which is not what is read");
            } else {
                counts.differences.push(format!("{place}: only iga64 says {:#x} {}", writer.address, writer.text));
            }
        }
        *counts.compared.entry("definitions").or_default() += ours.intersection(&theirs).count();
    }
}

fn is_opposite(writer: &Instruction, reader: &Instruction) -> bool {
    writer.guard.zip(reader.guard).is_some_and(|(one, other)| one.is_opposite(other))
}

fn definitions_of(code: &Code<'_>, id: InstId, inst: &Inst) -> BTreeSet<InstId> {
    let accesses = inst.accesses().into_iter().filter(|access| !access.slot.is_written());
    let known = accesses
        .filter(|access| !(access.slot == Slot::Descriptor && inst.message.is_some()))
        .filter(|access| access.location.file != File::State as u8)
        .flat_map(|access| reaching(code, id, access.location));
    known
        .filter_map(|definition| match definition {
            Definition::Inst(id) => Some(id),
            Definition::Entry | Definition::Call(_) => None,
        })
        .collect()
}

fn zebins(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder of WAVETAP_INTEL_KERNELS");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "zebin"));
    files.sort();
    files
}

#[test]
fn kernels_are_what_the_assembler_says() {
    let Some(folder) = std::env::var_os("WAVETAP_INTEL_KERNELS") else { return };
    let work = tempfile::tempdir().expect("a folder");
    let mut counts = Counts::default();
    let mut kernels = 0;
    let (mut pairs, mut found, mut violations, mut distances) = (0, 0, Vec::new(), Vec::new());
    let (mut with_shift, mut wrong, mut unexplained) = (0, 0, Vec::new());
    let (mut waits, mut unambiguous) = (0, 0);
    for file in zebins(Path::new(&folder)) {
        let bytes = std::fs::read(&file).expect("a file");
        let origin = file.file_stem().expect("a name").to_string_lossy().into_owned();
        for zebin in open(&bytes, &origin).expect("a zebin") {
            for function in zebin.functions() {
                let name = format!("{origin} {}", function.name);
                let raw = work.path().join("kernel.krn");
                std::fs::write(&raw, function.section_bytes()).expect("written");
                let lines = listing::read(&raw);
                let insts = function.instructions().expect("known instructions");
                for inst in &insts {
                    let place = format!("{name} {:#x} {inst}", inst.address);
                    let line = lines.get(&inst.address).unwrap_or_else(|| panic!("{place}: iga64 has no such line"));
                    fields(inst, line, &place, &mut counts);
                    operands(inst, line, &place, &mut counts);
                }
                let code = function.code(&()).expect("code");
                definitions(&code, &insts, &lines, &name, &mut counts);
                let (right, shifted) =
                    (flight::check(&code, &insts, 0, Paths::All), flight::check(&code, &insts, 1, Paths::All));
                let taken = flight::check(&code, &insts, 0, Paths::Taken);
                pairs += right.pairs.len();
                found += right.pairs.intersection(&shifted.violations).count();
                let at =
                    |pair: &flight::Pair| format!("{name} {:#x} {:#x}", code.address(pair.0), code.address(pair.1));
                violations.extend(right.violations.iter().map(at));
                unexplained.extend(taken.violations.iter().map(at));
                let (code, pairs_of_pipes) = (&code, right.distances.iter());
                distances.extend(pairs_of_pipes.filter(|pair| flight::is_definition(code, pair)).map(at));
                with_shift += shifted.pairs.len();
                wrong += shifted.violations.len();
                let tokens = code.waits().iter().filter(|wait| wait.name.as_ref().is_some_and(|n| n.contains(".dst")));
                for wait in tokens {
                    waits += 1;
                    unambiguous += usize::from(wait.operations.len() == 1);
                }
                kernels += 1;
            }
        }
    }
    println!("{kernels} kernels");
    counts.compared.iter().for_each(|(what, count)| println!("  {what} compared: {count}"));
    counts.skipped.iter().for_each(|(why, count)| println!("  not compared: {why}: {count}"));
    println!("  reads of results of messages: {pairs}, without a wait on some path: {violations:?}");
    println!("  of them on paths that a machine may take: {unexplained:?}");
    println!(
        "  of them in flight with tokens off by one: {found}; of all reads in flight then, {wrong} of {with_shift}"
    );
    println!("  waits for results: {waits}, with one producer: {unambiguous}");
    println!(
        "  reads of results of pipes without a distance on some path: {}, as {:?}",
        distances.len(),
        distances.first()
    );
    let shown: Vec<_> = counts.differences.iter().take(20).collect();
    assert!(shown.is_empty(), "{} differences: {shown:#?}", counts.differences.len());
    assert!(kernels >= LEAST_KERNELS, "{kernels} kernels: at least {LEAST_KERNELS} were expected");
    assert!(unexplained.len() <= MOST_VIOLATIONS, "{unexplained:?}");
    assert!(wrong * 100 >= with_shift * 95, "{wrong} of {with_shift}: the check finds too few errors");
}
