//! A summary as text.

use super::{Finding, KernelSummary, Summary};
use crate::render::{Line, Lines};
use crate::style::{Style, counted, place};

/// A finding is cut at so many characters.
const WIDTH: usize = 220;

impl Lines for Summary {
    /// Its lines; none where there are no kernels.
    fn lines(&self, style: Style, lines: &mut Vec<String>) {
        if self.kernels.is_empty() {
            return;
        }
        let differ = if self.runs_differ { "; this run and the counted one did not execute the same" } else { "" };
        lines.push(style.bold(&format!("summary: shares of {}{differ}", self.shares_of.name())));
        let chosen = self.chosen();
        for (kernel, shown) in &chosen {
            let name = if style.long_names { kernel.demangled.as_str().into() } else { style.name(&kernel.title) };
            lines.push(format!("  {:>5.1} %  {name}", 100.0 * kernel.share));
            lines.extend(shown.iter().map(|finding| style.warn(&format!("           {}", finding.line()))));
        }
        let left_out = &self.kernels[chosen.len()..];
        let kernels = |kernel: &KernelSummary| kernel.instances.len().max(1) as u64;
        let more = self.more + left_out.iter().map(kernels).sum::<u64>();
        if more > 0 {
            let share = self.share_of_more + left_out.iter().map(|kernel| kernel.share).sum::<f64>();
            lines.push(format!("  {:>5.1} %  {}", 100.0 * share, counted(more, "more kernel", "more kernels")));
        }
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
