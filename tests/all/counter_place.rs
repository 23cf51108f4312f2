//! Where counters may be: in LDS only where the end of a workgroup's LDS is the kernel's alone, and no launch needs it.

use crate::hip_compiler::{Workshop, compiler_is_there};
use wavetap::code_object::{CodeObject, Field, KernelDescriptor};
use wavetap::pipeline::{Counters, Options, probe, rewrite};
use wavetap::profile::map::{CounterMode, ObjectMap};
use wavetap::verify::{Rule, check_object};

const HEAD: &str = "#define KERNEL extern \"C\" __attribute__((global))\n#define SHARED __attribute__((shared))\n\
    #define T __builtin_amdgcn_workitem_id_x()\n#define BARRIER __builtin_amdgcn_s_barrier()\n";

/// Static LDS alone, and no constant that may be an address after it.
const FIXED: &str =
    "KERNEL void k(int* out) { SHARED int s[512]; s[T] = out[T]; BARRIER; if (s[T ^ 1] > 3) out[T] = s[T ^ 2]; }";
/// Dynamic LDS alone, as generators of kernels like it.
const DYNAMIC: &str =
    "KERNEL void k(int* out) { extern SHARED int s[]; s[T] = out[T]; BARRIER; if (s[T ^ 1] > 3) out[T] = s[T ^ 2]; }";
/// Both.
const BOTH: &str = "KERNEL void k(int* out) \
    { extern SHARED int d[]; SHARED int s[512]; s[T] = out[T]; d[T] = 7 * s[T]; BARRIER;
    if (s[T ^ 1] > 3) out[T] = d[T ^ 2]; }";
/// No LDS at all.
const NONE: &str = "KERNEL void k(int* out) { if (out[T] > 3) out[T] = 5; }";

fn options(counters: Counters) -> Options {
    Options { probes: vec![probe::BRANCHES], counters, ..Options::default() }
}

/// The map of the only object after counters were put where they were asked for.
fn map(object: &[u8], counters: Counters) -> ObjectMap {
    rewrite(object, &options(counters)).expect("rewritten").maps.remove(0)
}

fn mode(object: &[u8], counters: Counters) -> CounterMode {
    let map = map(object, counters);
    map.kernels.first().unwrap_or_else(|| panic!("{:?}", map.refused)).mode
}

/// Whether `auto` may choose LDS; what it does choose it does not say here. Counters of single waves are never in
/// registers, beside which others would not be tried.
fn may_be_in_lds(object: &[u8]) -> bool {
    let options = Options { single_waves: true, ..options(Counters::Auto) };
    let map = rewrite(object, &options).expect("rewritten").maps.remove(0);
    let kernel = map.kernels.first().unwrap_or_else(|| panic!("{:?}", map.refused));
    let lds = kernel.candidates.iter().find(|candidate| candidate.mode == CounterMode::Lds).expect("it was tried");
    assert!(lds.refused.is_none() || kernel.mode != CounterMode::Lds, "{:?}", kernel.candidates);
    lds.refused.is_none()
}

#[test]
fn launches_keep_the_lds_that_they_may_add() {
    if !compiler_is_there() {
        return;
    }
    for target in ["gfx906", "gfx90a", "gfx1030", "gfx1100"] {
        for version in ["4", "5"] {
            let flag = format!("-mcode-object-version={version}");
            for (source, automatic) in [(FIXED, true), (DYNAMIC, false), (BOTH, false), (NONE, true)] {
                let object = Workshop::new().code_object(&format!("{HEAD}{source}"), target, &[&flag]);
                let place = format!("{target} v{version} {source}");
                assert_eq!(may_be_in_lds(&object), automatic, "{place}");
                assert_eq!(mode(&object, Counters::Lds), CounterMode::Lds, "{place}: what is asked for");
            }
        }
    }
}

#[test]
fn without_lds_of_their_own_kernels_count_in_memory() {
    if !compiler_is_there() {
        return;
    }
    for target in ["gfx90a", "gfx942"] {
        let object = Workshop::new().code_object(&format!("{HEAD}{NONE}"), target, &["-mtgsplit"]);
        assert!(!may_be_in_lds(&object), "{target}");
        let refused = map(&object, Counters::Lds).refused;
        assert_eq!(
            refused.iter().map(|refused| refused.reason.as_str()).collect::<Vec<_>>(),
            ["threadgroup_split"],
            "{target}"
        );
    }
    let workshop = Workshop::new();
    workshop.write(
        "k.cl",
        "kernel void k(global int* out, local int* tile) \
        { int t = __builtin_amdgcn_workitem_id_x(); tile[t] = out[t]; if (tile[t ^ 1] > 3) out[t] = 5; }",
    );
    let flags = [
        "--target=amdgcn-amd-amdhsa",
        "-mcpu=gfx90a",
        "-x",
        "cl",
        "-cl-std=CL2.0",
        "-nogpulib",
        "-O2",
        "k.cl",
        "-o",
        "k.co",
    ];
    workshop.run("clang-19", &flags);
    let object = workshop.read("k.co");
    assert!(!may_be_in_lds(&object));
    let refused = map(&object, Counters::Lds).refused;
    assert_eq!(refused.iter().map(|refused| refused.reason.as_str()).collect::<Vec<_>>(), ["lds_arguments"]);
    assert!(
        refused[0].detail.contains("\"tile\"") || refused[0].detail.contains("at offset 8"),
        "{}",
        refused[0].detail
    );
}

/// The object with another size of LDS in the descriptor of its only kernel.
fn with_lds_in_descriptor(bytes: &[u8], size: u32) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let offset = CodeObject::parse(&bytes).expect("an object").kernels()[0].descriptor_offset;
    let mut descriptor = KernelDescriptor::read(&bytes, offset).expect("a descriptor");
    descriptor.set(Field::GROUP_SEGMENT_FIXED_SIZE, size).expect("it fits");
    bytes[offset as usize..][..descriptor.bytes().len()].copy_from_slice(descriptor.bytes());
    bytes
}

/// Generators of kernels leave the size to the metadata, by which HIP launches; counters are behind what that says.
#[test]
fn a_descriptor_may_leave_lds_to_the_metadata() {
    if !compiler_is_there() {
        return;
    }
    for target in ["gfx90a", "gfx1100", "gfx1201"] {
        let object = Workshop::new().code_object(&format!("{HEAD}{FIXED}"), target, &[]);
        let objects = [0, 2112].map(|said| (said, with_lds_in_descriptor(&object, said)));
        for ((said, object), counters) in objects
            .iter()
            .flat_map(|object| [Counters::Register, Counters::Global, Counters::Lds].map(|counters| (object, counters)))
        {
            let place = format!("{target} {counters:?} {said}");
            let result = rewrite(object, &options(counters)).expect("rewritten");
            assert_eq!(result.maps[0].refused, [], "{place}");
            let rewritten = CodeObject::parse(&result.bytes).expect("an object");
            let kernel = &rewritten.kernels()[0];
            let stated = kernel.descriptor.get(Field::GROUP_SEGMENT_FIXED_SIZE);
            let noted = kernel.metadata.as_ref().expect("metadata").group_segment_fixed_size;
            let expected = |(stated, noted): (u32, u64)| match counters {
                Counters::Lds => u64::from(stated) == noted && stated > 2048.max(*said),
                _ => (stated, noted) == (*said, 2048),
            };
            assert!(expected((stated, noted)), "{place}: {stated} and {noted} bytes");
            for other in [stated + 4, 2048, 1].into_iter().filter(|other| u64::from(*other) != noted) {
                let rules = findings(object, &with_lds_in_descriptor(&result.bytes, other));
                assert!(rules.contains(&Rule::Lds), "{place}: {other} bytes: {rules:?}");
            }
        }
    }
}

/// What the checker says of two objects that were changed alike.
fn findings(original: &[u8], rewritten: &[u8]) -> Vec<Rule> {
    let (original, rewritten) =
        (CodeObject::parse(original).expect("an object"), CodeObject::parse(rewritten).expect("an object"));
    check_object(&original, &rewritten).1.into_iter().map(|finding| finding.rule).collect()
}

/// The site table names the original by its hash, so what was changed is another original: that is said as well.
fn only_of_the_original(rules: &[Rule]) -> bool {
    rules.iter().all(|rule| *rule == Rule::Map)
}

#[test]
fn the_checker_rejects_counters_in_lds_that_is_not_the_kernels() {
    if !compiler_is_there() {
        return;
    }
    let object = Workshop::new().code_object(
        &format!("{HEAD}{}", NONE.replace("out", "named_at_length_here")),
        "gfx90a",
        &["-fno-discard-value-names"],
    );
    for (counters, is_in_lds) in [(Counters::Lds, true), (Counters::Global, false)] {
        let rewritten = rewrite(&object, &options(counters)).expect("rewritten").bytes;
        assert_eq!(findings(&object, &rewritten), [], "{counters:?}");

        let split = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            let offset = CodeObject::parse(&bytes).expect("an object").kernels()[0].descriptor_offset;
            let mut descriptor = KernelDescriptor::read(&bytes, offset).expect("a descriptor");
            descriptor.set(Field::TG_SPLIT, 1).expect("a bit");
            bytes[offset as usize..][..descriptor.bytes().len()].copy_from_slice(descriptor.bytes());
            bytes
        };
        let rules = findings(&split(&object), &split(&rewritten));
        assert_eq!(rules.contains(&Rule::Lds), is_in_lds, "{counters:?} {rules:?}");
        assert!(is_in_lds || only_of_the_original(&rules), "{rules:?}");

        let rules = findings(&with_local_argument(&object), &with_local_argument(&rewritten));
        assert_eq!(rules.contains(&Rule::Lds), is_in_lds, "{counters:?} {rules:?}");
        assert!(is_in_lds || only_of_the_original(&rules), "{rules:?}");
    }
}

/// The object with its argument a pointer to LDS that the launcher places: in each metadata note the kind is longer by
/// so much as the name is shorter.
fn with_local_argument(bytes: &[u8]) -> Vec<u8> {
    const FROM: &str = "global_buffer";
    const TO: &str = "dynamic_shared_pointer";
    let mut bytes = bytes.to_vec();
    let mut at = 0;
    let mut changed = 0;
    while let Some(found) = bytes[at..].windows(FROM.len()).position(|window| window == FROM.as_bytes()) {
        let kind = at + found;
        let end = kind + FROM.len();
        let key = bytes[..kind].windows(6).rposition(|window| window == b"\xa5.name").expect("a name before the kind");
        let length = usize::from(bytes[key + 6] & 0x1f);
        let shorter = length - (TO.len() - FROM.len());
        let mut new = vec![0xa0 | shorter as u8];
        new.extend_from_slice(&bytes[key + 7..key + 7 + shorter]);
        new.extend_from_slice(&bytes[key + 7 + length..kind - 1]);
        new.push(0xa0 | TO.len() as u8);
        new.extend_from_slice(TO.as_bytes());
        assert_eq!(new.len(), end - (key + 6));
        bytes[key + 6..end].copy_from_slice(&new);
        (at, changed) = (end, changed + 1);
    }
    assert!(changed > 0, "a note has the argument");
    bytes
}
