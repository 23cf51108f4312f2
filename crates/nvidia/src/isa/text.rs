//! The text of instructions: guard, name with its main modifiers, registers, address. It need not be what the vendor's
//! disassembler prints.

use std::fmt;

use wavetap_code::Class;

use super::table::{Action, MODIFIERS, Operand, Place, Use};
use super::{File, Inst, Register};

/// The offset of an address: first bit and number of bits, signed.
const OFFSET: (u8, u8) = (40, 24);
/// Of a constant bank: the offset in words of an operand, in bytes of a load, and the number of the bank.
const CONSTANT_OFFSET: (u8, u8) = (40, 14);
const LOADED_OFFSET: (u8, u8) = (38, 16);
/// `LDCU` has a bit more below.
const UNIFORM_LOADED_OFFSET: (u8, u8) = (37, 17);
const BANK: (u8, u8) = (54, 5);

impl Inst {
    fn has_address(&self) -> bool {
        self.row.operands.iter().any(|operand| operand.usage == Use::Address)
    }

    fn modifiers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for modifier in MODIFIERS.iter().filter(|modifier| modifier.names.contains(&self.row.name)) {
            let value = self.word.gather(modifier.bits);
            if let Some((_, text)) = modifier.texts.iter().find(|(known, _)| *known == value) {
                f.write_str(text)?;
            }
        }
        Ok(())
    }

    /// The register of a field as text, with the names of those that are constant.
    fn register(&self, file: File, bit: u8, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bits, none, name) = match file {
            File::General => (8, 255, "RZ"),
            File::Uniform if self.model.number() >= 100 => (8, 255, "URZ"),
            File::Uniform => (6, 63, "URZ"),
            File::Predicate => (3, 7, "PT"),
            File::UniformPredicate => (3, 7, "UPT"),
        };
        match self.word.field(bit, bits) {
            number if number == none => f.write_str(name),
            number => write!(f, "{}{number}", file.prefix()),
        }
    }

    fn operand(&self, operand: &Operand, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match operand.place {
            Place::Field(file, bit) => self.register(file, bit, f),
            Place::Mask(bit) => write!(f, "PR:{:#x}", self.word.field(bit, 7)),
            Place::Immediate => write!(f, "{:#x}", self.word.field(32, 32)),
            Place::Refused => Ok(()),
            Place::Constant => {
                let words = self.word.field(CONSTANT_OFFSET.0, CONSTANT_OFFSET.1);
                write!(f, "c[{:#x}][{:#x}]", self.word.field(BANK.0, BANK.1), words * 4)
            }
        }
    }

    /// Whether an operand is left out: a predicate result that is not used, and what has a condition that does not
    /// hold.
    fn is_silent(&self, operand: &Operand) -> bool {
        let absent = !operand.applies(self.word);
        let unused = match operand.place {
            Place::Field(file, bit) => file.is_predicate() && self.word.field(bit, 3) == 7 && !self.is_negated(bit),
            _ => false,
        };
        absent || unused
    }

    /// Whether a predicate that is read is negated: the bit after its number.
    fn is_negated(&self, bit: u8) -> bool {
        matches!(bit, 68 | 77 | 87) && self.word.bit(bit + 3)
    }
}

impl fmt::Display for Inst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((Register { file, first, .. }, negated)) = self.guard {
            write!(f, "@{}{}{first} ", if negated { "!" } else { "" }, file.prefix())?;
        }
        f.write_str(self.row.name)?;
        self.modifiers(f)?;
        let mut separator = " ";
        let mut address = self.has_address();
        for operand in self.row.operands {
            if operand.usage == Use::Address {
                if std::mem::take(&mut address) {
                    write!(f, "{separator}")?;
                    if self.class() == Class::Constant {
                        write!(f, "c[{:#x}]", self.word.field(BANK.0, BANK.1))?;
                    }
                    f.write_str("[")?;
                    separator = ", ";
                    self.address(f)?;
                    f.write_str("]")?;
                }
                continue;
            }
            if self.is_silent(operand) {
                continue;
            }
            f.write_str(separator)?;
            separator = ", ";
            if let Place::Field(file, bit) = operand.place
                && file.is_predicate()
                && operand.usage == Use::Source
                && self.is_negated(bit)
            {
                f.write_str("!")?;
            }
            self.operand(operand, f)?;
        }
        for (scoreboard, count) in self.depbar() {
            write!(f, "{separator}SB{scoreboard}({count})")?;
            separator = ", ";
        }
        match self.action() {
            Action::Branch => write!(f, "{separator}{:#x}", self.target()),
            Action::Call if self.row.name == "CALL.REL" => write!(f, "{separator}{:#x}", self.target()),
            _ => Ok(()),
        }
    }
}

impl Inst {
    fn address(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for operand in self.row.operands.iter().filter(|operand| operand.usage == Use::Address) {
            let Place::Field(file, bit) = operand.place else { continue };
            let there = self.operands.iter().find(|register| {
                register.usage == Use::Address
                    && register.file == file
                    && u64::from(register.first) == self.word.field(bit, if file == File::Uniform { 6 } else { 8 })
            });
            if let Some(register) = there {
                write!(f, "{separator}{register}")?;
                separator = " + ";
            }
        }
        if self.class() == Class::Constant {
            let (first, count) = if self.row.name == "LDCU" { UNIFORM_LOADED_OFFSET } else { LOADED_OFFSET };
            return match self.word.field(first, count) {
                0 if !separator.is_empty() => Ok(()),
                offset => write!(f, "{separator}{offset:#x}"),
            };
        }
        match self.word.signed(OFFSET.0, OFFSET.1) {
            0 if separator.is_empty() => f.write_str("0x0"),
            0 => Ok(()),
            offset if offset < 0 => write!(f, "{}-{:#x}", if separator.is_empty() { "" } else { " " }, -offset),
            offset => write!(f, "{separator}{offset:#x}"),
        }
    }
}
