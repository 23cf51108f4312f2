//! Writing what was rewritten: device code objects, bundles and host files.
//!
//! Nothing original moves. [`code_object::Plan`] adds segments after the last one of a device ELF; [`merge`] puts the
//! result back where its original came from: into a bundle, and that bundle into a new segment of the host file, to
//! which the wrappers are repointed. The placements are those that the real loaders were seen to accept.
//!
//! ```no_run
//! use wavetap_object::emit::{Packing, Replacement, merge};
//! use wavetap_object::offload_bundle::Input;
//!
//! let data = std::fs::read("app")?;
//! let input = Input::parse(&data)?;
//! let replacements: Vec<Replacement> = input
//!     .code_objects()
//!     .map(|found| Replacement { place: found.place, bytes: found.bytes.to_vec().into() })
//!     .collect();
//! std::fs::write("app.new", merge(&input, &replacements, Packing::AsFound)?)?;
//! # Ok::<(), wavetap_base::error::Error>(())
//! ```

use std::io::Cursor;

use crate::offload_bundle::{Container, EntryPlace, Input, location};
use wavetap_base::error::{Error, Result};

pub mod code_object;
mod commit_queue;
mod groups;
mod headers;
mod host;
mod kept;
pub mod kernel_object;
mod merger;
mod program_headers;
mod scratch;
mod sink;
mod sources;
mod symbol_tables;

pub use commit_queue::{CommitQueue, Committed};
pub use groups::group_by_code;
pub use kept::Kept;
pub use merger::Merger;
pub use scratch::Scratch;
pub use sink::Output;
pub use sources::Sources;

/// A rewritten code object and where its original came from.
#[derive(Debug, Clone)]
pub struct Replacement<'d> {
    /// As in [`crate::offload_bundle::Found::place`].
    pub place: Option<EntryPlace>,
    /// The new code object.
    pub bytes: Kept<'d>,
}

/// How bundles are written of which something is replaced. The others stay as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Packing {
    /// Compressed as the original was, or plain as it was.
    #[default]
    AsFound,
    /// Plain.
    Plain,
    /// Compressed: as the original was, or with zstd as version 2, which all runtimes that know compressed bundles
    /// read.
    Compressed,
}

/// The input with these code objects in place of the original ones; without any, the input's own bytes. [`Merger`] does
/// the same bundle by bundle.
///
/// Bundles of which nothing is replaced stay as they are.
///
/// # Errors
/// Internal if a replacement names no entry of the input or an entry twice; unsupported if a host file has no room for
/// another program header or no wrapper that names the bundle.
pub fn merge(input: &Input<'_>, replacements: &[Replacement<'_>], packing: Packing) -> Result<Vec<u8>> {
    check_places(input, replacements)?;
    let mut output = Cursor::new(Vec::new());
    let mut merger = Merger::new(input, packing, &mut output);
    for replacement in replacements.iter().filter(|replacement| replacement.place.is_none()) {
        merger.code_object(&replacement.bytes)?;
    }
    for (index, bundle) in input.bundles.iter().enumerate() {
        let new = |entry| {
            replacements.iter().find(|replacement| replacement.place == Some(EntryPlace { bundle: index, entry }))
        };
        if (0..bundle.entries.len()).any(|entry| new(entry).is_some()) {
            let contents = (0..bundle.entries.len())
                .map(|entry| new(entry).map_or_else(|| bundle.entry_bytes(entry).into(), |new| new.bytes.clone()));
            merger.bundle(index, &contents.collect::<Vec<_>>())?;
        }
    }
    merger.finish()?;
    Ok(output.into_inner())
}

/// Every replacement names one entry that exists, and none is named twice.
fn check_places(input: &Input<'_>, replacements: &[Replacement<'_>]) -> Result<()> {
    for (number, replacement) in replacements.iter().enumerate() {
        let exists = match (&input.container, replacement.place) {
            (Container::CodeObject, None) => true,
            (Container::CodeObject, Some(_)) | (_, None) => false,
            (_, Some(EntryPlace { bundle, entry })) => {
                input.bundles.get(bundle).is_some_and(|bundle| entry < bundle.entries.len())
            }
        };
        let repeated = replacements[..number].iter().any(|other| other.place == replacement.place);
        if !exists || repeated {
            return Err(Error::internal(format!(
                "a replacement for {}, which the input does not have or has already",
                location(replacement.place)
            )));
        }
    }
    Ok(())
}
