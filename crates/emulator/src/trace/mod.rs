//! What a dispatch did: instruction and byte totals, and the exact branch counts that a profile is compared with.

pub(crate) mod accesses;
pub(crate) mod origins;
pub(crate) mod timing;

use std::collections::BTreeMap;
use std::fmt;

use wavetap_profile::probes::blocks::{self, BlockCounts};
use wavetap_profile::probes::branches::{self, ExecCounts, ScalarCounts};
use wavetap_profile::schema::{Counts, KindSchema};

use self::accesses::AccessRecords;
use self::origins::Origins;
use self::timing::ModelledTime;
use crate::address::allocation::Allocation;
use crate::address::{CodeAddress, ObjectId};
use crate::fault::overrun::{Beyond, Overrun};
use crate::op::Class;

/// The branch counts of a dispatch, exact to the last wave.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// Instructions that narrow EXEC.
    pub exec_sites: BTreeMap<CodeAddress, ExecCounts>,
    /// Conditional uniform branches.
    pub branches: BTreeMap<CodeAddress, ScalarCounts>,
    /// How often each instruction was executed, by waves.
    pub executed: BTreeMap<CodeAddress, u64>,
    /// Active lanes before each instruction, summed over its executions; empty without [`crate::Options::trace_lanes`].
    pub lanes: BTreeMap<CodeAddress, u64>,
}

impl Trace {
    /// The counts of one object's sites in order of address, as a profile has them.
    #[must_use]
    pub fn sites(&self, object: ObjectId) -> Vec<(u64, Counts)> {
        let vector = self.exec_sites.iter().map(|(place, counts)| (place, Counts::from(*counts)));
        let scalar = self.branches.iter().map(|(place, counts)| (place, Counts::from(*counts)));
        let both = vector.chain(scalar).filter(|(place, _)| place.object == object);
        let mut sites: Vec<(u64, Counts)> = both.map(|(place, counts)| (place.address, counts)).collect();
        sites.sort_by_key(|(address, _)| *address);
        sites
    }

    /// Whether [`Trace::sites`] has the sites of a kind. Where sites of others are is what the rewriter says.
    #[must_use]
    pub fn finds(kind: &KindSchema) -> bool {
        kind.probe == branches::PROBE
    }

    /// What it has of a site of a probe that is at these addresses, each an instance of the same original instruction;
    /// none for a kind that it did not trace.
    #[must_use]
    pub fn counts(&self, kind: &KindSchema, object: ObjectId, addresses: &[u64]) -> Option<Counts> {
        let places = || addresses.iter().map(|&address| CodeAddress { object, address });
        let sum = |counts: &BTreeMap<CodeAddress, u64>| places().filter_map(|place| counts.get(&place)).sum();
        if *kind == **branches::EXEC {
            let mut all = ExecCounts::default();
            places().filter_map(|place| self.exec_sites.get(&place)).for_each(|counts| all += *counts);
            Some(all.into())
        } else if *kind == **branches::SCALAR {
            let mut all = ScalarCounts::default();
            places().filter_map(|place| self.branches.get(&place)).for_each(|counts| all += *counts);
            Some(all.into())
        } else if *kind == **blocks::BLOCK && self.lanes.len() == self.executed.len() {
            Some(BlockCounts { executions: sum(&self.executed), lanes: sum(&self.lanes) }.into())
        } else {
            None
        }
    }

    /// Adds the counts of another trace.
    pub fn merge(&mut self, other: &Trace) {
        for (place, counts) in &other.exec_sites {
            *self.exec_sites.entry(*place).or_default() += *counts;
        }
        for (place, counts) in &other.branches {
            *self.branches.entry(*place).or_default() += *counts;
        }
        for (place, count) in &other.executed {
            *self.executed.entry(*place).or_default() += count;
        }
        for (place, lanes) in &other.lanes {
            *self.lanes.entry(*place).or_default() += lanes;
        }
    }
}

impl fmt::Display for Overrun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Overrun { place, instruction, address, size, beyond } = self;
        match beyond {
            Beyond::Allocation { access, allocation: Allocation { address: start, size: length, .. } } => write!(
                f,
                "{access} of {size} bytes at {address:#x} runs past the end of its allocation, {start:#x}..{:#x}",
                start + length
            ),
            Beyond::Lds { requested, allocated } => write!(
                f,
                "LDS access of {size} bytes at offset {address:#x} is outside the {requested} bytes of the workgroup, \
                    for which {allocated} are allocated"
            ),
        }?;
        write!(f, ", in `{instruction}` at {:#x}", place.address)
    }
}

/// When a wave executed an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visit {
    /// The workgroup.
    pub workgroup: [u32; 3],
    /// The wave's index in it.
    pub wave: u32,
    /// The instruction.
    pub place: CodeAddress,
    /// EXEC before it.
    pub exec: u64,
    /// Of the first vector register that it reads: what each lane of it held. Empty if it reads none.
    pub vector: Vec<u32>,
    /// What the shader clock showed. With [`crate::Options::timing`] it is the modelled cycle; otherwise it only grows.
    pub cycle: u64,
}

/// Totals of a dispatch that ended well.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DispatchStats {
    /// Workgroups run.
    pub workgroups: u64,
    /// Waves run.
    pub waves: u64,
    /// Instructions issued, one per wave.
    pub instructions: u64,
    /// Of these, vector ALU (matrix included).
    pub valu: u64,
    /// Of these, scalar ALU.
    pub salu: u64,
    /// Of these, scalar memory.
    pub smem: u64,
    /// Of these, vector memory (global, flat, scratch, buffer).
    pub vmem: u64,
    /// Of these, LDS.
    pub lds: u64,
    /// Of these, branches (conditional or not, calls included).
    pub branches: u64,
    /// Of these, waits and barriers.
    pub waits: u64,
    /// Bytes that lanes read from and wrote to global memory (scratch and scalar loads included, caches not modelled).
    pub global_bytes: u64,
    /// Bytes that lanes read from and wrote to LDS.
    pub lds_bytes: u64,
    /// Accesses past the end of an allocation or of LDS that were let be, one for each instruction; none in strict
    /// mode.
    pub overruns: Vec<Overrun>,
    /// Where lanes went in memory, if [`crate::Options::accesses`] asks for it, without scalar accesses and images.
    pub accesses: AccessRecords,
    /// When waves executed the instructions of [`crate::Options::watched`]: those of each wave in their order.
    pub visits: Vec<Visit>,
    /// Branch counts, if [`crate::Options::trace`] is on.
    pub trace: Option<Trace>,
    /// What was waited for and where values came from, if [`crate::Options::origins`] is on.
    pub origins: Option<Box<Origins>>,
    /// Modelled time, if [`crate::Options::timing`] is on.
    pub time: Option<Box<ModelledTime>>,
}

impl DispatchStats {
    /// Counts executions of an instruction of a class.
    pub(crate) fn add(&mut self, class: Class, executed: u64) {
        self.instructions += executed;
        match class {
            Class::Valu => self.valu += executed,
            Class::Salu => self.salu += executed,
            Class::Smem => self.smem += executed,
            Class::Vmem => self.vmem += executed,
            Class::Lds => self.lds += executed,
            Class::Branch => self.branches += executed,
            Class::Wait => self.waits += executed,
            Class::Other => {}
        }
    }

    /// Whether an overrun of an instruction was noted.
    pub(crate) fn has_overrun_at(&self, place: CodeAddress) -> bool {
        self.overruns.iter().any(|known| known.place == place)
    }

    /// Notes the first overrun of an instruction.
    pub(crate) fn add_overrun(&mut self, overrun: &Overrun) {
        if !self.has_overrun_at(overrun.place) {
            self.overruns.push(overrun.clone());
        }
    }

    /// Adds what another thread did of the same dispatch.
    pub(crate) fn merge(&mut self, other: &DispatchStats) {
        let DispatchStats {
            workgroups,
            waves,
            instructions,
            valu,
            salu,
            smem,
            vmem,
            lds,
            branches,
            waits,
            global_bytes,
            lds_bytes,
            overruns,
            accesses,
            visits,
            trace,
            // These dispatches have one thread.
            origins: _,
            time: _,
        } = other;
        for (mine, its) in [
            (&mut self.workgroups, workgroups),
            (&mut self.waves, waves),
            (&mut self.instructions, instructions),
            (&mut self.valu, valu),
            (&mut self.salu, salu),
            (&mut self.smem, smem),
            (&mut self.vmem, vmem),
            (&mut self.lds, lds),
            (&mut self.branches, branches),
            (&mut self.waits, waits),
            (&mut self.global_bytes, global_bytes),
            (&mut self.lds_bytes, lds_bytes),
        ] {
            *mine += its;
        }
        overruns.iter().for_each(|overrun| self.add_overrun(overrun));
        self.accesses.merge(accesses);
        self.visits.extend_from_slice(visits);
        if let (Some(mine), Some(its)) = (&mut self.trace, trace) {
            mine.merge(its);
        }
    }
}
