//! The device as the driver of a runtime sees it: memory that the program has allocated, code that it has put there,
//! packets in its queues. A runtime for HIP of this project's own needs none of this: it lets the device allocate, load
//! and make packets.

use std::sync::Arc;

use vm_memory::MmapRegion;
use wavetap_base::error::{Error, Result};

use super::Device;
use super::flight::Flight;
use super::workers;
use crate::address::ObjectId;
use crate::fault::{Fault, FaultKind, MemoryAccess};
use crate::launch::packet::{Dispatch, Origin, QueuedPacket};
use crate::launch::registers::RegisterDispatch;
use crate::memory::loader::CodeRange;
use crate::run::worker::Worker;

/// A range that may hold code.
pub(crate) struct PlacedCode {
    address: u64,
    size: u64,
    /// The object that its instructions are said to be in now: another one after each change.
    object: ObjectId,
}

impl Device {
    /// Maps pages of the host in at an address. Kernels and the program share them: aligned accesses of 4 and 8 bytes
    /// are indivisible for both, and atomics are those of the host.
    ///
    /// # Errors
    /// Unsupported if the range is empty or overlaps another.
    pub fn map(&mut self, address: u64, pages: Arc<MmapRegion>) -> Result<()> {
        self.memory.map(address, pages)
    }

    /// Ends a mapping that [`Device::map`] made; what was code in it is none any more.
    ///
    /// # Errors
    /// Unsupported if none starts at `address`.
    pub fn unmap(&mut self, address: u64) -> Result<()> {
        self.unregister_foreign(address)?;
        if let Some(at) = self.placed.iter().position(|placed| placed.address == address) {
            let placed = self.placed.swap_remove(at);
            self.code.remove(placed.object);
            self.code_has_changed();
        }
        Ok(())
    }

    /// Lets kernels execute what a mapping holds. Instructions are decoded when they are reached; who changes them says
    /// so by [`Device::forget_code`]. Places in it are offsets from its start.
    ///
    /// # Errors
    /// Unsupported if no mapping starts at `address`.
    pub fn allow_code(&mut self, address: u64) -> Result<()> {
        let mapping = self.memory.allocation_of(address).filter(|mapping| mapping.address == address);
        let Some(mapping) = mapping else {
            return Err(Error::unsupported(format!("no mapping starts at {address:#x}")));
        };
        let object = self.add_code(address, mapping.size);
        self.placed.push(PlacedCode { address, size: mapping.size, object });
        self.code_has_changed();
        Ok(())
    }

    /// Forgets what was decoded of code in mappings: it may have changed.
    pub fn forget_code(&mut self) {
        for mut placed in std::mem::take(&mut self.placed) {
            self.code.remove(placed.object);
            // A new id, so that threads of dispatches in flight forget it, too.
            placed.object = self.add_code(placed.address, placed.size);
            self.placed.push(placed);
        }
        self.code_has_changed();
    }

    fn add_code(&mut self, start: u64, size: u64) -> ObjectId {
        let id = ObjectId(self.next_object);
        self.next_object += 1;
        // XNACK is off, and error correction is on where the processor has it.
        let writes_all = self.target.supports_sramecc();
        self.code.add(id, start, &[CodeRange { start, end: start + size, replay: false, writes_all }]);
        id
    }

    fn code_has_changed(&mut self) {
        self.helpers.clear();
        self.changes += 1;
    }

    /// The address of the mapping whose code an object is, which changes with [`Device::forget_code`].
    #[must_use]
    pub fn code_base(&self, object: ObjectId) -> Option<u64> {
        self.placed.iter().find(|placed| placed.object == object).map(|placed| placed.address)
    }

    /// Begins the dispatch of a packet that lies in a queue. The packet must stay there until the dispatch has ended.
    ///
    /// # Errors
    /// A [`Fault`] if it cannot begin.
    pub fn begin_queued(&mut self, queued: QueuedPacket) -> std::result::Result<Flight, Fault> {
        let mut bytes = [0; 64];
        self.memory
            .view()
            .read(queued.packet, &mut bytes, MemoryAccess::Load)
            .map_err(|kind| Worker::outside(kind, [0; 3], 0))?;
        let dispatch = Dispatch::of_packet(&bytes, queued.dispatch_id);
        let (memory, clock) = (&mut self.memory, self.clock);
        let flight = workers::begin(self.target, &self.options, memory, clock, &dispatch, Origin::Queue(queued))?;
        Ok(self.begun(flight))
    }

    /// Begins a dispatch by what a command processor has written to registers. The hardware gives such a kernel neither
    /// a packet nor a queue; its arguments are where its user data say.
    ///
    /// # Errors
    /// A [`Fault`] if it cannot begin.
    pub fn begin_registers(&mut self, registers: &RegisterDispatch) -> std::result::Result<Flight, Fault> {
        let outside = |reason: &str| Worker::outside(FaultKind::Setup { reason: reason.into() }, [0; 3], 0);
        let mut grid = [0; 3];
        for (axis, size) in grid.iter_mut().enumerate() {
            let all = registers.groups[axis].checked_mul(registers.workgroup[axis].into());
            *size = all.ok_or_else(|| outside("a grid of 2^32 work-items in one dimension"))?;
        }
        if registers.wave_scratch_bytes != 0 && !self.target.architected_flat_scratch() {
            return Err(outside("scratch of a dispatch by registers, where its address is in user data"));
        }
        let lanes = if registers.wave32 { 32 } else { 64 };
        let dispatch = Dispatch {
            kernel_object: registers.entry,
            grid,
            workgroup: registers.workgroup,
            private_segment_size: registers.wave_scratch_bytes / lanes,
            group_segment_size: registers.lds_bytes,
            kernarg_address: 0,
            dispatch_id: 0,
        };
        let (memory, clock, origin) = (&mut self.memory, self.clock, Origin::Registers(registers));
        let flight = workers::begin(self.target, &self.options, memory, clock, &dispatch, origin)?;
        Ok(self.begun(flight))
    }

    /// Ends a dispatch that has not ended by itself, where its waves are.
    pub fn abandon(&mut self, flight: Flight) {
        flight.plan.release(&mut self.memory);
        self.end_races(&flight);
    }

    /// Replaces the aligned 4 or 8 bytes at an address by what `f` makes of them, in one step; returns what they were.
    ///
    /// # Errors
    /// Unsupported if they do not lie within one allocation.
    pub fn update(&self, address: u64, size: usize, f: impl Fn(u64) -> u64) -> Result<u64> {
        if !matches!(size, 4 | 8) || !address.is_multiple_of(size as u64) {
            return Err(Error::unsupported(format!("{size} bytes at {address:#x}: 4 or 8 aligned bytes expected")));
        }
        self.memory.view().update(address, size, f).map_err(|kind| Error::unsupported(kind.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use wavetap_amdgpu::Target;

    use super::*;
    use crate::launch::options::Options;

    /// Where the program's pages are on the device; what is where in them.
    const BASE: u64 = 0x1000_0000;
    const PACKET: u64 = BASE + 64;
    const QUEUE: u64 = BASE + 0x100;
    const KERNARG: u64 = BASE + 0x200;
    const RESULT: u64 = BASE + 0x300;
    const DESCRIPTOR: u64 = BASE + 0x400;
    const CODE: u64 = BASE + 0x500;

    /// Stores grid size, aperture and a constant, and adds to a counter; by llvm-mc for gfx90a.
    const KERNEL: [u32; 17] = [
        0xc006_0182,
        0x0000_0000, // s_load_dwordx2 s[6:7], s[4:5], 0x0
        0xc002_0200,
        0x0000_0010, // s_load_dword s8, s[0:1], 0x10
        0xc002_0241,
        0x0000_0040, // s_load_dword s9, s[2:3], 0x40
        0x7e00_0280, // v_mov_b32_e32 v0, 0
        MOVE_17,
        0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
        0x7e04_0208, // v_mov_b32_e32 v2, s8
        0x7e06_0209, // v_mov_b32_e32 v3, s9
        0xdc78_8000,
        0x0006_0200, // global_store_dwordx3 v0, v[2:4], s[6:7]
        0x7e0a_0281, // v_mov_b32_e32 v5, 1
        0xdd08_800c,
        0x0006_0500, // global_atomic_add v0, v5, s[6:7] offset:12
        0xbf81_0000, // s_endpgm
    ];
    /// `v_mov_b32 v4, 17`, and the same with 18.
    const MOVE_17: u32 = 0x7e08_0291;
    const MOVE_18: u32 = 0x7e08_0292;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// A device with pages that the program has put a kernel, a packet and a queue into.
    fn device() -> Device {
        let options = Options { strict: false, ..Options::default() };
        let mut device = Device::new(Target::by_name("gfx90a").expect("a target"), options);
        device.map(BASE, Arc::new(MmapRegion::new(0x1000).expect("memory"))).expect("a free range");
        device.allow_code(BASE).expect("a mapping");
        let mut descriptor = [0_u32; 16];
        descriptor[4] = (CODE - DESCRIPTOR) as u32;
        // Registers: 8 vector ones and no AGPRs after them, 16 scalar ones; 6 of these are packet, queue
        // and arguments.
        (descriptor[11], descriptor[12]) = (1, 1 << 6);
        descriptor[13] = 6 << 1;
        descriptor[14] = 2 | 4 | 8;
        device.write(DESCRIPTOR, &words(&descriptor)).expect("mapped");
        device.write(CODE, &words(&KERNEL)).expect("mapped");
        device.write(KERNARG, &RESULT.to_le_bytes()).expect("mapped");
        // Type 2, one dimension; workgroups of 64, a grid of 1 x 77 x 1.
        let mut packet = [0_u32; 16];
        (packet[0], packet[1], packet[2]) = (0x0002_0002, 64 << 16 | 1, 1);
        (packet[3], packet[4], packet[5]) = (1, 77, 1);
        (packet[8], packet[10]) = (DESCRIPTOR as u32, KERNARG as u32);
        device.write(PACKET, &words(&packet)).expect("mapped");
        device.write(QUEUE + 0x40, &0x1234_5678_u32.to_le_bytes()).expect("mapped");
        device
    }

    fn run(device: &mut Device) -> [u32; 4] {
        let queued = QueuedPacket { packet: PACKET, queue: QUEUE, dispatch_id: 0 };
        let mut flight = device.begin_queued(queued).expect("it begins");
        while device.advance(&mut flight, crate::Share::all()).expect("no fault").is_none() {}
        std::array::from_fn(|n| {
            let mut bytes = [0; 4];
            device.read(RESULT + 4 * n as u64, &mut bytes).expect("mapped");
            u32::from_le_bytes(bytes)
        })
    }

    #[test]
    fn kernels_read_the_real_packet_and_queue_and_run_changed_code() {
        let mut device = device();
        // Two waves of one lane row each: 64 and 13 work-items.
        assert_eq!(run(&mut device), [77, 0x1234_5678, 17, 77]);
        device.write(CODE + 28, &MOVE_18.to_le_bytes()).expect("mapped");
        device.forget_code();
        assert_eq!(run(&mut device), [77, 0x1234_5678, 18, 154]);
        assert_eq!(device.update(RESULT + 12, 4, |old| old + 1).ok(), Some(154));
        assert!(device.update(RESULT + 2, 4, |old| old).is_err());
    }

    #[test]
    fn what_is_unmapped_is_no_code() {
        let mut device = device();
        assert!(device.map(BASE + 0x800, Arc::new(MmapRegion::new(0x1000).expect("memory"))).is_err());
        device.unmap(BASE).expect("mapped");
        let queued = QueuedPacket { packet: PACKET, queue: QUEUE, dispatch_id: 0 };
        assert!(device.begin_queued(queued).is_err() && device.allow_code(BASE).is_err());
        // Mapped again without code: the kernel's first instruction is none.
        device.map(BASE, Arc::new(MmapRegion::new(0x1000).expect("memory"))).expect("a free range");
        assert!(device.begin_queued(queued).is_err());
    }
}
