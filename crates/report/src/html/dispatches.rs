//! What each launch of a kernel cost in the timing model.

use std::collections::HashMap;

use maud::{Markup, html};

use super::parts::{bar, data_table, number, share_text};
use super::{Page, Shown, roofline};
use crate::launches::LaunchRow;
use crate::style::counted;
use crate::table::grouped;
use wavetap_amdgpu::{Board, Target};
use wavetap_profile::host::{HostOperation, LaunchSize};
use wavetap_profile::time::DispatchTime;

/// Dispatches that are listed one by one, if there are no more.
const LISTED: usize = 48;
/// Of more, so many: those with most cycles.
const COSTLIEST: usize = 16;

/// A dispatch, and how it was launched, if that is known.
#[derive(Debug, Clone)]
struct Dispatch<'p> {
    time: DispatchTime,
    row: Option<&'p LaunchRow>,
}

/// The dispatches of a kernel: one by one, or the kinds of launches and the costliest of them. Nothing where no time
/// was modelled.
pub(super) fn section(page: &Page<'_>, shown: &Shown<'_>) -> Markup {
    let Some(time) = page.time_of(shown.kernel).filter(|time| !time.dispatches.is_empty()) else {
        return Markup::default();
    };
    let mut all = dispatches(page, shown, &time.dispatches);
    let count = all.len();
    let board = board(page, shown);
    let cycles = all.iter().fold(0_u64, |sum, each| sum.saturating_add(each.time.modelled_cycles));
    let kinds = (count > LISTED).then(|| kinds(&all, cycles));
    if count > LISTED {
        all.sort_by_key(|each| (std::cmp::Reverse(each.time.modelled_cycles), each.time.dispatch));
        all.truncate(COSTLIEST);
    }
    let in_regions = all.iter().any(|each| each.time.region.is_some());
    let head = html! {
        th.n title="its number among all dispatches of the run" { "Dispatch" }
        @if in_regions { th title="the ranges of the program that it was launched in" { "Region" } }
        th { "Grid" } th { "Workgroup" }
        th.n { "Dynamic LDS" } th.n { "Waves" } th.n { "Modelled cycles" }
        @if board.is_some() { th.n title="modelled cycles by the clock of the board" { "Modelled µs" } }
        th.n { "Of the kernel" }
    };
    let rows = html! {
        @for Dispatch { time, row } in &all {
            @let share = time.modelled_cycles as f64 / cycles.max(1) as f64;
            tr {
                td.n { (time.dispatch) }
                @if in_regions { td { (time.region.as_deref().unwrap_or_default()) } }
                (shape_cells(*row))
                td.n { (grouped(time.modelled_cycles)) }
                @if let Some(board) = board { td.n { (microseconds(time.modelled_cycles, board)) } }
                td.n data-v=(share) { (bar(share)) (share_text(share)) }
            }
        }
    };
    html! {
        details.part open[count <= LISTED && count > 1] {
            summary {
                h3 { "Launches" }
                span.facts {
                    (counted(count as u64, "dispatch", "dispatches")) ", " (grouped(cycles)) " modelled cycles"
                }
            }
            @if let Some(kinds) = kinds {
                (kinds)
                p.facts { "The " (COSTLIEST) " dispatches with most modelled cycles, of " (grouped(count as u64)) ":" }
            }
            (data_table("Dispatches of the kernel", "dispatches", &head, &rows))
        }
    }
}

/// Dispatches by the way in which they were launched.
fn kinds(all: &[Dispatch<'_>], cycles: u64) -> Markup {
    let size = |each: &Dispatch<'_>| each.row.and_then(|row| LaunchSize::of(&row.shape));
    let mut kinds: Vec<(Vec<&Dispatch<'_>>, u64)> = Vec::new();
    let mut places: HashMap<Option<LaunchSize>, usize> = HashMap::new();
    for each in all {
        let place = *places.entry(size(each)).or_insert(kinds.len());
        if place == kinds.len() {
            kinds.push((Vec::new(), 0));
        }
        let (of, sum) = &mut kinds[place];
        of.push(each);
        *sum = sum.saturating_add(each.time.modelled_cycles);
    }
    kinds.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
    let head = html! {
        th.n { "Dispatches" } th { "Grid" } th { "Workgroup" } th.n { "Dynamic LDS" } th.n { "Waves" }
        th.n { "Modelled cycles" } th.n { "Least" } th.n { "Mean" } th.n { "Most" } th.n { "Of the kernel" }
    };
    let rows = html! {
        @for (of, sum) in &kinds {
            @let each = of.iter().map(|each| each.time.modelled_cycles);
            @let share = *sum as f64 / cycles.max(1) as f64;
            tr {
                td.n { (grouped(of.len() as u64)) }
                (shape_cells(of.first().and_then(|first| first.row)))
                td.n { (grouped(*sum)) }
                td.n { (number(each.clone().min())) } td.n { (grouped(*sum / of.len().max(1) as u64)) }
                td.n { (number(each.max())) }
                td.n data-v=(share) { (bar(share)) (share_text(share)) }
            }
        }
    };
    data_table("Kinds of launches of the kernel", "kinds", &head, &rows)
}

/// Grid, workgroup, dynamic LDS and waves.
fn shape_cells(row: Option<&LaunchRow>) -> Markup {
    html! {
        @match row {
            Some(row) => {
                td { (row.shape.grid.map_or_else(|| "several".to_owned(), LaunchRow::size)) }
                td { (LaunchRow::size(row.shape.workgroup)) }
                td.n { (grouped(row.shape.dynamic_lds.into())) }
                td.n { (number(row.waves)) }
            },
            None => { td { "not known" } td {} td {} td {} },
        }
    }
}

/// The dispatches with their launches: of a kernel that is launched in one way all have it; of others the order of the
/// launches says which.
fn dispatches<'p>(page: &'p Page<'_>, shown: &Shown<'_>, times: &[DispatchTime]) -> Vec<Dispatch<'p>> {
    let kernel = shown.kernel;
    let table = page.report.launch_table.as_ref();
    let rows: Vec<&LaunchRow> = table
        .map(|table| table.rows.iter().filter(|row| row.kernel.is(&kernel.object, &kernel.name)).collect())
        .unwrap_or_default();
    let launched: u64 = rows.iter().map(|row| row.shape.dispatches).sum();
    let mut times = times.to_vec();
    times.sort_by_key(|time| time.dispatch);
    // Of another number of launches, the run that was counted was not the one whose time this is.
    let is_same_run = launched == times.len() as u64;
    let rows_in_order = match rows.as_slice() {
        _ if !is_same_run => Vec::new(),
        [row] => vec![*row; times.len()],
        _ => in_order(page, shown, &rows),
    };
    let row = |at: usize| rows_in_order.get(at).copied();
    times.into_iter().enumerate().map(|(at, time)| Dispatch { time, row: row(at) }).collect()
}

/// The rows of a kernel's launches in the order in which the host launched it, as far as that is recorded: up to a
/// launch of unknown size. None if another kernel of the same name was launched as well.
fn in_order<'p>(page: &'p Page<'_>, shown: &Shown<'_>, rows: &[&'p LaunchRow]) -> Vec<&'p LaunchRow> {
    let name = &shown.kernel.name;
    let is_alone = page.report.kernels.iter().filter(|other| other.name == *name).count() == 1;
    let Some(table) = page.report.launch_table.as_ref().filter(|_| is_alone) else { return Vec::new() };
    let mut order = Vec::new();
    let is_launch = |operation| operation == HostOperation::Launch;
    for step in table.host.order.iter().filter(|step| is_launch(step.operation) && step.kernel.as_ref() == Some(name)) {
        let found = rows.iter().find(|row| step.size.is_some() && LaunchSize::of(&row.shape) == step.size);
        let Some(row) = found else { break };
        order.extend(std::iter::repeat_n(*row, usize::try_from(step.count).unwrap_or(0).min(MOST)));
    }
    order
}

/// More dispatches in a row have no launches of their own: memory for them would be wasted.
const MOST: usize = 1 << 20;

/// The board whose clock a kernel's cycles are of.
fn board(page: &Page<'_>, shown: &Shown<'_>) -> Option<&'static Board> {
    let name = shown.kernel.target.split(':').next().unwrap_or_default();
    let target: Target = Target::by_name(name)?;
    roofline::board_of(page, &shown.kernel.target, target).map(|(board, _)| board)
}

fn microseconds(cycles: u64, board: &Board) -> String {
    format!("{:.2}", cycles as f64 / f64::from(board.clock_mhz))
}
