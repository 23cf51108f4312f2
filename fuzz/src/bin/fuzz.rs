//! The fuzzer: libFuzzer's command line. The environment variable `WAVETAP_FUZZ_TARGET` says what it runs.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

/// The chosen target.
fn chosen() -> fn(&[u8]) {
    static CHOSEN: OnceLock<fn(&[u8])> = OnceLock::new();
    *CHOSEN.get_or_init(|| {
        let name = std::env::var("WAVETAP_FUZZ_TARGET").unwrap_or_default();
        wavetap_fuzz::target(&name).unwrap_or_else(|| panic!("WAVETAP_FUZZ_TARGET is {name:?}, no target")).run
    })
}

fuzz_target!(|data: &[u8]| chosen()(data));
