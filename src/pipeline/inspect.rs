//! Bundles, entries, targets, kernels and what they need of the machine.

use wavetap_base::error::{Error, Result, ResultExt};
use wavetap_object::offload_bundle::{Container, Input};
use wavetap_report::inspect::{Inspected, InspectedBundle, InspectedEntry, InspectedObject, Inspection, SCHEMA};

/// What is in an input. With `extract`, that is called with each selected code object's entry and bytes and returns
/// where it put them.
///
/// ```
/// use wavetap::pipeline::{Inspected, inspect};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/hip-samples/bin/divergence");
/// # let data = std::fs::read(path).unwrap();
/// let inspection = inspect(&data, &Inspected::default(), None)?;
/// let entry = &inspection.bundles[0].entries[2];
/// assert_eq!((entry.id.as_str(), entry.target.as_deref()), ("0.2", Some("gfx90a")));
/// assert_eq!(inspection.objects.len(), 3);
/// # Ok::<(), wavetap::error::Error>(())
/// ```
///
/// # Errors
/// Malformed if the input breaks its format or a selection selects nothing; what `extract` reports. Of a code object
/// beside others that cannot be read, the inspection says why.
pub fn inspect(data: &[u8], inspected: &Inspected, mut extract: Option<&mut Extract<'_>>) -> Result<Inspection> {
    let input = Input::parse(data)?;
    if extract.is_some() && input.bundles.is_empty() {
        return Err(Error::unsupported("a code object by itself: there is nothing to extract from it"));
    }
    inspected.selection.check(&input, &inspected.entries)?;
    let selected = inspected.selection.objects(&input, &inspected.entries)?;
    let mut objects = Vec::new();
    // A library has hundreds of objects: who asks for kernels is told of those that have some of them.
    let by_kernel = !inspected.selection.kernels.is_empty();
    for found in &selected {
        let object = InspectedObject::of(found, inspected).within(|| found.location())?;
        if !by_kernel || !object.kernels.is_empty() || !object.malformed.is_empty() {
            objects.push(object);
        }
    }
    let mut bundles = Vec::new();
    for (index, bundle) in input.bundles.iter().enumerate() {
        bundles.push(InspectedBundle::of(&input, index, bundle, inspected));
    }
    if let Some(extract) = &mut extract {
        for entry in bundles.iter_mut().flat_map(|bundle| &mut bundle.entries).filter(|entry| entry.is_code()) {
            let place = entry.place();
            let bytes = input.bundles.get(place.bundle).map_or(&[][..], |bundle| bundle.entry_bytes(place.entry));
            entry.extracted = Some(extract(entry, bytes)?);
        }
    }
    let container = match &input.container {
        Container::Host { .. } => "host ELF file",
        Container::Bundles => "offload bundles",
        Container::CodeObject => "code object",
    };
    let malformed = input.malformed.iter().map(ToString::to_string).collect();
    Ok(Inspection { schema: SCHEMA.to_owned(), container: container.to_owned(), bundles, objects, malformed })
}

/// Puts an entry's bytes somewhere and says where.
pub type Extract<'a> = dyn FnMut(&InspectedEntry, &[u8]) -> Result<String> + 'a;
