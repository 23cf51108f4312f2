//! The accesses of kernels as text.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::words::{looks_like, number, what, word};
use super::{CalledFunction, Category, KernelMemory, MemoryAccess, MemoryReport, Rule, Severity, Space, found};
use crate::names::short;
use crate::slice::WorkgroupSource;
use crate::style::{Style, counted, place};
use crate::table::{Align, Table, grouped, push_table};

/// Accesses listed for each kernel: the worst. JSON has all of them.
const SHOWN: usize = 20;
/// Functions that are named of those that a kernel calls.
const CALLED_SHOWN: usize = 5;

/// All kernels with what costs more than its bytes need.
#[must_use]
pub fn render(report: &MemoryReport, style: Style) -> String {
    let mut lines = Vec::new();
    for kernel in &report.kernels {
        of_kernel(kernel, style, &mut lines);
        lines.push(String::new());
    }
    if report.kernels.is_empty() {
        lines.push("no kernel selected\n".to_owned());
    } else {
        lines.extend(in_all(&report.kernels));
        lines.push(style.dim(
            "from the code alone, with all lanes active; memory that arguments point to is taken to be aligned to 256 \
                bytes,\nand buffer descriptors to be of plain memory",
        ));
        lines.push(String::new());
    }
    lines.join("\n")
}

/// Of several kernels: how many accesses there are, and of how many nothing is known.
fn in_all(kernels: &[KernelMemory]) -> Option<String> {
    let accesses = kernels.iter().flat_map(|kernel| &kernel.accesses).filter(|access| is_in_global_memory(access));
    let (mut all, mut unknown) = (0_u64, 0_u64);
    for access in accesses {
        all += 1;
        unknown += u64::from(access.category == Category::Unknown);
    }
    let share = 100.0 * unknown as f64 / all as f64;
    (kernels.len() > 1 && all > 0).then(|| {
        format!(
            "{}: {} of global memory, {share:.1} % of them unknown",
            counted(kernels.len() as u64, "kernel", "kernels"),
            counted(all, "access", "accesses")
        )
    })
}

fn is_in_global_memory(access: &MemoryAccess) -> bool {
    matches!(access.known_space(), Space::Global | Space::Buffer)
}

fn of_kernel(kernel: &KernelMemory, style: Style, lines: &mut Vec<String>) {
    lines.push(format!("{}  {}", style.bold(&style.name(&kernel.demangled)), style.dim(&kernel.target)));
    let [x, y, z] = kernel.workgroup;
    let source = match kernel.workgroup_source {
        WorkgroupSource::Launched => "as launched",
        WorkgroupSource::Given => "as given",
        WorkgroupSource::Required => "as the source requires",
        WorkgroupSource::Assumed => "assumed: --workgroup or --counters says more",
    };
    lines.push(format!("  workgroups of {x} x {y} x {z} ({source}), lines of {} bytes", kernel.line_bytes));
    lines.push(format!("  {}", summary(kernel)));
    lines.extend(left_out(kernel).map(|text| style.warn(&format!("  {text}"))));
    let mut worst: Vec<&MemoryAccess> = kernel.accesses.iter().filter(|access| Rule::of(access).is_some()).collect();
    let excess = |access: &MemoryAccess| access.excess.map_or(0, |excess| excess as u64);
    worst.sort_by_key(|access| {
        (Reverse(excess(access)), Reverse(access.severity), Reverse(access.loop_depth), access.address)
    });
    let mut table = Table::new(&[
        ("severity", Align::Left),
        ("cost", Align::Right),
        ("ideal", Align::Right),
        ("executions", Align::Right),
        ("excess", Align::Right),
        ("access", Align::Words),
        ("looks like", Align::Words),
        ("address", Align::Right),
        ("source", Align::Place),
    ]);
    for access in worst.iter().take(SHOWN) {
        let (cost, ideal) = access.cost().unwrap_or_default();
        table.row([
            match access.severity {
                Severity::None => "note",
                Severity::Low => "low",
                Severity::Medium => "medium",
                Severity::High => "high",
            }
            .to_owned(),
            number(cost),
            number(ideal),
            access.executions.map(grouped).unwrap_or_default(),
            access.excess.map(|excess| grouped(excess as u64)).unwrap_or_default(),
            what(access),
            looks_like(access, kernel),
            format!("{:#x}", access.address),
            place(access.source.as_ref()),
        ]);
    }
    push_table("costs more than its bytes need (lines of L1, or cycles of LDS, per wave)", &table, style, lines);
    if worst.len() > SHOWN {
        lines.push(format!("  and {} more: --format json has all", worst.len() - SHOWN));
    }
    found::of_kernel(kernel, style, lines);
}

/// `14 accesses of global memory: 8 coalesced, 3 strided; 4 of LDS: 1 with conflicts`.
pub(super) fn summary(kernel: &KernelMemory) -> String {
    let mut categories: BTreeMap<Category, u64> = BTreeMap::new();
    for access in kernel.accesses.iter().filter(|access| is_in_global_memory(access)) {
        *categories.entry(access.category).or_default() += 1;
    }
    let mut parts = Vec::new();
    let all: u64 = categories.values().sum();
    if all > 0 {
        let each: Vec<String> =
            categories.iter().map(|(category, count)| format!("{count} {}", word(*category))).collect();
        parts.push(format!("{} of global memory: {}", counted(all, "access", "accesses"), each.join(", ")));
    }
    let lds: Vec<&MemoryAccess> = kernel.accesses.iter().filter(|access| access.known_space() == Space::Lds).collect();
    if !lds.is_empty() {
        let conflicts = lds.iter().filter(|access| access.lds.is_some_and(|lds| lds.conflicts > 0.0)).count();
        let unknown = lds.iter().filter(|access| access.lds.is_none()).count();
        parts.push(format!("{} of LDS: {conflicts} with conflicts, {unknown} unknown", lds.len()));
    }
    let flat = "FLAT: global, LDS or scratch, not known";
    for (space, name) in [(Space::Scratch, "of scratch"), (Space::Scalar, "scalar"), (Space::Flat, flat)] {
        let count = kernel.accesses.iter().filter(|access| access.known_space() == space).count();
        if count > 0 {
            parts.push(format!("{count} {name}"));
        }
    }
    if parts.is_empty() { "no accesses".to_owned() } else { parts.join("; ") }
}

/// `not looked at: 3 accesses in functions that it calls (f, g), and functions that are not known`.
pub(super) fn left_out(kernel: &KernelMemory) -> Option<String> {
    let count: u64 = kernel.called.iter().map(|function| function.accesses).sum();
    let called: Vec<&CalledFunction> = kernel.called.iter().filter(|function| function.accesses > 0).collect();
    let mut names: Vec<String> =
        called.iter().take(CALLED_SHOWN).map(|function| short(&function.demangled).into_owned()).collect();
    if called.len() > names.len() {
        names.push(format!("and {} more", called.len() - names.len()));
    }
    let mut parts = Vec::new();
    if count > 0 {
        let accesses = counted(count, "access", "accesses");
        parts.push(format!("{accesses} in functions that it calls ({})", names.join(", ")));
    }
    if kernel.calls_unknown {
        parts.push("functions that it calls and that are not known".to_owned());
    }
    (!parts.is_empty()).then(|| format!("not looked at: {}", parts.join(", and ")))
}

#[cfg(test)]
mod tests {
    use super::super::{LinesOfWave, Operation, SCHEMA};
    use super::*;

    fn access(category: Category, severity: Severity, likely: f64) -> MemoryAccess {
        let lines = LinesOfWave { least: likely, most: likely, likely, ideal: 4.0, exact: true };
        MemoryAccess {
            address: 0x100,
            instruction: "global_load_dword v1, v[2:3], off".to_owned(),
            source: None,
            space: Space::Global,
            operation: Operation::Load,
            bytes: 4,
            addresses: 1,
            loop_depth: 0,
            array: Some("argument 1".to_owned()),
            category,
            severity,
            stride: Some(256),
            step: Some(4),
            unknown: None,
            lines: Some(lines),
            lds: None,
            executions: None,
            active_lanes: None,
            excess: None,
            measured: vec![],
        }
    }

    fn kernel(accesses: Vec<MemoryAccess>) -> KernelMemory {
        KernelMemory {
            name: "k".to_owned(),
            demangled: "k".to_owned(),
            target: "gfx90a".to_owned(),
            workgroup: [64, 1, 1],
            workgroup_source: WorkgroupSource::Assumed,
            waves: 1,
            line_bytes: 64,
            accesses,
            called: Vec::new(),
            calls_unknown: false,
            recorded: None,
        }
    }

    fn text(accesses: Vec<MemoryAccess>) -> String {
        let kernels = vec![kernel(accesses.clone()), kernel(accesses)];
        render(&MemoryReport { schema: SCHEMA.to_owned(), predicted: true, kernels, unread: vec![] }, Style::default())
    }

    #[test]
    fn what_costs_more_is_listed() {
        let strided = access(Category::Strided, Severity::High, 64.0);
        let text = text(vec![strided, access(Category::Coalesced, Severity::None, 4.0)]);
        assert!(text.contains("2 accesses of global memory: 1 coalesced, 1 strided"), "{text}");
        assert!(text.contains("load 4 B of argument 1  lanes 256 B apart, 4 B further each round"), "{text}");
        assert_eq!(text.matches("0x100").count(), 2, "once for each kernel: {text}");
        assert!(text.contains("2 kernels: 4 accesses of global memory, 0.0 % of them unknown"), "{text}");
    }

    #[test]
    fn words_anywhere_are_a_line_each() {
        let anywhere = |bytes, stride| {
            let mut access = MemoryAccess { bytes, stride, ..access(Category::Strided, Severity::High, 64.0) };
            access.lines = access.lines.map(|lines| LinesOfWave { most: 128.0, exact: false, ..lines });
            looks_like(&access, &kernel(Vec::new()))
        };
        assert_eq!(anywhere(4, None), "each lane elsewhere, 4 B further each round");
        assert!(anywhere(16, None).contains("up to 128 lines"), "four words may be in two lines");
        assert!(!anywhere(4, Some(8)).contains("up to"), "64 words are in 64 lines at most");
        let row = LinesOfWave { least: 4.0, most: 8.0, likely: 4.0, ideal: 4.0, exact: false };
        let rows = MemoryAccess { lines: Some(row), ..access(Category::Rows, Severity::Low, 4.0) };
        assert!(looks_like(&rows, &kernel(Vec::new())).contains("up to 8 lines"), "rows may begin anywhere");
    }

    #[test]
    fn what_is_left_out_is_said() {
        let function = |name: &str, accesses| CalledFunction {
            name: name.to_owned(),
            demangled: format!("{name}(int)"),
            accesses,
        };
        let said = |called: &[CalledFunction], calls_unknown| {
            left_out(&KernelMemory { called: called.to_vec(), calls_unknown, ..kernel(Vec::new()) })
        };
        assert_eq!(said(&[function("f", 0)], false), None, "it has no accesses");
        let text = said(&[function("f", 1), function("g", 2)], true).unwrap_or_default();
        assert!(
            text.starts_with("not looked at: 3 accesses in functions that it calls (f(int), g(int)), and "),
            "{text}"
        );
        let many = vec![function("f", 1); 7];
        assert!(said(&many, false).is_some_and(|text| text.ends_with("f(int), and 2 more)")));
    }

    #[test]
    fn the_most_excess_comes_first_and_few_lanes_are_said() {
        let often = |severity, executions: u64, address| MemoryAccess {
            executions: Some(executions),
            excess: Some(60.0 * executions as f64),
            address,
            ..access(Category::Strided, severity, 64.0)
        };
        let few = MemoryAccess { active_lanes: Some(4.0), ..access(Category::Coalesced, Severity::None, 4.0) };
        let text = text(vec![often(Severity::High, 1, 0x10), few, often(Severity::Low, 1000, 0x20)]);
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what}: {text}"));
        assert!(at("0x20") < at("0x10"));
        assert!(text.contains("4.0 lanes active"), "{text}");
        assert!(text.contains("60,000"), "{text}");
    }
}
