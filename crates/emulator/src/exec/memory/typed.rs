//! Loads and stores of typed buffers: numbers in memory have a format, which the instruction or the buffer's descriptor
//! names, and registers 32 bits.

use wavetap_amdgpu::{
    BUFFER_DATA_FORMATS, BUFFER_NUMBER_FORMATS, Encoding, NameList, Opcode, Operand, Reg, Role, Target, Value,
};

use super::buffer::{Extent, places_of};
use super::vmem::{count, issue_load, issue_store, read_place, write_place};
use crate::address::place::LanePlace;
use crate::address::range::ANYWHERE;
use crate::fault::MemoryAccess;
use crate::fault::stop::{ExecResult, at_lane, undefined};
use crate::float::from_f16;
use crate::lanes::active;
use crate::op::semantics::Semantics;
use crate::state::core::Core;
use crate::state::op::{Meaning, Op};
use crate::strict::store_order::order;

/// How the bits of a component are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    Unorm,
    Snorm,
    Uscaled,
    Sscaled,
    Uint,
    Sint,
    Float,
}

/// The components of an element, the first in the lowest bits, and what they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Format {
    pub widths: Vec<u32>,
    pub number: Number,
}

impl Format {
    /// `8_8_8_8_UNORM`, `2_10_10_10_UINT`: widths from the highest bits down, so the first component is the last.
    fn parse(name: &str) -> Option<Format> {
        let (widths, number) = name.rsplit_once('_')?;
        let number = match number {
            "UNORM" => Number::Unorm,
            "SNORM" => Number::Snorm,
            "USCALED" => Number::Uscaled,
            "SSCALED" => Number::Sscaled,
            "UINT" => Number::Uint,
            "SINT" => Number::Sint,
            "FLOAT" => Number::Float,
            _ => return None,
        };
        let mut widths: Vec<u32> = widths.split('_').map(|width| width.parse().ok()).collect::<Option<_>>()?;
        widths.reverse();
        Some(Format { widths, number })
    }

    /// By its number on a target; before gfx10 the data format in bits 3:0 and the number format in bits 6:4 (ISA
    /// guides, "MTBUF").
    fn numbered(target: Target, number: u8) -> Option<Format> {
        match target.name_of(NameList::BufferFormats, number) {
            Some(name) => Format::parse(name),
            None if target.generation() >= 10 => None,
            None => {
                let (data, number) = (
                    BUFFER_DATA_FORMATS[usize::from(number & 15)],
                    BUFFER_NUMBER_FORMATS[usize::from(number >> 4 & 7)],
                );
                Format::parse(&format!("{data}_{number}"))
            }
        }
    }

    /// That of an image. They are numbered as those of buffers are, with more after them.
    pub(crate) fn of_image(target: Target, number: u64) -> Option<Format> {
        let older = target.generation() < 10;
        // Before gfx10 the data format has six bits, and in both fields the further numbers are formats that buffers do
        // not have.
        let number =
            if older && number & 0x30 == 0 && number >> 6 < 8 { number & 15 | number >> 6 << 4 } else { number };
        let format = u8::try_from(number)
            .ok()
            .filter(|number| !older || *number < 0x80)
            .and_then(|number| Format::numbered(target, number))?;
        let widths = &format.widths;
        let (equal, scaled) = (
            widths.iter().all(|width| *width == widths[0]),
            matches!(format.number, Number::Uscaled | Number::Sscaled),
        );
        (equal && matches!((widths[0], widths.len()), (8 | 16 | 32, 1 | 2 | 4)) && !scaled).then_some(format)
    }

    /// What to call an image's format in a message.
    pub(crate) fn name_of_image(target: Target, number: u64) -> String {
        let name = u8::try_from(number)
            .ok()
            .filter(|_| target.generation() >= 10)
            .and_then(|number| target.name_of(NameList::BufferFormats, number));
        match name {
            Some(name) => format!("{number} ({name})"),
            None if target.generation() >= 10 => number.to_string(),
            None => format!("{number} (data format {}, number format {})", number & 63, number >> 6),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        (self.widths.iter().sum::<u32>() / 8) as usize
    }

    /// A component of an element in memory, as a register has it.
    pub(crate) fn load(&self, element: u128, component: usize) -> Option<u32> {
        let width = self.widths[component];
        let shift: u32 = self.widths[..component].iter().sum();
        let bits = (element >> shift) as u64 & ((1_u64 << width) - 1);
        let signed = ((bits << (64 - width)) as i64) >> (64 - width);
        let float = |value: f64| Some((value as f32).to_bits());
        match self.number {
            Number::Uint => Some(bits as u32),
            Number::Sint => Some(signed as u32),
            Number::Unorm => float(bits as f64 / ((1_u64 << width) - 1) as f64),
            Number::Snorm => float((signed as f64 / ((1_u64 << (width - 1)) - 1) as f64).max(-1.0)),
            Number::Uscaled => float(bits as f64),
            Number::Sscaled => float(signed as f64),
            Number::Float => match width {
                32 => Some(bits as u32),
                16 => float(from_f16(bits as u16)),
                // Floats of 11 and 10 bits have a half's exponent, no sign, and fewer fraction bits.
                10 | 11 => float(from_f16((bits << (15 - width)) as u16)),
                _ => None,
            },
        }
    }

    /// What a component that the format lacks is.
    pub(crate) fn absent(&self, component: usize) -> u32 {
        match (component, self.number) {
            (3, Number::Uint | Number::Sint) => 1,
            (3, _) => 1.0_f32.to_bits(),
            _ => 0,
        }
    }
}

/// The format and what each component of the result is: 0, 1, or (from 4 on) a component of memory.
fn format(core: &mut Core, op: &Op) -> ExecResult<(Format, [u32; 4])> {
    let target = core.launch.target;
    let Some(resource) = op.inst.operand(Role::Srsrc).and_then(Operand::reg) else {
        return undefined("a buffer without descriptor");
    };
    let word = core.scalar(op, resource.first + 3)?;
    let (number, select) = if op.inst.variant.encoding == Encoding::Mtbuf {
        match op.inst.operand(Role::Format).map(|operand| operand.value) {
            Some(Value::Imm(number)) => (number as u8, [4, 5, 6, 7]),
            _ => return undefined("a typed buffer instruction without format"),
        }
    } else {
        let number = match target.generation() {
            0..=9 => (word >> 15 & 15) | (word >> 12 & 7) << 4,
            10 => word >> 12 & 0x7f,
            _ => word >> 12 & 0x3f,
        };
        (number as u8, std::array::from_fn(|n| word >> (3 * n) & 7))
    };
    match Format::numbered(target, number) {
        Some(format) => Ok((format, select)),
        None => undefined(format!("buffer format {number}")),
    }
}

/// Whether a typed buffer instruction loads, and how many components it has: `_x` to `_xyzw`. Those of 16-bit data have
/// none: how they round is not documented.
pub(crate) fn shape(opcode: Opcode) -> Option<(bool, usize)> {
    Some(match opcode {
        Opcode::BUFFER_LOAD_FORMAT_X | Opcode::TBUFFER_LOAD_FORMAT_X => (true, 1),
        Opcode::BUFFER_LOAD_FORMAT_XY | Opcode::TBUFFER_LOAD_FORMAT_XY => (true, 2),
        Opcode::BUFFER_LOAD_FORMAT_XYZ | Opcode::TBUFFER_LOAD_FORMAT_XYZ => (true, 3),
        Opcode::BUFFER_LOAD_FORMAT_XYZW | Opcode::TBUFFER_LOAD_FORMAT_XYZW => (true, 4),
        Opcode::BUFFER_STORE_FORMAT_X | Opcode::TBUFFER_STORE_FORMAT_X => (false, 1),
        Opcode::BUFFER_STORE_FORMAT_XY | Opcode::TBUFFER_STORE_FORMAT_XY => (false, 2),
        Opcode::BUFFER_STORE_FORMAT_XYZ | Opcode::TBUFFER_STORE_FORMAT_XYZ => (false, 3),
        Opcode::BUFFER_STORE_FORMAT_XYZW | Opcode::TBUFFER_STORE_FORMAT_XYZW => (false, 4),
        _ => return None,
    })
}

fn components(op: &Op) -> usize {
    shape(op.inst.opcode()).map_or(0, |(_, components)| components)
}

fn data(op: &Op) -> ExecResult<Reg> {
    match op.inst.operand(Role::Vdata).and_then(Operand::reg) {
        Some(reg) => Ok(reg),
        None => undefined("a typed buffer instruction without data"),
    }
}

fn load(core: &mut Core, op: &Op) -> ExecResult {
    let (format, select) = format(core, op)?;
    let (wanted, dst, size) = (components(op), data(op)?, format.bytes());
    let places = places_of(core, op, Extent { bytes: size as u64, whole: true, format: true })?;
    order(core, op, true, ANYWHERE)?;
    core.writing(op, dst.file, dst.first, wanted as u16)?;
    let mask = core.wave.exec();
    count(core, &places, mask, size);
    for lane in active(mask) {
        let mut bytes = [0; 16];
        at_lane(read_place(core, lane, places[lane], &mut bytes[..size], MemoryAccess::Load), lane)?;
        let element = u128::from_le_bytes(bytes);
        for (n, select) in select.into_iter().enumerate().take(wanted) {
            let value = match select {
                0 => Some(0),
                // Out of range all is 0 but what the descriptor says is 1 (ISA guides, "Range checking").
                4..=7 if places[lane] == LanePlace::Nowhere => Some(0),
                1 => Some(format.absent(3)),
                from @ 4..=7 if (from as usize) - 4 < format.widths.len() => format.load(element, from as usize - 4),
                from @ 4..=7 => Some(format.absent(from as usize - 4)),
                _ => None,
            };
            let Some(value) = value else { return undefined("a component of a typed buffer") };
            core.file(dst.file)[usize::from(dst.first) + n][lane] = value;
        }
    }
    issue_load(core, op, (dst.file, dst.first, wanted as u16));
    Ok(())
}

fn store(core: &mut Core, op: &Op) -> ExecResult {
    let (format, select) = format(core, op)?;
    let (given, src, size) = (components(op), data(op)?, format.bytes());
    // How other formats round and saturate is not documented exactly.
    if format.widths.iter().any(|&width| width != 32)
        || given < format.widths.len()
        || (0..format.widths.len()).any(|n| select[n] != 4 + n as u32)
    {
        return undefined(
            "a store to a typed buffer whose format is not of 32-bit components, all of them and in their order",
        );
    }
    let places = places_of(core, op, Extent { bytes: size as u64, whole: true, format: true })?;
    core.reading(op, src.file, src.first, given as u16)?;
    order(core, op, true, ANYWHERE)?;
    let mask = core.wave.exec();
    count(core, &places, mask, size);
    issue_store(core, op);
    for lane in active(mask) {
        let mut bytes = [0; 16];
        for n in 0..format.widths.len() {
            let word = core.file(src.file)[usize::from(src.first) + n][lane];
            bytes[4 * n..4 * n + 4].copy_from_slice(&word.to_le_bytes());
        }
        at_lane(write_place(core, lane, places[lane], &bytes[..size], MemoryAccess::Store), lane)?;
    }
    Ok(())
}

/// The meaning of a typed buffer instruction.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    let (loads, _) = shape(opcode)?;
    Some((if loads { load } else { store }, Semantics::Own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_by_number() {
        let target = |name| Target::by_name(name).unwrap();
        // Data format 9 and number format 4; format 42 of gfx10.
        assert_eq!(Format::numbered(target("gfx900"), 0x49), Format::parse("2_10_10_10_UINT"));
        assert_eq!(Format::numbered(target("gfx1030"), 22), Format::parse("32_FLOAT"));
        assert_eq!(Format::numbered(target("gfx900"), 0x40), None);
        let format = Format::parse("2_10_10_10_UINT").unwrap();
        assert_eq!((format.bytes(), format.load(0xc000_0005, 0), format.load(0xc000_0005, 3)), (4, Some(5), Some(3)));
    }

    #[test]
    fn components_as_numbers() {
        let load = |name: &str, element: u128| f32::from_bits(Format::parse(name).unwrap().load(element, 0).unwrap());
        assert_eq!(load("8_UNORM", 255), 1.0);
        assert_eq!((load("8_SNORM", 0x80), load("8_SNORM", 0x81)), (-1.0, -1.0));
        assert_eq!(load("16_SSCALED", 0xfffe), -2.0);
        assert_eq!(load("16_16_FLOAT", 0x3e00), 1.5);
        assert_eq!(load("10_11_11_FLOAT", 0x3c0), 1.0, "exponent 15, no fraction");
        assert_eq!(Format::parse("8_SINT").unwrap().load(0xff, 0), Some(u32::MAX));
    }
}
