//! Races in LDS: accesses of different waves of a workgroup to the same bytes that nothing orders.
//!
//! Happens-before as ThreadSanitizer has it, with waves for threads. An access is known by its wave and the id that [`super::pending::Pending`] gave its operation, which
//! only grows; a wave's clock has for every other wave the first id that it is *not* ordered behind. A barrier joins the clocks of all waves; a
//! write that its wave has not waited for when it comes to the barrier is not ordered by it. LDS atomics release, and those that return a value also
//! acquire, through their address. So do plain accesses that stand for atomic ones, which compilers make of `__hip_atomic_load` and `__hip_atomic_store`: a read
//! that a loop without writes repeats at an address that the loop does not change (a flag that is polled), and a write to what the same wave has
//! exchanged before (a lock that is let go). A read is also taken for an atomic one where the other access is an atomic that returns a value: loops of
//! compare-and-swap begin so.
//!
//! No race is: two lanes of one instruction; a write of the value that is there; two atomics.

use rustc_hash::{FxHashMap, FxHashSet};

use super::fault::{FaultKind, LdsAccess, MemoryAccess};

mod row;

/// Most waves of a workgroup: 1024 work-items in waves of 32.
const WAVES: usize = 32;

/// Most addresses in memory of which it is remembered what was released there.
const MOST_FLAGS: usize = 1 << 12;

/// For each wave, the first operation that is not known to be over.
type Clock = [u32; WAVES];

/// What a wave knows of the others.
#[derive(Clone, Copy)]
struct View {
    /// Writes that are done.
    writes: Clock,
    /// Reads that are done.
    reads: Clock,
}

impl View {
    const NONE: View = View { writes: [0; WAVES], reads: [0; WAVES] };

    fn join(&mut self, other: &View) {
        for at in 0..WAVES {
            self.writes[at] = self.writes[at].max(other.writes[at]);
            self.reads[at] = self.reads[at].max(other.reads[at]);
        }
    }
}

/// An access that is remembered, in one word: a row of lanes compares many of them. No operation has the id 0.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Access(u64);

impl Access {
    const ATOMIC: u64 = 1 << 56;
    const EXCHANGES: u64 = 1 << 57;
    const LOADED: u64 = 1 << 58;

    fn new(operation: &Operation, site: u16, atomic: bool, exchanges: bool) -> Access {
        let flag = |set: bool, bit: u64| if set { bit } else { 0 };
        let flags = flag(atomic, Self::ATOMIC) | flag(exchanges, Self::EXCHANGES) | flag(operation.loads, Self::LOADED);
        Access(u64::from(operation.id) | u64::from(site) << 32 | u64::from(operation.wave as u8) << 48 | flags)
    }

    fn id(self) -> u32 {
        self.0 as u32
    }

    fn site(self) -> usize {
        usize::from((self.0 >> 32) as u16)
    }

    fn wave(self) -> usize {
        usize::from((self.0 >> 48) as u8)
    }

    fn is_atomic(self) -> bool {
        self.0 & Self::ATOMIC != 0
    }

    /// An atomic that plain reads may be meant for: one that returns a value, or lets a lock go.
    fn exchanges(self) -> bool {
        self.0 & Self::EXCHANGES != 0
    }

    /// It comes back with vector memory: not in the order of LDS operations.
    fn is_loaded(self) -> bool {
        self.0 & Self::LOADED != 0
    }
}

/// What is known of a byte, or of all four of a dword.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Cell {
    written: Access,
    read: [Access; 2],
}

/// A dword of LDS.
#[derive(Clone, Default)]
struct Word {
    cell: Cell,
    value: [u8; 4],
    /// Of each byte, where they were not always accessed together.
    split: Option<Box<[Cell; 4]>>,
}

impl Word {
    /// What is known of a byte.
    fn cell(&self, byte: usize) -> &Cell {
        self.split.as_ref().map_or(&self.cell, |cells| &cells[byte])
    }

    /// The same, to be changed: of the first byte of four, or of one.
    fn cell_mut(&mut self, byte: usize, count: usize) -> &mut Cell {
        if count == 4 {
            return &mut self.cell;
        }
        &mut self.split.get_or_insert_with(|| Box::new([self.cell; 4]))[byte]
    }

    /// Bytes that now are known the same of are one again.
    fn unite(&mut self) {
        if let Some(cells) = &self.split
            && cells.iter().all(|cell| *cell == cells[0])
        {
            self.cell = cells[0];
            self.split = None;
        }
    }
}

/// An instruction that accesses LDS.
struct Site {
    pc: u64,
    address: u64,
    name: &'static str,
    /// It polls, once that was asked.
    polls: Option<bool>,
}

/// How a byte is accessed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Read,
    /// The value written.
    Write(u128),
    Atomic,
}

impl How {
    fn access(self) -> MemoryAccess {
        match self {
            How::Read => MemoryAccess::Load,
            How::Write(_) => MemoryAccess::Store,
            How::Atomic => MemoryAccess::Atomic,
        }
    }
}

/// The operation that accesses.
pub(super) struct Operation {
    pub wave: u32,
    pub id: u32,
    /// Where its code is, on the device and in its object.
    pub pc: u64,
    pub address: u64,
    pub name: &'static str,
    /// An atomic that gives back what was there.
    pub returns: bool,
    /// A load from memory into LDS.
    pub loads: bool,
}

/// The accesses of a workgroup.
#[derive(Default)]
pub(super) struct Races {
    words: Vec<Word>,
    /// How many bytes there are.
    size: usize,
    views: Vec<View>,
    sites: Vec<Site>,
    /// The instruction that came last.
    recent: Option<(u64, u16)>,
    site_of: FxHashMap<u64, u16>,
    /// What atomics at an address have released.
    released: FxHashMap<usize, View>,
    /// The same at an address in memory.
    in_memory: FxHashMap<u64, View>,
    /// Which wave has exchanged what is at an address.
    exchanged: FxHashSet<(usize, usize)>,
    /// Of a split barrier: its phase, what those that have signalled it released, and that of the phase before.
    phase: u64,
    arriving: Option<View>,
    arrived: Option<View>,
    /// What waves that have ended did.
    ended: Option<View>,
}

/// Whether a write of some bytes of a dword, before which `n` others are written, leaves them as they are.
fn is_same(word: &Word, byte: &Cell, (at, count): (usize, usize), how: How, n: usize) -> bool {
    let How::Write(value) = how else { return false };
    let new = ((value >> (8 * n)) as u32).to_le_bytes();
    byte.written.id() != 0 && !byte.written.is_atomic() && new[..count] == word.value[at..][..count]
}

/// Remembers an access of some bytes of a dword.
#[inline]
fn note(word: &mut Word, (at, count): (usize, usize), access: Access, how: How, n: usize, view: &View) {
    let same = is_same(word, word.cell(at), (at, count), how, n);
    if let How::Write(value) = how {
        word.value[at..][..count].copy_from_slice(&((value >> (8 * n)) as u32).to_le_bytes()[..count]);
    }
    let byte = word.cell_mut(at, count);
    match how {
        // A write that changes nothing leaves the one before it in charge, of which more may be known.
        How::Write(_) if same && byte.written.wave() != access.wave() => {}
        How::Write(_) | How::Atomic => byte.written = access,
        How::Read => {}
    }
    if matches!(how, How::Write(_)) {
        return;
    }
    let slot = place_of_read(&byte.read, access, view);
    byte.read[slot] = access;
}

/// Which of the reads that are remembered another takes the place of: of the same wave, or known to be over.
#[inline]
fn place_of_read(reads: &[Access; 2], access: Access, view: &View) -> usize {
    let own = reads.iter().position(|read| read.id() == 0 || read.wave() == access.wave());
    let old = || reads.iter().position(|read| read.id() < view.reads[read.wave()]);
    own.or_else(old).unwrap_or(1)
}

/// A race, before it is known whether it counts.
struct Conflict {
    earlier: Access,
    earlier_how: MemoryAccess,
}

impl Races {
    fn start(&mut self, size: usize) {
        self.size = size;
        self.words = vec![Word::default(); size.div_ceil(4)];
        self.views = vec![View::NONE; WAVES];
    }

    fn site(&mut self, operation: &Operation) -> u16 {
        if let Some((pc, site)) = self.recent
            && pc == operation.pc
        {
            return site;
        }
        let next = self.sites.len().min(usize::from(u16::MAX));
        let at = *self.site_of.entry(operation.pc).or_insert(next as u16);
        if usize::from(at) == self.sites.len() {
            self.sites.push(Site { pc: operation.pc, address: operation.address, name: operation.name, polls: None });
        }
        self.recent = Some((operation.pc, at));
        at
    }

    /// Whether clocks are kept: not before the first access.
    fn is_on(&self) -> bool {
        !self.words.is_empty()
    }

    /// What wave `wave` releases: everything before its operation `next`, its writes before `writes`.
    fn release(&self, wave: usize, next: u32, writes: u32) -> View {
        let mut view = self.views[wave];
        view.reads[wave] = next;
        view.writes[wave] = writes;
        view
    }

    /// All waves have come to the barrier: for each its number, its next operation and the oldest write that it has not waited for.
    pub(super) fn barrier(&mut self, waves: impl Iterator<Item = (u32, u32, u32)>) {
        if !self.is_on() {
            return;
        }
        let mut all = View::NONE;
        for (wave, next, writes) in waves {
            if (wave as usize) < self.views.len() {
                all.join(&self.release(wave as usize, next, writes));
            }
        }
        self.views.iter_mut().for_each(|view| view.join(&all));
    }

    /// A wave signals the split barrier, which is in a phase.
    pub(super) fn signal(&mut self, phase: u64, (wave, next, writes): (u32, u32, u32)) {
        if self.phase != phase {
            self.arrived = self.arriving.take();
            self.phase = phase;
        }
        if self.is_on() && (wave as usize) < self.views.len() {
            let released = self.release(wave as usize, next, writes);
            self.arriving.get_or_insert(View::NONE).join(&released);
        }
    }

    /// A wave stores to one address in memory: its number, its next operation and the oldest write that it has not waited for.
    pub(super) fn release_to_memory(&mut self, (wave, next, writes): (u32, u32, u32), address: u64) {
        if !self.is_on() || wave as usize >= self.views.len() {
            return;
        }
        if self.in_memory.len() >= MOST_FLAGS {
            self.in_memory.clear();
        }
        let released = self.release(wave as usize, next, writes);
        self.in_memory.entry(address).or_insert(View::NONE).join(&released);
    }

    /// A wave loads from one address in memory.
    pub(super) fn acquire_from_memory(&mut self, wave: u32, address: u64) {
        if let (Some(released), Some(view)) = (self.in_memory.get(&address), self.views.get_mut(wave as usize)) {
            view.join(released);
        }
    }

    /// A wave has ended: every barrier is one that it has come to.
    pub(super) fn end(&mut self, wave: u32, next: u32) {
        if self.is_on() && (wave as usize) < self.views.len() {
            let released = self.release(wave as usize, next, next);
            self.ended.get_or_insert(View::NONE).join(&released);
        }
    }

    /// A wave has been let through the split barrier that it signalled in a phase.
    pub(super) fn pass(&mut self, signalled: u64, wave: u32) {
        let released = if self.phase == signalled { self.arriving } else { self.arrived };
        for released in [released, self.ended].iter().flatten() {
            if let Some(view) = self.views.get_mut(wave as usize) {
                view.join(released);
            }
        }
    }

    /// Notes an access of a lane and says with which it races. `in_flight` says whether a wave's own operation may still be; `polls` whether the
    /// instruction at an address is in a loop that waits for a flag.
    pub(super) fn access(
        &mut self,
        operation: &Operation,
        size: usize,
        (at, length, how): (usize, usize, How),
        in_flight: &dyn Fn(u32) -> bool,
        polls: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), FaultKind> {
        if !self.is_on() {
            self.start(size);
        }
        let wave = operation.wave as usize;
        if wave >= self.views.len() || at + length > self.size {
            return Ok(());
        }
        let site = self.site(operation);
        if how != How::Atomic {
            let word = |n: usize| if let How::Write(value) = how { How::Write(value >> (32 * n)) } else { how };
            if self.plain(Access::new(operation, site, false, false), (at, length), word, &mut row::Seen::default()) {
                return Ok(());
            }
        }
        if how == How::Atomic && operation.returns {
            self.exchanged.insert((wave, at));
        }
        // What this wave has exchanged, it now lets go.
        let lets_go = matches!(how, How::Write(_)) && self.exchanged.contains(&(wave, at));
        let atomic = lets_go || how == How::Atomic;
        let exchanges = lets_go || (how == How::Atomic && operation.returns);
        let access = Access::new(operation, site, atomic, exchanges);
        let acquires = match how {
            How::Read => self.words[at / 4].cell(at % 4).written.exchanges(),
            How::Write(_) => false,
            How::Atomic => operation.returns,
        };
        if acquires && let Some(released) = self.released.get(&at) {
            let released = *released;
            self.views[wave].join(&released);
        }
        let (mut n, mut result) = (0, Ok(()));
        while n < length {
            // Four bytes at once where the same is known of all.
            let aligned = (at + n).is_multiple_of(4) && length - n >= 4;
            let whole = aligned && self.words[(at + n) / 4].split.is_none();
            let bytes = (at + n, if whole { 4 } else { 1 });
            if let Some(conflict) = self.conflict(bytes, access, how, n, in_flight) {
                if !self.is_flag(&conflict, access, how, polls) {
                    result = result.and(Err(self.fault(&conflict, at + n, operation, how)));
                } else if how == How::Read {
                    self.acquire(wave, conflict.earlier);
                }
            }
            note(&mut self.words[bytes.0 / 4], (bytes.0 % 4, bytes.1), access, how, n, &self.views[wave]);
            n += bytes.1;
            if !whole && (at + n).is_multiple_of(4) {
                self.words[(at + n) / 4 - 1].unite();
            }
        }
        if access.is_atomic() {
            let next = operation.id + 1;
            let released = self.release(wave, next, next);
            self.released.entry(at).or_insert(View::NONE).join(&released);
        }
        result
    }

    /// The earlier access that one to some bytes races with; `n` is how many of its bytes come before them.
    #[inline]
    fn conflict(&self, (at, count): (usize, usize), now: Access, how: How, n: usize, in_flight: &dyn Fn(u32) -> bool) -> Option<Conflict> {
        let view = &self.views[now.wave()];
        let word = &self.words[at / 4];
        let byte = word.cell(at % 4);
        let written = byte.written;
        if is_same(word, byte, (at % 4, count), how, n) {
            return None;
        }
        if written.id() != 0 && !(written.is_atomic() && now.is_atomic()) && !(written.exchanges() && how == How::Read) {
            let unordered = if written.wave() == now.wave() {
                written.is_loaded() && written.id() != now.id() && in_flight(written.id())
            } else {
                written.id() >= view.writes[written.wave()]
            };
            if unordered {
                let earlier_how = if written.is_atomic() { MemoryAccess::Atomic } else { MemoryAccess::Store };
                return Some(Conflict { earlier: written, earlier_how });
            }
        }
        if how == How::Read {
            return None;
        }
        let races = |read: &&Access| {
            read.id() != 0
                && read.wave() != now.wave()
                && !(read.is_atomic() && now.is_atomic())
                && !now.exchanges()
                && read.id() >= view.reads[read.wave()]
        };
        let read = byte.read.iter().find(races)?;
        Some(Conflict { earlier: *read, earlier_how: if read.is_atomic() { MemoryAccess::Atomic } else { MemoryAccess::Load } })
    }

    /// Whether the read of the two is one that waits for the write.
    fn is_flag(&mut self, conflict: &Conflict, now: Access, how: How, polls: &mut dyn FnMut(u64) -> bool) -> bool {
        let read = match (how, conflict.earlier_how) {
            (How::Read, _) => now.site(),
            (_, MemoryAccess::Load) => conflict.earlier.site(),
            _ => return false,
        };
        let site = &mut self.sites[read];
        let pc = site.pc;
        *site.polls.get_or_insert_with(|| polls(pc))
    }

    /// A wave has seen the flag that another wrote: it is ordered behind that write and what was before it.
    fn acquire(&mut self, wave: usize, written: Access) {
        let other = written.wave();
        if other != wave {
            let released = self.release(other, written.id() + 1, written.id() + 1);
            self.views[wave].join(&released);
        }
    }

    fn fault(&self, conflict: &Conflict, at: usize, operation: &Operation, how: How) -> FaultKind {
        let Conflict { earlier, earlier_how } = conflict;
        let site = &self.sites[earlier.site()];
        FaultKind::LdsRace {
            offset: at as u32,
            access: how.access(),
            other: LdsAccess {
                access: *earlier_how,
                instruction: site.name,
                address: site.address,
                wave: earlier.wave() as u32,
                in_flight: earlier.wave() as u32 == operation.wave,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(wave: u32, id: u32) -> Operation {
        Operation { wave, id, pc: u64::from(id), address: u64::from(id), name: "ds_test", returns: true, loads: false }
    }

    fn go(races: &mut Races, wave: u32, id: u32, how: How) -> bool {
        races.access(&operation(wave, id), 64, (8, 4, how), &|_| false, &mut |_| false).is_ok()
    }

    #[test]
    fn a_barrier_orders_what_was_waited_for() {
        let mut races = Races::default();
        assert!(go(&mut races, 0, 1, How::Write(7)));
        races.barrier([(0, 2, 2), (1, 1, 1), (2, 1, 1)].into_iter());
        assert!(go(&mut races, 1, 1, How::Read));
        assert!(!go(&mut races, 0, 2, How::Write(8)), "the read is not ordered before");
        let mut races = Races::default();
        assert!(go(&mut races, 0, 1, How::Write(7)));
        // The write was in flight at the barrier.
        races.barrier([(0, 2, 1), (1, 1, 1), (2, 1, 1)].into_iter());
        assert!(!go(&mut races, 1, 1, How::Read));
    }

    #[test]
    fn the_same_value_is_no_race_and_another_is() {
        let mut races = Races::default();
        assert!(go(&mut races, 0, 1, How::Write(7)));
        assert!(go(&mut races, 1, 1, How::Write(7)));
        assert!(!go(&mut races, 2, 1, How::Write(9)));
    }

    #[test]
    fn atomics_order_and_plain_reads_of_them_do_not() {
        let mut races = Races::default();
        races.access(&operation(0, 1), 64, (16, 4, How::Write(1)), &|_| false, &mut |_| false).unwrap();
        assert!(go(&mut races, 0, 2, How::Atomic));
        assert!(go(&mut races, 1, 1, How::Atomic));
        assert!(races.access(&operation(1, 2), 64, (16, 4, How::Read), &|_| false, &mut |_| false).is_ok());
        assert!(races.access(&operation(2, 1), 64, (16, 4, How::Read), &|_| false, &mut |_| false).is_err());
        let count = Operation { returns: false, ..operation(0, 3) };
        races.access(&count, 64, (32, 4, How::Atomic), &|_| false, &mut |_| false).unwrap();
        assert!(races.access(&operation(1, 3), 64, (32, 4, How::Read), &|_| false, &mut |_| false).is_err(), "a histogram");
    }

    #[test]
    fn a_lock_is_let_go_by_a_plain_write() {
        let mut races = Races::default();
        assert!(go(&mut races, 0, 1, How::Atomic));
        assert!(go(&mut races, 1, 1, How::Atomic), "refused");
        assert!(go(&mut races, 2, 1, How::Atomic), "refused");
        let data = |races: &mut Races, wave, id| {
            races.access(&operation(wave, id), 64, (16, 4, How::Write(u128::from(100 * wave + id))), &|_| false, &mut |_| false)
        };
        assert!(data(&mut races, 0, 2).is_ok());
        assert!(go(&mut races, 0, 3, How::Write(0)));
        assert!(go(&mut races, 1, 2, How::Atomic));
        assert!(data(&mut races, 1, 3).is_ok());
        assert!(data(&mut races, 2, 3).is_err(), "without the lock");
    }

    #[test]
    fn a_polled_flag_orders() {
        let mut races = Races::default();
        races.access(&operation(0, 1), 64, (16, 4, How::Write(1)), &|_| false, &mut |_| false).unwrap();
        assert!(go(&mut races, 0, 2, How::Write(1)));
        assert!(races.access(&operation(1, 1), 64, (8, 4, How::Read), &|_| false, &mut |_| true).is_ok());
        assert!(races.access(&operation(1, 2), 64, (16, 4, How::Read), &|_| false, &mut |_| false).is_ok());
    }

    #[test]
    fn a_load_into_lds_races_with_its_own_wave_until_it_is_waited_for() {
        let mut races = Races::default();
        let load = Operation { loads: true, ..operation(0, 1) };
        races.access(&load, 64, (8, 4, How::Write(1)), &|_| true, &mut |_| false).unwrap();
        assert!(races.access(&operation(0, 2), 64, (8, 4, How::Read), &|_| true, &mut |_| false).is_err());
        assert!(races.access(&operation(0, 3), 64, (8, 4, How::Read), &|_| false, &mut |_| false).is_ok());
    }
}
