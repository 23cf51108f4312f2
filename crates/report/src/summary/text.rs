//! A summary as at most nine lines of text: with the line that says what ran, ten.

use super::{Finding, KernelSummary, Summary};
use crate::render::{Line, Lines};
use crate::style::{Style, counted, place};

/// Lines of a summary.
const LINES: usize = 9;
/// A finding is cut at so many characters.
const WIDTH: usize = 220;
/// Kernels with smaller shares are not shown, but for the first.
const SHARE: f64 = 0.02;

impl Lines for Summary {
    /// Its lines; none where there are no kernels.
    fn lines(&self, style: Style, lines: &mut Vec<String>) {
        if self.kernels.is_empty() {
            return;
        }
        let differ = if self.runs_differ { "; this run and the counted one did not execute the same" } else { "" };
        lines.push(style.bold(&format!("summary: shares of {}{differ}", self.shares_of.name())));
        let findings = room(self);
        for (kernel, count) in self.kernels.iter().zip(&findings) {
            let name = if style.long_names { kernel.demangled.as_str().into() } else { style.name(&kernel.title) };
            lines.push(format!("  {:>5.1} %  {name}", 100.0 * kernel.share));
            let shown = shown(kernel, *count);
            lines.extend(shown.iter().map(|finding| style.warn(&format!("           {}", finding.line()))));
        }
        let left_out = &self.kernels[findings.len()..];
        let kernels = |kernel: &KernelSummary| kernel.instances.len().max(1) as u64;
        let more = self.more + left_out.iter().map(kernels).sum::<u64>();
        if more > 0 {
            let share = self.share_of_more + left_out.iter().map(|kernel| kernel.share).sum::<f64>();
            lines.push(format!("  {:>5.1} %  {}", 100.0 * share, counted(more, "more kernel", "more kernels")));
        }
    }
}

/// How many findings of each kernel there is room for: of each one as long as there is room for kernels, then more
/// of those with the largest shares. Kernels without room are not in it, nor small ones after others.
fn room(summary: &Summary) -> Vec<usize> {
    let large = summary.kernels.iter().take_while(|kernel| kernel.share >= SHARE).count().max(1);
    let kernels = &summary.kernels[..large.min(summary.kernels.len())];
    let lines: usize = kernels.iter().map(|kernel| 1 + kernel.findings.len().min(1)).sum();
    let is_more = summary.more > 0 || kernels.len() < summary.kernels.len() || lines > LINES - 1;
    // The first line, and one for what is left out.
    let mut room = LINES - 1 - usize::from(is_more);
    let mut findings = Vec::new();
    for kernel in kernels {
        let first = kernel.findings.len().min(1);
        if room < 1 + first {
            break;
        }
        room -= 1 + first;
        findings.push(first);
    }
    loop {
        let before = room;
        for (kernel, count) in kernels.iter().zip(&mut findings) {
            if *count < kernel.findings.len() && room > 0 {
                *count += 1;
                room -= 1;
            }
        }
        if room == before {
            return findings;
        }
    }
}

/// So many of its findings in their order; where there is room for one alone, rather one about the code.
fn shown(kernel: &KernelSummary, count: usize) -> Vec<&Finding> {
    let in_code = kernel.findings.iter().find(|finding| !finding.kind.is_of_launch());
    match (count, in_code) {
        (1, Some(finding)) => vec![finding],
        _ => kernel.findings.iter().take(count).collect(),
    }
}

impl Line for Finding {
    /// `k.hip:12: divergence: … (counted): let the lanes of a wave take the same side`.
    fn line(&self) -> String {
        // Of several lines the text has the places.
        let source = self.source.as_ref().filter(|_| self.also.is_empty());
        let at = source.map_or_else(String::new, |source| format!("{}: ", place(Some(source))));
        let text: String = match self.text.char_indices().nth(WIDTH) {
            Some((end, _)) => format!("{}…", &self.text[..end]),
            None => self.text.clone(),
        };
        let help = if self.help.is_empty() { String::new() } else { format!(": {}", self.help) };
        format!("{at}{text} ({}){help}", self.basis.word())
    }
}
