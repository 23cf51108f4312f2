//! Matrix instructions.

use super::op::Meaning;

/// The meaning of a matrix instruction.
pub(super) fn meaning(_name: &str) -> Option<Meaning> {
    None
}
