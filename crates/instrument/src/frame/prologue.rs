//! The code at a kernel's entry: finds the wave's record and sets up the registers that probes use. Where each wave has
//! its own record it fills in its header.
//!
//! It keeps EXEC and puts every register that is set at entry where the original code expects it. SCC, VCC and all
//! other registers are undefined at entry (AMDGPUUsage, "Initial Kernel Execution State"), so it may use them.

use super::Frame;
use crate::asm::Global;
use crate::asm::{Asm, c, s, s2, v};
use crate::frame::entry::{Entry, EntryNeeds};
use crate::frame::{first_vector, kept_ranges};
use crate::hazard_mitigation::Place;
use crate::high_registers;
use crate::records::{RecordChoice, slot_offset};
use crate::scavenge::registers::{ScalarPool, Scalars};
use crate::scavenge::scalars::store_record;
use crate::scavenge::spill_slots::SpillSlots;
use crate::sink::PrologueRegisters;
use crate::site::Counters;
use wavetap_amdgpu::{EventHazards, Opcode, Reg, Value};
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
/// The lane of the data pair's high half with the number of free slots: no counter increases by what is there.
pub(crate) const SLOTS_LANE: u32 = 1;
/// log2 of a header field's bytes.
const FIELD_SHIFT: u32 = 2;
/// The low half of a register that packs two numbers.
const LOW_HALF: u32 = 0xffff;

/// Scalar registers of the prologue that every kernel has: at entry everything that the hardware does not set is free.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scratch {
    /// Address of the wave's record (pair): where the kernel keeps it, if it does.
    record: u16,
    /// EXEC at entry (pair).
    exec: u16,
    /// Address of the control block (pair).
    control: u16,
    /// Intermediate values.
    temporary: u16,
    /// Pair for sums of addresses.
    sum: u16,
    /// What goes from scalar to vector registers goes through this one: a target may ask that no register of the
    /// original code does.
    pub(super) through: Option<u16>,
}

impl Scratch {
    fn take(pool: &mut ScalarPool, frame: &Frame<'_>) -> Result<Scratch, Stop> {
        let record = match frame.own.reserved {
            Some(reserved) => reserved.record,
            None => pool.take(2, 2)?,
        };
        let reads_slowly = frame.own.target.event_hazards().contains(EventHazards::VALU_READ_SGPR);
        Ok(Scratch {
            record,
            exec: pool.take(2, 2)?,
            // Original code may write no register that an outstanding load reads.
            control: match frame.own.reserved {
                Some(reserved) => reserved.scratch,
                None => pool.take(2, 2)?,
            },
            temporary: pool.take(1, 1)?,
            sum: pool.take(2, 2)?,
            through: frame.own.reserved.filter(|_| reads_slowly).map(|reserved| reserved.first),
        })
    }
}

/// Scalar registers for the dispatch packet and where in it the wave is.
#[derive(Debug, Clone, Copy)]
struct PacketRegisters {
    /// The dispatch packet's first eight dwords.
    packet: u16,
    /// Work-item ids of the first lane; the first is later the wave's index in the workgroup.
    ids: [u16; 3],
}

impl PacketRegisters {
    fn take(pool: &mut ScalarPool) -> Result<PacketRegisters, Stop> {
        let packet = pool.take(PACKET_DWORDS.into(), 4)?;
        Ok(PacketRegisters { packet, ids: [pool.take(1, 1)?, pool.take(1, 1)?, pool.take(1, 1)?] })
    }

    fn load(&self, asm: &mut Asm, entry: &Entry) -> Result<()> {
        asm.scalar_load("s_load_dwordx8", self.packet, PACKET_DWORDS, entry.dispatch_ptr()?, 0)
    }
}

/// Scalar registers for the control block.
#[derive(Debug, Clone, Copy)]
struct BlockRegisters {
    /// The control block's first eight dwords.
    block: u16,
    /// Dispatch ordinal, and the waves of a workgroup.
    rest: u16,
    /// Record index.
    index: u16,
    /// Where workgroups are sampled.
    sample: Option<SampleRegisters>,
}

/// Scalar registers for what the control block says of sampled workgroups.
#[derive(Debug, Clone, Copy)]
struct SampleRegisters {
    /// Pair: the address of the sample table.
    table: u16,
    /// Bytes from one record to the next.
    stride: u16,
    /// Slots of a wave.
    slots: u16,
}

impl BlockRegisters {
    fn take(frame: &Frame<'_>, pool: &mut ScalarPool) -> Result<BlockRegisters, Stop> {
        let block = pool.take(CONTROL_DWORDS.into(), 4)?;
        let (rest, index) = (pool.take(2, 2)?, pool.take(1, 1)?);
        let sample = match frame.is_sampled {
            true => {
                let (table, stride, slots) = (pool.take(2, 2)?, pool.take(1, 1)?, pool.take(1, 1)?);
                Some(SampleRegisters { table, stride, slots })
            }
            false => None,
        };
        Ok(BlockRegisters { block, rest, index, sample })
    }

    /// Loads it.
    fn load(&self, asm: &mut Asm, t: &Scratch) -> Result<()> {
        asm.scalar_load("s_load_dwordx8", self.block, CONTROL_DWORDS, t.control, 0)?;
        asm.scalar_load("s_load_dwordx2", self.rest, 2, t.control, control::DISPATCH as u32)?;
        let Some(sample) = &self.sample else { return Ok(()) };
        asm.scalar_load("s_load_dwordx2", sample.table, 2, t.control, control::SAMPLE_TABLE as u32)?;
        asm.scalar_load("s_load_dword", sample.stride, 1, t.control, control::RECORD_STRIDE as u32)?;
        asm.scalar_load("s_load_dword", sample.slots, 1, t.control, control::SLOTS as u32)
    }

    /// Register of the control block's dword at this offset.
    fn field(&self, offset: u64) -> u16 {
        match offset {
            control::DISPATCH.. => self.rest + ((offset - control::DISPATCH) / 4) as u16,
            _ => self.block + (offset / 4) as u16,
        }
    }
}

/// The prologue, `first` before all. Also tells one more than the highest scalar register that it uses.
pub(crate) fn prologue(
    frame: &Frame<'_>,
    entry: &Entry,
    first: first_vector::Sequence,
) -> Result<(Snippet, u32), Stop> {
    let own = frame.own.own();
    let taken = |number: u16| own.contains(Reg::scalar(number, 1));
    let mut pool = ScalarPool::new(frame.own.target, entry.scalars(), taken);
    let t = Scratch::take(&mut pool, frame)?;
    let mut asm = Asm::new(frame.own.target, Place::Entry(own));
    let first_end = first_vector::end_of_scalars(frame.own.target, &first);
    first.into_iter().for_each(|inst| asm.copy(inst));
    match frame.records {
        RecordChoice::Slot(_) => slot(frame, entry, &mut asm, &t, &mut pool)?,
        RecordChoice::Own => own_record(frame, entry, &mut asm, &t, &mut pool)?,
    }
    if frame.own.reserved.is_none() {
        store_record(&mut asm, frame.own.vectors, t.record)?;
    }
    if let Some(slots) = frame.spill_slots {
        slots.keep_first(&mut asm, &frame.own.vectors, t.temporary)?;
    }
    let (exec, saved_exec) = (asm.exec(), asm.mask(t.exec));
    asm.masks("s_mov_b", &[exec, saved_exec])?;
    entry.restore(&mut asm)?;
    entry.load_arguments(&mut asm)?;
    let mut snippet = asm.finish()?;
    high_registers::at_entry(frame.own.target, frame.own.vectors.bank, &mut snippet)?;
    Ok((snippet, pool.end.max(first_end)))
}

/// The code where waves choose records by where they run: nothing is stored, and no wave waits for another.
fn slot(frame: &Frame<'_>, entry: &Entry, asm: &mut Asm, t: &Scratch, pool: &mut ScalarPool) -> Result<(), Stop> {
    let sink_needs_packet = frame.sink.entry_needs(frame.records) != EntryNeeds::Nothing;
    let packet = if sink_needs_packet || frame.checks_bounds { Some(PacketRegisters::take(pool)?) } else { None };
    let place = match frame.checks_bounds {
        true => Some((entry.workgroup_id_registers(|| pool.take(1, 1))?, pool.take(1, 1)?, pool.take(2, 2)?)),
        false => None,
    };
    let ready = asm.new_label();
    if let Some(packet) = &packet {
        packet.load(asm, entry)?;
    }
    save_exec(asm, t)?;
    asm.address(t.control, frame.control);
    // With XNACK, scalar loads that follow each other need something in between where their registers overlap; these do
    // not overlap.
    asm.scalar_load("s_load_dwordx2", t.record, 2, t.control, control::BUFFER as u32)?;
    if let Some((_, _, table)) = place {
        asm.scalar_load("s_load_dwordx2", table, 2, t.control, control::SAMPLE_TABLE as u32)?;
    }
    if let Some(packet) = &packet {
        entry.first_lane_ids(asm, packet.ids)?;
    }
    if !frame.delays_wait {
        asm.wait_scalar_loads()?;
    }
    scratch_access(frame, entry, asm, t)?;
    clear_spilled(frame, asm)?;
    if let Some((groups, ..)) = place {
        entry.workgroup_ids(asm, frame.own.target, groups, t.temporary)?;
    }
    if let Some(packet) = &packet {
        let off = if place.is_some() { asm.new_label() } else { ready };
        asm.op("s_cmp_eq_u64", &[s2(t.record), c(0)])?;
        asm.branch(Opcode::S_CBRANCH_SCC1, off);
        if place.is_some() {
            asm.aside();
            asm.bind(off);
            kept_ranges::disable(asm, frame.own.vectors)?;
            asm.branch(Opcode::S_BRANCH, ready);
            asm.aside_end();
        }
        match place {
            Some((groups, size, _)) => wave_index(frame, groups, asm, [t.temporary, size], packet)?,
            None => wave_number(frame, asm, t, packet)?,
        }
    }
    if sink_needs_packet && slot_offset(frame.records, frame.record_bytes, asm, t.temporary)? {
        asm.op("s_add_u32", &[s(t.record), s(t.record), s(t.temporary)])?;
        asm.op("s_addc_u32", &[s(t.record + 1), s(t.record + 1), c(0)])?;
    }
    asm.exec_lanes(frame.own.target.wave_size())?;
    asm.lane_offsets(frame.own.vectors.address)?;
    init_counters(frame, asm, t, packet.as_ref())?;
    if let (Some(([x, y, z], _, table)), Some(packet)) = (place, &packet) {
        kept_ranges::begin(frame, asm, t, [x, y, z, packet.ids[0]], table)?;
    }
    asm.bind(ready);
    Ok(())
}

/// The code where each wave has its own record, by its place in the grid.
fn own_record(frame: &Frame<'_>, entry: &Entry, asm: &mut Asm, t: &Scratch, pool: &mut ScalarPool) -> Result<(), Stop> {
    let packet = PacketRegisters::take(pool)?;
    let block = BlockRegisters::take(frame, pool)?;
    let groups = entry.workgroup_id_registers(|| pool.take(1, 1))?;
    let table = if frame.checks_bounds { Some(pool.take(2, 2)?) } else { None };
    let (off, ready) = (asm.new_label(), asm.new_label());
    packet.load(asm, entry)?;
    save_exec(asm, t)?;
    asm.address(t.control, frame.control);
    block.load(asm, t)?;
    if let Some(table) = table {
        asm.scalar_load("s_load_dwordx2", table, 2, t.control, control::SAMPLE_TABLE as u32)?;
    }
    entry.first_lane_ids(asm, packet.ids)?;
    asm.wait_scalar_loads()?;
    scratch_access(frame, entry, asm, t)?;
    entry.workgroup_ids(asm, frame.own.target, groups, t.temporary)?;
    asm.op("s_cmp_eq_u64", &[s2(block.field(control::BUFFER)), c(0)])?;
    asm.branch(Opcode::S_CBRANCH_SCC1, off);
    wave_index(frame, groups, asm, [t.temporary, block.index], &packet)?;
    find_record(frame, groups, asm, t, &packet, &block, off)?;
    store_header(frame, groups, asm, t, &packet, &block)?;
    init_counters(frame, asm, t, Some(&packet))?;
    if let Some(table) = table {
        let [x, y, z] = groups;
        kept_ranges::begin(frame, asm, t, [x, y, z, packet.ids[0]], table)?;
    }
    if let (Some(sample), true) = (&block.sample, frame.counts_slots) {
        let slots = asm.vector_source(sample.slots, t.through)?;
        asm.op("v_writelane_b32", &[v(frame.own.vectors.data + 1), slots, c(SLOTS_LANE)])?;
    }
    asm.branch(Opcode::S_BRANCH, ready);
    asm.bind(off);
    asm.op("s_mov_b64", &[s2(t.record), c(0)])?;
    clear_spilled(frame, asm)?;
    if frame.checks_bounds {
        kept_ranges::disable(asm, frame.own.vectors)?;
    }
    asm.bind(ready);
    Ok(())
}

fn save_exec(asm: &mut Asm, t: &Scratch) -> Result<()> {
    let (exec, saved_exec) = (asm.exec(), asm.mask(t.exec));
    asm.masks("s_mov_b", &[saved_exec, exec])
}

/// Makes scratch memory accessible, where inserted code needs that and the hardware does not do it.
fn scratch_access(frame: &Frame<'_>, entry: &Entry, asm: &mut Asm, t: &Scratch) -> Result<()> {
    if frame.sets_flat_scratch {
        entry.set_flat_scratch(asm, frame.own.target, t.sum)?;
    }
    match frame.spill_slots.and_then(SpillSlots::resource) {
        Some(resource) => entry.describe_scratch(asm, resource),
        None => Ok(()),
    }
}

/// Gives registers a value that go to their spill slots whether the wave counts or not.
fn clear_spilled(frame: &Frame<'_>, asm: &mut Asm) -> Result<()> {
    if frame.spill_slots.is_none() {
        return Ok(());
    }
    asm.exec_lanes(frame.own.target.wave_size())?;
    frame.own.vectors.registers().try_for_each(|register| asm.op("v_mov_b32_e32", &[v(register), c(0)]))
}

/// A number of the wave in the workgroup that no other of its waves has, below the waves of a whole workgroup. Left in
/// the first of the id registers. It takes every workgroup for a whole one: the ids of the first lanes of two waves are
/// at least a wave apart in a smaller one, and further if they are numbered as in a whole one.
fn wave_number(frame: &Frame<'_>, asm: &mut Asm, t: &Scratch, packet: &PacketRegisters) -> Result<()> {
    let sizes = packet.packet + PACKET_WORKGROUP_SIZE;
    asm.op("s_and_b32", &[s(t.temporary), s(sizes), c(LOW_HALF)])?;
    asm.op("s_lshr_b32", &[s(sizes), s(sizes), c(16)])?;
    flat_wave(frame, asm, packet.ids, [t.temporary, sizes])
}

/// Wave index in the workgroup: the flat work-item id of the first lane, in waves. Left in the first of the id
/// registers. The last workgroups of a row may be smaller than the packet says, and their work-items are numbered by
/// what they really have.
fn wave_index(
    frame: &Frame<'_>,
    [group_x, group_y, _]: [u16; 3],
    asm: &mut Asm,
    [size_x, size_y]: [u16; 2],
    packet: &PacketRegisters,
) -> Result<()> {
    let (sizes, grid) = (packet.packet + PACKET_WORKGROUP_SIZE, packet.packet + PACKET_GRID_SIZE);
    // The packet's sizes are not needed after this.
    asm.op("s_and_b32", &[s(size_x), s(sizes), c(LOW_HALF)])?;
    asm.op("s_lshr_b32", &[s(size_y), s(sizes), c(16)])?;
    for (size, group, grid) in [(size_x, group_x, grid), (size_y, group_y, grid + 1)] {
        asm.op("s_mul_i32", &[s(sizes), s(group), s(size)])?;
        asm.op("s_sub_u32", &[s(sizes), s(grid), s(sizes)])?;
        asm.op("s_min_u32", &[s(size), s(size), s(sizes)])?;
    }
    flat_wave(frame, asm, packet.ids, [size_x, size_y])
}

/// The flat work-item id in waves, in a workgroup of these sizes.
fn flat_wave(frame: &Frame<'_>, asm: &mut Asm, [x, y, z]: [u16; 3], [size_x, size_y]: [u16; 2]) -> Result<()> {
    asm.op("s_mul_i32", &[s(z), s(z), s(size_y)])?;
    asm.op("s_add_u32", &[s(y), s(y), s(z)])?;
    asm.op("s_mul_i32", &[s(y), s(y), s(size_x)])?;
    asm.op("s_add_u32", &[s(x), s(x), s(y)])?;
    asm.op("s_lshr_b32", &[s(x), s(x), c(frame.own.target.wave_size().ilog2())])
}

/// Puts the address of the wave's record into the record pair: record number (z * groups y + y) * groups x + x, times
/// the waves of a workgroup, plus the wave's index. Or goes on to `off` with the wave counted as dropped.
fn find_record(
    frame: &Frame<'_>,
    [x, y, z]: [u16; 3],
    asm: &mut Asm,
    t: &Scratch,
    packet: &PacketRegisters,
    block: &BlockRegisters,
    off: Label,
) -> Result<()> {
    let (index, field) = (block.index, |offset| s(block.field(offset)));
    let mut number = z;
    for (factor, summand) in [(control::GROUPS + 4, y), (control::GROUPS, x), (control::GROUP_WAVES, packet.ids[0])] {
        if let (Some(sample), control::GROUP_WAVES) = (&block.sample, factor) {
            sampled(asm, t, sample, index, off)?;
        }
        asm.op("s_mul_i32", &[s(index), s(number), field(factor)])?;
        asm.op("s_add_u32", &[s(index), s(index), s(summand)])?;
        number = index;
    }
    let have = asm.new_label();
    let capacity = field(control::CAPACITY);
    asm.op("s_cmp_lt_u32", &[s(index), capacity])?;
    asm.branch(Opcode::S_CBRANCH_SCC1, have);
    // Shared records: the capacity is a power of two and the index wraps. Otherwise the wave is dropped, visibly.
    let share = asm.new_label();
    asm.op("s_and_b32", &[s(t.temporary), field(control::FLAGS), c(control::FLAG_SHARED)])?;
    asm.branch(Opcode::S_CBRANCH_SCC1, share);
    let (one, zero) = (v(frame.own.vectors.data), v(frame.own.vectors.address));
    asm.exec_lanes(1)?;
    asm.op("v_mov_b32_e32", &[one, c(1)])?;
    asm.op("v_mov_b32_e32", &[zero, c(0)])?;
    asm.global("atomic_add", frame.own.at(t.control, t.sum), one, control::DROPPED as u32)?;
    asm.branch(Opcode::S_BRANCH, off);
    asm.bind(share);
    asm.op("s_add_u32", &[s(t.temporary), capacity, Value::InlineInt(-1)])?;
    asm.op("s_and_b32", &[s(index), s(index), s(t.temporary)])?;
    asm.bind(have);
    let stride = block.sample.map_or(c(frame.record_bytes), |sample| s(sample.stride));
    let buffer = block.field(control::BUFFER);
    multiply_high(frame, asm, t.temporary, index, stride)?;
    asm.op("s_mul_i32", &[s(index), s(index), stride])?;
    asm.op("s_add_u32", &[s(t.record), s(buffer), s(index)])?;
    asm.op("s_addc_u32", &[s(t.record + 1), s(buffer + 1), s(t.temporary)])
}

/// Puts the number of the workgroup among the sampled ones in place of its number, or goes on to `off`.
fn sampled(asm: &mut Asm, t: &Scratch, sample: &SampleRegisters, number: u16, off: Label) -> Result<()> {
    let SampleRegisters { table, .. } = *sample;
    asm.op("s_lshl_b32", &[s(t.temporary), s(number), c(size_of::<u32>().ilog2())])?;
    asm.op("s_add_u32", &[s(table), s(table), s(t.temporary)])?;
    asm.op("s_addc_u32", &[s(table + 1), s(table + 1), c(0)])?;
    asm.scalar_load("s_load_dword", number, 1, table, 0)?;
    asm.wait_scalar_loads()?;
    asm.op("s_cmp_eq_u32", &[s(number), Value::InlineInt(-1)])?;
    asm.branch(Opcode::S_CBRANCH_SCC1, off);
    Ok(())
}

/// The high half of a product; a lane is active.
fn multiply_high(frame: &Frame<'_>, asm: &mut Asm, into: u16, a: u16, b: Value) -> Result<()> {
    if wavetap_amdgpu::has_operation(frame.own.target, Opcode::S_MUL_HI_U32) {
        return asm.op("s_mul_hi_u32", &[s(into), s(a), b]);
    }
    let product = v(frame.own.vectors.data);
    asm.op("v_mov_b32_e32", &[product, b])?;
    asm.op("v_mul_hi_u32", &[product, s(a), product])?;
    asm.op("v_readfirstlane_b32", &[s(into), product])
}

/// Stores the record's header and counts the wave as begun. Leaves each lane's offset in the address register.
fn store_header(
    frame: &Frame<'_>,
    [x, y, z]: [u16; 3],
    asm: &mut Asm,
    t: &Scratch,
    packet: &PacketRegisters,
    block: &BlockRegisters,
) -> Result<()> {
    let r = frame.own.vectors;
    let lanes = frame.own.target.wave_size();
    asm.op("s_mov_b32", &[s(t.temporary), c(frame.kernel)])?;
    asm.exec_lanes(lanes)?;
    asm.lane_number(r.data + 1)?;
    asm.op("v_lshlrev_b32_e32", &[v(r.data + 1), c(FIELD_SHIFT), v(r.data + 1)])?;
    asm.lane_offsets(r.address)?;
    let fields = [t.temporary, block.field(control::DISPATCH), x, y, z, packet.ids[0]];
    for (lane, field) in (0..).zip(fields) {
        let field = asm.vector_source(field, t.through)?;
        asm.op("v_writelane_b32", &[v(r.data), field, c(lane)])?;
    }
    asm.exec_lanes(HEADER_LANES)?;
    asm.global("store_dword", Global { offsets: r.data + 1, ..frame.own.at(t.record, t.sum) }, v(r.data), 0)?;
    asm.exec_lanes(1)?;
    asm.op("v_mov_b32_e32", &[v(r.data), c(1)])?;
    // Lane 0 of the address register is 0.
    asm.global("atomic_add", frame.own.at(t.record, t.sum), v(r.data), record::BEGAN)?;
    asm.exec_lanes(lanes)
}

/// Sets up what probes expect of the vector registers, and the sink's counters. All lanes are active.
fn init_counters(frame: &Frame<'_>, asm: &mut Asm, t: &Scratch, packet: Option<&PacketRegisters>) -> Result<()> {
    let r = frame.own.vectors;
    asm.op("v_mov_b32_e32", &[v(r.data + 1), c(0)])?;
    let registers = PrologueRegisters {
        lds_size: packet.map(|packet| packet.packet + PACKET_GROUP_SEGMENT_SIZE),
        wave: packet.map(|packet| packet.ids[0]),
        temporary: t.temporary,
        through: t.through,
    };
    frame.sink.prologue(&frame.own, asm, registers)?;
    if let Some(counters) = frame.entry_lanes {
        let off = asm.new_label();
        if packet.is_none() {
            // Nothing has told waves that do not count yet.
            asm.op("s_cmp_eq_u64", &[s2(t.record), c(0)])?;
            asm.branch(Opcode::S_CBRANCH_SCC1, off);
        }
        count_entry_lanes(frame, asm, t, counters)?;
        asm.bind(off);
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
        // The control block has been read.
        second: t.control,
        saved_scc: t.control + 1,
    };
    let lanes = frame.own.target.wave_size();
    let exec = asm.mask(t.exec);
    frame.sink.reach(&frame.own, asm, r, counters)?;
    asm.masks("s_bcnt1_i32_b", &[s(r.second), exec])?;
    let number = asm.vector_source(r.second, t.through)?;
    asm.op("v_mov_b32_e32", &[v(frame.own.vectors.data), number])?;
    asm.exec_lanes(1)?;
    frame.sink.add(&frame.own, asm, r, counters)?;
    asm.exec_lanes(lanes)
}
