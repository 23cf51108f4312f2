//! What a summary has to know of the code of kernels.

use std::collections::BTreeMap;

use super::memory::{self, MemoryInputs};
use super::mix::{KernelToCount, totals};
use super::object::Object;
use wavetap_amdgpu::{Branch, Condition, Flags, OpcodeFlags, Reg};
use wavetap_analysis::cfg::{BodyId, Cfg, EdgeKind, Exit};
use wavetap_analysis::dataflow::Summaries;
use wavetap_analysis::kernel::Body;
use wavetap_base::entity::{BlockId, InstId};
use wavetap_base::error::Result;
use wavetap_explain::code::{ExecutedCode, ExecutedInstruction, ExecutedLoop, IdleWaves, LaneGuard, program_line};
use wavetap_explain::launches::CodeOfKernel;
use wavetap_mix::{
    CountedInstruction, SiteCounts, early_exits, goes_lane_by_lane, guarded_work, idle_tests, math_functions,
    tests_work_items_only,
};
use wavetap_profile::file::{KernelTotals, Profile};
use wavetap_profile::map::Source;

/// What a summary has to know of the code of the kernels of an object that were dispatched. How lanes access memory,
/// and what each instruction did, only of the largest ones: a library has many kernels, and a summary shows a few.
///
/// # Errors
/// Limit if a sum does not fit 64 bits.
pub(super) fn code_of_kernels(
    object: &Object<'_>,
    profile: &Profile,
    largest: &[&KernelTotals],
) -> Result<Vec<CodeOfKernel>> {
    let of_object = |kernel: &&KernelTotals| kernel.object == object.digest;
    let summaries =
        largest.iter().copied().any(|kernel| of_object(&kernel)).then(|| Summaries::compute(&object.program));
    let program = &object.program;
    let mut code = Vec::new();
    for kernel in profile.kernels.iter().filter(of_object) {
        let Some(id) = program.by_name(&kernel.name) else { continue };
        let body = program.body(id);
        let is_large = largest.iter().any(|large| of_object(large) && large.name == kernel.name);
        let has_barriers = |id: &BodyId| program.body(*id).opcode_flags().contains(OpcodeFlags::BARRIER);
        let mut of_kernel = CodeOfKernel {
            object: object.digest.clone(),
            name: kernel.name.clone(),
            barriers: has_barriers(&id) || program.callees(id).bodies.iter().any(has_barriers),
            guard: guard(body),
            memory: None,
            executed: None,
        };
        if let Some(summaries) = summaries.as_ref().filter(|_| is_large) {
            let inputs = MemoryInputs { profile: Some(profile), ..MemoryInputs::default() };
            of_kernel.memory = Some(memory::of_kernel(object, id, summaries, inputs));
            let totals = totals(profile, object, body)?;
            of_kernel.executed = totals.map(|totals| executed(object, id, &totals, summaries));
        }
        code.push(of_kernel);
    }
    Ok(code)
}

/// The code of a kernel with what was counted.
fn executed(object: &Object<'_>, id: BodyId, totals: &KernelTotals, summaries: &Summaries) -> ExecutedCode {
    let counts = SiteCounts::of(totals);
    let kernel = KernelToCount::new(object, id, totals, &counts, summaries);
    let own = object.program.body(id);
    let metadata = object.code.kernel(own.name()).and_then(|kernel| kernel.metadata.as_ref());
    let mut code = ExecutedCode {
        spilled_vgprs: metadata.map_or(0, |metadata| metadata.vgpr_spill_count),
        largest_workgroup: metadata.map(|metadata| metadata.max_flat_workgroup_size).filter(|size| *size > 0),
        ..ExecutedCode::default()
    };
    kernel.each_body(|body, cfg, definitions, instructions| {
        let guards = guarded_work(body, cfg, definitions, &counts, &instructions);
        code.guards.extend(guards.into_iter().map(|guard| LaneGuard {
            address: body.address(guard.inst),
            leaves_loop: guard.leaves_loop,
            executions: guard.executions,
            lanes: guard.lanes,
            is_counted: guard.is_counted,
            before: guard.before,
            idle: guard.idle,
            with_empty: guard.with_empty,
            disagreed: guard.disagreed,
            going_on: guard.going_on,
            of_work_items: tests_work_items_only(body, definitions, guard.inst),
        }));
        code.loops.extend(cfg.loops().all().iter().map(|each| ExecutedLoop {
            header: body.address(cfg.block(each.header).first),
            depth: each.depth,
            addresses: each.blocks.iter().flat_map(|id| cfg.block(*id).insts()).map(|id| body.address(id)).collect(),
            lane_by_lane: goes_lane_by_lane(body, cfg, definitions, each),
        }));
        if body.entry_address() == own.entry_address() {
            code.leaving = leaving(body, cfg, &instructions);
            let idle = idle_tests(body, cfg, definitions, &counts, &instructions, totals.waves);
            code.idle = idle.map(|test| IdleWaves { address: body.address(test.inst), waves: test.idle, of: test.of });
        }
        let lines: BTreeMap<InstId, Source> = instructions
            .iter()
            .filter_map(|each| Some((each.inst, program_line(&object.frames(each.address))?)))
            .collect();
        let math = math_functions(body, definitions, |inst| lines.get(&inst));
        for instruction in instructions {
            let CountedInstruction { inst, address, executions, lanes, ref work, .. } = instruction;
            let Some(class) = work.class_by_memory() else { continue };
            let (source, math) = (lines.get(&inst).cloned(), math.get(&inst).copied());
            code.instructions.insert(address, ExecutedInstruction { source, class, math, executions, lanes });
        }
    });
    code
}

/// The waves that leave a kernel at once.
fn leaving(body: &Body, cfg: &Cfg, instructions: &[CountedInstruction]) -> Option<IdleWaves> {
    let executions = |block: BlockId| {
        let first = cfg.block(block).first;
        instructions.iter().find(|instruction| instruction.inst == first)?.executions
    };
    let exit = early_exits(body, cfg, executions)?;
    Some(IdleWaves { address: body.address(exit.branch), waves: exit.waves, of: exit.of })
}

/// The instruction by which lanes without work leave the whole kernel: the last one of its first block that writes
/// EXEC, if the block ends in a branch on EXEC = 0 to where the wave ends and nothing else is done. Where lanes have
/// loaded something before, that is their work, and what it decides no launch can know.
fn guard(body: &Body) -> Option<u64> {
    let cfg = Cfg::build(body);
    let entry = cfg.block(cfg.entry());
    let accesses = |inst: InstId| {
        let inst = body.inst(inst);
        inst.variant.flags.intersects(Flags::LOAD | Flags::STORE | Flags::ATOMIC)
            && !inst.is_any(OpcodeFlags::SCALAR_LOAD)
    };
    if entry.insts().any(accesses) {
        return None;
    }
    if body.inst(entry.last).variant.branch != Branch::Conditional(Condition::ExecZ) {
        return None;
    }
    let taken = entry.successors.iter().find(|edge| edge.kind == EdgeKind::Taken)?;
    let end = cfg.block(taken.block);
    let does_nothing = |inst: InstId| {
        let flags = body.inst(inst).variant.flags;
        !flags.intersects(Flags::VALU | Flags::LOAD | Flags::STORE | Flags::ATOMIC)
    };
    if end.exit != Some(Exit::End) || !end.insts().all(does_nothing) {
        return None;
    }
    let writes_exec = |inst: &InstId| body.writes(*inst).any(|reg| reg.overlaps(Reg::EXEC));
    entry.insts().rev().find(writes_exec).map(|inst| body.address(inst))
}
