//! Caches, LDS and memory: when the accesses of an instruction are done.
//!
//! Each of them is a server: it takes one request after the other, and a request waits until those before it have been
//! taken. An access without contention takes the latency of the nearest place that has its line.
//!
//! A server is one number: the cycle from which it is free. A request that comes at `t` starts at `max(t, free)`, and
//! moves `free` on by the time that it occupies the server (bytes over bandwidth), which is not its latency. Requests
//! reach a server in the order in which instructions are issued, so later ones never overtake: the model is a cascade
//! of queues without back pressure. A miss in one level is a request to the next; the line is in the cache at once,
//! with the cycle at which its data arrive, so that later accesses of the line wait for the same data (as with MSHRs).
//!
//! A store is the exception to "no back pressure": if it replaces a changed line in L2, it is done when the write-back
//! of that line has been accepted. Otherwise a kernel that only stores would be faster than memory.

use rustc_hash::{FxHashMap, FxHashSet};

use wavetap_amdgpu::{Latency, LdsCycles, LdsOperation, MachineFact};

use super::cache::{Cache, Spread, mixed};
use super::lanes::address_cycles;
use super::machine::Machine;
use crate::exec::memory::accesses::{Accesses, How};
use crate::run::accesses::WarmLine;
use crate::trace::timing::{MemoryCounts, Resource, ResourceUse, scaled};

/// Bytes of a line of the scalar cache.
const SCALAR_LINE: u64 = 64;
/// Time of memory is counted in parts of a cycle: a line takes less than one.
const PARTS: u64 = 256;
/// Bytes of what is translated at once, a power of two. A guess: what the driver maps in one piece where it can.
const PAGE_BITS: u32 = 21;
/// SIMDs that share a path to LDS (rocprofiler-compute, pipeline descriptions).
const SIMDS_OF_PORT: usize = 2;
/// Bytes of an LDS address.
const LDS_ADDRESS: u64 = 4;

/// What is near to a compute unit.
#[derive(Debug, Default)]
struct Near {
    l1: Option<Cache>,
    l1_free: u64,
    /// When the next miss can be passed on: one line a cycle, as L2 returns to a compute unit what one of its channels
    /// gives in a cycle (GCN and CDNA 3 white papers).
    fill_free: u64,
    lds_free: u64,
    /// The paths between SIMDs and LDS, by pairs of SIMDs.
    ports: [u64; 2],
}

/// A cache that several compute units share, and from when on it can be asked.
#[derive(Debug, Default)]
struct Shared {
    cache: Option<Cache>,
    /// In [`PARTS`].
    free: u64,
}

/// L2, of one part of the device.
#[derive(Debug)]
struct Second {
    cache: Cache,
    channels: Vec<u64>,
}

/// What a dispatch leaves to the next one: the caches that no packet invalidates, and translations.
///
/// The packet of a dispatch invalidates the caches of compute units and shader arrays. L2 keeps what it has: with one
/// of them nothing else is needed, and where there are several, the Infinity Cache's snoop filters keep them coherent
/// (CDNA 3 white paper; LLVM, AMDGPUUsage, memory models).
#[derive(Debug)]
pub(crate) struct KeptMemory {
    l2: Vec<Second>,
    last: Option<Cache>,
    pages: FxHashSet<(u64, bool)>,
}

/// The memory of a device.
#[derive(Debug)]
pub(crate) struct Hierarchy {
    machine: Machine,
    near: Vec<Near>,
    scalar: Vec<(Option<Cache>, u64)>,
    /// Between L1 and L2, none where there is none.
    middle: Vec<Shared>,
    /// By part of the device. Compute units, and so workgroups, are of the parts in turn.
    l2: Vec<Second>,
    /// On the memory's side of L2.
    last: Shared,
    /// In [`PARTS`].
    memory_free: u64,
    /// When the translation of a page's addresses is there, by its number and whether it is for scalar memory. What
    /// scalar memory reads is elsewhere on hardware, a kernel's arguments in memory of the host.
    pages: FxHashMap<(u64, bool), u64>,
    pub counts: MemoryCounts,
    /// For how long each kind of server was busy, all of a kind together.
    busy: ResourceUse,
}

/// What an instruction did to caches and LDS.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Traffic {
    /// When it is done.
    pub done: u64,
    /// Lines of L1 that its addresses are in.
    pub lines: u64,
    /// Cycles of LDS because of bank conflicts.
    pub conflicts: u64,
}

/// Who asks L2, when, and for what.
#[derive(Clone, Copy)]
struct Request {
    unit: usize,
    at: u64,
    how: How,
    /// Cycles that it keeps its channel; 0 for those of a line.
    keeps: u64,
    /// By scalar memory.
    scalar: bool,
}

impl Hierarchy {
    /// Memory after an earlier dispatch, or memory that has not been used.
    pub(crate) fn new(machine: Machine, compute_units: usize, kept: Option<KeptMemory>) -> Hierarchy {
        let fact = |fact| machine.fact(fact);
        let l2 = || Second {
            cache: Cache::new(
                fact(MachineFact::L2Bytes),
                fact(MachineFact::L2LineBytes),
                fact(MachineFact::L2Ways),
                Spread::Mixed,
            ),
            channels: vec![0; fact(MachineFact::L2Channels).max(1) as usize],
        };
        let scalar = compute_units.div_ceil(fact(MachineFact::ScalarSharers).max(1) as usize);
        let middle = match fact(MachineFact::Gl1Bytes) {
            0 => 0,
            _ => compute_units.div_ceil(fact(MachineFact::Gl1Sharers).max(1) as usize),
        };
        let kept = kept.unwrap_or_else(|| KeptMemory {
            l2: (0..fact(MachineFact::L2Caches).max(1)).map(|_| l2()).collect(),
            last: None,
            pages: FxHashSet::default(),
        });
        Hierarchy {
            near: (0..compute_units).map(|_| Near::default()).collect(),
            scalar: (0..scalar).map(|_| (None, 0)).collect(),
            middle: (0..middle).map(|_| Shared::default()).collect(),
            l2: kept.l2,
            last: Shared { cache: kept.last, free: 0 },
            memory_free: 0,
            pages: kept.pages.into_iter().map(|page| (page, 0)).collect(),
            counts: MemoryCounts::default(),
            busy: ResourceUse::default(),
            machine,
        }
    }

    /// The release at the end of a dispatch whose waves have ended at `at`: L2 writes changed lines back, which the L2s
    /// of other parts then no longer have. When memory has accepted the last one.
    pub(crate) fn release(&mut self, at: u64) -> u64 {
        let mut end = at;
        for part in 0..self.l2.len() {
            for line in self.l2[part].cache.write_back() {
                let others = self.l2.iter_mut().enumerate().filter(|(other, _)| *other != part);
                others.for_each(|(_, second)| second.cache.forget(line));
                end = end.max(self.last(line, at, true));
            }
        }
        // A line is written when its last byte is.
        let drained = [self.last.free, self.memory_free].map(|free| free.div_ceil(PARTS));
        drained.into_iter().fold(end, u64::max)
    }

    /// The share of workgroups that were modelled, of all: what was counted is scaled to all of them.
    pub(crate) fn scale(&mut self, share: (u64, u64)) {
        self.counts.all_mut().into_iter().chain(&mut self.busy.busy).for_each(|count| *count = scaled(*count, share));
    }

    /// A compute unit accesses lines without the model: L2, the Infinity Cache and translations have them then.
    pub(crate) fn warm(&mut self, unit: usize, lines: &[WarmLine]) {
        let width = self.machine.fact(MachineFact::L2LineBytes).max(1);
        let parts = self.l2.len();
        let (mut last, mut page) = (None, None);
        for line in lines {
            let here = Some((line.address >> PAGE_BITS, line.scalar));
            if let Some(new) = here.filter(|_| here != page) {
                self.pages.entry(new).or_insert(0);
                page = here;
            }
            let (number, write) = (line.address / width, line.how != How::Load);
            if last.replace((number, write)) == Some((number, write)) {
                continue;
            }
            let l2 = &mut self.l2[unit % parts].cache;
            if l2.find(number, write).is_some() {
                continue;
            }
            let left = l2.insert(number, 0, write);
            if line.how != How::Store {
                self.warm_last(number, false);
            }
            if let Some(left) = left {
                self.warm_last(left, true);
            }
        }
    }

    fn warm_last(&mut self, line: u64, write: bool) {
        let Some(cache) = self.last_cache() else { return };
        if cache.find(line, write).is_none() {
            cache.insert(line, 0, write);
        }
    }

    /// The Infinity Cache, if there is one.
    fn last_cache(&mut self) -> Option<&mut Cache> {
        let bytes = self.machine.fact(MachineFact::MallBytes);
        let (width, ways) = (self.machine.fact(MachineFact::L2LineBytes), self.machine.fact(MachineFact::MallWays));
        (bytes > 0).then(|| self.last.cache.get_or_insert_with(|| Cache::new(bytes, width, ways, Spread::Mixed)))
    }

    /// What the next dispatch finds; this one ended at `end`.
    pub(crate) fn keep(self, end: u64) -> KeptMemory {
        let Hierarchy { mut l2, last: Shared { cache: mut last, .. }, pages, .. } = self;
        for part in &mut l2 {
            part.cache.ended(end);
            part.channels.fill(0);
        }
        if let Some(last) = &mut last {
            last.ended(end);
        }
        KeptMemory { l2, last, pages: pages.into_keys().collect() }
    }

    /// When a vector memory or LDS instruction is done that a SIMD of a compute unit issues at `at`.
    pub(crate) fn vector(&mut self, (unit, simd): (usize, usize), at: u64, accesses: &Accesses) -> Traffic {
        let mut traffic = Traffic { done: at, ..Traffic::default() };
        if !accesses.lds.is_empty() || accesses.crossbar {
            (traffic.done, traffic.conflicts) = self.local((unit, simd), at, accesses);
        }
        if !accesses.memory.is_empty() {
            let (done, lines) = self.global(unit, at, accesses);
            traffic.done = traffic.done.max(done);
            traffic.lines = lines;
        }
        traffic
    }

    /// The use of caches, LDS and memory, and what they could have done in so many cycles.
    pub(crate) fn used(&self, cycles: u64) -> ResourceUse {
        let mut used = self.busy;
        let channels: usize = self.l2.iter().map(|part| part.channels.len()).sum();
        let units = self.near.len() as u64;
        let mut available = |resource, count: u64| used.available[resource as usize] = cycles * count;
        available(Resource::L1, units);
        available(Resource::Lds, units);
        available(Resource::L2, channels as u64);
        available(Resource::Memory, 1);
        if self.machine.fact(MachineFact::MallBytes) > 0 {
            available(Resource::Mall, 1);
        }
        for resource in [Resource::Mall, Resource::Memory] {
            used.busy[resource as usize] /= PARTS;
        }
        used
    }

    /// Lines of L2 that were changed and have not been written back.
    pub(crate) fn changed_lines(&self) -> u64 {
        self.l2.iter().map(|part| part.cache.changed()).sum()
    }

    /// When it is done, and the cycles of conflicts.
    fn local(&mut self, (unit, simd): (usize, usize), at: u64, accesses: &Accesses) -> (u64, u64) {
        let mut all = LdsCycles::default();
        if accesses.crossbar {
            // A dword of each bank's width in a cycle.
            all.cycles = 64_u64.div_ceil(self.machine.fact(MachineFact::LdsBanks));
        }
        let operation = match accesses.how {
            How::Load => LdsOperation::Read,
            How::Store => LdsOperation::Write,
            How::Atomic => LdsOperation::Atomic,
        };
        let (mut sent, mut returned) = (0, 0);
        for access in &accesses.lds {
            let size = u32::try_from(access.size).unwrap_or(u32::MAX);
            let cycles = self.machine.target().lds_cycles(operation, size, &access.addresses, access.mask);
            all.cycles += cycles.cycles;
            all.conflicts += cycles.conflicts;
            let lanes = u64::from(access.mask.count_ones());
            sent += lanes * if operation == LdsOperation::Read { LDS_ADDRESS } else { LDS_ADDRESS + access.size };
            returned += lanes * if operation == LdsOperation::Write { 0 } else { access.size };
        }
        self.counts.lds_conflict_cycles += all.conflicts;
        let takes_data = operation != LdsOperation::Read && !accesses.lds.is_empty();
        let with_data = if takes_data { self.machine.fact(MachineFact::LdsData) } else { 0 };
        let near = &mut self.near[unit];
        let port = &mut near.ports[simd / SIMDS_OF_PORT % 2];
        let (served, passed) = (at.max(near.lds_free), at.max(*port));
        let cycles = all.cycles.max(1);
        near.lds_free = served + cycles + with_data;
        self.busy.busy[Resource::Lds as usize] += cycles + with_data;
        *port = passed + sent.max(returned).div_ceil(self.machine.fact(MachineFact::LdsPort).max(1));
        let start = served.max(passed);
        // The latency is that of what needs one cycle.
        (start + self.machine.latency(Latency::Lds) + cycles - 1, all.conflicts)
    }

    /// When it is done, and how many lines it accesses.
    fn global(&mut self, unit: usize, at: u64, accesses: &Accesses) -> (u64, u64) {
        let width = self.machine.l1_line();
        let of_line = |address: u64| address / width;
        let mut lines: Vec<u64> =
            accesses.memory.iter().flat_map(|&a| of_line(a)..=of_line(a + accesses.size - 1)).collect();
        lines.sort_unstable();
        lines.dedup();
        let start = at.max(self.near[unit].l1_free);
        let kept = address_cycles(&self.machine, accesses, lines.len() as u64);
        self.near[unit].l1_free = start + kept;
        self.busy.busy[Resource::L1 as usize] += kept;
        let quarters = self.machine.fact(MachineFact::L1LineQuarters);
        let request = Request { unit, at: start, how: accesses.how, keeps: 0, scalar: false };
        let mut done = start;
        for (n, &line) in lines.iter().enumerate() {
            let request = Request { at: start + n as u64 * quarters / 4, ..request };
            let end = match accesses.how {
                How::Load => self.load(line, request, accesses.bypass),
                How::Store => {
                    let written = accesses.memory.iter().filter(|&&address| of_line(address) == line).count() as u64
                        * accesses.size;
                    self.store(line, request, written)
                }
                How::Atomic => self.atomic(line, request, accesses),
            };
            done = done.max(end);
        }
        (done, lines.len() as u64)
    }

    fn load(&mut self, line: u64, request: Request, bypass: bool) -> u64 {
        let Request { unit, at, .. } = request;
        let machine = &self.machine;
        let (bytes, ways) = (machine.fact(MachineFact::L1Bytes), machine.fact(MachineFact::L1Ways));
        let (width, hit) = (machine.l1_line(), machine.latency(Latency::Vmem));
        let l1 = self.near[unit].l1.get_or_insert_with(|| Cache::new(bytes, width, ways, Spread::Folded));
        if !bypass && let Some(ready) = l1.find(line, false) {
            self.counts.l1_hits += 1;
            return ready.max(at + hit);
        }
        self.counts.l1_misses += 1;
        let near = &mut self.near[unit];
        let at = at.max(near.fill_free);
        near.fill_free = at + 1;
        let request = Request { at, ..request };
        let done = match self.middle(line, request, bypass) {
            Some(done) => done,
            None => self.far(line * width, width, request),
        };
        if !bypass && let Some(l1) = &mut self.near[unit].l1 {
            l1.insert(line, done, false);
        }
        done
    }

    /// The cache between L1 and L2, if there is one that may have the line.
    fn middle(&mut self, line: u64, request: Request, bypass: bool) -> Option<u64> {
        if bypass || self.middle.is_empty() {
            return None;
        }
        let machine = &self.machine;
        let (bytes, ways) = (machine.fact(MachineFact::Gl1Bytes), machine.fact(MachineFact::Gl1Ways));
        let (width, hit) = (machine.l1_line(), machine.gl1_hit);
        let takes = (width * PARTS).div_ceil(machine.fact(MachineFact::Gl1Bandwidth).max(1));
        let of = request.unit / machine.fact(MachineFact::Gl1Sharers).max(1) as usize;
        let shared = &mut self.middle[of];
        let start = shared.free.max(request.at * PARTS);
        shared.free = start + takes;
        let at = start / PARTS;
        let cache = shared.cache.get_or_insert_with(|| Cache::new(bytes, width, ways, Spread::Mixed));
        if let Some(ready) = cache.find(line, false) {
            return Some(ready.max(at + hit));
        }
        let done = self.far(line * width, width, Request { at, ..request });
        if let Some(cache) = &mut self.middle[of].cache {
            cache.insert(line, done, false);
        }
        Some(done)
    }

    /// L1 caches write through and take nothing in.
    fn store(&mut self, line: u64, request: Request, bytes: u64) -> u64 {
        let width = self.machine.l1_line();
        let keeps = bytes.min(width).div_ceil(self.machine.fact(MachineFact::L2StoreBandwidth).max(1));
        self.counts.stored_bytes += bytes.min(width);
        self.far(line * width, width, Request { keeps, ..request })
    }

    /// L2 does atomics; those on the same dword one after the other.
    fn atomic(&mut self, line: u64, request: Request, accesses: &Accesses) -> u64 {
        let width = self.machine.l1_line();
        let mut words: Vec<u64> = accesses
            .memory
            .iter()
            .filter(|&&address| address / width == line)
            .map(|address| address / accesses.size.max(4))
            .collect();
        words.sort_unstable();
        let most = words.chunk_by(|a, b| a == b).map(<[u64]>::len).max().unwrap_or(1) as u64;
        self.counts.serialized_atomics += most - 1;
        let step = self.machine.atomic;
        // The last one is done when those before it have kept the line.
        self.far(line * width, width, Request { keeps: most * step, ..request }) + (most - 1) * step
    }

    /// The lines of L2 that hold a line of a nearer cache.
    fn far(&mut self, address: u64, bytes: u64, request: Request) -> u64 {
        let width = self.machine.fact(MachineFact::L2LineBytes).max(1);
        let bandwidth = self.machine.fact(MachineFact::L2Bandwidth).max(1);
        let keeps = if request.keeps == 0 { bytes.min(width).div_ceil(bandwidth) } else { request.keeps };
        // The first use of a page waits until its addresses are translated, and so do those that come meanwhile.
        let walked = request.at + self.machine.first_touch[usize::from(request.scalar)];
        let translated = *self.pages.entry((address >> PAGE_BITS, request.scalar)).or_insert(walked);
        let request = Request { at: request.at.max(translated), keeps, ..request };
        let mut done = request.at;
        for line in address / width..=(address + bytes - 1) / width {
            done = done.max(self.l2(line, request));
        }
        done
    }

    fn l2(&mut self, line: u64, Request { unit, at, how, keeps, .. }: Request) -> u64 {
        let parts = self.l2.len();
        let l2 = &mut self.l2[unit % parts];
        let count = l2.channels.len();
        let channel = &mut l2.channels[mixed(line) % count];
        let start = at.max(*channel);
        *channel = start + keeps;
        self.busy.busy[Resource::L2 as usize] += keeps;
        if how == How::Atomic {
            self.counts.atomic_cycles += keeps;
        }
        let near = start + if how == How::Store { self.machine.acknowledged } else { self.machine.l2_hit };
        if let Some(ready) = l2.cache.find(line, how != How::Load) {
            self.counts.l2_hits += 1;
            return ready.max(near);
        }
        // What a store leaves out of a line is not fetched.
        let fetched = how != How::Store;
        let done = if fetched {
            self.counts.l2_misses += 1;
            self.last(line, start, false)
        } else {
            near
        };
        let Some(left) = self.l2[unit % parts].cache.insert(line, done, how != How::Load) else { return done };
        self.counts.l2_written_back += 1;
        let accepted = self.last(left, start, true);
        // A load waits for its own line only.
        if how == How::Store { done.max(accepted) } else { done }
    }

    /// The cache on the memory's side of L2, where there is one, and memory: when a line is there or, of one that is
    /// written back, when it is accepted.
    fn last(&mut self, line: u64, at: u64, write: bool) -> u64 {
        let machine = &self.machine;
        let bytes = machine.fact(MachineFact::MallBytes);
        if bytes == 0 {
            let start = self.memory(at);
            return if write { start } else { start + self.machine.memory };
        }
        let width = machine.fact(MachineFact::L2LineBytes);
        let takes = (width * PARTS).div_ceil(machine.fact(MachineFact::MallBandwidth).max(1));
        let hit = machine.mall_hit;
        let start = self.last.free.max(at * PARTS);
        self.last.free = start + takes;
        self.busy.busy[Resource::Mall as usize] += takes;
        let at = start / PARTS;
        if let Some(ready) = self.last_cache().and_then(|cache| cache.find(line, write)) {
            return if write { at } else { ready.max(at + hit) };
        }
        let done = if write { at + hit } else { self.memory(at) + self.machine.memory };
        let replaced = self.last.cache.as_mut().and_then(|cache| cache.insert(line, done, write));
        let accepted = if replaced.is_some() { self.memory(at) } else { at };
        if write { accepted } else { done }
    }

    /// When memory begins with a line.
    fn memory(&mut self, at: u64) -> u64 {
        let start = self.memory_free.max(at * PARTS);
        let width = self.machine.fact(MachineFact::L2LineBytes);
        let takes = (width * PARTS).div_ceil(self.machine.fact(MachineFact::MemoryBandwidth).max(1));
        self.memory_free = start + takes;
        self.busy.busy[Resource::Memory as usize] += takes;
        self.counts.memory_lines += 1;
        start / PARTS
    }

    /// When a scalar memory instruction is done.
    pub(crate) fn scalar(&mut self, unit: usize, at: u64, accesses: &Accesses) -> u64 {
        let machine = &self.machine;
        let (bytes, ways) = (machine.fact(MachineFact::ScalarBytes), machine.fact(MachineFact::ScalarWays));
        let hit = machine.latency(Latency::Smem);
        let shared = unit / machine.fact(MachineFact::ScalarSharers).max(1) as usize;
        let Some(&address) = accesses.memory.first() else { return at + hit };
        let mut done = at;
        for line in address / SCALAR_LINE..=(address + accesses.size - 1) / SCALAR_LINE {
            let (cache, free) = &mut self.scalar[shared];
            let start = at.max(*free);
            *free = start + 1;
            let cache = cache.get_or_insert_with(|| Cache::new(bytes, SCALAR_LINE, ways, Spread::Lowest));
            let found = if accesses.how == How::Load { cache.find(line, false) } else { None };
            let end = match found {
                Some(ready) => ready.max(start + hit),
                None => {
                    let request = Request { unit, at: start, how: accesses.how, keeps: 0, scalar: true };
                    // The way to L2 is shorter than that of vector memory, and never shorter than to the cache.
                    let shorter = self.machine.fact(MachineFact::ScalarShorter);
                    let end = self.far(line * SCALAR_LINE, SCALAR_LINE, request);
                    let end = end.saturating_sub(shorter).max(start + hit);
                    if accesses.how == How::Load
                        && let (Some(cache), _) = &mut self.scalar[shared]
                    {
                        cache.insert(line, end, false);
                    }
                    end
                }
            };
            done = done.max(end);
        }
        done
    }

    /// The L1 cache of a compute unit forgets what it has, or the one that it shares with others.
    pub(crate) fn invalidate(&mut self, unit: usize, shared: bool) {
        let of = unit / self.machine.fact(MachineFact::Gl1Sharers).max(1) as usize;
        let cache = match self.middle.get_mut(of) {
            Some(middle) if shared => &mut middle.cache,
            _ => &mut self.near[unit].l1,
        };
        if let Some(cache) = cache {
            cache.clear();
        }
    }
}
