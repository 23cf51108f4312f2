//! Undefined bits that go through LDS and scratch, and to memory that others see.
//!
//! LDS and scratch have a shadow bit for each bit, as Memcheck has for memory: 1 is undefined, and all are at first. A
//! store copies the shadow of its data, a load copies it back, whatever the sizes of both; what an atomic leaves has
//! the undefined bits of memory and of its data. Global memory has no shadow: it counts as defined, so undefined data
//! is reported when it is stored there, unless some byte of the lane's data is wholly defined (the rest may be
//! padding).

use wavetap_amdgpu::{Flags, OpcodeFlags, Operand, RegFile, Role};

use super::transposed;
use super::undefined::report;
use crate::fault::stop::ExecResult;
use crate::lanes::{LANES, active};
use crate::op::Class;
use crate::op::registers::slot;
use crate::op::semantics::Semantics;
use crate::shadow::init_shadow::Stored;
use crate::shadow::races::How;
use crate::shadow::races::access::LaneAccess;
use crate::shadow::races::lds_row::LdsRow;
use crate::shadow::wave_checks::WaveChecks;
use crate::state::core::Core;
use crate::state::op::Op;

/// The undefined bits of bytes that an access touches, those of a dword together.
fn bits_of(core: &Core, access: &LaneAccess, word: usize, bytes: usize) -> u32 {
    let at = access.at as usize + 4 * word;
    let lane = usize::from(access.lane);
    let scratch = |at: usize| core.wave.checks.init_shadow.scratch(at as u32).map_or(u32::MAX, |bits| bits.get(lane));
    if access.scratch && at.is_multiple_of(4) && bytes == 4 {
        return scratch(at);
    }
    if !access.scratch && bytes == 4 {
        let undefined = core.barrier.checks.lds.get(at..).and_then(|rest| rest.first_chunk());
        return undefined.map_or(0, |bytes| u32::from_le_bytes(*bytes));
    }
    (0..bytes).fold(0, |all, n| {
        let at = at + n;
        let byte = if access.scratch {
            scratch(at & !3) >> (8 * (at % 4)) & 0xff
        } else {
            u32::from(core.barrier.checks.lds.get(at).copied().unwrap_or(0))
        };
        all | byte << (8 * n)
    })
}

fn set_bits(core: &mut Core, access: &LaneAccess, word: usize, bytes: usize, bits: u32) {
    let at = access.at as usize + 4 * word;
    let lane = usize::from(access.lane);
    if !access.scratch && bytes == 4 {
        if let Some(place) = core.barrier.checks.lds.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
            *place = bits.to_le_bytes();
        }
        return;
    }
    for n in 0..bytes {
        let (at, byte) = (at + n, bits >> (8 * n) & 0xff);
        if access.scratch {
            let shift = 8 * (at % 4);
            let shadow = core.wave.checks.init_shadow.scratch_mut((at & !3) as u32);
            if at % 4 == 0 && bytes - n >= 4 {
                shadow.set(lane, bits);
                return;
            }
            shadow.set(lane, shadow.get(lane) & !(0xff << shift) | byte << shift);
        } else if let Some(place) = core.barrier.checks.lds.get_mut(at) {
            *place = byte as u8;
        }
    }
}

/// The first slot of the registers with an operand's data.
fn data(op: &Op, role: Role) -> Option<usize> {
    op.inst
        .operand(role)
        .and_then(Operand::reg)
        .filter(|reg| reg.file != RegFile::Scalar)
        .map(|reg| slot(reg.file, reg.first))
}

/// Takes undefined bits along what an instruction has read and written.
pub(crate) fn values(core: &mut Core, op: &Op, accesses: &[LaneAccess]) {
    if core.barrier.checks.lds.is_empty() && accesses.iter().any(|access| !access.scratch) {
        core.barrier.checks.lds = vec![0xff; core.lds.len()];
    }
    if op.inst.is_any(OpcodeFlags::BLOCK) {
        // Which registers M0 chooses is not followed: what was written is defined.
        for access in accesses {
            set_bits(core, access, 0, 4, 0);
        }
        return;
    }
    let sources = match op.class {
        Class::Lds => [data(op, Role::Data0), data(op, Role::Data1)],
        _ => [data(op, Role::Vdata), None],
    };
    let to = op.dst.filter(|reg| reg.file != RegFile::Scalar).map(|reg| slot(reg.file, reg.first));
    let high = op.inst.is_any(OpcodeFlags::D16_HI);
    for access in accesses {
        let words = usize::from(access.size).div_ceil(4);
        for word in 0..words {
            let bytes = (usize::from(access.size) - 4 * word).min(4);
            let register = usize::from(access.element) * words + word;
            match access.how {
                How::Read => load(core, op, access, (word, bytes), to.map(|to| to + register)),
                How::Write(_) => {
                    let from = sources[usize::from(access.element).min(1)].or(sources[0]);
                    let bits = from.map_or(0, |from| {
                        core.wave.checks.init_shadow.vector(from + word).get(usize::from(access.lane))
                    });
                    note_stored(core, op, access, word, from.filter(|_| bits != 0));
                    set_bits(core, access, word, bytes, if high { bits >> 16 } else { bits });
                }
                How::Atomic => {
                    load(core, op, access, (word, bytes), to.map(|to| to + register));
                    let from = sources[0].map_or(0, |from| {
                        core.wave.checks.init_shadow.vector(from + word).get(usize::from(access.lane))
                    });
                    note_stored(core, op, access, word, sources[0].filter(|_| from != 0));
                    let bits = bits_of(core, access, word, bytes) | from;
                    set_bits(core, access, word, bytes, bits);
                }
            }
        }
    }
    transposed::exchange_group(&mut core.wave.checks.init_shadow, &op.inst, op.dst);
    transposed::exchange_wave(&mut core.wave.checks.init_shadow, &op.inst, op.dst);
}

/// Notes where undefined bits that are stored come from: from the register with the word, by the slot of the first.
fn note_stored(core: &mut Core, op: &Op, access: &LaneAccess, word: usize, from: Option<usize>) {
    let Some(from) = from else { return };
    let stored = Stored::new(op.address, core.wave.checks.init_shadow.origin(from + word));
    let at = access.at + 4 * word as u32;
    if access.scratch {
        core.wave.checks.init_shadow.note_stored(at, stored);
    } else {
        core.barrier.checks.note_stored(at, stored);
    }
}

/// [`values`] of LDS accesses of which all bits are defined: false, and nothing done, if there are others.
pub(crate) fn row_is_defined(core: &mut Core, row: &LdsRow) -> bool {
    let Core { barrier, wave, launch, lds, .. } = core;
    let bits = &mut barrier.checks.lds;
    if bits.is_empty() {
        *bits = vec![0xff; lds.len()];
    }
    let exec = wave.exec();
    let mut places = row.places[..row.elements].iter().zip(row.in_a_row);
    let bytes = |places: &[u32; LANES], lane: usize| places[lane] as usize..places[lane] as usize + row.size;
    let all = |places: &[u32; LANES]| places[0] as usize..places[0] as usize + launch.lanes * row.size;
    let Some(from) = row.from else {
        // Whole registers are defined since the instruction began: only the bits of LDS are checked.
        let is_known = |range: std::ops::Range<usize>| {
            bits.get(range).is_some_and(|bits| bits.iter().fold(0, |all, bits| all | bits) == 0)
        };
        return places.all(|(places, in_a_row)| match in_a_row {
            true => is_known(all(places)),
            false => active(row.mask).all(|lane| is_known(bytes(places, lane))),
        });
    };
    let is_defined = |(file, first): (RegFile, u16)| {
        (0..row.words()).all(|n| wave.checks.init_shadow.lanes(slot(file, first) + n) & exec == 0)
    };
    if !from[..row.elements].iter().copied().all(is_defined) {
        return false;
    }
    for (places, in_a_row) in places {
        let mut set = |range: std::ops::Range<usize>| bits.get_mut(range).into_iter().for_each(|bits| bits.fill(0));
        match in_a_row {
            true => set(all(places)),
            false => active(row.mask).for_each(|lane| set(bytes(places, lane))),
        }
    }
    true
}

impl WaveChecks {
    /// Takes undefined bits along what all lanes of a mask load into registers from a place in their scratch, or store
    /// there, from the slot of the first on. As [`values`] of the [`LaneAccess`] that each of them makes; a load has
    /// left nothing undefined in its registers.
    pub(crate) fn note_scratch(&mut self, op: &Op, (mask, at, words): (u64, u32, usize), first: usize, stores: bool) {
        self.in_scratch = true;
        for (n, register) in (first..first + words).enumerate() {
            let place = at + 4 * n as u32;
            let (memory, register) = self.init_shadow.scratch_and_vector(place, register);
            let (to, from) = if stores { (memory, register) } else { (register, memory) };
            to.lanes &= !mask;
            let undefined = from.lanes & mask;
            for lane in active(undefined) {
                to.set(lane, from.get(lane));
            }
            if undefined == 0 || !active(undefined).any(|lane| from.get(lane) != 0) {
                continue;
            }
            if stores {
                let stored = Stored::new(op.address, self.init_shadow.origin(first + n));
                self.init_shadow.note_stored(place, stored);
            } else {
                let origin = self.init_shadow.origin_in_scratch(place, op.address);
                self.init_shadow.set_origin(first + n, origin);
            }
        }
    }
}

/// A word of memory comes into a register.
fn load(core: &mut Core, op: &Op, access: &LaneAccess, (word, bytes): (usize, usize), to: Option<usize>) {
    let Some(to) = to else { return };
    let lane = usize::from(access.lane);
    let mut bits = bits_of(core, access, word, bytes);
    let old = core.wave.checks.init_shadow.vector(to).get(lane);
    if let Semantics::Load { signed, d16, .. } = op.semantics {
        if signed && bytes < 4 && bits >> (8 * bytes - 1) & 1 != 0 {
            bits |= u32::MAX << (8 * bytes);
        }
        bits = match d16 {
            None => bits,
            Some(false) => old & 0xffff_0000 | bits & 0xffff,
            Some(true) => old & 0xffff | bits << 16,
        };
    }
    if bits != old {
        core.wave.checks.init_shadow.vector_mut(to).set(lane, bits);
    }
    if bits != 0 {
        let at = access.at + 4 * word as u32;
        let origin = match access.scratch {
            true => core.wave.checks.init_shadow.origin_in_scratch(at, op.address),
            false => core.barrier.checks.origin_in_lds(at, op.address),
        };
        core.wave.checks.init_shadow.set_origin(to, origin);
    }
}

/// A store or atomic to memory that others see: no lane may have data of which no byte is wholly defined.
pub(crate) fn stores(core: &Core, op: &Op, accesses: &[LaneAccess]) -> ExecResult {
    let (size, high) = match (op.class, op.semantics) {
        (Class::Vmem, Semantics::Store { bytes, high }) => (usize::from(bytes), high),
        (Class::Vmem, Semantics::Atomic { bytes, .. }) => (usize::from(bytes), false),
        (Class::Vmem, _) if op.inst.variant.image.is_some() && op.inst.variant.flags.contains(Flags::STORE) => {
            (4 * op.imm(Role::Dmask).count_ones() as usize, false)
        }
        _ => return Ok(()),
    };
    let Some(first) = data(op, Role::Vdata) else { return Ok(()) };
    let words = size.div_ceil(4);
    let shadow = &core.wave.checks.init_shadow;
    let selected = (first..first + words).filter(|at| shadow.origin(*at).is_selected());
    let selected = selected.fold(0, |lanes, at| lanes | shadow.lanes(at));
    let all = (first..first + words).fold(u64::MAX, |lanes, at| lanes & shadow.lanes(at));
    let lanes = core.wave.exec() & (all | selected);
    if lanes == 0 {
        return Ok(());
    }
    let elsewhere = accesses.iter().fold(0, |lanes, access| lanes | 1_u64 << access.lane);
    for lane in active(lanes & !elsewhere) {
        // Those are in the shadow of memory, too.
        if (first..first + words).all(|at| shadow.origin(at).is_moved_from_memory()) {
            continue;
        }
        let is_undefined = |n: usize| {
            let shift = 8 * (n % 4) + if high { 16 } else { 0 };
            shadow.vector(first + n / 4).get(lane) >> shift & 0xff != 0
        };
        let is_selected = |at: usize| shadow.lanes(at) >> lane & 1 != 0 && shadow.origin(at).is_selected();
        if (0..size).all(is_undefined) || (first..first + words).any(is_selected) {
            return report(core, first, "data for memory that others see", Some(lane as u8));
        }
    }
    Ok(())
}
