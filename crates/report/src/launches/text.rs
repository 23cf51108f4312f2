//! The launch table as text.

use super::{BoardOfTarget, LaunchRow, LaunchTable};
use crate::names::short;
use crate::render::{Line, Lines};
use crate::style::{Style, counted};
use crate::table::{Align, Table, grouped, push_table};
use crate::variants::labelled;
use wavetap_object::code_object::demangle;
use wavetap_profile::host::{HostActivity, HostOperation, HostStep};

/// Rows shown: those with most waves. JSON has all.
const SHOWN: usize = 20;
/// Warnings shown: the worst. JSON has all.
const WARNINGS_SHOWN: usize = 12;
/// Operations of the host shown of their order.
const STEPS_SHOWN: usize = 12;

/// The columns of the table.
pub(crate) const COLUMNS: [(&str, Align); 13] = [
    ("kernel", Align::Name),
    ("launches", Align::Right),
    ("workgroups", Align::Left),
    ("grid", Align::Left),
    ("workgroup", Align::Left),
    ("dynamic LDS", Align::Right),
    ("waves", Align::Right),
    ("waves/CU", Align::Right),
    ("occupancy", Align::Right),
    ("limited by", Align::Words),
    ("rounds", Align::Right),
    ("tail", Align::Right),
    ("idle lanes", Align::Right),
];

impl Line for BoardOfTarget {
    /// `gfx90a on mi210 (AMD Instinct MI210), 104 compute units: the usual one of the target`.
    fn line(&self) -> String {
        let how = if self.chosen { "named by --board" } else { "the usual one of the target; --board names another" };
        match (&self.board, &self.title, self.compute_units) {
            (Some(board), Some(title), Some(units)) => {
                format!("{} on {board} ({title}), {units} compute units: {how}", self.target)
            }
            _ => format!("{}: no board is known: what depends on one is left out", self.target),
        }
    }
}

impl Lines for LaunchTable {
    /// The table with what is unfavourable and what was copied.
    fn lines(&self, style: Style, lines: &mut Vec<String>) {
        lines.push(style.bold("launches"));
        lines.extend(self.boards.iter().map(|of| format!("  {}", of.line())));
        let mut table = Table::new(&COLUMNS);
        let mut rows: Vec<&LaunchRow> = self.rows.iter().collect();
        let waves = |row: &LaunchRow| row.waves.unwrap_or(0).saturating_mul(row.shape.dispatches);
        if rows.len() > SHOWN {
            rows.sort_by_key(|row| std::cmp::Reverse(waves(row)));
        }
        rows.iter().take(SHOWN).for_each(|row| table.row(cells(row, style)));
        push_table("each way of launching a kernel (numbers of one launch)", &table, style, lines);
        if rows.len() > SHOWN {
            lines.push(format!("  and {} more: --format json has all", rows.len() - SHOWN));
        }
        if self.rows.is_empty() {
            lines.push("  how kernels were launched is not recorded".to_owned());
        }
        host_lines(self, lines);
        if !self.warnings.is_empty() {
            lines.push(String::new());
            let mut alike: Vec<(String, Vec<String>)> = Vec::new();
            for warning in self.warnings.iter().take(WARNINGS_SHOWN) {
                let heading = warning.heading();
                match alike.iter_mut().find(|(other, _)| *other == heading) {
                    Some((_, of)) => of.push(warning.line()),
                    None => alike.push((heading, vec![warning.line()])),
                }
            }
            for (heading, of) in alike {
                lines.push(style.warn(&format!("  {heading}")));
                lines.extend(of.iter().map(|line| format!("    {line}")));
            }
            if self.warnings.len() > WARNINGS_SHOWN {
                lines.push(format!("  and {} more: --format json has all", self.warnings.len() - WARNINGS_SHOWN));
            }
        }
    }
}

/// What was copied, and the first operations in their order; nothing where nothing was copied.
pub(crate) fn host_lines(table: &LaunchTable, lines: &mut Vec<String>) {
    let HostActivity { totals, order, later } = &table.host;
    let copies: Vec<String> = totals
        .iter()
        .filter(|step| step.operation != HostOperation::Launch)
        .map(|step| {
            let times = counted(step.count, "time", "times");
            format!("{} {times}, {} bytes", step.operation.name(), grouped(step.bytes))
        })
        .collect();
    if copies.is_empty() {
        return;
    }
    lines.push(String::new());
    lines.push(format!("  copied: {}", copies.join("; ")));
    if order.is_empty() {
        return;
    }
    let steps: Vec<String> = order.iter().take(STEPS_SHOWN).map(|step| step_text(table, step)).collect();
    let more: u64 = order.iter().skip(STEPS_SHOWN).map(|step| step.count).sum::<u64>() + later;
    let more = if more > 0 { format!("; {} more", counted(more, "operation", "operations")) } else { String::new() };
    lines.push(format!("  in order: {}{more}", steps.join("; ")));
}

/// `multiply(…) × 3`, `host to device × 2 (8192 bytes)`; of a kernel that has several rows also which it is:
/// `multiply(…) [128×1×1 of 64×1×1] × 3`.
fn step_text(table: &LaunchTable, step: &HostStep) -> String {
    let HostStep { operation, kernel, size, count, bytes } = step;
    let times = if *count > 1 { format!(" × {}", grouped(*count)) } else { String::new() };
    let Some(name) = kernel else { return format!("{}{times} ({} bytes)", operation.name(), grouped(*bytes)) };
    let mut rows = table.rows.iter().filter(|row| row.kernel.name == *name);
    let demangled = rows.next().map_or_else(|| demangle(name), |row| row.kernel.demangled.as_str().into());
    let size = size.filter(|_| rows.next().is_some()).map_or_else(String::new, |size| {
        let lds = match size.dynamic_lds {
            0 => String::new(),
            bytes => format!(", dynamic LDS {}", grouped(bytes.into())),
        };
        format!(" [{} of {}{lds}]", LaunchRow::size(size.grid), LaunchRow::size(size.workgroup))
    });
    format!("{}{size}{times}", short(&demangled))
}

/// A row of the table.
pub(crate) fn cells(row: &LaunchRow, style: Style) -> [String; 13] {
    let two = |value: Option<f64>| value.map(|value| format!("{value:.2}")).unwrap_or_default();
    let occupancy = row.occupancy.zip(row.most_waves).map(|(waves, most)| format!("{waves} of {most}"));
    let limits: Vec<&str> = row.limited_by.iter().map(|resource| resource.name()).collect();
    let idle = row.idle_lanes.zip(row.lanes).filter(|(idle, lanes)| *idle > 0 && *lanes > 0);
    [
        labelled(&style.name(&row.kernel.demangled), row.kernel.variant.as_deref()),
        grouped(row.shape.dispatches),
        row.shape.workgroups().map(LaunchRow::size).unwrap_or_default(),
        row.shape.grid.map_or_else(|| "several".to_owned(), LaunchRow::size),
        LaunchRow::size(row.shape.workgroup),
        if row.shape.dynamic_lds == 0 { String::new() } else { grouped(row.shape.dynamic_lds.into()) },
        row.waves.map(grouped).unwrap_or_default(),
        two(row.waves_per_cu),
        occupancy.unwrap_or_default(),
        limits.join(", "),
        two(row.rounds),
        row.tail_efficiency.map(|tail| format!("{:.0} %", 100.0 * tail)).unwrap_or_default(),
        idle.map(|(idle, lanes)| format!("{:.0} %", 100.0 * idle as f64 / lanes as f64)).unwrap_or_default(),
    ]
}
