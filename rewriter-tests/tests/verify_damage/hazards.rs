//! Damages that bring instructions closer together than the target keeps apart by itself. Each kind's sequence takes
//! the place of inserted instructions.

use wavetap::code_object::Feature;
use wavetap::isa::{
    Branch, Condition, EventHazards as Rules, Flags, Inst, Memory, Reg, RegFile, Role, Value, WaitStates, alu_wait,
    build, scalar,
};
use wavetap::verify::Rule;

use super::Kind;
use super::subject::{Code, Line, Patch, mask, s, s2, source, v};

const HAZARD: &[Rule] = &[Rule::Hazard];
const ZERO: Value = Value::InlineInt(0);

/// One half of VCC, and of EXEC.
const VCC_LO: Value = Value::Reg(Reg::scalar(scalar::VCC, 1));
const EXEC_LO: Value = Value::Reg(Reg::scalar(scalar::EXEC, 1));

type Sequence<'a> = &'a [(&'a str, &'a [Value])];

pub const KINDS: &[Kind] = &[
    Kind {
        name: "hazard_scalar_to_memory",
        what: "a vector instruction writes the base of the next memory access (gfx9)",
        rules: HAZARD,
        harm: |t| {
            t.each(|c, i| {
                counted(c, i, &[("v_readfirstlane_b32", &[s(0), v(0)]), ("global_load_dword", &[v(0), v(0), s2(0)])])
            })
        },
    },
    Kind {
        name: "hazard_scalar_to_original_memory",
        what: "inserted code writes the base of an original memory access with a vector instruction (gfx8, gfx9)",
        rules: HAZARD,
        harm: |t| t.each(original_access),
    },
    Kind {
        name: "hazard_lane_select",
        what: "a vector instruction writes the scalar register that selects a lane (gfx8, gfx9)",
        rules: HAZARD,
        harm: |t| {
            t.each(|c, i| {
                counted(c, i, &[("v_readfirstlane_b32", &[s(0), v(0)]), ("v_readlane_b32", &[s(1), v(0), s(0)])])
            })
        },
    },
    Kind {
        name: "hazard_vector_to_dpp",
        what: "a vector register is written that DPP reads (gfx8, gfx9)",
        rules: HAZARD,
        harm: |t| t.each(|c, i| counted(c, i, &[("v_mov_b32_e32", &[v(0), ZERO]), ("v_mov_b32_dpp", &[v(0), v(0)])])),
    },
    Kind {
        name: "hazard_exec_to_dpp",
        what: "a vector instruction writes EXEC in front of DPP (gfx8, gfx9)",
        rules: HAZARD,
        harm: |t| {
            t.each(|c, i| counted(c, i, &[("v_cmpx_eq_u32_e32", &[v(0), v(0)]), ("v_mov_b32_dpp", &[v(0), v(0)])]))
        },
    },
    Kind {
        name: "hazard_vcc_to_div_fmas",
        what: "a vector instruction writes VCC in front of v_div_fmas (gfx8, gfx9)",
        rules: HAZARD,
        harm: |t| {
            t.each(|c, i| {
                counted(c, i, &[("v_cmp_eq_u32_e32", &[v(0), v(0)]), ("v_div_fmas_f32", &[v(0), v(0), v(0), v(0)])])
            })
        },
    },
    Kind {
        name: "hazard_half_of_vcc",
        what: "one half of VCC is written in front of a branch on all of it (gfx8, gfx9)",
        rules: HAZARD,
        harm: |t| t.each(half_of_vcc),
    },
    Kind {
        name: "hazard_replayed",
        what: "scalar loads that may be replayed write what the first of them has read (XNACK)",
        rules: HAZARD,
        harm: |t| {
            let loads: Sequence<'_> = &[
                ("s_load_dwordx2", &[s2(4), s2(2), Value::Imm(16)]),
                ("s_load_dwordx2", &[s2(2), s2(4), Value::Imm(16)]),
            ];
            let replays = matches!(t.object().features().xnack, Feature::Any | Feature::On);
            t.each(|c, i| replays.then(|| c.sequence(i, loads)).flatten())
        },
    },
    Kind {
        name: "hazard_scalar_to_vector",
        what: "a vector instruction writes the scalar register that the next one reads (gfx94x)",
        rules: HAZARD,
        harm: |t| {
            t.each(|c, i| strict(c, i, &[("v_readfirstlane_b32", &[s(0), v(0)]), ("v_mov_b32_e32", &[v(0), s(0)])]))
        },
    },
    Kind {
        name: "hazard_vector_to_lane",
        what: "a vector register is written of which the next instruction reads a lane (gfx94x)",
        rules: HAZARD,
        harm: |t| {
            t.each(|c, i| strict(c, i, &[("v_mov_b32_e32", &[v(0), ZERO]), ("v_readfirstlane_b32", &[s(0), v(0)])]))
        },
    },
    Kind {
        name: "hazard_exec_to_lane",
        what: "a vector instruction writes EXEC in front of a lane access (gfx94x)",
        rules: HAZARD,
        harm: |t| {
            t.each(|c, i| strict(c, i, &[("v_cmpx_eq_u32_e32", &[v(0), v(0)]), ("v_readfirstlane_b32", &[s(0), v(0)])]))
        },
    },
    Kind {
        name: "hazard_exec_to_data",
        what: "a vector instruction writes EXEC, which the next one reads as data (gfx94x)",
        rules: HAZARD,
        harm: |t| {
            t.each(|c, i| strict(c, i, &[("v_cmpx_eq_u32_e32", &[v(0), v(0)]), ("v_mov_b32_e32", &[v(0), EXEC_LO])]))
        },
    },
    Kind {
        name: "hazard_transcendental",
        what: "the result of a transcendental is used at once (gfx94x, gfx11.0)",
        rules: HAZARD,
        harm: |t| {
            t.each(|c, i| {
                let use_of_result: Sequence<'_> =
                    &[("v_rcp_f32_e32", &[v(0), v(0)]), ("v_add_f32_e32", &[v(0), v(0), v(0)])];
                strict(c, i, use_of_result).or_else(|| event(c, i, Rules::VALU_TRANS_USE, use_of_result))
            })
        },
    },
    Kind {
        name: "hazard_first_vector",
        what: "the v_nop with which a wave begins is gone (gfx125x)",
        rules: HAZARD,
        harm: |t| t.each(|c, i| first(c, i, |inst| inst.name() == "v_nop")),
    },
    Kind {
        name: "hazard_first_memory",
        what: "the prefetch with which a wave begins is gone (gfx125x)",
        rules: HAZARD,
        harm: |t| t.each(|c, i| first(c, i, |inst| inst.name() == "global_prefetch_b8")),
    },
    Kind {
        name: "hazard_matrix_result",
        what: "inserted code reads the result of a matrix instruction at once (gfx908 and later)",
        rules: HAZARD,
        harm: |t| t.each(matrix_result),
    },
    Kind {
        name: "hazard_base_overwritten",
        what: "the base of a memory access is overwritten at once (gfx10.1)",
        rules: HAZARD,
        harm: |t| {
            t.each(|c, i| {
                let overwrite: Sequence<'_> =
                    &[("global_load_dword", &[v(0), v(0), s2(0)]), ("s_mov_b32", &[s(0), ZERO])];
                event(c, i, Rules::VMEM_TO_SCALAR_WRITE, overwrite)
            })
        },
    },
    Kind {
        name: "hazard_scalar_base_overwritten",
        what: "a vector instruction overwrites the base of a scalar load at once (gfx10.1)",
        rules: HAZARD,
        harm: |t| {
            t.each(|c, i| {
                let overwrite: Sequence<'_> =
                    &[("s_load_dwordx2", &[s2(2), s2(0), Value::Imm(16)]), ("v_readfirstlane_b32", &[s(0), v(0)])];
                event(c, i, Rules::SMEM_TO_VECTOR_WRITE, overwrite)
            })
        },
    },
    Kind {
        name: "hazard_exec_read_and_compared",
        what: "v_cmpx writes EXEC, which a scalar instruction has yet to read (gfx10.1)",
        rules: HAZARD,
        harm: |t| {
            t.each(|c, i| {
                event(
                    c,
                    i,
                    Rules::VCMPX_EXEC_WAR,
                    &[("s_mov_b32", &[s(0), EXEC_LO]), ("v_cmpx_eq_u32_e32", &[v(0), v(0)])],
                )
            })
        },
    },
    Kind {
        name: "hazard_lds_branch_memory",
        what: "LDS, a branch and vector memory with no wait between (gfx10.1)",
        rules: HAZARD,
        harm: |t| {
            t.each(|c, i| {
                let kinds: Sequence<'_> = &[
                    ("ds_write_b32", &[v(0), v(0)]),
                    ("s_branch", &[Value::Imm(0)]),
                    ("global_load_dword", &[v(0), v(0), s2(0)]),
                ];
                event(c, i, Rules::LDS_BRANCH_VMEM, kinds)
            })
        },
    },
    Kind {
        name: "hazard_flat_offset",
        what: "a flat access has an offset (gfx10.1)",
        rules: HAZARD,
        harm: |t| t.each(flat_offset),
    },
    Kind {
        name: "hazard_compared_and_permuted",
        what: "v_cmpx writes EXEC in front of a permutation of rows (gfx10.1, gfx11, gfx12.0)",
        rules: HAZARD,
        harm: |t| {
            t.each(|c, i| {
                let permute: Sequence<'_> =
                    &[("v_cmpx_eq_u32_e32", &[v(0), v(0)]), ("v_permlane16_b32", &[v(0), v(0), s(0), s(0)])];
                event(c, i, Rules::VCMPX_PERMLANE, permute)
            })
        },
    },
    Kind {
        name: "hazard_partial_forward",
        what: "results from both sides of a write of EXEC are used at once (gfx11, waves of 64)",
        rules: HAZARD,
        harm: |t| {
            t.each(|c, i| {
                let exec = mask(c.target, scalar::EXEC);
                let forward: Sequence<'_> = &[
                    ("v_mov_b32_e32", &[v(0), ZERO]),
                    ("s_mov_b64", &[exec, s2(0)]),
                    ("v_mov_b32_e32", &[v(1), ZERO]),
                    ("v_add_f32_e32", &[v(0), v(0), v(1)]),
                ];
                let wide = c.target.wave_size() == 64;
                wide.then(|| event(c, i, Rules::VALU_PARTIAL_FORWARD, forward)).flatten()
            })
        },
    },
    Kind {
        name: "hazard_mask_rewritten",
        what: "a mask of lanes that was read is written and read again (gfx11, waves of 64)",
        rules: HAZARD,
        harm: |t| {
            t.each(|c, i| {
                let rewrite: Sequence<'_> = &[
                    ("v_cndmask_b32_e64", &[v(0), v(0), v(0), s2(0)]),
                    ("s_mov_b32", &[s(0), ZERO]),
                    ("v_mov_b32_e32", &[v(0), s(0)]),
                ];
                let wide = c.target.wave_size() == 64;
                wide.then(|| event(c, i, Rules::VALU_MASK_WRITE, rewrite)).flatten()
            })
        },
    },
    Kind {
        name: "hazard_pair_rewritten",
        what: "a scalar register that a vector instruction has read is written and read at once (gfx12.0)",
        rules: HAZARD,
        harm: |t| {
            t.each(|c, i| {
                let rewrite: Sequence<'_> =
                    &[("v_mov_b32_e32", &[v(0), s(0)]), ("s_mov_b32", &[s(0), ZERO]), ("v_mov_b32_e32", &[v(0), s(0)])];
                event(c, i, Rules::VALU_READ_SGPR, rewrite)
            })
        },
    },
    Kind {
        name: "mode_not_given_back",
        what: "inserted code leaves the checks of vector registers on where original code goes without (gfx12)",
        rules: HAZARD,
        harm: |t| t.each(|c, i| sets_mode(c, i, 2).then(|| c.nothing(i)).flatten()),
    },
    Kind {
        name: "mode_not_changed",
        what: "inserted code runs without checks of vector registers (gfx12)",
        rules: HAZARD,
        harm: |t| t.each(|c, i| sets_mode(c, i, 0).then(|| c.nothing(i)).flatten()),
    },
    Kind {
        name: "mode_changed_too_early",
        what: "inserted code changes who looks after vector registers while some are under way (gfx12)",
        rules: HAZARD,
        harm: |t| t.each(|c, i| before_mode(c, i).then(|| c.nothing(i)).flatten()),
    },
    Kind {
        name: "mode_changed_without_vm_vsrc",
        what: "inserted code changes who looks after vector registers without a wait for what memory reads (gfx12)",
        rules: HAZARD,
        harm: |t| {
            t.each(|c, i| before_mode(c, i).then(|| c.instead(i, "s_waitcnt_depctr", &[Value::Imm(0x0fff)])).flatten())
        },
    },
    Kind {
        name: "mode_leaves_something",
        what: "inserted code with checks has vector registers under way where original code may switch these off \
            (gfx12)",
        rules: HAZARD,
        harm: |t| t.each(|c, i| last_wait(c, i).then(|| c.nothing(i)).flatten()),
    },
    Kind {
        name: "mode_of_another_field",
        what: "inserted code sets another field than the one of the checks of vector registers (gfx12)",
        rules: HAZARD,
        harm: |t| {
            t.each(|c, i| {
                sets_mode(c, i, 2)
                    .then(|| {
                        c.instead(i, "s_setreg_imm32_b32", &[Value::Imm(26 | 2 << 6 | 1 << 11), Value::Literal(2)])
                    })
                    .flatten()
            })
        },
    },
];

/// Whether inserted code sets who checks vector registers, to this mode.
fn sets_mode(code: &Code, index: usize, mode: u32) -> bool {
    let line = &code.lines[index];
    let number = code.target.scheduling_mode_hwreg();
    let sets = number.is_some() && line.is_inserted() && line.inst.sets_hwreg() == number;
    sets && line.inst.operands.iter().any(|operand| operand.value == Value::Literal(mode))
}

/// Whether it is the wait before that.
fn before_mode(code: &Code, index: usize) -> bool {
    code.line(index + 1).is_some() && (sets_mode(code, index + 1, 0) || sets_mode(code, index + 1, 2))
}

/// Whether it is a wait for everything at the end of inserted code that runs with checks as the original does.
fn last_wait(code: &Code, index: usize) -> bool {
    let line = &code.lines[index];
    let waits = alu_wait(&line.inst).is_some_and(|wait| wait.va_vdst == Some(0) && wait.vm_vsrc == Some(0));
    waits
        && line.is_inserted()
        && !before_mode(code, index)
        && code.line(index + 1).is_some_and(|next| !next.is_inserted())
}

/// Where wait states are left to software.
fn counted(code: &Code, index: usize, insts: Sequence<'_>) -> Patch {
    (code.target.wait_states() != WaitStates::None).then(|| code.sequence(index, insts)).flatten()
}

/// On gfx94x, which forwards fewer results.
fn strict(code: &Code, index: usize, insts: Sequence<'_>) -> Patch {
    code.target.sc_cache_bits().then(|| code.sequence(index, insts)).flatten()
}

/// Where the target has a hazard.
fn event(code: &Code, index: usize, hazard: Rules, insts: Sequence<'_>) -> Patch {
    code.target.event_hazards().contains(hazard).then(|| code.sequence(index, insts)).flatten()
}

/// One of the instructions with which the entry begins does nothing.
fn first(code: &Code, index: usize, is_it: impl Fn(&Inst) -> bool) -> Patch {
    let begins = code.target.event_hazards().contains(Rules::FIRST_VECTOR) && index < 4;
    (begins && is_it(&code.lines[index].inst)).then(|| code.nothing(index)).flatten()
}

/// Before an original access by a scalar base, something that writes it.
fn original_access(code: &Code, index: usize) -> Patch {
    let accesses =
        |line: &Line| !line.is_inserted() && matches!(line.inst.variant.memory, Memory::Global | Memory::Buffer);
    // Five wait states are needed.
    let access = (index + 1..code.lines.len()).take(4).find(|at| accesses(&code.lines[*at]))?;
    let straight = |at: usize| {
        let line = &code.lines[at];
        line.end() == code.lines[at + 1].address
            && matches!(line.inst.variant.branch, Branch::None | Branch::Conditional(_))
    };
    let base = source(&code.lines[access].inst, RegFile::Scalar, 100).filter(|_| (index..access).all(straight))?;
    counted(code, index, &[("v_readfirstlane_b32", &[Value::Reg(base), v(0)])])
}

fn half_of_vcc(code: &Code, index: usize) -> Patch {
    let next = code.next_original(index, Some(Reg::VCC))?;
    let branches =
        matches!(code.lines[next].inst.variant.branch, Branch::Conditional(Condition::VccZ | Condition::VccNz));
    branches.then(|| counted(code, index, &[("s_mov_b32", &[VCC_LO, ZERO])])).flatten()
}

fn matrix_result(code: &Code, index: usize) -> Patch {
    let original = |inst: &Inst| inst.variant.flags.contains(Flags::MFMA) && inst.name().starts_with("v_mfma");
    let producer = (index.saturating_sub(3)..index).rev().find(|at| original(&code.lines[*at].inst))?;
    let result = code.lines[producer].inst.operand(Role::Vdst)?.reg()?;
    if code.lines[producer].end() + 16 < code.lines[index].address {
        return None;
    }
    let name = if result.file == RegFile::Accum { "v_accvgpr_read_b32" } else { "v_mov_b32_e32" };
    code.sequence(index, &[(name, &[v(0), Value::Reg(Reg { dwords: 1, ..result })])])
}

fn flat_offset(code: &Code, index: usize) -> Patch {
    let mut inst = build(code.target, "flat_load_dword", &[v(0), Value::Reg(Reg::vector(0, 2))]).ok()?;
    inst.modifiers.offset = 8;
    code.target.event_hazards().contains(Rules::FLAT_OFFSET).then(|| code.replaced_inserted(index, &[inst])).flatten()
}
