//! Code objects that the program loads, and what is known of their kernels.

use std::collections::{HashMap, HashSet};

use wavetap::at_load::{AtDispatch, Rewriting};
use wavetap::code_object::{CodeObject, KernelMetadata, digest};
use wavetap::error::{Error, Kind};
use wavetap::instrument::refusal::{RefusalReason, all_refused};
use wavetap::instrument::resources_of;
use wavetap::isa::Target;
use wavetap::pipeline::RewrittenKernel;
use wavetap::profile::map::{Refused, Resources};

/// How the names of HIP's own kernels begin: copies, fills, waits. They are no part of the program, and HIP launches
/// some with larger workgroups than their metadata allows.
const HIPS_OWN: &str = "__amd_rocclr_";

/// What becomes of a code object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// It is HIP's own, and left alone.
    HipsOwn,
    /// It has no counters, and gets none.
    Unchanged,
    /// It was rewritten before the program loaded it.
    RewrittenBefore,
    /// Its kernels are rewritten when they are dispatched.
    AtDispatch,
    /// It was loaded by a call that does not say what it is.
    Unknown,
}

/// A code object that is loaded, as the program has it.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) form: Form,
    /// The bytes of one that was rewritten before.
    pub(crate) bytes: Vec<u8>,
    /// What rewrites the kernels of one that was not.
    pub(crate) source: Option<AtDispatch>,
    /// MD5 of the object, unless its source knows it.
    digest: String,
    /// Its target id.
    pub(crate) target: String,
    /// LDS in bytes that a workgroup can have.
    pub(crate) most_lds: u32,
    /// Bytes from its virtual address 0 to the end of what is loaded.
    pub(crate) extent: u64,
    /// One of its kernels, and the virtual address of its descriptor.
    pub(crate) descriptor: Option<(String, u64)>,
    /// If it was to be rewritten and cannot be: the kernels, and why.
    pub(crate) refused: Option<Vec<Refused>>,
    /// The names of all its kernels.
    pub(crate) names: HashSet<String>,
    /// Kernels of an object that was rewritten before, by name.
    pub(crate) kernels: HashMap<String, KernelNeeds>,
    /// What kernels need as they are loaded, where no code is rewritten.
    pub(crate) resources: HashMap<String, Resources>,
}

/// What dispatches of a kernel with counters need, and what those of the original do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KernelNeeds {
    pub(crate) with_counters: Segments,
    /// As the program knows it: that with counters where it has the rewritten object itself.
    pub(crate) known: Segments,
    /// Most work-items of a workgroup by its metadata.
    pub(crate) max_workgroup: u64,
    /// What it needs of the machine without counters and with them, if the program knows it without.
    pub(crate) resources: Option<(Resources, Resources)>,
}

impl KernelNeeds {
    /// Of a kernel that was rewritten when it was dispatched.
    pub(crate) fn of(kernel: &RewrittenKernel) -> Option<KernelNeeds> {
        let before = kernel.original.metadata.as_deref()?;
        Some(KernelNeeds {
            with_counters: Segments::of(kernel.metadata()?)?,
            known: Segments::of(before)?,
            max_workgroup: before.max_flat_workgroup_size,
            resources: kernel.map.kernels.first().map(|mapped| (mapped.before, mapped.after)),
        })
    }
}

/// Static sizes of a kernel in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segments {
    /// LDS of a workgroup.
    pub(crate) lds: u32,
    /// Scratch of a work-item.
    pub(crate) scratch: u32,
}

impl Segments {
    fn of(metadata: &KernelMetadata) -> Option<Segments> {
        let lds = u32::try_from(metadata.group_segment_fixed_size).ok()?;
        Some(Segments { lds, scratch: u32::try_from(metadata.private_segment_fixed_size).ok()? })
    }
}

/// Bytes from virtual address 0 to the end of what is loaded of an object.
fn extent(code: &CodeObject<'_>) -> u64 {
    let loaded = code.elf().segments.iter().filter(|segment| segment.is_load());
    loaded.map(|segment| segment.address.saturating_add(segment.memory_size)).max().unwrap_or(0)
}

impl Object {
    /// Of what is loaded; and why it has no counters if it was to have some and cannot.
    pub(crate) fn new(original: &[u8], rewriting: Option<&Rewriting>) -> (Object, Option<Error>) {
        let Ok(code) = CodeObject::parse(original) else {
            return (Object { digest: digest(original), ..Object::unknown() }, None);
        };
        let kernels = code.kernels();
        let needs = |target| kernels.iter().filter_map(move |k| Some((k.name.clone(), resources_of(target, k)?)));
        let unchanged = code.target().filter(|_| rewriting.is_none());
        let resources: HashMap<_, _> = unchanged.map(|target| needs(target).collect()).unwrap_or_default();
        let object = |form| Object {
            form,
            target: code.target_id(),
            most_lds: code.target().map_or(0, Target::lds_bytes),
            extent: extent(&code),
            descriptor: kernels.iter().find_map(|k| Some((k.name.clone(), code.symbol(&k.symbol())?.address))),
            names: kernels.iter().map(|kernel| kernel.name.clone()).collect(),
            resources: resources.clone(),
            ..Object::unknown()
        };
        let with_digest = |form| Object { digest: digest(original), ..object(form) };
        if !kernels.is_empty() && kernels.iter().all(|kernel| kernel.name.starts_with(HIPS_OWN)) {
            return (with_digest(Form::HipsOwn), None);
        }
        if code.is_rewritten() {
            let kernels = kernels.iter().filter_map(|kernel| {
                let metadata = kernel.metadata.as_deref()?;
                let with_counters = Segments::of(metadata)?;
                let max_workgroup = metadata.max_flat_workgroup_size;
                Some((
                    kernel.name.clone(),
                    KernelNeeds { with_counters, known: with_counters, max_workgroup, resources: None },
                ))
            });
            let kernels = kernels.collect();
            return (Object { bytes: original.to_vec(), kernels, ..with_digest(Form::RewrittenBefore) }, None);
        }
        let Some(rewriting) = rewriting else { return (with_digest(Form::Unchanged), None) };
        match rewriting.at_dispatch(original.to_vec()) {
            Ok(source) => (Object { source: Some(source), ..object(Form::AtDispatch) }, None),
            Err(error) => {
                let malformed = error.kind() == Kind::Malformed;
                let reason = if malformed { RefusalReason::Malformed } else { RefusalReason::UnsupportedObject };
                let refused = all_refused(&code.target_id(), "", reason, &error.to_string()).refused;
                (Object { refused: Some(refused), ..with_digest(Form::Unchanged) }, Some(error))
            }
        }
    }

    /// An object of which nothing is known.
    pub(crate) fn unknown() -> Object {
        Object {
            form: Form::Unchanged,
            bytes: Vec::new(),
            source: None,
            digest: String::new(),
            target: String::new(),
            most_lds: 0,
            extent: 0,
            descriptor: None,
            refused: None,
            names: HashSet::new(),
            kernels: HashMap::new(),
            resources: HashMap::new(),
        }
    }

    /// An object that `hsa_executable_load_code_object` loads by a handle that nothing is known of: none of its kernels
    /// counts.
    pub(crate) fn of_unknown_handle() -> Object {
        let why = "hsa_executable_load_code_object loaded its code object by a handle that hsa_code_object_deserialize \
                   did not give";
        let refused = all_refused("", "", RefusalReason::UnsupportedObject, why).refused;
        Object { form: Form::Unknown, refused: Some(refused), ..Object::unknown() }
    }

    /// Whether it may have a kernel of this name.
    pub(crate) fn has(&self, kernel: &str) -> bool {
        self.form == Form::Unknown || self.names.contains(kernel)
    }

    /// MD5 of the object.
    pub(crate) fn digest(&self) -> &str {
        self.source.as_ref().map_or(&self.digest, |source| source.rewriter().digest())
    }

    /// Whether it was made of these bytes, which it has kept.
    pub(crate) fn is_of(&self, bytes: &[u8]) -> bool {
        self.source.as_ref().is_some_and(|source| source.rewriter().bytes() == bytes)
    }

    /// If it was to be rewritten: the kernels that are known not to be, and why.
    pub(crate) fn refused(&self) -> Option<&[Refused]> {
        self.source.as_ref().map(|source| source.rewriter().refused()).or(self.refused.as_deref())
    }
}
