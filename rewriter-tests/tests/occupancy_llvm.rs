//! Registers as the kernel descriptor counts them, and occupancy, beside what LLVM's compiler says for kernels that ask
//! for many different amounts.
//!
//! `WAVETAP_LLC` names another `llc` than that of Debian's LLVM 19, which does not know all targets; with it kernels
//! whose workgroups may have any size are compared as well, where LLVM 19 takes the largest for all. The long run takes
//! every target that the compiler knows.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use rewriter_tests::full;
use wavetap::code_object::{DESCRIPTOR_SIZE, Field, KernelDescriptor};
use wavetap::isa::{Demand, Target};

/// One of each generation.
const QUICK: [&str; 6] = ["gfx803", "gfx906", "gfx90a", "gfx1010", "gfx1030", "gfx1100"];
/// The highest vector register that a kernel names.
const VECTORS: [u32; 20] = [0, 23, 24, 31, 32, 35, 36, 47, 48, 63, 64, 71, 72, 83, 95, 96, 127, 128, 191, 255];
/// The highest scalar register.
const SCALARS: [u32; 7] = [20, 70, 77, 82, 85, 93, 95];
/// LDS, as tenths of all there is.
const LDS_TENTHS: u32 = 10;
/// The largest workgroup.
const WORKGROUPS: [u32; 6] = [64, 128, 192, 256, 512, 1024];

/// A kernel to be compiled.
struct Ask {
    vector: u32,
    scalar: u32,
    lds_bytes: u32,
    workgroup: u32,
}

/// What LLVM says of it.
#[derive(Default)]
struct Answer {
    vgprs: u32,
    sgprs: u32,
    vgpr_blocks: u32,
    occupancy: u32,
}

/// Every amount of one thing beside little of the others, then mixtures.
fn asks(target: Target) -> Vec<Ask> {
    // LLVM does not round LDS up to what is allocated, so only multiples are asked for.
    let lds = |tenths: u32| target.lds_bytes() * tenths / LDS_TENTHS / target.lds_granule() * target.lds_granule();
    let mut asks: Vec<Ask> =
        VECTORS.iter().map(|&vector| Ask { vector, scalar: 20, lds_bytes: 0, workgroup: 256 }).collect();
    asks.extend(SCALARS.iter().map(|&scalar| Ask { vector: 7, scalar, lds_bytes: 0, workgroup: 256 }));
    for workgroup in WORKGROUPS {
        asks.extend((0..=LDS_TENTHS).map(|tenths| Ask { vector: 7, scalar: 20, lds_bytes: lds(tenths), workgroup }));
    }
    for (step, &vector) in VECTORS.iter().enumerate() {
        let workgroup = WORKGROUPS[step % WORKGROUPS.len()];
        asks.push(Ask {
            vector,
            scalar: SCALARS[step % SCALARS.len()],
            lds_bytes: lds(step as u32 % LDS_TENTHS),
            workgroup,
        });
    }
    asks
}

/// LLVM IR with a kernel `k0`, `k1`, … for each, whose workgroups have the size that was asked for or, if it is `open`,
/// any up to it.
fn source(asks: &[Ask], open: bool) -> String {
    let mut out = String::from("target triple = \"amdgcn-amd-amdhsa\"\n");
    for (index, ask) in asks.iter().enumerate() {
        let _ = writeln!(
            out,
            "@lds{index} = internal addrspace(3) global [{} x i8] poison, align 16",
            ask.lds_bytes.max(1)
        );
        let _ = writeln!(out, "define amdgpu_kernel void @k{index}() #{index} {{");
        let _ = writeln!(out, "  call void asm sideeffect \"\", \"~{{v{}}},~{{s{}}}\"()", ask.vector, ask.scalar);
        if ask.lds_bytes > 0 {
            let _ = writeln!(out, "  store volatile i8 1, ptr addrspace(3) @lds{index}");
        }
        let least = if open { 1 } else { ask.workgroup };
        let _ = writeln!(
            out,
            "  ret void\n}}\nattributes #{index} = {{ \"amdgpu-flat-work-group-size\"=\"{least},{}\" }}",
            ask.workgroup
        );
    }
    out
}

fn newer_llc() -> Option<String> {
    std::env::var("WAVETAP_LLC").ok()
}

fn llc() -> Command {
    Command::new(newer_llc().unwrap_or_else(|| "llc-19".to_owned()))
}

/// The processors that this `llc` knows.
fn known() -> String {
    let output = llc().args(["-march=amdgcn", "-mcpu=help"]).stdin(Stdio::null()).output().expect("llc runs");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What LLVM says, in the order of the kernels.
fn compile(target: Target, wgp_mode: bool, source: &str) -> Vec<Answer> {
    let mut command = llc();
    command
        .arg(format!("-mcpu={}", target.name()))
        .arg("-o=-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // Generic targets have none of the earlier versions, which are the default of LLVM 19.
    command.arg("--amdhsa-code-object-version=6");
    let mut features = Vec::new();
    if target.with_wave_size(96 - target.wave_size()).is_some() {
        features.push(format!("+wavefrontsize{}", target.wave_size()));
    }
    if target.has_wgp_mode() {
        features.push(format!("{}cumode", if wgp_mode { '-' } else { '+' }));
    }
    command.arg(format!("-mattr={}", features.join(",")));
    let mut child = command.spawn().expect("llc runs");
    let mut input = child.stdin.take().expect("piped");
    let text = source.to_owned();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().expect("llc ends");
    writer.join().expect("no panic").expect("llc reads everything");
    assert!(output.status.success(), "{}: {}", target.name(), String::from_utf8_lossy(&output.stderr));
    let mut answers = Vec::new();
    let mut next = Answer::default();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Some((what, value)) = line.trim_start_matches("; ").split_once(": ") else { continue };
        let Ok(value) = value.trim().parse() else { continue };
        match what {
            "NumVGPRsForWavesPerEU" => next.vgprs = value,
            "NumSGPRsForWavesPerEU" => next.sgprs = value,
            "VGPRBlocks" => next.vgpr_blocks = value,
            "Occupancy" => answers.push(Answer { occupancy: value, ..std::mem::take(&mut next) }),
            _ => {}
        }
    }
    answers
}

/// Waves of a SIMD as compilers count them: registers leave room for a part of a workgroup.
fn in_parts(machine: Target, demand: &Demand) -> u32 {
    let waves = demand.workgroup_size.div_ceil(machine.wave_size());
    let by_size = machine.occupancy(&Demand { vgprs: 1, sgprs: 0, lds_bytes: 0, ..*demand }).waves;
    machine
        .waves_by_vgprs(demand.vgprs)
        .min(machine.waves_by_sgprs(demand.sgprs))
        .min(machine.waves_by_lds(demand.lds_bytes, waves, demand.wgp_mode))
        .min(by_size)
}

/// The same of the size of workgroups that reaches most.
fn best_in_parts(machine: Target, demand: &Demand) -> u32 {
    let sizes = (1..=demand.workgroup_size.div_ceil(machine.wave_size())).map(|waves| waves * machine.wave_size());
    let of = |size: u32| in_parts(machine, &Demand { workgroup_size: size.min(demand.workgroup_size), ..*demand });
    sizes.map(of).max().unwrap_or(0)
}

#[test]
fn registers_and_occupancy_are_those_of_llvm() {
    let known = known();
    let is_known = |target: &Target| known.contains(&format!(" {} ", target.name()));
    let targets: Vec<Target> =
        Target::all().filter(|target| is_known(target) && (full() || QUICK.contains(&target.name()))).collect();
    assert!(targets.len() >= QUICK.len(), "llc knows only {} of the targets", targets.len());
    let (mut checked, mut differences) = (0, String::new());
    for target in targets {
        let asks = asks(target);
        let sources = [false, true].map(|open| (open, source(&asks, open)));
        for machine in [32, 64].into_iter().filter_map(|lanes| target.with_wave_size(lanes)) {
            for wgp_mode in [false, true].into_iter().filter(|wgp| !wgp || machine.has_wgp_mode()) {
                let mut answers = Vec::new();
                for (open, source) in sources.iter().filter(|(open, _)| !open || newer_llc().is_some()) {
                    let these = compile(machine, wgp_mode, source);
                    assert_eq!(these.len(), asks.len(), "{}", machine.name());
                    answers.extend(asks.iter().zip(these).map(|(ask, answer)| (ask, *open, answer)));
                }
                for (ask, open, answer) in answers {
                    let Answer { vgprs, sgprs, vgpr_blocks, occupancy } = answer;
                    let mut descriptor = KernelDescriptor::from_bytes([0; DESCRIPTOR_SIZE as usize]);
                    descriptor.set_allocated_vgprs(machine, vgprs).expect("fits");
                    let demand =
                        Demand { vgprs, sgprs, lds_bytes: ask.lds_bytes, workgroup_size: ask.workgroup, wgp_mode };
                    let ours = (
                        descriptor.get(Field::GRANULATED_WORKITEM_VGPR_COUNT),
                        if open { best_in_parts(machine, &demand) } else { in_parts(machine, &demand) },
                    );
                    checked += 1;
                    if !open {
                        // Whole workgroups fill as much of it as LLVM says, but for what is less than one.
                        let simds = machine.simds_per_cu() * if wgp_mode { 2 } else { 1 };
                        let waves = ask.workgroup.div_ceil(machine.wave_size());
                        let whole = (machine.workgroups(&demand) * waves).div_ceil(simds);
                        assert!(
                            whole <= occupancy && occupancy < whole + waves.div_ceil(simds).max(1),
                            "{}: {demand:?}: {whole} waves of whole workgroups, LLVM {occupancy}",
                            machine.name()
                        );
                    }
                    // For an open size LLVM tries the smallest and the largest and two more; the best may be another
                    // one. Each is compared by itself.
                    let same = ours.1 == occupancy || open && ours.1 > occupancy;
                    if !same || ours.0 != vgpr_blocks {
                        let lanes = machine.wave_size();
                        let _ = writeln!(
                            differences,
                            "{}/{lanes}: open {open}, {demand:?}: (blocks, waves) {ours:?}, LLVM {:?}",
                            machine.name(),
                            (vgpr_blocks, occupancy)
                        );
                    }
                }
            }
        }
    }
    eprintln!("{checked} kernels");
    let count = differences.lines().count();
    assert!(
        differences.is_empty(),
        "{count} of {checked} differ:\n{}",
        differences.lines().take(60).collect::<Vec<_>>().join("\n")
    );
}
