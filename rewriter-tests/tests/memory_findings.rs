//! What is found in the accesses that programs make, against `hip-samples/memory/findings.yaml`, which was written
//! before: every finding that is listed is there, and no other, those of small shares and notes among them. Kernels
//! with which nothing is wrong have none.
//!
//! Kernels run on the emulator, which records every access. What is found in all workgroups is compared, and what is
//! found in some: the first with those beside it, one in the middle, the last, and one of 64. Of accesses whose lines
//! the static analysis knows, the lines that were recorded are compared with these.
//!
//! `WAVETAP_KERNEL=gemm` takes kernels with this in their name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::{Failed, Trial};
use rewriter_tests::Failure;
use rewriter_tests::kernels::launch::{LaunchSizes, kernarg_with};
use rewriter_tests::tally::{Tallies, Tally};
use serde::Deserialize;
use wavetap::cfg::{Cfg, Program};
use wavetap::code_object::{CodeObject, Kernel, ValueKind, demangle, digest};
use wavetap::dataflow::{Definitions, Summaries};
use wavetap::emulator::{AccessRecord, AccessedMemory, Device, Dispatch, Options};
use wavetap::isa::Target;
use wavetap::kernel::Image;
use wavetap::memory::{
    Access, Accesses, Allocation, Analysis, Array, Launched, Recorded, RecordedGrid, RecordedKernel, Site, Space,
    WaveAccesses, WorkgroupSource, findings, pointers,
};
use wavetap::offload_bundle::Input;
use wavetap::pipeline::{self, KernelRecords, MemoryInputs, Selection};
use wavetap::report;
use wavetap::report::text::Style;

/// Room for the accesses of any of the kernels.
const MOST_RECORDS: usize = 1 << 22;
/// Besides the first, the middle and the last, one workgroup of so many is in a sample.
const SAMPLED: u64 = 64;
/// Targets, and what the expectations call their machines.
const TARGETS: [(&str, &str); 4] =
    [("gfx90a", "64/64"), ("gfx942", "64/128"), ("gfx1030", "32/128"), ("gfx1100", "32/128")];

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expectations {
    schema: String,
    kernels: Vec<ExpectedKernel>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedKernel {
    kernel: String,
    /// With which data, where a kernel runs with several.
    note: Option<String>,
    program: String,
    grid: [u32; 3],
    workgroup: [u16; 3],
    arguments: Vec<Argument>,
    findings: Vec<Expected>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Argument {
    floats: Option<usize>,
    whole: Option<usize>,
    #[serde(rename = "as")]
    pattern: Option<Pattern>,
    of: Option<u32>,
    value: Option<u32>,
}

/// What an array of whole numbers holds.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Pattern {
    /// Any numbers below another.
    Scattered,
    /// Others of these.
    ScatteredToo,
    /// Multiples of a number, modulo the count.
    Multiples,
    /// Each number twice, from 0 on.
    Pairs,
    /// From 0 to a number, again and again.
    Rows,
    /// The same, 32 further in each round.
    Diagonals,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    kind: String,
    of: String,
    /// All machines, if it does not say.
    on: Option<Vec<String>>,
}

/// Accesses of which the code says how many lines or cycles of LDS they are.
#[derive(Debug, Default)]
struct Compared(u64);

static TALLIES: Tallies<Compared> = Tallies::new();

impl Tally for Compared {
    fn add(&mut self, other: Compared) {
        self.0 += other.0;
    }
}

/// A kind of finding, and what it is of.
type Key = (String, String);

fn main() -> ExitCode {
    TALLIES.run(trials(), |tallies| {
        for (target, Compared(accesses)) in tallies {
            println!("{target}: {accesses} accesses compared with what the code says");
        }
        Ok(())
    })
}

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../hip-samples/memory")
}

fn trials() -> Result<Vec<Trial>, Failure> {
    let text = std::fs::read_to_string(folder().join("findings.yaml")).map_err(|e| e.to_string())?;
    let expected: Expectations = serde_yaml::from_str(&text).map_err(|e| e.to_string())?;
    if expected.schema != "wavetap.memory-findings/1" {
        return Err(format!("the schema is {}", expected.schema));
    }
    let only = std::env::var("WAVETAP_KERNEL").unwrap_or_default();
    let mut trials = Vec::new();
    for kernel in expected.kernels.into_iter().filter(|kernel| kernel.kernel.contains(&only)) {
        for (target, machine) in TARGETS {
            let kernel = kernel.clone();
            let note = kernel.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
            let name = format!("{}{note} on {target}", kernel.kernel);
            trials.push(Trial::test(name, move || run(&kernel, target, machine).map_err(Failed::from)));
        }
    }
    Ok(trials)
}

fn run(expected: &ExpectedKernel, target: &str, machine: &str) -> Result<(), Failure> {
    let file = std::fs::read(folder().join("bin").join(&expected.program)).map_err(|e| e.to_string())?;
    let input = Input::parse(&file).map_err(|e| e.to_string())?;
    let target = Target::by_name(target).ok_or("no such target")?;
    let of_target = input.code_objects().find(|found| {
        CodeObject::parse(found.bytes)
            .is_ok_and(|code| code.target().is_some_and(|of_code| of_code.name() == target.name()))
    });
    let object = of_target.ok_or("no code for the target")?.bytes;
    let ran = Ran::new(object, target, expected)?;
    let mut wrong = ran.against_code();
    wrong.extend(ran.against_report(&file, object, expected)?);
    wrong.extend(compare(&ran.recorded, expected, machine).into_iter().map(|what| format!("all: {what}")));
    let sample = sample(&ran.recorded, expected);
    wrong.extend(compare(&sample, expected, machine).into_iter().map(|what| format!("sample: {what}")));
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// A kernel that has run.
struct Ran {
    recorded: RecordedKernel,
    /// What the code says of its accesses, by address.
    known: BTreeMap<u64, Site>,
    /// Its mangled name.
    name: String,
}

impl Ran {
    fn new(object: &[u8], target: Target, expected: &ExpectedKernel) -> Result<Ran, Failure> {
        let text = |e: wavetap::error::Error| e.to_string();
        let code = CodeObject::parse(object).map_err(text)?;
        let named = |kernel: &&Kernel| {
            let name = demangle(&kernel.name);
            let name = name.split_once('(').map_or(name.as_ref(), |(name, _)| name);
            name.strip_prefix("void ").unwrap_or(name) == expected.kernel
        };
        let kernel = code.kernels().iter().find(named).ok_or_else(|| format!("no kernel {}", expected.kernel))?;
        let metadata = kernel.metadata.as_ref().ok_or("no metadata")?;
        let mut device =
            Device::new(target, Options { strict: false, accesses: MOST_RECORDS, threads: 1, ..Options::default() });
        let loaded = device.load(object).map_err(text)?;
        let mut allocations = Vec::new();
        let mut arguments = expected.arguments.iter();
        let sizes = LaunchSizes { grid: expected.grid, group: expected.workgroup, dynamic: 0 };
        let bytes = kernarg_with(kernel, &sizes, |kind| {
            let argument = arguments.next().ok_or("more arguments than are given")?;
            match (kind, argument.value) {
                (ValueKind::ByValue, Some(value)) => Ok(value.to_le_bytes().to_vec()),
                (ValueKind::GlobalBuffer, None) => {
                    let contents = argument.contents()?;
                    let base = device.malloc(contents.len() as u64, 256).map_err(text)?;
                    device.write(base, &contents).map_err(text)?;
                    let ordinal = allocations.len() as u32;
                    let name = Some(format!("argument {}", ordinal + 1));
                    allocations.push(Allocation { base, size: contents.len() as u64, ordinal, name });
                    Ok(base.to_le_bytes().to_vec())
                }
                _ => Err(format!("{argument:?} is given for {kind:?}")),
            }
        })?;
        let kernarg_address = device.malloc(bytes.len() as u64, 256).map_err(text)?;
        device.write(kernarg_address, &bytes).map_err(text)?;
        let dispatch = Dispatch {
            kernel_object: loaded.kernel(&kernel.name).ok_or("the descriptor is not loaded")?,
            grid: expected.grid,
            workgroup: expected.workgroup,
            private_segment_size: metadata.private_segment_fixed_size as u32,
            group_segment_size: metadata.group_segment_fixed_size as u32,
            kernarg_address,
            dispatch_id: 0,
        };
        let stats = device.dispatch(&dispatch).map_err(|fault| fault.to_string())?;
        if stats.accesses.dropped > 0 || stats.accesses.records.is_empty() {
            let recorded = &stats.accesses;
            return Err(format!("{} accesses, no room for {}", recorded.records.len(), recorded.dropped));
        }
        allocations.sort_by_key(|allocation| allocation.base);
        let image = Image::of(&code).map_err(text)?;
        let program = Program::of(target, &image);
        let summaries = Summaries::compute(&program);
        let body = program.body(program.by_name(&kernel.name).ok_or("no code of the kernel")?);
        let cfg = Cfg::build(body);
        let definitions = Definitions::new(body, &cfg, &summaries);
        let accesses = Accesses::of(body, &definitions, pointers(Some(kernel)));
        let by_address: BTreeMap<u64, Access> =
            accesses.all().iter().map(|access| (body.address(access.inst), *access)).collect();
        let records = stats.accesses.records.iter().map(|record| {
            let address = record.place.address;
            let access = by_address.get(&address).ok_or_else(|| format!("{address:#x} is no access"))?;
            Ok(recorded(record, access))
        });
        let mut launched = Launched::of(Some(kernel), None);
        (launched.workgroup, launched.source) = (expected.workgroup.map(u32::from), WorkgroupSource::Given);
        let mut waves = WaveAccesses::new(&accesses, &launched);
        let of_code: Vec<Site> = accesses.all().iter().map(|access| waves.site(access)).collect();
        let work_items: u32 = expected.workgroup.iter().map(|size| u32::from(*size)).product();
        let recorded = RecordedKernel {
            target: body.target(),
            waves: work_items.div_ceil(body.target().wave_size()),
            grids: BTreeMap::from([(0, grid(expected, |_| true))]),
            workgroups: workgroups(expected).iter().map(|count| u64::from(*count)).product(),
            records: records.collect::<Result<_, Failure>>()?,
            dropped: BTreeMap::new(),
            unresolved: 0,
            allocations,
        };
        let known = of_code.into_iter().map(|site| (body.address(site.access.inst), site)).collect();
        Ok(Ran { recorded, known, name: kernel.name.clone() })
    }

    /// What was recorded of instructions that is not as the code says.
    fn against_code(&self) -> Vec<String> {
        let analysis = Analysis::of(&self.recorded);
        let (mut compared, mut wrong) = (0, Vec::new());
        for measured in &analysis.measured {
            let Some(site) = self.known.get(&measured.address) else { continue };
            let as_predicted = analysis.as_predicted(measured, site);
            compared += u64::from(as_predicted.is_some());
            if as_predicted == Some(false) {
                wrong.push(format!("not as the code says: {measured:?}, {site:?}"));
            }
        }
        TALLIES.add(self.recorded.target.name(), Compared(compared));
        wrong
    }
}

impl Ran {
    /// What the report says of it: each instruction that accessed something has its numbers, and no finding is
    /// missing.
    fn against_report(&self, file: &[u8], object: &[u8], expected: &ExpectedKernel) -> Result<Vec<String>, Failure> {
        let analysis = Analysis::of(&self.recorded);
        let records =
            [KernelRecords { object: digest(object), kernel: self.name.clone(), recorded: self.recorded.clone() }];
        let selection =
            Selection { kernels: vec![expected.kernel.clone()], targets: vec![self.recorded.target.name().to_owned()] };
        let workgroup = Some(expected.workgroup.map(u32::from));
        let inputs = MemoryInputs { workgroup, records: &records, ..MemoryInputs::default() };
        let report = pipeline::memory(file, &selection, inputs).map_err(|e| e.to_string())?;
        let [kernel] = report.kernels.as_slice() else {
            return Err(format!("{} kernels are {}", report.kernels.len(), expected.kernel));
        };
        let recorded = kernel.recorded.as_ref().ok_or("the report has nothing of what was recorded")?;
        let mut wrong = Vec::new();
        let mut check = |what: &str, found: u64, expected: u64| {
            if found != expected {
                wrong.push(format!("report: {found} {what}, not {expected}"));
            }
        };
        check("findings", recorded.findings.len() as u64, findings(&analysis).len() as u64);
        let measured = || kernel.accesses.iter().flat_map(|access| &access.measured);
        check("executions", measured().map(|of| of.executions).sum(), self.recorded.records.len() as u64);
        let excess = analysis.measured.iter().map(wavetap::memory::Measured::excess).sum();
        check("lines and cycles too many", measured().map(|of| of.excess).sum(), excess);
        let text = report::memory::render(&report, Style::default());
        let listed = recorded.findings.iter().filter(|finding| !finding.folded).count();
        let shown = recorded.findings.iter().filter(|finding| {
            let Some(site) = finding.sites.first().filter(|_| !finding.folded) else { return false };
            let (share, address) = (format!("{:.1} %", 100.0 * finding.share), format!("{:#x}", site.address));
            text.lines().any(|line| line.trim_start().starts_with(&share) && line.contains(&address))
        });
        check("findings in the text", shown.count() as u64, listed as u64);
        Ok(wrong)
    }
}

fn workgroups(expected: &ExpectedKernel) -> [u32; 3] {
    std::array::from_fn(|axis| expected.grid[axis].div_ceil(expected.workgroup[axis].into()))
}

impl Argument {
    fn contents(&self) -> Result<Vec<u8>, Failure> {
        if let Some(floats) = self.floats {
            return Ok((0..floats).flat_map(|i| (i as f32 % 7.0 + 1.0).to_le_bytes()).collect());
        }
        let count = self.whole.ok_or("an argument is nothing")?;
        let of = self.of.unwrap_or(u32::MAX);
        let number = |i: u32| match self.pattern {
            None => i % 1000,
            Some(Pattern::Scattered) => scattered(i) % of,
            Some(Pattern::ScatteredToo) => scattered(!i) % of,
            Some(Pattern::Multiples) => i * of % count as u32,
            Some(Pattern::Pairs) => i / 2 % of,
            Some(Pattern::Rows) => i % of,
            Some(Pattern::Diagonals) => (i % of + 32 * (i / of)) % of,
        };
        Ok((0..count as u32).flat_map(|i| number(i).to_le_bytes()).collect())
    }
}

/// Numbers without a pattern.
fn scattered(number: u32) -> u32 {
    let mut x = u64::from(number).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (x >> 33) as u32
}

fn recorded(record: &AccessRecord, access: &Access) -> Recorded {
    Recorded {
        address: record.place.address,
        dispatch: 0,
        workgroup: record.workgroup,
        wave: record.wave,
        space: match record.memory {
            AccessedMemory::Global => Space::Global,
            AccessedMemory::Lds => Space::Lds,
            AccessedMemory::Scratch => Space::Scratch,
        },
        operation: access.operation,
        bytes: record.bytes,
        lanes: record.lanes,
        addresses: record.addresses.clone(),
    }
}

/// The first workgroup and those beside it, the one in the middle, the last, and one of [`SAMPLED`].
fn sample(all: &RecordedKernel, expected: &ExpectedKernel) -> RecordedKernel {
    let [x, y, _] = workgroups(expected).map(u64::from);
    let is_sampled = |workgroup: [u32; 3]| {
        let [of_x, of_y, of_z] = workgroup.map(u64::from);
        let number = of_x + x * (of_y + y * of_z);
        let is_beside_first = of_x + of_y + of_z == 1;
        let is_middle_or_last = number == all.workgroups / 2 || number + 1 == all.workgroups;
        is_beside_first || is_middle_or_last || number.is_multiple_of(SAMPLED)
    };
    let records = all.records.iter().filter(|record| is_sampled(record.workgroup)).cloned().collect();
    RecordedKernel { records, grids: BTreeMap::from([(0, grid(expected, is_sampled))]), ..all.clone() }
}

/// The workgroups of a kernel, of which these are recorded.
fn grid(expected: &ExpectedKernel, is_recorded: impl Fn([u32; 3]) -> bool) -> RecordedGrid {
    let [x, y, z] = workgroups(expected);
    let all = (0..z).flat_map(|z| (0..y).flat_map(move |y| (0..x).map(move |x| [x, y, z])));
    RecordedGrid { workgroups: [x, y, z], recorded: all.filter(|workgroup| is_recorded(*workgroup)).collect() }
}

fn compare(recorded: &RecordedKernel, expected: &ExpectedKernel, machine: &str) -> Vec<String> {
    let on_machine = |finding: &&Expected| finding.on.as_ref().is_none_or(|on| on.iter().any(|of| of == machine));
    let key = |finding: &Expected| (finding.kind.clone(), finding.of.clone());
    let wanted: BTreeSet<Key> = expected.findings.iter().filter(on_machine).map(key).collect();
    let analysis = Analysis::of(recorded);
    let found = findings(&analysis);
    let name = |array: Option<Array>| match array {
        Some(Array::Allocation(index)) => recorded.allocations[index].name.clone().unwrap_or_default(),
        Some(Array::Lds(_)) => "LDS".to_owned(),
        Some(Array::Elsewhere) | None => "elsewhere".to_owned(),
    };
    let mut wrong = Vec::new();
    let mut keys: BTreeSet<Key> = BTreeSet::new();
    for finding in &found {
        let kind = serde_json::to_value(finding.kind).ok();
        let kind = kind.as_ref().and_then(|kind| kind.as_str()).unwrap_or_default().to_owned();
        let key = (kind, name(finding.array));
        if !wanted.contains(&key) {
            wrong.push(format!("found, not expected: {finding:?}"));
        }
        keys.insert(key);
    }
    wrong.extend(wanted.difference(&keys).map(|(kind, of)| format!("expected, not found: {kind} of {of}")));
    wrong
}
