//! LDS out of bounds: what the hardware drops, compilers use to mask lanes; what is near the allocation is a finding.

use crate::emulated::{bare, compiler_is_there};
use wavetap::emulator::FaultKind;
use wavetap::isa::Target;

const TARGETS: [&str; 8] = ["gfx900", "gfx90a", "gfx942", "gfx1010", "gfx1030", "gfx1100", "gfx1200", "gfx1250"];
const LANES: usize = 32;
/// Bytes of LDS: 16 for each lane.
const LDS: usize = 512;
/// Addresses that no LDS has.
const FAR: [u32; 4] = [0x7fff_ffff, 0x7fff_fff0, 0x8000_0000, 0x4000_0000];
/// What a result register holds before.
const BEFORE: u32 = 0xeeee_eeee;

/// An operation on two elements or one, by the size of each in bytes.
#[derive(Debug, Clone, Copy)]
enum What {
    Load {
        bytes: usize,
        elements: usize,
    },
    /// To the upper half of a register, which is what is compared.
    LoadHigh,
    Store {
        bytes: usize,
        elements: usize,
    },
    Add {
        returns: bool,
    },
    Exchange,
}

/// `v2` is the address, `v[4:7]` the data, `v[8:11]` the result.
const OPERATIONS: [(&str, What); 14] = [
    ("ds_read_u8 v8, v2", What::Load { bytes: 1, elements: 1 }),
    ("ds_read_u16_d16_hi v8, v2", What::LoadHigh),
    ("ds_read_b32 v8, v2", What::Load { bytes: 4, elements: 1 }),
    ("ds_read_b64 v[8:9], v2", What::Load { bytes: 8, elements: 1 }),
    ("ds_read_b128 v[8:11], v2", What::Load { bytes: 16, elements: 1 }),
    ("ds_read2_b32 v[8:9], v2 offset1:1", What::Load { bytes: 4, elements: 2 }),
    ("ds_read2_b64 v[8:11], v2 offset1:1", What::Load { bytes: 8, elements: 2 }),
    ("ds_write_b8 v2, v4", What::Store { bytes: 1, elements: 1 }),
    ("ds_write_b32 v2, v4", What::Store { bytes: 4, elements: 1 }),
    ("ds_write_b128 v2, v[4:7]", What::Store { bytes: 16, elements: 1 }),
    ("ds_write2_b32 v2, v4, v5 offset1:1", What::Store { bytes: 4, elements: 2 }),
    ("ds_add_u32 v2, v4", What::Add { returns: false }),
    ("ds_add_rtn_u32 v8, v2, v4", What::Add { returns: true }),
    ("ds_wrxchg_rtn_b64 v[8:9], v2, v[4:5]", What::Exchange),
];

fn datum(lane: usize, n: usize) -> u32 {
    0x4321_8765u32.wrapping_mul((4 * lane + n + 1) as u32)
}

/// What is in LDS before, by dword.
fn before(word: usize) -> u32 {
    0x9e37_79b9u32.wrapping_mul(word as u32 + 7)
}

fn body(target: &str, operation: &str) -> String {
    let gfx12 = Target::by_name(target).expect("a target").generation() >= 12;
    let wait = if gfx12 { "s_wait_loadcnt 0\ns_wait_dscnt 0" } else { "s_waitcnt vmcnt(0) lgkmcnt(0)" };
    let old: String = (8..12).map(|n| format!("v_mov_b32 v{n}, {BEFORE:#x}\n")).collect();
    // A row of the input: the address in LDS, three spare words, four of data, four of what is in LDS.
    format!(
        "v_mul_u32_u24 v1, 48, v0\nv_lshlrev_b32 v3, 4, v0\nv_lshlrev_b32 v16, 5, v0\nglobal_load_dword v2, v1, \
            s[4:5]\n\
         global_load_dwordx4 v[4:7], v1, s[4:5] offset:16\nglobal_load_dwordx4 v[12:15], v1, s[4:5] offset:32\n\
         {old}s_mov_b32 m0, -1\n{wait}\n\
         ds_write_b128 v3, v[12:15]\n{wait}\n{operation}\n{wait}\nds_read_b128 v[12:15], v3\n{wait}\ns_nop 7\n\
         global_store_dwordx4 v16, v[8:11], s[6:7]\nglobal_store_dwordx4 v16, v[12:15], s[6:7] offset:16\n"
    )
}

/// Result registers of each lane, and LDS.
fn expected(what: What, addresses: &[u32; LANES]) -> ([[u32; 4]; LANES], Vec<u8>) {
    let mut lds: Vec<u8> = (0..LDS / 4).flat_map(|word| before(word).to_le_bytes()).collect();
    let mut results = [[BEFORE; 4]; LANES];
    let word = |lds: &[u8], at: usize| u32::from_le_bytes([lds[at], lds[at + 1], lds[at + 2], lds[at + 3]]);
    for (lane, result) in results.iter_mut().enumerate() {
        let at = (addresses[lane] as usize) < LDS;
        let at = at.then_some(addresses[lane] as usize);
        match what {
            What::Load { bytes: 1, .. } => result[0] = at.map_or(0, |at| lds[at].into()),
            What::LoadHigh => result[0] = at.map_or(0, |at| word(&lds, at) << 16),
            What::Load { bytes, elements } => {
                for (n, word_of) in result.iter_mut().take(bytes * elements / 4).enumerate() {
                    *word_of = at.map_or(0, |at| word(&lds, at + 4 * n));
                }
            }
            What::Store { bytes, elements } => {
                let data: Vec<u8> = (0..4).flat_map(|n| datum(lane, n).to_le_bytes()).collect();
                if let Some(at) = at {
                    lds[at..at + bytes * elements].copy_from_slice(&data[..bytes * elements]);
                }
            }
            What::Add { returns } => {
                let old = at.map_or(0, |at| word(&lds, at));
                if let Some(at) = at {
                    lds[at..at + 4].copy_from_slice(&old.wrapping_add(datum(lane, 0)).to_le_bytes());
                }
                if returns {
                    result[0] = old;
                }
            }
            What::Exchange => {
                for (n, word_of) in result.iter_mut().take(2).enumerate() {
                    *word_of = at.map_or(0, |at| word(&lds, at + 4 * n));
                    if let Some(at) = at {
                        lds[at + 4 * n..at + 4 * n + 4].copy_from_slice(&datum(lane, n).to_le_bytes());
                    }
                }
            }
        }
    }
    (results, lds)
}

fn input(addresses: &[u32; LANES]) -> Vec<u32> {
    let row = |lane: usize| {
        let data = (0..4).map(move |n| datum(lane, n)).chain((0..4).map(move |n| before(4 * lane + n)));
        [addresses[lane], 0, 0, 0].into_iter().chain(data)
    };
    (0..LANES).flat_map(row).collect()
}

/// Lanes of odd numbers have an address of their own that no LDS has.
fn masked(far: u32) -> [u32; LANES] {
    std::array::from_fn(|lane| if lane % 2 == 1 { far } else { 16 * lane as u32 })
}

#[test]
fn accesses_far_out_of_bounds_are_dropped() {
    if !compiler_is_there() {
        return;
    }
    for target in TARGETS {
        let text: String = OPERATIONS
            .iter()
            .enumerate()
            .map(|(n, (operation, _))| bare::kernel(target, &format!("k{n}"), LDS as u32, &body(target, operation)))
            .collect();
        let image = bare::assemble(target, &text);
        for (strict, far) in FAR.iter().flat_map(|far| [(true, *far), (false, *far)]) {
            let mut bench = bare::bench(target, strict, 1, &image);
            for (n, (operation, what)) in OPERATIONS.iter().enumerate() {
                // Atomics are aligned, those that are dropped as well.
                let addresses = masked(if matches!(what, What::Exchange | What::Add { .. }) { far & !7 } else { far });
                let (from, to) = (bench.buffer(&input(&addresses)), bench.buffer(&[0; 8 * LANES]));
                let ran = bench.run(&format!("k{n}"), 1, LANES as u16, 0, &[from, to]);
                ran.unwrap_or_else(|fault| panic!("{target} `{operation}` {far:#x} strict {strict}: {fault}"));
                let found = bench.read(to, 8 * LANES);
                let (results, lds) = expected(*what, &addresses);
                // Not all targets keep the other half of a register.
                let whole = if matches!(what, What::LoadHigh) { 0xffff_0000 } else { u32::MAX };
                for (lane, row) in found.chunks(8).enumerate() {
                    let loaded = [row[0] & whole, row[1], row[2], row[3]];
                    let of_lds: Vec<u8> = row[4..].iter().flat_map(|word| word.to_le_bytes()).collect();
                    assert_eq!(loaded, results[lane], "{target} `{operation}` {far:#x} strict {strict}, lane {lane}");
                    assert_eq!(
                        of_lds,
                        lds[16 * lane..][..16],
                        "{target} `{operation}` {far:#x} strict {strict}, LDS of lane {lane}"
                    );
                }
            }
        }
    }
}

/// A wrong index is told in strict mode: an address below 8 MiB, or less than 1 GiB before 0. Otherwise it is dropped,
/// but for the rest of the allocation's last unit, which is accessed.
#[test]
fn accesses_near_the_allocation_are_findings() {
    if !compiler_is_there() {
        return;
    }
    for target in TARGETS {
        let operations = ["ds_read_b32 v8, v2", "ds_write_b32 v2, v4", "ds_add_rtn_u32 v8, v2, v4"];
        let kernel = |(n, operation): (usize, &&str)| {
            bare::kernel(target, &format!("k{n}"), LDS as u32, &body(target, operation))
        };
        let image = bare::assemble(target, &operations.iter().enumerate().map(kernel).collect::<String>());
        let of_target = Target::by_name(target).expect("a target");
        let (unit, most) = (of_target.lds_granule().max(LDS as u32), of_target.lds_bytes());
        // Address, whether it is a finding in strict mode, and otherwise.
        let cases = [
            (LDS as u32, true, false),
            (LDS as u32 - 2, true, unit == LDS as u32),
            (unit, true, false),
            (most - 4, true, false),
            (most, true, false),
            (0x0040_0000, true, false),
            (0x007f_fffc, true, false),
            (0x0080_0000, false, false),
            // What kernels of rocBLAS load zeros from.
            (0x00f0_0000, false, false),
            (0x4000_0000, false, false),
            (0xbfff_fffc, false, false),
            (0xc000_0000, true, false),
            (most.wrapping_neg(), true, false),
            (0xffff_fffc, true, false),
            (0xffff_fffe, true, true),
        ];
        for (n, operation) in operations.iter().enumerate() {
            for (address, strict, otherwise) in cases {
                for (is_strict, finding) in [(true, strict), (false, otherwise)] {
                    if operation.contains("add") && address % 4 != 0 && !finding {
                        // In bounds, but not aligned.
                        continue;
                    }
                    let mut bench = bare::bench(target, is_strict, 1, &image);
                    let (from, to) = (bench.buffer(&input(&masked(address))), bench.buffer(&[0; 8 * LANES]));
                    let ran = bench.run(&format!("k{n}"), 1, LANES as u16, 0, &[from, to]);
                    let what = format!("{target} `{operation}` {address:#x} strict {is_strict}: {ran:?}");
                    match ran {
                        Ok(_) => assert!(!finding, "{what}"),
                        Err(fault) => {
                            assert!(finding, "{what}");
                            let is_bounds = matches!(fault.kind, FaultKind::LdsBounds { offset, .. }
                                if offset == u64::from(address));
                            assert!(is_bounds, "{what}");
                        }
                    }
                }
            }
        }
    }
}

/// A copy to LDS that is dropped does not come to memory, either; one from LDS is refused, as nothing says what it
/// stores.
#[test]
fn asynchronous_copies_far_out_of_bounds_are_dropped() {
    if !compiler_is_there() {
        return;
    }
    // global_load_async_to_lds_b32 v2, v1, s[4:5] offset:16 … global_store_async_from_lds_b32 v1, v2, s[6:7]
    let load = ".long 0xee180004, 0x00000002, 0x00001001";
    let store = ".long 0xee190006, 0x01000000, 0x00000001";
    let body = |copy: &str| {
        format!(
            "v_lshlrev_b32 v3, 2, v0\nv_lshlrev_b32 v1, 3, v0\nglobal_load_dwordx2 v[4:5], v1, s[4:5]\ns_wait_loadcnt \
                0\nds_write_b32 v3, v3\n\
             s_wait_dscnt 0\nv_mov_b32 v2, v4\nv_mov_b32 v1, v5\n{copy}\n.long 0xbfca0000\nds_read_b32 v8, v3\n\
             s_wait_dscnt 0\n\
             global_store_dword v3, v8, s[6:7]"
        )
    };
    let text = bare::kernel("gfx1250", "load", 256, &body(load)) + &bare::kernel("gfx1250", "store", 256, &body(store));
    let image = bare::assemble("gfx1250", &text);
    for strict in [true, false] {
        let mut bench = bare::bench("gfx1250", strict, 1, &image);
        // Pairs of a place in LDS and one in memory, which the lanes that are dropped do not have.
        let pair = |lane: usize| if lane % 4 == 3 { [0x7fff_ffff - 16, 0x4000_0000] } else { [4 * lane as u32; 2] };
        let pairs: Vec<u32> = (0..LANES).flat_map(pair).collect();
        let (from, to) = (bench.buffer(&pairs), bench.buffer(&[0; LANES]));
        bench.run("load", 1, LANES as u16, 0, &[from, to]).unwrap_or_else(|fault| panic!("strict {strict}: {fault}"));
        // The offset of 16 is for both: lane n puts dword n + 4 into dword n + 4, which the lanes that are dropped
        // leave.
        let expected: Vec<u32> =
            (0..LANES).map(|n| if n < 4 || n % 4 == 3 { 4 * n as u32 } else { pairs[n] }).collect();
        assert_eq!(bench.read(to, LANES), expected, "strict {strict}");
        let fault = bench.run("store", 1, LANES as u16, 0, &[from, to]).expect_err("a copy from nowhere");
        assert!(matches!(fault.kind, FaultKind::LdsBounds { offset: 0x7fff_ffef, .. }), "{fault}");
    }
}

/// The last allocation unit is there as a whole: what is stored after the workgroup's own bytes is loaded again, and
/// told once for each instruction. With exact bounds it is a fault.
#[test]
fn the_rest_of_the_last_unit_is_memory_unless_bounds_are_exact() {
    /// Bytes of LDS: an odd dword in a unit.
    const OWN: u32 = 516;
    if !compiler_is_there() {
        return;
    }
    // Mesa's `lds_alloc_granularity`, and LLVM's `getAddressableLocalMemorySize` and its granules for the others.
    let units = [
        ("gfx900", 512),
        ("gfx90a", 512),
        ("gfx942", 512),
        ("gfx950", 1280),
        ("gfx1010", 512),
        ("gfx1030", 1024),
        ("gfx1100", 1024),
        ("gfx1200", 1024),
        ("gfx1250", 2048),
    ];
    for (target, unit) in units {
        let gfx12 = Target::by_name(target).expect("a target").generation() >= 12;
        let wait = if gfx12 { "s_wait_dscnt 0" } else { "s_waitcnt lgkmcnt(0)" };
        let both =
            format!("ds_write_b32 v2, v4\n{wait}\nds_read_b32 v8, v2\n{wait}\nds_read2_b32 v[10:11], v2 offset1:1");
        let image = bare::assemble(target, &bare::kernel(target, "k", OWN, &body(target, &both)));
        let end = OWN.next_multiple_of(unit);
        // Each lane has two dwords of its own after the workgroup's, for all of which there is room.
        let addresses = std::array::from_fn(|lane| OWN + 4 + 8 * lane as u32);
        let run = |strict: bool, addresses: [u32; LANES]| {
            let mut bench = bare::bench(target, strict, 1, &image);
            let (from, to) = (bench.buffer(&input(&addresses)), bench.buffer(&[0; 8 * LANES]));
            bench.run("k", 1, LANES as u16, 0, &[from, to]).map(|stats| (stats, bench.read(to, 8 * LANES)))
        };
        let (stats, found) = run(false, addresses).unwrap_or_else(|fault| panic!("{target}: {fault}"));
        for (lane, row) in found.chunks(8).enumerate() {
            assert_eq!(row[..4], [datum(lane, 0), BEFORE, datum(lane, 0), 0], "{target}, lane {lane}");
        }
        let told: Vec<String> = stats.overruns.iter().map(ToString::to_string).collect();
        let says = format!(
            "LDS access of 4 bytes at offset 0x208 is outside the 516 bytes of the workgroup, for which {end} "
        );
        assert_eq!(told.len(), 3, "{target}: {told:?}");
        assert!(told[0].starts_with(&says) && told[0].contains(", in `ds_"), "{target}: {told:?}");
        // The last dword of the unit, and the first after it.
        let (stats, found) = run(false, [end - 8; LANES]).unwrap_or_else(|fault| panic!("{target}: {fault}"));
        assert_eq!((stats.overruns.len(), found[0]), (3, datum(LANES - 1, 0)), "{target}");
        let (stats, found) = run(false, [end; LANES]).unwrap_or_else(|fault| panic!("{target}: {fault}"));
        assert_eq!((stats.overruns.len(), &found[..4]), (0, &[0, BEFORE, 0, 0][..]), "{target}");
        let fault = run(true, addresses).expect_err("bounds are exact");
        assert!(matches!(fault.kind, FaultKind::LdsBounds { allocated: OWN, .. }), "{target}: {fault}");
    }
}

/// Flat instructions, too, and those that add M0 or load to LDS.
#[test]
fn all_instructions_reach_the_rest_of_the_last_unit() {
    if !compiler_is_there() {
        return;
    }
    let ways = [
        // The high half of flat addresses of LDS; v2 is the low one.
        "s_mov_b64 s[10:11], src_shared_base\nv_mov_b32 v3, s11\nflat_store_dword v[2:3], v4\n\
            s_waitcnt vmcnt(0) lgkmcnt(0)\nflat_load_dword v8, v[2:3]",
        "s_mov_b32 m0, 520\ns_nop 0\nds_write_addtid_b32 v4\ns_waitcnt lgkmcnt(0)\nds_read_addtid_b32 v8",
        "s_mov_b32 m0, 520\ns_nop 0\nglobal_load_lds_dword v1, s[4:5] offset:0\ns_waitcnt vmcnt(0)\nds_read_b32 v8, v2",
    ];
    for (n, way) in ways.iter().enumerate() {
        let image = bare::assemble("gfx942", &bare::kernel("gfx942", "k", 516, &body("gfx942", way)));
        for strict in [false, true] {
            let mut bench = bare::bench("gfx942", strict, 1, &image);
            let addresses = std::array::from_fn(|lane| 520 + 4 * lane as u32);
            let (from, to) = (bench.buffer(&input(&addresses)), bench.buffer(&[0; 8 * LANES]));
            match bench.run("k", 1, LANES as u16, 0, &[from, to]) {
                Ok(stats) => {
                    assert!(!strict && !stats.overruns.is_empty(), "{way}");
                    let found = bench.read(to, 8 * LANES);
                    // The load to LDS takes the first word of a lane's row, which is its address.
                    let expected = |lane: usize| if n == 2 { addresses[lane] } else { datum(lane, 0) };
                    (0..LANES).for_each(|lane| assert_eq!(found[8 * lane], expected(lane), "{way}, lane {lane}"));
                }
                Err(fault) => {
                    assert!(
                        strict && matches!(fault.kind, FaultKind::LdsBounds { allocated: 516, .. }),
                        "{way}: {fault}"
                    );
                }
            }
        }
    }
}
