//! Whether two orders of workgroups and waves leave the same in memory.

use wavetap_profile::check::{Class, Finding, Output, OutputPage, Severity};

/// Numbers of 32 bits whose places differ by at most so many are the same number with other last bits: a sum of some
/// thousand numbers in another order.
const LAST_BITS: u64 = 1 << 12;
/// The same of 64 bits.
const LAST_BITS_64: u64 = 1 << 20;

/// Where what two runs have left begins to differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference<'o> {
    /// After the same launch.
    Memory(&'o Output),
    /// They have not launched the same kernels, though all before left the same.
    Launches,
}

/// The first difference.
#[must_use]
pub fn first_difference<'o>(one: &'o [Output], other: &[Output]) -> Option<Difference<'o>> {
    for (one, other) in one.iter().zip(other) {
        if (one.launch, &one.kernels) != (other.launch, &other.kernels) {
            return Some(Difference::Launches);
        }
        if one.digest != other.digest {
            return Some(Difference::Memory(one));
        }
    }
    (one.len() != other.len()).then_some(Difference::Launches)
}

/// Memory that two runs have left, as far as both have it.
#[derive(Debug, Clone, Default)]
pub struct TwoOutputs(Vec<(u64, Vec<u8>, Vec<u8>)>);

impl TwoOutputs {
    /// Of pages by rising address; what is not in both is left out.
    #[must_use]
    pub fn new(one: &[OutputPage], other: &[OutputPage]) -> TwoOutputs {
        let both = one.iter().filter_map(|page| {
            let other = other.iter().find(|other| other.address == page.address)?;
            let (one, other) = (bytes(&page.bytes)?, bytes(&other.bytes)?);
            (one.len() == other.len() && one != other).then_some((page.address, one, other))
        });
        TwoOutputs(both.collect())
    }

    /// The address of the first byte that differs.
    #[must_use]
    pub fn first(&self) -> Option<u64> {
        let (address, one, other) = self.0.first()?;
        one.iter().zip(other).position(|(one, other)| one != other).map(|at| address + at as u64)
    }

    /// Elements of so many bytes that differ, both values of each.
    fn elements(&self, size: usize) -> impl Iterator<Item = (&[u8], &[u8])> {
        let pairs = self.0.iter().flat_map(move |(_, one, other)| one.chunks(size).zip(other.chunks(size)));
        pairs.filter(|(one, other)| one != other)
    }

    /// Says what differs, in a finding that has the instruction that wrote the first byte that does. `seed` is that of
    /// the other order.
    pub fn describe(&self, finding: &mut Finding, seed: u64) {
        let Some(access) = &finding.access else { return };
        let size = (access.size as usize).clamp(1, 8);
        let Some((one, other)) = self.elements(size).next() else { return };
        let name = finding.at.as_ref().map(|at| at.instruction.clone()).unwrap_or_default();
        let count = self.elements(size).count();
        let is_close = self.elements(size).all(|(one, other)| is_close(one, other));
        let address = &access.address;
        let more = match count {
            1 => String::new(),
            count => format!("; {count} elements differ"),
        };
        let (one, other) = (value(one, &name, is_close), value(other, &name, is_close));
        let last = if is_close { ", in the last bits only" } else { "" };
        finding.message = format!(
            "{one} in the usual order and {other} with --schedule-seed {seed}{last}{more}: the kernel has left this at \
                {address}"
        );
        finding.severity = if is_close { Severity::Note } else { Class::OrderDependent.severity() };
        if is_close {
            finding.hint = "sums of floating-point numbers have other last bits in another order: add them in a fixed \
                one where results have to be the same each time"
                .to_owned();
        }
    }
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Whether two elements are floating-point numbers that differ in their last bits, as far as their bits tell: normal
/// ones, of one sign, that only few others are between.
fn is_close(one: &[u8], other: &[u8]) -> bool {
    let (bits, other_bits) = (number(one), number(other));
    let is_normal = |bits: u64| match one.len() {
        4 => f32::from_bits(bits as u32).is_normal(),
        8 => f64::from_bits(bits).is_normal(),
        _ => false,
    };
    // Whole numbers of a program are mostly small, and would be floating-point numbers next to nothing.
    let is_usual = |bits: u64| match one.len() {
        4 => (1e-18..1e18).contains(&f32::from_bits(bits as u32).abs()),
        _ => (1e-100..1e100).contains(&f64::from_bits(bits).abs()),
    };
    let most = if one.len() == 8 { LAST_BITS_64 } else { LAST_BITS };
    is_normal(bits)
        && is_normal(other_bits)
        && is_usual(bits)
        && is_usual(other_bits)
        && bits.abs_diff(other_bits) <= most
}

/// An element as what the instruction that wrote it takes it for.
fn value(bytes: &[u8], instruction: &str, is_float: bool) -> String {
    let bits = number(bytes);
    match bytes.len() {
        4 if is_float || instruction.ends_with("_f32") => format!("{:?}", f32::from_bits(bits as u32)),
        8 if is_float || instruction.ends_with("_f64") => format!("{:?}", f64::from_bits(bits)),
        _ => format!("{bits} ({bits:#x})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_profile::check::{Access, AccessKind};

    fn output(launch: u64, kernel: &str, digest: u64) -> Output {
        Output { launch, kernels: vec![kernel.to_owned()], digest }
    }

    #[test]
    fn the_first_difference_is_named() {
        let usual = [output(1, "a", 5), output(2, "b", 6)];
        assert_eq!(first_difference(&usual, &usual), None);
        assert_eq!(first_difference(&usual, &usual[..1]), Some(Difference::Launches));
        let other = [output(1, "a", 5), output(2, "b", 7)];
        assert_eq!(first_difference(&usual, &other), Some(Difference::Memory(&usual[1])));
        assert_eq!(first_difference(&usual, &[output(1, "c", 5)]), Some(Difference::Launches));
    }

    fn described(one: &[u32], other: &[u32]) -> Finding {
        let page = |words: &[u32]| {
            let bytes = words.iter().flat_map(|word| word.to_le_bytes()).map(|byte| format!("{byte:02x}")).collect();
            OutputPage { address: 0x1000, bytes }
        };
        let two = TwoOutputs::new(&[page(one)], &[page(other)]);
        let mut finding = Finding::new(Class::OrderDependent, "");
        let address = format!("{:#x}", two.first().expect("they differ"));
        finding.access = Some(Access { kind: AccessKind::Store, address, size: 4 });
        two.describe(&mut finding, 3);
        finding
    }

    #[test]
    fn last_bits_are_a_note_and_other_values_are_not() {
        let sum = 1000.5f32.to_bits();
        let close = described(&[7, sum], &[7, sum + 2]);
        assert_eq!(close.severity, Severity::Note);
        assert!(
            close.message.starts_with("1000.5 in the usual order and 1000.5001 with --schedule-seed 3, in the last")
        );
        let far = described(&[1, 2, sum], &[2, 1, sum + 1]);
        assert_eq!(far.severity, Severity::Warning);
        assert!(far.message.contains("1 (0x1) in the usual order and 2 (0x2)"), "{}", far.message);
        assert!(far.message.contains("3 elements differ") && far.message.ends_with("at 0x1000"), "{}", far.message);
        // Of another sign.
        assert_eq!(described(&[sum], &[sum | 1 << 31]).severity, Severity::Warning);
    }
}
