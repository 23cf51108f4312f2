//! What a person asks of the pipeline.

use wavetap_instrument::CounterPlacement;
use wavetap_instrument::object::{Counters, Measurement};
use wavetap_instrument::probe::ProbeRef;
use wavetap_object::emit::Packing;
use wavetap_object::selection::Selection;

/// How to rewrite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What to measure; nothing leaves the input as it is.
    pub probes: Vec<ProbeRef>,
    /// Where the counters live.
    pub counters: Counters,
    /// Which of them are kept.
    pub placement: CounterPlacement,
    /// Which kernels.
    pub selection: Selection,
    /// How changed bundles are written.
    pub packing: Packing,
    /// How many of a SIMD's waves a kernel may lose to its counters, at most; any number if not said. A kernel that
    /// would lose more is refused.
    pub max_occupancy_loss: Option<u32>,
    /// Whether the counters of each wave are to be had by themselves: `auto` does not choose registers then, and each
    /// wave has a record of its own. Without, waves add to a few records, which costs less.
    pub single_waves: bool,
    /// Whether the returned maps have the addresses of every instruction. They are inside the rewritten code
    /// objects in any case, and for large inputs need more memory than the code.
    pub keep_addresses: bool,
}

impl Options {
    /// Measures this, in all kernels, with all else as by default.
    ///
    /// ```
    /// use wavetap::{Options, probe};
    ///
    /// let options = Options::new([probe::BRANCHES]).kernel("reduce*").target("gfx90a");
    /// assert!(options.selection.has_kernel("_Z10reduce_sumPfi"));
    /// assert!(!options.selection.has_kernel("_Z4scanPfi"));
    /// ```
    #[must_use]
    pub fn new(probes: impl IntoIterator<Item = ProbeRef>) -> Options {
        Options { probes: probes.into_iter().collect(), ..Options::default() }
    }

    /// Selects kernels by a pattern, beside those that are selected already.
    #[must_use]
    pub fn kernel(mut self, pattern: impl Into<String>) -> Options {
        self.selection.kernels.push(pattern.into());
        self
    }

    /// Selects the code for a target, beside what is selected already.
    #[must_use]
    pub fn target(mut self, target: impl Into<String>) -> Options {
        self.selection.targets.push(target.into());
        self
    }

    /// Sets [`Options::counters`].
    #[must_use]
    pub fn counters(mut self, counters: Counters) -> Options {
        self.counters = counters;
        self
    }

    /// Sets [`Options::placement`].
    #[must_use]
    pub fn placement(mut self, placement: CounterPlacement) -> Options {
        self.placement = placement;
        self
    }

    /// Sets [`Options::single_waves`].
    #[must_use]
    pub fn single_waves(mut self, single_waves: bool) -> Options {
        self.single_waves = single_waves;
        self
    }

    /// What is measured in each code object.
    pub(super) fn measurement(&self) -> Measurement<'_> {
        let Options { probes, counters, placement, max_occupancy_loss, single_waves, .. } = self;
        Measurement {
            probes,
            counters: *counters,
            placement: *placement,
            max_occupancy_loss: *max_occupancy_loss,
            single_waves: *single_waves,
        }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            probes: Vec::new(),
            counters: Counters::default(),
            placement: CounterPlacement::default(),
            selection: Selection::default(),
            packing: Packing::default(),
            max_occupancy_loss: None,
            single_waves: false,
            keep_addresses: true,
        }
    }
}
