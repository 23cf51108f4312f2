//! Typed buffers: the numbers in memory have a format, which the instruction or the buffer's descriptor names, and
//! registers have 32 bits.

use wavetap::isa::{Encoding, Inst, Modifier, Operand, Role, Target, Value, Variant};

use super::choose::Wishes;
use super::definition::Definition;
use super::memory;
use super::random::Random;
use super::state::{Loose, Place, State};

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Unorm,
    Snorm,
    Uscaled,
    Sscaled,
    Uint,
    Sint,
    Float,
}
use Kind::{Float, Sint, Snorm, Sscaled, Uint, Unorm, Uscaled};

/// Bits of the components, the first lowest, and what they are.
#[derive(Clone, Copy)]
struct Format {
    widths: &'static [u32],
    kind: Kind,
}

const SCALED: &[Kind] = &[Unorm, Snorm, Uscaled, Sscaled, Uint, Sint];
const ALL: &[Kind] = &[Unorm, Snorm, Uscaled, Sscaled, Uint, Sint, Float];
const WORDS: &[Kind] = &[Uint, Sint, Float];

/// Components of formats in the order of their numbers, with what they may be; two kinds of them differ from generation
/// to generation.
fn order(thirds: &'static [Kind], tens: &'static [Kind]) -> [(&'static [u32], &'static [Kind]); 14] {
    [
        (&[8], SCALED),
        (&[16], ALL),
        (&[8, 8], SCALED),
        (&[32], WORDS),
        (&[16, 16], ALL),
        (&[11, 11, 10], thirds),
        (&[10, 11, 11], thirds),
        (&[2, 10, 10, 10], tens),
        (&[10, 10, 10, 2], SCALED),
        (&[8, 8, 8, 8], SCALED),
        (&[32, 32], WORDS),
        (&[16, 16, 16, 16], ALL),
        (&[32, 32, 32], WORDS),
        (&[32, 32, 32, 32], WORDS),
    ]
}

/// Data formats of gfx8 and gfx9 by number from 1 on.
fn old() -> [(&'static [u32], &'static [Kind]); 14] {
    order(&[Float], SCALED)
}

/// Formats of gfx10 and of gfx11, in the order of their numbers from 1 on (RDNA and RDNA3 ISA guides, "Buffer image
/// formats").
fn unified(generation: u32) -> Vec<Format> {
    let order = if generation == 10 { order(ALL, SCALED) } else { order(&[Float], &[Unorm, Snorm, Uint, Sint]) };
    order.into_iter().flat_map(|(widths, kinds)| kinds.iter().map(move |&kind| Format { widths, kind })).collect()
}

fn of_number(generation: u32, number: u32) -> Option<Format> {
    if generation >= 10 {
        return unified(generation).get((number as usize).checked_sub(1)?).copied();
    }
    let (widths, kinds) = *old().get((number as usize & 15).checked_sub(1)?)?;
    let kind = *[Unorm, Snorm, Uscaled, Sscaled, Uint, Sint, Unorm, Float].get(number as usize >> 4 & 7)?;
    // The sixth is not used.
    (kinds.contains(&kind) && number >> 4 & 7 != 6).then_some(Format { widths, kind })
}

impl Format {
    fn bytes(self) -> usize {
        self.widths.iter().sum::<u32>() as usize / 8
    }

    /// A component as a register has it.
    fn component(self, element: &[u8], n: usize) -> u32 {
        if n >= self.widths.len() {
            return match (n, self.kind) {
                (3, Uint | Sint) => 1,
                (3, _) => 1.0_f32.to_bits(),
                _ => 0,
            };
        }
        let first: u32 = self.widths[..n].iter().sum();
        let width = self.widths[n];
        let raw = (0..width).fold(0_u64, |all, bit| {
            let at = first + bit;
            all | u64::from(element[at as usize / 8] >> (at % 8) & 1) << bit
        });
        let negative = raw >> (width - 1) != 0;
        let signed = raw as i64 - if negative { 1 << width } else { 0 };
        let most = |bits: u32| ((1_u64 << bits) - 1) as f64;
        let single = |value: f64| (value as f32).to_bits();
        match self.kind {
            Uint => raw as u32,
            Sint => signed as u32,
            Uscaled => single(raw as f64),
            Sscaled => single(signed as f64),
            Unorm => single(raw as f64 / most(width)),
            Snorm => single((signed as f64 / most(width - 1)).max(-1.0)),
            Float => match width {
                32 => raw as u32,
                16 => single(super::state::half(raw as u32)),
                // Five bits of exponent and no sign.
                _ => single(super::state::half((raw << (15 - width)) as u32)),
            },
        }
    }
}

fn components(name: &str) -> usize {
    name.rsplit('_').next().map_or(0, str::len)
}

/// The format, and what each component of a result is.
fn format(inst: &Inst, state: &State) -> Option<(Format, [u32; 4])> {
    if inst.variant.encoding == Encoding::Mtbuf {
        let Value::Imm(number) = inst.operand(Role::Format)?.value else { return None };
        return Some((of_number(state.generation, number as u32)?, [4, 5, 6, 7]));
    }
    let word = state.sgpr[usize::from(inst.operand(Role::Srsrc)?.reg()?.first) + 3];
    let number = match state.generation {
        0..=9 => word >> 15 & 15 | (word >> 12 & 7) << 4,
        10 => word >> 12 & 127,
        _ => word >> 12 & 63,
    };
    Some((of_number(state.generation, number)?, [0, 3, 6, 9].map(|at| word >> at & 7)))
}

fn execute(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    // What gfx1250 does with formats is not documented.
    if inst.modifiers.lds || inst.modifiers.tfe || !memory::plain_soffset(inst) || memory::is_wide(state.target) {
        return None;
    }
    let (format, select) = format(inst, state)?;
    let count = components(inst.name());
    let data = usize::from(inst.operand(Role::Vdata)?.reg()?.first);
    let accum = inst.operand(Role::Vdata)?.reg()?.file == wavetap::isa::RegFile::Accum;
    let before = state.clone();
    let stores = inst.name().contains("store");
    // How narrower components are rounded is not documented.
    if stores
        && (format.widths.iter().any(|&width| width != 32) || count < format.widths.len() || select != [4, 5, 6, 7])
    {
        return None;
    }
    for lane in (0..before.lanes).filter(|lane| before.is_active(*lane)) {
        let at = memory::buffer(inst, &before, lane, format.bytes())??;
        if at + format.bytes() > before.memory.len() {
            return None;
        }
        let rows = if accum { &mut state.agpr } else { &mut state.vgpr };
        if stores {
            for n in 0..format.widths.len() {
                state.memory[at + 4 * n..at + 4 * n + 4].copy_from_slice(&rows[data + n][lane].to_le_bytes());
            }
            continue;
        }
        let element = &before.memory[at..at + format.bytes()];
        for (n, select) in select.into_iter().enumerate().take(count) {
            rows[data + n][lane] = match select {
                0 => 0,
                // One, in the way of the format.
                1 if matches!(format.kind, Uint | Sint) => 1,
                1 => 1.0_f32.to_bits(),
                from => format.component(element, from as usize - 4),
            };
        }
    }
    if !stores && matches!(format.kind, Unorm | Snorm | Float) {
        let place = |n: usize| if accum { Place::Accum(n) } else { Place::Vector(n) };
        state.loose.extend((0..count).map(|n| (place(data + n), Loose::Ulp32(u32::from(format.kind != Float)))));
    }
    Some(())
}

/// A number of a format.
fn any(generation: u32, random: &mut Random, words: bool) -> u32 {
    loop {
        let number = random.below(128) as u32;
        if of_number(generation, number).is_some_and(|format| !words || format.widths.iter().all(|&width| width == 32))
        {
            return number;
        }
    }
}

fn prepare(inst: &Inst, state: &mut State, random: &mut Random) {
    let first_lane = random.below(state.lanes as u64);
    memory::prepare_buffer(inst, state, random, 16, first_lane, true);
    let Some(resource) = inst.operand(Role::Srsrc).and_then(Operand::reg) else { return };
    let stores = inst.name().contains("store");
    let number = any(state.generation, random, stores);
    let format = if state.generation >= 10 { number << 12 } else { (number & 15) << 15 | (number >> 4) << 12 };
    let select = |random: &mut Random, n: u32| if stores { 4 + n } else { random.pick(&[0, 1, 4, 5, 6, 7]) };
    let selects = (0..4).fold(0, |all, n| all | select(random, n) << (3 * n));
    let word = &mut state.sgpr[usize::from(resource.first) + 3];
    *word = *word & !0x7_ffff | format | selects;
}

/// The definition of an access to a typed buffer.
pub fn definition(variant: &Variant) -> Option<Definition> {
    let name = variant.name;
    let parts = name.strip_prefix('t').unwrap_or(name).strip_prefix("buffer_")?;
    let parts = parts.strip_prefix("load_format_").or_else(|| parts.strip_prefix("store_format_"))?;
    if !["x", "xy", "xyz", "xyzw"].contains(&parts) {
        return None;
    }
    let modifier: fn(&mut Random, Modifier) -> Option<u64> =
        |random, modifier| (modifier == Modifier::Offset).then(|| random.below(3) * 16);
    let any: fn(&mut Random, Role) -> Option<u64> = |random, role| (role == Role::Format).then(|| random.below(128));
    // Those of 32-bit components of each generation.
    let words: fn(&mut Random, Role) -> Option<u64> = |random, role| {
        const ALL: [u64; 21] = [
            20,
            21,
            22,
            48,
            50,
            58,
            60,
            61,
            63,
            62,
            64,
            72,
            74,
            75,
            77,
            4 | 4 << 4,
            4 | 7 << 4,
            11 | 5 << 4,
            13 | 4 << 4,
            14 | 7 << 4,
            14 | 4 << 4,
        ];
        (role == Role::Format).then(|| random.pick(&ALL))
    };
    let operand = if name.contains("store") { words } else { any };
    let wishes = Wishes { apart: true, no_float_constants: true, no_literals: true, ..Wishes::default() };
    Some(Definition {
        wishes,
        prepare: Some(prepare),
        modifier: Some(modifier),
        operand: Some(operand),
        memory: true,
        ..Definition::whole(execute)
    })
}
