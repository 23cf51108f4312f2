//! The registers that every row of the instruction tables reads and writes, against LLVM's description of the decoded
//! instruction.
//!
//! `expected.txt` has, for every row and target, a word and what LLVM says about it; every test run compares it with
//! ours. Where `llvm-access` has been built (`rewriter-tests/llvm-access/build.sh`, which `./test.sh --full` runs),
//! LLVM itself is asked about several random fillings of every row on every target and in every wave size,
//! `WAVETAP_ISA_FILLINGS` where that is set; with `BLESS=1` it also writes `expected.txt` anew.
//!
//! What differs on purpose is in `reasons.rs`, each with its reason.

mod properties;
mod reasons;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;

use llvm_oracle::{Answer, Oracle, Query};
use reasons::{Difference, Kind, REASONS, Who};
use rewriter_tests::access::Access;
use rewriter_tests::fillings::{ATTEMPTS, Random, filling};
use rewriter_tests::{full, place};
use wavetap::isa::{self, Inst, Target, Variant};

/// Fillings of a row when nothing else is asked for, and in the long run.
const FILLINGS: [usize; 2] = [2, 16];
/// Most examples that a failure shows.
const SHOWN: usize = 60;
/// The operand code of EXEC.
const EXEC_CODE: u8 = 126;
/// Questions that are asked at a time: after a word that LLVM dies on, the rest of its portion is asked again.
const PORTION: usize = 1024;

/// Every target in every wave size.
fn machines() -> impl Iterator<Item = Target> {
    Target::all().flat_map(|target| [32, 64].into_iter().filter_map(move |lanes| target.with_wave_size(lanes)))
}

/// One target for each instruction table, in every wave size.
fn representatives() -> Vec<Target> {
    let first = |target: &Target| Target::all().find(|other| other.instruction_table() == target.instruction_table());
    machines().filter(|target| first(target).is_some_and(|first| first.name() == target.name())).collect()
}

/// `gfx1030/64`.
fn label(target: Target) -> String {
    format!("{}/{}", target.name(), target.wave_size())
}

fn by_label(label: &str) -> Option<Target> {
    let (name, lanes) = label.split_once('/')?;
    Target::by_name(name)?.with_wave_size(lanes.parse().ok()?)
}

/// What LLVM is asked for. From gfx11 on the halves of registers have names of their own.
fn llvm_name(target: Target) -> String {
    let halves =
        if target.name().starts_with("gfx11") || target.name().starts_with("gfx12") { ",+real-true16" } else { "" };
    format!("{},+wavefrontsize{}{halves}", target.name(), target.wave_size())
}

/// Where `build.sh` puts the program.
fn program() -> Option<PathBuf> {
    let built = place::build_folder().parent()?.join("llvm-access/llvm-access");
    built.exists().then_some(built)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

/// What a test found.
#[derive(Default)]
struct Findings {
    same: usize,
    excused: BTreeMap<&'static str, usize>,
    /// By operation, so that one of each is shown first.
    wrong: BTreeMap<String, Vec<String>>,
}

impl Findings {
    fn compare(&mut self, target: Target, inst: &Inst, bytes: &[u8], llvm: &Access) {
        let ours = Access::ours(target, inst);
        let mut unexplained = Vec::new();
        let mut different = false;
        for (kind, ours, llvm) in [(Kind::Read, &ours.reads, &llvm.reads), (Kind::Write, &ours.writes, &llvm.writes)] {
            let sides = ours
                .difference(llvm)
                .map(|name| (Who::Ours, name))
                .chain(llvm.difference(ours).map(|name| (Who::Llvm, name)));
            for (who, register) in sides {
                different = true;
                let difference = Difference { target, inst, who, kind, register };
                match REASONS.iter().find(|reason| (reason.holds)(&difference)) {
                    Some(reason) => *self.excused.entry(reason.what).or_default() += 1,
                    None => unexplained.push(format!("{who:?} {kind:?} {register}")),
                }
            }
        }
        self.same += usize::from(!different);
        if !unexplained.is_empty() {
            let text = format!(
                "{} {} {}: only {}\n    ours {}\n    LLVM {}",
                label(target),
                hex(bytes),
                isa::print(target, inst),
                unexplained.join(", "),
                ours.compact(),
                llvm.compact()
            );
            self.wrong.entry(format!("{} {:?}", inst.name(), inst.variant.encoding)).or_default().push(text);
        }
    }

    fn judge(self) {
        println!(
            "{} words have the same access; different on purpose, registers by reason: {:#?}",
            self.same, self.excused
        );
        assert!(self.same > 0, "nothing was compared");
        let operations = self.wrong.len();
        let count: usize = self.wrong.values().map(Vec::len).sum();
        let shown: Vec<&String> = self
            .wrong
            .values()
            .step_by(operations.div_ceil(SHOWN).max(1))
            .filter_map(|examples| examples.first())
            .collect();
        assert!(
            self.wrong.is_empty(),
            "{count} words of {operations} operations differ from LLVM, of which:\n{}",
            shown.into_iter().map(String::as_str).collect::<Vec<_>>().join("\n")
        );
    }
}

/// A filling that decodes to its row on a target.
fn legal(random: &mut Random, target: Target, variant: &'static Variant) -> Option<(Vec<u8>, Inst)> {
    (0..ATTEMPTS).find_map(|_| {
        let mut bytes = filling(random, variant);
        if variant.name.starts_with("v_cmpx") && variant.layout.bytes >= 8 && variant.mask & 0xff == 0 {
            // The result is EXEC, whatever the field says; LLVM wants it to say so.
            bytes[0] = EXEC_CODE;
        }
        let inst = isa::decode(target, &bytes).ok().filter(|inst| inst.variant == variant)?;
        bytes.truncate(inst.size.into());
        Some((bytes, inst))
    })
}

/// What LLVM says about words on a target; none where it rejects them.
fn ask(oracle: &mut Oracle, target: Target, words: &[Vec<u8>]) -> Vec<Option<Access>> {
    let name = llvm_name(target);
    let queries: Vec<Query<'_>> = words.iter().map(|bytes| Query { target: &name, bytes, pc: 0 }).collect();
    let answers = queries.chunks(PORTION).flat_map(|portion| oracle.ask_all(portion)).collect::<Vec<_>>();
    answers
        .into_iter()
        .map(|answer| match answer {
            Answer::Instruction { text, .. } => {
                Some(Access::llvm(&text).unwrap_or_else(|| panic!("llvm-access answered {text:?}")))
            }
            Answer::Rejected | Answer::Crash => None,
        })
        .collect()
}

#[test]
fn memory_and_control_flow_are_what_llvm_says() {
    let Some(program) = program() else {
        println!(
            "skipped: memory_and_control_flow_are_what_llvm_says, because rewriter-tests/llvm-access/build.sh has not \
                been run"
        );
        return;
    };
    let mut oracle = Oracle::of(program);
    let mut wrong = BTreeMap::<String, BTreeSet<&str>>::new();
    let mut compared = 0;
    for target in machines() {
        let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
        let tries: Vec<(Vec<u8>, Inst)> =
            isa::variants(target).filter_map(|variant| legal(&mut random, target, variant)).collect();
        let name = llvm_name(target);
        let queries: Vec<Query<'_>> = tries.iter().map(|(bytes, _)| Query { target: &name, bytes, pc: 0 }).collect();
        let answers = queries.chunks(PORTION).flat_map(|portion| oracle.ask_all(portion)).collect::<Vec<_>>();
        for ((_, inst), answer) in tries.iter().zip(answers) {
            let Answer::Instruction { text, .. } = answer else { continue };
            let llvm: BTreeSet<&str> =
                text.split('\t').nth(3).unwrap_or("").split_whitespace().filter(|word| *word != "untied").collect();
            compared += 1;
            if let Some(difference) = properties::difference(inst, &llvm) {
                wrong.entry(difference).or_default().insert(inst.variant.mnemonic);
            }
        }
    }
    println!("{compared} words compared");
    assert!(wrong.is_empty(), "differ from LLVM: {wrong:#?}");
}

#[test]
fn access_is_what_llvm_says() {
    let Some(program) = program() else {
        println!("skipped: access_is_what_llvm_says, because rewriter-tests/llvm-access/build.sh has not been run");
        return;
    };
    let asked = std::env::var("WAVETAP_ISA_FILLINGS").ok().and_then(|count| count.parse().ok());
    let fillings = asked.unwrap_or(FILLINGS[usize::from(full())]);
    let only = std::env::var("WAVETAP_ISA_TARGETS").unwrap_or_default();
    let mut oracle = Oracle::of(program);
    let mut findings = Findings::default();
    let (mut silent, mut unanswered, mut unknown) = (0, BTreeMap::<&str, BTreeSet<String>>::new(), Vec::new());
    for target in machines().filter(|target| only.is_empty() || only.split(',').any(|name| name == target.name())) {
        let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
        let tries: Vec<(Vec<u8>, Inst)> = isa::variants(target)
            .flat_map(|variant| (0..fillings).filter_map(|_| legal(&mut random, target, variant)).collect::<Vec<_>>())
            .collect();
        let words: Vec<Vec<u8>> = tries.iter().map(|(bytes, _)| bytes.clone()).collect();
        let mut answered = BTreeSet::new();
        for ((bytes, inst), llvm) in tries.iter().zip(ask(&mut oracle, target, &words)) {
            match llvm {
                Some(llvm) => {
                    answered.insert(inst.variant.mnemonic);
                    findings.compare(target, inst, bytes, &llvm);
                }
                None => silent += 1,
            }
        }
        if answered.is_empty() {
            unknown.push(label(target));
            continue;
        }
        for (_, inst) in tries.iter().filter(|(_, inst)| !answered.contains(inst.variant.mnemonic)) {
            unanswered.entry(inst.variant.mnemonic).or_default().insert(label(target));
        }
    }
    println!("LLVM says nothing about {silent} words; about no word of {unanswered:?}; it does not know {unknown:?}");
    if fillings >= FILLINGS[1] && only.is_empty() {
        let unused: Vec<&str> =
            REASONS.iter().map(|reason| reason.what).filter(|what| !findings.excused.contains_key(what)).collect();
        assert!(unused.is_empty(), "reasons that nothing needs: {unused:?}");
    }
    findings.judge();
}

fn expected_file() -> PathBuf {
    place::root().join("rewriter-tests/tests/isa_access/expected.txt")
}

/// One line for every row and set of targets about which LLVM says the same.
fn bless(program: PathBuf) {
    let mut oracle = Oracle::of(program);
    let targets = representatives();
    let mut random = Random::new(0x2545_f491_4f6c_dd1d);
    // For every target the words to ask about; a word serves as many targets as it can.
    let mut words: Vec<Vec<Vec<u8>>> = vec![Vec::new(); targets.len()];
    let mut seen = BTreeSet::new();
    for variant in targets.iter().flat_map(|&target| isa::variants(target)) {
        if !seen.insert(std::ptr::from_ref(variant)) {
            continue;
        }
        let mut left: Vec<usize> =
            (0..targets.len()).filter(|&at| variant.targets & 1 << targets[at].instruction_table() != 0).collect();
        while let Some(&first) = left.first() {
            let Some((bytes, _)) = legal(&mut random, targets[first], variant) else {
                left.remove(0);
                continue;
            };
            left.retain(|&at| {
                let serves = isa::decode(targets[at], &bytes)
                    .is_ok_and(|inst| inst.variant == variant && usize::from(inst.size) == bytes.len());
                if serves {
                    words[at].push(bytes.clone());
                }
                !serves
            });
        }
    }
    let mut lines = BTreeMap::<(Vec<u8>, Access), Vec<String>>::new();
    for (target, words) in targets.iter().zip(&words) {
        for (bytes, llvm) in words.iter().zip(ask(&mut oracle, *target, words)) {
            if let Some(llvm) = llvm {
                lines.entry((bytes.clone(), llvm)).or_default().push(label(*target));
            }
        }
    }
    let mut sections = BTreeMap::<Vec<String>, Vec<String>>::new();
    for ((bytes, llvm), targets) in lines {
        sections.entry(targets).or_default().push(format!("{} {}", hex(&bytes), llvm.compact()));
    }
    let mut text = String::from(
        "# What LLVM 22 says that instructions read > write, by the targets and wave sizes on which it says so. \
            Written by the test isa_access\n\
         # with BLESS=1 and llvm-access (see there). A word for every row of the instruction tables.\n",
    );
    for (targets, lines) in sections {
        let _ = write!(text, "[{}]\n{}\n", targets.join(" "), lines.join("\n"));
    }
    std::fs::write(expected_file(), text).unwrap();
}

#[test]
fn access_is_what_llvm_said() {
    if std::env::var_os("BLESS").is_some() {
        bless(program().expect("rewriter-tests/llvm-access/build.sh has been run"));
    }
    let text = std::fs::read_to_string(expected_file()).expect("the file is there");
    let mut findings = Findings::default();
    let mut targets: Vec<Target> = Vec::new();
    let mut covered = BTreeSet::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        if let Some(names) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            targets = names
                .split(' ')
                .map(|name| by_label(name).unwrap_or_else(|| panic!("line {}: no target {name}", number + 1)))
                .collect();
            continue;
        }
        let parsed = line.split_once(' ').and_then(|(word, access)| Some((unhex(word)?, Access::expand(access)?)));
        let (bytes, llvm) = parsed.unwrap_or_else(|| panic!("line {} is not understood: {line}", number + 1));
        for &target in &targets {
            match isa::decode(target, &bytes) {
                Ok(inst) => {
                    covered.insert((label(target), std::ptr::from_ref(inst.variant)));
                    findings.compare(target, &inst, &bytes, &llvm);
                }
                Err(error) => findings
                    .wrong
                    .entry("not decoded".to_owned())
                    .or_default()
                    .push(format!("{} {line}: {error}", label(target))),
            }
        }
    }
    let uncovered: BTreeMap<String, Vec<&str>> = representatives()
        .into_iter()
        .map(|target| {
            let missing = isa::variants(target)
                .filter(|variant| !covered.contains(&(label(target), std::ptr::from_ref(*variant))));
            (label(target), missing.map(|variant| variant.mnemonic).collect::<Vec<_>>())
        })
        .filter(|(_, missing)| !missing.is_empty())
        .collect();
    // What LLVM does not know has no word at all.
    let (unknown, uncovered): (Vec<_>, Vec<_>) =
        uncovered.into_iter().partition(|(label, _)| !covered.iter().any(|(known, _)| known == label));
    println!(
        "rows that the file has no word for: {uncovered:?}, and all of {:?}",
        unknown.iter().map(|(label, _)| label).collect::<Vec<_>>()
    );
    findings.judge();
}
