//! What a person is told of a fault: the address in the original code, and its source line.

use std::path::Path;

use wavetap::code_object::{CodeObject, demangle};
use wavetap::emulator::{Fault, Overrun};
use wavetap::profile::check::{Class, CodePlace, Finding, Severity, SourceFrame};
use wavetap::profile::control::MAP_SECTION;
use wavetap::profile::map::{ObjectMap, Source};

/// The same fault with the addresses that the original has.
pub(crate) fn in_original(object: Option<&[u8]>, fault: &mut Fault) {
    let Some(code) = object.and_then(|bytes| CodeObject::parse(bytes).ok()) else { return };
    let map = map(&code);
    fault.map_addresses(|address| original(map.as_ref(), address));
}

/// Adds source lines and variables, if this object of the original code is known. `earlier` is the object and the kernel
/// of the earlier access of a race, if it is of another launch.
pub(crate) fn complete(
    finding: &mut Finding,
    object: Option<&[u8]>,
    kernel: &str,
    earlier: Option<(Option<&[u8]>, &str)>,
) {
    name_variable(finding, object);
    if let Some(at) = &mut finding.at {
        complete_place(at, object, kernel);
    }
    if let Some(at) = finding.other.as_mut().and_then(|other| other.at.as_mut()) {
        let (object, kernel) = earlier.unwrap_or((object, kernel));
        complete_place(at, object, kernel);
    }
    // What compilers would never emit, people may write on purpose.
    let is_about_barriers = matches!(finding.class, Class::DivergentBarrier | Class::DifferentBarriers);
    if is_about_barriers && finding.at.as_ref().is_none_or(|at| at.source.is_none()) {
        finding.severity = Severity::Note;
    }
}

/// Adds the name of the kernel and the source lines of an instruction of this object.
pub(crate) fn complete_place(at: &mut CodePlace, object: Option<&[u8]>, kernel: &str) {
    demangle(kernel).as_ref().clone_into(&mut at.kernel);
    let lines = object.and_then(|bytes| CodeObject::parse(bytes).ok()?.line_table().ok().flatten());
    let frames = lines.as_ref().map(|lines| lines.frames(at.address)).unwrap_or_default();
    let known = frames.iter().position(|frame| frame.location.as_ref().is_some_and(|at| !is_of_compiler(&at.file)));
    let mut frames = frames.into_iter().skip(known.unwrap_or(0)).map(|frame| SourceFrame {
        function: frame.function,
        source: frame
            .location
            .filter(|location| location.line > 0)
            .map(|location| Source { file: location.file, line: location.line }),
    });
    if let Some(SourceFrame { function, source }) = frames.next() {
        (at.function, at.source) = (function, source);
    }
    at.inlined_at = frames.collect();
}

/// Of an access near a code object, or in it, says after which of its variables that is.
fn name_variable(finding: &mut Finding, object: Option<&[u8]>) {
    let (Some(allocation), Some(bytes)) = (&mut finding.allocation, object) else { return };
    let Ok(code) = CodeObject::parse(bytes) else { return };
    // Where it ends in memory tells a code object from other allocations.
    let end = code.elf().loads().map(|load| load.address + load.memory_size).max().unwrap_or(0);
    let Ok(at) = u64::try_from(allocation.offset) else { return };
    if allocation.made.is_some() || allocation.size != end {
        return;
    }
    let symbols = code.elf().symbols().unwrap_or_default().into_iter();
    let symbols = symbols.chain(code.elf().dynamic_symbols().unwrap_or_default());
    // The compiler's mark of a file is no variable of the program.
    let is_own = |name: &str| name.starts_with("__hip_cuid_");
    let variables =
        symbols.filter(|symbol| symbol.is_object() && symbol.size > 0 && symbol.address <= at && !is_own(symbol.name));
    let Some(variable) = variables.max_by_key(|symbol| symbol.address) else { return };
    allocation.variable = Some(demangle(variable.name).into_owned());
    (allocation.address, allocation.size) = (allocation.address + variable.address, variable.size);
    allocation.offset -= variable.address as i64;
}

/// Whether a file is one of the compiler's or of HIP's own headers, whose functions are in the place of instructions.
fn is_of_compiler(file: &str) -> bool {
    ["hip/amd_detail/", "/lib/clang/", "__clang_hip"].iter().any(|part| file.contains(part))
}

/// A fault of the code of this object, if it is known.
pub(crate) fn text(object: Option<&[u8]>, fault: &Fault) -> String {
    let Some(code) = object.and_then(|bytes| CodeObject::parse(bytes).ok()) else { return fault.to_string() };
    let map = map(&code);
    let mut fault = fault.clone();
    fault.map_addresses(|address| original(map.as_ref(), address));
    format!("{fault}{}", source(&code, fault.address))
}

/// An access after an allocation, by the code of this object, if it is known.
pub(crate) fn text_of_overrun(object: Option<&[u8]>, overrun: &Overrun) -> String {
    let Some(code) = object.and_then(|bytes| CodeObject::parse(bytes).ok()) else { return overrun.to_string() };
    let mut overrun = overrun.clone();
    overrun.place.address = original(map(&code).as_ref(), overrun.place.address);
    format!("{overrun}{}", source(&code, overrun.place.address))
}

/// The line that an instruction of the original is from, as the rest of a sentence.
fn source(code: &CodeObject<'_>, address: u64) -> String {
    let location = code.line_table().ok().flatten().and_then(|lines| lines.location(address));
    let named = location.filter(|location| location.line > 0).map(|location| {
        let file = Path::new(&location.file).file_name().unwrap_or_default().to_string_lossy().into_owned();
        format!(", {file}:{}", location.line)
    });
    named.unwrap_or_default()
}

/// What an address of a rewritten object is in the original; that of an original is itself.
fn original(map: Option<&ObjectMap>, address: u64) -> u64 {
    let mut pairs = map.into_iter().flat_map(|map| &map.kernels).flat_map(|kernel| &kernel.addresses);
    pairs.find(|pair| pair.rewritten == address).map_or(address, |pair| pair.original)
}

/// Where instructions of a kernel are in its object, by their addresses in the original.
pub(crate) fn rewritten(bytes: &[u8], kernel: &str) -> impl Fn(u64) -> u64 {
    let map = CodeObject::parse(bytes).ok().and_then(|code| map(&code));
    let kernel = map.and_then(|map| map.kernels.into_iter().find(|known| known.name == kernel));
    move |address| {
        let mut pairs = kernel.iter().flat_map(|kernel| &kernel.addresses);
        pairs.find(|pair| pair.original == address).map_or(address, |pair| pair.rewritten)
    }
}

fn map(code: &CodeObject<'_>) -> Option<ObjectMap> {
    let section = code.elf().section(MAP_SECTION).and_then(|section| code.elf().contents(section).ok())?;
    ObjectMap::unpack(section).ok()
}
