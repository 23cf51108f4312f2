//! What counters mean: a [`KindSchema`] names the fields of a sort of site, their units, and how values of several
//! waves, dispatches and processes combine.
//!
//! A schema is a constant in the code of a probe (see [`crate::probes`]) and data in a map or a profile file, so that
//! whatever collects, merges, compares or
//! exports counters needs no probe's code.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use wavetap_base::error::{Error, Result, ResultExt};

/// The most fields that a kind may have: more is a damaged file.
pub const MAX_FIELDS: usize = 256;

/// What a field counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Executions of the site by a wave.
    Executions,
    /// Lanes of a wave.
    Lanes,
    /// Cycles of the shader's clock.
    Cycles,
    /// Ticks of the clock whose frequency is constant.
    Ticks,
    /// Bytes.
    Bytes,
    /// Memory transactions or cache lines.
    Transactions,
    /// Events without a unit of their own.
    Events,
}

/// How two values of a field combine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Merge {
    /// They are added; a sum above 64 bits is an error.
    Sum,
    /// The larger one; 0 where nothing was measured.
    Max,
    /// The smaller one; `u64::MAX` where nothing was measured. A record holds the *complement* of a minimum, whose
    /// maximum it is that waves form: a record that the
    /// host has zeroed holds no value.
    Min,
}

impl Merge {
    /// The value of a field before anything was measured.
    #[must_use]
    pub const fn identity(self) -> u64 {
        match self {
            Merge::Sum | Merge::Max => 0,
            Merge::Min => u64::MAX,
        }
    }

    /// Two values combined; none if the sum exceeds 64 bits.
    #[must_use]
    pub fn combine(self, a: u64, b: u64) -> Option<u64> {
        match self {
            Merge::Sum => a.checked_add(b),
            Merge::Max => Some(a.max(b)),
            Merge::Min => Some(a.min(b)),
        }
    }

    /// The value that a counter of a record stands for.
    #[must_use]
    pub const fn from_record(self, counter: u64) -> u64 {
        match self {
            Merge::Sum | Merge::Max => counter,
            Merge::Min => !counter,
        }
    }
}

/// One field of a site.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FieldSchema {
    /// Its name: lower case with underscores, unique within the kind.
    pub name: Cow<'static, str>,
    /// What it counts.
    pub unit: Unit,
    /// How values combine.
    pub merge: Merge,
}

impl FieldSchema {
    /// A field for a constant.
    #[must_use]
    pub const fn new(name: &'static str, unit: Unit, merge: Merge) -> FieldSchema {
        FieldSchema { name: Cow::Borrowed(name), unit, merge }
    }
}

/// The counters of one sort of site of a probe. In a record they are 64-bit values in the order of the fields.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct KindSchema {
    /// The probe: `branches`.
    pub probe: Cow<'static, str>,
    /// The kind, unique within the probe: `exec`.
    pub name: Cow<'static, str>,
    /// The fields, in the order in which a record has them.
    pub fields: Cow<'static, [FieldSchema]>,
}

impl KindSchema {
    /// A kind for a constant.
    #[must_use]
    pub const fn new(probe: &'static str, name: &'static str, fields: &'static [FieldSchema]) -> KindSchema {
        KindSchema { probe: Cow::Borrowed(probe), name: Cow::Borrowed(name), fields: Cow::Borrowed(fields) }
    }

    /// How many counters such a site has.
    #[must_use]
    pub fn counters(&self) -> u32 {
        self.fields.len() as u32
    }

    /// The place of a field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// Whether both describe the same kind of the same probe, though maybe in different versions.
    #[must_use]
    pub fn same_name(&self, other: &KindSchema) -> bool {
        self.probe == other.probe && self.name == other.name
    }

    /// Finds what no schema may have.
    ///
    /// # Errors
    /// Malformed: an empty name, no field, too many or two of one name.
    pub fn check(&self) -> Result<()> {
        let found =
            if self.probe.is_empty() || self.name.is_empty() || self.fields.iter().any(|field| field.name.is_empty()) {
                "an empty name".to_owned()
            } else if !(1..=MAX_FIELDS).contains(&self.fields.len()) {
                format!("{} fields, expected 1 to {MAX_FIELDS}", self.fields.len())
            } else {
                let twice = self.fields.iter().enumerate().find(|(at, field)| self.field(&field.name) != Some(*at));
                let Some((_, field)) = twice else { return Ok(()) };
                format!("two fields named {:?}", field.name)
            };
        Err(Error::malformed(format!("kind {self}: {found}")))
    }
}

impl std::fmt::Display for KindSchema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.probe, self.name)
    }
}

/// The values of one site, as its kind describes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    kind: Arc<KindSchema>,
    values: Vec<u64>,
}

impl Counts {
    /// Nothing measured.
    #[must_use]
    pub fn zero(kind: &Arc<KindSchema>) -> Counts {
        Counts { values: kind.fields.iter().map(|field| field.merge.identity()).collect(), kind: Arc::clone(kind) }
    }

    /// Values in the order of the kind's fields.
    ///
    /// # Errors
    /// Malformed if the kind has another number of fields.
    pub fn new(kind: &Arc<KindSchema>, values: Vec<u64>) -> Result<Counts> {
        expect_count(kind, &values)?;
        Ok(Counts { kind: Arc::clone(kind), values })
    }

    /// Values of a kind with as many fields, as a probe's view has them.
    pub(crate) fn of_array<const N: usize>(kind: &Arc<KindSchema>, values: [u64; N]) -> Counts {
        debug_assert_eq!(kind.fields.len(), N, "{kind}");
        Counts { kind: Arc::clone(kind), values: values.to_vec() }
    }

    /// The kind of site these belong to.
    #[must_use]
    pub fn kind(&self) -> &Arc<KindSchema> {
        &self.kind
    }

    /// The values in the order of the kind's fields.
    #[must_use]
    pub fn values(&self) -> &[u64] {
        &self.values
    }

    /// Calls `change` with each value and its field.
    pub(crate) fn each(&mut self, mut change: impl FnMut(&mut u64, &FieldSchema)) {
        self.kind.fields.iter().zip(&mut self.values).for_each(|(field, value)| change(value, field));
    }

    /// The value of a field; none if the kind has no such field.
    #[must_use]
    pub fn value(&self, field: &str) -> Option<u64> {
        self.kind.field(field).map(|at| self.values[at])
    }

    /// How often a wave executed the site: its first field in executions; none if it has no such field.
    #[must_use]
    pub fn executions(&self) -> Option<u64> {
        let at = self.kind.fields.iter().position(|field| field.unit == Unit::Executions)?;
        self.values.get(at).copied()
    }

    /// Whether nothing was measured.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.kind.fields.iter().zip(&self.values).all(|(field, value)| *value == field.merge.identity())
    }

    /// Combines with other values in the order of the kind's fields, each as its field says. Nothing changes where that
    /// fails.
    ///
    /// # Errors
    /// Limit if a sum does not fit 64 bits; Malformed if the kind has another number of fields.
    pub fn add(&mut self, values: &[u64]) -> Result<()> {
        expect_count(&self.kind, values)?;
        let fields = self.kind.fields.iter().zip(&self.values).zip(values);
        self.values = fields
            .map(|((field, mine), value)| {
                let combined = field.merge.combine(*mine, *value);
                combined.ok_or_else(|| {
                    Error::limit(format!("a counter exceeds 64 bits: {} of kind {}", field.name, self.kind))
                })
            })
            .collect::<Result<_>>()?;
        Ok(())
    }

    /// Combines with the counts of the same kind.
    ///
    /// # Errors
    /// Unsupported if they are of another kind; as [`Counts::add`].
    pub fn merge(&mut self, other: &Counts) -> Result<()> {
        if self.kind != other.kind {
            return Err(Error::unsupported(format!(
                "counts of kind {} do not add to those of kind {}",
                other.kind, self.kind
            )));
        }
        self.add(&other.values)
    }

    /// Counts from values by field name.
    ///
    /// # Errors
    /// Malformed if a field is missing or there is one too many.
    pub fn from_named(kind: &Arc<KindSchema>, mut named: BTreeMap<String, u64>) -> Result<Counts> {
        let value = |field: &FieldSchema| {
            named
                .remove(field.name.as_ref())
                .ok_or_else(|| Error::malformed(format!("kind {kind}: field {:?} is missing", field.name)))
        };
        let values = kind.fields.iter().map(value).collect::<Result<_>>()?;
        match named.keys().next() {
            Some(name) => Err(Error::malformed(format!("kind {kind} has no field {name:?}"))),
            None => Ok(Counts { kind: Arc::clone(kind), values }),
        }
    }
}

/// An object of the values by field name.
impl Serialize for Counts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.values.len()))?;
        for (field, value) in self.kind.fields.iter().zip(&self.values) {
            map.serialize_entry(&field.name, value)?;
        }
        map.end()
    }
}

fn expect_count(kind: &KindSchema, values: &[u64]) -> Result<()> {
    if kind.fields.len() == values.len() {
        return Ok(());
    }
    Err(Error::malformed(format!("{} counters where a site of kind {kind} has {}", values.len(), kind.fields.len())))
}

/// Reads a field's values in a record.
///
/// # Errors
/// Malformed if the record is too short.
pub fn values_in_record(kind: &KindSchema, record: &[u8], offset: u32) -> Result<Vec<u64>> {
    let at = |number: usize| u64::from(offset) + number as u64 * u64::from(crate::record::COUNTER);
    let fields = kind.fields.iter().enumerate();
    fields
        .map(|(number, field)| {
            let counter = wavetap_base::bytes::u64_at(record, at(number), "counter");
            counter.map(|counter| field.merge.from_record(counter)).within(|| format!("{} of kind {kind}", field.name))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &[FieldSchema] = &[
        FieldSchema::new("visits", Unit::Executions, Merge::Sum),
        FieldSchema::new("longest", Unit::Cycles, Merge::Max),
        FieldSchema::new("shortest", Unit::Cycles, Merge::Min),
    ];

    fn kind() -> Arc<KindSchema> {
        Arc::new(KindSchema::new("test", "timed", FIELDS))
    }

    #[test]
    fn fields_combine_as_their_rule_says() {
        let mut counts = Counts::zero(&kind());
        assert!(counts.is_zero());
        assert_eq!(counts.values(), [0, 0, u64::MAX]);
        counts.add(&[2, 30, 10]).unwrap();
        counts.add(&[1, 20, 5]).unwrap();
        assert_eq!((counts.values(), counts.executions()), ([3, 30, 5].as_slice(), Some(3)));
        assert_eq!((counts.value("shortest"), counts.value("other")), (Some(5), None));
        let before = counts.clone();
        assert!(counts.add(&[u64::MAX, 99, 0]).unwrap_err().to_string().contains("visits of kind test/timed"));
        assert_eq!(counts, before, "a failed addition changes nothing");
        assert!(
            counts.add(&[1, 2]).unwrap_err().to_string().contains("2 counters where a site of kind test/timed has 3")
        );
    }

    #[test]
    fn a_zeroed_record_has_no_minimum() {
        let mut record = vec![0; 32];
        assert_eq!(values_in_record(&kind(), &record, 8).unwrap(), [0, 0, u64::MAX]);
        record[24..32].copy_from_slice(&(!7_u64).to_le_bytes());
        assert_eq!(values_in_record(&kind(), &record, 8).unwrap(), [0, 0, 7]);
        assert!(values_in_record(&kind(), &record, 16).is_err());
    }

    #[test]
    fn values_by_name_are_complete() {
        let named = |names: &[&str]| names.iter().zip(1..).map(|(name, value)| ((*name).to_owned(), value)).collect();
        let counts = Counts::from_named(&kind(), named(&["visits", "longest", "shortest"])).unwrap();
        assert_eq!(serde_json::to_string(&counts).unwrap(), r#"{"visits":1,"longest":2,"shortest":3}"#);
        let fault = |names| Counts::from_named(&kind(), named(names)).unwrap_err().to_string();
        assert!(fault(&["visits", "longest"]).contains("field \"shortest\" is missing"));
        assert!(fault(&["visits", "longest", "shortest", "more"]).contains("no field \"more\""));
    }

    #[test]
    fn schemas_are_checked() {
        let check = |probe: &'static str, fields: &[FieldSchema]| {
            let kind = KindSchema { fields: fields.to_vec().into(), ..KindSchema::new(probe, "k", &[]) };
            kind.check().map_err(|error| error.to_string())
        };
        assert_eq!(check("p", FIELDS), Ok(()));
        assert!(check("", FIELDS).unwrap_err().contains("an empty name"));
        assert!(check("p", &[]).unwrap_err().contains("0 fields"));
        assert!(
            check("p", &[FIELDS[0].clone(), FIELDS[0].clone()]).unwrap_err().contains("two fields named \"visits\"")
        );
    }
}
