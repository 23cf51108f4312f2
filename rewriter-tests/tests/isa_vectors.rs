//! Byte vectors of LLVM's own disassembler tests, decoded, printed and encoded again, against LLVM's disassembler.
//!
//! They are LLVM's and not part of this project: `WAVETAP_ISA_VECTORS=DIR` names the folder
//! (`llvm/test/MC/Disassembler/AMDGPU`). Every `*.txt` whose name begins with a target (`gfx9` is gfx900, `gfx940` is
//! gfx942) and has lines of `0x..,0x..` bytes or `[0x..]` lists is tried.

use llvm_oracle::{Answer, Oracle, Query};
use rewriter_tests::fillings::llvm_processor;
use wavetap::isa::{self, Target};

/// Most differences that a failure shows.
const SHOWN: usize = 60;

struct Word {
    target: Target,
    place: String,
    bytes: Vec<u8>,
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
    let processors: Vec<String> =
        words.iter().map(|word| llvm_processor(word.target, word.target.instruction_set())).collect();
    let queries: Vec<Query<'_>> =
        words.iter().zip(&processors).map(|(word, target)| Query { target, bytes: &word.bytes, pc: 0 }).collect();
    let answers = Oracle::new().expect("the oracle is built").ask_all(&queries);
    let instructions = answers.iter().filter(|answer| matches!(answer, Answer::Instruction { .. })).count();
    let complaints: Vec<String> =
        words.iter().zip(&answers).filter_map(|(word, answer)| complaint(word, answer)).collect();
    println!("{instructions} instructions, {} differ", complaints.len());
    assert!(
        complaints.is_empty(),
        "{} differ:\n{}",
        complaints.len(),
        complaints[..complaints.len().min(SHOWN)].join("\n")
    );
    assert!(instructions > 0, "nothing was compared");
}

#[test]
fn every_vector_reads_as_llvm_reads_it_and_encodes_to_itself() {
    let Some(folder) = std::env::var_os("WAVETAP_ISA_VECTORS") else {
        println!("not asked for: WAVETAP_ISA_VECTORS names a folder of them");
        return;
    };
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
        let (Some(target), Some("txt")) = (target, path.extension().and_then(|extension| extension.to_str())) else {
            continue;
        };
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
