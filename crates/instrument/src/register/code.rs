//! The code that counts in registers, and that at a kernel's entry and ends.

use super::locations::{CounterLocation, CounterLocations};
use crate::asm::{Asm, Global, c, s, s2, v, v2};
use crate::frame::entry::Entry;
use crate::frame::first_vector::Sequence;
use crate::hazard_mitigation::Place;
use crate::placement::{Increment, Job, Measure};
use crate::scavenge::registers::Vectors;
use crate::scavenge::scalars::Scavenged;
use wavetap_amdgpu::{Opcode, Reg, Target, Value, scalar};
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::edit::Snippet;
use wavetap_analysis::kernel::{Body, Reason, Refusal, Stop};
use wavetap_base::error::{Error, Result};
use wavetap_profile::control;
use wavetap_profile::record::{BEGAN, COUNTER};

/// Wait states before a lane is read: the original code may just have written EXEC (4, gfx94x).
const ENTER_STATES: i64 = 4;
/// Wait states after a scalar register that a vector instruction wrote (2, gfx94x: before it is put into a lane).
const LANE_STATES: i64 = 2;
/// Wait states after a scalar register that a vector instruction wrote, until any original instruction may read it (5:
/// vector memory).
const LEAVE_STATES: i64 = 5;
/// Lanes of spilled values: those of scalar registers, then EXEC across an instruction that writes it.
const EXEC_LANE: u32 = 8;

/// What all code of a kernel agrees on.
#[derive(Debug)]
pub(super) struct RegisterFrame {
    pub(super) target: Target,
    /// Address of the control block.
    pub(super) control: u64,
    /// Scalar registers that no original code names, if there are enough.
    pub(super) reserved: Option<Reserved>,
    /// Where there are not: a vector register for the values of those that are scavenged.
    pub(super) spills: Option<u16>,
    pub(super) locations: CounterLocations,
}

/// Scalar registers that inserted code has for good.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reserved {
    /// Pair: the address of the records, 0 if nothing is to be counted. Loaded at the entry, first read at the end.
    pub(super) record: u16,
    pub(super) temporaries: Temporaries,
}

/// Scalar registers of a snippet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Temporaries {
    /// Pair: EXEC across an instruction where it is reserved, and a number of lanes.
    mask: u16,
    /// A lane's value.
    scratch: u16,
    saved_scc: u16,
}

impl Temporaries {
    /// Takes each from `take`, which is told how many in a row and with which alignment.
    pub(super) fn take(mut take: impl FnMut(u16, u16) -> Result<u16, Refusal>) -> Result<Temporaries, Refusal> {
        let [mask, pair] = [take(2, 2)?, take(2, 2)?];
        Ok(Temporaries { mask, scratch: pair, saved_scc: pair + 1 })
    }
}

impl Reserved {
    /// See [`Temporaries::take`].
    pub(super) fn take(mut take: impl FnMut(u16, u16) -> Result<u16, Refusal>) -> Result<Reserved, Refusal> {
        Ok(Reserved { record: take(2, 2)?, temporaries: Temporaries::take(take)? })
    }
}

impl RegisterFrame {
    /// A register for whoever has to save SCC.
    pub(super) fn spare(&self) -> Option<u16> {
        self.reserved.map(|reserved| reserved.temporaries.saved_scc)
    }

    /// The scalar registers that no original code names.
    pub(super) fn own(&self) -> RegSet {
        let reserved = self.reserved.into_iter().flat_map(|Reserved { record, temporaries }| {
            [record, temporaries.mask, temporaries.scratch].map(|first| Reg::scalar(first, 2))
        });
        let bits = self.locations.bits.map(|(mask, _)| Reg::scalar(mask, (self.target.wave_size() / 32) as u8));
        reserved.chain(bits).chain(self.locations.registers().map(|register| Reg::scalar(register, 1))).collect()
    }

    /// One more than the highest vector register that is taken for good.
    pub(super) fn vectors_end(&self) -> u32 {
        self.locations.vectors_end().max(self.spills.map_or(0, |spills| u32::from(spills) + 1))
    }

    /// How many records a dispatch has.
    pub(super) fn slots(&self) -> u32 {
        self.target.wave_place().map_or(1, |place| 1 << place.bits)
    }

    fn location(&self, measure: &Measure) -> Result<CounterLocation> {
        self.locations.of(measure).ok_or_else(|| Error::internal("a measure without a place"))
    }

    /// The code at the entry. The temporaries hold nothing there.
    pub(super) fn prologue(&self, first: Sequence, temporaries: Temporaries, entry: &Entry) -> Result<Snippet> {
        let mut asm = Asm::new(self.target, Place::Entry(self.own()));
        first.into_iter().for_each(|inst| asm.copy(inst));
        let Temporaries { mask, scratch, .. } = temporaries;
        let (exec, saved) = (asm.exec(), asm.mask(mask));
        if !self.locations.vectors.is_empty() {
            asm.masks("s_mov_b", &[saved, exec])?;
            asm.exec_lanes(self.target.wave_size())?;
            for (register, _) in &self.locations.vectors {
                asm.op("v_mov_b32_e32", &[v(*register), c(0)])?;
            }
            asm.masks("s_mov_b", &[exec, saved])?;
        }
        if let Some(Reserved { record, .. }) = self.reserved {
            self.load_record(&mut asm, record, mask)?;
        }
        if let Some((mask, _)) = self.locations.bits {
            let mask = asm.mask(mask);
            asm.masks("s_mov_b", &[mask, c(1)])?;
        }
        let mut registers: Vec<u16> = self.locations.registers().collect();
        registers.sort_unstable();
        let mut rest = registers.as_slice();
        while let [register, more @ ..] = rest {
            match more {
                [next, more @ ..] if register.is_multiple_of(2) && *next == register + 1 => {
                    asm.op("s_mov_b64", &[s2(*register), c(0)])?;
                    rest = more;
                }
                _ => {
                    asm.op("s_mov_b32", &[s(*register), c(0)])?;
                    rest = more;
                }
            }
        }
        match self.locations.of(&Measure::EntryLanes) {
            Some(CounterLocation::Scalar(register, _)) => asm.masks("s_bcnt1_i32_b", &[s(register), exec])?,
            Some(CounterLocation::Lane((register, lane), _)) => {
                asm.masks("s_bcnt1_i32_b", &[s(scratch), exec])?;
                asm.op("v_writelane_b32", &[v(self.locations.vectors[register].0), s(scratch), c(lane)])?;
            }
            Some(CounterLocation::Bit(_) | CounterLocation::AtEnd(_)) => {
                return Err(Error::internal("lanes in a place of another kind"));
            }
            None => {}
        }
        entry.load_arguments(&mut asm)?;
        asm.finish()
    }

    /// Begins to load the address of the records.
    fn load_record(&self, asm: &mut Asm, record: u16, temporary: u16) -> Result<()> {
        asm.address(temporary, self.control);
        asm.scalar_load("s_load_dwordx2", record, 2, temporary, control::BUFFER as u32)
    }

    /// The code at a point, with scalar registers that are reserved or scavenged there.
    pub(super) fn snippet(
        &self,
        jobs: &[Job],
        body: &Body,
        keeps_scc: bool,
        scavenged: &Scavenged<Temporaries>,
    ) -> Result<Snippet> {
        let Temporaries { mask, scratch, saved_scc } = scavenged.registers;
        let mut asm = Asm::new(self.target, Place::Middle(self.own()));
        self.spill(&mut asm, scavenged)?;
        let keeps_scc = keeps_scc && jobs.iter().any(|job| self.destroys_scc(*job));
        if keeps_scc {
            asm.op("s_cselect_b32", &[s(saved_scc), c(1), c(0)])?;
        }
        let reads_lane = jobs.iter().any(|job| {
            job.measure().is_some_and(|measure| matches!(self.locations.of(&measure), Some(CounterLocation::Lane(..))))
        });
        if reads_lane {
            asm.states(ENTER_STATES)?;
        }
        let saved = asm.mask(mask);
        for job in jobs {
            let reads_saved = matches!(job, Job::AllOn(_, None) | Job::Empty(_, None));
            if reads_saved && self.reserved.is_none() {
                self.read_saved_exec(&mut asm, mask)?;
            }
            if let Job::Lanes(measure) = job
                && !measure.is_wide()
            {
                self.set_lanes(&mut asm, measure, scratch)?;
                continue;
            }
            let increment = job.increment(&mut asm, body, saved, mask)?;
            match (job.measure(), increment) {
                (Some(measure), Some(increment)) => self.count(&mut asm, &measure, increment, scratch)?,
                _ if self.reserved.is_some() => {
                    let exec = asm.exec();
                    asm.masks("s_mov_b", &[saved, exec])?;
                }
                _ => self.save_exec(&mut asm)?,
            }
        }
        if keeps_scc {
            asm.op("s_cmp_lg_u32", &[s(saved_scc), c(0)])?;
        }
        self.unspill(&mut asm, scavenged)?;
        asm.finish()
    }

    /// Whether the code of a job destroys SCC.
    fn destroys_scc(&self, job: Job) -> bool {
        let is_bit = |measure| matches!(self.locations.of(&measure), Some(CounterLocation::Bit(_)));
        job.measure().is_some_and(|measure| !is_bit(measure))
    }

    /// Counts the active lanes where a wave is once at most: there is nothing to add them to. Destroys SCC.
    fn set_lanes(&self, asm: &mut Asm, measure: &Measure, scratch: u16) -> Result<()> {
        let exec = asm.exec();
        match self.location(measure)? {
            CounterLocation::Scalar(low, None) => asm.masks("s_bcnt1_i32_b", &[s(low), exec]),
            CounterLocation::Lane((register, lane), None) => {
                asm.masks("s_bcnt1_i32_b", &[s(scratch), exec])?;
                asm.op("v_writelane_b32", &[v(self.locations.vectors[register].0), s(scratch), c(lane)])?;
                // A lane that was just written is not read at once (gfx94x).
                asm.states(1)
            }
            _ => Err(Error::internal("lanes in a place of another kind")),
        }
    }

    /// Puts EXEC where [`RegisterFrame::read_saved_exec`] finds it.
    fn save_exec(&self, asm: &mut Asm) -> Result<()> {
        let spills = self.spills()?;
        asm.states(ENTER_STATES)?;
        // In wave32 the high half is not used.
        for half in 0..2 {
            let lane = c(EXEC_LANE + u32::from(half));
            asm.op("v_writelane_b32", &[v(spills), s(scalar::EXEC + half), lane])?;
        }
        Ok(())
    }

    fn read_saved_exec(&self, asm: &mut Asm, into: u16) -> Result<()> {
        let spills = self.spills()?;
        asm.states(ENTER_STATES)?;
        for half in 0..2 {
            let lane = c(EXEC_LANE + u32::from(half));
            asm.op("v_readlane_b32", &[s(into + half), v(spills), lane])?;
        }
        asm.states(LANE_STATES)
    }

    fn spills(&self) -> Result<u16> {
        self.spills.ok_or_else(|| Error::internal("no vector register for what is scavenged"))
    }

    /// Puts the values of scavenged registers that are needed again into lanes.
    fn spill(&self, asm: &mut Asm, scavenged: &Scavenged<Temporaries>) -> Result<()> {
        if scavenged.wait {
            asm.wait_scalar_loads()?;
        }
        if scavenged.live.is_empty() {
            return Ok(());
        }
        let spills = self.spills()?;
        asm.states(ENTER_STATES)?;
        for (lane, register) in (0..).zip(&scavenged.live) {
            asm.op("v_writelane_b32", &[v(spills), s(*register), c(lane)])?;
        }
        Ok(())
    }

    /// Puts them back.
    fn unspill(&self, asm: &mut Asm, scavenged: &Scavenged<Temporaries>) -> Result<()> {
        if scavenged.live.is_empty() {
            return Ok(());
        }
        let spills = self.spills()?;
        // A lane that was just written is not read at once (gfx94x).
        asm.states(1)?;
        for (lane, register) in (0..).zip(&scavenged.live) {
            asm.op("v_readlane_b32", &[s(*register), v(spills), c(lane)])?;
        }
        asm.states(LEAVE_STATES)
    }

    /// Adds to a counter. Destroys SCC.
    fn count(&self, asm: &mut Asm, measure: &Measure, increment: Increment, scratch: u16) -> Result<()> {
        let location = self.location(measure)?;
        if let (CounterLocation::Bit(bit), Some((mask, _))) = (location, self.locations.bits) {
            let (half, bit) = ((bit / 32) as u16, bit % 32);
            return asm.op("s_bitset1_b32", &[s(mask + half), c(bit)]);
        }
        self.update(asm, location, scratch, |asm, low| match increment {
            Increment::One => asm.op("s_add_u32", &[s(low), s(low), c(1)]),
            Increment::OriginalScc | Increment::Scc => asm.op("s_addc_u32", &[s(low), s(low), c(0)]),
            Increment::Scalar(register) => asm.op("s_add_u32", &[s(low), s(low), s(register)]),
        })
    }

    /// Lets `add` add to the low half of a counter, and the carry to its high half.
    fn update(
        &self,
        asm: &mut Asm,
        location: CounterLocation,
        scratch: u16,
        add: impl FnOnce(&mut Asm, u16) -> Result<()>,
    ) -> Result<()> {
        let carry = |asm: &mut Asm, high: u16| asm.op("s_addc_u32", &[s(high), s(high), c(0)]);
        match location {
            CounterLocation::Scalar(low, high) => {
                add(asm, low)?;
                high.map_or(Ok(()), |high| carry(asm, high))
            }
            CounterLocation::Bit(_) | CounterLocation::AtEnd(_) => {
                Err(Error::internal("an addition in a place of another kind"))
            }
            CounterLocation::Lane(low, high) => {
                self.update_lane(asm, low, scratch, add)?;
                high.map_or(Ok(()), |high| self.update_lane(asm, high, scratch, carry))
            }
        }
    }

    fn update_lane(
        &self,
        asm: &mut Asm,
        (register, lane): (usize, u32),
        value: u16,
        update: impl FnOnce(&mut Asm, u16) -> Result<()>,
    ) -> Result<()> {
        let vector = v(self.locations.vectors[register].0);
        asm.op("v_readlane_b32", &[s(value), vector, c(lane)])?;
        update(asm, value)?;
        asm.states(LANE_STATES)?;
        asm.op("v_writelane_b32", &[vector, s(value), c(lane)])?;
        // A lane that was just written is not read at once (gfx94x).
        asm.states(1)
    }

    /// The code before the end of a wave, where loads into `pending` registers are outstanding and `slow` ones may not
    /// have their results yet. Also tells one more than the highest vector register that it uses.
    ///
    /// It keeps EXEC where `keep_exec` says that an instruction after it takes that for something it reads.
    pub(super) fn epilogue(
        &self,
        pending: &RegSet,
        slow: &RegSet,
        record_bytes: u32,
        keep_exec: bool,
        reserved: Reserved,
    ) -> Result<(Snippet, u32), Stop> {
        let (vectors, waits) = match self.vectors_at_end(&pending.union(*slow)) {
            Some(vectors) => (vectors, false),
            // After a call of an unknown function, loads may be outstanding into any.
            None => (self.vectors_at_end(slow).ok_or_else(none_free)?, true),
        };
        let mut asm = Asm::new(self.target, Place::End(self.own()));
        let done = asm.new_label();
        let Reserved { record, temporaries: Temporaries { mask, scratch, .. } } = reserved;
        let (exec, saved) = (asm.exec(), asm.mask(mask));
        if waits {
            asm.wait_all_loads()?
        } else {
            asm.wait_scalar_loads()?
        };
        if self.reserved.is_none() {
            self.load_record(&mut asm, record, mask)?;
            asm.wait_scalar_loads()?;
        }
        asm.op("s_cmp_eq_u64", &[s2(record), c(0)])?;
        asm.branch(Opcode::S_CBRANCH_SCC1, done);
        if keep_exec {
            asm.masks("s_mov_b", &[saved, exec])?;
        }
        let lanes = self.target.wave_size();
        let (data, address) = (vectors.data, vectors.address);
        // How many waves began and finished is one number with two halves, before the first counter; bits follow.
        let bits = self.locations.bit_count();
        let scalars = self.locations.scalars.iter().map(|(low, high)| Counted::Value(s(*low), high.map(s)));
        let compared = self.locations.compared.iter().map(|(before, after)| Counted::Same(*before, *after));
        let began = [Counted::Value(c(1), Some(c(1)))].into_iter();
        let all: Vec<Counted> = began.chain((0..bits).map(|_| Counted::Bit)).chain(scalars).chain(compared).collect();
        let in_lanes = self.locations.vectors.iter().map(|(_, used)| *used);
        let most = in_lanes.chain([(all.len() as u32).min(lanes)]).max().unwrap_or(lanes);
        let global = Global { base: record, offsets: address, flat: vectors.flat, scratch };
        let mut to = Destination { at: 0, active: 0, data, global };
        to.activate(&mut asm, most)?;
        self.addresses(&mut asm, most, record_bytes, global)?;
        for (number, run) in all.chunks(lanes as usize).enumerate() {
            to.activate(&mut asm, run.len() as u32)?;
            asm.op("v_mov_b32_e32", &[v(data + 1), c(0)])?;
            let set = match self.locations.bits.filter(|_| number == 0) {
                Some((mask, bits)) => {
                    let mask = asm.mask(mask);
                    asm.op("v_cndmask_b32_e64", &[v(data), c(0), c(1), mask])?;
                    0..bits + 1
                }
                None => 0..0,
            };
            for (lane, counted) in (0..).zip(run) {
                let (low, high) = match *counted {
                    Counted::Bit => continue,
                    Counted::Value(low, high) => (low, high),
                    Counted::Same(before, after) => {
                        let [before, after] = [(before, scratch), (after, scratch + 1)]
                            .map(|(measure, into)| self.read_number(&mut asm, measure, into));
                        asm.op("s_cmp_eq_u32", &[before?, after?])?;
                        asm.op("s_cselect_b32", &[s(scratch), c(1), c(0)])?;
                        (s(scratch), None)
                    }
                };
                if !set.contains(&lane) {
                    asm.op("v_writelane_b32", &[v(data), low, c(lane)])?;
                }
                if let Some(high) = high {
                    asm.op("v_writelane_b32", &[v(data + 1), high, c(lane)])?;
                }
            }
            to.add(&mut asm, run.len() as u32)?;
        }
        for (register, used) in &self.locations.vectors {
            to.activate(&mut asm, *used)?;
            asm.op("v_mov_b32_e32", &[v(data), v(*register)])?;
            asm.op("v_mov_b32_e32", &[v(data + 1), c(0)])?;
            to.add(&mut asm, *used)?;
        }
        if keep_exec {
            asm.masks("s_mov_b", &[exec, saved])?;
        }
        asm.bind(done);
        Ok((asm.finish()?, vectors.end()))
    }

    /// A counter that has no high half, read into a register if it is in none.
    fn read_number(&self, asm: &mut Asm, measure: Measure, into: u16) -> Result<Value> {
        match self.location(&measure)? {
            CounterLocation::Scalar(low, None) => Ok(s(low)),
            CounterLocation::Lane((register, lane), None) => {
                asm.states(ENTER_STATES)?;
                asm.op("v_readlane_b32", &[s(into), v(self.locations.vectors[register].0), c(lane)])?;
                asm.states(LANE_STATES)?;
                Ok(s(into))
            }
            _ => Err(Error::internal("a number of lanes in a place of another kind")),
        }
    }

    /// Computes where in the records the first counters of each active lane are, of so many; moves the base where lanes
    /// have no offsets of that size.
    fn addresses(&self, asm: &mut Asm, lanes: u32, record_bytes: u32, global: Global) -> Result<()> {
        let Global { base, offsets, scratch, .. } = global;
        let place = self.target.wave_place();
        if let Some(place) = place {
            asm.op("s_getreg_b32", &[s(scratch), Value::Imm(place.operand())])?;
            asm.op("s_mul_i32", &[s(scratch), s(scratch), c(record_bytes)])?;
        }
        asm.op("v_mbcnt_lo_u32_b32", &[v(offsets), Value::InlineInt(-1), c(0)])?;
        if lanes > 32 {
            asm.op("v_mbcnt_hi_u32_b32", &[v(offsets), Value::InlineInt(-1), v(offsets)])?;
        }
        let shift = c(COUNTER.ilog2());
        let adds = wavetap_amdgpu::has_operation(self.target, Opcode::V_LSHL_ADD_U32);
        match place {
            Some(_) if adds => asm.op("v_lshl_add_u32", &[v(offsets), v(offsets), shift, s(scratch)]),
            Some(_) => {
                asm.op("s_add_u32", &[s(base), s(base), s(scratch)])?;
                asm.op("s_addc_u32", &[s(base + 1), s(base + 1), c(0)])?;
                asm.op("v_lshlrev_b32_e32", &[v(offsets), shift, v(offsets)])
            }
            None => asm.op("v_lshlrev_b32_e32", &[v(offsets), shift, v(offsets)]),
        }
    }

    /// Vector registers at the end of a wave: the original needs none any more.
    fn vectors_at_end(&self, taken: &RegSet) -> Option<Vectors> {
        let own = self.locations.vectors.iter().map(|(register, _)| *register).chain(self.spills);
        let own: RegSet = own.map(|register| Reg::vector(register, 1)).collect();
        let mut taken = taken.union(own);
        Vectors::take(self.target, 0, |count, align| {
            let is_free = |first: &u16| !taken.overlaps(Reg::vector(*first, count as u8));
            let first = (0..256 - count).step_by(align.into()).find(is_free)?;
            taken.insert(Reg::vector(first, count as u8));
            Some(first)
        })
    }
}

/// A counter when the wave ends.
#[derive(Debug, Clone, Copy)]
enum Counted {
    /// A bit of the mask.
    Bit,
    /// A number: low and high half.
    Value(Value, Option<Value>),
    /// Whether two others are the same.
    Same(Measure, Measure),
}

fn none_free() -> Refusal {
    Refusal::new(Reason::VectorRegisters, "no vector registers are free at the end of a wave")
}

/// Where in the record the next counters go.
struct Destination {
    /// Counters that are there already.
    at: u32,
    /// The lowest lanes that EXEC has; 0 where that is not known.
    active: u32,
    data: u16,
    global: Global,
}

impl Destination {
    /// Sets EXEC to the lowest lanes.
    fn activate(&mut self, asm: &mut Asm, lanes: u32) -> Result<()> {
        if std::mem::replace(&mut self.active, lanes) == lanes { Ok(()) } else { asm.exec_lanes(lanes) }
    }

    /// Adds the lowest so many lanes of the data to as many counters.
    fn add(&mut self, asm: &mut Asm, count: u32) -> Result<()> {
        let offset = BEGAN + self.at * COUNTER;
        let Global { base, .. } = self.global;
        if offset > asm.largest_global_offset() {
            asm.op("s_add_u32", &[s(base), s(base), c(offset)])?;
            asm.op("s_addc_u32", &[s(base + 1), s(base + 1), c(0)])?;
            asm.global("atomic_add_x2", self.global, v2(self.data), 0)?;
            asm.op("s_sub_u32", &[s(base), s(base), c(offset)])?;
            asm.op("s_subb_u32", &[s(base + 1), s(base + 1), c(0)])?;
        } else {
            asm.global("atomic_add_x2", self.global, v2(self.data), offset)?;
        }
        self.at += count;
        Ok(())
    }
}
