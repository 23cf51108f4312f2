//! From bytes to instructions.

use std::borrow::Cow;
use std::ops::Range;

use wavetap_base::bytes::{slice, u64_at};
use wavetap_base::error::{Error, Result};

use super::compact::{COMPACTED, expand};
use super::message::Message;
use super::opcode::{BFN, Condition, Format, MATH_INVM, Opcode, Sync, math_function};
use super::operand::{Arf, FLAG_BITS, GRF_BYTES, Modifiers, Operand, Region, Register};
use super::swsb::{self, Combined, Swsb};
use super::types::Type;
use super::word::Word;

/// Bytes of an instruction that is not compacted, and of one that is.
const FULL: u64 = 16;
const COMPACT: u64 = 8;

/// How a predicate is made of a flag's bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PredicateMode {
    /// Each lane has its bit.
    PerLane,
    /// Any bit is set.
    Any,
    /// All bits are set.
    All,
}

/// The bits of flags that lanes have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlagBits {
    /// The flag register.
    pub register: u32,
    /// Its half.
    pub half: u32,
    /// The bit of the first lane, counted from the first bit of `f0`.
    pub first: u32,
    /// One for each lane.
    pub count: u32,
}

/// Under which predicate an instruction works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Predicate {
    /// The bits.
    pub bits: FlagBits,
    /// How they are used.
    pub mode: PredicateMode,
    /// Whether it works where they are not set.
    pub inverted: bool,
}

/// What a conditional modifier does, and with which flag bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConditionModifier {
    /// `eq`, `lt`, …
    pub name: &'static str,
    /// The bits that it writes, if it writes some.
    pub bits: FlagBits,
    /// Whether it writes them.
    pub writes: bool,
}

/// Where a branch goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Branch {
    /// Where the instruction pointer goes if no lane goes on here.
    pub jump: Option<u64>,
    /// Where the lanes go that take it.
    pub update: Option<u64>,
    /// Whether its place is in a register.
    pub is_indirect: bool,
}

/// An instruction.
#[derive(Debug, Clone, PartialEq)]
pub struct Inst {
    /// Its offset in the code.
    pub address: u64,
    /// Bytes: 16, or 8 if it is compacted.
    pub length: u32,
    /// The full word.
    pub word: Word,
    pub(super) opcode: &'static Opcode,
    /// With its function: `math.inv`, `send.ugm`, `sync.nop`.
    pub name: Cow<'static, str>,
    /// Lanes.
    pub lanes: u32,
    /// The first of them.
    pub first_lane: u32,
    /// Whether it works for lanes that are not active, too.
    pub no_mask: bool,
    /// Under which predicate it works.
    pub predicate: Option<Predicate>,
    /// The conditional modifier.
    pub condition: Option<ConditionModifier>,
    /// The result.
    pub result: Operand,
    /// The type of the result, also where there is none.
    pub result_type: Option<Type>,
    /// The sources.
    pub sources: Vec<Operand>,
    /// Where it goes.
    pub branch: Option<Branch>,
    /// The message that it sends.
    pub message: Option<Message>,
    /// What a `sync` does.
    pub sync: Option<Sync>,
    /// Whether the thread ends with it.
    pub ends_thread: bool,
    /// The scoreboard bits.
    pub swsb: Swsb,
}

/// Reads the instructions in a range of the code of a section, whose first byte has address 0. Zeros after the first
/// instruction, up to the end of the range, are padding.
///
/// # Errors
/// Unsupported, with the address, if an opcode, a function, a type or a register is not known, or if a message is in a
/// register; malformed if the code ends within an instruction, or the range is not within the code.
pub fn decode(code: &[u8], range: Range<u64>) -> Result<Vec<Inst>> {
    let what = "code of a function";
    let bytes = slice(code, range.start, range.end.saturating_sub(range.start), what)?;
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
    let end = range.start + used;
    let code = &code[..range.end as usize];
    let mut instructions = Vec::new();
    let mut address = range.start;
    while address < end {
        let inst = decode_one(code, address)?;
        address += u64::from(inst.length);
        instructions.push(inst);
    }
    Ok(instructions)
}

/// Reads the instruction at `address`.
///
/// # Errors
/// As [`decode`].
pub fn decode_one(code: &[u8], address: u64) -> Result<Inst> {
    let first = u64_at(code, address, "instruction")?;
    let code_of = (first & 0x7f) as u8;
    let opcode = Opcode::find(code_of)
        .ok_or_else(|| Error::unsupported(format!("opcode {code_of:#04x}, which is not known")).at(address))?;
    let is_compact = first >> COMPACTED & 1 == 1;
    let (word, length) = if is_compact {
        (expand(first, opcode.layout()), COMPACT)
    } else {
        let bytes = slice(code, address, FULL, "instruction")?;
        let mut all = [0; FULL as usize];
        all.copy_from_slice(bytes);
        (Word(u128::from_le_bytes(all)), FULL)
    };
    let fields = Fields { word, opcode, address };
    fields.inst(length as u32).map_err(|error| {
        let [low, high] = [word.0 as u64, (word.0 >> 64) as u64];
        error.at(address).within(format!("{} {high:016x}`{low:016x}", opcode.name))
    })
}

/// What one is being read from.
struct Fields {
    word: Word,
    opcode: &'static Opcode,
    address: u64,
}

/// Where the fields of a source with its own region are.
struct SourceBits {
    ty: u32,
    indirect: u32,
    general: u32,
    register: u32,
    subregister: u32,
    odd_byte: u32,
    horizontal: u32,
    width: u32,
    vertical: u32,
    absolute: u32,
    negative: u32,
    offset: u32,
}

const SOURCES: [SourceBits; 2] = [
    SourceBits {
        ty: 40,
        indirect: 80,
        general: 66,
        register: 72,
        subregister: 67,
        odd_byte: 87,
        horizontal: 64,
        width: 81,
        vertical: 84,
        absolute: 44,
        negative: 45,
        offset: 67,
    },
    SourceBits {
        ty: 88,
        indirect: 112,
        general: 98,
        register: 104,
        subregister: 99,
        odd_byte: 119,
        horizontal: 96,
        width: 113,
        vertical: 116,
        absolute: 120,
        negative: 121,
        offset: 99,
    },
];

/// Where the fields of a source of three are.
struct TernaryBits {
    ty: u32,
    general: u32,
    register: u32,
    subregister: u32,
    horizontal: u32,
    /// Low and high bit of the vertical stride; the last source has none.
    vertical: Option<(u32, u32)>,
    absolute: u32,
    negative: u32,
    /// Marks an immediate of 16 bits from this bit on.
    immediate: Option<(u32, u32)>,
}

const TERNARY: [TernaryBits; 3] = [
    TernaryBits {
        ty: 40,
        general: 66,
        register: 72,
        subregister: 67,
        horizontal: 64,
        vertical: Some((35, 43)),
        absolute: 44,
        negative: 45,
        immediate: Some((46, 64)),
    },
    TernaryBits {
        ty: 88,
        general: 98,
        register: 104,
        subregister: 99,
        horizontal: 96,
        vertical: Some((83, 91)),
        absolute: 86,
        negative: 87,
        immediate: None,
    },
    TernaryBits {
        ty: 80,
        general: 114,
        register: 120,
        subregister: 115,
        horizontal: 112,
        vertical: None,
        absolute: 84,
        negative: 85,
        immediate: Some((47, 112)),
    },
];

/// Names of conditional modifiers, by code.
fn condition_name(code: u8) -> Option<&'static str> {
    Some(match code {
        1 => "eq",
        2 => "ne",
        3 => "gt",
        4 => "ge",
        5 => "lt",
        6 => "le",
        8 => "ov",
        9 => "un",
        _ => return None,
    })
}

/// Strides of a register's elements, by code.
fn horizontal(code: u8) -> u32 {
    [0, 1, 2, 4][usize::from(code & 3)]
}

/// In the vertical stride: each row, or each element, has an address of its own.
const PER_ROW: u8 = 7;

impl Fields {
    fn inst(&self, length: u32) -> Result<Inst> {
        let (word, opcode) = (self.word, self.opcode);
        let lanes = match word.field(18, 3) {
            code @ 0..=5 => 1 << code,
            code => return Err(Error::unsupported(format!("a number of lanes with code {code}"))),
        };
        let first_lane = u32::from(word.field(24, 2)) * 8;
        let flag_bits = |first_lane: u32, count: u32| {
            let (half, register) = (u32::from(word.field(21, 1)), u32::from(word.field(22, 2)));
            let first = register * FLAG_BITS + half * (FLAG_BITS / 2) + first_lane;
            FlagBits { register, half, first, count }
        };
        let mut inst = Inst {
            address: self.address,
            length,
            word,
            opcode,
            name: Cow::Borrowed(opcode.name),
            lanes,
            first_lane,
            no_mask: word.bit(31),
            predicate: None,
            condition: None,
            result: Operand::Null,
            result_type: None,
            sources: Vec::new(),
            branch: None,
            message: None,
            sync: None,
            ends_thread: false,
            swsb: swsb::decode(
                word.bits(8, 17) as u16,
                match opcode.format {
                    Format::Send => Combined::Send,
                    Format::Dpas => Combined::Dpas,
                    _ => Combined::Other,
                },
            )?,
        };
        let mode = match word.field(26, 2) {
            0 => None,
            1 => Some(PredicateMode::PerLane),
            2 => Some(PredicateMode::Any),
            _ => Some(PredicateMode::All),
        };
        inst.predicate =
            mode.map(|mode| Predicate { bits: flag_bits(first_lane, lanes), mode, inverted: word.bit(28) });
        self.operands(&mut inst)?;
        // Where the high half of an immediate is, there is no condition.
        let is_wide = matches!(inst.sources.first(), Some(Operand::Immediate { ty, .. }) if ty.bytes == 8)
            && opcode.format == Format::Unary;
        let code = match opcode.condition {
            _ if is_wide => 0,
            Condition::Absent => 0,
            _ if opcode.code == BFN => word.field(44, 2),
            _ => word.field(92, 4),
        };
        if code != 0 {
            let name = condition_name(code)
                .ok_or_else(|| Error::unsupported(format!("a condition with code {code}, which is not known")))?;
            let writes = opcode.condition != Condition::Selects;
            inst.condition = Some(ConditionModifier { name, bits: flag_bits(first_lane, lanes), writes });
        }
        if opcode.format == Format::Math && word.field(92, 4) >= MATH_INVM {
            // The macro's first step always tells which lanes are done early.
            inst.condition = Some(ConditionModifier { name: "eo", bits: flag_bits(first_lane, lanes), writes: true });
        }
        Ok(inst)
    }

    fn operands(&self, inst: &mut Inst) -> Result<()> {
        let word = self.word;
        match self.opcode.format {
            Format::Unary => {
                (inst.result, inst.result_type) = self.result()?;
                inst.sources.push(self.source(0, true)?);
            }
            Format::Binary => {
                (inst.result, inst.result_type) = self.result()?;
                inst.sources.extend([self.source(0, false)?, self.source(1, false)?]);
            }
            Format::Math => {
                let code = word.field(92, 4);
                let name = math_function(code)
                    .ok_or_else(|| Error::unsupported(format!("math function {code}, which is not known")))?;
                inst.name = Cow::Owned(format!("math.{name}"));
                (inst.result, inst.result_type) = self.result()?;
                inst.sources.push(self.source(0, false)?);
                if code == MATH_INVM {
                    inst.sources.push(self.source(1, false)?);
                }
                if code >= MATH_INVM {
                    self.extend(&mut inst.result, 51)?;
                    for (source, low) in inst.sources.iter_mut().zip([67, 99]) {
                        self.extend(source, low)?;
                    }
                }
            }
            Format::Ternary | Format::TernaryMacro => {
                (inst.result, inst.result_type) = self.ternary_result()?;
                for bits in &TERNARY {
                    inst.sources.push(self.ternary_source(bits)?);
                }
                if self.opcode.code == BFN {
                    let function = word.field(84, 4) | word.field(92, 4) << 4;
                    inst.name = Cow::Owned(format!("bfn.{function:#04x}"));
                }
                if self.opcode.format == Format::TernaryMacro {
                    self.extend(&mut inst.result, 51)?;
                    for (source, low) in inst.sources.iter_mut().zip([67, 99, 115]) {
                        self.extend(source, low)?;
                    }
                }
            }
            Format::Dpas => self.dpas(inst)?,
            Format::Send => self.send(inst)?,
            Format::Sync => {
                let code = word.field(92, 4);
                let (sync, name) = Sync::of(code)
                    .ok_or_else(|| Error::unsupported(format!("sync function {code}, which is not known")))?;
                inst.sync = Some(sync);
                inst.name = Cow::Owned(format!("sync.{name}"));
                if word.bit(46) {
                    let ty = Type::of_immediate(2).ok_or_else(|| Error::internal("ud"))?;
                    inst.sources.push(Operand::Immediate { bits: word.bits(96, 127), ty });
                } else if word.bit(66) || word.field(72, 8) != 0 {
                    return Err(Error::unsupported("a sync with a register"));
                }
            }
            Format::Bare => {}
            Format::BranchBoth | Format::BranchOne | Format::Jump | Format::Call | Format::Return => {
                self.branch(inst)?;
            }
        }
        Ok(())
    }

    fn register(&self, general: u32, register: u32, byte: u32) -> Result<Option<Register>> {
        let number = self.word.field(register, 8);
        if self.word.bit(general) {
            return Ok(Some(Register { arf: None, number: u32::from(number), byte }));
        }
        if number >> 4 == 0 {
            return Ok(None);
        }
        let arf = Arf::of(number >> 4)
            .ok_or_else(|| Error::unsupported(format!("architecture register {number:#04x}, which is not known")))?;
        Ok(Some(Register { arf: Some(arf), number: u32::from(number & 0xf), byte }))
    }

    fn ty(&self, code: u8) -> Result<Type> {
        Type::of_register(code)
            .ok_or_else(|| Error::unsupported(format!("a data type with code {code}, which is not known")))
    }

    fn byte(&self, subregister: u32, odd_byte: u32) -> u32 {
        u32::from(self.word.field(subregister, 5)) * 2 + u32::from(self.word.bit(odd_byte))
    }

    fn result(&self) -> Result<(Operand, Option<Type>)> {
        let word = self.word;
        let ty = self.ty(word.field(36, 4))?;
        let region = Region::linear(horizontal(word.field(48, 2)));
        let modifiers = Modifiers::default();
        if word.bit(35) {
            let offset = signed(word.bits(51, 59) << 1 | u64::from(word.bit(33)));
            let address = word.field(60, 4);
            return Ok((Operand::Indirect { address, offset, region, per_row: false, ty, modifiers }, Some(ty)));
        }
        let register = self.register(50, 56, self.byte(51, 33))?;
        let result = register.map_or(Operand::Null, |register| Operand::Register {
            register,
            region,
            ty,
            modifiers,
            extension: None,
        });
        Ok((result, Some(ty)))
    }

    fn source(&self, index: usize, may_be_wide: bool) -> Result<Operand> {
        let (word, bits) = (self.word, &SOURCES[index]);
        if word.bit([46, 47][index]) {
            let code = word.field(bits.ty, 4);
            let ty = Type::of_immediate(code)
                .ok_or_else(|| Error::unsupported(format!("an immediate of type {code}, which is not known")))?;
            let low = word.bits(96, 127);
            let value = match ty.bytes {
                8 if may_be_wide => word.bits(64, 95) << 32 | low,
                8 => return Err(Error::unsupported("an immediate of 64 bits beside another source")),
                2 => low & 0xffff,
                _ => low,
            };
            return Ok(Operand::Immediate { bits: value, ty });
        }
        let ty = self.ty(word.field(bits.ty, 4))?;
        let modifiers = Modifiers { absolute: word.bit(bits.absolute), negative: word.bit(bits.negative) };
        let (width, vertical) = (word.field(bits.width, 3), word.field(bits.vertical, 3));
        let horizontal = horizontal(word.field(bits.horizontal, 2));
        if width > 4 {
            return Err(Error::unsupported(format!("a region with a width of code {width}")));
        }
        let width = 1 << width;
        let rows = match vertical {
            0 | PER_ROW => 0,
            code => 1 << (code - 1),
        };
        let region = Region { vertical: rows, width, horizontal };
        let per_row = vertical == PER_ROW;
        if word.bit(bits.indirect) {
            let high = word.bits(bits.offset, bits.offset + 8);
            let offset = signed(high << 1 | u64::from(word.bit(bits.odd_byte)));
            let address = word.field(bits.register + 4, 4);
            return Ok(Operand::Indirect { address, offset, region, per_row, ty, modifiers });
        }
        if per_row {
            return Err(Error::unsupported("a region of addresses in a register that is not addressed"));
        }
        let byte = self.byte(bits.subregister, bits.odd_byte);
        Ok(match self.register(bits.general, bits.register, byte)? {
            Some(register) => Operand::Register { register, region, ty, modifiers, extension: None },
            None => Operand::Null,
        })
    }

    /// The highest bit of all types of three-source instructions.
    fn ternary_type(&self, low: u32) -> Result<Type> {
        self.ty(self.word.field(low, 3) | u8::from(self.word.bit(39)) << 3)
    }

    fn ternary_result(&self) -> Result<(Operand, Option<Type>)> {
        let ty = self.ternary_type(36)?;
        let (region, modifiers) = (Region::linear(1 << self.word.field(48, 1)), Modifiers::default());
        let register = self.register(50, 56, self.byte_of_word(51))?;
        let result = register.map_or(Operand::Null, |register| Operand::Register {
            register,
            region,
            ty,
            modifiers,
            extension: None,
        });
        Ok((result, Some(ty)))
    }

    fn byte_of_word(&self, low: u32) -> u32 {
        u32::from(self.word.field(low, 5)) * 2
    }

    fn ternary_source(&self, bits: &TernaryBits) -> Result<Operand> {
        let word = self.word;
        let ty = self.ternary_type(bits.ty)?;
        if let Some((_, low)) = bits.immediate.filter(|(mark, _)| word.bit(*mark)) {
            return Ok(Operand::Immediate { bits: word.bits(low, low + 15), ty });
        }
        let horizontal = horizontal(word.field(bits.horizontal, 2));
        let region = match bits.vertical {
            None => Region::linear(horizontal),
            Some((low, high)) => {
                let code = u8::from(word.bit(low)) | u8::from(word.bit(high)) << 1;
                let vertical = [0, 1, 4, 8][usize::from(code)];
                // The width follows from the strides.
                let width = if horizontal == 0 || vertical == 0 { 1 } else { (vertical / horizontal).max(1) };
                match vertical {
                    0 => Region::linear(horizontal),
                    _ => Region { vertical, width, horizontal },
                }
            }
        };
        // The function of bfn is where modifiers are.
        let modifiers = match self.opcode.code {
            BFN => Modifiers::default(),
            _ => Modifiers { absolute: word.bit(bits.absolute), negative: word.bit(bits.negative) },
        };
        Ok(match self.register(bits.general, bits.register, self.byte_of_word(bits.subregister))? {
            Some(register) => Operand::Register { register, region, ty, modifiers, extension: None },
            None => Operand::Null,
        })
    }

    /// Gives an operand of a macro the accumulator that extends it.
    fn extend(&self, operand: &mut Operand, low: u32) -> Result<()> {
        /// None.
        const NONE: u8 = 8;
        let code = self.word.field(low, 4);
        if code > NONE {
            return Err(Error::unsupported(format!("a macro register with code {code}")));
        }
        if let Operand::Register { extension, register, region, .. } = operand {
            *extension = (code < NONE).then_some(code);
            // The subregister is the number of the extension.
            register.byte = 0;
            *region = Region::linear(1);
        }
        Ok(())
    }

    fn dpas(&self, inst: &mut Inst) -> Result<()> {
        let word = self.word;
        let repeat = u32::from(word.field(43, 3)) + 1;
        let depth = 1 << word.field(48, 2);
        let result = self.ty(word.field(36, 4))?;
        let added = self.ty(word.field(40, 3) | u8::from(word.bit(39)) << 3)?;
        inst.name = Cow::Owned(format!("dpas.{depth}x{repeat}"));
        let block = |general: bool, register: u32, byte: u32, bytes: u32, ty: Option<Type>| {
            let number = u32::from(word.field(register, 8));
            let register = Register { arf: None, number, byte };
            if general { Operand::Block { register, bytes, ty } } else { Operand::Null }
        };
        let lanes = inst.lanes;
        inst.result = block(word.bit(50), 56, self.byte_of_word(51), repeat * lanes * result.bytes, Some(result));
        // Of each lane, `depth` doublewords of one matrix; of the other one row a repetition.
        inst.sources = vec![
            block(word.bit(66), 72, self.byte_of_word(67), repeat * lanes * added.bytes, Some(added)),
            block(true, 104, self.byte_of_word(99), depth * lanes * 4, None),
            block(true, 120, self.byte_of_word(115), repeat * depth * 4, None),
        ];
        Ok(())
    }

    fn send(&self, inst: &mut Inst) -> Result<()> {
        let word = self.word;
        let message = Message::decode(word)?;
        inst.name = Cow::Owned(format!("{}.{}", self.opcode.name, message.name));
        let payload = |general: bool, register: u32, count: u32| {
            let register = Register { arf: None, number: u32::from(word.field(register, 8)), byte: 0 };
            let bytes = count * GRF_BYTES;
            if general && count > 0 { Operand::Block { register, bytes, ty: None } } else { Operand::Null }
        };
        inst.result = payload(word.bit(50), 56, message.result_registers());
        inst.sources =
            vec![payload(word.bit(66), 72, message.first_registers()), payload(word.bit(98), 104, message.second)];
        inst.ends_thread = word.bit(34);
        inst.message = Some(message);
        Ok(())
    }

    fn branch(&self, inst: &mut Inst) -> Result<()> {
        let word = self.word;
        // Offsets are from the instruction itself.
        let at = |low: u32| {
            let offset = i64::from((word.bits(low, low + 31) as u32).cast_signed());
            let target = self.address.checked_add_signed(offset);
            target.ok_or_else(|| Error::malformed(format!("a branch by {offset} bytes, before the code")))
        };
        let mut branch = Branch::default();
        if word.bit(33) && self.opcode.format == Format::BranchBoth {
            inst.name = Cow::Owned(format!("{}.b", self.opcode.name));
        }
        let register = |general, register, byte| -> Result<Operand> {
            let ty = self.ty(2)?;
            let (region, modifiers) = (Region::linear(1), Modifiers::default());
            Ok(match self.register(general, register, byte)? {
                Some(register) => Operand::Register { register, region, ty, modifiers, extension: None },
                None => Operand::Null,
            })
        };
        match self.opcode.format {
            Format::BranchBoth if word.bit(46) && word.bit(47) => {
                branch = Branch { jump: Some(at(96)?), update: Some(at(64)?), is_indirect: false };
            }
            Format::BranchOne if word.bit(46) => branch.jump = Some(at(96)?),
            Format::Jump | Format::Call if word.bit(46) => branch.jump = Some(at(96)?),
            _ => {
                branch.is_indirect = true;
                inst.sources.push(register(66, 72, self.byte(67, 87))?);
            }
        }
        if self.opcode.format == Format::Call {
            inst.result = register(50, 56, self.byte(51, 33))?;
        }
        if self.opcode.name == "calla" {
            branch = Branch { is_indirect: true, ..Branch::default() };
        }
        inst.branch = Some(branch);
        Ok(())
    }
}

/// Ten bits, signed.
fn signed(bits: u64) -> i32 {
    ((bits as u32) << 22).cast_signed() >> 22
}
