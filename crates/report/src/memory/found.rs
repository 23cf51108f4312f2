//! What follows from recorded accesses, as text.

use std::cmp::Reverse;

use super::{
    Evidence, FindingKind, Fix, KernelMemory, MeasuredAccess, MemoryAccess, MemoryFinding, RecordedMemory,
    RecordedPattern,
};
use crate::style::{Style, counted, place};
use crate::table::{Align, Table, grouped, push_table};

/// Instructions whose numbers are listed for each kernel: those with the most traffic. JSON has all of them.
const SHOWN: usize = 20;

/// Findings of a kernel, and what its instructions cost.
pub(super) fn of_kernel(kernel: &KernelMemory, style: Style, lines: &mut Vec<String>) {
    let Some(recorded) = &kernel.recorded else { return };
    lines.push(String::new());
    let dispatches = if recorded.dispatches == recorded.of_dispatches {
        String::new()
    } else {
        format!(" in the first {} of {} dispatches", grouped(recorded.dispatches), grouped(recorded.of_dispatches))
    };
    lines.push(format!(
        "  {}, of {} of {} workgroups{dispatches}",
        counted(recorded.executions, "access was recorded", "accesses were recorded"),
        grouped(recorded.workgroups),
        grouped(recorded.of_workgroups)
    ));
    if recorded.not_measured > 0 {
        let what = counted(recorded.not_measured, "access of the code is", "accesses of the code are");
        lines.push(format!("  {what} not measured: of scratch, images, tensors, or above v255"));
    }
    if recorded.unresolved > 0 {
        let what = counted(recorded.unresolved, "execution", "executions");
        let why = "descriptors that are swizzled or have a format, or lanes at the end of what one describes";
        lines.push(style.warn(&format!("  {what} in no number below, of addresses that are not known: {why}")));
    }
    if recorded.dropped > 0 {
        let missing = format!("  {} are missing, for which there was no room", grouped(recorded.dropped));
        lines.push(style.warn(&missing));
    }
    findings(recorded, style, lines);
    measured(kernel, style, lines);
}

fn findings(recorded: &RecordedMemory, style: Style, lines: &mut Vec<String>) {
    let mut table = Table::new(&[
        ("share", Align::Right),
        ("finding", Align::Words),
        ("of", Align::Words),
        ("because", Align::Words),
        ("may help", Align::Words),
        ("address", Align::Right),
        ("source", Align::Place),
    ]);
    let (folded, shown): (Vec<&MemoryFinding>, Vec<&MemoryFinding>) =
        recorded.findings.iter().partition(|finding| finding.folded);
    for finding in shown {
        let site = finding.sites.first();
        table.row([
            percent(finding.share),
            if finding.note {
                format!("note: {}", RecordedPattern::of(finding.kind).name)
            } else {
                RecordedPattern::of(finding.kind).name.to_owned()
            },
            finding.array.clone().unwrap_or_default(),
            because(finding),
            finding.fix.map(may_help).unwrap_or_default().to_owned(),
            site.map(|site| format!("{:#x}", site.address)).unwrap_or_default(),
            place(site.and_then(|site| site.source.as_ref())),
        ]);
    }
    push_table("found in what was recorded (share of requests to L1, or of cycles of LDS)", &table, style, lines);
    if recorded.findings.is_empty() {
        lines.push("  nothing was found".to_owned());
    }
    if !folded.is_empty() {
        lines.push(format!("  and {} of small shares: --format json has all", folded.len()));
    }
}

/// A share in percent.
fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// What may help, in words.
pub(crate) fn may_help(fix: Fix) -> &'static str {
    match fix {
        Fix::StageInLds => "load it to LDS once",
        Fix::ReorderData => "sort or block the data",
        Fix::ExchangeIndices => "exchange the indices of the work-item",
        Fix::ChangeLayout => "store together what is used together",
        Fix::AlignRows => "begin rows where lines begin",
        Fix::CoalesceLanes => "let neighbouring lanes access neighbours",
        Fix::UseRegisters => "registers instead of LDS",
        Fix::UseCrossLane => "DPP, ds_bpermute or v_readlane",
        Fix::PadRows => "pad rows, or exchange parts by XOR",
        Fix::CompactLanes => "more work for each active lane",
        Fix::LoadScalar => "a scalar load: const __restrict__",
    }
}

/// The numbers that a finding rests on.
pub(crate) fn because(finding: &MemoryFinding) -> String {
    let mut text = match finding.evidence {
        Evidence::Sectors { matching, of, waves } => {
            format!("{} of {} lines, by up to {waves} waves of a workgroup", grouped(matching), grouped(of))
        }
        Evidence::Words { matching, of } => format!("{} of {} words", grouped(matching), grouped(of)),
        Evidence::Lines { lines, ideal } => format!("{lines:.1} lines for {ideal:.1}"),
        Evidence::Cycles { cycles, ideal, ways } => format!("{cycles:.1} cycles for {ideal:.1}, up to {ways}-way"),
        Evidence::Lanes { active, of } => format!("{active:.1} of {of} lanes"),
        Evidence::Executions { matching, of } => {
            format!("{} of {} executions", grouped(matching), grouped(of))
        }
    };
    if finding.truncated {
        text.push_str(", records are missing");
    }
    if !finding.whole && finding.kind == FindingKind::Strided {
        text.push_str(", in the workgroups that were recorded");
    }
    text
}

fn measured(kernel: &KernelMemory, style: Style, lines: &mut Vec<String>) {
    let mut all: Vec<(&MemoryAccess, &MeasuredAccess)> = kernel
        .accesses
        .iter()
        .flat_map(|access| access.measured.iter().map(move |measured| (access, measured)))
        .collect();
    all.sort_by_key(|(access, measured)| {
        (Reverse(measured.excess), Reverse((measured.share * 1e9) as u64), access.address)
    });
    let mut table = Table::new(&[
        ("executions", Align::Right),
        ("lanes", Align::Right),
        ("cost", Align::Right),
        ("ideal", Align::Right),
        ("excess", Align::Right),
        ("share", Align::Right),
        ("of all", Align::Right),
        ("excess of all", Align::Right),
        ("by the code", Align::Left),
        ("address", Align::Right),
        ("source", Align::Place),
    ]);
    for (access, measured) in all.iter().take(SHOWN) {
        let shown = measured.of_instruction(access.addresses);
        let number = |value: Option<f64>| value.map(|value| format!("{value:.1}")).unwrap_or_default();
        table.row([
            grouped(shown.executions),
            format!("{:.1}", measured.lanes),
            number(shown.cost),
            number(shown.ideal),
            grouped(measured.excess),
            percent(measured.share),
            measured.total.map(|total| grouped(total.executions)).unwrap_or_default(),
            measured.total.map(|total| grouped(total.excess.round() as u64)).unwrap_or_default(),
            measured.as_predicted.map_or("", |same| if same { "the same" } else { "different" }).to_owned(),
            format!("{:#x}", access.address),
            place(access.source.as_ref()),
        ]);
    }
    push_table("measured (lines of L1, or cycles of LDS, of an execution on average)", &table, style, lines);
    if all.len() > SHOWN {
        lines.push(format!("  and {} more: --format json has all", all.len() - SHOWN));
    }
}

#[cfg(test)]
mod tests {
    use super::super::FindingSite;
    use super::*;

    fn finding(kind: FindingKind, folded: bool, whole: bool) -> MemoryFinding {
        MemoryFinding {
            kind,
            fix: Some(Fix::ChangeLayout),
            array: Some("a".to_owned()),
            sites: vec![FindingSite { address: 0x40, source: None }],
            evidence: Evidence::Sectors { matching: 3, of: 4, waves: 8 },
            share: 0.5,
            note: kind == FindingKind::Halo,
            folded,
            truncated: true,
            whole,
        }
    }

    fn text(all: Vec<MemoryFinding>) -> String {
        let recorded = RecordedMemory {
            workgroups: 1,
            of_workgroups: 4,
            executions: 1000,
            dropped: 3,
            dispatches: 1,
            of_dispatches: 1,
            not_measured: 0,
            unresolved: 0,
            arrays: vec![],
            findings: all,
        };
        let mut lines = Vec::new();
        findings(&recorded, Style::default(), &mut lines);
        lines.join("\n")
    }

    #[test]
    fn small_shares_are_counted_and_notes_are_called_so() {
        let found = text(vec![
            finding(FindingKind::Strided, false, false),
            finding(FindingKind::Halo, false, true),
            finding(FindingKind::Hot, true, true),
        ]);
        let because = "3 of 4 lines, by up to 8 waves of a workgroup, records are missing";
        assert!(found.contains(&format!("{because}, in the workgroups that were recorded")), "{found}");
        assert!(found.contains("note: halo") && !found.contains(" hot "), "{found}");
        assert!(found.contains("and 1 of small shares"), "{found}");
        assert!(text(vec![]).contains("nothing was found"));
    }
}
