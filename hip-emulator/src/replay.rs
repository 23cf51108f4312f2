//! Running a captured dispatch again: its memory at the addresses that it had, its code where that was, one launch.
//!
//! The command loads this library and calls [`wavetap_replay`]. What is collected of the launch, and how it runs, is as
//! for any other.

use std::ffi::{c_char, c_int};
use std::path::Path;

use wavetap::capture::file::MemoryKind;
use wavetap::capture::outcome::{self, Outcome, RangeOutcome};
use wavetap::capture::{CaptureFile, Header, MemoryRange};
use wavetap::code_object::{Argument, CodeObject, KernelMetadata};
use wavetap::collect::journals::replace;
use wavetap::emulator::Share;
use wavetap::error::{Error, Result, ResultExt};
use wavetap::stderr_line;

use crate::begin::Begin;
use crate::dispatch::Launched;
use crate::images::{Image, KernelRef};
use crate::kernarg::Shape;
use crate::lock::runtime;
use crate::raw;
use crate::runtime::Runtime;
use crate::status;
use crate::stream_op::Launch;

/// Exit codes of the command that calls this.
const DONE: c_int = 0;
const BAD_INPUT: c_int = 2;

/// What is replayed.
struct Replay<'a> {
    file: CaptureFile,
    header: Header,
    /// Its code as it was captured.
    captured: &'a [u8],
    /// The code that runs in its place.
    other: Option<&'a [u8]>,
}

/// Runs the dispatch of a capture once more, with other code if `code` names a file, and writes what it found to the
/// file `outcome`. A message on standard error says what is wrong with the files.
#[unsafe(no_mangle)]
pub extern "C" fn wavetap_replay(
    capture: *const c_char,
    code: *const c_char,
    memory_limit: u64,
    outcome: *const c_char,
) -> c_int {
    let replayed = || -> Result<()> {
        let path = |text: *const c_char| raw::string(text).map_err(|_| Error::internal("a path is no text"));
        let (capture, to) = (path(capture)?, path(outcome)?);
        let code = if code.is_null() { None } else { Some(path(code)?) };
        let outcome = replay(Path::new(&capture), code.as_deref().map(Path::new), memory_limit)?;
        let json = serde_json::to_vec(&outcome).map_err(|error| Error::internal(error.to_string()))?;
        replace(Path::new(&to), &json)
    };
    match replayed() {
        Ok(()) => DONE,
        Err(error) => {
            stderr_line!("wavetap: error: {error}");
            BAD_INPUT
        }
    }
}

fn replay(path: &Path, code: Option<&Path>, most: u64) -> Result<Outcome> {
    let mut file = CaptureFile::open(path, most)?;
    let within = || path.display().to_string();
    let header = file.header().clone();
    let captured = file.code().within(within)?;
    let other = code.map(std::fs::read).transpose()?;
    Replay { file, header, captured: &captured, other: other.as_deref() }.run().within(within)
}

impl Replay<'_> {
    fn run(&mut self) -> Result<Outcome> {
        let mut runtime = runtime();
        let arguments = self.file.arguments()?;
        let kernel = self.header.kernel.clone();
        let captured = CodeObject::parse(self.captured)?;
        let old = metadata(&captured, &kernel)?;
        let other = self.other.map(CodeObject::parse).transpose()?;
        let new = other.as_ref().map(|other| metadata(other, &kernel)).transpose()?.unwrap_or(old);
        same_arguments(old, new)?;
        let image = Image::file(self.other.unwrap_or(self.captured).to_vec())?;
        let index = runtime.add_image(image);
        self.write_allocations(&mut runtime)?;
        self.load(&mut runtime, index)?;
        self.write_variables(&mut runtime, index)?;
        let kernel = KernelRef { image: index, name: kernel };
        self.launch(&mut runtime, kernel, (old, new), arguments)?;
        self.outcome(&mut runtime, index)
    }

    fn ranges(&self, kind: MemoryKind) -> Vec<MemoryRange> {
        self.header.memory.iter().filter(|range| range.kind == kind).copied().collect()
    }

    /// Puts the memory of the program where it was.
    fn write_allocations(&mut self, runtime: &mut Runtime) -> Result<()> {
        let device = runtime.device().map_err(|status| refused("there is no device", status))?;
        for range in self.ranges(MemoryKind::Allocation) {
            let bytes = self.file.before(&range)?;
            device.malloc_at(range.address, range.size)?;
            device.write(range.address, &bytes)?;
        }
        Ok(())
    }

    /// Loads the code: where it was, if anything has an address in it.
    fn load(&self, runtime: &mut Runtime, index: usize) -> Result<()> {
        let place = (self.header.code_addresses > 0).then_some(self.header.code.address);
        if let Some(image) = runtime.code.images.get_mut(index).and_then(Option::as_mut) {
            image.place = place;
        }
        runtime.load(index).map(drop).map_err(|status| {
            let at = place.map_or_else(String::new, |address| format!(" at {address:#x}"));
            refused(&format!("its code cannot be loaded{at}"), status)
        })
    }

    /// Gives the variables of the code what they had: those of other code that have the same name and size.
    fn write_variables(&mut self, runtime: &mut Runtime, index: usize) -> Result<()> {
        let (old, address) = (CodeObject::parse(self.captured)?, self.header.code.address);
        for range in self.ranges(MemoryKind::Variables) {
            let bytes = self.file.before(&range)?;
            let (device, loaded) = runtime.load(index).map_err(|status| refused("its code is not loaded", status))?;
            let Some(first) = range.address.checked_sub(address) else {
                return Err(Error::malformed(format!("variables at {:#x}, outside of its code", range.address)));
            };
            if self.other.is_none() {
                device.write(loaded.object.base.wrapping_add(first), &bytes)?;
                continue;
            }
            for symbol in old.symbols().iter().filter(|symbol| symbol.size > 0) {
                let start = symbol.address.checked_sub(first).and_then(|start| usize::try_from(start).ok());
                let value = start.and_then(|start| bytes.get(start..start.checked_add(symbol.size as usize)?));
                let place = loaded.object.symbols.get(symbol.name).filter(|known| known.size == symbol.size);
                if let (Some(value), Some(place)) = (value, place) {
                    device.write(place.address, value)?;
                }
            }
        }
        Ok(())
    }

    fn launch(
        &self,
        runtime: &mut Runtime,
        kernel: KernelRef,
        (old, new): (&KernelMetadata, &KernelMetadata),
        arguments: Vec<u8>,
    ) -> Result<()> {
        let Header { grid, workgroup, group_segment_size, private_segment_size, .. } = self.header;
        let fixed = u32::try_from(old.group_segment_fixed_size).unwrap_or(u32::MAX);
        let dynamic_lds = group_segment_size.checked_sub(fixed).ok_or_else(|| {
            Error::malformed(format!("{group_segment_size} bytes of LDS, the kernel's own are {fixed}"))
        })?;
        if new.uses_dynamic_stack {
            let own = u32::try_from(old.private_segment_fixed_size).unwrap_or(u32::MAX);
            runtime.stack_limit = private_segment_size.saturating_sub(own).max(runtime.stack_limit);
        }
        let shape = Shape { items: grid, workgroup, dynamic_lds };
        runtime.check_launch(&kernel, &shape).map_err(|status| refused("it cannot be launched", status))?;
        let launch = Launch::new(kernel, shape, arguments);
        let flight =
            runtime.launch(&launch, &Begin::default()).map_err(|status| refused("it cannot be launched", status))?;
        if let Launched::InFlight(mut flight) = flight {
            let go_on = |status| refused("it cannot go on", status);
            while runtime.advance(&mut flight, Share::all()).map_err(go_on)?.is_none() {}
        }
        status::working().map_err(|status| refused("the kernel ended with a fault", status))
    }

    /// Compares the memory that the kernel has left.
    fn outcome(&mut self, runtime: &mut Runtime, index: usize) -> Result<Outcome> {
        let mut changed = Vec::new();
        let base = {
            let (_, loaded) = runtime.load(index).map_err(|status| refused("its code is not loaded", status))?;
            loaded.object.base
        };
        for range in self.header.memory.clone() {
            let address = match (range.kind, self.other) {
                (MemoryKind::Allocation, _) => range.address,
                (MemoryKind::Variables, None) => range.address - self.header.code.address + base,
                // Variables of other code have other places.
                (MemoryKind::Variables, Some(_)) => continue,
            };
            let before = self.file.before(&range)?;
            let after = self.file.after(&range)?;
            let after = after.as_deref().unwrap_or(&before);
            let mut replayed = vec![0; before.len()];
            runtime.read_device(address, &mut replayed).map_err(|status| refused("memory cannot be read", status))?;
            changed.extend(RangeOutcome::compare(range.address, range.kind, &before, after, &replayed));
        }
        let Header { kernel, demangled, target, grid, workgroup, alone, .. } = self.header.clone();
        let other = self.other.map(CodeObject::parse).transpose()?;
        Ok(Outcome {
            schema: outcome::SCHEMA.to_owned(),
            kernel,
            demangled,
            target: other.map_or(target, |other| other.target_id()),
            captured_code: self.other.is_none(),
            grid,
            workgroup,
            bytes: self.header.bytes(),
            alone,
            same: changed.iter().all(|range| range.different_bytes == 0),
            changed,
        })
    }
}

/// What the metadata says of the kernel.
fn metadata<'c>(code: &'c CodeObject<'_>, kernel: &str) -> Result<&'c KernelMetadata> {
    let found = code.kernels().iter().find(|known| known.name == kernel).and_then(|known| known.metadata.as_deref());
    found.ok_or_else(|| Error::unsupported(format!("the code object has no kernel {kernel} with metadata")))
}

/// Refuses code whose kernel takes other arguments than the captured one.
fn same_arguments(old: &KernelMetadata, new: &KernelMetadata) -> Result<()> {
    let own = |kernel: &KernelMetadata| -> Vec<(u64, u64)> {
        let own = kernel.args.iter().filter(|argument| !argument.value_kind.is_hidden());
        own.map(|Argument { offset, size, .. }| (*offset, *size)).collect()
    };
    let (old, new) = (own(old), own(new));
    if old.len() != new.len() {
        return Err(Error::unsupported(format!(
            "its kernel has {} arguments, the captured one {}",
            new.len(),
            old.len()
        )));
    }
    match old.iter().zip(&new).position(|(old, new)| old != new) {
        None => Ok(()),
        Some(at) => {
            let ((offset, size), (old_offset, old_size)) = (new[at], old[at]);
            Err(Error::unsupported(format!(
                "argument {at} of its kernel has {size} bytes at {offset}, that of the captured one {old_size} at \
                    {old_offset}"
            )))
        }
    }
}

fn refused(what: &str, status: status::Status) -> Error {
    Error::unsupported(format!("{what} ({})", status::name(status).to_string_lossy()))
}
