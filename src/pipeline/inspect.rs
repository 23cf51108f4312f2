//! Bundles, targets, kernels and what they need of the machine.

use super::object::{digest, place, target_id};
use super::options::Selection;
use crate::code_object::{CodeObject, Field, Kernel, demangle};
use crate::error::{Result, ResultExt};
use crate::instrument::resources;
use crate::offload_bundle::{Container, Found, Input};
use crate::report::inspect::{InspectedBundle, InspectedKernel, InspectedObject, Inspection, SCHEMA};

/// Workgroups may have this many work-items where the metadata does not say (AMDGPUUsage, "amdgpu-flat-work-group-size").
const DEFAULT_WORKGROUP: u64 = 1024;

/// What is in an input.
///
/// # Errors
/// Malformed or unsupported if the input, or a selected code object in it, breaks its format.
pub fn inspect(data: &[u8], selection: &Selection) -> Result<Inspection> {
    let input = Input::parse(data)?;
    let bundles = input
        .bundles
        .iter()
        .enumerate()
        .map(|(index, bundle)| InspectedBundle {
            offset: bundle.offset,
            size: bundle.size,
            compressed: bundle.compressed.as_ref().map(|header| header.version),
            registered: input.is_live(index),
            entries: bundle
                .entries
                .iter()
                .filter(|entry| entry.target.as_ref().is_none_or(|target| selection.has_target(&target.to_string())))
                .map(|entry| entry.id.clone())
                .collect(),
        })
        .collect();
    let mut objects = Vec::new();
    for found in input.code_objects() {
        objects.extend(inspect_object(&found, selection).within(|| place(&found))?);
    }
    let container = match &input.container {
        Container::Host { .. } => "host ELF file",
        Container::Bundles => "offload bundles",
        Container::CodeObject => "code object",
    };
    Ok(Inspection { schema: SCHEMA.to_owned(), container: container.to_owned(), bundles, objects })
}

fn inspect_object(found: &Found<'_>, selection: &Selection) -> Result<Option<InspectedObject>> {
    let code = CodeObject::parse(found.bytes)?;
    let target = target_id(found, &code);
    if !selection.has_target(&target) {
        return Ok(None);
    }
    let kernels =
        code.kernels().iter().filter(|kernel| selection.has_kernel(&kernel.name)).map(|kernel| inspect_kernel(&code, kernel)).collect();
    Ok(Some(InspectedObject {
        bundle: found.place.map(|(bundle, _)| bundle),
        entry: found.place.map(|(_, entry)| entry),
        target,
        handled: code.target().is_some(),
        code_object_version: code.version(),
        size: found.bytes.len() as u64,
        digest: digest(found.bytes),
        counts: code.is_rewritten(),
        line_table: code.line_table().is_ok_and(|lines| lines.is_some()),
        functions: code.functions().iter().map(|function| demangle(&function.name).into_owned()).collect(),
        kernels,
    }))
}

fn inspect_kernel(code: &CodeObject<'_>, kernel: &Kernel) -> InspectedKernel {
    let metadata = kernel.metadata.as_ref();
    let descriptor = &kernel.descriptor;
    let lds = metadata.map_or(descriptor.get(Field::GROUP_SEGMENT_FIXED_SIZE).into(), |metadata| metadata.group_segment_fixed_size);
    let workgroup = metadata.map_or(0, |metadata| metadata.max_flat_workgroup_size);
    let for_occupancy = if workgroup == 0 { DEFAULT_WORKGROUP } else { workgroup };
    let resources = code.target().map(|target| {
        let saturated = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let mut resources = resources(target, descriptor, saturated(lds), saturated(for_occupancy));
        resources.code_bytes = kernel.code.end - kernel.code.start;
        resources
    });
    InspectedKernel {
        name: kernel.name.clone(),
        demangled: demangle(&kernel.name).into_owned(),
        entry: kernel.entry,
        code_bytes: kernel.code.end - kernel.code.start,
        agprs: metadata.map(|metadata| metadata.agpr_count),
        scratch_bytes: descriptor.get(Field::PRIVATE_SEGMENT_FIXED_SIZE).into(),
        kernarg_bytes: descriptor.get(Field::KERNARG_SIZE).into(),
        spilled_sgprs: metadata.map(|metadata| metadata.sgpr_spill_count),
        spilled_vgprs: metadata.map(|metadata| metadata.vgpr_spill_count),
        workgroup_size: (workgroup > 0).then_some(workgroup),
        resources,
    }
}
