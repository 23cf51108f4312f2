//! Random words: whatever decodes encodes to its own bytes, prints, and says what it reads and writes; nothing panics;
//! nothing allocates more than one instruction can need, however long the input is; and an instruction that is cut
//! short is an error.
//!
//! Purely random words mostly fail early, so half of them have the fixed bits of some row of the tables, and a quarter
//! those that choose its family. 100,000 words for each target, or as many as `WAVETAP_RANDOM_WORDS` says: `./test.sh
//! --full` takes 10 million, optimised but with all assertions. `WAVETAP_RANDOM_SEED` gives other words.

use rewriter_tests::cores::on_all_cores;
use rewriter_tests::fillings;
use rewriter_tests::random::Random;
use wavetap::isa::{self, Inst, Reg, RegFile, Target, Variant};

const WORDS: u64 = 100_000;
/// The longest encoding with a literal after it, and one dword more.
const BYTES: usize = 24;
/// The bits of the first byte to be read that choose the encoding family (the top 9 of the first dword hold at least
/// that).
const FAMILY: u32 = 0xff80_0000;
/// Most bytes that decoding a word may allocate: an error's text, or a few operands more than usual.
const DECODE_BYTES: u64 = 1024;
/// Most bytes that encoding may allocate: the encoding.
const ENCODE_BYTES: u64 = 64;
/// Most bytes that printing may allocate: texts have up to 200 characters and are put together from parts.
const PRINT_BYTES: u64 = 4096;
/// The longest text: gfx1250 writes scaled matrix operations with all their fields in over 300.
const TEXT_BYTES: usize = 400;
/// The widest run of registers.
const MAX_DWORDS: u8 = 32;
/// Random fillings of a row's fields until one decodes.
const ATTEMPTS: usize = 10_000;

/// The number that an environment variable has, if it is set.
fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is {text:?}, expected a number")))
}

/// Random words that are likely to mean something.
struct Words(Random);

impl Words {
    fn of(target: Target) -> Self {
        let seed = number("WAVETAP_RANDOM_SEED").unwrap_or(0);
        // Other words for each target.
        let name =
            target.name().bytes().fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Words(Random::new(name))
    }

    fn bytes(&mut self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes.chunks_exact_mut(8).for_each(|eight| eight.copy_from_slice(&self.0.bits().to_le_bytes()));
        bytes
    }

    /// Random bytes with the fixed bits of a row, of those that `keep` leaves in its first dword.
    fn filling(&mut self, variant: &Variant, keep: u32) -> [u8; BYTES] {
        let mut bytes = self.bytes();
        let kept = keep.to_le_bytes().into_iter().chain(std::iter::repeat(if keep == u32::MAX { 0xff } else { 0 }));
        let fixed = variant.mask.to_le_bytes().into_iter().zip(variant.matches.to_le_bytes());
        for ((byte, (mask, matches)), kept) in bytes.iter_mut().zip(fixed).zip(kept) {
            *byte = *byte & !(mask & kept) | matches & kept;
        }
        bytes
    }

    fn word(&mut self, variants: &[&Variant]) -> [u8; BYTES] {
        let variant = self.0.of(variants);
        match self.0.bits() >> 62 {
            0 => self.bytes(),
            1 => self.filling(variant, FAMILY),
            _ => self.filling(variant, u32::MAX),
        }
    }
}

/// Runs `check` for every target in every wave size that it has, on all cores.
fn for_every_target(check: impl Fn(Target) + Sync) {
    let targets: Vec<Target> = Target::all().filter(|target| target.has_instructions()).flat_map(wave_sizes).collect();
    assert!(!targets.is_empty());
    on_all_cores(&targets, |&target| {
        // The first decoding builds the target's tables, once.
        let _ = isa::decode(target, &[0; BYTES]);
        check(target);
    });
}

fn wave_sizes(target: Target) -> impl Iterator<Item = Target> {
    [32, 64].into_iter().filter_map(move |lanes| target.with_wave_size(lanes))
}

fn name(target: Target) -> String {
    format!("{} wave{}", target.name(), target.wave_size())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The value and the bytes that were allocated for it, freed ones included.
fn allocated<T>(run: impl FnOnce() -> T) -> (T, u64) {
    let mut value = None;
    let info = allocation_counter::measure(|| value = Some(run()));
    (value.expect("it was run"), info.bytes_total)
}

/// Everything that can be asked of an instruction that was decoded from `bytes`.
fn ask(target: Target, bytes: &[u8], inst: &Inst) {
    let what = || format!("{} {} {}", name(target), inst.variant.mnemonic, hex(bytes));
    let size = usize::from(inst.size);
    assert!(size.is_multiple_of(4) && (4..=bytes.len()).contains(&size), "{} has {size} bytes", what());
    let (again, cost) = allocated(|| isa::encode(target, inst));
    let again = again.unwrap_or_else(|error| panic!("{}: {error}", what()));
    assert!(again == bytes[..size], "{} encodes to {}", what(), hex(&again));
    assert!(cost <= ENCODE_BYTES, "{}: encoding allocates {cost} bytes", what());
    let (text, cost) = allocated(|| isa::print(target, inst));
    assert!(!text.is_empty() && text.len() <= TEXT_BYTES, "{} is printed as {text:?}", what());
    assert!(cost <= PRINT_BYTES, "{}: printing allocates {cost} bytes", what());
    for reg in inst.reads().chain(inst.writes()) {
        assert!(exists(target, reg), "{} uses {reg:?}", what());
    }
    let _ = inst.branch_displacement();
}

/// Whether these registers are in their file.
fn exists(target: Target, reg: Reg) -> bool {
    let end = reg.first + u16::from(reg.dwords);
    let registers = match reg.file {
        RegFile::Scalar => 512,
        // A run begins below v256.
        RegFile::Vector if target.has_vgpr_msb() => 256 + u16::from(reg.dwords) - 1,
        RegFile::Vector | RegFile::Accum => 256,
    };
    (1..=MAX_DWORDS).contains(&reg.dwords) && end <= registers
}

#[test]
fn whatever_decodes_encodes_to_itself_and_prints() {
    for_every_target(|target| {
        let words = number("WAVETAP_RANDOM_WORDS").unwrap_or(WORDS) / wave_sizes(target).count() as u64;
        let variants: Vec<&Variant> = isa::variants(target).collect();
        let mut random = Words::of(target);
        let (mut decoded, mut most) = (0, 0);
        for _ in 0..words {
            let bytes = random.word(&variants);
            let (inst, cost) = allocated(|| isa::decode(target, &bytes));
            assert!(cost <= DECODE_BYTES, "{} {}: decoding allocates {cost} bytes", name(target), hex(&bytes));
            most = most.max(cost);
            if let Ok(inst) = inst {
                decoded += 1;
                ask(target, &bytes, &inst);
            }
        }
        println!("{:22} {decoded} of {words} words decode; the costliest allocates {most} bytes", name(target));
        assert!(decoded > words / 20, "{}: only {decoded} of {words} words decode", name(target));
    });
}

#[test]
fn an_instruction_that_is_cut_short_is_an_error() {
    for_every_target(|target| {
        let (mut random, mut likely) = (Words::of(target), fillings::Random::new(1));
        let (mut cut, mut never) = (0, Vec::new());
        for variant in isa::variants(target) {
            let found = (0..ATTEMPTS).find_map(|attempt| {
                // Any bits, or where they seldom mean something, likely ones.
                let bytes = if attempt < ATTEMPTS / 2 {
                    random.filling(variant, u32::MAX).to_vec()
                } else {
                    fillings::filling(&mut likely, variant)
                };
                isa::decode(target, &bytes).ok().filter(|inst| inst.variant == variant).map(|inst| (bytes, inst))
            });
            let Some((bytes, inst)) = found else {
                never.push(variant.mnemonic);
                continue;
            };
            for length in 0..usize::from(inst.size) {
                cut += 1;
                if let Ok(other) = isa::decode(target, &bytes[..length]) {
                    panic!(
                        "{} {}: {length} bytes of {} are {}",
                        name(target),
                        variant.mnemonic,
                        hex(&bytes),
                        isa::print(target, &other)
                    );
                }
            }
        }
        println!("{:22} {cut} pieces", name(target));
        assert!(never.is_empty(), "{}: no random filling decodes to {never:?}", name(target));
    });
}

#[test]
fn what_lies_behind_an_instruction_costs_nothing() {
    for_every_target(|target| {
        for filler in [0x00, 0xff] {
            let mut code = vec![filler; 1 << 20];
            for variant in isa::variants(target) {
                let matches = variant.matches.to_le_bytes();
                code[..matches.len()].copy_from_slice(&matches);
                let (_, cost) = allocated(|| isa::decode(target, &code));
                assert!(cost <= DECODE_BYTES, "{} {}: decoding allocates {cost} bytes", name(target), variant.mnemonic);
            }
        }
    });
}
