//! Damages of how inserted code moves whole vector registers to scratch memory and back.

use wavetap::isa::{Branch, Flags, Inst, Memory, Reg, RegFile, Role, Value};
use wavetap::verify::Rule;

use super::Kind;
use super::subject::{Code, Line, Patch, reads, s, writes};

pub const KINDS: &[Kind] = &[
    Kind {
        name: "home_not_stored",
        what: "a vector register is not stored before inserted code uses it",
        rules: &[Rule::Clobbered],
        harm: |t| t.each(|c, i| load_of(c, i).and_then(|_| c.nothing(i))),
    },
    Kind {
        name: "home_not_loaded",
        what: "a vector register is not loaded back",
        rules: &[Rule::Clobbered],
        harm: |t| t.each(|c, i| store_of(c, i).and_then(|_| c.nothing(i))),
    },
    Kind {
        name: "home_stored_elsewhere",
        what: "a vector register is stored a dword further",
        rules: &[Rule::Clobbered],
        harm: |t| t.each(|c, i| load_of(c, i).and_then(|_| further(c, i))),
    },
    Kind {
        name: "home_loaded_from_elsewhere",
        what: "a vector register is loaded from a dword further",
        rules: &[Rule::Clobbered],
        harm: |t| t.each(|c, i| store_of(c, i).and_then(|_| further(c, i))),
    },
    Kind {
        name: "home_of_other_lanes",
        what: "one lane alone is active where whole vector registers are moved",
        rules: &[Rule::Clobbered],
        harm: |t| t.each(one_lane),
    },
    Kind {
        name: "homes_at_the_start",
        what: "the register that leads to homes leads to where the original's scratch memory begins",
        rules: &[Rule::Scratch],
        harm: |t| {
            t.each(|c, i| leads(c, i).and_then(|(to, _)| c.instead(i, "s_mov_b32", &[s(to), Value::InlineInt(0)])))
        },
    },
    Kind {
        name: "homes_of_one_lane",
        what: "the register of a buffer instruction counts the bytes of one lane instead of all (gfx8)",
        rules: &[Rule::Scratch],
        harm: |t| {
            t.each(|c, i| {
                let (to, bytes) = leads(c, i).filter(|_| by_buffer(c))?;
                c.instead(i, "s_mov_b32", &[s(to), Value::Literal(bytes / c.target.wave_size())])
            })
        },
    },
    Kind {
        name: "homes_in_other_memory",
        what: "a buffer instruction goes by other registers (gfx8)",
        rules: &[Rule::Scratch],
        harm: |t| {
            t.each(|c, i| {
                resource(c, i).and_then(|resource| described_by(c, i, Reg { first: resource.first + 4, ..resource }))
            })
        },
    },
    Kind {
        name: "homes_by_the_original_s_registers",
        what: "a buffer instruction goes by the registers that the original has for its scratch memory (gfx8)",
        rules: &[Rule::Scratch],
        harm: |t| t.each(|c, i| resource(c, i).and_then(|resource| described_by(c, i, Reg { first: 0, ..resource }))),
    },
    Kind {
        name: "homes_of_another_wave",
        what: "the registers that describe scratch memory are not moved on to the wave's (gfx8)",
        rules: &[Rule::Scratch],
        harm: |t| {
            t.each(|c, i| {
                let all = c.lines[i].inst.operand(Role::Src0)?.value;
                describes(c, i, 0).and_then(|register| c.instead(i, "s_mov_b32", &[s(register), all]))
            })
        },
    },
    Kind {
        name: "homes_without_a_carry",
        what: "the second register that describes scratch memory is a sum without the carry of the first (gfx8)",
        rules: &[Rule::Scratch],
        harm: |t| {
            t.each(|c, i| {
                let all = c.lines[i].inst.operand(Role::Src0)?.value;
                describes(c, i, 1).and_then(|register| c.instead(i, "s_mov_b32", &[s(register), all]))
            })
        },
    },
    Kind {
        name: "homes_without_a_size",
        what: "the last two registers that describe scratch memory are not set (gfx8)",
        rules: &[Rule::Scratch, Rule::Undefined],
        harm: |t| t.each(|c, i| describes(c, i, 2).and_then(|_| c.nothing(i))),
    },
    Kind {
        name: "homes_lost",
        what: "inserted code overwrites a register that describes scratch memory (gfx8)",
        rules: &[Rule::Scratch],
        harm: |t| t.each(resource_lost),
    },
    Kind {
        name: "homes_lost_in_front_of_a_call",
        what: "inserted code overwrites a register that describes scratch memory, and a function is called before that \
            is needed (gfx8)",
        rules: &[Rule::Scratch],
        harm: |t| t.each(resource_lost_in_front_of_a_call),
    },
];

fn by_buffer(code: &Code) -> bool {
    code.target.offset_flat_scratch()
}

/// Whether an inserted instruction accesses scratch memory.
fn moves(line: &Line) -> bool {
    line.is_inserted() && matches!(line.inst.variant.memory, Memory::Scratch | Memory::Buffer)
}

/// The vector register that is stored or loaded, and whether it is loaded.
fn moved(line: &Line) -> Option<(Reg, bool)> {
    let loads = line.inst.variant.flags.contains(Flags::LOAD);
    let data = line.inst.operand(Role::Vdata).or_else(|| line.inst.operand(Role::Vdst));
    moves(line).then(|| Some((data?.reg()?, loads))).flatten()
}

/// The load that takes back what an inserted instruction stores, in the same snippet.
fn load_of(code: &Code, index: usize) -> Option<usize> {
    let (register, loads) = moved(&code.lines[index])?;
    let mut behind = (index + 1..code.lines.len()).take_while(|at| code.is_inserted(*at));
    let back = behind.find(|at| {
        moved(&code.lines[*at]) == Some((register, true)) && same_place(&code.lines[index].inst, &code.lines[*at].inst)
    });
    back.filter(|_| !loads)
}

/// The store of what an inserted instruction loads back.
fn store_of(code: &Code, index: usize) -> Option<usize> {
    let (register, true) = moved(&code.lines[index])? else { return None };
    let mut before = (0..index).rev().take_while(|at| code.is_inserted(*at));
    before.find(|at| {
        moved(&code.lines[*at]) == Some((register, false)) && same_place(&code.lines[index].inst, &code.lines[*at].inst)
    })
}

fn same_place(a: &Inst, b: &Inst) -> bool {
    let operand = |inst: &Inst, role| inst.operand(role).map(|operand| operand.value);
    a.modifiers.offset == b.modifiers.offset
        && [Role::Vaddr, Role::Saddr, Role::Srsrc, Role::Soffset]
            .iter()
            .all(|role| operand(a, *role) == operand(b, *role))
}

fn further(code: &Code, index: usize) -> Patch {
    let mut inst = code.lines[index].inst.clone();
    inst.modifiers.offset += 4;
    code.replaced(index, &[inst])
}

/// All lanes are made active before moves; then one is.
fn one_lane(code: &Code, index: usize) -> Patch {
    let inst = &code.lines[index].inst;
    let exec = inst.operand(Role::Sdst)?.reg().filter(|reg| reg.overlaps(Reg::EXEC))?;
    let all = inst.operand(Role::Src0)?.value == Value::InlineInt(-1);
    let straight = |at: &usize| code.is_inserted(*at) && code.lines[*at].inst.variant.branch == Branch::None;
    let untouched = |at: &usize| !writes(&code.lines[*at].inst, Reg::EXEC);
    let mut moves = (index + 1..code.lines.len())
        .take_while(straight)
        .take_while(untouched)
        .filter(|at| load_of(code, *at).is_some());
    moves.next().filter(|_| all && code.is_inserted(index))?;
    code.instead(index, inst.variant.mnemonic, &[Value::Reg(exec), Value::InlineInt(1)])
}

/// The scalar register that an inserted instruction makes lead to homes, and what it puts there.
fn leads(code: &Code, index: usize) -> Option<(u16, u32)> {
    let inst = &code.lines[index].inst;
    let (to, Value::Literal(bytes)) = (inst.operand(Role::Sdst)?.reg()?, inst.operand(Role::Src0)?.value) else {
        return None;
    };
    let mut behind = (index + 1..code.lines.len()).take_while(|at| code.is_inserted(*at)).map(|at| &code.lines[at]);
    let first = behind.find(|line| reads(&line.inst, to) || writes(&line.inst, to))?;
    let base = first.inst.operand(Role::Soffset).or_else(|| first.inst.operand(Role::Saddr))?.reg();
    (inst.name() == "s_mov_b32" && code.is_inserted(index) && moves(first) && base == Some(to))
        .then_some((to.first, bytes))
}

/// The registers by which an inserted buffer instruction goes.
fn resource(code: &Code, index: usize) -> Option<Reg> {
    code.lines[index].inst.operand(Role::Srsrc)?.reg().filter(|_| moves(&code.lines[index]))
}

fn described_by(code: &Code, index: usize, other: Reg) -> Patch {
    let mut inst = code.lines[index].inst.clone();
    inst.operands.iter_mut().find(|operand| operand.role == Role::Srsrc)?.value = Value::Reg(other);
    code.replaced(index, &[inst])
}

/// The register that an instruction of the entry sets, if it is so far into those that describe scratch memory.
fn describes(code: &Code, index: usize, into: u16) -> Option<u16> {
    let described = (0..code.lines.len()).find_map(|at| resource(code, at))?;
    let to = code.lines[index].inst.operand(Role::Sdst)?.reg()?;
    let is_entry = code.is_inserted(index) && code.lines[..index].iter().all(Line::is_inserted);
    (is_entry && to.file == RegFile::Scalar && to.first == described.first + into).then_some(to.first)
}

/// One of the registers that describe scratch memory is overwritten after the entry; and the index of the first
/// instruction after that.
fn overwritten(code: &Code, index: usize) -> Option<(Patch, usize)> {
    let described = (0..code.lines.len()).find_map(|at| resource(code, at))?;
    let patch = code.sequence(index, &[("s_mov_b32", &[s(described.first + 1), Value::InlineInt(0)])])?;
    let end = patch[0].0 + patch[0].1.len() as u64;
    let behind_entry = code.lines[..index].iter().any(|line| !line.is_inserted());
    behind_entry.then_some((Some(patch), code.at(end)?))
}

/// Before moves, in their snippet.
fn resource_lost(code: &Code, index: usize) -> Patch {
    let (patch, behind) = overwritten(code, index)?;
    let straight = |at: &usize| code.is_inserted(*at) && code.lines[*at].inst.variant.branch == Branch::None;
    let mut behind = (behind..code.lines.len()).take_while(straight);
    behind.any(|at| resource(code, at).is_some()).then_some(patch)?
}

/// After the moves of a snippet; then comes a call and, after it, the next snippet.
fn resource_lost_in_front_of_a_call(code: &Code, index: usize) -> Patch {
    let (patch, behind) = overwritten(code, index)?;
    let mut snippet = (0..index).rev().take_while(|at| code.is_inserted(*at));
    snippet.find(|at| resource(code, *at).is_some())?;
    let goes_on = |at: usize| matches!(code.lines[at].inst.variant.branch, Branch::None | Branch::Conditional(_));
    let stops = |at: &usize| !goes_on(*at) || resource(code, *at).is_some();
    let call = (behind..code.lines.len()).find(stops)?;
    let moves_behind = (call..code.lines.len()).any(|at| resource(code, at).is_some());
    let calls = matches!(code.lines[call].inst.variant.branch, Branch::Call | Branch::IndirectCall);
    (calls && moves_behind).then_some(patch)?
}
