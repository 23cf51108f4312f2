//! Branches as arrows beside a listing: each destination has a lane, inner lanes for short arrows, as few lanes as it
//! takes and never more than [`MOST_LANES`]. Arrows that would need more are left out; the listing names every
//! destination in words as well.

use std::collections::BTreeMap;

/// Most arrows beside each other.
pub(super) const MOST_LANES: usize = 6;

/// Ways to one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arrow {
    /// The row they go to.
    pub(super) to: usize,
    /// The rows they come from.
    pub(super) from: Vec<usize>,
}

impl Arrow {
    pub(super) fn first(&self) -> usize {
        self.from.iter().copied().min().unwrap_or(self.to).min(self.to)
    }

    pub(super) fn last(&self) -> usize {
        self.from.iter().copied().max().unwrap_or(self.to).max(self.to)
    }
}

/// The gutter of each of `rows` rows, all equally wide; empty strings if there is nothing to draw.
pub(super) fn gutter(rows: usize, arrows: &[Arrow]) -> Vec<String> {
    let lanes = lanes(arrows);
    let count = lanes.iter().flatten().max().map_or(0, |lane| lane + 1);
    if count == 0 {
        return vec![String::new(); rows];
    }
    // A lane each, and the arrow's head.
    let width = count + 1;
    let mut cells = vec![' '; rows * width];
    for (arrow, lane) in arrows.iter().zip(&lanes) {
        let Some(lane) = lane else { continue };
        let column = count - 1 - lane;
        let (first, last) = (arrow.first(), arrow.last());
        for row in first..=last {
            let cell = &mut cells[row * width + column];
            let ends_here = row == arrow.to || arrow.from.contains(&row);
            *cell = match (ends_here, *cell) {
                (true, _) if row == first => '╭',
                (true, _) if row == last => '╰',
                (true, _) => '├',
                (false, '─') => '┼',
                (false, _) => '│',
            };
        }
        for row in arrow.from.iter().copied().chain([arrow.to]) {
            for column in column + 1..width {
                let cell = &mut cells[row * width + column];
                *cell = if *cell == ' ' { '─' } else { '┼' };
            }
            cells[row * width + width - 1] = if row == arrow.to { '►' } else { '─' };
        }
    }
    cells.chunks(width).map(|row| row.iter().collect()).collect()
}

/// The lane of each arrow, 0 the innermost; none for those that are left out.
pub(super) fn lanes(arrows: &[Arrow]) -> Vec<Option<usize>> {
    let mut order: Vec<usize> = (0..arrows.len()).collect();
    order.sort_by_key(|&index| (arrows[index].last() - arrows[index].first(), arrows[index].first()));
    // Taken rows of each lane: last by first.
    let mut taken: Vec<BTreeMap<usize, usize>> = vec![BTreeMap::new(); MOST_LANES];
    let mut lanes = vec![None; arrows.len()];
    for index in order {
        let (first, last) = (arrows[index].first(), arrows[index].last());
        let free = |lane: &BTreeMap<usize, usize>| lane.range(..=last).next_back().is_none_or(|(_, end)| *end < first);
        if let Some(lane) = taken.iter().position(free) {
            taken[lane].insert(first, last);
            lanes[index] = Some(lane);
        }
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_and_crossing_ways() {
        let arrows = [Arrow { to: 0, from: vec![5] }, Arrow { to: 4, from: vec![1, 2] }];
        let expected = ["╭─►", "│╭─", "│├─", "││ ", "│╰►", "╰──", "   "];
        assert_eq!(gutter(7, &arrows), expected);
        let crossing = [Arrow { to: 3, from: vec![0] }, Arrow { to: 5, from: vec![1] }];
        assert_eq!(gutter(6, &crossing), [" ╭─", "╭┼─", "││ ", "│╰►", "│  ", "╰─►"]);
        assert_eq!(gutter(2, &[]), ["", ""]);
    }

    #[test]
    fn the_width_is_bounded() {
        let arrows: Vec<Arrow> = (0..50).map(|n| Arrow { to: 100 - n, from: vec![n] }).collect();
        let drawn = gutter(101, &arrows);
        assert!(drawn.iter().all(|row| row.chars().count() == MOST_LANES + 1), "{drawn:?}");
        // The shortest ways are drawn.
        assert!(drawn[49].ends_with('─') && drawn[51].ends_with('►'), "{drawn:?}");
        assert!(drawn[0].trim().is_empty());
    }
}
