//! Kernels that are rewritten at their first dispatch, and loaded beside the program's code objects.
//!
//! The new code knows how far the original image is from it, and that is known when both are loaded. So an object of
//! the right size is loaded, and its code is then written over with what is right there. Nothing has run it, or what
//! lies next to it, so that no cache of instructions has it.

use std::sync::Arc;

use wavetap::code_object::{CONTROL_SYMBOL, DESCRIPTOR_SUFFIX};
use wavetap::collect::session::ObjectId;
use wavetap::collect::uncounted::Why;
use wavetap::emit::kernel_object;
use wavetap::pipeline::RewrittenKernel;
use wavetap::profile::launches::NotCounted;

use super::{Counters, Counting, State, Tool, complain};
use crate::api::Api;
use crate::memory::AgentMemory;
use crate::objects::KernelNeeds;

/// A kernel that was loaded so.
pub(super) struct LoadedBeside {
    /// Where it counts.
    pub(super) object: ObjectId,
    /// Where the original is.
    pub(super) image: u64,
    loaded: Loaded,
}

/// An executable of this tool.
struct Loaded {
    executable: u64,
    reader: u64,
    /// What the reader reads, for as long as debuggers may.
    kernel: Arc<RewrittenKernel>,
}

impl LoadedBeside {
    /// Unloads it; nothing of it runs any more.
    pub(super) fn unload(self, api: &Api) {
        self.loaded.unload(api);
    }
}

impl Loaded {
    fn unload(self, api: &Api) {
        // The runtime frees both with the process, too.
        (api.executable_destroy)(self.executable);
        (api.reader_destroy)(self.reader);
    }

    /// Loads an object, and writes what its code is for where it is; gives the addresses of control block and
    /// descriptor.
    fn place(
        &self,
        tool: &Tool,
        agent: u64,
        code_at: impl Fn(u64) -> Result<Vec<u8>, String>,
    ) -> Result<(u64, u64), String> {
        let api = &tool.api;
        api.load_and_freeze(self.executable, agent, self.reader)?;
        let symbols = api.symbols(self.executable, agent)?;
        let kernel = &self.kernel.original.name;
        let is_descriptor =
            |name: &str| name == kernel || name.strip_suffix(DESCRIPTOR_SUFFIX) == Some(kernel.as_str());
        let control = symbols.iter().find(|symbol| !symbol.is_kernel && symbol.name == CONTROL_SYMBOL);
        let descriptor = symbols.iter().find(|symbol| symbol.is_kernel && is_descriptor(&symbol.name));
        let (Some(control), Some(descriptor)) = (control, descriptor) else {
            return Err("the runtime has no symbols for it".to_owned());
        };
        let base = control.address.wrapping_sub(kernel_object::CONTROL);
        let code = code_at(base)?;
        let address = base + kernel_object::CODE;
        let mut loaded = vec![0; code.len()];
        api.read_memory(address, &mut loaded)?;
        if loaded != code {
            api.write_memory(address, &code)?;
            api.read_memory(address, &mut loaded)?;
            if loaded != code {
                return Err("its code is not what was written".to_owned());
            }
        }
        Ok((control.address, descriptor.address))
    }
}

impl Tool {
    /// Rewrites a kernel that is dispatched for the first time, and loads it. Afterwards it counts, or it is known why
    /// not.
    pub(super) fn load_beside(&self, kernel_object: u64) {
        let kernel = self.state().kernels.get(&kernel_object).cloned();
        let Some(kernel) = kernel.filter(|kernel| matches!(kernel.counting, Counting::AtDispatch)) else { return };
        let Some(source) = &kernel.object.source else { return };
        // Takes long: others can go on.
        let rewritten = source.kernel(&kernel.name);
        let mut state = self.state();
        let is_new =
            state.kernels.get(&kernel_object).is_some_and(|kernel| matches!(kernel.counting, Counting::AtDispatch));
        if !is_new {
            return;
        }
        let counting = match rewritten {
            Ok(rewritten) => {
                let original = kernel_object.wrapping_sub(rewritten.original.descriptor_address);
                let code_at = |base| source.rewriter().code_at(&rewritten, original, base).map_err(|e| e.to_string());
                let loaded = self.load_kernel(&mut state, (kernel.agent, original), &rewritten, code_at);
                self.allocations.add(original, kernel.object.extent);
                loaded.map(|(counters, loaded)| {
                    let objects = state.executables.get_mut(&kernel.executable);
                    if let Some(object) = objects.and_then(|objects| objects.get_mut(kernel.place)) {
                        object.kernels.push(loaded);
                    }
                    counters
                })
            }
            Err(refused) => {
                state.session.collector_mut().add_refused(std::slice::from_ref(&refused));
                Err((NotCounted::Refused, format!("{}: {}", refused.reason, refused.detail)))
            }
        };
        let counting = counting.map_or_else(|why| Counting::Not(Some(why)), Counting::Counts);
        if let Some(kernel) = state.kernels.get_mut(&kernel_object) {
            kernel.counting = counting;
        }
    }

    fn load_kernel(
        &self,
        state: &mut State,
        (agent, image): (u64, u64),
        kernel: &Arc<RewrittenKernel>,
        code_at: impl Fn(u64) -> Result<Vec<u8>, String>,
    ) -> Result<(Counters, LoadedBeside), Why> {
        let name = &kernel.original.name;
        let refuse = |problem: String| {
            complain(&format!("kernel {name} is not counted"), &problem);
            (NotCounted::Refused, format!("not_loaded: {problem}"))
        };
        let needs =
            KernelNeeds::of(kernel).ok_or_else(|| refuse("its metadata says what no dispatch can have".to_owned()))?;
        let reader = self.api.new_reader(&kernel.object).map_err(refuse)?;
        let executable = self.api.new_executable().map_err(|problem| {
            (self.api.reader_destroy)(reader);
            refuse(problem)
        })?;
        let loaded = Loaded { executable, reader, kernel: Arc::clone(kernel) };
        let memory = AgentMemory::new(&self.api, agent);
        let attached = loaded.place(self, agent, code_at).and_then(|(control, descriptor)| {
            let map = Arc::clone(&kernel.map);
            let session = &mut state.session;
            // Its descriptor is this tool's own: no other packet names it.
            let object = session.attach_map(&memory, map, control);
            let object = object.and_then(|object| session.stay_armed(object).map(|()| object));
            Ok((object.map_err(|error| error.to_string())?, descriptor))
        });
        match attached {
            Ok((object, descriptor)) => {
                let counters = Counters { object, kernel: 0, needs, descriptor: Some(descriptor) };
                Ok((counters, LoadedBeside { object, image, loaded }))
            }
            Err(problem) => {
                loaded.unload(&self.api);
                Err(refuse(problem))
            }
        }
    }
}
