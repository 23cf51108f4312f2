//! A report as one HTML page that needs no other file and no network.
//!
//! Tables and drawings are in the page as they are; its script only sorts, filters, follows links into what is closed,
//! and draws heat maps. Everything from outside is escaped by `maud`; what the script reads is JSON without `<`.

mod code;
mod data;
mod diff;
mod dispatches;
mod flow;
mod heat;
mod imbalance;
mod kernel;
mod labels;
mod latency;
mod launches;
mod memory;
mod mix;
mod overview;
mod parts;
mod regions;
mod roofline;
mod sites;
#[cfg(test)]
mod tests;
mod time;

use std::cell::Cell;

use maud::{DOCTYPE, Markup, PreEscaped, html};

pub use data::{InstructionFacts, KernelCode, PageData};
pub use diff::render_diff;

use self::overview::Basis;
use self::parts::Room;
use super::launches::uncounted_reason;
use super::variants::{self, Variant};
use super::{Kernel, Report};
use wavetap_profile::time::KernelTime;

const CSS: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const HEAT_SCRIPT: &str = include_str!("heat.js");
/// Scripts that a browser may run have this nonce; attributes such as `onerror` never run.
const NONCE: &str = "wavetap";
/// So many kernels are open from the start, if there are no more.
const OPEN_KERNELS: usize = 1;

/// What every part of the page needs to know.
struct Page<'r> {
    report: &'r Report,
    data: &'r PageData<'r>,
    /// The largest share first, variants of a kernel among the others.
    kernels: Vec<Shown<'r>>,
    basis: Basis,
    room: Room,
}

/// A kernel as it is shown.
struct Shown<'r> {
    kernel: &'r Kernel,
    variant: Option<Variant<'r>>,
    /// Its anchor: `k1`.
    id: String,
    /// What it has of [`Page::basis`].
    amount: u64,
    /// The same of all, 0 to 1.
    share: f64,
    /// Whether its code is on the page, so that links can lead to it: known once its section is made.
    is_listed: Cell<bool>,
}

impl Shown<'_> {
    /// The anchor of an instruction.
    fn at(&self, address: u64) -> String {
        format!("{}-{address:x}", self.id)
    }

    /// The anchor of a line of one of its source files.
    fn line(&self, file: usize, line: u32) -> String {
        format!("{}-s{file}-{line}", self.id)
    }
}

impl<'r> Page<'r> {
    fn new(report: &'r Report, data: &'r PageData<'r>) -> Page<'r> {
        let mut page = Page { report, data, kernels: Vec::new(), basis: Basis::Waves, room: Room::default() };
        let (basis, amounts) = overview::amounts(&page);
        let all: u64 = amounts.iter().fold(0, |sum, amount| sum.saturating_add(*amount));
        let variants = variants::in_order(&report.kernels, Kernel::key);
        let shown = |(number, at): (usize, usize)| {
            let kernel = &report.kernels[at];
            let variant = variants.iter().find(|(other, _)| std::ptr::eq(*other, kernel));
            Shown {
                kernel,
                variant: variant.and_then(|(_, variant)| *variant),
                id: format!("k{}", number + 1),
                amount: amounts[at],
                share: amounts[at] as f64 / all.max(1) as f64,
                is_listed: Cell::new(false),
            }
        };
        page.kernels = overview::in_order(&amounts).into_iter().enumerate().map(shown).collect();
        page.basis = basis;
        page
    }

    fn code_of(&self, kernel: &Kernel) -> Option<&'r KernelCode> {
        self.data.kernel(&kernel.object, &kernel.name)
    }

    fn time_of(&self, kernel: &Kernel) -> Option<&'r KernelTime> {
        self.report.time.as_ref()?.kernels.iter().find(|time| is_time_of(time, kernel))
    }

    /// An address, as a link to the instruction if the page has the code of the kernel.
    fn address(&self, shown: &Shown<'_>, address: u64) -> Markup {
        html! {
            @if shown.is_listed.get() {
                a href=(format!("#{}", shown.at(address))) { (format!("{address:x}")) }
            } @else {
                code { (format!("{address:x}")) }
            }
        }
    }
}

fn is_time_of(time: &KernelTime, kernel: &Kernel) -> bool {
    time.object == kernel.object && time.name == kernel.name
}

/// The page of a report.
#[must_use]
pub fn render(report: &Report, data: &PageData<'_>) -> String {
    let page = Page::new(report, data);
    let open = page.kernels.len() <= OPEN_KERNELS;
    // Before what links to their code.
    let kernels = html! {
        @for (at, shown) in page.kernels.iter().enumerate() { (kernel::section(&page, shown, open && at == 0)) }
    };
    document(
        "Wavetap report",
        &html! {
            a href="#overview" { "Overview" }
            @if !report.regions.is_empty() { a href="#regions" { "Ranges" } }
            @if !report.imbalance.is_empty() { a href="#imbalance" { "Imbalance" } }
            @if !page.kernels.is_empty() { a href="#kernels" { "Kernels" } }
            @if !report.uncounted.is_empty() { a href="#uncounted" { "Not counted" } }
            @if !report.refused.is_empty() { a href="#refused" { "Refused" } }
            a href="#missing" { "What is not here" }
        },
        &html! {
            (overview::section(&page))
            (regions::section(&report.regions))
            (imbalance::section(&page))
            @if !page.kernels.is_empty() { section #kernels { h2 { "Kernels" } (kernels) } }
            @if !report.uncounted.is_empty() { (uncounted_section(report)) }
            @if !report.refused.is_empty() { (refused_section(report)) }
            (missing_section(&page))
        },
    )
}

/// A page with the style sheet and the script, which may load nothing from elsewhere.
fn document(title: &str, links: &Markup, content: &Markup) -> String {
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-{NONCE}'; base-uri 'none'; form-action 'none'"
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(CSS)) }
            }
            body {
                a.skip href="#main" { "To the content" }
                header {
                    h1 { (title) }
                    nav aria-label="Sections" { (links) }
                    div.tools hidden {
                        label for="search" { "Search" }
                        input #search type="search" placeholder="kernel, instruction, file" autocomplete="off"
                            aria-keyshortcuts="/" aria-describedby="found";
                        span #found role="status" {}
                        button type="button" data-do="open" { "Open all" }
                        button type="button" data-do="close" { "Close all" }
                        button type="button" data-do="theme" { "Theme: system" }
                    }
                }
                main #main { (content) }
                script nonce=(NONCE) { (PreEscaped(HEAT_SCRIPT)) (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn uncounted_section(report: &Report) -> Markup {
    let head = html! { th { "Kernel" } th { "Target" } th { "Reason" } };
    let rows = html! {
        @for uncounted in &report.uncounted {
            tr {
                td.name { (uncounted.demangled) }
                td {
                    (uncounted.target)
                    @if let Some(object) = report.variant_object(uncounted) { ", code object " (object) }
                }
                td { (uncounted_reason(uncounted)) }
            }
        }
    };
    html! {
        section #uncounted {
            h2 { "Dispatched and not counted" }
            (parts::data_table("Dispatched and not counted", "uncounted", &head, &rows))
        }
    }
}

fn refused_section(report: &Report) -> Markup {
    let head = html! { th { "Kernel" } th { "Target" } th { "Reason" } th { "Detail" } };
    let rows = html! {
        @for refused in &report.refused {
            tr {
                td.name { (refused.demangled) } td { (refused.target) } td { (refused.reason) } td { (refused.detail) }
            }
        }
    };
    html! {
        section #refused {
            h2 { "Left uncounted" }
            (parts::data_table("Left uncounted", "refused", &head, &rows))
        }
    }
}

/// What would be in the page if it had been measured, and how to.
fn missing_section(page: &Page<'_>) -> Markup {
    let any =
        |is: &dyn Fn(&KernelCode) -> bool| page.kernels.iter().filter_map(|shown| page.code_of(shown.kernel)).any(is);
    let mut missing: Vec<(&str, &str)> = Vec::new();
    if !page.data.has_binary {
        missing.push((
            "Code, waits, accesses of memory, instruction mix",
            "wavetap report PROFILE --html OUT --binary FILE",
        ));
    }
    if !page
        .report
        .kernels
        .iter()
        .any(|kernel| !kernel.sections.branches.is_empty() || !kernel.sections.blocks.is_empty())
    {
        missing.push(("Branches", "wavetap profile --probe branches,blocks -o PROFILE APP"));
    }
    if !page.report.kernels.iter().any(|kernel| !kernel.sections.blocks.is_empty()) {
        missing.push((
            "Executions and lanes of all instructions, instruction mix",
            "wavetap profile --probe branches,blocks -o PROFILE APP",
        ));
    }
    if !any(&|known| known.memory.as_ref().is_some_and(|memory| memory.recorded.is_some())) {
        missing.push((
            "Recorded accesses: findings and heat maps",
            "wavetap profile --probe memory -o ACCESSES APP, then: wavetap report PROFILE --html OUT --binary FILE \
                --accesses ACCESSES",
        ));
    }
    if page.report.time.is_none() {
        missing.push((
            "Modelled time, timeline",
            "wavetap run --timing --format json --report TIME APP, then: wavetap report PROFILE --html OUT --time TIME",
        ));
    }
    let head = html! { th { "What" } th { "How to get it" } };
    let rows = html! { @for (what, how) in &missing { tr { td { (what) } td.i { (how) } } } };
    html! {
        section #missing {
            h2 { "What is not here" }
            @if missing.is_empty() {
                p { "Everything that this version shows was measured or modelled." }
            } @else {
                (parts::data_table("What is not here", "missing", &head, &rows))
            }
            @for unread in &page.data.unread { p.note { "Not readable: " (unread) } }
            p.facts {
                "Counts are exact. Waits are predicted from code and latencies, modelled cycles are those of a timing \
                    model: neither was measured. The page has text of the program and of its source; it loads nothing \
                    from elsewhere."
            }
        }
    }
}
