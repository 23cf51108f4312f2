//! The shapes and element types of MFMA and SMFMAC instructions.

use wavetap_amdgpu::{Inst, NumberFormat, Opcode, OpcodeFlags};

use crate::float::small_float::{Format, decode};
use crate::float::{from_bf16, from_f16};

/// The element type of A or B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    F32,
    F16,
    Bf16,
    I8,
    Fp8,
    Bf8,
    F64,
    /// Single precision of which 10 bits of the fraction count.
    Xf32,
    /// Of 4, 6 or 8 bits, as the instruction's fields say (`exec::matrix::mfma_scaled`).
    Mixed,
}

/// The accumulator's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sum {
    F32,
    I32,
    F64,
}

/// What the name of an instruction says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MfmaShape {
    pub sum: Sum,
    /// Rows and columns of D.
    pub size: usize,
    pub k: usize,
    pub a: Element,
    pub b: Element,
}

/// What of a single-precision number is multiplied in XF32: sign, exponent and 10 bits of the fraction; the other 13
/// are cut off. The ISA guide does not say how they get lost; that they are cut off has been measured on CDNA3 (P. Xie
/// et al., "MMA-Sim", 2025). A NaN whose bits are among those stays one.
pub(crate) fn xf32(bits: u32) -> u32 {
    let nan = f32::from_bits(bits).is_nan();
    bits & !0x1fff | if nan { 0x40_0000 } else { 0 }
}

impl Element {
    pub(crate) fn bits(self) -> usize {
        match self {
            Element::F64 => 64,
            Element::F32 | Element::Xf32 => 32,
            Element::F16 | Element::Bf16 => 16,
            Element::I8 | Element::Fp8 | Element::Bf8 | Element::Mixed => 8,
        }
    }

    pub(crate) fn value(self, bits: u64, fnuz: bool) -> f64 {
        match self {
            Element::F64 => f64::from_bits(bits),
            Element::F32 => f64::from(f32::from_bits(bits as u32)),
            Element::Xf32 => f64::from(f32::from_bits(xf32(bits as u32))),
            Element::F16 => from_f16(bits as u16),
            Element::Bf16 => from_bf16(bits as u16),
            Element::I8 => f64::from(bits as u8 as i8),
            Element::Fp8 => decode(Format::eight(false, fnuz), bits as u8),
            Element::Bf8 | Element::Mixed => decode(Format::eight(true, fnuz), bits as u8),
        }
    }
}

impl MfmaShape {
    /// Of a dense or sparse MFMA operation.
    pub(crate) fn of(opcode: Opcode) -> Option<MfmaShape> {
        let matrix = opcode.matrix().filter(|_| opcode.is_any(OpcodeFlags::MFMA | OpcodeFlags::SMFMAC))?;
        let sum = match matrix.d {
            NumberFormat::F32 => Sum::F32,
            NumberFormat::I32 => Sum::I32,
            NumberFormat::F64 => Sum::F64,
            _ => return None,
        };
        let element = |format: NumberFormat| {
            Some(match format {
                NumberFormat::F32 => Element::F32,
                NumberFormat::F16 => Element::F16,
                NumberFormat::Bf16 => Element::Bf16,
                NumberFormat::I8 => Element::I8,
                NumberFormat::Fp8 => Element::Fp8,
                NumberFormat::Bf8 => Element::Bf8,
                NumberFormat::F64 => Element::F64,
                NumberFormat::Xf32 => Element::Xf32,
                NumberFormat::F8f6f4 => Element::Mixed,
                _ => return None,
            })
        };
        let (size, k) = (matrix.rows.into(), matrix.depth.into());
        Some(MfmaShape { sum, size, k, a: element(matrix.a)?, b: element(matrix.b)? })
    }

    /// Whether the accumulator is in double precision.
    pub(crate) fn is_double(self) -> bool {
        self.sum == Sum::F64
    }

    /// Whether the inputs are in single precision.
    pub(crate) fn is_single(self) -> bool {
        self.a == Element::F32
    }

    /// Whether the inputs are in XF32.
    pub(crate) fn is_xf32(self) -> bool {
        self.a == Element::Xf32
    }

    /// Whether the instruction's fields say what the inputs are.
    pub(crate) fn is_mixed(self) -> bool {
        self.a == Element::Mixed
    }

    pub(crate) fn k(self) -> usize {
        self.k
    }

    /// Row, column and block of element `index` of the accumulator in a lane.
    pub(crate) fn place(self, lane: usize, index: usize) -> (usize, usize, usize) {
        let column = lane % self.size;
        match (self.sum, self.size) {
            (Sum::F64, 16) => (4 * index + lane / 16, column, 0),
            (Sum::F64, _) => (lane / 16, column, lane / 4 % 4),
            (_, 32) => (8 * (index % 16 / 4) + 4 * (lane / 32) + index % 4, column, index / 16),
            (_, 16) => (4 * (lane / 16) + index % 4, column, index / 4),
            _ => (index, column, lane / 4),
        }
    }
}

/// Whether A or B is of 8 bits, which takes twice as long.
pub(crate) fn has_bytes(inst: &Inst) -> bool {
    inst.modifiers.cbsz < 2 || inst.modifiers.blgp < 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::LANES;

    #[test]
    fn shapes_of_operations() {
        let shape = MfmaShape::of(Opcode::V_MFMA_F32_32X32X4_2B_BF16).unwrap();
        assert_eq!((shape.size, shape.k, shape.a), (32, 4, Element::Bf16));
        let shape = MfmaShape::of(Opcode::V_MFMA_F32_16X16X32_BF8_FP8).unwrap();
        assert_eq!((shape.size, shape.k, shape.a, shape.b), (16, 32, Element::Bf8, Element::Fp8));
        let shape = MfmaShape::of(Opcode::V_MFMA_F32_32X32X8BF16_1K).unwrap();
        assert_eq!((shape.size, shape.k, shape.a), (32, 8, Element::Bf16));
        let shape = MfmaShape::of(Opcode::V_MFMA_SCALE_F32_16X16X128_F8F6F4).unwrap();
        assert_eq!((shape.size, shape.k, shape.a), (16, 128, Element::Mixed));
    }

    #[test]
    fn xf32_cuts_fractions_off() {
        assert_eq!(xf32(0x3f80_1fff), 0x3f80_0000);
        assert_eq!(xf32(0xbfff_ffff), 0xbfff_e000);
        assert_eq!(xf32(0x7f80_0000), 0x7f80_0000);
        assert!(f32::from_bits(xf32(0x7f80_0001)).is_nan());
    }

    /// Every element of D has exactly one place.
    #[test]
    fn places_are_a_bijection() {
        for (opcode, blocks) in [
            (Opcode::V_MFMA_F32_32X32X1F32, 2),
            (Opcode::V_MFMA_F32_32X32X2F32, 1),
            (Opcode::V_MFMA_F32_16X16X1F32, 4),
            (Opcode::V_MFMA_F32_16X16X4F32, 1),
            (Opcode::V_MFMA_F32_4X4X1F32, 16),
            (Opcode::V_MFMA_F64_16X16X4F64, 1),
            (Opcode::V_MFMA_F64_4X4X4F64, 4),
        ] {
            let shape = MfmaShape::of(opcode).unwrap();
            let mut seen = std::collections::HashSet::new();
            for lane in 0..LANES {
                for index in 0..shape.size * shape.size * blocks / LANES {
                    let (i, j, block) = shape.place(lane, index);
                    assert!(i < shape.size && j < shape.size && block < blocks, "{opcode}");
                    assert!(seen.insert((i, j, block)), "{opcode}");
                }
            }
            assert_eq!(seen.len(), shape.size * shape.size * blocks, "{opcode}");
        }
    }
}
