//! What an earlier check has shown, so that the same code is not checked twice.

use wavetap_object::code_object::CodeObject;
use wavetap_profile::map::ObjectMap;

/// A rewritten code object in which nothing was found.
#[derive(Debug, Clone, Copy)]
pub struct VerifiedTemplate<'a> {
    /// The original.
    pub original: &'a CodeObject<'a>,
    /// What it was rewritten to.
    pub rewritten: &'a CodeObject<'a>,
    /// Its site table, as [`check_beside`](crate::check_beside) read it.
    pub map: &'a ObjectMap,
}
