//! Loaded code, decoded once for each address.

use crate::isa::{Encoding, Inst, Target, decode};

use super::fault::{FaultKind, MemoryAccess};
use super::loader::{CodeRange, ObjectId};
use super::memory::Memory;
use super::op::{Meaning, Op};
use super::{
    compare, convert, lane_access, lds, matrix, packed, scalar, scalar_control, scalar_memory, vector_float, vector_int, vector_memory,
};

/// The longest instruction in bytes.
const MAX_INSTRUCTION: u64 = 16;

struct Range {
    start: u64,
    end: u64,
    object: ObjectId,
    base: u64,
    /// For each dword, one more than the index of its instruction; 0 where nothing is decoded yet.
    index: Vec<u32>,
}

/// All code of a device.
pub(super) struct Code {
    target: Target,
    ranges: Vec<Range>,
    pub ops: Vec<Op>,
    recent: usize,
}

impl Code {
    pub(super) fn new(target: Target) -> Self {
        Code { target, ranges: Vec::new(), ops: Vec::new(), recent: 0 }
    }

    pub(super) fn add(&mut self, object: ObjectId, base: u64, code: &[CodeRange]) {
        for range in code {
            let dwords = ((range.end - range.start) / 4) as usize;
            self.ranges.push(Range { start: range.start, end: range.end, object, base, index: vec![0; dwords] });
        }
    }

    pub(super) fn remove(&mut self, object: ObjectId) {
        self.ranges.retain(|range| range.object != object);
        self.recent = 0;
    }

    /// The object and virtual address of a device address.
    pub(super) fn place(&self, pc: u64) -> Option<(ObjectId, u64)> {
        self.ranges.iter().find(|range| (range.start..range.end).contains(&pc)).map(|range| (range.object, pc - range.base))
    }

    /// The index of the instruction at an address.
    pub(super) fn at(&mut self, pc: u64, memory: &Memory) -> Result<usize, FaultKind> {
        let within = |range: &Range| (range.start..range.end).contains(&pc);
        if !self.ranges.get(self.recent).is_some_and(within) {
            self.recent = match self.ranges.iter().position(within) {
                Some(at) => at,
                None => {
                    return Err(FaultKind::Memory { address: pc, size: 4, access: MemoryAccess::Fetch, nearest: memory.allocation_of(pc) });
                }
            };
        }
        let range = &self.ranges[self.recent];
        if !pc.is_multiple_of(4) {
            return Err(FaultKind::Misaligned { address: pc, align: 4 });
        }
        let slot = ((pc - range.start) / 4) as usize;
        match range.index[slot] {
            0 => self.decode(pc, slot, memory),
            known => Ok(known as usize - 1),
        }
    }

    fn decode(&mut self, pc: u64, slot: usize, memory: &Memory) -> Result<usize, FaultKind> {
        let range = &mut self.ranges[self.recent];
        let length = (range.end - pc).min(MAX_INSTRUCTION);
        let mut bytes = [0; MAX_INSTRUCTION as usize];
        memory.peek(pc, &mut bytes[..length as usize])?;
        let inst =
            decode(self.target, &bytes[..length as usize]).map_err(|error| FaultKind::Undecodable { reason: error.to_string().into() })?;
        let Some(meaning) = meaning(&inst) else { return Err(FaultKind::UnknownInstruction { name: inst.variant.name.into() }) };
        self.ops.push(Op::new(inst, meaning, range.object, pc - range.base, pc));
        range.index[slot] = self.ops.len() as u32;
        Ok(self.ops.len() - 1)
    }
}

/// What an instruction means, by its name.
pub(super) fn meaning(inst: &Inst) -> Option<Meaning> {
    use Encoding as E;
    let name = inst.variant.name;
    match inst.variant.encoding {
        E::Sop1 | E::Sop2 | E::Sopk | E::Sopc | E::Sopp => scalar::meaning(name),
        E::Smem => scalar_control::meaning(name).or_else(|| scalar_memory::meaning(name, inst)),
        E::Ds => lds::meaning(name, inst),
        E::Flat | E::Global | E::Scratch | E::Mubuf => scalar_control::meaning(name).or_else(|| vector_memory::meaning(name, inst)),
        E::Mtbuf | E::Mimg | E::Exp | E::Vintrp => None,
        E::Vop3p => packed::meaning(name)
            .or_else(|| matrix::meaning(name))
            .or_else(|| lane_access::meaning(name))
            .or_else(|| vector_int::meaning(name))
            .or_else(|| vector_float::meaning(name)),
        _ => compare::meaning(name)
            .or_else(|| lane_access::meaning(name))
            .or_else(|| packed::meaning(name))
            .or_else(|| vector_int::meaning(name))
            .or_else(|| vector_float::meaning(name))
            .or_else(|| convert::meaning(name))
            .or_else(|| scalar_control::meaning(name)),
    }
}
