//! A small file made by hand: what is wrong with it is found and located, wherever it is.

use object::endian::{U16, U32, U64};

use super::constants::{ELFCLASS64, ELFDATA2LSB, ET_DYN, EV_CURRENT, Ident, OsAbi, PF_R, SHT_STRTAB};
use super::*;
use wavetap_base::error::Kind;

const PAGE: u64 = 0x1000;
const NOTE_OWNER: &[u8] = b"WAVE\0";
const NOTE_KIND: NoteType = NoteType(7);

/// Where the parts of [`file`] lie.
const SEGMENTS: u64 = 64;
const DYNAMIC: u64 = SEGMENTS + 3 * PROGRAM_HEADER_SIZE;
const RELA: u64 = DYNAMIC + 5 * 16;
const RELR: u64 = RELA + 24;
const NOTES: u64 = RELR + 16;
const SYMBOLS: u64 = NOTES + 24 + 28;
const STRINGS: u64 = SYMBOLS + 2 * 24;
const SECTIONS: u64 = STRINGS + 32;
const END: u64 = SECTIONS + 3 * 64;

fn section(name: u32, kind: SectionType, offset: u64, size: u64, link: u32) -> SectionHeader64<LE> {
    SectionHeader64 {
        sh_name: U32::new(LE, name),
        sh_type: U32::new(LE, kind),
        sh_flags: U64::new(LE, SectionFlags(0)),
        sh_addr: U64::new(LE, 0),
        sh_offset: U64::new(LE, offset),
        sh_size: U64::new(LE, size),
        sh_link: U32::new(LE, link),
        sh_info: U32::new(LE, 0),
        sh_addralign: U64::new(LE, 1),
        sh_entsize: U64::new(LE, 0),
    }
}

fn segment(kind: ProgramType, offset: u64, size: u64) -> ProgramHeader64<LE> {
    ProgramHeader64 {
        p_type: U32::new(LE, kind),
        p_flags: U32::new(LE, PF_R),
        p_offset: U64::new(LE, offset),
        p_vaddr: U64::new(LE, PAGE + offset),
        p_paddr: U64::new(LE, PAGE + offset),
        p_filesz: U64::new(LE, size),
        p_memsz: U64::new(LE, size),
        p_align: U64::new(LE, PAGE),
    }
}

/// One loaded segment, a dynamic table with both sorts of relocations, two notes, one symbol.
fn file() -> Vec<u8> {
    let header = FileHeader64 {
        e_ident: Ident {
            magic: ELFMAG,
            class: ELFCLASS64,
            data: ELFDATA2LSB,
            version: EV_CURRENT,
            os_abi: OsAbi(64),
            abi_version: 3,
            padding: [0; 7],
        },
        e_type: U16::new(LE, ET_DYN),
        e_machine: U16::new(LE, Machine(224)),
        e_version: U32::new(LE, 1),
        e_entry: U64::new(LE, 0),
        e_phoff: U64::new(LE, SEGMENTS),
        e_shoff: U64::new(LE, SECTIONS),
        e_flags: U32::new(LE, constants::FileFlags(0x3f)),
        e_ehsize: U16::new(LE, 64),
        e_phentsize: U16::new(LE, 56),
        e_phnum: U16::new(LE, 3),
        e_shentsize: U16::new(LE, 64),
        e_shnum: U16::new(LE, 3),
        e_shstrndx: U16::new(LE, SymbolSection(1)),
    };
    let mut out = pod::bytes_of(&header).to_vec();
    for header in [segment(PT_LOAD, 0, END), segment(PT_DYNAMIC, DYNAMIC, 5 * 16), segment(PT_NOTE, NOTES, 24 + 28)] {
        out.extend_from_slice(pod::bytes_of(&header));
    }
    let dynamic = [(DT_RELA, PAGE + RELA), (DT_RELASZ, 24), (DT_RELR, PAGE + RELR), (DT_RELRSZ, 16), (DT_NULL, 0)];
    for (tag, value) in dynamic {
        out.extend([tag.0 as u64, value].map(u64::to_le_bytes).as_flattened());
    }
    out.extend([0x5000, 5 << 32 | 8, -16i64 as u64].map(u64::to_le_bytes).as_flattened());
    // The word at 0x6000, then the first and the last of the 63 after it.
    out.extend([0x6000, 1 | 1 << 1 | 1 << 63u64].map(u64::to_le_bytes).as_flattened());
    for (owner, kind, contents) in [(&b"GNU\0"[..], 7, &b"12345678"[..]), (NOTE_OWNER, NOTE_KIND.0, b"contents")] {
        out.extend([owner.len() as u32, contents.len() as u32, kind].map(u32::to_le_bytes).as_flattened());
        out.extend_from_slice(owner);
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend_from_slice(contents);
    }
    let symbol = Sym64 {
        st_name: U32::new(LE, 1),
        st_info: SymbolInfo::new(constants::STB_GLOBAL, STT_FUNC),
        st_other: SymbolOther(0),
        st_shndx: U16::new(LE, SymbolSection(2)),
        st_value: U64::new(LE, 0x1234),
        st_size: U64::new(LE, 8),
    };
    out.extend_from_slice(&[0; 24]);
    out.extend_from_slice(pod::bytes_of(&symbol));
    out.extend_from_slice(b"\0kernel\0.strtab\0.symtab\0\0\0\0\0\0\0\0\0");
    for header in
        [section(0, SHT_NULL, 0, 0, 0), section(8, SHT_STRTAB, STRINGS, 32, 0), section(16, SHT_SYMTAB, SYMBOLS, 48, 1)]
    {
        out.extend_from_slice(pod::bytes_of(&header));
    }
    assert_eq!(out.len() as u64, END);
    out
}

/// Everything that can be asked of a file.
fn read_all(data: &[u8]) -> Result<()> {
    let elf = Elf::parse(data)?;
    elf.symbols()?;
    elf.dynamic_symbols()?;
    elf.dynamic_relocations()?;
    elf.is_relr(0x6000)?;
    elf.notes(NOTE_OWNER, NOTE_KIND)?;
    for section in &elf.sections {
        elf.contents(section)?;
    }
    for load in elf.loads() {
        elf.bytes_at(load.address, load.file_size)?;
    }
    Ok(())
}

fn with(place: u64, value: &[u8]) -> Error {
    let mut data = file();
    data[place as usize..place as usize + value.len()].copy_from_slice(value);
    read_all(&data).expect_err("refused")
}

#[test]
fn every_part_is_read() {
    let data = file();
    read_all(&data).expect("reads");
    let elf = Elf::parse(&data).expect("parses");
    assert_eq!(
        (elf.header.kind, elf.header.machine, elf.header.os_abi, elf.header.abi_version),
        (ET_DYN, Machine(224), 64, 3)
    );
    assert_eq!(elf.sections.iter().map(|section| section.name).collect::<Vec<_>>(), ["", ".strtab", ".symtab"]);
    let symbols = elf.symbols().expect("reads");
    assert_eq!(
        (symbols[1].name, symbols[1].address, symbols[1].size, symbols[1].is_function()),
        ("kernel", 0x1234, 8, true)
    );
    assert!(!symbols[0].is_defined() && elf.dynamic_symbols().expect("none").is_empty());
    let [relocation] = elf.dynamic_relocations().expect("reads")[..] else { panic!("one relocation") };
    let expected = Relocation { address: 0x5000, kind: RelocationType(8), symbol: 5, addend: -16, file_offset: RELA };
    assert_eq!(relocation, expected);
    let relative: Vec<_> = (0x5ff0..0x6300).filter(|&place| elf.is_relr(place).expect("reads")).collect();
    assert_eq!(relative, [0x6000, 0x6008, 0x6000 + 63 * 8]);
    let note = elf.notes(NOTE_OWNER, NOTE_KIND).expect("reads")[0];
    assert_eq!((note.descriptor, &data[note.file_offset as usize..][..8]), (&b"contents"[..], &b"contents"[..]));
    assert_eq!(elf.notes(NOTE_OWNER, NoteType(8)).expect("reads"), []);
    assert_eq!(elf.dynamic().expect("reads")[1].file_offset, DYNAMIC + 16);
}

#[test]
fn every_truncation_is_an_error() {
    let data = file();
    for len in 0..data.len() {
        assert!(read_all(&data[..len]).is_err(), "{len} of {} bytes", data.len());
    }
}

#[test]
fn changed_bytes_never_panic() {
    let data = file();
    let mut refused = 0;
    for place in 0..data.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut data = data.clone();
            data[place] = value;
            refused += usize::from(read_all(&data).is_err());
        }
    }
    assert!(refused > 500, "{refused}");
}

#[test]
fn lies_are_found_and_located() {
    assert_eq!(with(4, &[1]).kind(), Kind::Unsupported);
    assert_eq!(with(5, &[2]).offset(), Some(4));
    assert_eq!(with(0, b"ELF").offset(), Some(0));
    // Extended numbering, in each of its three forms.
    for (place, value) in [(56, 0xffff), (60, 0), (62, 0xffffu16)] {
        assert_eq!(with(place, &value.to_le_bytes()).kind(), Kind::Unsupported, "{place}");
    }
    assert_eq!(with(54, &[57]).kind(), Kind::Malformed);
    assert_eq!(with(32, &(END - 8).to_le_bytes()).offset(), Some(END - 8));
    assert!(with(40, &END.to_le_bytes()).to_string().contains("3 headers expected"));
    let second = SEGMENTS + PROGRAM_HEADER_SIZE;
    assert!(with(second + 32, &[0xff; 8]).to_string().contains(&format!("program header at {second:#x}")));
    assert_eq!(with(SEGMENTS + 40, &[0; 8]).offset(), Some(SEGMENTS));
    assert!(
        with(SECTIONS + 64 + 24, &[0xff; 8]).to_string().contains(&format!("section header at {:#x}", SECTIONS + 64))
    );
    assert!(with(SECTIONS + 128 + 32, &47u64.to_le_bytes()).to_string().contains("symbol table .symtab"));
    assert!(with(SYMBOLS + 24, &100u32.to_le_bytes()).to_string().contains("symbol table .symtab"));
    assert!(with(STRINGS + 1, &[0xff]).message().contains("UTF-8"));
    assert!(with(DYNAMIC + 8, &[0xff; 8]).message().contains("DT_RELA"));
    assert_eq!(with(DYNAMIC + 16 + 8, &23u64.to_le_bytes()).offset(), Some(RELA));
    assert!(with(DYNAMIC + 48 + 8, &15u64.to_le_bytes()).message().contains("a multiple of 8"));
    assert_eq!(with(NOTES, &[0xff; 4]).offset(), Some(NOTES));
}

#[test]
fn names_have_a_limit() {
    let mut strings = vec![b'a'; 2 * MAX_NAME as usize];
    strings.push(0);
    assert_eq!(string_at(&strings, 0).expect("the null name"), "");
    assert_eq!(string_at(&strings, MAX_NAME).expect("just short enough").len() as u64, MAX_NAME);
    assert!(string_at(&strings, MAX_NAME - 1).is_err());
    assert!(string_at(&strings, strings.len() as u64 + 1).is_err());
    assert!(string_at(&strings, u64::MAX).is_err());
}

#[test]
fn addresses_lie_in_one_segment() {
    let data = file();
    let elf = Elf::parse(&data).expect("parses");
    assert_eq!(elf.file_offset(PAGE, END), Some(0));
    assert_eq!(
        (elf.file_offset(PAGE, END + 1), elf.file_offset(PAGE - 1, 1), elf.file_offset(u64::MAX, 2)),
        (None, None, None)
    );
}
