//! Vector registers between VALU and memory (`HW_REG_WAVE_SCHED_MODE`, gfx12): the hardware looks after these unless code has said that it does so itself, by waits for
//! va_vdst and vm_vsrc (LLVM, SIInsertWaitcnts, "expert scheduling mode 2"). What is under way when the mode changes stays so.

use super::core::{Step, register_name, stop};
use super::events::Facts;
use super::fault::FaultKind;
use super::op::{Class, Op};
use crate::isa::{Counter, Encoding, RegFile};

/// Vector registers that a wave can name here.
const REGISTERS: usize = 256;

/// A set of vector registers.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Vectors([u64; REGISTERS / 64]);

impl Vectors {
    fn of(runs: &[(u16, u16)]) -> Vectors {
        let mut all = Vectors::default();
        for index in runs.iter().flat_map(|&(first, count)| first..first + count).map(usize::from).filter(|index| *index < REGISTERS) {
            all.0[index / 64] |= 1 << (index % 64);
        }
        all
    }

    fn add(&mut self, other: Vectors) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, its)| *mine |= its);
    }

    fn remove(&mut self, other: Vectors) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, its)| *mine &= !its);
    }

    /// The first register of both.
    fn common(self, other: Vectors) -> Option<u16> {
        let both = self.0.iter().zip(other.0).map(|(mine, its)| mine & its);
        both.enumerate().find(|(_, bits)| *bits != 0).map(|(n, bits)| (n * 64) as u16 + bits.trailing_zeros() as u16)
    }
}

/// Memory instructions by what counts them: once that counter has been waited for, they have read their registers.
const COUNTERS: [Counter; 3] = [Counter::Load, Counter::Store, Counter::Ds];
/// Those that something else counts.
const OTHERS: usize = COUNTERS.len();

/// What a wave has under way.
#[derive(Default)]
pub(super) struct Dependences {
    /// Vector instructions may have yet to read, and to write.
    valu_reads: Vectors,
    valu_writes: Vectors,
    /// Vector memory, LDS and export instructions may have yet to read, by counter.
    memory_reads: [Vectors; COUNTERS.len() + 1],
}

impl Dependences {
    /// An instruction is about to be issued, `unchecked` by the hardware or not. A wait for fewer than all is not taken for one: kinds of instructions overtake each other.
    pub(super) fn issue(&mut self, op: &Op, facts: &Facts, unchecked: bool) -> Step {
        if facts.waits_for_vector {
            (self.valu_reads, self.valu_writes) = (Vectors::default(), Vectors::default());
        }
        if facts.waits_for_vmem_reads {
            self.memory_reads = Default::default();
        }
        for (counter, _) in op.waits.iter().filter(|(_, allowed)| *allowed == 0) {
            if let Some(place) = COUNTERS.iter().position(|known| *known == counter) {
                self.memory_reads[place] = Vectors::default();
            }
        }
        let valu = op.class == Class::Valu;
        let memory = matches!(op.class, Class::Vmem | Class::Lds) || op.inst.variant.encoding == Encoding::Exp;
        if !valu && !memory {
            return Ok(());
        }
        let (sources, results) = (Vectors::of(&facts.sources), Vectors::of(&facts.results));
        let wait = |found: Option<u16>, rule| match found {
            Some(register) if unchecked => {
                stop(FaultKind::Hazard { rule, required: 0, found: 0, resource: register_name(RegFile::Vector, register).into() })
            }
            _ => Ok(()),
        };
        for reads in &mut self.memory_reads {
            let rule = "vector memory, LDS or export reads VGPR, it is overwritten with no wait for vm_vsrc, and the hardware does not check that (SCHED_MODE)";
            wait(results.common(*reads), rule)?;
            reads.remove(results);
        }
        if valu {
            self.valu_reads.add(sources);
            self.valu_writes.add(results);
            return Ok(());
        }
        let rule = "VALU writes VGPR, vector memory, LDS or export uses it with no wait for va_vdst, and the hardware does not check that (SCHED_MODE)";
        wait(self.valu_writes.common(sources).or_else(|| self.valu_writes.common(results)), rule)?;
        let rule = "VALU reads VGPR, vector memory or LDS overwrites it with no wait for va_vdst, and the hardware does not check that (SCHED_MODE)";
        wait(self.valu_reads.common(results), rule)?;
        for set in [&mut self.valu_reads, &mut self.valu_writes] {
            set.remove(results);
        }
        self.valu_writes.remove(sources);
        let counted = COUNTERS.iter().position(|counter| op.counters.contains(counter.flag()));
        self.memory_reads[counted.unwrap_or(OTHERS)].add(sources);
        Ok(())
    }
}
