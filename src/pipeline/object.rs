//! A code object that was found in an input, decoded.

use wavetap_amdgpu::Target;
use wavetap_analysis::cfg::Program;
use wavetap_analysis::kernel::Image;
use wavetap_base::error::{Error, Kind, Result, ResultExt};
use wavetap_object::code_object::{CodeObject, LineTable, PartKind, digest};
use wavetap_object::offload_bundle::{EntryPlace, Found, Input};
use wavetap_object::selection::Selection;
use wavetap_profile::map::Source;
use wavetap_slice::chains::Inlined;

/// A code object with everything that decoding it gives.
#[derive(Debug)]
pub struct Object<'i> {
    /// Where it is; none when the input is the code object itself.
    pub place: Option<EntryPlace>,
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
            target_id: found.target_id(&code),
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
        match Object::decode(&found).within(|| found.location()) {
            Ok(object) => {
                let parts = object
                    .code
                    .malformed()
                    .iter()
                    .filter(|part| part.kind == PartKind::Kernel && selection.has_kernel(&part.name));
                unread.extend(parts.map(|part| format!("{part}, in {}", found.location())));
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
