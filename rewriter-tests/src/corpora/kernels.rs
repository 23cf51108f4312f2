//! The kernels of libraries.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use wavetap::code_object::CodeObject;
use wavetap::emulator::Fault;
use wavetap::isa::EventHazards;
use wavetap::offload_bundle::Input;

use crate::chosen;
use crate::random::Random;

/// A kernel that may be taken.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The library's file name, without its end.
    pub library: String,
    /// The code object.
    pub object: Arc<Vec<u8>>,
    /// Its mangled name.
    pub name: String,
    order: u64,
}

/// The kernels of files for each target that is rewritten and emulated, of different names, in the order of a hash of
/// target and name. `WAVETAP_KERNEL_TARGETS` and `WAVETAP_KERNEL` choose among them.
///
/// # Panics
/// If a file cannot be read; if `others` may be among the files, those without code objects are left out.
#[must_use]
pub fn candidates(files: &[PathBuf], others: bool) -> BTreeMap<&'static str, Vec<Candidate>> {
    let only = std::env::var("WAVETAP_KERNEL").unwrap_or_default();
    let mut all: BTreeMap<&'static str, Vec<Candidate>> = BTreeMap::new();
    let mut seen: BTreeSet<(&'static str, String)> = BTreeSet::new();
    for file in files {
        let data = fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let input = match Input::parse(&data) {
            Err(_) if others => continue,
            input => input.unwrap_or_else(|e| panic!("{}: {e}", file.display())),
        };
        for found in input.code_objects() {
            let code = CodeObject::parse(found.bytes).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            let Some(target) = code.target().filter(|target| target.rewritable() && target.emulated()) else {
                continue;
            };
            if !chosen(target.name()) {
                continue;
            }
            let object = Arc::new(found.bytes.to_vec());
            for kernel in code.kernels() {
                if kernel.name.contains(&only) && seen.insert((target.name(), kernel.name.clone())) {
                    let text = target.name().bytes().chain(kernel.name.bytes());
                    let hash = text.fold(0, |hash: u64, byte| hash.wrapping_mul(131).wrapping_add(byte.into()));
                    let library = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                    let candidate = Candidate {
                        library,
                        object: object.clone(),
                        name: kernel.name.clone(),
                        order: Random::new(hash).bits(),
                    };
                    all.entry(target.name()).or_default().push(candidate);
                }
            }
        }
    }
    all.values_mut().for_each(|kernels| kernels.sort_by_key(|kernel| kernel.order));
    all
}

/// What AMD's generator of matrix products leaves to luck: results of `v_rcp_f32` on gfx11, and on gfx12 a few
/// registers where the hardware does not check them.
pub const LEFT_IN: EventHazards = EventHazards::VALU_TRANS_USE.union(EventHazards::EXPERT_SCHEDULING);

/// The sort of a fault in a few words.
#[must_use]
pub fn kind(fault: &Fault) -> String {
    let debug = format!("{:?}", fault.kind);
    debug.split([' ', '(', '{']).next().unwrap_or_default().to_owned()
}
