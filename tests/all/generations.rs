//! Analyses of code of each generation: listings that LLVM 22 assembled.

use wavetap::cfg::Cfg;
use wavetap::dataflow::{
    Certainty, Definition, Definitions, Liveness, Operation, RegSet, Summaries, WaitSummaries, Waits,
};
use wavetap::entity::InstId;
use wavetap::isa::{Counter, Reg, Target};
use wavetap::kernel::{Body, BodyKind, BundlingConstraints, CallTarget, Flow, Image};

const START: u64 = 0x1000;

fn target(name: &str, lanes: u32) -> Target {
    Target::by_name(name).and_then(|target| target.with_wave_size(lanes)).expect("a target")
}

/// The kernel that these dwords are.
fn kernel(target: Target, dwords: &[u32]) -> Body {
    let bytes: Vec<u8> = dwords.iter().flat_map(|dword| dword.to_le_bytes()).collect();
    let mut image = Image::new();
    image.add_code(START, &bytes);
    Body::decode(target, &image, "test", BodyKind::Kernel, START).expect("decodes")
}

fn reaching(body: &Body, id: u32, reg: Reg) -> Vec<Definition> {
    let (cfg, summaries) = (Cfg::build(body), Summaries::none());
    Definitions::new(body, &cfg, &summaries).reaching(InstId(id), reg)
}

fn live_before(body: &Body, id: u32) -> RegSet {
    let (cfg, summaries) = (Cfg::build(body), Summaries::none());
    *Liveness::compute(body, &cfg, &summaries).before(InstId(id))
}

const GFX11_END: u32 = 0xbfb0_0000;

#[test]
fn masks_of_32_lanes_narrow_exec_and_leave_vcc_hi_alone() {
    let gfx1100 = target("gfx1100", 32);
    let v0 = Reg::vector(0, 1);
    // v_mov_b32 v0, 1; the next; v_mov_b32 v1, v0
    let behind = |mask: u32| kernel(gfx1100, &[0x7e00_0281, mask, 0x7e02_0300, GFX11_END]);
    let written = Definition::Inst(InstId(0));
    // s_and_saveexec_b32 s0, vcc_lo; s_and_not1_b32 exec_lo, exec_lo, s0
    for narrowing in [0xbe80_206a, 0x917e_007e] {
        assert_eq!(reaching(&behind(narrowing), 2, v0), [written]);
    }
    // s_or_saveexec_b32 s0, vcc_lo
    assert_eq!(reaching(&behind(0xbe80_226a), 2, v0), [Definition::Entry, written]);
    // v_cmp_gt_u32 vcc_lo, 1, v0; s_mov_b32 s1, vcc_hi: an ordinary register here.
    let compare = kernel(gfx1100, &[0x7c98_0081, 0xbe81_006b, GFX11_END]);
    let (low, high) = (Reg::scalar(106, 1), Reg::scalar(107, 1));
    assert!(live_before(&compare, 0).contains(high));
    assert_eq!(reaching(&compare, 1, high), [Definition::Entry]);
    assert!(compare.writes(InstId(0)).any(|reg| reg == low));
    assert!(compare.reads(InstId(0)).any(|reg| reg == Reg::scalar(126, 1)), "EXEC has 32 bits");
}

#[test]
fn masks_of_64_lanes_are_pairs() {
    let gfx1100 = target("gfx1100", 64);
    let v0 = Reg::vector(0, 1);
    let behind = |mask: u32| kernel(gfx1100, &[0x7e00_0281, mask, 0x7e02_0300, GFX11_END]);
    let written = Definition::Inst(InstId(0));
    // s_and_saveexec_b64 s[0:1], vcc; s_and_b64 exec, exec, s[0:1]
    for narrowing in [0xbe80_216a, 0x8bfe_007e] {
        assert_eq!(reaching(&behind(narrowing), 2, v0), [written]);
    }
    let compare = kernel(gfx1100, &[0x7c98_0081, 0xbe81_006b, GFX11_END]);
    assert!(!live_before(&compare, 0).contains(Reg::scalar(107, 1)), "v_cmp writes both halves of VCC");
}

#[test]
fn null_is_no_register_and_both_operations_of_a_pair_read_before_either_writes() {
    let gfx1100 = target("gfx1100", 32);
    // s_add_u32 null, s2, s3
    let body = kernel(gfx1100, &[0x807c_0302, GFX11_END]);
    let written: RegSet = body.writes(InstId(0)).collect();
    assert_eq!(written, RegSet::from_iter([Reg::SCC]));
    // v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0
    let swap = kernel(gfx1100, &[0xca10_0101, 0x0000_0100, GFX11_END]);
    let vectors = |regs: RegSet| regs.vectors();
    let both = RegSet::from_iter([Reg::vector(0, 2)]);
    assert_eq!(vectors(swap.reads(InstId(0)).collect()), both);
    assert_eq!(vectors(swap.writes(InstId(0)).collect()), both);
    assert_eq!(reaching(&swap, 0, Reg::vector(1, 1)), [Definition::Entry]);
}

#[test]
fn registers_above_v255_and_the_program_counter_of_gfx1250() {
    let gfx1250 = target("gfx1250", 32);
    // s_set_vgpr_msb 0x41; v_add_f32 v1, v2, v3; s_get_pc_i64 s[4:5]; s_add_nc_u64 s[4:5], s[4:5], 16; s_set_pc_i64
    // s[4:5]; two words that are none; s_add_pc_i64 8; two more; s_endpgm
    let words = [
        0xbf86_0041,
        0x0602_0702,
        0xbe84_4700,
        0xa984_9004,
        0xbe80_4804,
        u32::MAX,
        u32::MAX,
        0xbe80_4b88,
        u32::MAX,
        u32::MAX,
        GFX11_END,
    ];
    let body = kernel(gfx1250, &words);
    let add = InstId(1);
    let vectors: Vec<Reg> =
        body.reads(add).filter(|reg| *reg == Reg::vector(258, 1) || *reg == Reg::vector(3, 1)).collect();
    assert_eq!(vectors, [Reg::vector(258, 1), Reg::vector(3, 1)]);
    assert!(body.writes(add).any(|reg| reg == Reg::vector(257, 1)));
    let jump = body.ids().find(|id| body.inst(*id).name() == "s_set_pc_i64").expect("a jump");
    let Flow::Jump(to) = body.flow(jump) else { panic!("{:?}", body.flow(jump)) };
    assert_eq!(body.inst(to).name(), "s_add_pc_i64");
    let Flow::Jump(end) = body.flow(to) else { panic!("{:?}", body.flow(to)) };
    assert_eq!(body.address(end), START + 40);
}

/// A call as LLVM makes it for gfx125x, with all 64 bits of the distance in the instruction.
#[test]
fn calls_by_literals_of_64_bits() {
    let gfx1250 = target("gfx1250", 32);
    // s_get_pc_i64 s[0:1]; s_add_nc_u64 s[0:1], s[0:1], 24; s_swap_pc_i64 s[30:31], s[0:1]; s_endpgm; two words that
    // are none; s_endpgm
    let distance = 28_u32;
    let words = [0xbe80_4700, 0xa980_fe00, distance, 0, 0xbe9e_4900, GFX11_END, u32::MAX, u32::MAX, GFX11_END];
    let body = kernel(gfx1250, &words);
    let call = body.ids().find(|id| body.inst(*id).name() == "s_swap_pc_i64").expect("a call");
    assert_eq!(body.flow(call), Flow::Call(CallTarget::Known(START + 4 + u64::from(distance))));
    // Back, to the same place.
    let back = -12_i64 as u64;
    let words =
        [GFX11_END, u32::MAX, 0xbe80_4700, 0xa980_fe00, back as u32, (back >> 32) as u32, 0xbe9e_4900, GFX11_END];
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut image = Image::new();
    image.add_code(START, &code);
    let body = Body::decode(gfx1250, &image, "kernel", BodyKind::Kernel, START + 8).expect("a body");
    let call = body.ids().find(|id| body.inst(*id).name() == "s_swap_pc_i64").expect("a call");
    assert_eq!(body.flow(call), Flow::Call(CallTarget::Known(START)));
}

#[test]
fn gfx12_waits_clauses_and_barriers() {
    let gfx1200 = target("gfx1200", 32);
    // s_clause 1; global_load_b32 v0, v1, s[0:1]; global_load_b32 v2, v1, s[0:1] offset:4; s_wait_loadcnt 1; v_mov_b32
    // v3, v0; s_barrier_signal_isfirst -1; s_barrier_wait -1; s_cselect_b32 s0, 1, 0; s_endpgm
    let words = [
        0xbf85_0001,
        0xee05_0000,
        0,
        1,
        0xee05_0000,
        2,
        0x401,
        0xbfc0_0001,
        0x7e06_0300,
        0xbe80_4fc1,
        0xbf94_ffff,
        0x9800_8081,
        GFX11_END,
    ];
    let body = kernel(gfx1200, &words);
    let neighbours = BundlingConstraints::of(&body);
    assert_eq!(neighbours.clauses().len(), 1);
    assert_eq!((neighbours.clauses()[0].first, neighbours.clauses()[0].last), (InstId(1), InstId(2)));
    assert!(neighbours.tie_after(InstId(1)).is_some() && neighbours.tie_after(InstId(2)).is_none());
    let (cfg, summaries) = (Cfg::build(&body), WaitSummaries::none());
    let waits = Waits::compute(&body, &cfg, &summaries);
    let wait = &waits.all()[0];
    assert_eq!((wait.counter, wait.count), (Counter::Load, 1));
    assert_eq!(wait.operations[0].operation, Operation::Inst(InstId(1)));
    assert_eq!(wait.operations[0].certainty, Certainty::Must);
    assert_eq!(waits.pending_writes(InstId(4)), RegSet::from_iter([Reg::vector(2, 1)]));
    assert!(waits.pending_writes(InstId(6)).contains(Reg::SCC), "the barrier has not answered");
    assert!(!waits.pending_writes(InstId(7)).contains(Reg::SCC));
}

#[test]
fn gfx10_stores_have_a_counter_and_a_register_hides_the_count() {
    let gfx1030 = target("gfx1030", 32);
    // global_store_dword v0, v1, s[0:1]; global_atomic_add v0, v1, v2, s[0:1] glc; global_atomic_add v1, v2, s[0:1];
    // s_waitcnt_vscnt s5, 0; s_waitcnt_vscnt null, 0; s_waitcnt vmcnt(0); s_endpgm
    let words = [
        0xdc70_8000,
        0x0000_0100,
        0xdcc9_8000,
        0x0000_0201,
        0xdcc8_8000,
        0x0000_0201,
        0xbb85_0000,
        0xbbfd_0000,
        0xbf8c_3f70,
        0xbf81_0000,
    ];
    let body = kernel(gfx1030, &words);
    let (cfg, summaries) = (Cfg::build(&body), WaitSummaries::none());
    let waits = Waits::compute(&body, &cfg, &summaries);
    let pending =
        |id: u32, counter| waits.pending(InstId(id), counter).iter().map(|each| each.operation).collect::<Vec<_>>();
    let inst = |id: u32| Operation::Inst(InstId(id));
    for before_wait in [3, 4] {
        assert_eq!(pending(before_wait, Counter::Vs), [inst(0), inst(2)], "the count in s5 is not known");
    }
    assert_eq!(pending(5, Counter::Vs), []);
    assert_eq!(pending(5, Counter::Vm), [inst(1)]);
    assert_eq!(waits.pending_writes(InstId(5)), RegSet::from_iter([Reg::vector(0, 1)]));
    assert_eq!(waits.pending_writes(InstId(6)), RegSet::EMPTY);
}
