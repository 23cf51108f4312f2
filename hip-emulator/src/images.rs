//! Fat binaries and modules: finding the code object for the device and loading it.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;

use wavetap::at_load::Prepared;
use wavetap::code_object::{CodeObject, DESCRIPTOR_SIZE, KernelDescriptor, KernelMetadata};
use wavetap::collect::session::Session;
use wavetap::elf;
use wavetap::emulator::{Device, LoadedObject, ObjectId};
use wavetap::error::{Error, Result, ResultExt};
use wavetap::offload_bundle::{Bundle, TargetId};
use wavetap::profile::map::Refused;

use crate::choice::runs_on;
use crate::counters::Counters;
use crate::messages::complain;
use crate::raw;
use crate::settings::Settings;

/// A variable that lives in host memory: the code object's symbol of that name holds its address.
#[derive(Debug, Clone)]
pub(crate) struct Managed {
    pub(crate) name: String,
    pub(crate) address: u64,
}

/// One code object of an image.
struct Code {
    target: TargetId,
    bytes: Vec<u8>,
}

/// A registered fat binary or a module.
#[derive(Default)]
pub(crate) struct Image {
    /// Where a registered bundle lies in the program; it is taken apart when it is first needed.
    bundle: Option<usize>,
    codes: Vec<Code>,
    /// Entries of its bundle that contradict the format.
    unreadable: Vec<(TargetId, Error)>,
    pub(crate) managed: Vec<Managed>,
    /// Where its code object is to be loaded, if that matters.
    pub(crate) place: Option<u64>,
    pub(crate) loaded: Option<Loaded>,
}

/// What a kernel needs.
#[derive(Debug, Clone)]
pub(crate) struct Kernel {
    /// As it is loaded.
    pub(crate) loaded: Arc<KernelMetadata>,
    /// As the program knows it: without the counting code that has been put into it.
    pub(crate) original: Arc<KernelMetadata>,
}

/// An image's code object in device memory.
pub(crate) struct Loaded {
    pub(crate) object: LoadedObject,
    pub(crate) bytes: Vec<u8>,
    pub(crate) kernels: HashMap<String, Kernel>,
    pub(crate) counters: Option<Counters>,
    /// Descriptors of original kernels, for launches that cannot run what counts: their addresses.
    originals: HashMap<String, u64>,
    /// Where it was to be rewritten when it was loaded and no kernel of it counts: those that were selected, and why
    /// they cannot.
    pub(crate) unrewritten: Option<Vec<Refused>>,
}

/// A kernel of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KernelRef {
    pub(crate) image: usize,
    pub(crate) name: String,
}

/// The code of a program, and what names it.
#[derive(Default)]
pub(crate) struct LoadedCode {
    pub(crate) images: Vec<Option<Image>>,
    /// Kernels by the address of their host stub.
    pub(crate) kernels: HashMap<usize, KernelRef>,
    /// Device variables by the address of their host shadow.
    pub(crate) variables: HashMap<usize, KernelRef>,
    /// What `hipModuleGetFunction` gave out; a handle is an index plus one.
    pub(crate) functions: Vec<KernelRef>,
}

/// The code object that is loaded as this one.
pub(crate) fn bytes_of(images: &[Option<Image>], object: Option<ObjectId>) -> Option<&[u8]> {
    let mut loaded = images.iter().flatten().filter_map(|image| image.loaded.as_ref());
    loaded.find(|loaded| Some(loaded.object.id) == object).map(|loaded| &loaded.bytes[..])
}

/// The code object of a kernel as it was loaded, if it still is.
pub(crate) fn loaded_bytes<'i>(images: &'i [Option<Image>], kernel: &KernelRef) -> Option<&'i [u8]> {
    let loaded = images.get(kernel.image)?.as_ref()?.loaded.as_ref()?;
    Some(&loaded.bytes)
}

impl Image {
    /// The bundle that lies at an address of this program.
    pub(crate) fn registered(address: usize) -> Self {
        Image { bundle: Some(address), ..Image::default() }
    }

    /// A module: a bundle or a bare code object that lies at an address of this program and may be gone later.
    pub(crate) fn module(address: usize) -> Result<Self> {
        let data = mapped_from(address)?;
        if !elf::is_elf(data) {
            let mut image = Image::registered(address);
            image.unpack()?;
            return Ok(image);
        }
        // The mapping goes on after the code object; its section headers come last in what LLD writes, its contents
        // anywhere.
        let end = elf_end(data)?;
        Self::bare(data[..end].to_vec())
    }

    /// A module in a file.
    pub(crate) fn file(data: Vec<u8>) -> Result<Self> {
        if elf::is_elf(&data) {
            return Self::bare(data);
        }
        let bundle = Bundle::parse_at(&data, 0)?;
        Ok(Image { codes: codes(&bundle), unreadable: unreadable(&bundle), ..Image::default() })
    }

    fn bare(bytes: Vec<u8>) -> Result<Self> {
        let id = CodeObject::parse(&bytes)?.target_id();
        let target = TargetId::parse(&id).ok_or_else(|| Error::unsupported(format!("a code object for {id}")))?;
        Ok(Image { codes: vec![Code { target, bytes }], ..Image::default() })
    }

    /// Takes a registered bundle apart.
    fn unpack(&mut self) -> Result<()> {
        if let Some(address) = self.bundle.take() {
            let data = mapped_from(address)?;
            let bundle = Bundle::parse_at(data, 0)?;
            (self.codes, self.unreadable) = (codes(&bundle), unreadable(&bundle));
        }
        Ok(())
    }

    /// The targets that it has code for; none if it cannot be read, which loading it will report.
    pub(crate) fn targets(&mut self) -> impl Iterator<Item = &TargetId> {
        let _ = self.unpack();
        self.codes.iter().map(|code| &code.target)
    }

    /// Loads the code object for the device, unless that has been done.
    pub(crate) fn load(
        &mut self,
        device: &mut Device,
        id: &TargetId,
        settings: &Settings,
        session: &mut Session,
    ) -> Result<&mut Loaded> {
        if self.loaded.is_none() {
            self.unpack()?;
            let fitting = self.codes.iter().filter(|code| runs_on(&code.target, id));
            let named = |target: &TargetId| usize::from(target.xnack.is_some()) + usize::from(target.sramecc.is_some());
            // Code for the very processor before that for all of its kind, and among either what names most features.
            let code = fitting
                .max_by_key(|code| (code.target.processor == id.processor, named(&code.target)))
                .ok_or_else(|| {
                    if let Some((_, problem)) = self.unreadable.iter().find(|(target, _)| runs_on(target, id)) {
                        return problem.clone();
                    }
                    let there: Vec<String> = self.codes.iter().map(|code| code.target.to_string()).collect();
                    Error::unsupported(format!("no code object for {id}; there is code for {}", there.join(", ")))
                })?;
            self.loaded = Some(
                Loaded::new(device, (code.bytes.clone(), self.place), settings, session)
                    .within(|| format!("the code object for {}", code.target))?,
            );
            self.set_managed(device)?;
        }
        self.loaded.as_mut().ok_or_else(|| Error::internal("an image was loaded and is not"))
    }

    fn set_managed(&self, device: &mut Device) -> Result<()> {
        let Some(loaded) = &self.loaded else { return Ok(()) };
        for variable in &self.managed {
            if let Some(symbol) = loaded.object.symbols.get(&variable.name) {
                device.write(symbol.address, &variable.address.to_le_bytes())?;
            }
        }
        Ok(())
    }
}

impl Loaded {
    /// The kernel of this name, of its descriptor's symbol or in its metadata, by the former.
    pub(crate) fn kernel_named<'n>(&'n self, name: &'n str) -> Option<&'n str> {
        if self.kernels.contains_key(name) {
            return Some(name);
        }
        self.kernels.iter().find(|(_, kernel)| kernel.original.name == name).map(|(symbol, _)| symbol.as_str())
    }

    /// The address of a descriptor with which the original of a kernel runs, whose code is where it was; none if the
    /// site table does not have it.
    pub(crate) fn original(&mut self, device: &mut Device, kernel: &str) -> Option<u64> {
        if let Some(address) = self.originals.get(kernel) {
            return Some(*address);
        }
        let mapped = self.counters.as_ref()?.map.kernels.iter().find(|mapped| mapped.name == kernel)?;
        let mut descriptor = KernelDescriptor::from_bytes(mapped.declared?.descriptor?.0);
        let there = self.object.kernel(kernel)?;
        let address = device.malloc(DESCRIPTOR_SIZE, DESCRIPTOR_SIZE).ok()?;
        let entry = there.wrapping_add_signed(descriptor.entry_byte_offset());
        descriptor.set_entry_byte_offset(entry.wrapping_sub(address) as i64);
        device.write(address, descriptor.bytes()).ok()?;
        self.originals.insert(kernel.to_owned(), address);
        Some(address)
    }

    /// Kernels of it that do not count and were to.
    pub(crate) fn refused(&self) -> &[Refused] {
        self.counters
            .as_ref()
            .map_or_else(|| self.unrewritten.as_deref().unwrap_or_default(), |counters| &counters.map.refused)
    }

    /// Loads a code object, at an address if one is given.
    fn new(
        device: &mut Device,
        (bytes, place): (Vec<u8>, Option<u64>),
        settings: &Settings,
        session: &mut Session,
    ) -> Result<Self> {
        let prepared = match &settings.rewriting {
            Some(rewriting) => rewriting.prepare(bytes),
            None => Prepared::unchanged(bytes),
        };
        let Prepared { bytes, refused, problem } = prepared;
        if let Some(problem) = problem {
            complain("a code object that was loaded is not counted", &problem);
        }
        let object = match place {
            Some(place) => device.load_at(&bytes, place)?,
            None => device.load(&bytes)?,
        };
        let code = CodeObject::parse(&bytes)?;
        let counters = Counters::attach(session, device, &object, &code)?;
        let mut originals =
            counters.as_ref().map(|counters| counters.originals(&code)).transpose()?.unwrap_or_default();
        let mut kernels = HashMap::new();
        for kernel in code.kernels() {
            let Some(loaded) = kernel.metadata.clone() else { continue };
            let original = originals.remove(&kernel.name).map_or_else(|| Arc::clone(&loaded), Arc::new);
            kernels.insert(kernel.name.clone(), Kernel { loaded, original });
        }
        Ok(Loaded { object, kernels, counters, bytes, originals: HashMap::new(), unrewritten: refused })
    }
}

fn codes(bundle: &Bundle<'_>) -> Vec<Code> {
    let entries = bundle.entries.iter().enumerate();
    let device = entries.filter_map(|(index, entry)| Some((entry.target.clone()?, bundle.entry_bytes(index))));
    device
        .filter(|(_, bytes)| elf::is_elf(bytes))
        .map(|(target, bytes)| Code { target, bytes: bytes.to_vec() })
        .collect()
}

fn unreadable(bundle: &Bundle<'_>) -> Vec<(TargetId, Error)> {
    bundle.entries.iter().filter_map(|entry| Some((entry.target.clone()?, entry.problem.clone()?))).collect()
}

/// The readable bytes from an address of this process to the end of the mappings that follow one another there.
fn mapped_from<'m>(address: usize) -> Result<&'m [u8]> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    let mut end = None;
    for (start, stop) in maps.lines().filter_map(readable_range) {
        let inside = (start..stop).contains(&address);
        if inside || end == Some(start) {
            end = Some(stop);
        }
    }
    let end = end.ok_or_else(|| Error::malformed(format!("no readable memory at {address:#x}")))?;
    Ok(raw::mapped(address, end - address))
}

/// The range of a line of `/proc/self/maps`, if it may be read.
fn readable_range(line: &str) -> Option<(usize, usize)> {
    let (range, rest) = line.split_once(' ')?;
    let (start, stop) = range.split_once('-')?;
    rest.starts_with('r').then_some(())?;
    Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(stop, 16).ok()?))
}

/// Where the ELF file at the start of `data` ends: after the last of its headers, segments and sections.
fn elf_end(data: &[u8]) -> Result<usize> {
    use wavetap::bytes::{u16_at, u32_at, u64_at};
    /// Sizes and offsets from the ELF-64 specification.
    const SECTION_HEADER: u64 = 64;
    const PROGRAM_HEADER: u64 = 56;
    const NOBITS: u32 = 8;
    let (programs, sections) = (u64_at(data, 32, "e_phoff")?, u64_at(data, 40, "e_shoff")?);
    let (program_count, section_count) =
        (u64::from(u16_at(data, 56, "e_phnum")?), u64::from(u16_at(data, 60, "e_shnum")?));
    let overflow = || Error::malformed("an ELF header's sizes overflow");
    let after = |offset: u64, size: u64| offset.checked_add(size).ok_or_else(overflow);
    let mut end =
        after(sections, section_count * SECTION_HEADER)?.max(after(programs, program_count * PROGRAM_HEADER)?);
    for index in 0..program_count {
        let header = after(programs, index * PROGRAM_HEADER)?;
        end = end.max(after(u64_at(data, header + 8, "p_offset")?, u64_at(data, header + 32, "p_filesz")?)?);
    }
    for index in 0..section_count {
        let header = after(sections, index * SECTION_HEADER)?;
        if u32_at(data, header + 4, "sh_type")? != NOBITS {
            end = end.max(after(u64_at(data, header + 24, "sh_offset")?, u64_at(data, header + 32, "sh_size")?)?);
        }
    }
    usize::try_from(end)
        .ok()
        .filter(|end| *end <= data.len())
        .ok_or_else(|| Error::malformed("an ELF file reaches past mapped memory"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_is_mapped_at_an_address() {
        let text = b"some bytes of this program";
        let found = mapped_from(text.as_ptr() as usize).unwrap();
        assert!(found.starts_with(text));
        assert!(mapped_from(16).is_err());
    }

    #[test]
    fn reads_the_table_of_mappings() {
        assert_eq!(readable_range("7f00-7f80 r--p 00000000 08:01 5 /lib/x"), Some((0x7f00, 0x7f80)));
        assert_eq!(readable_range("7f00-7f80 ---p 00000000 08:01 5"), None);
        assert_eq!(readable_range("nothing"), None);
    }

    #[test]
    fn an_elf_file_in_memory_ends_where_it_says() {
        let own = fs::read("/proc/self/exe").unwrap();
        let mut longer = own.clone();
        longer.extend([0xee; 100]);
        assert_eq!(elf_end(&longer).unwrap(), elf_end(&own).unwrap());
        assert!(elf_end(&own).unwrap() > own.len() - 64);
        assert!(elf_end(&own[..own.len() / 2]).is_err());
    }
}
