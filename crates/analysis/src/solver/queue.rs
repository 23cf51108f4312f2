//! The nodes that are to be visited, by rank.
//!
//! A bitmap with a cursor. Invariant: every word before `first` is 0. A node that is queued twice is visited once; a
//! push below the cursor moves it back, so that the next node is always that of the lowest rank.

/// A set of ranks, of which the lowest is taken first.
#[derive(Debug)]
pub(super) struct Queue {
    /// A bit for each rank.
    words: Vec<u64>,
    /// All words before this one are 0.
    first: usize,
}

impl Queue {
    pub(super) fn new(ranks: usize) -> Queue {
        Queue { words: vec![0; ranks.div_ceil(64)], first: 0 }
    }

    /// Adds a rank, if it is not there.
    pub(super) fn push(&mut self, rank: usize) {
        self.words[rank / 64] |= 1 << (rank % 64);
        self.first = self.first.min(rank / 64);
    }

    /// Takes the lowest rank.
    pub(super) fn pop(&mut self) -> Option<usize> {
        while let Some(word) = self.words.get_mut(self.first) {
            if *word != 0 {
                let bit = word.trailing_zeros() as usize;
                *word &= *word - 1;
                return Some(self.first * 64 + bit);
            }
            self.first += 1;
        }
        None
    }
}
