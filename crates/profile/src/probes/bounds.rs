//! The probe of bounds: accesses to global memory outside of what is allocated.
//!
//! What the first of them at a site was in a dispatch is in [`crate::bounds`].

use std::sync::{Arc, LazyLock};

use crate::schema::{Counts, FieldSchema, KindSchema, Merge, Unit};

/// The probe's name.
pub const PROBE: &str = "bounds";
/// The name of the probe that also drops what it finds.
pub const DROPPING_PROBE: &str = "bounds-drop";

/// An access. `executions`: those in which at least one lane was out of bounds; `lanes`: these lanes, summed;
/// `unchecked`: executions of a buffer instruction whose descriptor is of a kind that is not checked.
pub static ACCESS: LazyLock<Arc<KindSchema>> = LazyLock::new(|| Arc::new(KindSchema::new(PROBE, "access", FIELDS)));

/// An access that lanes which are out of bounds do not execute. The counters are those of [`ACCESS`].
pub static DROPPED_ACCESS: LazyLock<Arc<KindSchema>> =
    LazyLock::new(|| Arc::new(KindSchema::new(PROBE, "dropped_access", FIELDS)));

/// The fields.
const FIELDS: &[FieldSchema] = &[
    FieldSchema::new("executions", Unit::Executions, Merge::Sum),
    FieldSchema::new("lanes", Unit::Lanes, Merge::Sum),
    FieldSchema::new("unchecked", Unit::Executions, Merge::Sum),
];

/// The kinds of sites of this probe.
#[must_use]
pub fn kinds() -> [&'static Arc<KindSchema>; 2] {
    [&ACCESS, &DROPPED_ACCESS]
}

/// Executions of a site that were not checked; 0 if it is none of this probe.
#[must_use]
pub fn unchecked(counts: &Counts) -> u64 {
    let kind = counts.kind();
    let field = if kind.probe == PROBE { kind.field("unchecked") } else { None };
    field.and_then(|field| counts.values().get(field).copied()).unwrap_or(0)
}
