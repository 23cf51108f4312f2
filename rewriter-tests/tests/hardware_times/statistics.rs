//! Errors of several rows.

use rewriter_tests::Failure;

/// What is said of the errors of rows.
pub struct Errors {
    pub rows: usize,
    pub mean: f64,
    pub median: f64,
    /// The share of rows that are at most a quarter off.
    pub near: f64,
}

impl Errors {
    /// Of modelled by measured, minus 1.
    pub fn of(errors: &[f64]) -> Option<Errors> {
        let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let count = sizes.len();
        let (lower, upper) = (sizes.get(count.checked_sub(1)? / 2)?, sizes.get(count / 2)?);
        Some(Errors {
            rows: count,
            mean: sizes.iter().sum::<f64>() / count as f64,
            median: f64::midpoint(*lower, *upper),
            near: sizes.iter().filter(|size| **size <= 0.25).count() as f64 / count as f64,
        })
    }
}

/// Spearman's rank correlation; none of fewer than three pairs or where one side is all the same.
pub fn rank_correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    if pairs.len() < 3 {
        return None;
    }
    let first = ranks(&pairs.iter().map(|pair| pair.0).collect::<Vec<_>>());
    let second = ranks(&pairs.iter().map(|pair| pair.1).collect::<Vec<_>>());
    let middle = (pairs.len() as f64 + 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle)).sum() };
    let both = (product(&first, &first) * product(&second, &second)).sqrt();
    (both > 0.0).then(|| product(&first, &second) / both)
}

/// From 1 on; equal values have the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count() as f64;
        let equal = values.iter().filter(|other| *other == value).count() as f64;
        below + (equal + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

/// Numbers that were worked out by hand.
pub fn checked() -> Result<(), Failure> {
    let errors = Errors::of(&[0.1, -0.3, 0.2, -0.8]).ok_or("four errors")?;
    let is = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
    let right = is(errors.mean, 0.35) && is(errors.median, 0.25) && is(errors.near, 0.5) && errors.rows == 4;
    let same = rank_correlation(&[(1.0, 10.0), (2.0, 30.0), (3.0, 40.0)]).is_some_and(|found| is(found, 1.0));
    // d = 0, -1, 1: 1 - 6 * 2 / (3 * 8).
    let half = rank_correlation(&[(1.0, 1.0), (2.0, 3.0), (3.0, 2.0)]).is_some_and(|found| is(found, 0.5));
    let none = rank_correlation(&[(1.0, 1.0), (2.0, 1.0), (3.0, 1.0)]).is_none() && Errors::of(&[]).is_none();
    if right && same && half && none { Ok(()) } else { Err("other statistics than worked out by hand".into()) }
}
