//! What bounds a kernel, in one line, with what comes next.
//!
//! With modelled time it follows from how busy the parts of the modelled machine were ([`modelled`]), without from what
//! was counted and the rates of the machine ([`estimated`]). The order of the questions is that in which an answer
//! makes the later ones pointless: launches that cost more than what they run, waves without work, a part of the
//! machine that is busy, a machine that is mostly empty, and only then what waves wait for.

mod estimated;
mod functions;
mod modelled;

use super::data::{Bound, Limit, LimitPart};
use super::subject::Subject;
use crate::Basis;
use crate::words::counted;
pub(super) use estimated::cycles;
use wavetap_amdgpu::Board;
use wavetap_profile::time::KernelTime;

/// What starting a launch takes at least after another one, in microseconds: 2.4 to 2.7 fit measured times of short
/// kernels on an MI300A; with a host that waits for each it is more.
pub(super) const LAUNCH_MICROSECONDS: f64 = 2.5;
/// Launches bound a kernel if starting them takes this part of the time or more.
const LAUNCHES: f64 = 0.5;
/// They are next from this part on.
const LAUNCHES_NEXT: f64 = 0.2;
/// So many waves without work bound a kernel.
const IDLE_WAVES: f64 = 0.8;
/// A part of the machine that is busy for this part of the time bounds a kernel.
pub(super) const BUSY: f64 = 0.6;
/// One that is busy for this part is next.
const BUSY_NEXT: f64 = 0.2;
/// A machine of which no more SIMDs than this part have a wave is mostly empty.
const EMPTY: f64 = 0.5;

/// What bounds a kernel, if anything is known of it.
pub(super) fn bound(subject: &Subject<'_>) -> Option<Bound> {
    match subject.time {
        Some(time) => modelled::bound(subject, time),
        None => estimated::bound(subject),
    }
}

/// How much of its time a kernel needs at least whatever is mended, where nothing of these is.
pub(super) fn least(subject: &Subject<'_>, mended: &[Limit]) -> Option<f64> {
    subject.time.map(|time| modelled::least(time, mended))
}

/// Whether memory or a cache of it is busy for so much of the time that it bounds a kernel.
pub(super) fn is_memory_busy(time: &KernelTime) -> bool {
    [Limit::Memory, Limit::Mall, Limit::L2, Limit::L1].iter().any(|limit| modelled::busy_with(time, *limit) >= BUSY)
}

/// Which part of the time starting the launches of a kernel takes, if there are several.
pub(super) fn part_of_launches(subject: &Subject<'_>) -> f64 {
    let known = || {
        let time = subject.time?;
        let count = time.dispatches.len();
        let all = board(subject)?.microseconds(time.modelled_cycles as f64);
        let starting = count as f64 * LAUNCH_MICROSECONDS;
        (count > 1).then(|| starting / (starting + all))
    };
    known().unwrap_or(0.0)
}

/// Puts the first of the parts into a line, and the second after it.
fn in_order(parts: Vec<LimitPart>, basis: Basis) -> Option<Bound> {
    let mut parts = parts.into_iter();
    let first = parts.next()?;
    let next = parts.find(|next| next.limit != first.limit);
    Some(Bound { first, next, basis })
}

/// Waves without work, if they are most of a kernel.
fn idle_waves(subject: &Subject<'_>) -> Option<LimitPart> {
    let code = subject.code?;
    let all = [code.leaving, code.idle].into_iter().flatten();
    let part = |waves: &crate::code::IdleWaves| waves.waves as f64 / waves.of.max(1) as f64;
    let most = all.max_by(|a, b| part(a).total_cmp(&part(b)))?;
    (part(&most) >= IDLE_WAVES).then(|| LimitPart {
        limit: Limit::IdleWaves,
        text: format!("waves without work: {:.0} % of them", 100.0 * part(&most)),
        part: part(&most),
    })
}

/// Workgroups and waves of a launch on average, if that is known of all.
fn average_launch(subject: &Subject<'_>) -> Option<(f64, f64)> {
    let kernel = subject.kernel;
    let of_kernel = subject.launches.rows.iter().filter(|row| row.kernel.is(&kernel.object, &kernel.name));
    let (mut groups, mut waves, mut launches) = (0.0, 0.0, 0.0);
    for row in of_kernel {
        let count = row.shape.dispatches as f64;
        groups += row.workgroups? as f64 * count;
        waves += row.waves? as f64 * count;
        launches += count;
    }
    (launches > 0.0).then(|| (groups / launches, waves / launches))
}

/// `1 workgroup, 4 waves`.
fn launched(groups: f64, waves: f64) -> String {
    let rounded = |number: f64| number.round() as u64;
    let groups = counted(rounded(groups), "workgroup", "workgroups");
    format!("{groups}, {}", counted(rounded(waves), "wave", "waves"))
}

/// The board that launches of the kernel are about.
pub(super) fn board(subject: &Subject<'_>) -> Option<&'static Board> {
    let of_target = |board: &&crate::launches::BoardOfTarget| board.target == subject.kernel.target;
    let board = subject.launches.boards.iter().find(of_target)?;
    Board::by_name(board.board.as_deref()?)
}
