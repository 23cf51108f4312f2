//! Image instructions: what a form says about its registers, and the dimensions.

use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;

use super::vocabulary::Vocabulary;
use super::{Failure, read};

/// The field `dim` has three bits.
const DIMENSIONS: usize = 8;

/// What a form says about the registers of its data and its address.
#[derive(Deserialize, Debug, Clone)]
#[serde(deny_unknown_fields)]
pub(super) struct Image {
    data: String,
    #[serde(default)]
    separate: bool,
    #[serde(default)]
    extra: u8,
    coordinates: Option<u8>,
    #[serde(default)]
    lod: u8,
    gradients: Option<String>,
    /// `1..4 8`; absent: the encoding does not tell, or the form has a fixed number.
    sizes: Option<String>,
}

/// Ten bytes: data, separate, extra, coordinates, lod, gradients, sizes. The first one is 0 where the form is none of
/// an image.
pub(super) fn put(out: &mut Vec<u8>, vocabulary: &Vocabulary, image: Option<&Image>) -> Result<(), Failure> {
    let Some(image) = image else {
        out.push(0);
        return Ok(());
    };
    out.push(1 + vocabulary.number("ImageData", &image.data)?);
    out.extend([image.separate.into(), image.extra, image.coordinates.unwrap_or(1), image.lod]);
    out.push(vocabulary.number("Gradients", image.gradients.as_deref().unwrap_or("none"))?);
    let mut sizes = 0u32;
    for range in image.sizes.iter().flat_map(|sizes| sizes.split(' ')) {
        let (first, last) = range.split_once("..").unwrap_or((range, range));
        for size in first.parse::<u32>()?..=last.parse()? {
            sizes |= 1u32.checked_shl(size).ok_or("an address of more than 31 registers")?;
        }
    }
    out.extend(sizes.to_le_bytes());
    Ok(())
}

#[derive(Deserialize)]
struct Dimension {
    number: usize,
    coordinates: u8,
    gradients: u8,
}

/// Rust source of the dimensions, in the order of their numbers.
pub(super) fn dimensions(tables: &Path) -> Result<String, Failure> {
    let rows: Vec<Dimension> = read(&tables.join("image_dimensions.yaml"))?;
    if !rows.iter().map(|row| row.number).eq(0..DIMENSIONS) {
        return Err(format!("image_dimensions.yaml: expected the numbers 0 to {}", DIMENSIONS - 1).into());
    }
    let mut out = format!("static DIMENSIONS: [Dimension; {DIMENSIONS}] = [\n");
    for row in rows {
        writeln!(out, "    Dimension {{ coordinates: {}, gradients: {} }},", row.coordinates, row.gradients)?;
    }
    out.push_str("];\n");
    Ok(out)
}

/// The operands, one by one where addresses with neighbouring numbers are written as `vaddr1..vaddr3 r vector_v_1_b32`.
pub(super) fn spelled_out(vocabulary: &Vocabulary, operands: &[String]) -> Result<Vec<String>, Failure> {
    let mut out = Vec::new();
    for operand in operands {
        match operand.split_once(' ').and_then(|(role, rest)| Some((role.split_once("..")?, rest))) {
            None => out.push(operand.clone()),
            Some(((first, last), rest)) => {
                let (first, last) = (vocabulary.number("Role", first)?, vocabulary.number("Role", last)?);
                let roles = vocabulary.words("Role")?.take(usize::from(last) + 1).skip(first.into());
                out.extend(roles.map(|role| format!("{role} {rest}")));
            }
        }
    }
    Ok(out)
}
