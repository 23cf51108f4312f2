//! Modelled time as text. Every number of cycles stands behind or under the word *modelled*.

use std::collections::BTreeMap;

use super::style::{Style, counted, place};
use super::table::{Align, Table, grouped};
use super::variants::{self, Key, Variant};
use wavetap_profile::time::{ExtrapolatedTime, InstructionCycles, KernelTime, MemoryTime, TimeProfile};

/// Instructions listed for each kernel: the costliest. JSON has all of them.
const SHOWN: usize = 15;

/// The whole report.
#[must_use]
pub fn render(time: &TimeProfile, style: Style) -> String {
    let mut lines = Vec::new();
    render_to(time, style, &mut lines);
    lines.push(String::new());
    lines.join("\n")
}

/// The same as part of another report.
pub(super) fn render_to(time: &TimeProfile, style: Style, lines: &mut Vec<String>) {
    lines.push(style.bold("modelled time"));
    lines.push(
        "  cycles of the emulator's timing model; nothing was measured, and docs/reference/timing-model.md says what \
            is left out"
            .to_owned(),
    );
    lines.extend(time.accuracy.iter().map(|accuracy| format!("  {}", accuracy.sentence())));
    if !time.latencies.is_empty() {
        lines.push(format!("  modelled with other latencies: {}", time.latencies.join(", ")));
    }
    if time.processes != 1 {
        lines.push(format!("  the sum of {}", counted(time.processes.into(), "process", "processes")));
    }
    if !time.complete {
        lines.push(style.warn("  the run did not end: this is what had been modelled up to then"));
    }
    if time.kernels.is_empty() {
        lines.push("  no kernel was dispatched".to_owned());
    }
    for (kernel, variant) in variants::in_order(&time.kernels, key) {
        lines.push(String::new());
        kernel_lines(kernel, variant, style, lines);
    }
}

fn key(kernel: &KernelTime) -> Key<'_> {
    Key { name: &kernel.name, target: &kernel.target, object: &kernel.object }
}

fn kernel_lines(kernel: &KernelTime, variant: Option<Variant<'_>>, style: Style, lines: &mut Vec<String>) {
    lines.push(style.bold(&style.name(&kernel.demangled)));
    lines.extend(variant.map(|variant| style.dim(&format!("  {}", variant.text()))));
    lines.push(style.dim(&format!("  {}", kernel_facts(kernel).join(", "))));
    lines.push(format!("  waves, modelled: {}", shares(kernel)));
    lines.push(format!("  memory, modelled: {}", caches(&kernel.memory).join("; ")));
    if kernel.modelled_added_cycles > 0 {
        lines.push(style.warn(&format!(
            "  {} modelled wave cycles at instructions that the rewrite added: the original has other times",
            grouped(kernel.modelled_added_cycles)
        )));
    }
    instruction_lines(kernel, style, lines);
}

/// What it ran as, in a few words each.
pub(super) fn kernel_facts(kernel: &KernelTime) -> Vec<String> {
    let mut facts = vec![
        kernel.target.clone(),
        counted(kernel.dispatches.len() as u64, "dispatch", "dispatches"),
        counted(kernel.waves, "wave", "waves"),
        format!("at most {} a SIMD", kernel.most_waves_per_simd),
        format!("{} modelled cycles", grouped(kernel.modelled_cycles)),
    ];
    if kernel.dispatches.len() > 1 {
        let each = kernel.dispatches.iter().map(|dispatch| dispatch.modelled_cycles);
        let (least, most) = (each.clone().min().unwrap_or(0), each.max().unwrap_or(0));
        facts.push(format!("{} to {} modelled cycles a dispatch", grouped(least), grouped(most)));
    }
    facts.extend(extrapolated(kernel));
    facts
}

/// That the time of dispatches was worked out from a part of their workgroups, if it was of any.
fn extrapolated(kernel: &KernelTime) -> Option<String> {
    let parts: Vec<&ExtrapolatedTime> =
        kernel.dispatches.iter().filter_map(|each| each.extrapolated.as_ref()).collect();
    let permille = parts.iter().map(|part| part.error_permille).max()?;
    let sum = |of: fn(&ExtrapolatedTime) -> u64| grouped(parts.iter().map(|part| of(part)).sum());
    Some(format!(
        "worked out from {} of the {} workgroups of {}: ±{}.{} % by their spread",
        sum(|part| part.modelled_workgroups),
        sum(|part| part.workgroups),
        counted(parts.len() as u64, "dispatch", "dispatches"),
        permille / 10,
        permille % 10
    ))
}

/// What caches and LDS did, in a few words each.
pub(super) fn caches(memory: &MemoryTime) -> Vec<String> {
    let found = |hits: u64, misses: u64| match hits + misses {
        0 => "not used".to_owned(),
        all => format!("found {} % of {} lines", hits * 100 / all, grouped(all)),
    };
    let mut caches = vec![
        format!("L1 {}", found(memory.l1_hits, memory.l1_misses)),
        format!("L2 {}", found(memory.l2_hits, memory.l2_misses)),
    ];
    if memory.modelled_lds_conflict_cycles > 0 {
        caches.push(format!("{} modelled cycles of LDS bank conflicts", grouped(memory.modelled_lds_conflict_cycles)));
    }
    if memory.serialized_atomics > 0 {
        caches.push(format!("{} atomics after others of their wave", grouped(memory.serialized_atomics)));
    }
    caches
}

/// Cycles by reason, the most first.
pub(super) fn most_first(stalled: &BTreeMap<String, u64>) -> Vec<(&str, u64)> {
    let mut stalls: Vec<(&str, u64)> = stalled.iter().map(|(name, cycles)| (name.as_str(), *cycles)).collect();
    stalls.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    stalls
}

/// What the cycles of waves were, the most first.
pub(super) fn shares(kernel: &KernelTime) -> String {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for each in &kernel.instructions {
        *sums.entry("issued").or_default() += each.modelled_issued;
        for (reason, cycles) in &each.modelled_stalled {
            *sums.entry(reason).or_default() += cycles;
        }
    }
    let all: u64 = sums.values().sum();
    let mut sums: Vec<(&str, u64)> = sums.into_iter().filter(|(_, cycles)| *cycles > 0).collect();
    sums.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let shares =
        sums.into_iter().map(|(name, cycles)| format!("{name} {:.1} %", cycles as f64 * 100.0 / all.max(1) as f64));
    shares.collect::<Vec<_>>().join(", ")
}

fn instruction_lines(kernel: &KernelTime, style: Style, lines: &mut Vec<String>) {
    let mut table = Table::new(&[
        ("address", Align::Right),
        ("instruction", Align::Code),
        ("source", Align::Place),
        ("executions", Align::Right),
        ("modelled cycles", Align::Right),
        ("of all", Align::Right),
        ("modelled stalls", Align::Words),
    ]);
    let mut costliest: Vec<&InstructionCycles> = kernel.instructions.iter().collect();
    costliest.sort_by(|a, b| b.modelled_cycles().cmp(&a.modelled_cycles()).then(a.address.cmp(&b.address)));
    for each in costliest.iter().take(SHOWN) {
        let cycles = each.modelled_cycles();
        let stalls = most_first(&each.modelled_stalled).into_iter().take(3);
        let stalls: Vec<String> = stalls.map(|(name, cycles)| format!("{name} {}", grouped(cycles))).collect();
        table.row([
            format!("{:#x}", each.address),
            each.instruction.clone(),
            place(each.source.as_ref()),
            grouped(each.executions),
            grouped(cycles),
            format!("{:.1} %", cycles as f64 * 100.0 / kernel.modelled_wave_cycles.max(1) as f64),
            stalls.join(", "),
        ]);
    }
    if table.is_empty() {
        return;
    }
    lines.push(String::new());
    lines.push("  costliest instructions (modelled cycles of all waves)".to_owned());
    lines.extend(table.lines(2, style));
    if costliest.len() > SHOWN {
        lines.push(format!("  and {} more: --format json has all", costliest.len() - SHOWN));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_profile::accuracy::Accuracy;
    use wavetap_profile::time::DispatchTime;

    fn time() -> TimeProfile {
        let mut time = TimeProfile::new(vec!["valu32=8".to_owned()]);
        time.complete = true;
        time.accuracy.push(Accuracy::of("gfx942", "Instinct MI300X", true));
        time.kernels.push(KernelTime {
            name: "_Z1kv".to_owned(),
            demangled: "k()".to_owned(),
            target: "gfx90a".to_owned(),
            object: "00".to_owned(),
            waves: 4,
            most_waves_per_simd: 1,
            modelled_cycles: 3000,
            modelled_wave_cycles: 5000,
            modelled_added_cycles: 0,
            dispatches: vec![
                DispatchTime {
                    dispatch: 0,
                    modelled_cycles: 1000,
                    modelled_start: None,
                    region: None,
                    extrapolated: None,
                },
                DispatchTime {
                    dispatch: 1,
                    modelled_cycles: 2000,
                    modelled_start: None,
                    region: None,
                    extrapolated: None,
                },
            ],
            memory: MemoryTime { l1_hits: 3, l1_misses: 1, modelled_lds_conflict_cycles: 7, ..MemoryTime::default() },
            traced: None,
            resources: Vec::new(),
            instructions: vec![InstructionCycles {
                address: 0x1000,
                instruction: "s_waitcnt vmcnt(0)".to_owned(),
                source: None,
                executions: 4,
                modelled_issued: 16,
                modelled_stalled: [("WAITCNT".to_owned(), 4984)].into(),
                modelled_waits_for: Vec::new(),
                modelled_vector_alu: 0,
                lines: 0,
                modelled_lds_conflict_cycles: 0,
            }],
        });
        time
    }

    #[test]
    fn every_number_of_cycles_is_called_modelled() {
        let text = render(&time(), Style::default());
        let expected = "\
modelled time
  cycles of the emulator's timing model; nothing was measured, and docs/reference/timing-model.md says what is left out
  modelled for Instinct MI300X, error not measured with other latencies (docs/results/hardware.md)
  modelled with other latencies: valu32=8

k()
  gfx90a, 2 dispatches, 4 waves, at most 1 a SIMD, 3000 modelled cycles, 1000 to 2000 modelled cycles a dispatch
  waves, modelled: WAITCNT 99.7 %, issued 0.3 %
  memory, modelled: L1 found 75 % of 4 lines; L2 not used; 7 modelled cycles of LDS bank conflicts

  costliest instructions (modelled cycles of all waves)
  address  instruction         executions  modelled cycles   of all  modelled stalls
   0x1000  s_waitcnt vmcnt(0)           4             5000  100.0 %  WAITCNT 4984
";
        assert_eq!(text, expected);
        for line in text.lines().filter(|line| line.contains("cycles")) {
            assert!(line.contains("modelled") || line.contains("nothing was measured"), "{line}");
        }
    }

    #[test]
    fn the_file_can_be_read_back() {
        let json = time().to_json().unwrap();
        assert_eq!(TimeProfile::from_json(&json).unwrap(), time());
        let text = String::from_utf8(json).unwrap();
        // Whatever counts cycles has the word in its name.
        for line in text
            .lines()
            .filter(|line| line.contains("cycles\"") || line.contains("issued\"") || line.contains("stalled\""))
        {
            assert!(line.contains("modelled"), "{line}");
        }
        assert!(TimeProfile::from_json(b"{\"schema\": \"wavetap.profile/1\"}").is_err());
    }
}
