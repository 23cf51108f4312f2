//! What LLVM reads in image instructions of gfx10 and later and we refuse, and the words without the cause.
//!
//! LLVM's decoder takes a form with some number of registers and afterwards another one with as many as channel mask
//! and dimension say. If there is none it leaves the first one, whose text is no instruction.

use wavetap::isa::{Coding, Modifier, OperandSpec, Role};

use crate::reason::Case;

/// The last byte of the word that decoding and encoding keep as a number; separate addresses of gfx10 may have a dword
/// after it.
const WORD: usize = 16;
/// Clears so much of a register number that no run from it reaches the end of the file.
const BELOW_THE_END: u64 = 0xf0;

fn modifier(case: &Case<'_>, modifier: Modifier) -> u64 {
    case.variant
        .layout
        .modifiers
        .iter()
        .find(|(known, _)| *known == modifier)
        .map_or(0, |(_, bits)| bits.get(case.word()))
}

/// How many registers the address takes; none if the row has no such.
fn address_dwords(case: &Case<'_>) -> Option<u32> {
    case.variant.image?.address?.dwords(modifier(case, Modifier::Dim) as u8, modifier(case, Modifier::A16) != 0)
}

fn addresses(case: &Case<'_>) -> impl Iterator<Item = &'static OperandSpec> {
    case.variant.operands.iter().filter(|spec| spec.role.is_address())
}

/// With a dimension that the form has addresses for.
pub fn another_dimension(case: &Case<'_>) -> Option<Vec<u8>> {
    let form = case.variant.image?.address?;
    let fits = |dwords: u32| form.sizes >> dwords & 1 != 0;
    if fits(address_dwords(case)?) {
        return None;
    }
    let choices = (0..8).flat_map(|dimension| [false, true].map(|a16| (dimension, a16)));
    let (dimension, a16) =
        choices.into_iter().find(|&(dimension, a16)| form.dwords(dimension, a16).is_some_and(fits))?;
    let mut word = case.word();
    for (field, number) in [(Modifier::Dim, u64::from(dimension)), (Modifier::A16, u64::from(a16))] {
        let (_, bits) = case.variant.layout.modifiers.iter().find(|(known, _)| *known == field)?;
        word = word & !bits.mask() | bits.put(number)?;
    }
    Some(case.with_word(word))
}

/// Without bits in the dword of separate addresses that are no address.
pub fn nothing_behind(case: &Case<'_>) -> Option<Vec<u8>> {
    let behind = addresses(case).filter(|spec| spec.kind.coding == Coding::VectorBehind).count();
    if behind == 0 {
        return None;
    }
    let absent = address_dwords(case).map_or(0, |needed| addresses(case).count().saturating_sub(needed as usize));
    let mut bytes = case.bytes.to_vec();
    bytes.get_mut(WORD + behind.saturating_sub(absent)..WORD + 4)?.fill(0);
    Some(bytes)
}

/// With data that ends within the file.
pub fn data_in_the_file(case: &Case<'_>) -> Option<Vec<u8>> {
    let data = case.fields().find(|field| field.spec.role == Role::Vdata).filter(|_| case.variant.image.is_some())?;
    // Five registers at most.
    (data.number & 0xff > 251)
        .then(|| case.with_operand(data.spec, data.number & !0xff | data.number & BELOW_THE_END))?
}

/// With a last address, which is a run, that ends within the file.
pub fn addresses_in_the_file(case: &Case<'_>) -> Option<Vec<u8>> {
    let (needed, places) = (address_dwords(case)? as usize, addresses(case).count());
    let last = addresses(case).last()?;
    let (first, left) = (last.bits.get(case.word()), (needed + 1).saturating_sub(places) as u64);
    (first + left > 256).then(|| case.with_operand(last, first & BELOW_THE_END))?
}

/// A gather of 16-bit values without a status.
pub fn gather_without_status(case: &Case<'_>) -> Option<Vec<u8>> {
    let known = case.name_starts("image_gather4") && modifier(case, Modifier::Tfe) & modifier(case, Modifier::D16) != 0;
    case.variant.image?.address.filter(|_| known)?;
    case.without_bits(case.modifier_bits(Modifier::Tfe))
}
