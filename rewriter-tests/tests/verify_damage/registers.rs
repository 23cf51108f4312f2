//! Damages of what registers hold in new code, and of the waits for it.

use wavetap::isa::{self, Branch, Flags, Inst, Memory, Reg, RegFile, Role, Value, WaitCount, scalar};
use wavetap::verify::Rule;

use super::Kind;
use super::subject::{Code, Line, Patch, reads, s, s2, source, v, writes};

pub const ZERO: Value = Value::InlineInt(0);
/// First lane of those that hold the values of scalar registers that inserted code has borrowed.
const LENT: i8 = 16;

pub fn reg(reg: Reg) -> Value {
    Value::Reg(reg)
}

pub const KINDS: &[Kind] = &[
    Kind {
        name: "exec_not_restored",
        what: "EXEC is not given back to an instruction that reads it",
        rules: &[Rule::Exec],
        harm: |t| t.each(|c, i| restores_exec(c, i).and_then(|_| c.nothing(i))),
    },
    Kind {
        name: "exec_restored_wrongly",
        what: "EXEC becomes all ones instead of what it was",
        rules: &[Rule::Exec],
        harm: |t| {
            t.each(|c, i| {
                restores_exec(c, i)?;
                c.instead(i, c.lines[i].inst.variant.mnemonic, &[reg(exec(c)), Value::InlineInt(-1)])
            })
        },
    },
    Kind {
        name: "exec_saved_wrongly",
        what: "what is given back to EXEC is VCC",
        rules: &[Rule::Exec],
        harm: |t| t.each(exec_save),
    },
    Kind {
        name: "exec_save_overwritten",
        what: "the register that keeps EXEC is overwritten before EXEC is restored",
        rules: &[Rule::Exec],
        harm: |t| t.each(exec_save_lost),
    },
    Kind {
        name: "exec_changed_last",
        what: "EXEC is changed in front of an instruction that reads it",
        rules: &[Rule::Exec],
        harm: |t| {
            t.each(|c, i| {
                let mnemonic = if c.target.wave_size() == 64 { "s_mov_b64" } else { "s_mov_b32" };
                before_reader(c, i, exec(c), mnemonic, &[reg(exec(c)), Value::InlineInt(1)])
            })
        },
    },
    Kind {
        name: "scc_not_restored",
        what: "SCC is not given back to an instruction that reads it",
        rules: &[Rule::Scc],
        harm: |t| t.each(|c, i| restores_scc(c, i).and_then(|_| c.nothing(i))),
    },
    Kind {
        name: "scc_restored_inverted",
        what: "SCC comes back as its opposite",
        rules: &[Rule::Scc],
        harm: |t| {
            t.each(|c, i| {
                restores_scc(c, i)?;
                c.instead(
                    i,
                    "s_cmp_eq_u32",
                    &[value(&c.lines[i].inst, Role::Src0)?, value(&c.lines[i].inst, Role::Src1)?],
                )
            })
        },
    },
    Kind {
        name: "scc_saved_inverted",
        what: "SCC is kept as its opposite",
        rules: &[Rule::Scc],
        harm: |t| t.each(scc_save),
    },
    Kind {
        name: "scc_changed_last",
        what: "something writes SCC in front of an instruction that reads it",
        rules: &[Rule::Scc],
        harm: |t| t.each(|c, i| before_reader(c, i, Reg::SCC, "s_cmp_eq_u32", &[s(0), ZERO])),
    },
    Kind {
        name: "vcc_clobbered",
        what: "VCC is changed in front of an instruction that reads it",
        rules: &[Rule::Clobbered],
        harm: |t| t.each(vcc),
    },
    Kind {
        name: "m0_not_restored",
        what: "M0 stays what LDS needs (gfx8)",
        rules: &[Rule::Clobbered],
        harm: |t| t.each(|c, i| m0(c, i, false)),
    },
    Kind {
        name: "m0_not_opened",
        what: "an LDS access with M0 as the kernel had it (gfx8)",
        rules: &[Rule::Lds],
        harm: |t| t.each(|c, i| m0(c, i, true)),
    },
    Kind {
        name: "scalar_clobbered",
        what: "a scalar register is changed that original code reads next",
        rules: &[Rule::Clobbered],
        harm: |t| t.each(|c, i| source_changed(c, i, RegFile::Scalar, 100, "s_mov_b32", &[ZERO])),
    },
    Kind {
        name: "vector_clobbered",
        what: "a vector register is changed that original code reads next",
        rules: &[Rule::Clobbered],
        harm: |t| t.each(|c, i| source_changed(c, i, RegFile::Vector, 256, "v_mov_b32_e32", &[ZERO])),
    },
    Kind {
        name: "lane_clobbered",
        what: "a lane of a vector register is changed that original code reads next",
        rules: &[Rule::Clobbered],
        harm: |t| {
            t.each(|c, i| source_changed(c, i, RegFile::Vector, 256, "v_writelane_b32", &[ZERO, Value::InlineInt(3)]))
        },
    },
    Kind {
        name: "lent_scalar_not_restored",
        what: "a borrowed scalar register does not get its value back",
        rules: &[Rule::Clobbered],
        harm: |t| t.each(|c, i| lent_scalar(c, i).and_then(|_| c.nothing(i))),
    },
    Kind {
        name: "lent_scalar_exchanged",
        what: "a borrowed scalar register gets what another lane keeps",
        rules: &[Rule::Clobbered],
        harm: |t| {
            t.each(|c, i| {
                let (register, lane) = lent_scalar(c, i)?;
                c.instead(
                    i,
                    "v_readlane_b32",
                    &[reg(register), value(&c.lines[i].inst, Role::Src0)?, Value::InlineInt(lane ^ 1)],
                )
            })
        },
    },
    Kind {
        name: "lent_lane_not_restored",
        what: "a lane of a borrowed vector register does not get its value back",
        rules: &[Rule::Clobbered],
        harm: |t| t.each(|c, i| lent_lane(c, i).and_then(|_| c.nothing(i))),
    },
    Kind {
        name: "lent_lane_elsewhere",
        what: "the value of a borrowed lane comes back to another lane",
        rules: &[Rule::Clobbered],
        harm: |t| {
            t.each(|c, i| {
                let (register, value, lane) = lent_lane(c, i)?;
                c.instead(i, "v_writelane_b32", &[reg(register), value, Value::InlineInt(lane ^ 8)])
            })
        },
    },
    Kind {
        name: "lent_vector_in_more_lanes",
        what: "more lanes of a borrowed vector register are written than get their values back (gfx8)",
        rules: &[Rule::Clobbered],
        harm: |t| t.each(more_lanes),
    },
    Kind {
        name: "return_address_clobbered",
        what: "a copied function changes the register with its return address",
        rules: &[Rule::Clobbered],
        harm: |t| t.each(return_address),
    },
    Kind {
        name: "program_counter_uncorrected",
        what: "what an original s_getpc_b64 gives is the new address",
        rules: &[Rule::Clobbered, Rule::Branch],
        harm: |t| t.each(program_counter),
    },
    Kind {
        name: "work_item_ids_not_restored",
        what: "v0 keeps ids that the original has not asked for (packed ids)",
        rules: &[Rule::Clobbered],
        harm: |t| t.each(|c, i| (c.is_inserted(i) && packed_ids(&c.lines[i].inst)).then(|| c.nothing(i)).flatten()),
    },
    Kind {
        name: "initial_register_not_moved",
        what: "an initial register stays where the new descriptor puts it",
        rules: &[Rule::Clobbered],
        harm: |t| t.each(|c, i| initial_move(c, i).and_then(|_| c.nothing(i))),
    },
    Kind {
        name: "initial_register_exchanged",
        what: "an initial register gets the value of another",
        rules: &[Rule::Clobbered],
        harm: |t| {
            t.each(|c, i| {
                let (to, from) = initial_move(c, i)?;
                c.instead(i, c.lines[i].inst.variant.mnemonic, &[reg(to), reg(Reg { first: from.first - 2, ..from })])
            })
        },
    },
    Kind {
        name: "undefined_register",
        what: "inserted code reads a scalar register that nothing has set",
        rules: &[Rule::Undefined],
        harm: |t| t.each(undefined),
    },
    Kind {
        name: "scalar_behind_the_allocation",
        what: "inserted code uses s101 (gfx8, gfx9)",
        rules: &[Rule::Allocation],
        harm: |t| {
            t.each(|c, i| (!c.target.all_sgprs()).then(|| c.sequence(i, &[("s_mov_b32", &[s(101), ZERO])])).flatten())
        },
    },
    Kind {
        name: "vector_behind_the_allocation",
        what: "inserted code uses v255",
        rules: &[Rule::Allocation],
        harm: |t| t.each(|c, i| c.sequence(i, &[("v_mov_b32_e32", &[v(255), ZERO])])),
    },
    Kind {
        name: "accumulator_behind_the_allocation",
        what: "inserted code uses a255 (gfx908 and later)",
        rules: &[Rule::Allocation],
        harm: |t| t.each(|c, i| c.sequence(i, &[("v_accvgpr_read_b32", &[v(0), reg(Reg::accum(255, 1))])])),
    },
    Kind {
        name: "lds_behind_the_slice",
        what: "inserted code accesses LDS of another wave",
        rules: &[Rule::Lds],
        harm: |t| t.each(lds_offset),
    },
    Kind {
        name: "wait_missing",
        what: "no wait between a load of inserted code and its use",
        rules: &[Rule::Wait],
        harm: |t| t.each(|c, i| guards(c, i).then(|| c.nothing(i)).flatten()),
    },
    Kind {
        name: "wait_too_weak",
        what: "the wait allows as many as it can",
        rules: &[Rule::Wait],
        harm: |t| t.each(weak_wait),
    },
    Kind {
        name: "wait_for_one_more",
        what: "the wait allows one operation more",
        rules: &[Rule::Wait],
        harm: |t| t.each(|c, i| counted(c, i, |inst| Some(immediate(inst)? + one_more(c, inst)?))),
    },
    Kind {
        name: "load_in_front_of_a_call",
        what: "a load of inserted code is under way when a function is called or returns",
        rules: &[Rule::Wait, Rule::Branch],
        harm: |t| t.each(outstanding_at_call),
    },
];

pub fn value(inst: &Inst, role: Role) -> Option<Value> {
    Some(inst.operand(role)?.value)
}

fn exec(code: &Code) -> Reg {
    Reg::scalar(scalar::EXEC, (code.target.wave_size() / 32) as u8)
}

/// The register from which an inserted instruction gives EXEC back to an original one that reads it.
fn restores_exec(code: &Code, index: usize) -> Option<Reg> {
    let inst = &code.lines[index].inst;
    let restores = code.is_inserted(index)
        && inst.name().starts_with("s_mov_b")
        && inst.operand(Role::Sdst)?.reg() == Some(exec(code));
    let from = inst.operand(Role::Src0)?.reg()?;
    let next = code.next_original(index, Some(exec(code)))?;
    (restores && reads(&code.lines[next].inst, exec(code))).then_some(from)
}

/// Where EXEC or SCC is saved to a register is saved, and where it is restored, without original instructions between.
fn save_and_restore(
    code: &Code,
    index: usize,
    saves: impl Fn(&Inst) -> Option<Reg>,
    restores: Restores,
) -> Option<(Reg, usize)> {
    let kept = code.is_inserted(index).then(|| saves(&code.lines[index].inst)).flatten()?;
    let behind = (index + 1..code.lines.len()).take_while(|at| code.is_inserted(*at));
    let mut touching = behind.filter(|at| writes(&code.lines[*at].inst, kept) || restores(code, *at) == Some(kept));
    touching.next().filter(|at| restores(code, *at) == Some(kept)).map(|at| (kept, at))
}

type Restores = fn(&Code, usize) -> Option<Reg>;

fn saves_exec(code: &Code, inst: &Inst) -> Option<Reg> {
    let moves = inst.name().starts_with("s_mov_b") && inst.operand(Role::Src0)?.reg() == Some(exec(code));
    moves.then(|| inst.operand(Role::Sdst)?.reg()).flatten()
}

fn exec_save(code: &Code, index: usize) -> Patch {
    let (kept, _) = save_and_restore(code, index, |inst| saves_exec(code, inst), restores_exec)?;
    let vcc = Reg::scalar(scalar::VCC, kept.dwords);
    code.instead(index, code.lines[index].inst.variant.mnemonic, &[reg(kept), reg(vcc)])
}

fn exec_save_lost(code: &Code, index: usize) -> Patch {
    let (kept, restored) = save_and_restore(code, index, |inst| saves_exec(code, inst), restores_exec)?;
    // Not after a branch, which might lead around it.
    let straight = (index + 1..restored).take_while(|at| code.lines[*at].inst.variant.branch == Branch::None);
    let mut changed =
        straight.filter_map(|at| code.sequence(at, &[("s_mov_b32", &[reg(Reg { dwords: 1, ..kept }), ZERO])]));
    changed.next()
}

/// The flag from which an inserted instruction gives SCC back to an original one that reads it.
fn restores_scc(code: &Code, index: usize) -> Option<Reg> {
    let inst = &code.lines[index].inst;
    let next = code.next_original(index, Some(Reg::SCC))?;
    let restores = code.is_inserted(index) && inst.name() == "s_cmp_lg_u32" && reads(&code.lines[next].inst, Reg::SCC);
    restores.then(|| inst.operand(Role::Src0)?.reg()).flatten()
}

fn scc_save(code: &Code, index: usize) -> Patch {
    let saves = |inst: &Inst| (inst.name() == "s_cselect_b32").then(|| inst.operand(Role::Sdst)?.reg()).flatten();
    let (kept, _) = save_and_restore(code, index, saves, restores_scc)?;
    let inst = &code.lines[index].inst;
    code.instead(index, "s_cselect_b32", &[reg(kept), value(inst, Role::Src1)?, value(inst, Role::Src0)?])
}

/// An instruction in place of inserted ones, before an original one that reads a register: before a jump, and
/// before anything else writes it.
fn before_reader(code: &Code, index: usize, register: Reg, mnemonic: &str, values: &[Value]) -> Patch {
    let patch = code.sequence(index, &[(mnemonic, values)])?;
    // Nothing that is left writes it again.
    let behind = patch[0].0 + patch[0].1.len() as u64;
    let mut uses = straight_on(code, index)
        .filter(|line| line.address >= behind && (reads(&line.inst, register) || writes(&line.inst, register)));
    uses.next().is_some_and(|line| !line.is_inserted() && reads(&line.inst, register)).then_some(patch)
}

/// What follows an instruction if no branch is taken.
fn straight_on(code: &Code, index: usize) -> impl Iterator<Item = &Line> {
    let goes_on = |at: &usize| {
        let before = &code.lines[at - 1];
        before.end() == code.lines[*at].address
            && matches!(before.inst.variant.branch, Branch::None | Branch::Conditional(_))
    };
    (index + 1..code.lines.len()).take_while(goes_on).map(|at| &code.lines[at])
}

/// A register that original code after reads is changed.
fn source_changed(code: &Code, index: usize, file: RegFile, end: u16, mnemonic: &str, values: &[Value]) -> Patch {
    let sources =
        straight_on(code, index).filter(|line| !line.is_inserted()).filter_map(|line| source(&line.inst, file, end));
    // Where the original has not set a register of its own, what is in it does not matter; vector registers at entry
    // are few.
    let set =
        |register: &Reg| code.lines[..index].iter().any(|line| !line.is_inserted() && writes(&line.inst, *register));
    sources.filter(|register| file == RegFile::Scalar || set(register)).take(8).find_map(|register| {
        let values: Vec<Value> = [reg(register)].into_iter().chain(values.iter().copied()).collect();
        before_reader(code, index, register, mnemonic, &values)
    })
}

fn vcc(code: &Code, index: usize) -> Patch {
    let (mask, mnemonic) = if code.target.wave_size() == 64 {
        (Reg::VCC, "s_mov_b64")
    } else {
        (Reg::scalar(scalar::VCC, 1), "s_mov_b32")
    };
    before_reader(code, index, mask, mnemonic, &[reg(mask), ZERO])
}

fn m0(code: &Code, index: usize, opens: bool) -> Patch {
    let inst = &code.lines[index].inst;
    if !code.target.lds_limit_in_m0() || !code.is_inserted(index) || !writes(inst, Reg::M0) {
        return None;
    }
    let constant = inst.operand(Role::Src0)?.reg().is_none();
    if opens {
        let access = code.lines[index + 1..].iter().take(4).find(|line| line.inst.variant.memory == Memory::Lds)?;
        return (constant && access.is_inserted()).then(|| code.nothing(index)).flatten();
    }
    // Where the original does not look at M0 again, its value does not matter.
    let mut uses = straight_on(code, index).filter(|line| reads(&line.inst, Reg::M0) || writes(&line.inst, Reg::M0));
    let read = uses.next().is_some_and(|line| !line.is_inserted() && reads(&line.inst, Reg::M0));
    (!constant && read).then(|| code.nothing(index)).flatten()
}

/// A scalar register that gets back from a lane what it was borrowed with, and the lane.
fn lent_scalar(code: &Code, index: usize) -> Option<(Reg, i8)> {
    let inst = &code.lines[index].inst;
    if !code.is_inserted(index) || inst.name() != "v_readlane_b32" {
        return None;
    }
    let register = inst.operands[0].reg()?;
    let Value::InlineInt(lane @ LENT..) = value(inst, Role::Src1)? else { return None };
    // What nothing has written since it went there need not come back: in wave32 the second register of a pair.
    let keeps = |line: &&Line| line.inst.name() == "v_writelane_b32" && reads(&line.inst, register);
    let mut since =
        code.lines[..index].iter().rev().take_while(|line| line.is_inserted()).take_while(|line| !keeps(line));
    let changed = since.any(|line| writes(&line.inst, register));
    code.next_original(index, Some(register)).filter(|_| changed).map(|_| (register, lane))
}

/// A vector register that gets back a lane: with the value, and the lane.
fn lent_lane(code: &Code, index: usize) -> Option<(Reg, Value, i8)> {
    let inst = &code.lines[index].inst;
    if !code.is_inserted(index) || inst.name() != "v_writelane_b32" {
        return None;
    }
    let (register, kept) = (inst.operands[0].reg()?, inst.operand(Role::Src0)?.reg()?);
    let Value::InlineInt(lane) = value(inst, Role::Src1)? else { return None };
    // Registers of inserted code alone have lanes, too.
    if !code.lines.iter().any(|line| !line.is_inserted() && reads(&line.inst, register)) {
        return None;
    }
    // What comes back was read from there by the same snippet, which then wrote the lane. gfx8 keeps lanes for
    // addresses that it does not need in LDS.
    let in_lane = |line: &Line| value(&line.inst, Role::Src1) == Some(Value::InlineInt(lane));
    let mut is_changed = false;
    for line in code.lines[..index].iter().rev().take_while(|line| line.is_inserted()) {
        let is_read = line.inst.name() == "v_readlane_b32"
            && value(&line.inst, Role::Src0) == Some(reg(register))
            && in_lane(line);
        if is_read && line.inst.operands[0].reg() == Some(kept) {
            return is_changed.then_some((register, reg(kept), lane));
        }
        is_changed |= writes(&line.inst, register) && (line.inst.name() != "v_writelane_b32" || in_lane(line));
    }
    None
}

/// All lanes of which more than the lowest five are active where a borrowed register is written in all that are.
fn more_lanes(code: &Code, index: usize) -> Patch {
    let inst = &code.lines[index].inst;
    let few = matches!(value(inst, Role::Src0)?, Value::InlineInt(1..=31));
    if !code.is_inserted(index) || inst.operand(Role::Sdst)?.reg() != Some(exec(code)) || !few {
        return None;
    }
    let mut behind = (index + 1..code.lines.len()).take_while(|at| code.is_inserted(*at));
    let written = behind.find_map(|at| {
        code.lines[at].inst.operands.first()?.reg().filter(|_| code.lines[at].inst.name() == "v_mov_b32")
    })?;
    behind.find(|at| lent_lane(code, *at).is_some_and(|(register, ..)| register == written))?;
    code.instead(index, "s_mov_b64", &[reg(exec(code)), Value::InlineInt(63)])
}

fn return_address(code: &Code, index: usize) -> Patch {
    let line = &code.lines[index];
    let own = || code.lines.iter().filter(|other| other.body == line.body);
    // Of a function that calls none, and keeps its return address where it was.
    let returns = own().find(|other| other.inst.variant.branch == Branch::IndirectJump && !other.is_inserted())?;
    let address = source(&returns.inst, RegFile::Scalar, 100)?;
    let kept = own().all(|other| {
        !writes(&other.inst, address) && !matches!(other.inst.variant.branch, Branch::Call | Branch::IndirectCall)
    });
    (line.in_function && kept).then(|| code.sequence(index, &[("s_mov_b32", &[reg(address), ZERO])])).flatten()
}

fn program_counter(code: &Code, index: usize) -> Patch {
    let before = code.line(index.checked_sub(1)?)?;
    let getpc = !before.is_inserted() && matches!(before.inst.name(), "s_getpc_b64" | "s_get_pc_i64");
    let low = Reg { dwords: 1, ..before.inst.operand(Role::Sdst)?.reg()? };
    let corrects = getpc && code.is_inserted(index) && code.lines[index].inst.operand(Role::Sdst)?.reg() == Some(low);
    corrects.then(|| code.nothing(index)).flatten()
}

fn packed_ids(inst: &Inst) -> bool {
    inst.name() == "v_and_b32" && [Role::Vdst, Role::Src1].iter().all(|role| value(inst, *role) == Some(v(0)))
}

/// A move of the prologue's end that puts a register where the original expects it, which reads it.
fn initial_move(code: &Code, index: usize) -> Option<(Reg, Reg)> {
    let inst = &code.lines[index].inst;
    let moves = code.is_inserted(index) && matches!(inst.name(), "s_mov_b32" | "s_mov_b64");
    let (to, from) = (inst.operand(Role::Sdst)?.reg()?, inst.operand(Role::Src0)?.reg()?);
    let entry = code.next_original(index, Some(to))?;
    let first = code.lines[..index].iter().all(Line::is_inserted) && code.lines[entry - 1].is_inserted();
    let mut uses = code.lines[entry..]
        .iter()
        .filter(|line| !line.is_inserted() && (reads(&line.inst, to) || writes(&line.inst, to)));
    let needed = uses.next().is_some_and(|line| reads(&line.inst, to));
    (moves && first && needed && to.first < scalar::VCC && from.first < scalar::VCC).then_some((to, from))
}

fn undefined(code: &Code, index: usize) -> Patch {
    // What is called may have set anything.
    if code.lines.iter().any(|line| matches!(line.inst.variant.branch, Branch::Call | Branch::IndirectCall)) {
        return None;
    }
    let top = (code.target.addressable_sgprs() - 1) as u16;
    let unset = (0..top)
        .rev()
        .map(|number| Reg::scalar(number, 1))
        .find(|reg| code.lines.iter().all(|line| !writes(&line.inst, *reg)))?;
    let into = code.lines[index].inst.operand(Role::Sdst)?.reg().filter(|reg| reg.dwords == 1)?;
    code.sequence(index, &[("s_mov_b32", &[reg(into), reg(unset)])])
}

fn lds_offset(code: &Code, index: usize) -> Patch {
    let mut inst = code.lines[index].inst.clone();
    inst.modifiers.offset = 0xff00;
    (code.is_inserted(index) && inst.variant.memory == Memory::Lds).then(|| code.replaced(index, &[inst])).flatten()
}

/// Whether inserted code before a wait loads what inserted code after it uses.
fn guards(code: &Code, index: usize) -> bool {
    let inst = &code.lines[index].inst;
    let waits = |inst: &Inst| isa::wait_count(code.target, inst).is_some_and(|counts| !counts.is_empty());
    if !code.is_inserted(index) || !waits(inst) {
        return false;
    }
    let straight = |line: &&Line| line.inst.variant.branch == Branch::None && !waits(&line.inst);
    let loads = code.lines[..index].iter().rev().take_while(straight).filter(|line| {
        line.is_inserted()
            && line.inst.variant.memory != Memory::None
            && line.inst.variant.flags.intersects(Flags::LOAD | Flags::RETURNS)
    });
    let loaded: Vec<Reg> = loads.flat_map(|line| line.inst.writes()).filter(|reg| *reg != Reg::SCC).collect();
    code.lines[index + 1..].iter().take_while(straight).any(|line| loaded.iter().any(|reg| reads(&line.inst, *reg)))
}

/// A wait that is needed, with another immediate.
fn counted(code: &Code, index: usize, other: impl Fn(&Inst) -> Option<i64>) -> Patch {
    if !guards(code, index) {
        return None;
    }
    let mut inst = code.lines[index].inst.clone();
    let immediate = other(&inst)?;
    inst.operands.iter_mut().find(|operand| matches!(operand.role, Role::WaitCount | Role::Simm16))?.value =
        Value::Imm(immediate);
    code.replaced(index, &[inst])
        .filter(|patch| Some(patch) != code.replaced(index, &[code.lines[index].inst.clone()]).as_ref())
}

fn immediate(inst: &Inst) -> Option<i64> {
    let operand = inst.operands.iter().find(|operand| matches!(operand.role, Role::WaitCount | Role::Simm16))?;
    if let Value::Imm(immediate) = operand.value { Some(immediate) } else { None }
}

fn weak_wait(code: &Code, index: usize) -> Patch {
    counted(code, index, |inst| isa::wait_immediate(code.target, inst.opcode(), WaitCount::default()).map(i64::from))
}

/// What makes a wait for the counters of an immediate one for one operation more.
fn one_more(code: &Code, inst: &Inst) -> Option<i64> {
    let counts = isa::wait_count(code.target, inst)?;
    let more = counts.iter().fold(WaitCount::default(), |more, (counter, count)| more.with(counter, count + 1));
    Some(i64::from(isa::wait_immediate(code.target, inst.opcode(), more)?) - immediate(inst)?)
}

/// A scalar load before a call or a return, into registers that nothing original names, with no wait after it.
fn outstanding_at_call(code: &Code, index: usize) -> Patch {
    let waits = |line: &&Line| isa::wait_count(code.target, &line.inst).is_some();
    let leaves =
        |line: &&Line| matches!(line.inst.variant.branch, Branch::Call | Branch::IndirectCall | Branch::IndirectJump);
    let unnamed = (30..96).step_by(2).map(|first| Reg::scalar(first, 2)).find(|pair| {
        let touches = |line: &Line| reads(&line.inst, *pair) || writes(&line.inst, *pair);
        code.lines.iter().all(|line| line.is_inserted() || !touches(line)) && code.lines.iter().any(touches)
    })?;
    let load = isa::build(code.target, "s_load_dwordx2", &[reg(unnamed), s2(0), Value::Imm(16)]).ok()?;
    let patch = code.replaced_inserted(index, &[load])?;
    let behind = patch[0].0 + patch[0].1.len() as u64;
    let mut ends = straight_on(code, index).filter(|line| line.address >= behind && (waits(line) || leaves(line)));
    ends.next().filter(leaves).map(|_| patch)
}
