//! FLAT_SCRATCH as original code sets it: where the hardware leaves it to software, prologues of kernels that call
//! functions let it lead to the wave's scratch memory (AMDGPUUsage, "Flat Scratch"), as inserted prologues do.

use rustc_hash::FxHashMap;

use wavetap_amdgpu::{Inst, Opcode, Reg, RegFile, Role, Value, scalar};
use wavetap_analysis::cfg::{BodyId, Cfg, Program};
use wavetap_analysis::kernel::{Body, Flow};
use wavetap_object::code_object::InitialRegisters;

/// What is known of a scalar register, or of SCC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// It holds what this register held at the entry.
    Initial(u16),
    /// It holds the low half of where the wave's scratch memory is.
    Low,
    /// It is the carry from the low half to the high one.
    Carry,
    /// It holds the high half.
    High,
    /// Nothing.
    Nothing,
}

/// Whether FLAT_SCRATCH, once it leads to the wave's scratch memory, does so as long as a kernel runs, whatever the
/// kernel and the functions do that it may call, as far as these are known: nothing changes it, or the kernel alone
/// does before its first branch, and gives it the value that it has. `entry` are the original's registers.
pub(crate) fn stays(program: &Program, kernel: BodyId, entry: &InitialRegisters) -> bool {
    if program.callees(kernel).bodies.into_iter().any(|id| program.body(id).sets_flat_scratch()) {
        return false;
    }
    let body = program.body(kernel);
    !body.sets_flat_scratch() || sets_once(body, entry)
}

/// Whether the instructions that set FLAT_SCRATCH are all in a block that runs once, at the entry, and set it to where
/// the wave's scratch memory is.
fn sets_once(body: &Body, entry: &InitialRegisters) -> bool {
    let (Some(base), Some(offset)) = (entry.flat_scratch_init, entry.private_segment_wave_offset) else { return false };
    let cfg = Cfg::build(body);
    let first = cfg.block(cfg.entry());
    if first.first != body.entry() || !first.predecessors.is_empty() {
        return false;
    }
    let mut values = Values { base, offset, known: FxHashMap::default() };
    let mut right = 0;
    for id in first.insts() {
        let inst = body.inst(id);
        values.step(inst);
        if body.sets_flat_scratch_at(id) {
            if !values.are_right(body, inst) {
                return false;
            }
            right += 1;
        }
        // What a function leaves in registers is not known here.
        if matches!(body.flow(id), Flow::Call(_)) {
            break;
        }
    }
    right == body.ids().filter(|id| body.sets_flat_scratch_at(*id)).count()
}

/// What is known where instructions have run one after the other from the entry.
struct Values {
    base: u16,
    offset: u16,
    known: FxHashMap<u16, Known>,
}

impl Values {
    fn of(&self, code: u16) -> Known {
        self.known.get(&code).copied().unwrap_or(if code == scalar::SCC {
            Known::Nothing
        } else {
            Known::Initial(code)
        })
    }

    fn source(&self, inst: &Inst, role: Role) -> Option<Known> {
        inst.operand(role)?.reg().filter(|reg| reg.file == RegFile::Scalar).map(|reg| self.of(reg.first))
    }

    fn step(&mut self, inst: &Inst) {
        let (first, second) = (self.source(inst, Role::Src0), self.source(inst, Role::Src1));
        let is_zero = |role| inst.operand(role).is_some_and(|operand| operand.value == Value::InlineInt(0));
        let adds = |one, other| [(one, other), (other, one)].contains(&(first, second));
        let (sum, carry) = match inst.opcode() {
            Opcode::S_ADD_U32 if adds(Some(Known::Initial(self.base)), Some(Known::Initial(self.offset))) => {
                (Known::Low, Known::Carry)
            }
            Opcode::S_ADDC_U32 if self.of(scalar::SCC) == Known::Carry => {
                let high = Some(Known::Initial(self.base + 1));
                let is_high = first == high && is_zero(Role::Src1) || second == high && is_zero(Role::Src0);
                (if is_high { Known::High } else { Known::Nothing }, Known::Nothing)
            }
            _ => (Known::Nothing, Known::Nothing),
        };
        for reg in inst.writes().filter(|reg| reg.file == RegFile::Scalar) {
            let known = if reg == Reg::SCC { carry } else { sum };
            self.known.extend((reg.first..reg.first + u16::from(reg.dwords)).map(|code| (code, known)));
        }
    }

    /// Whether FLAT_SCRATCH, or the half of it that an instruction, the last one, has set, is right.
    fn are_right(&self, body: &Body, inst: &Inst) -> bool {
        let wanted = [Known::Low, Known::High].into_iter();
        let Some(low) = body.target().flat_scratch_hwreg() else {
            let is_set = |code| inst.writes().any(|reg| reg.overlaps(Reg::scalar(code, 1)));
            return (scalar::FLAT_SCRATCH..).zip(wanted).all(|(code, wanted)| !is_set(code) || self.of(code) == wanted);
        };
        let moved = inst.operands.iter().find_map(|operand| operand.reg()).map(|reg| self.of(reg.first));
        let is_whole = inst.hardware_register().is_some_and(|(_, bits)| bits == (0..32));
        is_whole
            && (low..).zip(wanted).all(|(number, wanted)| inst.sets_hwreg() != Some(number) || moved == Some(wanted))
    }
}
