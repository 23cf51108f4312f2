//! What is left of a dispatch that a memory access fault ends.

use super::*;
use wavetap::profile::bounds::SLOTS;
use wavetap::profile::control;
use wavetap::profile::launches::NotCounted;

/// An event as the runtime gives it: kind, agent and address, and the reasons.
fn event(kind: u64, address: u64) -> [u64; 4] {
    [kind, AGENT, address, 1]
}

/// A wave has found a bad access, and left it where the host can read it; the access is a fault. No signal is
/// completed, and the GPU's memory is not read any more.
#[test]
fn what_was_found_before_a_fault_is_kept_in_each_version() {
    let original = code_object();
    for (version, size, moved) in EXTENSIONS {
        let _guard = begin();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("profile");
        let (root, core, _extension) = table(size, moved);
        let at_load = AtLoad { probes: vec!["bounds".into()], counters: "auto".into(), ..AtLoad::default() };
        let rewriting = Some(Rewriting::of(at_load).expect("options"));
        let tool = load_with(&root, Settings { rewriting, ..settings(&path, "auto") });
        let create: extern "C" fn(*const c_void, usize, *mut u64) -> Status = entry(&core, 944);
        let load: extern "C" fn(u64, u64, u64, *const c_char, *mut u64) -> Status = entry(&core, 976);
        let freeze: extern "C" fn(u64, *const c_char) -> Status = entry(&core, 704);
        let make: crate::api::QueueCreate = entry(&core, 72);
        let (mut reader, mut loaded, mut queue) = (0, 0, 0);
        assert_eq!(create(original.as_ptr().cast(), original.len(), &raw mut reader), SUCCESS);
        assert_eq!(load(EXECUTABLE, AGENT, reader, std::ptr::null(), &raw mut loaded), SUCCESS);
        assert_eq!(freeze(EXECUTABLE, std::ptr::null()), SUCCESS);
        assert_eq!(make(AGENT, 64, 0, 0, 0, 0, 0, &raw mut queue), SUCCESS);
        let packet = dispatch(64, lds(&original), 0);
        assert_ne!(send(packet), [packet], "{version}: it is checked");
        assert_eq!(with(|runtime| runtime.calls.pop()), Some("allow_access".into()), "{version}: its slots");

        // What the wave stores.
        let ours = with(|runtime| runtime.loaded.keys().copied().find(|executable| *executable != EXECUTABLE));
        let block = address(ours.expect("the kernel was loaded"), control::SYMBOL) as usize;
        let wide = |address: usize| crate::raw::load::<u64>(address).expect("a pointer") as usize;
        let slots = wide(wide(block + control::SAMPLE_TABLE as usize) + SLOTS as usize);
        assert_eq!(crate::raw::bytes(slots, 64), Some(&[0; 64][..]), "{version}: nothing was found at first");
        let address = 0x1230_0010_u64;
        for (offset, value) in
            [(0, address), (8, 1), (16, address), (24, 0b11_0000), (32, 7), (40, 0x2_0000_0000), (48, 4), (56, 1)]
        {
            put((slots + offset) as *mut c_void, value);
        }

        let handlers = with(|runtime| runtime.event_handlers.clone());
        let [handler] = handlers[..] else { panic!("{version}: one handler") };
        let tell = |event: [u64; 4]| handler(event.as_ptr().cast(), std::ptr::null_mut());
        assert_eq!(tell(event(1, 0)), crate::api::ERROR, "{version}: a hang, of which nothing is kept");
        assert_eq!(tool.state().in_flight.len(), 1, "{version}");
        assert_eq!(tell(event(0, 0x1230_0000)), crate::api::ERROR, "{version}: the runtime ends the program");

        // It is written before that: nothing of the tool runs any more.
        let profile = Profile::from_json(&std::fs::read(&path).expect("a profile")).expect("a profile");
        let [bad] = &profile.out_of_bounds[..] else { panic!("{version}: {:?}", profile.out_of_bounds) };
        assert_eq!((bad.site, bad.address, bad.lanes, bad.lane), (0, 0x1230_0010, 0b11_0000, 4), "{version}");
        assert_eq!((bad.workgroup, bad.wave, bad.kernel), ([7, 0, 0], 2, 0), "{version}");
        let [lost] = &profile.uncounted[..] else { panic!("{version}: {:?}", profile.uncounted) };
        assert!(lost.why == NotCounted::Faulted && lost.detail.contains("0x12300000"), "{version}: {lost:?}");
        assert!(!profile.complete && profile.kernels[0].dispatches == 0, "{version}");
        tool.drain();
        tool.join();
        hooks::remove(tool);
        tool.finish();
    }
}
