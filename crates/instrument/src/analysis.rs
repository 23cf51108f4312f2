//! What the kernels of a code object share: its code, and what calls in it may do.

use std::sync::OnceLock;

use wavetap_analysis::cfg::Program;
use wavetap_analysis::dataflow::{Summaries, UsedRegisters, WaitSummaries};
use wavetap_analysis::kernel::Image;

/// Where inserted code spills what is in the vector registers that it scavenges whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpillTo {
    /// AGPRs that no code names.
    Agprs,
    /// Scratch memory after what the kernel itself has of it.
    Scratch,
}

/// A code object's code with what is known of it as a whole: made once, used for each kernel.
#[derive(Debug)]
pub struct Analysis<'a> {
    pub(crate) program: &'a Program,
    pub(crate) image: &'a Image<'a>,
    pub(crate) summaries: Summaries,
    pub(crate) waits: WaitSummaries,
    /// What code at the end of an unknown pointer may touch, once something needs it.
    pub(crate) callable: OnceLock<UsedRegisters>,
    pub(crate) always_scavenge: bool,
    pub(crate) always_spill: Option<SpillTo>,
}

impl<'a> Analysis<'a> {
    /// Analyses what kernels share: what calls may read, write and leave outstanding.
    #[must_use]
    pub fn new(program: &'a Program, image: &'a Image<'a>) -> Analysis<'a> {
        let (summaries, waits) = (Summaries::compute(program), WaitSummaries::compute(program));
        Analysis {
            program,
            image,
            summaries,
            waits,
            callable: OnceLock::new(),
            always_scavenge: false,
            always_spill: None,
        }
    }

    /// Makes inserted code scavenge its scalar registers at each place even where some are unused. The scalar
    /// allocation then grows for the prologue alone; probes are longer.
    #[must_use]
    pub fn scavenging(self) -> Analysis<'a> {
        Analysis { always_scavenge: true, ..self }
    }

    /// Makes inserted code scavenge scalar registers and spill whole vector registers at each place even where some are
    /// unused.
    #[must_use]
    pub fn spilling(self, to: SpillTo) -> Analysis<'a> {
        Analysis { always_spill: Some(to), ..self }
    }
}
