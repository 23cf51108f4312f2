//! Rooflines as text.

use super::{BoardRoofs, KernelRoofline, LeastTime, RateUnit, RooflineReport};
use crate::style::{DID_NOT_END, Style, counted};
use crate::table::{Align, Table, grouped, push_table};

/// Times shown for each kernel; JSON has all of them.
const SHOWN: usize = 6;

/// Boards, and each kernel with what bounds it.
#[must_use]
pub fn render(report: &RooflineReport, style: Style) -> String {
    let mut lines = Vec::new();
    if !report.complete {
        lines.push(style.warn(DID_NOT_END));
    }
    if let Some(measured) = &report.measured {
        let more = if measured.devices > 1 { format!(", the first of {}", measured.devices) } else { String::new() };
        lines.push(format!("measured roofs of device {}{more}: {} of them", measured.device, measured.roofs.len()));
    }
    report.boards.iter().for_each(|board| of_board(board, style, &mut lines));
    for kernel in &report.kernels {
        lines.push(String::new());
        of_kernel(kernel, style, &mut lines);
    }
    if !report.left_out.is_empty() {
        lines.push(String::new());
        let why = "not counted, or no board is known";
        lines.extend(report.left_out.iter().map(|name| format!("{}  {}", style.name(name), style.dim(why))));
    }
    if report.kernels.is_empty() && report.left_out.is_empty() {
        lines.push("no kernel selected".to_owned());
    }
    lines.push(String::new());
    lines.join("\n")
}

fn of_board(board: &BoardRoofs, style: Style, lines: &mut Vec<String>) {
    let how = if board.chosen { "named by --board" } else { "the usual one of the target; --board names another" };
    lines.push(style.bold(&format!(
        "{} on {} ({}), {} compute units at {} MHz: {how}",
        board.target, board.board, board.title, board.compute_units, board.clock_mhz
    )));
    let mut table = Table::new(&[
        ("roof", Align::Words),
        ("peak", Align::Right),
        ("usually reached", Align::Right),
        ("measured", Align::Right),
        ("unit", Align::Left),
    ]);
    for roof in board.roofs.iter().filter(|roof| roof.unit != RateUnit::Instructions) {
        let rate = |rate: Option<f64>| rate.map(|rate| grouped(rate.round() as u64)).unwrap_or_default();
        let unit = if roof.unit == RateUnit::Bytes { "GB/s" } else { "Gop/s" };
        table.row([
            roof.resource.clone(),
            rate(Some(roof.peak)),
            rate(roof.usual),
            rate(roof.measured),
            unit.to_owned(),
        ]);
    }
    push_table(&format!("roofs (sources {} of isa-tables/boards.yaml)", board.source), &table, style, lines);
}

fn of_kernel(kernel: &KernelRoofline, style: Style, lines: &mut Vec<String>) {
    lines.push(format!("{}  {}", style.bold(&style.name(&kernel.demangled)), style.dim(&kernel.target)));
    let least = if kernel.at_least { "at least " } else { "" };
    lines.push(format!(
        "  {least}{} FLOPs in {}, counted",
        grouped(kernel.flops),
        counted(kernel.dispatches, "dispatch", "dispatches")
    ));
    lines.extend(bound(kernel).map(|line| style.warn(&format!("  {line}"))));
    lines.extend(
        kernel.time_not_used.as_ref().map(|why| style.warn(&format!("  the modelled time is not used: {why}"))),
    );
    let mut table = Table::new(&[
        ("bytes of", Align::Words),
        ("bytes", Align::Right),
        ("FLOPs per byte", Align::Right),
        ("basis", Align::Left),
    ]);
    for level in &kernel.levels {
        let name = match level.level.as_str() {
            "requested" => "lanes' requests",
            "l2_stored" => "stores, of l2",
            "l2_left" => "left in L2, to be written",
            "flat" => "lanes' requests by FLAT (global, LDS or scratch, not known)",
            level => level,
        };
        let intensity = format!("{:.3}", level.intensity);
        table.row([name.to_owned(), grouped(level.bytes), intensity, level.basis.word().to_owned()]);
    }
    push_table("bytes", &table, style, lines);
    let mut table = Table::new(&[
        ("resource", Align::Words),
        ("amount", Align::Right),
        ("unit", Align::Left),
        ("least µs", Align::Right),
        ("usual µs", Align::Right),
        ("measured roof µs", Align::Right),
        ("basis", Align::Left),
    ]);
    for time in kernel.times.iter().take(SHOWN) {
        let unit = match time.unit {
            RateUnit::Bytes => "bytes",
            RateUnit::Operations => "operations",
            RateUnit::Instructions => "wave-instructions",
        };
        table.row([
            time.resource.clone(),
            grouped(time.amount),
            unit.to_owned(),
            microseconds(time.microseconds),
            time.usual_microseconds.map(microseconds).unwrap_or_default(),
            time.measured_microseconds.map(microseconds).unwrap_or_default(),
            time.basis.word().to_owned(),
        ]);
    }
    push_table("least time by resource", &table, style, lines);
    if kernel.times.len() > SHOWN {
        lines.push(format!("  and {} more: --format json has all", kernel.times.len() - SHOWN));
    }
}

/// `nearest roof memory: 12.3 µs at least (modelled); then vector_f32: 4.1 µs (counted); modelled time 25 µs, 2.0 times
/// the bound`.
fn bound(kernel: &KernelRoofline) -> Option<String> {
    let (Some(first), second) = kernel.bound() else { return None };
    let part = |time: &LeastTime| {
        format!("{}: {} µs at least ({})", time.resource, microseconds(time.microseconds), time.basis.word())
    };
    let second = second.map_or_else(String::new, |second| format!("; then {}", part(second)));
    let modelled = kernel.modelled_microseconds.map_or_else(String::new, |modelled| {
        let times = modelled / first.microseconds.max(f64::MIN_POSITIVE);
        format!("; modelled time {} µs, {times:.1} times the bound", microseconds(modelled))
    });
    Some(format!("nearest roof {}{second}{modelled}", part(first)))
}

fn microseconds(time: f64) -> String {
    if time >= 100.0 { grouped(time.round() as u64) } else { format!("{time:.3}") }
}
