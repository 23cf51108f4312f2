//! A code object that was found in an input, decoded.

use super::options::Selection;
use wavetap_amdgpu::Target;
use wavetap_analysis::cfg::Program;
use wavetap_analysis::kernel::Image;
use wavetap_base::error::{Error, Kind, Result, ResultExt};
use wavetap_object::code_object::{CodeObject, LineTable, PartKind, digest};
use wavetap_object::offload_bundle::{Found, Input};
use wavetap_profile::map::Source;
use wavetap_slice::chains::Inlined;

/// A code object with everything that decoding it gives.
#[derive(Debug)]
pub struct Object<'i> {
    /// Indices of bundle and entry; none when the input is the code object itself.
    pub place: Option<(usize, usize)>,
    /// The target id it was bundled under, or its own.
    pub target_id: String,
    /// MD5 of its bytes, lower-case hex: joins it with profiles.
    pub digest: String,
    /// Bytes of its file.
    pub size: u64,
    /// The processor.
    pub target: Target,
    /// Symbols, descriptors, metadata.
    pub code: CodeObject<'i>,
    /// Its executable bytes and pointers.
    pub image: Image<'i>,
    /// Its kernels and functions, decoded.
    pub program: Program,
    lines: Option<LineTable>,
}

impl<'i> Object<'i> {
    /// Decodes a code object.
    ///
    /// # Errors
    /// Malformed if it breaks its format; unsupported if it is for a processor that the tables do not have.
    pub fn decode(found: &Found<'i>) -> Result<Object<'i>> {
        let code = CodeObject::parse(found.bytes)?;
        let target = code
            .target()
            .ok_or_else(|| Error::unsupported(format!("code for {}, which is not handled", code.target_id())))?;
        let image = Image::of(&code)?;
        let program = Program::of(target, &image);
        // Damaged debug information costs the source lines, nothing else.
        let lines = code.line_table().unwrap_or_default();
        Ok(Object {
            place: found.place,
            target_id: target_id(found, &code),
            digest: digest(found.bytes),
            size: found.bytes.len() as u64,
            target,
            code,
            image,
            program,
            lines,
        })
    }

    /// The source line of the instruction at `address`.
    #[must_use]
    pub fn source(&self, address: u64) -> Option<Source> {
        source(self.lines.as_ref(), address)
    }
}

/// The source line of the instruction at `address`.
pub(super) fn source(lines: Option<&LineTable>, address: u64) -> Option<Source> {
    let location = lines?.location(address)?;
    (location.line > 0).then_some(Source { file: location.file, line: location.line })
}

impl Object<'_> {
    /// By which inlined calls the instruction at `address` came where it is, innermost first.
    #[must_use]
    pub fn inlined(&self, address: u64) -> Vec<Inlined> {
        let Some(lines) = &self.lines else { return Vec::new() };
        let frames = lines.frames(address);
        let calls = frames.iter().zip(frames.iter().skip(1)).filter_map(|(inner, outer)| {
            let location = outer.location.clone().filter(|location| location.line > 0)?;
            Some(Inlined {
                function: inner.function.clone(),
                called_at: Source { file: location.file, line: location.line },
            })
        });
        calls.collect()
    }
}

/// A code object that was found in an input, its tables read.
#[derive(Debug)]
pub(super) struct Opened<'i> {
    pub(super) place: Option<(usize, usize)>,
    pub(super) target_id: String,
    pub(super) bytes: &'i [u8],
    pub(super) code: CodeObject<'i>,
}

impl<'i> Opened<'i> {
    pub(super) fn open(found: &Found<'i>) -> Result<Opened<'i>> {
        let code = CodeObject::parse(found.bytes)?;
        Ok(Opened { place: found.place, target_id: target_id(found, &code), bytes: found.bytes, code })
    }

    /// The name by which a person can ask for it.
    pub(super) fn id(&self) -> String {
        entry_id(self.place)
    }
}

/// `0.2`: bundle and entry. A code object by itself is entry 0 of bundle 0.
pub(super) fn entry_id(place: Option<(usize, usize)>) -> String {
    let (bundle, entry) = place.unwrap_or((0, 0));
    format!("{bundle}.{entry}")
}

/// The code objects of an input that the HIP runtime will see, or, of all there are, those with the given entry ids; of
/// these the ones for selected targets.
///
/// # Errors
/// Malformed if an id or a target selects nothing.
pub(super) fn every_object<'i>(
    input: &'i Input<'_>,
    entries: &[String],
    selection: &Selection,
) -> Result<Vec<Found<'i>>> {
    let mut objects: Vec<Found<'i>> = if entries.is_empty() {
        input.code_objects().collect()
    } else {
        let all: Vec<Found<'i>> =
            if input.bundles.is_empty() { input.code_objects().collect() } else { bundled(input).collect() };
        if let Some(missing) = entries.iter().find(|id| !all.iter().any(|found| entry_id(found.place) == **id)) {
            let ids: Vec<String> = all.iter().map(|found| entry_id(found.place)).collect();
            return Err(Error::malformed(format!(
                "no code object {missing:?} (bundle.entry); there are {}",
                ids.join(", ")
            )));
        }
        all.into_iter().filter(|found| entries.contains(&entry_id(found.place))).collect()
    };
    if selection.targets.is_empty() {
        return Ok(objects);
    }
    let id = |found: &Found<'_>| match found.target {
        Some(target) => Ok(target.to_string()),
        None => Ok::<String, Error>(CodeObject::parse(found.bytes)?.target_id()),
    };
    let ids = objects.iter().map(id).collect::<Result<Vec<String>>>()?;
    for wanted in &selection.targets {
        let one = Selection { targets: vec![wanted.clone()], ..Selection::default() };
        if !ids.iter().any(|id| one.has_target(id)) {
            let mut there = ids.clone();
            there.sort();
            there.dedup();
            return Err(Error::malformed(format!("no code for {wanted:?}; there is code for {}", there.join(", "))));
        }
    }
    let mut ids = ids.iter();
    objects.retain(|_| ids.next().is_some_and(|id| selection.has_target(id)));
    Ok(objects)
}

/// All code objects in bundles, those included that the HIP runtime is not told of.
fn bundled<'i>(input: &'i Input<'_>) -> impl Iterator<Item = Found<'i>> {
    input.bundles.iter().enumerate().flat_map(|(number, bundle)| {
        bundle.entries.iter().enumerate().filter_map(move |(index, entry)| {
            let (target, bytes) = (entry.target.as_ref()?, bundle.entry_bytes(index));
            wavetap_object::elf::is_elf(bytes).then_some(Found {
                place: Some((number, index)),
                target: Some(target),
                bytes,
            })
        })
    })
}

/// The id an object was bundled under, or its own.
pub(super) fn target_id(found: &Found<'_>, code: &CodeObject<'_>) -> String {
    found.target.map_or_else(|| code.target_id(), ToString::to_string)
}

/// Where a code object lies, for errors.
pub(super) fn place(found: &Found<'_>) -> String {
    place_name(found.place)
}

/// Bundle and entry in words.
pub(super) fn place_name(place: Option<(usize, usize)>) -> String {
    match place {
        Some((bundle, entry)) => format!("entry {entry} of bundle {bundle}"),
        None => "the code object".to_owned(),
    }
}

/// Decodes the selected code objects of an input. What contradicts its format goes to `unread`, with its place: code
/// objects beside others, and kernels of which that is true.
///
/// # Errors
/// As [`Object::decode`], of a code object by itself; otherwise only if none can be read.
pub fn objects<'i>(input: &'i Input<'_>, selection: &Selection, unread: &mut Vec<String>) -> Result<Vec<Object<'i>>> {
    let mut objects: Vec<Object<'i>> = Vec::new();
    unread.extend(input.malformed.iter().map(ToString::to_string));
    let mut failed = None;
    for found in input.code_objects() {
        let id = match found.target {
            Some(target) => target.to_string(),
            None => CodeObject::parse(found.bytes)?.target_id(),
        };
        if !selection.has_target(&id) {
            continue;
        }
        match Object::decode(&found).within(|| place(&found)) {
            Ok(object) => {
                let parts = object
                    .code
                    .malformed()
                    .iter()
                    .filter(|part| part.kind == PartKind::Kernel && selection.has_kernel(&part.name));
                unread.extend(parts.map(|part| format!("{part}, in {}", place(&found))));
                objects.push(object);
            }
            Err(error) if error.kind() == Kind::Unsupported => failed = Some(error),
            Err(error) if found.place.is_some() => {
                unread.push(error.to_string());
                failed = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    match failed {
        Some(error) if objects.is_empty() => Err(error),
        _ => Ok(objects),
    }
}
