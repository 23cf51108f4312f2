//! Loaded code, decoded once for each address.

use rustc_hash::FxHashMap;

use wavetap_amdgpu::{Inst, Operand, Target, Value, VgprMsb, decode};

use super::clock_loops::ClockLoops;
use super::pool::Pool;
use crate::address::ObjectId;
use crate::exec::pair;
use crate::exec::prepare::{self, OpcodeCache};
use crate::fault::{FaultKind, MemoryAccess};
use crate::memory::View;
use crate::memory::loader::CodeRange;
use crate::op::InstLocation;
use crate::state::op::Op;

/// The longest instruction in bytes.
const MAX_INSTRUCTION: u64 = 20;
/// Most instructions that are decoded at once.
const MAX_STRAIGHT_LINE: usize = 256;

struct Range {
    start: u64,
    end: u64,
    object: ObjectId,
    base: u64,
    replay: bool,
    writes_all: bool,
    /// For each dword, one more than the index of its instruction; 0 where nothing is decoded yet. By wave size: an
    /// encoding means different things in wave32 (first) and of 64.
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
    opcodes: OpcodeCache,
    recent: usize,
    pub clock_loops: ClockLoops,
    /// What the thread that runs it can use again.
    pub pool: Pool,
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
        match self.decoded_at(pc, msb, target) {
            Some(0) | None => self.decode(pc, msb, target, memory),
            Some(known) => Ok(known as usize - 1),
        }
    }

    /// One more than the index of the instruction at an address of the recent range; 0 where nothing is decoded yet,
    /// none after the range.
    fn decoded_at(&self, pc: u64, msb: VgprMsb, target: Target) -> Option<u32> {
        let range = &self.ranges[self.recent];
        let index = *range.index[by_wave_size(target)].get(((pc - range.start) / 4) as usize)?;
        Some(if msb == VgprMsb::default() { index } else { self.high.get(&(pc, msb)).copied().unwrap_or(0) })
    }

    /// Decodes an instruction, and those after it that will run when it does.
    fn decode(&mut self, pc: u64, msb: VgprMsb, target: Target, memory: &View) -> Result<usize, FaultKind> {
        let first = self.ops.len();
        let mut next = self.decode_one(pc, msb, target, memory)?;
        for _ in 1..MAX_STRAIGHT_LINE {
            let Some(op) = self.ops.last().filter(|op| op.straight_line != 0) else { break };
            debug_assert_eq!(op.next, next);
            // Whatever is wrong with it is said when the wave comes to it.
            if self.decoded_at(next, msb, target) != Some(0) {
                break;
            }
            match self.decode_one(next, msb, target, memory) {
                Ok(behind) => next = behind,
                Err(_) => break,
            }
        }
        let mut run = 0;
        for op in self.ops[first..].iter_mut().rev() {
            run = if op.straight_line == 0 { 0 } else { run + 1 };
            op.straight_line = run;
        }
        Ok(first)
    }

    /// Adds the instruction at an address to those decoded; returns the address after it.
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
        let location = InstLocation { object: range.object, address: pc - range.base, pc };
        let (info, meaning) = self.opcodes.of(target, &inst);
        // It is large: what makes it puts it in its place.
        match pair::op(target, &inst, &info, &mut self.opcodes, location) {
            Some(op) => self.ops.push(op),
            None => {
                let Some(meaning) = meaning else {
                    return Err(FaultKind::UnknownInstruction { name: inst.variant.name.into() });
                };
                self.ops.push(prepare::op(target, inst, meaning, &info, location));
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
