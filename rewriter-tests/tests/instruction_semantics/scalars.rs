//! Scalar operations with SCC.

use wavetap::isa::{Inst, Operand, RegFile, Role, Target, Value, scalar};

use super::choose::Wishes;
use super::definition::Definition;
use super::lane;
use super::state::{Loose, Place, State};

/// The sources of a scalar operation: the second may be an immediate.
struct Sources {
    a: u64,
    b: u64,
    /// What the destination held.
    old: u64,
    scc: u64,
    exec: u64,
    /// The immediate as the instruction has it, with its sign.
    k: i64,
}

/// A result for the destination, if it is written, and for SCC.
type Result = (Option<u64>, Option<bool>);
type Function = fn(&Sources) -> Result;

fn plain(value: u64) -> Result {
    (Some(value), None)
}
/// SCC says whether the result is not zero.
fn tested(value: u64) -> Result {
    (Some(value), Some(value != 0))
}
fn tested32(value: u64) -> Result {
    tested(value & 0xffff_ffff)
}
fn flag(scc: bool) -> Result {
    (None, Some(scc))
}
fn i(x: u64) -> i64 {
    i64::from(x as u32 as i32)
}
/// A signed sum: SCC says that it does not fit.
fn overflowing(exact: i64) -> Result {
    (Some(exact as u64 & 0xffff_ffff), Some(exact != i64::from(exact as i32)))
}
fn carrying(exact: u64) -> Result {
    (Some(exact & 0xffff_ffff), Some(exact >> 32 != 0))
}
fn first(x: u64, width: u32, wanted: u64, from_top: bool) -> u64 {
    (0..width).find(|n| x >> (if from_top { width - 1 - n } else { *n }) & 1 == wanted).map_or(0xffff_ffff, u64::from)
}
/// How many bits from the top on are like the sign; all: -1.
fn sign_bits(x: u64, width: u32) -> u64 {
    let sign = x >> (width - 1) & 1;
    first(x, width, 1 - sign, true)
}
fn bits(x: u64, width: u32) -> u64 {
    (0..width).map(|n| x >> n & 1).sum()
}
fn reversed(x: u64, width: u32) -> u64 {
    (0..width).fold(0, |all, n| all | (x >> n & 1) << (width - 1 - n))
}
fn whole_quads(x: u64, width: u32) -> u64 {
    (0..width / 4).filter(|quad| x >> (4 * quad) & 15 != 0).fold(0, |all, quad| all | 15 << (4 * quad))
}
fn quads(x: u64, width: u32) -> u64 {
    (0..width / 4).filter(|quad| x >> (4 * quad) & 15 != 0).fold(0, |all, quad| all | 1 << quad)
}
/// The field that the second source describes: offset in its low bits, width in bits 22:16.
fn field(x: i128, b: u64, bits_of_offset: u32, signed: bool) -> u64 {
    let (offset, width) = (b & ((1 << bits_of_offset) - 1), (b >> 16 & 0x7f).min(64) as u32);
    let all = if bits_of_offset == 5 { 32 } else { 64 };
    if width == 0 {
        return 0;
    }
    let width = width.min(all);
    let value = x >> offset & ((1_i128 << width) - 1);
    let negative = signed && value >> (width - 1) & 1 != 0;
    (if negative { value - (1 << width) } else { value }) as u64 & (u64::MAX >> (64 - all))
}

fn moves(name: &str) -> Option<Function> {
    Some(match name {
        "s_mov_b32" | "s_mov_b64" => |s| plain(s.a),
        "s_movk_i32" => |s| plain(s.k as u64 & 0xffff_ffff),
        "s_cmov_b32" | "s_cmov_b64" => |s| if s.scc == 1 { plain(s.a) } else { (None, None) },
        "s_cmovk_i32" => |s| if s.scc == 1 { plain(s.k as u64 & 0xffff_ffff) } else { (None, None) },
        "s_cselect_b32" | "s_cselect_b64" => |s| plain(if s.scc == 1 { s.a } else { s.b }),
        "s_pack_ll_b32_b16" => |s| plain(s.a & 0xffff | (s.b & 0xffff) << 16),
        "s_pack_lh_b32_b16" => |s| plain(s.a & 0xffff | s.b >> 16 << 16),
        "s_pack_hh_b32_b16" => |s| plain(s.a >> 16 | s.b >> 16 << 16),
        "s_pack_hl_b32_b16" => |s| plain(s.a >> 16 | (s.b & 0xffff) << 16),
        "s_sext_i32_i8" => |s| plain(s.a as i8 as u32 as u64),
        "s_sext_i32_i16" => |s| plain(s.a as i16 as u32 as u64),
        _ => return None,
    })
}

fn arithmetic(name: &str) -> Option<Function> {
    Some(match name {
        "s_add_u32" | "s_add_co_u32" => |s| carrying(s.a + s.b),
        "s_addc_u32" | "s_add_co_ci_u32" => |s| carrying(s.a + s.b + s.scc),
        "s_sub_u32" | "s_sub_co_u32" => |s| (Some(s.a.wrapping_sub(s.b) & 0xffff_ffff), Some(s.b > s.a)),
        "s_subb_u32" | "s_sub_co_ci_u32" => {
            |s| (Some(s.a.wrapping_sub(s.b + s.scc) & 0xffff_ffff), Some(s.b + s.scc > s.a))
        }
        "s_add_i32" | "s_add_co_i32" => |s| overflowing(i(s.a) + i(s.b)),
        "s_sub_i32" | "s_sub_co_i32" => |s| overflowing(i(s.a) - i(s.b)),
        "s_addk_i32" | "s_addk_co_i32" => |s| overflowing(i(s.old) + s.k),
        "s_mulk_i32" => |s| plain((i(s.old) * s.k) as u64 & 0xffff_ffff),
        "s_mul_i32" => |s| plain(s.a.wrapping_mul(s.b) & 0xffff_ffff),
        "s_mul_hi_u32" => |s| plain((s.a * s.b) >> 32),
        "s_mul_hi_i32" => |s| plain(((i(s.a) * i(s.b)) >> 32) as u64 & 0xffff_ffff),
        "s_mul_u64" => |s| plain(s.a.wrapping_mul(s.b)),
        "s_add_u64" | "s_add_nc_u64" => |s| plain(s.a.wrapping_add(s.b)),
        "s_sub_u64" | "s_sub_nc_u64" => |s| plain(s.a.wrapping_sub(s.b)),
        "s_abs_i32" => |s| tested32(i(s.a).unsigned_abs()),
        "s_absdiff_i32" => |s| tested32((i(s.a) as i32).wrapping_sub(i(s.b) as i32).unsigned_abs().into()),
        // SCC: the first source is the result.
        "s_min_i32" => |s| (Some(i(s.a).min(i(s.b)) as u32 as u64), Some(i(s.a) < i(s.b))),
        "s_min_u32" => |s| (Some(s.a.min(s.b)), Some(s.a < s.b)),
        "s_max_i32" => |s| (Some(i(s.a).max(i(s.b)) as u32 as u64), Some(i(s.a) >= i(s.b))),
        "s_max_u32" => |s| (Some(s.a.max(s.b)), Some(s.a >= s.b)),
        "s_lshl1_add_u32" => |s| carrying((s.a << 1) + s.b),
        "s_lshl2_add_u32" => |s| carrying((s.a << 2) + s.b),
        "s_lshl3_add_u32" => |s| carrying((s.a << 3) + s.b),
        "s_lshl4_add_u32" => |s| carrying((s.a << 4) + s.b),
        _ => return None,
    })
}

fn logic(name: &str) -> Option<Function> {
    Some(match name {
        "s_not_b32" => |s| tested32(!s.a),
        "s_not_b64" => |s| tested(!s.a),
        "s_and_b32" | "s_and_b64" => |s| tested(s.a & s.b),
        "s_or_b32" | "s_or_b64" => |s| tested(s.a | s.b),
        "s_xor_b32" | "s_xor_b64" => |s| tested(s.a ^ s.b),
        "s_andn2_b32" | "s_andn2_b64" | "s_and_not1_b32" | "s_and_not1_b64" => |s| tested(s.a & !s.b),
        "s_orn2_b32" | "s_or_not1_b32" => |s| tested32(s.a | !s.b),
        "s_orn2_b64" | "s_or_not1_b64" => |s| tested(s.a | !s.b),
        "s_nand_b32" => |s| tested32(!(s.a & s.b)),
        "s_nand_b64" => |s| tested(!(s.a & s.b)),
        "s_nor_b32" => |s| tested32(!(s.a | s.b)),
        "s_nor_b64" => |s| tested(!(s.a | s.b)),
        "s_xnor_b32" => |s| tested32(!(s.a ^ s.b)),
        "s_xnor_b64" => |s| tested(!(s.a ^ s.b)),
        "s_lshl_b32" => |s| tested32(s.a << (s.b % 32)),
        "s_lshl_b64" => |s| tested(s.a << (s.b % 64)),
        "s_lshr_b32" => |s| tested(s.a >> (s.b % 32)),
        "s_lshr_b64" => |s| tested(s.a >> (s.b % 64)),
        "s_ashr_i32" => |s| tested32((i(s.a) >> (s.b % 32)) as u64),
        "s_ashr_i64" => |s| tested((s.a as i64 >> (s.b % 64)) as u64),
        "s_bfm_b32" => |s| plain(((1 << (s.a % 32)) - 1) << (s.b % 32) & 0xffff_ffff),
        "s_bfm_b64" => |s| plain(((1 << (s.a % 64)) - 1) << (s.b % 64)),
        "s_bfe_u32" => |s| tested(field(s.a.into(), s.b, 5, false)),
        "s_bfe_i32" => |s| tested(field(i(s.a).into(), s.b, 5, true)),
        "s_bfe_u64" => |s| tested(field(s.a.into(), s.b, 6, false)),
        "s_bfe_i64" => |s| tested(field((s.a as i64).into(), s.b, 6, true)),
        "s_wqm_b32" => |s| tested(whole_quads(s.a, 32)),
        "s_wqm_b64" => |s| tested(whole_quads(s.a, 64)),
        "s_quadmask_b32" => |s| tested(quads(s.a, 32)),
        "s_quadmask_b64" => |s| tested(quads(s.a, 64)),
        "s_brev_b32" => |s| plain(reversed(s.a, 32)),
        "s_brev_b64" => |s| plain(reversed(s.a, 64)),
        "s_bcnt0_i32_b32" => |s| tested(32 - bits(s.a, 32)),
        "s_bcnt0_i32_b64" => |s| tested(64 - bits(s.a, 64)),
        "s_bcnt1_i32_b32" => |s| tested(bits(s.a, 32)),
        "s_bcnt1_i32_b64" => |s| tested(bits(s.a, 64)),
        "s_ff0_i32_b32" => |s| plain(first(s.a, 32, 0, false)),
        "s_ff0_i32_b64" => |s| plain(first(s.a, 64, 0, false)),
        "s_ff1_i32_b32" | "s_ctz_i32_b32" => |s| plain(first(s.a, 32, 1, false)),
        "s_ff1_i32_b64" | "s_ctz_i32_b64" => |s| plain(first(s.a, 64, 1, false)),
        "s_flbit_i32_b32" | "s_clz_i32_u32" => |s| plain(first(s.a, 32, 1, true)),
        "s_flbit_i32_b64" | "s_clz_i32_u64" => |s| plain(first(s.a, 64, 1, true)),
        "s_flbit_i32" | "s_cls_i32" => |s| plain(sign_bits(s.a, 32)),
        "s_flbit_i32_i64" | "s_cls_i32_i64" => |s| plain(sign_bits(s.a, 64)),
        "s_bitset0_b32" => |s| plain(s.old & !(1 << (s.a % 32))),
        "s_bitset0_b64" => |s| plain(s.old & !(1 << (s.a % 64))),
        "s_bitset1_b32" => |s| plain(s.old | 1 << (s.a % 32)),
        "s_bitset1_b64" => |s| plain(s.old | 1 << (s.a % 64)),
        "s_bitreplicate_b64_b32" => {
            |s| plain((0..32).filter(|n| s.a >> n & 1 != 0).fold(0, |all, n| all | 3 << (2 * n)))
        }
        _ => return None,
    })
}

fn comparison(name: &str) -> Option<Function> {
    Some(match name {
        "s_cmp_eq_i32" | "s_cmp_eq_u32" | "s_cmp_eq_u64" => |s| flag(s.a == s.b),
        "s_cmp_lg_i32" | "s_cmp_lg_u32" | "s_cmp_lg_u64" => |s| flag(s.a != s.b),
        "s_cmp_gt_i32" => |s| flag(i(s.a) > i(s.b)),
        "s_cmp_ge_i32" => |s| flag(i(s.a) >= i(s.b)),
        "s_cmp_lt_i32" => |s| flag(i(s.a) < i(s.b)),
        "s_cmp_le_i32" => |s| flag(i(s.a) <= i(s.b)),
        "s_cmp_gt_u32" => |s| flag(s.a > s.b),
        "s_cmp_ge_u32" => |s| flag(s.a >= s.b),
        "s_cmp_lt_u32" => |s| flag(s.a < s.b),
        "s_cmp_le_u32" => |s| flag(s.a <= s.b),
        "s_cmpk_eq_i32" => |s| flag(i(s.a) == s.k),
        "s_cmpk_lg_i32" => |s| flag(i(s.a) != s.k),
        "s_cmpk_gt_i32" => |s| flag(i(s.a) > s.k),
        "s_cmpk_ge_i32" => |s| flag(i(s.a) >= s.k),
        "s_cmpk_lt_i32" => |s| flag(i(s.a) < s.k),
        "s_cmpk_le_i32" => |s| flag(i(s.a) <= s.k),
        "s_cmpk_eq_u32" => |s| flag(s.a == s.k as u64 & 0xffff),
        "s_cmpk_lg_u32" => |s| flag(s.a != s.k as u64 & 0xffff),
        "s_cmpk_gt_u32" => |s| flag(s.a > s.k as u64 & 0xffff),
        "s_cmpk_ge_u32" => |s| flag(s.a >= s.k as u64 & 0xffff),
        "s_cmpk_lt_u32" => |s| flag(s.a < s.k as u64 & 0xffff),
        "s_cmpk_le_u32" => |s| flag(s.a <= s.k as u64 & 0xffff),
        "s_bitcmp0_b32" => |s| flag(s.a >> (s.b % 32) & 1 == 0),
        "s_bitcmp1_b32" => |s| flag(s.a >> (s.b % 32) & 1 == 1),
        "s_bitcmp0_b64" => |s| flag(s.a >> (s.b % 64) & 1 == 0),
        "s_bitcmp1_b64" => |s| flag(s.a >> (s.b % 64) & 1 == 1),
        _ => return None,
    })
}

/// New EXEC of an operation that saves the old one.
fn saved(name: &str) -> Option<Function> {
    let operation = name
        .strip_prefix("s_")?
        .strip_suffix("_saveexec_b64")
        .or_else(|| name.strip_prefix("s_")?.strip_suffix("_saveexec_b32"))?;
    Some(match operation {
        "and" => |s| plain(s.a & s.exec),
        "or" => |s| plain(s.a | s.exec),
        "xor" => |s| plain(s.a ^ s.exec),
        "andn2" | "and_not1" => |s| plain(s.a & !s.exec),
        "orn2" | "or_not1" => |s| plain(s.a | !s.exec),
        "nand" => |s| plain(!(s.a & s.exec)),
        "nor" => |s| plain(!(s.a | s.exec)),
        "xnor" => |s| plain(!(s.a ^ s.exec)),
        "andn1" | "and_not0" => |s| plain(!s.a & s.exec),
        "orn1" | "or_not0" => |s| plain(!s.a | s.exec),
        _ => return None,
    })
}

/// New EXEC, which is also the result.
fn written(name: &str) -> Option<Function> {
    Some(match name {
        "s_andn1_wrexec_b64" | "s_andn1_wrexec_b32" | "s_and_not0_wrexec_b64" | "s_and_not0_wrexec_b32" => {
            |s| plain(!s.a & s.exec)
        }
        "s_andn2_wrexec_b64" | "s_andn2_wrexec_b32" | "s_and_not1_wrexec_b64" | "s_and_not1_wrexec_b32" => {
            |s| plain(s.a & !s.exec)
        }
        _ => return None,
    })
}

/// A scalar source of one or two registers.
pub fn source(state: &State, operand: &Operand) -> Option<u64> {
    let wide = operand.dwords == 2;
    let ty = if wide { lane::T::U64 } else { lane::T::U32 };
    lane::read(state, operand, ty).map(|values| values[0])
}

/// Writes one or two scalar registers.
pub fn set(state: &mut State, operand: &Operand, value: u64) -> Option<()> {
    let reg = operand.reg().filter(|reg| reg.file == RegFile::Scalar)?;
    if reg.first == scalar::NULL {
        return Some(());
    }
    let first = usize::from(reg.first);
    state.sgpr[first] = value as u32;
    if operand.dwords == 2 {
        state.sgpr[first + 1] = (value >> 32) as u32;
    }
    Some(())
}

fn execute(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let name = inst.name();
    let read = |role: Role| inst.operand(role).map_or(Some(0), |operand| source(state, operand));
    let k = inst
        .operands
        .iter()
        .find_map(|operand| if let Value::Imm(value) = operand.value { Some(value) } else { None })
        .unwrap_or(0);
    let narrow = name.ends_with("32");
    let sources = Sources {
        a: read(Role::Src0)?,
        b: read(Role::Src1)?,
        old: read(Role::Sdst)?,
        scc: state.scc.into(),
        exec: if narrow { u64::from(state.sgpr[126]) } else { state.pair(126) },
        k: i64::from(k as i16),
    };
    let width = if narrow { 0xffff_ffff } else { u64::MAX };
    if let Some(f) = saved(name).or_else(|| written(name)) {
        let exec = f(&sources).0? & width;
        set(state, inst.operand(Role::Sdst)?, if saved(name).is_some() { sources.exec } else { exec })?;
        state.sgpr[126] = exec as u32;
        if !narrow {
            state.sgpr[127] = (exec >> 32) as u32;
        }
        state.scc = exec != 0;
        if !narrow && state.lanes == 32 {
            // What the high half of EXEC is in a wave of 32 lanes is not documented.
            state.loose.push((Place::Scalar(127), Loose::Any));
            return (exec == 0 || exec as u32 != 0).then_some(());
        }
        return Some(());
    }
    let (result, scc) = operation(name)?(&sources);
    if let Some(value) = result {
        set(state, inst.operand(Role::Sdst)?, value)?;
    }
    if let Some(scc) = scc {
        state.scc = scc;
    }
    Some(())
}

fn operation(name: &str) -> Option<Function> {
    moves(name).or_else(|| arithmetic(name)).or_else(|| logic(name)).or_else(|| comparison(name))
}

/// The definition of a scalar operation.
pub fn definition(name: &str) -> Option<Definition> {
    operation(name).or_else(|| saved(name)).or_else(|| written(name))?;
    // What a literal is to a 64-bit operation depends on its type in ways that are not all documented.
    let wishes = Wishes { no_literals: name.ends_with("64"), ..Wishes::default() };
    Some(Definition { wishes, ..Definition::whole(execute) })
}
