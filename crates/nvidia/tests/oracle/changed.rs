//! Instructions of the fixtures with other bits, and what the disassembler says of them.

use std::collections::BTreeMap;

use wavetap_nvidia::container::Cubin;
use wavetap_nvidia::isa::{Action, Model, Word, decode};

use super::compare::{Tally, roles};
use super::{listing, tool};

/// Forms that no compiler was seen to write, whose roles are not right.
pub const KNOWN: &[&str] =
    &["ATOM reads", "ATOMG reads", "DMMA reads", "LDC writes", "QMMA reads", "RED reads", "S2UR reads"];

/// An instruction that ends the code.
const EXIT: (u64, u64) = (0x794d, 0x000f_ea00_0380_0000);
/// Words in one cubin.
const CHUNK: usize = 100;

struct Random(u64);

impl Random {
    fn below(&mut self, count: u64) -> u64 {
        // Xorshift (Marsaglia, 2003).
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % count
    }
}

/// One of each opcode, with one to three bits changed that are neither opcode nor control bits.
fn words(cubin: &Cubin, rounds: u64) -> Vec<(u64, u64)> {
    let mut known: BTreeMap<u16, u128> = BTreeMap::new();
    for function in cubin.functions() {
        for inst in function.instructions().expect("instructions") {
            if matches!(inst.action(), Action::Plain | Action::Wait) {
                let (lower, upper) = inst.word().halves();
                let _ = known.insert(inst.word().opcode(), u128::from(lower) | u128::from(upper) << 64);
            }
        }
    }
    let mut random = Random(1 + u64::from(cubin.model().number()));
    let mut all = Vec::new();
    for _ in 0..4 * rounds {
        for word in known.values() {
            let mut changed = word & !(0x1f_ffff << 105) | 0x7e3 << 105;
            for _ in 0..=random.below(3) {
                changed ^= 1 << (12 + random.below(93));
            }
            all.push((changed as u64, (changed >> 64) as u64));
        }
    }
    all
}

/// Compares changed words of a fixture, as the code of `host`, which has one kernel.
pub fn compare(model: u16, fixture: &[u8], host: &[u8], rounds: u64) -> Tally {
    let cubin = Cubin::parse(fixture.to_vec(), "fixture").expect("a cubin");
    let mut tally = Tally::default();
    for chunk in words(&cubin, rounds).chunks(CHUNK) {
        let mut chunk = chunk.to_vec();
        let text = loop {
            let code = [&chunk[..], &[EXIT]].concat();
            match tool::disassemble(&["-c", "-lrm", "narrow"], &tool::with_code(host, &code)) {
                Ok(text) => break text,
                Err(error) => {
                    let digits =
                        error.split("at address 0x").nth(1).and_then(|rest| rest.get(..8)).expect("an address");
                    chunk.remove(u64::from_str_radix(digits, 16).expect("an address") as usize / 16);
                }
            }
        };
        let listing = listing::read(&text);
        let listed = listing.values().next().expect("a section");
        for (address, (lower, upper)) in (0..).step_by(16).zip(&chunk) {
            let Some(line) = listed.lines.get(&address) else { continue };
            if line.text.contains("???") || line.text.contains("INVALID") {
                *tally.not_compared.entry("words that are no instruction").or_default() += 1;
                continue;
            }
            match decode(Model::new(model).expect("known"), Word::new(*lower, *upper), address) {
                Ok(mut inst) => {
                    // The listing has no columns for these registers.
                    let mut line = line.clone();
                    let is_shown = |file: &str, number: u16| file != "UR" || (4..64).contains(&number);
                    inst.operands.retain(|register| {
                        is_shown(register.file.prefix(), register.first.into())
                            && is_shown(
                                register.file.prefix(),
                                u16::from(register.first) + u16::from(register.count) - 1,
                            )
                    });
                    let whole = |name: &listing::Name| is_shown(name.0, name.1);
                    line.reads.retain(whole);
                    line.writes.retain(whole);
                    roles(&mut tally, &inst, &line);
                }
                Err(_) => *tally.not_compared.entry("words that are refused").or_default() += 1,
            }
        }
    }
    tally
}
