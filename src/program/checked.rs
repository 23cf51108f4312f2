//! What the probe of bounds found, as `wavetap check` reports it.

use std::collections::BTreeSet;

use wavetap_amdgpu::{Flags, Inst};
use wavetap_base::error::Result;
use wavetap_collect::check::places;
use wavetap_object::offload_bundle::Input;
use wavetap_profile::bounds::{NEAR, OutOfBounds};
use wavetap_profile::check::{Access, AccessKind, Allocation, Class, CodePlace, Executor, Finding};
use wavetap_profile::file::{KernelTotals, Profile, SiteTotals};
use wavetap_profile::launches::NotCounted;
use wavetap_profile::probes::bounds;

use super::Program;
use crate::pipeline::{Object, Options, Selection, objects, probe};
use crate::run::{Checked, Finished, Observer, RunOptions};

/// Addresses below this one are null pointers with an index: no allocation is there, on any system.
const NULL_PAGES: u64 = 1 << 16;
/// Allocations end with a whole page for the GPU, whose rest a load may read without a fault.
const PAGE: u64 = 4096;
/// What the probe does not look at.
const UNSEEN: &str = "memory: LDS, scratch memory and scalar loads (--backend emulator checks these), and freed memory \
                      that was allocated again";

impl Program {
    /// Runs the program with the probe of bounds in all its kernels, where the HSA tool counts, or the emulator's
    /// runtime: what [`RunOptions::check`] finds on the emulator alone, as far as the probe finds it. `drops`: accesses
    /// that are out of bounds are not executed.
    ///
    /// # Errors
    /// As [`Program::profile`].
    pub fn check_bounds(&self, run: &RunOptions, drops: bool, observer: &dyn Observer) -> Result<(Finished, Checked)> {
        let probe = if drops { probe::BOUNDS_DROP } else { probe::BOUNDS };
        let rewritten = self.rewrite_at_load(&Options::new([probe]));
        let finished = rewritten.run_observed(run, observer)?;
        let checked = finished.bounds()?;
        Ok((finished, checked))
    }
}

impl Finished {
    /// What the probe of bounds found.
    fn bounds(&self) -> Result<Checked> {
        let mut checked = Checked::default();
        if let Some(nothing) = self.nothing_loaded() {
            checked.not_checked.push(nothing);
            return Ok(checked);
        }
        let profile = self.profile()?;
        checked.processes = profile.processes.max(1) as usize;
        checked.launched = profile.kernels.iter().any(|kernel| kernel.dispatches > 0)
            || profile.uncounted.iter().any(|uncounted| uncounted.why != NotCounted::LaunchFailed);
        let mut done = BTreeSet::new();
        self.each_code(&profile, true, |data| {
            let input = Input::parse(data)?;
            for object in objects(&input, &Selection::default(), &mut Vec::new())? {
                if done.insert(object.digest.clone()) {
                    checked.findings.extend(of_object(&profile, &object));
                }
            }
            Ok(())
        })?;
        checked.not_checked.push(UNSEEN.to_owned());
        checked.not_checked.extend(not_checked(&profile));
        if !profile.complete && self.signal().is_none() {
            checked.not_checked.push("the run is incomplete: not every dispatch was checked to its end".to_owned());
        }
        Ok(checked)
    }
}

/// Kernels that ran without being checked.
fn not_checked(profile: &Profile) -> Vec<String> {
    let of_kernel = |name: &str, why: &str, dispatches: u64| {
        let times = if dispatches == 1 { "1 dispatch".to_owned() } else { format!("{dispatches} dispatches") };
        format!("kernel {name}, {times}: {why}")
    };
    let uncounted = profile.uncounted.iter().filter(|uncounted| uncounted.why != NotCounted::LaunchFailed);
    let mut lines: Vec<String> =
        uncounted.map(|uncounted| of_kernel(&uncounted.demangled, &uncounted.detail, uncounted.dispatches)).collect();
    for kernel in &profile.kernels {
        for callee in &kernel.uncounted_callees {
            lines.push(format!("function {callee}, which kernel {} may call", kernel.demangled));
        }
        for site in &kernel.sites {
            let (executions, at) = (bounds::unchecked(&site.counts), site.address);
            if executions > 0 {
                let (name, text) = (&kernel.demangled, &site.instruction);
                lines.push(format!(
                    "kernel {name}, {text} ({at:#x}): its buffer is swizzled, or of another kind that is not checked, \
                     in {executions} executions"
                ));
            }
        }
        let lost = kernel.dropped + kernel.unfinished;
        if lost > 0 {
            lines.push(format!("kernel {}: {lost} of {} waves did not end", kernel.demangled, kernel.waves));
        }
    }
    lines
}

/// What was found in the kernels of a code object: the first bad access of each site.
fn of_object(profile: &Profile, object: &Object<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for (place, totals) in profile.kernels.iter().enumerate().filter(|(_, totals)| totals.object == object.digest) {
        let mut found: Vec<&OutOfBounds> =
            profile.out_of_bounds.iter().filter(|bad| bad.kernel as usize == place).collect();
        found.sort_by_key(|bad| (bad.site, bad.dispatch));
        found.dedup_by_key(|bad| bad.site);
        for bad in found {
            let Some(site) = totals.sites.get(bad.site as usize) else { continue };
            let bodies = object.program.bodies().iter();
            let inst = bodies.filter_map(|body| Some(body.inst(body.at(site.address)?))).next();
            let Some(inst) = inst else { continue };
            let mut finding = finding(totals, site, bad, inst);
            places::complete(&mut finding, Some(object.code.data()), &totals.name, None);
            match findings.iter_mut().find(|known| known.place() == finding.place()) {
                Some(known) => known.count += finding.count,
                None => findings.push(finding),
            }
        }
    }
    findings
}

fn finding(totals: &KernelTotals, site: &SiteTotals, bad: &OutOfBounds, inst: &Inst) -> Finding {
    let flags = inst.variant.flags;
    let kind = if flags.contains(Flags::ATOMIC) {
        AccessKind::Atomic
    } else if flags.contains(Flags::STORE) {
        AccessKind::Store
    } else {
        AccessKind::Load
    };
    let (address, size) = (bad.address, u32::from(inst.variant.memory_bytes));
    let near = bad.nearest.filter(|_| bad.distance().is_some_and(|distance| distance.abs() < NEAR));
    let is_overread = near.is_some_and(|range| {
        let end = range.address.saturating_add(range.size);
        let mapped = end.checked_next_multiple_of(PAGE).unwrap_or(end);
        address >= range.address && address.checked_add(size.into()).is_some_and(|last| last <= mapped)
    });
    let class = match kind {
        _ if address < NULL_PAGES => Class::NullPointer,
        AccessKind::Atomic => Class::OutOfBoundsAtomic,
        AccessKind::Store => Class::OutOfBoundsStore,
        _ if is_overread => Class::Overread,
        _ => Class::OutOfBoundsLoad,
    };
    let mut finding = Finding::new(class, format!("{kind} of {size} bytes at {address:#x}"));
    // Of dispatches that a fault ended nothing is counted, and the first execution alone is known.
    let counted = site.counts.values().get(1).copied().unwrap_or_default();
    finding.count = counted.max(bad.lanes.count_ones().into()).max(1);
    finding.stopped = counted == 0;
    finding.at = Some(CodePlace {
        kernel: totals.demangled.clone(),
        address: site.address,
        instruction: site.instruction.clone(),
        source: site.source.clone(),
        function: None,
        inlined_at: Vec::new(),
    });
    let lanes: Vec<u8> = (0..64).filter(|lane| bad.lanes >> lane & 1 != 0).collect();
    let launch = u64::from(bad.dispatch) + 1;
    finding.by = (!lanes.is_empty()).then_some(Executor { launch, workgroup: bad.workgroup, wave: bad.wave, lanes });
    finding.access = Some(Access { kind, address: format!("{address:#x}"), size });
    finding.allocation = near.filter(|_| class != Class::NullPointer).map(|range| Allocation {
        address: range.address,
        size: range.size,
        offset: address.wrapping_sub(range.address) as i64,
        variable: None,
        made: None,
        freed: None,
    });
    finding
}
