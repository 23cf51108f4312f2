//! The registry of probes: one file for each, with its schemas and the typed view of its counters.
//!
//! What collects and merges counters does without; what interprets them (the emulator's trace, the slicer, reports)
//! reads the views.

pub mod blocks;
pub mod bounds;
pub mod branches;
pub mod latency;
pub mod memory;
pub mod time;
pub mod values;

use std::sync::Arc;

use super::schema::KindSchema;
use wavetap_base::error::{Error, Result};

/// The probe of all sites in maps and profiles of version 1, which name only the kind.
pub const VERSION_1: &str = branches::PROBE;

/// The kinds of sites of all known probes.
#[must_use]
pub fn kinds() -> Vec<&'static Arc<KindSchema>> {
    let kinds = branches::kinds().into_iter().chain(blocks::kinds()).chain(memory::kinds()).chain(time::kinds());
    kinds.chain(latency::kinds()).chain(values::kinds()).chain(bounds::kinds()).collect()
}

/// The kind of a name; none if no known probe has it.
#[must_use]
pub fn find(probe: &str, name: &str) -> Option<&'static Arc<KindSchema>> {
    kinds().into_iter().find(|kind| kind.probe == probe && kind.name == name)
}

/// A schema that a file has, for use. That of a known probe must be the one that the program knows: the views rely on
/// it. That of an unknown probe is taken as it is.
///
/// # Errors
/// Malformed if it is not well formed; Unsupported if a known probe has no such kind or its fields are others.
pub fn resolve(kind: KindSchema) -> Result<Arc<KindSchema>> {
    kind.check()?;
    let of_probe: Vec<&Arc<KindSchema>> = kinds().into_iter().filter(|known| known.probe == kind.probe).collect();
    if of_probe.is_empty() {
        return Ok(Arc::new(kind));
    }
    let names = |names: Vec<&str>| names.join(", ");
    let Some(known) = of_probe.iter().find(|known| known.name == kind.name) else {
        let known = names(of_probe.iter().map(|known| known.name.as_ref()).collect());
        return Err(Error::unsupported(format!(
            "kind {kind}: this program knows the kinds {known} of probe {}",
            kind.probe
        )));
    };
    if ***known == kind {
        return Ok(Arc::clone(known));
    }
    let fields = |kind: &KindSchema| {
        let one = |field: &super::schema::FieldSchema| {
            format!("{} ({:?}, {:?})", field.name, field.unit, field.merge).to_lowercase()
        };
        kind.fields.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    Err(Error::unsupported(format!(
        "kind {kind} has the fields {}; this program knows {}",
        fields(&kind),
        fields(known)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_schemas_are_well_formed_and_resolve_to_themselves() {
        for kind in kinds() {
            kind.check().unwrap();
            assert!(Arc::ptr_eq(kind, &resolve((**kind).clone()).unwrap()));
            assert!(Arc::ptr_eq(kind, find(&kind.probe, &kind.name).unwrap()));
        }
    }

    #[test]
    fn other_schemas_of_a_known_probe_are_refused() {
        let mut kind = (**branches::SCALAR).clone();
        kind.name = "indirect".into();
        let fault = resolve(kind).unwrap_err().to_string();
        assert!(
            fault.contains("branches/indirect: this program knows the kinds exec, scalar of probe branches"),
            "{fault}"
        );
        let mut kind = (**branches::SCALAR).clone();
        kind.fields.to_mut()[1].name = "not_taken".into();
        let fault = resolve(kind).unwrap_err().to_string();
        assert!(
            fault.contains("not_taken (executions, sum); this program knows executions (executions, sum), taken"),
            "{fault}"
        );
        let mut kind = (**branches::SCALAR).clone();
        kind.probe = "unknown".into();
        assert_eq!(resolve(kind.clone()).unwrap().as_ref(), &kind);
    }
}
