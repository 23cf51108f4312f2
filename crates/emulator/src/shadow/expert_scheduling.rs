//! Vector registers between VALU and memory (`HW_REG_WAVE_SCHED_MODE`, gfx12): the hardware interlocks them unless code
//! has switched that off and waits by itself for va_vdst and vm_vsrc (LLVM, SIInsertWaitcnts, "expert scheduling mode
//! 2"). What is in flight when the mode changes stays so.
//!
//! Instructions of one class complete in their order, those of different classes in any (LLVM, AMDGPUHWEvents). So a
//! wait that leaves N in flight proves those done that have N or more of their own class after them: were one of them
//! in flight, so would these be.
//!
//! Halves of registers are apart (LLVM tracks 16-bit registers), but for what a vector instruction overwrites: it may
//! write all of a register (`d16-write-vgpr32`).

use std::collections::VecDeque;

use smallvec::SmallVec;

use wavetap_amdgpu::{Counter, Encoding, Flags, Latency, RegFile, Target};

use crate::fault::FaultKind;
use crate::fault::stop::{ExecResult, stop};
use crate::op::event_facts::EventFacts;
use crate::op::halves::{HalfRun, whole};
use crate::op::registers::register_name;
use crate::op::{Class, ResolvedInst};

/// Halves of vector registers that a wave can have.
const HALVES: usize = 2 * 1024;

/// Classes of each kind: at most this many.
const CLASSES: usize = 4;

/// The class of ordinary vector instructions.
const ORDINARY: usize = 0;

/// The class of a vector instruction: what is neither of the next ones, transcendentals, arithmetic on 64-bit floats,
/// matrix instructions. Conversions to 64-bit floats are none (found by what LLVM 24 waits for after each).
fn vector_class(op: &ResolvedInst, facts: &EventFacts) -> usize {
    match op.inst.variant.latency {
        _ if facts.is_matrix() => 3,
        _ if op.trans => 1,
        Latency::ValuF64 if op.inst.operands.iter().any(|operand| operand.access.reads() && operand.dwords == 2) => 2,
        _ => 0,
    }
}

/// The class of a memory instruction: FLAT with its global and scratch forms, LDS, other vector memory, exports.
fn memory_class(op: &ResolvedInst) -> usize {
    match op.inst.variant.encoding {
        Encoding::Flat | Encoding::Global | Encoding::Scratch => 0,
        Encoding::Ds => 1,
        Encoding::Exp => 3,
        _ => 2,
    }
}

/// The fewest registers that a matrix instruction of gfx125x writes which is counted down after all before it (LLVM,
/// pull request 218326; that it is after those of all classes is what code of Triton 3.9's LLVM relies on).
const ORDERED_MATRIX: u16 = 8;

/// How many instructions of each class were issued, and how many of those are known to be done.
#[derive(Default)]
struct ClassProgress {
    issued: [u32; CLASSES],
    done: [u32; CLASSES],
}

impl ClassProgress {
    /// One more instruction of a class, which is counted `count` times; its number.
    fn issue(&mut self, class: usize, count: u32) -> u32 {
        self.issued[class] += count;
        self.issued[class]
    }

    /// [`ClassProgress::issue`] for one that is counted down after all before it, of whatever class: it comes after
    /// those as if it were of theirs.
    fn issue_in_order(&mut self, class: usize, count: u32) -> u32 {
        self.issued.iter_mut().for_each(|issued| *issued += count);
        self.issued[class]
    }

    /// At most so many are in flight.
    fn wait(&mut self, allowed: u32) {
        for (done, issued) in self.done.iter_mut().zip(self.issued) {
            *done = (*done).max(issued.saturating_sub(allowed));
        }
    }
}

/// The number of the last instruction of each class that did something with each half of a register; 0 for none.
#[derive(Default)]
struct Last(Vec<[u32; CLASSES]>);

impl Last {
    fn slots(&mut self, &(first, count): &HalfRun) -> &mut [[u32; CLASSES]] {
        self.0.get_mut(usize::from(first)..usize::from(first + count)).unwrap_or_default()
    }

    fn add(&mut self, runs: &[HalfRun], class: usize, number: u32) {
        if self.0.is_empty() && !runs.is_empty() {
            self.0 = vec![[0; CLASSES]; HALVES];
        }
        runs.iter().for_each(|run| self.slots(run).iter_mut().for_each(|slot| slot[class] = number));
    }

    /// Nothing is in flight for these halves.
    fn forget(&mut self, runs: &[HalfRun]) {
        runs.iter().for_each(|run| self.slots(run).fill([0; CLASSES]));
    }

    /// The register of the first of these halves for which something may be in flight.
    fn pending(&self, runs: &[HalfRun], progress: &ClassProgress) -> Option<u16> {
        let in_flight = |last: &[u32; CLASSES]| last.iter().zip(progress.done).any(|(last, done)| *last > done);
        let mut halves = runs.iter().flat_map(|&(first, count)| first..first + count);
        halves.find(|&half| self.0.get(usize::from(half)).is_some_and(in_flight)).map(|half| half / 2)
    }
}

/// Counters of operations; once one has been counted down it has read its registers.
const COUNTERS: [Counter; 6] =
    [Counter::Load, Counter::Store, Counter::Ds, Counter::Sample, Counter::Bvh, Counter::Async];
/// The most that a counter can count.
const MOST_COUNTED: usize = 63;

/// Operations that a counter counts, in their order: class and number.
#[derive(Default)]
struct Counted {
    operations: VecDeque<(usize, u32)>,
    /// Some of them are FLAT operations, which are counted down out of order.
    unordered: bool,
}

impl Counted {
    fn push(&mut self, operation: (usize, u32), unordered: bool) {
        if self.operations.len() == MOST_COUNTED {
            self.operations.pop_front();
        }
        self.operations.push_back(operation);
        self.unordered |= unordered;
    }

    fn wait(&mut self, allowed: usize, reads: &mut ClassProgress) {
        if allowed != 0 && self.unordered {
            return;
        }
        while self.operations.len() > allowed
            && let Some((class, number)) = self.operations.pop_front()
        {
            reads.done[class] = reads.done[class].max(number);
        }
        self.unordered &= !self.operations.is_empty();
    }
}

/// The counter of vector instructions has four bits: those are done that it cannot count any more.
const COUNTED: u32 = 15;

/// What a wave has in flight.
#[derive(Default)]
pub(crate) struct ExpertScheduling {
    /// Vector instructions, and which of them read and write each register.
    vector: ClassProgress,
    vector_reads: Last,
    vector_writes: Last,
    /// Vector memory, LDS and export instructions that may have yet to read.
    memory: ClassProgress,
    memory_reads: Last,
    counted: [Counted; COUNTERS.len()],
}

impl ExpertScheduling {
    /// An instruction is about to be issued, `unchecked` by the hardware or not.
    pub(crate) fn issue(
        &mut self,
        op: &ResolvedInst,
        facts: &EventFacts,
        target: Target,
        unchecked: bool,
    ) -> ExecResult {
        if let Some(wait) = facts.alu_wait {
            wait.va_vdst.into_iter().for_each(|allowed| self.vector.wait(allowed.into()));
            wait.vm_vsrc.into_iter().for_each(|allowed| self.memory.wait(allowed.into()));
        }
        for (counter, allowed) in op.waits.iter() {
            if let Some(place) = COUNTERS.iter().position(|known| *known == counter) {
                self.counted[place].wait(allowed.into(), &mut self.memory);
            }
        }
        let valu = op.class == Class::Valu;
        let memory = matches!(op.class, Class::Vmem | Class::Lds) || op.inst.variant.encoding == Encoding::Exp;
        // Whatever a prefetch reads, nothing comes of it: compilers begin kernels with one and do not wait for it
        // (gfx1250).
        let prefetches = op.class == Class::Vmem
            && facts.results.is_empty()
            && !op.inst.variant.flags.intersects(Flags::LOAD | Flags::STORE);
        if !valu && !memory || prefetches {
            return Ok(());
        }
        let wait = |found: Option<u16>, rule| match found {
            Some(register) if unchecked => stop(FaultKind::Hazard {
                rule,
                required: 0,
                found: 0,
                resource: register_name(RegFile::Vector, register).into(),
            }),
            _ => Ok(()),
        };
        let rule = "vector memory, LDS or export reads VGPR, it is overwritten with no wait for vm_vsrc, and the \
            hardware does not check that (SCHED_MODE)";
        let (sources, results) = (&facts.sources_by_half[..], &facts.results_by_half[..]);
        let overwritten: SmallVec<[HalfRun; 2]> =
            results.iter().map(|run| if valu { whole(*run) } else { *run }).collect();
        wait(self.memory_reads.pending(&overwritten, &self.memory), rule)?;
        self.memory_reads.forget(&overwritten);
        if valu {
            let large = facts.is_matrix() && facts.results.iter().any(|(_, count)| *count >= ORDERED_MATRIX);
            let ordered = large && target.has_coexecution();
            // Code of Triton 3.9's LLVM relies on ordered matrices being done when ordinary instructions after them
            // are.
            let class = if ordered { ORDINARY } else { vector_class(op, facts) };
            let count = facts.counted_writes();
            let number =
                if ordered { self.vector.issue_in_order(class, count) } else { self.vector.issue(class, count) };
            self.vector.wait(COUNTED);
            // The hardware lets no vector instruction overwrite what an earlier one has yet to read.
            self.vector_reads.forget(results);
            self.vector_reads.add(sources, class, number);
            // Vector instructions write in their order, of whatever class they are.
            self.vector_writes.forget(results);
            self.vector_writes.add(results, class, number);
            return Ok(());
        }
        let rule = "VALU writes VGPR, vector memory, LDS or export uses it with no wait for va_vdst, and the hardware \
            does not check that (SCHED_MODE)";
        for runs in [sources, results] {
            wait(self.vector_writes.pending(runs, &self.vector), rule)?;
            self.vector_writes.forget(runs);
        }
        let rule = "VALU reads VGPR, vector memory or LDS overwrites it with no wait for va_vdst, and the hardware \
            does not check that (SCHED_MODE)";
        wait(self.vector_reads.pending(results, &self.vector), rule)?;
        self.vector_reads.forget(results);
        let class = memory_class(op);
        let number = self.memory.issue(class, 1);
        self.memory_reads.add(sources, class, number);
        for (counted, _) in
            self.counted.iter_mut().zip(COUNTERS).filter(|(_, counter)| op.counters.contains(counter.flag()))
        {
            counted.push((class, number), op.inst.variant.encoding == Encoding::Flat);
        }
        Ok(())
    }
}

/// The scheduling mode in which code itself orders accesses of VGPRs by VALU and memory.
pub(crate) const SOFTWARE: u32 = 2;
