//! Writes a virtual address as `"0x1a40"`, as every JSON output does.

use serde::{Deserialize, Deserializer, Serializer, de::Error};

/// Serialises as a hex string.
///
/// # Errors
/// Whatever the serializer reports.
pub fn serialize<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format!("{value:#x}"))
}

/// Reads a hex string with its `0x`.
///
/// # Errors
/// If it is not one.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    let digits =
        text.strip_prefix("0x").ok_or_else(|| D::Error::custom(format!("address {text:?} does not begin with 0x")))?;
    u64::from_str_radix(digits, 16).map_err(|_| D::Error::custom(format!("address {text:?} is not hexadecimal")))
}
