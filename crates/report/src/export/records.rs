//! Recorded accesses: as CSV, and as the heat map that cuThermo's viewer shows.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::csv;
use crate::memory::MappedWorkgroups;
use wavetap_base::error::Result;
use wavetap_memory::{Analysis, Array, Operation, Recorded, RecordedKernel, Space, WorkgroupWords};

/// What was recorded of a kernel, with its names.
#[derive(Debug)]
pub struct NamedRecords {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// What was recorded.
    pub recorded: RecordedKernel,
    /// Instructions as printed, by address.
    pub instructions: BTreeMap<u64, String>,
}

/// Bytes of a sector of cuThermo, which has NVIDIA's.
const SECTOR: u32 = 32;

/// The accesses as CSV: a row for each execution of an instruction, in the order in which its wave executed them. Lanes
/// are a mask; there is an address for each of its bits, from the lowest on, those of LDS from 0 on.
///
/// # Errors
/// Internal if it cannot be written.
pub fn accesses(kernels: &[NamedRecords]) -> Result<String> {
    let heading = [
        "kernel",
        "dispatch",
        "workgroup_x",
        "workgroup_y",
        "workgroup_z",
        "wave",
        "address",
        "instruction",
        "space",
        "operation",
        "bytes",
        "lanes",
        "addresses",
    ];
    let rows = kernels.iter().flat_map(|kernel| {
        kernel.recorded.records.iter().map(|record| {
            let [x, y, z] = record.workgroup.map(|axis| axis.to_string());
            let mut addresses = String::new();
            for address in &record.addresses {
                let space = if addresses.is_empty() { "" } else { " " };
                // To a string: it cannot fail.
                let _ = write!(addresses, "{space}{address:#x}");
            }
            vec![
                kernel.demangled.clone(),
                record.dispatch.to_string(),
                x,
                y,
                z,
                record.wave.to_string(),
                format!("{:#x}", record.address),
                kernel.instructions.get(&record.address).cloned().unwrap_or_default(),
                space_name(record).to_owned(),
                operation_name(record).to_owned(),
                record.bytes.to_string(),
                format!("{:#x}", record.lanes),
                addresses,
            ]
        })
    });
    csv(std::iter::once(heading.map(str::to_owned).to_vec()).chain(rows))
}

/// Where the accessed memory is, in a word.
#[must_use]
pub fn space_name(record: &Recorded) -> &'static str {
    match record.space {
        Space::Lds => "lds",
        Space::Scratch => "scratch",
        _ => "global",
    }
}

/// What is done to it, in a word.
#[must_use]
pub fn operation_name(record: &Recorded) -> &'static str {
    match record.operation {
        Operation::Load => "load",
        Operation::Store => "store",
        Operation::Atomic => "atomic",
    }
}

/// The heat maps of the first recorded workgroup that accesses each array, or of all: a line for each sector of 32
/// bytes that it accesses, with the sector's number, how many waves access each of its eight words, and how many any of
/// them.
/// Lines that begin with `#` say of what those after them are.
#[must_use]
pub fn heat_maps(kernels: &[NamedRecords], mapped: MappedWorkgroups) -> String {
    let mut text = String::new();
    for kernel in kernels {
        let analysis = Analysis::of(&kernel.recorded);
        text.push_str(&format!("# kernel {}\n", kernel.name));
        for (array, workgroups) in &analysis.heat.arrays {
            let name = match array {
                Array::Allocation(index) => {
                    let allocation = &kernel.recorded.allocations[*index];
                    let name = allocation.name.clone().unwrap_or_else(|| format!("allocation {}", allocation.ordinal));
                    format!("{name} at {:#x}", allocation.base)
                }
                Array::Elsewhere => "memory of no known allocation".to_owned(),
                Array::Lds(part) => format!("LDS from {:#x}", analysis.arrays.lds()[*part].begin),
            };
            let most = if mapped == MappedWorkgroups::All { usize::MAX } else { 1 };
            for group in workgroups.iter().take(most) {
                heat_map(&name, group, &mut text);
            }
        }
    }
    text
}

/// The heat map of an array of this name.
fn heat_map(array: &str, group: &WorkgroupWords, text: &mut String) {
    let [x, y, z] = group.workgroup;
    text.push_str(&format!("# {array}, dispatch {}, workgroup {x},{y},{z}\n", group.dispatch));
    for sector in group.sectors(SECTOR) {
        let mut words = [0; (SECTOR / 4) as usize];
        for word in sector.words {
            words[(word.number % words.len() as u64) as usize] = word.temperature();
        }
        let words = words.map(|word| word.to_string()).join(" ");
        text.push_str(&format!("{:#x} {words} {}\n", sector.number, sector.temperature()));
    }
}
