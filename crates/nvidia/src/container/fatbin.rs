//! Fat binaries: containers with a cubin or PTX for each of several models, in the section `.nv_fatbin` of host files.
//!
//! A container is a header (magic number, version, size of the header, size of what follows) and entries. An entry has
//! a header that says its kind, its model, its sizes and how it is compressed.

use std::borrow::Cow;
use std::io::Read;

use object::LittleEndian as LE;
use object::elf::{EM_CUDA, FileHeader64};
use object::read::elf::{FileHeader as _, SectionHeader as _};
use wavetap_base::bytes::{slice, u16_at, u32_at, u64_at};
use wavetap_base::error::{Error, Result, ResultExt as _};

use super::lz4;

const MAGIC: u32 = 0xba55_ed50;
const VERSION: u16 = 1;
const HEADER: u64 = 16;
/// Sections of host files with containers, linked and relocatable device code.
const SECTIONS: [&[u8]; 2] = [b".nv_fatbin", b"__nv_relfatbin"];
/// Bytes of an entry's header that are read.
const ENTRY_HEADER: u64 = 64;
const KIND_PTX: u16 = 1;
const KIND_ELF: u16 = 2;
const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTD: u64 = 0x8000;
/// Largest cubin that is unpacked.
const MAX_CUBIN: u64 = 1 << 30;

/// Whether a file is one that [`images`] reads: a cubin, a fat binary, or a host file with fat binaries and without
/// AMD's.
#[must_use]
pub fn is_nvidia(bytes: &[u8]) -> bool {
    /// Of host files with code for AMD GPUs.
    const HIP: &[u8] = b".hip_fatbin";
    if u32_at(bytes, 0, "magic number").is_ok_and(|magic| magic == MAGIC) {
        return true;
    }
    let Ok(header) = FileHeader64::<LE>::parse(bytes) else { return false };
    if header.endian().is_err() {
        return false;
    }
    if header.e_machine(LE) == EM_CUDA {
        return true;
    }
    let Ok(sections) = header.sections(LE, bytes) else { return false };
    let has =
        |name: &[u8]| sections.iter().any(|section| sections.section_name(LE, section).is_ok_and(|it| it == name));
    SECTIONS.iter().any(|name| has(name)) && !has(HIP)
}

/// What an entry of a fat binary is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImageKind {
    /// Machine code, an ELF file.
    Cubin,
    /// Text in the intermediate language, which the driver compiles.
    Ptx,
}

/// Code for one model.
#[derive(Debug, Clone)]
pub struct Image<'d> {
    /// What it is.
    pub kind: ImageKind,
    /// The number of the model: 80 for `sm_80`.
    pub model: u32,
    /// Offset in the file of the bytes as they are stored.
    pub offset: u64,
    stored: &'d [u8],
    flags: u64,
    size: u64,
}

impl<'d> Image<'d> {
    /// Its bytes, unpacked.
    ///
    /// # Errors
    /// Malformed if they cannot be unpacked or have another size
    /// than the header says; a limit if they are larger than 1 GiB.
    pub fn contents(&self) -> Result<Cow<'d, [u8]>> {
        self.unpack().map_err(|error| error.at(self.offset)).within(|| format!("entry of sm_{}", self.model))
    }

    fn unpack(&self) -> Result<Cow<'d, [u8]>> {
        if self.flags & (FLAG_ZSTD | FLAG_LZ4) == 0 {
            return Ok(Cow::Borrowed(self.stored));
        }
        if self.size > MAX_CUBIN {
            return Err(Error::limit(format!("an entry that unpacks to {:#x} bytes", self.size)));
        }
        if self.flags & FLAG_LZ4 != 0 {
            return lz4::unpack(self.stored, self.size as usize).map(Cow::Owned);
        }
        let broken = |error: std::io::Error| Error::malformed(format!("an entry compressed with zstd: {error}"));
        let mut decoder = zstd::stream::read::Decoder::new(self.stored).map_err(broken)?.single_frame();
        let mut bytes = Vec::new();
        decoder.by_ref().take(self.size + 1).read_to_end(&mut bytes).map_err(broken)?;
        if bytes.len() as u64 != self.size {
            let text = format!("an entry unpacks to {:#x} bytes, its header says {:#x}", bytes.len(), self.size);
            return Err(Error::malformed(text));
        }
        Ok(Cow::Owned(bytes))
    }
}

/// The code in a file: a cubin by itself, a fat binary, or the fat binaries of a host file, in their order. Empty if it
/// is a host file without.
///
/// # Errors
/// Malformed if the file is none of these, or a container breaks its format.
pub fn images(file: &[u8]) -> Result<Vec<Image<'_>>> {
    if file.len() >= 4 && u32_at(file, 0, "magic number")? == MAGIC {
        return containers(file, 0);
    }
    let broken = |error: object::read::Error| Error::malformed(format!("ELF file: {error}")).at(0);
    let header = FileHeader64::<LE>::parse(file).map_err(broken)?;
    header.endian().map_err(broken)?;
    if header.e_machine(LE) == EM_CUDA {
        let model = super::cubin::model(header)?;
        let size = file.len() as u64;
        return Ok(vec![Image { kind: ImageKind::Cubin, model, offset: 0, stored: file, flags: 0, size }]);
    }
    let sections = header.sections(LE, file).map_err(broken)?;
    let mut all = Vec::new();
    for section in sections.iter() {
        let name = sections.section_name(LE, section).map_err(broken)?;
        if SECTIONS.contains(&name) {
            let offset = section.sh_offset(LE);
            let contents = slice(file, offset, section.sh_size(LE), "section .nv_fatbin")?;
            all.extend(containers(contents, offset)?);
        }
    }
    Ok(all)
}

/// The containers of a section; `base` is its offset in the file. Between them there may be padding of zeros.
fn containers(section: &[u8], base: u64) -> Result<Vec<Image<'_>>> {
    let mut all = Vec::new();
    let mut at = 0;
    while at + HEADER <= section.len() as u64 {
        let magic = u32_at(section, at, "fat binary")?;
        if magic == 0 {
            at += 8;
            continue;
        }
        let fault = |what: String| Error::malformed(format!("fat binary: {what}")).at(base + at);
        let (version, header) = (u16_at(section, at + 4, "version")?, u16_at(section, at + 6, "header size")?);
        if magic != MAGIC || version != VERSION || u64::from(header) < HEADER {
            return Err(fault(format!(
                "magic number {magic:#x}, version {version}, header of {header} bytes: {MAGIC:#x}, {VERSION} and at \
                 least {HEADER} were expected"
            )));
        }
        let size = u64_at(section, at + 8, "size")?;
        let begin = at + u64::from(header);
        let end = begin.checked_add(size).filter(|end| *end <= section.len() as u64);
        let end = end.ok_or_else(|| fault(format!("{size:#x} bytes of entries do not fit into the section")))?;
        entries(&section[..end as usize], begin, base, &mut all)?;
        at = end.next_multiple_of(8);
    }
    Ok(all)
}

fn entries<'d>(container: &'d [u8], mut at: u64, base: u64, all: &mut Vec<Image<'d>>) -> Result<()> {
    let end = container.len() as u64;
    while at < end {
        let place = base + at;
        let header = slice(container, at, ENTRY_HEADER, "header of a fat binary's entry")
            .map_err(|_| Error::malformed("the header of a fat binary's entry ends after its container").at(place))?;
        let kind = u16_at(header, 0, "kind")?;
        let header_size = u64::from(u32_at(header, 4, "header size")?);
        let padded = u64_at(header, 8, "size")?;
        let packed = u64::from(u32_at(header, 16, "packed size")?);
        let model = u32_at(header, 28, "model")?;
        let flags = u64_at(header, 40, "flags")?;
        let size = u64_at(header, 56, "unpacked size")?;
        let begin = at.saturating_add(header_size);
        let next = begin.saturating_add(padded);
        if header_size < ENTRY_HEADER || next > end || packed > padded {
            return Err(Error::malformed(format!(
                "fat binary: an entry with a header of {header_size:#x} bytes, {packed:#x} of {padded:#x} bytes used, \
                 {:#x} are left",
                end - at
            ))
            .at(place));
        }
        let is_packed = flags & (FLAG_LZ4 | FLAG_ZSTD) != 0;
        let stored = if is_packed { packed } else { padded };
        let stored = &container[begin as usize..(begin + stored) as usize];
        let image = |kind| Image { kind, model, offset: base + begin, stored, flags, size };
        match kind {
            KIND_ELF => all.push(image(ImageKind::Cubin)),
            KIND_PTX => all.push(image(ImageKind::Ptx)),
            // Others are for the linker: intermediate code of link-time optimisation.
            _ => {}
        }
        at = next;
    }
    Ok(())
}
