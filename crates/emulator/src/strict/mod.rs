//! What the strict mode checks behind an instruction: how it accessed LDS, and what became of bits that nothing has
//! written.
//!
//! The handlers of memory instructions note every access of a lane; the checks go through the notes when the
//! instruction is done. They need not know how addresses are made.

pub(crate) mod shadow_copy;
pub(crate) mod store_order;
pub(crate) mod undefined;
pub(crate) mod undefined_memory;

use std::cell::RefCell;
use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use wavetap_amdgpu::{Access as Operand, Branch, Condition, Encoding, Flags, Inst, Opcode, RegFile, Role, decode};

use self::store_order::Neighbours;
use crate::fault::findings::FindingKind;
use crate::fault::stop::{Step, Stop};
use crate::fault::{FaultKind, MemoryAccess};
use crate::lanes::LANES;
use crate::memory::View;
use crate::op::{Class, Op, Semantics};
use crate::shadow::event_hazard;
use crate::shadow::event_hazard::Events;
use crate::shadow::init_shadow::{Known, Origin, Stored};
use crate::shadow::lds_row::LdsRow;
use crate::shadow::races::{How, Operation, Progress, Races};
use crate::state::core::{Barrier, Core, Launch, Status, Wave};

/// An instruction is about to run.
#[inline]
pub(crate) fn before(core: &mut Core, op: &Op) -> Step {
    let checked = event_hazard::check(core, op);
    core.passed(checked)?;
    undefined::before(core, op)
}

/// An access of a lane that a memory instruction has noted.
#[derive(Clone, Copy)]
pub(crate) struct Access {
    pub lane: u8,
    /// Bytes.
    pub size: u8,
    /// Which element of an instruction that has two.
    pub element: u8,
    /// The lane's private memory rather than LDS.
    pub scratch: bool,
    /// First byte.
    pub at: u32,
    pub how: How,
}

impl Access {
    fn new(lane: usize, at: usize, size: usize, element: usize, how: How) -> Access {
        Access { lane: lane as u8, size: size as u8, element: element as u8, scratch: false, at: at as u32, how }
    }

    pub(crate) fn read(lane: usize, at: usize, size: usize, element: usize) -> Access {
        Access::new(lane, at, size, element, How::Read)
    }

    pub(crate) fn write(lane: usize, at: usize, bytes: &[u8], element: usize) -> Access {
        let value = bytes.iter().rev().fold(0, |value, &byte| value << 8 | u128::from(byte));
        Access::new(lane, at, bytes.len(), element, How::Write(value))
    }

    pub(crate) fn atomic(lane: usize, at: usize, size: usize, element: usize) -> Access {
        Access::new(lane, at, size, element, How::Atomic)
    }

    /// The same in scratch.
    pub(crate) fn of_scratch(self) -> Access {
        Access { scratch: true, ..self }
    }
}

/// What is known of a wave.
pub(crate) struct WaveChecks {
    pub known: Known,
    /// Accesses of the instruction that is running.
    accesses: Vec<Access>,
    /// Those of one that goes the short way, instead.
    row: Option<Box<LdsRow>>,
    /// All of its lanes went to scratch, and it is known what became of undefined bits.
    pub in_scratch: bool,
    /// Operations in LDS that may still be in flight: LDS instructions that write, copies that write, and copies that
    /// read.
    in_lds: [VecDeque<u32>; 3],
    /// Others run next.
    pub pauses: bool,
    /// The code address of the instruction that is running.
    pub at: u64,
    /// What was found at it and does not stop the wave.
    found: RefCell<Vec<Stop>>,
    pub events: Events,
}

impl WaveChecks {
    pub(crate) fn new(strict: bool) -> WaveChecks {
        WaveChecks {
            known: Known::new(strict),
            accesses: Vec::new(),
            row: None,
            in_scratch: false,
            in_lds: Default::default(),
            pauses: false,
            at: 0,
            found: RefCell::default(),
            events: Events::default(),
        }
    }
}

impl WaveChecks {
    /// Whether anything was found.
    #[inline]
    pub(crate) fn has_found(&mut self) -> bool {
        !self.found.get_mut().is_empty()
    }

    /// What was found; nothing is left.
    pub(crate) fn take_found(&mut self) -> Vec<Stop> {
        std::mem::take(self.found.get_mut())
    }
}

/// What is known of a workgroup.
#[derive(Default)]
pub(crate) struct GroupChecks {
    pub races: Races,
    /// The undefined bits of LDS; empty before the first access.
    pub lds: Vec<u8>,
    /// By its dword in LDS: the last store of undefined bits there.
    stored: FxHashMap<u32, Stored>,
    /// Stores to memory that were in flight at the last barrier.
    late: Vec<LateStore>,
    pub neighbours: Neighbours,
}

/// A store that a wave had not waited for when it came to the barrier.
struct LateStore {
    wave: u32,
    id: u32,
    address: u64,
    bytes: u32,
    name: &'static str,
    at: u64,
    counter: Box<str>,
}

impl GroupChecks {
    /// A wave comes to the barrier. Its stores are visible to the others behind it only if it has waited for them,
    /// where these may use another cache.
    fn arrives(&mut self, wave: &mut Wave, launch: &Launch) {
        wave.pending.at_barrier();
        if launch.apart {
            self.late.retain(|late| late.wave != wave.index);
            let (wave, stores) = (wave.index, wave.pending.stores());
            self.late.extend(stores.map(|(id, address, bytes, name, at, counter)| LateStore {
                wave,
                id,
                address,
                bytes,
                name,
                at,
                counter,
            }));
        }
    }

    /// A wave has waited: what that guarantees is no longer late.
    pub(crate) fn forget_late(&mut self, wave: &Wave) {
        self.late.retain(|late| late.wave != wave.index || wave.pending.is_in_flight(late.id));
    }

    /// An instruction has stored undefined bits to a byte of LDS.
    pub(crate) fn note_stored(&mut self, at: u32, stored: Stored) {
        self.stored.insert(at / 4, stored);
    }

    /// Where undefined bits come from that the instruction at a code address loads from a byte of LDS.
    pub(crate) fn origin_in_lds(&self, at: u32, by: u64) -> Origin {
        self.stored.get(&(at / 4)).map_or(Origin::Lds(at, by), |&stored| Origin::Stored {
            scratch: false,
            at,
            by,
            stored,
        })
    }

    /// Whether any wave's stores were in flight at the last barrier.
    pub(crate) fn has_late_stores(&self) -> bool {
        !self.late.is_empty()
    }

    /// A wave loads from memory: none of what may still be on its way to where it can see it.
    pub(crate) fn check_load(&self, wave: u32, address: u64, size: usize) -> Result<(), FaultKind> {
        let overlaps = |late: &&LateStore| {
            late.wave != wave && late.address < address + size as u64 && address < late.address + u64::from(late.bytes)
        };
        match self.late.iter().find(overlaps) {
            None => Ok(()),
            Some(late) => Err(FaultKind::MissingWait {
                register: format!("memory at {address:#x}").into(),
                pending: late.name,
                pending_at: late.at,
                counter: late.counter.clone(),
                overwritten: false,
            }),
        }
    }
}

impl Core<'_> {
    /// Notes what all lanes of an instruction do to LDS that makes no other note: the places of each element, and
    /// whether they are in a row.
    pub(crate) fn note_row<'a>(
        &mut self,
        (mask, size): (u64, usize),
        places: impl ExactSizeIterator<Item = (&'a [u32; LANES], bool)>,
        from: Option<[(RegFile, u16); 2]>,
    ) {
        let row = self.wave.checks.row.get_or_insert_with(|| Box::new(LdsRow::NONE));
        (row.mask, row.size, row.elements, row.from) = (mask, size, places.len(), from);
        for (n, (places, in_a_row)) in places.enumerate() {
            (row.places[n], row.in_a_row[n]) = (*places, in_a_row);
        }
    }

    /// The result of a check: what it has found is noted, and does not stop the wave, if the dispatch is to go on after
    /// it.
    #[inline]
    pub(crate) fn passed(&self, checked: Step) -> Step {
        checked.or_else(|stop| {
            let checks = &self.wave.checks;
            let goes_on = FindingKind::of(&stop.kind).is_some_and(|kind| self.launch.passes.allow(kind, checks.at));
            if !goes_on {
                return Err(stop);
            }
            checks.found.borrow_mut().push(*stop);
            Ok(())
        })
    }

    /// Notes an access of a lane.
    pub(crate) fn note(&mut self, access: Access) {
        if self.launch.strict {
            self.wave.checks.accesses.push(access);
        }
    }
}

/// An instruction has run.
#[inline]
pub(crate) fn after(core: &mut Core, op: &Op) -> Step {
    if op.translates {
        core.wave.pending.translate();
    }
    // Most access no memory, which leaves nothing to look at.
    let no_memory = matches!(op.class, Class::Valu | Class::Salu | Class::Smem | Class::Branch | Class::Wait);
    if no_memory && core.wave.checks.accesses.is_empty() {
        debug_assert!(core.wave.status != Status::Ended, "{}", op.inst.variant.name);
        return Ok(());
    }
    after_others(core, op)
}

fn after_others(core: &mut Core, op: &Op) -> Step {
    if core.wave.checks.row.as_ref().is_some_and(|row| row.mask != 0) {
        return after_row(core, op);
    }
    if core.wave.checks.accesses.is_empty() {
        if std::mem::take(&mut core.wave.checks.in_scratch) {
            return Ok(());
        }
        if core.wave.status == Status::Ended {
            let (_, next) = core.wave.pending.ids();
            core.barrier.checks.races.end(core.wave.index, next);
        }
        return core.passed(undefined_memory::stores(core, op, &[]));
    }
    let accesses = std::mem::take(&mut core.wave.checks.accesses);
    let raced = races(core, op, &accesses);
    let result = core.passed(raced).and_then(|()| {
        undefined_memory::values(core, op, &accesses);
        core.passed(undefined_memory::stores(core, op, &accesses))
    });
    core.wave.checks.accesses = accesses;
    core.wave.checks.accesses.clear();
    result
}

/// [`after`] an LDS instruction that has gone the short way: as if there were an [`Access`] for each lane and element.
fn after_row(core: &mut Core, op: &Op) -> Step {
    let Some(mut row) = core.wave.checks.row.take() else { return Ok(()) };
    let raced = races_of_row(core, op, &row);
    let result = core.passed(raced);
    if result.is_ok() && !undefined_memory::known_row(core, &row) {
        let mut accesses = std::mem::take(&mut core.wave.checks.accesses);
        accesses.extend(row.accesses([&core.wave.vgpr, &core.wave.agpr]));
        undefined_memory::values(core, op, &accesses);
        accesses.clear();
        core.wave.checks.accesses = accesses;
    }
    row.mask = 0;
    core.wave.checks.row = Some(row);
    result
}

/// An instruction that accesses LDS.
fn operation(wave: &Wave, op: &Op) -> Operation {
    Operation {
        wave: wave.index,
        id: wave.pending.ids().0,
        pc: op.pc,
        address: op.address,
        name: op.inst.variant.name,
        returns: match op.semantics {
            Semantics::Atomic { returns, .. } => returns,
            _ => true,
        },
        // What goes through FLAT to LDS goes between LDS and registers.
        copies: !matches!(op.inst.variant.encoding, Encoding::Ds | Encoding::Flat),
        copied: [wave.oldest_in_lds(COPY_WRITES), wave.oldest_in_lds(COPY_READS)],
    }
}

fn races(core: &mut Core, op: &Op, accesses: &[Access]) -> Step {
    let operation = operation(core.wave, op);
    let (mut writes, mut reads, mut result) = (false, false, Ok(()));
    let Core { memory, wave, launch, barrier, lds, .. } = core;
    let pending = &wave.pending;
    for access in accesses.iter().filter(|access| !access.scratch) {
        writes |= access.how != How::Read;
        reads |= access.how == How::Read;
        let place = (access.at as usize, usize::from(access.size), access.how);
        let in_flight = |id| pending.is_in_flight(id);
        let found = barrier
            .checks
            .races
            .access(&operation, lds.len(), place, &in_flight, &mut |pc| polls_at(launch, memory, pc));
        // The first is told; all are noted, as the wave may go on.
        result = result.and(found.map_err(|kind| Box::new(Stop { kind, lane: Some(access.lane) })));
    }
    match (operation.copies, writes) {
        (false, true) => wave.note_in_lds(LDS_WRITES, operation.id),
        (true, true) => wave.note_in_lds(COPY_WRITES, operation.id),
        (true, false) if reads => wave.note_in_lds(COPY_READS, operation.id),
        _ => {}
    }
    result
}

fn races_of_row(core: &mut Core, op: &Op, row: &LdsRow) -> Step {
    let operation = operation(core.wave, op);
    let Core { memory, wave, launch, barrier, lds, .. } = core;
    let (pending, files) = (&wave.pending, [&wave.vgpr, &wave.agpr]);
    let in_flight = |id| pending.is_in_flight(id);
    let found = barrier
        .checks
        .races
        .row(&operation, lds.len(), (row, files), &in_flight, &mut |pc| polls_at(launch, memory, pc));
    if row.from.is_some() {
        wave.note_in_lds(LDS_WRITES, operation.id);
    }
    found.map_err(|(lane, kind)| Box::new(Stop { kind, lane: Some(lane as u8) }))
}

/// [`polls`] for code on the device.
fn polls_at(launch: &Launch, memory: &View, pc: u64) -> bool {
    polls(launch.target, pc, &mut |at: u64, into: &mut [u8]| memory.read(at, into, MemoryAccess::Fetch).is_ok())
}

/// The lists of [`WaveChecks::in_lds`].
const LDS_WRITES: usize = 0;
const COPY_WRITES: usize = 1;
const COPY_READS: usize = 2;

impl Wave {
    /// An operation is in flight to LDS or from there.
    fn note_in_lds(&mut self, list: usize, id: u32) {
        let Wave { pending, checks, .. } = self;
        let list = &mut checks.in_lds[list];
        // A kernel may write all its life and never wait: only the oldest are looked at.
        while list.front().is_some_and(|&oldest| !pending.is_in_flight(oldest)) {
            list.pop_front();
        }
        if list.back() != Some(&id) {
            list.push_back(id);
        }
    }

    /// The first operation in a list that may still be in flight, or the next operation.
    fn oldest_in_lds(&self, list: usize) -> u32 {
        let found = self.checks.in_lds[list].iter().copied().find(|&id| self.pending.is_in_flight(id));
        found.unwrap_or(self.pending.ids().1)
    }
}

/// What a wave has done.
fn unfinished(wave: &Wave) -> Progress {
    let (_, next) = wave.pending.ids();
    if wave.status == Status::Ended {
        return Progress { wave: wave.index, writes: [next; 2], reads: [next; 2] };
    }
    let [writes, copied, read] = [LDS_WRITES, COPY_WRITES, COPY_READS].map(|list| wave.oldest_in_lds(list));
    Progress { wave: wave.index, writes: [writes, copied], reads: [next, read] }
}

/// All waves that have not ended have come to the barrier.
pub(crate) fn at_barrier(barrier: &mut Barrier, waves: &mut [Wave], launch: &Launch) {
    waves.iter_mut().for_each(|wave| barrier.checks.arrives(wave, launch));
    barrier.checks.races.barrier(waves.iter().map(unfinished));
}

/// A wave is let through the split barrier.
pub(crate) fn passes(barrier: &mut Barrier, wave: &Wave) {
    barrier.checks.races.pass(wave.signalled, wave.index);
}

/// A wave signals the split barrier.
pub(crate) fn signals(core: &mut Core) {
    if core.launch.strict {
        let Core { wave, barrier, launch, .. } = core;
        barrier.checks.arrives(wave, launch);
        barrier.checks.races.signal(barrier.phase, unfinished(wave));
    }
}

/// A wave accesses one place in memory with all lanes: it may be a flag that hands LDS over. What it stores there
/// releases what it has done in LDS, and what it loads from there acquires what others have released.
pub(crate) fn flag(core: &mut Core, address: u64, reads: bool) {
    let races = &mut core.barrier.checks.races;
    if reads {
        races.acquire_from_memory(core.wave.index, address);
    } else {
        races.release_to_memory(unfinished(core.wave), address);
    }
}

/// Most instructions of a loop that polls.
const POLL: usize = 64;

/// Whether the load of LDS at an address is in a small loop that repeats it until another wave writes: the loop writes
/// no LDS, has no barrier, and leaves the address as it is. Such is what compilers make of waiting for an atomic flag;
/// any other loop would have had the load moved out of it.
fn polls(target: wavetap_amdgpu::Target, pc: u64, fetch: &mut dyn FnMut(u64, &mut [u8]) -> bool) -> bool {
    let mut instruction = |at: u64| -> Option<Inst> {
        // The last instruction may be shorter than the longest.
        (1..=3).rev().map(|dwords| 4 * dwords).find_map(|length| {
            let mut bytes = [0; 12];
            if fetch(at, &mut bytes[..length]) { decode(target, &bytes[..length]).ok() } else { None }
        })
    };
    let Some(load) = instruction(pc) else { return false };
    let address = load.operand(Role::Addr).or_else(|| load.operand(Role::Vaddr)).and_then(|operand| operand.reg());
    let mut at = pc;
    for _ in 0..POLL {
        let Some(inst) = instruction(at) else { return false };
        at += u64::from(inst.size);
        let conditional =
            matches!(inst.variant.branch, Branch::Conditional(condition) if condition != Condition::Debug);
        let Some(displacement) = inst.branch_displacement() else {
            let leaves = matches!(inst.variant.branch, Branch::IndirectCall | Branch::IndirectJump | Branch::End);
            if leaves || matches!(inst.opcode(), Opcode::S_BARRIER | Opcode::S_BARRIER_SIGNAL | Opcode::S_BARRIER_WAIT)
            {
                return false;
            }
            continue;
        };
        let to = at.wrapping_add_signed(4 * displacement);
        if to <= pc {
            return keeps(&mut instruction, to, at, address);
        }
        if !conditional {
            at = to;
        }
    }
    false
}

/// Whether nothing in a loop writes LDS or the registers of an address.
fn keeps(
    instruction: &mut dyn FnMut(u64) -> Option<Inst>,
    from: u64,
    to: u64,
    address: Option<wavetap_amdgpu::Reg>,
) -> bool {
    let mut at = from;
    for _ in 0..POLL {
        if at >= to {
            return true;
        }
        let Some(inst) = instruction(at) else { return false };
        let stores = inst.variant.encoding == Encoding::Ds && inst.variant.flags.contains(Flags::STORE);
        let mut written =
            inst.operands.iter().filter(|operand| operand.access != Operand::Read).filter_map(|operand| operand.reg());
        let changes =
            written.any(|reg| reg.file == RegFile::Vector && address.is_some_and(|address| address.overlaps(reg)));
        if stores || changes || inst.opcode() == Opcode::S_BARRIER {
            return false;
        }
        at += u64::from(inst.size);
    }
    false
}
