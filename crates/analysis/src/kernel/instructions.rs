//! The instructions of a body as a graph, for analyses that concern few bodies and few instructions of these.

use super::body::Body;
use crate::solver::{Graph, reverse_postorder};
use wavetap_base::entity::InstId;

/// The instructions of a body, along control flow within it.
#[derive(Debug)]
pub struct Instructions<'a> {
    body: &'a Body,
    order: Vec<InstId>,
    /// By instruction: its place in `order`.
    ranks: Vec<u32>,
}

impl<'a> Instructions<'a> {
    /// The graph of a body.
    #[must_use]
    pub fn of(body: &'a Body) -> Instructions<'a> {
        let following = |index: usize| body.successors(InstId(index as u32)).map(InstId::index);
        let order = reverse_postorder(body.len(), [body.entry().index()], following);
        let mut ranks = vec![0; body.len()];
        order.iter().enumerate().for_each(|(rank, index)| ranks[*index] = rank as u32);
        Instructions { body, order: order.into_iter().map(|index| InstId(index as u32)).collect(), ranks }
    }
}

impl Graph for Instructions<'_> {
    type Node = InstId;

    fn order(&self) -> &[InstId] {
        &self.order
    }

    fn rank(&self, id: InstId) -> usize {
        self.ranks[id.index()] as usize
    }

    fn index(&self, id: InstId) -> usize {
        id.index()
    }

    fn successors(&self, id: InstId) -> impl Iterator<Item = InstId> {
        self.body.successors(id)
    }
}
