//! Inserted code reads no undefined register: what a kernel finds in its registers is what its descriptor
//! asks for, and nothing else.
//!
//! A register counts as set if it is on any path. Functions are entered with whatever their callers have, and where an
//! unknown function is called or registers are chosen at run time everything may have to be saved; there nothing is
//! said.

use crate::alignment::Alignment;
use crate::finding::{Finding, Rule};
use wavetap_amdgpu::{Access, OpcodeFlags, Reg, RegFile};
use wavetap_analysis::cfg::Cfg;
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::{Body, CallTarget, Flow};
use wavetap_analysis::solver::{Analysis, Lattice, solve};
use wavetap_base::entity::{BlockId, InstId};
use wavetap_object::code_object::InitialRegisters;

/// Checks the new code of a kernel that is entered with these registers.
pub(crate) fn check(
    new: &Body,
    cfg: &Cfg,
    alignment: &Alignment,
    entry: &InitialRegisters,
    findings: &mut Vec<Finding>,
) {
    let unknown = |id| matches!(new.flow(id), Flow::Call(CallTarget::Unknown) | Flow::IndirectJump);
    if new.ids().any(unknown) || new.opcode_flags().intersects(OpcodeFlags::CHOOSES_REGISTERS) {
        return;
    }
    let at_entry = at_entry(entry);
    if is_plainly_set(new, cfg, alignment, at_entry) {
        return;
    }
    let block_in = solve(&cfg.forward(), &mut Defined { new, cfg }, [(cfg.entry(), at_entry)]);
    for block in cfg.ids() {
        let Some(mut defined) = block_in[block.index()] else { continue };
        for id in cfg.block(block).insts() {
            if alignment.original(id).is_some() {
                step(new, id, &mut defined);
                continue;
            }
            let mut read = read(new, id).filter(|reg| !defined.contains(*reg)).peekable();
            if read.peek().is_some() {
                let unset: RegSet = read.flat_map(parts).filter(|part| !defined.contains(*part)).collect();
                let message = format!("{} reads {unset:?}, which nothing has set", new.inst(id).name());
                findings.push(Finding::new(Rule::Undefined, message).at(new.address(id)));
            }
            step(new, id, &mut defined);
        }
    }
}

/// The registers that are set on some path to each block.
struct Defined<'a> {
    new: &'a Body,
    cfg: &'a Cfg,
}

impl Analysis for Defined<'_> {
    type Node = BlockId;
    type State = RegSet;

    fn transfer(&mut self, block: BlockId, defined: &mut RegSet) {
        self.cfg.block(block).insts().for_each(|id| step(self.new, id, defined));
    }

    fn join(&mut self, _: BlockId, state: &mut RegSet, incoming: &RegSet) -> bool {
        state.join(incoming)
    }
}

fn step(new: &Body, id: InstId, defined: &mut RegSet) {
    new.writes(id).for_each(|reg| defined.insert(reg));
    if matches!(new.flow(id), Flow::Call(_)) {
        *defined = RegSet::ALL;
    }
}

/// Whether everything that inserted code reads is among what the entry, its block and inserted code set, without going
/// round loops. That is less than is set, and mostly enough: then nothing else has to be looked at.
fn is_plainly_set(new: &Body, cfg: &Cfg, alignment: &Alignment, at_entry: RegSet) -> bool {
    let mut block_in = vec![RegSet::EMPTY; cfg.len()];
    block_in[cfg.entry().index()] = at_entry;
    for &block in cfg.reverse_postorder() {
        let mut set = block_in[block.index()];
        for id in cfg.block(block).insts() {
            let is_inserted = alignment.original(id).is_none();
            if is_inserted && read(new, id).any(|reg| !set.contains(reg)) {
                return false;
            }
            if is_inserted || block == cfg.entry() {
                new.writes(id).for_each(|reg| set.insert(reg));
            }
        }
        cfg.block(block).successors.iter().for_each(|edge| block_in[edge.block.index()].add_all(&set));
    }
    true
}

/// The numbered registers that an instruction reads by its operands.
fn read(new: &Body, id: InstId) -> impl Iterator<Item = Reg> + '_ {
    let operands = new.inst(id).operands.iter().filter(|operand| operand.access == Access::Read);
    operands.filter_map(move |operand| new.register(id, operand)).filter(|reg| numbered(new, *reg))
}

/// Registers with a number: the others are there, or the analysis of what the original sees has them.
fn numbered(new: &Body, reg: Reg) -> bool {
    reg.file != RegFile::Scalar || u32::from(reg.first) < new.target().addressable_sgprs()
}

fn parts(reg: Reg) -> impl Iterator<Item = Reg> {
    (0..u16::from(reg.dwords)).map(move |index| Reg { first: reg.first + index, dwords: 1, ..reg })
}

fn at_entry(entry: &InitialRegisters) -> RegSet {
    let mut defined = RegSet::EMPTY;
    for (first, width) in crate::values::entry::fields(entry) {
        if let Some(first) = first {
            defined.insert(Reg::scalar(first, width as u8));
        }
    }
    if let Some(preload) = entry.kernarg_preload {
        defined.insert(Reg::scalar(preload.first, preload.length as u8));
    }
    for number in 0..entry.work_item_ids.vgprs() {
        defined.insert(Reg::vector(number, 1));
    }
    defined
}
