//! Compiles `isa-tables/*.yaml` into the library.
//!
//! The instruction rows become one compact binary table, which the `isa` module reads into place at its first use: the compiler has nothing to do
//! for them, however many targets there are. What is small (targets, latencies) becomes Rust source. `isa-tables/README.md` explains the rows.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

#[path = "build/targets.rs"]
mod targets;
#[path = "build/waits.rs"]
mod waits;

use targets::Targets;

type Failure = Box<dyn std::error::Error>;

/// The files of rows, in `isa-tables/instructions/`.
const ROW_FILES: [&str; 11] = [
    "scalar",
    "scalar_memory",
    "vector_1",
    "vector_2",
    "vector_compare",
    "vector_3",
    "vector_packed",
    "lds",
    "flat",
    "buffer",
    "image_export",
];

// The numbers that stand for names in the binary table are positions in these lists; `src/isa/load.rs` has the same lists of enum values.
const CODINGS: [&str; 11] =
    ["vector", "accum", "vector_acc", "src", "src_acc", "src_accum", "sdwa", "sdwa_sdst", "literal", "signed", "unsigned"];
const ACCEPTS: &str = "vasmferdil";
const TYPES: [&str; 16] =
    ["b16", "b32", "b64", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "v2i16", "v2f16", "v2bf16", "v2i32", "v2f32", "untyped"];
const FORMS: [&str; 6] = ["decimal", "hex", "inline", "index_mode", "slot", "endpgm"];
const ROLES: [&str; 29] = [
    "vdst",
    "sdst",
    "src0",
    "src1",
    "src2",
    "old",
    "imm",
    "simm16",
    "simm_target",
    "sbase",
    "soffset",
    "sdata",
    "vaddr",
    "saddr",
    "vdata",
    "srsrc",
    "ssamp",
    "addr",
    "data0",
    "data1",
    "hwreg",
    "message",
    "wait_count",
    "attribute",
    "attribute_channel",
    "export_target",
    "format",
    "dmask",
    "other",
];
const MODIFIERS: [&str; 43] = [
    "neg",
    "abs",
    "neg_hi",
    "op_sel",
    "op_sel_hi",
    "sext",
    "clamp",
    "omod",
    "offset",
    "offset1",
    "glc",
    "slc",
    "scc",
    "lds",
    "tfe",
    "lwe",
    "nv",
    "gds",
    "idxen",
    "offen",
    "unorm",
    "da",
    "r128",
    "d16",
    "cbsz",
    "abid",
    "blgp",
    "imm_en",
    "soffset_en",
    "high",
    "dpp_ctrl",
    "row_mask",
    "bank_mask",
    "bound_ctrl",
    "dst_sel",
    "dst_unused",
    "src0_sel",
    "src1_sel",
    "export_enable",
    "export_compressed",
    "export_valid_mask",
    "cache",
    "done",
];
const ACCESSES: [&str; 4] = ["r", "w", "rw", "-"];
const ENCODINGS: [&str; 25] = [
    "sop1",
    "sop2",
    "sopk",
    "sopc",
    "sopp",
    "smem",
    "vop1",
    "vop2",
    "vopc",
    "vop3",
    "vop3p",
    "vintrp",
    "ds",
    "flat",
    "global",
    "scratch",
    "mubuf",
    "mtbuf",
    "mimg",
    "exp",
    "vop1_dpp",
    "vop2_dpp",
    "vop1_sdwa",
    "vop2_sdwa",
    "vopc_sdwa",
];
const IMPLICIT: [&str; 6] = ["scc", "vcc", "exec", "m0", "flat_scratch", "mode"];
const BRANCHES: [&str; 15] = [
    "none",
    "jump",
    "call",
    "indirect_call",
    "indirect_jump",
    "end",
    "obsolete",
    "trap",
    "scc0",
    "scc1",
    "vccz",
    "vccnz",
    "execz",
    "execnz",
    "debug",
];
const MEMORIES: [&str; 10] = ["none", "scalar", "global", "flat", "scratch", "buffer", "image", "lds", "gds", "message"];
const COUNTERS: [&str; 13] = ["vm", "lgkm", "exp", "vs", "load", "sample", "bvh", "store", "ds", "km", "x", "async", "tensor"];
const LATENCIES: [&str; 14] =
    ["valu32", "valu64", "valu_f64", "trans", "mfma", "salu", "smem", "lds", "vmem", "export", "branch", "barrier", "message", "wait"];
const FLAGS: [&str; 12] = ["valu", "salu", "load", "store", "atomic", "returns", "mfma", "trans", "d16", "barrier", "wait", "packed"];
/// Operand positions that print a fixed word and have no field.
const FIXED_OPERANDS: [&str; 2] = ["vcc", "off"];
/// Most runs of bits one field may be split into.
const MAX_RUNS: usize = 4;

#[derive(Deserialize)]
struct Kind {
    coding: String,
    #[serde(default)]
    accepts: String,
    dwords: u8,
    #[serde(default)]
    shown: Option<u8>,
    r#type: String,
    #[serde(default)]
    even: bool,
    #[serde(default)]
    signs: bool,
    #[serde(default)]
    form: Option<String>,
}

#[derive(Deserialize)]
struct Layout {
    bytes: u8,
    fields: HashMap<String, String>,
}

#[derive(Deserialize)]
struct Row {
    name: String,
    mnemonic: Option<String>,
    encoding: String,
    op: u16,
    mask: u64,
    r#match: u64,
    layout: String,
    #[serde(default)]
    operands: Vec<String>,
    #[serde(default)]
    print: Vec<String>,
    #[serde(default)]
    reads: Vec<String>,
    #[serde(default)]
    writes: Vec<String>,
    branch: Option<String>,
    memory: Option<String>,
    #[serde(default)]
    bytes: u8,
    #[serde(default)]
    counters: Vec<String>,
    latency: String,
    #[serde(default)]
    flags: Vec<String>,
    targets: Vec<String>,
}

fn main() -> Result<(), Failure> {
    println!("cargo::rerun-if-changed=isa-tables");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    let tables = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("isa-tables");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let targets = Targets::read(&tables)?;
    let (table, with_rows) = instructions(&tables, &targets.instruction_sets())?;
    std::fs::write(out.join("instructions.bin"), table)?;
    std::fs::write(out.join("targets.rs"), targets.source(with_rows)?)?;
    std::fs::write(out.join("waits.rs"), waits::source(&tables, &targets.names())?)?;
    Ok(())
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let text = std::fs::read_to_string(path)?;
    serde_yaml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()).into())
}

/// The binary table (strings, kinds, layouts, rows; all numbers little-endian), and bits of the instruction sets that there are rows for.
fn instructions(tables: &Path, sets: &[&str]) -> Result<(Vec<u8>, u32), Failure> {
    let kinds: std::collections::BTreeMap<String, Kind> = read(&tables.join("operands.yaml"))?;
    let layouts: std::collections::BTreeMap<String, Layout> = read(&tables.join("layouts.yaml"))?;
    let mut out = Vec::new();
    put16(&mut out, kinds.len())?;
    for (name, kind) in &kinds {
        out.push(position(&CODINGS, &kind.coding, name)?);
        let mut accepts = 0;
        for letter in kind.accepts.chars() {
            accepts |= 1 << ACCEPTS.find(letter).ok_or_else(|| format!("{name}: what is accepted is '{letter}'?"))?;
        }
        put16(&mut out, accepts)?;
        out.push(kind.dwords);
        out.push(kind.shown.unwrap_or(kind.dwords));
        out.push(position(&TYPES, &kind.r#type, name)?);
        out.push(u8::from(kind.even) | u8::from(kind.signs) << 1);
        out.push(position(&FORMS, kind.form.as_deref().unwrap_or("decimal"), name)?);
    }
    let mut rows = Vec::new();
    for file in ROW_FILES {
        let more: Vec<Row> = read(&tables.join("instructions").join(format!("{file}.yaml")))?;
        rows.extend(more);
    }
    let layout_names: HashMap<&str, usize> = layouts.keys().enumerate().map(|(index, name)| (name.as_str(), index)).collect();
    put16(&mut out, layouts.len())?;
    for (name, layout) in &layouts {
        out.push(layout.bytes);
        let mut modifiers: Vec<(u8, &String)> = layout
            .fields
            .iter()
            .filter_map(|(field, bits)| MODIFIERS.iter().position(|known| known == field).map(|index| (index as u8, bits)))
            .collect();
        modifiers.sort();
        out.push(u8::try_from(modifiers.len())?);
        for (modifier, bits) in modifiers {
            out.push(modifier);
            put_bits(&mut out, bits, name)?;
        }
    }
    put16(&mut out, rows.len())?;
    let mut with_rows = 0;
    for row in &rows {
        with_rows |= put_row(&mut out, row, &kinds, &layouts, &layout_names, sets)
            .map_err(|error| format!("{} ({}): {error}", row.name, row.encoding))?;
    }
    Ok((out, with_rows))
}

fn put_row(
    out: &mut Vec<u8>,
    row: &Row,
    kinds: &std::collections::BTreeMap<String, Kind>,
    layouts: &std::collections::BTreeMap<String, Layout>,
    layout_names: &HashMap<&str, usize>,
    sets: &[&str],
) -> Result<u32, Failure> {
    put_text(out, &row.name)?;
    put_text(out, row.mnemonic.as_deref().unwrap_or(&row.name))?;
    out.push(position(&ENCODINGS, &row.encoding, "encoding")?);
    out.extend(row.op.to_le_bytes());
    out.extend(row.mask.to_le_bytes());
    out.extend(row.r#match.to_le_bytes());
    let layout = &layouts[&row.layout];
    put16(out, layout_names[row.layout.as_str()])?;
    out.push(u8::try_from(row.operands.len())?);
    for operand in &row.operands {
        if let Some(word) = FIXED_OPERANDS.iter().position(|word| word == operand) {
            out.push(0x80 | word as u8);
            continue;
        }
        let parts: Vec<&str> = operand.split(' ').collect();
        let [role, access, kind] = parts[..] else { return Err(format!("operand '{operand}' is not 'role access kind'").into()) };
        out.push(position(&ROLES, role, "role")?);
        out.push(position(&ACCESSES, access, "access")?);
        let index = kinds.keys().position(|known| known == kind).ok_or_else(|| format!("no operand kind {kind}"))?;
        put16(out, index)?;
        let bits = layout.fields.get(role).ok_or_else(|| format!("layout {} has no field {role}", row.layout))?;
        put_bits(out, bits, role)?;
    }
    out.push(u8::try_from(row.print.len())?);
    for item in &row.print {
        out.push(position(&MODIFIERS, item, "print")?);
    }
    out.push(set(&IMPLICIT, &row.reads)? as u8);
    out.push(set(&IMPLICIT, &row.writes)? as u8);
    out.push(position(&BRANCHES, row.branch.as_deref().unwrap_or("none"), "branch")?);
    out.push(position(&MEMORIES, row.memory.as_deref().unwrap_or("none"), "memory")?);
    out.push(row.bytes);
    put16(out, set(&COUNTERS, &row.counters)?)?;
    out.push(position(&LATENCIES, &row.latency, "latency")?);
    put16(out, set(&FLAGS, &row.flags)?)?;
    let has = u32::try_from(set(sets, &row.targets)?)?;
    out.extend(has.to_le_bytes());
    Ok(has)
}

fn put16(out: &mut Vec<u8>, value: usize) -> Result<(), Failure> {
    out.extend(u16::try_from(value)?.to_le_bytes());
    Ok(())
}

fn put_text(out: &mut Vec<u8>, text: &str) -> Result<(), Failure> {
    out.push(u8::try_from(text.len())?);
    out.extend(text.as_bytes());
    Ok(())
}

/// `'17,14@1'`: runs of instruction bits, most significant first, each with the value bit at which it starts.
fn put_bits(out: &mut Vec<u8>, text: &str, name: &str) -> Result<(), Failure> {
    let runs: Vec<&str> = text.split(',').collect();
    if runs.len() > MAX_RUNS {
        return Err(format!("{name}: '{text}' has more than {MAX_RUNS} runs of bits").into());
    }
    out.push(runs.len() as u8);
    for run in runs {
        let (place, shift) = run.split_once('@').unwrap_or((run, "0"));
        let (high, low) = place.split_once(':').unwrap_or((place, place));
        let (high, low): (u8, u8) = (high.parse()?, low.parse()?);
        out.extend([low, high - low + 1, shift.parse()?]);
    }
    Ok(())
}

fn position(names: &[&str], name: &str, what: &str) -> Result<u8, Failure> {
    let index = names.iter().position(|known| *known == name).ok_or_else(|| format!("{what}: '{name}' is not known"))?;
    Ok(u8::try_from(index)?)
}

fn set(names: &[&str], members: &[String]) -> Result<usize, Failure> {
    members.iter().try_fold(0, |bits, member| Ok(bits | 1 << position(names, member, "set")?))
}
