//! What the registers of the rewritten machine hold at an entry, in terms of the original's.
//!
//! The initial state of the preservation check (`preserve`). The hardware fills initial scalar registers in a
//! fixed order and without gaps (AMDGPUUsage, "Initial Kernel Execution State"), so a descriptor that enables one more
//! shifts all after it. Each value of the original is looked up by its meaning, not by its number: it is in the
//! register where the new descriptor has it. A register that the original finds undefined may hold anything. A copied
//! function begins with equal registers, because its calls are checked for that.

use crate::values::compared::{FlatScratch, State, Word};
use crate::values::preserve::Subject;
use crate::values::scratch;
use wavetap_amdgpu::{Reg, scalar};
use wavetap_analysis::dataflow::RegSet;
use wavetap_object::code_object::{InitialRegisters, WorkItemIds};

/// Bits of one packed work-item id (AMDGPUUsage, "Initial Kernel Execution State").
const WORK_ITEM_BITS: u32 = 10;
/// What registers hold at the new entry, in terms of the original's: enabling one initial register shifts all later
/// ones. What a function is entered with was checked where it is called.
pub(crate) fn at_entry(subject: &Subject<'_>) -> State {
    let mut state = State::same();
    let Some((old, new)) = subject.entry else { return state };
    // Where arguments are no longer preloaded, inserted code loads them before the code that expects them; or code at
    // the original's entry does, which `preload` checks.
    let is_loaded = subject.original.begins_after_entry() && new.kernarg_preload.is_none();
    let preload = old.kernarg_preload.filter(|_| is_loaded || new.kernarg_preload.is_some());
    state.preloaded = preload.zip(old.kernarg_ptr).filter(|_| is_loaded);
    let old = &InitialRegisters { kernarg_preload: preload, ..*old };
    let numbered = subject.original.target().addressable_sgprs() as u16;
    let mut undefined: RegSet = (0..numbered).map(|code| Reg::scalar(code, 1)).collect();
    [Reg::VCC, Reg::SCC, Reg::M0].into_iter().for_each(|reg| undefined.insert(reg));
    for half in [0, 128] {
        undefined.insert(Reg::vector(half, 128));
        undefined.insert(Reg::accum(half, 128));
    }
    // FLAT_SCRATCH counts as set, unless inserted code sets it where neither the hardware nor the original does.
    let target = subject.original.target();
    if !subject.scratch.is_empty() && !target.architected_flat_scratch() && !target.offset_flat_scratch() {
        if target.flat_scratch_hwreg().is_none() {
            (scalar::FLAT_SCRATCH..scalar::FLAT_SCRATCH + 2).for_each(|code| undefined.insert(Reg::scalar(code, 1)));
        }
        state.flat_scratch = Some(FlatScratch { given: [0, 1, 2].map(Word::Given), set: [Word::Other(u32::MAX); 2] });
    }
    let (old_fields, new_fields) = (fields(old), fields(new));
    // Where the original has a value it is gone at first; below, and by the prologue's moves, it is found again.
    for (from, width) in old_fields {
        for reg in from.into_iter().flat_map(|from| (from..from + width).map(|code| Reg::scalar(code, 1))) {
            state.set(reg, 0, Word::Other(u32::MAX));
            undefined.remove(reg);
        }
    }
    for ((from, width), (to, _)) in old_fields.into_iter().zip(new_fields) {
        let Some(to) = to else { continue };
        for index in 0..width {
            let word = from.map_or(Word::Other(u32::MAX), |from| Word::Original(from + index));
            state.set(Reg::scalar(to + index, 1), 0, word);
        }
    }
    let given = [new.flat_scratch_init, new.flat_scratch_init.map(|base| base + 1), new.private_segment_wave_offset];
    for (index, code) in given.into_iter().enumerate() {
        let Some(code) = code else { continue };
        let word = state.word(Reg::scalar(code, 1), 0);
        let Some(flat_scratch) = &mut state.flat_scratch else { continue };
        match word {
            word @ Word::Original(_) => flat_scratch.given[index] = word,
            _ => state.set(Reg::scalar(code, 1), 0, Word::Given(index as u8)),
        }
    }
    if !subject.scratch.is_empty() && target.offset_flat_scratch() {
        state.resource = scratch::given(&mut state, new);
    }
    for number in 0..old.work_item_ids.vgprs() {
        undefined.remove(Reg::vector(number, 1));
    }
    if let (WorkItemIds::Packed { count: had }, WorkItemIds::Packed { count: has }) =
        (old.work_item_ids, new.work_item_ids)
        && had < has
    {
        state.packed_ids = Some((1 << (u32::from(had) * WORK_ITEM_BITS)) - 1);
    }
    state.undefined = undefined;
    state
}

/// The initial scalar registers: first register and width of each, in a fixed order.
pub(crate) fn fields(r: &InitialRegisters) -> [(Option<u16>, u16); 13] {
    let preload = r.kernarg_preload;
    [
        (preload.map(|preload| preload.first), preload.map_or(0, |preload| preload.length)),
        (r.private_segment_buffer, 4),
        (r.dispatch_ptr, 2),
        (r.queue_ptr, 2),
        (r.kernarg_ptr, 2),
        (r.dispatch_id, 2),
        (r.flat_scratch_init, 2),
        (r.private_segment_size, 1),
        (r.workgroup_id_x, 1),
        (r.workgroup_id_y, 1),
        (r.workgroup_id_z, 1),
        (r.workgroup_info, 1),
        (r.private_segment_wave_offset, 1),
    ]
}
