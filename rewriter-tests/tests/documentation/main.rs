//! The documentation says what the product does: the output that pages show is what the commands print, and reference
//! pages list what the code has. `BLESS=1` writes the pages that are written here.

mod compile;
mod console;
mod reference;
mod schemas;
#[path = "../schemas/mod.rs"]
mod validator;

use std::path::PathBuf;

use rewriter_tests::place;

/// A page of the project.
fn page(name: &str) -> PathBuf {
    place::root().join(name)
}

/// Compares a page with what it should be; with `BLESS=1` in the environment it is written.
fn keep(name: &str, text: &str) {
    let file = page(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&file, text).expect("a page can be written");
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(found == text, "{name} is not what the code says; BLESS=1 writes it");
}
