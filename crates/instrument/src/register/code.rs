//! The code that counts in registers, and that at a kernel's entry and ends.

use super::locations::{CounterLocation, CounterLocations};
use crate::asm::{Asm, Global, c, s, s2, v, v2};
use crate::frame::first_vector::Sequence;
use crate::hazard_mitigation::Place;
use crate::placement::{Increment, Job, Measure};
use crate::scavenge::registers::Vectors;
use wavetap_amdgpu::{Opcode, Reg, Target, Value};
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

/// What all code of a kernel agrees on.
#[derive(Debug)]
pub(super) struct RegisterFrame {
    pub(super) target: Target,
    /// Address of the control block.
    pub(super) control: u64,
    /// Pair: the address of the records, 0 if nothing is to be counted. Loaded at the entry, first read at the end.
    pub(super) record: u16,
    /// Pair: EXEC across an instruction, and a number of lanes.
    pub(super) mask: u16,
    /// Two registers: a lane's value, and SCC.
    pub(super) scratch: u16,
    pub(super) locations: CounterLocations,
}

impl RegisterFrame {
    /// The register in which SCC is saved.
    pub(super) fn saved_scc(&self) -> u16 {
        self.scratch + 1
    }

    /// The scalar registers that no original code names.
    fn own(&self) -> RegSet {
        let pairs = [self.record, self.mask, self.scratch].map(|first| Reg::scalar(first, 2));
        pairs.into_iter().chain(self.locations.registers().map(|register| Reg::scalar(register, 1))).collect()
    }

    /// How many records a dispatch has.
    pub(super) fn slots(&self) -> u32 {
        self.target.wave_place().map_or(1, |place| 1 << place.bits)
    }

    fn location(&self, measure: &Measure) -> Result<CounterLocation> {
        self.locations.of(measure).ok_or_else(|| Error::internal("a measure without a place"))
    }

    /// The code at the entry.
    pub(super) fn prologue(&self, first: Sequence) -> Result<Snippet> {
        let mut asm = Asm::new(self.target, Place::Entry(self.own()));
        first.into_iter().for_each(|inst| asm.copy(inst));
        let (exec, saved) = (asm.exec(), asm.mask(self.mask));
        if !self.locations.vectors.is_empty() {
            asm.masks("s_mov_b", &[saved, exec])?;
            asm.exec_lanes(self.target.wave_size())?;
            for (register, _) in &self.locations.vectors {
                asm.op("v_mov_b32_e32", &[v(*register), c(0)])?;
            }
            asm.masks("s_mov_b", &[exec, saved])?;
        }
        asm.address(self.mask, self.control);
        asm.scalar_load("s_load_dwordx2", self.record, 2, self.mask, control::BUFFER as u32)?;
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
                asm.masks("s_bcnt1_i32_b", &[s(self.scratch), exec])?;
                asm.op("v_writelane_b32", &[v(self.locations.vectors[register].0), s(self.scratch), c(lane)])?;
            }
            None => {}
        }
        asm.finish()
    }

    /// The code at a point.
    pub(super) fn snippet(&self, jobs: &[Job], body: &Body, keeps_scc: bool) -> Result<Snippet> {
        let mut asm = Asm::new(self.target, Place::Middle(self.own()));
        let keeps_scc = keeps_scc && jobs.iter().any(|job| *job != Job::SaveExec);
        if keeps_scc {
            asm.op("s_cselect_b32", &[s(self.saved_scc()), c(1), c(0)])?;
        }
        let reads_lane = jobs.iter().any(|job| {
            job.measure().is_some_and(|measure| matches!(self.locations.of(&measure), Some(CounterLocation::Lane(..))))
        });
        if reads_lane {
            asm.states(ENTER_STATES)?;
        }
        let saved = asm.mask(self.mask);
        for job in jobs {
            let increment = job.increment(&mut asm, body, saved, self.mask)?;
            match (job.measure(), increment) {
                (Some(measure), Some(increment)) => self.count(&mut asm, &measure, increment)?,
                _ => {
                    let exec = asm.exec();
                    asm.masks("s_mov_b", &[saved, exec])?;
                }
            }
        }
        if keeps_scc {
            asm.op("s_cmp_lg_u32", &[s(self.saved_scc()), c(0)])?;
        }
        asm.finish()
    }

    /// Adds to a counter. Destroys SCC.
    fn count(&self, asm: &mut Asm, measure: &Measure, increment: Increment) -> Result<()> {
        let location = self.location(measure)?;
        self.update(asm, location, |asm, low| match increment {
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
        add: impl FnOnce(&mut Asm, u16) -> Result<()>,
    ) -> Result<()> {
        let carry = |asm: &mut Asm, high: u16| asm.op("s_addc_u32", &[s(high), s(high), c(0)]);
        match location {
            CounterLocation::Scalar(low, high) => {
                add(asm, low)?;
                high.map_or(Ok(()), |high| carry(asm, high))
            }
            CounterLocation::Lane(low, high) => {
                self.update_lane(asm, low, add)?;
                high.map_or(Ok(()), |high| self.update_lane(asm, high, carry))
            }
        }
    }

    fn update_lane(
        &self,
        asm: &mut Asm,
        (register, lane): (usize, u32),
        update: impl FnOnce(&mut Asm, u16) -> Result<()>,
    ) -> Result<()> {
        let (vector, value) = (v(self.locations.vectors[register].0), self.scratch);
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
    ) -> Result<(Snippet, u32), Stop> {
        let (vectors, waits) = match self.vectors_at_end(&pending.union(*slow)) {
            Some(vectors) => (vectors, false),
            // After a call of an unknown function, loads may be outstanding into any.
            None => (self.vectors_at_end(slow).ok_or_else(none_free)?, true),
        };
        let mut asm = Asm::new(self.target, Place::End(self.own()));
        let done = asm.new_label();
        let (exec, saved) = (asm.exec(), asm.mask(self.mask));
        if waits {
            asm.wait_all_loads()?
        } else {
            asm.wait_scalar_loads()?
        };
        asm.op("s_cmp_eq_u64", &[s2(self.record), c(0)])?;
        asm.branch(Opcode::S_CBRANCH_SCC1, done);
        if keep_exec {
            asm.masks("s_mov_b", &[saved, exec])?;
        }
        if let Some(place) = self.target.wave_place() {
            asm.op("s_getreg_b32", &[s(self.scratch), Value::Imm(place.operand())])?;
            asm.op("s_mul_i32", &[s(self.scratch), s(self.scratch), c(record_bytes)])?;
            asm.op("s_add_u32", &[s(self.record), s(self.record), s(self.scratch)])?;
            asm.op("s_addc_u32", &[s(self.record + 1), s(self.record + 1), c(0)])?;
        }
        let lanes = self.target.wave_size();
        let (data, address) = (vectors.data, vectors.address);
        asm.exec_lanes(lanes)?;
        asm.op("v_mbcnt_lo_u32_b32", &[v(address), Value::InlineInt(-1), c(0)])?;
        if lanes == 64 {
            asm.op("v_mbcnt_hi_u32_b32", &[v(address), Value::InlineInt(-1), v(address)])?;
        }
        asm.op("v_lshlrev_b32_e32", &[v(address), c(COUNTER.ilog2()), v(address)])?;
        let mut to = Destination { at: 0, lanes, data, global: self.global(&vectors) };
        // How many waves began and finished is one number with two halves, before the first counter.
        let began: (Value, Option<Value>) = (c(1), Some(c(1)));
        let scalars = self.locations.scalars.iter().map(|(low, high)| (s(*low), high.map(s)));
        let all: Vec<(Value, Option<Value>)> = std::iter::once(began).chain(scalars).collect();
        for run in all.chunks(lanes as usize) {
            asm.exec_lanes(lanes)?;
            asm.op("v_mov_b32_e32", &[v(data + 1), c(0)])?;
            for (lane, (low, high)) in (0..).zip(run) {
                asm.op("v_writelane_b32", &[v(data), *low, c(lane)])?;
                if let Some(high) = high {
                    asm.op("v_writelane_b32", &[v(data + 1), *high, c(lane)])?;
                }
            }
            to.add(&mut asm, run.len() as u32)?;
        }
        for (register, used) in &self.locations.vectors {
            asm.exec_lanes(lanes)?;
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

    fn global(&self, vectors: &Vectors) -> Global {
        Global { base: self.record, offsets: vectors.address, flat: vectors.flat, scratch: self.scratch }
    }

    /// Vector registers at the end of a wave: the original needs none any more.
    fn vectors_at_end(&self, taken: &RegSet) -> Option<Vectors> {
        let own: RegSet = self.locations.vectors.iter().map(|(register, _)| Reg::vector(*register, 1)).collect();
        let mut taken = taken.union(own);
        Vectors::take(self.target, |count, align| {
            let is_free = |first: &u16| !taken.overlaps(Reg::vector(*first, count as u8));
            let first = (0..256 - count).step_by(align.into()).find(is_free)?;
            taken.insert(Reg::vector(first, count as u8));
            Some(first)
        })
    }
}

fn none_free() -> Refusal {
    Refusal::new(Reason::VectorRegisters, "no vector registers are free at the end of a wave")
}

/// Where in the record the next counters go.
struct Destination {
    /// Counters that are there already.
    at: u32,
    lanes: u32,
    data: u16,
    global: Global,
}

impl Destination {
    /// Adds the lowest so many lanes of the data to as many counters.
    fn add(&mut self, asm: &mut Asm, count: u32) -> Result<()> {
        let offset = BEGAN + self.at * COUNTER;
        let Global { base, .. } = self.global;
        asm.exec_lanes(count.min(self.lanes))?;
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
