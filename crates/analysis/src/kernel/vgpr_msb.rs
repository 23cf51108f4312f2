//! Vector registers above v255 (gfx1250): the high bits of register numbers, which `s_set_vgpr_msb` sets for the
//! instructions that follow.
//!
//! They are 0 at the entry of a kernel or function and after a call. Which ones hold at an instruction must be the same
//! on all paths to it; otherwise the body is refused, because which registers it uses is not known.

use crate::kernel::{Body, Flow, Instructions};
use crate::solver::{Analysis, Lattice, solve};
use wavetap_amdgpu::{Inst, Opcode, OpcodeFlags, Operand, RegFile, Role, Value, VgprMsb};
use wavetap_base::entity::InstId;
use wavetap_base::error::{Error, Result};

/// Hardware register MODE.
const MODE: u8 = 1;

/// What is known of the high bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Known(VgprMsb),
    /// Different ones on different paths, or set to a value that is not known.
    Unknown,
}

impl State {
    fn step(self, inst: &Inst, flow: Flow) -> State {
        if matches!(flow, Flow::Call(_)) {
            return State::Known(VgprMsb::default());
        }
        match inst.opcode() {
            Opcode::S_SET_VGPR_MSB => match inst.operand(Role::Simm16).map(|operand| operand.value) {
                Some(Value::Imm(bits)) => State::Known(VgprMsb(bits as u8)),
                _ => State::Unknown,
            },
            _ if inst.is_any(OpcodeFlags::SETREG) => {
                let Some((number, bits)) = inst.hardware_register() else { return State::Unknown };
                let covers = bits.start <= VgprMsb::MODE_LAST && bits.end > VgprMsb::MODE_FIRST;
                match literal(inst) {
                    _ if number != MODE => self,
                    // A literal's bits go into the high bits whatever part of MODE is written (LLVM,
                    // AMDGPULowerVGPREncoding, which sets them that way, too).
                    Some(literal) => State::Known(VgprMsb::of_mode(literal)),
                    None if !covers => self,
                    None => State::Unknown,
                }
            }
            _ => self,
        }
    }
}

/// Different ones are unknown.
impl Lattice for State {
    fn join(&mut self, other: &State) -> bool {
        let changed = *self != *other && *self != State::Unknown;
        if changed {
            *self = State::Unknown;
        }
        changed
    }
}

/// The high bits before each instruction.
struct HighBits<'a>(&'a Body);

impl Analysis for HighBits<'_> {
    type Node = InstId;
    type State = State;

    fn transfer(&mut self, id: InstId, state: &mut State) {
        *state = step(self.0, id, *state);
    }

    fn join(&mut self, _: InstId, state: &mut State, incoming: &State) -> bool {
        state.join(incoming)
    }
}

/// The high bits after an instruction that is reached with these.
pub(super) fn after(body: &Body, id: InstId, before: Option<VgprMsb>) -> Option<VgprMsb> {
    match step(body, id, before.map_or(State::Unknown, State::Known)) {
        State::Known(msb) => Some(msb),
        State::Unknown => None,
    }
}

/// What is known after an instruction.
fn step(body: &Body, id: InstId, state: State) -> State {
    let after = state.step(body.inst(id), body.flow(id));
    // The hardware drops it directly after an `s_setreg_imm32_b32` of MODE (LLVM, AMDGPULowerVGPREncoding). By other
    // ways it may be reached as well.
    if after != state && follows_mode_write(body, id) { State::Unknown } else { after }
}

/// Whether it is an `s_set_vgpr_msb` directly after an instruction that writes a literal to MODE.
fn follows_mode_write(body: &Body, id: InstId) -> bool {
    let before = id.0.checked_sub(1).map(InstId).filter(|before| body.next(*before) == Some(id));
    body.inst(id).opcode() == Opcode::S_SET_VGPR_MSB
        && before.is_some_and(|before| writes_literal_to_mode(body.inst(before)))
}

/// Whether it is `s_setreg_imm32_b32` of MODE.
pub fn writes_literal_to_mode(inst: &Inst) -> bool {
    inst.sets_hwreg() == Some(MODE) && literal(inst).is_some()
}

/// The literal of an instruction.
pub(super) fn literal(inst: &Inst) -> Option<u32> {
    inst.operands.iter().find_map(|operand| if let Value::Literal(value) = operand.value { Some(value) } else { None })
}

/// The high bits at every instruction of a body, where they are known; empty if nothing sets them.
///
/// # Errors
/// Unsupported if an instruction with vector registers is reached with different high bits, or with unknown ones.
pub(super) fn states(body: &Body) -> Result<Vec<Option<VgprMsb>>> {
    let sets_some =
        |inst: &Inst| writes_literal_to_mode(inst) && literal(inst).map(VgprMsb::of_mode) != Some(VgprMsb::default());
    let opcode_flags = body.opcode_flags();
    let may_set = opcode_flags.contains(OpcodeFlags::SET_VGPR_MSB)
        || (opcode_flags.contains(OpcodeFlags::HARDWARE_REGISTER)
            && body.target().has_vgpr_msb()
            && body.insts().iter().any(sets_some));
    if !may_set {
        return Ok(Vec::new());
    }
    let at_entry = State::Known(VgprMsb::default());
    let before = solve(&Instructions::of(body), &mut HighBits(body), [(body.entry(), at_entry)]);
    let refuse = |id: InstId, why: &str| {
        Err(Error::unsupported(format!("{}: {why}", body.inst(id).name())).at(body.address(id)))
    };
    let mut states = Vec::with_capacity(body.len());
    for id in body.ids() {
        let inst = body.inst(id);
        let vectors =
            || inst.operands.iter().filter(|operand| operand.reg().is_some_and(|reg| reg.file == RegFile::Vector));
        match before[id.index()] {
            Some(State::Known(msb)) => {
                let known =
                    |operand: &Operand| operand.reg().is_none_or(|reg| msb.actual(inst, operand.role, reg).is_some());
                if msb != VgprMsb::default() && !inst.operands.iter().all(known) {
                    return refuse(
                        id,
                        "it is not known which of its vector registers s_set_vgpr_msb concerns, or they end past the \
                            last one",
                    );
                }
                states.push(Some(msb));
            }
            _ if vectors().next().is_some() => {
                return refuse(
                    id,
                    "it depends on the path or on a value which vector registers it uses (s_set_vgpr_msb)",
                );
            }
            _ => states.push(None),
        }
    }
    Ok(states)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::assembly::{Listing, Op, branch_scc1, end, op, swappc};
    use crate::kernel::{BodyKind, Image};
    use wavetap_amdgpu::{Memory, Reg};

    fn set(bits: i64) -> Op {
        op("s_set_vgpr_msb").imm(bits)
    }

    fn add() -> Op {
        op("v_add_f32").writes(Reg::vector(1, 1)).reads(Reg::vector(2, 1)).reads(Reg::vector(3, 2))
    }

    fn vectors(regs: impl Iterator<Item = Reg>) -> Vec<Reg> {
        regs.filter(|reg| reg.file == RegFile::Vector).collect()
    }

    #[test]
    fn each_place_has_its_bits() {
        let body = Listing::at(0)
            .push(add())
            .push(set(0b11_00_10_01))
            .push(add())
            .push(set(0))
            .push(add())
            .push(end())
            .kernel();
        let v = Reg::vector;
        for (id, reads, writes) in
            [(0, [v(2, 1), v(3, 2)], v(1, 1)), (2, [v(258, 1), v(515, 2)], v(769, 1)), (4, [v(2, 1), v(3, 2)], v(1, 1))]
        {
            assert_eq!(vectors(body.reads(InstId(id))), reads);
            assert_eq!(vectors(body.writes(InstId(id))), [writes]);
        }
        assert!(body.reads(InstId(2)).any(|reg| reg == Reg::EXEC), "implicit registers are as they were");
    }

    #[test]
    fn registers_that_depend_on_the_path_are_refused() {
        let listing = |behind: Op| {
            Listing::at(0).push(branch_scc1("join")).push(set(1)).label("join").push(behind).push(set(0)).push(end())
        };
        let error = listing(add()).try_body(&Image::new(), BodyKind::Kernel, 0).expect_err("v2 or v258");
        assert_eq!(error.kind(), wavetap_base::error::Kind::Unsupported);
        assert_eq!(error.offset(), Some(8));
        assert!(
            listing(op("s_nop")).try_body(&Image::new(), BodyKind::Kernel, 0).is_ok(),
            "no vector register is used"
        );
        let loop_back = Listing::at(0).label("top").push(add()).push(set(1)).push(branch_scc1("top")).push(end());
        assert!(loop_back.try_body(&Image::new(), BodyKind::Kernel, 0).is_err());
    }

    #[test]
    fn calls_return_with_none_set_and_mode_may_set_them() {
        let body = Listing::at(0).push(set(1)).push(swappc(30, 4)).push(add()).push(end()).kernel();
        assert_eq!(vectors(body.reads(InstId(2)))[0], Reg::vector(2, 1));
        let mode = |first: i64, size: i64| MODE as i64 | first << 6 | (size - 1) << 11;
        let setreg = |hwreg: i64| op("s_setreg_b32").reads(Reg::scalar(3, 1)).imm(hwreg);
        let with = |write: Op| {
            Listing::at(0).push(set(1)).push(write).push(add()).push(end()).try_body(&Image::new(), BodyKind::Kernel, 0)
        };
        assert!(with(setreg(mode(0, 8))).is_ok());
        assert!(with(setreg(mode(8, 8))).is_err());
        assert!(with(setreg(2)).is_ok(), "another register");
        let literal = |value: u32| op("s_setreg_imm32_b32").literal(value).imm(mode(0, 4));
        let first = |write: Op| vectors(with(write).expect("known").reads(InstId(2)))[0];
        assert_eq!(first(literal(0x0000_4000)), Reg::vector(258, 1), "source 0 has bit 14 of MODE");
        assert_eq!(first(literal(0x0000_8000)), Reg::vector(514, 1));
        assert_eq!(first(literal(0)), Reg::vector(2, 1));
    }

    /// Directly after an instruction that writes a literal to MODE the hardware drops it, and by another way it is not
    /// dropped.
    #[test]
    fn what_follows_a_mode_write_is_dropped() {
        let literal = || op("s_setreg_imm32_b32").literal(0).imm(i64::from(MODE) | 3 << 11);
        let behind = |listing: Listing, bits| {
            listing.push(set(bits)).push(add()).push(end()).try_body(&Image::new(), BodyKind::Kernel, 0)
        };
        let at_once = || Listing::at(0).push(literal());
        assert!(behind(at_once(), 1).is_err());
        assert!(behind(at_once(), 0).is_ok(), "it changes nothing");
        let body = behind(at_once().push(op("s_nop")), 1).expect("known");
        assert_eq!(
            (body.vgpr_msb_before(InstId(2)), body.vgpr_msb_after(InstId(2))),
            (Some(VgprMsb(0)), Some(VgprMsb(1)))
        );
    }

    #[test]
    fn registers_past_the_last_one_are_refused() {
        let load = || {
            op("image_sample")
                .memory(Memory::Image, wavetap_amdgpu::Counters::VM, wavetap_amdgpu::Flags::LOAD)
                .writes(Reg::vector(1, 1))
        };
        let with =
            |bits| Listing::at(0).push(set(bits)).push(load()).push(end()).try_body(&Image::new(), BodyKind::Kernel, 0);
        assert!(with(0).is_ok());
        assert!(with(0x40).is_err());
    }
}
