//! Where instructions may do something else than they say: where the numbers of vector registers have an index added to
//! them (`s_set_gpr_idx_on`, gfx8 and gfx9), and those of which operands; and where vector instructions may be skipped
//! (`s_setvskip`), as [`Body::may_be_skipped`] says.
//!
//! Forward over the control-flow graph: what *may* be so on some path. A bit of MODE switches it on, M0 bits 15:12 say
//! which operands it is about (three sources, then the destination), bits 7:0 are the index, which is never negative;
//! who reads past the last register reads v0, who writes there writes nothing ("VGPR Indexing" in AMD's GCN3 and Vega
//! ISA guides). A body is entered with the mode off, and calls return with it off or as it was.

use crate::cfg::Cfg;
use crate::kernel::{Body, Flow};
use wavetap_amdgpu::{Inst, Opcode, OpcodeFlags, Reg, Value};
use wavetap_base::entity::InstId;

bitflags::bitflags! {
    /// Operands whose register numbers may have an index added.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct Indexed: u8 {
        /// The first source.
        const SRC0 = 1;
        /// The second source.
        const SRC1 = 1 << 1;
        /// The third source.
        const SRC2 = 1 << 2;
        /// The destination.
        const DESTINATION = 1 << 3;
        /// Any source.
        const SOURCES = 7;
        /// All operands.
        const OPERANDS = 15;
        /// The mode is on.
        const ON = 1 << 4;
        /// The instruction may be skipped.
        const SKIPPED = 1 << 5;
    }
}

/// Before each instruction of a body, what may be indexed.
#[derive(Debug, Clone, Default)]
pub struct Indexing {
    /// Empty if the mode is nowhere on, and nothing may be skipped.
    before: Vec<Indexed>,
}

impl Indexing {
    /// Analyses a body.
    #[must_use]
    pub fn of(body: &Body) -> Indexing {
        // On targets without the mode its bit of MODE is another one.
        let has_mode = || {
            wavetap_amdgpu::has_operation(body.target(), Opcode::S_SET_GPR_IDX_ON) && body.insts().iter().any(sets_mode)
        };
        let may_start = body.opcode_flags().contains(OpcodeFlags::INDEX_MODE)
            || body.opcode_flags().contains(OpcodeFlags::HARDWARE_REGISTER) && has_mode();
        let mut indexing = if may_start { Indexing::follow(body) } else { Indexing::default() };
        for id in body.ids().filter(|id| body.may_be_skipped(*id)) {
            indexing.before.resize(body.len(), Indexed::empty());
            indexing.before[id.index()] |= Indexed::SKIPPED;
        }
        indexing
    }

    /// Follows the mode.
    fn follow(body: &Body) -> Indexing {
        let cfg = Cfg::build(body);
        let mut before = vec![Indexed::empty(); body.len()];
        let mut at_start = vec![Indexed::empty(); cfg.len()];
        // What M0 holds is not known.
        at_start[cfg.entry().index()] = Indexed::OPERANDS;
        let mut changed = true;
        while changed {
            changed = false;
            for &block in cfg.reverse_postorder() {
                let mut state = at_start[block.index()];
                for id in cfg.block(block).insts() {
                    before[id.index()] = state;
                    state = after(body, id, state);
                }
                for edge in &cfg.block(block).successors {
                    let start = &mut at_start[edge.block.index()];
                    changed |= !start.contains(state);
                    *start |= state;
                }
            }
        }
        Indexing { before }
    }

    /// Which operands of an instruction may be indexed, if it is one of the vector ALU; none where the mode is off. And
    /// whether it may be skipped.
    #[must_use]
    pub fn at(&self, id: InstId) -> Indexed {
        let state = self.before.get(id.index()).copied().unwrap_or_default();
        state & if state.contains(Indexed::ON) { Indexed::OPERANDS | Indexed::SKIPPED } else { Indexed::SKIPPED }
    }

    /// Whether the mode may be on before an instruction.
    #[must_use]
    pub fn may_be_on(&self, id: InstId) -> bool {
        self.before.get(id.index()).is_some_and(|state| state.contains(Indexed::ON))
    }
}

/// The state after an instruction.
fn after(body: &Body, id: InstId, state: Indexed) -> Indexed {
    let inst = body.inst(id);
    if matches!(body.flow(id), Flow::Call(_)) {
        return state | Indexed::OPERANDS;
    }
    match inst.opcode() {
        Opcode::S_SET_GPR_IDX_ON => operands(inst) | Indexed::ON,
        Opcode::S_SET_GPR_IDX_OFF => state - Indexed::ON,
        Opcode::S_SET_GPR_IDX_MODE => operands(inst) | state & Indexed::ON,
        Opcode::S_SET_GPR_IDX_IDX => state,
        _ if sets_mode(inst) => state | Indexed::ON,
        _ if inst.writes().any(|reg| reg.overlaps(Reg::M0)) => state | Indexed::OPERANDS,
        _ => state,
    }
}

/// What the immediate of an instruction that chooses operands says: its last operand.
fn operands(inst: &Inst) -> Indexed {
    match inst.operands.last().map(|operand| operand.value) {
        Some(Value::Imm(bits)) => Indexed::from_bits_truncate(bits as u8) & Indexed::OPERANDS,
        Some(Value::InlineInt(bits)) => Indexed::from_bits_truncate(bits as u8) & Indexed::OPERANDS,
        _ => Indexed::OPERANDS,
    }
}

/// Whether an instruction writes the bit of MODE that switches indexing on.
fn sets_mode(inst: &Inst) -> bool {
    /// `HW_REG_MODE`.
    const MODE: u8 = 1;
    const GPR_IDX_EN: u32 = 27;
    inst.is_any(OpcodeFlags::SETREG)
        && inst.hardware_register().is_none_or(|(number, bits)| number == MODE && bits.contains(&GPR_IDX_EN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataflow::{Accesses, RegSet};
    use crate::kernel::assembly::{Listing, branch_scc1, end, op};

    fn indexed(body: &Body, number: u32) -> Indexed {
        Indexing::of(body).at(InstId(number))
    }

    fn source(listing: Listing) -> Listing {
        listing.push(op("v_alu").writes(Reg::vector(3, 1)).reads(Reg::vector(7, 1)))
    }

    #[test]
    fn it_lasts_from_on_to_off() {
        let listing = source(Listing::at(0)).push(op("s_set_gpr_idx_on").imm(1));
        let body = source(source(listing).push(op("s_set_gpr_idx_off"))).push(end()).kernel();
        let found: Vec<Indexed> = body.ids().map(|id| Indexing::of(&body).at(id)).collect();
        let none = Indexed::empty();
        assert_eq!(found, [none, none, Indexed::SRC0, Indexed::SRC0, none, none]);
    }

    #[test]
    fn it_is_on_where_one_path_has_it_on() {
        let listing = Listing::at(0).push(branch_scc1("there")).push(op("s_set_gpr_idx_on").imm(8)).label("there");
        let body = source(listing).push(end()).kernel();
        assert_eq!(indexed(&body, 2), Indexed::OPERANDS, "on one of the paths nobody knows what M0 says");
        assert!(Indexing::of(&body).may_be_on(InstId(2)));
    }

    #[test]
    fn the_operands_may_be_others_when_m0_is_written() {
        let listing = |then: crate::kernel::assembly::Op| {
            let on = Listing::at(0).push(op("s_set_gpr_idx_on").imm(1)).push(then);
            source(on).push(end()).kernel()
        };
        assert_eq!(indexed(&listing(op("s_alu").writes(Reg::M0)), 2), Indexed::OPERANDS);
        assert_eq!(indexed(&listing(op("s_set_gpr_idx_mode").imm(8)), 2), Indexed::DESTINATION);
        assert_eq!(indexed(&listing(op("s_set_gpr_idx_idx").writes(Reg::M0)), 2), Indexed::SRC0);
    }

    #[test]
    fn an_index_reaches_upward() {
        let listing = |operands| source(Listing::at(0).push(op("s_set_gpr_idx_on").imm(operands))).push(end()).kernel();
        let accesses = |body: &Body| Accesses::at(body, InstId(1), &Indexing::of(body));
        let reading = accesses(&listing(1));
        let (below, above, last) = (Reg::vector(6, 1), Reg::vector(200, 1), Reg::vector(0, 1));
        assert!(reading.reads.contains(above) && reading.reads.contains(last) && !reading.reads.contains(below));
        assert_eq!(reading.writes.vectors(), std::iter::once(Reg::vector(3, 1)).collect::<RegSet>());
        let writing = accesses(&listing(8));
        assert!(writing.writes.contains(above) && !writing.writes.contains(Reg::vector(2, 1)));
        assert!(writing.reads.contains(above), "what is not written stays");
        assert!(!writing.lane_kills().contains(Reg::vector(3, 1)), "another one may be written in its place");
    }
}
