//! Bundles made by hand: what is wrong is found and located.

use super::*;
use wavetap_base::error::Kind;

const GFX90A: &str = "hipv4-amdgcn-amd-amdhsa--gfx90a";
const GFX906: &str = "hipv4-amdgcn-amd-amdhsa--gfx906";
const HOST: &str = "host-x86_64-unknown-linux-gnu";

fn two_entries() -> Vec<u8> {
    write_plain(&[(HOST, b""), (GFX906, &[6; 5000]), (GFX90A, &[9; 100])])
}

/// Packs a plain bundle with zlib.
fn packed(version: u16, content: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).expect("in memory");
    let data = encoder.finish().expect("in memory");
    let hash = <md5::Md5 as md5::Digest>::digest(content);
    let mut out = COMPRESSED_MAGIC.to_vec();
    out.extend_from_slice(&version.to_le_bytes());
    out.extend_from_slice(&0u16.to_le_bytes());
    if version == 2 {
        out.extend_from_slice(&(data.len() as u32 + 24).to_le_bytes());
        out.extend_from_slice(&(content.len() as u32).to_le_bytes());
    } else {
        out.extend_from_slice(&(data.len() as u64 + 32).to_le_bytes());
        out.extend_from_slice(&(content.len() as u64).to_le_bytes());
    }
    out.extend_from_slice(&hash[..8]);
    out.extend_from_slice(&data);
    out
}

#[test]
fn a_written_bundle_reads_back() {
    let bytes = two_entries();
    let input = Input::parse(&bytes).expect("parses");
    assert_eq!(input.container, Container::Bundles);
    let [bundle] = &input.bundles[..] else { panic!("one bundle") };
    assert_eq!(bundle.entries.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>(), [HOST, GFX906, GFX90A]);
    assert_eq!(
        (bundle.entry_bytes(0), bundle.entry_bytes(1), bundle.entry_bytes(2)),
        (&b""[..], &[6; 5000][..], &[9; 100][..])
    );
    assert!(bundle.entries.iter().all(|entry| entry.offset % ENTRY_ALIGN == 0));
    assert_eq!(bundle.write_with(|_| None), bytes);
}

#[test]
fn replacing_an_entry_keeps_the_others() {
    let bytes = two_entries();
    let input = Input::parse(&bytes).expect("parses");
    let replaced = input.bundles[0].write_with(|index| (index == 1).then_some(&[1; 9000][..]));
    let again = Input::parse(&replaced).expect("parses");
    assert_eq!((again.bundles[0].entry_bytes(1), again.bundles[0].entry_bytes(2)), (&[1; 9000][..], &[9; 100][..]));
}

#[test]
fn compressed_bundles_of_both_versions_one_behind_the_other() {
    let plain = two_entries();
    let mut bytes = packed(2, &plain);
    bytes.resize(bytes.len().next_multiple_of(4096), 0);
    let second = bytes.len() as u64;
    bytes.extend(packed(3, &plain));
    bytes.extend(&plain);
    let input = Input::parse(&bytes).expect("parses");
    assert_eq!(input.bundles.len(), 3);
    assert_eq!(input.bundles[1].offset, second);
    for bundle in &input.bundles {
        assert_eq!(bundle.content, plain);
    }
    assert_eq!(input.bundles[1].compressed.map(|header| (header.version, header.header_size)), Some((3, 32)));
}

#[test]
fn lies_of_a_compressed_header_are_found() {
    let good = packed(2, &two_entries());
    let with = |at: usize, value: &[u8]| {
        let mut bytes = good.clone();
        bytes[at..at + value.len()].copy_from_slice(value);
        Input::parse(&bytes).map(|_| ()).expect_err("refused")
    };
    assert_eq!(with(4, &[1, 0]).kind(), Kind::Unsupported);
    assert_eq!(with(6, &[7, 0]).kind(), Kind::Unsupported);
    assert_eq!(with(8, &(good.len() as u32 + 1).to_le_bytes()).kind(), Kind::Malformed);
    assert_eq!(with(8, &3u32.to_le_bytes()).kind(), Kind::Malformed);
    assert_eq!(with(12, &u32::MAX.to_le_bytes()).kind(), Kind::Limit);
    assert_eq!(with(12, &100u32.to_le_bytes()).kind(), Kind::Malformed);
    assert!(with(16, &[0; 8]).message().contains("checksum"));
}

#[test]
fn a_bomb_does_not_unpack() {
    // Sixteen megabytes of zeros; the header says they are a thousand bytes.
    let mut bytes = packed(3, &vec![0; 16 << 20]);
    bytes[16..24].copy_from_slice(&1000u64.to_le_bytes());
    let error = Input::parse(&bytes).expect_err("refused");
    assert!(error.message().contains("more bytes"), "{error}");
}

#[test]
fn many_small_bombs_do_not_unpack_either() {
    // Each claims sixty megabytes, which one bundle may; together they may not.
    let mut one = packed(3, &two_entries());
    one[16..24].copy_from_slice(&(60u64 << 20).to_le_bytes());
    let mut allowance = compressed::allowance(one.len() as u64 * 100);
    assert!(Bundle::parse_within(&one, 0, &mut allowance).expect_err("it lies").message().contains("its header says"));
    let error = Bundle::parse_within(&one, 0, &mut allowance).expect_err("refused");
    assert_eq!(error.kind(), Kind::Limit, "{error}");
    assert!(compressed::allowance(u64::MAX) < 8 << 30);
}

#[test]
fn lies_of_a_plain_table_are_found_and_located() {
    let good = two_entries();
    let first_entry = 32 + 24 + HOST.len();
    let changed = |at: usize, value: u64| {
        let mut bytes = good.clone();
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        bytes
    };
    let with = |at: usize, value: u64| Input::parse(&changed(at, value)).map(|_| ()).expect_err("refused");
    assert_eq!(with(24, u64::MAX).offset(), Some(24));
    assert_eq!(with(first_entry + 16, u64::MAX).offset(), Some(first_entry as u64 + 16));
    // One entry: past the end, wrapping around, into the table, into its neighbour. The others can be read.
    let problem = |at: usize, value: u64, wrong: usize| {
        let bytes = changed(at, value);
        let input = Input::parse(&bytes).expect("the rest can be read");
        let bundle = &input.bundles[0];
        let other =
            if wrong == 1 { (2, &[9; 100][..]) } else { (1, &bytes[4096..4096 + bundle.entries[1].size as usize]) };
        assert_eq!((bundle.entry_bytes(wrong), bundle.entry_bytes(other.0)), (&b""[..], other.1));
        bundle.entries[wrong].problem.clone().expect("told of")
    };
    assert_eq!(problem(first_entry, 1 << 40, 1).offset(), Some(1 << 40));
    assert_eq!(problem(first_entry, u64::MAX - 10, 1).kind(), Kind::Malformed);
    assert!(problem(first_entry, 64, 1).message().contains("overlaps"));
    assert!(problem(first_entry + 8, 8250, 2).message().contains("overlaps"));
    assert_eq!(problem(first_entry + 8, u64::MAX, 1).kind(), Kind::Malformed);
    assert!(problem(first_entry, 1 << 40, 1).to_string().contains("bundle entry 1"));
}

#[test]
fn entries_may_share_their_bytes() {
    let mut bytes = two_entries();
    let (gfx906, gfx90a) = (32 + 24 + HOST.len(), 32 + 24 + HOST.len() + 24 + GFX906.len());
    bytes.copy_within(gfx906..gfx906 + 16, gfx90a);
    let input = Input::parse(&bytes).expect("parses");
    let bundle = &input.bundles[0];
    assert_eq!(
        (bundle.problem(), bundle.entry_bytes(1), bundle.entry_bytes(2)),
        (None, &[6; 5000][..], &[6; 5000][..])
    );
}

#[test]
fn bundles_behind_one_that_cannot_be_read_are_found() {
    let plain = two_entries();
    let mut bytes = plain.clone();
    bytes.resize(bytes.len().next_multiple_of(4096), 0);
    let damaged = bytes.len();
    bytes.extend(packed(2, &plain));
    // The checksum.
    bytes[damaged + 16] ^= 1;
    bytes.resize(bytes.len().next_multiple_of(4096), 0);
    // Four bytes that mean nothing, where nothing is expected.
    bytes.extend(b"garbageyCCOB\0\0\0\0");
    bytes.resize(bytes.len().next_multiple_of(4096), 0);
    let last = bytes.len() as u64;
    bytes.extend(&plain);
    let input = Input::parse(&bytes).expect("two can be read");
    assert_eq!(input.bundles.iter().map(|bundle| bundle.offset).collect::<Vec<_>>(), [0, last]);
    let [one] = &input.malformed[..] else { panic!("one: {:?}", input.malformed) };
    assert_eq!((one.is_wrapper, one.offset), (false, Some(damaged as u64)));
    assert!(one.error.message().contains("checksum"), "{one}");
}

#[test]
fn garbage_between_bundles_is_located() {
    let mut bytes = two_entries();
    let end = bytes.len() as u64;
    bytes.extend([0, 0, 0, 5]);
    let input = Input::parse(&bytes).expect("the bundle can be read");
    assert_eq!((input.bundles.len(), input.malformed[0].offset), (1, Some(end + 3)));
    assert_eq!(Input::parse(b"#!/bin/sh").expect_err("a script").kind(), Kind::Unsupported);
    assert_eq!(Input::parse(b"garbage").expect_err("refused").kind(), Kind::Malformed);
    assert_eq!(Input::parse(b"").expect_err("refused").kind(), Kind::Malformed);
}

#[test]
fn every_truncation_is_told_of() {
    for whole in [two_entries(), packed(2, &two_entries()), packed(3, &two_entries())] {
        for len in 0..whole.len() {
            let told = match Input::parse(&whole[..len]) {
                Ok(input) => {
                    !input.malformed.is_empty() || input.bundles.iter().any(|bundle| bundle.problem().is_some())
                }
                Err(_) => true,
            };
            assert!(told, "{len} of {} bytes", whole.len());
        }
    }
}
