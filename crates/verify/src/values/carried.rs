//! What inserted code carries from one place to the next is in registers that no original code names: a counter in one
//! that original code writes would be wrong without harm to the original.
//!
//! A counter is what inserted code adds to itself: a scalar register, or a lane of a vector register that goes through
//! a scalar one. So is a scalar register of which it sets a bit, and one to which it counts bits (active lanes) that
//! nothing reads there.

use rustc_hash::FxHashMap;

use crate::alignment::Alignment;
use crate::finding::{Finding, Rule};
use wavetap_amdgpu::{Inst, Opcode, Reg, Role, Value};
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::Body;
use wavetap_base::entity::InstId;

/// Checks the new code of a kernel or function; `named` are the registers of all original code that may run with it.
/// Gives the registers in which it counts.
pub(crate) fn check(new: &Body, alignment: &Alignment, named: &RegSet, findings: &mut Vec<Finding>) -> RegSet {
    let mut counters = RegSet::EMPTY;
    let mut run = Run::default();
    let mut count = |counter: Reg, address| {
        counters.insert(counter);
        if named.overlaps(counter) {
            let counter: RegSet = [counter].into_iter().collect();
            let message = format!("inserted code counts in {counter:?}, which original code names");
            findings.push(Finding::new(Rule::Counter, message).at(address));
        }
    };
    for id in new.ids() {
        let inst = new.inst(id);
        if alignment.original(id).is_some() {
            run.results.iter().for_each(|(counter, address)| count(*counter, *address));
            run = Run::default();
            if inst.opcode() == Opcode::S_GETPC_B64 {
                // What is added to that makes it the address in the original.
                run.written = inst.writes().collect();
            }
            continue;
        }
        if let Some(counter) = run.counter(new, id) {
            count(counter, new.address(id));
        }
        run.step(new, id);
    }
    counters
}

/// Checks that a kernel's code at its entry sets all registers in which its code and that of its functions counts.
pub(crate) fn begin(new: &Body, alignment: &Alignment, counters: &RegSet, findings: &mut Vec<Finding>) {
    let entry = new.ids().take_while(|id| alignment.original(*id).is_none());
    let set: RegSet = entry.filter(|id| added(new.inst(*id)).is_none()).flat_map(|id| new.writes(id)).collect();
    let unset: RegSet = counters.iter().filter(|counter| !set.contains(*counter)).collect();
    if unset != RegSet::EMPTY {
        let message = format!("inserted code counts in {unset:?}, which it does not set at the entry");
        findings.push(Finding::new(Rule::Counter, message).at(new.entry_address()));
    }
}

/// What inserted instructions in a row have done so far.
#[derive(Default)]
struct Run {
    /// What they have written.
    written: RegSet,
    /// Scalar registers that hold a lane: of which register, which, and whether something was added.
    lanes: FxHashMap<Reg, (Reg, Value, bool)>,
    /// Scalar registers that hold how many bits something has, which they have not read, and where that was counted.
    results: Vec<(Reg, u64)>,
}

impl Run {
    /// The register in which the instruction counts, if it does.
    fn counter(&self, new: &Body, id: InstId) -> Option<Reg> {
        let inst = new.inst(id);
        if let Some(into) = added(inst) {
            return (!self.written.overlaps(into)).then_some(into);
        }
        if inst.opcode() != Opcode::V_WRITELANE_B32 {
            return None;
        }
        let (into, lane) = (new.register(id, inst.operand(Role::Vdst)?)?, inst.operand(Role::Src1)?.value);
        let (of, number, added) = self.lanes.get(&inst.operand(Role::Src0)?.reg()?)?;
        (*added && *of == into && *number == lane).then_some(into)
    }

    fn step(&mut self, new: &Body, id: InstId) {
        let inst = new.inst(id);
        self.results.retain(|(held, _)| !new.reads(id).chain(new.writes(id)).any(|reg| reg.overlaps(*held)));
        if matches!(inst.opcode(), Opcode::S_BCNT1_I32_B64 | Opcode::S_BCNT1_I32_B32) {
            let into = inst.operand(Role::Sdst).and_then(|operand| operand.reg());
            self.results.extend(into.map(|into| (into, new.address(id))));
        }
        if let Some(into) = added(inst) {
            if let Some((_, _, added)) = self.lanes.get_mut(&into) {
                *added = true;
            }
        } else {
            self.lanes.retain(|held, _| !new.writes(id).any(|reg| reg.overlaps(*held)));
            if inst.opcode() == Opcode::V_READLANE_B32 {
                let reg = |role| inst.operand(role).and_then(|operand| new.register(id, operand));
                let lane = inst.operand(Role::Src1).map(|operand| operand.value);
                if let (Some(into), Some(of), Some(lane)) = (new.writes(id).next(), reg(Role::Src0), lane) {
                    self.lanes.insert(into, (of, lane, false));
                }
            }
        }
        new.writes(id).for_each(|reg| self.written.insert(reg));
    }
}

/// The scalar register that the instruction adds to, or of which it sets a bit.
fn added(inst: &Inst) -> Option<Reg> {
    if inst.opcode() == Opcode::S_BITSET1_B32 {
        return inst.operand(Role::Sdst)?.reg();
    }
    let adds = matches!(
        inst.opcode(),
        Opcode::S_ADD_U32 | Opcode::S_ADDC_U32 | Opcode::S_ADD_CO_U32 | Opcode::S_ADD_CO_CI_U32
    );
    let into = inst.operand(Role::Sdst).filter(|_| adds)?.reg()?;
    (inst.operand(Role::Src0)?.reg() == Some(into)).then_some(into)
}
