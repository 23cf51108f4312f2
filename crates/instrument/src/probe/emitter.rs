//! Writing the code of one site: registers come and go, the probe computes in between.

use super::SiteTable;
use crate::asm::{Asm, Global, c, s, v};
use crate::frame::{Frame, branch_if_disabled, kept_ranges, restore_exec, restore_scc, save_scc};
use crate::function::ClonedFunction;
use crate::placement::{Increment, Job, PointJobs};
use crate::scavenge::registers::Scalars;
use crate::scavenge::{Scavenger, SnippetRegisters};
use crate::site::Counters;
use wavetap_amdgpu::{Opcode, Reg, Target, Value};
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::edit::{Label, Snippet};
use wavetap_analysis::kernel::{Body, Stop};
use wavetap_base::entity::{InstId, ProgramPoint, Side};
use wavetap_base::error::{Error, Result};
use wavetap_profile::control::SAMPLE_TABLE;
use wavetap_profile::schema::KindSchema;

/// What becomes of SCC in a snippet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scc {
    /// The instruction at the point overwrites it: it is free.
    Overwritten,
    /// It is preserved where something reads it.
    Preserved,
    /// It is preserved, and the measurement reads what was saved of it.
    Read,
}

/// Which waves run a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waves {
    /// Those that count.
    Enabled,
    All,
}

/// Writes the snippets of one site.
pub struct Emitter<'e, 's> {
    pub(crate) frame: &'e Frame<'s>,
    pub(crate) scavenger: &'e Scavenger<'e>,
    /// The kernel's sites.
    pub(crate) table: &'e SiteTable,
    /// Where the site's counters are.
    pub(crate) counters: Counters,
    /// The registers of the original code that its code reads.
    pub(crate) reads: RegSet,
    /// The snippets so far.
    pub(crate) inserts: &'e mut Vec<(ProgramPoint, Snippet)>,
}

impl std::fmt::Debug for Emitter<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Emitter").field("counters", &self.counters).finish_non_exhaustive()
    }
}

impl Emitter<'_, '_> {
    /// The function that the site is in.
    #[must_use]
    pub fn function(&self) -> &ClonedFunction<'_> {
        self.scavenger.function
    }

    /// The target that is written for.
    #[must_use]
    pub fn target(&self) -> Target {
        self.frame.own.target
    }

    /// Makes what is written from here on count at the kernel's one site of this kind.
    ///
    /// # Errors
    /// Internal if it has none.
    pub fn count_at(&mut self, kind: &KindSchema) -> Result<()> {
        let found = self.table.of_kind(kind);
        self.counters = found.ok_or_else(|| Error::internal(format!("the kernel has no site of the kind {kind}")))?;
        Ok(())
    }

    /// The offset in the record of the counters that the function has at an instruction, of this kind.
    ///
    /// # Errors
    /// Internal if it has none.
    pub fn offset_of(&self, inst: InstId, kind: &KindSchema) -> Result<u32> {
        let is_its = |placed: &&crate::site::PlacedSite| placed.site.inst == inst && **placed.site.kind == *kind;
        let placed = self.function().sites.iter().find(is_its);
        Ok(placed.ok_or_else(|| Error::internal(format!("an instruction has no site of the kind {kind}")))?.offset)
    }

    /// Code at a point that measures, in waves that count. Where loads into registers that the site reads may be
    /// outstanding, it waits for them first.
    ///
    /// # Errors
    /// Refused if there are no registers for it; failed if an instruction cannot be built.
    pub fn measure(
        &mut self,
        point: ProgramPoint,
        scc: Scc,
        measure: impl FnOnce(&mut Measurement<'_>) -> Result<()>,
    ) -> Result<(), Stop> {
        self.snippet(point, scc, |_| Ok(()), Waves::Enabled, measure)
    }

    /// [`Emitter::measure`] where the measurement runs in all waves, and begins with [`Measurement::leave_if_disabled`]
    /// what the others do not do.
    pub(crate) fn measure_in_all_waves(
        &mut self,
        point: ProgramPoint,
        measure: impl FnOnce(&mut Measurement<'_>) -> Result<()>,
    ) -> Result<(), Stop> {
        self.snippet(point, Scc::Preserved, |_| Ok(()), Waves::All, measure)
    }

    /// [`Emitter::measure`], with code that comes first of all, in all waves. SCC is preserved.
    ///
    /// # Errors
    /// As [`Emitter::measure`]'s.
    pub fn measure_after(
        &mut self,
        point: ProgramPoint,
        before: impl FnOnce(&mut Asm) -> Result<()>,
        measure: impl FnOnce(&mut Measurement<'_>) -> Result<()>,
    ) -> Result<(), Stop> {
        self.snippet(point, Scc::Preserved, before, Waves::Enabled, measure)
    }

    /// [`Emitter::measure_in_all_waves`] before an instruction, where the measurement may narrow EXEC for it, and code
    /// after it that restores EXEC. `dropped` is executed there in the lanes of which EXEC was narrowed, if any, when
    /// nothing is outstanding that writes registers.
    ///
    /// # Errors
    /// Refused if there are no registers for it; failed if an instruction cannot be built.
    pub(crate) fn measure_narrowing(
        &mut self,
        inst: InstId,
        dropped: Option<impl FnOnce(&mut Asm) -> Result<()>>,
        measure: impl FnOnce(&mut Measurement<'_>) -> Result<()>,
    ) -> Result<(), Stop> {
        let [before, after] = [Side::Before, Side::After].map(|side| ProgramPoint { inst, side });
        let (own, reads) = (self.frame.own, self.reads);
        // What is dead before the instruction, which does not write it, is dead after it.
        let held = match own.held_exec {
            Some(held) => held,
            None => self.scavenger.dead_scalars(&own, before, &reads, 2)?,
        };
        self.reads.insert(Reg::scalar(held, 2));
        let hold = |asm: &mut Asm| asm.masks("s_mov_b", &[asm.mask(held), asm.exec()]);
        let measured = self.snippet(before, Scc::Preserved, hold, Waves::All, measure);
        let taken = std::mem::replace(&mut self.reads, reads);
        measured?;
        let mut asm = own.asm();
        let (exec, held) = (asm.exec(), asm.mask(held));
        let Some(dropped) = dropped else {
            asm.masks("s_mov_b", &[exec, held])?;
            self.inserts.push((after, asm.finish()?));
            return Ok(());
        };
        let saved_scc = match (self.scavenger.liveness.at(after).overlaps(Reg::SCC), own.reserved) {
            (false, _) => None,
            (true, Some(reserved)) => Some(reserved.saved_scc),
            (true, None) => Some(self.scavenger.dead_scalars(&own, after, &taken, 1)?),
        };
        if let Some(saved) = saved_scc {
            asm.op("s_cselect_b32", &[s(saved), c(1), c(0)])?;
        }
        asm.masks("s_xor_b", &[exec, exec, held])?;
        let any = asm.new_label();
        asm.branch(Opcode::S_CBRANCH_EXECNZ, any);
        asm.aside();
        asm.bind(any);
        asm.wait_all_loads()?;
        dropped(&mut asm)?;
        asm.wait_before_exec()?;
        asm.aside_end();
        asm.masks("s_mov_b", &[exec, held])?;
        if let Some(saved) = saved_scc {
            asm.op("s_cmp_lg_u32", &[s(saved), c(0)])?;
        }
        self.inserts.push((after, asm.finish()?));
        Ok(())
    }

    fn snippet(
        &mut self,
        point: ProgramPoint,
        scc: Scc,
        before: impl FnOnce(&mut Asm) -> Result<()>,
        waves: Waves,
        measure: impl FnOnce(&mut Measurement<'_>) -> Result<()>,
    ) -> Result<(), Stop> {
        let (own, registers) = self.scavenger.at_reading(&self.frame.own, point, &self.reads)?;
        let frame = Frame { own, ..*self.frame };
        let keeps_scc = match scc {
            Scc::Overwritten => false,
            Scc::Preserved => self.scavenger.liveness.at(point).overlaps(Reg::SCC),
            Scc::Read => true,
        };
        let r = registers.scalars();
        let mut asm = own.asm();
        let done = asm.new_label();
        before(&mut asm)?;
        registers.enter(&mut asm, own.vectors)?;
        if keeps_scc {
            save_scc(&mut asm, r)?;
        }
        if waves == Waves::Enabled {
            branch_if_disabled(&mut asm, r, done)?;
        }
        registers.spill_lanes(&mut asm, &own)?;
        if self.scavenger.is_pending(point, &self.reads) {
            // After a call of an unknown function, what the original waits for later may be what is read here.
            asm.wait_all_loads()?;
        }
        let counters = self.counters;
        let mut measurement = Measurement { asm, r, done, frame: &frame, registers: &registers, counters };
        measure(&mut measurement)?;
        let Measurement { mut asm, .. } = measurement;
        registers.restore_lanes(&mut asm)?;
        asm.bind(done);
        if keeps_scc {
            restore_scc(&mut asm, r)?;
        }
        registers.leave(&mut asm, &own)?;
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
    ///
    /// # Errors
    /// As [`Emitter::measure`]'s.
    pub fn save_exec(&mut self, point: ProgramPoint) -> Result<(), Stop> {
        let (own, registers) = self.scavenger.at(&self.frame.own, point)?;
        let mut asm = own.asm();
        registers.save_exec(&mut asm, own.vectors)?;
        self.inserts.push((point, asm.finish()?));
        Ok(())
    }
}

/// The part of a snippet that runs in waves that count. The scalar registers may be used as they say; SCC is free.
pub struct Measurement<'m> {
    /// What is written so far.
    pub asm: Asm,
    /// The scalar registers.
    pub r: Scalars,
    /// The end of the measurement.
    done: Label,
    frame: &'m Frame<'m>,
    registers: &'m SnippetRegisters,
    counters: Counters,
}

impl std::fmt::Debug for Measurement<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Measurement").field("asm", &self.asm).field("r", &self.r).finish_non_exhaustive()
    }
}

impl Measurement<'_> {
    /// EXEC as an operand.
    #[must_use]
    pub fn exec(&self) -> Value {
        self.asm.exec()
    }

    /// The pair that holds the original code's EXEC while the snippet changes it.
    #[must_use]
    pub fn saved_exec(&self) -> Value {
        self.asm.mask(self.r.saved_exec)
    }

    /// Puts what [`Emitter::save_exec`] saved into the saved-EXEC pair.
    ///
    /// # Errors
    /// Internal if an instruction cannot be built.
    pub fn load_saved_exec(&mut self) -> Result<()> {
        self.registers.load_saved_exec(&mut self.asm, self.frame.own.vectors)
    }

    /// The pair of vector registers for what is recorded.
    ///
    /// # Errors
    /// Internal if an instruction cannot be built.
    pub fn payload(&self) -> Result<u16> {
        self.frame.own.vectors.payload.ok_or_else(|| Error::internal("no registers for what is recorded"))
    }

    /// Goes on after the measurement in waves that do not count. Destroys SCC.
    ///
    /// # Errors
    /// Internal if an instruction cannot be built.
    pub(crate) fn leave_if_disabled(&mut self) -> Result<()> {
        branch_if_disabled(&mut self.asm, self.r, self.done)
    }

    /// Whether registers for what is recorded or checked keep what the prologue leaves there.
    #[must_use]
    pub(crate) fn keeps_payload(&self) -> bool {
        self.frame.spill_slots.is_none()
    }

    /// Loads the first entries of the table of allocations, whose address is in the scratch pair, as the prologue does.
    /// All lanes are active.
    ///
    /// # Errors
    /// Internal if an instruction cannot be built.
    pub(crate) fn load_entries(&mut self) -> Result<()> {
        kept_ranges::load_entries(&mut self.asm, self.frame.own.vectors, self.r.scratch)
    }

    /// The pair of vector registers of what counters increase by.
    #[must_use]
    pub fn data(&self) -> u16 {
        self.frame.own.vectors.data
    }

    /// Whether how many slots are free is in a lane of the data pair's high half.
    #[must_use]
    pub fn counts_slots(&self) -> bool {
        self.frame.counts_slots
    }

    /// The offset of the site's counters in the record.
    #[must_use]
    pub fn site(&self) -> u32 {
        self.counters.offset
    }

    /// Size of the record's header and counters in bytes.
    #[must_use]
    pub fn record_bytes(&self) -> u32 {
        self.frame.record_bytes
    }

    /// Loads the pointer to the table of allocations into the scratch pair. Destroys SCC and the pair of the first
    /// register.
    ///
    /// # Errors
    /// Internal if an instruction cannot be built.
    pub fn allocations(&mut self) -> Result<()> {
        self.asm.address(self.r.first, self.frame.control);
        self.asm.scalar_load("s_load_dwordx2", self.r.scratch, 2, self.r.first, SAMPLE_TABLE as u32)?;
        self.asm.wait_scalar_loads()
    }

    /// Global memory at a base, other than the pair of the first register, at a counter's offset for each lane.
    #[must_use]
    pub fn at(&self, base: u16) -> Global {
        self.frame.own.at(base, self.r.first)
    }

    /// Global memory at an offset from the record. Destroys SCC and the scratch pair.
    ///
    /// # Errors
    /// Internal if an instruction cannot be built.
    pub fn beyond_record(&mut self, offset: u32) -> Result<Global> {
        self.beyond_record_by(c(offset))
    }

    /// [`Measurement::beyond_record`], by an operand.
    ///
    /// # Errors
    /// Internal if an instruction cannot be built.
    pub fn beyond_record_by(&mut self, offset: Value) -> Result<Global> {
        let (record, to) = (self.r.record, self.r.scratch);
        self.asm.op("s_add_u32", &[s(to), s(record), offset])?;
        self.asm.op("s_addc_u32", &[s(to + 1), s(record + 1), c(0)])?;
        Ok(self.at(to))
    }

    /// What counter `lane` of the site increases by. Lanes 0 and 4 hold 1 from the start; nothing else may be put
    /// there, but in lane 4 where counters are placed.
    ///
    /// # Errors
    /// Internal if an instruction cannot be built.
    pub fn value(&mut self, lane: u32, value: Value) -> Result<()> {
        self.asm.op("v_writelane_b32", &[v(self.frame.own.vectors.data), value, c(lane)])
    }

    /// The same with the 64 bits of a pair of scalar registers; or the pair is kept in any lane that is the probe's.
    ///
    /// # Errors
    /// Internal if an instruction cannot be built.
    pub fn wide_value(&mut self, lane: u32, from: u16) -> Result<()> {
        let data = self.data();
        (0..2).try_for_each(|half| self.asm.op("v_writelane_b32", &[v(data + half), s(from + half), c(lane)]))
    }

    /// Makes the counters reachable: before [`Measurement::add`]. Destroys SCC and the scratch pair.
    ///
    /// # Errors
    /// Internal if an instruction cannot be built.
    pub fn reach(&mut self) -> Result<()> {
        self.frame.sink.reach(&self.frame.own, &mut self.asm, self.r, self.counters)
    }

    /// Adds each active lane's value to its counter, and restores EXEC from the saved pair. Destroys SCC, the scratch
    /// pair and the first register.
    ///
    /// # Errors
    /// Internal if an instruction cannot be built.
    pub fn add(&mut self) -> Result<()> {
        self.frame.sink.add(&self.frame.own, &mut self.asm, self.r, self.counters)?;
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
