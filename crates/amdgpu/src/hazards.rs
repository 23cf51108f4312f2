//! What a target leaves to software between instructions.

use super::target::Target;

/// The sets of required wait states, each with the rules of those before it that still hold
/// (`isa-tables/targets.yaml`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Named by the target that began it.
pub enum WaitStates {
    None,
    Gfx9,
    Gfx908,
    Gfx90a,
    Gfx94x,
    Gfx950,
}

bitflags::bitflags! {
    /// Hazards of gfx10 and later that software must see to: sequences of instructions rather than numbers of wait
    /// states. `isa-tables/targets.yaml` says which target has which and what they are, by these names in lower case.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct EventHazards: u16 {
        /// Vector memory or LDS reads a scalar register, a scalar instruction writes it.
        const VMEM_TO_SCALAR_WRITE = 1;
        /// Scalar memory reads a scalar register, VALU writes it.
        const SMEM_TO_VECTOR_WRITE = 1 << 1;
        /// Other than VALU reads EXEC, VALU writes it.
        const VCMPX_EXEC_WAR = 1 << 2;
        /// `v_cmpx`, then `v_permlane`.
        const VCMPX_PERMLANE = 1 << 3;
        /// LDS, a branch, vector memory, or the other way round.
        const LDS_BRANCH_VMEM = 1 << 4;
        /// A branch over 63 dwords.
        const BRANCH_OFFSET = 1 << 5;
        /// A flat access with an offset.
        const FLAT_OFFSET = 1 << 6;
        /// Atomic on floats, then `s_denorm_mode`.
        const FLOAT_ATOMIC_DENORM_MODE = 1 << 7;
        /// A transcendental, and a use of its result soon after.
        const VALU_TRANS_USE = 1 << 8;
        /// A use of results of either side of a write of EXEC.
        const VALU_PARTIAL_FORWARD = 1 << 9;
        /// A mask of lanes that VALU read and SALU wrote is read.
        const VALU_MASK_WRITE = 1 << 10;
        /// A matrix instruction multiplies the result of the one before.
        const WMMA_RAW = 1 << 11;
        /// The message of that name without `s_nop` before it.
        const DEALLOC_VGPRS = 1 << 12;
        /// VALU read a scalar register at some time, SALU or VALU writes it, it is read.
        const VALU_READ_SGPR = 1 << 13;
        /// Vector registers between VALU and memory, where code has switched the hardware's checks off
        /// ([`Target::scheduling_mode_hwreg`]).
        const EXPERT_SCHEDULING = 1 << 14;
        /// The first vector instruction of a wave must be `v_nop`, the first of vector memory in no clause.
        const FIRST_VECTOR = 1 << 15;
    }
}

impl Target {
    /// Which wait states software must see to.
    #[must_use]
    pub fn wait_states(self) -> WaitStates {
        match self.data.wait_states {
            0 => WaitStates::None,
            1 => WaitStates::Gfx9,
            2 => WaitStates::Gfx908,
            3 => WaitStates::Gfx90a,
            4 => WaitStates::Gfx94x,
            _ => WaitStates::Gfx950,
        }
    }

    /// Which hazards software must see to that are not about a number of wait states.
    #[must_use]
    pub fn event_hazards(self) -> EventHazards {
        let named = |wanted: &str| EventHazards::all().iter_names().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        self.data.hazards.iter().filter_map(|name| named(name)).map(|(_, hazard)| hazard).collect()
    }

    /// After how many `ds_nop` in a row the hardware has forgotten which scalar registers vector instructions have read
    /// ([`EventHazards::VALU_READ_SGPR`]): 4 in wave32, 8 in wave64 (LLVM, AMDGPUWaitSGPRHazards).
    #[must_use]
    pub fn forgetting_nops(self) -> u32 {
        self.wave_size() / 8
    }
}
