//! The plain bundle: a table of (offset, size, id), then the entries' bytes.

use std::convert::Infallible;

use super::{Bundle, Entry, TargetId};
use wavetap_base::bytes;
use wavetap_base::error::{Error, Result, ResultExt};

/// The first bytes of a plain bundle (Clang, `ClangOffloadBundler`).
pub const MAGIC: &[u8; 24] = b"__CLANG_OFFLOAD_BUNDLE__";

/// Entries start on multiples of this, so that a runtime can map a code object (what Clang's driver asks the bundler
/// for).
pub const ENTRY_ALIGN: u64 = 4096;

/// Most entries a bundle may have; today's compilers know some sixty processors.
const MAX_ENTRIES: u64 = 4096;

/// Longest entry id.
const MAX_ID: u64 = 4096;

/// Parses the table of a plain bundle at the start of `content`. An entry that does not lie within `content`, or
/// overlaps another one, has a problem and no contents.
pub(super) fn parse_table(content: &[u8]) -> Result<Vec<Entry>> {
    let magic = bytes::slice(content, 0, MAGIC.len() as u64, "bundle magic")?;
    if magic != MAGIC {
        return Err(Error::malformed("an offload bundle was expected (magic __CLANG_OFFLOAD_BUNDLE__)").at(0));
    }
    let mut at = MAGIC.len() as u64;
    let count = bytes::u64_at(content, at, "number of bundle entries")?;
    if count > MAX_ENTRIES {
        return Err(Error::malformed(format!("{count} bundle entries, at most {MAX_ENTRIES} expected")).at(at));
    }
    at += 8;
    let mut entries = Vec::new();
    for index in 0..count {
        let place = || format!("bundle entry {index}");
        let offset = bytes::u64_at(content, at, "entry offset").within(place)?;
        let size = bytes::u64_at(content, at + 8, "entry size").within(place)?;
        let id_size = bytes::u64_at(content, at + 16, "entry id size").within(place)?;
        if id_size > MAX_ID {
            return Err(Error::malformed(format!("an entry id of {id_size} bytes")).at(at + 16)).within(place);
        }
        let id = bytes::slice(content, at + 24, id_size, "entry id").within(place)?;
        let id = std::str::from_utf8(id)
            .map_err(|_| Error::malformed("an entry id is not UTF-8").at(at + 24))
            .within(place)?;
        let problem = bytes::slice(content, offset, size, "entry contents").within(place).err();
        entries.push(Entry { id: id.to_owned(), target: TargetId::of_entry(id), offset, size, problem });
        at += 24 + id_size;
    }
    check_places(&mut entries, at);
    Ok(entries)
}

/// No entry lies in the table or partly in another entry. Several may be the very same bytes.
fn check_places(entries: &mut [Entry], table_end: u64) {
    let mut order: Vec<usize> = (0..entries.len()).filter(|&index| entries[index].has_contents()).collect();
    order.sort_by_key(|&index| (entries[index].offset, entries[index].size));
    let (mut end, mut last) = (table_end, None);
    for index in order {
        let entry = &mut entries[index];
        let range = (entry.offset, entry.size);
        if last == Some(range) {
            continue;
        }
        if entry.offset < end {
            let message = format!("entry {} overlaps what lies before it, up to {end:#x}", entry.id);
            entry.problem = Some(Error::malformed(message).at(entry.offset).within(format!("bundle entry {index}")));
            continue;
        }
        (end, last) = (entry.offset + entry.size, Some(range));
    }
}

/// Where a plain bundle ends: after its table and its last entry that can be read.
pub(super) fn end_of(entries: &[Entry]) -> u64 {
    let table = (MAGIC.len() + 8) as u64 + entries.iter().map(|entry| 24 + entry.id.len() as u64).sum::<u64>();
    entries
        .iter()
        .filter(|entry| entry.has_contents())
        .map(|entry| entry.offset + entry.size)
        .max()
        .unwrap_or(0)
        .max(table)
}

/// Writes a plain bundle of (id, contents), entries aligned as Clang aligns them.
///
/// # Examples
///
/// ```
/// use wavetap_object::offload_bundle::{Bundle, Input, write_plain};
///
/// let bundle = write_plain(&[("host-x86_64-unknown-linux-gnu", b""), ("hipv4-amdgcn-amd-amdhsa--gfx90a", b"code")]);
/// let input = Input::parse(&bundle)?;
/// assert_eq!(input.bundles[0].entry_bytes(1), b"code");
/// # Ok::<(), wavetap_base::error::Error>(())
/// ```
#[must_use]
pub fn write_plain(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    append_plain(&mut out, entries);
    out
}

/// [`write_plain`] after what `out` holds.
pub fn append_plain(out: &mut Vec<u8>, entries: &[(&str, &[u8])]) {
    let sizes: Vec<(&str, usize)> = entries.iter().map(|(id, contents)| (*id, contents.len())).collect();
    let layout = Layout::of(&sizes);
    out.reserve_exact(layout.size);
    let Ok(()) = layout.put::<Infallible>(&mut |index, put| put(entries[index].1), &mut |bytes| {
        out.extend_from_slice(bytes);
        Ok(())
    });
}

/// Takes bytes of a bundle, one piece after the other.
pub type Put<'p, E> = dyn FnMut(&[u8]) -> Result<(), E> + 'p;

/// Puts the contents of an entry, which it is given by index.
pub type Contents<'c, E> = dyn FnMut(usize, &mut Put<'_, E>) -> Result<(), E> + 'c;

/// Where everything of a plain bundle lies.
pub struct Layout<'e> {
    entries: &'e [(&'e str, usize)],
    places: Vec<usize>,
    /// Bytes of the bundle.
    pub size: usize,
}

impl<'e> Layout<'e> {
    /// Lays out entries of these ids and sizes.
    #[must_use]
    pub fn of(entries: &'e [(&'e str, usize)]) -> Layout<'e> {
        let table: usize = MAGIC.len() + 8 + entries.iter().map(|(id, _)| 24 + id.len()).sum::<usize>();
        let mut places = Vec::with_capacity(entries.len());
        let mut end = table;
        for (_, size) in entries {
            let start = end.next_multiple_of(ENTRY_ALIGN as usize);
            places.push(start);
            end = if *size == 0 { end } else { start + *size };
        }
        // An empty last entry still names a place, which must not lie after the bundle.
        let size = end.max(places.iter().copied().max().unwrap_or(0));
        Layout { entries, places, size }
    }

    /// Puts the bundle, piece by piece.
    ///
    /// # Errors
    /// Those of `put`.
    pub fn put<E>(&self, contents: &mut Contents<'_, E>, put: &mut Put<'_, E>) -> Result<(), E> {
        let mut table = MAGIC.to_vec();
        table.extend_from_slice(&(self.entries.len() as u64).to_le_bytes());
        for ((id, size), start) in self.entries.iter().zip(&self.places) {
            table.extend_from_slice(&(*start as u64).to_le_bytes());
            table.extend_from_slice(&(*size as u64).to_le_bytes());
            table.extend_from_slice(&(id.len() as u64).to_le_bytes());
            table.extend_from_slice(id.as_bytes());
        }
        put(&table)?;
        let mut end = table.len();
        // An entry starts less than this after the one before, and the bundle ends as near.
        let zeros = [0; ENTRY_ALIGN as usize];
        for (index, &start) in self.places.iter().enumerate().filter(|(index, _)| self.entries[*index].1 != 0) {
            put(&zeros[..start - end])?;
            contents(index, put)?;
            end = start + self.entries[index].1;
        }
        put(&zeros[..self.size - end])
    }
}

impl Bundle<'_> {
    /// Writes this bundle as a plain one, with some entries' contents replaced: `replacement(index)` gives the new
    /// contents or `None`.
    #[must_use]
    pub fn write_with<'r>(&self, replacement: impl Fn(usize) -> Option<&'r [u8]>) -> Vec<u8> {
        let contents: Vec<&[u8]> = (0..self.entries.len())
            .map(|index| replacement(index).unwrap_or_else(|| self.entry_bytes(index)))
            .collect();
        let entries: Vec<(&str, &[u8])> =
            self.entries.iter().zip(contents).map(|(entry, contents)| (entry.id.as_str(), contents)).collect();
        write_plain(&entries)
    }
}
