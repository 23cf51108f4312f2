//! The checker of instrumented code: it accepts every kernel of the samples as instrumented, and names what is wrong
//! with a damaged one.

use std::collections::BTreeSet;

use crate::planned::{branches, request, samples};
use wavetap::cfg::{BodyId, Cfg, Program};
use wavetap::code_object::{CodeObject, InitialRegisters, Kernel, initial_registers};
use wavetap::dataflow::{Liveness, RegSet, Summaries, UsedRegisters, callable_registers, reachable_registers};
use wavetap::entity::InstId;
use wavetap::instrument::{Analysis, CounterPlacement, Request};
use wavetap::isa::{self, Inst, Reg, Role, Target, Value};
use wavetap::kernel::{BodyKind, Image};
use wavetap::layout::{Code, place};
use wavetap::offload_bundle::Input;
use wavetap::profile::map::{AddressPair, CounterMode};
use wavetap::verify::{Finding, KernelCode, Rule, check_code};

const BASE: u64 = 0x40_0000;
const CONTROL: u64 = 0x3f_f000;

/// How kernels are instrumented: where counters are, which are kept, and whether all registers are scavenged.
const WAYS: [(CounterMode, CounterPlacement, bool, bool); 7] = [
    (CounterMode::Global, CounterPlacement::All, false, false),
    (CounterMode::Lds, CounterPlacement::All, false, false),
    (CounterMode::Global, CounterPlacement::All, true, false),
    (CounterMode::Global, CounterPlacement::All, false, true),
    (CounterMode::Lds, CounterPlacement::All, false, true),
    (CounterMode::Lds, CounterPlacement::Minimal, false, false),
    (CounterMode::Register, CounterPlacement::Minimal, false, false),
];

/// One kernel, instrumented.
struct Case<'a> {
    place: String,
    target: Target,
    image: &'a Image<'a>,
    program: &'a Program,
    id: BodyId,
    kernel: &'a Kernel,
    bytes: Vec<u8>,
    addresses: Vec<AddressPair>,
    entries: (InitialRegisters, InitialRegisters),
    used: UsedRegisters,
    summaries: &'a Summaries,
}

impl Case<'_> {
    fn check(&self, bytes: &[u8]) -> Vec<Finding> {
        let mut image = self.image.clone();
        image.add_code(BASE, bytes);
        image.set_wave_size(BASE, self.target.wave_size());
        let new = Program::build(self.target, &image, [(self.kernel.name.clone(), BodyKind::Kernel, BASE)]);
        check_code(&KernelCode {
            program: self.program,
            image: self.image,
            kernel: self.id,
            new: &new,
            entry: BASE,
            new_code: BASE,
            addresses: &self.addresses,
            entry_before: &self.entries.0,
            entry_after: &self.entries.1,
            vector_registers: 256,
            scratch: (0, 0),
            used: self.used,
            summaries: self.summaries,
            dropping: &Default::default(),
            replays: true,
        })
    }
}

/// Calls `check` with every kernel of every sample, instrumented in all ways.
fn each(mut check: impl FnMut(&Case<'_>)) {
    let mut kernels = 0;
    for (name, data) in samples() {
        let input = Input::parse(&data).expect("a sample");
        for found in input.code_objects() {
            let object = CodeObject::parse(found.bytes).expect("a code object");
            let target = object.target().expect("a known target");
            let image = Image::of(&object).expect("an image");
            let program = Program::of(target, &image);
            let summaries = Summaries::compute(&program);
            for kernel in object.kernels() {
                for (mode, placement, borrow, per_wave) in WAYS {
                    let analysis = Analysis::new(&program, &image);
                    let analysis = if borrow { analysis.scavenging() } else { analysis };
                    let place_name = format!(
                        "{name} {} {} {mode:?} {placement:?}{}{}",
                        target.name(),
                        kernel.name,
                        if borrow { " borrowing" } else { "" },
                        if per_wave { " per wave" } else { "" }
                    );
                    let request = Request { per_wave, ..request(mode, placement, 3, CONTROL) };
                    let plan =
                        branches(&analysis, kernel, &request).unwrap_or_else(|stop| panic!("{place_name}: {stop}"));
                    let id = program.at(kernel.entry).expect("decoded");
                    let code = Code::plan(&program, id, &image, &plan.edits)
                        .unwrap_or_else(|stop| panic!("{place_name}: {stop}"));
                    let bytes = place(target, &[&code], BASE).expect("places").bytes;
                    let addresses = code
                        .addresses(BASE)
                        .into_iter()
                        .map(|(original, rewritten)| AddressPair { original, rewritten })
                        .collect();
                    let registers = |descriptor| initial_registers(descriptor, target).expect("consistent");
                    let entries = (registers(&kernel.descriptor), registers(&plan.descriptor));
                    let (image, program, summaries) = (&image, &program, &summaries);
                    let used = reachable_registers(program, id, || callable_registers(program, image));
                    check(&Case {
                        place: place_name,
                        target,
                        image,
                        program,
                        id,
                        kernel,
                        bytes,
                        addresses,
                        entries,
                        used,
                        summaries,
                    });
                    kernels += 1;
                }
            }
        }
    }
    assert!(kernels > 80, "{kernels} kernels were looked at");
}

#[test]
fn instrumented_samples_have_no_findings() {
    let mut bad = 0;
    each(|case| {
        let findings = case.check(&case.bytes);
        for finding in &findings {
            println!("{}: {finding}", case.place);
        }
        bad += findings.len();
    });
    assert_eq!(bad, 0);
}

/// Calls `damage` with every kernel of every sample; of one target, unless the long tests ask for all.
fn each_of_one_target(mut damage: impl FnMut(&Case<'_>)) {
    let all = std::env::var_os("WAVETAP_FULL_TESTS").is_some();
    each(|case| {
        if all || case.target.name() == "gfx90a" {
            damage(case);
        }
    });
}

/// `s_nop 0`: takes an instruction's place without doing its work.
const S_NOP: [u8; 4] = 0xbf80_0000_u32.to_le_bytes();

impl Case<'_> {
    /// The new code's instructions: offset, instruction, whether it was inserted.
    fn listing(&self) -> Vec<(usize, Inst, bool)> {
        let originals: BTreeSet<u64> = self.addresses.iter().map(|pair| pair.rewritten).collect();
        let end = self.bytes.len() - self.target.code_end_padding() as usize;
        let mut listing = Vec::new();
        let mut at = 0;
        while at < end {
            let inst = isa::decode(self.target, &self.bytes[at..]).expect("an instruction");
            let size = usize::from(inst.size);
            listing.push((at, inst, !originals.contains(&(BASE + at as u64))));
            at += size;
        }
        listing
    }

    /// What is live in the original.
    fn liveness(&self) -> Liveness {
        let body = self.program.body(self.id);
        Liveness::compute(body, &Cfg::build(body), self.summaries)
    }

    /// The kernel's instruction that is now at this offset; none for one of a function's copy.
    fn original(&self, offset: usize) -> Option<InstId> {
        let pair = self.addresses.iter().find(|pair| pair.rewritten == BASE + offset as u64).expect("an original one");
        self.program.body(self.id).at(pair.original)
    }

    /// The code with one instruction doing nothing.
    fn without(&self, offset: usize, inst: &Inst) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        bytes[offset..offset + usize::from(inst.size)].chunks_mut(4).for_each(|word| word.copy_from_slice(&S_NOP));
        bytes
    }

    /// The code with one instruction replaced by another of the same size.
    fn replaced(&self, offset: usize, inst: &Inst) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let new = isa::encode(self.target, inst).expect("encodes");
        bytes[offset..offset + new.len()].copy_from_slice(&new);
        bytes
    }

    /// Asserts that a damage is found, under one of these rules.
    fn expect(&self, what: &str, bytes: &[u8], rules: &[Rule]) {
        let findings = self.check(bytes);
        assert!(
            findings.iter().any(|finding| rules.contains(&finding.rule)),
            "{}: {what}: found {findings:#?}",
            self.place
        );
    }
}

/// An instruction that copies between scalar registers, to and from.
fn scalar_copy(inst: &Inst) -> Option<(Reg, Reg)> {
    let registers = |role| inst.operand(role).and_then(|operand| operand.reg());
    matches!(inst.name(), "s_mov_b32" | "s_mov_b64").then_some(())?;
    Some((registers(Role::Sdst)?, registers(Role::Src0)?))
}

#[test]
fn a_missing_restore_of_exec_is_found() {
    let mut damages = 0;
    each_of_one_target(|case| {
        let listing = case.listing();
        let live = case.liveness();
        for (index, (offset, inst, inserted)) in listing.iter().enumerate() {
            let restores = scalar_copy(inst).is_some_and(|(to, _)| to == Reg::EXEC);
            // Where the original does not look at EXEC any more, a restore makes no difference.
            let next = listing[index..]
                .iter()
                .find(|(_, _, inserted)| !inserted)
                .and_then(|(offset, _, _)| case.original(*offset));
            if !inserted || !restores || next.is_none_or(|next| !live.before(next).overlaps(Reg::EXEC)) {
                continue;
            }
            damages += 1;
            case.expect(&format!("no EXEC restore at {offset:#x}"), &case.without(*offset, inst), &[Rule::Exec]);
        }
    });
    assert!(damages > 40, "{damages}");
}

#[test]
fn a_missing_restore_of_scc_is_found() {
    let mut damages = 0;
    each_of_one_target(|case| {
        let listing = case.listing();
        for (index, (offset, inst, inserted)) in listing.iter().enumerate() {
            let next = listing.get(index + 1).is_some_and(|(_, _, inserted)| !inserted);
            if *inserted && next && inst.name() == "s_cmp_lg_u32" {
                damages += 1;
                case.expect(&format!("no SCC restore at {offset:#x}"), &case.without(*offset, inst), &[Rule::Scc]);
            }
        }
    });
    assert!(damages > 7, "{damages}");
}

#[test]
fn a_missing_wait_is_found() {
    let (mut own, mut original) = (0, 0);
    each_of_one_target(|case| {
        for (offset, inst, inserted) in case.listing() {
            if inst.name() != "s_waitcnt" {
                continue;
            }
            let bytes = case.without(offset, &inst);
            if !inserted {
                original += 1;
                case.expect(&format!("no original wait at {offset:#x}"), &bytes, &[Rule::Skeleton]);
            } else if case.check(&bytes).iter().any(|finding| finding.rule == Rule::Wait) {
                own += 1;
            } else {
                // Two waits protect no register: after a call of an unknown function a second place that borrows
                // registers waits for what the first one has waited for; and original code may have waited for what
                // counters in registers load at the entry.
                let fields = inst.operand(Role::WaitCount).map(|operand| operand.value);
                let again = case.place.contains("indirect")
                    && case.place.ends_with("borrowing")
                    && fields == Some(Value::Imm(0xc07f));
                let again = again || case.place.contains("Register") && fields == Some(Value::Imm(0xc07f));
                assert!(again, "{} {offset:#x}", case.place);
            }
        }
    });
    assert!(own > 60 && original > 150, "{own} {original}");
}

#[test]
fn a_shifted_register_that_is_not_moved_back_is_found() {
    let mut damages = 0;
    each_of_one_target(|case| {
        if case.entries.0.total == case.entries.1.total && case.entries.0.kernarg_ptr == case.entries.1.kernarg_ptr {
            return;
        }
        let live = *case.liveness().before(case.program.body(case.id).entry());
        let first_original = case.addresses.iter().map(|pair| pair.rewritten).min().expect("some") - BASE;
        for (offset, inst, inserted) in case.listing() {
            let Some((to, from)) = scalar_copy(&inst) else { continue };
            let moves_back = inserted
                && (offset as u64) < first_original
                && to.first < 16
                && from.first < 24
                && from.first > to.first;
            if moves_back && live.overlaps(to) {
                damages += 1;
                case.expect(
                    &format!("{to:?} is not moved back at {offset:#x}"),
                    &case.without(offset, &inst),
                    &[Rule::Clobbered],
                );
            }
        }
    });
    assert!(damages > 30, "{damages}");
}

#[test]
fn a_clobbered_register_is_found() {
    let (mut damages, mut harmless) = (0, 0);
    each_of_one_target(|case| {
        let body = case.program.body(case.id);
        let live = case.liveness();
        let defined = body.insts().iter().flat_map(Inst::writes).collect::<RegSet>();
        let listing = case.listing();
        let first_original = listing.iter().position(|(_, _, inserted)| !inserted).expect("originals");
        for (index, (offset, inst, inserted)) in listing.iter().enumerate().skip(first_original) {
            let next = listing[index..].iter().find(|(_, _, inserted)| !inserted);
            let (true, Some((next, _, _)), "s_mov_b64") = (*inserted, next, inst.name()) else { continue };
            // A probe's own pair becomes one that the original uses; a dead one makes no difference.
            let Some(next) = case.original(*next) else { continue };
            let before = live.before(next);
            // What the snippet restores from lanes is free in it.
            let rest = listing[index..].iter().take_while(|(_, _, inserted)| *inserted);
            let restored: RegSet = rest
                .filter(|(_, inst, _)| inst.name() == "v_readlane_b32")
                .flat_map(|(_, inst, _)| inst.writes())
                .collect();
            let pairs = (0..50).map(|half| Reg::scalar(2 * half, 2)).filter(|pair| !restored.overlaps(*pair));
            for pair in [
                pairs.clone().find(|pair| before.contains(*pair)),
                pairs.clone().find(|pair| !before.overlaps(*pair) && defined.contains(*pair)),
            ] {
                let Some(pair) = pair else { continue };
                let mut inst = inst.clone();
                if inst.operands[0].reg() == Some(Reg::EXEC) {
                    continue;
                }
                inst.operands[0].value = Value::Reg(pair);
                let found =
                    case.check(&case.replaced(*offset, &inst)).iter().any(|finding| finding.rule == Rule::Clobbered);
                assert_eq!(found, before.contains(pair), "{} {pair:?} at {offset:#x}", case.place);
                damages += usize::from(found);
                harmless += usize::from(!found);
            }
        }
    });
    assert!(damages > 40 && harmless > 40, "{damages} {harmless}");
}

#[test]
fn a_branch_to_the_wrong_place_is_found() {
    let mut damages = 0;
    each_of_one_target(|case| {
        for (offset, mut inst, inserted) in case.listing() {
            if inserted || inst.branch_displacement().is_none() {
                continue;
            }
            // To where it already stands: over the probe of the next instruction, into its middle, or one instruction
            // short.
            let place = inst.operands.iter().position(|operand| operand.role == Role::SimmTarget).expect("a branch");
            let Value::Imm(displacement) = inst.operands[place].value else { panic!("a displacement") };
            inst.operands[place].value = Value::Imm(0);
            if displacement == 0 {
                continue;
            }
            let findings = case.check(&case.replaced(offset, &inst));
            assert!(
                findings.iter().any(|finding| finding.rule == Rule::Branch || finding.rule == Rule::Skeleton),
                "{} {offset:#x}",
                case.place
            );
            damages += 1;
        }
    });
    assert!(damages > 40, "{damages}");
}
