//! What decoding needs to know of a loaded code object: its executable bytes, its functions and its relocated pointers,
//! by virtual address.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::body::BodyKind;
use wavetap_amdgpu::Target;
use wavetap_base::error::Result;
use wavetap_object::code_object::{CodeObject, Field};
use wavetap_object::elf::constants::{PT_GNU_RELRO, RelocationType};

/// A 64-bit address of a symbol plus the addend (AMDGPUUsage, "Relocation Records").
const R_AMDGPU_ABS64: RelocationType = RelocationType(3);
/// The load address plus the addend.
const R_AMDGPU_RELATIVE64: RelocationType = RelocationType(13);

/// Bytes of code at a kernel's entry that load its arguments, for firmware that does not preload them.
const PRELOAD_PROLOGUE: u64 = 256;

/// Stands for what a relocation of another kind makes.
const NOWHERE: u64 = u64::MAX;

/// Executable bytes, function starts and relocated pointer slots of one code object, by virtual address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Image<'d> {
    code: BTreeMap<u64, &'d [u8]>,
    // Those of a library are many, and its image is used again and again with other code.
    entries: Arc<BTreeMap<u64, (String, BodyKind)>>,
    /// Where the code of an entry ends, where that is known.
    ends: Arc<BTreeMap<u64, u64>>,
    pointers: Arc<BTreeMap<u64, u64>>,
    /// Those of them that can be overwritten once the object is loaded.
    variables: Arc<BTreeMap<u64, u64>>,
    /// Lanes of a kernel's waves, by its entry.
    wave_sizes: Arc<BTreeMap<u64, u32>>,
    /// Where waves of a kernel begin, by its entry, where that is another place.
    begins: Arc<BTreeMap<u64, u64>>,
}

impl<'d> Image<'d> {
    /// An image without any code.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The executable segments, kernels, functions and 64-bit pointer relocations of a code object.
    ///
    /// # Errors
    /// Malformed if an executable segment does not lie in the file.
    pub fn of(object: &CodeObject<'d>) -> Result<Image<'d>> {
        let mut image = Image::new();
        for segment in object.elf().loads().filter(|segment| segment.is_executable()) {
            image.add_code(segment.address, object.bytes_at(segment.address, segment.file_size)?);
        }
        for function in object.functions() {
            image.add_entry(function.code.start, BodyKind::Function, &function.name);
            if function.sized {
                image.set_end(function.code.start, function.code.end);
            }
        }
        // A kernel without code is no place that control comes to.
        for kernel in object.kernels().iter().filter(|kernel| !kernel.code.is_empty()) {
            image.add_entry(kernel.entry, BodyKind::Kernel, &kernel.name);
            if kernel.sized {
                image.set_end(kernel.entry, kernel.code.end);
            }
            image.set_wave_size(
                kernel.entry,
                if kernel.descriptor.is_set(Field::ENABLE_WAVEFRONT_SIZE32) { 32 } else { 64 },
            );
            let preloads = kernel.descriptor.get(Field::KERNARG_PRELOAD_LENGTH) != 0;
            if preloads && object.target().is_some_and(Target::has_preload_prologue) {
                image.set_begin(kernel.entry, kernel.entry + PRELOAD_PROLOGUE);
            }
        }
        let preserved = |slot: u64| {
            let mut covering =
                object.elf().segments.iter().filter(|segment| (segment.address..segment.end()).contains(&slot));
            covering.any(|segment| segment.kind == PT_GNU_RELRO || (segment.is_load() && !segment.is_writable()))
        };
        for relocation in object.relocations() {
            let base = match relocation.kind {
                R_AMDGPU_RELATIVE64 => Some(0),
                R_AMDGPU_ABS64 => object
                    .dynamic_symbols()
                    .get(relocation.symbol as usize)
                    .filter(|symbol| symbol.is_defined())
                    .map(|symbol| symbol.address),
                _ => None,
            };
            match base.map(|base| base.wrapping_add_signed(relocation.addend)) {
                Some(target) if preserved(relocation.address) => image.add_pointer(relocation.address, target),
                target => image.add_variable(relocation.address, target.unwrap_or(NOWHERE)),
            }
        }
        Ok(image)
    }

    /// The same without executable bytes, which may be added again.
    #[must_use]
    pub fn without_code(self) -> Image<'static> {
        Image { code: BTreeMap::new(), ..self }
    }

    /// Adds an executable range (a section of the code object).
    pub fn add_code(&mut self, address: u64, bytes: &'d [u8]) {
        self.code.insert(address, bytes);
    }

    /// Adds the start of a kernel or device function and its name.
    pub fn add_entry(&mut self, address: u64, kind: BodyKind, name: impl Into<String>) {
        Arc::make_mut(&mut self.entries).insert(address, (name.into(), kind));
    }

    /// Says where the code of the kernel or function at `address` ends. A call or trap that is the last of it is taken
    /// for one that does not return: compilers write nothing after such.
    pub fn set_end(&mut self, address: u64, end: u64) {
        Arc::make_mut(&mut self.ends).insert(address, end);
    }

    /// Where the code of the kernel or function at `address` ends, if that was said.
    pub(super) fn end_of(&self, address: u64) -> Option<u64> {
        self.ends.get(&address).copied()
    }

    /// Says how many lanes the waves of the kernel at `address` have. Without it they have as many as the processor's
    /// have by default.
    pub fn set_wave_size(&mut self, address: u64, lanes: u32) {
        Arc::make_mut(&mut self.wave_sizes).insert(address, lanes);
    }

    /// Says that waves of the kernel at `entry` begin at another address: the entry is for firmware that does not
    /// preload arguments (AMDGPUUsage, "Preloaded Kernel Arguments").
    pub fn set_begin(&mut self, entry: u64, begin: u64) {
        Arc::make_mut(&mut self.begins).insert(entry, begin);
    }

    /// Where waves of the kernel at `entry` begin, if that is another address of its code.
    pub(super) fn begin_of(&self, entry: u64) -> Option<u64> {
        let begin = *self.begins.get(&entry)?;
        self.end_of(entry).is_none_or(|end| begin < end).then_some(begin)
    }

    /// Lanes of the waves of the kernel that starts at `address`, if that was said.
    #[must_use]
    pub fn wave_size(&self, address: u64) -> Option<u32> {
        self.wave_sizes.get(&address).copied()
    }

    /// Lanes of the waves of all kernels, if they are the same.
    #[must_use]
    pub fn common_wave_size(&self) -> Option<u32> {
        let mut sizes = self.wave_sizes.values();
        let first = *sizes.next()?;
        sizes.all(|size| *size == first).then_some(first)
    }

    /// Adds an 8-byte slot in memory that the loader fills with a pointer (a relocation), and the address it will point
    /// to for good.
    pub fn add_pointer(&mut self, slot: u64, target: u64) {
        Arc::make_mut(&mut self.pointers).insert(slot, target);
    }

    /// [`Image::add_pointer`] for a slot that the host or a kernel may overwrite: it is not known what it holds when it
    /// is read.
    pub fn add_variable(&mut self, slot: u64, target: u64) {
        Arc::make_mut(&mut self.variables).insert(slot, target);
    }

    /// The executable range around `address`: its start, and its bytes.
    pub(super) fn range_of(&self, address: u64) -> Option<(u64, &'d [u8])> {
        self.code.range(..=address).next_back().map(|(start, bytes)| (*start, *bytes))
    }

    /// The executable bytes from `address` to the end of their range.
    #[must_use]
    pub fn code_from(&self, address: u64) -> Option<&'d [u8]> {
        let (start, bytes) = self.code.range(..=address).next_back()?;
        let bytes = bytes.get(usize::try_from(address - start).ok()?..)?;
        (!bytes.is_empty()).then_some(bytes)
    }

    /// Bytes from `address` to the next kernel or function, or to the end of the executable range.
    pub(super) fn distance_to_next(&self, address: u64) -> u64 {
        let end = self.range_of(address).map_or(address, |(start, bytes)| start.saturating_add(bytes.len() as u64));
        let next = self.entries.range((Bound::Excluded(address), Bound::Unbounded)).next();
        next.map_or(end, |(next, _)| end.min(*next)).saturating_sub(address)
    }

    /// The executable ranges: start address and bytes.
    pub fn code(&self) -> impl Iterator<Item = (u64, &'d [u8])> + '_ {
        self.code.iter().map(|(address, bytes)| (*address, *bytes))
    }

    /// The name of the kernel or function that starts at `address`.
    #[must_use]
    pub fn entry_name(&self, address: u64) -> Option<&str> {
        self.entries.get(&address).map(|(name, _)| name.as_str())
    }

    /// All kernels and functions: address, name, kind.
    pub fn entries(&self) -> impl Iterator<Item = (u64, &str, BodyKind)> + '_ {
        self.entries.iter().map(|(address, (name, kind))| (*address, name.as_str(), *kind))
    }

    /// Where the relocated pointer slot at `slot` points, if it always does.
    #[must_use]
    pub fn pointer(&self, slot: u64) -> Option<u64> {
        self.pointers.get(&slot).copied()
    }

    /// The relocated pointer slots whose target is executable, those that may be overwritten included: functions whose
    /// address is taken.
    pub fn code_pointers(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let all = self.pointers.iter().chain(self.variables.iter());
        all.map(|(slot, target)| (*slot, *target)).filter(|(_, target)| self.code_from(*target).is_some())
    }

    /// The first relocated slot in an address range: its bytes in the file are not those that are loaded.
    #[must_use]
    pub fn slot_in(&self, range: std::ops::Range<u64>) -> Option<u64> {
        // A slot that begins before the range may reach into it.
        let range = range.start.saturating_sub(7)..range.end;
        let first = |slots: &BTreeMap<u64, u64>| slots.range(range.clone()).next().map(|(slot, _)| *slot);
        first(&self.pointers).into_iter().chain(first(&self.variables)).min()
    }

    /// The image without the kernels and functions that start at these addresses.
    #[must_use]
    pub fn without_entries(&self, addresses: &std::collections::BTreeSet<u64>) -> Image<'d> {
        let mut image = self.clone();
        Arc::make_mut(&mut image.entries).retain(|address, _| !addresses.contains(address));
        image
    }
}
