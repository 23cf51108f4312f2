//! Where counters are kept while a kernel runs. One file for each place.
//!
//! A probe leaves what it adds in the lanes of the data register; a sink says where each lane's counter is (prologue),
//! makes a site's counters reachable and adds (snippets), and sees that everything is in the wave's record when the
//! wave ends (epilogue).

mod global;
pub(crate) mod lds;

pub(crate) use global::GlobalSink;
pub(crate) use lds::LdsSink;

use crate::asm::{Asm, c, s, v2};
use crate::frame::entry::EntryNeeds;
use crate::records::RecordChoice;
use crate::scavenge::registers::{OwnRegisters, Scalars};
use crate::site::Counters;
use wavetap_base::error::Result;

/// Scalar registers of the prologue that a sink may need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PrologueRegisters {
    /// Size of the workgroup's LDS in bytes, as launched; may be destroyed. None where no sink needs it.
    pub(crate) lds_size: Option<u16>,
    /// The number of a wave of the workgroup, which no other has. None where no sink needs it.
    pub(crate) wave: Option<u16>,
    /// For intermediate values.
    pub(crate) temporary: u16,
    /// What goes from scalar to vector registers goes through this one, where the target asks for it.
    pub(crate) through: Option<u16>,
}

/// A place for counters.
pub(crate) trait CounterSink: std::fmt::Debug {
    /// Bytes of LDS that a workgroup needs more than before.
    fn lds_bytes(&self) -> u32 {
        0
    }

    /// What the prologue has to find in registers.
    fn entry_needs(&self, records: RecordChoice) -> EntryNeeds;

    /// Whether the lanes' counters start elsewhere than at offset 0, at a place that the prologue computes.
    fn has_base(&self) -> bool {
        false
    }

    /// In the prologue, with all lanes active and each lane's offset among counters in the address register: adds to it
    /// where the wave's counters start, and initialises them.
    fn prologue(&self, own: &OwnRegisters, asm: &mut Asm, registers: PrologueRegisters) -> Result<()>;

    /// Makes the counters of a site addressable: what [`CounterSink::add`] needs. Destroys SCC and the scratch pair,
    /// unless an instruction reaches them from where the address register points.
    fn reach(&self, own: &OwnRegisters, asm: &mut Asm, r: Scalars, counters: Counters) -> Result<()>;

    /// Adds each active lane's data to its counter of a site. Destroys the first register and, where the target has
    /// FLAT memory instructions alone, SCC and the pair that EXEC is not saved in.
    fn add(&self, own: &OwnRegisters, asm: &mut Asm, r: Scalars, counters: Counters) -> Result<()>;

    /// In the epilogue: moves what is not there yet to the wave's record. Returns the pair from which the address
    /// register leads to the record.
    fn epilogue(&self, own: &OwnRegisters, asm: &mut Asm, r: Scalars) -> Result<u16>;
}

/// Makes counters of the record reachable from `base`, a pair, by the address register: where their offset is too large
/// for an instruction, by the scratch pair.
pub(crate) fn reach_record(asm: &mut Asm, r: Scalars, base: u16, counters: Counters) -> Result<()> {
    if counters.offset > asm.largest_global_offset() {
        asm.op("s_add_u32", &[s(r.scratch), s(base), c(counters.offset)])?;
        asm.op("s_addc_u32", &[s(r.scratch + 1), s(base + 1), c(0)])?;
    }
    Ok(())
}

/// Adds to counters of the record that [`reach_record`] made reachable from `base`.
pub(crate) fn add_to_record(
    own: &OwnRegisters,
    asm: &mut Asm,
    r: Scalars,
    base: u16,
    counters: Counters,
) -> Result<()> {
    let far = counters.offset > asm.largest_global_offset();
    let data = v2(own.vectors.data);
    let base = if far { r.scratch } else { base };
    asm.global("atomic_add_x2", own.at(base, r.scratch), data, if far { 0 } else { counters.offset })
}
