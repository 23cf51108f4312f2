//! Faults and findings as `wavetap check` records them.

use wavetap_profile::check::{Access, AccessKind, Allocation, Class, CodePlace, Executor, Finding, OtherAccess};

use super::findings::{Finding as Found, FindingKind};
use super::{
    BarrierProblem, Fault, FaultKind, GlobalAccess, LdsAccess, MemoryAccess, MissingOrder, MissingSynchronisation,
};
use crate::address::allocation::Allocation as Memory;

/// Addresses below this one are null pointers with an index: no allocation is there, on any system.
const NULL_PAGES: u64 = 1 << 16;
/// Bytes from an allocation's end, or before its start, up to which a wrong address is taken for one of it.
const NEAR: u64 = 1 << 30;

impl From<MemoryAccess> for AccessKind {
    fn from(access: MemoryAccess) -> AccessKind {
        match access {
            MemoryAccess::Load => AccessKind::Load,
            MemoryAccess::Store => AccessKind::Store,
            MemoryAccess::Atomic => AccessKind::Atomic,
            MemoryAccess::Fetch => AccessKind::Fetch,
        }
    }
}

impl Found {
    /// It as a record. `launch` is the number of the launch, from 1; the kernel's name and source lines are left open.
    #[must_use]
    pub fn checked(&self, launch: u64) -> Finding {
        let mut finding = self.fault.checked(launch);
        (finding.count, finding.stopped) = (self.count, false);
        if let (Some(by), true) = (&mut finding.by, self.lanes != 0 && finding.class != Class::LaneConflict) {
            by.lanes = (0..64).filter(|lane| self.lanes >> lane & 1 != 0).collect();
        }
        finding
    }
}

impl Fault {
    /// It as a record of a kernel that cannot go on.
    #[must_use]
    pub fn checked(&self, launch: u64) -> Finding {
        let class = self.class();
        let mut finding = Finding::new(class, self.kind.to_string());
        finding.stopped = true;
        finding.at = Some(CodePlace {
            kernel: String::new(),
            address: self.address,
            instruction: self.instruction.to_string(),
            source: None,
            function: None,
            inlined_at: Vec::new(),
        });
        let by = |wave| Executor { launch, workgroup: self.workgroup, wave, lanes: Vec::new() };
        finding.by = Some(Executor { lanes: self.lane.into_iter().collect(), ..by(self.wave) });
        match &self.kind {
            FaultKind::Memory { address, size, access, nearest } => {
                finding.access = Some(access_of(*access, format!("{address:#x}"), *size));
                finding.message = format!("{access} of {size} bytes at {address:#x}");
                let near = nearest.filter(|memory| is_near(memory, *address));
                if matches!(class, Class::HostPointer | Class::NullPointer) {
                    return finding;
                }
                finding.allocation = near.map(|memory| allocation_of(&memory, *address));
            }
            FaultKind::EndlessWait { address, size, nearest } => wait_of(&mut finding, *address, *size, *nearest),
            FaultKind::NoProgress(found) => wait_of(&mut finding, found.address, found.size, found.nearest),
            FaultKind::LdsBounds { offset, size, access, .. } => {
                finding.access = Some(access_of(*access, format!("{offset:#x}"), *size));
            }
            FaultKind::ScratchBounds { offset, size, access, .. } => {
                let at = if *offset < 0 { format!("-{:#x}", offset.unsigned_abs()) } else { format!("{offset:#x}") };
                finding.access = Some(access_of(*access, at, *size));
            }
            FaultKind::Misaligned { address, align } => {
                finding.access = Some(access_of(MemoryAccess::Atomic, format!("{address:#x}"), *align));
            }
            FaultKind::LdsRace { offset, access, other } => {
                let LdsAccess { access: before, instruction, address, wave, missing } = other;
                finding.access = Some(access_of(*access, format!("{offset:#x}"), 1));
                finding.message = format!(
                    "{access} of byte {offset:#x} of LDS, not ordered after {} of wave {wave}",
                    AccessKind::from(*before).with_article()
                );
                finding.other = Some(OtherAccess {
                    kind: (*before).into(),
                    at: Some(CodePlace {
                        kernel: String::new(),
                        address: *address,
                        instruction: (*instruction).to_owned(),
                        source: None,
                        function: None,
                        inlined_at: Vec::new(),
                    }),
                    by: Some(by(*wave)),
                    call: None,
                    later: false,
                    missing: match missing {
                        MissingOrder::OwnWait => "a wait for the earlier one, which may still be in flight",
                        MissingOrder::Wait => "a wait for the earlier one before the barrier between the two",
                        MissingOrder::Barrier => "a barrier between the two",
                    }
                    .to_owned(),
                });
            }
            FaultKind::GlobalRace { address, access, other, .. } => {
                let GlobalAccess {
                    access: before,
                    instruction,
                    address: at,
                    object,
                    workgroup,
                    wave,
                    missing,
                    dispatch,
                } = &**other;
                finding.access = Some(access_of(*access, format!("{address:#x}"), 1));
                let (whom, missing) = match missing {
                    MissingSynchronisation::Barrier => (format!("wave {wave}"), "a barrier between the two"),
                    MissingSynchronisation::Wait => {
                        (format!("wave {wave}"), "a wait for the earlier one, before the synchronisation of the two")
                    }
                    MissingSynchronisation::Order => {
                        (format!("workgroup {workgroup:?}"), "an atomic, or a flag with fences, between the workgroups")
                    }
                    MissingSynchronisation::Dispatch if object.is_some() => {
                        (format!("launch {dispatch}"), "an event, or one stream for both")
                    }
                    MissingSynchronisation::Dispatch => {
                        ((*instruction).to_owned(), "a synchronisation with the stream of the other")
                    }
                };
                finding.message = format!(
                    "{access} of {address:#x}, not ordered after {} of {whom}",
                    AccessKind::from(*before).with_article()
                );
                let at = object.map(|_| CodePlace {
                    kernel: String::new(),
                    address: *at,
                    instruction: (*instruction).to_owned(),
                    source: None,
                    function: None,
                    inlined_at: Vec::new(),
                });
                let by = Executor { launch: *dispatch, workgroup: *workgroup, wave: *wave, lanes: Vec::new() };
                finding.other = Some(OtherAccess {
                    kind: (*before).into(),
                    by: at.is_some().then_some(by),
                    at,
                    call: None,
                    later: false,
                    missing: missing.to_owned(),
                });
            }
            FaultKind::LaneConflict { address, lanes } => {
                finding.access = Some(access_of(MemoryAccess::Store, format!("{address:#x}"), 1));
                if let Some(by) = &mut finding.by {
                    by.lanes = lanes.to_vec();
                }
            }
            FaultKind::Barrier { problem } => {
                finding.message = problem.to_string();
                if let Some(at) = finding.at.as_mut().filter(|at| at.address != problem.at()) {
                    (at.address, at.instruction) = (problem.at(), String::new());
                }
                if let BarrierProblem::Different { other, wave, .. } = problem {
                    finding.other = Some(OtherAccess {
                        kind: AccessKind::Barrier,
                        at: Some(CodePlace {
                            kernel: String::new(),
                            address: *other,
                            instruction: String::new(),
                            source: None,
                            function: None,
                            inlined_at: Vec::new(),
                        }),
                        by: Some(by(*wave)),
                        call: None,
                        later: false,
                        missing: "one barrier to which all waves of the workgroup come".to_owned(),
                    });
                }
                if let (BarrierProblem::Lanes { lanes, .. }, Some(by)) = (problem, &mut finding.by) {
                    by.lanes = (0..64).filter(|lane| lanes >> lane & 1 != 0).collect();
                }
            }
            _ => {}
        }
        finding
    }

    /// Its class as a record.
    fn class(&self) -> Class {
        match &self.kind {
            FaultKind::Memory { address, nearest, access, .. } => {
                let near = nearest.is_some_and(|memory| is_near(&memory, *address));
                match access {
                    _ if *address < NULL_PAGES => Class::NullPointer,
                    _ if !near => Class::HostPointer,
                    MemoryAccess::Load if FindingKind::of(&self.kind) == Some(FindingKind::Overread) => Class::Overread,
                    MemoryAccess::Load => Class::OutOfBoundsLoad,
                    MemoryAccess::Store => Class::OutOfBoundsStore,
                    MemoryAccess::Atomic => Class::OutOfBoundsAtomic,
                    MemoryAccess::Fetch => Class::Stopped,
                }
            }
            FaultKind::LdsBounds { .. } => Class::LdsOutOfBounds,
            FaultKind::ScratchBounds { .. } => Class::ScratchOutOfBounds,
            FaultKind::Misaligned { .. } => Class::Misaligned,
            FaultKind::LdsRace { .. } => Class::LdsRace,
            FaultKind::Uninitialised { .. } => Class::UninitialisedRegister,
            FaultKind::MissingWait { .. } => Class::MissingWait,
            FaultKind::Hazard { .. } => Class::Hazard,
            FaultKind::GlobalRace { same_value: true, .. } => Class::SameValue,
            FaultKind::GlobalRace { other, .. } if other.missing == MissingSynchronisation::Dispatch => {
                Class::StreamRace
            }
            FaultKind::GlobalRace { .. } => Class::GlobalRace,
            FaultKind::LaneConflict { .. } => Class::LaneConflict,
            FaultKind::Barrier { problem: BarrierProblem::Different { .. } } => Class::DifferentBarriers,
            FaultKind::Barrier { .. } => Class::DivergentBarrier,
            FaultKind::NoProgress(_) => Class::NotResident,
            _ => Class::Stopped,
        }
    }
}

/// Adds where a wave waits for a change of memory.
fn wait_of(finding: &mut Finding, address: u64, size: u32, nearest: Option<Memory>) {
    finding.access = Some(access_of(MemoryAccess::Load, format!("{address:#x}"), size));
    finding.allocation = nearest.map(|memory| allocation_of(&memory, address));
}

fn allocation_of(memory: &Memory, address: u64) -> Allocation {
    Allocation {
        address: memory.address,
        size: memory.size,
        offset: address.wrapping_sub(memory.address) as i64,
        variable: None,
        made: None,
        freed: None,
    }
}

fn access_of(kind: MemoryAccess, address: String, size: u32) -> Access {
    Access { kind: kind.into(), address, size }
}

fn is_near(memory: &Memory, address: u64) -> bool {
    let end = memory.address.saturating_add(memory.size);
    address.saturating_sub(end) < NEAR && memory.address.saturating_sub(address) < NEAR
}
