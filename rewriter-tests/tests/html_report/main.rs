//! The HTML report in a real browser, Chromium without a window.
//!
//! `watch.js` and `probe.js` are put into a copy of the page. The first collects errors, warnings and what the page's
//! policy forbids; the second does what a reader does (sorts, filters, searches, presses keys, follows links, chooses
//! lines of heat maps, switches between light and dark), compares what is shown with what the page's tables and data
//! say, and computes the contrast of every text. What comes of it is in the page's DOM, which the browser prints.
//!
//! Pictures at two widths are compared in squares of 16 pixels with those in `golden`; `BLESS=1` writes them.

mod browser;
mod imbalance;
mod pages;

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use pages::Sample;
use rewriter_tests::{Failure, place};
use serde::Deserialize;
use serde_json::Value;
use wavetap::report::disassembly::HexAddress;
use wavetap::report::memory::{HeatMap, HeatPattern, HeatRun};

/// Bytes of a page of 50 kernels, at most.
const FIFTY: usize = 3 << 20;
/// Bytes of a page of 1000: 4 MiB of code and tables, 4 MiB of heat maps, and what is never left out.
const THOUSAND: usize = 12 << 20;
/// Milliseconds until a page can be used, and for each step, on a machine that is busy with other tests.
const PATIENCE: f64 = 10_000.0;
/// Names that are markup, or end scripts.
const HOSTILE: [&str; 6] = [
    "</script><img src=x onerror=\"window.pwned=1\">",
    "<script>window.pwned=1</script>",
    "k\" onmouseover=\"window.pwned=1\" x=\"",
    "--><svg onload=window.pwned=1>",
    "{\"a\":\"</SCRIPT\u{2028}\"}",
    "' & &lt; &#60; \u{202e}\u{0}",
];

#[derive(Debug, Deserialize)]
struct Probed {
    checks: Vec<Check>,
    facts: Facts,
}

#[derive(Debug, Deserialize)]
struct Check {
    name: String,
    ok: bool,
    got: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Facts {
    open_at_first: usize,
    kernels: usize,
    /// Colour behind the text before anything was switched.
    scheme: String,
    contrast: BTreeMap<String, Contrast>,
}

#[derive(Debug, Deserialize)]
struct Contrast {
    texts: usize,
    least: f64,
}

#[derive(Debug, Deserialize)]
struct Timing {
    load: f64,
    open: f64,
    search: f64,
    elements: usize,
    hidden: usize,
}

#[derive(Debug, Deserialize)]
struct Difference {
    same_size: bool,
    mean: f64,
    far: f64,
    /// Colours of squares of the second picture.
    colours: usize,
}

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Takes a page through all steps; `hash` is where it is opened.
fn probe(page: &str, hash: &str, options: &[&str]) -> Result<Probed, Failure> {
    let folder = scratch();
    browser::with_scripts(page, include_str!("watch.js"), include_str!("probe.js"), &folder.path().join("page.html"))?;
    let dumped = browser::dump(folder.path(), &format!("page.html{hash}"), 60_000, options)?;
    let probed: Probed = browser::result(&dumped)?;
    let failed: Vec<String> =
        probed.checks.iter().filter(|check| !check.ok).map(|check| format!("{}: {}", check.name, check.got)).collect();
    if failed.is_empty() { Ok(probed) } else { Err(failed.join("\n")) }
}

fn names(probed: &Probed) -> Vec<&str> {
    probed.checks.iter().map(|check| check.name.as_str()).collect()
}

/// The sample's page, in which every section is.
fn sample_page() -> String {
    Sample::get().and_then(Sample::page).unwrap_or_else(|failure| panic!("{failure}"))
}

#[test]
fn a_reader_finds_what_the_page_has() {
    let page = sample_page();
    let probed = probe(&page, "#k1-s0-24", &[]).unwrap_or_else(|failure| panic!("{failure}"));
    // What was not there would not have been tried.
    for name in [
        "the page opens at what its address names",
        "a second click turns the order",
        "a filter shows the rows with its words",
        "the text of a line and its first number are beside each other, without scrolling",
        "a menu shows and hides columns",
        "a link opens its kernel",
        "and marks the instruction",
        "and marks the source line",
        "a link opens its heat map",
        "a click on a source line marks its instructions",
        "Enter shows the first match",
        "and the instructions of the data",
        "arrow keys go to the next line",
    ] {
        assert!(names(&probed).contains(&name), "not tried: {name}; tried: {:?}", names(&probed));
    }
    assert_eq!((probed.facts.kernels, probed.facts.open_at_first), (1, 1));
    for (scheme, contrast) in &probed.facts.contrast {
        println!("{scheme}: least contrast of {} texts: {:.2}", contrast.texts, contrast.least);
        assert!(contrast.texts > 500, "{scheme}: {contrast:?}");
    }
    for text in [
        "What matters most",
        "compute units",
        "Unfavourable",
        "Divergent branches",
        "Uniform branches",
        "Basic blocks",
        "Why it waits",
        "Instruction mix",
    ] {
        assert!(page.contains(text), "{text}");
    }
    // The line and the loop of the source.
    assert!(page.contains("nested_loops.hip") && page.contains("__global__"), "the source's text");
}

#[test]
fn the_scheme_is_the_readers() {
    let sample = Sample::get().unwrap_or_else(|failure| panic!("{failure}"));
    let page = sample.many(2, |number| format!("k{number}()")).unwrap_or_else(|failure| panic!("{failure}"));
    let scheme = |option: &str| {
        let probed = probe(&page, "", &[option]).unwrap_or_else(|failure| panic!("{failure}"));
        probed.facts.scheme
    };
    let light = scheme("--blink-settings=preferredColorScheme=1");
    let dark = scheme("--blink-settings=preferredColorScheme=0");
    assert_eq!((light.as_str(), dark.as_str()), ("rgb(255, 255, 255)", "rgb(20, 23, 28)"));
}

#[test]
fn names_that_are_markup_are_text() {
    let sample = Sample::get().unwrap_or_else(|failure| panic!("{failure}"));
    let page = sample.many(HOSTILE.len(), |number| HOSTILE[number].to_owned());
    let page = page.unwrap_or_else(|failure| panic!("{failure}"));
    let probed = probe(&page, "#k6", &[]).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!((probed.facts.kernels, probed.facts.open_at_first), (HOSTILE.len(), 1), "the one that was linked to");
    assert!(names(&probed).contains(&"no script of another ran"));
    // The probe finds what it looks for: the same names unescaped.
    let unescaped = page.replacen("<h2>Overview</h2>", &format!("<h2>Overview</h2>{}", HOSTILE[0]), 1);
    let found = probe(&unescaped, "", &[]).expect_err("an image, which the policy forbids");
    assert!(found.contains("no element loads") && found.contains("policy: "), "{found}");
    assert!(!found.contains("no script of another ran"), "the policy also forbids attributes that run: {found}");
}

#[test]
fn differences_are_a_page() {
    let sample = Sample::get().unwrap_or_else(|failure| panic!("{failure}"));
    let page = sample.differences(HOSTILE[0]).unwrap_or_else(|failure| panic!("{failure}"));
    let probed = probe(&page, "#k1", &[]).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!((probed.facts.kernels, probed.facts.open_at_first), (1, 1));
    for text in ["condition holds: ", "Only in the old profile", "divergence %", "1 kernel is", "old &lt;b&gt;"] {
        assert!(page.contains(text), "{text}");
    }
    assert!(names(&probed).contains(&"a second click turns the order"), "{:?}", names(&probed));
}

#[test]
fn nothing_is_fetched() {
    let page = sample_page();
    // What a style sheet or a script could fetch with. Source lines and names of the sample have no address.
    for text in ["http:", "https:", "//cdn", "@import", "url(", "fetch(", "XMLHttpRequest", "import("] {
        assert!(!page.contains(text), "{text}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn without_scripts_tables_and_drawings_stand() {
    let folder = scratch();
    let page = sample_page().replace('&', "&amp;").replace('"', "&quot;");
    let frame = format!("<iframe width=1200 height=900 sandbox=\"allow-same-origin\" srcdoc=\"{page}\"></iframe>");
    let script = include_str!("without_scripts.js");
    let outer = format!("<!DOCTYPE html><title>without scripts</title>{frame}<script>{script}</script>");
    fs::write(folder.path().join("page.html"), outer).expect("written");
    let dumped = browser::dump(folder.path(), "page.html", 5000, &[]);
    let counts: Value = dumped.and_then(|page| browser::result(&page)).unwrap_or_else(|failure| panic!("{failure}"));
    let count = |name: &str| counts.pointer(name).and_then(Value::as_u64).unwrap_or_else(|| panic!("{name}: {counts}"));
    for (name, expected) in
        [("/closed/tools", 0), ("/closed/kernels", 1), ("/canvases", 0), ("/buttons", 0), ("/timeline", 1)]
    {
        assert_eq!(count(name), expected, "{name}: {counts}");
    }
    // Instructions of the sample's kernel: `wavetap disasm` has as many.
    assert!(count("/rows") >= 50 && count("/source") >= 10 && count("/tables") >= 10, "{counts}");
    for name in ["/heat", "/noscript"] {
        assert_eq!(count(name), 4, "{name}: each of the sample's arrays: {counts}");
    }
    assert!(count("/heat_bars") >= 8 && count("/flow") >= 5 && count("/words") >= 4, "{counts}");
}

#[test]
fn pages_of_many_kernels_stay_usable() {
    let sample = Sample::get().unwrap_or_else(|failure| panic!("{failure}"));
    for (kernels, most) in [(50, FIFTY), (1000, THOUSAND)] {
        let name = |number: usize| format!("void solver::kernel_{number}<float, {number}>(float const*, float*, int)");
        let page = sample.many(kernels, name).unwrap_or_else(|failure| panic!("{failure}"));
        assert!(page.len() <= most, "{kernels} kernels: {} bytes", page.len());
        assert_eq!(page.contains("because the page would be too large"), kernels > 100, "what is left out is said");
        let folder = scratch();
        let path = folder.path().join("page.html");
        browser::with_scripts(&page, include_str!("watch.js"), include_str!("timing.js"), &path).expect("written");
        // Real time: a script's own time would say nothing.
        let dumped = browser::dump(folder.path(), "page.html", 0, &["--timeout=20000"]);
        let timing: Timing =
            dumped.and_then(|page| browser::result(&page)).unwrap_or_else(|failure| panic!("{failure}"));
        println!("{kernels} kernels: {} bytes, {} elements, {timing:?}", page.len(), timing.elements);
        assert!(timing.load < PATIENCE && timing.open < PATIENCE && timing.search < PATIENCE, "{timing:?}");
        assert_eq!(timing.hidden, kernels, "the search was done");
        assert_eq!(broken_links(&page), Vec::<&str>::new(), "also to code that was left out");
        if kernels == 50 {
            let probed = probe(&page, "", &[]).unwrap_or_else(|failure| panic!("{failure}"));
            assert_eq!((probed.facts.kernels, probed.facts.open_at_first), (kernels, 0));
        }
    }
}

/// Links to anchors that the page does not have.
fn broken_links(page: &str) -> Vec<&str> {
    let values =
        |name: &'static str| page.split(name).skip(1).filter_map(|rest| rest.split_once('"')).map(|(id, _)| id);
    let ids: HashSet<&str> = values(" id=\"").collect();
    let links: Vec<&str> = values(" href=\"#").collect();
    assert!(ids.len() > 50 && links.len() > 50, "{} {}", ids.len(), links.len());
    links.into_iter().filter(|link| !ids.contains(link)).take(5).collect()
}

/// Lines of the largest heat map.
const MILLION: u64 = 1_000_000;

/// A million lines, in runs of four: of sixteen sorts of lines, or each run of a sort of its own.
fn large_map(sorts: u32) -> HeatMap {
    let pattern = |number: u32| HeatPattern {
        words: (0..16).map(|word| ((number >> word) % 2) as u8 + (number >> 16) as u8).collect(),
        sector: 2 + (number >> 16) as u8,
    };
    let runs = (0..MILLION / 4).map(|run| {
        let pattern = (run % u64::from(sorts)) as u32;
        HeatRun { address: 0x1000 + 64 * 4 * run, sectors: 4, pattern, sites: 0 }
    });
    HeatMap {
        dispatch: 0,
        workgroup: [0; 3],
        sector_bytes: 64,
        patterns: (0..sorts).map(pattern).collect(),
        runs: runs.collect(),
        sites: vec![vec![HexAddress(0x19dc)]],
        left_out: 0,
    }
}

#[test]
fn a_map_of_a_million_lines_is_drawn() {
    let sample = Sample::get().unwrap_or_else(|failure| panic!("{failure}"));
    for (sorts, all) in [(16, true), ((MILLION / 4) as u32, false)] {
        let page = sample.with_heat(large_map(sorts)).unwrap_or_else(|failure| panic!("{failure}"));
        assert!(page.len() < 5 << 20, "{sorts}: {} bytes", page.len());
        let folder = scratch();
        let path = folder.path().join("page.html");
        browser::with_scripts(&page, include_str!("watch.js"), include_str!("map.js"), &path).expect("written");
        let dumped = browser::dump(folder.path(), "page.html", 20_000, &[]);
        let shown: Value = dumped.and_then(|page| browser::result(&page)).unwrap_or_else(|failure| panic!("{failure}"));
        println!("{sorts} sorts of lines: {} bytes, {shown}", page.len());
        let said = |number: usize| shown["said"][number].as_str().unwrap_or_default();
        assert!(said(0).starts_with("4 lines from 0x1000 to 0x1100, each: 2 waves, 0 of 16 words"), "{shown}");
        assert_eq!(said(2), said(0), "{shown}");
        assert_eq!(shown["note"], !all, "what is left out is said: {shown}");
        if all {
            let last = format!("4 lines from {:#x} to {:#x}, each", 0x1000 + 64 * (MILLION - 4), 0x1000 + 64 * MILLION);
            assert!(said(1).starts_with(&last) && said(1).contains("Accessed by 19dc global_load_dword"), "{shown}");
        }
        // The overview has cells of sixteen lines: its last one begins with a run of its own.
        assert_ne!(said(3), said(0), "{shown}");
        assert!(shown["finest"].as_str().is_some_and(|text| text.contains("each cell is 1 line of")), "{shown}");
        assert!(shown["canvas"].as_u64().is_some_and(|height| height < 1000), "only what is visible: {shown}");
    }
}

/// Where the pictures are that the page is to look like.
fn golden() -> PathBuf {
    place::root().join("rewriter-tests/golden/html")
}

fn difference(one: &Path, other: &Path) -> Result<Difference, Failure> {
    let folder = scratch();
    let image = |path: &Path| format!("<img src=\"file://{}\">", path.display());
    let (script, images) = (include_str!("compare.js"), [one, other].map(image).concat());
    let page = format!("<!DOCTYPE html><title>two pictures</title>{images}<script>{script}</script>");
    fs::write(folder.path().join("page.html"), page).map_err(|error| error.to_string())?;
    let dumped = browser::dump(folder.path(), "page.html", 10_000, &["--allow-file-access-from-files"])?;
    browser::result(&dumped)
}

fn is_alike(difference: &Difference) -> bool {
    difference.same_size && difference.mean < 6.0 && difference.far < 0.04
}

/// What is looked at: a name, a script that leaves on the page what is to be seen, and the size of the window.
const PICTURES: [(&str, &str, (u32, u32)); 4] = [
    ("wide", "", (1200, 900)),
    ("narrow", "", (480, 900)),
    ("code", "document.querySelectorAll('#overview, .part:not(.code)').forEach(part => part.remove());", (1200, 900)),
    (
        "map",
        "document.documentElement.dataset.theme = 'dark';
        document.querySelectorAll('#overview, .part:not(:has(.map))').forEach(part => part.remove());
        document.querySelectorAll('details').forEach(part => part.open = true);
        document.querySelectorAll('.array:not(:last-of-type)').forEach(array => array.remove());",
        (1200, 900),
    ),
];

#[test]
fn the_page_looks_as_it_did() {
    let page = sample_page();
    let folder = scratch();
    let bless = std::env::var_os("BLESS").is_some();
    let mut pictures = Vec::new();
    for (name, script, size) in PICTURES {
        browser::with_scripts(&page, "", script, &folder.path().join("page.html")).expect("written");
        let picture = folder.path().join(format!("{name}.png"));
        browser::picture(folder.path(), "page.html", size, &picture).unwrap_or_else(|failure| panic!("{failure}"));
        let expected = golden().join(format!("{name}.png"));
        if bless {
            fs::create_dir_all(golden()).expect("a folder");
            fs::copy(&picture, &expected).expect("written");
        }
        let found = difference(&expected, &picture).unwrap_or_else(|failure| panic!("{name}: {failure}"));
        println!("{name}: {found:?}");
        assert!(found.colours > 30, "{name} shows nothing: {found:?}");
        assert!(is_alike(&found), "{name}: {found:?}; BLESS=1 writes {}", expected.display());
        pictures.push(picture);
    }
    // Two pictures of one size that are not alike are told apart.
    let found = difference(&pictures[0], &pictures[2]).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(!is_alike(&found), "{found:?}");
}
