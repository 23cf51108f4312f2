//! Vector registers for inserted code where the original code names all of them and too few scalar registers are unused
//! to spill lanes to: a few of the original's are spilled whole around each snippet, to AGPRs or to the wave's scratch
//! memory, and so is what inserted code keeps from one snippet to the next.
//!
//! Slots are in two rows: first those of the original's values, then those of inserted code. A snippet needs no
//! register that is unused everywhere. Only EXEC, which selects the lanes of a move, has to be saved in scalar
//! registers that are dead at that place.

use super::Scavenger;
use super::registers::{Allocation, NUMBERED_VGPRS, ScalarPool, Vectors, WORK_ITEM_VGPRS};
use crate::analysis::SpillTo;
use crate::asm::{Asm, BUFFER_STORE, c, s, scratch_operation, v};
use crate::frame::entry::ScratchAccess;
use crate::function::ClonedFunction;
use wavetap_amdgpu::{Flags, Reg, Target, Value, scalar};
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::{Reason, Refusal, Stop};
use wavetap_base::entity::ProgramPoint;
use wavetap_base::error::Result;
use wavetap_object::code_object::{Field, KernelDescriptor, KernelMetadata};

/// Bytes of a lane's register.
const LANE: u32 = 4;
/// Scalar registers that describe a buffer (AMD ISA guides, "Buffer resource descriptor").
pub(crate) const RESOURCE: u8 = 4;
/// Wait states after an AGPR that was written, until it is read (3, gfx908), and after the last
/// vector register that was moved back: the original code may read it by DPP or in a matrix instruction (2).
const MOVE_STATES: i64 = 3;

/// Where registers are moved to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpillSlots {
    /// AGPRs from this one on.
    Agprs(u16),
    /// The wave's scratch memory after what the original has of it.
    Scratch {
        /// Each lane's offset of the first.
        offset: u32,
        /// The first of the scalar registers that describe it, where only buffer instructions reach it; no original
        /// code names them.
        resource: Option<u16>,
    },
}

/// How many slots there are.
pub(crate) fn count(vectors: &Vectors) -> u32 {
    (vectors.registers().count() + vectors.kept().count()) as u32
}

/// Chooses vector registers that can be moved: not ones that matrix instructions access, or whose values are
/// outstanding longer than those of other vector instructions, or that snippets read.
pub(crate) fn choose(
    target: Target,
    functions: &[ClonedFunction<'_>],
    read: RegSet,
    payload: u16,
) -> Result<Vectors, Refusal> {
    let mut slow = read;
    for (body, id) in functions.iter().flat_map(|function| function.body.ids().map(|id| (function.body, id))) {
        let flags = body.inst(id).variant.flags;
        if flags.contains(Flags::MFMA) {
            body.reads(id).for_each(|reg| slow.insert(reg));
        }
        if flags.intersects(Flags::MFMA | Flags::TRANS) {
            body.writes(id).for_each(|reg| slow.insert(reg));
        }
    }
    let mut taken: Vec<u16> = Vec::new();
    let chosen = Vectors::take(target, payload, |count, align| {
        let can_be_moved =
            |number: u16| number < NUMBERED_VGPRS && !taken.contains(&number) && !slow.overlaps(Reg::vector(number, 1));
        let fits = |first: &u16| (*first..first + count).all(can_be_moved);
        let first = (WORK_ITEM_VGPRS.next_multiple_of(align)..NUMBERED_VGPRS).step_by(align.into()).find(fits)?;
        taken.extend(first..first + count);
        Some(first)
    });
    chosen.ok_or_else(|| {
        Refusal::new(Reason::VectorRegisters, "matrix and transcendental instructions use all vector registers")
    })
}

impl SpillSlots {
    /// So many slots for a kernel; `free` are scalar registers that no original code names.
    pub(crate) fn find(
        to: SpillTo,
        allocation: &Allocation<'_>,
        metadata: &KernelMetadata,
        count: u32,
        free: &mut ScalarPool,
    ) -> Result<SpillSlots, Refusal> {
        let refuse = |detail: &str| Err(Refusal::new(Reason::VectorRegisters, detail));
        match to {
            SpillTo::Agprs if !allocation.target.has_accum() => refuse("the target has no AGPRs"),
            SpillTo::Agprs => match allocation.free_accum(count) {
                Some(first) => Ok(SpillSlots::Agprs(first)),
                None => refuse("no AGPRs are free"),
            },
            SpillTo::Scratch => {
                let access = ScratchAccess::of(allocation.target);
                if access == ScratchAccess::FlatScratch && !allocation.keeps_flat_scratch {
                    return refuse("the original code sets FLAT_SCRATCH itself, in another way than a prologue does");
                }
                if access == ScratchAccess::Buffer
                    && !allocation.descriptor.is_set(Field::ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER)
                {
                    return refuse("the kernel does not request the registers that describe it");
                }
                // How far the original goes is known if all that it calls is.
                if metadata.uses_dynamic_stack
                    || allocation.descriptor.is_set(Field::USES_DYNAMIC_STACK)
                    || !allocation.bounded_calls
                {
                    return refuse("how much scratch memory the kernel uses is known when it runs");
                }
                if allocation.descriptor.is_set(Field::ENABLE_SGPR_PRIVATE_SEGMENT_SIZE) {
                    return refuse("the kernel is told how much scratch memory there is");
                }
                let stated = u64::from(allocation.descriptor.get(Field::PRIVATE_SEGMENT_FIXED_SIZE));
                let most = allocation.target.max_wave_scratch() / allocation.target.wave_size();
                let room = most.saturating_sub((count + 1) * LANE);
                let offset = match u32::try_from(metadata.private_segment_fixed_size.max(stated)) {
                    Ok(bytes) if bytes < room => bytes.next_multiple_of(LANE),
                    _ => return refuse("a wave would have more scratch memory than the hardware can give it"),
                };
                if access != ScratchAccess::Buffer {
                    return Ok(SpillSlots::Scratch { offset, resource: None });
                }
                match free.take(RESOURCE.into(), RESOURCE.into()) {
                    Ok(resource) => Ok(SpillSlots::Scratch { offset, resource: Some(resource) }),
                    Err(_) => refuse("no four scalar registers in a row are unused that could describe it"),
                }
            }
        }
    }

    /// Makes room for so many slots in a descriptor; gives the metadata's `.agpr_count` and
    /// `.private_segment_fixed_size`.
    pub(crate) fn allocate(
        self,
        allocation: &Allocation<'_>,
        metadata: &KernelMetadata,
        descriptor: &mut KernelDescriptor,
        count: u32,
    ) -> Result<(u64, u64), Stop> {
        match self {
            SpillSlots::Agprs(first) => {
                let end = u32::from(first) + count;
                allocation.grow_accum(descriptor, end)?;
                Ok((metadata.agpr_count.max(end.into()), metadata.private_segment_fixed_size))
            }
            SpillSlots::Scratch { offset, .. } => {
                let bytes = offset + count * LANE;
                descriptor.set(Field::ENABLE_PRIVATE_SEGMENT, 1)?;
                if descriptor.get(Field::PRIVATE_SEGMENT_FIXED_SIZE) != 0 {
                    descriptor.set(Field::PRIVATE_SEGMENT_FIXED_SIZE, bytes)?;
                }
                Ok((metadata.agpr_count, bytes.into()))
            }
        }
    }

    /// Whether a register has to hold the offset: instructions have no place for it, or none that is large enough.
    pub(crate) fn need_base(self, target: Target, count: u32) -> bool {
        match self {
            SpillSlots::Agprs(_) => false,
            SpillSlots::Scratch { offset, resource: Some(_) } => {
                offset + count * LANE > wavetap_amdgpu::largest_offset(target, BUFFER_STORE)
            }
            SpillSlots::Scratch { offset, resource: None } => {
                let (mnemonic, operands) = scratch_operation(true, 0, None);
                wavetap_amdgpu::build(target, mnemonic, &operands).is_err()
                    || offset + count * LANE > wavetap_amdgpu::largest_offset(target, "scratch_store_dword")
            }
        }
    }

    /// The first of the scalar registers that describe scratch memory, where it takes some.
    pub(crate) fn resource(self) -> Option<u16> {
        match self {
            SpillSlots::Scratch { resource, .. } => resource,
            SpillSlots::Agprs(_) => None,
        }
    }

    /// Moves each register to its slot, or back. All lanes are active.
    fn each(
        self,
        asm: &mut Asm,
        registers: impl Iterator<Item = u16>,
        row: u32,
        direction: Direction,
        base: Option<u16>,
    ) -> Result<()> {
        if let (SpillSlots::Scratch { .. }, true) = (self, asm.target().supports_xnack()) {
            // Memory instructions in a row may be replayed together: a load must not be in a row with a store of the
            // same register.
            asm.op("s_nop", &[Value::Imm(0)])?;
        }
        for (slot, register) in (row..).zip(registers) {
            match self {
                SpillSlots::Agprs(first) => {
                    let accum = Value::Reg(Reg::accum(first + slot as u16, 1));
                    match direction {
                        Direction::Out => asm.op("v_accvgpr_write_b32", &[accum, v(register)])?,
                        Direction::Back => asm.op("v_accvgpr_read_b32", &[v(register), accum])?,
                    }
                }
                SpillSlots::Scratch { offset, resource } => {
                    let (is_store, place) =
                        (direction == Direction::Out, slot * LANE + if base.is_some() { 0 } else { offset });
                    match resource {
                        Some(resource) => asm.scratch_buffer(is_store, register, resource, base, place)?,
                        None => asm.scratch(is_store, register, base, place)?,
                    }
                }
            }
        }
        match (self, direction) {
            (SpillSlots::Scratch { .. }, Direction::Back) => asm.wait_global_results(),
            _ => Ok(()),
        }
    }

    /// Lets `base` lead to the slots.
    fn lead(self, asm: &mut Asm, base: Option<u16>) -> Result<()> {
        match (self, base) {
            (SpillSlots::Scratch { offset, resource }, Some(base)) => {
                // The register of a buffer instruction counts the bytes of all lanes, which take turns dword by dword;
                // its immediate those of each.
                let lanes = resource.map_or(1, |_| asm.target().wave_size());
                asm.op("s_mov_b32", &[s(base), c(offset * lanes)])
            }
            _ => Ok(()),
        }
    }

    /// What is kept from one snippet to the next goes to its slot for the first time; all lanes are active. `base` is
    /// free to be used.
    pub(crate) fn keep_first(self, asm: &mut Asm, vectors: &Vectors, base: u16) -> Result<()> {
        let base = self.need_base(asm.target(), count(vectors)).then_some(base);
        self.lead(asm, base)?;
        asm.states(MOVE_STATES)?;
        self.each(asm, vectors.kept(), own_row(vectors), Direction::Out, base)
    }

    /// What a snippet needs for its moves, none of it from `own` scalar registers.
    pub(crate) fn moves(
        self,
        vectors: &Vectors,
        own: &RegSet,
        scavenger: &Scavenger<'_>,
        pending: &RegSet,
        point: ProgramPoint,
    ) -> Result<Moves, Refusal> {
        let (body, end) = (scavenger.function.body, scavenger.end);
        let target = body.target();
        let live = scavenger.liveness.at(point);
        let wanted = target.wave_size() as usize / 32 + usize::from(self.need_base(target, count(vectors)));
        let numbers = || (0..end as u16).chain([scalar::VCC, scalar::VCC + 1]);
        let dead = |number: &u16| !live.overlaps(Reg::scalar(*number, 1)) && !own.overlaps(Reg::scalar(*number, 1));
        let settled = |number: &u16| !pending.overlaps(Reg::scalar(*number, 1));
        let moved: RegSet = vectors.registers().map(|register| Reg::vector(register, 1)).collect();
        let mut found: Vec<u16> = numbers().filter(dead).filter(settled).take(wanted).collect();
        let mut wait = moved.intersects(pending);
        if found.len() < wanted {
            wait = true;
            found = numbers().filter(dead).take(wanted).collect();
        }
        let mut found = found.into_iter();
        let exec = found.by_ref().take(target.wave_size() as usize / 32).collect();
        let base = found.next();
        let moves = Moves { slots: self, exec, base, wait };
        if moves.exec.len() + usize::from(base.is_some()) < wanted {
            let detail = format!(
                "{wanted} scalar registers that are dead there are needed to move vector registers away, there are {}",
                moves.exec.len() + usize::from(base.is_some())
            );
            return Err(Refusal::at(Reason::VectorRegisters, body.address(point.inst), detail));
        }
        Ok(moves)
    }
}

/// First slot of what inserted code needs from one snippet to the next.
fn own_row(vectors: &Vectors) -> u32 {
    vectors.registers().count() as u32
}

/// To the slot or from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Out,
    Back,
}

/// The moves of one snippet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Moves {
    slots: SpillSlots,
    /// Scalar registers for the halves of EXEC while all lanes are active.
    exec: Vec<u16>,
    /// Scalar register that leads to the slots.
    base: Option<u16>,
    /// Loads have to arrive first.
    wait: bool,
}

impl Moves {
    /// The original's values go to their slots and ours come. Keeps SCC, EXEC and all scalar registers that are live.
    pub(crate) fn enter(&self, asm: &mut Asm, vectors: &Vectors) -> Result<()> {
        if self.wait {
            asm.wait_all_loads()?;
        }
        self.all_lanes(asm, |asm| {
            self.slots.each(asm, vectors.registers(), 0, Direction::Out, self.base)?;
            self.slots.each(asm, vectors.kept(), own_row(vectors), Direction::Back, self.base)
        })
    }

    /// What was changed of ours goes to its slot.
    pub(crate) fn keep(&self, asm: &mut Asm, vectors: &Vectors) -> Result<()> {
        self.all_lanes(asm, |asm| self.slots.each(asm, vectors.kept(), own_row(vectors), Direction::Out, self.base))
    }

    /// The original's values come back. Keeps what [`Moves::enter`] keeps.
    pub(crate) fn leave(&self, asm: &mut Asm, vectors: &Vectors) -> Result<()> {
        self.all_lanes(asm, |asm| self.slots.each(asm, vectors.registers(), 0, Direction::Back, self.base))?;
        asm.states(MOVE_STATES)
    }

    fn all_lanes(&self, asm: &mut Asm, moves: impl FnOnce(&mut Asm) -> Result<()>) -> Result<()> {
        for (half, register) in (scalar::EXEC..).zip(&self.exec) {
            asm.op("s_mov_b32", &[s(*register), s(half)])?;
        }
        asm.exec_lanes(u32::MAX)?;
        self.slots.lead(asm, self.base)?;
        asm.states(MOVE_STATES)?;
        moves(asm)?;
        for (half, register) in (scalar::EXEC..).zip(&self.exec) {
            asm.op("s_mov_b32", &[s(half), s(*register)])?;
        }
        Ok(())
    }
}
