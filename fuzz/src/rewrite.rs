//! Rewriting. The first byte chooses a code object, the second a kernel; then follow changes of the kernel's code: a
//! dword's number (16 bits, little-endian, modulo the kernel's size) and its new value. The instrumented kernel runs
//! beside the original on the strict emulator, if the original runs to its end there.

use std::sync::OnceLock;

use rewriter_tests::Failure;
use rewriter_tests::instrumented::{Launch, Stopped, Subject};
use wavetap::code_object::{CodeObject, Kernel, ValueKind};
use wavetap::error::Error;
use wavetap::isa::{self, EventHazards, Target};
use wavetap::pipeline::{self, Counters, probe};

use crate::seeds::{code_objects, small_objects};

/// Bytes of a change.
const CHANGE: usize = 6;
/// Wave-instructions that the original may execute.
const FUEL: u64 = 20_000;
/// Bytes of each buffer.
const BUFFER: usize = 1 << 14;
/// Arguments that are numbers have this value.
const NUMBER: u8 = 32;
/// What these read is not the same in an instrumented kernel: time, addresses of code, the state of the machine.
const NOT_COMPARED: [&str; 6] = ["s_memtime", "s_memrealtime", "s_getreg", "s_getpc", "s_get_", "s_sendmsg_rtn"];
/// Work-items: two workgroups of two waves.
const GROUP: u16 = 128;
const GROUPS: u32 = 2;

/// The code objects whose code is changed.
fn objects() -> &'static [(Vec<u8>, Target)] {
    static OBJECTS: OnceLock<Vec<(Vec<u8>, Target)>> = OnceLock::new();
    OBJECTS.get_or_init(|| {
        let samples = ["divergence", "nested_loops", "calls", "lds_reduce"].into_iter().flat_map(code_objects);
        let with_target = |bytes: Vec<u8>| {
            let target = CodeObject::parse(&bytes).ok()?.target()?;
            Some((bytes, target))
        };
        small_objects().into_iter().chain(samples).filter_map(with_target).collect()
    })
}

/// The object that an input describes, and the kernel whose code it changes.
fn changed(data: &[u8]) -> Option<(Vec<u8>, Target, String)> {
    let (&choice, rest) = data.split_first()?;
    let (&number, changes) = rest.split_first()?;
    let (bytes, target) = &objects()[usize::from(choice) % objects().len()];
    let code = CodeObject::parse(bytes).ok()?;
    let kernel = code.kernels().get(usize::from(number) % code.kernels().len().max(1))?;
    let size = kernel.code.end - kernel.code.start;
    let offset = code.file_offset(kernel.code.start, size)? as usize;
    let mut bytes = bytes.clone();
    let dwords = size as usize / 4;
    for change in changes.chunks_exact(CHANGE).filter(|_| dwords > 0) {
        let at = offset + usize::from(u16::from_le_bytes([change[0], change[1]])) % dwords * 4;
        bytes[at..at + 4].copy_from_slice(&change[2..]);
    }
    Some((bytes, *target, kernel.name.clone()))
}

/// Whether what a kernel computes may depend on more than its arguments.
fn depends_on_more(bytes: &[u8], target: Target, kernel: &str) -> bool {
    let Ok(code) = CodeObject::parse(bytes) else { return true };
    let Some(kernel) = code.kernel(kernel) else { return true };
    let Ok(body) = code.bytes_at(kernel.code.start, kernel.code.end - kernel.code.start) else { return true };
    let mut insts = (0..body.len()).step_by(4).filter_map(|at| isa::decode(target, &body[at..]).ok());
    insts.any(|inst| NOT_COMPARED.iter().any(|name| inst.variant.mnemonic.starts_with(name)))
}

/// The arguments that a kernel is given: buffers in turn, small numbers, and the shape of the launch.
fn arguments(kernel: &Kernel, buffers: &[u64]) -> Result<Vec<u8>, Failure> {
    let metadata = kernel.metadata.as_ref().ok_or("no metadata")?;
    let mut arguments = vec![0; metadata.kernarg_segment_size as usize];
    let mut next = buffers.iter().cycle();
    for argument in &metadata.args {
        let value = match argument.value_kind {
            ValueKind::GlobalBuffer => next.next().ok_or("no buffers")?.to_le_bytes().to_vec(),
            ValueKind::ByValue => vec![NUMBER],
            ValueKind::HiddenBlockCountX => GROUPS.to_le_bytes().to_vec(),
            ValueKind::HiddenGroupSizeX => GROUP.to_le_bytes().to_vec(),
            ValueKind::HiddenBlockCountY | ValueKind::HiddenBlockCountZ => 1_u32.to_le_bytes().to_vec(),
            ValueKind::HiddenGroupSizeY | ValueKind::HiddenGroupSizeZ => 1_u16.to_le_bytes().to_vec(),
            _ => continue,
        };
        let place = arguments.get_mut(argument.offset as usize..).and_then(|rest| rest.get_mut(..value.len()));
        place.ok_or("an argument beyond its segment")?.copy_from_slice(&value);
    }
    Ok(arguments)
}

/// Rewrites, verifies, and compares two runs.
///
/// # Panics
/// If an instrumented kernel is not what the original is.
pub fn run(data: &[u8]) {
    let Some((bytes, target, kernel)) = changed(data) else { return };
    if !rewritten(&bytes) {
        return;
    }
    let subject =
        Subject::of(&bytes, target).unwrap_or_else(|failure| panic!("{kernel}, {}: {failure}", target.name()));
    if subject.refusals(&kernel).len() == 2 || depends_on_more(&bytes, target, &kernel) {
        return;
    }
    let words: Vec<u8> = (0..BUFFER as u32 / 4).flat_map(|word| (word % 13).to_le_bytes()).collect();
    let launch = Launch {
        kernel: &kernel,
        grid: [u32::from(GROUP) * GROUPS, 1, 1],
        group: [GROUP, 1, 1],
        dynamic: 0,
        buffers: vec![words.clone(), words.clone(), words],
        arguments: Box::new(arguments),
        fuel: FUEL,
        tolerated: EventHazards::empty(),
        undefined: false,
    };
    match subject.original(&launch, 0) {
        Ok(_) => {
            let compared = subject.compare(&launch, 0..2);
            compared.unwrap_or_else(|failure| panic!("{kernel}, {}: {failure}", target.name()));
        }
        // Where the original faults, what the instrumented one does first depends on the order of its waves: other
        // tests compare faults.
        Err(Stopped::Fault(_) | Stopped::Failure(_)) => {}
    }
}

/// Whether the object is rewritten at all; a refusal is an answer.
fn rewritten(bytes: &[u8]) -> bool {
    [Counters::Lds, Counters::Global].into_iter().all(|counters| {
        let options = pipeline::Options { probes: vec![probe::BRANCHES], counters, ..pipeline::Options::default() };
        let result: Result<_, Error> = pipeline::rewrite(bytes, &options);
        crate::read(result).is_some()
    })
}

/// Each object unchanged, and with one dword replaced by another of its own.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for choice in 0..objects().len() as u8 {
        seeds.push(vec![choice, 0]);
        for at in 0..8_u16 {
            // s_nop 0: a dword that any instruction may be replaced by.
            let [low, high] = (at * 7).to_le_bytes();
            seeds.push(vec![choice, 0, low, high, 0x00, 0x00, 0x80, 0xbf]);
        }
    }
    seeds
}
