//! Kernels that name all vector registers that instructions have numbers for (gfx1250).

use super::*;

/// A kernel that names `v0` to `v255`, and of those after them so many; `highest` is allocated.
fn naming(above: u16, allocated: u32) -> (Target, Vec<u8>, Kernel) {
    let target = target("gfx1250");
    let moves: Vec<[Value; 2]> = (0..256).map(|n| [Value::Reg(Reg::vector(n, 1)), Value::InlineInt(0)]).collect();
    let set: Vec<[Value; 1]> = (0..5).map(|bank: i64| [Value::Imm(bank % 4 * 0x40)]).collect();
    let saveexec = [s(20, 1), s(22, 1)];
    let mut code: Vec<(&str, &[Value])> = Vec::new();
    for bank in 0..4 {
        let here = usize::from(if bank == 0 { 256 } else { above.saturating_sub((bank - 1) * 256).min(256) });
        code.push(("s_set_vgpr_msb", &set[usize::from(bank)]));
        code.extend(moves[..here].iter().map(|operands| ("v_mov_b32_e32", operands.as_slice())));
    }
    code.push(("s_set_vgpr_msb", &set[4]));
    code.push(("s_and_saveexec_b32", &saveexec));
    let (bytes, mut kernel) = kernel(target, &code);
    kernel.descriptor.set(Field::ENABLE_WAVEFRONT_SIZE32, 1).expect("fits");
    kernel.descriptor.set_allocated_vgprs(target, allocated).expect("fits");
    let metadata = metadata_of(&mut kernel);
    (metadata.vgpr_count, metadata.max_flat_workgroup_size) = (allocated.into(), 64);
    (target, bytes, kernel)
}

/// `s_set_vgpr_msb` of a snippet, and whether all other vector registers in it are numbered so.
fn high_bits(snippet: &Snippet) -> Vec<Value> {
    let insts = snippet.items.iter().filter_map(|item| if let Item::Inst(inst) = item { Some(inst) } else { None });
    let sets = insts.filter(|inst| inst.name() == "s_set_vgpr_msb");
    sets.filter_map(|inst| inst.operand(Role::Simm16).map(|operand| operand.value)).collect()
}

#[test]
fn inserted_code_has_registers_above_those_of_the_original() {
    // Three are needed, at an even number from v3 on of some 256: v457 (free) is after v456; or of the next 256.
    for (above, allocated, end, bank) in [(200, 464, 459, 1), (0, 256, 262, 1), (256, 512, 518, 2), (512, 768, 774, 3)]
    {
        let (target, bytes, kernel) = naming(above, allocated);
        for mode in [CounterMode::Global, CounterMode::Lds] {
            let planned = plan(target, &bytes, &kernel, mode).expect("planned");
            assert_eq!(planned.vector_registers, map::VectorSource::Unused);
            let now = planned.descriptor.allocated_vgprs(target);
            assert!((end..end + 16).contains(&now.max(end)) && now >= allocated, "{above}: {now}");
            assert!(planned.metadata.vgpr_count >= end.into(), "{above}: {}", planned.metadata.vgpr_count);
            // All four places have the same bits, and the original its own afterwards: none.
            let own = bank * 0x55;
            let (enter, leave) = (Value::Imm(own), Value::Imm(own << 8));
            let ends = |sets: &[Value]| (sets.first().copied(), sets.last().copied());
            for (_, snippet) in &planned.edits.inserts {
                assert_eq!(high_bits(snippet), [enter, leave]);
            }
            assert_eq!(ends(&high_bits(&planned.edits.prologue)), (Some(enter), Some(leave)));
        }
    }
}

#[test]
fn without_a_register_that_no_code_names_low_ones_are_spilled() {
    // What records accesses reads registers of the original, which may be among any 256: it has none above v255.
    use map::VectorSource::{Lanes, Scratch};
    for (above, allocated, probe, spilled) in [(768, 1024, probe::BRANCHES, Lanes), (0, 256, probe::MEMORY, Scratch)] {
        let (target, bytes, kernel) = naming(above, allocated);
        let planned = plan_probe(probe, target, &bytes, &kernel, CounterMode::Global).expect("planned");
        assert_eq!(planned.vector_registers, spilled, "{above}");
        assert_eq!(planned.descriptor.allocated_vgprs(target), allocated);
        for (_, snippet) in &planned.edits.inserts {
            assert!(high_bits(snippet).is_empty(), "{above}");
        }
    }
}
