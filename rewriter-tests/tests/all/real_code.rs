//! Every instruction of the samples: decoded, it has the size and the text that LLVM gives it, and it encodes to its
//! own bytes.

use std::path::Path;

use llvm_oracle::{Answer, Oracle, Query};
use rewriter_tests::real_code::{self, Code};
use wavetap::isa;

/// What was looked at.
#[derive(Default)]
struct Seen {
    instructions: usize,
    /// Words that both sides call no instruction: padding and data.
    rejected: usize,
    wrong: Vec<String>,
}

/// As many complaints as a person can use.
const ENOUGH: usize = 40;

fn check(code: &Code, oracle: &mut Oracle, seen: &mut Seen) {
    let mut places = Vec::new();
    let mut at = 0;
    while at + 4 <= code.bytes.len() {
        let decoded = isa::decode(code.target, &code.bytes[at..]);
        let size = decoded.as_ref().map_or(4, |inst| usize::from(inst.size));
        places.push((at, decoded));
        at += size;
    }
    let window = |at: usize| &code.bytes[at..code.bytes.len().min(at + llvm_oracle::MAX_INSTRUCTION_BYTES)];
    let queries: Vec<Query<'_>> = places
        .iter()
        .map(|(at, _)| Query { target: code.target.name(), bytes: window(*at), pc: code.address + *at as u64 })
        .collect();
    for ((at, decoded), answer) in places.iter().zip(oracle.ask_all(&queries)) {
        let (place, bytes) = (format!("{} {:#x}", code.name, code.address + *at as u64), window(*at));
        match (decoded, answer) {
            (Ok(inst), Answer::Instruction { size, text }) => {
                seen.instructions += 1;
                let ours = isa::print(code.target, inst);
                let ours = ours.split_whitespace().collect::<Vec<_>>().join(" ");
                if usize::from(inst.size) != size || ours != text {
                    seen.wrong.push(format!("{place}: {} bytes `{ours}`, LLVM: {size} bytes `{text}`", inst.size));
                }
                match isa::encode(code.target, inst) {
                    Ok(again) if again == bytes[..usize::from(inst.size)] => {}
                    Ok(again) => {
                        seen.wrong.push(format!("{place}: `{text}` {:02x?} encodes to {again:02x?}", &bytes[..size]))
                    }
                    Err(e) => seen.wrong.push(format!("{place}: `{text}` does not encode: {e}")),
                }
            }
            (Err(_), Answer::Rejected | Answer::Crash) => seen.rejected += 1,
            (Ok(inst), _) => seen.wrong.push(format!(
                "{place}: `{}`, LLVM rejects {:02x?}",
                isa::print(code.target, inst),
                &bytes[..8.min(bytes.len())]
            )),
            (Err(e), Answer::Instruction { text, .. }) => seen.wrong.push(format!("{place}: LLVM: `{text}`, we: {e}")),
        }
    }
}

fn check_files(files: &[impl AsRef<Path>]) -> Seen {
    let mut oracle = Oracle::new().expect("the Rust toolchain has LLVM");
    let mut seen = Seen::default();
    for file in files {
        for code in real_code::of_file(file.as_ref()).expect("readable") {
            check(&code, &mut oracle, &mut seen);
        }
    }
    let shown: Vec<&str> = seen.wrong.iter().take(ENOUGH).map(String::as_str).collect();
    assert!(
        seen.wrong.is_empty(),
        "{} of {} instructions are wrong:\n{}",
        seen.wrong.len(),
        seen.instructions,
        shown.join("\n")
    );
    println!("{} instructions, {} words that are none", seen.instructions, seen.rejected);
    seen
}

#[test]
fn every_instruction_of_the_samples_reads_as_llvm_reads_it_and_encodes_to_itself() {
    let seen = check_files(&real_code::sample_files());
    assert!(seen.instructions > 5_000, "{}", seen.instructions);
}
