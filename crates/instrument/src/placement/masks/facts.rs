//! What is certain of masks at a point: for each register, sets of symbols.

use rustc_hash::FxHashMap;

use super::sets::{SetId, Sets};
use super::{EXEC, Place, Source};

/// What is certain of one register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Held {
    /// The symbols that it holds.
    equal: SetId,
    /// Others of which it holds a part.
    within: SetId,
    /// Those that it is together with EXEC.
    covers: SetId,
    /// Those that it is together with other symbols.
    joins: JoinsId,
}

impl Held {
    fn is_nothing(self) -> bool {
        self == Held::default()
    }
}

/// Pairs of symbols; equal ones have equal ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
struct JoinsId(u32);

/// What a register and each of `with` are: all of `of`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Joins {
    of: SetId,
    with: SetId,
}

/// All that is certain at a point, by register; of those that are not here nothing is.
///
/// Lattice: fewer facts are further up; paths that meet keep what is certain on both. There are finitely many, and the
/// transfer is monotone: from more facts follow more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Facts(Vec<(Place, Held)>);

impl Facts {
    /// EXEC holds a symbol, and no more is known.
    pub(super) fn of_exec(symbols: SetId) -> Facts {
        Facts(vec![(EXEC, Held { equal: symbols, ..Held::default() })])
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn of(&self, place: Place) -> Held {
        self.0.binary_search_by_key(&place, |held| held.0).map(|found| self.0[found].1).unwrap_or_default()
    }

    fn change(&mut self, place: Place, change: impl FnOnce(&mut Held)) {
        match self.0.binary_search_by_key(&place, |held| held.0) {
            Ok(found) => {
                change(&mut self.0[found].1);
                if self.0[found].1.is_nothing() {
                    self.0.remove(found);
                }
            }
            Err(found) => {
                let mut held = Held::default();
                change(&mut held);
                if !held.is_nothing() {
                    self.0.insert(found, (place, held));
                }
            }
        }
    }

    /// The symbols that it is.
    pub(super) fn equal(&self, source: Source) -> SetId {
        if let Source::In(place) = source { self.of(place).equal } else { SetId::EMPTY }
    }

    /// Forgets what is said of a register other than EXEC.
    pub(super) fn forget(&mut self, place: Place) {
        if let Ok(found) = self.0.binary_search_by_key(&place, |held| held.0) {
            self.0.remove(found);
        }
    }
}

/// The sets that facts consist of, and what follows from facts.
#[derive(Debug)]
pub(super) struct Relations {
    sets: Sets,
    /// By id: groups of pairs, each with a symbol of its own, in order.
    joins: Vec<Vec<Joins>>,
    numbers: FxHashMap<Vec<Joins>, JoinsId>,
    met: FxHashMap<(JoinsId, JoinsId), JoinsId>,
    /// Facts and pairs that were looked at.
    steps: u64,
    /// Units of work that may be done.
    limit: u64,
}

impl Relations {
    /// For symbols below a number, and so much work.
    pub(super) fn below(symbols: u32, limit: u64) -> Relations {
        let (numbers, met) = Default::default();
        Relations { sets: Sets::below(symbols), joins: vec![Vec::new()], numbers, met, steps: 0, limit }
    }

    /// Units of work that were done: nodes of sets, facts and pairs that were looked at.
    pub(super) fn work(&self) -> u64 {
        self.steps + self.sets.visits()
    }

    /// Whether more was done than may be: then what is said means nothing.
    pub(super) fn is_exhausted(&self) -> bool {
        self.work() > self.limit
    }

    pub(super) fn sets(&self) -> &Sets {
        &self.sets
    }

    pub(super) fn both(&mut self, a: SetId, b: SetId) -> SetId {
        self.sets.intersection(a, b)
    }

    pub(super) fn either(&mut self, a: SetId, b: SetId) -> SetId {
        self.sets.union(a, b)
    }

    pub(super) fn only(&mut self, symbols: impl IntoIterator<Item = u32>) -> SetId {
        symbols.into_iter().fold(SetId::EMPTY, |all, symbol| {
            let one = self.sets.singleton(symbol);
            self.sets.union(all, one)
        })
    }

    /// The symbols of which it is a part. All are, of no lanes: there it is those of which anything is said.
    pub(super) fn within(&mut self, facts: &Facts, source: Source) -> SetId {
        match source {
            Source::Unknown => SetId::EMPTY,
            Source::Zero => facts.of(EXEC).equal,
            Source::In(place) => {
                let held = facts.of(place);
                self.either(held.within, held.equal)
            }
        }
    }

    /// The symbols that it is together with EXEC.
    pub(super) fn covers(&mut self, facts: &Facts, source: Source) -> SetId {
        let said = if let Source::In(place) = source { facts.of(place).covers } else { SetId::EMPTY };
        let (exec, parts) = (facts.of(EXEC).equal, self.within(facts, Source::In(EXEC)));
        let all = self.both(facts.equal(source), parts);
        let within = self.within(facts, source);
        let rest = self.both(exec, within);
        let said = self.either(said, all);
        self.either(said, rest)
    }

    pub(super) fn add(&mut self, facts: &mut Facts, place: Place, equal: SetId, within: SetId) {
        let held = facts.of(place);
        let (equal, within) = (self.either(held.equal, equal), self.either(held.within, within));
        facts.change(place, |held| (held.equal, held.within) = (equal, within));
    }

    pub(super) fn add_covers(&mut self, facts: &mut Facts, place: Place, symbols: SetId) {
        if place == EXEC || symbols.is_empty() {
            return;
        }
        let held = facts.of(place);
        let (covers, within) = (self.either(held.covers, symbols), self.either(held.within, symbols));
        facts.change(place, |held| (held.covers, held.within) = (covers, within));
        let of_exec = self.either(facts.of(EXEC).within, symbols);
        facts.change(EXEC, |held| held.within = of_exec);
    }

    /// A new value of the symbol is in EXEC.
    pub(super) fn save(&mut self, facts: &mut Facts, symbol: u32) {
        let one = self.sets.singleton(symbol);
        self.keep(facts, |sets, set| sets.difference(set, one));
        self.add(facts, EXEC, one, SetId::EMPTY);
    }

    /// Keeps of each set what `kept` keeps.
    fn keep(&mut self, facts: &mut Facts, kept: impl Fn(&mut Sets, SetId) -> SetId) {
        for (_, held) in &mut facts.0 {
            let sets = &mut self.sets;
            let [equal, within, covers] = [held.equal, held.within, held.covers].map(|set| kept(sets, set));
            *held = Held { equal, within, covers, joins: self.keep_joins(held.joins, &kept) };
        }
        self.steps += facts.0.len() as u64;
        facts.0.retain(|(_, held)| !held.is_nothing());
    }

    fn keep_joins(&mut self, joins: JoinsId, kept: impl Fn(&mut Sets, SetId) -> SetId) -> JoinsId {
        if joins == JoinsId::default() {
            return joins;
        }
        let groups = self.joins[joins.0 as usize].clone();
        let sets = &mut self.sets;
        let left =
            groups.iter().map(|group| Joins { of: kept(sets, group.of), with: kept(sets, group.with) }).collect();
        if left == groups { joins } else { self.joins(left) }
    }

    /// The id of groups of pairs; symbols `with` of different groups are different.
    fn joins(&mut self, mut groups: Vec<Joins>) -> JoinsId {
        self.steps += groups.len() as u64;
        groups.retain(|group| !group.of.is_empty() && !group.with.is_empty());
        groups.sort_unstable_by_key(|group| group.of);
        let mut merged: Vec<Joins> = Vec::with_capacity(groups.len());
        for group in groups {
            match merged.last_mut().filter(|last| last.of == group.of) {
                Some(last) => last.with = self.sets.union(last.with, group.with),
                None => merged.push(group),
            }
        }
        if merged.is_empty() {
            return JoinsId::default();
        }
        let all = &mut self.joins;
        *self.numbers.entry(merged).or_insert_with_key(|merged| {
            all.push(merged.clone());
            JoinsId(all.len() as u32 - 1)
        })
    }

    /// EXEC is about to change: what lies outside of it lies outside of the symbols that it is.
    pub(super) fn leave_exec(&mut self, facts: &mut Facts) {
        let is = facts.of(EXEC).equal;
        for (_, held) in &mut facts.0 {
            if !held.covers.is_empty() {
                held.joins = self.with_joins(held.joins, Joins { of: held.covers, with: is });
                held.covers = SetId::EMPTY;
            }
        }
        self.steps += facts.0.len() as u64;
        facts.0.retain(|(place, held)| *place != EXEC && !held.is_nothing());
    }

    /// Pairs, and all of one group besides.
    fn with_joins(&mut self, joins: JoinsId, more: Joins) -> JoinsId {
        if more.with.is_empty() {
            return joins;
        }
        let mut groups = Vec::new();
        let mut new = more.with;
        for Joins { of, with } in self.joins[joins.0 as usize].clone() {
            let common = self.sets.intersection(with, more.with);
            new = self.sets.difference(new, common);
            let others = self.sets.difference(with, common);
            groups.push(Joins { of, with: others });
            groups.push(Joins { of: self.sets.union(of, more.of), with: common });
        }
        groups.push(Joins { of: more.of, with: new });
        self.joins(groups)
    }

    /// EXEC has changed: what a register and the symbols that it is now are, that register and EXEC are.
    pub(super) fn enter_exec(&mut self, facts: &mut Facts) {
        let is = facts.of(EXEC).equal;
        if is.is_empty() {
            return;
        }
        let mut covered: Vec<(Place, SetId)> = Vec::new();
        for (place, held) in facts.0.iter().filter(|(_, held)| held.joins != JoinsId::default()) {
            let mut all = SetId::EMPTY;
            let groups = &self.joins[held.joins.0 as usize];
            self.steps += groups.len() as u64;
            for group in groups {
                if !self.sets.intersection(group.with, is).is_empty() {
                    all = self.sets.union(all, group.of);
                }
            }
            covered.push((*place, all));
        }
        covered.into_iter().for_each(|(place, symbols)| self.add_covers(facts, place, symbols));
    }

    /// Forgets symbols that no register can restore, but for one.
    pub(super) fn prune(&mut self, facts: &mut Facts, but: u32) {
        let mut all = self.sets.singleton(but);
        for (place, held) in &facts.0 {
            if *place != EXEC {
                all = self.sets.union(all, held.equal);
            }
            all = self.sets.union(all, held.covers);
            for group in &self.joins[held.joins.0 as usize] {
                all = self.sets.union(all, group.of);
                self.steps += 1;
            }
        }
        self.keep(facts, |sets, set| sets.intersection(set, all));
    }

    /// Keeps what is certain in both; tells whether less is.
    pub(super) fn meet(&mut self, facts: &mut Facts, other: &Facts) -> bool {
        self.steps += facts.0.len() as u64;
        if *facts == *other {
            return false;
        }
        let mut changed = false;
        let mut others = other.0.iter().peekable();
        for (place, held) in &mut facts.0 {
            while others.next_if(|(other, _)| other < place).is_some() {}
            let other = others.next_if(|(other, _)| other == place).map(|(_, held)| *held).unwrap_or_default();
            let met = Held {
                equal: self.sets.intersection(held.equal, other.equal),
                within: self.sets.intersection(held.within, other.within),
                covers: self.sets.intersection(held.covers, other.covers),
                joins: self.meet_joins(held.joins, other.joins),
            };
            changed |= met != *held;
            *held = met;
        }
        facts.0.retain(|(_, held)| !held.is_nothing());
        changed
    }

    fn meet_joins(&mut self, a: JoinsId, b: JoinsId) -> JoinsId {
        if a == b || a == JoinsId::default() || b == JoinsId::default() {
            return if a == b { a } else { JoinsId::default() };
        }
        let (a, b) = (a.min(b), a.max(b));
        if let Some(met) = self.met.get(&(a, b)) {
            return *met;
        }
        let [left, right] = [a, b].map(|joins| self.joins[joins.0 as usize].clone());
        self.steps += left.len() as u64 * right.len() as u64;
        if self.is_exhausted() {
            return JoinsId::default();
        }
        let mut groups = Vec::new();
        for (left, right) in left.iter().flat_map(|left| right.iter().map(move |right| (left, right))) {
            let with = self.sets.intersection(left.with, right.with);
            if !with.is_empty() {
                groups.push(Joins { of: self.sets.intersection(left.of, right.of), with });
            }
        }
        let met = self.joins(groups);
        self.met.insert((a, b), met);
        met
    }
}
