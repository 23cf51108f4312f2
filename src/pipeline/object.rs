//! A code object that was found in an input, decoded.

use wavetap_amd_code::{Decoded, TableLines};
use wavetap_amdgpu::Target;
use wavetap_analysis::cfg::Program;
use wavetap_analysis::kernel::{Body, BodyKind, Image};
use wavetap_base::error::{Error, Kind, Result, ResultExt};
use wavetap_code::{Function, SourceLine, SourceLines};
use wavetap_object::code_object::{Argument, CodeObject, Frame, Kernel, LineTable, PartKind, demangle, digest};
use wavetap_object::elf::Segment;
use wavetap_object::offload_bundle::{EntryPlace, Found, Input};
use wavetap_object::selection::Selection;
use wavetap_profile::file::Profile;
use wavetap_profile::map::Source;
use wavetap_slice::CodeToSlice;

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

    /// Its kernels, decoded, in order of their addresses. A kernel that cannot be decoded is not among them; see
    /// [`Program::undecodable`].
    pub fn kernels(&self) -> impl Iterator<Item = &Body> {
        self.program.bodies().iter().filter(|body| body.kind() == BodyKind::Kernel)
    }

    /// The functions around the instruction at an address, the one that was inlined last first; empty without debug
    /// information.
    #[must_use]
    pub fn frames(&self, address: u64) -> Vec<Frame> {
        self.lines.as_ref().map(|lines| lines.frames(address)).unwrap_or_default()
    }

    /// The names of a kernel's arguments, without those that the runtime fills in: what the metadata has, and else the
    /// debug information, where that has as many; empty where neither does.
    #[must_use]
    pub fn arguments(&self, kernel: &Kernel) -> Vec<String> {
        let all = kernel.metadata.iter().flat_map(|metadata| &metadata.args);
        let explicit: Vec<&Argument> = all.filter(|argument| !argument.value_kind.is_hidden()).collect();
        let named: Option<Vec<String>> = explicit.iter().map(|argument| argument.name.clone()).collect();
        let of_debug_information = || {
            let names = self.lines.as_ref()?.parameters(kernel.entry)?;
            (names.len() == explicit.len()).then_some(names)
        };
        named.or_else(of_debug_information).unwrap_or_default()
    }

    /// The line in which the function that begins at an address is declared, where the debug information has it.
    #[must_use]
    pub fn declaration(&self, address: u64) -> Option<u32> {
        self.lines.as_ref()?.declaration(address)
    }

    /// Whether it has debug information that can be read.
    #[must_use]
    pub fn has_lines(&self) -> bool {
        self.lines.is_some()
    }

    /// The source line of the instruction at an address.
    #[must_use]
    pub fn line(&self, address: u64) -> Option<Source> {
        source_line(self.lines.as_ref(), address)
    }

    /// Its code as the slicer reads it; the profile says how its kernels were launched.
    #[must_use]
    pub fn decoded<'a>(&'a self, profile: Option<&'a Profile>) -> Decoded<'a> {
        Decoded::new(&self.program, &self.code, &self.digest, self.lines.as_ref(), profile)
    }

    /// What it is sliced from.
    #[must_use]
    pub fn to_slice<'a>(&'a self, decoded: &'a Decoded<'a>) -> CodeToSlice<'a> {
        let loads = || self.code.elf().loads();
        CodeToSlice {
            target_id: &self.target_id,
            digest: &self.digest,
            size: self.size,
            loaded: loads().map(|load| load.address).min().unwrap_or(0)..loads().map(Segment::end).max().unwrap_or(0),
            kernels: self.code.kernels().iter().map(|kernel| kernel.name.as_str()).collect(),
            functions: decoded.functions().map(|function| Box::new(function) as Box<dyn Function + 'a>).collect(),
            lines: decoded.lines(),
            demangle,
        }
    }
}

/// The source line of the instruction at an address, where the debug information has it.
pub(super) fn source_line(lines: Option<&LineTable>, address: u64) -> Option<Source> {
    TableLines(lines).line(address).map(|SourceLine { file, line }| Source { file, line })
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
