//! The counts of branches.

use serde::{Deserialize, Serialize};

use super::Section;
use wavetap_profile::file::SiteTotals;
use wavetap_profile::hex;
use wavetap_profile::map::Source;
use wavetap_profile::probes::branches::{BranchCounts, PROBE};

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
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_profile::probes::branches::ExecCounts;

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
