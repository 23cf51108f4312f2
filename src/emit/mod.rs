//! Writing what was rewritten: device code objects, bundles and host files.
//!
//! Nothing original moves. [`code_object::Plan`] adds segments behind the last one of a device ELF; [`merge`] puts the result back where its original
//! came from: into a bundle, and that bundle into a new segment of the host file, to which the wrappers are repointed. The placements are those that
//! the real loaders were seen to accept.
//!
//! ```no_run
//! use wavetap::emit::{Replacement, merge};
//! use wavetap::offload_bundle::Input;
//!
//! let data = std::fs::read("app")?;
//! let input = Input::parse(&data)?;
//! let replacements: Vec<Replacement> = input
//!     .code_objects()
//!     .map(|found| Replacement { place: found.place, bytes: found.bytes.to_vec() })
//!     .collect();
//! std::fs::write("app.new", merge(&input, &replacements)?)?;
//! # Ok::<(), wavetap::error::Error>(())
//! ```

use crate::error::{Error, Result};
use crate::offload_bundle::{Bundle, Container, ENTRY_ALIGN, Input};

pub mod code_object;
mod headers;
mod host;
mod program_headers;
mod symbol_tables;

/// A rewritten code object and where its original came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// Indices of bundle and entry ([`crate::offload_bundle::Found::place`]); `None` when the input is the code object itself.
    pub place: Option<(usize, usize)>,
    /// The new code object.
    pub bytes: Vec<u8>,
}

/// The input with these code objects in place of the original ones; without any, the input's own bytes.
///
/// A compressed bundle becomes a plain one. Bundles of which nothing is replaced stay as they are.
///
/// # Errors
/// Internal if a replacement names no entry of the input or an entry twice; unsupported if a host file has no room for another program header or no
/// wrapper that names the bundle.
pub fn merge(input: &Input<'_>, replacements: &[Replacement]) -> Result<Vec<u8>> {
    if replacements.is_empty() {
        return Ok(input.data.to_vec());
    }
    check_places(input, replacements)?;
    match &input.container {
        Container::CodeObject => Ok(replacements[0].bytes.clone()),
        Container::Bundles => Ok(join_bundles(input, replacements)),
        Container::Host { .. } => host::append(input, &new_bundles(input, replacements)),
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

/// The bundles with replaced entries, as (index, bytes).
fn new_bundles(input: &Input<'_>, replacements: &[Replacement]) -> Vec<(usize, Vec<u8>)> {
    let changed = |index: usize, bundle: &Bundle<'_>| {
        let entry = |entry| replacements.iter().find(|replacement| replacement.place == Some((index, entry))).map(|found| &found.bytes[..]);
        let any = (0..bundle.entries.len()).any(|index| entry(index).is_some());
        any.then(|| (index, bundle.write_with(entry)))
    };
    input.bundles.iter().enumerate().filter_map(|(index, bundle)| changed(index, bundle)).collect()
}

/// A file of bundles again: unchanged ones as they were, each on a multiple of [`ENTRY_ALIGN`] when there are several.
fn join_bundles(input: &Input<'_>, replacements: &[Replacement]) -> Vec<u8> {
    let new = new_bundles(input, replacements);
    let mut out = Vec::new();
    for (index, bundle) in input.bundles.iter().enumerate() {
        out.resize(out.len().next_multiple_of(ENTRY_ALIGN as usize), 0);
        match new.iter().find(|(changed, _)| *changed == index) {
            Some((_, bytes)) => out.extend_from_slice(bytes),
            None => out.extend_from_slice(&input.data[bundle.offset as usize..(bundle.offset + bundle.size) as usize]),
        }
    }
    out
}
