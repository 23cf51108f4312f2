//! Makes decoded instructions ready to run: finds once what is known of their operation, and the handler that runs
//! them.

use rustc_hash::FxHashMap;

use wavetap_amdgpu::{Inst, Target};

use crate::exec;
use crate::exec::memory::global_fast;
use crate::exec::vector::fast as vector_fast;
use crate::op::opcode_info::OpcodeInfo;
use crate::op::semantics::Semantics;
use crate::op::{InstLocation, ResolvedInst, Site};
use crate::state::op::{Meaning, Op};

/// What is known of an operation, and what it does; none is not known.
pub(crate) type KnownOpcode = (OpcodeInfo, Option<Meaning>);

/// What is known of the operations of the instructions that a device has met.
#[derive(Default)]
pub(crate) struct OpcodeCache(FxHashMap<(usize, u8, bool), KnownOpcode>);

impl OpcodeCache {
    /// The entry of an instruction. Of its modifiers only GDS and TFE count.
    pub(crate) fn of(&mut self, target: Target, inst: &Inst) -> KnownOpcode {
        let odd = inst.modifiers.gds || inst.modifiers.tfe;
        let key = (std::ptr::from_ref(inst.variant).addr(), target.wave_size() as u8, odd);
        *self.0.entry(key).or_insert_with(|| (OpcodeInfo::of(target, inst), exec::meaning(target, inst)))
    }
}

/// Resolves an instruction at an address, and chooses its handler: a fast path where it has one.
pub(crate) fn op(
    target: Target,
    inst: Inst,
    (run, semantics): Meaning,
    info: &OpcodeInfo,
    location: InstLocation,
) -> Op {
    let resolved = ResolvedInst::new(target, inst, semantics, info, location);
    let ResolvedInst { inst, src, dst, scalars, .. } = &resolved;
    let (run, fast_path) = vector_fast::faster(run, &semantics, inst, *src, *dst);
    let (run, global_address) = global_fast::faster(target, run, &semantics, inst);
    let fast_path = match semantics {
        Semantics::Packed32 { .. } => vector_fast::packed32_sources(inst, scalars, *dst),
        _ => fast_path,
    };
    let straight_line = u32::from(info.straight_line && resolved.site == Site::None);
    Op { run, resolved, global_address, pair: None, straight_line, fast_path }
}
