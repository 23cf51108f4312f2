//! What all inserted code of one kernel agrees on, and the code at the kernel's entry and ends that sets it up and
//! finishes it.

pub(crate) mod delayed_wait;
pub(crate) mod entry;
pub(crate) mod epilogue;
pub(crate) mod first_vector;
pub(crate) mod flat_scratch;
pub(crate) mod kept_ranges;
pub(crate) mod prologue;

use crate::asm::{Asm, c, s, s2};
use crate::records::RecordChoice;
use crate::scavenge::registers::{OwnRegisters, Scalars};
use crate::scavenge::spill_slots::SpillSlots;
use crate::sink::CounterSink;
use crate::site::Counters;
use wavetap_amdgpu::Opcode;
use wavetap_analysis::kernel::edit::Label;
use wavetap_base::error::Result;

/// What is fixed before any snippet is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame<'s> {
    /// The registers of inserted code.
    pub(crate) own: OwnRegisters,
    /// Where vector registers are spilled whole: the slots of what was in them, and of what stays for the next snippet.
    pub(crate) spill_slots: Option<SpillSlots>,
    /// The prologue sets FLAT_SCRATCH: spill slots are in scratch memory, and neither the hardware nor the original
    /// says where that is.
    pub(crate) sets_flat_scratch: bool,
    /// The counter of the lanes with which a wave begins, if there is one.
    pub(crate) entry_lanes: Option<Counters>,
    /// Where counters are kept.
    pub(crate) sink: &'s dyn CounterSink,
    /// Which record a wave has.
    pub(crate) records: RecordChoice,
    /// Waves of sampled workgroups alone have a record.
    pub(crate) is_sampled: bool,
    /// The prologue leaves what bounds checks need in lanes of the data pair's high half.
    pub(crate) checks_bounds: bool,
    /// How many slots of the record are free is in a lane of the data pair's high half.
    pub(crate) counts_slots: bool,
    /// Size of a record's header and counters in bytes.
    pub(crate) record_bytes: u32,
    /// Original code waits for what the prologue has loaded before inserted code reads it.
    pub(crate) delays_wait: bool,
    /// The kernel's index in the site table.
    pub(crate) kernel: u32,
    /// Address of the kernel's control block in the rewritten object.
    pub(crate) control: u64,
}

/// Branches to `done` if the wave counts nothing. Destroys SCC.
pub(crate) fn branch_if_disabled(asm: &mut Asm, r: Scalars, done: Label) -> Result<()> {
    asm.op("s_cmp_eq_u64", &[s2(r.record), c(0)])?;
    asm.branch(Opcode::S_CBRANCH_SCC1, done);
    Ok(())
}

/// Restores the original code's EXEC.
pub(crate) fn restore_exec(asm: &mut Asm, r: Scalars) -> Result<()> {
    let (exec, saved) = (asm.exec(), asm.mask(r.saved_exec));
    asm.masks("s_mov_b", &[exec, saved])
}

/// Saves SCC for [`restore_scc`].
pub(crate) fn save_scc(asm: &mut Asm, r: Scalars) -> Result<()> {
    asm.op("s_cselect_b32", &[s(r.saved_scc), c(1), c(0)])
}

/// Restores the original code's SCC.
pub(crate) fn restore_scc(asm: &mut Asm, r: Scalars) -> Result<()> {
    asm.op("s_cmp_lg_u32", &[s(r.saved_scc), c(0)])
}
