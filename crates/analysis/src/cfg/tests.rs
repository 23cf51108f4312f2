//! Graph algorithms against naive ones on many small random graphs, and the call graph on hand-built code.

use std::collections::BTreeSet;

use super::{BodyId, Cfg, EdgeKind, Exit, Program};
use crate::kernel::assembly::{Listing, branch_scc1, end, jump, op, setpc, swappc};
use crate::kernel::random::{Random, random_kernel};
use crate::kernel::{Body, BodyKind, Image, PreservedRegs};
use wavetap_amdgpu::{Implicit, Reg, Target};
use wavetap_base::entity::{BlockId, InstId};

/// Blocks reachable from `from` without entering `without`.
fn reach(cfg: &Cfg, from: BlockId, without: Option<BlockId>) -> BTreeSet<BlockId> {
    let mut seen = BTreeSet::new();
    let mut work = vec![from];
    while let Some(block) = work.pop() {
        if Some(block) != without && seen.insert(block) {
            work.extend(cfg.block(block).successors.iter().map(|edge| edge.block));
        }
    }
    seen
}

#[test]
fn blocks_partition_the_body_and_edges_are_the_instructions_successors() {
    let mut random = Random::new(1);
    for _ in 0..300 {
        let body = random_kernel(&mut random, 20);
        let cfg = Cfg::build(&body);
        let listed: Vec<_> = cfg.blocks().iter().flat_map(super::Block::insts).collect();
        assert_eq!(listed, body.ids().collect::<Vec<_>>());
        for block in cfg.ids() {
            let data = cfg.block(block);
            for id in data.insts() {
                assert_eq!(cfg.block_of(id), block);
                let expected: BTreeSet<InstId> = body.successors(id).collect();
                if id == data.last {
                    let found: BTreeSet<_> = data.successors.iter().map(|edge| cfg.block(edge.block).first).collect();
                    assert_eq!(found, expected);
                    assert_eq!(data.exit.is_some(), expected.is_empty());
                } else {
                    assert_eq!(expected.into_iter().collect::<Vec<_>>(), [InstId(id.0 + 1)]);
                }
            }
            for edge in &data.successors {
                let back = cfg
                    .block(edge.block)
                    .predecessors
                    .iter()
                    .filter(|other| other.block == block && other.kind == edge.kind);
                assert_eq!(back.count(), 1);
            }
        }
        assert_eq!(cfg.reverse_postorder().len(), cfg.len());
    }
}

#[test]
fn dominators_agree_with_removal_of_blocks() {
    let mut random = Random::new(2);
    for _ in 0..300 {
        let cfg = Cfg::build(&random_kernel(&mut random, 16));
        let tree = cfg.dominators();
        for a in cfg.ids() {
            let without = reach(&cfg, cfg.entry(), Some(a));
            let mut strict = BTreeSet::new();
            for b in cfg.ids() {
                assert_eq!(tree.dominates(a, b), !without.contains(&b), "{a:?} {b:?}");
                if b != a && tree.dominates(b, a) {
                    strict.insert(b);
                }
            }
            // The parent is the strict dominator that all other strict dominators dominate.
            let parent = strict.iter().copied().find(|p| strict.iter().all(|q| tree.dominates(*q, *p)));
            assert_eq!(tree.parent(a), parent);
        }
    }
}

#[test]
fn post_dominators_agree_with_removal_of_blocks() {
    let mut random = Random::new(3);
    let leaves =
        |cfg: &Cfg, from, without| reach(cfg, from, without).iter().any(|block| cfg.block(*block).exit.is_some());
    for _ in 0..300 {
        let cfg = Cfg::build(&random_kernel(&mut random, 16));
        let tree = cfg.post_dominators();
        for b in cfg.ids() {
            let ends = leaves(&cfg, b, None);
            assert_eq!(tree.contains(b), ends);
            for a in cfg.ids() {
                let expected = ends && leaves(&cfg, a, None) && !leaves(&cfg, b, Some(a));
                assert_eq!(tree.dominates(a, b), expected || (a == b && ends), "{a:?} {b:?}");
            }
            if let Some(parent) = tree.parent(b) {
                assert!(parent != b && tree.dominates(parent, b));
            } else {
                assert!(cfg.ids().all(|a| a == b || !tree.dominates(a, b)));
            }
        }
    }
}

#[test]
fn loops_are_what_comes_back_to_a_dominating_header() {
    let mut random = Random::new(4);
    let (mut natural, mut irreducible) = (0, 0);
    for _ in 0..300 {
        let cfg = Cfg::build(&random_kernel(&mut random, 14));
        let (loops, tree) = (cfg.loops(), cfg.dominators());
        natural += loops.all().len();
        irreducible += usize::from(loops.irreducible());
        for each in loops.all() {
            let mut expected = BTreeSet::from([each.header]);
            for block in cfg.ids() {
                // In the loop: dominated by the header, and a latch can be reached without passing the header.
                let inside = tree.dominates(each.header, block)
                    && each.latches.iter().any(|latch| reach(&cfg, block, Some(each.header)).contains(latch));
                if inside {
                    expected.insert(block);
                }
            }
            assert_eq!(each.blocks, expected.into_iter().collect::<Vec<_>>());
        }
        for block in cfg.ids() {
            let depth = loops.all().iter().filter(|each| each.blocks.contains(&block)).count();
            assert_eq!(loops.depth(block) as usize, depth);
        }
        // Reducible: without edges back to a dominator nothing is cyclic.
        let mut indegree = vec![0; cfg.len()];
        let kept = |a: BlockId| -> Vec<BlockId> {
            cfg.block(a).successors.iter().map(|edge| edge.block).filter(|b| !tree.dominates(*b, a)).collect()
        };
        cfg.ids().for_each(|a| kept(a).iter().for_each(|b| indegree[b.index()] += 1));
        let mut ready: Vec<_> = cfg.ids().filter(|id| indegree[id.index()] == 0).collect();
        let mut sorted = 0;
        while let Some(block) = ready.pop() {
            sorted += 1;
            for to in kept(block) {
                indegree[to.index()] -= 1;
                if indegree[to.index()] == 0 {
                    ready.push(to);
                }
            }
        }
        assert_eq!(loops.irreducible(), sorted != cfg.len());
    }
    assert!(natural > 50 && irreducible > 10, "the random graphs should have both: {natural} {irreducible}");
}

#[test]
fn calls_and_exits_are_told_apart() {
    let body =
        Listing::at(0).push(swappc(30, 4)).push(branch_scc1("out")).push(op("s_x")).label("out").push(end()).kernel();
    let cfg = Cfg::build(&body);
    assert_eq!(cfg.len(), 4);
    assert_eq!(cfg.block(BlockId(0)).successors[0].kind, EdgeKind::CallReturn);
    let kinds: Vec<_> = cfg.block(BlockId(1)).successors.iter().map(|edge| edge.kind).collect();
    assert_eq!(kinds, [EdgeKind::Taken, EdgeKind::FallThrough]);
    assert_eq!(cfg.block(BlockId(3)).exit, Some(Exit::End));
}

#[test]
fn the_call_graph_finds_functions_without_symbols_recursion_and_the_unknown() {
    let target = Target::by_name("gfx90a").expect("target");
    let call = |listing: Listing, to: u64, pc: u64| address_of(listing, 4, to, pc).push(swappc(30, 4));
    let listing = |address: u64| match address {
        0x1000 => call(Listing::at(0x1000), 0x2000, 0x1000).push(end()),
        // Calls itself and then another one.
        0x2000 => call(call(Listing::at(0x2000), 0x2000, 0x2000), 0x3000, 0x2018).push(setpc(30)),
        0x3000 => Listing::at(0x3000).push(setpc(30)),
        0x4000 => Listing::at(0x4000).push(swappc(30, 8)).push(end()),
        _ => Listing::at(address).push(jump("nowhere")).label("nowhere"),
    };
    let mut image = Image::new();
    image.add_code(0x1000, vec![0; 0x4000].leak());
    image.add_entry(0x2000, BodyKind::Function, "named");
    let names = std::cell::RefCell::new(BTreeSet::new());
    let decode = |_, name: &str, kind, address, _: &PreservedRegs| -> Result<Body, _> {
        names.borrow_mut().insert(name.to_owned());
        listing(address).try_body(&image, kind, address)
    };
    let entries = [0x1000_u64, 0x4000, 0x4100].map(|address| (format!("k{address:x}"), BodyKind::Kernel, address));
    let program = Program::build_with(target, &image, entries, decode);
    assert_eq!(program.undecodable().len(), 1);
    let (first, named, leaf, unknown) = (BodyId(0), program.at(0x2000), program.at(0x3000), program.at(0x4000));
    let (named, leaf, unknown) = (named.expect("called"), leaf.expect("called"), unknown.expect("asked for"));
    let callees = program.callees(first);
    assert_eq!(callees.bodies.iter().copied().collect::<BTreeSet<_>>(), BTreeSet::from([named, leaf]));
    assert!(!callees.unknown);
    assert!(program.callees(named).bodies.contains(&named), "recursive");
    assert!(program.callees(unknown).unknown);
    assert!(program.has_unknown_calls());
    assert_eq!(
        names.into_inner(),
        ["function_at_0x3000", "k1000", "k4000", "k4100", "named"].map(str::to_owned).into()
    );
}

/// `s_getpc_b64 s[low:low+1]` at `pc` and what makes the address `to` of it.
fn address_of(listing: Listing, low: u16, to: u64, pc: u64) -> Listing {
    let offset = to.wrapping_sub(pc + 4);
    let add = |name, register, part: u64, carry_in| {
        let (reads, writes) = (if carry_in { Implicit::SCC } else { Implicit::empty() }, Implicit::SCC);
        op(name)
            .writes(Reg::scalar(register, 1))
            .reads(Reg::scalar(register, 1))
            .literal(part as u32)
            .implicit(reads, writes)
    };
    let listing = listing.push(op("s_getpc_b64").writes(Reg::scalar(low, 2)));
    listing.push(add("s_add_u32", low, offset, false)).push(add("s_addc_u32", low + 1, offset >> 32, true))
}

#[test]
fn calls_behind_calls_are_known_where_functions_leave_the_address_alone() {
    let target = Target::by_name("gfx90a").expect("target");
    let sets = |register| op("s_mov_b32").writes(Reg::scalar(register, 1)).literal(7);
    // What the function at 0x2000 does before it returns, and whether the second call through s[18:19] is then known.
    let second = |function: &dyn Fn(Listing) -> Listing| {
        let listing = |address: u64| match address {
            0x1000 => address_of(Listing::at(0x1000), 18, 0x2000, 0x1000)
                .push(swappc(30, 18))
                .push(swappc(30, 18))
                .push(end()),
            0x2000 => function(Listing::at(0x2000)).push(setpc(30)),
            _ => Listing::at(address).push(sets(19)).push(setpc(30)),
        };
        let mut image = Image::new();
        image.add_code(0x1000, vec![0; 0x4000].leak());
        let decode = |_, _: &str, kind, address, preserved: &PreservedRegs| {
            listing(address).try_body_with(&image, kind, address, preserved)
        };
        let program = Program::build_with(target, &image, [("kernel".to_owned(), BodyKind::Kernel, 0x1000)], decode);
        let calls: Vec<_> = program.call_sites(BodyId(0)).map(|(_, callee)| callee).collect();
        assert_eq!((calls.len(), calls[0]), (2, program.at(0x2000)));
        calls[1].is_some()
    };
    assert!(second(&|listing| listing));
    assert!(second(&|listing| listing.push(sets(17)).push(sets(20))));
    for register in [18, 19] {
        assert!(!second(&|listing| listing.push(sets(register))), "s{register}");
    }
    // Nor if what the function calls sets it, or it is not known what that is.
    assert!(!second(&|listing| address_of(listing, 8, 0x3000, 0x2000).push(swappc(30, 8))));
    assert!(!second(&|listing| listing.push(swappc(30, 8))));
    assert!(!second(&|listing| listing.push(op("s_movreld_b32").writes(Reg::scalar(4, 1)).reads(Reg::scalar(5, 1)))));
    // The call itself sets the return address.
    let listing = |address: u64| match address {
        0x1000 => {
            address_of(Listing::at(0x1000), 30, 0x2000, 0x1000).push(swappc(30, 30)).push(swappc(30, 30)).push(end())
        }
        _ => Listing::at(address).push(setpc(30)),
    };
    let mut image = Image::new();
    image.add_code(0x1000, vec![0; 0x4000].leak());
    let decode = |_, _: &str, kind, address, preserved: &PreservedRegs| {
        listing(address).try_body_with(&image, kind, address, preserved)
    };
    let program = Program::build_with(target, &image, [("kernel".to_owned(), BodyKind::Kernel, 0x1000)], decode);
    assert_eq!(program.call_sites(BodyId(0)).filter(|(_, callee)| callee.is_some()).count(), 1);
}
