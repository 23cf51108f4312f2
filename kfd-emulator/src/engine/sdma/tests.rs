//! Packets as they are in memory. The words were put together by hand from the bit fields of the hardware's packets
//! (`vega10_sdma_pkt_open.h` of the kernel; for gfx12 the runtime's structure).

use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use wavetap_amdgpu::Target;
use wavetap_emulator::{Device, Options};

use super::*;
use crate::events::Events;

/// A device with 4096 bytes of which each has another value than its neighbours, and 4096 zeros; their addresses.
fn device(target: &str) -> (Device, u64, u64) {
    let target = Target::all().find(|known| known.name() == target).expect("a target");
    let mut device = Device::new(target, Options::default());
    let (from, to) = (device.malloc(4096, 256).expect("memory"), device.malloc(4096, 256).expect("memory"));
    let values: Vec<u8> = (0..4096_u32).map(value).collect();
    device.write(from, &values).expect("memory");
    (device, from, to)
}

fn value(n: u32) -> u8 {
    (n * 7 + n / 256 + 1) as u8
}

fn run(device: &mut Device, words: &[u32]) -> Result<Option<u64>, String> {
    let mut all = [0; MOST_WORDS];
    all[..words.len()].copy_from_slice(words);
    let (events, told, waiting) = (Events::default(), Mutex::default(), AtomicUsize::new(0));
    let around = Surroundings { events: &events, told: &told, waiting: &waiting, check: None, several_gpus: false };
    packet(&all, device, around).map_err(|trouble| match trouble {
        Trouble::Unknown(what) => what,
        Trouble::Memory { address, .. } => format!("{address:#x}"),
        Trouble::Fault { .. } => "a fault".into(),
    })
}

fn bytes(device: &Device, address: u64) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    device.read(address, &mut bytes).expect("memory");
    bytes
}

/// A box of 3 elements of 4 bytes, 2 rows and 2 slices. From: pitch 10 elements, slices of 50, begins at (1, 2, 1). To:
/// pitch 20, slices of 100, begins at (3, 1, 0).
fn check_rectangle(target: &str, words: impl Fn(u64, u64) -> Vec<u32>) {
    let (mut device, from, to) = device(target);
    assert_eq!(run(&mut device, &words(from, to)), Ok(Some(52)));
    let mut expected = vec![0; 4096];
    for (z, y, x, byte) in (0..24)
        .map(|n| (n / 12 % 2, n / 6 % 2, n / 2 % 3, n % 2))
        .flat_map(|(z, y, x, half)| [(z, y, x, 2 * half), (z, y, x, 2 * half + 1)])
    {
        let source = ((x + 1) + (y + 2) * 10 + (z + 1) * 50) * 4 + byte;
        let target = ((x + 3) + (y + 1) * 20 + z * 100) * 4 + byte;
        expected[target as usize] = value(source);
    }
    assert_eq!(bytes(&device, to), expected);
}

#[test]
fn rectangles_are_copied() {
    check_rectangle("gfx90a", |from, to| {
        vec![
            0x4000_0401,
            from as u32,
            (from >> 32) as u32,
            1 | 2 << 16,
            1 | 9 << 13,
            49,
            to as u32,
            (to >> 32) as u32,
            3 | 1 << 16,
            19 << 13,
            99,
            2 | 1 << 16,
            1,
        ]
    });
}

#[test]
fn rectangles_of_gfx12_have_other_fields() {
    check_rectangle("gfx1201", |from, to| {
        vec![
            0x4000_0401,
            from as u32,
            (from >> 32) as u32,
            1 | 2 << 16,
            1 | 9 << 16,
            49,
            to as u32,
            (to >> 32) as u32,
            3 | 1 << 16,
            19 << 16,
            99,
            2 | 1 << 16,
            1,
        ]
    });
}

/// The count of a fill with dwords: 4 bytes less than are filled from the runtime, 1 byte less from the driver.
#[test]
fn fills_of_dwords_are_whole() {
    for (count, filled) in [(0, 4), (4 * 4, 5 * 4), (5 * 4 - 1, 5 * 4)] {
        let (mut device, _, to) = device("gfx906");
        assert_eq!(run(&mut device, &[0x8000_000b, to as u32, (to >> 32) as u32, 0x0403_0201, count]), Ok(Some(20)));
        let expected: Vec<u8> = (0..4096).map(|n| if n < filled { (n % 4 + 1) as u8 } else { 0 }).collect();
        assert_eq!(bytes(&device, to), expected, "{count}");
    }
    let (mut device, _, to) = device("gfx906");
    assert_eq!(run(&mut device, &[0x0000_000b, to as u32, (to >> 32) as u32, 0x55, 2]), Ok(Some(20)));
    assert_eq!(bytes(&device, to)[..4], [0x55, 0x55, 0x55, 0]);
}

#[test]
fn an_unknown_packet_is_named() {
    let (mut device, from, _) = device("gfx90a");
    let low = from as u32;
    for (words, name) in [
        ([0x0000_0501, low, 0, 0], "SDMA packet 0x00000501 (COPY, sub-operation 5)"),
        ([0xa000_0401, low, 0, 0], "SDMA packet 0xa0000401 (COPY, sub-operation 4)"),
        ([0x0800_0001, low, 0, 0], "SDMA packet 0x08000001 (COPY, sub-operation 0)"),
        ([0x0000_0001, 3, 1 << 16, low], "SDMA packet 0x00000001 (COPY, sub-operation 0)"),
        ([0x0000_0002, low, 0, 0], "SDMA packet 0x00000002 (WRITE, sub-operation 0)"),
        ([0x0000_010d, low, 0, 0], "SDMA packet 0x0000010d (TIMESTAMP, sub-operation 1)"),
        ([0x0000_00ee, low, 0, 0], "SDMA packet 0x000000ee (no operation, sub-operation 0)"),
    ] {
        assert_eq!(run(&mut device, &words), Err(name.into()));
    }
}
