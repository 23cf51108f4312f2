//! Makes a stub for every entry point of `entry-points.txt` that the sources do not implement, and gives the library
//! the version nodes that executables ask for.

#[path = "../ranges/version_script.rs"]
mod version_script;

use std::collections::BTreeSet;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The version nodes of `libamdhip64`, oldest first: an executable names those of the entry points it imports. A loader
/// warns about a library without versions, and lets a symbol without a version answer for any.
const VERSIONS: &[&str] = &[
    "hip_4.2", "hip_4.3", "hip_4.4", "hip_4.5", "hip_5.0", "hip_5.1", "hip_5.2", "hip_5.3", "hip_5.5", "hip_5.6",
    "hip_6.0", "hip_6.1", "hip_6.2", "hip_6.4", "hip_6.5", "hip_7.0", "hip_7.1", "hip_7.2",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=../ranges/src");
    println!("cargo::rerun-if-changed=entry-points.txt");
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let list = fs::read_to_string("entry-points.txt").expect("the list of entry points");
    // What programs mark is a library of its own, which this one has.
    let implemented: BTreeSet<String> =
        ["src", "../ranges/src"].into_iter().flat_map(|folder| implemented(Path::new(folder))).collect();
    let (mut stubs, mut missing) = (String::new(), String::new());
    for name in list.lines().filter(|name| !implemented.contains(*name)) {
        writeln!(stubs, "stub!({name});").expect("a string takes all");
        writeln!(missing, "`{name}`").expect("a string takes all");
    }
    fs::write(Path::new(&out).join("stubs.rs"), stubs).expect("OUT_DIR can be written");
    fs::write(Path::new(&out).join("missing.md"), missing).expect("OUT_DIR can be written");

    // What programs mark has that of its own library.
    let mut text = format!("{} {{ }};\n", version_script::ROCTX);
    for (index, version) in VERSIONS.iter().enumerate() {
        let parent = index.checked_sub(1).map_or("", |before| VERSIONS[before]);
        writeln!(text, "{version} {{ }} {parent};").expect("a string takes all");
    }
    version_script::give(&text);
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
