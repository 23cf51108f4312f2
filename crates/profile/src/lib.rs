//! The counters' format, in one definition for all who write or read it: device buffer, emulator host, HSA tool,
//! slicer, reports.
//!
//! - [`control`]: the control block in a rewritten code object (`__wavetap_control`);
//! - [`record`]: what one wave leaves in the record buffer;
//! - [`placement`]: counters that are kept, and those that follow from them;
//! - [`map`]: the site table inside a rewritten object, which says what the counters of a record count;
//! - [`schema`]: what the fields of a site are, and how their values combine;
//! - [`probes`]: the registry of probes: their schemas, and typed views of their counters;
//! - [`mod@file`]: the profile file: totals per site, and on request every wave's;
//! - [`merge`]: any number of profile files added up;
//! - [`launches`]: what was launched, and what of it was not counted;
//! - [`host`]: what a host had the device do: launches, copies, fills;
//! - [`journal`]: what a process has collected, written as it goes, so that nothing is lost however it ends;
//! - [`pc_samples`]: samples and traces that other profilers took, read;
//! - [`viewer`]: the instructions of a thread trace as AMD's viewer reads them, read and written;
//! - [`time`], [`samples`]: what the emulator's timing model says, as totals and as stall samples. Modelled, never
//!   measured; [`accuracy`]: how far that is from measured times.
#![forbid(unsafe_code)]

/// Describes the JSON of a type that writes itself as another one.
#[cfg(feature = "schema")]
macro_rules! described_as {
    ($type:ty, $written:ty) => {
        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                <$written>::inline_schema()
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                <$written>::schema_name()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                <$written>::json_schema(generator)
            }
        }
    };
}
#[cfg(feature = "schema")]
pub(crate) use described_as;

pub mod accesses;
pub mod accuracy;
pub mod bounds;
pub mod check;
pub mod control;
pub mod fidelity;
pub mod file;
pub mod hex;
pub mod host;
pub mod journal;
pub mod kind_table;
pub mod launches;
pub mod map;
pub mod merge;
pub mod origins;
pub mod pc_samples;
pub mod placement;
pub mod probes;
pub mod record;
pub mod regions;
mod sample_tables;
pub mod samples;
pub mod schema;
pub mod time;
pub mod viewer;

/// How the schema of a file describes an address: text such as `0x1a40`.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(inline)]
pub struct HexText(#[schemars(regex(pattern = "^0x[0-9a-f]+$"))] pub String);
