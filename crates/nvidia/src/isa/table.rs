//! The types of the compiled tables (`tables/*.txt`), and the tables.

use wavetap_code::{Class, Cycles};

use super::Word;

/// A register file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum File {
    /// `R`: a register of 32 bits for each lane.
    General,
    /// `P`: a bit for each lane.
    Predicate,
    /// `UR`: a register of 32 bits for the warp.
    Uniform,
    /// `UP`: a bit for the warp.
    UniformPredicate,
}

impl File {
    /// What the vendor's disassembler writes before the number.
    #[must_use]
    pub const fn prefix(self) -> &'static str {
        match self {
            File::General => "R",
            File::Predicate => "P",
            File::Uniform => "UR",
            File::UniformPredicate => "UP",
        }
    }

    /// Whether it holds bits.
    #[must_use]
    pub const fn is_predicate(self) -> bool {
        matches!(self, File::Predicate | File::UniformPredicate)
    }
}

/// What an instruction does with an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Use {
    /// It writes it.
    Result,
    /// It reads it.
    Source,
    /// It reads it as part of an address.
    Address,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    /// A field that begins at this bit.
    Field(File, u8),
    /// Predicates, a bit each, from this bit on.
    Mask(u8),
    Immediate,
    Constant,
    /// A form whose roles are not known.
    Refused,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Width {
    Fixed(u8),
    Table(u8),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Operand {
    pub usage: Use,
    pub place: Place,
    pub width: Width,
    /// Only if each of these bits has its value.
    pub when: &'static [(u8, bool)],
}

impl Operand {
    /// Whether the form that these bits choose has it.
    pub(crate) fn applies(&self, word: Word) -> bool {
        self.when.iter().all(|(bit, value)| word.bit(*bit) == *value)
    }
}

/// What an instruction does to the control flow, or that it is a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// The next instruction follows.
    Plain,
    /// It branches to a relative target.
    Branch,
    /// It branches to one of a table of targets.
    Indirect,
    /// It calls a function.
    Call,
    /// It returns to a caller.
    Return,
    /// It ends the warp's threads.
    Exit,
    /// It waits for a scoreboard (`DEPBAR`).
    Wait,
    /// Its roles are not in the tables.
    Refused,
}

#[derive(Debug)]
pub(crate) struct Kind {
    pub class: Class,
    pub unit: Option<u8>,
    pub guard: File,
    pub action: Action,
    pub crosses_lanes: bool,
    pub latency: Cycles,
}

#[derive(Debug)]
pub(crate) struct WidthTable {
    pub bits: &'static [u8],
    pub counts: &'static [(u8, u8)],
}

impl WidthTable {
    pub(crate) fn count(&self, word: Word) -> Option<u8> {
        let value = word.gather(self.bits);
        self.counts.iter().find(|(known, _)| *known == value).map(|(_, count)| *count)
    }
}

#[derive(Debug)]
pub(crate) struct Modifier {
    pub names: &'static [&'static str],
    pub bits: &'static [u8],
    pub texts: &'static [(u8, &'static str)],
}

#[derive(Debug)]
pub(crate) struct Row {
    pub opcode: u16,
    /// The first and the last model that has it.
    pub least: u16,
    pub most: u16,
    pub name: &'static str,
    pub kind: u8,
    pub operands: &'static [Operand],
}

impl Row {
    pub(crate) fn kind(&self) -> &'static Kind {
        &KINDS[usize::from(self.kind)]
    }
}

include!(concat!(env!("OUT_DIR"), "/tables.rs"));

/// For each opcode the index of its first row plus one; 0 if it has none.
static INDEX: [u16; 4096] = {
    let mut index = [0; 4096];
    let mut row = ROWS.len();
    while row > 0 {
        row -= 1;
        index[ROWS[row].opcode as usize] = row as u16 + 1;
    }
    index
};

/// The row of an opcode for a model.
pub(crate) fn row(opcode: u16, model: u16) -> Option<&'static Row> {
    let first = usize::from(*INDEX.get(usize::from(opcode))?).checked_sub(1)?;
    let rows = ROWS[first..].iter().take_while(|row| row.opcode == opcode);
    rows.into_iter().find(|row| (row.least..=row.most).contains(&model))
}
