//! How exact the emulator was in each dispatch, collected by kernel.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use wavetap::code_object::{CodeObject, demangle};
use wavetap::emulator::{DispatchStats, exactness};
use wavetap::error::Result;
use wavetap::isa::{self, Target};
use wavetap::profile::fidelity::{Exactness, FidelityProfile, InstructionFidelity, KernelFidelity};

use crate::images::Loaded;
use crate::trace::{Names, Originals, instruction_at};

/// Collects how exact the emulator was.
#[derive(Default)]
pub(crate) struct FidelityCollector {
    all: FidelityProfile,
    objects: HashMap<u32, Names>,
    /// What is known of instructions, by object and original address; nothing of what is no instruction.
    classes: HashMap<(u32, u64), Option<(Exactness, String)>>,
}

impl FidelityCollector {
    pub(crate) fn all(&self) -> &FidelityProfile {
        &self.all
    }

    /// Adds a dispatch of `kernel` and gives what it adds. Nothing without a trace.
    pub(crate) fn add(
        &mut self,
        kernel: &str,
        loaded: &Loaded,
        target: Target,
        stats: &DispatchStats,
    ) -> Result<Option<FidelityProfile>> {
        let Some(trace) = &stats.trace else { return Ok(None) };
        let id = loaded.object.id;
        let code = CodeObject::parse(&loaded.bytes)?;
        let original = Originals::of(loaded, kernel, &code);
        let names = match self.objects.entry(id.0) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(Names::of(loaded)?),
        };
        let mut added = KernelFidelity {
            name: kernel.to_owned(),
            demangled: demangle(kernel).into_owned(),
            target: names.target.clone(),
            object: names.original.clone(),
            dispatches: 1,
            ..KernelFidelity::default()
        };
        // What a rewrite added, and the run-time's own code, is none of the kernel's.
        let executed = trace.executed.iter().filter(|(place, _)| place.object == id);
        for (address, count) in executed.filter_map(|(place, count)| Some((original.address(place.address)?, *count))) {
            let class = self.classes.entry((id.0, address)).or_insert_with(|| class_at(&code, target, address));
            let Some((exactness, instruction)) = class.clone() else { continue };
            added.executed += count;
            if exactness == Exactness::Documented {
                added.documented += count;
                continue;
            }
            match added.instructions.binary_search_by_key(&address, |each| each.address) {
                Ok(at) => added.instructions[at].executions += count,
                Err(at) => {
                    let source = names.source(address);
                    let new = InstructionFidelity { address, instruction, source, executions: count, exactness };
                    added.instructions.insert(at, new);
                }
            }
        }
        let known = self.all.kernels.iter().any(|known| known.name == added.name && known.object == added.object);
        let kernel = code.kernel(kernel).filter(|_| !known);
        // What is not supported ends a kernel that executes it, so it is worth knowing that it is there.
        let mut address = kernel.map_or(0, |kernel| kernel.code.start);
        while kernel.is_some_and(|kernel| address < kernel.code.end) {
            let Some(inst) = instruction_at(&code, target, address) else { break };
            if exactness(target, &inst) == Exactness::Unsupported {
                let Err(at) = added.instructions.binary_search_by_key(&address, |each| each.address) else { break };
                let (instruction, source) = (isa::print(target, &inst), names.source(address));
                let exactness = Exactness::Unsupported;
                let new = InstructionFidelity { address, instruction, source, executions: 0, exactness };
                added.instructions.insert(at, new);
            }
            address += u64::from(inst.size);
        }
        let added = FidelityProfile { kernels: vec![added], ..FidelityProfile::default() };
        self.all.merge(&added);
        Ok(Some(added))
    }
}

/// How exact the instruction at an original address is, and its text; none where there is no instruction.
fn class_at(code: &CodeObject<'_>, target: Target, address: u64) -> Option<(Exactness, String)> {
    let inst = instruction_at(code, target, address)?;
    Some((exactness(target, &inst), isa::print(target, &inst)))
}
