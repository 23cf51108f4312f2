//! Lanes and waves that have nothing to do.

use std::collections::BTreeSet;

use super::Subject;
use super::lines::Lines;
use crate::Basis;
use crate::code::{IdleWaves, LaneGuard};
use crate::launches::processor;
use crate::summary::data::{Finding, FindingKind};
use crate::words::grouped;

/// Branches and loops because of which this part of a kernel's lanes is idle are a finding.
const IDLE: f64 = 0.05;
/// Of a line with several tests the worst one is shown if it has this part of what all have.
const MAIN: f64 = 0.5;
/// Where fewer lanes run on average, it is one that does.
const ONE_LANE: f64 = 1.05;
/// Tests of a work-item's number that this part of the lanes passes, or more, are of a workgroup that is too large; of
/// fewer, one or a few work-items do what all could.
const FILLED_LEAST: f64 = 0.25;
/// Such a test is about the workgroup if this part of the kernel runs under it.
const MOST_OF_KERNEL: f64 = 0.5;
/// Waves of which this part leaves at once are a finding.
const LEAVING: f64 = 0.5;
/// What waves cost that leave at once, where enough others stay.
const LEAVING_WEIGHT: f64 = 0.25;

/// The branches and loops that leave most lanes idle, by how much code runs with fewer lanes because of them.
pub(super) fn divergence(subject: &Subject<'_>) -> Vec<Finding> {
    find_divergence(subject).into_iter().collect()
}

fn find_divergence(subject: &Subject<'_>) -> Option<Finding> {
    let code = subject.code?;
    let executed = code.executed()? as f64;
    let slots = executed * f64::from(subject.kernel.wave_size()?);
    let is_divergence = |guard: &&LaneGuard| !is_unfilled(guard, executed);
    let guards: Vec<&LaneGuard> = code.guards.iter().filter(is_divergence).collect();
    let parts = guards.iter().map(|guard| (code.line(guard.address).cloned(), guard.idle / slots));
    let lines = Lines::add_up(parts);
    let sum = lines.sum();
    if sum < IDLE {
        return None;
    }
    let Some((main, part)) = lines.main() else {
        let text = format!("divergence{}: about {:.0} % of all lanes idle", lines.places(), 100.0 * sum);
        let help = "let the lanes of a wave take the same side";
        let all_counted = guards.iter().all(|guard| guard.is_counted);
        return Some(lines.finding(FindingKind::Divergence, basis(all_counted), text, help, sum));
    };
    if part < IDLE {
        return None;
    }
    // Of several on the line the one that most is because of.
    let on_line: Vec<&LaneGuard> = guards.into_iter().filter(|guard| code.line(guard.address) == main).collect();
    let worst = on_line.iter().max_by(|a, b| a.idle.total_cmp(&b.idle))?;
    let LaneGuard { executions, lanes, is_counted, before, leaves_loop, idle, with_empty, disagreed, .. } = **worst;
    let active = lanes as f64 / executions.max(1) as f64;
    let (what, help) = match leaves_loop {
        _ if active < ONE_LANE && idle >= MAIN * part * slots => ("divergence", "have more lanes do what one does"),
        true => ("divergent loop", "give the lanes of a wave loops of like length"),
        false => ("divergence", "let the lanes of a wave take the same side"),
    };
    let text = if idle < MAIN * part * slots {
        format!("{what}: about {:.0} % of all lanes idle at {} tests", 100.0 * part, on_line.len())
    } else if with_empty && !leaves_loop {
        // Waves without a lane are in the average.
        let (waves, idle) = (100.0 * disagreed, 100.0 * part);
        format!("{what}: the lanes of {waves:.0} % of waves disagree here; about {idle:.0} % of all lanes idle")
    } else {
        let executed = 100.0 * executions as f64 / executed;
        format!("{what}: {executed:.0} % of instructions run with {active:.1} of {before:.1} lanes")
    };
    Some(lines.finding(FindingKind::Divergence, basis(is_counted), text, help, part))
}

fn basis(is_counted: bool) -> Basis {
    if is_counted { Basis::Counted } else { Basis::Predicted }
}

/// Waves that a uniform test, or one that no lane passes, sends away before they have done anything; or that stay,
/// without a lane for the kernel's accesses.
pub(super) fn idle_waves(subject: &Subject<'_>) -> Vec<Finding> {
    let Some(code) = subject.code else { return Vec::new() };
    let part = |idle: &IdleWaves| idle.waves as f64 / idle.of.max(1) as f64;
    let of_tests = |idle: IdleWaves| {
        let (idle_times, times) = (grouped(idle.waves), grouped(idle.of));
        let text = format!("idle waves: {idle_times} of {times} times no lane passes this test");
        (idle, text)
    };
    let ending = |idle: IdleWaves| {
        let text = format!("idle waves: {} of {} waves end here", grouped(idle.waves), grouped(idle.of));
        (idle, text)
    };
    let all = [code.leaving.map(ending), code.idle.map(of_tests)].into_iter().flatten();
    let Some((idle, mut text)) = all.max_by(|a, b| part(&a.0).total_cmp(&part(&b.0))) else { return Vec::new() };
    let part = part(&idle);
    if part < LEAVING {
        return Vec::new();
    }
    let each = subject.kernel.waves as f64 * (1.0 - part) / subject.kernel.dispatches.max(1) as f64;
    let board = subject.launches.boards.iter().find(|board| board.target == subject.kernel.target);
    let simds = board.and_then(|board| {
        Some(u64::from(board.compute_units?) * u64::from(processor(&subject.kernel.target)?.simds_per_cu()))
    });
    let weight = match simds {
        Some(simds) if each < simds as f64 => {
            text.push_str(&format!("; {each:.0} a launch work, on {simds} SIMDs"));
            1.0 - each / simds as f64
        }
        _ => LEAVING_WEIGHT * part,
    };
    let source = code.line(idle.address).cloned();
    let help = "launch waves only for work";
    vec![Finding { source, ..Finding::new(FindingKind::IdleWaves, Basis::Counted, text, help, weight) }]
}

/// Whether most of a kernel runs under a test of nothing but the work-item's place in its workgroup, which not all of
/// a wave pass: workgroups are larger than their work.
fn is_unfilled(guard: &LaneGuard, executed: f64) -> bool {
    guard.of_work_items
        && !guard.leaves_loop
        && guard.disagreed > 0.0
        && (FILLED_LEAST..1.0).contains(&guard.going_on)
        && guard.executions as f64 >= MOST_OF_KERNEL * executed
}

/// Work-items of workgroups that are larger than their work.
pub(super) fn unfilled_workgroups(subject: &Subject<'_>) -> Vec<Finding> {
    find_unfilled(subject).into_iter().collect()
}

fn find_unfilled(subject: &Subject<'_>) -> Option<Finding> {
    let code = subject.code?;
    let executed = code.executed()? as f64;
    let slots = executed * f64::from(subject.kernel.wave_size()?);
    let unfilled = code.guards.iter().filter(|guard| is_unfilled(guard, executed));
    let worst = unfilled.max_by(|a, b| a.idle.total_cmp(&b.idle))?;
    let weight = worst.idle / slots;
    if weight < IDLE {
        return None;
    }
    let sizes: BTreeSet<u32> = subject.kernel.launches.iter().map(|launch| launch.shape.workgroup_size()).collect();
    let work_items = match sizes.iter().collect::<Vec<_>>().as_slice() {
        [size] => format!("{:.0} of {size} work-items", worst.going_on * f64::from(**size)),
        _ => format!("{:.0} % of work-items", 100.0 * worst.going_on),
    };
    let text = format!("unfilled workgroups: {work_items} pass this test; {:.0} % of all lanes idle", 100.0 * weight);
    let help = "choose the workgroup's size by its work";
    let source = code.line(worst.address).cloned();
    Some(Finding { source, ..Finding::new(FindingKind::UnfilledWorkgroups, Basis::Counted, text, help, weight) })
}
