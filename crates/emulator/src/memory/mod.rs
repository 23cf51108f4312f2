//! Device memory: allocations with gaps between them, and host memory that is mapped in.
//!
//! Workgroups may run on several threads and share it, as they do on a GPU: [`View`] reads and writes through a shared
//! reference. Aligned accesses of 4 and 8 bytes are indivisible; stores release and loads acquire, so that what a wave
//! stores before a flag is there for who has seen the flag.

pub(crate) mod host_pages;
pub(crate) mod lanes;
pub(crate) mod loader;
mod reserved;
mod undefined;

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};

use vm_memory::{MmapRegion, VolatileArrayRef, VolatileMemory, VolatileSlice};

use wavetap_base::bytes::align_up;
use wavetap_base::error::{Error, Result, ResultExt};

use crate::address::allocation::{Allocation, AllocationKind, ForeignMemory};
use crate::address::{CodeAddress, ObjectId};
use crate::fault::overrun::{Beyond, Overrun};
use crate::fault::{FaultKind, MemoryAccess};
use crate::lanes::{LANES, Register, elements};
use undefined::UndefinedBytes;

/// First device address: no host pointer of a 47-bit address space is near, and the flat apertures lie above.
const FIRST_ADDRESS: u64 = 0x2000_0000_0000;
/// No device address is at or above this one.
const LAST_ADDRESS: u64 = 0x7000_0000_0000;
/// Unmapped bytes between allocations: an index that runs past the end hits nothing.
const GUARD: u64 = 0x1_0000;
/// The least alignment of an allocation, as `hipMalloc` gives it.
const MIN_ALIGN: u64 = 256;
/// Outside strict mode an allocation of the program's ends with its page of this size, as those of GPUs do.
const PAGE: u64 = 4096;
/// Most bytes all owned allocations may have together.
const MAX_TOTAL: u64 = 16 << 30;

/// Allocations up to this many bytes share mappings of the host.
const SMALL: u64 = 1 << 16;
/// Most dwords that a lane loads or stores.
const MOST_DWORDS: usize = 4;
/// Bytes of a shared mapping.
const SHARED: usize = 4 << 20;

enum Storage {
    /// From an offset on.
    Owned(Arc<MmapRegion>, usize),
    Foreign(Mutex<Box<dyn ForeignMemory>>),
}

struct Block {
    allocation: Allocation,
    storage: Storage,
    /// What nothing has written, if that is followed.
    undefined: Option<UndefinedBytes>,
}

/// All memory of a device.
pub(crate) struct Memory {
    /// Sorted by address, disjoint.
    blocks: Vec<Block>,
    next: u64,
    total: u64,
    /// Address ranges of code, which kernels must not write.
    code: Vec<(u64, u64)>,
    /// The mapping that small allocations come from now, and how much of it is used.
    shared: Option<(Arc<MmapRegion>, usize)>,
    /// Held during atomics that the host has no instruction for.
    odd_atomics: Mutex<()>,
    /// The emulator's own allocations that are not used now, with their sizes: dispatches take the same ones again and
    /// again.
    kept: Vec<(u64, u64)>,
    /// Ranges of addresses that a program has reserved.
    reserved: Vec<reserved::Reservation>,
    /// Whether some allocation has undefined bytes, or had.
    follows_undefined: bool,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Memory {
            blocks: Vec::new(),
            next: FIRST_ADDRESS,
            total: 0,
            code: Vec::new(),
            shared: None,
            odd_atomics: Mutex::new(()),
            kept: Vec::new(),
            reserved: Vec::new(),
            follows_undefined: false,
        }
    }

    /// For reading and writing.
    pub(crate) fn view(&self) -> View<'_> {
        View {
            memory: self,
            recent: Cell::new([0; 4]),
            to_page: false,
            overruns: Cell::new(false),
            overrun: Cell::new(None),
        }
    }

    /// For kernels, which may go on to the end of an allocation's last page unless the bounds are exact.
    pub(crate) fn view_of_kernels(&self, exact: bool) -> View<'_> {
        View { to_page: !exact, ..self.view() }
    }

    /// A small allocation of the emulator's own, which may have been one before.
    pub(crate) fn small_runtime(&mut self, size: u64) -> Result<u64> {
        match self.kept.iter().position(|kept| kept.1 == size) {
            Some(at) => {
                self.total += size;
                Ok(self.kept.swap_remove(at).0)
            }
            None => self.malloc(size, 4096, AllocationKind::Runtime),
        }
    }

    /// Keeps what [`Memory::small_runtime`] gave for the next one.
    pub(crate) fn keep_runtime(&mut self, address: u64, size: u64) {
        self.total -= size;
        self.kept.push((address, size));
    }

    pub(crate) fn malloc(&mut self, size: u64, align: u64, kind: AllocationKind) -> Result<u64> {
        if align > 1 << 30 || !align.max(1).is_power_of_two() {
            return Err(Error::unsupported(format!(
                "allocation alignment {align}: a power of two up to 2^30 expected"
            )));
        }
        let size = size.max(1);
        if size > MAX_TOTAL || self.total + size > MAX_TOTAL {
            return Err(Error::limit(format!(
                "device memory: {size} bytes wanted, {} of {MAX_TOTAL} in use",
                self.total
            )));
        }
        let room = if kind == AllocationKind::Device { align_up(size, PAGE) } else { size };
        let address = align_up(self.next, align.max(MIN_ALIGN));
        if address + size + GUARD > LAST_ADDRESS {
            return Err(Error::limit("device memory: the address range is used up"));
        }
        self.add(address, (size, room), kind)?;
        Ok(address)
    }

    /// Allocates zeroed memory at an address that nothing else is at.
    pub(crate) fn malloc_at(&mut self, address: u64, size: u64, kind: AllocationKind) -> Result<()> {
        if size > MAX_TOTAL || self.total + size > MAX_TOTAL {
            return Err(Error::limit(format!(
                "device memory: {size} bytes wanted, {} of {MAX_TOTAL} in use",
                self.total
            )));
        }
        let end = self.free_range(address, size)?;
        let room = if kind == AllocationKind::Device { align_up(size, PAGE) } else { size };
        let next = self.next;
        self.add(address, (size, room), kind)?;
        // What lies in the range from which addresses are given is not given again.
        let given = FIRST_ADDRESS..LAST_ADDRESS;
        self.next = if given.contains(&address) { next.max(align_up(end + GUARD, MIN_ALIGN)) } else { next };
        Ok(())
    }

    /// Adds an allocation after which the next one comes; `room` are the bytes of it that the host has.
    fn add(&mut self, address: u64, (size, room): (u64, u64), kind: AllocationKind) -> Result<()> {
        let storage = self.storage(room)?;
        self.next = align_up(address + size + GUARD, MIN_ALIGN);
        self.total += size;
        self.insert(Block { allocation: Allocation { address, size, kind }, storage, undefined: None });
        Ok(())
    }

    /// The end of a range that nothing is in.
    fn free_range(&self, address: u64, size: u64) -> Result<u64> {
        let end = address
            .checked_add(size)
            .filter(|_| size > 0)
            .ok_or_else(|| Error::unsupported(format!("an empty or wrapping range of memory at {address:#x}")))?;
        let overlaps = |other: &Allocation| other.address < end && address < other.address + other.size;
        let used = self.allocations().find(overlaps).map(|other| other.address..other.address + other.size);
        match used.or_else(|| self.reserved_in(&(address..end))) {
            None => Ok(end),
            Some(other) => Err(Error::unsupported(format!(
                "memory {address:#x}..{end:#x} overlaps {:#x}..{:#x}, which is in use",
                other.start, other.end
            ))),
        }
    }

    /// Zeroed memory of the host.
    fn storage(&mut self, size: u64) -> Result<Storage> {
        let map = |size: usize| {
            MmapRegion::new(size)
                .map(Arc::new)
                .map_err(|error| Error::limit(format!("device memory: the host gives none: {error}")))
        };
        let length =
            usize::try_from(size).map_err(|_| Error::limit("device memory: allocation too large for this machine"))?;
        if size > SMALL {
            return Ok(Storage::Owned(map(length)?, 0));
        }
        let room = length.next_multiple_of(MIN_ALIGN as usize);
        let (region, used) = match self.shared.take() {
            Some((region, used)) if used + room <= SHARED => (region, used),
            _ => (map(SHARED)?, 0),
        };
        self.shared = Some((Arc::clone(&region), used + room));
        Ok(Storage::Owned(region, used))
    }

    pub(crate) fn register(&mut self, memory: Box<dyn ForeignMemory>, address: u64, size: u64) -> Result<()> {
        self.insert_foreign(Storage::Foreign(Mutex::new(memory)), address, size)
    }

    /// Adds host memory at an address that nothing else is at.
    fn insert_foreign(&mut self, storage: Storage, address: u64, size: u64) -> Result<()> {
        self.free_range(address, size).within(|| "host memory".to_owned())?;
        let allocation = Allocation { address, size, kind: AllocationKind::Foreign };
        self.insert(Block { allocation, storage, undefined: None });
        Ok(())
    }

    fn insert(&mut self, block: Block) {
        let at = self.blocks.partition_point(|b| b.allocation.address < block.allocation.address);
        self.blocks.insert(at, block);
    }

    /// Removes the block that starts at `address`.
    pub(crate) fn remove(&mut self, address: u64) -> Result<Allocation> {
        match self.blocks.binary_search_by_key(&address, |b| b.allocation.address) {
            Ok(at) => {
                let block = self.blocks.remove(at);
                let range = block.allocation.address..block.allocation.address + block.allocation.size;
                self.code.retain(|(start, _)| !range.contains(start));
                if block.allocation.kind != AllocationKind::Foreign {
                    self.total -= block.allocation.size;
                }
                Ok(block.allocation)
            }
            Err(_) => Err(Error::unsupported(format!("no allocation starts at {address:#x}"))),
        }
    }

    pub(crate) fn allocations(&self) -> impl Iterator<Item = Allocation> + '_ {
        self.blocks.iter().map(|block| block.allocation)
    }

    pub(crate) fn allocation_of(&self, address: u64) -> Option<Allocation> {
        self.view().find(address, 1).map(|block| block.allocation)
    }

    pub(crate) fn in_use(&self) -> u64 {
        self.total
    }

    /// Marks a range as code.
    pub(crate) fn protect(&mut self, start: u64, end: u64) {
        self.code.push((start, end));
    }
}

/// Access to the memory; cheap, one for each thread.
pub(crate) struct View<'m> {
    memory: &'m Memory,
    /// Blocks that accesses hit last: neighbouring lanes mostly hit the same one, and loops a few of them.
    recent: Cell<[usize; 4]>,
    /// Allocations end with their page.
    to_page: bool,
    /// Whether there is an overrun; by itself because it is read after each instruction.
    overruns: Cell<bool>,
    /// The first access past the end of an allocation or of LDS since that was last taken, without its instruction.
    overrun: Cell<Option<Overrun>>,
}

impl<'m> View<'m> {
    fn find(&self, address: u64, size: u64) -> Option<&'m Block> {
        let blocks = &self.memory.blocks;
        let within = |b: &Block| {
            let Allocation { address: start, size: length, .. } = b.allocation;
            size <= length && address >= start && address - start <= length - size
        };
        let recent = self.recent.get();
        for at in recent {
            if let Some(block) = blocks.get(at)
                && within(block)
            {
                return Some(block);
            }
        }
        let at = blocks.partition_point(|b| b.allocation.address <= address).checked_sub(1)?;
        let [first, second, third, _] = recent;
        self.recent.set([at, first, second, third]);
        Some(&blocks[at]).filter(|block| within(block))
    }

    /// Whether there was an access past the end of something.
    #[inline]
    pub(crate) fn has_overrun(&self) -> bool {
        self.overruns.get()
    }

    /// The first of them, without its instruction.
    pub(crate) fn take_overrun(&self) -> Option<Overrun> {
        self.overruns.set(false);
        self.overrun.take()
    }

    /// The allocation of the program's in whose last page an access is that goes past its end.
    #[cold]
    fn in_last_page(&self, address: u64, size: usize, access: MemoryAccess) -> Option<&'m Block> {
        let blocks = &self.memory.blocks;
        let block = &blocks[blocks.partition_point(|b| b.allocation.address <= address).checked_sub(1)?];
        let allocation = block.allocation;
        let inside = address.checked_add(size as u64)? <= allocation.address + align_up(allocation.size, PAGE);
        if !self.to_page || allocation.kind != AllocationKind::Device || !inside {
            return None;
        }
        self.note_overrun(address, size, Beyond::Allocation { access, allocation });
        Some(block)
    }

    /// Notes an access past the end of something, if there was none since the last one was taken.
    #[cold]
    pub(crate) fn note_overrun(&self, address: u64, size: usize, beyond: Beyond) {
        if !self.overruns.replace(true) {
            let place = CodeAddress { object: ObjectId(0), address: 0 };
            self.overrun.set(Some(Overrun { place, instruction: "".into(), address, size: size as u32, beyond }));
        }
    }

    /// The device's own allocation around an address.
    pub(crate) fn span(&self, address: u64) -> Option<Span<'m>> {
        Span::of(self.find(address, 1)?)
    }

    /// [`View::span`] for writing; none of what kernels may not write.
    pub(crate) fn span_to_write(&self, address: u64) -> Option<Span<'m>> {
        Span::of(self.find(address, 1).filter(|block| block.allocation.kind != AllocationKind::CodeObject)?)
    }

    pub(crate) fn allocation_of(&self, address: u64) -> Option<Allocation> {
        self.memory.allocation_of(address)
    }

    fn violation(&self, address: u64, size: usize, access: MemoryAccess) -> FaultKind {
        let distance = |b: &Block| {
            let a = b.allocation;
            if address < a.address { a.address - address } else { address.saturating_sub(a.address + a.size) }
        };
        let nearest = self.memory.blocks.iter().min_by_key(|b| distance(b)).map(|b| b.allocation);
        FaultKind::Memory { address, size: size as u32, access, nearest }
    }

    /// Reads bytes that must lie within one allocation.
    pub(crate) fn read(
        &self,
        address: u64,
        into: &mut [u8],
        access: MemoryAccess,
    ) -> std::result::Result<(), FaultKind> {
        let found = self.find(address, into.len() as u64).or_else(|| self.in_last_page(address, into.len(), access));
        let Some(block) = found else { return Err(self.violation(address, into.len(), access)) };
        let offset = address - block.allocation.address;
        match &block.storage {
            Storage::Owned(..) => {
                Span::with(block, offset, into.len()).and_then(|span| span.read(offset as usize, into))
            }
            Storage::Foreign(memory) => {
                memory.lock().unwrap_or_else(PoisonError::into_inner).read(offset, into);
                Some(())
            }
        }
        .ok_or_else(|| self.violation(address, into.len(), access))
    }

    /// Writes bytes that must lie within one allocation.
    pub(crate) fn write(&self, address: u64, from: &[u8], access: MemoryAccess) -> std::result::Result<(), FaultKind> {
        let block = self.writable(address, from.len(), access)?;
        let offset = address - block.allocation.address;
        match &block.storage {
            Storage::Owned(..) => {
                Span::with(block, offset, from.len()).and_then(|span| span.write(offset as usize, from))
            }
            Storage::Foreign(memory) => {
                memory.lock().unwrap_or_else(PoisonError::into_inner).write(offset, from);
                Some(())
            }
        }
        .ok_or_else(|| self.violation(address, from.len(), access))
    }

    /// Replaces the `size` bytes (1 to 8) at an address by what `f` makes of them, in one step; returns what they were.
    pub(crate) fn update(
        &self,
        address: u64,
        size: usize,
        f: impl Fn(u64) -> u64,
    ) -> std::result::Result<u64, FaultKind> {
        const ACCESS: MemoryAccess = MemoryAccess::Atomic;
        let block = self.writable(address, size, ACCESS)?;
        let offset = address - block.allocation.address;
        let (mut buffer, failed) = ([0; 8], || self.violation(address, size, ACCESS));
        if let Storage::Foreign(memory) = &block.storage {
            return Ok(memory.lock().unwrap_or_else(PoisonError::into_inner).update(offset, size, &f));
        }
        let span = Span::with(block, offset, size).ok_or_else(failed)?;
        let at = offset as usize;
        if size == 4
            && let Some(cell) = span.cell32(at)
        {
            let new = |old: u32| f(u64::from(u32::from_le(old))) as u32;
            return Ok(u64::from(u32::from_le(cell.update_by(|old| new(old).to_le()))));
        }
        if size == 8
            && let Some(cell) = span.cell64(at)
        {
            return Ok(u64::from_le(cell.update_by(|old| f(u64::from_le(old)).to_le())));
        }
        let _alone = self.memory.odd_atomics.lock().unwrap_or_else(PoisonError::into_inner);
        span.read(at, &mut buffer[..size]).ok_or_else(failed)?;
        let old = u64::from_le_bytes(buffer);
        span.write(at, &f(old).to_le_bytes()[..size]).ok_or_else(failed)?;
        Ok(old)
    }

    /// Whether a store of these bytes is allowed.
    pub(crate) fn check_store(&self, address: u64, size: usize) -> std::result::Result<(), FaultKind> {
        self.writable(address, size, MemoryAccess::Store).map(|_| ())
    }

    fn writable(&self, address: u64, size: usize, access: MemoryAccess) -> std::result::Result<&'m Block, FaultKind> {
        let found = self.find(address, size as u64).or_else(|| self.in_last_page(address, size, access));
        let Some(block) = found else { return Err(self.violation(address, size, access)) };
        let is_code = |&(start, end): &(u64, u64)| address < end && start < address + size as u64;
        if block.allocation.kind == AllocationKind::CodeObject && self.memory.code.iter().any(is_code) {
            return Err(self.violation(address, size, access));
        }
        Ok(block)
    }
}

/// An atomic cell of the host.
trait Update<T> {
    /// Replaces the value in one step; returns the old one.
    fn update_by(&self, f: impl Fn(T) -> T) -> T;
}

impl Update<u32> for AtomicU32 {
    fn update_by(&self, f: impl Fn(u32) -> u32) -> u32 {
        self.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| Some(f(old))).unwrap_or_else(|old| old)
    }
}

impl Update<u64> for AtomicU64 {
    fn update_by(&self, f: impl Fn(u64) -> u64) -> u64 {
        self.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| Some(f(old))).unwrap_or_else(|old| old)
    }
}

/// The bytes of an allocation. Offsets count from its start; what is out of bounds gives none and changes nothing.
#[derive(Clone, Copy)]
pub(crate) struct Span<'m> {
    bytes: VolatileSlice<'m>,
    /// The device address of the first.
    pub start: u64,
}

impl<'m> Span<'m> {
    fn of(block: &'m Block) -> Option<Self> {
        Self::with(block, 0, 0)
    }

    /// With these bytes at least, which may go on in an allocation's last page.
    #[inline]
    fn with(block: &'m Block, offset: u64, length: usize) -> Option<Self> {
        let Allocation { address, size, .. } = block.allocation;
        let size = (size as usize).max((offset as usize).checked_add(length)?);
        match &block.storage {
            Storage::Owned(region, at) => Some(Span { bytes: region.get_slice(*at, size).ok()?, start: address }),
            Storage::Foreign(_) => None,
        }
    }

    /// How many bytes there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// So many dwords from an offset on; none if they are not aligned.
    fn words(&self, at: usize, count: usize) -> Option<VolatileArrayRef<'_, u32>> {
        self.cell32(at)?;
        self.bytes.get_array_ref(at, count).ok()
    }

    /// An aligned dword, in the byte order of the device.
    #[inline]
    fn cell32(&self, at: usize) -> Option<&AtomicU32> {
        self.bytes.get_atomic_ref(at).ok()
    }

    #[inline]
    fn cell64(&self, at: usize) -> Option<&AtomicU64> {
        self.bytes.get_atomic_ref(at).ok()
    }

    /// A dword.
    #[inline]
    pub(crate) fn load32(&self, at: usize) -> Option<u32> {
        match self.cell32(at) {
            Some(cell) => Some(u32::from_le(cell.load(Ordering::Acquire))),
            None => {
                let mut bytes = [0; 4];
                self.copy_out(at, &mut bytes)?;
                Some(u32::from_le_bytes(bytes))
            }
        }
    }

    #[inline]
    pub(crate) fn store32(&self, at: usize, value: u32) -> Option<()> {
        match self.cell32(at) {
            Some(cell) => {
                cell.store(value.to_le(), Ordering::Release);
                Some(())
            }
            None => self.copy_in(at, &value.to_le_bytes()),
        }
    }

    /// Two dwords, in one step where they are aligned.
    #[inline]
    pub(crate) fn load64(&self, at: usize) -> Option<u64> {
        match self.cell64(at) {
            Some(cell) => Some(u64::from_le(cell.load(Ordering::Acquire))),
            None => Some(u64::from(self.load32(at)?) | u64::from(self.load32(at + 4)?) << 32),
        }
    }

    #[inline]
    pub(crate) fn store64(&self, at: usize, value: u64) -> Option<()> {
        match self.cell64(at) {
            Some(cell) => {
                cell.store(value.to_le(), Ordering::Release);
                Some(())
            }
            None => {
                self.bytes.subslice(at, 8).ok()?;
                self.store32(at, value as u32)?;
                self.store32(at + 4, (value >> 32) as u32)
            }
        }
    }

    /// As many bytes as there is room for.
    pub(crate) fn read(&self, at: usize, into: &mut [u8]) -> Option<()> {
        match into.len() {
            4 if at.is_multiple_of(4) => into.copy_from_slice(&self.load32(at)?.to_le_bytes()),
            8 if at.is_multiple_of(8) => into.copy_from_slice(&self.load64(at)?.to_le_bytes()),
            _ => self.copy_out(at, into)?,
        }
        Some(())
    }

    /// Bytes without regard for steps.
    fn copy_out(&self, at: usize, into: &mut [u8]) -> Option<()> {
        self.bytes.subslice(at, into.len()).ok()?.copy_to(into);
        fence(Ordering::Acquire);
        Some(())
    }

    fn copy_in(&self, at: usize, from: &[u8]) -> Option<()> {
        let place = self.bytes.subslice(at, from.len()).ok()?;
        fence(Ordering::Release);
        place.copy_from(from);
        Some(())
    }

    pub(crate) fn write(&self, at: usize, from: &[u8]) -> Option<()> {
        match *from {
            [a, b, c, d] if at.is_multiple_of(4) => self.store32(at, u32::from_le_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] if at.is_multiple_of(8) => {
                self.store64(at, u64::from_le_bytes([a, b, c, d, e, f, g, h]))
            }
            _ => self.copy_in(at, from),
        }
    }

    /// The dwords of each lane, those of one after those of the other: a row for the first of each, and so on.
    pub(crate) fn load_rows(&self, at: usize, rows: &mut [Box<Register>], lanes: usize) -> Option<()> {
        with_bytes(rows.len(), lanes, |bytes| {
            self.read(at, bytes)?;
            elements::scatter(bytes, rows, 0..lanes);
            Some(())
        })
    }

    pub(crate) fn store_rows(&self, at: usize, rows: &[Box<Register>], lanes: usize) -> Option<()> {
        with_bytes(rows.len(), lanes, |bytes| {
            elements::gather(rows, 0..lanes, bytes);
            self.write(at, bytes)
        })
    }
}

/// Room for so many dwords of each lane; no more than are needed are cleared where it is one.
#[inline(always)]
fn with_bytes(dwords: usize, lanes: usize, f: impl FnOnce(&mut [u8]) -> Option<()>) -> Option<()> {
    let (mut small, mut large);
    let bytes = if dwords == 1 {
        small = [0; 4 * LANES];
        &mut small[..]
    } else {
        large = [0; 4 * MOST_DWORDS * LANES];
        &mut large[..]
    };
    f(bytes.get_mut(..4 * dwords * lanes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_bounds_gives_none_and_changes_nothing() {
        let mut memory = Memory::new();
        let address = memory.malloc(22, 1, AllocationKind::Device).expect("memory");
        let view = memory.view();
        let span = view.span_to_write(address).expect("a span");
        for at in [0, 1, 4, 8, 10, 14] {
            assert_eq!(span.store64(at, 0x0102_0304_0506_0708), Some(()), "{at}");
            assert_eq!(span.load64(at), Some(0x0102_0304_0506_0708), "{at}");
            assert_eq!(span.load32(at), Some(0x0506_0708), "{at}");
        }
        let before = [0, 8, 16, 18].map(|at| span.load32(at));
        for at in [15, 16, 19, 20, 22, 24, usize::MAX - 7, usize::MAX - 3, usize::MAX] {
            assert_eq!((span.load64(at), span.store64(at, !0)), (None, None), "{at}");
            assert_eq!((span.read(at, &mut [0; 8]), span.write(at, &[9; 8])), (None, None), "{at}");
            if at > 18 {
                assert_eq!((span.load32(at), span.store32(at, !0)), (None, None), "{at}");
            }
        }
        assert_eq!(
            (span.load_rows(0, &mut [Box::default()], LANES), span.store_rows(0, &[Box::default()], LANES)),
            (None, None)
        );
        assert_eq!([0, 8, 16, 18].map(|at| span.load32(at)), before);
        assert!(view.update(address + 20, 4, |old| old).is_err() && view.update(address, 8, |old| old + 1).is_ok());
        assert!(
            view.read(address + 20, &mut [0; 4], MemoryAccess::Load).is_err()
                && view.check_store(address + 22, 1).is_err()
        );
    }

    #[test]
    fn small_allocations_are_apart_and_zero() {
        let mut memory = Memory::new();
        let addresses: Vec<u64> =
            (0..200).map(|n| memory.malloc(n * 333 + 1, 256, AllocationKind::Device).expect("memory")).collect();
        for (n, address) in addresses.iter().enumerate() {
            let mut bytes = vec![1; n * 333 + 1];
            memory.view().read(*address, &mut bytes, MemoryAccess::Load).expect("all of it");
            assert!(bytes.iter().all(|byte| *byte == 0), "{n}");
            memory.view().write(*address, &vec![n as u8 + 1; n * 333 + 1], MemoryAccess::Store).expect("all of it");
        }
        for (n, address) in addresses.iter().enumerate() {
            let mut bytes = vec![0; n * 333 + 1];
            memory.view().read(*address, &mut bytes, MemoryAccess::Load).expect("all of it");
            assert!(bytes.iter().all(|byte| *byte == n as u8 + 1), "{n}");
        }
    }
}
