//! A slice as text. The data is that of [`wavetap_explain::slice`].

mod compare;
mod text;

pub use compare::render_comparison;
pub use text::render;
pub(crate) use text::{Order, chain_lines, edge_word, operation_text, stall_lines, wait_lines};
pub use wavetap_explain::slice::*;
