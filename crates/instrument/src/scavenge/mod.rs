//! Where inserted code gets its registers.
//!
//! Scalar registers are reserved for it where the original code leaves enough of them unused; otherwise each snippet
//! scavenges some, whose values are spilled to lanes of a vector register ([`scalars`]). Vector registers are unused
//! ones, or lanes of the original's are spilled to scalar registers ([`lane_spills`]), or whole registers to
//! AGPRs or scratch memory ([`spill_slots`]). [`STRATEGIES`] is the order in which this is tried.

pub(crate) mod lane_spills;
pub(crate) mod registers;
pub(crate) mod scalars;
pub(crate) mod spill_slots;

use crate::analysis::SpillTo;
use crate::asm::Asm;
use crate::function::ClonedFunction;
use lane_spills::{LaneBudget, LaneSpills};
use registers::{OwnRegisters, Scalars, Vectors};
use scalars::ScalarSource;
use spill_slots::{Moves, SpillSlots};
use wavetap_amdgpu::{Memory, Reg};
use wavetap_analysis::dataflow::{Liveness, MaybeInitialized, RegSet};
use wavetap_analysis::kernel::{Reason, Refusal, Stop};
use wavetap_base::entity::{ProgramPoint, Side};
use wavetap_base::error::Result;
use wavetap_profile::map;

/// Where a kernel's inserted code gets vector registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VgprStrategy {
    /// No original code names them.
    Unused,
    /// Lanes of them are spilled to scalar registers.
    SpillLanes,
    /// They are spilled whole.
    Spill(SpillTo),
}

/// What counts as live where a copied function returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LiveOut {
    /// Everything.
    All,
    /// What its callers read afterwards.
    Callers,
}

/// The strategy that is left when no other works.
pub(crate) const LAST_RESORT: VgprStrategy = VgprStrategy::Spill(SpillTo::Scratch);

/// What is tried where there are not enough unused vector registers, or taking them costs too much occupancy. Each asks
/// for few more registers or none, and takes longer than those before it.
pub(crate) const STRATEGIES: [VgprStrategy; 3] =
    [VgprStrategy::SpillLanes, VgprStrategy::Spill(SpillTo::Agprs), LAST_RESORT];

impl From<VgprStrategy> for map::VectorSource {
    fn from(strategy: VgprStrategy) -> map::VectorSource {
        match strategy {
            VgprStrategy::Unused => map::VectorSource::Unused,
            VgprStrategy::SpillLanes => map::VectorSource::Lanes,
            VgprStrategy::Spill(SpillTo::Agprs) => map::VectorSource::Accumulation,
            VgprStrategy::Spill(SpillTo::Scratch) => map::VectorSource::Scratch,
        }
    }
}

/// The registers of one snippet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SnippetRegisters {
    scalars: ScalarSource,
    vectors: VectorSource,
}

/// Where the vector registers of a snippet come from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum VectorSource {
    /// No original code names them.
    Unused,
    /// A few lanes of them are spilled.
    SpillLanes(LaneSpills),
    /// They are spilled whole.
    Spill(Moves),
}

impl SnippetRegisters {
    /// The scalar registers.
    pub(crate) fn scalars(&self) -> Scalars {
        self.scalars.scalars()
    }

    /// Whether lanes of the vector registers are spilled: then nothing is in them that the last snippet left.
    pub(crate) fn spills_lanes(&self) -> bool {
        matches!(self.vectors, VectorSource::SpillLanes(_))
    }

    /// Makes the registers usable, but for lanes that are spilled. The first thing a snippet does; preserves SCC.
    pub(crate) fn enter(&self, asm: &mut Asm, vectors: Vectors) -> Result<()> {
        if let VectorSource::Spill(moves) = &self.vectors {
            moves.enter(asm, &vectors)?;
        }
        self.scalars.enter(asm, vectors)
    }

    /// Restores the registers. The last thing a snippet does; preserves SCC.
    pub(crate) fn leave(&self, asm: &mut Asm, own: &OwnRegisters) -> Result<()> {
        let vectors = own.vectors;
        self.scalars.leave(asm, vectors)?;
        let VectorSource::Spill(moves) = &self.vectors else { return Ok(()) };
        if own.keeps_lanes {
            // The next snippet needs what this one has put there.
            moves.keep(asm, &vectors)?;
        }
        moves.leave(asm, &vectors)
    }

    /// A whole snippet that saves EXEC across the instruction that writes it.
    pub(crate) fn save_exec(&self, asm: &mut Asm, vectors: Vectors) -> Result<()> {
        let VectorSource::Spill(moves) = &self.vectors else { return self.scalars.save_exec(asm, vectors) };
        moves.enter(asm, &vectors)?;
        self.scalars.save_exec(asm, vectors)?;
        moves.keep(asm, &vectors)?;
        moves.leave(asm, &vectors)
    }

    /// See [`ScalarSource::load_saved_exec`].
    pub(crate) fn load_saved_exec(&self, asm: &mut Asm, vectors: Vectors) -> Result<()> {
        self.scalars.load_saved_exec(asm, vectors)
    }

    /// Makes spilled lanes usable, once it is certain that something will be counted. Destroys SCC and the first scalar
    /// register.
    pub(crate) fn spill_lanes(&self, asm: &mut Asm, own: &OwnRegisters) -> Result<()> {
        match &self.vectors {
            VectorSource::SpillLanes(spills) => spills.enter(asm, own, self.scalars()),
            _ => Ok(()),
        }
    }

    /// Restores lanes after [`SnippetRegisters::spill_lanes`].
    pub(crate) fn restore_lanes(&self, asm: &mut Asm) -> Result<()> {
        match &self.vectors {
            VectorSource::SpillLanes(spills) => spills.leave(asm),
            _ => Ok(()),
        }
    }
}

/// Finds the registers of a function's snippets.
pub(crate) struct Scavenger<'a> {
    pub(crate) function: &'a ClonedFunction<'a>,
    /// What is live in it.
    pub(crate) liveness: &'a Liveness,
    /// Scalar registers: the same everywhere, or else scavenged for as long as the snippet runs.
    pub(crate) reserved: Option<Scalars>,
    /// Where lanes of vector registers are spilled.
    pub(crate) lanes: Option<&'a LaneBudget>,
    /// Where vector registers are spilled whole.
    pub(crate) slots: Option<SpillSlots>,
    /// Before each instruction, the registers into which loads are outstanding; empty where nothing is scavenged.
    pub(crate) pending: &'a [RegSet],
    /// Which registers hold anything; none where nothing is scavenged.
    pub(crate) assigned: Option<&'a MaybeInitialized>,
    /// One more than the highest numbered scalar register of the allocation.
    pub(crate) end: u32,
}

impl Scavenger<'_> {
    /// The registers of a snippet, and those of inserted code with its vector registers.
    pub(crate) fn at(&self, own: &OwnRegisters, point: ProgramPoint) -> Result<(OwnRegisters, SnippetRegisters), Stop> {
        self.at_reading(own, point, &RegSet::EMPTY)
    }

    /// [`Scavenger::at`] where the snippet reads these registers of the original code.
    pub(crate) fn at_reading(
        &self,
        own: &OwnRegisters,
        point: ProgramPoint,
        read: &RegSet,
    ) -> Result<(OwnRegisters, SnippetRegisters), Stop> {
        let ClonedFunction { body, cfg, .. } = self.function;
        let pending = &self.pending_at(point);
        let assigned = self.assigned.map_or(RegSet::ALL, |assigned| assigned.at(body, cfg, point));
        let scalars = match self.reserved {
            Some(scalars) => ScalarSource::Reserved(scalars),
            None => {
                let accessed: RegSet = body.reads(point.inst).chain(body.writes(point.inst)).collect();
                let taken = accessed.union(own.own()).union(*read);
                let live = self.liveness.at(point);
                let place = scalars::Place { end: self.end, live, assigned: &assigned, pending, taken: &taken };
                ScalarSource::scavenge(&place)
                    .map_err(|refusal| Refusal { address: Some(body.address(point.inst)), ..refusal })?
            }
        };
        if let Some(slots) = self.slots {
            let moves = slots.moves(&own.vectors, &own.own().union(*read), self, pending, point)?;
            return Ok((*own, SnippetRegisters { scalars, vectors: VectorSource::Spill(moves) }));
        }
        let Some(lanes) = self.lanes else {
            return Ok((*own, SnippetRegisters { scalars, vectors: VectorSource::Unused }));
        };
        let (vectors, spills) = lanes.scavenge(self, &assigned, pending, point)?;
        Ok((OwnRegisters { vectors, ..*own }, SnippetRegisters { scalars, vectors: VectorSource::SpillLanes(spills) }))
    }

    /// Registers that nothing of the original is in at a point, and that the instruction there and inserted code do not
    /// use: so many in a row, aligned to that.
    pub(crate) fn dead_scalars(
        &self,
        own: &OwnRegisters,
        point: ProgramPoint,
        taken: &RegSet,
        count: u16,
    ) -> Result<u16, Refusal> {
        let body = self.function.body;
        let accessed: RegSet = body.reads(point.inst).chain(body.writes(point.inst)).collect();
        let all = [*self.liveness.at(point), self.pending_at(point), accessed, own.own(), *taken];
        let used = all.into_iter().fold(RegSet::EMPTY, RegSet::union);
        let is_dead = |first: &u16| !used.overlaps(Reg::scalar(*first, count as u8));
        let firsts = (0..(self.end as u16 + 1).saturating_sub(count)).step_by(usize::from(count));
        firsts.into_iter().find(is_dead).ok_or_else(|| {
            let detail = format!("{count} scalar registers that are dead there are needed to hold EXEC or SCC");
            Refusal::at(Reason::ScalarRegisters, body.address(point.inst), detail)
        })
    }

    /// The registers into which loads may be outstanding at a point: after a load, those that it writes, too.
    fn pending_at(&self, point: ProgramPoint) -> RegSet {
        let body = self.function.body;
        let Some(before) = self.pending.get(point.inst.index()) else { return RegSet::EMPTY };
        match point.side {
            Side::After if body.inst(point.inst).variant.memory != Memory::None => {
                before.union(body.writes(point.inst).collect())
            }
            _ => *before,
        }
    }

    /// Whether loads into some of these registers may be outstanding at a point.
    pub(crate) fn is_pending(&self, point: ProgramPoint, registers: &RegSet) -> bool {
        self.pending_at(point).intersects(registers)
    }

    /// The registers of a snippet before the end of a wave: nothing needs the original's vector registers any more.
    pub(crate) fn at_end(
        &self,
        own: &OwnRegisters,
        point: ProgramPoint,
    ) -> Result<(OwnRegisters, SnippetRegisters), Stop> {
        match (self.lanes, self.reserved) {
            (Some(_), Some(scalars)) => {
                let vectors = VectorSource::SpillLanes(LaneSpills::default());
                Ok((*own, SnippetRegisters { scalars: ScalarSource::Reserved(scalars), vectors }))
            }
            _ => self.at(own, point),
        }
    }
}
