//! One wave in the middle of an instruction: access to its registers with every check strict mode makes.

use wavetap_amdgpu::{Counter, Half, RegFile, WaitStates, print, scalar};

use super::barrier::Barrier;
use super::fp_mode::{GPR_IDX_EN, VSKIP};
use super::op::Op;
use super::random::Random;
use super::wave::Wave;
use super::work::WorkRows;
use crate::address::CodeAddress;
use crate::address::aperture::{FLAT_SCRATCH_BASE, LANES_APERTURE, PRIVATE_APERTURE, SHARED_APERTURE};
use crate::fault::FaultKind;
use crate::fault::MemoryAccess;
use crate::fault::findings::FindingKind;
use crate::fault::overrun::{Beyond, Overrun};
use crate::fault::stop::{ExecResult, at_lane, stop, undefined};
use crate::lanes::{LANES, Lanes, Register, Registers, Row, active};
use crate::launch::Launch;
use crate::memory::View;
use crate::op::registers::register_name;
use crate::op::semantics::{Source, Ty};
use crate::shadow::global::GlobalRaces;
use crate::shadow::global::note::GlobalNote;
use crate::shadow::group_checks::counts_stores;
use crate::shadow::races::How;
use crate::shadow::races::access::LaneAccess;
use crate::shadow::races::lds_row::LdsRow;
use crate::trace::{DispatchStats, Visit};

/// Megahertz of the constant clock.
const CONSTANT_MHZ: u64 = 100;

/// A wave that is executing an instruction.
pub(crate) struct Core<'a> {
    pub memory: &'a View<'a>,
    pub lds: &'a mut [u8],
    pub wave: &'a mut Wave,
    pub launch: &'a Launch,
    pub random: &'a mut Random,
    pub stats: &'a mut DispatchStats,
    /// The shader clock.
    pub clock: &'a mut u64,
    pub barrier: &'a mut Barrier,
    pub work: &'a mut WorkRows,
    /// The accesses of global memory, where races there are checked.
    pub races: Option<&'a mut GlobalRaces>,
}

impl Core<'_> {
    /// If the instruction that was just run went past the end of an allocation or of LDS, within what the hardware
    /// allocates, notes that once.
    #[inline]
    pub(crate) fn note_overrun(&mut self, op: &Op) {
        if self.memory.has_overrun() {
            self.keep_overrun(op);
        }
    }

    /// The clock of constant frequency.
    pub(crate) fn constant_clock(&self) -> u64 {
        let mhz = self.launch.clock_mhz;
        *self.clock / mhz * CONSTANT_MHZ + *self.clock % mhz * CONSTANT_MHZ / mhz
    }

    /// Notes when the wave executes an instruction.
    #[cold]
    pub(crate) fn note_visit(&mut self, op: &Op) {
        let vector = op.inst.reads().find(|reg| reg.file == RegFile::Vector);
        let vector = vector.and_then(|reg| self.wave.vgpr.get(usize::from(reg.first)));
        self.stats.visits.push(Visit {
            vector: vector.map_or_else(Vec::new, |register| register.0.to_vec()),
            workgroup: self.wave.group_id,
            wave: self.wave.index,
            place: CodeAddress { object: op.object, address: op.address },
            exec: self.wave.exec(),
            cycle: *self.clock,
        });
    }

    #[cold]
    fn keep_overrun(&mut self, op: &Op) {
        let Some(found) = self.memory.take_overrun() else { return };
        let place = CodeAddress { object: op.object, address: op.address };
        if self.stats.has_overrun_at(place) {
            return;
        }
        self.stats.add_overrun(&Overrun { place, instruction: print(self.launch.target, &op.inst).into(), ..found });
    }
}

impl Core<'_> {
    /// The place in LDS of an access at an offset, or why there is none. What is past the end of the workgroup's LDS
    /// and within its last allocation unit is noted.
    pub(crate) fn lds_place(&self, offset: u64, size: usize) -> Result<usize, FaultKind> {
        let Launch { lds_size, .. } = *self.launch;
        match offset.checked_add(size as u64) {
            Some(end) if end <= u64::from(lds_size) => Ok(offset as usize),
            // Outside strict mode there are whole units.
            Some(end) if end <= self.lds.len() as u64 => {
                let beyond = Beyond::Lds { requested: lds_size, allocated: self.lds.len() as u32 };
                self.memory.note_overrun(offset, size, beyond);
                Ok(offset as usize)
            }
            _ => Err(FaultKind::LdsBounds {
                // The instruction is not known here: who reports it does.
                access: MemoryAccess::Load,
                offset,
                size: size as u32,
                allocated: lds_size,
            }),
        }
    }

    /// Whether the wave passes over vector instructions.
    #[inline]
    pub(crate) fn skips_vectors(&self) -> bool {
        // Later targets have another bit there.
        self.wave.mode & VSKIP != 0 && self.launch.wait_states != WaitStates::None
    }

    /// Checks that a run of registers may be read now by this instruction.
    pub(crate) fn reading(&mut self, op: &Op, file: RegFile, first: u16, count: u16) -> ExecResult {
        self.reading_half(op, file, first, count, Half::Whole)
    }

    /// [`Core::reading`] of what a memory instruction stores.
    pub(crate) fn reading_data(&mut self, op: &Op, file: RegFile, first: u16, count: u16) -> ExecResult {
        self.reading_half(op, file, first, count, op.data_half)
    }

    fn reading_half(&mut self, op: &Op, file: RegFile, first: u16, count: u16, half: Half) -> ExecResult {
        self.bounds(file, first, count)?;
        if self.launch.strict {
            if let Some(origins) = &mut self.wave.origins {
                origins.reads.push((file, first, count));
            }
            let Wave { in_flight, hazards, .. } = &*self.wave;
            if !in_flight.are_free(file, first, count) || hazards.looks_at_reads(op, self.launch, file) {
                for index in first..first + count {
                    let waited = self.wave.in_flight.check_read(file, index, half);
                    self.passed(waited)?;
                    let safe = self.wave.hazards.check_read(op, self.launch, file, index);
                    self.passed(safe)?;
                }
            }
        }
        Ok(())
    }

    /// Checks that a run of registers may be written now by this instruction, and notes that it is.
    pub(crate) fn writing(&mut self, op: &Op, file: RegFile, first: u16, count: u16) -> ExecResult {
        self.writing_half(op, file, first, count, Half::Whole)
    }

    /// [`Core::writing`] of what a memory instruction loads.
    pub(crate) fn writing_data(&mut self, op: &Op, file: RegFile, first: u16, count: u16) -> ExecResult {
        self.writing_half(op, file, first, count, op.data_half)
    }

    fn writing_half(&mut self, op: &Op, file: RegFile, first: u16, count: u16, half: Half) -> ExecResult {
        self.bounds(file, first, count)?;
        if self.launch.strict {
            if let Some(origins) = &mut self.wave.origins {
                origins.writes.push((file, first, count));
            }
            let Wave { in_flight, hazards, .. } = &*self.wave;
            if !in_flight.are_free(file, first, count) || hazards.looks_at_writes(op, file) {
                for index in first..first + count {
                    let waited = self.wave.in_flight.check_write(op, file, index, half);
                    self.passed(waited)?;
                    let safe = self.wave.hazards.check_write(op, self.launch, file, index);
                    self.passed(safe)?;
                }
            }
            self.wave.hazards.note_writes(op, self.launch, file, (first, count));
            let whole = if self.launch.lanes == 32 { 1 } else { 2 };
            if file == RegFile::Scalar && first <= scalar::VCC && first + count >= scalar::VCC + whole {
                self.wave.hazards.note_vcc();
            }
        }
        Ok(())
    }

    fn bounds(&self, file: RegFile, first: u16, count: u16) -> ExecResult {
        // What M0 adds to a number may be anything.
        let end = first.saturating_add(count);
        let allocated = match file {
            RegFile::Vector => self.wave.vgpr.len() as u16,
            RegFile::Accum => self.wave.agpr.len() as u16,
            // FLAT_SCRATCH, VCC and what follows are there whatever is allocated.
            RegFile::Scalar if first >= scalar::FLAT_SCRATCH => 128,
            RegFile::Scalar => self.wave.sgpr_count,
        };
        if end > allocated {
            let index = allocated.max(first);
            return stop(FaultKind::RegisterBounds {
                register: register_name(file, index).into(),
                allocated: u32::from(allocated),
            });
        }
        Ok(())
    }

    /// A scalar by operand code.
    pub(crate) fn scalar(&mut self, op: &Op, code: u16) -> ExecResult<u32> {
        // Outside strict mode a register that is there may be read.
        if !self.launch.strict && code < self.wave.sgpr_count {
            return Ok(self.wave.sgpr[usize::from(code)]);
        }
        if code == scalar::NULL {
            return Ok(0);
        }
        if code < 128 {
            self.reading(op, RegFile::Scalar, code, 1)?;
            return Ok(self.wave.sgpr[usize::from(code)]);
        }
        Ok(match code {
            // The apertures are in the high halves of these 64-bit values.
            scalar::SHARED_BASE..=239 => 0,
            // Scratch by flat addresses: see `vector_memory`.
            FLAT_SCRATCH_BASE if self.launch.target.has_flat_scratch_base() => 0,
            231 if self.launch.target.has_flat_scratch_base() => LANES_APERTURE,
            scalar::VCCZ => u32::from(self.wave.mask(scalar::VCC) == 0),
            scalar::EXECZ => u32::from(self.wave.exec() == 0),
            scalar::SCC => u32::from(self.wave.scc),
            _ => return undefined(format!("read of scalar operand {code}")),
        })
    }

    /// A 64-bit scalar by the code of its low half.
    pub(crate) fn scalar64(&mut self, op: &Op, code: u16) -> ExecResult<u64> {
        if !self.launch.strict && code.saturating_add(1) < self.wave.sgpr_count {
            return Ok(self.wave.pair(code));
        }
        if code == scalar::NULL {
            return Ok(0);
        }
        if code < 127 {
            self.reading(op, RegFile::Scalar, code, 2)?;
            return Ok(self.wave.pair(code));
        }
        let aperture = |base: u32, limit: bool| u64::from(base) << 32 | if limit { 0xffff_ffff } else { 0 };
        Ok(match code {
            FLAT_SCRATCH_BASE if self.launch.target.has_flat_scratch_base() => aperture(LANES_APERTURE, false),
            235 => aperture(SHARED_APERTURE, false),
            236 => aperture(SHARED_APERTURE, true),
            237 => aperture(PRIVATE_APERTURE, false),
            238 => aperture(PRIVATE_APERTURE, true),
            code => u64::from(self.scalar(op, code)?),
        })
    }

    pub(crate) fn set_scalar(&mut self, op: &Op, code: u16, value: u32) -> ExecResult {
        if !self.launch.strict && code < self.wave.sgpr_count {
            self.wave.sgpr[usize::from(code)] = value;
            return Ok(());
        }
        if code >= 128 {
            return undefined(format!("write of scalar operand {code}"));
        }
        if code == scalar::NULL {
            return Ok(());
        }
        self.writing(op, RegFile::Scalar, code, 1)?;
        self.wave.sgpr[usize::from(code)] = value;
        Ok(())
    }

    /// A lane mask: one scalar register in wave32, two in wave64.
    pub(crate) fn mask(&mut self, op: &Op, code: u16) -> ExecResult<u64> {
        if self.launch.lanes == 32 { Ok(self.scalar(op, code)?.into()) } else { self.scalar64(op, code) }
    }

    /// Writes a lane mask.
    pub(crate) fn set_mask(&mut self, op: &Op, code: u16, mask: u64) -> ExecResult {
        if self.launch.lanes == 32 { self.set_scalar(op, code, mask as u32) } else { self.set_scalar64(op, code, mask) }
    }

    pub(crate) fn set_scalar64(&mut self, op: &Op, code: u16, value: u64) -> ExecResult {
        if code >= 127 {
            return undefined(format!("64-bit write of scalar operand {code}"));
        }
        if code == scalar::NULL {
            return Ok(());
        }
        self.writing(op, RegFile::Scalar, code, 2)?;
        self.wave.set_pair(code, value);
        Ok(())
    }

    /// The register number with `s_set_gpr_idx` applied; `position` is 0-2 for sources and 3 for the destination.
    pub(crate) fn indexed(&self, register: u16, position: u8) -> u16 {
        let m0 = self.wave.sgpr[usize::from(scalar::M0)];
        if self.wave.mode & GPR_IDX_EN != 0 && m0 >> (12 + position) & 1 != 0 {
            register + (m0 & 0xff) as u16
        } else {
            register
        }
    }

    /// A source operand of every lane.
    pub(crate) fn lanes(&mut self, op: &Op, source: Source, ty: Ty, position: u8) -> ExecResult<Lanes> {
        let wide = ty.dwords() == 2;
        match source {
            Source::Vector(first) => {
                let first = self.indexed(first, position);
                self.reading(op, RegFile::Vector, first, u16::from(ty.dwords()))?;
                Ok(join(&self.wave.vgpr, first, wide))
            }
            Source::Accum(first) => {
                self.reading(op, RegFile::Accum, first, u16::from(ty.dwords()))?;
                Ok(join(&self.wave.agpr, first, wide))
            }
            Source::Scalar(code) if ty == Ty::Mask => {
                let mask = self.mask(op, code)?;
                Ok(std::array::from_fn(|lane| mask >> lane & 1))
            }
            Source::Scalar(code) if wide => Ok([self.scalar64(op, code)?; LANES]),
            Source::Scalar(code) => Ok([u64::from(self.scalar(op, code)?); LANES]),
            Source::Const(bits) if ty == Ty::Mask => Ok(std::array::from_fn(|lane| bits >> lane & 1)),
            Source::Const(bits) => Ok([bits; LANES]),
            Source::None => Ok([0; LANES]),
            Source::LdsDirect => {
                let m0 = self.scalar(op, scalar::M0)?;
                let at = self.lds_place((m0 & 0xffff).into(), 4).or_else(stop)?;
                let bytes = [self.lds[at], self.lds[at + 1], self.lds[at + 2], self.lds[at + 3]];
                Ok([u64::from(u32::from_le_bytes(bytes)); LANES])
            }
        }
    }

    /// Writes 32- or 64-bit results of the lanes in `mask`.
    pub(crate) fn set_lanes(&mut self, op: &Op, first: u16, wide: bool, values: &Lanes, mask: u64) -> ExecResult {
        let first = self.indexed(first, 3);
        self.writing(op, RegFile::Vector, first, if wide { 2 } else { 1 })?;
        let at = usize::from(first);
        for lane in active(mask) {
            self.wave.vgpr[at][lane] = values[lane] as u32;
        }
        if wide {
            for lane in active(mask) {
                self.wave.vgpr[at + 1][lane] = (values[lane] >> 32) as u32;
            }
        }
        Ok(())
    }

    /// What is in a run of registers; the caller has called [`Core::reading`].
    pub(crate) fn rows(&mut self, file: RegFile, first: u16, count: u16) -> Vec<Row> {
        self.file(file)[usize::from(first)..usize::from(first + count)].iter().map(|register| register.0).collect()
    }

    /// The VGPR or AGPRs, for writing; the caller has called [`Core::writing`].
    pub(crate) fn file(&mut self, file: RegFile) -> &mut Registers {
        if file == RegFile::Accum { &mut self.wave.agpr } else { &mut self.wave.vgpr }
    }
}

impl Core<'_> {
    /// A wait for at most `allowed` operations of a counter: results become usable, stores visible.
    pub(crate) fn wait_for(&mut self, counter: Counter, allowed: u32) -> ExecResult {
        if !self.launch.strict {
            return Ok(());
        }
        self.wave.in_flight.wait(counter as usize, allowed);
        at_lane(self.wave.in_flight.publish(None, false, self.memory, self.lds), 0)?;
        let Core { wave, barrier, memory, lds, launch, .. } = self;
        if let (Some(races), Some(group), 0) = (&mut self.races, barrier.checks.group, allowed)
            && !launch.apart
            && counts_stores(launch, counter)
        {
            races.order.waited(group, wave.index);
        }
        let waited = (wave.index, &wave.in_flight);
        at_lane(barrier.checks.after_wait(waited, launch, (counter, allowed), memory, lds), 0)
    }
}

fn join(registers: &[Box<Register>], first: u16, wide: bool) -> Lanes {
    let at = usize::from(first);
    if wide {
        std::array::from_fn(|lane| u64::from(registers[at][lane]) | u64::from(registers[at + 1][lane]) << 32)
    } else {
        std::array::from_fn(|lane| u64::from(registers[at][lane]))
    }
}

impl Core<'_> {
    /// Notes what all lanes of an instruction do to LDS that makes no other note: the places of each element, and
    /// whether they are in a row.
    pub(crate) fn note_row<'a>(
        &mut self,
        (mask, size): (u64, usize),
        places: impl ExactSizeIterator<Item = (&'a [u32; LANES], bool)>,
        from: Option<[(RegFile, u16); 2]>,
    ) {
        let row = self.wave.checks.row.get_or_insert_with(|| Box::new(LdsRow::NONE));
        (row.mask, row.size, row.elements, row.from) = (mask, size, places.len(), from);
        for (n, (places, in_a_row)) in places.enumerate() {
            (row.places[n], row.in_a_row[n]) = (*places, in_a_row);
        }
    }

    /// The result of a check: what it has found is noted, and does not stop the wave, if the dispatch is to go on after
    /// it.
    #[inline]
    pub(crate) fn passed(&self, checked: ExecResult) -> ExecResult {
        checked.or_else(|stop| {
            let checks = &self.wave.checks;
            let goes_on = FindingKind::of(&stop.kind).is_some_and(|kind| self.launch.passes.allow(kind, checks.at));
            if !goes_on {
                return Err(stop);
            }
            checks.found.borrow_mut().push(*stop);
            Ok(())
        })
    }

    /// What an access of a lane gave; none where it is out of bounds and the dispatch goes on without it.
    #[inline]
    pub(crate) fn of_lane<T>(&self, result: Result<T, FaultKind>, lane: usize) -> ExecResult<Option<T>> {
        match result {
            Ok(given) => Ok(Some(given)),
            Err(kind) => self.passed(at_lane(Err(kind), lane)).map(|()| None),
        }
    }

    /// Notes an access of global memory by a lane.
    #[inline]
    pub(crate) fn note_global(&mut self, lane: usize, address: u64, size: usize, how: How) {
        if self.races.is_some() && size > 0 {
            let note = GlobalNote { lane: lane as u8, size: size as u8, address, how };
            self.wave.checks.global.lanes.push(note);
        }
    }

    /// Notes a store of bytes to global memory by a lane.
    #[inline]
    pub(crate) fn note_global_store(&mut self, lane: usize, address: u64, bytes: &[u8]) {
        if self.races.is_some() {
            let value = bytes.iter().rev().fold(0, |value, &byte| value << 8 | u128::from(byte));
            self.note_global(lane, address, bytes.len(), How::Write(value));
        }
    }

    /// Notes an access of a lane.
    pub(crate) fn note(&mut self, access: LaneAccess) {
        if self.launch.strict {
            self.wave.checks.accesses.push(access);
        }
    }
}
