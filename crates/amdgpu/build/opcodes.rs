//! Operations: from the names of the rows and `opcodes.yaml` to the enum `Opcode` and what is known of each of its
//! members.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;

use super::pairs::BETWEEN;
use super::rows::Block;
use super::vocabulary::Vocabulary;
use super::{Failure, read};

/// What stands for no operation. Operations have the numbers from 1 on, in the order of their names.
const INVALID: &str = "INVALID";
/// The beginning of the name that an operation has as one of a pair, and of the name that it has alone.
const OF_PAIR: &str = "v_dual_";
const ALONE: &str = "v_";
/// A field of a family that is false.
const FALSE: &str = "-";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    flags: Vec<Flag>,
    families: Vec<Family>,
    /// `name flag flag | family value value`.
    opcodes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Flag {
    flag: String,
    doc: String,
}

/// Operations that differ in the values of some fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    family: String,
    r#type: String,
    doc: String,
    fields: Vec<Field>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Field {
    field: String,
    /// `u8`, `bool`, or an enum of `vocabulary.yaml`.
    r#type: String,
    doc: String,
}

impl Field {
    /// A value as Rust source.
    fn value(&self, word: &str, vocabulary: &Vocabulary) -> Result<String, Failure> {
        Ok(match self.r#type.as_str() {
            "u8" => word.parse::<u8>().map_err(|error| format!("{} '{word}': {error}", self.field))?.to_string(),
            "bool" if word == self.field => "true".to_owned(),
            "bool" if word == FALSE => "false".to_owned(),
            "bool" => return Err(format!("'{word}' is neither '{}' nor '{FALSE}'", self.field).into()),
            list => format!("{list}::{}", vocabulary.variant(list, word)?),
        })
    }
}

struct Operation {
    name: String,
    flags: u64,
}

/// All operations, with what is known of them.
pub(super) struct Opcodes {
    flags: Vec<Flag>,
    families: Vec<Family>,
    /// By name, ascending.
    operations: Vec<Operation>,
    /// Of each family, its members with their values as Rust source.
    members: Vec<Vec<(usize, String)>>,
}

impl Opcodes {
    /// Those that rows have. `opcodes.yaml` must have a line for each of them, and no other one: an operation without
    /// it would have no flag, which analyses would take for an answer.
    pub(super) fn read(tables: &Path, vocabulary: &Vocabulary, blocks: &[Block]) -> Result<Opcodes, Failure> {
        let mut used: BTreeMap<&str, &str> = BTreeMap::new();
        for block in blocks {
            for name in block.rows.iter().flat_map(|row| row.name.split(BETWEEN)) {
                used.entry(name).or_insert(&block.at);
            }
        }
        let File { flags, families, opcodes: lines } = read(&tables.join("opcodes.yaml"))?;
        if flags.len() > u64::BITS as usize {
            return Err(format!("opcodes.yaml: more than {} flags", u64::BITS).into());
        }
        let members = families.iter().map(|_| Vec::new()).collect();
        let mut opcodes = Opcodes { flags, families, operations: Vec::new(), members };
        for line in &lines {
            let name = opcodes.add(line, vocabulary).map_err(|error| format!("opcodes.yaml: '{line}': {error}"))?;
            if used.remove(name).is_none() {
                return Err(format!("opcodes.yaml: '{line}': no row of the instruction tables has this name").into());
            }
        }
        if let Some((name, at)) = used.first_key_value() {
            return Err(format!("opcodes.yaml has no line for {name} ({at})").into());
        }
        let given = opcodes.operations.iter().fold(0, |given, operation| given | operation.flags);
        if let Some((_, flag)) = opcodes.flags.iter().enumerate().find(|(bit, _)| given >> bit & 1 == 0) {
            return Err(format!("opcodes.yaml: no operation has the flag '{}'", flag.flag).into());
        }
        Ok(opcodes)
    }

    fn add<'a>(&mut self, line: &'a str, vocabulary: &Vocabulary) -> Result<&'a str, Failure> {
        let (words, member) = line.split_once(" | ").map_or((line, None), |(words, member)| (words, Some(member)));
        let mut words = words.split(' ');
        let name = words.next().unwrap_or_default();
        if self.operations.last().is_some_and(|last| last.name.as_str() >= name) {
            return Err("names ascend".into());
        }
        let mut flags = 0;
        for word in words {
            let bit = self
                .flags
                .iter()
                .position(|flag| flag.flag == word)
                .ok_or_else(|| format!("there is no flag '{word}'"))?;
            flags |= 1 << bit;
        }
        if let Some(member) = member {
            let mut words = member.split(' ');
            let of = words.next().unwrap_or_default();
            let family = self
                .families
                .iter()
                .position(|family| family.family == of)
                .ok_or_else(|| format!("there is no family '{of}'"))?;
            let (fields, words) = (&self.families[family].fields, words.collect::<Vec<_>>());
            if fields.len() != words.len() {
                return Err(format!("family '{of}' has {} fields", fields.len()).into());
            }
            let mut values = String::new();
            for (field, word) in fields.iter().zip(words) {
                write!(values, "{}: {}, ", field.field, field.value(word, vocabulary)?)?;
            }
            self.members[family].push((self.operations.len(), values));
        }
        self.operations.push(Operation { name: name.to_owned(), flags });
        Ok(name)
    }

    /// The number of an operation.
    fn number(&self, name: &str) -> Result<u16, Failure> {
        let place = self.operations.binary_search_by(|known| known.name.as_str().cmp(name));
        Ok(u16::try_from(place.map_err(|_| format!("'{name}' is no operation"))? + 1)?)
    }

    /// The operation of a row's name, and the second one where it is a pair of operations (else 0).
    pub(super) fn of_row(&self, name: &str) -> Result<[u16; 2], Failure> {
        Ok(match name.split_once(BETWEEN) {
            Some((first, second)) => [self.number(first)?, self.number(second)?],
            None => [self.number(name)?, 0],
        })
    }

    /// Rust source of `Opcode`, `OpcodeFlags`, the families and the tables by opcode.
    pub(super) fn source(&self) -> Result<String, Failure> {
        let mut out = String::new();
        self.opcode_source(&mut out)?;
        self.flags_source(&mut out)?;
        for (family, members) in self.families.iter().zip(&self.members) {
            self.family_source(&mut out, family, members)?;
        }
        Ok(out)
    }

    fn opcode_source(&self, out: &mut String) -> Result<(), Failure> {
        out.push_str(
            "/// An operation, whatever its encoding: one for each name of the instruction tables, over all targets.\n\
             ///\n\
             /// The order is that of the names.\n\
             #[allow(non_camel_case_types)] // LLVM's names: `v_mfma_f32_32x32x8f16` and `v_mfma_f32_32x32x8_f16` are \
             two.\n\
             #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]\n\
             #[repr(u16)]\n\
             pub enum Opcode {\n",
        );
        writeln!(
            out,
            "    /// No operation: what describes an instruction without decoding one may have it.\n    {INVALID},"
        )?;
        for Operation { name, .. } in &self.operations {
            writeln!(out, "    /// `{name}`.\n    {},", variant(name))?;
        }
        writeln!(out, "}}\nconst OPCODES: usize = {};", self.operations.len() + 1)?;
        writeln!(out, "static ALL: [Opcode; OPCODES] = [\n    Opcode::{INVALID},")?;
        self.operations.iter().try_for_each(|operation| writeln!(out, "    Opcode::{},", variant(&operation.name)))?;
        writeln!(out, "];\nstatic NAMES: [&str; OPCODES] = [\n    \"\",")?;
        self.operations.iter().try_for_each(|operation| writeln!(out, "    {:?},", operation.name))?;
        out.push_str("];\n/// Operations of pairs, ascending, and what they are alone.\n");
        let of_pairs =
            self.operations.iter().filter_map(|Operation { name, .. }| Some((name, name.strip_prefix(OF_PAIR)?)));
        let mut alone = Vec::new();
        for (name, rest) in of_pairs {
            let found = self
                .number(&format!("{ALONE}{rest}"))
                .map_or("None".to_owned(), |_| format!("Some(Opcode::{})", variant(&format!("{ALONE}{rest}"))));
            alone.push(format!("(Opcode::{}, {found})", variant(name)));
        }
        writeln!(out, "static ALONE: [(Opcode, Option<Opcode>); {}] = [{}];", alone.len(), alone.join(", "))?;
        Ok(())
    }

    fn flags_source(&self, out: &mut String) -> Result<(), Failure> {
        writeln!(out, "static FLAGS: [u64; OPCODES] = [\n    0,")?;
        self.operations.iter().try_for_each(|operation| writeln!(out, "    {:#x},", operation.flags))?;
        out.push_str(
            "];\nbitflags::bitflags! \
            {\n/// What is known of operations, each for itself (`isa-tables/opcodes.yaml`).\n",
        );
        out.push_str("#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]\npub struct OpcodeFlags: u64 {\n");
        for (bit, flag) in self.flags.iter().enumerate() {
            writeln!(out, "    /// {}\n    const {} = 1 << {bit};", flag.doc, flag.flag.to_uppercase())?;
        }
        out.push_str("}\n}\n");
        Ok(())
    }

    fn family_source(&self, out: &mut String, family: &Family, members: &[(usize, String)]) -> Result<(), Failure> {
        let Family { family: name, r#type, doc, fields } = family;
        writeln!(out, "/// {doc}\n#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]\npub struct {type} {{")?;
        for Field { field, r#type, doc } in fields {
            writeln!(out, "    /// {doc}\n    pub {field}: {type},")?;
        }
        let table = name.to_uppercase();
        writeln!(out, "}}\nstatic {table}: [(Opcode, {type}); {}] = [", members.len())?;
        for (operation, values) in members {
            writeln!(out, "    (Opcode::{}, {type} {{ {values}}}),", variant(&self.operations[*operation].name))?;
        }
        writeln!(
            out,
            "];\nimpl Opcode {{\n    /// What is known of it if it is of this kind ([`{type}`]).\n    #[must_use]"
        )?;
        writeln!(out, "    pub fn {name}(self) -> Option<{type}> {{")?;
        writeln!(
            out,
            "        {table}.binary_search_by_key(&self, |(opcode, _)| *opcode).ok().map(|place| \
                {table}[place].1)\n    }}\n}}"
        )?;
        Ok(())
    }
}

/// The name of an operation as a variant of `Opcode`.
fn variant(name: &str) -> String {
    name.to_uppercase()
}
