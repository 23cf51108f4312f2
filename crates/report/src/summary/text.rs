//! A summary as text.

use super::{Bound, Finding, KernelSummary, LaunchCost, Limit, Summary};
use crate::Basis;
use crate::render::{Line, Lines};
use crate::style::{Style, counted, place};
use crate::table::grouped;

impl Lines for Summary {
    /// Its lines; none where there are no kernels.
    fn lines(&self, style: Style, lines: &mut Vec<String>) {
        if self.kernels.is_empty() {
            return;
        }
        let differ = if self.runs_differ { "; this run and the counted one did not execute the same" } else { "" };
        let is_estimate = |kernel: &KernelSummary| kernel.bound.iter().any(|bound| bound.basis == Basis::Predicted);
        let estimate = match self.kernels.iter().any(is_estimate) {
            true => "; bounds estimated from counts, --timing models them",
            false => "",
        };
        lines.push(style.bold(&format!("summary: shares of {}{differ}{estimate}", self.shares_of.name())));
        lines.extend(self.launches.iter().map(|cost| style.warn(&format!("  {}", cost.line()))));
        let chosen = self.chosen();
        for (kernel, shown) in &chosen {
            let name = if style.long_names { kernel.demangled.as_str().into() } else { style.name(&kernel.title) };
            lines.push(format!("  {:>5.1} %  {name}", 100.0 * kernel.share));
            lines.extend(kernel.bound.iter().map(|bound| style.bold(&format!("           {}", bound.line()))));
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

impl Line for LaunchCost {
    /// `launches: 45 run 52 µs (modelled), starting them takes about 110 µs: do more in each, …`.
    fn line(&self) -> String {
        let LaunchCost { launches, modelled_microseconds, starting_microseconds } = *self;
        format!(
            "launches: {} run {} µs (modelled); starting them takes about {} µs: {}",
            grouped(launches),
            microseconds(modelled_microseconds),
            microseconds(starting_microseconds),
            Limit::Launches.help()
        )
    }
}

fn microseconds(time: f64) -> String {
    if time >= 10.0 { grouped(time.round() as u64) } else { format!("{time:.1}") }
}

fn times(gain: f64) -> String {
    if gain >= 10.0 { grouped(gain.round() as u64) } else { format!("{gain:.1}") }
}

impl Line for Bound {
    /// `bound by memory bandwidth: 1,320 GB/s, …: move fewer bytes; next: vector ALU, 31 % busy`.
    fn line(&self) -> String {
        let Bound { first, next, basis } = self;
        // What is bound by memory may be bound by its latency.
        let is_sure = *basis != Basis::Predicted || first.limit != Limit::Memory;
        let by = if *basis == Basis::Predicted { "probably bound by" } else { "bound by" };
        let next = next.as_ref().map_or_else(String::new, |next| format!("; next: {}", next.text));
        let help = if is_sure { first.limit.help() } else { "" };
        let help = if help.is_empty() { String::new() } else { format!(": {help}") };
        format!("{by} {}{help}{next}", first.text)
    }
}

impl Line for Finding {
    /// `k.hip:12: divergence: … (counted; ≤ 1.3× modelled): let the lanes of a wave take the same side`.
    fn line(&self) -> String {
        // Of several lines the text has the places.
        let source = self.source.as_ref().filter(|_| self.also.is_empty());
        let at = source.map_or_else(String::new, |source| format!("{}: ", place(Some(source))));
        let help = if self.help.is_empty() { String::new() } else { format!(": {}", self.help) };
        let basis = match (self.modelled_gain, self.basis) {
            (None, basis) => basis.word().to_owned(),
            (Some(gain), Basis::Modelled) => format!("modelled, ≤ {}×", times(gain)),
            (Some(gain), basis) => format!("{}; ≤ {}× modelled", basis.word(), times(gain)),
        };
        format!("{at}{} ({basis}){help}", self.text)
    }
}
