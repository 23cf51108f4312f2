//! Scalar registers for inserted code: kept for it alone where the original code leaves enough of them unused, and otherwise borrowed at each
//! place.
//!
//! Registers that are borrowed are dead there if there are enough of them, or their values are put into lanes of a vector register of our own and taken back at the end. The
//! address of the wave's record then lives in such lanes, too. Registers into which a load is under way are not borrowed before it has arrived.

use super::asm::{Asm, c, s, v};
use super::homes::Moves;
use super::lent_vectors::Loan;
use super::plan::Plan;
use super::registers::{Scalars, Vectors};
use wavetap_amdgpu::{Reg, scalar};
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::{Reason, Refusal};
use wavetap_base::error::Result;

/// Lane of the low half of the record's address; the high half is in the next one.
const RECORD_LANE: u32 = 8;
/// Lane of the low half of EXEC across a comparison that writes it; the high half is in the next one.
const EXEC_LANE: u32 = 10;
/// First lane for the values of borrowed registers.
const VALUE_LANE: u32 = 16;
/// What it costs to borrow a register that is live and that nothing has set: more than a run of registers that are kept.
const UNSET: usize = 16;
/// Wait states before the first lane access: the original code may just have written EXEC (4, gfx94x) or a scalar register that is put into a lane
/// (2, gfx94x) by a vector instruction.
const ENTER_STATES: i64 = 4;
/// Wait states behind a scalar register that a vector instruction wrote, until any original instruction may read it (5: vector memory).
const LEAVE_STATES: i64 = 5;

/// The registers of one snippet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Registers {
    scalars: Borrowed,
    vectors: VectorSource,
}

/// Where the vector registers of a snippet come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum VectorSource {
    /// No original code names them.
    Own,
    /// A few lanes of them are borrowed.
    Lanes(Loan),
    /// They are borrowed whole; what was in them is elsewhere meanwhile.
    Moved(Moves),
}

impl Registers {
    pub(super) fn new(scalars: Borrowed, vectors: VectorSource) -> Registers {
        Registers { scalars, vectors }
    }

    /// The scalar registers.
    pub(super) fn scalars(&self) -> Scalars {
        self.scalars.scalars()
    }

    /// Whether lanes of the vector registers are borrowed: then nothing is in them that the last snippet left.
    pub(super) fn lends_lanes(&self) -> bool {
        matches!(self.vectors, VectorSource::Lanes(_))
    }

    /// Makes the registers usable, but for lanes that are borrowed. The first thing a snippet does; keeps SCC.
    pub(super) fn enter(&self, asm: &mut Asm, vectors: Vectors) -> Result<()> {
        if let VectorSource::Moved(moves) = &self.vectors {
            moves.enter(asm, &vectors)?;
        }
        self.scalars.enter(asm, vectors)
    }

    /// Gives the registers back. The last thing a snippet does; keeps SCC.
    pub(super) fn leave(&self, asm: &mut Asm, vectors: Vectors) -> Result<()> {
        self.scalars.leave(asm, vectors)?;
        match &self.vectors {
            VectorSource::Moved(moves) => moves.leave(asm, &vectors),
            _ => Ok(()),
        }
    }

    /// A whole snippet that keeps EXEC across the instruction that writes it.
    pub(super) fn keep_exec(&self, asm: &mut Asm, vectors: Vectors) -> Result<()> {
        let VectorSource::Moved(moves) = &self.vectors else { return self.scalars.keep_exec(asm, vectors) };
        moves.enter(asm, &vectors)?;
        self.scalars.keep_exec(asm, vectors)?;
        moves.keep(asm, &vectors)?;
        moves.leave(asm, &vectors)
    }

    /// See [`Borrowed::kept_exec`].
    pub(super) fn kept_exec(&self, asm: &mut Asm, vectors: Vectors) -> Result<()> {
        self.scalars.kept_exec(asm, vectors)
    }

    /// Makes borrowed lanes usable, once it is certain that something will be counted. Destroys SCC and the first scalar register.
    pub(super) fn prepare(&self, asm: &mut Asm, plan: &Plan) -> Result<()> {
        match &self.vectors {
            VectorSource::Lanes(loan) => loan.enter(asm, plan, self.scalars()),
            _ => Ok(()),
        }
    }

    /// Gives lanes back after [`Registers::prepare`].
    pub(super) fn give_back(&self, asm: &mut Asm) -> Result<()> {
        match &self.vectors {
            VectorSource::Lanes(loan) => loan.leave(asm),
            _ => Ok(()),
        }
    }
}

/// The scalar registers of one snippet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Borrowed {
    /// No original code names them.
    Kept(Scalars),
    /// Lent by the original code for the length of the snippet.
    Lent {
        scalars: Scalars,
        /// Registers whose values are needed again.
        live: Vec<u16>,
        /// Scalar loads have to arrive first: they may be under way into any register (after a call of an unknown function).
        wait: bool,
    },
}

impl Borrowed {
    /// Borrows registers below `end` where `live` are live, `assigned` hold anything and `pending` are under way, none of those that are `taken`: what the
    /// instruction there accesses, and what inserted code has for good.
    pub(super) fn lend(end: u32, live: &RegSet, assigned: &RegSet, pending: &RegSet, taken: &RegSet) -> Result<Borrowed, Refusal> {
        let choose = |pending: &RegSet| Self::choose(end, live, assigned, pending, taken);
        choose(pending).or_else(|_| match choose(&RegSet::EMPTY)? {
            Borrowed::Lent { scalars, live, .. } => Ok(Borrowed::Lent { scalars, live, wait: true }),
            kept => Ok(kept),
        })
    }

    fn choose(end: u32, live: &RegSet, assigned: &RegSet, pending: &RegSet, kept_out: &RegSet) -> Result<Borrowed, Refusal> {
        let mut taken = vec![false; end as usize];
        let mut needed_again = Vec::new();
        let cost = |number: u16| {
            let reg = Reg::scalar(number, 1);
            match (pending.overlaps(reg) || kept_out.overlaps(reg), live.overlaps(reg)) {
                (true, _) => None,
                (false, false) => Some(0),
                // To keep what nothing has set is to read it. Nobody should, and not to keep it could change what two reads of the original have in common.
                (false, true) => Some(if assigned.overlaps(reg) { 1 } else { UNSET }),
            }
        };
        let scalars = Scalars::take(|count, align| {
            let run = |first: u16| first..first + count;
            let price = |first: &u16| {
                run(*first).map(|n| if taken.get(usize::from(n)) == Some(&false) { cost(n) } else { None }).sum::<Option<usize>>()
            };
            let best = (0..end as u16).step_by(usize::from(align)).filter_map(|first| Some((price(&first)?, first))).min();
            let (_, first) = best.ok_or_else(|| Refusal::new(Reason::ScalarRegisters, "not even enough scalar registers to borrow"))?;
            for number in run(first) {
                taken[usize::from(number)] = true;
                needed_again.extend((cost(number) != Some(0)).then_some(number));
            }
            Ok(first)
        })?;
        Ok(Borrowed::Lent { scalars, live: needed_again, wait: false })
    }

    /// The registers.
    fn scalars(&self) -> Scalars {
        match self {
            Borrowed::Kept(scalars) | Borrowed::Lent { scalars, .. } => *scalars,
        }
    }

    /// Makes the registers usable and puts the record's address into its pair. The first thing a snippet does; keeps SCC.
    fn enter(&self, asm: &mut Asm, vectors: Vectors) -> Result<()> {
        let Borrowed::Lent { scalars, live, wait } = self else { return Ok(()) };
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

    /// Gives the registers back. The last thing a snippet does; keeps SCC.
    fn leave(&self, asm: &mut Asm, vectors: Vectors) -> Result<()> {
        let Borrowed::Lent { live, .. } = self else { return Ok(()) };
        if live.is_empty() {
            return Ok(());
        }
        // Behind a branch to here the lanes were written long ago, or at least one instruction ago.
        for (lane, register) in (VALUE_LANE..).zip(live) {
            asm.op("v_readlane_b32", &[s(*register), v(vectors.data), c(lane)])?;
        }
        asm.states(LEAVE_STATES)
    }

    /// Keeps EXEC across the instruction that writes it.
    fn keep_exec(&self, asm: &mut Asm, vectors: Vectors) -> Result<()> {
        match self {
            Borrowed::Kept(scalars) => {
                let (exec, saved) = (asm.exec(), asm.mask(scalars.saved_exec));
                asm.masks("s_mov_b", &[saved, exec])
            }
            Borrowed::Lent { .. } => {
                asm.states(ENTER_STATES)?;
                // In waves of 32 the high half is not used.
                for half in 0..2 {
                    let lane = c(EXEC_LANE + u32::from(half));
                    asm.op("v_writelane_b32", &[v(vectors.data), s(scalar::EXEC + half), lane])?;
                }
                Ok(())
            }
        }
    }

    /// Puts what [`Borrowed::keep_exec`] kept into the saved-EXEC pair.
    fn kept_exec(&self, asm: &mut Asm, vectors: Vectors) -> Result<()> {
        match self {
            Borrowed::Kept(_) => Ok(()),
            Borrowed::Lent { scalars, .. } => read_pair(asm, scalars.saved_exec, vectors.data, EXEC_LANE),
        }
    }
}

fn read_pair(asm: &mut Asm, pair: u16, vector: u16, lane: u32) -> Result<()> {
    for half in 0..2 {
        asm.op("v_readlane_b32", &[s(pair + half), v(vector), c(lane + u32::from(half))])?;
    }
    Ok(())
}

/// Puts the record's address where [`Borrowed::enter`] will look for it.
pub(super) fn store_record(asm: &mut Asm, vectors: Vectors, record: u16) -> Result<()> {
    for half in 0..2 {
        asm.op("v_writelane_b32", &[v(vectors.data), s(record + half), c(RECORD_LANE + u32::from(half))])?;
    }
    Ok(())
}
