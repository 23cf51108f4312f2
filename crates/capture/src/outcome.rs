//! What a replay found.

use serde::{Deserialize, Serialize};
use wavetap_profile::hex;

use crate::file::MemoryKind;

/// Schema of a replay's outcome.
pub const SCHEMA: &str = "wavetap.replay/1";

/// What a replay did, and how the memory that it left compares with that of the captured dispatch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outcome {
    /// [`SCHEMA`].
    pub schema: String,
    /// The kernel's mangled name.
    pub kernel: String,
    /// The same as in the source.
    pub demangled: String,
    /// The target id of the code that ran.
    pub target: String,
    /// Whether that is the captured code, rewritten or not.
    pub captured_code: bool,
    /// Work-items of the grid in x, y, z.
    pub grid: [u32; 3],
    /// Work-items of a workgroup in x, y, z.
    pub workgroup: [u32; 3],
    /// Bytes of memory that the capture has.
    pub bytes: u64,
    /// Whether nothing but the kernel could change the memory while it was captured.
    pub alone: bool,
    /// Whether all compared bytes are those of the capture.
    pub same: bool,
    /// Each range of memory that the captured dispatch or the replay changed.
    pub changed: Vec<RangeOutcome>,
}

/// How one range of memory compares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RangeOutcome {
    /// First address.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// What it is.
    pub kind: MemoryKind,
    /// Bytes that the captured dispatch changed.
    pub changed_bytes: u64,
    /// Bytes that are other than after the captured dispatch.
    pub different_bytes: u64,
    /// The first of them, if there is one.
    pub first: Option<Difference>,
}

/// A place where two memories differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// Offset in the range.
    pub offset: u64,
    /// Up to eight bytes from there after the captured dispatch.
    pub captured: Vec<u8>,
    /// The same after the replay.
    pub replayed: Vec<u8>,
}

/// Bytes that are shown of a difference.
const SHOWN: usize = 8;

impl RangeOutcome {
    /// Compares a range before and after the captured dispatch with what a replay has left; none where nothing changed.
    ///
    /// ```
    /// use wavetap_capture::file::MemoryKind;
    /// use wavetap_capture::outcome::RangeOutcome;
    ///
    /// let of = |after, replayed| RangeOutcome::compare(0x1000, MemoryKind::Allocation, b"abcd", after, replayed);
    /// let range = of(b"abXY", b"abXd").expect("it changed");
    /// assert_eq!((range.changed_bytes, range.different_bytes), (2, 1));
    /// let first = range.first.expect("a difference");
    /// assert_eq!((first.offset, &first.captured[..], &first.replayed[..]), (3, &b"Y"[..], &b"d"[..]));
    /// assert_eq!(of(b"abcd", b"abcd"), None);
    /// ```
    #[must_use]
    pub fn compare(
        address: u64,
        kind: MemoryKind,
        before: &[u8],
        after: &[u8],
        replayed: &[u8],
    ) -> Option<RangeOutcome> {
        let differ =
            |one: &[u8], other: &[u8]| one.iter().zip(other).filter(|(one, other)| one != other).count() as u64;
        let (changed_bytes, different_bytes) = (differ(before, after), differ(after, replayed));
        if changed_bytes == 0 && different_bytes == 0 {
            return None;
        }
        let first = after.iter().zip(replayed).position(|(one, other)| one != other).map(|at| {
            let shown = |bytes: &[u8]| bytes[at..].iter().take(SHOWN).copied().collect();
            Difference { offset: at as u64, captured: shown(after), replayed: shown(replayed) }
        });
        Some(RangeOutcome { address, size: after.len() as u64, kind, changed_bytes, different_bytes, first })
    }
}
