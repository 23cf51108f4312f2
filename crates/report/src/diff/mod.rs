//! The differences of two profiles as text. The data is that of [`wavetap_explain::diff`].

mod text;

pub use text::render;
pub(crate) use text::{lines_of, metric_name, numbers, signed, site_name};
pub use wavetap_explain::diff::*;
