//! Disassembly in the form of `llvm-objdump -d`: a tab, the instruction, and its address and words as a comment. The
//! two can be compared with `diff`.

use std::fmt::Write as _;

use super::disassembly::{CodeText, InstText};

/// Column of the comment after the tab.
const COMMENT_COLUMN: usize = 59;

/// So many bytes of zeros or more are left out.
const SHORTEST_ZEROS: u64 = 8;

/// Writes the code of one object after the other.
#[derive(Debug, Default)]
pub struct Plain {
    section: Option<String>,
}

impl Plain {
    /// The lines at the beginning of an object. `name` is how a person would call it.
    pub fn object(&mut self, name: &str) -> String {
        self.section = None;
        format!("\n{name}:\tfile format elf64-amdgpu\n")
    }

    /// The lines of the next code.
    pub fn code(&mut self, code: &CodeText) -> String {
        let mut out = String::new();
        let new_section = self.section.as_ref() != Some(&code.section);
        if new_section {
            // Writing to a String cannot fail.
            let _ = write!(out, "\nDisassembly of section {}:\n", code.section);
            self.section = Some(code.section.clone());
        }
        match (&code.name, new_section) {
            (Some(name), _) => {
                let _ = write!(out, "\n{:016x} <{name}>:\n", code.address);
            }
            (None, true) => {
                let _ = write!(out, "\n{:016x} <{}>:\n", code.address, code.section);
            }
            (None, false) => {}
        }
        let mut skipped = code.address;
        for (index, inst) in code.instructions.iter().enumerate() {
            if inst.address < skipped {
                continue;
            }
            let zeros = zeros(&code.instructions[index..]);
            if zeros >= SHORTEST_ZEROS {
                skipped = inst.address + zeros;
                out.push_str("\t\t...\n");
                continue;
            }
            for index in 0..inst.times {
                line(inst, inst.address + index * inst.size(), &mut out);
            }
        }
        out
    }
}

/// Bytes of the words that are 0 at the beginning of these instructions.
fn zeros(instructions: &[InstText]) -> u64 {
    let is_zero = |inst: &&InstText| inst.bytes.bytes().all(|digit| digit == b'0');
    instructions.iter().take_while(is_zero).map(|inst| inst.size() * inst.times).sum()
}

fn line(inst: &InstText, address: u64, out: &mut String) {
    let _ = write!(out, "\t{:<COMMENT_COLUMN$}// {address:012X}:", inst.instruction);
    for word in inst.words() {
        let _ = write!(out, " {word}");
    }
    if let Some(to) = inst.to.as_ref().filter(|_| inst.is_branch()) {
        let _ = to.symbol.as_ref().map(|symbol| write!(out, " <{symbol}>"));
    }
    out.push('\n');
}
