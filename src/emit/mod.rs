//! Writing what was rewritten: device code objects, bundles and host files.
//!
//! Nothing original moves. [`code_object::Plan`] adds segments behind the last one of a device ELF; [`merge`] puts the result back where its original
//! came from: into a bundle, and that bundle into a new segment of the host file, to which the wrappers are repointed. The placements are those that
//! the real loaders were seen to accept.
//!
//! ```no_run
//! use wavetap::emit::{Packing, Replacement, merge};
//! use wavetap::offload_bundle::Input;
//!
//! let data = std::fs::read("app")?;
//! let input = Input::parse(&data)?;
//! let replacements: Vec<Replacement> = input
//!     .code_objects()
//!     .map(|found| Replacement { place: found.place, bytes: found.bytes.to_vec().into() })
//!     .collect();
//! std::fs::write("app.new", merge(&input, &replacements, Packing::AsFound)?)?;
//! # Ok::<(), wavetap::error::Error>(())
//! ```

use crate::error::{Error, Result};
use crate::offload_bundle::{Bundle, Container, ENTRY_ALIGN, Entry, Input, Layout, Method, Packer, Put};

pub mod code_object;
mod headers;
mod host;
mod kept;
mod program_headers;
mod symbol_tables;

pub use kept::Kept;

/// How many of its largest entries apart a compressed bundle's entries are sought for what they have in common.
const APART: usize = 4;

/// A rewritten code object and where its original came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// Indices of bundle and entry ([`crate::offload_bundle::Found::place`]); `None` when the input is the code object itself.
    pub place: Option<(usize, usize)>,
    /// The new code object.
    pub bytes: Kept,
}

/// How bundles are written of which something is replaced. The others stay as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Packing {
    /// Compressed as the original was, or plain as it was.
    #[default]
    AsFound,
    /// Plain.
    Plain,
    /// Compressed: as the original was, or with zstd as version 2, which all runtimes that know compressed bundles read.
    Compressed,
}

/// The input with these code objects in place of the original ones; without any, the input's own bytes.
///
/// Bundles of which nothing is replaced stay as they are.
///
/// # Errors
/// Internal if a replacement names no entry of the input or an entry twice; unsupported if a host file has no room for another program header or no
/// wrapper that names the bundle.
pub fn merge(input: &Input<'_>, replacements: &[Replacement], packing: Packing) -> Result<Vec<u8>> {
    if replacements.is_empty() {
        return Ok(input.data.to_vec());
    }
    check_places(input, replacements)?;
    let changed = Changed { input, replacements, packing };
    match &input.container {
        Container::CodeObject => replacements[0].bytes.bytes(),
        Container::Bundles => join_bundles(&changed),
        Container::Host { .. } => host::append(&changed),
    }
}

/// An input with something replaced.
struct Changed<'a, 'd> {
    input: &'a Input<'d>,
    replacements: &'a [Replacement],
    packing: Packing,
}

impl Changed<'_, '_> {
    fn entry(&self, bundle: usize, entry: usize) -> Option<&Kept> {
        let found = self.replacements.iter().find(|replacement| replacement.place == Some((bundle, entry)));
        found.map(|found| &found.bytes)
    }

    /// Whether something of this bundle is replaced.
    fn has(&self, bundle: usize) -> bool {
        self.replacements.iter().any(|replacement| replacement.place.is_some_and(|(place, _)| place == bundle))
    }

    /// Indices of the bundles of which something is replaced.
    fn bundles(&self) -> impl Iterator<Item = usize> {
        (0..self.input.bundles.len()).filter(|index| self.has(*index))
    }

    /// Writes the successor of a bundle behind what `out` holds.
    fn append_bundle(&self, out: &mut Vec<u8>, index: usize) -> Result<()> {
        let bundle: &Bundle<'_> = &self.input.bundles[index];
        let sizes: Vec<(&str, usize)> = bundle
            .entries
            .iter()
            .enumerate()
            .map(|(entry, Entry { id, .. })| (id.as_str(), self.entry(index, entry).map_or(bundle.entry_bytes(entry).len(), Kept::size)))
            .collect();
        let layout = Layout::of(&sizes);
        let mut contents = |entry: usize, put: &mut Put<'_, Error>| match self.entry(index, entry) {
            Some(new) => new.put(put),
            None => put(bundle.entry_bytes(entry)),
        };
        let (version, method) = match (self.packing, &bundle.compressed) {
            (Packing::AsFound | Packing::Compressed, Some(header)) => (header.version, header.method),
            (Packing::Compressed, None) => (2, Method::Zstd),
            (Packing::AsFound, None) | (Packing::Plain, _) => {
                out.reserve_exact(layout.size);
                return layout.put(&mut contents, &mut |bytes| {
                    out.extend_from_slice(bytes);
                    Ok(())
                });
            }
        };
        // The code for one processor is most like that for the one before or soon before.
        let largest = sizes.iter().map(|(_, size)| *size).max().unwrap_or(0);
        let mut packer = Packer::new(version, method, layout.size, APART * largest)?;
        layout.put(&mut contents, &mut |bytes| packer.put(bytes))?;
        out.extend_from_slice(&packer.finish()?);
        Ok(())
    }
}

/// Every replacement names one entry that exists, and none is named twice.
fn check_places(input: &Input<'_>, replacements: &[Replacement]) -> Result<()> {
    for (number, replacement) in replacements.iter().enumerate() {
        let exists = match (&input.container, replacement.place) {
            (Container::CodeObject, None) => true,
            (Container::CodeObject, Some(_)) | (_, None) => false,
            (_, Some((bundle, entry))) => input.bundles.get(bundle).is_some_and(|bundle| entry < bundle.entries.len()),
        };
        let repeated = replacements[..number].iter().any(|other| other.place == replacement.place);
        if !exists || repeated {
            return Err(Error::internal(format!(
                "a replacement for {:?}, which the input does not have or has already",
                replacement.place
            )));
        }
    }
    Ok(())
}

/// A file of bundles again: unchanged ones as they were, each on a multiple of [`ENTRY_ALIGN`] when there are several.
fn join_bundles(changed: &Changed<'_, '_>) -> Result<Vec<u8>> {
    let input = changed.input;
    let mut out = Vec::new();
    for (index, bundle) in input.bundles.iter().enumerate() {
        out.resize(out.len().next_multiple_of(ENTRY_ALIGN as usize), 0);
        if changed.has(index) {
            changed.append_bundle(&mut out, index)?;
        } else {
            out.extend_from_slice(&input.data[bundle.offset as usize..(bundle.offset + bundle.size) as usize]);
        }
    }
    Ok(out)
}
