//! What is said of accesses one by one: which rule an access breaks, how bad that is, and in which order.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::words::{has_few_lanes, looks_like, number, what};
use super::{Category, KernelMemory, MemoryAccess, MemoryReport, Severity, Space};
use crate::words::{grouped, place};

/// With counts, what has less than this share of all that is fetched or waited for in vain is not worth mending.
const WORTH_MENDING: f64 = 0.05;

/// What an access should not look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Each lane accesses a place of its own, with something between.
    Strided,
    /// Runs of lanes lie apart from each other.
    Rows,
    /// What lanes access does not begin where a cache line does.
    Misaligned,
    /// It takes more cache lines than its bytes need for another reason.
    Uncoalesced,
    /// Lanes access different words of one bank of LDS.
    BankConflict,
    /// All lanes load the same with a vector instruction.
    UniformLoad,
    /// Few lanes are active.
    FewLanes,
}

impl Rule {
    /// All of them.
    pub const ALL: [Rule; 7] = [
        Rule::Strided,
        Rule::Rows,
        Rule::Misaligned,
        Rule::Uncoalesced,
        Rule::BankConflict,
        Rule::UniformLoad,
        Rule::FewLanes,
    ];

    /// The rule that an access breaks: the worst, if there are several.
    #[must_use]
    pub fn of(access: &MemoryAccess) -> Option<Rule> {
        let conflicts = access.lds.is_some_and(|lds| lds.conflicts > 0.0);
        Some(match access.category {
            _ if conflicts => Rule::BankConflict,
            Category::Strided if access.severity > Severity::None => Rule::Strided,
            Category::Rows if access.severity > Severity::None => Rule::Rows,
            Category::Misaligned if access.severity > Severity::None => Rule::Misaligned,
            _ if access.severity > Severity::None => Rule::Uncoalesced,
            _ if access.is_uniform_load() => Rule::UniformLoad,
            _ if has_few_lanes(access) => Rule::FewLanes,
            _ => return None,
        })
    }

    /// Its name to programs: it does not change.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Rule::Strided => "strided-access",
            Rule::Rows => "rows-apart",
            Rule::Misaligned => "misaligned-access",
            Rule::Uncoalesced => "uncoalesced-access",
            Rule::BankConflict => "lds-bank-conflict",
            Rule::UniformLoad => "uniform-vector-load",
            Rule::FewLanes => "few-active-lanes",
        }
    }

    /// The same as one word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Rule::Strided => "StridedAccess",
            Rule::Rows => "RowsApart",
            Rule::Misaligned => "MisalignedAccess",
            Rule::Uncoalesced => "UncoalescedAccess",
            Rule::BankConflict => "LdsBankConflict",
            Rule::UniformLoad => "UniformVectorLoad",
            Rule::FewLanes => "FewActiveLanes",
        }
    }

    /// What is wrong, in one sentence.
    #[must_use]
    pub fn summary(self) -> &'static str {
        match self {
            Rule::Strided => "Each lane accesses a place of its own, with something between.",
            Rule::Rows => "Runs of lanes access memory in rows that lie apart.",
            Rule::Misaligned => "What lanes access next to each other does not begin where a cache line does.",
            Rule::Uncoalesced => "An access takes more cache lines than its bytes need.",
            Rule::BankConflict => "Lanes access different words of one bank of LDS.",
            Rule::UniformLoad => "All lanes load the same with a vector instruction.",
            Rule::FewLanes => "Few lanes are active at a coalesced access.",
        }
    }

    /// What that costs, and what may be done.
    #[must_use]
    pub fn explanation(self) -> &'static str {
        match self {
            Rule::Strided => {
                "A wave fetches a cache line for every lane or two and uses little of it. Let neighbouring work-items \
                    access neighbouring elements: exchange indices, keep arrays of fields instead of arrays of \
                    structures, or go through LDS."
            }
            Rule::Rows => {
                "A wave fetches the cache lines of several rows and uses a part of each. Wider rows in the direction \
                    of x, workgroups as wide as a wave, or tiles in LDS use whole lines."
            }
            Rule::Misaligned => {
                "A wave fetches one cache line more than its bytes fill. Pad rows to a multiple of the line, or let \
                    the first work-item begin at one."
            }
            Rule::Uncoalesced => {
                "A wave fetches more cache lines than its bytes fill. Let neighbouring work-items access neighbouring \
                    elements."
            }
            Rule::BankConflict => {
                "LDS serves one word of a bank at a time, so that lanes wait for each other. Pad the rows of the \
                    array, or permute its columns by row."
            }
            Rule::UniformLoad => {
                "A scalar load would fetch it once for the wave and keep it in a scalar register. The compiler chooses \
                    one where it knows that nothing writes there: `const` and `__restrict__` on the pointer say so."
            }
            Rule::FewLanes => {
                "The access is issued for the whole wave, and most lanes of it are masked off. Fewer waves with more \
                    active lanes would make the same accesses."
            }
        }
    }
}

/// A rule that an access breaks.
#[derive(Debug, Clone)]
pub struct Finding<'r> {
    /// The kernel.
    pub kernel: &'r KernelMemory,
    /// The access.
    pub access: &'r MemoryAccess,
    /// The rule.
    pub rule: Rule,
    /// How bad it is: that of the access, or none where counts say that it is not worth mending.
    pub severity: Severity,
    /// Of all lines, and cycles of LDS, that were too many in the report, so many are this access's, if it was counted:
    /// L1 serves a line in a cycle, so that both count alike.
    pub share: Option<f64>,
    /// Which access of its kernel it is, in words that outlast a build: its source line, or its opcode, and which of
    /// those that have the same.
    pub place: String,
}

impl MemoryReport {
    /// What is said of its accesses one by one: first what has the largest share, then what is worst.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding<'_>> {
        let all: f64 = self.kernels.iter().flat_map(|kernel| &kernel.accesses).filter_map(|access| access.excess).sum();
        let mut findings: Vec<Finding<'_>> = self.kernels.iter().flat_map(|kernel| of_kernel(kernel, all)).collect();
        // Shares to a millionth, so that equal ones are equal. What is alike stays in the order of the report.
        let share = |finding: &Finding<'_>| (finding.share.unwrap_or(0.0) * 1e6) as u64;
        findings.sort_by_key(|finding| (Reverse(share(finding)), Reverse(finding.severity)));
        findings
    }
}

/// What is said of a kernel's accesses, where so much is too much in the whole report.
fn of_kernel(kernel: &KernelMemory, all: f64) -> Vec<Finding<'_>> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let finding = |access| {
        let place = MemoryAccess::stable_place(access);
        let number = seen.entry(place.clone()).or_default();
        *number += 1;
        let place = format!("{place} {number}");
        let share = access.excess.map(|excess| if all > 0.0 { excess / all } else { 0.0 });
        let severity = match share {
            Some(share) if share < WORTH_MENDING => Severity::None,
            _ => access.severity,
        };
        Rule::of(access).map(|rule| Finding { kernel, access, rule, severity, share, place })
    };
    kernel.accesses.iter().filter_map(finding).collect()
}

impl MemoryAccess {
    /// Which access of its kernel it is, in words that outlast a build: its source line, or its opcode.
    fn stable_place(&self) -> String {
        match place(self.source.as_ref()) {
            line if line.is_empty() => self.instruction.split(' ').next().unwrap_or_default().to_owned(),
            line => format!("{line} {:?} {:?}", self.space, self.operation),
        }
    }
}

impl Finding<'_> {
    /// What is wrong with the access, in words.
    #[must_use]
    pub fn message(&self) -> String {
        let access = self.access;
        let mut text = format!("{}: {}.", what(access), looks_like(access, self.kernel));
        if let Some((cost, ideal)) = access.cost().filter(|(cost, ideal)| cost > ideal) {
            let (cost, ideal) = (number(cost), number(ideal));
            text.push_str(&match access.space {
                Space::Lds => format!(" A wave keeps LDS for {cost} cycles; without conflicts it would be {ideal}."),
                _ => format!(
                    " A wave accesses {cost} cache lines of {} bytes; its bytes would fill {ideal}.",
                    self.kernel.line_bytes
                ),
            });
        }
        if let Some(executions) = access.executions {
            text.push_str(&format!(" Executed {} times", grouped(executions)));
            text.push_str(&match self.share {
                Some(share) => format!(": {:.1} % of all that is too much.", 100.0 * share),
                None => ".".to_owned(),
            });
        }
        text
    }
}
