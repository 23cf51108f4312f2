//! The code of real objects, for tests and benchmarks: that of the samples, and that of a library that nobody here
//! wrote, if it was fetched.

use std::fs;
use std::path::{Path, PathBuf};

use wavetap::code_object::CodeObject;
use wavetap::isa::Target;
use wavetap::offload_bundle::Input;

use crate::{Failure, place};

/// One executable section.
#[derive(Debug, Clone)]
pub struct Code {
    /// File and target id.
    pub name: String,
    /// The target.
    pub target: Target,
    /// Virtual address of the first byte.
    pub address: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// The executable sections of all code objects in `file` whose instructions are known.
///
/// # Errors
/// If the file cannot be read or taken apart.
pub fn of_file(file: &Path) -> Result<Vec<Code>, Failure> {
    let data = fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    of_bytes(&file.file_name().unwrap_or_default().to_string_lossy(), &data)
}

/// [`of_file`] for a file's content.
///
/// # Errors
/// If it cannot be taken apart.
pub fn of_bytes(name: &str, data: &[u8]) -> Result<Vec<Code>, Failure> {
    let wrong = |e: wavetap::error::Error| format!("{name}: {e}");
    let mut all = Vec::new();
    for found in Input::parse(data).map_err(wrong)?.code_objects() {
        let target = found.target.map_or_else(String::new, ToString::to_string);
        // Code for targets that are not known is none of ours; that of known ones must be readable.
        let known = target.is_empty()
            || Target::by_name(target.split(':').next().unwrap_or_default()).is_some_and(Target::has_instructions);
        if !known {
            continue;
        }
        let object = CodeObject::parse(found.bytes).map_err(wrong)?;
        let Some(isa) = object.target() else { continue };
        for section in object.elf().sections.iter().filter(|s| s.is_executable() && s.has_contents()) {
            let bytes = object.elf().contents(section).map_err(wrong)?.to_vec();
            let name = format!("{name} {target} {}", section.name);
            all.push(Code { name, target: isa, address: section.address, bytes });
        }
    }
    Ok(all)
}

/// The prebuilt samples.
#[must_use]
pub fn sample_files() -> Vec<PathBuf> {
    place::sample_names().into_iter().map(|name| place::samples().join(name)).collect()
}

/// The library that `rewriter-tests/fetch-corpora.sh` fetches, if it is there: 2 MB of gfx9 code for each target.
#[must_use]
pub fn library() -> Option<PathBuf> {
    Some(place::corpora().join("librocrand.so")).filter(|file| file.is_file())
}
