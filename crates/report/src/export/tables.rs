//! What kernels executed as one CSV table: `kernel,target,metric_id,metric,value,unit`.
//!
//! Metrics of tables 10.1 to 10.4 are those of rocprof-compute, with its numbers and names (`SQ_INSTS_*` and their
//! relatives, which count instructions of waves); the value is the sum over all dispatches. What it has no number for
//! has none.

use super::{csv, sites};
use crate::mix::{KernelMix, MixCounts, MixReport, OperationSum, Traffic};
use wavetap_base::error::Result;
use wavetap_profile::file::{KernelTotals, Profile};

/// A metric: rocprof-compute's number of it, its name, and the classes of [`MixCounts::classes`] that it is the sum of;
/// one that ends with a dot stands for all that begin so.
type Metric = (&'static str, &'static str, &'static [&'static str]);

/// In rocprof-compute's order. Its VALU has no MFMA, its LDS has exchanges between lanes through LDS, its SALU no
/// branches and no waits; a flat access is vector memory, as its own are but for those that are known to be of LDS.
const METRICS: &[Metric] = &[
    ("10.1.0", "VALU", &["valu."]),
    ("10.1.1", "VMEM", &["vmem."]),
    ("10.1.2", "LDS", &["lds."]),
    ("10.1.3", "MFMA", &["matrix."]),
    ("10.1.4", "SALU", &["salu."]),
    ("10.1.5", "SMEM", &["smem."]),
    ("10.1.6", "Branch", &["branch"]),
    ("10.2.2", "F16-ADD", &["valu.f16.add"]),
    ("10.2.3", "F16-MUL", &["valu.f16.mul"]),
    ("10.2.4", "F16-FMA", &["valu.f16.fma"]),
    ("10.2.5", "F16-Trans", &["valu.f16.trans"]),
    ("10.2.6", "F32-ADD", &["valu.f32.add"]),
    ("10.2.7", "F32-MUL", &["valu.f32.mul"]),
    ("10.2.8", "F32-FMA", &["valu.f32.fma"]),
    ("10.2.9", "F32-Trans", &["valu.f32.trans"]),
    ("10.2.10", "F64-ADD", &["valu.f64.add"]),
    ("10.2.11", "F64-MUL", &["valu.f64.mul"]),
    ("10.2.12", "F64-FMA", &["valu.f64.fma"]),
    ("10.2.13", "F64-Trans", &["valu.f64.trans"]),
    ("10.2.14", "Conversion", &["valu.conversion"]),
    ("10.3.0", "Global/Generic Instr", &["vmem.global.", "vmem.flat."]),
    ("10.3.1", "Global/Generic Read", &["vmem.global.read", "vmem.flat.read"]),
    ("10.3.2", "Global/Generic Write", &["vmem.global.write", "vmem.flat.write"]),
    ("10.3.3", "Global/Generic Atomic", &["vmem.global.atomic", "vmem.flat.atomic"]),
    ("10.3.4", "Spill/Stack Instr", &["vmem.scratch."]),
    ("10.3.5", "Spill/Stack Read", &["vmem.scratch.read"]),
    ("10.3.6", "Spill/Stack Write", &["vmem.scratch.write"]),
    ("10.3.7", "Spill/Stack Atomic", &["vmem.scratch.atomic"]),
    ("10.4.0", "MFMA-I8", &["matrix.mfma.i8", "matrix.smfmac.i8"]),
    ("10.4.1", "MFMA-F16", &["matrix.mfma.f16", "matrix.smfmac.f16"]),
    ("10.4.2", "MFMA-BF16", &["matrix.mfma.bf16", "matrix.smfmac.bf16"]),
    ("10.4.3", "MFMA-F32", &["matrix.mfma.f32", "matrix.smfmac.f32"]),
    ("10.4.4", "MFMA-F64", &["matrix.mfma.f64", "matrix.smfmac.f64"]),
];

/// Numbers that operations always have a row of, so that tables of several kernels have the same.
const ALWAYS: [&str; 5] = ["i32", "i64", "f16", "f32", "f64"];

const INSTRUCTIONS: &str = "instr";
const OPERATIONS: &str = "op";
const BYTES: &str = "byte";

/// The table. Sites of probes that are not known here, which nothing else in it is of, are metrics by field:
/// `PROBE/KIND/FIELD`.
///
/// # Errors
/// Limit if a sum does not fit 64 bits; unsupported if the profile has one kernel with different sites; internal if it
/// cannot be written.
pub fn tables(mix: &MixReport, profile: &Profile) -> Result<String> {
    let heading = ["kernel", "target", "metric_id", "metric", "value", "unit"].map(str::to_owned).to_vec();
    let mut rows = vec![heading];
    for kernel in &mix.kernels {
        rows.extend(kernel_rows(kernel));
        let of_kernel = |totals: &&KernelTotals| totals.object == kernel.object && totals.name == kernel.name;
        let mut all = profile.kernels.iter().filter(of_kernel);
        let Some(mut totals) = all.next().cloned() else { continue };
        all.try_for_each(|more| totals.merge(more))?;
        rows.extend(sites::metrics(&totals)?.into_iter().map(|(metric, value, unit)| {
            let [kernel, target] = [&kernel.demangled, &kernel.target].map(Clone::clone);
            vec![kernel, target, String::new(), metric, value, unit.to_owned()]
        }));
    }
    csv(rows)
}

fn kernel_rows(kernel: &KernelMix) -> Vec<Vec<String>> {
    let total = &kernel.total;
    let row = |id: &str, metric: &str, value: u64, unit: &str| {
        vec![
            kernel.demangled.clone(),
            kernel.target.clone(),
            id.to_owned(),
            metric.to_owned(),
            value.to_string(),
            unit.to_owned(),
        ]
    };
    let mut rows = vec![
        row("", "Dispatches", kernel.dispatches, "dispatch"),
        row("", "Wavefronts", kernel.waves, "wave"),
        row("", "Instructions", total.instructions, INSTRUCTIONS),
    ];
    rows.extend(METRICS.iter().map(|(id, metric, classes)| row(id, metric, issued(total, classes), INSTRUCTIONS)));
    for class in &total.classes {
        rows.push(row("", &format!("class {}", class.class), class.issued, INSTRUCTIONS));
    }
    for (name, classes) in [("INT32, by class", ["valu.i32."]), ("INT64, by class", ["valu.i64."])] {
        rows.push(row("", name, issued(total, &classes), INSTRUCTIONS));
    }
    for (name, sum) in operations(total) {
        rows.push(row("", &format!("{name}, all lanes"), sum.convention, OPERATIONS));
        rows.push(row("", &format!("{name}, active lanes"), sum.effective, OPERATIONS));
    }
    for (name, memory) in [
        ("Global", Traffic::Global),
        ("FLAT", Traffic::Flat),
        ("LDS", Traffic::Lds),
        ("Scalar", Traffic::Scalar),
        ("Scratch", Traffic::Scratch),
    ] {
        rows.push(row("", &format!("{name} bytes requested"), total.bytes_of(memory), BYTES));
    }
    rows.push(row("", "Instructions whose lanes are not known", total.lanes_unknown, INSTRUCTIONS));
    rows.push(row("", "Instructions of the code that were not counted", total.uncounted, INSTRUCTIONS));
    rows
}

/// Operations: of all floats, of all integers, and by the numbers that they are on, those of [`ALWAYS`] even if there
/// are none.
fn operations(total: &MixCounts) -> Vec<(String, OperationSum)> {
    let of = |number: &str| total.operations.iter().find(|row| row.number == number).map(|row| row.sum);
    let always = ALWAYS.iter().map(|number| ((*number).to_owned(), of(number).unwrap_or_default()));
    let others = total.operations.iter().filter(|row| !ALWAYS.contains(&row.number.as_str()));
    let by_number = always.chain(others.map(|row| (row.number.clone(), row.sum)));
    let sums = [("FLOPs".to_owned(), total.flops), ("IOPs".to_owned(), total.iops)];
    sums.into_iter()
        .chain(by_number.map(|(number, sum)| (format!("{} operations", number.to_uppercase()), sum)))
        .collect()
}

/// How often instructions of classes were issued whose names are, or begin with, one of these.
fn issued(total: &MixCounts, classes: &[&str]) -> u64 {
    let is_of = |class: &str| {
        classes.iter().any(|name| if name.ends_with('.') { class.starts_with(name) } else { class == *name })
    };
    total.classes.iter().filter(|row| is_of(&row.class)).map(|row| row.issued).sum()
}
