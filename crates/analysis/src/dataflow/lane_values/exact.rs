//! What operations of the vector and scalar ALU make of values.

use super::{Combined, LaneSum, Opaque};
use wavetap_amdgpu::Opcode;
use wavetap_amdgpu::Opcode as O;

/// Bits of a shift that count.
const SHIFT: u32 = 31;
/// Of a 64-bit value.
const SHIFT_64: u32 = 63;
/// The lowest 24 bits.
const LOW_24: u32 = 0xff_ffff;

type Sources = [Option<LaneSum>; 3];

/// What an operation leaves in the lower half of its result.
pub(super) fn combine(opcode: Opcode, sources: &Sources, lanes: u32) -> Combined {
    let [a, b, c] = [sources[0].as_ref(), sources[1].as_ref(), sources[2].as_ref()];
    let found = match (a, b, c) {
        (Some(a), None, None) => unary(opcode, a),
        (Some(a), Some(b), None) => binary(opcode, a, b, lanes),
        (Some(a), Some(b), Some(c)) => ternary(opcode, a, b, c, lanes),
        _ => None,
    };
    if let Some(combined) = found {
        return combined;
    }
    // Any function makes one value of such, but of other lanes and of lane numbers.
    let uniform = sources.iter().flatten().all(LaneSum::is_uniform) && !knows_lanes(opcode);
    if uniform && a.is_some() { Combined::same_in_all(0) } else { Combined::Opaque(Opaque::Operation) }
}

fn knows_lanes(opcode: Opcode) -> bool {
    matches!(
        opcode,
        O::V_MBCNT_LO_U32_B32 | O::V_MBCNT_HI_U32_B32 | O::V_CNDMASK_B32 | O::V_WRITELANE_B32 | O::V_READLANE_B32
    )
}

fn sum(value: LaneSum) -> Option<Combined> {
    Some(value.into())
}

fn unary(opcode: Opcode, a: &LaneSum) -> Option<Combined> {
    match opcode {
        O::V_MOV_B32 | O::V_MOV_B64 | O::S_MOV_B32 | O::S_MOV_B64 => sum(a.clone()),
        O::V_READFIRSTLANE_B32 => Some(match a.is_uniform() {
            true => a.clone().into(),
            // Which lane is the first is not known.
            false => Combined::same_in_all(a.low_zeros()),
        }),
        O::V_NOT_B32 | O::S_NOT_B32 => a.exactly(a, |a, _| !a).map(Combined::from),
        _ => None,
    }
}

fn binary(opcode: Opcode, a: &LaneSum, b: &LaneSum, lanes: u32) -> Option<Combined> {
    let exactly = |function: fn(u32, u32) -> u32| a.exactly(b, function).map(Combined::from);
    match opcode {
        O::V_ADD_U32
        | O::V_ADD_CO_U32
        | O::V_ADD_NC_U32
        | O::V_ADD_I32
        | O::V_ADD_NC_I32
        | O::V_ADD_NC_U64
        | O::S_ADD_U32
        | O::S_ADD_I32
        | O::S_ADD_CO_U32
        | O::S_ADD_CO_I32
        | O::S_ADD_NC_U64 => sum(a.plus(b)),
        O::V_SUB_U32
        | O::V_SUB_CO_U32
        | O::V_SUB_NC_U32
        | O::V_SUB_I32
        | O::V_SUB_NC_I32
        | O::S_SUB_U32
        | O::S_SUB_I32
        | O::S_SUB_CO_U32
        | O::S_SUB_CO_I32 => sum(a.minus(b)),
        O::V_SUBREV_U32 | O::V_SUBREV_CO_U32 | O::V_SUBREV_NC_U32 => sum(b.minus(a)),
        O::V_LSHLREV_B32 => Some(left(b, a)),
        O::S_LSHL_B32 => Some(left(a, b)),
        O::V_LSHLREV_B64 => left_64(b, a),
        O::S_LSHL_B64 => left_64(a, b),
        O::S_LSHL1_ADD_U32 => sum(a.by(2).plus(b)),
        O::S_LSHL2_ADD_U32 => sum(a.by(4).plus(b)),
        O::S_LSHL3_ADD_U32 => sum(a.by(8).plus(b)),
        O::S_LSHL4_ADD_U32 => sum(a.by(16).plus(b)),
        O::V_LSHRREV_B32 => right(b, a, false),
        O::V_ASHRREV_I32 => right(b, a, true),
        O::S_LSHR_B32 => right(a, b, false),
        O::S_ASHR_I32 => right(a, b, true),
        O::V_MUL_LO_U32 | O::V_MUL_U32_U24 | O::V_MUL_I32_I24 | O::S_MUL_I32 => Some(product(a, b)),
        O::V_MUL_HI_U32 | O::S_MUL_HI_U32 => exactly(|a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32),
        O::V_MUL_HI_U32_U24 => exactly(|a, b| ((u64::from(a & LOW_24) * u64::from(b & LOW_24)) >> 32) as u32),
        O::V_AND_B32 | O::S_AND_B32 => and(a, b),
        O::V_OR_B32 | O::S_OR_B32 => a.bitwise(b, |a, b| a | b).map(Combined::from),
        O::V_XOR_B32 | O::S_XOR_B32 => a.bitwise(b, |a, b| a ^ b).map(Combined::from),
        O::V_MIN_U32 | O::S_MIN_U32 => exactly(u32::min),
        O::V_MAX_U32 | O::S_MAX_U32 => exactly(u32::max),
        O::V_MIN_I32 | O::S_MIN_I32 => exactly(|a, b| a.cast_signed().min(b.cast_signed()).cast_unsigned()),
        O::V_MAX_I32 | O::S_MAX_I32 => exactly(|a, b| a.cast_signed().max(b.cast_signed()).cast_unsigned()),
        // How many of the mask's bits are below the lane's own.
        O::V_MBCNT_LO_U32_B32 | O::V_MBCNT_HI_U32_B32 => {
            let mask = a.constant()?.cast_unsigned();
            let from = if opcode == O::V_MBCNT_LO_U32_B32 { 0 } else { u32::BITS };
            let below = |lane: u32| mask & u32::MAX.checked_shr(u32::BITS - lane).unwrap_or(0);
            let counts = (0..lanes).map(|lane| below(lane.saturating_sub(from).min(u32::BITS)).count_ones());
            sum(b.plus(&LaneSum::lanes(counts.map(u32::cast_signed))))
        }
        O::V_CNDMASK_B32 => Some(either(a, b)),
        O::S_BFE_U32 => {
            let (from, bits) = b.constant().map(|b| (b & 31, b >> 16 & 0x7f))?;
            field(a, from.cast_unsigned(), bits.cast_unsigned())
        }
        _ => None,
    }
}

fn ternary(opcode: Opcode, a: &LaneSum, b: &LaneSum, c: &LaneSum, lanes: u32) -> Option<Combined> {
    // What is the same in all lanes may be added later.
    let plus_c = |value: Combined| match value {
        Combined::Sum { known, rest } => Combined::Sum { known: known.plus(c), rest },
        opaque => opaque,
    };
    let or_c = |value: Combined| match value {
        Combined::Sum { known, rest: None } => known.bitwise(c, |a, b| a | b).map(Combined::from),
        Combined::Sum { known, rest: Some(zeros) } if known.is_uniform() && c.is_uniform() => {
            Some(Combined::same_in_all(zeros.min(known.low_zeros()).min(c.low_zeros())))
        }
        // Its lowest bits are free.
        Combined::Sum { known, rest: Some(zeros) } if known.constant() == Some(0) && c.is_below(zeros) => {
            Some(Combined::Sum { known: c.clone(), rest: Some(zeros) })
        }
        Combined::Sum { .. } => None,
        opaque => Some(opaque),
    };
    let exactly = |function: fn(u32, u32, u32) -> u32| {
        (a.is_known() && b.is_known() && c.is_known()).then(|| {
            let (a, b, c) = (&a.offsets, &b.offsets, &c.offsets);
            let lanes =
                (0..lanes as usize).map(|lane| [a.lane(lane), b.lane(lane), c.lane(lane)].map(i32::cast_unsigned));
            Combined::from(LaneSum::lanes(lanes.map(|[a, b, c]| function(a, b, c).cast_signed())))
        })
    };
    match opcode {
        O::V_ADD3_U32 => sum(a.plus(b).plus(c)),
        O::V_LSHL_ADD_U32 => Some(plus_c(left(a, b))),
        O::V_LSHL_ADD_U64 => left_64(a, b).map(plus_c),
        O::V_ADD_LSHL_U32 => Some(left(&a.plus(b), c)),
        O::V_MAD_U32_U24
        | O::V_MAD_I32_I24
        | O::V_MAD_U64_U32
        | O::V_MAD_I64_I32
        | O::V_MAD_CO_U64_U32
        | O::V_MAD_CO_I64_I32 => Some(plus_c(product(a, b))),
        O::V_OR3_B32 => or_c(a.bitwise(b, |a, b| a | b)?.into()),
        O::V_XOR3_B32 => sum(a.bitwise(b, |a, b| a ^ b)?.bitwise(c, |a, b| a ^ b)?),
        O::V_LSHL_OR_B32 => or_c(left(a, b)),
        O::V_AND_OR_B32 => or_c(and(a, b)?),
        O::V_XAD_U32 => sum(a.bitwise(b, |a, b| a ^ b)?.plus(c)),
        O::V_BFE_U32 => {
            let (from, bits) = b.constant().zip(c.constant())?;
            field(a, from.cast_unsigned() & SHIFT, bits.cast_unsigned() & SHIFT)
        }
        O::V_BFI_B32 => exactly(|mask, a, b| mask & a | !mask & b),
        O::V_ALIGNBIT_B32 => exactly(|high, low, by| ((u64::from(high) << 32 | u64::from(low)) >> (by & SHIFT)) as u32),
        O::V_CNDMASK_B32 => Some(either(a, b)),
        _ => None,
    }
}

/// One or the other, by lane.
fn either(a: &LaneSum, b: &LaneSum) -> Combined {
    if a == b { a.clone().into() } else { Combined::Opaque(Opaque::Paths) }
}

/// `a << by`, of which the lowest five bits count.
fn left(a: &LaneSum, by: &LaneSum) -> Combined {
    match by.constant() {
        Some(by) => a.by(1_i32.wrapping_shl(by.cast_unsigned() & SHIFT)).into(),
        None => match a.exactly(by, |a, by| a.wrapping_shl(by & SHIFT)) {
            Some(known) => known.into(),
            // Whatever it is, it is a product.
            None if a.is_uniform() && by.is_uniform() => Combined::same_in_all(a.low_zeros()),
            None => Combined::Opaque(Opaque::Stride),
        },
    }
}

/// The lower half of `a << by` of 64-bit integers.
fn left_64(a: &LaneSum, by: &LaneSum) -> Option<Combined> {
    let number = by.constant().map(|by| by.cast_unsigned() & SHIFT_64);
    if number.is_none() && !(a.is_uniform() && by.is_uniform()) {
        return Some(Combined::Opaque(Opaque::Stride));
    }
    Some(match number {
        Some(number) if number > SHIFT => LaneSum::number(0).into(),
        _ => left(a, by),
    })
}

fn right(a: &LaneSum, by: &LaneSum, signed: bool) -> Option<Combined> {
    a.right(by.constant()?.cast_unsigned() & SHIFT, signed).map(Combined::from)
}

/// The bits from one on, so many.
fn field(a: &LaneSum, from: u32, bits: u32) -> Option<Combined> {
    let mask = u32::MAX.checked_shr(u32::BITS - bits.min(u32::BITS)).unwrap_or(0);
    // First what is not known is cut off, if it is above.
    match a.masked(mask << from) {
        Some(masked) => masked.right(from, false).map(Combined::from),
        None => a.right(from, false)?.masked(mask).map(Combined::from),
    }
}

fn and(a: &LaneSum, b: &LaneSum) -> Option<Combined> {
    if let Some(known) = a.exactly(b, |a, b| a & b) {
        return Some(known.into());
    }
    let masked = |value: &LaneSum, mask: &LaneSum| value.masked(mask.constant()?.cast_unsigned());
    masked(a, b).or_else(|| masked(b, a)).map(Combined::from)
}

fn product(a: &LaneSum, b: &LaneSum) -> Combined {
    match a.product(b) {
        Some((known, rest)) => Combined::Sum { known, rest },
        None => Combined::Opaque(Opaque::Stride),
    }
}
