// Version nodes for a library: a part of build scripts.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// The version node of `libroctx64`.
pub const ROCTX: &str = "ROCTX_4.1";

/// Gives the library that is built these version nodes, if the linker can.
pub fn give(nodes: &str) {
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let script = Path::new(&out).join("versions");
    fs::write(&script, nodes).expect("OUT_DIR can be written");
    let argument = format!("-Wl,--version-script={}", script.display());
    if linker_takes(&out, &argument) {
        println!("cargo::rustc-cdylib-link-arg={argument}");
    }
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
