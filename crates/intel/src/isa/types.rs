//! Data types of operands.

use super::swsb::Pipe;

/// A data type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Type {
    /// As the assembler writes it.
    pub name: &'static str,
    /// Bytes of an element.
    pub bytes: u32,
    /// The in-order pipe that makes values of it.
    pub pipe: Pipe,
}

const fn ty(name: &'static str, bytes: u32, pipe: Pipe) -> Option<Type> {
    Some(Type { name, bytes, pipe })
}

/// Codes of registers; those of three sources are without the highest bit, which all operands share.
const TYPES: [Option<Type>; 16] = {
    use Pipe::{Float, Integer, Long};
    [
        ty("ub", 1, Integer),
        ty("uw", 2, Integer),
        ty("ud", 4, Integer),
        ty("uq", 8, Integer),
        ty("b", 1, Integer),
        ty("w", 2, Integer),
        ty("d", 4, Integer),
        ty("q", 8, Integer),
        None,
        ty("hf", 2, Float),
        ty("f", 4, Float),
        ty("df", 8, Long),
        None,
        ty("bf", 2, Float),
        None,
        None,
    ]
};

/// Immediates have packed vectors where registers have bytes.
const VECTORS: [(u8, Type); 3] = [
    (0, Type { name: "uv", bytes: 4, pipe: Pipe::Integer }),
    (4, Type { name: "v", bytes: 4, pipe: Pipe::Integer }),
    (8, Type { name: "vf", bytes: 4, pipe: Pipe::Float }),
];

impl Type {
    pub(super) fn of_register(code: u8) -> Option<Type> {
        TYPES.get(usize::from(code)).copied().flatten()
    }

    pub(super) fn of_immediate(code: u8) -> Option<Type> {
        let vector = VECTORS.iter().find(|(known, _)| *known == code).map(|(_, ty)| *ty);
        vector.or_else(|| Type::of_register(code))
    }

    /// Whether a product of two such values of 32 bits is kept with all its bits in an accumulator.
    pub(super) fn is_dword_integer(self) -> bool {
        self.bytes == 4 && self.pipe == Pipe::Integer
    }
}
