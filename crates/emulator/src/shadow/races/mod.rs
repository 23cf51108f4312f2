//! Races in LDS: accesses of different waves of a workgroup to the same bytes that nothing orders.
//!
//! Happens-before as ThreadSanitizer has it, with waves for threads. An access is known by its wave and the id that
//! [`crate::shadow::in_flight::InFlight`] gave its operation, which only grows; a wave's clock has for every other wave
//! the first id that it is *not* ordered after. A barrier joins the clocks of all waves; a write that its wave has not
//! waited for when it comes to the barrier is not ordered by it. Copies between memory and LDS have clocks of their
//! own: they complete in their order, with another counter than what LDS instructions do, so that one in flight says
//! nothing of those. LDS atomics release, and those that return a value also acquire, through their address. So do
//! plain accesses that stand for atomic ones, which compilers make of `__hip_atomic_load` and `__hip_atomic_store`: a
//! read that a loop without writes repeats at an address that the loop does not change (a flag that is polled), and a
//! write to what the same wave has exchanged before (a lock that is released). A read is also taken for an atomic one
//! where the other access is an atomic that returns a value: loops of compare-and-swap begin so.
//!
//! No race is: two lanes of one instruction; a write of the value that is there; two atomics.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::fault::{FaultKind, LdsAccess, MemoryAccess, MissingOrder};

pub(crate) mod access;
pub(crate) mod lds_row;
mod row;
#[cfg(test)]
mod tests;

/// Most waves of a workgroup: 1024 work-items in wave32.
const WAVES: usize = 32;

/// Most addresses in memory of which it is remembered what was released there.
const MOST_FLAGS: usize = 1 << 12;

/// For each wave, the first operation that is not known to be over.
type Clock = [u32; WAVES];

/// By whose accesses they are: those of LDS instructions, and those of copies between memory and LDS.
type Clocks = [Clock; 2];

/// What a wave is ordered after, of the others.
#[derive(Clone, Copy)]
struct View {
    /// By wave, the first id of an operation whose writes are not ordered before.
    writes: Clocks,
    /// By wave, the first id of an operation whose reads are not ordered before.
    reads: Clocks,
}

impl View {
    const NONE: View = View { writes: [[0; WAVES]; 2], reads: [[0; WAVES]; 2] };

    fn join(&mut self, other: &View) {
        let mine = self.writes.iter_mut().chain(&mut self.reads).flatten();
        mine.zip(other.writes.iter().chain(&other.reads).flatten()).for_each(|(mine, its)| *mine = (*mine).max(*its));
    }
}

/// What a wave has done so far.
#[derive(Clone, Copy)]
pub(crate) struct WaveProgress {
    pub wave: u32,
    /// The first operations that write and that read LDS and may still be in flight, by [`Clocks`].
    pub writes: [u32; 2],
    pub reads: [u32; 2],
}

/// An access that is remembered, in one word: a row of lanes compares many of them. No operation has the id 0.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct CellAccess(u64);

impl CellAccess {
    const ATOMIC: u64 = 1 << 56;
    const EXCHANGES: u64 = 1 << 57;
    const COPIED: u64 = 1 << 58;

    fn new(operation: &LdsOperation, site: u16, atomic: bool, exchanges: bool) -> CellAccess {
        let flag = |set: bool, bit: u64| if set { bit } else { 0 };
        let flags =
            flag(atomic, Self::ATOMIC) | flag(exchanges, Self::EXCHANGES) | flag(operation.copies, Self::COPIED);
        CellAccess(u64::from(operation.id) | u64::from(site) << 32 | u64::from(operation.wave as u8) << 48 | flags)
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

    /// An atomic that plain reads may be meant for: one that returns a value, or releases a lock.
    fn exchanges(self) -> bool {
        self.0 & Self::EXCHANGES != 0
    }

    /// It completes with vector memory, not in the order of LDS operations.
    fn is_copied(self) -> bool {
        self.0 & Self::COPIED != 0
    }

    /// Whether clocks say that it is over.
    fn is_before(self, clocks: &Clocks) -> bool {
        self.id() < clocks[usize::from(self.is_copied())][self.wave()]
    }
}

/// What is known of a byte, or of all four of a dword.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Cell {
    written: CellAccess,
    read: [CellAccess; 2],
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
    /// The last accesses of a byte.
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
    /// Whether it polls, once that was found out.
    polls: Option<bool>,
}

/// How a byte is accessed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
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
pub(crate) struct LdsOperation {
    pub wave: u32,
    pub id: u32,
    /// Where its code is, on the device and in its object.
    pub pc: u64,
    pub address: u64,
    pub name: &'static str,
    /// An atomic that returns the old value.
    pub returns: bool,
    /// It copies between memory and LDS.
    pub copies: bool,
    /// The first copies of its wave that write and that read LDS and may still be in flight.
    pub copied: [u32; 2],
}

/// The accesses of a workgroup.
#[derive(Default)]
pub(crate) struct Races {
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
fn note(word: &mut Word, (at, count): (usize, usize), access: CellAccess, how: How, n: usize, view: &View) {
    let same = is_same(word, word.cell(at), (at, count), how, n);
    if let How::Write(value) = how {
        word.value[at..][..count].copy_from_slice(&((value >> (8 * n)) as u32).to_le_bytes()[..count]);
    }
    let byte = word.cell_mut(at, count);
    match how {
        // A write that changes nothing leaves the one before it, of which more may be known.
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
fn place_of_read(reads: &[CellAccess; 2], access: CellAccess, view: &View) -> usize {
    let is_own = |read: &CellAccess| read.wave() == access.wave() && read.is_copied() == access.is_copied();
    let own = reads.iter().position(|read| read.id() == 0 || is_own(read));
    let old = || reads.iter().position(|read| read.is_before(&view.reads));
    own.or_else(old).unwrap_or(1)
}

/// A race, before it is known whether it counts.
struct Conflict {
    earlier: CellAccess,
    earlier_how: MemoryAccess,
}

impl Races {
    fn start(&mut self, size: usize) {
        self.size = size;
        self.words = vec![Word::default(); size.div_ceil(4)];
        self.views = vec![View::NONE; WAVES];
    }

    fn site(&mut self, operation: &LdsOperation) -> u16 {
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

    /// What a wave releases: what it has done.
    fn release(&self, done: WaveProgress) -> View {
        let wave = done.wave as usize;
        let mut view = self.views[wave];
        for copies in 0..2 {
            view.reads[copies][wave] = done.reads[copies];
            view.writes[copies][wave] = done.writes[copies];
        }
        view
    }

    /// All waves have come to the barrier.
    pub(crate) fn barrier(&mut self, waves: impl Iterator<Item = WaveProgress>) {
        if !self.is_on() {
            return;
        }
        let mut all = View::NONE;
        for done in waves {
            if (done.wave as usize) < self.views.len() {
                all.join(&self.release(done));
            }
        }
        self.views.iter_mut().for_each(|view| view.join(&all));
    }

    /// A wave signals the split barrier, which is in a phase.
    pub(crate) fn signal(&mut self, phase: u64, done: WaveProgress) {
        if self.phase != phase {
            self.arrived = self.arriving.take();
            self.phase = phase;
        }
        if self.is_on() && (done.wave as usize) < self.views.len() {
            let released = self.release(done);
            self.arriving.get_or_insert(View::NONE).join(&released);
        }
    }

    /// A wave stores to one address in memory.
    pub(crate) fn release_to_memory(&mut self, done: WaveProgress, address: u64) {
        if !self.is_on() || done.wave as usize >= self.views.len() {
            return;
        }
        if self.in_memory.len() >= MOST_FLAGS {
            self.in_memory.clear();
        }
        let released = self.release(done);
        self.in_memory.entry(address).or_insert(View::NONE).join(&released);
    }

    /// A wave loads from one address in memory.
    pub(crate) fn acquire_from_memory(&mut self, wave: u32, address: u64) {
        if let (Some(released), Some(view)) = (self.in_memory.get(&address), self.views.get_mut(wave as usize)) {
            view.join(released);
        }
    }

    /// A wave has ended: every barrier is one that it has come to.
    pub(crate) fn end(&mut self, wave: u32, next: u32) {
        if self.is_on() && (wave as usize) < self.views.len() {
            let released = self.release(WaveProgress { wave, writes: [next; 2], reads: [next; 2] });
            self.ended.get_or_insert(View::NONE).join(&released);
        }
    }

    /// A wave has been let through the split barrier that it signalled in a phase.
    pub(crate) fn pass(&mut self, signalled: u64, wave: u32) {
        let released = if self.phase == signalled { self.arriving } else { self.arrived };
        for released in [released, self.ended].iter().flatten() {
            if let Some(view) = self.views.get_mut(wave as usize) {
                view.join(released);
            }
        }
    }

    /// Notes an access of a lane and says with which it races. `in_flight` says whether a wave's own operation may
    /// still be; `polls` whether the instruction at an address is in a loop that waits for a flag.
    pub(crate) fn access(
        &mut self,
        operation: &LdsOperation,
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
            if self.dword_fast(
                CellAccess::new(operation, site, false, false),
                (at, length),
                word,
                &mut row::Seen::default(),
            ) {
                return Ok(());
            }
        }
        if how == How::Atomic && operation.returns {
            self.exchanged.insert((wave, at));
        }
        // What this wave has exchanged, it now releases.
        let lets_go = matches!(how, How::Write(_)) && self.exchanged.contains(&(wave, at));
        let atomic = lets_go || how == How::Atomic;
        let exchanges = lets_go || (how == How::Atomic && operation.returns);
        let access = CellAccess::new(operation, site, atomic, exchanges);
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
            let [written, read] = operation.copied;
            let done = WaveProgress { wave: operation.wave, writes: [next, written], reads: [next, read] };
            let released = self.release(done);
            self.released.entry(at).or_insert(View::NONE).join(&released);
        }
        result
    }

    /// The earlier access that one to some bytes races with; `n` is how many of its bytes come before them.
    #[inline]
    fn conflict(
        &self,
        (at, count): (usize, usize),
        now: CellAccess,
        how: How,
        n: usize,
        in_flight: &dyn Fn(u32) -> bool,
    ) -> Option<Conflict> {
        let view = &self.views[now.wave()];
        let word = &self.words[at / 4];
        let byte = word.cell(at % 4);
        let written = byte.written;
        if is_same(word, byte, (at % 4, count), how, n) {
            return None;
        }
        if written.id() != 0 && !(written.is_atomic() && now.is_atomic()) && !(written.exchanges() && how == How::Read)
        {
            let unordered = if written.wave() == now.wave() {
                written.is_copied() && written.id() != now.id() && in_flight(written.id())
            } else {
                !written.is_before(&view.writes)
            };
            if unordered {
                let earlier_how = if written.is_atomic() { MemoryAccess::Atomic } else { MemoryAccess::Store };
                return Some(Conflict { earlier: written, earlier_how });
            }
        }
        if how == How::Read {
            return None;
        }
        let races = |read: &&CellAccess| {
            let unordered = || match read.wave() == now.wave() {
                true => read.is_copied() && read.id() != now.id() && in_flight(read.id()),
                false => !read.is_before(&view.reads) && !now.exchanges(),
            };
            read.id() != 0 && !(read.is_atomic() && now.is_atomic()) && unordered()
        };
        let read = byte.read.iter().find(races)?;
        Some(Conflict {
            earlier: *read,
            earlier_how: if read.is_atomic() { MemoryAccess::Atomic } else { MemoryAccess::Load },
        })
    }

    /// Whether the read of the two is one that waits for the write.
    fn is_flag(&mut self, conflict: &Conflict, now: CellAccess, how: How, polls: &mut dyn FnMut(u64) -> bool) -> bool {
        let read = match (how, conflict.earlier_how) {
            (How::Read, _) => now.site(),
            (_, MemoryAccess::Load) => conflict.earlier.site(),
            _ => return false,
        };
        let site = &mut self.sites[read];
        let pc = site.pc;
        *site.polls.get_or_insert_with(|| polls(pc))
    }

    /// A wave has seen the flag that another wrote: it is ordered after that write and what was before it.
    fn acquire(&mut self, wave: usize, written: CellAccess) {
        let other = written.wave();
        if other != wave {
            let next = written.id() + 1;
            let released = self.release(WaveProgress { wave: other as u32, writes: [next; 2], reads: [next; 2] });
            self.views[wave].join(&released);
        }
    }

    fn fault(&self, conflict: &Conflict, at: usize, operation: &LdsOperation, how: How) -> FaultKind {
        let Conflict { earlier, earlier_how } = conflict;
        let site = &self.sites[earlier.site()];
        // A barrier orders all reads that were issued before it: one lies between the two if it would order a read.
        let met = earlier.id() < self.views[operation.wave as usize].reads[0][earlier.wave()];
        let missing = match earlier.wave() as u32 == operation.wave {
            true => MissingOrder::OwnWait,
            false if met => MissingOrder::Wait,
            false => MissingOrder::Barrier,
        };
        FaultKind::LdsRace {
            offset: at as u32,
            access: how.access(),
            other: LdsAccess {
                access: *earlier_how,
                instruction: site.name,
                address: site.address,
                wave: earlier.wave() as u32,
                missing,
            },
        }
    }
}
