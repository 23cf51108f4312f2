//! Writing snippets: instructions by mnemonic, labels and branches.

use crate::error::Result;
use crate::isa::{self, Modifiers, Reg, Target, Value};
use crate::kernel::edit::{Item, Label, Snippet};

/// A snippet under construction.
#[derive(Debug)]
pub(super) struct Asm {
    target: Target,
    items: Vec<Item>,
    labels: u32,
}

/// A scalar register as an operand.
pub(super) fn s(first: u16) -> Value {
    Value::Reg(Reg::scalar(first, 1))
}

/// A scalar register pair as an operand.
pub(super) fn s2(first: u16) -> Value {
    Value::Reg(Reg::scalar(first, 2))
}

/// A vector register as an operand.
pub(super) fn v(first: u16) -> Value {
    Value::Reg(Reg::vector(first, 1))
}

/// A vector register pair as an operand.
pub(super) fn v2(first: u16) -> Value {
    Value::Reg(Reg::vector(first, 2))
}

/// EXEC as an operand.
pub(super) const EXEC: Value = Value::Reg(Reg::EXEC);
/// VCC as an operand.
pub(super) const VCC: Value = Value::Reg(Reg::VCC);

/// A constant: inline where it can be.
pub(super) fn c(value: u32) -> Value {
    match value as i32 {
        small @ -16..=64 => Value::InlineInt(small as i8),
        _ => Value::Literal(value),
    }
}

/// Largest offset of a global memory instruction (13 bits, signed).
pub(super) const MAX_GLOBAL_OFFSET: u32 = 4095;

/// The fields of `s_waitcnt`: a wait for vector memory alone (gfx9).
pub(super) const WAIT_VM: i64 = 0x0f70;
/// The fields of `s_waitcnt`: a wait for LDS and scalar memory alone (gfx9).
pub(super) const WAIT_LGKM: i64 = 0xc07f;

impl Asm {
    pub(super) fn new(target: Target) -> Asm {
        Asm { target, items: Vec::new(), labels: 0 }
    }

    pub(super) fn finish(self) -> Snippet {
        Snippet { items: self.items }
    }

    /// An instruction without modifiers.
    pub(super) fn op(&mut self, mnemonic: &str, operands: &[Value]) -> Result<()> {
        self.with(mnemonic, operands, |_| ())
    }

    fn with(&mut self, mnemonic: &str, operands: &[Value], modify: impl FnOnce(&mut Modifiers)) -> Result<()> {
        let mut inst = isa::build(self.target, mnemonic, operands)?;
        modify(&mut inst.modifiers);
        self.items.push(Item::Inst(inst));
        Ok(())
    }

    pub(super) fn new_label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    pub(super) fn bind(&mut self, label: Label) {
        self.items.push(Item::Label(label));
    }

    pub(super) fn branch(&mut self, mnemonic: &'static str, label: Label) {
        self.items.push(Item::Branch { mnemonic, label });
    }

    /// Loads an address of the rewritten object into a pair. Destroys SCC.
    pub(super) fn address(&mut self, pair: u16, address: u64) {
        self.items.push(Item::Address { pair: Reg::scalar(pair, 2), address });
    }

    /// `s_waitcnt`.
    pub(super) fn wait(&mut self, fields: i64) -> Result<()> {
        self.op("s_waitcnt", &[Value::Imm(fields)])
    }

    /// A scalar load of `width` registers: `s_load_dword` with its suffix.
    pub(super) fn scalar_load(&mut self, mnemonic: &str, first: u16, width: u8, base: u16, offset: u32) -> Result<()> {
        let destination = Value::Reg(Reg::scalar(first, width));
        self.op(mnemonic, &[destination, s2(base), Value::Imm(offset.into())])
    }

    /// A global store or atomic without return: 32-bit offsets in `address`, base in a scalar pair.
    pub(super) fn global(&mut self, mnemonic: &str, address: u16, data: Value, base: u16, offset: u32) -> Result<()> {
        self.with(mnemonic, &[v(address), data, s2(base)], |modifiers| modifiers.offset = offset as i32)
    }

    /// A global atomic that returns the old value.
    pub(super) fn global_returning(&mut self, mnemonic: &str, old: u16, address: u16, data: Value, base: u16, offset: u32) -> Result<()> {
        self.with(mnemonic, &[v(old), v(address), data, s2(base)], |modifiers| {
            modifiers.glc = true;
            modifiers.offset = offset as i32;
        })
    }

    /// An LDS store or atomic without return.
    pub(super) fn lds(&mut self, mnemonic: &str, address: u16, data: Value, offset: u32) -> Result<()> {
        self.with(mnemonic, &[v(address), data], |modifiers| modifiers.offset = offset as i32)
    }

    /// An LDS load.
    pub(super) fn lds_load(&mut self, mnemonic: &str, to: Value, address: u16, offset: u32) -> Result<()> {
        self.with(mnemonic, &[to, v(address)], |modifiers| modifiers.offset = offset as i32)
    }

    /// Sets EXEC to the lowest `lanes` lanes, 1 to 64.
    pub(super) fn exec_lanes(&mut self, lanes: u32) -> Result<()> {
        match lanes {
            64.. => self.op("s_mov_b64", &[EXEC, Value::InlineInt(-1)]),
            // A mask of up to six lanes is an inline constant; for more, `s_bfm_b64` makes so many ones from bit 0 on.
            7..=63 => self.op("s_bfm_b64", &[EXEC, c(lanes), c(0)]),
            _ => self.op("s_mov_b64", &[EXEC, c((1 << lanes) - 1)]),
        }
    }
}
