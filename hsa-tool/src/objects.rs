//! Code objects that the program loads: what is loaded in their place, and what is known of their kernels.

use std::collections::{HashMap, HashSet};

use wavetap::at_load::{Prepared, Rewriting};
use wavetap::code_object::{CodeObject, Kernel, KernelDescriptor, digest};
use wavetap::error::Error;
use wavetap::isa::Target;
use wavetap::profile::map::Refused;

/// How the names of HIP's own kernels begin: copies, fills, waits. They are no part of the program, and HIP launches
/// some with larger workgroups than their metadata allows.
const HIPS_OWN: &str = "__amd_rocclr_";

/// What became of a code object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// It is HIP's own, and left alone.
    HipsOwn,
    /// It is as the program has it, and has no counters.
    Unchanged,
    /// It was rewritten before the program loaded it.
    RewrittenBefore,
    /// It is rewritten now.
    RewrittenAtLoad,
}

/// A code object that is to be loaded.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) form: Form,
    /// What is loaded of an object with counters.
    pub(crate) bytes: Vec<u8>,
    /// MD5 of the original; of what was rewritten before, the site table says it.
    pub(crate) digest: String,
    /// Its target id.
    pub(crate) target: String,
    /// LDS in bytes that a workgroup can have.
    pub(crate) most_lds: u32,
    /// If it was to be rewritten and no kernel counts: those that were selected, and why they cannot.
    pub(crate) refused: Option<Vec<Refused>>,
    /// The names of all its kernels.
    pub(crate) names: HashSet<String>,
    /// Kernels of an object with counters, by name.
    pub(crate) kernels: HashMap<String, KernelNeeds>,
}

/// What dispatches of a kernel with counters need, and what those of the original do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KernelNeeds {
    pub(crate) with_counters: Segments,
    /// As the program knows it: that with counters where it has the rewritten object itself.
    pub(crate) known: Segments,
    /// Most work-items of a workgroup by its metadata.
    pub(crate) max_workgroup: u64,
    /// The original's descriptor and its virtual address.
    pub(crate) original: Option<(KernelDescriptor, u64)>,
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
    fn of(kernel: &Kernel) -> Option<Segments> {
        let metadata = kernel.metadata.as_deref()?;
        let lds = u32::try_from(metadata.group_segment_fixed_size).ok()?;
        Some(Segments { lds, scratch: u32::try_from(metadata.private_segment_fixed_size).ok()? })
    }
}

impl Object {
    /// What is to be loaded in place of `original`, and why it has no counters if it was to have some and could not be
    /// rewritten.
    pub(crate) fn new(original: &[u8], rewriting: Option<&Rewriting>) -> (Object, Option<Error>) {
        let Ok(code) = CodeObject::parse(original) else {
            return (Object { digest: digest(original), ..Object::unknown() }, None);
        };
        let kernels = code.kernels();
        let unchanged = |form| Object {
            form,
            digest: digest(original),
            target: code.target_id(),
            most_lds: code.target().map_or(0, Target::lds_bytes),
            names: kernels.iter().map(|kernel| kernel.name.clone()).collect(),
            ..Object::unknown()
        };
        if !kernels.is_empty() && kernels.iter().all(|kernel| kernel.name.starts_with(HIPS_OWN)) {
            return (unchanged(Form::HipsOwn), None);
        }
        if code.is_rewritten() {
            let kernels = kernels.iter().filter_map(|kernel| {
                let with_counters = Segments::of(kernel)?;
                let max_workgroup = kernel.metadata.as_deref()?.max_flat_workgroup_size;
                let needs = KernelNeeds { with_counters, known: with_counters, max_workgroup, original: None };
                Some((kernel.name.clone(), needs))
            });
            let kernels = kernels.collect();
            return (Object { bytes: original.to_vec(), kernels, ..unchanged(Form::RewrittenBefore) }, None);
        }
        let Some(rewriting) = rewriting else { return (unchanged(Form::Unchanged), None) };
        let Prepared { bytes, refused, problem } = rewriting.prepare(original.to_vec());
        let rewritten = match CodeObject::parse(&bytes) {
            Ok(rewritten) if refused.is_none() && rewritten.is_rewritten() => needs(&code, &rewritten),
            _ => return (Object { refused: Some(refused.unwrap_or_default()), ..unchanged(Form::Unchanged) }, problem),
        };
        (Object { bytes, kernels: rewritten, ..unchanged(Form::RewrittenAtLoad) }, problem)
    }

    /// An object of which nothing is known.
    pub(crate) fn unknown() -> Object {
        Object {
            form: Form::Unchanged,
            bytes: Vec::new(),
            digest: String::new(),
            target: String::new(),
            most_lds: 0,
            refused: None,
            names: HashSet::new(),
            kernels: HashMap::new(),
        }
    }

    /// As it is loaded when the runtime refuses what was made of it.
    pub(crate) fn unchanged(&self, refused: Vec<Refused>) -> Object {
        Object {
            digest: self.digest.clone(),
            target: self.target.clone(),
            most_lds: self.most_lds,
            refused: Some(refused),
            names: self.names.clone(),
            ..Object::unknown()
        }
    }
}

/// What the kernels of a rewritten object need.
fn needs(original: &CodeObject<'_>, rewritten: &CodeObject<'_>) -> HashMap<String, KernelNeeds> {
    let kernels = rewritten.kernels().iter().filter_map(|kernel| {
        let before = original.kernel(&kernel.name)?;
        let needs = KernelNeeds {
            with_counters: Segments::of(kernel)?,
            known: Segments::of(before)?,
            max_workgroup: before.metadata.as_deref()?.max_flat_workgroup_size,
            original: Some((before.descriptor, before.descriptor_address)),
        };
        Some((kernel.name.clone(), needs))
    });
    kernels.collect()
}
