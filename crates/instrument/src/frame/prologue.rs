//! The code at a kernel's entry: claims a record for the wave, fills in its header and sets up the registers that
//! probes use.
//!
//! It keeps EXEC and puts every register that is set at entry where the original code expects it. SCC, VCC and all
//! other registers are undefined at entry (AMDGPUUsage, "Initial Kernel Execution State"), so it may use them.

use super::Frame;
use crate::asm::Global;
use crate::asm::{Asm, c, s, s2, v};
use crate::frame::entry::Entry;
use crate::frame::first_vector;
use crate::hazard_mitigation::Place;
use crate::scavenge::registers::{ScalarPool, Scalars};
use crate::scavenge::scalars::store_record;
use crate::scavenge::spill_slots::SpillSlots;
use crate::sink::{Counters, PrologueRegisters};
use wavetap_amdgpu::{EventHazards, Inst, Opcode, Reg, RegFile, Value};
use wavetap_analysis::kernel::Stop;
use wavetap_analysis::kernel::edit::{Label, Snippet};
use wavetap_base::error::Result;
use wavetap_profile::control;
use wavetap_profile::record;

/// The dispatch packet's first 32 bytes are loaded at once: eight registers.
const PACKET_DWORDS: u8 = 8;
/// Dword of the dispatch packet with the workgroup sizes x and y, 16 bits each (HSA, `hsa_kernel_dispatch_packet_t`).
const PACKET_WORKGROUP_SIZE: u16 = 1;
/// Dword of the dispatch packet with the grid size x; y follows.
const PACKET_GRID_SIZE: u16 = 3;
/// Dword of the dispatch packet with the LDS size.
const PACKET_GROUP_SEGMENT_SIZE: u16 = 7;
/// The control block's first 32 bytes are loaded at once: eight registers.
const CONTROL_DWORDS: u8 = 8;
/// Lanes that store the header: kernel, dispatch, workgroup x, y, z, wave.
const HEADER_LANES: u32 = 6;
/// Lanes of `executions` and `empty`, which always add 1: all lanes hold 1, others are overwritten when they count.
const ONE: u32 = 1;
/// log2 of a counter's bytes.
const COUNTER_SHIFT: u32 = 3;
/// log2 of a header field's bytes.
const FIELD_SHIFT: u32 = 2;
/// The low half of a register that packs two numbers.
const LOW_HALF: u32 = 0xffff;

/// Scalar registers of the prologue: at entry everything that the hardware does not set is free.
#[derive(Debug, Clone, Copy)]
struct Scratch {
    /// Address of the wave's record (pair): where the kernel keeps it, if it does.
    record: u16,
    /// EXEC at entry (pair).
    exec: u16,
    /// Address of the control block (pair).
    control: u16,
    /// The control block's first eight dwords.
    block: u16,
    /// Dispatch ordinal.
    dispatch: u16,
    /// The dispatch packet's first eight dwords.
    packet: u16,
    /// Work-item ids of the first lane; the first is later the wave's index in the workgroup.
    ids: [u16; 3],
    /// Record index.
    index: u16,
    /// Intermediate values.
    temporary: u16,
    /// Pair for sums of addresses (the block's buffer and what follows it are used up by then).
    sum: u16,
    /// What goes from scalar to vector registers goes through this one: a target may ask that no register of the
    /// original code does.
    through: Option<u16>,
}

impl Scratch {
    fn take(pool: &mut ScalarPool, record: u16, through: Option<u16>) -> Result<Scratch, Stop> {
        Ok(Scratch {
            record,
            block: pool.take(CONTROL_DWORDS.into(), 4)?,
            packet: pool.take(PACKET_DWORDS.into(), 4)?,
            exec: pool.take(2, 2)?,
            control: pool.take(2, 2)?,
            dispatch: pool.take(1, 1)?,
            ids: [pool.take(1, 1)?, pool.take(1, 1)?, pool.take(1, 1)?],
            index: pool.take(1, 1)?,
            temporary: pool.take(1, 1)?,
            sum: pool.take(2, 2)?,
            through,
        })
    }

    /// Register of the control block's dword at this offset.
    fn field(&self, offset: u64) -> u16 {
        self.block + (offset / 4) as u16
    }
}

/// The prologue, `first` before all. Also tells one more than the highest scalar register that it uses.
pub(crate) fn prologue(
    frame: &Frame<'_>,
    entry: &Entry,
    first: first_vector::Sequence,
) -> Result<(Snippet, u32), Stop> {
    let reserved = frame.reserved.map(|reserved| reserved.record);
    let own = frame.own();
    let taken = |number: u16| own.contains(Reg::scalar(number, 1));
    let mut pool = ScalarPool::new(frame.target, entry.scalars(), taken);
    let record = match reserved {
        Some(record) => record,
        None => pool.take(2, 2)?,
    };
    let through = frame
        .target
        .event_hazards()
        .contains(EventHazards::VALU_READ_SGPR)
        .then_some(())
        .and(frame.reserved)
        .map(|reserved| reserved.first);
    let t = Scratch::take(&mut pool, record, through)?;
    let groups = entry.workgroup_id_registers(|| pool.take(1, 1))?;
    let mut asm = Asm::new(frame.target, Place::Entry(own));
    let numbered = frame.target.addressable_sgprs() as u16;
    let numbered =
        first.iter().flat_map(Inst::writes).filter(|reg| reg.file == RegFile::Scalar && reg.first < numbered);
    let first_end = numbered.map(|reg| u32::from(reg.first) + u32::from(reg.dwords)).max().unwrap_or(0);
    first.into_iter().for_each(|inst| asm.copy(inst));
    let off = asm.new_label();
    let ready = asm.new_label();
    load(frame, entry, &mut asm, &t)?;
    if frame.sets_flat_scratch {
        entry.set_flat_scratch(&mut asm, frame.target, t.sum)?;
    }
    if let Some(resource) = frame.spill_slots.and_then(SpillSlots::resource) {
        entry.describe_scratch(&mut asm, resource)?;
    }
    entry.workgroup_ids(&mut asm, frame.target, groups, t.temporary)?;
    asm.op("s_cmp_eq_u64", &[s2(t.field(control::BUFFER)), c(0)])?;
    asm.branch(Opcode::S_CBRANCH_SCC1, off);
    wave_index(frame, groups, &mut asm, &t)?;
    claim(frame, &mut asm, &t, off)?;
    store_header(frame, groups, &mut asm, &t)?;
    init_counters(frame, &mut asm, &t)?;
    asm.branch(Opcode::S_BRANCH, ready);
    asm.bind(off);
    asm.op("s_mov_b64", &[s2(record), c(0)])?;
    if frame.spill_slots.is_some() {
        // What goes home has to be something.
        asm.exec_lanes(frame.target.wave_size())?;
        frame.vectors.kept().try_for_each(|register| asm.op("v_mov_b32_e32", &[v(register), c(0)]))?;
    }
    asm.bind(ready);
    if frame.reserved.is_none() {
        store_record(&mut asm, frame.vectors, record)?;
    }
    if let Some(homes) = frame.spill_slots {
        homes.keep_first(&mut asm, &frame.vectors, t.temporary)?;
    }
    let (exec, saved_exec) = (asm.exec(), asm.mask(t.exec));
    asm.masks("s_mov_b", &[exec, saved_exec])?;
    entry.restore(&mut asm)?;
    Ok((asm.finish()?, pool.end.max(first_end)))
}

/// Reads what the hardware and the host provide.
fn load(frame: &Frame<'_>, entry: &Entry, asm: &mut Asm, t: &Scratch) -> Result<()> {
    asm.scalar_load("s_load_dwordx8", t.packet, PACKET_DWORDS, entry.dispatch_ptr()?, 0)?;
    let (exec, saved_exec) = (asm.exec(), asm.mask(t.exec));
    asm.masks("s_mov_b", &[saved_exec, exec])?;
    asm.address(t.control, frame.control);
    asm.scalar_load("s_load_dwordx8", t.block, CONTROL_DWORDS, t.control, 0)?;
    // With XNACK, scalar loads that follow each other need something in between where their registers overlap; these do
    // not overlap.
    asm.scalar_load("s_load_dword", t.dispatch, 1, t.control, control::DISPATCH as u32)?;
    entry.first_lane_ids(asm, t.ids)?;
    asm.wait_scalar_loads()
}

/// Wave index in the workgroup: the flat work-item id of the first lane, in waves. Left in the first of the id
/// registers. The last workgroups of a row may be smaller than the packet says, and their work-items are numbered by
/// what they really have.
fn wave_index(frame: &Frame<'_>, [group_x, group_y, _]: [u16; 3], asm: &mut Asm, t: &Scratch) -> Result<()> {
    let [x, y, z] = t.ids;
    let (sizes, grid) = (t.packet + PACKET_WORKGROUP_SIZE, t.packet + PACKET_GRID_SIZE);
    // The packet's sizes and the record index are not needed before the end of this.
    let (size_x, size_y) = (t.temporary, t.index);
    asm.op("s_and_b32", &[s(size_x), s(sizes), c(LOW_HALF)])?;
    asm.op("s_lshr_b32", &[s(size_y), s(sizes), c(16)])?;
    for (size, group, grid) in [(size_x, group_x, grid), (size_y, group_y, grid + 1)] {
        asm.op("s_mul_i32", &[s(sizes), s(group), s(size)])?;
        asm.op("s_sub_u32", &[s(sizes), s(grid), s(sizes)])?;
        asm.op("s_min_u32", &[s(size), s(size), s(sizes)])?;
    }
    asm.op("s_mul_i32", &[s(z), s(z), s(size_y)])?;
    asm.op("s_add_u32", &[s(y), s(y), s(z)])?;
    asm.op("s_mul_i32", &[s(y), s(y), s(size_x)])?;
    asm.op("s_add_u32", &[s(x), s(x), s(y)])?;
    asm.op("s_lshr_b32", &[s(x), s(x), c(frame.target.wave_size().ilog2())])
}

/// Takes a record: its address in the record pair, or on to `off` with the wave counted as dropped. Leaves one lane
/// active.
fn claim(frame: &Frame<'_>, asm: &mut Asm, t: &Scratch, off: Label) -> Result<()> {
    let r = frame.vectors;
    let have = asm.new_label();
    let (one, zero) = (v(r.data), v(r.address));
    asm.exec_lanes(1)?;
    asm.op("v_mov_b32_e32", &[one, c(1)])?;
    asm.op("v_mov_b32_e32", &[zero, c(0)])?;
    asm.global_returning("atomic_add", r.data + 1, frame.at(t.control, t.sum), one, control::HEAD as u32)?;
    asm.wait_global_results()?;
    asm.op("v_readfirstlane_b32", &[s(t.index), v(r.data + 1)])?;
    let capacity = s(t.field(control::CAPACITY));
    asm.op("s_cmp_lt_u32", &[s(t.index), capacity])?;
    asm.branch(Opcode::S_CBRANCH_SCC1, have);
    // Full. Shared records: the capacity is a power of two and the index wraps. Otherwise the wave is dropped, visibly.
    let share = asm.new_label();
    asm.op("s_and_b32", &[s(t.temporary), s(t.field(control::FLAGS)), c(control::FLAG_SHARED)])?;
    asm.branch(Opcode::S_CBRANCH_SCC1, share);
    asm.global("atomic_add", frame.at(t.control, t.sum), one, control::DROPPED as u32)?;
    asm.branch(Opcode::S_BRANCH, off);
    asm.bind(share);
    asm.op("s_add_u32", &[s(t.temporary), capacity, Value::InlineInt(-1)])?;
    asm.op("s_and_b32", &[s(t.index), s(t.index), s(t.temporary)])?;
    asm.bind(have);
    let stride = s(t.field(control::STRIDE));
    let buffer = t.field(control::BUFFER);
    multiply_high(frame, asm, t.temporary, s(t.index), stride)?;
    asm.op("s_mul_i32", &[s(t.index), s(t.index), stride])?;
    asm.op("s_add_u32", &[s(t.record), s(buffer), s(t.index)])?;
    asm.op("s_addc_u32", &[s(t.record + 1), s(buffer + 1), s(t.temporary)])
}

/// The high half of a product; lane 0 is active.
fn multiply_high(frame: &Frame<'_>, asm: &mut Asm, into: u16, a: Value, b: Value) -> Result<()> {
    if wavetap_amdgpu::has_operation(frame.target, Opcode::S_MUL_HI_U32) {
        return asm.op("s_mul_hi_u32", &[s(into), a, b]);
    }
    let product = v(frame.vectors.data);
    asm.op("v_mov_b32_e32", &[product, a])?;
    asm.op("v_mul_hi_u32", &[product, product, b])?;
    asm.op("v_readfirstlane_b32", &[s(into), product])
}

/// Stores the record's header and counts the wave as begun.
fn store_header(frame: &Frame<'_>, [x, y, z]: [u16; 3], asm: &mut Asm, t: &Scratch) -> Result<()> {
    let r = frame.vectors;
    let lanes = frame.target.wave_size();
    asm.op("s_mov_b32", &[s(t.temporary), c(frame.kernel)])?;
    asm.exec_lanes(lanes)?;
    lane_number(frame, asm, r.data + 1)?;
    asm.op("v_lshlrev_b32_e32", &[v(r.data + 1), c(FIELD_SHIFT), v(r.data + 1)])?;
    lane_offsets(frame, asm, r.address)?;
    for (lane, field) in (0..).zip([t.temporary, t.dispatch, x, y, z, t.ids[0]]) {
        let field = asm.vector_source(field, t.through)?;
        asm.op("v_writelane_b32", &[v(r.data), field, c(lane)])?;
    }
    asm.exec_lanes(HEADER_LANES)?;
    asm.global("store_dword", Global { offsets: r.data + 1, ..frame.at(t.record, t.sum) }, v(r.data), 0)?;
    asm.exec_lanes(1)?;
    asm.op("v_mov_b32_e32", &[v(r.data), c(1)])?;
    // Lane 0 of the address register is 0.
    asm.global("atomic_add", frame.at(t.record, t.sum), v(r.data), record::BEGAN)?;
    asm.exec_lanes(lanes)
}

/// Sets up what probes expect of the vector registers, and the sink's counters. All lanes are active.
fn init_counters(frame: &Frame<'_>, asm: &mut Asm, t: &Scratch) -> Result<()> {
    let r = frame.vectors;
    asm.op("v_mov_b32_e32", &[v(r.data + 1), c(0)])?;
    let lds_size = t.packet + PACKET_GROUP_SEGMENT_SIZE;
    let registers = PrologueRegisters { lds_size, wave: t.ids[0], temporary: t.temporary, through: t.through };
    frame.sink.prologue(frame, asm, registers)?;
    if let Some(counters) = frame.entry_lanes {
        count_entry_lanes(frame, asm, t, counters)?;
    }
    asm.op("v_mov_b32_e32", &[v(r.data), c(ONE)])
}

/// Adds the lanes with which the wave begins to their counter. All lanes are active.
fn count_entry_lanes(frame: &Frame<'_>, asm: &mut Asm, t: &Scratch, counters: Counters) -> Result<()> {
    let r = Scalars {
        record: t.record,
        saved_exec: t.exec,
        scratch: t.sum,
        first: t.temporary,
        second: t.index,
        saved_scc: t.dispatch,
    };
    let lanes = frame.target.wave_size();
    let exec = asm.mask(t.exec);
    frame.sink.reach(frame, asm, r, counters)?;
    asm.masks("s_bcnt1_i32_b", &[s(t.index), exec])?;
    let number = asm.vector_source(t.index, t.through)?;
    asm.op("v_mov_b32_e32", &[v(frame.vectors.data), number])?;
    asm.exec_lanes(1)?;
    frame.sink.add(frame, asm, r, counters)?;
    asm.exec_lanes(lanes)
}

/// The offset of each lane's counter among the counters.
pub(crate) fn lane_offsets(frame: &Frame<'_>, asm: &mut Asm, into: u16) -> Result<()> {
    lane_number(frame, asm, into)?;
    asm.op("v_lshlrev_b32_e32", &[v(into), c(COUNTER_SHIFT), v(into)])
}

/// Each lane's number, whatever EXEC was at entry.
fn lane_number(frame: &Frame<'_>, asm: &mut Asm, into: u16) -> Result<()> {
    asm.op("v_mbcnt_lo_u32_b32", &[v(into), Value::InlineInt(-1), c(0)])?;
    if frame.target.wave_size() == 32 {
        return Ok(());
    }
    asm.op("v_mbcnt_hi_u32_b32", &[v(into), Value::InlineInt(-1), v(into)])
}
