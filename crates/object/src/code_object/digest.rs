//! What tells one code object from another.

use std::fmt::Write as _;

use md5::{Digest, Md5};

/// MD5 of a code object's bytes in lower-case hex: joins profiles, site tables and samples with the object they are of.
///
/// ```
/// assert_eq!(wavetap_object::code_object::digest(b"abc"), "900150983cd24fb0d6963f7d28e17f72");
/// ```
#[must_use]
pub fn digest(bytes: &[u8]) -> String {
    let digest = Md5::digest(bytes);
    let mut text = String::with_capacity(2 * digest.len());
    for byte in digest {
        // A string takes all that is written to it.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
