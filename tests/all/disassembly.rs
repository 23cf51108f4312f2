//! Disassembly and inspection of real executables: nothing left out, the same as LLVM's, and the text says what the
//! data says.

use std::path::{Path, PathBuf};

use crate::hip_compiler::{SOURCE, Workshop, compiler_is_there, tool};
use wavetap::code_object::CodeObject;
use wavetap::offload_bundle::Input;
use wavetap::pipeline::{Inspected, Listed, Selection, disassemble, inspect};
use wavetap::report::disassembly::{CodeKind, CodeText, Disassembly, InstText, Sureness};
use wavetap::report::listing::Listing;
use wavetap::report::plain::Plain;

/// A compiled loop with a branch of its own, a called function, a table, and memory to wait for.
const LOOPS: &str = r#"
__global__ void walk(int* out, const int* in, int n) {
    int i = __builtin_amdgcn_workitem_id_x();
    int sum = 0;
    for (int outer = 0; outer < in[i]; ++outer)
        for (int inner = 0; inner < in[i + 64]; ++inner)
            if (in[inner] > n) sum += twice(inner); else sum ^= table[inner & 3];
    out[i] = sum;
}
"#;

fn samples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("hip-samples/bin");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 10, "the samples are there");
    files
}

fn whole(data: &[u8]) -> Disassembly {
    let mut disassembly = Disassembly::default();
    let refused = disassemble(data, &Listed::default(), &mut disassembly).expect("it disassembles");
    assert_eq!(refused, Vec::<String>::new());
    disassembly
}

fn only(data: &[u8], listed: Listed<'_>) -> Vec<CodeText> {
    let mut disassembly = Disassembly::default();
    disassemble(data, &listed, &mut disassembly).expect("it disassembles");
    disassembly.objects.into_iter().flat_map(|object| object.code).collect()
}

fn selected(kernels: &[&str]) -> Selection {
    Selection { kernels: kernels.iter().map(|&name| name.to_owned()).collect(), targets: Vec::new() }
}

fn bytes_of(inst: &InstText) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&inst.bytes[at..at + 2], 16).unwrap();
    (0..inst.bytes.len()).step_by(2).map(byte).collect::<Vec<u8>>().repeat(inst.times as usize)
}

/// Every executable byte is listed once, in order, as the bytes that are there.
fn assert_complete(object: &[u8], code: &[CodeText]) {
    let parsed = CodeObject::parse(object).unwrap();
    let text = parsed.elf().section(".text").unwrap();
    let mut at = text.address;
    for part in code {
        assert_eq!(part.address, at, "no gap before {:?}", part.name);
        for inst in &part.instructions {
            assert_eq!(inst.address, at);
            let bytes = bytes_of(inst);
            assert_eq!(parsed.bytes_at(at, bytes.len() as u64).unwrap(), bytes);
            at += bytes.len() as u64;
        }
        assert_eq!(part.end, at);
    }
    assert_eq!(at, text.address + text.size);
}

#[test]
fn every_byte_of_every_sample_is_listed() {
    for file in samples() {
        let data = std::fs::read(&file).unwrap();
        let disassembly = whole(&data);
        let input = Input::parse(&data).unwrap();
        let objects: Vec<_> = input.code_objects().collect();
        assert_eq!(objects.len(), disassembly.objects.len());
        for (found, listed) in objects.iter().zip(&disassembly.objects) {
            assert_complete(found.bytes, &listed.code);
            let kernels = CodeObject::parse(found.bytes).unwrap().kernels().len();
            assert_eq!(listed.code.iter().filter(|code| code.kind == CodeKind::Kernel).count(), kernels);
        }
    }
}

/// Numbers as LLVM 19 and this program write them alike: `lit(0xffffffff)` and `-1` are one literal.
fn normal(line: &str) -> String {
    let Some((text, comment)) = line.split_once("// ") else { return line.to_owned() };
    let number = |word: &str| {
        let bare = word.trim_end_matches(',');
        let inside = bare.strip_prefix("lit(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(bare);
        let (sign, digits) = inside.strip_prefix('-').map_or((1, inside), |rest| (-1, rest));
        let value = match digits.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(hex, 16),
            None => digits.parse(),
        };
        value.map_or_else(|_| bare.to_owned(), |value| format!("{:#x}", (sign * value) as u32))
    };
    format!("{} // {comment}", text.split_whitespace().map(number).collect::<Vec<_>>().join(" "))
}

fn assert_as_llvm(object: &Path) {
    let name = object.file_name().unwrap().to_string_lossy();
    let Some((true, theirs)) = tool("llvm-objdump-19", &["-d", &name], object.parent().unwrap()) else {
        panic!("llvm-objdump-19 cannot read {name}")
    };
    let mut ours = String::new();
    let mut plain = Plain::default();
    for listed in whole(&std::fs::read(object).unwrap()).objects {
        ours.push_str(&plain.object(&name));
        listed.code.iter().for_each(|code| ours.push_str(&plain.code(code)));
    }
    let (theirs, ours): (Vec<&str>, Vec<&str>) = (theirs.lines().collect(), ours.lines().collect());
    for (theirs, ours) in theirs.iter().zip(&ours) {
        // Where no literal is involved, byte for byte.
        if theirs != ours {
            assert_eq!(normal(ours), normal(theirs), "{name}");
        }
    }
    assert_eq!(theirs.len(), ours.len(), "{name}");
}

#[test]
fn the_plain_form_is_what_llvm_prints() {
    if !compiler_is_there() {
        return;
    }
    let workshop = Workshop::new();
    for file in samples() {
        let data = std::fs::read(&file).unwrap();
        let input = Input::parse(&data).unwrap();
        for found in input.code_objects() {
            let name = format!("{}.{}.co", file.file_name().unwrap().to_string_lossy(), found.target.unwrap());
            assert_as_llvm(&workshop.write(&name, found.bytes));
        }
    }
    for flags in [&["-g"][..], &["-O0"], &["-O3", "-gline-tables-only"]] {
        workshop.code_object(&format!("{SOURCE}{LOOPS}"), "gfx90a", flags);
        assert_as_llvm(&workshop.path("gfx90a.co"));
    }
}

#[test]
fn text_says_what_the_data_says() {
    let listing = Listing { bytes: true, ..Listing::default() };
    for file in samples() {
        for object in whole(&std::fs::read(&file).unwrap()).objects {
            for code in &object.code {
                let text = listing.code(code);
                let Some(name) = &code.name else { continue };
                assert!(text.contains(name.as_str()) && text.contains(code.demangled.as_deref().unwrap()), "{text}");
                let mut lines = text.lines();
                for inst in &code.instructions {
                    let words = inst.words().collect::<Vec<_>>().join(" ");
                    let start = format!(" {:x}  {words}", inst.address);
                    // In order: the search goes on from the line that was found.
                    let line = lines
                        .find(|line| line.contains(&start))
                        .unwrap_or_else(|| panic!("no line {start:?} in\n{text}"));
                    assert!(line.contains(&inst.instruction), "{line}");
                    if let Some(live) = inst.live {
                        assert!(
                            line.contains(&format!("  {:>3}  ", live.vgprs))
                                && line.contains(&format!("  {:>3}  ", live.sgprs)),
                            "{line}"
                        );
                    }
                    if let Some(to) = inst.to.as_ref().filter(|to| to.name != "unknown") {
                        assert!(line.contains(&format!("→ {}", to.name)), "{line}");
                    }
                    for wait in inst.waits.iter().flat_map(|wait| &wait.operations).take(8) {
                        assert!(
                            wait.address.is_none_or(|address| line.contains(&format!("{:x}", address.0))),
                            "{line}"
                        );
                    }
                    for place in inst.waited_at.iter().take(8) {
                        assert!(line.contains(&format!("{:x}", place.0)), "{line}");
                    }
                }
                for block in &code.blocks {
                    assert!(text.contains(&format!("{}:", block.label)), "{} in\n{text}", block.label);
                }
            }
        }
    }
}

#[test]
fn data_can_be_read_back() {
    let data = std::fs::read(&samples()[0]).unwrap();
    let disassembly = whole(&data);
    let json = serde_json::to_string(&disassembly).unwrap();
    assert!(
        json.starts_with(r#"{"schema":"wavetap.disasm/2","objects":[{"id":"0.1","bare":false,"target":"gfx906""#),
        "{}",
        &json[..200]
    );
    assert_eq!(serde_json::from_str::<Disassembly>(&json).unwrap(), disassembly);
    let inspection = inspect(&data, &Inspected::default(), None).unwrap();
    let json = serde_json::to_string(&inspection).unwrap();
    assert_eq!(serde_json::from_str::<wavetap::report::inspect::Inspection>(&json).unwrap(), inspection);
}

#[test]
fn a_wait_and_its_load_name_each_other() {
    for file in samples() {
        for code in whole(&std::fs::read(&file).unwrap()).objects.iter().flat_map(|object| &object.code) {
            let at = |address: u64| code.instructions.iter().find(|inst| inst.address == address).unwrap();
            for inst in &code.instructions {
                for address in
                    inst.waits.iter().flat_map(|wait| &wait.operations).filter_map(|operation| operation.address)
                {
                    assert!(at(address.0).waited_at.iter().any(|place| place.0 == inst.address), "{address:?}");
                }
                for place in &inst.waited_at {
                    let mut operations = at(place.0).waits.iter().flat_map(|wait| &wait.operations);
                    assert!(
                        operations.any(|operation| operation.address.is_some_and(|address| address.0 == inst.address))
                    );
                }
            }
        }
    }
}

#[test]
fn loops_branches_names_and_lines_of_a_compiled_kernel() {
    if !compiler_is_there() {
        return;
    }
    let workshop = Workshop::new();
    let object = workshop.code_object(&format!("{SOURCE}{LOOPS}"), "gfx90a", &["-g", "-fno-unroll-loops"]);
    assert_complete(&object, &whole(&object).objects[0].code);
    let text = |file: &str, line: u32| Some(format!("{}:{line}", file.rsplit('/').next()?));
    let listed = Listed { selection: selected(&["walk"]), source_text: Some(&text), ..Listed::default() };
    let code = only(&object, listed);
    // The kernel and what it calls.
    let names: Vec<&str> = code.iter().filter_map(|code| code.demangled.as_deref()).collect();
    assert_eq!(names, ["twice(int)", "walk(int*, int const*, int)"]);
    let walk = &code[1];
    let depths: Vec<u32> = walk.loops.iter().map(|each| each.depth).collect();
    assert_eq!(depths, [1, 2]);
    for each in &walk.loops {
        for latch in &each.latches {
            let block = walk.blocks.iter().find(|block| block.label == *latch).unwrap();
            assert!(block.successors.contains(&each.header), "a latch goes back to the header");
        }
    }
    let insts = &walk.instructions;
    assert!(
        insts.iter().any(|inst| inst.to.as_ref().is_some_and(|to| to.name == "twice(int)" && !to.block)),
        "the call is named"
    );
    assert!(
        insts.iter().any(|inst| inst.names.as_ref().is_some_and(|names| names.name == "table")),
        "the table is named"
    );
    assert!(insts.iter().all(|inst| inst.reachable && inst.live.is_some()));
    let line =
        insts.iter().find_map(|inst| inst.source.as_ref().filter(|source| source.line > 0)).expect("a source line");
    assert!(line.file.ends_with("gfx90a.co.hip"), "{line:?}");
    let texts: Vec<&String> = insts.iter().filter_map(|inst| inst.source_text.as_ref()).collect();
    assert!(!texts.is_empty() && texts.iter().all(|text| text.starts_with("gfx90a.co.hip:")), "{texts:?}");
    let sure = insts.iter().flat_map(|inst| &inst.waits).flat_map(|wait| &wait.operations);
    assert!(
        sure.into_iter().any(|operation| operation.certainty == Sureness::Must),
        "some wait waits for a load on every path"
    );
    // What the allocator was able to do bounds what is live at once.
    let (pressure, kernel) = (walk.pressure.unwrap(), walk.kernel.as_ref().unwrap());
    assert!(
        u64::from(pressure.vgprs.live) <= kernel.vgprs.unwrap() && pressure.vgprs.live > 0,
        "{pressure:?} {kernel:?}"
    );
    let text = Listing::default().code(walk);
    for expected in ["loop of depth 2", "back from ", "╰", "►.B", "; = ", " table", "→ twice(int)", "waves per SIMD"]
    {
        assert!(text.contains(expected), "{expected:?} in\n{text}");
    }
    // A function by itself is listed without the kernel.
    let code = only(&object, Listed { functions: vec!["twice".into()], ..Listed::default() });
    assert_eq!(code.iter().map(|code| code.kind).collect::<Vec<_>>(), [CodeKind::Function]);
}

#[test]
fn a_stripped_object_is_listed_completely() {
    if !compiler_is_there() {
        return;
    }
    let workshop = Workshop::new();
    workshop.code_object(&format!("{SOURCE}{LOOPS}"), "gfx906", &["-g"]);
    workshop.run("llvm-strip-19", &["--strip-all", "-o", "stripped.co", "gfx906.co"]);
    let object = workshop.read("stripped.co");
    let disassembly = whole(&object);
    assert_complete(&object, &disassembly.objects[0].code);
    let code = &disassembly.objects[0].code;
    let called = code
        .iter()
        .find(|code| code.kind == CodeKind::Function)
        .expect("the function that is called has no symbol, and is found");
    assert!(called.name.as_ref().unwrap().starts_with("function_at_0x"), "{:?}", called.name);
    assert!(code.iter().flat_map(|code| &code.instructions).all(|inst| inst.source.is_none()));
}

#[test]
fn words_that_are_no_instructions_are_data() {
    if !compiler_is_there() {
        return;
    }
    let workshop = Workshop::new();
    let source = ".amdgcn_target \"amdgcn-amd-amdhsa--gfx90a\"\n.text\n.globl f\n.type f,@function\nf:\n s_branch \
        .Lover\n .long 0xffffffff\n .long 0x12345678\n.Lover:\n s_setpc_b64 s[30:31]\n .fill 5, 4, 0xbf800000\n .fill \
        6, 4, 0\n.size f, .-f\n";
    workshop.write("data.s", source);
    workshop.run("clang-19", &["--target=amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-shared", "data.s", "-o", "data.co"]);
    let object = workshop.read("data.co");
    let disassembly = whole(&object);
    assert_complete(&object, &disassembly.objects[0].code);
    let insts = &disassembly.objects[0].code[0].instructions;
    let shown: Vec<(&str, u64, bool)> =
        insts.iter().map(|inst| (inst.instruction.as_str(), inst.times, inst.reachable)).collect();
    assert_eq!(
        shown[..6],
        [
            ("s_branch 2", 1, true),
            (".long 0xffffffff", 1, false),
            ("v_mul_hi_u32_u24_e32 v26, ttmp12, v43", 1, false),
            ("s_setpc_b64 s[30:31]", 1, true),
            ("s_nop 0", 5, false),
            (".long 0x00000000", 6, false),
        ]
    );
    assert_as_llvm(&workshop.path("data.co"));
}

#[test]
fn selections_that_select_nothing_are_errors() {
    let data = std::fs::read(&samples()[0]).unwrap();
    let fails = |listed: Listed<'_>| disassemble(&data, &listed, &mut Disassembly::default()).unwrap_err().to_string();
    let target = Selection { targets: vec!["gfx1".into()], ..Selection::default() };
    assert!(fails(Listed { selection: target, ..Listed::default() }).contains("gfx90a"), "it says what is there");
    assert!(fails(Listed { selection: selected(&["no_such"]), ..Listed::default() }).contains("no_such"));
    assert!(fails(Listed { functions: vec!["no_such".into()], ..Listed::default() }).contains("no_such"));
    assert!(fails(Listed { entries: vec!["0.99".into()], ..Listed::default() }).contains("0.1, 0.2, 0.3"));
}

#[test]
fn entries_have_ids_that_select_them() {
    let data = std::fs::read(&samples()[0]).unwrap();
    let all = inspect(&data, &Inspected::default(), None).unwrap();
    for entry in all.bundles.iter().flat_map(|bundle| &bundle.entries).filter(|entry| entry.target.is_some()) {
        let one = Inspected { entries: vec![entry.id.clone()], ..Inspected::default() };
        let mut extracted = Vec::new();
        let mut extract = |entry: &wavetap::report::inspect::InspectedEntry, bytes: &[u8]| {
            extracted = bytes.to_vec();
            Ok(format!("file {}", entry.id))
        };
        let inspection = inspect(&data, &one, Some(&mut extract)).unwrap();
        assert_eq!(inspection.bundles[0].entries.len(), 1);
        assert_eq!(inspection.bundles[0].entries[0].extracted, Some(format!("file {}", entry.id)));
        assert_eq!(
            inspection.objects.iter().map(|object| &object.target).collect::<Vec<_>>(),
            [entry.target.as_ref().unwrap()]
        );
        let offset = entry.file_offset.expect("the bundle is not compressed") as usize;
        assert_eq!(data[offset..offset + entry.size as usize], extracted, "where the table says");
        let disassembly = {
            let mut disassembly = Disassembly::default();
            let listed = Listed { entries: vec![entry.id.clone()], ..Listed::default() };
            disassemble(&data, &listed, &mut disassembly).unwrap();
            disassembly
        };
        assert_eq!(disassembly.objects.len(), 1);
        assert_eq!(disassembly.objects[0].facts.id, entry.id);
    }
}
