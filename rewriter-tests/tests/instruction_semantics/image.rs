//! Images: what descriptors say, which texels coordinates mean, and what loads, samples, stores and atomics make of
//! them. Written from the ISA guides' fields.

use wavetap::isa::{Encoding, Inst, Modifier, Operand, Reg, RegFile, Role, Target, Value, Variant};

use super::access::{self, Access};
use super::choose::Wishes;
use super::definition::Definition;
use super::random::Random;
use super::state::{Loose, Place, Row, State, half};

/// Bytes of a row: what every generation aligns rows to.
const ROW: usize = 256;
/// The base is a multiple of this.
const ALIGN: u64 = 256;

/// What components are.
#[derive(Clone, Copy, PartialEq)]
enum Number {
    Unsigned,
    Signed,
    Fraction,
    SignedFraction,
    Half,
    Single,
}

/// Number since gfx10, data format and number format before, widths of a component, components, what they are.
const FORMATS: [(u32, u32, u32, usize, usize, Number); 8] = [
    (5, 1, 4, 8, 1, Number::Unsigned),
    (13, 2, 7, 16, 1, Number::Half),
    (15, 3, 1, 8, 2, Number::SignedFraction),
    (20, 4, 4, 32, 1, Number::Unsigned),
    (21, 4, 5, 32, 1, Number::Signed),
    (22, 4, 7, 32, 1, Number::Single),
    (23, 5, 0, 16, 2, Number::Fraction),
    (28, 5, 5, 16, 2, Number::Signed),
];

/// An image, put together again from the bits of its descriptor.
struct Picture {
    base: usize,
    format: usize,
    select: [u32; 4],
    kind: u32,
    size: [i64; 3],
}

/// Coordinates of texels, slices not counted.
fn axes(kind: u32) -> usize {
    match kind {
        8 | 12 => 1,
        9 | 13 => 2,
        _ => 3,
    }
}

fn is_array(kind: u32) -> bool {
    kind >= 12
}

fn bits(words: &[u32], low: usize, width: usize) -> u64 {
    (0..width).fold(0, |all, n| all | u64::from(words[(low + n) / 32] >> ((low + n) % 32) & 1) << n)
}

fn put(words: &mut [u32], low: usize, width: usize, value: u64) {
    for n in 0..width {
        let bit = 1 << ((low + n) % 32);
        let word = &mut words[(low + n) / 32];
        *word = *word & !bit | if value >> n & 1 != 0 { bit } else { 0 };
    }
}

/// Low bits and widths of width, height, format, depth, pitch (width 0: there is none) and last slice.
fn places(target: Target) -> [(usize, usize); 6] {
    match target.name() {
        name if name.starts_with("gfx8") => [(64, 14), (78, 14), (52, 10), (128, 13), (141, 14), (173, 13)],
        name if name.starts_with("gfx9") => [(64, 14), (78, 14), (52, 10), (128, 13), (141, 16), (128, 13)],
        name if name.starts_with("gfx101") => [(62, 14), (78, 14), (52, 9), (128, 13), (0, 0), (128, 13)],
        name if name.starts_with("gfx103") => [(62, 14), (78, 14), (52, 9), (128, 13), (128, 14), (128, 13)],
        name if name.starts_with("gfx11") => [(62, 14), (78, 14), (52, 8), (128, 13), (128, 14), (128, 13)],
        _ => [(62, 16), (78, 16), (49, 8), (128, 14), (128, 16), (128, 14)],
    }
}

fn old_format(target: Target) -> bool {
    target.generation() < 10
}

fn scalars(inst: &Inst, role: Role) -> Option<usize> {
    inst.operand(role).and_then(Operand::reg).map(|reg| usize::from(reg.first))
}

fn picture(inst: &Inst, state: &State, target: Target) -> Option<Picture> {
    let first = scalars(inst, Role::Srsrc)?;
    let words = &state.sgpr[first..first + 8];
    let [width, height, format, depth, _, last] = places(target);
    let field = |(low, width): (usize, usize)| bits(words, low, width) as u32;
    let kind = field((124, 4));
    let number = field(format);
    let found = FORMATS
        .iter()
        .position(|known| if old_format(target) { known.1 | known.2 << 6 == number } else { known.0 == number });
    let slices = if is_array(kind) {
        field(last) + 1
    } else if kind == 10 {
        field(depth) + 1
    } else {
        1
    };
    Some(Picture {
        base: ((bits(words, 0, 40) << 8) - state.address) as usize,
        format: found?,
        select: std::array::from_fn(|n| field((96 + 3 * n, 3))),
        kind,
        size: [
            i64::from(field(width)) + 1,
            if axes(kind) == 1 { 1 } else { i64::from(field(height)) + 1 },
            i64::from(slices),
        ],
    })
}

impl Picture {
    fn bytes(&self) -> usize {
        FORMATS[self.format].3 / 8 * FORMATS[self.format].4
    }

    fn place(&self, at: [i64; 3]) -> Option<usize> {
        let inside = (0..3).all(|n| at[n] >= 0 && at[n] < self.size[n]);
        inside.then(|| {
            self.base + (at[2] as usize * self.size[1] as usize + at[1] as usize) * ROW + at[0] as usize * self.bytes()
        })
    }

    /// A component of memory as a register has it, and as a number; 0 for the border.
    fn component(&self, memory: &[u8], place: Option<usize>, n: usize) -> (u32, f64) {
        let (.., width, count, number) = FORMATS[self.format];
        let (Some(at), true) = (place, n < count) else { return (0, 0.0) };
        let raw = access::number(&memory[at + n * width / 8..at + (n + 1) * width / 8]);
        let signed = (raw << (64 - width)) as i64 >> (64 - width);
        let float = match number {
            Number::Unsigned => return (raw as u32, f64::NAN),
            Number::Signed => return (signed as u32, f64::NAN),
            Number::Single => f32::from_bits(raw as u32),
            Number::Fraction => (raw as f64 / ((1_u64 << width) - 1) as f64) as f32,
            Number::SignedFraction => (signed as f64 / ((1_u64 << (width - 1)) - 1) as f64).max(-1.0) as f32,
            Number::Half => half(raw as u32) as f32,
        };
        (float.to_bits(), float.into())
    }

    /// A component of a result.
    fn selected(&self, n: usize, memory: impl Fn(usize) -> u32) -> u32 {
        match self.select[n] {
            0 => 0,
            from => memory(from as usize - 4),
        }
    }
}

/// The registers of a kind.
fn rows(state: &mut State, file: RegFile) -> &mut Vec<Row> {
    if file == RegFile::Accum { &mut state.agpr } else { &mut state.vgpr }
}

fn data_of(inst: &Inst) -> Option<Reg> {
    inst.operand(Role::Vdata).and_then(Operand::reg)
}

/// The words of an address, one after the other.
fn address(inst: &Inst, state: &State, lane: usize) -> Vec<u32> {
    let registers = inst.operands.iter().filter(|operand| operand.role.is_address()).filter_map(Operand::reg);
    registers
        .flat_map(|reg| (reg.first..reg.first + u16::from(reg.dwords)).map(|n| state.vgpr[usize::from(n)][lane]))
        .collect()
}

fn set_address(inst: &Inst, state: &mut State, lane: usize, words: &[u32]) {
    let registers: Vec<usize> = inst
        .operands
        .iter()
        .filter(|operand| operand.role.is_address())
        .filter_map(Operand::reg)
        .flat_map(|reg| usize::from(reg.first)..usize::from(reg.first) + usize::from(reg.dwords))
        .collect();
    for (register, word) in registers.into_iter().zip(words) {
        state.vgpr[register][lane] = *word;
    }
}

/// The words after `image_sample` or `image_gather4`.
fn has(inst: &Inst, word: &str) -> bool {
    inst.name().split('_').skip(2).any(|part| part == word)
}

fn is_sample(name: &str) -> bool {
    name.starts_with("image_sample") || name.starts_with("image_gather4")
}

/// Words before the coordinates.
fn before(inst: &Inst, kind: u32) -> usize {
    let gradients = match (has(inst, "d") || has(inst, "cd"), has(inst, "g16")) {
        (false, _) => 0,
        (true, false) => 2 * axes(kind),
        (true, true) => 2 * axes(kind).div_ceil(2),
    };
    usize::from(has(inst, "o")) + usize::from(has(inst, "b")) + gradients
}

/// A lane's coordinates as they are in the address.
fn coordinates(inst: &Inst, state: &State, lane: usize, kind: u32) -> Vec<u32> {
    let words = address(inst, state, lane);
    let first = before(inst, kind);
    let count = axes(kind) + usize::from(is_array(kind));
    (0..count)
        .map(|n| if inst.modifiers.a16 { words[first + n / 2] >> (16 * (n % 2)) & 0xffff } else { words[first + n] })
        .collect()
}

fn with_slice(kind: u32, coordinates: &[i64]) -> [i64; 3] {
    let mut at = [0; 3];
    at[..axes(kind)].copy_from_slice(&coordinates[..axes(kind)]);
    if is_array(kind) {
        at[2] = coordinates[axes(kind)];
    }
    at
}

fn kind(inst: &Inst, state: &State, random: &mut Random) -> u32 {
    let flat = inst.name().starts_with("image_gather4");
    if old_format(state.target) {
        return match (inst.modifiers.da, flat) {
            (true, true) => 13,
            (false, true) => 9,
            (true, false) => 12 + random.below(2) as u32,
            (false, false) => 8 + random.below(3) as u32,
        };
    }
    8 + u32::from(inst.modifiers.dim)
}

fn prepare(inst: &Inst, state: &mut State, random: &mut Random) {
    let target = state.target;
    let Some(first) = scalars(inst, Role::Srsrc) else { return };
    let kind = kind(inst, state, random);
    let (sample, store) = (is_sample(inst.name()), inst.name().starts_with("image_store"));
    let linear = sample && random.one_in(2);
    let operation = match access::image_atomic(inst.name()) {
        Some(Access::Atomic { operation, .. }) => Some(operation),
        _ => None,
    };
    let format = match operation {
        Some(operation) if operation.float() => 5,
        Some(_) => 3 + random.below(2) as usize,
        // What is stored in fewer bits is chosen for it.
        None if store => [0, 3, 4, 5, 7][random.below(5) as usize],
        None if linear && !inst.name().starts_with("image_gather4") => [1, 2, 5, 6][random.below(4) as usize],
        None => random.below(8) as usize,
    };
    let (new, data, number, width, count, what) = FORMATS[format];
    let bytes = width / 8 * count;
    let (wide, high) = ((ROW / bytes) as u64, if axes(kind) == 1 { 1 } else { 1 << random.below(3) });
    let deep = if kind == 10 {
        1 << random.below(3)
    } else if is_array(kind) {
        1 + random.below(3)
    } else {
        1
    };
    let mut words = [0; 8];
    let base = state.address.next_multiple_of(ALIGN);
    let [at_width, at_height, at_format, at_depth, at_pitch, at_last] = places(target);
    put(&mut words, 0, 40, base >> 8);
    put(&mut words, at_width.0, at_width.1, wide - 1);
    put(&mut words, at_height.0, at_height.1, high - 1);
    put(&mut words, at_format.0, at_format.1, if old_format(target) { data | number << 6 } else { new }.into());
    // Where pitch and depth are in one place, it is the pitch of what has no slices.
    if kind == 10 {
        put(&mut words, at_depth.0, at_depth.1, deep - 1);
    }
    if at_pitch.1 > 0 && (old_format(target) || kind < 10) {
        put(&mut words, at_pitch.0, at_pitch.1, wide - 1);
    }
    if is_array(kind) {
        put(&mut words, at_last.0, at_last.1, deep - 1);
    }
    for n in 0..4 {
        let any = if random.one_in(4) { 0 } else { 4 + random.below(count as u64) };
        put(&mut words, 96 + 3 * n, 3, if store { if n < count { 4 + n as u64 } else { 0 } } else { any });
    }
    if target.generation() < 9 {
        put(&mut words, 116, 5, 8);
    }
    put(&mut words, 124, 4, kind.into());
    state.sgpr[first..first + 8].copy_from_slice(&words);

    let unnormalized = random.one_in(2);
    let clamp = if unnormalized { random.pick(&[2, 6]) } else { random.pick(&[0, 1, 2, 6]) };
    if let Some(first) = scalars(inst, Role::Ssamp) {
        let truncate = u32::from(random.one_in(2));
        state.sgpr[first] = (clamp * 0o111) | (u32::from(unnormalized) << 15) | (truncate << 27);
        state.sgpr[first + 1] = 0;
        state.sgpr[first + 2] = u32::from(linear) * (5 << 20);
        state.sgpr[first + 3] = 0;
    }
    if what == Number::Single {
        for at in (0..state.memory.len()).step_by(4) {
            let value = random.below(4096) as f32 / 8.0 - 256.0;
            state.memory[at..at + 4].copy_from_slice(&value.to_bits().to_le_bytes());
        }
    }
    if what == Number::Half {
        for at in (0..state.memory.len()).step_by(2) {
            let value = (random.below(0x4000) | (random.below(2) << 15)) as u16;
            state.memory[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
    }
    let sizes = [wide, high, deep];
    for lane in 0..state.lanes {
        let mut values = Vec::new();
        for (n, size) in sizes.into_iter().enumerate().filter(|(n, _)| *n < axes(kind) || (*n == 2 && is_array(kind))) {
            let slice = n == 2 && is_array(kind);
            values.push(if sample {
                let texels = (random.below(3 * size * 8) as f32) / 8.0 - size as f32;
                let value = if slice {
                    random.below(size + 2) as f32 - 1.0
                } else if unnormalized {
                    texels
                } else {
                    texels / size as f32
                };
                if inst.modifiers.a16 { super::number::half_of(value.into()) as u32 } else { value.to_bits() }
            } else {
                // No two lanes change the same texel; some are outside.
                match n {
                    0 => lane as u32 % size as u32,
                    // What an atomic returns from outside is not documented.
                    _ => random.below(size + u64::from(operation.is_none())) as u32,
                }
            });
        }
        let mut words: Vec<u32> = (0..before(inst, kind)).map(|_| random.next() as u32).collect();
        if inst.modifiers.a16 {
            words.extend(values.chunks(2).map(|pair| pair[0] | pair.get(1).unwrap_or(&0) << 16));
        } else {
            words.extend(values);
        }
        if inst.name().ends_with("_mip") {
            let odd = inst.modifiers.a16 && (axes(kind) + usize::from(is_array(kind))) % 2 == 1;
            if !odd {
                words.push(0);
            }
        }
        if inst.name() == "image_get_resinfo" {
            words = vec![0];
        }
        let Some(data) = data_of(inst) else { continue };
        for n in 0..usize::from(data.dwords) {
            let part = (1_u64 << width) - 1;
            let value = match (operation, what) {
                (Some(operation), _) if operation.float() => {
                    operation.float_value(4, random.below(512) as i64 - 256) as u32
                }
                (_, Number::Signed) if store => ((random.next() << (64 - width)) as i64 >> (64 - width)) as u32,
                _ if store => (random.next() & part) as u32,
                _ => continue,
            };
            rows(state, data.file)[usize::from(data.first) + n][lane] = value;
        }
        // After the data, whose last registers may be the address if they mean nothing to the format.
        set_address(inst, state, lane, &words);
    }
}

/// The texels of an axis and their weights in 256ths.
fn along(texels: f64, size: i64, clamp: u32, linear: bool, offset: i64) -> Vec<(Option<i64>, f64)> {
    let outside = |at: i64| match clamp {
        0 => Some(at.rem_euclid(size)),
        1 => {
            let period = at.rem_euclid(2 * size);
            Some(if period < size { period } else { 2 * size - 1 - period })
        }
        2 => Some(at.max(0).min(size - 1)),
        _ => (at >= 0 && at < size).then_some(at),
    };
    // Coordinates here are eighths, which need no rounding.
    if !linear {
        return vec![(outside(texels.floor() as i64 + offset), 1.0)];
    }
    let first = (texels - 0.5).floor();
    let part = texels - 0.5 - first;
    vec![(outside(first as i64 + offset), 1.0 - part), (outside(first as i64 + 1 + offset), part)]
}

fn execute(inst: &Inst, state: &mut State, target: Target) -> Option<()> {
    let m = &inst.modifiers;
    let name = inst.name();
    let Value::Imm(dmask) = inst.operand(Role::Dmask)?.value else { return None };
    let picture = picture(inst, state, target)?;
    let (file, data) = data_of(inst).map(|reg| (reg.file, usize::from(reg.first)))?;
    let old = state.clone();
    let before = if file == RegFile::Accum { &old.agpr } else { &old.vgpr };
    let wanted: Vec<usize> = (0..4).filter(|n| dmask >> n & 1 != 0).collect();
    let gather = name.starts_with("image_gather4");
    if m.tfe || m.lwe || m.d16 || m.r128 || wanted.is_empty() || (gather && wanted.len() != 1) {
        return None;
    }
    if name == "image_get_resinfo" {
        let known = match picture.kind {
            8 => 9,
            9 => 11,
            12 => 0,
            _ => 15,
        };
        if dmask & !known != 0 {
            return None;
        }
    }
    let what = FORMATS[picture.format];
    if matches!(access::image_atomic(name), Some(Access::Atomic { operation, .. })
        if dmask != if operation.has_second() { 3 } else { 1 })
        || name.starts_with("image_store") && (wanted.len() < what.4 || (0..what.4).any(|n| wanted[n] != n))
        // There the texels are others, by half a texel.
        || gather && target.generation() < 9 && matches!(what.5, Number::Unsigned | Number::Signed)
        || is_sample(name) && target_refuses(target, picture.kind) && (gather || linear(inst, state)?)
    {
        return None;
    }
    for lane in (0..old.lanes).filter(|lane| old.is_active(*lane)) {
        let raw = || coordinates(inst, &old, lane, picture.kind);
        if name == "image_get_resinfo" {
            let sizes = [picture.size[0], picture.size[1], picture.size[2], 1];
            for (n, component) in wanted.iter().enumerate() {
                rows(state, file)[data + n][lane] = sizes[*component] as u32;
            }
        } else if is_sample(name) {
            sample(inst, &old, state, lane, &picture, &raw(), &wanted, gather)?;
        } else {
            let at: Vec<i64> = raw().into_iter().map(i64::from).collect();
            let place = picture.place(with_slice(picture.kind, &at));
            let word = |n: usize| u64::from(before[data + n][lane]);
            if let Some(Access::Atomic { operation, bytes: 4 }) = access::image_atomic(name) {
                let returns = if target.has_cache_scope() { m.th & 1 != 0 } else { m.glc };
                let was = place.map(|at| access::number(&old.memory[at..at + 4]));
                if let (Some(at), Some(was)) = (place, was) {
                    let second = if operation.has_second() { word(1) } else { 0 };
                    state.memory[at..at + 4]
                        .copy_from_slice(&operation.apply(4, was, word(0), second).to_le_bytes()[..4]);
                }
                if returns {
                    // What is returned from outside is not documented.
                    rows(state, file)[data][lane] = was? as u32;
                }
            } else if name.starts_with("image_store") {
                let (.., width, count, _) = FORMATS[picture.format];
                for n in 0..count {
                    let bytes = &word(n).to_le_bytes()[..width / 8];
                    if let Some(at) = place {
                        state.memory[at + n * width / 8..][..width / 8].copy_from_slice(bytes);
                    }
                }
            } else {
                for (n, component) in wanted.iter().enumerate() {
                    rows(state, file)[data + n][lane] =
                        picture.selected(*component, |from| picture.component(&old.memory, place, from).0);
                }
            }
        }
    }
    Some(())
}

#[allow(clippy::too_many_arguments)]
fn sample(
    inst: &Inst,
    old: &State,
    state: &mut State,
    lane: usize,
    picture: &Picture,
    raw: &[u32],
    wanted: &[usize],
    gather: bool,
) -> Option<()> {
    let (file, data) = data_of(inst).map(|reg| (reg.file, usize::from(reg.first)))?;
    let first = scalars(inst, Role::Ssamp)?;
    let (clamp, filter) = (old.sgpr[first] & 7, linear(inst, old)?);
    let unnormalized = old.sgpr[first] >> 15 & 1 != 0 || inst.modifiers.unorm;
    if unnormalized && clamp < 2 {
        return None;
    }
    let float = |bits: u32| if inst.modifiers.a16 { half(bits) } else { f64::from(f32::from_bits(bits)) };
    let packed = if has(inst, "o") { address(inst, old, lane)[0] } else { 0 };
    let mut parts = vec![(Vec::new(), true, 1.0)];
    for (axis, word) in raw.iter().enumerate().take(axes(picture.kind)) {
        let size = picture.size[axis];
        let texels = float(*word) * if unnormalized { 1.0 } else { size as f64 };
        let offset = i64::from((packed >> (8 * axis) & 0x3f) as u8);
        let offset = if offset >= 32 { offset - 64 } else { offset };
        let found = along(texels, size, clamp, filter || gather, offset);
        parts = found
            .iter()
            .flat_map(|(at, weight)| {
                parts.iter().map(move |(before, inside, product): &(Vec<i64>, bool, f64)| {
                    let mut at_all = before.clone();
                    at_all.push(at.unwrap_or(0));
                    (at_all, *inside && at.is_some(), product * weight)
                })
            })
            .collect();
    }
    let texels: Vec<(Option<usize>, f64)> = parts
        .into_iter()
        .map(|(mut at, inside, weight)| {
            if is_array(picture.kind) {
                at.push((float(raw[axes(picture.kind)]).round() as i64).clamp(0, picture.size[2] - 1));
            }
            (if inside { picture.place(with_slice(picture.kind, &at)) } else { None }, weight)
        })
        .collect();
    if gather {
        for (n, from) in [2, 3, 1, 0].into_iter().enumerate() {
            rows(state, file)[data + n][lane] =
                picture.selected(wanted[0], |component| picture.component(&old.memory, texels[from].0, component).0);
        }
        return Some(());
    }
    for (n, component) in wanted.iter().enumerate() {
        let value = picture.selected(*component, |from| {
            if let [(place, _)] = texels[..] {
                return picture.component(&old.memory, place, from).0;
            }
            let sum: f64 =
                texels.iter().map(|(place, weight)| weight * picture.component(&old.memory, *place, from).1).sum();
            (sum as f32).to_bits()
        });
        rows(state, file)[data + n][lane] = value;
        if texels.len() > 1 {
            let place = if file == RegFile::Accum { Place::Accum(data + n) } else { Place::Vector(data + n) };
            state.loose.push((place, Loose::Ulp32(1)));
        }
    }
    Some(())
}

/// Whether the filter is the linear one.
fn linear(inst: &Inst, state: &State) -> Option<bool> {
    Some(state.sgpr[scalars(inst, Role::Ssamp)? + 2] >> 20 & 1 != 0)
}

/// gfx90a has no filter of three dimensions.
fn target_refuses(target: Target, kind: u32) -> bool {
    target.name() == "gfx90a" && kind == 10
}

/// The definition of an image operation.
pub fn definition(variant: &Variant) -> Option<Definition> {
    let name = variant.name;
    if !matches!(variant.encoding, Encoding::Mimg | Encoding::Vimage | Encoding::Vsample) {
        return None;
    }
    let words: Vec<&str> = name.split('_').skip(2).collect();
    let sampled = is_sample(name) && name != "image_gather4h" && !words.contains(&"c");
    let plain =
        matches!(name, "image_load" | "image_load_mip" | "image_store" | "image_store_mip" | "image_get_resinfo");
    if !sampled && !plain && access::image_atomic(name).is_none() {
        return None;
    }
    // Derivatives of 32 bits go with coordinates of 32 bits.
    let wide = words.iter().any(|word| matches!(*word, "d" | "cd"));
    let flat = name.starts_with("image_gather4");
    let modifier: fn(&mut Random, Modifier) -> Option<u64> = match (wide, flat) {
        (true, _) => |random, modifier| common(random, modifier),
        (false, true) => |random, modifier| match modifier {
            Modifier::A16 => Some(random.below(2)),
            Modifier::Dim => Some(random.pick(&[1, 5])),
            _ => common(random, modifier),
        },
        (false, false) => {
            |random, modifier| if modifier == Modifier::A16 { Some(random.below(2)) } else { common(random, modifier) }
        }
    };
    let operand: fn(&mut Random, Role) -> Option<u64> = if name.starts_with("image_atomic") {
        |random, role| (role == Role::Dmask).then(|| random.pick(&[1, 3]))
    } else if flat {
        |random, role| (role == Role::Dmask).then(|| 1 << random.below(4))
    } else if name.starts_with("image_store") {
        |random, role| (role == Role::Dmask).then(|| random.pick(&[3, 15]))
    } else {
        |random, role| (role == Role::Dmask).then(|| 1 + random.below(15))
    };
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

fn common(random: &mut Random, modifier: Modifier) -> Option<u64> {
    match modifier {
        Modifier::Dim => Some(random.pick(&[0, 1, 2, 4, 5])),
        Modifier::Da | Modifier::Glc | Modifier::Th => Some(random.below(2)),
        _ => None,
    }
}
