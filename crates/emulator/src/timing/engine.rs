//! How the model has instructions executed: the functional emulator runs one at a time.

use crate::exec::memory::accesses::{Accesses, gather};
use crate::fault::stop::Stop;
use crate::fault::{Fault, FaultKind};
use crate::run::plan::Plan;
use crate::run::worker::{Stopped, Worker, Workgroup};
use crate::state::core::Core;
use crate::state::op::Op;
use crate::strict::store_order;

impl Worker<'_> {
    /// The index of the instruction that a wave is at.
    pub(crate) fn at(&mut self, plan: &Plan, group: &Workgroup, wave: usize) -> Result<usize, Fault> {
        let wave = &group.waves[wave];
        let found = self.code.at(wave.pc, wave.vgpr_msb, plan.launch.target, &self.memory);
        found.map_err(|kind| self.fault(Stopped { stop: Stop { kind, lane: None }, op: None, pc: wave.pc }, wave))
    }

    pub(crate) fn op(&self, index: usize) -> &Op {
        &self.code.ops[index]
    }

    /// What the instruction will do to memory.
    pub(crate) fn accesses(&mut self, plan: &Plan, group: &mut Workgroup, wave: usize, op: usize) -> Option<Accesses> {
        let Worker { memory, code, clock, random, stats, work, .. } = self;
        let Workgroup { lds, waves, barrier, .. } = group;
        let (wave, launch, races) = (&mut waves[wave], &plan.launch, None);
        let mut core = Core { memory, lds, wave, launch, random, stats, clock, barrier, work, races };
        gather(&mut core, &code.ops[op])
    }

    /// Executes the instruction that a wave is at; the shader clock shows `cycle`.
    pub(crate) fn step(&mut self, plan: &Plan, group: &mut Workgroup, wave: usize, cycle: u64) -> Result<(), Fault> {
        self.clock = cycle;
        let mut fuel = self.shared.take_fuel(1);
        let Workgroup { lds, waves, barrier, .. } = group;
        let shared = store_order::is_shared(&plan.launch, waves.len());
        if shared {
            barrier.hold_stores_of_others(waves, wave);
        }
        let ran = self.wave(plan, &mut waves[wave], lds, barrier, 1, &mut fuel);
        if shared {
            barrier.return_stores_to_others(waves, wave);
        }
        ran.map_err(|stopped| self.fault(*stopped, &waves[wave]))
    }

    /// No wave of a group can go on.
    pub(crate) fn stuck(&self, group: &Workgroup) -> Fault {
        let kind = FaultKind::Undefined { what: "every wave waits at a barrier that not all have signalled".into() };
        let wave = &group.waves[0];
        self.fault(Stopped { stop: Stop { kind, lane: None }, op: None, pc: wave.pc }, wave)
    }
}
