//! The code before every `s_endpgm`: the sink's counters go to the wave's record, then the wave counts as finished.
//!
//! It works with any EXEC, 0 too, and changes no register that the original code has: loads into those may be
//! outstanding.

use super::{Frame, branch_if_disabled};
use crate::asm::{c, v};
use crate::scavenge::SnippetRegisters;
use crate::scavenge::lane_spills;
use wavetap_analysis::kernel::edit::Snippet;
use wavetap_base::error::Result;
use wavetap_profile::record;

/// The epilogue. SCC is free: nothing follows, but for a message that takes EXEC for something it reads where
/// `keep_exec` says so.
pub(crate) fn epilogue(frame: &Frame<'_>, here: &SnippetRegisters, keep_exec: bool) -> Result<Snippet> {
    let r = here.scalars();
    let own = &frame.own;
    let data = own.vectors.data;
    let mut asm = own.asm_at_end();
    let done = asm.new_label();
    here.enter(&mut asm, own.vectors)?;
    branch_if_disabled(&mut asm, r, done)?;
    if here.spills_lanes() {
        lane_spills::at_end(&mut asm, own)?;
    }
    let (exec, saved) = (asm.exec(), asm.mask(r.saved_exec));
    if keep_exec {
        asm.masks("s_mov_b", &[saved, exec])?;
    }
    let base = frame.sink.epilogue(own, &mut asm, r)?;
    asm.exec_lanes(1)?;
    // All that a dispatch adds has arrived when it has ended: nothing waits for the counters here.
    asm.op("v_mov_b32_e32", &[v(data), c(1)])?;
    asm.global("atomic_add", own.at(base, r.saved_exec), v(data), record::FINISHED)?;
    if keep_exec {
        asm.masks("s_mov_b", &[exec, saved])?;
    }
    asm.bind(done);
    asm.finish()
}
