//! Buffer instructions whose memory is that of the lanes' own.

use rustc_hash::FxHashSet;
use wavetap_amdgpu::{Inst, Memory, Opcode, Reg, RegFile, Role};
use wavetap_base::entity::InstId;

use super::{Definition, Definitions};
use crate::kernel::Body;

/// Whether a buffer instruction accesses the lanes' private memory: its descriptor's upper half is what `s[0:3]` had at
/// the entry, where the ABI puts the descriptor of the private segment.
#[must_use]
pub fn accesses_private_segment(body: &Body, definitions: &Definitions<'_>, inst: InstId) -> bool {
    let code: &Inst = body.inst(inst);
    let descriptor = code.operand(Role::Srsrc).and_then(|operand| operand.reg());
    let Some(descriptor) = descriptor.filter(|reg| code.variant.memory == Memory::Buffer && reg.dwords == 4) else {
        return false;
    };
    let half = |first: u16| (2..4).contains(&(first % 4)) && first < 4;
    let mut seen: FxHashSet<(InstId, u16)> = FxHashSet::default();
    let mut work: Vec<(InstId, u16)> = vec![(inst, descriptor.first + 2), (inst, descriptor.first + 3)];
    while let Some((user, first)) = work.pop() {
        if !seen.insert((user, first)) {
            continue;
        }
        for definition in definitions.reaching(user, Reg::scalar(first, 1)) {
            match definition {
                Definition::Entry if half(first) => {}
                Definition::Inst(copy) => {
                    let Some(source) = copied_from(body.inst(copy), first) else { return false };
                    work.push((copy, source));
                }
                Definition::Entry | Definition::Call(_) => return false,
            }
        }
    }
    true
}

/// The scalar register that a move copies to this one.
fn copied_from(inst: &Inst, to: u16) -> Option<u16> {
    if !matches!(inst.opcode(), Opcode::S_MOV_B32 | Opcode::S_MOV_B64) {
        return None;
    }
    let written = inst.operand(Role::Sdst)?.reg()?;
    let read = inst.operand(Role::Src0)?.reg().filter(|reg| reg.file == RegFile::Scalar)?;
    Some(read.first + to.checked_sub(written.first)?)
}
