//! The scalar ALU: SOP1, SOP2, SOPC, SOPK and SOPP, branches included.

pub(crate) mod control;
pub(crate) mod exec_mask;
pub(crate) mod float_ops;
pub(crate) mod fork;

use wavetap_amdgpu::{Opcode, Role};

use crate::fault::stop::{ExecResult, undefined};
use crate::op::semantics::{Semantics, Source};
use crate::state::core::Core;
use crate::state::op::{Meaning, Op};

/// A 32-bit operation: operands and SCC in, result and SCC out (`None`: SCC stays).
type Op32 = fn(u32, u32, bool) -> (u32, Option<bool>);
type Op64 = fn(u64, u64, bool) -> (u64, Option<bool>);

/// The scalar source of a role.
fn source32(core: &mut Core, op: &Op, role: Role) -> ExecResult<u32> {
    match scalar_source(op, role)[0] {
        Source::Scalar(code) => core.scalar(op, code),
        Source::Const(bits) => Ok(bits as u32),
        Source::LdsDirect => undefined("LDS direct in a scalar instruction"),
        Source::None | Source::Vector(_) | Source::Accum(_) => undefined("a scalar instruction without that source"),
    }
}

fn source64(core: &mut Core, op: &Op, role: Role) -> ExecResult<u64> {
    match scalar_source(op, role)[1] {
        Source::Scalar(code) => core.scalar64(op, code),
        Source::Const(bits) => Ok(bits),
        _ => undefined("a scalar instruction without that source"),
    }
}

fn destination(op: &Op) -> ExecResult<u16> {
    match op.dst {
        Some(reg) => Ok(reg.first),
        None => undefined("a scalar instruction without destination"),
    }
}

fn has(op: &Op, role: Role) -> bool {
    scalar_source(op, role)[0] != Source::None
}

/// A source as 32 and as 64 bits.
fn scalar_source(op: &Op, role: Role) -> &[Source; 2] {
    &op.scalars[match role {
        Role::Src0 => 0,
        Role::Src1 => 1,
        _ => 2,
    }]
}

macro_rules! run32 {
    ($f:expr) => {
        (
            |core: &mut Core, op: &Op| -> ExecResult {
                const F: Op32 = $f;
                let a = source32(core, op, Role::Src0)?;
                let b = if has(op, Role::Src1) { source32(core, op, Role::Src1)? } else { 0 };
                let (value, scc) = F(a, b, core.wave.scc);
                core.set_scalar(op, destination(op)?, value)?;
                if let Some(scc) = scc {
                    core.wave.scc = scc;
                }
                Ok(())
            },
            Semantics::Own,
        )
    };
}

macro_rules! run64 {
    ($f:expr) => {
        (
            |core: &mut Core, op: &Op| -> ExecResult {
                const F: Op64 = $f;
                let a = source64(core, op, Role::Src0)?;
                let b = if has(op, Role::Src1) { source64(core, op, Role::Src1)? } else { 0 };
                let (value, scc) = F(a, b, core.wave.scc);
                core.set_scalar64(op, destination(op)?, value)?;
                if let Some(scc) = scc {
                    core.wave.scc = scc;
                }
                Ok(())
            },
            Semantics::Own,
        )
    };
}

/// 64-bit source, 32-bit result.
macro_rules! run64to32 {
    ($f:expr) => {
        (
            |core: &mut Core, op: &Op| -> ExecResult {
                const F: fn(u64) -> (u32, Option<bool>) = $f;
                let a = source64(core, op, Role::Src0)?;
                let (value, scc) = F(a);
                core.set_scalar(op, destination(op)?, value)?;
                if let Some(scc) = scc {
                    core.wave.scc = scc;
                }
                Ok(())
            },
            Semantics::Own,
        )
    };
}

/// 64-bit first, 32-bit second source.
macro_rules! shift64 {
    ($f:expr) => {
        (
            |core: &mut Core, op: &Op| -> ExecResult {
                const F: fn(u64, u32) -> u64 = $f;
                let a = source64(core, op, Role::Src0)?;
                let b = source32(core, op, Role::Src1)?;
                let value = F(a, b);
                core.set_scalar64(op, destination(op)?, value)?;
                core.wave.scc = value != 0;
                Ok(())
            },
            Semantics::Own,
        )
    };
}

macro_rules! test32 {
    ($f:expr) => {
        (
            |core: &mut Core, op: &Op| -> ExecResult {
                const F: fn(u32, u32) -> bool = $f;
                let a = source32(core, op, Role::Src0)?;
                let b = source32(core, op, Role::Src1)?;
                core.wave.scc = F(a, b);
                Ok(())
            },
            Semantics::Own,
        )
    };
}

/// Compare and arithmetic with the 16-bit immediate: the destination field is the first operand.
macro_rules! immediate {
    ($f:expr) => {
        (
            |core: &mut Core, op: &Op| -> ExecResult {
                const F: fn(u32, i16) -> (Option<u32>, Option<bool>) = $f;
                let Some(code) = op.inst.operands.iter().find_map(|operand| operand.reg()).map(|reg| reg.first) else {
                    return undefined("an immediate instruction without register");
                };
                let old = core.scalar(op, code)?;
                let (value, scc) = F(old, op.any_imm() as i16);
                if let Some(value) = value {
                    core.set_scalar(op, code, value)?;
                }
                if let Some(scc) = scc {
                    core.wave.scc = scc;
                }
                Ok(())
            },
            Semantics::Own,
        )
    };
}

const fn nz(value: u32) -> (u32, Option<bool>) {
    (value, Some(value != 0))
}
const fn nz64(value: u64) -> (u64, Option<bool>) {
    (value, Some(value != 0))
}

fn bfe(a: u64, b: u32, bits: u32, signed: bool) -> u64 {
    let (offset, width) = (b & (bits - 1), b >> 16 & 0x7f);
    if width == 0 {
        return 0;
    }
    let shifted = if signed { ((a as i64) >> offset) as u64 } else { a >> offset };
    if width >= bits {
        return shifted;
    }
    let up = 64 - width;
    if signed { ((shifted << up) as i64 >> up) as u64 } else { shifted << up >> up }
}

fn first_difference(value: u64, bits: u32) -> u32 {
    let sign_extended = if bits == 32 { i64::from(value as u32 as i32) } else { value as i64 };
    let same = (if sign_extended < 0 { !sign_extended } else { sign_extended }).leading_zeros() - (64 - bits);
    if same == bits { u32::MAX } else { same }
}

fn quad_any(value: u64, quads: u32) -> u64 {
    (0..quads).filter(|n| value >> (4 * n) & 0xf != 0).fold(0, |all, n| all | 1 << n)
}

fn whole_quads(value: u64, quads: u32) -> u64 {
    (0..quads).filter(|n| value >> (4 * n) & 0xf != 0).fold(0, |all, n| all | 0xf << (4 * n))
}

/// The meaning of a scalar instruction.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    arithmetic(opcode)
        .or_else(|| logic(opcode))
        .or_else(|| bit_fields(opcode))
        .or_else(|| compare(opcode))
        .or_else(|| with_immediate(opcode))
        .or_else(|| self::exec_mask::meaning(opcode))
        .or_else(|| self::float_ops::meaning(opcode))
        .or_else(|| self::control::meaning(opcode))
}

fn arithmetic(opcode: Opcode) -> Option<Meaning> {
    Some(match opcode {
        Opcode::S_ADD_U32 | Opcode::S_ADD_CO_U32 => run32!(|a, b, _| {
            let (v, c) = a.overflowing_add(b);
            (v, Some(c))
        }),
        Opcode::S_SUB_U32 | Opcode::S_SUB_CO_U32 => run32!(|a, b, _| {
            let (v, c) = a.overflowing_sub(b);
            (v, Some(c))
        }),
        Opcode::S_ADD_I32 | Opcode::S_ADD_CO_I32 => run32!(|a, b, _| {
            let (v, c) = (a as i32).overflowing_add(b as i32);
            (v as u32, Some(c))
        }),
        Opcode::S_SUB_I32 | Opcode::S_SUB_CO_I32 => run32!(|a, b, _| {
            let (v, c) = (a as i32).overflowing_sub(b as i32);
            (v as u32, Some(c))
        }),
        Opcode::S_ADDC_U32 | Opcode::S_ADD_CO_CI_U32 => run32!(|a, b, c| {
            let sum = a as u64 + b as u64 + c as u64;
            (sum as u32, Some(sum >> 32 != 0))
        }),
        Opcode::S_SUBB_U32 | Opcode::S_SUB_CO_CI_U32 => {
            run32!(|a, b, c| (a.wrapping_sub(b).wrapping_sub(c as u32), Some((a as u64) < b as u64 + c as u64)))
        }
        Opcode::S_MIN_I32 => run32!(|a, b, _| {
            let less = (a as i32) < b as i32;
            (if less { a } else { b }, Some(less))
        }),
        Opcode::S_MIN_U32 => run32!(|a, b, _| (if a < b { a } else { b }, Some(a < b))),
        Opcode::S_MAX_I32 => run32!(|a, b, _| {
            let more = a as i32 >= b as i32;
            (if more { a } else { b }, Some(more))
        }),
        Opcode::S_MAX_U32 => run32!(|a, b, _| (a.max(b), Some(a >= b))),
        Opcode::S_MUL_I32 => run32!(|a, b, _| (a.wrapping_mul(b), None)),
        Opcode::S_MUL_HI_U32 => run32!(|a, b, _| (((a as u64 * b as u64) >> 32) as u32, None)),
        Opcode::S_MUL_HI_I32 => run32!(|a, b, _| (((a as i32 as i64 * b as i32 as i64) >> 32) as u32, None)),
        Opcode::S_MUL_U64 => run64!(|a, b, _| (a.wrapping_mul(b), None)),
        Opcode::S_ADD_NC_U64 => run64!(|a, b, _| (a.wrapping_add(b), None)),
        Opcode::S_SUB_NC_U64 => run64!(|a, b, _| (a.wrapping_sub(b), None)),
        Opcode::S_ABSDIFF_I32 => run32!(|a, b, _| nz((a as i32).wrapping_sub(b as i32).wrapping_abs() as u32)),
        Opcode::S_ABS_I32 => run32!(|a, _, _| nz((a as i32).wrapping_abs() as u32)),
        Opcode::S_LSHL1_ADD_U32 => run32!(|a, b, _| shift_add(a, b, 1)),
        Opcode::S_LSHL2_ADD_U32 => run32!(|a, b, _| shift_add(a, b, 2)),
        Opcode::S_LSHL3_ADD_U32 => run32!(|a, b, _| shift_add(a, b, 3)),
        Opcode::S_LSHL4_ADD_U32 => run32!(|a, b, _| shift_add(a, b, 4)),
        Opcode::S_SEXT_I32_I8 => run32!(|a, _, _| (a as i8 as u32, None)),
        Opcode::S_SEXT_I32_I16 => run32!(|a, _, _| (a as i16 as u32, None)),
        Opcode::S_PACK_LL_B32_B16 => run32!(|a, b, _| (a & 0xffff | b << 16, None)),
        Opcode::S_PACK_LH_B32_B16 => run32!(|a, b, _| (a & 0xffff | b & 0xffff_0000, None)),
        Opcode::S_PACK_HL_B32_B16 => run32!(|a, b, _| (a >> 16 | b << 16, None)),
        Opcode::S_PACK_HH_B32_B16 => run32!(|a, b, _| (a >> 16 | b & 0xffff_0000, None)),
        _ => return None,
    })
}

const fn shift_add(a: u32, b: u32, by: u32) -> (u32, Option<bool>) {
    let sum = ((a as u64) << by) + b as u64;
    (sum as u32, Some(sum >> 32 != 0))
}

fn logic(opcode: Opcode) -> Option<Meaning> {
    Some(match opcode {
        Opcode::S_MOV_B32 => run32!(|a, _, _| (a, None)),
        Opcode::S_MOV_B64 => run64!(|a, _, _| (a, None)),
        Opcode::S_CSELECT_B32 => run32!(|a, b, c| (if c { a } else { b }, None)),
        Opcode::S_CSELECT_B64 => run64!(|a, b, c| (if c { a } else { b }, None)),
        Opcode::S_CMOV_B32 => (
            |core, op| {
                let value = source32(core, op, Role::Src0)?;
                if core.wave.scc { core.set_scalar(op, destination(op)?, value) } else { Ok(()) }
            },
            Semantics::Own,
        ),
        Opcode::S_CMOV_B64 => (
            |core, op| {
                let value = source64(core, op, Role::Src0)?;
                if core.wave.scc { core.set_scalar64(op, destination(op)?, value) } else { Ok(()) }
            },
            Semantics::Own,
        ),
        Opcode::S_NOT_B32 => run32!(|a, _, _| nz(!a)),
        Opcode::S_NOT_B64 => run64!(|a, _, _| nz64(!a)),
        Opcode::S_AND_B32 => run32!(|a, b, _| nz(a & b)),
        Opcode::S_AND_B64 => run64!(|a, b, _| nz64(a & b)),
        Opcode::S_OR_B32 => run32!(|a, b, _| nz(a | b)),
        Opcode::S_OR_B64 => run64!(|a, b, _| nz64(a | b)),
        Opcode::S_XOR_B32 => run32!(|a, b, _| nz(a ^ b)),
        Opcode::S_XOR_B64 => run64!(|a, b, _| nz64(a ^ b)),
        Opcode::S_ANDN2_B32 | Opcode::S_AND_NOT1_B32 => run32!(|a, b, _| nz(a & !b)),
        Opcode::S_ANDN2_B64 | Opcode::S_AND_NOT1_B64 => run64!(|a, b, _| nz64(a & !b)),
        Opcode::S_ORN2_B32 | Opcode::S_OR_NOT1_B32 => run32!(|a, b, _| nz(a | !b)),
        Opcode::S_ORN2_B64 | Opcode::S_OR_NOT1_B64 => run64!(|a, b, _| nz64(a | !b)),
        Opcode::S_NAND_B32 => run32!(|a, b, _| nz(!(a & b))),
        Opcode::S_NAND_B64 => run64!(|a, b, _| nz64(!(a & b))),
        Opcode::S_NOR_B32 => run32!(|a, b, _| nz(!(a | b))),
        Opcode::S_NOR_B64 => run64!(|a, b, _| nz64(!(a | b))),
        Opcode::S_XNOR_B32 => run32!(|a, b, _| nz(!(a ^ b))),
        Opcode::S_XNOR_B64 => run64!(|a, b, _| nz64(!(a ^ b))),
        Opcode::S_LSHL_B32 => run32!(|a, b, _| nz(a << (b & 31))),
        Opcode::S_LSHR_B32 => run32!(|a, b, _| nz(a >> (b & 31))),
        Opcode::S_ASHR_I32 => run32!(|a, b, _| nz(((a as i32) >> (b & 31)) as u32)),
        Opcode::S_LSHL_B64 => shift64!(|a, b| a << (b & 63)),
        Opcode::S_LSHR_B64 => shift64!(|a, b| a >> (b & 63)),
        Opcode::S_ASHR_I64 => shift64!(|a, b| ((a as i64) >> (b & 63)) as u64),
        Opcode::S_WQM_B32 => run32!(|a, _, _| nz(whole_quads(u64::from(a), 8) as u32)),
        Opcode::S_WQM_B64 => run64!(|a, _, _| nz64(whole_quads(a, 16))),
        Opcode::S_QUADMASK_B32 => run32!(|a, _, _| nz(quad_any(u64::from(a), 8) as u32)),
        Opcode::S_QUADMASK_B64 => run64!(|a, _, _| nz64(quad_any(a, 16))),
        _ => return None,
    })
}

fn bit_fields(opcode: Opcode) -> Option<Meaning> {
    Some(match opcode {
        Opcode::S_BREV_B32 => run32!(|a, _, _| (a.reverse_bits(), None)),
        Opcode::S_BREV_B64 => run64!(|a, _, _| (a.reverse_bits(), None)),
        Opcode::S_BCNT0_I32_B32 => run32!(|a, _, _| nz(a.count_zeros())),
        Opcode::S_BCNT1_I32_B32 => run32!(|a, _, _| nz(a.count_ones())),
        Opcode::S_BCNT0_I32_B64 => run64to32!(|a| nz(a.count_zeros())),
        Opcode::S_BCNT1_I32_B64 => run64to32!(|a| nz(a.count_ones())),
        Opcode::S_FF0_I32_B32 => run32!(|a, _, _| (if a == u32::MAX { u32::MAX } else { a.trailing_ones() }, None)),
        Opcode::S_FF1_I32_B32 | Opcode::S_CTZ_I32_B32 => {
            run32!(|a, _, _| (if a == 0 { u32::MAX } else { a.trailing_zeros() }, None))
        }
        Opcode::S_FF0_I32_B64 => run64to32!(|a| (if a == u64::MAX { u32::MAX } else { a.trailing_ones() }, None)),
        Opcode::S_FF1_I32_B64 | Opcode::S_CTZ_I32_B64 => {
            run64to32!(|a| (if a == 0 { u32::MAX } else { a.trailing_zeros() }, None))
        }
        Opcode::S_FLBIT_I32_B32 | Opcode::S_CLZ_I32_U32 => {
            run32!(|a, _, _| (if a == 0 { u32::MAX } else { a.leading_zeros() }, None))
        }
        Opcode::S_FLBIT_I32_B64 | Opcode::S_CLZ_I32_U64 => {
            run64to32!(|a| (if a == 0 { u32::MAX } else { a.leading_zeros() }, None))
        }
        Opcode::S_FLBIT_I32 | Opcode::S_CLS_I32 => run32!(|a, _, _| (first_difference(u64::from(a), 32), None)),
        Opcode::S_FLBIT_I32_I64 | Opcode::S_CLS_I32_I64 => run64to32!(|a| (first_difference(a, 64), None)),
        Opcode::S_BFM_B32 => run32!(|a, b, _| (((1_u32 << (a & 31)) - 1) << (b & 31), None)),
        Opcode::S_BFM_B64 => (
            |core, op| {
                let a = source32(core, op, Role::Src0)?;
                let b = source32(core, op, Role::Src1)?;
                core.set_scalar64(op, destination(op)?, ((1_u64 << (a & 63)) - 1) << (b & 63))
            },
            Semantics::Own,
        ),
        Opcode::S_BFE_U32 => run32!(|a, b, _| nz(bfe(u64::from(a), b, 32, false) as u32)),
        Opcode::S_BFE_I32 => run32!(|a, b, _| nz(bfe(i64::from(a as i32) as u64, b, 32, true) as u32)),
        Opcode::S_BFE_U64 => shift64!(|a, b| bfe(a, b, 64, false)),
        Opcode::S_BFE_I64 => shift64!(|a, b| bfe(a, b, 64, true)),
        Opcode::S_BITSET0_B32 => set_bit(false, false),
        Opcode::S_BITSET1_B32 => set_bit(false, true),
        Opcode::S_BITSET0_B64 => set_bit(true, false),
        Opcode::S_BITSET1_B64 => set_bit(true, true),
        Opcode::S_BITREPLICATE_B64_B32 => (
            |core, op| {
                let a = source32(core, op, Role::Src0)?;
                let doubled = (0..32).fold(0, |all, n| all | (u64::from(a >> n & 1) * 3) << (2 * n));
                core.set_scalar64(op, destination(op)?, doubled)
            },
            Semantics::Own,
        ),
        _ => return None,
    })
}

fn set_bit(wide: bool, one: bool) -> Meaning {
    fn run(core: &mut Core, op: &Op, wide: bool, one: bool) -> ExecResult {
        let at = source32(core, op, Role::Src0)?;
        let dst = destination(op)?;
        if wide {
            let old = core.scalar64(op, dst)?;
            let bit = 1_u64 << (at & 63);
            core.set_scalar64(op, dst, if one { old | bit } else { old & !bit })
        } else {
            let old = core.scalar(op, dst)?;
            let bit = 1_u32 << (at & 31);
            core.set_scalar(op, dst, if one { old | bit } else { old & !bit })
        }
    }
    match (wide, one) {
        (false, false) => (|core, op| run(core, op, false, false), Semantics::Own),
        (false, true) => (|core, op| run(core, op, false, true), Semantics::Own),
        (true, false) => (|core, op| run(core, op, true, false), Semantics::Own),
        (true, true) => (|core, op| run(core, op, true, true), Semantics::Own),
    }
}

fn same64(core: &mut Core, op: &Op, same: bool) -> ExecResult {
    core.wave.scc = (source64(core, op, Role::Src0)? == source64(core, op, Role::Src1)?) == same;
    Ok(())
}

fn bit64(core: &mut Core, op: &Op, bit: u64) -> ExecResult {
    let value = source64(core, op, Role::Src0)?;
    let at = source32(core, op, Role::Src1)?;
    core.wave.scc = value >> (at & 63) & 1 == bit;
    Ok(())
}

fn compare(opcode: Opcode) -> Option<Meaning> {
    Some(match opcode {
        Opcode::S_CMP_EQ_I32 | Opcode::S_CMP_EQ_U32 => test32!(|a, b| a == b),
        Opcode::S_CMP_LG_I32 | Opcode::S_CMP_LG_U32 => test32!(|a, b| a != b),
        Opcode::S_CMP_GT_I32 => test32!(|a, b| a as i32 > b as i32),
        Opcode::S_CMP_GE_I32 => test32!(|a, b| a as i32 >= b as i32),
        Opcode::S_CMP_LT_I32 => test32!(|a, b| (a as i32) < b as i32),
        Opcode::S_CMP_LE_I32 => test32!(|a, b| a as i32 <= b as i32),
        Opcode::S_CMP_GT_U32 => test32!(|a, b| a > b),
        Opcode::S_CMP_GE_U32 => test32!(|a, b| a >= b),
        Opcode::S_CMP_LT_U32 => test32!(|a, b| a < b),
        Opcode::S_CMP_LE_U32 => test32!(|a, b| a <= b),
        Opcode::S_BITCMP0_B32 => test32!(|a, b| a >> (b & 31) & 1 == 0),
        Opcode::S_BITCMP1_B32 => test32!(|a, b| a >> (b & 31) & 1 == 1),
        Opcode::S_CMP_EQ_U64 => (|core, op| same64(core, op, true), Semantics::Own),
        Opcode::S_CMP_LG_U64 => (|core, op| same64(core, op, false), Semantics::Own),
        Opcode::S_BITCMP0_B64 => (|core, op| bit64(core, op, 0), Semantics::Own),
        Opcode::S_BITCMP1_B64 => (|core, op| bit64(core, op, 1), Semantics::Own),
        _ => return None,
    })
}

fn with_immediate(opcode: Opcode) -> Option<Meaning> {
    Some(match opcode {
        Opcode::S_MOVK_I32 => {
            (|core, op| core.set_scalar(op, destination(op)?, op.any_imm() as i16 as u32), Semantics::Own)
        }
        Opcode::S_CMOVK_I32 => (
            |core, op| {
                if core.wave.scc { core.set_scalar(op, destination(op)?, op.any_imm() as i16 as u32) } else { Ok(()) }
            },
            Semantics::Own,
        ),
        Opcode::S_ADDK_I32 | Opcode::S_ADDK_CO_I32 => immediate!(|a, k| {
            let (v, over) = (a as i32).overflowing_add(k as i32);
            (Some(v as u32), Some(over))
        }),
        Opcode::S_MULK_I32 => immediate!(|a, k| (Some((a as i32).wrapping_mul(k as i32) as u32), None)),
        Opcode::S_CMPK_EQ_I32 => immediate!(|a, k| (None, Some(a as i32 == k as i32))),
        Opcode::S_CMPK_LG_I32 => immediate!(|a, k| (None, Some(a as i32 != k as i32))),
        Opcode::S_CMPK_GT_I32 => immediate!(|a, k| (None, Some(a as i32 > k as i32))),
        Opcode::S_CMPK_GE_I32 => immediate!(|a, k| (None, Some(a as i32 >= k as i32))),
        Opcode::S_CMPK_LT_I32 => immediate!(|a, k| (None, Some((a as i32) < k as i32))),
        Opcode::S_CMPK_LE_I32 => immediate!(|a, k| (None, Some(a as i32 <= k as i32))),
        Opcode::S_CMPK_EQ_U32 => immediate!(|a, k| (None, Some(a == k as u16 as u32))),
        Opcode::S_CMPK_LG_U32 => immediate!(|a, k| (None, Some(a != k as u16 as u32))),
        Opcode::S_CMPK_GT_U32 => immediate!(|a, k| (None, Some(a > k as u16 as u32))),
        Opcode::S_CMPK_GE_U32 => immediate!(|a, k| (None, Some(a >= k as u16 as u32))),
        Opcode::S_CMPK_LT_U32 => immediate!(|a, k| (None, Some(a < k as u16 as u32))),
        Opcode::S_CMPK_LE_U32 => immediate!(|a, k| (None, Some(a <= k as u16 as u32))),
        _ => return None,
    })
}

/// For the control instructions, which share the operand access.
pub(crate) fn operand32(core: &mut Core, op: &Op, role: Role) -> ExecResult<u32> {
    source32(core, op, role)
}
/// See [`operand32`].
pub(crate) fn operand64(core: &mut Core, op: &Op, role: Role) -> ExecResult<u64> {
    source64(core, op, role)
}
/// See [`operand32`].
pub(crate) fn result(op: &Op) -> ExecResult<u16> {
    destination(op)
}
