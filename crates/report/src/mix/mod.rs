//! What kernels executed as text. The data is that of [`wavetap_explain::mix`].

mod text;

pub(crate) use text::memory_name;
pub use text::render;
pub use wavetap_explain::mix::*;
