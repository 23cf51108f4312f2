//! Code that compilers and assemblers really made, decoded, printed and encoded again, against LLVM's disassembler.
//!
//! The samples' code objects are always tried. `WAVETAP_ISA_VECTORS=DIR` also tries byte vectors: every `*.txt` of the folder whose name begins
//! with a target and a `_` (or with `gfx9_`, which is gfx900), with lines of `0x..,0x..` bytes or `[0x..]` lists, as LLVM's disassembler tests have them.

use std::path::{Path, PathBuf};

use llvm_oracle::{Answer, Oracle, Query};
use wavetap::code_object::CodeObject;
use wavetap::isa::{self, Target};
use wavetap::offload_bundle::Input;

/// Most differences that a failure shows.
const SHOWN: usize = 60;

struct Word {
    target: Target,
    place: String,
    bytes: Vec<u8>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

/// What is wrong with our reading of a word, if LLVM reads it as an instruction.
fn complaint(word: &Word, answer: &Answer) -> Option<String> {
    let Answer::Instruction { size, text } = answer else { return None };
    let found = match isa::decode(word.target, &word.bytes) {
        Ok(inst) => {
            let again = isa::encode(word.target, &inst).map_err(|error| error.to_string());
            if again.as_deref() != Ok(&word.bytes[..usize::from(inst.size)]) {
                return Some(format!("{} {}: {text} encodes to {again:x?}", word.target.name(), word.place));
            }
            if usize::from(inst.size) == *size && isa::print(word.target, &inst) == *text {
                return None;
            }
            isa::print(word.target, &inst)
        }
        Err(error) => error.to_string(),
    };
    Some(format!("{} {} {:02x?}\n    ours {found}\n    LLVM {text}", word.target.name(), word.place, word.bytes))
}

fn check(words: &[Word]) {
    let queries: Vec<Query<'_>> = words.iter().map(|word| Query { target: word.target.name(), bytes: &word.bytes, pc: 0 }).collect();
    let answers = Oracle::new().expect("the oracle is built").ask_all(&queries);
    let instructions = answers.iter().filter(|answer| matches!(answer, Answer::Instruction { .. })).count();
    let complaints: Vec<String> = words.iter().zip(&answers).filter_map(|(word, answer)| complaint(word, answer)).collect();
    println!("{instructions} instructions, {} differ", complaints.len());
    assert!(complaints.is_empty(), "{} differ:\n{}", complaints.len(), complaints[..complaints.len().min(SHOWN)].join("\n"));
    assert!(instructions > 0, "nothing was compared");
}

#[test]
fn every_instruction_of_the_samples() {
    let mut words = Vec::new();
    for sample in std::fs::read_dir(root().join("hip-samples/bin")).expect("the samples") {
        let path = sample.expect("a sample").path();
        let data = std::fs::read(&path).expect("a readable sample");
        for found in Input::parse(&data).expect("a HIP program").code_objects() {
            let object = CodeObject::parse(found.bytes).expect("a code object");
            let Some(target) = object.target() else { continue };
            let text = object.elf().sections.iter().find(|section| section.name == ".text").expect("code");
            let code = object.elf().contents(text).expect("code in the file");
            let mut at = 0;
            while at < code.len() {
                let inst = isa::decode(target, &code[at..])
                    .unwrap_or_else(|error| panic!("{} {} {at:#x}: {error}", path.display(), target.name()));
                let end = at + usize::from(inst.size);
                words.push(Word { target, place: format!("{} {at:#x}", path.display()), bytes: code[at..end].to_vec() });
                at = end;
            }
        }
    }
    check(&words);
}

#[test]
fn byte_vectors() {
    let Some(folder) = std::env::var_os("WAVETAP_ISA_VECTORS") else { return };
    let mut words = Vec::new();
    for file in std::fs::read_dir(folder).expect("the folder of vectors") {
        let path = file.expect("a file").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let target = match name.split_once(['_', '-', '.']) {
            Some(("gfx9", _)) => Target::by_name("gfx900"),
            Some(("gfx940", _)) => Target::by_name("gfx942"),
            Some((target, _)) => Target::by_name(target),
            None => None,
        };
        let (Some(target), Some("txt")) = (target, path.extension().and_then(|extension| extension.to_str())) else { continue };
        let text = String::from_utf8_lossy(&std::fs::read(&path).expect("readable vectors")).into_owned();
        for (number, line) in text.lines().enumerate() {
            let list = line.trim().trim_start_matches('[').trim_end_matches(']');
            let bytes: Option<Vec<u8>> = list.split([',', ' ']).filter(|part| !part.is_empty()).map(hex_byte).collect();
            if let Some(bytes) = bytes
                && bytes.len() >= 4
            {
                words.push(Word { target, place: format!("{name}:{}", number + 1), bytes });
            }
        }
    }
    check(&words);
}

fn hex_byte(text: &str) -> Option<u8> {
    u8::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}
