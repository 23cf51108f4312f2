//! Where GPU code is found: in a zebin, in an OpenCL device binary, or in an archive of several of them.

mod archive;
mod lines;
mod notes;
mod ze_info;
mod zebin;

use wavetap_base::bytes::slice;
use wavetap_base::error::{Error, Result};

pub use lines::{FunctionLines, LineTable};
pub use notes::Target;
pub use zebin::{Function, Zebin};

/// Containers within containers.
const MAX_DEPTH: usize = 4;

/// The zebins of a file for targets that are decoded: of a zebin itself, of an OpenCL device binary, or of an archive
/// that `ocloc` made for several devices.
///
/// `origin` names the file in errors.
///
/// # Errors
/// Malformed if the file breaks its format; unsupported, with the names of the targets, if it has code for none that is
/// decoded, or code in the format before zebins.
pub fn open<'d>(bytes: &'d [u8], origin: &str) -> Result<Vec<Zebin<'d>>> {
    let mut found = Vec::new();
    let mut refused = Vec::new();
    find(bytes, MAX_DEPTH, &mut found, &mut refused).map_err(|error| error.within(origin))?;
    if let (true, Some(first)) = (found.is_empty(), refused.into_iter().next()) {
        return Err(first.within(origin));
    }
    if found.is_empty() {
        return Err(Error::unsupported("no Intel GPU code").within(origin));
    }
    Ok(found)
}

/// Whether it is a file that [`open`] reads: a zebin, a device binary, or an archive that has one.
#[must_use]
pub fn is_intel(bytes: &[u8]) -> bool {
    let is_code = |bytes: &[u8]| matches!(zebin::kind(bytes), Some(zebin::ElfKind::Zebin | zebin::ElfKind::Device));
    if !archive::is_archive(bytes) {
        return is_code(bytes);
    }
    let Ok(members) = archive::members(bytes) else { return false };
    let contents = |member: &archive::Member| slice(bytes, member.offset, member.size, "member of an archive");
    members.iter().any(|member| contents(member).is_ok_and(is_code))
}

/// What is for targets that are not decoded is told in `refused`.
fn find<'d>(bytes: &'d [u8], depth: usize, found: &mut Vec<Zebin<'d>>, refused: &mut Vec<Error>) -> Result<()> {
    /// Before zebins: a list of patches begins with these bytes.
    const PATCH_TOKENS: &[u8] = b"CTNI";
    if depth == 0 {
        return Err(Error::limit(format!("containers within containers, more than {MAX_DEPTH}")));
    }
    if archive::is_archive(bytes) {
        for member in archive::members(bytes)? {
            let contents = slice(bytes, member.offset, member.size, "member of an archive")?;
            if zebin::kind(contents).is_some() || archive::is_archive(contents) {
                find(contents, depth - 1, found, refused).map_err(|error| error.within(member.name.clone()))?;
            }
        }
        return Ok(());
    }
    if bytes.starts_with(PATCH_TOKENS) {
        refused.push(Error::unsupported("code in the format before zebins (patch tokens)"));
        return Ok(());
    }
    match zebin::kind(bytes) {
        Some(zebin::ElfKind::Zebin) => match Zebin::parse(bytes) {
            Ok(zebin) => found.push(zebin),
            Err(error) if error.kind() == wavetap_base::error::Kind::Unsupported => refused.push(error),
            Err(error) => return Err(error),
        },
        Some(zebin::ElfKind::Device) => {
            for contents in zebin::device_binaries(bytes)? {
                find(contents, depth - 1, found, refused)?;
            }
        }
        Some(zebin::ElfKind::Other(machine)) => {
            return Err(Error::malformed(format!(
                "an ELF file for machine {machine}: {} (Intel GPUs) was expected",
                zebin::MACHINE
            ))
            .at(18));
        }
        None => return Err(Error::malformed("no zebin, device binary or archive").at(0)),
    }
    Ok(())
}
