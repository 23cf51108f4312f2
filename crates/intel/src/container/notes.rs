//! Notes: for which processor a zebin is.

use object::LittleEndian as LE;
use object::elf::{SHT_NOTE, SectionHeader64};
use object::read::elf::SectionHeader as _;
use wavetap_base::bytes::{slice, u32_at};
use wavetap_base::error::{Error, Result};

const OWNER: &[u8] = b"IntelGT\0";
const PRODUCT_FAMILY: u32 = 1;

/// Product families, as the compiler numbers them, and their names.
const FAMILIES: &[(u32, &str)] = &[(29, "tgl"), (1270, "dg2"), (PVC, "pvc")];
const PVC: u32 = 1271;

/// A processor whose code is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// Ponte Vecchio: Xe-HPC, with registers of 64 bytes and 32 tokens.
    PonteVecchio,
}

impl Target {
    /// As `ocloc -device` names it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Target::PonteVecchio => "pvc",
        }
    }

    /// # Errors
    /// Unsupported, with its name, if it is not decoded.
    fn of_family(family: u32) -> Result<Target> {
        if family == PVC {
            return Ok(Target::PonteVecchio);
        }
        let name = FAMILIES.iter().find(|(known, _)| *known == family).map(|(_, name)| *name);
        let name = name.map_or_else(|| format!("product family {family}"), |name| format!("{name} (family {family})"));
        Err(Error::unsupported(format!("code for {name}: only pvc (family {PVC}) is decoded")))
    }

    pub(super) fn of_notes<'a>(file: &[u8], sections: impl Iterator<Item = &'a SectionHeader64<LE>>) -> Result<Target> {
        for section in sections.filter(|section| section.sh_type(LE) == SHT_NOTE) {
            let offset = section.sh_offset(LE);
            let notes = slice(file, offset, section.sh_size(LE), "notes")?;
            if let Some(family) = product_family(notes) {
                return Target::of_family(family);
            }
        }
        Err(Error::unsupported("a zebin without a note of its product family: the processor is not known"))
    }
}

/// The number in the note of the product family. Names and descriptions are padded to four bytes, whatever alignment
/// the section claims: some versions of the compiler claim eight. Sections of other notes do not follow the format.
fn product_family(notes: &[u8]) -> Option<u32> {
    const HEADER: u64 = 12;
    let mut offset: u64 = 0;
    loop {
        let number = |at: u64| u32_at(notes, offset + at, "note").ok();
        let (owner, description, kind) = (number(0)?, number(4)?, number(8)?);
        let name = slice(notes, offset + HEADER, owner.into(), "owner of a note").ok()?;
        let contents = offset + HEADER + u64::from(owner).next_multiple_of(4);
        if name == OWNER && kind == PRODUCT_FAMILY && description == 4 {
            return u32_at(notes, contents, "product family").ok();
        }
        offset = contents + u64::from(description).next_multiple_of(4);
    }
}
