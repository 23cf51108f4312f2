//! No inserted instruction uses a register that an outstanding operation may still write, and no original one uses a register that an
//! inserted operation may still write.
//!
//! Inserted operations never weaken an original wait: "at most N outstanding" with more of them in flight leaves fewer of the original's. So only
//! registers have to be looked at.

use super::align::Alignment;
use super::finding::{Finding, Rule};
use crate::cfg::Cfg;
use crate::dataflow::{Operation, RegSet, WaitSummaries, Waits};
use crate::isa::{Reg, scalar};
use crate::kernel::Body;

/// Checks one kernel's new code. `named` are the registers that original code names: what a function left outstanding writes those.
pub(super) fn check(new: &Body, alignment: &Alignment, summaries: &WaitSummaries, named: RegSet, findings: &mut Vec<Finding>) {
    let cfg = Cfg::build(new);
    let waits = Waits::compute(new, &cfg, summaries);
    // Loads write vector registers and `sN`; one that a function leaves outstanding into VCC, which every caller may use, would break it anyway.
    // Registers with a purpose of their own hold no results of loads; those behind the numbered ones are such.
    let numbered = new.target().addressable_sgprs() as u16;
    let special: RegSet = (numbered..scalar::VCC).map(|code| Reg::scalar(code, 1)).collect();
    let loadable =
        named.difference(special).difference([Reg::VCC, Reg::EXEC, Reg::SCC, Reg::M0, Reg::scalar(scalar::MODE, 1)].into_iter().collect());
    waits.for_each_pending(|id, operations| {
        let is_inserted = alignment.original(id).is_none();
        let inst = new.inst(id);
        let uses: RegSet = new.reads(id).chain(new.writes(id)).collect();
        for (counter, operation) in operations {
            let concerns = match operation {
                // Original against original is the compiler's business.
                Operation::Inst(other) => is_inserted || alignment.original(*other).is_none(),
                Operation::Callee(_) | Operation::Caller => is_inserted,
            };
            let clash = if concerns { uses.intersection(waits.results(*counter, *operation)) } else { RegSet::EMPTY };
            let clash = if matches!(operation, Operation::Inst(_)) { clash } else { clash.intersection(loadable) };
            if !clash.is_empty() {
                let by = match operation {
                    Operation::Inst(other) => format!("{} at {:#x}", new.inst(*other).name(), new.address(*other)),
                    Operation::Callee(call) => format!("an operation of the function called at {:#x}", new.address(*call)),
                    Operation::Caller => "an operation of the caller".to_owned(),
                };
                let message = format!("{} uses {clash:?}, which {by} may still write: no wait in between", inst.name());
                findings.push(Finding::new(Rule::Wait, message).at(new.address(id)));
            }
        }
    });
}
