//! The largest workgroups of kernels that have all the registers which these leave: they run as rewritten kernels, too,
//! and what does not fit on a compute unit does not run.

use std::path::Path;

use rewriter_tests::dispatch::{self, Launch, Stopped};
use rewriter_tests::kernels::build::{self, Variant};
use wavetap::code_object::CodeObject;
use wavetap::emulator::{FaultKind, Options as Machine};
use wavetap::isa::{EventHazards, Limit, Target};
use wavetap::pipeline::{Counters, Options, probe, rewrite};
use wavetap::verify::check_files;

/// Target, lanes of a wave, and the most vector registers with which all waves of 1024 work-items run on a compute
/// unit, or on two that a workgroup has: registers of a SIMD divided by its share of the waves, in whole granules.
const TARGETS: [(&str, u32, u32); 6] = [
    // 16 waves, 4 of each SIMD: a quarter of 256, and of 512.
    ("gfx906", 64, 64),
    ("gfx908", 64, 64),
    ("gfx90a", 64, 128),
    ("gfx942", 64, 128),
    // 32 waves on 4 SIMDs: an eighth of 1024.
    ("gfx1030", 32, 128),
    // 16 waves on 4 SIMDs: a quarter of 768.
    ("gfx1100", 64, 192),
];

const PROBES: [probe::ProbeRef; 4] = [probe::BRANCHES, probe::TIME, probe::MEMORY, probe::MEMORY_LATENCY];
const COUNTERS: [Counters; 4] = [Counters::Auto, Counters::Lds, Counters::Global, Counters::Register];
const LARGEST: u32 = 1024;

#[test]
fn a_launch_that_was_possible_stays_possible() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/full_workgroups.cpp");
    let (mut counted, mut tight) = (0, 0);
    for (name, lanes, most) in TARGETS {
        let target = Target::by_name(name).and_then(|target| target.with_wave_size(lanes)).expect("a target");
        let original = build::object_of(&source, Variant { target, level: "O2", version: 5 }).expect("it compiles");
        let before = CodeObject::parse(&original).expect("an object");
        let kernel = before.kernel("many_values").expect("the kernel");
        let metadata = kernel.metadata.as_ref().expect("metadata");
        assert_eq!(metadata.max_flat_workgroup_size, u64::from(LARGEST), "{name}");
        assert!(kernel.descriptor.allocated_vgprs(target) <= most, "{name}: the original runs");
        tight += usize::from(kernel.descriptor.allocated_vgprs(target) + 4 > most);
        for probe in PROBES {
            for counters in COUNTERS {
                let place = format!("{name} {} {}", probe.name(), counters.name());
                let options = Options { probes: vec![probe], counters, ..Options::default() };
                let rewritten = rewrite(&original, &options).unwrap_or_else(|error| panic!("{place}: {error}"));
                let refused = &rewritten.maps[0].refused;
                if !refused.is_empty() {
                    let by_name = ["vector_registers", "scalar_registers", "counter_mode", "unlaunchable"];
                    assert!(by_name.contains(&refused[0].reason.as_str()), "{place}: {:?}", refused[0]);
                    continue;
                }
                counted += 1;
                let after = CodeObject::parse(&rewritten.bytes).expect("an object");
                let descriptor = after.kernel("many_values").expect("the kernel").descriptor;
                let vgprs = descriptor.allocated_vgprs(target).next_multiple_of(target.vgpr_granule());
                assert!(vgprs <= most, "{place}: {vgprs} registers, and {LARGEST} work-items have {most}");
                let report = check_files(&original, &rewritten.bytes).expect("readable");
                assert!(report.findings.is_empty(), "{place}: {:?}", report.findings);
                launch(&rewritten.bytes, target, "many_values", LARGEST, true)
                    .unwrap_or_else(|stopped| panic!("{place}: {stopped}"));
            }
        }
    }
    assert!(tight >= 4, "{tight} kernels have all registers");
    assert!(counted >= 45, "{counted} kernels were counted");
}

/// Counters in LDS, where the kernel has all of it, are where there is room for them.
#[test]
fn counters_for_which_lds_has_no_room_are_in_memory() {
    use wavetap::profile::map::CounterMode;
    let target = Target::by_name("gfx90a").expect("a target");
    for (bytes, mode) in [(65536, CounterMode::Global), (32768, CounterMode::Lds)] {
        let text = assembly("gfx90a", 32, bytes);
        let original = build::assembled(&text, Variant { target, level: "O2", version: 5 }).expect("it assembles");
        let options = Options { probes: vec![probe::BRANCHES], counters: Counters::Lds, ..Options::default() };
        let rewritten = rewrite(&original, &options).expect("rewritten");
        assert_eq!(rewritten.maps[0].kernels[0].mode, mode, "{bytes} bytes of LDS");
        launch(&rewritten.bytes, target, "k", 256, true).expect("it runs");
    }
}

#[test]
fn a_workgroup_for_which_there_are_too_few_registers_is_not_launched() {
    // 256 registers of a SIMD are two waves with 128.
    for (name, vgprs, fits, limit) in [
        ("gfx906", 128, 512, Limit::VectorRegisters),
        ("gfx90a", 256, 512, Limit::VectorRegisters),
        ("gfx908", 68, 768, Limit::VectorRegisters),
    ] {
        let target = Target::by_name(name).expect("a target");
        let variant = Variant { target, level: "O2", version: 5 };
        let object = build::assembled(&assembly(name, vgprs, 0), variant).expect("it assembles");
        for strict in [false, true] {
            launch(&object, target, "k", fits, strict).unwrap_or_else(|stopped| panic!("{name}: {stopped}"));
            match launch(&object, target, "k", LARGEST, strict) {
                Err(Stopped::Fault(fault)) => match &fault.kind {
                    FaultKind::NoRoom { limit: found, reason } => {
                        assert_eq!(*found, limit, "{name}");
                        let needed = format!("{vgprs} vector registers");
                        assert!(reason.contains(&needed) && reason.contains("16 waves"), "{name}: {reason}");
                    }
                    other => panic!("{name}: {other}"),
                },
                Err(other) => panic!("{name}: {other}"),
                Ok(()) => panic!("{name}: 16 waves with {vgprs} registers run"),
            }
        }
    }
}

fn launch(object: &[u8], target: Target, kernel: &str, size: u32, strict: bool) -> Result<(), Stopped> {
    let launch = Launch {
        kernel,
        grid: [size, 1, 1],
        group: [size as u16, 1, 1],
        dynamic: 0,
        buffers: vec![vec![3; 4096], vec![0; 4096]],
        arguments: Box::new(|kernel, buffers| {
            let size = kernel.metadata.as_ref().map_or(0, |metadata| metadata.kernarg_segment_size as usize);
            let mut segment = vec![0; size.max(32)];
            segment[..8].copy_from_slice(&buffers[0].to_le_bytes());
            segment[8..16].copy_from_slice(&buffers[1].to_le_bytes());
            segment[16..20].copy_from_slice(&5_u32.to_le_bytes());
            Ok(segment)
        }),
        fuel: 10_000_000,
        tolerated: EventHazards::empty(),
        undefined: false,
    };
    dispatch::run(object, target, &launch, &Machine { strict, ..Machine::default() }, None).map(|_| ())
}

/// A kernel that asks for so many vector registers and so much LDS, and has a branch.
fn assembly(target: &str, vgprs: u32, lds: u32) -> String {
    let offset = if target == "gfx90a" { format!("\t\t.amdhsa_accum_offset {vgprs}\n") } else { String::new() };
    format!(
        ".text
.globl k
.p2align 8
.type k,@function
k:
	v_and_b32_e32 v0, 0x3ff, v0
	v_cmp_gt_u32_e32 vcc, 32, v0
	s_and_saveexec_b64 s[4:5], vcc
	s_cbranch_execz end
	s_load_dwordx2 s[2:3], s[0:1], 0x8
	v_lshlrev_b32_e32 v1, 2, v0
	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v0, s[2:3]
end:
	s_endpgm
	.size k, . - k
	.rodata
	.p2align 6
	.amdhsa_kernel k
		.amdhsa_group_segment_fixed_size {lds}
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_kernarg_size 24
		.amdhsa_next_free_vgpr {vgprs}
		.amdhsa_next_free_sgpr 8
{offset}	.end_amdhsa_kernel
	.amdgpu_metadata
amdhsa.kernels:
  - .group_segment_fixed_size: {lds}
    .kernarg_segment_align: 8
    .kernarg_segment_size: 24
    .max_flat_workgroup_size: 1024
    .name: k
    .private_segment_fixed_size: 0
    .sgpr_count: 14
    .symbol: k.kd
    .vgpr_count: {vgprs}
    .wavefront_size: 64
    .args:
      - {{.size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}}
      - {{.size: 8, .offset: 8, .value_kind: global_buffer, .address_space: global}}
amdhsa.version: [1, 2]
	.end_amdgpu_metadata
"
    )
}
