//! The time probe: how long each wave ran, and how long it was in each basic block.
//!
//! Where a block begins, the shader's clock is read twice: first of all (the entry stamp), which ends the block that
//! the wave comes from, and last of all. Between the two the ended block's counters are added to: which block that is
//! shows when the wave leaves it, so that its offset is kept, with the last entry stamp, in lanes of inserted code's
//! own vector registers. Times are differences of stamps: their sum is the time of the wave.
//!
//! A shader clock of fewer bits than 64 is made one of 64: each stamp is the one before and what the clock has
//! advanced, which is right while less time passes than it takes the clock to wrap around. The constant clock says
//! whether that is certain. It is read once for each stamp, after the shader's: the readings before the last entry
//! stamp and after this one enclose what the two stamps say.

use super::clock::{Clocks, subtract};
use super::{Emitter, FunctionProbe, Measurement, Needs, Probe, ProbeSite, Scc};
use crate::asm::{c, s, s2, v, v2};
use crate::function::ClonedFunction;
use wavetap_amdgpu::ShaderClock;
use wavetap_analysis::kernel::{BodyKind, Reason, Refusal, Stop};
use wavetap_base::entity::{InstId, ProgramPoint, Side};
use wavetap_base::error::Result;
use wavetap_profile::probes::time::{BLOCK, EMPTY, PROBE, SAFE_TICKS_SHIFT, WAVE};
use wavetap_profile::record::COUNTER;

/// Lanes of the data pair with a block's counters: lane 0 (executions) always holds 1.
const CYCLES: u32 = 1;
const PROBE_CYCLES: u32 = 2;
const WRAPPED: u32 = 3;
/// Those that count where the clock does not wrap around, and where it may.
const COUNTED: u32 = 0b0111;
const COUNTED_WRAPPING: u32 = 0b1111;
/// Lanes of the data pair with a wave's counters after the first two, which are added: what maxima are formed of.
const SHORTEST: u32 = 2;
const LONGEST: u32 = 3;
const FIRST_BEGIN: u32 = 4;
const LAST_BEGIN: u32 = 5;
const LAST_END: u32 = 6;
const ADDED: u32 = 0b11;
const LARGEST: u32 = 0b111_1100;

/// Lanes of the data pair's high half that hold something from one snippet to the next, pairs with the low half first:
/// the last entry stamp, that with which the wave began, the constant clock when it began, and at the last two stamps.
const STAMP: u32 = 8;
const BEGIN: u32 = 10;
const BEGIN_TICKS: u32 = 12;
const TICKS: u32 = 14;
const EARLIER_TICKS: u32 = 16;
/// The offset in the record of the counters of the block that the wave is in.
const OFFSET: u32 = 18;

/// Wait states between writing a lane and reading one of the same register (1), and between reading a lane into a
/// scalar register and writing that into one (2): gfx94x. Elsewhere other instructions are in between.
const LANE_STATES: i64 = 2;

/// See the module.
#[derive(Debug)]
pub(super) struct Time;

/// What is measured in a function: its blocks, and in the kernel the wave and what its first block costs.
#[derive(Debug)]
struct TimeOf(Vec<ProbeSite>);

impl Probe for Time {
    fn name(&self) -> &'static str {
        PROBE
    }

    fn summary(&self) -> &'static str {
        "Time of every wave, and in every basic block, in cycles of the shader's clock"
    }

    fn needs(&self) -> Needs {
        Needs {
            alone: Some("what other probes insert would be in its times"),
            global_memory: Some("times are added up"),
            keeps_lanes: true,
            // A wave's last block ends where the wave does.
            every_end: true,
            reads_clocks: true,
            ..Needs::default()
        }
    }

    fn prepare(&self, function: &ClonedFunction<'_>) -> Result<Box<dyn FunctionProbe>, Stop> {
        let blocks = super::blocks::first_instructions(function).map(|inst| ProbeSite { inst, kind: &BLOCK });
        let mut sites: Vec<ProbeSite> = Vec::new();
        if function.body.kind() == BodyKind::Kernel {
            let inst = begin(function)?;
            sites.extend([&WAVE, &EMPTY].map(|kind| ProbeSite { inst, kind }));
        }
        sites.extend(blocks);
        sites.sort_by_key(|site| site.inst);
        Ok(Box::new(TimeOf(sites)))
    }
}

impl FunctionProbe for TimeOf {
    fn sites(&self) -> &[ProbeSite] {
        &self.0
    }

    fn at_entry(&self, emitter: &mut Emitter<'_, '_>) -> Result<(), Stop> {
        let clocks = Clocks::of(emitter.target())?;
        emitter.count_at(&EMPTY)?;
        let point = ProgramPoint { inst: emitter.function().entry(), side: Side::Before };
        emitter.measure(point, Scc::Preserved, |m| {
            clocks.begin(m)?;
            clocks.open(m)
        })
    }

    fn at_site(&self, site: &ProbeSite, emitter: &mut Emitter<'_, '_>) -> Result<(), Stop> {
        let clocks = Clocks::of(emitter.target())?;
        if *site.kind != *BLOCK {
            // The others are of the whole wave: what they count is added to at its entry and its ends.
            return Ok(());
        }
        emitter.measure(ProgramPoint { inst: site.inst, side: Side::Before }, Scc::Preserved, |m| {
            clocks.close(m)?;
            clocks.open(m)
        })
    }

    fn at_end(&self, end: ProgramPoint, emitter: &mut Emitter<'_, '_>) -> Result<(), Stop> {
        let clocks = Clocks::of(emitter.target())?;
        emitter.count_at(&WAVE)?;
        emitter.measure(end, Scc::Preserved, |m| {
            clocks.close(m)?;
            clocks.end(m)
        })
    }
}

/// The instruction before which a kernel's waves begin to be measured. Nothing may go back there.
fn begin(function: &ClonedFunction<'_>) -> Result<InstId, Stop> {
    let (body, cfg) = (function.body, &function.cfg);
    let begin = function.entry();
    // Code that loads arguments, where firmware has not, comes before.
    let is_earlier = |id: InstId| function.is_before_entry(id);
    let block = cfg.block(cfg.block_of(begin));
    let comes_back = block.predecessors.iter().any(|edge| !is_earlier(cfg.block(edge.block).last));
    if comes_back || (block.first != begin && !is_earlier(block.first)) {
        let detail = "a loop goes back to the first instruction, where the time of a wave begins";
        return Err(Refusal::at(Reason::TimedLoop, body.address(begin), detail).into());
    }
    Ok(begin)
}

impl Clocks {
    /// Puts the time in shader cycles into the pair of the first register, what comes after a stamp that is kept if
    /// there is one. Destroys SCC and the scratch pair.
    fn stamp(&self, m: &mut Measurement<'_>, has_earlier: bool) -> Result<()> {
        self.read(&mut m.asm, m.r)?;
        let ShaderClock::Register(field) = self.shader else { return Ok(()) };
        let (low, high, scratch) = (m.r.first, m.r.second, m.r.scratch);
        if !has_earlier {
            return m.asm.op("s_mov_b32", &[s(high), c(0)]);
        }
        load(m, scratch, STAMP)?;
        m.asm.op("s_sub_u32", &[s(low), s(low), s(scratch)])?;
        m.asm.op("s_and_b32", &[s(low), s(low), c((1 << field.bits) - 1)])?;
        m.asm.op("s_add_u32", &[s(low), s(low), s(scratch)])?;
        m.asm.op("s_addc_u32", &[s(high), s(scratch + 1), c(0)])
    }

    /// A wave begins.
    fn begin(&self, m: &mut Measurement<'_>) -> Result<()> {
        let now = m.r.first;
        self.ticks(&mut m.asm, m.r)?;
        store(m, BEGIN_TICKS, now)?;
        if self.wraps() {
            store(m, TICKS, now)?;
            store(m, EARLIER_TICKS, now)?;
        }
        self.stamp(m, false)?;
        store(m, STAMP, now)?;
        store(m, BEGIN, now)
    }

    /// Ends the block that the wave is in, and adds to its counters. The entry stamp of the next one is kept.
    fn close(&self, m: &mut Measurement<'_>) -> Result<()> {
        let (now, difference) = (m.r.first, m.r.scratch);
        self.stamp(m, true)?;
        load(m, difference, STAMP)?;
        store(m, STAMP, now)?;
        subtract(&mut m.asm, difference, now, difference)?;
        m.wide_value(CYCLES, difference)?;
        if self.wraps() {
            self.check_wrapping(m)?;
        }
        let offset = m.r.first;
        m.asm.states(LANE_STATES)?;
        m.asm.op("v_readlane_b32", &[s(offset), v(m.data() + 1), c(OFFSET)])?;
        let counters = m.beyond_record_by(s(offset))?;
        let (exec, saved, data) = (m.exec(), m.saved_exec(), v2(m.data()));
        m.asm.masks("s_mov_b", &[saved, exec])?;
        m.asm.masks("s_mov_b", &[exec, c(if self.wraps() { COUNTED_WRAPPING } else { COUNTED })])?;
        m.asm.global("atomic_add_x2", counters, data, 0)?;
        m.asm.masks("s_mov_b", &[exec, saved])
    }

    /// Says in its lane whether the clock may have wrapped around since the last entry stamp.
    fn check_wrapping(&self, m: &mut Measurement<'_>) -> Result<()> {
        let (now, scratch, wrapped) = (m.r.first, m.r.scratch, m.r.saved_exec);
        self.ticks(&mut m.asm, m.r)?;
        load(m, scratch, EARLIER_TICKS)?;
        subtract(&mut m.asm, scratch, now, scratch)?;
        m.asm.op("s_lshr_b64", &[s2(scratch), s2(scratch), c(SAFE_TICKS_SHIFT)])?;
        m.asm.op("s_cselect_b32", &[s(wrapped), c(1), c(0)])?;
        let data = m.data();
        m.asm.op("v_writelane_b32", &[v(data), s(wrapped), c(WRAPPED)])?;
        load(m, scratch, TICKS)?;
        store(m, EARLIER_TICKS, scratch)?;
        store(m, TICKS, now)
    }

    /// The wave is in the block with the site's counters from here on.
    fn open(&self, m: &mut Measurement<'_>) -> Result<()> {
        let (now, entry, data, offset) = (m.r.first, m.r.scratch, m.data(), c(m.site()));
        m.asm.op("s_mov_b32", &[s(now), offset])?;
        m.asm.op("v_writelane_b32", &[v(data + 1), s(now), c(OFFSET)])?;
        self.stamp(m, true)?;
        load(m, entry, STAMP)?;
        subtract(&mut m.asm, now, now, entry)?;
        m.wide_value(PROBE_CYCLES, now)
    }

    /// Adds to the site's counters, those of waves. The end is in the place of an entry stamp.
    fn end(&self, m: &mut Measurement<'_>) -> Result<()> {
        let (value, other) = (m.r.first, m.r.scratch);
        self.ticks(&mut m.asm, m.r)?;
        m.wide_value(LAST_END, value)?;
        m.asm.states(LANE_STATES)?;
        load(m, value, BEGIN_TICKS)?;
        m.asm.states(LANE_STATES)?;
        m.wide_value(LAST_BEGIN, value)?;
        m.asm.op("s_not_b64", &[s2(value), s2(value)])?;
        m.wide_value(FIRST_BEGIN, value)?;
        m.asm.states(LANE_STATES)?;
        load(m, value, STAMP)?;
        load(m, other, BEGIN)?;
        subtract(&mut m.asm, value, value, other)?;
        m.wide_value(CYCLES, value)?;
        m.wide_value(LONGEST, value)?;
        m.asm.op("s_not_b64", &[s2(value), s2(value)])?;
        m.wide_value(SHORTEST, value)?;
        let counters = m.beyond_record(m.site())?;
        let (exec, saved, data) = (m.exec(), m.saved_exec(), v2(m.data()));
        m.asm.masks("s_mov_b", &[saved, exec])?;
        for (lanes, operation) in [(ADDED, "atomic_add_x2"), (LARGEST, "atomic_umax_x2")] {
            m.asm.masks("s_mov_b", &[exec, c(lanes)])?;
            m.asm.global(operation, counters, data, 0)?;
        }
        m.asm.masks("s_mov_b", &[exec, saved])
    }
}

/// Reads a pair of lanes of what is kept into a pair of scalar registers.
fn load(m: &mut Measurement<'_>, to: u16, lane: u32) -> Result<()> {
    let kept = m.data() + 1;
    (0..2).try_for_each(|half| m.asm.read_lane(to + half, kept, lane + u32::from(half)))
}

/// Keeps a pair of scalar registers in a pair of lanes.
fn store(m: &mut Measurement<'_>, lane: u32, from: u16) -> Result<()> {
    let kept = v(m.data() + 1);
    (0..2).try_for_each(|half| m.asm.op("v_writelane_b32", &[kept, s(from + half), c(lane + u32::from(half))]))
}

const _: () = assert!(COUNTER as usize == size_of::<u64>(), "a lane adds a pair of registers to a counter");
