//! The probe of memory latency: how long vector loads, and atomics that return something, take until the wait that
//! completes them is over.
//!
//! The shader's clock is read before a load, or before the clause that it is in, and again after the wait. In between
//! the first reading is in a lane of inserted code's own vector registers. Counters are added to when no load is being
//! measured any more: that is vector memory, too, and where it counts among loads it is waited for at once, so that no
//! wait of the original is for anything but what it was for.
//!
//! A load is measured at the original's own wait where that is in the same block and no call is in between. Any other
//! is *drained*: inserted code waits for what counts among loads, reads the clock, lets the load go, waits for it and
//! reads the clock again. No drained load is between another one and its wait: such another one is drained as well.

use std::collections::BTreeSet;
use std::ops::Bound;

use rustc_hash::FxHashMap;

use super::clock::{Clocks, subtract};
use super::{Emitter, FIRST_KEPT_LANE, FunctionProbe, Measurement, Needs, Probe, ProbeSite, Scc};
use crate::asm::{Asm, c, s, v, v2};
use crate::function::ClonedFunction;
use wavetap_amdgpu::{Counters, Flags, Memory, Opcode, Target, issued};
use wavetap_analysis::cfg::Cfg;
use wavetap_analysis::dataflow::{Certainty, Operation, Waits};
use wavetap_analysis::kernel::{Body, BodyKind, BundlingConstraints, Flow, Stop};
use wavetap_base::entity::{BlockId, InstId, ProgramPoint, Side};
use wavetap_base::error::{Error, Result};
use wavetap_profile::probes::latency::{BUCKETS, EMPTY, FIELDS_BEFORE_BUCKETS, FIRST_OCTAVE, LatencyKind};
use wavetap_profile::probes::time::SAFE_TICKS_SHIFT;
use wavetap_profile::record::COUNTER;

/// Lanes of the data pair with a load's counters: lane 0 (executions) and lane 4 (those with EXEC = 0) hold 1.
const CYCLES: u32 = 1;
const WRAPPED: u32 = 2;
const SHORTEST: u32 = 3;
const LONGEST: u32 = 5;
/// Those that are added to, where the clock does not wrap around and where it may; of which a maximum is formed; and
/// that of executions with EXEC = 0.
const ADDED: u32 = 0b011;
const ADDED_WRAPPING: u32 = 0b111;
const LARGEST: u32 = 1 << SHORTEST | 1 << LONGEST;
const IDLE: u32 = 1 << 4;
/// The lane with which a bucket is added to.
const ONE: u32 = 1;

/// The first lane of the data pair with a reading of the clock, or later with how much time has passed. Both registers
/// belong to it. Where the clock has 64 bits, it is one, and bit 63 says that EXEC was 0; otherwise the low half is the
/// clock, and the high one has the constant clock.
const FIRST_SLOT: u32 = FIRST_KEPT_LANE;
/// Bits of the high half.
const IDLE_BIT: u32 = 31;
const WRAPPED_BIT: u32 = 30;
const TICKS_MASK: u32 = (1 << IDLE_BIT) - 1;

/// See `time`.
const LANE_STATES: i64 = 2;

/// See the module.
#[derive(Debug)]
pub(super) struct MemoryLatency {
    /// Each load is waited for at once.
    pub(super) drains_all: bool,
}

/// What is measured in a function.
#[derive(Debug)]
struct LatencyOf {
    loads: MeasuredLoads,
    sites: Vec<ProbeSite>,
}

/// A load that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MeasuredLoad {
    inst: InstId,
    start: ProgramPoint,
    end: ProgramPoint,
    is_drained: bool,
    in_clause: bool,
    /// It also counts among LDS operations.
    is_flat: bool,
}

impl MeasuredLoad {
    fn kind(&self) -> LatencyKind {
        LatencyKind::of(self.is_drained, self.in_clause)
    }
}

/// The loads of a function that are measured, by address, in groups that are counted together.
#[derive(Debug)]
struct MeasuredLoads(Vec<Vec<MeasuredLoad>>);

impl MeasuredLoads {
    /// Finds them; `drains_all`: each is waited for at once.
    fn of(function: &ClonedFunction<'_>, drains_all: bool) -> MeasuredLoads {
        let (body, cfg, neighbours) = (function.body(), function.cfg(), function.bundling());
        let completions = completions(body, &function.waits());
        let clocks_wait = Clocks::of(body.target()).is_ok_and(|clocks| clocks.wait());
        let slots = (body.target().wave_size() - FIRST_SLOT) as usize;
        let mut groups = Vec::new();
        for block in cfg.ids() {
            let mut loads: Vec<MeasuredLoad> =
                cfg.block(block).insts().filter_map(|id| load(body, neighbours, id)).collect();
            if !drains_all {
                for load in &mut loads {
                    if let Some(wait) = completion(body, cfg, block, load, &completions) {
                        (load.end, load.is_drained) = (ProgramPoint { inst: wait, side: Side::After }, false);
                    }
                }
            }
            drain_what_is_disturbed(&mut loads, neighbours, clocks_wait);
            for group in in_groups(loads) {
                if distinct(&group, |load| (load.start, load.end)).len() <= slots {
                    groups.push(group);
                } else {
                    let drained = group.into_iter().map(|load| drained(load, neighbours)).collect();
                    groups.extend(in_groups(drained));
                }
            }
        }
        groups.sort_by_key(|group| group[0].inst);
        MeasuredLoads(groups)
    }

    /// The group that begins with this load.
    fn beginning_with(&self, inst: InstId) -> Option<&[MeasuredLoad]> {
        let at = self.0.binary_search_by_key(&inst, |group| group[0].inst).ok()?;
        Some(&self.0[at])
    }
}

/// The load at an instruction, if it is one; drained.
fn load(body: &Body, neighbours: &BundlingConstraints, id: InstId) -> Option<MeasuredLoad> {
    let inst = body.inst(id);
    let counters = issued(inst);
    let returns = inst.variant.flags.contains(Flags::ATOMIC) && body.writes(id).next().is_some();
    let is_vector = matches!(inst.variant.memory, Memory::Global | Memory::Flat | Memory::Buffer | Memory::Scratch);
    let loads = inst.variant.flags.contains(Flags::LOAD) || returns;
    if !is_vector || !loads || !counters.intersects(Counters::VM | Counters::LOAD) || body.may_be_skipped(id) {
        return None;
    }
    let here = ProgramPoint { inst: id, side: Side::Before };
    let is_flat = counters.intersects(Counters::LGKM | Counters::DS);
    let load = MeasuredLoad { inst: id, start: here, end: here, is_drained: true, in_clause: false, is_flat };
    Some(drained(load, neighbours))
}

/// A load as one that inserted code waits for.
fn drained(load: MeasuredLoad, neighbours: &BundlingConstraints) -> MeasuredLoad {
    let clause = neighbours.clauses().iter().find(|clause| (clause.first..=clause.last).contains(&load.inst));
    let (first, last) = clause.map_or((load.inst, load.inst), |clause| (clause.start, clause.last));
    let (start, end) =
        (ProgramPoint { inst: first, side: Side::Before }, ProgramPoint { inst: last, side: Side::After });
    MeasuredLoad { start, end, is_drained: true, in_clause: clause.is_some(), ..load }
}

/// Of each operation, the waits that certainly wait for it, with the counter.
type Completions = FxHashMap<InstId, Vec<(InstId, Counters)>>;

fn completions(body: &Body, waits: &Waits<'_>) -> Completions {
    let mut completions = Completions::default();
    for wait in waits.all() {
        for waited in wait.operations.iter().filter(|waited| waited.certainty == Certainty::Must) {
            if let Operation::Inst(id) = waited.operation
                && body.inst(id).variant.memory != Memory::None
            {
                completions.entry(id).or_default().push((wait.inst, wait.counter.flag()));
            }
        }
    }
    completions
}

/// The wait of its block with which a load is complete in every counter, if nothing is called before.
fn completion(
    body: &Body,
    cfg: &Cfg,
    block: BlockId,
    load: &MeasuredLoad,
    completions: &Completions,
) -> Option<InstId> {
    let mut open = issued(body.inst(load.inst)) & (Counters::VM | Counters::LOAD | Counters::LGKM | Counters::DS);
    let waits = completions.get(&load.inst)?;
    for id in cfg.block(block).insts().filter(|id| *id > load.end.inst) {
        if matches!(body.flow(id), Flow::Call(_)) {
            return None;
        }
        for (_, counter) in waits.iter().filter(|(wait, _)| *wait == id) {
            open = open.difference(*counter);
        }
        if open.is_empty() {
            return Some(id);
        }
    }
    None
}

/// Drains loads where a drained one lies before their wait, and with one all of its clause. A load that counts among
/// LDS operations is drained where a reading of the clock in between would wait for it.
fn drain_what_is_disturbed(loads: &mut [MeasuredLoad], neighbours: &BundlingConstraints, clocks_wait: bool) {
    loop {
        let drained_starts: BTreeSet<ProgramPoint> =
            loads.iter().filter(|load| load.is_drained).map(|load| load.start).collect();
        let readings: BTreeSet<ProgramPoint> = loads.iter().flat_map(|load| [load.start, load.end]).collect();
        let mut has_changed = false;
        for load in loads.iter_mut().filter(|load| !load.is_drained) {
            let between = (Bound::Excluded(load.start), Bound::Excluded(load.end));
            if drained_starts.range(load.start..load.end).next().is_some()
                || load.is_flat && clocks_wait && readings.range(between).next().is_some()
            {
                *load = drained(*load, neighbours);
                has_changed = true;
            }
        }
        if !has_changed {
            return;
        }
    }
}

/// Loads of a block, so that those of which one begins before the other has ended are together.
fn in_groups(mut loads: Vec<MeasuredLoad>) -> Vec<Vec<MeasuredLoad>> {
    loads.sort_by_key(|load| (load.start, load.inst));
    let mut groups: Vec<Vec<MeasuredLoad>> = Vec::new();
    let mut end = None;
    for load in loads {
        match groups.last_mut() {
            Some(group) if Some(load.start) < end => group.push(load),
            _ => groups.push(vec![load]),
        }
        end = end.max(Some(load.end));
    }
    groups
}

/// What loads have of something, each once, ascending.
fn distinct<T: Ord>(loads: &[MeasuredLoad], of: impl Fn(&MeasuredLoad) -> T) -> Vec<T> {
    let mut all: Vec<T> = loads.iter().map(of).collect();
    all.sort();
    all.dedup();
    all
}

impl Probe for MemoryLatency {
    fn name(&self) -> &'static str {
        if self.drains_all { "drained-latency" } else { "memory-latency" }
    }

    fn summary(&self) -> &'static str {
        match self.drains_all {
            false => "Cycles from each vector load to the end of the wait that completes it, with their distribution",
            true => "The same, each load alone: inserted code waits before it and after it",
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            alone: Some("what other probes insert would be in its latencies"),
            global_memory: Some("latencies are added up"),
            // What it takes to move registers would be in them.
            unused_registers: Some(
                "latencies would have in them what it takes to move registers: inserted code needs scalar and vector \
                    registers that no code uses",
            ),
            reads_clocks: true,
            ..Needs::default()
        }
    }

    fn prepare(&self, function: &ClonedFunction<'_>) -> Result<Box<dyn FunctionProbe>, Stop> {
        let mut sites = Vec::new();
        if function.body.kind() == BodyKind::Kernel {
            sites.push(ProbeSite { inst: function.entry(), kind: &EMPTY });
        }
        let loads = MeasuredLoads::of(function, self.drains_all);
        let of_loads = loads.0.iter().flatten();
        sites.extend(of_loads.map(|load| ProbeSite { inst: load.inst, kind: load.kind().schema() }));
        sites.sort_by_key(|site| site.inst);
        Ok(Box::new(LatencyOf { loads, sites }))
    }
}

impl FunctionProbe for LatencyOf {
    fn sites(&self) -> &[ProbeSite] {
        &self.sites
    }

    fn at_entry(&self, emitter: &mut Emitter<'_, '_>) -> Result<(), Stop> {
        let latency = Latency { clocks: Clocks::of(emitter.target())? };
        emitter.count_at(&EMPTY)?;
        let point = ProgramPoint { inst: emitter.function().entry(), side: Side::Before };
        emitter.measure_after(point, Asm::wait_before_branch, |m| latency.start(m, &[FIRST_SLOT]))?;
        emitter.measure(point, Scc::Preserved, |m| {
            latency.end(m, &[FIRST_SLOT])?;
            let counters = m.site();
            latency.count(m, FIRST_SLOT, counters)?;
            wait_for_counters(m)
        })
    }

    fn at_site(&self, site: &ProbeSite, emitter: &mut Emitter<'_, '_>) -> Result<(), Stop> {
        if *site.kind == *EMPTY {
            return Ok(());
        }
        let latency = Latency { clocks: Clocks::of(emitter.target())? };
        // The first of a group writes the code of all.
        let Some(group) = self.loads.beginning_with(site.inst) else { return Ok(()) };
        let intervals = distinct(group, |load| (load.start, load.end));
        let slot_of = |load: &MeasuredLoad| {
            let at = intervals.binary_search(&(load.start, load.end));
            at.map(|at| FIRST_SLOT + at as u32).map_err(|_| Error::internal("a measured load has no slot"))
        };
        let mut slots = Vec::new();
        let mut offsets = Vec::new();
        for load in group {
            slots.push(slot_of(load)?);
            offsets.push(emitter.offset_of(load.inst, load.kind().schema())?);
        }
        let slots_at = |point: ProgramPoint, of: fn(&MeasuredLoad) -> ProgramPoint| {
            let here = group.iter().zip(&slots).filter(move |(load, _)| of(load) == point).map(|(_, slot)| *slot);
            let mut here: Vec<u32> = here.collect();
            here.sort_unstable();
            here.dedup();
            here
        };
        let is_drained = group.iter().any(|load| load.is_drained);
        let is_flat = group.iter().any(|load| load.is_flat);
        for start in distinct(group, |load| load.start) {
            emitter.function().check_modes(start.inst)?;
            let here = slots_at(start, |load| load.start);
            emitter.measure_after(start, Asm::wait_before_branch, |m| {
                if is_drained {
                    m.asm.wait_vector_loads(is_flat)?;
                }
                latency.start(m, &here)
            })?;
        }
        let ends = distinct(group, |load| load.end);
        for end in &ends {
            emitter.function().check_modes(end.inst)?;
            let here = slots_at(*end, |load| load.end);
            // First of all, as the original's own waits are before: what comes between them and the reading of the
            // clock is the same then.
            let wait = |asm: &mut Asm| if is_drained { asm.wait_vector_loads(is_flat) } else { Ok(()) };
            emitter.measure_after(*end, wait, |m| {
                latency.end(m, &here)?;
                if Some(end) != ends.last() {
                    return Ok(());
                }
                for (slot, offset) in slots.iter().zip(&offsets) {
                    latency.count(m, *slot, *offset)?;
                }
                wait_for_counters(m)
            })?;
        }
        Ok(())
    }
}

/// Waits for the counters that were added to, where that counts among loads: a wait for a load that comes later would
/// be for them, too.
fn wait_for_counters(m: &mut Measurement<'_>) -> Result<()> {
    if counts_among_loads(m.asm.target()) { m.asm.wait_global_results() } else { Ok(()) }
}

/// Whether stores and atomics without return count among loads.
fn counts_among_loads(target: Target) -> bool {
    use wavetap_amdgpu::Counter;
    [Counter::Vs, Counter::Store].iter().all(|counter| target.largest_wait(*counter).is_none())
}

/// Writes the readings of clocks.
struct Latency {
    clocks: Clocks,
}

impl Latency {
    /// Reads the clock for these slots. Little comes after that: it is in the time.
    fn start(&self, m: &mut Measurement<'_>, slots: &[u32]) -> Result<()> {
        let (low, high, flags) = (m.r.first, m.r.second, m.r.saved_exec);
        let exec = m.exec();
        m.asm.masks("s_cmp_eq_u", &[exec, c(0)])?;
        m.asm.op("s_cselect_b32", &[s(flags), c(1 << IDLE_BIT), c(0)])?;
        if self.clocks.wraps() {
            self.clocks.ticks(&mut m.asm, m.r)?;
            m.asm.op("s_and_b32", &[s(low), s(low), c(TICKS_MASK)])?;
            m.asm.op("s_or_b32", &[s(high), s(low), s(flags)])?;
            self.clocks.read(&mut m.asm, m.r)?;
        } else {
            self.clocks.read(&mut m.asm, m.r)?;
            m.asm.op("s_or_b32", &[s(high), s(high), s(flags)])?;
        }
        slots.iter().try_for_each(|slot| m.wide_value(*slot, low))
    }

    /// Reads the clock, and puts what has passed since the first reading into these slots.
    fn end(&self, m: &mut Measurement<'_>, slots: &[u32]) -> Result<()> {
        let (now, passed) = (m.r.first, m.r.scratch);
        self.clocks.read(&mut m.asm, m.r)?;
        if self.clocks.wraps() {
            m.asm.op("s_mov_b32", &[s(m.r.saved_exec), s(now)])?;
            self.clocks.ticks(&mut m.asm, m.r)?;
        }
        for slot in slots {
            m.asm.states(LANE_STATES)?;
            load_slot(m, passed, *slot)?;
            if self.clocks.wraps() {
                self.passed_wrapping(m)?;
            } else {
                // Bit 63 stays what it is: less than 2^63 cycles have passed.
                subtract(&mut m.asm, passed, now, passed)?;
            }
            m.wide_value(*slot, passed)?;
        }
        Ok(())
    }

    /// From the first reading in the scratch pair, the clock in the saved-EXEC pair and the constant clock in the first
    /// register, what has passed: cycles, and in the high half whether the clock may have wrapped around meanwhile.
    fn passed_wrapping(&self, m: &mut Measurement<'_>) -> Result<()> {
        let (low, high, clock, flag) = (m.r.scratch, m.r.scratch + 1, m.r.saved_exec, m.r.saved_exec + 1);
        m.asm.op("s_sub_u32", &[s(low), s(clock), s(low)])?;
        m.asm.op("s_and_b32", &[s(low), s(low), c((1 << self.clocks.shader.bits()) - 1)])?;
        m.asm.op("s_sub_u32", &[s(flag), s(m.r.first), s(high)])?;
        m.asm.op("s_and_b32", &[s(flag), s(flag), c(TICKS_MASK)])?;
        m.asm.op("s_lshr_b32", &[s(flag), s(flag), c(SAFE_TICKS_SHIFT)])?;
        m.asm.op("s_cselect_b32", &[s(flag), c(1 << WRAPPED_BIT), c(0)])?;
        m.asm.op("s_and_b32", &[s(high), s(high), c(1 << IDLE_BIT)])?;
        m.asm.op("s_or_b32", &[s(high), s(high), s(flag)])
    }

    /// Adds what a slot says to the counters at an offset in the record.
    fn count(&self, m: &mut Measurement<'_>, slot: u32, offset: u32) -> Result<()> {
        let (low, high, scratch) = (m.r.first, m.r.second, m.r.scratch);
        let (exec, saved, data) = (m.exec(), m.saved_exec(), v2(m.data()));
        let (idle, done) = (m.asm.new_label(), m.asm.new_label());
        m.asm.masks("s_mov_b", &[saved, exec])?;
        m.asm.states(LANE_STATES)?;
        load_slot(m, low, slot)?;
        m.asm.op("s_bitcmp1_b32", &[s(high), c(IDLE_BIT)])?;
        m.asm.branch(Opcode::S_CBRANCH_SCC1, idle);
        if self.clocks.wraps() {
            m.asm.op("s_lshr_b32", &[s(scratch), s(high), c(WRAPPED_BIT)])?;
            m.asm.op("v_writelane_b32", &[v(m.data()), s(scratch), c(WRAPPED)])?;
            m.asm.op("s_mov_b32", &[s(high), c(0)])?;
        }
        m.wide_value(CYCLES, low)?;
        m.wide_value(LONGEST, low)?;
        m.asm.op("s_not_b64", &[crate::asm::s2(low), crate::asm::s2(low)])?;
        m.wide_value(SHORTEST, low)?;
        for (lanes, operation) in
            [(if self.clocks.wraps() { ADDED_WRAPPING } else { ADDED }, "atomic_add_x2"), (LARGEST, "atomic_umax_x2")]
        {
            let counters = m.beyond_record(offset)?;
            m.asm.masks("s_mov_b", &[exec, c(lanes)])?;
            m.asm.global(operation, counters, data, 0)?;
        }
        self.bucket(m, slot, offset + FIELDS_BEFORE_BUCKETS as u32 * COUNTER)?;
        let counters = m.beyond_record_by(s(low))?;
        m.asm.masks("s_mov_b", &[exec, c(ONE)])?;
        m.asm.global("atomic_add_x2", counters, data, 0)?;
        m.asm.branch(Opcode::S_BRANCH, done);
        m.asm.bind(idle);
        let counters = m.beyond_record(offset)?;
        m.asm.masks("s_mov_b", &[exec, c(IDLE)])?;
        m.asm.global("atomic_add_x2", counters, data, 0)?;
        m.asm.bind(done);
        m.asm.masks("s_mov_b", &[exec, saved])
    }

    /// Puts the offset of a slot's bucket into the first register: two for each power of two, from the first one on.
    fn bucket(&self, m: &mut Measurement<'_>, slot: u32, buckets: u32) -> Result<()> {
        /// Where the highest bit of a register is, and bits above the two that say which bucket it is.
        const TOP: u32 = 31;
        let (value, zeros) = (m.r.first, m.r.second);
        load_slot(m, value, slot)?;
        if !self.clocks.wraps() {
            m.asm.op("s_cmp_lg_u32", &[s(zeros), c(0)])?;
            m.asm.op("s_cselect_b32", &[s(value), c(u32::MAX), s(value)])?;
        }
        m.asm.op("s_max_u32", &[s(value), s(value), c(1 << FIRST_OCTAVE)])?;
        let leading = [Opcode::S_FLBIT_I32_B32, Opcode::S_CLZ_I32_U32];
        let is_there = wavetap_amdgpu::has_operation(m.asm.target(), leading[0]);
        m.asm.op(if is_there { "s_flbit_i32_b32" } else { "s_clz_i32_u32" }, &[s(zeros), s(value)])?;
        // The highest bit and the one below it: 2 or 3.
        m.asm.op("s_lshl_b32", &[s(value), s(value), s(zeros)])?;
        m.asm.op("s_lshr_b32", &[s(value), s(value), c(TOP - 1)])?;
        m.asm.op("s_lshl_b32", &[s(zeros), s(zeros), c(1)])?;
        m.asm.op("s_sub_u32", &[s(value), s(value), s(zeros)])?;
        m.asm.op("s_add_u32", &[s(value), s(value), c(2 * (TOP - FIRST_OCTAVE as u32) - 2)])?;
        m.asm.op("s_min_u32", &[s(value), s(value), c(BUCKETS as u32 - 1)])?;
        m.asm.op("s_lshl_b32", &[s(value), s(value), c(COUNTER.trailing_zeros())])?;
        m.asm.op("s_add_u32", &[s(value), s(value), c(buckets)])
    }
}

/// Reads a slot into a pair of scalar registers.
fn load_slot(m: &mut Measurement<'_>, to: u16, slot: u32) -> Result<()> {
    let data = m.data();
    (0..2).try_for_each(|half| m.asm.read_lane(to + half, data + half, slot))
}

const _: () = assert!(COUNTER as usize == size_of::<u64>(), "a lane adds a pair of registers to a counter");
