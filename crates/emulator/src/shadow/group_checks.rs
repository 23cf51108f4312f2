//! What strict mode keeps of a workgroup.

use rustc_hash::FxHashMap;

use wavetap_amdgpu::Counter;

use super::barrier_sites::BarrierSites;
use super::in_flight::InFlight;
use super::init_shadow::{Stored, UndefinedOrigin};
use super::neighbours::Neighbours;
use crate::fault::FaultKind;
use crate::launch::Launch;
use crate::memory::View;
use crate::shadow::races::Races;

/// What strict mode keeps of a workgroup.
#[derive(Default)]
pub(crate) struct GroupChecks {
    pub races: Races,
    /// Its number among the workgroups whose accesses of global memory are checked.
    pub group: Option<u32>,
    /// The undefined bits of LDS; empty before the first access.
    pub lds: Vec<u8>,
    /// By its dword in LDS: the last store of undefined bits there.
    stored: FxHashMap<u32, Stored>,
    /// Stores to memory that were in flight at the last barrier.
    late: Vec<LateStore>,
    pub neighbours: Neighbours,
    pub sites: BarrierSites,
}

/// A store that a wave had not waited for when it came to the barrier.
pub(crate) struct LateStore {
    wave: u32,
    id: u32,
    address: u64,
    bytes: u32,
    name: &'static str,
    at: u64,
    counter: Box<str>,
}

/// Whether a counter counts stores to memory.
pub(crate) fn counts_stores(launch: &Launch, counter: Counter) -> bool {
    match counter {
        Counter::Vs | Counter::Store => true,
        Counter::Vm => launch.target.generation() < 10,
        _ => false,
    }
}

impl GroupChecks {
    /// A wave comes to the barrier. Its stores are visible to the others after it only if it has waited for them,
    /// where these may use another cache.
    pub(crate) fn arrives(&mut self, wave: u32, in_flight: &mut InFlight, launch: &Launch) {
        in_flight.at_barrier();
        if launch.apart {
            self.late.retain(|late| late.wave != wave);
            self.late.extend(in_flight.stores().map(|(id, address, bytes, name, at, counter)| LateStore {
                wave,
                id,
                address,
                bytes,
                name,
                at,
                counter,
            }));
        }
    }

    /// A wave has waited: what that guarantees is no longer late.
    fn forget_late(&mut self, wave: u32, in_flight: &InFlight) {
        self.late.retain(|late| late.wave != wave || in_flight.is_in_flight(late.id));
    }

    /// A wave has waited for at most `allowed` operations of a counter, which has guaranteed what it could.
    pub(crate) fn after_wait(
        &mut self,
        (wave, in_flight): (u32, &InFlight),
        launch: &Launch,
        (counter, allowed): (Counter, u32),
        memory: &View,
        lds: &mut [u8],
    ) -> Result<(), FaultKind> {
        if launch.apart {
            self.forget_late(wave, in_flight);
            return Ok(());
        }
        // Compilers before LLVM 21 let a wave release to the device what the others of the workgroup stored before a
        // barrier, where none of them has waited.
        if allowed != 0 || !counts_stores(launch, counter) {
            return Ok(());
        }
        self.neighbours.publish_before_barrier(memory, lds)
    }

    /// An instruction has stored undefined bits to a byte of LDS.
    pub(crate) fn note_stored(&mut self, at: u32, stored: Stored) {
        self.stored.insert(at / 4, stored);
    }

    /// Where undefined bits come from that the instruction at a code address loads from a byte of LDS.
    pub(crate) fn origin_in_lds(&self, at: u32, by: u64) -> UndefinedOrigin {
        self.stored.get(&(at / 4)).map_or(UndefinedOrigin::Lds(at, by), |&stored| UndefinedOrigin::Stored {
            scratch: false,
            at,
            by,
            stored,
        })
    }

    /// Whether any wave's stores were in flight at the last barrier.
    pub(crate) fn has_late_stores(&self) -> bool {
        !self.late.is_empty()
    }

    /// A wave loads from memory: none of what may still be on its way to where it can see it.
    pub(crate) fn check_load(&self, wave: u32, address: u64, size: usize) -> Result<(), FaultKind> {
        let overlaps = |late: &&LateStore| {
            late.wave != wave && late.address < address + size as u64 && address < late.address + u64::from(late.bytes)
        };
        match self.late.iter().find(overlaps) {
            None => Ok(()),
            Some(late) => Err(FaultKind::MissingWait {
                register: format!("memory at {address:#x}").into(),
                pending: late.name,
                pending_at: late.at,
                counter: late.counter.clone(),
                overwritten: false,
            }),
        }
    }
}
