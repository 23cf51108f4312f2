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
    let is_given = |kernel: &Kernel| kernel.descriptor.is_set(Field::ENABLE_SGPR_FLAT_SCRATCH_INIT);
    if is_given(old) != is_given(new) && (same || target.architected_flat_scratch()) {
        complain("what FLAT_SCRATCH is made of is asked for, and not needed".to_owned());
    }
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
    let callees = program.callees(id);
    // Elsewhere inserted code sets FLAT_SCRATCH at the entry, which is looked at where it does; and then it stays as it is.
    if !target.architected_flat_scratch() {
        if target.offset_flat_scratch() {
            complain(format!("{} has no scratch memory that is found without vector registers", target.name()));
        }
        if std::iter::once(id).chain(callees.bodies.iter().copied()).any(|body| program.body(body).sets_flat_scratch()) {
            complain("the original sets FLAT_SCRATCH itself".to_owned());
        }
    }
    if old.descriptor.is_set(Field::ENABLE_SGPR_PRIVATE_SEGMENT_SIZE) {
        complain("the original is told how much scratch memory there is".to_owned());
    }
    let recursive = callees.bodies.iter().any(|callee| program.callees(*callee).bodies.contains(callee));
    let dynamic = old.metadata.as_ref().is_some_and(|metadata| metadata.uses_dynamic_stack);
    if callees.unknown || recursive || dynamic || old.descriptor.is_set(Field::USES_DYNAMIC_STACK) {
        complain("nobody knows how much scratch memory the original uses".to_owned());
    }
    before..now
}
