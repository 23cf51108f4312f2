//! The waits of one kernel, with what each waits for and why.

mod chains;
mod exposed;
mod path;

use std::cell::RefCell;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use self::exposed::Stalls;
use self::path::Path;
use crate::counts::{BlockCounts, CountSource, KernelCounts};
use crate::lines;
use crate::result::{Chain, Coverage, KernelSlice, OperationSlice, WaitSlice};
use crate::stall::StallCycles;
use wavetap_base::entity::InstId;
use wavetap_code::{Code, Cycles, Event, Loops, Operation, Wait, WaitedOperation};
use wavetap_profile::file::KernelTotals;

/// What a kernel is sliced from.
#[derive(Clone, Copy)]
pub struct KernelInputs<'a> {
    /// Its code.
    pub code: &'a Code<'a>,
    /// Its counters, if it was profiled.
    pub counted: Option<KernelCounts<'a>>,
    /// Where waves are known to have stalled for memory, by address. Waits there have causes although nothing is
    /// predicted to be left to wait for; where it is known for which operations, these are the causes.
    pub stalls: &'a BTreeMap<u64, StallCycles>,
}

impl<'a> KernelInputs<'a> {
    /// A kernel of which nothing is known but its code.
    #[must_use]
    pub fn new(code: &'a Code<'a>) -> KernelInputs<'a> {
        KernelInputs { code, counted: None, stalls: const { &BTreeMap::new() } }
    }

    /// The same with its counters.
    #[must_use]
    pub fn with_counts(self, counted: Option<KernelCounts<'a>>) -> KernelInputs<'a> {
        KernelInputs { counted, ..self }
    }
}

/// What chains are made from.
struct Context<'a> {
    code: &'a Code<'a>,
    loops: Loops,
    stalls: Stalls,
    /// By operation, from where on.
    paths: RefCell<FxHashMap<InstId, Path>>,
    /// By instruction, when its result is there.
    ready: RefCell<FxHashMap<InstId, u64>>,
    counts: &'a BlockCounts,
    totals: Option<&'a KernelTotals>,
}

/// Slices one kernel of this demangled name.
#[must_use]
pub fn slice_kernel(inputs: &KernelInputs<'_>, demangled: &str) -> KernelSlice {
    let KernelInputs { code, counted, stalls } = *inputs;
    let counts = BlockCounts::of_code(code, counted);
    let totals = counted.map(|counted| counted.totals);
    let print = |id: InstId| code.inst(id).text.to_string();
    let (mut waits, mut chains) = (Vec::new(), Vec::new());
    let mut context = Context {
        code,
        loops: code.graph().loops(),
        stalls: Stalls::default(),
        paths: RefCell::default(),
        ready: RefCell::default(),
        counts: &counts,
        totals,
    };
    let by_instruction: Vec<&[Wait]> = code.waits().chunk_by(|a, b| a.inst == b.inst).collect();
    context.predict(&by_instruction);
    let all = by_instruction.iter().flat_map(|waits| context.of_waits(waits, stalls.get(&code.address(waits[0].inst))));
    chains.extend(all);
    for wait in code.waits() {
        let mut operations: Vec<OperationSlice> = wait
            .operations
            .iter()
            .map(|each| {
                let id = match each.operation {
                    Operation::Inst(id) | Operation::Callee(id) => Some(id),
                    Operation::Caller => None,
                };
                OperationSlice {
                    address: id.map(|id| code.address(id)),
                    instruction: id.map(print),
                    source: id.and_then(|id| lines::line(code, code.address(id))),
                    certainty: each.certainty,
                    class: match each.operation {
                        Operation::Inst(id) => Some(code.inst(id).class),
                        Operation::Callee(_) | Operation::Caller => None,
                    },
                    latency: context.latency(each),
                }
            })
            .collect();
        operations.sort_by_key(|operation| (operation.address.is_none(), operation.address));
        let latency = operations.iter().map(|operation| operation.latency).fold(Cycles::default(), Cycles::slower);
        let (executions, executions_source) = counts.of(code.block_of(wait.inst));
        let address = code.address(wait.inst);
        waits.push(WaitSlice {
            address,
            instruction: print(wait.inst),
            source: lines::line(code, address),
            counter: wait.name.as_deref().unwrap_or_else(|| code.counter_name(wait.counter)).to_owned(),
            count: wait.count,
            executions,
            executions_source,
            latency,
            predicted_cycles: executions.unwrap_or(1).saturating_mul(u64::from(latency.typical)),
            operations,
        });
    }
    waits.sort_by(|a, b| b.predicted_cycles.cmp(&a.predicted_cycles).then(a.address.cmp(&b.address)));
    for known in [true, false] {
        let alike = |chain: &&mut Chain| (chain.evidence.executions != CountSource::Unknown) == known;
        let all: u64 = chains.iter_mut().filter(alike).map(|chain| chain.predicted_cycles).fold(0, u64::saturating_add);
        chains
            .iter_mut()
            .filter(alike)
            .for_each(|chain| chain.kernel_share = chain.predicted_cycles as f64 / all.max(1) as f64);
    }
    chains.sort_by(|a, b| {
        b.predicted_cycles.cmp(&a.predicted_cycles).then(a.address.cmp(&b.address)).then(b.share.total_cmp(&a.share))
    });
    let coverage = Coverage::of(&waits, &chains);
    KernelSlice {
        coverage,
        name: code.name().to_owned(),
        demangled: demangled.to_owned(),
        target: code.properties().target.clone(),
        wave_size: code.properties().wave_size,
        is_counted: code.properties().is_counted,
        waits,
        chains,
        samples: None,
    }
}

impl Context<'_> {
    /// The static latency of an operation, until what is waited for of it: nothing here knows of caches or contention.
    fn latency(&self, each: &WaitedOperation) -> Cycles {
        match (each.operation, each.event) {
            (Operation::Inst(id), Event::Result) => self.code.inst(id).latency,
            (Operation::Inst(id), Event::Operands) => self.code.inst(id).operand_latency,
            // Whatever it was.
            (Operation::Callee(_) | Operation::Caller, _) => self.code.properties().unknown_latency,
        }
    }
}
