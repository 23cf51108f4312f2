//! An independent checker of a rewritten file against its original.
//!
//! It shares nothing with the stages that rewrite: it reads the two files, decodes both, and checks that the rewritten one does what the original
//! does. What it checks, and how, is told in its parts:
//!
//! * `object`: every original byte is where it was; segments, symbols, relocations as loaders want them;
//! * `kernels`: descriptor, metadata and site table agree with each other and with the code; registers are allocated;
//! * `align`: the new code is the original with instructions inserted, and control flows the same way;
//! * `preserve`: no original instruction reads anything that inserted code changed, EXEC and SCC included;
//! * `outstanding`: inserted code waits for what it uses;
//! * `hazards`: required wait states hold around inserted code.
//!
//! A finding says which rule is broken and where. No finding means that every rule above was checked and held. What is not checked: that
//! probes count what they should (running the code shows that), and memory that inserted code writes.

mod align;
mod finding;
mod hazards;
mod outstanding;
mod preserve;
mod values;

pub use finding::{Finding, Rule};

use align::Alignment;

use crate::cfg::Program;
use crate::code_object::InitialRegisters;
use crate::dataflow::{UsedRegisters, WaitSummaries};
use crate::kernel::Body;
use crate::profile::map::AddressPair;

/// One kernel's code before and after.
#[derive(Debug, Clone, Copy)]
pub struct KernelCode<'a> {
    /// The original code object's code.
    pub program: &'a Program,
    /// The kernel in it.
    pub kernel: crate::cfg::BodyId,
    /// The instrumented kernel, decoded from its new entry.
    pub new: &'a Body,
    /// Where the site table says each original instruction is now.
    pub addresses: &'a [AddressPair],
    /// Registers at entry by the original descriptor.
    pub entry_before: &'a InitialRegisters,
    /// Registers at entry by the new descriptor.
    pub entry_after: &'a InitialRegisters,
    /// Registers that any code of the original object may use.
    pub used: UsedRegisters,
    /// Whether memory instructions may be replayed (XNACK is not known to be off).
    pub replays: bool,
}

/// Checks the code of one instrumented kernel against the original's.
#[must_use]
pub fn check_code(code: &KernelCode<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let original = code.program.body(code.kernel);
    if let Some(alignment) = Alignment::find(original, code.new, code.addresses, &mut findings) {
        let subject = preserve::Subject {
            program: code.program,
            id: code.kernel,
            new: code.new,
            alignment: &alignment,
            entry: (code.entry_before, code.entry_after),
            named: code.used.named,
        };
        preserve::check(&subject, &mut findings);
        let summaries = WaitSummaries::compute(code.program);
        outstanding::check(code.new, &alignment, &summaries, code.used.named, &mut findings);
        hazards::check(code.new, &alignment, code.replays, &mut findings);
    }
    findings.into_iter().map(|finding| finding.in_kernel(original.name())).collect()
}
