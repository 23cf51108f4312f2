//! The file around the code objects: bundles and, in a host file, everything that is not device code.

use std::ops::Range;

use crate::file::image;
use crate::finding::{Finding, Rule};
use wavetap_base::error::Result;
use wavetap_object::elf::Elf;
use wavetap_object::offload_bundle::{Container, Input, POINTER_OFFSET};

/// Size of a pointer in a host file.
const POINTER_SIZE: u64 = 8;
/// Where a relocation entry has its addend (ELF, `Elf64_Rela`).
const ADDEND: u64 = 16;

/// A code object before and after: label, original bytes, rewritten bytes.
pub(crate) type Pairing<'a> = (String, &'a [u8], &'a [u8]);

/// Checks what lies around the code objects and pairs them.
pub(crate) fn pair<'a>(
    original: &'a Input<'_>,
    rewritten: &'a Input<'_>,
    findings: &mut Vec<Finding>,
) -> Result<Vec<Pairing<'a>>> {
    let bundles: Vec<(usize, usize)> = match (&original.container, &rewritten.container) {
        (Container::CodeObject, Container::CodeObject) => {
            return Ok(vec![("code object".to_owned(), original.data, rewritten.data)]);
        }
        (Container::Bundles, Container::Bundles) => {
            if original.bundles.len() != rewritten.bundles.len() {
                findings.push(Finding::new(Rule::HostFile, "there are more or fewer bundles than before"));
            }
            (0..original.bundles.len().min(rewritten.bundles.len())).map(|index| (index, index)).collect()
        }
        (Container::Host { .. }, Container::Host { .. }) => {
            host(original, rewritten, findings)?;
            let (old, new) = (original.wrappers(), rewritten.wrappers());
            if old.len() != new.len() || old.iter().zip(new).any(|(a, b)| a.address != b.address) {
                findings.push(Finding::new(Rule::HostFile, "the wrappers are not those of the original"));
                return Ok(Vec::new());
            }
            let mut pairs: Vec<_> = old.iter().zip(new).map(|(a, b)| (a.bundle, b.bundle)).collect();
            pairs.sort_unstable();
            pairs.dedup();
            pairs
        }
        _ => {
            findings.push(Finding::new(Rule::HostFile, "the file is of another sort than the original"));
            return Ok(Vec::new());
        }
    };
    let mut pairs = Vec::new();
    for (old_index, new_index) in bundles {
        let (old, new) = (&original.bundles[old_index], &rewritten.bundles[new_index]);
        let ids = |bundle: &wavetap_object::offload_bundle::Bundle<'_>| {
            bundle.entries.iter().map(|entry| entry.id.clone()).collect::<Vec<_>>()
        };
        if ids(old) != ids(new) {
            findings.push(Finding::new(Rule::HostFile, format!("bundle {old_index} has other entries than before")));
            continue;
        }
        for (index, entry) in old.entries.iter().enumerate() {
            pairs.push((
                format!("bundle {old_index}, entry {}", entry.id),
                old.entry_bytes(index),
                new.entry_bytes(index),
            ));
        }
    }
    Ok(pairs)
}

/// The host file's image stays, but for the pointers from the wrappers to the bundles.
fn host(original: &Input<'_>, rewritten: &Input<'_>, findings: &mut Vec<Finding>) -> Result<()> {
    let (old, new) = (Elf::parse(original.data)?, Elf::parse(rewritten.data)?);
    let mut may_change: Vec<Range<u64>> = Vec::new();
    let pointer = |address: u64| original.wrappers().iter().any(|wrapper| wrapper.address + POINTER_OFFSET == address);
    for wrapper in original.wrappers() {
        let start = wrapper.file_offset + POINTER_OFFSET;
        may_change.push(start..start + POINTER_SIZE);
    }
    for relocation in old.dynamic_relocations()?.iter().filter(|relocation| pointer(relocation.address)) {
        may_change.push(relocation.file_offset + ADDEND..relocation.file_offset + ADDEND + POINTER_SIZE);
    }
    image::bytes_stay(&old, &new, &may_change, Rule::HostFile, findings);
    image::segments(&old, &new, findings);
    let header = |elf: &Elf<'_>| (elf.header.os_abi, elf.header.kind, elf.header.machine, elf.header.flags);
    if header(&old) != header(&new) {
        findings.push(Finding::new(Rule::HostFile, "the ELF header changed"));
    }
    Ok(())
}
