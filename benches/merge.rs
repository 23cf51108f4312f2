//! Adding up the profiles of many ranks, on one core:
//!
//!     cargo bench -p rewriter-tests --bench merge             # 10,000 profiles, 1 GB of temporary files
//!     cargo bench -p rewriter-tests --bench merge -- 1000     # so many
//!
//! The profiles are of one program whose ranks count different numbers. `alike` has the same kernels and launches in
//! all, as ranks of one program do; in `none alike` each rank has launched another grid, so that every file is parsed.
//! Beside them, in the same run and of the same bytes: parsing to `serde_json::Value`, one file after the other. Files
//! are read from the page cache, which is part of each time. Times are CPU times, which depend little on what else
//! runs. Memory is the process's highest resident set, reset before each row.

use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};

use cpu_time::ProcessTime;
use rewriter_tests::random::Random;
use wavetap::profile::file::{Backend, Dimension, KernelTotals, Origin, Profile, SiteTotals, Work};
use wavetap::profile::launches::LaunchShape;
use wavetap::profile::map::{CounterMode, Source};
use wavetap::profile::merge::{MergeOptions, Merger};
use wavetap::profile::probes::branches::{ExecCounts, ScalarCounts};

/// Profiles, unless an argument says how many.
const PROFILES: u32 = 10_000;
/// Kernels of a profile, and sites of each.
const KERNELS: u64 = 6;
const SITES: u64 = 16;
/// Rounds of each row; the fastest counts.
const ROUNDS: usize = 3;
/// What is wanted of files that are alike: MB of input per second.
const WANTED: f64 = 200.0;

fn profile(rank: u32, alike: bool, random: &mut Random) -> Profile {
    let mut below = |limit: u64| random.bits() % limit;
    let kernels = (0..KERNELS).map(|number| KernelTotals {
        name: format!("_ZN6solver6kernelILi{number}EEEvPKfPfi"),
        demangled: format!("void solver::kernel<{number}>(float const*, float*, int)"),
        target: "gfx90a".to_owned(),
        object: "9e107d9d372bb6826bd81d3542a419d6".to_owned(),
        mode: Some(CounterMode::Lds),
        dispatches: 100 + below(9),
        launches: vec![LaunchShape {
            grid: Some([if alike { 4096 } else { 4096 + rank }, 64, 1]),
            workgroup: [256, 1, 1],
            dynamic_lds: 0,
            dispatches: 100,
        }],
        waves: below(1 << 32),
        work: Some(Work { instructions: below(1 << 44), global_bytes: below(1 << 44), lds_bytes: below(1 << 30) }),
        sites: (0..SITES)
            .map(|site| {
                let executions = below(1 << 30);
                let exec = ExecCounts {
                    executions,
                    agreements: executions / 2,
                    lanes_before: below(1 << 36),
                    ..ExecCounts::default()
                };
                let scalar = ScalarCounts { executions, taken: below(1 << 29) };
                SiteTotals {
                    address: 0x1a00 + 16 * site,
                    instruction: "s_and_saveexec_b64 s[4:5], vcc".to_owned(),
                    source: Some(Source { file: "src/solver/kernels.hip".to_owned(), line: 100 + site as u32 }),
                    counts: if site % 2 == 0 { exec.into() } else { scalar.into() },
                }
            })
            .collect(),
        ..KernelTotals::default()
    });
    let mut profile = Profile {
        kernels: kernels.collect(),
        rank: Some(rank),
        hostname: Some(format!("node-{:04}", rank / 8)),
        ..Profile::new(Origin::Counters, Backend::Emulator)
    };
    profile.end();
    profile
}

/// Writes the profiles, and gives their paths and bytes.
fn write(folder: &Path, count: u32, alike: bool) -> (Vec<PathBuf>, u64) {
    fs::create_dir(folder).expect("a folder");
    let (mut paths, mut bytes) = (Vec::new(), 0);
    for rank in 0..count {
        let json = profile(rank, alike, &mut Random::new(u64::from(rank))).to_json().expect("JSON");
        let path = folder.join(format!("rank{rank}.profile"));
        fs::write(&path, &json).expect("a file");
        bytes += json.len() as u64;
        paths.push(path);
    }
    (paths, bytes)
}

fn merge(paths: &[PathBuf], by: &[Dimension]) -> Profile {
    let mut merger = Merger::new(MergeOptions { by: Some(by.to_vec()), different_builds: false });
    for path in paths {
        merger.add(&fs::read(path).expect("a file"), "a file").expect("they add up");
    }
    merger.finish().expect("a sum")
}

fn parse(paths: &[PathBuf]) {
    for path in paths {
        let value: serde_json::Value = serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON");
        black_box(value);
    }
}

/// The highest resident set since [`reset_peak`] in MB (proc(5), `VmHWM`).
fn peak() -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("the status of this process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the highest resident set");
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kilobytes * 1024.0 / 1e6
}

fn reset_peak() {
    fs::write("/proc/self/clear_refs", "5").expect("the highest resident set can be reset");
}

/// Prints a row, and gives MB per second.
fn row(name: &str, bytes: u64, mut run: impl FnMut()) -> f64 {
    reset_peak();
    let before = peak();
    let seconds = (0..ROUNDS).map(|_| {
        let start = ProcessTime::now();
        run();
        start.elapsed().as_secs_f64()
    });
    let rate = bytes as f64 / 1e6 / seconds.fold(f64::INFINITY, f64::min);
    println!("{name:40} {rate:7.0} MB/s   peak {:6.1} MB, of which {before:.1} MB before it", peak());
    rate
}

fn main() {
    let count = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(PROFILES);
    let folder = tempfile::tempdir().expect("a folder");
    let mut reached = true;
    let mut said = String::new();
    for (name, alike) in [("alike", true), ("none alike", false)] {
        let (paths, bytes) = write(&folder.path().join(name), count, alike);
        println!(
            "{count} profiles of {:.1} kB, {name}: {:.0} MB",
            bytes as f64 / 1e3 / f64::from(count),
            bytes as f64 / 1e6
        );
        let few = &paths[..paths.len().div_ceil(100)];
        let of_few = bytes * few.len() as u64 / paths.len() as u64;
        row("merge, a hundredth of them", of_few, || drop(black_box(merge(few, &[]))));
        let rate = row("merge", bytes, || drop(black_box(merge(&paths, &[]))));
        row("merge --by rank,host", bytes, || drop(black_box(merge(&paths, &[Dimension::Rank, Dimension::Host]))));
        let parsed = row("serde_json::Value, parsed and dropped", bytes, || parse(&paths));
        if alike {
            reached = rate >= WANTED;
        }
        let _ = writeln!(said, "{name}: {:.1} × serde_json::Value", rate / parsed);
    }
    print!("{said}");
    println!("wanted: {WANTED} MB/s of alike profiles: {}", if reached { "reached" } else { "not reached" });
}
