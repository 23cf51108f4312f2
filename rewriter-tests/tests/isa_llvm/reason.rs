//! What a reason for a difference from LLVM is.

use wavetap::isa::{self, Accepts, Coding, Inst, OperandSpec, Target, Variant};

/// Why differences of a class are right.
pub struct Reason {
    /// The class.
    pub what: &'static str,
    /// How it is known.
    #[allow(dead_code)] // For people.
    pub evidence: &'static str,
    pub how: How,
}

/// What is different, and how it goes away. A function that answers `None` says that its reason does not hold.
#[derive(Clone, Copy)]
pub enum How {
    /// We refuse the number of this operand.
    WeRefuseOperand(fn(&Field<'_>) -> bool),
    /// We refuse the word; the answer is the word without the cause.
    WeRefuse(fn(&Case<'_>) -> Option<Vec<u8>>),
    /// LLVM refuses the word; the answer is the word without the cause.
    LlvmRefuses(fn(&Case<'_>) -> Option<Vec<u8>>),
    /// A part of the word is not understood in the same way; the answer is the word without that part.
    Either(fn(&Case<'_>) -> Option<Vec<u8>>),
    /// LLVM has no such form: it refuses the word or takes it for something shorter or longer.
    Lacks(fn(&Case<'_>) -> bool),
    /// A part of the text that only one of them has; the answer is a text without it, of each of the two.
    Without(fn(&Case<'_>, &str) -> String),
    /// The texts differ; the answer is LLVM's text with our writing of the part in question.
    Text(fn(&Case<'_>, &str) -> Option<String>),
}

/// Operand codes of a target.
#[derive(Debug, Clone, Copy)]
pub struct Codes {
    /// After the last of `s0…`.
    pub scalar_end: u64,
    /// The first trap register; 123 is the last one.
    pub first_trap: u64,
    /// The null register, which gfx10 brought.
    pub null: Option<u64>,
    /// M0: gfx11 exchanged it with null.
    pub m0: u64,
}

impl Codes {
    /// Told by operations that are as old as the codes.
    pub fn of(target: Target) -> Self {
        let has = |name: &str| isa::variants(target).any(|row| row.name == name);
        let (gfx9, gfx11) = (has("s_call_b64") || has("s_call_i64"), has("s_delay_alu"));
        let gfx10 = gfx11 || has("s_waitcnt_vscnt");
        Codes {
            scalar_end: if gfx10 { 106 } else { 102 },
            first_trap: if gfx9 { 108 } else { 112 },
            null: gfx10.then_some(if gfx11 { 124 } else { 125 }),
            m0: if gfx11 { 125 } else { 124 },
        }
    }
}

/// A word, and what both make of it.
pub struct Case<'a> {
    pub target: Target,
    pub codes: Codes,
    /// The row whose bits it has; of several the one with most fixed bits.
    pub variant: &'static Variant,
    pub bytes: &'a [u8],
    pub inst: Option<Inst>,
    pub ours: Option<(usize, String)>,
    pub theirs: Option<(usize, String)>,
}

/// An operand's field in a word.
pub struct Field<'a> {
    pub target: Target,
    pub codes: Codes,
    pub variant: &'static Variant,
    pub spec: &'a OperandSpec,
    pub number: u64,
}

impl<'a> Case<'a> {
    pub fn new(
        target: Target,
        codes: Codes,
        filled: &'static Variant,
        bytes: &'a [u8],
        theirs: Option<(usize, String)>,
    ) -> Self {
        let inst = isa::decode(target, bytes).ok();
        let ours = inst.as_ref().map(|inst| (usize::from(inst.size), isa::print(target, inst)));
        let word = word(bytes);
        let variant = match &inst {
            Some(inst) => inst.variant,
            None if ours == theirs => filled,
            None => {
                let matching =
                    isa::variants(target).filter(|row| word & row.mask == row.matches && may_be_dpp8(row, word));
                matching.max_by_key(|row| row.mask.count_ones()).unwrap_or(filled)
            }
        };
        Case { target, codes, variant, bytes, inst, ours, theirs }
    }

    /// Whether not both take it for an instruction of the same size.
    pub fn sizes_differ(&self) -> bool {
        self.ours.as_ref().map(|(size, _)| size) != self.theirs.as_ref().map(|(size, _)| size)
    }

    pub fn word(&self) -> u128 {
        word(self.bytes)
    }

    /// The bytes with another word before the literals.
    pub fn with_word(&self, word: u128) -> Vec<u8> {
        let mut bytes = self.bytes.to_vec();
        let fixed = usize::from(self.variant.layout.bytes).min(bytes.len());
        bytes[..fixed].copy_from_slice(&word.to_le_bytes()[..fixed]);
        bytes
    }

    /// The bytes without these bits.
    pub fn without_bits(&self, bits: u128) -> Option<Vec<u8>> {
        (self.word() & bits != 0).then(|| self.with_word(self.word() & !bits))
    }

    pub fn fields(&self) -> impl Iterator<Item = Field<'_>> {
        let (word, target, codes, variant) = (self.word(), self.target, self.codes, self.variant);
        variant.operands.iter().map(move |spec| Field { target, codes, variant, spec, number: spec.bits.get(word) })
    }

    /// The bytes with a number that is always right in the first operand for which `holds`.
    pub fn without_operand(&self, holds: fn(&Field<'_>) -> bool) -> Option<Vec<u8>> {
        let field = self.fields().find(holds)?;
        self.with_operand(field.spec, field.usual())
    }

    /// The bytes with this number in an operand's field, as far as the row lets it.
    pub fn with_operand(&self, spec: &OperandSpec, number: u64) -> Option<Vec<u8>> {
        let (word, mask, variant) = (self.word(), spec.bits.mask(), self.variant);
        Some(self.with_word(word & !mask | spec.bits.put(number)? & !variant.mask | variant.matches & mask))
    }

    /// The bits of a modifier's field.
    pub fn modifier_bits(&self, modifier: isa::Modifier) -> u128 {
        self.variant.layout.modifiers.iter().find(|(known, _)| *known == modifier).map_or(0, |(_, bits)| bits.mask())
    }

    pub fn name_starts(&self, prefix: &str) -> bool {
        self.variant.name.starts_with(prefix)
    }

    pub fn is_dpp(&self) -> bool {
        self.variant.mnemonic.ends_with("_dpp")
    }
}

/// Whether a word can be of a DPP8 row: its source code is 233 or 234.
fn may_be_dpp8(row: &Variant, word: u128) -> bool {
    let fi = row.layout.modifiers.iter().find(|(modifier, _)| *modifier == isa::Modifier::Dpp8Fi);
    fi.is_none_or(|(_, bits)| matches!(bits.get(word), 1 | 2))
}

/// The first 16 bytes as a number.
fn word(bytes: &[u8]) -> u128 {
    let mut all = [0; 16];
    let count = bytes.len().min(16);
    all[..count].copy_from_slice(&bytes[..count]);
    u128::from_le_bytes(all)
}

impl Field<'_> {
    pub fn takes(&self, what: Accepts) -> bool {
        self.spec.kind.accepts.intersects(what)
    }

    pub fn is_source(&self) -> bool {
        use Coding::{Sdwa, SdwaSdst, Source, SourceAcc, SourceAccum, SrcHalf, SrcLow128};
        matches!(self.spec.kind.coding, Source | SourceAcc | SourceAccum | SrcLow128 | SrcHalf | Sdwa | SdwaSdst)
    }

    /// The operand code, if the field has one that is no vector register's.
    pub fn code(&self) -> Option<u64> {
        let number = match self.spec.kind.coding {
            Coding::Sdwa => (self.number >> 8 & 1 != 0).then_some(self.number & 0xff),
            Coding::SdwaSdst => (self.number >> 7 & 1 != 0).then_some(self.number & 0x7f),
            Coding::SourceAcc => Some(self.number & 0x1ff),
            _ if self.is_source() => Some(self.number),
            _ => None,
        };
        number.filter(|code| *code < 256)
    }

    /// The vector register, if the field has one.
    pub fn vector(&self) -> Option<u64> {
        match self.spec.kind.coding {
            Coding::Vector | Coding::Accum | Coding::VectorAcc | Coding::VectorOtherParity => Some(self.number & 0xff),
            Coding::Source | Coding::SourceAcc | Coding::SourceAccum if self.number & 0x100 != 0 => {
                Some(self.number & 0xff)
            }
            Coding::Sdwa if self.number & 0x100 == 0 => Some(self.number),
            _ => None,
        }
    }

    /// Registers that it takes.
    pub fn dwords(&self) -> u64 {
        if self.spec.kind.mask { u64::from(self.target.wave_size() / 32) } else { u64::from(self.spec.kind.dwords) }
    }

    /// The place of a scalar or trap register among its like.
    pub fn scalar_index(&self) -> Option<u64> {
        let code = self.code()?;
        let trap = (self.codes.first_trap..124).contains(&code).then(|| code - self.codes.first_trap);
        trap.or_else(|| (code < self.codes.scalar_end).then_some(code))
    }

    /// Of how many numbers the first must be a multiple, where it is scalar registers.
    pub fn scalar_alignment(&self) -> u64 {
        self.dwords().next_power_of_two().min(4)
    }

    /// A number that every operand of the kind may have.
    pub fn usual(&self) -> u64 {
        match self.spec.kind.coding {
            Coding::Sdwa => 0,
            _ if !self.is_source() => 0,
            _ if self.takes(Accepts::VECTOR | Accepts::ACCUM) => 256,
            _ if self.takes(Accepts::SCALAR) => 0,
            _ if self.takes(Accepts::M0) => self.codes.m0,
            _ if self.takes(Accepts::INLINE) => 128,
            _ => 0,
        }
    }
}
