//! Writing snippets: instructions by mnemonic, labels and branches.

use crate::hazard_mitigation::{self, Place};
use wavetap_amdgpu::{
    Counter, EventHazards, Inst, Modifiers, Opcode, Reg, Target, Value, WaitCount, WaitStates, has_operation, scalar,
};
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::edit::{Item, Label, Snippet};
use wavetap_base::error::{Error, Result};
use wavetap_profile::record::COUNTER;

/// Most snippets have no more items than this: growing moves them, and they are large.
const USUAL_ITEMS: usize = 32;

/// A snippet under construction. Mnemonics are those of the library ([`wavetap_amdgpu::operation`]); the target's own
/// spelling is looked up.
#[derive(Debug)]
pub struct Asm {
    target: Target,
    place: Place,
    items: Vec<Item>,
    labels: u32,
}

/// A scalar register as an operand.
pub fn s(first: u16) -> Value {
    Value::Reg(Reg::scalar(first, 1))
}

/// A scalar register pair as an operand.
pub fn s2(first: u16) -> Value {
    Value::Reg(Reg::scalar(first, 2))
}

/// A vector register as an operand.
pub fn v(first: u16) -> Value {
    Value::Reg(Reg::vector(first, 1))
}

/// A vector register pair as an operand.
pub fn v2(first: u16) -> Value {
    Value::Reg(Reg::vector(first, 2))
}

/// A constant: inline where it can be.
pub fn c(value: u32) -> Value {
    match value as i32 {
        small @ -16..=64 => Value::InlineInt(small as i8),
        _ => Value::Literal(value),
    }
}

/// M0 as an operand.
const M0: Value = Value::Reg(Reg::scalar(scalar::M0, 1));

/// Where global memory is accessed: at a base and an offset for each lane.
#[derive(Debug, Clone, Copy)]
pub struct Global {
    /// Pair: the base.
    pub base: u16,
    /// Vector register: the offsets.
    pub offsets: u16,
    /// Pair of vector registers for addresses, where the target needs them.
    pub flat: Option<u16>,
    /// Pair of scalar registers for the same purpose.
    pub scratch: u16,
}

impl Asm {
    pub(crate) fn new(target: Target, place: Place) -> Asm {
        Asm { target, place, items: Vec::with_capacity(USUAL_ITEMS), labels: 0 }
    }

    /// The target that is written for.
    pub fn target(&self) -> Target {
        self.target
    }

    pub(crate) fn finish(self) -> Result<Snippet> {
        Ok(Snippet { items: hazard_mitigation::settle(self.target, &self.place, self.items)? })
    }

    /// A mask of lanes as an operand: a pair of scalar registers, or the first of them in wave32.
    pub fn mask(&self, first: u16) -> Value {
        if self.target.wave_size() == 32 { s(first) } else { s2(first) }
    }

    /// EXEC as an operand.
    pub fn exec(&self) -> Value {
        self.mask(scalar::EXEC)
    }

    /// VCC as an operand.
    pub fn vcc(&self) -> Value {
        self.mask(scalar::VCC)
    }

    /// A scalar operation on masks of lanes: `s_and_b` is `s_and_b64`, or `s_and_b32` in wave32.
    pub fn masks(&mut self, operation: &str, operands: &[Value]) -> Result<()> {
        self.op(&format!("{operation}{}", self.target.wave_size()), operands)
    }

    /// Wait states, where the target leaves them to software.
    pub fn states(&mut self, count: i64) -> Result<()> {
        if self.target.wait_states() == WaitStates::None { Ok(()) } else { self.op("s_nop", &[Value::Imm(count - 1)]) }
    }

    /// Wait states between a vector instruction that writes a scalar register and another one that reads it, where that
    /// takes `count` instructions between them (gfx94x).
    pub fn states_of_scalars(&mut self, count: i64) -> Result<()> {
        match self.target.wait_states() {
            WaitStates::Gfx94x | WaitStates::Gfx950 => self.states(count),
            _ => Ok(()),
        }
    }

    /// Reads a lane of a vector register into a scalar register. On gfx94x that has to wait if the instruction before
    /// has written the vector register.
    pub fn read_lane(&mut self, to: u16, from: u16, lane: u32) -> Result<()> {
        let before =
            self.items.iter().rev().find(|item| !matches!(item, Item::Label(_) | Item::Aside | Item::AsideEnd));
        let written: RegSet = if let Some(Item::Inst(inst)) = before { inst.writes().collect() } else { RegSet::EMPTY };
        if written.overlaps(Reg::vector(from, 1)) {
            self.states(1)?;
        }
        self.op("v_readlane_b32", &[s(to), v(from), c(lane)])
    }

    /// An instruction without modifiers.
    pub fn op(&mut self, mnemonic: &str, operands: &[Value]) -> Result<()> {
        self.with(mnemonic, operands, |_| ())
    }

    fn with(&mut self, mnemonic: &str, operands: &[Value], modify: impl FnOnce(&mut Modifiers)) -> Result<()> {
        let mut inst = wavetap_amdgpu::build(self.target, mnemonic, operands)?;
        modify(&mut inst.modifiers);
        if !self.target.has_cache_scope() {
            inst.modifiers.scope = 0;
        }
        self.items.push(Item::Inst(inst));
        Ok(())
    }

    /// An instruction as it is.
    pub(crate) fn copy(&mut self, inst: Inst) {
        self.items.push(Item::Inst(inst));
    }

    /// A label for [`Asm::branch`], to be bound once.
    pub fn new_label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// The label is here.
    pub fn bind(&mut self, label: Label) {
        self.items.push(Item::Label(label));
    }

    /// A branch forward to a label, by an opcode without operands: `s_branch`, `s_cbranch_scc1`.
    pub fn branch(&mut self, opcode: Opcode, label: Label) {
        self.items.push(Item::Branch { opcode, label });
    }

    /// What follows, up to [`Asm::aside_end`], is seldom executed: branches alone lead there, to labels in it. What
    /// comes before goes on after its end.
    pub fn aside(&mut self) {
        self.items.push(Item::Aside);
    }

    /// Ends what [`Asm::aside`] begins; it goes on here, too.
    pub fn aside_end(&mut self) {
        self.items.push(Item::AsideEnd);
    }

    /// Loads an address of the rewritten object into a pair. Destroys SCC.
    pub(crate) fn address(&mut self, pair: u16, address: u64) {
        self.items.push(Item::Address { pair: Reg::scalar(pair, 2), address, settle: false });
    }

    /// Waits until everything that counts in one of these counters is complete; counters that the target does not have
    /// are left out.
    fn wait(&mut self, counters: &[Counter]) -> Result<()> {
        let there = counters.iter().filter(|counter| self.target.largest_wait(**counter).is_some());
        let counts = there.fold(WaitCount::default(), |counts, counter| counts.with(*counter, 0));
        let waits = wavetap_amdgpu::waits_for(self.target, counts)
            .ok_or_else(|| Error::internal(format!("no wait for {counters:?}")))?;
        waits.into_iter().try_for_each(|(mnemonic, bits)| self.wait_instruction(mnemonic, bits))
    }

    fn wait_instruction(&mut self, mnemonic: &str, bits: u16) -> Result<()> {
        self.items.push(Item::Inst(hazard_mitigation::wait(self.target, mnemonic, bits)?));
        Ok(())
    }

    /// Waits for scalar loads.
    pub fn wait_scalar_loads(&mut self) -> Result<()> {
        if self.target.largest_wait(Counter::Km).is_some() {
            self.wait(&[Counter::Km])
        } else {
            self.wait(&[Counter::Lgkm])
        }
    }

    /// Waits for LDS.
    pub fn wait_lds(&mut self) -> Result<()> {
        if self.target.largest_wait(Counter::Ds).is_some() {
            self.wait(&[Counter::Ds])
        } else {
            self.wait(&[Counter::Lgkm])
        }
    }

    /// Waits for everything that writes registers when it arrives.
    pub fn wait_all_loads(&mut self) -> Result<()> {
        let all = [
            Counter::Vm,
            Counter::Lgkm,
            Counter::Load,
            Counter::Sample,
            Counter::Bvh,
            Counter::Ds,
            Counter::Km,
            Counter::Exp,
        ];
        // From gfx12 on the first two are there in name alone.
        let first = if self.target.largest_wait(Counter::Load).is_some() { 2 } else { 0 };
        self.wait(&all[first..])
    }

    /// Waits for global memory instructions that return something.
    pub fn wait_global_results(&mut self) -> Result<()> {
        match self.target.largest_wait(Counter::Load) {
            Some(_) => self.wait(&[Counter::Load]),
            None if self.has_global() => self.wait(&[Counter::Vm]),
            None => self.wait(&[Counter::Vm, Counter::Lgkm]),
        }
    }

    /// Waits for loads from vector memory; `flat`: for such as count among LDS operations, too.
    pub fn wait_vector_loads(&mut self, flat: bool) -> Result<()> {
        let counters = match self.target.largest_wait(Counter::Load) {
            Some(_) => [Counter::Load, Counter::Ds],
            None => [Counter::Vm, Counter::Lgkm],
        };
        self.wait(&counters[..if flat { 2 } else { 1 }])
    }

    /// Waits until the host sees what was stored to its memory. A release to the system, as compilers write it
    /// (docs/reference/memory-scopes.md).
    pub(crate) fn release_to_host(&mut self) -> Result<()> {
        if has_operation(self.target, Opcode::GLOBAL_WB) {
            self.with("global_wb", &[], |modifiers| modifiers.scope = SCOPE_SYSTEM)?;
        } else if has_operation(self.target, Opcode::BUFFER_WBL2) {
            // From gfx940 on the bits say to which scope; gfx90a has one.
            let has_scopes = has_operation(self.target, Opcode::BUFFER_INV);
            self.with("buffer_wbl2", &[], |modifiers| (modifiers.glc, modifiers.scc) = (has_scopes, has_scopes))?;
        }
        let counters = [Counter::Store, Counter::Vs, Counter::Vm];
        let first = counters.into_iter().find(|counter| self.target.largest_wait(*counter).is_some());
        self.wait(first.as_slice())
    }

    /// Waits for vector registers of original code that were written, where EXEC is written next: original code that
    /// used one of them after that together with one that it has just written would read a stale value.
    pub(crate) fn wait_before_exec(&mut self) -> Result<()> {
        let is_stale = self.target.event_hazards().contains(EventHazards::VALU_PARTIAL_FORWARD);
        if is_stale && self.target.wave_size() == 64 {
            self.op("s_waitcnt_depctr", &[Value::Imm(hazard_mitigation::VECTOR_REGISTERS.bits().into())])?;
        }
        Ok(())
    }

    /// Waits for stores where a branch between original memory instructions has to be preceded or followed by that:
    /// then it is not waited for later.
    pub(crate) fn wait_before_branch(&mut self) -> Result<()> {
        if self.target.event_hazards().contains(EventHazards::LDS_BRANCH_VMEM) {
            self.wait(&[Counter::Vs])?;
        }
        Ok(())
    }

    /// Whether the target can address memory by a scalar base and an offset for each lane. Those that cannot have FLAT
    /// instructions alone.
    pub fn has_global(&self) -> bool {
        has_operation(self.target, Opcode::GLOBAL_ATOMIC_ADD)
    }

    /// A scalar load of `width` registers: `s_load_dword` with its suffix.
    pub fn scalar_load(&mut self, mnemonic: &str, first: u16, width: u8, base: u16, offset: u32) -> Result<()> {
        let destination = Value::Reg(Reg::scalar(first, width));
        // Without an offset this is, from gfx10 to gfx11, the form that adds a register: none.
        self.op(mnemonic, &[destination, s2(base), Value::Imm(offset.into())]).or_else(|error| match offset {
            0 => self.op(mnemonic, &[destination, s2(base), Value::Reg(Reg::scalar(scalar::NULL, 1))]),
            _ => Err(error),
        })
    }

    /// The largest offset of [`Asm::global`] beside a base.
    pub(crate) fn largest_global_offset(&self) -> u32 {
        // Without global memory instructions the offset is added to the base, and may be anything.
        if self.has_global() { wavetap_amdgpu::largest_offset(self.target, "global_atomic_add_x2") } else { u32::MAX }
    }

    /// A store to memory, or an atomic without return: `store_dword`, `atomic_add`. Destroys SCC and the pair
    /// `g.scratch` where the target has no global memory instructions.
    pub fn global(&mut self, operation: &str, g: Global, data: Value, offset: u32) -> Result<()> {
        let device = operation.starts_with("atomic");
        if self.has_global() {
            return self.with(&format!("global_{operation}"), &[v(g.offsets), data, s2(g.base)], |modifiers| {
                modifiers.offset = offset as i32;
                modifiers.scope = scope(device);
            });
        }
        let address = self.flat_address(g, offset)?;
        self.op(&format!("flat_{operation}"), &[address, data])
    }

    /// A load of 64 bits from global memory, which is not at once. On targets that have such instructions.
    pub fn global_load_wide(&mut self, to: u16, offsets: u16, base: u16, offset: u32) -> Result<()> {
        self.global_load(to, 2, offsets, base, offset)
    }

    /// [`Asm::global_load_wide`] of two or four registers.
    pub(crate) fn global_load(&mut self, to: u16, count: u8, offsets: u16, base: u16, offset: u32) -> Result<()> {
        let operands = [Value::Reg(Reg::vector(to, count)), v(offsets), s2(base)];
        let bits = u32::from(count) * u32::BITS;
        self.op(&format!("global_load_dwordx{count}"), &operands)
            .or_else(|_| self.op(&format!("global_load_b{bits}"), &operands))?;
        if let Some(Item::Inst(load)) = self.items.last_mut() {
            load.modifiers.offset = offset as i32;
        }
        Ok(())
    }

    /// The number of the first lane of a mask.
    pub fn first_lane(&mut self, to: u16, mask: Value) -> Result<()> {
        self.masks("s_ff1_i32_b", &[s(to), mask]).or_else(|_| self.masks("s_ctz_i32_b", &[s(to), mask]))
    }

    /// A product of 32-bit factors, with their signs if `signed`, and a 64-bit summand: into a pair, whose registers
    /// are none of the sources'. The carry goes to a mask.
    pub fn multiply_add(&mut self, signed: bool, to: u16, carry: Value, factors: [Value; 2], sum: Value) -> Result<()> {
        let [a, b] = factors;
        let operands = [v2(to), carry, a, b, sum];
        match signed {
            true => self.op("v_mad_i64_i32", &operands).or_else(|_| self.op("v_mad_co_i64_i32", &operands)),
            false => self.op("v_mad_u64_u32", &operands).or_else(|_| self.op("v_mad_co_u64_u32", &operands)),
        }
    }

    /// The sum of a vector register and an operand, whose carry goes to a mask.
    pub(crate) fn add_with_carry(&mut self, to: u16, carry: Value, a: Value, b: u16) -> Result<()> {
        let operands = [v(to), carry, a, v(b)];
        self.op("v_add_co_u32_e64", &operands).or_else(|_| self.op("v_add_co_u32", &operands))?;
        self.states_of_scalars(2)
    }

    /// The sum of a vector register and the carry in a mask, which is destroyed.
    pub(crate) fn add_carry(&mut self, to: u16, carry: Value, from: u16) -> Result<()> {
        let operands = [v(to), carry, c(0), v(from), carry];
        self.op("v_addc_co_u32_e64", &operands).or_else(|_| self.op("v_add_co_ci_u32_e64", &operands))
    }

    /// An atomic that returns what was there, which is not at once. Destroys what [`Asm::global`] does.
    pub fn global_returning(&mut self, operation: &str, to: Value, g: Global, data: Value) -> Result<()> {
        let returns = |modifiers: &mut Modifiers, target: Target| match target.has_cache_scope() {
            true => (modifiers.th, modifiers.scope) = (TH_RETURNS, scope(true)),
            false => modifiers.glc = true,
        };
        let target = self.target;
        if self.has_global() {
            let operands = [to, v(g.offsets), data, s2(g.base)];
            return self.with(&format!("global_{operation}"), &operands, |modifiers| returns(modifiers, target));
        }
        let address = self.flat_address(g, 0)?;
        self.with(&format!("flat_{operation}"), &[to, address, data], |modifiers| returns(modifiers, target))
    }

    /// Each lane's address, in a pair of vector registers (gfx8).
    fn flat_address(&mut self, g: Global, offset: u32) -> Result<Value> {
        let (Some(flat), sum) = (g.flat, g.scratch) else { return Err(Error::internal("no registers for addresses")) };
        self.op("s_add_u32", &[s(sum), s(g.base), c(offset)])?;
        self.op("s_addc_u32", &[s(sum + 1), s(g.base + 1), c(0)])?;
        self.op("v_mov_b32_e32", &[v(flat + 1), s(sum + 1)])?;
        // From here on the pair is the carry.
        self.op("v_add_u32_e64", &[v(flat), s2(sum), s(sum), v(g.offsets)])?;
        self.op("v_addc_u32_e64", &[v(flat + 1), s2(sum), c(0), v(flat + 1), s2(sum)])?;
        Ok(v2(flat))
    }

    /// A store of a vector register to scratch memory or a load from there, at an offset and what `base` holds.
    pub(crate) fn scratch(&mut self, is_store: bool, register: u16, base: Option<u16>, offset: u32) -> Result<()> {
        let (mnemonic, operands) = scratch_operation(is_store, register, base);
        self.with(mnemonic, &operands, |modifiers| modifiers.offset = offset as i32)
    }

    /// A store of a vector register to the scratch memory that four scalar registers describe, or a load from there, at
    /// an offset of each lane's own. What `base` holds is added to that as bytes of the whole wave's.
    pub(crate) fn scratch_buffer(
        &mut self,
        is_store: bool,
        register: u16,
        resource: u16,
        base: Option<u16>,
        offset: u32,
    ) -> Result<()> {
        let mnemonic = if is_store { BUFFER_STORE } else { BUFFER_LOAD };
        let operands = [v(register), Value::Off, Value::Reg(Reg::scalar(resource, 4)), base.map_or(c(0), s)];
        self.with(mnemonic, &operands, |modifiers| modifiers.offset = offset as i32)
    }

    /// An LDS store or atomic without return.
    pub(crate) fn lds(&mut self, mnemonic: &str, address: u16, data: Value, offset: u32) -> Result<()> {
        self.with(mnemonic, &[v(address), data], |modifiers| modifiers.offset = offset as i32)
    }

    /// An LDS load.
    pub(crate) fn lds_load(&mut self, mnemonic: &str, to: Value, address: u16, offset: u32) -> Result<()> {
        self.with(mnemonic, &[to, v(address)], |modifiers| modifiers.offset = offset as i32)
    }

    /// Lets LDS instructions reach all of LDS, where they ask M0 for that; the old M0 goes to `keep`.
    pub(crate) fn open_lds(&mut self, keep: Option<u16>) -> Result<()> {
        if !self.target.lds_limit_in_m0() {
            return Ok(());
        }
        if let Some(keep) = keep {
            self.op("s_mov_b32", &[s(keep), M0])?;
        }
        self.op("s_mov_b32", &[M0, Value::InlineInt(-1)])
    }

    /// Gives M0 back after [`Asm::open_lds`].
    pub(crate) fn close_lds(&mut self, kept: u16) -> Result<()> {
        if !self.target.lds_limit_in_m0() {
            return Ok(());
        }
        self.op("s_mov_b32", &[M0, s(kept)])?;
        self.states(1)
    }

    /// A scalar register as a source of vector instructions: `through` another one, where a target asks that none of
    /// the original code is.
    pub(crate) fn vector_source(&mut self, source: u16, through: Option<u16>) -> Result<Value> {
        let Some(through) = through else { return Ok(s(source)) };
        self.op("s_mov_b32", &[s(through), s(source)])?;
        Ok(s(through))
    }

    /// The offset of each lane's counter among the counters.
    pub(crate) fn lane_offsets(&mut self, into: u16) -> Result<()> {
        self.lane_number(into)?;
        self.op("v_lshlrev_b32_e32", &[v(into), c(COUNTER.ilog2()), v(into)])
    }

    /// Each lane's number, whatever EXEC was at entry.
    pub(crate) fn lane_number(&mut self, into: u16) -> Result<()> {
        self.op("v_mbcnt_lo_u32_b32", &[v(into), Value::InlineInt(-1), c(0)])?;
        if self.target.wave_size() == 32 {
            return Ok(());
        }
        self.op("v_mbcnt_hi_u32_b32", &[v(into), Value::InlineInt(-1), v(into)])
    }

    /// Sets EXEC to the lowest `lanes` lanes, at least 1.
    pub fn exec_lanes(&mut self, lanes: u32) -> Result<()> {
        let exec = self.exec();
        match lanes {
            _ if lanes >= self.target.wave_size() => self.masks("s_mov_b", &[exec, Value::InlineInt(-1)]),
            // A mask of up to six lanes is an inline constant; for more, `s_bfm` makes so many ones from bit 0 on.
            7.. => self.masks("s_bfm_b", &[exec, c(lanes), c(0)]),
            _ => self.masks("s_mov_b", &[exec, c((1 << lanes) - 1)]),
        }
    }
}

/// A store of a vector register to memory that scalar registers describe.
pub(crate) const BUFFER_STORE: &str = "buffer_store_dword";
/// A load from there.
const BUFFER_LOAD: &str = "buffer_load_dword";
/// `th` of an atomic that returns (gfx12).
const TH_RETURNS: u8 = 1;
/// `scope` of what the whole device sees (gfx12).
const SCOPE_DEVICE: u8 = 2;
/// `scope` of what the host sees, too (gfx12).
const SCOPE_SYSTEM: u8 = 3;

/// Atomics of different waves meet where all of the device sees them; what a wave stores for itself may stay nearer
/// until the dispatch ends.
fn scope(device: bool) -> u8 {
    if device { SCOPE_DEVICE } else { 0 }
}

/// A store of a vector register to scratch memory or a load from there, as it is written: with every `off`, as a load
/// with fewer operands is one to LDS.
pub(crate) fn scratch_operation(is_store: bool, register: u16, base: Option<u16>) -> (&'static str, [Value; 3]) {
    let base = base.map_or(Value::Off, s);
    match is_store {
        true => ("scratch_store_dword", [Value::Off, v(register), base]),
        false => ("scratch_load_dword", [v(register), Value::Off, base]),
    }
}
