//! Which counters are kept, and how all others follow from them.
//!
//! A probe says what its counters are made of ([`Quantity`]); the flows of a function's executions and lanes
//! ([`FunctionFlows`]) say how few of these have to be measured, and where.

mod every;
mod flow;
pub(crate) mod function;
mod jobs;
mod masks;
mod nonzero;
mod record;
mod values;

pub(crate) use function::{FunctionFlows, Prices, Wanted};
pub(crate) use jobs::{Increment, Job, jobs};
pub(crate) use masks::{Restored, restored};
pub(crate) use nonzero::nonzero;
pub(crate) use record::{PlacedRecord, PointJobs};
pub use values::Quantity;
pub(crate) use values::{Measure, ValueId, Values};

use crate::facts::KernelFacts;
use crate::function::ClonedFunction;
use crate::scavenge::LiveOut;
use every::EveryCounter;
use wavetap_analysis::dataflow::Liveness;
use wavetap_analysis::kernel::{Refusal, Stop};
use wavetap_profile::placement::CounterPlacement;
use wavetap_profile::record::{COUNTER, HEADER};

/// The values of all counters of a kernel's sites.
#[derive(Debug)]
pub(crate) struct PlacedCounters {
    pub(crate) values: Values,
    /// By counter, in the order of the site table.
    pub(crate) counters: Vec<ValueId>,
}

/// The quantities of one function.
enum Quantities<'f, 'a> {
    Flows(FunctionFlows<'f, 'a>),
    Every(EveryCounter<'f>),
}

impl PlacedCounters {
    /// The counters of a kernel in registers, placed in this way; all of them if the fewest take too much work to find.
    ///
    /// # Errors
    /// Refused if control goes to where nothing is known of.
    pub(crate) fn of(facts: &KernelFacts<'_, '_>, placement: CounterPlacement) -> Result<PlacedCounters, Stop> {
        match placement {
            CounterPlacement::Minimal => match PlacedCounters::minimal(facts, Prices::REGISTERS) {
                Err(Stop::Refused(_)) if facts.is_over_budget() => PlacedCounters::every(facts),
                placed => placed,
            },
            CounterPlacement::All => PlacedCounters::every(facts),
        }
    }

    /// Finds the fewest measures from which the counters of a kernel follow.
    ///
    /// # Errors
    /// Refused if control goes to where nothing is known of.
    pub(crate) fn minimal(facts: &KernelFacts<'_, '_>, prices: Prices) -> Result<PlacedCounters, Stop> {
        PlacedCounters::made_of(facts, |function, number, liveness, wanted, values| {
            FunctionFlows::solve(function, number, liveness, wanted, prices, values).map(Quantities::Flows)
        })
    }

    /// Measures each counter at its own site.
    ///
    /// # Errors
    /// Refused if control goes to where nothing is known of.
    fn every(facts: &KernelFacts<'_, '_>) -> Result<PlacedCounters, Stop> {
        PlacedCounters::made_of(facts, |function, number, _, _, _| {
            function::check_exits(function)?;
            let repeats = function::repeats(function);
            Ok(Quantities::Every(EveryCounter { cfg: &function.cfg, number, repeats }))
        })
    }

    fn made_of<'f, 'a>(
        facts: &'f KernelFacts<'a, '_>,
        quantities: impl Fn(
            &'f ClonedFunction<'a>,
            usize,
            &Liveness,
            &Wanted,
            &mut Values,
        ) -> Result<Quantities<'f, 'a>, Refusal>,
    ) -> Result<PlacedCounters, Stop> {
        let mut values = Values::default();
        let mut terms: Vec<Vec<(i64, ValueId)>> = vec![Vec::new(); facts.table.counters() as usize];
        for (number, (function, liveness)) in facts.functions.iter().zip(facts.liveness(LiveOut::All)).enumerate() {
            let derived: Vec<_> = function
                .sites
                .iter()
                .map(|placed| (placed, facts.probes(number)[placed.probe].counters(function, &placed.site)))
                .collect();
            let mut wanted = Wanted::default();
            for (_, quantity) in derived.iter().flat_map(|(_, counters)| counters.iter().flatten()) {
                match quantity {
                    Quantity::Lanes(_) => wanted.lanes = true,
                    Quantity::AllOn(inst) => wanted.compared.push(*inst),
                    _ => {}
                }
            }
            let quantities = quantities(function, number, liveness, &wanted, &mut values)?;
            for (placed, counters) in derived {
                // Functions may share code: its counters add up.
                for (field, made_of) in counters.into_iter().enumerate() {
                    let counter = ((placed.offset - HEADER) / COUNTER) as usize + field;
                    terms[counter].extend(made_of.into_iter().map(|(factor, quantity)| {
                        let value = match &quantities {
                            Quantities::Flows(flows) => flows.value(quantity, &mut values),
                            Quantities::Every(every) => every.value(quantity, &mut values),
                        };
                        (factor, value)
                    }));
                }
            }
        }
        let counters = terms.into_iter().map(|terms| values.sum(terms)).collect();
        Ok(PlacedCounters { values, counters })
    }
}
