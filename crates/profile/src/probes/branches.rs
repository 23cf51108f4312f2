//! The probe of branches: instructions that narrow EXEC, and conditional uniform branches.

use std::ops::AddAssign;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use crate::schema::{Counts, FieldSchema, KindSchema, Merge, Unit};

/// The probe's name.
pub const PROBE: &str = "branches";

/// An instruction that forms a narrower EXEC.
pub static EXEC: LazyLock<Arc<KindSchema>> = LazyLock::new(|| Arc::new(KindSchema::new(PROBE, "exec", EXEC_FIELDS)));
/// A conditional uniform branch.
pub static SCALAR: LazyLock<Arc<KindSchema>> =
    LazyLock::new(|| Arc::new(KindSchema::new(PROBE, "scalar", SCALAR_FIELDS)));

/// The fields of [`ExecCounts`], in its order.
const EXEC_FIELDS: &[FieldSchema] = &[
    FieldSchema::new("executions", Unit::Executions, Merge::Sum),
    FieldSchema::new("agreements", Unit::Executions, Merge::Sum),
    FieldSchema::new("lanes_before", Unit::Lanes, Merge::Sum),
    FieldSchema::new("lanes_after", Unit::Lanes, Merge::Sum),
    FieldSchema::new("empty", Unit::Executions, Merge::Sum),
];
/// The fields of [`ScalarCounts`], in its order.
const SCALAR_FIELDS: &[FieldSchema] = &[
    FieldSchema::new("executions", Unit::Executions, Merge::Sum),
    FieldSchema::new("taken", Unit::Executions, Merge::Sum),
];

/// The kinds of sites of this probe.
#[must_use]
pub fn kinds() -> [&'static Arc<KindSchema>; 2] {
    [&EXEC, &SCALAR]
}

/// The counters of an instruction that narrows EXEC.
///
/// With E the mask before and F the condition: a wave that arrives with E = 0 counts in `empty` alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExecCounts {
    /// Executions with EXEC not 0.
    pub executions: u64,
    /// Executions in which all active lanes agreed: E & F is E or 0.
    pub agreements: u64,
    /// Active lanes before, summed over executions.
    pub lanes_before: u64,
    /// Active lanes after, summed over executions.
    pub lanes_after: u64,
    /// Executions with EXEC = 0, which are in none of the others.
    pub empty: u64,
}

impl ExecCounts {
    /// Executions in which active lanes did not agree.
    #[must_use]
    pub fn divergences(&self) -> u64 {
        self.executions.saturating_sub(self.agreements)
    }

    /// Average active lanes of an execution before and after the instruction; none if it was not executed.
    #[must_use]
    pub fn average_lanes(&self) -> Option<(f64, f64)> {
        let average = |lanes: u64| lanes as f64 / self.executions as f64;
        (self.executions > 0).then(|| (average(self.lanes_before), average(self.lanes_after)))
    }
}

impl AddAssign for ExecCounts {
    fn add_assign(&mut self, other: ExecCounts) {
        let ExecCounts { executions, agreements, lanes_before, lanes_after, empty } = other;
        self.executions += executions;
        self.agreements += agreements;
        self.lanes_before += lanes_before;
        self.lanes_after += lanes_after;
        self.empty += empty;
    }
}

/// The counters of a conditional uniform branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScalarCounts {
    /// Executions.
    pub executions: u64,
    /// Executions in which it was taken.
    pub taken: u64,
}

impl AddAssign for ScalarCounts {
    fn add_assign(&mut self, other: ScalarCounts) {
        let ScalarCounts { executions, taken } = other;
        self.executions += executions;
        self.taken += taken;
    }
}

/// The counters of a site of this probe, by its kind.
///
/// As JSON: the kind's name as `kind` and the fields, and what follows from them (`divergences`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "Json", into = "Json")]
pub enum BranchCounts {
    /// See [`EXEC`].
    Exec(ExecCounts),
    /// See [`SCALAR`].
    Scalar(ScalarCounts),
}

impl BranchCounts {
    /// The typed view of a site's counts; none if it is a site of another probe.
    #[must_use]
    pub fn of(counts: &Counts) -> Option<BranchCounts> {
        let kind = counts.kind();
        match *counts.values() {
            [executions, agreements, lanes_before, lanes_after, empty] if *kind == *EXEC => {
                Some(ExecCounts { executions, agreements, lanes_before, lanes_after, empty }.into())
            }
            [executions, taken] if *kind == *SCALAR => Some(ScalarCounts { executions, taken }.into()),
            _ => None,
        }
    }

    /// How often a wave executed the site with an active lane, or the uniform branch.
    #[must_use]
    pub fn executions(&self) -> u64 {
        match self {
            BranchCounts::Exec(counts) => counts.executions,
            BranchCounts::Scalar(counts) => counts.executions,
        }
    }

    /// Whether active lanes did not agree at some execution.
    #[must_use]
    pub fn diverges(&self) -> bool {
        matches!(self, BranchCounts::Exec(counts) if counts.divergences() > 0)
    }
}

impl From<ExecCounts> for BranchCounts {
    fn from(counts: ExecCounts) -> BranchCounts {
        BranchCounts::Exec(counts)
    }
}

impl From<ScalarCounts> for BranchCounts {
    fn from(counts: ScalarCounts) -> BranchCounts {
        BranchCounts::Scalar(counts)
    }
}

impl From<BranchCounts> for Counts {
    fn from(counts: BranchCounts) -> Counts {
        match counts {
            BranchCounts::Exec(counts) => counts.into(),
            BranchCounts::Scalar(counts) => counts.into(),
        }
    }
}

impl From<ExecCounts> for Counts {
    fn from(ExecCounts { executions, agreements, lanes_before, lanes_after, empty }: ExecCounts) -> Counts {
        Counts::of_array(&EXEC, [executions, agreements, lanes_before, lanes_after, empty])
    }
}

impl From<ScalarCounts> for Counts {
    fn from(ScalarCounts { executions, taken }: ScalarCounts) -> Counts {
        Counts::of_array(&SCALAR, [executions, taken])
    }
}

/// [`BranchCounts`] as JSON.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "BranchCounts"))]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Json {
    /// An instruction that narrows EXEC.
    Exec { executions: u64, agreements: u64, divergences: u64, lanes_before: u64, lanes_after: u64, empty: u64 },
    /// A conditional uniform branch.
    Scalar { executions: u64, taken: u64 },
}

impl From<Json> for BranchCounts {
    fn from(json: Json) -> BranchCounts {
        match json {
            Json::Exec { executions, agreements, divergences: _, lanes_before, lanes_after, empty } => {
                ExecCounts { executions, agreements, lanes_before, lanes_after, empty }.into()
            }
            Json::Scalar { executions, taken } => ScalarCounts { executions, taken }.into(),
        }
    }
}

impl From<BranchCounts> for Json {
    fn from(counts: BranchCounts) -> Json {
        match counts {
            BranchCounts::Exec(counts) => {
                let divergences = counts.divergences();
                let ExecCounts { executions, agreements, lanes_before, lanes_after, empty } = counts;
                Json::Exec { executions, agreements, divergences, lanes_before, lanes_after, empty }
            }
            BranchCounts::Scalar(ScalarCounts { executions, taken }) => Json::Scalar { executions, taken },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_has_the_fields_by_their_names() {
        let exec = ExecCounts { executions: 1, agreements: 2, lanes_before: 3, lanes_after: 4, empty: 5 };
        let scalar = ScalarCounts { executions: 6, taken: 7 };
        for (view, fields) in [
            (BranchCounts::Exec(exec), serde_json::to_value(exec).unwrap()),
            (BranchCounts::Scalar(scalar), serde_json::to_value(scalar).unwrap()),
        ] {
            let counts = Counts::from(view);
            assert_eq!(BranchCounts::of(&counts), Some(view));
            assert_eq!(serde_json::to_value(&counts).unwrap(), fields, "the schema's names are those of the struct");
            assert_eq!(counts.executions(), Some(view.executions()));
        }
        let mut other = (**SCALAR).clone();
        other.probe = "other".into();
        assert_eq!(BranchCounts::of(&Counts::new(&Arc::new(other), vec![1, 2]).unwrap()), None);
    }
}
