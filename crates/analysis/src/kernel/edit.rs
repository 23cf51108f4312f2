//! What a probe inserts: a sorted list of edits, never bytes.
//!
//! A kernel is not changed after decoding. `instrument` describes insertions as [`Snippet`]s at [`ProgramPoint`]s;
//! `layout` places original instructions and snippets, resolves labels and addresses and makes bytes.

use wavetap_amdgpu::{Inst, Opcode, Reg};
use wavetap_base::entity::ProgramPoint;

/// A label within one snippet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Label(pub u32);

/// One element of inserted code.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "lists of items are short-lived and mostly instructions")]
pub enum Item {
    /// An instruction that needs no fixing.
    Inst(Inst),
    /// The place that branches of the same snippet name.
    Label(Label),
    /// A direct branch (`s_branch`, `s_cbranch_scc1`, …) to a label of the same snippet.
    Branch {
        /// Which branch it is.
        opcode: Opcode,
        /// Where to.
        label: Label,
    },
    /// What follows, up to [`Item::AsideEnd`], is seldom executed and is placed after all code of the body. What comes
    /// before it goes on after its end, and so does it; branches alone lead into it.
    Aside,
    /// See [`Item::Aside`].
    AsideEnd,
    /// Loads the virtual address `address` of the rewritten object into a scalar register pair: `s_getpc_b64`,
    /// `s_add_u32`, `s_addc_u32`. Destroys SCC.
    Address {
        /// The pair, even-aligned.
        pair: Reg,
        /// A virtual address in the rewritten code object.
        address: u64,
        /// Vector instructions may have read the pair, so that what is written to it has to be waited for before it is
        /// read, on a target where that is so.
        settle: bool,
    },
}

/// A run of inserted code, entered at its start and left at its end (or by `s_endpgm` in an item).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snippet {
    /// The elements in order.
    pub items: Vec<Item>,
}

/// All edits of one kernel.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Edits {
    /// Runs once at the kernel's entry and falls into the original first instruction. Branches back to the first
    /// instruction do not run it again.
    pub prologue: Snippet,
    /// Insertions, sorted by point; several at one point run in this order.
    pub inserts: Vec<(ProgramPoint, Snippet)>,
    /// Functions of which the kernel gets copies of its own: its calls, and theirs, go to the copies.
    pub functions: Vec<FunctionEdits>,
    /// A scalar register that no original code uses, free for pc-relative fix-ups where SCC is live.
    pub spare_scalar: Option<Reg>,
}

/// The edits of a function's copy.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FunctionEdits {
    /// The original's entry: its virtual address.
    pub entry: u64,
    /// Insertions, sorted by point; several at one point run in this order.
    pub inserts: Vec<(ProgramPoint, Snippet)>,
}
