//! The waits of one kernel, with what each waits for and why.

mod chains;
mod exposed;
mod lanes;
mod memory;
mod path;

use std::cell::RefCell;
use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use self::exposed::Stalls;
use self::memory::Stores;
use self::path::Path;
use crate::access::LaneAccess;
use crate::counts::{BlockCounts, CountSource, KernelCounts};
use crate::latency::{self, Cycles};
use crate::lines::SourceLines;
use crate::result::{Chain, Coverage, KernelSlice, OperationSlice, WaitCertainty, WaitSlice};
use wavetap_analysis::cfg::{Cfg, Loops};
use wavetap_analysis::dataflow::{Definitions, Operation, Summaries, Wait, WaitSummaries, Waits};
use wavetap_analysis::kernel::Body;
use wavetap_base::entity::InstId;
use wavetap_memory::{Accesses, Launched, WaveAccesses};
use wavetap_profile::file::KernelTotals;

/// What a kernel is sliced from.
#[derive(Clone, Copy)]
pub struct KernelInputs<'a> {
    /// Its code.
    pub body: &'a Body,
    /// What calls do to operations outstanding.
    pub waits_of_calls: &'a WaitSummaries,
    /// What calls do to registers.
    pub registers_of_calls: &'a Summaries,
    /// Its counters, if it was profiled.
    pub counted: Option<KernelCounts<'a>>,
    /// What is known of its launches.
    pub launched: Launched,
    /// The places of pointers to global memory among its arguments, in bytes.
    pub pointers: &'a BTreeSet<u32>,
    /// Whether waves are known to have stalled at an address: waits there have causes although nothing is predicted to
    /// be left to wait for.
    pub stalled: &'a dyn Fn(u64) -> bool,
    /// The source lines of its code.
    pub lines: &'a dyn SourceLines,
}

impl<'a> KernelInputs<'a> {
    /// A kernel of which nothing is known but its code and what it calls.
    #[must_use]
    pub fn new(
        body: &'a Body,
        waits_of_calls: &'a WaitSummaries,
        registers_of_calls: &'a Summaries,
    ) -> KernelInputs<'a> {
        KernelInputs {
            body,
            waits_of_calls,
            registers_of_calls,
            counted: None,
            launched: Launched::default(),
            pointers: const { &BTreeSet::new() },
            stalled: &|_| false,
            lines: &(),
        }
    }

    /// The same with its counters, and what these say of its launches.
    #[must_use]
    pub fn with_counts(self, counted: Option<KernelCounts<'a>>) -> KernelInputs<'a> {
        let launched = Launched::of(None, counted.map(|counted| counted.totals));
        KernelInputs { counted, launched, ..self }
    }
}

/// What chains are made from.
struct Context<'a> {
    body: &'a Body,
    cfg: &'a Cfg,
    definitions: &'a Definitions<'a>,
    stores: Stores,
    loops: Loops,
    stalls: Stalls,
    /// By operation, from where on.
    paths: RefCell<FxHashMap<InstId, Path>>,
    /// With what is known of the accesses that were looked at.
    lanes: RefCell<(WaveAccesses<'a>, FxHashMap<InstId, Option<LaneAccess>>)>,
    accesses: &'a Accesses<'a, 'a>,
    launched: Launched,
    counts: &'a BlockCounts,
    totals: Option<&'a KernelTotals>,
}

/// Slices one kernel of this demangled name.
#[must_use]
pub fn slice_kernel(inputs: &KernelInputs<'_>, demangled: &str) -> KernelSlice {
    let KernelInputs {
        body,
        waits_of_calls,
        registers_of_calls: registers,
        counted,
        launched,
        pointers,
        stalled,
        lines,
    } = *inputs;
    let cfg = Cfg::build(body);
    let counts = BlockCounts::derive(body, &cfg, counted);
    let totals = counted.map(|counted| counted.totals);
    let print = |id: InstId| wavetap_amdgpu::print(body.target(), body.inst(id));
    let (mut waits, mut chains) = (Vec::new(), Vec::new());
    let definitions = Definitions::new(body, &cfg, registers);
    let stores = Stores::of(body, &definitions);
    let (loops, stalls) = (cfg.loops(), Stalls::default());
    let accesses = Accesses::of(body, &definitions, pointers.clone());
    let (paths, lanes) =
        (RefCell::default(), RefCell::new((WaveAccesses::new(&accesses, &launched), Default::default())));
    let mut context = Context {
        body,
        cfg: &cfg,
        definitions: &definitions,
        stores,
        loops,
        stalls,
        paths,
        lanes,
        accesses: &accesses,
        launched,
        counts: &counts,
        totals,
    };
    let all = Waits::compute(body, &cfg, waits_of_calls);
    let by_instruction: Vec<&[Wait]> = all.all().chunk_by(|a, b| a.inst == b.inst).collect();
    context.predict(&by_instruction);
    chains.extend(
        by_instruction.iter().flat_map(|waits| context.of_waits(waits, stalled(body.address(waits[0].inst)), lines)),
    );
    for wait in all.all() {
        let mut operations: Vec<OperationSlice> = wait
            .operations
            .iter()
            .map(|each| {
                let id = match each.operation {
                    Operation::Inst(id) | Operation::Callee(id) => Some(id),
                    Operation::Caller => None,
                };
                let latency = match each.operation {
                    Operation::Inst(id) => latency::of(body.target(), body.inst(id)),
                    // Whatever it was.
                    Operation::Callee(_) | Operation::Caller => latency::unknown_memory(body.target()),
                };
                OperationSlice {
                    address: id.map(|id| body.address(id)),
                    instruction: id.map(print),
                    source: id.and_then(|id| lines.line(body.address(id))),
                    certainty: WaitCertainty::of(body, each),
                    latency,
                }
            })
            .collect();
        operations.sort_by_key(|operation| (operation.address.is_none(), operation.address));
        let latency = operations.iter().map(|operation| operation.latency).fold(Cycles::default(), Cycles::slower);
        let (executions, executions_source) = counts.of(cfg.block_of(wait.inst));
        let address = body.address(wait.inst);
        waits.push(WaitSlice {
            address,
            instruction: print(wait.inst),
            source: lines.line(address),
            counter: wait.counter.name().to_owned(),
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
        name: body.name().to_owned(),
        demangled: demangled.to_owned(),
        target: body.target().name().to_owned(),
        wave_size: body.target().wave_size(),
        waits,
        chains,
        samples: None,
    }
}
