//! The values of a kernel's counters: measured, or sums of others.

use rustc_hash::FxHashMap;

use wavetap_base::entity::{InstId, ProgramPoint};
use wavetap_profile::placement::{FIRST_KEPT, Placement, WAVES};

/// A value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ValueId(u32);

impl ValueId {
    /// As an index.
    #[cfg(test)]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a site's counter is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Executions of the instruction.
    Executions(InstId),
    /// How often the branch is taken.
    Taken(InstId),
    /// The active lanes, added up.
    Lanes(ProgramPoint),
    /// Executions of an instruction that narrows EXEC with no lane before it.
    Empty(InstId),
    /// Executions of it after which as many lanes are active as before.
    AllOn(InstId),
    /// Executions of it after which no lane is active.
    AllOff(InstId),
}

/// What inserted code adds to a counter. Functions are those of the kernel, which is the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Measure {
    /// How often a wave passes a point. More than 2^32 times, if it is wide.
    Executions { function: usize, point: ProgramPoint, wide: bool },
    /// The active lanes there.
    Lanes { function: usize, point: ProgramPoint, wide: bool },
    /// The lanes with which the wave begins.
    EntryLanes,
    /// Arrivals at an instruction with no lane.
    Empty { function: usize, inst: InstId, wide: bool },
    /// Executions of an instruction that narrows EXEC after which a lane is active.
    NonZero { function: usize, inst: InstId, wide: bool },
    /// Those after which as many are active as before.
    AllOn { function: usize, inst: InstId, wide: bool },
    /// Waves that end with as many lanes counted at a point of the kernel as at another one, or as they began with. At
    /// both points they are once at most.
    SameLanes { before: Option<ProgramPoint>, after: ProgramPoint },
}

impl Measure {
    /// Whether it needs 64 bits in a wave.
    pub(crate) fn is_wide(&self) -> bool {
        match self {
            Measure::EntryLanes | Measure::SameLanes { .. } => false,
            Measure::Executions { wide, .. }
            | Measure::Lanes { wide, .. }
            | Measure::Empty { wide, .. }
            | Measure::NonZero { wide, .. }
            | Measure::AllOn { wide, .. } => *wide,
        }
    }
}

/// How a value comes about.
#[derive(Debug, Clone, PartialEq)]
enum Definition {
    Waves,
    Kept(Measure),
    /// Terms have lower numbers.
    Sum(Vec<(i64, ValueId)>),
}

/// All values of a kernel.
#[derive(Debug)]
pub(crate) struct Values {
    definitions: Vec<Definition>,
    measured: FxHashMap<Measure, ValueId>,
}

impl Default for Values {
    fn default() -> Values {
        Values { definitions: vec![Definition::Waves], measured: FxHashMap::default() }
    }
}

impl Values {
    /// How many waves finish.
    pub(crate) const WAVES: ValueId = ValueId(0);

    /// A value that is measured; the same measure is taken once.
    pub(crate) fn keep(&mut self, measure: Measure) -> ValueId {
        if let Some(value) = self.measured.get(&measure) {
            return *value;
        }
        let value = self.add(Definition::Kept(measure));
        self.measured.insert(measure, value);
        value
    }

    /// A sum.
    pub(crate) fn sum(&mut self, mut terms: Vec<(i64, ValueId)>) -> ValueId {
        terms.sort_unstable_by_key(|(_, value)| value.0);
        terms.dedup_by(|next, kept| {
            let same = next.1 == kept.1;
            if same {
                kept.0 += next.0;
            }
            same
        });
        let is_zero = |value: ValueId| self.definitions[value.0 as usize] == Definition::Sum(Vec::new());
        terms.retain(|(factor, value)| *factor != 0 && !is_zero(*value));
        match terms.as_slice() {
            [(1, value)] => *value,
            _ => self.add(Definition::Sum(terms)),
        }
    }

    fn add(&mut self, definition: Definition) -> ValueId {
        self.definitions.push(definition);
        ValueId(self.definitions.len() as u32 - 1)
    }

    /// The measure that a value is, if it is one.
    pub(crate) fn measure(&self, value: ValueId) -> Option<Measure> {
        if let Definition::Kept(measure) = self.definitions[value.0 as usize] { Some(measure) } else { None }
    }

    /// Where executions of a function are counted.
    pub(crate) fn execution_points(&self, of: usize) -> impl Iterator<Item = ProgramPoint> + '_ {
        self.measured.keys().filter_map(move |measure| match measure {
            Measure::Executions { function, point, .. } if *function == of => Some(*point),
            _ => None,
        })
    }

    /// The measures that these values need, in the order in which they were made.
    pub(crate) fn needed(&self, wanted: &[ValueId]) -> Vec<Measure> {
        let needed = self.reachable(wanted);
        let kept = self.definitions.iter().zip(needed).filter(|(_, needed)| *needed);
        kept.filter_map(|(definition, _)| match definition {
            Definition::Kept(measure) => Some(*measure),
            Definition::Waves | Definition::Sum(_) => None,
        })
        .collect()
    }

    /// Which values others are made of.
    fn reachable(&self, wanted: &[ValueId]) -> Vec<bool> {
        let mut needed = vec![false; self.definitions.len()];
        wanted.iter().for_each(|value| needed[value.0 as usize] = true);
        for number in (0..self.definitions.len()).rev() {
            if let (true, Definition::Sum(terms)) = (needed[number], &self.definitions[number]) {
                terms.iter().for_each(|(_, value)| needed[value.0 as usize] = true);
            }
        }
        needed
    }

    /// How wanted values follow from counters: `counter` gives those of a measure, low half first where it has two, by
    /// their places in a record of `kept` counters.
    pub(crate) fn placement(
        &self,
        wanted: &[ValueId],
        kept: u32,
        slots: u32,
        counter: impl Fn(&Measure) -> Option<(u32, Option<u32>)>,
    ) -> Option<Placement> {
        let needed = self.reachable(wanted);
        let mut placement = Placement { slots, kept, ..Placement::default() };
        let mut numbers = vec![0; self.definitions.len()];
        for (number, definition) in self.definitions.iter().enumerate().filter(|(number, _)| needed[*number]) {
            let sum = match definition {
                Definition::Waves => {
                    numbers[number] = WAVES;
                    continue;
                }
                Definition::Kept(measure) => match counter(measure)? {
                    (low, None) => {
                        numbers[number] = FIRST_KEPT + low;
                        continue;
                    }
                    (low, Some(high)) => vec![(1, FIRST_KEPT + low), (1 << 32, FIRST_KEPT + high)],
                },
                Definition::Sum(terms) => {
                    terms.iter().map(|(factor, value)| (*factor, numbers[value.0 as usize])).collect()
                }
            };
            numbers[number] = FIRST_KEPT + kept + placement.sums.len() as u32;
            placement.sums.push(sum);
        }
        placement.counters = wanted.iter().map(|value| numbers[value.0 as usize]).collect();
        Some(placement)
    }
}

#[cfg(test)]
impl Values {
    /// All measures.
    pub(crate) fn kept(&self) -> Vec<Measure> {
        let all: Vec<ValueId> = (0..self.definitions.len() as u32).map(ValueId).collect();
        self.needed(&all)
    }

    /// Every value, of what was measured.
    pub(crate) fn evaluate(&self, waves: i64, measured: impl Fn(&Measure) -> i64) -> Vec<i64> {
        let mut values = Vec::new();
        for definition in &self.definitions {
            values.push(match definition {
                Definition::Waves => waves,
                Definition::Kept(measure) => measured(measure),
                Definition::Sum(terms) => terms.iter().map(|(factor, value)| factor * values[value.index()]).sum(),
            });
        }
        values
    }
}
