//! What a memory instruction names of registers.

use std::sync::Arc;

use smallvec::SmallVec;

use wavetap_amdgpu::{Access, Inst, Operand, Reg};

use super::Class;

/// What a memory instruction names of registers: those that it writes, and those that it reads.
pub(crate) type MemoryRegisters = Arc<[SmallVec<[Reg; 4]>; 2]>;

/// What a memory instruction names of registers; none of what is none.
pub(crate) fn of(inst: &Inst, class: Class) -> Option<MemoryRegisters> {
    if !matches!(class, Class::Smem | Class::Vmem) {
        return None;
    }
    // How long it is depends on the image; its first register is sure.
    let open = inst.variant.image.is_some_and(|image| image.address.is_none());
    let length = |operand: &Operand| if open && operand.role.is_address() { 1 } else { operand.dwords.max(1) };
    let of = |other: Access| {
        let accessed = inst.operands.iter().filter(|operand| operand.access != other);
        accessed.filter_map(|operand| operand.reg().map(|reg| Reg { dwords: length(operand), ..reg })).collect()
    };
    Some(Arc::new([of(Access::Read), of(Access::Write)]))
}
