//! The tool over tables of the test's own ([`runtime`]), by itself.

mod chain;
mod faults;
mod registration;
mod runtime;

use std::ffi::{c_char, c_void};

use wavetap::at_load::Rewriting;
use wavetap::code_object::CodeObject;
use wavetap::collect::config::AtLoad;
use wavetap::profile::file::{Backend, Origin, Profile};
use wavetap::profile::journal::Journal;

use crate::api::{Api, SUCCESS, Status, Tables};
use crate::hooks;
use crate::packets::SIZE;
use crate::settings::Settings;
use runtime::*;

#[test]
fn what_is_replaced_is_where_each_version_has_it() {
    let _guard = begin();
    let folder = tempfile::tempdir().expect("a folder");
    for (version, size, moved) in EXTENSIONS {
        let (root, mut core, extension) = table(size, moved);
        let (core_before, extension_before) = (core.clone(), extension.clone());
        let tool = load(&root, &folder.path().join("profile"), "lds");
        let differs = (0..CORE / 8).filter(|entry| core[*entry] != core_before[*entry]).map(|entry| entry * 8);
        assert_eq!(differs.collect::<Vec<_>>(), REPLACED, "{version}");
        let differs =
            (0..size / 8).filter(|entry| extension[*entry] != extension_before[*entry]).map(|entry| entry * 8);
        // Memory, signals, and what is made accessible; mapped at reserved addresses where a version has that.
        let moves = |entry: usize| if moved { entry + 16 } else { entry };
        let mut expected = vec![120, 128];
        expected.extend([176, 184, 200, 208, 248, 256, 264, 336, 368].map(moves));
        expected.extend([488, 496].into_iter().filter(|entry| entry + 8 <= size));
        assert_eq!(differs.collect::<Vec<_>>(), expected, "{version}");
        // Another tool that comes later stays.
        let later = 0xdead_beef;
        core[REPLACED[0] / 8] = later;
        hooks::remove(tool);
        assert_eq!(core[REPLACED[0] / 8], later, "{version}");
        core[REPLACED[0] / 8] = core_before[REPLACED[0] / 8];
        assert_eq!((&core, &extension), (&core_before, &extension_before), "{version}");
        tool.drain();
        tool.join();
        tool.finish();
    }
}

#[test]
fn tables_that_lack_something_are_refused() {
    let _guard = begin();
    let read = |root: &[usize]| Tables::read(root.as_ptr() as usize).and_then(Api::read).map(drop);
    let (root, core, _extension) = table(400, false);
    assert_eq!(read(&root), Ok(()));
    let mut short = root.clone();
    short[0] = 24 << 32 | 1;
    assert!(read(&short).unwrap_err().contains("32 bytes"));
    assert!(Tables::read(0).is_err());
    let mut without = core;
    without[976 / 8] = 0;
    let mut root_without = root.clone();
    root_without[2] = without.as_ptr() as usize;
    let error = read(&root_without).unwrap_err();
    assert!(error.contains("1016 and 400 bytes have no load_agent_code_object"), "{error}");
    // As large as the older ones, and too small for what they have.
    let (root, _core, _extension) = table(304, false);
    let error = read(&root).unwrap_err();
    assert!(error.contains("no intercept_register"), "{error}");
}

#[test]
fn kernels_are_rewritten_and_packets_patched_in_each_version() {
    let original = code_object();
    let most = CodeObject::parse(&original).expect("a code object").kernels()[0]
        .metadata
        .as_ref()
        .expect("metadata")
        .max_flat_workgroup_size as u16;
    for (version, size, moved) in EXTENSIONS {
        let _guard = begin();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("profile");
        let (root, core, _extension) = table(size, moved);
        let tool = load(&root, &path, "lds");

        let create: extern "C" fn(*const c_void, usize, *mut u64) -> Status = entry(&core, 944);
        let load: extern "C" fn(u64, u64, u64, *const c_char, *mut u64) -> Status = entry(&core, 976);
        let freeze: extern "C" fn(u64, *const c_char) -> Status = entry(&core, 704);
        let (mut reader, mut loaded) = (0, 0);
        assert_eq!(create(original.as_ptr().cast(), original.len(), &raw mut reader), SUCCESS);
        assert_eq!(load(EXECUTABLE, AGENT, reader, std::ptr::null(), &raw mut loaded), SUCCESS);
        assert_eq!(freeze(EXECUTABLE, std::ptr::null()), SUCCESS);
        assert_eq!(runtime::loaded(EXECUTABLE), original, "{version}: the program's object is loaded as it is");
        assert_eq!(with(|runtime| runtime.loaded.len()), 1, "{version}: no kernel was dispatched");

        let make: crate::api::QueueCreate = entry(&core, 72);
        let mut queue = 0;
        assert_eq!(make(AGENT, 64, 0, 0, 0, 0, 0, &raw mut queue), SUCCESS);
        assert_eq!(queue, seen());
        let calls = with(|runtime| std::mem::take(&mut runtime.calls));
        assert_eq!(calls, ["queue_create", "queue_destroy", "intercept_create"], "{version}");

        // Without a signal of the program's, and with one.
        let before = lds(&original);
        let [counted] = send(dispatch(64, before + 100, 0))[..] else { panic!("{version}: one packet") };
        let ours = with(|runtime| runtime.loaded.keys().copied().find(|executable| *executable != EXECUTABLE));
        let ours = ours.expect("the kernel was loaded");
        let (after, kernel) = (lds(&runtime::loaded(ours)), address(ours, &kernel_name(ours)));
        assert!(after > before, "{version}: it counts in LDS");
        let header = u16::from_le_bytes([counted[0], counted[1]]);
        assert_eq!((header, word(&counted, 28), long(&counted, 32)), (0x1502, after + 100, kernel), "{version}");
        let signal = long(&counted, 56);
        assert_eq!(with(|runtime| runtime.signals.get(&signal).copied()), Some(1));
        let [counted, barrier] = send(dispatch(64, before, 77_777))[..] else { panic!("{version}: two packets") };
        assert_eq!((long(&counted, 32), long(&counted, 56), counted[0]), (kernel, 77_777, 2));
        assert_eq!((u16::from_le_bytes([barrier[0], barrier[1]]), long(&barrier, 8)), (0x1103, 0));
        assert_eq!(with(|runtime| runtime.loaded.len()), 2, "{version}: it is loaded once");

        // What cannot count runs the original: the packet stays as it is.
        for packet in [dispatch(most + 1, before, 0), dispatch(64, before + (65536 - before), 0)] {
            assert_eq!(send(packet), [packet], "{version}");
        }
        let mut unknown = dispatch(64, before, 0);
        unknown[32] ^= 0x40;
        assert_eq!(send(unknown), [unknown]);
        let barrier = [3; SIZE];
        assert_eq!(send(barrier), [barrier], "{version}: what is no dispatch stays as it is");

        // The imitated GPU runs nothing, and the profile says so.
        with(|runtime| runtime.signals.values_mut().for_each(|signal| *signal = 0));
        let destroy: extern "C" fn(u64) -> Status = entry(&core, 688);
        assert_eq!(destroy(EXECUTABLE), SUCCESS);
        let calls = with(|runtime| std::mem::take(&mut runtime.calls));
        assert_eq!(calls, ["executable_destroy", "executable_destroy"], "{version}: ours, and the program's");
        tool.drain();
        tool.join();
        hooks::remove(tool);
        tool.finish();
        assert_eq!(with(|runtime| runtime.readers.len()), 1, "{version}: the program's own reader is left");
        let profile = Profile::from_json(&std::fs::read(&path).expect("a profile")).expect("a profile");
        let [kernel] = &profile.kernels[..] else { panic!("{version}: one kernel") };
        assert_eq!((kernel.dispatches, kernel.waves, kernel.unfinished), (2, 2, 2), "{version}");
        assert!(!profile.complete && profile.backend == Backend::Gpu);
        let why: Vec<&str> = profile.uncounted.iter().map(|uncounted| uncounted.why.name()).collect();
        assert_eq!(why, ["refused", "lds_does_not_fit", "not_rewritten"], "{version}");
    }
}

/// Memory that is allocated or locked, the image of a code object, and a queue, until the program gives them back. The
/// imitated signals have no memory.
#[test]
fn what_kernels_may_access_is_known() {
    let _guard = begin();
    let folder = tempfile::tempdir().expect("a folder");
    let (root, core, extension) = table(624, true);
    let tool = load(&root, &folder.path().join("profile"), "lds");
    let original = code_object();
    let create: extern "C" fn(*const c_void, usize, *mut u64) -> Status = entry(&core, 944);
    let load: extern "C" fn(u64, u64, u64, *const c_char, *mut u64) -> Status = entry(&core, 976);
    let freeze: extern "C" fn(u64, *const c_char) -> Status = entry(&core, 704);
    let destroy: extern "C" fn(u64) -> Status = entry(&core, 688);
    let make: crate::api::QueueCreate = entry(&core, 72);
    let leave: extern "C" fn(usize) -> Status = entry(&core, 88);
    let allocate: extern "C" fn(u64, usize, u32, *mut usize) -> Status = entry(&extension, 120);
    let free: extern "C" fn(usize) -> Status = entry(&extension, 128);
    let lock: extern "C" fn(usize, usize, *const u64, i32, *mut usize) -> Status = entry(&extension, 192);
    let unlock: extern "C" fn(usize) -> Status = entry(&extension, 200);
    let known = || tool.allocations.accessible().iter().map(|range| (range.address, range.size)).collect::<Vec<_>>();
    let (mut reader, mut loaded, mut queue, mut address, mut locked) = (0, 0, 0, 0_usize, 0_usize);
    assert_eq!(allocate(POOL, 100, 0, &raw mut address), SUCCESS);
    assert_eq!(known(), [(address as u64, 100)]);
    // Twice the same memory: it is there until both are undone.
    for _ in 0..2 {
        assert_eq!(lock(0x7000, 0x30, std::ptr::null(), 0, &raw mut locked), SUCCESS);
    }
    assert_eq!(known()[1..], [(0x10_7000, 0x30), (0x10_7000, 0x30)]);
    assert_eq!((unlock(0x7000), known().len()), (SUCCESS, 2));
    assert_eq!((unlock(0x7000), known().len()), (SUCCESS, 1));
    assert_eq!(make(AGENT, 64, 0, 0, 0, 0, 0, &raw mut queue), SUCCESS);
    assert_eq!(known()[1..], [(seen() as u64, 256)], "a queue without packets of its own");
    assert_eq!((leave(queue), known().len()), (SUCCESS, 1));
    assert_eq!(create(original.as_ptr().cast(), original.len(), &raw mut reader), SUCCESS);
    assert_eq!(load(EXECUTABLE, AGENT, reader, std::ptr::null(), &raw mut loaded), SUCCESS);
    assert_eq!(known().len(), 1);
    assert_eq!(freeze(EXECUTABLE, std::ptr::null()), SUCCESS);
    let code = CodeObject::parse(&original).expect("a code object");
    let [(_, _), (image, size)] = known()[..] else { panic!("{:?}", known()) };
    let kernel = code.symbol(&code.kernels()[0].symbol()).expect("a kernel").address;
    assert_eq!((image + kernel, size), (runtime::address(EXECUTABLE, &kernel_name(EXECUTABLE)), code.image_end()));
    assert_eq!((destroy(EXECUTABLE), known().len()), (SUCCESS, 1));
    assert_eq!((free(address), known().len()), (SUCCESS, 0));
    tool.drain();
    tool.join();
    hooks::remove(tool);
    tool.finish();
}

/// Nothing is rewritten, armed or given a signal; HIP's own kernels are none of the program's.
#[test]
fn launches_are_listed_and_packets_stay_as_they_are() {
    let _guard = begin();
    let folder = tempfile::tempdir().expect("a folder");
    let (root, core, _extension) = table(624, true);
    let journal = Some(folder.path().to_owned());
    let none = settings(folder.path(), "lds");
    let tool = load_with(&root, Settings { journal, profile: None, launches: true, rewriting: None, ..none });
    let original = code_object();
    let create: extern "C" fn(*const c_void, usize, *mut u64) -> Status = entry(&core, 944);
    let load: extern "C" fn(u64, u64, u64, *const c_char, *mut u64) -> Status = entry(&core, 976);
    let freeze: extern "C" fn(u64, *const c_char) -> Status = entry(&core, 704);
    let make: crate::api::QueueCreate = entry(&core, 72);
    let (mut reader, mut loaded, mut queue) = (0, 0, 0);
    assert_eq!(create(original.as_ptr().cast(), original.len(), &raw mut reader), SUCCESS);
    assert_eq!(load(EXECUTABLE, AGENT, reader, std::ptr::null(), &raw mut loaded), SUCCESS);
    assert_eq!(freeze(EXECUTABLE, std::ptr::null()), SUCCESS);
    assert_eq!(make(AGENT, 64, 0, 0, 0, 0, 0, &raw mut queue), SUCCESS);
    let plain = lds(&original);
    let mut unknown = dispatch(64, plain, 0);
    unknown[32] ^= 0x40;
    for packet in [dispatch(64, plain, 0), dispatch(64, plain + 100, 0), dispatch(64, plain, 0), unknown] {
        assert_eq!(send(packet), [packet]);
    }
    assert_eq!(with(|runtime| (runtime.loaded.len(), runtime.signals.len())), (1, 0));
    tool.drain();
    tool.join();
    hooks::remove(tool);
    tool.finish();
    let journals: Vec<_> = std::fs::read_dir(folder.path()).expect("the folder").flatten().collect();
    let [journal] = &journals[..] else { panic!("{journals:?}") };
    let journal = Journal::read(&std::fs::read(journal.path()).expect("a journal")).expect("a journal");
    let profile = journal.trace.expect("launches");
    assert!(journal.ended && journal.counters.is_none() && profile.origin == Origin::Launches);
    let [kernel] = &profile.kernels[..] else { panic!("one kernel: {:?}", profile.kernels) };
    let launches: Vec<_> = kernel.launches.iter().map(|shape| (shape.dynamic_lds, shape.dispatches)).collect();
    assert_eq!((kernel.dispatches, kernel.waves, &launches[..]), (3, 3, &[(0, 2), (100, 1)][..]));
    let [uncounted] = &profile.uncounted[..] else { panic!("{:?}", profile.uncounted) };
    assert_eq!((uncounted.why.name(), uncounted.dispatches), ("not_rewritten", 1));
}

/// A queue that another tool's function has made shows its packets already.
#[test]
fn queues_of_other_tools_are_not_replaced() {
    let _guard = begin();
    let folder = tempfile::tempdir().expect("a folder");
    let (root, core, _extension) = table(624, true);
    let tool = load(&root, &folder.path().join("profile"), "lds");
    with(|runtime| runtime.seen_already = true);
    let make: crate::api::QueueCreate = entry(&core, 72);
    let mut queue = 0;
    assert_eq!(make(AGENT, 64, 0, 0, 0, 0, 0, &raw mut queue), SUCCESS);
    assert_eq!(with(|runtime| std::mem::take(&mut runtime.calls)), ["queue_create"]);
    assert!(with(|runtime| !runtime.handlers.is_empty()));
    tool.drain();
    tool.join();
    tool.finish();
    hooks::remove(tool);
}

/// From the second on it is known that ordinary queues are to be replaced, and none is made.
#[test]
fn one_queue_only_is_made_to_be_replaced() {
    let _guard = begin();
    let folder = tempfile::tempdir().expect("a folder");
    let (root, core, _extension) = table(624, true);
    let tool = load(&root, &folder.path().join("profile"), "lds");
    let make: crate::api::QueueCreate = entry(&core, 72);
    for expected in [&["queue_create", "queue_destroy", "intercept_create"][..], &["intercept_create"]] {
        let mut queue = 0;
        assert_eq!(make(AGENT, 64, 0, 0, 0, 0, 0, &raw mut queue), SUCCESS);
        assert_eq!(queue, seen());
        assert_eq!(with(|runtime| std::mem::take(&mut runtime.calls)), expected);
    }
    assert_eq!(with(|runtime| runtime.handlers.len()), 2);
    tool.drain();
    tool.join();
    tool.finish();
    hooks::remove(tool);
}

/// HIP launches some of its own kernels with larger workgroups than their metadata allows.
#[test]
fn hips_own_kernels_are_left_alone() {
    use crate::objects::{Form, Object};
    let at_load = AtLoad { counters: "auto".into(), ..AtLoad::default() };
    let rewriting = Rewriting::of(at_load).expect("options");
    let original = code_object();
    let (object, problem) = Object::new(&original, Some(&rewriting));
    assert!(object.form == Form::AtDispatch && problem.is_none() && object.is_of(&original));
    let options = wavetap::pipeline::Options {
        probes: vec![wavetap::pipeline::probe::BRANCHES],
        ..wavetap::pipeline::Options::default()
    };
    let rewritten = wavetap::pipeline::rewrite(&original, &options).expect("rewritten").bytes;
    let (before, _) = Object::new(&rewritten, Some(&rewriting));
    assert!(before.form == Form::RewrittenBefore && before.bytes == rewritten);
    assert_eq!(before.kernels.len(), before.names.len());
    // Names as long as those of the sample's kernels, so that nothing else of the object changes.
    let mut own = original.clone();
    for name in CodeObject::parse(&original).expect("a code object").kernels().iter().map(|kernel| &kernel.name) {
        let mut other = "__amd_rocclr_".to_owned();
        other.extend(std::iter::repeat_n('x', name.len() - other.len() - 1));
        other.push(name.chars().next_back().expect("a name"));
        let places: Vec<usize> =
            (0..own.len() - name.len()).filter(|at| own[*at..].starts_with(name.as_bytes())).collect();
        for at in places {
            own[at..at + name.len()].copy_from_slice(other.as_bytes());
        }
    }
    let (object, problem) = Object::new(&own, Some(&rewriting));
    assert!(object.form == Form::HipsOwn && object.bytes.is_empty() && problem.is_none(), "{object:?}");
    let (object, problem) = Object::new(b"no code object", Some(&rewriting));
    assert!(object.form == Form::Unchanged && problem.is_none());
}

/// The call of HSA 1.0 has a handle: a code object that the runtime was given is counted, and of any other one the
/// kernels are listed with the reason.
#[test]
fn what_is_loaded_by_a_handle_that_is_known_is_counted() {
    type Deserialize = extern "C" fn(*const c_void, usize, *const c_char, *mut u64) -> Status;
    for known in [true, false] {
        let _guard = begin();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("profile");
        let (root, core, _extension) = table(624, true);
        let tool = load(&root, &path, "lds");
        let original = code_object();
        let deserialize: Deserialize = entry(&core, 632);
        let destroy: extern "C" fn(u64) -> Status = entry(&core, 640);
        let load: extern "C" fn(u64, u64, u64, *const c_char) -> Status = entry(&core, 696);
        let freeze: extern "C" fn(u64, *const c_char) -> Status = entry(&core, 704);
        let make: crate::api::QueueCreate = entry(&core, 72);
        let (mut handle, mut queue) = (77, 0);
        if known {
            let made = deserialize(original.as_ptr().cast(), original.len(), std::ptr::null(), &raw mut handle);
            assert_eq!(made, SUCCESS);
        } else {
            with(|runtime| runtime.readers.insert(handle, original));
        }
        assert_eq!(load(EXECUTABLE, AGENT, handle, std::ptr::null()), SUCCESS);
        assert_eq!(freeze(EXECUTABLE, std::ptr::null()), SUCCESS);
        assert_eq!(destroy(handle), SUCCESS);
        assert_eq!(make(AGENT, 64, 0, 0, 0, 0, 0, &raw mut queue), SUCCESS);
        let packet = dispatch(64, 0, 0);
        assert_eq!(send(packet) == [packet], !known);
        with(|runtime| runtime.signals.values_mut().for_each(|signal| *signal = 0));
        tool.drain();
        tool.join();
        hooks::remove(tool);
        tool.finish();
        let profile = Profile::from_json(&std::fs::read(&path).expect("a profile")).expect("a profile");
        if known {
            let [kernel] = &profile.kernels[..] else { panic!("{:?}", profile.kernels) };
            assert!(kernel.dispatches == 1 && profile.uncounted.is_empty(), "{profile:?}");
        } else {
            let [uncounted] = &profile.uncounted[..] else { panic!("{:?}", profile.uncounted) };
            assert!(uncounted.detail.contains("hsa_executable_load_code_object"), "{uncounted:?}");
        }
    }
}
