//! Kernels that name all registers and access scratch memory, where software has to set FLAT_SCRATCH: their own
//! prologue does, and inserted code moves vector registers there, or to AGPRs. Where one calls a
//! function, nothing but what the kernel reads after the call says that some scalar registers are free in it.

use std::fmt::Write;

use rewriter_tests::Failure;
use rewriter_tests::instrumented::Subject;
use rewriter_tests::kernels::build;
use wavetap::isa::Target;
use wavetap::profile::map::VectorSource;

use super::assembly::{FINISH, GROUP, START, counted, instrumented, on_lanes, spelt, variant};
use super::seeds;
use super::written::kernel;

/// Targets, wave sizes, and where the vector registers go.
pub const TARGETS: [(&str, u32, VectorSource); 5] = [
    ("gfx900", 64, VectorSource::Scratch),
    ("gfx906", 64, VectorSource::Scratch),
    ("gfx90a", 64, VectorSource::Accumulation),
    ("gfx1010", 32, VectorSource::Scratch),
    ("gfx1030", 64, VectorSource::Scratch),
];
/// Vector registers.
const VECTORS: u32 = 256;
/// So many of the scalar registers with a number, the last ones, are dead where branches are.
const DEAD: u32 = 6;
/// The first registers that nothing else here uses.
const FIRST_VECTOR: u32 = 5;
const FIRST_SCALAR: u32 = 32;

/// A function with branches of its own.
fn function() -> String {
    let wait = "s_waitcnt vmcnt(0) lgkmcnt(0)";
    kernel("f", &format!(".Lf:\n {wait}\n{}{} s_setpc_b64 s[30:31]\n", on_lanes(10, 3), on_lanes(11, 6)))
}

/// Calls it with all lanes; nothing keeps a register but what reads it afterwards.
const CALL: &str = "s_mov_mask EXEC, m30\n s_mov_mask m12, EXEC\n s_call_b64 s[30:31], .Lf\n s_mov_mask m30, m12";

/// The kernel, and its file.
fn text(target: Target, calls: bool) -> String {
    let set = match target.flat_scratch_hwreg() {
        None => "s_add_u32 flat_scratch_lo, s2, s5\n s_addc_u32 flat_scratch_hi, s3, 0\n",
        Some(_) => {
            "s_add_u32 s2, s2, s5\n s_addc_u32 s3, s3, 0\n s_setreg_b32 hwreg(HW_REG_FLAT_SCR_LO), s2\n s_setreg_b32 \
                hwreg(HW_REG_FLAT_SCR_HI), s3\n"
        }
    };
    let start = START.replace("s_mov_b32 s23, GROUP", "").replacen("s_load", "s_mov_b32 s23, s4\n s_load", 1);
    let mut body = format!("{set}{start}s_mov_b32 s24, 0\n scratch_store_dword off, v1, s24 offset:4\n");
    let all_scalars = target.addressable_sgprs();
    let (vectors, scalars) = (FIRST_VECTOR..VECTORS, FIRST_SCALAR..all_scalars - DEAD);
    let mut line = |text: String| writeln!(body, "{text}").expect("text");
    vectors.clone().for_each(|n| line(format!("v_xor_b32 v{n}, {}, v1", n % 64)));
    scalars.clone().for_each(|n| line(format!("s_xor_b32 s{n}, s20, {}", n % 64)));
    (all_scalars - DEAD..all_scalars).for_each(|n| line(format!("s_mov_b32 s{n}, {}", n % 64)));
    (0..6).for_each(|n| line(on_lanes(n, 2 * n + 1)));
    line(if calls { CALL } else { "s_mov_mask EXEC, m30" }.to_owned());
    vectors.clone().for_each(|n| line(format!("v_xor_b32 v1, v1, v{n}\n v_lshlrev_b32 v1, 1, v1")));
    scalars.for_each(|n| line(format!("s_xor_b32 s20, s20, s{n}\n s_lshl_b32 s20, s20, 1")));
    line("scratch_load_dword v2, off, s24 offset:4\n s_waitcnt vmcnt(0)\n v_xor_b32 v1, v1, v2".to_owned());
    let code = spelt(&(kernel("k", &(body + FINISH)) + &if calls { function() } else { String::new() }), target);
    let (name, lanes) = (target.name(), target.wave_size());
    let choice = match target.with_wave_size(32) {
        Some(_) => format!(".amdhsa_wavefront_size32 {}\n", u32::from(lanes == 32)),
        None => String::new(),
    };
    // Room that costs no waves.
    let (accum, allocated) = match target.unified_accum() {
        true => (format!(".amdhsa_accum_offset {VECTORS}\n"), VECTORS + 64),
        false => (String::new(), VECTORS),
    };
    format!(
        ".amdgcn_target \"amdgcn-amd-amdhsa--{name}\"\n.text\n{code}.rodata\n.p2align 6\n.amdhsa_kernel k\n\
         .amdhsa_user_sgpr_kernarg_segment_ptr 1\n\
         .amdhsa_user_sgpr_flat_scratch_init 1\n.amdhsa_system_sgpr_workgroup_id_x 1\n\
         .amdhsa_system_sgpr_private_segment_wavefront_offset 1\n\
         .amdhsa_private_segment_fixed_size 16\n.amdhsa_next_free_vgpr {allocated}\n.amdhsa_next_free_sgpr \
         {all_scalars}\n{choice}{accum}.end_amdhsa_kernel\n\
         .amdgpu_metadata\n---\namdhsa.version: [1, 2]\namdhsa.kernels:\n  - .name: k\n    .symbol: k.kd\n    \
         .kernarg_segment_size: 16\n    .kernarg_segment_align: 8\n    .group_segment_fixed_size: 0\n    \
         .private_segment_fixed_size: 16\n    .wavefront_size: {lanes}\n    .sgpr_count: {all_scalars}\n    \
         .vgpr_count: {allocated}\n    .max_flat_workgroup_size: {GROUP}\n    .args:\n      - {{.offset: 0, .size: 8, \
         .value_kind: global_buffer, .address_space: global}}\n      - {{.offset: 8, .size: 8, .value_kind: \
         global_buffer, .address_space: global}}\n...\n.end_amdgpu_metadata\n"
    )
}

/// Original against instrumented, whose vector registers are `elsewhere` meanwhile.
///
/// # Errors
/// What differs, or that they are somewhere else.
pub fn check(target: Target, elsewhere: VectorSource, calls: bool) -> Result<(), Failure> {
    let object = build::assembled(&text(target, calls), variant(target))?;
    let subject = Subject::of(&object, target)?;
    instrumented(&subject, "k")?;
    let sources = subject.vector_sources("k");
    if sources.iter().any(|source| *source != elsewhere) {
        return Err(format!("vector registers come from {sources:?}"));
    }
    counted(&subject, "k", seeds()).map(drop)
}
