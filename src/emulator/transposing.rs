//! Loads of 16-bit numbers for matrix instructions: each lane loads its own bytes, then the lanes of a group exchange them, so that a lane has what is across the
//! rows that were loaded.
//!
//! gfx950 loads a column of four numbers into each of 16 lanes, four lanes one below the other, and gives each lane a row of the 16; gfx12 loads a row of eight
//! into each of 8 lanes, and gives each lane a column. Both are what AMD's own emulator (rocm-systems, rocjitsu) and who generates such code (Triton for gfx950,
//! IREE for gfx1250) agree on. What happens to lanes that are off is said of gfx1250 alone, and only in one place: with such lanes they are refused, as is
//! gfx12 in waves of 64.

use crate::isa::Inst;

use super::core::{Core, LANES, Step, undefined};
use super::op::{Meaning, Op, Semantics};
use super::{lds, vector_memory};

/// Registers that a lane loads at most.
const MOST: usize = 4;

fn from_lds(core: &mut Core, op: &Op) -> Step {
    load(core, op, |core, op, size| lds::read_elements(core, op, &[lds::single_offset(op)], size))
}

fn from_memory(core: &mut Core, op: &Op) -> Step {
    load(core, op, |core, op, _| vector_memory::load(core, op))
}

fn load(core: &mut Core, op: &Op, each: impl Fn(&mut Core, &Op, usize) -> Step) -> Step {
    let Semantics::Load { bytes, .. } = op.semantics else { return undefined("meaning") };
    let lanes = usize::from(op.inst.wave_size);
    let words = usize::from(bytes) / 4;
    if core.wave.exec() != u64::MAX >> (LANES - lanes) {
        return undefined(format!("{} with lanes that are off", op.inst.name()));
    }
    let Some(dst) = op.dst else { return undefined("a load without destination") };
    each(core, op, bytes.into())?;
    let registers = &mut core.file(dst.file)[usize::from(dst.first)..usize::from(dst.first) + words];
    let mut loaded = [[0_u32; LANES]; MOST];
    for (copy, register) in loaded.iter_mut().zip(registers.iter()) {
        *copy = register.0;
    }
    let half = |lane: usize, half: usize| loaded[half / 2][lane] >> (16 * (half % 2)) & 0xffff;
    for lane in 0..lanes {
        let number = |n: usize| match words {
            // Lanes 4n.. of the group have column n.
            2 => half((lane & !15) + 4 * n + (lane >> 2 & 3), lane & 3),
            _ => half((lane & !7) + n, lane & 7),
        };
        for (n, register) in registers.iter_mut().enumerate() {
            register[lane] = number(2 * n) | number(2 * n + 1) << 16;
        }
    }
    Ok(())
}

/// The meaning of such a load.
pub(super) fn meaning(name: &str, inst: &Inst) -> Option<Meaning> {
    let semantics = |bytes| Semantics::Load { bytes, signed: false, d16: None };
    Some(match name {
        "ds_read_b64_tr_b16" => (from_lds, semantics(8)),
        "ds_load_tr16_b128" => (from_lds, semantics(16)),
        "global_load_tr16_b128" | "global_load_tr_b128" if inst.wave_size == 32 => (from_memory, semantics(16)),
        _ => return None,
    })
}
