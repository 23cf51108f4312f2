//! Lanes of vector registers that inserted code spills and reads.

use super::*;

/// On gfx94x a lane is read one state after a vector instruction has written the register (LLVM's
/// `VALUWriteVGPRReadlaneRead`).
#[test]
fn lanes_that_were_just_written_are_read_a_state_later() {
    let read = |name: &str, written: u16, between: Option<&str>| {
        let mut asm = Asm::new(target(name), Place::Middle(RegSet::EMPTY));
        let operands = [Value::Reg(Reg::vector(written, 1)), s(0, 1), Value::InlineInt(0)];
        asm.op("v_writelane_b32", &operands).expect("an instruction");
        if let Some(mnemonic) = between {
            asm.op(mnemonic, &[s(4, 1), s(5, 1)]).expect("an instruction");
        }
        let label = asm.new_label();
        asm.bind(label);
        asm.read_lane(6, 3, 0).expect("an instruction");
        let items = asm.finish().expect("settled").items;
        items.iter().filter(|item| matches!(item, Item::Inst(inst) if inst.name() == "s_nop")).count()
    };
    assert_eq!(read("gfx942", 3, None), 1);
    assert_eq!(read("gfx942", 4, None), 0);
    assert_eq!(read("gfx942", 3, Some("s_mov_b32")), 0);
    assert_eq!(read("gfx1100", 3, None), 0, "it waits by itself");
}

/// Lanes of registers are spilled only where the registers hold a value: where work-item ids are packed, v1 and v2 do
/// not at entry, although code that writes them in some lanes alone makes them live.
#[test]
fn undefined_registers_are_not_spilled() {
    let target = target("gfx942");
    // As many as waves of a workgroup of 1024 can have.
    let all = 0..128;
    let vector = |number| Value::Reg(Reg::vector(number, 1));
    let (exec, saved) = (Value::Reg(Reg::EXEC), s(20, 2));
    let defined = all.clone().skip(3).map(|number| ("v_mov_b32_e32", vec![vector(number), vector(0)]));
    let narrowed = [
        ("v_cmp_ne_u32_e32", vec![Value::Reg(Reg::VCC), Value::InlineInt(0), vector(0)]),
        ("s_and_saveexec_b64", vec![saved, Value::Reg(Reg::VCC)]),
        ("v_mov_b32_e32", vec![vector(1), vector(0)]),
        ("v_mov_b32_e32", vec![vector(2), vector(0)]),
        ("s_or_b64", vec![exec, exec, saved]),
    ];
    let used = all.map(|number| ("v_mov_b32_e32", vec![vector(0), vector(number)]));
    let code: Vec<_> = defined.chain(narrowed).chain(used).collect();
    let code: Vec<_> = code.iter().map(|(mnemonic, operands)| (*mnemonic, operands.as_slice())).collect();
    let (bytes, mut kernel) = kernel(target, &code);
    kernel.descriptor.set_allocated_vgprs(target, 128).expect("fits");
    kernel.descriptor.set_accum_offset(128).expect("fits");
    let planned = plan(target, &bytes, &kernel, CounterMode::Global).unwrap_or_else(|stop| panic!("{stop:?}"));
    let items = planned.edits.inserts.iter().flat_map(|(_, snippet)| &snippet.items);
    let spills = items.filter_map(|item| match item {
        Item::Inst(inst) if inst.name() == "v_readlane_b32" => Some(inst),
        _ => None,
    });
    let spilled: RegSet = spills.flat_map(Inst::reads).collect();
    // The cheapest pair is v0 and v1, the cheapest single one v2.
    assert_eq!(spilled, RegSet::from_iter([Reg::vector(0, 1)]));
}
