//! What kernels executed, as text.

use super::{KernelMix, MixCounts, MixReport, OperationSum, Traffic};
use crate::style::{DID_NOT_END, Style, counted, missing_waves, place};
use crate::table::{Align, Table, grouped, push_table};

/// Source lines shown for each kernel; JSON has all of them.
const SHOWN: usize = 10;

/// All kernels, each with its classes, operations, bytes, loops and lines.
#[must_use]
pub fn render(report: &MixReport, style: Style) -> String {
    let mut lines = Vec::new();
    if !report.complete {
        lines.push(style.warn(DID_NOT_END));
    }
    for kernel in &report.kernels {
        of_kernel(kernel, style, &mut lines);
        lines.push(String::new());
    }
    for name in &report.not_counted {
        lines.push(format!("{}  {}", style.name(name), style.dim("not counted")));
    }
    if report.kernels.is_empty() && report.not_counted.is_empty() {
        lines.push("no kernel selected".to_owned());
    }
    lines.push(String::new());
    lines.join("\n")
}

fn of_kernel(kernel: &KernelMix, style: Style, lines: &mut Vec<String>) {
    let total = &kernel.total;
    lines.push(format!("{}  {}", style.bold(&style.name(&kernel.demangled)), style.dim(&kernel.target)));
    lines.push(format!(
        "  {} of {} of {} lanes",
        counted(total.instructions, "instruction", "instructions"),
        counted(kernel.waves, "wave", "waves"),
        kernel.wave_size
    ));
    lines.extend(missing_waves(kernel.dropped, kernel.unfinished).map(|line| format!("  {}", style.warn(&line))));
    if !kernel.uncounted_callees.is_empty() {
        let names = kernel.uncounted_callees.join(", ");
        lines.push(format!("  {}", style.warn(&format!("not counted: called functions ({names})"))));
    }
    if total.uncounted > 0 {
        let what = counted(total.uncounted, "instruction", "instructions");
        lines.push(format!("  {}", style.warn(&format!("executions of {what} of the code are not known"))));
    }
    if total.lanes_unknown > 0 {
        lines.push(format!(
            "  issued exact; active lanes of {} issued ({}) do not follow from the counts",
            counted(total.lanes_unknown, "instruction", "instructions"),
            percent(total.lanes_unknown, total.instructions)
        ));
    }
    if kernel.addresses_known {
        let all = total.vector_addresses.saturating_add(total.scalar_addresses);
        lines.push(format!(
            "  {} of the instructions compute addresses only: {} vector, {} scalar",
            percent(all, total.instructions),
            grouped(total.vector_addresses),
            grouped(total.scalar_addresses)
        ));
    }
    classes(total, style, lines);
    operations(total, style, lines);
    bytes(total, style, lines);
    loops(kernel, style, lines);
    source_lines(kernel, style, lines);
}

fn classes(total: &MixCounts, style: Style, lines: &mut Vec<String>) {
    let mut table = Table::new(&[
        ("class", Align::Words),
        ("issued", Align::Right),
        ("share", Align::Right),
        ("active lanes", Align::Right),
        ("lanes unknown", Align::Right),
    ]);
    for row in &total.classes {
        let average = (row.in_lanes > 0).then(|| format!("{:.1}", row.lanes as f64 / row.in_lanes as f64));
        table.row([
            row.class.clone(),
            grouped(row.issued),
            percent(row.issued, total.instructions),
            average.unwrap_or_default(),
            some(row.lanes_unknown),
        ]);
    }
    push_table("instructions by class", &table, style, lines);
}

fn operations(total: &MixCounts, style: Style, lines: &mut Vec<String>) {
    let mut table = Table::new(&[
        ("operations", Align::Words),
        ("rocprof-compute's", Align::Right),
        ("effective", Align::Right),
        ("lanes unknown", Align::Right),
    ]);
    let mut row = |name: String, sum: &OperationSum| {
        table.row([name, grouped(sum.convention), grouped(sum.effective), some(sum.lanes_unknown)]);
    };
    total.operations.iter().for_each(|operations| row(operations.number.clone(), &operations.sum));
    for (name, sum) in [("FLOPs", &total.flops), ("IOPs", &total.iops)] {
        if sum.convention > 0 {
            row(name.to_owned(), sum);
        }
    }
    push_table("operations", &table, style, lines);
}

fn bytes(total: &MixCounts, style: Style, lines: &mut Vec<String>) {
    let mut table = Table::new(&[
        ("memory", Align::Words),
        ("bytes", Align::Right),
        ("FLOPs per byte", Align::Right),
        ("instructions unknown", Align::Right),
    ]);
    for row in &total.bytes {
        let intensity = total.flops_per_byte(row).map(|intensity| format!("{intensity:.3}"));
        table.row([
            memory_name(row.memory).to_owned(),
            grouped(row.requested),
            intensity.unwrap_or_default(),
            some(row.unknown),
        ]);
    }
    push_table("bytes requested (caches not considered)", &table, style, lines);
}

fn loops(kernel: &KernelMix, style: Style, lines: &mut Vec<String>) {
    let mut table = Table::new(&[
        ("loop at", Align::Left),
        ("iterations", Align::Right),
        ("instructions", Align::Right),
        ("share", Align::Right),
        ("FLOPs", Align::Right),
        ("global bytes", Align::Right),
        ("LDS bytes", Align::Right),
        ("source", Align::Place),
    ]);
    for each in &kernel.loops {
        let indent = "  ".repeat(each.depth.saturating_sub(1).min(8) as usize);
        let [start, iterations, rest @ ..] = [
            format!("{indent}{:#x}", each.header),
            each.iterations.map(grouped).unwrap_or_default(),
            grouped(each.mix.instructions),
            percent(each.mix.instructions, kernel.total.instructions),
            effective(&each.mix),
            some(each.mix.bytes_of(Traffic::Global)),
            some(each.mix.bytes_of(Traffic::Lds)),
            place(each.source.as_ref()),
        ];
        table.row([start, iterations].into_iter().chain(rest));
    }
    push_table("loops, with those inside them", &table, style, lines);
}

fn source_lines(kernel: &KernelMix, style: Style, lines: &mut Vec<String>) {
    if kernel.lines.iter().all(|line| line.source.is_none()) {
        return;
    }
    let mut table = Table::new(&[
        ("line", Align::Place),
        ("instructions", Align::Right),
        ("share", Align::Right),
        ("FLOPs", Align::Right),
        ("global bytes", Align::Right),
        ("LDS bytes", Align::Right),
    ]);
    for line in kernel.lines.iter().take(SHOWN) {
        table.row([
            line.source.as_ref().map_or_else(|| "no line".to_owned(), |source| place(Some(source))),
            grouped(line.mix.instructions),
            percent(line.mix.instructions, kernel.total.instructions),
            effective(&line.mix),
            some(line.mix.bytes_of(Traffic::Global)),
            some(line.mix.bytes_of(Traffic::Lds)),
        ]);
    }
    push_table("source lines", &table, style, lines);
    if kernel.lines.len() > SHOWN {
        lines.push(format!("  and {} more: --format json has all", kernel.lines.len() - SHOWN));
    }
}

/// Effective operations; with a mark where some are missing.
fn effective(mix: &MixCounts) -> String {
    match (mix.flops.effective, mix.flops.lanes_unknown) {
        (0, 0) => String::new(),
        (known, 0) => grouped(known),
        (known, _) => format!("≥ {}", grouped(known)),
    }
}

fn some(count: u64) -> String {
    if count == 0 { String::new() } else { grouped(count) }
}

fn percent(part: u64, all: u64) -> String {
    if all == 0 { "0.0 %".to_owned() } else { format!("{:.1} %", 100.0 * part as f64 / all as f64) }
}

/// A memory in a word.
pub(crate) fn memory_name(memory: Traffic) -> &'static str {
    match memory {
        Traffic::Global => "global",
        Traffic::Flat => "FLAT: global, LDS or scratch, not known",
        Traffic::Lds => "LDS",
        Traffic::Scalar => "scalar",
        Traffic::Scratch => "scratch",
    }
}
