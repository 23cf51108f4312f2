//! Kernels and device functions: the instructions that control can reach, each with its address.
//!
//! A [`Body`] is made by following control flow from an entry, never by sweeping a section: what is not reached is data
//! or padding and is not looked at, and a word that is reached and cannot be decoded is an error. A body is never
//! changed after it was made; changes are lists of edits that later stages apply while they write new code.
//!
//! Calls and jumps through registers are resolved by following constants (`s_getpc_b64` and additions, pointers loaded
//! from relocated slots), through other calls as well where it is told what these leave alone ([`PreservedRegs`]). What
//! cannot be resolved says so ([`CallTarget::Unknown`], [`Flow::IndirectJump`]); nothing is guessed.

mod address;
mod body;
mod bundling;
mod constants;
mod decode;
pub mod edit;
mod end_of_wave;
mod expert_scheduling;
mod image;
mod instructions;
mod refusal;
mod vgpr_msb;
mod vskip;

pub use address::{AddressForm, AddressOperands};
pub use expert_scheduling::{ALL_CHECKS, FEWER_CHECKS};
pub use vgpr_msb::writes_literal_to_mode;

pub use body::{Body, BodyKind, CallTarget, Flow};
pub use bundling::{BundlingConstraint, BundlingConstraints, Clause, Delay, Dependency};
pub use constants::{PreservedRegs, formed_addresses, preserved_by};
pub use end_of_wave::end_of_wave;
pub use expert_scheduling::Scheduling;
pub use image::Image;
pub use instructions::Instructions;
pub use refusal::{Reason, Refusal, Stop};

#[cfg(any(test, feature = "testing"))]
pub mod assembly;
#[cfg(any(test, feature = "testing"))]
pub mod random;
#[cfg(test)]
mod tests;
