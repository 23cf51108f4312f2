//! Which memory FLAT instructions access, as far as the code says.
//!
//! A FLAT address is in LDS or in scratch if its upper half is that of the aperture (AMDGPUUsage, "Address Spaces"),
//! and compilers make such a half from `src_shared_base` or `src_private_base`. The search goes backward from the upper
//! half through copies; it answers only if every definition that reaches is the upper half of one aperture. Arithmetic
//! on upper halves, selections and values from memory are not followed.

use rustc_hash::FxHashSet;

use super::definitions::{Definition, Definitions, writes_whole_lanes};
use crate::kernel::{AddressForm, AddressOperands, Body};
use wavetap_amdgpu::{Memory, Opcode, Operand, Reg, RegFile, Role, Value, scalar};
use wavetap_base::entity::InstId;

/// A memory that has an aperture in the flat address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Aperture {
    /// LDS.
    Lds,
    /// The private memory of lanes.
    Scratch,
}

/// Definitions of one address that are looked at; an address with more is not known.
const MOST_DEFINITIONS: usize = 64;
/// Operand code of `src_private_base`; `src_shared_limit` lies between (AMDGPU ISA, scalar operands).
const PRIVATE_BASE: u16 = scalar::SHARED_BASE + 2;

impl Aperture {
    /// The memory that a FLAT instruction accesses in all lanes; none of other instructions, and where the code does
    /// not say.
    ///
    /// # Panics
    /// If `id` is not of this body.
    #[must_use]
    pub fn of(body: &Body, definitions: &Definitions<'_>, id: InstId) -> Option<Aperture> {
        let inst = body.inst(id);
        if inst.variant.memory != Memory::Flat || AddressOperands::of(inst)?.form != AddressForm::Lanes {
            return None;
        }
        let address = body.register(id, inst.operand(Role::Vaddr)?)?;
        let mut found: Option<Aperture> = None;
        let mut seen: FxHashSet<(InstId, Reg)> = FxHashSet::default();
        let mut work = vec![(id, dword(address, 1)?)];
        while let Some((user, reg)) = work.pop() {
            if !seen.insert((user, reg)) {
                continue;
            }
            if seen.len() > MOST_DEFINITIONS {
                return None;
            }
            let reaching = definitions.reaching(user, reg);
            if reaching.is_empty() {
                return None;
            }
            for definition in reaching {
                let Definition::Inst(copy) = definition else { return None };
                match copied(body, copy, reg)? {
                    Copied::Register(source) => work.push((copy, source)),
                    Copied::Aperture(aperture) if found.is_none_or(|found| found == aperture) => {
                        found = Some(aperture);
                    }
                    Copied::Aperture(_) => return None,
                }
            }
        }
        found
    }
}

/// What a copy puts into a register.
enum Copied {
    /// What another register holds.
    Register(Reg),
    /// The upper half of an aperture.
    Aperture(Aperture),
}

/// What an instruction copies to a register; none if it does anything else.
fn copied(body: &Body, id: InstId, to: Reg) -> Option<Copied> {
    let inst = body.inst(id);
    let plain = |inst: &wavetap_amdgpu::Inst| {
        let m = &inst.modifiers;
        writes_whole_lanes(inst) && !m.clamp && (m.neg | m.abs | m.neg_hi | m.omod) == 0
    };
    let Some(halves) = inst.halves() else {
        if !plain(inst) {
            return None;
        }
        let at = offset(body.register(id, inst.operands.first()?)?, to)?;
        return match inst.opcode() {
            Opcode::S_MOV_B32
            | Opcode::S_MOV_B64
            | Opcode::V_MOV_B32
            | Opcode::V_MOV_B64
            | Opcode::V_READFIRSTLANE_B32 => source(body, id, inst.operand(Role::Src0)?, at),
            Opcode::V_PK_MOV_B32 => {
                let role = if at == 0 { Role::Src0 } else { Role::Src1 };
                source(body, id, inst.operand(role)?, u16::from(inst.modifiers.op_sel >> at & 1))
            }
            _ => None,
        };
    };
    let half = halves.iter().find(|half| half.writes().any(|reg| reg.overlaps(to)))?;
    if half.opcode().alone() != Some(Opcode::V_MOV_B32) {
        return None;
    }
    let mut operands = half.operands();
    let (_, from) = (operands.next()?, operands.next()?);
    source(body, id, from, 0)
}

/// So many dwords after the first of an operand.
fn source(body: &Body, id: InstId, operand: &Operand, at: u16) -> Option<Copied> {
    if let Value::Reg(reg) = operand.value
        && reg.file == RegFile::Scalar
    {
        // A register of one dword stands for either form; only that of 64 bits has the upper half.
        let aperture = match reg.first {
            scalar::SHARED_BASE => Some(Aperture::Lds),
            PRIVATE_BASE => Some(Aperture::Scratch),
            _ => None,
        };
        if let Some(aperture) = aperture {
            return (operand.dwords == 2 && at == 1).then_some(Copied::Aperture(aperture));
        }
    }
    dword(body.register(id, operand)?, at).map(Copied::Register)
}

fn offset(whole: Reg, part: Reg) -> Option<u16> {
    let at = part.first.checked_sub(whole.first).filter(|_| whole.file == part.file)?;
    (at < u16::from(whole.dwords)).then_some(at)
}

fn dword(reg: Reg, at: u16) -> Option<Reg> {
    (at < u16::from(reg.dwords)).then(|| Reg { first: reg.first + at, dwords: 1, ..reg })
}
