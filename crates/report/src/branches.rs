//! The counts of branches in words.

use super::style::counted;
use super::table::grouped;
use wavetap_profile::probes::branches::{BranchCounts, ExecCounts, ScalarCounts};

/// What the numbers say, in a few words.
pub(super) fn verdict(counts: &BranchCounts) -> String {
    match *counts {
        BranchCounts::Exec(ExecCounts { executions: 0, empty: 0, .. })
        | BranchCounts::Scalar(ScalarCounts { executions: 0, .. }) => "never reached".to_owned(),
        BranchCounts::Exec(ExecCounts { executions: 0, .. }) => "never reached with an active lane".to_owned(),
        BranchCounts::Exec(counts) => match counts.divergences() {
            0 => "never diverges".to_owned(),
            divergences => format!("diverges in {} of executions", percent(divergences, counts.executions)),
        },
        BranchCounts::Scalar(ScalarCounts { taken: 0, .. }) => "never taken".to_owned(),
        BranchCounts::Scalar(ScalarCounts { executions, taken }) if executions == taken => "always taken".to_owned(),
        BranchCounts::Scalar(ScalarCounts { executions, taken }) => {
            format!("taken in {} of executions", percent(taken, executions))
        }
    }
}

/// At how many executions all active lanes agreed: `50 %`; none where it was not executed.
pub(super) fn agreement(counts: &ExecCounts) -> Option<String> {
    (counts.executions > 0).then(|| percent(counts.agreements, counts.executions))
}

/// The counts of a branch in one line, in the terms of the tables.
pub(super) fn counts_text(counts: &BranchCounts) -> String {
    let mut parts = Vec::new();
    match *counts {
        BranchCounts::Exec(exec) => {
            let ExecCounts { executions, agreements, empty, .. } = exec;
            parts.push(counted(executions, "execution", "executions"));
            if let Some(agreement) = agreement(&exec) {
                parts.push(format!("{} ({agreement})", counted(agreements, "agreement", "agreements")));
            }
            if empty > 0 {
                parts.push(format!("{} empty", grouped(empty)));
            }
            parts.extend(exec.average_lanes().map(|(before, after)| format!("lanes {before:.1} → {after:.1}")));
        }
        BranchCounts::Scalar(ScalarCounts { executions, taken }) => {
            parts.push(counted(executions, "execution", "executions"));
            if executions > 0 {
                parts.push(format!("{} taken", grouped(taken)));
                parts.push(format!("{} not taken", grouped(executions.saturating_sub(taken))));
            }
        }
    }
    format!("{}: {}", parts.join(", "), verdict(counts))
}

/// `part` of `whole` in percent, with one digit where it is no whole number. Never rounded to 0 % or 100 % unless it
/// is.
fn percent(part: u64, whole: u64) -> String {
    let tenths = ((part as f64 / whole as f64) * 1000.0).round() as u64;
    match (part, tenths) {
        (1.., 0) => "less than 0.1 %".to_owned(),
        (_, 1000) if part < whole => "more than 99.9 %".to_owned(),
        _ if tenths.is_multiple_of(10) => format!("{} %", tenths / 10),
        _ => format!("{}.{} %", tenths / 10, tenths % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_follow_the_counts() {
        let exec = |executions, agreements, empty| {
            verdict(
                &ExecCounts {
                    executions,
                    agreements,
                    lanes_before: 64 * executions,
                    lanes_after: 16 * executions,
                    empty,
                }
                .into(),
            )
        };
        assert_eq!(exec(32, 16, 0), "diverges in 50 % of executions");
        assert_eq!(exec(32, 32, 0), "never diverges");
        assert_eq!(exec(0, 0, 3), "never reached with an active lane");
        assert_eq!(exec(0, 0, 0), "never reached");
        assert_eq!(exec(3, 1, 0), "diverges in 66.7 % of executions");
        assert_eq!(exec(1_000_000, 999_999, 0), "diverges in less than 0.1 % of executions");
        assert_eq!(exec(1_000_000, 1, 0), "diverges in more than 99.9 % of executions");
        let scalar = |executions, taken| verdict(&ScalarCounts { executions, taken }.into());
        assert_eq!(scalar(4, 4), "always taken");
        assert_eq!(scalar(4, 0), "never taken");
        assert_eq!(scalar(4, 1), "taken in 25 % of executions");
    }
}
