//! Waves without work that stay: tests that no lane of a wave passes, where nearly all accesses are under such tests.
//! And tests of nothing but the place of a work-item in its workgroup.

use rustc_hash::FxHashSet;
use wavetap_amdgpu::{Flags, Opcode, OpcodeFlags, Reg, RegFile, Value, VectorOp};
use wavetap_analysis::cfg::Cfg;
use wavetap_analysis::dataflow::{Definition, Definitions};
use wavetap_analysis::kernel::Body;
use wavetap_base::entity::InstId;

use crate::count::CountedInstruction;
use crate::guards::skipping;
use crate::sites::SiteCounts;

/// Masks within each other that are followed outward from an access.
const DEPTH: usize = 32;
/// A test counts if waves come to it this often on average.
const OFTEN: f64 = 0.9;
/// And if this part of them goes on without a lane.
const IDLE: f64 = 0.5;
/// Waves without a lane have no work if this part of all accesses is under such tests.
const ACCESSES: f64 = 0.75;

/// Waves that have no lane for the work of a kernel, and do not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleTests {
    /// The instruction that narrows EXEC at the test that most of them fail.
    pub inst: InstId,
    /// Executions of this test by waves without a lane that passes.
    pub idle: u64,
    /// Its executions.
    pub of: u64,
}

/// The tests of a body that at least half of the waves fail, if nearly all of its accesses are under them. `waves` ran.
#[must_use]
pub fn idle_tests(
    body: &Body,
    cfg: &Cfg,
    definitions: &Definitions<'_>,
    counts: &SiteCounts<'_>,
    instructions: &[CountedInstruction],
    waves: u64,
) -> Option<IdleTests> {
    let executions = |inst: InstId| instructions.iter().find(|instruction| instruction.inst == inst)?.executions;
    let test = |inst: InstId| {
        let counted = counts.exec(body.address(inst))?;
        let inside = cfg.block(skipping(body, cfg, inst)?);
        let passed = executions(inside.first).filter(|_| inside.predecessors.len() == 1)?;
        let of = counted.executions.saturating_add(counted.empty);
        let idle = of.checked_sub(passed)?;
        let often = of as f64 >= OFTEN * waves as f64;
        (often && of > 0 && idle as f64 >= IDLE * of as f64).then_some(IdleTests { inst, idle, of })
    };
    let tests: Vec<IdleTests> = body.ids().filter_map(test).collect();
    let worst = tests.iter().max_by_key(|test| test.idle)?;
    let accesses: Vec<InstId> = body.ids().filter(|inst| is_access(body, *inst)).collect();
    let is_under = |inst: &&InstId| {
        let outward = std::iter::successors(definitions.mask_formed_by(**inst), |at| definitions.mask_formed_by(*at));
        outward.take(DEPTH).any(|guard| tests.iter().any(|test| test.inst == guard))
    };
    let under = accesses.iter().filter(is_under).count();
    (under > 0 && under as f64 >= ACCESSES * accesses.len() as f64).then_some(*worst)
}

/// Whether lanes access memory or LDS.
fn is_access(body: &Body, inst: InstId) -> bool {
    let inst = body.inst(inst);
    inst.variant.flags.intersects(Flags::LOAD | Flags::STORE | Flags::ATOMIC) && !inst.is_any(OpcodeFlags::SCALAR_LOAD)
}

/// Whether what an instruction of the vector ALU makes of a work-item's number has the same order: sums, moves, and the
/// number itself out of the register that has all three.
fn keeps_order(body: &Body, inst: InstId) -> bool {
    /// The ABI puts 10 bits of each into one register.
    const NUMBER: u32 = 0x3ff;
    let code = body.inst(inst);
    let has = |value: u32| {
        code.operands.iter().any(|operand| match operand.value {
            Value::Literal(literal) => literal == value,
            Value::InlineInt(int) => u32::try_from(int).is_ok_and(|int| int == value),
            _ => false,
        })
    };
    match code.opcode() {
        Opcode::V_AND_B32 => has(NUMBER),
        Opcode::V_BFE_U32 => has(10),
        opcode => opcode.vector().is_some_and(|vector| matches!(vector.operation, VectorOp::Add | VectorOp::Move)),
    }
}

/// Whether an instruction that narrows EXEC tests whether a work-item's number in its workgroup is below or above what
/// is the same for all: no data, no workgroup's number, and no digit of the number alone, as for every second lane.
#[must_use]
pub fn tests_work_items_only(body: &Body, definitions: &Definitions<'_>, inst: InstId) -> bool {
    /// Definitions that are followed back.
    const MOST: usize = 64;
    let reads_condition = |reg: &Reg| !reg.overlaps(Reg::EXEC);
    let mut seen: FxHashSet<InstId> = FxHashSet::default();
    let mut work: Vec<InstId> = vec![inst];
    let mut of_work_item = false;
    while let Some(at) = work.pop() {
        if !seen.insert(at) {
            continue;
        }
        if seen.len() > MOST {
            return false;
        }
        for reg in body.reads(at).filter(reads_condition) {
            for definition in definitions.reaching(at, reg) {
                match definition {
                    // The ABI puts the work-item's numbers there.
                    Definition::Entry if reg.file == RegFile::Vector && reg.first < 3 => of_work_item = true,
                    Definition::Entry | Definition::Call(_) => return false,
                    // What scalar memory holds is the same for all.
                    Definition::Inst(from) if body.inst(from).is_any(OpcodeFlags::SCALAR_LOAD) => {}
                    Definition::Inst(from) if reg.file == RegFile::Vector && !keeps_order(body, from) => return false,
                    Definition::Inst(from) => work.push(from),
                }
            }
        }
    }
    of_work_item
}
