//! How the lanes of a file's kernels access memory.

use std::collections::{BTreeMap, BTreeSet};

use super::memory_records;
use super::object::{Object, objects};
use wavetap_amd_code::{entries, graph};
use wavetap_amdgpu::print;
use wavetap_analysis::cfg::{BodyId, Cfg};
use wavetap_analysis::dataflow::{Definitions, Summaries};
use wavetap_analysis::kernel::{Body, BodyKind};
use wavetap_base::error::{Error, Result};
use wavetap_explain::memory::{
    AccessFacts, CalledFunction, KernelMemory, MappedWorkgroups, MeasuredAccess, MemoryAccess, MemoryReport,
    RecordedMemory, SCHEMA,
};
use wavetap_memory::{
    Accesses, Analysis, Launched, RecordedKernel, Site, Space, WaveAccesses, WorkgroupSource, pointers,
};
use wavetap_object::code_object::{Kernel, demangle};
use wavetap_object::offload_bundle::Input;
use wavetap_object::selection::Selection;
use wavetap_profile::file::{KernelTotals, Profile};
use wavetap_profile::probes::blocks;
use wavetap_report::counted::{self, CountedObject};
use wavetap_report::export::records::NamedRecords;
use wavetap_slice::counts::{BlockCounts, KernelCounts};

/// What is known of the runs of an input.
#[derive(Debug, Clone, Copy, Default)]
pub struct MemoryInputs<'a> {
    /// How often code ran, and with which workgroups.
    pub profile: Option<&'a Profile>,
    /// A profile with recorded accesses, if that is another one.
    pub recorded: Option<&'a Profile>,
    /// Work-items of a workgroup in x, y, z, whatever the input and the profile say.
    pub workgroup: Option<[u32; 3]>,
    /// Accesses that were recorded.
    pub records: &'a [KernelRecords],
    /// Of which workgroups heat maps are.
    pub mapped: MappedWorkgroups,
}

/// Accesses of a kernel that were recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelRecords {
    /// MD5 of its code object, as in a profile.
    pub object: String,
    /// Its mangled name.
    pub kernel: String,
    /// The accesses.
    pub recorded: RecordedKernel,
}

/// What a profile has recorded of the accesses of the selected kernels of an input.
///
/// # Errors
/// As [`memory`]; unsupported if nothing was recorded of any.
pub fn recorded(data: &[u8], selection: &Selection, profile: &Profile) -> Result<Vec<NamedRecords>> {
    let input = Input::parse(data)?;
    counted::check(profile, &CountedObject::all(&input, &[])?)?;
    let mut kernels = Vec::new();
    for object in &objects(&input, selection, &mut Vec::new())? {
        let summaries = Summaries::compute(&object.program);
        for body in object.program.ids().map(|id| object.program.body(id)) {
            let is_selected = body.kind() == BodyKind::Kernel && selection.has_kernel(body.name());
            let Some(totals) = totals(profile, object, body).filter(|_| is_selected) else { continue };
            let Some(mut recorded) = memory_records::of_profile(profile, totals, &object.program) else { continue };
            let kernel = object.code.kernel(body.name());
            let cfg = Cfg::build(body);
            let definitions = Definitions::new(body, &cfg, &summaries);
            let accesses = Accesses::of(body, &definitions, pointers(kernel));
            let mut waves = WaveAccesses::new(&accesses, &Launched::of(kernel, Some(totals)));
            let sites: Vec<Site> = accesses.all().iter().map(|access| waves.site(access)).collect();
            memory_records::name(&mut recorded, &arguments(object, body, kernel, &sites));
            let instructions = totals.sites.iter().map(|site| (site.address, site.instruction.clone())).collect();
            let (name, demangled) = (body.name().to_owned(), totals.demangled.clone());
            kernels.push(NamedRecords { name, demangled, recorded, instructions });
        }
    }
    if kernels.is_empty() {
        let how = "make the profile with `wavetap profile --probe memory`";
        return Err(Error::unsupported(format!("the profile has no recorded accesses of these kernels: {how}")));
    }
    Ok(kernels)
}

/// The arguments that the addresses of accesses are offsets from, by the address of the instruction.
fn arguments(object: &Object<'_>, body: &Body, kernel: Option<&Kernel>, sites: &[Site]) -> BTreeMap<u64, String> {
    let names = kernel.map(|kernel| object.arguments(kernel)).unwrap_or_default();
    let named = |site: &Site| Some((body.address(site.access.inst), argument(kernel, &names, site.argument?)?));
    sites.iter().filter_map(named).collect()
}

/// The argument that is at a place of the segment of arguments: its name, or its number.
fn argument(kernel: Option<&Kernel>, names: &[String], place: u32) -> Option<String> {
    let arguments = &kernel?.metadata.as_ref()?.args;
    let number = arguments.iter().position(|argument| argument.offset == u64::from(place))?;
    let own = arguments[number].name.as_ref();
    let explicit = arguments[..number].iter().filter(|argument| !argument.value_kind.is_hidden()).count();
    Some(own.or_else(|| names.get(explicit)).cloned().unwrap_or_else(|| format!("argument {}", number + 1)))
}

/// The accesses of the selected kernels of an input.
///
/// # Errors
/// Malformed or unsupported if the input cannot be decoded; malformed if the profile is of another input.
pub fn memory(data: &[u8], selection: &Selection, inputs: MemoryInputs<'_>) -> Result<MemoryReport> {
    let input = Input::parse(data)?;
    let mut unread = Vec::new();
    let objects = objects(&input, selection, &mut unread)?;
    for profile in inputs.profile.into_iter().chain(inputs.recorded) {
        counted::check(profile, &CountedObject::all(&input, &[])?)?;
    }
    let mut kernels = Vec::new();
    for object in &objects {
        let summaries = Summaries::compute(&object.program);
        let selected = |id: &BodyId| {
            let body = object.program.body(*id);
            body.kind() == BodyKind::Kernel && selection.has_kernel(body.name())
        };
        let ids = object.program.ids().filter(selected);
        kernels.extend(ids.map(|id| of_kernel(object, id, &summaries, inputs)));
    }
    Ok(MemoryReport { schema: SCHEMA.to_owned(), predicted: true, kernels, unread })
}

/// The accesses of a kernel.
pub(super) fn of_kernel(
    object: &Object<'_>,
    id: BodyId,
    summaries: &Summaries,
    inputs: MemoryInputs<'_>,
) -> KernelMemory {
    let (body, callees) = (object.program.body(id), object.program.callees(id));
    let kernel = object.code.kernel(body.name());
    let totals = inputs.profile.and_then(|profile| totals(profile, object, body));
    let mut launched = Launched::of(kernel, totals);
    if let Some(workgroup) = inputs.workgroup {
        (launched.workgroup, launched.source) = (workgroup, WorkgroupSource::Given);
    }
    let cfg = Cfg::build(body);
    let loops = cfg.loops();
    let definitions = Definitions::new(body, &cfg, summaries);
    let accesses = Accesses::of(body, &definitions, pointers(kernel));
    let mut waves = WaveAccesses::new(&accesses, &launched);
    let counts = totals.map(|totals| {
        let entries = entries(&object.program, &object.code, &totals.name);
        BlockCounts::derive(&graph(&cfg), &|address| body.at(address), Some(KernelCounts { totals, entries }))
    });
    let given = inputs.records.iter().find(|of| of.object == object.digest && of.kernel == body.name());
    let sites: Vec<Site> = accesses.all().iter().map(|access| waves.site(access)).collect();
    let recorded_in =
        inputs.recorded.or(inputs.profile).and_then(|profile| Some((profile, self::totals(profile, object, body)?)));
    let mut of_profile =
        recorded_in.and_then(|(profile, totals)| memory_records::of_profile(profile, totals, &object.program));
    if let Some(recorded) = &mut of_profile {
        memory_records::name(recorded, &arguments(object, body, kernel, &sites));
    }
    let records = given.map(|given| &given.recorded).or(of_profile.as_ref());
    let analysis = records.map(Analysis::of);
    let names = kernel.map(|kernel| object.arguments(kernel)).unwrap_or_default();
    let of_site = |site: &Site| {
        let (id, address) = (site.access.inst, body.address(site.access.inst));
        let block = cfg.block_of(id);
        let executions = counts.as_ref().and_then(|counts| counts.of(block).0);
        let facts = AccessFacts {
            address,
            instruction: print(body.target(), body.inst(id)),
            source: object.line(address),
            loop_depth: loops.depth(block),
            array: site.argument.and_then(|place| argument(kernel, &names, place)),
            executions,
            active_lanes: totals.and_then(|totals| lanes(totals, body.address(cfg.block(block).first))),
            measured: in_all(analysis.iter().flat_map(|analysis| measured(analysis, address, site)), executions, site),
        };
        MemoryAccess::new(site, facts)
    };
    KernelMemory {
        name: body.name().to_owned(),
        demangled: demangle(body.name()).into_owned(),
        target: object.target_id.clone(),
        workgroup: launched.workgroup,
        workgroup_source: launched.source,
        waves: accesses.waves(&launched).len() as u32,
        line_bytes: body.target().l1_line_bytes(),
        accesses: sites.iter().map(of_site).collect(),
        recorded: analysis.as_ref().map(|analysis| {
            let mut recorded = RecordedMemory::new(analysis, inputs.mapped, |address| object.line(address));
            if let (None, Some((profile, totals))) = (given, recorded_in) {
                recorded.dispatches = memory_records::dispatches(profile, totals).count() as u64;
                recorded.of_dispatches = totals.dispatches;
                recorded.not_measured = not_measured(&sites, body, totals);
            }
            recorded
        }),
        called: callees
            .bodies
            .iter()
            .filter(|callee| **callee != id)
            .map(|id| called(object.program.body(*id)))
            .collect(),
        calls_unknown: callees.unknown,
    }
}

fn called(function: &Body) -> CalledFunction {
    CalledFunction {
        name: function.name().to_owned(),
        demangled: demangle(function.name()).into_owned(),
        accesses: wavetap_memory::accesses(function).count() as u64,
    }
}

/// Accesses by vector instructions that the memory probe leaves out.
fn not_measured(sites: &[Site], body: &Body, totals: &KernelTotals) -> u64 {
    let measured: BTreeSet<u64> = totals.sites.iter().map(|site| site.address).collect();
    let is_left_out =
        |site: &&Site| site.access.space != Space::Scalar && !measured.contains(&body.address(site.access.inst));
    sites.iter().filter(is_left_out).count() as u64
}

/// What was recorded of an instruction, for each memory that it accessed.
fn measured<'a>(analysis: &'a Analysis<'_>, address: u64, site: &'a Site) -> impl Iterator<Item = MeasuredAccess> + 'a {
    let of_address = analysis.measured.iter().filter(move |measured| measured.address == address);
    of_address.map(move |measured| MeasuredAccess::new(analysis, measured, site))
}

/// With what they cost in all executions, if it is known how many there were.
fn in_all(measured: impl Iterator<Item = MeasuredAccess>, executions: Option<u64>, site: &Site) -> Vec<MeasuredAccess> {
    let measured: Vec<MeasuredAccess> = measured.collect();
    match (executions, &measured[..]) {
        // Of several memories nothing says which of the executions were of which.
        (Some(executions), [_]) => {
            measured.into_iter().map(|measured| measured.in_all(executions, site.access.addresses)).collect()
        }
        _ => measured,
    }
}

/// What was counted of a kernel.
fn totals<'p>(profile: &'p Profile, object: &Object<'_>, body: &Body) -> Option<&'p KernelTotals> {
    profile.kernels.iter().find(|kernel| kernel.object == object.digest && kernel.name == body.name())
}

/// Active lanes of a block on average, if it was counted.
fn lanes(totals: &KernelTotals, block: u64) -> Option<f64> {
    let site =
        totals.sites.iter().find(|site| site.address == block && blocks::BlockCounts::of(&site.counts).is_some())?;
    let counts = blocks::BlockCounts::of(&site.counts)?;
    (counts.executions > 0).then(|| counts.lanes as f64 / counts.executions as f64)
}
