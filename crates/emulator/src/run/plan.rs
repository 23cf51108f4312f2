//! What a dispatch says, and how a kernel descriptor turns it into the initial state of a wave.
//!
//! The descriptor is read here from device memory, on purpose not through the code that rewrites descriptors.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use wavetap_amdgpu::{Demand, Limit, Target, VgprMsb, scalar};

use super::demands::Described;
use super::pool::Pool;
use super::room::{Room, resident_waves};
use crate::address::allocation::AllocationKind;
use crate::address::aperture::{PRIVATE_APERTURE, SHARED_APERTURE};
use crate::fault::{FaultKind, MemoryAccess};
use crate::float::Env;
use crate::lanes::{Register, Registers};
use crate::launch::Launch;
use crate::launch::options::Options;
use crate::launch::packet::{Dispatch, Origin, QueuedPacket};
use crate::launch::registers::RegisterDispatch;
use crate::memory::{Memory, View};
use crate::shadow::global::dispatches::DispatchNumber;
use crate::shadow::hazard::Hazards;
use crate::shadow::in_flight::InFlight;
use crate::shadow::init_shadow::InitShadow;
use crate::shadow::wave_checks::WaveChecks;
use crate::state::fp_mode::FpMode;
use crate::state::random::Random;
use crate::state::wave::{Status, Wave};

/// Bytes of the dispatch packet, and of what is in memory of the queue.
const PACKET_SIZE: u64 = 64;
const QUEUE_SIZE: u64 = 4096;
/// Operand code of the first trap temporary.
const TTMP: usize = 108;

/// A kernel descriptor's fields (AMDGPUUsage, "Kernel descriptor").
#[derive(Debug, Clone)]
pub(crate) struct Descriptor {
    entry: u64,
    properties: u16,
    preload: u16,
    rsrc1: u32,
    rsrc2: u32,
    rsrc3: u32,
    bytes: [u8; 64],
}

/// Bits of `kernel_code_properties`, in the order of the registers they enable.
mod property {
    pub(super) const PRIVATE_SEGMENT_BUFFER: u16 = 1;
    pub(super) const DISPATCH_PTR: u16 = 2;
    pub(super) const QUEUE_PTR: u16 = 4;
    pub(super) const KERNARG_SEGMENT_PTR: u16 = 8;
    pub(super) const DISPATCH_ID: u16 = 16;
    pub(super) const FLAT_SCRATCH_INIT: u16 = 32;
    pub(super) const PRIVATE_SEGMENT_SIZE: u16 = 64;
    pub(super) const WAVEFRONT_SIZE32: u16 = 1024;
}

/// Bit of `compute_pgm_rsrc1` (AMDGPUUsage, WGP_MODE).
const WGP_MODE: u32 = 1 << 29;
/// Bit of the third (gfx90a and later of its line).
const TG_SPLIT: u32 = 1 << 16;

/// Everything the waves of a dispatch share.
pub(crate) struct Plan {
    pub launch: Launch,
    pub descriptor: Descriptor,
    pub dispatch: Dispatch,
    /// Workgroups in x, y, z.
    pub groups: [u32; 3],
    vgprs: usize,
    agprs: usize,
    sgprs: u16,
    packet: u64,
    queue: u64,
    /// Packet and queue are the program's, not the emulator's copies.
    queued: bool,
    /// The first scalar registers, where no descriptor says what is in them.
    user_data: Option<Vec<u32>>,
    /// Waves that may be resident at once, limited by scratch.
    pub slots: usize,
    /// What a GPU has room for, where that is looked at.
    pub room: Option<Room>,
    /// Its number among dispatches and accesses of the host, where races in memory are checked.
    pub number: DispatchNumber,
}

fn setup<T>(reason: impl Into<Box<str>>) -> Result<T, FaultKind> {
    Err(FaultKind::Setup { reason: reason.into() })
}

impl Descriptor {
    fn read(memory: &View, address: u64) -> Result<Self, FaultKind> {
        let mut bytes = [0; 64];
        memory.read(address, &mut bytes, MemoryAccess::Load)?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        if !address.is_multiple_of(64) {
            return setup(format!("the kernel descriptor at {address:#x} is not aligned to 64 bytes"));
        }
        let offset = u64::from(word(16)) | u64::from(word(20)) << 32;
        let entry = address.wrapping_add(offset);
        if !entry.is_multiple_of(256) {
            return setup(format!("the kernel entry {entry:#x} is not aligned to 256 bytes"));
        }
        Ok(Descriptor {
            entry,
            rsrc3: word(44),
            rsrc1: word(48),
            rsrc2: word(52),
            properties: half(56),
            preload: half(58),
            bytes,
        })
    }

    /// What a descriptor would say whose kernel registers describe.
    fn of_registers(registers: &RegisterDispatch) -> Result<Self, FaultKind> {
        let RegisterDispatch { entry, rsrc: [rsrc1, rsrc2, rsrc3], wave32, .. } = *registers;
        if !entry.is_multiple_of(256) {
            return setup(format!("the kernel entry {entry:#x} is not aligned to 256 bytes"));
        }
        let properties = if wave32 { property::WAVEFRONT_SIZE32 } else { 0 };
        let mut bytes = [0; 64];
        for (at, word) in [(44, rsrc3), (48, rsrc1), (52, rsrc2), (56, properties.into())] {
            bytes[at..at + 4].copy_from_slice(&u32::to_le_bytes(word));
        }
        Ok(Descriptor { entry, properties, preload: 0, rsrc1, rsrc2, rsrc3, bytes })
    }

    /// The target with the size of the kernel's waves.
    fn machine(&self, target: Target) -> Result<Target, FaultKind> {
        let lanes = if self.has(property::WAVEFRONT_SIZE32) { 32 } else { 64 };
        let lacks = || setup(format!("the descriptor selects wave{lanes}, which {} lacks", target.name()));
        target.with_wave_size(lanes).map_or_else(lacks, Ok)
    }

    /// What a workgroup of so many work-items with so much LDS needs.
    fn demand(&self, target: Target, workgroup_size: u32, lds_bytes: u32) -> Demand {
        let (vgprs, agprs) = vector_registers(target, self);
        Demand {
            vgprs: (vgprs + if target.unified_accum() { agprs } else { 0 }) as u32,
            sgprs: scalar_registers(target, self).into(),
            lds_bytes,
            workgroup_size,
            wgp_mode: target.has_wgp_mode() && self.rsrc1 & WGP_MODE != 0,
        }
    }

    /// [`Descriptor::check_room`] of the descriptor at an address.
    pub(crate) fn check(
        memory: &View,
        target: Target,
        address: u64,
        (workgroup_size, lds_bytes): (u32, u32),
    ) -> Result<(), FaultKind> {
        let descriptor = Descriptor::read(memory, address)?;
        descriptor.check_room(descriptor.machine(target)?, workgroup_size, lds_bytes)
    }

    /// All waves of a workgroup run at the same time, or none: the packet processor refuses a dispatch of which no
    /// workgroup fits.
    fn check_room(&self, target: Target, workgroup_size: u32, lds_bytes: u32) -> Result<(), FaultKind> {
        let demand = self.demand(target, workgroup_size, lds_bytes);
        let occupancy = target.occupancy(&demand);
        if occupancy.workgroups > 0 {
            return Ok(());
        }
        let waves = workgroup_size.div_ceil(target.wave_size());
        let Demand { vgprs, sgprs, .. } = demand;
        let needs = match occupancy.limit {
            Limit::VectorRegisters => format!("{vgprs} vector registers for each lane"),
            Limit::ScalarRegisters => format!("{sgprs} scalar registers for each wave"),
            _ => format!("{lds_bytes} bytes of LDS"),
        };
        let reason = format!(
            "a workgroup of {workgroup_size} work-items has {waves} waves and needs {needs}, which no compute unit has"
        );
        Err(FaultKind::NoRoom { limit: occupancy.limit, reason: reason.into() })
    }

    /// A bit, counted from the start.
    fn bit(&self, bit: u16) -> bool {
        self.bytes[usize::from(bit / 8)] >> (bit % 8) & 1 != 0
    }

    fn has(&self, property: u16) -> bool {
        self.properties & property != 0
    }

    /// Kernel arguments put into scalar registers: how many dwords, from which.
    fn preloaded(&self) -> (u16, u16) {
        (self.preload & 0x7f, self.preload >> 7)
    }

    /// Where waves start.
    pub(crate) fn entry(&self, target: Target) -> u64 {
        // After the prologue that loads the arguments itself (AMDGPUUsage, "Preloaded kernel arguments").
        if self.preloaded().0 != 0 && target.has_preload_prologue() { self.entry + 256 } else { self.entry }
    }
}

impl Plan {
    /// Reads the descriptor, checks the sizes and puts packet, queue and scratch into memory.
    pub(crate) fn new(
        memory: &mut Memory,
        target: Target,
        options: &Options,
        dispatch: &Dispatch,
        origin: Origin,
    ) -> Result<Plan, FaultKind> {
        let registers = if let Origin::Registers(registers) = origin { Some(registers) } else { None };
        let descriptor = match registers {
            Some(registers) => Descriptor::of_registers(registers)?,
            None => Descriptor::read(&memory.view(), dispatch.kernel_object)?,
        };
        let target = descriptor.machine(target)?;
        let lanes = target.wave_size();
        if target.has_shared_vgprs() && lanes == 64 && descriptor.rsrc3 & 0xf != 0 {
            return setup("vector registers that the halves of a wave share are not emulated");
        }
        if let Some(bit) = target.dynamic_vgpr_bit()
            && descriptor.bit(bit)
        {
            return setup("waves that change their number of vector registers are not emulated");
        }
        let [x, y, z] = dispatch.workgroup.map(u32::from);
        if x == 0 || y == 0 || z == 0 || x.saturating_mul(y).saturating_mul(z) > target.max_workgroup() {
            let most = target.max_workgroup();
            return setup(format!("workgroup {x} x {y} x {z}: 1 to {most} work-items expected"));
        }
        if dispatch.grid.contains(&0) {
            return setup("empty grid");
        }
        if dispatch.group_segment_size > target.lds_bytes() {
            return setup(format!("{} bytes of LDS, there are {}", dispatch.group_segment_size, target.lds_bytes()));
        }
        // Registers are what firmware makes of a descriptor: it has checked that.
        if options.strict && registers.is_none() {
            let described = Described { bytes: &descriptor.bytes, target, entry: descriptor.entry };
            described.check(dispatch, |address, size| {
                memory.view().read(address, &mut vec![0; size as usize], MemoryAccess::Load).is_ok()
            })?;
        }
        descriptor.check_room(target, x * y * z, dispatch.group_segment_size)?;
        let groups = [dispatch.grid[0].div_ceil(x), dispatch.grid[1].div_ceil(y), dispatch.grid[2].div_ceil(z)];
        let (vgprs, agprs) = vector_registers(target, &descriptor);
        let sgprs = scalar_registers(target, &descriptor);
        let wave_scratch_size = (u64::from(dispatch.private_segment_size) * u64::from(lanes)).next_multiple_of(1024);
        let room = Room::new(options, target, || descriptor.demand(target, x * y * z, dispatch.group_segment_size));
        let slots = resident_waves(wave_scratch_size, room.is_some());
        // No more than there are waves.
        let most = groups.map(u64::from).iter().product::<u64>().saturating_mul(u64::from((x * y * z).div_ceil(lanes)));
        let (packet, queue) = match origin {
            Origin::Queue(QueuedPacket { packet, queue, .. }) => (packet, queue),
            // The kernel gets neither.
            Origin::Registers(_) => (0, 0),
            Origin::Caller => {
                let mut small = |size| memory.small_runtime(size).or_else(|error| setup(error.to_string()));
                (small(PACKET_SIZE)?, small(QUEUE_SIZE)?)
            }
        };
        let arena =
            if dispatch.private_segment_size == 0 { 0 } else { runtime(memory, wave_scratch_size * slots as u64)? };
        let arena_end = arena + if arena == 0 { 0 } else { wave_scratch_size * slots as u64 };
        let plan = Plan {
            launch: Launch {
                clock_mhz: u64::from(options.clock_mhz).max(1),
                strict: options.strict,
                target,
                passes: Arc::new(options.passes.clone()),
                waits: room.is_some(),
                yields: options.schedule.is_some_and(|seed| seed != 0),
                barriers: options.strict && options.barriers,
                lanes: lanes as usize,
                wait_states: target.wait_states(),
                event_hazards: target.event_hazards().difference(options.tolerated),
                apart: target.has_wgp_mode() && descriptor.rsrc1 & WGP_MODE != 0
                    || target.has_threadgroup_split() && descriptor.rsrc3 & TG_SPLIT != 0
                    || target.has_split_cache_ports(),
                architected_scratch: target.architected_flat_scratch(),
                flat_scratch_hidden: target.generation() >= 10,
                offset_scratch: target.offset_flat_scratch(),
                private_size: dispatch.private_segment_size,
                lds_size: dispatch.group_segment_size,
                scratch_arena: (arena, arena_end),
                wave_scratch_size,
            },
            descriptor,
            dispatch: dispatch.clone(),
            groups,
            vgprs,
            agprs,
            sgprs,
            packet,
            queue,
            queued: !matches!(origin, Origin::Caller),
            user_data: registers.map(|registers| registers.user_data.clone()),
            slots: (slots as u64).min(most) as usize,
            room,
            number: DispatchNumber::default(),
        };
        if !plan.queued {
            plan.write_packet(&memory.view())?;
        }
        Ok(plan)
    }

    /// The place of a workgroup in the order of their ids.
    pub(crate) fn number_of(&self, id: [u32; 3]) -> u64 {
        let ([nx, ny, _], [x, y, z]) = (self.groups.map(u64::from), id.map(u64::from));
        (z * ny + y) * nx + x
    }

    /// Frees what [`Plan::new`] put into memory.
    pub(crate) fn release(&self, memory: &mut Memory) {
        if !self.queued {
            memory.keep_runtime(self.packet, PACKET_SIZE);
            memory.keep_runtime(self.queue, QUEUE_SIZE);
        }
        // Address 0: there is no scratch.
        if self.launch.scratch_arena.0 != 0 {
            let _ = memory.remove(self.launch.scratch_arena.0);
        }
    }

    fn write_packet(&self, memory: &View) -> Result<(), FaultKind> {
        /// Packet type 2, kernel dispatch.
        const HEADER: u16 = 2;
        let d = &self.dispatch;
        let dimensions: u16 = if d.grid[2] > 1 || d.workgroup[2] > 1 {
            3
        } else if d.grid[1] > 1 || d.workgroup[1] > 1 {
            2
        } else {
            1
        };
        let mut bytes: SmallVec<[u8; 64]> = SmallVec::new();
        for half in [HEADER, dimensions, d.workgroup[0], d.workgroup[1], d.workgroup[2], 0] {
            bytes.extend(half.to_le_bytes());
        }
        for word in [d.grid[0], d.grid[1], d.grid[2], d.private_segment_size, d.group_segment_size] {
            bytes.extend(word.to_le_bytes());
        }
        for double in [d.kernel_object, d.kernarg_address, 0, 0] {
            bytes.extend(double.to_le_bytes());
        }
        memory.write(self.packet, &bytes, MemoryAccess::Store)?;
        // `amd_queue_t`: the high halves of the flat apertures.
        memory.write(self.queue + 0x40, &SHARED_APERTURE.to_le_bytes(), MemoryAccess::Store)?;
        memory.write(self.queue + 0x44, &PRIVATE_APERTURE.to_le_bytes(), MemoryAccess::Store)
    }

    /// The resources that a workgroup needs.
    pub(crate) fn demand(&self) -> Demand {
        let workgroup_size = self.dispatch.workgroup.map(u32::from).iter().product();
        self.descriptor.demand(self.launch.target, workgroup_size, self.launch.lds_size)
    }

    /// Work-items in x, y, z of a workgroup: the last ones of a row may be partial.
    fn group_size(&self, id: [u32; 3]) -> [u32; 3] {
        std::array::from_fn(|n| {
            let full = u32::from(self.dispatch.workgroup[n]);
            full.min(self.dispatch.grid[n] - id[n] * full)
        })
    }

    /// Waves of a workgroup.
    pub(crate) fn waves_of(&self, id: [u32; 3]) -> u32 {
        self.group_size(id).iter().product::<u32>().div_ceil(self.launch.lanes as u32)
    }

    /// A wave that has nothing yet; see [`Plan::begin`].
    pub(crate) fn blank(&self) -> Wave {
        Self::blank_wave(&self.launch)
    }

    /// [`Plan::blank`] of what the dispatch fixes.
    pub(crate) fn blank_wave(launch: &Launch) -> Wave {
        let Launch { strict, target, wait_states, .. } = *launch;
        Wave {
            sgpr: [0; 128],
            vgpr: Registers::new(),
            agpr: Registers::new(),
            scc: false,
            mode: 0,
            env: Env::from_mode(0),
            fp_mode: FpMode::of(0),
            vgpr_msb: VgprMsb::default(),
            after_mode_write: None,
            scheduling: 0,
            trapsts: 0,
            pc: 0,
            jumped: false,
            status: Status::Running,
            gws_request: None,
            clock_wait: None,
            sgpr_count: 0,
            scratch: 0,
            group: 0,
            group_id: [0; 3],
            index: 0,
            in_flight: InFlight::new(strict, target),
            hazards: Hazards::new(strict, wait_states),
            checks: WaveChecks::new(strict),
            flat_scratch: 0,
            lanes: 0,
            signalled: 0,
            origins: None,
        }
    }

    /// Puts a wave at the kernel's entry: a blank one, or outside strict mode one that has ended. There, nothing
    /// but what is set here matters of it.
    pub(crate) fn begin(
        &self,
        wave: &mut Wave,
        memory: &View,
        (random, pool): (&mut Random, &mut Pool),
        group_id: [u32; 3],
        (index, slot): (u32, usize),
    ) -> Result<(), FaultKind> {
        let strict = self.launch.strict;
        if strict {
            let mut undefined = || random.next() as u32;
            wave.sgpr.iter_mut().for_each(|register| *register = undefined());
            let mut vector = |count: usize| -> Registers {
                (0..count).map(|_| Box::new(Register(std::array::from_fn(|_| undefined())))).collect()
            };
            (wave.vgpr, wave.agpr) = (vector(self.vgprs), vector(self.agprs));
            wave.scc = undefined() & 1 != 0;
        } else {
            wave.sgpr.fill(0);
            pool.registers(&mut wave.vgpr, self.vgprs);
            pool.registers(&mut wave.agpr, self.agprs);
            wave.scc = false;
        }
        let scratch_offset = self.launch.wave_scratch_size * slot as u64;
        let scratch = if self.launch.scratch_arena.0 == 0 { 0 } else { self.launch.scratch_arena.0 + scratch_offset };

        let size = self.group_size(group_id);
        let total: u32 = size.iter().product();
        let width = self.launch.lanes as u32;
        let first = index * width;
        let lanes = (total - first).min(width);
        let exec = if lanes == 64 { u64::MAX } else { (1 << lanes) - 1 };
        self.work_item_ids(&mut wave.vgpr, size, first, lanes);
        let written = self.scalars(memory, &mut wave.sgpr, group_id, index, total, scratch_offset as u32)?;
        if strict && scratch != 0 {
            fill(memory, random, scratch, self.launch.wave_scratch_size)?;
        }

        wave.set_mode(self.mode());
        wave.vgpr_msb = VgprMsb::default();
        wave.after_mode_write = None;
        wave.scheduling = 0;
        wave.trapsts = 0;
        wave.pc = self.descriptor.entry(self.launch.target);
        wave.jumped = false;
        wave.status = Status::Running;
        wave.gws_request = None;
        wave.clock_wait = None;
        wave.sgpr_count = self.sgprs;
        wave.scratch = scratch;
        wave.group = slot;
        wave.group_id = group_id;
        wave.index = index;
        wave.flat_scratch = if self.launch.architected_scratch { scratch } else { 0 };
        wave.lanes = if self.launch.lanes == 32 { 0xffff_ffff } else { u64::MAX };
        wave.signalled = 0;
        wave.origins = None;
        wave.set_pair(scalar::EXEC, exec);
        if strict {
            wave.checks.present = exec;
            self.initially_defined(&mut wave.checks.init_shadow, exec, written);
        }
        if self.launch.architected_scratch && !self.launch.flat_scratch_hidden {
            wave.set_pair(scalar::FLAT_SCRATCH, scratch);
        }
        if self.launch.target.architected_workgroup_ids() {
            // Trap temporaries that the hardware fills (AMDGPUUsage, "Initial Kernel Execution State"): the ids, and
            // the wave's number in ttmp8.
            wave.sgpr[TTMP + 9] = group_id[0];
            wave.sgpr[TTMP + 7] = group_id[1] & 0xffff | group_id[2] << 16;
            wave.sgpr[TTMP + 8] = index << 25;
            // Place in a cluster of one workgroup.
            if self.launch.target.has_clusters() {
                wave.sgpr[TTMP + 6] = 0;
            }
        }
        Ok(())
    }

    /// Which registers hold something at the kernel's entry.
    fn initially_defined(&self, shadow: &mut InitShadow, lanes: u64, scalars: [Range<usize>; 2]) {
        for written in scalars {
            shadow.define(written.start as u16, written.len() as u16);
        }
        let ids =
            if self.launch.target.packed_work_item_ids() { 1 } else { (self.descriptor.rsrc2 >> 11 & 3) as u16 + 1 };
        (0..ids).for_each(|register| shadow.define_lanes(register, lanes));
        if self.launch.architected_scratch && !self.launch.flat_scratch_hidden {
            shadow.define(scalar::FLAT_SCRATCH, 2);
        }
        if self.launch.target.architected_workgroup_ids() {
            shadow.define(TTMP as u16 + 7, 3);
            if self.launch.target.has_clusters() {
                shadow.define(TTMP as u16 + 6, 1);
            }
        }
    }

    /// MODE at the kernel's entry.
    fn mode(&self) -> u32 {
        let rsrc1 = self.descriptor.rsrc1;
        // Rounding 15:12 and denormals 19:16 become 7:0; DX10_CLAMP 21, IEEE 23, FP16_OVFL 26.
        let floats = rsrc1 >> 12 & 0xff | (rsrc1 >> 26 & 1) << 23;
        if self.launch.target.has_float_mode_bits() {
            floats | (rsrc1 >> 21 & 1) << 8 | (rsrc1 >> 23 & 1) << 9
        } else {
            // Later ones always behave so (RDNA4 ISA guide, "Mode register").
            floats | 1 << 8 | 1 << 9
        }
    }

    fn work_item_ids(&self, vgpr: &mut Registers, size: [u32; 3], first: u32, lanes: u32) {
        let dimensions = self.descriptor.rsrc2 >> 11 & 3;
        let mut id = [first % size[0], first / size[0] % size[1], first / (size[0] * size[1])];
        for lane in 0..lanes as usize {
            if lane > 0 {
                id[0] += 1;
            }
            if id[0] == size[0] {
                id = [0, id[1] + 1, id[2]];
            }
            if id[1] == size[1] {
                id = [0, 0, id[2] + 1];
            }
            if self.launch.target.packed_work_item_ids() {
                let y = if dimensions >= 1 { id[1] << 10 } else { 0 };
                let z = if dimensions >= 2 { id[2] << 20 } else { 0 };
                if let Some(register) = vgpr.first_mut() {
                    register[lane] = id[0] | y | z;
                }
            } else {
                for (register, value) in vgpr.iter_mut().zip(id).take(dimensions as usize + 1) {
                    register[lane] = value;
                }
            }
        }
    }

    /// How many user registers the descriptor declares.
    fn declared_user_registers(&self) -> usize {
        let bits = if self.launch.target.max_user_sgprs() > 16 { 0x3f } else { 0x1f };
        (self.descriptor.rsrc2 >> 1 & bits) as usize
    }

    /// Scalar registers: user ones in the order of the descriptor's bits, then the system's. Gives which were written.
    fn scalars(
        &self,
        memory: &View,
        sgpr: &mut [u32; 128],
        group: [u32; 3],
        index: u32,
        total: u32,
        scratch_offset: u32,
    ) -> Result<[Range<usize>; 2], FaultKind> {
        let d = &self.descriptor;
        let mut user: SmallVec<[u32; 32]> = SmallVec::new();
        let pair = |value: u64| [value as u32, (value >> 32) as u32];
        let arena = self.launch.scratch_arena;
        if let Some(data) = &self.user_data {
            user.extend(data.iter().copied().take(self.declared_user_registers()));
        }
        if d.has(property::PRIVATE_SEGMENT_BUFFER) {
            // A swizzled buffer with the lane added: SWIZZLE_ENABLE, INDEX_STRIDE as many as there are lanes,
            // ADD_TID_ENABLE.
            let stride = if self.launch.lanes == 32 { 2 } else { 3 };
            // From gfx10 on without bounds (OOB_SELECT 2), as runtimes set it up.
            let unchecked = if self.launch.target.generation() >= 10 { 2 << 28 } else { 0 };
            user.extend([
                arena.0 as u32,
                (arena.0 >> 32) as u32 | 1 << 31,
                (arena.1 - arena.0) as u32,
                stride << 21 | 1 << 23 | unchecked,
            ]);
        }
        if d.has(property::DISPATCH_PTR) {
            user.extend(pair(self.packet));
        }
        if d.has(property::QUEUE_PTR) {
            user.extend(pair(self.queue));
        }
        if d.has(property::KERNARG_SEGMENT_PTR) {
            user.extend(pair(self.dispatch.kernarg_address));
        }
        if d.has(property::DISPATCH_ID) {
            user.extend(pair(self.dispatch.dispatch_id));
        }
        if d.has(property::FLAT_SCRATCH_INIT) {
            if self.launch.target.offset_flat_scratch() {
                // The offset from where all scratch is, which here is this dispatch's, and the bytes of a lane.
                user.extend([0, self.dispatch.private_segment_size]);
            } else {
                user.extend(pair(arena.0));
            }
        }
        let (length, offset) = d.preloaded();
        for n in 0..u64::from(length) {
            let mut bytes = [0; 4];
            memory.read(self.dispatch.kernarg_address + 4 * (u64::from(offset) + n), &mut bytes, MemoryAccess::Load)?;
            user.push(u32::from_le_bytes(bytes));
        }
        if d.has(property::PRIVATE_SEGMENT_SIZE) {
            user.push(self.dispatch.private_segment_size);
        }
        let declared = self.declared_user_registers();
        if user.len() > declared {
            return setup(format!("the descriptor enables {} user SGPRs and declares {declared}", user.len()));
        }
        sgpr[..user.len()].copy_from_slice(&user);
        let mut next = declared;
        let mut system = |value: u32| {
            sgpr[next] = value;
            next += 1;
        };
        for (axis, id) in group.into_iter().enumerate() {
            if d.rsrc2 >> (7 + axis) & 1 != 0 && !self.launch.target.architected_workgroup_ids() {
                system(id);
            }
        }
        if d.rsrc2 >> 10 & 1 != 0 {
            system(u32::from(index == 0) << 31 | total.div_ceil(self.launch.lanes as u32) & 0x3f);
        }
        // Architected scratch needs no offset.
        if d.rsrc2 & 1 != 0 && !self.launch.architected_scratch {
            system(scratch_offset);
        }
        Ok([0..user.len(), declared..next])
    }
}

/// Scalar registers of a wave by its descriptor, without the named ones.
fn scalar_registers(target: Target, d: &Descriptor) -> u16 {
    if target.generation() >= 10 {
        // There is always the same number.
        return target.addressable_sgprs() as u16;
    }
    // The field is twice a count of 16 less one from gfx9 on; gfx8 counts in 8 (AMDGPUUsage,
    // GRANULATED_WAVEFRONT_SGPR_COUNT).
    let field = d.rsrc1 >> 6 & 0xf;
    let allocated = if target.generation() >= 9 { (field / 2 + 1) * 16 } else { (field + 1) * 8 };
    allocated.min(target.addressable_sgprs()) as u16
}

/// VGPRs and AGPRs of a wave by its descriptor.
fn vector_registers(target: Target, d: &Descriptor) -> (usize, usize) {
    let allocated = ((d.rsrc1 & 0x3f) as usize + 1) * target.vgpr_encoded_granule() as usize;
    if target.unified_accum() {
        let accum_offset = ((d.rsrc3 & 0x3f) as usize + 1) * 4;
        let vector = allocated.min(accum_offset).min(256);
        (vector, (allocated - vector).min(256))
    } else {
        let vector = allocated.min(target.max_vgprs() as usize);
        (vector, if target.has_accum() { vector } else { 0 })
    }
}

fn runtime(memory: &mut Memory, size: u64) -> Result<u64, FaultKind> {
    memory.malloc(size, 4096, AllocationKind::Runtime).or_else(|error| setup(error.to_string()))
}

fn fill(memory: &View, random: &mut Random, address: u64, size: u64) -> Result<(), FaultKind> {
    let mut block = [0; 1024];
    for at in (0..size).step_by(block.len()) {
        block.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&random.next().to_le_bytes()));
        let length = (size - at).min(block.len() as u64) as usize;
        memory.write(address + at, &block[..length], MemoryAccess::Store)?;
    }
    Ok(())
}
