//! Vector registers between VALU and memory (`HW_REG_WAVE_SCHED_MODE`, gfx12): the hardware looks after these unless code has said that it does so itself, by waits for
//! va_vdst and vm_vsrc (LLVM, SIInsertWaitcnts, "expert scheduling mode 2"). What is under way when the mode changes stays so.
//!
//! Both fields count instructions. Those of one kind are done in their order, so a wait for at most N proves those done that N of their kind follow. Halves of
//! registers are apart, but for what a VALU instruction overwrites: that may be all of a register.

use smallvec::SmallVec;

use super::core::{Step, register_name, stop};
use super::events::Facts;
use super::fault::FaultKind;
use super::halves::Halves;
use super::op::{Class, Op};
use crate::isa::{Encoding, RegFile};

/// Halves of vector registers that a wave can name here.
const HALVES: usize = 2 * 256;

/// Vector instructions whose counter, of four bits, counts no more than these: what was issued before them is done, as such instructions complete in their order.
const COUNTED: u32 = 15;

/// Kinds of VALU instructions that run beside each other (LLVM's `HWEvents`; those of 64 bits go with the first here).
const CORE: u8 = 0;
const TRANSCENDENTAL: u8 = 1;
const MATRIX: u8 = 2;
/// Kinds of instructions that read their registers beside each other.
const LDS: u8 = 0;
const FLAT: u8 = 1;
const VMEM: u8 = 2;
const EXPORT: u8 = 3;

/// A VALU instruction.
#[derive(Clone, Copy, Default)]
struct Mark {
    kind: u8,
    /// Its number among those of its kind, and among all, from 1; 0 for none.
    number: u32,
    all: u32,
}

/// Which vector instruction was the last to do something with each half of a register.
#[derive(Default)]
struct Last(Vec<Mark>);

impl Last {
    fn set(&mut self, runs: &[Halves], mark: Mark) {
        if self.0.is_empty() && mark.number != 0 {
            self.0 = vec![Mark::default(); HALVES];
        }
        for run in runs {
            if let Some(slots) = self.0.get_mut(run.range()) {
                slots.fill(mark);
            }
        }
    }

    /// The register of the first of these halves for which that may still be under way.
    fn pending(&self, runs: &[Halves], valu: &Valu) -> Option<u16> {
        let mut halves = runs.iter().flat_map(|run| run.range());
        halves.find(|half| self.0.get(*half).is_some_and(|mark| valu.is_pending(*mark))).map(|half| (half / 2) as u16)
    }
}

/// How many VALU instructions were issued, and are done, by kind.
#[derive(Default)]
struct Valu {
    issued: [u32; 3],
    done: [u32; 3],
    all: u32,
}

impl Valu {
    fn issue(&mut self, kind: u8) -> Mark {
        self.all += 1;
        let number = &mut self.issued[usize::from(kind)];
        *number += 1;
        Mark { kind, number: *number, all: self.all }
    }

    /// A wait for at most so many.
    fn wait(&mut self, allowed: u8) {
        for (done, issued) in self.done.iter_mut().zip(self.issued) {
            *done = (*done).max(issued.saturating_sub(allowed.into()));
        }
    }

    fn is_pending(&self, mark: Mark) -> bool {
        let counted_out = mark.kind == CORE && self.all - mark.all >= COUNTED;
        mark.number > self.done[usize::from(mark.kind)] && !counted_out
    }
}

/// A memory or export instruction that may have yet to read registers.
struct Reader {
    kind: u8,
    /// Its number among those of its kind.
    number: u32,
    /// What [`super::pending::Pending`] calls it: once it is complete, it has read. 0 where nothing counts it.
    id: u32,
    runs: SmallVec<[Halves; 4]>,
}

/// What a wave has under way.
#[derive(Default)]
pub(super) struct Dependences {
    valu: Valu,
    /// By kind: one reads beside the others.
    valu_reads: [Last; 3],
    valu_writes: Last,
    readers: Vec<Reader>,
    /// How many there were, by kind.
    issued: [u32; 4],
}

impl Dependences {
    /// Whether memory instructions may have yet to read.
    pub(super) fn has_readers(&self) -> bool {
        !self.readers.is_empty()
    }

    /// A wait has proved that operations are done: those that are not are in flight.
    pub(super) fn complete(&mut self, is_in_flight: impl Fn(u32) -> bool) {
        self.readers.retain(|reader| reader.id == 0 || is_in_flight(reader.id));
    }

    /// An instruction is about to be issued, `unchecked` by the hardware or not; `id` is what the next memory operation will be called.
    pub(super) fn issue(&mut self, op: &Op, facts: &Facts, unchecked: bool, id: u32) -> Step {
        if let Some(allowed) = facts.wait.va_vdst {
            self.valu.wait(allowed);
        }
        if let Some(allowed) = facts.wait.vm_vsrc {
            let issued = self.issued;
            let is_done = |reader: &Reader| reader.number + u32::from(allowed) <= issued[usize::from(reader.kind)];
            self.readers.retain(|reader| !(allowed == 0 || is_done(reader)));
        }
        let valu = op.class == Class::Valu;
        let memory = matches!(op.class, Class::Vmem | Class::Lds) || op.inst.variant.encoding == Encoding::Exp;
        if !valu && !memory {
            return Ok(());
        }
        let wait = |found: Option<u16>, rule| match found {
            Some(register) if unchecked => {
                stop(FaultKind::Hazard { rule, required: 0, found: 0, resource: register_name(RegFile::Vector, register).into() })
            }
            _ => Ok(()),
        };
        let (sources, results) = (&facts.sources_by_half[..], &facts.results_by_half[..]);
        let overwritten: SmallVec<[Halves; 2]> = results.iter().map(|run| if valu { run.whole() } else { *run }).collect();
        let rule = "vector memory, LDS or export reads VGPR, it is overwritten with no wait for vm_vsrc, and the hardware does not check that (SCHED_MODE)";
        wait(self.overwrite(&overwritten), rule)?;
        if valu {
            let kind = if facts.is_matrix() {
                MATRIX
            } else if op.trans {
                TRANSCENDENTAL
            } else {
                CORE
            };
            let mark = self.valu.issue(kind);
            self.valu_reads[usize::from(kind)].set(sources, mark);
            self.valu_writes.set(results, mark);
            return Ok(());
        }
        let rule = "VALU writes VGPR, vector memory, LDS or export uses it with no wait for va_vdst, and the hardware does not check that (SCHED_MODE)";
        for runs in [sources, results] {
            wait(self.valu_writes.pending(runs, &self.valu), rule)?;
            self.valu_writes.set(runs, Mark::default());
        }
        let rule = "VALU reads VGPR, vector memory or LDS overwrites it with no wait for va_vdst, and the hardware does not check that (SCHED_MODE)";
        for reads in &mut self.valu_reads {
            wait(reads.pending(results, &self.valu), rule)?;
            reads.set(results, Mark::default());
        }
        let kind = match (op.class, op.inst.variant.encoding) {
            (_, Encoding::Exp) => EXPORT,
            (Class::Lds, _) => LDS,
            (_, Encoding::Flat | Encoding::Global | Encoding::Scratch) => FLAT,
            _ => VMEM,
        };
        let number = &mut self.issued[usize::from(kind)];
        *number += 1;
        let id = if op.counters.is_empty() { 0 } else { id };
        self.readers.push(Reader { kind, number: *number, id, runs: sources.into() });
        Ok(())
    }

    /// The first register of which any half is overwritten that memory has yet to read; none of them is behind that.
    fn overwrite(&mut self, runs: &[Halves]) -> Option<u16> {
        let mut found = None;
        for reader in &mut self.readers {
            reader.runs.retain(|read| {
                let common = runs.iter().find_map(|run| run.common(*read));
                found = found.or(common);
                common.is_none()
            });
        }
        self.readers.retain(|reader| !reader.runs.is_empty());
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Half;

    fn marks(kinds: &[u8]) -> (Valu, Vec<Mark>) {
        let mut valu = Valu::default();
        let marks = kinds.iter().map(|kind| valu.issue(*kind)).collect();
        (valu, marks)
    }

    #[test]
    fn a_wait_proves_those_done_that_enough_of_their_kind_follow() {
        let (mut valu, found) = marks(&[CORE, CORE, TRANSCENDENTAL, CORE]);
        let pending = |valu: &Valu| found.iter().map(|mark| valu.is_pending(*mark)).collect::<Vec<_>>();
        assert_eq!(pending(&valu), [true; 4]);
        valu.wait(2);
        assert_eq!(pending(&valu), [false, true, true, true]);
        valu.wait(1);
        assert_eq!(pending(&valu), [false, false, true, true], "the transcendental may be the one that is left");
        valu.wait(0);
        assert_eq!(pending(&valu), [false; 4]);
    }

    #[test]
    fn a_counter_counts_so_far() {
        let (valu, found) = marks(&[CORE; 16]);
        assert!(!valu.is_pending(found[0]) && valu.is_pending(found[1]));
        let (valu, found) = marks(&[&[TRANSCENDENTAL][..], &[CORE; 20]].concat());
        assert!(valu.is_pending(found[0]));
    }

    #[test]
    fn halves_are_apart() {
        let (low, high, whole) = (Halves::of(3, 1, Half::Low), Halves::of(3, 1, Half::High), Halves::of(2, 2, Half::Whole));
        assert_eq!((low.common(high), low.common(whole), high.common(whole)), (None, Some(3), Some(3)));
        assert_eq!(low.whole().common(high), Some(3));
    }
}
