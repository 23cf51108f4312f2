//! Operations by number, and what is known of each.
//!
//! `isa-tables/opcodes.yaml` has a line for each operation. What analyses ask of an instruction's operation is a flag
//! there or a match on [`Opcode`], never a part of its name: names are for people and assemblers.

use std::fmt;

use super::vocabulary::{AtomicOp, D16, MaskOp, MinMaxOp, NumberFormat, Predicate, VectorOp};

include!(concat!(env!("OUT_DIR"), "/opcodes.rs"));

impl Opcode {
    /// All operations, without [`Opcode::INVALID`].
    pub fn all() -> impl ExactSizeIterator<Item = Opcode> {
        ALL[1..].iter().copied()
    }

    /// The name of the operation, without an encoding's ending: `v_add_f32`.
    ///
    /// ```
    /// use wavetap_amdgpu::Opcode;
    /// assert_eq!(Opcode::V_ADD_F32.name(), "v_add_f32");
    /// assert_eq!(Opcode::from_name("v_add_f32"), Some(Opcode::V_ADD_F32));
    /// ```
    #[must_use]
    #[inline]
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    /// The operation with this name. A mnemonic of an encoding (`v_add_f32_e32`) is none.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Opcode> {
        NAMES[1..].binary_search(&name).ok().map(|place| ALL[place + 1])
    }

    /// Its flags, as `isa-tables/opcodes.yaml` has them.
    #[must_use]
    #[inline]
    pub fn flags(self) -> OpcodeFlags {
        OpcodeFlags::from_bits_retain(FLAGS[self as usize])
    }

    /// Whether it has one of these properties.
    #[must_use]
    #[inline]
    pub fn is_any(self, flags: OpcodeFlags) -> bool {
        self.flags().intersects(flags)
    }

    /// What an operation of a pair is alone in an instruction (`v_add_f32` of `v_dual_add_f32`). None of an operation
    /// that never is, and of one that is none of a pair.
    #[must_use]
    pub fn alone(self) -> Option<Opcode> {
        ALONE.iter().find(|(opcode, _)| *opcode == self).and_then(|(_, alone)| *alone)
    }

    /// The operation with a number of the binary table.
    #[inline]
    pub(super) fn from_number(number: u16) -> Opcode {
        ALL[usize::from(number)]
    }
}

impl fmt::Debug for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Opcode::INVALID { "INVALID" } else { self.name() })
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl OpcodeFlags {
    /// Whatever makes registers depend on values.
    pub const CHOOSES_REGISTERS: OpcodeFlags =
        Self::SCALAR_RELATIVE.union(Self::VECTOR_RELATIVE).union(Self::INDEX_MODE).union(Self::SWAP_RELATIVE);
    /// Multiplications of matrices, and what loads scales for them.
    pub const MATRIX: OpcodeFlags = Self::MFMA.union(Self::SMFMAC).union(Self::WMMA).union(Self::SWMMAC);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_opcodes_and_back() {
        assert!(Opcode::all().len() > 2000);
        for opcode in Opcode::all() {
            assert_eq!(Opcode::from_name(opcode.name()), Some(opcode));
            assert_eq!(Opcode::from_number(opcode as u16), opcode);
        }
        for none in ["", "v_add_f32_e32", "v_add_f3", "zzz"] {
            assert_eq!(Opcode::from_name(none), None, "{none}");
        }
    }
}
