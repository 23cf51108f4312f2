//! How exact the emulator was, as text.

use std::collections::{BTreeMap, BTreeSet};

use super::style::{Style, counted, place};
use super::table::{Align, Table, grouped};
use super::variants::{self, Key, Variant};
use wavetap_profile::fidelity::{Choice, Exactness, FidelityProfile, InstructionFidelity, KernelFidelity};
use wavetap_profile::map::Source;

/// Rows for each kernel: those executed most. JSON has all instructions.
const SHOWN: usize = 20;
/// Operations that are named in a row.
const NAMED: usize = 4;

/// The whole report.
#[must_use]
pub fn render(fidelity: &FidelityProfile, style: Style) -> String {
    let mut lines = vec![
        style.bold("how exact the emulator was"),
        "  docs/reference/fidelity.md says what the classes mean, and what is in none of them".to_owned(),
    ];
    if fidelity.processes != 1 {
        lines.push(format!("  the sum of {}", counted(fidelity.processes.into(), "process", "processes")));
    }
    if !fidelity.complete {
        lines.push(style.warn("  the run did not end: this is what had been executed in the dispatches that did"));
    }
    if fidelity.kernels.is_empty() {
        lines.push("  no dispatch ended".to_owned());
    }
    for (kernel, variant) in variants::in_order(&fidelity.kernels, key) {
        lines.push(String::new());
        kernel_lines(kernel, variant, style, &mut lines);
    }
    let choices: BTreeSet<Choice> =
        fidelity.kernels.iter().flat_map(|kernel| &kernel.instructions).filter_map(choice_of).collect();
    if !choices.is_empty() {
        lines.push(String::new());
        lines.push(style.bold("choices of the emulator"));
        lines.extend(choices.iter().map(|choice| format!("  {choice}: {}", choice.sentence())));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn key(kernel: &KernelFidelity) -> Key<'_> {
    Key { name: &kernel.name, target: &kernel.target, object: &kernel.object }
}

fn choice_of(instruction: &InstructionFidelity) -> Option<Choice> {
    match instruction.exactness {
        Exactness::Choice { choice } => Some(choice),
        _ => None,
    }
}

fn kernel_lines(kernel: &KernelFidelity, variant: Option<Variant<'_>>, style: Style, lines: &mut Vec<String>) {
    lines.push(style.bold(&style.name(&kernel.demangled)));
    lines.extend(variant.map(|variant| style.dim(&format!("  {}", variant.text()))));
    lines.push(style.dim(&format!(
        "  {}, {}, {} executed by waves",
        kernel.target,
        counted(kernel.dispatches, "dispatch", "dispatches"),
        counted(kernel.executed, "instruction", "instructions")
    )));
    let mut classes: BTreeMap<Exactness, u64> = BTreeMap::from([(Exactness::Documented, kernel.documented)]);
    for each in kernel.instructions.iter().filter(|each| each.executions > 0) {
        *classes.entry(each.exactness).or_default() += each.executions;
    }
    let share = |count: u64| format!("{:.1} %", count as f64 * 100.0 / kernel.executed.max(1) as f64);
    for (exactness, count) in &classes {
        lines.push(format!("  {:>7}  {exactness}: {}", share(*count), grouped(*count)));
    }
    rows(kernel, style, lines);
    let never: Vec<&InstructionFidelity> =
        kernel.instructions.iter().filter(|each| each.exactness == Exactness::Unsupported).collect();
    if !never.is_empty() {
        lines.push(style.warn(&format!(
            "  not supported, and in its code: {} ({}). A wave that comes there ends the run with a fault",
            counted(never.len() as u64, "instruction", "instructions"),
            names(never.iter().map(|each| &*each.instruction))
        )));
    }
}

/// A line, or without one an address, and a class.
type Place<'f> = (Option<&'f Source>, Option<u64>, Exactness);

/// What is not as documented, by line and class.
fn rows(kernel: &KernelFidelity, style: Style, lines: &mut Vec<String>) {
    let mut by_place: BTreeMap<Place<'_>, Vec<&InstructionFidelity>> = BTreeMap::new();
    for each in kernel.instructions.iter().filter(|each| each.executions > 0) {
        let address = each.source.is_none().then_some(each.address);
        by_place.entry((each.source.as_ref(), address, each.exactness)).or_default().push(each);
    }
    let executions = |all: &[&InstructionFidelity]| all.iter().map(|each| each.executions).sum::<u64>();
    let mut places: Vec<_> = by_place.into_iter().collect();
    // Those of the same count stay in the order of lines.
    places.sort_by_key(|(_, all)| std::cmp::Reverse(executions(all)));
    let mut table = Table::new(&[
        ("source", Align::Place),
        ("executions", Align::Right),
        ("exactness", Align::Left),
        ("operations", Align::Words),
    ]);
    for ((source, address, exactness), all) in places.iter().take(SHOWN) {
        let at = address.map_or_else(|| place(*source), |address| format!("{address:#x}"));
        let names = names(all.iter().map(|each| &*each.instruction));
        table.row([at, grouped(executions(all)), exactness.to_string(), names]);
    }
    if table.is_empty() {
        return;
    }
    lines.extend(table.lines(2, style));
    if places.len() > SHOWN {
        lines.push(format!("  and {} more: --format json has all", places.len() - SHOWN));
    }
}

/// The operations of some instructions, each once.
fn names<'i>(instructions: impl Iterator<Item = &'i str>) -> String {
    let operations = instructions.filter_map(|text| text.split_whitespace().next());
    let operations: BTreeSet<&str> = operations.collect();
    let mut named: Vec<String> = operations.iter().take(NAMED).map(|name| (*name).to_owned()).collect();
    if operations.len() > NAMED {
        named.push(format!("{} more", operations.len() - NAMED));
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_lines_and_choices() {
        let source = |line| Some(Source { file: "k.hip".into(), line });
        let sums = Exactness::Choice { choice: Choice::MatrixSums };
        let instruction = |address, text: &str, line, executions, exactness| InstructionFidelity {
            address,
            instruction: text.to_owned(),
            source: source(line),
            executions,
            exactness,
        };
        let kernel = KernelFidelity {
            name: "k".into(),
            demangled: "k()".into(),
            target: "gfx942".into(),
            dispatches: 2,
            executed: 1000,
            documented: 890,
            instructions: vec![
                instruction(0, "v_exp_f32_e32 v1, v2", 3, 50, Exactness::WithinUlps { ulps: 1 }),
                instruction(4, "v_rcp_f32_e32 v1, v2", 3, 50, Exactness::WithinUlps { ulps: 1 }),
                instruction(8, "v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]", 5, 10, sums),
                instruction(16, "image_msaa_load v0", 7, 0, Exactness::Unsupported),
            ],
            ..KernelFidelity::default()
        };
        let profile = FidelityProfile { complete: true, kernels: vec![kernel], ..FidelityProfile::default() };
        let text = render(&profile, Style::default());
        for expected in [
            "  gfx942, 2 dispatches, 1000 instructions executed by waves",
            "   89.0 %  as documented: 890",
            "   10.0 %  within 1 ULP: 100",
            "    1.0 %  choice: matrix-sums: 10",
            "  k.hip:3         100  within 1 ULP         v_exp_f32_e32, v_rcp_f32_e32",
            "  not supported, and in its code: 1 instruction (image_msaa_load). A wave",
            "  matrix-sums: products are added one by one",
        ] {
            assert!(text.contains(expected), "{expected}\n{text}");
        }
        assert!(!text.contains("did not end"), "{text}");
        assert!(render(&FidelityProfile::default(), Style::default()).contains("no dispatch ended"));
    }
}
