//! What was counted, by corpus and processor.

use std::collections::BTreeMap;

use rewriter_tests::corpora::Corpus;

/// What one code object has, or all of one processor in one corpus.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// Its processor, as in the ELF header.
    pub processor: String,
    /// Whether its code was decoded.
    pub handled: bool,
    pub objects: usize,
    pub kernels: usize,
    pub functions: usize,
    /// Bytes of the kernels and functions.
    pub code_bytes: u64,
    /// Bytes of executable sections.
    pub section_bytes: u64,
    /// Instructions that control reaches.
    pub reached: usize,
    pub blocks: usize,
    /// Dwords of kernels and functions that control does not reach and that are no padding, but do decode.
    pub unreached: usize,
    /// Dwords of executable sections that are no instruction and not zero.
    pub none: usize,
    /// Calls and jumps to places that are not known.
    pub unknown: usize,
    /// What must not be.
    pub wrong: Vec<String>,
}

/// The counts of all corpora.
#[derive(Debug, Default)]
pub struct Tally {
    rows: BTreeMap<(&'static str, String), Counts>,
    pub wrong: Vec<String>,
}

impl Tally {
    /// Adds a code object.
    pub fn add(&mut self, corpus: &'static str, counts: Counts) {
        let row = self.rows.entry((corpus, counts.processor.clone())).or_default();
        row.processor.clone_from(&counts.processor);
        row.handled = counts.handled;
        row.objects += counts.objects;
        row.kernels += counts.kernels;
        row.functions += counts.functions;
        row.code_bytes += counts.code_bytes;
        row.section_bytes += counts.section_bytes;
        row.reached += counts.reached;
        row.blocks += counts.blocks;
        row.unreached += counts.unreached;
        row.none += counts.none;
        row.unknown += counts.unknown;
        self.wrong.extend(counts.wrong);
    }

    fn rows_of(&self, corpus: &str) -> impl Iterator<Item = &Counts> {
        self.rows.iter().filter(move |((name, _), _)| *name == corpus).map(|(_, counts)| counts)
    }

    /// Where a corpus is not what it is known to be.
    pub fn unexpected(&self, corpus: &Corpus) -> Vec<String> {
        let sum = |of: fn(&Counts) -> u64| self.rows_of(corpus.name).map(of).sum::<u64>();
        [
            ("processors", self.rows_of(corpus.name).count() as u64, corpus.processors as u64),
            ("objects", sum(|row| row.objects as u64), corpus.objects as u64),
            ("kernels", sum(|row| row.kernels as u64), corpus.kernels as u64),
            ("bytes of code", sum(|row| row.code_bytes), corpus.code_bytes),
            ("bytes of executable sections", sum(|row| row.section_bytes), corpus.section_bytes),
            // There is no data between the code of these, and every call and jump has one known place to go to.
            ("words that are no instructions", sum(|row| row.none as u64), 0),
            ("calls and jumps to unknown places", sum(|row| row.unknown as u64), 0),
        ]
        .into_iter()
        .filter(|(_, found, expected)| found != expected)
        .map(|(what, found, expected)| format!("{}: {found} {what}, {expected} expected", corpus.name))
        .collect()
    }

    /// A line for each corpus and processor.
    pub fn table(&self) -> String {
        let mut lines = vec![format!(
            "{:18} {:9} {:>7} {:>7} {:>9} {:>10} {:>12} {:>8} {:>9} {:>7} {:>7}",
            "corpus",
            "target",
            "objects",
            "kernels",
            "functions",
            "code bytes",
            "instructions",
            "blocks",
            "unreached",
            "no inst",
            "unknown"
        )];
        for ((corpus, _), row) in &self.rows {
            let head = format!(
                "{corpus:18} {:9} {:7} {:7} {:9} {:10}",
                row.processor, row.objects, row.kernels, row.functions, row.code_bytes
            );
            lines.push(if row.handled {
                format!(
                    "{head} {:12} {:8} {:9} {:7} {:7}",
                    row.reached, row.blocks, row.unreached, row.none, row.unknown
                )
            } else {
                format!("{head} not handled")
            });
        }
        lines.join("\n")
    }
}
