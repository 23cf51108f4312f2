//! Puts a code object into device memory as the ROCm loader does.

use std::collections::BTreeMap;

use wavetap_amdgpu::Target;
use wavetap_base::bytes::{slice, u16_at, u32_at, u64_at};
use wavetap_base::error::{Error, Result, ResultExt};

use super::Memory;
use crate::address::ObjectId;
use crate::address::allocation::AllocationKind;
use crate::fault::MemoryAccess;

/// What a symbol names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolKind {
    /// A kernel descriptor (`STT_OBJECT` whose name ends in `.kd`).
    KernelDescriptor,
    /// A variable.
    Object,
    /// Code.
    Function,
    /// Anything else.
    Other,
}

/// A global symbol of a loaded object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadedSymbol {
    /// Device address.
    pub address: u64,
    /// `st_size`.
    pub size: u64,
    /// What it names: a descriptor, a variable or code.
    pub kind: SymbolKind,
}

/// A code object in device memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedObject {
    /// Its identity.
    pub id: ObjectId,
    /// Device address of the object's virtual address 0: a place in the file at virtual address `v` is at `base + v`.
    pub base: u64,
    /// Bytes allocated.
    pub size: u64,
    /// Global symbols by name.
    pub symbols: BTreeMap<String, LoadedSymbol>,
}

impl LoadedObject {
    /// Device address of the kernel descriptor of the kernel `name` (without `.kd`).
    #[must_use]
    pub fn kernel(&self, name: &str) -> Option<u64> {
        self.symbols.get(&format!("{name}.kd")).map(|symbol| symbol.address)
    }
}

/// `EM_AMDGPU`.
const MACHINE_AMDGPU: u16 = 224;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PF_X: u32 = 1;
const SHT_SYMTAB: u32 = 2;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
/// Most bytes of a segment of code, and of relocations: larger than those of any code object should be.
const MAX_IMAGE: u64 = 1 << 30;

/// Relocation types a loader applies (AMDGPUUsage, "Relocation records").
mod relocation {
    pub(crate) const ABS32_LO: u32 = 1;
    pub(crate) const ABS32_HI: u32 = 2;
    pub(crate) const ABS64: u32 = 3;
    pub(crate) const ABS32: u32 = 6;
    pub(crate) const RELATIVE64: u32 = 13;
}

struct Segment {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    file_size: u64,
    memory_size: u64,
}

/// A symbol table entry.
struct Symbol {
    name: u32,
    info: u8,
    section: u16,
    value: u64,
    size: u64,
}

fn segments(image: &[u8]) -> Result<Vec<Segment>> {
    let table = u64_at(image, 0x20, "e_phoff")?;
    let entry = u64::from(u16_at(image, 0x36, "e_phentsize")?);
    let count = u64::from(u16_at(image, 0x38, "e_phnum")?);
    (0..count)
        .map(|n| {
            let at = table.saturating_add(n * entry);
            Ok(Segment {
                kind: u32_at(image, at, "p_type")?,
                flags: u32_at(image, at.saturating_add(4), "p_flags")?,
                offset: u64_at(image, at.saturating_add(8), "p_offset")?,
                address: u64_at(image, at.saturating_add(16), "p_vaddr")?,
                file_size: u64_at(image, at.saturating_add(32), "p_filesz")?,
                memory_size: u64_at(image, at.saturating_add(40), "p_memsz")?,
            })
        })
        .collect()
}

fn symbol_at(data: &[u8], at: u64) -> Result<Symbol> {
    Ok(Symbol {
        name: u32_at(data, at, "st_name")?,
        info: slice(data, at.saturating_add(4), 1, "st_info")?[0],
        section: u16_at(data, at.saturating_add(6), "st_shndx")?,
        value: u64_at(data, at.saturating_add(8), "st_value")?,
        size: u64_at(data, at.saturating_add(16), "st_size")?,
    })
}

/// Global symbols of `.symtab`: name, value, size, kind.
fn symbols(image: &[u8], base: u64) -> Result<BTreeMap<String, LoadedSymbol>> {
    let table = u64_at(image, 0x28, "e_shoff")?;
    let entry = u64::from(u16_at(image, 0x3a, "e_shentsize")?);
    let count = u64::from(u16_at(image, 0x3c, "e_shnum")?);
    let header = |n: u64| table.saturating_add(n.saturating_mul(entry));
    let mut found = BTreeMap::new();
    for n in 0..count {
        if u32_at(image, header(n).saturating_add(4), "sh_type")? != SHT_SYMTAB {
            continue;
        }
        let offset = u64_at(image, header(n).saturating_add(24), "sh_offset")?;
        let size = u64_at(image, header(n).saturating_add(32), "sh_size")?;
        let link = u64::from(u32_at(image, header(n).saturating_add(40), "sh_link")?);
        let strings_offset = u64_at(image, header(link).saturating_add(24), "sh_offset of the symbol names")?;
        let strings_size = u64_at(image, header(link).saturating_add(32), "sh_size of the symbol names")?;
        let strings = slice(image, strings_offset, strings_size, "symbol names")?;
        let entries = slice(image, offset, size, "symbol table")?;
        for at in (0..size / 24).map(|k| k * 24) {
            let symbol = symbol_at(entries, at)?;
            // Global and weak, defined.
            if !matches!(symbol.info >> 4, 1 | 2) || symbol.section == 0 {
                continue;
            }
            let rest = strings
                .get(symbol.name as usize..)
                .ok_or_else(|| Error::malformed("symbol name outside the string table"))?;
            let end = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
            let name = String::from_utf8_lossy(&rest[..end]).into_owned();
            let kind = match symbol.info & 0xf {
                1 if name.ends_with(".kd") => SymbolKind::KernelDescriptor,
                1 => SymbolKind::Object,
                2 => SymbolKind::Function,
                _ => SymbolKind::Other,
            };
            found.insert(name, LoadedSymbol { address: base.wrapping_add(symbol.value), size: symbol.size, kind });
        }
    }
    Ok(found)
}

/// An executable range of a loaded object, in device addresses.
pub(crate) struct CodeRange {
    pub start: u64,
    pub end: u64,
    /// Memory instructions may be replayed after a page fault.
    pub replay: bool,
    /// It runs with error correction, so that a load of half a register writes all of it.
    pub writes_all: bool,
}

/// Loads an image, at an address if one is given; returns the object and its code.
pub(crate) fn load(
    memory: &mut Memory,
    target: Target,
    (id, base): (ObjectId, Option<u64>),
    image: &[u8],
) -> Result<(LoadedObject, Vec<CodeRange>)> {
    if slice(image, 0, 4, "ELF header")? != b"\x7fELF" || slice(image, 4, 2, "ELF header")? != [2, 1] {
        return Err(Error::malformed("not a 64-bit little-endian ELF file"));
    }
    if u16_at(image, 0x12, "e_machine")? != MACHINE_AMDGPU {
        return Err(Error::unsupported("not an AMDGPU code object"));
    }
    let flags = u32_at(image, 0x30, "e_flags")?;
    let found = Target::by_elf_flags(flags);
    if found.is_none_or(|found| found != target && target.generic() != Some(found)) {
        let found = found.map_or_else(|| format!("e_flags {flags:#x}"), |found| found.name().to_owned());
        return Err(Error::unsupported(format!("code object for {found}, the device is a {}", target.name())));
    }
    let segments = segments(image)?;
    let end = segments
        .iter()
        .filter(|s| s.kind == PT_LOAD)
        .map(|s| s.address.saturating_add(s.memory_size))
        .max()
        .unwrap_or(0);
    if end == 0 {
        return Err(Error::malformed("no PT_LOAD segment has a byte"));
    }
    if let Some(code) = segments.iter().find(|s| s.kind == PT_LOAD && s.flags & PF_X != 0 && s.memory_size > MAX_IMAGE)
    {
        let (size, address) = (code.memory_size, code.address);
        return Err(Error::limit(format!(
            "{size:#x} bytes of code at {address:#x} in one segment; at most {MAX_IMAGE:#x} are loaded"
        )));
    }
    // What is not in the file (`.bss`) takes no memory of the host before it is written.
    let allocated = match base {
        None => memory.malloc(end, 0x1000, AllocationKind::CodeObject),
        Some(base) => memory.malloc_at(base, end, AllocationKind::CodeObject).map(|()| base),
    };
    let base = allocated.within(|| format!("code object with {end} bytes of code and data"))?;
    let loaded = fill(memory, image, &segments, base, (may_replay(flags), writes_all(target, flags)))
        .and_then(|code| Ok((symbols(image, base)?, code)));
    match loaded {
        Ok((symbols, code)) => {
            for range in &code {
                memory.protect(range.start, range.end);
            }
            Ok((LoadedObject { id, base, size: end, symbols }, code))
        }
        Err(error) => {
            memory.remove(base)?;
            Err(error)
        }
    }
}

/// Whether the object may run with XNACK on: the setting is "any" or "on" (`EF_AMDGPU_FEATURE_XNACK_V4`).
fn may_replay(flags: u32) -> bool {
    flags >> 8 & 1 != 0
}

/// Whether registers have error correction while the object runs, as they do unless it is built for a device without
/// (`EF_AMDGPU_FEATURE_SRAMECC_V4`).
fn writes_all(target: Target, flags: u32) -> bool {
    const OFF: u32 = 2;
    target.supports_sramecc() && flags >> 10 & 3 != OFF
}

fn fill(
    memory: &Memory,
    image: &[u8],
    segments: &[Segment],
    base: u64,
    (replay, writes_all): (bool, bool),
) -> Result<Vec<CodeRange>> {
    let mut code = Vec::new();
    for segment in segments.iter().filter(|segment| segment.kind == PT_LOAD) {
        if segment.file_size > segment.memory_size {
            return Err(Error::malformed("a segment is larger in the file than in memory").at(segment.offset));
        }
        let bytes = slice(image, segment.offset, segment.file_size, "PT_LOAD")?;
        put(memory, base + segment.address, bytes)?;
        if segment.flags & PF_X != 0 {
            let (start, end) = (base + segment.address, base + segment.address + segment.memory_size);
            code.push(CodeRange { start, end, replay, writes_all });
        }
    }
    for segment in segments.iter().filter(|segment| segment.kind == PT_DYNAMIC) {
        relocate(memory, base, slice(image, segment.offset, segment.file_size, "PT_DYNAMIC")?)?;
    }
    Ok(code)
}

fn put(memory: &Memory, address: u64, bytes: &[u8]) -> Result<()> {
    memory.view().write(address, bytes, MemoryAccess::Store).map_err(|kind| Error::malformed(kind.to_string()))
}

fn get<const N: usize>(memory: &Memory, address: u64) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    memory.view().read(address, &mut bytes, MemoryAccess::Load).map_err(|kind| Error::malformed(kind.to_string()))?;
    Ok(bytes)
}

/// Applies the dynamic relocations, as they lie in the loaded image.
fn relocate(memory: &Memory, base: u64, dynamic: &[u8]) -> Result<()> {
    let entry = |tag: u64| {
        (0..dynamic.len() as u64 / 16).map(|n| n * 16).find_map(|at| {
            match (u64_at(dynamic, at, "d_tag"), u64_at(dynamic, at + 8, "d_val")) {
                (Ok(found), Ok(value)) if found == tag => Some(value),
                _ => None,
            }
        })
    };
    let (Some(table), Some(size)) = (entry(DT_RELA), entry(DT_RELASZ)) else { return Ok(()) };
    let symbols = entry(DT_SYMTAB).unwrap_or(0);
    if size > MAX_IMAGE {
        return Err(Error::malformed(format!("DT_RELASZ is {size:#x}")));
    }
    for at in (0..size / 24).map(|n| base.wrapping_add(table).wrapping_add(24 * n)) {
        let rela: [u8; 24] = get(memory, at)?;
        let (offset, info) = (u64_at(&rela, 0, "r_offset")?, u64_at(&rela, 8, "r_info")?);
        let addend = u64_at(&rela, 16, "r_addend")?;
        let place = base.wrapping_add(offset);
        let kind = info as u32;
        let value = if kind == relocation::RELATIVE64 {
            base.wrapping_add(addend)
        } else {
            let bytes: [u8; 24] = get(memory, base.wrapping_add(symbols).wrapping_add(24 * (info >> 32)))?;
            let symbol = symbol_at(&bytes, 0)?;
            // An undefined weak symbol is null.
            if symbol.section == 0 && symbol.info >> 4 == 2 {
                0
            } else if symbol.section == 0 {
                return Err(Error::unsupported("a relocation against an undefined symbol").at(offset));
            } else {
                base.wrapping_add(symbol.value).wrapping_add(addend)
            }
        };
        match kind {
            relocation::ABS64 | relocation::RELATIVE64 => put(memory, place, &value.to_le_bytes())?,
            relocation::ABS32 | relocation::ABS32_LO => put(memory, place, &(value as u32).to_le_bytes())?,
            relocation::ABS32_HI => put(memory, place, &((value >> 32) as u32).to_le_bytes())?,
            _ => return Err(Error::unsupported(format!("dynamic relocation type {kind}")).at(offset)),
        }
    }
    Ok(())
}
