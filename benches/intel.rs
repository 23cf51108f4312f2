//! Decoding Ponte Vecchio code, and making it the code that a slicer reads, beside `iga64` on the same bytes:
//!
//!     crates/intel/compile-kernels.sh target/intel-kernels
//!     WAVETAP_INTEL_KERNELS=$PWD/target/intel-kernels cargo bench -p wavetap-intel --bench intel
//!
//! Without the variable the code is that of the tests' zebin, which is small. `iga64` prints text and starts a process
//! for each kernel; the time of a start, measured on the smallest kernel, is taken off.

use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wavetap_intel::open;

/// Rounds of each; the fastest counts, as everything slower is noise.
const ROUNDS: usize = 5;
const SMALL: &[u8] = include_bytes!("../crates/intel/tests/zebins/kernels.zebin");

fn files() -> Vec<Vec<u8>> {
    let Some(folder) = std::env::var_os("WAVETAP_INTEL_KERNELS") else { return vec![SMALL.to_vec()] };
    let entries = std::fs::read_dir(folder).expect("the folder of WAVETAP_INTEL_KERNELS");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let zebins = paths.filter(|path| path.extension().is_some_and(|extension| extension == "zebin"));
    zebins.map(|path| std::fs::read(path).expect("a file")).collect()
}

fn fastest(mut run: impl FnMut()) -> Duration {
    let rounds = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed()
    });
    rounds.min().unwrap_or_default()
}

fn iga64(kernel: &Path) -> Option<Duration> {
    let start = Instant::now();
    let mut command = Command::new("iga64");
    command.args(["-d", "-p=XeHPC"]).arg(kernel).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().ok()?;
    Some(start.elapsed())
}

fn main() {
    let files = files();
    let zebins: Vec<_> = files.iter().flat_map(|file| open(file, "bench").expect("a zebin")).collect();
    let functions: Vec<_> = zebins.iter().flat_map(|zebin| zebin.functions()).collect();
    let bytes: u64 = functions.iter().map(|function| function.range.end - function.range.start).sum();
    let speed = |name: &str, time: Duration| {
        println!("{name:<22} {:9.2} MB/s", bytes as f64 / 1e6 / time.as_secs_f64());
    };
    println!("{} functions, {bytes} bytes", functions.len());
    speed(
        "decode",
        fastest(|| {
            for function in &functions {
                black_box(function.instructions().expect("known instructions"));
            }
        }),
    );
    speed(
        "decode, flow and waits",
        fastest(|| {
            for function in &functions {
                black_box(function.code(&()).expect("code"));
            }
        }),
    );
    let folder = tempfile::tempdir().expect("a folder");
    let mut kernels: Vec<_> = functions.iter().enumerate().collect();
    kernels.sort_by_key(|(_, function)| function.section_bytes().len());
    let times: Option<Vec<Duration>> = kernels
        .iter()
        .map(|(number, function)| {
            let path = folder.path().join(format!("{number}.krn"));
            std::fs::write(&path, function.section_bytes()).expect("written");
            iga64(&path)
        })
        .collect();
    match times {
        Some(times) => {
            let start = times.iter().min().copied().unwrap_or_default();
            let all: Duration = times.iter().sum();
            speed("iga64, started", all);
            speed("iga64", all.saturating_sub(start * times.len() as u32));
        }
        None => println!("no iga64 to compare with"),
    }
}
