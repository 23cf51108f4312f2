//! How long the vector L1 cache is busy with the addresses of an instruction.
//!
//! Measured strides (gpu-benches, MI210 and RX 6900 XT) and AMD's rule for GCN ("GCN memory coalescing") are what the
//! numbers of `isa-tables/machine.yaml` describe: lanes go in groups; lanes of a group whose dwords are in the same
//! bank go one after the other; each line takes a part of a cycle.

use smallvec::SmallVec;

use wavetap_amdgpu::MachineFact;

use super::machine::Machine;
use crate::exec::memory::accesses::{Accesses, How};

const DWORD: u64 = 4;

/// Cycles that an instruction keeps L1 which accesses so many lines.
pub(crate) fn address_cycles(machine: &Machine, accesses: &Accesses, lines: u64) -> u64 {
    let fact = |fact| machine.fact(fact).max(1);
    let lanes = accesses.memory.len() as u64;
    let bytes = (accesses.size * lanes).div_ceil(fact(MachineFact::L1Bandwidth));
    let for_lines = match lines {
        0 | 1 => 1,
        // Two lines are not looked up together, whatever their number.
        _ => (lines * fact(MachineFact::L1LineQuarters)).div_ceil(4).max(2),
    };
    let for_lanes = match accesses.how {
        How::Load if accesses.size <= DWORD => dwords(machine, &accesses.memory),
        How::Load => lanes.div_ceil(fact(MachineFact::L1LanesWide)),
        How::Store | How::Atomic => lanes.div_ceil(fact(MachineFact::L1LanesStore)),
    };
    for_lanes.max(for_lines).max(bytes)
}

/// Cycles for loads of a dword or less by each lane.
fn dwords(machine: &Machine, addresses: &[u64]) -> u64 {
    let (together, banks) = (machine.fact(MachineFact::L1Lanes).max(1), machine.fact(MachineFact::L1Banks).max(1));
    let width = machine.l1_line();
    addresses
        .chunks(together as usize)
        .map(|lanes| {
            let (first, last) = lanes.iter().fold((u64::MAX, 0), |(first, last), &at| (at.min(first), at.max(last)));
            if last - first < together * DWORD {
                // What is close together is read together, out of one line or two.
                return 1 + u64::from(first / width != last / width);
            }
            lanes.chunks(banks as usize).map(|lanes| ways(lanes, banks)).sum()
        })
        .sum::<u64>()
        .max(1)
}

/// The most dwords of one bank.
fn ways(addresses: &[u64], banks: u64) -> u64 {
    let mut dwords: SmallVec<[u64; 32]> = addresses.iter().map(|address| address / DWORD).collect();
    dwords.sort_unstable();
    dwords.dedup();
    let mut counts = [0_u8; 64];
    dwords.iter().for_each(|dword| counts[(dword % banks % 64) as usize] += 1);
    counts.into_iter().max().unwrap_or(0).into()
}
