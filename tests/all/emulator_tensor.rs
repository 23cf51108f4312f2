//! Copies of tensors between memory and LDS (gfx1250), against loops over the elements as the CDNA5 ISA guide writes
//! them (10.11.2); and loads for all workgroups of a cluster of one.

use crate::emulated::{Bench, bare, compiler_is_there, patterns};
use wavetap::emulator::{Fault, FaultKind};

/// Bytes of LDS and of the memory that tiles are in.
const LDS: usize = 4096;
const MEMORY: usize = 8192;
/// Where in it the tile begins.
const MIDDLE: usize = 1024;

/// A descriptor; strides and lengths in elements.
#[derive(Debug, Clone)]
struct Descriptor {
    count: u32,
    kind: u32,
    /// Bytes of an element, as a power of two.
    size: u32,
    local: u32,
    tile: Vec<u32>,
    tensor: Vec<u32>,
    /// From the second dimension on.
    strides: Vec<u64>,
    /// The fields of the interval and of the amount.
    padding: Option<(u32, u32)>,
    /// Numbers of rows, and whether they have 32 bits.
    rows: Option<(Vec<u32>, bool)>,
    /// Other bits of the first group's first word and of the second group's.
    others: [u32; 2],
}

impl Descriptor {
    fn new(size: u32, tile: &[u32], tensor: &[u32], strides: &[u64]) -> Descriptor {
        let (tile, tensor, strides) = (tile.to_vec(), tensor.to_vec(), strides.to_vec());
        Descriptor {
            count: 1,
            kind: 2,
            size,
            local: 64,
            tile,
            tensor,
            strides,
            padding: None,
            rows: None,
            others: [0; 2],
        }
    }

    fn words(&self, address: u64) -> Vec<u32> {
        let mut bits = vec![0_u32; 20];
        let mut put = |group: usize, first: usize, count: usize, value: u64| {
            for bit in 0..count {
                let at = [0, 128, 384, 512][group] + first + bit;
                bits[at / 32] |= ((value >> bit & 1) as u32) << (at % 32);
            }
        };
        put(0, 0, 32, u64::from(self.count | self.others[0]));
        put(0, 32, 32, self.local.into());
        put(0, 64, 57, address);
        put(0, 126, 2, self.kind.into());
        put(1, 0, 32, u64::from(self.others[1]));
        put(1, 16, 2, self.size.into());
        if let Some((interval, amount)) = self.padding {
            put(1, 20, 1, 1);
            put(1, 22, 3, interval.into());
            put(1, 25, 7, amount.into());
        }
        let tiles = [(1, 112), (1, 128), (1, 144), (2, 112), (3, 80)];
        let tensors = [(1, 48), (1, 80), (2, 0), (2, 32), (3, 48)];
        let strides = [(1, 160), (1, 208), (2, 64), (3, 0)];
        let dimensions = if self.rows.is_some() { 2 } else { 5 };
        for (n, value) in self.tile.iter().enumerate().take(dimensions) {
            put(tiles[n].0, tiles[n].1, 16, (*value).into());
            put(tensors[n].0, tensors[n].1, 32, self.tensor[n].into());
        }
        for (n, value) in self.strides.iter().enumerate() {
            put(strides[n].0, strides[n].1, 48, *value);
        }
        if let Some((rows, wide)) = &self.rows {
            put(0, 31, 1, 1);
            put(0, 30, 1, (*wide).into());
            for (n, row) in rows.iter().enumerate() {
                let (each, width) = if *wide { (4, 32) } else { (8, 16) };
                put(2 + n / each, n % each * width, width, (*row).into());
            }
        }
        bits
    }

    /// Elements in the order of LDS: offset in memory if in bounds, and the place in LDS, which pads or does not.
    fn elements(&self, pads: bool) -> Vec<(Option<usize>, usize)> {
        let bytes = 1 << self.size;
        let extent = |n: usize| self.tile.get(n).copied().unwrap_or(1).max(1);
        let (mut at, mut stored, mut found) = (self.local as usize, 0, Vec::new());
        let count: u32 = (0..5).map(extent).product();
        for n in 0..count {
            let mut rest = n;
            let place: Vec<u32> = (0..5)
                .map(|d| {
                    let place = rest % extent(d);
                    rest /= extent(d);
                    place
                })
                .collect();
            let (mut element, mut inside) = (u64::from(place[0]), place[0] < self.tensor[0]);
            for d in 1..self.tile.len() {
                let place = match &self.rows {
                    Some((rows, _)) if d == 1 => rows[place[1] as usize],
                    _ => place[d],
                };
                inside &= place < self.tensor[d];
                element += u64::from(place) * self.strides[d - 1];
            }
            found.push((inside.then(|| MIDDLE + element as usize * bytes), at));
            at += bytes;
            stored += bytes;
            if let Some((interval, amount)) = self.padding
                && pads
                && stored >> 3 >= 1 << interval
            {
                stored = 0;
                at += 4 * (amount as usize + 1);
            }
        }
        found
    }
}

/// What a copy is to be followed by.
const WAIT: &str = ".long 0xbfcb0000";

/// LDS is what the output was before, and the output what LDS is after the copy of the descriptor in `s[8:27]`.
fn kernel(name: &str, copy: &str, wait: &str) -> String {
    let each = |instruction: &dyn Fn(usize) -> String| (0..LDS / 512).map(instruction).collect::<String>();
    let fill = each(&|n| {
        format!(
            "global_load_dwordx4 v[8:11], v1, s[6:7] offset:{0}\ns_wait_loadcnt 0\nds_write_b128 v1, v[8:11] \
                offset:{0}\ns_wait_dscnt 0\n",
            512 * n
        )
    });
    let take = each(&|n| {
        format!(
            "ds_read_b128 v[{0}:{1}], v1 offset:{2}\ns_wait_dscnt 0\nglobal_store_dwordx4 v1, v[{0}:{1}], s[6:7] \
                offset:{2}\n",
            12 + 4 * n,
            15 + 4 * n,
            512 * n
        )
    });
    let body = format!(
        "s_load_dwordx8 s[8:15], s[4:5], 0x0\ns_load_dwordx8 s[16:23], s[4:5], 0x20\ns_load_dwordx4 s[24:27], s[4:5], \
            0x40\nv_lshlrev_b32 v1, 4, v0\n\
         s_wait_kmcnt 0\n{fill}s_mov_b32 exec_lo, 0\n{copy}\n{wait}\ns_mov_b32 exec_lo, -1\n{take}"
    );
    bare::kernel("gfx1250", name, LDS as u32, &body)
}

/// tensor_load_to_lds and tensor_store_from_lds of s[8:11], s[12:19], s[20:23], s[24:27], and without the last two.
const COPIES: [(&str, &str); 4] = [
    ("load", ".long 0xd0710001, 0x7c000000, 0x18140c08"),
    ("store", ".long 0xd0714001, 0x7c000000, 0x18140c08"),
    ("load2", ".long 0xd0710001, 0x7c000000, 0x7c7c0c08"),
    ("store2", ".long 0xd0714001, 0x7c000000, 0x7c7c0c08"),
];

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

struct Machine {
    bench: Bench,
    memory: u64,
    output: u64,
}

impl Machine {
    fn new(strict: bool) -> Machine {
        let mut text: String = COPIES.iter().map(|(name, words)| kernel(name, words, WAIT)).collect();
        text += &kernel("hasty", COPIES[0].1, "s_nop 0");
        let mut bench = bare::bench("gfx1250", strict, 1, &bare::assemble("gfx1250", &text));
        let (memory, output) = (bench.buffer(&[0; MEMORY / 4]), bench.buffer(&[0; LDS / 4]));
        Machine { bench, memory, output }
    }

    /// What is in memory and in LDS before.
    fn before() -> (Vec<u32>, Vec<u32>) {
        let words = patterns((MEMORY + LDS) / 4);
        let mix = |(n, word): (usize, &u32)| word ^ (n as u32).wrapping_mul(0x9e37_79b9);
        let words: Vec<u32> = words.iter().enumerate().map(mix).collect();
        (words[..MEMORY / 4].to_vec(), words[MEMORY / 4..].to_vec())
    }

    /// Memory and LDS after a copy.
    fn run(&mut self, kernel: &str, descriptor: &Descriptor) -> Result<(Vec<u8>, Vec<u8>), Fault> {
        let (memory, local) = Self::before();
        self.bench.device.write(self.memory, &bytes(&memory)).expect("written");
        self.bench.device.write(self.output, &bytes(&local)).expect("written");
        let words = self.bench.buffer(&descriptor.words(self.memory + MIDDLE as u64));
        self.bench.run(kernel, 1, 32, 0, &[words, self.output])?;
        Ok((bytes(&self.bench.read(self.memory, MEMORY / 4)), bytes(&self.bench.read(self.output, LDS / 4))))
    }
}

fn descriptors() -> Vec<Descriptor> {
    let new = Descriptor::new;
    let with = |mut descriptor: Descriptor, change: &dyn Fn(&mut Descriptor)| {
        change(&mut descriptor);
        descriptor
    };
    let mut all = vec![
        new(2, &[40], &[40], &[]),
        new(0, &[37], &[30], &[]),
        new(1, &[24, 6], &[24, 6], &[50]),
        new(1, &[24, 6], &[17, 4], &[50]),
        new(3, &[5, 3], &[9, 9], &[11]),
        new(2, &[8, 5], &[0, 5], &[8]),
        new(2, &[7, 3, 4], &[6, 3, 3], &[9, 40]),
        new(0, &[6, 3, 2, 3], &[6, 2, 2, 9], &[8, 40, 100]),
        new(1, &[4, 3, 2, 2, 3], &[3, 3, 2, 1, 2], &[5, 20, 50, 120]),
        // Strides in any order, and the same line again and again.
        new(2, &[4, 3, 3], &[4, 3, 3], &[100, 4]),
        new(2, &[4, 5], &[4, 5], &[0]),
    ];
    for (interval, amount) in [(0, 0), (1, 2), (2, 7), (4, 0), (0, 30)] {
        all.push(with(new(1, &[20, 5], &[13, 5], &[30]), &|d| d.padding = Some((interval, amount))));
        all.push(with(new(0, &[36], &[36], &[]), &|d| d.padding = Some((interval, amount))));
    }
    let rows = |rows: &[u32], wide: bool| {
        let rows = (rows.to_vec(), wide);
        with(new(1, &[10, rows.0.len() as u32], &[9, 50], &[16]), &|d| d.rows = Some(rows.clone()))
    };
    all.extend([
        rows(&[4, 0, 7, 7, 3, 1, 20, 2, 9], false),
        rows(&[3, 3, 49, 50, 51, 65535], false),
        rows(&[0, 5, 100_000, 0xffff_ffff], true),
    ]);
    all.push(with(rows(&[2, 1, 0, 9, 8, 7, 6, 5], true), &|d| d.padding = Some((1, 1))));
    all.push(with(new(2, &[8], &[8], &[]), &|d| d.count = 0));
    all.push(with(new(2, &[8], &[8], &[]), &|d| (d.count, d.kind) = (0, 0)));
    all.push(with(new(2, &[8], &[8], &[]), &|d| d.local = LDS as u32 - 32));
    all
}

#[test]
fn tiles_are_copied() {
    if !compiler_is_there() {
        return;
    }
    for strict in [true, false] {
        let mut machine = Machine::new(strict);
        let before = Machine::before();
        for descriptor in descriptors() {
            let small = descriptor.tile.len() <= 2 && descriptor.rows.is_none();
            for (kernel, _) in COPIES.iter().filter(|(name, _)| small || !name.ends_with('2')) {
                let loads = kernel.starts_with("load");
                let (mut memory, mut local) = (bytes(&before.0), bytes(&before.1));
                if descriptor.count != 0 {
                    let size = 1 << descriptor.size;
                    for (from, at) in descriptor.elements(loads) {
                        match (from, loads) {
                            (Some(from), true) => local[at..at + size].copy_from_slice(&memory[from..from + size]),
                            (None, true) => local[at..at + size].fill(0),
                            (Some(from), false) => memory[from..from + size].copy_from_slice(&local[at..at + size]),
                            (None, false) => {}
                        }
                    }
                }
                let what = format!("{kernel} strict {strict} {descriptor:?}");
                let found = machine.run(kernel, &descriptor).unwrap_or_else(|fault| panic!("{what}: {fault}"));
                assert!(found.0 == memory, "{what}: memory");
                assert!(found.1 == local, "{what}: LDS");
            }
        }
    }
}

#[test]
fn what_is_not_told_is_refused() {
    if !compiler_is_there() {
        return;
    }
    let mut machine = Machine::new(true);
    let changed = |change: &dyn Fn(&mut Descriptor)| {
        let mut descriptor = Descriptor::new(1, &[9, 3], &[9, 3], &[16]);
        change(&mut descriptor);
        descriptor
    };
    let cases: [(Descriptor, &str); 12] = [
        (changed(&|d| d.count = 2), "several descriptors"),
        (changed(&|d| d.kind = 0), "another type"),
        (changed(&|d| d.others[0] = 1 << 3), "bits that must be 0"),
        (changed(&|d| d.others[0] = 1 << 20), "bits that must be 0"),
        (changed(&|d| d.others[0] = 1 << 30), "no rows"),
        (changed(&|d| d.others[1] = 1), "other workgroups"),
        (changed(&|d| d.others[1] = 1 << 18), "barrier"),
        (changed(&|d| d.others[1] = 1 << 19), "repeated"),
        (changed(&|d| d.tile[0] = 0), "without extent"),
        (changed(&|d| d.padding = Some((0, 0))), "no whole dwords"),
        (changed(&|d| d.strides[0] = 1 << 47), "negative stride"),
        (changed(&|d| d.rows = Some((vec![5, 3, 1], false))), "do not ascend"),
    ];
    for (descriptor, says) in cases {
        for kernel in ["load", "store"] {
            let fault = machine.run(kernel, &descriptor).expect_err(says);
            assert!(
                matches!(&fault.kind, FaultKind::Undefined { what } if what.contains(says)),
                "{kernel} {says}: {fault}"
            );
        }
    }
    let outside = changed(&|d| d.local = LDS as u32 - 40);
    assert!(matches!(machine.run("load", &outside).expect_err("LDS").kind, FaultKind::LdsBounds { .. }));
    let far = changed(&|d| d.strides[0] = 1 << 30);
    assert!(matches!(machine.run("load", &far).expect_err("memory").kind, FaultKind::Memory { .. }));
    // LDS is read before the copy has been waited for.
    let hasty = machine.run("hasty", &changed(&|_| ())).expect_err("a missing wait");
    assert!(matches!(hasty.kind, FaultKind::LdsRace { .. }), "{hasty}");
}

/// Outside of a cluster they are loads as others.
#[test]
fn loads_for_a_cluster_of_one() {
    if !compiler_is_there() {
        return;
    }
    // cluster_load_b128 v[8:11], v1, s[4:5] and cluster_load_async_to_lds_b32 v2, v1, s[4:5] offset:16
    let body = "v_lshlrev_b32 v1, 4, v0\nv_lshlrev_b32 v2, 2, v0\ns_mov_b32 m0, 1\n.long 0xee1a4004, 0x00000008, \
        0x00000001\n\
        .long 0xee1ac004, 0x00000002, 0x00001001\ns_wait_loadcnt 0\n.long 0xbfca0000\nds_read_b32 v11, v2 offset:16\n\
        s_wait_dscnt 0\n\
        global_store_dwordx4 v1, v[8:11], s[6:7]";
    let mut bench =
        bare::bench("gfx1250", true, 1, &bare::assemble("gfx1250", &bare::kernel("gfx1250", "k", 256, body)));
    let data = patterns(4 * 33);
    let (from, to) = (bench.buffer(&data), bench.buffer(&[0; 4 * 32]));
    bench.run("k", 1, 32, 0, &[from, to]).unwrap_or_else(|fault| panic!("{fault}"));
    let expected: Vec<u32> =
        (0..32).flat_map(|lane| [data[4 * lane], data[4 * lane + 1], data[4 * lane + 2], data[4 * lane + 4]]).collect();
    assert_eq!(bench.read(to, 4 * 32), expected);
}
