//! Targets, names, latencies and machines: from `targets.yaml`, `names.yaml`, `latency.yaml` and `machine.yaml` to Rust
//! source.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;
use serde_yaml::Value;

use super::vocabulary::Vocabulary;
use super::{Failure, read};

/// Facts that say what this project can do with a target: a target that is like another one is not taken to be ready
/// for the same.
const NOT_INHERITED: [&str; 2] = ["emulated", "rewritable"];
/// The list of `names.yaml` whose names are those of fields.
const FIELD_LIST: &str = "dependency_fields";

/// One row of `targets.yaml`.
#[derive(Deserialize, Clone)]
struct Row {
    name: String,
    like: Option<String>,
    groups: Option<Vec<String>>,
    instructions: Option<String>,
    waits: Option<String>,
    #[serde(flatten)]
    facts: BTreeMap<String, Value>,
}

/// A target with everything that its row takes over from others.
struct Target {
    name: String,
    groups: Vec<String>,
    instructions: String,
    /// How its instructions wait: a row of `waits.yaml`.
    waits: String,
    facts: BTreeMap<String, Value>,
}

impl Target {
    /// Whether a list of names means this target: by its own name, its instruction set's or a group's.
    fn is_in(&self, names: &[String]) -> bool {
        names.iter().any(|name| *name == self.name || *name == self.instructions || self.groups.contains(name))
    }

    /// Every fact with its value as text.
    fn listed(&self) -> impl Iterator<Item = (&str, String)> {
        let words = [
            ("instructions", self.instructions.clone()),
            ("groups", self.groups.join(" ")),
            ("waits", self.waits.clone()),
        ];
        let text =
            |value: &Value| literal(value).map_or_else(String::new, |text| text.trim_start_matches('&').to_owned());
        words.into_iter().chain(self.facts.iter().map(move |(fact, value)| (fact.as_str(), text(value))))
    }
}

/// Names of `names.yaml`, for a number and those that follow it on the targets that have them.
#[derive(Deserialize)]
struct NameRow {
    list: String,
    number: u8,
    width: Option<u8>,
    name: Option<String>,
    #[serde(default)]
    names: Vec<String>,
    targets: Option<Vec<String>>,
}

impl NameRow {
    /// Each number and its name.
    fn entries(&self) -> impl Iterator<Item = (u8, &str)> {
        (self.number..).zip(self.name.iter().chain(&self.names).map(String::as_str))
    }

    fn is_for(&self, target: &Target) -> bool {
        self.targets.as_ref().is_none_or(|targets| target.is_in(targets))
    }
}

#[derive(Deserialize)]
struct LatencyRow {
    class: String,
    targets: Vec<String>,
    min: u32,
    typical: u32,
    max: u32,
}

/// A number of `machine.yaml`: exact, or a range.
#[derive(Deserialize)]
struct MachineRow {
    fact: String,
    targets: Vec<String>,
    value: Option<u32>,
    min: Option<u32>,
    typical: Option<u32>,
    max: Option<u32>,
}

impl MachineRow {
    /// Least, usual, most.
    fn range(&self) -> Option<[u32; 3]> {
        let range = match (self.value, self.min, self.typical, self.max) {
            (Some(value), None, None, None) => [value; 3],
            (None, Some(min), Some(typical), Some(max)) => [min, typical, max],
            _ => return None,
        };
        range.is_sorted().then_some(range)
    }
}

/// The targets, and what is said of them elsewhere.
pub(super) struct Targets {
    targets: Vec<Target>,
    names: Vec<NameRow>,
    latencies: Vec<LatencyRow>,
    machine: Vec<MachineRow>,
}

impl Targets {
    /// Reads the four files.
    pub(super) fn read(tables: &Path, vocabulary: &Vocabulary) -> Result<Targets, Failure> {
        let rows: Vec<Row> = read(&tables.join("targets.yaml"))?;
        let targets = resolve(&rows).map_err(|error| format!("targets.yaml: {error}"))?;
        let names: Vec<NameRow> = read(&tables.join("names.yaml"))?;
        let latencies: Vec<LatencyRow> = read(&tables.join("latency.yaml"))?;
        let machine: Vec<MachineRow> = read(&tables.join("machine.yaml"))?;
        let used = names.iter().filter_map(|row| row.targets.as_ref()).chain(latencies.iter().map(|row| &row.targets));
        for name in used.chain(machine.iter().map(|row| &row.targets)).flatten() {
            if !targets.iter().any(|target| target.is_in(std::slice::from_ref(name))) {
                let files = "names.yaml, latency.yaml or machine.yaml";
                return Err(
                    format!("'{name}' in {files} is no target, instruction set or group of targets.yaml").into()
                );
            }
        }
        for row in &machine {
            vocabulary.number("MachineFact", &row.fact).map_err(|error| format!("machine.yaml: {error}"))?;
            if row.range().is_none() {
                return Err(format!(
                    "machine.yaml: a row of {} has neither a value nor an ascending min, typical and max",
                    row.fact
                )
                .into());
            }
        }
        for row in &names {
            let fields = row.list == FIELD_LIST;
            if !fields {
                vocabulary.number("NameList", &row.list).map_err(|error| format!("names.yaml: {error}"))?;
            }
            if row.entries().count() == 0 || row.width.is_some() != fields {
                return Err(format!(
                    "names.yaml: {} {} has no name, or a width in the wrong list",
                    row.list, row.number
                )
                .into());
            }
        }
        Ok(Targets { targets, names, latencies, machine })
    }

    /// The names of the targets, in their order, and how each waits.
    pub(super) fn waits(&self) -> Vec<(&str, &str)> {
        self.targets.iter().map(|target| (target.name.as_str(), target.waits.as_str())).collect()
    }

    /// For each target the last of some lists of names that it is in; or else the name that is none.
    pub(super) fn last_of(&self, lists: &[&[String]]) -> Result<Vec<Option<u8>>, String> {
        let known = |name: &String| self.targets.iter().any(|target| target.is_in(std::slice::from_ref(name)));
        if let Some(name) = lists.iter().flat_map(|list| list.iter()).find(|name| !known(name)) {
            return Err(name.clone());
        }
        let last = |target: &Target| (0..).zip(lists).filter(|(_, list)| target.is_in(list)).last().map(|(n, _)| n);
        Ok(self.targets.iter().map(last).collect())
    }

    /// Rust source of the array of targets; `sets` are the instruction sets, `with_rows` has the bits of those that
    /// there are rows for.
    pub(super) fn source(&self, vocabulary: &Vocabulary, sets: &[&str], with_rows: u32) -> Result<String, Failure> {
        let mut out = format!("pub(crate) const SETS_WITH_ROWS: u32 = {with_rows:#x};\n");
        writeln!(out, "pub(crate) static TARGETS: [TargetData; {}] = [", self.targets.len())?;
        for target in &self.targets {
            self.target_source(&mut out, vocabulary, target, sets)
                .map_err(|error| format!("{}: {error}", target.name))?;
        }
        out.push_str("];\n");
        Ok(out)
    }

    fn target_source(
        &self,
        out: &mut String,
        vocabulary: &Vocabulary,
        target: &Target,
        sets: &[&str],
    ) -> Result<(), Failure> {
        let set = sets.iter().position(|set| *set == target.instructions);
        let set = set.ok_or_else(|| format!("instruction_sets.yaml has no {}", target.instructions))?;
        writeln!(out, "    TargetData {{\n        name: {:?},\n        instructions: {set},", target.name)?;
        for (fact, value) in &target.facts {
            writeln!(
                out,
                "        {fact}: {},",
                literal(value).ok_or_else(|| format!("{fact}: {value:?} is no value for a fact"))?
            )?;
        }
        let facts: Vec<(&str, String)> = target.listed().collect();
        writeln!(out, "        facts: &{facts:?},")?;
        writeln!(out, "        names: [")?;
        for list in vocabulary.words("NameList")? {
            let rows = self.names.iter().filter(|row| row.list == list && row.is_for(target));
            let mut entries: Vec<(u8, &str)> = rows.flat_map(NameRow::entries).collect();
            entries.sort_unstable();
            if let Some(pair) = entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                return Err(format!("names.yaml: {list} {} is {} and {}", pair[0].0, pair[0].1, pair[1].1).into());
            }
            writeln!(out, "            &{entries:?},")?;
        }
        let fields = self.names.iter().filter(|row| row.list == FIELD_LIST && row.is_for(target));
        let fields: Vec<_> =
            fields.flat_map(|row| row.entries().map(|(bit, name)| (bit, row.width.unwrap_or(0), name))).collect();
        writeln!(out, "        ],\n        dependency_fields: &{fields:?},")?;
        writeln!(out, "        latencies: [")?;
        for class in vocabulary.words("Latency")? {
            let rows: Vec<_> =
                self.latencies.iter().filter(|row| row.class == class && target.is_in(&row.targets)).collect();
            let [row] = rows[..] else { return Err(format!("latency.yaml has {} rows of {class}", rows.len()).into()) };
            writeln!(
                out,
                "            LatencyRange {{ min: {}, typical: {}, max: {} }},",
                row.min, row.typical, row.max
            )?;
        }
        writeln!(out, "        ],\n        machine: [")?;
        for fact in vocabulary.words("MachineFact")? {
            // What is said later is said of fewer targets.
            let row = self.machine.iter().rev().find(|row| row.fact == fact && target.is_in(&row.targets));
            let range = row.and_then(MachineRow::range).ok_or_else(|| format!("machine.yaml has no row of {fact}"))?;
            writeln!(out, "            Estimate {{ min: {}, typical: {}, max: {} }},", range[0], range[1], range[2])?;
        }
        writeln!(out, "        ],\n    }},")?;
        Ok(())
    }
}

/// A fact as Rust source: a truth value, a number, pairs of numbers, or words.
fn literal(value: &Value) -> Option<String> {
    match value {
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(value) => Some(value.to_string()),
        Value::Sequence(_) => {
            let pairs = serde_yaml::from_value::<Vec<(u32, u32)>>(value.clone()).map(|pairs| format!("&{pairs:?}"));
            let words = || serde_yaml::from_value::<Vec<String>>(value.clone()).map(|words| format!("&{words:?}"));
            pairs.or_else(|_| words()).ok()
        }
        _ => None,
    }
}

/// Follows `like`, so that every target has all facts.
fn resolve(rows: &[Row]) -> Result<Vec<Target>, Failure> {
    let by_name: HashMap<&str, &Row> = rows.iter().map(|row| (row.name.as_str(), row)).collect();
    if by_name.len() != rows.len() {
        return Err("a target has two rows".into());
    }
    let mut targets = Vec::new();
    for row in rows {
        let mut whole = row.clone();
        for fact in NOT_INHERITED {
            whole.facts.entry(fact.to_owned()).or_insert(Value::Bool(false));
        }
        let mut next = row.like.as_deref();
        for _ in 0..=rows.len() {
            let Some(name) = next else { break };
            let base = by_name.get(name).ok_or_else(|| format!("{} is like {name}, which has no row", row.name))?;
            whole.groups = whole.groups.or_else(|| base.groups.clone());
            whole.instructions = whole.instructions.or_else(|| base.instructions.clone());
            whole.waits = whole.waits.or_else(|| base.waits.clone());
            for (fact, value) in &base.facts {
                whole.facts.entry(fact.clone()).or_insert_with(|| value.clone());
            }
            next = base.like.as_deref();
        }
        if next.is_some() {
            return Err(
                format!("{} is like itself, through {}", row.name, row.like.as_deref().unwrap_or_default()).into()
            );
        }
        let instructions = whole.instructions.ok_or_else(|| format!("{} has no instructions", row.name))?;
        let waits = whole.waits.ok_or_else(|| format!("{} has no waits", row.name))?;
        targets.push(Target {
            name: row.name.clone(),
            groups: whole.groups.unwrap_or_default(),
            instructions,
            waits,
            facts: whole.facts,
        });
    }
    // A row that is like no other one must have all facts, so it says which there are.
    let Some(complete) = rows.iter().position(|row| row.like.is_none()) else {
        return Err("every target is like another one".into());
    };
    let complete = &targets[complete];
    for target in &targets {
        if let Some(fact) = complete.facts.keys().find(|fact| !target.facts.contains_key(*fact)) {
            return Err(format!("{} lacks {fact}, which {} has", target.name, complete.name).into());
        }
        if let Some(fact) = target.facts.keys().find(|fact| !complete.facts.contains_key(*fact)) {
            return Err(format!("{} has {fact}, which {} lacks", target.name, complete.name).into());
        }
    }
    for (index, target) in targets.iter().enumerate() {
        let same = |other: &&Target| other.facts.get("mach") == target.facts.get("mach");
        if let Some(other) = targets[..index].iter().find(same) {
            return Err(format!("{} and {} have the same mach: each row has its own", other.name, target.name).into());
        }
    }
    let is_name = |name: &str| targets.iter().any(|target| target.name == name || target.instructions == name);
    if let Some(group) = targets.iter().flat_map(|target| &target.groups).find(|group| is_name(group)) {
        return Err(format!("'{group}' is a group and a target").into());
    }
    Ok(targets)
}
