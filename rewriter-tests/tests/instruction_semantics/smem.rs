//! Scalar memory: loads, stores and atomics at scalar addresses.

use wavetap::isa::{Encoding, Inst, Modifier, Operand, Role, Target, Variant};

use super::access::{self, Access};
use super::choose::Wishes;
use super::definition::Definition;
use super::memory;
use super::random::Random;
use super::scalars;
use super::state::State;

fn of_name(name: &str) -> Option<(Access, bool, usize)> {
    let (what, buffer) = match (name.strip_prefix("s_buffer_"), name.strip_prefix("s_scratch_")) {
        (Some(what), _) => (what, true),
        (_, Some(what)) => (what, false),
        _ => (name.strip_prefix("s_")?, false),
    };
    let dwords = match what.strip_prefix("load_").or_else(|| what.strip_prefix("store_")) {
        Some("dword" | "b32") => 1,
        Some("dwordx2" | "b64") => 2,
        Some("dwordx3" | "b96") => 3,
        Some("dwordx4" | "b128") => 4,
        Some("dwordx8" | "b256") => 8,
        Some("dwordx16" | "b512") => 16,
        Some("i8" | "u8" | "i16" | "u16") => 1,
        Some(_) => return None,
        None => 0,
    };
    let access = match dwords {
        0 if what.starts_with("atomic_") => access::parse(what)?,
        0 => return None,
        _ if ["load_i8", "load_u8"].contains(&what) => Access::Load { bytes: 1, signed: what == "load_i8", part: None },
        _ if ["load_i16", "load_u16"].contains(&what) => {
            Access::Load { bytes: 2, signed: what == "load_i16", part: None }
        }
        _ if what.starts_with("load_") => Access::Load { bytes: 4 * dwords, signed: false, part: None },
        _ => Access::Store { bytes: 4 * dwords, high: false },
    };
    Some((access, buffer, dwords))
}

fn scalar_at(inst: &Inst, role: Role) -> Option<usize> {
    inst.operand(role).and_then(Operand::reg).map(|reg| reg.first.into())
}

/// Where the base may be below the data.
const FIRST: u64 = 1024;

/// Whether the offset in a register counts 64 bytes: dwords of 16 lanes of private memory.
fn in_units(inst: &Inst) -> bool {
    inst.name().starts_with("s_scratch_")
}

fn prepare(inst: &Inst, state: &mut State, random: &mut Random) {
    let Some((_, buffer, _)) = of_name(inst.name()) else { return };
    let Some(base) = scalar_at(inst, Role::Sbase) else { return };
    let at = state.address + FIRST + random.below(64) * 8;
    state.sgpr[base] = at as u32;
    state.sgpr[base + 1] = (at >> 32) as u32;
    if let Some(soffset) = scalar_at(inst, Role::Soffset)
        && (16..100).contains(&soffset)
    {
        state.sgpr[soffset] = if in_units(inst) { random.below(16) as u32 } else { random.below(64) as u32 * 8 };
    }
    if buffer {
        // Bytes, or records of 16; some end within the access.
        // Of a stride gfx1250's guide says two things.
        let stride = if random.one_in(2) && !memory::is_wide(state.target) { 16 } else { 0 };
        let bytes = if random.one_in(3) { 4 * random.below(160) } else { 2048 };
        let records = if stride == 0 { bytes } else { bytes / 16 };
        state.sgpr[base..base + 4].copy_from_slice(&memory::descriptor(state.target, at, stride, records, 0));
    }
}

fn execute(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let (access, buffer, _) = of_name(inst.name())?;
    let base = scalar_at(inst, Role::Sbase).filter(|code| (16..100).contains(code))?;
    let soffset = match inst.operand(Role::Soffset) {
        Some(operand) if operand.reg().is_some_and(|reg| !(16..100).contains(&reg.first)) => return None,
        Some(operand) => scalars::source(state, operand)?,
        None => 0,
    };
    let offset = i64::from(inst.modifiers.offset) as u64;
    let offset = offset.wrapping_add(if in_units(inst) { 64 * soffset } else { soffset });
    let (start, stride, records) =
        if buffer { memory::resource_at(state, base) } else { (state.pair(base), 0, u64::MAX) };
    let at = start.wrapping_add(offset).wrapping_sub(state.address) as usize;
    let bytes = match access {
        Access::Load { bytes, .. } | Access::Store { bytes, .. } | Access::Atomic { bytes, .. } => bytes,
    };
    let align = if bytes == 12 { 4 } else { bytes.min(8) };
    if at + bytes > state.memory.len() || !at.is_multiple_of(align) {
        return None;
    }
    let limit = if buffer { records * stride.max(1) } else { u64::MAX };
    let inside = |byte: usize| offset + byte as u64 + bytes.min(4) as u64 <= limit;
    let first =
        scalar_at(inst, Role::Sdst).or_else(|| scalar_at(inst, Role::Sdata)).filter(|code| (16..100).contains(code))?;
    match access {
        Access::Load { signed, .. } if bytes < 4 => {
            let raw = access::number(&state.memory[at..at + bytes]);
            let shift = 64 - 8 * bytes as u32;
            let value = if signed { (raw << shift) as i64 >> shift } else { raw as i64 };
            state.sgpr[first] = if inside(0) { value as u32 } else { 0 };
        }
        Access::Load { .. } => {
            for n in 0..bytes / 4 {
                let word = access::number(&state.memory[at + 4 * n..at + 4 * n + 4]) as u32;
                state.sgpr[first + n] = if inside(4 * n) { word } else { 0 };
            }
        }
        Access::Store { .. } => {
            for n in (0..bytes / 4).filter(|n| inside(4 * n)) {
                let word = state.sgpr[first + n];
                state.memory[at + 4 * n..at + 4 * n + 4].copy_from_slice(&word.to_le_bytes());
            }
        }
        Access::Atomic { operation, .. } => {
            if !inside(bytes - 4) {
                return None;
            }
            let value =
                |state: &State, n: usize| if bytes == 8 { state.pair(first + n) } else { state.sgpr[first + n].into() };
            let (data, second) = (value(state, 0), if operation.has_second() { value(state, bytes / 4) } else { 0 });
            let old = access::number(&state.memory[at..at + bytes]);
            state.memory[at..at + bytes]
                .copy_from_slice(&operation.apply(bytes, old, data, second).to_le_bytes()[..bytes]);
            if inst.modifiers.glc {
                state.sgpr[first] = old as u32;
                if bytes == 8 {
                    state.sgpr[first + 1] = (old >> 32) as u32;
                }
            }
        }
    }
    Some(())
}

/// The definition of a scalar memory operation.
pub fn definition(variant: &Variant) -> Option<Definition> {
    if variant.encoding != Encoding::Smem {
        return None;
    }
    of_name(variant.name)?;
    let modifier: fn(&mut Random, Modifier) -> Option<u64> = |random, modifier| match modifier {
        Modifier::Offset => Some(random.below(64) * 8),
        _ => None,
    };
    let wishes = Wishes { apart: true, no_float_constants: true, no_literals: true, ..Wishes::default() };
    Some(Definition {
        wishes,
        prepare: Some(prepare),
        modifier: Some(modifier),
        memory: true,
        ..Definition::whole(execute)
    })
}
