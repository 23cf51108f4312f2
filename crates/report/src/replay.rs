//! What a replay of a captured dispatch found.

use std::fmt::Write;

use serde::Serialize;
use wavetap_capture::file::MemoryKind;
pub use wavetap_capture::outcome::SCHEMA;
use wavetap_capture::outcome::{Difference, Outcome, RangeOutcome};
use wavetap_profile::time::TimeProfile;

use crate::names::short;
use crate::table::grouped;
use crate::text::Style;
use crate::time;

/// Ranges of memory that are listed one by one.
const MOST_RANGES: usize = 8;

/// What a replay is reported as.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReplayReport {
    /// What it found.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Modelled time, if that was wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeProfile>,
}

/// The text of a report: the launch, [`compared`], modelled time.
#[must_use]
pub fn render(report: &ReplayReport, style: Style) -> String {
    let mut text = launch(&report.outcome);
    if let Some(time) = &report.time {
        text.push('\n');
        text.push_str(&time::render(time, style));
    }
    text
}

/// The launch and how the memory compares.
fn launch(outcome: &Outcome) -> String {
    let Outcome { demangled, target, captured_code, grid, workgroup, bytes, .. } = outcome;
    let code = if *captured_code { "the captured code" } else { "other code" };
    let mut text = format!("{}\n", short(demangled));
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "  {target}, {code}, grid {}, workgroup {}, {} bytes of memory",
        axes(*grid),
        axes(*workgroup),
        grouped(*bytes)
    );
    for line in compared(outcome) {
        let _ = writeln!(text, "  {line}");
    }
    text
}

/// How the memory compares, as lines: one where it is the same, otherwise one more for each range that is not.
#[must_use]
pub fn compared(outcome: &Outcome) -> Vec<String> {
    let Outcome { changed, alone, same, .. } = outcome;
    let sum = |of: fn(&RangeOutcome) -> u64| grouped(changed.iter().map(of).sum());
    let (all, differ) = (sum(|range| range.changed_bytes), sum(|range| range.different_bytes));
    let mut lines = Vec::new();
    if *same {
        let what = if changed.is_empty() {
            "memory: the kernel changed nothing, as when it was captured".to_owned()
        } else {
            format!("memory: the same as when it was captured; the kernel changed {all} bytes")
        };
        lines.push(what);
    } else {
        let alone = if *alone { "" } else { " (the kernel was not alone when it was captured)" };
        lines.push(format!("memory: {differ} bytes differ from the captured run, which changed {all} bytes{alone}"));
        let different: Vec<&RangeOutcome> = changed.iter().filter(|range| range.different_bytes > 0).collect();
        lines.extend(different.iter().take(MOST_RANGES).map(|range| line(range)));
        if let Some(more) = different.len().checked_sub(MOST_RANGES).filter(|more| *more > 0) {
            lines.push(format!("  and {more} more ranges"));
        }
    }
    lines
}

/// `128×24×1`.
#[must_use]
pub fn axes(sizes: [u32; 3]) -> String {
    sizes.map(|size| size.to_string()).join("×")
}

fn line(range: &RangeOutcome) -> String {
    let RangeOutcome { address, size, kind, different_bytes, first, .. } = range;
    let what = match kind {
        MemoryKind::Allocation => "allocation",
        MemoryKind::Variables => "variables of the code",
    };
    let first = first.as_ref().map_or_else(String::new, |Difference { offset, captured, replayed }| {
        format!("; at offset {offset:#x} captured {}, replayed {}", hex(captured), hex(replayed))
    });
    format!("  {what} at {address:#x}, {} of {} bytes{first}", grouped(*different_bytes), grouped(*size))
}

fn hex(bytes: &[u8]) -> String {
    let words: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(changed: Vec<RangeOutcome>) -> Outcome {
        Outcome {
            schema: "wavetap.replay/1".to_owned(),
            kernel: "_Z4copyPf".to_owned(),
            demangled: "copy(float*)".to_owned(),
            target: "gfx90a".to_owned(),
            captured_code: true,
            grid: [64, 1, 1],
            workgroup: [64, 1, 1],
            bytes: 4096,
            alone: true,
            same: changed.iter().all(|range| range.different_bytes == 0),
            changed,
        }
    }

    #[test]
    fn says_what_differs_and_where() {
        let of = |after: &[u8]| {
            RangeOutcome::compare(0x1000, MemoryKind::Allocation, &[0; 4], &[0, 1, 2, 3], after).into_iter().collect()
        };
        let same = launch(&outcome(of(&[0, 1, 2, 3])));
        assert!(same.ends_with("  memory: the same as when it was captured; the kernel changed 3 bytes\n"), "{same}");
        let lines = compared(&outcome(of(&[0, 1, 9, 3])));
        assert_eq!(lines[0], "memory: 1 bytes differ from the captured run, which changed 3 bytes");
        assert_eq!(lines[1], "  allocation at 0x1000, 1 of 4 bytes; at offset 0x2 captured 02 03, replayed 09 03");
    }
}
