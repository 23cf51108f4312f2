//! The page of the corpora: docs/results/corpora.md, and the table of docs/reference/refusals.md.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use rewriter_tests::Failure;
use rewriter_tests::corpora::CORPORA;
use wavetap::kernel::Reason;
use wavetap::profile::map::ObjectMap;

const COMMAND: &str = "BLESS=1 WAVETAP_FULL_TESTS=1 cargo test --release -p rewriter-tests --test rewritten_corpora";
/// Of a thousand kernels, so many are instrumented: of all, and of each target that is rewritten.
const OF_ALL: u64 = 999;
const OF_EACH: u64 = 970;
/// The lines of docs/reference/refusals.md between which the reasons are.
const BEGIN: &str = "<!-- reasons: written by the test `rewritten_corpora` -->";
const END: &str = "<!-- reasons: end -->";
/// Reasons that are not a kernel's own, and what they mean.
const OF_OBJECTS: [(&str, &str); 4] = [
    ("unsupported_target", "There are no tables of instructions for the processor."),
    (
        "unsupported_object",
        "The code object cannot be extended: it lacks what a loader finds symbols by, or its tables are not what the \
            format says.",
    ),
    (
        "malformed",
        "The kernel, its descriptor, its metadata or the whole code object contradicts the format; the refusal says \
            where. Everything else of the file is rewritten.",
    ),
    (
        "unverified",
        "The verifier rejects the result, or cannot prove it right. Only results that it accepts are written.",
    ),
];

/// Kernels of one corpus and target.
#[derive(Debug, Default, Clone)]
struct Row {
    kernels: u64,
    rewritten: bool,
    /// In LDS, in memory.
    instrumented: [u64; 2],
    /// By reason, in LDS and in memory.
    refused: BTreeMap<String, [u64; 2]>,
}

impl Row {
    fn add(&mut self, other: &Row) {
        self.kernels += other.kernels;
        self.rewritten |= other.rewritten;
        for mode in 0..2 {
            self.instrumented[mode] += other.instrumented[mode];
        }
        for (reason, times) in &other.refused {
            let mine = self.refused.entry(reason.clone()).or_default();
            *mine = [mine[0] + times[0], mine[1] + times[1]];
        }
    }

    fn line(&self, first: &str) -> String {
        let refused: Vec<String> =
            self.refused.iter().map(|(reason, [lds, global])| format!("`{reason}` {lds} / {global}")).collect();
        let [lds, global] = self.instrumented;
        format!(
            "| {first} | {} | {lds} | {global} | {} | {} |\n",
            self.kernels,
            percent(self.least(), self.kernels),
            refused.join(", ")
        )
    }

    /// Instrumented in the mode that has fewer.
    fn least(&self) -> u64 {
        self.instrumented[0].min(self.instrumented[1])
    }
}

/// What was found.
#[derive(Debug, Default)]
pub struct Survey {
    rows: BTreeMap<(&'static str, String), Row>,
    /// The first kernel by name that was refused, by reason.
    examples: BTreeMap<String, String>,
}

impl Survey {
    /// Adds what became of an object in one mode.
    pub fn add(
        &mut self,
        corpus: &'static str,
        place: &str,
        processor: &str,
        rewritten: bool,
        mode: &str,
        map: &ObjectMap,
    ) {
        let row = self.rows.entry((corpus, processor.to_owned())).or_default();
        let mode = usize::from(mode == "global");
        row.rewritten |= rewritten;
        row.kernels += if mode == 0 { (map.kernels.len() + map.refused.len()) as u64 } else { 0 };
        row.instrumented[mode] += map.kernels.len() as u64;
        for refused in &map.refused {
            row.refused.entry(refused.reason.clone()).or_default()[mode] += 1;
            let at = refused.address.as_ref().map_or_else(String::new, |address| format!(" at {address}"));
            let example = format!("{place}, `{}`{at}: {}", refused.name, refused.detail);
            let known = self.examples.entry(refused.reason.clone()).or_insert_with(|| example.clone());
            // The same one whichever thread was first.
            if example < *known {
                *known = example;
            }
        }
    }

    /// Kernels in all.
    pub fn kernels(&self) -> u64 {
        self.rows.values().map(|row| row.kernels).sum()
    }

    fn by_target(&self) -> BTreeMap<&str, Row> {
        let mut targets: BTreeMap<&str, Row> = BTreeMap::new();
        for ((_, target), row) in &self.rows {
            targets.entry(target).or_default().add(row);
        }
        targets
    }

    fn total(&self, chosen: impl Fn(&Row) -> bool) -> Row {
        let mut total = Row::default();
        self.rows.values().filter(|row| chosen(row)).for_each(|row| total.add(row));
        total
    }

    /// Which goals are not reached.
    pub fn short_of_the_goals(&self) -> Vec<Failure> {
        let all = self.total(|row| row.rewritten);
        let targets =
            self.by_target().into_iter().filter(|(_, row)| row.rewritten).map(|(target, row)| (target, row, OF_EACH));
        let goals = targets.chain([("all targets that are rewritten", all, OF_ALL)]);
        // One kernel of a target with few is no share.
        let missed =
            goals.filter(|(_, row, goal)| row.least() * 1000 < row.kernels * goal && row.kernels > row.least() + 1);
        missed
            .map(|(name, row, goal)| {
                format!("{name}: {} of {} kernels, the goal is {goal} of 1000", row.least(), row.kernels)
            })
            .collect()
    }

    /// The page.
    pub fn page(&self) -> String {
        let mut page = format!(
            "# Rewriting the corpora\n\nWritten by `{COMMAND}` (`rewriter-tests/fetch-corpora.sh` fetches the \
                libraries, which are not ours): how many kernels of real libraries `wavetap rewrite` instruments with \
                counters in LDS and in memory (global), and why it refuses the others. Each result was checked by \
                `verify`, by goblin and by LLVM 22, which decodes all new code. The percentage is that of the mode \
                that instruments fewer.\n\n"
        );
        let head = "kernels | LDS | global | instrumented | refused: LDS / global |\n|---|---|---|---|---|---|\n";
        let (all, rewritten) = (self.total(|_| true), self.total(|row| row.rewritten));
        let missing: Vec<&str> =
            CORPORA.iter().map(|c| c.name).filter(|name| !self.rows.keys().any(|(corpus, _)| corpus == name)).collect();
        if !missing.is_empty() {
            write!(
                page,
                "Not in this table, which a run of a part of the libraries has written: {}.\n\n",
                missing.join(", ")
            )
            .expect("text");
        }
        write!(page, "| | {head}").expect("text");
        page += &rewritten.line("all targets that are rewritten");
        page += &all.line("all targets");
        write!(page, "\n## By target\n\n| target | {head}").expect("text");
        self.by_target().iter().for_each(|(target, row)| page += &row.line(target));
        for corpus in CORPORA {
            let rows: Vec<_> = self.rows.iter().filter(|((name, _), _)| *name == corpus.name).collect();
            if !rows.is_empty() {
                write!(page, "\n## {}\n\n| target | {head}", corpus.name).expect("text");
                rows.iter().for_each(|((_, target), row)| page += &row.line(target));
            }
        }
        page +=
            "\n## Reasons\n\nAn example of each. [Refusal reasons](../reference/refusals.md) says what they mean.\n\n";
        for (reason, example) in &self.examples {
            writeln!(page, "- `{reason}`: {example}").expect("text");
        }
        page
    }

    /// Every reason, how often it occurs, and why.
    pub fn reasons(&self) -> String {
        let all = self.total(|_| true);
        let mut table = String::from("| reason | kernels of the corpora: LDS / global | why |\n|---|---|---|\n");
        let own = Reason::ALL.iter().map(|reason| (reason.name(), reason.explanation()));
        for (name, why) in own.chain(OF_OBJECTS) {
            let [lds, global] = all.refused.get(name).copied().unwrap_or_default();
            writeln!(table, "| `{name}` | {lds} / {global} | {why} |").expect("text");
        }
        writeln!(
            table,
            "\nOf {} kernels; [the corpora page](../results/corpora.md) has them by corpus and target.",
            all.kernels
        )
        .expect("text");
        table
    }
}

fn percent(part: u64, whole: u64) -> String {
    // Rounded down: what is not all does not read as all.
    let hundredths = part * 10_000 / whole.max(1);
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

/// Whether a page says this; with `BLESS` it is written.
pub fn keep(file: &Path, text: &str) -> Option<Failure> {
    if std::env::var_os("BLESS").is_some() {
        fs::write(file, text).expect("written");
    }
    let found = fs::read_to_string(file).unwrap_or_default();
    (found != text).then(|| format!("{} is not what was found; BLESS=1 writes it anew", file.display()))
}

/// [`keep`] for the lines of a page between the two marks.
pub fn keep_between(file: &Path, text: &str) -> Option<Failure> {
    let page = fs::read_to_string(file).unwrap_or_default();
    let (Some((before, rest)), true) = (page.split_once(BEGIN), page.contains(END)) else {
        return Some(format!("{} has no place for the reasons", file.display()));
    };
    let after = rest.split_once(END).map_or("", |(_, after)| after);
    keep(file, &format!("{before}{BEGIN}\n\n{text}\n{END}{after}"))
}
