//! What all inserted code of one kernel agrees on, and the code at the kernel's entry and ends that sets it up and
//! finishes it.

pub(crate) mod delayed_wait;
pub(crate) mod entry;
pub(crate) mod epilogue;
pub(crate) mod first_vector;
pub(crate) mod flat_scratch;
pub(crate) mod prologue;

use crate::asm::{Asm, Global, c, s, s2};
use crate::hazard_mitigation::Place;
use crate::probe::time::WaveCounters;
use crate::records::RecordChoice;
use crate::scavenge::registers::{Scalars, Vectors};
use crate::scavenge::spill_slots::{RESOURCE, SpillSlots};
use crate::sink::{CounterSink, Counters};
use wavetap_amdgpu::{Opcode, Reg, Target};
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::edit::Label;
use wavetap_base::error::Result;

/// What is fixed before any snippet is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame<'s> {
    pub(crate) target: Target,
    pub(crate) vectors: Vectors,
    /// The scalar registers that hold across the kernel; none where each snippet scavenges its own.
    pub(crate) reserved: Option<Scalars>,
    /// Where lanes of vector registers are scavenged and the sink's counters do not start at 0: the scalar register
    /// with their start.
    pub(crate) counter_base: Option<u16>,
    /// Where vector registers are spilled whole: the slots of what was in them, and of what stays for the next snippet.
    pub(crate) spill_slots: Option<SpillSlots>,
    /// The prologue sets FLAT_SCRATCH: spill slots are in scratch memory, and neither the hardware nor the original
    /// says where that is.
    pub(crate) sets_flat_scratch: bool,
    /// The counter of the lanes with which a wave begins, if there is one.
    pub(crate) entry_lanes: Option<Counters>,
    /// The counters of the kernel's time, if it is measured.
    pub(crate) time: Option<WaveCounters>,
    /// Where counters are kept.
    pub(crate) sink: &'s dyn CounterSink,
    /// Which record a wave has.
    pub(crate) records: RecordChoice,
    /// Waves of sampled workgroups alone have a record.
    pub(crate) is_sampled: bool,
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

impl Frame<'_> {
    /// The scalar registers that no original code names and inserted code has for good.
    pub(crate) fn own(&self) -> RegSet {
        let base = self.counter_base.map(|base| Reg::scalar(base, 1));
        let resource = self.spill_slots.and_then(SpillSlots::resource).map(|first| Reg::scalar(first, RESOURCE));
        self.reserved.iter().flat_map(Scalars::registers).chain(base).chain(resource).collect()
    }

    /// A snippet between original instructions.
    pub(crate) fn asm(&self) -> Asm {
        Asm::new(self.target, Place::Middle(self.own()))
    }

    /// A snippet before the end of a wave.
    pub(crate) fn asm_at_end(&self) -> Asm {
        Asm::new(self.target, Place::End(self.own()))
    }

    /// Global memory at a base, at the offsets in the address register.
    pub(crate) fn at(&self, base: u16, scratch: u16) -> Global {
        Global { base, offsets: self.vectors.address, flat: self.vectors.flat, scratch }
    }
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
