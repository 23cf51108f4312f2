//! Preloaded kernel arguments: a rewritten descriptor asks for none, and the code loads them itself (gfx90a, gfx94x,
//! gfx950), or it asks for the same (gfx125x).
//!
//! A kernel with preloaded arguments starts, on firmware that preloads, 256 bytes after its entry; before that
//! are instructions that load the same registers for firmware that does not (AMDGPUUsage, "Preloaded Kernel
//! Arguments"). The new code is made of the kernel from its entry on, so that has to be what those instructions do:
//! this checks it. Generated kernels may have two beginnings that meet later: then the new code is made of the kernel
//! from 256 bytes after its entry on, and inserted code before it has to load the arguments, which the check of values
//! follows (`values/preloaded.rs`).

use crate::finding::{Finding, Rule};
use crate::values::preloaded::constant_offset;
use wavetap_amdgpu::{Memory, Reg, Role};
use wavetap_analysis::cfg::Cfg;
use wavetap_analysis::dataflow::{Liveness, RegSet, Summaries};
use wavetap_analysis::kernel::Body;
use wavetap_object::code_object::{Field, InitialRegisters, KernelDescriptor};

/// Where a kernel starts whose arguments are preloaded, after its entry.
const BEHIND_ENTRY: u64 = 256;

/// Checks descriptor and original code of one instrumented kernel.
pub(crate) fn check(
    (before, after): (&KernelDescriptor, &KernelDescriptor),
    registers: &InitialRegisters,
    original: &Body,
    summaries: &Summaries,
    findings: &mut Vec<Finding>,
) {
    let mut complain = |message: String| findings.push(Finding::new(Rule::Descriptor, message));
    let target = original.target();
    if target.has_kernarg_preload() && !target.has_preload_prologue() {
        let specification = |descriptor: &KernelDescriptor| {
            [Field::KERNARG_PRELOAD_LENGTH, Field::KERNARG_PRELOAD_OFFSET].map(|field| descriptor.get(field))
        };
        if specification(before) != specification(after) {
            complain(
                "other kernel arguments are preloaded than in the original, and nothing else loads them".to_owned(),
            );
        }
        return;
    }
    if after.get(Field::KERNARG_PRELOAD_LENGTH) != 0 {
        return complain(
            "kernel arguments are preloaded, but the code does not start 256 bytes after its entry".to_owned(),
        );
    }
    if before.get(Field::KERNARG_PRELOAD_LENGTH) == 0 {
        if original.begins_after_entry() {
            complain("waves begin at the entry, and the code is not that from there on".to_owned());
        }
        if after.get(Field::KERNARG_PRELOAD_OFFSET) != before.get(Field::KERNARG_PRELOAD_OFFSET) {
            complain("the place of preloaded arguments changed, of which there are none".to_owned());
        }
        return;
    }
    let (Some(preload), Some(kernarg)) = (registers.kernarg_preload, registers.kernarg_ptr) else {
        return complain("arguments were preloaded without a pointer to them: nothing can load them".to_owned());
    };
    let start = original.entry_address() + BEHIND_ENTRY;
    if original.begins_after_entry() {
        if original.address(original.entry()) != start {
            complain(format!("the code is not that from {start:#x} on, where waves with preloaded arguments begin"));
        }
        return;
    }
    let cfg = Cfg::build(original);
    let live = Liveness::compute(original, &cfg, summaries);
    let Some(needed) = original.at(start).map(|id| *live.before(id)) else {
        return complain(format!(
            "code at {start:#x}, where the kernel starts with preloaded arguments, is not reached from its entry"
        ));
    };
    // What each register holds there, as dwords of the arguments.
    let mut holds: Vec<Option<i64>> = vec![None; usize::from(preload.length)];
    for id in original.ids().filter(|id| (original.entry_address()..start).contains(&original.address(*id))) {
        let inst = original.inst(id);
        for reg in inst.writes() {
            for (index, held) in holds.iter_mut().enumerate() {
                let register = Reg::scalar(preload.first + index as u16, 1);
                if !reg.overlaps(register) {
                    continue;
                }
                let base = inst.operand(Role::Sbase).and_then(|operand| operand.reg());
                let loads = inst.variant.memory == Memory::Scalar && base == Some(Reg::scalar(kernarg, 2));
                let dword = |offset: i64| offset / 4 + i64::from(register.first) - i64::from(reg.first);
                *held = constant_offset(inst).filter(|_| loads).map(dword);
            }
        }
    }
    for (index, held) in (0..).zip(&holds) {
        let register = preload.first + index;
        let expected = i64::from(preload.offset) + i64::from(index);
        if needed.overlaps(Reg::scalar(register, 1)) && *held != Some(expected) {
            let name: RegSet = [Reg::scalar(register, 1)].into_iter().collect();
            complain(format!(
                "{name:?} was preloaded with dword {expected} of the arguments, which the code at the entry does not \
                    load"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_amdgpu::Target;
    use wavetap_analysis::kernel::{BodyKind, Image};

    /// What is found where waves begin at the entry with so many arguments, from a dword on, before and after.
    fn findings(target: &str, before: [u32; 2], after: [u32; 2]) -> usize {
        let target = Target::by_name(target).expect("a target");
        let end = 0xbfb0_0000_u32.to_le_bytes();
        let mut image = Image::new();
        image.add_code(0x1000, &end);
        let body = Body::decode(target, &image, "kernel", BodyKind::Kernel, 0x1000).expect("a body");
        let descriptor = |[length, offset]: [u32; 2]| {
            let mut descriptor = KernelDescriptor::from_bytes([0; 64]);
            descriptor.set(Field::KERNARG_PRELOAD_LENGTH, length).expect("fits");
            descriptor.set(Field::KERNARG_PRELOAD_OFFSET, offset).expect("fits");
            descriptor
        };
        let mut found = Vec::new();
        let registers = InitialRegisters::default();
        check((&descriptor(before), &descriptor(after)), &registers, &body, &Summaries::none(), &mut found);
        found.len()
    }

    #[test]
    fn waves_that_begin_at_the_entry_have_the_same_arguments() {
        for target in ["gfx1250", "gfx1251"] {
            assert_eq!(findings(target, [5, 0], [5, 0]), 0);
            assert_eq!(findings(target, [0, 0], [0, 0]), 0);
            for after in [[0, 0], [4, 0], [6, 0], [5, 1]] {
                assert_eq!(findings(target, [5, 0], after), 1, "{after:?}");
            }
            assert_eq!(findings(target, [0, 0], [2, 0]), 1);
        }
    }
}
