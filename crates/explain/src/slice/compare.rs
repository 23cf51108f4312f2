//! Slices of the same kernel from several files, side by side: of which source lines and which kinds of operations each
//! version waits, and why that differs.
//!
//! Versions are for different processors, so cycles say nothing across them: shares do. Each is of the version's own
//! waiting: of its samples, else of what is predicted.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::json::{Chain, KernelSlice, Slice};
use super::{Class, Edge, SelfBlame, WaitSlice};
use crate::names::outline;
use wavetap_profile::map::Source;

/// Schema of [`SliceComparison`] as JSON.
pub const COMPARISON_SCHEMA: &str = "wavetap.slice-comparison/1";

/// Shares that differ by less, in parts of 1, are taken to be alike.
const DIFFERS: f64 = 0.2;
/// A share that is less is nothing to speak of.
const LITTLE: f64 = 0.05;

/// Kernels of several files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SliceComparison {
    /// [`COMPARISON_SCHEMA`].
    pub schema: String,
    /// Kernels that are in several files, by name.
    pub kernels: Vec<ComparedKernel>,
    /// Kernels that are in one file only.
    pub alone: Vec<LoneKernel>,
    /// Kernels and code objects that are not sliced, each with its file and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
}

/// A kernel that has no partner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoneKernel {
    /// Its file.
    pub file: String,
    /// Demangled name.
    pub name: String,
    /// Processor.
    pub target: String,
}

/// A kernel with its versions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedKernel {
    /// Its name without parameters, by which versions are partners.
    pub name: String,
    /// The versions, in the order of the files.
    pub versions: Vec<KernelVersion>,
    /// Of what they wait: by kind of operation, the most first.
    pub kinds: Vec<ComparedCause>,
    /// Of which source lines: by line, the most first.
    pub lines: Vec<ComparedCause>,
    /// Where they differ and why, in words.
    pub differences: Vec<String>,
}

/// A version of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelVersion {
    /// Its file.
    pub file: String,
    /// Processor.
    pub target: String,
    /// What the shares are of.
    pub basis: ShareBasis,
    /// Instructions that wait for operations in flight.
    pub waits: u64,
    /// Operations that one of these waits for, on average.
    pub operations_per_wait: f64,
}

/// What the shares of a version are parts of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ShareBasis {
    /// Samples of waves that stood.
    Samples,
    /// Predicted cycles, with counted executions.
    Counts,
    /// Predicted cycles of one execution of each wait: not ranked by time.
    OneExecution,
}

/// A cause that versions may have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedCause {
    /// Kind of operation, or `file:line`.
    pub cause: String,
    /// By version: its part of the version's waiting, 0 to 1, and why.
    pub versions: Vec<VersionCause>,
}

/// A cause in a version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VersionCause {
    /// 0 to 1; none of a line if the version has no source lines.
    pub share: Option<f64>,
    /// In words.
    pub why: String,
}

/// By what causes are gathered.
type Key = Option<String>;

/// Compares kernels of files, each with its name. Versions are partners if their names without parameters and template
/// arguments are the same.
#[must_use]
pub fn compare(files: &[(String, Slice)]) -> SliceComparison {
    let mut by_name: BTreeMap<String, Vec<(&str, &KernelSlice)>> = BTreeMap::new();
    for (file, slice) in files {
        for kernel in &slice.kernels {
            by_name.entry(outline(&kernel.demangled)).or_default().push((file, kernel));
        }
    }
    let (mut kernels, mut alone) = (Vec::new(), Vec::new());
    for (name, versions) in by_name {
        if let [(file, kernel)] = versions[..] {
            let (name, target) = (kernel.demangled.clone(), kernel.target.clone());
            alone.push(LoneKernel { file: file.to_owned(), name, target });
        } else {
            kernels.push(compare_kernel(name, &versions));
        }
    }
    let unread = files.iter().flat_map(|(file, slice)| slice.unread.iter().map(move |why| format!("{file}: {why}")));
    SliceComparison { schema: COMPARISON_SCHEMA.to_owned(), kernels, alone, unread: unread.collect() }
}

fn compare_kernel(name: String, versions: &[(&str, &KernelSlice)]) -> ComparedKernel {
    let kinds = causes(versions, &|chain| Some(kind(chain).to_owned()), &|class, _| {
        class.map(|class| class.words().to_owned())
    });
    let lines = causes(versions, &|chain| chain_line(chain), &|_, source| source.map(line));
    let targets: Vec<String> = versions.iter().map(|(_, kernel)| kernel.target.clone()).collect();
    let mut differences: Vec<String> = kinds.iter().filter_map(|cause| difference(cause, &targets)).collect();
    // Lines of files that are not the same are not compared.
    let shared =
        lines.iter().filter(|cause| cause.versions.iter().filter(|version| version.share > Some(0.0)).count() > 1);
    let has_shared = shared.count() > 0;
    if has_shared {
        differences.extend(lines.iter().filter_map(|cause| difference(cause, &targets)));
    }
    ComparedKernel { name, versions: versions.iter().map(version).collect(), kinds, lines, differences }
}

fn version((file, kernel): &(&str, &KernelSlice)) -> KernelVersion {
    let addresses: BTreeSet<u64> = waiting(kernel).map(|wait| wait.address).collect();
    let operations: usize = waiting(kernel).map(|wait| wait.operations.len()).sum();
    let basis = match (&kernel.samples, kernel.waits.iter().any(|wait| wait.executions.is_some())) {
        (Some(samples), _) if samples.samples > 0 => ShareBasis::Samples,
        (_, true) => ShareBasis::Counts,
        (_, false) => ShareBasis::OneExecution,
    };
    KernelVersion {
        file: (*file).to_owned(),
        target: kernel.target.clone(),
        basis,
        waits: addresses.len() as u64,
        operations_per_wait: operations as f64 / addresses.len().max(1) as f64,
    }
}

fn waiting(kernel: &KernelSlice) -> impl Iterator<Item = &WaitSlice> {
    kernel.waits.iter().filter(|wait| !wait.operations.is_empty())
}

/// The source line that a chain blames: of the operation, else of the stalled instruction itself; of inlined code the
/// line that called it, since versions have other headers.
fn chain_line(chain: &Chain) -> Key {
    let step = chain.path.get(1).filter(|step| step.edge == Edge::Wait).or(chain.path.first());
    step.and_then(|step| step.inlined.last().map(|call| &call.called_at).or(step.source.as_ref())).map(line)
}

fn line(source: &Source) -> String {
    let file = source.file.rsplit(['/', '\\']).next().unwrap_or(&source.file);
    format!("{file}:{}", source.line)
}

/// What a chain blames, in words.
fn kind(chain: &Chain) -> &'static str {
    match (chain.class, chain.self_blame) {
        (Some(class), _) => class.words(),
        (None, Some(why)) => own(why),
        (None, None) => "what a function has left",
    }
}

/// A stall without a cause, in words.
fn own(why: SelfBlame) -> &'static str {
    match why {
        SelfBlame::MemoryLatency => "memory, of which it is not known what",
        SelfBlame::Dependency => "results of arithmetic",
        SelfBlame::Barrier => "other waves at barriers",
        SelfBlame::InstructionFetch => "instruction fetch",
        SelfBlame::IssueContention => "other waves that are issued first",
        SelfBlame::BusyPipe => "units that are busy",
        SelfBlame::Sleep => "sleep",
        SelfBlame::Other => "other reasons",
        SelfBlame::Unknown => "reasons that samples do not tell",
    }
}

fn causes(
    versions: &[(&str, &KernelSlice)],
    of_chain: &dyn Fn(&Chain) -> Key,
    of_operation: &dyn Fn(Option<Class>, Option<&Source>) -> Key,
) -> Vec<ComparedCause> {
    let mut all: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (number, (_, kernel)) in versions.iter().enumerate() {
        for chain in &kernel.chains {
            let Some(key) = of_chain(chain) else { continue };
            all.entry(key).or_insert_with(|| vec![0.0; versions.len()])[number] += chain.kernel_share;
        }
    }
    // Of what a version cannot have it is not said that it has none.
    let known: Vec<bool> =
        versions.iter().map(|(_, kernel)| kernel.chains.iter().any(|chain| of_chain(chain).is_some())).collect();
    let cause = |(key, shares): (String, Vec<f64>)| {
        let of_version = |(number, share): (usize, f64)| {
            if !known[number] {
                return VersionCause { share: None, why: "its code has no source lines".to_owned() };
            }
            let why = why(
                versions[number].1,
                share,
                |chain| of_chain(chain).as_ref() == Some(&key),
                |class, source| of_operation(class, source).as_ref() == Some(&key),
            );
            VersionCause { share: Some(share), why }
        };
        ComparedCause { versions: shares.into_iter().enumerate().map(of_version).collect(), cause: key }
    };
    let mut causes: Vec<ComparedCause> = all.into_iter().map(cause).collect();
    let sum = |cause: &ComparedCause| cause.versions.iter().filter_map(|version| version.share).sum::<f64>();
    causes.sort_by(|a, b| sum(b).total_cmp(&sum(a)).then(a.cause.cmp(&b.cause)));
    causes
}

/// Why a version waits so much for something: what is left of the latency of the chain that weighs most, and how many
/// operations are in flight at its wait; or why it does not.
fn why(
    kernel: &KernelSlice,
    share: f64,
    is_of: impl Fn(&Chain) -> bool,
    is_operation: impl Fn(Option<Class>, Option<&Source>) -> bool,
) -> String {
    let heaviest =
        kernel.chains.iter().filter(|chain| is_of(chain)).max_by(|a, b| a.kernel_share.total_cmp(&b.kernel_share));
    if let Some(chain) = heaviest.filter(|_| share >= LITTLE) {
        if chain.self_blame.is_some() {
            return "waves stand there by samples".to_owned();
        }
        let evidence = &chain.evidence;
        let at_wait: BTreeSet<Option<u64>> = waiting(kernel)
            .filter(|wait| wait.address == chain.address)
            .flat_map(|wait| wait.operations.iter().map(|operation| operation.address))
            .collect();
        let others = match at_wait.len() {
            0 | 1 => String::new(),
            n => format!(", {n} operations may be in flight at the wait"),
        };
        let hidden = evidence.hidden_cycles.min(u64::from(evidence.latency.typical));
        let loaded = if evidence.address_loaded_by.is_some() { ", its address is loaded before" } else { "" };
        return format!("{hidden} of {} cycles pass before the wait{others}{loaded}", evidence.latency.typical);
    }
    let waited = waiting(kernel).flat_map(|wait| &wait.operations);
    let some = waited.filter(|operation| is_operation(operation.class, operation.source.as_ref())).count();
    match some {
        0 => "no operation of it is waited for".to_owned(),
        _ => "waited for, and little or nothing is left of the latency then".to_owned(),
    }
}

/// A cause of which versions have different shares, in words.
fn difference(cause: &ComparedCause, targets: &[String]) -> Option<String> {
    let shares = || cause.versions.iter().filter_map(|version| version.share);
    let (least, most) = (shares().fold(f64::INFINITY, f64::min), shares().fold(0.0, f64::max));
    if most - least < DIFFERS {
        return None;
    }
    let share = |number: usize| cause.versions[number].share.unwrap_or(0.0);
    let mut order: Vec<usize> = (0..targets.len()).filter(|number| cause.versions[*number].share.is_some()).collect();
    order.sort_by(|a, b| share(*b).total_cmp(&share(*a)).then(a.cmp(b)));
    let of = |number: usize| {
        format!("{:.0} % on {} ({})", 100.0 * share(number), targets[number], cause.versions[number].why)
    };
    let texts: Vec<String> = order.into_iter().map(of).collect();
    Some(format!("{}: {}", cause.cause, texts.join(", ")))
}

#[cfg(test)]
mod tests;
