//! Rooflines as text. The data is that of [`wavetap_explain::roofline`].

mod text;

pub use text::render;
pub use wavetap_explain::roofline::*;
