//! The ways in which the tool gets the runtime's tables.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};

use super::runtime::*;
use crate::hooks;
use crate::raw::Registered;
use crate::registration::{self, Origin};
use crate::settings::Settings;

thread_local! {
    /// What was asked of rocprofiler: the tables, and the function to be called.
    static ASKED: Cell<Option<(c_int, Registered)>> = const { Cell::new(None) };
}

extern "C" fn register(registered: Registered, tables: c_int, data: *mut c_void) -> c_int {
    assert!(data.is_null());
    ASKED.set(Some((tables, registered)));
    0
}

#[test]
fn rocprofiler_is_asked_for_the_tables_of_hsa() {
    let mut client: (*const c_char, u32) = (std::ptr::null(), 7);
    registration::configure(Some(register), (&raw mut client) as usize, crate::registered);
    // SAFETY: the tool's name ends with a zero.
    assert_eq!(unsafe { CStr::from_ptr(client.0) }, c"wavetap");
    assert_eq!((client.1, ASKED.take().map(|(tables, _)| tables)), (7, Some(1)));
    let mut tables = [5_usize, 6];
    let address = (&raw mut tables) as usize;
    assert_eq!(registration::table(1, address, 1), Some(5));
    assert_eq!(registration::table(2, address, 1), None, "the tables of HIP");
    assert_eq!(registration::table(1, address, 0), None);
}

/// Without rocprofiler nothing is asked for, and it wants no answer.
#[test]
fn a_process_without_rocprofiler_goes_on() {
    let mut client: (*const c_char, u32) = (std::ptr::null(), 7);
    assert!(crate::rocprofiler_configure(10_000, c"1.0".as_ptr(), 0, (&raw mut client).cast()).is_null());
    assert!(!client.0.is_null());
}

/// Whichever way gives the tool the tables first loads it; the other one changes nothing.
#[test]
fn it_is_loaded_once() {
    let _guard = begin();
    let folder = tempfile::tempdir().expect("a folder");
    let settings = || Some(settings(&folder.path().join("profile"), "lds"));
    let none = || -> Option<Settings> { panic!("it is loaded") };
    for (first, second) in [(Origin::Runtime, Origin::Registration(0)), (Origin::Registration(0), Origin::Runtime)] {
        let (root, core, _extension) = table(624, true);
        let before = core.clone();
        assert!(registration::load(root.as_ptr() as usize, first, settings));
        let tool = hooks::tool().expect("a tool");
        let hooked = core.clone();
        assert_ne!(hooked, before);
        assert!(registration::load(root.as_ptr() as usize, second, none));
        assert!(registration::load(root.as_ptr() as usize, first, none));
        assert!(core == hooked && std::ptr::eq(hooks::tool().expect("a tool"), tool));
        if first == Origin::Registration(0) {
            // The runtime was shut down and started again: its tables are new.
            let (root, core, _extension) = table(624, true);
            let before = core.clone();
            assert!(registration::load(root.as_ptr() as usize, Origin::Registration(1), settings));
            assert_ne!(core, before);
            crate::OnUnload();
            assert_eq!(core, before);
            tool.drain();
            tool.join();
        } else {
            crate::OnUnload();
            assert_eq!(core, before);
        }
    }
}

/// Without anything to count the tables stay as they are.
#[test]
fn nothing_is_replaced_where_nothing_is_to_be_counted() {
    let _guard = begin();
    let (root, core, _extension) = table(400, false);
    let before = core.clone();
    assert!(registration::load(root.as_ptr() as usize, Origin::Runtime, || None));
    assert_eq!(core, before);
    let folder = tempfile::tempdir().expect("a folder");
    let (short, _core, _extension) = table(304, false);
    let settings = || Some(settings(&folder.path().join("profile"), "lds"));
    assert!(!registration::load(short.as_ptr() as usize, Origin::Runtime, settings), "tables that lack something");
}
