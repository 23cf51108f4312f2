//! Scratch memory that was added to a kernel's own, and the four scalar registers that describe a wave's where only buffer instructions reach it.
//!
//! The hardware gives a wave what describes the scratch memory of all of them: a base in the first two registers, the wave's distance from it in another one. The
//! sum with the same two last registers describes the wave's own (AMDGPUUsage, "Private Segment Buffer").

use std::ops::Range;

use super::finding::{Finding, Rule};
use super::values::{State, Word};
use crate::cfg::{BodyId, Program};
use crate::code_object::{Field, InitialRegisters, Kernel};
use crate::isa::{Reg, RegFile, Target};

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
    if is_given(old) != is_given(new) && (same || target.architected_flat_scratch() || target.offset_flat_scratch()) {
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
    if target.offset_flat_scratch() {
        // Inserted code goes by what describes scratch memory, which is looked at where it does. FLAT_SCRATCH is the original's.
        if !new.descriptor.is_set(Field::ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER) {
            complain("what describes scratch memory is not asked for".to_owned());
        }
    } else if !target.architected_flat_scratch() {
        // Inserted code sets FLAT_SCRATCH at the entry, which is looked at where it does; and then it stays as it is.
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

/// [`Word::Resource`] of the carry from the first register to the second.
pub(super) const RESOURCE_CARRY: u8 = 4;
/// [`Word::Given`] of the wave's offset, and of the first of the registers that describe the scratch memory of all waves.
const GIVEN_OFFSET: u8 = 2;
const GIVEN_RESOURCE: u8 = 3;

/// What a kernel is entered with that describes the scratch memory of all waves, and the wave's offset from its base; none if it is not asked for. Words that the
/// original does not have get names of their own.
pub(super) fn given(state: &mut State, entry: &InitialRegisters) -> Option<[Word; 5]> {
    let (first, offset) = (entry.private_segment_buffer?, entry.private_segment_wave_offset?);
    let mut word = |code: u16, unnamed: u8| match state.word(Reg::scalar(code, 1), 0) {
        word @ Word::Original(_) => word,
        _ => {
            state.set(Reg::scalar(code, 1), 0, Word::Given(unnamed));
            Word::Given(unnamed)
        }
    };
    let [a, b, c, d] = [0, 1, 2, 3].map(|index| word(first + u16::from(index), GIVEN_RESOURCE + index));
    Some([a, b, c, d, word(offset, GIVEN_OFFSET)])
}

/// What a copy of a word is in a register: the two last dwords of what describes scratch memory are the same for all waves. The register in which the original
/// has one itself keeps holding the original's.
pub(super) fn copied(state: &State, word: Word, to: Option<Reg>, index: u8) -> Word {
    let Some([.., third, fourth, _]) = state.resource else { return word };
    let Some(to) = to.filter(|to| to.file == RegFile::Scalar) else { return word };
    match word {
        word if word == Word::Original(to.first + u16::from(index)) => word,
        word if word == third => Word::Resource(2),
        word if word == fourth => Word::Resource(3),
        word => word,
    }
}

/// Whether four registers describe the wave's scratch memory.
pub(super) fn is_described(state: &State, registers: Reg) -> bool {
    registers.file == RegFile::Scalar && registers.dwords == 4 && (0..4).all(|index| state.word(registers, index) == Word::Resource(index))
}
