//! Which registers hold what when a wave starts (AMDGPUUsage, "Initial Kernel Execution State").

use super::descriptor::{Field, KernelDescriptor};
use wavetap_amdgpu::Target;
use wavetap_base::error::{Error, Result};

/// Most user SGPRs that the hardware sets, on targets before gfx1250.
pub const MAX_USER_SGPRS: u16 = 16;

/// The registers that are set before a kernel's first instruction. Scalar registers are numbered from s0; a value of
/// several registers starts at the one given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InitialRegisters {
    /// Four registers: the scratch buffer's resource.
    pub private_segment_buffer: Option<u16>,
    /// Two registers: address of the dispatch packet.
    pub dispatch_ptr: Option<u16>,
    /// Two registers: address of the queue.
    pub queue_ptr: Option<u16>,
    /// Two registers: address of the kernel arguments.
    pub kernarg_ptr: Option<u16>,
    /// Two registers: number of the dispatch.
    pub dispatch_id: Option<u16>,
    /// Two registers: what flat scratch is set up with.
    pub flat_scratch_init: Option<u16>,
    /// Preloaded kernel arguments.
    pub kernarg_preload: Option<KernargPreload>,
    /// One register: scratch bytes per work-item.
    pub private_segment_size: Option<u16>,
    /// Workgroup ids are in no numbered registers but in ttmp9 (x) and ttmp7 (y in the low half, z in the high one),
    /// whether asked for or not.
    pub workgroup_ids_in_ttmp: bool,
    /// One register: workgroup id x.
    pub workgroup_id_x: Option<u16>,
    /// One register: workgroup id y.
    pub workgroup_id_y: Option<u16>,
    /// One register: workgroup id z.
    pub workgroup_id_z: Option<u16>,
    /// One register: first wave flag, ordered append term, waves in the workgroup.
    pub workgroup_info: Option<u16>,
    /// One register: the wave's offset in the scratch buffer.
    pub private_segment_wave_offset: Option<u16>,
    /// Number of user SGPRs; system SGPRs follow them.
    pub user_sgprs: u16,
    /// User SGPRs that something is put into; the rest up to `user_sgprs` hold nothing defined.
    pub used_user_sgprs: u16,
    /// Number of SGPRs that are set or reserved: user and system ones.
    pub total: u16,
    /// Where the work-item ids are.
    pub work_item_ids: WorkItemIds,
}

/// Kernel arguments that are in user SGPRs when a wave starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernargPreload {
    /// First register.
    pub first: u16,
    /// Number of registers, one dword each.
    pub length: u16,
    /// The dword of the kernel arguments that the first register holds.
    pub offset: u16,
}

/// Where a lane finds its work-item ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkItemIds {
    /// In v0, v1 and v2: the first so many of them.
    Separate {
        /// 1 to 3.
        count: u16,
    },
    /// All in v0: x in bits 9:0, y in 19:10, z in 29:20. Ids that were not asked for are 0.
    Packed {
        /// How many ids the kernel asked for: 1 to 3.
        count: u16,
    },
}

impl Default for WorkItemIds {
    fn default() -> Self {
        WorkItemIds::Separate { count: 1 }
    }
}

impl WorkItemIds {
    /// How many vector registers are set.
    #[must_use]
    pub fn vgprs(self) -> u16 {
        match self {
            WorkItemIds::Separate { count } => count,
            WorkItemIds::Packed { .. } => 1,
        }
    }
}

/// Hands out registers in order.
struct Next(u16);

impl Next {
    fn take(&mut self, descriptor: &KernelDescriptor, enabled: Field, count: u16) -> Option<u16> {
        descriptor.is_set(enabled).then(|| self.advance(count))
    }

    fn advance(&mut self, count: u16) -> u16 {
        let first = self.0;
        self.0 += count;
        first
    }
}

/// Where everything is when a wave of this kernel starts.
///
/// # Errors
/// Malformed if the descriptor enables more user SGPRs than it counts or names a work-item id dimension that does not
/// exist; unsupported if it asks for waves that the target does not have, or for something that has no agreed place.
pub fn initial_registers(descriptor: &KernelDescriptor, target: Target) -> Result<InitialRegisters> {
    let lanes = if descriptor.is_set(Field::ENABLE_WAVEFRONT_SIZE32) { 32 } else { 64 };
    if target.with_wave_size(lanes).is_none() {
        return Err(Error::unsupported(format!("the kernel selects wave{lanes} on {}", target.name())));
    }
    let mut next = Next(0);
    let mut registers = InitialRegisters {
        private_segment_buffer: next.take(descriptor, Field::ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER, 4),
        dispatch_ptr: next.take(descriptor, Field::ENABLE_SGPR_DISPATCH_PTR, 2),
        queue_ptr: next.take(descriptor, Field::ENABLE_SGPR_QUEUE_PTR, 2),
        kernarg_ptr: next.take(descriptor, Field::ENABLE_SGPR_KERNARG_SEGMENT_PTR, 2),
        dispatch_id: next.take(descriptor, Field::ENABLE_SGPR_DISPATCH_ID, 2),
        flat_scratch_init: next.take(descriptor, Field::ENABLE_SGPR_FLAT_SCRATCH_INIT, 2),
        ..InitialRegisters::default()
    };
    registers.private_segment_size = next.take(descriptor, Field::ENABLE_SGPR_PRIVATE_SEGMENT_SIZE, 1);
    let length = descriptor.get(Field::KERNARG_PRELOAD_LENGTH) as u16;
    if length != 0 {
        // The ABI document and the compiler disagree on which of the two comes first; no kernel is known that has both.
        if registers.private_segment_size.is_some() {
            return Err(Error::unsupported(
                "the kernel has both preloaded arguments and the private segment size in user SGPRs",
            ));
        }
        let offset = descriptor.get(Field::KERNARG_PRELOAD_OFFSET) as u16;
        registers.kernarg_preload = Some(KernargPreload { first: next.advance(length), length, offset });
    }
    registers.used_user_sgprs = next.0;
    registers.user_sgprs = descriptor.user_sgpr_count(target) as u16;
    let most = target.max_user_sgprs() as u16;
    if next.0 > registers.user_sgprs || registers.user_sgprs > most {
        let message = format!(
            "a kernel descriptor enables {} user SGPRs and counts {}, of at most {most}",
            next.0, registers.user_sgprs
        );
        return Err(Error::malformed(message));
    }
    next.0 = registers.user_sgprs;
    registers.workgroup_ids_in_ttmp = target.architected_workgroup_ids();
    if !registers.workgroup_ids_in_ttmp {
        registers.workgroup_id_x = next.take(descriptor, Field::ENABLE_WORKGROUP_ID_X, 1);
        registers.workgroup_id_y = next.take(descriptor, Field::ENABLE_WORKGROUP_ID_Y, 1);
        registers.workgroup_id_z = next.take(descriptor, Field::ENABLE_WORKGROUP_ID_Z, 1);
        registers.workgroup_info = next.take(descriptor, Field::ENABLE_WORKGROUP_INFO, 1);
    }
    if !target.architected_flat_scratch() {
        registers.private_segment_wave_offset = next.take(descriptor, Field::ENABLE_PRIVATE_SEGMENT, 1);
    }
    registers.total = next.0;
    let count = descriptor.get(Field::ENABLE_VGPR_WORKITEM_ID) as u16 + 1;
    if count > 3 {
        return Err(Error::malformed("a kernel descriptor enables a fourth work-item id"));
    }
    registers.work_item_ids =
        if target.packed_work_item_ids() { WorkItemIds::Packed { count } } else { WorkItemIds::Separate { count } };
    Ok(registers)
}
