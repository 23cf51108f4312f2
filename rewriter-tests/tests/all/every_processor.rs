//! One bundle with code for every processor that clang knows, generic ones and those with settings included, plain and
//! compressed: all of it is found and called what clang was asked for, and what cannot be done with it is refused by
//! name.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use rewriter_tests::full;
use wavetap::code_object::CodeObject;
use wavetap::emulator;
use wavetap::isa::Target;
use wavetap::offload_bundle::Input;
use wavetap::pipeline::{self, Inspected, probe};
use wavetap::verify;

/// A kernel that needs no header and no library.
const SOURCE: &str = "extern \"C\" __attribute__((global)) void scale(unsigned *values, unsigned count) {
    unsigned i = __builtin_amdgcn_workitem_id_x();
    if (i < count)
        values[i] = values[i] * 3 + i;
}
";

/// Offset of the flags in an ELF header.
const FLAGS: usize = 48;
/// One of each kind.
const QUICK: [&str; 12] = [
    "gfx803",
    "gfx906:sramecc+:xnack-",
    "gfx90a:sramecc+:xnack+",
    "gfx90a:sramecc-:xnack-",
    "gfx942:sramecc+",
    "gfx1030",
    "gfx1201",
    "gfx9-generic:xnack+",
    "gfx10-1-generic:xnack-",
    "gfx10-3-generic",
    "gfx11-generic",
    "gfx12-generic",
];

/// What the long run takes besides. A setting is named for all code of a processor or for none.
const MORE: [&str; 36] = [
    "gfx801:xnack-",
    "gfx802",
    "gfx805",
    "gfx810",
    "gfx900",
    "gfx902",
    "gfx904",
    "gfx908:xnack+",
    "gfx908:xnack-",
    "gfx909",
    "gfx90c:xnack+",
    "gfx940",
    "gfx941",
    "gfx1010:xnack+",
    "gfx1010:xnack-",
    "gfx1011",
    "gfx1012",
    "gfx1013",
    "gfx1031",
    "gfx1032",
    "gfx1033",
    "gfx1034",
    "gfx1035",
    "gfx1036",
    "gfx1100",
    "gfx1101",
    "gfx1102",
    "gfx1103",
    "gfx1150",
    "gfx1151",
    "gfx1152",
    "gfx1200",
    "gfx9-generic:xnack-",
    "gfx10-1-generic:xnack+",
    "gfx801:xnack+",
    "gfx90c:xnack-",
];

fn compile(folder: &Path, targets: &[&str], compressed: bool) -> Vec<u8> {
    let (source, out) = (folder.join("scale.hip"), folder.join(if compressed { "compressed" } else { "plain" }));
    std::fs::write(&source, SOURCE).expect("the folder can be written");
    let mut clang = Command::new("clang++-19");
    clang.args(["-w", "-x", "hip", "-O2", "-nogpuinc", "-nogpulib", "--offload-device-only", "--gpu-bundle-output"]);
    clang.args(targets.iter().map(|target| format!("--offload-arch={target}")));
    // Generic processors came with version 6.
    clang.args(["-mcode-object-version=6", if compressed { "--offload-compress" } else { "--no-offload-compress" }]);
    let output = clang.arg(&source).arg("-o").arg(&out).output().expect("clang++-19 is there");
    assert!(output.status.success(), "clang: {}", String::from_utf8_lossy(&output.stderr));
    std::fs::read(out).expect("clang wrote it")
}

fn check(data: &[u8], targets: &[&str], compressed: bool) {
    let input = Input::parse(data).expect("a bundle");
    assert_eq!(input.bundles.len(), 1);
    assert_eq!(input.bundles[0].compressed.is_some(), compressed);
    let objects: Vec<(String, CodeObject<'_>)> = input
        .code_objects()
        .map(|found| {
            let id = found.target.expect("bundled code has an id").to_string();
            let object = CodeObject::parse(found.bytes).unwrap_or_else(|error| panic!("{id}: {error}"));
            (id, object)
        })
        .collect();
    let asked: BTreeSet<&str> = targets.iter().copied().collect();
    assert_eq!(objects.iter().map(|(id, _)| id.as_str()).collect::<BTreeSet<_>>(), asked);
    for (id, object) in &objects {
        assert_eq!(object.target_id(), *id);
        assert_eq!(object.version(), 6, "{id}");
        assert_eq!(object.generic_version().is_some(), id.contains("generic"), "{id}");
        let processor = id.split(':').next().unwrap_or_default();
        assert_eq!(object.processor(), Some(processor));
        assert_eq!(object.target(), Target::by_name(processor).filter(|target| target.has_instructions()), "{id}");
        let [kernel] = object.kernels() else { panic!("{id}: {} kernels", object.kernels().len()) };
        assert_eq!(kernel.name, "scale", "{id}");
        assert!(kernel.sized && kernel.metadata.is_some(), "{id}");
    }
    let inspection = pipeline::inspect(data, &Inspected::default(), None).expect("inspected");
    let listed: BTreeSet<&str> = inspection.objects.iter().map(|object| object.target.as_str()).collect();
    assert_eq!(listed, asked);
    assert!(inspection.objects.iter().all(|object| object.kernels.len() == 1));
}

#[test]
fn code_for_every_processor_is_found_and_called_what_it_is() {
    let mut targets = QUICK.to_vec();
    if full() {
        targets.extend(MORE);
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    for compressed in [false, true] {
        check(&compile(folder.path(), &targets, compressed), &targets, compressed);
    }
}

#[test]
fn what_cannot_be_rewritten_or_emulated_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = compile(folder.path(), &QUICK, false);
    let rewritten =
        pipeline::rewrite(&data, &pipeline::Options { probes: vec![probe::BRANCHES], ..Default::default() })
            .expect("rewritten");
    let (original, new) = (Input::parse(&data).expect("a bundle"), Input::parse(&rewritten.bytes).expect("a bundle"));
    assert_eq!(rewritten.maps.len(), QUICK.len());
    for ((before, after), map) in original.code_objects().zip(new.code_objects()).zip(&rewritten.maps) {
        let target = CodeObject::parse(before.bytes).expect("an object").target().expect("a known target");
        assert!(target.rewritable() && target.emulated(), "{}", map.target);
        assert_eq!((map.kernels.len(), map.refused.len()), (1, 0), "{}: {:?}", map.target, map.refused);
        assert!(before.bytes != after.bytes, "{}", map.target);
    }
    // Code that says that it is for a processor of which there are no instruction tables.
    for (mach, name) in [(0x20, "gfx600"), (0x22, "gfx700")] {
        let like = original.code_objects().next().expect("a code object");
        let mut bytes = like.bytes.to_vec();
        let flags = u32::from_le_bytes(bytes[FLAGS..FLAGS + 4].try_into().expect("four bytes")) & !0xff | mach;
        bytes[FLAGS..FLAGS + 4].copy_from_slice(&flags.to_le_bytes());
        let options = pipeline::Options { probes: vec![probe::BRANCHES], ..Default::default() };
        let rewritten = pipeline::rewrite(&bytes, &options).expect("refused, and no error");
        assert!(rewritten.bytes == bytes, "{name}: refused and changed");
        let [map] = &rewritten.maps[..] else { panic!("{} maps", rewritten.maps.len()) };
        let [refusal] = &map.refused[..] else { panic!("{}: {:?}", map.target, map.refused) };
        assert_eq!((refusal.name.as_str(), refusal.reason.as_str()), ("scale", "unsupported_target"));
        assert!(refusal.detail.contains(name) && map.kernels.is_empty(), "{}: {}", map.target, refusal.detail);
        // Nor can the checker be made to approve of such code, or the emulator to run it.
        let code = CodeObject::parse(&bytes).expect("an object");
        let (_, findings) = verify::check_object(&code, &code);
        assert!(!findings.is_empty(), "{}", map.target);
        let known = Target::by_name("gfx906").expect("a target");
        assert!(emulator::Device::new(known, emulator::Options::default()).load(&bytes).is_err(), "{name} is run");
    }
}
