//! Image instructions with a sampler: which texels a coordinate means, and what becomes of them.
//!
//! Coordinates become fixed-point numbers with eight fraction bits, rounded to the nearest; so has HIP's linear
//! filter. The filter itself is exact but for one rounding to 32 bits, where the hardware's may differ in the last
//! bits. An image has one mip level, so levels of detail, their biases, clamps and derivatives choose nothing as long
//! as the filter is the same for what is enlarged and for what is made smaller.

use smallvec::SmallVec;

use wavetap_amdgpu::{Opcode, Operand, Role, SamplerField};

use super::image::{Image, ImageKind, address, bits, data, mask, position, values};
use super::typed::Number;
use super::vmem::issue_sample;
use crate::address::place::LanePlace;
use crate::address::range::ANYWHERE;
use crate::fault::stop::{ExecResult, undefined};
use crate::float::from_f16;
use crate::lanes::active;
use crate::op::sampling::SampleForm;
use crate::op::semantics::Semantics;
use crate::state::core::Core;
use crate::state::op::{Meaning, Op};
use crate::strict::store_order::order;

/// Steps of a fixed-point coordinate from texel to texel.
const STEPS: f64 = 256.0;
/// Coordinates beyond this many texels are taken for this many.
const FAR: f64 = 1e9;

/// The texels of an axis with their weights; none where it is the border.
type Along = SmallVec<[(Option<i64>, f64); 2]>;

/// What becomes of a texel outside the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clamp {
    Wrap,
    Mirror,
    Last,
    Border,
}

impl Clamp {
    fn numbered(number: u64) -> ExecResult<Clamp> {
        Ok(match number {
            0 => Clamp::Wrap,
            1 => Clamp::Mirror,
            2 => Clamp::Last,
            6 => Clamp::Border,
            other => {
                return undefined(format!(
                    "a sampler with address mode {other}: known are wrap, mirror, last texel and border"
                ));
            }
        })
    }

    /// The texel in the image that stands for one, if any does.
    fn texel(self, at: i64, size: i64) -> Option<i64> {
        match self {
            Clamp::Wrap => Some(at.rem_euclid(size)),
            Clamp::Mirror => {
                let at = at.rem_euclid(2 * size);
                Some(at.min(2 * size - 1 - at))
            }
            Clamp::Last => Some(at.clamp(0, size - 1)),
            Clamp::Border => (0..size).contains(&at).then_some(at),
        }
    }
}

/// A sampler as its descriptor has it.
struct Sampler {
    clamp: [Clamp; 3],
    unnormalized: bool,
    truncate: bool,
    /// By axis.
    linear: [bool; 3],
}

impl Sampler {
    fn of(core: &mut Core, op: &Op) -> ExecResult<Sampler> {
        let Some(layout) = core.launch.target.image_descriptors() else {
            return undefined("a sampler of a target that has none");
        };
        let Some(reg) = op.inst.operand(Role::Ssamp).and_then(Operand::reg) else {
            return undefined("a sample without sampler");
        };
        let mut words = [0; 4];
        for (n, word) in words.iter_mut().enumerate() {
            *word = core.scalar(op, reg.first + n as u16)?;
        }
        if let Some(bit) = layout.unknown_of_sampler(&words) {
            return undefined(format!("a sampler descriptor whose bit {bit} is set"));
        }
        let value = |field| layout.sampler(&words, field).unwrap_or(0);
        let (magnify, minify) = (value(SamplerField::Magnify), value(SamplerField::Minify));
        if magnify != minify || magnify > 1 {
            return undefined(format!(
                "a sampler with filters {magnify} and {minify}: known are point and linear, the same for both"
            ));
        }
        if value(SamplerField::Border) != 0 {
            return undefined("a sampler whose border is not transparent black");
        }
        let depth = match value(SamplerField::DepthFilter) {
            0 => magnify == 1,
            1 => false,
            2 => true,
            other => return undefined(format!("a sampler with depth filter {other}")),
        };
        let clamp = [SamplerField::ClampX, SamplerField::ClampY, SamplerField::ClampZ]
            .map(|field| Clamp::numbered(value(field)));
        let [x, y, z] = clamp;
        let sampler = Sampler {
            clamp: [x?, y?, z?],
            unnormalized: value(SamplerField::Unnormalized) != 0 || op.inst.modifiers.unorm,
            truncate: value(SamplerField::Truncate) != 0,
            linear: [magnify == 1, magnify == 1, depth],
        };
        Ok(sampler)
    }

    /// The texels that a coordinate means along an axis, with their weights. `pair`: always two.
    fn along(&self, axis: usize, size: i64, coordinate: f64, offset: i64, pair: bool) -> ExecResult<Along> {
        let clamp = self.clamp[axis];
        let periodic = matches!(clamp, Clamp::Wrap | Clamp::Mirror);
        if coordinate.is_nan() || (periodic && coordinate.is_infinite()) {
            return undefined("a texture coordinate that is no number");
        }
        if self.unnormalized && periodic {
            return undefined("a sampler that wraps or mirrors coordinates which are not normalised");
        }
        let sides = if self.unnormalized { coordinate } else { coordinate * size as f64 };
        // Whole periods leave the texel as it is.
        let period = 2.0 * size as f64;
        let texels = if periodic { sides - (sides / period).floor() * period } else { sides.clamp(-FAR, FAR) };
        let fixed = |texels: f64| (texels * STEPS).round_ties_even();
        let mut found = SmallVec::new();
        if self.linear[axis] || pair {
            let at = fixed(texels - 0.5);
            let first = (at / STEPS).floor();
            let part = at / STEPS - first;
            let first = first as i64 + offset;
            found.push((clamp.texel(first, size), 1.0 - part));
            found.push((clamp.texel(first + 1, size), part));
        } else {
            let at = if self.truncate { texels.floor() } else { (fixed(texels) / STEPS).floor() };
            found.push((clamp.texel(at as i64 + offset, size), 1.0));
        }
        Ok(found)
    }
}

/// A texel of the result, or the border, with its weight.
type Part = (LanePlace, f64);

/// A lane, and the texels of its result.
type Footprint = (usize, SmallVec<[Part; 8]>);

/// A texel by position, whether it is inside, and its weight.
type Texel = ([i64; 3], bool, f64);

/// The texels that each lane's result is made of. Those of a gather are (0,0), (1,0), (0,1), (1,1).
fn footprints(core: &mut Core, op: &Op, image: &Image, gather: bool) -> ExecResult<Vec<Footprint>> {
    let Some(form) = SampleForm::of(op.inst.opcode()) else { return undefined("meaning") };
    let sampler = Sampler::of(core, op)?;
    let filters_depth = core.launch.target.image_descriptors().is_some_and(|layout| layout.filters_depth);
    if image.kind == ImageKind::D3 && sampler.linear.contains(&true) && !filters_depth {
        return undefined("a linear filter of a three-dimensional image on a target that has none");
    }
    let axes = image.kind.axes();
    if form.gradients && op.inst.modifiers.a16 && !form.half_gradients {
        return undefined("derivatives of 32 bits with coordinates of 16");
    }
    let layers = usize::from(image.kind.is_array());
    let coordinates = values(core, op, form.before(axes), axes + layers)?;
    let offsets = if form.offset { address(core, op, 1)?.pop() } else { None };
    let float = |bits: u32| if op.inst.modifiers.a16 { from_f16(bits as u16) } else { f64::from(f32::from_bits(bits)) };
    let mut all = Vec::new();
    for lane in active(core.wave.exec()) {
        let mut parts: SmallVec<[Texel; 8]> = SmallVec::new();
        parts.push(([0; 3], true, 1.0));
        for axis in 0..axes {
            // Six bits each, a byte apart.
            let offset = offsets.map_or(0, |offsets| i64::from((offsets[lane] >> (8 * axis) << 26) as i32 >> 26));
            let along = sampler.along(axis, image.size[axis], float(coordinates[axis][lane]), offset, gather)?;
            let mut next = SmallVec::new();
            for (at, weight) in along {
                for &(mut position, inside, before) in &parts {
                    position[axis] = at.unwrap_or(0);
                    next.push((position, inside && at.is_some(), before * weight));
                }
            }
            parts = next;
        }
        let layer = match layers {
            0 => 0,
            _ => {
                let layer = float(coordinates[axes][lane]);
                if layer.is_nan() {
                    return undefined("a layer that is no number");
                }
                layer.round_ties_even().clamp(0.0, (image.size[2] - 1) as f64) as i64
            }
        };
        let place = |(at, inside, weight): Texel| {
            let at = position(image.kind, |n| if n < axes { at[n] } else { layer });
            (if inside { image.place(at) } else { LanePlace::Nowhere }, weight)
        };
        all.push((lane, parts.into_iter().map(place).collect()));
    }
    Ok(all)
}

fn gathers(opcode: Opcode) -> bool {
    opcode.sample().is_some_and(|sample| sample.gather)
}

/// The texels that an instruction reads.
pub(crate) fn texels(core: &mut Core, op: &Op, image: &Image) -> ExecResult<Vec<LanePlace>> {
    let gather = gathers(op.inst.opcode());
    let all = footprints(core, op, image, gather)?;
    Ok(all
        .into_iter()
        .flat_map(|(_, parts)| parts)
        .filter(|(_, weight)| gather || *weight != 0.0)
        .map(|(place, _)| place)
        .collect())
}

/// The components of memory of the filtered texels of a lane.
fn filtered(core: &mut Core, image: &Image, lane: usize, parts: &[Part]) -> ExecResult<[u32; 4]> {
    let border = |core: &mut Core, place: LanePlace| {
        if place == LanePlace::Nowhere { Ok([0; 4]) } else { image.read(core, lane, place) }
    };
    if let [(place, _)] = parts {
        return border(core, *place);
    }
    if matches!(image.format.number, Number::Uint | Number::Sint) {
        return undefined("a linear filter of integers");
    }
    let mut sums = [0.0; 4];
    for &(place, weight) in parts.iter().filter(|(_, weight)| *weight != 0.0) {
        let texel = border(core, place)?;
        for (sum, value) in sums.iter_mut().zip(texel) {
            *sum += weight * f64::from(f32::from_bits(value));
        }
    }
    Ok(sums.map(|sum: f64| (sum as f32).to_bits()))
}

pub(crate) fn sample(core: &mut Core, op: &Op) -> ExecResult {
    let image = Image::of(core, op)?;
    let footprints = footprints(core, op, &image, false)?;
    let (mask, dst) = (mask(op)?, data(op)?);
    order(core, op, true, ANYWHERE)?;
    let words = mask.count_ones() as u16;
    core.writing(op, dst.file, dst.first, words)?;
    for (lane, parts) in footprints {
        core.stats.global_bytes += (image.format.bytes() * parts.len()) as u64;
        let memory = filtered(core, &image, lane, &parts)?;
        for (register, component) in (usize::from(dst.first)..).zip(bits(mask)) {
            let value = image.selected(component, &memory)?;
            core.file(dst.file)[register][lane] = value;
        }
    }
    issue_sample(core, op, (dst.file, dst.first, words));
    Ok(())
}

/// One component of the four texels that a linear filter would take: (0,1), (1,1), (1,0), (0,0).
fn gather(core: &mut Core, op: &Op) -> ExecResult {
    const ORDER: [usize; 4] = [2, 3, 1, 0];
    let image = Image::of(core, op)?;
    if !matches!(image.kind, ImageKind::D2 | ImageKind::D2Array) {
        return undefined(format!("a gather of an image that is {:?}", image.kind));
    }
    if matches!(image.format.number, Number::Uint | Number::Sint) && core.launch.target.generation() < 9 {
        return undefined("a gather of integers on gfx8, which is off by half a texel");
    }
    let footprints = footprints(core, op, &image, true)?;
    let (mask, dst) = (mask(op)?, data(op)?);
    if mask.count_ones() != 1 {
        return undefined("a gather of more than one component");
    }
    order(core, op, true, ANYWHERE)?;
    core.writing(op, dst.file, dst.first, 4)?;
    for (lane, parts) in footprints {
        core.stats.global_bytes += (image.format.bytes() * parts.len()) as u64;
        for (n, from) in ORDER.into_iter().enumerate() {
            let memory = filtered(core, &image, lane, &parts[from..=from])?;
            let value = image.selected(mask.trailing_zeros() as usize, &memory)?;
            core.file(dst.file)[usize::from(dst.first) + n][lane] = value;
        }
    }
    issue_sample(core, op, (dst.file, dst.first, 4));
    Ok(())
}

/// The meaning of an instruction with a sampler. Those that compare with a reference value have none.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    SampleForm::of(opcode)?;
    Some((if gathers(opcode) { gather } else { sample }, Semantics::Own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_texels_outside() {
        let along = |clamp: Clamp| [-5, -4, -1, 0, 3, 4, 7, 8].map(|at| clamp.texel(at, 4).unwrap_or(-9));
        assert_eq!(along(Clamp::Wrap), [3, 0, 3, 0, 3, 0, 3, 0]);
        assert_eq!(along(Clamp::Mirror), [3, 3, 0, 0, 3, 3, 0, 0]);
        assert_eq!(along(Clamp::Last), [0, 0, 0, 0, 3, 3, 3, 3]);
        assert_eq!(along(Clamp::Border), [-9, -9, -9, 0, 3, -9, -9, -9]);
    }

    #[test]
    fn coordinates_in_steps() {
        let sampler =
            |linear| Sampler { clamp: [Clamp::Last; 3], unnormalized: true, truncate: false, linear: [linear; 3] };
        let along = |linear, at| sampler(linear).along(0, 8, at, 0, false).unwrap().to_vec();
        assert_eq!(along(true, 2.5), [(Some(2), 1.0), (Some(3), 0.0)]);
        assert_eq!(along(true, 2.75), [(Some(2), 0.75), (Some(3), 0.25)]);
        assert_eq!(along(true, 0.0), [(Some(0), 0.5), (Some(0), 0.5)]);
        assert_eq!(along(false, 2.99), [(Some(2), 1.0)]);
        assert_eq!(along(false, 2.999), [(Some(3), 1.0)], "nearer than half a step");
    }

    #[test]
    fn forms() {
        assert_eq!(SampleForm::of(Opcode::IMAGE_SAMPLE), Some(SampleForm::default()));
        assert_eq!(SampleForm::of(Opcode::IMAGE_SAMPLE_B_CL_O).map(|form| form.before(2)), Some(2));
        assert_eq!(SampleForm::of(Opcode::IMAGE_SAMPLE_D).map(|form| form.before(3)), Some(6));
        assert_eq!(SampleForm::of(Opcode::IMAGE_SAMPLE_CD_CL_G16).map(|form| form.before(3)), Some(4));
        assert!(
            [
                Opcode::IMAGE_SAMPLE_C_LZ,
                Opcode::IMAGE_GATHER4H,
                Opcode::IMAGE_GATHER4_C,
                Opcode::IMAGE_GET_LOD,
                Opcode::IMAGE_LOAD
            ]
            .into_iter()
            .all(|opcode| SampleForm::of(opcode).is_none())
        );
    }
}
