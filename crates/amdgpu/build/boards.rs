//! Boards: from `boards.yaml` to Rust source.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;

use super::{Failure, read};

/// A board, as `boards.yaml` explains.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    title: String,
    target: String,
    compute_units: u32,
    clock_mhz: u32,
    vector: BTreeMap<String, u32>,
    #[serde(default)]
    matrix: BTreeMap<String, u32>,
    lds: u32,
    l1: u32,
    l2: Option<u32>,
    l2_mib: u32,
    mall_mib: Option<u32>,
    mall_gbs: Option<u32>,
    memory_gbs: u32,
    #[serde(default)]
    reached: BTreeMap<String, u32>,
    source: String,
}

/// Rust source of the array of boards, each of one of these targets.
pub(super) fn source(tables: &Path, targets: &[&str]) -> Result<String, Failure> {
    let rows: Vec<Row> = read(&tables.join("boards.yaml"))?;
    let mut out = format!("pub(crate) static BOARDS: [Board; {}] = [\n", rows.len());
    for (index, row) in rows.iter().enumerate() {
        let Row { name, title, target, compute_units, clock_mhz, vector, matrix, lds, l1, l2, .. } = row;
        let Row { l2_mib, mall_mib, mall_gbs, memory_gbs, reached, source, .. } = row;
        if !targets.contains(&target.as_str()) {
            return Err(format!("boards.yaml: {name}: {target} is no target").into());
        }
        if rows[..index].iter().any(|other| other.name == *name) {
            return Err(format!("boards.yaml: {name} has two rows").into());
        }
        if source.is_empty() || [*compute_units, *clock_mhz, *lds, *l1, *memory_gbs].contains(&0) {
            return Err(format!("boards.yaml: {name} has no source, or a number that is 0").into());
        }
        let (vector, matrix): (Vec<_>, Vec<_>) = (vector.iter().collect(), matrix.iter().collect());
        let reached: Vec<_> = reached.iter().collect();
        writeln!(
            out,
            "    Board {{ name: {name:?}, title: {title:?}, target: {target:?}, compute_units: {compute_units}, \
                clock_mhz: {clock_mhz}, vector: &{vector:?}, matrix: &{matrix:?}, lds_bytes: {lds}, l1_bytes: {l1}, \
                l2_bytes: {l2:?}, l2_mib: {l2_mib}, mall_mib: {mall_mib:?}, mall_gbs: {mall_gbs:?}, \
                memory_gbs: {memory_gbs}, reached: &{reached:?}, source: {source:?} }},"
        )?;
    }
    out.push_str("];\n");
    Ok(out)
}
