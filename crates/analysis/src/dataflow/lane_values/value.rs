//! A 32-bit value in each lane of a wave.

use std::rc::Rc;

/// Terms that are kept apart; of more, only their sum is known to be something.
const MOST_TERMS: usize = 6;

/// A value that is the same in all lanes of a wave and that is not in the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol {
    pub(super) def: u32,
    /// Which register, in a [`super::super::RegSet`].
    pub(super) position: u16,
}

/// A symbol, times a number: the same in all lanes, or one for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// The symbol.
    pub symbol: Symbol,
    /// By which it is multiplied.
    pub factor: Offsets,
    /// So many of the lowest bits of the symbol are 0, at least.
    pub zeros: u32,
}

impl Term {
    /// So many of the lowest bits of the product are 0 in all lanes, at least.
    #[must_use]
    pub fn low_zeros(&self) -> u32 {
        self.zeros.saturating_add(self.factor.low_zeros()).min(i32::BITS)
    }

    /// Whether the product is the same in all lanes.
    #[must_use]
    pub fn is_uniform(&self) -> bool {
        matches!(self.factor, Offsets::Same(_))
    }

    fn is_zero(&self) -> bool {
        self.factor == Offsets::Same(0)
    }
}

/// A number for each lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offsets {
    /// All the same.
    Same(i32),
    /// By lane.
    Each(Rc<[i32]>),
}

impl Offsets {
    /// By lane, in the shortest form.
    pub(super) fn of(lanes: impl Iterator<Item = i32>) -> Offsets {
        let lanes: Rc<[i32]> = lanes.collect();
        match lanes.split_first() {
            Some((first, rest)) if rest.iter().all(|lane| lane == first) => Offsets::Same(*first),
            Some(_) => Offsets::Each(lanes),
            None => Offsets::Same(0),
        }
    }

    /// The number of one lane.
    #[must_use]
    pub fn lane(&self, lane: usize) -> i32 {
        match self {
            Offsets::Same(value) => *value,
            Offsets::Each(lanes) => lanes.get(lane).copied().unwrap_or_default(),
        }
    }

    fn map(&self, function: impl Fn(i32) -> i32) -> Offsets {
        match self {
            Offsets::Same(value) => Offsets::Same(function(*value)),
            Offsets::Each(lanes) => Offsets::of(lanes.iter().map(|lane| function(*lane))),
        }
    }

    fn zip(&self, other: &Offsets, function: impl Fn(i32, i32) -> i32) -> Offsets {
        match (self, other) {
            (Offsets::Same(a), Offsets::Same(b)) => Offsets::Same(function(*a, *b)),
            (Offsets::Each(a), _) => Offsets::of((0..a.len()).map(|lane| function(a[lane], other.lane(lane)))),
            (_, Offsets::Each(b)) => Offsets::of((0..b.len()).map(|lane| function(self.lane(lane), b[lane]))),
        }
    }

    fn all(&self, test: impl Fn(i32) -> bool) -> bool {
        match self {
            Offsets::Same(value) => test(*value),
            Offsets::Each(lanes) => lanes.iter().all(|lane| test(*lane)),
        }
    }

    /// So many of the lowest bits are 0 in all lanes, at least.
    fn low_zeros(&self) -> u32 {
        match self {
            Offsets::Same(value) => value.trailing_zeros(),
            Offsets::Each(lanes) => lanes.iter().map(|lane| lane.trailing_zeros()).min().unwrap_or(i32::BITS),
        }
    }

    /// What lanes have more than the first one, and what that one has.
    fn split(&self) -> (Offsets, i32) {
        let first = self.lane(0);
        (self.map(|value| value.wrapping_sub(first)), first)
    }
}

/// A number for each lane, and a sum of symbols, each times a number or one for each lane: modulo 2^32.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneSum {
    /// What is known, by lane.
    pub offsets: Offsets,
    /// What is added, by symbol; none that is 0 in all lanes.
    pub terms: Vec<Term>,
}

/// Why nothing is known of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Opaque {
    /// It was loaded, or made from what was loaded.
    Loaded,
    /// Lanes differ by a product of numbers that are not in the code.
    Stride,
    /// Lanes took different ways to it, or rounds of a loop move them differently.
    Paths,
    /// An operation that is not followed made it.
    Operation,
}

/// A value of a register in each lane of a wave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaneValue {
    /// So much is known.
    Sum(LaneSum),
    /// Nothing is.
    Opaque(Opaque),
}

impl LaneSum {
    /// The same number in all lanes.
    #[must_use]
    pub fn number(value: i32) -> LaneSum {
        LaneSum { offsets: Offsets::Same(value), terms: Vec::new() }
    }

    /// A number for each lane.
    #[must_use]
    pub fn lanes(lanes: impl Iterator<Item = i32>) -> LaneSum {
        LaneSum { offsets: Offsets::of(lanes), terms: Vec::new() }
    }

    pub(super) fn symbol(symbol: Symbol, zeros: u32) -> LaneSum {
        LaneSum { offsets: Offsets::Same(0), terms: vec![Term { symbol, factor: Offsets::Same(1), zeros }] }
    }

    /// Whether it is the same in all lanes.
    #[must_use]
    pub fn is_uniform(&self) -> bool {
        matches!(self.offsets, Offsets::Same(_)) && self.terms.iter().all(Term::is_uniform)
    }

    /// Whether it is known in each lane.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.terms.is_empty()
    }

    /// The number that it is in all lanes.
    #[must_use]
    pub fn constant(&self) -> Option<i32> {
        match self.offsets {
            Offsets::Same(value) if self.terms.is_empty() => Some(value),
            _ => None,
        }
    }

    /// So many of the lowest bits of what is not known are 0, at least.
    #[must_use]
    pub fn unknown_zeros(&self) -> u32 {
        self.terms.iter().map(Term::low_zeros).min().unwrap_or(i32::BITS)
    }

    /// So many of the lowest bits are 0 in all lanes, at least.
    pub(super) fn low_zeros(&self) -> u32 {
        self.offsets.low_zeros().min(self.unknown_zeros())
    }

    /// The sum.
    #[must_use]
    pub fn plus(&self, other: &LaneSum) -> LaneSum {
        let mut terms = self.terms.clone();
        for term in &other.terms {
            match terms.iter_mut().find(|known| known.symbol == term.symbol) {
                Some(known) => known.factor = known.factor.zip(&term.factor, i32::wrapping_add),
                None => terms.push(term.clone()),
            }
        }
        terms.retain(|term| !term.is_zero());
        terms.sort_unstable_by_key(|term| term.symbol);
        LaneSum { offsets: self.offsets.zip(&other.offsets, i32::wrapping_add), terms }
    }

    /// Times a number.
    #[must_use]
    pub fn by(&self, number: i32) -> LaneSum {
        self.times(&Offsets::Same(number))
    }

    /// What a function makes of what is known.
    #[must_use]
    pub fn map_offsets(&self, function: impl Fn(i32) -> i32) -> LaneSum {
        LaneSum { offsets: self.offsets.map(function), terms: Vec::new() }
    }

    /// Times a number for each lane.
    fn times(&self, numbers: &Offsets) -> LaneSum {
        let product = |term: &Term| Term { factor: term.factor.zip(numbers, i32::wrapping_mul), ..term.clone() };
        let terms = self.terms.iter().map(product).filter(|term| !term.is_zero()).collect();
        LaneSum { offsets: self.offsets.zip(numbers, i32::wrapping_mul), terms }
    }

    /// The product, and so many of the lowest bits of what is the same in all lanes and still missing are 0; none if
    /// nothing is missing. No product at all if lanes differ in it by what is not in the code in both.
    pub(super) fn product(&self, other: &LaneSum) -> Option<(LaneSum, Option<u32>)> {
        if other.is_known() {
            return Some((self.times(&other.offsets), None));
        }
        if self.is_known() {
            return Some((other.times(&self.offsets), None));
        }
        let (uniform, lanes) = match (self.is_uniform(), other.is_uniform()) {
            (true, _) => (self, other),
            (false, true) => (other, self),
            (false, false) => return None,
        };
        let (differ, first) = lanes.split();
        differ.is_known().then(|| {
            let zeros = uniform.low_zeros() + first.low_zeros();
            (uniform.times(&differ.offsets), Some(zeros.min(i32::BITS)))
        })
    }

    /// The difference.
    #[must_use]
    pub fn minus(&self, other: &LaneSum) -> LaneSum {
        self.plus(&other.by(-1))
    }

    /// Whether it is known, not negative, and has no bit but the lowest so many.
    pub(super) fn is_below(&self, bits: u32) -> bool {
        self.is_known() && self.fits(bits)
    }

    /// Whether too much is summed up to be of use.
    pub(super) fn has_too_many_terms(&self) -> bool {
        self.terms.len() > MOST_TERMS
    }

    /// Whether what is known is not negative and has no bit but the lowest so many.
    fn fits(&self, bits: u32) -> bool {
        bits >= i32::BITS - 1 && self.offsets.all(|value| value >= 0)
            || self.offsets.all(|value| value >= 0 && value < 1 << bits.min(i32::BITS - 2))
    }

    /// What a function of both makes in each lane, where both are known.
    pub(super) fn exactly(&self, other: &LaneSum, function: impl Fn(u32, u32) -> u32) -> Option<LaneSum> {
        (self.is_known() && other.is_known()).then(|| LaneSum {
            offsets: self
                .offsets
                .zip(&other.offsets, |a, b| function(a.cast_unsigned(), b.cast_unsigned()).cast_signed()),
            terms: Vec::new(),
        })
    }

    /// A function that treats each bit by itself, and of which `f(a, 0) = a`: `|`, `^`. What is not known of one has to
    /// lie above all bits of the other.
    pub(super) fn bitwise(&self, other: &LaneSum, function: impl Fn(u32, u32) -> u32) -> Option<LaneSum> {
        if let Some(known) = self.exactly(other, &function) {
            return Some(known);
        }
        let (unknown, known) = match (self.is_known(), other.is_known()) {
            (false, true) => (self, other),
            (true, false) => (other, self),
            _ => return None,
        };
        let zeros = unknown.unknown_zeros();
        (unknown.fits(zeros) && known.fits(zeros)).then(|| LaneSum {
            offsets: unknown
                .offsets
                .zip(&known.offsets, |a, b| function(a.cast_unsigned(), b.cast_unsigned()).cast_signed()),
            terms: unknown.terms.clone(),
        })
    }

    /// `self & mask`: exact for low bits below all that is not known; and what clears low bits alone.
    pub(super) fn masked(&self, mask: u32) -> Option<LaneSum> {
        let and = |value: i32| (value.cast_unsigned() & mask).cast_signed();
        let zeros = self.unknown_zeros();
        if zeros >= u32::BITS || mask >> zeros == 0 {
            // What is not known has none of these bits.
            return Some(LaneSum { offsets: self.offsets.map(and), terms: Vec::new() });
        }
        // All bits above are kept.
        (mask >> zeros == u32::MAX >> zeros && self.fits(zeros))
            .then(|| LaneSum { offsets: self.offsets.map(and), terms: self.terms.clone() })
    }

    /// `self >> bits`, as if nothing had wrapped around. Nothing if a bit of what is not known would be lost.
    pub(super) fn right(&self, bits: u32, signed: bool) -> Option<LaneSum> {
        if self.is_known() {
            let shift = |value: i32| if signed { value >> bits } else { (value.cast_unsigned() >> bits).cast_signed() };
            return Some(LaneSum { offsets: self.offsets.map(shift), terms: Vec::new() });
        }
        // Only of factors is it known that they are multiples.
        let divides = self.terms.iter().all(|term| term.factor.low_zeros() >= bits);
        let shifted = |term: &Term| Term { factor: term.factor.map(|factor| factor >> bits), ..term.clone() };
        let terms = self.terms.iter().map(shifted).collect();
        (divides && self.offsets.all(|value| value >= 0))
            .then(|| LaneSum { offsets: self.offsets.map(|value| value >> bits), terms })
    }

    /// What lanes have more than the first one, and what that one has.
    pub(super) fn split(&self) -> (LaneSum, LaneSum) {
        let (offsets, first) = self.offsets.split();
        let mut lanes = LaneSum { offsets, terms: Vec::new() };
        let mut same = LaneSum::number(first);
        for term in &self.terms {
            let (factor, first) = term.factor.split();
            lanes.terms.push(Term { factor, ..term.clone() });
            same.terms.push(Term { factor: Offsets::Same(first), ..term.clone() });
        }
        lanes.terms.retain(|term| !term.is_zero());
        same.terms.retain(|term| !term.is_zero());
        (lanes, same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const U: Symbol = Symbol { def: 7, position: 1 };

    fn lanes(function: impl Fn(i32) -> i32) -> LaneSum {
        LaneSum::lanes((0..64).map(function))
    }

    fn unknown(factor: i32) -> LaneSum {
        LaneSum::symbol(U, 0).by(factor)
    }

    #[test]
    fn sums_forget_what_cancels_out() {
        let sum = lanes(|lane| lane).plus(&unknown(256)).plus(&LaneSum::number(5));
        assert_eq!((sum.offsets.lane(3), sum.unknown_zeros(), sum.low_zeros()), (8, 8, 0));
        assert_eq!(sum.minus(&unknown(256)).minus(&LaneSum::number(5)), lanes(|lane| lane));
        assert_eq!(lanes(|lane| 4 * lane).minus(&lanes(|lane| 4 * lane - 8)).constant(), Some(8));
    }

    #[test]
    fn bits_below_what_is_not_known_are_exact() {
        let sum = lanes(|lane| lane).plus(&unknown(64));
        assert_eq!(sum.masked(31), Some(lanes(|lane| lane & 31)));
        assert_eq!(sum.masked(63), Some(lanes(|lane| lane)));
        assert_eq!(sum.masked(127), None, "bit 6 is not known");
        assert_eq!(sum.masked(!7), Some(lanes(|lane| lane & !7).plus(&unknown(64))));
        let xor = |a: u32, b: u32| a ^ b;
        assert_eq!(sum.bitwise(&LaneSum::number(5), xor), Some(lanes(|lane| lane ^ 5).plus(&unknown(64))));
        assert_eq!(sum.bitwise(&LaneSum::number(64), xor), None);
        assert_eq!(lanes(|lane| lane).bitwise(&unknown(64), |a, b| a | b), Some(sum.clone()));
        assert_eq!(lanes(|lane| lane).bitwise(&unknown(32), |a, b| a | b), None);
    }

    #[test]
    fn products_of_lanes_and_what_is_not_known() {
        let pitch = LaneSum::symbol(Symbol { def: 8, position: 1 }, 2);
        let row = lanes(|lane| lane / 16);
        let (sum, rest) = row.product(&pitch).expect("a product");
        assert_eq!((sum.terms[0].factor.lane(40), sum.low_zeros(), rest), (2, 2, None));
        let (sum, rest) = row.plus(&unknown(16)).product(&pitch).expect("a product");
        assert_eq!((sum.terms.len(), sum.terms[0].factor.lane(40), rest), (1, 2, Some(6)));
        assert_eq!(sum.plus(&lanes(|lane| lane)).split().0.terms, sum.terms);
        assert_eq!(sum.minus(&sum), LaneSum::number(0));
        assert_eq!(sum.product(&sum), None);
    }

    #[test]
    fn quotients_by_powers_of_two() {
        let sum = lanes(|lane| lane).plus(&unknown(64));
        assert_eq!(sum.right(5, false), Some(lanes(|lane| lane >> 5).plus(&unknown(2))));
        assert_eq!(sum.right(7, false), None);
        assert_eq!(lanes(|lane| lane - 32).right(4, true), Some(lanes(|lane| (lane - 32) >> 4)));
        assert_eq!(lanes(|lane| lane - 32).plus(&unknown(64)).right(4, true), None, "it may be negative");
    }
}
