//! Control flow. The first byte says how often a piece of code is repeated, up to some 100,000 blocks in all; of the
//! others each pair is an instruction of it: branches forwards and backwards, masks that are saved and restored,
//! additions. Analyses end soon, whatever graph that is.

use wavetap::amd_code::{CodeInputs, with_code};
use wavetap::cfg::{Cfg, Program};
use wavetap::dataflow::{Definitions, Liveness, Summaries, WaitSummaries, Waits};
use wavetap::isa::{self, Reg, Target, Value};
use wavetap::kernel::{BodyKind, Image};
use wavetap::memory::{Accesses, Launched, WaveAccesses};
use wavetap::slice::{KernelInputs, slice_kernel};

/// Where the code is.
const ENTRY: u64 = 0x1000;
/// Instructions of the longest code.
const MOST: usize = 300_000;

/// An instruction: what it is, and where a branch goes, which register it is about, or what is added.
fn instruction(target: Target, kind: u8, argument: u8) -> Option<Vec<u8>> {
    let exec = Value::Reg(Reg::EXEC);
    let mask = Value::Reg(Reg::scalar(u16::from(argument % 8) * 2 + 4, 2));
    let to = Value::Imm(i64::from(argument.cast_signed()));
    let lanes = Value::Reg(Reg::vector(u16::from(argument % 4), 1));
    let number = Value::InlineInt(i8::from(argument & 4 != 0) * 4 + 4);
    let (name, operands): (&str, Vec<Value>) = match kind % 16 {
        0..=2 => ("s_cbranch_scc1", vec![to]),
        3 => ("s_cbranch_execz", vec![to]),
        4 => ("s_branch", vec![to]),
        5 | 6 => ("s_and_saveexec_b64", vec![mask, Value::Reg(Reg::VCC)]),
        7 | 8 => ("s_or_b64", vec![exec, exec, mask]),
        9 => ("s_xor_b64", vec![exec, exec, mask]),
        10 => ("s_andn2_b64", vec![exec, exec, mask]),
        11 => ("s_andn2_saveexec_b64", vec![mask, mask]),
        12 => ("s_mov_b64", vec![mask, Value::InlineInt(0)]),
        13 => ("s_or_b64", vec![mask, mask, Value::Reg(Reg::VCC)]),
        _ => ("v_add_u32_e32", vec![lanes, number, lanes]),
    };
    isa::encode(target, &isa::build(target, name, &operands).ok()?).ok()
}

/// Analyses a kernel.
///
/// # Panics
/// If an analysis does.
pub fn run(data: &[u8]) {
    let Some(target) = Target::by_name("gfx90a") else { return };
    let Some((&times, rest)) = data.split_first() else { return };
    let piece: Vec<Vec<u8>> = rest.chunks_exact(2).filter_map(|pair| instruction(target, pair[0], pair[1])).collect();
    let times = (1_usize << (times % 18)).min(MOST / piece.len().max(1));
    // Before and after is code for branches that go beyond; at the end is a load by whose address registers are looked
    // for.
    let v = |number| Value::Reg(Reg::vector(number, 1));
    let zero = [Value::Imm(0)];
    let one = |name, operands: &[Value]| {
        let inst = isa::build(target, name, operands).ok();
        inst.and_then(|inst| isa::encode(target, &inst).ok()).unwrap_or_default()
    };
    let mut code = one("s_nop", &zero).repeat(1 << 7);
    code.extend(piece.concat().repeat(times));
    code.extend(one("ds_read_b32", &[v(8), v(1)]));
    code.extend(one("s_endpgm", &zero).repeat(1 << 7));
    let mut image = Image::new();
    image.add_code(ENTRY, &code);
    let program = Program::build(target, &image, [("k".to_owned(), BodyKind::Kernel, ENTRY)]);
    let (summaries, waits) = (Summaries::compute(&program), WaitSummaries::compute(&program));
    for body in program.bodies() {
        let cfg = Cfg::build(body);
        let (loops, dominators) = (cfg.loops(), cfg.dominators());
        for each in loops.all() {
            assert!(each.blocks.iter().all(|block| dominators.dominates(each.header, *block)));
        }
        let _ = (cfg.post_dominators(), Liveness::compute(body, &cfg, &summaries));
        let _ = Waits::compute(body, &cfg, &waits).all_pending_writes();
        let definitions = Definitions::new(body, &cfg, &summaries);
        let accesses = Accesses::of(body, &definitions, Default::default());
        let launched = Launched::default();
        let mut waves = WaveAccesses::new(&accesses, &launched);
        accesses.all().iter().for_each(|access| {
            waves.site(access);
        });
        let sliced = with_code(&CodeInputs::new(body, &waits, &summaries), |code| {
            let _ = slice_kernel(&KernelInputs::new(code), "k");
        });
        sliced.expect("decoded code is code");
    }
}

/// Rows of diamonds, loops in each other, divergent branches, and paths that cross.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let pieces: [&[(u8, u8)]; 4] = [
        &[(0, 2), (14, 1), (4, 1), (14, 5)],
        &[(14, 1), (0, 0xfe), (14, 5), (0, 0xfa)],
        &[(5, 0), (3, 1), (14, 1), (7, 0), (5, 1), (7, 1)],
        &[(0, 1), (4, 2), (0, 1), (4, 0)],
    ];
    let seed = |times: u8| {
        move |piece: &[(u8, u8)]| {
            std::iter::once(times).chain(piece.iter().flat_map(|(kind, argument)| [*kind, *argument])).collect()
        }
    };
    [2, 10].into_iter().flat_map(|times| pieces.map(seed(times))).collect()
}
