//! Rewritten device objects, judged by other people's tools. The new code does nothing; what matters is everything
//! around it.

use std::path::Path;

use crate::hip_compiler::{SOURCE, Workshop, compiler_is_there, tool};
use crate::random::Random;
use wavetap::code_object::{CONTROL_SYMBOL, CodeObject, Field, metadata};
use wavetap::elf::Elf;
use wavetap::elf::constants::{PF_R, PF_W, PF_X, PT_LOAD, PT_NOTE, SHT_GNU_HASH, SHT_HASH, SHT_NOTE, SymbolSection};
use wavetap::emit::code_object::{Changes, CodeSymbol, Plan};
use wavetap::error::Result;

const S_ENDPGM: u32 = 0xbf81_0000;
const S_NOP: u32 = 0xbf80_0000;
const CONTROL: [u8; 64] = [0x5a; 64];
const MAP: &[u8] = b"what the site table would be";

/// Rewrites every kernel to one that ends at once, and changes its register counts in descriptor and metadata.
fn rewrite(object: &CodeObject<'_>) -> Vec<u8> {
    try_rewrite(object).expect("written")
}

fn try_rewrite(object: &CodeObject<'_>) -> Result<Vec<u8>> {
    let plan = Plan::new(object, CONTROL.len() as u64)?;
    let mut code: Vec<u8> = Vec::new();
    let (mut descriptors, mut symbols) = (Vec::new(), Vec::new());
    let mut value = object.metadata().expect("note").value().expect("values");
    for kernel in object.kernels() {
        let address = plan.code_address() + code.len() as u64;
        code.extend(S_ENDPGM.to_le_bytes());
        code.extend(S_NOP.to_le_bytes().repeat(63));
        let mut descriptor = kernel.descriptor;
        descriptor.set_entry_byte_offset(address.wrapping_sub(kernel.descriptor_address) as i64);
        descriptor.set_allocated_sgprs(96).expect("fits");
        descriptors.push((kernel.descriptor_address, descriptor));
        symbols.push(CodeSymbol { name: format!("{}.counted", kernel.name), address, size: 4 });
        metadata::set_kernel_number(&mut value, &kernel.symbol(), ".sgpr_count", 91)?;
        metadata::set_kernel_number(&mut value, &kernel.symbol(), ".private_segment_fixed_size", 70_000)?;
    }
    let metadata = metadata::encode(&value)?;
    let changes = Changes {
        code: &code,
        symbols: &symbols,
        descriptors: &descriptors,
        metadata: &metadata,
        control: &CONTROL,
        map: MAP,
    };
    plan.finish(&changes)
}

/// Every byte of the original's image is where it was, except what contract C1 names.
fn check_image(original: &CodeObject<'_>, rewritten: &CodeObject<'_>) {
    let (old, new) = (original.elf(), rewritten.elf());
    let dynamic = old.dynamic().expect("read");
    let table = old.header.segments_offset..old.header.segments_offset + new.segments.len() as u64 * 56;
    let mut compared = 0;
    for load in old.loads() {
        let now = rewritten.bytes_at(load.address, load.file_size).expect("still loaded");
        let before = &original.data()[load.offset as usize..][..load.file_size as usize];
        for (index, (before, now)) in before.iter().zip(now).enumerate() {
            let offset = load.offset + index as u64;
            let excepted = offset < 64
                || table.contains(&offset)
                || original
                    .kernels()
                    .iter()
                    .any(|kernel| (kernel.descriptor_offset..kernel.descriptor_offset + 64).contains(&offset))
                || dynamic.iter().any(|entry| (entry.file_offset..entry.file_offset + 16).contains(&offset));
            assert!(excepted || before == now, "byte at {offset:#x} changed");
            compared += usize::from(!excepted);
        }
        let mapped = new.loads().find(|other| other.address == load.address).expect("same segment");
        assert_eq!(mapped, load);
    }
    assert!(compared > 500, "{compared} bytes compared");
    // Segments ascend, stay congruent, and what is added shares no page with anything.
    let loads: Vec<_> = new.loads().collect();
    assert!(loads.windows(2).all(|pair| pair[0].end() <= pair[1].address));
    for pair in loads[loads.len() - 4..].windows(2) {
        assert!((pair[0].end() - 1) / 4096 < pair[1].address / 4096, "{pair:?}");
    }
    assert!(loads.iter().all(|load| load.offset % load.align == load.address % load.align));
    let added: Vec<_> = loads[loads.len() - 3..].iter().map(|load| load.flags).collect();
    assert_eq!(added, [PF_R | PF_W, PF_R | PF_X, PF_R]);
}

/// The rules that loaders were seen to need.
fn check_file(bytes: &[u8], has_symbols: bool) {
    let elf = Elf::parse(bytes).expect("parses");
    let table_end = elf.header.sections_offset + elf.sections.len() as u64 * 64;
    assert_eq!(table_end, bytes.len() as u64, "the section headers are the last thing in the file");
    for section in &elf.sections {
        assert!(section.offset <= elf.header.sections_offset, "{}", section.name);
        if section.is_alloc() && section.has_contents() {
            assert_eq!(elf.file_offset(section.address, section.size), Some(section.offset), "{}", section.name);
        }
    }
    let last_loaded = elf.sections.iter().rposition(|section| section.is_alloc()).expect("some");
    let names: Vec<_> = elf.sections[last_loaded - 1..=last_loaded].iter().map(|section| section.name).collect();
    assert_eq!(names, [".wavetap.control", ".wavetap.text"], "new loaded sections follow the last loaded one");
    assert!(elf.sections[1..=last_loaded].iter().all(|section| section.is_alloc()));
    assert_eq!(elf.contents(elf.section(".wavetap.map").expect("map")).expect("in the file"), MAP);
    let note = elf.segments.iter().find(|segment| segment.kind == PT_NOTE).expect("note");
    let notes: Vec<_> = elf.sections.iter().filter(|section| section.kind == SHT_NOTE).collect();
    assert_eq!((notes[0].address, notes[0].offset, note.address % 4), (note.address, note.offset, note.offset % 4));
    assert!(notes.windows(2).all(
        |pair| pair[0].address + pair[0].size == pair[1].address && pair[0].offset + pair[0].size == pair[1].offset
    ));
    assert_eq!(notes.iter().map(|section| section.size).sum::<u64>(), note.file_size);

    let other = goblin::elf::Elf::parse(bytes).expect("goblin reads it");
    let find = |symbols: &goblin::elf::Symtab<'_>, strings: &goblin::strtab::Strtab<'_>| {
        symbols.iter().find(|symbol| strings.get_at(symbol.st_name) == Some(CONTROL_SYMBOL))
    };
    let dynamic = find(&other.dynsyms, &other.dynstrtab).expect("in .dynsym");
    assert_eq!((dynamic.st_type(), dynamic.st_bind(), dynamic.st_size), (1, 1, 64));
    assert_eq!(elf.bytes_at(dynamic.st_value, 64).expect("loaded"), CONTROL);
    assert_eq!(elf.sections[dynamic.st_shndx].name, ".wavetap.control");
    assert_eq!(find(&other.syms, &other.strtab).is_some(), has_symbols);
    assert_eq!(other.program_headers.iter().filter(|header| header.p_type == PT_LOAD.0).count(), elf.loads().count());
}

/// LLVM's and GNU's readers have nothing to say against it, and see what is new.
fn check_with_tools(workshop: &Workshop, file: &str, has_symbols: bool, tables: usize) {
    let text = workshop.run("llvm-readelf-19", &["--all", "--gnu-hash-table", "--hash-table", file]);
    assert!(!text.contains("warning") && !text.contains("error:"), "{text}");
    let rows = text.lines().filter(|line| line.trim_end().ends_with(CONTROL_SYMBOL)).count();
    // Once in the dynamic table, once in the full one.
    assert_eq!(rows, 1 + usize::from(has_symbols), "{text}");
    assert!(text.contains(".sgpr_count:     91") && text.contains(".private_segment_fixed_size: 70000"), "{text}");
    let hashes = workshop.run("llvm-readelf-19", &["--hash-symbols", file]);
    assert_eq!(hashes.matches("__wavetap").count(), tables, "found through every hash table: {hashes}");
    if let Some((success, text)) = tool("readelf", &["-a", "-W", file], &workshop.path("")) {
        let complaints: Vec<_> =
            text.lines().filter(|line| line.contains("Warning") || line.contains("Error")).collect();
        assert!(
            success && complaints.iter().all(|line| line.contains("note") || line.contains("machine")),
            "{complaints:?}"
        );
    }
    let code = workshop.run("llvm-objdump-19", &["-d", "--section=.wavetap.text", file]);
    assert_eq!(code.matches("s_endpgm").count(), 2, "{code}");
    assert_eq!(code.contains("<_Z3addPii.counted>:"), has_symbols, "{code}");
}

fn check_all(workshop: &Workshop, name: &str, bytes: &[u8]) -> Vec<u8> {
    let original = CodeObject::parse(bytes).expect("parses");
    let rewritten = rewrite(&original);
    let object = CodeObject::parse(&rewritten).expect("parses");
    let has_symbols = !original.symbols().is_empty();
    check_image(&original, &object);
    check_file(&rewritten, has_symbols);
    workshop.write(name, &rewritten);
    let tables =
        original.elf().sections.iter().filter(|section| [SHT_HASH, SHT_GNU_HASH].contains(&section.kind)).count();
    check_with_tools(workshop, name, has_symbols, tables);
    assert_eq!(object.kernels().len(), original.kernels().len());
    for (old, new) in original.kernels().iter().zip(object.kernels()) {
        assert_eq!((&old.name, old.descriptor_address), (&new.name, new.descriptor_address));
        assert_eq!(object.bytes_at(new.entry, 4).expect("code"), S_ENDPGM.to_le_bytes());
        assert_eq!(new.descriptor.get(Field::KERNARG_SIZE), old.descriptor.get(Field::KERNARG_SIZE));
        assert_eq!(new.metadata.as_ref().map(|metadata| metadata.sgpr_count), Some(91));
        assert_eq!(new.sized, has_symbols);
    }
    for symbol in original.symbols().iter().chain(original.dynamic_symbols()).filter(|symbol| symbol.is_defined()) {
        let same = object.symbol(symbol.name).expect("kept");
        assert_eq!((same.address, same.size, same.info), (symbol.address, symbol.size, symbol.info), "{}", symbol.name);
        let section = |object: &CodeObject<'_>, index: SymbolSection| {
            object.elf().sections.get(usize::from(index.0)).map(|section| section.name.to_owned())
        };
        assert_eq!(section(&original, symbol.section), section(&object, same.section), "{}", symbol.name);
    }
    let relocations = |object: &CodeObject<'_>| object.relocations().to_vec();
    assert_eq!(relocations(&original), relocations(&object));
    assert!(Plan::new(&object, 64).expect_err("refused").message().contains("rewritten before"));
    rewritten
}

#[test]
fn objects_of_every_target_and_kind() {
    if !compiler_is_there() {
        return;
    }
    let workshop = Workshop::new();
    for target in ["gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx90a:xnack-"] {
        for flags in [
            &["-g"][..],
            &["-mcode-object-version=4"],
            &["-Xoffload-linker", "--build-id=sha1"],
            &["-Xoffload-linker", "--hash-style=gnu"],
        ] {
            let bytes = workshop.code_object(SOURCE, target, flags);
            check_all(&workshop, "new.co", &bytes);
        }
    }
}

#[test]
fn a_stripped_object_stays_stripped() {
    if !compiler_is_there() {
        return;
    }
    let workshop = Workshop::new();
    workshop.code_object(SOURCE, "gfx90a", &[]);
    workshop.run("llvm-strip-19", &["-o", "stripped.co", "gfx90a.co"]);
    let bytes = workshop.read("stripped.co");
    assert!(CodeObject::parse(&bytes).expect("parses").symbols().is_empty());
    check_all(&workshop, "new.co", &bytes);
}

/// Where something lies after the program headers, the table moves into the new segment.
#[test]
fn program_headers_that_cannot_grow_move() {
    if !compiler_is_there() {
        return;
    }
    let workshop = Workshop::new();
    let mut bytes = workshop.code_object(SOURCE, "gfx90a", &[]);
    let elf = Elf::parse(&bytes).expect("parses");
    let behind = elf.header.segments_offset + elf.segments.len() as u64 * 56;
    let comment = elf.sections.iter().position(|section| section.name == ".comment").expect("compilers write one");
    let header = (elf.header.sections_offset + comment as u64 * 64) as usize;
    bytes[header + 24..header + 32].copy_from_slice(&behind.to_le_bytes());
    bytes[header + 32..header + 40].copy_from_slice(&8u64.to_le_bytes());
    let rewritten = check_all(&workshop, "new.co", &bytes);
    let elf = Elf::parse(&rewritten).expect("parses");
    assert!(elf.header.segments_offset > 4096, "the table moved");
    assert!(
        elf.file_offset(elf.segments[0].address, elf.segments[0].file_size) == Some(elf.header.segments_offset),
        "PT_PHDR is mapped"
    );
}

/// llvm-strip drops symbols and lays the file out anew; what a loader needs must survive.
#[test]
fn rewritten_objects_survive_llvm_strip_and_objcopy() {
    if !compiler_is_there() {
        return;
    }
    let workshop = Workshop::new();
    let bytes = workshop.code_object(SOURCE, "gfx90a", &["-g"]);
    check_all(&workshop, "new.co", &bytes);
    workshop.run("llvm-strip-19", &["--strip-debug", "-o", "small.co", "new.co"]);
    workshop.run("llvm-objcopy-19", &["new.co", "copy.co"]);
    for name in ["small.co", "copy.co"] {
        let bytes = workshop.read(name);
        let object = CodeObject::parse(&bytes).expect("parses");
        let control = object.symbol(CONTROL_SYMBOL).expect("kept");
        assert_eq!(object.bytes_at(control.address, 64).expect("loaded"), CONTROL);
        assert!(
            object
                .kernels()
                .iter()
                .all(|kernel| object.bytes_at(kernel.entry, 4).is_ok_and(|code| code == S_ENDPGM.to_le_bytes()))
        );
        let hashes = workshop.run("llvm-readelf-19", &["--hash-symbols", name]);
        assert_eq!(hashes.matches("__wavetap").count(), 2, "{name}: {hashes}");
    }
}

#[test]
fn nothing_replaced_gives_the_same_bytes() {
    if !compiler_is_there() {
        return;
    }
    let workshop = Workshop::new();
    let bytes = workshop.code_object(SOURCE, "gfx90a", &["-g"]);
    let object = CodeObject::parse(&bytes).expect("parses");
    let plan = Plan::new(&object, 64).expect("planned");
    let changes = Changes { code: &[], symbols: &[], descriptors: &[], metadata: &[], control: &CONTROL, map: MAP };
    assert_eq!(plan.finish(&changes).expect("written"), bytes);
}

/// The prebuilt samples: more kernels, calls, constants, debug information.
#[test]
fn every_sample_is_written_and_read() {
    let bin = Path::new(env!("CARGO_MANIFEST_DIR")).join("hip-samples/bin");
    let mut objects = 0;
    for entry in std::fs::read_dir(bin).expect("samples") {
        let path = entry.expect("entry").path();
        let data = std::fs::read(&path).expect("read");
        let input =
            wavetap::offload_bundle::Input::parse(&data).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for found in input.code_objects() {
            let original = CodeObject::parse(found.bytes).expect("parses");
            let rewritten = rewrite(&original);
            check_image(&original, &CodeObject::parse(&rewritten).expect("parses"));
            check_file(&rewritten, true);
            objects += 1;
        }
    }
    assert!(objects >= 13 * 3, "{objects}");
}

#[test]
fn mutated_objects_are_refused_or_written_but_never_panic() {
    if !compiler_is_there() {
        return;
    }
    let workshop = Workshop::new();
    let whole = workshop.code_object(SOURCE, "gfx90a", &[]);
    let elf = Elf::parse(&whole).expect("parses");
    let dynamic = elf.section(".dynamic").expect("linked").offset as usize;
    let places = [0..0x238, dynamic..dynamic + 0x80, elf.header.sections_offset as usize..whole.len()];
    let mut random = Random::new(3);
    let (mut written, mut refused) = (0, 0);
    for _ in 0..6000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + random.below(3) {
            let place = places[random.below(places.len())].clone();
            let value = if random.below(2) == 0 { random.next() as u8 } else { 0xff };
            bytes[place.start + random.below(place.len())] = value;
        }
        let Ok(object) = CodeObject::parse(&bytes) else { continue };
        if object.metadata().is_none() {
            continue;
        }
        match try_rewrite(&object) {
            Ok(new) => {
                assert!(new.len() < whole.len() + 0x10000, "a mutation must not make a large file");
                written += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(written > 100 && refused > 100, "{written} written, {refused} refused");
}
