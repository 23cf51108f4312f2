//! Code objects with the same code: what is taken from one for the other is what the other would get by itself.

use std::io::{Seek, SeekFrom, Write};

use super::*;
use crate::pipeline::Counters;
use wavetap_amdgpu::Target;
use wavetap_analysis::kernel::Image;
use wavetap_base::error::Kind;
use wavetap_instrument::object::{ObjectPlacement, ObjectPlanner, SelectedKernels};
use wavetap_object::code_object::{CodeObject, Kernel};
use wavetap_object::emit::code_object::CODE_SECTION;
use wavetap_object::offload_bundle::write_plain;
use wavetap_verify::VerifiedTemplate;

const HOST: &str = "host-x86_64-unknown-linux-gnu--";
const ONE: &str = "hipv4-amdgcn-amd-amdhsa--gfx942";
const OTHER: &str = "hipv4-amdgcn-amd-amdhsa--gfx941";
/// Where the ELF header has the processor's number.
const FLAGS: usize = 48;

/// The sample's code for gfx942.
fn one() -> Vec<u8> {
    let file = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/hip-samples/bin/divergence")).expect("a sample");
    let input = Input::parse(&file).expect("parses");
    let found = input.code_objects().find(|found| found.target.is_some_and(|target| target.to_string() == "gfx942"));
    found.expect("code for gfx942").bytes.to_vec()
}

/// The same for gfx941: another number, and another name in the metadata.
fn other() -> Vec<u8> {
    let mut bytes = one();
    bytes[FLAGS] = Target::by_name("gfx941").expect("a target").mach() as u8;
    let places: Vec<usize> = (0..bytes.len() - 6).filter(|at| &bytes[*at..*at + 6] == b"gfx942").collect();
    assert!(!places.is_empty(), "the metadata names the processor");
    places.into_iter().for_each(|at| bytes[at + 5] = b'1');
    bytes
}

fn options(counters: Counters) -> Options {
    Options { probes: vec![probe::BRANCHES], counters, ..Options::default() }
}

#[test]
fn a_probe_that_stands_alone_is_combined_with_no_other() {
    let options = |probes: &[probe::ProbeRef]| Options { probes: probes.to_vec(), ..Options::default() };
    let error = rewrite(&one(), &options(&[probe::BRANCHES, probe::TIME])).expect_err("they cannot be").to_string();
    assert_eq!(
        error,
        "probe time cannot be combined with other probes: what other probes insert would be in its times"
    );
    assert!(rewrite(&one(), &options(&[probe::BRANCHES, probe::VALUES, probe::BLOCKS])).is_ok());
    // Its code would be at each site twice, and count twice.
    let error = rewrite(&one(), &options(&[probe::BRANCHES, probe::BLOCKS, probe::BRANCHES])).expect_err("twice");
    assert_eq!(error.to_string(), "probe branches is given twice");
    let error = rewrite(&one(), &options(&[probe::VALUES, &Keeping])).expect_err("the same lanes").to_string();
    assert_eq!(
        error,
        "probe keeping cannot be combined with other probes: another one keeps something in the same lanes"
    );
}

/// Keeps something in lanes.
#[derive(Debug)]
struct Keeping;

impl probe::Probe for Keeping {
    fn name(&self) -> &'static str {
        "keeping"
    }

    fn summary(&self) -> &'static str {
        "nothing"
    }

    fn needs(&self) -> probe::Needs {
        let mut needs = probe::Needs::default();
        needs.keeps_lanes = true;
        needs
    }

    fn prepare(
        &self,
        _: &probe::ClonedFunction<'_>,
    ) -> std::result::Result<Box<dyn probe::FunctionProbe>, probe::Stop> {
        Err(probe::Error::internal("no function is looked at").into())
    }
}

#[test]
fn each_of_a_group_is_what_it_would_be_alone() {
    let objects = [(ONE, one()), (OTHER, other())];
    let bundle = |objects: &[(&str, Vec<u8>)]| {
        let entries: Vec<(&str, &[u8])> =
            [(HOST, &b""[..])].into_iter().chain(objects.iter().map(|(id, bytes)| (*id, &bytes[..]))).collect();
        write_plain(&entries)
    };
    let both = bundle(&objects);
    let input = Input::parse(&both).expect("parses");
    assert_eq!(
        group_by_code(&input.code_objects().collect::<Vec<_>>()).expect("original"),
        [[0, 1]],
        "one after the other"
    );
    for counters in [Counters::Lds, Counters::Global] {
        let together = rewrite(&both, &options(counters)).expect("rewritten");
        let read = Input::parse(&together.bytes).expect("parses");
        for (number, object) in objects.iter().enumerate() {
            let alone = bundle(std::slice::from_ref(object));
            let alone = rewrite(&alone, &options(counters)).expect("rewritten");
            assert_eq!(alone.maps[0].kernels.len(), 2);
            assert_eq!(together.maps[number], alone.maps[0]);
            let alone = Input::parse(&alone.bytes).expect("parses");
            assert!(read.bundles[0].entry_bytes(number + 1) == alone.bundles[0].entry_bytes(1), "{}", object.0);
        }
    }
}

#[test]
fn what_was_checked_before_hides_nothing_that_is_different() {
    let (one, other) = (one(), other());
    let [first, second] = [&one, &other].map(|bytes| rewrite(bytes, &options(Counters::Lds)).expect("rewritten").bytes);
    let (one, other) = (CodeObject::parse(&one).expect("parses"), CodeObject::parse(&other).expect("parses"));
    let first = CodeObject::parse(&first).expect("parses");
    let (map, findings) = wavetap_verify::check_beside(&one, &first, None, true);
    assert_eq!(findings, []);
    let template = VerifiedTemplate { original: &one, rewritten: &first, map: &map.expect("a site table") };
    let rewritten = CodeObject::parse(&second).expect("parses");
    assert_eq!(wavetap_verify::check_beside(&other, &rewritten, Some(template), true).1, []);
    // A byte of the new code, or of a descriptor, at a time.
    let code = rewritten.elf().section(CODE_SECTION).expect("new code");
    let descriptor = rewritten.kernels()[0].descriptor_offset;
    let places = (code.offset..code.offset + code.size).step_by(52).chain(descriptor..descriptor + 64);
    let mut found = 0;
    for place in places {
        let mut damaged = second.clone();
        damaged[place as usize] ^= 4;
        let Ok(damaged) = CodeObject::parse(&damaged) else { continue };
        let (_, all) = wavetap_verify::check_object(&other, &damaged);
        assert_eq!(wavetap_verify::check_beside(&other, &damaged, Some(template), true).1, all, "{place:#x}");
        found += usize::from(!all.is_empty());
    }
    assert!(found > 20, "{found} of them are damage");
}

#[test]
fn auto_chooses_another_place_for_counters_that_the_checker_rejects() {
    let one = one();
    let code = CodeObject::parse(&one).expect("parses");
    let (target, image) = (code.target().expect("known"), Image::of(&code).expect("an image"));
    let (target_id, options) = (code.target_id(), options(Counters::Auto));
    let planner = ObjectPlanner::new(target, &image, options.measurement(), 0x10_0000, code.version().into());
    let kernels: Vec<&Kernel> = code.kernels().iter().collect();
    let mut selected = SelectedKernels::new(kernels.clone(), Vec::new());
    let place = |selected: &mut SelectedKernels| match selected.place(&target_id, &planner, 0x20_0000, 1) {
        Ok(ObjectPlacement::Placed { maps, .. }) => maps,
        other => panic!("{other:?}"),
    };
    let first = &kernels[0].name;
    let mut modes = Vec::new();
    loop {
        let maps = place(&mut selected);
        let Some(map) = maps.iter().find(|map| map.name == *first) else { break };
        assert_eq!(maps.len(), kernels.len(), "the others stay");
        let rejected: Vec<_> = map.candidates.iter().filter(|candidate| candidate.refused.is_some()).collect();
        assert_eq!(rejected.iter().map(|candidate| candidate.mode).collect::<Vec<_>>(), modes);
        assert!(
            rejected.iter().all(|candidate| candidate.refused.as_ref().is_some_and(|why| why.ends_with(": made up")))
        );
        modes.push(map.mode);
        // Two findings in a kernel are one rejection.
        selected.reject(&target_id, Some(first), "the whole of it", "made up");
        selected.reject(&target_id, Some(first), "the whole of it", "made up, too");
    }
    assert_eq!(modes.len(), 3, "{modes:?}");
    let refusals = selected.refusals();
    assert!(refusals.len() == 1 && refusals[0].reason == "unverified" && refusals[0].name == *first, "{refusals:?}");
    assert_eq!(selected.count(), kernels.len() - 1);
}

/// A disk of so many bytes.
struct Full(Cursor<Vec<u8>>, usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.position() as usize + bytes.len() > self.1 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Seek for Full {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.0.seek(to)
    }
}

#[test]
fn an_output_is_the_same_wherever_it_is_written() {
    let sample = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/hip-samples/bin/divergence")).expect("a sample");
    let objects: Vec<(&str, Vec<u8>)> = vec![(HOST, Vec::new()), (ONE, one()), (OTHER, other()), (HOST, vec![7; 5000])];
    let entries: Vec<(&str, &[u8])> = objects.iter().map(|(id, bytes)| (*id, &bytes[..])).collect();
    let plain = write_plain(&entries);
    let packed =
        wavetap_object::offload_bundle::write_compressed(&plain, 2, wavetap_object::offload_bundle::Method::Zstd)
            .expect("packed");
    // Several bundles after each other: pages, zeros between them, and one without code.
    let mut bundles = plain;
    for next in [&packed, &write_plain(&[(HOST, b"nothing")]), &packed] {
        bundles.resize(bundles.len().next_multiple_of(4096), 0);
        bundles.extend_from_slice(next);
    }
    for (input, count) in [(sample, None), (packed, Some(2)), (bundles, Some(6)), (one(), Some(1))] {
        let options = options(Counters::Lds);
        let whole = rewrite(&input, &options).expect("rewritten");
        assert!(whole.bytes != input && count.is_none_or(|count| whole.maps.len() == count));
        let mut output = tempfile::tempfile().expect("a file");
        let scratch = Some(Scratch::new(tempfile::tempfile().expect("a file")));
        let mut told = Vec::new();
        let destination = Destination { output: &mut output, scratch };
        let maps = rewrite_to(&input, &options, destination, |map| map, |progress| told.push(progress.done))
            .expect("rewritten");
        assert_eq!((maps, told), (whole.maps.clone(), (0..=whole.maps.len()).collect::<Vec<_>>()));
        let mut bytes = Vec::new();
        output.seek(SeekFrom::Start(0)).expect("seeks");
        std::io::Read::read_to_end(&mut output, &mut bytes).expect("reads");
        assert!(bytes == whole.bytes);
        // Wherever the disk is full, and with a file that cannot be written for what waits.
        for size in (0..bytes.len()).step_by(bytes.len() / 5 + 1) {
            let destination = Destination { output: &mut Full(Cursor::default(), size), scratch: None };
            let error = rewrite_to(&input, &options, destination, drop, |_| {}).expect_err("full");
            assert_eq!(error.kind(), Kind::Io, "{size}: {error}");
        }
        let scratch = Some(Scratch::new(std::fs::File::open("/dev/null").expect("opens")));
        let destination = Destination { output: &mut Cursor::new(Vec::new()), scratch };
        let error = rewrite_to(&input, &options, destination, drop, |_| {}).err().map(|error| error.kind());
        // One by itself waits for no other.
        assert_eq!(error, (whole.maps.len() > 1).then_some(Kind::Io));
    }
}
