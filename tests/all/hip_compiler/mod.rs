//! Compiles HIP source with the installed compiler, so that the tests read what real compilers write.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The compiler; Debian's name for it.
const COMPILER: &str = "clang++-19";

/// A directory that is removed when the test ends, and a compiler to fill it.
pub struct Workshop {
    dir: tempfile::TempDir,
}

/// Says loudly why a test did nothing. Returns whether the compiler is there.
pub fn compiler_is_there() -> bool {
    let found = Command::new(COMPILER).arg("--version").output().is_ok();
    if !found {
        eprintln!(
            "SKIPPED: {COMPILER} is not installed; this test compiles its own input (./test.sh --help says what to \
                install)"
        );
    }
    found
}

/// Flags for kernels that use no headers and no device library.
pub const BARE: [&str; 2] = ["-nogpuinc", "-nogpulib"];

/// A source with two kernels, a device function that is called, a constant and a global; builds without HIP's headers.
pub const SOURCE: &str = r#"
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __constant__ __attribute__((constant))
#define __shared__ __attribute__((shared))
typedef struct dim3 { unsigned x, y, z; dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
} dim3;
typedef void* hipStream_t;
typedef int hipError_t;
extern "C" unsigned __hipPushCallConfiguration(dim3 grid, dim3 block, __SIZE_TYPE__ shared = 0, hipStream_t stream = 0);
extern "C" hipError_t __hipPopCallConfiguration(dim3* grid, dim3* block, __SIZE_TYPE__* shared, hipStream_t* stream);
extern "C" hipError_t hipLaunchKernel(const void*, dim3, dim3, void**, __SIZE_TYPE__, hipStream_t);
__device__ int offset = 7;
__constant__ int table[4] = {1, 2, 3, 5};
__attribute__((noinline)) __device__ int twice(int x) { return x * 2 + offset; }
__global__ void add(int* out, int n) {
    int i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
    if (i < n) out[i] += table[i & 3];
}
template <typename T> __global__ void scale(T* out, int n) {
    __shared__ int tile[64];
    int i = __builtin_amdgcn_workitem_id_x();
    tile[i] = out[i];
    __builtin_amdgcn_s_barrier();
    if (i < n) out[i] = twice(tile[63 - i]);
}
template __global__ void scale<int>(int*, int);
"#;

impl Workshop {
    pub fn new() -> Self {
        Workshop { dir: tempfile::tempdir().expect("temporary directory") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, contents).expect("written");
        path
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("read")
    }

    /// Runs a program in the directory; it must succeed. Returns what it printed.
    pub fn run(&self, program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> String {
        let program = program.as_ref();
        let mut command = Command::new(program);
        // Cargo's own search path would put its libraries before the test's.
        command.args(arguments).current_dir(self.dir.path()).env_remove("LD_LIBRARY_PATH");
        // Another test's thread that is starting a program holds what this one has just written open for a moment.
        let output = loop {
            match command.output() {
                Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
                output => break output.unwrap_or_else(|error| panic!("{program:?} does not start: {error}")),
            }
        };
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{program:?} {arguments:?}: {}\n{out}{err}", output.status);
        format!("{out}{err}")
    }

    /// Compiles HIP `source` to `output` with these flags.
    pub fn compile(&self, source: &str, output: &str, flags: &[&str]) -> Vec<u8> {
        let file = format!("{output}.hip");
        self.write(&file, source);
        let mut arguments = vec!["-w", "-x", "hip", "-O2"];
        arguments.extend(flags);
        arguments.extend([file.as_str(), "-o", output]);
        self.run(COMPILER, &arguments);
        self.read(output)
    }

    /// Compiles `source` to a bare code object for one target.
    pub fn code_object(&self, source: &str, target: &str, flags: &[&str]) -> Vec<u8> {
        let arch = format!("--offload-arch={target}");
        let mut all = vec![arch.as_str(), "--offload-device-only", "--no-gpu-bundle-output"];
        all.extend(BARE);
        all.extend(flags);
        self.compile(source, &format!("{}.co", target.replace(':', "_")), &all)
    }
}

/// Runs a program of the host; `None` if it is not installed.
pub fn tool(name: &str, arguments: &[&str], dir: &Path) -> Option<(bool, String)> {
    let output = Command::new(name).args(arguments).current_dir(dir).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Some((output.status.success(), text))
}
