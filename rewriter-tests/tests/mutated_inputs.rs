//! Mutated inputs through everything that reads them: inspect, disassemble, memory, slice, rewrite, verify. Whatever is
//! changed, the answer comes soon, in one line that names a place, and never as a panic.
//!
//! Half of the changes are aimed at fields: of bundle tables, compressed headers, ELF, program and section headers,
//! notes, descriptors, symbol tables, code; with values that lie near what was there, near the sizes of things, or at
//! the ends of their range. What is inside a compressed bundle is changed before it is packed, so that its checksum
//! holds. `WAVETAP_MUTATIONS=N` makes N of them, `WAVETAP_MUTATION_SEED=S` begins elsewhere, and one input comes again
//! with its seed.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use rewriter_tests::random::Random;
use rewriter_tests::{full, place};
use wavetap::code_object::CodeObject;
use wavetap::elf::Elf;
use wavetap::elf::constants::{PT_DYNAMIC, PT_NOTE};
use wavetap::error::{Error, Kind};
use wavetap::offload_bundle::{Input, Method, write_compressed, write_plain};
use wavetap::pipeline::{
    self, Counters, Evidence, Inspected, Listed, MemoryInputs, Options, Selection, disassemble, inspect, probe, rewrite,
};
use wavetap::report::disassembly::Disassembly;
use wavetap::verify;

/// One input takes no longer than this, on a machine that does other things, too. The longest that was seen is a
/// hundredth of it.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// The process never has more memory than this: inputs are below 100 kB, and a header may claim 64 MiB without being
/// suspect.
const MEMORY_LIMIT_KB: u64 = 1 << 20;

/// A file to be changed, and where changes reach furthest.
struct Seed {
    name: String,
    bytes: Vec<u8>,
    places: Vec<Range<usize>>,
    /// Packed after the change.
    packed: Option<(u16, Method)>,
}

fn range(start: u64, size: u64, end: usize) -> Range<usize> {
    (start as usize).min(end)..(start.saturating_add(size) as usize).min(end)
}

/// The places of an ELF file: each header by itself, so that few large tables do not hide many small ones.
fn elf_places(bytes: &[u8], base: usize) -> Vec<Range<usize>> {
    let Ok(elf) = Elf::parse(bytes) else { return Vec::new() };
    let end = bytes.len();
    let mut places = vec![0..64, 0..64];
    let header = elf.header;
    for index in 0..elf.segments.len() as u64 {
        places.push(range(header.segments_offset + index * 56, 56, end));
    }
    for (index, section) in elf.sections.iter().enumerate() {
        places.push(range(header.sections_offset + index as u64 * 64, 64, end));
        if section.has_contents() && section.size > 0 {
            places.push(range(section.offset, section.size, end));
        }
    }
    for segment in elf.segments.iter().filter(|segment| [PT_NOTE, PT_DYNAMIC].contains(&segment.kind)) {
        places.push(range(segment.offset, segment.file_size, end));
    }
    if let Ok(code) = CodeObject::parse(bytes) {
        for kernel in code.kernels() {
            if let Some(offset) = elf.file_offset(kernel.descriptor_address, 64) {
                places.push(range(offset, 64, end));
                places.push(range(offset, 64, end));
            }
            if let Some(offset) = elf.file_offset(kernel.entry, 1) {
                places.push(range(offset, kernel.code.end - kernel.code.start, end));
            }
        }
    }
    places.into_iter().filter(|place| !place.is_empty()).map(|place| place.start + base..place.end + base).collect()
}

/// The places of a plain bundle.
fn bundle_places(bytes: &[u8], base: usize) -> Vec<Range<usize>> {
    let Ok(input) = Input::parse(bytes) else { return Vec::new() };
    let mut places = Vec::new();
    for bundle in &input.bundles {
        let start = bundle.offset as usize + base;
        let table = 32 + bundle.entries.iter().map(|entry| 24 + entry.id.len()).sum::<usize>();
        places.extend([start..start + 32, start..start + table]);
        for (index, entry) in bundle.entries.iter().enumerate() {
            places.extend(elf_places(bundle.entry_bytes(index), start + entry.offset as usize));
        }
    }
    places
}

fn seeds() -> Vec<Seed> {
    let mut seeds = Vec::new();
    for sample in ["vectoradd", "divergence", "calls", "two_kernels"] {
        let file = fs::read(place::samples().join(sample)).expect("a sample");
        let input = Input::parse(&file).expect("parses");
        for found in input.code_objects() {
            let name = format!("{sample}, {}", found.target.map_or_else(String::new, ToString::to_string));
            seeds.push(Seed { name, bytes: found.bytes.to_vec(), places: elf_places(found.bytes, 0), packed: None });
        }
        let entries = &input.bundles[0].entries;
        // Two entries: more is more of the same.
        let few: Vec<(&str, &[u8])> = entries
            .iter()
            .enumerate()
            .take(2)
            .map(|(index, entry)| (entry.id.as_str(), input.bundles[0].entry_bytes(index)))
            .collect();
        let plain = write_plain(&few);
        let places = bundle_places(&plain, 0);
        seeds.push(Seed {
            name: format!("{sample}, bundle"),
            bytes: plain.clone(),
            places: places.clone(),
            packed: None,
        });
        for (version, method) in [(2, Method::Zlib), (2, Method::Zstd), (3, Method::Zlib), (3, Method::Zstd)] {
            let packed = write_compressed(&plain, version, method).expect("packed");
            let name = format!("{sample}, packed, v{version}, {method:?}");
            seeds.push(Seed {
                name: format!("{name}, header"),
                bytes: packed,
                places: vec![0..8, 8..32],
                packed: None,
            });
            seeds.push(Seed { name, bytes: plain.clone(), places: places.clone(), packed: Some((version, method)) });
        }
        let mut places = elf_places(&file, 0);
        places.extend(
            input.wrappers().iter().map(|wrapper| wrapper.file_offset as usize..wrapper.file_offset as usize + 24),
        );
        places.extend(bundle_places(&input.bundles[0].content, input.bundles[0].offset as usize));
        drop(input);
        seeds.push(Seed { name: format!("{sample}, host file"), bytes: file, places, packed: None });
    }
    assert!(seeds.iter().all(|seed| !seed.places.is_empty()));
    seeds
}

/// Changes the field of `size` bytes at `at`.
fn change_field(bytes: &mut [u8], at: usize, size: usize, random: &mut Random) {
    let end = bytes.len() as u64;
    let Some(field) = bytes.get_mut(at..at + size) else { return };
    let mut old = [0; 8];
    old[..size].copy_from_slice(field);
    let old = u64::from_le_bytes(old);
    let new = match random.below(12) {
        0 => 0,
        1 => 1,
        2 => u64::MAX,
        3 => u64::MAX >> 1,
        4 => u64::from(u32::MAX) - random.below(8) as u64,
        5 => old ^ 1 << random.below(8 * size),
        6 => old.wrapping_add(1 + random.below(8) as u64),
        7 => old.wrapping_sub(1 + random.below(8) as u64),
        8 => end.wrapping_sub(random.below(64) as u64),
        9 => old.wrapping_mul(2),
        10 => 1 << random.below(64),
        _ => random.bits(),
    };
    field.copy_from_slice(&new.to_le_bytes()[..size]);
}

fn mutate(seed: &Seed, random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.bytes.clone();
    for _ in 0..1 + random.below(4) {
        let place = match random.below(8) {
            0 => 0..bytes.len(),
            _ => seed.places[random.below(seed.places.len())].clone(),
        };
        let size = [1, 2, 4, 4, 8, 8][random.below(6)];
        let at = place.start + random.below(place.len()) / size * size;
        change_field(&mut bytes, at, size, random);
    }
    if random.below(50) == 0 {
        bytes.truncate(random.below(bytes.len()));
    }
    match seed.packed {
        Some((version, method)) => write_compressed(&bytes, version, method).expect("packed"),
        None => bytes,
    }
}

/// Everything that reads a file. What went wrong at each step.
fn read_everything(original: &[u8], changed: &[u8]) -> Vec<(&'static str, Error)> {
    let mut errors = Vec::new();
    let mut note = |step, result: Result<(), Error>| errors.extend(result.err().map(|error| (step, error)));
    note("inspect", inspect(changed, &Inspected::default(), None).map(|_| ()));
    note("disassemble", disassemble(changed, &Listed::default(), &mut Disassembly::default()).map(|_| ()));
    let selection = Selection::default();
    note("memory", pipeline::memory(changed, &selection, MemoryInputs::default()).map(|_| ()));
    note("slice", pipeline::slice(changed, &selection, Evidence::default()).map(|_| ()));
    note("verify", verify::check_files(original, changed).map(|_| ()));
    // Each probe has its turn: the bytes choose it.
    let other = probe::ALL[changed.iter().fold(0, |sum, byte| sum + usize::from(*byte)) % probe::ALL.len()];
    for (probe, counters) in [(probe::BRANCHES, Counters::Lds), (other, Counters::Global)] {
        let options = Options { probes: vec![probe], counters, ..Options::default() };
        match rewrite(changed, &options) {
            // What is written can be read: by the verifier, which the rewriter ran on each object but not on the file.
            Ok(rewritten) => {
                let report = verify::check_files(changed, &rewritten.bytes);
                if let Ok(report) = &report {
                    assert!(report.findings.is_empty(), "a rewrite that is not faithful: {:?}", report.findings[0]);
                }
                note("verify the rewritten", report.map(|_| ()));
            }
            Err(error) => note("rewrite", Err(error)),
        }
    }
    errors
}

/// The most memory that this process had so far.
fn peak_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says so");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}

#[test]
fn mutated_inputs_are_answered() {
    let count = setting("WAVETAP_MUTATIONS").unwrap_or(if full() { 100_000 } else { 400 });
    let first = setting("WAVETAP_MUTATION_SEED").unwrap_or(1);
    let seeds = seeds();
    let (mut refused, mut accepted) = (0_u64, 0_u64);
    let mut slowest = (Duration::ZERO, 0);
    let mut faults: BTreeMap<String, String> = BTreeMap::new();
    for number in first..first + count {
        let mut random = Random::new(number);
        let seed = &seeds[random.below(seeds.len())];
        let changed = mutate(seed, &mut random);
        let original = match seed.packed {
            Some((version, method)) => write_compressed(&seed.bytes, version, method).expect("packed"),
            None => seed.bytes.clone(),
        };
        let start = Instant::now();
        let answer = catch_unwind(AssertUnwindSafe(|| read_everything(&original, &changed)));
        let took = start.elapsed();
        slowest = slowest.max((took, number));
        let mut fault = |what: String| {
            let input = format!("WAVETAP_MUTATION_SEED={number} WAVETAP_MUTATIONS=1 ({})", seed.name);
            faults.entry(what).or_insert(input);
        };
        match answer {
            Err(panic) => {
                let text = panic
                    .downcast_ref::<String>()
                    .cloned()
                    .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                fault(format!("panic: {}", text.unwrap_or_default()));
            }
            Ok(errors) if errors.is_empty() => accepted += 1,
            Ok(errors) => {
                refused += 1;
                for (step, error) in errors {
                    let text = error.to_string();
                    if text.contains('\n') || text.is_empty() {
                        fault(format!("{step}: not one line: {text:?}"));
                    }
                    if error.kind() == Kind::Internal || error.kind() == Kind::Io {
                        fault(format!("{step}: {:?}: {}", error.kind(), error.message()));
                    }
                    // A place is an offset, or an address or a kernel where there is none in the file.
                    if error.offset().is_none() && !text.contains("0x") && !text.contains("kernel") {
                        // Digits out, so that each message comes once.
                        let message: String =
                            error.message().chars().filter(|c| !c.is_ascii_digit()).take(50).collect();
                        fault(format!("{step}: {:?} without a place: {message}", error.kind()));
                    }
                }
            }
        }
        if took > TIME_LIMIT {
            fault(format!("took {took:?}"));
        }
    }
    println!(
        "{accepted} accepted, {refused} refused, slowest {:?} (number {}), peak {} kB",
        slowest.0,
        slowest.1,
        peak_kb()
    );
    let list: Vec<String> = faults.iter().map(|(what, input)| format!("{what}\n    {input}")).collect();
    assert!(faults.is_empty(), "{} kinds of fault:\n{}", faults.len(), list.join("\n"));
    assert!(peak_kb() < MEMORY_LIMIT_KB, "{} kB of memory", peak_kb());
    assert!(
        count < 100 || (accepted > count / 50 && refused > count / 10),
        "{accepted} accepted, {refused} refused: too wild or too mild"
    );
}
