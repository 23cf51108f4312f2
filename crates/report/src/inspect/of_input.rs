//! What an inspection says of bundles and code objects.

use super::{
    Contents, Inspected, InspectedBundle, InspectedEntry, InspectedFunction, InspectedKernel, InspectedObject,
    InspectedVariable,
};
use crate::kernel_facts::kernel_facts;
use wavetap_base::error::{Kind, Result};
use wavetap_object::code_object::{
    CodeObject, DESCRIPTOR_SUFFIX, MalformedPart, PartKind, demangle, digest, processor_name,
};
use wavetap_object::elf::{self, Elf, Symbol};
use wavetap_object::offload_bundle::{Bundle, EntryPlace, Found, Input, entry_id};
use wavetap_object::selection::Opened;

impl InspectedBundle {
    /// What is in the bundle with this index: its selected entries.
    #[must_use]
    pub fn of(input: &Input<'_>, index: usize, bundle: &Bundle<'_>, inspected: &Inspected) -> InspectedBundle {
        let selected = |id: &str, target: Option<&str>| {
            let entry = inspected.entries.is_empty() || inspected.entries.iter().any(|wanted| wanted == id);
            entry && target.is_none_or(|target| inspected.selection.has_target(target))
        };
        let mut entries = Vec::new();
        for (number, entry) in bundle.entries.iter().enumerate() {
            let id = entry_id(Some(EntryPlace { bundle: index, entry: number }));
            let target = entry.target.as_ref().map(ToString::to_string);
            if !selected(&id, target.as_deref()) {
                continue;
            }
            let bytes = bundle.entry_bytes(number);
            entries.push(InspectedEntry {
                id,
                name: entry.id.clone(),
                target,
                offset: entry.offset,
                file_offset: bundle.compressed.is_none().then(|| bundle.offset + entry.offset),
                size: entry.size,
                contents: contents(bytes),
                code_object_version: CodeObject::parse(bytes).ok().map(|code| code.version()),
                problem: entry.problem.as_ref().map(ToString::to_string),
                extracted: None,
            });
        }
        InspectedBundle {
            index,
            offset: bundle.offset,
            size: bundle.size,
            compressed: bundle.compressed.as_ref().map(|header| header.version),
            unpacked_size: bundle.compressed.as_ref().map(|header| header.uncompressed_size),
            registered: input.is_live(index),
            entries,
        }
    }
}

fn contents(bytes: &[u8]) -> Contents {
    /// The first bytes of LLVM bitcode.
    const BITCODE: &[u8] = b"BC\xc0\xde";
    /// The first word of SPIR-V.
    const SPIRV: &[u8] = &[0x03, 0x02, 0x23, 0x07];
    match bytes {
        [] => Contents::Empty,
        _ if elf::is_elf(bytes) => Contents::Elf,
        _ if bytes.starts_with(BITCODE) => Contents::Bitcode,
        _ if bytes.starts_with(SPIRV) => Contents::Spirv,
        _ => Contents::Unknown,
    }
}

impl InspectedObject {
    /// What is in a code object. Of one in a bundle that cannot be read it says why.
    ///
    /// # Errors
    /// Malformed or unsupported if a code object by itself cannot be read.
    pub fn of(found: &Found<'_>, inspected: &Inspected) -> Result<InspectedObject> {
        let selection = &inspected.selection;
        let Opened { code, target_id: target, .. } = match Opened::open(found) {
            Ok(opened) => opened,
            // Listed, though nothing is known of what is inside. What is no code object by itself is a wrong input.
            Err(error) if error.kind() == Kind::Unsupported || found.place.is_some() => {
                let named = || {
                    Elf::parse(found.bytes)
                        .ok()
                        .and_then(|elf| processor_name(elf.header.flags))
                        .unwrap_or_default()
                        .to_owned()
                };
                let target = found.target.map_or_else(named, ToString::to_string);
                return Ok(InspectedObject {
                    id: found.id(),
                    target,
                    size: found.bytes.len() as u64,
                    digest: digest(found.bytes),
                    problem: Some(error.to_string()),
                    ..InspectedObject::default()
                });
            }
            Err(error) => return Err(error),
        };
        let is_selected = |part: &&MalformedPart| match part.kind {
            PartKind::Kernel | PartKind::MetadataEntry => selection.has_kernel(&part.name),
            PartKind::Function | PartKind::Metadata | PartKind::Symbol => selection.kernels.is_empty(),
        };
        let kernels = code.kernels().iter().filter(|kernel| selection.has(kernel)).map(|kernel| InspectedKernel {
            name: kernel.name.clone(),
            demangled: demangle(&kernel.name).into_owned(),
            entry: kernel.entry,
            code_bytes: kernel.code.end - kernel.code.start,
            facts: kernel_facts(&code, kernel, inspected.workgroup, inspected.dynamic_lds),
        });
        let functions = code.functions().iter().map(|function| InspectedFunction {
            name: function.name.clone(),
            demangled: demangle(&function.name).into_owned(),
            address: function.code.start,
            code_bytes: function.code.end - function.code.start,
        });
        Ok(InspectedObject {
            id: found.id(),
            target,
            handled: code.target().is_some(),
            problem: None,
            code_object_version: Some(code.version()),
            size: found.bytes.len() as u64,
            digest: digest(found.bytes),
            counts: code.is_rewritten(),
            line_table: code.line_table().is_ok_and(|lines| lines.is_some()),
            kernels: kernels.collect(),
            functions: functions.collect(),
            variables: variables(&code),
            malformed: code.malformed().iter().filter(is_selected).map(ToString::to_string).collect(),
        })
    }
}

/// The data symbols, descriptors left out.
fn variables(code: &CodeObject<'_>) -> Vec<InspectedVariable> {
    let table = if code.symbols().is_empty() { code.dynamic_symbols() } else { code.symbols() };
    let is_variable = |symbol: &&Symbol<'_>| {
        symbol.is_object() && !symbol.name.is_empty() && !symbol.name.ends_with(DESCRIPTOR_SUFFIX)
    };
    let mut variables: Vec<InspectedVariable> = table
        .iter()
        .filter(is_variable)
        .map(|symbol| {
            let section = symbol.section.index().and_then(|index| code.elf().sections.get(usize::from(index)));
            InspectedVariable {
                name: symbol.name.to_owned(),
                demangled: demangle(symbol.name).into_owned(),
                address: symbol.address,
                size: symbol.size,
                section: section.filter(|_| symbol.is_defined()).map(|section| section.name.to_owned()),
            }
        })
        .collect();
    variables.sort_by(|a, b| (a.address, &a.name).cmp(&(b.address, &b.name)));
    variables
}
