//! Code that checks dependences of vector registers by itself (`HW_REG_WAVE_SCHED_MODE`, gfx12).
//!
//! Original instructions run in the mode that they have in the original. Inserted ones that have to do with vector
//! registers or memory run with the hardware's checks, and have nothing outstanding any more where an original one
//! follows. Where inserted code changes the mode nothing is outstanding: the instruction right before waits for all
//! that vector instructions write and all that memory instructions have yet to read.

use super::classes::{is_valu, predecessors};
use crate::alignment::Alignment;
use crate::finding::{Finding, Rule};
use wavetap_amdgpu::{Memory, RegFile, alu_wait};
use wavetap_analysis::cfg::{Cfg, Program};
use wavetap_analysis::kernel::{Body, BodyKind, Instructions, Scheduling};
use wavetap_analysis::solver::{Analysis, Lattice, solve};
use wavetap_base::entity::InstId;

/// Whether an instruction sets the mode.
pub(crate) fn sets(body: &Body, id: InstId) -> bool {
    body.inst(id).sets_hwreg().is_some_and(|number| body.target().scheduling_mode_hwreg() == Some(number))
}

/// Checks one body's new code: a kernel's, or that of a function that was copied for it.
pub(crate) fn check(
    program: &Program,
    original: &Body,
    new: &Body,
    cfg: &Cfg,
    alignment: &Alignment,
    findings: &mut Vec<Finding>,
) {
    let of_functions = || program.bodies().iter().filter(|body| body.kind() == BodyKind::Function);
    let function_leaves = || of_functions().any(|body| body.leaves_without_checks().is_some());
    if new.target().scheduling_mode_hwreg().is_none() {
        return;
    }
    let mut found = |id: InstId, what: &str| {
        findings.push(
            Finding::new(Rule::Hazard, format!("{}: {what} (HW_REG_WAVE_SCHED_MODE)", new.inst(id).name()))
                .at(new.address(id)),
        );
    };
    if let Some((id, _)) = new.calls().next().filter(|_| function_leaves()) {
        found(id, "a function that may be called changes the mode, and does not set it back");
    }
    if program.bodies().iter().any(Body::sets_scheduling)
        && let Some(id) = disturbed(new, alignment)
    {
        found(id, "inserted code before it leaves something outstanding, and the original may switch the checks off");
    }
    if !original.sets_scheduling() && !new.sets_scheduling() {
        return;
    }
    for id in new.ids() {
        let now = new.scheduling_before(id);
        if let Some(before) = alignment.original(id) {
            if original.scheduling_before(before) != now {
                found(id, "an original instruction runs in another mode than in the original");
                // All that follow say the same.
                return;
            }
            continue;
        }
        if now != Scheduling::Hardware && needs_checks(new, id) {
            found(id, "inserted code runs where dependences of vector registers may be left to software");
        }
        if sets(new, id) && !is_quiet(new, cfg, id) {
            found(
                id,
                "inserted code changes the mode, and the instruction before does not wait for vector instructions and \
                    for memory instructions' sources",
            );
        }
    }
    if let Some(id) = new.leaves_without_checks() {
        found(id, "other code is entered while dependences may be left to software");
    }
}

/// Whether the checks that are off concern an instruction.
fn needs_checks(body: &Body, id: InstId) -> bool {
    let inst = body.inst(id);
    let vector = inst.operands.iter().filter_map(|operand| operand.reg()).any(|reg| reg.file != RegFile::Scalar);
    vector || is_valu(inst) || inst.variant.memory != Memory::None
}

/// Whether inserted instructions may have something in flight before each instruction.
struct InFlight<'a> {
    new: &'a Body,
    alignment: &'a Alignment,
}

impl Analysis for InFlight<'_> {
    type Node = InstId;
    type State = bool;

    fn transfer(&mut self, id: InstId, in_flight: &mut bool) {
        let starts = self.alignment.original(id).is_none() && needs_checks(self.new, id);
        *in_flight = !waits_for_all(self.new, id) && (*in_flight || starts);
    }

    fn join(&mut self, _: InstId, state: &mut bool, incoming: &bool) -> bool {
        state.join(incoming)
    }
}

/// The first original instruction that inserted ones lead to without a wait for all that they may have outstanding.
fn disturbed(new: &Body, alignment: &Alignment) -> Option<InstId> {
    let before = solve(&Instructions::of(new), &mut InFlight { new, alignment }, [(new.entry(), false)]);
    new.ids().find(|id| alignment.original(*id).is_some() && before[id.index()] == Some(true))
}

/// Whether an instruction waits for all that vector instructions write and all that memory instructions have yet to
/// read.
fn waits_for_all(body: &Body, id: InstId) -> bool {
    alu_wait(body.inst(id)).is_some_and(|wait| wait.va_vdst == Some(0) && wait.vm_vsrc == Some(0))
}

/// Whether the only way to an instruction is from one that waits for all that could be outstanding.
fn is_quiet(body: &Body, cfg: &Cfg, id: InstId) -> bool {
    let before = predecessors(cfg, id);
    !before.is_empty() && before.iter().all(|id| waits_for_all(body, *id))
}
