//! Gives the library the version node that executables ask for: a loader ends them where it is missing.

mod version_script;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=version_script.rs");
    version_script::give(&format!("{} {{ }};\n", version_script::ROCTX));
}
