//! Names, source lines and variables of what was found, from the code object.

use wavetap_object::code_object::{CodeObject, demangle};
use wavetap_profile::check::{AccessKind, Class, CodePlace, Finding, Severity, SourceFrame};
use wavetap_profile::map::Source;

/// Of an access far from all allocations, says whether it is of memory of the host: `is_mapped` says whether the
/// program has mapped an address that is none of the device's.
pub fn tell_host_pointer(finding: &mut Finding, is_mapped: impl FnOnce(u64) -> bool) {
    if finding.class != Class::HostPointer {
        return;
    }
    let access = finding.access.as_ref();
    let address = access.and_then(|access| u64::from_str_radix(access.address.strip_prefix("0x")?, 16).ok());
    if address.is_some_and(is_mapped) {
        return;
    }
    finding.set_class(match access.map(|access| access.kind) {
        Some(AccessKind::Store) => Class::OutOfBoundsStore,
        Some(AccessKind::Atomic) => Class::OutOfBoundsAtomic,
        _ => Class::OutOfBoundsLoad,
    });
}

/// Adds source lines and variables, if this object of the original code is known. `earlier` is the object and the
/// kernel of the earlier access of a race, if it is of another launch.
pub fn complete(finding: &mut Finding, object: Option<&[u8]>, kernel: &str, earlier: Option<(Option<&[u8]>, &str)>) {
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
pub fn complete_place(at: &mut CodePlace, object: Option<&[u8]>, kernel: &str) {
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
