//! Rows of `docs/reference/memory-scopes.md` that no compiler here makes code for (gfx950, gfx1250), and what compilers
//! leave no hole for: kernels written by hand, with their waits and without.

use crate::emulated::{Bench, compiler_is_there, newer};
use wavetap::emulator::{Fault, FaultKind};

/// Most seeds that a kernel without its wait gets to show it.
const SEEDS: u64 = 60;

/// How a target spells what these kernels are made of.
struct Spelling {
    target: &'static str,
    /// Items of a wave.
    lanes: u16,
    /// Workgroup id to `s12`.
    group: &'static str,
    barrier: &'static str,
    /// A store and a load that other workgroups see, by the letters that make them so.
    scope: &'static str,
    wait_loads: &'static str,
    wait_lds: &'static str,
    /// A release to the device without its waits; the waits for stores.
    release: &'static str,
    wait_stores: &'static str,
    acquire: &'static str,
    /// The waves of a workgroup share no cache that keeps operations in order.
    apart: bool,
}

const GFX950: Spelling = Spelling {
    target: "gfx950",
    lanes: 64,
    group: "s_mov_b32 s12, s2",
    barrier: "s_barrier",
    scope: "sc1",
    wait_loads: "s_waitcnt vmcnt(0)",
    wait_lds: "s_waitcnt lgkmcnt(0)",
    release: "buffer_wbl2 sc1",
    wait_stores: "s_waitcnt vmcnt(0)",
    acquire: "buffer_inv sc1",
    apart: false,
};

const ALL: [Spelling; 4] =
    [Spelling { target: "gfx942", ..GFX950 }, GFX950, Spelling { target: "gfx1200", ..GFX12_5 }, GFX12_5];

const GFX12_5: Spelling = Spelling {
    target: "gfx1250",
    lanes: 32,
    group: "s_mov_b32 s12, ttmp9",
    barrier: "s_barrier_signal -1\ns_barrier_wait -1",
    scope: "scope:SCOPE_DEV",
    wait_loads: "s_wait_loadcnt 0",
    wait_lds: "s_wait_dscnt 0",
    release: "global_wb scope:SCOPE_DEV",
    wait_stores: "s_wait_storecnt 0",
    acquire: "global_inv scope:SCOPE_DEV",
    apart: true,
};

/// Runs a piece in so many workgroups of two waves; gives the first result word of the items of the last one.
fn run(spelling: &Spelling, code: &str, groups: u32, seed: u64) -> Result<Vec<u32>, Box<Fault>> {
    let dir = tempfile::tempdir().expect("directory");
    run_in(dir.path(), spelling, code, groups, seed..seed + 1).map(|mut all| all.remove(0))
}

fn run_in(
    dir: &std::path::Path,
    spelling: &Spelling,
    code: &str,
    groups: u32,
    seeds: std::ops::Range<u64>,
) -> Result<Vec<Vec<u32>>, Box<Fault>> {
    let mut code = code.to_owned();
    for (name, text) in [
        ("GROUP", spelling.group),
        ("BARRIER", spelling.barrier),
        ("SCOPE", spelling.scope),
        ("LOADS", spelling.wait_loads),
        ("LDS", spelling.wait_lds),
        ("RELEASE", spelling.release),
        ("STORES", spelling.wait_stores),
        ("ACQUIRE", spelling.acquire),
    ] {
        code = code.replace(name, text);
    }
    let image = newer::object(dir, spelling.target, &code);
    let items = 2 * spelling.lanes;
    let all = seeds.map(|seed| {
        let mut bench = Bench::new(spelling.target, seed, &image);
        let (input, output) = (bench.buffer(&[0; 4]), bench.buffer(&[0; 2048]));
        bench.run("it", groups, items, 0, &[input, output])?;
        Ok(bench.read(output, 4 * usize::from(items)).chunks(4).map(|words| words[0]).collect())
    });
    all.collect()
}

/// Each wave stores what the other loads after the barrier.
const BY_BARRIER: &str = "v_lshlrev_b32 v2, 2, v0\nv_xor_b32 v3, 0xMASK, v2\nv_mov_b32 v4, v0\nglobal_store_dword v2, \
    v4, s[6:7] offset:3000\nSTORES\nBARRIER\n\
    global_load_dword v8, v3, s[6:7] offset:3000\nLOADS";
/// The first workgroup stores data and then a flag that the second waits for; only that one has results.
const BY_FLAG: &str = "v_lshlrev_b32 v2, 2, v0\nv_mov_b32 v4, v0\nv_mov_b32 v6, 0\nv_mov_b32 v7, 1\nGROUP\n\
    s_cmp_eq_u32 s12, 0\ns_cbranch_scc0 .Lsecond\n\
    global_store_dword v2, v4, s[6:7] offset:3000\nRELEASE\nSTORES\nBARRIER\nglobal_store_dword v6, v7, s[6:7] \
    offset:4092 SCOPE\n\
    s_mov_b32 exec_lo, 0\nHIGH\ns_branch .Lend\n.Lsecond:\n.Lpoll:\nglobal_load_dword v5, v6, s[6:7] offset:4092 \
    SCOPE\nLOADS\n\
    v_readfirstlane_b32 s13, v5\ns_cmp_eq_u32 s13, 0\ns_cbranch_scc1 .Lpoll\nACQUIRE\nLOADS\n\
    global_load_dword v8, v2, s[6:7] offset:3000 SCOPE\nLOADS\n.Lend:";

fn by_barrier(spelling: &Spelling) -> String {
    BY_BARRIER.replace("MASK", &format!("{:x}", 4 * spelling.lanes))
}

fn by_flag(spelling: &Spelling) -> String {
    BY_FLAG.replace("HIGH", if spelling.lanes == 64 { "s_mov_b32 exec_hi, 0" } else { "s_nop 0" })
}

#[test]
fn waves_of_a_workgroup_wait_where_they_share_no_cache() {
    if !compiler_is_there() {
        return;
    }
    let dir = tempfile::tempdir().expect("directory");
    for spelling in &ALL {
        let expected: Vec<u32> =
            (0..2 * u32::from(spelling.lanes)).map(|item| item ^ u32::from(spelling.lanes)).collect();
        let with = by_barrier(spelling);
        let found =
            run_in(dir.path(), spelling, &with, 1, 0..8).unwrap_or_else(|fault| panic!("{}: {fault}", spelling.target));
        assert!(found.iter().all(|found| *found == expected), "{}: {found:?}", spelling.target);
        let without = with.replace("STORES", "s_nop 0");
        if spelling.apart {
            let fault = run(spelling, &without, 1, 1).expect_err(spelling.target);
            assert!(
                matches!(&fault.kind, FaultKind::MissingWait { register, .. } if register.starts_with("memory at")),
                "{fault}"
            );
        } else {
            let found = run_in(dir.path(), spelling, &without, 1, 0..8)
                .unwrap_or_else(|fault| panic!("{}: {fault}", spelling.target));
            assert!(found.iter().all(|found| *found == expected), "{}: {found:?}", spelling.target);
        }
    }
}

#[test]
fn workgroups_wait_before_a_flag() {
    if !compiler_is_there() {
        return;
    }
    let dir = tempfile::tempdir().expect("directory");
    for spelling in &ALL {
        let expected: Vec<u32> = (0..2 * u32::from(spelling.lanes)).collect();
        let with = by_flag(spelling);
        let found = run_in(dir.path(), spelling, &with, 2, 0..12)
            .unwrap_or_else(|fault| panic!("{}: {fault}", spelling.target));
        assert!(found.iter().all(|found| *found == expected), "{}: {found:?}", spelling.target);
        let without = with.replace("STORES", "s_nop 0");
        let found = run_in(dir.path(), spelling, &without, 2, 0..SEEDS)
            .unwrap_or_else(|fault| panic!("{}: {fault}", spelling.target));
        assert!(
            found.iter().any(|found| *found != expected),
            "{}: no seed shows that the wait is missing",
            spelling.target
        );
    }
}

/// LDS does not depend on the mode of a workgroup: a write that was not waited for is a race, whether the other wave is
/// on the same compute unit or on the other.
#[test]
fn lds_is_waited_for_in_either_mode() {
    if !compiler_is_there() {
        return;
    }
    let piece = |target: &str, wait: &str, through_flat: bool| {
        let lanes = 32;
        // FLAT: the address of LDS is its aperture and the offset.
        let write = match through_flat {
            false => "ds_write_b32 v2, v0",
            true => {
                "s_mov_b64 s[14:15], src_shared_base\nv_mov_b32 v13, s15\nv_mov_b32 v12, v2\nflat_store_dword \
                    v[12:13], v0"
            }
        };
        let (barrier, read) = match target.starts_with("gfx12") {
            true => ("s_barrier_signal -1\ns_barrier_wait -1", "s_wait_dscnt 0"),
            false => ("s_barrier", "s_waitcnt lgkmcnt(0)"),
        };
        format!(
            "v_lshlrev_b32 v2, 2, v0\nv_xor_b32 v3, {:#x}, v2\n{write}\n{wait}\n{barrier}\nds_read_b32 v8, v3\n{read}",
            4 * lanes
        )
    };
    let spelling = |target| Spelling { target, lanes: 32, ..GFX12_5 };
    for (target, wait, both) in [
        ("gfx1010", "s_waitcnt lgkmcnt(0)", "s_waitcnt lgkmcnt(0)\ns_waitcnt_vscnt null, 0"),
        ("gfx1030", "s_waitcnt lgkmcnt(0)", "s_waitcnt lgkmcnt(0)\ns_waitcnt_vscnt null, 0"),
        ("gfx1100", "s_waitcnt lgkmcnt(0)", "s_waitcnt lgkmcnt(0)\ns_waitcnt_vscnt null, 0"),
        ("gfx1200", "s_wait_dscnt 0", "s_wait_storecnt_dscnt 0"),
        ("gfx1250", "s_wait_dscnt 0", "s_wait_storecnt_dscnt 0"),
    ] {
        let it = spelling(target);
        for through_flat in [false, true] {
            let with = piece(target, if through_flat { both } else { wait }, through_flat);
            let found = run(&it, &with, 1, 3).unwrap_or_else(|fault| panic!("{target}: {fault}"));
            assert!(found.iter().enumerate().all(|(item, word)| *word == item as u32 ^ 32), "{target}: {found:?}");
            let fault = run(&it, &piece(target, "s_nop 0", through_flat), 1, 3).expect_err(target);
            assert!(matches!(fault.kind, FaultKind::LdsRace { .. }), "{target}: {fault}");
        }
    }
}
