//! Files: cubins of both forms, fat binaries with each compression, host files, relocatable code, lines, and damage.

use wavetap_base::error::Kind;
use wavetap_code::{Code, Exit, Flow, SourceLines as _};
use wavetap_nvidia::container::{Cubin, ImageKind, images, open};

const SOURCE: &str = include_str!("../../fixtures/small.cu");
const SM_80: &[u8] = include_bytes!("../../fixtures/sm_80.cubin");
const PLAIN: &[u8] = include_bytes!("../../fixtures/plain.fatbin");
const ZSTD: &[u8] = include_bytes!("../../fixtures/zstd.fatbin");
const LZ4: &[u8] = include_bytes!("../../fixtures/lz4.fatbin");
const HOST: &[u8] = include_bytes!("../../fixtures/host.o");
const RELOCATABLE: &[u8] = include_bytes!("../../fixtures/relocatable.cubin");

fn cubin(bytes: &[u8]) -> Cubin {
    Cubin::parse(bytes.to_vec(), "fixture").expect("a cubin")
}

fn names(cubin: &Cubin) -> Vec<&str> {
    cubin.functions().map(|function| function.name()).collect()
}

#[test]
fn fat_binaries() {
    let contents = |file| -> Vec<Vec<u8>> {
        images(file).expect("images").iter().map(|image| image.contents().expect("contents").into_owned()).collect()
    };
    let plain = contents(PLAIN);
    assert_eq!(plain.len(), 3);
    assert_eq!(contents(ZSTD)[..2], plain[..2], "zstd");
    assert_eq!(contents(LZ4)[..2], plain[..2], "LZ4");
    let kinds: Vec<_> = images(PLAIN).expect("images").iter().map(|image| (image.kind, image.model)).collect();
    assert_eq!(
        kinds,
        [(ImageKind::Cubin, 80), (ImageKind::Cubin, 90), (ImageKind::Ptx, 90)]
            .into_iter()
            .filter(|kind| kinds.contains(kind))
            .collect::<Vec<_>>()
    );
    for file in [PLAIN, ZSTD, LZ4, HOST] {
        let opened = open(file, "two").expect("opened");
        let models: Vec<_> = opened.cubins.iter().map(|cubin| cubin.model().number()).collect();
        assert!(models == [80, 90] || models == [90, 80], "{models:?}");
        assert!(opened.cubins.iter().all(|cubin| names(cubin) == ["one"] && cubin.origin().starts_with("two, entry")));
        assert_eq!((opened.refused.len(), opened.ptx.len()), (0, 1));
    }
}

#[test]
fn files_without_device_code_and_others() {
    let other = |bytes: &[u8]| open(bytes, "a file").expect_err("refused");
    assert_eq!(other(b"hello").kind(), Kind::Malformed);
    assert!(other(b"").to_string().contains("a file"));
    // A host file whose section has another name.
    let mut host = HOST.to_vec();
    let at = host.windows(11).position(|text| text == b".nv_fatbin\0").expect("a name");
    host[at + 1] = b'x';
    assert!(open(&host, "a file").expect("opened").cubins.is_empty());
}

/// The header of CUDA before 13: the model is in other bits.
#[test]
fn both_headers() {
    let with = |abi: u8, flags: u32| {
        let mut file = SM_80.to_vec();
        file[7] = abi;
        file[48..52].copy_from_slice(&flags.to_le_bytes());
        Cubin::parse(file, "a file")
    };
    assert_eq!(with(0x33, 0x0050_0550).expect("a cubin").model().number(), 80);
    assert_eq!(names(&with(0x33, 0x0056_0556).expect("a cubin")), names(&cubin(SM_80)));
    let refused = |abi, flags| with(abi, flags).expect_err("refused").to_string();
    assert!(refused(0x33, 0x0046_0546).contains("sm_70"));
    assert!(refused(0x33, 0x003d_053d).contains("before Volta"));
    assert!(refused(0x07, 0).contains("OS/ABI 0x7"));
}

#[test]
fn functions_and_their_code() {
    let cubin = cubin(SM_80);
    let kernels: Vec<_> = cubin.functions().filter(|function| function.is_kernel()).map(|f| f.name()).collect();
    assert_eq!(kernels.len(), 4);
    assert!(["choose", "copies", "reduce", "stream"].iter().all(|name| kernels.contains(name)));
    for function in cubin.functions() {
        let code = function.code(&()).expect("code");
        assert_eq!(code.is_kernel(), function.is_kernel());
        assert_eq!(code.properties().target, "sm_80");
    }
    let choose = cubin.functions().find(|function| function.name() == "choose").expect("there");
    let code = choose.code(&()).expect("code");
    let tables = code.instructions().iter().filter(|inst| inst.name.starts_with("BRX"));
    let targets: Vec<usize> =
        tables.map(|inst| if let Flow::Branch { targets, .. } = &inst.flow { targets.len() } else { 0 }).collect();
    assert!(!targets.is_empty() && targets.iter().all(|count| *count > 1), "{targets:?}");
}

/// In code that is not linked, calls name nothing yet: they are no branches to the next instruction.
#[test]
fn relocatable_code() {
    let cubin = cubin(RELOCATABLE);
    let called = cubin.functions().find(|function| function.name().contains("called")).expect("a function");
    assert!(!called.is_kernel());
    let choose = cubin.functions().find(|function| function.name() == "choose").expect("a kernel");
    let is_call =
        |code: &Code<'_>| code.instructions().iter().filter(|inst| matches!(inst.flow, Flow::Call(_))).count();
    assert!(is_call(&choose.code(&()).expect("code")) > 0);
    let code = called.code(&()).expect("code");
    let returns = |flow: &Flow| matches!(flow, Flow::Exit { exit: Exit::Return, .. });
    assert!(code.instructions().iter().any(|inst| returns(&inst.flow)));
}

#[test]
fn lines_and_inlined_calls() {
    let line_of = |text: &str| 1 + SOURCE.lines().position(|line| line.contains(text)).expect("a line") as u32;
    let cubin = cubin(SM_80);
    let stream = cubin.functions().find(|function| function.name() == "stream").expect("a kernel");
    let lines = stream.lines().expect("lines");
    let code = stream.code(&lines).expect("code");
    let of = |name: &str| {
        let inst = code.instructions().iter().find(|inst| inst.name == name).expect("an instruction");
        (code.lines().line(inst.address).expect("a line"), code.lines().inlined(inst.address))
    };
    let (load, calls) = of("LDG");
    assert!(load.file.ends_with("small.cu"));
    assert_eq!((load.line, calls.len()), (line_of("scaled(in[i]"), 0));
    let (multiply, calls) = of("FFMA");
    assert_eq!(multiply.line, line_of("return value * factor"));
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].called_at.line, line_of("scaled(in[i]"));
    assert!(calls[0].function.as_deref().is_some_and(|name| name.contains("scaled")), "{calls:?}");
    let plain = cubin_without_lines();
    let one = plain.functions().next().expect("a kernel");
    assert_eq!(one.lines().expect("none").line(0), None);
}

fn cubin_without_lines() -> Cubin {
    open(PLAIN, "two").expect("opened").cubins.remove(0)
}

/// An opcode that is not known refuses its kernel by name and place, and no other.
#[test]
fn unknown_opcodes() {
    let mut file = SM_80.to_vec();
    let whole = cubin(SM_80);
    let stream = whole.functions().find(|function| function.name() == "stream").expect("a kernel");
    let at = stream.file_offset() as usize + 0x20;
    file[at] = 0xff;
    file[at + 1] |= 0x0f;
    let damaged = cubin(&file);
    for function in damaged.functions() {
        let result = function.code(&());
        if function.name() == "stream" {
            let error = result.expect_err("refused");
            assert_eq!((error.kind(), error.offset()), (Kind::Unsupported, Some(0x20)));
            assert!(error.to_string().contains("opcode 0xfff") && error.to_string().contains("stream"), "{error}");
        } else {
            assert!(result.is_ok());
        }
    }
}

/// Whatever bytes a file has: an error or code, no panic, and no fault of the library.
#[test]
fn damaged_files() {
    let rounds: u64 = std::env::var("WAVETAP_MUTATIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(300);
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |count: usize| {
        // Xorshift (Marsaglia, 2003).
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % count.max(1) as u64) as usize
    };
    let (mut refused, mut read) = (0, 0);
    for file in [SM_80, PLAIN, ZSTD, LZ4, HOST, RELOCATABLE] {
        for round in 0..rounds {
            let mut bytes = file.to_vec();
            for _ in 0..=below(4) {
                // Headers and tables at the ends are hit more often.
                let at = match below(3) {
                    0 => below(256.min(bytes.len())),
                    1 => bytes.len() - 1 - below((bytes.len() / 8).max(1)),
                    _ => below(bytes.len()),
                };
                bytes[at] = [0, 0xff, 0x7f, 1 << below(8), below(256) as u8][below(5)];
            }
            if round % 5 == 0 {
                bytes.truncate(below(bytes.len()));
            }
            match open(&bytes, "damaged") {
                Ok(opened) => {
                    for function in opened.cubins.iter().flat_map(Cubin::functions) {
                        read += 1;
                        match function.lines() {
                            Ok(lines) => drop(function.code(&lines).map_err(|error| check(&error))),
                            Err(error) => check(&error),
                        }
                    }
                }
                Err(error) => {
                    refused += 1;
                    check(&error);
                }
            }
        }
    }
    println!("{refused} files refused, {read} functions read");
    assert!(refused > 0 && read > 0);
}

fn check(error: &wavetap_base::error::Error) {
    assert!(error.kind() != Kind::Internal && !error.to_string().is_empty(), "{error}");
}
