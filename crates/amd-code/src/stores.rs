//! What a load of LDS or scratch memory reads: the store that wrote it, where that is known.
//!
//! A store and a load access the same place if they compute their address from the same values: the same definitions of
//! the same registers, and constants that overlap. So a spill is found again where it is reloaded. Of several stores to
//! a place those count that a path leads from, to the load, without another that writes all of it in all lanes in
//! between, and without the address being made anew: what was written in the round of a loop before is elsewhere if the
//! address changed since. Where no store is alike, but only one instruction of the body writes LDS, what is loaded is
//! from that one, of whatever wave.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use wavetap_amdgpu::{Access, Flags, Inst, Memory, OpcodeFlags, Reg, Role, Value};
use wavetap_analysis::cfg::{Block, Cfg};
use wavetap_analysis::dataflow::{Definitions, SsaDef, ValueId};
use wavetap_analysis::kernel::{Body, Flow};
use wavetap_base::entity::{BlockId, InstId};
use wavetap_code::Origin;

/// Blocks that are looked at for the stores that a load may read. Spills are reloaded near by, and what is far is the
/// less certain the farther.
const FARTHEST: usize = 256;

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

/// What may write memory that a body reads again.
#[derive(Debug, Clone, Copy)]
struct Writer {
    inst: InstId,
    /// None for calls.
    memory: Option<Memory>,
}

impl Writer {
    /// Whether it can write what is loaded from this memory, as far as the kind of memory tells.
    fn may_write(self, memory: Memory) -> bool {
        match self.memory {
            None | Some(Memory::Flat) => true,
            Some(Memory::Lds) => memory == Memory::Lds,
            Some(Memory::Scratch | Memory::Buffer) => memory != Memory::Lds,
            // A buffer may be anywhere but in LDS.
            Some(Memory::Global | Memory::Image) => memory == Memory::Buffer,
            Some(Memory::None | Memory::Scalar | Memory::Gds | Memory::Message) => false,
        }
    }
}

/// The stores of a body to memory that it reads again.
#[derive(Debug)]
pub(crate) struct Stores {
    by_address: FxHashMap<Key, Vec<Store>>,
    /// Ascending.
    writers: Vec<Writer>,
    /// Which of them write LDS for certain.
    lds: Vec<InstId>,
    calls: bool,
}

/// The code that a load is in.
#[derive(Clone, Copy)]
pub(crate) struct InBody<'a> {
    pub(crate) body: &'a Body,
    pub(crate) cfg: &'a Cfg,
    pub(crate) definitions: &'a Definitions<'a>,
}

impl Stores {
    pub(crate) fn of(body: &Body, definitions: &Definitions<'_>) -> Stores {
        let mut stores =
            Stores { by_address: FxHashMap::default(), writers: Vec::new(), lds: Vec::new(), calls: false };
        for id in body.ids() {
            let inst = body.inst(id);
            if matches!(body.flow(id), Flow::Call(_)) {
                stores.calls = true;
                stores.writers.push(Writer { inst: id, memory: None });
            }
            // Loads straight into LDS.
            let into_lds = inst.is_any(OpcodeFlags::TO_LDS);
            if into_lds
                || (inst.variant.flags.intersects(Flags::STORE | Flags::ATOMIC) && inst.variant.memory == Memory::Lds)
            {
                stores.lds.push(id);
            }
            if into_lds {
                stores.writers.push(Writer { inst: id, memory: Some(Memory::Lds) });
            }
            if !inst.variant.flags.intersects(Flags::STORE | Flags::ATOMIC) {
                continue;
            }
            stores.writers.push(Writer { inst: id, memory: Some(inst.variant.memory) });
            if let Some((from, to)) = bytes(inst).filter(|_| local(inst)) {
                stores.by_address.entry(key(body, definitions, id)).or_default().push(Store { inst: id, from, to });
            }
        }
        stores
    }

    /// Where the value comes from that a load of LDS or scratch memory gives; none for other instructions.
    pub(crate) fn origin(&self, code: InBody<'_>, load: InstId, executed: &dyn Fn(InstId) -> bool) -> Option<Origin> {
        let inst = code.body.inst(load);
        if !inst.variant.flags.contains(Flags::LOAD) || inst.variant.flags.contains(Flags::STORE) || !local(inst) {
            return None;
        }
        let key = key(code.body, code.definitions, load);
        let alike = bytes(inst).zip(self.by_address.get(&key));
        let found = alike.and_then(|(bytes, stores)| self.nearest(code, load, bytes, stores, executed));
        Some(match (found, self.lds.as_slice()) {
            (Some(store), _) => store,
            (None, [only]) if inst.variant.memory == Memory::Lds && !self.calls => Origin::OnlyStore(*only),
            // A buffer may be anywhere.
            _ if inst.variant.memory == Memory::Buffer => return None,
            _ => Origin::Unknown,
        })
    }

    /// The nearest of the stores to the same address that a path leads from.
    fn nearest(
        &self,
        code: InBody<'_>,
        load: InstId,
        (from, to): (i64, i64),
        stores: &[Store],
        executed: &dyn Fn(InstId) -> bool,
    ) -> Option<Origin> {
        let memory = code.body.inst(load).variant.memory;
        let (mut made, mut made_at) = (SmallVec::<[InstId; 4]>::new(), SmallVec::<[BlockId; 4]>::new());
        for reg in address_registers(code.body, load) {
            for origin in code.definitions.ssa_defs(load, reg) {
                match origin {
                    SsaDef::Entry => {}
                    SsaDef::Inst(inst) => made.push(inst),
                    SsaDef::Merge(block) => made_at.push(block),
                }
            }
        }
        // Other waves write LDS whenever they come to it.
        let elsewhere =
            |writer: &Writer| writer.may_write(memory) && !stores.iter().any(|store| store.inst == writer.inst);
        let (mut nearest, mut certain) = (None, memory != Memory::Lds || !self.writers.iter().any(elsewhere));
        let mut seen = FxHashSet::default();
        let own = code.cfg.block_of(load);
        let mut work = VecDeque::from([(own, code.cfg.block(own).first..load, true)]);
        while let Some((block, range, same_round)) = work.pop_front() {
            let made_last = made.iter().copied().filter(|inst| range.contains(inst)).max();
            let mut ended = false;
            for writer in self
                .writers_in(&range)
                .iter()
                .rev()
                .take_while(|writer| made_last.is_none_or(|made| made <= writer.inst))
            {
                if !writer.may_write(memory) || !executed(writer.inst) {
                    continue;
                }
                match stores.iter().find(|store| store.inst == writer.inst) {
                    Some(store) if store.from < to && from < store.to => {
                        certain &= nearest.is_none_or(|nearest| nearest == store.inst);
                        nearest = nearest.or(Some(store.inst));
                        // Lanes of another round may be others.
                        ended = store.from <= from
                            && to <= store.to
                            && same_round
                            && code.definitions.covers(store.inst, load);
                        if ended {
                            break;
                        }
                    }
                    Some(_) => {}
                    None => certain = false,
                }
            }
            if ended {
                continue;
            }
            let elsewhere = made_last.is_some() || made_at.contains(&block) || seen.len() >= FARTHEST;
            certain &= !elsewhere && block != code.cfg.entry();
            if elsewhere {
                continue;
            }
            // What is later in the order of execution first, and the round before first of all.
            let mut predecessors: SmallVec<[BlockId; 2]> =
                code.cfg.block(block).predecessors.iter().map(|edge| edge.block).collect();
            predecessors.sort_by_key(|before| Reverse(code.cfg.place_of(*before)));
            for before in predecessors {
                if seen.insert(before) {
                    let (Block { first, last, .. }, same_round) =
                        (code.cfg.block(before), same_round && !code.cfg.retreats(before, block));
                    work.push_back((before, *first..InstId(last.0 + 1), same_round));
                }
            }
        }
        nearest.map(|inst| Origin::Store { inst, certain })
    }

    /// The writers among these instructions.
    fn writers_in(&self, range: &Range<InstId>) -> &[Writer] {
        let from = self.writers.partition_point(|writer| writer.inst < range.start);
        let to = self.writers.partition_point(|writer| writer.inst < range.end);
        &self.writers[from..to]
    }
}

/// Whether it accesses memory that only the wave, or its workgroup, sees; buffers may be so (scratch before gfx9.4 and
/// gfx11).
fn local(inst: &Inst) -> bool {
    matches!(inst.variant.memory, Memory::Lds | Memory::Scratch | Memory::Buffer)
}

/// The bytes accessed, relative to the address without constant; none if there are several places.
fn bytes(inst: &Inst) -> Option<(i64, i64)> {
    if inst.variant.memory_bytes == 0 || inst.is_any(OpcodeFlags::TWO_ADDRESSES | OpcodeFlags::LDS_SRC2) {
        return None;
    }
    let from = i64::from(inst.modifiers.offset);
    Some((from, from + i64::from(inst.variant.memory_bytes)))
}

/// The operands that an address is computed from.
fn address_operands(inst: &Inst) -> impl Iterator<Item = &wavetap_amdgpu::Operand> {
    let address =
        |role: Role| role.is_address() || matches!(role, Role::Saddr | Role::Addr | Role::Soffset | Role::Srsrc);
    inst.operands.iter().filter(move |operand| operand.access == Access::Read && address(operand.role))
}

fn address_registers(body: &Body, id: InstId) -> impl Iterator<Item = Reg> {
    address_operands(body.inst(id)).filter_map(move |operand| body.register(id, operand))
}

fn key(body: &Body, definitions: &Definitions<'_>, id: InstId) -> Key {
    let inst = body.inst(id);
    let parts = address_operands(inst).map(|operand| {
        let part = match body.register(id, operand) {
            Some(reg) => Part::Values(definitions.values(id, reg).collect()),
            None => Part::Constant(operand.value),
        };
        (operand.role, part)
    });
    (inst.variant.memory, parts.collect())
}
