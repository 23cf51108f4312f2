//! Assembles a kernel and runs it in modelled time.
#![allow(dead_code)]

use std::path::Path;
use std::process::Command;

use crate::emulated::assemble_with;
use wavetap::emulator::{Device, Dispatch, DispatchStats, ModelledTime, Options, StallReason, Timing};
use wavetap::isa::Target;

/// A kernel: `s[4:5]` is the address of its memory, `v0` the work-item, `v1` four times that. `{kernel}` in its body is
/// its name, for labels.
#[derive(Clone)]
pub struct Kernel {
    pub target: &'static str,
    pub lanes: u32,
    pub body: String,
    pub vgprs: u32,
    pub lds: u32,
}

impl Kernel {
    pub fn new(target: &'static str, body: impl Into<String>) -> Kernel {
        let lanes = if target.starts_with("gfx1") { 32 } else { 64 };
        Kernel { target, lanes, body: body.into(), vgprs: 64, lds: 4096 }
    }

    /// The same code, so many times.
    pub fn repeated(target: &'static str, body: &str, times: usize) -> Kernel {
        Kernel::new(target, format!("{body}\n").repeat(times))
    }

    pub fn with(mut self, change: impl FnOnce(&mut Kernel)) -> Kernel {
        change(&mut self);
        self
    }

    fn wait(&self) -> &'static str {
        if self.target.starts_with("gfx12") { "s_wait_kmcnt 0" } else { "s_waitcnt lgkmcnt(0)" }
    }

    /// The assembler's text of it, under a name.
    fn text(&self, name: &str) -> String {
        let Kernel { target, lanes, body, vgprs, lds } = self;
        let wave32 = if target.starts_with("gfx1") {
            format!(".amdhsa_wavefront_size32 {}\n", u32::from(*lanes == 32))
        } else {
            String::new()
        };
        let accum = if ["gfx90a", "gfx942", "gfx950"].contains(target) {
            format!(".amdhsa_accum_offset {vgprs}\n")
        } else {
            String::new()
        };
        // AGPRs come after the others.
        let registers = if accum.is_empty() { *vgprs } else { vgprs + 64 };
        let (wait, body) = (self.wait(), body.replace("{kernel}", name));
        format!(
            ".text\n.globl {name}\n.p2align 8\n.type {name},@function\n{name}:\n s_load_dwordx2 s[4:5], s[0:1], 0x0\n \
                v_and_b32 v0, 0x3ff, v0\n v_lshlrev_b32 v1, 2, v0\n {wait}\n{body}\n s_endpgm\n\
             .rodata\n.p2align 6\n.amdhsa_kernel {name}\n .amdhsa_user_sgpr_kernarg_segment_ptr 1\n \
             .amdhsa_next_free_vgpr {registers}\n .amdhsa_next_free_sgpr 40\n \
             {wave32}{accum}.amdhsa_group_segment_fixed_size {lds}\n.end_amdhsa_kernel\n"
        )
    }

    /// Runs it on this memory; gives what was done, and the memory afterwards.
    pub fn run_on(&self, memory: &[u32], size: (u32, u16), timing: Option<Timing>) -> (DispatchStats, Vec<u32>) {
        self.run_in(&assemble(&[(self, "k".into())]), "k", (memory, 4 * memory.len() as u64), size, timing)
    }

    /// Runs it as the kernel of that name of a code object. Its memory has so many bytes, of which the first are these.
    pub fn run_in(
        &self,
        image: &[u8],
        name: &str,
        memory: (&[u32], u64),
        size: (u32, u16),
        timing: Option<Timing>,
    ) -> (DispatchStats, Vec<u32>) {
        let (mut all, after) = self.run_often(image, name, memory, size, timing, 1);
        (all.remove(0), after)
    }

    /// The same, so many times on one device.
    fn run_often(
        &self,
        image: &[u8],
        name: &str,
        (memory, bytes): (&[u32], u64),
        (groups, group): (u32, u16),
        timing: Option<Timing>,
        times: u64,
    ) -> (Vec<DispatchStats>, Vec<u32>) {
        let target = Target::by_name(self.target).expect("target");
        let mut device = Device::new(target, Options { strict: false, timing, trace: true, ..Options::default() });
        let object = device.load(image).expect("it loads");
        let buffer = device.malloc(bytes.max(4), 4096).expect("memory");
        device.write(buffer, &memory.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>()).expect("written");
        let kernarg = device.malloc(64, 256).expect("memory");
        device.write(kernarg, &buffer.to_le_bytes()).expect("written");
        let dispatch = |dispatch_id| Dispatch {
            kernel_object: object.kernel(name).expect("kernel"),
            grid: [groups * u32::from(group), 1, 1],
            workgroup: [group, 1, 1],
            private_segment_size: 0,
            group_segment_size: self.lds,
            kernarg_address: kernarg,
            dispatch_id,
        };
        let run = |id| device.dispatch(&dispatch(id)).unwrap_or_else(|fault| panic!("{}: {fault}", self.target));
        let stats = (1..=times).map(run).collect();
        let mut bytes = vec![0; 4 * memory.len()];
        device.read(buffer, &mut bytes).expect("read");
        (stats, bytes.chunks(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect())
    }

    /// The modelled times of several dispatches of it, one after the other on one device.
    pub fn times(&self, (memory, bytes): (&[u32], u64), size: (u32, u16), times: u64) -> Vec<ModelledTime> {
        let image = assemble(&[(self, "k".into())]);
        let (all, _) = self.run_often(&image, "k", (memory, bytes), size, Some(Timing::default()), times);
        all.into_iter().map(|stats| *stats.time.expect("timing was on")).collect()
    }

    /// The modelled time of so many workgroups of so many work-items.
    pub fn time(&self, memory: &[u32], size: (u32, u16), timing: &Timing) -> ModelledTime {
        let (stats, _) = self.run_on(memory, size, Some(timing.clone()));
        *stats.time.expect("timing was on")
    }

    /// The modelled cycles of one wave.
    pub fn cycles(&self, memory: &[u32]) -> u64 {
        self.time(memory, (1, self.lanes as u16), &Timing::default()).cycles
    }
}

/// A code object of kernels of one target and size of waves, each under its name.
pub fn assemble(kernels: &[(&Kernel, String)]) -> Vec<u8> {
    let dir = tempfile::tempdir().expect("directory");
    let Some((first, _)) = kernels.first() else { return Vec::new() };
    let texts: Vec<String> = kernels.iter().map(|(kernel, name)| kernel.text(name)).collect();
    let size = if first.lanes == 64 { "-mwavefrontsize64" } else { "-mno-wavefrontsize64" };
    let options = if first.target.starts_with("gfx1") { &[size][..] } else { &[] };
    let text = format!(".amdhsa_code_object_version 5\n{}", texts.concat());
    assemble_with(dir.path(), first.target, &text, options)
}

/// What one more `body` costs a wave, in the middle of many.
pub fn each(target: &'static str, body: &str, memory: &[u32]) -> f64 {
    each_of(&|times| Kernel::repeated(target, body, times), memory, 1, &Timing::default())
}

/// The same of so many waves of a workgroup, with other latencies.
pub fn each_of(kernel: &dyn Fn(usize) -> Kernel, memory: &[u32], waves: u16, timing: &Timing) -> f64 {
    let cycles = |times| {
        let kernel = kernel(times);
        kernel.time(memory, (1, waves * kernel.lanes as u16), timing).cycles as f64
    };
    (cycles(192) - cycles(64)) / 128.0
}

pub fn changed(latencies: &[&str]) -> Timing {
    Timing { latencies: latencies.iter().map(|text| text.parse().expect("a latency")).collect(), ..Timing::default() }
}

/// Cycles of a reason over all instructions.
pub fn stalled(time: &ModelledTime, reason: StallReason) -> u64 {
    time.instructions.values().map(|each| each.stalled(reason)).sum()
}

pub fn assembler_is_there() -> bool {
    let found = Path::new("/usr/bin/clang-19").exists() || Command::new("clang-19").arg("--version").output().is_ok();
    if !found {
        eprintln!("SKIPPED: clang-19 is not installed; this test assembles its own kernels");
    }
    found
}
