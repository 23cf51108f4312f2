//! One part of a file that contradicts the format, or is merely odd, costs that part: it is named, and everything else
//! is inspected, disassembled, rewritten and verified.

use std::fs;
use std::path::Path;

use rewriter_tests::Failure;
use rewriter_tests::command::{self, Finished};
use rewriter_tests::kernels::build::{Variant, assembled};
use wavetap::code_object::CodeObject;
use wavetap::isa::Target;
use wavetap::offload_bundle::write_plain;

/// Three kernels; the last has no instruction and lies at the very end of the code.
const TEXT: &str = r#"
.amdgcn_target "amdgcn-amd-amdhsa--gfx90a"
.text
.globl first
.p2align 8
.type first,@function
first:
  v_cmp_gt_u32_e32 vcc, 5, v0
  s_and_saveexec_b64 s[0:1], vcc
  s_endpgm
.size first, .-first
.globl second
.p2align 8
.type second,@function
second:
  v_cmp_lt_u32_e32 vcc, 7, v0
  s_and_saveexec_b64 s[0:1], vcc
  s_endpgm
.size second, .-second
.globl hollow
.p2align 8
.type hollow,@function
hollow:
.size hollow, .-hollow
KERNELS
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx90a
amdhsa.kernels:
METADATA
...
.end_amdgpu_metadata
"#;
const NAMES: [&str; 3] = ["first", "second", "hollow"];

fn object() -> Vec<u8> {
    let kernel = |name: &str| {
        format!(
            ".rodata\n.p2align 6\n.amdhsa_kernel {name}\n .amdhsa_next_free_vgpr 4\n .amdhsa_next_free_sgpr 8\n \
                .amdhsa_accum_offset 4\n.end_amdhsa_kernel\n"
        )
    };
    let entry = |name: &str| {
        format!(
            "  - {{.name: {name}, .symbol: {name}.kd, .kernarg_segment_size: 0, .kernarg_segment_align: 4, \
                .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 64, .sgpr_count: 8, \
                .vgpr_count: 4, .agpr_count: 0, .max_flat_workgroup_size: 1024}}\n"
        )
    };
    let text = TEXT.replace("KERNELS", &NAMES.map(kernel).concat()).replace("METADATA\n", &NAMES.map(entry).concat());
    let target = Target::by_name("gfx90a").expect("a known target");
    assembled(&text, Variant { target, level: "O2", version: 5 }).expect("assembles")
}

/// Replaces one occurrence of some bytes, after `skipped` others, by as many other bytes.
fn replace(object: &[u8], from: &[u8], to: &[u8], skipped: usize) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut places = (0..object.len() - from.len()).filter(|&at| object[at..].starts_with(from));
    let at = places.nth(skipped).expect("it is there");
    let mut changed = object.to_vec();
    changed[at..at + to.len()].copy_from_slice(to);
    changed
}

/// Runs the command in a folder; the exit code must be this one.
fn wavetap(folder: &Path, args: &[&str], code: i32) -> Finished {
    let run = || -> Result<Finished, Failure> { command::run(&command::wavetap()?, args, &[], folder)?.exited(code) };
    run().unwrap_or_else(|failure| panic!("{failure}"))
}

/// The file is looked into and rewritten: of its kernels these are instrumented and those refused, each with words of
/// the reason; all that is rewritten is verified.
fn goes_on(file: &[u8], instrumented: &[&str], refused: &[(&str, &str)], readable: bool) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("in"), file).expect("written");
    let inspected = wavetap(folder.path(), &["inspect", "in"], i32::from(!readable));
    let disassembled = wavetap(folder.path(), &["disasm", "in"], i32::from(!readable));
    let rewritten = wavetap(folder.path(), &["rewrite", "in", "-o", "out"], i32::from(!refused.is_empty()));
    for name in instrumented {
        assert!(inspected.out().contains(name), "{}", inspected.failure("a kernel is not listed"));
        assert!(disassembled.out().contains(name), "{}", disassembled.failure("a kernel is not listed"));
        let line = |line: &str| line.split_whitespace().next() == Some(name) && line.contains("registers");
        assert!(rewritten.out().lines().any(line), "{}", rewritten.failure("a kernel is not rewritten"));
    }
    for (name, words) in refused {
        let line = |line: &str| line.contains("not counted") && line.contains(name) && line.contains(words);
        assert!(
            rewritten.err().lines().any(line),
            "{}",
            rewritten.failure(&format!("{name} is not refused for {words:?}"))
        );
        if !readable && (*name, *words) != HOLLOW {
            assert!(inspected.err().contains(words), "{}", inspected.failure(&format!("nothing is said of {words:?}")));
        }
    }
    let verified = wavetap(folder.path(), &["verify", "in", "out"], 0);
    assert!(verified.out().starts_with("faithful") || instrumented.is_empty(), "{}", verified.failure("not verified"));
    // A single kernel that is sound can be asked for without a word of the others.
    if let Some(name) = instrumented.first() {
        wavetap(folder.path(), &["rewrite", "in", "-o", "one", "--kernel", name, "--target", "gfx90a"], 0);
    }
}

#[test]
fn an_empty_kernel_at_the_end_of_the_code() {
    goes_on(&object(), &["first", "second"], &[("hollow", "it is empty: its entry is where the code ends")], true);
}

const HOLLOW: (&str, &str) = ("hollow", "it is empty");

#[test]
fn a_descriptor_with_a_wrong_entry() {
    let object = object();
    let code = CodeObject::parse(&object).expect("parses");
    let descriptor = code.kernel("second").expect("a kernel").descriptor_offset as usize;
    // Bytes 16 to 23: KERNEL_CODE_ENTRY_BYTE_OFFSET.
    let with = |offset: i64| {
        let mut changed = object.clone();
        changed[descriptor + 16..descriptor + 24].copy_from_slice(&offset.to_le_bytes());
        changed
    };
    goes_on(&with(0x1004), &["first"], &[("second", "is not on a multiple of"), HOLLOW], false);
    goes_on(&with(0x10_0000 - 0x40), &["first"], &[("second", "its entry"), HOLLOW], false);
}

#[test]
fn a_descriptor_symbol_that_leads_nowhere() {
    let object = object();
    let code = CodeObject::parse(&object).expect("parses");
    let address = code.kernel("second").expect("a kernel").descriptor_address.to_le_bytes();
    // In both symbol tables.
    let changed = replace(&object, &address, &0x7fff_0000_u64.to_le_bytes(), 0);
    let changed = replace(&changed, &address, &0x7fff_0000_u64.to_le_bytes(), 0);
    goes_on(&changed, &["first"], &[("second", "does not lie in the file"), HOLLOW], false);
}

#[test]
fn a_symbol_of_impossible_size() {
    let object = object();
    let code = CodeObject::parse(&object).expect("parses");
    let kernel = code.kernel("second").expect("a kernel");
    let (address, size) = (kernel.entry.to_le_bytes(), (kernel.code.end - kernel.code.start).to_le_bytes());
    let from = [address, size].concat();
    let to = [address, 0x100_0000_u64.to_le_bytes()].concat();
    let changed = replace(&replace(&object, &from, &to, 0), &from, &to, 0);
    goes_on(&changed, &["first"], &[("second", "reaches past its section"), HOLLOW], false);
}

#[test]
fn metadata_of_one_kernel_that_is_not_as_documented() {
    // Its `.kernarg_segment_align` has another name.
    let changed = replace(&object(), b".kernarg_segment_align", b".kernarg_segment_aliGn", 1);
    goes_on(&changed, &["first"], &[("second", ".kernarg_segment_align is missing"), HOLLOW], false);
    // It is of another descriptor. 0xa9: a string of nine bytes follows.
    let renamed = replace(&object(), b"\xa9second.kd", b"\xa9sexond.kd", 0);
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("in"), renamed).expect("written");
    let rewritten = wavetap(folder.path(), &["rewrite", "in", "-o", "out"], 1);
    let line = "second (gfx90a): malformed: the metadata has no kernel with the descriptor second.kd";
    assert!(rewritten.err().contains(line), "{}", rewritten.failure("not refused"));
    wavetap(folder.path(), &["verify", "in", "out"], 0);
}

#[test]
fn a_metadata_note_that_cannot_be_read() {
    let object = object();
    let code = CodeObject::parse(&object).expect("parses");
    let note = code.metadata().expect("a note").file_offset as usize;
    let mut changed = object.clone();
    // No MessagePack: 0xc1 is never used.
    changed[note] = 0xc1;
    goes_on(&changed, &[], &[("first", "metadata is not a map"), ("second", "metadata is not a map")], false);
}

#[test]
fn a_symbol_without_a_readable_name() {
    let object = object();
    let code = CodeObject::parse(&object).expect("parses");
    let section = code.elf().sections.iter().find(|section| section.name == ".symtab").expect("a symbol table");
    // The first word of the last symbol: where its name is.
    let at = (section.offset + section.size - 24) as usize;
    let mut changed = object.clone();
    changed[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("in"), &changed).expect("written");
    let inspected = wavetap(folder.path(), &["inspect", "in"], 1);
    assert!(inspected.err().contains(" of .symtab: "), "{}", inspected.failure("the symbol is not named"));
    // What cannot be read cannot be kept in step either.
    let rewritten = wavetap(folder.path(), &["rewrite", "in", "-o", "out"], 1);
    assert!(rewritten.err().contains("unsupported_object: symbol"), "{}", rewritten.failure("not refused"));
    assert_eq!(fs::read(folder.path().join("out")).expect("a copy"), changed);
}

const GFX90A: &str = "hipv4-amdgcn-amd-amdhsa--gfx90a";
const GFX906: &str = "hipv4-amdgcn-amd-amdhsa--gfx906";

#[test]
fn one_code_object_of_a_bundle_that_cannot_be_read() {
    let good = object();
    let cut = &good[..good.len() / 2];
    goes_on(
        &write_plain(&[(GFX906, cut), (GFX90A, &good)]),
        &["first", "second"],
        &[("*", "the data ends at"), HOLLOW],
        false,
    );
}

#[test]
fn one_entry_of_a_bundle_that_lies() {
    let good = object();
    let bundle = write_plain(&[(GFX906, b"code"), (GFX90A, &good)]);
    // The size of the first entry: magic, number of entries, offset.
    let mut lying = bundle.clone();
    lying[24 + 8 + 8..24 + 8 + 16].copy_from_slice(&(1u64 << 40).to_le_bytes());
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("in"), &lying).expect("written");
    let inspected = wavetap(folder.path(), &["inspect", "in"], 1);
    assert!(inspected.out().contains("second"), "{}", inspected.failure("the other code object is not listed"));
    assert!(inspected.err().contains("bundle entry 0"), "{}", inspected.failure("the entry is not named"));
    // The bundle would have to be written anew, and what the entry is nobody knows.
    let rewritten = wavetap(folder.path(), &["rewrite", "in", "-o", "out"], 1);
    assert!(rewritten.err().contains("bundle entry 0"), "{}", rewritten.failure("not refused"));
    assert_eq!(fs::read(folder.path().join("out")).expect("a copy"), lying);
}

#[test]
fn one_bundle_of_a_program_that_cannot_be_read() {
    let sample =
        fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../hip-samples/bin/two_kernels")).expect("a sample");
    let magic = b"__CLANG_OFFLOAD_BUNDLE__";
    let at = (0..sample.len()).find(|&at| sample[at..].starts_with(magic)).expect("a bundle");
    // Its only bundle: then there is nothing to go on with, and the place is told.
    let mut changed = sample.clone();
    changed[at] ^= 1;
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("in"), &changed).expect("written");
    let inspected = wavetap(folder.path(), &["inspect", "in"], 2);
    assert!(inspected.err().contains(&format!("at offset {at:#x}")), "{}", inspected.failure("the place is not told"));
}
