//! Image and sampler descriptors: from `image_descriptors.yaml` to Rust source.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;

use super::targets::Targets;
use super::vocabulary::Vocabulary;
use super::{Failure, read};

/// Bits that are read over.
const IGNORED: &str = "ignored";

#[derive(Deserialize)]
struct Row {
    targets: Vec<String>,
    #[serde(default)]
    none: bool,
    #[serde(flatten)]
    descriptors: Option<Descriptors>,
}

#[derive(Deserialize)]
struct Descriptors {
    resource: BTreeMap<String, String>,
    sampler: BTreeMap<String, String>,
    linear: u8,
    pitch_of_slices: bool,
    row: u16,
    slice_row: u16,
    row_elements: u16,
    #[serde(default = "yes")]
    filters_depth: bool,
}

fn yes() -> bool {
    true
}

/// Rust source of the array `IMAGE_DESCRIPTORS` and, by target, `IMAGE_DESCRIPTORS_OF`.
pub(super) fn source(tables: &Path, vocabulary: &Vocabulary, targets: &Targets) -> Result<String, Failure> {
    let rows: Vec<Row> = read(&tables.join("image_descriptors.yaml"))?;
    let located =
        |n: usize, error: Failure| -> Failure { format!("image_descriptors.yaml: row {}: {error}", n + 1).into() };
    let mut out = format!("static IMAGE_DESCRIPTORS: [Option<ImageDescriptors>; {}] = [\n", rows.len());
    for (n, row) in rows.iter().enumerate() {
        match &row.descriptors {
            Some(descriptors) if !row.none => {
                put(&mut out, vocabulary, descriptors).map_err(|error| located(n, error))?
            }
            None if row.none => out.push_str("    None,\n"),
            _ => return Err(located(n, "it has either descriptors or 'none: true'".into())),
        }
    }
    let lists: Vec<&[String]> = rows.iter().map(|row| row.targets.as_slice()).collect();
    let of = targets
        .last_of(&lists)
        .map_err(|name| format!("image_descriptors.yaml: '{name}' is no target, instruction set or group"))?;
    writeln!(out, "];\nstatic IMAGE_DESCRIPTORS_OF: [Option<u8>; {}] = {of:?};", of.len())?;
    Ok(out)
}

fn put(out: &mut String, vocabulary: &Vocabulary, from: &Descriptors) -> Result<(), Failure> {
    writeln!(out, "    Some(ImageDescriptors {{")?;
    fields::<8>(out, "resource", &vocabulary.words("ImageField")?.collect::<Vec<_>>(), &from.resource)?;
    fields::<4>(out, "sampler", &vocabulary.words("SamplerField")?.collect::<Vec<_>>(), &from.sampler)?;
    let Descriptors { linear, pitch_of_slices, row, slice_row, row_elements, filters_depth, .. } = from;
    writeln!(out, "        linear: {linear}, pitch_of_slices: {pitch_of_slices}, row: {row}, slice_row: {slice_row},")?;
    writeln!(out, "        row_elements: {row_elements}, filters_depth: {filters_depth},\n    }}),")?;
    Ok(())
}

/// The fields of a descriptor of so many dwords, low bit and width of each, and the bits that are in any.
fn fields<const DWORDS: usize>(
    out: &mut String,
    descriptor: &str,
    names: &[&str],
    found: &BTreeMap<String, String>,
) -> Result<(), Failure> {
    if let Some(name) = found.keys().find(|name| name.as_str() != IGNORED && !names.contains(&name.as_str())) {
        return Err(format!("a {descriptor} descriptor has no field '{name}'").into());
    }
    let mut known = [0u32; DWORDS];
    let mut run = |text: &str| -> Result<(u16, u16), Failure> {
        let (high, low) = text.split_once(':').ok_or_else(|| format!("'{text}' is no range of bits"))?;
        let (high, low): (u16, u16) = (high.parse()?, low.parse()?);
        for bit in low..=high {
            let word = known
                .get_mut(usize::from(bit / 32))
                .ok_or_else(|| format!("'{text}' is after the end of the descriptor"))?;
            *word |= 1 << (bit % 32);
        }
        Ok((low, high + 1 - low))
    };
    let mut places = Vec::new();
    for name in names {
        places.push(found.get(*name).map(|text| run(text)).transpose()?);
    }
    for text in found.get(IGNORED).iter().flat_map(|list| list.split(',')) {
        run(text)?;
    }
    writeln!(out, "        {descriptor}: Descriptor {{ fields: {places:?}, known: {known:?} }},")?;
    Ok(())
}
