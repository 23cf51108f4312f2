//! Names of kernels, and offsets in code objects: the runtime's loader copies an ELF file's segments into memory, the
//! headers among them, as far apart as they say.

use wavetap_emulator::Device;

/// Segments begin at multiples of this.
const PAGE: u64 = 4096;

/// How far before an instruction or a descriptor its object's headers are looked for.
const LARGEST_OBJECT: u64 = 1 << 30;

const MAGIC: &[u8; 4] = b"\x7fELF";
const PT_DYNAMIC: u32 = 2;
const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;

/// Most entries of tables that are looked at, and bytes of a name: more would not be a code object.
const MOST_ENTRIES: u64 = 1 << 20;
const LONGEST_NAME: usize = 4096;

fn word(device: &Device, address: u64) -> Option<u32> {
    let mut bytes = [0; 4];
    device.read(address, &mut bytes).ok()?;
    Some(u32::from_le_bytes(bytes))
}

fn double(device: &Device, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    device.read(address, &mut bytes).ok()?;
    Some(u64::from_le_bytes(bytes))
}

/// Where the object around an address starts, whose virtual address 0 that is.
pub(crate) fn base(device: &Device, address: u64) -> Option<u64> {
    let first = device.allocation_of(address)?.address.max(address.saturating_sub(LARGEST_OBJECT));
    let mut page = address - address % PAGE;
    while page >= first {
        let mut bytes = [0; 4];
        device.read(page, &mut bytes).ok()?;
        if bytes == *MAGIC {
            return Some(page);
        }
        page = page.checked_sub(PAGE)?;
    }
    None
}

/// The virtual address of a place in its object.
pub(crate) fn offset_in_object(device: &Device, address: u64) -> Option<u64> {
    Some(address - base(device, address)?)
}

/// The name of the kernel whose descriptor is at an address.
pub(crate) fn kernel(device: &Device, descriptor: u64) -> Option<String> {
    let base = base(device, descriptor)?;
    let (headers, count) = (base.wrapping_add(double(device, base + 0x20)?), word(device, base + 0x38)? & 0xffff);
    let dynamic = (0..u64::from(count)).find_map(|n| {
        let header = headers.wrapping_add(56 * n);
        (word(device, header)? == PT_DYNAMIC).then(|| double(device, header.wrapping_add(16))).flatten()
    })?;
    let entry = |tag: u64| {
        (0..64).find_map(|n| {
            let place = base.wrapping_add(dynamic).wrapping_add(16 * n);
            (double(device, place)? == tag).then(|| double(device, place.wrapping_add(8))).flatten()
        })
    };
    let (hash, symbols, names) = (entry(DT_HASH)?, entry(DT_SYMTAB)?, entry(DT_STRTAB)?);
    // The number of chains of the hash table is that of symbols.
    let count = u64::from(word(device, base.wrapping_add(hash).wrapping_add(4))?).min(MOST_ENTRIES);
    for symbol in (0..count).map(|n| base.wrapping_add(symbols).wrapping_add(24 * n)) {
        if base.wrapping_add(double(device, symbol.wrapping_add(8))?) == descriptor {
            let name = text(device, base.wrapping_add(names).wrapping_add(word(device, symbol)?.into()))?;
            return Some(name.strip_suffix(".kd").unwrap_or(&name).to_owned());
        }
    }
    None
}

fn text(device: &Device, address: u64) -> Option<String> {
    let mut name = Vec::new();
    for at in address.. {
        let mut byte = [0];
        device.read(at, &mut byte).ok()?;
        if byte[0] == 0 || name.len() == LONGEST_NAME {
            break;
        }
        name.push(byte[0]);
    }
    Some(String::from_utf8_lossy(&name).into_owned())
}
