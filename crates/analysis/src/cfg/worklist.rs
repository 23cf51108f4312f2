//! The order in which forward analyses visit blocks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Cfg;
use wavetap_base::entity::BlockId;

/// Blocks that are to be visited, each once: those first that others are reached from, so that few are visited again.
#[derive(Debug)]
pub struct Worklist<'a> {
    cfg: &'a Cfg,
    queued: Vec<bool>,
    places: BinaryHeap<Reverse<u32>>,
}

impl<'a> Worklist<'a> {
    /// Nothing is to be visited.
    pub fn new(cfg: &'a Cfg) -> Worklist<'a> {
        Worklist { cfg, queued: vec![false; cfg.len()], places: BinaryHeap::new() }
    }

    /// Adds a block, if it is not there.
    pub fn push(&mut self, block: BlockId) {
        if !std::mem::replace(&mut self.queued[block.index()], true) {
            self.places.push(Reverse(self.cfg.place_of(block)));
        }
    }

    /// Takes the next block.
    pub fn pop(&mut self) -> Option<BlockId> {
        let Reverse(place) = self.places.pop()?;
        let block = self.cfg.reverse_postorder()[place as usize];
        self.queued[block.index()] = false;
        Some(block)
    }
}
