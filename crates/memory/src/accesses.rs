//! The accesses of a kernel, and where each lane goes.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::launched::Launched;
use crate::place::{Place, Unknown};
use wavetap_amdgpu::{Flags, Inst, Memory, OpcodeFlags, Operand, Role, Target, Value};
use wavetap_analysis::dataflow::{
    Aperture, Definitions, LaneSum, LaneValue, LaneValues, Offsets, Opaque, Symbol, WaveShape,
};
use wavetap_analysis::kernel::Body;
use wavetap_base::entity::InstId;
use wavetap_object::code_object::{Kernel, ValueKind};

/// The memory that is accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Space {
    /// Global memory.
    Global,
    /// Global memory, LDS or scratch, as each lane's address says: what the code does not say.
    Flat,
    /// Global memory through a descriptor, which is taken to be of plain memory: without a swizzle.
    Buffer,
    /// The private memory of lanes: dwords of the lanes lie next to each other.
    Scratch,
    /// LDS.
    Lds,
    /// Global memory through the scalar cache.
    Scalar,
}

/// What an access does to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Memory is read.
    Load,
    /// It is written.
    Store,
    /// It is read and written at once.
    Atomic,
}

impl Operation {
    /// That of an instruction; none if it accesses no memory.
    #[must_use]
    pub fn of(inst: &Inst) -> Option<Operation> {
        match inst.variant.flags {
            flags if flags.contains(Flags::ATOMIC) => Some(Operation::Atomic),
            flags if flags.contains(Flags::STORE) => Some(Operation::Store),
            flags if flags.contains(Flags::LOAD) => Some(Operation::Load),
            _ => None,
        }
    }
}

/// An access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The instruction.
    pub inst: InstId,
    /// Where.
    pub space: Space,
    /// Whether it loads, stores, or does both.
    pub operation: Operation,
    /// Bytes at each address of a lane; 0 where M0 or a descriptor says how many.
    pub bytes: u32,
    /// Addresses of a lane: two for `ds_read2_b32` and its like.
    pub addresses: u32,
}

/// The places of pointers to global memory among the arguments of a kernel, in bytes.
#[must_use]
pub fn pointers(kernel: Option<&Kernel>) -> BTreeSet<u32> {
    let metadata = kernel.and_then(|kernel| kernel.metadata.as_ref());
    let arguments = metadata.map(|metadata| metadata.args.as_slice()).unwrap_or_default();
    let pointers = arguments.iter().filter(|argument| argument.value_kind == ValueKind::GlobalBuffer);
    pointers.filter_map(|argument| u32::try_from(argument.offset).ok()).collect()
}

/// The accesses of a body, in the order of the code. Exchanges between lanes, images, global data share and tensors are
/// not among them.
pub fn accesses(body: &Body) -> impl Iterator<Item = Access> {
    body.ids().filter_map(|id| access(id, body.inst(id)))
}

/// The accesses of a body, with what is known of their addresses.
#[derive(Debug)]
pub struct Accesses<'d, 'b> {
    definitions: &'d Definitions<'b>,
    body: &'b Body,
    all: Vec<Access>,
    pointers: BTreeSet<u32>,
}

impl<'d, 'b> Accesses<'d, 'b> {
    /// Those that [`accesses`] finds, FLAT ones with the memory that their upper halves say ([`Aperture`]). `pointers`
    /// are the places among the arguments, in bytes, of pointers to global memory: what these point to is taken to be
    /// aligned to [`POINTER_ALIGNMENT`] bytes.
    #[must_use]
    pub fn of(body: &'b Body, definitions: &'d Definitions<'b>, pointers: BTreeSet<u32>) -> Accesses<'d, 'b> {
        let refine = |access: Access| match Aperture::of(body, definitions, access.inst) {
            Some(Aperture::Lds) => Access { space: Space::Lds, ..access },
            Some(Aperture::Scratch) => Access { space: Space::Scratch, ..access },
            None => access,
        };
        let all = accesses(body).map(refine).collect();
        Accesses { definitions, body, all, pointers }
    }

    /// In the order of the code.
    #[must_use]
    pub fn all(&self) -> &[Access] {
        &self.all
    }

    /// Where the lanes of a wave go, in the order of [`Accesses::all`]: a place for each address of a lane.
    #[must_use]
    pub fn of_wave(&self, shape: WaveShape) -> Vec<Vec<Place>> {
        let mut values = self.values(shape);
        self.all.iter().map(|access| self.places(&mut values, access)).collect()
    }

    /// The waves of a workgroup: all of them, or of many eight, from the first to the last.
    #[must_use]
    pub fn waves(&self, launched: &Launched) -> Vec<WaveShape> {
        let lanes = self.body.target().wave_size();
        let count = launched.workgroup.iter().fold(1_u32, |size, axis| size.saturating_mul(*axis)).div_ceil(lanes);
        let looked_at = count.min(MOST_WAVES);
        let number = |n: u32| if looked_at > 1 { n * (count - 1) / (looked_at - 1) } else { 0 };
        let shape = |n| WaveShape::new(launched.workgroup, lanes, number(n), launched.given);
        (0..looked_at).filter_map(shape).collect()
    }

    /// The processor.
    pub(crate) fn target(&self) -> Target {
        self.body.target()
    }

    /// What registers hold in a wave, of which nothing is looked at yet.
    pub(crate) fn values(&self, shape: WaveShape) -> LaneValues<'d, 'b> {
        LaneValues::new(self.definitions, shape)
    }

    /// Where the lanes go: a place for each address of a lane.
    pub(crate) fn places(&self, values: &mut LaneValues<'_, '_>, access: &Access) -> Vec<Place> {
        let inst = self.body.inst(access.inst);
        let lanes = u64::MAX >> (u64::BITS - values.shape().active().clamp(1, u64::BITS));
        let space = match access.space {
            Space::Buffer => self.described(values, access),
            space => Some(space),
        };
        let in_scratch = space == Some(Space::Scratch);
        let mut address = match access.bytes {
            _ if space.is_none() => Err(Unknown::Operation),
            0 => Err(Unknown::Operation),
            _ => self.base(values, access, inst, in_scratch),
        };
        let argument = match &mut address {
            Ok(base) => self.argument(values, base),
            Err(_) => self.argument_of_base(values, access, inst),
        };
        let place = |offset: i32| {
            let address = address.clone().map(|base| base.plus(&LaneSum::number(offset)));
            let address = address.and_then(|address| match in_scratch {
                true => interleaved(&address, values.shape()),
                false => Ok(address),
            });
            let step = address.as_ref().ok().and_then(|address| step(values, address));
            Place { address, bytes: access.bytes, lanes, step, argument }
        };
        offsets(access, inst).into_iter().map(place).collect()
    }

    /// Of which memory a descriptor is: the lanes' private one, if it, and what is added to it, was there at the entry;
    /// plain memory, if it was loaded or made from a pointer that was. Of others it is not known.
    fn described(&self, values: &mut LaneValues<'_, '_>, access: &Access) -> Option<Space> {
        let descriptor = self.body.inst(access.inst).operand(Role::Srsrc)?;
        let LaneValue::Sum(base) = values.operand(access.inst, descriptor) else { return None };
        let (of_entry, loaded) = (
            base.terms.iter().all(|term| values.is_of_entry(term.symbol)),
            base.terms.iter().any(|term| values.loaded_by(term.symbol).is_some()),
        );
        match () {
            () if !base.is_known() && of_entry => Some(Space::Scratch),
            () if loaded => Some(Space::Buffer),
            () => None,
        }
    }

    /// The argument that an address is an offset from: its place among the arguments. What it points to is aligned from
    /// here on.
    fn argument(&self, values: &mut LaneValues<'_, '_>, base: &mut LaneSum) -> Option<u32> {
        let alone: Vec<Symbol> = Self::once(base).collect();
        for symbol in alone {
            if let Some(place) = self.pointer(values, symbol) {
                let term = base.terms.iter_mut().find(|term| term.symbol == symbol)?;
                term.zeros = term.zeros.max(POINTER_ALIGNMENT.trailing_zeros());
                return Some(place);
            }
        }
        // In loops, what it was at first.
        let mut seen: Vec<Symbol> = Self::once(base).collect();
        let mut next = 0;
        while let Some(&symbol) = seen.get(next) {
            next += 1;
            if let Some(place) = self.pointer(values, symbol) {
                return Some(place);
            }
            let first: Vec<Symbol> = values.first(symbol).map(|first| Self::once(first).collect()).unwrap_or_default();
            seen.extend(first.into_iter().filter(|symbol| !seen.contains(symbol)).collect::<Vec<_>>());
        }
        None
    }

    /// What is added once in all lanes.
    fn once(sum: &LaneSum) -> impl Iterator<Item = Symbol> {
        sum.terms.iter().filter(|term| term.factor == Offsets::Same(1)).map(|term| term.symbol)
    }

    /// The place among the arguments of the pointer that a symbol stands for.
    fn pointer(&self, values: &mut LaneValues<'_, '_>, symbol: Symbol) -> Option<u32> {
        let (load, dword) = values.loaded_by(symbol)?;
        let place = self.argument_at(values, load)? + 4 * dword;
        self.pointers.contains(&place).then_some(place)
    }

    /// The argument that is the base of an access of which nothing else is known.
    fn argument_of_base(&self, values: &mut LaneValues<'_, '_>, access: &Access, inst: &Inst) -> Option<u32> {
        let base = inst.operands.iter().find(|operand| operand.role == Role::Saddr && is_there(operand))?;
        let LaneValue::Sum(mut base) = values.operand(access.inst, base) else { return None };
        self.argument(values, &mut base)
    }

    /// Where among the arguments a scalar load begins: its base was there at the entry.
    fn argument_at(&self, values: &mut LaneValues<'_, '_>, load: InstId) -> Option<u32> {
        let inst = self.body.inst(load);
        let LaneValue::Sum(base) = values.operand(load, inst.operand(Role::Sbase)?) else { return None };
        let [term] = base.terms.as_slice() else { return None };
        let offset = base.offsets == Offsets::Same(0) && term.factor == Offsets::Same(1);
        let is_entry = values.is_of_entry(term.symbol) && offset && !inst.modifiers.soffset_en;
        u32::try_from(inst.modifiers.offset).ok().filter(|_| is_entry)
    }

    /// The address without the offset that is in the instruction.
    fn base(
        &self,
        values: &mut LaneValues<'_, '_>,
        access: &Access,
        inst: &Inst,
        in_scratch: bool,
    ) -> Result<LaneSum, Unknown> {
        let mut sum = LaneSum::number(0);
        let operand = |role| inst.operands.iter().find(|operand: &&Operand| operand.role == role && is_there(operand));
        let mut add = |role, scale: i32| -> Result<(), Unknown> {
            let Some(operand) = operand(role) else { return Ok(()) };
            match values.operand(access.inst, operand) {
                LaneValue::Sum(value) => sum = sum.plus(&value.by(scale)),
                LaneValue::Opaque(why) => return Err(why.into()),
            }
            Ok(())
        };
        let scale = if inst.modifiers.scale_offset { access.bytes.cast_signed() } else { 1 };
        match access.space {
            Space::Scalar => {
                add(Role::Sbase, 1)?;
                add(Role::Soffset, scale)?;
            }
            // The lower half of a FLAT address of LDS is the offset there.
            Space::Lds => {
                add(Role::Addr, 1)?;
                add(Role::Vaddr, 1)?;
            }
            // The index is multiplied by a number that is in the descriptor.
            Space::Buffer if inst.modifiers.idxen => return Err(Unknown::Stride),
            Space::Buffer => {
                // The lanes' private memory begins where a line does, and so does the memory of each function in it.
                if !in_scratch {
                    add(Role::Srsrc, 1)?;
                    add(Role::Soffset, 1)?;
                }
                if inst.modifiers.offen {
                    add(Role::Vaddr, 1)?;
                }
            }
            Space::Global | Space::Flat | Space::Scratch => {
                let has_base = operand(Role::Saddr).is_some();
                add(Role::Saddr, 1)?;
                add(Role::Vaddr, if has_base || access.space == Space::Scratch { scale } else { 1 })?;
            }
        }
        if inst.is_any(OpcodeFlags::ADDTID) {
            let lanes = values.shape().lanes();
            sum = sum.plus(&LaneSum::lanes((0..lanes).map(|lane| 4 * lane.cast_signed())));
        }
        Ok(sum)
    }
}

/// To so many bytes memory is aligned that `hipMalloc` gives, at least.
pub const POINTER_ALIGNMENT: u32 = 256;
/// More waves of a workgroup are not all looked at.
const MOST_WAVES: u32 = 8;
/// Bytes of a lane that lie next to each other in scratch.
const SCRATCH_UNIT: i32 = 4;

fn access(inst: InstId, code: &Inst) -> Option<Access> {
    let operation = Operation::of(code)?;
    let space = match code.variant.memory {
        Memory::Global => Space::Global,
        Memory::Flat => Space::Flat,
        Memory::Buffer => Space::Buffer,
        Memory::Scratch => Space::Scratch,
        Memory::Lds if !code.modifiers.gds => Space::Lds,
        Memory::Scalar => Space::Scalar,
        _ => return None,
    };
    if code.is_any(OpcodeFlags::CROSSBAR | OpcodeFlags::GWS | OpcodeFlags::LDS_SRC2) {
        return None;
    }
    // Lanes count in one counter, or take what comes next.
    if space == Space::Lds && code.operand(Role::Addr).is_none() && !code.is_any(OpcodeFlags::ADDTID) {
        return None;
    }
    let addresses = if code.is_any(OpcodeFlags::TWO_ADDRESSES) { 2 } else { 1 };
    let bytes = if code.is_any(OpcodeFlags::BLOCK) { 0 } else { u32::from(code.variant.memory_bytes) };
    Some(Access { inst, space, operation, bytes: bytes / addresses, addresses })
}

fn offsets(access: &Access, inst: &Inst) -> Vec<i32> {
    let m = &inst.modifiers;
    if access.addresses == 1 {
        return vec![m.offset];
    }
    let unit = access.bytes.cast_signed() * if inst.is_any(OpcodeFlags::STRIDE64) { 64 } else { 1 };
    vec![m.offset * unit, i32::from(m.offset1) * unit]
}

fn is_there(operand: &Operand) -> bool {
    !matches!(operand.value, Value::Off)
}

/// Where dwords of a lane's private memory are: those of all lanes lie next to each other.
fn interleaved(offset: &LaneSum, shape: &WaveShape) -> Result<LaneSum, Unknown> {
    let lanes = shape.lanes().cast_signed();
    let unit = LaneSum::lanes((0..lanes).map(|lane| lane * SCRATCH_UNIT));
    if offset.unknown_zeros() < SCRATCH_UNIT.trailing_zeros() {
        return Err(Unknown::Operation);
    }
    // What is not known is a multiple of the unit: then it stays apart.
    let of_unit = |value: i32| value.rem_euclid(SCRATCH_UNIT);
    let rest = offset.map_offsets(of_unit);
    Ok(offset.minus(&rest).by(lanes).plus(&rest).plus(&unit))
}

/// Bytes by which it moves in each round of a loop.
fn step(values: &LaneValues<'_, '_>, address: &LaneSum) -> Option<i64> {
    let steps = address.terms.iter().map(|term| {
        let step = values.step(term.symbol)?;
        term.is_uniform().then(|| i64::from(step) * i64::from(term.factor.lane(0)))
    });
    let known: Vec<i64> = steps.flatten().collect();
    (!known.is_empty()).then(|| known.iter().sum())
}

impl From<Opaque> for Unknown {
    fn from(why: Opaque) -> Unknown {
        match why {
            Opaque::Loaded => Unknown::Loaded,
            Opaque::Stride => Unknown::Stride,
            Opaque::Paths => Unknown::Paths,
            Opaque::Operation => Unknown::Operation,
        }
    }
}
