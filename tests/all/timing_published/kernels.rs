//! The kernels that are measured, and how a number is made of their modelled times.

use serde::Deserialize;

use crate::timed::{Kernel, stalled};
use wavetap::emulator::{ModelledTime, StallReason};
use wavetap::isa::{MachineFact, Target};

/// A kernel on its memory.
pub struct Run {
    pub kernel: Kernel,
    /// Its first words.
    pub memory: Vec<u32>,
    /// All of it.
    pub bytes: u64,
    /// Workgroups, and work-items in each.
    pub size: (u32, u16),
}

/// What is measured. In code, `{loads}`, `{stores}`, `{lds}` and `{scalar}` are the waits for all such operations,
/// `{one}` leaves one lane active, `{group}` is the register of the workgroup's number.
#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Measurement {
    /// What one more of some instructions costs, in the middle of many.
    Each(Each),
    /// A list in memory that a lane follows.
    Chase(Chase),
    /// All compute units read.
    Stream(Stream),
    /// The first scalar load of a dispatch: of its arguments.
    ColdScalar,
    /// The first vector load of a dispatch.
    ColdVector,
    /// From the last store of a wave to its end.
    EndOfWave,
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct Each {
    /// Instructions before the others.
    #[serde(default)]
    first: String,
    body: String,
    /// 64 or 32, if it is not the usual number of the target.
    lanes: Option<u32>,
    /// How many waves do so, all of a workgroup; the cycles are shared out among them.
    #[serde(default = "one")]
    waves: u16,
    /// How many of those that are measured are in the code.
    #[serde(default = "one")]
    per: u16,
    /// What of the cycles is not of what is measured: the slot of an instruction after it.
    #[serde(default)]
    less: u16,
    /// Bytes that it moves, for bytes per cycle.
    bytes: Option<u32>,
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct Chase {
    kib: usize,
    /// Bytes from one to the next.
    step: usize,
    /// By scalar loads.
    #[serde(default)]
    scalar: bool,
    /// Everything is read for the first time.
    #[serde(default)]
    cold: bool,
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// What a workgroup reads, of its own.
    kib: u64,
    /// Waves of a compute unit.
    #[serde(default = "one")]
    waves: u16,
    /// How often it is read after the first time, in each of the two runs.
    #[serde(default)]
    rounds: [u64; 2],
    /// It is read once, in the first run half of it.
    #[serde(default)]
    cold: bool,
    /// They write.
    #[serde(default)]
    store: bool,
}

fn one() -> u16 {
    1
}

/// Code for a target.
fn filled(code: &str, target: Target, lanes: u32) -> String {
    let newest = target.name().starts_with("gfx12");
    let wait = |old: &str, new: &str| if newest { format!("{new} 0") } else { format!("s_waitcnt {old}(0)") };
    let stores = match target.name() {
        name if name.starts_with("gfx12") => "s_wait_storecnt 0",
        name if name.starts_with("gfx1") => "s_waitcnt_vscnt null, 0x0",
        _ => "s_waitcnt vmcnt(0)",
    };
    code.replace("{loads}", &wait("vmcnt", "s_wait_loadcnt"))
        .replace("{stores}", stores)
        .replace("{lds}", &wait("lgkmcnt", "s_wait_dscnt"))
        .replace("{scalar}", &wait("lgkmcnt", "s_wait_kmcnt"))
        .replace("{one}", if lanes == 64 { "s_mov_b64 exec, 1" } else { "s_mov_b32 exec_lo, 1" })
        .replace("{add}", if target.name().starts_with("gfx1") { "v_add_nc_u32" } else { "v_add_u32" })
        .replace("{group}", if newest { "ttmp9" } else { "s2" })
}

fn units(target: Target) -> u64 {
    target.machine(MachineFact::ComputeUnits).typical.into()
}

fn kernel(target: Target, lanes: Option<u32>, code: &str) -> Kernel {
    let usual = Kernel::new(target.name(), "");
    let lanes = lanes.unwrap_or(usual.lanes);
    let body = filled(code, target, lanes);
    usual.with(|kernel| (kernel.lanes, kernel.body, kernel.lds) = (lanes, body, 16384))
}

impl Measurement {
    /// What has to be run.
    pub fn runs(&self, target: Target) -> Vec<Run> {
        let small = |code: &str, waves: u16, lanes: Option<u32>| {
            let kernel = kernel(target, lanes, code);
            let size = (1, waves * kernel.lanes as u16);
            Run { kernel, memory: vec![0; 1 << 14], bytes: 1 << 16, size }
        };
        match self {
            Measurement::Each(Each { first, body, lanes, waves, .. }) => Each::TIMES
                .iter()
                .map(|times| small(&format!("{first}\n{}", format!("{body}\n").repeat(*times)), *waves, *lanes))
                .collect(),
            Measurement::Chase(chase) => chase.runs(target),
            Measurement::Stream(stream) => stream.runs(target),
            Measurement::ColdScalar => vec![small("", 1, None)],
            Measurement::ColdVector => {
                let load = "v_mov_b32 v2, 0\n global_load_dword v3, v2, s[4:5]\n {loads}";
                vec![small(load, 1, None), small("", 1, None)]
            }
            Measurement::EndOfWave => {
                let before = "global_load_dword v3, v1, s[4:5]\n {loads}\n";
                let store = format!("{before}global_store_dword v1, v3, s[4:5]");
                vec![small(&store, 1, None), small(before, 1, None)]
            }
        }
    }

    /// The number that is compared.
    pub fn result(&self, target: Target, times: &[ModelledTime]) -> f64 {
        let cycles = |n: usize| times[n].cycles as f64;
        let waited = |n: usize| stalled(&times[n], StallReason::Waitcnt) as f64;
        match self {
            Measurement::Each(Each { waves, per, less, bytes, .. }) => {
                let each = (cycles(1) - cycles(0)) / (Each::TIMES[1] - Each::TIMES[0]) as f64;
                let each = each / f64::from(*waves) / f64::from(*per) - f64::from(*less);
                bytes.map_or(each, |bytes| f64::from(bytes) / each)
            }
            Measurement::Chase(chase) => (cycles(1) - cycles(0)) / (chase.steps(1) - chase.steps(0)) as f64,
            Measurement::Stream(stream) => {
                let steps = stream.steps(target, 1) - stream.steps(target, 0);
                (steps * stream.width(target) * units(target)) as f64 / (cycles(1) - cycles(0))
            }
            Measurement::ColdScalar => waited(0),
            Measurement::ColdVector => waited(0) - waited(1),
            Measurement::EndOfWave => (times[0].wave_cycles - times[1].wave_cycles) as f64,
        }
    }
}

impl Each {
    /// How often the code is repeated in each of the two runs.
    const TIMES: [usize; 2] = [64, 192];
}

impl Chase {
    /// Steps between two branches.
    const UNROLLED: usize = 16;

    fn bytes(&self, run: usize) -> usize {
        // What is read for the first time is read once, in the first run half of it.
        if self.cold && run == 0 { self.kib << 9 } else { self.kib << 10 }
    }

    fn steps(&self, run: usize) -> usize {
        let around = self.bytes(run) / self.step;
        if self.cold { around } else { around * [1, 3][run] }
    }

    fn runs(&self, target: Target) -> Vec<Run> {
        (0..2)
            .map(|run| {
                let bytes = self.bytes(1);
                let mut memory = vec![0; bytes / 4];
                (0..bytes / self.step).for_each(|n| memory[n * self.step / 4] = ((n + 1) * self.step % bytes) as u32);
                let (first, step) = if self.scalar {
                    ("s_mov_b32 s9, 0", "s_load_dword s9, s[4:5], s9\n {scalar}\n")
                } else {
                    ("{one}\n v_mov_b32 v2, 0", "global_load_dword v2, v2, s[4:5]\n {loads}\n")
                };
                let code = format!(
                    "{first}\n s_mov_b32 s8, {}\n{{kernel}}_again:\n {} s_sub_u32 s8, s8, 1\n s_cmp_lg_u32 s8, 0\n \
                        s_cbranch_scc1 {{kernel}}_again",
                    self.steps(run) / Chase::UNROLLED,
                    step.repeat(Chase::UNROLLED)
                );
                let kernel = kernel(target, None, &code);
                let size = (1, kernel.lanes as u16);
                Run { kernel, memory, bytes: bytes as u64, size }
            })
            .collect()
    }
}

impl Stream {
    /// Bytes of each lane.
    const LANE: u64 = 16;

    /// Bytes of a workgroup at a time.
    fn width(&self, target: Target) -> u64 {
        Stream::LANE * u64::from(Kernel::new(target.name(), "").lanes) * u64::from(self.waves)
    }

    /// How often it reads as many, all in all.
    fn steps(&self, target: Target, run: usize) -> u64 {
        let steps = (self.kib << 10) / self.width(target);
        if self.cold { steps / [2, 1][run] } else { steps * self.rounds[run] }
    }

    fn runs(&self, target: Target) -> Vec<Run> {
        let (units, width) = (units(target), self.width(target));
        let access = match self.store {
            false => "global_load_dwordx4 v[8:11], v2, s[4:5]",
            true => "global_store_dwordx4 v2, v[8:11], s[4:5]",
        };
        let all = (self.kib << 10) / width;
        let around = |label: &str, steps: u64| {
            format!(
                "v_mov_b32 v2, v3\n s_mov_b32 s8, {steps}\n{{kernel}}_{label}:\n {access}\n {{add}} v2, {width}, v2\n \
                    s_sub_u32 s8, s8, 1\n s_cmp_lg_u32 s8, 0\n s_cbranch_scc1 {{kernel}}_{label}\n"
            )
        };
        (0..2)
            .map(|run| {
                let measured = match (self.cold, self.rounds[run]) {
                    (true, _) => around("once", self.steps(target, run)),
                    (false, rounds) => {
                        // All have read everything when they begin.
                        let before = format!("{}\n {{loads}}\n {{stores}}\n s_sleep 127\n", around("before", all));
                        let again: Vec<String> =
                            (0..rounds).map(|round| around(&format!("again{round}"), all)).collect();
                        format!("{before}{}", again.concat())
                    }
                };
                let code = format!(
                    "s_mul_i32 s9, {{group}}, {}\n v_mul_u32_u24 v3, {}, v0\n {{add}} v3, s9, v3\n {measured} \
                        {{loads}}\n {{stores}}",
                    self.kib << 10,
                    Stream::LANE,
                );
                let kernel = kernel(target, None, &code).with(|kernel| kernel.lds = 0);
                let size = (units as u32, self.waves * kernel.lanes as u16);
                Run { kernel, memory: Vec::new(), bytes: units * (self.kib << 10), size }
            })
            .collect()
    }
}
