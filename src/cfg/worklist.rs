//! The order in which forward analyses visit blocks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Cfg;
use crate::entity::BlockId;

/// Blocks that are to be visited, each once: those first that others are reached from, so that few are visited again.
#[derive(Debug)]
pub(crate) struct Worklist<'a> {
    order: &'a [BlockId],
    /// By block: its place in `order`.
    place: Vec<u32>,
    queued: Vec<bool>,
    places: BinaryHeap<Reverse<u32>>,
}

impl<'a> Worklist<'a> {
    /// Nothing is to be visited.
    pub(crate) fn new(cfg: &'a Cfg) -> Worklist<'a> {
        let order = cfg.reverse_postorder();
        let mut place = vec![0; cfg.len()];
        for (index, block) in order.iter().enumerate() {
            place[block.index()] = index as u32;
        }
        Worklist { order, place, queued: vec![false; cfg.len()], places: BinaryHeap::new() }
    }

    /// Adds a block, if it is not there.
    pub(crate) fn push(&mut self, block: BlockId) {
        if !std::mem::replace(&mut self.queued[block.index()], true) {
            self.places.push(Reverse(self.place[block.index()]));
        }
    }

    /// Takes the next block.
    pub(crate) fn pop(&mut self) -> Option<BlockId> {
        let Reverse(place) = self.places.pop()?;
        let block = self.order[place as usize];
        self.queued[block.index()] = false;
        Some(block)
    }
}
