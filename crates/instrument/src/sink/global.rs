//! Counters in the wave's record: every addition is an atomic to global memory.

use super::{CounterSink, Counters, PrologueRegisters, add_to_record, reach_record};
use crate::asm::Asm;
use crate::frame::Frame;
use crate::scavenge::registers::Scalars;
use wavetap_base::error::Result;

/// The sink of `--counters global`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GlobalSink;

impl CounterSink for GlobalSink {
    fn prologue(&self, _: &Frame<'_>, _: &mut Asm, _: PrologueRegisters) -> Result<()> {
        Ok(())
    }

    fn reach(&self, _: &Frame<'_>, asm: &mut Asm, r: Scalars, counters: Counters) -> Result<()> {
        reach_record(asm, r, r.record, counters)
    }

    fn add(&self, frame: &Frame<'_>, asm: &mut Asm, r: Scalars, counters: Counters) -> Result<()> {
        add_to_record(frame, asm, r, r.record, counters)
    }

    fn epilogue(&self, _: &Frame<'_>, _: &mut Asm, r: Scalars) -> Result<u16> {
        Ok(r.record)
    }
}
