//! The ways in which an object is rewritten to be compared with the original.

use wavetap::pipeline::{CounterPlacement, Counters, probe};

pub(super) const BRANCHES: &[probe::ProbeRef] = &[probe::BRANCHES];
/// The mode of counters in registers.
pub(super) const REGISTER: &str = "register";
/// How an object is rewritten: name, place of the counters, which are kept, probes, whether records are single waves'.
pub(super) type Mode = (&'static str, Counters, CounterPlacement, &'static [probe::ProbeRef], bool);

const BOTH: &[probe::ProbeRef] = &[probe::BRANCHES, probe::BLOCKS];
const BLOCKS: &[probe::ProbeRef] = &[probe::BLOCKS];
/// How objects are rewritten: of each pair one, the other for the next object.
const PLACED: [[Mode; 2]; 6] = [
    [
        ("lds", Counters::Lds, CounterPlacement::Minimal, BRANCHES, false),
        ("lds --placement all", Counters::Lds, CounterPlacement::All, BRANCHES, false),
    ],
    [
        ("global", Counters::Global, CounterPlacement::Minimal, BRANCHES, false),
        ("global --placement all", Counters::Global, CounterPlacement::All, BRANCHES, false),
    ],
    [
        ("lds --probe branches,blocks", Counters::Lds, CounterPlacement::Minimal, BOTH, false),
        ("lds --probe branches,blocks --placement all", Counters::Lds, CounterPlacement::All, BOTH, false),
    ],
    [
        ("global --probe blocks", Counters::Global, CounterPlacement::Minimal, BLOCKS, false),
        ("global --probe blocks --placement all", Counters::Global, CounterPlacement::All, BLOCKS, false),
    ],
    [
        ("lds --per-wave", Counters::Lds, CounterPlacement::Minimal, BRANCHES, true),
        ("lds --per-wave --placement all", Counters::Lds, CounterPlacement::All, BRANCHES, true),
    ],
    [
        ("global --per-wave", Counters::Global, CounterPlacement::Minimal, BRANCHES, true),
        ("global --per-wave --placement all", Counters::Global, CounterPlacement::All, BRANCHES, true),
    ],
];
/// What each object is rewritten in besides.
const IN_REGISTERS: [Mode; 3] = [
    (REGISTER, Counters::Register, CounterPlacement::Minimal, BRANCHES, false),
    ("register --placement all", Counters::Register, CounterPlacement::All, BRANCHES, false),
    ("register --probe branches,blocks", Counters::Register, CounterPlacement::Minimal, BOTH, false),
];

/// The modes of an object: one placement with one sink and the other with the next, by what the object is.
pub(super) fn modes(object: &[u8]) -> impl Iterator<Item = Mode> + use<> {
    let sum = object.iter().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    let chosen = PLACED.into_iter().enumerate().map(move |(number, pair)| pair[((sum >> number) ^ number) & 1]);
    chosen.chain(IN_REGISTERS)
}
