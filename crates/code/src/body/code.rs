//! One kernel or function.

use std::fmt;

use super::dataflow::{DataFlow, MaskSource, Origin, Values};
use super::reaching::Reaching;
use crate::access::LaneAccess;
use crate::cycles::Cycles;
use crate::graph::Graph;
use crate::in_flight;
use crate::instruction::{Counter, CounterId, Flow, Instruction};
use crate::lines::SourceLines;
use crate::stall::StallReason;
use crate::waits::Wait;
use wavetap_base::entity::{BlockId, InstId};
use wavetap_base::error::{Error, Result};

/// What holds for all code of a processor.
#[derive(Debug, Clone, PartialEq)]
pub struct Properties {
    /// The processor as its vendor names it: `gfx90a`, `sm_80`, `pvc`.
    pub target: String,
    /// Lanes of a wave.
    pub wave_size: u32,
    /// Cycles between two instructions of a wave, at least 1.
    pub issue_interval: u32,
    /// The latency of an operation of which only the counter is known.
    pub unknown_latency: Cycles,
    /// What samples call the reasons of stalls.
    pub stall_reasons: &'static [(&'static str, StallReason)],
    /// Whether executions can be counted. If not, and without samples, chains are not ranked by time.
    pub is_counted: bool,
}

impl Properties {
    /// Of a processor whose executions cannot be counted and that issues an instruction in each cycle, without reasons
    /// of stalls.
    #[must_use]
    pub fn new(target: impl Into<String>, wave_size: u32) -> Properties {
        Properties {
            target: target.into(),
            wave_size,
            issue_interval: 1,
            unknown_latency: Cycles::default(),
            stall_reasons: &[],
            is_counted: false,
        }
    }

    /// What a reason of a stall means, as samples name it.
    #[must_use]
    pub fn stall_reason(&self, name: &str) -> Option<StallReason> {
        self.stall_reasons.iter().find(|(known, _)| *known == name).map(|(_, reason)| *reason)
    }
}

impl Counter {
    /// A counter of this name.
    #[must_use]
    pub fn named(name: impl Into<std::borrow::Cow<'static, str>>) -> Counter {
        Counter { name: name.into(), depth: None }
    }
}

/// One kernel or function, as a slicer reads it. It is not changed after it was built.
pub struct Code<'a> {
    name: String,
    is_kernel: bool,
    properties: Properties,
    counters: Vec<Counter>,
    instructions: Vec<Instruction>,
    graph: Graph,
    waits: Vec<Wait>,
    dataflow: Box<dyn DataFlow + 'a>,
    lines: &'a dyn SourceLines,
}

impl fmt::Debug for Code<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = f.debug_struct("Code");
        all.field("name", &self.name).field("properties", &self.properties).field("counters", &self.counters);
        all.field("instructions", &self.instructions).field("waits", &self.waits).finish_non_exhaustive()
    }
}

impl Code<'_> {
    /// Mangled name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether waves begin here; else it is called.
    #[must_use]
    pub fn is_kernel(&self) -> bool {
        self.is_kernel
    }

    /// What holds for all code of its processor.
    #[must_use]
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// The counters of operations in flight.
    #[must_use]
    pub fn counters(&self) -> &[Counter] {
        &self.counters
    }

    /// A counter's name.
    ///
    /// # Panics
    /// If the counter is not of this code.
    #[must_use]
    pub fn counter_name(&self, counter: CounterId) -> &str {
        &self.counters[counter.index()].name
    }

    /// All instructions in address order.
    #[must_use]
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// All instruction indices in address order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = InstId> + ExactSizeIterator + use<> {
        (0..self.instructions.len() as u32).map(InstId)
    }

    /// One instruction.
    ///
    /// # Panics
    /// If `id` is not of this code.
    #[must_use]
    pub fn inst(&self, id: InstId) -> &Instruction {
        &self.instructions[id.index()]
    }

    /// The address of an instruction.
    ///
    /// # Panics
    /// If `id` is not of this code.
    #[must_use]
    pub fn address(&self, id: InstId) -> u64 {
        self.inst(id).address
    }

    /// The instruction that begins at `address`.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<InstId> {
        let found = self.instructions.binary_search_by_key(&address, |inst| inst.address);
        found.ok().map(|index| InstId(index as u32))
    }

    /// The lowest and the highest address, the latter exclusive. There may be gaps in between.
    #[must_use]
    pub fn span(&self) -> std::ops::Range<u64> {
        match (self.instructions.first(), self.instructions.last()) {
            (Some(first), Some(last)) => first.address..last.address + u64::from(last.length),
            _ => 0..0,
        }
    }

    /// Blocks and edges.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The block an instruction is in.
    ///
    /// # Panics
    /// If `id` is not of this code.
    #[must_use]
    pub fn block_of(&self, id: InstId) -> BlockId {
        self.graph.block_of(id)
    }

    /// The waits in address order, those of one instruction next to each other; of each instruction that is reached,
    /// all that [`Instruction::waits`] has.
    #[must_use]
    pub fn waits(&self) -> &[Wait] {
        &self.waits
    }

    /// The counters that an instruction waits for, as the vendor's assembler writes them.
    ///
    /// # Panics
    /// If `id` is not of this code.
    #[must_use]
    pub fn waited_counters(&self, id: InstId) -> Vec<&str> {
        let waits = self.inst(id).waits.iter();
        waits.map(|wait| wait.name.as_deref().unwrap_or_else(|| self.counter_name(wait.counter))).collect()
    }

    /// The source lines, by address.
    #[must_use]
    pub fn lines(&self) -> &dyn SourceLines {
        self.lines
    }

    /// [`DataFlow::producers`].
    #[must_use]
    pub fn producers(&self, at: InstId, of: Values) -> Vec<InstId> {
        self.dataflow.producers(self, at, of)
    }

    /// [`DataFlow::lanes_written_by`].
    #[must_use]
    pub fn lanes_written_by(&self, at: InstId) -> Option<InstId> {
        self.dataflow.lanes_written_by(self, at)
    }

    /// [`DataFlow::mask`].
    #[must_use]
    pub fn mask(&self, at: InstId) -> Option<MaskSource> {
        self.dataflow.mask(self, at)
    }

    /// [`DataFlow::origin`].
    #[must_use]
    pub fn origin(&self, load: InstId, executed: &dyn Fn(InstId) -> bool) -> Option<Origin> {
        self.dataflow.origin(self, load, executed)
    }

    /// [`DataFlow::lane_access`].
    #[must_use]
    pub fn lane_access(&self, at: InstId) -> Option<LaneAccess> {
        self.dataflow.lane_access(self, at)
    }

    /// [`DataFlow::extra_latency`].
    #[must_use]
    pub fn extra_latency(&self, at: InstId) -> u32 {
        self.dataflow.extra_latency(self, at)
    }
}

/// Builds a [`Code`].
pub struct CodeBuilder<'a> {
    name: String,
    is_kernel: bool,
    properties: Properties,
    counters: Vec<Counter>,
    instructions: Vec<Instruction>,
    graph: Option<Graph>,
    waits: Option<Vec<Wait>>,
    dataflow: Option<Box<dyn DataFlow + 'a>>,
    lines: &'a dyn SourceLines,
}

impl<'a> CodeBuilder<'a> {
    /// A kernel of this mangled name, whose instructions count in these counters.
    #[must_use]
    pub fn new(name: impl Into<String>, properties: Properties, counters: Vec<Counter>) -> CodeBuilder<'a> {
        CodeBuilder {
            name: name.into(),
            is_kernel: true,
            properties,
            counters,
            instructions: Vec::new(),
            graph: None,
            waits: None,
            dataflow: None,
            lines: &(),
        }
    }

    /// It is a function, which is called: its caller may have operations in flight.
    #[must_use]
    pub fn function(self) -> CodeBuilder<'a> {
        CodeBuilder { is_kernel: false, ..self }
    }

    /// The next instruction in address order. The first one is the entry, if no graph is given.
    pub fn push(&mut self, instruction: Instruction) -> InstId {
        let id = InstId(self.instructions.len() as u32);
        self.instructions.push(instruction);
        id
    }

    /// Its graph, in place of what [`Flow`] says.
    #[must_use]
    pub fn graph(self, graph: Graph) -> CodeBuilder<'a> {
        CodeBuilder { graph: Some(graph), ..self }
    }

    /// What its waits wait for, as [`Code::waits`] has it, in place of what [`in_flight`] finds.
    #[must_use]
    pub fn waits(self, waits: Vec<Wait>) -> CodeBuilder<'a> {
        CodeBuilder { waits: Some(waits), ..self }
    }

    /// What answers where values come from, in place of [`Reaching`].
    #[must_use]
    pub fn dataflow(self, dataflow: impl DataFlow + 'a) -> CodeBuilder<'a> {
        CodeBuilder { dataflow: Some(Box::new(dataflow)), ..self }
    }

    /// Its source lines.
    #[must_use]
    pub fn lines(self, lines: &'a dyn SourceLines) -> CodeBuilder<'a> {
        CodeBuilder { lines, ..self }
    }

    /// The code.
    ///
    /// # Errors
    /// Malformed if instructions are not in address order, if a branch goes where no instruction begins, if
    /// control runs past the last one, if there is none, or if a counter is not one of the code's.
    pub fn build(self) -> Result<Code<'a>> {
        let instructions = self.instructions;
        if instructions.is_empty() {
            return Err(Error::malformed("code without instructions").within(self.name));
        }
        for (inst, next) in instructions.iter().zip(&instructions[1..]) {
            if next.address <= inst.address {
                return Err(Error::malformed("instructions out of order").at(next.address).within(self.name));
            }
        }
        let known = |counter: CounterId| counter.index() < self.counters.len();
        for inst in &instructions {
            let issues = inst.issues.iter().map(|issue| issue.counter);
            if !issues.chain(inst.waits.iter().map(|wait| wait.counter)).all(known) {
                return Err(Error::malformed("a counter that the code does not have")
                    .at(inst.address)
                    .within(self.name));
            }
        }
        let graph = match self.graph {
            Some(graph) => graph,
            None => Graph::of_flow(&instructions).map_err(|error| error.within(self.name.clone()))?,
        };
        let waits = match self.waits {
            Some(waits) => waits,
            None => in_flight::waits(&instructions, &graph, &self.counters, self.is_kernel),
        };
        Ok(Code {
            name: self.name,
            is_kernel: self.is_kernel,
            properties: self.properties,
            counters: self.counters,
            instructions,
            graph,
            waits,
            dataflow: self.dataflow.unwrap_or_else(|| Box::new(Reaching)),
            lines: self.lines,
        })
    }
}

impl fmt::Debug for CodeBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flow = self.instructions.iter().filter(|inst| inst.flow != Flow::Next).count();
        let mut all = f.debug_struct("CodeBuilder");
        all.field("name", &self.name).field("instructions", &self.instructions.len()).field("branches", &flow);
        all.finish_non_exhaustive()
    }
}
