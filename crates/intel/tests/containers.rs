//! Zebins and what holds them: what is read, what is refused, and that damage is one error.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use wavetap_base::error::Kind;
use wavetap_code::{Class, StallReason};
use wavetap_intel::{Target, open};

/// Compiled from `zebins/kernels.cl`.
const ZEBIN: &[u8] = include_bytes!("zebins/kernels.zebin");
/// Ponte Vecchio among product families, as the note has it.
const FAMILY: [u8; 4] = 1271_u32.to_le_bytes();

fn find(bytes: &[u8], what: &[u8]) -> usize {
    bytes.windows(what.len()).position(|window| window == what).expect("it is there")
}

fn patched(what: &[u8], with: &[u8]) -> Vec<u8> {
    let mut bytes = ZEBIN.to_vec();
    let place = find(&bytes, what);
    bytes[place..place + with.len()].copy_from_slice(with);
    bytes
}

/// The note: sizes of owner and description, type, owner, family.
fn family_note() -> Vec<u8> {
    let mut note: Vec<u8> = [8_u32, 4, 1].iter().flat_map(|number| number.to_le_bytes()).collect();
    note.extend(b"IntelGT\0");
    note
}

fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, contents) in members {
        bytes.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 644, contents.len()).bytes());
        bytes.extend(*contents);
        bytes.resize(bytes.len().next_multiple_of(2), b'\n');
    }
    bytes
}

#[test]
fn kernels_of_a_zebin() {
    let zebins = open(ZEBIN, "kernels.zebin").expect("a zebin");
    let [zebin] = &zebins[..] else { panic!("one zebin") };
    assert_eq!(zebin.target(), Target::PonteVecchio);
    let names: Vec<_> = zebin.functions().iter().map(|function| (function.name, function.is_kernel)).collect();
    assert_eq!(names, [("gather", true), ("reduce", true)]);
    for function in zebin.functions() {
        assert_eq!((function.lanes, function.register_count), (32, 128), "{}", function.name);
        let lines = zebin.lines(function);
        let code = function.code(&lines).expect("known instructions");
        assert_eq!((code.name(), code.properties().target.as_str()), (function.name, "pvc"));
        assert_eq!(code.properties().stall_reason("SbidStall"), Some(StallReason::InFlight));
        let has = |class| code.instructions().iter().any(|inst| inst.class == class);
        assert!(has(Class::Global), "{}", function.name);
        assert_eq!((has(Class::Shared), has(Class::Barrier)), (function.name == "reduce", function.name == "reduce"));
        assert_eq!(has(Class::Special), function.name == "gather", "a square root");
        assert!(code.waits().iter().any(|wait| !wait.operations.is_empty()));
    }
}

#[test]
fn an_archive_of_several_devices_gives_those_that_are_decoded() {
    let mut other = ZEBIN.to_vec();
    let place = find(&other, &family_note()) + family_note().len();
    other[place..place + 4].copy_from_slice(&1270_u32.to_le_bytes());
    let both = archive(&[("pad_0", &[0; 8]), ("dg2", &other), ("pvc", ZEBIN)]);
    assert_eq!(open(&both, "multi").expect("one is decoded").len(), 1);
    let error = open(&archive(&[("dg2", &other)]), "multi").expect_err("none is decoded");
    assert_eq!(error.kind(), Kind::Unsupported);
    assert!(error.to_string().contains("dg2 (family 1270)"), "{error}");
}

#[test]
fn other_targets_and_formats_are_refused_by_name() {
    let note = family_note();
    let family = |number: u32| [&note[..], &number.to_le_bytes()].concat();
    let fails = |bytes: &[u8], kind, expected: &str| {
        let error = open(bytes, "file").expect_err("refused");
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    };
    let of_family = |number| patched(&family(u32::from_le_bytes(FAMILY)), &family(number));
    fails(&of_family(29), Kind::Unsupported, "tgl (family 29)");
    fails(&of_family(1270), Kind::Unsupported, "dg2 (family 1270)");
    fails(&of_family(1300), Kind::Unsupported, "product family 1300");
    fails(&patched(b"IntelGT\0", b"Another\0"), Kind::Unsupported, "without a note");
    fails(b"CTNI....", Kind::Unsupported, "patch tokens");
    fails(b"hello", Kind::Malformed, "no zebin");
    let mut host = ZEBIN.to_vec();
    host[18] = 62;
    fails(&host, Kind::Malformed, "machine 62");
}

#[test]
fn an_unknown_opcode_refuses_its_kernel_by_name_and_address() {
    // The first instruction of `gather`, at offset 0x40 of the file.
    let mut bytes = ZEBIN.to_vec();
    bytes[0x40] = bytes[0x40] & 0x80 | 0x05;
    let zebins = open(&bytes, "file").expect("tables are whole");
    let of = |name: &str| {
        let function = zebins[0].functions().iter().find(|function| function.name == name).expect("it is there");
        function.code(&())
    };
    let error = of("gather").expect_err("no such opcode").to_string();
    assert!(error.contains("opcode 0x05") && error.contains("gather") && error.contains("0x0"), "{error}");
    assert!(of("reduce").is_ok());
}

/// Everything that can be asked of a file.
fn read(bytes: &[u8]) -> Result<(), wavetap_base::error::Error> {
    for zebin in open(bytes, "file")? {
        for function in zebin.functions() {
            let lines = zebin.lines(function);
            let _ = function.code(&lines).map(|code| code.waits().len());
        }
    }
    Ok(())
}

#[test]
fn damage_is_one_error() {
    const ROUNDS: u64 = 4000;
    let both = archive(&[("pvc", ZEBIN), ("pad_1", &[0; 3])]);
    let (mut random, mut failed) = (SplitMix64::seed_from_u64(7), 0);
    for round in 0..ROUNDS {
        let mut bytes = if round % 8 == 0 { both.clone() } else { ZEBIN.to_vec() };
        if round % 4 == 0 {
            bytes.truncate(random.next_u64() as usize % bytes.len());
        }
        // Headers, code and notes are all small: aim at each.
        let areas = [0..0x40, 0x40..0x680, 0x680..0x6f8, 0x1654..0x2ed5, 0x2ed5..0x3115];
        for _ in 0..1 + random.next_u64() % 4 {
            let area = areas[random.next_u64() as usize % areas.len()].clone();
            let place = area.start + random.next_u64() as usize % area.len();
            if let Some(byte) = bytes.get_mut(place) {
                *byte ^= (random.next_u64() % 255 + 1) as u8;
            }
        }
        if let Err(error) = read(&bytes) {
            failed += 1;
            assert!(!error.to_string().contains('\n'), "{error}");
        }
    }
    assert!(failed > ROUNDS / 8 && failed < ROUNDS, "{failed} of {ROUNDS} were refused");
}
