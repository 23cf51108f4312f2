//! The pointers that accesses are based on: which of them have one in common.
//!
//! A guess that only says which accesses share a slot: the addresses' low halves are followed backward through copies
//! and sums to what was loaded.

use crate::function::ClonedFunction;
use rustc_hash::FxHashSet;
use wavetap_amdgpu::{Access, Flags, Opcode, Operand, Reg, RegFile, Role, Value};
use wavetap_analysis::dataflow::{Definition, Definitions};
use wavetap_analysis::kernel::AddressOperands;
use wavetap_base::entity::InstId;

/// Definitions that are looked at for one access.
const MOST_DEFINITIONS: usize = 64;

/// What an address is based on: a register that an instruction loads, or none that was found of this access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Pointer {
    Loaded(InstId, u16),
    Access(InstId),
}

/// The pointer of each access.
pub(super) fn of<'o>(
    function: &ClonedFunction<'_>,
    definitions: &Definitions<'_>,
    accesses: impl Iterator<Item = (InstId, &'o AddressOperands)>,
) -> Vec<Pointer> {
    let of_one = |(inst, operands): (InstId, &AddressOperands)| {
        let scalar =
            operands.scalars.first().and_then(|value| if let Value::Reg(reg) = value { Some(*reg) } else { None });
        let base = scalar.or(operands.vectors.first().copied());
        base.and_then(|reg| loaded(function, definitions, inst, reg)).unwrap_or(Pointer::Access(inst))
    };
    accesses.map(of_one).collect()
}

/// What a register is based on that an instruction reads. A load of several registers comes before one of a single one,
/// which may be an index.
fn loaded(function: &ClonedFunction<'_>, definitions: &Definitions<'_>, inst: InstId, reg: Reg) -> Option<Pointer> {
    let body = function.body;
    let mut seen: FxHashSet<InstId> = FxHashSet::default();
    let mut single = None;
    let mut work = vec![(inst, reg)];
    while let Some((reader, reg)) = work.pop() {
        for definition in definitions.reaching(reader, reg) {
            let Definition::Inst(writer) = definition else { continue };
            if seen.len() == MOST_DEFINITIONS || !seen.insert(writer) {
                continue;
            }
            let inst = body.inst(writer);
            if inst.variant.flags.contains(Flags::LOAD) {
                let written = inst.writes().find(|written| written.overlaps(reg));
                let Some(written) = written else { continue };
                let pointer = Pointer::Loaded(writer, reg.first.saturating_sub(written.first));
                if written.dwords > 1 {
                    return Some(pointer);
                }
                single = single.or(Some(pointer));
                continue;
            }
            let mut sources: Vec<Reg> = sources(inst.opcode(), &inst.operands).collect();
            // What is looked at first is the last one: scalar registers rather than those of lanes.
            sources.sort_by_key(|reg| reg.file == RegFile::Scalar);
            work.extend(sources.into_iter().map(|reg| (writer, reg)));
        }
    }
    single
}

/// The registers with the low halves of what an instruction copies or adds.
fn sources(opcode: Opcode, operands: &[Operand]) -> impl Iterator<Item = Reg> {
    let is_followed = move |role: Role| match opcode {
        Opcode::V_MAD_U64_U32 | Opcode::V_MAD_I64_I32 | Opcode::V_MAD_CO_U64_U32 | Opcode::V_MAD_CO_I64_I32 => {
            role == Role::Src2
        }
        Opcode::V_MAD_NC_U64_U32 | Opcode::V_MAD_NC_I64_I32 | Opcode::V_LSHL_ADD_U64 => role == Role::Src2,
        Opcode::V_MOV_B32 | Opcode::V_MOV_B64 | Opcode::S_MOV_B32 | Opcode::S_MOV_B64 => true,
        Opcode::V_READFIRSTLANE_B32 | Opcode::V_READLANE_B32 | Opcode::V_WRITELANE_B32 => true,
        Opcode::V_ADD_CO_U32 | Opcode::V_ADD_U32 | Opcode::S_ADD_U32 | Opcode::S_ADD_NC_U64 => true,
        Opcode::S_CSELECT_B32 | Opcode::S_CSELECT_B64 | Opcode::V_CNDMASK_B32 => true,
        _ => false,
    };
    let read = operands.iter().filter(move |operand| operand.access == Access::Read && is_followed(operand.role));
    let numbered = |reg: &Reg| reg.file != RegFile::Scalar || reg.first < wavetap_amdgpu::scalar::VCC;
    read.filter_map(Operand::reg).filter(numbered).map(|reg| Reg { dwords: 1, ..reg })
}
