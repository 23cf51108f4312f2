//! How often waves executed each block, as counted or worked out from the counters of branch sites.
//!
//! A site's counters give its block's executions, a uniform branch's also its edges'. What a block gets along its edges
//! in, and at the entry one arrival per wave, equals what it passes on along its edges out; applied until nothing new
//! follows, this usually gives every block. A result is labelled: read from a site in the block, derived, or unknown.
//! Counters that contradict each other (waves that were dropped or did not finish) give no derived numbers.

use serde::{Deserialize, Serialize};

use wavetap_base::entity::{BlockId, InstId};
use wavetap_code::{Code, EdgeKind, Entries, Graph};
use wavetap_profile::file::{KernelTotals, SiteTotals};
use wavetap_profile::probes::blocks;
use wavetap_profile::probes::branches::BranchCounts;

/// How a number of executions is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CountSource {
    /// A site in the same block counted it.
    Counted,
    /// It follows from other sites' counters and the number of waves.
    Derived,
    /// It does not follow from what was counted.
    Unknown,
}

/// Executions by block.
#[derive(Debug, Clone)]
pub struct BlockCounts {
    blocks: Vec<(Option<u64>, CountSource)>,
    consistent: bool,
}

/// Counts of a kernel, and whether more than they say follows from them.
#[derive(Debug, Clone, Copy)]
pub struct KernelCounts<'a> {
    /// The counts.
    pub totals: &'a KernelTotals,
    /// How waves come into the kernel.
    pub entries: Entries,
}

impl<'a> KernelCounts<'a> {
    /// Counts of a kernel whose waves begin at its entry, and whose calls return.
    #[must_use]
    pub fn of(totals: &'a KernelTotals) -> KernelCounts<'a> {
        KernelCounts { totals, entries: Entries::PLAIN }
    }
}

/// The instruction of some code that begins at an address.
pub type At<'a> = &'a dyn Fn(u64) -> Option<InstId>;

impl BlockCounts {
    /// [`BlockCounts::derive`] for a kernel's code.
    #[must_use]
    pub fn of_code(code: &Code<'_>, counted: Option<KernelCounts<'_>>) -> BlockCounts {
        BlockCounts::derive(code.graph(), &|address| code.at(address), counted)
    }

    /// Works out the executions of a kernel's blocks. Without counts, all are unknown.
    #[must_use]
    pub fn derive(graph: &Graph, at: At<'_>, counted: Option<KernelCounts<'_>>) -> BlockCounts {
        let Some(KernelCounts { totals, entries: Entries { flows, also_begins } }) = counted else {
            return BlockCounts { blocks: vec![(None, CountSource::Unknown); graph.len()], consistent: true };
        };
        // Without dropped and unfinished waves every wave arrives once; otherwise the sites alone must do.
        let entry = graph.entry();
        let begins = match also_begins {
            None => Some(Begins { blocks: [entry; 2], all_pass: entry }),
            Some(address) => {
                second_entry(graph, at, address).map(|second| Begins { blocks: [entry, second], all_pass: second })
            }
        };
        let complete = flows && begins.is_some() && totals.dropped == 0 && totals.unfinished == 0;
        let arrivals = begins.filter(|_| complete).map(|begins| (begins, totals.waves));
        Self::of_sites(graph, at, &totals.sites, complete, arrivals)
    }

    /// Works out the executions of the blocks of code that is entered unknown times: a function, from counters of which
    /// none is missing.
    #[must_use]
    pub fn derive_entered(graph: &Graph, at: At<'_>, sites: &[SiteTotals]) -> BlockCounts {
        Self::of_sites(graph, at, sites, true, None)
    }

    fn of_sites(
        graph: &Graph,
        at: At<'_>,
        sites: &[SiteTotals],
        complete: bool,
        arrivals: Option<(Begins, u64)>,
    ) -> BlockCounts {
        let mut solver = Solver::new(graph);
        let mut counted = vec![false; graph.len()];
        for site in sites {
            let Some(id) = at(site.address) else { continue };
            let block = graph.block_of(id);
            // Where code is shared, what begins a block of one function may be in the middle of another's.
            if let Some(whole) = blocks::BlockCounts::of(&site.counts).filter(|_| graph.block(block).first == id) {
                counted[block.index()] = true;
                solver.block(block, Some(whole.executions));
            }
            let Some(counts) = BranchCounts::of(&site.counts) else { continue };
            counted[block.index()] = true;
            match counts {
                BranchCounts::Exec(exec) => solver.block(block, exec.executions.checked_add(exec.empty)),
                BranchCounts::Scalar(scalar) => {
                    solver.block(block, Some(scalar.executions));
                    if graph.block(block).last == id {
                        solver.edge(block, EdgeKind::Taken, Some(scalar.taken));
                        solver.edge(block, EdgeKind::FallThrough, scalar.executions.checked_sub(scalar.taken));
                    }
                }
            }
        }
        solver.solve(arrivals);
        let consistent = !solver.contradiction;
        let label = |(index, count): (usize, Option<u64>)| match count {
            Some(count) if counted[index] => (Some(count), CountSource::Counted),
            Some(count) if complete && consistent => (Some(count), CountSource::Derived),
            _ => (None, CountSource::Unknown),
        };
        BlockCounts { blocks: solver.blocks.into_iter().enumerate().map(label).collect(), consistent }
    }

    /// Whether no two counters contradict each other. Where they do, waves did not take the ways that the graph has.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        self.consistent
    }

    /// The executions of a block, and how they are known.
    #[must_use]
    pub fn of(&self, block: BlockId) -> (Option<u64>, CountSource) {
        self.blocks.get(block.index()).copied().unwrap_or((None, CountSource::Unknown))
    }
}

/// The blocks at which waves begin, twice the same if there is one, and the block that all waves pass once.
#[derive(Debug, Clone, Copy)]
struct Begins {
    blocks: [BlockId; 2],
    all_pass: BlockId,
}

/// The block at this address, if waves that begin at the entry come there next, and no others do.
fn second_entry(graph: &Graph, at: At<'_>, address: u64) -> Option<BlockId> {
    let id = at(address)?;
    let second = graph.block_of(id);
    if graph.block(second).first != id {
        return None;
    }
    // No block is passed twice: each has one predecessor, which is the one before.
    let mut here = graph.entry();
    let mut before = 0;
    while here != second {
        let block = graph.block(here);
        let [next] = block.successors.as_slice() else { return None };
        if block.predecessors.len() != before || block.exit.is_some() {
            return None;
        }
        (here, before) = (next.block, 1);
    }
    (graph.block(second).predecessors.len() == before && before == 1).then_some(second)
}

struct Solver<'a> {
    graph: &'a Graph,
    blocks: Vec<Option<u64>>,
    edges: Vec<Option<u64>>,
    /// Edge numbers by block.
    outgoing: Vec<Vec<usize>>,
    incoming: Vec<Vec<usize>>,
    changed: bool,
    contradiction: bool,
}

impl<'a> Solver<'a> {
    fn new(graph: &'a Graph) -> Self {
        let mut outgoing = vec![Vec::new(); graph.len()];
        let mut incoming = vec![Vec::new(); graph.len()];
        let mut count = 0;
        for block in graph.ids() {
            for edge in &graph.block(block).successors {
                outgoing[block.index()].push(count);
                incoming[edge.block.index()].push(count);
                count += 1;
            }
        }
        let (blocks, edges) = (vec![None; graph.len()], vec![None; count]);
        Solver { graph, blocks, edges, outgoing, incoming, changed: false, contradiction: false }
    }

    fn block(&mut self, block: BlockId, count: Option<u64>) {
        set(&mut self.blocks[block.index()], count, &mut self.changed, &mut self.contradiction);
    }

    fn edge(&mut self, block: BlockId, kind: EdgeKind, count: Option<u64>) {
        let edges = self.graph.block(block).successors.iter().zip(&self.outgoing[block.index()]);
        for (_, &number) in edges.filter(|(edge, _)| edge.kind == kind) {
            set(&mut self.edges[number], count, &mut self.changed, &mut self.contradiction);
        }
    }

    /// `arrivals`: where waves begin, and how many there are; of code that is entered unknown times at its entry, none.
    fn solve(&mut self, arrivals: Option<(Begins, u64)>) {
        let (begins, waves) = arrivals.unzip();
        let [first, second] = begins.map_or([self.graph.entry(); 2], |begins| begins.blocks);
        if let Some(begins) = begins.filter(|begins| begins.all_pass != first) {
            // How many begin at either is not known.
            self.block(begins.all_pass, waves);
        }
        self.changed = true;
        while std::mem::take(&mut self.changed) && !self.contradiction {
            for block in self.graph.ids() {
                // What comes in from outside is known but for an entry that is reached unknown times.
                let outside = match block == first || block == second {
                    true if first == second => waves,
                    true => None,
                    false => Some(0),
                };
                if let Some(outside) = outside {
                    self.balance(block, outside, true);
                }
                if self.graph.block(block).exit.is_none() {
                    self.balance(block, 0, false);
                }
            }
        }
    }

    /// A block's count is `outside` plus its edges in (or out): if all of these but one are known, so is the last.
    fn balance(&mut self, block: BlockId, outside: u64, incoming: bool) {
        let numbers = if incoming { &self.incoming[block.index()] } else { &self.outgoing[block.index()] };
        let mut sum = Some(outside);
        let mut missing = None;
        for &number in numbers {
            match self.edges[number] {
                Some(count) => sum = sum.and_then(|sum| sum.checked_add(count)),
                None if missing.is_some() => return,
                None => missing = Some(number),
            }
        }
        match (missing, self.blocks[block.index()]) {
            (None, _) => set(&mut self.blocks[block.index()], sum, &mut self.changed, &mut self.contradiction),
            (Some(number), Some(total)) => {
                let rest = sum.and_then(|sum| total.checked_sub(sum));
                set(&mut self.edges[number], rest, &mut self.changed, &mut self.contradiction);
            }
            (Some(_), None) => {}
        }
    }
}

/// Fills a place; an impossible number, or another one than is there, is a contradiction.
fn set(place: &mut Option<u64>, value: Option<u64>, changed: &mut bool, contradiction: &mut bool) {
    match (*place, value) {
        (_, None) => *contradiction = true,
        (None, Some(_)) => {
            *place = value;
            *changed = true;
        }
        (Some(old), Some(new)) => *contradiction |= old != new,
    }
}
