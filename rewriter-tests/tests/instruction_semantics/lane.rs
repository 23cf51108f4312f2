//! What vector instructions have in common: where sources come from, how modifiers change them, and where results go.

use wavetap::isa::{Encoding, Inst, Operand, RegFile, Role, Target, Value, scalar};

use super::number::{self, Env};
use super::random::Bits;
use super::state::{Loose, Place, State};

/// The type of a source or result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum T {
    U16,
    F16,
    U32,
    F32,
    U64,
    F64,
    /// Bits on whose sign bit the modifiers act, but which are never flushed.
    B16,
    B32,
    B64,
    /// A bfloat16 number.
    Brain,
    /// Two of 16 bits, which the definition takes apart.
    P16,
    H16,
    /// One bit of a scalar for each lane.
    Mask,
}

impl T {
    pub fn wide(self) -> bool {
        matches!(self, T::U64 | T::F64 | T::B64)
    }

    pub fn narrow(self) -> bool {
        matches!(self, T::U16 | T::F16 | T::B16 | T::Brain)
    }

    pub fn bits(self) -> Bits {
        match self {
            T::U16 => Bits::Word16,
            T::F16 | T::B16 => Bits::Half,
            T::Brain => Bits::Brain,
            T::U32 | T::Mask => Bits::Word32,
            T::F32 | T::B32 => Bits::Single,
            T::U64 => Bits::Word64,
            T::F64 | T::B64 => Bits::Double,
            T::P16 => Bits::Pair16,
            T::H16 => Bits::PairHalf,
        }
    }
}

/// What a vector instruction computes of the sources of one lane.
#[derive(Clone, Copy)]
pub struct Lane {
    pub dst: T,
    pub src: &'static [T],
    pub f: fn(&Env, &[u64]) -> u64,
    /// How exactly the hardware is documented.
    pub loose: Option<Loose>,
    /// Also gives a bit of each lane, as bit 64 of the result would be.
    pub carry: Option<fn(&Env, &[u64]) -> bool>,
}

/// The bits of a constant.
fn constant(value: Value, ty: T) -> Option<u64> {
    const FLOATS: [f64; 8] = [0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0];
    let by_width = |narrow: u64, single: u64, wide: u64| match ty {
        _ if ty.wide() => wide,
        _ if ty.narrow() || ty == T::H16 => narrow,
        _ => single,
    };
    Some(match value {
        Value::InlineInt(n) => by_width(n as i16 as u16 as u64, n as i32 as u32 as u64, n as i64 as u64),
        Value::InlineFloat(248) if ty == T::Brain => 0x3e22,
        Value::InlineFloat(code) if ty == T::Brain => {
            u64::from((FLOATS[usize::from(code) - 240] as f32).to_bits() >> 16)
        }
        Value::InlineFloat(248) => by_width(0x3118, 0x3e22_f983, 0x3fc4_5f30_6dc9_c882),
        Value::InlineFloat(code) => {
            let value = FLOATS[usize::from(code) - 240];
            by_width(number::half_of(value), (value as f32).to_bits().into(), value.to_bits())
        }
        Value::Literal64(bits) => bits,
        Value::Literal(bits) if ty == T::F64 || ty == T::B64 => u64::from(bits) << 32,
        Value::Literal(bits) if ty.narrow() => u64::from(bits & 0xffff),
        Value::Literal(bits) => bits.into(),
        Value::Imm(value) => value as u64,
        _ => return None,
    })
}

/// A scalar register or read-only code, by its canonical code.
pub fn scalar_value(state: &State, code: u16) -> Option<u32> {
    Some(match code {
        scalar::NULL => 0,
        0..128 => state.sgpr[usize::from(code)],
        scalar::VCCZ => u32::from(state.mask(106) == 0),
        scalar::EXECZ => u32::from(state.exec() == 0),
        scalar::SCC => u32::from(state.scc),
        _ => return None,
    })
}

/// An operand in every lane, without modifiers.
pub fn read(state: &State, operand: &Operand, ty: T) -> Option<[u64; 64]> {
    let Value::Reg(reg) = operand.value else { return constant(operand.value, ty).map(|bits| [bits; 64]) };
    let first = usize::from(reg.first);
    let rows = match reg.file {
        RegFile::Vector => &state.vgpr,
        RegFile::Accum => &state.agpr,
        RegFile::Scalar if ty == T::Mask => {
            let mask = state.mask(first);
            return Some(std::array::from_fn(|lane| mask >> lane & 1));
        }
        RegFile::Scalar => {
            let low = scalar_value(state, reg.first)?;
            let high = if ty.wide() && reg.first != scalar::NULL { scalar_value(state, reg.first + 1)? } else { 0 };
            return Some([u64::from(low) | u64::from(high) << 32; 64]);
        }
    };
    Some(std::array::from_fn(|lane| {
        let low = u64::from(rows[first][lane]);
        if ty.wide() { low | u64::from(rows[first + 1][lane]) << 32 } else { low }
    }))
}

/// The operands that are the sources, in the order the definition takes them; none: VCC.
pub fn sources(inst: &Inst, src: &[T]) -> Vec<Option<Operand>> {
    let name = inst.name();
    let by_role = |role: Role| inst.operand(role).copied();
    let order: [Role; 3] = if name.starts_with("v_madmk") || name.starts_with("v_fmamk") {
        [Role::Src0, Role::Imm, Role::Src1]
    } else if name.starts_with("v_madak") || name.starts_with("v_fmaak") {
        [Role::Src0, Role::Src1, Role::Imm]
    } else {
        [Role::Src0, Role::Src1, Role::Src2]
    };
    src.iter()
        .enumerate()
        .map(|(at, ty)| match order.get(at).and_then(|role| by_role(*role)) {
            Some(operand) => Some(operand),
            None if *ty == T::Mask => None,
            // The destination is the last source.
            None => by_role(Role::Vdst),
        })
        .collect()
}

/// The lane that each lane reads with DPP, if any, and whether a lane is written.
pub fn dpp(inst: &Inst, state: &State, target: Target) -> Option<Vec<(Option<usize>, bool)>> {
    if let Some(select) = inst.modifiers.dpp8 {
        let fetch_inactive = inst.modifiers.dpp8_fi == 2;
        return Some(
            (0..state.lanes)
                .map(|lane| {
                    let from = (lane & !7) + (select >> (3 * (lane & 7)) & 7) as usize;
                    (Some(from).filter(|&from| fetch_inactive || state.is_active(from)), true)
                })
                .collect(),
        );
    }
    let dpp = inst.modifiers.dpp?;
    let control = usize::from(dpp.ctrl);
    let n = control & 15;
    Some(
        (0..state.lanes)
            .map(|lane| {
                let (row, at) = (lane & !15, lane & 15);
                let last = state.lanes - 1;
                let from = match control {
                    0..=0xff => Some((lane & !3) + (control >> (2 * (lane & 3)) & 3)),
                    0x101..=0x10f => (at + n <= 15).then_some(lane + n),
                    0x111..=0x11f => (at >= n).then(|| lane - n),
                    0x121..=0x12f => Some(row + (at + 16 - n) % 16),
                    0x130 => (lane < last).then_some(lane + 1),
                    0x134 => Some(if lane < last { lane + 1 } else { 0 }),
                    0x138 => lane.checked_sub(1),
                    0x13c => Some(if lane > 0 { lane - 1 } else { last }),
                    0x140 => Some(row + 15 - at),
                    0x141 => Some((lane & !7) + 7 - (lane & 7)),
                    // The last lane of the row before, and of the half before.
                    0x142 => row.checked_sub(1),
                    0x143 => (lane & !31).checked_sub(1),
                    0x150..=0x15f => Some(row + n),
                    0x160..=0x16f => Some(row + (at ^ n)),
                    _ => None,
                };
                let _ = target;
                let from = from.filter(|&from| dpp.fetch_inactive || state.is_active(from));
                let chosen = dpp.row_mask >> (lane / 16) & 1 != 0 && dpp.bank_mask >> (lane / 4 % 4) & 1 != 0;
                (from, chosen && (from.is_some() || dpp.bound_ctrl))
            })
            .collect(),
    )
}

fn select(value: u64, select: u8, extend: bool) -> u64 {
    let bits = value as u32;
    u64::from(match select {
        0..=3 if extend => bits.to_le_bytes()[usize::from(select)] as i8 as u32,
        0..=3 => bits.to_le_bytes()[usize::from(select)].into(),
        4 if extend => bits as i16 as u32,
        4 => bits & 0xffff,
        5 if extend => (bits as i32 >> 16) as u32,
        5 => bits >> 16,
        _ => bits,
    })
}

/// The sources of every lane with all modifiers, and the lanes that are written.
pub fn gather(inst: &Inst, state: &State, target: Target, env: &Env, src: &[T]) -> Option<(Vec<[u64; 64]>, u64)> {
    let m = &inst.modifiers;
    let mut written = state.exec();
    let mut all = Vec::new();
    for (at, (operand, &ty)) in sources(inst, src).into_iter().zip(src).enumerate() {
        let mut values = match operand {
            Some(operand) => read(state, &operand, ty)?,
            None => std::array::from_fn(|lane| state.mask(106) >> lane & 1),
        };
        let explicit = operand.is_some_and(|operand| matches!(operand.role, Role::Src0 | Role::Src1 | Role::Src2));
        if ty == T::Mask {
            all.push(values);
            continue;
        }
        if at == 0
            && let Some(plan) = dpp(inst, state, target)
        {
            let old = values;
            for (lane, (from, write)) in plan.into_iter().enumerate() {
                values[lane] = from.map_or(0, |from| old[from]);
                if !write {
                    written &= !(1 << lane);
                }
            }
        }
        for value in &mut values {
            if explicit {
                match (&m.sdwa, at) {
                    (Some(sdwa), 0) => *value = select(*value, sdwa.src0_sel, sdwa.src0_sext),
                    (Some(sdwa), 1) => *value = select(*value, sdwa.src1_sel, sdwa.src1_sext),
                    // What the other half of a constant is, is not documented.
                    _ if ty.narrow()
                        && m.op_sel >> at & 1 != 0
                        && operand.is_some_and(|operand| operand.reg().is_none()) =>
                    {
                        return None;
                    }
                    _ if ty.narrow() && m.op_sel >> at & 1 != 0 => *value >>= 16,
                    _ => {}
                }
            } else if ty.narrow() && m.op_sel & 8 != 0 {
                // The destination as a source is the half that is written (LLVM ties the two).
                *value >>= 16;
            }
            if ty.narrow() {
                *value &= 0xffff;
            }
            let sign = match ty {
                T::F16 | T::B16 | T::Brain => 1 << 15,
                T::F32 | T::B32 => 1 << 31,
                T::F64 | T::B64 => 1 << 63,
                _ => 0,
            };
            if explicit && m.abs >> at & 1 != 0 {
                *value &= !sign;
            }
            if explicit && m.neg >> at & 1 != 0 {
                *value ^= sign;
            }
            *value = env.flush_in(ty, *value);
        }
        all.push(values);
    }
    Some((all, written))
}

/// Whether a 16-bit result leaves the high half of its register: gfx8 and most operations of gfx9 clear it.
fn keeps_high(name: &str, generation: u32) -> bool {
    const ON_GFX9: [&str; 19] = [
        "v_add_i16",
        "v_sub_i16",
        "v_mad_f16",
        "v_mad_u16",
        "v_mad_i16",
        "v_fma_f16",
        "v_div_fixup_f16",
        "v_min3_f16",
        "v_max3_f16",
        "v_med3_f16",
        "v_min3_i16",
        "v_max3_i16",
        "v_med3_i16",
        "v_min3_u16",
        "v_max3_u16",
        "v_med3_u16",
        "v_ashr_pk_i8_i32",
        "v_ashr_pk_u8_i32",
        "v_bitop3_b16",
    ];
    generation >= 10
        || generation == 9
            && (ON_GFX9.contains(&name) || matches!(name, "v_mac_f16" | "v_madak_f16" | "v_madmk_f16" | "v_fmac_f16"))
}

/// A fact of the target by its name in the tables.
pub fn fact(target: Target, name: &str) -> u32 {
    target.facts().find(|fact| fact.0 == name).and_then(|fact| fact.1.parse().ok()).unwrap_or(0)
}

/// The register of a lane with a new result in it.
pub fn place(inst: &Inst, target: Target, ty: T, old: u32, new: u64) -> u32 {
    let new32 = if ty.narrow() { new as u32 & 0xffff } else { new as u32 };
    if let Some(sdwa) = inst.modifiers.sdwa {
        let (shift, width) = match sdwa.dst_sel {
            byte @ 0..=3 => (8 * u32::from(byte), 8),
            word @ 4..=5 => (16 * u32::from(word - 4), 16),
            _ => (0, 32),
        };
        let field = (u64::MAX >> (64 - width)) << shift;
        let placed = (u64::from(new32) << shift & field) as u32;
        let negative = new32 >> (width - 1) & 1 != 0;
        return match sdwa.dst_unused {
            2 => old & !(field as u32) | placed,
            // The sign fills what is above, zeros what is below.
            1 if negative => placed | !((1_u64 << (shift + width)) - 1) as u32,
            _ => placed,
        };
    }
    if ty.narrow() {
        if inst.modifiers.op_sel & 8 != 0 && inst.variant.encoding != Encoding::Vop3p {
            return old & 0xffff | new32 << 16;
        }
        let keeps = keeps_high(inst.name(), fact(target, "generation"));
        return if keeps { old & 0xffff_0000 | new32 & 0xffff } else { new32 & 0xffff };
    }
    new32
}

/// Writes a result to a lane's vector destination.
pub fn put(inst: &Inst, state: &mut State, target: Target, lane: usize, ty: T, value: u64) -> Option<()> {
    let reg = inst.operand(Role::Vdst)?.reg()?;
    let rows = if reg.file == RegFile::Accum { &mut state.agpr } else { &mut state.vgpr };
    let first = usize::from(reg.first);
    rows[first][lane] = place(inst, target, ty, rows[first][lane], value);
    if ty.wide() {
        rows[first + 1][lane] = (value >> 32) as u32;
    }
    Some(())
}

/// Executes an instruction whose lanes are independent.
pub fn execute(lane_op: &Lane, inst: &Inst, state: &mut State, target: Target) -> Option<()> {
    let env = Env::of(inst, state);
    let (sources, written) = gather(inst, state, target, &env, lane_op.src)?;
    let before = state.clone();
    let mut carries = 0;
    let mut old = [0; 4];
    for lane in (0..before.lanes).filter(|lane| written >> lane & 1 != 0) {
        for (old, source) in old.iter_mut().zip(&sources) {
            *old = source[lane];
        }
        let value = (lane_op.f)(&env, &old[..sources.len()]);
        put(inst, state, target, lane, lane_op.dst, env.finish(lane_op.dst, value))?;
        carries |= lane_op.carry.map_or(0, |carry| u64::from(carry(&env, &old[..sources.len()])) << lane);
    }
    if lane_op.carry.is_some() {
        let to = inst.operand(Role::Sdst).and_then(Operand::reg).map_or(106, |reg| usize::from(reg.first));
        state.set_mask(to, carries);
    }
    let reg = inst.operand(Role::Vdst)?.reg()?;
    let at = if reg.file == RegFile::Accum { Place::Accum(reg.first.into()) } else { Place::Vector(reg.first.into()) };
    let default = match lane_op.dst {
        T::F16 => Some(Loose::Nan16),
        T::F32 => Some(Loose::Nan32),
        T::F64 => Some(Loose::Nan64),
        T::H16 => Some(Loose::NanPair),
        _ => None,
    };
    let narrow_high = inst.modifiers.op_sel & 8 != 0 || inst.modifiers.sdwa.is_some_and(|sdwa| sdwa.dst_sel != 6);
    let loose = lane_op.loose.or(default);
    // What is written to a half that the instruction names, is all documented.
    if let Some(loose) = loose.filter(|loose| *loose != Loose::Low16 || inst.modifiers.op_sel & 8 == 0) {
        let loose = match lane_op.dst {
            T::F16 if narrow_high => Loose::NanPair,
            T::Brain if narrow_high => Loose::NanBrain,
            _ => loose,
        };
        state.loose.push((at, loose));
    }
    Some(())
}
