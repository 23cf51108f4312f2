//! Whether everybody takes a rewritten file: our own checker, LLVM's readers and goblin; and, through goblin alone,
//! whether every original byte is still where it was.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::Path;

use goblin::elf::Elf;
use goblin::elf::section_header::{SHF_ALLOC, SHT_PROGBITS};
use wavetap::offload_bundle::Input;

use crate::Failure;
use crate::command::{self, Finished};

/// LLVM's tools are those of Debian's packages, by their versioned names.
const READELF: &str = "llvm-readelf-19";
const OBJDUMP: &str = "llvm-objdump-19";

/// Sections whose bytes a rewrite may change: symbol, string, hash and relocation tables, what points at them, and the
/// wrappers of the bundles.
const MAY_CHANGE: &[&str] = &[".dynamic", ".hipFatBinSegment", ".got", ".data.rel.ro", ".init_array"];

/// Size of a kernel descriptor (AMDGPUUsage, "Kernel Descriptor").
const DESCRIPTOR: u64 = 64;

/// Checks a rewritten host file, bundle or code object beside the original.
///
/// # Errors
/// What somebody did not accept.
pub fn rewritten(original: &Path, rewritten: &Path) -> Result<(), Failure> {
    let arguments = [Path::new("verify"), original, rewritten];
    command::run(&command::wavetap()?, &arguments, &[], crate::place::root())?.exited(0)?;
    let read = |path: &Path| fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
    let (before, after) = (read(original)?, read(rewritten)?);
    if before.starts_with(b"\x7fELF") {
        elf_pair(original, rewritten, &before, &after).map_err(|e| format!("{}: {e}", rewritten.display()))?;
    }
    let parse = |bytes| Input::parse(bytes).map_err(|e| e.to_string());
    let (first, second) = (parse(&before)?, parse(&after)?);
    let (first, second): (Vec<_>, Vec<_>) = (first.code_objects().collect(), second.code_objects().collect());
    if first.len() != second.len() || first.is_empty() {
        return Err(format!(
            "{}: {} code objects, the original has {}",
            rewritten.display(),
            second.len(),
            first.len()
        ));
    }
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    for (index, (a, b)) in first.iter().zip(&second).enumerate() {
        let name = |which: &str| folder.path().join(format!("{which}{index}.co"));
        for (path, object) in [(name("original"), a), (name("rewritten"), b)] {
            fs::write(&path, object.bytes).map_err(|e| e.to_string())?;
        }
        let target = a.target.map_or_else(String::new, ToString::to_string);
        if target != b.target.map_or_else(String::new, ToString::to_string) {
            return Err(format!("code object {index} is for another target than {target}"));
        }
        elf_pair(&name("original"), &name("rewritten"), a.bytes, b.bytes)
            .map_err(|e| format!("{}, code object {index} ({target}): {e}", rewritten.display()))?;
    }
    Ok(())
}

/// One ELF file and what became of it.
fn elf_pair(original: &Path, rewritten: &Path, before: &[u8], after: &[u8]) -> Result<(), Failure> {
    for (tool, arguments) in [
        (READELF, &["-a", "-W"][..]),
        (READELF, &["--notes"]),
        (READELF, &["--section-details", "--dyn-syms", "--gnu-hash-table"]),
        (OBJDUMP, &["-d", "-t", "-T"]),
    ] {
        // AMD's older tools write things that LLVM warns about: only what is new counts.
        let known: BTreeSet<String> = complaints(&tool_run(tool, arguments, original)?, original);
        let finished = tool_run(tool, arguments, rewritten)?;
        let new: Vec<String> = complaints(&finished, rewritten).difference(&known).cloned().collect();
        if finished.code != 0 || !new.is_empty() {
            return Err(finished.failure(&format!("{tool} does not accept it: {}", new.join("; "))));
        }
    }
    nothing_moved(before, after)
}

fn tool_run(tool: &str, arguments: &[&str], file: &Path) -> Result<Finished, Failure> {
    let mut all: Vec<&Path> = arguments.iter().map(Path::new).collect();
    all.push(file);
    command::run(Path::new(tool), &all, &[], crate::place::root())
}

/// Warnings and errors without the file's name.
fn complaints(finished: &Finished, file: &Path) -> BTreeSet<String> {
    let text = finished.err() + &finished.out();
    let lines = text.lines().filter(|l| l.contains("warning:") || l.contains("error:"));
    lines.map(|l| l.replace(&file.display().to_string(), "FILE")).collect()
}

/// Every allocated original byte is at its original address, except where a rewrite may change it.
///
/// # Errors
/// The first that is not.
pub fn nothing_moved(before: &[u8], after: &[u8]) -> Result<(), Failure> {
    let parse = |bytes, which| Elf::parse(bytes).map_err(|e| format!("goblin does not accept the {which}: {e}"));
    let (old, new) = (parse(before, "original")?, parse(after, "rewritten file")?);
    let symbols = |elf: &Elf<'_>| -> BTreeSet<(String, u64, u64)> {
        let named =
            elf.syms.iter().filter_map(|s| elf.strtab.get_at(s.st_name).map(|n| (n.to_owned(), s.st_value, s.st_size)));
        let dynamic = elf
            .dynsyms
            .iter()
            .filter_map(|s| elf.dynstrtab.get_at(s.st_name).map(|n| (n.to_owned(), s.st_value, s.st_size)));
        named.chain(dynamic).filter(|(name, ..)| !name.is_empty()).collect()
    };
    if let Some((name, value, size)) = symbols(&old).difference(&symbols(&new)).next() {
        return Err(format!("the symbol {name} ({value:#x}, {size} bytes) is gone or changed"));
    }
    // Only kernel descriptors of a device object: 64-byte objects named NAME.kd.
    let descriptors: Vec<Range<u64>> = symbols(&old)
        .into_iter()
        .filter(|(name, _, size)| name.ends_with(".kd") && *size == DESCRIPTOR)
        .map(|(_, value, size)| value..value + size)
        .collect();
    for section in
        old.section_headers.iter().filter(|s| s.sh_type == SHT_PROGBITS && s.sh_flags & u64::from(SHF_ALLOC) != 0)
    {
        let name = old.shdr_strtab.get_at(section.sh_name).unwrap_or("?");
        if MAY_CHANGE.contains(&name) {
            continue;
        }
        let bytes = &before[section.sh_offset as usize..(section.sh_offset + section.sh_size) as usize];
        for (at, byte) in bytes.iter().enumerate() {
            let address = section.sh_addr + at as u64;
            if byte_at(&new, after, address) != Some(*byte) && !descriptors.iter().any(|d| d.contains(&address)) {
                return Err(format!("the byte at {address:#x} ({name} + {at:#x}) is another one or gone"));
            }
        }
    }
    segments_are_sound(&new, after)
}

fn byte_at(elf: &Elf<'_>, file: &[u8], address: u64) -> Option<u8> {
    let segment = elf.program_headers.iter().find(|p| {
        p.p_type == goblin::elf::program_header::PT_LOAD && p.p_vaddr <= address && address - p.p_vaddr < p.p_filesz
    })?;
    file.get((segment.p_offset + (address - segment.p_vaddr)) as usize).copied()
}

/// What loaders rely on and no reader checks: `PT_LOAD`s ascend, do not overlap, and are congruent to their file offset
/// modulo the page; nothing is writable and executable.
fn segments_are_sound(elf: &Elf<'_>, file: &[u8]) -> Result<(), Failure> {
    const PAGE: u64 = 4096;
    let mut end = 0;
    for load in elf.program_headers.iter().filter(|p| p.p_type == goblin::elf::program_header::PT_LOAD) {
        let place = format!("the segment at {:#x}", load.p_vaddr);
        if load.p_vaddr < end {
            return Err(format!("{place} begins before the one before it ends ({end:#x})"));
        }
        end = load.p_vaddr + load.p_memsz;
        if load.p_vaddr % PAGE != load.p_offset % PAGE {
            return Err(format!("{place} is not congruent to its file offset {:#x}", load.p_offset));
        }
        if load.p_offset + load.p_filesz > file.len() as u64 || load.p_filesz > load.p_memsz {
            return Err(format!("{place} has contents that are not in the file, or more of them than memory"));
        }
        if load.is_write() && load.is_executable() {
            return Err(format!("{place} is writable and executable"));
        }
    }
    Ok(())
}
