//! With the feature `bundled`, the libraries that programs are run with become part of the command, because
//! `cargo install` installs executables alone.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The packages and the files that they become.
const LIBRARIES: [(&str, &str); 4] = [
    ("wavetap-hip-emulator", "libamdhip64.so"),
    ("wavetap-kfd-emulator", "libwavetap_kfd.so"),
    ("wavetap-hsa-tool", "libwavetap_hsa.so"),
    ("wavetap-ranges", "libwavetap_ranges.so"),
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_BUNDLED").is_none() {
        return;
    }
    for folder in ["crates", "hip-emulator", "hsa-tool", "kfd-emulator", "ranges", "src"] {
        println!("cargo::rerun-if-changed=../{folder}");
    }
    let variable = |name: &str| PathBuf::from(std::env::var_os(name).expect("cargo sets it"));
    let (out, root) = (variable("OUT_DIR"), variable("CARGO_MANIFEST_DIR").join(".."));
    // A folder of its own: that of the build which this is a part of is locked.
    let target = out.join("libraries");
    let mut build = Command::new(variable("CARGO"));
    build.args(["build", "--release", "--locked", "--target-dir"]).arg(&target).current_dir(root);
    for (package, _) in LIBRARIES {
        build.args(["--package", package]);
    }
    // What this build says to its own compilers.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_FEATURE_") || text.starts_with("CARGO_CFG_") || text.starts_with("CARGO_PKG_") {
            build.env_remove(&name);
        }
    }
    build.env_remove("CARGO_MAKEFLAGS").env_remove("CARGO_TARGET_DIR");
    let status = build.status().expect("cargo starts");
    assert!(status.success(), "the libraries could not be built");
    let mut hash = DefaultHasher::new();
    let mut list = String::new();
    for (_, file) in LIBRARIES {
        let path = built(&target.join("release"), file);
        hash.write(&fs::read(&path).expect("a library can be read"));
        list.push_str(&format!("    ({file:?}, include_bytes!({:?})),\n", path.display().to_string()));
    }
    let code = format!(
        "const ID: &str = \"{:016x}\";\nconst LIBRARIES: [(&str, &[u8]); {}] = [\n{list}];\n",
        hash.finish(),
        LIBRARIES.len()
    );
    fs::write(out.join("bundled.rs"), code).expect("a file can be written");
}

/// Where cargo has put a library: beside executables if the package was asked for, else below `deps`.
fn built(release: &Path, file: &str) -> PathBuf {
    let places = [release.join(file), release.join("deps").join(file)];
    places.into_iter().find(|place| place.exists()).unwrap_or_else(|| panic!("{file} was not built"))
}
