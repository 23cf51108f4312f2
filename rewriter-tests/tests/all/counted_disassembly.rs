//! A disassembly with counts beside what the emulator executed, instruction by instruction: each number at a branch and
//! at a block is right, or there is none.
//!
//! The numbers at blocks are derived from those of branches. What was executed is known from elsewhere: the emulator
//! counts every instruction while it traces or models time.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;

use md5::{Digest, Md5};
use rewriter_tests::machine_code::{self, Frame, MachineKernel, Wish};
use rewriter_tests::{command, counts, place};
use wavetap::code_object::demangle;
use wavetap::emulator::{Options, Trace};
use wavetap::isa::Target;
use wavetap::pipeline::{self, Listed, Selection};
use wavetap::profile::file::{Backend, KernelTotals, Origin, Profile, SiteTotals};
use wavetap::profile::map::Refused;
use wavetap::profile::probes::branches::{BranchCounts, ExecCounts, ScalarCounts};
use wavetap::profile::schema::Counts;
use wavetap::report::Report;
use wavetap::report::counted::Uncounted;
use wavetap::report::disassembly::{CodeKind, CodeText, Disassembly};
use wavetap::report::listing::Listing;

/// What was compared.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    /// Branches with counts.
    branches: usize,
    /// Blocks whose executions are said.
    blocks: usize,
    /// Those of them in functions.
    in_functions: usize,
    /// Blocks of which it is said that they did not run.
    not_executed: usize,
    /// Blocks of which nothing is said.
    unknown: usize,
}

/// Compares every number with the executions by address.
fn compare(code: &[CodeText], executed: &BTreeMap<u64, u64>, what: &str, tally: &mut Tally) {
    let times = |address: u64| executed.get(&address).copied().unwrap_or(0);
    for part in code {
        for inst in &part.instructions {
            let arrivals = match inst.counts {
                Some(BranchCounts::Exec(counts)) => counts.executions + counts.empty,
                Some(BranchCounts::Scalar(counts)) => counts.executions,
                None => continue,
            };
            assert!(part.counted.is_some(), "{what}: {:?}", part.name);
            assert_eq!(arrivals, times(inst.address), "{what}: {:#x} {}", inst.address, inst.instruction);
            tally.branches += 1;
        }
        for block in &part.blocks {
            assert_eq!(block.executions.is_some(), block.executions_source.is_some());
            let Some(executions) = block.executions else {
                tally.unknown += 1;
                continue;
            };
            for inst in part.instructions.iter().filter(|inst| (block.address..block.end).contains(&inst.address)) {
                assert_eq!(
                    executions,
                    times(inst.address),
                    "{what}: {} {:#x} {}",
                    block.label,
                    inst.address,
                    inst.instruction
                );
            }
            tally.blocks += 1;
            tally.in_functions += usize::from(part.kind == CodeKind::Function);
            tally.not_executed += usize::from(executions == 0);
        }
    }
}

fn disassembled(data: &[u8], profile: &Profile, targets: &[&str]) -> Vec<CodeText> {
    let selection =
        Selection { targets: targets.iter().map(|&target| target.to_owned()).collect(), ..Selection::default() };
    let mut disassembly = Disassembly::default();
    let listed = Listed { selection, profile: Some(profile), ..Listed::default() };
    pipeline::disassemble(data, &listed, &mut disassembly).expect("it disassembles");
    disassembly.objects.into_iter().flat_map(|object| object.code).collect()
}

/// Runs a kernel: its code object, what the emulator's trace says of it as a profile, and how often each instruction
/// was executed.
fn traced(frame: &Frame, kernel: &MachineKernel) -> (Vec<u8>, Profile, BTreeMap<u64, u64>) {
    let stats = frame.run(kernel, Options { trace: true, ..Options::default() });
    let stats = stats.unwrap_or_else(|e| panic!("seed {}, {}: {e}", kernel.seed, frame.target().name()));
    let trace = stats.trace.as_ref().expect("tracing was on");
    let object = frame.object(kernel);
    let digest: String = Md5::digest(&object).iter().map(|byte| format!("{byte:02x}")).collect();
    let mut profile = Profile::new(Origin::Trace, Backend::Emulator);
    profile.complete = true;
    profile.kernels.push(counts::traced(machine_code::NAME, &digest, stats.waves, trace));
    (object, profile, trace.executed.iter().map(|(place, times)| (place.address, *times)).collect())
}

/// Kernels made up in machine code, with loops and calls.
#[test]
fn machine_code_ran_as_often_as_is_said() {
    let frames: Vec<Frame> =
        machine_code::targets().into_iter().map(|target| Frame::new(target).expect("a frame")).collect();
    let mut tally = Tally::default();
    for seed in 0..200 {
        let frame = &frames[seed as usize % frames.len()];
        let what = format!("seed {seed}, {}", frame.target().name());
        let kernel = frame.kernel(seed, Wish::ANYTHING).unwrap_or_else(|e| panic!("{what}: {e}"));
        let (object, mut profile, executed) = traced(frame, &kernel);
        compare(&disassembled(&object, &profile, &[]), &executed, &what, &mut tally);
        // Of a run that was cut short nothing is said to be all.
        profile.complete = false;
        let cut_short = disassembled(&object, &profile, &[]);
        assert!(cut_short.iter().flat_map(|part| &part.blocks).all(|block| block.executions.is_none()), "{what}");
    }
    println!("{tally:?}");
    assert!(
        tally.branches > 500 && tally.blocks > 1000 && tally.in_functions > 100 && tally.not_executed > 20,
        "{tally:?}"
    );
}

/// What goes into a call need not come out of it.
#[test]
fn nothing_is_derived_across_a_call_that_ends_the_wave() {
    let words = [
        0xbe84_1c00, // s_getpc_b64 s[4:5]
        0x8004_ff04, // s_add_u32 s4, s4, 20
        20,
        0x8205_8005, // s_addc_u32 s5, s5, 0
        0xbe9e_1e04, // s_swappc_b64 s[30:31], s[4:5]
        0xbf81_0000, // s_endpgm
        0xbf81_0000, // the function: s_endpgm
    ];
    let frame = Frame::new(Target::by_name("gfx90a").expect("a target")).expect("a frame");
    let kernel = MachineKernel { seed: 0, code: words.into_iter().flat_map(u32::to_le_bytes).collect() };
    let (object, profile, executed) = traced(&frame, &kernel);
    let (call, behind, function) = (frame.address() + 16, frame.address() + 20, frame.address() + 24);
    assert_eq!([call, behind, function].map(|address| executed.get(&address)), [Some(&4), None, Some(&4)]);
    let mut tally = Tally::default();
    compare(&disassembled(&object, &profile, &[]), &executed, "the call", &mut tally);
    assert!(tally.unknown > 0, "{tally:?}");
}

/// The samples, counted by their instrumented kernels; the original's executions are those that the model of time has.
#[test]
fn samples_ran_as_often_as_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let wavetap = command::wavetap().expect("the command");
    let mut tally = Tally::default();
    for name in place::sample_names() {
        let (sample, report) = (place::samples().join(&name), folder.path().join(format!("{name}.json")));
        let profile = folder.path().join(format!("{name}.profile"));
        let options =
            ["profile", "--backend", "emulator", "--target", "gfx90a", "--timing", "--format", "json", "--report"];
        let mut arguments: Vec<OsString> = options.map(OsString::from).to_vec();
        arguments.extend([
            report.clone().into(),
            "-o".into(),
            profile.clone().into(),
            "--".into(),
            sample.clone().into(),
        ]);
        command::run(&wavetap, &arguments, &[], folder.path()).and_then(|ran| ran.exited(0)).expect("it runs");
        let report: Report = serde_json::from_slice(&fs::read(report).expect("a report")).expect("it is one");
        let mut executed: BTreeMap<u64, u64> = BTreeMap::new();
        for inst in report.time.expect("time was modelled").kernels.iter().flat_map(|kernel| &kernel.instructions) {
            *executed.entry(inst.address).or_default() += inst.executions;
        }
        let profile = counts::read_profile(&profile).expect("a profile");
        let code = disassembled(&fs::read(sample).expect("a sample"), &profile, &["gfx90a"]);
        compare(&code, &executed, &name, &mut tally);
    }
    println!("{tally:?}");
    assert!(tally.branches > 50 && tally.blocks > 100 && tally.not_executed > 0, "{tally:?}");
}

/// The sample whose kernels call functions, as compiled for gfx90a, and a profile by instrumented kernels with nothing
/// in it.
fn calls() -> (Vec<u8>, String, Profile) {
    let data = fs::read(place::samples().join("calls")).expect("a sample");
    let mut disassembly = Disassembly::default();
    let selection = Selection { targets: vec!["gfx90a".to_owned()], ..Selection::default() };
    pipeline::disassemble(&data, &Listed { selection, ..Listed::default() }, &mut disassembly)
        .expect("it disassembles");
    let mut profile = Profile::new(Origin::Counters, Backend::Emulator);
    profile.complete = true;
    (data, disassembly.objects[0].facts.digest.clone(), profile)
}

/// A kernel that was dispatched once, with counts of one branch: `s_cbranch_execnz 4` of the function `scramble`.
fn with_counts(name: &str, object: &str, counts: Counts) -> KernelTotals {
    let mut totals = counts::traced(name, object, 4, &Trace::default());
    totals.demangled = demangle(name).into_owned();
    totals.sites.push(SiteTotals { address: SCRAMBLE_BRANCH, instruction: String::new(), source: None, counts });
    totals
}

/// See [`with_counts`].
const SCRAMBLE_BRANCH: u64 = 0x2418;
const DIRECT: &str = "_Z6directPj";
const RECURSIVE: &str = "_Z9recursivePj";

fn named<'c>(code: &'c [CodeText], name: &str) -> &'c CodeText {
    code.iter().find(|part| part.name.as_deref() == Some(name)).expect("it is listed")
}

#[test]
fn a_function_has_the_counts_of_all_its_kernels() {
    let (data, object, mut profile) = calls();
    let scalar = |executions, taken| Counts::from(ScalarCounts { executions, taken });
    profile.kernels = vec![with_counts(DIRECT, &object, scalar(7, 3)), with_counts(RECURSIVE, &object, scalar(5, 1))];
    let code = disassembled(&data, &profile, &["gfx90a"]);
    let scramble = named(&code, "_Z8scramblej");
    let inst = scramble.instructions.iter().find(|inst| inst.address == SCRAMBLE_BRANCH).expect("it is there");
    assert_eq!(inst.counts, Some(ScalarCounts { executions: 12, taken: 4 }.into()));
    let counted = scramble.counted.as_ref().expect("there is a profile");
    assert_eq!(counted.kernels.iter().map(|kernel| &*kernel.name).collect::<Vec<_>>(), [DIRECT, RECURSIVE]);
    // The kernel that calls through pointers is not in the profile.
    assert!(counted.more && !counted.is_everything() && scramble.blocks.iter().all(|block| block.executions.is_none()));
    assert!(
        Listing::default()
            .code(scramble)
            .contains("\n  counted in 2 kernels, added up: direct(unsigned int*), recursive(unsigned int*)\n")
    );

    // What lost waves leaves nothing to be derived, and says so.
    profile.kernels[0].dropped = 2;
    let code = disassembled(&data, &profile, &["gfx90a"]);
    let direct = named(&code, DIRECT);
    assert!(direct.blocks.iter().all(|block| block.executions.is_none()));
    assert!(Listing::default().code(direct).contains("\n  2 waves are missing from the counts"));

    // Right or refused.
    let fails = |profile: &Profile| {
        let error = pipeline::disassemble(
            &data,
            &Listed { profile: Some(profile), ..Listed::default() },
            &mut Disassembly::default(),
        );
        error.expect_err("it is refused").to_string()
    };
    profile.kernels[0].sites[0].counts = scalar(u64::MAX, 0);
    assert!(fails(&profile).contains("64 bits"));
    profile.kernels[0].sites[0].counts = ExecCounts::default().into();
    assert!(fails(&profile).contains("another kind"));
}

#[test]
fn a_refusal_is_said_where_it_is_known_to_be_of_that_kernel() {
    let (data, object, mut profile) = calls();
    let refused = |target: &str, name: &str| Refused {
        name: name.to_owned(),
        demangled: name.to_owned(),
        target: target.to_owned(),
        reason: "pc_read".to_owned(),
        detail: "where".to_owned(),
        address: None,
    };
    let why = |profile: &Profile, target: &str| {
        let code = disassembled(&data, profile, &[target]);
        let counted = named(&code, DIRECT).counted.clone().expect("there is a profile");
        counted.uncounted.into_iter().find(|kernel| kernel.name == DIRECT).expect("it has no counts").why
    };
    profile.refused = vec![refused("gfx90a", DIRECT)];
    assert_eq!(
        why(&profile, "gfx90a"),
        Uncounted::Refused { reason: "pc_read".to_owned(), detail: "where".to_owned() }
    );
    assert_eq!(why(&profile, "gfx906"), Uncounted::NotCounted, "nothing is said of other targets");
    // Counted in one run and refused in another: the counts are not all.
    let mut added_up = profile.clone();
    added_up.kernels.push(counts::traced(DIRECT, &object, 4, &Trace::default()));
    let code = disassembled(&data, &added_up, &["gfx90a"]);
    let direct = named(&code, DIRECT);
    assert!(direct.blocks.iter().all(|block| block.executions.is_none()));
    assert!(
        Listing::default()
            .code(direct)
            .contains("\n  counted: 1 dispatch, 4 waves\n  not in all runs: left uncounted: pc_read: where\n")
    );
    added_up.refused.clear();
    let code = disassembled(&data, &added_up, &["gfx90a"]);
    assert!(named(&code, DIRECT).blocks.iter().all(|block| block.executions == Some(4)));

    // The function that it calls may have run for it.
    let code = disassembled(&data, &profile, &["gfx90a"]);
    let scramble = named(&code, "_Z8scramblej").counted.as_ref().expect("there is a profile");
    assert!(scramble.uncounted.iter().any(|kernel| kernel.name == DIRECT));

    // A profile that has refusals alone, of kernels that are not here, is another file's.
    profile.refused = vec![refused("gfx90a", "_Z5otherv"), refused("gfx1030", DIRECT)];
    let listed = Listed { profile: Some(&profile), ..Listed::default() };
    let error = pipeline::disassemble(&data, &listed, &mut Disassembly::default()).expect_err("it is another file's");
    assert!(error.to_string().contains("the profile is of another file"), "{error}");
}
