//! Small kernels that Triton compiled (`triton/objects`): their code is decoded as Triton's own assembly text has it,
//! and they run in strict mode, original and instrumented in both counter modes, with results that are computed here.

use rewriter_tests::instrumented::{Launch, Subject};
use rewriter_tests::place::root;
use serde::Deserialize;
use wavetap::code_object::{CodeObject, Kernel};
use wavetap::isa::{EventHazards, Target};
use wavetap::pipeline::{self, Listed};
use wavetap::report::disassembly::Disassembly;

/// What `objects.json` says of one.
#[derive(Deserialize)]
struct Object {
    file: String,
    target: String,
    case: String,
    kernel: String,
    workgroups: [u32; 3],
    workgroup: u16,
    dynamic_lds: u32,
    mnemonics: String,
}

#[derive(Deserialize)]
struct Objects {
    objects: Vec<Object>,
}

/// A kernel argument.
#[derive(Clone, Copy)]
enum Argument {
    /// The address of the buffer with this number.
    Buffer(usize),
    Int(i32),
}

/// How a kernel is launched, and what it leaves.
struct Case {
    buffers: Vec<Vec<u8>>,
    arguments: Vec<Argument>,
    /// Which buffer is the output, and what it is to hold.
    output: usize,
    expected: Vec<u8>,
}

fn folder() -> std::path::PathBuf {
    root().join("rewriter-tests/triton/objects")
}

fn objects() -> Vec<(Object, Vec<u8>)> {
    let listed = std::fs::read(folder().join("objects.json")).expect("objects.json");
    let listed: Objects = serde_json::from_slice(&listed).expect("what objects.py writes");
    let read = |object: Object| {
        let bytes = std::fs::read(folder().join(&object.file)).expect("an object");
        (object, bytes)
    };
    listed.objects.into_iter().map(read).collect()
}

fn ints(values: impl IntoIterator<Item = i32>) -> Vec<u8> {
    values.into_iter().flat_map(i32::to_le_bytes).collect()
}

fn floats(values: impl IntoIterator<Item = f32>) -> Vec<u8> {
    values.into_iter().flat_map(f32::to_le_bytes).collect()
}

/// Half precision of a whole number of at most 11 bits, which it represents exactly.
fn half(value: i32) -> u16 {
    let (sign, magnitude) = (u16::from(value < 0) << 15, value.unsigned_abs());
    if magnitude == 0 {
        return sign;
    }
    let exponent = magnitude.ilog2();
    assert!(exponent <= 10, "{value} is not exact");
    let fraction = (magnitude << (10 - exponent)) & 0x3ff;
    sign | ((exponent + 15) as u16) << 10 | fraction as u16
}

fn halves(values: impl IntoIterator<Item = i32>) -> Vec<u8> {
    values.into_iter().flat_map(|value| half(value).to_le_bytes()).collect()
}

/// Numbers that look random and are the same everywhere.
fn number(seed: i32, index: usize, modulus: i32) -> i32 {
    let mixed = (index as u32 ^ (seed as u32) << 16).wrapping_mul(0x9e37_79b1);
    ((mixed ^ mixed >> 15) % modulus as u32) as i32
}

fn vector_add() -> Case {
    const N: usize = 1000;
    let of = |seed: i32| (0..N).map(move |i| number(seed, i, 4096) as f32 / 8.0);
    let sum = of(1).zip(of(2)).map(|(a, b)| a + b);
    let out = vec![0; N * 4];
    let arguments = vec![Argument::Buffer(0), Argument::Buffer(1), Argument::Buffer(2), Argument::Int(N as i32)];
    Case { buffers: vec![floats(of(1)), floats(of(2)), out], arguments, output: 2, expected: floats(sum) }
}

fn where_masks() -> Case {
    const N: usize = 500;
    let of = |seed: i32| (0..N).map(move |i| number(seed, i, 101) - 50);
    let chosen = of(3).zip(of(4)).enumerate().map(|(at, (a, y))| {
        let b = if a > 0 { y } else { 7 };
        let value = if a > b && at % 3 != 0 {
            a - b
        } else if a < 0 {
            -a
        } else {
            b
        };
        if at % 5 == 4 { 0 } else { value }
    });
    let arguments = vec![Argument::Buffer(0), Argument::Buffer(1), Argument::Buffer(2), Argument::Int(N as i32)];
    Case { expected: ints(chosen), buffers: vec![ints(of(3)), ints(of(4)), vec![0; N * 4]], arguments, output: 2 }
}

fn cumsum() -> Case {
    const ROWS: usize = 16;
    const COLS: usize = 128;
    let x: Vec<i32> = (0..ROWS * COLS).map(|i| number(5, i, 200) - 100).collect();
    let sums = x.chunks(COLS).flat_map(|row| {
        row.iter().scan(0, |sum, value| {
            *sum += value;
            Some(*sum)
        })
    });
    let expected = ints(sums);
    Case {
        buffers: vec![ints(x), vec![0; expected.len()]],
        arguments: vec![Argument::Buffer(0), Argument::Buffer(1)],
        output: 1,
        expected,
    }
}

fn histogram() -> Case {
    const N: usize = 1000;
    let x: Vec<i32> = (0..N).map(|i| number(6, i, 64)).collect();
    let expected = ints((0..64).map(|bin| x.iter().filter(|value| **value == bin).count() as i32));
    let arguments = vec![Argument::Buffer(0), Argument::Buffer(1), Argument::Int(N as i32)];
    Case { buffers: vec![ints(x), vec![0; 64 * 4]], arguments, output: 1, expected }
}

fn while_loop() -> Case {
    const N: usize = 300;
    let x: Vec<i32> = (0..N).map(|i| 1 + number(7, i, 499)).collect();
    let steps = x.iter().map(|value| {
        std::iter::successors(Some(*value), |v| (*v != 1).then(|| if v % 2 == 0 { v / 2 } else { 3 * v + 1 })).count()
            as i32
            - 1
    });
    let expected = ints(steps);
    let arguments = vec![Argument::Buffer(0), Argument::Buffer(1), Argument::Int(N as i32)];
    Case { buffers: vec![ints(x), vec![0; N * 4]], arguments, output: 1, expected }
}

fn matmul() -> Case {
    const M: usize = 64;
    const N: usize = 64;
    const K: usize = 160;
    // Sums of 160 products of at most 9 stay below 2048, where half precision has every whole number.
    let a: Vec<i32> = (0..M * K).map(|i| number(8, i, 7) - 3).collect();
    let b: Vec<i32> = (0..K * N).map(|i| number(9, i, 7) - 3).collect();
    let product = |m: usize, n: usize| (0..K).map(|k| a[m * K + k] * b[k * N + n]).sum::<i32>();
    let expected = halves((0..M * N).map(|i| product(i / N, i % N)));
    let sizes = [M, N, K, K, N, N].map(|size| Argument::Int(size as i32));
    let arguments = [Argument::Buffer(0), Argument::Buffer(1), Argument::Buffer(2)].into_iter().chain(sizes).collect();
    Case { buffers: vec![halves(a), halves(b), vec![0; M * N * 2]], arguments, output: 2, expected }
}

fn case(name: &str) -> Case {
    match name {
        "vector_add" => vector_add(),
        "where_masks" => where_masks(),
        "cumsum" => cumsum(),
        "histogram" => histogram(),
        "while_loop" => while_loop(),
        "matmul_fp16_one_wave" => matmul(),
        other => panic!("{other}: no case"),
    }
}

/// The kernel arguments: those of the case, and then null pointers to the scratch memory that Triton's launcher may
/// give.
fn kernarg(kernel: &Kernel, arguments: &[Argument], addresses: &[u64]) -> Result<Vec<u8>, String> {
    let metadata = kernel.metadata.as_ref().ok_or("no metadata")?;
    let mut bytes = vec![0; metadata.kernarg_segment_size as usize];
    let mut given = arguments.iter();
    for argument in &metadata.args {
        let value = match given.next() {
            Some(Argument::Buffer(number)) => addresses[*number].to_le_bytes().to_vec(),
            Some(Argument::Int(value)) => value.to_le_bytes().to_vec(),
            None => continue,
        };
        if value.len() as u64 != argument.size {
            return Err(format!(
                "an argument of {} bytes at {}, and the case has one of {}",
                argument.size,
                argument.offset,
                value.len()
            ));
        }
        bytes[argument.offset as usize..][..value.len()].copy_from_slice(&value);
    }
    match given.next() {
        Some(_) => Err("the case has more arguments than the kernel".to_owned()),
        None => Ok(bytes),
    }
}

#[test]
fn the_disassembly_is_tritons_assembly_text() {
    for (object, bytes) in objects() {
        let mut text = Disassembly::default();
        let unread = pipeline::disassemble(&bytes, &Listed::default(), &mut text).expect("an object");
        assert!(unread.is_empty(), "{}: {unread:?}", object.file);
        let instructions = text.objects.iter().flat_map(|object| &object.code).flat_map(|code| &code.instructions);
        let words = instructions
            .flat_map(|inst| (0..inst.times).map(|_| inst.instruction.split(' ').next().unwrap_or_default()));
        let mut found = words.peekable();
        for expected in object.mnemonics.split(' ') {
            // An alignment in the text is a run of these in the code.
            while expected != "s_nop" && found.next_if_eq(&"s_nop").is_some() {}
            assert_eq!(found.next(), Some(expected), "{}", object.file);
        }
        // After the end there is what an instruction cache may fetch.
        assert_eq!(found.find(|mnemonic| !["s_code_end", "s_nop"].contains(mnemonic)), None, "{}", object.file);
    }
}

#[test]
fn results_are_what_is_computed_here_and_counts_what_the_emulator_sees() {
    for (object, bytes) in objects() {
        let target = Target::by_name(&object.target).expect("a target");
        let Case { buffers, arguments, output, expected } = case(&object.case);
        let code = CodeObject::parse(&bytes).expect("an object");
        assert!(code.kernel(&object.kernel).is_some(), "{}", object.file);
        let launch = Launch {
            kernel: &object.kernel,
            grid: [object.workgroups[0] * u32::from(object.workgroup), object.workgroups[1], object.workgroups[2]],
            group: [object.workgroup, 1, 1],
            dynamic: object.dynamic_lds,
            buffers,
            arguments: Box::new(move |kernel, addresses| kernarg(kernel, &arguments, addresses)),
            fuel: 10_000_000,
            tolerated: EventHazards::empty(),
            undefined: false,
        };
        let subject = Subject::of(&bytes, target).unwrap_or_else(|e| panic!("{}: {e}", object.file));
        assert_eq!(subject.refusals(&object.kernel), [], "{}", object.file);
        for seed in 1..4 {
            let outcome = subject.original(&launch, seed).unwrap_or_else(|e| panic!("{}: {e}", object.file));
            assert!(
                outcome.buffers[output] == expected,
                "{}, seed {seed}: {:?}",
                object.file,
                first_difference(&outcome.buffers[output], &expected)
            );
        }
        let compared = subject.compare(&launch, 1..4).unwrap_or_else(|e| panic!("{}: {e}", object.file));
        assert!(compared.dispatches == subject.dispatches(&object.kernel, 3), "{}: {compared:?}", object.file);
    }
}

/// Where two buffers differ first, and what is there.
fn first_difference(found: &[u8], expected: &[u8]) -> Option<(usize, u8, u8)> {
    found.iter().zip(expected).enumerate().find(|(_, (a, b))| a != b).map(|(at, (a, b))| (at, *a, *b))
}
