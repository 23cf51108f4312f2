//! Annotated disassembly: every executable byte of the selected code, piece by piece.

use wavetap_base::error::{Error, Kind, Result, ResultExt};
use wavetap_object::code_object::{MalformedPart, PartKind};
use wavetap_object::offload_bundle::{Input, location};
use wavetap_object::selection::{Opened, Selection, near, no_kernel};
use wavetap_report::counted::ProfileOfInput;
use wavetap_report::disassembly::{Listed, Sink, list};

/// Disassembles the selected code into `sink`: all executable sections, or only the selected kernels (with the
/// functions that they may call) and functions. Returns what could not be disassembled although it was selected, and
/// why.
///
/// ```
/// use wavetap::pipeline::{Listed, disassemble};
/// use wavetap::report::disassembly::Disassembly;
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/hip-samples/bin/divergence");
/// # let data = std::fs::read(path).unwrap();
/// let mut listed = Listed::default();
/// listed.selection.targets.push("gfx90a".into());
/// listed.selection.kernels.push("divergent".into());
/// let mut disassembly = Disassembly::default();
/// let refused = disassemble(&data, &listed, &mut disassembly)?;
/// assert!(refused.is_empty());
/// let kernel = &disassembly.objects[0].code[0];
/// assert_eq!(kernel.instructions[0].instruction, "s_load_dword s7, s[4:5], 0x1c");
/// # Ok::<(), wavetap::error::Error>(())
/// ```
///
/// # Errors
/// Malformed or unsupported if the input or a selected code object cannot be taken apart; malformed if a selection
/// selects nothing or the profile is of another input; unsupported if there is a profile and selected code was
/// rewritten; what `sink` reports.
pub fn disassemble(data: &[u8], listed: &Listed<'_>, sink: &mut dyn Sink) -> Result<Vec<String>> {
    let input = Input::parse(data)?;
    let (opened, mut refused) = open(&input, listed)?;
    let profile =
        listed.profile.map(|profile| ProfileOfInput::of(profile, &input, &listed.entries, &opened)).transpose()?;
    for object in &opened {
        let target =
            object.code.target().ok_or_else(|| Error::internal("an object of an unknown processor was opened"))?;
        list(object, target, listed, profile.as_ref(), sink, &mut refused).within(|| location(object.place))?;
    }
    Ok(refused)
}

/// Offset of the flags in an ELF header, which say what a code object is for.
const ELF_FLAGS: u64 = 48;

/// The selected objects of processors that are handled, and what is said of the others. All errors of input and
/// selection are found here, before anything is written.
fn open<'i>(input: &'i Input<'_>, listed: &Listed<'_>) -> Result<(Vec<Opened<'i>>, Vec<String>)> {
    let (mut opened, mut refused) = (Vec::new(), Vec::new());
    let mut failed = None;
    for found in listed.selection.objects(input, &listed.entries)? {
        let named = |object: Opened<'i>| match object.code.target() {
            Some(_) => Ok(object),
            None => Err(Error::unsupported(format!("code for {}, whose instructions are not known", object.target_id))
                .at(ELF_FLAGS)),
        };
        match Opened::open(&found).and_then(named).within(|| found.location()) {
            Ok(object) => opened.push(object),
            // One beside others; by itself it is a wrong input.
            Err(error) if error.kind() == Kind::Unsupported || found.place.is_some() => {
                refused.push(error.to_string());
                failed = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    if let (true, Some(error)) = (opened.is_empty(), failed) {
        return Err(error);
    }
    refused.extend(input.malformed.iter().map(ToString::to_string));
    for object in &opened {
        let everything = listed.is_everything();
        let wanted = |part: &&MalformedPart| match part.kind {
            PartKind::Kernel => {
                everything || !listed.selection.kernels.is_empty() && listed.selection.has_kernel(&part.name)
            }
            _ => everything,
        };
        let parts = object.code.malformed().iter().filter(wanted);
        refused.extend(parts.map(|part| format!("{part}, in {}", location(object.place))));
    }
    let kernels: Vec<&str> = opened.iter().flat_map(|object| object.code.kernel_names()).collect();
    let functions: Vec<&str> =
        opened.iter().flat_map(|object| object.code.functions()).map(|function| function.name.as_str()).collect();
    let is_among = |pattern: &str, names: &[&str]| {
        let one = Selection::of_kernel(pattern);
        names.iter().any(|name| one.has_kernel(name))
    };
    if let Some(pattern) = listed.selection.kernels.iter().find(|pattern| !is_among(pattern, &kernels)) {
        let error = no_kernel(pattern, &kernels);
        if is_among(pattern, &functions) {
            return Err(Error::malformed(format!("{error}; a function of that name is there: --function")));
        }
        return Err(error);
    }
    let all: Vec<&str> = kernels.iter().chain(&functions).copied().collect();
    if let Some(pattern) = listed.functions.iter().find(|pattern| !is_among(pattern, &all)) {
        return Err(Error::malformed(format!("no function or kernel matches {pattern:?} ({})", near(pattern, &all))));
    }
    Ok((opened, refused))
}
