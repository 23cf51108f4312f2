//! What an HTML page shows of the code of a profile's kernels.

use std::collections::BTreeSet;

use super::disassemble::disassemble;
use super::memory::{self, MemoryInputs};
use super::mix::{self, KernelToCount};
use super::object::{Object, objects};
use wavetap_analysis::cfg::BodyId;
use wavetap_analysis::dataflow::Summaries;
use wavetap_base::error::Result;
use wavetap_mix::{CountedInstruction, SiteCounts};
use wavetap_object::offload_bundle::Input;
use wavetap_object::selection::Selection;
use wavetap_profile::file::{KernelTotals, Profile};
use wavetap_report::counted::{self, CountedObject};
use wavetap_report::disassembly::{Disassembly, Listed};
use wavetap_report::html::{InstructionFacts, PageData};

/// Adds to `page` what there is to know of the kernels of `profile` whose code is in an input: disassembly, accesses of
/// memory, instruction mix. `accesses` is a profile of the same program with recorded accesses, if there is one.
///
/// # Errors
/// Malformed or unsupported if the input cannot be decoded or was rewritten; malformed if a profile is of another
/// input; limit if a sum does not fit 64 bits.
pub fn page(page: &mut PageData<'_>, data: &[u8], profile: &Profile, accesses: Option<&Profile>) -> Result<()> {
    page.has_binary = true;
    if profile.kernels.is_empty() {
        return Ok(());
    }
    let input = Input::parse(data)?;
    let found = CountedObject::all(&input, &[])?;
    counted::check(profile, &found)?;
    accesses.map(|accesses| counted::check(accesses, &found)).transpose()?;
    let is_here = |kernel: &&KernelTotals| found.iter().any(|object| object.digest() == kernel.object);
    let kernels: Vec<&KernelTotals> = profile.kernels.iter().filter(is_here).collect();
    let targets: BTreeSet<String> = kernels.iter().map(|kernel| kernel.target.clone()).collect();
    let selection = Selection { kernels: Vec::new(), targets: targets.into_iter().collect() };
    list(page, data, profile, &kernels, &selection)?;
    let mut unread = Vec::new();
    for object in objects(&input, &selection, &mut unread)? {
        let summaries = Summaries::compute(&object.program);
        for id in object.program.ids() {
            of_kernel(page, &object, id, &summaries, profile, accesses)?;
        }
    }
    page.unread.extend(unread);
    Ok(())
}

/// The disassembly of the kernels.
fn list(
    page: &mut PageData<'_>,
    data: &[u8],
    profile: &Profile,
    kernels: &[&KernelTotals],
    selection: &Selection,
) -> Result<()> {
    let names = kernels.iter().map(|kernel| kernel.name.clone()).collect();
    let listed = Listed {
        selection: Selection { kernels: names, targets: selection.targets.clone() },
        profile: Some(profile),
        ..Listed::default()
    };
    let mut disassembly = Disassembly::default();
    page.unread.extend(disassemble(data, &listed, &mut disassembly)?);
    for object in disassembly.objects {
        for code in object.code {
            let Some(name) = code.name.clone() else { continue };
            if kernels.iter().any(|kernel| kernel.object == object.facts.digest && kernel.name == name) {
                page.kernel_mut(&object.facts.digest, &name).code = Some(code);
            }
        }
    }
    Ok(())
}

fn of_kernel(
    page: &mut PageData<'_>,
    object: &Object<'_>,
    id: BodyId,
    summaries: &Summaries,
    profile: &Profile,
    accesses: Option<&Profile>,
) -> Result<()> {
    let body = object.program.body(id);
    let Some(totals) = mix::totals(profile, object, body)? else { return Ok(()) };
    let inputs = MemoryInputs { profile: Some(profile), recorded: accesses, ..MemoryInputs::default() };
    let of_memory = memory::of_kernel(object, id, summaries, inputs);
    let counts = SiteCounts::of(&totals);
    let kernel = KernelToCount::new(object, id, &totals, &counts, summaries);
    let mix = counts.has_blocks().then(|| kernel.mix()).transpose()?;
    let instructions = kernel.own_instructions().iter().map(facts).collect();
    let known = page.kernel_mut(&object.digest, body.name());
    (known.memory, known.mix, known.instructions) = (Some(of_memory), mix, instructions);
    Ok(())
}

fn facts(counted: &CountedInstruction) -> InstructionFacts {
    let classes: Vec<String> = counted.work.classes.iter().map(ToString::to_string).collect();
    let lanes = counted.executions.zip(counted.lanes).filter(|(executions, _)| *executions > 0);
    InstructionFacts {
        address: counted.address,
        class: classes.join(" + "),
        executions: counted.executions,
        lanes: lanes.map(|(executions, lanes)| lanes as f64 / executions as f64),
    }
}
