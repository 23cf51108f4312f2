//! What one call of a program does between its two events, read in its source.

use wavetap::isa::host_times::{COPY_MB_PER_SECOND, COPY_NS, FIRST_LAUNCH_NS, NEXT_LAUNCH_NS};

/// Shader clock of an MI300A, in megahertz (AMD's data sheet: at most 2100).
pub const MEGAHERTZ: f64 = 2100.0;
/// Microseconds of launches and copies, and megabytes a second of copies: what the emulator's modelled clock goes by.
pub const FIRST: f64 = FIRST_LAUNCH_NS as f64 / 1e3;
pub const NEXT: f64 = NEXT_LAUNCH_NS as f64 / 1e3;
pub const COPY: f64 = COPY_NS as f64 / 1e3;
pub const COPY_RATE: f64 = COPY_MB_PER_SECOND as f64;

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
