//! The `NT_AMDGPU_METADATA` note: MessagePack that tells the runtime each kernel's arguments and sizes (AMDGPUUsage,
//! "Code Object Metadata").
//!
//! The note is kept whole as an [`rmpv::Value`], which encodes to the same bytes again; [`KernelMetadata`] is a typed
//! view of what this program needs.

use std::ops::Range;
use std::sync::Arc;

use rmpv::{Value, ValueRef};

use crate::elf::constants::NoteType;
use crate::elf::{Elf, Note};
use wavetap_base::error::{Error, Result, ResultExt};

/// Largest note that is read.
const MAX_SIZE: u64 = 64 << 20;

/// Deepest nesting that is read; compilers write five levels.
const MAX_DEPTH: usize = 32;

/// Owner of the metadata note, with its terminating zero.
pub const NOTE_OWNER: &[u8; 7] = b"AMDGPU\0";

/// The note's type (AMDGPUUsage, "Note Records").
const NT_AMDGPU_METADATA: NoteType = NoteType(32);

/// Notes and their parts are aligned to this.
const NOTE_ALIGN: usize = 4;

/// The metadata of a code object.
#[derive(Debug, Clone, PartialEq)]
pub struct Metadata {
    /// As written: as values it takes ten times the room.
    encoded: Vec<u8>,
    /// The kernels, typed; [`super::Kernel::metadata`] are the same.
    pub kernels: Vec<Arc<KernelMetadata>>,
    /// File offset of the note's descriptor (the MessagePack data).
    pub file_offset: u64,
    /// Size of the descriptor in bytes.
    pub size: u64,
    /// File ranges of further descriptors, ascending, of which the kernels are here as well: an object that was linked
    /// from several has a note of each.
    pub further: Vec<Range<u64>>,
    /// Entries that are not of the documented shape. Their kernels are not among [`Metadata::kernels`].
    pub malformed: Vec<MalformedEntry>,
}

/// The entry of a kernel that is not of the documented shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedEntry {
    /// The symbol of the kernel's descriptor, where the entry has one.
    pub symbol: Option<String>,
    /// What is wrong.
    pub error: Error,
}

/// What the metadata says of one kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KernelMetadata {
    /// The kernel's name (mangled).
    pub name: String,
    /// The symbol of its descriptor: the name with `.kd`.
    pub symbol: String,
    /// Bytes of kernel arguments, hidden ones included.
    pub kernarg_segment_size: u64,
    /// Alignment of the kernel arguments.
    pub kernarg_segment_align: u64,
    /// Static LDS in bytes.
    pub group_segment_fixed_size: u64,
    /// Scratch bytes per work-item.
    pub private_segment_fixed_size: u64,
    /// Largest workgroup it may be launched with.
    pub max_flat_workgroup_size: u64,
    /// Lanes of a wave.
    pub wavefront_size: u64,
    /// Scalar registers used, VCC and the like included.
    pub sgpr_count: u64,
    /// Vector registers used (AGPRs included where they share the allocation).
    pub vgpr_count: u64,
    /// AGPRs used; 0 when it does not say.
    pub agpr_count: u64,
    /// Scalar registers spilled.
    pub sgpr_spill_count: u64,
    /// Vector registers spilled.
    pub vgpr_spill_count: u64,
    /// The scratch size is not known statically.
    pub uses_dynamic_stack: bool,
    /// The workgroup size the source requires, x, y, z.
    pub reqd_workgroup_size: Option<[u64; 3]>,
    /// Workgroups of a cluster in x, y, z, where the code is compiled for clusters of this size (gfx125x).
    pub cluster_dims: Option<[u64; 3]>,
    /// The arguments in the order written.
    pub args: Vec<Argument>,
}

/// One kernel argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// Its name in the source, if it says.
    pub name: Option<String>,
    /// Offset in the kernel argument segment.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
    /// What it is.
    pub value_kind: ValueKind,
}

macro_rules! value_kinds {
    ($($variant:ident $text:literal $doc:literal)*) => {
        /// What an argument is; the hidden ones are filled in by the runtime.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum ValueKind {
            $(#[doc = $doc] $variant,)*
            /// A kind that is not known here, as written.
            Other(String),
        }

        impl ValueKind {
            /// The kind of this name.
            #[must_use]
            pub fn parse(text: &str) -> Self {
                match text {
                    $($text => ValueKind::$variant,)*
                    other => ValueKind::Other(other.to_owned()),
                }
            }

            /// Its name as written in the metadata.
            #[must_use]
            pub fn name(&self) -> &str {
                match self {
                    $(ValueKind::$variant => $text,)*
                    ValueKind::Other(name) => name,
                }
            }
        }
    };
}

value_kinds! {
    ByValue "by_value" "Bytes copied by value."
    GlobalBuffer "global_buffer" "A pointer to memory."
    DynamicSharedPointer "dynamic_shared_pointer" "A pointer to LDS that the launch sizes."
    Sampler "sampler" "A sampler."
    Image "image" "An image."
    Pipe "pipe" "A pipe."
    Queue "queue" "A queue."
    HiddenBlockCountX "hidden_block_count_x" "u32: complete workgroups in x."
    HiddenBlockCountY "hidden_block_count_y" "u32: complete workgroups in y."
    HiddenBlockCountZ "hidden_block_count_z" "u32: complete workgroups in z."
    HiddenGroupSizeX "hidden_group_size_x" "u16: workgroup size in x."
    HiddenGroupSizeY "hidden_group_size_y" "u16: workgroup size in y."
    HiddenGroupSizeZ "hidden_group_size_z" "u16: workgroup size in z."
    HiddenRemainderX "hidden_remainder_x" "u16: size of the partial workgroup in x."
    HiddenRemainderY "hidden_remainder_y" "u16: size of the partial workgroup in y."
    HiddenRemainderZ "hidden_remainder_z" "u16: size of the partial workgroup in z."
    HiddenGlobalOffsetX "hidden_global_offset_x" "u64: first work-item id in x."
    HiddenGlobalOffsetY "hidden_global_offset_y" "u64: first work-item id in y."
    HiddenGlobalOffsetZ "hidden_global_offset_z" "u64: first work-item id in z."
    HiddenGridDims "hidden_grid_dims" "u16: dimensions of the grid."
    HiddenNone "hidden_none" "Nothing; the place is reserved."
    HiddenPrintfBuffer "hidden_printf_buffer" "Address of the printf buffer."
    HiddenHostcallBuffer "hidden_hostcall_buffer" "Address of the host call buffer."
    HiddenDefaultQueue "hidden_default_queue" "Address of the default queue."
    HiddenCompletionAction "hidden_completion_action" "Address for device-side enqueue."
    HiddenMultigridSyncArg "hidden_multigrid_sync_arg" "Address of the multi-grid barrier."
    HiddenHeapV1 "hidden_heap_v1" "Address of the device heap."
    HiddenDynamicLdsSize "hidden_dynamic_lds_size" "u32: bytes of LDS that the launch added."
    HiddenPrivateBase "hidden_private_base" "u32: high half of the scratch aperture."
    HiddenSharedBase "hidden_shared_base" "u32: high half of the LDS aperture."
    HiddenQueuePtr "hidden_queue_ptr" "Address of the queue."
}

impl ValueKind {
    /// Whether the runtime fills it in.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.name().starts_with("hidden_")
    }
}

impl Metadata {
    /// Finds and reads the metadata note, or several as one, as loaders do (comgr, `mergeNoteRecords`); `None` when the
    /// object has none.
    ///
    /// # Errors
    /// Malformed when a note or its contents break the format; unsupported when several notes do not go together; a
    /// limit when they are too large or too deep.
    pub fn read(elf: &Elf<'_>) -> Result<Option<Self>> {
        let decode =
            |note: &Note<'_>| Self::decode(note.descriptor, note.file_offset).within(|| "the metadata note".into());
        let notes = elf.notes(NOTE_OWNER, NT_AMDGPU_METADATA)?;
        let Some((first, further)) = notes.split_first() else { return Ok(None) };
        let mut metadata = decode(first)?;
        if further.is_empty() {
            return Ok(Some(metadata));
        }
        let total: u64 = notes.iter().map(|note| note.descriptor.len() as u64).sum();
        if total > MAX_SIZE {
            return Err(Error::limit(format!("metadata notes of {total:#x} bytes, at most {MAX_SIZE:#x} are read"))
                .at(first.file_offset));
        }
        let mut value = metadata.value()?;
        for note in further {
            let more = decode(note)?;
            merge(&mut value, more.value()?).map_err(|error| error.at(note.file_offset))?;
            metadata.kernels.extend(more.kernels);
            metadata.malformed.extend(more.malformed);
            metadata.further.push(note.file_offset..note.file_offset + note.descriptor.len() as u64);
        }
        metadata.encoded = encode(&value)?;
        Ok(Some(metadata))
    }

    /// Decodes the descriptor of a metadata note that lies at `file_offset`.
    ///
    /// # Errors
    /// Malformed when it is no MessagePack, or has no list of kernels of the documented shape; a limit when it is too
    /// large or too deep. An entry of the list that is not as documented is no error: see [`Metadata::malformed`].
    pub fn decode(encoded: &[u8], file_offset: u64) -> Result<Self> {
        let size = encoded.len() as u64;
        if size > MAX_SIZE {
            return Err(
                Error::limit(format!("metadata of {size:#x} bytes, at most {MAX_SIZE:#x} are read")).at(file_offset)
            );
        }
        // Borrowed values take a fraction of the time. What is wrong, and where, is said by those that own what they
        // have.
        let owned;
        let value = match rmpv::decode::read_value_ref_with_max_depth(&mut &encoded[..], MAX_DEPTH) {
            Ok(value) => value,
            Err(_) => {
                owned = decode_value(encoded, file_offset)?;
                owned.as_ref()
            }
        };
        if !matches!(value, ValueRef::Map(_)) {
            return Err(Error::malformed("metadata is not a map").at(file_offset));
        }
        let (mut kernels, mut malformed) = (Vec::new(), Vec::new());
        if let Some(list) = find(&value, "amdhsa.kernels") {
            let list =
                list.as_array().ok_or_else(|| Error::malformed("amdhsa.kernels is not a list").at(file_offset))?;
            for (index, kernel) in list.iter().enumerate() {
                match KernelMetadata::read(kernel).within(|| format!("kernel {index} of the metadata")) {
                    Ok(typed) => kernels.push(Arc::new(typed)),
                    Err(error) => {
                        let symbol = text(kernel, ".symbol").ok().flatten();
                        malformed.push(MalformedEntry { symbol, error: error.at(file_offset) });
                    }
                }
            }
        }
        Ok(Metadata { encoded: encoded.to_vec(), kernels, file_offset, size, further: Vec::new(), malformed })
    }

    /// The file ranges of the descriptors that it was read from, ascending.
    pub fn descriptors(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        std::iter::once(self.file_offset..self.file_offset + self.size).chain(self.further.iter().cloned())
    }

    /// Whether it says exactly this.
    #[must_use]
    pub fn is(&self, value: &Value) -> bool {
        // What is encoded alike need not be made into values, which take ten times the room.
        encode(value).is_ok_and(|encoded| encoded == self.encoded) || self.value().is_ok_and(|own| own == *value)
    }

    /// Everything, as values.
    ///
    /// # Errors
    /// None: it was read before.
    pub fn value(&self) -> Result<Value> {
        decode_value(&self.encoded, self.file_offset)
    }
}

/// Adds what a further note says: of the same version, more kernels, and what is printed only if the first does not
/// say.
fn merge(value: &mut Value, more: Value) -> Result<()> {
    let refused =
        |what: &str| Error::unsupported(format!("a further metadata note does not go with the first: {what}"));
    let version = lookup(&more, "amdhsa.version");
    if version.is_none() || version != lookup(value, "amdhsa.version") {
        return Err(refused("it is of another version"));
    }
    let Value::Map(pairs) = more else { return Err(refused("it is no map")) };
    for (key, more) in pairs {
        match (key.as_str(), more) {
            (Some("amdhsa.kernels"), Value::Array(more)) => match lookup_mut(value, "amdhsa.kernels") {
                Some(Value::Array(kernels)) => kernels.extend(more),
                _ => return Err(refused("the first has no kernels")),
            },
            (Some("amdhsa.printf"), more) => match value {
                Value::Map(pairs) if !pairs.iter().any(|(known, _)| *known == key) => pairs.push((key, more)),
                _ => return Err(refused("both have strings to print")),
            },
            _ => {}
        }
    }
    Ok(())
}

/// The value that bytes at a file offset encode. What follows it is not looked at.
fn decode_value(encoded: &[u8], file_offset: u64) -> Result<Value> {
    let mut rest = encoded;
    rmpv::decode::read_value_with_max_depth(&mut rest, MAX_DEPTH).map_err(|error| {
        let at = file_offset + (encoded.len() - rest.len()) as u64;
        Error::malformed(format!("metadata is not MessagePack: {error}")).at(at)
    })
}

/// Encodes metadata. What [`Metadata::decode`] read from a compiler's note gives the same bytes again.
///
/// # Errors
/// Internal if the encoder fails.
pub fn encode(value: &Value) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    rmpv::encode::write_value(&mut out, value)
        .map_err(|error| Error::internal(format!("metadata does not encode: {error}")))?;
    Ok(out)
}

/// Sets a number (`.sgpr_count`, `.group_segment_fixed_size`, …) of the kernel whose descriptor has this symbol.
///
/// # Errors
/// Malformed if the metadata has no such kernel.
pub fn set_kernel_number(value: &mut Value, symbol: &str, key: &str, number: u64) -> Result<()> {
    set_kernel_value(value, symbol, key, Value::from(number))
}

/// Sets any value of the kernel whose descriptor has this symbol; a key that is not there is added at the end.
///
/// # Errors
/// Malformed if the metadata has no such kernel.
pub fn set_kernel_value(value: &mut Value, symbol: &str, key: &str, new: Value) -> Result<()> {
    let missing = || Error::malformed(format!("the metadata has no kernel with the descriptor {symbol}"));
    let Some(Value::Array(kernels)) = lookup_mut(value, "amdhsa.kernels") else {
        return Err(missing());
    };
    let named = |kernel: &&mut Value| lookup(kernel, ".symbol").and_then(Value::as_str) == Some(symbol);
    let Some(Value::Map(pairs)) = kernels.iter_mut().find(named) else {
        return Err(missing());
    };
    match pairs.iter_mut().find(|(name, _)| name.as_str() == Some(key)) {
        Some((_, place)) => *place = new,
        None => pairs.push((Value::from(key), new)),
    }
    Ok(())
}

/// A whole metadata note around an encoded descriptor, padded to its alignment.
#[must_use]
pub fn note_bytes(descriptor: &[u8]) -> Vec<u8> {
    let mut note = Vec::with_capacity(descriptor.len() + 32);
    note.extend_from_slice(&(NOTE_OWNER.len() as u32).to_le_bytes());
    note.extend_from_slice(&(descriptor.len() as u32).to_le_bytes());
    note.extend_from_slice(&NT_AMDGPU_METADATA.0.to_le_bytes());
    note.extend_from_slice(NOTE_OWNER);
    note.resize(note.len().next_multiple_of(NOTE_ALIGN), 0);
    note.extend_from_slice(descriptor);
    note.resize(note.len().next_multiple_of(NOTE_ALIGN), 0);
    note
}

fn lookup<'v>(map: &'v Value, key: &str) -> Option<&'v Value> {
    map.as_map()?.iter().find(|(name, _)| name.as_str() == Some(key)).map(|(_, value)| value)
}

fn lookup_mut<'v>(map: &'v mut Value, key: &str) -> Option<&'v mut Value> {
    let Value::Map(pairs) = map else { return None };
    pairs.iter_mut().find(|(name, _)| name.as_str() == Some(key)).map(|(_, value)| value)
}

/// [`lookup`] among borrowed values.
fn find<'v, 'a>(map: &'v ValueRef<'a>, key: &str) -> Option<&'v ValueRef<'a>> {
    let ValueRef::Map(pairs) = map else { return None };
    pairs.iter().find(|(name, _)| string(name) == Some(key)).map(|(_, value)| value)
}

fn string<'v>(value: &'v ValueRef<'_>) -> Option<&'v str> {
    if let ValueRef::String(text) = value { text.as_str() } else { None }
}

fn text(map: &ValueRef<'_>, key: &str) -> Result<Option<String>> {
    let Some(value) = find(map, key) else { return Ok(None) };
    let text = string(value).ok_or_else(|| Error::malformed(format!("{key} is not a string")))?;
    Ok(Some(text.to_owned()))
}

fn number(map: &ValueRef<'_>, key: &str) -> Result<Option<u64>> {
    let Some(value) = find(map, key) else { return Ok(None) };
    value.as_u64().map(Some).ok_or_else(|| Error::malformed(format!("{key} is not a number of at least 0")))
}

fn required<T>(found: Option<T>, key: &str) -> Result<T> {
    found.ok_or_else(|| Error::malformed(format!("{key} is missing")))
}

/// A list of three numbers, if it is there.
fn three(map: &ValueRef<'_>, key: &str) -> Result<Option<[u64; 3]>> {
    let Some(numbers) = find(map, key).and_then(ValueRef::as_array) else { return Ok(None) };
    let numbers: Vec<u64> = numbers.iter().filter_map(ValueRef::as_u64).collect();
    let numbers = numbers.try_into().map_err(|_| Error::malformed(format!("{key} is not three numbers")))?;
    Ok(Some(numbers))
}

impl KernelMetadata {
    fn read(map: &ValueRef<'_>) -> Result<Self> {
        let count = |key| required(number(map, key)?, key);
        let optional = |key| Ok::<_, Error>(number(map, key)?.unwrap_or(0));
        let mut kernel = KernelMetadata {
            name: required(text(map, ".name")?, ".name")?,
            symbol: required(text(map, ".symbol")?, ".symbol")?,
            kernarg_segment_size: count(".kernarg_segment_size")?,
            kernarg_segment_align: count(".kernarg_segment_align")?,
            group_segment_fixed_size: count(".group_segment_fixed_size")?,
            private_segment_fixed_size: count(".private_segment_fixed_size")?,
            max_flat_workgroup_size: count(".max_flat_workgroup_size")?,
            wavefront_size: count(".wavefront_size")?,
            sgpr_count: count(".sgpr_count")?,
            vgpr_count: count(".vgpr_count")?,
            agpr_count: optional(".agpr_count")?,
            sgpr_spill_count: optional(".sgpr_spill_count")?,
            vgpr_spill_count: optional(".vgpr_spill_count")?,
            uses_dynamic_stack: matches!(find(map, ".uses_dynamic_stack"), Some(ValueRef::Boolean(true))),
            ..KernelMetadata::default()
        };
        kernel.reqd_workgroup_size = three(map, ".reqd_workgroup_size")?;
        kernel.cluster_dims = three(map, ".cluster_dims")?;
        let Some(args) = find(map, ".args") else { return Ok(kernel) };
        for (index, arg) in args.as_array().ok_or_else(|| Error::malformed(".args is not a list"))?.iter().enumerate() {
            kernel.args.push(Argument::read(arg).within(|| format!("argument {index}"))?);
        }
        Ok(kernel)
    }

    /// The first argument of a kind.
    #[must_use]
    pub fn argument(&self, kind: &ValueKind) -> Option<&Argument> {
        self.args.iter().find(|argument| argument.value_kind == *kind)
    }
}

impl Argument {
    fn read(map: &ValueRef<'_>) -> Result<Self> {
        Ok(Argument {
            name: text(map, ".name")?,
            offset: required(number(map, ".offset")?, ".offset")?,
            size: required(number(map, ".size")?, ".size")?,
            value_kind: ValueKind::parse(&required(text(map, ".value_kind")?, ".value_kind")?),
        })
    }
}
