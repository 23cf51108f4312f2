//! Writing the code of one site: registers come and go, the probe computes in between.

use crate::asm::{Asm, Global, c, s, v};
use crate::facts::ClonedFunction;
use crate::frame::{Frame, branch_if_disabled, restore_exec, restore_scc, save_scc};
use crate::placement::{Increment, Job, PointJobs};
use crate::scavenge::registers::Scalars;
use crate::scavenge::{Scavenger, SnippetRegisters};
use crate::sink::Counters;
use wavetap_amdgpu::{Reg, Value};
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::edit::Snippet;
use wavetap_analysis::kernel::{Body, Stop};
use wavetap_base::entity::ProgramPoint;
use wavetap_base::error::{Error, Result};

/// What becomes of SCC in a snippet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scc {
    /// The instruction at the point overwrites it: it is free.
    Overwritten,
    /// It is preserved where something reads it.
    Preserved,
    /// It is preserved, and the measurement reads what was saved of it.
    Read,
}

/// Writes the snippets of one site.
pub(crate) struct Emitter<'e, 's> {
    pub(crate) frame: &'e Frame<'s>,
    pub(crate) scavenger: &'e Scavenger<'e>,
    /// Where the site's counters are.
    pub(crate) counters: Counters,
    /// The snippets so far.
    pub(crate) inserts: &'e mut Vec<(ProgramPoint, Snippet)>,
}

impl Emitter<'_, '_> {
    /// The function that the site is in.
    pub(crate) fn function(&self) -> &ClonedFunction<'_> {
        self.scavenger.function
    }

    /// Code at a point that measures, in waves that count.
    pub(crate) fn measure(
        &mut self,
        point: ProgramPoint,
        scc: Scc,
        measure: impl FnOnce(&mut Measurement<'_>) -> Result<()>,
    ) -> Result<(), Stop> {
        self.measure_reading(point, scc, &RegSet::EMPTY, measure)
    }

    /// [`Emitter::measure`], with code that comes first of all, in all waves.
    pub(crate) fn measure_after(
        &mut self,
        point: ProgramPoint,
        before: impl FnOnce(&mut Asm) -> Result<()>,
        measure: impl FnOnce(&mut Measurement<'_>) -> Result<()>,
    ) -> Result<(), Stop> {
        self.snippet(point, Scc::Preserved, &RegSet::EMPTY, before, measure)
    }

    /// [`Emitter::measure`], where what is measured reads these registers of the original code.
    pub(crate) fn measure_reading(
        &mut self,
        point: ProgramPoint,
        scc: Scc,
        read: &RegSet,
        measure: impl FnOnce(&mut Measurement<'_>) -> Result<()>,
    ) -> Result<(), Stop> {
        self.snippet(point, scc, read, |_| Ok(()), measure)
    }

    fn snippet(
        &mut self,
        point: ProgramPoint,
        scc: Scc,
        read: &RegSet,
        before: impl FnOnce(&mut Asm) -> Result<()>,
        measure: impl FnOnce(&mut Measurement<'_>) -> Result<()>,
    ) -> Result<(), Stop> {
        let (frame, registers) = self.scavenger.at_reading(self.frame, point, read)?;
        let keeps_scc = match scc {
            Scc::Overwritten => false,
            Scc::Preserved => self.scavenger.liveness.at(point).overlaps(Reg::SCC),
            Scc::Read => true,
        };
        let r = registers.scalars();
        let mut asm = frame.asm();
        let done = asm.new_label();
        before(&mut asm)?;
        registers.enter(&mut asm, frame.vectors)?;
        if keeps_scc {
            save_scc(&mut asm, r)?;
        }
        branch_if_disabled(&mut asm, r, done)?;
        registers.spill_lanes(&mut asm, &frame)?;
        let mut measurement = Measurement { asm, r, frame: &frame, registers: &registers, counters: self.counters };
        measure(&mut measurement)?;
        let Measurement { mut asm, .. } = measurement;
        registers.restore_lanes(&mut asm)?;
        asm.bind(done);
        if keeps_scc {
            restore_scc(&mut asm, r)?;
        }
        registers.leave(&mut asm, &frame)?;
        self.inserts.push((point, asm.finish()?));
        Ok(())
    }

    /// Writes the code of a point where placed counters are kept: all that is counted there is added at once.
    pub(crate) fn count(&mut self, here: &PointJobs) -> Result<(), Stop> {
        let body = self.scavenger.function.body;
        let counted: Vec<(u32, Job)> = here.lanes().collect();
        if !counted.is_empty() {
            let reads_scc = counted.iter().any(|(_, job)| job.reads_scc(body));
            self.measure(here.point, if reads_scc { Scc::Read } else { Scc::Preserved }, |m| m.count(body, &counted))?;
        }
        if here.jobs.contains(&Job::SaveExec) { self.save_exec(here.point) } else { Ok(()) }
    }

    /// Code at a point before an instruction that writes EXEC: saves it for [`Measurement::load_saved_exec`].
    pub(crate) fn save_exec(&mut self, point: ProgramPoint) -> Result<(), Stop> {
        let (frame, registers) = self.scavenger.at(self.frame, point)?;
        let mut asm = frame.asm();
        registers.save_exec(&mut asm, frame.vectors)?;
        self.inserts.push((point, asm.finish()?));
        Ok(())
    }
}

/// The part of a snippet that runs in waves that count. The scalar registers may be used as they say; SCC is free.
pub(crate) struct Measurement<'m> {
    pub(crate) asm: Asm,
    pub(crate) r: Scalars,
    frame: &'m Frame<'m>,
    registers: &'m SnippetRegisters,
    counters: Counters,
}

impl Measurement<'_> {
    /// EXEC as an operand.
    pub(crate) fn exec(&self) -> Value {
        self.asm.exec()
    }

    /// The pair that holds the original code's EXEC while the snippet changes it.
    pub(crate) fn saved_exec(&self) -> Value {
        self.asm.mask(self.r.saved_exec)
    }

    /// Puts what [`Emitter::save_exec`] saved into the saved-EXEC pair.
    pub(crate) fn load_saved_exec(&mut self) -> Result<()> {
        self.registers.load_saved_exec(&mut self.asm, self.frame.vectors)
    }

    /// The pair of vector registers for what is recorded.
    pub(crate) fn payload(&self) -> Result<u16> {
        self.frame.vectors.payload.ok_or_else(|| Error::internal("no registers for what is recorded"))
    }

    /// The pair of vector registers of what counters increase by.
    pub(crate) fn data(&self) -> u16 {
        self.frame.vectors.data
    }

    /// Whether how many slots are free is in a lane of the data pair's high half.
    pub(crate) fn counts_slots(&self) -> bool {
        self.frame.counts_slots
    }

    /// The offset of the site's counters in the record.
    pub(crate) fn site(&self) -> u32 {
        self.counters.offset
    }

    /// Size of the record's header and counters in bytes.
    pub(crate) fn record_bytes(&self) -> u32 {
        self.frame.record_bytes
    }

    /// Global memory at a base, other than the pair of the first register, at a counter's offset for each lane.
    pub(crate) fn at(&self, base: u16) -> Global {
        self.frame.at(base, self.r.first)
    }

    /// Global memory at an offset from the record. Destroys SCC and the scratch pair.
    pub(crate) fn beyond_record(&mut self, offset: u32) -> Result<Global> {
        self.beyond_record_by(c(offset))
    }

    /// [`Measurement::beyond_record`], by an operand.
    pub(crate) fn beyond_record_by(&mut self, offset: Value) -> Result<Global> {
        let (record, to) = (self.r.record, self.r.scratch);
        self.asm.op("s_add_u32", &[s(to), s(record), offset])?;
        self.asm.op("s_addc_u32", &[s(to + 1), s(record + 1), c(0)])?;
        Ok(self.at(to))
    }

    /// What counter `lane` of the site increases by. Lanes 0 and 4 hold 1 from the start; nothing else may be put
    /// there, but in lane 4 where counters are placed.
    pub(crate) fn value(&mut self, lane: u32, value: Value) -> Result<()> {
        self.asm.op("v_writelane_b32", &[v(self.frame.vectors.data), value, c(lane)])
    }

    /// The same with the 64 bits of a pair of scalar registers; or the pair is kept in any lane that is the probe's.
    pub(crate) fn wide_value(&mut self, lane: u32, from: u16) -> Result<()> {
        let data = self.data();
        (0..2).try_for_each(|half| self.asm.op("v_writelane_b32", &[v(data + half), s(from + half), c(lane)]))
    }

    /// Makes the counters reachable: before [`Measurement::add`]. Destroys SCC and the scratch pair.
    pub(crate) fn reach(&mut self) -> Result<()> {
        self.frame.sink.reach(self.frame, &mut self.asm, self.r, self.counters)
    }

    /// Adds each active lane's value to its counter, and restores EXEC from the saved pair. Destroys SCC, the scratch
    /// pair and the first register.
    pub(crate) fn add(&mut self) -> Result<()> {
        self.frame.sink.add(self.frame, &mut self.asm, self.r, self.counters)?;
        restore_exec(&mut self.asm, self.r)
    }

    /// Adds what jobs count, each to the counter of its lane.
    fn count(&mut self, body: &Body, counted: &[(u32, Job)]) -> Result<()> {
        if counted.iter().any(|(_, job)| matches!(job, Job::AllOn(_, None) | Job::Empty(_, None))) {
            self.load_saved_exec()?;
        }
        let (exec, saved) = (self.exec(), self.saved_exec());
        let (lanes, flag) = (self.r.first, s(self.r.second));
        let mut mask = 0;
        for (lane, job) in counted {
            mask |= 1 << lane;
            let value = match job.increment(&mut self.asm, body, saved, lanes)? {
                None | Some(Increment::One) => continue,
                Some(Increment::OriginalScc) => s(self.r.saved_scc),
                Some(Increment::Scalar(register)) => s(register),
                Some(Increment::Scc) => {
                    self.asm.op("s_cselect_b32", &[flag, c(1), c(0)])?;
                    flag
                }
            };
            self.value(*lane, value)?;
        }
        self.reach()?;
        self.asm.masks("s_mov_b", &[saved, exec])?;
        self.asm.masks("s_mov_b", &[exec, c(mask)])?;
        self.add()
    }
}
