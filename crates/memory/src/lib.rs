//! How the lanes of a wave access memory, from the code alone and from what was recorded: which accesses fetch more
//! lines of the cache than their bytes need, and which keep the banks of LDS busy for longer than they have to.
//!
//! [`Accesses`] finds the accesses of a kernel and what their addresses are, by lane, as
//! [`LaneValues`](wavetap_analysis::dataflow::LaneValues) works it out for the waves of a workgroup whose shape is
//! known or assumed ([`Launched`]). [`Place`] is what a wave accesses: [`Place::lines`] and [`Place::banks`] say what
//! that costs, and [`Place::category`] what it looks like.
//!
//! What was recorded while a kernel ran is a [`RecordedKernel`]. [`Analysis`] says what its instructions cost
//! ([`Measured`]), which words of its arrays how many waves access ([`Heat`]), and what of that is worth a change
//! ([`Finding`]).
//!
//! What is not known is said to be unknown; what is said holds for every execution with all lanes of the wave active,
//! under the assumptions that are named with it.
#![forbid(unsafe_code)]

mod accesses;
mod analysis;
mod arrays;
mod descriptor;
mod findings;
mod heat;
mod launched;
mod measured;
mod neighbours;
mod place;
mod recorded;
mod resolve;
mod site;
mod site_sets;

pub use accesses::{Access, Accesses, Operation, POINTER_ALIGNMENT, Space, accesses, pointers};
pub use analysis::Analysis;
pub use arrays::{Array, Arrays, LdsPart};
pub use findings::{Evidence, Finding, FindingKind, Fix, findings};
pub use heat::{ArrayUse, Heat, HeatMap, Pattern, Run, Sector, Word, WorkgroupWords};
pub use launched::{Launched, MOST_WORK_ITEMS};
pub use measured::{Measured, Wave};
pub use place::{Category, Lines, Place, Unknown, count_lines};
pub use recorded::{Allocation, Recorded, RecordedGrid, RecordedKernel};
pub use resolve::{ResolvedAccess, resolve};
pub use site::{Severity, Site, WaveAccesses, space};
pub use site_sets::{SetNumber, SiteSets};
pub use wavetap_code::WorkgroupSource;
