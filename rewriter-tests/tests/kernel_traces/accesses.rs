//! What the static analysis says of the lanes' addresses, compared with the addresses that the emulator sees: for every
//! access that it knows, the lanes lie to each other as it says, and lines and cycles of LDS are what it says. What is
//! unknown is printed, by target.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use libtest_mimic::{Failed, Trial};
use rewriter_tests::Failure;
use rewriter_tests::kernels::Test;
use rewriter_tests::tally;
use serde::Deserialize;
use serde_yaml::Value;
use wavetap::cfg::Cfg;
use wavetap::code_object::{CodeObject, Field};
use wavetap::dataflow::{Definitions, Summaries, WaveShape};
use wavetap::emulator::{AccessRecord, AccessedMemory};
use wavetap::isa::{LdsOperation, Target};
use wavetap::kernel::Body;
use wavetap::memory::{Access, Accesses, Category, Operation, Place, Space, Unknown, count_lines, pointers};
use wavetap::pipeline::{self, MemoryInputs, Selection};
use wavetap::report;
use wavetap::report::memory::MemoryAccess;

/// Records of a dispatch that are compared.
const MOST_RECORDS: usize = 50_000;

/// Of the accesses of a target.
#[derive(Debug, Default)]
pub struct Tally {
    /// In the code, by memory and category.
    static_accesses: BTreeMap<(Space, Category, Option<Unknown>), u64>,
    /// Executions of waves that were compared, and those of accesses that are unknown.
    compared: u64,
    unknown: u64,
    /// Executions whose lines were known, not only their bounds; and those in LDS whose cycles were.
    exact: u64,
    banks: u64,
}

/// Prints what was compared, by way of compiling, and says whether that is enough.
pub fn judge<'t>(tallies: impl Iterator<Item = (&'t String, &'t Tally)> + Clone) -> Result<(), Failure> {
    for (way, tally) in tallies.clone() {
        println!(
            "{way}: {} executions compared ({} with exact lines, {} with cycles of LDS), {} unknown",
            tally.compared, tally.exact, tally.banks, tally.unknown
        );
        let by_space = |space| {
            let of = tally.static_accesses.iter().filter(move |((other, ..), _)| *other == space);
            let text = |(_, category, why): &(Space, Category, Option<Unknown>)| match why {
                Some(why) => format!("{category:?} ({why:?})"),
                None => format!("{category:?}"),
            };
            of.map(|(key, count)| format!("{} {count}", text(key))).collect::<Vec<_>>().join(", ")
        };
        for space in [Space::Global, Space::Flat, Space::Buffer, Space::Scratch, Space::Lds] {
            println!("    {space:?}: {}", by_space(space));
        }
    }
    let mut compared = tallies.map(|(_, tally)| tally.compared).peekable();
    if compared.peek().is_some() && compared.all(|compared| compared == 0) {
        return Err("nothing was compared".to_owned());
    }
    Ok(())
}

/// What is said of a program on several targets.
pub fn trials() -> impl Iterator<Item = Trial> {
    ["gfx90a", "gfx942", "gfx1030", "gfx1100"]
        .into_iter()
        .map(|target| Trial::test(format!("verdicts on {target}"), move || verdicts(target).map_err(Failed::from)))
}

/// What `hip-samples/memory/expected.yaml` says of an access.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    operation: String,
    of: Option<String>,
    category: Option<Value>,
    severity: Value,
    stride: Option<i64>,
    lines: Option<BTreeMap<String, [f64; 2]>>,
    conflicts: Option<BTreeMap<String, f64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedKernel {
    kernel: String,
    workgroup: [u32; 3],
    accesses: Vec<Expected>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expectations {
    schema: String,
    kernels: Vec<ExpectedKernel>,
}

/// What is said of the accesses of a program, against what was written down before.
fn verdicts(target: &str) -> Result<(), Failure> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hip-samples/memory");
    let text = std::fs::read_to_string(folder.join("expected.yaml")).map_err(|e| e.to_string())?;
    let expected: Expectations = serde_yaml::from_str(&text).map_err(|e| e.to_string())?;
    if expected.schema != "wavetap.memory-expectations/1" {
        return Err(format!("the schema is {}", expected.schema));
    }
    let program = std::fs::read(folder.join("bin/accesses")).map_err(|e| e.to_string())?;
    let mut wrong = Vec::new();
    for kernel in &expected.kernels {
        let selection = Selection { kernels: vec![kernel.kernel.clone()], targets: vec![target.to_owned()] };
        let inputs = MemoryInputs { workgroup: Some(kernel.workgroup), ..MemoryInputs::default() };
        let report = pipeline::memory(&program, &selection, inputs).map_err(|e| e.to_string())?;
        let [found] = report.kernels.as_slice() else {
            return Err(format!("{} kernels are {}", report.kernels.len(), kernel.kernel));
        };
        for expected in &kernel.accesses {
            let accesses = found.accesses.iter().filter(|access| {
                let of = if access.space == report::memory::Space::Lds { Some("LDS") } else { access.array.as_deref() };
                access.space != report::memory::Space::Scalar
                    && word(&access.operation) == expected.operation
                    && of == expected.of.as_deref()
            });
            let accesses: Vec<&MemoryAccess> = accesses.collect();
            if accesses.is_empty() {
                wrong.push(format!("{}: no {} of {:?}", kernel.kernel, expected.operation, expected.of));
            }
            for access in accesses {
                wrong.extend(differences(expected, access, target).map(|what| format!("{}: {what}", kernel.kernel)));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// A word of JSON.
fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// What is said of an access that was not expected.
fn differences(expected: &Expected, access: &MemoryAccess, target: &str) -> Option<String> {
    let machine = match target {
        "gfx90a" => "64/64",
        "gfx942" => "64/128",
        _ => "32/128",
    };
    let named = |value: &Value| match value {
        Value::Mapping(words) => words.get(machine).and_then(Value::as_str).map(str::to_owned),
        word => word.as_str().map(str::to_owned),
    };
    let mut wrong = Vec::new();
    let mut check = |what: &str, expected: Option<String>, found: String| {
        if expected.as_ref().is_some_and(|expected| *expected != found) {
            wrong.push(format!("{what} {found}, not {}", expected.unwrap_or_default()));
        }
    };
    check("category", expected.category.as_ref().and_then(named), word(&access.category));
    check("severity", named(&expected.severity), word(&access.severity));
    check("stride", expected.stride.map(|stride| format!("{stride:?}")), format!("{:?}", access.stride.unwrap_or(0)));
    let lines = expected.lines.as_ref().and_then(|lines| lines.get(machine));
    let found = access.lines.map(|lines| [lines.likely, lines.ideal]);
    check("lines", lines.map(|lines| format!("{lines:?}")), format!("{:?}", found.unwrap_or_default()));
    let conflicts = expected.conflicts.as_ref().and_then(|conflicts| conflicts.get(machine));
    let found = access.lds.map(|lds| lds.conflicts);
    check("conflicts", conflicts.map(|conflicts| format!("{conflicts:?}")), format!("{:?}", found.unwrap_or(-1.0)));
    (!wrong.is_empty()).then(|| format!("{:#x} {}: {}", access.address, access.instruction, wrong.join(", ")))
}

impl tally::Tally for Tally {
    fn add(&mut self, other: Tally) {
        tally::add_counts(&mut self.static_accesses, other.static_accesses);
        self.compared += other.compared;
        self.unknown += other.unknown;
        self.exact += other.exact;
        self.banks += other.banks;
    }
}

/// A kernel.
pub struct Subject<'a> {
    /// The object.
    pub code: &'a CodeObject<'a>,
    /// The kernel's code.
    pub body: &'a Body,
    /// What the object's functions do.
    pub summaries: &'a Summaries,
    /// How it is launched.
    pub test: &'a Test,
}

impl Subject<'_> {
    /// Compares what was seen with what is said; gives what differs, the first of each access.
    pub fn compare(&self, records: &[AccessRecord], tally: &mut Tally) -> Vec<String> {
        let kernel = self.code.kernel(&self.test.name);
        let given = kernel.map_or(3, |kernel| kernel.descriptor.get(Field::ENABLE_VGPR_WORKITEM_ID) + 1);
        let cfg = Cfg::build(self.body);
        let definitions = Definitions::new(self.body, &cfg, self.summaries);
        let accesses = Accesses::of(self.body, &definitions, pointers(kernel));
        let target = self.body.target();
        let by_address: HashMap<u64, usize> =
            accesses.all().iter().enumerate().map(|(n, access)| (self.body.address(access.inst), n)).collect();
        let mut waves: HashMap<([u32; 3], u32), Vec<Vec<Place>>> = HashMap::new();
        let whole = self.test.group.map(u32::from);
        // Of an instruction with two addresses the records take turns.
        let mut turns: HashMap<(u64, [u32; 3], u32), usize> = HashMap::new();
        let mut wrong: BTreeMap<u64, String> = BTreeMap::new();
        for record in records.iter().take(MOST_RECORDS) {
            let Some(&n) = by_address.get(&record.place.address) else { continue };
            let access = &accesses.all()[n];
            // Workgroups at the end of the grid may be smaller.
            let shape = std::array::from_fn(|axis| {
                whole[axis].min(self.test.grid[axis] - record.workgroup[axis] * whole[axis])
            });
            let places = waves.entry((shape, record.wave)).or_insert_with(|| {
                let shape = WaveShape::new(shape, target.wave_size(), record.wave, given);
                shape.map(|shape| accesses.of_wave(shape)).unwrap_or_default()
            });
            let Some(places) = places.get(n) else { continue };
            let turn = turns.entry((record.place.address, record.workgroup, record.wave)).or_default();
            let place = &places[*turn % places.len()];
            *turn += 1;
            if let Err(failure) = compare(access, place, record, target, tally) {
                let text = || {
                    let inst = wavetap::isa::print(target, self.body.inst(access.inst));
                    format!(
                        "{:#x} `{inst}`, workgroup {:?} wave {}: {failure}\n    {place:?}",
                        record.place.address, record.workgroup, record.wave
                    )
                };
                wrong.entry(record.place.address).or_insert_with(text);
            }
        }
        let first = WaveShape::new(whole, target.wave_size(), 0, given).map(|shape| accesses.of_wave(shape));
        for (access, places) in accesses.all().iter().zip(first.unwrap_or_default()) {
            let category = places[0].category(target.l1_line_bytes());
            *tally
                .static_accesses
                .entry((access.space, category, places[0].address.as_ref().err().copied()))
                .or_default() += 1;
        }
        wrong.into_values().collect()
    }
}

fn compare(
    access: &Access,
    place: &Place,
    record: &AccessRecord,
    target: Target,
    tally: &mut Tally,
) -> Result<(), String> {
    let is_said = match access.space {
        Space::Lds => record.memory == AccessedMemory::Lds,
        Space::Scratch => record.memory == AccessedMemory::Scratch,
        _ => true,
    };
    if !is_said {
        return Err(format!("{:?}, and {:?} was accessed", access.space, record.memory));
    }
    if place.address.is_err() {
        tally.unknown += 1;
        return Ok(());
    }
    // An address for all kinds of memory: how lanes lie to each other in scratch it does not say.
    if access.space == Space::Flat && record.memory == AccessedMemory::Scratch {
        return Ok(());
    }
    tally.compared += 1;
    let seen = Place { lanes: record.lanes, ..place.clone() };
    if seen.bytes != record.bytes {
        return Err(format!("{} bytes, and {} were seen", seen.bytes, record.bytes));
    }
    let lanes: Vec<usize> = (0..64).filter(|lane| record.lanes >> lane & 1 != 0).collect();
    for (at, &lane) in lanes.iter().enumerate() {
        for (before, &other) in lanes[..at].iter().enumerate() {
            let Some(expected) = seen.between(other, lane) else { continue };
            let found = record.addresses[at].wrapping_sub(record.addresses[before]) as i32;
            if found != expected {
                return Err(format!("{expected} bytes from lane {other} to {lane}, and {found} were seen"));
            }
        }
    }
    let line = target.l1_line_bytes();
    if record.memory == AccessedMemory::Lds {
        let operation = match access.operation {
            Operation::Load => LdsOperation::Read,
            Operation::Store => LdsOperation::Write,
            Operation::Atomic => LdsOperation::Atomic,
        };
        let mut addresses = [0; 64];
        lanes.iter().zip(&record.addresses).for_each(|(&lane, &address)| addresses[lane] = address);
        let found = target.lds_cycles(operation, record.bytes, &addresses, record.lanes);
        if let Some(expected) = seen.banks(target, operation) {
            tally.banks += 1;
            if expected != found {
                return Err(format!("{expected:?}, and {found:?} were seen"));
            }
        }
        return Ok(());
    }
    let found = count_lines(record.addresses.iter().map(|address| address.cast_signed()), record.bytes, line);
    let Some(expected) = seen.lines(line) else { return Err("no lines".to_owned()) };
    tally.exact += u64::from(expected.least == expected.most);
    if found < expected.least || found > expected.most {
        return Err(format!("{expected:?}, and {found} lines were seen"));
    }
    Ok(())
}
