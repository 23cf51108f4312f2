//! Slices of several files, side by side, as text.

use super::{ComparedCause, ComparedKernel, KernelVersion, LoneKernel, ShareBasis, SliceComparison};
use crate::style::Style;
use crate::table::{Align, Table, push_table};

/// Lines that are listed for each kernel: JSON has all of them.
const LINES_SHOWN: usize = 10;

/// All kernels that several files have.
#[must_use]
pub fn render_comparison(comparison: &SliceComparison, style: Style) -> String {
    let mut lines = Vec::new();
    for kernel in &comparison.kernels {
        kernel_lines(kernel, style, &mut lines);
        lines.push(String::new());
    }
    if comparison.kernels.is_empty() {
        lines.push("no kernel is in several of the files".to_owned());
    }
    for LoneKernel { file, name, target } in &comparison.alone {
        lines.push(format!("only in {file}: {} ({target})", style.name(name)));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn kernel_lines(kernel: &ComparedKernel, style: Style, lines: &mut Vec<String>) {
    lines.push(style.bold(&style.name(&kernel.name)));
    let mut table = Table::new(&[
        ("file", Align::Name),
        ("target", Align::Left),
        ("waits", Align::Right),
        ("operations a wait", Align::Right),
        ("shares are of", Align::Left),
    ]);
    for KernelVersion { file, target, basis, waits, operations_per_wait } in &kernel.versions {
        table.row([
            file.clone(),
            target.clone(),
            waits.to_string(),
            format!("{operations_per_wait:.1}"),
            basis_text(*basis).to_owned(),
        ]);
    }
    push_table("versions", &table, style, lines);
    cause_table("waits by kind of operation", "waits for", &kernel.kinds, kernel, style, lines);
    cause_table("waits by source line", "line", &kernel.lines, kernel, style, lines);
    if !kernel.differences.is_empty() {
        lines.push(String::new());
        lines.push(style.dim("  where they differ"));
        lines.extend(kernel.differences.iter().map(|text| format!("    {text}")));
    }
}

fn basis_text(basis: ShareBasis) -> &'static str {
    match basis {
        ShareBasis::Samples => "samples",
        ShareBasis::Counts => "predicted cycles, executions counted",
        ShareBasis::OneExecution => "one execution of each wait: not ranked by time",
    }
}

fn cause_table(
    title: &str,
    heading: &'static str,
    causes: &[ComparedCause],
    kernel: &ComparedKernel,
    style: Style,
    lines: &mut Vec<String>,
) {
    if causes.is_empty() {
        return;
    }
    let mut columns = vec![(heading, Align::Place)];
    columns.extend(kernel.versions.iter().map(|version| (version.target.as_str(), Align::Right)));
    let mut table = Table::new(&columns);
    for cause in causes.iter().take(LINES_SHOWN) {
        let mut row = vec![cause.cause.clone()];
        row.extend(cause.versions.iter().map(|version| match version.share {
            Some(share) => format!("{:.0} %", 100.0 * share),
            None => "-".to_owned(),
        }));
        table.row(row);
    }
    push_table(title, &table, style, lines);
    if causes.len() > LINES_SHOWN {
        lines.push(format!("  and {} more: --format json has all", causes.len() - LINES_SHOWN));
    }
}
