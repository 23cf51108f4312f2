//! Source lines: a zebin made by hand, with two functions whose sequences begin at address 0 until relocations tell
//! them apart; as the compiler writes it, and with the addresses that it has when it is taken from a process.

use wavetap_code::SourceLines as _;
use wavetap_intel::open;

/// A message, and the end of the thread.
const CODE: &[u8] = include_bytes!("puzzles/reuse.krn");

struct Section {
    name: &'static str,
    kind: u32,
    address: u64,
    link: u32,
    info: u32,
    entry: u64,
    contents: Vec<u8>,
}

fn section(name: &'static str, kind: u32, contents: Vec<u8>) -> Section {
    Section { name, kind, address: 0, link: 0, info: 0, entry: 0, contents }
}

fn numbers(all: &[u64]) -> Vec<u8> {
    all.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// A program of DWARF 4: `file`, and rows at 0 (line 10), 16 (line 11) of a function that ends at 32. The place of
/// the address.
fn program(file: &str) -> (Vec<u8>, usize) {
    let mut header = vec![1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1];
    header.extend(b"src\0\0");
    header.extend(file.bytes());
    header.extend([0, 1, 0, 0, 0]);
    let mut body = vec![0, 9, 2];
    let address = body.len();
    body.extend([0; 8]);
    // Lines by 9, a row; addresses by 16, lines by 1, a row; addresses by 16, the end.
    body.extend([3, 9, 1, 2, 16, 3, 1, 1, 2, 16, 0, 1, 1]);
    let length = 2 + 4 + header.len() + body.len();
    let mut bytes = (length as u32).to_le_bytes().to_vec();
    bytes.extend(4_u16.to_le_bytes());
    bytes.extend((header.len() as u32).to_le_bytes());
    bytes.extend(header);
    let address = bytes.len() + address;
    bytes.extend(body);
    (bytes, address)
}

/// With `base`, symbols have addresses, and those of relocations name another section, as in files of a process.
fn zebin(base: u64) -> Vec<u8> {
    let code = [&CODE[..16], &CODE[CODE.len() - 16..]].concat();
    let mut note: Vec<u8> = [8_u32, 4, 1].iter().flat_map(|number| number.to_le_bytes()).collect();
    note.extend(b"IntelGT\0");
    note.extend(1271_u32.to_le_bytes());
    let (mut lines, first) = program("a.cl");
    let (more, second) = program("b.cl");
    let second = lines.len() + second;
    lines.extend(more);
    let strings = b"\0one\0two\0.text.one\0.text.two\0";
    let bases = [base, base + 0x100 * u64::from(base > 0)];
    // Name, type, section, address, size.
    let symbol = |name: u32, kind: u8, section: u16, address: u64, size: u64| {
        let mut bytes = name.to_le_bytes().to_vec();
        bytes.extend([kind, 0]);
        bytes.extend(section.to_le_bytes());
        bytes.extend(numbers(&[address, size]));
        bytes
    };
    const FUNCTION: u8 = 2;
    const OTHER: u8 = 1;
    let of_lines = if base == 0 { [1, 2] } else { [4, 4] };
    let symbols = [
        symbol(0, 0, 0, 0, 0),
        symbol(1, FUNCTION, 1, bases[0], 32),
        symbol(5, FUNCTION, 2, bases[1], 32),
        symbol(9, OTHER, of_lines[0], bases[0], 0),
        symbol(19, OTHER, of_lines[1], bases[1], 0),
    ]
    .concat();
    let relocations = numbers(&[first as u64, 3 << 32 | 1, 0, second as u64, 4 << 32 | 1, 0]);
    let mut sections = vec![
        section("", 0, Vec::new()),
        Section { address: bases[0], ..section(".text.one", 1, code.clone()) },
        Section { address: bases[1], ..section(".text.two", 1, code) },
        section(".note.intelgt.compat", 7, note),
        section(".debug_line", 1, lines),
        Section { link: 6, info: 4, entry: 24, ..section(".rela.debug_line", 4, relocations) },
        Section { link: 7, info: 5, entry: 24, ..section(".symtab", 2, symbols) },
        section(".strtab", 3, strings.to_vec()),
        section(".ze_info", 0xff00_0011, b"kernels:\n  - name: one\n    execution_env: {simd_size: 16}\n".to_vec()),
        section(".shstrtab", 3, Vec::new()),
    ];
    let mut names = Vec::new();
    let mut places = Vec::new();
    for section in &sections {
        places.push(names.len() as u32);
        names.extend(section.name.bytes().chain([0]));
    }
    let last = sections.len() - 1;
    sections[last].contents = names;
    let mut file = vec![0; 64];
    let mut headers = Vec::new();
    for (section, name) in sections.iter().zip(places) {
        let offset = file.len() as u64;
        headers.extend([name, section.kind].iter().flat_map(|number| number.to_le_bytes()));
        headers.extend(numbers(&[0, section.address, offset, section.contents.len() as u64]));
        headers.extend([section.link, section.info].iter().flat_map(|number| number.to_le_bytes()));
        headers.extend(numbers(&[1, section.entry]));
        file.extend(&section.contents);
    }
    let offset = file.len() as u64;
    file.extend(headers);
    file[..16].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    file[16..20].copy_from_slice(&[1, 0, 205, 0]);
    file[20] = 1;
    file[40..48].copy_from_slice(&offset.to_le_bytes());
    file[52..54].copy_from_slice(&64_u16.to_le_bytes());
    file[58..60].copy_from_slice(&64_u16.to_le_bytes());
    file[60..62].copy_from_slice(&(sections.len() as u16).to_le_bytes());
    file[62..64].copy_from_slice(&(last as u16).to_le_bytes());
    file
}

#[test]
fn lines_belong_to_the_function_of_their_relocation() {
    for base in [0, 0x8000_0010_0000] {
        let file = zebin(base);
        let zebins = open(&file, "made").expect("a zebin");
        let functions = zebins[0].functions();
        let found: Vec<_> = functions.iter().map(|function| (function.name, function.is_kernel)).collect();
        assert_eq!(found, [("one", true), ("two", false)]);
        assert!(!zebins[0].line_table().expect("well-formed").is_empty());
        for (function, file) in functions.iter().zip(["src/a.cl", "src/b.cl"]) {
            assert_eq!(function.range, 0..32);
            let lines = zebins[0].lines(function);
            let at = |address| lines.line(address).map(|line| (line.file, line.line));
            assert_eq!(at(0), Some((file.to_owned(), 10)));
            assert_eq!(at(16), Some((file.to_owned(), 11)));
            assert_eq!(at(32), None);
            let code = function.code(&lines).expect("code");
            assert_eq!(code.lines().line(16).map(|line| line.line), Some(11));
        }
    }
}

#[test]
fn a_broken_line_table_costs_the_lines_alone() {
    let mut file = zebin(0);
    let place = file.windows(4).position(|window| window == b"a.cl").expect("the file's name");
    // The version of the first program: after the code and before its file's name.
    let version = place - 5 - 18 - 4 - 2;
    assert_eq!(file[version], 4);
    file[version] = 99;
    let zebins = open(&file, "made").expect("the rest is whole");
    let error = zebins[0].line_table().expect_err("no such version").to_string();
    assert!(error.contains(".debug_line"), "{error}");
    let function = &zebins[0].functions()[0];
    assert_eq!(zebins[0].lines(function).line(0), None);
    assert!(function.code(&()).is_ok());
}
