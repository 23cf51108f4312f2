//! Control flow, data flow and waits of the samples' real code: every kernel of every target decodes, and what the
//! analyses say of it holds.

use std::path::{Path, PathBuf};

use wavetap::cfg::{Cfg, Exit, Program};
use wavetap::code_object::{CodeObject, initial_registers};
use wavetap::dataflow::{
    Certainty, Definition, Definitions, Liveness, Operation, RegSet, Summaries, UsedRegisters, WaitSummaries, Waits,
    used_registers,
};
use wavetap::isa::{Flags, RegFile};
use wavetap::kernel::{BodyKind, Image};
use wavetap::offload_bundle::Input;

fn samples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("hip-samples/bin");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the samples").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

/// Calls `check` for every code object of the samples, with a label for messages.
fn for_each_object(mut check: impl FnMut(&str, &CodeObject<'_>, &Image<'_>, &Program)) {
    let mut objects = 0;
    for path in samples() {
        let data = std::fs::read(&path).expect("readable");
        let host = Input::parse(&data).expect("a host file");
        for found in host.code_objects() {
            let object = CodeObject::parse(found.bytes).expect("a code object");
            let image = Image::of(&object).expect("an image");
            let program = Program::of(object.target().expect("a known target"), &image);
            let label = format!("{} {}", path.file_name().unwrap_or_default().to_string_lossy(), object.target_id());
            check(&label, &object, &image, &program);
            objects += 1;
        }
    }
    assert!(objects >= 39, "13 samples for three targets: {objects}");
}

#[test]
fn everything_decodes_and_calls_are_resolved() {
    let (mut known, mut unknown) = (0, Vec::new());
    for_each_object(|label, object, image, program| {
        assert!(program.undecodable().is_empty(), "{label}: {:?}", program.undecodable());
        assert_eq!(program.bodies().len(), object.kernels().len() + object.functions().len(), "{label}");
        for id in program.ids() {
            let body = program.body(id);
            for (inst, callee) in program.call_sites(id) {
                match callee {
                    Some(callee) => {
                        known += 1;
                        assert_eq!(program.body(callee).kind(), BodyKind::Function);
                    }
                    None => unknown.push(format!("{} {:#x}", body.name(), body.address(inst))),
                }
            }
            let cfg = Cfg::build(body);
            assert!(!cfg.loops().irreducible(), "{label}: compilers make reducible loops");
            for block in cfg.blocks() {
                assert_ne!(block.exit, Some(Exit::Unknown), "{label}: {} jumps to an unknown place", body.name());
                assert!(
                    body.kind() == BodyKind::Function || !matches!(block.exit, Some(Exit::Return | Exit::TailCall))
                );
            }
            // Every instruction's bytes encode to themselves.
            for inst in body.ids() {
                let bytes = image.code_from(body.address(inst)).expect("code");
                let encoded = wavetap::isa::encode(body.target(), body.inst(inst)).expect("encodes");
                assert_eq!(bytes[..encoded.len()], encoded, "{label}: {:#x}", body.address(inst));
            }
        }
    });
    println!("{known} known calls, unknown: {unknown:?}");
    assert!(known > 6);
    // Only the sample that calls through a table of functions does not say where it goes.
    assert!(unknown.iter().all(|call| call.starts_with("_Z8indirectPj ")), "{unknown:?}");
    assert_eq!(unknown.len(), 3);
}

#[test]
fn kernels_read_only_the_scalar_registers_that_the_abi_initialises() {
    for_each_object(|label, object, _, program| {
        let summaries = Summaries::compute(program);
        for kernel in object.kernels() {
            let id = program.at(kernel.entry).expect("decoded");
            if !program.callees(id).bodies.is_empty() || program.callees(id).unknown {
                continue; // Functions save registers that nobody has set.
            }
            let body = program.body(id);
            let liveness = Liveness::compute(body, &Cfg::build(body), &summaries);
            let initial = initial_registers(&kernel.descriptor, program.target()).expect("known");
            let live: Vec<_> = liveness
                .before(body.entry())
                .iter()
                .filter(|reg| reg.file == RegFile::Scalar && reg.first < 102)
                .collect();
            assert!(
                live.iter().all(|reg| reg.first < initial.total),
                "{label} {}: {live:?} of {initial:?}",
                kernel.name
            );
        }
    });
}

#[test]
fn no_instruction_reads_what_is_still_outstanding() {
    let (mut checked, mut waits_seen) = (0, 0);
    for_each_object(|label, _, _, program| {
        let summaries = WaitSummaries::compute(program);
        for id in program.ids() {
            let body = program.body(id);
            let cfg = Cfg::build(body);
            let waits = Waits::compute(body, &cfg, &summaries);
            let pending = waits.all_pending_writes();
            waits_seen += waits.all().len();
            for inst in body.ids() {
                // What a caller has outstanding is its own matter; compilers wait first thing in a function.
                if pending[inst.index()] == RegSet::ALL {
                    assert!(
                        body.kind() == BodyKind::Function || program.callees(id).unknown,
                        "{label} {}",
                        body.name()
                    );
                    continue;
                }
                for reg in body.inst(inst).reads() {
                    checked += 1;
                    let text = wavetap::isa::print(body.target(), body.inst(inst));
                    assert!(
                        !pending[inst.index()].overlaps(reg),
                        "{label} {} {:#x} {text}: {reg:?}",
                        body.name(),
                        body.address(inst)
                    );
                }
            }
        }
    });
    assert!(checked > 15_000 && waits_seen > 500, "{checked} {waits_seen}");
}

#[test]
fn loads_reach_their_uses_through_waits() {
    let (mut links, mut must) = (0, 0);
    for_each_object(|label, _, _, program| {
        let (summaries, wait_summaries) = (Summaries::compute(program), WaitSummaries::compute(program));
        for id in program.ids() {
            let body = program.body(id);
            let cfg = Cfg::build(body);
            let waits = Waits::compute(body, &cfg, &wait_summaries);
            if body.calls().next().is_some() {
                continue; // The callee waits.
            }
            let definitions = Definitions::new(body, &cfg, &summaries);
            for inst in body.ids() {
                for reg in body.inst(inst).reads() {
                    for definition in definitions.reaching(inst, reg) {
                        let Definition::Inst(load) = definition else { continue };
                        if !body.inst(load).variant.flags.contains(Flags::LOAD) {
                            continue;
                        }
                        links += 1;
                        // Some wait waits for every load whose result is used.
                        let waited = waits
                            .all()
                            .iter()
                            .flat_map(|wait| &wait.operations)
                            .find(|each| each.operation == Operation::Inst(load));
                        let waited = waited.unwrap_or_else(|| {
                            panic!("{label} {}: nothing waits for {:#x}", body.name(), body.address(load))
                        });
                        must += usize::from(waited.certainty == Certainty::Must);
                    }
                }
            }
        }
    });
    assert!(links > 1000 && must * 2 > links, "{links} {must}");
}

#[test]
fn used_registers_are_what_the_metadata_counts() {
    for_each_object(|label, object, image, program| {
        let whole = used_registers(program, image);
        for kernel in object.kernels() {
            let id = program.at(kernel.entry).expect("decoded");
            let callees = program.callees(id);
            let bodies = callees.bodies.iter().copied().chain([id]);
            let used = bodies
                .map(|id| UsedRegisters::of_body(program.body(id)))
                .fold(UsedRegisters::default(), UsedRegisters::union);
            assert!(used.named.is_subset(&whole.named), "{label}");
            let metadata = kernel.metadata.as_ref().expect("metadata");
            let count = |highest: Option<u16>| highest.map_or(0, |highest| u64::from(highest) + 1);
            assert!(count(used.named.highest_vgpr()) <= metadata.vgpr_count, "{label} {}", kernel.name);
            assert!(count(used.named.highest_sgpr()) <= metadata.sgpr_count, "{label} {}", kernel.name);
            if !callees.unknown && callees.bodies.is_empty() && metadata.agpr_count == 0 {
                // v0 holds the work-item id whether it is read or not.
                assert_eq!(
                    count(used.named.highest_vgpr()).max(1),
                    metadata.vgpr_count.max(1),
                    "{label} {}",
                    kernel.name
                );
            }
        }
    });
}
