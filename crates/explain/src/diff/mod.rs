//! Two profiles of a program beside each other: which kernels and branches got better or worse.
//!
//! Kernels are partners by demangled name and target, sites by source line, kind, operation and the order among those:
//! the profiles may be of different builds, whose lines may have moved. What has no partner is listed, and is in no
//! difference.

mod condition;
mod fields;
mod partners;

pub use condition::{Condition, Metric};
use fields::Fields;
use partners::{Line, LineSites};

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use wavetap_profile::file::{KernelTotals, Profile, SiteTotals};
use wavetap_profile::map::Source;
use wavetap_profile::probes::blocks::BlockCounts;
use wavetap_profile::probes::branches::BranchCounts;

/// Schema of [`Diff`] as JSON.
pub const SCHEMA: &str = "wavetap.diff/1";

/// The differences of two profiles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diff {
    /// [`SCHEMA`].
    pub schema: String,
    /// Whether both profiles are of runs that ended.
    pub complete: bool,
    /// Whether nothing differs, and everything has a partner.
    pub same: bool,
    /// Kernels that both have.
    pub kernels: Vec<KernelDiff>,
    /// Kernels that only the old profile has, by demangled name.
    pub only_old: Vec<String>,
    /// Kernels that only the new profile has, by demangled name.
    pub only_new: Vec<String>,
    /// Conditions of `--fail-if` that hold, each with where.
    pub failed: Vec<String>,
}

/// A kernel in both profiles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelDiff {
    /// Demangled name.
    pub demangled: String,
    /// Processor.
    pub target: String,
    /// The old numbers.
    pub old: KernelNumbers,
    /// The new numbers.
    pub new: KernelNumbers,
    /// Sites whose counts differ.
    pub changed: Vec<SiteDiff>,
    /// Sites whose partner is on another line, or in a file of another folder.
    #[serde(default)]
    pub moved: u64,
    /// Sites that only the old profile has.
    pub only_old: Vec<SiteName>,
    /// Sites that only the new profile has.
    pub only_new: Vec<SiteName>,
}

/// Numbers of a kernel. What was not counted is absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelNumbers {
    /// Dispatches.
    pub dispatches: u64,
    /// Waves.
    pub waves: u64,
    /// Executions of basic blocks, if blocks were counted.
    pub blocks: Option<u64>,
    /// Active lanes of an executed block on average, if blocks were counted.
    pub lanes: Option<f64>,
    /// Executions of instructions that narrow EXEC, if branches were counted.
    pub branches: Option<u64>,
    /// Of these, in how many the active lanes did not agree, if branches were counted.
    pub divergences: Option<u64>,
    /// The share of those in percent, if a branch was executed.
    pub divergence: Option<f64>,
    /// Wave-instructions, if the emulator ran the kernel; those of inserted code too.
    pub instructions: Option<u64>,
    /// Bytes that accesses of global memory requested, if the emulator ran the kernel; those of inserted code too.
    #[serde(default)]
    pub global_bytes: Option<u64>,
    /// Of probes without a number above, each field of their sites, `PROBE/KIND/FIELD`: the values of all sites,
    /// combined as their schema says.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, u64>,
}

/// What a site is known by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SiteName {
    /// Source line.
    pub source: Option<Source>,
    /// Probe and kind: `branches exec`.
    pub kind: String,
    /// The instruction's operation.
    pub operation: String,
    /// Which of several of them on the line, from 1, in the order of the code.
    pub number: u32,
}

/// A site whose counts differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SiteDiff {
    /// What it is known by in the old profile.
    pub site: SiteName,
    /// Its source line in the new one, if that is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<Source>,
    /// The old counts, by field.
    pub old: BTreeMap<String, u64>,
    /// The new counts, by field.
    pub new: BTreeMap<String, u64>,
}

impl SiteDiff {
    /// By how much the counts differ, all fields together.
    #[must_use]
    pub fn size(&self) -> u64 {
        let of = |(field, old): (&String, &u64)| self.new.get(field).map_or(0, |new| new.abs_diff(*old));
        self.old.iter().map(of).fold(0, u64::saturating_add)
    }
}

type KernelKey = (String, String);

impl Diff {
    /// Compares two profiles.
    #[must_use]
    pub fn new(old: &Profile, new: &Profile, conditions: &[Condition]) -> Diff {
        let (before, after) = (kernels(old), kernels(new));
        let only_old: Vec<String> =
            before.keys().filter(|key| !after.contains_key(*key)).map(|key| key.0.clone()).collect();
        let pairs: Vec<Pair<'_>> =
            before.iter().filter_map(|(key, old)| Some(Pair { key, old, new: after.get(key)? })).collect();
        let sites: Vec<(Sites, Sites)> = pairs.iter().map(|pair| (sites(pair.old), sites(pair.new))).collect();
        // All kernels of a file say where its lines went.
        let (mut old_lines, mut new_lines) = (LineSites::new(), LineSites::new());
        for (pair, (old, new)) in pairs.iter().zip(&sites) {
            add_lines(pair.key, old, &mut old_lines);
            add_lines(pair.key, new, &mut new_lines);
        }
        let lines = partners::partners(&old_lines, &new_lines);
        let with_sites = pairs.iter().zip(&sites);
        let both: Vec<KernelDiff> =
            with_sites.map(|(pair, (old, new))| KernelDiff::new(pair, old, new, &lines)).collect();
        let only_new: Vec<String> =
            after.keys().filter(|key| !before.contains_key(*key)).map(|key| key.0.clone()).collect();
        let same = only_old.is_empty() && only_new.is_empty() && both.iter().all(KernelDiff::is_same);
        let fields: Vec<(Fields, Fields)> =
            pairs.iter().map(|pair| (fields::of_all(pair.old), fields::of_all(pair.new))).collect();
        let failed = conditions.iter().flat_map(|condition| condition.holds(&both, &fields)).collect();
        let complete = old.has_ended() && new.has_ended();
        Diff { schema: SCHEMA.to_owned(), complete, same, kernels: both, only_old, only_new, failed }
    }
}

/// The kernels of a profile; those of one name that are in several objects together.
fn kernels(profile: &Profile) -> BTreeMap<KernelKey, Vec<&KernelTotals>> {
    let mut all: BTreeMap<KernelKey, Vec<&KernelTotals>> = BTreeMap::new();
    for kernel in &profile.kernels {
        all.entry((kernel.demangled.clone(), kernel.target.clone())).or_default().push(kernel);
    }
    all
}

/// The kernels of one name in both profiles.
struct Pair<'p> {
    key: &'p KernelKey,
    old: &'p [&'p KernelTotals],
    new: &'p [&'p KernelTotals],
}

impl KernelDiff {
    fn new(pair: &Pair<'_>, before: &Sites, after: &Sites, lines: &BTreeMap<Line, Line>) -> KernelDiff {
        let (demangled, target) = pair.key;
        let (mut changed, mut only_old, mut moved) = (Vec::new(), Vec::new(), 0);
        let mut found: BTreeSet<SiteName> = BTreeSet::new();
        for (site, old) in before {
            let partner = partner(site, lines);
            let Some((partner, new)) = partner.and_then(|partner| after.get_key_value(&partner)) else {
                only_old.push(site.clone());
                continue;
            };
            found.insert(partner.clone());
            let moved_to = partner.source.clone().filter(|_| partner.source != site.source);
            moved += u64::from(moved_to.is_some());
            if new != old {
                changed.push(SiteDiff { site: site.clone(), moved_to, old: old.clone(), new: new.clone() });
            }
        }
        KernelDiff {
            demangled: demangled.clone(),
            target: target.clone(),
            old: KernelNumbers::of(pair.old),
            new: KernelNumbers::of(pair.new),
            changed,
            moved,
            only_old,
            only_new: after.keys().filter(|site| !found.contains(*site)).cloned().collect(),
        }
    }

    /// Whether nothing differs.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.old == self.new && self.changed.is_empty() && self.only_old.is_empty() && self.only_new.is_empty()
    }
}

impl KernelNumbers {
    fn of(kernels: &[&KernelTotals]) -> KernelNumbers {
        let sum = |of: &dyn Fn(&KernelTotals) -> u64| {
            kernels.iter().fold(0_u64, |sum, kernel| sum.saturating_add(of(kernel)))
        };
        let sites = || kernels.iter().flat_map(|kernel| &kernel.sites);
        let (mut blocks, mut lanes, mut branches, mut divergences) = (None::<u64>, 0_u64, None::<u64>, 0_u64);
        for site in sites() {
            if let Some(block) = BlockCounts::of(&site.counts) {
                blocks = Some(blocks.unwrap_or(0).saturating_add(block.executions));
                lanes = lanes.saturating_add(block.lanes);
            }
            match BranchCounts::of(&site.counts) {
                Some(BranchCounts::Exec(exec)) => {
                    branches = Some(branches.unwrap_or(0).saturating_add(exec.executions));
                    divergences = divergences.saturating_add(exec.divergences());
                }
                Some(BranchCounts::Scalar(_)) => branches = Some(branches.unwrap_or(0)),
                None => {}
            }
        }
        let average = blocks.filter(|blocks| *blocks > 0).map(|blocks| lanes as f64 / blocks as f64);
        let share = branches.filter(|branches| *branches > 0);
        let has_work = kernels.iter().all(|kernel| kernel.work.is_some());
        KernelNumbers {
            dispatches: sum(&|kernel| kernel.dispatches),
            waves: sum(&|kernel| kernel.waves),
            blocks,
            lanes: average,
            branches,
            divergences: branches.map(|_| divergences),
            divergence: share.map(|branches| 100.0 * divergences as f64 / branches as f64),
            instructions: has_work.then(|| sum(&|kernel| kernel.work.map_or(0, |work| work.instructions))),
            global_bytes: has_work.then(|| sum(&|kernel| kernel.work.map_or(0, |work| work.global_bytes))),
            fields: fields::without_section(kernels),
        }
    }
}

type Sites = BTreeMap<SiteName, BTreeMap<String, u64>>;

/// Adds the lines of a kernel's sites, and what is on them.
fn add_lines((kernel, _): &KernelKey, sites: &Sites, all: &mut LineSites) {
    for site in sites.keys() {
        if let Some(Source { file, line }) = &site.source {
            let on_line = all.entry((file.clone(), *line)).or_default();
            on_line.insert((format!("{kernel} {}", site.kind), site.operation.clone()));
        }
    }
}

/// The name of a site in the new profile, if its line has a partner. One without a line has its order alone.
fn partner(site: &SiteName, lines: &BTreeMap<Line, Line>) -> Option<SiteName> {
    let source = match &site.source {
        Some(Source { file, line }) => {
            let (file, line) = lines.get(&(file.clone(), *line))?;
            Some(Source { file: file.clone(), line: *line })
        }
        None => None,
    };
    Some(SiteName { source, ..site.clone() })
}

/// The sites of a kernel by what they are known by.
fn sites(kernels: &[&KernelTotals]) -> Sites {
    let mut all: Vec<&SiteTotals> = kernels.iter().flat_map(|kernel| &kernel.sites).collect();
    all.sort_by_key(|site| site.address);
    let mut numbers: BTreeMap<(Option<Source>, String, String), u32> = BTreeMap::new();
    let mut named = Sites::new();
    for site in all {
        let kind = site.counts.kind();
        let key = (
            site.source.clone(),
            format!("{} {}", kind.probe, kind.name),
            site.instruction.split_whitespace().next().unwrap_or_default().to_owned(),
        );
        let number = numbers.entry(key.clone()).or_default();
        *number += 1;
        let (source, kind_name, operation) = key;
        let fields = kind.fields.iter().map(|field| field.name.to_string());
        let counts = fields.zip(site.counts.values().iter().copied()).collect();
        named.insert(SiteName { source, kind: kind_name, operation, number: *number }, counts);
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_profile::file::{Backend, Origin};
    use wavetap_profile::probes::branches::ExecCounts;

    fn profile(sites: &[(u64, u32, u64, u64)]) -> Profile {
        let mut profile = Profile::new(Origin::Counters, Backend::Emulator);
        let site = |&(address, line, executions, agreements): &(u64, u32, u64, u64)| SiteTotals {
            address,
            instruction: "s_and_saveexec_b64 s[0:1], vcc".to_owned(),
            source: Some(Source { file: "k.hip".to_owned(), line }),
            counts: ExecCounts { executions, agreements, lanes_before: 64, lanes_after: 32, empty: 0 }.into(),
        };
        let sites = sites.iter().map(site).collect();
        profile.kernels.push(KernelTotals {
            name: "k".to_owned(),
            demangled: "k".to_owned(),
            target: "gfx90a".to_owned(),
            sites,
            ..KernelTotals::default()
        });
        profile.set_ended(true);
        profile
    }

    #[test]
    fn sites_are_partners_by_line_operation_and_order() {
        let old = profile(&[(0x10, 7, 10, 10), (0x20, 7, 10, 5), (0x30, 9, 1, 1)]);
        // Elsewhere in the code; the second of line 7 diverges more; line 9 is gone and line 11 is new.
        let new = profile(&[(0x110, 7, 10, 10), (0x180, 7, 10, 1), (0x200, 11, 1, 1)]);
        let diff = Diff::new(&old, &new, &[]);
        assert!(!diff.same);
        let [kernel] = diff.kernels.as_slice() else { panic!("{diff:?}") };
        let [changed] = kernel.changed.as_slice() else { panic!("{kernel:?}") };
        assert_eq!((changed.site.number, changed.old["agreements"], changed.new["agreements"]), (2, 5, 1));
        assert_eq!(kernel.only_old[0].source.as_ref().map(|source| source.line), Some(9));
        assert_eq!(kernel.only_new[0].source.as_ref().map(|source| source.line), Some(11));
        assert_eq!((kernel.old.divergences, kernel.new.divergences), (Some(5), Some(9)));
    }

    #[test]
    fn a_profile_is_the_same_as_itself() {
        let one = profile(&[(0x10, 7, 10, 4)]);
        let any = Condition::parse("divergence>+0%").unwrap();
        let diff = Diff::new(&one, &one, &[any]);
        assert!(diff.same && diff.failed.is_empty() && diff.kernels[0].changed.is_empty(), "{diff:?}");
    }

    #[test]
    fn conditions_hold_by_points_share_and_number() {
        // 20 % of 10, 30 % of 10.
        let (old, new) = (profile(&[(0x10, 7, 10, 8)]), profile(&[(0x10, 7, 10, 7)]));
        for (text, holds) in [
            ("divergence>+5%", true),
            ("divergence>+50%", false),
            ("divergence>+9", true),
            ("divergence>+10", false),
            ("divergence>25", true),
            ("divergence>30", false),
            ("divergences>+0", true),
            ("branches>+0", false),
            ("divergence<+0", false),
            // Blocks were not counted: what cannot be checked does not pass.
            ("lanes<-10%", true),
        ] {
            let failed = Diff::new(&old, &new, &[Condition::parse(text).unwrap()]).failed;
            assert_eq!(!failed.is_empty(), holds, "{text}: {failed:?}");
        }
    }

    /// A profile with a site of a probe that this program does not have.
    fn with_unknown(visits: u64, shortest: u64) -> Profile {
        use wavetap_profile::schema::{Counts, FieldSchema, KindSchema, Merge, Unit};
        const FIELDS: &[FieldSchema] = &[
            FieldSchema::new("visits", Unit::Executions, Merge::Sum),
            FieldSchema::new("shortest", Unit::Cycles, Merge::Min),
        ];
        let kind = std::sync::Arc::new(KindSchema::new("tiles", "load", FIELDS));
        let mut profile = profile(&[(0x10, 7, 10, 4)]);
        for (address, values) in [(0x20, [visits, shortest]), (0x30, [1, u64::MAX])] {
            profile.kernels[0].sites.push(SiteTotals {
                address,
                instruction: "tile_load v1".to_owned(),
                source: None,
                counts: Counts::new(&kind, values.to_vec()).expect("two values"),
            });
        }
        profile
    }

    #[test]
    fn fields_of_unknown_schemas_are_numbers() {
        let (old, new) = (with_unknown(10, 40), with_unknown(12, 30));
        let diff = Diff::new(&old, &new, &[]);
        let [kernel] = diff.kernels.as_slice() else { panic!("{diff:?}") };
        let fields = |visits, shortest| {
            BTreeMap::from([("tiles/load/visits".to_owned(), visits), ("tiles/load/shortest".to_owned(), shortest)])
        };
        assert_eq!((&kernel.old.fields, &kernel.new.fields), (&fields(11, 40), &fields(13, 30)));
        assert!(Diff::new(&old, &old, &[]).same);
    }

    #[test]
    fn conditions_are_about_fields_of_any_schema() {
        let (old, new) = (with_unknown(10, 40), with_unknown(12, 30));
        for (text, holds) in [
            ("tiles/load/visits>+10%", true),
            ("tiles/load/visits>+20%", false),
            ("tiles/load/shortest<+0", true),
            ("tiles/load/shortest<30", false),
            // A known probe's: the branch was executed 10 times, with agreement in 4, in both profiles.
            ("branches/exec/agreements>3", true),
            ("branches/exec/agreements>+0", false),
            // What no profile has cannot be checked.
            ("tiles/store/visits>+0", true),
        ] {
            let condition = Condition::parse(text).expect("a condition");
            let failed = Diff::new(&old, &new, &[condition]).failed;
            assert_eq!(!failed.is_empty(), holds, "{text}: {failed:?}");
        }
    }
}
