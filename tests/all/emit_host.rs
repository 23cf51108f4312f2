//! Rewritten host files: they must start, and their runtime must be handed the new bundle.

use crate::hip_compiler::{BARE, SOURCE, Workshop, compiler_is_there, tool};
use crate::random::Random;
use wavetap::elf::Elf;
use wavetap::elf::constants::{PF_R, PT_GNU_PROPERTY, PT_INTERP, PT_LOAD, PT_NOTE, PT_PHDR};
use wavetap::emit::{Packing, Replacement, merge};

use wavetap::offload_bundle::{Container, EntryPlace, Input, TargetId};

/// A HIP runtime that does nothing but write every bundle it is handed to a file, `0.bundle`, `1.bundle`, …; a
/// compressed one as it is.
const RUNTIME: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <string.h>
struct wrapper { uint32_t magic, version; const char* bundle; void* unused; };
static int registered;
void** __hipRegisterFatBinary(const struct wrapper* wrapper) {
    static void* handle;
    const char* at = wrapper->bundle;
    uint64_t end = 0;
    if (wrapper->magic != 0x48495046) return &handle;
    if (memcmp(at, "CCOB", 4) == 0) {
        uint32_t size;
        memcpy(&size, at + 8, 4);
        end = size;
    } else if (memcmp(at, "__CLANG_OFFLOAD_BUNDLE__", 24) == 0) {
        uint64_t count, place[3], entry = 32;
        memcpy(&count, at + 24, 8);
        for (uint64_t i = 0; i < count; i++) {
            memcpy(place, at + entry, 24);
            if (place[1] && place[0] + place[1] > end) end = place[0] + place[1];
            entry += 24 + place[2];
        }
    }
    char name[32];
    sprintf(name, "%d.bundle", registered++);
    FILE* file = fopen(name, "wb");
    fwrite(at, 1, end, file);
    fclose(file);
    return &handle;
}
void __hipUnregisterFatBinary(void** handle) {}
void __hipRegisterFunction(void) {}
void __hipRegisterVar(void) {}
int __hipPushCallConfiguration(void) { return 0; }
int __hipPopCallConfiguration(void) { return 0; }
int hipLaunchKernel(void) { return 0; }
"#;

/// A program with data, a large `.bss`, a thread-local variable and a thread: what a wrong program header breaks.
/// Prints its result.
const MAIN: &str = r#"
extern "C" int printf(const char*, ...);
extern "C" void* malloc(__SIZE_TYPE__);
static char zeros[3000000];
static int* volatile pointer = (int*)zeros;
thread_local int local = 41;
int main() {
    long sum = 0;
    for (int i = 0; i < 3000000; i += 997) sum += zeros[i];
    char* heap = (char*)malloc(100000);
    heap[99999] = 1;
    printf("sum %ld local %d heap %d pointer %d\n", sum, local + 1, heap[99999], *pointer);
    return sum == 0 ? 0 : 1;
}
"#;

const EXPECTED: &str = "sum 0 local 42 heap 1 pointer 0\n";

fn workshop() -> Workshop {
    let workshop = Workshop::new();
    workshop.write("runtime.c", RUNTIME);
    workshop.run("cc", &["-shared", "-fPIC", "-w", "-o", "libamdhip64.so", "runtime.c"]);
    workshop
}

const COMMON: [&str; 5] = [
    "--offload-arch=gfx906",
    "--offload-arch=gfx90a",
    "--no-offload-new-driver",
    "-L.",
    "-Wl,--no-as-needed,-lamdhip64,-rpath,$ORIGIN",
];

fn host(workshop: &Workshop, name: &str, flags: &[&str]) -> Vec<u8> {
    let mut all = COMMON.to_vec();
    all.extend(BARE);
    all.extend(flags);
    workshop.compile(&(SOURCE.to_owned() + MAIN), name, &all)
}

/// Replaces the gfx90a entry of every bundle by recognisable bytes that begin like an ELF file.
fn rewrite(data: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let input = Input::parse(data).expect("parses");
    let gfx90a = TargetId::parse("gfx90a");
    let mut replacements = Vec::new();
    for found in input.code_objects().filter(|found| found.target == gfx90a.as_ref()) {
        let mut bytes = found.bytes.to_vec();
        bytes.extend(format!("new contents of {:?}", found.place).repeat(1000).into_bytes());
        replacements.push(Replacement { place: found.place, bytes: bytes.into() });
    }
    let expected =
        replacements.iter().map(|replacement| replacement.bytes.bytes().expect("kept").into_owned()).collect();
    (merge(&input, &replacements, Packing::AsFound).expect("merged"), expected)
}

fn install(workshop: &Workshop, name: &str, bytes: &[u8]) {
    use std::os::unix::fs::PermissionsExt;
    let path = workshop.write(name, bytes);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("executable");
}

/// Runs the program and gives back what bundles its runtime was handed.
fn run(workshop: &Workshop, name: &str) -> Vec<Vec<u8>> {
    for number in 0..4 {
        let _ = std::fs::remove_file(workshop.path(&format!("{number}.bundle")));
    }
    let program = workshop.path(name);
    assert_eq!(workshop.run(program, &[]), EXPECTED, "{name}");
    (0..4).map_while(|number| std::fs::read(workshop.path(&format!("{number}.bundle"))).ok()).collect()
}

/// The runtime was handed bundles whose gfx90a entries are the new ones and whose other entries are the old ones.
fn check_bundles(handed: &[Vec<u8>], original: &[u8], expected: &[Vec<u8>]) {
    assert_eq!(handed.len(), expected.len());
    let old = Input::parse(original).expect("parses");
    let mut seen: Vec<&Vec<u8>> = Vec::new();
    for bundle in handed {
        let bundle = Input::parse(bundle).expect("a bundle");
        let [bundle] = &bundle.bundles[..] else { panic!("one bundle") };
        assert!(bundle.entries.iter().all(|entry| entry.size == 0 || entry.offset % 4096 == 0));
        let entry = expected.iter().find(|bytes| bytes[..] == *bundle.entry_bytes(2)).expect("the new gfx90a entry");
        assert!(!seen.contains(&entry));
        seen.push(entry);
        assert!(old.bundles.iter().any(|old| old.entry_bytes(1) == bundle.entry_bytes(1)), "gfx906 as it was");
    }
}

/// Every loaded byte is where it was, but for headers, relocation addends and wrappers.
fn check_image(original: &[u8], rewritten: &[u8]) {
    let (old, new) = (Elf::parse(original).expect("parses"), Elf::parse(rewritten).expect("parses"));
    let input = Input::parse(original).expect("parses");
    let moved_table = old.header.segments_offset..old.header.segments_offset + new.segments.len() as u64 * 56;
    for load in old.loads() {
        let same = new.loads().find(|other| other.address == load.address).expect("still there");
        assert_eq!(same, load);
        for offset in load.offset..load.offset + load.file_size {
            let wrapper = input.wrappers().iter().any(|wrapper| {
                let addend = match wrapper.pointer {
                    wavetap::offload_bundle::Pointer::Addend { file_offset, .. } => file_offset,
                    wavetap::offload_bundle::Pointer::InPlace => wrapper.file_offset + 8,
                };
                (addend..addend + 8).contains(&offset)
                    || (wrapper.file_offset + 8..wrapper.file_offset + 16).contains(&offset)
            });
            if !(wrapper || offset < 64 || moved_table.contains(&offset)) {
                assert_eq!(original[offset as usize], rewritten[offset as usize], "byte at {offset:#x}");
            }
        }
    }
    assert!(new.loads().map(|load| load.address).is_sorted(), "loaders demand ascending segments");
    let added: Vec<_> = new.loads().filter(|load| !old.loads().any(|other| other == *load)).collect();
    let [added] = &added[..] else { panic!("one new segment") };
    assert_eq!(
        (added.flags, added.offset % 4096, added.address % 4096, added.file_size),
        (PF_R, 0, 0, added.memory_size)
    );
    let header = new.segments.iter().find(|segment| segment.kind == PT_PHDR);
    if let Some(header) = header {
        assert_eq!(new.file_offset(header.address, header.file_size), Some(new.header.segments_offset));
    }
    let count = |elf: &Elf<'_>, kind| elf.segments.iter().filter(|segment| segment.kind == kind).count();
    assert_eq!(count(&new, PT_LOAD), count(&old, PT_LOAD) + 1);
    assert!(goblin::elf::Elf::parse(rewritten).is_ok());
}

/// How each kind of file gets its program header: the difference in the number of headers and of `PT_NOTE`s.
#[test]
fn every_kind_of_executable_runs_with_its_new_bundle() {
    if !compiler_is_there() {
        return;
    }
    let workshop = workshop();
    // (name, flags, new headers, notes that lost theirs)
    for (name, flags, more, fewer_notes) in [
        ("pie", &["-fPIE", "-pie"][..], 0, 1),
        ("fixed", &["-fno-pie", "-no-pie"], 0, 1),
        ("packed", &["-fPIE", "-pie", "--offload-compress"], 0, 1),
        ("lld", &["-fPIE", "-pie", "-fuse-ld=lld", "-Wl,--build-id"], 1, 0),
        ("relr", &["-fPIE", "-pie", "-fuse-ld=lld", "-Wl,-z,pack-relative-relocs"], 1, 0),
        ("lld_fixed", &["-fno-pie", "-no-pie", "-fuse-ld=lld"], 1, 0),
        ("no_notes", &["-fPIE", "-pie", "-fuse-ld=lld", "-Wl,--build-id=none"], 1, 0),
    ] {
        let original = host(&workshop, name, flags);
        assert_eq!(run(&workshop, name).len(), 1, "{name}: the original runs");
        let (rewritten, expected) = rewrite(&original);
        check_image(&original, &rewritten);
        let (old, new) = (Elf::parse(&original).expect("parses"), Elf::parse(&rewritten).expect("parses"));
        let notes = |elf: &Elf<'_>| elf.segments.iter().filter(|segment| segment.kind == PT_NOTE).count();
        assert_eq!((new.segments.len() - old.segments.len(), notes(&old) - notes(&new)), (more, fewer_notes), "{name}");
        install(&workshop, "new", &rewritten);
        check_bundles(&run(&workshop, "new"), &original, &expected);
        let text = workshop.run("llvm-readelf-19", &["--all", "new"]);
        assert!(!text.contains("warning"), "{name}: {text}");
        let (success, text) = tool("readelf", &["-a", "-W", "new"], &workshop.path("")).expect("binutils");
        assert!(success && !text.contains("Warning") && !text.contains("Error"), "{name}: {text}");
        let interpreter = new.segments.iter().find(|segment| segment.kind == PT_INTERP).expect("executables have one");
        assert!(new.bytes_at(interpreter.address, interpreter.file_size).expect("mapped").starts_with(b"/lib"));
        survives_other_tools(&workshop, name, &original, &expected);
        let again = Input::parse(&rewritten).expect("parses");
        assert!(
            merge(
                &again,
                &[Replacement { place: again.code_objects().next().expect("one").place, bytes: vec![].into() }],
                Packing::AsFound
            )
            .is_err()
        );
    }
}

/// `new` still runs after other tools laid it out anew.
fn survives_other_tools(workshop: &Workshop, name: &str, original: &[u8], expected: &[Vec<u8>]) {
    for (program, arguments) in [
        ("strip", &["-o", "after", "new"][..]),
        ("objcopy", &["new", "after"]),
        ("llvm-strip-19", &["-o", "after", "new"]),
        ("llvm-objcopy-19", &["new", "after"]),
        ("patchelf", &["--set-rpath", "$ORIGIN:$ORIGIN/a/much/longer/path/than/before", "--output", "after", "new"]),
    ] {
        let of_original: Vec<&str> =
            arguments.iter().map(|argument| if *argument == "new" { name } else { argument }).collect();
        if tool(program, &of_original, &workshop.path("")).is_none() {
            eprintln!("SKIPPED {program}: it is not installed");
            continue;
        }
        // What becomes of the original says whether the tool can do this at all: patchelf breaks some executables.
        let status = std::process::Command::new(workshop.path("after"))
            .current_dir(workshop.path(""))
            .env_remove("LD_LIBRARY_PATH")
            .output();
        if !status.is_ok_and(|output| output.status.success()) {
            eprintln!("SKIPPED {program}: what it makes of {name} as it was does not run");
            continue;
        }
        let (success, text) = tool(program, arguments, &workshop.path("")).expect("installed");
        assert!(success, "{name}, {program}: {text}");
        // docs/guide/profile.md says so: what patchelf 0.14 makes of this one has a table of segments where the program
        // does not look for it.
        if (name, program) == ("no_notes", "patchelf") {
            continue;
        }
        check_bundles(&run(workshop, "after"), original, expected);
    }
}

/// Where no note can give up its header and something else lies after the table, a new table goes into the new
/// segment.
#[test]
fn executables_without_notes_get_a_new_table() {
    if !compiler_is_there() {
        return;
    }
    let workshop = workshop();
    for (name, flags) in [
        ("pie", &["-fPIE", "-pie"][..]),
        ("fixed", &["-fno-pie", "-no-pie"]),
        ("lld", &["-fPIE", "-pie", "-fuse-ld=lld"]),
    ] {
        let mut original = host(&workshop, name, flags);
        let elf = Elf::parse(&original).expect("parses");
        let table = elf.header.segments_offset as usize;
        let notes: Vec<usize> = (0..elf.segments.len())
            .filter(|&index| [PT_NOTE, PT_GNU_PROPERTY].contains(&elf.segments[index].kind))
            .collect();
        // PT_NULL: the notes are still there, only nobody is told.
        notes.iter().for_each(|index| original[table + index * 56..][..4].fill(0));
        install(&workshop, name, &original);
        assert_eq!(run(&workshop, name).len(), 1, "{name}: the original runs");
        let (rewritten, expected) = rewrite(&original);
        check_image(&original, &rewritten);
        let new = Elf::parse(&rewritten).expect("parses");
        let first = new.loads().next().expect("one");
        let header = new.segments.iter().find(|segment| segment.kind == PT_PHDR).expect("executables have one");
        assert!(header.offset > original.len() as u64, "{name}: a new table");
        assert_eq!(
            header.address - header.offset,
            first.address - first.offset,
            "{name}: where old kernels look for it"
        );
        install(&workshop, "new", &rewritten);
        check_bundles(&run(&workshop, "new"), &original, &expected);
    }
}

#[test]
fn a_shared_library_is_loaded_with_its_new_bundle() {
    if !compiler_is_there() {
        return;
    }
    let workshop = workshop();
    workshop.write(
        "main.c",
        format!(
            "extern int printf(const char*, ...);\nextern int answer(void);\nint main() {{ if \
        (answer() != 7) return 1; printf({EXPECTED:?}); return 0; }}"
        ),
    );
    for (name, flags) in [
        ("libdevice.so", &[][..]),
        ("libdevice.so", &["-fuse-ld=lld", "-Wl,--build-id"]),
        ("libdevice.so", &["-fuse-ld=lld", "-Wl,--build-id=none"]),
        ("libdevice.so", &["-fuse-ld=lld", "-Wl,--build-id=none", "-Wl,-z,pack-relative-relocs"]),
    ] {
        let mut all = COMMON.to_vec();
        all.extend(BARE);
        all.extend(["-fPIC", "-shared"]);
        all.extend(flags);
        let original = workshop.compile(&(SOURCE.to_owned() + "extern \"C\" int answer() { return 7; }"), name, &all);
        workshop.run("cc", &["-o", "main", "main.c", "-L.", "-ldevice", "-lamdhip64", "-Wl,-rpath,$ORIGIN"]);
        assert_eq!(run(&workshop, "main").len(), 1, "{flags:?}: the original runs");
        let (rewritten, expected) = rewrite(&original);
        check_image(&original, &rewritten);
        install(&workshop, name, &rewritten);
        check_bundles(&run(&workshop, "main"), &original, &expected);
    }
}

#[test]
fn several_translation_units_have_several_wrappers() {
    if !compiler_is_there() {
        return;
    }
    let workshop = workshop();
    for packed in [&[][..], &["--offload-compress"]] {
        let compile = |source: &str, name: &str| {
            let mut all =
                vec!["-c", "-fPIE", "--offload-arch=gfx906", "--offload-arch=gfx90a", "--no-offload-new-driver"];
            all.extend(BARE);
            all.extend(packed);
            workshop.compile(source, name, &all);
        };
        compile(&(SOURCE.to_owned() + MAIN), "one.o");
        compile(&SOURCE.replace("add(", "other(").replace("scale", "other_scale").replace("twice", "thrice"), "two.o");
        workshop.run("clang++-19", &["-pie", "one.o", "two.o", "-o", "app", "-L.", "-lamdhip64", "-Wl,-rpath,$ORIGIN"]);
        let original = workshop.read("app");
        let input = Input::parse(&original).expect("parses");
        assert_eq!((input.wrappers().len(), input.bundles.len()), (2, 2));
        assert!(matches!(input.container, Container::Host { .. }));
        let (rewritten, expected) = rewrite(&original);
        check_image(&original, &rewritten);
        install(&workshop, "new", &rewritten);
        check_bundles(&run(&workshop, "new"), &original, &expected);

        // One of the two bundles only: the other wrapper still names what it named.
        let found = input.code_objects().last().expect("one");
        let only = merge(
            &input,
            &[Replacement { place: found.place, bytes: b"\x7fELF alone".to_vec().into() }],
            Packing::AsFound,
        )
        .expect("merged");
        let again = Input::parse(&only).expect("parses");
        assert_eq!(again.wrappers()[0].bundle_address, input.wrappers()[0].bundle_address);
        assert_ne!(again.wrappers()[1].bundle_address, input.wrappers()[1].bundle_address);
        assert_eq!(again.code_objects().filter(|found| found.bytes == b"\x7fELF alone").count(), 1);
    }
}

/// A library whose wrapper names its bundle by a symbol, as GNU's linker has it for relocatable device code.
const NAMED_BUNDLE: &str = "
.section .hip_fatbin,\"a\",@progbits
.p2align 12
.globl __hip_fatbin
.protected __hip_fatbin
.type __hip_fatbin,@object
.quad 0, 0
.p2align 12
__hip_fatbin: .incbin \"whole.bundle\"
.section .hipFatBinSegment,\"aw\",@progbits
.p2align 3
wrapper: .long 0x48495046, 1
.quad __hip_fatbin, 0
.text
register: lea wrapper(%rip), %rdi
jmp __hipRegisterFatBinary@PLT
.section .init_array,\"aw\",@init_array
.p2align 3
.quad register
.section .note.GNU-stack,\"\",@progbits
";

#[test]
fn a_wrapper_that_names_its_bundle_by_a_symbol() {
    if !compiler_is_there() {
        return;
    }
    let workshop = workshop();
    let compiled = host(&workshop, "compiled", &["-fPIE", "-pie"]);
    workshop.write("whole.bundle", &Input::parse(&compiled).expect("parses").bundles[0].content);
    workshop.write("main.c", MAIN.replace("extern \"C\" ", "").replace("thread_local", "_Thread_local"));
    let library = |text: &str| {
        workshop.write("device.s", text);
        workshop.run("cc", &["-shared", "device.s", "-o", "libdevice.so", "-L.", "-lamdhip64"]);
        workshop.read("libdevice.so")
    };
    let original = library(NAMED_BUNDLE);
    workshop
        .run("cc", &["-w", "main.c", "-o", "named", "-L.", "-Wl,--no-as-needed,-ldevice,-lamdhip64,-rpath,$ORIGIN"]);
    let input = Input::parse(&original).expect("parses");
    let [wrapper] = input.wrappers() else { panic!("one wrapper") };
    assert!(matches!(wrapper.pointer, wavetap::offload_bundle::Pointer::Addend { base, .. }
            if base == wrapper.bundle_address));
    let (rewritten, expected) = rewrite(&original);
    check_image(&original, &rewritten);
    workshop.write("libdevice.so", &rewritten);
    check_bundles(&run(&workshop, "named"), &original, &expected);
    // Another library may define it first.
    let error = Input::parse(&library(&NAMED_BUNDLE.replace(".protected __hip_fatbin", ""))).unwrap_err();
    assert!(error.to_string().contains("of the symbol __hip_fatbin, which another file may define first"), "{error}");
    let error =
        Input::parse(&library(&NAMED_BUNDLE.replace(".quad __hip_fatbin, 0", ".quad elsewhere, 0"))).unwrap_err();
    assert!(error.to_string().contains("names a bundle in another file"), "{error}");
}

#[test]
fn bare_bundles_and_code_objects() {
    if !compiler_is_there() {
        return;
    }
    let workshop = workshop();
    let object = workshop.code_object(SOURCE, "gfx90a", &[]);
    let input = Input::parse(&object).expect("parses");
    assert_eq!(merge(&input, &[], Packing::AsFound).expect("merged"), object);
    assert_eq!(
        merge(&input, &[Replacement { place: None, bytes: vec![1, 2].into() }], Packing::AsFound).expect("merged"),
        [1, 2]
    );
    assert!(
        merge(
            &input,
            &[Replacement { place: Some(EntryPlace { bundle: 0, entry: 0 }), bytes: vec![].into() }],
            Packing::AsFound
        )
        .is_err()
    );

    let whole = host(&workshop, "app", &["-fPIE", "-pie", "--offload-compress"]);
    let (start, size) = {
        let bundle = &Input::parse(&whole).expect("parses").bundles[0];
        (bundle.offset as usize, bundle.size as usize)
    };
    let mut section = whole[start..start + size].to_vec();
    section.resize(section.len().next_multiple_of(4096), 0);
    section.extend_from_slice(&whole[start..start + size]);
    let input = Input::parse(&section).expect("parses");
    assert_eq!(input.bundles.len(), 2);
    assert_eq!(merge(&input, &[], Packing::AsFound).expect("merged"), section);
    let merged = merge(
        &input,
        &[Replacement { place: Some(EntryPlace { bundle: 1, entry: 2 }), bytes: b"new".to_vec().into() }],
        Packing::AsFound,
    )
    .expect("merged");
    let again = Input::parse(&merged).expect("parses");
    assert_eq!(merged[..size], section[..size], "the first bundle is as it was");
    assert_eq!(
        (again.bundles[1].entry_bytes(2), again.bundles[1].entry_bytes(1)),
        (&b"new"[..], input.bundles[1].entry_bytes(1))
    );
}

#[test]
fn nothing_replaced_gives_the_same_bytes() {
    if !compiler_is_there() {
        return;
    }
    let workshop = workshop();
    for flags in [&["-fPIE", "-pie"][..], &["-fPIE", "-pie", "--offload-compress"]] {
        let original = host(&workshop, "app", flags);
        assert_eq!(merge(&Input::parse(&original).expect("parses"), &[], Packing::AsFound).expect("merged"), original);
    }
}

#[test]
fn mutated_host_files_are_refused_or_written_but_never_panic() {
    if !compiler_is_there() {
        return;
    }
    let workshop = workshop();
    for flags in [&["-fPIE", "-pie"][..], &["-fPIE", "-pie", "-fuse-ld=lld", "-Wl,--build-id=none"]] {
        let whole = host(&workshop, "app", flags);
        let elf = Elf::parse(&whole).expect("parses");
        let (table, sections) = (elf.segments.len() * 56 + 64, elf.header.sections_offset as usize);
        let places = [0..table, sections..sections + elf.sections.len() * 64];
        let mut random = Random::new(4);
        let mut written = 0;
        for _ in 0..1500 {
            let mut bytes = whole.clone();
            for _ in 0..1 + random.below(3) {
                let place = places[random.below(places.len())].clone();
                let value = if random.below(2) == 0 { random.next() as u8 } else { 0xff };
                bytes[place.start + random.below(place.len())] = value;
            }
            let Ok(input) = Input::parse(&bytes) else { continue };
            let Some(found) = input.code_objects().next() else { continue };
            if let Ok(new) =
                merge(&input, &[Replacement { place: found.place, bytes: vec![0; 100].into() }], Packing::AsFound)
            {
                assert!(new.len() < whole.len() + (65 << 20), "a mutation must not make a huge file");
                written += 1;
            }
        }
        assert!(written > 50, "{written}");
    }
}
