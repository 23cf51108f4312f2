//! Functions that run as they were: what instrumented code calls and has no clone of.

use std::collections::BTreeSet;

use wavetap_analysis::cfg::{BodyId, Program};
use wavetap_analysis::kernel::{BodyKind, Reason, Refusal, end_of_wave};

/// The functions that may run as they were, without counting, when a kernel runs.
#[derive(Debug)]
pub(crate) struct Uncopied {
    /// All that are reached through a function that is not copied, be there copies of them or not; where a pointer is
    /// called, all that are reached.
    functions: BTreeSet<BodyId>,
    /// Whether there may be others: an unknown pointer may lead to any.
    unknown: bool,
}

impl Uncopied {
    pub(crate) fn of(program: &Program, kernel: BodyId, is_copied: impl Fn(BodyId) -> bool) -> Uncopied {
        let callees = program.callees(kernel);
        let mut functions = BTreeSet::new();
        for callee in callees.bodies.into_iter().filter(|callee| callees.unknown || !is_copied(*callee)) {
            functions.insert(callee);
            functions.extend(program.callees(callee).bodies);
        }
        Uncopied { functions, unknown: callees.unknown }
    }

    /// Refuses a kernel that could end inside one of them, where no epilogue is.
    pub(crate) fn check_return(&self, program: &Program) -> Result<(), Refusal> {
        let any = program.ids().filter(|id| self.unknown && program.body(*id).kind() == BodyKind::Function);
        for id in self.functions.iter().copied().chain(any) {
            let body = program.body(id);
            if let Some(address) = end_of_wave(body) {
                let detail = format!("{} may end the wave, with counters that are not in its record yet", body.name());
                return Err(Refusal::at(Reason::CalleeEndsWave, address, detail));
            }
        }
        Ok(())
    }

    /// Their names; `?` for those that are not known.
    pub(crate) fn names(&self, program: &Program) -> Vec<String> {
        let mut names: Vec<String> =
            self.functions.iter().map(|callee| program.body(*callee).name().to_owned()).collect();
        names.sort_unstable();
        if self.unknown {
            names.push("?".to_owned());
        }
        names
    }
}
