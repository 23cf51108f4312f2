//! Loops that only wait until a clock shows a later time: the clock advances faster there.
//!
//! An emulated instruction takes a hundred times as long as on a GPU, so `while (clock64() - start < n);` would take a
//! hundred times as long, too. The code of a loop that reads a clock is examined once. It only waits if
//!
//! - between the target of its backward branch and that branch there is no barrier, no message but a question for the
//!   time, no call and no end;
//! - a conditional branch that leaves it depends on the clock;
//! - no conditional branch depends on memory: a kernel that waits for a store of another one until a time limit must
//!   give the other as many instructions as before.
//!
//! What depends on what is a fixed point over the instructions of the loop in the order of their addresses: two bits
//! for each register ([`CLOCK`], [`MEMORY`]), the bits of what is written are the union of those of what is read. Both
//! err on the side of not hurrying: what is written again no longer depends on the clock, though a branch may pass the
//! instruction over, but still on memory. That EXEC selects lanes makes a vector result depend on memory where EXEC
//! does, but not on the clock, or every counter in a loop with a branch on a clock would.
//!
//! Each read of a clock in such a loop advances the clock by a 64th of the time since the first one, so a wait is at
//! most that much too long, and takes some hundred rounds. The thread sleeps so that no wave waits for less time than
//! it asked for, as far as the host can see: a kernel that is to run for 0.1 s runs for 0.1 s beside the host and other
//! streams. All waves of a dispatch wait at the same time.

use std::ops::Range;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use wavetap_amdgpu::{Branch, Memory, OpcodeFlags, Reg, RegFile, Target, scalar};

use super::code::Code;
use crate::launch::Launch;
use crate::memory::View;
use crate::op::Class;
use crate::state::clock_wait::ClockWait;
use crate::state::op::Op;
use crate::state::wave::Wave;

/// Instructions of a loop that are looked at.
const LONGEST: usize = 128;
/// Ticks that pass in a loop before the clock advances faster.
const FIRST: u64 = 4096;
/// What part of the time in the loop each round adds.
const PART: u64 = 64;
/// Most microseconds that are added at once, after which others have their turn.
const MOST: u64 = 1000;
/// The same where the clock has 20 bits, so that no round misses that it wraps around.
const MOST_OF_20_BITS: u64 = 1 << 17;

/// It depends on a clock.
const CLOCK: u8 = 1;
/// It depends on memory.
const MEMORY: u8 = 2;

/// Loops that only wait for a clock, by the index of an instruction in them that reads one; none where it is in no such
/// loop.
#[derive(Default)]
pub(crate) struct ClockLoops(FxHashMap<usize, Option<Range<u64>>>);

/// A wave has read a clock, in a loop that only waits for that.
pub(crate) struct Advance {
    /// Ticks that pass in addition.
    pub ticks: u64,
    /// For how long the thread is to sleep.
    pub sleep: Duration,
}

/// What to do after the instruction at `index`, which has read a clock that is now at `clock`. `since` is when the
/// first wave of the dispatch began to wait.
pub(crate) fn after_read(
    code: &mut Code,
    index: usize,
    (wave, memory, launch): (&mut Wave, &View, &Launch),
    clock: u64,
    since: impl FnOnce() -> Instant,
) -> Option<Advance> {
    if !code.clock_loops.0.contains_key(&index) {
        let found = waits(code, index, memory, launch.target);
        code.clock_loops.0.insert(index, found);
    }
    let Some(range) = code.clock_loops.0.get(&index).and_then(Option::as_ref) else {
        wave.clock_wait = None;
        return None;
    };
    let wait = match &mut wave.clock_wait {
        Some(wait) if wait.start == range.start => wait,
        other => {
            *other = Some(Box::new(ClockWait { start: range.start, first: clock }));
            return None;
        }
    };
    let passed = clock.saturating_sub(wait.first);
    if passed < FIRST {
        return None;
    }
    let most =
        if code.ops[index].inst.hardware_register().is_some() { MOST_OF_20_BITS } else { MOST * launch.clock_mhz };
    let ticks = (passed / PART).min(most);
    // A dispatch that takes its time anyway does not sleep.
    let waited = Duration::from_micros((passed + ticks) / launch.clock_mhz);
    Some(Advance { ticks, sleep: waited.saturating_sub(since().elapsed()).min(Duration::from_micros(MOST)) })
}

/// Whether an instruction that reads a clock is in a loop that only waits: the device addresses of the loop.
fn waits(code: &mut Code, index: usize, memory: &View, target: Target) -> Option<Range<u64>> {
    let (read, msb) = (code.ops[index].pc, code.ops[index].vgpr_msb);
    let mut at = read;
    let mut range = None;
    for _ in 0..LONGEST {
        let op = code.at(at, msb, target, memory).ok()?;
        let op = &code.ops[op];
        if matches!(op.inst.variant.branch, Branch::Jump | Branch::Conditional(_)) && op.target <= read {
            range = Some(op.target..op.next);
            break;
        }
        at = op.next;
    }
    let range = range?;
    let mut body = Vec::new();
    let mut at = range.start;
    while at < range.end {
        if body.len() == LONGEST {
            return None;
        }
        let op = code.at(at, msb, target, memory).ok()?;
        body.push(op);
        at = code.ops[op].next;
    }
    let body: Vec<&Op> = body.into_iter().map(|op| &code.ops[op]).collect();
    if !body.iter().all(|op| is_harmless(op)) {
        return None;
    }
    let mut leaves_by_clock = false;
    for (op, bits) in body.iter().zip(dependences(&body)) {
        if !matches!(op.inst.variant.branch, Branch::Conditional(_)) {
            continue;
        }
        if bits & MEMORY != 0 {
            return None;
        }
        let leaves = [op.target, op.next].iter().any(|to| !range.contains(to));
        leaves_by_clock |= leaves && bits & CLOCK != 0;
    }
    leaves_by_clock.then_some(range)
}

/// Whether a loop with it may do nothing but wait.
fn is_harmless(op: &Op) -> bool {
    let branch = matches!(op.inst.variant.branch, Branch::None | Branch::Jump | Branch::Conditional(_));
    let others =
        OpcodeFlags::BARRIER.union(OpcodeFlags::BARRIER_WAIT).union(OpcodeFlags::GWS).union(OpcodeFlags::SET_VGPR_MSB);
    branch && !op.inst.is_any(others) && (op.reads_clock || op.inst.variant.memory != Memory::Message)
}

/// What each instruction of a loop depends on.
fn dependences(body: &[&Op]) -> Vec<u8> {
    // At the start of the loop.
    let mut depends: FxHashMap<(RegFile, u16), u8> = FxHashMap::default();
    loop {
        let mut here = depends.clone();
        let mut all = Vec::with_capacity(body.len());
        for op in body {
            let is_memory = !matches!(op.inst.variant.memory, Memory::None | Memory::Message);
            let mut bits = match (op.reads_clock, is_memory) {
                (true, _) => CLOCK,
                (false, true) => MEMORY,
                (false, false) => 0,
            };
            for slot in op.inst.reads().flat_map(slots) {
                let selects = op.class == Class::Valu && is_exec(slot);
                bits |= here.get(&slot).unwrap_or(&0) & if selects { MEMORY } else { CLOCK | MEMORY };
            }
            all.push(bits);
            for slot in op.inst.writes().flat_map(slots) {
                let known = here.entry(slot).or_default();
                *known = *known & MEMORY | bits;
            }
        }
        let mut changed = false;
        for (slot, bits) in here {
            let known = depends.entry(slot).or_default();
            changed |= *known | bits != *known;
            *known |= bits;
        }
        if !changed {
            return all;
        }
    }
}

fn slots(reg: Reg) -> impl Iterator<Item = (RegFile, u16)> {
    (reg.first..reg.first + u16::from(reg.dwords)).map(move |index| (reg.file, index))
}

fn is_exec((file, index): (RegFile, u16)) -> bool {
    file == RegFile::Scalar && (index == scalar::EXEC || index == scalar::EXEC + 1)
}
