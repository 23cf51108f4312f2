//! Where product code may have the text of mnemonics: what an operation is, stages ask of `Opcode` and its flags, which
//! the instruction tables define. A text that is compared says nothing when an operation is renamed or added.

use std::path::Path;

/// Files that have them, and how many: what prints or reads assembler text, messages, and what builds instructions from
/// mnemonics. The numbers only fall.
const ALLOWED: &[(&str, usize)] = &[
    // Why the emulator does not know the meaning of an operation: a message, for all names that begin so.
    ("crates/emulator/src/exec/missing.rs", 45),
    // Mnemonics for the assembler in constants.
    ("crates/instrument/src/asm.rs", 4),
    // Names of the keys of a kernel's metadata.
    ("crates/object/src/code_object/metadata.rs", 1),
    // Printed instructions, as reports have them.
    ("crates/report/src/disassembly/mod.rs", 2),
];

/// What an encoding adds to the name of an operation, or a width of masks that is added later takes from it.
const ENDINGS: &[&str] = &["_e32", "_e64", "_dpp", "_sdwa"];
/// Calls that build instructions: their mnemonics are for the assembler, which refuses those that it does not know.
const ASSEMBLERS: &[&str] = &[
    ".op(",
    ".with(",
    ".masks(",
    ".branch(",
    ".lds(",
    ".lds_load(",
    ".scalar_load(",
    ".global(",
    "build(",
    "encode(",
    "branch_word(",
    "wait(",
    "largest_offset(",
];
/// Questions to a text.
const QUESTIONS: &[&str] = &["contains(", "starts_with(", "ends_with(", "strip_prefix(", "strip_suffix("];

/// The places of a file in which mnemonics are text, by line. Of tests there is none: they speak assembler.
pub fn places(text: &str, names: &[&str]) -> Vec<(usize, String)> {
    let product = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let mut found = Vec::new();
    for (line, code) in (1..).zip(product.lines()) {
        let code = without_comment(code);
        if ASSEMBLERS.iter().any(|call| code.contains(call)) {
            continue;
        }
        let literals = code.split('"').skip(1).step_by(2).filter(|literal| is_mnemonic(literal, names));
        found.extend(literals.map(|literal| (line, format!("\"{literal}\""))));
        let asked = QUESTIONS.iter().filter(|question| {
            [".name().", ".variant.name.", ".mnemonic."].iter().any(|text| code.contains(&format!("{text}{question}")))
        });
        found.extend(asked.map(|question| (line, format!("{question}…) of a name"))));
    }
    found
}

/// Whether a file is product code that may have none but the allowed ones.
pub fn is_product(file: &Path) -> bool {
    let inside = |folder: &str| file.starts_with(folder);
    let is_test = file.file_stem().is_some_and(|stem| stem == "tests") || file.iter().any(|part| part == "tests");
    (inside("src")
        || inside("cli/src")
        || inside("hip-emulator/src")
        || (inside("crates") && file.iter().nth(2).is_some_and(|part| part == "src")))
        && !is_test
}

/// What is wrong with a file that has them in so many places.
pub fn complaint(file: &Path, places: &[(usize, String)]) -> Option<String> {
    let allowed = ALLOWED.iter().find(|(allowed, _)| Path::new(allowed) == file).map_or(0, |(_, count)| *count);
    match places.len() {
        count if count == allowed => None,
        count if count < allowed => {
            Some(format!("{}: {count} mnemonics are text, {allowed} are allowed: lower the number", file.display()))
        }
        _ => {
            let lines: Vec<String> = places.iter().map(|(line, what)| format!("{line}: {what}")).collect();
            Some(format!("{}: mnemonics are text, {allowed} may be: {}", file.display(), lines.join(", ")))
        }
    }
}

/// Files of the list that are not there.
pub fn missing(root: &Path) -> Vec<String> {
    let gone = ALLOWED.iter().filter(|(file, _)| !root.join(file).is_file());
    gone.map(|(file, _)| format!("{file} is allowed to have mnemonics and is not there")).collect()
}

/// The names of all operations, of the text of `isa-tables/opcodes.yaml`.
pub fn names(table: &str) -> Vec<&str> {
    let lines = table.lines().skip_while(|line| *line != "opcodes:").filter_map(|line| line.strip_prefix("- "));
    lines.filter_map(|line| line.split(' ').next()).collect()
}

/// Whether it is a name, one of an encoding, or what several names begin with.
fn is_mnemonic(literal: &str, names: &[&str]) -> bool {
    let name = ENDINGS.iter().find_map(|ending| literal.strip_suffix(ending)).unwrap_or(literal);
    name.contains('_') && name.len() > 2 && names.iter().any(|known| known.starts_with(name))
}

/// A line up to its comment.
fn without_comment(line: &str) -> &str {
    let mut quoted = false;
    for (at, c) in line.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '/' if !quoted && line[at..].starts_with("//") => return &line[..at],
            _ => {}
        }
    }
    line
}

#[test]
fn mnemonics_are_found_in_code_only() {
    let names = names("flags:\n- s_flag\nopcodes:\n- s_nop nop\n- v_add_f32 float\n- v_add_f64\n");
    assert_eq!(names, ["s_nop", "v_add_f32", "v_add_f64"]);
    let text = "// \"s_nop\"\nlet a = name == \"v_add_f32_e64\"; // \"s_nop\"\nif inst.name().starts_with(\"x\") {}\n\
        let b = \"v_add f32\";\n\
        let c = name.len() > \"v_add_\".len();\nasm.op(\"s_nop\", &[]);\n";
    let found: Vec<usize> = places(text, &names).into_iter().map(|(line, _)| line).collect();
    assert_eq!(found, [2, 3, 5]);
    assert!(places(&format!("#[cfg(test)]\nmod tests {{\n{text}}}"), &names).is_empty());
    assert!(
        is_product(Path::new("crates/verify/src/hazards/matrix.rs"))
            && !is_product(Path::new("crates/verify/src/tests/mod.rs"))
    );
    assert!(complaint(Path::new("src/lib.rs"), &[(1, "\"s_nop\"".to_owned())]).is_some());
}
