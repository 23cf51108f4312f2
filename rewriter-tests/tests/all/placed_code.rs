//! Instrumented code of every kernel of the samples, before anything runs it: what is original is unchanged and in
//! order, what is inserted writes nothing that original code names, and LLVM's disassembler reads every word as ours
//! does.

use std::collections::BTreeMap;

use crate::planned::{branches, request, samples};
use llvm_oracle::Oracle;
use wavetap::cfg::{BodyId, Program};
use wavetap::code_object::{CodeObject, Kernel};
use wavetap::dataflow::{RegSet, UsedRegisters, callable_registers};
use wavetap::instrument::{Analysis, CounterPlacement, Instrumented};
use wavetap::isa::{self, Branch, Inst, Reg, RegFile, Role, Target};
use wavetap::kernel::{Body, CallTarget, Flow, Image};
use wavetap::layout::{Code, place};
use wavetap::offload_bundle::Input;
use wavetap::profile::map::CounterMode;
use wavetap::profile::probes;

const BASE: u64 = 0x40_0000;
const CONTROL: u64 = 0x3f_f000;

/// One kernel, planned and placed.
struct Placed<'a> {
    place: String,
    target: Target,
    image: &'a Image<'a>,
    program: &'a Program,
    id: BodyId,
    kernel: &'a Kernel,
    mode: CounterMode,
    /// Inserted code uses the original's scalar registers and puts them back.
    borrows: bool,
    plan: Instrumented,
    bytes: Vec<u8>,
    /// New address of each original one.
    moved: BTreeMap<u64, u64>,
}

/// Calls `check` with every kernel of every sample, in both modes.
fn each(mut check: impl FnMut(&Placed<'_>)) {
    let mut kernels = 0;
    for (name, data) in samples() {
        let input = Input::parse(&data).expect("a sample");
        for found in input.code_objects() {
            let object = CodeObject::parse(found.bytes).expect("a code object");
            let target = object.target().expect("a known target");
            let image = Image::of(&object).expect("an image");
            let program = Program::of(target, &image);
            let analyses = [Analysis::new(&program, &image), Analysis::new(&program, &image).scavenging()];
            let ways =
                [(0, CounterMode::Global), (0, CounterMode::Lds), (1, CounterMode::Global), (1, CounterMode::Lds)];
            for kernel in object.kernels() {
                for (borrowing, mode) in ways {
                    let analysis = &analyses[borrowing];
                    let place_name = format!(
                        "{name} {} {} {mode:?} {}",
                        target.name(),
                        kernel.name,
                        ["keeping", "borrowing"][borrowing]
                    );
                    // Each site has counters of its own: what is checked here is said of these.
                    let request = request(mode, CounterPlacement::All, 3, CONTROL);
                    let plan =
                        branches(analysis, kernel, &request).unwrap_or_else(|stop| panic!("{place_name}: {stop}"));
                    let id = program.at(kernel.entry).expect("decoded");
                    let code = Code::plan(&program, id, &image, &plan.edits)
                        .unwrap_or_else(|stop| panic!("{place_name}: {stop}"));
                    let bytes = place(target, &[&code], BASE).expect("places").bytes[..code.size() as usize].to_vec();
                    let moved = code.addresses(BASE).into_iter().collect();
                    let (image, program) = (&image, &program);
                    let borrows = borrowing == 1;
                    check(&Placed {
                        place: place_name,
                        target,
                        image,
                        program,
                        id,
                        kernel,
                        mode,
                        borrows,
                        plan,
                        bytes,
                        moved,
                    });
                    kernels += 1;
                }
            }
        }
    }
    assert!(kernels > 80, "{kernels} kernels were looked at");
}

impl Placed<'_> {
    /// The new code, instruction by instruction.
    fn listing(&self) -> Vec<(u64, Inst)> {
        let mut listing = Vec::new();
        let mut at = 0;
        while at < self.bytes.len() {
            let inst = isa::decode(self.target, &self.bytes[at..])
                .unwrap_or_else(|e| panic!("{} at {at:#x}: {e}", self.place));
            let size = usize::from(inst.size);
            listing.push((BASE + at as u64, inst));
            at += size;
        }
        listing
    }

    /// Original addresses by new ones.
    fn originals(&self) -> BTreeMap<u64, u64> {
        self.moved.iter().map(|(original, new)| (*new, *original)).collect()
    }

    /// What the kernel and what it calls may touch.
    fn used(&self) -> UsedRegisters {
        let callees = self.program.callees(self.id);
        let own = UsedRegisters::of_body(self.program.body(self.id));
        let known =
            callees.bodies.iter().fold(own, |used, id| used.union(UsedRegisters::of_body(self.program.body(*id))));
        if callees.unknown { known.union(callable_registers(self.program, self.image)) } else { known }
    }

    /// The kernel and the functions that it has copies of, in the order in which they are placed.
    fn bodies(&self) -> Vec<&Body> {
        let entries = self.plan.edits.functions.iter().map(|function| function.entry);
        let functions = entries.map(|entry| self.program.body(self.program.at(entry).expect("a function")));
        [self.program.body(self.id)].into_iter().chain(functions).collect()
    }
}

#[test]
fn original_instructions_are_unchanged_and_in_order() {
    each(|placed| {
        let bodies = placed.bodies();
        assert_eq!(placed.moved.len(), bodies.iter().map(|body| body.len()).sum::<usize>(), "{}", placed.place);
        let originals = placed.originals();
        let mut last = 0;
        for (body, id) in bodies.iter().flat_map(|body| body.ids().map(move |id| (*body, id))) {
            let (inst, address) = (body.inst(id), body.address(id));
            let new = placed.moved[&address];
            assert!(new > last, "{}: {address:#x} is out of order", placed.place);
            last = new;
            let offset = (new - BASE) as usize;
            let old_bytes = &placed.image.code_from(address).expect("code")[..usize::from(inst.size)];
            let new_bytes = &placed.bytes[offset..][..usize::from(inst.size)];
            // It lands where the target's inserted code starts: nothing original lies between.
            let lands_at = |to: u64| {
                let displacement = i16::from_le_bytes([new_bytes[0], new_bytes[1]]);
                let lands = (new + 4).wrapping_add_signed(i64::from(displacement) * 4);
                let wanted = placed.moved[&to];
                assert!(lands <= wanted, "{}: {address:#x}", placed.place);
                assert_eq!(originals.range(lands..wanted).next(), None, "{}: {address:#x}", placed.place);
                if placed.plan.sites.iter().any(|site| site.address == to) {
                    assert!(lands < wanted, "{}: {address:#x} jumps over a probe", placed.place);
                }
            };
            match (body.flow(id), inst.variant.branch) {
                (Flow::Jump(to) | Flow::Branch(to), Branch::Jump | Branch::Conditional(_)) => {
                    assert_eq!(old_bytes[2..], new_bytes[2..], "{}: opcode at {address:#x}", placed.place);
                    lands_at(body.address(to));
                }
                (Flow::Call(CallTarget::Known(to)), _) if bodies.iter().any(|body| body.entry_address() == to) => {
                    let call = isa::decode(placed.target, new_bytes).expect("an instruction");
                    let link = |inst: &Inst| inst.operand(Role::Sdst).and_then(|operand| operand.reg());
                    assert_eq!(
                        (call.name(), link(&call)),
                        ("s_call_b64", link(inst)),
                        "{}: {address:#x}",
                        placed.place
                    );
                    lands_at(to);
                }
                _ => assert_eq!(old_bytes, new_bytes, "{}: bytes at {address:#x}", placed.place),
            }
        }
    });
}

#[test]
fn inserted_code_writes_no_register_of_the_original() {
    each(|placed| {
        let (originals, used, bodies) = (placed.originals(), placed.used(), placed.bodies());
        let first_original = *originals.keys().next().expect("an instruction");
        let descriptor = &placed.plan.descriptor;
        let vgprs = descriptor.accum_offset(placed.target).unwrap_or_else(|| descriptor.allocated_vgprs(placed.target));
        let mut free: RegSet = RegSet::EMPTY;
        free.insert(Reg::EXEC);
        free.insert(Reg::SCC);
        let mut probes = 0;
        // The prologue ends at the first original instruction or what is inserted before it: take what runs before any
        // probe.
        for (address, inst) in placed.listing() {
            if originals.contains_key(&address) {
                continue;
            }
            let after_getpc = originals.range(..address).next_back().is_some_and(|(_, original)| {
                let inst = bodies.iter().find_map(|body| body.at(*original).map(|id| body.inst(id)));
                inst.expect("an instruction").name() == "s_getpc_b64"
            });
            for reg in inst.writes() {
                let inside = match reg.file {
                    RegFile::Scalar => {
                        reg.first >= 102
                            || u32::from(reg.first) + u32::from(reg.dwords) + 6
                                <= descriptor.allocated_sgprs(placed.target)
                    }
                    RegFile::Vector => u32::from(reg.first) + u32::from(reg.dwords) <= vgprs,
                    RegFile::Accum => false,
                };
                assert!(
                    inside,
                    "{}: {} at {address:#x} writes {reg:?}, which is not allocated",
                    placed.place,
                    inst.name()
                );
                if address > first_original && !after_getpc {
                    let borrowed = placed.borrows && reg.file == RegFile::Scalar && reg.first < 102;
                    let fine = free.contains(reg) || !used.named.overlaps(reg) || borrowed;
                    assert!(fine, "{}: {} at {address:#x} writes {reg:?}", placed.place, inst.name());
                }
            }
            probes += usize::from(inst.name().contains("atomic_add") || inst.name().starts_with("ds_add"));
        }
        let counted = placed.plan.sites.len();
        assert!(probes > counted, "{}: {probes} atomics for {counted} sites", placed.place);
    });
}

#[test]
fn llvm_reads_the_code_as_we_do() {
    let Ok(mut oracle) = Oracle::new() else {
        eprintln!("SKIPPED: the Rust toolchain's libLLVM was not found");
        return;
    };
    // Each different instruction once: the kernels have most of them in common.
    let mut seen = std::collections::HashSet::new();
    each(|placed| {
        for (address, inst) in placed.listing() {
            let offset = (address - BASE) as usize;
            let bytes = &placed.bytes[offset..][..usize::from(inst.size)];
            if !seen.insert((placed.target.name(), bytes.to_vec())) {
                continue;
            }
            let (size, text) = oracle
                .disassemble(placed.target.name(), &placed.bytes[offset..])
                .unwrap_or_else(|| panic!("{}: LLVM does not know {bytes:02x?} ({})", placed.place, inst.name()));
            assert_eq!(size, bytes.len(), "{}: {text}", placed.place);
            assert!(
                text.trim_start().starts_with(inst.variant.mnemonic),
                "{}: {text} is not {}",
                placed.place,
                inst.variant.mnemonic
            );
        }
    });
    assert!(seen.len() > 1000);
}

#[test]
fn resources_only_grow_and_counters_lie_behind_each_other() {
    each(|placed| {
        let plan = &placed.plan;
        assert!(plan.after.sgprs >= plan.before.sgprs && plan.after.vgprs >= plan.before.vgprs, "{}", placed.place);
        assert!(plan.after.waves_per_simd <= plan.before.waves_per_simd, "{}", placed.place);
        let metadata = placed.kernel.metadata.as_ref().expect("metadata");
        assert!(plan.metadata.sgpr_count >= metadata.sgpr_count && plan.metadata.vgpr_count >= metadata.vgpr_count);
        assert!(
            plan.metadata.sgpr_count <= plan.after.sgprs.into() && plan.metadata.vgpr_count <= plan.after.vgprs.into(),
            "{}",
            placed.place
        );
        let lds_grows = plan.metadata.group_segment_fixed_size > metadata.group_segment_fixed_size;
        assert_eq!(lds_grows, placed.mode == CounterMode::Lds, "{}", placed.place);
        let mut offset = 32;
        for site in &plan.sites {
            assert_eq!(site.offset, offset);
            offset += if site.kind == *probes::branches::EXEC { 40 } else { 16 };
            assert!(!site.instruction.is_empty());
        }
        assert_eq!(plan.record_bytes, offset);
    });
}
