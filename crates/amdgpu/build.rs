//! Compiles `isa-tables/*.yaml` into the library.
//!
//! The instruction rows become one compact binary table, which the `isa` module reads into place at its first use: the compiler has nothing to do
//! for them, however many targets there are. What is small (targets, latencies) becomes Rust source. `isa-tables/README.md` explains the rows.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

#[path = "build/image_descriptors.rs"]
mod image_descriptors;
#[path = "build/images.rs"]
mod images;
#[path = "build/pairs.rs"]
mod pairs;
#[path = "build/rows.rs"]
mod rows;
#[path = "build/spellings.rs"]
mod spellings;
#[path = "build/targets.rs"]
mod targets;
#[path = "build/waits.rs"]
mod waits;

use rows::{Blocks, Form, Row};
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

/// The file of operations that come in pairs.
const PAIR_FILE: &str = "vector_dual";

// The numbers that stand for names in the binary table are positions in these lists; `src/load.rs` has the same lists of enum values.
const CODINGS: [&str; 17] = [
    "vector",
    "accum",
    "vector_acc",
    "src",
    "src_acc",
    "src_accum",
    "sdwa",
    "sdwa_sdst",
    "literal",
    "signed",
    "unsigned",
    "vector_other_parity",
    "src_low128",
    "src_half",
    "vector_low128",
    "vector_half",
    "vector_behind",
];
const ACCEPTS: &str = "vasmferdiln";
const TYPES: [&str; 18] = [
    "b16",
    "b32",
    "b64",
    "i16",
    "i32",
    "i64",
    "f16",
    "bf16",
    "f32",
    "f64",
    "v2i16",
    "v2f16",
    "v2bf16",
    "v2i32",
    "v2f32",
    "untyped",
    "v2f16_splat",
    "v2f16_literal",
];
const FORMS: [&str; 6] = ["decimal", "hex", "inline", "index_mode", "slot", "endpgm"];
const ROLES: [&str; 50] = [
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
    "delay",
    "dep_ctr",
    "version",
    "wait_event",
    "vdst_y",
    "src0_y",
    "src1_y",
    "src2_y",
    "scale0",
    "scale1",
    "vaddr1",
    "vaddr2",
    "vaddr3",
    "vaddr4",
    "vaddr5",
    "vaddr6",
    "vaddr7",
    "vaddr8",
    "vaddr9",
    "vaddr10",
    "vaddr11",
];
const MODIFIERS: [&str; 69] = [
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
    "dlc",
    "a16",
    "fi",
    "dpp8",
    "dim",
    "wait_exp",
    "wait_vdst",
    "wait_vsrc",
    "bitop3",
    "byte_sel",
    "scale_sel",
    "index_key",
    "matrix_a_fmt",
    "matrix_b_fmt",
    "matrix_a_scale",
    "matrix_b_scale",
    "matrix_a_scale_fmt",
    "matrix_b_scale_fmt",
    "matrix_a_reuse",
    "matrix_b_reuse",
    "th",
    "scope",
    "scale_offset",
    "nsa",
    "row_en",
    "dpp8_fi",
];
const ACCESSES: [&str; 4] = ["r", "w", "rw", "-"];
const ENCODINGS: [&str; 39] = [
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
    "vop1_dpp8",
    "vop2_dpp8",
    "vopc_dpp",
    "vopc_dpp8",
    "vop3_dpp",
    "vop3_dpp8",
    "vop3p_dpp",
    "vop3p_dpp8",
    "vopd",
    "vinterp",
    "ldsdir",
    "vimage",
    "vsample",
    "tensor",
];
const IMPLICIT: [&str; 7] = ["scc", "vcc", "exec", "m0", "flat_scratch", "mode", "xnack_mask"];
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
const FLAGS: [&str; 13] =
    ["valu", "salu", "load", "store", "atomic", "returns", "mfma", "trans", "d16", "barrier", "wait", "packed", "double_rate"];
/// What a form adds to an operation's name.
const FORM_ENDINGS: [&str; 5] = ["_e64_dpp", "_e32", "_e64", "_dpp", "_sdwa"];
/// Operand positions that print a fixed word and have no field.
const FIXED_OPERANDS: [&str; 6] = ["vcc", "off", "m0", "second", "literal_x", "offset"];
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
    mask: bool,
    #[serde(default)]
    form: Option<String>,
}

#[derive(Deserialize)]
struct Layout {
    bytes: u8,
    #[serde(default)]
    signed_offset: bool,
    fields: HashMap<String, String>,
}

/// One row of `instruction_sets.yaml`.
#[derive(Deserialize)]
struct SetRow {
    name: String,
    #[serde(flatten)]
    facts: std::collections::BTreeMap<String, serde_yaml::Value>,
}

fn main() -> Result<(), Failure> {
    println!("cargo::rerun-if-changed=../../isa-tables");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    let tables = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../../isa-tables");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let targets = Targets::read(&tables)?;
    let set_rows: Vec<SetRow> = read(&tables.join("instruction_sets.yaml"))?;
    let sets: Vec<&str> = set_rows.iter().map(|set| set.name.as_str()).collect();
    let (table, with_rows) = instructions(&tables, &sets)?;
    std::fs::write(out.join("instructions.bin"), table)?;
    std::fs::write(out.join("waits.rs"), waits::source(&tables, &targets.waits())?)?;
    std::fs::write(out.join("spellings.rs"), spellings::source(&tables)?)?;
    std::fs::write(out.join("image_descriptors.rs"), image_descriptors::source(&tables, &targets)?)?;
    std::fs::write(out.join("image_dimensions.rs"), images::dimensions(&tables)?)?;
    std::fs::write(out.join("instruction_sets.rs"), sets_source(&set_rows)?)?;
    std::fs::write(out.join("targets.rs"), targets.source(&sets, with_rows)?)?;
    Ok(())
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let text = std::fs::read_to_string(path)?;
    serde_yaml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()).into())
}

/// The binary table (strings, kinds, layouts, rows; all numbers little-endian), and bits of the instruction sets that there are rows for.
fn instructions(tables: &Path, sets: &[&str]) -> Result<(Vec<u8>, u32), Failure> {
    let kinds: std::collections::BTreeMap<String, Kind> = read(&tables.join("operands.yaml"))?;
    let mut layouts: std::collections::BTreeMap<String, Layout> = read(&tables.join("layouts.yaml"))?;
    let mut blocks = Blocks::default();
    for file in ROW_FILES {
        blocks.read(&tables.join("instructions").join(format!("{file}.yaml")), sets)?;
    }
    pairs::read(&tables.join("instructions").join(format!("{PAIR_FILE}.yaml")), sets, &mut blocks, &mut layouts)?;
    let blocks = blocks.ordered();
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
        out.push(u8::from(kind.even) | u8::from(kind.signs) << 1 | u8::from(kind.mask) << 2);
        out.push(position(&FORMS, kind.form.as_deref().unwrap_or("decimal"), name)?);
    }
    let layout_names: HashMap<&str, usize> = layouts.keys().enumerate().map(|(index, name)| (name.as_str(), index)).collect();
    put16(&mut out, layouts.len())?;
    for (name, layout) in &layouts {
        out.push(layout.bytes);
        out.push(layout.signed_offset.into());
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
    put16(&mut out, blocks.len())?;
    let mut with_rows = 0;
    for block in &blocks {
        put_form(&mut out, &block.form, &kinds, &layouts, &layout_names).map_err(|error| format!("{}: {error}", block.at))?;
        put16(&mut out, block.rows.len())?;
        for row in &block.rows {
            put_row(&mut out, row)?;
            with_rows |= row.sets;
        }
    }
    Ok((out, with_rows))
}

fn put_form(
    out: &mut Vec<u8>,
    row: &Form,
    kinds: &std::collections::BTreeMap<String, Kind>,
    layouts: &std::collections::BTreeMap<String, Layout>,
    layout_names: &HashMap<&str, usize>,
) -> Result<(), Failure> {
    out.push(position(&ENCODINGS, row.encoding.as_deref().unwrap_or_default(), "encoding")?);
    out.extend(row.mask.unwrap_or(0).to_le_bytes());
    let name = row.layout.as_deref().unwrap_or_default();
    let layout = layouts.get(name).ok_or_else(|| format!("there is no layout '{name}'"))?;
    put16(out, layout_names[name])?;
    let operands = images::spelled_out(row.operands.as_deref().unwrap_or_default())?;
    out.push(u8::try_from(operands.len())?);
    for operand in &operands {
        if let Some(word) = FIXED_OPERANDS.iter().position(|word| word == operand) {
            out.push(0x80 | word as u8);
            continue;
        }
        // In brackets: a field that is not written.
        let parts: Vec<&str> = operand.trim_matches(['(', ')']).split(' ').collect();
        let [role, access, kind] = parts[..] else { return Err(format!("operand '{operand}' is not 'role access kind'").into()) };
        out.push(position(&ROLES, role, "role")?);
        out.push(position(&ACCESSES, access, "access")?);
        let index = kinds.keys().position(|known| known == kind).ok_or_else(|| format!("no operand kind {kind}"))?;
        put16(out, index)?;
        let bits = layout.fields.get(role).ok_or_else(|| format!("layout {name} has no field {role}"))?;
        put_bits(out, bits, role)?;
    }
    images::put(out, row.image.as_ref())?;
    let print = row.print.as_deref().unwrap_or_default();
    out.push(u8::try_from(print.len())?);
    for item in print {
        out.push(position(&MODIFIERS, item, "print")?);
    }
    out.push(set(&IMPLICIT, row.reads.as_deref())? as u8);
    out.push(set(&IMPLICIT, row.writes.as_deref())? as u8);
    out.push(position(&BRANCHES, row.branch.as_deref().unwrap_or("none"), "branch")?);
    out.push(position(&MEMORIES, row.memory.as_deref().unwrap_or("none"), "memory")?);
    out.push(row.bytes.unwrap_or(0));
    put16(out, set(&COUNTERS, row.counters.as_deref())?)?;
    out.push(position(&LATENCIES, row.latency.as_deref().unwrap_or_default(), "latency")?);
    put16(out, set(&FLAGS, row.flags.as_deref())?)?;
    out.push(row.wave.unwrap_or(0));
    // Of a pair of operations: what each half reads.
    out.push(row.halves.is_some().into());
    for reads in row.halves.iter().flatten() {
        out.push(set(&IMPLICIT, Some(reads))? as u8);
    }
    Ok(())
}

/// A row: names, opcode, fixed bits and instruction sets.
fn put_row(out: &mut Vec<u8>, row: &Row) -> Result<(), Failure> {
    put_text(out, &row.name)?;
    put_text(out, &row.mnemonic)?;
    out.extend(row.opcode.to_le_bytes());
    out.extend(row.matches.to_le_bytes());
    out.extend(row.sets.to_le_bytes());
    Ok(())
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

fn set(names: &[&str], members: Option<&[String]>) -> Result<usize, Failure> {
    members.unwrap_or_default().iter().try_fold(0, |bits, member| Ok(bits | 1 << position(names, member, "set")?))
}

/// Rust source of the `INSTRUCTION_SETS` array.
fn sets_source(sets: &[SetRow]) -> Result<String, Failure> {
    let mut out = format!("pub(crate) static INSTRUCTION_SETS: [InstructionSet; {}] = [\n", sets.len());
    for set in sets {
        writeln!(out, "    InstructionSet {{\n        name: {:?},", set.name)?;
        let mut facts = Vec::new();
        for (fact, value) in &set.facts {
            let value = match value {
                serde_yaml::Value::Bool(value) => value.to_string(),
                serde_yaml::Value::Number(value) => value.to_string(),
                other => return Err(format!("{}: {fact}: {other:?} is neither a number nor a truth value", set.name).into()),
            };
            writeln!(out, "        {fact}: {value},")?;
            facts.push((fact, value));
        }
        writeln!(out, "        facts: &{facts:?},")?;
        writeln!(out, "    }},")?;
    }
    out.push_str("];\n");
    Ok(out)
}
