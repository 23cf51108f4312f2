//! Which counters are kept, and how all others follow from them.
//!
//! A probe says what its counters are made of ([`Quantity`]); the flows of a function's executions and lanes
//! ([`FunctionFlows`]) say how few of these have to be measured, and where.

mod flow;
pub(crate) mod function;
mod nonzero;
mod values;

pub(crate) use function::{FunctionFlows, Quantity};
pub(crate) use values::{Measure, ValueId, Values};

use crate::facts::KernelFacts;
use crate::scavenge::LiveOut;
use wavetap_analysis::kernel::Stop;
use wavetap_profile::record::{COUNTER, HEADER};

/// The values of all counters of a kernel's sites.
#[derive(Debug)]
pub(crate) struct PlacedCounters {
    pub(crate) values: Values,
    /// By counter, in the order of the site table.
    pub(crate) counters: Vec<ValueId>,
}

impl PlacedCounters {
    /// Finds the fewest measures from which the counters of a kernel follow.
    ///
    /// # Errors
    /// Refused if control goes to where nothing is known of.
    pub(crate) fn of(facts: &KernelFacts<'_, '_>) -> Result<PlacedCounters, Stop> {
        let mut values = Values::default();
        let mut terms: Vec<Vec<(i64, ValueId)>> = vec![Vec::new(); facts.table.counters() as usize];
        for (number, (function, liveness)) in facts.functions.iter().zip(facts.liveness(LiveOut::All)).enumerate() {
            let derived: Vec<_> = function
                .sites
                .iter()
                .map(|placed| (placed, placed.probe.probe().counters(function, &placed.site)))
                .collect();
            let mut quantities = derived.iter().flat_map(|(_, counters)| counters.iter().flatten());
            let with_lanes = quantities.any(|(_, quantity)| matches!(quantity, Quantity::Lanes(_)));
            let flows = FunctionFlows::solve(function, number, liveness, with_lanes, &mut values)?;
            for (placed, counters) in derived {
                // Functions may share code: its counters add up.
                for (field, quantities) in counters.into_iter().enumerate() {
                    let counter = ((placed.offset - HEADER) / COUNTER) as usize + field;
                    let quantities = quantities.into_iter();
                    terms[counter]
                        .extend(quantities.map(|(factor, quantity)| (factor, flows.value(quantity, &mut values))));
                }
            }
        }
        let counters = terms.into_iter().map(|terms| values.sum(terms)).collect();
        Ok(PlacedCounters { values, counters })
    }
}
