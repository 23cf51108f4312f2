//! Integer and bit instructions of the vector ALU.

use wavetap_amdgpu::Opcode;

use super::{run_lane, run_lane_bit};
use crate::float::Env;
use crate::lanes::{Lane, LaneBit, bit_operation, operation};
use crate::op::semantics::{High, Semantics, Ty};
use crate::state::op::Meaning;

const N: Ty = Ty::None;
const W: Ty = Ty::B32;
const H: Ty = Ty::B16;
const D: Ty = Ty::B64;
const M: Ty = Ty::Mask;

pub(crate) fn lane(f: impl Lane, dst: Ty, src: [Ty; 4], high: High) -> Meaning {
    (run_lane, Semantics::Lane { f: operation(f), dst, src, high })
}

fn w1(f: impl Lane) -> Meaning {
    lane(f, W, [W, N, N, N], High::Zero)
}
fn w2(f: impl Lane) -> Meaning {
    lane(f, W, [W, W, N, N], High::Zero)
}
fn w3(f: impl Lane) -> Meaning {
    lane(f, W, [W, W, W, N], High::Zero)
}
/// 16-bit operations that clear the other half of their register on gfx9.
fn h2(f: impl Lane) -> Meaning {
    lane(f, H, [H, H, N, N], High::Zero)
}
/// 16-bit operations of the three-operand encoding: they keep the other half.
fn keep2(f: impl Lane) -> Meaning {
    lane(f, H, [H, H, N, N], High::Keep)
}
fn keep3(f: impl Lane) -> Meaning {
    lane(f, H, [H, H, H, N], High::Keep)
}
fn d2(f: impl Lane) -> Meaning {
    lane(f, D, [D, D, N, N], High::Zero)
}
fn bit(f: impl LaneBit, dst: Ty, src: [Ty; 4]) -> Meaning {
    (run_lane_bit, Semantics::LaneBit { f: bit_operation(f), dst, src })
}

fn u(x: u64) -> u32 {
    x as u32
}
fn i(x: u64) -> i32 {
    x as u32 as i32
}
fn h(x: u64) -> u16 {
    x as u16
}
fn ih(x: u64) -> i16 {
    x as u16 as i16
}
fn from_i(x: i32) -> u64 {
    u64::from(x as u32)
}
fn from_ih(x: i16) -> u64 {
    u64::from(x as u16)
}
fn i24(x: u64) -> i64 {
    i64::from((x as u32) << 8) << 32 >> 40
}
fn u24(x: u64) -> u64 {
    x & 0xff_ffff
}
fn bytes(x: u64) -> [u8; 4] {
    (x as u32).to_le_bytes()
}

fn med3<T: Ord + Copy>(a: T, b: T, c: T) -> T {
    a.min(b).max(a.max(b).min(c))
}

fn saturated_add(clamp: bool, a: i32, b: i32) -> u64 {
    from_i(if clamp { a.saturating_add(b) } else { a.wrapping_add(b) })
}

/// The sum of absolute differences of bytes; `masked` leaves out those whose reference (second) byte is zero.
fn sad(a: u64, b: u64, masked: bool) -> u32 {
    let (a, b) = (bytes(a), bytes(b));
    (0..4).filter(|&n| !masked || b[n] != 0).map(|n| u32::from(a[n].abs_diff(b[n]))).sum()
}

fn quad_sad(e: &Env, s: &[u64; 4], masked: bool) -> u64 {
    (0..4).fold(0, |all, n| {
        let sum = sad(s[0] >> (8 * n), s[1], masked) + u32::from((s[2] >> (16 * n)) as u16);
        all | u64::from(if e.clamp { sum.min(0xffff) } else { sum & 0xffff }) << (16 * n)
    })
}

fn permuted_byte(data: u64, select: u8) -> u8 {
    let all = data.to_le_bytes();
    let sign = |at: usize| if all[at] & 0x80 != 0 { 0xff } else { 0 };
    match select {
        0..=7 => all[usize::from(select)],
        8 => sign(1),
        9 => sign(3),
        10 => sign(5),
        11 => sign(7),
        12 => 0,
        _ => 0xff,
    }
}

/// The meaning of an integer vector instruction.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    arithmetic(opcode).or_else(|| bits(opcode)).or_else(|| narrow(opcode))
}

fn arithmetic(opcode: Opcode) -> Option<Meaning> {
    Some(match opcode {
        Opcode::V_ADD_U32 | Opcode::V_ADD_NC_U32 => {
            w2(|e, s| u64::from(if e.clamp { u(s[0]).saturating_add(u(s[1])) } else { u(s[0]).wrapping_add(u(s[1])) }))
        }
        Opcode::V_SUB_U32 | Opcode::V_SUB_NC_U32 => {
            w2(|e, s| u64::from(if e.clamp { u(s[0]).saturating_sub(u(s[1])) } else { u(s[0]).wrapping_sub(u(s[1])) }))
        }
        Opcode::V_SUBREV_U32 | Opcode::V_SUBREV_NC_U32 => {
            w2(|e, s| u64::from(if e.clamp { u(s[1]).saturating_sub(u(s[0])) } else { u(s[1]).wrapping_sub(u(s[0])) }))
        }
        Opcode::V_ADD_I32 | Opcode::V_ADD_NC_I32 => w2(|e, s| saturated_add(e.clamp, i(s[0]), i(s[1]))),
        Opcode::V_SUB_I32 | Opcode::V_SUB_NC_I32 => {
            w2(|e, s| from_i(if e.clamp { i(s[0]).saturating_sub(i(s[1])) } else { i(s[0]).wrapping_sub(i(s[1])) }))
        }
        Opcode::V_ADD_CO_U32 => bit(|e, s| carry(e.clamp, s[0] + s[1]), W, [W, W, N, N]),
        Opcode::V_ADDC_CO_U32 | Opcode::V_ADD_CO_CI_U32 | Opcode::V_ADDC_U32 => {
            bit(|e, s| carry(e.clamp, s[0] + s[1] + s[2]), W, [W, W, M, N])
        }
        Opcode::V_SUB_CO_U32 => bit(|e, s| borrow(e.clamp, s[0], s[1], 0), W, [W, W, N, N]),
        Opcode::V_SUBREV_CO_U32 => bit(|e, s| borrow(e.clamp, s[1], s[0], 0), W, [W, W, N, N]),
        Opcode::V_SUBB_CO_U32 | Opcode::V_SUB_CO_CI_U32 | Opcode::V_SUBB_U32 => {
            bit(|e, s| borrow(e.clamp, s[0], s[1], s[2]), W, [W, W, M, N])
        }
        Opcode::V_SUBBREV_CO_U32 | Opcode::V_SUBREV_CO_CI_U32 | Opcode::V_SUBBREV_U32 => {
            bit(|e, s| borrow(e.clamp, s[1], s[0], s[2]), W, [W, W, M, N])
        }
        Opcode::V_MUL_LO_U32 | Opcode::V_MUL_LO_I32 => w2(|_, s| u64::from(u(s[0]).wrapping_mul(u(s[1])))),
        Opcode::V_MUL_HI_U32 => w2(|_, s| (s[0] * s[1]) >> 32),
        Opcode::V_MUL_HI_I32 => w2(|_, s| from_i(((i64::from(i(s[0])) * i64::from(i(s[1]))) >> 32) as i32)),
        Opcode::V_MUL_I32_I24 => w2(|_, s| from_i((i24(s[0]) * i24(s[1])) as i32)),
        Opcode::V_MUL_HI_I32_I24 => w2(|_, s| from_i(((i24(s[0]) * i24(s[1])) >> 32) as i32)),
        Opcode::V_MUL_U32_U24 => w2(|_, s| u64::from(u(u24(s[0]) * u24(s[1])))),
        Opcode::V_MUL_HI_U32_U24 => w2(|_, s| (u24(s[0]) * u24(s[1])) >> 32),
        Opcode::V_MAD_I32_I24 => w3(|e, s| {
            let sum = i24(s[0]) * i24(s[1]) + i64::from(i(s[2]));
            from_i(if e.clamp { sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32 } else { sum as i32 })
        }),
        Opcode::V_MAD_U32_U24 => w3(|e, s| {
            let sum = u24(s[0]) * u24(s[1]) + s[2];
            if e.clamp { sum.min(u64::from(u32::MAX)) } else { u64::from(u(sum)) }
        }),
        Opcode::V_MAD_U32_U16 => lane(
            |e, s| {
                let sum = s[0] * s[1] + s[2];
                if e.clamp { sum.min(u64::from(u32::MAX)) } else { u64::from(u(sum)) }
            },
            W,
            [H, H, W, N],
            High::Zero,
        ),
        Opcode::V_MAD_I32_I16 => lane(
            |e, s| {
                let product = i32::from(ih(s[0])) * i32::from(ih(s[1]));
                saturated_add(e.clamp, product, i(s[2]))
            },
            W,
            [H, H, W, N],
            High::Zero,
        ),
        Opcode::V_MAD_U64_U32 | Opcode::V_MAD_CO_U64_U32 => bit(
            |e, s| {
                let (sum, over) = (s[0] * s[1]).overflowing_add(s[2]);
                (if e.clamp && over { u64::MAX } else { sum }, over)
            },
            D,
            [W, W, D, N],
        ),
        Opcode::V_MAD_I64_I32 | Opcode::V_MAD_CO_I64_I32 => bit(
            |e, s| {
                let product = i64::from(i(s[0])) * i64::from(i(s[1]));
                let wide = i128::from(product) + i128::from(s[2] as i64);
                let clamped = wide.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
                (if e.clamp { clamped as u64 } else { wide as u64 }, wide >> 64 & 1 != 0)
            },
            D,
            [W, W, D, N],
        ),
        Opcode::V_ADD3_U32 => w3(|_, s| u64::from(u(s[0]).wrapping_add(u(s[1])).wrapping_add(u(s[2])))),
        Opcode::V_LSHL_ADD_U32 => w3(|_, s| u64::from((u(s[0]) << (s[1] & 31)).wrapping_add(u(s[2])))),
        Opcode::V_ADD_LSHL_U32 => w3(|_, s| u64::from(u(s[0]).wrapping_add(u(s[1])) << (s[2] & 31))),
        Opcode::V_XAD_U32 => w3(|_, s| u64::from((u(s[0]) ^ u(s[1])).wrapping_add(u(s[2])))),
        Opcode::V_LSHL_ADD_U64 => lane(|_, s| (s[0] << (s[1] & 7)).wrapping_add(s[2]), D, [D, W, D, N], High::Zero),
        Opcode::V_MAD_U32 => w3(|_, s| u64::from(u(s[0]).wrapping_mul(u(s[1])).wrapping_add(u(s[2])))),
        Opcode::V_MAD_NC_U64_U32 => lane(
            |e, s| {
                let (sum, over) = (s[0] * s[1]).overflowing_add(s[2]);
                if e.clamp && over { u64::MAX } else { sum }
            },
            D,
            [W, W, D, N],
            High::Zero,
        ),
        Opcode::V_MAD_NC_I64_I32 => lane(
            |e, s| {
                let product = i64::from(i(s[0])) * i64::from(i(s[1]));
                let sum = if e.clamp { product.saturating_add(s[2] as i64) } else { product.wrapping_add(s[2] as i64) };
                sum as u64
            },
            D,
            [W, W, D, N],
            High::Zero,
        ),
        Opcode::V_ADD_NC_U64 => d2(|e, s| if e.clamp { s[0].saturating_add(s[1]) } else { s[0].wrapping_add(s[1]) }),
        Opcode::V_SUB_NC_U64 => d2(|e, s| if e.clamp { s[0].saturating_sub(s[1]) } else { s[0].wrapping_sub(s[1]) }),
        Opcode::V_MUL_U64 => d2(|_, s| s[0].wrapping_mul(s[1])),
        Opcode::V_MIN_U64 => d2(|_, s| s[0].min(s[1])),
        Opcode::V_MAX_U64 => d2(|_, s| s[0].max(s[1])),
        Opcode::V_MIN_I64 => d2(|_, s| (s[0] as i64).min(s[1] as i64) as u64),
        Opcode::V_MAX_I64 => d2(|_, s| (s[0] as i64).max(s[1] as i64) as u64),
        Opcode::V_MINMAX_U32 => w3(|_, s| u64::from(u(s[0]).min(u(s[1])).max(u(s[2])))),
        Opcode::V_MAXMIN_U32 => w3(|_, s| u64::from(u(s[0]).max(u(s[1])).min(u(s[2])))),
        Opcode::V_MINMAX_I32 => w3(|_, s| from_i(i(s[0]).min(i(s[1])).max(i(s[2])))),
        Opcode::V_MAXMIN_I32 => w3(|_, s| from_i(i(s[0]).max(i(s[1])).min(i(s[2])))),
        // Their sums always saturate.
        Opcode::V_ADD_MAX_U32 => w3(|_, s| u64::from(u(s[0]).saturating_add(u(s[1])).max(u(s[2])))),
        Opcode::V_ADD_MIN_U32 => w3(|_, s| u64::from(u(s[0]).saturating_add(u(s[1])).min(u(s[2])))),
        Opcode::V_ADD_MAX_I32 => w3(|_, s| from_i(i(s[0]).saturating_add(i(s[1])).max(i(s[2])))),
        Opcode::V_ADD_MIN_I32 => w3(|_, s| from_i(i(s[0]).saturating_add(i(s[1])).min(i(s[2])))),
        Opcode::V_MIN_U32 => w2(|_, s| u64::from(u(s[0]).min(u(s[1])))),
        Opcode::V_MAX_U32 => w2(|_, s| u64::from(u(s[0]).max(u(s[1])))),
        Opcode::V_MIN_I32 => w2(|_, s| from_i(i(s[0]).min(i(s[1])))),
        Opcode::V_MAX_I32 => w2(|_, s| from_i(i(s[0]).max(i(s[1])))),
        Opcode::V_MIN3_U32 => w3(|_, s| u64::from(u(s[0]).min(u(s[1])).min(u(s[2])))),
        Opcode::V_MAX3_U32 => w3(|_, s| u64::from(u(s[0]).max(u(s[1])).max(u(s[2])))),
        Opcode::V_MED3_U32 => w3(|_, s| u64::from(med3(u(s[0]), u(s[1]), u(s[2])))),
        Opcode::V_MIN3_I32 => w3(|_, s| from_i(i(s[0]).min(i(s[1])).min(i(s[2])))),
        Opcode::V_MAX3_I32 => w3(|_, s| from_i(i(s[0]).max(i(s[1])).max(i(s[2])))),
        Opcode::V_MED3_I32 => w3(|_, s| from_i(med3(i(s[0]), i(s[1]), i(s[2])))),
        Opcode::V_SAD_U8 => w3(|e, s| summed(e, sad(s[0], s[1], false).into(), s[2])),
        Opcode::V_SAD_HI_U8 => w3(|e, s| summed(e, u64::from(sad(s[0], s[1], false)) << 16, s[2])),
        Opcode::V_MSAD_U8 => w3(|e, s| summed(e, sad(s[0], s[1], true).into(), s[2])),
        Opcode::V_SAD_U16 => w3(|e, s| {
            let difference = |shift: u32| u64::from(h(s[0] >> shift).abs_diff(h(s[1] >> shift)));
            summed(e, difference(0) + difference(16), s[2])
        }),
        Opcode::V_SAD_U32 => w3(|e, s| summed(e, u(s[0]).abs_diff(u(s[1])).into(), s[2])),
        Opcode::V_QSAD_PK_U16_U8 => lane(|e, s| quad_sad(e, s, false), D, [D, W, D, N], High::Zero),
        Opcode::V_MQSAD_PK_U16_U8 => lane(|e, s| quad_sad(e, s, true), D, [D, W, D, N], High::Zero),
        Opcode::V_LERP_U8 => w3(|_, s| {
            let (a, b, c) = (bytes(s[0]), bytes(s[1]), bytes(s[2]));
            let mean = |n: usize| ((u16::from(a[n]) + u16::from(b[n]) + u16::from(c[n] & 1)) >> 1) as u8;
            u64::from(u32::from_le_bytes([mean(0), mean(1), mean(2), mean(3)]))
        }),
        _ => return None,
    })
}

/// An unsigned sum of 32 bits, saturated with the clamp bit.
fn summed(e: &Env, a: u64, b: u64) -> u64 {
    carry(e.clamp, a + b).0
}

fn carry(clamp: bool, sum: u64) -> (u64, bool) {
    let over = sum >> 32 != 0;
    (if clamp && over { 0xffff_ffff } else { sum & 0xffff_ffff }, over)
}

fn borrow(clamp: bool, a: u64, b: u64, c: u64) -> (u64, bool) {
    let under = a < b + c;
    (if clamp && under { 0 } else { u64::from(u(a.wrapping_sub(b + c))) }, under)
}

fn bits(opcode: Opcode) -> Option<Meaning> {
    Some(match opcode {
        Opcode::V_MOV_B32 | Opcode::V_ACCVGPR_MOV_B32 => w1(|_, s| s[0]),
        Opcode::V_MOV_B64 => lane(|_, s| s[0], D, [D, N, N, N], High::Zero),
        Opcode::V_NOT_B32 => w1(|_, s| u64::from(!u(s[0]))),
        Opcode::V_BFREV_B32 => w1(|_, s| u64::from(u(s[0]).reverse_bits())),
        Opcode::V_FFBH_U32 | Opcode::V_CLZ_I32_U32 => {
            w1(|_, s| if u(s[0]) == 0 { 0xffff_ffff } else { u64::from(u(s[0]).leading_zeros()) })
        }
        Opcode::V_FFBL_B32 | Opcode::V_CTZ_I32_B32 => {
            w1(|_, s| if u(s[0]) == 0 { 0xffff_ffff } else { u64::from(u(s[0]).trailing_zeros()) })
        }
        Opcode::V_FFBH_I32 | Opcode::V_CLS_I32 => w1(|_, s| {
            let x = i(s[0]);
            let same = (if x < 0 { !x } else { x }).leading_zeros();
            if same == 32 { 0xffff_ffff } else { u64::from(same) }
        }),
        Opcode::V_AND_B32 => w2(|_, s| s[0] & s[1]),
        Opcode::V_OR_B32 => w2(|_, s| s[0] | s[1]),
        Opcode::V_XOR_B32 => w2(|_, s| s[0] ^ s[1]),
        Opcode::V_XNOR_B32 => w2(|_, s| u64::from(!u(s[0] ^ s[1]))),
        Opcode::V_XOR3_B32 => w3(|_, s| s[0] ^ s[1] ^ s[2]),
        Opcode::V_BITOP3_B32 => w3(|e, s| truth_table(e.table, s) & 0xffff_ffff),
        Opcode::V_PRNG_B32 => w1(|_, s| u64::from(u(s[0]) << 1 ^ if u(s[0]) >> 31 != 0 { 197 } else { 0 })),
        Opcode::V_ASHR_PK_I8_I32 => lane(|_, s| shifted_pair(s, -128, 127), H, [W, W, W, N], High::Keep),
        Opcode::V_ASHR_PK_U8_I32 => lane(|_, s| shifted_pair(s, 0, 255), H, [W, W, W, N], High::Keep),
        Opcode::V_SAT_PK4_I4_I8 => {
            lane(|_, s| nibbles(s[0], |byte| (byte as i8).clamp(-8, 7) as u8), H, [W, N, N, N], High::Keep)
        }
        Opcode::V_SAT_PK4_U4_U8 => lane(|_, s| nibbles(s[0], |byte| byte.min(15)), H, [W, N, N, N], High::Keep),
        Opcode::V_AND_OR_B32 => w3(|_, s| s[0] & s[1] | s[2]),
        Opcode::V_OR3_B32 => w3(|_, s| s[0] | s[1] | s[2]),
        Opcode::V_LSHL_OR_B32 => w3(|_, s| u64::from(u(s[0]) << (s[1] & 31)) | s[2]),
        Opcode::V_LSHLREV_B32 => w2(|_, s| u64::from(u(s[1]) << (s[0] & 31))),
        Opcode::V_LSHRREV_B32 => w2(|_, s| u64::from(u(s[1]) >> (s[0] & 31))),
        Opcode::V_ASHRREV_I32 => w2(|_, s| from_i(i(s[1]) >> (s[0] & 31))),
        Opcode::V_LSHLREV_B64 => lane(|_, s| s[1] << (s[0] & 63), D, [W, D, N, N], High::Zero),
        Opcode::V_LSHRREV_B64 => lane(|_, s| s[1] >> (s[0] & 63), D, [W, D, N, N], High::Zero),
        Opcode::V_ASHRREV_I64 => lane(|_, s| ((s[1] as i64) >> (s[0] & 63)) as u64, D, [W, D, N, N], High::Zero),
        Opcode::V_BFE_U32 => w3(|_, s| u64::from((u(s[0]) >> (s[1] & 31)) & ((1_u32 << (s[2] & 31)) - 1))),
        Opcode::V_BFE_I32 => w3(|_, s| {
            let width = (s[2] & 31) as u32;
            if width == 0 {
                return 0;
            }
            let field = i(s[0]) >> (s[1] & 31);
            from_i(field << (32 - width) >> (32 - width))
        }),
        Opcode::V_BFI_B32 => w3(|_, s| u64::from(u(s[0] & s[1] | !s[0] & s[2]))),
        Opcode::V_BFM_B32 => w2(|_, s| u64::from(((1_u32 << (s[0] & 31)) - 1) << (s[1] & 31))),
        Opcode::V_ALIGNBIT_B32 => w3(|_, s| u64::from(u((s[0] << 32 | s[1]) >> (s[2] & 31)))),
        Opcode::V_ALIGNBYTE_B32 => w3(|_, s| u64::from(u((s[0] << 32 | s[1]) >> (8 * (s[2] & 3))))),
        Opcode::V_PERM_B32 => w3(|_, s| {
            let data = s[0] << 32 | s[1];
            u64::from(u32::from_le_bytes(bytes(s[2]).map(|select| permuted_byte(data, select))))
        }),
        Opcode::V_BCNT_U32_B32 => w2(|_, s| u64::from(u(s[0]).count_ones().wrapping_add(u(s[1])))),
        Opcode::V_CNDMASK_B32 => lane(|_, s| if s[2] != 0 { s[1] } else { s[0] }, W, [W, W, M, N], High::Zero),
        Opcode::V_PACK_B32_F16 => lane(|_, s| s[0] | s[1] << 16, W, [Ty::F16, Ty::F16, N, N], High::Zero),
        Opcode::V_SAT_PK_U8_I16 => w1(saturated_bytes),
        Opcode::V_CVT_PK_U16_U32 => w2(|_, s| s[0].min(0xffff) | s[1].min(0xffff) << 16),
        Opcode::V_CVT_PK_I16_I32 => w2(|_, s| {
            let half = |x: u64| u64::from(i(x).clamp(-0x8000, 0x7fff) as u16);
            half(s[0]) | half(s[1]) << 16
        }),
        _ => return None,
    })
}

/// Any function of three bits, by its truth table: bit `4a + 2b + c` of it is the result for a, b, c.
fn truth_table(table: u8, s: &[u64; 4]) -> u64 {
    let pick = |bits: u64, one: bool| if one { bits } else { !bits };
    (0..8)
        .filter(|row| table >> row & 1 != 0)
        .map(|row| pick(s[0], row & 4 != 0) & pick(s[1], row & 2 != 0) & pick(s[2], row & 1 != 0))
        .fold(0, |all, row| all | row)
}

/// Two numbers shifted right and saturated to a byte each.
fn shifted_pair(s: &[u64; 4], least: i32, most: i32) -> u64 {
    let byte = |x: u64| (i(x) >> (s[2] & 31)).clamp(least, most) as u8;
    u64::from(byte(s[0])) | u64::from(byte(s[1])) << 8
}

/// `v_sat_pk_u8_i16` where the result is half of a register.
pub(crate) fn saturated_bytes_in_half() -> Meaning {
    lane(saturated_bytes, H, [W, N, N, N], High::Keep)
}

fn saturated_bytes(_: &Env, s: &[u64; 4]) -> u64 {
    let byte = |x: i16| x.clamp(0, 255) as u64;
    byte(ih(s[0])) | byte(ih(s[0] >> 16)) << 8
}

/// Four bytes made four bits each.
fn nibbles(x: u64, f: fn(u8) -> u8) -> u64 {
    (0..4).fold(0, |all, n| all | u64::from(f((x >> (8 * n)) as u8) & 15) << (4 * n))
}

fn narrow(opcode: Opcode) -> Option<Meaning> {
    Some(match opcode {
        Opcode::V_ADD_U16 | Opcode::V_ADD_NC_U16 => {
            h2(|e, s| u64::from(if e.clamp { h(s[0]).saturating_add(h(s[1])) } else { h(s[0]).wrapping_add(h(s[1])) }))
        }
        Opcode::V_SUB_U16 | Opcode::V_SUB_NC_U16 => {
            h2(|e, s| u64::from(if e.clamp { h(s[0]).saturating_sub(h(s[1])) } else { h(s[0]).wrapping_sub(h(s[1])) }))
        }
        Opcode::V_SUBREV_U16 => {
            h2(|e, s| u64::from(if e.clamp { h(s[1]).saturating_sub(h(s[0])) } else { h(s[1]).wrapping_sub(h(s[0])) }))
        }
        Opcode::V_MUL_LO_U16 => h2(|_, s| u64::from(h(s[0]).wrapping_mul(h(s[1])))),
        Opcode::V_LSHLREV_B16 => h2(|_, s| u64::from(h(s[1]) << (s[0] & 15))),
        Opcode::V_LSHRREV_B16 => h2(|_, s| u64::from(h(s[1]) >> (s[0] & 15))),
        Opcode::V_ASHRREV_I16 => h2(|_, s| from_ih(ih(s[1]) >> (s[0] & 15))),
        Opcode::V_MAX_U16 => h2(|_, s| s[0].max(s[1])),
        Opcode::V_MIN_U16 => h2(|_, s| s[0].min(s[1])),
        Opcode::V_MAX_I16 => h2(|_, s| from_ih(ih(s[0]).max(ih(s[1])))),
        Opcode::V_MIN_I16 => h2(|_, s| from_ih(ih(s[0]).min(ih(s[1])))),
        Opcode::V_ADD_I16 | Opcode::V_ADD_NC_I16 => keep2(|e, s| {
            from_ih(if e.clamp { ih(s[0]).saturating_add(ih(s[1])) } else { ih(s[0]).wrapping_add(ih(s[1])) })
        }),
        Opcode::V_SUB_I16 | Opcode::V_SUB_NC_I16 => keep2(|e, s| {
            from_ih(if e.clamp { ih(s[0]).saturating_sub(ih(s[1])) } else { ih(s[0]).wrapping_sub(ih(s[1])) })
        }),
        Opcode::V_AND_B16 => keep2(|_, s| s[0] & s[1]),
        Opcode::V_OR_B16 => keep2(|_, s| s[0] | s[1]),
        Opcode::V_XOR_B16 => keep2(|_, s| s[0] ^ s[1]),
        Opcode::V_NOT_B16 => lane(|_, s| !s[0] & 0xffff, H, [H, N, N, N], High::Keep),
        Opcode::V_MOV_B16 => lane(|_, s| s[0], H, [H, N, N, N], High::Keep),
        Opcode::V_CNDMASK_B16 => lane(|_, s| if s[2] != 0 { s[1] } else { s[0] }, H, [H, H, M, N], High::Keep),
        Opcode::V_BITOP3_B16 => keep3(|e, s| truth_table(e.table, s) & 0xffff),
        Opcode::V_MAD_U16 => keep3(mad_u16),
        Opcode::V_MAD_LEGACY_U16 => lane(mad_u16, H, [H, H, H, N], High::Zero),
        Opcode::V_MAD_I16 => keep3(mad_i16),
        Opcode::V_MAD_LEGACY_I16 => lane(mad_i16, H, [H, H, H, N], High::Zero),
        Opcode::V_MIN3_I16 => keep3(|_, s| from_ih(ih(s[0]).min(ih(s[1])).min(ih(s[2])))),
        Opcode::V_MAX3_I16 => keep3(|_, s| from_ih(ih(s[0]).max(ih(s[1])).max(ih(s[2])))),
        Opcode::V_MED3_I16 => keep3(|_, s| from_ih(med3(ih(s[0]), ih(s[1]), ih(s[2])))),
        Opcode::V_MIN3_U16 => keep3(|_, s| s[0].min(s[1]).min(s[2])),
        Opcode::V_MAX3_U16 => keep3(|_, s| s[0].max(s[1]).max(s[2])),
        Opcode::V_MED3_U16 => keep3(|_, s| med3(s[0], s[1], s[2])),
        _ => return None,
    })
}

fn mad_u16(e: &Env, s: &[u64; 4]) -> u64 {
    let sum = s[0] * s[1] + s[2];
    if e.clamp { sum.min(0xffff) } else { sum & 0xffff }
}

fn mad_i16(e: &Env, s: &[u64; 4]) -> u64 {
    let sum = i32::from(ih(s[0])) * i32::from(ih(s[1])) + i32::from(ih(s[2]));
    if e.clamp { u64::from(sum.clamp(-0x8000, 0x7fff) as u16) } else { u64::from(sum as u16) }
}
