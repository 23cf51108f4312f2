//! What a wave is ordered after: vector clocks that are dense within a workgroup and sparse between workgroups.

use std::sync::Arc;

/// Most workgroups that a clock names; one that would name more is ordered after all of them.
const MOST_GROUPS: usize = 1 << 13;

/// For one wave, the first id of an operation that is not ordered before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// A write that other waves of its workgroup see.
    pub issued: u32,
    /// A write that all waves see: its wave, or one that a barrier ordered after it, has waited for it.
    pub complete: u32,
    /// A read.
    pub read: u32,
}

impl Progress {
    fn join(&mut self, other: &Progress) {
        self.issued = self.issued.max(other.issued);
        self.complete = self.complete.max(other.complete);
        self.read = self.read.max(other.read);
    }

    fn covers(&self, other: &Progress) -> bool {
        self.issued >= other.issued && self.complete >= other.complete && self.read >= other.read
    }
}

/// The waves of a workgroup.
pub(crate) type Row = Vec<Progress>;

/// Joins a row with another.
pub(crate) fn join_row(mine: &mut Row, other: &Row) {
    mine.iter_mut().zip(other).for_each(|(mine, other)| mine.join(other));
}

fn covers(mine: &Row, other: &Row) -> bool {
    mine.iter().zip(other).all(|(mine, other)| mine.covers(other))
}

/// Workgroups, by number, and how far their waves are known to be.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clock {
    rows: Vec<(u32, Arc<Row>)>,
    /// It is ordered after everything: too many workgroups are named.
    all: bool,
}

impl Clock {
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && !self.all
    }

    /// Whether it is ordered after everything.
    pub(crate) fn is_all(&self) -> bool {
        self.all
    }

    /// One that is ordered after everything.
    pub(crate) fn everything() -> Clock {
        Clock { rows: Vec::new(), all: true }
    }

    pub(crate) fn row(&self, group: u32) -> Option<&Row> {
        let at = self.rows.binary_search_by_key(&group, |row| row.0).ok()?;
        Some(&self.rows[at].1)
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Joins the row of one workgroup.
    pub(crate) fn add(&mut self, group: u32, row: &Arc<Row>) {
        if self.all {
            return;
        }
        match self.rows.binary_search_by_key(&group, |row| row.0) {
            Ok(at) => {
                let mine = &mut self.rows[at].1;
                if Arc::ptr_eq(mine, row) || covers(mine, row) {
                    return;
                }
                if covers(row, mine) {
                    *mine = Arc::clone(row);
                } else {
                    join_row(Arc::make_mut(mine), row);
                }
            }
            Err(at) => {
                self.rows.insert(at, (group, Arc::clone(row)));
                if self.rows.len() > MOST_GROUPS {
                    *self = Clock::everything();
                }
            }
        }
    }

    /// Joins another clock.
    pub(crate) fn join(&mut self, other: &Clock) {
        if other.all {
            *self = Clock::everything();
        }
        if self.all || other.rows.is_empty() {
            return;
        }
        if self.rows.is_empty() {
            self.rows.clone_from(&other.rows);
            return;
        }
        other.rows.iter().for_each(|(group, row)| self.add(*group, row));
    }
}
