//! What hardware and firmware demand of a kernel descriptor and a dispatch packet, and a machine that ran them anyhow
//! would not show: strict mode refuses a dispatch that does not have it. `docs/reference/hardware-demands.md` lists all
//! demands.

use wavetap_amdgpu::Target;

use crate::fault::FaultKind;
use crate::launch::packet::Dispatch;

/// Places of the descriptor's parts, in bits (AMDGPUUsage, "Kernel Descriptor").
const RSRC3: usize = 352;
const RSRC1: usize = 384;
const RSRC2: usize = 416;
const PROPERTIES: usize = 448;
const PRELOAD: usize = 464;
/// Where the packet's kernel arguments have to be aligned to (HSA, "Kernel dispatch packet").
const KERNARG_ALIGN: u64 = 16;
/// The longest run of code from the entry that can be fetched ahead is counted in lines of this many bytes.
const PREFETCH_LINE: u64 = 128;

/// Bits of the descriptor that have to be 0: the first, how many, and what they are.
type Zero = (usize, usize, &'static str);

/// Those of every target. The packet processor sets PRIORITY to CDBG_USER, the trap handler, the exceptions of memory
/// and the size of LDS itself.
const ALWAYS_ZERO: [Zero; 14] = [
    (96, 32, "reserved bytes 12 to 15"),
    (192, 160, "reserved bytes 24 to 43"),
    (RSRC1 + 10, 2, "PRIORITY"),
    (RSRC1 + 20, 1, "PRIV"),
    (RSRC1 + 22, 1, "DEBUG_MODE"),
    (RSRC1 + 24, 1, "BULKY"),
    (RSRC1 + 25, 1, "CDBG_USER"),
    (RSRC1 + 28, 1, "reserved bit 28 of COMPUTE_PGM_RSRC1"),
    (RSRC2 + 13, 2, "ENABLE_EXCEPTION_ADDRESS_WATCH, ENABLE_EXCEPTION_MEMORY"),
    (RSRC2 + 15, 9, "GRANULATED_LDS_SIZE"),
    (RSRC2 + 31, 1, "reserved bit 31 of COMPUTE_PGM_RSRC2"),
    (PROPERTIES + 7, 3, "reserved bits 7 to 9 of the properties"),
    (PROPERTIES + 12, 4, "reserved bits 12 to 15 of the properties"),
    (480, 32, "reserved bytes 60 to 63"),
];

/// The fields that must be 0 on this target.
fn zeros(target: Target) -> Vec<Zero> {
    let generation = target.generation();
    let mut zeros = Vec::from(ALWAYS_ZERO);
    let mut zero_if = |condition: bool, zero: Zero| {
        if condition {
            zeros.push(zero);
        }
    };
    zero_if(generation < 9, (RSRC1 + 26, 1, "FP16_OVFL"));
    zero_if(!target.has_clusters(), (RSRC1 + 27, 1, "reserved bit 27 of COMPUTE_PGM_RSRC1"));
    zero_if(generation < 10, (RSRC1 + 29, 3, "WGP_MODE, MEM_ORDERED, FWD_PROGRESS"));
    zero_if(generation < 12, (RSRC2 + 6, 1, "ENABLE_TRAP_HANDLER"));
    zero_if(generation < 10, (PROPERTIES + 10, 1, "ENABLE_WAVEFRONT_SIZE32"));
    zero_if(!target.has_kernarg_preload(), (PRELOAD, 16, "KERNARG_PRELOAD_SPEC"));
    match (generation, target.unified_accum()) {
        (_, true) => {
            zero_if(true, (RSRC3 + 6, 10, "reserved bits 6 to 15 of COMPUTE_PGM_RSRC3"));
            zero_if(true, (RSRC3 + 17, 15, "reserved bits 17 to 31 of COMPUTE_PGM_RSRC3"));
        }
        (..10, false) => zero_if(true, (RSRC3, 32, "COMPUTE_PGM_RSRC3")),
        (10, false) => zero_if(true, (RSRC3 + 4, 28, "reserved bits 4 to 31 of COMPUTE_PGM_RSRC3")),
        (11, false) => zero_if(true, (RSRC3 + 12, 19, "reserved bits 12 to 30 of COMPUTE_PGM_RSRC3")),
        // gfx12 has fields there that differ by processor.
        _ => zero_if(true, (RSRC3, 4, "reserved bits 0 to 3 of COMPUTE_PGM_RSRC3")),
    }
    zeros
}

/// What a descriptor says that its bits do not show alone.
pub(crate) struct Described<'a> {
    /// The descriptor.
    pub bytes: &'a [u8; 64],
    /// With the size of the kernel's waves.
    pub target: Target,
    /// Address of its entry.
    pub entry: u64,
}

impl Described<'_> {
    fn bits(&self, first: usize, width: usize) -> u64 {
        (0..width.min(64)).fold(0, |value, bit| {
            let at = first + bit;
            value | u64::from(self.bytes[at / 8] >> (at % 8) & 1) << bit
        })
    }

    fn is_zero(&self, first: usize, width: usize) -> bool {
        (first..first + width).all(|bit| self.bytes[bit / 8] >> (bit % 8) & 1 == 0)
    }

    /// The first demand that the descriptor or the packet does not meet. `reaches` says whether so many bytes from an
    /// address are in memory.
    pub(crate) fn check(&self, dispatch: &Dispatch, reaches: impl Fn(u64, u64) -> bool) -> Result<(), FaultKind> {
        let refuse = |reason: String| Err(FaultKind::Setup { reason: reason.into() });
        let target = self.target;
        if let Some((_, _, what)) = zeros(target).into_iter().find(|(first, width, _)| !self.is_zero(*first, *width)) {
            return refuse(format!("the kernel descriptor has to be 0 in {what}"));
        }
        let user = self.bits(RSRC2 + 1, if target.max_user_sgprs() > 16 { 6 } else { 5 });
        if user > u64::from(target.max_user_sgprs()) {
            return refuse(format!("{user} user SGPRs, there are {}", target.max_user_sgprs()));
        }
        if self.bits(RSRC2 + 11, 2) > 2 {
            return refuse("ENABLE_VGPR_WORKITEM_ID is 3, and there are three work-item ids".to_owned());
        }
        let vgprs = (self.bits(RSRC1, 6) + 1) * u64::from(target.vgpr_encoded_granule());
        if vgprs > u64::from(target.max_vgprs()) {
            return refuse(format!("{vgprs} vector registers, a wave may have {}", target.max_vgprs()));
        }
        let accum_offset = (self.bits(RSRC3, 6) + 1) * 4;
        if target.unified_accum() && accum_offset > vgprs {
            return refuse(format!("ACCUM_OFFSET is {accum_offset} of {vgprs} vector registers"));
        }
        let prefetched = match target.prefetch_size_bits() {
            0 => 0,
            width => self.bits(RSRC3 + 4, usize::from(width)) * PREFETCH_LINE,
        };
        if !reaches(self.entry, prefetched) {
            return refuse(format!("{prefetched} bytes of code are prefetched, and memory ends before"));
        }
        self.check_packet(dispatch)
    }

    fn check_packet(&self, dispatch: &Dispatch) -> Result<(), FaultKind> {
        let refuse = |reason: String| Err(FaultKind::Setup { reason: reason.into() });
        let (lds, scratch) = (self.bits(0, 32), self.bits(32, 32));
        if u64::from(dispatch.group_segment_size) < lds {
            let given = dispatch.group_segment_size;
            return refuse(format!("the packet gives a workgroup {given} bytes of LDS, the kernel has {lds}"));
        }
        if u64::from(dispatch.private_segment_size) < scratch {
            let given = dispatch.private_segment_size;
            return refuse(format!("the packet gives a work-item {given} bytes of scratch, the kernel has {scratch}"));
        }
        let wave = u64::from(dispatch.private_segment_size) * u64::from(self.target.wave_size());
        if wave > u64::from(self.target.max_wave_scratch()) {
            let most = self.target.max_wave_scratch();
            return refuse(format!("{wave} bytes of scratch for a wave, it may have {most}"));
        }
        if !dispatch.kernarg_address.is_multiple_of(KERNARG_ALIGN) {
            let address = dispatch.kernarg_address;
            return refuse(format!("the kernel arguments at {address:#x} are not aligned to {KERNARG_ALIGN} bytes"));
        }
        Ok(())
    }
}
