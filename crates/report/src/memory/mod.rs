//! How a kernel's lanes access memory as text, and what is wrong with it in the forms of other tools. The data is that
//! of [`wavetap_explain::memory`].

mod found;
mod log;
mod text;

pub(crate) use found::{because, may_help};
pub use log::finding_log;
pub(crate) use log::level_of;
pub use text::render;
pub use wavetap_explain::memory::words;
pub use wavetap_explain::memory::*;
