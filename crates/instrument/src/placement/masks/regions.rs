//! Which instructions are executed by turns: one, the other, the first again, until the function is left after both or
//! before both.
//!
//! Of blocks between which no path branches off or comes in, each is executed as often as the others, by turns: those
//! are the ones that all cycles have in common, if the way from the function's ends back to its entry counts as an edge
//! (Johnson, Pearson and Pingali 1994, "The program structure tree": cycle equivalence). That is found for all blocks
//! at once, in one walk over the graph without directions. A vertex stands for the beginning of a block and another one
//! for its end; the edge between them for the block.

use wavetap_analysis::cfg::{Cfg, DominatorTree};
use wavetap_analysis::kernel::{Body, Flow};
use wavetap_base::entity::{BlockId, InstId};

/// No vertex, edge, bracket or class.
const NONE: u32 = u32::MAX;
/// Blocks that are looked at for each block of a function, where it never ends.
const LOOKS_PER_BLOCK: usize = 64;

/// Blocks by how they are executed.
#[derive(Debug)]
pub(super) struct Regions<'a> {
    cfg: &'a Cfg,
    dominators: DominatorTree,
    /// By block. Blocks of one region are executed by turns, except in region 0, of those that no end follows.
    regions: Vec<u32>,
    count: usize,
    /// Blocks that may still be looked at, one by one, in region 0.
    looks: usize,
}

impl<'a> Regions<'a> {
    pub(super) fn of(body: &'a Body, cfg: &'a Cfg) -> Regions<'a> {
        let (regions, count) = regions(body, cfg);
        let looks = LOOKS_PER_BLOCK * (cfg.len() + 1);
        Regions { cfg, dominators: cfg.dominators(), regions, count, looks }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn of_block(&self, block: BlockId) -> usize {
        self.regions[block.index()] as usize
    }

    /// Whether more had to be looked at than may be: then nothing is known of the rest.
    pub(super) fn is_exhausted(&self) -> bool {
        self.looks == 0
    }

    /// Whether each execution of the first instruction is followed by one of the second before the next of its own, and
    /// each of the second comes after one of the first.
    pub(super) fn alternate(&mut self, first: InstId, second: InstId) -> bool {
        let (from, to) = (self.cfg.block_of(first), self.cfg.block_of(second));
        if from == to {
            return first < second;
        }
        if self.of_block(from) != self.of_block(to) || !self.dominators.dominates(from, to) {
            return false;
        }
        self.of_block(from) != 0 || !self.returns(from, to) && !self.returns(to, from)
    }

    /// Whether control gets from a block's end back to it without passing another.
    fn returns(&mut self, block: BlockId, without: BlockId) -> bool {
        let mut seen = vec![false; self.cfg.len()];
        let mut work: Vec<BlockId> = self.cfg.block(block).successors.iter().map(|edge| edge.block).collect();
        while let Some(at) = work.pop() {
            if at == without || std::mem::replace(&mut seen[at.index()], true) {
                continue;
            }
            self.looks = self.looks.saturating_sub(1);
            if at == block || self.looks == 0 {
                return true;
            }
            work.extend(self.cfg.block(at).successors.iter().map(|edge| edge.block));
        }
        false
    }
}

/// The region of each block, and how many there are.
fn regions(body: &Body, cfg: &Cfg) -> (Vec<u32>, usize) {
    let leaves = |block: BlockId| {
        let block = cfg.block(block);
        block.exit.is_some() || block.successors.is_empty() || body.flow(block.last) == Flow::End
    };
    // Blocks that an end follows.
    let mut ends = vec![false; cfg.len()];
    let mut work: Vec<BlockId> = cfg.ids().filter(|block| leaves(*block)).collect();
    while let Some(block) = work.pop() {
        if !std::mem::replace(&mut ends[block.index()], true) {
            work.extend(cfg.block(block).predecessors.iter().map(|edge| edge.block));
        }
    }
    if !ends[cfg.entry().index()] {
        return (vec![0; cfg.len()], 1);
    }
    let world = 2 * cfg.len() as u32;
    // The edge of a block has its number.
    let mut edges: Vec<(u32, u32)> = cfg.ids().map(|block| (2 * block.0, 2 * block.0 + 1)).collect();
    edges.push((world, 2 * cfg.entry().0));
    for block in cfg.ids().filter(|block| ends[block.index()]) {
        let successors = cfg.block(block).successors.iter().map(|edge| edge.block).filter(|to| ends[to.index()]);
        edges.extend(successors.map(|to| (2 * block.0 + 1, 2 * to.0)));
        if leaves(block) {
            edges.push((2 * block.0 + 1, world));
        }
    }
    let classes = cycle_equivalence(world as usize + 1, &edges, world);
    let mut numbers = vec![NONE; edges.len() + 1];
    let mut count = 1;
    let mut number = |block: BlockId| {
        if !ends[block.index()] {
            return 0;
        }
        let number = &mut numbers[classes[block.index()] as usize];
        if *number == NONE {
            *number = count;
            count += 1;
        }
        *number
    };
    let regions = cfg.ids().map(&mut number).collect();
    (regions, count as usize)
}

/// By edge: the number of its class. Of edges of one class, each cycle has all or none, whatever their direction; every
/// edge must be on a cycle. Those that cannot be reached from the root have no class.
fn cycle_equivalence(vertices: usize, edges: &[(u32, u32)], root: u32) -> Vec<u32> {
    let walk = Walk::over(vertices, edges, root);
    let mut brackets = Brackets::new(vertices);
    let mut classes = vec![NONE; edges.len()];
    let mut next_class = 0;
    let mut new_class = || {
        next_class += 1;
        next_class - 1
    };
    // By vertex, by its place in the walk: the highest that a bracket of it or of those below goes to.
    let mut highest = vec![NONE; vertices];
    // By edge that closes a cycle: its bracket. By vertex: brackets that end there without an edge.
    let mut bracket_of = vec![NONE; edges.len()];
    let mut capping: Vec<Vec<u32>> = vec![Vec::new(); vertices];
    for &vertex in walk.order.iter().rev() {
        let place = walk.places[vertex as usize];
        let (mut own, mut first, mut second) = (NONE, NONE, NONE);
        for &edge in walk.edges_at(vertex) {
            let other = walk.other(edges, edge, vertex);
            let other_place = walk.places[other as usize];
            if walk.parent_edges[other as usize] == edge && other_place > place {
                let reached = highest[other as usize];
                (first, second) = if reached < first { (reached, first) } else { (first, second.min(reached)) };
                brackets.append(vertex, other);
            } else if walk.parent_edges[vertex as usize] != edge && other_place < place {
                own = own.min(other_place);
            }
        }
        highest[vertex as usize] = own.min(first);
        for bracket in std::mem::take(&mut capping[vertex as usize]) {
            brackets.remove(vertex, bracket);
        }
        for &edge in walk.edges_at(vertex) {
            let other = walk.other(edges, edge, vertex);
            let is_tree = walk.parent_edges[other as usize] == edge || walk.parent_edges[vertex as usize] == edge;
            if is_tree || other == vertex {
                continue;
            }
            if walk.places[other as usize] > place {
                let bracket = bracket_of[edge as usize];
                brackets.remove(vertex, bracket);
                if classes[edge as usize] == NONE {
                    classes[edge as usize] = new_class();
                }
            } else {
                bracket_of[edge as usize] = brackets.push(vertex, Some(edge));
            }
        }
        if second < own.min(place) {
            let bracket = brackets.push(vertex, None);
            capping[walk.order[second as usize] as usize].push(bracket);
        }
        let parent = walk.parent_edges[vertex as usize];
        if parent == NONE {
            continue;
        }
        let Some(top) = brackets.top(vertex) else { continue };
        let size = brackets.size(vertex);
        let recent = &mut brackets.all[top as usize];
        if recent.size != size {
            (recent.size, recent.class) = (size, new_class());
        }
        classes[parent as usize] = recent.class;
        if let (1, Some(edge)) = (size, recent.edge) {
            classes[edge as usize] = recent.class;
        }
    }
    // An edge from a vertex to itself is a cycle.
    for (number, (from, to)) in edges.iter().enumerate() {
        if from == to {
            classes[number] = new_class();
        }
    }
    classes
}

/// A depth-first walk along edges in either direction.
struct Walk {
    /// Vertices in the order in which they are found.
    order: Vec<u32>,
    /// By vertex: its place in that order.
    places: Vec<u32>,
    /// By vertex: the edge through which it was found.
    parent_edges: Vec<u32>,
    /// Edges by vertex, and where those of each begin.
    at: Vec<u32>,
    starts: Vec<u32>,
}

impl Walk {
    fn over(vertices: usize, edges: &[(u32, u32)], root: u32) -> Walk {
        let mut starts = vec![0; vertices + 1];
        let ends = |edge: &(u32, u32)| [Some(edge.0), Some(edge.1).filter(|to| *to != edge.0)];
        edges.iter().flat_map(ends).flatten().for_each(|vertex| starts[vertex as usize + 1] += 1);
        (0..vertices).for_each(|vertex| starts[vertex + 1] += starts[vertex]);
        let mut at = vec![0; starts[vertices] as usize];
        let mut next = starts.clone();
        for (number, edge) in edges.iter().enumerate() {
            for vertex in ends(edge).into_iter().flatten() {
                at[next[vertex as usize] as usize] = number as u32;
                next[vertex as usize] += 1;
            }
        }
        let (order, places, parent_edges) = (Vec::new(), vec![NONE; vertices], vec![NONE; vertices]);
        let mut walk = Walk { order, places, parent_edges, at, starts };
        let mut stack = vec![(root, 0)];
        walk.find(root);
        while let Some((vertex, next)) = stack.last_mut() {
            let vertex = *vertex;
            let Some(&edge) = walk.edges_at(vertex).get(*next) else {
                stack.pop();
                continue;
            };
            *next += 1;
            let other = walk.other(edges, edge, vertex);
            if walk.places[other as usize] == NONE {
                walk.parent_edges[other as usize] = edge;
                walk.find(other);
                stack.push((other, 0));
            }
        }
        walk
    }

    fn find(&mut self, vertex: u32) {
        self.places[vertex as usize] = self.order.len() as u32;
        self.order.push(vertex);
    }

    fn edges_at(&self, vertex: u32) -> &[u32] {
        &self.at[self.starts[vertex as usize] as usize..self.starts[vertex as usize + 1] as usize]
    }

    fn other(&self, edges: &[(u32, u32)], edge: u32, vertex: u32) -> u32 {
        let (from, to) = edges[edge as usize];
        if from == vertex { to } else { from }
    }
}

/// An edge that goes up past a vertex, or stands for some that do.
#[derive(Debug)]
struct Bracket {
    edge: Option<u32>,
    /// How many brackets there were, and the class of the edge below them, when this one was last the uppermost.
    size: u32,
    class: u32,
    /// Its neighbours in the list.
    above: u32,
    below: u32,
}

/// Lists of brackets, one for each vertex; each bracket is in one of them.
#[derive(Debug)]
struct Brackets {
    all: Vec<Bracket>,
    /// By vertex: the first, the last, and how many.
    lists: Vec<(u32, u32, u32)>,
}

impl Brackets {
    fn new(vertices: usize) -> Brackets {
        Brackets { all: Vec::new(), lists: vec![(NONE, NONE, 0); vertices] }
    }

    fn top(&self, vertex: u32) -> Option<u32> {
        Some(self.lists[vertex as usize].0).filter(|top| *top != NONE)
    }

    fn size(&self, vertex: u32) -> u32 {
        self.lists[vertex as usize].2
    }

    fn push(&mut self, vertex: u32, edge: Option<u32>) -> u32 {
        let bracket = self.all.len() as u32;
        let (first, last, size) = self.lists[vertex as usize];
        self.all.push(Bracket { edge, size: NONE, class: NONE, above: NONE, below: first });
        if first != NONE {
            self.all[first as usize].above = bracket;
        }
        self.lists[vertex as usize] = (bracket, if last == NONE { bracket } else { last }, size + 1);
        bracket
    }

    fn remove(&mut self, vertex: u32, bracket: u32) {
        let Bracket { above, below, .. } = self.all[bracket as usize];
        let list = &mut self.lists[vertex as usize];
        list.2 -= 1;
        if above == NONE {
            list.0 = below;
        } else {
            self.all[above as usize].below = below;
        }
        if below == NONE {
            list.1 = above;
        } else {
            self.all[below as usize].above = above;
        }
    }

    /// Moves the list of one vertex to the end of that of another.
    fn append(&mut self, vertex: u32, from: u32) {
        let (first, last, size) = std::mem::replace(&mut self.lists[from as usize], (NONE, NONE, 0));
        let list = &mut self.lists[vertex as usize];
        if size == 0 {
            return;
        }
        if list.2 == 0 {
            *list = (first, last, size);
            return;
        }
        let end = list.1;
        (list.1, list.2) = (last, list.2 + size);
        self.all[end as usize].below = first;
        self.all[first as usize].above = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::SplitMix64;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    /// Whether a path leads from the end of an edge to its beginning, without another edge.
    fn is_on_cycle(edges: &[(u32, u32)], edge: usize, without: usize) -> bool {
        let (begin, end) = edges[edge];
        let mut seen = vec![end];
        let mut next = 0;
        while let Some(&vertex) = seen.get(next).filter(|_| !seen.contains(&begin)) {
            next += 1;
            for (number, (from, to)) in edges.iter().enumerate() {
                if *from == vertex && number != without && !seen.contains(to) {
                    seen.push(*to);
                }
            }
        }
        seen.contains(&begin)
    }

    #[test]
    fn edges_of_a_class_are_on_the_same_cycles() {
        let mut random = SplitMix64::seed_from_u64(11);
        let (mut graphs, mut same) = (0, 0);
        while graphs < 2000 {
            let mut below = |n: u32| (random.next_u64() % u64::from(n)) as u32;
            let vertices = 2 + below(7);
            let edges: Vec<(u32, u32)> = (0..vertices + below(6)).map(|_| (below(vertices), below(vertices))).collect();
            // Every vertex is reached from the first, and every edge is on a cycle.
            let none = edges.len();
            let connected = |vertex| edges.iter().any(|(from, to)| *from == vertex || *to == vertex);
            let walk = Walk::over(vertices as usize, &edges, 0);
            let is_one = walk.order.len() == vertices as usize && (0..vertices).all(connected);
            if !is_one || !(0..none).all(|edge| is_on_cycle(&edges, edge, none)) {
                continue;
            }
            graphs += 1;
            let classes = cycle_equivalence(vertices as usize, &edges, 0);
            for a in 0..none {
                for b in 0..a {
                    let together = !is_on_cycle(&edges, a, b) && !is_on_cycle(&edges, b, a);
                    assert_eq!(classes[a] == classes[b], together, "{a} and {b} of {edges:?}: {classes:?}");
                    same += usize::from(together);
                }
            }
        }
        assert!(same > 500, "{same}");
    }
}
