//! Finding the code objects in what a person has: a host executable or library, a raw `.hip_fatbin`, bundles, a bare
//! code object.
//!
//! [`Input::parse`] takes any bytes and says what they are. Bundles may be plain or compressed, one or several after
//! each other; their entries are code objects for one [`TargetId`] each. In a host file the [`Wrapper`]s tell which
//! bundles the HIP runtime will see.

use std::borrow::Cow;
use std::fmt;

use crate::elf::constants::{EM_AMDGPU, EM_X86_64};
use crate::elf::{self, Elf};
use wavetap_base::error::{Error, Kind, Result, ResultExt};

mod compressed;
mod foreign;
mod plain;
mod target_id;
mod wrapper;

#[cfg(test)]
mod tests;

pub use compressed::{CompressedHeader, MAGIC as COMPRESSED_MAGIC, Method, Packer, write_compressed};
pub use plain::{Contents, ENTRY_ALIGN, Layout, MAGIC as PLAIN_MAGIC, Put, append_plain, write_plain};
pub use target_id::TargetId;
pub use wrapper::{
    MAGIC as WRAPPER_MAGIC, POINTER_OFFSET, Pointer, SECTION as WRAPPER_SECTION, SIZE as WRAPPER_SIZE, Wrapper,
};

/// The section of a host file that holds the bundles.
pub const FATBIN_SECTION: &str = ".hip_fatbin";

/// What sort of container an input is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Container {
    /// An x86-64 executable or shared library with bundles inside.
    Host {
        /// The wrappers, in address order within their section.
        wrappers: Vec<Wrapper>,
    },
    /// One or more bundles one after the other (also the contents of `.hip_fatbin`).
    Bundles,
    /// A device ELF by itself.
    CodeObject,
}

/// One entry of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The id as written: `hipv4-amdgcn-amd-amdhsa--gfx90a`.
    pub id: String,
    /// The id's processor and features; `None` for the host's (empty) entry.
    pub target: Option<TargetId>,
    /// Offset within the unpacked bundle.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
    /// What is wrong with its place, if it contradicts the format: then it has no contents.
    pub problem: Option<Error>,
}

impl Entry {
    /// Whether there are bytes that can be read.
    #[must_use]
    pub fn has_contents(&self) -> bool {
        self.size != 0 && self.problem.is_none()
    }
}

/// One bundle.
#[derive(Debug, Clone)]
pub struct Bundle<'d> {
    /// Offset of the bundle in the input file.
    pub offset: u64,
    /// Its size in the input file.
    pub size: u64,
    /// The header, if it is compressed.
    pub compressed: Option<CompressedHeader>,
    /// The entries in file order.
    pub entries: Vec<Entry>,
    /// The plain bundle: part of the input, or unpacked.
    pub content: Cow<'d, [u8]>,
}

/// An entry of a bundle of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryPlace {
    /// Index of the bundle in [`Input::bundles`].
    pub bundle: usize,
    /// Index of the entry in [`Bundle::entries`].
    pub entry: usize,
}

impl fmt::Display for EntryPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entry {} of bundle {}", self.entry, self.bundle)
    }
}

/// `0.2`: bundle and entry, as users name a code object. One that is a file by itself is entry 0 of bundle 0.
#[must_use]
pub fn entry_id(place: Option<EntryPlace>) -> String {
    let EntryPlace { bundle, entry } = place.unwrap_or(EntryPlace { bundle: 0, entry: 0 });
    format!("{bundle}.{entry}")
}

/// Where a code object is, for errors.
#[must_use]
pub fn location(place: Option<EntryPlace>) -> String {
    place.map_or_else(|| "the code object".to_owned(), |place| place.to_string())
}

/// A device code object found in an input.
#[derive(Debug, Clone, Copy)]
pub struct Found<'i> {
    /// Where; `None` when the input is the code object itself.
    pub place: Option<EntryPlace>,
    /// The id it was bundled under.
    pub target: Option<&'i TargetId>,
    /// Its bytes.
    pub bytes: &'i [u8],
}

impl Found<'_> {
    /// The name by which users select it: [`entry_id`].
    #[must_use]
    pub fn id(&self) -> String {
        entry_id(self.place)
    }

    /// Where it is, for errors.
    #[must_use]
    pub fn location(&self) -> String {
        location(self.place)
    }
}

/// An input file, taken apart.
#[derive(Debug, Clone)]
pub struct Input<'d> {
    /// The whole file.
    pub data: &'d [u8],
    /// What it is.
    pub container: Container,
    /// The bundles in file order; none when the input is a bare code object.
    pub bundles: Vec<Bundle<'d>>,
    /// Bundles, and wrappers of bundles, that contradict the format: they are not among [`Input::bundles`] and
    /// [`Input::wrappers`].
    pub malformed: Vec<MalformedBundle>,
}

impl fmt::Display for MalformedBundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.is_wrapper { "a bundle's wrapper" } else { "a bundle" };
        write!(f, "{what}: {}", self.error)
    }
}

/// A bundle, or a wrapper that names one, that cannot be read beside others that can.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedBundle {
    /// Whether it is the wrapper.
    pub is_wrapper: bool,
    /// Where it is in the file, where that is known.
    pub offset: Option<u64>,
    /// What is wrong.
    pub error: Error,
}

impl Bundle<'_> {
    /// The first entry that contradicts the format, if there is one: what is written in its place would not be what was
    /// there.
    #[must_use]
    pub fn problem(&self) -> Option<&Error> {
        self.entries.iter().find_map(|entry| entry.problem.as_ref())
    }

    /// The contents of an entry; empty if there is no such entry, or it cannot be read.
    #[must_use]
    pub fn entry_bytes(&self, index: usize) -> &[u8] {
        let entry = self.entries.get(index).filter(|entry| entry.problem.is_none());
        let range = entry.map(|entry| entry.offset as usize..(entry.offset + entry.size) as usize);
        range.and_then(|range| self.content.get(range)).unwrap_or_default()
    }
}

impl<'d> Bundle<'d> {
    /// Parses the bundle, plain or compressed, at `offset` of `data`; it may end before `data` does.
    ///
    /// # Errors
    /// Malformed when a size lies, entries overlap or the checksum differs; a limit when it would unpack to too much.
    pub fn parse_at(data: &'d [u8], offset: u64) -> Result<Self> {
        Self::parse_within(data, offset, &mut compressed::allowance(data.len() as u64))
    }

    /// The same, with what all bundles of the input may unpack to.
    fn parse_within(data: &'d [u8], offset: u64, allowance: &mut u64) -> Result<Self> {
        let rest = usize::try_from(offset).ok().and_then(|start| data.get(start..));
        let rest =
            rest.ok_or_else(|| Error::malformed("a bundle was expected after the end of the data").at(offset))?;
        let place = || format!("the bundle at {offset:#x}");
        if rest.starts_with(compressed::MAGIC) {
            let header = CompressedHeader::parse(rest).within(place)?;
            *allowance = allowance.checked_sub(header.uncompressed_size).ok_or_else(|| {
                Error::limit("the input's bundles claim to unpack to more than is reasonable for its size")
                    .at(offset)
                    .within(place())
            })?;
            let content = compressed::unpack(rest, &header).within(place)?;
            let entries = plain::parse_table(&content).within(|| format!("the compressed bundle at {offset:#x}"))?;
            return Ok(Bundle {
                offset,
                size: header.total_size,
                compressed: Some(header),
                entries,
                content: Cow::Owned(content),
            });
        }
        let entries = plain::parse_table(rest).within(place)?;
        // Beside others that can be read an entry that cannot costs itself.
        if let Some(problem) =
            entries.iter().find_map(|entry| entry.problem.as_ref()).filter(|_| !entries.iter().any(Entry::has_contents))
        {
            return Err(problem.clone().within(place()));
        }
        let size = plain::end_of(&entries);
        Ok(Bundle { offset, size, compressed: None, entries, content: Cow::Borrowed(&rest[..size as usize]) })
    }
}

/// Whether `data` is a program or library of the host without any device code, as interpreters and launchers are: what
/// they run on a GPU they load.
#[must_use]
pub fn has_no_device_code(data: &[u8]) -> bool {
    let host = |elf: &Elf<'_>| elf.header.machine == EM_X86_64 && foreign::has_no_device_code(elf);
    elf::is_elf(data)
        && Input::parse(data).is_err_and(|error| error.kind() == Kind::Unsupported)
        && Elf::parse(data).is_ok_and(|elf| host(&elf))
}

impl<'d> Input<'d> {
    /// Finds out what `data` is and takes it apart.
    ///
    /// # Errors
    /// Malformed or unsupported, with the place, if it is none of the containers or breaks their format. What
    /// contradicts it beside others that do not is no error: see [`Input::malformed`] and [`Entry::problem`].
    pub fn parse(data: &'d [u8]) -> Result<Self> {
        if elf::is_elf(data) {
            let elf = Elf::parse(data)?;
            return match elf.header.machine {
                EM_AMDGPU => {
                    Ok(Input { data, container: Container::CodeObject, bundles: Vec::new(), malformed: Vec::new() })
                }
                EM_X86_64 => Self::parse_host(&elf),
                other => {
                    Err(Error::unsupported(format!("an ELF file for machine {other}: neither x86-64 nor AMD GPU"))
                        .at(18))
                }
            };
        }
        if !is_bundle(data) {
            return Err(foreign::refuse(data));
        }
        let mut malformed = Vec::new();
        let bundles =
            sequence(data, 0, data.len() as u64, &mut compressed::allowance(data.len() as u64), &mut malformed);
        match malformed.first() {
            Some(first) if bundles.is_empty() => Err(first.error.clone()),
            _ => Ok(Input { data, container: Container::Bundles, bundles, malformed }),
        }
    }

    fn parse_host(elf: &Elf<'d>) -> Result<Self> {
        foreign::check_host(elf)?;
        let mut allowance = compressed::allowance(elf.data.len() as u64);
        let mut bundles = Vec::new();
        let mut sections: Vec<_> =
            elf.sections.iter().filter(|section| section.name == FATBIN_SECTION && section.has_contents()).collect();
        sections.sort_by_key(|section| section.offset);
        let mut behind = 0;
        let mut malformed = Vec::new();
        for section in sections {
            if section.offset < behind {
                return Err(Error::malformed(format!("two sections {FATBIN_SECTION} overlap")).at(section.offset));
            }
            behind = section.offset + elf.contents(section)?.len() as u64;
            let first = malformed.len();
            bundles.extend(sequence(elf.data, section.offset, behind, &mut allowance, &mut malformed));
            for part in &mut malformed[first..] {
                part.error = part.error.clone().within(FATBIN_SECTION);
            }
        }
        let mut wrappers = wrapper::read(elf, &mut malformed)?;
        let has_wrappers = !wrappers.is_empty() || malformed.iter().any(|part| part.is_wrapper);
        wrappers.retain(|wrapper| {
            // The bundle itself was told of.
            let known = |offset| malformed.iter().any(|part| !part.is_wrapper && part.offset == Some(offset));
            match named_by(elf, wrapper, &mut bundles, &mut allowance) {
                Ok(()) => true,
                Err((offset, error)) => {
                    if !offset.is_some_and(known) {
                        malformed.push(MalformedBundle { is_wrapper: true, offset: Some(wrapper.file_offset), error });
                    }
                    false
                }
            }
        });
        bundles.sort_by_key(|bundle| bundle.offset);
        let mut end = 0;
        bundles.retain(|bundle| {
            let apart = bundle.offset >= end;
            if apart {
                end = bundle.offset + bundle.size;
            } else {
                let error = Error::malformed(format!("it lies in the bundle before it, which ends at {end:#x}"));
                let error = error.at(bundle.offset).within("a bundle");
                malformed.push(MalformedBundle { is_wrapper: false, offset: Some(bundle.offset), error });
            }
            apart
        });
        if bundles.is_empty() {
            return Err(malformed.into_iter().next().map_or_else(|| foreign::without_bundles(elf), |part| part.error));
        }
        wrappers.retain_mut(|wrapper| {
            let offset = elf.file_offset(wrapper.bundle_address, 1);
            let index = bundles.iter().position(|bundle| Some(bundle.offset) == offset);
            wrapper.bundle = index.unwrap_or_default();
            index.is_some()
        });
        // Without any that can be followed it is not known what the HIP runtime sees.
        if has_wrappers && wrappers.is_empty() {
            let known = malformed.iter().find(|part| part.is_wrapper).or(malformed.first());
            return Err(known.map_or_else(|| Error::internal("wrappers were lost"), |part| part.error.clone()));
        }
        Ok(Input { data: elf.data, container: Container::Host { wrappers }, bundles, malformed })
    }

    /// The wrappers of a host file; none otherwise.
    #[must_use]
    pub fn wrappers(&self) -> &[Wrapper] {
        match &self.container {
            Container::Host { wrappers } => wrappers,
            _ => &[],
        }
    }

    /// Whether the HIP runtime will see a bundle: a wrapper names it, or the input has no wrappers at all.
    #[must_use]
    pub fn is_live(&self, bundle: usize) -> bool {
        let wrappers = self.wrappers();
        wrappers.is_empty() || wrappers.iter().any(|wrapper| wrapper.bundle == bundle)
    }

    /// The device code objects that the HIP runtime will see, in file order.
    pub fn code_objects(&self) -> impl Iterator<Item = Found<'_>> {
        let bare = matches!(self.container, Container::CodeObject).then_some(Found {
            place: None,
            target: None,
            bytes: self.data,
        });
        let live = |found: &Found<'_>| found.place.is_some_and(|place| self.is_live(place.bundle));
        bare.into_iter().chain(self.bundled().filter(live))
    }

    /// All device code objects in bundles, those included that the HIP runtime will not see.
    pub fn bundled(&self) -> impl Iterator<Item = Found<'_>> {
        self.bundles.iter().enumerate().flat_map(|(number, bundle)| {
            bundle.entries.iter().enumerate().filter_map(move |(index, entry)| {
                let (target, bytes) = (entry.target.as_ref()?, bundle.entry_bytes(index));
                let place = Some(EntryPlace { bundle: number, entry: index });
                elf::is_elf(bytes).then_some(Found { place, target: Some(target), bytes })
            })
        })
    }
}

fn is_bundle(data: &[u8]) -> bool {
    data.starts_with(PLAIN_MAGIC) || data.starts_with(COMPRESSED_MAGIC)
}

/// Makes sure that the bundle that a wrapper names is among `bundles`. The error comes with the bundle's offset, where
/// that is known.
fn named_by<'d>(
    elf: &Elf<'d>,
    wrapper: &Wrapper,
    bundles: &mut Vec<Bundle<'d>>,
    allowance: &mut u64,
) -> Result<(), (Option<u64>, Error)> {
    let place = || format!("the wrapper at {:#x}", wrapper.file_offset);
    let Some(offset) = elf.file_offset(wrapper.bundle_address, 1) else {
        let message = format!("it names a bundle at address {:#x}, which is not in the file", wrapper.bundle_address);
        return Err((None, Error::malformed(message).at(wrapper.file_offset + POINTER_OFFSET).within(place())));
    };
    if !bundles.iter().any(|bundle| bundle.offset == offset) {
        bundles.push(
            Bundle::parse_within(elf.data, offset, allowance).within(place).map_err(|error| (Some(offset), error))?,
        );
    }
    Ok(())
}

/// Where a bundle may start when what comes before it cannot be read.
const RESUME_ALIGN: u64 = 8;

/// The bundles between two offsets of `data`, with nothing but zeros between them. After one that cannot be read, and
/// after anything else, it goes on with the next place that looks like a bundle and is one.
fn sequence<'d>(
    data: &'d [u8],
    start: u64,
    end: u64,
    allowance: &mut u64,
    malformed: &mut Vec<MalformedBundle>,
) -> Vec<Bundle<'d>> {
    let data = &data[..end as usize];
    let mut bundles = Vec::new();
    let mut at = start;
    // Whether the place is one where a bundle has to be, not one that merely looks like it.
    let mut expected = true;
    while let Some(zeros) = data[at as usize..].iter().position(|&byte| byte != 0) {
        if expected {
            at += zeros as u64;
        }
        let parsed = if is_bundle(&data[at as usize..]) {
            Bundle::parse_within(data, at, allowance)
        } else {
            Err(Error::malformed("an offload bundle was expected").at(at))
        };
        match parsed {
            Ok(bundle) => {
                at += bundle.size;
                bundles.push(bundle);
                expected = true;
                continue;
            }
            Err(error) if expected => malformed.push(MalformedBundle { is_wrapper: false, offset: Some(at), error }),
            // Four bytes that mean nothing.
            Err(_) => {}
        }
        expected = false;
        let next = (at + 1).next_multiple_of(RESUME_ALIGN);
        let Some(found) = (next..end).step_by(RESUME_ALIGN as usize).find(|&place| is_bundle(&data[place as usize..]))
        else {
            break;
        };
        at = found;
    }
    bundles
}
