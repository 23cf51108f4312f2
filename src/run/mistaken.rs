//! What a file is that was named in place of an executable, and what to do with it.

use std::path::Path;

use super::app::is_script;
use wavetap_base::error::{Error, Kind, Result};

/// How an ELF file begins.
const MAGIC: &[u8] = b"\x7fELF";

/// Extensions of files that a compiler takes.
const SOURCES: [&str; 7] = ["hip", "cu", "cpp", "cc", "cxx", "c", "h"];
/// More of a file is not looked at.
const LOOKED_AT: usize = 4096;
/// Where an ELF file says what it is (`e_type`), and what an object file says there.
const TYPE_AT: usize = 16;
const RELOCATABLE: u8 = 1;

/// What a file that cannot be run or looked into is, and what to do with it, as far as that can be told.
#[must_use]
pub fn advice(path: &Path, data: &[u8]) -> Option<String> {
    let data = &data[..data.len().min(LOOKED_AT)];
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let name = path.display();
    if data.starts_with(MAGIC) {
        return (data.get(TYPE_AT) == Some(&RELOCATABLE)).then(|| {
            "it is an object file, which is not linked yet: link it into an executable (without -c)".to_owned()
        });
    }
    let text = String::from_utf8_lossy(data);
    if text.trim_start().starts_with('{') && text.contains("\"wavetap.profile/") {
        return Some(format!("it is a profile: `wavetap report {name}` shows it"));
    }
    if SOURCES.contains(&extension) && !data.contains(&0) {
        return Some(
            "it is source code: compile it first (`hipcc`, or without ROCm hip-samples/hipclang; \
                docs/guide/compile.md shows how)"
                .to_owned(),
        );
    }
    if extension == "py" {
        return Some(format!("to run it: `wavetap profile -- python3 {name}`"));
    }
    is_script(data).then(|| format!("it is a script: `chmod +x {name}`, or name its interpreter before it"))
}

/// Refuses a file of which it is known that it is something else than a program or code.
///
/// # Errors
/// Malformed, with what to do.
pub fn check(path: &Path, data: &[u8]) -> Result<()> {
    let known = if data.starts_with(MAGIC) || is_script(data) { None } else { advice(path, data) };
    known.map_or(Ok(()), |advice| Err(Error::malformed(format!("{}: {advice}", path.display()))))
}

/// The error of a file that exists and cannot be run.
pub(super) fn not_executable(path: &Path) -> Error {
    let name = path.display();
    if path.is_dir() {
        return Error::new(Kind::Io, format!("{name}: is a folder; name the executable in it"));
    }
    let data = crate::files::read(path).unwrap_or_default();
    let advice = advice(path, &data).unwrap_or_else(|| {
        if data.starts_with(MAGIC) {
            format!("if it is a program, `chmod +x {name}` makes it executable")
        } else {
            "a HIP program was expected, or a script that starts one".to_owned()
        }
    });
    Error::new(Kind::Io, format!("{name}: is not an executable file; {advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_by_what_is_in_them() {
        let advice = |name: &str, data: &[u8]| advice(Path::new(name), data).unwrap_or_default();
        assert!(advice("k.hip", b"__global__ void k() {}").contains("compile it first"));
        assert!(advice("a.profile", b"{\n \"schema\": \"wavetap.profile/3\"").contains("wavetap report a.profile"));
        assert!(advice("a.py", b"print(1)").contains("-- python3 a.py"));
        assert!(advice("./run", b"#!/bin/sh\n").contains("chmod +x ./run"));
        let object = [&b"\x7fELF\x02\x01\x01"[..], &[0; 9], &[1, 0]].concat();
        assert!(advice("k.o", &object).contains("not linked yet"));
        let program = [&b"\x7fELF\x02\x01\x01"[..], &[0; 9], &[3, 0]].concat();
        for (name, data) in [("app", &program[..]), ("k.hip", &program), ("text", b"hello"), ("k.cpp", b"\0")] {
            assert_eq!(advice(name, data), "", "{name}");
        }
    }
}
