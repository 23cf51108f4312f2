//! Damages of what new code executes, and of where it goes.

use std::collections::BTreeSet;

use wavetap::isa::{self, Access, Branch, Condition, Encoding, Inst, Memory, Reg, Role, Value};
use wavetap::verify::Rule;

use super::Kind;
use super::subject::{Code, Patch, reads, s, s2};

/// What may be found where the skeleton itself is damaged.
const SKELETON: &[Rule] = &[Rule::Skeleton];
/// `MSG_INTERRUPT`.
const INTERRUPT: i64 = 1;
/// The hardware register MODE, of which two bits are written.
const MODE: i64 = 1 | 1 << 11;

pub const KINDS: &[Kind] = &[
    Kind {
        name: "original_wait_missing",
        what: "an original wait is gone",
        rules: SKELETON,
        harm: |t| {
            t.each(|c, i| {
                original(c, i, |inst| isa::wait_count(c.target, inst).is_some()).then(|| c.nothing(i)).flatten()
            })
        },
    },
    Kind {
        name: "original_lost",
        what: "an original instruction does nothing",
        rules: SKELETON,
        harm: |t| t.each(|c, i| original(c, i, |inst| inst.name() != "s_nop").then(|| c.nothing(i)).flatten()),
    },
    Kind {
        name: "original_result_elsewhere",
        what: "an original instruction writes another register",
        rules: SKELETON,
        harm: |t| t.each(|c, i| other_register(c, i, Role::Vdst)),
    },
    Kind {
        name: "original_source_changed",
        what: "an original instruction reads another register",
        rules: SKELETON,
        harm: |t| t.each(|c, i| other_register(c, i, Role::Src0)),
    },
    Kind {
        name: "original_offset_changed",
        what: "an original memory access has another offset",
        rules: SKELETON,
        harm: |t| t.each(other_offset),
    },
    Kind {
        name: "originals_exchanged",
        what: "two original instructions change places",
        rules: SKELETON,
        harm: |t| t.each(exchanged),
    },
    Kind {
        name: "original_duplicated",
        what: "an original instruction that reads what it writes is there twice",
        rules: &[Rule::Clobbered, Rule::Scc, Rule::Exec],
        harm: |t| t.each(duplicated),
    },
    Kind {
        name: "branch_displaced",
        what: "an original branch leads to the next instruction",
        rules: &[Rule::Branch, Rule::Skeleton],
        harm: |t| t.each(|c, i| branches(c, i).then(|| c.led_to(i, c.lines[i].end())).flatten()),
    },
    Kind {
        name: "branch_into_an_instruction",
        what: "an original branch leads to the second word of an instruction",
        rules: &[Rule::Branch, Rule::Skeleton],
        harm: |t| t.each(into_the_middle),
    },
    Kind {
        name: "branch_to_the_original",
        what: "an original branch leads to where it led in the original",
        rules: &[Rule::Branch, Rule::Skeleton],
        harm: |t| t.each(to_the_original),
    },
    Kind {
        name: "branch_inverted",
        what: "an original branch has the opposite condition",
        rules: SKELETON,
        harm: |t| t.each(inverted),
    },
    Kind {
        name: "branch_always_taken",
        what: "an original branch has no condition any more",
        rules: SKELETON,
        harm: |t| {
            t.each(|c, i| {
                branches(c, i)
                    .then(|| c.instead(i, "s_branch", &[Value::Imm(c.lines[i].inst.branch_displacement()?)]))
                    .flatten()
            })
        },
    },
    Kind {
        name: "probe_branch_astray",
        what: "a branch of inserted code leads to another original instruction",
        rules: &[Rule::Branch],
        harm: |t| t.each(astray),
    },
    Kind {
        name: "probe_branch_over_the_original",
        what: "a branch of inserted code skips the instruction that it should lead to",
        rules: &[Rule::Branch],
        harm: |t| t.each(over_the_original),
    },
    Kind {
        name: "probe_loops",
        what: "a branch of inserted code leads back to itself",
        rules: &[Rule::Branch],
        harm: |t| {
            t.each(|c, i| {
                let branches = matches!(c.lines[i].inst.variant.branch, Branch::Conditional(_)) && c.is_inserted(i);
                branches.then(|| c.led_to(i, c.lines[i].address)).flatten()
            })
        },
    },
    Kind {
        name: "probe_hangs",
        what: "inserted code branches to itself, always",
        rules: &[Rule::Branch, Rule::Skeleton],
        harm: |t| t.each(|c, i| c.sequence(i, &[("s_branch", &[Value::Imm(-1)])])),
    },
    Kind {
        name: "call_of_another_copy",
        what: "a call leads to the copy of another function",
        rules: &[Rule::Branch, Rule::Skeleton],
        harm: |t| t.each(another_copy),
    },
    Kind {
        name: "call_of_the_original",
        what: "a call leads to the original function instead of its copy",
        rules: &[Rule::Branch, Rule::Skeleton],
        harm: |t| t.each(original_function),
    },
    Kind {
        name: "call_behind_the_entry",
        what: "a call leads to the copy's second instruction",
        rules: &[Rule::Branch, Rule::Skeleton],
        harm: |t| t.each(|c, i| c.led_to(i, c.lines[called(c, i)?].end())),
    },
    Kind {
        name: "return_address_elsewhere",
        what: "a call leaves its return address in another register",
        rules: SKELETON,
        harm: |t| {
            t.each(|c, i| {
                called(c, i)?;
                other_register(c, i, Role::Sdst)
            })
        },
    },
    Kind {
        name: "return_elsewhere",
        what: "a return takes another register",
        rules: SKELETON,
        harm: |t| t.each(other_return),
    },
    Kind {
        name: "end_inserted",
        what: "inserted code ends the wave",
        rules: &[Rule::Forbidden, Rule::Skeleton],
        harm: |t| t.each(|c, i| ends_early(c, i).then(|| c.sequence(i, &[("s_endpgm", &[Value::Imm(0)])])).flatten()),
    },
    Kind {
        name: "barrier_inserted",
        what: "inserted code has a barrier",
        rules: &[Rule::Forbidden],
        harm: |t| t.each(|c, i| any_of(c, i, &[("s_barrier", &[]), ("s_barrier_wait", &[Value::Imm(-1)])])),
    },
    Kind {
        name: "mode_written",
        what: "inserted code writes MODE",
        rules: &[Rule::Forbidden],
        harm: |t| t.each(|c, i| any_of(c, i, &[("s_setreg_b32", &[Value::Imm(MODE), s(0)])])),
    },
    Kind {
        name: "rounding_changed",
        what: "inserted code changes how results are rounded (gfx10 and later)",
        rules: &[Rule::Forbidden],
        harm: |t| t.each(|c, i| any_of(c, i, &[("s_round_mode", &[Value::Imm(3)])])),
    },
    Kind {
        name: "priority_changed",
        what: "inserted code changes the wave's priority",
        rules: &[Rule::Forbidden],
        harm: |t| t.each(|c, i| any_of(c, i, &[("s_setprio", &[Value::Imm(3)])])),
    },
    Kind {
        name: "wave_halted",
        what: "inserted code halts the wave",
        rules: &[Rule::Forbidden],
        harm: |t| t.each(|c, i| any_of(c, i, &[("s_sethalt", &[Value::Imm(1)])])),
    },
    Kind {
        name: "wave_sleeps",
        what: "inserted code sleeps",
        rules: &[Rule::Forbidden],
        harm: |t| t.each(|c, i| any_of(c, i, &[("s_sleep", &[Value::Imm(1)])])),
    },
    Kind {
        name: "message_sent",
        what: "inserted code sends a message",
        rules: &[Rule::Forbidden],
        harm: |t| t.each(|c, i| any_of(c, i, &[("s_sendmsg", &[Value::Imm(INTERRUPT)])])),
    },
    Kind {
        name: "trap_inserted",
        what: "inserted code calls the trap handler",
        rules: &[Rule::Forbidden],
        harm: |t| t.each(|c, i| any_of(c, i, &[("s_trap", &[Value::Imm(2)])])),
    },
    Kind {
        name: "call_inserted",
        what: "inserted code calls what a register says",
        rules: &[Rule::Forbidden],
        harm: |t| t.each(|c, i| any_of(c, i, &[("s_swappc_b64", &[s2(30), s2(0)])])),
    },
    Kind {
        name: "indexed_move",
        what: "inserted code moves the register that M0 selects",
        rules: &[Rule::Forbidden],
        harm: |t| t.each(|c, i| any_of(c, i, &[("s_movreld_b32", &[s(0), s(1)])])),
    },
    Kind {
        name: "indexing_begun",
        what: "inserted code changes which vector registers are meant (gfx8, gfx9)",
        rules: &[Rule::Forbidden],
        harm: |t| t.each(|c, i| any_of(c, i, &[("s_set_gpr_idx_idx", &[s(0)])])),
    },
    Kind {
        name: "caches_dropped",
        what: "inserted code invalidates the scalar cache",
        rules: &[Rule::Forbidden],
        harm: |t| t.each(|c, i| any_of(c, i, &[("s_dcache_inv", &[])])),
    },
    Kind {
        name: "prefetch_changed",
        what: "inserted code changes how instructions are prefetched (gfx10, gfx11)",
        rules: &[Rule::Forbidden],
        harm: |t| {
            t.each(|c, i| {
                any_of(
                    c,
                    i,
                    &[("s_inst_prefetch", &[Value::Imm(3)]), ("s_set_inst_prefetch_distance", &[Value::Imm(3)])],
                )
            })
        },
    },
    Kind {
        name: "lds_of_all_workgroups",
        what: "an LDS access of inserted code is one to GDS (gfx8, gfx9 and gfx10)",
        rules: &[Rule::Forbidden, Rule::Skeleton],
        harm: |t| t.each(gds),
    },
    Kind {
        name: "trap_register_written",
        what: "inserted code writes a register of the trap handler",
        rules: &[Rule::Forbidden],
        harm: |t| t.each(|c, i| any_of(c, i, &[("s_mov_b32", &[s(isa::scalar::TTMP0 + 9), Value::InlineInt(0)])])),
    },
    Kind {
        name: "clause_inserted",
        what: "inserted code becomes a clause (gfx10 and later)",
        rules: &[Rule::Adjacent],
        harm: |t| {
            t.each(|c, i| (c.plain(i) && c.plain(i + 1)).then(|| c.instead(i, "s_clause", &[Value::Imm(1)])).flatten())
        },
    },
    Kind {
        name: "clause_longer",
        what: "an original clause goes on behind its last member (gfx10 and later)",
        rules: &[Rule::Adjacent],
        harm: |t| t.each(longer_clause),
    },
];

fn original(code: &Code, index: usize, is: impl Fn(&Inst) -> bool) -> bool {
    !code.is_inserted(index) && code.lines[index].inst.variant.branch == Branch::None && is(&code.lines[index].inst)
}

fn branches(code: &Code, index: usize) -> bool {
    !code.is_inserted(index) && matches!(code.lines[index].inst.variant.branch, Branch::Conditional(_))
}

fn other_register(code: &Code, index: usize, role: Role) -> Patch {
    let mut inst = code.lines[index].inst.clone();
    let operand =
        inst.operands.iter_mut().find(|operand| operand.role == role && operand.access != Access::ReadWrite)?;
    let Value::Reg(old) = operand.value else { return None };
    operand.value = Value::Reg(Reg { first: old.first ^ 2, ..old });
    (!code.is_inserted(index)).then(|| code.replaced(index, &[inst])).flatten()
}

fn other_offset(code: &Code, index: usize) -> Patch {
    let mut inst = code.lines[index].inst.clone();
    inst.modifiers.offset ^= 4;
    let accesses = matches!(inst.variant.memory, Memory::Global | Memory::Lds | Memory::Buffer | Memory::Scratch);
    (accesses && !code.is_inserted(index)).then(|| code.replaced(index, &[inst])).flatten()
}

fn exchanged(code: &Code, index: usize) -> Patch {
    let is = |index: usize| index < code.lines.len() && original(code, index, |inst| inst.size == 4);
    if !is(index) || !is(index + 1) || code.lines[index].inst == code.lines[index + 1].inst {
        return None;
    }
    let (first, second) = (&code.lines[index], &code.lines[index + 1]);
    let patches = || {
        Some(
            [
                code.replaced(index, std::slice::from_ref(&second.inst))?,
                code.replaced(index + 1, std::slice::from_ref(&first.inst))?,
            ]
            .concat(),
        )
    };
    (first.end() == second.address).then(patches).flatten()
}

/// Inserted code executes the original instruction that follows it.
fn duplicated(code: &Code, index: usize) -> Patch {
    let next = code.next_original(index, None)?;
    let inst = &code.lines[next].inst;
    let alone = inst.variant.branch == Branch::None && inst.variant.memory == Memory::None;
    // Inserted code may not write a register of the hardware, whatever it holds.
    let alone = alone && inst.sets_hwreg().is_none();
    let again = inst.writes().any(|reg| reg != Reg::SCC && reads(inst, reg));
    let patch = (alone && again).then(|| code.replaced_inserted(index, std::slice::from_ref(inst))).flatten()?;
    // After everything that might undo it.
    (patch[0].0 + patch[0].1.len() as u64 == code.lines[next].address).then_some(patch)
}

/// To the second word of the instruction that a branch leads to.
fn into_the_middle(code: &Code, index: usize) -> Patch {
    let target = code.at(code.leads_to(index).filter(|_| branches(code, index))?)?;
    let long = (target..code.lines.len()).find(|at| code.lines[*at].inst.size == 8)?;
    code.led_to(index, code.lines[long].address + 4)
}

fn to_the_original(code: &Code, index: usize) -> Patch {
    let target = code.at(code.leads_to(index).filter(|_| branches(code, index))?)?;
    let original = code.lines[target..].iter().find_map(|line| line.original)?;
    code.led_to(index, original)
}

fn inverted(code: &Code, index: usize) -> Patch {
    let inst = &code.lines[index].inst;
    let other = match inst.variant.branch {
        Branch::Conditional(Condition::Scc0) => "s_cbranch_scc1",
        Branch::Conditional(Condition::Scc1) => "s_cbranch_scc0",
        Branch::Conditional(Condition::VccZ) => "s_cbranch_vccnz",
        Branch::Conditional(Condition::VccNz) => "s_cbranch_vccz",
        Branch::Conditional(Condition::ExecZ) => "s_cbranch_execnz",
        _ => return None,
    };
    (!code.is_inserted(index)).then(|| code.instead(index, other, &[Value::Imm(inst.branch_displacement()?)])).flatten()
}

fn astray(code: &Code, index: usize) -> Patch {
    let line = &code.lines[index];
    let first = code.lines.iter().find(|line| !line.is_inserted())?;
    // After the kernel's first instruction, so that this is not where it should go.
    let branches = line.is_inserted()
        && matches!(line.inst.variant.branch, Branch::Conditional(_))
        && line.address > first.address;
    branches.then(|| code.led_to(index, first.address)).flatten()
}

fn over_the_original(code: &Code, index: usize) -> Patch {
    let line = &code.lines[index];
    let branches = line.is_inserted() && matches!(line.inst.variant.branch, Branch::Conditional(_));
    let target = code.at(code.leads_to(index).filter(|_| branches)?)?;
    let skipped = (target..code.lines.len()).find(|at| !code.is_inserted(*at))?;
    // What is after a jump is not after it in time.
    let goes_on = matches!(code.lines[skipped].inst.variant.branch, Branch::None | Branch::Conditional(_));
    goes_on.then(|| code.led_to(index, code.lines[skipped].end())).flatten()
}

/// The line that an original call leads to.
fn called(code: &Code, index: usize) -> Option<usize> {
    let calls = !code.is_inserted(index) && code.lines[index].inst.variant.branch == Branch::Call;
    code.at(code.leads_to(index).filter(|_| calls)?)
}

fn another_copy(code: &Code, index: usize) -> Patch {
    let now = code.lines[called(code, index)?].address;
    let copies: BTreeSet<u64> = code.lines.iter().filter(|line| line.in_function).map(|line| line.body).collect();
    code.led_to(index, copies.into_iter().find(|copy| *copy != now)?)
}

fn original_function(code: &Code, index: usize) -> Patch {
    let copy = called(code, index)?;
    // Where others still call the copy the results are the same, and only the counts are not.
    let alone = (0..code.lines.len()).filter(|at| called(code, *at) == Some(copy)).count() == 1;
    let first = code.lines[copy..].iter().find_map(|line| line.original)?;
    alone.then(|| code.led_to(index, first)).flatten()
}

fn other_return(code: &Code, index: usize) -> Patch {
    let inst = &code.lines[index].inst;
    (inst.variant.branch == Branch::IndirectJump)
        .then(|| other_register(code, index, inst.operands.first()?.role))
        .flatten()
}

fn any_of(code: &Code, index: usize, insts: &[(&str, &[Value])]) -> Patch {
    insts.iter().find_map(|inst| code.sequence(index, &[*inst]))
}

fn ends_early(code: &Code, index: usize) -> bool {
    let next = code.next_original(index, None).map(|next| code.lines[next].inst.variant.branch);
    next.is_some_and(|branch| branch != Branch::End)
}

fn gds(code: &Code, index: usize) -> Patch {
    let mut inst = code.lines[index].inst.clone();
    inst.modifiers.gds = true;
    (code.is_inserted(index) && inst.variant.encoding == Encoding::Ds).then(|| code.replaced(index, &[inst])).flatten()
}

fn longer_clause(code: &Code, index: usize) -> Patch {
    let mut inst = code.lines[index].inst.clone();
    if code.is_inserted(index) || inst.name() != "s_clause" {
        return None;
    }
    let operand = inst.operands.iter_mut().find(|operand| operand.role == Role::Simm16)?;
    let Value::Imm(length) = operand.value else { return None };
    operand.value = Value::Imm(length + 1);
    code.replaced(index, &[inst])
}
