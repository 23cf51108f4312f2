//! Wrong inputs through the library: whatever is cut off or changed, the answer is an error or a result, never a panic,
//! and never a result from a file that is not all there.

use std::fs;

use rewriter_tests::random::Random;
use rewriter_tests::{full, place};
use wavetap::cfg::{Cfg, Program};
use wavetap::code_object::CodeObject;
use wavetap::dataflow::{Liveness, Summaries};
use wavetap::error::Result;
use wavetap::kernel::Image;
use wavetap::offload_bundle::Input;

/// Takes a file apart as far as analyses go; the number of instructions found.
fn take_apart(data: &[u8]) -> Result<usize> {
    let mut instructions = 0;
    let input = Input::parse(data)?;
    // What cannot be read beside the rest is an error here.
    let problem = input
        .malformed
        .first()
        .map(|part| &part.error)
        .or_else(|| input.bundles.iter().find_map(|bundle| bundle.problem()));
    if let Some(problem) = problem {
        return Err(problem.clone());
    }
    for found in input.code_objects() {
        instructions += take_object_apart(found.bytes)?;
    }
    Ok(instructions)
}

fn take_object_apart(data: &[u8]) -> Result<usize> {
    let object = CodeObject::parse(data)?;
    let Some(target) = object.target() else { return Ok(0) };
    let image = Image::of(&object)?;
    let program = Program::of(target, &image);
    let summaries = Summaries::compute(&program);
    // Lines are looked up only for a person to read: an error there is one, too, but must not hide the rest.
    let lines = object.line_table();
    for body in program.bodies() {
        let cfg = Cfg::build(body);
        let _ = Liveness::compute(body, &cfg, &summaries);
        let _ = (cfg.dominators(), cfg.post_dominators(), cfg.loops());
        if let Ok(Some(lines)) = &lines {
            let _ = lines.frames(body.entry_address());
        }
    }
    Ok(program.bodies().iter().map(|body| body.len()).sum())
}

fn sample(name: &str) -> Vec<u8> {
    fs::read(place::samples().join(name)).expect("a prebuilt sample")
}

#[test]
fn samples_can_be_taken_apart() {
    for name in place::sample_names() {
        let count = take_apart(&sample(&name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(count > 60, "{name}: {count} instructions");
    }
}

#[test]
fn a_host_file_cut_off_at_every_64th_byte_is_an_error() {
    for name in ["divergence", "o0"] {
        let whole = sample(name);
        for size in (0..whole.len()).step_by(64) {
            let error = take_apart(&whole[..size])
                .expect_err(&format!("{name}: {size} of {} bytes are taken for the whole", whole.len()));
            let text = error.to_string();
            assert!(!text.contains('\n') && !text.is_empty(), "one line: {text:?}");
        }
    }
}

#[test]
fn a_code_object_cut_off_at_every_64th_byte_is_an_error() {
    let file = sample("two_kernels");
    let input = Input::parse(&file).unwrap();
    for found in input.code_objects() {
        for size in (0..found.bytes.len()).step_by(64) {
            assert!(
                take_object_apart(&found.bytes[..size]).is_err(),
                "{size} of {} bytes are taken for the whole",
                found.bytes.len()
            );
        }
    }
}

#[test]
fn a_bundle_cut_off_at_every_64th_byte_is_an_error() {
    let file = sample("vectoradd");
    let input = Input::parse(&file).unwrap();
    let bundle = &input.bundles[0];
    let bytes = &file[bundle.offset as usize..(bundle.offset + bundle.size) as usize];
    assert!(take_apart(bytes).unwrap() > 0);
    for size in (0..bytes.len()).step_by(64) {
        assert!(take_apart(&bytes[..size]).is_err(), "{size} of {} bytes are taken for the whole", bytes.len());
    }
}

#[test]
fn a_descriptor_outside_the_file_is_an_error() {
    let file = sample("vectoradd");
    let input = Input::parse(&file).unwrap();
    let object = input.code_objects().next().unwrap().bytes.to_vec();
    let parsed = CodeObject::parse(&object).unwrap();
    let descriptor = parsed
        .symbols()
        .iter()
        .chain(parsed.dynamic_symbols())
        .find(|s| s.name.ends_with(".kd"))
        .expect("a kernel")
        .address;
    // Every copy of the address, which is in the symbol tables only, is sent outside.
    let mut tried = 0;
    for outside in [u64::MAX - 63, 1 << 40, object.len() as u64 + 64, u64::MAX - 7] {
        let mut broken = object.clone();
        for at in (0..broken.len() - 7).step_by(8) {
            if broken[at..at + 8] == descriptor.to_le_bytes() {
                broken[at..at + 8].copy_from_slice(&outside.to_le_bytes());
                tried += 1;
            }
        }
        let error = take_object_apart(&broken).expect_err("a kernel without descriptor");
        assert!(!error.to_string().contains('\n'));
    }
    assert!(tried >= 4);
}

#[test]
fn random_damage_never_panics() {
    let rounds = if full() { 40_000 } else { 1_500 };
    let file = sample("two_kernels");
    let input = Input::parse(&file).unwrap();
    let object = input.code_objects().next().unwrap().bytes;
    let mut random = Random::new(0x7761_7665_7461_7031);
    let (mut errors, mut results) = (0, 0);
    for round in 0..rounds {
        // The whole file seldom: its tables are a small part of it.
        let mut broken = if round % 8 == 0 { file.clone() } else { object.to_vec() };
        for _ in 0..=random.below(4) {
            // Headers and tables are at both ends, and damage there reaches furthest.
            let place = match random.below(3) {
                0 => random.below(1024),
                1 => broken.len() - 1 - random.below(2048),
                _ => random.below(broken.len()),
            };
            let value = match random.below(4) {
                0 => 0xff,
                1 => 0,
                2 => broken[place] ^ (1 << random.below(8)),
                _ => random.below(256) as u8,
            };
            broken[place] = value;
        }
        let result = if round % 8 == 0 { take_apart(&broken) } else { take_object_apart(&broken) };
        match result {
            Ok(_) => results += 1,
            Err(e) => {
                assert!(!e.to_string().contains('\n'), "one line: {e}");
                errors += 1;
            }
        }
    }
    assert!(
        errors > rounds / 20 && results > rounds / 20,
        "{errors} errors, {results} results: the damage is too wild or too mild"
    );
}
