//! Memory access and control flow of a row beside LLVM's description of the decoded instruction.

use std::collections::BTreeSet;

use wavetap::isa::{Branch, Flags, Inst};

/// What differs, if it is not one of the differences on purpose.
pub fn difference(inst: &Inst, llvm: &BTreeSet<&str>) -> Option<String> {
    let variant = inst.variant;
    let mut ours = BTreeSet::new();
    for (flag, word) in [(Flags::LOAD, "load"), (Flags::STORE, "store")] {
        if variant.flags.contains(flag) {
            ours.insert(word);
        }
    }
    ours.extend(flow(variant.branch));
    (ours != *llvm && !on_purpose(inst, llvm)).then(|| format!("{:?}: ours {ours:?}, LLVM {llvm:?}", variant.encoding))
}

/// LLVM's words for a kind of control flow.
fn flow(branch: Branch) -> &'static [&'static str] {
    match branch {
        Branch::None => &[],
        Branch::Jump | Branch::IndirectJump => &["barrier", "branch", "terminator"],
        Branch::Conditional(_) => &["branch", "terminator"],
        Branch::Call | Branch::IndirectCall => &["call"],
        Branch::End => &["barrier", "return", "terminator"],
        // LLVM never emits these and says nothing about them.
        Branch::Obsolete | Branch::Trap => &[],
    }
}

/// Differences with a reason.
fn on_purpose(inst: &Inst, llvm: &BTreeSet<&str>) -> bool {
    let name = inst.name();
    // Returns from the trap handler, which LLVM gives no flow.
    if name.starts_with("s_rfe") {
        return llvm.is_empty();
    }
    // Loops over halves of a wave, which no compiler emits; padding, which is never reached.
    if name.starts_with("s_subvector_loop") || name == "s_code_end" {
        return llvm.contains("terminator");
    }
    // LLVM has these touch memory to keep them in order with what does (or, for the queries of images, not); they move
    // no data between registers and memory. The two-address LDS operations of gfx8 and gfx9 read one place and write
    // another.
    const ORDERED: [&str; 9] = [
        "ds_gws_",
        "ds_ordered_count",
        "exp",
        "s_wakeup",
        "image_get_lod",
        "image_get_resinfo",
        "s_wait",
        "tensor_save",
        "tensor_stop",
    ];
    ORDERED.iter().any(|start| name.starts_with(start))
        || name.contains("_src2_")
        || name.contains("prefetch")
        || name.contains("_gs_reg_rtn")
}
