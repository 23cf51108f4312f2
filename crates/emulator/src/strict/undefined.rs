//! What instructions do with undefined bits.
//!
//! Where all sources are defined the results are, which is nearly always the case and costs a few masks. Otherwise the
//! instruction is tried several times on a copy of the wave with its undefined bits filled differently: result bits
//! that come out differently are undefined. So every instruction has the exact rule that its own meaning gives it (a
//! selection, a mask, a shift, a move between lanes), and none is reported that cannot matter. Among the fillings are
//! those in which an undefined source equals the other, for comparisons.
//!
//! Reported is the use of undefined bits as the condition of a branch, as EXEC, in an address, as the number of a lane
//! or of a register, and a store to memory that others see of a value none of whose bits is defined (parts of a wide
//! store may be padding). Global memory counts as written.

use smallvec::SmallVec;

use wavetap_amdgpu::{Opcode, RegFile, Role, scalar};

use crate::fault::FaultKind;
use crate::fault::stop::{ExecResult, Stop};
use crate::lanes::{LANES, active};
use crate::launch::Launch;
use crate::op::Class;
use crate::op::definedness::{Across, DefinednessRule, RequiredUse, RuleKind, registers};
use crate::op::registers::{ACCUM_SLOTS, slot};
use crate::op::semantics::{Semantics, Source};
use crate::shadow::init_shadow::{Since, UndefinedOrigin, name_of, scalar_slot};
use crate::state::core::Core;
use crate::state::fp_mode::GPR_IDX_EN;
use crate::state::op::Op;

pub(crate) fn uninitialised(
    register: String,
    origin: UndefinedOrigin,
    used: &'static str,
    lane: Option<u8>,
) -> ExecResult {
    let kind = FaultKind::Uninitialised { register: register.into(), origin: origin.text(), used };
    Err(Box::new(Stop { kind, lane }))
}

/// Reports a register that is used for what must be defined.
pub(crate) fn report(core: &Core, at: usize, used: &'static str, lane: Option<u8>) -> ExecResult {
    core.passed(uninitialised(name_of(at), core.wave.checks.init_shadow.origin(at), used, lane))
}

/// An instruction is about to run.
#[inline]
pub(crate) fn before(core: &mut Core, op: &Op) -> ExecResult {
    if op.definedness.kind == RuleKind::Nothing && op.pair.is_none() { Ok(()) } else { before_others(core, op) }
}

fn before_others(core: &mut Core, op: &Op) -> ExecResult {
    if let Some(pair) = op.pair.as_deref() {
        // Both read before either writes.
        let [first, second] = pair;
        let meets = registers(&first.definedness.writes)
            .any(|at| registers(&second.definedness.vectors).any(|other| other == at));
        let [first, second] = if meets { [second, first] } else { [first, second] };
        before(core, first)?;
        return before(core, second);
    }
    let rule = &op.definedness;
    match rule.kind {
        RuleKind::Nothing => Ok(()),
        RuleKind::Defines => {
            rule.scalar_writes.iter().for_each(|&(first, count)| core.wave.checks.init_shadow.define(first, count));
            core.wave.checks.init_shadow.scc &= !rule.writes_scc;
            Ok(())
        }
        RuleKind::Compute => compute(core, op, rule),
        RuleKind::Memory => addresses(core, op, rule),
        RuleKind::BranchScc if core.wave.checks.init_shadow.scc => {
            core.passed(uninitialised("scc".into(), UndefinedOrigin::Condition, "the condition of a branch", None))
        }
        RuleKind::BranchScc => Ok(()),
        RuleKind::BranchVcc => {
            let undefined = core.wave.checks.init_shadow.pair(scalar::VCC) & core.wave.lanes;
            if undefined != 0 && core.wave.mask(scalar::VCC) & !undefined == 0 {
                return report(core, scalar_slot(scalar::VCC), "the condition of a branch", None);
            }
            Ok(())
        }
    }
}

/// Checks the operands that must be defined.
fn uses(core: &Core, rule: &DefinednessRule) -> ExecResult {
    let exec = core.wave.exec();
    for &((first, count), used) in &rule.uses {
        for at in usize::from(first)..usize::from(first + count) {
            let (undefined, lane) = if at >= scalar_slot(0) {
                let vector = !rule.vectors.is_empty() && used == RequiredUse::Address;
                (core.wave.checks.init_shadow.scalar((at - scalar_slot(0)) as u16) != 0 && (exec != 0 || !vector), None)
            } else {
                let lanes = core.wave.checks.init_shadow.lanes(at) & exec;
                (lanes != 0, Some(lanes.trailing_zeros() as u8))
            };
            if undefined {
                return report(core, at, used.text(), lane);
            }
        }
    }
    Ok(())
}

/// Checks a vector register of an address whose length depends on the instruction's data.
pub(crate) fn require_defined_address(core: &Core, file: RegFile, register: u16) -> ExecResult {
    let at = slot(file, register);
    let lanes = core.wave.checks.init_shadow.lanes(at) & core.wave.exec();
    if lanes == 0 { Ok(()) } else { report(core, at, RequiredUse::Address.text(), Some(lanes.trailing_zeros() as u8)) }
}

/// With `s_set_gpr_idx_on`: what of M0 is added to register numbers, and of which operands.
const INDEX: u32 = 0xff;
const INDEXED_SOURCES: u32 = 0x7000;
const INDEXED_DESTINATION: u32 = 0x8000;

/// Checks what M0 adds to register numbers.
fn require_defined_number(core: &Core, bits: u32) -> ExecResult {
    let undefined = core.wave.checks.init_shadow.scalar(scalar::M0) & bits;
    if undefined == 0 { Ok(()) } else { report(core, scalar_slot(scalar::M0), RequiredUse::Register.text(), None) }
}

/// Checks one bit of a scalar operand on which it depends what runs.
pub(crate) fn require_defined_bit(core: &Core, op: &Op, role: Role, index: u32) -> ExecResult {
    match op.inst.operand(role).and_then(|operand| operand.reg()) {
        Some(reg) if reg.first < 128 && core.wave.checks.init_shadow.scalar(reg.first) >> index & 1 != 0 => {
            report(core, scalar_slot(reg.first), "whether instructions are skipped", None)
        }
        _ => Ok(()),
    }
}

fn addresses(core: &mut Core, op: &Op, rule: &DefinednessRule) -> ExecResult {
    uses(core, rule)?;
    let exec = core.wave.exec();
    let shadow = &mut core.wave.checks.init_shadow;
    for (first, count) in &rule.scalar_writes {
        shadow.define(*first, *count);
    }
    if op.class == Class::Smem || op.class == Class::Branch {
        return Ok(());
    }
    let half = matches!(op.semantics, Semantics::Load { d16: Some(_), .. });
    if !half {
        rule.writes.iter().for_each(|&span| shadow.define_rows(span, exec));
    }
    if let (Semantics::Load { d16: Some(high), .. }, Some(at)) = (op.semantics, registers(&rule.writes).next()) {
        let bits = shadow.vector_mut(at);
        // Of gfx9 it is only known that the other half is lost.
        let lost = op.clears && core.launch.target.generation() < 10;
        for lane in active(if lost { exec } else { exec & bits.lanes }) {
            let other = if high { 0xffff } else { 0xffff_0000 };
            let kept = if op.clears { 0 } else { bits.get(lane) & other };
            bits.set(lane, if lost { other } else { kept });
        }
    }
    Ok(())
}

fn compute(core: &mut Core, op: &Op, rule: &DefinednessRule) -> ExecResult {
    if let Some(relative) = rule.relative {
        require_defined_number(core, relative.bits())?;
        return compute(core, op, &rule.moved(relative, &op.inst, core.wave.sgpr[usize::from(scalar::M0)]));
    }
    if !rule.uses.is_empty() {
        uses(core, rule)?;
    }
    let exec = core.wave.exec();
    let indexed = op.class == Class::Valu && core.wave.mode & GPR_IDX_EN != 0;
    if indexed {
        require_defined_number(core, INDEX | INDEXED_SOURCES | INDEXED_DESTINATION)?;
    }
    let shadow = &mut core.wave.checks.init_shadow;
    let read = if matches!(rule.across, Across::No | Across::Part) { exec } else { core.wave.lanes };
    let mut undefined = 0;
    for &span in &rule.vectors {
        undefined |= shadow.lanes_of(span) & read;
    }
    for code in registers(&rule.scalars) {
        undefined |= u64::from(shadow.scalar(code as u16));
    }
    if matches!(rule.across, Across::Yes | Across::Part) {
        for &span in &rule.writes {
            undefined |= shadow.lanes_of(span) & read;
        }
    }
    if undefined != 0 || indexed || (rule.reads_scc && shadow.scc) {
        if !indexed && rule.moves.is_some_and(|moves| moves.carry(core, op)) {
            return Ok(());
        }
        return compare(core, op, rule, indexed);
    }
    let written = if rule.across == Across::Matrix { u64::MAX } else { exec };
    for &span in &rule.writes {
        shadow.define_rows(span, written);
    }
    for &(first, count) in &rule.scalar_writes {
        shadow.define(first, count);
    }
    if rule.writes_scc {
        shadow.scc = false;
    }
    Ok(())
}

/// How often an instruction is tried.
const TRIES: usize = 5;

/// What an instruction made of one filling.
struct Outcome {
    vectors: Vec<[u32; LANES]>,
    scalars: [u32; 128],
    scc: bool,
}

/// Tries the instruction with undefined bits filled differently.
fn compare(core: &mut Core, op: &Op, rule: &DefinednessRule, indexed: bool) -> ExecResult {
    let unchecked = core.launch.without_checks();
    let mut touched: SmallVec<[usize; 16]> = registers(&rule.vectors).chain(registers(&rule.writes)).collect();
    let m0 = core.wave.sgpr[usize::from(scalar::M0)];
    let index = if indexed { (m0 & INDEX) as usize } else { 0 };
    if indexed {
        let further: SmallVec<[usize; 8]> =
            touched.iter().map(|at| at + index).filter(|&at| at < ACCUM_SLOTS).collect();
        touched.extend(further);
    }
    touched.sort_unstable();
    touched.dedup();
    touched.retain(|at| row(core, *at).is_some());
    let saved: Vec<[u32; LANES]> = touched.iter().filter_map(|&at| row(core, at).copied()).collect();
    let sgpr = core.wave.sgpr;
    let (scc, mode, trapsts, pc, jumped, status) =
        (core.wave.scc, core.wave.mode, core.wave.trapsts, core.wave.pc, core.wave.jumped, core.wave.status);
    let random = [core.random.next() as u32, core.random.next() as u32, core.random.next() as u32];
    let mut outcomes: Vec<Outcome> = Vec::with_capacity(TRIES);
    for attempt in 0..TRIES {
        fill(core, op, rule, &touched, &saved, &sgpr, attempt, random);
        let result = run(core, op, &unchecked);
        if result.is_ok() {
            let vectors = touched.iter().filter_map(|&at| row(core, at).copied()).collect();
            outcomes.push(Outcome { vectors, scalars: core.wave.sgpr, scc: core.wave.scc });
        }
        for (&at, before) in touched.iter().zip(&saved) {
            if let Some(row) = row_mut(core, at) {
                *row = *before;
            }
        }
        core.wave.sgpr = sgpr;
        if core.wave.mode != mode {
            core.wave.set_mode(mode);
        }
        (core.wave.scc, core.wave.trapsts, core.wave.pc, core.wave.jumped, core.wave.status) =
            (scc, trapsts, pc, jumped, status);
    }
    let selects = matches!(op.inst.opcode(), Opcode::V_CNDMASK_B32 | Opcode::S_CSELECT_B32 | Opcode::S_CSELECT_B64)
        && (rule.reads_scc && core.wave.checks.init_shadow.scc
            || registers(&rule.scalars).any(|code| core.wave.checks.init_shadow.scalar(code as u16) != 0));
    let moves = matches!(op.inst.opcode(), Opcode::V_PK_MOV_B32 | Opcode::V_MOV_B64 | Opcode::S_MOV_B64);
    let since = match (selects, moves) {
        (true, _) => Since::Selected,
        (false, true) => Since::Moved,
        (false, false) => Since::Computed,
    };
    let origin = origin(core, rule, if m0 & INDEXED_SOURCES == 0 { 0 } else { index }).then(since);
    settle(core, rule, &touched, &outcomes, origin)
}

/// Takes what differs between the outcomes as undefined.
fn settle(
    core: &mut Core,
    rule: &DefinednessRule,
    touched: &[usize],
    outcomes: &[Outcome],
    origin: UndefinedOrigin,
) -> ExecResult {
    let Some((first, others)) = outcomes.split_first() else { return Ok(()) };
    let lanes = core.wave.lanes;
    let shadow = &mut core.wave.checks.init_shadow;
    for (n, &at) in touched.iter().enumerate() {
        let mut any = false;
        for lane in active(lanes) {
            let bits = others.iter().fold(0, |bits, other| bits | (other.vectors[n][lane] ^ first.vectors[n][lane]));
            any |= bits != 0;
            if bits != shadow.vector(at).get(lane) {
                shadow.vector_mut(at).set(lane, bits);
            }
        }
        if any && registers(&rule.writes).any(|written| written == at) {
            shadow.set_origin(at, origin);
        }
    }
    for &(start, count) in &rule.scalar_writes {
        for code in start..start + count {
            let at = usize::from(code & 127);
            let bits = others.iter().fold(0, |bits, other| bits | (other.scalars[at] ^ first.scalars[at]));
            shadow.set_scalar(code, bits);
            if bits != 0 {
                shadow.set_origin(scalar_slot(code), origin);
            }
        }
    }
    if rule.writes_scc {
        shadow.scc = others.iter().any(|other| other.scc != first.scc);
    }
    if rule.writes_exec {
        let undefined = shadow.pair(scalar::EXEC) & lanes;
        shadow.define(scalar::EXEC, 2);
        if undefined != 0 {
            return core.passed(uninitialised("exec".into(), origin, "EXEC", Some(undefined.trailing_zeros() as u8)));
        }
    }
    Ok(())
}

/// Where the undefined bits among the sources come from; `index` is added to the numbers of some.
fn origin(core: &Core, rule: &DefinednessRule, index: usize) -> UndefinedOrigin {
    let shadow = &core.wave.checks.init_shadow;
    let indexed = registers(&rule.vectors).map(|at| at + index).filter(|&at| at < ACCUM_SLOTS || index == 0);
    let mut vectors = indexed.chain(registers(&rule.vectors));
    let vector = vectors.find(|&at| shadow.lanes(at) & core.wave.exec() != 0).map(|at| shadow.origin(at));
    let scalar = || {
        registers(&rule.scalars)
            .find(|&code| shadow.scalar(code as u16) != 0)
            .map(|code| shadow.origin(scalar_slot(code as u16)))
    };
    vector.or_else(scalar).unwrap_or(UndefinedOrigin::Condition)
}

/// Fills the undefined bits of all sources.
#[allow(clippy::too_many_arguments)]
fn fill(
    core: &mut Core,
    op: &Op,
    rule: &DefinednessRule,
    touched: &[usize],
    saved: &[[u32; LANES]],
    sgpr: &[u32; 128],
    attempt: usize,
    random: [u32; 3],
) {
    // The other source, for two of the tries: its constant, or its register.
    let other = |lane: usize| -> u32 {
        let source = if attempt == 3 { op.src[0] } else { op.src[1] };
        match source {
            Source::Vector(register) => {
                let at = touched.iter().position(|&at| at == slot(RegFile::Vector, register));
                at.map_or(0, |n| saved[n][lane])
            }
            Source::Scalar(code) if code < 128 => sgpr[usize::from(code)],
            Source::Const(bits) => bits as u32,
            _ => 0,
        }
    };
    let filled = |value: u32, undefined: u32, lane: usize, at: usize| match attempt {
        0 => value & !undefined,
        1 => value | undefined,
        2 => value ^ (random[at % 3].rotate_left((lane + 7 * at) as u32) & undefined),
        _ => value & !undefined | other(lane) & undefined,
    };
    for (n, &at) in touched.iter().enumerate() {
        let mut new = saved[n];
        let bits = core.wave.checks.init_shadow.vector(at);
        for lane in active(bits.lanes & core.wave.lanes) {
            new[lane] = filled(new[lane], bits.get(lane), lane, at);
        }
        if let Some(row) = row_mut(core, at) {
            *row = new;
        }
    }
    for code in registers(&rule.scalars).chain(registers(&rule.scalar_writes)) {
        let undefined = core.wave.checks.init_shadow.scalar(code as u16);
        if undefined == 0 || code >= usize::from(scalar::EXEC) {
            continue;
        }
        let by_role = |n: usize| match op.scalars[n][0] {
            Source::Scalar(other) if other < 128 => sgpr[usize::from(other)],
            Source::Const(bits) => bits as u32,
            _ => 0,
        };
        let value = sgpr[code];
        core.wave.sgpr[code] = match attempt {
            3 | 4 if op.class == Class::Salu => value & !undefined | by_role(attempt - 3) & undefined,
            _ => filled(value, undefined, 0, code),
        };
    }
    if rule.reads_scc && core.wave.checks.init_shadow.scc {
        core.wave.scc = attempt & 1 != 0;
    }
}

/// Runs an instruction without the checks of strict mode.
fn run(core: &mut Core, op: &Op, launch: &Launch) -> ExecResult {
    let Core { memory, lds, wave, random, stats, clock, barrier, work, .. } = core;
    let races = None;
    let mut copy = Core { memory, lds, wave, launch, random, stats, clock, barrier, work, races };
    (op.run)(&mut copy, op)
}

fn row<'a>(core: &'a Core, at: usize) -> Option<&'a [u32; LANES]> {
    match at.checked_sub(ACCUM_SLOTS) {
        None => core.wave.vgpr.get(at).map(|row| &row.0),
        Some(at) => core.wave.agpr.get(at).map(|row| &row.0),
    }
}

fn row_mut<'a>(core: &'a mut Core, at: usize) -> Option<&'a mut [u32; LANES]> {
    match at.checked_sub(ACCUM_SLOTS) {
        None => core.wave.vgpr.get_mut(at).map(|row| &mut row.0),
        Some(at) => core.wave.agpr.get_mut(at).map(|row| &mut row.0),
    }
}
