//! Pairs of operations in one instruction (VOPD), from the operations that can be its halves.
//!
//! Every first operation goes with every second one that a set has. A pair has the fixed bits, fields, operands and
//! registers of both. There is one literal: where both halves have one in their encoding, the first one's is written
//! and is not another operand.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde::Deserialize;

use super::rows::{Blocks, Form, Lines, Row, members, place_bits};
use super::{Failure, Layout, put_bits};

/// What a pair has whatever its halves are, and the operations that can be the one and the other.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    pair: Heading,
    first: Vec<Half>,
    second: Vec<Half>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Heading {
    encoding: String,
    mask: u128,
    r#match: u128,
    /// Where the opcodes of the halves are.
    first_at: String,
    second_at: String,
    /// Where the number is that the pair has as a whole.
    op_at: String,
    /// Pairs have no layout: their fields are these and those of the halves.
    fields: BTreeMap<String, String>,
    #[serde(default)]
    print: Vec<String>,
    #[serde(default)]
    reads: Vec<String>,
    flags: Vec<String>,
    #[serde(default)]
    wave: u8,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Half {
    form: HalfForm,
    /// `opcode mnemonic sets`.
    rows: Vec<String>,
}

/// What an operation adds to the pair.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HalfForm {
    #[serde(default)]
    mask: u128,
    #[serde(default)]
    fields: BTreeMap<String, String>,
    operands: Vec<String>,
    #[serde(default)]
    print: Vec<String>,
    #[serde(default)]
    reads: Vec<String>,
    /// Of the first operation, which is the slower one.
    latency: Option<String>,
}

/// The literal of an operation.
const LITERAL: &str = "imm - literal32";
/// What stands for it in the first operation if the second has it, too.
const LITERAL_OF_BOTH: &str = "literal_x";
/// Between the operands of the halves, and their names.
const SECOND: &str = "second";
pub(super) const BETWEEN: &str = "::";

/// Adds the pairs of a file and the layouts that they need.
pub(super) fn read(
    file: &Path,
    sets: &[&str],
    blocks: &mut Blocks,
    layouts: &mut BTreeMap<String, Layout>,
) -> Result<(), Failure> {
    let text = std::fs::read_to_string(file)?;
    let groups: Vec<Group> = serde_yaml::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    let lines = Lines::of(&text);
    for (place, group) in groups.iter().enumerate() {
        let at = |number, row: &str| format!("{}:{}: '{row}'", file.display(), lines.row(place, number));
        let firsts = operations(&group.first).count();
        for (number, (first, first_row)) in operations(&group.first).enumerate() {
            let x = operation(first_row, &group.pair.first_at, sets)
                .map_err(|error| format!("{}: {error}", at(number, first_row)))?;
            for (second_number, (second, second_row)) in (firsts..).zip(operations(&group.second)) {
                let y = operation(second_row, &group.pair.second_at, sets);
                let y = y.map_err(|error| format!("{}: {error}", at(second_number, second_row)))?;
                if x.sets & y.sets == 0 {
                    continue;
                }
                let added = pair(&group.pair, (first, &x), (second, &y), layouts).and_then(|(form, row)| {
                    let block = blocks.block(&form, || at(number, first_row))?;
                    blocks.add(block, row, sets)
                });
                added.map_err(|error| format!("{} with '{second_row}': {error}", at(number, first_row)))?;
            }
        }
    }
    Ok(())
}

fn operations(halves: &[Half]) -> impl Iterator<Item = (&HalfForm, &str)> {
    halves.iter().flat_map(|half| half.rows.iter().map(|row| (&half.form, row.as_str())))
}

/// An operation that can be a half.
struct Operation<'a> {
    name: &'a str,
    /// Its opcode where it is.
    bits: u128,
    sets: u32,
}

fn operation<'a>(row: &'a str, place: &str, sets: &[&str]) -> Result<Operation<'a>, Failure> {
    let mut words = row.split(' ');
    let (Some(opcode), Some(name)) = (words.next(), words.next()) else {
        return Err("expected 'opcode mnemonic sets'".into());
    };
    let opcode = opcode.parse().map_err(|error| format!("opcode '{opcode}': {error}"))?;
    Ok(Operation { name, bits: place_bits(place, opcode)?, sets: members(words, sets)? })
}

fn pair(
    shared: &Heading,
    (first, x): (&HalfForm, &Operation<'_>),
    (second, y): (&HalfForm, &Operation<'_>),
    layouts: &mut BTreeMap<String, Layout>,
) -> Result<(Form, Row), Failure> {
    let mask = shared.mask | first.mask | second.mask;
    let matches = shared.r#match | x.bits | y.bits;
    if matches & !mask != 0 {
        return Err("an opcode or 'match' has bits that the pair does not fix".into());
    }
    let both = second.operands.iter().any(|operand| operand == LITERAL);
    let first_operands =
        first.operands.iter().map(|operand| if both && operand == LITERAL { LITERAL_OF_BOTH } else { operand });
    let operands = first_operands.chain([SECOND]).chain(second.operands.iter().map(String::as_str));
    let all = |parts: [&Vec<String>; 3]| parts.into_iter().flatten().cloned().collect::<Vec<_>>();
    let form = Form {
        encoding: Some(shared.encoding.clone()),
        mask: Some(mask),
        r#match: Some(shared.r#match),
        op_at: Some(shared.op_at.clone()),
        layout: Some(layout([&shared.fields, &first.fields, &second.fields], mask, layouts)?),
        operands: Some(operands.map(str::to_owned).collect()),
        print: Some(all([&shared.print, &first.print, &second.print])),
        reads: Some(all([&shared.reads, &first.reads, &second.reads])),
        latency: first.latency.clone(),
        flags: Some(shared.flags.clone()),
        wave: Some(shared.wave),
        halves: Some([first, second].map(|half| shared.reads.iter().chain(&half.reads).cloned().collect())),
        ..Form::default()
    };
    let name = format!("{}{BETWEEN}{}", x.name, y.name);
    let opcode = u16::try_from(number(&shared.op_at, matches)?)?;
    Ok((form, Row { opcode, mnemonic: name.clone(), name, matches, sets: x.sets & y.sets }))
}

/// Runs of bits, the one with the lowest value bit first: lowest instruction bit, length, lowest value bit.
fn runs(text: &str) -> Result<Vec<[u8; 3]>, Failure> {
    let mut bytes = Vec::new();
    put_bits(&mut bytes, text, "field")?;
    let mut runs: Vec<[u8; 3]> = bytes[1..].chunks_exact(3).map(|run| [run[0], run[1], run[2]]).collect();
    runs.sort_unstable_by_key(|[_, _, shift]| *shift);
    Ok(runs)
}

/// The number in a field.
fn number(place: &str, word: u128) -> Result<u128, Failure> {
    Ok(runs(place)?
        .iter()
        .fold(0, |number, [low, length, shift]| number | (word >> low & ((1 << length) - 1)) << shift))
}

/// The layout with these fields, of as many dwords as they and the fixed bits need; its name.
fn layout(
    parts: [&BTreeMap<String, String>; 3],
    mask: u128,
    layouts: &mut BTreeMap<String, Layout>,
) -> Result<String, Failure> {
    let mut fields: BTreeMap<&str, Vec<[u8; 3]>> = BTreeMap::new();
    let mut used = mask;
    for (name, bits) in parts.into_iter().flatten() {
        for run in runs(bits)? {
            used |= ((1 << run[1]) - 1) << run[0];
            let known = fields.entry(name).or_default();
            // A literal that both halves have.
            if !known.contains(&run) {
                known.push(run);
            }
        }
    }
    let mut text: HashMap<String, String> = HashMap::new();
    for (name, mut runs) in fields {
        runs.sort_unstable_by_key(|[_, _, shift]| std::cmp::Reverse(*shift));
        let runs: Vec<String> =
            runs.iter().map(|[low, length, shift]| format!("{}:{low}@{shift}", low + length - 1)).collect();
        text.insert(name.to_owned(), runs.join(","));
    }
    let bytes = u8::try_from(used.ilog2() / 32 * 4 + 4)?;
    let sorted: BTreeMap<&String, &String> = text.iter().collect();
    let name = format!("pair of {bytes} bytes {sorted:?}");
    layouts.entry(name.clone()).or_insert(Layout { bytes, signed_offset: false, fields: text });
    Ok(name)
}
