//! What one call of a program does between its two events, read in its source.

/// Shader clock of an MI300A, in megahertz (AMD's data sheet: at most 2100).
pub const MEGAHERTZ: f64 = 2100.0;
/// Microseconds from the first event to the first kernel and from the last kernel to the second event: fitted to
/// vector additions of 1024 to 4096 elements, the nearest to an empty kernel that was measured.
pub const FIRST: f64 = 4.2;
/// Microseconds from a kernel's end to the start of the next one in the queue: a launch in a full queue takes 2.1 on an
/// MI210 (gpu-benches), of which the model says that 0.4 are the kernel's own.
pub const NEXT: f64 = 1.7;
/// Microseconds of a copy from the host, and megabytes a second: fitted to the same repository's copies of 64 to 512
/// MiB on the same board.
pub const COPY: f64 = 12.0;
pub const COPY_RATE: f64 = 57_900.0;

/// A program.
pub struct Program {
    pub name: &'static str,
    /// Whether its modelled times were looked at while the model was changed.
    pub finding_out: bool,
    /// Kernels that run before the first event.
    pub before: &'static [&'static str],
    /// Copies from or to the host, and of each launch.
    pub copies: (u64, u64),
    /// Calls of `hipMemset`, which launch a kernel each on AMD's runtime and none on the emulator's.
    pub fills: u64,
}

const fn program(name: &'static str, finding_out: bool) -> Program {
    Program { name, finding_out, before: &[], copies: (0, 0), fills: 0 }
}

const fn copying(name: &'static str, finding_out: bool, copies: (u64, u64)) -> Program {
    Program { copies, ..program(name, finding_out) }
}

pub const PROGRAMS: &[Program] = &[
    program("vectoradd", true),
    program("matrixtranspose", true),
    copying("floydwarshall", true, (2, 0)),
    program("fir", true),
    Program { before: &["kmeans_kernel_swap"], ..program("kmeans", true) },
    Program { fills: 2, ..program("atax", true) },
    program("matrixmultiplication", true),
    copying("nw", true, (1, 0)),
    program("stencil2d", true),
    program("spmv", true),
    copying("fastwalshtransform", false, (1, 0)),
    program("simpleconvolution", false),
    copying("bitonicsort", false, (1, 0)),
    program("bicg", false),
    program("relu", false),
    copying("pagerank", false, (1, 0)),
    copying("bfs", false, (1, 2)),
    program("fft", false),
    program("nbody", false),
    program("conv2d", false),
    program("im2col", false),
];

pub fn of(name: &str) -> Option<&'static Program> {
    PROGRAMS.iter().find(|program| program.name == name)
}

impl Program {
    /// Microseconds between the events.
    pub fn time(&self, launches: u64, cycles: u64, copied_bytes: u64) -> f64 {
        let copies = self.copies.0 + self.copies.1 * launches;
        let later = (launches + self.fills).saturating_sub(1);
        FIRST + NEXT * later as f64 + COPY * copies as f64 + copied_bytes as f64 / COPY_RATE + cycles as f64 / MEGAHERTZ
    }
}
