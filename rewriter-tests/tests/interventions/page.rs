//! The page of the blames: docs/results/blame.md.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::truth::{COLUMNS, DRAWS, GUESS, Group, Judged, LEO, OURS, Outcome, SAMPLED, Score};

const COMMAND: &str = "BLESS=1 WAVETAP_FULL_TESTS=1 cargo test -p rewriter-tests --test interventions";

/// Sums of scores.
#[derive(Debug, Default, Clone, Copy)]
struct Row {
    waits: u64,
    sums: [Score; COLUMNS],
    /// In how many waits there is such a score.
    scored: [u64; COLUMNS],
}

impl Row {
    fn add(&mut self, scores: &[Option<Score>; COLUMNS]) {
        self.waits += 1;
        for ((sum, scored), score) in self.sums.iter_mut().zip(&mut self.scored).zip(scores) {
            let Some(score) = score else { continue };
            *scored += 1;
            sum.top += score.top;
            sum.distance += score.distance;
        }
    }

    /// How often the first one is right, in percent.
    fn top(&self, column: usize) -> f64 {
        100.0 * self.sums[column].top / self.scored[column].max(1) as f64
    }

    fn line(&self, name: &str) -> String {
        let distance = |column: usize| 100.0 * self.sums[column].distance / self.scored[column].max(1) as f64;
        // Of waits of which the latencies are drawn.
        let guess = if self.scored[GUESS] == 0 { "-".to_owned() } else { format!("{:.1}", self.top(GUESS)) };
        format!(
            "| {name} | {} | {:.1} | {:.1} | {guess} | {:.1} | {:.1} | {:.1} | {:.1} |\n",
            self.waits,
            self.top(LEO),
            self.top(OURS),
            self.top(SAMPLED),
            distance(LEO),
            distance(OURS),
            distance(SAMPLED)
        )
    }
}

/// What was found.
#[derive(Default)]
pub struct Survey {
    rows: BTreeMap<(&'static str, Group), Row>,
    single: u64,
    calls: u64,
    joint: u64,
    judged: Vec<Judged>,
}

impl Survey {
    pub fn add(&mut self, source: &'static str, outcome: Outcome) {
        self.single += outcome.single;
        self.calls += outcome.calls;
        self.joint += outcome.joint;
        for judged in outcome.judged {
            for group in &judged.groups {
                self.rows.entry((source, *group)).or_default().add(&judged.scores);
                self.rows.entry(("", *group)).or_default().add(&judged.scores);
            }
            self.judged.push(judged);
        }
    }

    pub fn waits(&self) -> usize {
        self.judged.len()
    }

    /// In how many of a hundred waits the first one blamed is right.
    pub fn top(&self, column: usize) -> f64 {
        self.rows.get(&("", Group::All)).map_or(0.0, |row| row.top(column))
    }

    pub fn page(&self) -> String {
        let mut page = format!(
            "# Who is blamed for a wait\n\nWritten by `{COMMAND}`: the rules of `wavetap slice --blame leo` and of \
                `--blame exposed`, which is ours and what is done without the option, beside what waits are really \
                for. On the emulator's timing model each operation that a wait may wait for is given a latency of 0, \
                alone; what that takes off the wait's cycles, over all operations, is its true share. Nothing is \
                measured on hardware.\n\n\
             - *top*: of a hundred waits, how many where the operation that the rule blames most is the one with the \
             largest share (or within 2 % of it). *distance*: the mean total-variation distance between the rule's \
             shares and the true ones, in percent: 0 is the same, 100 has nothing in common.\n\
             - A wait counts if it has more than 10 % of the waiting of its kernel and at least two operations that \
             were executed. It is in each group that fits it.\n\
             - Neither rule knows the latencies: they are drawn by chance, each instruction with a share of hits of \
             its own (samples have those of the model's caches). So no rule that has only the code and its counts can \
             always be right: which of two loads hits does not show in them. Both rules get the exact counts of \
             branches, and LEO's the stalls of every instruction.\n\
             - *best guess*: all latencies are drawn anew {DRAWS} times from the same ranges, and the operation that \
             has the largest share most often is blamed. It knows how latencies are distributed, the model and the \
             input, and not which latencies there were: about so often can a rule be right without samples. *samples*: \
             `--samples` of the same run on the timing model, which tell for which operation waves stood at a wait.\n\
             - Not in the table: {} waits with one operation, {} for what functions have left outstanding, {} where no \
             operation by itself makes a difference.\n\n",
            self.single, self.calls, self.joint
        );
        let columns = [
            "waits",
            "top: leo",
            "top: ours",
            "top: best guess",
            "top: ours, samples",
            "distance: leo",
            "distance: ours",
            "distance: ours, samples",
        ];
        let head = format!("{} |\n|---|{}\n", columns.join(" | "), "---|".repeat(columns.len()));
        for (source, title) in [
            ("", "All"),
            ("machine code", "Kernels in machine code"),
            ("compiled", "Compiled kernels"),
            ("samples", "Samples"),
        ] {
            let rows: Vec<(Group, &Row)> =
                Group::EACH.into_iter().filter_map(|group| Some((group, self.rows.get(&(source, group))?))).collect();
            // One source alone is all there is.
            if rows.is_empty()
                || (!source.is_empty()
                    && self.rows.get(&(source, Group::All)).map(|row| row.waits)
                        == self.rows.get(&("", Group::All)).map(|row| row.waits))
            {
                continue;
            }
            write!(page, "## {title}\n\n| | {head}").expect("text");
            rows.iter().for_each(|(group, row)| page += &row.line(group.text()));
            page += "\n";
        }
        page
    }

    /// Whether the page says this; with `BLESS` it is written.
    pub fn keep(&self, file: &Path) {
        let text = self.page().trim_end().to_owned() + "\n";
        if std::env::var_os("BLESS").is_some() {
            fs::write(file, &text).expect("written");
        }
        let found = fs::read_to_string(file).unwrap_or_default();
        assert!(found == text, "{} is not what was found; BLESS=1 writes it anew", file.display());
    }

    /// The waits where LEO's rule is nearer, for whoever wants to know why.
    pub fn lost(&self) -> impl Iterator<Item = &Judged> {
        self.judged.iter().filter(|judged| top(judged, LEO) > top(judged, OURS))
    }
}

fn top(judged: &Judged, column: usize) -> f64 {
    judged.scores[column].map_or(0.0, |score| score.top)
}
