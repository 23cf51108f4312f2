//! What the kernels of a file executed, from the counts of their blocks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::object::{Object, objects};
use wavetap_amd_code::{always_returns, entries, graph, starts_after_entry};
use wavetap_analysis::cfg::{BodyId, Cfg};
use wavetap_analysis::dataflow::{Definitions, Summaries};
use wavetap_analysis::kernel::{Body, BodyKind};
use wavetap_base::entity::BlockId;
use wavetap_base::error::{Error, Result, ResultExt};
use wavetap_explain::mix::{KernelMix, LineMix, LoopMix, MixCounts, MixReport, SCHEMA};
use wavetap_mix::{CountedInstruction, Mix, SiteCounts, instructions, instructions_of};
use wavetap_object::code_object::demangle;
use wavetap_object::offload_bundle::Input;
use wavetap_object::selection::Selection;
use wavetap_profile::file::{KernelTotals, Profile};
use wavetap_profile::map::Source;
use wavetap_report::counted::{self, CountedObject};
use wavetap_slice::counts::{BlockCounts, KernelCounts};

/// What the selected kernels of an input executed in the runs of a profile.
///
/// # Errors
/// Malformed or unsupported if the input cannot be decoded; malformed if the profile is of another input; unsupported
/// if it has no counts of blocks; limit if a sum does not fit 64 bits.
pub fn mix(data: &[u8], selection: &Selection, profile: &Profile) -> Result<MixReport> {
    let input = Input::parse(data)?;
    let mut unread = Vec::new();
    let objects = objects(&input, selection, &mut unread)?;
    counted::check(profile, &CountedObject::all(&input, &[])?)?;
    let mut report = MixReport {
        schema: SCHEMA.to_owned(),
        complete: profile.has_ended(),
        kernels: vec![],
        not_counted: vec![],
        unread,
    };
    let mut without_blocks = false;
    for object in &objects {
        let summaries = Summaries::compute(&object.program);
        for (id, body) in object.program.ids().map(|id| (id, object.program.body(id))) {
            if body.kind() != BodyKind::Kernel || !selection.has_kernel(body.name()) {
                continue;
            }
            let totals = totals(profile, object, body)?;
            let counts = totals.as_ref().map(SiteCounts::of);
            without_blocks |= counts.as_ref().is_some_and(|counts| !counts.has_blocks());
            match (&totals, counts.filter(SiteCounts::has_blocks)) {
                (Some(totals), Some(counts)) => {
                    report.kernels.push(KernelToCount::new(object, id, totals, &counts, &summaries).mix()?);
                }
                _ => report.not_counted.push(demangle(body.name()).into_owned()),
            }
        }
    }
    if without_blocks && report.kernels.is_empty() {
        return Err(Error::unsupported(
            "the profile has no counts of basic blocks: make it with `wavetap profile --probe blocks`, or \
                `--probe branches,blocks`",
        ));
    }
    Ok(report)
}

/// What was counted of a kernel, added up where the profile has it more than once.
pub(super) fn totals(profile: &Profile, object: &Object<'_>, body: &Body) -> Result<Option<KernelTotals>> {
    let mut all = profile.kernels.iter().filter(|kernel| kernel.object == object.digest && kernel.name == body.name());
    let mut sum = all.next().cloned();
    for more in all {
        sum.as_mut().map(|sum| sum.merge(more)).transpose()?;
    }
    Ok(sum)
}

/// A kernel with its counts, and what it may run.
pub(super) struct KernelToCount<'a> {
    object: &'a Object<'a>,
    id: BodyId,
    body: &'a Body,
    totals: &'a KernelTotals,
    counts: &'a SiteCounts<'a>,
    summaries: &'a Summaries,
    /// The kernel and the functions that it calls.
    reached: Vec<BodyId>,
    /// In how many of these an instruction is: code that several have in common is entered from each of them.
    bodies_at: BTreeMap<u64, u32>,
}

impl<'a> KernelToCount<'a> {
    pub(super) fn new(
        object: &'a Object<'a>,
        id: BodyId,
        totals: &'a KernelTotals,
        counts: &'a SiteCounts<'a>,
        summaries: &'a Summaries,
    ) -> KernelToCount<'a> {
        let program = &object.program;
        let others: BTreeSet<BodyId> =
            program.callees(id).bodies.iter().copied().filter(|callee| *callee != id).collect();
        let reached: Vec<BodyId> = std::iter::once(id).chain(others).collect();
        let mut bodies_at: BTreeMap<u64, u32> = BTreeMap::new();
        for body in reached.iter().map(|id| program.body(*id)) {
            body.ids().for_each(|inst| *bodies_at.entry(body.address(inst)).or_default() += 1);
        }
        KernelToCount { object, id, body: program.body(id), totals, counts, summaries, reached, bodies_at }
    }

    fn is_shared(&self, address: u64) -> bool {
        self.bodies_at.get(&address).is_some_and(|count| *count > 1)
    }

    /// Whether waves come to the blocks of a body along the edges of its graph only.
    fn is_closed(&self, id: BodyId) -> bool {
        let body = self.object.program.body(id);
        let shared = body.ids().any(|inst| self.is_shared(body.address(inst)));
        let starts_elsewhere = id == self.id && self.object.code.kernel(body.name()).is_some_and(starts_after_entry);
        !shared && !body.jumps_away() && !starts_elsewhere
    }

    /// The instructions of a body that the kernel may run.
    fn counted(&self, id: BodyId, cfg: &Cfg) -> Vec<CountedInstruction> {
        let body = self.object.program.body(id);
        let definitions = Definitions::new(body, cfg, self.summaries);
        let counted = instructions(body, cfg, &definitions, self.counts, self.is_closed(id));
        self.without_shared(counted)
    }

    /// A block of one body may begin in the middle of another one's.
    fn without_shared(&self, mut counted: Vec<CountedInstruction>) -> Vec<CountedInstruction> {
        for instruction in counted.iter_mut().filter(|instruction| self.is_shared(instruction.address)) {
            (instruction.executions, instruction.lanes) = (None, None);
        }
        counted
    }

    /// Calls `with` with each body that the kernel may run, itself first, and its instructions. How often these were
    /// executed may follow from the counts of branches, too.
    pub(super) fn each_body(&self, mut with: impl FnMut(&Body, &Cfg, &Definitions<'_>, Vec<CountedInstruction>)) {
        let program = &self.object.program;
        for id in &self.reached {
            let body = program.body(*id);
            let cfg = Cfg::build(body);
            let is_closed = self.is_closed(*id);
            let at = |address| body.at(address);
            let derived = if *id == self.id {
                let entries = entries(program, &self.object.code, &self.totals.name);
                let counts = KernelCounts { totals: self.totals, entries };
                Some(BlockCounts::derive(&graph(&cfg), &at, Some(counts)))
            } else {
                let whole = is_closed && self.counts.is_complete() && always_returns(program, *id);
                whole.then(|| BlockCounts::derive_entered(&graph(&cfg), &at, &self.totals.sites))
            };
            let executions = |block: BlockId| {
                let counted = self.counts.block(body.address(cfg.block(block).first));
                counted.map(|counted| counted.executions).or_else(|| derived.as_ref()?.of(block).0)
            };
            let definitions = Definitions::new(body, &cfg, self.summaries);
            let counted = instructions_of(body, &cfg, &definitions, self.counts, is_closed, executions);
            with(body, &cfg, &definitions, self.without_shared(counted));
        }
    }

    /// The instructions of the kernel itself.
    pub(super) fn own_instructions(&self) -> Vec<CountedInstruction> {
        self.counted(self.id, &Cfg::build(self.body))
    }

    /// What it executed.
    pub(super) fn mix(&self) -> Result<KernelMix> {
        self.add_up().within(|| format!("kernel {}", self.totals.demangled))
    }

    fn add_up(&self) -> Result<KernelMix> {
        let program = &self.object.program;
        let mut total = Mix::default();
        let mut lines: BTreeMap<Option<Source>, Mix> = BTreeMap::new();
        let mut loops = Vec::new();
        let mut seen: BTreeSet<u64> = BTreeSet::new();
        let mut addresses_known = true;
        for id in &self.reached {
            let body = program.body(*id);
            let cfg = Cfg::build(body);
            let mut counted = self.counted(*id, &cfg);
            counted.retain(|instruction| seen.insert(instruction.address));
            addresses_known &= counted.iter().all(|instruction| instruction.makes_addresses.is_some());
            for instruction in &counted {
                total.add(instruction)?;
                lines.entry(self.source(instruction.address)).or_default().add(instruction)?;
            }
            loops.extend(self.loops(body, &cfg, &counted)?);
        }
        let mut lines: Vec<LineMix> =
            lines.into_iter().map(|(source, mix)| LineMix { source, mix: MixCounts::from(&mix) }).collect();
        // What was not executed.
        lines.retain(|line| line.mix.instructions > 0 || line.mix.uncounted > 0);
        lines.sort_by_key(|line| Reverse(line.mix.instructions));
        let mut uncounted_callees = self.totals.uncounted_callees.clone();
        if program.callees(self.id).unknown && !uncounted_callees.iter().any(|name| name == "?") {
            uncounted_callees.push("?".to_owned());
        }
        Ok(KernelMix {
            name: self.body.name().to_owned(),
            demangled: demangle(self.body.name()).into_owned(),
            target: self.object.target_id.clone(),
            object: self.object.digest.clone(),
            wave_size: self.body.target().wave_size(),
            dispatches: self.totals.dispatches,
            waves: self.totals.waves,
            dropped: self.totals.dropped,
            unfinished: self.totals.unfinished,
            uncounted_callees,
            addresses_known,
            total: MixCounts::from(&total),
            loops,
            lines,
        })
    }

    fn source(&self, address: u64) -> Option<Source> {
        self.object.line(address)
    }

    fn loops(&self, body: &Body, cfg: &Cfg, counted: &[CountedInstruction]) -> Result<Vec<LoopMix>> {
        let loops = cfg.loops();
        let of_loop = |each: &wavetap_analysis::cfg::Loop| -> Result<LoopMix> {
            let mut mix = Mix::default();
            for instruction in counted.iter().filter(|one| each.blocks.binary_search(&one.block).is_ok()) {
                mix.add(instruction)?;
            }
            let header = body.address(cfg.block(each.header).first);
            let first = counted.iter().find(|instruction| instruction.address == header);
            Ok(LoopMix {
                header,
                depth: each.depth,
                source: self.source(header),
                iterations: first.and_then(|instruction| instruction.executions),
                mix: MixCounts::from(&mix),
            })
        };
        loops.all().iter().map(of_loop).collect()
    }
}
