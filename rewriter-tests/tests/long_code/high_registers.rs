//! Kernels that name every vector register that instructions have numbers for, and registers above v255 as well
//! (gfx1250, `s_set_vgpr_msb`): inserted code has registers above all of them, in the same 256 as the original's or in
//! the next. The assembler knows the predecessor, which encodes what is here in the same way; the rest are words.

use std::fmt::Write;

use rewriter_tests::Failure;
use rewriter_tests::instrumented::Subject;
use rewriter_tests::kernels::build;
use wavetap::isa::Target;
use wavetap::profile::map::VectorSource;

use super::assembly::{FINISH, START, counted, file, instrumented, on_lanes, variant};
use super::seeds;

/// The target, and the one that the assembler takes it for.
pub const TARGET: &str = "gfx1250";
const ASSEMBLED_FOR: &str = "gfx1200";
/// `e_flags` of the file begins here; the low byte is the processor (EF_AMDGPU_MACH_AMDGCN_GFX1250).
const FLAGS: usize = 0x30;
const PROCESSOR: u8 = 0x49;
/// The first registers that nothing else here uses.
const FIRST: u32 = 5;
/// Registers that instructions can number.
const NUMBERED: u32 = 256;

/// `s_set_vgpr_msb` with the high bits of the first, second and third source and of the destination.
fn high(first: u32, second: u32, third: u32, destination: u32) -> String {
    format!(".long {:#x}\n", 0xbf86_0000 | first | second << 2 | third << 4 | destination << 6)
}

/// A kernel whose code names all registers below v256, and of those after them so many.
fn text(above: u32) -> String {
    let mut body = START.to_owned();
    let mut line = |text: String| writeln!(body, "{text}").expect("text");
    (FIRST..NUMBERED).for_each(|n| line(format!("v_xor_b32 v{n}, {}, v1", n % 64)));
    line(high(0, 0, 0, 1));
    (0..above).for_each(|n| line(format!("v_xor_b32 v{n}, {}, v1", (n + 7) % 64)));
    line(high(0, 0, 0, 0));
    (0..3).for_each(|n| line(on_lanes(n, 2 * n + 1)));
    // The bits of a source that none of these has, and then of a destination that is not written at the branch.
    line(high(0, 0, 1, 0));
    (3..6).for_each(|n| line(on_lanes(n, 2 * n + 1)));
    line(high(0, 0, 0, 1));
    line("s_bitcmp1_b32 s20, 3\n s_cbranch_scc1 .Lover\n v_xor_b32 v0, 9, v1\n.Lover:".to_owned());
    line(high(0, 0, 0, 0));
    (FIRST..NUMBERED).for_each(|n| line(format!("v_xor_b32 v1, v1, v{n}\n v_lshlrev_b32 v1, 1, v1")));
    for n in 0..above {
        line(high(0, 1, 0, 0));
        line(format!("v_xor_b32 v1, v1, v{n}"));
        line(high(0, 0, 0, 0));
        line("v_lshlrev_b32 v1, 1, v1".to_owned());
    }
    body + FINISH
}

/// Original against instrumented.
///
/// # Errors
/// What differs, or where the vector registers of inserted code come from, if they are not unused ones.
pub fn check(above: u32) -> Result<(), Failure> {
    let by_name = |name| Target::by_name(name).ok_or_else(|| format!("no target {name}"));
    let (target, predecessor) = (by_name(TARGET)?, by_name(ASSEMBLED_FOR)?);
    let predecessor = predecessor.with_wave_size(target.wave_size()).ok_or("no such waves")?;
    let code = super::written::kernel("k", &text(above));
    // A count of 256 for the predecessor is one of 512 here.
    let text = file(&code, &["k"], predecessor)
        .replace(".amdhsa_next_free_vgpr 8\n", ".amdhsa_next_free_vgpr 256\n")
        .replace(".vgpr_count: 8\n", &format!(".vgpr_count: {}\n", NUMBERED + above));
    let mut object = build::assembled(&text, variant(predecessor))?;
    object[FLAGS] = PROCESSOR;
    let names: Vec<usize> =
        (0..object.len()).filter(|at| object[*at..].starts_with(ASSEMBLED_FOR.as_bytes())).collect();
    names.into_iter().for_each(|at| object[at..at + TARGET.len()].copy_from_slice(TARGET.as_bytes()));
    let subject = Subject::of(&object, target)?;
    instrumented(&subject, "k")?;
    let sources = subject.vector_sources("k");
    if sources.iter().any(|source| *source != VectorSource::Unused) {
        return Err(format!("vector registers come from {sources:?}"));
    }
    counted(&subject, "k", seeds()).map(drop)
}
