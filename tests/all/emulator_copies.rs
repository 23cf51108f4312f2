//! Copies between memory and LDS at barriers: they have an order of their own, beside that of LDS instructions.

use crate::emulated::{Bench, compiler_is_there, newer};
use wavetap::emulator::{Fault, FaultKind};
use wavetap::isa::Target;

/// How a target copies 4 bytes of each lane from `s[4:5]`, at the offset in `v21`, to LDS at `v20`, waits for a count
/// of copies, and waits for LDS.
struct Copy {
    target: &'static str,
    load: &'static str,
    wait: fn(u32) -> String,
    wait_lds: &'static str,
    barrier: &'static str,
    read: &'static str,
    write: &'static str,
}

fn vmcnt(count: u32) -> String {
    format!("s_waitcnt vmcnt({count})")
}

const GFX9: Copy = Copy {
    target: "gfx942",
    // The first lane's place is the wave's.
    load: "s_nop 0\nv_readfirstlane_b32 s12, v20\ns_mov_b32 m0, s12\ns_nop 0\nglobal_load_lds_dword v21, s[4:5]",
    wait: vmcnt,
    wait_lds: "s_waitcnt lgkmcnt(0)",
    barrier: "s_barrier",
    read: "ds_read_b32",
    write: "ds_write_b32",
};

const COPIES: [Copy; 4] = [
    Copy {
        target: "gfx90a",
        load: "s_nop 0\nv_readfirstlane_b32 s12, v20\ns_mov_b32 m0, s12\ns_nop 0\nbuffer_load_dword v21, s[8:11], 0 \
            offen lds",
        ..GFX9
    },
    GFX9,
    Copy { target: "gfx950", ..GFX9 },
    Copy {
        target: "gfx1250",
        // global_load_async_to_lds_b32 v20, v21, s[4:5]
        load: ".long 0xee180004, 0x14, 0x15",
        // s_wait_asynccnt
        wait: |count| format!(".long {:#x}", 0xbfca_0000 + count),
        wait_lds: "s_wait_dscnt 0",
        barrier: "s_barrier_signal -1\ns_barrier_wait -1",
        read: "ds_load_b32",
        write: "ds_store_b32",
    },
];

/// Runs two waves, each of which copies its part of the input to LDS, at 1024, and writes LDS at 0; the other wave's
/// places are `v23` there and `v24` here. Gives what they have in `v8` and `v9`.
fn run(copy: &Copy, code: &str) -> Result<Vec<[u32; 2]>, Box<Fault>> {
    let lanes = if Target::by_name(copy.target).expect("a target").generation() < 10 { 64 } else { 32 };
    let Copy { load, wait, wait_lds, barrier, read, write, .. } = copy;
    let mut code = code.to_owned();
    for (name, text) in [("LOAD", *load), ("LDS", wait_lds), ("BARRIER", barrier), ("READ", read), ("WRITE", write)] {
        code = code.replace(name, text);
    }
    code = code.replace("XCNT", if copy.target == "gfx1250" { ".long 0xbfc50000" } else { "s_nop 0" });
    for count in 0..2 {
        code = code.replace(&format!("WAIT{count}"), &wait(count));
    }
    let before = format!(
        "v_lshlrev_b32 v21, 2, v0\nv_lshlrev_b32 v22, 2, v0\nv_xor_b32 v24, {:#x}, v22\nv_or_b32 v20, 0x400, v22\n\
         v_or_b32 v23, 0x400, v24\n\
         s_mov_b32 s8, s4\ns_and_b32 s9, s5, 0xffff\ns_mov_b32 s10, -1\ns_mov_b32 s11, 0x27000\n",
        4 * lanes
    );
    let dir = tempfile::tempdir().expect("directory");
    let image = newer::object(dir.path(), copy.target, &format!("{before}{code}"));
    let mut outcome = Ok(Vec::new());
    for seed in 0..6 {
        let mut bench = Bench::new(copy.target, seed, &image);
        let input: Vec<u32> = (0..512).map(|n| 1000 + n).collect();
        let (input, output) = (bench.buffer(&input), bench.buffer(&[0; 512]));
        bench.run("it", 1, 2 * lanes, 0, &[input, output])?;
        let found = bench.read(output, 8 * usize::from(lanes)).chunks(4).map(|words| [words[0], words[1]]).collect();
        outcome = Ok(found);
    }
    outcome
}

fn lanes(found: &[[u32; 2]]) -> usize {
    found.len() / 2
}

/// The copy is in flight at the first barrier, and done at the second. What was written to LDS and waited for is there
/// at the first.
#[test]
fn a_copy_in_flight_says_nothing_of_lds() {
    if !compiler_is_there() {
        return;
    }
    for copy in &COPIES {
        let code = "LOAD\nWRITE v22, v0\nLDS\nBARRIER\nREAD v9, v24\nLDS\nWAIT0\nBARRIER\nREAD v8, v23\nLDS";
        let found = run(copy, code).unwrap_or_else(|fault| panic!("{}: {fault}", copy.target));
        for (item, [copied, written]) in found.iter().enumerate() {
            let other = (item ^ lanes(&found)) as u32;
            assert_eq!((*copied, *written), (1000 + other, other), "{} {item}", copy.target);
        }
        // And one that is done says nothing of what was written and not waited for.
        let missing = code.replacen("LDS\nBARRIER", "WAIT0\nBARRIER", 1);
        let fault = run(copy, &missing).expect_err(copy.target);
        assert!(
            matches!(&fault.kind, FaultKind::LdsRace { other, .. } if other.instruction.starts_with("ds_")),
            "{}: {fault}",
            copy.target
        );
    }
}

/// Another wave reads what was copied, or writes there, and the copy was not waited for before the barrier.
#[test]
fn a_copy_that_was_not_waited_for_is_found() {
    if !compiler_is_there() {
        return;
    }
    for copy in &COPIES {
        for code in [
            "LOAD\nWRITE v22, v0\nLDS\nBARRIER\nREAD v8, v23\nLDS\nWAIT0",
            "LOAD\nLDS\nBARRIER\nWAIT0\nREAD v8, v23\nLDS",
            "LOAD\nBARRIER\nWRITE v23, v0\nLDS\nWAIT0",
            // Of two the last.
            "LOAD\nXCNT\nv_xor_b32 v20, 0x800, v20\nLOAD\nWAIT1\nBARRIER\nv_xor_b32 v23, 0x800, v23\nREAD v8, v23\n\
                LDS\nWAIT0",
            // Its own wave reads it.
            "LOAD\nREAD v8, v20\nLDS\nWAIT0",
        ] {
            let fault = run(copy, code).expect_err(code);
            let found =
                matches!(&fault.kind, FaultKind::LdsRace { other, .. } if !other.instruction.starts_with("ds_"));
            assert!(found, "{} {code}: {fault}", copy.target);
        }
        // Of two the first.
        let first = "LOAD\nXCNT\nv_xor_b32 v20, 0x800, v20\nLOAD\nWAIT1\nBARRIER\nREAD v8, v23\nLDS\nWAIT0";
        let found = run(copy, first).unwrap_or_else(|fault| panic!("{}: {fault}", copy.target));
        assert!(
            found.iter().enumerate().all(|(item, [copied, _])| *copied == 1000 + (item ^ lanes(&found)) as u32),
            "{found:?}"
        );
    }
}

/// A copy from LDS to memory reads LDS until it has been waited for.
#[test]
fn a_copy_to_memory_reads_late() {
    if !compiler_is_there() {
        return;
    }
    // global_store_async_from_lds_b32 v21, v20, s[6:7], past what the template stores.
    let copy = &COPIES[3];
    let piece = |between: &str| {
        format!(
            "v_or_b32 v21, 0x400, v21\nWRITE v20, v0\nLDS\n.long 0xee190006, 0x0a000000, 0x15\n{between}\nv_mov_b32 \
                v2, 5\nWRITE v23, v2\nLDS\nWAIT0"
        )
    };
    for code in [piece("BARRIER"), piece("WAIT1\nBARRIER"), piece("v_mov_b32 v23, v20")] {
        let fault = run(copy, &code).expect_err(&code);
        assert!(
            matches!(&fault.kind, FaultKind::LdsRace { other, .. } if other.instruction.contains("async")),
            "{fault}"
        );
    }
    for code in [piece("WAIT0\nBARRIER"), piece("WAIT0\nv_mov_b32 v23, v20")] {
        run(copy, &code).unwrap_or_else(|fault| panic!("{code}: {fault}"));
    }
}
