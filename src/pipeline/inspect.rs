//! Bundles, entries, targets, kernels and what they need of the machine.

use super::kernel_facts::kernel_facts;
use super::object::{Opened, entry_id, every_object, place};
use super::options::Selection;
use wavetap_base::error::{Error, Kind, Result, ResultExt};
use wavetap_object::code_object::{
    CodeObject, DESCRIPTOR_SUFFIX, MalformedPart, PartKind, demangle, digest, processor_name,
};
use wavetap_object::elf::{self, Elf, Symbol};
use wavetap_object::offload_bundle::{Bundle, Container, Found, Input};
use wavetap_report::inspect::{
    Contents, InspectedBundle, InspectedEntry, InspectedFunction, InspectedKernel, InspectedObject, InspectedVariable,
    Inspection, SCHEMA,
};

/// What to look into and how.
#[derive(Debug, Clone, Default)]
pub struct Inspected {
    /// Which kernels and targets.
    pub selection: Selection,
    /// Entries (`0.2`), any of which has to match; none selects every entry.
    pub entries: Vec<String>,
    /// The workgroup size that occupancy is for.
    pub workgroup: Option<u32>,
    /// Bytes of LDS that launches add, for occupancy.
    pub dynamic_lds: u32,
}

/// What is in an input. With `extract`, that is called with each selected code object's entry and bytes and returns
/// where it put them.
///
/// ```
/// use wavetap::pipeline::{Inspected, inspect};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/hip-samples/bin/divergence");
/// # let data = std::fs::read(path).unwrap();
/// let inspection = inspect(&data, &Inspected::default(), None)?;
/// let entry = &inspection.bundles[0].entries[2];
/// assert_eq!((entry.id.as_str(), entry.target.as_deref()), ("0.2", Some("gfx90a")));
/// assert_eq!(inspection.objects.len(), 3);
/// # Ok::<(), wavetap::error::Error>(())
/// ```
///
/// # Errors
/// Malformed if the input breaks its format or a selection selects nothing; what `extract` reports. Of a code object
/// beside others that cannot be read, the inspection says why.
pub fn inspect(data: &[u8], inspected: &Inspected, mut extract: Option<&mut Extract<'_>>) -> Result<Inspection> {
    let input = Input::parse(data)?;
    if extract.is_some() && input.bundles.is_empty() {
        return Err(Error::unsupported("a code object by itself: there is nothing to extract from it"));
    }
    // Says so if nothing is selected.
    let selected = every_object(&input, &inspected.entries, &inspected.selection)?;
    let mut objects = Vec::new();
    // A library has hundreds of objects: who asks for kernels is told of those that have some of them.
    let by_kernel = !inspected.selection.kernels.is_empty();
    for found in &selected {
        let object = inspect_object(found, inspected).within(|| place(found))?;
        if !by_kernel || !object.kernels.is_empty() || !object.malformed.is_empty() {
            objects.push(object);
        }
    }
    if objects.is_empty() && by_kernel {
        return Err(Error::malformed(format!("no kernel matches {:?}", inspected.selection.kernels.join(" "))));
    }
    let mut bundles = Vec::new();
    for (index, bundle) in input.bundles.iter().enumerate() {
        bundles.push(inspect_bundle(&input, index, bundle, inspected));
    }
    if let Some(extract) = &mut extract {
        for entry in bundles.iter_mut().flat_map(|bundle| &mut bundle.entries).filter(|entry| entry.is_code()) {
            let (bundle, index) = entry.place();
            let bytes = input.bundles.get(bundle).map_or(&[][..], |bundle| bundle.entry_bytes(index));
            entry.extracted = Some(extract(entry, bytes)?);
        }
    }
    let container = match &input.container {
        Container::Host { .. } => "host ELF file",
        Container::Bundles => "offload bundles",
        Container::CodeObject => "code object",
    };
    let malformed = input.malformed.iter().map(ToString::to_string).collect();
    Ok(Inspection { schema: SCHEMA.to_owned(), container: container.to_owned(), bundles, objects, malformed })
}

/// Puts an entry's bytes somewhere and says where.
pub type Extract<'a> = dyn FnMut(&InspectedEntry, &[u8]) -> Result<String> + 'a;

fn inspect_bundle(input: &Input<'_>, index: usize, bundle: &Bundle<'_>, inspected: &Inspected) -> InspectedBundle {
    let selected = |id: &str, target: Option<&str>| {
        let entry = inspected.entries.is_empty() || inspected.entries.iter().any(|wanted| wanted == id);
        entry && target.is_none_or(|target| inspected.selection.has_target(target))
    };
    let mut entries = Vec::new();
    for (number, entry) in bundle.entries.iter().enumerate() {
        let id = entry_id(Some((index, number)));
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

fn inspect_object(found: &Found<'_>, inspected: &Inspected) -> Result<InspectedObject> {
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
                id: entry_id(found.place),
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
        id: entry_id(found.place),
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
