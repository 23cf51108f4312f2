//! Who is blamed for a stall: by which of two rules, and as numbers alone, so that the rules can be compared on the
//! same stalls.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::access::Launched;
use super::leo;
use super::slice_stalled;
use crate::counts::{BlockCounts, KernelCounts};
use wavetap_analysis::cfg::Cfg;
use wavetap_analysis::dataflow::{Summaries, WaitSummaries};
use wavetap_analysis::kernel::Body;

/// The rule by which a stall is divided among what it may be for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// By what is left of each operation's latency when the wait begins: [`super::chains`].
    #[default]
    Exposed,
    /// As LEO (arXiv 2604.20032) is published, to compare with: [`super::leo`].
    Leo,
}

impl Blame {
    /// The name in options and output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Blame::Exposed => "exposed",
            Blame::Leo => "leo",
        }
    }
}

/// How long waves stood at an instruction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StallCycles {
    /// Cycles, or samples.
    pub cycles: u64,
    /// Those whose reason is known, as rocprofiler-sdk names it, without what all its names begin with: `WAITCNT`.
    /// Empty if no reason is known.
    pub reasons: BTreeMap<String, u64>,
}

impl From<u64> for StallCycles {
    fn from(cycles: u64) -> StallCycles {
        StallCycles { cycles, reasons: BTreeMap::new() }
    }
}

/// A stall and who is blamed for it.
#[derive(Debug, Clone, PartialEq)]
pub struct BlamedStall {
    /// Where waves stood.
    pub address: u64,
    /// Addresses of causes with their shares, the largest first. The shares sum to 1. A call stands for what the
    /// function called has issued; the stalled instruction itself is there if no other is to blame. Empty: the rule
    /// blames nothing.
    pub causes: Vec<(u64, f64)>,
}

/// Divides stalls of one body by a rule: what `wavetap slice --blame` does, without text, for those who compare rules.
///
/// The summaries say what calls do, `totals` are the counts of the body, `stalls` is by address. There is one result
/// for each stall of an instruction of the body that lasted, in address order.
///
/// ```
/// use std::collections::BTreeMap;
/// use wavetap_analysis::dataflow::{Summaries, WaitSummaries};
/// use wavetap_amdgpu::Target;
/// use wavetap_analysis::kernel::{Body, BodyKind, Image};
/// use wavetap_slice::blame::{Blame, blame_stalls};
///
/// // global_load_dword v2, v[0:1], off; s_waitcnt vmcnt(0); s_endpgm
/// let words = [0xdc50_8000_u32, 0x027f_0000, 0xbf8c_0f70, 0xbf81_0000];
/// let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
/// let mut image = Image::new();
/// image.add_code(0x1000, &code);
/// let body = Body::decode(Target::by_name("gfx90a").unwrap(), &image, "k", BodyKind::Kernel, 0x1000)?;
/// let stalls = BTreeMap::from([(0x1008, 100.into())]);
/// let none = (&WaitSummaries::none(), &Summaries::none());
/// for rule in [Blame::Exposed, Blame::Leo] {
///     let blamed = blame_stalls(rule, &body, none, None, &stalls);
///     assert_eq!(blamed[0].causes, [(0x1000, 1.0)]);
/// }
/// # Ok::<(), wavetap_base::error::Error>(())
/// ```
#[must_use]
pub fn blame_stalls(
    rule: Blame,
    body: &Body,
    summaries: (&WaitSummaries, &Summaries),
    counted: Option<KernelCounts<'_>>,
    stalls: &BTreeMap<u64, StallCycles>,
) -> Vec<BlamedStall> {
    let lasted = stalls
        .iter()
        .filter_map(|(address, stall)| Some((body.at(*address)?, *address, stall)))
        .filter(|(.., stall)| stall.cycles > 0);
    match rule {
        Blame::Exposed => {
            let stood = |address| stalls.get(&address).is_some_and(|stall| stall.cycles > 0);
            let mut weights: BTreeMap<u64, BTreeMap<u64, f64>> = BTreeMap::new();
            for chain in slice_stalled(
                body,
                "",
                summaries,
                (counted, &stood, Launched::of(None, counted.map(|counted| counted.totals))),
                |_| None,
            )
            .chains
            {
                // Behind the stall comes its cause; a stall alone is its own.
                let cause = chain.path.get(1).map_or(chain.address, |step| step.address);
                *weights.entry(chain.address).or_default().entry(cause).or_default() += chain.share;
            }
            lasted
                .map(|(_, address, _)| BlamedStall {
                    address,
                    causes: shares(weights.remove(&address).unwrap_or_default()),
                })
                .collect()
        }
        Blame::Leo => {
            let cfg = Cfg::build(body);
            let counts = BlockCounts::derive(body, &cfg, counted);
            let blamer = leo::Blamer::new(body, &cfg, &counts);
            lasted
                .map(|(id, address, stall)| {
                    let blames = blamer.blame(id, stall, &|_| None, leo::AS_THEY_ARE);
                    let mut weights = BTreeMap::new();
                    for blame in blames {
                        *weights.entry(body.address(blame.cause.unwrap_or(id))).or_default() += blame.share;
                    }
                    BlamedStall { address, causes: shares(weights) }
                })
                .collect()
        }
    }
}

/// Weights as shares, the largest first.
fn shares(weights: BTreeMap<u64, f64>) -> Vec<(u64, f64)> {
    let sum: f64 = weights.values().sum();
    let mut shares: Vec<(u64, f64)> =
        weights.into_iter().filter(|(_, weight)| *weight > 0.0).map(|(cause, weight)| (cause, weight / sum)).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    shares
}
