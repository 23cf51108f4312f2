//! Compiles `isa-tables/*.yaml` into the library.
fn main() {
    println!("cargo::rerun-if-changed=isa-tables");
}
