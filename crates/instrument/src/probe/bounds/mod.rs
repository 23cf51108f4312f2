//! The probe of bounds: accesses to global memory whose address is in nothing that is allocated.
//!
//! A wave keeps some of the ranges that it found last in slots of a vector register's lanes
//! ([`crate::frame::kept_ranges`]), and each site compares the addresses of all active lanes with the range of one slot
//! ([`check`]): two comparisons of 64 bits. If a lane is outside, the range of the first such lane's address is found
//! among the table's first entries, which the wave keeps in registers, and is the next one in the slot. Only if a lane
//! is outside of that one, too, or the table has more entries than a wave has lanes, all lanes search for theirs in
//! memory ([`search`]).
//!
//! Which slot a site has is chosen when code is inserted: one for each pointer ([`pointers`]) and size of access, as
//! long as there are any. The result is right whatever the slot holds: it is always a range of the table
//! ([`wavetap_profile::bounds`]), or one that no address is in.
//!
//! The probe that drops accesses takes the bad lanes out of EXEC for the instruction ([`drops`]).

mod buffer;
mod check;
mod drops;
mod pointers;
mod search;

use super::{Emitter, FunctionProbe, Needs, Probe, ProbeSite, memory};
use crate::frame::kept_ranges;
use crate::function::ClonedFunction;
use buffer::Buffer;
use check::Slot;
use wavetap_amdgpu::{Flags, Memory, Opcode, has_operation};
use wavetap_analysis::dataflow::{RegSet, accesses_private_segment};
use wavetap_analysis::kernel::{AddressForm, AddressOperands, Reason, Refusal, Stop};
use wavetap_base::entity::InstId;
use wavetap_base::error::Error;
use wavetap_profile::probes::bounds::{ACCESS, DROPPED_ACCESS, DROPPING_PROBE, PROBE};

/// See the module.
#[derive(Debug)]
pub(super) struct Bounds {
    /// Lanes that are out of bounds do not execute the access.
    pub(super) drops: bool,
}

/// The accesses of a function, and the slot of each.
#[derive(Debug)]
struct AccessesOf {
    sites: Vec<ProbeSite>,
    slots: Vec<Slot>,
    drops: bool,
}

/// An access that is checked.
#[derive(Debug)]
struct Access {
    operands: AddressOperands,
    is_flat: bool,
    /// Bytes that each lane accesses.
    bytes: u32,
    /// The offset in the instruction.
    offset: i32,
    /// What the offset of a lane is multiplied by.
    scale: u32,
    /// Its lanes, if it is one of a buffer.
    buffer: Option<Buffer>,
    /// Lanes that are out of bounds do not execute it.
    is_dropped: bool,
}

/// Whether an instruction accesses global memory at addresses of its lanes, or might.
fn is_access(function: &ClonedFunction<'_>, id: InstId) -> bool {
    let inst = function.body.inst(id);
    inst.variant.flags.intersects(Flags::LOAD | Flags::STORE | Flags::ATOMIC)
        && matches!(inst.variant.memory, Memory::Global | Memory::Flat | Memory::Buffer)
}

/// An access, or why its addresses cannot be computed.
fn access(function: &ClonedFunction<'_>, id: InstId, is_dropped: bool) -> std::result::Result<Access, &'static str> {
    let inst = function.body.inst(id);
    let unknown = "its addresses cannot be computed before it";
    let operands = memory::measured(function, id).ok_or(unknown)?;
    let bytes = u32::from(inst.variant.memory_bytes);
    let buffer = match operands.form {
        AddressForm::Buffer => Some(Buffer::of(function, id, &operands)?),
        AddressForm::Lanes | AddressForm::BaseAndLanes if bytes != 0 => None,
        _ => return Err(unknown),
    };
    Ok(Access {
        operands,
        is_flat: inst.variant.memory == Memory::Flat,
        bytes,
        offset: inst.modifiers.offset,
        scale: if inst.modifiers.scale_offset { bytes } else { 1 },
        buffer,
        is_dropped,
    })
}

impl Probe for Bounds {
    fn name(&self) -> &'static str {
        if self.drops { DROPPING_PROBE } else { PROBE }
    }

    fn summary(&self) -> &'static str {
        match self.drops {
            false => "Accesses to global memory outside of what is allocated",
            true => "The same, and these accesses are not executed: as with --drop",
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            alone: Some("its checks take registers that others need"),
            global_memory: Some("addresses are compared with a table"),
            allocations: true,
            keeps_lanes: true,
            narrows_exec: self.drops,
            ..Needs::default()
        }
    }

    fn prepare(&self, function: &ClonedFunction<'_>) -> std::result::Result<Box<dyn FunctionProbe>, Stop> {
        let (mut sites, mut accesses) = (Vec::new(), Vec::new());
        let definitions = function.definitions();
        for id in function.body.ids().filter(|id| !function.is_before_entry(*id) && is_access(function, *id)) {
            if accesses_private_segment(function.body, &definitions, id) {
                continue;
            }
            let refuse = |detail: String| Refusal::at(Reason::UncheckedAccess, function.body.address(id), detail);
            let name = function.body.inst(id).name();
            if !has_operation(function.body.target(), Opcode::GLOBAL_ATOMIC_ADD) {
                return Err(refuse(format!("{name}: the target has FLAT memory instructions alone")).into());
            }
            let access = access(function, id, self.drops).map_err(|why| refuse(format!("{name}: {why}")))?;
            if self.drops {
                drops::check(function, id).map_err(|(reason, detail)| {
                    Refusal::at(reason, function.body.address(id), format!("{name}: {detail}"))
                })?;
            }
            sites.push(ProbeSite { inst: id, kind: if self.drops { &DROPPED_ACCESS } else { &ACCESS } });
            accesses.push((id, access));
        }
        let pointers =
            pointers::of(function, &definitions, accesses.iter().map(|(id, access)| (*id, &access.operands)));
        let bytes = accesses.iter().map(|(_, access)| access.bytes);
        let most = kept_ranges::slots(function.body.target().wave_size());
        let drops = self.drops;
        Ok(Box::new(AccessesOf { sites, drops, slots: Slot::choose(pointers.into_iter().zip(bytes), most) }))
    }
}

impl FunctionProbe for AccessesOf {
    fn sites(&self) -> &[ProbeSite] {
        &self.sites
    }

    fn reads(&self, function: &ClonedFunction<'_>, site: &ProbeSite) -> RegSet {
        memory::measured(function, site.inst).iter().flat_map(AddressOperands::registers).collect()
    }

    fn at_site(&self, site: &ProbeSite, emitter: &mut Emitter<'_, '_>) -> std::result::Result<(), Stop> {
        let function = emitter.function();
        let lost = || Error::internal("a checked access is none");
        let access = access(function, site.inst, self.drops).map_err(|_| lost())?;
        let point = memory::point(function, site.inst, &access.operands).ok_or_else(lost)?;
        let index = self.sites.binary_search_by_key(&site.inst, |site| site.inst).map_err(|_| lost())?;
        let slot = *self.slots.get(index).ok_or_else(lost)?;
        if self.drops {
            let zeros = drops::zeros(function, site.inst);
            return emitter.measure_narrowing(site.inst, zeros, |m| access.check(m, slot));
        }
        emitter.measure_in_all_waves(point, |m| access.check(m, slot))
    }
}
