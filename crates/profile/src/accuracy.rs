//! How far modelled times are from measured ones, where there are any.

use serde::{Deserialize, Serialize};

/// The page that has each program and where its measured times are from.
pub const PAGE: &str = "docs/results/hardware.md";

/// What was measured, as [`PAGE`] sums it up; the test `hardware_times` compares this with the page.
pub const MEASURED: MeasuredError = MeasuredError {
    target: "gfx942",
    board: "Instinct MI300A",
    adjusted: ErrorClass { programs: 10, mean_percent: 11 },
    kept_aside: ErrorClass { programs: 11, mean_percent: 17 },
};

/// The errors of modelled times on a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasuredError {
    /// The only target whose modelled times were compared with measured ones.
    pub target: &'static str,
    /// The board that was measured.
    pub board: &'static str,
    /// Of programs that were looked at while the model was changed.
    pub adjusted: ErrorClass,
    /// Of those that were not.
    pub kept_aside: ErrorClass,
}

/// The error of modelled times of a group of programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorClass {
    /// How many programs.
    pub programs: u32,
    /// Mean of the errors of their times, without signs, in percent of the measured average.
    pub mean_percent: u32,
}

/// How far modelled times of a board may be from what it would show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Accuracy {
    /// The board whose machine is modelled, or the target if no board is known.
    pub board: String,
    /// Whether other latencies than the model's own were set.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub other_latencies: bool,
    /// The board that was measured; absent if no board of the target was, or other latencies were set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_board: Option<String>,
    /// The error of programs that were looked at while the model was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adjusted: Option<ErrorClass>,
    /// The error of programs that were run only afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_aside: Option<ErrorClass>,
}

impl Accuracy {
    /// That of a board of a target; whether other latencies than the model's own were set.
    #[must_use]
    pub fn of(target: &str, board: &str, other_latencies: bool) -> Accuracy {
        let board = board.to_owned();
        if target != MEASURED.target || other_latencies {
            return Accuracy { board, other_latencies, measured_board: None, adjusted: None, kept_aside: None };
        }
        Accuracy {
            board,
            other_latencies,
            measured_board: Some(MEASURED.board.to_owned()),
            adjusted: Some(MEASURED.adjusted),
            kept_aside: Some(MEASURED.kept_aside),
        }
    }

    /// `modelled for Instinct MI300X, mean error 11 %/17 % on 10/11 programs measured on Instinct MI300A (…)`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let board = &self.board;
        match (&self.measured_board, self.adjusted, self.kept_aside) {
            (Some(measured), Some(adjusted), Some(kept_aside)) => format!(
                "modelled for {board}, mean error {} %/{} % on {}/{} programs measured on {measured} ({PAGE})",
                adjusted.mean_percent, kept_aside.mean_percent, adjusted.programs, kept_aside.programs
            ),
            _ if self.other_latencies => {
                format!("modelled for {board}, error not measured with other latencies ({PAGE})")
            }
            _ => format!("modelled for {board}, error not measured on this board ({PAGE})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_said_of_the_measured_target_only() {
        let text = Accuracy::of("gfx942", "Instinct MI300X", false).sentence();
        assert_eq!(
            text,
            "modelled for Instinct MI300X, mean error 11 %/17 % on 10/11 programs measured on Instinct MI300A \
                (docs/results/hardware.md)"
        );
        for (target, board, latencies, why) in [
            ("gfx90a", "Instinct MI210", false, "on this board"),
            ("gfx941", "gfx941", false, "on this board"),
            ("gfx942", "Instinct MI300X", true, "with other latencies"),
        ] {
            let text = Accuracy::of(target, board, latencies).sentence();
            assert_eq!(text, format!("modelled for {board}, error not measured {why} (docs/results/hardware.md)"));
        }
    }
}
