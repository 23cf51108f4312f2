//! Accesses of global memory, as handlers of memory instructions note them.

use std::collections::VecDeque;

use wavetap_amdgpu::RegFile;

use crate::lanes::LANES;
use crate::shadow::in_flight::InFlight;
use crate::shadow::races::How;

/// An access of one lane.
#[derive(Clone, Copy)]
pub(crate) struct GlobalNote {
    pub lane: u8,
    /// Bytes.
    pub size: u8,
    pub address: u64,
    pub how: How,
}

/// The lanes of an instruction that takes the fast path: they read or write whole registers.
pub(crate) struct GlobalRow {
    pub mask: u64,
    /// Bytes of a lane.
    pub size: usize,
    /// Whether all lanes of the wave are active, and follow each other.
    pub follows: bool,
    /// Those of other lanes mean nothing, nor do those after the first of lanes that follow each other.
    pub addresses: [u64; LANES],
    /// The file and first register of what is stored; none for loads.
    pub from: Option<(RegFile, u16)>,
}

impl GlobalRow {
    /// Bytes of all lanes.
    pub(crate) fn bytes(&self) -> u64 {
        self.size as u64 * u64::from(self.mask.count_ones())
    }

    /// The address of an active lane.
    pub(crate) fn address(&self, lane: usize) -> u64 {
        if self.follows { self.addresses[0] + (lane * self.size) as u64 } else { self.addresses[lane] }
    }
}

/// What is kept of a wave.
#[derive(Default)]
pub(crate) struct GlobalNotes {
    /// Those of the instruction that is running.
    pub lanes: Vec<GlobalNote>,
    pub row: Option<Box<GlobalRow>>,
    pub has_row: bool,
    /// Operations that write memory and may still be in flight.
    writes: VecDeque<u32>,
}

impl GlobalNotes {
    /// Whether the instruction has accessed global memory.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        !self.has_row && self.lanes.is_empty()
    }

    /// Notes the row of a fast path.
    #[inline]
    pub(crate) fn set_row(
        &mut self,
        (mask, size, follows): (u64, usize, bool),
        addresses: &[u64; LANES],
        from: Option<(RegFile, u16)>,
    ) {
        let row = self.row.get_or_insert_with(|| {
            Box::new(GlobalRow { mask: 0, size: 0, follows: false, addresses: [0; LANES], from: None })
        });
        (row.mask, row.size, row.follows, row.from) = (mask, size, follows, from);
        if follows {
            row.addresses[0] = addresses[0];
        } else {
            row.addresses = *addresses;
        }
        self.has_row = true;
    }

    /// An operation writes memory.
    pub(crate) fn wrote(&mut self, id: u32, in_flight: &InFlight) {
        while self.writes.front().is_some_and(|&oldest| !in_flight.is_in_flight(oldest)) {
            self.writes.pop_front();
        }
        if self.writes.back() != Some(&id) {
            self.writes.push_back(id);
        }
    }

    /// The first operation that writes memory and may still be in flight, or the next operation.
    pub(crate) fn oldest_write(&self, in_flight: &InFlight) -> u32 {
        let found = self.writes.iter().copied().find(|&id| in_flight.is_in_flight(id));
        found.unwrap_or(in_flight.ids().1)
    }
}
