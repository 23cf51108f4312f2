//! Which operations go through a sampler, and what is before their coordinates.

use wavetap_amdgpu::{Opcode, SampleInfo};

/// What is before the coordinates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SampleForm {
    pub offset: bool,
    bias: bool,
    pub gradients: bool,
    pub half_gradients: bool,
}

impl SampleForm {
    /// `None` for what is no such instruction or compares with a reference value.
    pub(crate) fn of(opcode: Opcode) -> Option<SampleForm> {
        let SampleInfo { offset, bias, gradients, half_gradients, .. } =
            opcode.sample().filter(|sample| !sample.compare)?;
        Some(SampleForm { offset, bias, gradients, half_gradients })
    }

    /// Registers before the coordinates.
    pub(crate) fn before(self, axes: usize) -> usize {
        let gradients = match (self.gradients, self.half_gradients) {
            (false, _) => 0,
            (true, false) => 2 * axes,
            (true, true) => 2 * axes.div_ceil(2),
        };
        usize::from(self.offset) + usize::from(self.bias) + gradients
    }
}

/// Whether an instruction has a sampler.
pub(crate) fn is_sampling(opcode: Opcode) -> bool {
    SampleForm::of(opcode).is_some()
}
