//! Every counter measured where it is, for what none has to follow from others.

use super::values::{Measure, Quantity, ValueId, Values};
use wavetap_analysis::cfg::Cfg;
use wavetap_base::entity::{InstId, ProgramPoint, Side};

/// The quantities of one function, each measured.
#[derive(Debug)]
pub(crate) struct EveryCounter<'f> {
    pub(crate) cfg: &'f Cfg,
    /// Its number among the kernel's.
    pub(crate) number: usize,
    /// By block: whether it may be executed more than once.
    pub(crate) repeats: Vec<bool>,
}

impl EveryCounter<'_> {
    /// The value of a quantity.
    pub(crate) fn value(&self, quantity: Quantity, values: &mut Values) -> ValueId {
        let (function, wide) = (self.number, |inst| self.repeats[self.cfg.block_of(inst).index()]);
        match quantity {
            Quantity::Executions(inst) => self.executions(inst, Side::Before, values),
            // After a branch is where it is not taken.
            Quantity::Taken(inst) => {
                let [all, others] = [Side::Before, Side::After].map(|side| self.executions(inst, side, values));
                values.sum(vec![(1, all), (-1, others)])
            }
            Quantity::Lanes(point) => values.keep(Measure::Lanes { function, point, wide: wide(point.inst) }),
            Quantity::Empty(inst) => values.keep(Measure::Empty { function, inst, wide: wide(inst) }),
            Quantity::AllOn(inst) => values.keep(Measure::AllOn { function, inst, wide: wide(inst) }),
            Quantity::AllOff(inst) => {
                let all = self.executions(inst, Side::Before, values);
                let others = values.keep(Measure::NonZero { function, inst, wide: wide(inst) });
                values.sum(vec![(1, all), (-1, others)])
            }
        }
    }

    fn executions(&self, inst: InstId, side: Side, values: &mut Values) -> ValueId {
        let wide = self.repeats[self.cfg.block_of(inst).index()];
        values.keep(Measure::Executions { function: self.number, point: ProgramPoint { inst, side }, wide })
    }
}
