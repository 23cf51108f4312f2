//! The accesses that a profile has of a kernel, with their addresses.

use std::collections::{BTreeMap, BTreeSet};

use wavetap_amdgpu::Inst;
use wavetap_analysis::cfg::Program;
use wavetap_memory::{Allocation, Operation, Recorded, RecordedGrid, RecordedKernel, Space, resolve};
use wavetap_profile::accesses::DispatchAccesses;
use wavetap_profile::file::{KernelTotals, Profile};
use wavetap_profile::probes::memory::ACCESS;

/// The dispatches of a kernel of a profile that workgroups of were recorded.
pub(super) fn dispatches<'p>(
    profile: &'p Profile,
    kernel: &'p KernelTotals,
) -> impl Iterator<Item = &'p DispatchAccesses> {
    let is_ours = |dispatch: &&DispatchAccesses| {
        profile.kernels.get(dispatch.kernel as usize).is_some_and(|other| std::ptr::eq(other, kernel))
    };
    profile.accesses.iter().filter(is_ours)
}

/// What a profile has recorded of a kernel, whose code is in a program; none if it has nothing of it.
pub(super) fn of_profile(profile: &Profile, kernel: &KernelTotals, program: &Program) -> Option<RecordedKernel> {
    let dispatches: Vec<&DispatchAccesses> = dispatches(profile, kernel).collect();
    let target = program.bodies().iter().find(|body| body.name() == kernel.name)?.target();
    let lanes = u64::from(target.wave_size());
    let items = |size: [u32; 3]| size.iter().map(|axis| u64::from(*axis)).product::<u64>();
    let waves = dispatches.iter().map(|dispatch| items(dispatch.workgroup_size).div_ceil(lanes)).max()?;
    let (mut records, mut unresolved) = (Vec::new(), 0);
    for dispatch in &dispatches {
        for wave in &dispatch.waves {
            for access in &wave.accesses {
                let Some(site) = kernel.sites.get(access.site as usize) else { continue };
                let Some(inst) = inst_at(program, site.address) else { continue };
                let operation = Operation::of(inst)?;
                let resolved = resolve(target, inst, access, dispatch);
                unresolved += u64::from(resolved.is_none());
                records.extend(resolved.unwrap_or_default().into_iter().map(|resolved| Recorded {
                    address: site.address,
                    dispatch: dispatch.dispatch,
                    workgroup: wave.workgroup,
                    wave: wave.wave,
                    space: resolved.space,
                    operation,
                    bytes: resolved.bytes,
                    lanes: resolved.lanes,
                    addresses: resolved.addresses,
                }));
            }
        }
    }
    let sites = kernel.sites.iter().filter(|site| *site.counts.kind() == *ACCESS);
    let dropped: BTreeMap<u64, u64> = sites
        .map(|site| (site.address, site.counts.values().first().copied().unwrap_or(0)))
        .filter(|(_, dropped)| *dropped > 0)
        .collect();
    Some(RecordedKernel {
        target,
        waves: u32::try_from(waves).unwrap_or(u32::MAX),
        grids: dispatches.iter().map(|dispatch| (dispatch.dispatch, grid(dispatch))).collect(),
        workgroups: dispatches.iter().map(|dispatch| items(dispatch.workgroups)).sum(),
        records,
        dropped,
        unresolved,
        allocations: allocations(&dispatches),
    })
}

/// The workgroups of a dispatch, and those that were recorded.
fn grid(dispatch: &DispatchAccesses) -> RecordedGrid {
    RecordedGrid {
        workgroups: dispatch.workgroups,
        recorded: dispatch.waves.iter().map(|wave| wave.workgroup).collect(),
    }
}

fn inst_at(program: &Program, address: u64) -> Option<&Inst> {
    program.bodies().iter().find_map(|body| Some(body.inst(body.at(address)?)))
}

/// What was allocated while the dispatches ran: of memory that was allocated anew, what was there first.
fn allocations(dispatches: &[&DispatchAccesses]) -> Vec<Allocation> {
    let mut found: BTreeMap<u64, u64> = BTreeMap::new();
    for range in dispatches.iter().flat_map(|dispatch| &dispatch.allocations) {
        let end = range.address.saturating_add(range.size);
        let before = found.range(..end).next_back();
        if before.is_none_or(|(address, size)| address + size <= range.address) {
            found.insert(range.address, range.size);
        }
    }
    let allocation = |(ordinal, (base, size))| Allocation { base, size, ordinal, name: None };
    (0..).zip(found).map(allocation).collect()
}

/// Names what is allocated by the pointers that the code has to it: by address of an access, the argument that it is an
/// offset from.
pub(super) fn name(recorded: &mut RecordedKernel, arguments: &BTreeMap<u64, String>) {
    let mut names: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
    for record in recorded.records.iter().filter(|record| record.space == Space::Global) {
        let argument = arguments.get(&record.address);
        let allocation = record.addresses.first().and_then(|address| recorded.allocation_of(*address));
        if let (Some(argument), Some(allocation)) = (argument, allocation) {
            names.entry(allocation).or_default().insert(argument);
        }
    }
    for (allocation, names) in names {
        recorded.allocations[allocation].name = Some(names.into_iter().collect::<Vec<_>>().join(", "));
    }
}
