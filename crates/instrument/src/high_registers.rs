//! Vector registers above v255 (gfx1250): inserted code names v0 to v255, and what is around it need not.

use wavetap_amdgpu::{Value, VgprMsb};
use wavetap_analysis::kernel::edit::{Item, Snippet};
use wavetap_analysis::kernel::{Body, Reason, Refusal, Stop, writes_literal_to_mode};
use wavetap_base::entity::{InstId, ProgramPoint, Side};
use wavetap_base::error::Result;

/// The immediate of `s_set_vgpr_msb` has the bits that were set before in these: the trap handler looks at them.
const BEFORE_SHIFT: u32 = 8;

/// Lets a snippet run with the numbers that it names, and gives the original code its high bits back.
pub(crate) fn bracket(body: &Body, point: ProgramPoint, snippet: &mut Snippet) -> Result<(), Stop> {
    let msb = match point.side {
        Side::Before => body.vgpr_msb_before(point.inst),
        Side::After => body.vgpr_msb_after(point.inst),
    };
    let Some(msb) = msb else {
        let detail = "s_set_vgpr_msb: it depends on the path which vector registers instructions mean";
        return Err(Refusal::at(Reason::VectorAllocation, body.address(point.inst), detail).into());
    };
    if msb == VgprMsb::default() {
        return Ok(());
    }
    let build = |mnemonic, operand| -> Result<Item> {
        Ok(Item::Inst(wavetap_amdgpu::build(body.target(), mnemonic, &[Value::Imm(operand)])?))
    };
    let set = |to: VgprMsb, from: VgprMsb| {
        build("s_set_vgpr_msb", i64::from(u32::from(to.0) | u32::from(from.0) << BEFORE_SHIFT))
    };
    let mut items = Vec::with_capacity(snippet.items.len() + 3);
    // Directly after an instruction that writes a literal to MODE, the hardware drops it.
    let before = match point.side {
        Side::Before => point.inst.0.checked_sub(1).map(InstId),
        Side::After => Some(point.inst),
    };
    if before.is_some_and(|before| writes_literal_to_mode(body.inst(before))) {
        items.push(build("s_nop", 0)?);
    }
    items.push(set(VgprMsb::default(), msb)?);
    items.append(&mut snippet.items);
    items.push(set(msb, VgprMsb::default())?);
    snippet.items = items;
    Ok(())
}
