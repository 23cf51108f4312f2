//! A probe of one's own: how often waves reach the barriers of a program, and with how many active lanes.
//!
//!     cargo run -p wavetap-example-barriers -- hip-samples/bin/transpose

use std::sync::{Arc, LazyLock};

use wavetap::probe::*;
use wavetap::run::{BackendChoice, RunOptions, Stdout};
use wavetap::{Options, Program};

/// What is counted at a barrier: a record has these fields, and reports show them under these names.
static BARRIER: LazyLock<Arc<KindSchema>> = LazyLock::new(|| Arc::new(KindSchema::new("barriers", "barrier", FIELDS)));
const FIELDS: &[FieldSchema] =
    &[FieldSchema::new("executions", Unit::Executions, Merge::Sum), FieldSchema::new("lanes", Unit::Lanes, Merge::Sum)];

#[derive(Debug)]
struct Barriers;

impl Probe for Barriers {
    fn name(&self) -> &'static str {
        "barriers"
    }

    fn summary(&self) -> &'static str {
        "Executions and active lanes of barriers"
    }

    fn prepare(&self, function: &ClonedFunction<'_>) -> Result<Box<dyn FunctionProbe>, Stop> {
        let body = function.body();
        // From gfx12 on a wave signals a barrier, and waits in an instruction of its own.
        let is_barrier = |id: &InstId| ["s_barrier", "s_barrier_wait"].contains(&body.inst(*id).name());
        let sites = body.ids().filter(is_barrier).map(|inst| ProbeSite { inst, kind: &BARRIER });
        Ok(Box::new(BarriersOf(sites.collect())))
    }
}

/// The barriers of one function.
#[derive(Debug)]
struct BarriersOf(Vec<ProbeSite>);

impl FunctionProbe for BarriersOf {
    fn sites(&self) -> &[ProbeSite] {
        &self.0
    }

    // Both follow from the flow of control: where counters are placed elsewhere, no code is inserted at barriers.
    fn counters(&self, _: &ClonedFunction<'_>, site: &ProbeSite) -> Vec<Vec<(i64, Quantity)>> {
        let before = ProgramPoint { inst: site.inst, side: Side::Before };
        vec![vec![(1, Quantity::Executions(site.inst))], vec![(1, Quantity::Lanes(before))]]
    }

    fn at_site(&self, site: &ProbeSite, emitter: &mut Emitter<'_, '_>) -> Result<(), Stop> {
        emitter.measure(ProgramPoint { inst: site.inst, side: Side::Before }, Scc::Preserved, |m| {
            let (exec, saved, lanes) = (m.exec(), m.saved_exec(), s(m.r.first));
            m.asm.masks("s_bcnt1_i32_b", &[lanes, exec])?;
            m.reach()?;
            m.asm.masks("s_mov_b", &[saved, exec])?;
            // Lane 0 adds 1 to the first counter, lane 1 what is put there to the second.
            m.value(1, lanes)?;
            m.asm.masks("s_mov_b", &[exec, c(0b11)])?;
            m.add()
        })
    }
}

fn main() -> wavetap::Result<()> {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: wavetap-example-barriers FILE");
        std::process::exit(2);
    };
    let rewritten = Program::open(path)?.rewrite(&Options::new([&Barriers as &dyn Probe]))?;
    let run = RunOptions::new().backend(BackendChoice::Emulator).stdout(Stdout::Discarded);
    let finished = rewritten.run(&run)?;
    finished.remarks().iter().for_each(|remark| eprintln!("{remark}"));
    for kernel in &finished.profile()?.kernels {
        println!("{}", kernel.demangled);
        for site in &kernel.sites {
            let [executions, lanes] = *site.counts.values() else { continue };
            println!("  {:#x} {}: {executions} executions, {lanes} lanes", site.address, site.instruction);
        }
    }
    Ok(())
}
