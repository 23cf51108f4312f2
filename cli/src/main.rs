//! The `wavetap` command.
fn main() {}
