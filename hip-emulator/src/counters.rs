//! What a rewritten code object says of itself.

use std::collections::HashMap;
use std::sync::Arc;

use wavetap::code_object::{CodeObject, KernelMetadata};
use wavetap::collect::session::{ObjectId, Session};
use wavetap::emulated::EmulatedMemory;
use wavetap::emulator::{Device, LoadedObject};
use wavetap::error::{Error, Result};
use wavetap::profile::map::{Declared, ObjectMap};

/// A loaded object that counts.
pub(crate) struct Counters {
    pub(crate) object: ObjectId,
    pub(crate) map: Arc<ObjectMap>,
}

impl Counters {
    /// Attaches the session to an object; `None` if it was not rewritten.
    pub(crate) fn attach(
        session: &mut Session,
        device: &mut Device,
        loaded: &LoadedObject,
        code: &CodeObject<'_>,
    ) -> Result<Option<Self>> {
        let address_of = |name: &str| loaded.symbols.get(name).map(|symbol| symbol.address);
        let Some(object) = session.attach(&EmulatedMemory(device), code, address_of)? else { return Ok(None) };
        let map = Arc::clone(session.map(object)?);
        Ok(Some(Counters { object, map }))
    }

    /// The metadata of the instrumented kernels before counting code was put into them, by name, given what they say
    /// now.
    pub(crate) fn originals(&self, code: &CodeObject<'_>) -> Result<HashMap<String, KernelMetadata>> {
        let now: HashMap<&str, &KernelMetadata> = code
            .kernels()
            .iter()
            .filter_map(|kernel| Some((kernel.name.as_str(), kernel.metadata.as_deref()?)))
            .collect();
        let mut originals = HashMap::new();
        for kernel in &self.map.kernels {
            let what =
                "it does not say what the original kernel needs; an older version wrote it: rewrite the program again";
            let missing = || Error::unsupported(format!("the site table's entry of {}: {what}", kernel.demangled));
            let declared = kernel.declared.ok_or_else(missing)?;
            if let Some(now) = now.get(kernel.name.as_str()) {
                originals.insert(kernel.name.clone(), original(&declared, now));
            }
        }
        Ok(originals)
    }

    /// The kernel's index in the site table, if it was instrumented.
    pub(crate) fn index_of(&self, kernel: &str) -> Option<u32> {
        self.map.kernels.iter().position(|mapped| mapped.name == kernel).and_then(|index| u32::try_from(index).ok())
    }
}

/// The original's metadata, given the rewritten object's.
fn original(declared: &Declared, rewritten: &KernelMetadata) -> KernelMetadata {
    KernelMetadata {
        sgpr_count: declared.sgpr_count,
        vgpr_count: declared.vgpr_count,
        agpr_count: declared.agpr_count,
        group_segment_fixed_size: declared.group_segment_fixed_size,
        private_segment_fixed_size: declared.private_segment_fixed_size,
        ..rewritten.clone()
    }
}
