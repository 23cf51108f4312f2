//! The samples with counting code in them: the same output, and counters equal to what the emulator saw of the
//! original.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::expectations::{Scope, TARGETS, differences, expectations, samples, seeds};
use crate::stand_in::{Compiler, StandIn, root};
use wavetap::pipeline::{Counters, Options, probe, rewrite};
use wavetap::profile::file::{KernelTotals, Profile};
use wavetap::profile::launches::NotCounted;
use wavetap::profile::map::CounterMode;
use wavetap::profile::probes::branches;
use wavetap::profile::schema::Counts;

fn original(name: &str) -> PathBuf {
    root().join("hip-samples/bin").join(name)
}

/// Rewrites a sample into a program that can be run.
fn rewritten(stand_in: &StandIn, name: &str, counters: Counters) -> PathBuf {
    rewritten_file(stand_in, &original(name), counters)
}

fn rewritten_file(stand_in: &StandIn, program: &Path, counters: Counters) -> PathBuf {
    rewritten_with(stand_in, program, Options { counters, ..Options::default() })
}

/// Rewritten so that every wave has its own record.
fn per_wave(stand_in: &StandIn, program: &Path, counters: Counters) -> PathBuf {
    rewritten_with(stand_in, program, Options { counters, single_waves: true, ..Options::default() })
}

fn rewritten_with(stand_in: &StandIn, program: &Path, options: Options) -> PathBuf {
    let data = fs::read(program).expect("a program");
    let name = program.file_name().expect("a name").to_string_lossy();
    let options = Options { probes: vec![probe::BRANCHES], ..options };
    let result = rewrite(&data, &options).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(result.bytes != data, "{name}: nothing was instrumented");
    let path = stand_in.file(&format!("{name}.{:?}.{}", options.counters, options.single_waves));
    fs::write(&path, result.bytes).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
    path
}

fn read(path: &Path) -> Profile {
    Profile::from_json(&fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        .expect("a profile")
}

/// Runs with these variables and gives output, counters and trace.
fn counted(stand_in: &StandIn, program: &Path, variables: &[(&str, &str)]) -> (String, Profile, Profile) {
    let (profile, trace) = (stand_in.file("profile"), stand_in.file("trace"));
    let _ = (fs::remove_file(&profile), fs::remove_file(&trace));
    let files =
        [("WAVETAP_PROFILE", profile.to_str().expect("plain")), ("WAVETAP_TRACE", trace.to_str().expect("plain"))];
    let output = stand_in.passes(program, &[variables, &files].concat());
    (output, read(&profile), read(&trace))
}

/// The sites that were reached.
fn reached(kernel: &KernelTotals) -> BTreeMap<u64, Counts> {
    kernel.sites.iter().filter(|site| !site.counts.is_zero()).map(|site| (site.address, site.counts.clone())).collect()
}

fn named<'p>(profile: &'p Profile, name: &str) -> &'p KernelTotals {
    profile.kernels.iter().find(|kernel| kernel.name == name).unwrap_or_else(|| panic!("{name} was not counted"))
}

#[test]
fn counters_in_lds_equal_the_trace_and_the_source() {
    counters_equal_the_trace_and_the_source(Counters::Lds, CounterMode::Lds);
}

#[test]
fn counters_in_global_memory_equal_the_trace_and_the_source() {
    counters_equal_the_trace_and_the_source(Counters::Global, CounterMode::Global);
}

fn counters_equal_the_trace_and_the_source(mode: Counters, wanted: CounterMode) {
    let stand_in = StandIn::new();
    let mut complaints = Vec::new();
    for name in samples() {
        let expected = expectations(&name);
        let program = rewritten(&stand_in, &name, mode);
        for target in TARGETS {
            let (plain, empty, before) = counted(&stand_in, &original(&name), &[("WAVETAP_TARGET", target)]);
            assert!(empty.kernels.is_empty() && empty.complete, "the original counts nothing");
            for seed in 0..seeds() {
                let place = format!("{name} {mode:?} {target} seed {seed}");
                let seed = seed.to_string();
                let variables = [("WAVETAP_TARGET", target), ("WAVETAP_STRICT", "1"), ("WAVETAP_SEED", &seed)];
                let (output, profile, after) = counted(&stand_in, &program, &variables);
                assert_eq!(output, plain, "{place}");
                assert!(profile.complete && profile.refused.is_empty(), "{place}: {:?}", profile.refused);
                for seen in &before.kernels {
                    let place = format!("{place} {}", seen.demangled);
                    let kernel = named(&profile, &seen.name);
                    assert_eq!(kernel.mode, Some(wanted), "{place}");
                    assert_eq!((kernel.dispatches, kernel.waves), (seen.dispatches, seen.waves), "{place}");
                    assert_eq!((kernel.dropped, kernel.unfinished), (0, 0), "{place}");
                    // What the original executed: the rewritten kernel executes the same, and counted it.
                    let seen = reached(seen);
                    if reached(named(&after, &kernel.name)) != seen {
                        complaints.push(format!("{place}: the rewritten kernel branches otherwise"));
                    }
                    let own: Vec<u64> = kernel.sites.iter().map(|site| site.address).collect();
                    let seen: BTreeMap<u64, Counts> =
                        seen.into_iter().filter(|(address, _)| own.contains(address)).collect();
                    if reached(kernel) != seen {
                        complaints.push(format!("{place}: counted {:?}, executed {seen:?}", reached(kernel)));
                    }
                }
                for (kernel, numbers) in &expected.kernels {
                    let found = profile.kernels.iter().find(|found| found.demangled.starts_with(&format!("{kernel}(")));
                    let found = found.unwrap_or_else(|| panic!("{place}: {kernel} was not counted"));
                    // Functions are counted, too, where none of them may have run as it was.
                    let scope = if found.uncounted_callees.is_empty() { Scope::All } else { Scope::Kernel };
                    complaints.extend(
                        differences(&name, found, numbers, scope)
                            .into_iter()
                            .map(|text| format!("{place} {kernel}: {text}")),
                    );
                }
            }
        }
    }
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn a_rewritten_program_runs_by_itself() {
    let stand_in = StandIn::new();
    for name in samples() {
        // Nobody sets the buffer: the kernels count nothing and behave as before.
        let program = rewritten(&stand_in, &name, Counters::Auto);
        assert_eq!(
            stand_in.passes(&program, &[("WAVETAP_STRICT", "1")]),
            stand_in.passes(&original(&name), &[]),
            "{name}"
        );
    }
}

#[test]
fn few_records_are_shared_or_drop_waves_visibly() {
    let stand_in = StandIn::new();
    for mode in [Counters::Lds, Counters::Global] {
        let program = per_wave(&stand_in, &original("two_kernels"), mode);
        let (_, all, _) = counted(&stand_in, &program, &[]);
        assert_eq!(all.kernels.len(), 3);
        // Without that, no wave has a record of its own, and the records are few in any case.
        let totals = rewritten(&stand_in, "two_kernels", mode);
        let (_, totals, _) = counted(&stand_in, &totals, &[("WAVETAP_RECORDS", "3"), ("WAVETAP_PER_WAVE", "1")]);
        for (all, totals) in all.kernels.iter().zip(&totals.kernels) {
            assert!(totals.shared_records, "{mode:?}");
            assert_eq!((totals.waves, totals.dropped, totals.unfinished), (all.waves, 0, 0), "{mode:?}");
            assert_eq!(reached(totals), reached(all), "{mode:?}");
        }
        assert!(totals.waves.is_empty());
        let (_, shared, _) = counted(&stand_in, &program, &[("WAVETAP_RECORDS", "3")]);
        for (all, shared) in all.kernels.iter().zip(&shared.kernels) {
            assert!(shared.shared_records && !all.shared_records, "{mode:?}");
            assert_eq!((shared.waves, shared.dropped, shared.unfinished), (all.waves, 0, 0), "{mode:?}");
            assert_eq!(reached(shared), reached(all), "{mode:?}");
        }
        let (_, some, _) = counted(&stand_in, &program, &[("WAVETAP_RECORDS", "3:drop"), ("WAVETAP_PER_WAVE", "1")]);
        for (all, some) in all.kernels.iter().zip(&some.kernels) {
            assert_eq!((some.waves, some.dropped), (all.waves, all.waves - 3 * all.dispatches), "{mode:?}");
            let executions =
                |kernel: &KernelTotals| kernel.sites.iter().filter_map(|site| site.counts.executions()).sum::<u64>();
            assert!(executions(some) < executions(all) && executions(some) > 0, "{mode:?}");
        }
        assert_eq!(some.waves.len() as u64, some.kernels.iter().map(|kernel| 3 * kernel.dispatches).sum::<u64>());
    }
}

#[test]
fn every_wave_is_kept_on_request() {
    let stand_in = StandIn::new();
    let program = per_wave(&stand_in, &original("divergence"), Counters::Lds);
    let (_, profile, _) = counted(&stand_in, &program, &[("WAVETAP_PER_WAVE", "1")]);
    assert_eq!(profile.waves.len(), 64);
    let kernel = &profile.kernels[0];
    let site = kernel.sites.iter().position(|site| *site.counts.kind() == *branches::EXEC).expect("the if");
    let skip: usize = kernel.sites[..site].iter().map(|site| site.counts.values().len()).sum();
    for wave in profile.waves.iter().filter(|wave| wave.kernel == 0) {
        assert!(
            wave.workgroup[0] < 16 && wave.workgroup[1..] == [0, 0] && wave.wave < 2 && wave.dispatch == Some(0),
            "{wave:?}"
        );
        // The first wave of a workgroup diverges, the second agrees.
        assert_eq!(wave.counters[skip..skip + 3], [1, u64::from(wave.wave), 64], "{wave:?}");
    }
}

#[test]
fn a_run_that_is_cut_off_leaves_a_readable_profile() {
    let stand_in = StandIn::new();
    let program = rewritten(&stand_in, "two_kernels", Counters::Global);
    let (_, whole, _) = counted(&stand_in, &program, &[]);
    // Enough for the first kernel, too little for the second.
    let fuel = whole.kernels[0].work.expect("work").instructions + 1;
    assert!(whole.kernels[1].work.expect("work").instructions / 3 > fuel);
    let path = stand_in.file("cut");
    let output = stand_in
        .run(&program, &[("WAVETAP_PROFILE", path.to_str().expect("plain")), ("WAVETAP_FUEL", &fuel.to_string())]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && errors.contains("fuel"), "{errors}");
    let cut = read(&path);
    assert!(!cut.complete);
    assert_eq!(reached(&cut.kernels[0]), reached(&whole.kernels[0]));
}

/// What `hip-samples/variants.sh` builds: other containers, other versions, other kinds of host file. Each has one
/// sample's two or three kernels in it, and each counts them.
#[test]
fn variants_run_and_are_counted() {
    let stand_in = StandIn::new();
    let folder = stand_in.file("variants");
    let built = std::process::Command::new(root().join("hip-samples/variants.sh"))
        .arg(&folder)
        .output()
        .expect("the script starts");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    for (name, kernels) in [
        ("no-pie", 2),
        ("compressed", 2),
        ("two-bundles", 2),
        ("rdc", 2),
        ("features", 2),
        ("v4", 3),
        ("v5", 3),
        ("v6", 3),
    ] {
        let program = folder.join(name);
        let (plain, _, before) = counted(&stand_in, &program, &[("WAVETAP_STRICT", "1")]);
        let program = rewritten_file(&stand_in, &program, Counters::Auto);
        let (output, profile, _) = counted(&stand_in, &program, &[("WAVETAP_STRICT", "1")]);
        assert_eq!(output, plain, "{name}");
        assert_eq!((before.kernels.len(), profile.kernels.len()), (kernels, kernels), "{name}");
        for kernel in &before.kernels {
            assert_eq!(reached(named(&profile, &kernel.name)), reached(kernel), "{name} {}", kernel.demangled);
        }
    }
}

/// What a program is told of its kernels is what they need without counting code, so it does the same work with and
/// without.
#[test]
fn a_rewritten_kernel_is_described_as_the_original() {
    let stand_in = StandIn::new();
    let compiler = Compiler::new();
    for target in ["gfx90a", "gfx1100"] {
        let original = stand_in.file(&format!("resources-{target}"));
        compiler.compile(target, &["-lamdhip64"], &root().join("hip-emulator/tests/programs/resources.hip"), &original);
        let (plain, ..) = counted(&stand_in, &original, &[]);
        for mode in [Counters::Lds, Counters::Global] {
            let program = rewritten_file(&stand_in, &original, mode);
            let (output, profile, _) = counted(&stand_in, &program, &[]);
            assert_eq!(output, plain, "{target} {mode:?}");
            let more = |kernel: &KernelTotals| {
                kernel.after.expect("after").lds_bytes > kernel.before.expect("before").lds_bytes
            };
            assert_eq!(
                profile.kernels.iter().any(more),
                mode == Counters::Lds,
                "{target} {mode:?}: what it must not be told"
            );
        }
    }
}

/// Kernels of one object that are in flight at the same time and wait for each other count as the emulator sees them,
/// each for itself.
#[test]
fn kernels_in_flight_together_are_counted_apart() {
    let stand_in = StandIn::new();
    let compiler = Compiler::new();
    let original = stand_in.file("streams");
    let search = format!("-L{}", stand_in.folder().display());
    let source = root().join("hip-emulator/tests/programs/streams.hip");
    compiler.compile("gfx90a", &[&search, "-l:libamdhip64.so.5"], &source, &original);
    for mode in [Counters::Lds, Counters::Global] {
        for (program, variables) in [
            (rewritten_file(&stand_in, &original, mode), &[] as &[(&str, &str)]),
            (per_wave(&stand_in, &original, mode), &[("WAVETAP_PER_WAVE", "1"), ("WAVETAP_THREADS", "1")]),
        ] {
            let (_, profile, trace) = counted(&stand_in, &program, variables);
            for kernel in &profile.kernels {
                let seen = named(&trace, &kernel.name);
                assert_eq!(
                    (kernel.dispatches, kernel.waves),
                    (seen.dispatches, seen.waves),
                    "{mode:?} {}",
                    kernel.demangled
                );
                assert_eq!((kernel.dropped, kernel.unfinished), (0, 0), "{mode:?} {}", kernel.demangled);
                assert_eq!(reached(kernel), reached(seen), "{mode:?} {}", kernel.demangled);
            }
            let name = |text: &str| profile.kernels.iter().any(|kernel| kernel.demangled.starts_with(text));
            assert!(name("take_turns(") && name("wait_for(") && name("serve("), "{mode:?}");
        }
    }
}

/// A launch that works without counters works with them, and what is not counted is said.
#[test]
fn counters_never_take_the_lds_of_a_launch() {
    let stand_in = StandIn::new();
    let compiler = Compiler::new();
    for (target, version) in [("gfx90a", "5"), ("gfx90a", "4"), ("gfx1030", "5")] {
        let original = stand_in.file(&format!("dynamic-{target}-{version}"));
        let flags = ["-lamdhip64", &format!("-mcode-object-version={version}")];
        compiler.compile(target, &flags, &root().join("hip-emulator/tests/programs/dynamic_lds.hip"), &original);
        let (plain, none, trace) = counted(&stand_in, &original, &[]);
        let why =
            |profile: &Profile| profile.uncounted.iter().map(|each| (each.why, each.dispatches)).collect::<Vec<_>>();
        assert_eq!(why(&none), [(NotCounted::NotRewritten, 2), (NotCounted::LaunchFailed, 1)], "{target}");
        assert!(none.complete, "{target}: nothing of it was to be counted");

        let (output, profile, _) = counted(&stand_in, &rewritten_file(&stand_in, &original, Counters::Auto), &[]);
        assert_eq!((output.as_str(), profile.complete), (plain.as_str(), true), "{target}");
        let kernel = &profile.kernels[0];
        assert_ne!(kernel.mode, Some(CounterMode::Lds), "{target}");
        assert_eq!(kernel.dispatches, 2, "{target}");
        assert_eq!(reached(kernel), reached(&trace.kernels[0]), "{target}");
        assert_eq!(why(&profile), [(NotCounted::LaunchFailed, 1)], "{target}");
        let launches: Vec<_> =
            kernel.launches.iter().map(|launch| (launch.workgroup, launch.dynamic_lds, launch.dispatches)).collect();
        assert_eq!(launches, [([256, 1, 1], 1024, 1), ([256, 1, 1], 61440, 1)], "{target}");

        // Counters where they were asked for: there is room for them in the first launch, and the second one runs
        // without.
        let (output, profile, _) =
            counted(&stand_in, &rewritten_file(&stand_in, &original, Counters::Lds), &[("WAVETAP_STRICT", "1")]);
        assert_eq!((output.as_str(), profile.complete, profile.has_ended()), (plain.as_str(), false, true), "{target}");
        let kernel = &profile.kernels[0];
        assert_eq!((kernel.mode, kernel.dispatches), (Some(CounterMode::Lds), 1), "{target}");
        assert_eq!(why(&profile), [(NotCounted::LdsDoesNotFit, 1), (NotCounted::LaunchFailed, 1)], "{target}");
        assert!(profile.uncounted[0].detail.contains("61440 bytes of dynamic LDS"), "{}", profile.uncounted[0].detail);
    }
}

/// Workgroups that wait for each other all run at the same time: where counters would let fewer of them, the original
/// runs, and that is said.
#[test]
fn a_cooperative_launch_has_the_workgroups_that_were_promised() {
    let stand_in = StandIn::new();
    let original = stand_in.file("cooperative");
    let source = root().join("hip-emulator/tests/programs/cooperative.hip");
    Compiler::new().compile("gfx90a", &["-lamdhip64"], &source, &original);
    let (plain, _, trace) = counted(&stand_in, &original, &[]);
    assert!(plain.starts_with("4 workgroups on a multiprocessor\n"), "{plain}");
    assert_eq!(trace.kernels[0].dispatches, 2);
    for counters in [Counters::Global, Counters::Lds] {
        let (output, profile, seen) = counted(&stand_in, &rewritten_file(&stand_in, &original, counters), &[]);
        assert_eq!(output, plain, "{counters:?}");
        let why: Vec<_> = profile.uncounted.iter().map(|each| (each.why, each.dispatches)).collect();
        assert_eq!(why, [(NotCounted::FewerWorkgroups, 1)], "{counters:?}");
        let detail = &profile.uncounted[0].detail;
        assert!(detail.contains("4 of them without counters and 3 with counters"), "{detail}");
        assert!(!profile.complete && profile.has_ended(), "{counters:?}");
        // The launch of three workgroups of four waves.
        assert_eq!((profile.kernels[0].dispatches, profile.kernels[0].waves), (1, 12), "{counters:?}");
        assert_eq!(seen.kernels[0].waves, trace.kernels[0].waves, "{counters:?}");
    }
    // Registers that are there without counters, too: nothing is lost, and both launches count.
    let (output, profile, _) = counted(&stand_in, &rewritten_file(&stand_in, &original, Counters::Register), &[]);
    let lost = profile.kernels[0].before.map(|of| of.vgprs) != profile.kernels[0].after.map(|of| of.vgprs);
    assert_eq!((output.as_str(), profile.uncounted.is_empty()), (plain.as_str(), !lost));
}
