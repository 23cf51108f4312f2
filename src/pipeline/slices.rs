//! Joining a profile with the code it came from: what waits for what.

use super::memory::{self, MemoryInputs};
use super::object::{Object, objects};
use wavetap_amdgpu::{Branch, Condition, Flags, OpcodeFlags, Reg};
use wavetap_analysis::cfg::{BodyId, Cfg, EdgeKind, Exit};
use wavetap_analysis::dataflow::Summaries;
use wavetap_analysis::kernel::Body;
use wavetap_base::entity::InstId;
use wavetap_base::error::Result;
use wavetap_object::offload_bundle::Input;
use wavetap_object::selection::Selection;
use wavetap_profile::file::{KernelTotals, Profile};
use wavetap_profile::pc_samples::PcSamples;
use wavetap_report::Report;
use wavetap_report::counted::{self, CountedObject};
use wavetap_report::launches::CodeOfKernel;
use wavetap_report::slice::Slice;
use wavetap_report::summary;
use wavetap_slice::{Blame, CodeToSlice, SliceInputs};

/// What a slice rests on besides the code, and the rule of its chains.
#[derive(Debug, Clone, Copy, Default)]
pub struct Evidence<'a> {
    /// How often code ran.
    pub profile: Option<&'a Profile>,
    /// Where waves were seen in it. Of several the most trusted one that saw a kernel says how long its waits take.
    pub samples: &'a [PcSamples],
    /// Who is blamed.
    pub blame: Blame,
}

/// Slices the selected kernels of an input.
///
/// # Errors
/// Malformed or unsupported if the input cannot be decoded; malformed if the profile or the samples are of another
/// input.
pub fn slice(data: &[u8], selection: &Selection, evidence: Evidence<'_>) -> Result<Slice> {
    let Evidence { profile, samples, blame } = evidence;
    let input = Input::parse(data)?;
    let mut unread = Vec::new();
    let objects = objects(&input, selection, &mut unread)?;
    if let Some(profile) = profile {
        counted::check(profile, &CountedObject::all(&input, &[])?)?;
    }
    let objects: Vec<CodeToSlice<'_>> = objects.iter().map(Object::to_slice).collect();
    let selected = |_: &CodeToSlice<'_>, name: &str| selection.has_kernel(name);
    let inputs = SliceInputs { objects: &objects, selected: &selected, profile, samples, blame };
    Ok(Slice::new(wavetap_slice::slice(&inputs)?, unread))
}

/// Gives each kernel of a report its waits, from the original input. What its summary has to know of the code is given
/// back.
///
/// # Errors
/// Malformed or unsupported if the input cannot be decoded.
pub fn explain(report: &mut Report, profile: &Profile, data: &[u8]) -> Result<Vec<CodeOfKernel>> {
    // How lanes access memory only of the largest kernels: a library has many kernels, and a summary shows a few.
    let largest: Vec<&KernelTotals> =
        summary::largest(profile).into_iter().map(|place| &profile.kernels[place]).collect();
    explain_with(report, profile, data, &largest)
}

/// The same with how lanes access memory in all kernels.
pub(super) fn explain_all(report: &mut Report, profile: &Profile, data: &[u8]) -> Result<Vec<CodeOfKernel>> {
    let all: Vec<&KernelTotals> = profile.kernels.iter().collect();
    explain_with(report, profile, data, &all)
}

fn explain_with(
    report: &mut Report,
    profile: &Profile,
    data: &[u8],
    with_accesses: &[&KernelTotals],
) -> Result<Vec<CodeOfKernel>> {
    let mut code = Vec::new();
    if profile.kernels.is_empty() {
        return Ok(code);
    }
    let input = Input::parse(data)?;
    // What cannot be read was not instrumented either: the report says so where it lists what was refused.
    for object in objects(&input, &Selection::default(), &mut Vec::new())? {
        let selected = |object: &CodeToSlice<'_>, name: &str| {
            profile.kernels.iter().any(|kernel| kernel.object == object.digest && kernel.name == name)
        };
        let inputs = SliceInputs {
            objects: &[object.to_slice()],
            selected: &selected,
            profile: Some(profile),
            samples: &[],
            blame: Blame::Exposed,
        };
        for kernel in wavetap_slice::slice(&inputs)?.kernels {
            report.explain(&object.digest, kernel.into());
        }
        code.extend(code_of_kernels(&object, profile, with_accesses));
    }
    Ok(code)
}

/// What a summary has to know of the code of the kernels of an object that were dispatched; how lanes access memory
/// of some of them.
fn code_of_kernels(object: &Object<'_>, profile: &Profile, with_accesses: &[&KernelTotals]) -> Vec<CodeOfKernel> {
    let of_object = |kernel: &&KernelTotals| kernel.object == object.digest;
    let summaries =
        with_accesses.iter().copied().any(|kernel| of_object(&kernel)).then(|| Summaries::compute(&object.program));
    let program = &object.program;
    let of_kernel = |totals: &KernelTotals| {
        let id = program.by_name(&totals.name)?;
        let body = program.body(id);
        let is_meant = with_accesses.iter().any(|meant| of_object(meant) && meant.name == totals.name);
        let inputs = MemoryInputs { profile: Some(profile), ..MemoryInputs::default() };
        let has_barriers = |id: &BodyId| program.body(*id).opcode_flags().contains(OpcodeFlags::BARRIER);
        Some(CodeOfKernel {
            object: object.digest.clone(),
            name: totals.name.clone(),
            barriers: has_barriers(&id) || program.callees(id).bodies.iter().any(has_barriers),
            guard: guard(body),
            memory: summaries
                .as_ref()
                .filter(|_| is_meant)
                .map(|summaries| memory::of_kernel(object, id, summaries, inputs)),
        })
    };
    profile.kernels.iter().filter(of_object).filter_map(of_kernel).collect()
}

/// The instruction by which lanes without work leave the whole kernel: the last one of its first block that writes
/// EXEC, if the block ends in a branch on EXEC = 0 to where the wave ends and nothing else is done.
fn guard(body: &Body) -> Option<u64> {
    let cfg = Cfg::build(body);
    let entry = cfg.block(cfg.entry());
    if body.inst(entry.last).variant.branch != Branch::Conditional(Condition::ExecZ) {
        return None;
    }
    let taken = entry.successors.iter().find(|edge| edge.kind == EdgeKind::Taken)?;
    let end = cfg.block(taken.block);
    let does_nothing = |inst: InstId| {
        let flags = body.inst(inst).variant.flags;
        !flags.intersects(Flags::VALU | Flags::LOAD | Flags::STORE | Flags::ATOMIC)
    };
    if end.exit != Some(Exit::End) || !end.insts().all(does_nothing) {
        return None;
    }
    let writes_exec = |inst: &InstId| body.writes(*inst).any(|reg| reg.overlaps(Reg::EXEC));
    entry.insts().rev().find(writes_exec).map(|inst| body.address(inst))
}
