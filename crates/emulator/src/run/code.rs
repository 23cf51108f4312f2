//! Loaded code, decoded once for each address.

use rustc_hash::FxHashMap;

use wavetap_amdgpu::{
    Coding, Encoding, Implicit, Inst, Opcode, Operand, Role, Target, Value, Variant, VgprMsb, decode,
};

use super::spare::Spare;
use crate::address::ObjectId;
use crate::exec::matrix::mfma;
use crate::exec::matrix::mfma_scaled;
use crate::exec::matrix::smfmac;
use crate::exec::matrix::swmmac;
use crate::exec::matrix::wmma;
use crate::exec::matrix::wmma_scaled;
use crate::exec::memory::async_copy;
use crate::exec::memory::gws;
use crate::exec::memory::image;
use crate::exec::memory::lds;
use crate::exec::memory::smem;
use crate::exec::memory::tensor;
use crate::exec::memory::transposing;
use crate::exec::memory::typed;
use crate::exec::memory::vmem;
use crate::exec::memory::wave_transposing;
use crate::exec::pair;
use crate::exec::scalar;
use crate::exec::scalar::control;
use crate::exec::scalar::fork;
use crate::exec::vector::bf16;
use crate::exec::vector::compare;
use crate::exec::vector::convert;
use crate::exec::vector::dot;
use crate::exec::vector::float_ops;
use crate::exec::vector::int_ops;
use crate::exec::vector::lane_access;
use crate::exec::vector::movement;
use crate::exec::vector::packed;
use crate::exec::vector::scaled;
use crate::exec::vector::scaled_pack;
use crate::fault::{FaultKind, MemoryAccess};
use crate::memory::View;
use crate::memory::loader::CodeRange;
use crate::op::opcode_info::Names;
use crate::op::{Meaning, Op};

/// The longest instruction in bytes.
const MAX_INSTRUCTION: u64 = 20;
/// Most instructions that are decoded at once.
const MAX_PLAIN: usize = 256;

struct Range {
    start: u64,
    end: u64,
    object: ObjectId,
    base: u64,
    replay: bool,
    writes_all: bool,
    /// For each dword, one more than the index of its instruction; 0 where nothing is decoded yet. By wave size: an
    /// encoding means different things in waves of 32 (first) and of 64.
    index: [Vec<u32>; 2],
}

/// All code of a device.
#[derive(Default)]
pub(crate) struct Code {
    ranges: Vec<Range>,
    pub ops: Vec<Op>,
    /// The instructions at addresses that were reached with high bits of vector register numbers, as in
    /// [`Range::index`].
    high: FxHashMap<(u64, VgprMsb), u32>,
    names: Names,
    recent: usize,
    /// What the thread that runs it can use again.
    pub spare: Spare,
}

impl Code {
    pub(crate) fn add(&mut self, object: ObjectId, base: u64, code: &[CodeRange]) {
        for range in code {
            let dwords = ((range.end - range.start) / 4) as usize;
            self.ranges.push(Range {
                start: range.start,
                end: range.end,
                object,
                base,
                replay: range.replay,
                writes_all: range.writes_all,
                index: [vec![0; dwords], vec![0; dwords]],
            });
        }
    }

    /// The same code with nothing decoded.
    pub(crate) fn fork(&self) -> Code {
        let ranges = self
            .ranges
            .iter()
            .map(|range| Range { index: range.index.each_ref().map(|index| vec![0; index.len()]), ..*range });
        Code { ranges: ranges.collect(), ..Code::default() }
    }

    pub(crate) fn remove(&mut self, object: ObjectId) {
        self.ranges.retain(|range| range.object != object);
        self.high.clear();
        self.recent = 0;
    }

    /// Has the ranges that the other has; what is decoded stays.
    pub(crate) fn follow(&mut self, other: &Code) {
        let mut own = std::mem::take(&mut self.ranges);
        for range in &other.ranges {
            let known = own.iter().position(|known| (known.object, known.start) == (range.object, range.start));
            self.ranges.push(match known {
                Some(at) => own.swap_remove(at),
                None => Range { index: range.index.each_ref().map(|index| vec![0; index.len()]), ..*range },
            });
        }
        self.high.clear();
        self.recent = 0;
    }

    /// The object and virtual address of a device address.
    pub(crate) fn place(&self, pc: u64) -> Option<(ObjectId, u64)> {
        self.ranges
            .iter()
            .find(|range| (range.start..range.end).contains(&pc))
            .map(|range| (range.object, pc - range.base))
    }

    /// The index of the instruction at an address, where these high bits of vector register numbers hold.
    pub(crate) fn at(&mut self, pc: u64, msb: VgprMsb, target: Target, memory: &View) -> Result<usize, FaultKind> {
        let within = |range: &Range| (range.start..range.end).contains(&pc);
        if !self.ranges.get(self.recent).is_some_and(within) {
            self.recent = match self.ranges.iter().position(within) {
                Some(at) => at,
                None => {
                    return Err(FaultKind::Memory {
                        address: pc,
                        size: 4,
                        access: MemoryAccess::Fetch,
                        nearest: memory.allocation_of(pc),
                    });
                }
            };
        }
        if !pc.is_multiple_of(4) {
            return Err(FaultKind::Misaligned { address: pc, align: 4 });
        }
        match self.known(pc, msb, target) {
            Some(0) | None => self.decode(pc, msb, target, memory),
            Some(known) => Ok(known as usize - 1),
        }
    }

    /// One more than the index of the instruction at an address of the recent range; 0 where nothing is decoded yet,
    /// none behind the range.
    fn known(&self, pc: u64, msb: VgprMsb, target: Target) -> Option<u32> {
        let range = &self.ranges[self.recent];
        let plain = *range.index[by_wave_size(target)].get(((pc - range.start) / 4) as usize)?;
        Some(if msb == VgprMsb::default() { plain } else { self.high.get(&(pc, msb)).copied().unwrap_or(0) })
    }

    /// Decodes an instruction, and those behind it that will run when it does.
    fn decode(&mut self, pc: u64, msb: VgprMsb, target: Target, memory: &View) -> Result<usize, FaultKind> {
        let first = self.ops.len();
        let mut next = self.decode_one(pc, msb, target, memory)?;
        for _ in 1..MAX_PLAIN {
            let Some(op) = self.ops.last().filter(|op| op.plain != 0) else { break };
            debug_assert_eq!(op.next, next);
            // Whatever is wrong with it is said when the wave comes to it.
            if self.known(next, msb, target) != Some(0) {
                break;
            }
            match self.decode_one(next, msb, target, memory) {
                Ok(behind) => next = behind,
                Err(_) => break,
            }
        }
        let mut plain = 0;
        for op in self.ops[first..].iter_mut().rev() {
            plain = if op.plain == 0 { 0 } else { plain + 1 };
            op.plain = plain;
        }
        Ok(first)
    }

    /// Adds the instruction at an address to those decoded; gives the address behind it.
    fn decode_one(&mut self, pc: u64, msb: VgprMsb, target: Target, memory: &View) -> Result<u64, FaultKind> {
        let range = &mut self.ranges[self.recent];
        let length = (range.end - pc).min(MAX_INSTRUCTION);
        let mut bytes = [0; MAX_INSTRUCTION as usize];
        memory.read(pc, &mut bytes[..length as usize], MemoryAccess::Fetch)?;
        let mut inst = decode(target, &bytes[..length as usize])
            .map_err(|error| FaultKind::Undecodable { reason: error.to_string().into() })?;
        if msb != VgprMsb::default() {
            mean(&mut inst, msb)?;
        }
        let place = (range.object, pc - range.base, pc);
        let named = self.names.of(target, &inst);
        // It is large: what makes it puts it in its place.
        match pair::op(target, &inst, &named, &mut self.names, place) {
            Some(op) => self.ops.push(op),
            None => {
                let Some(meaning) = named.meaning else {
                    return Err(FaultKind::UnknownInstruction { name: inst.variant.name.into() });
                };
                self.ops.push(Op::new(target, inst, meaning, &named, place));
            }
        }
        let mut next = pc;
        if let Some(op) = self.ops.last_mut() {
            op.replay = range.replay;
            if range.writes_all {
                op.write_all();
            }
            op.vgpr_msb = msb;
            next = op.next;
        }
        let decoded = self.ops.len() as u32;
        if msb == VgprMsb::default() {
            range.index[by_wave_size(target)][((pc - range.start) / 4) as usize] = decoded;
        } else {
            self.high.insert((pc, msb), decoded);
        }
        Ok(next)
    }
}

/// Replaces the vector registers that an instruction names by those that it means.
fn mean(inst: &mut Inst, msb: VgprMsb) -> Result<(), FaultKind> {
    for at in 0..inst.operands.len() {
        let Operand { role, value: Value::Reg(reg), .. } = inst.operands[at] else { continue };
        let Some(actual) = msb.actual(inst, role, reg) else {
            let what = format!("which vector registers {} names with these high bits of register numbers", inst.name());
            return Err(FaultKind::Undefined { what: what.into() });
        };
        inst.operands[at].value = Value::Reg(actual);
    }
    Ok(())
}

fn by_wave_size(target: Target) -> usize {
    usize::from(target.wave_size() == 64)
}

/// What an instruction means, by its operation.
pub(crate) fn meaning(target: Target, inst: &Inst) -> Option<Meaning> {
    use Encoding as E;
    let opcode = carrying(inst);
    match inst.variant.encoding {
        E::Sop1 | E::Sop2 | E::Sopk | E::Sopc | E::Sopp => fork::meaning(opcode).or_else(|| scalar::meaning(opcode)),
        E::Smem => control::meaning(opcode).or_else(|| smem::meaning(opcode, inst)),
        E::Ds => wave_transposing::meaning(opcode)
            .or_else(|| transposing::meaning(opcode, inst))
            .or_else(|| gws::meaning(opcode))
            .or_else(|| lds::meaning(opcode, inst)),
        E::Flat | E::Global | E::Scratch | E::Mubuf => control::meaning(opcode)
            .or_else(|| typed::meaning(opcode))
            .or_else(|| async_copy::meaning(opcode))
            .or_else(|| wave_transposing::meaning(opcode))
            .or_else(|| transposing::meaning(opcode, inst))
            .or_else(|| vmem::meaning(opcode, inst)),
        E::Mtbuf => typed::meaning(opcode),
        E::Mimg | E::Vimage | E::Vsample => image::meaning(opcode, inst.variant.flags),
        E::Tensor => tensor::meaning(opcode),
        E::Exp | E::Vintrp | E::Vinterp | E::Ldsdir => None,
        E::Vop3p | E::Vop3pDpp | E::Vop3pDpp8 => packed::meaning(opcode)
            .or_else(|| bf16::meaning(opcode))
            .or_else(|| dot::meaning(opcode))
            .or_else(|| mfma::meaning(opcode))
            .or_else(|| mfma_scaled::meaning(opcode))
            .or_else(|| smfmac::meaning(opcode))
            .or_else(|| wmma::meaning(opcode))
            .or_else(|| wmma_scaled::meaning(opcode))
            .or_else(|| swmmac::meaning(opcode))
            .or_else(|| lane_access::meaning(target, opcode)),
        _ if opcode == Opcode::V_SAT_PK_U8_I16 && gives_half(inst.variant) => Some(int_ops::saturated_bytes_in_half()),
        _ => compare::meaning(opcode)
            .or_else(|| lane_access::meaning(target, opcode))
            .or_else(|| movement::meaning(opcode))
            .or_else(|| packed::meaning(opcode))
            .or_else(|| dot::meaning(opcode))
            .or_else(|| int_ops::meaning(opcode))
            .or_else(|| float_ops::meaning(opcode))
            .or_else(|| convert::meaning(target, opcode))
            .or_else(|| bf16::meaning(opcode))
            .or_else(|| scaled_pack::meaning(opcode))
            .or_else(|| scaled::meaning(opcode))
            .or_else(|| control::meaning(opcode)),
    }
}

/// Whether the result is half of a register, which the instruction names.
fn gives_half(variant: &Variant) -> bool {
    let half = |coding| matches!(coding, Coding::VectorHalf | Coding::VectorLow128);
    variant.operands.iter().any(|spec| spec.role == Role::Vdst && half(spec.kind.coding))
}

/// The operation; on gfx8 that of an addition that gives a carry does not say so.
fn carrying(inst: &Inst) -> Opcode {
    let variant = inst.variant;
    let carries =
        variant.implicit_writes.contains(Implicit::VCC) || variant.operands.iter().any(|spec| spec.role == Role::Sdst);
    match variant.opcode {
        Opcode::V_ADD_U32 if carries => Opcode::V_ADD_CO_U32,
        Opcode::V_SUB_U32 if carries => Opcode::V_SUB_CO_U32,
        Opcode::V_SUBREV_U32 if carries => Opcode::V_SUBREV_CO_U32,
        opcode => opcode,
    }
}
