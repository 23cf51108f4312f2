//! Attributes of a kernel, in its section `.nv.info.NAME`: a format, a number, and a value or the size of one.

use std::collections::BTreeMap;

use wavetap_base::bytes::{slice, u16_at, u32_at};
use wavetap_base::error::{Error, Result};

/// The value follows, as many bytes as the attribute says.
const FORMAT_SIZED: u8 = 4;
const INDIRECT_BRANCH_TARGETS: u8 = 0x34;

/// Of each indirect branch, by its offset in the section, where it may go.
pub(super) type IndirectBranches = BTreeMap<u64, Vec<u64>>;

/// Reads the attributes of a kernel; `base` is the section's offset in the file.
pub(super) fn indirect_branches(section: &[u8], base: u64) -> Result<IndirectBranches> {
    let mut branches = IndirectBranches::new();
    let mut at = 0;
    while at < section.len() as u64 {
        let place = base + at;
        let short = |_| Error::malformed("an attribute that ends after its section").at(place);
        let head = slice(section, at, 4, "attribute").map_err(short)?;
        at += 4;
        if head[0] != FORMAT_SIZED {
            continue;
        }
        let size = u64::from(u16_at(head, 2, "size")?);
        let value = slice(section, at, size, "value").map_err(short)?;
        if head[1] == INDIRECT_BRANCH_TARGETS {
            targets(value, &mut branches).map_err(|error| Error::malformed(error.message()).at(place))?;
        }
        at += size;
    }
    Ok(branches)
}

/// Records of a branch's offset, a number that is not known, the number of targets, and the targets.
fn targets(value: &[u8], branches: &mut IndirectBranches) -> Result<()> {
    let mut at = 0;
    while at < value.len() as u64 {
        let branch = u32_at(value, at, "indirect branch")?;
        let count = u64::from(u32_at(value, at + 8, "number of targets")?);
        let list = slice(value, at + 12, count * 4, "targets of an indirect branch")?;
        let list = list.as_chunks::<4>().0.iter().map(|bytes| u64::from(u32::from_le_bytes(*bytes)));
        branches.entry(branch.into()).or_default().extend(list);
        at += 12 + count * 4;
    }
    Ok(())
}
