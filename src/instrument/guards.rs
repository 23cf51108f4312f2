//! What must not be in a kernel, or not where code is inserted.

use crate::cfg::Cfg;
use crate::entity::InstId;
use crate::isa::{Inst, Role, Value};
use crate::kernel::{Body, Reason, Refusal};

/// `HW_REG_MODE` in a `hwreg` operand (bits 5:0).
const HWREG_MODE: u32 = 1;
/// First bit of MODE that changes which instructions execute or which registers they name: GPR_IDX_EN; VSKIP follows.
const MODE_INDEX_BIT: u32 = 27;

/// Refuses writes to the parts of MODE that would change what inserted instructions do.
pub(super) fn check_mode(body: &Body) -> Result<(), Refusal> {
    for id in body.ids() {
        let inst = body.inst(id);
        if !inst.name().starts_with("s_setreg") {
            continue;
        }
        let fields = match inst.operand(Role::Hwreg).or_else(|| inst.operand(Role::Simm16)).map(|operand| operand.value) {
            Some(Value::Imm(fields)) => fields as u32,
            _ => HWREG_MODE | 31 << 11, // Unknown: as if it wrote all of MODE.
        };
        // hwreg(id, offset, size): id 5:0, offset 10:6, size - 1 15:11.
        let (register, first, size) = (fields & 0x3f, fields >> 6 & 0x1f, (fields >> 11 & 0x1f) + 1);
        if register == HWREG_MODE && first + size > MODE_INDEX_BIT {
            return Err(Refusal::at(Reason::ModeWrite, body.address(id), format!("{} writes MODE bits {first} and up", inst.name())));
        }
    }
    Ok(())
}

/// Where vector registers may be indexed at run time: before each instruction, whether the mode may be on.
pub(super) fn index_mode(body: &Body, cfg: &Cfg) -> Vec<bool> {
    let mut before = vec![false; body.len()];
    if !body.insts().iter().any(|inst| inst.name().starts_with("s_set_gpr_idx")) {
        return before;
    }
    let mut at_start = vec![false; cfg.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for &block in cfg.reverse_postorder() {
            let mut on = at_start[block.index()];
            for id in cfg.block(block).insts() {
                before[id.index()] = on;
                on = mode_after(body.inst(id), on);
            }
            for edge in &cfg.block(block).successors {
                changed |= on && !at_start[edge.block.index()];
                at_start[edge.block.index()] |= on;
            }
        }
    }
    before
}

fn mode_after(inst: &Inst, on: bool) -> bool {
    match inst.name() {
        "s_set_gpr_idx_on" => true,
        "s_set_gpr_idx_off" => false,
        _ => on,
    }
}

/// Refuses an insertion where the index mode may be on.
pub(super) fn check_index_mode(body: &Body, index_mode: &[bool], id: InstId) -> Result<(), Refusal> {
    if index_mode[id.index()] {
        let detail = format!("{} between s_set_gpr_idx_on and s_set_gpr_idx_off", body.inst(id).name());
        return Err(Refusal::at(Reason::RegisterIndexMode, body.address(id), detail));
    }
    Ok(())
}
