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

/// Vector instructions whose counter, of four bits, counts no more than these: what was issued before them is done, as such instructions complete in their order.
const COUNTED: u32 = 15;
/// Instructions for which that does not hold: transcendentals and matrix instructions run beside others.
const SLOW: u32 = u32::MAX;

/// Which vector instruction was the last to do something with each register: its number from 1, [`SLOW`], or 0 for none.
#[derive(Default)]
struct Last(Vec<u32>);

impl Last {
    fn set(&mut self, runs: &[(u16, u16)], number: u32) {
        if self.0.is_empty() && number != 0 {
            self.0 = vec![0; REGISTERS];
        }
        for &(first, count) in runs {
            if let Some(slots) = self.0.get_mut(usize::from(first)..usize::from(first + count)) {
                slots.fill(number);
            }
        }
    }

    /// [`Last::set`], but what is slow goes on beside the new one.
    fn add(&mut self, runs: &[(u16, u16)], number: u32) {
        for register in runs.iter().flat_map(|&(first, count)| first..first + count) {
            if self.0.get(usize::from(register)) != Some(&SLOW) {
                self.set(&[(register, 1)], number);
            }
        }
    }

    fn clear(&mut self) {
        self.0.fill(0);
    }

    /// The first of these registers for which that may still be under way, behind so many vector instructions.
    fn pending(&self, runs: &[(u16, u16)], issued: u32) -> Option<u16> {
        let is_pending = |number: u32| number == SLOW || number != 0 && issued - number < COUNTED;
        let mut registers = runs.iter().flat_map(|&(first, count)| first..first + count);
        registers.find(|&register| self.0.get(usize::from(register)).is_some_and(|number| is_pending(*number)))
    }
}

/// What a wave has under way.
#[derive(Default)]
pub(super) struct Dependences {
    /// Vector instructions so far, and those that may have yet to read and to write.
    issued: u32,
    valu_reads: Last,
    valu_writes: Last,
    /// Vector memory, LDS and export instructions may have yet to read, by counter.
    memory_reads: [Vectors; COUNTERS.len() + 1],
}

impl Dependences {
    /// An instruction is about to be issued, `unchecked` by the hardware or not. A wait for fewer than all is not taken for one: kinds of instructions overtake each other.
    pub(super) fn issue(&mut self, op: &Op, facts: &Facts, unchecked: bool) -> Step {
        if facts.waits_for_vector {
            self.valu_reads.clear();
            self.valu_writes.clear();
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
        let wait = |found: Option<u16>, rule| match found {
            Some(register) if unchecked => {
                stop(FaultKind::Hazard { rule, required: 0, found: 0, resource: register_name(RegFile::Vector, register).into() })
            }
            _ => Ok(()),
        };
        let results = Vectors::of(&facts.results);
        for reads in &mut self.memory_reads {
            let rule = "vector memory, LDS or export reads VGPR, it is overwritten with no wait for vm_vsrc, and the hardware does not check that (SCHED_MODE)";
            wait(results.common(*reads), rule)?;
            reads.remove(results);
        }
        if valu {
            self.issued += 1;
            let number = if op.trans || facts.is_matrix() { SLOW } else { self.issued };
            self.valu_reads.add(&facts.sources, number);
            self.valu_writes.set(&facts.results, number);
            return Ok(());
        }
        let rule = "VALU writes VGPR, vector memory, LDS or export uses it with no wait for va_vdst, and the hardware does not check that (SCHED_MODE)";
        for runs in [&facts.sources[..], &facts.results[..]] {
            wait(self.valu_writes.pending(runs, self.issued), rule)?;
            self.valu_writes.set(runs, 0);
        }
        let rule = "VALU reads VGPR, vector memory or LDS overwrites it with no wait for va_vdst, and the hardware does not check that (SCHED_MODE)";
        wait(self.valu_reads.pending(&facts.results, self.issued), rule)?;
        self.valu_reads.set(&facts.results, 0);
        let counted = COUNTERS.iter().position(|counter| op.counters.contains(counter.flag()));
        self.memory_reads[counted.unwrap_or(OTHERS)].add(Vectors::of(&facts.sources));
        Ok(())
    }
}
