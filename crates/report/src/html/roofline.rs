//! Roofs of the boards that kernels were launched for: what bounds each kernel, and how near to it the timing model is.

use std::fmt::Write;

use maud::{Markup, html};

use super::labels::{Area, Labels, Placed};
use super::parts::{data_table, decimal, short_name};
use super::{Page, Shown};
use crate::roofline::{BoardRoofs, KernelRoofline, LeastTime, RateUnit, Roof};
use crate::table::grouped;
use wavetap_amdgpu::{Board, Target};

/// Kernels that are drawn: those with the largest shares.
const DRAWN: usize = 10;
/// Units of the drawing, and of what is around the plot.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 150.0;
const BOTTOM: f64 = 40.0;
const TOP: f64 = 12.0;
/// From the middle of a point to its edge.
const POINT: f64 = 5.0;
/// So near are points that have one label if they are of one kernel.
const NEAR: f64 = 24.0;
/// Memories whose roofs are drawn, with the shape of their points.
const LEVELS: [(&str, Mark); 3] = [("memory", Mark::Circle), ("l2", Mark::Square), ("l1", Mark::Diamond)];

/// The shape of a point.
#[derive(Clone, Copy)]
enum Mark {
    Circle,
    Square,
    Diamond,
}

impl Mark {
    fn name(self) -> &'static str {
        match self {
            Mark::Circle => "circle",
            Mark::Square => "square",
            Mark::Diamond => "diamond",
        }
    }
}

/// A kernel of which blocks were counted.
struct Bounded<'p> {
    /// Its number in the drawing and the table.
    number: usize,
    shown: &'p Shown<'p>,
    roofline: KernelRoofline,
}

/// A drawing and a table for each target with counted kernels; nothing where no blocks were counted.
pub(super) fn section(page: &Page<'_>) -> Markup {
    let mut boards: Vec<(BoardRoofs, Vec<Bounded<'_>>)> = Vec::new();
    for shown in &page.kernels {
        let Some(mix) = page.code_of(shown.kernel).and_then(|code| code.mix.as_ref()) else { continue };
        let name = mix.target.split(':').next().unwrap_or_default();
        let Some(target) = Target::by_name(name).and_then(|target| target.with_wave_size(mix.wave_size)) else {
            continue;
        };
        let place = boards.iter().position(|(roofs, _)| roofs.target == mix.target).or_else(|| {
            let (board, chosen) = board_of(page, &mix.target, target)?;
            boards.push((BoardRoofs::new(&mix.target, target, board, chosen, None), Vec::new()));
            Some(boards.len() - 1)
        });
        let Some(place) = place else { continue };
        let (roofs, kernels) = &mut boards[place];
        let roofline = KernelRoofline::new(mix, target, roofs, page.time_of(shown.kernel));
        kernels.push(Bounded { number: kernels.len() + 1, shown, roofline });
    }
    html! { @for (roofs, kernels) in &boards { (of_board(roofs, kernels)) } }
}

/// The board that the launch table is about, or else the usual one of the target.
pub(super) fn board_of(page: &Page<'_>, target_id: &str, target: Target) -> Option<(&'static Board, bool)> {
    let table = page.report.launch_table.as_ref();
    let named = table.and_then(|table| table.boards.iter().find(|board| board.target == target_id));
    match named.and_then(|named| Some((Board::by_name(named.board.as_deref()?)?, named.chosen))) {
        Some(found) => Some(found),
        None => Some((Board::of_target(target)?, false)),
    }
}

fn of_board(roofs: &BoardRoofs, kernels: &[Bounded<'_>]) -> Markup {
    let is_drawn = kernels.iter().any(|kernel| point(kernel, "memory").is_some());
    let head = html! {
        th.n { "No." } th { "Kernel" } th { "Nearest roof" } th.n { "Least µs" } th { "Next roof" } th.n { "Least µs" }
        th.n title="of the timing model" { "Modelled µs" } th.n title="least time of modelled time" { "Of the roof" }
        th.n { "FLOPs" }
    };
    let rows = html! {
        @for Bounded { number, shown, roofline } in kernels {
            @let (first, second) = roofline.bound();
            @let of_roof = first.zip(roofline.modelled_microseconds).map(|(least, all)| least.microseconds / all);
            tr {
                td.n { (number) }
                td.name { a href=(format!("#{}", shown.id)) title=(roofline.demangled) { (short_name(shown)) } }
                td { (resource(first)) }
                td.n { (microseconds(first)) }
                td { (resource(second)) }
                td.n { (microseconds(second)) }
                td.n { (decimal(roofline.modelled_microseconds)) }
                td.n { (of_roof.map(|share| format!("{:.0} %", 100.0 * share)).unwrap_or_default()) }
                td.n { @if roofline.at_least { "≥ " } (grouped(roofline.flops)) }
            }
        }
    };
    html! {
        details.part open {
            summary { h3 { "Roofline: " (roofs.title) } }
            p.facts {
                (roofs.target) " on " (roofs.board) ": " (roofs.compute_units) " compute units at " (roofs.clock_mhz)
                " MHz" @if !roofs.chosen { ", the usual board of the target" }
                ". A least time is counted or modelled work over a peak: nothing runs faster. "
                @if !is_drawn { "Points need modelled time (--timing), and floating-point operations." }
            }
            @if is_drawn { (drawing(roofs, kernels)) }
            (data_table("What bounds each kernel", "roofline", &head, &rows))
        }
    }
}

fn resource(time: Option<&LeastTime>) -> String {
    time.map(|time| format!("{}, {}", time.resource.replace('_', " "), time.basis.word())).unwrap_or_default()
}

fn microseconds(time: Option<&LeastTime>) -> String {
    time.map(|time| format!("{:.2}", time.microseconds)).unwrap_or_default()
}

/// Operations for each byte of a memory, and 10⁹ operations a second in the timing model.
fn point(kernel: &Bounded<'_>, level: &str) -> Option<(f64, f64)> {
    let roofline = &kernel.roofline;
    let level = roofline.levels.iter().find(|of| of.level == level)?;
    let modelled = roofline.modelled_microseconds.filter(|time| *time > 0.0)?;
    (roofline.flops > 0).then(|| (level.intensity, roofline.flops as f64 / modelled / 1e3))
}

/// Where a value is on an axis of powers of ten.
struct Axis {
    /// Powers.
    least: i32,
    most: i32,
    /// Units of the drawing.
    begin: f64,
    end: f64,
}

impl Axis {
    /// One that has all these values.
    fn of(values: impl Iterator<Item = f64>, begin: f64, end: f64) -> Axis {
        let (least, most) = values
            .map(f64::log10)
            .fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(value), most.max(value)));
        let least = least.floor() as i32;
        Axis { least, most: (most.ceil() as i32).max(least + 1), begin, end }
    }

    fn at(&self, value: f64) -> f64 {
        let share = (value.log10() - f64::from(self.least)) / f64::from(self.most - self.least);
        self.begin + share * (self.end - self.begin)
    }

    fn powers(&self) -> impl Iterator<Item = (i32, f64)> + '_ {
        (self.least..=self.most).map(|power| (power, self.at(10_f64.powi(power))))
    }
}

fn drawing(roofs: &BoardRoofs, kernels: &[Bounded<'_>]) -> Markup {
    let drawn = &kernels[..kernels.len().min(DRAWN)];
    let points: Vec<(usize, Mark, &Bounded<'_>, &str, f64, f64)> = drawn
        .iter()
        .flat_map(|kernel| {
            let of_level = move |(level, mark): (&'static str, Mark)| {
                let (x, y) = point(kernel, level)?;
                Some((kernel.number, mark, kernel, level, x, y))
            };
            LEVELS.into_iter().filter_map(of_level)
        })
        .collect();
    let is_used = |roof: &&Roof| {
        let uses = |kernel: &Bounded<'_>| kernel.roofline.times.iter().any(|time| time.resource == roof.resource);
        roof.unit == RateUnit::Operations && (roof.resource == "vector_f32" || drawn.iter().any(uses))
    };
    let flat: Vec<&Roof> = roofs.roofs.iter().filter(is_used).collect();
    let slanted: Vec<&Roof> =
        roofs.roofs.iter().filter(|roof| LEVELS.iter().any(|(level, _)| roof.resource == *level)).collect();
    let highest = flat.iter().map(|roof| roof.peak).fold(1.0, f64::max);
    // From below the lowest point to where the slowest memory meets the highest roof.
    let ridges = slanted.iter().map(|roof| highest / roof.peak * 2.0);
    let x = Axis::of(points.iter().map(|point| point.4).chain(ridges), LEFT, WIDTH - RIGHT);
    let lowest = points.iter().map(|point| point.5);
    let y = Axis::of(lowest.chain([highest]), HEIGHT - BOTTOM, TOP);
    let (from, to) = (10_f64.powi(x.least), 10_f64.powi(x.most));
    let floor = 10_f64.powi(y.least);
    let places: Vec<(f64, f64)> = points.iter().map(|point| (x.at(point.4), y.at(point.5))).collect();
    let mut labels = Labels::new(Area { left: LEFT, top: 0.0, right: WIDTH, bottom: HEIGHT - BOTTOM });
    places.iter().for_each(|(x, y)| labels.keep_free(Area::around(*x, *y, POINT)));
    let of_flat: Vec<(String, Placed)> = flat
        .iter()
        .map(|roof| {
            let name = roof.resource.replace('_', " ");
            let placed = labels.in_column(&name, x.end + 6.0, y.at(roof.peak) + 4.0);
            (name, placed)
        })
        .collect();
    let of_slanted: Vec<Placed> = slanted
        .iter()
        .map(|roof| {
            let begin = from.max(floor / roof.peak);
            labels.in_column(&roof.resource, x.at(begin) + 6.0, y.at(begin * roof.peak) - 6.0)
        })
        .collect();
    let is_near = |(x, y): (f64, f64), (other_x, other_y): (f64, f64)| (x - other_x).hypot(y - other_y) < NEAR;
    // Points of a kernel that are near each other have one label.
    let has_label =
        |at: usize| !(0..at).any(|other| points[other].0 == points[at].0 && is_near(places[other], places[at]));
    let of_points: Vec<Option<Placed>> = (0..points.len())
        .map(|at| has_label(at).then(|| labels.at_point(&points[at].0.to_string(), places[at].0, places[at].1)))
        .collect();
    html! {
        div.scroll {
        svg.roofline viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img"
            aria-label="Operations a second over operations for each byte, under the roofs of the board" {
            @for (power, at) in x.powers() {
                line.grid x1=(unit(at)) x2=(unit(at)) y1=(unit(y.begin)) y2=(unit(y.end)) {}
                text x=(unit(at)) y=(unit(HEIGHT - BOTTOM + 14.0)) text-anchor="middle" { (ten_to(power)) }
            }
            @for (power, at) in y.powers() {
                line.grid x1=(unit(x.begin)) x2=(unit(x.end)) y1=(unit(at)) y2=(unit(at)) {}
                text x=(unit(LEFT - 6.0)) y=(unit(at + 4.0)) text-anchor="end" { (ten_to(power)) }
            }
            text x=(unit((x.begin + x.end) / 2.0)) y=(unit(HEIGHT - 8.0)) text-anchor="middle" {
                "floating-point operations for each byte"
            }
            text x="12" y=(unit((y.begin + y.end) / 2.0)) text-anchor="middle"
                transform=(format!("rotate(-90 12 {:.1})", (y.begin + y.end) / 2.0)) { "GFLOP/s" }
            @for (roof, label) in slanted.iter().zip(&of_slanted) {
                // From the left edge or the floor up to the highest roof.
                @let begin = from.max(floor / roof.peak);
                @let end = to.min(highest / roof.peak);
                line.roof x1=(unit(x.at(begin))) y1=(unit(y.at(begin * roof.peak)))
                    x2=(unit(x.at(end))) y2=(unit(y.at(end * roof.peak))) {
                    title { (roof.resource) ": " (format!("{:.0}", roof.peak)) " GB/s" }
                }
                @if let Some(usual) = roof.usual {
                    line.usual x1=(unit(x.at(from.max(floor / usual)))) y1=(unit(y.at(from.max(floor / usual) * usual)))
                        x2=(unit(x.at(end))) y2=(unit(y.at(end * usual))) {
                        title { (roof.resource) ", usually reached: " (format!("{usual:.0}")) " GB/s" }
                    }
                }
                text.label x=(unit(label.x)) y=(unit(label.y)) { (roof.resource) }
            }
            @for (roof, (name, label)) in flat.iter().zip(&of_flat) {
                @let at = unit(y.at(roof.peak));
                @let begin = slanted.iter().map(|memory| roof.peak / memory.peak).fold(to, f64::min).max(from);
                line.roof x1=(unit(x.at(begin))) x2=(unit(x.end)) y1=(at) y2=(at) {
                    title { (name) ": " (format!("{:.0}", roof.peak)) " GFLOP/s" }
                }
                line.leader x1=(unit(x.end)) x2=(unit(label.x - 1.0)) y1=(at) y2=(unit(label.y - 4.0)) {}
                text.label x=(unit(label.x)) y=(unit(label.y)) { (name) }
            }
            @for (((number, mark, kernel, level, intensity, rate), (px, py)), label) in
                points.iter().zip(&places).zip(&of_points)
            {
                @if let Some(label) = label.filter(|label| label.is_far) {
                    line.leader x1=(unit(*px)) y1=(unit(*py)) x2=(unit(label.x + 3.0)) y2=(unit(label.y - 4.0)) {}
                }
                a href=(format!("#{}", kernel.shown.id)) {
                    path d=(outline(*mark, *px, *py)) {
                        title {
                            (number) ": " (short_name(kernel.shown)) ", " (level) ": " (format!("{intensity:.3}"))
                            " operations for each byte, " (format!("{rate:.1}")) " GFLOP/s, modelled"
                        }
                    }
                    @if let Some(label) = label { text.label x=(unit(label.x)) y=(unit(label.y)) { (number) } }
                }
            }
        }
        }
        p.facts {
            "Points have the numbers of the table"
            @for (level, mark) in LEVELS { "; " (mark.name()) ": bytes of " (level) }
            " (modelled). Dashed: what micro-benchmarks reach, where that is published."
        }
    }
}

fn unit(value: f64) -> String {
    format!("{value:.1}")
}

/// `0.01`, `1`, `1000`, `10⁶`.
fn ten_to(power: i32) -> String {
    match power {
        ..0 => format!("{:.*}", power.unsigned_abs() as usize, 10_f64.powi(power)),
        0..=5 => format!("{:.0}", 10_f64.powi(power)),
        _ => format!("1e{power}"),
    }
}

fn outline(mark: Mark, x: f64, y: f64) -> String {
    let mut path = String::new();
    // To a string: it cannot fail.
    let _ = match mark {
        Mark::Circle => write!(path, "M{:.1} {y:.1}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", x - 4.0),
        Mark::Square => write!(path, "M{:.1} {:.1}h7v7h-7z", x - 3.5, y - 3.5),
        Mark::Diamond => write!(path, "M{x:.1} {:.1}l5 5l-5 5l-5 -5z", y - 5.0),
    };
    path
}
