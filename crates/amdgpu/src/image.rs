//! Image instructions: how many registers their data and their address take.
//!
//! Neither number is in the encoding. Data has a register for each channel of `dmask`, or two with 16-bit values in
//! one, and one more for the status of `tfe`. The address is what the operation needs in the image's dimension (`dim`):
//! offset, bias or reference, gradients, coordinates, level of detail, the last two packed in pairs with `a16`. On gfx8
//! and gfx9 nothing tells the dimension, so there the operand is as long as the operation can need.
//!
//! Addresses are consecutive registers (`v[0:2]`) or, on gfx10 and gfx11 with `nsa` and always on gfx12, registers of
//! their own (`[v0, v7, v3]`), of which the last one is a run where the encoding has fewer places than addresses (gfx11
//! and later). What an instruction has more places than addresses is not read: those operands are [`Value::Off`].

use super::inst::{Inst, Value};
use super::target::Target;
use super::vocabulary::{Access, Coding, Gradients, ImageData, Role};

include!(concat!(env!("OUT_DIR"), "/image_dimensions.rs"));

/// Registers of a vector file.
const VECTOR_REGISTERS: u32 = 256;

/// What an image instruction's form says about its registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image {
    /// How many registers of data it has.
    pub data: ImageData,
    /// Whether each address has a register of its own. They are written in brackets, unless there is only one.
    pub separate: bool,
    /// What its address consists of. None if the operation has a fixed address or the encoding does not tell (gfx8 and
    /// gfx9).
    pub address: Option<ImageAddress>,
}

/// What the address of an image instruction consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageAddress {
    /// Registers of offset, bias and reference value.
    pub extra: u8,
    /// Whether it has a position.
    pub coordinates: bool,
    /// Whether it has a level of detail, its clamp, or a mip level.
    pub lod: bool,
    /// Its derivatives.
    pub gradients: Gradients,
    /// The numbers of registers that there are forms for: bit n stands for n.
    pub sizes: u32,
}

/// A dimension of images.
#[derive(Debug)]
struct Dimension {
    coordinates: u32,
    gradients: u32,
}

impl ImageAddress {
    /// How many registers the address takes in the dimension with this number (the field `dim`), with or without 16-bit
    /// coordinates.
    ///
    /// `None` if there is no such dimension.
    #[must_use]
    pub fn dwords(&self, dimension: u8, a16: bool) -> Option<u32> {
        let dimension = DIMENSIONS.get(usize::from(dimension))?;
        let components = u32::from(self.lod) + if self.coordinates { dimension.coordinates } else { 0 };
        let gradients = match self.gradients {
            Gradients::None => 0,
            Gradients::Whole => dimension.gradients,
            Gradients::Half => 2 * (dimension.gradients / 2).div_ceil(2),
        };
        Some(u32::from(self.extra) + gradients + if a16 { components.div_ceil(2) } else { components })
    }
}

/// How many registers of data an image instruction has, TFE's status included; `None` if its channel mask means nothing
/// or the number is fixed.
pub(super) fn data_dwords(target: Target, inst: &Inst) -> Option<u32> {
    let Value::Imm(mask) = inst.operand(Role::Dmask)?.value else { return None };
    let legal = match inst.variant.image?.data {
        ImageData::Fixed => return None,
        ImageData::Swap => mask == 0x3 || mask == 0xf,
        ImageData::Atomic => mask == 0x1 || mask == 0x3,
        ImageData::Mask | ImageData::Four => true,
    };
    let channels = if inst.variant.image?.data == ImageData::Four { 4 } else { mask.count_ones().max(1) };
    let data = if inst.modifiers.d16 && !target.set().unpacked_d16 { channels.div_ceil(2) } else { channels };
    legal.then_some(data + u32::from(inst.modifiers.tfe))
}

/// Gives data and address their registers. `rest` is the code after the first 128 bits.
pub(super) fn adjust(target: Target, inst: &mut Inst, rest: &[u8]) -> Option<()> {
    let image = inst.variant.image?;
    if !nothing_is_left_behind(inst, rest) {
        return None;
    }
    if image.data != ImageData::Fixed {
        data(target, inst)?;
    }
    match image.address {
        Some(form) => address(inst, form),
        None => Some(()),
    }
}

/// The registers of an image instruction's data follow from its channel mask.
fn data(target: Target, inst: &mut Inst) -> Option<()> {
    let mut dwords = data_dwords(target, inst)?;
    let (d16, tfe, lwe) = (inst.modifiers.d16, inst.modifiers.tfe, inst.modifiers.lwe);
    let data = inst.operands.iter_mut().find(|operand| operand.role == Role::Vdata)?;
    let Value::Reg(reg) = &mut data.value else { return None };
    let room = VECTOR_REGISTERS - u32::from(reg.first);
    let odd = reg.first % 2 == 1 && dwords > 1 && target.aligned_vgprs();
    if dwords > room || odd {
        return None;
    }
    // LWE has a status too, which assemblers do not count: at the end of the file it has no register.
    if lwe && !tfe {
        dwords = room.min(dwords + 1);
    }
    reg.dwords = dwords as u8;
    data.dwords = dwords as u8;
    // With 16-bit data the last register may be written in half.
    if d16 && !target.set().unpacked_d16 && data.access == Access::Write {
        data.access = Access::ReadWrite;
    }
    Some(())
}

/// The registers of an address follow from the dimension.
fn address(inst: &mut Inst, form: ImageAddress) -> Option<()> {
    let needed = form.dwords(inst.modifiers.dim, inst.modifiers.a16)?;
    if form.sizes >> needed & 1 == 0 {
        return None;
    }
    let places = inst.operands.iter().filter(|operand| operand.role.is_address()).count() as u32;
    let mut place = 0;
    for (spec, operand) in inst.variant.operands.iter().zip(&mut inst.operands) {
        if !operand.role.is_address() {
            continue;
        }
        let Value::Reg(reg) = &mut operand.value else { return None };
        place += 1;
        if place > needed {
            if spec.kind.coding != Coding::VectorBehind {
                inst.ignored |= spec.bits.put(reg.first.into())?;
            }
            (operand.value, operand.access) = (Value::Off, Access::None);
        } else if place == places {
            // The last place, often the only one, has what is left.
            let left = needed - (places - 1);
            if u32::from(reg.first) + left > VECTOR_REGISTERS {
                return None;
            }
            (reg.dwords, operand.dwords) = (left as u8, left as u8);
        }
    }
    Some(())
}

/// Whether the addresses after the first 128 bits are all that is in their dword: `Inst` has no place for bits that
/// mean nothing there.
fn nothing_is_left_behind(inst: &Inst, rest: &[u8]) -> bool {
    let behind = inst.variant.operands.iter().filter(|spec| spec.kind.coding == Coding::VectorBehind);
    let fields = behind.fold(None, |fields, spec| Some(fields.unwrap_or(0) | spec.bits.mask()));
    let (Some(fields), Some(dword)) = (fields, rest.first_chunk()) else { return true };
    let used = match inst.variant.image.and_then(|image| image.address) {
        Some(form) => {
            let needed = form.dwords(inst.modifiers.dim, inst.modifiers.a16).unwrap_or(0);
            let addresses = inst.variant.operands.iter().filter(|spec| spec.role.is_address()).take(needed as usize);
            addresses
                .filter(|spec| spec.kind.coding == Coding::VectorBehind)
                .fold(0, |used, spec| used | spec.bits.mask())
        }
        None => fields,
    };
    u128::from(u32::from_le_bytes(*dword)) & !used == 0
}
