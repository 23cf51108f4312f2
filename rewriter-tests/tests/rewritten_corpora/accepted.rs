//! What others than the rewriter say of a rewritten code object.
//!
//! - `verify` has no finding;
//! - goblin reads it, and through it every original byte is where it was;
//! - LLVM decodes all of the new code: an instruction after the other, from a kernel's symbol to its end, each of the
//!   size that our decoder gives it;
//! - LLVM writes an original instruction and what the map says has become of it alike: bytes that differ belong to
//!   instructions with places in them, to runs that have become longer, or to calls of functions that were copied.

use std::collections::{HashMap, HashSet};

use goblin::elf::Elf;
use llvm_oracle::{MAX_INSTRUCTION_BYTES, Oracle, Query};
use rewriter_tests::{Failure, accept};
use wavetap::isa::{self, Target};
use wavetap::profile::map::ObjectMap;
use wavetap::verify;

/// Ends of the symbols of new code.
const CODE_SUFFIX: &str = ".wavetap";
/// Mnemonics of instructions whose operands say how far away something is, or how many instructions follow.
const PLACES: [&str; 12] = [
    "s_branch",
    "s_cbranch",
    "s_call",
    "s_getpc",
    "s_add_u32",
    "s_addc_u32",
    "s_add_co_u32",
    "s_add_co_ci_u32",
    "s_add_nc_u64",
    "s_add_u64",
    "s_clause",
    "s_delay_alu",
];
/// Mnemonics of instructions that go where a register says: a known place may be named instead.
const CALLS: [&str; 4] = ["s_swappc", "s_setpc", "s_call", "s_getpc"];

/// One thread's LLVM, and what it was asked.
pub struct Accepting {
    oracle: Oracle,
    /// Instructions that LLVM has decoded as we do, by target.
    known: HashMap<&'static str, HashSet<Vec<u8>>>,
}

impl Accepting {
    /// Starts LLVM.
    pub fn new() -> Accepting {
        Accepting { oracle: Oracle::new().expect("the Rust toolchain has LLVM"), known: HashMap::new() }
    }

    /// Looks at one object.
    ///
    /// # Errors
    /// What somebody does not accept.
    pub fn look(&mut self, target: Target, original: &[u8], rewritten: &[u8], map: &ObjectMap) -> Result<(), Failure> {
        let report = verify::check_files(original, rewritten).map_err(|e| e.to_string())?;
        if let Some((_, finding)) = report.findings.first() {
            return Err(format!("verify: {finding}"));
        }
        if report.kernels != map.kernels.len() {
            return Err(format!("verify looked at {} kernels of {}", report.kernels, map.kernels.len()));
        }
        accept::nothing_moved(original, rewritten)?;
        let parse = |bytes| Elf::parse(bytes).map_err(|e| format!("goblin: {e}"));
        let (old, new) = (Bytes::of(&parse(original)?, original), Bytes::of(&parse(rewritten)?, rewritten));
        let elf = parse(rewritten)?;
        let mut words: HashSet<&[u8]> = HashSet::new();
        let mut pairs: HashSet<(&[u8], &[u8])> = HashSet::new();
        for kernel in &map.kernels {
            let name = format!("{}{CODE_SUFFIX}", kernel.name);
            let symbol = elf.syms.iter().find(|symbol| elf.strtab.get_at(symbol.st_name) == Some(&name));
            let symbol = symbol.ok_or_else(|| format!("goblin finds no symbol {name}"))?;
            let code = new.at(symbol.st_value, symbol.st_size)?;
            sweep(target, code, &mut words)
                .map_err(|at| format!("{name}: no instruction {at:#x} bytes behind its start"))?;
            for pair in &kernel.addresses {
                let (before, after) = (old.rest(pair.original)?, new.rest(pair.rewritten)?);
                let size = |bytes| isa::decode(target, bytes).map(|inst| usize::from(inst.size));
                let (Ok(a), Ok(b)) = (size(before), size(after)) else {
                    return Err(format!(
                        "{}: no instruction at {:#x} or {:#x}",
                        kernel.name, pair.original, pair.rewritten
                    ));
                };
                if before[..a] != after[..b] {
                    pairs.insert((&before[..a], &after[..b]));
                }
            }
        }
        self.decode(target, &words)?;
        self.alike(target, &pairs)
    }

    /// LLVM gives each instruction the size that we give it.
    fn decode(&mut self, target: Target, words: &HashSet<&[u8]>) -> Result<(), Failure> {
        let known = self.known.entry(target.name()).or_default();
        let new: Vec<&[u8]> = words.iter().copied().filter(|word| !known.contains(*word)).collect();
        for (word, answer) in new.iter().zip(ask(&mut self.oracle, target, &new)) {
            match answer {
                Some((size, _)) if size == word.len() => drop(known.insert(word.to_vec())),
                // LLVM 22 rejects a destination field that is not used, as older compilers wrote it.
                None if isa::decode(target, word).is_ok_and(|inst| inst.name().starts_with("v_cmpx_")) => {}
                other => return Err(format!("{word:02x?} of the new code: LLVM says {other:?}")),
            }
        }
        Ok(())
    }

    fn alike(&mut self, target: Target, pairs: &HashSet<(&[u8], &[u8])>) -> Result<(), Failure> {
        let pairs: Vec<_> = pairs.iter().copied().collect();
        let before = ask(&mut self.oracle, target, &pairs.iter().map(|pair| pair.0).collect::<Vec<_>>());
        let after = ask(&mut self.oracle, target, &pairs.iter().map(|pair| pair.1).collect::<Vec<_>>());
        for (before, after) in before.into_iter().zip(after) {
            let (Some((_, before)), Some((_, after))) = (before, after) else {
                return Err("LLVM does not know an instruction of the map".to_owned());
            };
            let name = |text: &str| text.split(' ').next().unwrap_or_default().to_owned();
            let is = |text: &str, names: &[&str]| names.iter().any(|name| text.starts_with(name));
            let same = name(&before) == name(&after) && is(&before, &PLACES);
            let turned = is(&before, &["s_cbranch", "s_branch"]) && is(&after, &["s_cbranch", "s_branch"]);
            let called = is(&before, &CALLS) && is(&after, &CALLS);
            if !(same || turned || called) {
                return Err(format!("`{before}` has become `{after}`"));
            }
        }
        Ok(())
    }
}

/// What LLVM says of words: size and text.
fn ask(oracle: &mut Oracle, target: Target, words: &[&[u8]]) -> Vec<Option<(usize, String)>> {
    let processor = match target.name() {
        // LLVM 22 has dropped these early versions of gfx942.
        "gfx940" | "gfx941" => "gfx942",
        name => name,
    };
    // LLVM 22 writes halves of registers on gfx12 only when told to.
    let halves = if processor.starts_with("gfx12") { ",+real-true16" } else { "" };
    let name = format!("{processor}{halves}");
    let queries: Vec<Query<'_>> = words.iter().map(|bytes| Query { target: &name, bytes, pc: 0 }).collect();
    oracle.ask_all(&queries).into_iter().map(llvm_oracle::Answer::instruction).collect()
}

/// One instruction after the other; the place of the first that is none.
fn sweep<'b>(target: Target, code: &'b [u8], words: &mut HashSet<&'b [u8]>) -> Result<(), usize> {
    let mut at = 0;
    while at < code.len() {
        let rest = &code[at..code.len().min(at + MAX_INSTRUCTION_BYTES)];
        let size = isa::decode(target, rest).map_err(|_| at)?.size as usize;
        words.insert(&rest[..size]);
        at += size;
    }
    Ok(())
}

/// A file's bytes by virtual address, as goblin reads its segments.
struct Bytes<'b> {
    file: &'b [u8],
    /// Address, offset, size.
    loads: Vec<(u64, u64, u64)>,
}

impl<'b> Bytes<'b> {
    fn of(elf: &Elf<'_>, file: &'b [u8]) -> Bytes<'b> {
        let loads = elf.program_headers.iter().filter(|p| p.p_type == goblin::elf::program_header::PT_LOAD);
        Bytes { file, loads: loads.map(|p| (p.p_vaddr, p.p_offset, p.p_filesz)).collect() }
    }

    /// From an address to the end of its segment.
    fn rest(&self, address: u64) -> Result<&'b [u8], Failure> {
        let load = self.loads.iter().find(|(start, _, size)| *start <= address && address - start < *size);
        let (start, offset, size) = *load.ok_or_else(|| format!("{address:#x} is in no segment"))?;
        let (from, to) = ((offset + address - start) as usize, (offset + size) as usize);
        self.file.get(from..to).ok_or_else(|| format!("{address:#x} is not in the file"))
    }

    fn at(&self, address: u64, size: u64) -> Result<&'b [u8], Failure> {
        self.rest(address)?
            .get(..size as usize)
            .ok_or_else(|| format!("{size} bytes at {address:#x} are not in one segment"))
    }
}
