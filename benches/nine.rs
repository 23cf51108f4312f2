//! What counting costs: nine kernels, original and rewritten in every counter mode that the command accepts, on the
//! emulator's timing model. Every cycle is modelled; every ratio is to the original of the same run.
//!
//!     cargo bench -p rewriter-tests --bench nine                       # gfx90a, gfx906 and gfx1030
//!     cargo bench -p rewriter-tests --bench nine -- --target gfx90a --program hotspot
//!     cargo bench -p rewriter-tests --bench nine -- --probe bounds     # another probe, on gfx90a
//!
//! The programs are those of `hip-samples/nine`, run by the command as a person would: `compare --timing`, and for what
//! instrumented kernels cost while nothing is counted, `rewrite` and `run --timing`. Beside them stand the slowdowns
//! that a public talk reported for the kernels that ours are modelled on, measured on an MI100-class card.
//!
//! Exits with 1 where a program fails, or counts are not those of the emulator's trace of their own run, or not the
//! same in all modes.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use rewriter_tests::{Failure, command, place};
use serde_json::Value;

/// What `hip-samples/nine/bin` is built for.
const TARGETS: [&str; 3] = ["gfx90a", "gfx906", "gfx1030"];
/// Targets on which `--probe` measures another probe than `branches`: none of a program that was built for others.
const PROBED: [&str; 4] = ["gfx90a", "gfx906", "gfx1030", "gfx1100"];
/// The programs.
const PROGRAMS: [&str; 6] = ["backprop", "gaussian", "hotspot", "btree", "kmeans", "nn"];
/// A mode that is one of the others for each kernel.
const CHOICE: &str = "auto";

/// A kernel that the talk measured, and its slowdowns.
struct Talk {
    kernel: &'static str,
    lds: f64,
    global: f64,
}

/// The talk's table; a kernel that is not here is in no mean.
const TALK: [Talk; 9] = [
    Talk { kernel: "layer_forward", lds: 2.34, global: 2.62 },
    Talk { kernel: "adjust_weights", lds: 1.19, global: 1.15 },
    Talk { kernel: "multipliers", lds: 2.47, global: 3.00 },
    Talk { kernel: "eliminate", lds: 1.77, global: 1.67 },
    Talk { kernel: "heat", lds: 1.54, global: 1.53 },
    Talk { kernel: "find", lds: 1.29, global: 1.53 },
    Talk { kernel: "transpose_points", lds: 0.99, global: 0.94 },
    Talk { kernel: "assign_points", lds: 1.02, global: 0.99 },
    Talk { kernel: "euclid", lds: 1.77, global: 1.51 },
];

impl Talk {
    fn of(kernel: &str) -> Option<&'static Talk> {
        TALK.iter().find(|talk| talk.kernel == kernel)
    }

    /// Its slowdown in a mode that it knows.
    fn slowdown(&self, mode: &str) -> Option<f64> {
        match mode {
            "lds" => Some(self.lds),
            "global" => Some(self.global),
            _ => None,
        }
    }
}

/// A kernel in one mode, as multiples of the original.
struct Cost {
    mode: String,
    instructions: f64,
    cycles: f64,
    wave_cycles: f64,
    /// The same of the rewritten kernel while its counters' buffer is null.
    off_cycles: f64,
    off_wave_cycles: f64,
    /// Waves per SIMD that its registers and LDS allow.
    occupancy: u64,
}

/// A kernel of the original run, and what it costs.
struct Kernel {
    name: String,
    dispatches: u64,
    waves: u64,
    sites: usize,
    executions_per_wave: f64,
    instructions_per_wave: f64,
    occupancy: u64,
    costs: Vec<Cost>,
}

fn number(value: &Value, pointer: &str) -> Result<u64, Failure> {
    value.pointer(pointer).and_then(Value::as_u64).ok_or_else(|| format!("the report has no number {pointer}"))
}

fn list<'v>(value: &'v Value, pointer: &str) -> Result<&'v [Value], Failure> {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).ok_or_else(|| format!("no list {pointer}"))
}

fn text<'v>(value: &'v Value, pointer: &str) -> Result<&'v str, Failure> {
    value.pointer(pointer).and_then(Value::as_str).ok_or_else(|| format!("no text {pointer}"))
}

fn read(path: &Path) -> Result<Value, Failure> {
    let json = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_slice(&json).map_err(|error| format!("{}: {error}", path.display()))
}

/// Runs `wavetap` in `folder`; it must end with 0.
fn wavetap(folder: &Path, args: &[&str]) -> Result<(), Failure> {
    command::run(&command::wavetap()?, args, &[], folder)?.exited(0).map(drop)
}

/// The modes that `compare --modes` names.
fn modes(folder: &Path) -> Result<Vec<String>, Failure> {
    let said = command::run(&command::wavetap()?, &["compare", "--modes", "?", "--", "app"], &[], folder)?;
    let said = said.exited(2)?.err();
    let named = said.split_once("[possible values: ").and_then(|(_, rest)| rest.split_once(']'));
    let (named, _) = named.ok_or_else(|| format!("compare does not say which modes there are:\n{said}"))?;
    Ok(named.split(", ").filter(|mode| *mode != CHOICE).map(str::to_owned).collect())
}

/// The modelled time of a rewritten program that runs with a null buffer: nothing collects its counts.
fn switched_off(folder: &Path, program: &str, mode: &str, target: &str) -> Result<Value, Failure> {
    let input = place::root().join("hip-samples/nine/bin").join(program).display().to_string();
    let rewritten = format!("{program}.{mode}.{target}");
    wavetap(
        folder,
        &["rewrite", &input, "-o", &rewritten, "--probe", "branches", "--counters", mode, "--target", target],
    )?;
    let (report, itself) = (format!("{rewritten}.json"), format!("./{rewritten}"));
    wavetap(folder, &["run", "--timing", "--format", "json", "--report", &report, "--target", target, "--", &itself])?;
    read(&folder.join(report))
}

/// The kernels of a program on a target.
fn measure(folder: &Path, program: &str, target: &str, modes: &[String]) -> Result<Vec<Kernel>, Failure> {
    let file = place::root().join("hip-samples/nine/bin").join(program).display().to_string();
    let (report, joined) = (format!("{program}.{target}.json"), modes.join(","));
    let mut args = vec!["compare", "--timing", "--format", "json", "--report", &report, "--modes", &joined];
    args.extend(["--target", target, "--", &file]);
    wavetap(folder, &args)?;
    let compare = read(&folder.join(&report))?;
    for promise in ["/same_counts", "/exact", "/same_output", "/checked_against_trace"] {
        if compare.pointer(promise) != Some(&Value::Bool(true)) {
            return Err(format!("{program} on {target}: {promise} is not so"));
        }
    }
    let off =
        modes.iter().map(|mode| switched_off(folder, program, mode, target)).collect::<Result<Vec<_>, Failure>>()?;
    list(&compare, "/kernels")?.iter().map(|kernel| kernel_of(kernel, &off)).collect()
}

fn kernel_of(kernel: &Value, off: &[Value]) -> Result<Kernel, Failure> {
    let demangled = text(kernel, "/demangled")?;
    let ratio =
        |found: u64, pointer: &str| -> Result<f64, Failure> { Ok(found as f64 / number(kernel, pointer)? as f64) };
    let mut costs = Vec::new();
    for (mode, off) in list(kernel, "/modes")?.iter().zip(off) {
        let off = list(off, "/kernels")?.iter().find(|other| other["name"] == kernel["name"]);
        let off = off.ok_or_else(|| format!("{demangled} did not run while it was switched off"))?;
        costs.push(Cost {
            mode: text(mode, "/mode")?.to_owned(),
            instructions: ratio(number(&mode["work"], "/instructions")?, "/original_work/instructions")?,
            cycles: ratio(number(mode, "/time/modelled_cycles")?, "/original_time/modelled_cycles")?,
            wave_cycles: ratio(number(mode, "/time/modelled_wave_cycles")?, "/original_time/modelled_wave_cycles")?,
            off_cycles: ratio(number(off, "/modelled_cycles")?, "/original_time/modelled_cycles")?,
            off_wave_cycles: ratio(number(off, "/modelled_wave_cycles")?, "/original_time/modelled_wave_cycles")?,
            occupancy: number(mode, "/after/waves_per_simd")?,
        });
    }
    let (waves, branches) = (number(kernel, "/waves")?, list(kernel, "/branches")?);
    let executions = branches.iter().map(|branch| number(branch, "/executions")).sum::<Result<u64, Failure>>()?;
    Ok(Kernel {
        name: demangled.split('(').next().unwrap_or_default().to_owned(),
        dispatches: number(kernel, "/dispatches")?,
        waves,
        sites: branches.len(),
        executions_per_wave: executions as f64 / waves as f64,
        instructions_per_wave: number(kernel, "/original_work/instructions")? as f64 / waves as f64,
        occupancy: number(kernel, "/before/waves_per_simd")?,
        costs,
    })
}

fn geomean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value.ln(), count + 1));
    (sum / f64::from(count)).exp()
}

/// One line of what a mode costs: ratios in the order of the heading.
fn cost_line(mode: &str, ratios: [f64; 5], talk: Option<f64>, occupancy: &str) -> String {
    let [instructions, cycles, wave_cycles, off_cycles, off_wave_cycles] = ratios;
    let talk = talk.map_or_else(|| "-".to_owned(), |talk| format!("{talk:.2}"));
    format!(
        "{mode:<9}{instructions:>8.2}{cycles:>8.3}{wave_cycles:>8.3}{off_cycles:>8.3}{off_wave_cycles:>8.3}{talk:>7}  \
            {occupancy}"
    )
}

fn print(target: &str, kernels: &[Kernel], modes: &[String]) {
    println!("\n{target}: multiples of the original; cycles are modelled, the talk's slowdowns were measured");
    println!(
        "{:17}{:>10}{:>6}{:>6}{:>11}{:>13}  {:<9}{:>8}{:>8}{:>8}{:>16}{:>7}  waves/SIMD",
        "kernel",
        "dispatches",
        "waves",
        "sites",
        "executions",
        "instructions",
        "mode",
        "instr.",
        "cycles",
        "wave c.",
        "off: both",
        "talk"
    );
    for kernel in kernels {
        let mut facts = format!(
            "{:17}{:>10}{:>6}{:>6}{:>8.1} /w{:>10.0} /w",
            kernel.name,
            kernel.dispatches,
            kernel.waves,
            kernel.sites,
            kernel.executions_per_wave,
            kernel.instructions_per_wave
        );
        for cost in &kernel.costs {
            let occupancy = match cost.occupancy == kernel.occupancy {
                true => cost.occupancy.to_string(),
                false => format!("{} of {}", cost.occupancy, kernel.occupancy),
            };
            let talk = Talk::of(&kernel.name).and_then(|talk| talk.slowdown(&cost.mode));
            println!("{facts}  {}", cost_line(&cost.mode, ratios(cost), talk, &occupancy));
            facts = " ".repeat(facts.len());
        }
    }
    for mode in modes.iter().filter(|_| !kernels.is_empty()) {
        let costs = || {
            let compared = kernels.iter().filter(|kernel| Talk::of(&kernel.name).is_some());
            compared.flat_map(|kernel| &kernel.costs).filter(|cost| cost.mode == *mode).map(ratios)
        };
        let means = std::array::from_fn(|at| geomean(costs().map(|ratios| ratios[at])));
        let talk: Vec<f64> = TALK.iter().filter_map(|talk| talk.slowdown(mode)).collect();
        // Beside a mean of the same kernels only.
        let count = costs().count();
        let talk = (talk.len() == count).then(|| geomean(talk.into_iter()));
        let name = format!("geomean of {count}");
        println!("{name:63}  {}", cost_line(mode, means, talk, "").trim_end());
    }
}

fn ratios(cost: &Cost) -> [f64; 5] {
    [cost.instructions, cost.cycles, cost.wave_cycles, cost.off_cycles, cost.off_wave_cycles]
}

/// What a probe costs on a target: of each kernel of a program its name and multiples of the original: modelled cycles,
/// modelled wave cycles.
fn measure_probe(folder: &Path, program: &str, target: &str, probe: &str) -> Result<Vec<(String, [f64; 2])>, Failure> {
    let file = place::root().join("hip-samples/nine/bin").join(program).display().to_string();
    let (rewritten, profile) = (format!("{program}.{probe}.{target}"), format!("{program}.{probe}.{target}.profile"));
    wavetap(folder, &["rewrite", &file, "-o", &rewritten, "--probe", probe, "--target", target])?;
    let time = |program: &str, report: &str, more: &[&str]| {
        let mut args = vec!["run", "--timing", "--force", "--format", "json", "--report", report, "--target", target];
        args.extend(more);
        args.extend(["--", program]);
        wavetap(folder, &args)?;
        read(&folder.join(report))
    };
    let original = time(&file, "original.json", &[])?;
    let counted = time(&format!("./{rewritten}"), "probe.json", &["-o", &profile])?;
    let collected = read_profile(folder, &profile)?;
    let mut costs = Vec::new();
    for kernel in list(&original, "/kernels")? {
        let demangled = text(kernel, "/demangled")?;
        let same = |other: &&Value| other["name"] == kernel["name"];
        let other = list(&counted, "/kernels")?.iter().find(same).ok_or_else(|| format!("{demangled} did not run"))?;
        if !list(&collected, "/kernels")?.iter().any(|collected| same(&collected)) {
            return Err(format!("{demangled}: nothing was counted"));
        }
        let ratio =
            |pointer| -> Result<f64, Failure> { Ok(number(other, pointer)? as f64 / number(kernel, pointer)? as f64) };
        let name = demangled.split('(').next().unwrap_or_default().to_owned();
        costs.push((name, [ratio("/modelled_cycles")?, ratio("/modelled_wave_cycles")?]));
    }
    Ok(costs)
}

/// A profile as the command reports it.
fn read_profile(folder: &Path, profile: &str) -> Result<Value, Failure> {
    let report = format!("{profile}.json");
    wavetap(folder, &["report", profile, "--format", "json", "--report", &report, "--force"])?;
    read(&folder.join(report))
}

fn print_probe(probe: &str, target: &str, costs: &[(String, [f64; 2])]) {
    println!("\n{target}, --probe {probe}: modelled cycles and wave cycles, multiples of the original");
    for (name, [cycles, wave_cycles]) in costs {
        println!("{name:17}{cycles:>8.2}{wave_cycles:>8.2}");
    }
    let known: Vec<_> = costs.iter().filter(|(name, _)| Talk::of(name).is_some()).collect();
    let mean = |at: usize| geomean(known.iter().map(|(_, ratios)| ratios[at]));
    println!("{:17}{:>8.2}{:>8.2}", format!("geomean of {}", known.len()), mean(0), mean(1));
}

/// The targets and programs that the arguments name, or all.
struct Chosen {
    probe: Option<String>,
    targets: Vec<&'static str>,
    programs: Vec<&'static str>,
}

impl Chosen {
    fn of(mut arguments: impl Iterator<Item = String>) -> Result<Chosen, Failure> {
        let (mut targets, mut programs, mut probe) = (Vec::new(), Vec::new(), None);
        while let Some(argument) = arguments.next() {
            let (chosen, known) = match argument.as_str() {
                // Cargo's own.
                "--bench" => continue,
                "--probe" => {
                    probe = Some(arguments.next().ok_or("--probe needs a name")?);
                    continue;
                }
                "--target" => (&mut targets, &PROBED[..]),
                "--program" => (&mut programs, &PROGRAMS[..]),
                other => return Err(format!("{other}: there are --target GFX, --program NAME and --probe PROBE")),
            };
            let named = arguments.next().and_then(|named| known.iter().find(|known| **known == named));
            chosen.push(*named.ok_or_else(|| format!("{argument} needs one of {}", known.join(", ")))?);
        }
        let all_if_none = |chosen: Vec<_>, known: &[_]| if chosen.is_empty() { known.to_vec() } else { chosen };
        let usual = if probe.is_some() { &PROBED[..1] } else { &TARGETS };
        let (targets, programs) = (all_if_none(targets, usual), all_if_none(programs, &PROGRAMS));
        Ok(Chosen { probe, targets, programs })
    }
}

fn all(chosen: &Chosen) -> Result<(), Failure> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    if let Some(probe) = &chosen.probe {
        for target in &chosen.targets {
            let measured = |program: &&str| measure_probe(folder.path(), program, target, probe);
            let costs = chosen.programs.iter().map(measured).collect::<Result<Vec<_>, Failure>>()?;
            print_probe(probe, target, &costs.concat());
        }
        return Ok(());
    }
    let modes = modes(folder.path())?;
    let mut failures = Vec::new();
    for target in &chosen.targets {
        let mut kernels = Vec::new();
        for program in &chosen.programs {
            match measure(folder.path(), program, target, &modes) {
                Ok(measured) => kernels.extend(measured),
                Err(failure) => failures.push(failure),
            }
        }
        print(target, &kernels, &modes);
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

fn main() -> ExitCode {
    let chosen = match Chosen::of(std::env::args().skip(1)) {
        Ok(chosen) => chosen,
        Err(usage) => {
            eprintln!("nine: {usage}");
            return ExitCode::from(2);
        }
    };
    match all(&chosen) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("nine: {failure}");
            ExitCode::FAILURE
        }
    }
}
