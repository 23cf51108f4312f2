//! Operands, and which units of which register file they are.

use std::fmt;

use wavetap_code::Location;

use super::types::Type;

/// Bytes of a general register, and of an accumulator, of Xe-HPC.
pub const GRF_BYTES: u32 = 64;
/// General registers of a thread at most.
pub const GRF_COUNT: u32 = 256;
/// Bits of a flag register.
pub const FLAG_BITS: u32 = 32;

/// The register files, as [`Location::file`] numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum File {
    /// `r`: units are bytes.
    General = 0,
    /// `acc`: units are bytes.
    Accumulator = 1,
    /// `f`: units are bits.
    Flag = 2,
    /// `a`: units are bytes.
    Address = 3,
    /// Everything else: control, state, notification, the instruction pointer. Units are bytes.
    State = 4,
}

/// An architecture register that is not general.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Arf {
    /// The file.
    pub file: File,
    /// The name without number.
    pub name: &'static str,
    /// Its first unit is this many registers of 64 bytes into the file.
    base: u32,
    /// Units of a register of it.
    stride: u32,
}

impl Arf {
    /// By the high half of the register number.
    pub(super) fn of(high: u8) -> Option<Arf> {
        let (file, name, base, stride) = match high {
            1 => (File::Address, "a", 0, GRF_BYTES),
            2 => (File::Accumulator, "acc", 0, GRF_BYTES),
            3 => (File::Flag, "f", 0, FLAG_BITS),
            4 => (File::State, "ce", 0, GRF_BYTES),
            5 => (File::State, "msg", 16, GRF_BYTES),
            7 => (File::State, "sr", 32, GRF_BYTES),
            8 => (File::State, "cr", 48, GRF_BYTES),
            9 => (File::State, "n", 64, GRF_BYTES),
            10 => (File::State, "ip", 80, GRF_BYTES),
            11 => (File::State, "tdr", 96, GRF_BYTES),
            12 => (File::State, "tm", 112, GRF_BYTES),
            13 => (File::State, "fc", 128, GRF_BYTES),
            15 => (File::State, "dbg", 144, GRF_BYTES),
            _ => return None,
        };
        Some(Arf { file, name, base, stride })
    }

    /// Whether it says how instructions work, rather than holding a value.
    #[must_use]
    pub fn is_mode(self) -> bool {
        self.name == "cr"
    }
}

/// How the lanes of a source are laid out: element `i` is at `(i / width) * vertical + (i % width) * horizontal`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Region {
    /// Elements between rows.
    pub vertical: u32,
    /// Elements of a row.
    pub width: u32,
    /// Elements between those of a row.
    pub horizontal: u32,
}

impl Region {
    /// Of a result: one row.
    pub(super) const fn linear(stride: u32) -> Region {
        Region { vertical: 0, width: u32::MAX, horizontal: stride }
    }
}

/// A register, general or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Register {
    /// None: general.
    pub arf: Option<Arf>,
    /// Its number.
    pub number: u32,
    /// The first byte.
    pub byte: u32,
}

impl Register {
    /// The file.
    #[must_use]
    pub fn file(self) -> File {
        self.arf.map_or(File::General, |arf| arf.file)
    }

    /// The unit of the file at `byte` of the register, and how many units a byte is.
    fn unit(self, byte: u32) -> (u32, u32) {
        match self.arf {
            Some(arf) if arf.file == File::Flag => ((self.number * 4 + byte) * 8, 8),
            Some(arf) => ((arf.base + self.number) * arf.stride + byte, 1),
            None => (self.number * GRF_BYTES + byte, 1),
        }
    }
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.arf.map_or("r", |arf| arf.name), self.number)
    }
}

/// Negation and absolute value of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Modifiers {
    /// The absolute value is taken first.
    pub absolute: bool,
    /// It is negated; of logical operations, inverted.
    pub negative: bool,
}

/// An operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operand {
    /// `null`.
    Null,
    /// Lanes in a register.
    Register {
        /// The register.
        register: Register,
        /// How lanes are laid out.
        region: Region,
        /// Their type.
        ty: Type,
        /// What is done to them.
        modifiers: Modifiers,
        /// The accumulator that extends it, of macro operations: 0 is acc2.
        extension: Option<u8>,
    },
    /// A general register that an address register chooses.
    Indirect {
        /// The word of `a0` with the first address.
        address: u8,
        /// Bytes that are added.
        offset: i32,
        /// How lanes are laid out. If `per_row`, each row has an address of its own.
        region: Region,
        /// Whether each row has an address of its own.
        per_row: bool,
        /// Their type.
        ty: Type,
        /// What is done to them.
        modifiers: Modifiers,
    },
    /// A constant.
    Immediate {
        /// Its bits.
        bits: u64,
        /// Its type.
        ty: Type,
    },
    /// A run of bytes of general registers: of messages and of products of matrices.
    Block {
        /// The first register.
        register: Register,
        /// Bytes.
        bytes: u32,
        /// The type, if it has one.
        ty: Option<Type>,
    },
}

/// Units `first..end` of a file, ascending and apart.
pub type Units = Vec<(u32, u32)>;

/// Adds a run to ascending or any other runs; [`normalize`] sorts.
pub(super) fn normalize(units: &mut Units) {
    units.sort_unstable();
    let mut merged: Units = Vec::with_capacity(units.len());
    for &(first, end) in units.iter() {
        match merged.last_mut() {
            Some(last) if first <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((first, end)),
        }
    }
    *units = merged;
}

impl Operand {
    /// The type, if it has one.
    #[must_use]
    pub fn ty(&self) -> Option<Type> {
        match self {
            Operand::Null => None,
            Operand::Register { ty, .. } | Operand::Indirect { ty, .. } | Operand::Immediate { ty, .. } => Some(*ty),
            Operand::Block { ty, .. } => *ty,
        }
    }

    /// The units that are accessed for `lanes` lanes, without the extension. Of an indirect operand, its addresses.
    /// `element` replaces the bytes of an element.
    pub(super) fn units(&self, lanes: u32, element: Option<u32>) -> Option<(File, Units)> {
        match *self {
            Operand::Null | Operand::Immediate { .. } => None,
            Operand::Register { register, region, ty, .. } => {
                let size = element.unwrap_or(ty.bytes);
                let mut units = Vec::new();
                for lane in 0..lanes {
                    let Region { vertical, width, horizontal } = region;
                    let place = lane / width * vertical + lane % width * horizontal;
                    let (first, scale) = register.unit(register.byte + place * size);
                    units.push((first, first + size * scale));
                }
                normalize(&mut units);
                Some((register.file(), units))
            }
            Operand::Indirect { address, region, per_row, .. } => {
                let count = if per_row { lanes.div_ceil(region.width) } else { 1 };
                let first = u32::from(address) * 2;
                Some((File::Address, vec![(first, first + count * 2)]))
            }
            Operand::Block { register, bytes, .. } => {
                if bytes == 0 {
                    return None;
                }
                let (first, _) = register.unit(register.byte);
                Some((register.file(), vec![(first, first + bytes)]))
            }
        }
    }

    /// The accumulator that extends it.
    pub(super) fn extension(&self, lanes: u32) -> Option<Location> {
        /// `mme0` is this accumulator.
        const FIRST: u32 = 2;
        match *self {
            Operand::Register { extension: Some(number), ty, .. } => {
                let first = (FIRST + u32::from(number)) * GRF_BYTES;
                Some(Location { file: File::Accumulator as u8, first, units: lanes * ty.bytes })
            }
            _ => None,
        }
    }
}
