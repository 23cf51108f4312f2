//! Folded stacks: `kernel;file:line N`, a line for each. speedscope (<https://www.speedscope.app>) and inferno read
//! them.

use std::collections::BTreeMap;

use crate::mix::MixReport;
use wavetap_profile::map::Source;
use wavetap_profile::time::{KernelTime, TimeProfile};

/// Instructions that waves issued, by kernel and source line.
#[must_use]
pub fn of_mix(mix: &MixReport) -> String {
    let stacks = mix.kernels.iter().flat_map(|kernel| {
        let lines = kernel.lines.iter().map(|line| (line.source.as_ref(), line.mix.instructions));
        lines.map(|(source, instructions)| (kernel.demangled.as_str(), source, instructions))
    });
    folded(stacks)
}

/// Modelled cycles that waves were at instructions, by selected kernel and source line.
#[must_use]
pub fn of_time(time: &TimeProfile, is_selected: impl Fn(&KernelTime) -> bool) -> String {
    let stacks = time.kernels.iter().filter(|kernel| is_selected(kernel)).flat_map(|kernel| {
        let instructions = kernel.instructions.iter();
        instructions.map(|at| (kernel.demangled.as_str(), at.source.as_ref(), at.modelled_cycles()))
    });
    folded(stacks)
}

/// Sums of equal stacks, in the order of their names.
fn folded<'a>(stacks: impl Iterator<Item = (&'a str, Option<&'a Source>, u64)>) -> String {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for (kernel, source, count) in stacks.filter(|(.., count)| *count > 0) {
        let line = source.map_or_else(|| "no source line".to_owned(), |at| format!("{}:{}", at.file, at.line));
        let sum = sums.entry(format!("{};{}", frame(kernel), frame(&line))).or_default();
        *sum = sum.saturating_add(count);
    }
    sums.into_iter().map(|(stack, count)| format!("{stack} {count}\n")).collect()
}

/// What may stand between semicolons.
fn frame(name: &str) -> String {
    name.chars().map(|c| if c == ';' || c.is_control() { ':' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_are_added_and_frames_hold_no_separators() {
        let at = |line| Source { file: "a;b.hip".into(), line };
        let (one, two) = (at(1), at(2));
        let stacks = [("k<a;b>", Some(&one), 3), ("k<a;b>", Some(&two), 4), ("k<a;b>", Some(&one), 5), ("l", None, 0)];
        assert_eq!(folded(stacks.into_iter()), "k<a:b>;a:b.hip:1 8\nk<a:b>;a:b.hip:2 4\n");
    }
}
