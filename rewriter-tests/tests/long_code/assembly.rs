//! Kernels written by hand, in assembly language that fits every target that is tested.
//!
//! A text says `EXEC`, `VCC`, `_mask` and `m8` for the registers, the suffix and the pairs that hold a mask of lanes,
//! which differ with the wave size, and `GROUP` and `WAIT_SCALAR`, `WAIT_LOADS`, `WAIT_STORES` for what differs with
//! the target. All kernels have two arguments, input and output; each work-item reads a word of the input into `v1` at
//! [`START`], and [`FINISH`] writes `v1`, with `s20` in it, to its word of the output.

use rewriter_tests::Failure;
use rewriter_tests::instrumented::{Launch, Subject};
use rewriter_tests::kernels::build::Variant;
use rewriter_tests::random::Random;
use wavetap::isa::{EventHazards, Target};

/// Work-items of a workgroup, and workgroups.
pub const GROUP: u32 = 128;
pub const GROUPS: u32 = 3;
/// Wave-instructions that a kernel may execute.
const FUEL: u64 = 1_000_000;

/// The beginning: `m30` keeps all lanes, `s20` is another number in each wave, `s[4:7]` input and output, `v4` the
/// work-item's offset.
pub const START: &str = "
    s_load_dwordx4 s[4:7], s[0:1], 0x0
    s_mov_b32 s23, GROUP
    v_and_b32 v0, 0x3ff, v0
    s_mov_mask m30, EXEC
    v_lshlrev_b32 v4, 2, v0
    s_mov_b32 s21, 60
    WAIT_SCALAR
    s_lshl_b32 s22, s23, 9
    s_add_u32 s4, s4, s22
    s_addc_u32 s5, s5, 0
    s_add_u32 s6, s6, s22
    s_addc_u32 s7, s7, 0
    global_load_dword v1, v4, s[4:5]
    WAIT_LOADS
    v_readfirstlane_b32 s20, v1
";

/// The end, with any lanes.
pub const FINISH: &str = "
    s_mov_mask EXEC, m30
    v_xor_b32 v1, s20, v1
    global_store_dword v4, v1, s[6:7]
    s_endpgm
";

/// A branch on the lanes of `v1` that have this bit; `n` makes its label another one.
pub fn on_lanes(n: usize, bit: usize) -> String {
    format!(
        "
    v_and_b32 v2, {:#x}, v1
    v_cmp_ne_u32 VCC, 0, v2
    s_and_saveexec_mask m8, VCC
    s_cbranch_execz .Lnone{n}
    v_xor_b32 v1, {:#x}, v1
.Lnone{n}:
    s_or_mask EXEC, EXEC, m8
",
        1_u32 << bit,
        0x5851_f42d_u32.rotate_left(n as u32 % 32)
    )
}

/// The text for a target.
pub fn spelt(text: &str, target: Target) -> String {
    let wide = target.wave_size() == 64;
    let name = target.name();
    let newest = name.starts_with("gfx12");
    let stores = match name {
        _ if newest => "s_wait_storecnt 0x0",
        name if name.starts_with("gfx1") => "s_waitcnt_vscnt null, 0x0",
        _ => "s_waitcnt vmcnt(0)",
    };
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let mut line = line
            .replace("EXEC", if wide { "exec" } else { "exec_lo" })
            .replace("VCC", if wide { "vcc" } else { "vcc_lo" })
            .replace("_mask", if wide { "_b64" } else { "_b32" })
            .replace("GROUP", if newest { "ttmp9" } else { "s2" })
            .replace("WAIT_SCALAR", if newest { "s_wait_kmcnt 0x0" } else { "s_waitcnt lgkmcnt(0)" })
            .replace("WAIT_STORES", stores)
            .replace("WAIT_LOADS", if newest { "s_wait_loadcnt 0x0" } else { "s_waitcnt vmcnt(0)" });
        for first in [8, 10, 12, 30] {
            let pair = if wide { format!("s[{first}:{}]", first + 1) } else { format!("s{first}") };
            line = line.replace(&format!("m{first},"), &format!("{pair},"));
            if let Some(start) = line.strip_suffix(&format!("m{first}")) {
                line = format!("{start}{pair}");
            }
        }
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// A file with these kernels, whose code is `code`.
pub fn file(code: &str, kernels: &[&str], target: Target) -> String {
    let name = target.name();
    let mut text = format!(".amdgcn_target \"amdgcn-amd-amdhsa--{name}\"\n.text\n{}", spelt(code, target));
    let narrow = u32::from(target.wave_size() == 32);
    let choice = if target.with_wave_size(32).is_some() {
        format!(".amdhsa_wavefront_size32 {narrow}\n")
    } else {
        String::new()
    };
    let split = if name == "gfx90a" { ".amdhsa_accum_offset 8\n" } else { "" };
    for kernel in kernels {
        text += &format!(
            ".rodata\n.p2align 6\n.amdhsa_kernel {kernel}\n.amdhsa_user_sgpr_kernarg_segment_ptr 1\n\
             .amdhsa_system_sgpr_workgroup_id_x 1\n\
             .amdhsa_next_free_vgpr 8\n.amdhsa_next_free_sgpr 40\n{choice}{split}.end_amdhsa_kernel\n"
        );
    }
    text += ".amdgpu_metadata\n---\namdhsa.version: [1, 2]\namdhsa.kernels:\n";
    for kernel in kernels {
        text += &format!(
            "  - .name: {kernel}\n    .symbol: {kernel}.kd\n    .kernarg_segment_size: 16\n    .kernarg_segment_align: \
                8\n    .group_segment_fixed_size: 0\n    .private_segment_fixed_size: 0\n    .wavefront_size: {}\n    \
                .sgpr_count: 46\n    .vgpr_count: 8\n    .max_flat_workgroup_size: {GROUP}\n    .args:\n",
            target.wave_size()
        );
        for offset in [0, 8] {
            text += &format!(
                "      - {{.offset: {offset}, .size: 8, .value_kind: global_buffer, .address_space: global}}\n"
            );
        }
    }
    text + "...\n.end_amdgpu_metadata\n"
}

/// How a text for this target is assembled.
pub fn variant(target: Target) -> Variant {
    Variant { target, level: "O0", version: 5 }
}

/// A dispatch of a kernel.
pub fn launch(kernel: &str) -> Launch<'_> {
    let mut random = Random::new(7);
    let input = (0..GROUP * GROUPS).flat_map(|_| (random.bits() as u32).to_le_bytes()).collect();
    Launch {
        kernel,
        grid: [GROUP * GROUPS, 1, 1],
        group: [GROUP as u16, 1, 1],
        dynamic: 0,
        buffers: vec![input, vec![0xaa; (GROUP * GROUPS * 4) as usize]],
        arguments: Box::new(|_, at| Ok(at.iter().flat_map(|address| address.to_le_bytes()).collect())),
        fuel: FUEL,
        tolerated: EventHazards::empty(),
        undefined: false,
    }
}

/// A kernel in the modes that it is instrumented in beside the original, for so many seeds: what was counted there.
///
/// # Errors
/// If something differs, or nothing was compared.
pub fn counted(subject: &Subject<'_>, kernel: &str, seeds: u64) -> Result<u64, Failure> {
    let launch = launch(kernel);
    let outcome = subject.original(&launch, 0).map_err(|e| format!("{kernel}: the original: {e}"))?;
    if outcome.buffers[1] == launch.buffers[1] {
        return Err(format!("{kernel} writes nothing"));
    }
    let compared = subject.compare(&launch, 0..seeds).map_err(|e| format!("{kernel}: {e}"))?;
    if compared.dispatches != subject.dispatches(kernel, seeds) || compared.unordered > 0 || compared.executions == 0 {
        return Err(format!("{kernel}: {compared:?}"));
    }
    Ok(compared.executions)
}

/// That a kernel is instrumented in both modes.
///
/// # Errors
/// Why it is not.
pub fn instrumented(subject: &Subject<'_>, kernel: &str) -> Result<(), Failure> {
    match subject.refusals(kernel).first() {
        Some((mode, refused)) => Err(format!("{kernel}, --counters {mode}: {}: {}", refused.reason, refused.detail)),
        None => Ok(()),
    }
}
