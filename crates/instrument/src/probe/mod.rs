//! What is measured: one file for each probe.
//!
//! A [`Probe`] says what it [needs](Needs), looks once at each function that is instrumented ([`Probe::prepare`]), and
//! then writes, with an [`Emitter`], the code that measures: at the entry of the kernel, at its sites and where waves
//! end. It does not know where counters are kept or where registers come from, and no other code knows the probe: what
//! plans, collects, merges and shows counters reads needs and schemas. A probe may live in any crate.
//!
//! A probe that counts executions of `s_barrier`:
//!
//! ```
//! use std::sync::{Arc, LazyLock};
//! use wavetap_instrument::probe::*;
//!
//! const FIELDS: &[FieldSchema] = &[FieldSchema::new("executions", Unit::Executions, Merge::Sum)];
//! static BARRIER: LazyLock<Arc<KindSchema>> =
//!     LazyLock::new(|| Arc::new(KindSchema::new("barriers", "barrier", FIELDS)));
//!
//! #[derive(Debug)]
//! struct Barriers;
//!
//! impl Probe for Barriers {
//!     fn name(&self) -> &'static str {
//!         "barriers"
//!     }
//!     fn summary(&self) -> &'static str {
//!         "Executions of s_barrier"
//!     }
//!     fn prepare(&self, function: &ClonedFunction<'_>) -> Result<Box<dyn FunctionProbe>, Stop> {
//!         let body = function.body();
//!         let barriers = body.ids().filter(|id| body.inst(*id).name() == "s_barrier");
//!         Ok(Box::new(InFunction(barriers.map(|inst| ProbeSite { inst, kind: &BARRIER }).collect())))
//!     }
//! }
//!
//! #[derive(Debug)]
//! struct InFunction(Vec<ProbeSite>);
//!
//! impl FunctionProbe for InFunction {
//!     fn sites(&self) -> &[ProbeSite] {
//!         &self.0
//!     }
//!     // How often follows from the flow of control: where counters are placed, no code is at the site.
//!     fn counters(&self, _: &ClonedFunction<'_>, site: &ProbeSite) -> Vec<Vec<(i64, Quantity)>> {
//!         vec![vec![(1, Quantity::Executions(site.inst))]]
//!     }
//!     fn at_site(&self, site: &ProbeSite, emitter: &mut Emitter<'_, '_>) -> Result<(), Stop> {
//!         let before = ProgramPoint { inst: site.inst, side: Side::Before };
//!         emitter.measure(before, Scc::Preserved, |m| {
//!             let (exec, saved) = (m.exec(), m.saved_exec());
//!             m.reach()?;
//!             m.asm.masks("s_mov_b", &[saved, exec])?;
//!             // Lane 0 adds 1 to the first counter.
//!             m.asm.masks("s_mov_b", &[exec, c(0b1)])?;
//!             m.add()
//!         })
//!     }
//! }
//!
//! static PROBE: Barriers = Barriers;
//! assert_eq!((&PROBE as &dyn Probe).needs(), Needs::default());
//! ```

mod blocks;
mod bounds;
mod branches;
mod clock;
mod emitter;
mod latency;
mod memory;
mod needs;
mod registry;
mod table;
mod time;
mod values;

/// A probe, as it is chosen.
pub type ProbeRef = &'static dyn Probe;

pub use branches::branch_sites;
pub use emitter::{Emitter, Measurement, Scc};
pub use needs::{FIRST_KEPT_LANE, Needs, check_together};
pub use registry::{
    ALL, BLOCKS, BOUNDS, BOUNDS_DROP, BRANCHES, DRAINED_LATENCY, MEMORY, MEMORY_LATENCY, TIME, VALUES, by_name,
};
pub(crate) use table::SiteTable;

pub use crate::asm::{Asm, Global, c, s, s2, v, v2};
pub use crate::function::ClonedFunction;
pub use crate::placement::Quantity;
pub use crate::scavenge::registers::Scalars;
pub use crate::site::ProbeSite;
pub use wavetap_amdgpu as amdgpu;
pub use wavetap_analysis::dataflow::RegSet;
pub use wavetap_analysis::kernel::edit::Label;
pub use wavetap_analysis::kernel::{Body, BodyKind, Reason, Refusal, Stop};
pub use wavetap_base::entity::{InstId, ProgramPoint, Side};
pub use wavetap_base::error::Error;
pub use wavetap_profile::schema::{FieldSchema, KindSchema, Merge, Unit};

use std::fmt::Debug;

/// Something to measure.
///
/// Two probes are the same if they have the same [name](Probe::name).
pub trait Probe: Debug + Sync {
    /// Its name, as in `--probe`.
    fn name(&self) -> &'static str;

    /// What it measures, for people: one line of `--help`.
    fn summary(&self) -> &'static str;

    /// What it needs of the code around it and of those who run it.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Looks at a function once, before registers and a place for counters are chosen: what it measures there.
    ///
    /// # Errors
    /// Refused if something in the function cannot be measured correctly. A called function then runs as it was, which
    /// the profile says; a kernel is refused.
    fn prepare(&self, function: &ClonedFunction<'_>) -> Result<Box<dyn FunctionProbe>, Stop>;
}

impl PartialEq for dyn Probe {
    fn eq(&self, other: &dyn Probe) -> bool {
        self.name() == other.name()
    }
}

impl Eq for dyn Probe {}

/// What a probe measures in one function.
///
/// The code is written once for each combination of registers and counters that is tried: nothing here may depend on
/// how often it was called.
pub trait FunctionProbe: Debug {
    /// The sites, by address.
    fn sites(&self) -> &[ProbeSite];

    /// What each counter of a site is made of: quantities, each times a factor. Where counters are placed, this is all
    /// that is asked of a probe; [`FunctionProbe::at_site`] is for where each is kept. Not asked of probes that need
    /// [`Needs::at_each_site`] or [`Needs::global_memory`].
    fn counters(&self, function: &ClonedFunction<'_>, site: &ProbeSite) -> Vec<Vec<(i64, Quantity)>> {
        let _ = function;
        vec![Vec::new(); site.kind.counters() as usize]
    }

    /// The registers of the original code that the code of a site reads: inserted code does not scavenge them there.
    fn reads(&self, function: &ClonedFunction<'_>, site: &ProbeSite) -> RegSet {
        let _ = (function, site);
        RegSet::EMPTY
    }

    /// Writes code where waves begin, before that of sites there. In the kernel alone, not in functions.
    ///
    /// # Errors
    /// Refused if there are no registers for it; failed if an instruction cannot be built.
    fn at_entry(&self, emitter: &mut Emitter<'_, '_>) -> Result<(), Stop> {
        let _ = emitter;
        Ok(())
    }

    /// Writes the code of one site where every counter is kept.
    ///
    /// # Errors
    /// Refused if there are no registers for it; failed if an instruction cannot be built.
    fn at_site(&self, site: &ProbeSite, emitter: &mut Emitter<'_, '_>) -> Result<(), Stop>;

    /// Writes code at a point before the end of a wave, after that of sites there.
    ///
    /// # Errors
    /// Refused if there are no registers for it; failed if an instruction cannot be built.
    fn at_end(&self, end: ProgramPoint, emitter: &mut Emitter<'_, '_>) -> Result<(), Stop> {
        let _ = (end, emitter);
        Ok(())
    }
}
