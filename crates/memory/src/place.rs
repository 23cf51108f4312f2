//! What the lanes of a wave access together, what that looks like, and what it costs.
//!
//! An address is affine in values that the code does not have: `offset(lane) + sum of factor(lane) * symbol`, where a
//! symbol is the same in all lanes ([`LaneSum`]). Lanes with the same factors differ by known numbers: they are a row,
//! and its lines follow from the offsets and from how many low bits of the rest are 0 (alignment). The distance of two
//! rows is unknown. So the bounds are: `least`, the largest minimum of a row, as rows may share their lines; `most`,
//! the sum of the maxima, as they may share none; `likely`, the sum of the minima. Every address that the emulator sees
//! is within these bounds, which a test checks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use wavetap_amdgpu::{LdsCycles, LdsOperation, Target};
use wavetap_analysis::dataflow::{LaneSum, Term};

/// Where the lanes of a wave go with one address each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The addresses, modulo 2^32.
    pub address: Result<LaneSum, Unknown>,
    /// Bytes at each.
    pub bytes: u32,
    /// The lanes that do: at first those that are work-items.
    pub lanes: u64,
    /// Bytes by which it moves in each round of a loop, if that is a number in the code.
    pub step: Option<i64>,
    /// The pointer that it is an offset from: its place among the kernel's arguments, in bytes.
    pub argument: Option<u32>,
}

/// Why it is not known how the lanes' addresses lie to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unknown {
    /// They depend on values that vector instructions have loaded.
    Loaded,
    /// Lanes differ by a product of numbers that are not in the code.
    Stride,
    /// Lanes took different ways to it, or rounds of a loop move them differently.
    Paths,
    /// They are made by an operation that is not followed, or in registers that a caller has set.
    Operation,
}

/// What an access of a wave looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// All lanes access the same place.
    Uniform,
    /// What lanes access lies next to each other, in whatever order, and begins where a line does; or it is not known
    /// where it begins.
    Coalesced,
    /// The same, and it does not begin where a line does.
    Misaligned,
    /// The same as coalesced, from the last lane to the first.
    Reversed,
    /// Each lane accesses a place of its own, with something between.
    Strided,
    /// Runs of lanes access what lies next to each other, with something between the runs.
    Rows,
    /// The addresses depend on values that were loaded.
    Indirect,
    /// Nothing is known.
    Unknown,
}

/// Lines that a wave accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lines {
    /// At least so many.
    pub least: u32,
    /// At most so many.
    pub most: u32,
    /// So many if all rows of lanes begin where it is best, and lie apart.
    pub likely: u32,
    /// So many if all its bytes were next to each other.
    pub ideal: u32,
}

/// Bytes of a bank's word.
const WORD: i64 = 4;

/// Lanes whose places differ by what is known.
struct Row {
    offsets: Vec<i64>,
    /// So many of the lowest bits of what is added to all of them are 0.
    zeros: u32,
}

impl Place {
    /// The lanes, by what is known of how they lie to each other.
    fn rows(&self, address: &LaneSum) -> Vec<Row> {
        let (differing, same): (Vec<&Term>, Vec<&Term>) = address.terms.iter().partition(|term| !term.is_uniform());
        let zeros = same.iter().map(|term| term.low_zeros()).min().unwrap_or(i32::BITS);
        // By what the symbols are multiplied by whose products differ from lane to lane: which row.
        let mut numbers: BTreeMap<Vec<i32>, usize> = BTreeMap::new();
        let mut rows: Vec<Row> = Vec::new();
        for lane in self.each_lane() {
            let factors: Vec<i32> = differing.iter().map(|term| term.factor.lane(lane)).collect();
            let offset = i64::from(address.offsets.lane(lane));
            match numbers.get(&factors) {
                Some(&row) => rows[row].offsets.push(offset),
                None => {
                    let low = |(term, factor): (&&Term, &i32)| term.zeros.saturating_add(factor.trailing_zeros());
                    let zeros = differing.iter().zip(&factors).map(low).fold(zeros, u32::min);
                    numbers.insert(factors, rows.len());
                    rows.push(Row { offsets: vec![offset], zeros });
                }
            }
        }
        rows
    }

    /// Lines of so many bytes that the wave accesses; none if nothing is known of its addresses.
    ///
    /// # Panics
    /// If `line` is not a power of two.
    #[must_use]
    pub fn lines(&self, line: u32) -> Option<Lines> {
        assert!(line.is_power_of_two(), "{line}");
        let rows = self.rows(self.address.as_ref().ok()?);
        let mut lines = Lines { least: 0, most: 0, likely: 0, ideal: 0 };
        let mut distinct = 0;
        for row in &rows {
            // Rows may be in the same lines, but for all that is known they are not.
            let (least, most) = row.lines(self.bytes, line);
            lines.least = lines.least.max(least);
            lines.most += most;
            lines.likely += least;
            distinct += row.distinct(self.bytes);
        }
        lines.ideal = u32::try_from(distinct.div_ceil(line.into())).unwrap_or(u32::MAX);
        Some(lines)
    }

    /// Bytes that some lane accesses, as far as it is known that lanes access the same; none if nothing is known.
    #[must_use]
    pub fn distinct_bytes(&self) -> Option<u64> {
        let rows = self.rows(self.address.as_ref().ok()?);
        Some(rows.iter().map(|row| row.distinct(self.bytes)).sum())
    }

    /// What LDS does with it on a target; none if the addresses are not known up to what is added to all of them, a
    /// multiple of four bytes.
    #[must_use]
    pub fn banks(&self, target: Target, operation: LdsOperation) -> Option<LdsCycles> {
        let address = self.address.as_ref().ok()?;
        let rows = self.rows(address);
        let [row] = rows.as_slice() else { return None };
        let least = row.offsets.iter().copied().min()?.div_euclid(WORD) * WORD;
        // What is added turns the banks, whatever it is.
        let mut addresses = [0; u64::BITS as usize];
        for (lane, offset) in self.each_lane().zip(&row.offsets) {
            addresses[lane] = (offset - least).unsigned_abs();
        }
        (row.zeros >= WORD.trailing_zeros()).then(|| target.lds_cycles(operation, self.bytes, &addresses, self.lanes))
    }

    /// What it looks like to a cache with such lines.
    #[must_use]
    pub fn category(&self, line: u32) -> Category {
        let address = match &self.address {
            Ok(address) => address,
            Err(Unknown::Loaded) => return Category::Indirect,
            Err(_) => return Category::Unknown,
        };
        let rows = self.rows(address);
        if rows.len() > 1 {
            let alone = rows.iter().all(|row| row.offsets.iter().all(|offset| *offset == row.offsets[0]));
            return if alone { Category::Strided } else { Category::Rows };
        }
        let bytes = i64::from(self.bytes);
        let Some(row) = rows.first() else { return Category::Unknown };
        let strides: Vec<i64> = row.offsets.windows(2).map(|pair| pair[1] - pair[0]).collect();
        if strides.iter().all(|stride| *stride == 0) {
            return Category::Uniform;
        }
        if row.gaps(self.bytes) == 0 {
            let lines = row.lines(self.bytes, line);
            return match () {
                () if lines.0 == lines.1 && u64::from(lines.0) > row.distinct(self.bytes).div_ceil(line.into()) => {
                    Category::Misaligned
                }
                () if strides.iter().all(|stride| *stride < 0) => Category::Reversed,
                () => Category::Coalesced,
            };
        }
        let near = strides.iter().filter(|stride| stride.abs() <= bytes).count();
        if near > 0 { Category::Rows } else { Category::Strided }
    }

    /// Bytes from each lane to the next; none if that is not one number.
    #[must_use]
    pub fn stride(&self) -> Option<i64> {
        let address = self.address.as_ref().ok()?;
        let offsets: Vec<i64> = self.each_lane().map(|lane| i64::from(address.offsets.lane(lane))).collect();
        let mut strides = offsets.windows(2).map(|pair| pair[1] - pair[0]);
        let stride = strides.next().unwrap_or(0);
        (address.terms.iter().all(Term::is_uniform) && strides.all(|other| other == stride)).then_some(stride)
    }

    fn each_lane(&self) -> impl Iterator<Item = usize> + use<> {
        let lanes = self.lanes;
        (0..u64::BITS as usize).filter(move |lane| lanes >> lane & 1 != 0)
    }

    /// Whether it is known in which lines the wave's bytes are, apart from what is a multiple of a line.
    #[must_use]
    pub fn is_exact(&self, line: u32) -> bool {
        self.lines(line).is_some_and(|lines| lines.least == lines.most)
    }

    /// Bytes from one lane's address to another's, modulo 2^32, where that is a number: to compare with addresses that
    /// were seen.
    #[must_use]
    pub fn between(&self, from: usize, to: usize) -> Option<i32> {
        let address = self.address.as_ref().ok()?;
        let same = |term: &Term| term.factor.lane(to) == term.factor.lane(from);
        let offset = |lane| address.offsets.lane(lane);
        address.terms.iter().all(same).then(|| offset(to).wrapping_sub(offset(from)))
    }
}

impl Row {
    /// The fewest and the most lines, over all places where it may begin.
    fn lines(&self, bytes: u32, line: u32) -> (u32, u32) {
        let step = 1_i64 << self.zeros.min(line.trailing_zeros());
        let (mut least, mut most) = (u32::MAX, 0);
        for begin in (0..i64::from(line)).step_by(step.unsigned_abs() as usize) {
            let lines = count_lines(self.offsets.iter().map(|offset| offset + begin), bytes, line);
            (least, most) = (least.min(lines), most.max(lines));
        }
        (least, most)
    }

    /// Bytes that some lane accesses.
    fn distinct(&self, bytes: u32) -> u64 {
        let mut offsets = self.offsets.clone();
        offsets.sort_unstable();
        let (mut distinct, mut end) = (0, i64::MIN);
        for offset in offsets {
            distinct += (offset + i64::from(bytes) - offset.max(end)).max(0).unsigned_abs();
            end = end.max(offset + i64::from(bytes));
        }
        distinct
    }

    /// Bytes between the first and the last that no lane accesses.
    fn gaps(&self, bytes: u32) -> u64 {
        let (Some(first), Some(last)) = (self.offsets.iter().min(), self.offsets.iter().max()) else { return 0 };
        (last - first).unsigned_abs() + u64::from(bytes) - self.distinct(bytes)
    }
}

/// Lines of so many bytes that lanes access which read or write so many bytes at these addresses.
pub fn count_lines(addresses: impl Iterator<Item = i64>, bytes: u32, line: u32) -> u32 {
    let line = i64::from(line);
    let span = |address: i64| address.div_euclid(line)..=(address + i64::from(bytes.max(1)) - 1).div_euclid(line);
    let mut lines: Vec<i64> = addresses.flat_map(span).collect();
    lines.sort_unstable();
    lines.dedup();
    lines.len() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(bytes: u32, function: impl Fn(i32) -> i32) -> Place {
        let address = Ok(LaneSum::lanes((0..64).map(function)));
        Place { address, bytes, lanes: u64::MAX, step: None, argument: None }
    }

    fn seen(place: &Place, line: u32) -> (Category, u32, u32) {
        let lines = place.lines(line).expect("known");
        assert!(place.is_exact(line));
        (place.category(line), lines.least, lines.ideal)
    }

    #[test]
    fn what_one_dimension_looks_like() {
        assert_eq!(seen(&place(4, |lane| 4 * lane), 64), (Category::Coalesced, 4, 4));
        assert_eq!(seen(&place(4, |lane| 4 * lane + 4), 64), (Category::Misaligned, 5, 4));
        assert_eq!(seen(&place(4, |lane| 4 * lane + 64), 128), (Category::Misaligned, 3, 2));
        assert_eq!(seen(&place(4, |lane| 4 * (63 - lane)), 64), (Category::Reversed, 4, 4));
        assert_eq!(seen(&place(4, |_| 8), 64), (Category::Uniform, 1, 1));
        assert_eq!(seen(&place(4, |lane| 256 * lane), 64), (Category::Strided, 64, 4));
        assert_eq!(seen(&place(4, |lane| -8 * lane), 64), (Category::Strided, 9, 4));
        // Overlapping: 260 bytes; and lanes in another order.
        assert_eq!(seen(&place(8, |lane| 4 * lane), 64), (Category::Coalesced, 5, 5));
        assert_eq!(seen(&place(4, |lane| 4 * (lane ^ 5)), 64), (Category::Coalesced, 4, 4));
        assert_eq!((place(4, |lane| 8 * lane).stride(), place(4, |lane| lane / 2).stride()), (Some(8), None));
    }

    #[test]
    fn what_rows_look_like() {
        let rows = place(4, |lane| lane % 16 * 4 + lane / 16 * 4096);
        assert_eq!(seen(&rows, 64), (Category::Rows, 4, 4));
        assert_eq!(seen(&rows, 128), (Category::Rows, 4, 2));
        let columns = place(4, |lane| lane % 16 * 4096 + lane / 16 * 4);
        assert_eq!(seen(&columns, 64), (Category::Strided, 16, 4));
    }

    #[test]
    fn lanes_that_are_no_work_items_do_not_count() {
        let few = Place { lanes: (1 << 30) - 1, ..place(4, |lane| 4 * lane) };
        assert_eq!(seen(&few, 64), (Category::Coalesced, 2, 2));
    }

    #[test]
    fn what_is_not_known_of_an_address_matters_below_a_line() {
        let lines = count_lines((0..64).map(|lane| 4 * lane - 4), 4, 64);
        assert_eq!(lines, 5, "below 0, too");
        let gfx90a = Target::by_name("gfx90a").expect("a target");
        assert_eq!(place(4, |lane| 128 * lane).banks(gfx90a, LdsOperation::Read).map(|lds| lds.ways), Some(32));
        assert_eq!(place(4, |lane| 132 * lane).banks(gfx90a, LdsOperation::Read).map(|lds| lds.conflicts), Some(0));
    }

    #[test]
    fn what_was_loaded_is_indirect() {
        let loaded = Place { address: Err(Unknown::Loaded), ..place(4, |_| 0) };
        assert_eq!((loaded.category(64), loaded.lines(64)), (Category::Indirect, None));
        assert_eq!(Place { address: Err(Unknown::Paths), ..loaded }.category(64), Category::Unknown);
    }
}
