//! Which kernels and findings are shown where there is room for eleven lines: with the line that says what ran, twelve.

use super::data::{Finding, FindingKind, KernelSummary, Limit, Summary};

/// Lines of a summary: a heading, one for what launches cost, one for each kernel, what bounds it and each finding, and
/// one for what is left out.
const LINES: usize = 11;
/// Kernels with smaller shares are not shown, but for the first.
const SHARE: f64 = 0.02;

impl Summary {
    /// The kernels that are shown, each with those of its findings that are.
    #[must_use]
    pub fn chosen(&self) -> Vec<(&KernelSummary, Vec<&Finding>)> {
        self.kernels.iter().zip(room(self)).map(|(kernel, count)| (kernel, shown(kernel, count))).collect()
    }
}

/// How many findings of each kernel there is room for: of each one as long as there is room for kernels, then more
/// of those with the largest shares. Kernels without room are not in it, nor small ones after others.
fn room(summary: &Summary) -> Vec<usize> {
    let large = summary.kernels.iter().take_while(|kernel| kernel.share >= SHARE).count().max(1);
    let kernels = &summary.kernels[..large.min(summary.kernels.len())];
    let least = |kernel: &KernelSummary| 1 + usize::from(kernel.bound.is_some()) + kernel.findings.len().min(1);
    let lines: usize = kernels.iter().map(least).sum();
    let before = 1 + usize::from(summary.launches.is_some());
    let is_more = summary.more > 0 || kernels.len() < summary.kernels.len() || lines > LINES - before;
    // What comes before, and one line for what is left out.
    let mut room = LINES - before - usize::from(is_more);
    let mut findings = Vec::new();
    for kernel in kernels {
        if room < least(kernel) {
            break;
        }
        room -= least(kernel);
        findings.push(kernel.findings.len().min(1));
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

/// So many of its findings in their order; where there is room for one alone, rather one about the code. Where too few
/// waves bound it, what is said of its launches comes last: it is the same.
fn shown(kernel: &KernelSummary, count: usize) -> Vec<&Finding> {
    let in_code = kernel.findings.iter().find(|finding| !finding.kind.is_of_launch());
    let few_waves = kernel.bound.iter().any(|bound| bound.first.limit == Limit::FewWaves);
    let (last, first): (Vec<&Finding>, Vec<&Finding>) =
        kernel.findings.iter().partition(|finding| few_waves && finding.kind == FindingKind::Launch);
    match (count, in_code) {
        (1, Some(finding)) => vec![finding],
        _ => first.into_iter().chain(last).take(count).collect(),
    }
}
