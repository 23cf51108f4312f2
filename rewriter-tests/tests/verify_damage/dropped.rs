//! Damages of code that lets some lanes not execute an access, and of what the site table says of it.

use wavetap::isa::{Access, Inst, Opcode, Reg, RegFile, Role, Value};
use wavetap::profile::map::{KernelMap, Site};
use wavetap::profile::probes::bounds::{ACCESS, DROPPED_ACCESS};
use wavetap::verify::Rule;

use super::Kind;
use super::subject::{Code, Harm, Patch, Subject, reads, writes};
use super::tables::table;

/// What is found where an original instruction is executed in other lanes.
const EXEC: &[Rule] = &[Rule::Exec];

pub const KINDS: &[Kind] = &[
    Kind {
        name: "dropped_lanes_added",
        what: "bad lanes are added to EXEC in place of being taken out",
        rules: EXEC,
        harm: |t| t.each(|c, i| narrowed(c, i, "s_or_b")),
    },
    Kind {
        name: "dropped_lanes_alone",
        what: "the access is executed in the bad lanes, whatever the original's are",
        rules: EXEC,
        harm: |t| t.each(|c, i| narrowed(c, i, "s_mov_b")),
    },
    Kind {
        name: "dropped_exec_not_restored",
        what: "EXEC is not restored after the access",
        rules: EXEC,
        harm: |t| t.each(not_restored),
    },
    Kind {
        name: "dropped_lanes_get_1",
        what: "lanes that did not execute a load get 1",
        rules: &[Rule::Clobbered],
        harm: |t| t.each(|c, i| zeroes(c, i).then(|| with(c, i, Role::Src0, Value::InlineInt(1))).flatten()),
    },
    Kind {
        name: "dropped_lanes_and_others_get_0",
        what: "all lanes get 0 after a load",
        rules: &[Rule::Clobbered],
        harm: |t| t.each(|c, i| combines(c, i, Opcode::S_XOR_B32, Opcode::S_XOR_B64).then(|| all(c, i)).flatten()),
    },
    Kind {
        name: "dropped_access_not_listed",
        what: "the site table does not say that lanes may not execute an access",
        rules: EXEC,
        harm: |t| listed(t, |kernel, site| kernel.sites[site].kind = ACCESS.clone()),
    },
    Kind {
        name: "dropped_access_is_another",
        what: "the site table names the instruction after the access",
        rules: &[Rule::Exec, Rule::Map],
        harm: |t| {
            listed(t, |kernel, site| {
                let at = kernel.sites[site].address;
                let next = kernel.addresses.iter().map(|pair| pair.original).filter(|original| *original > at).min();
                kernel.sites[site].address = next.unwrap_or(at);
            })
        },
    },
];

/// Whether it is an inserted instruction that makes EXEC of two masks, by one of these operations.
fn combines(c: &Code, index: usize, narrow: Opcode, wide: Opcode) -> bool {
    let inst = &c.lines[index].inst;
    c.is_inserted(index) && [narrow, wide].contains(&inst.opcode()) && writes(inst, Reg::EXEC)
}

/// An instruction that takes bad lanes out of EXEC is another operation; of one operand that is the bad lanes.
fn narrowed(c: &Code, index: usize, stem: &str) -> Patch {
    // gfx11 has new names.
    let is_it = combines(c, index, Opcode::S_ANDN2_B32, Opcode::S_ANDN2_B64)
        || combines(c, index, Opcode::S_AND_NOT1_B32, Opcode::S_AND_NOT1_B64);
    let inst = &c.lines[index].inst;
    let value = |role| inst.operand(role).map(|operand| operand.value);
    let values = match stem {
        "s_mov_b" => vec![value(Role::Sdst)?, value(Role::Src1)?],
        _ => vec![value(Role::Sdst)?, value(Role::Src0)?, value(Role::Src1)?],
    };
    is_it.then(|| c.instead(index, &format!("{stem}{}", c.target.wave_size()), &values)).flatten()
}

/// The last inserted instruction that writes EXEC before an original one that reads it does nothing.
fn not_restored(c: &Code, index: usize) -> Patch {
    let inst = &c.lines[index].inst;
    let is_move = matches!(inst.opcode(), Opcode::S_MOV_B32 | Opcode::S_MOV_B64) && writes(inst, Reg::EXEC);
    let next = (c.is_inserted(index) && is_move).then(|| c.next_original(index, Some(Reg::EXEC))).flatten()?;
    reads(&c.lines[next].inst, Reg::EXEC).then(|| c.nothing(index)).flatten()
}

/// Whether it is an inserted instruction that sets a register to 0 that an original one loads.
fn zeroes(c: &Code, index: usize) -> bool {
    let inst = &c.lines[index].inst;
    let is_zero = inst.operand(Role::Src0).is_some_and(|operand| operand.value == Value::InlineInt(0));
    let loads = |inst: &Inst, reg: Reg| inst.opcode().load().is_some() && writes(inst, reg);
    let written = inst.operands.iter().find(|operand| operand.access == Access::Write).and_then(|o| o.reg());
    c.is_inserted(index)
        && inst.opcode() == Opcode::V_MOV_B32
        && is_zero
        && written.is_some_and(|reg| {
            reg.file == RegFile::Vector && c.lines.iter().any(|line| !line.is_inserted() && loads(&line.inst, reg))
        })
}

/// An instruction with another value of an operand.
fn with(c: &Code, index: usize, role: Role, value: Value) -> Patch {
    let mut inst = c.lines[index].inst.clone();
    inst.operands.iter_mut().find(|operand| operand.role == role)?.value = value;
    c.replaced(index, &[inst])
}

/// EXEC becomes what the original's is, in place of the lanes that did not execute the access.
fn all(c: &Code, index: usize) -> Patch {
    let value = |role| c.lines[index].inst.operand(role).map(|operand| operand.value);
    c.instead(index, &format!("s_mov_b{}", c.target.wave_size()), &[value(Role::Sdst)?, value(Role::Src1)?])
}

/// The first access that lanes may not execute is another in the site table.
fn listed(subject: &Subject, change: impl Fn(&mut KernelMap, usize)) -> Vec<Harm> {
    let is_it = |site: &Site| site.kind == *DROPPED_ACCESS;
    let Some(place) = subject.map.kernels[0].sites.iter().position(is_it) else { return Vec::new() };
    table(subject, |map| change(&mut map.kernels[0], place))
}
