//! The probe of values: how often the first register that a load writes held the same value in all active lanes, and
//! that of the load's execution before.
//!
//! Executions with EXEC = 0 load nothing and are not counted. What a wave has loaded before is known of as many loads
//! of a kernel as there are lanes to keep it in; others are sites of the kind [`LOAD`].

use std::sync::{Arc, LazyLock};

use crate::schema::{FieldSchema, KindSchema, Merge, Unit};

/// The probe's name.
pub const PROBE: &str = "values";

/// A load with what the wave's execution of it before has loaded: `executions`, `uniform`: all active lanes held the
/// same value; `repeated`: and so did those of the execution before, in the same wave, the same value.
pub static TRACKED_LOAD: LazyLock<Arc<KindSchema>> =
    LazyLock::new(|| Arc::new(KindSchema::new(PROBE, "tracked_load", FIELDS)));

/// A load without that.
pub static LOAD: LazyLock<Arc<KindSchema>> =
    LazyLock::new(|| Arc::new(KindSchema::new(PROBE, "load", FIELDS.split_at(2).0)));

const FIELDS: &[FieldSchema] = &[
    FieldSchema::new("executions", Unit::Executions, Merge::Sum),
    FieldSchema::new("uniform", Unit::Executions, Merge::Sum),
    FieldSchema::new("repeated", Unit::Executions, Merge::Sum),
];

/// The kinds of sites of this probe.
#[must_use]
pub fn kinds() -> [&'static Arc<KindSchema>; 2] {
    [&TRACKED_LOAD, &LOAD]
}
