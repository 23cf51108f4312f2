//! What the checker says of host files whose program headers had to make room.

use wavetap::elf::Elf;
use wavetap::elf::constants::{PT_GNU_PROPERTY, PT_INTERP};
use wavetap::pipeline::{Options, probe, rewrite};
use wavetap::verify::check_files;

/// Size of a program header (ELF, `Elf64_Phdr`).
const HEADER: usize = 56;

/// A sample without the header that says again where notes are, as executables of lld have none: the table then grows
/// over the interpreter's name, which moves.
fn without_duplicate() -> Vec<u8> {
    let mut file = std::fs::read("hip-samples/bin/vectoradd").expect("a sample");
    let (offset, property) = {
        let elf = Elf::parse(&file).expect("an ELF file");
        let property =
            elf.segments.iter().position(|segment| segment.kind == PT_GNU_PROPERTY).expect("a sample of GNU ld");
        (elf.header.segments_offset as usize, property)
    };
    file[offset + property * HEADER..][..HEADER].fill(0);
    file
}

fn interpreter(file: &[u8]) -> (usize, Vec<u8>) {
    let elf = Elf::parse(file).expect("an ELF file");
    let segment = elf.segments.iter().find(|segment| segment.kind == PT_INTERP).expect("an executable");
    (segment.offset as usize, file[segment.offset as usize..][..segment.file_size as usize].to_vec())
}

#[test]
fn the_name_of_the_interpreter_may_move_and_nothing_else() {
    let original = without_duplicate();
    let mut rewritten =
        rewrite(&original, &Options { probes: vec![probe::BRANCHES], ..Options::default() }).expect("rewritten").bytes;
    let ((was, name), (is, same)) = (interpreter(&original), interpreter(&rewritten));
    assert!(was != is && name == same, "{was:#x} {is:#x}");
    assert_eq!(check_files(&original, &rewritten).expect("readable").findings, []);
    rewritten[is] ^= 1;
    let findings = check_files(&original, &rewritten).expect("readable").findings;
    assert!(
        findings.iter().any(|(_, finding)| finding.message.contains("an original segment was changed")),
        "{findings:?}"
    );
}
