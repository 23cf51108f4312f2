//! The compiler has covered every read of a result whose latency varies: on all paths a wait for its scoreboard, or for
//! the one that stands for it, comes first. So with scoreboards, units and roles as they are read here, a forward
//! analysis must find no read of a result that may be in flight. With wait masks that are off by one bit it must find
//! one nearly everywhere: else it proves nothing.
//!
//! The analysis is by instruction and by path, with the rules written here. Calls clear it, because the callee may have
//! waited. What an instruction under `@P0` writes, one under `@!P0` does not read.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use wavetap_base::entity::InstId;
use wavetap_code::{Code, Event, Flow, Operation, Wait, WaitCertainty, Write};
use wavetap_nvidia::container::Cubin;

/// What was found in code.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Reads {
    pub functions: u64,
    pub instructions: u64,
    /// Pairs of an operation that may be in flight when an instruction reads its result.
    pub pairs: u64,
    /// Of these, those in which the instruction does not wait for it, either.
    pub violations: u64,
    /// Waits of masks, and those among them for which nothing is in flight.
    pub waits: u64,
    pub idle_waits: u64,
    /// Waits that have exactly one operation.
    pub single_waits: u64,
    /// Results that waits wait for, and those that [`Code::waits`] does not have there: by the order of their unit they
    /// are complete already.
    pub listed: u64,
    pub implied: u64,
}

impl AddAssign for Reads {
    fn add_assign(&mut self, other: Reads) {
        self.functions += other.functions;
        self.instructions += other.instructions;
        self.pairs += other.pairs;
        self.violations += other.violations;
        self.waits += other.waits;
        self.idle_waits += other.idle_waits;
        self.single_waits += other.single_waits;
        self.listed += other.listed;
        self.implied += other.implied;
    }
}

/// What may be in flight: of each instruction a bit for each scoreboard that stands for its result, and `UNCOVERED`.
type Set = Vec<u8>;
/// No scoreboard stands for it yet: the next one of its unit that has one will.
const UNCOVERED: u8 = 1 << 6;

struct Analysis<'c> {
    code: &'c Code<'c>,
    waits: BTreeMap<usize, Vec<&'c Wait>>,
    found: Reads,
    /// Whether violations are printed.
    shows: bool,
}

impl Analysis<'_> {
    /// A wait: of those that leave, how many of them [`Code::waits`] has is counted.
    fn wait(&mut self, wait: &Wait, in_flight: &mut Set, report: bool) {
        let listed = |id: usize| {
            let named = |each: &wavetap_code::WaitedOperation| {
                each.operation == Operation::Inst(InstId(id as u32)) && each.event == Event::Result
            };
            wait.operations.iter().find(|each| named(each)).map(|each| each.certainty)
        };
        for (id, flying) in in_flight.iter_mut().enumerate() {
            let leaves = match wait.count {
                0 => *flying & 1 << wait.counter.0 != 0,
                _ => listed(id) == Some(WaitCertainty::Must),
            };
            if leaves {
                *flying = 0;
                self.found.listed += u64::from(report && listed(id).is_some());
                self.found.implied += u64::from(report && listed(id).is_none());
            }
        }
        if report {
            self.found.waits += 1;
            self.found.idle_waits += u64::from(wait.operations.is_empty());
            self.found.single_waits += u64::from(wait.operations.len() == 1);
        }
    }

    fn step(&mut self, index: usize, in_flight: &mut Set, report: bool) {
        let code = self.code;
        let inst = &code.instructions()[index];
        let before = if report { in_flight.clone() } else { Set::new() };
        for wait in self.waits.get(&index).cloned().unwrap_or_default() {
            let of_mask = inst.waits.iter().any(|each| each.counter == wait.counter && !each.guarded);
            if of_mask || inst.guard.is_none() {
                self.wait(wait, in_flight, report);
            }
        }
        for (id, _) in before.iter().enumerate().filter(|(id, flying)| **flying != 0 && *id != index) {
            let producer = &code.instructions()[id];
            let is_read = |write: &Write| inst.reads.iter().any(|read| read.location.overlaps(write.location));
            let opposite = producer.guard.zip(inst.guard).is_some_and(|(one, other)| one.is_opposite(other));
            if producer.writes.iter().any(is_read) && !opposite {
                self.found.pairs += 1;
                if in_flight[id] != 0 {
                    self.found.violations += 1;
                    if self.shows {
                        let (name, at, from) = (code.name(), inst.address, producer.address);
                        println!("  {name} {at:#x} {} reads what is in flight: {from:#x} {}", inst.text, producer.text);
                    }
                }
            }
        }
        if matches!(inst.flow, Flow::Call(_)) {
            in_flight.fill(0);
        }
        if inst.writes.is_empty() {
            return;
        }
        match inst.issues.iter().find(|issue| issue.event == Event::Result) {
            Some(issue) => {
                for (id, flying) in in_flight.iter_mut().enumerate().filter(|(_, flying)| **flying & UNCOVERED != 0) {
                    if inst.unit.is_some() && code.instructions()[id].unit == inst.unit {
                        *flying = *flying & !UNCOVERED | 1 << issue.counter.0;
                    }
                }
                in_flight[index] |= 1 << issue.counter.0;
            }
            None if inst.unit.is_some() => in_flight[index] |= UNCOVERED,
            None => {}
        }
    }
}

/// The reads of one function.
fn of_code(code: &Code<'_>, shows: bool) -> Reads {
    let graph = code.graph();
    let mut waits: BTreeMap<usize, Vec<&Wait>> = BTreeMap::new();
    for wait in code.waits() {
        waits.entry(wait.inst.index()).or_default().push(wait);
    }
    let count = code.instructions().len();
    let found = Reads { functions: 1, instructions: count as u64, ..Reads::default() };
    let mut analysis = Analysis { code, waits, found, shows };
    let mut starts: Vec<Option<Set>> = vec![None; graph.len()];
    starts[graph.entry().index()] = Some(vec![0; count]);
    let mut work = vec![graph.entry()];
    while let Some(block) = work.pop() {
        let Some(mut state) = starts[block.index()].clone() else { continue };
        graph.block(block).insts().for_each(|id| analysis.step(id.index(), &mut state, false));
        for edge in &graph.block(block).successors {
            let known = &mut starts[edge.block.index()];
            let mut changed = known.is_none();
            for (mine, theirs) in known.get_or_insert_with(|| vec![0; count]).iter_mut().zip(&state) {
                changed |= *theirs & !*mine != 0;
                *mine |= *theirs;
            }
            if changed {
                work.push(edge.block);
            }
        }
    }
    for block in graph.ids() {
        let Some(mut state) = starts[block.index()].take() else { continue };
        graph.block(block).insts().for_each(|id| analysis.step(id.index(), &mut state, true));
    }
    analysis.found
}

/// The reads of all functions of a cubin; `shows` prints those that are violations.
pub fn of_cubin(cubin: &Cubin, shows: bool) -> Reads {
    let mut all = Reads::default();
    for function in cubin.functions() {
        all += of_code(&function.code(&()).expect("code"), shows);
    }
    all
}

/// The cubin with wait masks that name the next scoreboard in place of each.
pub fn with_shifted_masks(bytes: &[u8], cubin: &Cubin) -> Cubin {
    let mut changed = bytes.to_vec();
    for function in cubin.functions() {
        let start = function.file_offset() as usize;
        for inst in changed[start..start + function.bytes().len()].as_chunks_mut::<16>().0 {
            let word = u128::from_le_bytes(*inst);
            let mask = word >> 116 & 63;
            *inst = (word & !(63 << 116) | (mask << 1 & 63) << 116).to_le_bytes();
        }
    }
    Cubin::parse(changed, "shifted").expect("a cubin")
}
