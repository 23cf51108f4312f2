//! Who is blamed for a stall: by which of two rules, and as numbers alone, so that the rules can be compared on the
//! same stalls.

use std::collections::BTreeMap;

use crate::counts::BlockCounts;
use crate::kernel::{KernelInputs, slice_kernel};
use crate::leo;
pub use crate::result::Blame;
pub use crate::stall::StallCycles;

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
/// use wavetap_code::*;
/// use wavetap_slice::KernelInputs;
/// use wavetap_slice::blame::{Blame, BlamedCause, blame_stalls};
///
/// let (sb0, end) = (CounterId(0), Flow::Exit { exit: Exit::End, falls_through: false });
/// let mut code = CodeBuilder::new("k", Properties::new("sm_80", 32), vec![Counter::named("SB0")]);
/// code.push(Instruction {
///     issues: [Issue { counter: sb0, event: Event::Result, order: None }].into_iter().collect(),
///     class: Class::Global,
///     latency: Cycles { min: 30, typical: 500, max: 800 },
///     ..Instruction::new(0, 16, "LDG.E R4, [R2.64]")
/// });
/// code.push(Instruction {
///     waits: [WaitFor { counter: sb0, count: 0, name: None, guarded: false }].into_iter().collect(),
///     ..Instruction::new(16, 16, "FADD R5, R4, R4")
/// });
/// code.push(Instruction { flow: end, ..Instruction::new(32, 16, "EXIT") });
/// let code = code.build()?;
/// let stalls = BTreeMap::from([(16, 100.into())]);
/// for rule in [Blame::Exposed, Blame::Leo] {
///     let blamed = blame_stalls(rule, &KernelInputs::new(&code), &stalls);
///     assert_eq!(blamed[0].causes, [BlamedCause { address: 0, share: 1.0 }]);
/// }
/// # Ok::<(), wavetap_base::error::Error>(())
/// ```
#[must_use]
pub fn blame_stalls(rule: Blame, inputs: &KernelInputs<'_>, stalls: &BTreeMap<u64, StallCycles>) -> Vec<BlamedStall> {
    let (code, counted) = (inputs.code, inputs.counted);
    let lasted = stalls
        .iter()
        .filter_map(|(address, stall)| Some((code.at(*address)?, *address, stall)))
        .filter(|(.., stall)| stall.cycles > 0);
    match rule {
        Blame::Exposed => {
            let mut weights: BTreeMap<u64, BTreeMap<u64, f64>> = BTreeMap::new();
            for chain in slice_kernel(&KernelInputs { stalls, ..*inputs }, "").chains {
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
            let counts = BlockCounts::of_code(code, counted);
            let blamer = leo::Blamer::new(code, &counts);
            lasted
                .map(|(id, address, stall)| {
                    let blames = blamer.blame(id, stall, &|_| None, leo::AS_THEY_ARE);
                    let mut weights = BTreeMap::new();
                    for blame in blames {
                        *weights.entry(code.address(blame.cause.unwrap_or(id))).or_default() += blame.share;
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
