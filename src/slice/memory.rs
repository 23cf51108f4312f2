//! What a load of LDS or scratch memory reads: the store that wrote it, where that is known.
//!
//! A store and a load access the same place if they compute their address from the same values: the same definitions of the same registers, and constants that overlap. So a spill
//! is found again where it is reloaded. Where no store is alike, but only one instruction of the body writes LDS, what is loaded is from that one, of whatever wave.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::dataflow::{Definitions, ValueId};
use crate::entity::InstId;
use crate::isa::{Access, Flags, Inst, Memory, Role, Value};
use crate::kernel::{Body, Flow};

/// Which memory, and how an address in it is computed, but for its constant.
type Key = (Memory, SmallVec<[(Role, Part); 4]>);

/// One part of an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Part {
    Constant(Value),
    Values(SmallVec<[ValueId; 4]>),
}

/// A store with the bytes that it writes, from its address without constant on.
#[derive(Debug, Clone, Copy)]
struct Store {
    inst: InstId,
    from: i64,
    to: i64,
}

/// Where a loaded value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// A store to the same place.
    Store(InstId),
    /// The one instruction that writes this memory.
    OnlyStore(InstId),
    /// It is not known which store.
    Unknown,
}

/// The stores of a body to memory that it reads again.
#[derive(Debug)]
pub(super) struct Stores {
    by_address: FxHashMap<Key, Vec<Store>>,
    /// The instructions that write LDS.
    lds: Vec<InstId>,
    calls: bool,
}

impl Stores {
    pub(super) fn of(body: &Body, definitions: &Definitions<'_>) -> Stores {
        let mut stores = Stores { by_address: FxHashMap::default(), lds: Vec::new(), calls: false };
        for id in body.ids() {
            let inst = body.inst(id);
            stores.calls |= matches!(body.flow(id), Flow::Call(_));
            if !inst.variant.flags.intersects(Flags::STORE | Flags::ATOMIC) || !local(inst) {
                // Loads straight into LDS.
                if inst.name().ends_with("_lds") || inst.name().contains("_load_lds_") {
                    stores.lds.push(id);
                }
                continue;
            }
            if inst.variant.memory == Memory::Lds {
                stores.lds.push(id);
            }
            if let Some((from, to)) = bytes(inst) {
                stores.by_address.entry(key(body, definitions, id)).or_default().push(Store { inst: id, from, to });
            }
        }
        stores
    }

    /// Where the value comes from that a load of LDS or scratch memory gives; none for other instructions.
    pub(super) fn origin(
        &self,
        body: &Body,
        definitions: &Definitions<'_>,
        load: InstId,
        executed: impl Fn(InstId) -> bool,
    ) -> Option<Origin> {
        let inst = body.inst(load);
        if !inst.variant.flags.contains(Flags::LOAD) || inst.variant.flags.contains(Flags::STORE) || !local(inst) {
            return None;
        }
        let alike = bytes(inst).zip(self.by_address.get(&key(body, definitions, load)));
        let found = alike.and_then(|((from, to), stores)| {
            let overlapping = stores.iter().filter(|store| store.from < to && from < store.to && executed(store.inst));
            // The last before it, by address; in a loop the last of all.
            overlapping.map(|store| store.inst).max_by_key(|store| (*store < load, *store))
        });
        Some(match (found, self.lds.as_slice()) {
            (Some(store), _) => Origin::Store(store),
            (None, [only]) if inst.variant.memory == Memory::Lds && !self.calls => Origin::OnlyStore(*only),
            // A buffer may be anywhere.
            _ if inst.variant.memory == Memory::Buffer => return None,
            _ => Origin::Unknown,
        })
    }
}

/// Whether it accesses memory that only the wave, or its workgroup, sees; buffers may be so (scratch before gfx9.4 and gfx11).
fn local(inst: &Inst) -> bool {
    matches!(inst.variant.memory, Memory::Lds | Memory::Scratch | Memory::Buffer)
}

/// The bytes accessed, relative to the address without constant; none if there are several places.
fn bytes(inst: &Inst) -> Option<(i64, i64)> {
    let places = ["2_b32", "2_b64", "2st64", "_2addr_", "_stride64_"];
    if inst.variant.memory_bytes == 0 || places.iter().any(|part| inst.name().contains(part)) {
        return None;
    }
    let from = i64::from(inst.modifiers.offset);
    Some((from, from + i64::from(inst.variant.memory_bytes)))
}

fn key(body: &Body, definitions: &Definitions<'_>, id: InstId) -> Key {
    let inst = body.inst(id);
    let address = |role: Role| role.is_address() || matches!(role, Role::Saddr | Role::Addr | Role::Soffset | Role::Srsrc);
    let parts = inst.operands.iter().filter(|operand| operand.access == Access::Read && address(operand.role));
    let parts = parts.map(|operand| {
        let part = match body.register(id, operand) {
            Some(reg) => Part::Values(definitions.values(id, reg).collect()),
            None => Part::Constant(operand.value),
        };
        (operand.role, part)
    });
    (inst.variant.memory, parts.collect())
}
