//! Compiles `isa-tables/*.yaml` into the library.
//!
//! The instruction rows become one compact binary table, which the `isa` module reads into place at its first use: the
//! compiler has nothing to do for them, however many targets there are. What is small (targets, latencies) becomes Rust
//! source. `isa-tables/README.md` explains the rows.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

#[path = "build/boards.rs"]
mod boards;
#[path = "build/image_descriptors.rs"]
mod image_descriptors;
#[path = "build/images.rs"]
mod images;
#[path = "build/opcodes.rs"]
mod opcodes;
#[path = "build/pairs.rs"]
mod pairs;
#[path = "build/rows.rs"]
mod rows;
#[path = "build/spellings.rs"]
mod spellings;
#[path = "build/targets.rs"]
mod targets;
#[path = "build/vocabulary.rs"]
mod vocabulary;
#[path = "build/waits.rs"]
mod waits;

use opcodes::Opcodes;
use rows::{Blocks, Form, Row};
use targets::Targets;
use vocabulary::Vocabulary;

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

/// What a form adds to an operation's name.
const FORM_ENDINGS: [&str; 5] = ["_e64_dpp", "_e32", "_e64", "_dpp", "_sdwa"];
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
    let vocabulary = Vocabulary::read(&tables)?;
    let targets = Targets::read(&tables, &vocabulary)?;
    let set_rows: Vec<SetRow> = read(&tables.join("instruction_sets.yaml"))?;
    let sets: Vec<&str> = set_rows.iter().map(|set| set.name.as_str()).collect();
    let (table, with_rows, opcodes) = instructions(&tables, &vocabulary, &sets)?;
    std::fs::write(out.join("instructions.bin"), table)?;
    std::fs::write(out.join("vocabulary.rs"), vocabulary.source()?)?;
    std::fs::write(out.join("opcodes.rs"), opcodes.source()?)?;
    std::fs::write(out.join("waits.rs"), waits::source(&tables, &vocabulary, &targets.waits())?)?;
    std::fs::write(out.join("spellings.rs"), spellings::source(&tables)?)?;
    let target_names: Vec<&str> = targets.waits().into_iter().map(|(name, _)| name).collect();
    std::fs::write(out.join("boards.rs"), boards::source(&tables, &target_names)?)?;
    std::fs::write(out.join("image_descriptors.rs"), image_descriptors::source(&tables, &vocabulary, &targets)?)?;
    std::fs::write(out.join("image_dimensions.rs"), images::dimensions(&tables)?)?;
    std::fs::write(out.join("instruction_sets.rs"), sets_source(&set_rows)?)?;
    std::fs::write(out.join("targets.rs"), targets.source(&vocabulary, &sets, with_rows)?)?;
    Ok(())
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let text = std::fs::read_to_string(path)?;
    serde_yaml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()).into())
}

/// The binary table (kinds, layouts, rows; all numbers little-endian), bits of the instruction sets that there are rows
/// for, and the operations.
fn instructions(tables: &Path, vocabulary: &Vocabulary, sets: &[&str]) -> Result<(Vec<u8>, u32, Opcodes), Failure> {
    let kinds: std::collections::BTreeMap<String, Kind> = read(&tables.join("operands.yaml"))?;
    let mut layouts: std::collections::BTreeMap<String, Layout> = read(&tables.join("layouts.yaml"))?;
    let mut blocks = Blocks::default();
    for file in ROW_FILES {
        blocks.read(&tables.join("instructions").join(format!("{file}.yaml")), sets)?;
    }
    pairs::read(&tables.join("instructions").join(format!("{PAIR_FILE}.yaml")), sets, &mut blocks, &mut layouts)?;
    let blocks = blocks.ordered();
    let opcodes = Opcodes::read(tables, vocabulary, &blocks)?;
    let mut out = Vec::new();
    put16(&mut out, kinds.len())?;
    for kind in kinds.values() {
        out.push(vocabulary.number("Coding", &kind.coding)?);
        let accepts: Vec<String> = kind.accepts.chars().map(String::from).collect();
        put16(&mut out, vocabulary.set("Accepts", &accepts)?.into())?;
        out.push(kind.dwords);
        out.push(kind.shown.unwrap_or(kind.dwords));
        out.push(vocabulary.number("ValueType", &kind.r#type)?);
        out.push(u8::from(kind.even) | u8::from(kind.signs) << 1 | u8::from(kind.mask) << 2);
        out.push(vocabulary.number("Form", kind.form.as_deref().unwrap_or("decimal"))?);
    }
    let layout_names: HashMap<&str, usize> =
        layouts.keys().enumerate().map(|(index, name)| (name.as_str(), index)).collect();
    put16(&mut out, layouts.len())?;
    for (name, layout) in &layouts {
        out.push(layout.bytes);
        out.push(layout.signed_offset.into());
        let mut modifiers: Vec<(u8, &String)> = Vec::new();
        for (field, bits) in &layout.fields {
            modifiers.extend(vocabulary.find("Modifier", field)?.map(|number| (number, bits)));
        }
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
        put_form(&mut out, vocabulary, &block.form, &kinds, &layouts, &layout_names)
            .map_err(|error| format!("{}: {error}", block.at))?;
        put16(&mut out, block.rows.len())?;
        for row in &block.rows {
            put_row(&mut out, &opcodes, row)?;
            with_rows |= row.sets;
        }
    }
    Ok((out, with_rows, opcodes))
}

fn put_form(
    out: &mut Vec<u8>,
    vocabulary: &Vocabulary,
    row: &Form,
    kinds: &std::collections::BTreeMap<String, Kind>,
    layouts: &std::collections::BTreeMap<String, Layout>,
    layout_names: &HashMap<&str, usize>,
) -> Result<(), Failure> {
    out.push(vocabulary.number("Encoding", row.encoding.as_deref().unwrap_or_default())?);
    out.extend(row.mask.unwrap_or(0).to_le_bytes());
    let name = row.layout.as_deref().unwrap_or_default();
    let layout = layouts.get(name).ok_or_else(|| format!("there is no layout '{name}'"))?;
    put16(out, layout_names[name])?;
    let operands = images::spelled_out(vocabulary, row.operands.as_deref().unwrap_or_default())?;
    out.push(u8::try_from(operands.len())?);
    for operand in &operands {
        if let Some(word) = vocabulary.find("FIXED_WORDS", operand)? {
            out.push(0x80 | word);
            continue;
        }
        // In brackets: a field that is not written.
        let parts: Vec<&str> = operand.trim_matches(['(', ')']).split(' ').collect();
        let [role, access, kind] = parts[..] else {
            return Err(format!("operand '{operand}' is not 'role access kind'").into());
        };
        out.push(vocabulary.number("Role", role)?);
        out.push(vocabulary.number("Access", access)?);
        let index = kinds.keys().position(|known| known == kind).ok_or_else(|| format!("no operand kind {kind}"))?;
        put16(out, index)?;
        let bits = layout.fields.get(role).ok_or_else(|| format!("layout {name} has no field {role}"))?;
        put_bits(out, bits, role)?;
    }
    images::put(out, vocabulary, row.image.as_ref())?;
    let print = row.print.as_deref().unwrap_or_default();
    out.push(u8::try_from(print.len())?);
    for item in print {
        out.push(vocabulary.number("Modifier", item)?);
    }
    out.push(vocabulary.set("Implicit", row.reads.iter().flatten())? as u8);
    out.push(vocabulary.set("Implicit", row.writes.iter().flatten())? as u8);
    out.push(vocabulary.number("BRANCHES", row.branch.as_deref().unwrap_or("none"))?);
    out.push(vocabulary.number("Memory", row.memory.as_deref().unwrap_or("none"))?);
    out.push(row.bytes.unwrap_or(0));
    put16(out, vocabulary.set("Counters", row.counters.iter().flatten())?.into())?;
    out.push(vocabulary.number("Latency", row.latency.as_deref().unwrap_or_default())?);
    put16(out, vocabulary.set("Flags", row.flags.iter().flatten())?.into())?;
    out.push(row.wave.unwrap_or(0));
    // Of a pair of operations: what each half reads.
    out.push(row.halves.is_some().into());
    for reads in row.halves.iter().flatten() {
        out.push(vocabulary.set("Implicit", reads)? as u8);
    }
    Ok(())
}

/// A row: operations, mnemonic, the number in the opcode field, fixed bits and instruction sets.
fn put_row(out: &mut Vec<u8>, opcodes: &Opcodes, row: &Row) -> Result<(), Failure> {
    for opcode in opcodes.of_row(&row.name)? {
        put16(out, opcode.into())?;
    }
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
    let index =
        names.iter().position(|known| *known == name).ok_or_else(|| format!("{what}: '{name}' is not known"))?;
    Ok(u8::try_from(index)?)
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
                other => {
                    return Err(format!("{}: {fact}: {other:?} is neither a number nor a truth value", set.name).into());
                }
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
