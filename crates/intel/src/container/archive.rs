//! Archives of the `ar` format, as `ocloc` writes for several devices.

use wavetap_base::bytes::slice;
use wavetap_base::error::{Error, Result};

const MAGIC: &[u8] = b"!<arch>\n";
const HEADER: u64 = 60;
/// Members of an archive at most.
const MAX_MEMBERS: usize = 1 << 12;

pub(super) struct Member {
    pub name: String,
    pub offset: u64,
    pub size: u64,
}

pub(super) fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

pub(super) fn members(bytes: &[u8]) -> Result<Vec<Member>> {
    let mut members = Vec::new();
    let mut offset = MAGIC.len() as u64;
    while offset < bytes.len() as u64 {
        let header = slice(bytes, offset, HEADER, "header of a member")?;
        let fault = |what: &str| Error::malformed(format!("archive: {what}")).at(offset);
        if &header[58..60] != b"`\n" {
            return Err(fault("a member's header without its end mark"));
        }
        let text = |range: std::ops::Range<usize>| String::from_utf8_lossy(&header[range]).trim().to_owned();
        let size: u64 = text(48..58).parse().map_err(|_| fault("a size that is no number"))?;
        let name = text(0..16).trim_end_matches('/').to_owned();
        let start = offset + HEADER;
        slice(bytes, start, size, "member of an archive")?;
        members.push(Member { name, offset: start, size });
        if members.len() > MAX_MEMBERS {
            return Err(Error::limit(format!("an archive with more than {MAX_MEMBERS} members")));
        }
        // Members begin at even offsets.
        offset = start.saturating_add(size).next_multiple_of(2);
    }
    Ok(members)
}
