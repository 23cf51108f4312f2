//! What probably bounds a kernel whose time is not modelled: the cycles that its work keeps each part of the machine at
//! least, and memory at most, from what was counted and the machine's rates.
//!
//! Of memory it is not known what caches serve. So the accesses are taken to miss all of them: a kernel whose vector
//! ALU has more to do even then is bound by it. Where memory would have more to do, either may bound it.

use super::super::data::{Bound, Limit, LimitPart};
use super::super::subject::{Cycles, Subject};
use super::functions::{of_vector_alu, passes};
use super::{EMPTY, average_launch, board, idle_waves, in_order, launched};
use crate::Basis;
use crate::memory::Space;
use wavetap_amdgpu::{MachineFact, Target};
use wavetap_mix::Class;

/// The vector ALU bounds a kernel for sure if it has so many times as much to do as memory.
const SURE: f64 = 1.5;
/// Cycles of a matrix operation: of a middle one.
const MATRIX: f64 = 16.0;
/// A part with less than this of what the first one has to do is not named.
const NEXT: f64 = 0.2;

/// The cycles that the work of a kernel takes; none where it is not known how often instructions were executed.
pub(in super::super) fn cycles(subject: &Subject<'_>) -> Option<Cycles> {
    let (code, target) = (subject.code?, subject.kernel.processor()?);
    code.executed()?;
    let fact = |fact| f64::from(target.machine(fact).typical.max(1));
    let units = fact(MachineFact::ComputeUnits);
    let simds = units * f64::from(target.simds_per_cu());
    let interval = fact(MachineFact::IssueInterval);
    let lanes = f64::from(subject.kernel.wave_size().unwrap_or(target.wave_size()));
    let each_pass = (lanes / fact(MachineFact::ValuLanes)).max(1.0);
    let mut cycles = Cycles::default();
    for instruction in code.instructions.values() {
        let executions = instruction.executions.unwrap_or(0) as f64;
        match instruction.class {
            Class::Scalar(_) | Class::ScalarMemory(_) => cycles.scalar += executions * interval / simds,
            Class::Matrix(..) => cycles.matrix += executions * MATRIX / simds,
            class => cycles.vector_alu += executions * passes(target, class) * each_pass / simds,
        }
    }
    let (global, lds) = accesses(subject, target);
    cycles.lds = lds / units;
    cycles.memory = global / fact(MachineFact::MemoryBandwidth);
    Some(cycles)
}

/// Bytes of lines of global memory, and cycles of LDS, of all executions.
fn accesses(subject: &Subject<'_>, target: Target) -> (f64, f64) {
    let (mut bytes, mut cycles) = (0.0, 0.0);
    let Some(memory) = subject.memory else { return (bytes, cycles) };
    let line = f64::from(memory.line_bytes);
    let interval = f64::from(target.machine(MachineFact::IssueInterval).typical.max(1));
    for access in &memory.accesses {
        let executions = access.executions.unwrap_or(0) as f64;
        match (access.lines, access.lds) {
            (Some(lines), _) => bytes += executions * line * lines.likely,
            (None, Some(lds)) => cycles += executions * lds.cycles,
            // Lanes that go anywhere: as many lines as they are.
            (None, None) if matches!(access.known_space(), Space::Global | Space::Buffer | Space::Flat) => {
                bytes += executions * line * subject.least_lines(access).max(subject.active_lanes(access.address));
            }
            (None, None) => cycles += executions * interval,
        }
    }
    (bytes, cycles)
}

/// Launches whose waves leave most SIMDs without one.
fn few_waves(subject: &Subject<'_>) -> Option<LimitPart> {
    let (groups, waves) = average_launch(subject)?;
    let simds = f64::from(board(subject)?.compute_units) * f64::from(subject.kernel.processor()?.simds_per_cu());
    let part = (waves / simds).min(1.0);
    (part < EMPTY).then(|| LimitPart {
        limit: Limit::FewWaves,
        text: format!("few waves: {} a launch, on {simds:.0} SIMDs", launched(groups, waves)),
        part: 1.0 - part,
    })
}

pub(super) fn bound(subject: &Subject<'_>) -> Option<Bound> {
    let cycles = cycles(subject)?;
    let all = cycles.memory.max(cycles.vector_alu).max(cycles.scalar).max(cycles.lds).max(cycles.matrix);
    if all <= 0.0 {
        return None;
    }
    let mut parts = Vec::new();
    let mut part = |limit: Limit, cycles: f64, text: String| {
        if cycles >= NEXT * all {
            parts.push(LimitPart { limit, text, part: cycles / all });
        }
    };
    let functions = of_vector_alu(subject);
    part(Limit::VectorAlu, cycles.vector_alu, format!("vector ALU{functions}"));
    part(Limit::Matrix, cycles.matrix, "matrix cores".to_owned());
    part(Limit::Scalar, cycles.scalar, "scalar instructions (masks, loop control)".to_owned());
    part(Limit::Lds, cycles.lds, "LDS".to_owned());
    let computes = cycles.vector_alu.max(cycles.matrix).max(cycles.scalar).max(cycles.lds);
    let memory = match computes * SURE >= cycles.memory {
        true => "memory, if caches have little of it",
        false => "memory, its bandwidth or its latency",
    };
    part(Limit::Memory, cycles.memory, memory.to_owned());
    parts.sort_by(|a, b| b.part.total_cmp(&a.part));
    if let Some(few) = few_waves(subject) {
        parts.insert(0, few);
    }
    if let Some(idle) = idle_waves(subject) {
        parts.insert(0, idle);
    }
    in_order(parts, Basis::Predicted)
}
