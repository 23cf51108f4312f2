//! The section of ranks and hosts: every number that it shows against the report as JSON, and the order of each column.

use serde::Deserialize;
use serde_json::Value;

use super::pages::Ranks;
use super::{browser, names, probe, scratch};

/// A table as the browser has it; rows are the texts of their cells.
#[derive(Debug, Deserialize)]
struct Shown {
    caption: String,
    heads: Vec<String>,
    first: Vec<Vec<String>>,
    /// The rows after a click on each head.
    sorted: Vec<Vec<Vec<String>>>,
    /// What the links of each row lead to: the title of a kernel, the address of an instruction.
    links: Vec<Vec<String>>,
}

#[derive(Debug, Deserialize)]
struct Section {
    tables: Vec<Shown>,
    /// The rows that a search for `non_divergent` leaves.
    searched: Vec<Vec<Vec<String>>>,
    headings: Vec<String>,
}

/// A row as JSON says it: the texts before the spread, and the spread.
type Row<'v> = (Vec<String>, &'v Value);

fn text(value: &Value) -> String {
    value.as_str().expect("text").to_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn kernel_rows(imbalance: &Value) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for kernel in list(&imbalance["kernels"]) {
        let row = |spread| (vec![text(&kernel["demangled"])], spread);
        rows.extend(list(&kernel["totals"]).iter().map(row));
    }
    rows
}

fn site_rows(imbalance: &Value) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for kernel in list(&imbalance["kernels"]) {
        for site in list(&kernel["sites"]) {
            let file = text(&site["source"]["file"]);
            let file = file.rsplit('/').next().expect("a name");
            let first = [
                text(&kernel["demangled"]),
                text(&site["address"]).trim_start_matches("0x").to_owned(),
                format!("{file}:{}", site["source"]["line"]),
            ];
            let uneven = list(&site["fields"]).iter().filter(|spread| spread["min"] != spread["max"]);
            rows.extend(uneven.map(|spread| (first.to_vec(), spread)));
        }
    }
    rows
}

/// `1,024` or `74.67`.
fn number(text: &str) -> f64 {
    text.replace(',', "").parse().unwrap_or_else(|_| panic!("{text:?} is no number"))
}

/// Fields of a spread in the order of the columns.
const FIELDS: [&str; 7] = ["what", "min", "min_at", "mean", "max", "max_at", "imbalance"];

/// Whether a row shows this, numbers with at most two digits after the point.
fn shows(row: &[String], (first, spread): &Row<'_>) -> bool {
    let (names, cells) = row.split_at(first.len());
    let is_shown = |(field, cell): (&&str, &String)| match &spread[field] {
        Value::String(text) => cell == text,
        value => (number(cell) - value.as_f64().expect("a number")).abs() <= 0.005 + 1e-9,
    };
    names == first && cells.len() == FIELDS.len() && FIELDS.iter().zip(cells).all(is_shown)
}

/// The exact value of a column in each row.
fn values(rows: &[Vec<String>], expected: &[Row<'_>], field: &str) -> Vec<f64> {
    let of_row = |row: &Vec<String>| {
        let (_, spread) = expected.iter().find(|known| shows(row, known)).unwrap_or_else(|| panic!("{row:?}"));
        spread[field].as_f64().expect("a number")
    };
    rows.iter().map(of_row).collect()
}

fn check_table(table: &Shown, expected: &[Row<'_>], one: &str) {
    let what = &table.caption;
    assert_eq!(table.first.len(), expected.len(), "{what}: {expected:?}");
    for known in expected {
        let count = table.first.iter().filter(|row| shows(row, known)).count();
        assert_eq!(count, 1, "{what}: {known:?} in {:?}", table.first);
    }
    let before = expected[0].0.len();
    let heads = ["Of", "Min", &format!("{one} of min"), "Mean", "Max", &format!("{one} of max"), "Max/mean"];
    assert_eq!(table.heads[before..], heads);
    for (at, field) in
        FIELDS.iter().enumerate().filter(|(_, field)| ["min", "mean", "max", "imbalance"].contains(field))
    {
        let sorted = values(&table.sorted[before + at], expected, field);
        assert!(
            sorted.len() == expected.len() && sorted.is_sorted_by(|one, next| one >= next),
            "{what}: {field}: {sorted:?}"
        );
    }
    for (row, links) in table.first.iter().zip(&table.links) {
        assert_eq!(row[..links.len()], links[..], "{what}");
        // The kernel; of sites the address, too.
        assert_eq!(links.len(), before.min(2), "{what}");
    }
}

#[test]
fn the_imbalance_of_ranks_and_hosts_is_that_of_the_json() {
    let ranks = Ranks::get().unwrap_or_else(|failure| panic!("{failure}"));
    let report = &ranks.report["imbalance"];
    let [of_ranks, of_hosts] = list(report) else { panic!("ranks and hosts: {report}") };
    assert_eq!((&of_ranks["count"], &of_hosts["count"]), (&3.into(), &2.into()));
    let folder = scratch();
    let path = folder.path().join("page.html");
    browser::with_scripts(&ranks.page, include_str!("watch.js"), include_str!("imbalance.js"), &path).expect("written");
    let dumped = browser::dump(folder.path(), "page.html", 10_000, &[]);
    let section: Section = dumped.and_then(|page| browser::result(&page)).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(section.headings, ["Imbalance of 3 ranks", "Imbalance of 2 hosts"]);
    let captions: Vec<&str> = section.tables.iter().map(|table| table.caption.as_str()).collect();
    let of = ["Imbalance of ranks: kernels", "Imbalance of ranks: sites", "Imbalance of hosts: kernels"];
    assert_eq!(captions, [of[0], of[1], of[2], "Imbalance of hosts: sites"]);
    for (imbalance, tables, one) in [(of_ranks, &section.tables[..2], "Rank"), (of_hosts, &section.tables[2..], "Host")]
    {
        let (kernels, sites) = (kernel_rows(imbalance), site_rows(imbalance));
        assert!(kernels.len() >= 6 && sites.len() >= 6, "{kernels:?} {sites:?}");
        check_table(&tables[0], &kernels, one);
        check_table(&tables[1], &sites, one);
    }
    // The rank with the most, which has four times what another has, and a kernel that it never dispatched.
    let waves = |kernel: &str| {
        let row = section.tables[0].first.iter().find(|row| row[0].starts_with(kernel) && row[1] == "waves");
        row.unwrap_or_else(|| panic!("{kernel}: {section:?}"))[1..].to_vec()
    };
    assert_eq!(waves("divergent("), ["waves", "32", "0", "74.67", "128", "10", "1.71"]);
    assert_eq!(waves("non_divergent("), ["waves", "0", "10", "32", "64", "1", "2.00"]);
    for (table, rows) in section.tables.iter().zip(&section.searched) {
        let is_left = |row: &&Vec<String>| row[0].starts_with("non_divergent(");
        assert_eq!(rows.len(), table.first.iter().filter(is_left).count(), "{}", table.caption);
        assert!(rows.iter().all(|row| is_left(&row)) && !rows.is_empty(), "{}", table.caption);
    }
}

#[test]
fn a_page_with_imbalance_can_be_used() {
    let ranks = Ranks::get().unwrap_or_else(|failure| panic!("{failure}"));
    let probed = probe(&ranks.page, "#imbalance", &[]).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(names(&probed).contains(&"the page opens at what its address names"), "{:?}", names(&probed));
}
