//! What the address of a simple access to global memory is made of.

use wavetap_amdgpu::{Encoding, Inst, Role, Target};

use super::semantics::{Source, Ty};
use super::sources::{by_role, scalar_of};

/// What an address is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GlobalAddress {
    /// The vector register with the offset, or the first of the two with the address.
    pub vector: u16,
    /// The scalar registers with the base.
    pub base: Option<u16>,
    /// What a signed register with the offset is multiplied by; none if it is not signed.
    pub signed: Option<u8>,
    pub offset: u64,
}

impl GlobalAddress {
    /// Of an instruction whose address is made so.
    pub(crate) fn of(target: Target, inst: &Inst) -> Option<GlobalAddress> {
        if !matches!(inst.variant.encoding, Encoding::Global | Encoding::Flat) {
            return None;
        }
        let size = if inst.modifiers.scale_offset { inst.variant.memory_bytes.max(1) } else { 1 };
        let Source::Vector(vector) = by_role(inst, Role::Vaddr, Ty::B32, false) else { return None };
        let signed = target.signed_global_offsets().then_some(size);
        Some(GlobalAddress {
            vector,
            base: scalar_of(inst, Role::Saddr),
            signed,
            offset: i64::from(inst.modifiers.offset) as u64,
        })
    }
}
