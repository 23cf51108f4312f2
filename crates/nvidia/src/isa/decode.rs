//! From bits to operands with roles.

use std::fmt;

use smallvec::SmallVec;
use wavetap_code::{Class, Cycles};

use super::control::Control;
use super::table::{Action, File, Place, Row, Use, WIDTHS, Width, row};
use super::{INST_BYTES, Word};
use wavetap_base::error::{Error, Result};

/// Models whose instructions are decoded.
const MODELS: [u16; 13] = [75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121];
/// From this model on uniform registers have numbers of 8 bits.
const WIDE_UNIFORM: u16 = 100;
/// From this model on offsets of branches have eight bits more.
const WIDE_OFFSETS: u16 = 90;
/// The form (bits 9 to 11) of operands in the instruction.
const IMMEDIATE: u64 = 4;
/// The number of `RZ`.
const GENERAL_ZERO: u64 = 255;
/// The number of `PT` and `UPT`.
const PREDICATE_TRUE: u64 = 7;

/// A model of GPU: the number of `sm_80`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Model(u16);

impl Model {
    /// The model of this number.
    ///
    /// # Errors
    /// Unsupported if it is not decoded: before Turing, or later than Blackwell.
    pub fn new(number: u16) -> Result<Model> {
        match number {
            known if MODELS.contains(&known) => Ok(Model(number)),
            ..70 => Err(Error::unsupported(format!(
                "sm_{number}: code of GPUs before Volta has control words of its own, which are not decoded"
            ))),
            _ => Err(Error::unsupported(format!("sm_{number} is not decoded: sm_75 to sm_121 are"))),
        }
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Bits of the number of a uniform register. The highest number is `URZ`.
    const fn uniform_bits(self) -> u8 {
        if self.0 >= WIDE_UNIFORM { 8 } else { 6 }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.0)
    }
}

/// Registers that an instruction reads or writes. Those that are constant (`RZ`, `PT`, `URZ`, `UPT`) are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Register {
    /// The file.
    pub file: File,
    /// The first one.
    pub first: u8,
    /// How many.
    pub count: u8,
    /// What for.
    pub usage: Use,
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.file.prefix(), self.first)?;
        if self.count > 1 { write!(f, ":{}", u16::from(self.first) + u16::from(self.count) - 1) } else { Ok(()) }
    }
}

/// A decoded instruction.
#[derive(Debug, Clone)]
pub struct Inst {
    pub(super) row: &'static Row,
    pub(super) word: Word,
    pub(super) model: Model,
    /// Its address in its section.
    pub address: u64,
    /// The predicate under which it works, and whether it is negated.
    pub guard: Option<(Register, bool)>,
    /// What it reads and writes, without the guard, results first.
    pub operands: SmallVec<[Register; 6]>,
}

impl Inst {
    /// Its name without modifiers.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.row.name
    }

    /// Its bits.
    #[must_use]
    pub fn word(&self) -> Word {
        self.word
    }

    /// Its control bits.
    #[must_use]
    pub fn control(&self) -> Control {
        Control::of(self.word)
    }

    /// What kind of work it is.
    #[must_use]
    pub fn class(&self) -> Class {
        self.row.kind().class
    }

    /// Whether it reads values of other lanes than those it works for.
    #[must_use]
    pub fn crosses_lanes(&self) -> bool {
        self.row.kind().crosses_lanes
    }

    /// Whether its guard is `@!PT`, so that it does nothing but wait.
    #[must_use]
    pub fn is_never_executed(&self) -> bool {
        self.word.field(12, 3) == PREDICATE_TRUE && self.word.bit(15)
    }

    /// What it does to the control flow.
    #[must_use]
    pub fn action(&self) -> Action {
        self.row.kind().action
    }

    /// The unit that works on it in order.
    #[must_use]
    pub fn unit(&self) -> Option<u8> {
        self.row.kind().unit
    }

    /// From issue to result.
    #[must_use]
    pub fn latency(&self) -> Cycles {
        self.row.kind().latency
    }

    /// What it reads, its guard among it.
    pub fn reads(&self) -> impl Iterator<Item = Register> {
        let guard = self.guard.map(|(register, _)| register);
        guard.into_iter().chain(self.operands.iter().copied().filter(|operand| operand.usage != Use::Result))
    }

    /// What it writes.
    pub fn writes(&self) -> impl Iterator<Item = Register> {
        self.operands.iter().copied().filter(|operand| operand.usage == Use::Result)
    }

    /// Whether it goes on with the next instruction although it branches, ends or returns: a guard, a predicate of its
    /// own, or a branch of some lanes.
    #[must_use]
    pub fn is_conditional(&self) -> bool {
        let never = self.is_never_executed();
        let own = self.reads().any(|register| register.file.is_predicate());
        // BRA.DIV, BRA.CONV, BRA.U: bits 32 and 33; BRA.ANY and others of the warp: bits 84 to 86.
        let of_the_warp =
            self.action() == Action::Branch && (self.word.field(32, 2) != 0 || self.word.field(84, 3) != 0);
        never || own || self.word.bit(90) || of_the_warp
    }

    /// The address that a branch or a relative call names, in the section; for an indirect branch what is added to its
    /// register. 64-bit arithmetic that wraps.
    #[must_use]
    pub fn target(&self) -> u64 {
        let next = self.address.wrapping_add(INST_BYTES);
        // In units of four bytes: bits 34 to 81, since Hopper with bits 16 to 23 below them.
        let high = self.word.signed(34, 48);
        let words = if self.model.0 >= WIDE_OFFSETS { high << 8 | self.word.field(16, 8) as i64 } else { high };
        next.wrapping_add((words as u64).wrapping_mul(4))
    }

    /// The address that a relative call names, if it is not in a register.
    #[must_use]
    pub fn callee(&self) -> Option<u64> {
        let is_relative = self.action() == Action::Call && self.name() == "CALL.REL";
        (is_relative && self.word.field(9, 3) == IMMEDIATE).then(|| self.target())
    }

    /// The scoreboards that `DEPBAR` waits for, each with how many operations may stay in flight.
    #[must_use]
    pub fn depbar(&self) -> SmallVec<[(u8, u8); 2]> {
        let mut waits = SmallVec::new();
        if self.action() == Action::Wait {
            if self.word.bit(47) {
                waits.push((self.word.field(44, 3) as u8, self.word.field(38, 6) as u8));
            }
            let all = self.word.field(32, 6) as u8;
            let fully = (0..super::SCOREBOARDS).filter(|number| all >> number & 1 == 1);
            waits.extend(fully.map(|number| (number, 0)));
        }
        waits
    }
}

/// Decodes the instruction at `address` of a section.
///
/// # Errors
/// Unsupported, with the address as offset, if the opcode, its form or a width is not in the tables.
pub fn decode(model: Model, word: Word, address: u64) -> Result<Inst> {
    let (lower, upper) = word.halves();
    let refuse = |what: &str| Error::unsupported(format!("{what}: {lower:#018x} {upper:#018x} of {model}")).at(address);
    let opcode = word.opcode();
    let row = row(opcode, model.number())
        .ok_or_else(|| refuse(&format!("an instruction that is not known, opcode {opcode:#05x}")))?;
    let kind = row.kind();
    if kind.action == Action::Refused {
        return Err(refuse(&format!("what {} reads and writes is not known", row.name)));
    }
    let mut inst = Inst { row, word, model, address, guard: None, operands: SmallVec::new() };
    let number = word.field(12, 3);
    if number != PREDICATE_TRUE {
        let register = Register { file: kind.guard, first: number as u8, count: 1, usage: Use::Source };
        inst.guard = Some((register, word.bit(15)));
    }
    for operand in row.operands {
        if !operand.applies(word) {
            continue;
        }
        let (file, bit) = match operand.place {
            Place::Field(file, bit) => (file, bit),
            Place::Mask(bit) => {
                let set = (0..7).filter(|number| word.bit(bit + number));
                let usage = operand.usage;
                inst.operands.extend(set.map(|first| Register { file: File::Predicate, first, count: 1, usage }));
                continue;
            }
            Place::Constant if word.bit(91) => {
                return Err(refuse(&format!("{} with a constant bank in a uniform register", row.name)));
            }
            Place::Refused => return Err(refuse(&format!("a form of {} that is not known", row.name))),
            Place::Immediate | Place::Constant => continue,
        };
        let (bits, none) = match file {
            File::General => (8, GENERAL_ZERO),
            File::Uniform => (model.uniform_bits(), (1 << model.uniform_bits()) - 1),
            File::Predicate | File::UniformPredicate => (3, PREDICATE_TRUE),
        };
        let first = word.field(bit, bits);
        let count = match operand.width {
            Width::Fixed(count) => Some(count),
            Width::Table(table) => WIDTHS[usize::from(table)].count(word),
        };
        let count = count.ok_or_else(|| refuse(&format!("the width of an operand of {} is not known", row.name)))?;
        if first == none {
            continue;
        }
        if first + u64::from(count) > none {
            let text = format!("{}{first} and {count} registers from there", file.prefix());
            return Err(refuse(&format!("{} with {text}", row.name)));
        }
        inst.operands.push(Register { file, first: first as u8, count, usage: operand.usage });
    }
    Ok(inst)
}
