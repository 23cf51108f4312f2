//! What is refused and why, registers at entry, growth of allocations. That instrumented kernels run and count right is
//! tested on the emulator.

use std::sync::Arc;

use super::*;
use crate::asm::Asm;
use crate::frame::entry::{Entry, EntryNeeds, ScratchAccess};
use crate::hazard_mitigation::Place;
use crate::scavenge::registers::Allocation;
use wavetap_amdgpu::{Inst, Reg, RegFile, Role, Target, Value};
use wavetap_analysis::dataflow::{RegSet, UsedRegisters};
use wavetap_analysis::kernel::edit::{Item, Snippet};
use wavetap_analysis::kernel::{BodyKind, Image, Reason};
use wavetap_base::entity::ProgramPoint;
use wavetap_object::code_object::{Field, InitialRegisters, KernelDescriptor, KernelMetadata, initial_registers};
use wavetap_profile::map::{self, CounterMode};

const ENTRY: u64 = 0x1000;

mod high_registers;
mod lanes;
mod latency;
mod placement;

fn target(name: &str) -> Target {
    Target::by_name(name).expect("a target")
}

/// Scalar register(s).
fn s(first: u16, dwords: u8) -> Value {
    Value::Reg(Reg::scalar(first, dwords))
}

/// A kernel of these instructions and `s_endpgm`, 64 scalar and 32 vector registers, no LDS.
fn kernel(target: Target, code: &[(&str, &[Value])]) -> (Vec<u8>, Kernel) {
    let mut bytes = Vec::new();
    for (mnemonic, operands) in code.iter().copied().chain([("s_endpgm", [Value::Imm(0)].as_slice())]) {
        let inst = wavetap_amdgpu::build(target, mnemonic, operands).unwrap_or_else(|error| panic!("{error}"));
        bytes.extend(wavetap_amdgpu::encode(target, &inst).expect("encodes"));
    }
    let mut descriptor = KernelDescriptor::from_bytes([0; 64]);
    descriptor.set_allocated_sgprs(64).expect("fits");
    descriptor.set_allocated_vgprs(target, 32).expect("fits");
    if target.unified_accum() {
        descriptor.set_accum_offset(32).expect("fits");
    }
    for (field, value) in [
        (Field::USER_SGPR_COUNT, 8),
        (Field::ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER, 1),
        (Field::ENABLE_SGPR_KERNARG_SEGMENT_PTR, 1),
    ] {
        descriptor.set(field, value).expect("fits");
    }
    let metadata = KernelMetadata {
        max_flat_workgroup_size: 1024,
        wavefront_size: 64,
        sgpr_count: 40,
        vgpr_count: 20,
        ..KernelMetadata::default()
    };
    let kernel = Kernel {
        name: "kernel".to_owned(),
        descriptor_address: 0x500,
        descriptor_offset: 0x500,
        descriptor,
        entry: ENTRY,
        code: ENTRY..ENTRY + bytes.len() as u64,
        sized: true,
        metadata: Some(Arc::new(metadata)),
    };
    (bytes, kernel)
}

fn branches(analysis: &Analysis<'_>, kernel: &Kernel, request: &Request) -> Result<Instrumented, Stop> {
    instrument(&KernelFacts::of(analysis, kernel, &[probe::BRANCHES])?, request)
}

fn plan(target: Target, bytes: &[u8], kernel: &Kernel, mode: CounterMode) -> Result<Instrumented, Stop> {
    plan_probe(probe::BRANCHES, target, bytes, kernel, mode)
}

fn plan_probe(
    probe: probe::ProbeRef,
    target: Target,
    bytes: &[u8],
    kernel: &Kernel,
    mode: CounterMode,
) -> Result<Instrumented, Stop> {
    let mut image = Image::new();
    image.add_code(ENTRY, bytes);
    let program = Program::build(target, &image, [(kernel.name.clone(), BodyKind::Kernel, ENTRY)]);
    instrument(
        &KernelFacts::of(&Analysis::new(&program, &image), kernel, &[probe])?,
        &Request {
            mode,
            placement: CounterPlacement::All,
            index: 0,
            control: 0x9000,
            per_wave: false,
            max_occupancy_loss: None,
        },
    )
}

fn reason(result: Result<Instrumented, Stop>) -> (Reason, Option<u64>) {
    match result {
        Err(Stop::Refused(refusal)) => (refusal.reason, refusal.address),
        Err(Stop::Failed(error)) => panic!("{error}"),
        Ok(_) => panic!("it was not refused"),
    }
}

#[test]
fn instructions_that_are_refused() {
    let target = target("gfx90a");
    let saveexec: (&str, &[Value]) = ("s_and_saveexec_b64", &[s(20, 2), s(22, 2)]);
    let hwreg = |register: i64, offset: i64, size: i64| Value::Imm(register | offset << 6 | (size - 1) << 11);
    let index_on: (&str, &[Value]) = ("s_set_gpr_idx_on", &[s(20, 1), Value::Imm(1)]);
    let (bytes, site_inside) = kernel(target, &[index_on, saveexec, ("s_set_gpr_idx_off", &[])]);
    assert_eq!(
        reason(plan(target, &bytes, &site_inside, CounterMode::Global)),
        (Reason::RegisterIndexMode, Some(ENTRY + 4))
    );
    let (bytes, site_outside) = kernel(target, &[index_on, ("s_set_gpr_idx_off", &[]), saveexec]);
    assert_eq!(plan(target, &bytes, &site_outside, CounterMode::Global).expect("planned").sites.len(), 1);
    let (bytes, ends_inside) = kernel(target, &[index_on]);
    assert_eq!(reason(plan(target, &bytes, &ends_inside, CounterMode::Global)).0, Reason::RegisterIndexMode);
    for (fields, refused) in
        [(hwreg(1, 0, 8), false), (hwreg(1, 27, 1), true), (hwreg(1, 20, 9), true), (hwreg(3, 0, 32), false)]
    {
        let (bytes, kernel) = kernel(target, &[("s_setreg_b32", &[fields, s(20, 1)])]);
        match plan(target, &bytes, &kernel, CounterMode::Global) {
            Ok(_) => assert!(!refused, "{fields:?}"),
            other => assert_eq!((reason(other).0, refused), (Reason::ModeWrite, true), "{fields:?}"),
        }
    }
}

#[test]
fn time_that_is_refused() {
    let plan = |code: &[(&str, &[Value])], mode| {
        let (bytes, kernel) = kernel(target("gfx90a"), code);
        plan_probe(probe::TIME, target("gfx90a"), &bytes, &kernel, mode)
    };
    // A loop to the first instruction, and to the second one.
    let compare: (&str, &[Value]) = ("s_cmp_eq_u32", &[s(20, 1), s(21, 1)]);
    let back: (&str, &[Value]) = ("s_cbranch_scc0", &[Value::Imm(-2)]);
    assert_eq!(reason(plan(&[compare, back], CounterMode::Global)), (Reason::TimedLoop, Some(ENTRY)));
    let planned = plan(&[("s_nop", &[Value::Imm(0)]), compare, back], CounterMode::Global).expect("planned");
    let kinds: Vec<&str> = planned.sites.iter().map(|site| site.kind.name.as_ref()).collect();
    assert_eq!(kinds, ["wave", "empty", "block", "block", "block"]);
    for mode in [CounterMode::Lds, CounterMode::Register] {
        assert_eq!(reason(plan(&[compare], mode)).0, Reason::CounterMode);
    }
}

/// A function with a copy may still run as it was: when one without a copy calls it.
#[test]
fn what_uncopied_functions_call_is_not_always_counted() {
    let target = target("gfx90a");
    let link = s(30, 2);
    let return_: (&str, &[Value]) = ("s_setpc_b64", &[link]);
    let call = |displacement| [link, Value::Imm(displacement)];
    let (to_first, to_second, inner) = (call(2), call(6), call(2));
    let index_bit = Value::Imm(1 | 27 << 6);
    let code = |first: [(&'static str, &[Value]); 1]| -> Vec<String> {
        let code: [(&str, &[Value]); 10] = [
            ("s_call_b64", &to_first),
            ("s_call_b64", &to_second),
            ("s_endpgm", &[Value::Imm(0)]),
            ("s_mov_b64", &[s(34, 2), link]),
            first[0],
            ("s_call_b64", &inner),
            ("s_mov_b64", &[link, s(34, 2)]),
            return_,
            ("s_and_saveexec_b64", &[s(20, 2), s(22, 2)]),
            return_,
        ];
        let (bytes, kernel) = kernel(target, &code);
        let planned = plan(target, &bytes, &kernel, CounterMode::Global).expect("planned");
        assert_eq!(planned.sites.len(), 1);
        planned.uncounted_callees
    };
    assert_eq!(code([("s_nop", &[Value::Imm(0)])]), Vec::<String>::new());
    let uncopied = code([("s_setreg_b32", &[index_bit, s(20, 1)])]);
    assert_eq!(uncopied, ["function_at_0x100c", "function_at_0x1020"]);
}

fn metadata_of(kernel: &mut Kernel) -> &mut KernelMetadata {
    Arc::make_mut(kernel.metadata.as_mut().expect("metadata"))
}

#[test]
fn needs_that_cannot_be_met() {
    let target = target("gfx906");
    let saveexec: (&str, &[Value]) = ("s_and_saveexec_b64", &[s(20, 2), s(22, 2)]);
    let (bytes, good) = kernel(target, &[saveexec]);
    let refused = |change: &dyn Fn(&mut Kernel), mode| {
        let mut kernel = good.clone();
        change(&mut kernel);
        reason(plan(target, &bytes, &kernel, mode)).0
    };
    let lds = |size| move |kernel: &mut Kernel| metadata_of(kernel).group_segment_fixed_size = size;
    let preload = |kernel: &mut Kernel| {
        for (field, value) in [(Field::KERNARG_PRELOAD_LENGTH, 2), (Field::USER_SGPR_COUNT, 8)] {
            kernel.descriptor.set(field, value).expect("fits");
        }
    };
    assert_eq!(refused(&preload, CounterMode::Global), Reason::KernargPreload);
    assert_eq!(refused(&|kernel| kernel.metadata = None, CounterMode::Global), Reason::WorkgroupSize);
    // One site: 5 counters for each of 16 waves, and 7 bytes for alignment. With a byte less, the counters stay in
    // memory.
    for (size, grown) in [(65536 - 16 * 40 - 7, 65536), (65536 - 16 * 40 - 6, 65536 - 16 * 40 - 6)] {
        let mut nearly_full = good.clone();
        lds(size)(&mut nearly_full);
        assert_eq!(
            plan(target, &bytes, &nearly_full, CounterMode::Lds).expect("planned").metadata.group_segment_fixed_size,
            grown
        );
    }
    // Everything that can be enabled, without the dispatch packet's address: 4 + 2 + 2 + 2 + 2 + 1 registers, and two
    // more fit.
    let all = |kernel: &mut Kernel| {
        for field in [
            Field::ENABLE_SGPR_QUEUE_PTR,
            Field::ENABLE_SGPR_DISPATCH_ID,
            Field::ENABLE_SGPR_FLAT_SCRATCH_INIT,
            Field::ENABLE_SGPR_PRIVATE_SEGMENT_SIZE,
        ] {
            kernel.descriptor.set(field, 1).expect("fits");
        }
        kernel.descriptor.set(Field::USER_SGPR_COUNT, 13).expect("fits");
    };
    let mut full = good.clone();
    all(&mut full);
    assert!(plan(target, &bytes, &full, CounterMode::Global).is_ok());
    let every_vector: Vec<[Value; 2]> =
        (0..256).map(|n| [Value::Reg(Reg::vector(n, 1)), Value::Reg(Reg::vector(0, 1))]).collect();
    let code: Vec<(&str, &[Value])> =
        every_vector.iter().map(|operands| ("v_mov_b32_e32", operands.as_slice())).collect();
    let (bytes, spills_vectors) = kernel(target, &code);
    assert!(plan(target, &bytes, &spills_vectors, CounterMode::Lds).is_ok());
    // Both kinds of registers can only be scavenged where values can be spilled to something else.
    let every_scalar: Vec<[Value; 2]> = (0..102).map(|n| [s(n, 1), Value::InlineInt(0)]).collect();
    let scalars = every_scalar.iter().map(|operands| ("s_mov_b32", operands.as_slice()));
    let code: Vec<(&str, &[Value])> = code.into_iter().chain(scalars).collect();
    let (bytes, mut kernel) = kernel(target, &code);
    assert!(plan(target, &bytes, &kernel, CounterMode::Global).is_ok());
    kernel.descriptor.set(Field::USES_DYNAMIC_STACK, 1).expect("fits");
    assert_eq!(reason(plan(target, &bytes, &kernel, CounterMode::Global)).0, Reason::VectorRegisters);
}

/// Where all registers that can be numbered are in use, vector registers are moved to what the target has, if where
/// that is and how large is known.
#[test]
fn kernels_that_use_all_registers() {
    let at_the_limit = |target: Target, accums: u16| {
        let vectors: Vec<[Value; 2]> =
            (0..256).map(|n| [Value::Reg(Reg::vector(n, 1)), Value::Reg(Reg::vector(0, 1))]).collect();
        let scalars: Vec<[Value; 2]> =
            (0..target.addressable_sgprs() as u16).map(|n| [s(n, 1), Value::InlineInt(0)]).collect();
        let accums: Vec<[Value; 2]> =
            (0..accums).map(|n| [Value::Reg(Reg::accum(n, 1)), Value::Reg(Reg::vector(0, 1))]).collect();
        let code = vectors.iter().map(|operands| ("v_mov_b32_e32", operands.as_slice()));
        let code = code.chain(scalars.iter().map(|operands| ("s_mov_b32", operands.as_slice())));
        let code: Vec<_> =
            code.chain(accums.iter().map(|operands| ("v_accvgpr_write_b32", operands.as_slice()))).collect();
        let (bytes, mut kernel) = kernel(target, &code);
        metadata_of(&mut kernel).private_segment_fixed_size = 18;
        if target.unified_accum() {
            kernel.descriptor.set_allocated_vgprs(target, 512).expect("fits");
            kernel.descriptor.set_accum_offset(256).expect("fits");
        }
        (bytes, kernel)
    };
    let numbers = |planned: Instrumented| (planned.metadata.agpr_count, planned.metadata.private_segment_fixed_size);
    for mode in [CounterMode::Global, CounterMode::Lds] {
        for (name, accums, expected) in [
            // Three registers of the original's and three of ours.
            ("gfx908", 0, (6, 18)),
            ("gfx90a", 250, (256, 18)),
            ("gfx942", 251, (0, 20 + 6 * 4)),
            ("gfx1100", 0, (0, 20 + 6 * 4)),
            // Here the prologue has to find it.
            ("gfx906", 0, (0, 20 + 6 * 4)),
            ("gfx90a", 251, (0, 20 + 6 * 4)),
            ("gfx1030", 0, (0, 20 + 6 * 4)),
            ("gfx1200", 0, (0, 20 + 6 * 4)),
        ] {
            let target = target(name);
            let (bytes, kernel) = at_the_limit(target, accums);
            let planned = plan(target, &bytes, &kernel, mode).unwrap_or_else(|stop| panic!("{name}: {stop:?}"));
            let enabled = planned.descriptor.is_set(Field::ENABLE_PRIVATE_SEGMENT);
            assert_eq!((numbers(planned), enabled), (expected, expected.1 != 18), "{name}");
        }
        let target = target("gfx803");
        let (bytes, kernel) = at_the_limit(target, 0);
        assert_eq!(reason(plan(target, &bytes, &kernel, mode)).0, Reason::VectorRegisters);
    }
    let target = target("gfx1100");
    let (bytes, good) = at_the_limit(target, 0);
    for unknown in [
        |kernel: &mut Kernel| metadata_of(kernel).uses_dynamic_stack = true,
        |kernel: &mut Kernel| kernel.descriptor.set(Field::USES_DYNAMIC_STACK, 1).expect("fits"),
        |kernel: &mut Kernel| kernel.descriptor.set(Field::ENABLE_SGPR_PRIVATE_SEGMENT_SIZE, 1).expect("fits"),
        |kernel: &mut Kernel| metadata_of(kernel).private_segment_fixed_size = 1 << 32,
    ] {
        let mut kernel = good.clone();
        unknown(&mut kernel);
        assert_eq!(reason(plan(target, &bytes, &kernel, CounterMode::Global)).0, Reason::VectorRegisters);
    }
}

/// Where every wave has as many scalar registers as any other, those after what the original names may not leave room
/// for VCC and its neighbours: inserted code scavenges instead.
#[test]
fn a_fixed_number_of_scalar_registers() {
    let target = target("gfx802");
    for named in [70, 80, 90, 94] {
        let moves: Vec<[Value; 2]> = (0..named).map(|n| [s(n, 1), Value::InlineInt(0)]).collect();
        let code: Vec<_> = moves.iter().map(|operands| ("s_mov_b32", operands.as_slice())).collect();
        let (bytes, kernel) = kernel(target, &code);
        for mode in [CounterMode::Global, CounterMode::Lds] {
            let planned = plan(target, &bytes, &kernel, mode).unwrap_or_else(|stop| panic!("{named}: {stop:?}"));
            let inserts = planned.edits.inserts.iter().flat_map(|(_, snippet)| &snippet.items);
            let written = inserts
                .filter_map(|item| if let Item::Inst(inst) = item { Some(inst) } else { None })
                .flat_map(Inst::writes);
            let highest = written.collect::<RegSet>().highest_sgpr_below(target.addressable_sgprs() as u16);
            assert!(highest < Some(96 - 6), "{named}: s{highest:?}");
            assert!(planned.metadata.sgpr_count <= 96, "{named}: {}", planned.metadata.sgpr_count);
        }
    }
}

/// What is inserted where instructions name registers above v255 has them name low ones, and sets back what was set.
#[test]
fn high_bits_are_set_back() {
    let target = target("gfx1250");
    let set = |bits: i64| [Value::Imm(bits)];
    let (low, high) = (set(0x4100), set(0x41));
    let saveexec: (&str, &[Value]) = ("s_and_saveexec_b32", &[s(20, 1), s(22, 1)]);
    let move_: (&str, &[Value]) = ("v_mov_b32_e32", &[Value::Reg(Reg::vector(1, 1)), Value::Reg(Reg::vector(2, 1))]);
    let literal: (&str, &[Value]) = ("s_setreg_imm32_b32", &[Value::Imm(0x801), Value::Literal(0x5000)]);
    let sets = |(_, snippet): &(ProgramPoint, Snippet)| -> Vec<(&'static str, Option<Value>)> {
        let ends = [snippet.items.first(), snippet.items.get(1), snippet.items.last()];
        let insts =
            ends.into_iter().filter_map(|item| if let Some(Item::Inst(inst)) = item { Some(inst) } else { None });
        insts.map(|inst| (inst.name(), inst.operand(Role::Simm16).map(|operand| operand.value))).collect()
    };
    let (entered, left) = (("s_set_vgpr_msb", Some(Value::Imm(0x4100))), ("s_set_vgpr_msb", Some(Value::Imm(0x41))));
    let inserts = |code: &[(&str, &[Value])]| {
        let (bytes, mut kernel) = kernel(target, code);
        kernel.descriptor.set(Field::ENABLE_WAVEFRONT_SIZE32, 1).expect("fits");
        plan(target, &bytes, &kernel, CounterMode::Global).expect("planned").edits.inserts
    };
    let inside = inserts(&[("s_set_vgpr_msb", &high), move_, saveexec, move_, ("s_set_vgpr_msb", &low)]);
    assert_eq!((sets(&inside[0])[0], sets(&inside[0]).last()), (entered, Some(&left)));
    // The end of the wave is after.
    assert!(!sets(&inside[1]).contains(&left));
    let outside = inserts(&[("s_set_vgpr_msb", &high), move_, ("s_set_vgpr_msb", &low), saveexec]);
    assert!(outside.iter().all(|insert| !sets(insert).contains(&left)));
    let behind_mode = inserts(&[("s_set_vgpr_msb", &high), move_, literal, saveexec, move_, ("s_set_vgpr_msb", &low)]);
    assert_eq!(sets(&behind_mode[0])[..2], [("s_nop", Some(Value::Imm(0))), entered]);
}

/// With every combination of what can be set at entry, the prologue's last part puts each value where the original code
/// expects it.
#[test]
fn entry_registers_are_put_back() {
    for (name, accesses_scratch) in
        [("gfx803", true), ("gfx906", false), ("gfx90a", false), ("gfx942", false), ("gfx906", true), ("gfx1030", true)]
    {
        let target = target(name);
        let fields = [
            (Field::ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER, 4),
            (Field::ENABLE_SGPR_DISPATCH_PTR, 2),
            (Field::ENABLE_SGPR_QUEUE_PTR, 2),
            (Field::ENABLE_SGPR_KERNARG_SEGMENT_PTR, 2),
            (Field::ENABLE_SGPR_DISPATCH_ID, 2),
            (Field::ENABLE_SGPR_FLAT_SCRATCH_INIT, 2),
            (Field::ENABLE_SGPR_PRIVATE_SEGMENT_SIZE, 1),
            (Field::ENABLE_WORKGROUP_ID_X, 0),
            (Field::ENABLE_WORKGROUP_ID_Y, 0),
            (Field::ENABLE_WORKGROUP_ID_Z, 0),
            (Field::ENABLE_WORKGROUP_INFO, 0),
            (Field::ENABLE_PRIVATE_SEGMENT, 0),
        ];
        for chosen in 0..1u32 << fields.len() {
            let mut descriptor = KernelDescriptor::from_bytes([0; 64]);
            let mut user = 0;
            for (n, (field, sgprs)) in fields.into_iter().enumerate() {
                descriptor.set(field, chosen >> n & 1).expect("fits");
                user += (chosen >> n & 1) * sgprs;
            }
            descriptor.set(Field::USER_SGPR_COUNT, user).expect("fits");
            let old = initial_registers(&descriptor, target).expect("a good descriptor");
            let scratch = if accesses_scratch { ScratchAccess::of(target) } else { ScratchAccess::Given };
            let entry =
                Entry::extend(target, &mut descriptor, EntryNeeds::All, scratch, None).expect("it can be extended");
            let new = initial_registers(&descriptor, target).expect("a good descriptor");
            let is_led = scratch != ScratchAccess::FlatScratch || new.flat_scratch_init.is_some();
            assert!(!accesses_scratch || is_led && new.private_segment_wave_offset.is_some(), "{name} {chosen:#b}");
            let mut asm = Asm::new(target, Place::Entry(RegSet::EMPTY));
            entry.restore(&mut asm).expect("instructions");
            // Each register starts with a number that says what the hardware puts there.
            let mut registers = [0u32; 64];
            for (what, first, width) in values(&new) {
                (0..width).for_each(|n| registers[usize::from(first + n)] = u32::from(what * 8 + n + 1));
            }
            for item in asm.finish().expect("settled").items {
                let Item::Inst(inst) = item else { panic!("{item:?}") };
                let reg = |role| inst.operand(role).and_then(|operand| operand.reg());
                let (Some(to), Some(from)) = (reg(Role::Sdst), reg(Role::Src0)) else {
                    assert_eq!(inst.name(), "v_and_b32");
                    continue;
                };
                let copied: Vec<u32> =
                    (0..from.dwords).map(|n| registers[usize::from(from.first) + usize::from(n)]).collect();
                registers[usize::from(to.first)..][..copied.len()].copy_from_slice(&copied);
            }
            for (what, first, width) in values(&old) {
                for n in 0..width {
                    assert_eq!(
                        registers[usize::from(first + n)],
                        u32::from(what * 8 + n + 1),
                        "{name} {chosen:#b}: value {what} in s{first}"
                    );
                }
            }
        }
    }
}

/// What is set at entry: a number for the value, its first register, how many.
fn values(r: &InitialRegisters) -> Vec<(u16, u16, u16)> {
    let all = [
        (r.private_segment_buffer, 4),
        (r.dispatch_ptr, 2),
        (r.queue_ptr, 2),
        (r.kernarg_ptr, 2),
        (r.dispatch_id, 2),
        (r.flat_scratch_init, 2),
        (r.private_segment_size, 1),
        (r.workgroup_id_x, 1),
        (r.workgroup_id_y, 1),
        (r.workgroup_id_z, 1),
        (r.workgroup_info, 1),
        (r.private_segment_wave_offset, 1),
    ];
    (0..).zip(all).filter_map(|(what, (first, width))| Some((what, first?, width))).collect()
}

#[test]
fn accumulation_registers_move_behind_a_grown_allocation() {
    let target = target("gfx90a");
    let (_, kernel) = kernel(target, &[]);
    let mut before = kernel.descriptor;
    before.set_allocated_vgprs(target, 32 + 50).expect("fits");
    let allocation = Allocation {
        target,
        descriptor: &before,
        used: UsedRegisters::default(),
        accum: 50,
        bounded_calls: true,
        keeps_flat_scratch: true,
        most_vgprs: 512,
    };
    let grown = |sgprs, vgprs| {
        let mut after = before;
        allocation
            .grow(&mut after, sgprs, vgprs)
            .map(|()| (after.allocated_sgprs(target), after.accum_offset(target), after.allocated_vgprs(target)))
    };
    // 82 are allocated as 88.
    assert_eq!(grown(58, 32), Ok((64, Some(32), 88)));
    assert_eq!(grown(59, 33), Ok((80, Some(36), 88)));
    assert_eq!(grown(102, 256), Ok((112, Some(256), 312)));
    let mut full = before;
    full.set_allocated_vgprs(target, 512).expect("fits");
    let allocation = Allocation { descriptor: &full, accum: 480, ..allocation };
    assert!(matches!(allocation.grow(&mut full.clone(), 0, 33), Err(Stop::Refused(refusal))
            if refusal.reason == Reason::VectorRegisters));
}

/// A kernel that names all scalar registers is instrumented with scavenged ones; none of them has a load outstanding.
#[test]
fn scavenged_registers_are_not_load_destinations() {
    let target = target("gfx90a");
    let all: Vec<[Value; 2]> = (0..102).map(|n| [s(n, 1), Value::InlineInt(0)]).collect();
    let mut code: Vec<(&str, &[Value])> = all.iter().map(|operands| ("s_mov_b32", operands.as_slice())).collect();
    let load = [s(16, 16), s(6, 2), Value::Imm(0)];
    let saveexec = [s(4, 2), s(8, 2)];
    let wait = [Value::Imm(0xc07f)];
    code.extend([("s_load_dwordx16", load.as_slice()), ("s_and_saveexec_b64", &saveexec), ("s_waitcnt", &wait)]);
    // Everything is read later, so that all is live.
    let uses: Vec<[Value; 3]> = (0..102).map(|n| [s(0, 1), s(n, 1), s(0, 1)]).collect();
    code.extend(uses.iter().map(|operands| ("s_add_u32", operands.as_slice())));
    let (bytes, mut kernel) = kernel(target, &code);
    kernel.descriptor.set_allocated_sgprs(112).expect("fits");
    let plan = plan(target, &bytes, &kernel, CounterMode::Global).expect("planned");
    assert_eq!(plan.edits.spare_scalar, None);
    let snippet = &plan.edits.inserts[0].1;
    let written: Vec<u16> = snippet
        .items
        .iter()
        .filter_map(|item| if let Item::Inst(inst) = item { Some(inst.writes().collect::<Vec<_>>()) } else { None })
        .flatten()
        .filter(|reg| reg.file == RegFile::Scalar && reg.first < 102)
        .map(|reg| reg.first)
        .collect();
    assert!(written.len() > 8);
    assert!(written.iter().all(|n| !(16..32).contains(n) && ![8, 9].contains(n)), "{written:?}");
}

/// The original reads what nothing has set: that is no reason to keep it, and there are others.
#[test]
fn scavenged_registers_are_not_ones_that_nothing_has_set() {
    let target = target("gfx90a");
    let moves: Vec<[Value; 2]> = (20..102).map(|n| [s(n, 1), Value::InlineInt(0)]).collect();
    let uses: Vec<[Value; 3]> = (0..102).map(|n| [s(0, 1), s(n, 1), s(0, 1)]).collect();
    let saveexec = [s(40, 2), s(42, 2)];
    let mut code: Vec<(&str, &[Value])> = moves.iter().map(|operands| ("s_mov_b32", operands.as_slice())).collect();
    code.push(("s_and_saveexec_b64", &saveexec));
    code.extend(uses.iter().map(|operands| ("s_and_b32", operands.as_slice())));
    let (bytes, mut kernel) = kernel(target, &code);
    kernel.descriptor.set_allocated_sgprs(112).expect("fits");
    let plan = plan(target, &bytes, &kernel, CounterMode::Global).expect("planned");
    assert_eq!(plan.edits.spare_scalar, None);
    let items = plan.edits.inserts[0].1.items.iter();
    let insts = items.filter_map(|item| if let Item::Inst(inst) = item { Some(inst) } else { None });
    let named: RegSet = insts.flat_map(|inst| inst.reads().chain(inst.writes())).collect();
    assert!(named.overlaps(Reg::scalar(0, 6)), "{named:?}: arguments and the scratch buffer's descriptor are there");
    // The two user registers that nothing is in, and those after them.
    assert!(!named.overlaps(Reg::scalar(6, 14)), "{named:?}");
}

/// What is scavenged may lie above everything that the original names: the metadata counts it all the same.
#[test]
fn metadata_counts_scavenged_registers() {
    for name in ["gfx90a", "gfx1030", "gfx1201"] {
        let target = target(name);
        let target = target.with_wave_size(64).unwrap_or(target);
        // More than the prologue needs, all of it live: what is dead has higher numbers.
        let moves: Vec<[Value; 2]> = (0..60).map(|n| [s(n, 1), Value::InlineInt(0)]).collect();
        let uses: Vec<[Value; 3]> = (0..60).map(|n| [s(0, 1), s(n, 1), s(0, 1)]).collect();
        let saveexec = [s(4, 2), s(8, 2)];
        let mut code: Vec<(&str, &[Value])> = moves.iter().map(|operands| ("s_mov_b32", operands.as_slice())).collect();
        code.push(("s_and_saveexec_b64", &saveexec));
        code.extend(uses.iter().map(|operands| ("s_and_b32", operands.as_slice())));
        let (bytes, mut kernel) = kernel(target, &code);
        kernel.descriptor.set_allocated_sgprs(112).expect("fits");
        metadata_of(&mut kernel).sgpr_count = 60;
        let mut image = Image::new();
        image.add_code(ENTRY, &bytes);
        let program = Program::build(target, &image, [(kernel.name.clone(), BodyKind::Kernel, ENTRY)]);
        let analysis = Analysis::new(&program, &image).scavenging();
        let request = Request {
            mode: CounterMode::Global,
            placement: CounterPlacement::All,
            index: 0,
            control: 0x9000,
            per_wave: false,
            max_occupancy_loss: None,
        };
        let planned = branches(&analysis, &kernel, &request).expect("planned");
        let named =
            planned.edits.inserts.iter().flat_map(|(_, snippet)| &snippet.items).filter_map(|item| match item {
                Item::Inst(inst) => inst.operands.iter().filter_map(|operand| operand.reg()).collect::<Vec<_>>().into(),
                _ => None,
            });
        let numbered = |reg: &Reg| reg.file == RegFile::Scalar && u32::from(reg.first) < target.addressable_sgprs();
        let ends = named.flatten().filter(numbered).map(|reg| u64::from(reg.first) + u64::from(reg.dwords));
        let end = ends.max().expect("scalar registers");
        assert!(end > 60, "{name}: something higher is scavenged");
        assert!(planned.metadata.sgpr_count >= end, "{name}: {} of {end}", planned.metadata.sgpr_count);
    }
}

#[test]
fn what_original_code_wrote_is_up_to_date_where_a_snippet_reads_it() {
    let own: RegSet = [Reg::scalar(40, 4)].into_iter().collect();
    let waits = |target: Target, place: Place, reads: &[u16]| {
        let mut asm = Asm::new(target, place);
        for &first in reads {
            asm.op("s_mov_b64", &[s(40, 2), s(first, 2)]).expect("builds");
        }
        let items = asm.finish().expect("settled").items;
        let names = items.iter().filter_map(|item| if let Item::Inst(inst) = item { Some(inst.name()) } else { None });
        names.map(|name| usize::from(name == "s_waitcnt_depctr")).collect::<Vec<usize>>()
    };
    let w64 = target("gfx1100").with_wave_size(64).expect("both sizes");
    let w32 = target("gfx1100").with_wave_size(32).expect("both sizes");
    // Vector instructions may have read what original code wrote as a mask; a wait is enough for all of it.
    assert_eq!(waits(w64, Place::Middle(own), &[2]), [1, 0]);
    assert_eq!(waits(w64, Place::End(own), &[2, 4]), [1, 0, 0]);
    assert_eq!(waits(w64, Place::End(own), &[42]), [0], "nothing else writes it");
    assert_eq!(waits(w64, Place::Entry(own), &[2]), [0, 1], "nothing came before");
    assert_eq!(waits(w32, Place::End(own), &[2]), [0], "its masks are not remembered");
}

/// Lanes are scavenged of unused vector registers first: those may lie after what the metadata count.
#[test]
fn metadata_counts_scavenged_vector_registers() {
    let target = target("gfx908");
    let v = |n| Value::Reg(Reg::vector(n, 1));
    // Two are left, and three are needed.
    let moves: Vec<[Value; 2]> = (0..254).map(|n| [v(n), Value::InlineInt(0)]).collect();
    let uses: Vec<[Value; 3]> = (0..254).map(|n| [v(0), v(n), v(0)]).collect();
    let saveexec = [s(20, 2), s(22, 2)];
    let mut code: Vec<(&str, &[Value])> = moves.iter().map(|operands| ("v_mov_b32_e32", operands.as_slice())).collect();
    code.push(("s_and_saveexec_b64", &saveexec));
    code.extend(uses.iter().map(|operands| ("v_or_b32_e32", operands.as_slice())));
    let (bytes, mut kernel) = kernel(target, &code);
    kernel.descriptor.set_allocated_vgprs(target, 256).expect("fits");
    metadata_of(&mut kernel).vgpr_count = 254;
    let planned = plan(target, &bytes, &kernel, CounterMode::Global).expect("planned");
    assert_eq!(planned.metadata.vgpr_count, 256);
}

/// Where buffer instructions alone reach scratch memory (gfx8), four scalar registers describe it from the entry on,
/// and no snippet scavenges them.
#[test]
fn registers_that_describe_scratch_memory_are_not_scavenged() {
    let target = target("gfx803");
    let v = |n| Value::Reg(Reg::vector(n, 1));
    let with = |unnamed: std::ops::Range<u16>, asks: bool| {
        let scalars: Vec<u16> = (0..102).filter(|n| !unnamed.contains(n)).collect();
        let set: Vec<[Value; 2]> = scalars
            .iter()
            .map(|n| s(*n, 1))
            .chain((0..256).map(v))
            .map(|register| [register, Value::InlineInt(0)])
            .collect();
        let name =
            |n: usize, scalar: &'static str, vector: &'static str| if n < scalars.len() { scalar } else { vector };
        let mut code: Vec<(&str, &[Value])> = set
            .iter()
            .enumerate()
            .map(|(n, operands)| (name(n, "s_mov_b32", "v_mov_b32_e32"), operands.as_slice()))
            .collect();
        let saveexec = [s(4, 2), s(8, 2)];
        code.push(("s_and_saveexec_b64", &saveexec));
        // Everything is read later, so that all is live.
        let uses: Vec<[Value; 3]> =
            scalars.iter().map(|n| [s(0, 1), s(*n, 1), s(0, 1)]).chain((0..256).map(|n| [v(0), v(n), v(0)])).collect();
        code.extend(
            uses.iter().enumerate().map(|(n, operands)| (name(n, "s_and_b32", "v_or_b32_e32"), operands.as_slice())),
        );
        let (bytes, mut kernel) = kernel(target, &code);
        kernel.descriptor.set_allocated_sgprs(112).expect("fits");
        kernel.descriptor.set_allocated_vgprs(target, 256).expect("fits");
        kernel.descriptor.set(Field::ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER, asks.into()).expect("fits");
        plan(target, &bytes, &kernel, CounterMode::Global)
    };
    let planned = with(92..96, true).expect("planned");
    assert_eq!(
        (planned.vector_registers, planned.metadata.private_segment_fixed_size),
        (map::VectorSource::Scratch, 32)
    );
    assert!(planned.descriptor.is_set(Field::ENABLE_PRIVATE_SEGMENT));
    assert_eq!(planned.descriptor.get(Field::ENABLE_SGPR_FLAT_SCRATCH_INIT), 0);
    let described = Reg::scalar(92, 4);
    let insts = |snippet: &Snippet| -> Vec<wavetap_amdgpu::Inst> {
        snippet
            .items
            .iter()
            .filter_map(|item| if let Item::Inst(inst) = item { Some(inst.clone()) } else { None })
            .collect()
    };
    let writes = |inst: &wavetap_amdgpu::Inst| inst.writes().any(|reg| reg.overlaps(described));
    assert_eq!(insts(&planned.edits.prologue).iter().filter(|inst| writes(inst)).count(), 3);
    for (_, snippet) in &planned.edits.inserts {
        let insts = insts(snippet);
        assert!(!insts.iter().any(writes));
        assert!(
            insts.iter().any(|inst| inst.operand(Role::Srsrc).and_then(|operand| operand.reg()) == Some(described))
        );
    }
    for (unnamed, asks, detail) in [(92..96, false, "does not request"), (93..97, true, "no four scalar registers")] {
        let Err(Stop::Refused(refusal)) = with(unnamed, asks) else { panic!("{detail}") };
        assert!(refusal.reason == Reason::VectorRegisters && refusal.detail.contains(detail), "{}", refusal.detail);
    }
}
