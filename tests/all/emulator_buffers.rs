//! Bounds of buffers, row by row of `docs/reference/buffer-bounds.md`: each access against a reference that knows
//! nothing but that table.

use std::path::Path;
use std::process::Command;

use crate::emulated::{Bench, compiler_is_there};
use wavetap::emulator::{Device, FaultKind, Options};
use wavetap::isa::Target;

/// Words of memory; the buffer begins in the middle, so that what is wrongly in range is seen and does not fault.
const WORDS: usize = 1024;
const MIDDLE: usize = 512;
const LANES: usize = 16;
/// What registers hold before: nothing writes it.
const BEFORE: u32 = 0xeeee_eeee;

/// A descriptor and a scalar offset.
#[derive(Debug, Clone, Copy)]
struct Buffer {
    stride: u32,
    records: u32,
    /// `OOB_SELECT`, gfx10 and later.
    select: u32,
    soffset: u32,
}

/// What an instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Load,
    Store,
    Atomic,
    Format,
}

/// An instruction: name, what it does, bytes.
type Instruction = (&'static str, Kind, u32);

const LOADS: [Instruction; 6] = [
    ("buffer_load_ubyte v8", Kind::Load, 1),
    ("buffer_load_ushort v8", Kind::Load, 2),
    ("buffer_load_dword v8", Kind::Load, 4),
    ("buffer_load_dwordx2 v[8:9]", Kind::Load, 8),
    ("buffer_load_dwordx3 v[8:10]", Kind::Load, 12),
    ("buffer_load_dwordx4 v[8:11]", Kind::Load, 16),
];
const STORES: [Instruction; 4] = [
    ("buffer_store_dword v4", Kind::Store, 4),
    ("buffer_store_dwordx2 v[4:5]", Kind::Store, 8),
    ("buffer_store_dwordx3 v[4:6]", Kind::Store, 12),
    ("buffer_store_dwordx4 v[4:7]", Kind::Store, 16),
];
const WHOLE: [Instruction; 2] =
    [("buffer_atomic_add_x2 v[4:5]", Kind::Atomic, 8), ("buffer_load_format_xyzw v[8:11]", Kind::Format, 16)];

const ATOMICS: [Instruction; 1] = [WHOLE[0]];

/// Index and offset of each lane. The last ones are those whose sum with the instruction's offset of 4 does not fit in
/// 32 bits, or only just does.
fn pairs(far: bool) -> [[u32; 2]; LANES] {
    std::array::from_fn(|lane| {
        let offset = match lane {
            14 if far => 0xffff_fffc,
            15 if far => 0xffff_fff8,
            _ => 4 * lane as u32,
        };
        [lane as u32 % 5, offset]
    })
}

/// The offset from the base of a dword of an access, if it is in range. Everything is in numbers that do not overflow.
fn place(
    generation: u32,
    buffer: Buffer,
    (idxen, offen): (bool, bool),
    [index, offset]: [u32; 2],
    (first, length): (u32, u32),
) -> Option<usize> {
    let Buffer { stride, records, select, soffset } = buffer;
    let (stride, records, soffset) = (u128::from(stride), u128::from(records), u128::from(soffset));
    let index = if idxen { u128::from(index) } else { 0 };
    let vector = (u128::from(if offen { offset } else { 0 }) + 4) % (1 << 32);
    let end = vector + u128::from(first) + u128::from(length);
    let in_bytes = |end: u128| end + soffset <= records;
    let inside = match (generation, select) {
        (8, _) => in_bytes(index * stride + end),
        (9, _) if idxen && stride != 0 => index < records,
        (9, _) => in_bytes(end),
        (1250, 0) => in_bytes(index * stride + end),
        (1250, _) => in_bytes(index * stride + end) && end + soffset <= stride,
        (_, 0) => index < records && end <= stride,
        (_, 1) => index < records,
        (_, 2) => records > 0,
        _ => in_bytes(end),
    };
    inside.then(|| (index * stride + vector + soffset + u128::from(first)) as usize)
}

/// The dwords of an access that are in range: offset from the base, of each.
fn dwords(
    generation: u32,
    buffer: Buffer,
    modes: (bool, bool),
    pair: [u32; 2],
    (_, kind, bytes): Instruction,
) -> Vec<Option<usize>> {
    let one = |first: u32, length: u32| place(generation, buffer, modes, pair, (first, length));
    match kind {
        Kind::Load | Kind::Store => (0..bytes.div_ceil(4)).map(|n| one(4 * n, bytes.min(4))).collect(),
        Kind::Atomic | Kind::Format => (0..bytes / 4).map(|n| one(0, bytes).map(|at| at + 4 * n as usize)).collect(),
    }
}

/// A kernel of one instruction: `v2` is the index, `v3` the offset, `v[4:7]` what is stored, `v[8:11]` what is loaded.
fn kernel(target: &str, name: &str, body: &str) -> String {
    let generation = generation(target);
    let wait = |old: &str, new: &str| if generation >= 12 { new.to_owned() } else { format!("s_waitcnt {old}") };
    let (scalar, all) = (wait("lgkmcnt(0)", "s_wait_kmcnt 0"), wait("vmcnt(0)", "s_wait_loadcnt 0"));
    // gfx8 has flat addresses only.
    let flat = |base: u32, shift: u32| {
        let high = base + 1;
        format!(
            "v_lshlrev_b32 v1, {shift}, v0\nv_mov_b32 v13, s{high}\nv_add_u32 v12, vcc, s{base}, v1\nv_addc_u32 v13, \
                vcc, 0, v13, vcc\n"
        )
    };
    let (get, put) = if generation == 8 {
        (
            flat(10, 3) + "flat_load_dwordx2 v[2:3], v[12:13]\ns_waitcnt vmcnt(0) lgkmcnt(0)",
            flat(8, 4) + "flat_store_dwordx4 v[12:13], v[8:11]",
        )
    } else {
        (
            format!("v_lshlrev_b32 v1, 3, v0\nglobal_load_dwordx2 v[2:3], v1, s[10:11]\n{all}"),
            "v_lshlrev_b32 v1, 4, v0\ns_nop 7\nglobal_store_dwordx4 v1, v[8:11], s[8:9]".to_owned(),
        )
    };
    let old: String = (8..12).map(|n| format!("v_mov_b32 v{n}, {BEFORE:#x}\n")).collect();
    let new: String = (4..8).map(|n| format!("v_mov_b32 v{n}, {:#x}\n", stored(n - 4))).collect();
    format!(
        ".text\n.globl {name}\n.p2align 8\n.type {name},@function\n{name}:\ns_load_dwordx8 s[4:11], s[0:1], 0x0\n\
         s_load_dword s12, s[0:1], 0x20\n\
         v_and_b32 v0, 0x3ff, v0\n{scalar}\n{get}\n{old}{new}s_nop 7\n{body}\n{all}\n{scalar}\n{put}\ns_endpgm\n\
         .rodata\n.p2align 6\n.amdhsa_kernel {name}\n.amdhsa_user_sgpr_kernarg_segment_ptr 1\n.amdhsa_next_free_vgpr \
         32\n.amdhsa_next_free_sgpr 40\n\
         {}{}.end_amdhsa_kernel\n",
        if generation >= 10 { ".amdhsa_wavefront_size32 1\n" } else { "" },
        if matches!(target, "gfx90a" | "gfx942") { ".amdhsa_accum_offset 32\n" } else { "" },
    )
}

/// The words that are stored.
fn stored(n: u32) -> u32 {
    0x5700_0000 + n
}

fn generation(target: &str) -> u32 {
    Target::by_name(target).expect("a target").generation()
}

/// Assembles kernels for a target. What this LLVM does not know is assembled for its predecessor, whose encodings of
/// these instructions it has.
fn assemble(dir: &Path, target: &str, text: &str) -> Vec<u8> {
    let (source, object, image) = (dir.join("buffers.s"), dir.join("buffers.o"), dir.join("buffers.co"));
    std::fs::write(&source, format!(".amdhsa_code_object_version 5\n{text}")).expect("written");
    let cpu = if target == "gfx1250" { "gfx1200" } else { target };
    let run = |program: &str, arguments: &[&std::ffi::OsStr]| {
        let output = Command::new(program).args(arguments).output().expect("it starts");
        assert!(output.status.success(), "{target}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let cpu = format!("-mcpu={cpu}");
    run(
        "clang-19",
        &[
            "-target".as_ref(),
            "amdgcn-amd-amdhsa".as_ref(),
            cpu.as_ref(),
            "-c".as_ref(),
            source.as_ref(),
            "-o".as_ref(),
            object.as_ref(),
        ],
    );
    run("ld.lld-19", &["-shared".as_ref(), object.as_ref(), "-o".as_ref(), image.as_ref()]);
    let mut bytes = std::fs::read(image).expect("a code object");
    if target == "gfx1250" {
        // EF_AMDGPU_MACH_AMDGCN_GFX1250.
        bytes[0x30] = 0x49;
    }
    bytes
}

/// The four words of a descriptor.
fn words(generation: u32, base: u64, buffer: Buffer, format: bool) -> [u32; 4] {
    let Buffer { stride, records, select, .. } = buffer;
    let (low, high) = (base as u32, (base >> 32) as u32);
    if generation == 1250 {
        // All units have their turn: 8 bytes for 24, 4 for 12, 32 for 32 and 64, 1 for 16.
        let units = if stride == 16 { [(1, 0)].as_slice() } else { &[(32, 3), (8, 2), (4, 1)] };
        let (unit, code) = units.iter().find(|(unit, _)| stride % unit == 0).expect("a unit");
        return [low, high | (records & 0x7f) << 25, records >> 7, (stride / unit) << 12 | code << 26 | select << 29];
    }
    // 32_32_32_32_UINT, all four components in their order.
    let format = match generation {
        _ if !format => 0,
        8 | 9 => 0xfac | 4 << 12 | 14 << 15,
        10 => 0xfac | 75 << 12,
        _ => 0xfac | 61 << 12,
    };
    [low, high | stride << 16, records, format | if generation >= 10 { select << 28 } else { 0 }]
}

fn contents() -> Vec<u32> {
    (0..WORDS as u32).map(|n| 0xd000_0000 + n).collect()
}

/// The bytes of an access at an offset from the base, as a register has them.
fn value(memory: &[u32], base: usize, at: usize, bytes: u32) -> u32 {
    let all: Vec<u8> = memory.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut word = [0; 4];
    word[..bytes.min(4) as usize].copy_from_slice(&all[base + at..][..bytes.min(4) as usize]);
    u32::from_le_bytes(word)
}

fn rows(generation: u32) -> Vec<(Buffer, bool)> {
    let row = |stride, records, select, soffset| Buffer { stride, records, select, soffset };
    let mut rows = Vec::new();
    let raw = if (10..1250).contains(&generation) { 3 } else { 0 };
    // Buffers of bytes, offsets of registers and scalars in their bounds.
    for (records, soffset) in [(40, 0), (40, 8), (40, 36), (40, 40), (40, 64), (0, 0)] {
        rows.push((row(0, records, raw, soffset), true));
    }
    if generation != 8 {
        rows.push((row(0, 38, raw, 0), true));
    }
    match generation {
        // Bytes, elements of a stride included.
        8 => rows.extend([(row(16, 40, 0, 0), true), (row(16, 64, 0, 4), true)]),
        9 => rows.extend([(row(16, 3, 0, 0), false), (row(12, 3, 0, 8), false), (row(12, 0, 0, 0), false)]),
        1250 => {
            rows.extend([(row(16, 72, 0, 0), true), (row(16, 72, 1, 0), true), (row(16, 72, 1, 8), true)]);
            // Strides in other units: 4, 8 and 32 bytes.
            rows.extend([
                (row(12, 50, 0, 4), true),
                (row(32, 150, 1, 16), true),
                (row(24, 90, 0, 0), true),
                (row(64, 150, 0, 16), true),
            ]);
        }
        _ => {
            rows.extend([(row(16, 3, 0, 0), true), (row(12, 3, 0, 8), true), (row(0, 3, 0, 0), true)]);
            rows.extend([(row(16, 3, 1, 0), false), (row(16, 3, 1, 8), false), (row(0, 3, 1, 0), false)]);
            rows.extend([(row(16, 1, 2, 0), false), (row(16, 0, 2, 0), false)]);
        }
    }
    rows
}

const MODES: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];

fn address((idxen, offen): (bool, bool)) -> &'static str {
    match (idxen, offen) {
        (false, false) => ", off, s[4:7], s12 offset:4",
        (false, true) => ", v3, s[4:7], s12 offen offset:4",
        (true, false) => ", v2, s[4:7], s12 idxen offset:4",
        (true, true) => ", v[2:3], s[4:7], s12 idxen offen offset:4",
    }
}

fn check(target: &str, instructions: &[Instruction]) {
    let dir = tempfile::tempdir().expect("a directory");
    let generation = generation(target);
    let mut text = String::new();
    for (n, (name, kind, _)) in instructions.iter().enumerate() {
        for (mode, modes) in MODES.into_iter().enumerate() {
            let returns = match (kind, generation) {
                (Kind::Atomic, 12..) => " th:TH_ATOMIC_RETURN",
                (Kind::Atomic, _) => " glc",
                _ => "",
            };
            text += &kernel(target, &format!("k{n}_{mode}"), &format!("{name}{}{returns}", address(modes)));
        }
    }
    let image = assemble(dir.path(), target, &text);
    let mut bench = Bench::new(target, 1, &image);
    let memory = bench.buffer(&contents());
    for (buffer, far) in rows(generation) {
        for (n, instruction) in instructions.iter().copied().enumerate() {
            let (name, kind, bytes) = instruction;
            // An atomic of 8 bytes is aligned to them; the offset is 4, and the rows' scalar offsets are multiples of
            // 4.
            let back = if kind == Kind::Atomic { 4 } else { 0 };
            if kind == Kind::Atomic && !(buffer.soffset.is_multiple_of(8) && buffer.stride.is_multiple_of(8)) {
                continue;
            }
            let base = 4 * MIDDLE - back;
            let [w0, w1, w2, w3] = words(generation, memory + base as u64, buffer, kind == Kind::Format);
            for (mode, modes) in MODES.into_iter().enumerate() {
                let what = format!("{target} `{name}` {modes:?} of {buffer:?}");
                let mut pairs = pairs(far);
                if (10..1250).contains(&generation) && buffer.select == 3 {
                    pairs.iter_mut().for_each(|pair| pair[0] = 0);
                }
                if kind == Kind::Atomic {
                    pairs.iter_mut().for_each(|pair| pair[1] &= !7);
                }
                let kernel = format!("k{n}_{mode}");
                let list = bench.buffer(pairs.as_flattened());
                // Lanes that store would overlap: each by itself.
                let alone = matches!(kind, Kind::Store | Kind::Atomic);
                for lane in 0..if alone { LANES } else { 1 } {
                    bench
                        .device
                        .write(memory, &contents().iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())
                        .expect("written");
                    let out = bench.buffer(&[BEFORE; 4 * LANES]);
                    let list = list + 8 * lane as u64;
                    let arguments = [
                        u64::from(w0) | u64::from(w1) << 32,
                        u64::from(w2) | u64::from(w3) << 32,
                        out,
                        list,
                        u64::from(buffer.soffset),
                    ];
                    bench
                        .run(&kernel, 1, if alone { 1 } else { LANES as u16 }, 0, &arguments)
                        .unwrap_or_else(|fault| panic!("{what}: {fault}"));
                    let mut expected = contents();
                    for (at, pair) in pairs.iter().enumerate().skip(lane).take(if alone { 1 } else { LANES }) {
                        let places = dwords(generation, buffer, modes, *pair, instruction);
                        let found = &bench.read(out, 4 * LANES)[4 * (at - lane)..][..4];
                        match kind {
                            Kind::Load | Kind::Format => {
                                let loaded = |place: &Option<usize>| {
                                    place.map_or(0, |place| value(&expected, base, place, bytes))
                                };
                                let wanted: Vec<u32> = places.iter().map(loaded).collect();
                                assert_eq!(&found[..wanted.len()], wanted, "{what}, lane {at} with {pair:x?}");
                                assert!(found[wanted.len()..].iter().all(|word| *word == BEFORE), "{what}, lane {at}");
                            }
                            Kind::Store => {
                                for (n, place) in places.iter().enumerate() {
                                    if let Some(place) = place {
                                        expected[(base + place) / 4] = stored(n as u32);
                                    }
                                }
                            }
                            Kind::Atomic => {
                                if let Some(place) = places[0] {
                                    let word = (base + place) / 4;
                                    let sum = (u64::from(expected[word]) | u64::from(expected[word + 1]) << 32)
                                        .wrapping_add(u64::from(stored(0)) | u64::from(stored(1)) << 32);
                                    (expected[word], expected[word + 1]) = (sum as u32, (sum >> 32) as u32);
                                }
                            }
                        }
                    }
                    assert_eq!(
                        bench.read(memory, WORDS),
                        expected,
                        "{what}, memory after lane {lane} with {:x?}",
                        pairs[lane]
                    );
                }
            }
        }
    }
}

#[test]
fn each_dword_of_a_load_is_by_itself() {
    if compiler_is_there() {
        for target in ["gfx803", "gfx900", "gfx90a", "gfx942", "gfx1010", "gfx1030", "gfx1100", "gfx1200", "gfx1250"] {
            check(target, &LOADS);
        }
    }
}

#[test]
fn each_dword_of_a_store_is_by_itself() {
    if compiler_is_there() {
        for target in ["gfx803", "gfx90a", "gfx1030", "gfx1100", "gfx1200", "gfx1250"] {
            check(target, &STORES);
        }
    }
}

#[test]
fn formats_and_atomics_are_all_or_nothing() {
    if compiler_is_there() {
        for target in ["gfx803", "gfx900", "gfx90a", "gfx1030", "gfx1100", "gfx1200"] {
            check(target, &WHOLE);
        }
        // It has no formats.
        check("gfx1250", &ATOMICS);
    }
}

/// The first byte decides for each dword of a scalar load; the length is that of all elements.
#[test]
fn scalar_loads_end_with_the_dword_that_begins_in_range() {
    if !compiler_is_there() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    for target in ["gfx803", "gfx90a", "gfx1030", "gfx1100", "gfx1200", "gfx1250"] {
        let generation = generation(target);
        let wait = if generation >= 12 { "s_wait_kmcnt 0" } else { "s_waitcnt lgkmcnt(0)" };
        let moves: String = (0..4).map(|n| format!("v_mov_b32 v{}, s{}\n", 8 + n, 16 + n)).collect();
        let image = assemble(
            dir.path(),
            target,
            &kernel(target, "k", &format!("s_buffer_load_dwordx4 s[16:19], s[4:7], s12\n{wait}\n{moves}")),
        );
        let mut bench = Bench::new(target, 1, &image);
        let (memory, list) = (bench.buffer(&contents()), bench.buffer(&[0; 2]));
        let base = 4 * MIDDLE;
        for (stride, records) in [(0, 40), (0, 38), (0, 0), (12, 3), (16, 2)] {
            for soffset in (0..64).step_by(4) {
                // Of a stride on gfx1250 its guide says two things.
                if target == "gfx1250" && stride != 0 {
                    continue;
                }
                let buffer = Buffer { stride, records, select: 0, soffset };
                let [w0, w1, w2, w3] = words(generation, memory + base as u64, buffer, false);
                let out = bench.buffer(&[BEFORE; 4]);
                let arguments = [
                    u64::from(w0) | u64::from(w1) << 32,
                    u64::from(w2) | u64::from(w3) << 32,
                    out,
                    list,
                    u64::from(soffset),
                ];
                bench.run("k", 1, 1, 0, &arguments).unwrap_or_else(|fault| panic!("{target} {buffer:?}: {fault}"));
                let wanted: Vec<u32> = (0..4)
                    .map(|n| soffset + 4 * n)
                    .map(|at| if at < records * stride.max(1) { value(&contents(), base, at as usize, 4) } else { 0 })
                    .collect();
                assert_eq!(bench.read(out, 4), wanted, "{target} {buffer:?}");
            }
        }
    }
}

/// Between records and records times stride gfx1250's guide says two things.
#[test]
fn scalar_loads_of_a_buffer_with_a_stride_on_gfx1250() {
    if !compiler_is_there() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let moves: String = (0..4).map(|n| format!("v_mov_b32 v{}, s{}\n", 8 + n, 16 + n)).collect();
    let load = format!("s_buffer_load_dwordx4 s[16:19], s[4:7], s12\ns_wait_kmcnt 0\n{moves}");
    let mut bench = Bench::new("gfx1250", 1, &assemble(dir.path(), "gfx1250", &kernel("gfx1250", "k", &load)));
    let (memory, list) = (bench.buffer(&contents()), bench.buffer(&[0; 2]));
    for (soffset, expected) in
        [(0, Some(true)), (16, Some(true)), (20, None), (40, None), (380, None), (384, Some(false))]
    {
        let buffer = Buffer { stride: 12, records: 32, select: 0, soffset };
        let [w0, w1, w2, w3] = words(1250, memory + 4 * MIDDLE as u64, buffer, false);
        let out = bench.buffer(&[BEFORE; 4]);
        let arguments =
            [u64::from(w0) | u64::from(w1) << 32, u64::from(w2) | u64::from(w3) << 32, out, list, u64::from(soffset)];
        let ran = bench.run("k", 1, 1, 0, &arguments);
        match expected {
            None => assert!(matches!(&ran.expect_err("refused").kind, FaultKind::Undefined { what }
                    if what.contains("with a stride"))),
            Some(inside) => {
                ran.unwrap_or_else(|fault| panic!("{soffset}: {fault}"));
                let at = |n: u32| value(&contents(), 4 * MIDDLE, (soffset + 4 * n) as usize, 4);
                assert_eq!(
                    bench.read(out, 4),
                    (0..4).map(|n| if inside { at(n) } else { 0 }).collect::<Vec<u32>>(),
                    "{soffset}"
                );
            }
        }
    }
}

/// What documents and measurements differ about, or say nothing of, is refused.
#[test]
fn what_is_not_sure_is_refused() {
    if !compiler_is_there() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let swizzled = |generation: u32| if generation >= 11 { 1 << 30 } else { 1_u32 << 31 };
    const ADD_LANE: u32 = 1 << 23;
    // Target, instruction, bits of words 1 and 3, stride, records, what is said.
    let cases = [
        (
            "gfx803",
            "buffer_load_dwordx4 v[8:11], v3, s[4:7], s12 offen",
            0,
            0,
            0,
            38,
            "a dword across the end of a buffer on gfx8",
        ),
        (
            "gfx90a",
            "buffer_load_dword v8, v2, s[4:7], s12 idxen",
            swizzled(9),
            0,
            16,
            64,
            "a swizzled buffer that does not add the lane",
        ),
        (
            "gfx90a",
            "buffer_load_dword v8, v2, s[4:7], s12 idxen",
            0,
            ADD_LANE,
            16,
            64,
            "adds the lane to an index that is given",
        ),
        (
            "gfx1030",
            "buffer_load_dword v8, v2, s[4:7], s12 idxen",
            0,
            ADD_LANE | 1 << 28,
            16,
            64,
            "adds the lane to an index that is given",
        ),
        (
            "gfx1030",
            "buffer_load_dwordx2 v[8:9], v2, s[4:7], s12 idxen",
            swizzled(10),
            1 << 28,
            16,
            64,
            "wider than what stays together",
        ),
        (
            "gfx1030",
            "buffer_load_dword v8, v2, s[4:7], s12 idxen",
            0,
            3 << 28,
            16,
            64,
            "an index into a raw buffer with a stride",
        ),
        (
            "gfx1200",
            "buffer_load_dword v8, v2, s[4:7], s12 idxen",
            swizzled(12),
            1 << 28,
            16,
            64,
            "a scalar offset in a swizzled buffer",
        ),
    ];
    for (target, instruction, high, last, stride, records, says) in cases {
        let image = assemble(dir.path(), target, &kernel(target, "k", instruction));
        let mut bench = Bench::new(target, 1, &image);
        let (memory, list, out) =
            (bench.buffer(&contents()), bench.buffer(pairs(false).as_flattened()), bench.buffer(&[0; 4 * LANES]));
        let [w0, w1, w2, w3] = words(
            generation(target),
            memory + 4 * MIDDLE as u64,
            Buffer { stride, records, select: 0, soffset: 0 },
            false,
        );
        let arguments =
            [u64::from(w0) | u64::from(w1 | high) << 32, u64::from(w2) | u64::from(w3 | last) << 32, out, list, 4];
        let fault = bench.run("k", 1, LANES as u16, 0, &arguments).expect_err(says);
        assert!(
            matches!(&fault.kind, FaultKind::Undefined { what } if what.contains(says)),
            "{target} {instruction}: {fault}"
        );
    }
}

/// Outside the strict mode an allocation ends with its page of 4 KiB: what is within it is let be and told, once for
/// each instruction.
#[test]
fn allocations_end_with_their_page_unless_bounds_are_exact() {
    if !compiler_is_there() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    // Lane n stores at 4 times its offset of the list, and loads it again.
    let body = "v_mov_b32 v4, v3\nv_lshlrev_b32 v3, 2, v3\nglobal_store_dword v3, v4, s[4:5]\ns_waitcnt vmcnt(0)\n\
        global_load_dword v8, v3, s[4:5]\ns_waitcnt vmcnt(0)\n\
        global_load_dword v9, v3, s[4:5] offset:4";
    let image = assemble(dir.path(), "gfx90a", &kernel("gfx90a", "k", body));
    let run = |strict: bool, offsets: &[u32]| {
        let target = Target::by_name("gfx90a").expect("a target");
        let mut device = Device::new(target, Options { strict, ..Options::default() });
        let object = device.load(&image).expect("it loads");
        let mut bench = Bench::on(device, object, &image);
        let memory = bench.device.malloc(24, 256).expect("memory");
        let list: Vec<u32> = offsets.iter().flat_map(|offset| [0, *offset]).collect();
        let (list, out) = (bench.buffer(&list), bench.buffer(&[0; 4 * LANES]));
        let stats = bench.run("k", 1, offsets.len() as u16, 0, &[memory, 0, out, list, 0])?;
        Ok::<_, wavetap::emulator::Fault>((stats.overruns, bench.read(out, 4 * offsets.len()), memory))
    };
    let inside = run(false, &[0, 1, 4]).expect("no fault");
    assert!(inside.0.is_empty(), "{:?}", inside.0);
    // Dwords 6 and up are after the end; the page has 1024.
    let (overruns, found, memory) = run(false, &[0, 6, 900, 1022]).expect("no fault");
    assert_eq!([found[0], found[4], found[8], found[12]], [0, 6, 900, 1022]);
    let told: Vec<String> = overruns.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 3, "{told:?}");
    let begin = format!(
        "store of 4 bytes at {:#x} runs past the end of its allocation, {memory:#x}..{:#x}, in `global_store_dword",
        memory + 24,
        memory + 24
    );
    assert!(told[0].starts_with(&begin), "{told:?}");
    let fault = run(false, &[1023]).expect_err("the last load begins where the page ends");
    assert!(matches!(fault.kind, FaultKind::Memory { .. }), "{fault}");
    let fault = run(true, &[0, 6]).expect_err("bounds are exact");
    assert!(fault.to_string().contains("is outside every allocation"), "{fault}");
}
