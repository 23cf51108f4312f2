//! Kernels with preloaded arguments (gfx90a, gfx94x, gfx950): the emulator's waves begin 256 bytes after the entry with
//! the arguments in registers, and those of the instrumented kernel at its entry without them.

use rewriter_tests::instrumented::{Launch, Subject};
use rewriter_tests::kernels::build;
use rewriter_tests::{Failure, instrumented};
use wavetap::code_object::CodeObject;
use wavetap::isa::{EventHazards, Memory, Opcode, Reg, Target};
use wavetap::kernel::{Body, BodyKind, Image};
use wavetap::pipeline::{Counters, Options, probe, rewrite};
use wavetap::verify::check_object;

use super::assembly::{self, variant};
use super::seeds;

/// Targets whose hardware preloads, and that the compiler knows.
pub const TARGETS: [&str; 2] = ["gfx90a", "gfx942"];
/// Work-items, and those that store.
const ITEMS: u32 = 128;
const STORING: u32 = 32;
/// The last argument; what the kernel adds instead, if the third is not 0.
const LAST: u32 = 1000;
const OTHER: u32 = 5;

/// A dispatch of a kernel: its first argument is a buffer, the others are numbers.
fn launch(kernel: &str, flag: u32) -> Launch<'_> {
    let arguments = move |_: &_, at: &[u64]| {
        let numbers = [flag, 0xdead, 0xbeef, LAST];
        Ok(at[0].to_le_bytes().into_iter().chain(numbers.into_iter().flat_map(u32::to_le_bytes)).collect())
    };
    Launch {
        kernel,
        grid: [ITEMS, 1, 1],
        group: [ITEMS as u16, 1, 1],
        dynamic: 0,
        buffers: vec![vec![0xaa; (STORING * 4) as usize]],
        arguments: Box::new(arguments),
        fuel: 100_000,
        tolerated: EventHazards::empty(),
        undefined: false,
    }
}

/// Both kernels leave what their source says, and what they leave uninstrumented.
pub fn check(target: Target) -> Result<(), Failure> {
    let object = build::assembled(include_str!("../verify_damage/preloaded.s"), variant(target))?;
    let subject = Subject::of(&object, target)?;
    for (kernel, flag, added) in [("preloaded", 0, 0), ("preloaded_apart", 0, LAST), ("preloaded_apart", 1, OTHER)] {
        assembly::instrumented(&subject, kernel)?;
        let launch = launch(kernel, flag);
        let outcome: instrumented::Outcome =
            subject.original(&launch, 0).map_err(|e| format!("{kernel}: the original: {e}"))?;
        let expected: Vec<u8> = (0..STORING).flat_map(|item| (item + added).to_le_bytes()).collect();
        if outcome.buffers[0] != expected {
            return Err(format!("{kernel} {flag}: the original leaves {:?}", outcome.buffers[0]));
        }
        let compared = subject.compare(&launch, 0..seeds()).map_err(|e| format!("{kernel} {flag}: {e}"))?;
        if compared.dispatches != subject.dispatches(kernel, seeds()) || compared.executions == 0 {
            return Err(format!("{kernel} {flag}: {compared:?}"));
        }
    }
    for counters in [Counters::Register, Counters::Global] {
        harmed(&object, target, counters).map_err(|e| format!("{counters:?}: {e}"))?;
    }
    Ok(())
}

/// The kernel whose arguments inserted code loads.
const APART: &str = "preloaded_apart";
/// First and last register that is preloaded with arguments.
const ARGUMENTS: std::ops::RangeInclusive<u16> = 2..=7;

/// The verifier finds each load of other arguments, and a wait that is missing.
fn harmed(object: &[u8], target: Target, counters: Counters) -> Result<(), Failure> {
    let text = |e: wavetap::Error| e.to_string();
    let options = Options { counters, probes: vec![probe::BRANCHES], ..Options::default() };
    let rewritten = rewrite(object, &options).map_err(text)?.bytes;
    let original = CodeObject::parse(object).map_err(text)?;
    let findings = |bytes: &[u8]| -> Result<usize, Failure> {
        Ok(check_object(&original, &CodeObject::parse(bytes).map_err(text)?).1.len())
    };
    if findings(&rewritten)? != 0 {
        return Err("findings without harm".to_owned());
    }
    let code = CodeObject::parse(&rewritten).map_err(text)?;
    let entry = code.kernel(APART).ok_or("no kernel")?.entry;
    let body = Body::decode(target, &Image::of(&code).map_err(text)?, APART, BodyKind::Kernel, entry).map_err(text)?;
    let loads = |id: &_| {
        let writes = |reg: Reg| ARGUMENTS.contains(&reg.first) && reg.file == Reg::scalar(0, 1).file;
        body.inst(*id).variant.memory == Memory::Scalar && body.writes(*id).any(writes)
    };
    let all: Vec<_> = body.ids().filter(loads).collect();
    let last = *all.last().ok_or("no load")?;
    let wait = body.ids().find(|id| *id > last).filter(|id| body.inst(*id).opcode() == Opcode::S_WAITCNT);
    let wait = wait.ok_or("no wait after the loads")?;
    // The offset is in the low bits of the second word; the other word waits for nothing.
    let word_of = |id| -> Result<usize, Failure> {
        Ok(code.file_offset(body.address(id), 4).ok_or("no code in the file")? as usize)
    };
    let mut harms = vec![(word_of(wait)?, 0xbf80_0000_u32)];
    for id in &all {
        let at = word_of(*id)? + 4;
        let offset = u32::from_le_bytes(std::array::from_fn(|index| rewritten[at + index]));
        harms.extend([(at, offset + 4), (at, offset + 1)]);
    }
    for (at, word) in harms {
        let mut bytes = rewritten.clone();
        bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        if findings(&bytes)? == 0 {
            return Err(format!("nothing found after {word:#x} was put at {at:#x}"));
        }
    }
    Ok(())
}
