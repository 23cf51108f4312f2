//! Messages: to which unit a send goes, and which registers its payload is.
//!
//! Lengths of results and payloads are in the descriptor, in registers. Of loads, stores and atomic operations of the
//! load/store cache (`ugm`, `ugml`, `slm`, `tgm`) the descriptor also tells the bytes that are used, which are fewer
//! when few lanes work.

use wavetap_base::error::{Error, Result};
use wavetap_code::Class;

use super::operand::{GRF_BYTES, Units, normalize};
use super::word::Word;

/// A shared function: a unit that takes messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names of the manufacturer")]
pub enum SharedFunction {
    Null,
    Ugml,
    Sampler,
    Gateway,
    DataCache2,
    RenderCache,
    Urb,
    RayTracing,
    DataCache0,
    PixelInterpolator,
    DataCache1,
    Tgm,
    Slm,
    Ugm,
}

impl SharedFunction {
    fn of(code: u8) -> Option<(SharedFunction, &'static str)> {
        use SharedFunction::*;
        Some(match code {
            0 => (Null, "null"),
            1 => (Ugml, "ugml"),
            2 => (Sampler, "smpl"),
            3 => (Gateway, "gtwy"),
            4 => (DataCache2, "dc2"),
            5 => (RenderCache, "rc"),
            6 => (Urb, "urb"),
            8 => (RayTracing, "rta"),
            10 => (DataCache0, "dc0"),
            11 => (PixelInterpolator, "pixi"),
            12 => (DataCache1, "dc1"),
            13 => (Tgm, "tgm"),
            14 => (Slm, "slm"),
            15 => (Ugm, "ugm"),
            _ => return None,
        })
    }

    fn is_load_store(self) -> bool {
        use SharedFunction::{Slm, Tgm, Ugm, Ugml};
        matches!(self, Ugm | Ugml | Slm | Tgm)
    }
}

/// What a message does to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// It loads.
    Load,
    /// It stores.
    Store,
    /// It changes memory in one step.
    Atomic,
    /// It orders or invalidates.
    Fence,
    /// Something else, or that is not known.
    Other,
}

/// The message of a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Message {
    /// Who takes it.
    pub function: SharedFunction,
    /// Its name: `ugm`.
    pub name: &'static str,
    /// The descriptor.
    pub descriptor: u32,
    /// The extended descriptor, as far as it is in the instruction.
    pub extended: u32,
    /// The byte of `a0` where the rest of the extended descriptor is.
    pub extended_in: Option<u32>,
    /// Registers of the payload's second part.
    pub second: u32,
}

/// Load/store operations, by the lowest six bits of the descriptor. The first number is how many values per lane an
/// atomic operation has.
const LSC_LOAD: u32 = 0;
const LSC_LOAD_QUAD: u32 = 2;
const LSC_LOAD_BLOCK: u32 = 3;
const LSC_STORE: u32 = 4;
const LSC_STORE_QUAD: u32 = 6;
const LSC_STORE_BLOCK: u32 = 7;
const LSC_ATOMICS: std::ops::RangeInclusive<u32> = 8..=26;
const LSC_FENCE: u32 = 31;

/// What the bytes of a payload are: where each vector element begins is a multiple of registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    /// Vector elements, each in registers of its own.
    pub elements: u32,
    /// Bytes of an element.
    pub bytes: u32,
}

impl Extent {
    const fn registers(count: u32) -> Extent {
        Extent { elements: 1, bytes: count * GRF_BYTES }
    }

    /// Bytes, from the first one of the payload.
    pub(super) fn units(self) -> Units {
        let stride = self.bytes.next_multiple_of(GRF_BYTES);
        let mut units = (0..self.elements).map(|element| (element * stride, element * stride + self.bytes)).collect();
        normalize(&mut units);
        units
    }

    /// No more than so many registers.
    fn within(self, registers: u32) -> Option<Extent> {
        let end = self.units().last().map_or(0, |(_, end)| *end);
        (end <= registers * GRF_BYTES).then_some(self)
    }
}

/// The extents of a message: its result, the first and the second part of its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extents {
    pub result: Extent,
    pub first: Extent,
    pub second: Extent,
}

impl Message {
    pub(super) fn decode(word: Word) -> Result<Message> {
        let code = word.field(92, 4);
        let (function, name) = SharedFunction::of(code)
            .ok_or_else(|| Error::unsupported(format!("a send to shared function {code}, which is not known")))?;
        if word.bit(48) {
            return Err(Error::unsupported(format!(
                "send.{name} with its descriptor in a register: which registers it accesses is not known"
            )));
        }
        let descriptor = word.bits(81, 91)
            | word.bits(113, 121) << 11
            | word.bits(51, 55) << 20
            | word.bits(67, 71) << 25
            | word.bits(122, 123) << 30;
        let second = word.field(99, 5);
        let (extended, extended_in) = if word.bit(49) {
            if !word.bit(39) {
                return Err(Error::unsupported(format!(
                    "send.{name} with the length of its payload in a register: which registers it reads is not known"
                )));
            }
            (0, Some(u32::from(word.field(40, 3)) * 4))
        } else {
            let value = u64::from(second) << 6
                | word.bits(35, 47) << 11
                | word.bits(64, 65) << 24
                | word.bits(96, 97) << 26
                | word.bits(124, 127) << 28;
            (value as u32, None)
        };
        let descriptor = descriptor as u32;
        Ok(Message { function, name, descriptor, extended, extended_in, second: u32::from(second) })
    }

    /// Registers of the result.
    #[must_use]
    pub fn result_registers(&self) -> u32 {
        self.descriptor >> 20 & 0x1f
    }

    /// Registers of the payload's first part.
    #[must_use]
    pub fn first_registers(&self) -> u32 {
        self.descriptor >> 25 & 0xf
    }

    fn operation(&self) -> u32 {
        self.descriptor & 0x3f
    }

    /// What it does to memory.
    #[must_use]
    pub fn access(&self) -> Access {
        if !self.function.is_load_store() {
            return match (self.result_registers(), self.second) {
                _ if !self.class().is_memory() => Access::Other,
                (0, 1..) => Access::Store,
                (1.., 0) => Access::Load,
                _ => Access::Other,
            };
        }
        match self.operation() {
            LSC_LOAD | LSC_LOAD_QUAD | LSC_LOAD_BLOCK => Access::Load,
            LSC_STORE | LSC_STORE_QUAD | LSC_STORE_BLOCK => Access::Store,
            LSC_FENCE => Access::Fence,
            operation if LSC_ATOMICS.contains(&operation) => Access::Atomic,
            _ => Access::Other,
        }
    }

    /// What kind of work it is.
    #[must_use]
    pub fn class(&self) -> Class {
        use SharedFunction::*;
        /// Whether addresses are in a surface, and not flat: bits 29 and 30 of the descriptor.
        const SURFACES: std::ops::RangeInclusive<u32> = 1..=2;
        match self.function {
            Ugm | Ugml | Slm | Tgm if self.operation() == LSC_FENCE => Class::Fence,
            // Surfaces that a register names: what the compiler spills is there, and buffers are.
            Ugm | Ugml if SURFACES.contains(&(self.descriptor >> 29 & 3)) => Class::Generic,
            Ugm | Ugml => Class::Global,
            Slm => Class::Shared,
            Tgm | Sampler | RenderCache | DataCache1 => Class::Image,
            DataCache0 if self.is_scratch() => Class::Private,
            DataCache0 => Class::Generic,
            Null | Gateway | DataCache2 | Urb | RayTracing | PixelInterpolator => Class::Message,
        }
    }

    /// A block of scratch memory: bit 18 of a descriptor of data cache 0.
    fn is_scratch(&self) -> bool {
        self.descriptor >> 18 & 1 == 1
    }

    /// The name of the operation, as far as it is known: `load.ugm.d32x4`.
    pub(super) fn operation_name(&self) -> Option<String> {
        if !self.function.is_load_store() {
            return None;
        }
        let name = match self.operation() {
            LSC_LOAD => "load",
            LSC_LOAD_QUAD => "load_quad",
            LSC_LOAD_BLOCK => "load_block2d",
            LSC_STORE => "store",
            LSC_STORE_QUAD => "store_quad",
            LSC_STORE_BLOCK => "store_block2d",
            LSC_FENCE => return Some(format!("fence.{}", self.name)),
            operation if LSC_ATOMICS.contains(&operation) => "atomic",
            _ => return None,
        };
        let size = ["d8", "d16", "d32", "d64", "d8u32", "d16u32", "d16u32h", "d?"];
        let mut text = format!("{name}.{}.{}", self.name, size[(self.descriptor >> 9 & 7) as usize]);
        let count = self.vector();
        let transposed = matches!(self.operation(), LSC_LOAD | LSC_STORE) && self.descriptor >> 15 & 1 == 1;
        if matches!(self.operation(), LSC_LOAD | LSC_STORE) && (count > 1 || transposed) {
            text += &format!("x{count}{}", if transposed { "t" } else { "" });
        }
        Some(text)
    }

    fn vector(&self) -> u32 {
        [1, 2, 3, 4, 8, 16, 32, 64][(self.descriptor >> 12 & 7) as usize]
    }

    /// The bytes of the message for so many lanes.
    pub(super) fn extents(&self, lanes: u32) -> Extents {
        let (result, first, second) = (self.result_registers(), self.first_registers(), self.second);
        let whole = Extents {
            result: Extent::registers(result),
            first: Extent::registers(first),
            second: Extent::registers(second),
        };
        self.precise(lanes)
            .and_then(|precise| {
                // What does not fit is not understood: then all registers are taken.
                Some(Extents {
                    result: precise.result.within(result)?,
                    first: precise.first.within(first)?,
                    second: precise.second.within(second)?,
                })
            })
            .unwrap_or(whole)
    }

    /// What operations of the load/store cache access, by their descriptor.
    fn precise(&self, lanes: u32) -> Option<Extents> {
        if !self.function.is_load_store() || self.function == SharedFunction::Tgm {
            return None;
        }
        let operation = self.operation();
        let is_atomic = LSC_ATOMICS.contains(&operation);
        if !is_atomic && !matches!(operation, LSC_LOAD | LSC_LOAD_QUAD | LSC_STORE | LSC_STORE_QUAD) {
            return None;
        }
        let address = [None, Some(2), Some(4), Some(8)][(self.descriptor >> 7 & 3) as usize]?;
        // In memory, and in registers where small values take 32 bits.
        let size =
            [Some(1), Some(2), Some(4), Some(8), Some(4), Some(4), Some(4), None][(self.descriptor >> 9 & 7) as usize]?;
        let none = Extent { elements: 0, bytes: 0 };
        let data = if is_atomic {
            Extent { elements: 1, bytes: lanes * size }
        } else if matches!(operation, LSC_LOAD_QUAD | LSC_STORE_QUAD) {
            let channels = (self.descriptor >> 12 & 0xf).count_ones();
            Extent { elements: channels, bytes: lanes * size }
        } else if self.descriptor >> 15 & 1 == 1 {
            // Transposed: one address, and the elements next to each other.
            let first = Extent { elements: 1, bytes: address };
            let data = Extent { elements: 1, bytes: self.vector() * size };
            return Some(if operation == LSC_LOAD {
                Extents { result: data, first, second: none }
            } else {
                Extents { result: none, first, second: data }
            });
        } else {
            Extent { elements: self.vector(), bytes: lanes * size }
        };
        let first = Extent { elements: 1, bytes: lanes * address };
        let has_result = self.result_registers() > 0;
        Some(match operation {
            LSC_LOAD | LSC_LOAD_QUAD => Extents { result: data, first, second: none },
            LSC_STORE | LSC_STORE_QUAD => Extents { result: none, first, second: data },
            _ => {
                // One value a lane, or two of a comparison and exchange, or none.
                let values = self.second * GRF_BYTES / data.bytes.next_multiple_of(GRF_BYTES);
                let second = Extent { elements: values, bytes: data.bytes };
                Extents { result: if has_result { data } else { none }, first, second }
            }
        })
    }
}
