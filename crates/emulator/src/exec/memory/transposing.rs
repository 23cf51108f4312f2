//! Loads of numbers of 4, 6, 8 and 16 bits for matrix instructions: each lane loads its own bytes, then the lanes of
//! a group exchange them, so that a lane has what is across the rows that were loaded.
//!
//! On gfx950 the 16 lanes of a group have rows of 16 numbers, one after the other, and lane n gets column n: with 16
//! bits a lane has a quarter of a row, with 8 bits half of it, else all of it. So AMD's rocRoller tests it on
//! hardware (`TransposeLoadsTest`, all four sizes); AMD's emulator (rocm-systems, rocjitsu) agrees on 16 and 8 bits,
//! and has what is not checked on others. gfx12 loads a row of eight numbers of 16 bits into each of 8 lanes, and
//! gives each lane a column: rocjitsu and IREE agree on that. What happens to lanes that are off is said of gfx1250
//! alone, and only in one place: with such lanes they are refused, as is gfx12 in wave64. gfx950 wants addresses
//! that are aligned (CDNA4 ISA guide, 11.4; 6 bits: to 16 bytes, rocRoller).

use wavetap_amdgpu::{Inst, Opcode, Reg};

use super::lds;
use super::vmem;
use crate::fault::stop::{Step, undefined};
use crate::lanes::{LANES, active};
use crate::op::registers::slot;
use crate::op::{Meaning, Op, Semantics};
use crate::shadow::init_shadow::Known;
use crate::state::core::Core;

/// Registers that a lane loads at most.
const MOST: usize = 4;

type Rows = [[u32; LANES]; MOST];

/// Which lane gets which numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    /// Of a number.
    bits: usize,
    /// Of a lane.
    bytes: u8,
    /// Lanes that exchange numbers: as many as a row has numbers.
    group: usize,
    /// What addresses are a multiple of, 0 where nothing is said.
    alignment: u64,
}

impl Layout {
    const fn new(bits: usize, bytes: u8, group: usize, alignment: u64) -> Option<Layout> {
        Some(Layout { bits, bytes, group, alignment })
    }

    fn of(opcode: Opcode) -> Option<Layout> {
        match opcode {
            Opcode::DS_READ_B64_TR_B4 => Self::new(4, 8, 16, 8),
            Opcode::DS_READ_B96_TR_B6 => Self::new(6, 12, 16, 16),
            Opcode::DS_READ_B64_TR_B8 => Self::new(8, 8, 16, 8),
            Opcode::DS_READ_B64_TR_B16 => Self::new(16, 8, 16, 8),
            Opcode::DS_LOAD_TR16_B128 | Opcode::GLOBAL_LOAD_TR16_B128 | Opcode::GLOBAL_LOAD_TR_B128 => {
                Self::new(16, 16, 8, 0)
            }
            _ => None,
        }
    }

    fn words(self) -> usize {
        usize::from(self.bytes) / 4
    }

    /// The registers of the lanes after the exchange.
    fn exchange(self, loaded: &Rows, lanes: usize) -> Rows {
        let mut result = [[0; LANES]; MOST];
        let of_lane = 8 * usize::from(self.bytes) / self.bits;
        for place in 0..lanes * of_lane {
            // Number n of the lane's column is in row n.
            let (lane, n) = (place / of_lane, place % of_lane);
            let at = self.group * n + lane % self.group;
            let from = lane / self.group * self.group + at / of_lane;
            let number = field(loaded, from, at % of_lane * self.bits, self.bits);
            let (word, shift) = (n * self.bits / 32, n * self.bits % 32);
            result[word][lane] |= (number << shift) as u32;
            if shift + self.bits > 32 {
                result[word + 1][lane] |= (number << shift >> 32) as u32;
            }
        }
        result
    }
}

/// A lane's number at a bit.
fn field(rows: &Rows, lane: usize, at: usize, bits: usize) -> u64 {
    let word = |n: usize| rows.get(n).map_or(0, |row| u64::from(row[lane]));
    (word(at / 32) | word(at / 32 + 1) << 32) >> (at % 32) & ((1 << bits) - 1)
}

fn from_lds(core: &mut Core, op: &Op) -> Step {
    load(core, op, |core, op, layout| {
        let offset = lds::single_offset(op);
        if layout.alignment != 0 {
            let exec = core.wave.exec();
            let addresses = lds::addresses(core, op)?;
            if let Some(lane) = active(exec).find(|&lane| !(addresses[lane] + offset).is_multiple_of(layout.alignment))
            {
                let (name, at) = (op.inst.name(), addresses[lane] + offset);
                return undefined(format!(
                    "{name} at {at:#x} in lane {lane}, which is no multiple of {}",
                    layout.alignment
                ));
            }
        }
        lds::read_elements(core, op, &[offset], layout.bytes.into())
    })
}

fn from_memory(core: &mut Core, op: &Op) -> Step {
    load(core, op, |core, op, _| vmem::load(core, op))
}

fn load(core: &mut Core, op: &Op, each: impl Fn(&mut Core, &Op, Layout) -> Step) -> Step {
    let Some(layout) = Layout::of(op.inst.opcode()) else { return undefined("meaning") };
    let lanes = usize::from(op.inst.wave_size);
    if core.wave.exec() != u64::MAX >> (LANES - lanes) {
        return undefined(format!("{} with lanes that are off", op.inst.name()));
    }
    let Some(dst) = op.dst else { return undefined("a load without destination") };
    each(core, op, layout)?;
    let registers = &mut core.file(dst.file)[usize::from(dst.first)..usize::from(dst.first) + layout.words()];
    let mut loaded = [[0_u32; LANES]; MOST];
    for (copy, register) in loaded.iter_mut().zip(registers.iter()) {
        *copy = register.0;
    }
    for (register, row) in registers.iter_mut().zip(layout.exchange(&loaded, lanes)) {
        register.0 = row;
    }
    Ok(())
}

/// Undefined bits go with the numbers that they are of, once each lane has those that it loaded.
pub(crate) fn exchange_undefined(known: &mut Known, inst: &Inst, dst: Option<Reg>) {
    let (Some(layout), Some(dst)) = (Layout::of(inst.opcode()), dst) else { return };
    let first = slot(dst.file, dst.first);
    let slots = first..first + layout.words();
    if slots.clone().all(|slot| known.lanes(slot) == 0) {
        return;
    }
    let mut loaded = [[0; LANES]; MOST];
    for (row, slot) in loaded.iter_mut().zip(slots.clone()) {
        *row = std::array::from_fn(|lane| known.vector(slot).get(lane));
    }
    // Whatever is undefined has come with one of the registers.
    let origin = slots.clone().find(|&slot| known.lanes(slot) != 0).map(|slot| known.origin(slot));
    for (row, slot) in layout.exchange(&loaded, inst.wave_size.into()).iter().zip(slots) {
        (0..usize::from(inst.wave_size)).for_each(|lane| known.vector_mut(slot).set(lane, row[lane]));
        if let Some(origin) = origin {
            known.set_origin(slot, origin);
        }
    }
}

/// The meaning of such a load.
pub(crate) fn meaning(opcode: Opcode, inst: &Inst) -> Option<Meaning> {
    let layout = Layout::of(opcode)?;
    let semantics = Semantics::Load { bytes: layout.bytes, signed: false, d16: None };
    match opcode {
        Opcode::GLOBAL_LOAD_TR16_B128 | Opcode::GLOBAL_LOAD_TR_B128 if inst.wave_size == 32 => {
            Some((from_memory, semantics))
        }
        Opcode::GLOBAL_LOAD_TR16_B128 | Opcode::GLOBAL_LOAD_TR_B128 => None,
        _ => Some((from_lds, semantics)),
    }
}
