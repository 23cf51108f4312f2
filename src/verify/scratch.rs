//! Scratch memory that was added to a kernel's own.

use std::ops::Range;

use super::finding::{Finding, Rule};
use crate::cfg::{BodyId, Program};
use crate::code_object::{Field, Kernel};
use crate::isa::Target;

/// Checks that scratch memory only grew, the same in descriptor and metadata, and only where the original cannot notice; gives what was added, for each
/// work-item.
pub(super) fn added(
    (old, new): (&Kernel, &Kernel),
    program: &Program,
    id: BodyId,
    target: Target,
    findings: &mut Vec<Finding>,
) -> Range<u64> {
    let stated = |kernel: &Kernel| u64::from(kernel.descriptor.get(Field::PRIVATE_SEGMENT_FIXED_SIZE));
    let noted = |kernel: &Kernel| kernel.metadata.as_ref().map_or(0, |metadata| metadata.private_segment_fixed_size);
    let enabled = |kernel: &Kernel| kernel.descriptor.is_set(Field::ENABLE_PRIVATE_SEGMENT);
    let (before, now) = (stated(old).max(noted(old)), noted(new));
    let mut complain = |message: String| findings.push(Finding::new(Rule::Scratch, message).at(new.descriptor_address));
    let same = stated(old) == stated(new) && noted(old) == noted(new) && enabled(old) == enabled(new);
    if same {
        return 0..0;
    }
    if now < before || (stated(new) != now && stated(new) != 0) || (stated(new) == 0) != (stated(old) == 0) {
        complain(format!("{before} bytes of scratch memory became {now} in the metadata and {} in the descriptor", stated(new)));
    }
    if !enabled(new) {
        complain("scratch memory is not enabled".to_owned());
    }
    if enabled(new) != enabled(old) && now == before {
        complain("scratch memory is enabled, and there is none".to_owned());
    }
    // Elsewhere the hardware says in scalar registers where scratch memory is, and the original may have other things in them when it is needed.
    if !target.architected_flat_scratch() {
        complain(format!("{} has no scratch memory that is always found", target.name()));
    }
    if old.descriptor.is_set(Field::ENABLE_SGPR_PRIVATE_SEGMENT_SIZE) {
        complain("the original is told how much scratch memory there is".to_owned());
    }
    let callees = program.callees(id);
    let recursive = callees.bodies.iter().any(|callee| program.callees(*callee).bodies.contains(callee));
    let dynamic = old.metadata.as_ref().is_some_and(|metadata| metadata.uses_dynamic_stack);
    if callees.unknown || recursive || dynamic || old.descriptor.is_set(Field::USES_DYNAMIC_STACK) {
        complain("nobody knows how much scratch memory the original uses".to_owned());
    }
    before..now
}
