//! Rewriting whole files: host executable in, host executable out. The library is the one that `rewriter-tests/fetch-corpora.sh` fetches, where it was.

use std::fs;
use std::hint::black_box;
use std::path::PathBuf;

use criterion::{Criterion, Throughput};
use rewriter_tests::{place, real_code};
use wavetap::pipeline::{Counters, Options, Probe, rewrite};

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("rewrite");
    let samples = ["divergence", "o0"].map(|name| place::samples().join(name));
    let files: Vec<PathBuf> = samples.into_iter().chain(real_code::library()).collect();
    for file in files {
        let data = fs::read(&file).expect("readable");
        let name = file.file_name().expect("a file").to_string_lossy().into_owned();
        group.throughput(Throughput::Bytes(data.len() as u64)).sample_size(10);
        for (mode, counters) in [("lds", Counters::Lds), ("global", Counters::Global)] {
            let options = Options { probes: vec![Probe::Branches], counters, ..Options::default() };
            group.bench_function(format!("{name} {mode}"), |b| {
                b.iter(|| black_box(rewrite(&data, &options).expect("rewritten")).bytes.len());
            });
        }
    }
    group.finish();
    criterion.final_summary();
}
