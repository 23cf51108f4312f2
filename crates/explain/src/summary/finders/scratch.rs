//! Spilled registers and arrays in scratch memory.

use super::lines::Lines;
use super::{Reason, Subject};
use crate::summary::data::FindingKind;
use crate::summary::waiting::{Waited, waiting};
use crate::{Basis, Kernel};
use wavetap_amdgpu::Demand;
use wavetap_mix::{Class, VectorSpace};

/// A kernel that spends this part of its instructions, or of its modelled cycles, on scratch memory is a finding.
const SCRATCH: f64 = 0.03;

/// Registers that are spilled, and arrays in scratch memory, where it is accessed often.
pub(super) fn scratch(subject: &Subject<'_>) -> Vec<Reason> {
    find_scratch(subject).into_iter().collect()
}

fn find_scratch(subject: &Subject<'_>) -> Option<Reason> {
    let code = subject.code?;
    let bytes = subject.kernel.before?.scratch_bytes;
    let executed = code.executed()? as f64;
    let is_scratch = |class: Class| matches!(class, Class::VectorMemory(VectorSpace::Scratch, _));
    let accesses: Vec<_> = code.instructions.iter().filter(|(_, access)| is_scratch(access.class)).collect();
    let part = |executions: Option<u64>| executions.unwrap_or(0) as f64 / executed;
    let lines = Lines::add_up(accesses.iter().map(|(_, access)| (access.source.clone(), part(access.executions))));
    let waited = match subject.time {
        Some(_) => waiting(subject).remove(&Waited::Scratch).unwrap_or_default().iter().map(|part| part.part).sum(),
        None => 0.0,
    };
    let weight = lines.sum().max(waited);
    if bytes == 0 || lines.sum() == 0.0 || weight < SCRATCH {
        return None;
    }
    let launched = subject.kernel.launches.iter().map(|launch| u64::from(launch.shape.workgroup_size())).max();
    let bounds = launched.zip(code.largest_workgroup).filter(|(launched, largest)| launched < largest);
    let bounds = bounds.filter(|(_, largest)| is_limited_by(subject.kernel, *largest));
    let (name, help) = match (code.spilled_vgprs, bounds) {
        (0, _) => ("scratch", "index arrays by constants, or keep them in LDS".to_owned()),
        (_, Some((launched, largest))) => ("spills", format!("__launch_bounds__({launched}), now {largest}")),
        _ => ("spills", "keep fewer values alive".to_owned()),
    };
    let registers = match code.spilled_vgprs {
        0 => String::new(),
        spilled => format!("{spilled} VGPRs, "),
    };
    let text =
        format!("{name}{}: {registers}{bytes} B a lane, {:.0} % of instructions", lines.places(), 100.0 * lines.sum());
    let operations = accesses.iter().map(|(address, _)| **address).collect();
    Some(Reason { finding: lines.finding(FindingKind::Spills, Basis::Counted, text, &help, weight), operations })
}

/// Whether a kernel has all the registers that it can have in workgroups of this size: it would have more in smaller
/// ones.
fn is_limited_by(kernel: &Kernel, largest: u64) -> bool {
    let fits = || {
        let before = kernel.before?;
        let target = kernel.processor()?.with_wave_size(before.wave_size)?;
        let demand = |vgprs: u32| Demand {
            vgprs,
            sgprs: before.sgprs,
            lds_bytes: 0,
            workgroup_size: u32::try_from(largest).unwrap_or(u32::MAX),
            wgp_mode: before.wgp_mode && target.has_wgp_mode(),
        };
        let more = before.vgprs.saturating_add(target.vgpr_granule());
        Some(target.workgroups(&demand(before.vgprs)) > 0 && target.workgroups(&demand(more)) == 0)
    };
    fits().unwrap_or(false)
}
