//! A summary as text. The data is that of [`wavetap_explain::summary`].

mod text;

pub use wavetap_explain::summary::*;
