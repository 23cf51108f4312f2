//! Names that a rewritten code object has and its original has not: one definition for who writes them and who finds
//! them.

/// Symbol of the control block (global object, in `.symtab` and `.dynsym`).
pub const CONTROL_SYMBOL: &str = "__wavetap_control";
/// Section of the control block.
pub const CONTROL_SECTION: &str = ".wavetap.control";
/// Section of the added code.
pub const CODE_SECTION: &str = ".wavetap.text";
/// Section of the compressed site table.
pub const MAP_SECTION: &str = ".wavetap.map";
