//! Races in global memory: what instructions have noted goes to [`crate::shadow::global`].

use wavetap_amdgpu::{
    Access as Operand, Branch, Condition, Encoding, Flags, Inst, Opcode, Reg, RegFile, Role, Target, decode,
};

use super::global_init;
use crate::fault::stop::{ExecResult, Stop};
use crate::fault::{FaultKind, MemoryAccess};
use crate::lanes::{LANES, Register, Registers, active};
use crate::launch::Launch;
use crate::memory::View;
use crate::op::semantics::Semantics;
use crate::shadow::global::cells::Access;
use crate::shadow::global::note::{GlobalNote, GlobalRow};
use crate::shadow::global::order::{Released, Site};
use crate::shadow::global::{GlobalRaces, Now, hand_over};
use crate::shadow::races::How;
use crate::state::barrier::Barrier;
use crate::state::core::Core;
use crate::state::op::Op;
use crate::state::wave::{Status, Wave};

/// How far a wave is.
pub(crate) fn released(wave: &Wave, launch: &Launch) -> Released {
    let (_, next) = wave.in_flight.ids();
    let oldest_write = match wave.status {
        Status::Ended => next,
        _ => wave.checks.global.oldest_write(&wave.in_flight),
    };
    Released { wave: wave.index, next, oldest_write, apart: launch.apart }
}

/// An instruction has accessed global memory.
pub(crate) fn after(core: &mut Core, op: &Op) -> ExecResult {
    let mut notes = std::mem::take(&mut core.wave.checks.global);
    let row = if std::mem::take(&mut notes.has_row) { notes.row.take() } else { None };
    let (id, next) = core.wave.in_flight.ids();
    let writes = row.as_ref().is_some_and(|row| row.from.is_some())
        || notes.lanes.iter().any(|note| !matches!(note.how, How::Read));
    // Loads release nothing.
    let oldest_write = if writes { notes.oldest_write(&core.wave.in_flight) } else { next };
    let result = note(core, op, oldest_write, row.as_deref(), &notes.lanes);
    let result = match global_init::after(core, op, row.as_deref(), &notes.lanes) {
        Ok(()) => result,
        // What stops a dispatch comes last.
        Err(stop) => Err(result.err().into_iter().flatten().chain([*stop]).collect()),
    };
    note_poll(core, op, row.as_deref(), &notes.lanes);
    if writes {
        notes.wrote(id, &core.wave.in_flight);
    }
    if row.is_some() {
        notes.row = row;
    }
    notes.lanes.clear();
    core.wave.checks.global = notes;
    match result {
        Ok(()) => Ok(()),
        Err(found) => found.into_iter().try_for_each(|stop| core.passed(Err(Box::new(stop)))),
    }
}

/// The same; what was found.
fn note(
    core: &mut Core,
    op: &Op,
    oldest_write: u32,
    row: Option<&GlobalRow>,
    lanes: &[GlobalNote],
) -> Result<(), Vec<Stop>> {
    let Core { memory, wave, launch, barrier, races, .. } = core;
    let (Some(races), Some(group)) = (races.as_deref_mut(), barrier.checks.group) else { return Ok(()) };
    let (id, next) = wave.in_flight.ids();
    if next >= Access::MOST_IDS || wave.index >= 1 << 5 {
        return Ok(());
    }
    let how = match (row, lanes.first()) {
        (Some(row), _) if row.from.is_none() => MemoryAccess::Load,
        (Some(_), _) => MemoryAccess::Store,
        (_, Some(GlobalNote { how: How::Read, .. })) => MemoryAccess::Load,
        (_, Some(GlobalNote { how: How::Write(_), .. })) => MemoryAccess::Store,
        (_, Some(GlobalNote { how: How::Atomic, .. })) => MemoryAccess::Atomic,
        _ => return Ok(()),
    };
    let size = row.map_or_else(|| lanes.first().map_or(0, |note| usize::from(note.size)), |row| row.size);
    let Some(site) = races.order.site(op.pc, || site(op, launch, how, size)) else { return Ok(()) };
    let mut now = Now {
        access: Access::new(group, wave.index, id, site),
        done: Released { wave: wave.index, next, oldest_write, apart: launch.apart },
        polls: &mut |pc| polls_at((launch, memory), pc, POLL),
        is_ignored: &|address| memory.is_runtime(address),
        handed: None,
        seen: None,
        found: None,
    };
    let mut found = Vec::new();
    let files = [&wave.vgpr, &wave.agpr];
    let conflict = match row {
        Some(row) => of_row(races, &mut now, row, files),
        None => of_lanes(races, &mut now, lanes),
    };
    if let Some((kind, lane)) = conflict {
        found.push(Stop { kind, lane: Some(lane) });
    }
    if let Some(race) = now.found.take() {
        let at = race.address();
        let within = |start: u64, size: usize| at >= start && at - start < size as u64;
        let lane = match row {
            Some(row) if row.follows => Some(((at - row.addresses[0]) / row.size as u64) as u8),
            Some(row) => active(row.mask).find(|&lane| within(row.addresses[lane], row.size)).map(|lane| lane as u8),
            None => lanes.iter().find(|note| within(note.address, note.size.into())).map(|note| note.lane),
        };
        found.push(Stop { kind: races.fault(&now, &race), lane });
    }
    if found.is_empty() { Ok(()) } else { Err(found) }
}

/// Notes that a wave may be waiting for a change of memory, which ends its turn.
fn note_poll(core: &mut Core, op: &Op, row: Option<&GlobalRow>, lanes: &[GlobalNote]) {
    // An atomic without a result waits for nothing.
    let reads = matches!(op.semantics, Semantics::Load { .. } | Semantics::Atomic { returns: true, .. });
    if !(core.launch.waits || core.launch.yields) || !reads {
        return;
    }
    let Core { memory, wave, launch, .. } = core;
    let in_loop = || polls_at((launch, memory), op.pc, WAIT);
    let access = (op.pc, launch.yields);
    let waits = match row {
        Some(row) => {
            let places = active(row.mask).map(|lane| (row.address(lane), row.size as u8));
            wave.checks.poll.note(access, places, memory, in_loop)
        }
        None => wave.checks.poll.note(access, lanes.iter().map(|note| (note.address, note.size)), memory, in_loop),
    };
    wave.checks.pauses |= waits;
}

/// What is the same for all executions of an instruction.
fn site(op: &Op, launch: &Launch, how: MemoryAccess, size: usize) -> Site {
    let (target, modifiers) = (launch.target, &op.inst.modifiers);
    let coherent = match () {
        () if op.inst.variant.encoding == Encoding::Smem => false,
        // A scope beyond the compute unit on gfx12, `sc0` and `sc1` on gfx94x, `glc` elsewhere; with `slc` it is a
        // nontemporal access of gfx9.
        () if target.has_cache_scope() => modifiers.scope >= 1,
        () if target.sc_cache_bits() => modifiers.glc || modifiers.scc,
        () => modifiers.glc && !modifiers.slc,
    };
    let returns = matches!(op.semantics, Semantics::Atomic { returns: true, .. });
    Site {
        pc: op.pc,
        object: Some(op.object),
        address: op.address,
        name: op.inst.variant.name,
        how,
        returns,
        coherent: coherent && how != MemoryAccess::Atomic,
        size,
        polls: None,
    }
}

type Conflict = Option<(FaultKind, u8)>;

/// The lanes of a fast path.
fn of_row(races: &mut GlobalRaces, now: &mut Now, row: &GlobalRow, files: [&Registers; 2]) -> Conflict {
    let GlobalRow { mask, size, follows, addresses, from } = row;
    let size = *size;
    let mut bytes = std::mem::take(&mut races.bytes);
    if let Some((file, first)) = *from {
        let registers = if file == RegFile::Accum { files[1] } else { files[0] };
        let registers = &registers[usize::from(first)..][..size.div_ceil(4)];
        collect(&mut bytes, registers, (*mask, size));
    }
    let stores = from.is_some();
    if *follows {
        let count = mask.count_ones() as usize * size;
        races.access(now, addresses[0], count, stores.then_some(&bytes[..]));
        races.bytes = bytes;
        return None;
    }
    let first = mask.trailing_zeros() as usize % LANES;
    let one_place = active(*mask).all(|lane| addresses[lane] == addresses[first]);
    let mut conflict = None;
    if stores && !one_place {
        conflict = overlap(|| active(*mask).map(|lane| (lane as u8, addresses[lane])), size, &bytes);
    } else if stores {
        conflict = different(active(*mask).map(|lane| (lane as u8, addresses[lane])), size, &bytes);
    }
    let data = |from: usize, count: usize| stores.then(|| &bytes[from * size..(from + count) * size]);
    if one_place {
        let last = mask.count_ones() as usize - 1;
        races.access(now, addresses[first], size, data(last, 1));
        if stores && size <= 8 {
            hand_over(races, now, addresses[first], size);
        }
    } else {
        // Lanes one after the other are one range.
        let mut run: Option<(u64, usize, usize)> = None;
        let mut before = 0;
        for (n, lane) in active(*mask).enumerate() {
            let at = addresses[lane];
            // Lanes that load what the one before loads add nothing.
            if !stores && n > 0 && before == at {
                continue;
            }
            before = at;
            match &mut run {
                Some((start, _, count)) if *start + (*count * size) as u64 == at => *count += 1,
                _ => {
                    if let Some((start, from, count)) = run.take() {
                        races.access(now, start, count * size, data(from, count));
                    }
                    run = Some((at, n, 1));
                }
            }
        }
        if let Some((start, from, count)) = run {
            races.access(now, start, count * size, data(from, count));
        }
    }
    races.bytes = bytes;
    conflict
}

/// The bytes that the lanes in a mask store from registers, one lane after the other.
fn collect(bytes: &mut Vec<u8>, registers: &[Box<Register>], (mask, size): (u64, usize)) {
    bytes.clear();
    bytes.resize(size * mask.count_ones() as usize, 0);
    if let ([register], 4) = (registers, size) {
        let dwords = bytes.as_chunks_mut().0.iter_mut();
        dwords.zip(active(mask)).for_each(|(dword, lane)| *dword = register[lane].to_le_bytes());
        return;
    }
    for (word, register) in registers.iter().enumerate() {
        let at = 4 * word;
        let length = (size - at).min(4);
        for (n, lane) in active(mask).enumerate() {
            bytes[n * size + at..][..length].copy_from_slice(&register[lane].to_le_bytes()[..length]);
        }
    }
}

/// The lanes of other instructions.
fn of_lanes(races: &mut GlobalRaces, now: &mut Now, lanes: &[GlobalNote]) -> Conflict {
    let value = |how: How| match how {
        How::Write(value) => Some(value.to_le_bytes()),
        _ => None,
    };
    let first = lanes[0];
    let uniform = lanes.iter().all(|note| note.size == first.size);
    let size = usize::from(first.size);
    let stores = matches!(first.how, How::Write(_));
    let mut conflict = None;
    if stores && uniform && lanes.len() > 1 {
        let bytes: Vec<u8> =
            lanes.iter().flat_map(|note| value(note.how).unwrap_or_default().into_iter().take(size)).collect();
        let places = || lanes.iter().map(|note| (note.lane, note.address));
        conflict = match places().all(|(_, address)| address == first.address) {
            true => different(places(), size, &bytes),
            false => overlap(places, size, &bytes),
        };
    }
    for note in lanes {
        let bytes = value(note.how);
        races.access(now, note.address, note.size.into(), bytes.as_ref().map(|bytes| &bytes[..note.size.into()]));
    }
    if stores && size <= 8 && lanes.iter().all(|note| note.address == first.address) {
        hand_over(races, now, first.address, size);
    }
    conflict
}

/// Lanes that store different values to one place.
fn different(places: impl Iterator<Item = (u8, u64)>, size: usize, bytes: &[u8]) -> Conflict {
    let mut chunks = places.zip(bytes.chunks(size));
    let ((lane, address), value) = chunks.next()?;
    let ((other, _), _) = chunks.find(|(_, other)| *other != value)?;
    Some((FaultKind::LaneConflict { address, lanes: [lane, other] }, other))
}

/// The same of lanes that may store to different places.
fn overlap<I: Iterator<Item = (u8, u64)>>(places: impl Fn() -> I, size: usize, bytes: &[u8]) -> Conflict {
    let rising = places().zip(places().skip(1)).all(|(one, next)| next.1 >= one.1.saturating_add(size as u64));
    if rising {
        return None;
    }
    let mut sorted: Vec<((u8, u64), &[u8])> = places().zip(bytes.chunks(size)).collect();
    sorted.sort_by_key(|((_, address), _)| *address);
    let found = sorted.windows(2).find_map(|pair| {
        let [((first, one), before), ((second, other), value)] = pair else { return None };
        let distance = usize::try_from(other - one).ok().filter(|distance| *distance < size)?;
        (before[distance..] != value[..size - distance]).then_some((*other, *first, *second))
    });
    let (address, first, second) = found?;
    let lanes = [first.min(second), first.max(second)];
    Some((FaultKind::LaneConflict { address, lanes }, lanes[1]))
}

/// All waves that have not ended have come to the barrier.
pub(crate) fn at_barrier(races: &mut GlobalRaces, barrier: &Barrier, waves: &[Wave], launch: &Launch) {
    if let Some(group) = barrier.checks.group {
        races.order.barrier(group, waves.iter().map(|wave| released(wave, launch)));
    }
}

/// Where global wave sync hands over what waves did: no address of memory.
const GWS: u64 = u64::MAX;

/// A wave comes to global wave sync.
pub(crate) fn before_gws(races: &mut GlobalRaces, group: u32, wave: &Wave, launch: &Launch) {
    if let Some(handed) = races.order.handed(group, released(wave, launch)) {
        races.order.release(GWS, group, &handed);
    }
}

/// Global wave sync lets a wave go on.
pub(crate) fn after_gws(races: &mut GlobalRaces, group: u32, wave: &Wave) {
    races.order.acquire(GWS, (group, wave.index as usize));
}

/// Most instructions of a loop that polls, as they are told from others by that alone.
const POLL: usize = 64;
/// The same of a loop that is known to repeat an access: it may have been unrolled.
const WAIT: usize = 512;

fn polls_at((launch, memory): (&Launch, &View), pc: u64, most: usize) -> bool {
    let mut fetch = |at: u64, into: &mut [u8]| memory.read(at, into, MemoryAccess::Fetch).is_ok();
    polls(launch.target, pc, most, &mut fetch)
}

/// Whether the access at an address is in a small loop that repeats it until another wave writes: the loop stores
/// nothing, has no barrier, and leaves the address as it is.
fn polls(target: Target, pc: u64, most: usize, fetch: &mut dyn FnMut(u64, &mut [u8]) -> bool) -> bool {
    let mut instruction = |at: u64| -> Option<Inst> {
        // The last instruction may be shorter than the longest.
        (1..=6).rev().map(|dwords| 4 * dwords).find_map(|length| {
            let mut bytes = [0; 24];
            if fetch(at, &mut bytes[..length]) { decode(target, &bytes[..length]).ok() } else { None }
        })
    };
    let Some(access) = instruction(pc) else { return false };
    let roles = [Role::Vaddr, Role::Saddr, Role::Srsrc, Role::Soffset, Role::Sbase];
    let address: Vec<Reg> =
        roles.iter().filter_map(|role| access.operand(*role).and_then(|operand| operand.reg())).collect();
    let mut at = pc;
    for _ in 0..most {
        let Some(inst) = instruction(at) else { return false };
        at += u64::from(inst.size);
        let conditional =
            matches!(inst.variant.branch, Branch::Conditional(condition) if condition != Condition::Debug);
        let Some(displacement) = inst.branch_displacement() else {
            if ends_search(&inst) {
                return false;
            }
            continue;
        };
        let to = at.wrapping_add_signed(4 * displacement);
        if to <= pc {
            return keeps(&mut instruction, to, at, (&address, most));
        }
        if !conditional {
            at = to;
        }
    }
    false
}

fn ends_search(inst: &Inst) -> bool {
    let leaves = matches!(inst.variant.branch, Branch::IndirectCall | Branch::IndirectJump | Branch::End);
    leaves || matches!(inst.opcode(), Opcode::S_BARRIER | Opcode::S_BARRIER_SIGNAL | Opcode::S_BARRIER_WAIT)
}

/// Whether nothing in a loop stores, or writes the registers of an address.
fn keeps(
    instruction: &mut dyn FnMut(u64) -> Option<Inst>,
    from: u64,
    to: u64,
    (address, most): (&[Reg], usize),
) -> bool {
    let mut at = from;
    for _ in 0..most {
        if at >= to {
            return true;
        }
        let Some(inst) = instruction(at) else { return false };
        let flags = inst.variant.flags;
        let stores = flags.contains(Flags::STORE) && !flags.contains(Flags::ATOMIC);
        let mut written =
            inst.operands.iter().filter(|operand| operand.access != Operand::Read).filter_map(|operand| operand.reg());
        if stores || ends_search(&inst) || written.any(|reg| address.iter().any(|address| address.overlaps(reg))) {
            return false;
        }
        at += u64::from(inst.size);
    }
    false
}

/// Races that the device checks are checked through the memory that it has.
impl View<'_> {
    /// Whether an address is in none of the program's allocations.
    pub(crate) fn is_runtime(&self, address: u64) -> bool {
        use crate::address::allocation::AllocationKind;
        self.allocation_of(address).is_none_or(|allocation| allocation.kind == AllocationKind::Runtime)
    }
}
