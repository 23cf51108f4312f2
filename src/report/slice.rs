//! A slice as text.

use super::text::{Style, wait_lines};
use crate::slice::Slice;

/// All kernels with their waits.
#[must_use]
pub fn render(slice: &Slice, style: Style) -> String {
    let mut lines = Vec::new();
    for kernel in &slice.kernels {
        lines.push(format!("{}  {}", style.bold(&kernel.demangled), style.dim(&kernel.target)));
        let before = lines.len();
        wait_lines(&kernel.waits, style, &mut lines);
        if lines.len() == before {
            lines.push("  no waits".to_owned());
        }
        lines.push(String::new());
    }
    if slice.kernels.is_empty() {
        lines.push("no kernel selected\n".to_owned());
    }
    lines.join("\n")
}
