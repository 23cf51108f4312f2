//! Who is blamed for a stall: by which of two rules, and as numbers alone, so that the rules can be compared on the
//! same stalls.

use std::collections::BTreeMap;

use crate::counts::BlockCounts;
use crate::kernel::{KernelInputs, slice_kernel};
use crate::leo;
pub use crate::result::Blame;
pub use crate::stall::StallCycles;
use wavetap_analysis::cfg::Cfg;

/// A stall and who is blamed for it.
#[derive(Debug, Clone, PartialEq)]
pub struct BlamedStall {
    /// Where waves stood.
    pub address: u64,
    /// The causes, the largest share first. The shares sum to 1. Empty: the rule blames nothing.
    pub causes: Vec<BlamedCause>,
}

/// A cause of a stall.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlamedCause {
    /// Its address. A call stands for what the function called has issued; the stalled instruction itself is there if
    /// no other is to blame.
    pub address: u64,
    /// Of the stall, 0 to 1.
    pub share: f64,
}

/// Divides stalls of one body by a rule: what `wavetap slice --blame` does, without text, for those who compare rules.
///
/// `stalls` is by address. There is one result for each stall of an instruction of the body that lasted, in address
/// order. Where `inputs` say that waves stalled is not looked at.
///
/// ```
/// use std::collections::BTreeMap;
/// use wavetap_analysis::dataflow::{Summaries, WaitSummaries};
/// use wavetap_amdgpu::Target;
/// use wavetap_analysis::kernel::{Body, BodyKind, Image};
/// use wavetap_slice::KernelInputs;
/// use wavetap_slice::blame::{Blame, BlamedCause, blame_stalls};
///
/// // global_load_dword v2, v[0:1], off; s_waitcnt vmcnt(0); s_endpgm
/// let words = [0xdc50_8000_u32, 0x027f_0000, 0xbf8c_0f70, 0xbf81_0000];
/// let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
/// let mut image = Image::new();
/// image.add_code(0x1000, &code);
/// let body = Body::decode(Target::by_name("gfx90a").unwrap(), &image, "k", BodyKind::Kernel, 0x1000)?;
/// let stalls = BTreeMap::from([(0x1008, 100.into())]);
/// let (waits, registers) = (WaitSummaries::none(), Summaries::none());
/// let inputs = KernelInputs::new(&body, &waits, &registers);
/// for rule in [Blame::Exposed, Blame::Leo] {
///     let blamed = blame_stalls(rule, &inputs, &stalls);
///     assert_eq!(blamed[0].causes, [BlamedCause { address: 0x1000, share: 1.0 }]);
/// }
/// # Ok::<(), wavetap_base::error::Error>(())
/// ```
#[must_use]
pub fn blame_stalls(rule: Blame, inputs: &KernelInputs<'_>, stalls: &BTreeMap<u64, StallCycles>) -> Vec<BlamedStall> {
    let (body, counted) = (inputs.body, inputs.counted);
    let lasted = stalls
        .iter()
        .filter_map(|(address, stall)| Some((body.at(*address)?, *address, stall)))
        .filter(|(.., stall)| stall.cycles > 0);
    match rule {
        Blame::Exposed => {
            let stalled = |address| stalls.get(&address).is_some_and(|stall| stall.cycles > 0);
            let mut weights: BTreeMap<u64, BTreeMap<u64, f64>> = BTreeMap::new();
            for chain in slice_kernel(&KernelInputs { stalled: &stalled, ..*inputs }, "").chains {
                // After the stall comes its cause; a stall alone is its own.
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
fn shares(weights: BTreeMap<u64, f64>) -> Vec<BlamedCause> {
    let sum: f64 = weights.values().sum();
    let mut shares: Vec<BlamedCause> = weights
        .into_iter()
        .filter(|(_, weight)| *weight > 0.0)
        .map(|(address, weight)| BlamedCause { address, share: weight / sum })
        .collect();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.address.cmp(&b.address)));
    shares
}
