//! What an instruction reads and writes, as units of register files.

use wavetap_code::Location;

use super::decode::{FlagBits, Inst};
use super::message::Extent;
use super::opcode::{Accumulator, Format, MUL, SEL};
use super::operand::{File, GRF_BYTES, GRF_COUNT, Operand};

/// Which part of an instruction an access belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// The result.
    Result,
    /// The accumulator that it writes without naming it.
    ImpliedResult,
    /// The flag of a conditional modifier.
    Condition,
    /// A source.
    Source(u8),
    /// The accumulator that it reads without naming it, or the flag by which it selects.
    ImpliedSource,
    /// The flag of a predicate.
    Predicate,
    /// The extended descriptor of a message.
    Descriptor,
}

impl Slot {
    /// Whether it is written; else it is read.
    #[must_use]
    pub fn is_written(self) -> bool {
        matches!(self, Slot::Result | Slot::ImpliedResult | Slot::Condition)
    }
}

/// Units that an instruction reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegisterAccess {
    /// For what.
    pub slot: Slot,
    /// The units.
    pub location: Location,
    /// Of a write: whether old contents may stay there, for another reason than the predicate.
    pub partial: bool,
}

/// An integer product of 32 bits has 8 bytes in an accumulator.
const PRODUCT_BYTES: u32 = 8;

impl Inst {
    /// What it reads and writes, in the order of [`Slot`].
    #[must_use]
    pub fn accesses(&self) -> Vec<RegisterAccess> {
        let mut all = Vec::new();
        let extents = self.message.map(|message| message.extents(self.lanes));
        self.operand(&mut all, Slot::Result, &self.result, extents.map(|all| all.result));
        for (number, source) in (0..).zip(&self.sources) {
            let extent = extents.map(|all| if number == 0 { all.first } else { all.second });
            self.operand(&mut all, Slot::Source(number), source, extent);
        }
        self.implied(&mut all);
        if let Some(condition) = self.condition.filter(|condition| condition.writes) {
            let partial = self.opcode.condition == super::opcode::Condition::SelectsAndWrites;
            all.push(RegisterAccess { slot: Slot::Condition, location: flags(condition.bits), partial });
        }
        if let Some(predicate) = self.predicate {
            let slot = if self.opcode.code == SEL { Slot::ImpliedSource } else { Slot::Predicate };
            all.push(RegisterAccess { slot, location: flags(predicate.bits), partial: false });
        }
        if let Some(first) = self.message.and_then(|message| message.extended_in) {
            let location = Location { file: File::Address as u8, first, units: 4 };
            all.push(RegisterAccess { slot: Slot::Descriptor, location, partial: false });
        }
        all.sort_unstable();
        all
    }

    fn operand(&self, all: &mut Vec<RegisterAccess>, slot: Slot, operand: &Operand, extent: Option<Extent>) {
        let is_result = slot == Slot::Result;
        let is_indirect = matches!(operand, Operand::Indirect { .. });
        let mut push = |slot, location, partial| all.push(RegisterAccess { slot, location, partial });
        if let (Operand::Block { register, .. }, Some(extent)) = (operand, extent) {
            for (first, end) in extent.units() {
                let first = register.number * GRF_BYTES + first;
                let units = end - (first - register.number * GRF_BYTES);
                if units > 0 {
                    push(slot, Location { file: File::General as u8, first, units }, false);
                }
            }
            return;
        }
        if is_result && is_indirect {
            // Any register may be the one that is addressed.
            let everything = Location { file: File::General as u8, first: 0, units: GRF_COUNT * GRF_BYTES };
            push(Slot::Result, everything, true);
        }
        let slot = if is_result && is_indirect { Slot::Descriptor } else { slot };
        let is_branch = matches!(self.opcode.format, Format::Jump | Format::Call | Format::Return);
        let lanes = if is_branch { 1 } else { self.lanes };
        let is_product = is_result && self.opcode.code == MUL && operand.ty().is_some_and(|ty| ty.is_dword_integer());
        let is_accumulator =
            matches!(operand, Operand::Register { register, .. } if register.file() == File::Accumulator);
        let element = (is_product && is_accumulator).then_some(PRODUCT_BYTES);
        if let Some((file, units)) = operand.units(lanes, element) {
            for (first, end) in units {
                push(slot, Location { file: file as u8, first, units: end - first }, false);
            }
        }
        if let Some(location) = operand.extension(self.lanes) {
            let slot = if is_result { Slot::ImpliedResult } else { Slot::ImpliedSource };
            push(slot, location, false);
        }
    }

    fn implied(&self, all: &mut Vec<RegisterAccess>) {
        let bytes = self.result.ty().map_or(4, |ty| ty.bytes);
        let accumulator = |bytes| Location { file: File::Accumulator as u8, first: 0, units: self.lanes * bytes };
        let mut push = |slot, location| all.push(RegisterAccess { slot, location, partial: false });
        match self.opcode.accumulator {
            Accumulator::None => {}
            Accumulator::Reads => push(Slot::ImpliedSource, accumulator(bytes)),
            Accumulator::WritesCarry => push(Slot::ImpliedResult, accumulator(bytes)),
            Accumulator::Borrow => {
                push(Slot::ImpliedSource, accumulator(bytes));
                push(Slot::ImpliedResult, accumulator(bytes));
            }
            Accumulator::Product => {
                push(Slot::ImpliedSource, accumulator(PRODUCT_BYTES));
                push(Slot::ImpliedResult, accumulator(PRODUCT_BYTES));
            }
        }
    }
}

fn flags(bits: FlagBits) -> Location {
    Location { file: File::Flag as u8, first: bits.first, units: bits.count }
}
