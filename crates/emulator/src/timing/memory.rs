//! Caches, LDS and memory: when the accesses of an instruction are done.
//!
//! Each of them is a server: it takes one request after the other, and a request waits until those before it have been
//! taken. An access without contention takes the latency of the nearest place that has its line.

use wavetap_amdgpu::{Latency, LdsCycles, LdsOperation, MachineFact};

use super::cache::{Cache, mixed};
use super::machine::Machine;
use crate::exec::memory::accesses::{Accesses, How};
use crate::trace::timing::MemoryCounts;

/// Lanes whose addresses a compute unit takes in a cycle.
const ADDRESSES: u64 = 16;
/// Bytes of a line of the scalar cache.
const SCALAR_LINE: u64 = 64;
/// Time of memory is counted in parts of a cycle: a line takes less than one.
const PARTS: u64 = 256;

/// What is near to a compute unit.
#[derive(Debug, Default)]
struct Near {
    l1: Option<Cache>,
    l1_free: u64,
    lds_free: u64,
}

/// The memory of a device.
#[derive(Debug)]
pub(crate) struct Hierarchy {
    machine: Machine,
    near: Vec<Near>,
    scalar: Vec<(Option<Cache>, u64)>,
    l2: Cache,
    channels: Vec<u64>,
    /// In [`PARTS`].
    memory_free: u64,
    pub counts: MemoryCounts,
}

/// A request to L2.
#[derive(Clone, Copy)]
struct Request {
    /// The number of the line.
    line: u64,
    at: u64,
    how: How,
    /// Cycles that it keeps its channel.
    keeps: u64,
}

impl Hierarchy {
    pub(crate) fn new(machine: Machine, compute_units: usize) -> Hierarchy {
        let fact = |fact| machine.fact(fact);
        let l2 =
            Cache::new(fact(MachineFact::L2Bytes), fact(MachineFact::L2LineBytes), fact(MachineFact::L2Ways), true);
        let scalar = compute_units.div_ceil(fact(MachineFact::ScalarSharers).max(1) as usize);
        Hierarchy {
            near: (0..compute_units).map(|_| Near::default()).collect(),
            scalar: (0..scalar).map(|_| (None, 0)).collect(),
            l2,
            channels: vec![0; fact(MachineFact::L2Channels).max(1) as usize],
            memory_free: 0,
            counts: MemoryCounts::default(),
            machine,
        }
    }

    /// When a vector memory or LDS instruction that is issued at `at` is done.
    pub(crate) fn vector(&mut self, unit: usize, at: u64, accesses: &Accesses) -> u64 {
        let mut done = at;
        if !accesses.lds.is_empty() || accesses.crossbar {
            done = self.local(unit, at, accesses);
        }
        if !accesses.memory.is_empty() {
            done = done.max(self.global(unit, at, accesses));
        }
        done
    }

    fn local(&mut self, unit: usize, at: u64, accesses: &Accesses) -> u64 {
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
        for access in &accesses.lds {
            let size = u32::try_from(access.size).unwrap_or(u32::MAX);
            let cycles = self.machine.target().lds_cycles(operation, size, &access.addresses, access.mask);
            all.cycles += cycles.cycles;
            all.conflicts += cycles.conflicts;
        }
        self.counts.lds_conflict_cycles += all.conflicts;
        let near = &mut self.near[unit];
        let start = at.max(near.lds_free);
        let cycles = all.cycles.max(1);
        near.lds_free = start + cycles;
        // The latency is that of what needs one cycle.
        start + self.machine.latency(Latency::Lds) + cycles - 1
    }

    fn global(&mut self, unit: usize, at: u64, accesses: &Accesses) -> u64 {
        let width = self.machine.l1_line();
        let (of_line, bytes) = (|address: u64| address / width, accesses.size * accesses.memory.len() as u64);
        let mut lines: Vec<u64> =
            accesses.memory.iter().flat_map(|&a| of_line(a)..=of_line(a + accesses.size - 1)).collect();
        lines.sort_unstable();
        lines.dedup();
        let bandwidth = self.machine.fact(MachineFact::L1Bandwidth).max(1);
        let for_line = width.div_ceil(bandwidth);
        let start = at.max(self.near[unit].l1_free);
        let addresses = (accesses.memory.len() as u64).div_ceil(ADDRESSES);
        self.near[unit].l1_free = start + addresses.max(lines.len() as u64 * for_line).max(bytes.div_ceil(bandwidth));
        let mut done = start;
        for (n, &line) in lines.iter().enumerate() {
            let at = start + n as u64 * for_line;
            let end = match accesses.how {
                How::Load => self.load(unit, line, at, accesses.bypass),
                How::Store => {
                    let written = accesses.memory.iter().filter(|&&address| of_line(address) == line).count() as u64
                        * accesses.size;
                    self.store(line, at, written)
                }
                How::Atomic => self.atomic(line, at, accesses),
            };
            done = done.max(end);
        }
        done
    }

    fn load(&mut self, unit: usize, line: u64, at: u64, bypass: bool) -> u64 {
        let machine = &self.machine;
        let (bytes, ways) = (machine.fact(MachineFact::L1Bytes), machine.fact(MachineFact::L1Ways));
        let (width, hit) = (machine.l1_line(), machine.latency(Latency::Vmem));
        let l1 = self.near[unit].l1.get_or_insert_with(|| Cache::new(bytes, width, ways, false));
        if !bypass && let Some(ready) = l1.find(line, false) {
            self.counts.l1_hits += 1;
            return ready.max(at + hit);
        }
        self.counts.l1_misses += 1;
        let done = self.far(line * width, width, at, How::Load, 0);
        if !bypass && let Some(l1) = &mut self.near[unit].l1 {
            l1.insert(line, done, false);
        }
        done
    }

    /// L1 caches write through and take nothing in.
    fn store(&mut self, line: u64, at: u64, bytes: u64) -> u64 {
        let width = self.machine.l1_line();
        let keeps = bytes.min(width).div_ceil(self.machine.fact(MachineFact::L2Bandwidth).max(1));
        self.far(line * width, width, at, How::Store, keeps)
    }

    /// L2 does atomics; those on the same dword one after the other.
    fn atomic(&mut self, line: u64, at: u64, accesses: &Accesses) -> u64 {
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
        self.far(line * width, width, at, How::Atomic, most * step) + (most - 1) * step
    }

    /// The lines of L2 that hold a line of an L1 cache.
    fn far(&mut self, address: u64, bytes: u64, at: u64, how: How, keeps: u64) -> u64 {
        let width = self.machine.fact(MachineFact::L2LineBytes).max(1);
        let bandwidth = self.machine.fact(MachineFact::L2Bandwidth).max(1);
        let keeps = if keeps == 0 { bytes.min(width).div_ceil(bandwidth) } else { keeps };
        let mut done = at;
        for line in address / width..=(address + bytes - 1) / width {
            done = done.max(self.l2(Request { line, at, how, keeps }));
        }
        done
    }

    fn l2(&mut self, Request { line, at, how, keeps }: Request) -> u64 {
        let count = self.channels.len();
        let channel = &mut self.channels[mixed(line) % count];
        let start = at.max(*channel);
        *channel = start + keeps;
        let near = start + self.machine.l2_hit;
        if let Some(ready) = self.l2.find(line, how != How::Load) {
            self.counts.l2_hits += 1;
            return ready.max(near);
        }
        // What a store leaves out of a line is not fetched.
        let fetched = how != How::Store;
        let done = if fetched {
            self.counts.l2_misses += 1;
            self.memory(start)
        } else {
            near
        };
        if self.l2.insert(line, done, how != How::Load) {
            // What was changed goes back to memory; only requests after it are delayed.
            self.memory(start);
        }
        done
    }

    fn memory(&mut self, at: u64) -> u64 {
        let start = self.memory_free.max(at * PARTS);
        let width = self.machine.fact(MachineFact::L2LineBytes);
        self.memory_free = start + (width * PARTS).div_ceil(self.machine.fact(MachineFact::MemoryBandwidth).max(1));
        start / PARTS + self.machine.memory
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
            let cache = cache.get_or_insert_with(|| Cache::new(bytes, SCALAR_LINE, ways, false));
            let found = if accesses.how == How::Load { cache.find(line, false) } else { None };
            let end = match found {
                Some(ready) => ready.max(start + hit),
                None => {
                    let end = self.far(line * SCALAR_LINE, SCALAR_LINE, start, accesses.how, 0);
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

    /// The L1 cache of a compute unit forgets what it has.
    pub(crate) fn invalidate(&mut self, unit: usize) {
        if let Some(l1) = &mut self.near[unit].l1 {
            l1.clear();
        }
    }
}
