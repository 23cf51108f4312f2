//! From a word to the row of the tables that it belongs to.
//!
//! A target's rows are found through a tree of switches over bits that all rows at that point fix, built from the rows
//! themselves; what is left at a leaf is tried in order, the row with most fixed bits first.

use super::table::Variant;

/// The first switch: the top bits of the first dword, which hold the encoding family and often the opcode.
const ROOT_LOW: u32 = 23;
const ROOT_BITS: u32 = 9;
/// Widest later switch.
const MAX_SWITCH_BITS: u32 = 10;
/// Fewest rows for which a switch is worth its table.
const MIN_SWITCH_ROWS: usize = 4;

#[derive(Debug)]
enum Node {
    /// Rows `first..first + count` of the leaf list.
    Leaf { first: u32, count: u32 },
    /// Bits `low..low + bits` of the first two dwords choose among as many nodes from `first` on.
    Switch { low: u8, bits: u8, first: u32 },
}

/// A row that may match.
#[derive(Debug)]
struct Candidate {
    /// The row's own in the first two dwords, here because rows are far apart in memory.
    mask: u64,
    matches: u64,
    row: u16,
    /// From 1: which of the fixed bits after them it has; 0: none, as most.
    behind: u16,
}

/// Finds a target's rows by the bits of a word.
#[derive(Debug)]
pub(super) struct Dispatch {
    nodes: Vec<Node>,
    candidates: Vec<Candidate>,
    /// Fixed bits of the third and fourth dword, and their values.
    behind: Vec<(u64, u64)>,
}

impl Dispatch {
    /// Of the rows that the sets of the mask have with this wave size.
    pub(super) fn new(variants: &[Variant], sets: u32, wave_size: u32) -> Self {
        let has =
            |row: &Variant| row.targets & sets != 0 && (row.wave_size == 0 || u32::from(row.wave_size) == wave_size);
        let mut all: Vec<u16> =
            (0..variants.len() as u16).filter(|&index| has(&variants[usize::from(index)])).collect();
        // The most specific row first.
        all.sort_by_key(|&index| std::cmp::Reverse(variants[usize::from(index)].mask.count_ones()));
        let mut dispatch = Dispatch { nodes: Vec::new(), candidates: Vec::new(), behind: Vec::new() };
        dispatch.nodes.push(Node::Leaf { first: 0, count: 0 });
        dispatch.switch(variants, 0, &all, 0, ROOT_LOW, ROOT_BITS);
        dispatch.nodes.shrink_to_fit();
        dispatch.candidates.shrink_to_fit();
        dispatch.behind.shrink_to_fit();
        dispatch
    }

    /// Makes node `at` a switch over the given bits. `used` are the bits that were switched over on the way.
    fn switch(&mut self, variants: &[Variant], at: usize, rows: &[u16], used: u64, low: u32, bits: u32) {
        let first = self.nodes.len();
        self.nodes[at] = Node::Switch { low: low as u8, bits: bits as u8, first: first as u32 };
        self.nodes.extend((0..1 << bits).map(|_| Node::Leaf { first: 0, count: 0 }));
        let used = used | ((1 << bits) - 1) << low;
        let all = (1u64 << bits) - 1;
        let mut matching: Vec<Vec<u16>> = vec![Vec::new(); 1 << bits];
        for &index in rows {
            let row = &variants[usize::from(index)];
            let fixed = row.mask as u64 >> low & all;
            let value = row.matches as u64 >> low & fixed;
            // What the row leaves open may be anything: every subset of those bits.
            let open = all & !fixed;
            let mut choice = open;
            loop {
                matching[(value | choice) as usize].push(index);
                if choice == 0 {
                    break;
                }
                choice = (choice - 1) & open;
            }
        }
        for (choice, rows) in matching.iter().enumerate() {
            self.node(variants, first + choice, rows, used);
        }
    }

    fn node(&mut self, variants: &[Variant], at: usize, rows: &[u16], used: u64) {
        // What only later dwords tell apart is left to the leaves: it is rare, and 64 bits are quicker.
        let fixed_by_all = rows.iter().fold(!used, |mask, &index| mask & variants[usize::from(index)].mask as u64);
        if rows.len() >= MIN_SWITCH_ROWS {
            let (low, bits) = longest_run(fixed_by_all);
            if bits > 0 {
                return self.switch(variants, at, rows, used, low, bits);
            }
        }
        self.nodes[at] = Node::Leaf { first: self.candidates.len() as u32, count: rows.len() as u32 };
        for &row in rows {
            let Variant { mask, matches, .. } = variants[usize::from(row)];
            let behind = self.behind_of((mask >> u64::BITS) as u64, (matches >> u64::BITS) as u64);
            self.candidates.push(Candidate { mask: mask as u64, matches: matches as u64, row, behind });
        }
    }

    /// The number of these fixed bits.
    fn behind_of(&mut self, mask: u64, matches: u64) -> u16 {
        if mask == 0 {
            return 0;
        }
        let known = self.behind.iter().position(|known| *known == (mask, matches));
        let index = known.unwrap_or_else(|| {
            self.behind.push((mask, matches));
            self.behind.len() - 1
        });
        index as u16 + 1
    }

    /// Whether the candidate's fixed bits after the first two dwords are those of the word.
    #[inline]
    fn fits_behind(&self, candidate: &Candidate, word: u128) -> bool {
        let Some(index) = usize::from(candidate.behind).checked_sub(1) else { return true };
        self.behind.get(index).is_some_and(|(mask, matches)| (word >> u64::BITS) as u64 & mask == *matches)
    }

    /// The numbers of the rows that match a word, the most specific one first.
    #[inline]
    pub(super) fn rows(&self, word: u128) -> impl Iterator<Item = u16> {
        let mut node = &self.nodes[0];
        let candidates = loop {
            match *node {
                Node::Leaf { first, count } => break &self.candidates[first as usize..(first + count) as usize],
                Node::Switch { low, bits, first } => {
                    node = &self.nodes[first as usize + (word as u64 >> low & ((1 << bits) - 1)) as usize];
                }
            }
        };
        let fits = move |candidate: &&Candidate| {
            word as u64 & candidate.mask == candidate.matches && self.fits_behind(candidate, word)
        };
        candidates.iter().filter(fits).map(|candidate| candidate.row)
    }
}

/// The longest run of ones, as its lowest bit and its length (at most [`MAX_SWITCH_BITS`]).
fn longest_run(mask: u64) -> (u32, u32) {
    let (mut best, mut low) = ((0, 0), 0);
    while low < u64::BITS {
        let length = (mask >> low).trailing_ones();
        if length > best.1 {
            best = (low, length.min(MAX_SWITCH_BITS));
        }
        low += length.max(1);
    }
    best
}
