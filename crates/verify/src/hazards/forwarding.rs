//! Results of vector instructions that are used too early (gfx11): hazards that depend on how many vector instructions
//! lie between.
//!
//! From each vector instruction the paths are followed back as far as the hazards reach. A vector memory, LDS or export
//! instruction, or a wait for vector results, ends them. Between original instructions alone they are the compiler's
//! business.

use smallvec::SmallVec;

use super::classes::{is_lds, is_salu, is_valu, is_vector_memory, predecessors};
use crate::alignment::Alignment;
use crate::finding::{Finding, Rule};
use wavetap_amdgpu::{Access, Encoding, EventHazards, Flags, Inst, Reg, RegFile, alu_wait};
use wavetap_analysis::cfg::Cfg;
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::Body;
use wavetap_base::entity::InstId;

/// The most vector instructions, and transcendentals, between a transcendental and a use of its result that is too
/// early.
const TRANS_VALUS: u32 = 5;
const TRANS_TRANS: u32 = 1;
/// The most between two writes on either side of a write of EXEC, and between the second and a use of both, for the use
/// to be too early.
const FORWARD_WRITES: u32 = 2;
const FORWARD_USE: u32 = 4;
/// So far the search for such a write is followed back: vector instructions.
const FORWARD_FARTHEST: u32 = FORWARD_WRITES + FORWARD_USE + 1;
/// Paths are followed back over this many instructions: scalar ones do not count.
const LONGEST: usize = 400;

/// Checks one body's new code.
pub(crate) fn check(new: &Body, cfg: &Cfg, alignment: &Alignment, findings: &mut Vec<Finding>) {
    let (target, rules) = (new.target(), new.target().event_hazards());
    let transcendental = |inst: &Inst| inst.variant.flags.contains(Flags::TRANS);
    let trans = rules.contains(EventHazards::VALU_TRANS_USE) && new.insts().iter().any(transcendental);
    let forward = rules.contains(EventHazards::VALU_PARTIAL_FORWARD) && target.wave_size() == 64;
    if !trans && !forward {
        return;
    }
    let paths = Paths::new(new, alignment, cfg);
    let forward = forward && paths.marks.iter().any(|mark| mark.contains(Mark::WRITES_EXEC));
    if !trans && !forward {
        return;
    }
    let inserts_trans = trans && new.ids().any(|id| paths.is(id, Mark::TRANS) && paths.is_inserted(id));
    let mut found = |id: InstId, message: String| {
        findings.push(Finding::new(Rule::Hazard, format!("{}: {message}", new.inst(id).name())).at(new.address(id)));
    };
    for id in new.ids().filter(|id| paths.is(*id, Mark::VALU)) {
        // Between original instructions alone there is nothing to look for.
        let asked = trans && (inserts_trans || paths.is_inserted(id));
        if let Some(producer) = asked.then(|| paths.transcendental(id)).flatten() {
            found(
                id,
                format!(
                    "uses the result of the transcendental at {:#x} with no wait for vector results",
                    new.address(producer)
                ),
            );
        }
        if let Some(exec) = forward.then(|| paths.partial(id)).flatten() {
            let message = format!(
                "uses results from both sides of the write of EXEC at {:#x} with no wait for them",
                new.address(exec)
            );
            found(id, message);
        }
    }
}

bitflags::bitflags! {
    /// What an instruction is on a path.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct Mark: u8 {
        /// A vector instruction.
        const VALU = 1;
        /// A transcendental.
        const TRANS = 1 << 1;
        /// A scalar instruction that writes EXEC.
        const WRITES_EXEC = 1 << 2;
        /// It ends the path.
        const ENDS = 1 << 3;
    }
}

impl Mark {
    fn of(inst: &Inst) -> Mark {
        let mut mark = Mark::empty();
        mark.set(Mark::VALU, is_valu(inst));
        mark.set(Mark::TRANS, inst.variant.flags.contains(Flags::TRANS));
        mark.set(
            Mark::WRITES_EXEC,
            !is_valu(inst) && is_salu(inst) && inst.writes().any(|reg| reg.overlaps(Reg::EXEC)),
        );
        mark.set(Mark::ENDS, ends(inst));
        mark
    }
}

struct Paths<'a> {
    new: &'a Body,
    alignment: &'a Alignment,
    cfg: &'a Cfg,
    /// By instruction.
    marks: Vec<Mark>,
}

/// Where on a path a search for two results is.
#[derive(Clone, PartialEq)]
struct Search {
    at: InstId,
    /// Vector instructions since.
    valus: u32,
    /// Where each source was written: vector instructions since, before EXEC was, by inserted code.
    written: SmallVec<[Option<(u32, bool, bool)>; 4]>,
    /// The write of EXEC.
    exec: Option<InstId>,
    /// All writes of EXEC on the way were inserted.
    exec_inserted: bool,
}

impl<'a> Paths<'a> {
    fn new(new: &'a Body, alignment: &'a Alignment, cfg: &'a Cfg) -> Self {
        Paths { new, alignment, cfg, marks: new.insts().iter().map(Mark::of).collect() }
    }

    fn is(&self, id: InstId, mark: Mark) -> bool {
        self.marks[id.index()].contains(mark)
    }

    fn is_inserted(&self, id: InstId) -> bool {
        self.alignment.original(id).is_none()
    }

    fn sources(&self, id: InstId) -> SmallVec<[Reg; 4]> {
        let inst = self.new.inst(id);
        let read = inst.operands.iter().filter(|operand| matches!(operand.access, Access::Read | Access::ReadWrite));
        let mut sources: SmallVec<[Reg; 4]> = read
            .filter_map(|operand| self.new.register(id, operand))
            .filter(|reg| reg.file == RegFile::Vector)
            .collect();
        sources.sort_unstable();
        sources.dedup();
        sources
    }

    fn writes(&self, id: InstId) -> RegSet {
        self.new.writes(id).filter(|reg| reg.file == RegFile::Vector).collect()
    }

    /// A transcendental whose result is used too early.
    fn transcendental(&self, consumer: InstId) -> Option<InstId> {
        let mut sources: Option<RegSet> = None;
        let mut seen: SmallVec<[(InstId, u32, u32); 16]> = SmallVec::new();
        let mut work: SmallVec<[(InstId, u32, u32); 8]> =
            predecessors(self.cfg, consumer).into_iter().map(|id| (id, 0, 0)).collect();
        // A bounded search backward from one consumer: path-sensitive, by the instructions passed so far.
        while let Some((id, mut valus, mut trans)) = work.pop() {
            if valus > TRANS_VALUS
                || trans > TRANS_TRANS
                || self.is(id, Mark::ENDS)
                || seen.contains(&(id, valus, trans))
                || seen.len() > LONGEST
            {
                continue;
            }
            seen.push((id, valus, trans));
            if self.is(id, Mark::VALU) {
                let transcendental = self.is(id, Mark::TRANS);
                if transcendental && (self.is_inserted(id) || self.is_inserted(consumer)) {
                    let sources = sources.get_or_insert_with(|| self.sources(consumer).into_iter().collect());
                    if self.writes(id).intersects(sources) {
                        return Some(id);
                    }
                }
                valus += 1;
                trans += u32::from(transcendental);
            }
            work.extend(predecessors(self.cfg, id).into_iter().map(|id| (id, valus, trans)));
        }
        None
    }

    /// Whether [`Paths::partial`] may meet a write of EXEC, by the same paths.
    fn meets_exec(&self, consumer: InstId) -> bool {
        let mut seen: SmallVec<[(InstId, u32); 32]> = SmallVec::new();
        let mut work: SmallVec<[(InstId, u32); 8]> =
            predecessors(self.cfg, consumer).into_iter().map(|id| (id, 0)).collect();
        // Bounded and path-sensitive, like `transcendental`.
        while let Some((id, valus)) = work.pop() {
            if valus > FORWARD_FARTHEST || self.is(id, Mark::ENDS) || seen.contains(&(id, valus)) {
                continue;
            }
            // Those that are followed far are left to the search itself.
            if self.is(id, Mark::WRITES_EXEC) || seen.len() > LONGEST {
                return true;
            }
            seen.push((id, valus));
            let valus = valus + u32::from(self.is(id, Mark::VALU));
            work.extend(predecessors(self.cfg, id).into_iter().map(|id| (id, valus)));
        }
        false
    }

    /// A write of EXEC such that one source was written shortly before and another one shortly after.
    fn partial(&self, consumer: InstId) -> Option<InstId> {
        if !self.meets_exec(consumer) {
            return None;
        }
        let sources = self.sources(consumer);
        if sources.len() < 2 {
            return None;
        }
        let start = |at| Search {
            at,
            valus: 0,
            written: SmallVec::from_elem(None, sources.len()),
            exec: None,
            exec_inserted: true,
        };
        let mut seen: Vec<Search> = Vec::new();
        let mut work: Vec<Search> = predecessors(self.cfg, consumer).into_iter().map(start).collect();
        // Bounded and path-sensitive: what was written depends on the path.
        while let Some(mut search) = work.pop() {
            if search.valus > FORWARD_FARTHEST
                || self.is(search.at, Mark::ENDS)
                || seen.contains(&search)
                || seen.len() > LONGEST
            {
                continue;
            }
            seen.push(search.clone());
            if self.is(search.at, Mark::VALU) {
                let writes = self.writes(search.at);
                for (source, written) in sources.iter().zip(&mut search.written) {
                    if written.is_none() && writes.overlaps(*source) {
                        *written = Some((search.valus, search.exec.is_some(), self.is_inserted(search.at)));
                    }
                }
                if let Some(exec) = search.exec.filter(|_| self.is_early(consumer, &search)) {
                    return Some(exec);
                }
                search.valus += 1;
            } else if self.is(search.at, Mark::WRITES_EXEC) && search.written.iter().any(Option::is_some) {
                search.exec.get_or_insert(search.at);
                search.exec_inserted &= self.is_inserted(search.at);
            }
            work.extend(predecessors(self.cfg, search.at).into_iter().map(|at| Search { at, ..search.clone() }));
        }
        None
    }

    fn is_early(&self, consumer: InstId, search: &Search) -> bool {
        let written = || search.written.iter().flatten();
        let after = written().filter(|(valus, before_exec, _)| !before_exec && *valus <= FORWARD_USE);
        after.clone().any(|(second, _, by_inserted)| {
            written().any(|(first, before_exec, too)| {
                let near = *before_exec && first.saturating_sub(second + 1) <= FORWARD_WRITES;
                near && (self.is_inserted(consumer) || search.exec_inserted || *by_inserted || *too)
            })
        })
    }
}

/// Whether an instruction waits for all vector results, or takes as long.
fn ends(inst: &Inst) -> bool {
    is_vector_memory(inst)
        || is_lds(inst)
        || inst.variant.encoding == Encoding::Exp
        || alu_wait(inst).is_some_and(|wait| wait.va_vdst == Some(0))
}
