//! A comparison as text.

use super::{Compare, ComparedKernel, ModeOutput, OutputDifference};
use crate::launches::uncounted_reason;
use crate::style::{Style, counted};
use crate::table::{Align, Table, grouped};
use crate::text::refused_line;
use wavetap_profile::file::Work;
use wavetap_profile::map::Resources;

impl Compare {
    /// The comparison as text.
    #[must_use]
    pub fn render(&self, style: Style) -> String {
        let mut lines = Vec::new();
        for kernel in &self.kernels {
            kernel.lines(style, &mut lines);
            lines.push(String::new());
        }
        self.mean_lines(style, &mut lines);
        if !self.kernels.is_empty() {
            self.count_lines(style, &mut lines);
        }
        self.output_lines(style, &mut lines);
        if !self.refused.is_empty() {
            lines.push("left uncounted".to_owned());
            lines.extend(self.refused.iter().map(|kernel| refused_line(kernel, style)));
        }
        lines.extend(self.problems.iter().map(|problem| style.warn(&format!("NOT as it should be: {problem}"))));
        lines.push(String::new());
        lines.join("\n")
    }

    fn some_in_part(&self) -> bool {
        self.kernels.iter().flat_map(|kernel| &kernel.modes).any(|mode| !mode.uncounted.is_empty())
    }

    fn count_lines(&self, style: Style, lines: &mut Vec<String>) {
        let against =
            if self.checked_against_trace { ", and the emulator's trace of each run says the same" } else { "" };
        lines.push(match (self.same_counts, self.exact) {
            _ if self.exact && self.some_in_part() => {
                "counts: not of every dispatch, see above; no more than the emulator's trace".to_owned()
            }
            (true, true) => format!("counts: the same in all modes{against}"),
            (false, true) => {
                "counts: exact in all modes, by the emulator's trace of each run; executions differ between runs, see \
                    above"
                    .to_owned()
            }
            (_, false) => style.warn("counts: NOT those of the emulator's trace, see above"),
        });
        if !self.same_counts {
            lines.push(
                "  where what a kernel does depends on the order of its workgroups, --threads 1 runs them in one order"
                    .to_owned(),
            );
        }
    }

    fn output_lines(&self, style: Style, lines: &mut Vec<String>) {
        if self.outputs.is_empty() {
            lines.push("output: the same bytes in all runs".to_owned());
        }
        for ModeOutput { mode, difference } in &self.outputs {
            let (said, line) = match difference {
                OutputDifference::Same => continue,
                OutputDifference::Times(line) => {
                    (format!("output: {mode} differs only in numbers that look like times"), line)
                }
                OutputDifference::Different(line) => (style.warn(&format!("output: {mode} is NOT the same")), line),
            };
            lines.push(format!("{said}; the first line that differs is {}:", line.line));
            let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "(the output has ended)".to_owned());
            lines.push(format!("  original: {}", text(&line.original)));
            lines.push(format!("  {mode}: {}", text(&line.found)));
        }
    }
}

impl ComparedKernel {
    fn lines(&self, style: Style, lines: &mut Vec<String>) {
        lines.push(style.bold(&style.name(&self.kernel.demangled)));
        lines.push(style.dim(&format!(
            "  {}, {}, {}",
            self.kernel.target,
            counted(self.kernel.dispatches, "dispatch", "dispatches"),
            counted(self.kernel.waves, "wave", "waves")
        )));
        let mut table = Table::new(&[
            ("mode", Align::Left),
            ("counts", Align::Left),
            ("instructions", Align::Right),
            ("added", Align::Right),
            ("global bytes", Align::Right),
            ("added", Align::Right),
            ("LDS bytes", Align::Right),
            ("added", Align::Right),
            ("SGPRs", Align::Right),
            ("VGPRs", Align::Right),
            ("LDS", Align::Right),
            ("waves/SIMD", Align::Right),
        ]);
        table.row(cost_row(
            "original",
            "",
            self.original_work,
            [None; 3],
            self.modes.iter().find_map(|mode| mode.before),
        ));
        for mode in &self.modes {
            let counts = match (mode.counted, mode.exact, mode.same_counts) {
                (false, ..) => "not counted",
                (true, Some(true) | None, _) if !mode.uncounted.is_empty() => "in part",
                (true, Some(false), _) => "NOT EXACT",
                (true, Some(true), true) => "same, exact",
                (true, Some(true), false) => "exact, differ",
                (true, None, true) => "same",
                (true, None, false) => "DIFFER",
            };
            table.row(cost_row(
                &mode.mode,
                counts,
                mode.work,
                [mode.instructions_added, mode.global_bytes_added, mode.lds_bytes_added],
                mode.after,
            ));
        }
        lines.extend(table.lines(2, style));
        self.time_lines(style, lines);
        for mode in &self.modes {
            let reasons =
                mode.uncounted.iter().map(|dispatches| format!("  {}: {}", mode.mode, uncounted_reason(dispatches)));
            lines.extend(reasons.map(|reason| style.warn(&reason)));
            lines.extend(
                mode.difference.as_ref().map(|difference| style.warn(&format!("  {}: {difference}", mode.mode))),
            );
        }
    }
}

fn cost_row(
    mode: &str,
    counts: &str,
    work: Option<Work>,
    added: [Option<i64>; 3],
    resources: Option<Resources>,
) -> Vec<String> {
    let number = |value: Option<u64>| value.map(grouped).unwrap_or_default();
    let [instructions, global, lds] = added.map(|value| value.map(signed).unwrap_or_default());
    vec![
        mode.to_owned(),
        counts.to_owned(),
        number(work.map(|work| work.instructions)),
        instructions,
        number(work.map(|work| work.global_bytes)),
        global,
        number(work.map(|work| work.lds_bytes)),
        lds,
        number(resources.map(|r| r.sgprs.into())),
        number(resources.map(|r| r.vgprs.into())),
        number(resources.map(|r| r.lds_bytes.into())),
        number(resources.map(|r| r.waves_per_simd.into())),
    ]
}

fn signed(value: i64) -> String {
    match value {
        0 => "0".to_owned(),
        1.. => format!("+{}", grouped(value.unsigned_abs())),
        _ => format!("-{}", grouped(value.unsigned_abs())),
    }
}
