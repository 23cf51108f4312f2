//! The code objects of an input, of which only those in use are in memory.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::{Kept, Scratch};
use crate::offload_bundle::{Bundle, Container, Entry, EntryPlace, Found, Input};
use wavetap_base::error::{Error, Result};

/// An input without the contents of its compressed bundles, and what was in all of them, entry by entry.
#[derive(Debug)]
pub struct Sources<'d> {
    /// The input.
    pub input: Input<'d>,
    places: Vec<Option<EntryPlace>>,
    /// By bundle and entry; none for a bundle of which nothing can be replaced.
    contents: Vec<Vec<Kept<'d>>>,
}

impl<'d> Sources<'d> {
    /// Takes an input with code objects in these places, in the order of the file. What was unpacked of it goes to the
    /// file, if there is one.
    ///
    /// # Errors
    /// Io if that file cannot be written.
    pub fn new(
        mut input: Input<'d>,
        places: Vec<Option<EntryPlace>>,
        scratch: Option<&Arc<Scratch>>,
    ) -> Result<Sources<'d>> {
        let mut contents = Vec::with_capacity(input.bundles.len());
        for (index, bundle) in input.bundles.iter_mut().enumerate() {
            let has_code = places.iter().any(|place| place.is_some_and(|place| place.bundle == index));
            contents.push(if has_code { entries(bundle, scratch)? } else { Vec::new() });
            bundle.content = Cow::Borrowed(&[]);
        }
        Ok(Sources { input, places, contents })
    }

    /// How many code objects there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// The bytes of a code object, by its number.
    ///
    /// # Errors
    /// Io if what was unpacked cannot be read back.
    pub fn load(&self, number: usize) -> Result<Cow<'_, [u8]>> {
        match self.places[number] {
            Some(EntryPlace { bundle, entry }) => self.contents[bundle][entry].bytes(),
            None => Ok(Cow::Borrowed(self.input.data)),
        }
    }

    /// A code object, by its number, of which these are the bytes.
    #[must_use]
    pub fn found<'i>(&'i self, number: usize, bytes: &'i [u8]) -> Found<'i> {
        let place = self.places[number];
        let target = place.and_then(|at| self.input.bundles[at.bundle].entries[at.entry].target.as_ref());
        Found { place, target, bytes }
    }

    /// The place of a code object, by its number.
    #[must_use]
    pub fn place(&self, number: usize) -> Option<EntryPlace> {
        self.places[number]
    }

    /// Why nothing beside a code object, by its number, can be written anew without a loss: the bundle has entries that
    /// cannot be read, or the file such bundles.
    #[must_use]
    pub fn damage(&self, number: usize) -> Option<Error> {
        let EntryPlace { bundle, .. } = self.places[number]?;
        let problem = self.input.bundles[bundle].problem().cloned();
        // In a host file they stay where they are.
        let others = self.input.malformed.first().filter(|_| self.input.container == Container::Bundles);
        problem.or_else(|| others.map(|part| part.error.clone())).map(|error| error.within(format!("bundle {bundle}")))
    }

    /// The contents of a bundle's entries.
    #[must_use]
    pub fn contents(&self, bundle: usize) -> Vec<Kept<'d>> {
        self.contents[bundle].clone()
    }

    /// The code objects by what they are written with: those of a bundle, or the one that is by itself.
    #[must_use]
    pub fn units(&self) -> Vec<Range<usize>> {
        let bundle = |number: usize| self.places[number].map(|place| place.bundle);
        let mut units: Vec<Range<usize>> = Vec::new();
        for number in 0..self.count() {
            match units.last_mut() {
                Some(unit) if bundle(unit.start) == bundle(number) => unit.end = number + 1,
                _ => units.push(number..number + 1),
            }
        }
        units
    }
}

/// What is in each entry of a bundle.
fn entries<'d>(bundle: &mut Bundle<'d>, scratch: Option<&Arc<Scratch>>) -> Result<Vec<Kept<'d>>> {
    match bundle.content {
        Cow::Borrowed(content) => {
            let bytes = |entry: &Entry| {
                let range = entry.has_contents().then(|| entry.offset as usize..(entry.offset + entry.size) as usize);
                range.and_then(|range| content.get(range)).unwrap_or_default()
            };
            Ok(bundle.entries.iter().map(|entry| bytes(entry).into()).collect())
        }
        Cow::Owned(_) => {
            (0..bundle.entries.len()).map(|index| Kept::plain(bundle.entry_bytes(index), scratch)).collect()
        }
    }
}
