//! Where the fields of an encoding are, and what the number in a field means.

use super::inst::{Modifiers, Reg};
use super::vocabulary::{Accepts, Coding, Form, Modifier, ValueType};

/// Most runs of bits that one field is split into.
pub(crate) const MAX_RUNS: usize = 4;

/// A run of instruction bits that holds a part of a field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Run {
    /// The lowest instruction bit.
    pub low: u8,
    /// How many bits.
    pub length: u8,
    /// The value bit that the lowest one holds.
    pub shift: u8,
}

/// Where a field is: up to four runs of bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bits {
    runs: [Run; MAX_RUNS],
    count: u8,
    /// Where the field is one run in the first two dwords whose lowest bit is that of the value, which most are: that
    /// bit, and as many ones as it has bits. Else no ones.
    low: u8,
    ones: u32,
}

impl Bits {
    /// Of these runs, at most [`MAX_RUNS`], most significant first.
    pub(crate) fn new(parts: &[Run]) -> Self {
        let mut runs = [Run::default(); MAX_RUNS];
        runs[..parts.len()].copy_from_slice(parts);
        let (low, ones) = match *parts {
            [Run { low, length, shift: 0 }] if low + length <= 64 && length <= 32 => (low, ones(length) as u32),
            _ => (0, 0),
        };
        Bits { runs, count: parts.len() as u8, low, ones }
    }

    /// The runs of bits, most significant first.
    #[must_use]
    pub fn runs(&self) -> &[Run] {
        &self.runs[..usize::from(self.count)]
    }

    /// The value in `word`.
    #[must_use]
    #[inline]
    pub fn get(&self, word: u128) -> u64 {
        if self.ones != 0 { word as u64 >> self.low & u64::from(self.ones) } else { self.join(word) }
    }

    /// The value in `word` where the field is one run of at most 16 bits in the first two dwords.
    #[inline(always)]
    pub(crate) fn get_single(&self, word: u128) -> Option<u16> {
        (self.ones as u16 != 0 && self.ones >> 16 == 0).then_some((word as u64 >> self.low) as u16 & self.ones as u16)
    }

    fn join(&self, word: u128) -> u64 {
        let part = |run: &Run| ((word >> run.low) as u64 & ones(run.length)) << run.shift;
        self.runs().iter().fold(0, |value, run| value | part(run))
    }

    /// The instruction bits that hold `value`, or `None` if it has bits for which there is no place.
    #[must_use]
    pub fn put(&self, value: u64) -> Option<u128> {
        let (mut word, mut placed) = (0, 0);
        for run in self.runs() {
            let ones = ones(run.length);
            word |= u128::from(value >> run.shift & ones) << run.low;
            placed |= ones << run.shift;
        }
        (value & !placed == 0).then_some(word)
    }

    /// The instruction bits of the field.
    #[must_use]
    pub fn mask(&self) -> u128 {
        self.runs().iter().fold(0, |mask, run| mask | u128::from(ones(run.length)) << run.low)
    }

    /// How many value bits the field has, gaps at the bottom included.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.runs().iter().map(|run| u32::from(run.shift + run.length)).max().unwrap_or(0)
    }
}

/// So many ones, 1 to 64.
fn ones(count: u8) -> u64 {
    u64::MAX >> (64 - count)
}

/// What the number in an operand's field means.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// How the number in the field encodes the operand.
    pub coding: Coding,
    /// The operands that the field accepts.
    pub accepts: Accepts,
    /// Its number of 32-bit registers.
    pub dwords: u8,
    /// Registers that are printed: image addresses are longer than the encoding tells.
    pub shown: u8,
    /// The type of its value.
    pub ty: ValueType,
    /// Vector registers must start at an even one, on targets where tuples must.
    pub even: bool,
    /// Sign modifiers are written around it (`-|v0|`).
    pub signs: bool,
    /// A lane mask: as wide as the wave, `dwords` being the most.
    pub mask: bool,
    /// How an immediate is printed.
    pub form: Form,
}

/// Most registers are named in the plainest way; this says of an operand which they are, so that decoding them is a few
/// comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plain {
    /// The number in the field of vector register 0.
    first_vector: u16,
    /// As many numbers from there on name vector registers.
    vectors: u16,
    /// The bits that must be 0 in the number of a vector register.
    unaligned_vector: u8,
    /// As many numbers from 0 on name scalar registers.
    scalars: u8,
    /// The bits that must be 0 in the number of a scalar register.
    unaligned_scalar: u8,
}

impl Plain {
    /// Vector registers of a file.
    const VECTORS: u16 = 256;
    /// Scalar registers that every target has.
    const SCALARS: u8 = 96;

    /// Of an operand of this kind.
    pub(crate) fn of(kind: &Kind) -> Plain {
        let source = kind.coding == Coding::Source;
        let vector = kind.accepts.contains(Accepts::VECTOR) && (source || kind.coding == Coding::Vector) && !kind.mask;
        let scalar = kind.accepts.contains(Accepts::SCALAR) && source && !kind.mask;
        Plain {
            first_vector: if source { Self::VECTORS } else { 0 },
            vectors: if vector { Self::VECTORS + 1 - u16::from(kind.dwords) } else { 0 },
            unaligned_vector: kind.even.into(),
            scalars: if scalar { Self::SCALARS + 1 - kind.dwords } else { 0 },
            unaligned_scalar: scalar_alignment(kind.dwords.into()) as u8 - 1,
        }
    }

    /// The registers, so many, that the number in the field names, if they are the plainest.
    #[inline(always)]
    pub(crate) fn registers(self, number: u16, dwords: u8) -> Option<Reg> {
        let vector = number.wrapping_sub(self.first_vector);
        if vector < self.vectors && vector & u16::from(self.unaligned_vector) == 0 {
            return Some(Reg::vector(vector, dwords));
        }
        let scalar = number < u16::from(self.scalars) && number & u16::from(self.unaligned_scalar) == 0;
        scalar.then_some(Reg::scalar(number, dwords))
    }
}

/// Where so many scalar registers may start: pairs at every second, what is wider at every fourth.
pub(crate) fn scalar_alignment(dwords: u16) -> u16 {
    match dwords {
        0 | 1 => 1,
        2 => 2,
        _ => 4,
    }
}

/// The modifier fields of an encoding form.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    /// Encoded size in bytes, without a literal.
    pub bytes: u8,
    /// Whether the offset field is signed.
    pub signed_offset: bool,
    /// The modifiers and where they are.
    pub modifiers: Vec<(Modifier, Bits)>,
    /// The bits of all modifiers: where none of them is set, all modifiers are what they are by default, but for
    /// `has_parts`.
    pub modifier_bits: u128,
    /// Whether it has modifiers that are parts of others (DPP, SDWA), which are there even if all their bits are 0.
    pub has_parts: bool,
}

impl Layout {
    pub(crate) fn new(bytes: u8, signed_offset: bool, modifiers: Vec<(Modifier, Bits)>) -> Self {
        let modifier_bits = modifiers.iter().fold(0, |mask, (_, bits)| mask | bits.mask());
        // Setting to 0 what is 0 by default changes nothing; where it does, it makes a part.
        let set_to_zero = |modifier| {
            let mut set = Modifiers::default();
            set.set(modifier, 0, None);
            set
        };
        let has_parts = modifiers.iter().any(|(modifier, _)| set_to_zero(*modifier) != Modifiers::default());
        Layout { bytes, signed_offset, modifiers, modifier_bits, has_parts }
    }
}

impl Modifiers {
    /// Sets the modifier to the number in its field.
    pub(crate) fn set(&mut self, modifier: Modifier, value: u64, signed_offset_bits: Option<u32>) {
        let small = value as u8;
        let on = value != 0;
        match modifier {
            Modifier::Neg => self.neg = small,
            Modifier::Abs => self.abs = small,
            Modifier::NegHi => self.neg_hi = small,
            Modifier::OpSel => self.op_sel = small,
            Modifier::OpSelHi => self.op_sel_hi = small,
            Modifier::Sext => {
                let sdwa = self.sdwa.get_or_insert_default();
                sdwa.src0_sext = value & 1 != 0;
                sdwa.src1_sext = value & 2 != 0;
            }
            Modifier::Clamp => self.clamp = on,
            Modifier::Omod => self.omod = small,
            Modifier::Offset => {
                self.offset = value as i32;
                if let Some(bits) = signed_offset_bits {
                    self.offset = self.offset << (32 - bits) >> (32 - bits);
                }
            }
            Modifier::Offset1 => self.offset1 = small,
            Modifier::Glc => self.glc = on,
            Modifier::Slc => self.slc = on,
            Modifier::Scc => self.scc = on,
            Modifier::Lds => self.lds = on,
            Modifier::Tfe => self.tfe = on,
            Modifier::Lwe => self.lwe = on,
            Modifier::Nv => self.nv = on,
            Modifier::Gds => self.gds = on,
            Modifier::Idxen => self.idxen = on,
            Modifier::Offen => self.offen = on,
            Modifier::Unorm => self.unorm = on,
            Modifier::Da => self.da = on,
            Modifier::R128 => self.r128 = on,
            Modifier::D16 => self.d16 = on,
            Modifier::Cbsz => self.cbsz = small,
            Modifier::Abid => self.abid = small,
            Modifier::Blgp => self.blgp = small,
            Modifier::Imm => self.imm = on,
            Modifier::SoffsetEn => self.soffset_en = on,
            Modifier::High => self.high = on,
            Modifier::DppCtrl => self.dpp.get_or_insert_default().ctrl = value as u16,
            Modifier::RowMask => self.dpp.get_or_insert_default().row_mask = small,
            Modifier::BankMask => self.dpp.get_or_insert_default().bank_mask = small,
            Modifier::BoundCtrl => self.dpp.get_or_insert_default().bound_ctrl = on,
            Modifier::DstSel => self.sdwa.get_or_insert_default().dst_sel = small,
            Modifier::DstUnused => self.sdwa.get_or_insert_default().dst_unused = small,
            Modifier::Src0Sel => self.sdwa.get_or_insert_default().src0_sel = small,
            Modifier::Src1Sel => self.sdwa.get_or_insert_default().src1_sel = small,
            Modifier::ExportEnable => self.export_enable = small,
            Modifier::ExportCompressed => self.export_compressed = on,
            Modifier::ExportValidMask => self.export_valid_mask = on,
            Modifier::Done => self.done = on,
            Modifier::Dlc => self.dlc = on,
            Modifier::A16 => self.a16 = on,
            Modifier::Fi => self.dpp.get_or_insert_default().fetch_inactive = on,
            Modifier::Dpp8 => self.dpp8 = Some(value as u32),
            Modifier::Dim => self.dim = small,
            Modifier::WaitExp => self.wait_exp = small,
            Modifier::WaitVdst => self.wait_vdst = small,
            Modifier::WaitVsrc => self.wait_vsrc = small,
            Modifier::Bitop3 => self.bitop3 = small,
            Modifier::ByteSel => self.byte_sel = small,
            Modifier::ScaleSel => self.scale_sel = small,
            Modifier::IndexKey => self.index_key = small,
            Modifier::MatrixAFmt => self.matrix.a_fmt = small,
            Modifier::MatrixBFmt => self.matrix.b_fmt = small,
            Modifier::MatrixAScale => self.matrix.a_scale = small,
            Modifier::MatrixBScale => self.matrix.b_scale = small,
            Modifier::MatrixAScaleFmt => self.matrix.a_scale_fmt = small,
            Modifier::MatrixBScaleFmt => self.matrix.b_scale_fmt = small,
            Modifier::MatrixAReuse => self.matrix.a_reuse = small,
            Modifier::MatrixBReuse => self.matrix.b_reuse = small,
            Modifier::Th => self.th = small,
            Modifier::Scope => self.scope = small,
            Modifier::ScaleOffset => self.scale_offset = on,
            Modifier::Nsa => self.nsa = small,
            Modifier::RowEn => self.row_en = on,
            Modifier::Dpp8Fi => self.dpp8_fi = small,
            Modifier::Cache => {}
        }
    }

    /// The number that stands for the modifier in its field; a negative offset as 64-bit two's complement.
    pub(crate) fn get(&self, modifier: Modifier) -> u64 {
        match modifier {
            Modifier::Neg => self.neg.into(),
            Modifier::Abs => self.abs.into(),
            Modifier::NegHi => self.neg_hi.into(),
            Modifier::OpSel => self.op_sel.into(),
            Modifier::OpSelHi => self.op_sel_hi.into(),
            Modifier::Sext => self.sdwa.map_or(0, |sdwa| u64::from(sdwa.src0_sext) | u64::from(sdwa.src1_sext) << 1),
            Modifier::Clamp => self.clamp.into(),
            Modifier::Omod => self.omod.into(),
            Modifier::Offset => i64::from(self.offset) as u64,
            Modifier::Offset1 => self.offset1.into(),
            Modifier::Glc => self.glc.into(),
            Modifier::Slc => self.slc.into(),
            Modifier::Scc => self.scc.into(),
            Modifier::Lds => self.lds.into(),
            Modifier::Tfe => self.tfe.into(),
            Modifier::Lwe => self.lwe.into(),
            Modifier::Nv => self.nv.into(),
            Modifier::Gds => self.gds.into(),
            Modifier::Idxen => self.idxen.into(),
            Modifier::Offen => self.offen.into(),
            Modifier::Unorm => self.unorm.into(),
            Modifier::Da => self.da.into(),
            Modifier::R128 => self.r128.into(),
            Modifier::D16 => self.d16.into(),
            Modifier::Cbsz => self.cbsz.into(),
            Modifier::Abid => self.abid.into(),
            Modifier::Blgp => self.blgp.into(),
            Modifier::Imm => self.imm.into(),
            Modifier::SoffsetEn => self.soffset_en.into(),
            Modifier::High => self.high.into(),
            Modifier::DppCtrl => self.dpp.map_or(0, |dpp| dpp.ctrl.into()),
            Modifier::RowMask => self.dpp.map_or(0, |dpp| dpp.row_mask.into()),
            Modifier::BankMask => self.dpp.map_or(0, |dpp| dpp.bank_mask.into()),
            Modifier::BoundCtrl => self.dpp.map_or(0, |dpp| dpp.bound_ctrl.into()),
            Modifier::DstSel => self.sdwa.map_or(0, |sdwa| sdwa.dst_sel.into()),
            Modifier::DstUnused => self.sdwa.map_or(0, |sdwa| sdwa.dst_unused.into()),
            Modifier::Src0Sel => self.sdwa.map_or(0, |sdwa| sdwa.src0_sel.into()),
            Modifier::Src1Sel => self.sdwa.map_or(0, |sdwa| sdwa.src1_sel.into()),
            Modifier::ExportEnable => self.export_enable.into(),
            Modifier::ExportCompressed => self.export_compressed.into(),
            Modifier::ExportValidMask => self.export_valid_mask.into(),
            Modifier::Done => self.done.into(),
            Modifier::Dlc => self.dlc.into(),
            Modifier::A16 => self.a16.into(),
            Modifier::Fi => self.dpp.map_or(0, |dpp| dpp.fetch_inactive.into()),
            Modifier::Dpp8 => self.dpp8.unwrap_or(0).into(),
            Modifier::Dim => self.dim.into(),
            Modifier::WaitExp => self.wait_exp.into(),
            Modifier::WaitVdst => self.wait_vdst.into(),
            Modifier::WaitVsrc => self.wait_vsrc.into(),
            Modifier::Bitop3 => self.bitop3.into(),
            Modifier::ByteSel => self.byte_sel.into(),
            Modifier::ScaleSel => self.scale_sel.into(),
            Modifier::IndexKey => self.index_key.into(),
            Modifier::MatrixAFmt => self.matrix.a_fmt.into(),
            Modifier::MatrixBFmt => self.matrix.b_fmt.into(),
            Modifier::MatrixAScale => self.matrix.a_scale.into(),
            Modifier::MatrixBScale => self.matrix.b_scale.into(),
            Modifier::MatrixAScaleFmt => self.matrix.a_scale_fmt.into(),
            Modifier::MatrixBScaleFmt => self.matrix.b_scale_fmt.into(),
            Modifier::MatrixAReuse => self.matrix.a_reuse.into(),
            Modifier::MatrixBReuse => self.matrix.b_reuse.into(),
            Modifier::Th => self.th.into(),
            Modifier::Scope => self.scope.into(),
            Modifier::ScaleOffset => self.scale_offset.into(),
            Modifier::Nsa => self.nsa.into(),
            Modifier::RowEn => self.row_en.into(),
            Modifier::Dpp8Fi => self.dpp8_fi.into(),
            Modifier::Cache => 0,
        }
    }
}
