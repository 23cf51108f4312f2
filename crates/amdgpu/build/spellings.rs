//! Mnemonics that stand for each other: from `spellings.yaml` to Rust source.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use super::{Failure, read};

/// Rust source of the array `SPELLINGS`.
pub(super) fn source(tables: &Path) -> Result<String, Failure> {
    let groups: Vec<Vec<String>> = read(&tables.join("spellings.yaml"))?;
    let mut seen = BTreeSet::new();
    let mut out = format!("static SPELLINGS: [&[&str]; {}] = [\n", groups.len());
    for group in &groups {
        for name in group {
            if !seen.insert(name) {
                return Err(format!("spellings.yaml: {name} is there twice").into());
            }
        }
        writeln!(out, "    &{group:?},")?;
    }
    out.push_str("];\n");
    Ok(out)
}
