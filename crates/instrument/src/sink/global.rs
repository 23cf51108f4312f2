//! Counters in a record: every addition is an atomic to global memory.

use super::{CounterSink, PrologueRegisters, add_to_record, reach_record};
use crate::asm::{Asm, v};
use crate::frame::entry::EntryNeeds;
use crate::records::{RecordChoice, slot_offset};
use crate::scavenge::registers::{OwnRegisters, Scalars};
use crate::site::Counters;
use wavetap_base::error::Result;

/// The sink of `--counters global`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GlobalSink {
    /// Which record a wave has. The offset of one that waves share is part of the address register: what is loaded from
    /// the control block stays as it is, and nothing has to wait for it.
    pub(crate) records: RecordChoice,
    /// Size of a record's header and counters in bytes.
    pub(crate) record_bytes: u32,
}

impl CounterSink for GlobalSink {
    fn entry_needs(&self, records: RecordChoice) -> EntryNeeds {
        match records {
            RecordChoice::Slot(_) => EntryNeeds::Nothing,
            RecordChoice::Own => EntryNeeds::All,
        }
    }

    fn has_base(&self) -> bool {
        self.records.has_offset()
    }

    fn prologue(&self, own: &OwnRegisters, asm: &mut Asm, registers: PrologueRegisters) -> Result<()> {
        let offset = own.counter_base.unwrap_or(registers.temporary);
        if !slot_offset(self.records, self.record_bytes, asm, offset)? {
            return Ok(());
        }
        let address = v(own.vectors.address);
        let offset = asm.vector_source(offset, registers.through)?;
        // On gfx8 this writes VCC, too.
        asm.op("v_add_u32_e32", &[address, offset, address])
    }

    fn reach(&self, _: &OwnRegisters, asm: &mut Asm, r: Scalars, counters: Counters) -> Result<()> {
        reach_record(asm, r, r.record, counters)
    }

    fn add(&self, own: &OwnRegisters, asm: &mut Asm, r: Scalars, counters: Counters) -> Result<()> {
        add_to_record(own, asm, r, r.record, counters)
    }

    fn epilogue(&self, own: &OwnRegisters, asm: &mut Asm, r: Scalars) -> Result<u16> {
        // A memory instruction comes five states after a lane is read into the pair that it uses; four instructions are
        // in between.
        if own.reserved.is_none() {
            asm.states(1)?;
        }
        Ok(r.record)
    }
}
