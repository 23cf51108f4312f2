//! What a number rests on.

use serde::{Deserialize, Serialize};

/// What a number, or a finding, rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Counted in a run.
    Counted,
    /// Measured on a device, with a clock or its counters.
    Measured,
    /// By the emulator's timing model.
    Modelled,
    /// From the code, by what usually happens.
    Predicted,
    /// From the grid, the registers, the LDS and the board, exactly.
    Computed,
}

impl Basis {
    /// In a word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Basis::Counted => "counted",
            Basis::Measured => "measured",
            Basis::Modelled => "modelled",
            Basis::Predicted => "predicted",
            Basis::Computed => "computed",
        }
    }
}
