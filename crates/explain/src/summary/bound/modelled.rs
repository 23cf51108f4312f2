//! What bounds a kernel by the timing model: how busy the parts of the machine were, and what waves waited for.

use super::super::data::{Bound, Limit, LimitPart};
use super::super::subject::Subject;
use super::super::waiting::{self, Waited};
use super::functions::of_vector_alu;
use super::{
    BUSY, BUSY_NEXT, EMPTY, LAUNCH_MICROSECONDS, LAUNCHES, LAUNCHES_NEXT, average_launch, board, idle_waves, in_order,
    launched, part_of_launches,
};
use crate::Basis;
use crate::words::grouped;
use wavetap_amdgpu::MachineFact;
use wavetap_profile::time::KernelTime;

/// What waves wait for is next from this part of their time on.
const WAITS: f64 = 0.15;
/// Loads are said to take so many lines where they are at least twice as many as their bytes need.
const SCATTERED: f64 = 2.0;

/// L2 is busy with atomics if they are this part of what keeps it busy.
const ATOMICS: f64 = 0.5;

/// Parts of the machine that can bound a kernel, with their names in files.
const PARTS: [(Limit, &str); 9] = [
    (Limit::Memory, "memory"),
    (Limit::Mall, "mall"),
    (Limit::L2, "l2"),
    (Limit::L1, "l1"),
    (Limit::Lds, "lds"),
    (Limit::VectorAlu, "vector_alu"),
    (Limit::Transcendental, "transcendental"),
    (Limit::Matrix, "matrix"),
    (Limit::Scalar, "scalar"),
];

/// For which part of the time the parts of a kind were busy.
fn busy(time: &KernelTime, name: &str) -> f64 {
    time.resource(name).map_or(0.0, wavetap_profile::time::ResourceTime::part)
}

/// The same of what can bound a kernel.
pub(super) fn busy_with(time: &KernelTime, limit: Limit) -> f64 {
    PARTS.iter().find(|(of, _)| *of == limit).map_or(0.0, |(_, name)| busy(time, name))
}

pub(super) fn bound(subject: &Subject<'_>, time: &KernelTime) -> Option<Bound> {
    // A file of a version that did not note it, or nothing ran.
    if time.resources.is_empty() || time.modelled_cycles == 0 {
        return None;
    }
    let launches = launches(subject, time);
    let mut parts: Vec<LimitPart> = PARTS
        .iter()
        .map(|(limit, name)| (*limit, busy(time, name)))
        .filter(|(_, part)| *part >= BUSY_NEXT)
        .map(|(limit, part)| LimitPart { limit, text: text(subject, time, limit, part, ""), part })
        .collect();
    parts.sort_by(|a, b| b.part.total_cmp(&a.part));
    let is_busy = parts.first().is_some_and(|first| first.part >= BUSY);
    let waits = waiting(subject, time);
    let simds = busy(time, "simd");
    parts.extend(waits);
    if !is_busy {
        parts.sort_by(|a, b| b.part.total_cmp(&a.part));
        if simds < EMPTY {
            let mut few = vec![few_waves(subject, simds)];
            few.extend(where_waves_are(subject, time, simds));
            parts.splice(0..0, few);
        }
    }
    if let Some(launches) = launches {
        let place = if launches.part >= LAUNCHES { 0 } else { 1.min(parts.len()) };
        parts.insert(place, launches);
    }
    if let Some(idle) = idle_waves(subject) {
        parts.insert(0, idle);
    }
    in_order(parts, Basis::Modelled)
}

pub(super) fn least(time: &KernelTime, mended: &[Limit]) -> f64 {
    let stays = PARTS.iter().filter(|(limit, _)| !mended.contains(limit));
    stays.map(|(_, name)| busy(time, name)).fold(0.0, f64::max).min(1.0)
}

/// Launches that take about as long to start as they run.
fn launches(subject: &Subject<'_>, time: &KernelTime) -> Option<LimitPart> {
    let count = time.dispatches.len();
    let all = board(subject)?.microseconds(time.modelled_cycles as f64);
    let part = part_of_launches(subject);
    (part >= LAUNCHES_NEXT).then(|| LimitPart {
        limit: Limit::Launches,
        text: format!(
            "launches: {} of {:.1} µs on average; starting one takes about {LAUNCH_MICROSECONDS} µs",
            grouped(count as u64),
            all / count as f64
        ),
        part,
    })
}

/// A machine that is mostly empty.
fn few_waves(subject: &Subject<'_>, simds: f64) -> LimitPart {
    let launched = average_launch(subject)
        .map_or_else(String::new, |(groups, waves)| format!(" ({} a launch)", launched(groups, waves)));
    LimitPart {
        limit: Limit::FewWaves,
        text: format!("few waves: {} of SIMDs have one{launched}", percent(simds)),
        part: 1.0 - simds,
    }
}

/// `39 %`, `less than 1 %`.
fn percent(part: f64) -> String {
    if part < 0.01 { "less than 1 %".to_owned() } else { format!("{:.0} %", 100.0 * part) }
}

/// A part of the machine that is busy where there are waves.
fn where_waves_are(subject: &Subject<'_>, time: &KernelTime, simds: f64) -> Option<LimitPart> {
    let units = busy(time, "compute_unit");
    let local = |limit: Limit, name: &str| {
        let of = match limit {
            Limit::L1 | Limit::Lds => units,
            Limit::VectorAlu | Limit::Transcendental | Limit::Matrix | Limit::Scalar => simds,
            _ => return None,
        };
        Some((limit, busy(time, name) / of.max(f64::MIN_POSITIVE)))
    };
    let all = PARTS.iter().filter_map(|(limit, name)| local(*limit, name));
    let (limit, part) = all.max_by(|a, b| a.1.total_cmp(&b.1))?;
    (part >= BUSY).then(|| LimitPart { limit, text: text(subject, time, limit, part, " where there are waves"), part })
}

fn text(subject: &Subject<'_>, time: &KernelTime, limit: Limit, part: f64, of: &str) -> String {
    let percent = 100.0 * part;
    match limit {
        Limit::Memory => memory(subject, time, part),
        Limit::VectorAlu => format!("vector ALU, {percent:.0} % busy{of}{}", of_vector_alu(subject)),
        Limit::Lds => {
            let busy = time.resource("lds").map_or(0, |lds| lds.modelled_busy);
            let conflicts = 100.0 * time.memory.modelled_lds_conflict_cycles as f64 / busy.max(1) as f64;
            let conflicts =
                if conflicts >= 5.0 { format!(" ({conflicts:.0} % bank conflicts)") } else { String::new() };
            format!("LDS, {percent:.0} % busy{of}{conflicts}")
        }
        Limit::L2 => {
            let busy = time.resource("l2").map_or(0, |l2| l2.modelled_busy);
            let atomics = time.memory.modelled_atomic_cycles as f64 / busy.max(1) as f64;
            match atomics >= ATOMICS {
                true => format!("atomics in L2, {percent:.0} % busy"),
                false => format!("{}, {percent:.0} % busy", limit.name()),
            }
        }
        Limit::L1 => format!("L1, {percent:.0} % busy{of}{}", lines(subject, time)),
        limit => format!("{}, {percent:.0} % busy{of}", limit.name()),
    }
}

/// ` (23 lines an access where 4 would do)`: where accesses take more lines than their bytes need.
fn lines(subject: &Subject<'_>, time: &KernelTime) -> String {
    let Some(memory) = subject.memory else { return String::new() };
    let (mut lines, mut ideal, mut executions) = (0.0, 0.0, 0_u64);
    for access in &memory.accesses {
        let Some(modelled) = time.instructions.iter().find(|each| each.address == access.address) else { continue };
        if modelled.lines == 0 {
            continue;
        }
        lines += modelled.lines as f64;
        ideal += subject.least_lines(access) * modelled.executions as f64;
        executions += modelled.executions;
    }
    if executions == 0 || lines < SCATTERED * ideal {
        return String::new();
    }
    let each = |lines: f64| lines / executions as f64;
    format!(" ({:.0} lines an access, {:.0} would do)", each(lines), each(ideal).max(1.0))
}

/// Bytes that went to memory and came from it in a second, beside what is usually reached: the model's memory is busy
/// all the time then.
fn memory(subject: &Subject<'_>, time: &KernelTime, part: f64) -> String {
    let rate = || {
        let line = subject.kernel.processor()?.machine(MachineFact::L2LineBytes).typical;
        let bytes = time.memory.memory_lines as f64 * f64::from(line);
        let microseconds = board(subject)?.microseconds(time.modelled_cycles as f64);
        Some(bytes / microseconds / 1e3)
    };
    let rate = rate().map_or_else(String::new, |rate| format!("{} GB/s, ", grouped(rate.round() as u64)));
    format!("memory bandwidth: {rate}{:.0} % of what is usually reached", 100.0 * part.min(1.0))
}

/// What waves stand at for the largest parts of their time.
fn waiting(subject: &Subject<'_>, time: &KernelTime) -> Vec<LimitPart> {
    let all = waiting::all_cycles(time).max(1.0);
    let most_waves = time.most_waves_per_simd;
    let held = format!("{most_waves} {} a SIMD at most", if most_waves == 1 { "wave" } else { "waves" });
    let mut parts: Vec<LimitPart> = waiting::waiting(subject)
        .into_iter()
        .map(|(waited, parts)| {
            let part: f64 = parts.iter().map(|part| part.part).sum();
            let scattered = if waited.is_global() { lines(subject, time) } else { String::new() };
            let text = format!("latency: waves wait {:.0} % for {}{scattered}; {held}", 100.0 * part, waited.what());
            let limit = match waited {
                _ if waited.is_lds() || waited == Waited::LaneExchanges => Limit::LdsLatency,
                _ => Limit::MemoryLatency,
            };
            LimitPart { limit, text, part }
        })
        .collect();
    for (reason, limit, what) in [
        ("BARRIER_WAIT", Limit::Barriers, "at barriers"),
        ("ALU_DEPENDENCY", Limit::Dependencies, "for results of the ALUs"),
        ("NO_INSTRUCTION_AVAILABLE", Limit::Branches, "for instructions after branches"),
    ] {
        let part = waiting::stalls(time, reason).map(|(_, cycles)| cycles as f64).sum::<f64>() / all;
        let text = format!("latency: waves wait {:.0} % {what}; {held}", 100.0 * part);
        parts.push(LimitPart { limit, text, part });
    }
    parts.retain(|part| part.part >= WAITS);
    parts.sort_by(|a, b| b.part.total_cmp(&a.part));
    parts
}
