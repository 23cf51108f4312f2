//! Executables that HIP 5.2 can run although a newer compiler made them.
//!
//! Of kernels that call the host (`printf`, `assert`), have real calls, or are compiled without optimisation, newer
//! compilers say that they want a queue on the device, and an action when they complete. They use neither, and HIP 5.2
//! crashes when it launches such a kernel, as it has made no such queue. Here these two arguments are declared to be
//! none: the same bytes in the metadata's encoding (MessagePack), in which numbers and strings have several forms.

use std::fs;
use std::path::Path;

use crate::Failure;

/// The kinds of arguments that are wanted and not used, each with the form of its size (8) in the metadata that makes
/// up for the shorter name.
const UNUSED: [(&[u8], &[u8]); 2] =
    [(b"\xb4hidden_default_queue", b"\xce\0\0\0\x08"), (b"\xb8hidden_completion_action", b"\xcf\0\0\0\0\0\0\0\x08")];

/// Changes an executable, or a code object, in place. How many kernels wanted what they do not use.
///
/// # Errors
/// If it cannot be read or written.
pub fn make_fit(file: &Path) -> Result<usize, Failure> {
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    let mut bytes = fs::read(file).map_err(failed)?;
    let mut kernels = 0;
    for (kind, size) in UNUSED {
        let wanted = [b"\xa5.size\x08\xab.value_kind", kind].concat();
        let none = [b"\xa5.size", size, b"\xd9\x0b.value_kind\xdb\0\0\0\x0bhidden_none"].concat();
        assert_eq!(wanted.len(), none.len(), "nothing moves");
        let places: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(&wanted)).collect();
        places.iter().for_each(|at| bytes[*at..at + none.len()].copy_from_slice(&none));
        kernels = kernels.max(places.len());
    }
    if kernels > 0 {
        fs::write(file, bytes).map_err(failed)?;
    }
    Ok(kernels)
}
