//! Kernels as they are compiled, and what the emulator sees of each: every instruction with its lanes, and addresses
//! of accesses. That is compared with what `memory` says of accesses (`accesses`) and `mix` of executions (`mix`).
//! The kernels are those of `rewriter-tests/kernels` and 200 that are made up from seeds; each is run once for all
//! comparisons.
//!
//! Quick: a target of each kind, one level of optimisation. Full (`WAVETAP_FULL_TESTS=1`): every target, three levels.
//! `WAVETAP_KERNEL_TARGETS=gfx1030,gfx1100` takes these targets alone, `WAVETAP_KERNEL=made_up_17` kernels with this in
//! their name.

mod accesses;
mod mix;
mod oracle;
mod programs;

use std::process::ExitCode;

use libtest_mimic::Trial;
use rewriter_tests::Failure;
use rewriter_tests::kernels::launch;
use rewriter_tests::made_up::{self, Built};
use rewriter_tests::tally::{self, Tallies};
use wavetap::cfg::Program;
use wavetap::code_object::CodeObject;
use wavetap::dataflow::Summaries;
use wavetap::emulator::Options;
use wavetap::kernel::Image;

/// A kernel that executes more than this many wave-instructions does not end by itself.
const FUEL: u64 = 3_000_000;
/// Records of a dispatch that are kept; where there are more, bytes are not compared.
const MOST_RECORDS: usize = 200_000;

/// What was compared of the kernels of a way of compiling.
#[derive(Debug, Default)]
struct Tally {
    accesses: accesses::Tally,
    mix: mix::Tally,
}

static TALLIES: Tallies<Tally> = Tallies::new();

fn main() -> ExitCode {
    TALLIES.run(trials(), |tallies| {
        accesses::judge(tallies.iter().map(|(way, tally)| (way, &tally.accesses)))?;
        mix::judge(tallies.iter().map(|(way, tally)| (way, &tally.mix)))
    })
}

impl tally::Tally for Tally {
    fn add(&mut self, other: Tally) {
        self.accesses.add(other.accesses);
        self.mix.add(other.mix);
    }
}

fn trials() -> Result<Vec<Trial>, Failure> {
    let compiled = made_up::compiled(made_up::variants()?)?.into_iter().map(|compiled| compiled.trial(run));
    Ok(accesses::trials().chain(programs::trials()).chain(compiled).collect())
}

/// All kernels of a source, compiled in one way.
fn run(built: &Built) -> Result<(), Failure> {
    let object = &built.object;
    let code = CodeObject::parse(object).map_err(|e| e.to_string())?;
    let image = Image::of(&code).map_err(|e| e.to_string())?;
    let program = Program::of(code.target().ok_or("no target")?, &image);
    let summaries = Summaries::compute(&program);
    let mut tally = Tally::default();
    let outcome = built.each(|test, buffers| {
        let options = Options {
            strict: false,
            fuel: FUEL,
            threads: 1,
            trace: true,
            trace_lanes: true,
            accesses: MOST_RECORDS,
            ..Options::default()
        };
        let (_, stats) = launch::run(object, built.variant.target, test, buffers, &options)?;
        let id = program.by_name(&test.name).ok_or("it has no code")?;
        let subject = accesses::Subject { code: &code, body: program.body(id), summaries: &summaries, test };
        let mut wrong = subject.compare(&stats.accesses.records, &mut tally.accesses);
        let subject = mix::Subject { object, program: &program, summaries: &summaries, test };
        wrong.extend(subject.compare(&stats, &mut tally.mix).err().map(|failure| format!("mix: {failure}")));
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    });
    TALLIES.add(built.variant.to_string(), tally);
    outcome
}
