//! Vector registers above v255 (gfx1250): the numbers in instructions are v0 to v255, and high bits say which 256
//! registers they mean: the bank. Inserted code has its own high bits, those of its vector registers, the same for all
//! operands, or none where it reads the work-item ids at a kernel's entry.

use crate::scavenge::registers::WORK_ITEM_VGPRS;
use wavetap_amdgpu::{Inst, RegFile, Target, Value, VgprMsb};
use wavetap_analysis::kernel::edit::{Item, Snippet};
use wavetap_analysis::kernel::{Body, Reason, Refusal, Stop, writes_literal_to_mode};
use wavetap_base::entity::{InstId, ProgramPoint, Side};
use wavetap_base::error::Result;

/// The immediate of `s_set_vgpr_msb` has the bits that were set before in these: the trap handler looks at them.
const BEFORE_SHIFT: u32 = 8;

/// The high bits for registers of a bank, in all four places of operands.
fn high_bits(bank: u8) -> VgprMsb {
    VgprMsb(bank * 0b01_01_01_01)
}

/// `s_set_vgpr_msb` from one state to another.
fn set(target: Target, from: VgprMsb, to: VgprMsb) -> Result<Item> {
    let bits = i64::from(u32::from(to.0) | u32::from(from.0) << BEFORE_SHIFT);
    Ok(Item::Inst(wavetap_amdgpu::build(target, "s_set_vgpr_msb", &[Value::Imm(bits)])?))
}

/// What is directly after an instruction that writes a literal to MODE: there the hardware drops `s_set_vgpr_msb`.
fn nop(target: Target) -> Result<Item> {
    Ok(Item::Inst(wavetap_amdgpu::build(target, "s_nop", &[Value::Imm(0)])?))
}

/// Lets the code at a kernel's entry, where no high bits are set, run with those of its vector registers, but for what
/// reads the work-item ids; none are set when it ends.
pub(crate) fn at_entry(target: Target, bank: u8, snippet: &mut Snippet) -> Result<()> {
    let own = high_bits(bank);
    if own == VgprMsb::default() {
        return Ok(());
    }
    let numbers = |inst: &Inst| {
        let registers = inst.reads().chain(inst.writes()).filter(|reg| reg.file == RegFile::Vector);
        registers.map(|reg| reg.first).min()
    };
    let mut items: Vec<Item> = Vec::with_capacity(snippet.items.len() + 8);
    let mut now = VgprMsb::default();
    let mut turn = |items: &mut Vec<Item>, to: VgprMsb| -> Result<()> {
        if now != to {
            if matches!(items.last(), Some(Item::Inst(inst)) if writes_literal_to_mode(inst)) {
                items.push(nop(target)?);
            }
            items.push(set(target, now, to)?);
            now = to;
        }
        Ok(())
    };
    for item in snippet.items.drain(..) {
        match &item {
            Item::Inst(inst) => match numbers(inst) {
                Some(first) if first < WORK_ITEM_VGPRS => turn(&mut items, VgprMsb::default())?,
                Some(_) => turn(&mut items, own)?,
                None => {}
            },
            // The same on all paths.
            Item::Label(_) | Item::Branch { .. } | Item::Aside | Item::AsideEnd => turn(&mut items, own)?,
            Item::Address { .. } => {}
        }
        items.push(item);
    }
    turn(&mut items, VgprMsb::default())?;
    snippet.items = items;
    Ok(())
}

/// Lets a snippet run with the registers that it names, and gives the original code its high bits back.
pub(crate) fn bracket(body: &Body, bank: u8, point: ProgramPoint, snippet: &mut Snippet) -> Result<(), Stop> {
    let msb = match point.side {
        Side::Before => body.vgpr_msb_before(point.inst),
        Side::After => body.vgpr_msb_after(point.inst),
    };
    let Some(msb) = msb else {
        let detail = "s_set_vgpr_msb: it depends on the path which vector registers instructions mean";
        return Err(Refusal::at(Reason::VectorAllocation, body.address(point.inst), detail).into());
    };
    let (target, own) = (body.target(), high_bits(bank));
    if msb == own {
        return Ok(());
    }
    let mut items = Vec::with_capacity(snippet.items.len() + 3);
    let before = match point.side {
        Side::Before => point.inst.0.checked_sub(1).map(InstId),
        Side::After => Some(point.inst),
    };
    if before.is_some_and(|before| writes_literal_to_mode(body.inst(before))) {
        items.push(nop(target)?);
    }
    items.push(set(target, msb, own)?);
    items.append(&mut snippet.items);
    items.push(set(target, own, msb)?);
    snippet.items = items;
    Ok(())
}
