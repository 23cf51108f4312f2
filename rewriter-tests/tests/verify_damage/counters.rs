//! Damages of counters in registers.

use wavetap::isa::{Inst, Reg, RegFile, Role, Value, scalar};
use wavetap::verify::Rule;

use super::Kind;
use super::registers::{ZERO, reg, value};
use super::subject::{Code, Line, Patch, reads, writes};

pub const KINDS: &[Kind] = &[
    Kind {
        name: "counter_in_an_original_register",
        what: "a counter is in a scalar register that original code writes",
        rules: &[Rule::Counter],
        harm: |t| t.each(counter_elsewhere),
    },
    Kind {
        name: "counter_not_zeroed",
        what: "a counter in a scalar register is not set to 0 at the entry",
        rules: &[Rule::Counter],
        harm: |t| t.each(|c, i| zeroes_counter(c, i).then(|| c.nothing(i)).flatten()),
    },
    Kind {
        name: "bit_in_an_original_register",
        what: "what happened sets a bit of a scalar register that original code writes",
        rules: &[Rule::Counter],
        harm: |t| t.each(|c, i| once_elsewhere(c, i, sets_bit(c, i)?)),
    },
    Kind {
        name: "lanes_in_an_original_register",
        what: "the number of active lanes is in a scalar register that original code writes",
        rules: &[Rule::Counter],
        harm: |t| t.each(|c, i| once_elsewhere(c, i, keeps_lanes(c, i)?)),
    },
    Kind {
        name: "bits_not_begun",
        what: "the mask of what happened is not set at the entry",
        rules: &[Rule::Counter],
        harm: |t| t.each(|c, i| begins_bits(c, i).then(|| c.nothing(i)).flatten()),
    },
];

/// The scalar register that an instruction adds to.
fn added(inst: &Inst) -> Option<Reg> {
    let into = inst.operand(Role::Sdst)?.reg()?;
    let adds = matches!(inst.name(), "s_add_u32" | "s_add_co_u32") && into.dwords == 1;
    (adds && inst.operand(Role::Src0)?.reg() == Some(into)).then_some(into)
}

/// Whether inserted code between original instructions counts in this register, which no original instruction names.
fn counts_in(code: &Code, register: Reg) -> bool {
    let names = |line: &Line| reads(&line.inst, register) || writes(&line.inst, register);
    let first = code.lines.iter().position(|line| !line.is_inserted()).unwrap_or(0);
    let counts = |line: &Line| line.is_inserted() && added(&line.inst) == Some(register);
    code.lines.iter().all(|line| line.is_inserted() || !names(line)) && code.lines[first..].iter().any(counts)
}

/// The instruction with a scalar register that original code writes in place of this one.
fn in_an_original(code: &Code, index: usize, counter: Reg) -> Patch {
    let mut written = code.lines.iter().filter(|line| !line.is_inserted()).flat_map(|line| line.inst.writes());
    let other = written.find(|reg| reg.file == RegFile::Scalar && reg.dwords == 1 && reg.first < scalar::VCC)?;
    let mut inst = code.lines[index].inst.clone();
    for operand in inst.operands.iter_mut().filter(|operand| operand.reg() == Some(counter)) {
        operand.value = reg(other);
    }
    code.replaced(index, &[inst])
}

fn counter_elsewhere(code: &Code, index: usize) -> Patch {
    let counter = added(&code.lines[index].inst).filter(|_| code.is_inserted(index))?;
    // Set in the same place it would be no counter.
    let here = code.lines[..index].iter().rev().take_while(|line| line.is_inserted());
    if here.into_iter().any(|line| writes(&line.inst, counter)) || !counts_in(code, counter) {
        return None;
    }
    in_an_original(code, index, counter)
}

/// The register of which an inserted instruction sets a bit.
fn sets_bit(code: &Code, index: usize) -> Option<Reg> {
    let inst = &code.lines[index].inst;
    let sets = inst.name() == "s_bitset1_b32" && code.is_inserted(index);
    inst.operand(Role::Sdst).filter(|_| sets)?.reg()
}

/// The register to which an inserted instruction counts active lanes for the end of the wave.
fn keeps_lanes(code: &Code, index: usize) -> Option<Reg> {
    let inst = &code.lines[index].inst;
    let counts = inst.name().starts_with("s_bcnt1_i32_b") && code.is_inserted(index);
    let into = inst.operand(Role::Sdst).filter(|_| counts)?.reg()?;
    let mut after = code.lines[index + 1..].iter().take_while(|line| line.is_inserted());
    (!after.any(|line| reads(&line.inst, into))).then_some(into)
}

/// The instruction with another register, which original code writes.
fn once_elsewhere(code: &Code, index: usize, counter: Reg) -> Patch {
    // At the entry it is set in any case.
    code.lines[..index].iter().find(|line| !line.is_inserted())?;
    in_an_original(code, index, counter)
}

/// Whether the instruction sets the mask of which inserted code sets bits.
fn begins_bits(code: &Code, index: usize) -> bool {
    let inst = &code.lines[index].inst;
    let Some(into) = inst.operand(Role::Sdst).and_then(|operand| operand.reg()) else { return false };
    let one = inst.name().starts_with("s_mov_b") && value(inst, Role::Src0) == Some(Value::InlineInt(1));
    let in_mask = |at| sets_bit(code, at).is_some_and(|bit| bit.overlaps(into));
    one && code.is_inserted(index) && (0..code.lines.len()).any(in_mask)
}

/// Whether the instruction sets a counter to 0.
fn zeroes_counter(code: &Code, index: usize) -> bool {
    let inst = &code.lines[index].inst;
    let zero = matches!(inst.name(), "s_mov_b32" | "s_mov_b64") && value(inst, Role::Src0) == Some(ZERO);
    let into = inst.operand(Role::Sdst).and_then(|operand| operand.reg());
    zero && code.is_inserted(index) && into.is_some_and(|into| counts_in(code, Reg::scalar(into.first, 1)))
}
