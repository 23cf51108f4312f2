//! Scalar registers for inserted code: reserved where the original code leaves enough of them unused, and otherwise
//! scavenged at each place.
//!
//! Scavenged registers are dead there if there are enough of them; otherwise their values are spilled to lanes of a
//! vector register of our own and restored at the end. The address of the wave's record then lives in such lanes, too.
//! Registers into which a load is outstanding are not scavenged before it is complete.

use super::registers::{Scalars, Vectors};
use crate::asm::{Asm, c, s, v};
use wavetap_amdgpu::{Reg, scalar};
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::{Reason, Refusal};
use wavetap_base::error::Result;

/// Lane of the low half of the record's address; the high half is in the next one.
const RECORD_LANE: u32 = 8;
/// Lane of the low half of EXEC across a comparison that writes it; the high half is in the next one.
const EXEC_LANE: u32 = 10;
/// First lane for the values of scavenged registers.
const VALUE_LANE: u32 = 16;
/// What it costs to scavenge a register that is live and undefined: more than spilling a run of registers.
const UNSET: usize = 16;
/// Wait states before the first lane access: the original code may just have written EXEC (4, gfx94x) or a scalar
/// register that is put into a lane (2, gfx94x) by a vector instruction.
const ENTER_STATES: i64 = 4;
/// Wait states after a scalar register that a vector instruction wrote, until any original instruction may read it (5:
/// vector memory).
const LEAVE_STATES: i64 = 5;

/// Registers that are scavenged for the length of a snippet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scavenged<T> {
    pub(crate) registers: T,
    /// Those whose values are needed again.
    pub(crate) live: Vec<u16>,
    /// Scalar loads must complete first: they may be outstanding into any register (after a call of an unknown
    /// function).
    pub(crate) wait: bool,
}

/// A place where registers are scavenged.
pub(crate) struct Place<'a> {
    /// Those below are looked at.
    pub(crate) end: u32,
    /// What is live.
    pub(crate) live: &'a RegSet,
    /// What holds anything.
    pub(crate) assigned: &'a RegSet,
    /// Into what loads are outstanding.
    pub(crate) pending: &'a RegSet,
    /// What may not be used: what the instruction there accesses, and what inserted code has for good.
    pub(crate) taken: &'a RegSet,
}

impl Place<'_> {
    /// Scavenges registers: `take` says how many in a row it wants of the one it is given, and with which alignment.
    pub(crate) fn scavenge<T>(
        &self,
        take: impl Fn(&mut dyn FnMut(u16, u16) -> Result<u16, Refusal>) -> Result<T, Refusal>,
    ) -> Result<Scavenged<T>, Refusal> {
        let after_waiting = || {
            let (registers, live) = self.choose(&RegSet::EMPTY, &take)?;
            Ok(Scavenged { registers, live, wait: true })
        };
        match self.choose(self.pending, &take) {
            Ok((registers, live)) => Ok(Scavenged { registers, live, wait: false }),
            Err(_) => after_waiting(),
        }
    }

    fn choose<T>(
        &self,
        pending: &RegSet,
        take: impl Fn(&mut dyn FnMut(u16, u16) -> Result<u16, Refusal>) -> Result<T, Refusal>,
    ) -> Result<(T, Vec<u16>), Refusal> {
        let mut taken = vec![false; self.end as usize];
        let mut needed_again = Vec::new();
        let cost = |number: u16| {
            let reg = Reg::scalar(number, 1);
            match (pending.overlaps(reg) || self.taken.overlaps(reg), self.live.overlaps(reg)) {
                (true, _) => None,
                (false, false) => Some(0),
                // To spill an undefined register is to read it, which strict mode reports; not to spill it could change
                // what two reads of the original have in common.
                (false, true) => Some(if self.assigned.overlaps(reg) { 1 } else { UNSET }),
            }
        };
        let registers = take(&mut |count, align| {
            let run = |first: u16| first..first + count;
            let price = |first: &u16| {
                run(*first)
                    .map(|n| if taken.get(usize::from(n)) == Some(&false) { cost(n) } else { None })
                    .sum::<Option<usize>>()
            };
            let best = (0..self.end as u16)
                .step_by(usize::from(align))
                .filter_map(|first| Some((price(&first)?, first)))
                .min();
            let (_, first) =
                best.ok_or_else(|| Refusal::new(Reason::ScalarRegisters, "too few scalar registers can be scavenged"))?;
            for number in run(first) {
                taken[usize::from(number)] = true;
                needed_again.extend((cost(number) != Some(0)).then_some(number));
            }
            Ok(first)
        })?;
        Ok((registers, needed_again))
    }
}

/// The scalar registers of one snippet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ScalarSource {
    /// No original code names them.
    Reserved(Scalars),
    /// Scavenged for the length of the snippet.
    Scavenged {
        scalars: Scalars,
        /// Registers whose values are needed again.
        live: Vec<u16>,
        /// Scalar loads must complete first: they may be outstanding into any register (after a call of an unknown
        /// function).
        wait: bool,
    },
}

impl ScalarSource {
    /// The registers of a snippet at such a place.
    pub(crate) fn scavenge(place: &Place<'_>) -> Result<ScalarSource, Refusal> {
        let Scavenged { registers, live, wait } = place.scavenge(|take| Scalars::take(take))?;
        Ok(ScalarSource::Scavenged { scalars: registers, live, wait })
    }

    /// The registers.
    pub(super) fn scalars(&self) -> Scalars {
        match self {
            ScalarSource::Reserved(scalars) | ScalarSource::Scavenged { scalars, .. } => *scalars,
        }
    }

    /// Makes the registers usable and puts the record's address into its pair. The first thing a snippet does;
    /// preserves SCC.
    pub(super) fn enter(&self, asm: &mut Asm, vectors: Vectors) -> Result<()> {
        let ScalarSource::Scavenged { scalars, live, wait } = self else { return Ok(()) };
        if *wait {
            asm.wait_scalar_loads()?;
        }
        asm.states(ENTER_STATES)?;
        for (lane, register) in (VALUE_LANE..).zip(live) {
            asm.op("v_writelane_b32", &[v(vectors.data), s(*register), c(lane)])?;
        }
        // On gfx94x a lane that was just written is not read at once.
        asm.states(1)?;
        read_pair(asm, scalars.record, vectors.data, RECORD_LANE)
    }

    /// Restores the registers. The last thing a snippet does; preserves SCC.
    pub(super) fn leave(&self, asm: &mut Asm, vectors: Vectors) -> Result<()> {
        let ScalarSource::Scavenged { live, .. } = self else { return Ok(()) };
        if live.is_empty() {
            return Ok(());
        }
        // After a branch to here the lanes were written long ago, or at least one instruction ago.
        for (lane, register) in (VALUE_LANE..).zip(live) {
            asm.op("v_readlane_b32", &[s(*register), v(vectors.data), c(lane)])?;
        }
        asm.states(LEAVE_STATES)
    }

    /// Saves EXEC across the instruction that writes it.
    pub(super) fn save_exec(&self, asm: &mut Asm, vectors: Vectors) -> Result<()> {
        match self {
            ScalarSource::Reserved(scalars) => {
                let (exec, saved) = (asm.exec(), asm.mask(scalars.saved_exec));
                asm.masks("s_mov_b", &[saved, exec])
            }
            ScalarSource::Scavenged { .. } => {
                asm.states(ENTER_STATES)?;
                // In wave32 the high half is not used.
                for half in 0..2 {
                    let lane = c(EXEC_LANE + u32::from(half));
                    asm.op("v_writelane_b32", &[v(vectors.data), s(scalar::EXEC + half), lane])?;
                }
                Ok(())
            }
        }
    }

    /// Puts what [`ScalarSource::save_exec`] saved into the saved-EXEC pair.
    pub(super) fn load_saved_exec(&self, asm: &mut Asm, vectors: Vectors) -> Result<()> {
        match self {
            ScalarSource::Reserved(_) => Ok(()),
            ScalarSource::Scavenged { scalars, .. } => read_pair(asm, scalars.saved_exec, vectors.data, EXEC_LANE),
        }
    }
}

fn read_pair(asm: &mut Asm, pair: u16, vector: u16, lane: u32) -> Result<()> {
    for half in 0..2 {
        asm.op("v_readlane_b32", &[s(pair + half), v(vector), c(lane + u32::from(half))])?;
    }
    Ok(())
}

/// Puts the record's address where [`ScalarSource::enter`] will look for it.
pub(crate) fn store_record(asm: &mut Asm, vectors: Vectors, record: u16) -> Result<()> {
    for half in 0..2 {
        asm.op("v_writelane_b32", &[v(vectors.data), s(record + half), c(RECORD_LANE + u32::from(half))])?;
    }
    Ok(())
}
