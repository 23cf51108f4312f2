//! Who uses the rest of a line that a workgroup uses a part of.
//!
//! Workgroups whose ids differ by one in a direction run at about the same time and find each other's lines in the
//! caches. What such a neighbour accesses of a line is no waste. Not all workgroups are recorded: from a workgroup on,
//! in each direction, the neighbours that access the line are followed. If the first one that does not, or the end of
//! the grid, is met among those that were recorded, the users of the line are known; otherwise nothing is said of its
//! rest.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::heat::WorkgroupWords;
use crate::recorded::RecordedGrid;

/// Neighbours that are followed in a direction: a line has at most 32 words, so that more of them share words.
const MOST_NEIGHBOURS: u32 = 64;

/// Who accesses a line besides a workgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Users {
    /// No neighbour of the workgroup.
    Alone,
    /// Neighbours, all of which were recorded.
    Neighbours,
    /// Neighbours may, that were not recorded.
    Unknown,
}

/// The lines of an array, by dispatch, with the workgroups that access them.
pub(crate) struct Neighbours<'k> {
    grids: &'k BTreeMap<u32, RecordedGrid>,
    /// Whether all workgroups of all dispatches were recorded.
    is_whole: bool,
    users: HashMap<(u32, u64), HashSet<[u32; 3]>>,
}

impl<'k> Neighbours<'k> {
    /// Of the words of an array, in lines of so many bytes.
    pub(crate) fn of(
        groups: &[WorkgroupWords],
        line: u32,
        grids: &'k BTreeMap<u32, RecordedGrid>,
        is_whole: bool,
    ) -> Neighbours<'k> {
        let mut users: HashMap<(u32, u64), HashSet<[u32; 3]>> = HashMap::new();
        for group in groups {
            for sector in group.sectors(line) {
                users.entry((group.dispatch, sector.number)).or_default().insert(group.workgroup);
            }
        }
        Neighbours { grids, is_whole, users }
    }

    /// Who accesses a line besides a workgroup that does.
    pub(crate) fn users(&self, group: &WorkgroupWords, line: u64) -> Users {
        let none = HashSet::new();
        let users = self.users.get(&(group.dispatch, line)).unwrap_or(&none);
        let grid = self.grids.get(&group.dispatch);
        let mut found = Users::Alone;
        for (axis, step) in [(0, 1), (0, -1), (1, 1), (1, -1), (2, 1), (2, -1)] {
            let mut at = group.workgroup;
            for _ in 0..MOST_NEIGHBOURS {
                let Some(next) = at[axis].checked_add_signed(step) else { break };
                at[axis] = next;
                if users.contains(&at) {
                    found = Users::Neighbours;
                    continue;
                }
                let is_known = match grid {
                    Some(grid) => next >= grid.workgroups[axis] || grid.recorded.contains(&at),
                    None => false,
                };
                if !is_known && !self.is_whole {
                    return Users::Unknown;
                }
                break;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heat::Word;
    use crate::site_sets::{SetNumber, SiteSets};

    fn group(workgroup: [u32; 3], words: &[u64]) -> WorkgroupWords {
        let word = |number: &u64| Word {
            number: *number,
            waves: 1,
            several_lanes: false,
            executions: 1,
            sites: SetNumber::default(),
        };
        let words = words.iter().map(word).collect();
        WorkgroupWords { dispatch: 0, workgroup, words, sites: SiteSets::default() }
    }

    fn users(groups: &[WorkgroupWords], workgroups: [u32; 3], recorded: &[[u32; 3]], of: usize, line: u64) -> Users {
        let grid = RecordedGrid { workgroups, recorded: recorded.iter().copied().collect() };
        let grids = BTreeMap::from([(0, grid)]);
        Neighbours::of(groups, 64, &grids, false).users(&groups[of], line)
    }

    #[test]
    fn users_end_at_a_recorded_workgroup_or_at_the_end_of_the_grid() {
        // Two workgroups share line 0; the third accesses line 1.
        let row = [group([0, 0, 0], &[0]), group([1, 0, 0], &[8]), group([2, 0, 0], &[16])];
        let ids = [[0, 0, 0], [1, 0, 0], [2, 0, 0]];
        assert_eq!(users(&row, [3, 1, 1], &ids, 0, 0), Users::Neighbours);
        assert_eq!(users(&row, [3, 1, 1], &ids, 2, 1), Users::Alone);
        assert_eq!(users(&row[..2], [3, 1, 1], &ids[..2], 0, 0), Users::Unknown, "the third may access it, too");
        assert_eq!(users(&row[..2], [2, 1, 1], &ids[..2], 0, 0), Users::Neighbours, "there is no third");
        assert_eq!(users(&row[..1], [1, 2, 1], &ids[..1], 0, 0), Users::Unknown, "one beside it in y");
        assert_eq!(users(&row[..1], [1, 1, 1], &ids[..1], 0, 0), Users::Alone);
    }
}
