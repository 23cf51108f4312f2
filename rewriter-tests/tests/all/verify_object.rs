//! The checker of rewritten objects and files: it accepts what the rewriter makes of every sample, and names what is
//! wrong with a damaged one.

use std::path::PathBuf;

use crate::planned::{branches, request};
use md5::{Digest, Md5};
use rewriter_tests::place::sample_names;
use wavetap::cfg::Program;
use wavetap::code_object::{CONTROL_SYMBOL, CodeObject, Field, KernelDescriptor, demangle, metadata};
use wavetap::elf::Symbol;
use wavetap::emit::code_object::{Changes, CodeSymbol, Plan};
use wavetap::emit::{Packing, Replacement, merge};
use wavetap::instrument::{Analysis, CounterPlacement, Instrumented};
use wavetap::kernel::Image;
use wavetap::layout::{Code, place};
use wavetap::offload_bundle::Input;
use wavetap::profile::control::{self, Control};
use wavetap::profile::map::{AddressPair, CounterMode, KernelMap, ObjectMap};
use wavetap::verify::{Rule, check_files, check_object};

fn sample(name: &str) -> Vec<u8> {
    std::fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../hip-samples/bin").join(name)).expect("a sample")
}

/// What a test may change while an object is rewritten.
struct Damage<'f> {
    map: &'f dyn Fn(&mut ObjectMap),
    descriptor: &'f dyn Fn(&mut KernelDescriptor),
    metadata: &'f dyn Fn(&mut Instrumented),
    control: &'f dyn Fn(&mut Control),
}

const NONE: Damage<'static> = Damage { map: &|_| {}, descriptor: &|_| {}, metadata: &|_| {}, control: &|_| {} };

/// Instruments all kernels of an object.
fn rewrite(object: &CodeObject<'_>, mode: CounterMode, damage: &Damage<'_>) -> Vec<u8> {
    let target = object.target().expect("known");
    let image = Image::of(object).expect("an image");
    let program = Program::of(target, &image);
    let analysis = Analysis::new(&program, &image);
    let emit = Plan::new(object, control::SIZE * object.kernels().len() as u64).expect("planned");
    let mut value = object.metadata().expect("a note").value().expect("values");
    let mut map = ObjectMap {
        target: object.target_id(),
        original: Md5::digest(object.data()).iter().map(|byte| format!("{byte:02x}")).collect(),
        stride: 0,
        kernels: Vec::new(),
        refused: Vec::new(),
    };
    let mut plans = Vec::new();
    for (index, kernel) in object.kernels().iter().enumerate() {
        let index = index as u32;
        let control = emit.control_address() + control::offset_of(index);
        let request = request(mode, CounterPlacement::All, index, control);
        let plan = branches(&analysis, kernel, &request).expect("instrumentable");
        let code =
            Code::plan(&program, program.at(kernel.entry).expect("decoded"), &image, &plan.edits).expect("placeable");
        map.stride = map.stride.max(plan.record_bytes);
        plans.push((kernel, plan, code));
    }
    let codes: Vec<&Code> = plans.iter().map(|(_, _, code)| code).collect();
    let placed = place(target, &codes, emit.code_address()).expect("placed");
    let (mut descriptors, mut symbols) = (Vec::new(), Vec::new());
    for ((kernel, plan, code), entry) in plans.iter().zip(&placed.entries) {
        let mut plan = plan.clone();
        (damage.metadata)(&mut plan);
        let mut descriptor = plan.descriptor;
        descriptor.set_entry_byte_offset(entry.wrapping_sub(kernel.descriptor_address) as i64);
        (damage.descriptor)(&mut descriptor);
        descriptors.push((kernel.descriptor_address, descriptor));
        symbols.push(CodeSymbol { name: format!("{}.wavetap", kernel.name), address: *entry, size: code.size() });
        for (key, number) in [
            (".sgpr_count", plan.metadata.sgpr_count),
            (".vgpr_count", plan.metadata.vgpr_count),
            (".group_segment_fixed_size", plan.metadata.group_segment_fixed_size),
        ] {
            metadata::set_kernel_number(&mut value, &kernel.symbol(), key, number).expect("the kernel");
        }
        map.kernels.push(KernelMap {
            name: kernel.name.clone(),
            demangled: demangle(&kernel.name).into_owned(),
            mode,
            candidates: Vec::new(),
            sites: plan.sites.clone(),
            uncounted_callees: plan.uncounted_callees.clone(),
            vector_registers: plan.vector_registers,
            before: plan.before,
            after: plan.after,
            declared: None,
            placement: None,
            placement_fallback: None,
            slots: plan.slots,
            records_accesses: false,
            addresses: code
                .addresses(*entry)
                .into_iter()
                .map(|(original, rewritten)| AddressPair { original, rewritten })
                .collect(),
        });
    }
    (damage.map)(&mut map);
    let mut block = Control { stride: map.stride, ..Control::default() };
    (damage.control)(&mut block);
    let changes = Changes {
        code: &placed.bytes,
        symbols: &symbols,
        descriptors: &descriptors,
        metadata: &metadata::encode(&value).expect("encodes"),
        control: &block.to_bytes().repeat(object.kernels().len()),
        map: &map.pack().expect("packs"),
    };
    emit.finish(&changes).expect("written")
}

/// A whole file with all its code objects rewritten.
fn rewrite_file(file: &[u8], mode: CounterMode) -> Vec<u8> {
    let input = Input::parse(file).expect("a sample");
    let replacements: Vec<Replacement> = input
        .code_objects()
        .map(|found| Replacement {
            place: found.place,
            bytes: rewrite(&CodeObject::parse(found.bytes).expect("an object"), mode, &NONE).into(),
        })
        .collect();
    merge(&input, &replacements, Packing::AsFound).expect("merged")
}

#[test]
fn rewritten_samples_have_no_findings() {
    let mut bad = 0;
    for name in sample_names() {
        let file = sample(&name);
        for mode in [CounterMode::Global, CounterMode::Lds] {
            let rewritten = rewrite_file(&file, mode);
            let report = check_files(&file, &rewritten).expect("readable");
            assert_eq!(report.objects, 3, "{name}");
            assert!(report.kernels >= 3, "{name}");
            for (place, finding) in &report.findings {
                println!("{name} {mode:?} {place}: {finding}");
            }
            bad += report.findings.len();
        }
    }
    assert_eq!(bad, 0);
}

/// What the checker finds in the first object of a sample, rewritten with damage and then damaged again as bytes.
fn findings(
    name: &str,
    mode: CounterMode,
    damage: &Damage<'_>,
    bytes: impl Fn(&CodeObject<'_>, &mut Vec<u8>),
) -> Vec<Rule> {
    let file = sample(name);
    let input = Input::parse(&file).expect("a sample");
    let original = CodeObject::parse(input.code_objects().next().expect("one").bytes).expect("an object");
    let rewritten = rewrite(&original, mode, damage);
    let mut damaged = rewritten.clone();
    bytes(&CodeObject::parse(&rewritten).expect("an object"), &mut damaged);
    let damaged = CodeObject::parse(&damaged).expect("still an object");
    let (kernels, findings) = check_object(&original, &damaged);
    assert!(kernels > 0);
    findings.into_iter().map(|finding| finding.rule).collect()
}

#[track_caller]
fn assert_finds(
    rule: Rule,
    name: &str,
    mode: CounterMode,
    damage: &Damage<'_>,
    bytes: impl Fn(&CodeObject<'_>, &mut Vec<u8>),
) {
    let found = findings(name, mode, damage, bytes);
    assert!(found.contains(&rule), "{rule:?} expected, {found:?} found");
}

/// Flips a bit of the file at a virtual address.
fn flip(object: &CodeObject<'_>, bytes: &mut [u8], address: u64) {
    bytes[object.file_offset(address, 1).expect("in the file") as usize] ^= 1;
}

use CounterMode::{Global, Lds};

#[test]
fn damaged_bytes_are_found() {
    // Original code, an original descriptor's reserved bytes, constants.
    assert_finds(Rule::OriginalByte, "calls", Global, &NONE, |object, bytes| {
        flip(object, bytes, object.functions()[0].code.start)
    });
    assert_finds(Rule::OriginalByte, "constants", Lds, &NONE, |object, bytes| {
        let is_data =
            |symbol: &&Symbol<'_>| symbol.is_object() && !symbol.name.ends_with(".kd") && symbol.name != CONTROL_SYMBOL;
        let constant =
            object.symbols().iter().filter(is_data).find(|symbol| object.file_offset(symbol.address, 1).is_some());
        flip(object, bytes, constant.expect("initialised data").address);
    });
    assert_finds(Rule::Descriptor, "vectoradd", Global, &NONE, |object, bytes| {
        flip(object, bytes, object.kernels()[0].descriptor_address + 8)
    });
    // New code: whatever bit flips in an instruction that is original, the skeleton or what it leads to is wrong.
    assert_finds(Rule::Skeleton, "vectoradd", Global, &NONE, |object, bytes| {
        let map = ObjectMap::unpack(
            object.elf().contents(object.elf().section(control::MAP_SECTION).expect("map")).expect("bytes"),
        );
        flip(object, bytes, map.expect("a map").kernels[0].addresses[0].rewritten);
    });
}

#[test]
fn descriptor_and_metadata_that_disagree_with_the_code_are_found() {
    let set =
        |field: Field, value: u32| move |descriptor: &mut KernelDescriptor| descriptor.set(field, value).expect("fits");
    let damage = |descriptor: &dyn Fn(&mut KernelDescriptor), rule: Rule| {
        assert_finds(rule, "nested_loops", Global, &Damage { descriptor, ..NONE }, |_, _| {});
    };
    damage(&set(Field::GRANULATED_WORKITEM_VGPR_COUNT, 0), Rule::Allocation);
    damage(&set(Field::GRANULATED_WAVEFRONT_SGPR_COUNT, 0), Rule::Allocation);
    damage(&set(Field::ENABLE_IEEE_MODE, 0), Rule::Descriptor);
    damage(&set(Field::KERNARG_SIZE, 1), Rule::Descriptor);
    damage(&set(Field::GROUP_SEGMENT_FIXED_SIZE, 12), Rule::Lds);
    // Without the dispatch packet's address everything after it is two registers lower than the prologue thinks.
    let descriptor = set(Field::ENABLE_SGPR_DISPATCH_PTR, 0);
    assert_finds(Rule::Clobbered, "nested_loops", Lds, &Damage { descriptor: &descriptor, ..NONE }, |_, _| {});
    let entry =
        |descriptor: &mut KernelDescriptor| descriptor.set_entry_byte_offset(descriptor.entry_byte_offset() + 256);
    let found = findings("nested_loops", Global, &Damage { descriptor: &entry, ..NONE }, |_, _| {});
    assert!(!found.is_empty());
    let fewer = |plan: &mut Instrumented| plan.metadata.vgpr_count = 1;
    assert_finds(Rule::Metadata, "nested_loops", Global, &Damage { metadata: &fewer, ..NONE }, |_, _| {});
}

#[test]
fn lds_that_overlaps_the_kernels_own_is_found() {
    let without_room = |plan: &mut Instrumented| {
        plan.metadata.group_segment_fixed_size -= 8;
        plan.descriptor
            .set(Field::GROUP_SEGMENT_FIXED_SIZE, plan.metadata.group_segment_fixed_size as u32)
            .expect("fits");
    };
    assert_finds(Rule::Lds, "lds_reduce", Lds, &Damage { metadata: &without_room, ..NONE }, |_, _| {});
    let note_only = |plan: &mut Instrumented| plan.metadata.group_segment_fixed_size += 512;
    assert_finds(Rule::Lds, "lds_reduce", Lds, &Damage { metadata: &note_only, ..NONE }, |_, _| {});
}

#[test]
fn a_site_table_that_lies_is_found() {
    let table = |map: &dyn Fn(&mut ObjectMap), rule| {
        assert_finds(rule, "divergence", Global, &Damage { map, ..NONE }, |_, _| {})
    };
    table(&|map| map.original.replace_range(0..1, "x"), Rule::Map);
    table(&|map| map.kernels[0].sites[0].address += 2, Rule::Map);
    table(&|map| map.kernels[0].sites[1].offset = map.kernels[0].sites[0].offset, Rule::Map);
    table(&|map| map.kernels[0].addresses[3].rewritten += 4, Rule::Skeleton);
    table(&|map| map.kernels[0].addresses.truncate(5), Rule::Skeleton);
    table(&|map| map.kernels[0].name.push('x'), Rule::Map);
}

#[test]
fn a_control_block_that_is_not_in_its_initial_state_is_found() {
    let control = |block: &mut Control| block.buffer = 0x1000;
    assert_finds(Rule::Symbols, "divergence", Global, &Damage { control: &control, ..NONE }, |_, _| {});
}

#[test]
fn damaged_host_files_are_found() {
    let file = sample("two_kernels");
    let rewritten = rewrite_file(&file, Global);
    let elf = wavetap::elf::Elf::parse(&file).expect("an ELF");
    for name in [".text", ".rodata", ".hip_fatbin"] {
        let section = elf.section(name).expect("there");
        let mut damaged = rewritten.clone();
        damaged[(section.offset + section.size / 2) as usize] ^= 1;
        let found = match check_files(&file, &damaged) {
            Ok(report) => report.findings.iter().any(|(_, finding)| finding.rule == Rule::HostFile),
            Err(_) => false,
        };
        assert!(found, "{name}");
    }
    assert_eq!(check_files(&file, &file).expect("readable").findings, []);
    // The other way round nothing fits.
    assert!(check_files(&rewritten, &file).map_or(true, |report| !report.findings.is_empty()));
}

/// Code of third parties; `rewriter-tests/fetch-corpora.sh` fetches it for the long tests.
#[test]
fn a_rewritten_library_has_no_findings() {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| manifest.join("../target"), PathBuf::from);
    let path = target.join("corpora/librocrand.so");
    if std::env::var_os("WAVETAP_FULL_TESTS").is_none() {
        eprintln!("SKIPPED: a long test");
        return;
    }
    let file = std::fs::read(&path).expect("the long tests fetch it first");
    let input = Input::parse(&file).expect("parses");
    let mut kernels = 0;
    for found in input.code_objects() {
        let object = CodeObject::parse(found.bytes).expect("parses");
        if object.target().is_none() {
            continue;
        }
        let start = std::time::Instant::now();
        let rewritten = rewrite(&object, Global, &NONE);
        let written = start.elapsed();
        let (count, findings) = check_object(&object, &CodeObject::parse(&rewritten).expect("parses"));
        println!(
            "{}: {count} kernels, rewritten in {written:?}, checked in {:?}",
            object.target_id(),
            start.elapsed() - written
        );
        for finding in findings.iter().take(20) {
            println!("    {finding}");
        }
        assert_eq!(findings, []);
        kernels += count;
    }
    assert!(kernels > 200, "{kernels}");
}
