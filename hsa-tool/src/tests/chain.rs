//! Other tools, before and after this one: each calls what was in the table when it came, and sees what is its to see.

use std::ffi::{c_char, c_void};
use std::sync::Mutex;

use super::runtime::*;
use crate::api::{QueueCreate, SUCCESS, Status, Writer};
use crate::hooks;
use crate::packets::SIZE;
use wavetap::profile::file::Profile;

type Load = extern "C" fn(u64, u64, u64, *const c_char, *mut u64) -> Status;
type Freeze = extern "C" fn(u64, *const c_char) -> Status;
type Destroy = extern "C" fn(u64) -> Status;
type CreateReader = extern "C" fn(*const c_void, usize, *mut u64) -> Status;

/// What another tool saw, and the functions that were there before it.
struct Other {
    before: [usize; 5],
    calls: Vec<&'static str>,
    packets: Vec<[u8; SIZE]>,
    /// Makes queues whose packets can be seen, as a tool has to that comes first.
    intercepts: bool,
}

/// The entries that it replaces.
const ENTRIES: [usize; 5] = [72, 688, 704, 944, 976];

macro_rules! other_tool {
    ($name:ident) => {
        mod $name {
            use super::*;

            pub(super) static OTHER: Mutex<Other> =
                Mutex::new(Other { before: [0; 5], calls: Vec::new(), packets: Vec::new(), intercepts: false });

            /// Notes a call; gives what was in the entry before.
            fn before<T: Copy>(entry: usize, call: &'static str) -> T {
                let mut other = OTHER.lock().expect("a tool");
                other.calls.push(call);
                let place = ENTRIES.iter().position(|at| *at == entry).expect("an entry");
                crate::raw::load((&raw const other.before[place]) as usize).expect("a function")
            }

            extern "C" fn handle(packets: *const c_void, count: u64, _: u64, _: *mut c_void, writer: Writer) {
                for index in 0..count as usize {
                    let packet = crate::raw::load(packets as usize + index * SIZE).expect("a packet");
                    OTHER.lock().expect("a tool").packets.push(packet);
                }
                writer(packets, count);
            }

            extern "C" fn queue_create(
                agent: u64,
                size: u32,
                kind: u32,
                callback: usize,
                data: usize,
                private: u32,
                group: u32,
                queue: *mut usize,
            ) -> Status {
                let before: QueueCreate = before(72, "queue_create");
                let intercepts = OTHER.lock().expect("a tool").intercepts;
                let make: QueueCreate = if intercepts { imitated::intercept_create } else { before };
                let status = make(agent, size, kind, callback, data, private, group, queue);
                let made = crate::raw::load(queue as usize).expect("a queue");
                assert_eq!(imitated::intercept_register(made, handle, std::ptr::null_mut()), SUCCESS);
                status
            }

            extern "C" fn destroy(executable: u64) -> Status {
                before::<Destroy>(688, "destroy")(executable)
            }

            extern "C" fn freeze(executable: u64, options: *const c_char) -> Status {
                before::<Freeze>(704, "freeze")(executable, options)
            }

            extern "C" fn create_reader(address: *const c_void, size: usize, reader: *mut u64) -> Status {
                before::<CreateReader>(944, "create_reader")(address, size, reader)
            }

            extern "C" fn load(a: u64, b: u64, c: u64, d: *const c_char, e: *mut u64) -> Status {
                before::<Load>(976, "load")(a, b, c, d, e)
            }

            /// Puts its functions into the table.
            pub(super) fn install(core: &mut [usize], intercepts: bool) {
                let mut other = OTHER.lock().expect("a tool");
                let functions = [
                    queue_create as *const () as usize,
                    destroy as *const () as usize,
                    freeze as *const () as usize,
                    create_reader as *const () as usize,
                    load as *const () as usize,
                ];
                let before = ENTRIES.map(|entry| core[entry / 8]);
                *other = Other { before, calls: Vec::new(), packets: Vec::new(), intercepts };
                for (entry, function) in ENTRIES.into_iter().zip(functions) {
                    core[entry / 8] = function;
                }
            }
        }
    };
}

other_tool!(earlier);
other_tool!(later);

/// What it saw since it was asked last.
fn calls(other: &Mutex<Other>) -> Vec<&'static str> {
    std::mem::take(&mut other.lock().expect("a tool").calls)
}

fn packets(other: &Mutex<Other>) -> Vec<[u8; SIZE]> {
    std::mem::take(&mut other.lock().expect("a tool").packets)
}

#[test]
fn other_tools_before_and_after_see_what_is_theirs() {
    let original = code_object();
    for (version, size, moved) in EXTENSIONS {
        let _guard = begin();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("profile");
        let (root, mut core, _extension) = table(size, moved);
        earlier::install(&mut core, true);
        let of_earlier = core.clone();
        let tool = super::runtime::load(&root, &path, "lds");
        later::install(&mut core, false);
        let create: CreateReader = entry(&core, 944);
        let load: Load = entry(&core, 976);
        let freeze: Freeze = entry(&core, 704);
        let destroy: Destroy = entry(&core, 688);
        let make: QueueCreate = entry(&core, 72);
        let (mut reader, mut queue, mut loaded) = (0, 0, 0);
        assert_eq!(create(original.as_ptr().cast(), original.len(), &raw mut reader), SUCCESS);
        assert_eq!(load(EXECUTABLE, AGENT, reader, std::ptr::null(), &raw mut loaded), SUCCESS);
        assert_eq!(freeze(EXECUTABLE, std::ptr::null()), SUCCESS);
        assert_eq!(make(AGENT, 64, 0, 0, 0, 0, 0, &raw mut queue), SUCCESS);
        let program = ["create_reader", "load", "freeze", "queue_create"];
        assert_eq!(calls(&later::OTHER), program, "{version}");
        assert_eq!(calls(&earlier::OTHER), program, "{version}");
        let made = with(|runtime| (std::mem::take(&mut runtime.calls), runtime.handlers.len()));
        assert_eq!(made, (vec!["intercept_create".to_owned()], 3), "{version}: the queue is made once");

        // The later tool sees the program's packet, the earlier one what is made of it, with what is loaded for that.
        let packet = dispatch(64, lds(&original), 0);
        let [counted] = send(packet)[..] else { panic!("{version}: one packet") };
        assert_ne!(counted, packet);
        assert_eq!(packets(&later::OTHER), [packet], "{version}");
        assert_eq!(packets(&earlier::OTHER), [counted], "{version}");
        assert_eq!(calls(&later::OTHER), [""; 0], "{version}: what this tool loads is none of its business");
        assert_eq!(calls(&earlier::OTHER), ["create_reader", "load", "freeze"], "{version}");

        with(|runtime| runtime.signals.values_mut().for_each(|signal| *signal = 0));
        assert_eq!(destroy(EXECUTABLE), SUCCESS);
        assert_eq!(calls(&later::OTHER), ["destroy"], "{version}");
        assert_eq!(calls(&earlier::OTHER), ["destroy", "destroy"], "{version}");
        tool.drain();
        tool.join();
        // The later tool's functions stay, and go on calling this one's.
        let of_later = core.clone();
        hooks::remove(tool);
        for (entry, (now, before)) in of_later.iter().zip(&of_earlier).enumerate() {
            let expected = if ENTRIES.contains(&(entry * 8)) { now } else { before };
            assert_eq!(core[entry], *expected, "{version}: entry {}", entry * 8);
        }
        tool.finish();
        let profile = Profile::from_json(&std::fs::read(&path).expect("a profile")).expect("a profile");
        assert_eq!(profile.kernels.iter().map(|kernel| kernel.dispatches).sum::<u64>(), 1, "{version}");
    }
}
