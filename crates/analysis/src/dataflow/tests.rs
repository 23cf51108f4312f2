//! The analyses against brute force: searches over single registers and random executions of random small kernels.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::*;
use crate::cfg::Cfg;
use crate::kernel::assembly::{Listing, Op, branch_scc1, end, op, setpc, swappc};
use crate::kernel::random::{Random, random_kernel_of};
use crate::kernel::{Body, BodyKind, Flow, Image};
use wavetap_amdgpu::{Branch, Counter, Counters, Flags, Implicit, Memory, Reg, RegFile, wait_count};
use wavetap_base::entity::{InstId, ProgramPoint, Side};

const REGS: [Reg; 6] =
    [Reg::scalar(0, 1), Reg::scalar(1, 1), Reg::vector(0, 1), Reg::vector(1, 1), Reg::SCC, Reg::accum(0, 1)];

fn random_alu(random: &mut Random) -> Op {
    let mut instruction = op("s_alu");
    let pick = |random: &mut Random| REGS[random.below(REGS.len() as u64) as usize];
    if random.below(3) > 0 {
        instruction = instruction.reads(pick(random));
    }
    match pick(random) {
        Reg::SCC => instruction.implicit(Implicit::empty(), Implicit::SCC),
        reg => instruction.writes(reg),
    }
}

#[test]
fn liveness_is_the_existence_of_a_path_to_a_read() {
    let mut random = Random::new(11);
    for _ in 0..400 {
        let body = random_kernel_of(&mut random, 16, random_alu);
        let cfg = Cfg::build(&body);
        let liveness = Liveness::compute(&body, &cfg, &Summaries::none());
        for reg in REGS {
            let reads = |id: InstId| body.inst(id).reads().any(|read| read.overlaps(reg));
            let kills =
                |id: InstId| reg.file == RegFile::Scalar && body.inst(id).writes().any(|write| write.overlaps(reg));
            for start in body.ids() {
                let (mut seen, mut work, mut live) = (BTreeSet::new(), vec![start], false);
                while let Some(id) = work.pop() {
                    if !seen.insert(id) {
                        continue;
                    }
                    live |= reads(id);
                    if !reads(id) && !kills(id) {
                        work.extend(body.successors(id));
                    }
                }
                assert_eq!(liveness.before(start).contains(reg), live, "{reg:?} before {start:?}");
                let after = body.successors(start).any(|next| liveness.before(next).contains(reg));
                assert_eq!(liveness.after(start).contains(reg), after);
                let falls = body.next(start).is_some_and(|next| liveness.before(next).contains(reg));
                assert_eq!(liveness.at(ProgramPoint { inst: start, side: Side::After }).contains(reg), falls);
            }
        }
    }
}

#[test]
fn assigned_is_the_existence_of_a_path_from_a_write() {
    let regs = [
        Reg::vector(2, 1),
        Reg::vector(3, 1),
        Reg::vector(4, 2),
        Reg::vector(300, 1),
        Reg::scalar(4, 2),
        Reg::scalar(6, 1),
    ];
    let at_entry = RegSet::from_iter([Reg::scalar(6, 2), Reg::vector(2, 1)]);
    let write = |random: &mut Random| op("v_alu").writes(regs[random.below(regs.len() as u64) as usize]);
    let mut random = Random::new(12);
    let mut unassigned = 0;
    for _ in 0..400 {
        let body = random_kernel_of(&mut random, 12, write);
        let cfg = Cfg::build(&body);
        let assigned = MaybeInitialized::compute(&body, &cfg, &at_entry);
        for reg in regs {
            // Instructions that are reached after a write.
            let mut behind = BTreeSet::new();
            let mut work: Vec<InstId> = body.ids().filter(|id| body.writes(*id).any(|write| write == reg)).collect();
            let writes: BTreeSet<InstId> = work.iter().copied().collect();
            while let Some(id) = work.pop() {
                work.extend(body.successors(id).filter(|next| behind.insert(*next)));
            }
            for inst in body.ids() {
                let at = |side| assigned.at(&body, &cfg, ProgramPoint { inst, side }).contains(reg);
                let before = behind.contains(&inst) || reg == Reg::vector(2, 1) || reg == Reg::scalar(6, 1);
                assert_eq!(
                    (at(Side::Before), at(Side::After)),
                    (before, before || writes.contains(&inst)),
                    "{reg:?} at {inst:?}"
                );
                unassigned += usize::from(!before);
            }
        }
    }
    assert!(unassigned > 1000, "{unassigned}");
    let of = |listing: Listing, kind| {
        let body = listing.try_body(&Image::new(), kind, 0).expect("a body");
        let cfg = Cfg::build(&body);
        let last = body.ids().next_back().expect("instructions");
        let assigned = MaybeInitialized::compute(&body, &cfg, &at_entry).at(
            &body,
            &cfg,
            ProgramPoint { inst: last, side: Side::Before },
        );
        assert_eq!(assigned.contains(Reg::vector(9, 1)), assigned.contains(Reg::scalar(9, 1)));
        assigned.contains(Reg::vector(9, 1))
    };
    assert!(!of(Listing::at(0).push(op("s_nop")).push(end()), BodyKind::Kernel));
    assert!(of(Listing::at(0).push(swappc(30, 4)).push(end()), BodyKind::Kernel), "whoever is called");
    assert!(of(Listing::at(0).push(op("s_nop")).push(setpc(30)), BodyKind::Function), "whoever calls");
}

#[test]
fn everything_is_live_where_control_leaves_to_somewhere_else() {
    let of = |listing: Listing, kind| -> RegSet {
        let body: Body = listing.try_body(&Image::new(), kind, 0).expect("a body");
        let cfg = Cfg::build(&body);
        *Liveness::compute(&body, &cfg, &Summaries::none()).before(body.entry())
    };
    let set = || op("s_mov_b32").writes(Reg::scalar(7, 1)).int(0);
    assert!(of(Listing::at(0).push(set()).push(end()), BodyKind::Kernel).is_empty());
    let mut all_but_s7 = RegSet::ALL;
    all_but_s7.remove(Reg::scalar(7, 1));
    assert_eq!(of(Listing::at(0).push(set()).push(setpc(30)), BodyKind::Function), all_but_s7);
    assert_eq!(of(Listing::at(0).push(set()).push(setpc(4)), BodyKind::Kernel), all_but_s7);
    assert_eq!(of(Listing::at(0).push(op("s_trap").branch(Branch::Trap)).push(end()), BodyKind::Kernel), RegSet::ALL);
    // The call itself writes the link register, whatever the callee reads.
    let called = of(Listing::at(0).push(swappc(30, 4)).push(end()), BodyKind::Kernel);
    let mut all_but_link = RegSet::ALL;
    all_but_link.remove(Reg::scalar(30, 2));
    assert_eq!(called, all_but_link);
}

#[test]
fn partial_and_conditional_writes_do_not_kill() {
    let live_before_write = |write: Op, reg: Reg| {
        let body = Listing::at(0).push(write).push(op("s_use").reads(reg)).push(end()).kernel();
        let cfg = Cfg::build(&body);
        Liveness::compute(&body, &cfg, &Summaries::none()).before(InstId(0)).overlaps(reg)
    };
    let s = Reg::scalar(4, 1);
    assert!(!live_before_write(op("s_mov_b32").writes(s), s));
    assert!(live_before_write(op("s_cmov_b32").writes(s), s));
    assert!(live_before_write(op("s_movreld_b32").writes(s), s));
    assert!(live_before_write(op("v_mov_b32").writes(Reg::vector(1, 1)), Reg::vector(1, 1)));
    assert!(!live_before_write(op("v_cmp_lt_u32").writes(Reg::VCC), Reg::VCC));
    assert!(live_before_write(op("s_mov_b32").writes(Reg::scalar(106, 1)), Reg::VCC), "the high half lives on");
}

/// One concrete step at random; none where the wave ends.
fn random_step(body: &Body, random: &mut Random, at: InstId) -> Option<InstId> {
    let next: Vec<_> = body.successors(at).collect();
    if next.is_empty() { None } else { Some(next[random.below(next.len() as u64) as usize]) }
}

#[test]
fn definitions_include_every_last_writer_of_random_executions() {
    const LANES: usize = 2;
    let mut random = Random::new(13);
    let alu = |random: &mut Random| match random.below(5) {
        0 => op("s_mov_b64").writes(Reg::EXEC),
        1 => op("s_and_b64").writes(Reg::EXEC).reads(Reg::EXEC).reads(Reg::scalar(1, 1)),
        2 => op("v_alu").writes(Reg::vector(random.below(2) as u16, 1)).reads(Reg::vector(random.below(2) as u16, 1)),
        3 => op("s_alu").writes(Reg::scalar(0, 1)).reads(Reg::scalar(0, 1)),
        _ => op("v_readlane_b32").writes(Reg::scalar(0, 1)).reads(Reg::vector(0, 1)),
    };
    let mut lonely = 0;
    for _ in 0..150 {
        let body = random_kernel_of(&mut random, 20, alu);
        let cfg = Cfg::build(&body);
        let definitions = Definitions::new(&body, &cfg, &Summaries::none());
        for _ in 0..20 {
            let mut exec = [true; LANES];
            let mut writers: BTreeMap<(Reg, usize), Definition> = BTreeMap::new();
            let mut at = Some(body.entry());
            for _ in 0..60 {
                let Some(id) = at else { break };
                let inst = body.inst(id);
                let across = inst.name() == "v_readlane_b32";
                for reg in inst.reads().filter(|reg| reg.dwords == 1 && *reg != Reg::SCC) {
                    let reaching = definitions.reaching(id, reg);
                    lonely += usize::from(reaching.len() == 1);
                    let lanes = (0..LANES)
                        .filter(|lane| if reg.file == RegFile::Scalar { *lane == 0 } else { across || exec[*lane] });
                    for lane in lanes {
                        let writer = writers.get(&(reg, lane)).copied().unwrap_or(Definition::Entry);
                        assert!(
                            reaching.contains(&writer),
                            "{writer:?} reaches {id:?} for {reg:?}, found {reaching:?}"
                        );
                    }
                }
                for reg in inst.writes() {
                    match reg {
                        Reg::EXEC => {
                            let narrow = inst.name() == "s_and_b64";
                            exec.iter_mut().for_each(|lane| *lane = random.below(2) == 0 && (*lane || !narrow));
                        }
                        _ => {
                            for lane in (0..LANES)
                                .filter(|lane| if reg.file == RegFile::Scalar { *lane == 0 } else { exec[*lane] })
                            {
                                writers.insert((reg, lane), Definition::Inst(id));
                            }
                        }
                    }
                }
                at = random_step(&body, &mut random, id);
            }
        }
    }
    assert!(lonely > 100, "the search should often end at one definition: {lonely}");
}

/// Lanes of the executions with masks.
const LANES: u32 = 4;
/// Pairs of registers that hold masks, and EXEC.
const MASKS: [Reg; 3] = [Reg::scalar(2, 2), Reg::scalar(4, 2), Reg::VCC];

/// An instruction on masks, or one that reads and writes a vector register.
fn random_mask(random: &mut Random) -> Op {
    let pick = |random: &mut Random| MASKS[random.below(3) as usize];
    let any = |random: &mut Random| if random.below(3) == 0 { Reg::EXEC } else { MASKS[random.below(3) as usize] };
    let two = |name, to: Reg, a: Reg, b: Reg| op(name).writes(to).reads(a).reads(b);
    let saves = |name, to: Reg, from: Reg| op(name).writes(to).reads(from).implicit(Implicit::EXEC, Implicit::EXEC);
    match random.below(17) {
        0 | 1 => saves("s_and_saveexec_b64", pick(random), pick(random)),
        2 => saves("s_or_saveexec_b64", pick(random), pick(random)),
        3 => saves("s_andn2_saveexec_b64", pick(random), pick(random)),
        4 | 5 => two("s_or_b64", Reg::EXEC, Reg::EXEC, pick(random)),
        6 => two("s_xor_b64", any(random), any(random), any(random)),
        7 => two("s_andn2_b64", any(random), any(random), any(random)),
        8 => op("s_mov_b64").writes(any(random)).reads(any(random)),
        9 => op("s_mov_b64").writes(pick(random)).int(0),
        10 => two("s_or_b64", pick(random), pick(random), any(random)),
        11 | 12 => {
            op("v_cmp_lt_u32").writes(pick(random)).reads(Reg::vector(0, 1)).implicit(Implicit::EXEC, Implicit::empty())
        }
        _ => op("v_alu").writes(Reg::vector(random.below(2) as u16, 1)).reads(Reg::vector(random.below(2) as u16, 1)),
    }
}

/// What an instruction makes of its masks.
fn mask_result(inst: &wavetap_amdgpu::Inst, masks: &BTreeMap<Reg, u8>, random: &mut Random) -> Vec<(Reg, u8)> {
    let exec = masks[&Reg::EXEC];
    let sources: Vec<u8> = inst
        .operands
        .iter()
        .skip(1)
        .map(|source| source.reg().map_or(0, |reg| masks.get(&reg).copied().unwrap_or(0)))
        .collect();
    let to = inst.operands[0].reg().expect("a register");
    match inst.name() {
        "s_and_saveexec_b64" => vec![(to, exec), (Reg::EXEC, sources[0] & exec)],
        "s_or_saveexec_b64" => vec![(to, exec), (Reg::EXEC, sources[0] | exec)],
        "s_andn2_saveexec_b64" => vec![(to, exec), (Reg::EXEC, sources[0] & !exec)],
        "s_or_b64" => vec![(to, sources[0] | sources[1])],
        "s_xor_b64" => vec![(to, sources[0] ^ sources[1])],
        "s_andn2_b64" => vec![(to, sources[0] & !sources[1])],
        "s_mov_b64" => vec![(to, sources[0])],
        "v_cmp_lt_u32" => vec![(to, random.below(1 << LANES) as u8 & exec)],
        _ => Vec::new(),
    }
}

#[test]
fn definitions_follow_masks_through_branches_and_loops() {
    let mut random = Random::new(29);
    let (mut alone, mut uses) = (0, 0);
    for _ in 0..1500 {
        let body = random_kernel_of(&mut random, 24, random_mask);
        let cfg = Cfg::build(&body);
        let definitions = Definitions::new(&body, &cfg, &Summaries::none());
        for id in body.ids().filter(|id| body.inst(*id).name() == "v_alu") {
            let reg = body.inst(id).operands[1].reg().expect("a register");
            (alone, uses) = (alone + usize::from(definitions.reaching(id, reg).len() == 1), uses + 1);
        }
        for _ in 0..20 {
            let mut masks: BTreeMap<Reg, u8> = MASKS.iter().map(|reg| (*reg, random.below(1 << LANES) as u8)).collect();
            masks.insert(Reg::EXEC, random.below(1 << LANES) as u8);
            let mut writers: BTreeMap<(Reg, u32), Definition> = BTreeMap::new();
            let mut at = Some(body.entry());
            for _ in 0..100 {
                let Some(id) = at else { break };
                let inst = body.inst(id);
                let active = (0..LANES).filter(|lane| masks[&Reg::EXEC] >> lane & 1 != 0);
                if inst.name() == "v_alu" {
                    let (to, from) =
                        (inst.operands[0].reg().expect("a register"), inst.operands[1].reg().expect("a register"));
                    let reaching = definitions.reaching(id, from);
                    for lane in active {
                        let writer = writers.get(&(from, lane)).copied().unwrap_or(Definition::Entry);
                        assert!(
                            reaching.contains(&writer),
                            "{writer:?} reaches {id:?} for {from:?}, found {reaching:?}"
                        );
                        writers.insert((to, lane), Definition::Inst(id));
                    }
                } else if !inst.operands.is_empty() && matches!(body.flow(id), Flow::Next) {
                    masks.extend(mask_result(inst, &masks, &mut random));
                }
                at = random_step(&body, &mut random, id);
            }
        }
    }
    assert!(alone * 3 > uses, "the search should often end at one definition: {alone} of {uses}");
}

#[test]
fn what_is_written_before_a_branch_on_lanes_is_all_there_is_behind_it() {
    let v = |n| Reg::vector(n, 1);
    let saved = Reg::scalar(2, 2);
    let define = || op("v_alu").writes(v(0)).reads(v(1));
    let body = Listing::at(0)
        .push(define())
        .push(define())
        .push(op("v_cmp_lt_u32").writes(Reg::VCC).reads(v(1)))
        .push(op("s_and_saveexec_b64").writes(saved).reads(Reg::VCC).implicit(Implicit::EXEC, Implicit::EXEC))
        .push(branch_scc1("join"))
        .push(define())
        .label("join")
        .push(op("s_or_b64").writes(Reg::EXEC).reads(Reg::EXEC).reads(saved))
        .push(op("v_use").writes(v(3)).reads(v(0)))
        .push(end())
        .kernel();
    let cfg = Cfg::build(&body);
    let reaching = Definitions::new(&body, &cfg, &Summaries::none()).reaching(InstId(7), v(0));
    assert_eq!(
        reaching,
        [Definition::Inst(InstId(1)), Definition::Inst(InstId(5))],
        "nothing of the first write is left"
    );
}

/// `s_waitcnt` and memory operations on one or both of the counters.
fn random_memory(random: &mut Random, ordered: bool) -> Op {
    let load = |memory, counters| op("s_memory").memory(memory, counters, Flags::LOAD).writes(Reg::vector(9, 1));
    match random.below(if ordered { 4 } else { 7 }) {
        0 => op("s_waitcnt").wait(Some(random.below(4) as u8), None, None),
        1 => op("s_waitcnt").wait(None, Some(random.below(3) as u8), None),
        2 => load(Memory::Global, Counters::VM),
        3 => load(Memory::Lds, Counters::LGKM),
        4 => load(Memory::Scalar, Counters::LGKM),
        5 => load(Memory::Flat, Counters::VM | Counters::LGKM),
        _ => op("s_waitcnt").wait(Some(0), Some(0), None),
    }
}

/// A queue of one counter in one execution. In order, the oldest completes first; otherwise any may.
fn concrete_wait(queue: &mut VecDeque<(InstId, Memory)>, count: u8, random: &mut Random) -> Vec<InstId> {
    let mut completed = Vec::new();
    while queue.len() > usize::from(count) {
        // Only an operation with no older one of its own ordered kind can complete.
        let ready: Vec<usize> = (0..queue.len())
            .filter(|&index| {
                let memory = queue[index].1;
                matches!(memory, Memory::Scalar | Memory::Flat)
                    || !queue.iter().take(index).any(|older| older.1 == memory)
            })
            .collect();
        let chosen = ready[random.below(ready.len() as u64) as usize];
        completed.extend(queue.remove(chosen).map(|(id, _)| id));
    }
    completed
}

#[test]
fn waits_wait_for_what_random_executions_complete() {
    let mut random = Random::new(17);
    let (mut must, mut may, mut unordered) = (0, 0, 0);
    for round in 0..600 {
        let ordered = round % 2 == 0;
        let body = random_kernel_of(&mut random, 20, |random| random_memory(random, ordered));
        let cfg = Cfg::build(&body);
        let summaries = WaitSummaries::none();
        let waits = Waits::compute(&body, &cfg, &summaries);
        for _ in 0..30 {
            let mut queues: BTreeMap<Counter, VecDeque<(InstId, Memory)>> = BTreeMap::new();
            let mut at = Some(body.entry());
            for _ in 0..60 {
                let Some(id) = at else { break };
                let inst = body.inst(id);
                for counter in Counter::ALL {
                    let queue = queues.entry(counter).or_default();
                    let pending = waits.pending(id, counter);
                    for (index, (operation, memory)) in queue.iter().enumerate() {
                        let found = pending.iter().find(|each| each.operation == Operation::Inst(*operation));
                        let found = found.unwrap_or_else(|| panic!("{operation:?} may be pending before {id:?}"));
                        let younger = (queue.len() - 1 - index) as u8;
                        if ordered {
                            assert!(
                                (found.min_younger..=found.max_younger).contains(&younger),
                                "{memory:?} {found:?} {younger}"
                            );
                        }
                    }
                    for each in pending.iter().filter(|each| each.certain) {
                        assert!(
                            queue.iter().any(|(operation, _)| Operation::Inst(*operation) == each.operation),
                            "{each:?} before {id:?}"
                        );
                    }
                    if let Some(count) = wait_count(body.target(), inst).and_then(|counts| counts.get(counter)) {
                        let wait =
                            waits.all().iter().find(|wait| wait.inst == id && wait.counter == counter).expect("listed");
                        assert_eq!(wait.count, count);
                        let completed = concrete_wait(queue, count, &mut random);
                        for done in &completed {
                            let listed = wait.operations.iter().find(|each| each.operation == Operation::Inst(*done));
                            listed.unwrap_or_else(|| panic!("{done:?} is waited for by {id:?}: {wait:?}"));
                        }
                        for each in &wait.operations {
                            match each.certainty {
                                Certainty::Must => {
                                    must += 1;
                                    assert!(
                                        completed.iter().any(|done| Operation::Inst(*done) == each.operation),
                                        "{each:?} by {id:?}"
                                    );
                                }
                                Certainty::May => may += 1,
                                Certainty::Unordered => {
                                    unordered += 1;
                                    assert!(!ordered && count > 0);
                                }
                            }
                        }
                    } else if inst.variant.counters.contains(counter.flag()) {
                        queue.push_back((id, inst.variant.memory));
                    }
                }
                at = random_step(&body, &mut random, id);
            }
        }
    }
    assert!(must > 1000 && may > 1000 && unordered > 100, "all three should occur: {must} {may} {unordered}");
}

#[test]
fn counted_waits_wait_for_the_oldest() {
    let load =
        |to: u16| op("global_load_dword").memory(Memory::Global, Counters::VM, Flags::LOAD).writes(Reg::vector(to, 1));
    let body = Listing::at(0)
        .push(load(0))
        .push(branch_scc1("skip"))
        .push(load(1))
        .label("skip")
        .push(load(2))
        .push(op("s_waitcnt").wait(Some(1), None, None))
        .push(op("s_waitcnt").wait(Some(0), Some(0), None))
        .push(end())
        .kernel();
    let cfg = Cfg::build(&body);
    let summaries = WaitSummaries::none();
    let waits = Waits::compute(&body, &cfg, &summaries);
    let operations = |index: usize| -> Vec<_> {
        waits.all()[index].operations.iter().map(|each| (each.operation, each.certainty)).collect::<Vec<_>>()
    };
    let inst = |index| Operation::Inst(InstId(index));
    // Load 0 has at least one younger one on both paths; load 1 exactly one where it is executed.
    assert_eq!(operations(0), [(inst(0), Certainty::Must), (inst(2), Certainty::May)]);
    assert_eq!(operations(1), [(inst(3), Certainty::Must)]);
    assert!(operations(2).is_empty(), "nothing counts in lgkmcnt");
    assert_eq!(waits.pending_writes(InstId(4)), RegSet::from_iter([Reg::vector(0, 3)]));
    assert_eq!(waits.pending_writes(InstId(5)), RegSet::from_iter([Reg::vector(2, 1)]));
    assert_eq!(waits.all_pending_writes()[6], RegSet::EMPTY);
}

#[test]
fn calls_make_everything_uncertain() {
    let load = || op("global_load_dword").memory(Memory::Global, Counters::VM, Flags::LOAD).writes(Reg::vector(0, 1));
    let body = Listing::at(0)
        .push(load())
        .push(swappc(30, 4))
        .push(op("s_waitcnt").wait(Some(0), None, None))
        .push(end())
        .kernel();
    assert!(matches!(body.flow(InstId(1)), Flow::Call(_)));
    let cfg = Cfg::build(&body);
    let summaries = WaitSummaries::none();
    let waits = Waits::compute(&body, &cfg, &summaries);
    let expected = [Operation::Inst(InstId(0)), Operation::Callee(InstId(1))];
    let found: Vec<_> = waits.all()[0].operations.iter().map(|each| (each.operation, each.certainty)).collect();
    assert_eq!(found, expected.map(|operation| (operation, Certainty::May)));
    assert_eq!(waits.pending_writes(InstId(2)), RegSet::ALL);
    assert_eq!(waits.pending_writes(InstId(3)), RegSet::ALL, "lgkmcnt was not waited for: scalar and LDS loads");
    let function = Listing::at(0).push(setpc(30)).try_body(&Image::new(), BodyKind::Function, 0).expect("a function");
    let cfg = Cfg::build(&function);
    assert_eq!(Waits::compute(&function, &cfg, &summaries).pending_writes(InstId(0)), RegSet::ALL);
}

#[test]
fn what_an_index_may_read_is_from_every_writer() {
    let v = |index| Reg::vector(index, 1);
    let code = |first| {
        let listing = Listing::at(0x100).push(op("v_alu").writes(v(5))).push(op(first));
        listing.push(op("v_alu").writes(v(0)).reads(v(1))).push(op("v_alu").writes(v(5))).push(end()).kernel()
    };
    let reaching =
        |body: &Body| Definitions::new(body, &Cfg::build(body), &Summaries::none()).reaching(InstId(2), v(5));
    assert_eq!(reaching(&code("s_alu")), [], "it is not read");
    // Each of them may write any register, and comes before it in some loop for all that is known.
    let all =
        [Definition::Entry, Definition::Inst(InstId(0)), Definition::Inst(InstId(2)), Definition::Inst(InstId(3))];
    assert_eq!(reaching(&code("s_set_gpr_idx_on")), all);
}

#[test]
fn a_lane_has_what_was_last_put_there() {
    let (held, kept) = (Reg::vector(40, 1), Reg::scalar(4, 1));
    let put = |lane| op("v_writelane_b32").writes(held).reads(kept).int(lane);
    let take = |lane| op("v_readlane_b32").writes(kept).reads(held).int(lane);
    let unknown = || op("v_readlane_b32").writes(kept).reads(held).reads(Reg::scalar(5, 1));
    let listing = Listing::at(0).push(put(0)).push(put(1)).push(op("v_alu").writes(held)).push(put(0)).push(put(65));
    let body = listing.push(take(0)).push(take(1)).push(take(2)).push(unknown()).push(end()).kernel();
    let cfg = Cfg::build(&body);
    let definitions = Definitions::new(&body, &cfg, &Summaries::none());
    let of = |use_inst| definitions.reaching(InstId(use_inst), held);
    let inst = |index| Definition::Inst(InstId(index));
    assert_eq!(of(5), [inst(3)]);
    assert_eq!(of(6), [inst(4)], "lane 65 of a wave of 64 is lane 1");
    assert_eq!(of(7), [Definition::Entry, inst(2)], "lane 2 may have been off");
    assert_eq!(of(8), [Definition::Entry, inst(0), inst(1), inst(2), inst(3), inst(4)]);
}
