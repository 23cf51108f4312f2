//! Kernels that are not instrumented, as reports list them.

use wavetap_analysis::kernel::Reason;
use wavetap_object::code_object::{Kernel, demangle};
use wavetap_profile::map::{EVERY_KERNEL, ObjectMap, Refused};
use wavetap_profile::record::HEADER;

/// Why a kernel, or a code object, is not instrumented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalReason {
    /// Its code cannot be instrumented correctly.
    Code(Reason),
    /// It is for a processor whose code is not rewritten.
    UnsupportedTarget,
    /// It is in a code object that cannot be extended.
    UnsupportedObject,
    /// It contradicts the format, by itself or in its metadata, or its code object does.
    Malformed,
    /// The independent checker rejects its instrumented code.
    Unverified,
}

impl RefusalReason {
    /// The fixed name, in snake case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RefusalReason::Code(reason) => reason.name(),
            RefusalReason::UnsupportedTarget => "unsupported_target",
            RefusalReason::UnsupportedObject => "unsupported_object",
            RefusalReason::Malformed => "malformed",
            RefusalReason::Unverified => "unverified",
        }
    }
}

impl From<Reason> for RefusalReason {
    fn from(reason: Reason) -> RefusalReason {
        RefusalReason::Code(reason)
    }
}

/// A refused kernel. `target` is the target id of its code object, `address` that of the instruction to blame.
#[must_use]
pub fn refused(target: &str, kernel: &Kernel, reason: RefusalReason, detail: &str, address: Option<u64>) -> Refused {
    let address = address.map(|address| format!("{address:#x}"));
    Refused { address, ..refused_by_name(target, &kernel.name, reason, detail) }
}

/// A refused kernel of which only the mangled name is known.
#[must_use]
pub fn refused_by_name(target: &str, name: &str, reason: RefusalReason, detail: &str) -> Refused {
    Refused {
        name: name.to_owned(),
        demangled: demangle(name).into_owned(),
        target: target.to_owned(),
        reason: reason.name().to_owned(),
        detail: detail.to_owned(),
        address: None,
    }
}

/// The map of a code object, or of a whole bundle, of which nothing is instrumented. `digest` is that of the object,
/// empty for a bundle.
#[must_use]
pub fn all_refused(target: &str, digest: &str, reason: RefusalReason, detail: &str) -> ObjectMap {
    let all = Refused {
        name: EVERY_KERNEL.to_owned(),
        demangled: EVERY_KERNEL.to_owned(),
        target: target.to_owned(),
        reason: reason.name().to_owned(),
        detail: detail.to_owned(),
        address: None,
    };
    ObjectMap {
        target: target.to_owned(),
        original: digest.to_owned(),
        stride: HEADER,
        kernels: Vec::new(),
        refused: vec![all],
    }
}
