//! Each distinct instruction of a target beside what two versions of LLVM make of it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasherDefault, DefaultHasher, Hasher};
use std::path::PathBuf;
use std::sync::Mutex;

use llvm_oracle::{Answer, MAX_INSTRUCTION_BYTES, Oracle, Query};
use rewriter_tests::full;
use rewriter_tests::place::LLVM_19;
use wavetap::isa::{self, Encoding, Inst, Role, Target};

/// In the quick run, one of this many distinct instructions is compared.
const SAMPLE: u64 = 16;
/// Differences that are kept, of each target and LLVM.
const KEPT: usize = 200;

/// One instruction, or a dword that is none.
pub struct Word {
    /// Where it was first seen.
    pub place: String,
    /// Its bytes and those after it.
    pub bytes: Vec<u8>,
}

type Digests = HashSet<u64, BuildHasherDefault<DefaultHasher>>;

/// What all threads have compared.
#[derive(Default)]
pub struct Seen {
    /// Digests of the instructions that were met, by target. A digest of 64 bits is the same for two of a few million
    /// by an accident of one in a million.
    words: Mutex<HashMap<&'static str, Digests>>,
    results: Mutex<BTreeMap<(&'static str, &'static str), Result>>,
}

/// What came out of the comparison with one LLVM for one target.
#[derive(Default)]
struct Result {
    same: usize,
    excused: BTreeMap<&'static str, usize>,
    different: usize,
    /// The first ones.
    differences: Vec<String>,
}

impl Seen {
    /// A line for each target and LLVM.
    pub fn summary(&self) -> String {
        let results = self.results.lock().expect("no thread panicked");
        let lines = results.iter().map(|((target, llvm), result)| {
            format!(
                "{target:9} beside {llvm}: {} same, {} differ; for a reason: {:?}",
                result.same, result.different, result.excused
            )
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The differences without a reason.
    pub fn differences(&self) -> Vec<String> {
        self.results
            .lock()
            .expect("no thread panicked")
            .values()
            .flat_map(|result| result.differences.clone())
            .collect()
    }
}

/// The LLVMs of one thread.
pub struct Differential<'s> {
    seen: &'s Seen,
    llvms: Vec<Llvm>,
}

struct Llvm {
    name: &'static str,
    oracle: Oracle,
    /// Whether it knows a target: it dies on the first question about one that it does not.
    knows: HashMap<&'static str, bool>,
    excuse: fn(&Ours, &[u8], Option<&str>) -> Option<&'static str>,
}

/// What we make of a word that is an instruction.
struct Ours {
    inst: Inst,
    text: String,
}

impl<'s> Differential<'s> {
    /// Starts the LLVMs.
    pub fn new(seen: &'s Seen) -> Self {
        let newest = Oracle::new().expect("the Rust toolchain has LLVM");
        let mut llvms = vec![Llvm { name: "LLVM 22", oracle: newest, knows: HashMap::new(), excuse: excuse_22 }];
        let other = PathBuf::from(LLVM_19);
        if other.is_file() {
            let oracle = Oracle::of_library(other).expect("the oracle is built");
            llvms.push(Llvm { name: "LLVM 19", oracle, knows: HashMap::new(), excuse: excuse_19 });
        } else {
            println!("SKIPPED the comparison with LLVM 19: there is no {LLVM_19}");
        }
        Self { seen, llvms }
    }

    /// The bytes at the start of `bytes`, `size` of them the instruction's, if this target's were not met before and
    /// are to be compared.
    pub fn new_word(&self, target: Target, bytes: &[u8], size: usize) -> Option<Vec<u8>> {
        let mut hasher = DefaultHasher::new();
        hasher.write(&bytes[..size]);
        let digest = hasher.finish();
        let new = self.seen.words.lock().expect("no thread panicked").entry(target.name()).or_default().insert(digest);
        let chosen = new && (full() || digest.is_multiple_of(SAMPLE));
        chosen.then(|| bytes[..bytes.len().min(MAX_INSTRUCTION_BYTES)].to_vec())
    }

    /// Compares size and text.
    pub fn compare(&mut self, target: Target, words: &[Word]) {
        let ours: Vec<Option<Ours>> = words
            .iter()
            .map(|word| {
                let inst = isa::decode(target, &word.bytes).ok()?;
                let text = isa::print(target, &inst);
                Some(Ours { inst, text })
            })
            .collect();
        for llvm in &mut self.llvms {
            if !llvm.knows(target) {
                continue;
            }
            let name = llvm_target(target);
            let queries: Vec<Query<'_>> =
                words.iter().map(|word| Query { target: &name, bytes: &word.bytes, pc: 0 }).collect();
            let answers = llvm.oracle.ask_all(&queries);
            let mut results = self.seen.results.lock().expect("no thread panicked");
            let result = results.entry((target.name(), llvm.name)).or_default();
            for ((word, ours), answer) in words.iter().zip(&ours).zip(answers) {
                let theirs = answer.instruction();
                let same = match (ours, &theirs) {
                    (Some(ours), Some((size, text))) => usize::from(ours.inst.size) == *size && ours.text == *text,
                    (None, None) => true,
                    _ => false,
                };
                // No reason is good enough where sizes differ.
                let comparable =
                    |ours: &&Ours| theirs.as_ref().is_none_or(|(size, _)| usize::from(ours.inst.size) == *size);
                let text = theirs.as_ref().map(|(_, text)| text.as_str());
                if same {
                    result.same += 1;
                } else if ours.is_none() && text == Some("v_illegal") {
                    *result
                        .excused
                        .entry("a word of zeros, which LLVM calls v_illegal and we no instruction")
                        .or_default() += 1;
                } else if let Some(reason) =
                    ours.as_ref().filter(comparable).and_then(|ours| (llvm.excuse)(ours, &word.bytes, text))
                {
                    *result.excused.entry(reason).or_default() += 1;
                } else {
                    result.different += 1;
                    if result.differences.len() < KEPT {
                        let ours = ours.as_ref().map(|ours| (usize::from(ours.inst.size), &ours.text));
                        let bytes = word.bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
                        result.differences.push(format!(
                            "{} {} {bytes}: {ours:?}, {}: {theirs:?}",
                            target.name(),
                            word.place,
                            llvm.name
                        ));
                    }
                }
            }
        }
    }
}

impl Llvm {
    fn knows(&mut self, target: Target) -> bool {
        let oracle = &mut self.oracle;
        *self
            .knows
            .entry(target.name())
            .or_insert_with(|| oracle.ask(Query { target: target.name(), bytes: &[0; 4], pc: 0 }) != Answer::Crash)
    }
}

/// The target as LLVM is asked for it. LLVM 22 writes halves of registers on gfx12 only when told to.
fn llvm_target(target: Target) -> String {
    let halves = if target.name().starts_with("gfx12") { ",+real-true16" } else { "" };
    format!("{}{halves}", target.name())
}

/// Why a difference from LLVM 22 is right, if it is. `theirs` is its text, if it has one.
fn excuse_22(ours: &Ours, _bytes: &[u8], theirs: Option<&str>) -> Option<&'static str> {
    let compares_into_exec = ours.inst.name().starts_with("v_cmpx_") && ours.inst.variant.encoding == Encoding::Vop3;
    (theirs.is_none() && compares_into_exec)
        .then_some("v_cmpx with a destination field of 0, as older compilers wrote it: the field is not used")
}

/// Why a difference from LLVM 19 is right, if it is.
fn excuse_19(ours: &Ours, bytes: &[u8], theirs: Option<&str>) -> Option<&'static str> {
    let halves = ours.text.contains(".l") || ours.text.contains(".h");
    match theirs {
        Some(theirs) if without_marks(&ours.text) == theirs => {
            Some("a literal that could be inline, which newer versions mark")
        }
        Some(theirs)
            if halves && (theirs.contains("/*Invalid") || without_halves(&ours.text) == without_halves(theirs)) =>
        {
            Some("halves of registers, which it does not write")
        }
        None if halves => Some("halves of registers, which it does not know in this instruction"),
        None if ours.inst.operand(Role::Src2).is_none() && unused_source_is_zero(&ours.inst, bytes) => {
            Some("VOP3 with the inline constant 0 in a source field that is not used, as newer compilers write it")
        }
        _ => None,
    }
}

/// Operand code of the inline constant 0.
const INLINE_ZERO: u64 = 128;

/// Whether the third source field of a VOP3 or VOP3P instruction holds the inline constant 0.
fn unused_source_is_zero(inst: &Inst, bytes: &[u8]) -> bool {
    let word = bytes.first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight));
    matches!(inst.variant.encoding, Encoding::Vop3 | Encoding::Vop3p) && word >> 50 & 0x1ff == INLINE_ZERO
}

/// A text with marked literals written as the inline integers that they are equal to.
fn without_marks(text: &str) -> String {
    let mut parts = text.split("lit(");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (literal, rest) = part.split_once(')').unwrap_or((part, ""));
        match u32::from_str_radix(literal.trim_start_matches("0x"), 16) {
            Ok(value) => plain += &(value as i32).to_string(),
            Err(_) => plain += literal,
        }
        plain += rest;
    }
    plain
}

/// A text without the halves of registers, and without the modifier that says them once more.
fn without_halves(text: &str) -> String {
    let (before, after) = text.split_once(" op_sel:[").unwrap_or((text, ""));
    let rest = after.split_once(']').map_or("", |(_, rest)| rest);
    format!("{before}{rest}").replace(".l", "").replace(".h", "")
}
