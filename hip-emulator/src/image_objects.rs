//! The descriptors by which kernels reach images: eight dwords of the image, four that the device library reads, eight
//! of the sampler.

use wavetap::isa::{ImageDescriptors, ImageField, SamplerField, Target, TypedBuffer};

use crate::objects::arrays::{Array, CUBEMAP, ChannelFormat, KIND_FLOAT, KIND_SIGNED, LAYERED};
use crate::properties::TEXTURE_SIDE;
use crate::status::*;

/// Dwords of an image with what the device library reads (`HIP_IMAGE_OBJECT_SIZE_DWORD`), and of a sampler.
pub(crate) const IMAGE_DWORDS: usize = 12;
pub(crate) const SAMPLER_DWORDS: usize = 8;

/// Numbers of kinds of images in descriptors.
const D1: u64 = 8;
const D2: u64 = 9;
const D3: u64 = 10;
const D1_ARRAY: u64 = 12;
const D2_ARRAY: u64 = 13;

/// Largest level of detail that samplers are given.
const MAX_LOD: u64 = 4095;

/// `hipTextureAddressMode`.
pub(crate) const WRAP: i32 = 0;
pub(crate) const CLAMP: i32 = 1;
pub(crate) const MIRROR: i32 = 2;

/// How elements are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Elements {
    pub(crate) format: ChannelFormat,
    /// Integers as fractions of the largest.
    pub(crate) normalized: bool,
}

impl Elements {
    fn width(self) -> i32 {
        self.format.bits[0]
    }

    /// Integers of 32 bits stay what they are.
    fn is_fraction(self) -> bool {
        self.normalized && self.width() < 32
    }

    /// The name of the hardware's format.
    fn name(self) -> Outcome<String> {
        let components = self.format.components()?;
        let kind = match (self.format.kind, self.is_fraction()) {
            (KIND_FLOAT, _) => "FLOAT",
            (KIND_SIGNED, true) => "SNORM",
            (KIND_SIGNED, false) => "SINT",
            (_, true) => "UNORM",
            (_, false) => "UINT",
        };
        Ok(vec![self.width().to_string(); components].join("_") + "_" + kind)
    }

    fn number(self, target: Target) -> Outcome<u16> {
        target.image_format(&self.name()?).ok_or(NOT_SUPPORTED)
    }

    /// What components of a result are: those of memory, then 0, and 1 for the fourth.
    fn select(self) -> Outcome<u16> {
        let components = self.format.components()?;
        Ok((0..4).map(|n| if n < components { 4 + n as u16 } else { u16::from(n == 3) } << (3 * n)).sum())
    }

    /// What the device library is told: `hsa_ext_image_channel_type_t`, `hsa_ext_image_channel_order_t`, the width.
    fn words(self, width: usize) -> Outcome<[u32; 3]> {
        let wide = match self.width() {
            8 => 0,
            16 => 1,
            _ => 2,
        };
        let kind = match (self.format.kind, self.is_fraction()) {
            (KIND_FLOAT, _) => 13 + wide,
            (KIND_SIGNED, true) => wide,
            (KIND_SIGNED, false) => 8 + wide,
            (_, true) => 2 + wide,
            (_, false) => 11 + wide,
        };
        let order = match self.format.components()? {
            1 => 1,
            2 => 3,
            _ => 8,
        };
        Ok([kind, order, u32::try_from(width).map_err(|_| INVALID_VALUE)?])
    }
}

/// The images of a device.
pub(crate) fn images(target: Target) -> Outcome<&'static ImageDescriptors> {
    target.image_descriptors().ok_or(NOT_SUPPORTED)
}

/// An image over plain memory: one row.
pub(crate) fn linear(target: Target, base: u64, bytes: usize, elements: Elements) -> Outcome<[u32; IMAGE_DWORDS]> {
    let element = elements.format.bytes();
    let count = bytes / element;
    let buffer = TypedBuffer {
        base,
        element: element as u16,
        count: u32::try_from(count).map_err(|_| INVALID_VALUE)?,
        format: elements.number(target)?,
        select: elements.select()?,
    };
    let mut words = [0; IMAGE_DWORDS];
    words[..4].copy_from_slice(&target.typed_buffer(&buffer));
    words[8..11].copy_from_slice(&elements.words(count)?);
    Ok(words)
}

/// What an image of texels is.
struct Texels {
    base: u64,
    kind: u64,
    size: [usize; 3],
    pitch: Option<usize>,
}

fn image(target: Target, texels: &Texels, elements: Elements) -> Outcome<[u32; IMAGE_DWORDS]> {
    let layout = images(target)?;
    let [width, height, depth] = texels.size;
    if texels.size.contains(&0) || width.max(height) > TEXTURE_SIDE as usize {
        return Err(INVALID_VALUE);
    }
    let mut words = [0; 8];
    let mut set =
        |field, value| if layout.set_resource(&mut words, field, value) { Ok(()) } else { Err(NOT_SUPPORTED) };
    set(ImageField::Base, texels.base >> 8)?;
    set(ImageField::Format, elements.number(target)?.into())?;
    set(ImageField::Width, width as u64 - 1)?;
    set(ImageField::Height, height as u64 - 1)?;
    set(ImageField::Select, elements.select()?.into())?;
    set(ImageField::Layout, layout.linear.into())?;
    set(ImageField::Kind, texels.kind)?;
    let sliced = !matches!(texels.kind, D1 | D2);
    let element = elements.format.bytes();
    let of_width = layout.row_bytes(width as u64, element as u64) as usize;
    let pitch = texels.pitch.unwrap_or(of_width);
    let has_pitch = layout.resource(&[0; 8], ImageField::Pitch).is_some() && (layout.pitch_of_slices || !sliced);
    if has_pitch {
        if !pitch.is_multiple_of(element) || pitch < width * element {
            return Err(INVALID_VALUE);
        }
        set(ImageField::Pitch, (pitch / element) as u64 - 1)?;
    } else if pitch != of_width {
        return Err(NOT_SUPPORTED);
    }
    if sliced {
        let by_slice = texels.kind != D3 && layout.resource(&[0; 8], ImageField::LastSlice).is_some();
        set(if by_slice { ImageField::LastSlice } else { ImageField::Depth }, depth as u64 - 1)?;
    }
    let mut all = [0; IMAGE_DWORDS];
    all[..8].copy_from_slice(&words);
    all[8..11].copy_from_slice(&elements.words(width)?);
    Ok(all)
}

/// Rows of plain memory.
pub(crate) fn rows(
    target: Target,
    base: u64,
    (width, height): (usize, usize),
    pitch: usize,
    elements: Elements,
) -> Outcome<[u32; IMAGE_DWORDS]> {
    image(target, &Texels { base, kind: D2, size: [width, height, 1], pitch: Some(pitch) }, elements)
}

/// The image of an array.
pub(crate) fn array(target: Target, array: &Array, elements: Elements) -> Outcome<[u32; IMAGE_DWORDS]> {
    let extent = array.extent;
    let kind = match (array.flags & CUBEMAP != 0, array.flags & LAYERED != 0, extent.height, extent.depth) {
        (true, ..) => return Err(NOT_SUPPORTED),
        (_, true, 0, _) => D1_ARRAY,
        (_, true, ..) => D2_ARRAY,
        (_, _, 0, _) => D1,
        (_, _, _, 0) => D2,
        _ => D3,
    };
    let size = [extent.width, extent.height.max(1), extent.depth.max(1)];
    image(target, &Texels { base: array.address, kind, size, pitch: None }, elements)
}

/// What a sampler does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sampling {
    pub(crate) address_mode: i32,
    pub(crate) linear: bool,
    pub(crate) normalized: bool,
}

/// The descriptor of a sampler.
pub(crate) fn sampler(target: Target, sampling: Sampling) -> Outcome<[u32; SAMPLER_DWORDS]> {
    let layout = images(target)?;
    // Coordinates that are not normalised do not wrap: HIP takes clamping for it.
    let mode = if sampling.normalized || !matches!(sampling.address_mode, WRAP | MIRROR) {
        sampling.address_mode
    } else {
        CLAMP
    };
    let clamp = match mode {
        WRAP => 0,
        MIRROR => 1,
        CLAMP => 2,
        _ => 6,
    };
    let mut words = [0; 4];
    let mut set = |field, value| if layout.set_sampler(&mut words, field, value) { Ok(()) } else { Err(NOT_SUPPORTED) };
    for field in [SamplerField::ClampX, SamplerField::ClampY, SamplerField::ClampZ] {
        set(field, clamp)?;
    }
    set(SamplerField::Unnormalized, u64::from(!sampling.normalized))?;
    set(SamplerField::MaxLod, MAX_LOD)?;
    for field in [SamplerField::Magnify, SamplerField::Minify] {
        set(field, u64::from(sampling.linear))?;
    }
    let mut all = [0; SAMPLER_DWORDS];
    all[..4].copy_from_slice(&words);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(bits: [i32; 4], kind: i32, normalized: bool) -> Elements {
        Elements { format: ChannelFormat { bits, kind }, normalized }
    }

    #[test]
    fn formats_by_name() {
        let bytes = elements([8, 8, 8, 8], 1, true);
        assert_eq!((bytes.name().unwrap().as_str(), bytes.select()), ("8_8_8_8_UNORM", Ok(0o7654)));
        let single = elements([32, 0, 0, 0], KIND_FLOAT, true);
        assert_eq!((single.name().unwrap().as_str(), single.select()), ("32_FLOAT", Ok(0o1004)));
        assert_eq!(elements([32, 0, 0, 0], KIND_SIGNED, true).name().unwrap(), "32_SINT");
        assert_eq!(elements([16, 16, 0, 0], KIND_SIGNED, false).words(7), Ok([9, 3, 7]));
        assert_eq!(elements([16, 0, 0, 0], KIND_FLOAT, false).words(7).map(|words| words[0]), Ok(14));
        for target in Target::all().filter(|target| target.emulated() && target.image_descriptors().is_some()) {
            for normalized in [false, true] {
                for kind in 0..3 {
                    for bits in [8, 16, 32].into_iter().filter(|bits| kind != KIND_FLOAT || *bits > 8) {
                        for found in [[bits, 0, 0, 0], [bits, bits, 0, 0], [bits; 4]] {
                            assert!(
                                elements(found, kind, normalized).number(target).is_ok(),
                                "{} {found:?} {kind}",
                                target.name()
                            );
                        }
                    }
                }
            }
        }
    }

    /// Words written by hand from the ISA guides.
    #[test]
    fn descriptors_of_two_generations() {
        let target = |name| Target::by_name(name).unwrap();
        let float = elements([32, 0, 0, 0], KIND_FLOAT, false);
        let words = rows(target("gfx906"), 0x20_0000_0100, (100, 50), 512, float).unwrap();
        assert_eq!(words[..5], [0x2000_0001, (4 << 20) | (7 << 26), 99 | 49 << 14, 0x9000_0204, 127 << 13]);
        let words = rows(target("gfx1030"), 0x20_0000_0100, (100, 50), 512, float).unwrap();
        assert_eq!(words[..5], [0x2000_0001, (22 << 20) | (3 << 30), 24 | 49 << 14, 0x9000_0204, 127]);
        assert_eq!(rows(target("gfx1010"), 0, (100, 50), 1024, float), Err(NOT_SUPPORTED));
        assert_eq!(rows(target("gfx942"), 0, (100, 50), 512, float), Err(NOT_SUPPORTED));
        let sampling = Sampling { address_mode: WRAP, linear: true, normalized: false };
        assert_eq!(sampler(target("gfx1030"), sampling).unwrap()[..4], [0o222 | 1 << 15, 4095 << 12, 5 << 20, 0]);
    }
}
