//! Which registers an instruction reads and writes, by name and one by one: by our tables and by LLVM's.
//!
//! LLVM's side is what `llvm-access` (see `llvm-access/build.sh`) prints for a word. Names are `v7`, `a7`, `s7`,
//! `ttmp3`, `vcc_lo`, `exec_hi`, `m0`, `scc`, `mode` and so on, the same on all targets.
//!
//! A result that fills one half of a register leaves the other as it was. LLVM has names for halves (`v7.l`); here such
//! a write is a read and a write of the whole register.

use std::collections::BTreeSet;
use std::fmt::Write;

use wavetap::isa::{Inst, Reg, RegFile, Target, scalar};

/// Register names.
pub type Names = BTreeSet<String>;

/// What an instruction reads and writes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Access {
    /// What it reads, named or not.
    pub reads: Names,
    /// What it writes, named or not.
    pub writes: Names,
}

impl Access {
    /// By our tables.
    #[must_use]
    pub fn ours(target: Target, inst: &Inst) -> Access {
        let names =
            |regs: &mut dyn Iterator<Item = Reg>| -> Names { regs.flat_map(|reg| names(target, reg)).collect() };
        Access { reads: names(&mut inst.reads()), writes: names(&mut inst.writes()) }
    }

    /// From an answer of `llvm-access`, without the size in front: opcode, reads, writes and more, with tabs between
    /// them.
    #[must_use]
    pub fn llvm(answer: &str) -> Option<Access> {
        let mut parts = answer.split('\t').skip(1);
        let mut access = Access::default();
        for name in parts.next()?.split_whitespace() {
            access.reads.insert(whole(name).to_owned());
        }
        for name in parts.next()?.split_whitespace() {
            access.writes.insert(whole(name).to_owned());
            if is_half(name) {
                access.reads.insert(whole(name).to_owned());
            }
        }
        Some(access)
    }

    /// The short form of expected answers: `exec s[4:5] v7 > v[8:9]`.
    #[must_use]
    pub fn compact(&self) -> String {
        format!("{}> {}", compact(&self.reads), compact(&self.writes)).trim_end().to_owned()
    }

    /// Reads the short form.
    #[must_use]
    pub fn expand(text: &str) -> Option<Access> {
        let (reads, writes) = text.split_once('>')?;
        Some(Access { reads: expand(reads)?, writes: expand(writes)? })
    }
}

/// LLVM's name without the mark of implicit registers and without the half, in our spelling.
fn whole(name: &str) -> &str {
    let name = name.strip_prefix('+').unwrap_or(name);
    match name.strip_suffix(".l").or(name.strip_suffix(".h")).unwrap_or(name) {
        "src_scc" => "scc",
        "sgpr_null" | "sgpr_null_hi" => "null",
        other => other,
    }
}

fn is_half(name: &str) -> bool {
    name.ends_with(".l") || name.ends_with(".h")
}

/// The names of a run's registers.
pub fn names(target: Target, reg: Reg) -> impl Iterator<Item = String> {
    (reg.first..reg.first + u16::from(reg.dwords)).map(move |number| name(target, reg.file, number))
}

/// The first operand codes of registers with two halves, and their names.
const PAIRS: [(u16, &str); 4] = [
    (scalar::FLAT_SCRATCH, "flat_scr"),
    (scalar::XNACK_MASK, "xnack_mask"),
    (scalar::VCC, "vcc"),
    (scalar::EXEC, "exec"),
];
/// Those without, and the read-only sources.
const SINGLE: [(u16, &str); 14] = [
    (230, "src_flat_scratch_base_lo"),
    (231, "src_flat_scratch_base_hi"),
    (scalar::M0, "m0"),
    (scalar::M0 + 1, "null"),
    (scalar::SHARED_BASE, "src_shared_base_lo"),
    (scalar::SHARED_BASE + 1, "src_shared_limit_lo"),
    (scalar::SHARED_BASE + 2, "src_private_base_lo"),
    (scalar::SHARED_BASE + 3, "src_private_limit_lo"),
    (scalar::SHARED_BASE + 4, "src_pops_exiting_wave_id"),
    (scalar::VCCZ, "src_vccz"),
    (scalar::EXECZ, "src_execz"),
    (scalar::SCC, "scc"),
    (scalar::LDS_DIRECT, "lds_direct"),
    (scalar::MODE, "mode"),
];

fn name(target: Target, file: RegFile, number: u16) -> String {
    match file {
        RegFile::Vector => return format!("v{number}"),
        RegFile::Accum => return format!("a{number}"),
        // What comes after has operand codes of its own on gfx8 and gfx9.
        RegFile::Scalar
            if number < scalar::FLAT_SCRATCH || number < scalar::VCC && target.addressable_sgprs() > 102 =>
        {
            return format!("s{number}");
        }
        RegFile::Scalar => {}
    }
    if let Some((_, name)) = SINGLE.iter().find(|(code, _)| *code == number) {
        return (*name).to_owned();
    }
    if let Some((code, name)) = PAIRS.iter().find(|(code, _)| *code == number & !1) {
        return format!("{name}_{}", if number == *code { "lo" } else { "hi" });
    }
    // gfx8 has the trap handler's base and memory address before fewer temporaries.
    let (first_temporary, handler) =
        if target.name().starts_with("gfx8") { (112, true) } else { (scalar::TTMP0, false) };
    match number {
        108..=111 if handler => {
            format!(
                "{}_{}",
                if number < 110 { "tba" } else { "tma" },
                if number.is_multiple_of(2) { "lo" } else { "hi" }
            )
        }
        _ if (first_temporary..scalar::M0).contains(&number) => format!("ttmp{}", number - first_temporary),
        _ => format!("scalar{number}"),
    }
}

/// A name's letters and its number; those of named registers have no number.
fn split(name: &str) -> (&str, Option<u16>) {
    let letters = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match name[letters.len()..].parse() {
        Ok(number) if matches!(letters, "v" | "a" | "s" | "ttmp") => (letters, Some(number)),
        _ => (name, None),
    }
}

/// `s[4:5] vcc `: runs, and both halves as one; a space after each.
fn compact(names: &Names) -> String {
    let mut sorted: Vec<_> = names.iter().map(|name| split(name)).collect();
    sorted.sort_unstable();
    let mut text = String::new();
    let mut at = 0;
    while at < sorted.len() {
        let (letters, first) = sorted[at];
        let mut count = 1;
        match first {
            Some(first) => {
                while sorted.get(at + count) == Some(&(letters, Some(first + count as u16))) {
                    count += 1;
                }
                if count > 1 {
                    let _ = write!(text, "{letters}[{first}:{}] ", usize::from(first) + count - 1);
                } else {
                    let _ = write!(text, "{letters}{first} ");
                }
            }
            // `vcc_hi` is before `vcc_lo`.
            None => match letters.strip_suffix("_hi") {
                Some(pair) if sorted.get(at + 1).is_some_and(|next| next.0.strip_suffix("_lo") == Some(pair)) => {
                    count = 2;
                    let _ = write!(text, "{pair} ");
                }
                _ => {
                    let _ = write!(text, "{letters} ");
                }
            },
        }
        at += count;
    }
    text
}

fn expand(text: &str) -> Option<Names> {
    let mut names = Names::new();
    for word in text.split_whitespace() {
        if let Some((letters, run)) = word.split_once('[') {
            let (first, last) = run.strip_suffix(']')?.split_once(':')?;
            let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
            names.extend((first..=last).map(|number| format!("{letters}{number}")));
        } else if PAIRS.iter().any(|(_, pair)| *pair == word) || matches!(word, "tba" | "tma") {
            names.extend([format!("{word}_lo"), format!("{word}_hi")]);
        } else {
            names.insert(word.to_owned());
        }
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn llvm_answers_have_whole_registers_and_a_short_form() {
        let answer = "V_ADD_F16_t16_e32_gfx11\t+exec_hi +exec_lo +mode v1.h s2 s3 s4 src_scc\tv65.l +vcc_lo\t\t2";
        let access = Access::llvm(answer).unwrap();
        assert_eq!(access.compact(), "exec mode s[2:4] scc v1 v65 > v65 vcc_lo");
        assert_eq!(Access::expand(&access.compact()), Some(access));
    }
}
