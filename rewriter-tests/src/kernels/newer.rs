//! Compiling for processors that the compiler does not know, but the Rust toolchain's LLVM does: the compiler makes
//! LLVM's language of a source for a processor near the wanted one, and the newer LLVM (`llvm-oracle compile`) the
//! machine code. Its passes run, too, and not those of the compiler.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::OnceLock;

use wavetap::isa::Target;

use super::build::{CLANG, Variant, device_arguments, made, made_by, made_folder, named, read, strings, write_whole};
use crate::{Failure, command, place};

const LLD: &str = "ld.lld-19";

/// A processor that clang 19 does not know.
struct Newer {
    name: &'static str,
    /// What the source is compiled for as far as clang has a part in it. Its builtins are those that sources can use:
    /// what only it has must be left out of them by the wanted processor's macro, which they find defined in the place
    /// of its own.
    near: &'static str,
    /// The first LLVM that knows it.
    since: u32,
}

const NEWER: &[Newer] = &[
    Newer { name: "gfx950", near: "gfx942", since: 20 },
    // Waves of 32 as all of gfx12, whose other size these do not have.
    Newer { name: "gfx1250", near: "gfx1200", since: 21 },
    Newer { name: "gfx1251", near: "gfx1200", since: 22 },
];

/// The newer LLVM and the program that asks it.
struct Compiler {
    program: String,
    /// Its major version.
    version: u32,
    /// Changes with the program or the library.
    identity: String,
}

/// The names of processors that this compiles for. None where the toolchain brings no LLVM.
pub(super) fn processors() -> BTreeSet<String> {
    let version = compiler().map_or(0, |compiler| compiler.version);
    NEWER.iter().filter(|newer| newer.since <= version).map(|newer| newer.name.to_owned()).collect()
}

/// The code object of a source.
///
/// # Errors
/// If it cannot be compiled or linked.
pub(super) fn object_of(source: &Path, variant: Variant) -> Result<Vec<u8>, Failure> {
    let Variant { target, level, .. } = variant;
    let unknown = || format!("neither the compiler nor the toolchain's LLVM compiles for {}", target.name());
    let newer = NEWER.iter().find(|newer| newer.name == target.name()).ok_or_else(unknown)?;
    let compiler = compiler().map_err(Clone::clone)?;
    if compiler.version < newer.since {
        return Err(unknown());
    }
    let name = named(source, variant);
    let near =
        Target::by_name(newer.near).and_then(|near| near.with_wave_size(target.wave_size())).ok_or_else(unknown)?;
    let mut arguments = device_arguments(source, Variant { target: near, ..variant })?;
    arguments.extend(strings(&["-S", "-emit-llvm", "-Xclang", "-disable-llvm-passes"]));
    arguments.extend([format!("-U__{}__", newer.near).into(), format!("-D__{}__", newer.name).into()]);
    let text = for_processor(&read(&made(&format!("{name}.near.ll"), CLANG, &arguments)?)?, newer);
    let module = made_folder()?.join(format!("{name}.ll"));
    if fs::read_to_string(&module).ok().as_ref() != Some(&text) {
        write_whole(&module, text.as_bytes())?;
    }
    let mut arguments = strings(&["compile", newer.name, level]);
    arguments.push(module.into());
    let object = made_by(&format!("{name}.o"), &compiler.program, &compiler.identity, &arguments)?;
    // As clang links them.
    let mut arguments = strings(&["-m", "elf64_amdgpu", "--no-undefined", "-shared"]);
    arguments.push(object.into());
    let file = made(&format!("{name}.co"), LLD, &arguments)?;
    fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))
}

/// A module for the wanted processor and not the near one: each function names it, and the features that clang has
/// given to functions would be the near one's.
fn for_processor(module: &str, newer: &Newer) -> String {
    let processor = |name| format!("\"target-cpu\"=\"{name}\"");
    let mut text = String::with_capacity(module.len());
    for line in module.split_inclusive('\n') {
        match line
            .split_once(" \"target-features\"=\"")
            .and_then(|(before, rest)| Some((before, rest.split_once('"')?.1)))
        {
            Some((before, behind)) if line.starts_with("attributes ") => text.extend([before, behind]),
            _ => text.push_str(line),
        }
    }
    text.replace(&processor(newer.near), &processor(newer.name))
}

/// The newer LLVM, if the toolchain has one.
fn compiler() -> Result<&'static Compiler, &'static Failure> {
    static COMPILER: OnceLock<Result<Compiler, Failure>> = OnceLock::new();
    let find = || {
        let program = llvm_oracle::program().map_err(|e| e.to_string())?;
        let library = llvm_oracle::library_path().map_err(|e| e.to_string())?;
        let finished = command::run(&program, &["version"], &[], place::root())?.exited(0)?;
        let version = finished.out().trim().to_owned();
        let major = version.split('.').next().and_then(|major| major.parse().ok());
        let mut hasher = DefaultHasher::new();
        fs::read(&program).map_err(|e| format!("{}: {e}", program.display()))?.hash(&mut hasher);
        let metadata = fs::metadata(&library).map_err(|e| format!("{}: {e}", library.display()))?;
        (&library, metadata.len(), metadata.modified().ok()).hash(&mut hasher);
        Ok(Compiler {
            version: major.ok_or_else(|| finished.failure("no version"))?,
            identity: format!("{version} {:016x}", hasher.finish()),
            program: program.to_string_lossy().into_owned(),
        })
    };
    COMPILER.get_or_init(find).as_ref()
}

#[test]
fn a_module_names_the_wanted_processor_and_no_features() {
    let newer = Newer { name: "gfx1250", near: "gfx1200", since: 21 };
    let module = "c\"\\22target-cpu\"\n\
                  attributes #0 = \
                  { convergent \"target-cpu\"=\"gfx1200\" \"target-features\"=\"+dot10-insts,+wavefrontsize32\" \
            \"x\"=\"y\" }\n\
                  attributes #1 = { nounwind }\n";
    let wanted = "c\"\\22target-cpu\"\n\
                  attributes #0 = { convergent \"target-cpu\"=\"gfx1250\" \"x\"=\"y\" }\n\
                  attributes #1 = { nounwind }\n";
    assert_eq!(for_processor(module, &newer), wanted);
}
