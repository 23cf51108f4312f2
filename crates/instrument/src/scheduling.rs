//! Code that resolves dependences of vector registers by itself (`HW_REG_WAVE_SCHED_MODE`, gfx12): inserted code has
//! the hardware handle them.

use crate::hazard_mitigation::{ALL_REGISTERS, wait};
use wavetap_amdgpu::{HwregField, Target, Value};
use wavetap_analysis::kernel::edit::{Edits, Item, Snippet};
use wavetap_analysis::kernel::{ALL_CHECKS, Body, FEWER_CHECKS, Scheduling};
use wavetap_base::entity::{ProgramPoint, Side};
use wavetap_base::error::{Error, Result};

/// Lets a snippet run with all checks where the code around it runs without. At either end nothing is outstanding that
/// the other side would not check.
pub(crate) fn bracket(body: &Body, point: ProgramPoint, snippet: &mut Snippet) -> Result<()> {
    let state = match point.side {
        Side::Before => body.scheduling_before(point.inst),
        Side::After => body.scheduling_after(point.inst),
    };
    match state {
        Scheduling::Hardware => return Ok(()),
        Scheduling::Software => {}
        Scheduling::Unknown => {
            return Err(
                Error::internal("inserted code where the scheduling mode is not known").at(body.address(point.inst))
            );
        }
    }
    let target = body.target();
    let number = target.scheduling_mode_hwreg().ok_or_else(|| Error::internal("no scheduling mode"))?;
    let field = HwregField { register: number, first: 0, bits: 2 };
    let turn = |items: &mut Vec<Item>, mode: u32| -> Result<()> {
        items.push(Item::Inst(wait(target, "s_waitcnt_depctr", ALL_REGISTERS.bits())?));
        let operands = [Value::Imm(field.operand()), Value::Literal(mode)];
        items.push(Item::Inst(wavetap_amdgpu::build(target, "s_setreg_imm32_b32", &operands)?));
        Ok(())
    };
    let mut items = Vec::with_capacity(snippet.items.len() + 4);
    turn(&mut items, ALL_CHECKS)?;
    items.append(&mut snippet.items);
    turn(&mut items, FEWER_CHECKS)?;
    snippet.items = items;
    Ok(())
}

/// Lets nothing be outstanding after snippets that run with all checks: original code, which knows nothing of that, may
/// switch them off next.
pub(crate) fn leave_nothing(target: Target, edits: &mut Edits) -> Result<()> {
    let inserts = edits.inserts.iter_mut().chain(edits.functions.iter_mut().flat_map(|function| &mut function.inserts));
    for snippet in std::iter::once(&mut edits.prologue).chain(inserts.map(|(_, snippet)| snippet)) {
        // One that gives the mode back has waited.
        let register = target.scheduling_mode_hwreg();
        let restored = matches!(snippet.items.last(), Some(Item::Inst(inst)) if inst.sets_hwreg() == register);
        if !restored && !snippet.items.is_empty() {
            snippet.items.push(Item::Inst(wait(target, "s_waitcnt_depctr", ALL_REGISTERS.bits())?));
        }
    }
    Ok(())
}
