//! Races in global memory: accesses of different waves to the same bytes, at least one of them a write, that nothing
//! orders.
//!
//! Happens-before as FastTrack has it (Flanagan and Freund, PLDI 2009), with waves for threads. An access is known by
//! its wave and the id that [`crate::shadow::in_flight::InFlight`] gave its operation. [`order`] has what a wave is
//! ordered after, [`cells`] the last accesses of each byte. What compilers make of atomic loads and stores cannot
//! always be told from others, so plain accesses of up to 8 bytes may stand for them ([`Pair::is_synchronisation`]).

pub(crate) mod cells;
pub(crate) mod clock;
pub(crate) mod dispatches;
pub(crate) mod host;
pub(crate) mod note;
pub(crate) mod order;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use self::cells::{Access, CHUNK, Cell, PAGE, Shadow};
use self::clock::{Clock, Row};
use self::dispatches::{Chains, DispatchNumber, DispatchOrder};
use self::order::{Order, Released, Site, dwords};
use crate::fault::last_write::LastWrite;
use crate::fault::{FaultKind, MemoryAccess, MissingSynchronisation};

/// What a wave hands over.
pub(crate) type Handed = (Arc<Row>, Arc<Clock>);

/// The accesses of a device.
#[derive(Default)]
pub(crate) struct GlobalRaces {
    shadow: Shadow,
    pub order: Order,
    chains: Chains,
    running: BTreeSet<DispatchNumber>,
    /// The bytes that an instruction stores.
    pub bytes: Vec<u8>,
}

/// An instruction that accesses memory now.
pub(crate) struct Now<'a> {
    pub access: Access,
    /// Its operation.
    pub done: Released,
    /// Whether the instruction at an address polls.
    pub polls: &'a mut dyn FnMut(u64) -> bool,
    /// Whether nothing is checked at an address.
    pub is_ignored: &'a dyn Fn(u64) -> bool,
    /// What it hands over, once that is known.
    pub handed: Option<Handed>,
    /// The last cell that was found ordered.
    pub seen: Option<Cell>,
    /// The first race that was found: with others the instruction is likely to have the same.
    pub found: Option<Race>,
}

/// A race.
pub(crate) struct Race {
    address: u64,
    earlier: Access,
    same_value: bool,
}

impl Race {
    /// The byte where it was found.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }
}

/// Two accesses of a dword, by their instructions.
#[derive(Clone, Copy)]
struct Pair {
    earlier: Access,
    now: Access,
    address: u64,
}

impl GlobalRaces {
    /// A dispatch begins, or the host accesses memory; its number.
    pub(crate) fn begin(&mut self, order: DispatchOrder) -> DispatchNumber {
        if self.running.is_empty() && order == DispatchOrder::everything() {
            // Nothing before it can race with what comes.
            self.shadow.clear();
            self.order = Order::default();
        }
        let number = self.chains.begin(&order);
        self.order.begin(number, order);
        self.running.insert(number);
        number
    }

    /// A dispatch has ended, or is ended once more.
    pub(crate) fn end(&mut self, number: DispatchNumber) {
        self.running.remove(&number);
    }

    /// Memory is freed, or something else is there now.
    pub(crate) fn forget(&mut self, from: u64, to: u64) {
        self.shadow.forget(from, to);
    }

    /// The numbers of the pages that were written, ascending, without those in which nothing is checked.
    pub(crate) fn written_pages(&self) -> Vec<u64> {
        self.shadow.written()
    }

    /// The last write of a byte that is remembered, if it was an instruction's.
    pub(crate) fn last_write(&mut self, address: u64) -> Option<LastWrite> {
        let GlobalRaces { shadow, order, .. } = self;
        let page = shadow.known(address / PAGE)?;
        let written = page.cell((address % PAGE) as usize, false)?.written;
        if written.is_none() {
            return None;
        }
        let (site, group) = (&order.sites[written.site()], &order.groups[written.group() as usize]);
        let Site { name, address, object, size, .. } = *site;
        object?;
        Some(LastWrite { instruction: name, address, object, size, workgroup: group.id, wave: written.wave() as u32 })
    }

    /// Notes an access of a range by lanes, and whether it races. `bytes` are what is stored.
    pub(crate) fn access(&mut self, now: &mut Now, address: u64, size: usize, bytes: Option<&[u8]>) {
        if bytes.is_some() {
            self.order.stores(now.access.group(), now.access.wave(), now.access.id());
        }
        let (mut at, end) = (address, address.saturating_add(size as u64));
        while at < end {
            let stop = end.min((at / CHUNK as u64 + 1) * CHUNK as u64);
            let piece = bytes.map(|bytes| &bytes[(at - address) as usize..(stop - address) as usize]);
            self.in_chunk(now, at, (stop - at) as usize, piece);
            at = stop;
        }
    }

    /// The same within one chunk.
    fn in_chunk(&mut self, now: &mut Now, address: u64, size: usize, bytes: Option<&[u8]>) {
        let GlobalRaces { shadow, order, .. } = self;
        let (number, at) = (address / PAGE, (address % PAGE) as usize);
        let is_ignored = now.is_ignored;
        let page = shadow.page(number, || is_ignored(address));
        if page.ignored {
            return;
        }
        let (how, coherent) = {
            let site = &order.sites[now.access.site()];
            (site.how, site.coherent)
        };
        let simple = how != MemoryAccess::Atomic && !coherent;
        if simple && size == CHUNK && page.chunks[at / CHUNK].split.is_none() {
            let cell = page.chunks[at / CHUNK].cell;
            if now.seen == Some(cell) || is_ordered(order, now, cell, how) {
                now.seen = Some(cell);
                page.chunks[at / CHUNK].cell = after(order, now, cell, how);
                if let Some(bytes) = bytes {
                    page.store(at, bytes);
                }
                return;
            }
        }
        let mut n = 0;
        while n < size {
            let here = at + n;
            let aligned = here.is_multiple_of(4) && size - n >= 4;
            let cell = page.cell(here, aligned);
            let whole = aligned && cell.is_some();
            let Some(cell) = cell.or_else(|| page.cell(here, false)) else { return };
            let count = if whole { 4 } else { 1 };
            let stored = bytes.map(|bytes| &bytes[n..n + count]);
            // What was stored before is known unless an atomic has changed it.
            let same = || {
                let plain = !cell.written.is_none() && is_known_store(order, cell.written);
                plain && stored.is_some() && page.values(here, count) == stored
            };
            let mut leaves = false;
            if !(simple && now.seen == Some(cell)) {
                let same = same();
                let raced = check(order, now, cell, address + n as u64, (how, coherent));
                if let Some(earlier) = raced {
                    leaves = same;
                    let found = Race { address: address + n as u64, earlier, same_value: same };
                    if now.found.as_ref().is_none_or(|first| first.same_value && !same) {
                        now.found = Some(found);
                    }
                } else if simple {
                    now.seen = Some(cell);
                }
            }
            // A write that changes nothing leaves the one before it, of which more may be known.
            if !leaves {
                let next = after(order, now, cell, how);
                if how == MemoryAccess::Atomic && next == cell {
                    page.change_values(here, count);
                }
                page.set(here, whole, next);
            }
            if let Some(stored) = stored {
                page.store(here, stored);
            }
            n += count;
        }
        if size == CHUNK && how == MemoryAccess::Store {
            let cell = Cell { written: now.access, read: Access::default() };
            let all = page.chunks[at / CHUNK].split.as_ref().is_some_and(|cells| cells.iter().all(|it| *it == cell));
            if all {
                page.unite(at / CHUNK, cell);
            }
        }
    }

    /// What a race is reported as.
    pub(crate) fn fault(&self, now: &Now, race: &Race) -> FaultKind {
        let (sites, earlier) = (&self.order.sites, race.earlier);
        let (own, wave) = (now.access.group(), now.access.wave());
        let view = self.order.view(own, wave);
        let released = |row: Option<&Row>| {
            row.and_then(|row| row.get(earlier.wave())).is_some_and(|progress| earlier.id() < progress.read)
        };
        let missing = match view {
            _ if self.order.dispatches_differ(own, earlier.group()) => MissingSynchronisation::Dispatch,
            Some(view) if own == earlier.group() => match released(Some(&view.row)) {
                true => MissingSynchronisation::Wait,
                false => MissingSynchronisation::Barrier,
            },
            Some(view) if released(view.others.row(earlier.group())) => MissingSynchronisation::Wait,
            _ => MissingSynchronisation::Order,
        };
        FaultKind::GlobalRace {
            address: race.address,
            access: sites[now.access.site()].how,
            other: Box::new(self.order.describe(earlier, missing)),
            same_value: race.same_value,
        }
    }
}

/// Whether it is known what an access has stored: not of atomics and of the host.
fn is_known_store(order: &Order, access: Access) -> bool {
    let site = &order.sites[access.site()];
    site.how == MemoryAccess::Store && site.object.is_some()
}

fn is_own(now: &Now, other: Access) -> bool {
    other.is_none() || (other.group() == now.access.group() && other.wave() == now.access.wave())
}

/// Whether an access is a store of the same wave.
fn is_own_store(order: &Order, now: &Now, access: Access) -> bool {
    !access.is_none() && is_own(now, access) && order.sites[access.site()].how == MemoryAccess::Store
}

/// Whether an access that is neither atomic nor coherent is ordered after what was there.
fn is_ordered(order: &Order, now: &Now, cell: Cell, how: MemoryAccess) -> bool {
    let place = (now.access.group(), now.access.wave());
    let before = |other: Access, writes| is_own(now, other) || order.is_before(other, writes, place);
    before(cell.written, true) && (how == MemoryAccess::Load || before(cell.read, false))
}

/// What a cell is after an access.
fn after(order: &Order, now: &Now, cell: Cell, how: MemoryAccess) -> Cell {
    let place = (now.access.group(), now.access.wave());
    match how {
        MemoryAccess::Store => Cell { written: now.access, read: Access::default() },
        // Later atomics synchronise with this one, and do not with the wave's store before it.
        MemoryAccess::Atomic if is_own_store(order, now, cell.written) => cell,
        MemoryAccess::Atomic => Cell { written: now.access, ..cell },
        // A read that is not ordered before is worth more: this wave's next write is ordered after its own reads.
        _ if is_own(now, cell.read) || order.is_before(cell.read, false, place) => Cell { read: now.access, ..cell },
        _ => cell,
    }
}

/// The earlier access that one of a dword or byte races with.
fn check(
    order: &mut Order,
    now: &mut Now,
    cell: Cell,
    address: u64,
    (how, coherent): (MemoryAccess, bool),
) -> Option<Access> {
    let place = (now.access.group(), now.access.wave());
    let returns = order.sites[now.access.site()].returns;
    let atomic = how == MemoryAccess::Atomic;
    if (atomic && returns) || (coherent && how == MemoryAccess::Load) {
        order.acquire(address, place);
    }
    let mut raced = None;
    if !is_own(now, cell.written) && !order.is_before(cell.written, true, place) {
        let pair = Pair { earlier: cell.written, now: now.access, address };
        if !pair.is_synchronisation(order, now.polls) {
            raced = Some(cell.written);
        } else {
            order.note_flag(address);
            // Of rows of stores it is not remembered what they hand over.
            let acquires = how == MemoryAccess::Load || (atomic && returns);
            if acquires {
                order.acquire(address, place);
                // A release there covers what its wave read before.
                if !order.is_before(cell.written, false, place) {
                    order.acquire_from(cell.written, place);
                }
            }
        }
    }
    if raced.is_none()
        && how != MemoryAccess::Load
        && !is_own(now, cell.read)
        && !order.is_before(cell.read, false, place)
    {
        let pair = Pair { earlier: cell.read, now: now.access, address };
        if !pair.is_synchronisation(order, now.polls) {
            raced = Some(cell.read);
        }
    }
    if atomic {
        let done = now.done;
        let handed = now.handed.take().or_else(|| order.handed(now.access.group(), done));
        if let Some(handed) = &handed {
            order.exchange(address, now.access.group(), handed, returns);
        }
        // What was acquired meanwhile is handed over at the next place.
        now.handed = if returns { None } else { handed };
    } else if coherent {
        order.note_flag(address);
    }
    raced
}

impl Pair {
    /// Whether two accesses that nothing else orders synchronise, rather than race: atomics, what compilers make of
    /// atomic loads and stores, and what programs use as such.
    fn is_synchronisation(self, order: &mut Order, polls: &mut dyn FnMut(u64) -> bool) -> bool {
        let kind = |order: &Order, access: Access| {
            let site = &order.sites[access.site()];
            (site.how, site.coherent, site.returns, site.is_narrow())
        };
        let (first, second) = (kind(order, self.earlier), kind(order, self.now));
        // Whether an access of the two stands for an atomic load.
        let mut polling = |order: &mut Order, access: Access| {
            let site = &mut order.sites[access.site()];
            let pc = site.pc;
            *site.polls.get_or_insert_with(|| polls(pc))
        };
        use MemoryAccess as M;
        match (first.0, second.0) {
            (M::Load, M::Atomic) => first.1 || second.2 || polling(order, self.earlier),
            (M::Atomic, M::Load) => second.1 || first.2 || polling(order, self.now),
            (M::Load, M::Store) => second.3 && (first.1 || polling(order, self.earlier)),
            (M::Store, M::Load) => first.3 && (second.1 || polling(order, self.now)),
            (M::Store, M::Store) => first.3 && second.3 && ((first.1 && second.1) || order.is_flag(self.address)),
            (M::Store, M::Atomic) => {
                let exchanged = order.has_exchanged(self.address, self.earlier.group());
                first.3 && (first.1 || exchanged || polling(order, self.now))
            }
            (M::Atomic, M::Store) => {
                let exchanged = order.has_exchanged(self.address, self.now.group());
                second.3 && (second.1 || exchanged || polling(order, self.earlier))
            }
            _ => true,
        }
    }
}

/// The places of a store that may be a flag, all lanes of which store to the same: what its wave did is handed over.
pub(crate) fn hand_over(races: &mut GlobalRaces, now: &mut Now, address: u64, size: usize) {
    let group = now.access.group();
    let (wave, operation) = (now.access.wave(), now.access.id());
    let has_waited = races.order.has_waited(group, wave, operation, now.done);
    if let Some(handed) = races.order.handed(group, now.done) {
        for dword in dwords(address, size) {
            races.order.release(dword, group, &handed);
            if has_waited {
                races.order.note_release(dword);
            }
        }
    }
}
