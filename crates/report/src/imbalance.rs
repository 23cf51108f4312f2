//! How evenly ranks or hosts share what kernels did, as text.

use wavetap_explain::Kernel;
use wavetap_explain::imbalance::{Imbalance, KernelImbalance, Spread, Uneven};
use wavetap_explain::words::number;
use wavetap_profile::file::Dimension;

use crate::style::{Style, counted, place};
use crate::table::{Align, Table, grouped};
use crate::variants::labelled;

/// Kernels shown as text. JSON has all.
const KERNELS: usize = 24;
/// Numbers of sites shown as text: of all kernels, those of which one rank or host has most beyond the mean.
const SITES: usize = 16;

/// A spread of what the emulator saw, inserted code included.
const INSTRUCTIONS: &str = "instructions";

/// What a kernel is called.
type Name<'a> = dyn Fn(&KernelImbalance) -> String + 'a;

/// The lines of the sections; none where nothing is kept apart. `kernels` tell kernels of one name apart.
pub(crate) fn lines(all: &[Imbalance], kernels: &[Kernel], style: Style, lines: &mut Vec<String>) {
    let name = |kernel: &KernelImbalance| {
        let is_it = |other: &&Kernel| (&other.name, &other.object) == (&kernel.name, &kernel.object);
        let variant = kernels.iter().find(is_it).and_then(|kernel| kernel.variant.as_deref());
        labelled(&style.name(&kernel.demangled), variant)
    };
    for imbalance in all {
        lines.push(String::new());
        let one = one(imbalance.by);
        let heading = format!("imbalance of {}", members(imbalance));
        if imbalance.count < 2 {
            lines.push(style.bold(&format!("{heading}: nothing to compare")));
            continue;
        }
        lines.push(style.bold(&heading));
        kernel_lines(imbalance, one, &name, style, lines);
        site_lines(imbalance, one, &name, style, lines);
    }
}

/// What shares the work, in the singular.
pub(crate) fn one(by: Dimension) -> &'static str {
    match by {
        Dimension::Rank => "rank",
        Dimension::Host => "host",
    }
}

/// `2 ranks`.
pub(crate) fn members(imbalance: &Imbalance) -> String {
    let one = one(imbalance.by);
    counted(imbalance.count, one, &format!("{one}s"))
}

/// The columns of a spread after what it is of.
fn columns<'a>(first: &[(&'a str, Align)], heads: &'a [String; 2]) -> Vec<(&'a str, Align)> {
    let [min_at, max_at] = heads;
    let spread = [
        ("of", Align::Left),
        ("min", Align::Right),
        (min_at, Align::Right),
        ("mean", Align::Right),
        ("max", Align::Right),
        (max_at, Align::Right),
        ("max/mean", Align::Right),
    ];
    first.iter().copied().chain(spread).collect()
}

/// A spread in the order of its columns.
pub(crate) fn cells(spread: &Spread) -> [String; 7] {
    [
        spread.what.clone(),
        grouped(spread.min),
        spread.min_at.clone(),
        number(spread.mean),
        grouped(spread.max),
        spread.max_at.clone(),
        spread.imbalance.map(|imbalance| format!("{imbalance:.2}")).unwrap_or_default(),
    ]
}

/// Numbers of the whole kernel, those with the most waves beyond the mean first.
fn kernel_lines(imbalance: &Imbalance, one: &str, of: &Name<'_>, style: Style, lines: &mut Vec<String>) {
    let heads = [format!("{one} of min"), format!("{one} of max")];
    let mut table = Table::new(&columns(&[("kernel", Align::Name)], &heads));
    let kernels = imbalance.by_excess();
    for kernel in kernels.iter().take(KERNELS) {
        for (at, spread) in kernel.totals.iter().enumerate() {
            let name = if at == 0 { of(kernel) } else { String::new() };
            table.row(std::iter::once(name).chain(cells(spread)));
        }
    }
    lines.extend(table.lines(2, style));
    let is_work = |spread: &Spread| spread.what == INSTRUCTIONS;
    if kernels.iter().take(KERNELS).any(|kernel| kernel.totals.iter().any(is_work)) {
        lines
            .push(format!("  {INSTRUCTIONS} and bytes are those of the run: what was inserted to count is among them"));
    }
    if kernels.len() > KERNELS {
        lines.push(format!("  and {} more kernels: --format json has all", kernels.len() - KERNELS));
    }
}

/// Numbers of sites that are not the same everywhere.
fn site_lines(imbalance: &Imbalance, one: &str, of: &Name<'_>, style: Style, lines: &mut Vec<String>) {
    let uneven = imbalance.uneven();
    if uneven.is_empty() {
        lines.push("  every site has the same everywhere".to_owned());
        return;
    }
    let heads = [format!("{one} of min"), format!("{one} of max")];
    let first = [("kernel", Align::Name), ("address", Align::Left), ("source", Align::Place)];
    let mut table = Table::new(&columns(&first, &heads));
    for Uneven { kernel, site, spread } in uneven.iter().take(SITES) {
        let source = place(site.source.as_ref());
        let names = [of(kernel), format!("{:#x}", site.address), source];
        table.row(names.into_iter().chain(cells(spread)));
    }
    lines.push("  sites that are not the same everywhere, most beyond the mean first".to_owned());
    lines.extend(table.lines(2, style));
    if uneven.len() > SITES {
        lines.push(format!("  and {} more: --format json has all", uneven.len() - SITES));
    }
}
