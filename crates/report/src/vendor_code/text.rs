//! Code of other vendors' GPUs as text.

use super::{VendorCode, VendorFunction, VendorInstruction, VendorObject};
use crate::style::{Style, counted, place};
use crate::table::{Align, Table, grouped, push_table};

/// Kinds of instructions that have a column.
const CLASSES: [&str; 5] = ["global memory", "shared memory", "constant memory", "special functions", "barriers"];

/// What is in the file.
#[must_use]
pub fn render_inspection(code: &VendorCode, style: Style) -> String {
    let mut lines = Vec::new();
    for VendorObject { target, functions } in &code.objects {
        let kernels = functions.iter().filter(|function| function.kernel).count() as u64;
        let others = functions.len() as u64 - kernels;
        let others =
            if others == 0 { String::new() } else { format!(", {}", counted(others, "function", "functions")) };
        lines.push(format!(
            "{} {}: {}{others}",
            code.vendor,
            style.bold(target),
            counted(kernels, "kernel", "kernels")
        ));
        let mut columns = vec![
            ("kernel", Align::Name),
            ("bytes", Align::Right),
            ("instructions", Align::Right),
            ("that wait", Align::Right),
        ];
        columns.extend(CLASSES.map(|class| (class, Align::Right)));
        let mut table = Table::new(&columns);
        for function in functions.iter().filter(|function| function.refused.is_none()) {
            let name = style.name(&function.demangled);
            let name = if function.kernel { name.into_owned() } else { format!("{name} (called)") };
            let mut row = vec![name, grouped(function.bytes), grouped(function.instructions), grouped(function.waits)];
            row.extend(CLASSES.map(|class| function.classes.get(class).copied().map_or_else(String::new, grouped)));
            table.row(row);
        }
        push_table("kernels", &table, style, &mut lines);
        refused(functions, style, &mut lines);
        lines.push(String::new());
    }
    if code.objects.is_empty() {
        lines.push("no code selected\n".to_owned());
    }
    lines.extend(code.notes.iter().map(|note| format!("{note}\n")));
    lines.join("\n")
}

fn refused(functions: &[VendorFunction], style: Style, lines: &mut Vec<String>) {
    for (function, why) in functions.iter().filter_map(|function| Some((function, function.refused.as_ref()?))) {
        lines.push(format!("  not decoded: {}: {why}", style.name(&function.demangled)));
    }
}

/// Instructions with what they wait for.
#[must_use]
pub fn render_code(code: &VendorCode, style: Style) -> String {
    let mut lines = Vec::new();
    for VendorObject { target, functions } in &code.objects {
        for function in functions.iter().filter(|function| function.refused.is_none()) {
            lines.push(format!("{}  {}", style.bold(&style.name(&function.demangled)), style.dim(target)));
            let mut source = None;
            for instruction in &function.code {
                if instruction.source.is_some() && instruction.source != source {
                    source.clone_from(&instruction.source);
                    lines.push(style.dim(&format!("  {}", place(source.as_ref()))));
                }
                lines.push(line(instruction, style));
            }
            lines.push(String::new());
        }
        refused(functions, style, &mut lines);
    }
    if code.objects.is_empty() {
        lines.push("no code selected\n".to_owned());
    }
    lines.join("\n")
}

/// Columns of an instruction before its notes.
const COLUMNS: usize = 56;

fn line(instruction: &VendorInstruction, style: Style) -> String {
    let VendorInstruction { address, instruction: text, waits_for, .. } = instruction;
    let waits = waits_for.iter().map(|wait| {
        let operations: Vec<String> = wait.operations.iter().map(|address| format!("{address:#x}")).collect();
        match operations.as_slice() {
            [] => format!("waits for {}: what the caller has in flight", wait.counter),
            _ => format!("waits for {}: {}", wait.counter, operations.join(", ")),
        }
    });
    let waits: Vec<String> = waits.collect();
    let text = format!("    {address:#6x}  {text}");
    if waits.is_empty() { text } else { format!("{text:<COLUMNS$}  {}", style.dim(&format!("; {}", waits.join("; ")))) }
}
