//! Whether the prologue may leave its load outstanding: original code that waits for its own loads waits for it, too.

use wavetap_amdgpu::{Counter, wait_count};
use wavetap_analysis::kernel::{Body, Flow};
use wavetap_base::entity::{InstId, ProgramPoint, Side};

/// Whether original code waits for all scalar loads on every path from the kernel's entry to where inserted code reads
/// what was loaded: `reads_at` some points, at an end, at a call.
pub(crate) fn waits_in_time(body: &Body, reads_at: impl Fn(ProgramPoint) -> bool) -> bool {
    let mut seen = vec![false; body.insts().len()];
    let mut todo: Vec<InstId> = vec![body.entry()];
    while let Some(inst) = todo.pop() {
        if std::mem::replace(&mut seen[inst.index()], true) {
            continue;
        }
        // What is inserted before a wait runs before it.
        if reads_at(ProgramPoint { inst, side: Side::Before }) {
            return false;
        }
        if waits_for_scalar_loads(body, inst) {
            continue;
        }
        if reads_at(ProgramPoint { inst, side: Side::After }) {
            return false;
        }
        match body.flow(inst) {
            Flow::Next => {}
            Flow::Jump(to) => {
                todo.push(to);
                continue;
            }
            Flow::Branch(to) => todo.push(to),
            Flow::Call(_) | Flow::TailCall(_) | Flow::Return | Flow::IndirectJump | Flow::End => return false,
        }
        match body.next(inst) {
            Some(next) => todo.push(next),
            None => return false,
        }
    }
    true
}

/// Whether nothing is outstanding after an instruction that scalar loads count in.
fn waits_for_scalar_loads(body: &Body, inst: InstId) -> bool {
    let target = body.target();
    let counter = if target.largest_wait(Counter::Km).is_some() { Counter::Km } else { Counter::Lgkm };
    wait_count(target, body.inst(inst)).is_some_and(|counts| counts.get(counter) == Some(0))
}
