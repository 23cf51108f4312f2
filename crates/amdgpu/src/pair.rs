//! Two operations in one instruction (VOPD): what each of them is, reads and writes.

use super::inst::{Inst, Operand, Reg};
use super::opcode::Opcode;
use super::table::{Variant, Written};
use super::vocabulary::{Access, Implicit};

/// Between the mnemonics of a pair of operations.
pub(super) const BETWEEN: &str = "::";

/// One of the two operations of an instruction, `v_dual_add_f32` of `v_dual_mul_f32 v0, v1, v2 :: v_dual_add_f32 v3,
/// v4, v5`.
///
/// Both read their sources before either writes: neither sees what the other writes (RDNA3 ISA guide, "Dual issue
/// VALU"). In other respects, too, they are independent: their destinations are different registers, and what one of
/// them writes depends on its own sources only.
#[derive(Debug, Clone, Copy)]
pub struct HalfOperation<'a> {
    inst: &'a Inst,
    opcode: Opcode,
    /// Its operands: those of the instruction from the one to the other, exclusive.
    own: (usize, usize),
    /// Whether its literal is the one that is an operand of the other half.
    shares_literal: bool,
    implicit: Implicit,
}

impl Inst {
    /// The two operations of an instruction that has two, as they are written; none of any other instruction.
    ///
    /// ```
    /// use wavetap_amdgpu::{self as isa, Opcode, Reg, Target};
    /// let target = Target::by_name("gfx1100").unwrap();
    /// // v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0
    /// let swap = isa::decode(target, &[0x01, 0x01, 0x10, 0xca, 0x00, 0x01, 0x00, 0x00])?;
    /// let [first, second] = swap.halves().unwrap();
    /// assert_eq!((first.opcode(), first.opcode().alone()), (Opcode::V_DUAL_MOV_B32, Some(Opcode::V_MOV_B32)));
    /// assert!(first.writes().eq([Reg::vector(0, 1)]));
    /// assert!(second.reads().any(|reg| reg == Reg::vector(0, 1)), "the old value");
    /// # Ok::<(), wavetap_base::error::Error>(())
    /// ```
    #[must_use]
    pub fn halves(&self) -> Option<[HalfOperation<'_>; 2]> {
        let [first, second] = self.variant.halves?;
        let second_opcode = self.variant.second?;
        let split = first_operands(self.variant)?;
        let shares_literal = self.variant.written.contains(&Written::LiteralX);
        Some([
            HalfOperation { inst: self, opcode: self.variant.opcode, own: (0, split), shares_literal, implicit: first },
            HalfOperation {
                inst: self,
                opcode: second_opcode,
                own: (split, self.operands.len()),
                shares_literal: false,
                implicit: second,
            },
        ])
    }
}

/// How many operands the first operation of a pair has.
fn first_operands(variant: &Variant) -> Option<usize> {
    let split = variant.written.iter().position(|written| *written == Written::Second)?;
    Some(variant.written[..split].iter().filter(|written| **written == Written::Operand).count())
}

impl<'a> HalfOperation<'a> {
    /// The operation, as one of a pair: `v_dual_add_f32`.
    #[must_use]
    pub fn opcode(&self) -> Opcode {
        self.opcode
    }

    /// The name of [`Self::opcode`].
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.opcode.name()
    }

    /// What assemblers call the operation where it is alone in an instruction: `v_add_f32`. There are some that never
    /// are ([`Opcode::alone`]).
    #[must_use]
    pub fn alone(&self) -> String {
        self.name().replacen("_dual_", "_", 1)
    }

    /// Its operands, the destination first. A literal that both operations have is an operand of both.
    pub fn operands(&self) -> impl Iterator<Item = &'a Operand> + use<'a> {
        let inst = self.inst;
        let (from, to) = self.own;
        let literal = inst.operands[to..].iter().filter(|operand| operand.role == super::Role::Imm);
        inst.operands[from..to].iter().chain(literal.take(usize::from(self.shares_literal)))
    }

    /// Every register run that it reads, explicitly and implicitly: as [`Inst::reads`].
    pub fn reads(&self) -> impl Iterator<Item = Reg> + use<'a> {
        let explicit = self
            .operands()
            .filter(|operand| matches!(operand.access, Access::Read | Access::ReadWrite))
            .filter_map(Operand::reg);
        explicit.chain(self.implicit.regs(self.inst.wave_size.into()))
    }

    /// Every register run that it writes.
    pub fn writes(&self) -> impl Iterator<Item = Reg> + use<'a> {
        self.operands()
            .filter(|operand| matches!(operand.access, Access::Write | Access::ReadWrite))
            .filter_map(Operand::reg)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::{Role, Target, Value, decode, print, variants};
    use super::*;

    fn inst(target: &str, words: &[u32]) -> Inst {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        decode(Target::by_name(target).expect("a target"), &bytes).expect("an instruction")
    }

    fn regs(regs: impl Iterator<Item = Reg>) -> BTreeSet<Reg> {
        regs.collect()
    }

    #[test]
    fn halves_have_their_own_operands_and_registers() {
        let gfx1100 = Target::by_name("gfx1100").expect("a target");
        let pair = inst("gfx1100", &[0xca10_0101, 0x0000_0100]);
        assert_eq!(print(gfx1100, &pair), "v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0");
        let [first, second] = pair.halves().expect("two operations");
        assert_eq!(regs(first.reads()), BTreeSet::from([Reg::vector(1, 1), Reg::scalar(126, 1)]));
        assert_eq!(regs(first.writes()), BTreeSet::from([Reg::vector(0, 1)]));
        assert_eq!(regs(second.reads()), BTreeSet::from([Reg::vector(0, 1), Reg::scalar(126, 1)]));
        assert_eq!(regs(second.writes()), BTreeSet::from([Reg::vector(1, 1)]));
    }

    #[test]
    fn only_the_half_that_reads_vcc_reads_it() {
        // v_dual_cndmask_b32 v0, v1, v2 :: v_dual_add_f32 v3, v4, v5
        let pair =
            inst("gfx1100", &[0xc800_0000 | 9 << 22 | 4 << 17 | 2 << 9 | 0x101, 1 << (49 - 32) | 5 << 9 | 0x104]);
        let vcc = Reg::scalar(106, 1);
        let [first, second] = pair.halves().expect("two operations");
        assert_eq!((first.name(), second.name()), ("v_dual_cndmask_b32", "v_dual_add_f32"));
        assert!(first.reads().any(|reg| reg == vcc));
        assert!(second.reads().all(|reg| reg != vcc));
    }

    #[test]
    fn a_literal_of_both_is_an_operand_of_both() {
        // v_dual_fmaak_f32 and v_dual_fmamk_f32 have one literal.
        let pair = inst(
            "gfx1100",
            &[0xc800_0000 | 1 << 22 | 2 << 17 | 2 << 9 | 0x101, 1 << (49 - 32) | 5 << 9 | 0x104, 0x3f80_0001],
        );
        for half in pair.halves().expect("two operations") {
            let literals: Vec<Value> =
                half.operands().filter(|operand| operand.role == Role::Imm).map(|operand| operand.value).collect();
            assert_eq!(literals, [Value::Literal(0x3f80_0001)], "{}", half.name());
        }
        // Of one operation it is that one's.
        let pair = inst(
            "gfx1100",
            &[0xc800_0000 | 1 << 22 | 4 << 17 | 2 << 9 | 0x101, 1 << (49 - 32) | 5 << 9 | 0x104, 0x3f80_0001],
        );
        let with_literal =
            pair.halves().expect("two operations").map(|half| half.operands().any(|operand| operand.role == Role::Imm));
        assert_eq!(with_literal, [true, false]);
    }

    /// On every target with pairs: together the halves are the instruction, and each is an operation that the target
    /// has alone, but for a few.
    #[test]
    fn every_pair_is_its_halves() {
        let mut pairs = 0;
        for target in Target::all() {
            let alone: BTreeSet<&str> = variants(target).map(|variant| variant.name).collect();
            let mut never_alone = BTreeSet::new();
            for variant in variants(target) {
                let Some([first, second]) = variant.halves else {
                    assert!(!variant.name.contains(BETWEEN), "{}", variant.name);
                    continue;
                };
                pairs += 1;
                assert_eq!(first | second, variant.implicit_reads, "{}", variant.name);
                let split = first_operands(variant).expect("two operations");
                let roles: Vec<Role> = variant.operands.iter().map(|spec| spec.role).collect();
                assert_eq!((roles[0], roles[split]), (Role::Vdst, Role::VdstY), "{}", variant.name);
                let of_second = |role: &Role| matches!(role, Role::VdstY | Role::Src0Y | Role::Src1Y | Role::Src2Y);
                assert!(!roles[..split].iter().any(of_second), "{}", variant.name);
                assert!(roles[split..].iter().all(|role| of_second(role) || *role == Role::Imm), "{}", variant.name);
                for name in variant.name.split(BETWEEN) {
                    let plain = name.replacen("_dual_", "_", 1);
                    if !alone.contains(plain.as_str()) {
                        never_alone.insert(plain);
                    }
                }
            }
            assert!(never_alone.len() <= 3, "{}: {never_alone:?}", target.name());
        }
        assert!(pairs > 1000, "{pairs}");
    }
}
