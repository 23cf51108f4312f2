//! Counts of a run beside two other sources of the same numbers: the emulator's own trace, and what was worked out by
//! hand from a sample's source.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use wavetap::emulator::Trace;
use wavetap::profile::file::{KernelTotals, Profile, SiteTotals};
use wavetap::profile::probes::branches::BranchCounts;
use wavetap::profile::schema::Counts;

use crate::Failure;

/// The totals of one dispatch of a kernel as the emulator traced it, without the texts of its sites. `object` is the
/// digest of the one object that was loaded.
#[must_use]
pub fn traced(kernel: &str, object: &str, waves: u64, trace: &Trace) -> KernelTotals {
    let site = |(address, counts)| SiteTotals { address, instruction: String::new(), source: None, counts };
    let sites = trace.executed.keys().next().map(|place| trace.sites(place.object)).unwrap_or_default();
    KernelTotals {
        name: kernel.to_owned(),
        demangled: kernel.to_owned(),
        object: object.to_owned(),
        dispatches: 1,
        waves,
        sites: sites.into_iter().map(site).collect(),
        ..KernelTotals::default()
    }
}

/// Reads a profile file.
///
/// # Errors
/// If it cannot be read or is none.
pub fn read_profile(path: &Path) -> Result<Profile, Failure> {
    let bytes = fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Profile::from_json(&bytes).map_err(|e| format!("{}: {e}", path.display()))
}

/// Compares what instrumented kernels counted with what the emulator saw in the original ones: every number of every
/// site.
///
/// # Errors
/// A list of all differences.
pub fn same_as_trace(counted: &Profile, trace: &Profile) -> Result<(), Failure> {
    let mut wrong = Vec::new();
    if !counted.complete {
        wrong.push("the profile is not complete".to_owned());
    }
    let named = |profile: &Profile| -> BTreeMap<(String, String), KernelTotals> {
        profile.kernels.iter().map(|k| ((k.object.clone(), k.name.clone()), k.clone())).collect()
    };
    let (counted_kernels, traced) = (named(counted), named(trace));
    for (key, kernel) in &counted_kernels {
        match traced.get(key) {
            Some(seen) => compare_kernel(kernel, seen, &mut wrong),
            None if kernel.waves == 0 => {}
            None => wrong.push(format!("{}: counted, but the emulator saw no dispatch of it", kernel.name)),
        }
    }
    let refused: Vec<&str> = counted.refused.iter().map(|r| r.name.as_str()).collect();
    for ((_, name), _) in traced.iter().filter(|(key, k)| k.dispatches > 0 && !counted_kernels.contains_key(*key)) {
        if !refused.contains(&name.as_str()) {
            wrong.push(format!("{name}: the emulator ran it, nothing was counted, and it is not named as refused"));
        }
    }
    if counted_kernels.values().all(|k| k.sites.iter().all(|site| site.counts.executions() == Some(0)))
        && refused.is_empty()
    {
        wrong.push("nothing was counted at all".to_owned());
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

fn compare_kernel(counted: &KernelTotals, seen: &KernelTotals, wrong: &mut Vec<String>) {
    let name = &counted.name;
    for (what, a, b) in [("dispatches", counted.dispatches, seen.dispatches), ("waves", counted.waves, seen.waves)] {
        if a != b {
            wrong.push(format!("{name}: {a} {what} counted, the emulator saw {b}"));
        }
    }
    if counted.dropped != 0 || counted.unfinished != 0 {
        wrong.push(format!("{name}: {} waves dropped, {} unfinished", counted.dropped, counted.unfinished));
    }
    let by_key = |k: &KernelTotals| -> BTreeMap<_, SiteTotals> {
        let key = |site: &SiteTotals| (site.address, site.counts.kind().to_string());
        k.sites.iter().map(|site| (key(site), site.clone())).collect()
    };
    let (mine, theirs) = (by_key(counted), by_key(seen));
    for (key, site) in &mine {
        let address = key.0;
        // A site that no wave reached need not be in the trace.
        let there = theirs.get(key).map_or_else(|| Counts::zero(site.counts.kind()), |s| s.counts.clone());
        if site.counts != there {
            wrong.push(format!(
                "{name} {address:#x} {}: counted {:?}, the emulator saw {there:?}",
                site.instruction, site.counts
            ));
        }
    }
    // A called function is a unit of its own: it may stay uncounted, if the profile says so.
    if counted.uncounted_callees.is_empty() {
        for ((address, _), site) in theirs.iter().filter(|(key, _)| !mine.contains_key(*key)) {
            wrong.push(format!(
                "{name} {address:#x} {}: not counted, the emulator saw {:?}",
                site.instruction, site.counts
            ));
        }
    }
}

/// The file `hip-samples/expected/NAME.yaml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectations {
    /// `wavetap.sample-expectations/1`.
    pub schema: String,
    /// By kernel name as in the source.
    pub kernels: BTreeMap<String, ExpectedKernel>,
}

/// What a kernel must count over the whole run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedKernel {
    /// Dispatches.
    pub dispatches: u64,
    /// Waves.
    pub waves: u64,
    /// Whether there is no further site.
    #[serde(default = "yes")]
    pub complete: bool,
    /// Sites that narrow EXEC.
    #[serde(default)]
    pub vector: Vec<ExpectedSite>,
    /// Scalar branches.
    #[serde(default)]
    pub scalar: Vec<ExpectedBranch>,
}

fn yes() -> bool {
    true
}

/// A site that narrows EXEC.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedSite {
    /// The device function that it is in, where not the kernel itself: such a function may stay uncounted.
    pub function: Option<String>,
    /// Source file, by default the sample's own.
    pub file: Option<String>,
    /// Source line.
    pub line: u32,
    /// A part of that line.
    pub text: Option<String>,
    /// `if`, `loop` or `elect`.
    pub form: String,
    /// `mov`: the mask is formed in other registers and moved into EXEC. No one instruction forms it, so it need not be
    /// a site.
    pub by: Option<By>,
    /// Waves with lanes.
    pub executions: u64,
    /// Waves whose lanes agreed.
    pub agreements: u64,
    /// Lanes before.
    pub lanes_before: u64,
    /// Lanes after: the condition holds, and its complement.
    pub lanes_after: [u64; 2],
}

/// How a mask gets into EXEC where not by the instruction that forms it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// `s_mov_b64 exec, …`.
    Mov,
}

/// A scalar branch.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedBranch {
    /// The device function that it is in, where not the kernel itself: such a function may stay uncounted.
    pub function: Option<String>,
    /// Source file, by default the sample's own.
    pub file: Option<String>,
    /// Source line.
    pub line: u32,
    /// A part of that line.
    pub text: Option<String>,
    /// Waves.
    pub executions: u64,
    /// Waves that took it: the condition holds, and its complement.
    pub taken: [u64; 2],
}

/// Compares a profile with what was worked out by hand for `sample`. In a profile whose kernels leave called functions
/// uncounted the sites of those functions may be missing.
///
/// # Errors
/// A list of all differences.
pub fn as_expected(profile: &Profile, sample: &str) -> Result<(), Failure> {
    let folder = crate::place::root().join("hip-samples");
    let path = folder.join(format!("expected/{sample}.yaml"));
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let expected: Expectations = serde_yaml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut wrong = Vec::new();
    let source =
        fs::read_to_string(folder.join(format!("src/{sample}.hip"))).map_err(|e| format!("{sample}.hip: {e}"))?;
    for (name, kernel) in &expected.kernels {
        lines_have_not_moved(kernel, &source, name, &mut wrong);
        let found: Vec<&KernelTotals> = profile.kernels.iter().filter(|k| source_name(&k.demangled) == name).collect();
        match found.as_slice() {
            [totals] => compare_expected(totals, kernel, sample, &mut wrong),
            _ => wrong.push(format!("{name}: {} kernels of this name in the profile", found.len())),
        }
    }
    for kernel in
        profile.kernels.iter().filter(|k| k.dispatches > 0 && !expected.kernels.contains_key(source_name(&k.demangled)))
    {
        wrong.push(format!("{}: dispatched, but nothing was worked out for it", kernel.demangled));
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("{}:\n{}", path.display(), wrong.join("\n"))) }
}

/// `ns::kernel<int>(float*)` → `kernel`.
fn source_name(demangled: &str) -> &str {
    let name = demangled.split(['(', '<']).next().unwrap_or(demangled).trim();
    name.rsplit(['\u{20}', ':']).next().unwrap_or(name)
}

fn lines_have_not_moved(kernel: &ExpectedKernel, source: &str, name: &str, wrong: &mut Vec<String>) {
    let sites = kernel
        .vector
        .iter()
        .map(|s| (&s.file, s.line, &s.text))
        .chain(kernel.scalar.iter().map(|s| (&s.file, s.line, &s.text)));
    for (file, line, text) in sites {
        let (None, Some(text)) = (file, text) else { continue };
        if !source.lines().nth(line as usize - 1).is_some_and(|l| l.contains(text.as_str())) {
            wrong.push(format!("{name}: line {line} of the source does not hold {text:?}"));
        }
    }
}

fn compare_expected(totals: &KernelTotals, expected: &ExpectedKernel, sample: &str, wrong: &mut Vec<String>) {
    let name = &totals.demangled;
    if (totals.dispatches, totals.waves) != (expected.dispatches, expected.waves) {
        wrong.push(format!(
            "{name}: {} dispatches and {} waves, {} and {} were worked out",
            totals.dispatches, totals.waves, expected.dispatches, expected.waves
        ));
    }
    let own = format!("{sample}.hip");
    let at = |site: &SiteTotals, file: &Option<String>, line: u32| {
        let file = file.as_deref().unwrap_or(&own);
        site.source
            .as_ref()
            .is_some_and(|s| s.line == line && Path::new(&s.file).file_name().is_some_and(|f| f == file))
    };
    // Sites of functions that are not counted are not in the profile.
    let whole = totals.uncounted_callees.is_empty();
    let mut left: Vec<&SiteTotals> = totals.sites.iter().collect();
    // Those that may be missing last, so that they take nobody's place.
    let (moved, formed): (Vec<_>, Vec<_>) = expected.vector.iter().partition(|want| want.by.is_some());
    for want in formed.into_iter().chain(moved) {
        let fits = |site: &SiteTotals| match BranchCounts::of(&site.counts) {
            Some(BranchCounts::Exec(c)) => {
                at(site, &want.file, want.line)
                    && form_of(&site.instruction).is_none_or(|form| form == (want.form == "loop"))
                    && (c.executions, c.agreements, c.lanes_before)
                        == (want.executions, want.agreements, want.lanes_before)
                    && want.lanes_after.contains(&c.lanes_after)
            }
            _ => false,
        };
        let there = left.iter().any(|s| is_exec(s) && at(s, &want.file, want.line));
        match left.iter().position(|s| fits(s)) {
            Some(place) => drop(left.remove(place)),
            None if want.by.is_some() || (!whole && want.function.is_some() && !there) => {}
            None => wrong.push(format!("{name}: no site at line {} counts {want:?}", want.line)),
        }
    }
    for want in &expected.scalar {
        let fits = |site: &SiteTotals| match BranchCounts::of(&site.counts) {
            Some(BranchCounts::Scalar(c)) => {
                at(site, &want.file, want.line) && c.executions == want.executions && want.taken.contains(&c.taken)
            }
            _ => false,
        };
        match left.iter().position(|s| fits(s)) {
            Some(place) => drop(left.remove(place)),
            None if !whole
                && want.function.is_some()
                && !left.iter().any(|s| is_scalar(s) && at(s, &want.file, want.line)) => {}
            None => wrong.push(format!("{name}: no branch at line {} counts {want:?}", want.line)),
        }
    }
    for site in left {
        // Scalar branches that only skip code for waves without lanes come in any number.
        if is_exec(site) && expected.complete {
            let source =
                site.source.as_ref().map_or_else(|| "no line".to_owned(), |s| format!("{}:{}", s.file, s.line));
            wrong.push(format!(
                "{name}: nobody worked out the site {:#x} {} ({source}): {:?}",
                site.address, site.instruction, site.counts
            ));
        }
    }
}

fn is_exec(site: &SiteTotals) -> bool {
    matches!(BranchCounts::of(&site.counts), Some(BranchCounts::Exec(_)))
}

fn is_scalar(site: &SiteTotals) -> bool {
    matches!(BranchCounts::of(&site.counts), Some(BranchCounts::Scalar(_)))
}

/// Whether the instruction is the kind that ends a loop's trip (EXEC is narrowed in place), where its name tells.
fn form_of(instruction: &str) -> Option<bool> {
    if instruction.contains("saveexec") {
        Some(false)
    } else if instruction.starts_with("s_andn2_b64 exec, exec,") {
        Some(true)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_source() {
        assert_eq!(source_name("void ns::reduce<int, 4>(int*, float)"), "reduce");
        assert_eq!(source_name("divergent(unsigned int*, unsigned int*)"), "divergent");
        assert_eq!(source_name("divergent"), "divergent");
    }

    #[test]
    fn every_sample_has_expectations() {
        for name in crate::place::sample_names() {
            let path = crate::place::root().join(format!("hip-samples/expected/{name}.yaml"));
            let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let expected: Expectations =
                serde_yaml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            assert_eq!(expected.schema, "wavetap.sample-expectations/1");
            let source = fs::read_to_string(crate::place::root().join(format!("hip-samples/src/{name}.hip"))).unwrap();
            let mut wrong = Vec::new();
            expected.kernels.iter().for_each(|(kernel, e)| lines_have_not_moved(e, &source, kernel, &mut wrong));
            assert!(wrong.is_empty(), "{wrong:?}");
        }
    }
}
