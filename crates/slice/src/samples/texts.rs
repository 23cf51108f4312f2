//! Samples that have an instruction's text in place of its address, found in the code: only where there is one place
//! that they can be.
//!
//! All samples of a dispatch are of one kernel and of the functions that it calls. A kernel can be a dispatch's if each
//! of the dispatch's texts is somewhere in it, at the source line that the sample names. A sample belongs to an
//! instruction if that one alone fits, in all kernels that the dispatch can be of; else it is kept apart as ambiguous,
//! with what it may be. Texts are compared without the suffix of the encoding, and their numbers by value. Of source
//! files the name is compared, without its folders, which differ from machine to machine. A sample without a source
//! line fits any instruction; one with a line fits none of which the file does not say the line.
//!
//! That nothing contradicts is not enough: every kernel ends and waits. Something has to speak for the kernels of this
//! file, a source line or some instructions with their registers; else the dispatch may be of any program, and its
//! samples are given to none.

use std::collections::{BTreeMap, BTreeSet};

use crate::result::{Ambiguous, Candidate, Mismatch};
use rustc_hash::FxHashMap;
use wavetap_base::error::{Error, Result};
use wavetap_code::{Function, SourceLines};
use wavetap_profile::pc_samples::{Place, SampledObject, TextPlace};

/// A code object to find samples in.
pub struct Searched<'a> {
    /// Its kernels and functions.
    pub functions: &'a [Box<dyn Function + 'a>],
    /// Its source lines.
    pub lines: &'a dyn SourceLines,
}

/// So many different instructions that name registers speak for a kernel, where no source line does.
const ENOUGH_TEXTS: usize = 3;

/// Samples of a dispatch that no kernel of the input can have made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// The dispatch's number in the file of samples.
    pub dispatch: u64,
    /// Samples.
    pub samples: u64,
    /// What does not fit.
    pub mismatch: Mismatch,
}

/// Samples that were found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// By code object, those that have one place.
    pub placed: BTreeMap<usize, SampledObject>,
    /// The others, the most samples first.
    pub ambiguous: Vec<Ambiguous>,
    /// Dispatches of other files.
    pub foreign: Vec<Foreign>,
}

/// Finds the samples of some dispatches in code objects.
///
/// # Errors
/// Malformed if no dispatch can be of any kernel there: with the line of the first sample that does not fit.
pub fn find(objects: &[Searched<'_>], dispatches: &BTreeMap<u64, Vec<TextPlace>>) -> Result<Found> {
    let index = Index::new(objects);
    let mut found = Found::default();
    // By text, comment and what they may be.
    let mut ambiguous: BTreeMap<(String, String, BTreeSet<InBody>), Place> = BTreeMap::new();
    let mut first: Option<Mismatch> = None;
    let mut fitting = 0;
    for (dispatch, texts) in dispatches {
        let places: Vec<Vec<At>> = texts.iter().map(|text| index.places(text)).collect();
        // Functions can be called from any kernel of their object.
        let fits = |entry: &(usize, usize)| places.iter().all(|at| at.iter().any(|at| at.may_be_in(*entry)));
        let entries: Vec<(usize, usize)> = index.entries.iter().copied().filter(fits).collect();
        if entries.is_empty() {
            let mismatch = mismatch(*dispatch, texts, &places);
            let samples = texts.iter().map(|text| text.place.samples).fold(0, u64::saturating_add);
            found.foreign.push(Foreign { dispatch: *dispatch, samples, mismatch: mismatch.clone() });
            first.get_or_insert(mismatch);
            continue;
        }
        fitting += 1;
        let speaks = speak_for_a_kernel(texts);
        for (text, at) in texts.iter().zip(&places) {
            let candidates: BTreeSet<InBody> = at
                .iter()
                .filter(|at| entries.iter().any(|entry| at.may_be_in(*entry)))
                .map(|at| (at.object, at.body, at.address))
                .collect();
            let addresses: BTreeSet<(usize, u64)> =
                candidates.iter().map(|(object, _, address)| (*object, *address)).collect();
            if let (Some((object, address)), 1, true) = (addresses.first(), addresses.len(), speaks) {
                found.placed.entry(*object).or_default().places.entry(*address).or_default().add(&text.place);
            } else {
                let key = (text.instruction.clone(), text.comment.clone(), candidates);
                ambiguous.entry(key).or_default().add(&text.place);
            }
        }
    }
    if let (0, Some(mismatch)) = (fitting, first) {
        return Err(Error::malformed(mismatch.to_string()));
    }
    let name = |(object, body, address): InBody| {
        let body = &objects[object].functions[body];
        Candidate { kernel: body.name().to_owned(), target: body.target().to_owned(), address }
    };
    found.ambiguous = ambiguous
        .into_iter()
        .map(|((instruction, comment, candidates), place)| Ambiguous {
            instruction,
            comment,
            samples: place.samples,
            issued: place.issued,
            stalled: place.stalled,
            candidates: candidates.into_iter().map(name).collect(),
        })
        .collect();
    found.ambiguous.sort_by(|a, b| b.samples.cmp(&a.samples).then(a.instruction.cmp(&b.instruction)));
    Ok(found)
}

/// Whether samples that fit somewhere say that they are of there: by a source line, or by instructions with their
/// registers.
fn speak_for_a_kernel(texts: &[TextPlace]) -> bool {
    let has_line = texts.iter().any(|text| !lines(&text.comment).is_empty());
    let named: BTreeSet<String> =
        texts.iter().map(|text| normal(&text.instruction)).filter(|text| names_registers(text)).collect();
    has_line || named.len() >= ENOUGH_TEXTS
}

/// Whether an instruction's text names a numbered register.
fn names_registers(text: &str) -> bool {
    let operands = text.split_once(' ').map_or("", |(_, operands)| operands);
    operands.split([' ', ',']).any(|operand| {
        let mut letters = operand.chars();
        matches!(letters.next(), Some('v' | 's' | 'a')) && matches!(letters.next(), Some('[' | '0'..='9'))
    })
}

/// Why no kernel can be the dispatch's.
fn mismatch(dispatch: u64, texts: &[TextPlace], places: &[Vec<At>]) -> Mismatch {
    let nowhere =
        texts.iter().zip(places).filter(|(_, at)| at.is_empty()).map(|(text, _)| text).min_by_key(|text| text.line);
    match nowhere {
        Some(text) => {
            Mismatch::NoText { line: text.line, instruction: text.instruction.clone(), comment: text.comment.clone() }
        }
        None => Mismatch::NoKernelWithAll { line: texts.iter().map(|text| text.line).min().unwrap_or(0), dispatch },
    }
}

/// The operation of a printed instruction, without the suffix of its encoding.
pub(super) fn operation(text: &str) -> &str {
    let name = text.split_whitespace().next().unwrap_or_default();
    ["_e32", "_e64", "_sdwa", "_dpp", "_e64_dpp"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

/// Numbers of object and body, and address.
type InBody = (usize, usize, u64);

/// An instruction, by the numbers of object and body.
#[derive(Debug, Clone, Copy)]
struct At {
    object: usize,
    body: usize,
    is_function: bool,
    address: u64,
}

impl At {
    /// Whether a dispatch of this kernel may execute it.
    fn may_be_in(self, (object, body): (usize, usize)) -> bool {
        self.object == object && (self.body == body || self.is_function)
    }
}

/// The instructions of all code by what a sample says of them.
struct Index<'a> {
    objects: &'a [Searched<'a>],
    by_text: FxHashMap<String, Vec<At>>,
    /// Where dispatches begin: kernels, or functions where there are no kernels.
    entries: Vec<(usize, usize)>,
}

impl<'a> Index<'a> {
    fn new(objects: &'a [Searched<'a>]) -> Self {
        let mut by_text: FxHashMap<String, Vec<At>> = FxHashMap::default();
        let mut entries = Vec::new();
        for (object, code) in objects.iter().enumerate() {
            let kernels = code.functions.iter().any(|body| body.is_kernel());
            for (number, body) in code.functions.iter().enumerate() {
                let is_function = !body.is_kernel();
                if is_function != kernels {
                    entries.push((object, number));
                }
                for address in body.addresses() {
                    let at = At { object, body: number, is_function, address };
                    by_text.entry(normal(&body.text(address).unwrap_or_default())).or_default().push(at);
                }
            }
        }
        Index { objects, by_text, entries }
    }

    fn places(&self, text: &TextPlace) -> Vec<At> {
        let lines = lines(&text.comment);
        let fits = |at: &&At| match self.objects[at.object].lines.line(at.address) {
            _ if lines.is_empty() => true,
            Some(source) => lines.iter().any(|(file, line)| *line == source.line && *file == file_name(&source.file)),
            None => false,
        };
        self.by_text.get(&normal(&text.instruction)).into_iter().flatten().filter(fits).copied().collect()
    }
}

/// File names and lines of a comment: one, or, of inlined code, several.
fn lines(comment: &str) -> Vec<(&str, u32)> {
    let part = |part: &'_ str| -> Option<(usize, usize, u32)> {
        let (file, line) = part.trim().rsplit_once(':')?;
        let start = file.as_ptr() as usize - comment.as_ptr() as usize;
        Some((start, start + file.len(), line.parse().ok()?))
    };
    // Line 0 is none.
    comment
        .split("->")
        .filter_map(part)
        .filter(|(.., line)| *line > 0)
        .map(|(from, to, line)| (file_name(&comment[from..to]), line))
        .collect()
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// An instruction's text without what printers do differently: the suffix of the encoding, blanks, and how numbers are
/// written.
pub(super) fn normal(text: &str) -> String {
    let (mnemonic, operands) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
    let mut out = operation(mnemonic).to_owned();
    let mut word = String::new();
    let flush = |word: &mut String, out: &mut String| {
        let digits = word.strip_prefix("0x").map(|hex| u64::from_str_radix(hex, 16));
        match digits.unwrap_or_else(|| word.parse()) {
            Ok(number) => out.push_str(&number.to_string()),
            Err(_) => out.push_str(word),
        }
        word.clear();
    };
    out.push(' ');
    for c in operands.chars() {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '.') {
            word.push(c);
            continue;
        }
        flush(&mut word, &mut out);
        // A blank means something between two words only.
        match c {
            c if c.is_whitespace() => {
                if !out.ends_with([' ', ',']) {
                    out.push(' ');
                }
            }
            c => {
                if out.ends_with(' ') && matches!(c, ',' | ')' | ']' | '(') {
                    out.pop();
                }
                out.push(c);
            }
        }
    }
    flush(&mut word, &mut out);
    out.truncate(out.trim_end().len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_compared_by_meaning() {
        assert_eq!(normal("s_load_dwordx4 s[0:3], s[4:5], 0x18"), normal("s_load_dwordx4  s[0:3],s[4:5], 24"));
        assert_eq!(normal("v_mov_b32_e32 v2, s6"), normal("v_mov_b32 v2, s6"));
        assert_eq!(normal("s_waitcnt vmcnt(0) lgkmcnt(0)"), "s_waitcnt vmcnt(0) lgkmcnt(0)");
        assert_eq!(normal("s_endpgm"), normal(" s_endpgm "));
        assert_ne!(normal("v_mov_b32 v2, s6"), normal("v_mov_b32 v2, s7"));
        assert_ne!(
            normal("global_load_dword v1, v2, s[2:3] offset:16"),
            normal("global_load_dword v1, v2, s[2:3] offset:-16")
        );
        assert_ne!(normal("s_waitcnt vmcnt(0)"), normal("s_waitcnt vmcnt(1)"));
    }

    #[test]
    fn what_every_kernel_has_speaks_for_none() {
        let place = |instruction: &str, comment: &str| TextPlace {
            line: 2,
            instruction: instruction.to_owned(),
            comment: comment.to_owned(),
            place: Place { samples: 1, ..Place::default() },
        };
        let speak = |texts: &[&str]| speak_for_a_kernel(&texts.iter().map(|text| place(text, "")).collect::<Vec<_>>());
        assert!(!speak(&["s_endpgm", "s_waitcnt vmcnt(0)", "s_waitcnt lgkmcnt(0)", "s_barrier", "s_nop 0"]));
        assert!(
            !speak(&["s_endpgm", "v_mov_b32_e32 v1, v2", "v_mov_b32 v1, v2"]),
            "one instruction, printed in two ways"
        );
        assert!(speak(&["v_mov_b32_e32 v1, v2", "s_load_dword s8, s[4:5], 0x24", "global_load_dword v3, v[0:1], off"]));
        assert!(speak_for_a_kernel(&[place("s_endpgm", "k.hip:7")]));
        assert!(!speak_for_a_kernel(&[place("s_endpgm", "k.hip:0")]));
    }

    #[test]
    fn comments_have_one_line_or_several() {
        assert_eq!(lines("/a/b/k.hip:7"), [("k.hip", 7)]);
        assert_eq!(lines("/a/x.h:3 -> /b/k.hip:40"), [("x.h", 3), ("k.hip", 40)]);
        assert_eq!(lines(""), []);
        assert_eq!(lines("k.hip:?"), []);
    }
}
