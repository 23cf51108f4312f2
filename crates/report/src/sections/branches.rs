//! The counts of branches as tables.

use serde::{Deserialize, Serialize};

use super::{OfKernel, Section};
use crate::branches::verdict;
use crate::style::{Style, place, push_table};
use crate::table::{Align, Table, grouped};
use wavetap_profile::file::SiteTotals;
use wavetap_profile::hex;
use wavetap_profile::map::Source;
use wavetap_profile::probes::branches::{BranchCounts, ExecCounts, PROBE, ScalarCounts};

/// One counted branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Branch {
    /// Original virtual address.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub address: u64,
    /// The instruction as printed.
    pub instruction: String,
    /// Source line.
    pub source: Option<Source>,
    /// The counters.
    #[serde(flatten)]
    pub counts: BranchCounts,
}

impl Branch {
    /// The branch of a site; none if it is a site of another probe.
    fn of(site: &SiteTotals) -> Option<Branch> {
        let counts = BranchCounts::of(&site.counts)?;
        Some(Branch {
            address: site.address,
            instruction: site.instruction.clone(),
            source: site.source.clone(),
            counts,
        })
    }
}

impl Section for Vec<Branch> {
    const PROBE: &'static str = PROBE;

    fn of(sites: &[SiteTotals]) -> Vec<Branch> {
        sites.iter().filter_map(Branch::of).collect()
    }

    fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    fn lines(&self, kernel: OfKernel, style: Style, lines: &mut Vec<String>) {
        exec_lines(self, kernel.wave_size, style, lines);
        scalar_lines(self, style, lines);
    }
}

fn exec_lines(branches: &[Branch], wave_size: Option<u32>, style: Style, lines: &mut Vec<String>) {
    let lanes = wave_size.map_or_else(|| "active lanes".to_owned(), |lanes| format!("lanes of {lanes}"));
    let mut table = Table::new(&[
        ("address", Align::Right),
        ("instruction", Align::Left),
        ("source", Align::Left),
        ("executions", Align::Right),
        ("agreements", Align::Right),
        ("divergences", Align::Right),
        ("empty", Align::Right),
        (&lanes, Align::Left),
        ("verdict", Align::Left),
    ]);
    for branch in branches {
        let BranchCounts::Exec(exec) = branch.counts else { continue };
        let ExecCounts { executions, agreements, empty, .. } = exec;
        table.row([
            format!("{:#x}", branch.address),
            branch.instruction.clone(),
            place(branch.source.as_ref()),
            grouped(executions),
            grouped(agreements),
            grouped(exec.divergences()),
            if empty == 0 { String::new() } else { grouped(empty) },
            exec.average_lanes().map(|(before, after)| format!("{before:>4.1} → {after:>4.1}")).unwrap_or_default(),
            verdict(&branch.counts),
        ]);
    }
    push_table("divergent branches", &table, style, lines);
}

fn scalar_lines(branches: &[Branch], style: Style, lines: &mut Vec<String>) {
    let mut table = Table::new(&[
        ("address", Align::Right),
        ("instruction", Align::Left),
        ("source", Align::Left),
        ("executions", Align::Right),
        ("taken", Align::Right),
        ("verdict", Align::Left),
    ]);
    for branch in branches {
        let BranchCounts::Scalar(ScalarCounts { executions, taken }) = branch.counts else { continue };
        table.row([
            format!("{:#x}", branch.address),
            branch.instruction.clone(),
            place(branch.source.as_ref()),
            grouped(executions),
            grouped(taken),
            verdict(&branch.counts),
        ]);
    }
    push_table("uniform branches", &table, style, lines);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_the_fields_of_the_contract() {
        let counts =
            ExecCounts { executions: 32, agreements: 16, lanes_before: 2048, lanes_after: 512, empty: 1 }.into();
        let branch =
            Branch { address: 0x1a40, instruction: "s_and_saveexec_b64 s[0:1], vcc".to_owned(), source: None, counts };
        let json = serde_json::to_value(&branch).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "address": "0x1a40", "instruction": "s_and_saveexec_b64 s[0:1], vcc", "source": null, "kind": "exec",
                "executions": 32, "agreements": 16, "divergences": 16, "lanes_before": 2048, "lanes_after": 512,
                "empty": 1,
            })
        );
        assert_eq!(serde_json::from_value::<Branch>(json).unwrap(), branch);
    }
}
