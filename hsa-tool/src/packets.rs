//! AQL packets (HSA Platform System Architecture 1.2, section 2.9): what a dispatch says, and what is changed in it.

use std::ops::Range;

/// Bytes of a packet.
pub(crate) const SIZE: usize = 64;

/// Types, in the low byte of the header.
const DISPATCH: u8 = 2;
const BARRIER_AND: u8 = 3;

/// Bits of the header: the barrier bit, and where the fences' scopes begin, of two bits each.
const BARRIER_BIT: u16 = 1 << 8;
const ACQUIRE: u16 = 9;
const RELEASE: u16 = 11;
/// A fence's scope: all agents and the host.
const SYSTEM: u16 = 2;

/// Fields of a dispatch.
const WORKGROUP: [usize; 3] = [4, 6, 8];
const GRID: [usize; 3] = [12, 16, 20];
const PRIVATE_SEGMENT: usize = 24;
const GROUP_SEGMENT: usize = 28;
const KERNEL_OBJECT: usize = 32;
const KERNARG: usize = 40;
/// The first of the five signals that a barrier waits for.
const DEPENDENCE: usize = 8;
/// The last field of dispatches and barriers.
const COMPLETION_SIGNAL: usize = 56;

/// A packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Packet(pub(crate) [u8; SIZE]);

impl Packet {
    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.0[at..at + N]);
        bytes
    }

    fn put(&mut self, range: Range<usize>, bytes: &[u8]) {
        self.0[range].copy_from_slice(bytes);
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }

    /// Whether it starts a kernel.
    pub(crate) fn is_dispatch(&self) -> bool {
        self.0[0] == DISPATCH
    }

    /// Work-items of a workgroup in x, y, z.
    pub(crate) fn workgroup(&self) -> [u32; 3] {
        WORKGROUP.map(|at| self.u16(at).into())
    }

    /// Work-items of the grid in x, y, z.
    pub(crate) fn grid(&self) -> [u32; 3] {
        GRID.map(|at| self.u32(at))
    }

    /// Scratch of a work-item in bytes.
    pub(crate) fn private_segment(&self) -> u32 {
        self.u32(PRIVATE_SEGMENT)
    }

    pub(crate) fn set_private_segment(&mut self, bytes: u32) {
        self.put(PRIVATE_SEGMENT..PRIVATE_SEGMENT + 4, &bytes.to_le_bytes());
    }

    /// LDS of a workgroup in bytes.
    pub(crate) fn group_segment(&self) -> u32 {
        self.u32(GROUP_SEGMENT)
    }

    pub(crate) fn set_group_segment(&mut self, bytes: u32) {
        self.put(GROUP_SEGMENT..GROUP_SEGMENT + 4, &bytes.to_le_bytes());
    }

    /// The address of the kernel's descriptor.
    pub(crate) fn kernel_object(&self) -> u64 {
        self.u64(KERNEL_OBJECT)
    }

    pub(crate) fn set_kernel_object(&mut self, address: u64) {
        self.put(KERNEL_OBJECT..KERNEL_OBJECT + 8, &address.to_le_bytes());
    }

    /// The address of the segment of arguments.
    pub(crate) fn kernarg_address(&self) -> u64 {
        self.u64(KERNARG)
    }

    /// The signal that it completes; 0 for none.
    pub(crate) fn completion_signal(&self) -> u64 {
        self.u64(COMPLETION_SIGNAL)
    }

    pub(crate) fn set_completion_signal(&mut self, signal: u64) {
        self.put(COMPLETION_SIGNAL..SIZE, &signal.to_le_bytes());
    }

    /// Makes a dispatch see what the host has written, and the host what the dispatch has.
    pub(crate) fn synchronise_with_host(&mut self) {
        let header = self.u16(0) & !(3 << ACQUIRE) & !(3 << RELEASE) | SYSTEM << ACQUIRE | SYSTEM << RELEASE;
        self.put(0..2, &header.to_le_bytes());
    }

    /// A barrier that completes a signal when all packets before it in its queue have ended and the host sees what they
    /// have written.
    pub(crate) fn all_ended(signal: u64) -> Packet {
        let mut packet = Packet([0; SIZE]);
        let header = u16::from(BARRIER_AND) | BARRIER_BIT | SYSTEM << RELEASE;
        packet.put(0..2, &header.to_le_bytes());
        packet.set_completion_signal(signal);
        packet
    }

    /// A barrier that keeps all packets after it in its queue back until a signal is 0, and then lets them see what the
    /// host has written.
    pub(crate) fn wait_for(signal: u64) -> Packet {
        let mut packet = Packet([0; SIZE]);
        let header = u16::from(BARRIER_AND) | BARRIER_BIT | SYSTEM << ACQUIRE;
        packet.put(0..2, &header.to_le_bytes());
        packet.put(DEPENDENCE..DEPENDENCE + 8, &signal.to_le_bytes());
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields of `hsa_kernel_dispatch_packet_t`, written as a compiler lays them out.
    #[repr(C)]
    struct Dispatch {
        header: u16,
        setup: u16,
        workgroup: [u16; 3],
        reserved0: u16,
        grid: [u32; 3],
        private_segment: u32,
        group_segment: u32,
        kernel_object: u64,
        kernarg: u64,
        reserved2: u64,
        completion_signal: u64,
    }

    #[test]
    fn fields_are_where_the_header_has_them() {
        use std::mem::offset_of;
        assert_eq!(size_of::<Dispatch>(), SIZE);
        assert_eq!(WORKGROUP[0], offset_of!(Dispatch, workgroup));
        assert_eq!(GRID[0], offset_of!(Dispatch, grid));
        assert_eq!(PRIVATE_SEGMENT, offset_of!(Dispatch, private_segment));
        assert_eq!(GROUP_SEGMENT, offset_of!(Dispatch, group_segment));
        assert_eq!(KERNEL_OBJECT, offset_of!(Dispatch, kernel_object));
        assert_eq!(KERNARG, offset_of!(Dispatch, kernarg));
        assert_eq!(COMPLETION_SIGNAL, offset_of!(Dispatch, completion_signal));
    }

    #[test]
    fn only_fences_change_in_a_header() {
        let mut packet = Packet([0xff; SIZE]);
        packet.put(0..2, &0x0b02_u16.to_le_bytes());
        packet.synchronise_with_host();
        assert_eq!(packet.u16(0), 0x1502, "type 2, barrier bit, acquire and release of system scope");
        assert_eq!(packet.0[2..], [0xff; SIZE - 2]);
        let barrier = Packet::all_ended(7);
        assert_eq!((barrier.u16(0), barrier.completion_signal()), (0x1103, 7));
        let barrier = Packet::wait_for(7);
        assert_eq!((barrier.u16(0), barrier.u64(8), barrier.completion_signal()), (0x503, 7, 0));
    }
}
