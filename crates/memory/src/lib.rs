//! How the lanes of a wave access memory, from the code alone: which accesses fetch more lines of the cache than their
//! bytes need, and which keep the banks of LDS busy for longer than they have to.
//!
//! [`Accesses`] finds the accesses of a kernel and what their addresses are, by lane, as
//! [`LaneValues`](wavetap_analysis::dataflow::LaneValues) works it out for the waves of a workgroup whose shape is
//! known or assumed ([`Launched`]). [`Place`] is what a wave accesses: [`Place::lines`] and [`Place::banks`] say what
//! that costs, and [`Place::category`] what it looks like.
//!
//! What is not known is said to be unknown; what is said holds for every execution with all lanes of the wave active,
//! under the assumptions that are named with it.
#![forbid(unsafe_code)]

mod accesses;
mod launched;
mod place;
mod resolve;
mod recorded;
mod site;

pub use accesses::{Access, Accesses, Operation, POINTER_ALIGNMENT, Space, pointers};
pub use launched::{Launched, MOST_WORK_ITEMS, WorkgroupSource};
pub use place::{Category, Lines, Place, Unknown, count_lines};
pub use resolve::{ResolvedAccess, resolve};
pub use recorded::{Allocation, Recorded, RecordedKernel};
pub use site::{Severity, Site, sites};
