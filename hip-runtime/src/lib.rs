//! Stands in for `libamdhip64`.
