//! Host files and bundles as a compiler writes them.

use crate::hip_compiler::{BARE, SOURCE, Workshop, compiler_is_there};
use crate::random::Random;
use wavetap::code_object::CodeObject;
use wavetap::offload_bundle::{Container, Input, Pointer};

/// The least of a HIP runtime that a program needs to link.
pub const STUB: &str = "int __hipRegisterFatBinary,\
    __hipUnregisterFatBinary,__hipRegisterFunction,__hipRegisterVar,__hipPushCallConfiguration,\
    __hipPopCallConfiguration,hipLaunchKernel;";

fn host(workshop: &Workshop, name: &str, flags: &[&str]) -> Vec<u8> {
    let stub = workshop.write("stub.c", STUB);
    workshop.run("cc", &["-shared", "-o", "libamdhip64.so", stub.to_str().expect("utf-8")]);
    let mut all =
        vec!["--offload-arch=gfx906", "--offload-arch=gfx90a:xnack+", "--no-offload-new-driver", "-L.", "-lamdhip64"];
    all.extend(BARE);
    all.extend(flags);
    workshop.compile(&(SOURCE.to_owned() + "\nint main() { return 0; }\n"), name, &all)
}

#[test]
fn every_kind_of_host_file() {
    if !compiler_is_there() {
        return;
    }
    let workshop = Workshop::new();
    for (name, flags, in_place) in [
        ("pie", &["-fPIE", "-pie"][..], false),
        ("fixed", &["-fno-pie", "-no-pie"], true),
        ("shared", &["-fPIC", "-shared"], false),
        ("relr", &["-fPIE", "-pie", "-fuse-ld=lld", "-Wl,-z,pack-relative-relocs"], true),
        ("packed", &["-fPIE", "-pie", "--offload-compress"], false),
    ] {
        let bytes = host(&workshop, name, flags);
        let input = Input::parse(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(matches!(input.container, Container::Host { .. }));
        let [wrapper] = input.wrappers() else { panic!("{name}: one wrapper") };
        assert_eq!(wrapper.pointer == Pointer::InPlace, in_place, "{name}");
        let [bundle] = &input.bundles[..] else { panic!("{name}: one bundle") };
        assert_eq!(bundle.compressed.is_some(), name == "packed");
        let ids: Vec<_> = bundle.entries.iter().map(|entry| entry.target.as_ref().map(ToString::to_string)).collect();
        assert_eq!(ids, [None, Some("gfx906".to_owned()), Some("gfx90a:xnack+".to_owned())]);
        let objects: Vec<_> = input.code_objects().collect();
        assert_eq!(objects.len(), 2, "{name}");
        for found in objects {
            let object = CodeObject::parse(found.bytes).expect("parses");
            assert_eq!(Some(object.target_id()), found.target.map(ToString::to_string));
            assert_eq!(object.kernels().len(), 2);
        }
    }
}

#[test]
fn the_raw_section_and_clangs_own_unbundler() {
    if !compiler_is_there() {
        return;
    }
    let workshop = Workshop::new();
    let bytes = host(&workshop, "app", &["-fPIE", "-pie"]);
    workshop.run("llvm-objcopy-19", &["-O", "binary", "--only-section=.hip_fatbin", "app", "app.fatbin"]);
    let section = workshop.read("app.fatbin");
    let (whole, raw) = (Input::parse(&bytes).expect("parses"), Input::parse(&section).expect("parses"));
    assert_eq!(raw.container, Container::Bundles);
    assert_eq!(whole.bundles[0].entries, raw.bundles[0].entries);
    let Some((true, _)) = crate::hip_compiler::tool("clang-offload-bundler-19", &["--version"], &workshop.path(""))
    else {
        eprintln!("SKIPPED the comparison with clang-offload-bundler-19: it is not installed");
        return;
    };
    let id = &raw.bundles[0].entries[2].id;
    let targets = format!("--targets={id}");
    workshop.run(
        "clang-offload-bundler-19",
        &["--unbundle", "--type=o", &targets, "--input=app.fatbin", "--output=out.co"],
    );
    assert_eq!(raw.bundles[0].entry_bytes(2), workshop.read("out.co"));
    let rewritten = raw.bundles[0].write_with(|index| (index == 1).then_some(&b"other"[..]));
    workshop.write("new.fatbin", &rewritten);
    workshop.run(
        "clang-offload-bundler-19",
        &["--unbundle", "--type=o", &targets, "--input=new.fatbin", "--output=new.co"],
    );
    assert_eq!(raw.bundles[0].entry_bytes(2), workshop.read("new.co"));
}

#[test]
fn a_program_without_device_code_is_refused() {
    let own = std::fs::read(std::env::current_exe().expect("path")).expect("read");
    let error = Input::parse(&own).expect_err("this test has no device code");
    assert!(error.message().contains("without device code"), "{error}");
}

#[test]
fn truncated_and_mutated_host_files_never_panic() {
    if !compiler_is_there() {
        return;
    }
    let workshop = Workshop::new();
    for flags in [&["-fPIE", "-pie"][..], &["-fPIE", "-pie", "--offload-compress"]] {
        let whole = host(&workshop, "app", flags);
        for len in (0..whole.len()).step_by(64) {
            assert!(Input::parse(&whole[..len]).is_err(), "{len} of {} bytes", whole.len());
        }
        let places = {
            let input = Input::parse(&whole).expect("parses");
            let (bundle, wrapper) = (input.bundles[0].offset as usize, input.wrappers()[0].file_offset as usize);
            [0..0x800, bundle..bundle + 0x100, wrapper..wrapper + 24, whole.len() - 0xa00..whole.len()]
        };
        let mut random = Random::new(2);
        for _ in 0..2000 {
            let mut bytes = whole.clone();
            for _ in 0..1 + random.below(3) {
                let place = places[random.below(places.len())].clone();
                bytes[place.start + random.below(place.len())] = random.next() as u8;
            }
            if let Ok(input) = Input::parse(&bytes) {
                for found in input.code_objects() {
                    let _ = CodeObject::parse(found.bytes);
                }
            }
        }
    }
}
