//! How many instructions counting in registers inserts into the samples and the nine kernels, beside those at the entry
//! and at the ends of a wave: no more than it is known to need. `--nocapture` prints the table.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rewriter_tests::place;
use wavetap::cfg::{Cfg, Program};
use wavetap::code_object::{CodeObject, Kernel};
use wavetap::instrument::{Analysis, CounterPlacement, KernelFacts, Request, instrument, probe};
use wavetap::isa::{Inst, Memory};
use wavetap::kernel::Image;
use wavetap::kernel::edit::{Item, Snippet};
use wavetap::offload_bundle::Input;
use wavetap::profile::map::CounterMode;

/// By target: sites in loops and functions and what is inserted there at most, and the same outside of them.
const MOST: [(&str, [usize; 4]); 4] = [
    ("gfx1030", [39, 163, 37, 48]),
    ("gfx906", [115, 681, 96, 124]),
    ("gfx90a", [115, 600, 96, 118]),
    ("gfx942", [76, 423, 59, 70]),
];

/// What may be inserted for each site in a loop, on average over a kernel.
const FOR_EACH_IN_LOOPS: usize = 5;
/// Where it is more: functions that are called, loops whose counters find no scalar registers, code without
/// optimisation.
const MORE: [(&str, &str); 5] = [
    ("calls", "_Z8indirectPj"),
    ("calls", "_Z9recursivePj"),
    ("o0", "_Z7windowsPKjPji"),
    ("nested_loops", "_Z12nested_loopsPKiS0_PjPi"),
    // On gfx906 alone, where waves share fewest scalar registers.
    ("btree", "_Z10find_rangeiPK4NodeiPiS2_S2_S2_PKiS4_S2_S2_"),
];

/// Sites, and instructions that are inserted for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Code {
    sites: usize,
    inserted: usize,
}

/// In loops and functions, and outside of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Cost {
    in_loops: Code,
    outside: Code,
}

fn instructions(snippet: &Snippet) -> Vec<&Inst> {
    let insts = snippet.items.iter().filter_map(|item| match item {
        Item::Inst(inst) => Some(inst),
        _ => None,
    });
    insts.collect()
}

fn cost(program: &Program, analysis: &Analysis<'_>, kernel: &Kernel) -> Cost {
    let request = Request {
        mode: CounterMode::Register,
        placement: CounterPlacement::Minimal,
        index: 0,
        control: 0x3f_f000,
        max_occupancy_loss: None,
        per_wave: false,
    };
    let facts = KernelFacts::of(analysis, kernel, &[probe::BRANCHES]).expect("analysed");
    let plan = instrument(&facts, &request).unwrap_or_else(|stop| panic!("{}: {stop}", kernel.name));
    let of_functions = plan.edits.functions.iter().map(|function| (function.entry, &function.inserts));
    let mut cost = Cost::default();
    for (entry, inserts) in [(kernel.entry, &plan.edits.inserts)].into_iter().chain(of_functions) {
        let body = program.body(program.at(entry).expect("decoded"));
        let cfg = Cfg::build(body);
        let loops = cfg.loops();
        let repeats = |inst| entry != kernel.entry || loops.depth(cfg.block_of(inst)) > 0;
        for site in plan.sites.iter().filter_map(|site| body.at(site.address)) {
            let code = if repeats(site) { &mut cost.in_loops } else { &mut cost.outside };
            code.sites += 1;
        }
        for (point, snippet) in inserts {
            let inserted = instructions(snippet);
            // Only the end of a wave accesses memory.
            if inserted.iter().any(|inst| inst.variant.memory != Memory::None) {
                continue;
            }
            let code = if repeats(point.inst) { &mut cost.in_loops } else { &mut cost.outside };
            code.inserted += inserted.len();
        }
    }
    cost
}

/// By target, file and kernel.
fn costs() -> BTreeMap<(String, String, String), Cost> {
    let samples = place::sample_names().into_iter().map(|name| (name.clone(), place::samples().join(name)));
    let nine = place::root().join("hip-samples/nine/bin");
    let nine =
        ["backprop", "btree", "gaussian", "hotspot", "kmeans", "nn"].map(|name| (name.to_owned(), nine.join(name)));
    let mut costs = BTreeMap::new();
    for (name, path) in samples.chain(nine) {
        of_file(&name, &path, &mut costs);
    }
    costs
}

fn of_file(name: &str, path: &Path, costs: &mut BTreeMap<(String, String, String), Cost>) {
    let file = fs::read(path).expect("readable");
    for found in Input::parse(&file).expect("parses").code_objects() {
        let object = CodeObject::parse(found.bytes).expect("a code object");
        let target = object.target().expect("a known target");
        let image = Image::of(&object).expect("an image");
        let program = Program::of(target, &image);
        let analysis = Analysis::new(&program, &image);
        for kernel in object.kernels() {
            let key = (target.name().to_owned(), name.to_owned(), kernel.name.clone());
            costs.insert(key, cost(&program, &analysis, kernel));
        }
    }
}

#[test]
fn sites_cost_no_more_than_they_did() {
    let costs = costs();
    let mut totals: BTreeMap<&str, Cost> = BTreeMap::new();
    for ((target, file, kernel), cost) in &costs {
        let Cost { in_loops, outside } = cost;
        println!("{target:8} {file:16} {kernel:40.40} {in_loops:?} {outside:?}");
        let total = totals.entry(target).or_default();
        for (total, code) in [(&mut total.in_loops, in_loops), (&mut total.outside, outside)] {
            total.sites += code.sites;
            total.inserted += code.inserted;
        }
    }
    for (target, total) in &totals {
        println!("{target:8} {:?} {:?}", total.in_loops, total.outside);
    }
    for (target, most) in MOST {
        let Cost { in_loops, outside } = totals[target];
        let found = [in_loops.sites, in_loops.inserted, outside.sites, outside.inserted];
        assert_eq!([found[0], found[2]], [most[0], most[2]], "{target}: sites");
        assert!(found.iter().zip(&most).all(|(found, most)| found <= most), "{target}: {found:?}, at most {most:?}");
    }
    assert_eq!(totals.len(), MOST.len(), "targets");
    for ((target, file, kernel), Cost { in_loops, .. }) in &costs {
        let is_more = in_loops.inserted > FOR_EACH_IN_LOOPS * in_loops.sites;
        assert!(!is_more || MORE.contains(&(file.as_str(), kernel.as_str())), "{target} {file} {kernel}: {in_loops:?}");
    }
}
