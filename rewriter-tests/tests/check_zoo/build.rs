//! Compiles the programs, once for each change of their sources.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use md5::{Digest, Md5};
use rewriter_tests::{Failure, hip5, place};

use crate::expectations::{Program, folder};

/// How many compilers run at the same time.
const AT_ONCE: usize = 2;

/// Where the programs are that run on the emulator's HIP runtime.
pub fn built(programs: &[&Program]) -> Result<PathBuf, Failure> {
    let out = place::build_folder().join("check-zoo");
    build(programs, &out, &[])?;
    Ok(out)
}

/// The same for Debian 12's HIP, which takes code objects of version 4; for gfx90a alone.
pub fn built_for_rocm(programs: &[&Program]) -> Result<PathBuf, Failure> {
    let out = place::build_folder().join("check-zoo/rocm");
    let others = ["gfx942", "gfx1030", "gfx1100", "gfx1201"].map(|target| format!("--no-offload-arch={target}"));
    let mut flags = vec!["--", "-mcode-object-version=4"];
    flags.extend(others.iter().map(String::as_str));
    for program in build(programs, &out, &flags)? {
        hip5::make_fit(&out.join(program))?;
    }
    Ok(out)
}

/// Compiles what has changed; the names of what was compiled.
fn build(programs: &[&Program], out: &Path, flags: &[&str]) -> Result<Vec<String>, Failure> {
    fs::create_dir_all(out).map_err(|e| format!("{}: {e}", out.display()))?;
    let mut stale = Vec::new();
    for program in programs {
        let (digest, file) = (digest(program)?, out.join(format!("{}.md5", program.program)));
        let is_there = out.join(&program.program).is_file();
        if !is_there || fs::read_to_string(&file).ok().as_deref() != Some(digest.as_str()) {
            stale.push((program.program.clone(), file, digest));
        }
    }
    let mut running = Vec::new();
    for part in 0..AT_ONCE {
        let names: Vec<&str> = stale.iter().skip(part).step_by(AT_ONCE).map(|(name, ..)| name.as_str()).collect();
        if names.is_empty() {
            continue;
        }
        let mut command = Command::new(place::root().join("hip-samples/build.sh"));
        command.args(["--check", "-o"]).arg(out).args(&names).args(flags);
        let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn();
        running.push(child.map_err(|e| format!("{command:?}: {e}"))?);
    }
    for child in running {
        let finished = child.wait_with_output().map_err(|e| e.to_string())?;
        if !finished.status.success() {
            return Err(format!("hip-samples/build.sh:\n{}", String::from_utf8_lossy(&finished.stderr)));
        }
    }
    for (_, file, digest) in &stale {
        fs::write(file, digest).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    Ok(stale.into_iter().map(|(name, ..)| name).collect())
}

/// Of the program's source, the header and the script.
fn digest(program: &Program) -> Result<String, Failure> {
    let mut digest = Md5::new();
    for file in [folder().join(program.source()), folder().join("check.h"), place::root().join("hip-samples/build.sh")]
    {
        digest.update(fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?);
    }
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
