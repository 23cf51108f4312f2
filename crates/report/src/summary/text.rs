//! A summary as at most nine lines of text: with the line that says what ran, ten.

use super::data::{Finding, KernelSummary, Summary};
use crate::style::{Style, counted, place};

/// Lines of a summary.
const LINES: usize = 9;
/// A finding is cut at so many characters.
const WIDTH: usize = 220;

impl Summary {
    /// Its lines; none where there are no kernels.
    pub(crate) fn lines(&self, style: Style, lines: &mut Vec<String>) {
        if self.kernels.is_empty() {
            return;
        }
        let first = lines.len();
        lines.push(style.bold(&format!("summary: shares of {}", self.shares_of.name())));
        let (mut more, mut share_of_more) = (self.more, self.share_of_more);
        for (place, kernel) in self.kernels.iter().enumerate() {
            // A line for what is left out, if something will be.
            let is_last = place + 1 == self.kernels.len() && self.more == 0;
            let room = (first + LINES).saturating_sub(lines.len() + usize::from(!is_last));
            if room < 1 + kernel.findings.len().min(1) {
                let left_out = &self.kernels[place..];
                more += left_out.len() as u64;
                share_of_more += left_out.iter().map(|kernel| kernel.share).sum::<f64>();
                break;
            }
            lines.push(format!("  {:>5.1} %  {}", 100.0 * kernel.share, style.name(&kernel.demangled)));
            kernel.finding_lines(room - 1, style, lines);
        }
        if more > 0 {
            let kernels = counted(more, "more kernel", "more kernels");
            lines.push(format!("  {:>5.1} %  {kernels}", 100.0 * share_of_more));
        }
    }
}

impl KernelSummary {
    fn finding_lines(&self, most: usize, style: Style, lines: &mut Vec<String>) {
        for finding in self.findings.iter().take(most) {
            lines.push(style.warn(&format!("           {}", finding.line())));
        }
    }
}

impl Finding {
    /// `k.hip:12: divergence: … (counted); give the lanes of a wave work that takes the same side`.
    fn line(&self) -> String {
        let at = self.source.as_ref().map_or_else(String::new, |source| format!("{}: ", place(Some(source))));
        let text: String = match self.text.char_indices().nth(WIDTH) {
            Some((end, _)) => format!("{}…", &self.text[..end]),
            None => self.text.clone(),
        };
        format!("{at}{text} ({}): {}", self.basis.word(), self.help)
    }
}
