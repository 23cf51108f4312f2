//! Counters in a record: every addition is an atomic to global memory.

use super::{CounterSink, Counters, PrologueRegisters, add_to_record, reach_record};
use crate::asm::{Asm, v};
use crate::frame::Frame;
use crate::frame::entry::EntryNeeds;
use crate::records::{RecordChoice, slot_offset};
use crate::scavenge::registers::Scalars;
use wavetap_base::error::Result;

/// The sink of `--counters global`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GlobalSink {
    /// Which record a wave has. The offset of one that waves share is part of the address register: what is loaded from
    /// the control block stays as it is, and nothing has to wait for it.
    pub(crate) records: RecordChoice,
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

    fn prologue(&self, frame: &Frame<'_>, asm: &mut Asm, registers: PrologueRegisters) -> Result<()> {
        let offset = frame.counter_base.unwrap_or(registers.temporary);
        if !slot_offset(frame.records, frame.record_bytes, asm, offset)? {
            return Ok(());
        }
        let address = v(frame.vectors.address);
        let offset = asm.vector_source(offset, registers.through)?;
        // On gfx8 this writes VCC, too.
        asm.op("v_add_u32_e32", &[address, offset, address])
    }

    fn reach(&self, _: &Frame<'_>, asm: &mut Asm, r: Scalars, counters: Counters) -> Result<()> {
        reach_record(asm, r, r.record, counters)
    }

    fn add(&self, frame: &Frame<'_>, asm: &mut Asm, r: Scalars, counters: Counters) -> Result<()> {
        add_to_record(frame, asm, r, r.record, counters)
    }

    fn epilogue(&self, frame: &Frame<'_>, asm: &mut Asm, r: Scalars) -> Result<u16> {
        // A memory instruction comes five states after a lane is read into the pair that it uses; four instructions are
        // in between.
        if frame.reserved.is_none() {
            asm.states(1)?;
        }
        Ok(r.record)
    }
}
