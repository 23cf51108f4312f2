//! The differences of two profiles as text.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{Diff, KernelDiff, Metric, SiteDiff, SiteName};
use crate::style::{DID_NOT_END, Style, counted, place};
use crate::table::{Align, Table, grouped, push_table};
use wavetap_explain::words::number;

/// Sites shown for each kernel; JSON has all of them.
const SHOWN: usize = 20;

/// Every kernel that differs, with the sites that do.
#[must_use]
pub fn render(diff: &Diff, style: Style) -> String {
    let mut lines = Vec::new();
    if !diff.complete {
        lines.push(style.warn(DID_NOT_END));
    }
    for kernel in diff.kernels.iter().filter(|kernel| !kernel.is_same()) {
        of_kernel(kernel, style, &mut lines);
        lines.push(String::new());
    }
    for (names, which) in [(&diff.only_old, "old"), (&diff.only_new, "new")] {
        lines.extend(names.iter().map(|name| format!("{}  only in the {which} profile", style.name(name))));
    }
    let same = diff.kernels.iter().filter(|kernel| kernel.is_same()).count() as u64;
    if diff.same {
        lines.push(format!("no difference: {}", counted(same, "kernel", "kernels")));
    } else if same > 0 {
        lines.push(format!("{} the same in both profiles", counted(same, "kernel is", "kernels are")));
    }
    let moved: u64 = diff.kernels.iter().map(|kernel| kernel.moved).sum();
    if moved > 0 {
        lines.push(format!("{} on other lines", counted(moved, "site is", "sites are")));
    }
    lines.extend(diff.failed.iter().map(|failed| style.bad(&format!("condition holds: {failed}"))));
    lines.push(String::new());
    lines.join("\n")
}

fn of_kernel(kernel: &KernelDiff, style: Style, lines: &mut Vec<String>) {
    lines.push(format!("{}  {}", style.bold(&style.name(&kernel.demangled)), style.dim(&kernel.target)));
    let columns = [("", Align::Words), ("old", Align::Right), ("new", Align::Right), ("change", Align::Right)];
    let mut table = Table::new(&columns);
    for (name, old, new) in numbers(kernel) {
        if old != new {
            let value = |value: Option<f64>| value.map_or_else(|| "not counted".to_owned(), number);
            let change = old.zip(new).map(|(old, new)| signed(new - old));
            table.row([name.to_owned(), value(old), value(new), change.unwrap_or_default()]);
        }
    }
    push_table("numbers", &table, style, lines);
    let mut changed: Vec<&SiteDiff> = kernel.changed.iter().collect();
    changed.sort_by_key(|change| Reverse(change.size()));
    let columns = [("line", Align::Place), ("site", Align::Name), ("change", Align::Words)];
    let mut table = Table::new(&columns);
    for change in changed.iter().take(SHOWN) {
        let fields = change.old.iter().filter_map(|(field, old)| {
            let new = change.new.get(field).filter(|new| *new != old)?;
            Some(format!("{field} {} → {}", grouped(*old), grouped(*new)))
        });
        table.row([lines_of(change), site_name(&change.site), fields.collect::<Vec<_>>().join(", ")]);
    }
    push_table("sites", &table, style, lines);
    if changed.len() > SHOWN {
        lines.push(format!("  and {} more: --format json has all", changed.len() - SHOWN));
    }
    for (sites, which) in [(&kernel.only_old, "old"), (&kernel.only_new, "new")] {
        let mut table = Table::new(&[("line", Align::Place), ("site", Align::Name)]);
        sites.iter().take(SHOWN).for_each(|site| table.row([place(site.source.as_ref()), site_name(site)]));
        push_table(&format!("only in the {which} profile: {}", sites.len()), &table, style, lines);
    }
}

/// The numbers of a kernel with their names, old and new.
pub(crate) fn numbers(kernel: &KernelDiff) -> impl Iterator<Item = (&str, Option<f64>, Option<f64>)> {
    let (old, new) = (&kernel.old, &kernel.new);
    let metrics = Metric::ALL.into_iter().map(|metric| (metric_name(metric), metric.of(old), metric.of(new)));
    let names: BTreeSet<&String> = old.fields.keys().chain(new.fields.keys()).collect();
    let value = |fields: &BTreeMap<String, u64>, name: &String| fields.get(name).map(|value| *value as f64);
    let fields = names.into_iter().map(move |name| (name.as_str(), value(&old.fields, name), value(&new.fields, name)));
    metrics.chain(fields)
}

/// A metric as tables name it.
pub(crate) fn metric_name(metric: Metric) -> &'static str {
    if metric == Metric::Divergence { "divergence %" } else { metric.name() }
}

/// The line of a site, and the new one, if that is another: `k.hip:7`, `k.hip:7 → k.hip:9`.
pub(crate) fn lines_of(change: &SiteDiff) -> String {
    let old = place(change.site.source.as_ref());
    change.moved_to.as_ref().map_or_else(|| old.clone(), |new| format!("{old} → {}", place(Some(new))))
}

/// A site without its line: its operation, and which of several.
pub(crate) fn site_name(site: &SiteName) -> String {
    if site.number > 1 { format!("{} ({})", site.operation, site.number) } else { site.operation.clone() }
}

/// A number with its sign.
pub(crate) fn signed(change: f64) -> String {
    let sign = if change < 0.0 { "-" } else { "+" };
    format!("{sign}{}", number(change.abs()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::html::render_diff;
    use wavetap_profile::file::{Backend, KernelTotals, Origin, Profile, SiteTotals};
    use wavetap_profile::schema::{Counts, FieldSchema, KindSchema, Merge, Unit};

    /// A profile with sites of a probe that this program does not have.
    fn profile(visits: u64, shortest: u64) -> Profile {
        const FIELDS: &[FieldSchema] = &[
            FieldSchema::new("visits", Unit::Executions, Merge::Sum),
            FieldSchema::new("shortest", Unit::Cycles, Merge::Min),
        ];
        let kind = Arc::new(KindSchema::new("tiles", "load", FIELDS));
        let site = |(address, values): (u64, [u64; 2])| SiteTotals {
            address,
            instruction: "tile_load v1".to_owned(),
            source: None,
            counts: Counts::new(&kind, values.to_vec()).expect("two values"),
        };
        let mut profile = Profile::new(Origin::Counters, Backend::Emulator);
        profile.kernels.push(KernelTotals {
            demangled: "k".to_owned(),
            target: "gfx90a".to_owned(),
            sites: [(0x20, [visits, shortest]), (0x30, [1, u64::MAX])].map(site).to_vec(),
            ..KernelTotals::default()
        });
        profile.set_ended(true);
        profile
    }

    #[test]
    fn fields_of_unknown_schemas_are_in_text_and_page() {
        let (old, new) = (profile(10, 40), profile(12, 30));
        let diff = Diff::new(&old, &new, &[]);
        let squeezed = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = squeezed(render(&diff, Style::default()));
        for expected in ["tiles/load/visits 11 13 +2", "tiles/load/shortest 40 30 -10", "visits 10 → 12"] {
            assert!(text.contains(expected), "{expected}\n{text}");
        }
        let page = render_diff(&diff, "old", "new");
        assert!(page.contains("<td>tiles/load/visits</td>") && page.contains("tiles load"), "{page}");
        // What only one profile has of a field is a difference, too.
        let text = squeezed(render(&Diff::new(&profile(10, u64::MAX), &old, &[]), Style::default()));
        assert!(text.contains("tiles/load/shortest not counted 40"), "{text}");
    }
}
