//! Where the fields of image resource descriptors and of sampler descriptors are (`isa-tables/image_descriptors.yaml`).

use super::print_names::{BUFFER_DATA_FORMATS, BUFFER_NUMBER_FORMATS};
use super::target::Target;
use super::vocabulary::{ImageField, NameList, SamplerField};

include!(concat!(env!("OUT_DIR"), "/image_descriptors.rs"));

/// How many fields each descriptor has.
const FIELDS: usize = 11;

/// One of the two descriptors: low bit and width of each field, and the bits that are in fields or do not matter.
#[derive(Debug)]
struct Descriptor<const DWORDS: usize> {
    fields: [Option<(u16, u16)>; FIELDS],
    known: [u32; DWORDS],
}

impl<const DWORDS: usize> Descriptor<DWORDS> {
    fn bits(&self, field: usize) -> impl Iterator<Item = (usize, u32)> {
        let (low, width) = self.fields[field].unwrap_or((0, 0));
        (low..low + width).map(|bit| (usize::from(bit / 32), 1 << (bit % 32)))
    }

    fn get(&self, words: &[u32; DWORDS], field: usize) -> Option<u64> {
        self.fields[field]?;
        let bits = self.bits(field).enumerate();
        Some(bits.fold(0, |value, (n, (word, bit))| value | u64::from(words[word] & bit != 0) << n))
    }

    fn set(&self, words: &mut [u32; DWORDS], field: usize, value: u64) -> bool {
        let Some((_, width)) = self.fields[field] else { return false };
        for (n, (word, bit)) in self.bits(field).enumerate() {
            words[word] = words[word] & !bit | if value >> n & 1 != 0 { bit } else { 0 };
        }
        value >> width == 0
    }

    fn unknown(&self, words: &[u32; DWORDS]) -> Option<u16> {
        let mut left = words.iter().zip(&self.known).zip(0..);
        left.find_map(|((word, known), n)| {
            (word & !known != 0).then(|| 32 * n + (word & !known).trailing_zeros() as u16)
        })
    }
}

/// The descriptors of a generation.
#[derive(Debug)]
pub struct ImageDescriptors {
    resource: Descriptor<8>,
    sampler: Descriptor<4>,
    /// The layout in which elements are in rows.
    pub linear: u8,
    /// Whether the pitch is also that of images with slices; otherwise their width tells it.
    pub pitch_of_slices: bool,
    /// Rows of a linear image are multiples of this many bytes.
    pub row: u16,
    /// The same where slices are counted.
    pub slice_row: u16,
    /// Rows are multiples of this many elements as well.
    pub row_elements: u16,
    /// Whether three-dimensional images can be filtered.
    pub filters_depth: bool,
}

impl ImageDescriptors {
    /// A field of a resource descriptor; `None` if this generation does not have it.
    #[must_use]
    pub fn resource(&self, words: &[u32; 8], field: ImageField) -> Option<u64> {
        self.resource.get(words, field as usize)
    }

    /// Sets a field of a resource descriptor; whether there is such a field and it has room for the value.
    pub fn set_resource(&self, words: &mut [u32; 8], field: ImageField, value: u64) -> bool {
        self.resource.set(words, field as usize, value)
    }

    /// The lowest bit of a resource descriptor that is set and in no field.
    #[must_use]
    pub fn unknown_of_resource(&self, words: &[u32; 8]) -> Option<u16> {
        self.resource.unknown(words)
    }

    /// A field of a sampler descriptor.
    #[must_use]
    pub fn sampler(&self, words: &[u32; 4], field: SamplerField) -> Option<u64> {
        self.sampler.get(words, field as usize)
    }

    /// Sets a field of a sampler descriptor; whether there is such a field and it has room for the value.
    pub fn set_sampler(&self, words: &mut [u32; 4], field: SamplerField, value: u64) -> bool {
        self.sampler.set(words, field as usize, value)
    }

    /// The lowest bit of a sampler descriptor that is set and in no field.
    #[must_use]
    pub fn unknown_of_sampler(&self, words: &[u32; 4]) -> Option<u16> {
        self.sampler.unknown(words)
    }

    /// Bytes from row to row of a linear image, for elements of so many bytes: as the width tells it where the
    /// descriptor has no pitch.
    #[must_use]
    pub fn row_bytes(&self, width: u64, element: u64) -> u64 {
        (width * element).next_multiple_of(u64::from(self.row).max(u64::from(self.row_elements) * element))
    }

    /// Bytes from slice to slice of a linear image without a pitch of its own.
    #[must_use]
    pub fn slice_bytes(&self, width: u64, height: u64, element: u64) -> u64 {
        self.row_bytes(width, element).next_multiple_of(u64::from(self.slice_row)) * height
    }
}

impl Target {
    /// The image and sampler descriptors of the target; `None` if it has no images.
    ///
    /// ```
    /// use wavetap_amdgpu::{ImageField, Target};
    /// let descriptors = Target::by_name("gfx1030").unwrap().image_descriptors().unwrap();
    /// let mut words = [0; 8];
    /// assert!(descriptors.set_resource(&mut words, ImageField::Width, 99));
    /// assert_eq!((words[1] >> 30, words[2]), (3, 24));
    /// assert_eq!(descriptors.resource(&words, ImageField::Width), Some(99));
    /// assert!(Target::by_name("gfx942").unwrap().image_descriptors().is_none());
    /// ```
    #[must_use]
    pub fn image_descriptors(self) -> Option<&'static ImageDescriptors> {
        IMAGE_DESCRIPTORS[usize::from(IMAGE_DESCRIPTORS_OF[self.index()]?)].as_ref()
    }
}

/// A typed buffer: the same elements one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypedBuffer {
    /// Address.
    pub base: u64,
    /// Bytes of an element.
    pub element: u16,
    /// How many there are.
    pub count: u32,
    /// Their format, by [`Target::image_format`].
    pub format: u16,
    /// As [`ImageField::Select`].
    pub select: u16,
}

impl Target {
    /// The number of a format, such as `8_8_8_8_UNORM`, in descriptors of images and of typed buffers.
    #[must_use]
    pub fn image_format(self, name: &str) -> Option<u16> {
        if self.generation() >= 10 {
            return self
                .names(NameList::BufferFormats)
                .iter()
                .find(|(_, known)| *known == name)
                .map(|(number, _)| u16::from(*number));
        }
        let (widths, number) = name.rsplit_once('_')?;
        let place = |names: &[&str], name: &str| names.iter().position(|known| *known == name);
        Some((place(&BUFFER_DATA_FORMATS, widths)? | place(&BUFFER_NUMBER_FORMATS, number)? << 6) as u16)
    }

    /// The descriptor of a typed buffer (AMD ISA guides, "Buffer resource descriptor").
    #[must_use]
    pub fn typed_buffer(self, buffer: &TypedBuffer) -> [u32; 4] {
        let format = u32::from(buffer.format);
        let format = if self.generation() >= 10 { format << 12 } else { (format >> 6 & 7) << 12 | (format & 15) << 15 };
        let high = (buffer.base >> 32) as u32 & 0xffff;
        [buffer.base as u32, high | u32::from(buffer.element) << 16, buffer.count, u32::from(buffer.select) | format]
    }
}
