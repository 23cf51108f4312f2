//! Placed code is walked word by word, by a walker that knows six instructions and nothing of the tables.

use super::*;
use wavetap_amdgpu::{Opcode, Reg, Value};
use wavetap_analysis::kernel::edit::{Edits, Item, Label, Snippet};
use wavetap_analysis::kernel::random::Random;
use wavetap_analysis::kernel::{Body, BodyKind, Image, Reason, Stop};
use wavetap_base::entity::{InstId, ProgramPoint, Side};

const ORIGINAL: u64 = 0x1900;
const BASE: u64 = 0x7_0000;

/// `s_movk_i32 s5, n`: an original instruction that can be told from others.
const MARK: u32 = 0xb005_0000;
/// `s_movk_i32 s6, n`: an inserted one.
const INSERTED: u32 = 0xb006_0000;
const S_ENDPGM: u32 = 0xbf81_0000;
const S_BRANCH: u32 = 0xbf82_0000;
const S_CBRANCH_SCC0: u32 = 0xbf84_0000;
const S_CBRANCH_SCC1: u32 = 0xbf85_0000;

fn gfx90a() -> Target {
    Target::by_name("gfx90a").expect("a target")
}

fn words(code: &[u32]) -> Vec<u8> {
    code.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn body(code: &[u8]) -> Body {
    let mut image = Image::new();
    image.add_code(ORIGINAL, code);
    Body::decode(gfx90a(), &image, "kernel", BodyKind::Kernel, ORIGINAL).expect("decodes")
}

fn plan(code: &[u8], edits: &Edits) -> Result<Code, Stop> {
    let mut image = Image::new();
    image.add_code(ORIGINAL, code);
    Code::of_bodies(&body(code), &[], &image, edits)
}

fn inserted(number: u32) -> Snippet {
    let operands = [Value::Reg(Reg::scalar(6, 1)), Value::Imm(number.into())];
    Snippet { items: vec![Item::Inst(wavetap_amdgpu::build(gfx90a(), "s_movk_i32", &operands).expect("s_movk_i32"))] }
}

/// Executes code from offset 0 on; conditional branches ask `decide`. The words of all marks in order.
fn walk(code: &[u8], mut decide: impl FnMut() -> bool, steps: usize) -> Vec<u32> {
    let mut trace = Vec::new();
    let mut pc = 0usize;
    for _ in 0..steps {
        let word = u32::from_le_bytes(code[pc..pc + 4].try_into().expect("four bytes"));
        pc += 4;
        let taken = match word & 0xffff_0000 {
            MARK | INSERTED => {
                trace.push(word);
                false
            }
            S_ENDPGM => return trace,
            S_BRANCH => true,
            S_CBRANCH_SCC0 | S_CBRANCH_SCC1 => decide(),
            _ => panic!("word {word:#x} at {pc:#x}"),
        };
        if taken {
            pc = pc.checked_add_signed(isize::from(word as u16 as i16) * 4).expect("a branch inside the code");
        }
    }
    trace
}

#[test]
fn what_fills_behind_a_hanging_branch_puts_nothing_out_of_reach() {
    let target = Target::by_name("gfx1010").expect("a target");
    // The first branch reaches its target just so, and the second one has the displacement that hangs.
    let mut code = vec![S_CBRANCH_SCC0 | 0x7fff, S_CBRANCH_SCC1 | 0x3f];
    code.extend((2..0x8000).map(|at| MARK | at & 0xffff));
    code.push(S_ENDPGM);
    let code = words(&code);
    let mut image = Image::new();
    image.add_code(ORIGINAL, &code);
    let body = Body::decode(target, &image, "kernel", BodyKind::Kernel, ORIGINAL).expect("decodes");
    let placed = Code::of_bodies(&body, &[], &image, &Edits::default()).expect("plans").bytes(BASE).expect("places");
    assert!(placed.chunks_exact(4).all(|word| word[..2] != [0x3f, 0] || word[3] != 0xbf));
    assert!(walk(&placed, || true, 100).is_empty());
    let mut decisions = [false, true].into_iter();
    assert_eq!(walk(&placed, || decisions.next().expect("enough"), 100)[0], MARK | 65);
}

#[test]
fn an_instruction_that_the_loader_changes_is_not_copied() {
    let code = words(&[MARK, MARK | 1, MARK | 2, MARK | 3, S_ENDPGM]);
    for (slot, place) in [(ORIGINAL - 4, Some(0)), (ORIGINAL + 8, Some(8)), (ORIGINAL - 8, None), (ORIGINAL + 20, None)]
    {
        let mut image = Image::new();
        image.add_code(ORIGINAL, &code);
        image.add_variable(slot, ORIGINAL);
        match (Code::of_bodies(&body(&code), &[], &image, &Edits::default()), place) {
            (Err(Stop::Refused(refusal)), Some(offset)) => {
                assert_eq!((refusal.reason, refusal.address), (Reason::Undecodable, Some(ORIGINAL + offset)));
            }
            (Ok(_), None) => {}
            (other, _) => panic!("{slot:#x}: {other:?}"),
        }
    }
}

/// Marks and branches between them, with an end that is reachable.
fn random_code(random: &mut Random) -> Vec<u32> {
    let count = 3 + random.below(24) as usize;
    let mut code: Vec<u32> = (0..count)
        .map(|at| {
            let target = random.below(count as u64 + 1) as i64;
            let displacement = (target - at as i64 - 1) as i16 as u16;
            match random.below(6) {
                0 => S_CBRANCH_SCC0 | u32::from(displacement),
                1 => S_CBRANCH_SCC1 | u32::from(displacement),
                2 if target > at as i64 => S_BRANCH | u32::from(displacement),
                3 if at > 2 => S_ENDPGM,
                _ => MARK | at as u32,
            }
        })
        .collect();
    code.push(S_ENDPGM);
    code
}

/// What the edited code must do, from the original code and the edits alone.
fn expected(body: &Body, code: &[u8], edits: &Edits, mut decide: impl FnMut() -> bool, steps: usize) -> Vec<u32> {
    let mut trace = Vec::new();
    let run = |trace: &mut Vec<u32>, inst, side| {
        for (_, snippet) in edits.inserts.iter().filter(|(point, _)| *point == ProgramPoint { inst, side }) {
            trace.extend(snippet.items.iter().map(|item| match item {
                Item::Inst(inst) => u32::from_le_bytes(
                    wavetap_amdgpu::encode(gfx90a(), inst).expect("encodes").try_into().expect("a word"),
                ),
                other => panic!("{other:?}"),
            }));
        }
    };
    let mut at = InstId(0);
    for _ in 0..steps {
        let offset = (body.address(at) - ORIGINAL) as usize;
        let word = u32::from_le_bytes(code[offset..offset + 4].try_into().expect("four bytes"));
        run(&mut trace, at, Side::Before);
        let taken = match word & 0xffff_0000 {
            MARK => {
                trace.push(word);
                false
            }
            S_ENDPGM => return trace,
            S_BRANCH => true,
            _ => decide(),
        };
        if taken {
            let to = body.address(at) + 4;
            at = body.at(to.wrapping_add_signed(i64::from(word as u16 as i16) * 4)).expect("a branch target");
        } else {
            run(&mut trace, at, Side::After);
            at = InstId(at.0 + 1);
        }
    }
    trace
}

#[test]
fn edited_code_does_what_the_edits_say() {
    for seed in 0..400 {
        let random = &mut Random::new(seed);
        let code = words(&random_code(random));
        let body = body(&code);
        let mut inserts = Vec::new();
        for number in 0..random.below(12) as u32 {
            let side = if random.below(2) == 0 { Side::Before } else { Side::After };
            let inst = InstId(random.below(body.len() as u64) as u32);
            inserts.push((ProgramPoint { inst, side }, inserted(number)));
        }
        inserts.sort_by_key(|(point, _)| *point);
        let edits = Edits { inserts, ..Edits::default() };
        let placed = plan(&code, &edits).expect("plans").bytes(BASE).expect("places");
        // The same decisions, and a walk that ends by itself or is long enough to be compared over its common part.
        let decisions: Vec<bool> = (0..64).map(|_| random.below(2) == 0).collect();
        let decide = || {
            let mut next = decisions.iter().cycle();
            move || *next.next().expect("it cycles")
        };
        let (wanted, got) = (expected(&body, &code, &edits, decide(), 500), walk(&placed, decide(), 2000));
        let common = wanted.len().min(got.len());
        assert!(common == wanted.len() || wanted.len() > 300, "seed {seed}: {wanted:x?} {got:x?}");
        assert_eq!(wanted[..common], got[..common], "seed {seed}");
    }
}

/// Code that has become so long that branches do not reach: what it does stays the same.
#[test]
fn long_branches_go_through_islands() {
    for seed in 0..12 {
        let random = &mut Random::new(seed);
        let code = words(&random_code(random));
        let body = body(&code);
        let long = |number: u32| Snippet { items: (0..6_000).map(|_| inserted(number).items.remove(0)).collect() };
        let inserts: Vec<_> = body
            .ids()
            .filter(|id| id.0 % 2 == (seed % 2) as u32)
            .map(|inst| (ProgramPoint { inst, side: Side::Before }, long(inst.0)))
            .collect();
        let edits = Edits { inserts, ..Edits::default() };
        let placed = plan(&code, &edits).expect("plans").bytes(BASE).expect("places");
        let decisions: Vec<bool> = (0..64).map(|_| random.below(2) == 0).collect();
        let decide = || {
            let mut next = decisions.iter().cycle();
            move || *next.next().expect("it cycles")
        };
        let (wanted, got) = (expected(&body, &code, &edits, decide(), 60), walk(&placed, decide(), 400_000));
        let common = wanted.len().min(got.len());
        assert!(common == wanted.len() || common > 200_000, "seed {seed}");
        assert!(wanted[..common] == got[..common], "seed {seed}");
    }
    // Forwards and backwards over 400 KB.
    let far = |inst| {
        (
            ProgramPoint { inst: InstId(inst), side: Side::Before },
            Snippet { items: vec![inserted(0).items.remove(0); 5_000] },
        )
    };
    let mut code = vec![S_CBRANCH_SCC0 | 20];
    code.extend((0..20).map(|n| MARK | n));
    code.extend([MARK | 50, S_CBRANCH_SCC1 | 0xffe9, S_ENDPGM]);
    let code = words(&code);
    let edits = Edits { inserts: (1..21).map(far).collect(), ..Edits::default() };
    let placed = plan(&code, &edits).expect("plans").bytes(BASE).expect("places");
    assert!(placed.len() > 400_000);
    let mut decisions = [false, false].into_iter();
    // Not taken, down through everything. Then taken at once, back to the start from the end, and the same again.
    let trace = walk(&placed, || decisions.next().expect("enough"), 1_000_000);
    assert_eq!(trace.iter().filter(|word| **word == MARK | 50).count(), 1);
    let mut decisions = [true, true, true, false].into_iter();
    assert_eq!(walk(&placed, || decisions.next().expect("enough"), 1_000), [MARK | 50, MARK | 50]);
}

#[test]
fn a_prologue_runs_once_and_labels_are_its_own() {
    // A loop back to the first instruction.
    let code = words(&[MARK, S_CBRANCH_SCC1 | 0xfffe, S_ENDPGM]);
    let branch = |opcode| Item::Branch { opcode, label: Label(0) };
    let mut prologue = inserted(1);
    prologue.items.extend([branch(Opcode::S_CBRANCH_SCC1), inserted(2).items.remove(0), Item::Label(Label(0))]);
    let before = Snippet {
        items: vec![
            branch(Opcode::S_BRANCH),
            inserted(9).items.remove(0),
            Item::Label(Label(0)),
            inserted(3).items.remove(0),
        ],
    };
    let edits = Edits {
        prologue,
        inserts: vec![(ProgramPoint { inst: InstId(0), side: Side::Before }, before)],
        ..Edits::default()
    };
    let placed = plan(&code, &edits).expect("plans").bytes(BASE).expect("places");
    let mut decisions = [true, true, false].into_iter();
    let trace = walk(&placed, || decisions.next().expect("three decisions"), 100);
    assert_eq!(trace, [INSERTED | 1, INSERTED | 3, MARK, INSERTED | 3, MARK]);
}

#[test]
fn an_aside_is_placed_after_the_body_and_returns() {
    let code = words(&[MARK, S_CBRANCH_SCC1 | 0xfffe, S_ENDPGM]);
    let one = |number| inserted(number).items.remove(0);
    let (aside, skip) = (Label(0), Label(1));
    let branch = |opcode, label| Item::Branch { opcode, label };
    let items = vec![
        branch(Opcode::S_CBRANCH_SCC0, aside),
        Item::Aside,
        Item::Label(aside),
        one(1),
        branch(Opcode::S_CBRANCH_SCC1, skip),
        one(2),
        Item::Label(skip),
        Item::AsideEnd,
        one(3),
    ];
    let at = ProgramPoint { inst: InstId(0), side: Side::After };
    let edits = Edits { inserts: vec![(at, Snippet { items })], ..Edits::default() };
    let placed = plan(&code, &edits).expect("plans").bytes(BASE).expect("places");
    // Nothing but the branch to it is before the rest of the snippet, and it is after the end.
    let word = |index: usize| u32::from_le_bytes(placed[4 * index..4 * index + 4].try_into().expect("a word"));
    assert_eq!((word(0), word(2), word(4), word(5)), (MARK, INSERTED | 3, S_ENDPGM, INSERTED | 1));
    // Not there, then there with the inner branch and without it.
    let mut decisions = [false, true, true, true, true, true, false, false].into_iter();
    let trace = walk(&placed, || decisions.next().expect("enough"), 100);
    let (mark, inserted) = (MARK, |number: u32| INSERTED | number);
    let all = [mark, inserted(3), mark, inserted(1), inserted(3), mark, inserted(1), inserted(2), inserted(3)];
    assert_eq!(trace, all);
}

#[test]
fn the_program_counter_is_the_original_one() {
    const S_GETPC_S0: u32 = 0xbe80_1c00;
    const S_ADD_U32_S0_S0_1: u32 = 0x8000_8100;
    const S_NOP: u32 = 0xbf80_0000;
    let spare = Some(Reg::scalar(40, 1));
    for (follows, spare, keeps_scc) in
        [(S_ADD_U32_S0_S0_1, None, false), (S_NOP, spare, true), (S_CBRANCH_SCC0, spare, true)]
    {
        let code = words(&[S_NOP, S_GETPC_S0, follows, S_ENDPGM]);
        let placed = plan(&code, &Edits { spare_scalar: spare, ..Edits::default() })
            .expect("plans")
            .bytes(BASE)
            .expect("places");
        // s_nop, s_getpc, then what makes the pair the original program counter.
        assert_eq!(placed[..8], code[..8]);
        let mut at = 8;
        let mut sum = BASE + 8;
        let mut names = Vec::new();
        while placed[at..at + 4] != code[8..12] {
            let inst = wavetap_amdgpu::decode(gfx90a(), &placed[at..]).expect("decodes");
            names.push(inst.name());
            if let Some(Value::Literal(literal)) = inst.operand(wavetap_amdgpu::Role::Src1).map(|operand| operand.value)
            {
                assert_eq!(
                    inst.operand(wavetap_amdgpu::Role::Src0).and_then(|o| o.reg()),
                    inst.operand(wavetap_amdgpu::Role::Sdst).and_then(|o| o.reg())
                );
                sum = sum.wrapping_add(u64::from(literal) << if inst.name() == "s_addc_u32" { 32 } else { 0 });
                // The carry of the low half goes into the high one.
            }
            at += usize::from(inst.size);
        }
        let wanted = if keeps_scc {
            vec!["s_cselect_b32", "s_add_u32", "s_addc_u32", "s_cmp_lg_u32"]
        } else {
            vec!["s_add_u32", "s_addc_u32"]
        };
        assert_eq!(names, wanted);
        assert_eq!(sum, ORIGINAL + 8, "the address behind s_getpc_b64");
    }
    let code = words(&[S_GETPC_S0, S_CBRANCH_SCC0, S_ENDPGM]);
    assert!(matches!(plan(&code, &Edits::default()), Err(Stop::Refused(refusal)) if refusal.reason == Reason::PcRead));
}

/// What is after the program counter that original code reads in a pair, up to the end of the wave.
fn behind_program_counter(processor: &str, lanes: u32) -> Vec<&'static str> {
    let target = Target::by_name(processor).and_then(|target| target.with_wave_size(lanes)).expect("a target");
    let encode = |opcode: Opcode, operands: &[Value]| piece::encode(target, opcode, operands).expect("an instruction");
    let code =
        [encode(Opcode::S_GETPC_B64, &[Value::Reg(Reg::scalar(0, 2))]), encode(Opcode::S_ENDPGM, &[Value::Imm(0)])]
            .concat();
    let mut image = Image::new();
    image.add_code(ORIGINAL, &code);
    let body = Body::decode(target, &image, "kernel", BodyKind::Kernel, ORIGINAL).expect("decodes");
    let edits = Edits { spare_scalar: Some(Reg::scalar(40, 1)), ..Edits::default() };
    let placed = Code::of_bodies(&body, &[], &image, &edits).expect("plans").bytes(BASE).expect("places");
    let mut names = Vec::new();
    let mut at = 4;
    while names.last() != Some(&"s_endpgm") {
        let inst = wavetap_amdgpu::decode(target, &placed[at..]).expect("decodes");
        names.push(inst.name());
        at += usize::from(inst.size);
    }
    names
}

#[test]
fn sums_wait_for_the_program_counter_where_it_may_not_be_there_yet() {
    // The pair may be a mask that vector instructions have read.
    let settled = [
        "s_waitcnt_depctr",
        "s_cselect_b32",
        "s_add_u32",
        "s_waitcnt_depctr",
        "s_addc_u32",
        "s_waitcnt_depctr",
        "s_cmp_lg_u32",
        "s_endpgm",
    ];
    let plain: Vec<&str> = settled.into_iter().filter(|name| !name.starts_with("s_wait")).collect();
    assert_eq!(behind_program_counter("gfx1100", 64), settled);
    assert_eq!(behind_program_counter("gfx1100", 32), plain);
    assert_eq!(behind_program_counter("gfx1030", 64), plain);
    assert_eq!(behind_program_counter("gfx1200", 32).iter().filter(|name| name.starts_with("s_wait")).count(), 3);
}

#[test]
fn the_program_counter_at_once_where_literals_have_64_bits() {
    let target = Target::by_name("gfx1250").expect("a target");
    let pair = Value::Reg(Reg::scalar(0, 2));
    let encode = |opcode: Opcode, operands: &[Value]| piece::encode(target, opcode, operands).expect("an instruction");
    // SCC is live, and no register is free.
    let parts = [
        encode(Opcode::S_GETPC_B64, &[pair]),
        encode(Opcode::S_CBRANCH_SCC0, &[Value::Imm(0)]),
        encode(Opcode::S_ENDPGM, &[Value::Imm(0)]),
    ];
    let code = parts.concat();
    let mut image = Image::new();
    image.add_code(ORIGINAL, &code);
    let body = Body::decode(target, &image, "kernel", BodyKind::Kernel, ORIGINAL).expect("decodes");
    let placed = Code::of_bodies(&body, &[], &image, &Edits::default()).expect("plans").bytes(BASE).expect("places");
    assert_eq!(placed[..4], code[..4]);
    let sum = wavetap_amdgpu::decode(target, &placed[4..]).expect("decodes");
    let values: Vec<Value> = sum.operands.iter().map(|operand| operand.value).collect();
    assert_eq!((sum.name(), sum.size), ("s_add_nc_u64", 12));
    assert_eq!(values, [pair, pair, Value::Literal64((ORIGINAL + 4).wrapping_sub(BASE + 4))]);
    assert_eq!(placed[16..20], code[4..8]);
}

#[test]
fn what_cannot_be_placed_is_refused() {
    let refused = |code: &[u32], edits: &Edits| match plan(&words(code), edits) {
        Err(Stop::Refused(refusal)) => (refusal.reason, refusal.address),
        other => panic!("{other:?}"),
    };
    const S_SETPC_S0: u32 = 0xbe80_1d00;
    assert_eq!(refused(&[MARK, S_SETPC_S0], &Edits::default()), (Reason::IndirectJump, Some(ORIGINAL + 4)));
    let far = Snippet { items: (0..40_000).map(|_| inserted(0).items.remove(0)).collect() };
    let edits =
        Edits { inserts: vec![(ProgramPoint { inst: InstId(1), side: Side::Before }, far)], ..Edits::default() };
    assert_eq!(refused(&[S_CBRANCH_SCC0 | 1, MARK, S_ENDPGM], &edits), (Reason::BranchOutOfReach, Some(ORIGINAL)));
}

#[test]
fn kernels_are_aligned_and_the_end_is_padded() {
    let code = words(&[MARK, S_ENDPGM]);
    let one = plan(&code, &Edits::default()).expect("plans");
    let placed = place(gfx90a(), &[&one, &one], BASE).expect("places");
    assert_eq!(placed.entries, [BASE, BASE + ENTRY_ALIGN]);
    assert_eq!(placed.bytes[..8], code);
    assert_eq!(placed.bytes[256..264], code);
    assert_eq!(placed.bytes.len() as u64, 256 + 8 + u64::from(gfx90a().code_end_padding()));
    assert!(
        placed.bytes[8..256]
            .chunks(4)
            .chain(placed.bytes[264..].chunks(4))
            .all(|word| word == 0xbf80_0000u32.to_le_bytes())
    );
    assert!(place(gfx90a(), &[&one], BASE + 4).is_err());
    assert_eq!(one.addresses(BASE), [(ORIGINAL, BASE), (ORIGINAL + 4, BASE + 4)]);
}
