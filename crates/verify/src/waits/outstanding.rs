//! No inserted instruction uses a register that an outstanding operation may still write, and no original one uses a
//! register that an inserted operation may still write.
//!
//! Inserted operations never weaken an original wait: "at most N outstanding" with more of them in flight leaves fewer
//! of the original's. So only registers have to be looked at. What the original accesses in the same place itself is
//! safe ([`crate::waits::settled_scalars`]).
//!
//! Calls and returns are followed one function at a time: what a function leaves outstanding is taken for the
//! original's. So nothing that inserted code loads may be outstanding there.

use std::cell::{LazyCell, OnceCell};

use smallvec::SmallVec;

use crate::alignment::Alignment;
use crate::finding::{Finding, Rule};
use crate::waits::outstanding_writes::{Issuer, OutstandingWrites};
use crate::waits::settled_scalars::SettledScalars;
use wavetap_amdgpu::{Reg, scalar};
use wavetap_analysis::cfg::Cfg;
use wavetap_analysis::dataflow::{Operation, RegSet, WaitSummaries};
use wavetap_analysis::kernel::{Body, Flow};

/// Checks one kernel's new code. `named` are the registers that original code names: what a function left outstanding
/// writes those.
pub(crate) fn check(
    new: &Body,
    cfg: &Cfg,
    alignment: &Alignment,
    summaries: &WaitSummaries,
    named: RegSet,
    findings: &mut Vec<Finding>,
) {
    // Loads write vector registers and `sN`; one that a function leaves outstanding into VCC, which every caller may
    // use, would break it anyway. Registers with a purpose of their own hold no results of loads; those after the
    // numbered ones are such.
    let numbered = new.target().addressable_sgprs() as u16;
    let special: RegSet = (numbered..scalar::VCC).map(|code| Reg::scalar(code, 1)).collect();
    let loadable = named
        .difference(special)
        .difference([Reg::VCC, Reg::EXEC, Reg::SCC, Reg::M0, Reg::scalar(scalar::MODE, 1)].into_iter().collect());
    let issuer = |id| if alignment.original(id).is_none() { Issuer::Inserted } else { Issuer::Original };
    let everything: LazyCell<Vec<Reg>> = LazyCell::new(|| RegSet::ALL.iter().collect());
    let settled = OnceCell::new();
    let settled =
        |id, reg: &Reg| settled.get_or_init(|| SettledScalars::compute(new, cfg, alignment)).is_settled(id, *reg);
    // What the original's operations write concerns inserted instructions only.
    let asked = new.ids().filter(|id| issuer(*id) == Issuer::Inserted).fold(RegSet::EMPTY, |mut asked, id| {
        new.reads(id).for_each(|reg| asked.insert(reg));
        new.writes(id).for_each(|reg| asked.insert(reg));
        asked
    });
    OutstandingWrites::new(new, cfg, summaries, asked).follow(issuer, |writes, id, report| {
        // Original against original is left to the compiler.
        let concerns_original =
            issuer(id) == Issuer::Inserted && (writes.may_write(Issuer::Original) || writes.unknown().next().is_some());
        if !concerns_original && !writes.may_write(Issuer::Inserted) {
            return false;
        }
        let uses: SmallVec<[Reg; 16]> = new.reads(id).chain(new.writes(id)).collect();
        let leaves = matches!(new.flow(id), Flow::Call(_) | Flow::TailCall(_) | Flow::Return | Flow::IndirectJump);
        let mut clashes = writes.writing(if leaves { &everything } else { &uses }, Issuer::Inserted);
        let mut unknown: SmallVec<[(Operation, RegSet); 1]> = SmallVec::new();
        if concerns_original {
            let open = |clash: RegSet| -> RegSet { clash.iter().filter(|reg| !settled(id, reg)).collect() };
            let original = writes.writing(&uses, Issuer::Original).into_iter().map(|(by, clash)| (by, open(clash)));
            clashes.extend(original.filter(|(_, clash)| !clash.is_empty()));
            let uses: RegSet =
                if writes.unknown().next().is_some() { uses.into_iter().collect() } else { RegSet::EMPTY };
            let uses = uses.intersection(loadable);
            let clashing = |(operation, writes): (Operation, RegSet)| (operation, open(uses.intersection(writes)));
            // There may be hundreds of calls, and inserted code mostly uses what the original does not name.
            if !uses.is_empty() {
                unknown.extend(writes.unknown().map(clashing).filter(|(_, clash)| !clash.is_empty()));
            }
        }
        if report {
            let known = clashes
                .iter()
                .map(|(by, clash)| (format!("{} at {:#x}", new.inst(*by).name(), new.address(*by)), clash));
            let unknown = unknown.iter().map(|(operation, clash)| {
                let by = match operation {
                    Operation::Callee(call) => {
                        format!("an operation of the function called at {:#x}", new.address(*call))
                    }
                    _ => "an operation of the caller".to_owned(),
                };
                (by, clash)
            });
            for (by, clash) in known.chain(unknown) {
                let message =
                    format!("{} uses {clash:?}, which {by} may still write: no wait in between", new.inst(id).name());
                findings.push(Finding::new(Rule::Wait, message).at(new.address(id)));
            }
        }
        !clashes.is_empty() || !unknown.is_empty()
    });
}
