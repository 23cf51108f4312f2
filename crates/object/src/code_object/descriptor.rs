//! The kernel descriptor: 64 bytes that tell the command processor how to start a wave (AMDGPUUsage, "Kernel
//! Descriptor").

use wavetap_amdgpu::{Demand, Target};
use wavetap_base::bytes;
use wavetap_base::error::{Error, Result};

/// Bytes of a kernel descriptor.
pub const DESCRIPTOR_SIZE: u64 = 64;

/// A kernel's entry must lie on a multiple of this.
pub const ENTRY_ALIGN: u64 = 256;

/// A field: bit offset from the start of the descriptor, and width in bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// First bit.
    pub bit: u16,
    /// Number of bits, at most 32.
    pub width: u8,
}

const fn field(byte: u16, bit: u16, width: u8) -> Field {
    Field { bit: byte * 8 + bit, width }
}

/// Byte offset of `COMPUTE_PGM_RSRC3`.
const RSRC3: u16 = 44;
/// Byte offset of `COMPUTE_PGM_RSRC1`.
const RSRC1: u16 = 48;
/// Byte offset of `COMPUTE_PGM_RSRC2`.
const RSRC2: u16 = 52;
/// Byte offset of the kernel code properties.
const PROPERTIES: u16 = 56;
/// Byte offset of the kernel argument preload specification.
const PRELOAD: u16 = 58;

/// The fields of the gfx9 family's descriptors, by name.
impl Field {
    /// Static LDS in bytes.
    pub const GROUP_SEGMENT_FIXED_SIZE: Field = field(0, 0, 32);
    /// Scratch in bytes per work-item.
    pub const PRIVATE_SEGMENT_FIXED_SIZE: Field = field(4, 0, 32);
    /// Kernel argument bytes.
    pub const KERNARG_SIZE: Field = field(8, 0, 32);

    /// First AGPR, in fours, minus one (gfx90a, gfx94x).
    pub const ACCUM_OFFSET: Field = field(RSRC3, 0, 6);
    /// Waves of a workgroup may run on different compute units (gfx90a, gfx94x).
    pub const TG_SPLIT: Field = field(RSRC3, 16, 1);

    /// Vector registers that the two halves of a wave of 64 share, in eights ([`Target::has_shared_vgprs`]).
    pub const SHARED_VGPR_COUNT: Field = field(RSRC3, 0, 4);
    /// Workgroups of a cluster are spread out (gfx12).
    pub const GLG_EN: Field = field(RSRC3, 13, 1);
    /// Named barriers of a workgroup, in fours ([`Target::has_named_barriers`]).
    pub const NAMED_BAR_CNT: Field = field(RSRC3, 14, 3);
    /// There are image operations (gfx11 and later).
    pub const IMAGE_OP: Field = field(RSRC3, 31, 1);

    /// Vector registers in granules, minus one.
    pub const GRANULATED_WORKITEM_VGPR_COUNT: Field = field(RSRC1, 0, 6);
    /// Scalar registers in eights, minus one.
    pub const GRANULATED_WAVEFRONT_SGPR_COUNT: Field = field(RSRC1, 6, 4);
    /// Priority; set by the command processor.
    pub const PRIORITY: Field = field(RSRC1, 10, 2);
    /// Rounding of single precision.
    pub const FLOAT_ROUND_MODE_32: Field = field(RSRC1, 12, 2);
    /// Rounding of half and double precision.
    pub const FLOAT_ROUND_MODE_16_64: Field = field(RSRC1, 14, 2);
    /// Denormals of single precision.
    pub const FLOAT_DENORM_MODE_32: Field = field(RSRC1, 16, 2);
    /// Denormals of half and double precision.
    pub const FLOAT_DENORM_MODE_16_64: Field = field(RSRC1, 18, 2);
    /// Privileged; set by the command processor.
    pub const PRIV: Field = field(RSRC1, 20, 1);
    /// Clamp turns NaN into 0.
    pub const ENABLE_DX10_CLAMP: Field = field(RSRC1, 21, 1);
    /// Single-step; set by the command processor.
    pub const DEBUG_MODE: Field = field(RSRC1, 22, 1);
    /// Signalling NaNs become quiet.
    pub const ENABLE_IEEE_MODE: Field = field(RSRC1, 23, 1);
    /// One workgroup per compute unit; set by the command processor.
    pub const BULKY: Field = field(RSRC1, 24, 1);
    /// For the trap handler; set by the command processor.
    pub const CDBG_USER: Field = field(RSRC1, 25, 1);
    /// Half precision overflow clamps to the largest number.
    pub const FP16_OVFL: Field = field(RSRC1, 26, 1);

    /// A workgroup has the two compute units of a workgroup processor ([`Target::has_wgp_mode`]).
    pub const WGP_MODE: Field = field(RSRC1, 29, 1);
    /// Memory operations of a wave complete in order (gfx10 and later).
    pub const MEM_ORDERED: Field = field(RSRC1, 30, 1);
    /// Waves are scheduled so that each makes progress (gfx10 and later).
    pub const FWD_PROGRESS: Field = field(RSRC1, 31, 1);

    /// There is scratch; on targets without architected flat scratch this also asks for the wave's scratch offset
    /// register.
    pub const ENABLE_PRIVATE_SEGMENT: Field = field(RSRC2, 0, 1);
    /// Number of user SGPRs where there are at most 16 ([`KernelDescriptor::user_sgpr_count`]).
    pub const USER_SGPR_COUNT: Field = field(RSRC2, 1, 5);
    /// Set by the command processor. On gfx12.0 this bit is [`Field::enable_dynamic_vgpr`].
    pub const ENABLE_TRAP_HANDLER: Field = field(RSRC2, 6, 1);
    /// Workgroup id x in an SGPR.
    pub const ENABLE_WORKGROUP_ID_X: Field = field(RSRC2, 7, 1);
    /// Workgroup id y in an SGPR.
    pub const ENABLE_WORKGROUP_ID_Y: Field = field(RSRC2, 8, 1);
    /// Workgroup id z in an SGPR.
    pub const ENABLE_WORKGROUP_ID_Z: Field = field(RSRC2, 9, 1);
    /// Workgroup information in an SGPR.
    pub const ENABLE_WORKGROUP_INFO: Field = field(RSRC2, 10, 1);
    /// Highest work-item id dimension that has a VGPR: 0 = x, 1 = x and y, 2 = x, y and z.
    pub const ENABLE_VGPR_WORKITEM_ID: Field = field(RSRC2, 11, 2);
    /// LDS in granules; 0, because the dispatch packet says it.
    pub const GRANULATED_LDS_SIZE: Field = field(RSRC2, 15, 9);

    /// User SGPRs: the private segment buffer (4).
    pub const ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER: Field = field(PROPERTIES, 0, 1);
    /// User SGPRs: the dispatch packet's address (2).
    pub const ENABLE_SGPR_DISPATCH_PTR: Field = field(PROPERTIES, 1, 1);
    /// User SGPRs: the queue's address (2).
    pub const ENABLE_SGPR_QUEUE_PTR: Field = field(PROPERTIES, 2, 1);
    /// User SGPRs: the kernel arguments' address (2).
    pub const ENABLE_SGPR_KERNARG_SEGMENT_PTR: Field = field(PROPERTIES, 3, 1);
    /// User SGPRs: the dispatch's number (2).
    pub const ENABLE_SGPR_DISPATCH_ID: Field = field(PROPERTIES, 4, 1);
    /// User SGPRs: what flat scratch is set up with (2).
    pub const ENABLE_SGPR_FLAT_SCRATCH_INIT: Field = field(PROPERTIES, 5, 1);
    /// User SGPRs: scratch bytes per work-item (1).
    pub const ENABLE_SGPR_PRIVATE_SEGMENT_SIZE: Field = field(PROPERTIES, 6, 1);
    /// Wave32 (gfx10 and later).
    pub const ENABLE_WAVEFRONT_SIZE32: Field = field(PROPERTIES, 10, 1);
    /// The scratch size is not known statically.
    pub const USES_DYNAMIC_STACK: Field = field(PROPERTIES, 11, 1);

    /// Dwords of kernel arguments that are preloaded into user SGPRs (gfx90a, gfx94x).
    pub const KERNARG_PRELOAD_LENGTH: Field = field(PRELOAD, 0, 7);
    /// Dword of the kernel arguments where preloading starts.
    pub const KERNARG_PRELOAD_OFFSET: Field = field(PRELOAD, 7, 9);
}

impl Field {
    /// `INST_PREF_SIZE`: code that is prefetched when a wave starts, in lines of the instruction cache. None where
    /// there is no such field.
    #[must_use]
    pub fn prefetch_size(target: Target) -> Option<Field> {
        let width = target.prefetch_size_bits();
        (width > 0).then(|| field(RSRC3, PREFETCH_BIT, width))
    }

    /// `ENABLE_DYNAMIC_VGPR`: waves start with the registers that the descriptor counts and can change their number
    /// (`s_alloc_vgpr`). None where they cannot.
    ///
    /// It is where the target has it: in `COMPUTE_PGM_RSRC2` on gfx12.0 and in `COMPUTE_PGM_RSRC3` on gfx12.5.
    ///
    /// ```
    /// use wavetap_object::code_object::{Field, KernelDescriptor};
    /// use wavetap_amdgpu::Target;
    /// let field = Field::enable_dynamic_vgpr(Target::by_name("gfx1200").unwrap()).unwrap();
    /// let mut descriptor = KernelDescriptor::from_bytes([0; 64]);
    /// descriptor.set(field, 1)?;
    /// assert_eq!(descriptor.compute_pgm_rsrc2(), 1 << 6);
    /// # Ok::<(), wavetap_base::error::Error>(())
    /// ```
    #[must_use]
    pub fn enable_dynamic_vgpr(target: Target) -> Option<Field> {
        target.dynamic_vgpr_bit().map(|bit| Field { bit, width: 1 })
    }
}

/// Number of user SGPRs where there are more than 16 (gfx1250): the bit above is that of the trap handler elsewhere.
const WIDE_USER_SGPR_COUNT: Field = field(RSRC2, 1, 6);
/// User SGPRs that the narrow field counts.
const NARROW_USER_SGPRS: u32 = 16;
/// First bit of `INST_PREF_SIZE` in `COMPUTE_PGM_RSRC3`.
const PREFETCH_BIT: u16 = 4;

/// Byte offset of the signed distance from the descriptor to the kernel's entry.
const ENTRY_BYTE_OFFSET: u64 = 16;

/// A kernel descriptor. Every field is read and written in place, so that unknown and reserved bits stay as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelDescriptor {
    bytes: [u8; DESCRIPTOR_SIZE as usize],
}

impl KernelDescriptor {
    /// The descriptor in these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; DESCRIPTOR_SIZE as usize]) -> Self {
        KernelDescriptor { bytes }
    }

    /// The descriptor at `offset` of `data`.
    ///
    /// # Errors
    /// Malformed if it does not lie in `data`.
    pub fn read(data: &[u8], offset: u64) -> Result<Self> {
        let source = bytes::slice(data, offset, DESCRIPTOR_SIZE, "kernel descriptor")?;
        let mut bytes = [0; DESCRIPTOR_SIZE as usize];
        bytes.copy_from_slice(source);
        Ok(KernelDescriptor { bytes })
    }

    /// Its bytes.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; DESCRIPTOR_SIZE as usize] {
        &self.bytes
    }

    /// The 32 bits at a byte offset that is a multiple of 2 and at most 60.
    fn word(&self, byte: usize) -> u32 {
        u32::from_le_bytes([self.bytes[byte], self.bytes[byte + 1], self.bytes[byte + 2], self.bytes[byte + 3]])
    }

    /// The value of a field.
    #[must_use]
    pub fn get(&self, field: Field) -> u32 {
        let (byte, shift) = (usize::from(field.bit / 16 * 2), u32::from(field.bit % 16));
        let word = if byte + 4 <= self.bytes.len() { self.word(byte) } else { 0 };
        if field.width >= 32 { word } else { word >> shift & ((1 << field.width) - 1) }
    }

    /// Sets a field.
    ///
    /// # Errors
    /// A limit if the value does not fit.
    pub fn set(&mut self, field: Field, value: u32) -> Result<()> {
        let mask = if field.width >= 32 { u32::MAX } else { (1 << field.width) - 1 };
        if value & !mask != 0 {
            let (bit, width) = (field.bit, field.width);
            return Err(Error::limit(format!(
                "value {value} does not fit the {width} bits at bit {bit} of a kernel descriptor"
            )));
        }
        let (byte, shift) = (usize::from(field.bit / 16 * 2), u32::from(field.bit % 16));
        let word = self.word(byte) & !(mask << shift) | value << shift;
        self.bytes[byte..byte + 4].copy_from_slice(&word.to_le_bytes());
        Ok(())
    }

    /// Whether a one-bit field is set.
    #[must_use]
    pub fn is_set(&self, field: Field) -> bool {
        self.get(field) != 0
    }

    /// Signed distance in bytes from the descriptor's address to the kernel's entry.
    #[must_use]
    pub fn entry_byte_offset(&self) -> i64 {
        let at = ENTRY_BYTE_OFFSET as usize;
        i64::from(self.word(at)) | i64::from(self.word(at + 4) as i32) << 32
    }

    /// Sets the distance from the descriptor's address to the kernel's entry.
    pub fn set_entry_byte_offset(&mut self, offset: i64) {
        let at = ENTRY_BYTE_OFFSET as usize;
        self.bytes[at..at + 8].copy_from_slice(&offset.to_le_bytes());
    }

    /// `COMPUTE_PGM_RSRC1` as a whole.
    #[must_use]
    pub fn compute_pgm_rsrc1(&self) -> u32 {
        self.word(RSRC1.into())
    }

    /// `COMPUTE_PGM_RSRC2` as a whole.
    #[must_use]
    pub fn compute_pgm_rsrc2(&self) -> u32 {
        self.word(RSRC2.into())
    }

    /// Whether the waves of a workgroup may run on different compute units (threadgroup split mode): then it has no LDS
    /// (AMDGPUUsage, "Memory Model gfx90a").
    #[must_use]
    pub fn splits_threadgroups(&self, target: Target) -> bool {
        // The bit is there where vector and AGPRs are one allocation, and means something else
        // elsewhere.
        target.unified_accum() && self.is_set(Field::TG_SPLIT)
    }

    /// `COMPUTE_PGM_RSRC3` as a whole.
    #[must_use]
    pub fn compute_pgm_rsrc3(&self) -> u32 {
        self.word(RSRC3.into())
    }

    /// The target as this kernel uses it: with waves of the size that it asks for. Targets that have no choice ignore
    /// what it says.
    #[must_use]
    pub fn machine(&self, target: Target) -> Target {
        let lanes = if self.is_set(Field::ENABLE_WAVEFRONT_SIZE32) { 32 } else { 64 };
        target.with_wave_size(lanes).unwrap_or(target)
    }

    /// What a kernel with this descriptor asks of the machine, for workgroups of `workgroup_size` work items with
    /// `lds_bytes` of LDS.
    #[must_use]
    pub fn demand(&self, target: Target, lds_bytes: u32, workgroup_size: u32) -> Demand {
        let machine = self.machine(target);
        Demand {
            vgprs: self.allocated_vgprs(machine),
            sgprs: self.allocated_sgprs(machine),
            lds_bytes,
            workgroup_size,
            wgp_mode: machine.has_wgp_mode() && self.is_set(Field::WGP_MODE),
        }
    }

    /// Number of user SGPRs.
    #[must_use]
    pub fn user_sgpr_count(&self, target: Target) -> u32 {
        self.get(if target.max_user_sgprs() > NARROW_USER_SGPRS {
            WIDE_USER_SGPR_COUNT
        } else {
            Field::USER_SGPR_COUNT
        })
    }

    /// Bytes from the kernel's entry that are fetched ahead of its start (`INST_PREF_SIZE`); `None` on targets that
    /// cannot.
    #[must_use]
    pub fn prefetched_bytes(&self, target: Target) -> Option<u32> {
        Field::prefetch_size(target).map(|field| self.get(field) * target.code_line_bytes())
    }

    /// Vector registers that a lane asks for, AGPRs included where they share the allocation. What it
    /// is given may be more, see [`Target::vgpr_granule`].
    #[must_use]
    pub fn allocated_vgprs(&self, target: Target) -> u32 {
        (self.get(Field::GRANULATED_WORKITEM_VGPR_COUNT) + 1) * target.vgpr_encoded_granule()
    }

    /// Asks for at least `count` vector registers (AGPRs included where they share the allocation).
    ///
    /// # Errors
    /// A limit if the field cannot say so.
    pub fn set_allocated_vgprs(&mut self, target: Target, count: u32) -> Result<()> {
        self.set(Field::GRANULATED_WORKITEM_VGPR_COUNT, count.max(1).div_ceil(target.vgpr_encoded_granule()) - 1)
    }

    /// First AGPR as counted in vector registers: how many registers `v0..` may use. `None` where they
    /// do not share an allocation.
    #[must_use]
    pub fn accum_offset(&self, target: Target) -> Option<u32> {
        target.unified_accum().then(|| (self.get(Field::ACCUM_OFFSET) + 1) * ACCUM_GRANULE)
    }

    /// Sets the first AGPR, a multiple of 4 from 4 to 256.
    ///
    /// # Errors
    /// A limit if the field cannot say so.
    pub fn set_accum_offset(&mut self, first: u32) -> Result<()> {
        if first == 0 || !first.is_multiple_of(ACCUM_GRANULE) {
            return Err(Error::limit(format!("AGPRs cannot start at {first}, only at multiples of {ACCUM_GRANULE}")));
        }
        self.set(Field::ACCUM_OFFSET, first / ACCUM_GRANULE - 1)
    }

    /// Scalar registers that a wave is given, with VCC and what else lies after the numbered ones. From gfx10 on it is
    /// always the same number.
    #[must_use]
    pub fn allocated_sgprs(&self, target: Target) -> u32 {
        target.fixed_sgprs().unwrap_or(self.requested_sgprs().next_multiple_of(target.sgpr_granule()))
    }

    /// Scalar registers that the descriptor asks for (gfx8 and gfx9), before they are rounded to what can be allocated.
    #[must_use]
    pub fn requested_sgprs(&self) -> u32 {
        (self.get(Field::GRANULATED_WAVEFRONT_SGPR_COUNT) + 1) * ENCODED_SGPRS
    }

    /// Asks for at least `count` scalar registers, VCC and what else lies after the numbered ones included (gfx8 and
    /// gfx9).
    ///
    /// # Errors
    /// A limit if the field cannot say so.
    pub fn set_allocated_sgprs(&mut self, count: u32) -> Result<()> {
        // gfx9 counts in sixteens and twos, gfx8 in eights: this number means the same to both.
        self.set(Field::GRANULATED_WAVEFRONT_SGPR_COUNT, 2 * count.max(1).div_ceil(SGPR_GRANULE) - 1)
    }
}

/// `ACCUM_OFFSET` counts in this many registers.
const ACCUM_GRANULE: u32 = 4;

/// Scalar registers are allocated in this many on gfx9.
const SGPR_GRANULE: u32 = 16;

/// The descriptor counts scalar registers in this many.
const ENCODED_SGPRS: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Field; 46] = [
        Field::SHARED_VGPR_COUNT,
        Field::GLG_EN,
        Field::NAMED_BAR_CNT,
        Field::IMAGE_OP,
        Field::WGP_MODE,
        Field::MEM_ORDERED,
        Field::FWD_PROGRESS,
        Field::GROUP_SEGMENT_FIXED_SIZE,
        Field::PRIVATE_SEGMENT_FIXED_SIZE,
        Field::KERNARG_SIZE,
        Field::ACCUM_OFFSET,
        Field::TG_SPLIT,
        Field::GRANULATED_WORKITEM_VGPR_COUNT,
        Field::GRANULATED_WAVEFRONT_SGPR_COUNT,
        Field::PRIORITY,
        Field::FLOAT_ROUND_MODE_32,
        Field::FLOAT_ROUND_MODE_16_64,
        Field::FLOAT_DENORM_MODE_32,
        Field::FLOAT_DENORM_MODE_16_64,
        Field::PRIV,
        Field::ENABLE_DX10_CLAMP,
        Field::DEBUG_MODE,
        Field::ENABLE_IEEE_MODE,
        Field::BULKY,
        Field::CDBG_USER,
        Field::FP16_OVFL,
        Field::ENABLE_PRIVATE_SEGMENT,
        Field::USER_SGPR_COUNT,
        Field::ENABLE_TRAP_HANDLER,
        Field::ENABLE_WORKGROUP_ID_X,
        Field::ENABLE_WORKGROUP_ID_Y,
        Field::ENABLE_WORKGROUP_ID_Z,
        Field::ENABLE_WORKGROUP_INFO,
        Field::ENABLE_VGPR_WORKITEM_ID,
        Field::GRANULATED_LDS_SIZE,
        Field::ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER,
        Field::ENABLE_SGPR_DISPATCH_PTR,
        Field::ENABLE_SGPR_QUEUE_PTR,
        Field::ENABLE_SGPR_KERNARG_SEGMENT_PTR,
        Field::ENABLE_SGPR_DISPATCH_ID,
        Field::ENABLE_SGPR_FLAT_SCRATCH_INIT,
        Field::ENABLE_SGPR_PRIVATE_SEGMENT_SIZE,
        Field::ENABLE_WAVEFRONT_SIZE32,
        Field::USES_DYNAMIC_STACK,
        Field::KERNARG_PRELOAD_LENGTH,
        Field::KERNARG_PRELOAD_OFFSET,
    ];

    #[test]
    fn a_field_holds_its_value_and_changes_no_other_bit() {
        for field in ALL {
            for background in [0x00, 0xff] {
                let original = KernelDescriptor::from_bytes([background; 64]);
                let mut changed = original;
                let largest = if field.width == 32 { u32::MAX } else { (1 << field.width) - 1 };
                let value = if background == 0 { largest } else { 0 };
                changed.set(field, value).expect("fits");
                assert_eq!(changed.get(field), value);
                let bits: u32 = original.bytes.iter().zip(changed.bytes).map(|(a, b)| (a ^ b).count_ones()).sum();
                assert_eq!(bits, u32::from(field.width), "{field:?}");
                changed.set(field, original.get(field)).expect("fits");
                assert_eq!(changed, original);
                if field.width < 32 {
                    assert!(changed.set(field, largest + 1).is_err());
                }
            }
        }
    }

    #[test]
    fn later_targets_count_differently() {
        let mut descriptor = KernelDescriptor::from_bytes([0; 64]);
        let target = |name| Target::by_name(name).expect(name);
        let wide = target("gfx1030").with_wave_size(64).expect("has both");
        assert_eq!(descriptor.machine(target("gfx1030")), wide);
        descriptor.set(Field::ENABLE_WAVEFRONT_SIZE32, 1).expect("fits");
        assert_eq!(descriptor.machine(wide), target("gfx1030"));
        assert_eq!(descriptor.machine(target("gfx906")).wave_size(), 64, "which has no other waves");
        for (machine, asked, given) in [(target("gfx1030"), 9, 16), (wide, 9, 12), (target("gfx1250"), 1000, 1008)] {
            descriptor.set_allocated_vgprs(machine, asked).expect("fits");
            assert_eq!(descriptor.allocated_vgprs(machine), given);
        }
        // AMDHSAKernelDescriptor.h: bit 6 of the second word, later bit 17 of the third.
        let dynamic = ["gfx1100", "gfx1201", "gfx1250"].map(|name| Field::enable_dynamic_vgpr(target(name)));
        assert_eq!(dynamic, [None, Some(field(RSRC2, 6, 1)), Some(field(RSRC3, 17, 1))]);
        let sgprs = ["gfx802", "gfx803", "gfx1030"].map(|name| descriptor.allocated_sgprs(target(name)));
        assert_eq!(sgprs, [96, 16, 128]);
        descriptor.set(Field::USER_SGPR_COUNT, 0).expect("fits");
        descriptor.set(Field::ENABLE_TRAP_HANDLER, 1).expect("fits");
        assert_eq!(["gfx1200", "gfx1250"].map(|name| descriptor.user_sgpr_count(target(name))), [0, 32]);
        descriptor.set(field(RSRC3, PREFETCH_BIT, 8), 0x41).expect("fits");
        let prefetched = ["gfx1030", "gfx1100", "gfx1200"].map(|name| descriptor.prefetched_bytes(target(name)));
        assert_eq!(prefetched, [None, Some(128), Some(0x41 * 128)]);
    }

    #[test]
    fn register_counts() {
        let mut descriptor = KernelDescriptor::from_bytes([0; 64]);
        let target = |name| Target::by_name(name).expect(name);
        for (name, asked, given) in
            [("gfx906", 1, 4), ("gfx906", 5, 8), ("gfx906", 256, 256), ("gfx90a", 9, 16), ("gfx90a", 512, 512)]
        {
            descriptor.set_allocated_vgprs(target(name), asked).expect("fits");
            assert_eq!(descriptor.allocated_vgprs(target(name)), given);
        }
        assert!(descriptor.set_allocated_vgprs(target("gfx906"), 257).is_err());
        descriptor.set_accum_offset(256).expect("fits");
        assert_eq!(descriptor.accum_offset(target("gfx942")), Some(256));
        assert_eq!(descriptor.accum_offset(target("gfx906")), None);
        assert!(
            descriptor.set_accum_offset(260).is_err()
                && descriptor.set_accum_offset(6).is_err()
                && descriptor.set_accum_offset(0).is_err()
        );
        for (asked, given) in [(0, 16), (16, 16), (17, 32), (102, 112)] {
            descriptor.set_allocated_sgprs(asked).expect("fits");
            assert_eq!(descriptor.allocated_sgprs(target("gfx906")), given);
        }
        descriptor.set_entry_byte_offset(-0x1_2345_6700);
        assert_eq!(descriptor.entry_byte_offset(), -0x1_2345_6700);
    }
}
