//! The prebuilt samples, unmodified, on every target that they have code for: their output, and the emulator's counts
//! against those worked out from their sources.

use std::fs;

use crate::expectations::{Scope, TARGETS, differences, expectations, samples, seeds};
use crate::stand_in::{StandIn, root};
use wavetap::profile::file::Profile;

#[test]
fn counts_are_those_of_the_source() {
    let stand_in = StandIn::new();
    let trace = stand_in.file("trace");
    let trace_path = trace.to_str().expect("a plain path");
    let mut complaints = Vec::new();
    for name in samples() {
        let expected = expectations(&name);
        let program = root().join("hip-samples/bin").join(&name);
        for target in TARGETS {
            stand_in.passes(&program, &[("WAVETAP_TARGET", target), ("WAVETAP_TRACE", trace_path)]);
            let profile = Profile::from_json(&fs::read(&trace).expect("a trace")).expect("a profile");
            assert!(profile.complete, "{name}");
            for (kernel_name, kernel) in &expected.kernels {
                let found =
                    profile.kernels.iter().find(|found| found.demangled.starts_with(&format!("{kernel_name}(")));
                let found = found.unwrap_or_else(|| panic!("{name}: {kernel_name} was not dispatched"));
                complaints.extend(
                    differences(&name, found, kernel, Scope::All)
                        .into_iter()
                        .map(|text| format!("{name} {target} {kernel_name}: {text}")),
                );
            }
            assert_eq!(profile.kernels.len(), expected.kernels.len(), "{name}: kernels without expectations");
        }
    }
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn output_does_not_depend_on_the_seed() {
    let stand_in = StandIn::new();
    for name in samples() {
        let program = root().join("hip-samples/bin").join(&name);
        for target in TARGETS {
            let plain = stand_in.passes(&program, &[("WAVETAP_TARGET", target)]);
            for seed in 0..seeds() {
                let variables =
                    [("WAVETAP_TARGET", target), ("WAVETAP_STRICT", "1"), ("WAVETAP_SEED", &seed.to_string())];
                assert_eq!(stand_in.passes(&program, &variables), plain, "{name} {target} seed {seed}");
            }
        }
    }
}

/// A sample that passes does so because its kernels computed something.
#[test]
fn no_sample_passes_without_its_kernels() {
    let stand_in = StandIn::new();
    for name in samples() {
        let program = root().join("hip-samples/bin").join(&name);
        let output = stand_in.run(&program, &[("WAVETAP_SKIP_KERNELS", "1")]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success() && text.ends_with("FAIL\n"), "{name}: {}\n{text}", output.status);
    }
}

#[test]
fn expectations_quote_their_source_lines() {
    for name in samples() {
        let source = fs::read_to_string(root().join(format!("hip-samples/src/{name}.hip"))).expect("the source");
        let lines: Vec<&str> = source.lines().collect();
        for kernel in expectations(&name).kernels.values() {
            let vector = kernel.vector.iter().map(|site| (site.line, site.text.as_ref(), site.file.is_none()));
            let scalar = kernel.scalar.iter().map(|site| (site.line, site.text.as_ref(), site.file.is_none()));
            for (line, text, own) in vector.chain(scalar) {
                assert_eq!(text.is_some(), own, "{name}:{line}");
                if let Some(text) = text {
                    assert!(lines[line as usize - 1].contains(text.as_str()), "{name}:{line} is not {text:?}");
                }
            }
            assert!(
                kernel.vector.iter().all(|site| site.lanes_after[0] + site.lanes_after[1] == site.lanes_before),
                "{name}"
            );
            assert!(kernel.scalar.iter().all(|site| site.taken[0] + site.taken[1] == site.executions), "{name}");
        }
    }
}
