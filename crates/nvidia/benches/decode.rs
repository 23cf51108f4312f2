//! How fast real code is decoded, beside NVIDIA's disassembler on the same cubin in the same run, one core each:
//!
//!     crates/nvidia/tests/oracle/fetch.sh target/nvidia
//!     WAVETAP_NVIDIA=$PWD/target/nvidia cargo bench -p wavetap-nvidia
//!
//! Without the folder the fixture is decoded, and nothing is compared. Everything slower than the fastest round is
//! noise.

use std::hint::black_box;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wavetap_nvidia::container::{Cubin, open};

const ROUNDS: usize = 5;

fn fastest(mut round: impl FnMut()) -> Duration {
    let times = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        round();
        start.elapsed()
    });
    times.min().unwrap_or_default()
}

fn main() {
    let folder = std::env::var_os("WAVETAP_NVIDIA").map(PathBuf::from);
    let path = match &folder {
        Some(folder) => folder.join("libbitsandbytes_cuda130.so"),
        None => PathBuf::from("fixtures/sm_80.cubin"),
    };
    let file = std::fs::read(&path).expect("the file with code");
    let cubins = open(&file, "bench").expect("a file with code").cubins;
    for model in [80, 90, 120] {
        let of_model = cubins.iter().filter(|cubin| cubin.model().number() == model);
        let size = |cubin: &&Cubin| cubin.functions().map(|function| function.bytes().len()).sum::<usize>();
        let Some(cubin) = of_model.max_by_key(size) else { continue };
        let bytes = size(&cubin) as f64;
        let rate = |time: Duration| bytes / 1e6 / time.as_secs_f64();
        let decode = fastest(|| {
            for function in cubin.functions() {
                let _ = black_box(function.instructions());
            }
        });
        let print = fastest(|| {
            for inst in cubin.functions().flat_map(|function| function.instructions().unwrap_or_default()) {
                black_box(inst.to_string());
            }
        });
        let slice = fastest(|| {
            for function in cubin.functions() {
                drop(black_box(function.code(&())));
            }
        });
        println!("sm_{model}, {:.2} MB of code", bytes / 1e6);
        println!("  decode            {:8.2} MB/s", rate(decode));
        println!("  decode and print  {:8.2} MB/s", rate(print));
        println!("  code with waits   {:8.2} MB/s", rate(slice));
        let Some(tool) = folder.as_ref().map(|folder| folder.join("nvdisasm")).filter(|tool| tool.exists()) else {
            continue;
        };
        let path = std::env::temp_dir().join(format!("wavetap-bench-{}.cubin", std::process::id()));
        std::fs::write(&path, cubin.bytes()).expect("a temporary file");
        let start = Instant::now();
        let status = Command::new(tool).arg("-c").arg(&path).stdout(Stdio::null()).status().expect("nvdisasm runs");
        let time = start.elapsed();
        std::fs::remove_file(&path).expect("the temporary file");
        assert!(status.success());
        println!(
            "  nvdisasm -c       {:8.2} MB/s ({:.1} s; decoding and printing took {print:.1?})",
            rate(time),
            time.as_secs_f64()
        );
    }
}
