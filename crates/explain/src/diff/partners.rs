//! Which line of one build is which of another: files may be in other folders, and lines may have moved.
//!
//! Lines are partners if they have a site of one kernel, kind and operation in common and are the same distance apart
//! as others: first the distance that most lines agree on, the smallest if several do; then, for lines that were left,
//! the next one that at least two agree on, as long as their order stays. What an edit moves together stays together; a
//! line by itself has no partner elsewhere.

use std::collections::{BTreeMap, BTreeSet};

/// A line: its file, and its number in it.
pub(super) type Line = (String, u32);

/// What a line has: of each of its sites the kernel with the kind of site, and the operation.
pub(super) type LineSites = BTreeMap<Line, BTreeSet<(String, String)>>;

/// Lines with one distance have to be at least so many, unless they did not move.
const AGREEING: u64 = 2;
/// Pairs of lines of a file that are looked at; of a file with more lines none is taken to have moved.
const MOST_PAIRS: usize = 1 << 22;
/// Distances of one file; what has moved in more ways has no partner.
const MOST_MOVES: usize = 64;

/// The new line of each old one that has one.
pub(super) fn partners(old: &LineSites, new: &LineSites) -> BTreeMap<Line, Line> {
    let mut all = BTreeMap::new();
    for (old_file, new_file) in files(old, new) {
        let (before, after) = (of_file(old, &old_file), of_file(new, &new_file));
        for (from, to) in lines(&before, &after) {
            all.insert((old_file.clone(), from), (new_file.clone(), to));
        }
    }
    all
}

/// Files by name; those that are left by the last component of their name, if only one on each side has it.
fn files(old: &LineSites, new: &LineSites) -> Vec<(String, String)> {
    let names = |lines: &LineSites| -> BTreeSet<String> { lines.keys().map(|(file, _)| file.clone()).collect() };
    let (before, after) = (names(old), names(new));
    let mut pairs: Vec<(String, String)> =
        before.intersection(&after).map(|file| (file.clone(), file.clone())).collect();
    let last = |file: &str| file.rsplit('/').next().unwrap_or_default().to_owned();
    let by_last = |files: Vec<&String>| {
        let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
        files.into_iter().for_each(|file| all.entry(last(file)).or_default().push(file.clone()));
        all
    };
    let left = by_last(before.difference(&after).collect());
    let right = by_last(after.difference(&before).collect());
    for (name, old) in left {
        if let ([old], Some([new])) = (&old[..], right.get(&name).map(Vec::as_slice)) {
            pairs.push((old.clone(), new.clone()));
        }
    }
    pairs
}

type Sites<'s> = BTreeMap<u32, &'s BTreeSet<(String, String)>>;

fn of_file<'s>(all: &'s LineSites, file: &str) -> Sites<'s> {
    all.iter().filter(|((of, _), _)| of == file).map(|((_, line), sites)| (*line, sites)).collect()
}

/// The partners of the lines of one file.
fn lines(old: &Sites<'_>, new: &Sites<'_>) -> BTreeMap<u32, u32> {
    let mut partners: BTreeMap<u32, u32> = BTreeMap::new();
    let fits = |from: u32, to: u32| {
        let (before, after) = (&old[&from], &new[&to]);
        !before.is_disjoint(after)
    };
    if old.len().saturating_mul(new.len()) > MOST_PAIRS {
        return old.keys().filter(|line| new.contains_key(line)).map(|line| (*line, *line)).collect();
    }
    for _ in 0..MOST_MOVES {
        let taken: BTreeSet<u32> = partners.values().copied().collect();
        // Between which new lines an old one has to stay.
        let stays = |from: u32, to: u32| {
            let before = partners.range(..from).next_back().is_none_or(|(_, line)| *line < to);
            before && partners.range(from..).next().is_none_or(|(_, line)| to < *line)
        };
        let mut moves: BTreeMap<i64, Vec<(u32, u32)>> = BTreeMap::new();
        for from in old.keys().filter(|from| !partners.contains_key(from)) {
            for to in new.keys().filter(|to| !taken.contains(to)) {
                if fits(*from, *to) && stays(*from, *to) {
                    moves.entry(i64::from(*to) - i64::from(*from)).or_default().push((*from, *to));
                }
            }
        }
        let best = moves.into_iter().filter(|(by, pairs)| *by == 0 || pairs.len() as u64 >= AGREEING);
        // Of several the smallest move, and of those the one downwards.
        let best = best.max_by_key(|(by, pairs)| (pairs.len(), std::cmp::Reverse(by.unsigned_abs()), *by));
        let Some((_, pairs)) = best else { break };
        partners.extend(pairs);
    }
    partners
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sites(lines: &[(&str, u32, &str)]) -> LineSites {
        let mut all = LineSites::new();
        for (file, line, operation) in lines {
            let site = ("blocks block".to_owned(), (*operation).to_owned());
            all.entry(((*file).to_owned(), *line)).or_default().insert(site);
        }
        all
    }

    /// Partners as old and new numbers.
    fn numbers(old: &[(&str, u32, &str)], new: &[(&str, u32, &str)]) -> Vec<(u32, u32)> {
        partners(&sites(old), &sites(new)).into_iter().map(|((_, from), (_, to))| (from, to)).collect()
    }

    #[test]
    fn lines_that_move_together_are_partners() {
        let old = [("k", 10, "a"), ("k", 20, "b"), ("k", 30, "a"), ("k", 40, "a")];
        let down = |by| old.map(|(file, line, operation)| (file, line + by, operation));
        assert_eq!(numbers(&old, &old), [(10, 10), (20, 20), (30, 30), (40, 40)]);
        // Some of the new lines are lines that the old one has for something else.
        assert_eq!(numbers(&old, &down(10)), [(10, 20), (20, 30), (30, 40), (40, 50)]);
        assert_eq!(numbers(&down(10), &old), [(20, 10), (30, 20), (40, 30), (50, 40)]);
    }

    #[test]
    fn an_edit_within_moves_what_is_after_it() {
        let old = [("k", 10, "a"), ("k", 20, "b"), ("k", 30, "c"), ("k", 40, "d"), ("k", 50, "e")];
        let new = [("k", 10, "a"), ("k", 20, "b"), ("k", 33, "c"), ("k", 43, "d"), ("k", 53, "e")];
        assert_eq!(numbers(&old, &new), [(10, 10), (20, 20), (30, 33), (40, 43), (50, 53)]);
    }

    #[test]
    fn one_line_by_itself_and_lines_in_another_order_have_no_partner() {
        assert_eq!(numbers(&[("k", 10, "a")], &[("k", 12, "a")]), []);
        let old = [("k", 10, "a"), ("k", 20, "b"), ("k", 30, "c"), ("k", 40, "d"), ("k", 50, "e")];
        let new = [("k", 10, "d"), ("k", 20, "e"), ("k", 40, "a"), ("k", 50, "b"), ("k", 60, "c")];
        assert_eq!(numbers(&old, &new), [(10, 40), (20, 50), (30, 60)]);
    }

    #[test]
    fn files_of_one_name_are_partners_if_there_is_no_other() {
        assert_eq!(numbers(&[("/a/k", 1, "a")], &[("/b/k", 1, "a")]), [(1, 1)]);
        let two = [("/a/k", 1, "a"), ("/c/k", 2, "a")];
        assert_eq!(numbers(&two, &[("/b/k", 1, "a")]), []);
        assert_eq!(numbers(&two, &[("/a/k", 1, "a"), ("/b/k", 2, "a")]), [(1, 1), (2, 2)]);
    }
}
