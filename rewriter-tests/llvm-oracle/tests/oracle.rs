//! The oracle itself: known instructions, garbage, crashes.

use llvm_oracle::{Answer, Disassembler, Oracle, Query};

#[test]
fn prints_known_instructions_of_several_targets() {
    let mut oracle = Oracle::new().unwrap();
    let mut text = |target: &str, word: u32| oracle.disassemble(target, &word.to_le_bytes());
    assert_eq!(text("gfx90a", 0xbf81_0000), Some((4, "s_endpgm".into())));
    assert_eq!(text("gfx90a", 0xbe80_0080), Some((4, "s_mov_b32 s0, 0".into())));
    assert_eq!(text("gfx1100", 0xbfb0_0000), Some((4, "s_endpgm".into())));
    assert_eq!(text("gfx90a", 0xbf8c_0f70), Some((4, "s_waitcnt vmcnt(0)".into())));
}

#[test]
fn rejects_what_is_no_instruction() {
    let mut oracle = Oracle::new().unwrap();
    assert_eq!(oracle.disassemble("gfx90a", &[]), None);
    assert_eq!(oracle.disassemble("gfx90a", &[0, 0, 0x81]), None);
    assert_eq!(oracle.disassemble("gfx90a", &[0xff; 4]), None);
    assert_eq!(
        oracle.disassemble("no-such,+thing", &[0, 0, 0x81, 0xbf]),
        None,
        "an unknown processor must not be taken for another"
    );
}

#[test]
fn survives_the_words_that_kill_llvm() {
    let mut oracle = Oracle::new().unwrap();
    // MFMA (VOP3P, first dword 0xd3c0….) with every low srcC: some have no printable register and LLVM executes a trap.
    let words: Vec<[u8; 8]> = (0u64..512)
        .map(|src2| (0xd3c0_0000u64 | (src2 << 50) | (0x1_00 << 32) | (0x1_00 << 41)).to_le_bytes())
        .collect();
    let queries: Vec<Query<'_>> = words.iter().map(|w| Query { target: "gfx90a", bytes: w, pc: 0 }).collect();
    let answers = oracle.ask_all(&queries);
    assert_eq!(answers.len(), queries.len());
    assert!(answers.contains(&Answer::Crash), "no word of the family kills this LLVM: the restart is untested");
    assert!(answers.iter().any(|a| matches!(a, Answer::Instruction { .. })));
    // The answers after a crash belong to their own questions.
    for (query, answer) in queries.iter().zip(&answers).skip(256).step_by(17) {
        assert_eq!(oracle.ask(*query), *answer);
    }
    assert_eq!(oracle.disassemble("gfx90a", &0xbf81_0000u32.to_le_bytes()), Some((4, "s_endpgm".into())));
}

#[test]
fn in_process_and_child_agree() {
    let mut oracle = Oracle::new().unwrap();
    let mut here = Disassembler::new("gfx906").unwrap();
    assert!(here.version().0 >= 22, "{:?}", here.version());
    for opcode in 0..64u32 {
        // VOP2 v1, v2, v3 of every opcode but the last two groups, which are VOPC and VOP1.
        let bytes = ((opcode << 25) | (1 << 17) | (3 << 9) | 0x102).to_le_bytes();
        assert_eq!(here.disassemble(&bytes, 0), oracle.disassemble("gfx906", &bytes), "opcode {opcode}");
    }
}
