//! Pieces of code for every target, also for those that the assembler here does not know.

use std::path::Path;

use wavetap::isa::{Target, Value, build, encode};

/// The line that has the words of an instruction with immediate operands.
pub fn words(target: &str, mnemonic: &str, immediates: &[i64]) -> String {
    let target = Target::by_name(target).expect("a target");
    let values: Vec<Value> = immediates.iter().map(|value| Value::Imm(*value)).collect();
    let bytes = encode(target, &build(target, mnemonic, &values).expect("the target has it")).expect("it is encoded");
    let words: Vec<String> =
        bytes.chunks(4).map(|b| format!("{:#x}", u32::from_le_bytes([b[0], b[1], b[2], b[3]]))).collect();
    format!(".long {}", words.join(", "))
}

/// A code object of one kernel, `it`, in wave32 where the target has it: `v0` is the work-item, `v1` 16 times that,
/// `s[4:5]` the input and `s[6:7]` the output; each work-item stores `v8..v11` at its place.
pub fn object(dir: &Path, target: &str, code: &str) -> Vec<u8> {
    let generation = Target::by_name(target).expect("a target").generation();
    let (scalar, all) = match generation {
        12.. => ("s_wait_kmcnt 0", "s_wait_loadcnt_dscnt 0\n s_wait_kmcnt 0"),
        _ => ("s_waitcnt lgkmcnt(0)", "s_waitcnt vmcnt(0) lgkmcnt(0)"),
    };
    let descriptor = match (target, generation) {
        (_, 10..) => ".amdhsa_wavefront_size32 1\n",
        ("gfx90a" | "gfx942" | "gfx950", _) => ".amdhsa_accum_offset 64\n",
        _ => "",
    };
    let text = format!(
        ".amdhsa_code_object_version 5\n.text\n.globl it\n.p2align 8\n.type it,@function\nit:\n s_load_dwordx4 s[4:7], \
            s[0:1], 0x0\n v_and_b32 v0, 0x3ff, v0\n v_lshlrev_b32 v1, 4, v0\n v_mov_b32 v8, 0\n v_mov_b32 v9, 0\n \
            v_mov_b32 v10, 0\n v_mov_b32 v11, 0\n {scalar}\n\
         {code}\n {all}\n s_nop 7\n global_store_dwordx4 v1, v[8:11], s[6:7]\n s_endpgm\n.rodata\n.p2align 6\n\
         .amdhsa_kernel it\n .amdhsa_user_sgpr_kernarg_segment_ptr 1\n .amdhsa_next_free_vgpr 64\n \
         .amdhsa_next_free_sgpr 40\n .amdhsa_group_segment_fixed_size 4096\n {descriptor}.end_amdhsa_kernel\n"
    );
    super::assemble_text(dir, target, &text)
}
