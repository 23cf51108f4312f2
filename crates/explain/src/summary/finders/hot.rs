//! Where most is executed.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::Subject;
use super::lines::Lines;
use crate::Basis;
use crate::code::{ExecutedCode, ExecutedInstruction, ExecutedLoop};
use crate::summary::bound;
use crate::summary::data::{Finding, FindingKind};
use crate::summary::waiting::all_cycles;
use wavetap_mix::{Class, VectorSpace};
use wavetap_profile::map::Source;

/// A loop, or a line, with this part of a kernel is worth to be named where nothing else is found.
const HOT: f64 = 0.25;
/// An inner loop is named instead of the loop around it if it has this part of it.
const INNER: f64 = 0.75;
/// How much the place alone says.
const WEIGHT: f64 = 0.25;
/// Sorts of instructions that are named.
const SORTS: usize = 2;
/// Sorts with less than this part are not.
const SORT: f64 = 0.1;

/// What instructions of a kernel take, by address: modelled cycles, or executions.
fn costs(subject: &Subject<'_>, code: &ExecutedCode) -> Option<(BTreeMap<u64, f64>, f64)> {
    if let Some(time) = subject.time {
        let costs = time.instructions.iter().map(|each| (each.address, each.modelled_cycles() as f64)).collect();
        return Some((costs, all_cycles(time)));
    }
    let all = code.executed()? as f64;
    let of = |(address, instruction): (&u64, &ExecutedInstruction)| Some((*address, instruction.executions? as f64));
    Some((code.instructions.iter().filter_map(of).collect(), all))
}

/// The loop, or the line, that a kernel spends most on, and what it consists of.
pub(super) fn hot_code(subject: &Subject<'_>) -> Option<Finding> {
    let code = subject.code?;
    let (costs, all) = costs(subject, code)?;
    let cost = |address: &u64| costs.get(address).copied().unwrap_or(0.0) / all.max(1.0);
    let share = |each: &ExecutedLoop| each.addresses.iter().map(cost).sum::<f64>();
    let (of, basis) = match subject.time {
        Some(_) => ("cycles", Basis::Modelled),
        None => ("instructions", Basis::Counted),
    };
    // What bounds a kernel that memory or a cache bounds is not what it executes.
    let of_memory = subject.time.is_some_and(bound::is_memory_busy);
    let sorts = |addresses: &[u64]| match of_memory {
        true => String::new(),
        false => format!(" ({})", sorts(code, addresses)),
    };
    let most = code.loops.iter().map(share).fold(0.0, f64::max);
    let hottest = code.loops.iter().filter(|each| share(each) >= (INNER * most).max(HOT));
    if let Some(hottest) = hottest.min_by_key(|each| (Reverse(each.depth), each.header)) {
        let share = share(hottest);
        let line = Lines::add_up(hottest.addresses.iter().map(|address| (code.line(*address).cloned(), cost(address))));
        let what = match hottest.lane_by_lane {
            true => format!("hot loop, one lane a round: {:.0} % of {of}", 100.0 * share),
            false => format!("hot loop around this line: {:.0} % of {of}{}", 100.0 * share, sorts(&hottest.addresses)),
        };
        // A loop over lanes is a reason, not only a place.
        let (help, weight) =
            if hottest.lane_by_lane { ("combine the lanes of a wave in a tree", share) } else { ("", WEIGHT * share) };
        return Some(finding(line.first().cloned(), basis, what, help, weight));
    }
    // Where a wave ends is no place that is worth to be named.
    let works = code.instructions.iter().filter(|(_, instruction)| instruction.class != Class::Control);
    let lines = Lines::add_up(works.map(|(address, each)| (each.source.clone(), cost(address))));
    let (source, share) = lines.main().filter(|(source, share)| source.is_some() && *share >= HOT)?;
    let addresses: Vec<u64> = code.instructions.keys().copied().filter(|at| code.line(*at) == source).collect();
    let text = format!("hot line: {:.0} % of {of}{}", 100.0 * share, sorts(&addresses));
    Some(finding(source.cloned(), basis, text, "", WEIGHT * share))
}

fn finding(source: Option<Source>, basis: Basis, text: String, help: &str, weight: f64) -> Finding {
    Finding { source, ..Finding::new(FindingKind::HotCode, basis, text, help, weight) }
}

/// `50 % vector ALU, 25 % scalar ALU`: what executed instructions are, those of code if executions are not known.
fn sorts(code: &ExecutedCode, addresses: &[u64]) -> String {
    let mut sums: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut all = 0_u64;
    for instruction in addresses.iter().filter_map(|address| code.instructions.get(address)) {
        let executions = instruction.executions.unwrap_or(0);
        *sums.entry(sort(instruction.class)).or_default() += executions;
        all += executions;
    }
    let mut sums: Vec<(&str, f64)> =
        sums.into_iter().map(|(name, sum)| (name, sum as f64 / all.max(1) as f64)).collect();
    sums.sort_by(|a, b| b.1.total_cmp(&a.1));
    let large = sums.iter().take(SORTS).filter(|(_, part)| *part >= SORT);
    large.map(|(name, part)| format!("{:.0} % {name}", 100.0 * part)).collect::<Vec<_>>().join(", ")
}

fn sort(class: Class) -> &'static str {
    match class {
        Class::Vector(..) | Class::Conversion | Class::Move | Class::Compare | Class::Select => "vector ALU",
        Class::LaneExchange | Class::LdsExchange => "lane exchange",
        Class::Matrix(..) => "matrix",
        Class::Scalar(_) => "scalar ALU",
        Class::ScalarMemory(_) => "scalar memory",
        Class::VectorMemory(VectorSpace::Scratch, _) => "scratch",
        Class::VectorMemory(..) | Class::Tensor => "vector memory",
        Class::Lds(_) | Class::Gds => "LDS",
        Class::Branch => "branches",
        Class::Wait | Class::Barrier => "waits",
        Class::Message | Class::Export | Class::Control => "control",
    }
}
