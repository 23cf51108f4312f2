//! Scratch memory that was added to a kernel's own, and the four scalar registers that describe a wave's where only
//! buffer instructions reach it.
//!
//! The hardware gives a wave what describes the scratch memory of all of them: a base in the first two registers, the
//! wave's distance from it in another one. The sum with the same two last registers describes the wave's own
//! (AMDGPUUsage, "Private Segment Buffer").

use std::ops::Range;

use crate::finding::{Finding, Rule};
use crate::values::compared::{State, Word};
use wavetap_amdgpu::{Opcode, Operand, Reg, RegFile, Role, Target, Value, scalar};
use wavetap_analysis::cfg::{BodyId, Cfg, Program};
use wavetap_analysis::dataflow::{Definition, Definitions, Summaries};
use wavetap_analysis::kernel::Body;
use wavetap_base::entity::InstId;
use wavetap_object::code_object::{Field, InitialRegisters, Kernel};

/// Checks that scratch memory only grew, the same in descriptor and metadata, and only where the original cannot
/// notice; gives what was added, for each work-item.
pub(crate) fn added(
    (old, new): (&Kernel, &Kernel),
    program: &Program,
    id: BodyId,
    target: Target,
    findings: &mut Vec<Finding>,
) -> Range<u64> {
    let stated = |kernel: &Kernel| u64::from(kernel.descriptor.get(Field::PRIVATE_SEGMENT_FIXED_SIZE));
    let noted = |kernel: &Kernel| kernel.metadata.as_ref().map_or(0, |metadata| metadata.private_segment_fixed_size);
    let enabled = |kernel: &Kernel| kernel.descriptor.is_set(Field::ENABLE_PRIVATE_SEGMENT);
    let (before, now) = (stated(old).max(noted(old)), noted(new));
    let mut complain = |message: String| findings.push(Finding::new(Rule::Scratch, message).at(new.descriptor_address));
    let same = stated(old) == stated(new) && noted(old) == noted(new) && enabled(old) == enabled(new);
    let is_given = |kernel: &Kernel| kernel.descriptor.is_set(Field::ENABLE_SGPR_FLAT_SCRATCH_INIT);
    if is_given(old) != is_given(new) && (same || target.architected_flat_scratch() || target.offset_flat_scratch()) {
        complain("what FLAT_SCRATCH is made of is asked for, and not needed".to_owned());
    }
    if same {
        return 0..0;
    }
    if now < before || (stated(new) != now && stated(new) != 0) || (stated(new) == 0) != (stated(old) == 0) {
        complain(format!(
            "{before} bytes of scratch memory became {now} in the metadata and {} in the descriptor",
            stated(new)
        ));
    }
    if !enabled(new) {
        complain("scratch memory is not enabled".to_owned());
    }
    if enabled(new) != enabled(old) && now == before {
        complain("scratch memory is enabled, and there is none".to_owned());
    }
    let callees = program.callees(id);
    if target.offset_flat_scratch() {
        // Inserted code goes by what describes scratch memory, which is looked at where it does. FLAT_SCRATCH is the
        // original's.
        if !new.descriptor.is_set(Field::ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER) {
            complain("what describes scratch memory is not asked for".to_owned());
        }
    }
    if old.descriptor.is_set(Field::ENABLE_SGPR_PRIVATE_SEGMENT_SIZE) {
        complain("the original is told how much scratch memory there is".to_owned());
    }
    let recursive = callees.bodies.iter().any(|callee| program.callees(*callee).bodies.contains(callee));
    let dynamic = old.metadata.as_ref().is_some_and(|metadata| metadata.uses_dynamic_stack);
    if callees.unknown || recursive || dynamic || old.descriptor.is_set(Field::USES_DYNAMIC_STACK) {
        complain("it is not known how much scratch memory the original uses".to_owned());
    }
    before..now
}

/// Checks that FLAT_SCRATCH, which inserted code has set at the entry, stays as it is: nothing sets it, or the kernel
/// does, from what it was entered with and as inserted code has to. `entry` are the original's registers.
pub(crate) fn stays(
    program: &Program,
    kernel: BodyId,
    entry: &InitialRegisters,
    summaries: &Summaries,
    findings: &mut Vec<Finding>,
) {
    let mut complain = |body: &Body, id: InstId| {
        let message = format!("the original sets FLAT_SCRATCH in its own way: {}", body.inst(id).name());
        findings.push(Finding::new(Rule::Scratch, message).at(body.address(id)));
    };
    for callee in program.callees(kernel).bodies {
        let body = program.body(callee);
        body.ids().filter(|id| body.sets_flat_scratch_at(*id)).for_each(|id| complain(body, id));
    }
    let body = program.body(kernel);
    let setting: Vec<InstId> = body.ids().filter(|id| body.sets_flat_scratch_at(*id)).collect();
    if setting.is_empty() {
        return;
    }
    let cfg = Cfg::build(body);
    let sums = Sums { body, definitions: Definitions::new(body, &cfg, summaries), entry };
    setting.into_iter().filter(|id| !sums.sets_flat_scratch(*id)).for_each(|id| complain(body, id));
}

/// The sums that lead to a wave's scratch memory, by where what is added comes from.
struct Sums<'a> {
    body: &'a Body,
    definitions: Definitions<'a>,
    entry: &'a InitialRegisters,
}

impl Sums<'_> {
    /// Whether an instruction sets FLAT_SCRATCH, or the half that it sets, as it has to be.
    fn sets_flat_scratch(&self, id: InstId) -> bool {
        let inst = self.body.inst(id);
        let Some(low) = self.body.target().flat_scratch_hwreg() else {
            let destination = inst.operands.iter().find(|operand| operand.access.writes()).and_then(Operand::reg);
            return match destination {
                Some(reg) if reg == Reg::scalar(scalar::FLAT_SCRATCH, 1) => self.is_low(id),
                Some(reg) if reg == Reg::scalar(scalar::FLAT_SCRATCH + 1, 1) => self.is_high(id),
                _ => false,
            };
        };
        let source = inst.operands.iter().find_map(Operand::reg).map(|reg| self.definitions.reaching(id, reg));
        let number = inst.hardware_register().filter(|(_, bits)| *bits == (0..32)).map(|(number, _)| number);
        match (number, source.as_deref()) {
            (Some(number), Some([Definition::Inst(sum)])) => {
                if number == low {
                    self.is_low(*sum)
                } else {
                    self.is_high(*sum)
                }
            }
            _ => false,
        }
    }

    /// Whether a source of an instruction is a register with what it had at the kernel's entry.
    fn is_given(&self, id: InstId, operand: Option<&Operand>, code: Option<u16>) -> bool {
        let reg = operand.and_then(Operand::reg).filter(|reg| code.is_some_and(|code| *reg == Reg::scalar(code, 1)));
        reg.is_some_and(|reg| self.definitions.reaching(id, reg) == [Definition::Entry])
    }

    /// Whether an instruction adds the low half of the address of scratch memory and the wave's offset.
    fn is_low(&self, id: InstId) -> bool {
        let inst = self.body.inst(id);
        let (base, offset) = (self.entry.flat_scratch_init, self.entry.private_segment_wave_offset);
        let (a, b) = (inst.operand(Role::Src0), inst.operand(Role::Src1));
        let adds = |a, b| self.is_given(id, a, base) && self.is_given(id, b, offset);
        inst.opcode() == Opcode::S_ADD_U32 && (adds(a, b) || adds(b, a))
    }

    /// Whether an instruction adds the carry from there to the high half.
    fn is_high(&self, id: InstId) -> bool {
        let inst = self.body.inst(id);
        let base = self.entry.flat_scratch_init.map(|base| base + 1);
        let (a, b) = (inst.operand(Role::Src0), inst.operand(Role::Src1));
        let is_zero = |operand: Option<&Operand>| operand.is_some_and(|operand| operand.value == Value::InlineInt(0));
        let adds = self.is_given(id, a, base) && is_zero(b) || self.is_given(id, b, base) && is_zero(a);
        let carries = || match self.definitions.reaching(id, Reg::SCC)[..] {
            [Definition::Inst(sum)] => self.is_low(sum),
            _ => false,
        };
        inst.opcode() == Opcode::S_ADDC_U32 && adds && carries()
    }
}

/// [`Word::Resource`] of the carry from the first register to the second.
pub(crate) const RESOURCE_CARRY: u8 = 4;
/// [`Word::Given`] of the wave's offset, and of the first of the registers that describe the scratch memory of all
/// waves.
const GIVEN_OFFSET: u8 = 2;
const GIVEN_RESOURCE: u8 = 3;

/// What a kernel is entered with that describes the scratch memory of all waves, and the wave's offset from its base;
/// none if it is not asked for. Words that the original does not have get names of their own.
pub(crate) fn given(state: &mut State, entry: &InitialRegisters) -> Option<[Word; 5]> {
    let (first, offset) = (entry.private_segment_buffer?, entry.private_segment_wave_offset?);
    let mut word = |code: u16, unnamed: u8| match state.word(Reg::scalar(code, 1), 0) {
        word @ Word::Original(_) => word,
        _ => {
            state.set(Reg::scalar(code, 1), 0, Word::Given(unnamed));
            Word::Given(unnamed)
        }
    };
    let [a, b, c, d] = [0, 1, 2, 3].map(|index| word(first + u16::from(index), GIVEN_RESOURCE + index));
    Some([a, b, c, d, word(offset, GIVEN_OFFSET)])
}

/// What a copy of a word is in a register: the two last dwords of what describes scratch memory are the same for all
/// waves. The register in which the original has one itself keeps holding the original's.
pub(crate) fn copied(state: &State, word: Word, to: Option<Reg>, index: u8) -> Word {
    let Some([.., third, fourth, _]) = state.resource else { return word };
    let Some(to) = to.filter(|to| to.file == RegFile::Scalar) else { return word };
    match word {
        word if word == Word::Original(to.first + u16::from(index)) => word,
        word if word == third => Word::Resource(2),
        word if word == fourth => Word::Resource(3),
        word => word,
    }
}

/// Whether four registers describe the wave's scratch memory.
pub(crate) fn is_described(state: &State, registers: Reg) -> bool {
    registers.file == RegFile::Scalar
        && registers.dwords == 4
        && (0..4).all(|index| state.word(registers, index) == Word::Resource(index))
}
