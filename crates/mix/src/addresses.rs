//! ALU instructions that compute nothing but addresses.

use fixedbitset::FixedBitSet;
use wavetap_amdgpu::{Flags, Implicit, Inst, Memory, OpcodeFlags, Reg, Role};
use wavetap_analysis::dataflow::{Definition, Definitions};
use wavetap_analysis::kernel::{Body, BodyKind, Flow};
use wavetap_base::entity::InstId;

/// The instructions of the vector and scalar ALU whose results lead to addresses of memory and to nothing else, through
/// whatever other such instructions. None for functions and for bodies with calls: what the other side does with
/// registers is not followed.
#[must_use]
pub fn address_arithmetic(body: &Body, definitions: &Definitions<'_>) -> Option<FixedBitSet> {
    let leaves =
        |id: InstId| matches!(body.flow(id), Flow::Call(_) | Flow::TailCall(_) | Flow::Return | Flow::IndirectJump);
    if body.kind() == BodyKind::Function || body.ids().any(leaves) {
        return None;
    }
    // Who uses what: of each instruction, those that read its results, and whether as an address.
    let mut uses: Vec<Vec<(InstId, bool)>> = vec![Vec::new(); body.len()];
    for user in body.ids() {
        let inst = body.inst(user);
        let mut read = |reg: Reg, is_address: bool| {
            for definition in definitions.reaching(user, reg) {
                if let Definition::Inst(inst) = definition {
                    uses[inst.index()].push((user, is_address));
                }
            }
        };
        let accesses = is_access(inst);
        for operand in inst.operands.iter().filter(|operand| operand.access.reads()) {
            if let Some(reg) = body.register(user, operand) {
                read(reg, accesses && is_address(operand.role));
            }
        }
        for reg in inst.variant.implicit_reads.regs(inst.wave_size.into()) {
            read(reg, accesses && reg == Reg::M0);
        }
        if inst.modifiers.gds {
            read(Reg::M0, true);
        }
        // What it reads without naming it: registers by index.
        if inst.is_any(OpcodeFlags::CHOOSES_REGISTERS) {
            return None;
        }
    }
    let mut only: FixedBitSet = body.ids().filter(|id| is_arithmetic(body, *id)).map(|id| id.index()).collect();
    only.grow(body.len());
    loop {
        let wrong: Vec<usize> = only
            .ones()
            .filter(|inst| {
                uses[*inst].is_empty() || !uses[*inst].iter().all(|(user, address)| *address || only[user.index()])
            })
            .collect();
        if wrong.is_empty() {
            break;
        }
        wrong.into_iter().for_each(|inst| only.remove(inst));
    }
    // Those that only feed each other lead to no address.
    let mut leads = FixedBitSet::with_capacity(body.len());
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for inst in only.ones() {
            if !leads[inst] && uses[inst].iter().any(|(user, address)| *address || leads[user.index()]) {
                leads.insert(inst);
                changed = true;
            }
        }
    }
    Some(leads)
}

fn is_access(inst: &Inst) -> bool {
    inst.variant.flags.intersects(Flags::LOAD | Flags::STORE | Flags::ATOMIC)
        && inst.variant.memory != Memory::None
        && !inst.is_any(OpcodeFlags::CROSSBAR | OpcodeFlags::GWS)
}

fn is_address(role: Role) -> bool {
    role.is_address()
        || matches!(role, Role::Saddr | Role::Sbase | Role::Soffset | Role::Srsrc | Role::Ssamp | Role::Addr)
}

/// Whether all an instruction does is to compute what it writes to registers.
fn is_arithmetic(body: &Body, id: InstId) -> bool {
    let inst = body.inst(id);
    let flags = inst.variant.flags;
    let acts = OpcodeFlags::STATEFUL
        .union(OpcodeFlags::MATRIX)
        .union(OpcodeFlags::BARRIER)
        .union(OpcodeFlags::SENDMSG)
        .union(OpcodeFlags::HARDWARE_REGISTER);
    flags.intersects(Flags::VALU | Flags::SALU)
        && !flags.intersects(Flags::LOAD | Flags::STORE | Flags::ATOMIC | Flags::WAIT | Flags::BARRIER)
        && body.flow(id) == Flow::Next
        && !inst.is_any(acts)
        && !inst.variant.implicit_writes.intersects(Implicit::EXEC | Implicit::MODE)
        && !body.writes(id).any(|reg| reg.overlaps(Reg::EXEC))
        && body.writes(id).next().is_some()
}
