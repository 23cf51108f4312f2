//! The kernels and functions of a code object.

use std::cell::OnceCell;
use std::ops::Range;

use crate::build::{CodeInputs, with_code};
use crate::entries::entries;
use crate::lines::TableLines;
use wavetap_analysis::cfg::Program;
use wavetap_analysis::dataflow::{Summaries, WaitSummaries};
use wavetap_analysis::kernel::{Body, BodyKind};
use wavetap_base::error::Result;
use wavetap_code::{Code, Entries, Function};
use wavetap_memory::{Launched, pointers};
use wavetap_object::code_object::{CodeObject, LineTable};
use wavetap_profile::file::{KernelTotals, Profile};

/// A code object, decoded, and what is known of its runs.
#[derive(Debug)]
pub struct Decoded<'a> {
    program: &'a Program,
    code: &'a CodeObject<'a>,
    digest: &'a str,
    lines: TableLines<'a>,
    profile: Option<&'a Profile>,
    /// What calls do to what is outstanding, and to registers.
    of_calls: OnceCell<(WaitSummaries, Summaries)>,
}

impl<'a> Decoded<'a> {
    /// A code object of this digest; the profile says how its kernels were launched.
    #[must_use]
    pub fn new(
        program: &'a Program,
        code: &'a CodeObject<'a>,
        digest: &'a str,
        lines: Option<&'a LineTable>,
        profile: Option<&'a Profile>,
    ) -> Decoded<'a> {
        Decoded { program, code, digest, lines: TableLines(lines), profile, of_calls: OnceCell::new() }
    }

    /// The source lines.
    #[must_use]
    pub fn lines(&self) -> &TableLines<'a> {
        &self.lines
    }

    /// Its kernels and functions.
    pub fn functions(&self) -> impl Iterator<Item = AmdFunction<'_>> {
        self.program.bodies().iter().map(|body| AmdFunction { object: self, body })
    }

    fn totals(&self, name: &str) -> Option<&'a KernelTotals> {
        let of = |kernel: &&KernelTotals| kernel.object == self.digest && kernel.name == name;
        self.profile.and_then(|profile| profile.kernels.iter().find(of))
    }
}

/// A kernel or function of a [`Decoded`].
#[derive(Debug, Clone, Copy)]
pub struct AmdFunction<'a> {
    object: &'a Decoded<'a>,
    body: &'a Body,
}

impl Function for AmdFunction<'_> {
    fn name(&self) -> &str {
        self.body.name()
    }

    fn is_kernel(&self) -> bool {
        self.body.kind() == BodyKind::Kernel
    }

    fn target(&self) -> &str {
        self.body.target().name()
    }

    fn span(&self) -> Range<u64> {
        self.body.span()
    }

    fn addresses(&self) -> Vec<u64> {
        self.body.ids().map(|id| self.body.address(id)).collect()
    }

    fn text(&self, address: u64) -> Option<String> {
        let id = self.body.at(address)?;
        Some(wavetap_amdgpu::print(self.body.target(), self.body.inst(id)))
    }

    fn entries(&self) -> Entries {
        entries(self.object.program, self.object.code, self.body.name())
    }

    fn with_code(&self, then: &mut dyn FnMut(&Code<'_>)) -> Result<()> {
        let Decoded { program, code, .. } = *self.object;
        let compute = || (WaitSummaries::compute(program), Summaries::compute(program));
        let (waits, registers) = self.object.of_calls.get_or_init(compute);
        let kernel = code.kernel(self.body.name());
        let pointers = pointers(kernel);
        let inputs = CodeInputs {
            launched: Launched::of(kernel, self.object.totals(self.body.name())),
            pointers: &pointers,
            lines: &self.object.lines,
            ..CodeInputs::new(self.body, waits, registers)
        };
        with_code(&inputs, then)
    }
}
