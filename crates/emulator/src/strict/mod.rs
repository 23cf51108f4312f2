//! What strict mode checks before and after an instruction: hazards, accesses of LDS, undefined bits, the order of
//! stores.
//!
//! The handlers of memory instructions note every access of a lane; the checks go through the notes when the
//! instruction is done. They do not depend on how addresses are made.

pub(crate) mod global_init;
pub(crate) mod global_races;
pub(crate) mod shadow_copy;
pub(crate) mod store_order;
pub(crate) mod transposed;
pub(crate) mod undefined;
pub(crate) mod undefined_memory;

use wavetap_amdgpu::{Access as Operand, Branch, Condition, Encoding, Flags, Inst, Opcode, RegFile, Role, decode};

use crate::fault::stop::{ExecResult, Stop, stop};
use crate::fault::{BarrierProblem, FaultKind, MemoryAccess};
use crate::launch::Launch;
use crate::memory::View;
use crate::op::Class;
use crate::op::semantics::Semantics;
use crate::shadow::global::GlobalRaces;
use crate::shadow::races::access::LaneAccess;
use crate::shadow::races::lds_row::LdsRow;
use crate::shadow::races::{How, LdsOperation, WaveProgress};
use crate::state::barrier::Barrier;
use crate::state::core::Core;
use crate::state::op::Op;
use crate::state::wave::{Status, Wave};

/// An instruction is about to run.
#[inline]
pub(crate) fn before(core: &mut Core, op: &Op) -> ExecResult {
    let checked = core.wave.checks.events.check(op, core.launch, core.wave.scheduling);
    core.passed(checked)?;
    undefined::before(core, op)
}

/// An instruction has run.
#[inline]
pub(crate) fn after(core: &mut Core, op: &Op) -> ExecResult {
    if op.translates {
        core.wave.in_flight.translate();
    }
    if !core.wave.checks.global.is_empty() {
        global_races::after(core, op)?;
    }
    // Most access no memory, which leaves nothing to look at.
    let no_memory = matches!(op.class, Class::Valu | Class::Salu | Class::Smem | Class::Branch | Class::Wait);
    if no_memory && core.wave.checks.accesses.is_empty() {
        debug_assert!(core.wave.status != Status::Ended, "{}", op.inst.variant.name);
        return Ok(());
    }
    after_others(core, op)
}

fn after_others(core: &mut Core, op: &Op) -> ExecResult {
    if core.wave.checks.row.as_ref().is_some_and(|row| row.mask != 0) {
        return after_row(core, op);
    }
    if core.wave.checks.accesses.is_empty() {
        if std::mem::take(&mut core.wave.checks.in_scratch) {
            return Ok(());
        }
        if core.wave.status == Status::Ended {
            let (_, next) = core.wave.in_flight.ids();
            core.barrier.checks.races.end(core.wave.index, next);
            if core.launch.barriers
                && let Some(problem) = core.barrier.checks.sites.end(core.wave.index, core.barrier.phase)
            {
                core.passed(stop(FaultKind::Barrier { problem }))?;
            }
            if let (Some(races), Some(group)) = (&mut core.races, core.barrier.checks.group) {
                races.order.wave_ends(group, core.wave.index, next);
            }
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

/// [`after`] an LDS instruction that has taken the fast path: as if there were a [`LaneAccess`] for each lane and
/// element.
fn after_row(core: &mut Core, op: &Op) -> ExecResult {
    let Some(mut row) = core.wave.checks.row.take() else { return Ok(()) };
    let raced = races_of_row(core, op, &row);
    let result = core.passed(raced);
    if result.is_ok() && !undefined_memory::row_is_defined(core, &row) {
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
fn operation(wave: &Wave, op: &Op) -> LdsOperation {
    LdsOperation {
        wave: wave.index,
        id: wave.in_flight.ids().0,
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

fn races(core: &mut Core, op: &Op, accesses: &[LaneAccess]) -> ExecResult {
    let operation = operation(core.wave, op);
    let (mut writes, mut reads, mut result) = (false, false, Ok(()));
    let Core { memory, wave, launch, barrier, lds, .. } = core;
    let pending = &wave.in_flight;
    for access in accesses.iter().filter(|access| !access.scratch) {
        writes |= access.how != How::Read;
        reads |= access.how == How::Read;
        let place = (access.at as usize, usize::from(access.size), access.how);
        let in_flight = |id| pending.is_in_flight(id);
        let found = barrier
            .checks
            .races
            .access(&operation, lds.len(), place, &in_flight, &mut |pc| polls_at(launch, memory, pc));
        // The first is reported; all are noted, as the wave may go on.
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

fn races_of_row(core: &mut Core, op: &Op, row: &LdsRow) -> ExecResult {
    let operation = operation(core.wave, op);
    let Core { memory, wave, launch, barrier, lds, .. } = core;
    let (pending, files) = (&wave.in_flight, [&wave.vgpr, &wave.agpr]);
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

/// The lists of `WaveChecks::in_lds`.
const LDS_WRITES: usize = 0;
const COPY_WRITES: usize = 1;
const COPY_READS: usize = 2;

impl Wave {
    /// An operation is in flight to LDS or from there.
    fn note_in_lds(&mut self, list: usize, id: u32) {
        let Wave { in_flight, checks, .. } = self;
        let list = &mut checks.in_lds[list];
        // A kernel may write without end and never wait: only the oldest are checked.
        while list.front().is_some_and(|&oldest| !in_flight.is_in_flight(oldest)) {
            list.pop_front();
        }
        if list.back() != Some(&id) {
            list.push_back(id);
        }
    }

    /// The first operation in a list that may still be in flight, or the next operation.
    fn oldest_in_lds(&self, list: usize) -> u32 {
        let found = self.checks.in_lds[list].iter().copied().find(|&id| self.in_flight.is_in_flight(id));
        found.unwrap_or(self.in_flight.ids().1)
    }
}

/// The first operations of a wave that are not complete yet, for the clocks at a barrier.
fn unfinished(wave: &Wave) -> WaveProgress {
    let (_, next) = wave.in_flight.ids();
    if wave.status == Status::Ended {
        return WaveProgress { wave: wave.index, writes: [next; 2], reads: [next; 2] };
    }
    let [writes, copied, read] = [LDS_WRITES, COPY_WRITES, COPY_READS].map(|list| wave.oldest_in_lds(list));
    WaveProgress { wave: wave.index, writes: [writes, copied], reads: [next, read] }
}

/// All waves that have not ended have come to the barrier.
pub(crate) fn at_barrier(barrier: &mut Barrier, waves: &mut [Wave], launch: &Launch, races: Option<&mut GlobalRaces>) {
    if let Some(races) = races {
        global_races::at_barrier(races, barrier, waves, launch);
    }
    barrier.checks.sites.clear();
    waves.iter_mut().for_each(|wave| barrier.checks.arrives(wave.index, &mut wave.in_flight, launch));
    barrier.checks.races.barrier(waves.iter().map(unfinished));
}

/// A wave is let through the split barrier.
pub(crate) fn passes(barrier: &mut Barrier, wave: &Wave, races: Option<&mut GlobalRaces>) {
    if let (Some(races), Some(group)) = (races, barrier.checks.group) {
        races.order.pass(group, wave.index, wave.signalled);
    }
    barrier.checks.races.pass(wave.signalled, wave.index);
}

/// A wave has come to the workgroup's barrier.
pub(crate) fn comes_to_barrier(core: &mut Core) -> ExecResult {
    if !core.launch.barriers {
        return Ok(());
    }
    let (at, exec) = (core.wave.checks.at, core.wave.exec());
    // Structured control flow has all lanes of a wave active again before whatever follows it.
    let lanes = core.wave.checks.present & !exec;
    if lanes != 0 {
        core.passed(stop(FaultKind::Barrier { problem: BarrierProblem::Lanes { at, lanes } }))?;
    }
    let Barrier { checks, phase, members, .. } = &mut *core.barrier;
    match checks.sites.arrive((at, core.wave.index), *phase, *members) {
        Some(problem) => core.passed(stop(FaultKind::Barrier { problem })),
        None => Ok(()),
    }
}

/// A wave signals the split barrier.
pub(crate) fn signals(core: &mut Core) {
    if core.launch.strict {
        let Core { wave, barrier, launch, races, .. } = core;
        if let (Some(races), Some(group)) = (races, barrier.checks.group) {
            races.order.signal(group, barrier.phase, global_races::released(wave, launch));
        }
        barrier.checks.arrives(wave.index, &mut wave.in_flight, launch);
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
