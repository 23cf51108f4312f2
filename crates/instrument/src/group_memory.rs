//! LDS that is not the kernel's alone: where counters cannot be at the end of a workgroup's LDS, and where a launch may
//! need what they take.

use wavetap_amdgpu::{Inst, Memory, OpcodeFlags, Reg, Target, Value, scalar};
use wavetap_analysis::cfg::{BodyId, Program};
use wavetap_analysis::kernel::{Body, Reason, Refusal};
use wavetap_object::code_object::{Kernel, KernelMetadata, ValueKind};

/// Refuses counters in LDS where the hardware cannot allocate any, or where the launcher puts something at its end.
pub(crate) fn check(target: Target, kernel: &Kernel, metadata: &KernelMetadata) -> Result<(), Refusal> {
    if kernel.descriptor.splits_threadgroups(target) {
        let detail = "the waves of its workgroups run on any compute unit (TG_SPLIT of the descriptor), and such \
            workgroups have no LDS";
        return Err(Refusal::new(Reason::ThreadgroupSplit, detail));
    }
    if let Some(argument) = metadata.argument(&ValueKind::DynamicSharedPointer) {
        let named = argument
            .name
            .as_deref()
            .map_or_else(|| format!("at offset {}", argument.offset), |name| format!("{name:?}"));
        let detail = format!(
            "its argument {named} is a pointer to LDS: the launcher places what such arguments point to after the \
                static LDS of the metadata, where the counters would be"
        );
        return Err(Refusal::new(Reason::LdsArguments, detail));
    }
    Ok(())
}

/// Whether launches may add LDS to the static LDS of a kernel for it to use (`extern __shared__`).
///
/// `told` says that compilers of the code object's version name such kernels by an argument (`hidden_dynamic_lds_size`,
/// from version 5 on), which they do if the kernel has hidden arguments at all. Otherwise, what is dynamic looks like
/// what is static but for its place, and every constant that may be an address at or after the end of the static LDS
/// counts as one.
pub(crate) fn may_be_dynamic(program: &Program, id: BodyId, metadata: &KernelMetadata, told: bool) -> bool {
    if metadata.argument(&ValueKind::HiddenDynamicLdsSize).is_some() {
        return true;
    }
    let told = told && metadata.args.iter().any(|argument| argument.value_kind.is_hidden());
    let fixed = metadata.group_segment_fixed_size;
    let callees = program.callees(id);
    let callees_access = callees.bodies.iter().any(|callee| accesses_lds(program.body(*callee)));
    let body = program.body(id);
    if !accesses_lds(body) && !callees_access {
        // What an unknown function accesses the metadata counts, if it is static.
        return callees.unknown && !told && fixed == 0;
    }
    let bodies = || std::iter::once(body).chain(callees.bodies.iter().map(|callee| program.body(*callee)));
    if fixed == 0 || bodies().flat_map(Body::insts).any(|inst| reaches(inst, fixed)) {
        return true;
    }
    let constants = || fixed..u64::from(body.target().lds_bytes());
    !told && (callees_access || callees.unknown || body.insts().iter().any(|inst| names_constant(inst, &constants())))
}

/// Whether code accesses LDS, by whatever instruction, or takes its place among all memory.
fn accesses_lds(body: &Body) -> bool {
    let aperture = Reg::scalar(scalar::SHARED_BASE, 1);
    body.insts().iter().any(|inst| {
        let takes_aperture = || {
            inst.operands
                .iter()
                .filter_map(|operand| operand.reg())
                .any(|reg| reg.first == aperture.first && reg.file == aperture.file)
        };
        inst.variant.memory == Memory::Lds
            || inst.modifiers.lds
            || inst.is_any(OpcodeFlags::TO_LDS | OpcodeFlags::FROM_LDS)
            || takes_aperture()
    })
}

/// Whether an LDS instruction accesses nothing before this address, whatever its address register holds.
fn reaches(inst: &Inst, address: u64) -> bool {
    let element = u64::from(inst.variant.memory_bytes / 2).max(1);
    let offset = u64::try_from(inst.modifiers.offset).unwrap_or(0).max(u64::from(inst.modifiers.offset1) * element);
    inst.variant.memory == Memory::Lds && offset >= address
}

/// Whether an instruction that computes something names a number in this range.
fn names_constant(inst: &Inst, range: &std::ops::Range<u64>) -> bool {
    let computes = inst.variant.memory == Memory::None && inst.writes().next().is_some();
    computes
        && inst.operands.iter().any(|operand| {
            let number = match operand.value {
                Value::InlineInt(number) => u64::try_from(number).ok(),
                Value::Literal(number) => Some(number.into()),
                Value::Imm(number) => u64::try_from(number).ok(),
                _ => None,
            };
            number.is_some_and(|number| range.contains(&number))
        })
}
