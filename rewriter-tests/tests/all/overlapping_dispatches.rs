//! Dispatches of one code object that are in flight at the same time, on the emulator: their waves take records of one
//! buffer, as on a GPU, and the profile has the counts of each kernel exactly. What is expected is the emulator's trace
//! of the original kernels, one after the other.

use std::collections::BTreeMap;
use std::fs;

use rewriter_tests::place;
use wavetap::code_object::{CodeObject, Kernel, ValueKind};
use wavetap::collect::collector::Collector;
use wavetap::collect::session::{self, DispatchInfo, Overlap, Records, Session};
use wavetap::emulated::EmulatedMemory;
use wavetap::emulator::{Device, Dispatch, LoadedObject, Options, Share};
use wavetap::offload_bundle::Input;
use wavetap::pipeline::{self, Counters, probe, rewrite};
use wavetap::profile::file::Backend;
use wavetap::profile::schema::Counts;

const TARGET: &str = "gfx90a";
const WORKGROUP: u32 = 128;
const ITEMS: u32 = 2048;
const WAVES: u64 = (ITEMS / 64) as u64;
/// Wave-instructions of a turn: a kernel of the sample has more than twenty times as many.
const TURN: u64 = 300;

fn code_object(file: &[u8]) -> Vec<u8> {
    let input = Input::parse(file).expect("a sample");
    let found = input.code_objects().find(|found| found.target.is_some_and(|target| target.processor == TARGET));
    found.expect("code for the target").bytes.to_vec()
}

fn device(bytes: &[u8]) -> (Device, LoadedObject) {
    let target = CodeObject::parse(bytes).expect("a code object").target().expect("known");
    let mut device = Device::new(target, Options { strict: true, trace: true, seed: 5, ..Options::default() });
    let object = device.load(bytes).expect("it loads");
    (device, object)
}

/// A dispatch with buffers of its own.
fn dispatch(device: &mut Device, object: &LoadedObject, kernel: &Kernel) -> Dispatch {
    let metadata = kernel.metadata.as_ref().expect("metadata");
    let mut arguments = vec![0_u8; metadata.kernarg_segment_size as usize];
    for argument in &metadata.args {
        let value: Vec<u8> = match argument.value_kind {
            ValueKind::GlobalBuffer => {
                let buffer = device.malloc(u64::from(ITEMS) * 4, 256).expect("memory");
                let words: Vec<u8> = (0..ITEMS).flat_map(u32::to_le_bytes).collect();
                device.write(buffer, &words).expect("a buffer");
                buffer.to_le_bytes().to_vec()
            }
            ValueKind::HiddenBlockCountX => (ITEMS / WORKGROUP).to_le_bytes().to_vec(),
            ValueKind::HiddenGroupSizeX => (WORKGROUP as u16).to_le_bytes().to_vec(),
            ValueKind::HiddenBlockCountY | ValueKind::HiddenBlockCountZ => 1_u32.to_le_bytes().to_vec(),
            ValueKind::HiddenGroupSizeY | ValueKind::HiddenGroupSizeZ => 1_u16.to_le_bytes().to_vec(),
            _ => continue,
        };
        arguments[argument.offset as usize..][..value.len()].copy_from_slice(&value);
    }
    let kernarg_address = device.malloc(arguments.len() as u64, 256).expect("memory");
    device.write(kernarg_address, &arguments).expect("arguments");
    Dispatch {
        kernel_object: object.kernel(&kernel.name).expect("the kernel"),
        grid: [ITEMS, 1, 1],
        workgroup: [WORKGROUP as u16, 1, 1],
        private_segment_size: metadata.private_segment_fixed_size as u32,
        group_segment_size: metadata.group_segment_fixed_size as u32,
        kernarg_address,
        dispatch_id: 0,
    }
}

/// What the emulator sees in each original kernel, by name and address.
fn expected(bytes: &[u8]) -> BTreeMap<String, BTreeMap<u64, Counts>> {
    let code = CodeObject::parse(bytes).expect("a code object");
    let traced = code.kernels().iter().map(|kernel| {
        let (mut device, object) = device(bytes);
        let dispatch = dispatch(&mut device, &object, kernel);
        let trace = device.dispatch(&dispatch).expect("no fault").trace.expect("traced");
        (kernel.name.clone(), trace.sites(object.id).into_iter().collect())
    });
    traced.collect()
}

#[test]
fn dispatches_that_overlap_are_counted_exactly() {
    let file = fs::read(place::samples().join("divergence")).expect("a sample");
    let expected = expected(&code_object(&file));
    for counters in [Counters::Global, Counters::Lds] {
        let options = pipeline::Options { probes: vec![probe::BRANCHES], counters, ..pipeline::Options::default() };
        let bytes = code_object(&rewrite(&file, &options).expect("rewritten").bytes);
        let code = CodeObject::parse(&bytes).expect("a code object");
        let (mut device, object) = device(&bytes);
        let options = session::Options::new(Overlap::Concurrent, Records::PerWave);
        let mut session = Session::new(Collector::new(Backend::Emulator, false), options);
        let address_of = |name: &str| object.symbols.get(name).map(|symbol| symbol.address);
        let attached = session
            .attach(&EmulatedMemory(&mut device), &code, address_of)
            .expect("its site table")
            .expect("rewritten");
        let map = session.map(attached).expect("attached").clone();
        let [first, second] = code.kernels() else { panic!("two kernels") };

        // Two dispatches of one kernel and one of the other, which begin one after the other and have turns.
        let mut flights = Vec::new();
        let mut most = 0;
        for (ordinal, kernel) in [first, second, first].into_iter().enumerate() {
            let dispatch = dispatch(&mut device, &object, kernel);
            let index = map.kernels.iter().position(|mapped| mapped.name == kernel.name).expect("instrumented") as u32;
            let info = DispatchInfo {
                kernel: index,
                grid: dispatch.grid,
                workgroup: dispatch.workgroup.map(u32::from),
                ordinal: ordinal as u32,
                region: None,
            };
            let ticket = session.begin_dispatch(&mut EmulatedMemory(&mut device), attached, &info).expect("room");
            flights.push(Some((device.begin(&dispatch).expect("no fault"), ticket)));
            // Some waves have begun when the next dispatch does.
            for flight in flights.iter_mut().flatten() {
                assert!(
                    device
                        .advance(&mut flight.0, Share { instructions: TURN, interrupt: None })
                        .expect("no fault")
                        .is_none()
                );
            }
        }
        while flights.iter().any(Option::is_some) {
            most = most.max(flights.iter().flatten().count());
            for slot in &mut flights {
                let Some((flight, _)) = slot else { continue };
                let ended =
                    device.advance(flight, Share { instructions: TURN, interrupt: None }).expect("no fault").is_some();
                if let Some((_, ticket)) = slot.take_if(|_| ended) {
                    session.end_dispatch(&mut EmulatedMemory(&mut device), ticket, None).expect("its records");
                }
            }
        }
        assert_eq!(most, 3, "they overlapped");

        let profile = session.finish();
        assert_eq!(profile.kernels.len(), 2);
        for (kernel, dispatches) in [(first, 2), (second, 1)] {
            let totals = profile.kernels.iter().find(|totals| totals.name == kernel.name).expect("counted");
            assert_eq!((totals.dispatches, totals.waves), (dispatches, dispatches * WAVES));
            assert_eq!((totals.dropped, totals.unfinished, totals.shared_records), (0, 0, false));
            for site in &totals.sites {
                let mut sum = Counts::zero(site.counts.kind());
                if let Some(once) = expected[&kernel.name].get(&site.address) {
                    (0..dispatches).for_each(|_| sum.merge(once).expect("small numbers"));
                }
                assert_eq!(site.counts, sum, "{counters:?} {} {:#x}", kernel.name, site.address);
            }
        }
        assert!(profile.waves.is_empty());
    }
}
