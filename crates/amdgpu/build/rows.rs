//! The rows of `isa-tables/instructions/*.yaml`: what is written once becomes a row for every form of every operation.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;

use super::images::Image;
use super::{FORM_ENDINGS, Failure, position, put_bits};

/// What rows have in common that differ in name and opcode only. In a file, what a heading or one of its forms says;
/// what both lack is nothing.
#[derive(Deserialize, Debug, Clone, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Form {
    pub(super) encoding: Option<String>,
    pub(super) mask: Option<u128>,
    pub(super) r#match: Option<u128>,
    /// Where the rows' numbers are, as the fields of layouts are written; absent: the fixed bits are all in `match`.
    pub(super) op_at: Option<String>,
    pub(super) layout: Option<String>,
    pub(super) operands: Option<Vec<String>>,
    /// What an image instruction says about the number of its registers.
    pub(super) image: Option<Image>,
    pub(super) print: Option<Vec<String>>,
    pub(super) reads: Option<Vec<String>>,
    pub(super) writes: Option<Vec<String>>,
    pub(super) branch: Option<String>,
    pub(super) memory: Option<String>,
    pub(super) bytes: Option<u8>,
    pub(super) counters: Option<Vec<String>>,
    pub(super) latency: Option<String>,
    pub(super) flags: Option<Vec<String>>,
    /// The wave size that it needs; 0: any.
    pub(super) wave: Option<u8>,
    /// Of a pair of operations: the registers that each half reads without naming them.
    #[serde(skip)]
    pub(super) halves: Option<[Vec<String>; 2]>,
}

/// The fields of `$own`, or of `$shared` where it has none.
macro_rules! overlay {
    ($own:ident, $shared:ident: $($field:ident)*) => {
        Form { $($field: $own.$field.clone().or_else(|| $shared.$field.clone())),* }
    };
}

impl Form {
    /// This form under a heading.
    fn under(&self, heading: &Form) -> Form {
        overlay!(self, heading: encoding mask r#match op_at layout operands image print reads writes branch memory bytes
            counters latency flags wave halves)
    }

    /// The form with a row's values in the columns.
    fn with(mut self, columns: &[String], values: &[&str]) -> Result<Form, Failure> {
        if columns.len() != values.len() {
            return Err(format!("there are {} columns and {} values", columns.len(), values.len()).into());
        }
        for (column, value) in columns.iter().zip(values) {
            match column.as_str() {
                "bytes" => self.bytes = Some(value.parse().map_err(|error| format!("bytes '{value}': {error}"))?),
                "flags" => {
                    self.flags = Some(value.split(' ').filter(|word| *word != NOTHING).map(str::to_owned).collect())
                }
                variable => {
                    for operand in self.operands.iter_mut().flatten() {
                        *operand = substitute(operand, variable, value);
                    }
                }
            }
        }
        match self.operands.iter().flatten().find(|operand| operand.contains('$')) {
            Some(operand) => Err(format!("operand '{operand}' has a variable that is no column").into()),
            None => Ok(self),
        }
    }
}

/// Columns that are not variables of the operands.
const OWN_COLUMNS: [&str; 2] = ["bytes", "flags"];
/// A column without words.
const NOTHING: &str = "-";

/// `text` with the value for every `$variable`.
fn substitute(text: &str, variable: &str, value: &str) -> String {
    let mut parts = text.split('$');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(part.len());
        if part[..end] == *variable {
            out.push_str(value);
            out.push_str(&part[end..]);
        } else {
            out.push('$');
            out.push_str(part);
        }
    }
    out
}

/// A heading, its forms and its rows. Every row has all forms.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    form: Form,
    /// What each form has that the others have not; none: `form` is the only one.
    #[serde(default)]
    forms: Vec<Form>,
    /// What the rows' values after `|` are: `bytes`, `flags`, or a variable of the operands.
    #[serde(default)]
    columns: Vec<String>,
    /// `opcode mnemonic sets | value | value`.
    rows: Vec<String>,
}

impl Group {
    /// Its forms, each with what the heading says.
    fn forms(&self) -> Result<Vec<Form>, Failure> {
        let forms: Vec<Form> = match &self.forms[..] {
            [] => vec![self.form.clone()],
            forms => forms.iter().map(|form| form.under(&self.form)).collect(),
        };
        if self.rows.is_empty() {
            return Err("a heading without rows".into());
        }
        let operands: Vec<&String> = forms.iter().flat_map(|form| form.operands.iter().flatten()).collect();
        let used = |variable: &String| operands.iter().any(|operand| operand.contains(&format!("${variable}")));
        match self.columns.iter().find(|column| !OWN_COLUMNS.contains(&column.as_str()) && !used(column)) {
            Some(column) => {
                Err(format!("column '{column}' is neither one of {OWN_COLUMNS:?} nor in an operand").into())
            }
            None => Ok(forms),
        }
    }
}

/// A row: an operation in one form, for the instruction sets that have it.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) opcode: u16,
    pub(super) mnemonic: String,
    pub(super) name: String,
    /// The fixed bits' values, with the opcode.
    pub(super) matches: u128,
    /// Bits of the instruction sets.
    pub(super) sets: u32,
}

impl Row {
    /// Of `opcode mnemonic[=name] sets`.
    pub(super) fn parse(text: &str, form: &Form, sets: &[&str]) -> Result<Row, Failure> {
        let mut words = text.split(' ');
        let (Some(opcode), Some(mnemonic)) = (words.next(), words.next()) else {
            return Err("expected 'opcode mnemonic sets'".into());
        };
        let opcode: u16 = opcode.parse().map_err(|error| format!("opcode '{opcode}': {error}"))?;
        let (mnemonic, name) = match mnemonic.split_once('=') {
            Some((mnemonic, name)) => (mnemonic, name),
            None => {
                (mnemonic, FORM_ENDINGS.iter().find_map(|ending| mnemonic.strip_suffix(ending)).unwrap_or(mnemonic))
            }
        };
        let mut matches = form.r#match.unwrap_or(0);
        if let Some(place) = &form.op_at {
            matches |= place_bits(place, opcode.into())?;
        }
        if matches & !form.mask.unwrap_or(0) != 0 {
            return Err("the opcode or 'match' has bits that the form does not fix".into());
        }
        Ok(Row { opcode, mnemonic: mnemonic.to_owned(), name: name.to_owned(), matches, sets: members(words, sets)? })
    }
}

/// The instruction bits of a number in a field.
pub(super) fn place_bits(place: &str, number: u128) -> Result<u128, Failure> {
    let mut runs = Vec::new();
    put_bits(&mut runs, place, "op_at")?;
    let bits = runs[1..].chunks_exact(3).map(|run| (number >> run[2] & ((1 << run[1]) - 1)) << run[0]);
    Ok(bits.fold(0, |all, bits| all | bits))
}

/// The bits of the sets in `gfx803..gfx810 gfx900`.
pub(super) fn members<'a>(ranges: impl Iterator<Item = &'a str>, sets: &[&str]) -> Result<u32, Failure> {
    let mut members = 0;
    for range in ranges {
        let (first, last) = range.split_once("..").unwrap_or((range, range));
        let (first, last) = (position(sets, first, "set")?, position(sets, last, "set")?);
        if first > last {
            return Err(format!("'{range}' is the wrong way round").into());
        }
        (first..=last).for_each(|set| members |= 1 << set);
    }
    if members == 0 { Err("no instruction set has it".into()) } else { Ok(members) }
}

/// Rows of one form.
#[derive(Debug)]
pub(super) struct Block {
    /// Where the first of them is, for messages.
    pub(super) at: String,
    pub(super) form: Form,
    pub(super) rows: Vec<Row>,
}

/// All rows by form, each once: rows that files have for some sets here and for others there are one.
#[derive(Default)]
pub(super) struct Blocks {
    blocks: Vec<Block>,
    by_form: HashMap<String, usize>,
    /// The sets that have a row with these bits, by encoding, mask, value and wave size.
    taken: HashMap<(Option<String>, u128, u128, u8), u32>,
    /// Encodings in the order in which they come.
    encodings: Vec<String>,
}

impl Blocks {
    /// The number of the rows of this form; a place of a file is asked for if they are the first.
    pub(super) fn block(&mut self, form: &Form, at: impl FnOnce() -> String) -> Result<usize, Failure> {
        let encoding = form.encoding.as_ref().ok_or("the form has no encoding")?;
        if !self.encodings.contains(encoding) {
            self.encodings.push(encoding.clone());
        }
        let count = self.blocks.len();
        let block = *self.by_form.entry(format!("{form:?}")).or_insert(count);
        if block == count {
            self.blocks.push(Block { at: at(), form: form.clone(), rows: Vec::new() });
        }
        Ok(block)
    }

    /// Adds a row to those of its form.
    pub(super) fn add(&mut self, block: usize, row: Row, sets: &[&str]) -> Result<(), Failure> {
        let Block { form, rows, .. } = &mut self.blocks[block];
        let bits = (form.encoding.clone(), form.mask.unwrap_or(0), row.matches, form.wave.unwrap_or(0));
        let taken = self.taken.entry(bits).or_default();
        if *taken & row.sets != 0 {
            let set = sets[(*taken & row.sets).trailing_zeros() as usize];
            return Err(format!("{set} has another row with the same fixed bits").into());
        }
        *taken |= row.sets;
        let same =
            |known: &&mut Row| known.opcode == row.opcode && known.mnemonic == row.mnemonic && known.name == row.name;
        match rows.iter_mut().find(same) {
            Some(known) => known.sets |= row.sets,
            None => rows.push(row),
        }
        Ok(())
    }

    /// Adds the rows of a file.
    pub(super) fn read(&mut self, file: &Path, sets: &[&str]) -> Result<(), Failure> {
        let text = std::fs::read_to_string(file)?;
        let groups: Vec<Group> = serde_yaml::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        let lines = Lines::of(&text);
        for (place, group) in groups.iter().enumerate() {
            let heading = || format!("{}:{}", file.display(), lines.heading(place));
            let forms = group.forms().map_err(|error| format!("{}: {error}", heading()))?;
            // Forms with the same values in the columns are the same.
            let mut blocks: HashMap<(usize, Vec<&str>), usize> = HashMap::new();
            for (number, text) in group.rows.iter().enumerate() {
                let at = || format!("{}:{}", file.display(), lines.row(place, number));
                let mut cells = text.split(" | ");
                let row = cells.next().unwrap_or_default();
                let values: Vec<&str> = cells.collect();
                let mut add = |number: usize, form: &Form| -> Result<(), Failure> {
                    let block = match blocks.get(&(number, values.clone())) {
                        Some(block) => *block,
                        None => self.block(&form.clone().with(&group.columns, &values)?, at)?,
                    };
                    blocks.insert((number, values.clone()), block);
                    let row = Row::parse(row, &self.blocks[block].form, sets)?;
                    self.add(block, row, sets)
                };
                for (number, form) in forms.iter().enumerate() {
                    add(number, form).map_err(|error| format!("{}: '{text}': {error}", at()))?;
                }
            }
        }
        Ok(())
    }

    /// The blocks in the order of the table: by encoding, then by generation and opcode.
    pub(super) fn ordered(mut self) -> Vec<Block> {
        for block in &mut self.blocks {
            block.rows.sort_by(|a, b| {
                (a.opcode, &a.mnemonic, a.sets.trailing_zeros()).cmp(&(b.opcode, &b.mnemonic, b.sets.trailing_zeros()))
            });
        }
        let encodings = self.encodings;
        self.blocks.sort_by_cached_key(|Block { form, rows, .. }| {
            let encoding = encodings.iter().position(|known| Some(known) == form.encoding.as_ref());
            let first_set = rows.iter().map(|row| row.sets.trailing_zeros()).min();
            let first_row = rows.iter().map(|row| (row.opcode, row.mnemonic.clone())).min();
            (encoding, first_set, first_row, form.r#match, form.mask)
        });
        self.blocks
    }
}

/// Where the groups of a file and their rows are, for messages: line numbers of headings, and of the rows under each.
pub(super) struct Lines(Vec<(usize, Vec<usize>)>);

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            if line.starts_with("- ") {
                groups.push((number, Vec::new()));
            } else if let Some(row) = line.trim_start().strip_prefix("- ")
                && row.trim_start_matches('\'').starts_with(|c: char| c.is_ascii_digit())
                && let Some((_, rows)) = groups.last_mut()
            {
                rows.push(number);
            }
        }
        Lines(groups)
    }

    pub(super) fn heading(&self, group: usize) -> usize {
        self.0.get(group).map_or(1, |(heading, _)| *heading)
    }

    /// The line of a row; that of the heading if the file is laid out in another way.
    pub(super) fn row(&self, group: usize, row: usize) -> usize {
        self.0.get(group).and_then(|(_, rows)| rows.get(row).copied()).unwrap_or_else(|| self.heading(group))
    }
}
