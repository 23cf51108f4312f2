//! What is fixed for all waves of a dispatch: options, the packet, and facts of the target.

pub(crate) mod options;
pub(crate) mod packet;
pub(crate) mod registers;

use std::sync::Arc;

use wavetap_amdgpu::{EventHazards, Target, WaitStates};

use crate::fault::findings::Passes;

/// What the target and the dispatch fix for all waves.
#[derive(Clone)]
pub(crate) struct Launch {
    pub strict: bool,
    /// Findings that do not stop it.
    pub passes: Arc<Passes>,
    /// Waves that wait for a change of memory are found.
    pub waits: bool,
    /// A wave that finds the same in memory again and again gives up its turn.
    pub yields: bool,
    /// Barriers that not all come to are found.
    pub barriers: bool,
    /// The target, with the wave size of the kernel.
    pub target: Target,
    /// Lanes of a wave.
    pub lanes: usize,
    /// Megahertz of the shader clock.
    pub clock_mhz: u64,
    /// The wait states that are checked.
    pub wait_states: WaitStates,
    /// The hazards that are checked, of those that are not counted in slots.
    pub event_hazards: EventHazards,
    /// Waves of a workgroup may not share a first-level cache that keeps their operations in order
    /// (`docs/reference/memory-scopes.md`).
    pub apart: bool,
    /// The hardware sets up scratch.
    pub architected_scratch: bool,
    /// FLAT_SCRATCH is a hardware register, no pair of scalar registers.
    pub flat_scratch_hidden: bool,
    /// FLAT_SCRATCH holds the size and the offset.
    pub offset_scratch: bool,
    pub private_size: u32,
    /// Bytes of LDS that the dispatch requests for each workgroup.
    pub lds_size: u32,
    /// First device address after the scratch of all waves, and the first in it.
    pub scratch_arena: (u64, u64),
    pub wave_scratch_size: u64,
}

impl Launch {
    /// Halves of 32 lanes that a wave has: 1 or 2.
    pub(crate) fn halves(&self) -> usize {
        self.lanes / 32
    }

    /// Bytes of LDS that a workgroup can access: whole allocation units, unless bounds are exact.
    pub(crate) fn lds_allocated(&self) -> u32 {
        if self.strict { self.lds_size } else { self.lds_size.next_multiple_of(self.target.lds_granule().max(1)) }
    }

    /// The same without checks.
    pub(crate) fn without_checks(&self) -> Launch {
        Launch { strict: false, ..self.clone() }
    }

    /// CDNA3 and relatives, which need more wait states.
    pub(crate) fn is_gfx94(&self) -> bool {
        matches!(self.wait_states, WaitStates::Gfx94x | WaitStates::Gfx950)
    }
}
