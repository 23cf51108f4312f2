//! What waits wait for and where values come from, as the analyses say it, beside what the emulator saw in runs
//! ([`wavetap::emulator::Origins`], which shares no code with them): what was seen is always among what is said, and
//! what must be waited for is waited for at every execution. How much of what is said was never seen is printed by
//! target.
//!
//! The verifier shares these analyses with the rewriter (`crates/verify/README.md`), so an error there would be made
//! twice. Of what it relies on it is also compared that an operation which is said to be complete was complete, and
//! that calls and jumps through registers went where call resolution says (`shared`).
//!
//! The runs are those of the samples, of the made-up kernels that clang compiles (`rewriter_tests::made_up`), and of
//! kernels made up directly in machine code, with waits for any number of operations (`rewriter_tests::machine_code`).
//! Quick: a target of a sample, two sources for other targets, 300 kernels in machine code. Full
//! (`WAVETAP_FULL_TESTS=1`): every target of every sample, every source for every target
//! (`WAVETAP_KERNEL_TARGETS=gfx90a`: for these), 10,000 kernels. One kernel alone, with its code:
//!
//!     WAVETAP_KERNEL=1234 cargo test -p rewriter-tests --test slice_oracle machine_code -- --nocapture

mod compare;
mod shared;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Mutex;

use compare::{Seen, Subject, Tally};
use md5::{Digest, Md5};
use rewriter_tests::cores::on_all_cores;
use rewriter_tests::kernels::build::{self, Variant};
use rewriter_tests::kernels::launch;
use rewriter_tests::machine_code::{self, Frame, Wish};
use rewriter_tests::{chosen, command, full, made_up, place, real_code};
use shared::SharedTally;
use wavetap::cfg::Program;
use wavetap::code_object::CodeObject;
use wavetap::emulator::Options;
use wavetap::isa::{self, Counter, Target};
use wavetap::kernel::Image;
use wavetap::offload_bundle::Input;
use wavetap::profile::origins::OriginsFile;

/// As many complaints as a person can use.
const SHOWN: usize = 25;

type ByTarget = BTreeMap<String, Tally>;

fn nothing_wrong(tallies: &ByTarget) {
    let mut wrong = Vec::new();
    for (target, tally) in tallies {
        println!("{target}: {}", tally.line());
        wrong.extend(tally.wrong.iter().take(SHOWN / 2).cloned());
    }
    wrong.truncate(SHOWN);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn named(target: Target) -> String {
    format!("{} wave{}", target.name(), target.wave_size())
}

fn options() -> Options {
    Options { origins: true, ..Options::default() }
}

#[test]
fn machine_code_waits_for_what_is_said() {
    let only: Option<u64> = std::env::var("WAVETAP_KERNEL").ok().and_then(|seed| seed.parse().ok());
    let frames: Vec<Frame> =
        machine_code::targets().into_iter().map(|target| Frame::new(target).expect("a frame")).collect();
    let seeds = match only {
        Some(seed) => seed..seed + 1,
        None => 0..if full() { 10_000 } else { 300 },
    };
    let mut tallies = ByTarget::new();
    for seed in seeds {
        let frame = &frames[seed as usize % frames.len()];
        let kernel = frame
            .kernel(seed, Wish::ANYTHING)
            .unwrap_or_else(|e| panic!("seed {seed}, {}: {e}", named(frame.target())));
        if only.is_some() {
            println!("{}", frame.listing(&kernel));
        }
        let stats =
            frame.run(&kernel, options()).unwrap_or_else(|e| panic!("seed {seed}, {}: {e}", named(frame.target())));
        let program = frame.program(&kernel);
        assert!(
            program.undecodable().is_empty() && !program.has_unknown_calls(),
            "seed {seed}: {:?}",
            program.undecodable()
        );
        let seen = Seen::of(stats.origins.as_ref().expect("they were asked for"));
        let tally = Subject::new(&program).compare(&format!("seed {seed} {}", named(frame.target())), &seen);
        tallies.entry(named(frame.target())).or_default().add(tally);
    }
    nothing_wrong(&tallies);
    if only.is_none() {
        assert!(tallies.len() == frames.len() && tallies.values().all(|tally| tally.musts > 50 && tally.uses > 1000));
        let compared = |tally: &Tally| tally.shared.outstanding > 500 && tally.shared.resolved > 10;
        assert!(tallies.values().all(compared));
    }
}

/// That the comparison would find what is wrong in one place: a wait that is said to be for another number of
/// operations than it was.
#[test]
fn other_waits_are_found_out() {
    // Left outstanding: one, and more than there are.
    let (mut changed, mut found) = (0, [0, 0]);
    for (n, target) in machine_code::targets().into_iter().enumerate() {
        let frame = Frame::new(target).expect("a frame");
        // With one way only, and with one queue.
        for seed in 0..4 {
            let wish = Wish { control: false, calls: false, mixed: seed % 2 == 0, ..Wish::ANYTHING };
            let mut kernel = frame.kernel(seed * 100 + n as u64, wish).expect("a kernel");
            let stats = frame.run(&kernel, options()).expect("it runs");
            let seen = Seen::of(stats.origins.as_ref().expect("asked for"));
            let mut at = 0;
            while let Ok(inst) = isa::decode(target, &kernel.code[at..]) {
                let size = usize::from(inst.size);
                let (address, original) = (frame.address() + at as u64, kernel.code[at..at + size].to_vec());
                let waited = |(counter, count): (Counter, u8)| {
                    let wait = seen.waits.get(&(address, counter.name().to_owned()));
                    (count == 0 && wait.is_some_and(|wait| wait.forced.len() > 1)).then_some(counter)
                };
                let counts = isa::wait_count(target, &inst).unwrap_or_default();
                if let Some(counter) = counts.iter().find_map(waited) {
                    changed += 1;
                    let most = target.largest_wait(counter).expect("a counter of the target") - 1;
                    for (found, left) in found.iter_mut().zip([1, most]) {
                        let bits = isa::wait_immediate(target, inst.opcode(), counts.with(counter, left))
                            .expect("an immediate");
                        kernel.code[at..at + 2].copy_from_slice(&bits.to_le_bytes());
                        *found +=
                            usize::from(!Subject::new(&frame.program(&kernel)).compare("", &seen).wrong.is_empty());
                    }
                    kernel.code[at..at + size].copy_from_slice(&original);
                }
                at += size;
            }
        }
    }
    println!("{found:?} of {changed} found");
    // Where the counter is out of order, a wait that leaves one outstanding may have waited for any.
    assert!(changed > 60 && found[1] == changed && found[0] * 3 > changed, "{found:?} of {changed}");
}

/// The first wait for all operations of a counter that waited for several, and its immediate for as many as possible
/// left outstanding instead: offset in the code, and bits.
fn weakened(frame: &Frame, code: &[u8], seen: &Seen) -> Option<(usize, u16)> {
    let target = frame.target();
    let mut at = 0;
    while let Ok(inst) = isa::decode(target, &code[at..]) {
        let address = frame.address() + at as u64;
        let counts = isa::wait_count(target, &inst).unwrap_or_default();
        let waited = counts.iter().find(|(counter, count)| {
            let wait = seen.waits.get(&(address, counter.name().to_owned()));
            *count == 0 && wait.is_some_and(|wait| wait.forced.len() > 1)
        });
        if let Some((counter, _)) = waited {
            let most = target.largest_wait(counter).expect("a counter of the target") - 1;
            let bits = isa::wait_immediate(target, inst.opcode(), counts.with(counter, most)).expect("an immediate");
            return Some((at, bits));
        }
        at += usize::from(inst.size);
    }
    None
}

/// That the comparison would find what the verifier and the rewriter would both get wrong: operations that are taken for
/// complete and are not, and a call that goes elsewhere.
#[test]
fn shared_mistakes_are_found_out() {
    let (mut weaker, mut elsewhere) = (0, 0);
    for (n, target) in machine_code::targets().into_iter().enumerate() {
        let frame = Frame::new(target).expect("a frame");
        for seed in 0..2 {
            let mut kernel = frame.kernel(seed * 100 + n as u64, Wish::ANYTHING).expect("a kernel");
            let program = frame.program(&kernel);
            let seen_of = |kernel: &_| {
                let stats = frame.run(kernel, options()).expect("it runs");
                Seen::of(stats.origins.as_ref().expect("asked for"))
            };
            let mut seen = seen_of(&kernel);
            let weakened = weakened(&frame, &kernel.code, &seen);
            let call = seen.jumps.iter_mut().find(|(from, _)| {
                let calls = |body: &wavetap::kernel::Body| body.calls().any(|(id, _)| body.address(id) == **from);
                program.bodies().iter().any(calls)
            });
            if let Some((_, targets)) = call {
                *targets = targets.iter().map(|target| target + 4).collect();
                let wrong = Subject::new(&program).compare("", &seen).wrong;
                assert!(wrong.iter().any(|what| what.contains(" went to ")), "{wrong:?}");
                elsewhere += 1;
            }
            // What is executed waits for less than what is analysed.
            if let Some((at, bits)) = weakened {
                kernel.code[at..at + 2].copy_from_slice(&bits.to_le_bytes());
                let wrong = Subject::new(&program).compare("", &seen_of(&kernel)).wrong;
                assert!(wrong.iter().any(|what| what.contains("is said to be complete")), "{wrong:?}");
                weaker += 1;
            }
        }
    }
    println!("{weaker} waits, {elsewhere} calls");
    assert!(weaker > 12 && elsewhere > 8, "{weaker} waits, {elsewhere} calls");
}

/// That the comparison would find something: what was seen of one kernel is none of what is said of another.
#[test]
fn another_kernel_is_found_out() {
    let frame = Frame::new(machine_code::targets()[1]).expect("a frame");
    let kernels: Vec<_> = (0..6).map(|seed| frame.kernel(seed, Wish::ANYTHING).expect("a kernel")).collect();
    let mut found = 0;
    for (a, b) in kernels.iter().zip(&kernels[1..]) {
        let stats = frame.run(a, options()).expect("it runs");
        let seen = Seen::of(stats.origins.as_ref().expect("asked for"));
        let program = frame.program(b);
        found += usize::from(!Subject::new(&program).compare("", &seen).wrong.is_empty());
    }
    assert_eq!(found, kernels.len() - 1);
}

#[test]
fn compiled_kernels_wait_for_what_is_said() {
    let sources = made_up::sources().expect("the sources");
    let only = std::env::var("WAVETAP_KERNEL").unwrap_or_default();
    let targets = machine_code::targets();
    let count = sources.files().len();
    let pairs: Vec<(Target, usize, &str)> = if full() {
        let targets = targets.iter().filter(|target| chosen(target.name()));
        let all = targets.flat_map(|target| (0..count).map(move |file| (*target, file)));
        all.flat_map(|(target, file)| ["O1", "O3"].map(|level| (target, file, level))).collect()
    } else {
        vec![(targets[2], 1, "O1"), (targets[targets.len() - 1], 3, "O3")]
    };
    let tallies = Mutex::new(ByTarget::new());
    on_all_cores(&pairs, |&(target, file, level)| {
        let path = &sources.files()[file];
        let variant = Variant { target, level, version: 5 };
        let object = build::object_of(path, variant).expect("compiled");
        let reference = sources.reference(target.wave_size()).expect("the reference");
        let code = CodeObject::parse(&object).expect("a code object");
        let program = Program::of(code.target().expect("known"), &Image::of(&code).expect("an image"));
        let subject = Subject::new(&program);
        let source = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let tests = reference
            .tests
            .iter()
            .filter(|test| test.file == source && test.runs_on(target.name()) && test.name.contains(&only));
        for test in tests.filter(|test| made_up::miscompiled(&test.name, variant).is_none()) {
            let buffers = reference.buffers(test).expect("buffers");
            let ran = launch::run(
                &object,
                target,
                test,
                &buffers,
                &Options { fuel: 3_000_000, tolerated: made_up::left_in(&test.name, variant), ..options() },
            );
            let (_, stats) = ran.unwrap_or_else(|e| panic!("{} {variant}: {e}", test.name));
            let seen = Seen::of(stats.origins.as_ref().expect("they were asked for"));
            let tally = subject.compare(&format!("{} {variant}", test.name), &seen);
            tallies.lock().expect("no panic").entry(named(target)).or_default().add(tally);
        }
    });
    let tallies = tallies.into_inner().expect("no panic");
    nothing_wrong(&tallies);
    assert!(!only.is_empty() || tallies.values().all(|tally| tally.musts > 20 && tally.uses > 1000));
}

#[test]
fn samples_wait_for_what_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let wavetap = command::wavetap().expect("the command");
    let mut tallies = ByTarget::new();
    for (n, path) in real_code::sample_files().into_iter().enumerate() {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let data = std::fs::read(&path).expect("readable");
        let mut targets: Vec<String> = Vec::new();
        let input = Input::parse(&data).expect("device code");
        for found in input.code_objects() {
            let target = CodeObject::parse(found.bytes).expect("a code object").target();
            let name = target.filter(|target| target.emulated()).map(|target| target.name().to_owned());
            targets.extend(name.filter(|name| !targets.contains(name)));
        }
        let chosen: Vec<String> = if full() { targets } else { vec![targets[n % targets.len()].clone()] };
        for target in chosen {
            let file = folder.path().join(format!("{name}-{target}.json"));
            let args: [OsString; 8] = [
                "run".into(),
                "--backend".into(),
                "emulator".into(),
                "--strict".into(),
                "--target".into(),
                target.clone().into(),
                "--".into(),
                path.clone().into(),
            ];
            let environment = [("WAVETAP_ORIGINS", file.clone().into_os_string())];
            command::run(&wavetap, &args, &environment, place::root()).and_then(|ran| ran.exited(0)).expect("it runs");
            let origins = OriginsFile::from_json(&std::fs::read(&file).expect("written")).expect("origins");
            assert!(!origins.objects.is_empty(), "{name} {target}");
            for found in input.code_objects() {
                let digest: String = Md5::digest(found.bytes).iter().map(|byte| format!("{byte:02x}")).collect();
                let Some(seen) = origins.objects.iter().find(|object| object.object == digest) else { continue };
                let object = CodeObject::parse(found.bytes).expect("a code object");
                let program = Program::of(object.target().expect("known"), &Image::of(&object).expect("an image"));
                let tally = Subject::new(&program).compare(&format!("{name} {target}"), &Seen::read(seen));
                tallies.entry(target.clone()).or_default().add(tally);
            }
        }
    }
    nothing_wrong(&tallies);
    assert!(tallies.values().map(|tally| tally.musts).sum::<u64>() > 100);
    let mut shared = SharedTally::default();
    tallies.values().for_each(|tally| shared.add(tally.shared));
    assert!(shared.outstanding > 100 && shared.resolved > 0);
}
