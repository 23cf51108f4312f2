//! The kinds of sites that a file has, each once.

use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::probes;
use crate::schema::KindSchema;
use wavetap_base::error::{Error, Result};

/// The table of the kinds that a map or a profile uses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KindTable(Vec<Arc<KindSchema>>);

impl KindTable {
    /// The table that a file has.
    ///
    /// # Errors
    /// Malformed if a schema is not well formed or is there twice; Unsupported if it is not that of a known probe's
    /// kind.
    pub fn read(kinds: Vec<KindSchema>) -> Result<KindTable> {
        let mut table = KindTable::default();
        for kind in kinds {
            if table.find(&kind.probe, &kind.name).is_some() {
                return Err(Error::malformed(format!("kind {kind} is in the table twice")));
            }
            table.0.push(probes::resolve(kind)?);
        }
        Ok(table)
    }

    /// The kinds of sites, each once.
    ///
    /// # Errors
    /// Unsupported if two kinds of one name differ.
    pub fn of<'a>(kinds: impl IntoIterator<Item = &'a Arc<KindSchema>>) -> Result<KindTable> {
        let mut table = KindTable::default();
        for kind in kinds {
            match table.0.iter().find(|known| known.same_name(kind)) {
                None => table.0.push(Arc::clone(kind)),
                Some(known) if known == kind => {}
                Some(_) => {
                    return Err(Error::unsupported(format!("kind {kind} has different fields at different sites")));
                }
            }
        }
        Ok(table)
    }

    /// The kinds.
    #[must_use]
    pub fn kinds(&self) -> &[Arc<KindSchema>] {
        &self.0
    }

    /// The kind of a name.
    #[must_use]
    pub fn find(&self, probe: &str, name: &str) -> Option<&Arc<KindSchema>> {
        self.0.iter().find(|kind| kind.probe == probe && kind.name == name)
    }

    /// The index of a kind.
    #[must_use]
    pub fn index(&self, kind: &KindSchema) -> Option<u32> {
        self.0.iter().position(|known| known.same_name(kind)).map(|index| index as u32)
    }

    /// The kind of a name that a file's site has.
    ///
    /// # Errors
    /// Malformed if the table does not have it.
    pub fn expect(&self, probe: &str, name: &str) -> Result<&Arc<KindSchema>> {
        self.find(probe, name)
            .ok_or_else(|| Error::malformed(format!("kind {probe}/{name} is not in the table of kinds")))
    }

    /// The kind of an index that a file's site has.
    ///
    /// # Errors
    /// Malformed if the table does not have it.
    pub fn at(&self, index: u32) -> Result<&Arc<KindSchema>> {
        let of = self.0.len();
        self.0.get(index as usize).ok_or_else(|| Error::malformed(format!("kind {index}, the table has {of} kinds")))
    }
}

#[cfg(feature = "schema")]
crate::described_as!(KindTable, Vec<KindSchema>);

impl Serialize for KindTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(AsRef::<KindSchema>::as_ref))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{FieldSchema, Merge, Unit};

    const FIELDS: &[FieldSchema] = &[
        FieldSchema::new("visits", Unit::Executions, Merge::Sum),
        FieldSchema::new("longest", Unit::Cycles, Merge::Max),
    ];

    #[test]
    fn kinds_are_there_once_and_the_same() {
        let twice = vec![KindSchema::new("p", "k", FIELDS), KindSchema::new("p", "k", FIELDS)];
        assert!(KindTable::read(twice).unwrap_err().to_string().contains("p/k is in the table twice"));
        let kind = Arc::new(KindSchema::new("test", "timed", FIELDS));
        let other = Arc::new(KindSchema::new("test", "timed", &FIELDS[..1]));
        assert!(KindTable::of([&kind, &other]).is_err());
        assert_eq!(KindTable::of([&kind, &kind]).unwrap().kinds().len(), 1);
    }
}
