//! What a dispatch did: instruction and byte totals, and the exact branch counts that a profile is compared with.

use std::collections::BTreeMap;

use super::loader::ObjectId;
use super::origins::Origins;
use super::timing::ModelledTime;
use crate::profile::file::{Counts, ExecCounts, ScalarCounts};

/// The place of an instruction: the object and the virtual address in it (as in its ELF file).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeAddress {
    /// The loaded object.
    pub object: ObjectId,
    /// The virtual address within it.
    pub address: u64,
}

/// Counts of one instruction that narrows EXEC, in waves and lanes.
///
/// With E the mask before and F the condition: a wave that arrives with E = 0 counts in `empty` alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExecSiteCounts {
    /// Waves that executed it with some lane active.
    pub executions: u64,
    /// Those whose lanes all agreed: E & F is E or empty.
    pub agreements: u64,
    /// Active lanes before, summed.
    pub lanes_before: u64,
    /// Active lanes after, summed.
    pub lanes_after: u64,
    /// Waves that executed it with EXEC = 0.
    pub empty: u64,
}

impl ExecSiteCounts {
    /// Executions in which some lanes went on and others did not.
    #[must_use]
    pub fn divergences(&self) -> u64 {
        self.executions - self.agreements
    }

    pub(super) fn add(&mut self, other: &ExecSiteCounts) {
        self.executions += other.executions;
        self.agreements += other.agreements;
        self.lanes_before += other.lanes_before;
        self.lanes_after += other.lanes_after;
        self.empty += other.empty;
    }
}

/// Counts of one `s_cbranch_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BranchCounts {
    /// Waves that executed it.
    pub executions: u64,
    /// Those that took it.
    pub taken: u64,
}

/// The branch counts of a dispatch, exact to the last wave.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// Instructions that narrow EXEC.
    pub exec_sites: BTreeMap<CodeAddress, ExecSiteCounts>,
    /// Conditional scalar branches.
    pub branches: BTreeMap<CodeAddress, BranchCounts>,
    /// How often each instruction was executed, by waves.
    pub executed: BTreeMap<CodeAddress, u64>,
}

impl From<ExecSiteCounts> for Counts {
    fn from(counts: ExecSiteCounts) -> Counts {
        let ExecSiteCounts { executions, agreements, lanes_before, lanes_after, empty } = counts;
        Counts::Exec(ExecCounts { executions, agreements, lanes_before, lanes_after, empty })
    }
}

impl From<BranchCounts> for Counts {
    fn from(BranchCounts { executions, taken }: BranchCounts) -> Counts {
        Counts::Scalar(ScalarCounts { executions, taken })
    }
}

impl Trace {
    /// The counts of one object's sites by address, as a profile has them.
    #[must_use]
    pub fn sites(&self, object: ObjectId) -> BTreeMap<u64, Counts> {
        let vector = self.exec_sites.iter().map(|(place, counts)| (place, Counts::from(*counts)));
        let scalar = self.branches.iter().map(|(place, counts)| (place, Counts::from(*counts)));
        vector.chain(scalar).filter(|(place, _)| place.object == object).map(|(place, counts)| (place.address, counts)).collect()
    }

    /// Adds the counts of another trace.
    pub fn merge(&mut self, other: &Trace) {
        for (place, counts) in &other.exec_sites {
            let mine = self.exec_sites.entry(*place).or_default();
            mine.executions += counts.executions;
            mine.agreements += counts.agreements;
            mine.lanes_before += counts.lanes_before;
            mine.lanes_after += counts.lanes_after;
            mine.empty += counts.empty;
        }
        for (place, counts) in &other.branches {
            let mine = self.branches.entry(*place).or_default();
            mine.executions += counts.executions;
            mine.taken += counts.taken;
        }
        for (place, count) in &other.executed {
            *self.executed.entry(*place).or_default() += count;
        }
    }
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
    /// Branch counts, if [`super::Options::trace`] is on.
    pub trace: Option<Trace>,
    /// What was waited for and where values came from, if [`super::Options::origins`] is on.
    pub origins: Option<Box<Origins>>,
    /// Modelled time, if [`super::Options::timing`] is on.
    pub time: Option<Box<ModelledTime>>,
}

impl DispatchStats {
    /// Adds what another thread did of the same dispatch.
    pub(super) fn merge(&mut self, other: &DispatchStats) {
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
        if let (Some(mine), Some(its)) = (&mut self.trace, trace) {
            mine.merge(its);
        }
    }
}
