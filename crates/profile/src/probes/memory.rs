//! The probe of memory accesses: in sampled workgroups each execution is recorded, with the addresses of its lanes.

use std::sync::{Arc, LazyLock};

use crate::schema::{FieldSchema, KindSchema, Merge, Unit};

/// The probe's name.
pub const PROBE: &str = "memory";

/// An access. Its counter says how many executions were not recorded, as there was no room.
pub static ACCESS: LazyLock<Arc<KindSchema>> = LazyLock::new(|| Arc::new(KindSchema::new(PROBE, "access", FIELDS)));

/// The fields.
const FIELDS: &[FieldSchema] = &[FieldSchema::new("dropped", Unit::Executions, Merge::Sum)];

/// The kinds of sites of this probe.
#[must_use]
pub fn kinds() -> [&'static Arc<KindSchema>; 1] {
    [&ACCESS]
}
