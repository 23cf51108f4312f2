//! Loaded code, decoded once for each address.

use crate::isa::{Encoding, Inst, Target, decode};

use super::fault::{FaultKind, MemoryAccess};
use super::loader::{CodeRange, ObjectId};
use super::memory::Memory;
use super::op::{Meaning, Op};
use super::{
    compare, convert, lane_access, lds, matrix, packed, pair, scalar, scalar_control, scalar_memory, vector_float, vector_int,
    vector_memory,
};

/// The longest instruction in bytes.
const MAX_INSTRUCTION: u64 = 20;

struct Range {
    start: u64,
    end: u64,
    object: ObjectId,
    base: u64,
    replay: bool,
    /// For each dword, one more than the index of its instruction; 0 where nothing is decoded yet. By wave size: an encoding means different things in
    /// waves of 32 (first) and of 64.
    index: [Vec<u32>; 2],
}

/// All code of a device.
#[derive(Default)]
pub(super) struct Code {
    ranges: Vec<Range>,
    pub ops: Vec<Op>,
    recent: usize,
}

impl Code {
    pub(super) fn add(&mut self, object: ObjectId, base: u64, code: &[CodeRange]) {
        for range in code {
            let dwords = ((range.end - range.start) / 4) as usize;
            self.ranges.push(Range {
                start: range.start,
                end: range.end,
                object,
                base,
                replay: range.replay,
                index: [vec![0; dwords], vec![0; dwords]],
            });
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
    pub(super) fn at(&mut self, pc: u64, target: Target, memory: &Memory) -> Result<usize, FaultKind> {
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
        match range.index[by_wave_size(target)][slot] {
            0 => self.decode(pc, slot, target, memory),
            known => Ok(known as usize - 1),
        }
    }

    fn decode(&mut self, pc: u64, slot: usize, target: Target, memory: &Memory) -> Result<usize, FaultKind> {
        let range = &mut self.ranges[self.recent];
        let length = (range.end - pc).min(MAX_INSTRUCTION);
        let mut bytes = [0; MAX_INSTRUCTION as usize];
        memory.peek(pc, &mut bytes[..length as usize])?;
        let inst =
            decode(target, &bytes[..length as usize]).map_err(|error| FaultKind::Undecodable { reason: error.to_string().into() })?;
        let place = (range.object, pc - range.base, pc);
        let op = pair::op(target, &inst, place).or_else(|| Some(Op::new(target, inst.clone(), meaning(&inst)?, place)));
        let Some(op) = op else { return Err(FaultKind::UnknownInstruction { name: inst.variant.name.into() }) };
        self.ops.push(Op { replay: range.replay, ..op });
        range.index[by_wave_size(target)][slot] = self.ops.len() as u32;
        Ok(self.ops.len() - 1)
    }
}

fn by_wave_size(target: Target) -> usize {
    usize::from(target.wave_size() == 64)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::{Modifiers, variants};

    /// What the emulator refuses, by the beginning of the name: graphics, typed buffers, the global data share, structured sparsity, reduced-precision
    /// inputs, and what no compiler emits any more. Everything else has a meaning.
    const REFUSED: [&str; 26] = [
        "image_",
        "exp",
        "v_interp_",
        "tbuffer_",
        "buffer_load_format_",
        "buffer_store_format_",
        "buffer_store_lds_dword",
        "ds_gws_",
        "ds_ordered_count",
        "ds_add_src2_",
        "ds_sub_src2_",
        "ds_rsub_src2_",
        "ds_inc_src2_",
        "ds_dec_src2_",
        "ds_min_src2_",
        "ds_max_src2_",
        "ds_and_src2_",
        "ds_or_src2_",
        "ds_xor_src2_",
        "ds_write_src2_",
        "s_atc_probe",
        "s_scratch_",
        "s_dcache_discard",
        "v_screen_partition_4se_b32",
        "v_smfmac_",
        "v_mfma_f32_16x16x8_xf32",
    ];
    const REFUSED_CONTROL: [&str; 7] = [
        "s_cbranch_g_fork",
        "s_cbranch_i_fork",
        "s_cbranch_join",
        "s_rfe_b64",
        "s_rfe_restore_b64",
        "s_setvskip",
        "v_mfma_f32_32x32x4_xf32",
    ];

    #[test]
    fn every_instruction_has_a_meaning_or_a_reason() {
        let mut missing = std::collections::BTreeSet::new();
        for target in Target::all().filter(|target| target.emulated() && target.generation() == 9) {
            for variant in variants(target) {
                let inst = Inst {
                    variant,
                    size: 8,
                    operands: Default::default(),
                    modifiers: Modifiers::default(),
                    ignored: Default::default(),
                    wave_size: 64,
                };
                if meaning(&inst).is_none() && !REFUSED.iter().chain(&REFUSED_CONTROL).any(|prefix| variant.name.starts_with(prefix)) {
                    missing.insert(variant.name);
                }
            }
        }
        assert!(missing.is_empty(), "{missing:?}");
    }
}
