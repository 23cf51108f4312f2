//! Registers that code uses are allocated, by descriptor and metadata alike.

use crate::finding::{Finding, Rule};
use wavetap_amdgpu::{Memory, Reg, Target, scalar};
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::Body;
use wavetap_object::code_object::{Feature, Field, Kernel};

/// Scalar registers after the numbered ones: VCC alone, with XNACK_MASK, with FLAT_SCRATCH (LLVM, `getNumExtraSGPRs`).
const VCC_SGPRS: u32 = 2;
const XNACK_SGPRS: u32 = 4;
const FLAT_SCRATCH_SGPRS: u32 = 6;

/// What an instrumented kernel allocates.
pub(crate) struct Allocation<'a> {
    pub(crate) old: &'a Kernel,
    pub(crate) new: &'a Kernel,
    /// With the size of the kernel's waves.
    pub(crate) target: Target,
    pub(crate) xnack: Feature,
    /// Whether anything but flat memory instructions accesses FLAT_SCRATCH.
    pub(crate) names_flat_scratch: bool,
    /// Whether VGPRs may lie after `ACCUM_OFFSET`, as they do in an original without AGPRs.
    pub(crate) vectors_behind: bool,
}

/// Whether a body has an instruction that accesses FLAT_SCRATCH and is no flat memory instruction: those need it for
/// private memory only.
pub(crate) fn names_flat_scratch(body: &Body) -> bool {
    let flat_scratch = Reg::scalar(scalar::FLAT_SCRATCH, 2);
    let named = |id| body.reads(id).chain(body.writes(id)).any(|reg| reg.overlaps(flat_scratch));
    body.ids().any(|id| body.inst(id).variant.memory != Memory::Flat && named(id))
}

impl Allocation<'_> {
    /// No instruction uses a register after the allocation.
    pub(crate) fn check(&self, used: RegSet, findings: &mut Vec<Finding>) {
        let Allocation { old, new, target, .. } = *self;
        let mut complain =
            |message: String| findings.push(Finding::new(Rule::Allocation, message).at(new.descriptor_address));
        let count = |highest: Option<u16>| highest.map_or(0, |highest| u32::from(highest) + 1);
        let (vectors, accums) = (count(used.highest_vgpr()), count(used.highest_agpr()));
        let allocated = new.descriptor.allocated_vgprs(target);
        match new.descriptor.accum_offset(target) {
            Some(offset) => {
                // After the offset the two names mean the same register. Without AGPRs all are vector
                // registers, and hand-written kernels use them so.
                let limit = if self.vectors_behind { allocated } else { offset.min(allocated) };
                if vectors > limit {
                    complain(format!("code uses v{} of {limit} vector registers", vectors - 1));
                }
                if accums > 0 && offset + accums > allocated {
                    complain(format!("code uses a{}, AGPRs are {offset} to {allocated}", accums - 1));
                }
                if old.descriptor.accum_offset(target).is_some_and(|before| before > offset) {
                    complain("the AGPRs begin earlier than before".to_owned());
                }
            }
            None if vectors.max(accums) > allocated => {
                complain(format!("code uses register {} of {allocated} vector registers", vectors.max(accums) - 1));
            }
            None => {}
        }
        if allocated > target.max_vgprs() {
            complain(format!(
                "{allocated} vector registers are more than the {} that a wave may have",
                target.max_vgprs()
            ));
        }
        self.scalars(used, findings);
        self.metadata(used, (vectors, accums), findings);
    }

    fn scalars(&self, used: RegSet, findings: &mut Vec<Finding>) {
        let Allocation { old, new, target, .. } = *self;
        let mut complain =
            |message: String| findings.push(Finding::new(Rule::Allocation, message).at(new.descriptor_address));
        let scalars =
            used.highest_sgpr_below(target.addressable_sgprs() as u16).map_or(0, |highest| u32::from(highest) + 1);
        let (allocated, before) = (new.descriptor.allocated_sgprs(target), old.descriptor.allocated_sgprs(target));
        // Where every wave has all of them, the registers that code can number are all there.
        let special = if target.all_sgprs() { 0 } else { self.special_sgprs(used) };
        if scalars + special > allocated {
            complain(format!(
                "code uses s{} of {allocated} scalar registers, the last {special} of which are special registers",
                scalars.saturating_sub(1)
            ));
        }
        if new.descriptor.allocated_vgprs(target) < old.descriptor.allocated_vgprs(target) || allocated < before {
            complain("fewer registers are allocated than before: functions that are not known may use them".to_owned());
        }
    }

    fn metadata(&self, used: RegSet, (vectors, accums): (u32, u32), findings: &mut Vec<Finding>) {
        let Allocation { old, new, target, .. } = *self;
        let (Some(before), Some(now)) = (&old.metadata, &new.metadata) else { return };
        let mut complain = |message: String| findings.push(Finding::new(Rule::Metadata, message));
        let (allocated_vgprs, allocated_sgprs) =
            (new.descriptor.allocated_vgprs(target), new.descriptor.allocated_sgprs(target));
        // Hand-written kernels may count more than they are given, and use less.
        let most = |allocated: u32, before: u64| u64::from(allocated).max(before);
        if now.vgpr_count > most(allocated_vgprs, before.vgpr_count)
            || now.sgpr_count > most(allocated_sgprs, before.sgpr_count)
        {
            let (vgprs, sgprs) = (now.vgpr_count, now.sgpr_count);
            complain(format!("it counts {vgprs} VGPRs and {sgprs} SGPRs, more than the descriptor allocates"));
        }
        if now.vgpr_count < before.vgpr_count
            || now.sgpr_count < before.sgpr_count
            || now.agpr_count < before.agpr_count
        {
            complain("it counts fewer registers than before".to_owned());
        }
        // Compilers make the descriptor's numbers out of the metadata's.
        let in_step = |kernel: &Kernel| {
            let metadata = kernel.metadata.as_ref()?;
            let (vgprs, sgprs) = (metadata.vgpr_count as u32, metadata.sgpr_count as u32);
            let mut expected = kernel.descriptor;
            // Where AGPRs come out of the same allocation, there may be more before them than are
            // used.
            if !target.unified_accum() {
                expected.set_allocated_vgprs(target, vgprs).ok()?;
            }
            if !target.all_sgprs() {
                expected.set_allocated_sgprs(sgprs).ok()?;
            }
            Some((expected.allocated_vgprs(target), expected.allocated_sgprs(target)))
        };
        let allocated =
            |kernel: &Kernel| (kernel.descriptor.allocated_vgprs(target), kernel.descriptor.allocated_sgprs(target));
        if in_step(old) == Some(allocated(old)) && in_step(new) != Some(allocated(new)) {
            let (vgprs, sgprs) = allocated(new);
            complain(format!(
                "it counts {} VGPRs and {} SGPRs, for which the descriptor would not allocate {vgprs} and {sgprs}",
                now.vgpr_count, now.sgpr_count
            ));
        }
        let unified = target.unified_accum() && accums > 0;
        let counted =
            if unified { new.descriptor.accum_offset(target).unwrap_or(0) + accums } else { vectors.max(accums) };
        if u64::from(counted) > now.vgpr_count {
            complain(format!("it counts {} VGPRs, code uses {counted}", now.vgpr_count));
        }
        let scalars =
            used.highest_sgpr_below(target.addressable_sgprs() as u16).map_or(0, |highest| u64::from(highest) + 1);
        if scalars > now.sgpr_count {
            complain(format!("it counts {} SGPRs, code uses {scalars}", now.sgpr_count));
        }
    }

    /// Scalar registers that the allocation needs after the numbered ones.
    fn special_sgprs(&self, used: RegSet) -> u32 {
        // Where it is not set up, private memory is not reached through it, and its place in the allocation may be any
        // register's (LLVM, `AMDGPUResourceUsageAnalysis`).
        let flat_scratch = self.names_flat_scratch || self.new.descriptor.is_set(Field::ENABLE_SGPR_FLAT_SCRATCH_INIT);
        if flat_scratch || self.target.architected_flat_scratch() {
            FLAT_SCRATCH_SGPRS
        } else if matches!(self.xnack, Feature::Any | Feature::On) {
            XNACK_SGPRS
        } else if used.overlaps(Reg::VCC) {
            VCC_SGPRS
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_amdgpu::{Counters, Flags};
    use wavetap_analysis::dataflow::UsedRegisters;
    use wavetap_analysis::kernel::assembly::{Listing, end, op};
    use wavetap_analysis::kernel::{BodyKind, Image};
    use wavetap_object::code_object::KernelDescriptor;

    fn kernel(descriptor: KernelDescriptor) -> Kernel {
        Kernel {
            name: "kernel".to_owned(),
            descriptor_address: 0,
            descriptor_offset: 0,
            descriptor,
            entry: 0,
            code: 0..16,
            sized: true,
            metadata: None,
        }
    }

    /// What is said of gfx802 code, where every wave has 96 scalar registers, that names this one, VCC, and what a flat
    /// load or `explicit` accesses.
    fn findings(highest: u16, explicit: bool, initialised: bool) -> usize {
        let target = Target::by_name("gfx802").expect("a target");
        let flat_scratch = Reg::scalar(scalar::FLAT_SCRATCH, 2);
        let load = op("flat_load_dword")
            .memory(Memory::Flat, Counters::VM, Flags::LOAD)
            .writes(Reg::vector(1, 1))
            .reads(flat_scratch);
        let access = if explicit { op("s_mov_b64").writes(flat_scratch) } else { load };
        let named = op("s_and_b64").writes(Reg::VCC).reads(Reg::scalar(highest, 1));
        let listing = Listing::at(0).push(access).push(named).push(end());
        let body = listing.try_body_for(target, &Image::new(), BodyKind::Kernel, 0).expect("a body");
        let mut descriptor = KernelDescriptor::from_bytes([0; 64]);
        descriptor.set(Field::ENABLE_SGPR_FLAT_SCRATCH_INIT, initialised.into()).expect("fits");
        let kernel = kernel(descriptor);
        let names_flat_scratch = names_flat_scratch(&body);
        let allocation = Allocation {
            old: &kernel,
            new: &kernel,
            target,
            xnack: Feature::Unsupported,
            names_flat_scratch,
            vectors_behind: false,
        };
        let mut findings = Vec::new();
        allocation.check(UsedRegisters::of_body(&body).named, &mut findings);
        findings.len()
    }

    #[test]
    fn flat_scratch_needs_room_where_code_has_it() {
        assert_eq!(findings(93, false, false), 0, "only VCC is after them");
        assert_eq!(findings(94, false, false), 1);
        for (explicit, initialised) in [(true, false), (false, true)] {
            assert_eq!([89, 90].map(|highest| findings(highest, explicit, initialised)), [0, 1]);
        }
    }

    /// What is said of a gfx90a kernel whose AGPRs begin at 8, of 16 registers.
    #[test]
    fn without_accumulation_registers_all_are_vector_registers() {
        let target = Target::by_name("gfx90a").expect("a target");
        let findings = |vectors_behind: bool, highest: u16| {
            let mut descriptor = KernelDescriptor::from_bytes([0; 64]);
            descriptor.set_allocated_vgprs(target, 16).expect("fits");
            descriptor.set_accum_offset(8).expect("fits");
            descriptor.set_allocated_sgprs(16).expect("fits");
            let kernel = kernel(descriptor);
            let xnack = Feature::Off;
            let allocation =
                Allocation { old: &kernel, new: &kernel, target, xnack, names_flat_scratch: false, vectors_behind };
            let mut findings = Vec::new();
            allocation.check(RegSet::from_iter([Reg::vector(highest, 1)]), &mut findings);
            findings.iter().map(|finding| finding.message.clone()).collect::<Vec<_>>()
        };
        let none: [String; 0] = [];
        assert_eq!([findings(false, 7), findings(true, 15)].concat(), none);
        assert_eq!(findings(false, 8), ["code uses v8 of 8 vector registers"]);
        assert_eq!(findings(true, 16), ["code uses v16 of 16 vector registers"]);
    }
}
