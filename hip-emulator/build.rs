//! Makes a stub for every entry point of `entry-points.txt` that the sources do not implement, and gives the library
//! the version nodes that executables ask for.

use std::collections::BTreeSet;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The version nodes of `libamdhip64`, oldest first: an executable names those of the entry points it imports. A loader
/// warns about a library without versions, and lets a symbol without a version answer for any.
const VERSIONS: &[&str] = &[
    "hip_4.2", "hip_4.3", "hip_4.4", "hip_4.5", "hip_5.0", "hip_5.1", "hip_5.2", "hip_5.3", "hip_5.5", "hip_5.6",
    "hip_6.0", "hip_6.1", "hip_6.2", "hip_6.4", "hip_6.5", "hip_7.0", "hip_7.1", "hip_7.2",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=entry-points.txt");
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let list = fs::read_to_string("entry-points.txt").expect("the list of entry points");
    let implemented = implemented(Path::new("src"));
    let (mut stubs, mut missing) = (String::new(), String::new());
    for name in list.lines().filter(|name| !implemented.contains(*name)) {
        writeln!(stubs, "stub!({name});").expect("a string takes all");
        writeln!(missing, "`{name}`").expect("a string takes all");
    }
    fs::write(Path::new(&out).join("stubs.rs"), stubs).expect("OUT_DIR can be written");
    fs::write(Path::new(&out).join("missing.md"), missing).expect("OUT_DIR can be written");

    let script = Path::new(&out).join("versions");
    let mut text = String::new();
    for (index, version) in VERSIONS.iter().enumerate() {
        let parent = index.checked_sub(1).map_or("", |before| VERSIONS[before]);
        writeln!(text, "{version} {{ }} {parent};").expect("a string takes all");
    }
    fs::write(&script, text).expect("OUT_DIR can be written");
    let argument = format!("-Wl,--version-script={}", script.display());
    if linker_takes(&out, &argument) {
        println!("cargo::rustc-cdylib-link-arg={argument}");
    }
}

/// The names of the functions that the sources export.
fn implemented(folder: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder).expect("the sources").flatten() {
        if entry.path().is_dir() {
            names.extend(implemented(&entry.path()));
            continue;
        }
        let text = fs::read_to_string(entry.path()).expect("a source file");
        for (start, found) in text.match_indices("fn ") {
            let rest = &text[start + found.len()..];
            // An entry point's other names follow the first after slashes, on lines of their own where they are long.
            for name in rest.split('(').next().unwrap_or_default().split('/').map(str::trim) {
                if ["hip", "__hip", "_Z"].iter().any(|start| name.starts_with(start)) {
                    names.insert(name.to_owned());
                }
            }
        }
        for (start, _) in text.match_indices("export_name = \"") {
            let rest = &text[start + "export_name = \"".len()..];
            names.insert(rest.chars().take_while(|c| *c != '"').collect());
        }
    }
    names
}

/// Whether the linker in use accepts a second version script beside the one that the compiler writes: LLD does, GNU ld
/// does not. Without one the library works all the same; the loader then warns on standard error.
fn linker_takes(out: &str, argument: &str) -> bool {
    let source = Path::new(out).join("probe.rs");
    fs::write(&source, "#![no_std]\n#[panic_handler]\nfn panic(_: &core::panic::PanicInfo<'_>) -> ! { loop {} }\n")
        .expect("OUT_DIR can be written");
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let target = env::var("TARGET").expect("cargo sets TARGET");
    let mut probe = Command::new(rustc);
    probe
        .args(["--crate-type=cdylib", "--edition=2024", "-Cpanic=abort", "--target", &target])
        .arg(format!("-Clink-arg={argument}"));
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        probe.arg(format!("-Clinker={linker}"));
    }
    for flag in env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default().split('\x1f').filter(|flag| !flag.is_empty()) {
        probe.arg(flag);
    }
    probe.arg("--out-dir").arg(out).arg(&source).output().is_ok_and(|result| result.status.success())
}
