//! Sites of any schema as tables of its fields: for probes that have no section of their own.

use std::collections::BTreeMap;

use crate::style::{Style, place};
use crate::table::{Align, Table, grouped, push_table};
use wavetap_explain::SiteTable;
use wavetap_explain::sections::unit_name;
use wavetap_profile::schema::Merge;

/// Sites listed for each kernel and kind: those with the most of the first field. JSON has all of them.
const SITES_SHOWN: usize = 12;
/// Shown where a sum does not fit 64 bits.
const TOO_LARGE: &str = "≥ 2^64";
/// Shown where nothing was measured.
const NOTHING: &str = "none";

/// What it is a table of: `probe tiles, kind load`.
pub(crate) fn title(table: &SiteTable) -> String {
    format!("probe {}, kind {}", table.probe, table.kind)
}

/// The heads of its columns of values: the field's name with its unit.
pub(crate) fn heads(table: &SiteTable) -> impl Iterator<Item = String> {
    table.fields.iter().map(|field| match unit_name(field.unit) {
        unit if unit == field.name => unit.to_owned(),
        unit => format!("{} ({unit})", field.name),
    })
}

/// A site's values as text, in the order of the columns.
pub(crate) fn cells(table: &SiteTable, values: &BTreeMap<String, Option<u64>>) -> impl Iterator<Item = String> {
    table.fields.iter().map(|field| value_text(field.merge, values.get(field.name.as_ref()).copied().flatten()))
}

/// The table in text.
pub(super) fn lines(of: &SiteTable, style: Style, lines: &mut Vec<String>) {
    let heads: Vec<String> = heads(of).collect();
    let places = [("address", Align::Right), ("instruction", Align::Code), ("source", Align::Place)];
    let columns: Vec<(&str, Align)> =
        places.into_iter().chain(heads.iter().map(|head| (head.as_str(), Align::Right))).collect();
    let mut table = Table::new(&columns);
    for site in of.sorted().into_iter().take(SITES_SHOWN) {
        let place = [format!("{:#x}", site.address), site.instruction.clone(), place(site.source.as_ref())];
        table.row(place.into_iter().chain(cells(of, &site.counts)));
    }
    if of.sites.len() > 1 {
        let place = ["all".to_owned(), String::new(), String::new()];
        table.row(place.into_iter().chain(cells(of, &of.totals)));
    }
    push_table(&title(of), &table, style, lines);
    if of.sites.len() > SITES_SHOWN {
        lines.push(format!("  and {} more: --format json has all", of.sites.len() - SITES_SHOWN));
    }
}

/// A value of a field that combines so.
fn value_text(merge: Merge, value: Option<u64>) -> String {
    match (value, merge) {
        (Some(value), _) => grouped(value),
        (None, Merge::Sum) => TOO_LARGE.to_owned(),
        (None, Merge::Max | Merge::Min) => NOTHING.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Report, RunInfo, html, text};
    use wavetap_profile::file::{Backend, KernelTotals, Origin, Profile, SiteTotals};
    use wavetap_profile::map::Source;
    use wavetap_profile::schema::{Counts, FieldSchema, KindSchema, Unit};

    /// A schema of a probe that this program does not have, with each rule of merging.
    fn kind() -> Arc<KindSchema> {
        const FIELDS: &[FieldSchema] = &[
            FieldSchema::new("visits", Unit::Executions, Merge::Sum),
            FieldSchema::new("longest", Unit::Cycles, Merge::Max),
            FieldSchema::new("shortest", Unit::Cycles, Merge::Min),
            FieldSchema::new("bytes", Unit::Bytes, Merge::Sum),
        ];
        Arc::new(KindSchema::new("tiles", "load", FIELDS))
    }

    fn report(sites: &[(u64, [u64; 4])]) -> Report {
        let kind = kind();
        let site = |(address, values): &(u64, [u64; 4])| SiteTotals {
            address: *address,
            instruction: "tile_load <v1>".to_owned(),
            source: Some(Source { file: "/src/k.hip".to_owned(), line: 7 }),
            counts: Counts::new(&kind, values.to_vec()).expect("as many values as fields"),
        };
        let mut profile = Profile::new(Origin::Counters, Backend::Emulator);
        profile.kernels.push(KernelTotals {
            demangled: "k()".to_owned(),
            target: "gfx90a".to_owned(),
            sites: sites.iter().map(site).collect(),
            ..KernelTotals::default()
        });
        profile.end();
        Report::new(&profile, RunInfo::default())
    }

    #[test]
    fn text_has_a_table_of_an_unknown_schema() {
        let text = text::render(
            &report(&[(0x10, [3, 40, 9, 128]), (0x20, [12345, 30, 5, 0]), (0x30, [0, 0, u64::MAX, 0])]),
            text::Style::default(),
        );
        let expected = "
  probe tiles, kind load
  address  instruction     source  visits (executions)  longest (cycles)  shortest (cycles)  bytes
     0x20  tile_load <v1>  k.hip:7               12,345                30                  5      0
     0x10  tile_load <v1>  k.hip:7                    3                40                  9    128
     0x30  tile_load <v1>  k.hip:7                    0                 0               none      0
      all                                        12,348                40                  5    128
";
        // Blanks apart: the width of a column is the table's business.
        let squeezed = |text: &str| -> Vec<String> {
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
        };
        let (text, expected) = (squeezed(&text), squeezed(expected));
        assert!(text.windows(expected.len()).any(|lines| lines == expected), "{text:#?}");
        assert!(!text.iter().any(|line| line == "no branches"), "{text:#?}");
    }

    #[test]
    fn json_has_the_values_by_field_and_can_be_read_back() {
        let report = report(&[(0x20, [2, 30, 5, 64]), (0x10, [1, 0, u64::MAX, 0])]);
        let json = serde_json::to_value(&report).expect("JSON");
        assert_eq!(
            json["kernels"][0]["site_tables"],
            serde_json::json!([{
                "probe": "tiles",
                "kind": "load",
                "fields": [
                    { "name": "visits", "unit": "executions", "merge": "sum" },
                    { "name": "longest", "unit": "cycles", "merge": "max" },
                    { "name": "shortest", "unit": "cycles", "merge": "min" },
                    { "name": "bytes", "unit": "bytes", "merge": "sum" },
                ],
                "totals": { "visits": 3, "longest": 30, "shortest": 5, "bytes": 64 },
                "sites": [
                    {
                        "address": "0x10",
                        "instruction": "tile_load <v1>",
                        "source": { "file": "/src/k.hip", "line": 7 },
                        "counts": { "visits": 1, "longest": 0, "shortest": null, "bytes": 0 },
                    },
                    {
                        "address": "0x20",
                        "instruction": "tile_load <v1>",
                        "source": { "file": "/src/k.hip", "line": 7 },
                        "counts": { "visits": 2, "longest": 30, "shortest": 5, "bytes": 64 },
                    },
                ],
            }])
        );
        assert_eq!(serde_json::from_value::<Report>(json).expect("a report"), report);
    }

    #[test]
    fn sums_above_64_bits_are_said_and_not_made_up() {
        let report = report(&[(0x10, [u64::MAX, 1, 1, 1]), (0x20, [1, 1, 1, 1])]);
        let [table] = report.kernels[0].sections.site_tables.as_slice() else { panic!("one table") };
        assert_eq!((table.totals["visits"], table.totals["bytes"]), (None, Some(2)));
        assert!(text::render(&report, text::Style::default()).contains("≥ 2^64"));
    }

    #[test]
    fn long_tables_end_in_how_many_more_there_are() {
        let sites: Vec<(u64, [u64; 4])> = (0..15).map(|number| (4 * number, [number, 0, 1, 0])).collect();
        let report = report(&sites);
        let text = text::render(&report, text::Style::default());
        assert!(text.contains("and 3 more: --format json has all"), "{text}");
        // The three with the fewest visits are left out; their sum is not.
        assert!(text.contains("0xc") && !text.contains("0x8 "), "{text}");
        assert!(text.lines().any(|line| line.trim_start().starts_with("all") && line.contains("105")), "{text}");
    }

    #[test]
    fn the_page_has_a_table_of_an_unknown_schema() {
        let page = html::render(&report(&[(0x10, [3, 40, 9, 128])]), &html::PageData::default());
        for expected in ["probe tiles, kind load", "tile_load &lt;v1&gt;", "longest (cycles)", ">128<", "k.hip:7"] {
            assert!(page.contains(expected), "{expected}\n{page}");
        }
    }
}
