//! Work that grows with the code: kernels of shapes that have cost more than that, of one length and of eight times
//! that length, through every analysis. CPU time of one thread is compared, so that other work on the machine does not
//! matter; twice over, what is linear takes eight times as long and what is quadratic 64 times.

use std::time::Duration;

use cpu_time::ThreadTime;
use rewriter_tests::kernels::build;
use rewriter_tests::{Failure, full};
use wavetap::isa::Target;
use wavetap::offload_bundle::Input;
use wavetap::pipeline::{self, Options, Selection, probe};

use super::assembly::{FINISH, START, file, on_lanes, variant};

/// Blocks of the shorter kernel in the quick run and the full one, and how many times longer the other is.
const BLOCKS: usize = 1000;
const MANY_BLOCKS: usize = 12_500;
const LONGER: usize = 8;
/// The most that the longer one may take, times what the shorter one does.
const MOST: u32 = 28;
/// Shorter times are not compared.
const LEAST: Duration = Duration::from_millis(5);
/// Loops in each other: branches reach no farther.
const DEEPEST: usize = 2000;
/// Blocks between places from which the end is reached.
const PAD: usize = 2000;

/// The text of a kernel of about so many blocks.
type Shape = fn(usize) -> String;

pub const SHAPES: [(&str, Shape); 6] = [
    ("diamonds", diamonds),
    ("divergent", divergent),
    ("nested_divergent", nested_divergent),
    ("ladder", ladder),
    ("nest", nest),
    ("irreducible", irreducible),
];

/// Paths that part and meet again, and move an address differently.
fn diamonds(blocks: usize) -> String {
    let mut text = String::new();
    for n in 0..blocks / 3 {
        let bit = n % 32;
        text += &format!(
            "s_bitcmp1_b32 s20, {bit}\ns_cbranch_scc1 .Lelse{n}\nv_add_u32 v4, 4, v4\ns_add_u32 s22, s22, 4\n\
             s_branch .Lmeet{n}\n.Lelse{n}:\nv_add_u32 v4, 8, v4\ns_add_u32 s22, s22, 8\n.Lmeet{n}:\n"
        );
    }
    text + "v_add_u32 v5, s22, v4\nglobal_load_dword v6, v5, s[4:5]\nWAIT_LOADS\nv_xor_b32 v1, v6, v1\n"
}

/// Divergent branches one after the other.
fn divergent(blocks: usize) -> String {
    (0..blocks / 2).map(|n| on_lanes(n, n % 32).replace("m8", ["m8", "m10", "m12"][n % 3])).collect()
}

/// Divergent branches in loops whose lanes leave one by one.
fn nested_divergent(blocks: usize) -> String {
    let mut text = String::new();
    for n in 0..blocks / 5 {
        text += &format!("s_mov_mask m10, 0\n.Lagain{n}:\n{}", on_lanes(2 * n, n % 32));
        text += &format!(
            "v_cmp_gt_u32 VCC, {:#x}, v1\ns_or_mask m10, VCC, m10\ns_andn2_mask EXEC, EXEC, m10\n\
             s_cbranch_execnz .Lagain{n}\ns_or_mask EXEC, EXEC, m10\n",
            0x100_0000 + n
        );
        text += &on_lanes(2 * n + 1, (n + 1) % 32);
    }
    text
}

/// Places one after the other from which control goes to the end.
fn ladder(blocks: usize) -> String {
    let mut text = String::new();
    for n in 0..blocks {
        if n % PAD == 0 {
            let pad = n / PAD;
            let next = if n + PAD < blocks { format!(".Lpad{}", pad + 1) } else { ".Ldone".to_owned() };
            text += &format!("s_branch .Lover{pad}\n.Lpad{pad}:\ns_branch {next}\n.Lover{pad}:\n");
        }
        text += &format!("s_bitcmp1_b32 s20, {}\ns_cbranch_scc1 .Lpad{}\nv_add_u32 v1, s20, v1\n", n % 32, n / PAD);
    }
    text + ".Ldone:\n"
}

/// Loops in each other, many nests of them in long code.
fn nest(blocks: usize) -> String {
    let mut text = String::new();
    for first in (0..blocks / 2).step_by(DEEPEST) {
        let last = (first + DEEPEST).min(blocks / 2);
        (first..last).for_each(|n| text += &format!(".Lloop{n}:\nv_add_u32 v4, 4, v4\ns_add_u32 s20, s20, 1\n"));
        for n in (first..last).rev() {
            text += &format!("s_sub_u32 s21, s21, 1\ns_bitcmp1_b32 s21, {}\ns_cbranch_scc1 .Lloop{n}\n", n % 5);
        }
    }
    text + "global_load_dword v6, v4, s[4:5]\nWAIT_LOADS\nv_xor_b32 v1, v6, v1\n"
}

/// Loops with two entries, in each other by twos.
fn irreducible(blocks: usize) -> String {
    let mut text = String::new();
    for n in 0..blocks / 3 {
        text += &format!(
            "s_bitcmp1_b32 s20, {}\ns_cbranch_scc1 .Linto{n}\n.Lhead{n}:\nv_add_u32 v4, 4, v4\n.Linto{n}:\n\
             v_add_u32 v1, s20, v1\ns_sub_u32 s21, s21, 1\ns_bitcmp1_b32 s21, 4\ns_cbranch_scc1 .Lhead{n}\n",
            n % 32
        );
        if n % 2 == 1 {
            text += &format!("s_bitcmp1_b32 s21, 3\ns_cbranch_scc1 .Linto{}\n", n - 1);
        }
    }
    text + "global_load_dword v6, v4, s[4:5]\nWAIT_LOADS\nv_xor_b32 v1, v6, v1\n"
}

/// A kernel of that shape, as a code object.
fn object(shape: Shape, blocks: usize, target: Target) -> Result<Vec<u8>, Failure> {
    let code = shape(blocks);
    let text =
        format!(".globl k\n.p2align 8\n.type k,@function\nk:\n{START}{code}{FINISH}\n.Lk_end:\n.size k, .Lk_end-k\n");
    build::assembled(&file(&text, &["k"], target), variant(target))
}

/// One command's work on a code object.
type Command = fn(&[u8]) -> Result<(), Failure>;

const COMMANDS: [(&str, Command); 4] =
    [("rewrite", rewrite), ("memory", memory), ("slice", slice), ("inspect", inspect)];

fn rewrite(object: &[u8]) -> Result<(), Failure> {
    let options = Options { probes: vec![probe::BRANCHES], ..Options::default() };
    let rewritten = pipeline::rewrite(object, &options).map_err(|e| e.to_string())?;
    match rewritten.maps.iter().flat_map(|map| &map.refused).next() {
        Some(refused) => Err(format!("refused: {}: {}", refused.reason, refused.detail)),
        None if rewritten.maps.iter().all(|map| map.kernels.is_empty()) => Err("no kernel was rewritten".to_owned()),
        None => Ok(()),
    }
}

fn memory(object: &[u8]) -> Result<(), Failure> {
    let report = pipeline::memory(object, &Selection::default(), Default::default()).map_err(|e| e.to_string())?;
    if report.kernels.len() == 1 { Ok(()) } else { Err(format!("{} kernels", report.kernels.len())) }
}

fn slice(object: &[u8]) -> Result<(), Failure> {
    pipeline::slice(object, &Selection::default(), Default::default()).map_err(|e| e.to_string())?;
    Ok(())
}

fn inspect(object: &[u8]) -> Result<(), Failure> {
    let input = Input::parse(object).map_err(|e| e.to_string())?;
    if input.code_objects().count() == 1 { Ok(()) } else { Err("no code object".to_owned()) }
}

/// Compares one shape's two lengths, in each command.
///
/// # Errors
/// If the longer kernel takes more than its length is longer, by far; or a command refuses one.
pub fn check(name: &str, shape: Shape, target: Target) -> Result<(), Failure> {
    let blocks = if full() { MANY_BLOCKS } else { BLOCKS };
    let objects = [object(shape, blocks, target)?, object(shape, LONGER * blocks, target)?];
    // Work that is done in parallel stays on the thread whose time is taken.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().map_err(|e| e.to_string())?;
    for (command, run) in COMMANDS {
        let [short, long] = objects.each_ref().map(|object| {
            pool.install(|| {
                let start = ThreadTime::now();
                run(object).map_err(|e| format!("{name}, {command}: {e}"))?;
                Ok::<_, Failure>(start.elapsed())
            })
        });
        let (short, long) = (short?, long?);
        println!("{name}, {command}: {short:.1?} for {blocks} blocks, {long:.1?} for {LONGER} times as many");
        if long > MOST * short.max(LEAST) {
            return Err(format!(
                "{name}, {command}: {short:?} for {blocks} blocks, {long:?} for {LONGER} times as many"
            ));
        }
    }
    Ok(())
}
