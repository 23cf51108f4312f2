//! Lanes and waves that have nothing to do.

use super::Subject;
use super::lines::Lines;
use crate::Basis;
use crate::code::LaneGuard;
use crate::launches::processor;
use crate::summary::data::{Finding, FindingKind};
use crate::words::grouped;

/// Branches and loops because of which this part of a kernel's lanes is idle are a finding.
const IDLE: f64 = 0.05;
/// Of a line with several tests the worst one is shown if it has this part of what all have.
const MAIN: f64 = 0.5;
/// Where fewer lanes run on average, it is one that does.
const ONE_LANE: f64 = 1.05;
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
    let parts = code.guards.iter().map(|guard| (code.line(guard.address).cloned(), guard.idle / slots));
    let lines = Lines::add_up(parts);
    let sum = lines.sum();
    if sum < IDLE {
        return None;
    }
    let Some((main, part)) = lines.main() else {
        let text = format!("divergence{}: about {:.0} % of all lanes idle", lines.places(), 100.0 * sum);
        let help = "let the lanes of a wave take the same side";
        let all_counted = code.guards.iter().all(|guard| guard.is_counted);
        return Some(lines.finding(FindingKind::Divergence, basis(all_counted), text, help, sum));
    };
    if part < IDLE {
        return None;
    }
    // Of several on the line the one that most is because of.
    let on_line: Vec<&LaneGuard> = code.guards.iter().filter(|guard| code.line(guard.address) == main).collect();
    let worst = on_line.iter().max_by(|a, b| a.idle.total_cmp(&b.idle))?;
    let LaneGuard { executions, lanes, is_counted, before, leaves_loop, idle, .. } = **worst;
    let active = lanes as f64 / executions.max(1) as f64;
    let (what, help) = match leaves_loop {
        _ if active < ONE_LANE && idle >= MAIN * part * slots => ("divergence", "have more lanes do what one does"),
        true => ("divergent loop", "give the lanes of a wave loops of like length"),
        false => ("divergence", "let the lanes of a wave take the same side"),
    };
    let text = if idle < MAIN * part * slots {
        format!("{what}: about {:.0} % of all lanes idle at {} tests", 100.0 * part, on_line.len())
    } else {
        let executed = 100.0 * executions as f64 / executed;
        format!("{what}: {executed:.0} % of instructions run with {active:.1} of {before:.1} lanes")
    };
    Some(lines.finding(FindingKind::Divergence, basis(is_counted), text, help, part))
}

fn basis(is_counted: bool) -> Basis {
    if is_counted { Basis::Counted } else { Basis::Predicted }
}

/// Waves that a uniform test, or one that no lane passes, sends away before they have done anything.
pub(super) fn idle_waves(subject: &Subject<'_>) -> Vec<Finding> {
    let Some((code, leaving)) = subject.code.and_then(|code| Some((code, code.leaving?))) else { return Vec::new() };
    let part = leaving.waves as f64 / leaving.of.max(1) as f64;
    if part < LEAVING {
        return Vec::new();
    }
    let each = (leaving.of - leaving.waves.min(leaving.of)) as f64 / subject.kernel.dispatches.max(1) as f64;
    let board = subject.launches.boards.iter().find(|board| board.target == subject.kernel.target);
    let simds = board.and_then(|board| {
        Some(u64::from(board.compute_units?) * u64::from(processor(&subject.kernel.target)?.simds_per_cu()))
    });
    let (few, weight) = match simds {
        Some(simds) if each < simds as f64 => {
            (format!("; {each:.0} a launch work, on {simds} SIMDs"), 1.0 - each / simds as f64)
        }
        _ => (String::new(), LEAVING_WEIGHT * part),
    };
    vec![Finding {
        kind: FindingKind::IdleWaves,
        text: format!("idle waves: {} of {} waves end here{few}", grouped(leaving.waves), grouped(leaving.of)),
        basis: Basis::Counted,
        help: "launch waves only for work".to_owned(),
        source: code.line(leaving.address).cloned(),
        also: Vec::new(),
        weight,
    }]
}
