//! The scalar ALU: SOP1, SOP2, SOPC, SOPK and SOPP, branches included.

use wavetap_amdgpu::Role;

use super::core::{Core, Step, undefined};
use super::op::{Meaning, Op, Semantics, Source};

/// A 32-bit operation: operands and SCC in, result and SCC out (`None`: SCC stays).
type Op32 = fn(u32, u32, bool) -> (u32, Option<bool>);
type Op64 = fn(u64, u64, bool) -> (u64, Option<bool>);

/// The scalar source of a role.
fn source32(core: &mut Core, op: &Op, role: Role) -> Step<u32> {
    match scalar_source(op, role)[0] {
        Source::Scalar(code) => core.scalar(op, code),
        Source::Const(bits) => Ok(bits as u32),
        Source::LdsDirect => undefined("LDS direct in a scalar instruction"),
        Source::None | Source::Vector(_) | Source::Accum(_) => undefined("a scalar instruction without that source"),
    }
}

fn source64(core: &mut Core, op: &Op, role: Role) -> Step<u64> {
    match scalar_source(op, role)[1] {
        Source::Scalar(code) => core.scalar64(op, code),
        Source::Const(bits) => Ok(bits),
        _ => undefined("a scalar instruction without that source"),
    }
}

fn destination(op: &Op) -> Step<u16> {
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
            |core: &mut Core, op: &Op| -> Step {
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
            |core: &mut Core, op: &Op| -> Step {
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
            |core: &mut Core, op: &Op| -> Step {
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
            |core: &mut Core, op: &Op| -> Step {
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
            |core: &mut Core, op: &Op| -> Step {
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
            |core: &mut Core, op: &Op| -> Step {
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
pub(super) fn meaning(name: &str) -> Option<Meaning> {
    arithmetic(name)
        .or_else(|| logic(name))
        .or_else(|| bit_fields(name))
        .or_else(|| compare(name))
        .or_else(|| with_immediate(name))
        .or_else(|| super::scalar_exec::meaning(name))
        .or_else(|| super::scalar_float::meaning(name))
        .or_else(|| super::scalar_control::meaning(name))
}

fn arithmetic(name: &str) -> Option<Meaning> {
    Some(match name {
        "s_add_u32" | "s_add_co_u32" => run32!(|a, b, _| {
            let (v, c) = a.overflowing_add(b);
            (v, Some(c))
        }),
        "s_sub_u32" | "s_sub_co_u32" => run32!(|a, b, _| {
            let (v, c) = a.overflowing_sub(b);
            (v, Some(c))
        }),
        "s_add_i32" | "s_add_co_i32" => run32!(|a, b, _| {
            let (v, c) = (a as i32).overflowing_add(b as i32);
            (v as u32, Some(c))
        }),
        "s_sub_i32" | "s_sub_co_i32" => run32!(|a, b, _| {
            let (v, c) = (a as i32).overflowing_sub(b as i32);
            (v as u32, Some(c))
        }),
        "s_addc_u32" | "s_add_co_ci_u32" => run32!(|a, b, c| {
            let sum = a as u64 + b as u64 + c as u64;
            (sum as u32, Some(sum >> 32 != 0))
        }),
        "s_subb_u32" | "s_sub_co_ci_u32" => {
            run32!(|a, b, c| (a.wrapping_sub(b).wrapping_sub(c as u32), Some((a as u64) < b as u64 + c as u64)))
        }
        "s_min_i32" => run32!(|a, b, _| {
            let less = (a as i32) < b as i32;
            (if less { a } else { b }, Some(less))
        }),
        "s_min_u32" => run32!(|a, b, _| (if a < b { a } else { b }, Some(a < b))),
        "s_max_i32" => run32!(|a, b, _| {
            let more = a as i32 >= b as i32;
            (if more { a } else { b }, Some(more))
        }),
        "s_max_u32" => run32!(|a, b, _| (a.max(b), Some(a >= b))),
        "s_mul_i32" => run32!(|a, b, _| (a.wrapping_mul(b), None)),
        "s_mul_hi_u32" => run32!(|a, b, _| (((a as u64 * b as u64) >> 32) as u32, None)),
        "s_mul_hi_i32" => run32!(|a, b, _| (((a as i32 as i64 * b as i32 as i64) >> 32) as u32, None)),
        "s_mul_u64" => run64!(|a, b, _| (a.wrapping_mul(b), None)),
        "s_add_nc_u64" => run64!(|a, b, _| (a.wrapping_add(b), None)),
        "s_sub_nc_u64" => run64!(|a, b, _| (a.wrapping_sub(b), None)),
        "s_absdiff_i32" => run32!(|a, b, _| nz((a as i32).wrapping_sub(b as i32).wrapping_abs() as u32)),
        "s_abs_i32" => run32!(|a, _, _| nz((a as i32).wrapping_abs() as u32)),
        "s_lshl1_add_u32" => run32!(|a, b, _| shift_add(a, b, 1)),
        "s_lshl2_add_u32" => run32!(|a, b, _| shift_add(a, b, 2)),
        "s_lshl3_add_u32" => run32!(|a, b, _| shift_add(a, b, 3)),
        "s_lshl4_add_u32" => run32!(|a, b, _| shift_add(a, b, 4)),
        "s_sext_i32_i8" => run32!(|a, _, _| (a as i8 as u32, None)),
        "s_sext_i32_i16" => run32!(|a, _, _| (a as i16 as u32, None)),
        "s_pack_ll_b32_b16" => run32!(|a, b, _| (a & 0xffff | b << 16, None)),
        "s_pack_lh_b32_b16" => run32!(|a, b, _| (a & 0xffff | b & 0xffff_0000, None)),
        "s_pack_hl_b32_b16" => run32!(|a, b, _| (a >> 16 | b << 16, None)),
        "s_pack_hh_b32_b16" => run32!(|a, b, _| (a >> 16 | b & 0xffff_0000, None)),
        _ => return None,
    })
}

const fn shift_add(a: u32, b: u32, by: u32) -> (u32, Option<bool>) {
    let sum = ((a as u64) << by) + b as u64;
    (sum as u32, Some(sum >> 32 != 0))
}

fn logic(name: &str) -> Option<Meaning> {
    Some(match name {
        "s_mov_b32" => run32!(|a, _, _| (a, None)),
        "s_mov_b64" => run64!(|a, _, _| (a, None)),
        "s_cselect_b32" => run32!(|a, b, c| (if c { a } else { b }, None)),
        "s_cselect_b64" => run64!(|a, b, c| (if c { a } else { b }, None)),
        "s_cmov_b32" => (
            |core, op| {
                let value = source32(core, op, Role::Src0)?;
                if core.wave.scc { core.set_scalar(op, destination(op)?, value) } else { Ok(()) }
            },
            Semantics::Own,
        ),
        "s_cmov_b64" => (
            |core, op| {
                let value = source64(core, op, Role::Src0)?;
                if core.wave.scc { core.set_scalar64(op, destination(op)?, value) } else { Ok(()) }
            },
            Semantics::Own,
        ),
        "s_not_b32" => run32!(|a, _, _| nz(!a)),
        "s_not_b64" => run64!(|a, _, _| nz64(!a)),
        "s_and_b32" => run32!(|a, b, _| nz(a & b)),
        "s_and_b64" => run64!(|a, b, _| nz64(a & b)),
        "s_or_b32" => run32!(|a, b, _| nz(a | b)),
        "s_or_b64" => run64!(|a, b, _| nz64(a | b)),
        "s_xor_b32" => run32!(|a, b, _| nz(a ^ b)),
        "s_xor_b64" => run64!(|a, b, _| nz64(a ^ b)),
        "s_andn2_b32" | "s_and_not1_b32" => run32!(|a, b, _| nz(a & !b)),
        "s_andn2_b64" | "s_and_not1_b64" => run64!(|a, b, _| nz64(a & !b)),
        "s_orn2_b32" | "s_or_not1_b32" => run32!(|a, b, _| nz(a | !b)),
        "s_orn2_b64" | "s_or_not1_b64" => run64!(|a, b, _| nz64(a | !b)),
        "s_nand_b32" => run32!(|a, b, _| nz(!(a & b))),
        "s_nand_b64" => run64!(|a, b, _| nz64(!(a & b))),
        "s_nor_b32" => run32!(|a, b, _| nz(!(a | b))),
        "s_nor_b64" => run64!(|a, b, _| nz64(!(a | b))),
        "s_xnor_b32" => run32!(|a, b, _| nz(!(a ^ b))),
        "s_xnor_b64" => run64!(|a, b, _| nz64(!(a ^ b))),
        "s_lshl_b32" => run32!(|a, b, _| nz(a << (b & 31))),
        "s_lshr_b32" => run32!(|a, b, _| nz(a >> (b & 31))),
        "s_ashr_i32" => run32!(|a, b, _| nz(((a as i32) >> (b & 31)) as u32)),
        "s_lshl_b64" => shift64!(|a, b| a << (b & 63)),
        "s_lshr_b64" => shift64!(|a, b| a >> (b & 63)),
        "s_ashr_i64" => shift64!(|a, b| ((a as i64) >> (b & 63)) as u64),
        "s_wqm_b32" => run32!(|a, _, _| nz(whole_quads(u64::from(a), 8) as u32)),
        "s_wqm_b64" => run64!(|a, _, _| nz64(whole_quads(a, 16))),
        "s_quadmask_b32" => run32!(|a, _, _| nz(quad_any(u64::from(a), 8) as u32)),
        "s_quadmask_b64" => run64!(|a, _, _| nz64(quad_any(a, 16))),
        _ => return None,
    })
}

fn bit_fields(name: &str) -> Option<Meaning> {
    Some(match name {
        "s_brev_b32" => run32!(|a, _, _| (a.reverse_bits(), None)),
        "s_brev_b64" => run64!(|a, _, _| (a.reverse_bits(), None)),
        "s_bcnt0_i32_b32" => run32!(|a, _, _| nz(a.count_zeros())),
        "s_bcnt1_i32_b32" => run32!(|a, _, _| nz(a.count_ones())),
        "s_bcnt0_i32_b64" => run64to32!(|a| nz(a.count_zeros())),
        "s_bcnt1_i32_b64" => run64to32!(|a| nz(a.count_ones())),
        "s_ff0_i32_b32" => run32!(|a, _, _| (if a == u32::MAX { u32::MAX } else { a.trailing_ones() }, None)),
        "s_ff1_i32_b32" | "s_ctz_i32_b32" => run32!(|a, _, _| (if a == 0 { u32::MAX } else { a.trailing_zeros() }, None)),
        "s_ff0_i32_b64" => run64to32!(|a| (if a == u64::MAX { u32::MAX } else { a.trailing_ones() }, None)),
        "s_ff1_i32_b64" | "s_ctz_i32_b64" => run64to32!(|a| (if a == 0 { u32::MAX } else { a.trailing_zeros() }, None)),
        "s_flbit_i32_b32" | "s_clz_i32_u32" => run32!(|a, _, _| (if a == 0 { u32::MAX } else { a.leading_zeros() }, None)),
        "s_flbit_i32_b64" | "s_clz_i32_u64" => run64to32!(|a| (if a == 0 { u32::MAX } else { a.leading_zeros() }, None)),
        "s_flbit_i32" | "s_cls_i32" => run32!(|a, _, _| (first_difference(u64::from(a), 32), None)),
        "s_flbit_i32_i64" | "s_cls_i32_i64" => run64to32!(|a| (first_difference(a, 64), None)),
        "s_bfm_b32" => run32!(|a, b, _| (((1_u32 << (a & 31)) - 1) << (b & 31), None)),
        "s_bfm_b64" => (
            |core, op| {
                let a = source32(core, op, Role::Src0)?;
                let b = source32(core, op, Role::Src1)?;
                core.set_scalar64(op, destination(op)?, ((1_u64 << (a & 63)) - 1) << (b & 63))
            },
            Semantics::Own,
        ),
        "s_bfe_u32" => run32!(|a, b, _| nz(bfe(u64::from(a), b, 32, false) as u32)),
        "s_bfe_i32" => run32!(|a, b, _| nz(bfe(i64::from(a as i32) as u64, b, 32, true) as u32)),
        "s_bfe_u64" => shift64!(|a, b| bfe(a, b, 64, false)),
        "s_bfe_i64" => shift64!(|a, b| bfe(a, b, 64, true)),
        "s_bitset0_b32" => set_bit(false, false),
        "s_bitset1_b32" => set_bit(false, true),
        "s_bitset0_b64" => set_bit(true, false),
        "s_bitset1_b64" => set_bit(true, true),
        "s_bitreplicate_b64_b32" => (
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
    fn run(core: &mut Core, op: &Op, wide: bool, one: bool) -> Step {
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

fn same64(core: &mut Core, op: &Op, same: bool) -> Step {
    core.wave.scc = (source64(core, op, Role::Src0)? == source64(core, op, Role::Src1)?) == same;
    Ok(())
}

fn bit64(core: &mut Core, op: &Op, bit: u64) -> Step {
    let value = source64(core, op, Role::Src0)?;
    let at = source32(core, op, Role::Src1)?;
    core.wave.scc = value >> (at & 63) & 1 == bit;
    Ok(())
}

fn compare(name: &str) -> Option<Meaning> {
    Some(match name {
        "s_cmp_eq_i32" | "s_cmp_eq_u32" => test32!(|a, b| a == b),
        "s_cmp_lg_i32" | "s_cmp_lg_u32" => test32!(|a, b| a != b),
        "s_cmp_gt_i32" => test32!(|a, b| a as i32 > b as i32),
        "s_cmp_ge_i32" => test32!(|a, b| a as i32 >= b as i32),
        "s_cmp_lt_i32" => test32!(|a, b| (a as i32) < b as i32),
        "s_cmp_le_i32" => test32!(|a, b| a as i32 <= b as i32),
        "s_cmp_gt_u32" => test32!(|a, b| a > b),
        "s_cmp_ge_u32" => test32!(|a, b| a >= b),
        "s_cmp_lt_u32" => test32!(|a, b| a < b),
        "s_cmp_le_u32" => test32!(|a, b| a <= b),
        "s_bitcmp0_b32" => test32!(|a, b| a >> (b & 31) & 1 == 0),
        "s_bitcmp1_b32" => test32!(|a, b| a >> (b & 31) & 1 == 1),
        "s_cmp_eq_u64" => (|core, op| same64(core, op, true), Semantics::Own),
        "s_cmp_lg_u64" => (|core, op| same64(core, op, false), Semantics::Own),
        "s_bitcmp0_b64" => (|core, op| bit64(core, op, 0), Semantics::Own),
        "s_bitcmp1_b64" => (|core, op| bit64(core, op, 1), Semantics::Own),
        _ => return None,
    })
}

fn with_immediate(name: &str) -> Option<Meaning> {
    Some(match name {
        "s_movk_i32" => (|core, op| core.set_scalar(op, destination(op)?, op.any_imm() as i16 as u32), Semantics::Own),
        "s_cmovk_i32" => (
            |core, op| if core.wave.scc { core.set_scalar(op, destination(op)?, op.any_imm() as i16 as u32) } else { Ok(()) },
            Semantics::Own,
        ),
        "s_addk_i32" | "s_addk_co_i32" => immediate!(|a, k| {
            let (v, over) = (a as i32).overflowing_add(k as i32);
            (Some(v as u32), Some(over))
        }),
        "s_mulk_i32" => immediate!(|a, k| (Some((a as i32).wrapping_mul(k as i32) as u32), None)),
        "s_cmpk_eq_i32" => immediate!(|a, k| (None, Some(a as i32 == k as i32))),
        "s_cmpk_lg_i32" => immediate!(|a, k| (None, Some(a as i32 != k as i32))),
        "s_cmpk_gt_i32" => immediate!(|a, k| (None, Some(a as i32 > k as i32))),
        "s_cmpk_ge_i32" => immediate!(|a, k| (None, Some(a as i32 >= k as i32))),
        "s_cmpk_lt_i32" => immediate!(|a, k| (None, Some((a as i32) < k as i32))),
        "s_cmpk_le_i32" => immediate!(|a, k| (None, Some(a as i32 <= k as i32))),
        "s_cmpk_eq_u32" => immediate!(|a, k| (None, Some(a == k as u16 as u32))),
        "s_cmpk_lg_u32" => immediate!(|a, k| (None, Some(a != k as u16 as u32))),
        "s_cmpk_gt_u32" => immediate!(|a, k| (None, Some(a > k as u16 as u32))),
        "s_cmpk_ge_u32" => immediate!(|a, k| (None, Some(a >= k as u16 as u32))),
        "s_cmpk_lt_u32" => immediate!(|a, k| (None, Some(a < k as u16 as u32))),
        "s_cmpk_le_u32" => immediate!(|a, k| (None, Some(a <= k as u16 as u32))),
        _ => return None,
    })
}

/// For the control instructions, which share the operand access.
pub(super) fn operand32(core: &mut Core, op: &Op, role: Role) -> Step<u32> {
    source32(core, op, role)
}
/// See [`operand32`].
pub(super) fn operand64(core: &mut Core, op: &Op, role: Role) -> Step<u64> {
    source64(core, op, role)
}
/// See [`operand32`].
pub(super) fn result(op: &Op) -> Step<u16> {
    destination(op)
}
