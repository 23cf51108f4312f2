//! In which order stores to memory become visible (`docs/reference/memory-scopes.md`).
//!
//! A store is held back until a wait guarantees it, so that it is visible to others late. It is visible at once to its
//! own wave, and to the other waves of a workgroup that use the same first-level cache, which keeps the order in which
//! operations were issued: compilers wait for nothing at workgroup scope there. Other waves may see stores to different
//! places in another order.

use wavetap_amdgpu::Encoding;

use crate::address::place::LanePlace;
use crate::address::range::{Range, overlap};
use crate::fault::stop::{ExecResult, at_lane};
use crate::lanes::{LANES, active};
use crate::launch::Launch;
use crate::shadow::in_flight::{Effect, Space, publish_if};
use crate::shadow::neighbours::publish_touching;
use crate::state::core::Core;
use crate::state::op::Op;
use crate::strict;

/// Most bytes of what may be a flag: all lanes access the same.
const FLAG_BYTES: u64 = 8;

/// Whether the waves of a workgroup see each other's stores in order: one of them runs with
/// [`Barrier::hold_stores_of_others`](crate::state::barrier::Barrier::hold_stores_of_others).
pub(crate) fn is_shared(launch: &Launch, waves: usize) -> bool {
    launch.strict && !launch.apart && waves > 1
}

/// An instruction is about to access memory in a range: what was stored there before comes first. Now and then a wave's
/// stores arrive early.
fn before_access(core: &mut Core, reads: bool, range: Range) -> ExecResult {
    if !core.launch.strict {
        return Ok(());
    }
    if range.0 < range.1 && range.1 - range.0 <= FLAG_BYTES {
        strict::flag(core, range.0, reads);
    }
    let Core { wave, barrier, memory, lds, random, .. } = core;
    at_lane(barrier.checks.neighbours.publish_touching(range, memory, lds), 0)?;
    if !wave.in_flight.has_effects() {
        return Ok(());
    }
    if random.one_in(8) {
        return at_lane(wave.in_flight.publish(None, true, memory, lds), 0);
    }
    if reads { at_lane(publish_touching(wave.in_flight.effects(), range, memory, lds), 0) } else { Ok(()) }
}

/// Makes earlier stores visible to the access that follows, of memory in a range.
pub(crate) fn order(core: &mut Core, op: &Op, reads: bool, range: Range) -> ExecResult {
    before_access(core, reads, range)?;
    let lds_too = op.inst.variant.encoding == Encoding::Flat;
    if lds_too && core.wave.in_flight.has_effects() {
        at_lane(core.wave.in_flight.publish(Some(Space::Lds), false, core.memory, core.lds), 0)?;
    }
    Ok(())
}

/// Where in memory all is that the lanes in a mask access.
pub(crate) fn range(places: &[LanePlace; LANES], mask: u64, size: usize) -> Range {
    active(mask).fold((u64::MAX, 0), |(from, to), lane| match places[lane] {
        LanePlace::Global(at) => (from.min(at), to.max(at.saturating_add(size as u64))),
        _ => (from, to),
    })
}

/// A store was issued. Now and then it overtakes those before it, and others run before they arrive.
pub(crate) fn after_store(core: &mut Core) -> ExecResult {
    let Core { wave, memory, lds, random, .. } = core;
    let effects = wave.in_flight.effects();
    let Some(newest) = effects.last().map(|effect| effect.id) else { return Ok(()) };
    let in_memory = |effect: &&Effect| effect.space == Space::Global;
    if effects.first().is_none_or(|first| first.id == newest) || !random.one_in(4) {
        return Ok(());
    }
    let (mut from, mut to) = (u64::MAX, 0);
    for effect in effects.iter().filter(in_memory).filter(|effect| effect.id == newest) {
        let range = effect.range();
        (from, to) = (from.min(range.0), to.max(range.1));
    }
    let mut before = effects.iter().filter(in_memory).filter(|effect| effect.id != newest).peekable();
    if before.peek().is_none() || before.any(|effect| overlap(effect.range(), (from, to))) {
        return Ok(());
    }
    at_lane(publish_if(effects, &mut Vec::new(), memory, lds, |effect| effect.id == newest), 0)?;
    wave.checks.pauses = random.one_in(2);
    Ok(())
}

/// An atomic has changed memory, while stores before it may not have arrived: others may run before they do.
pub(crate) fn after_atomic(core: &mut Core, range: Range) {
    if !core.launch.strict {
        return;
    }
    if range.0 < range.1 && range.1 - range.0 <= FLAG_BYTES {
        strict::flag(core, range.0, false);
    }
    if core.wave.in_flight.has_effects() {
        core.wave.checks.pauses = core.random.one_in(2);
    }
}
