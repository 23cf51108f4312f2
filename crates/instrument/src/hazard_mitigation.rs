//! Sequences of instructions that gfx10 and later do not wait out by themselves ([`EventHazards`]): a finished snippet
//! gets the waits that it needs, towards the original code before and after it, too.

use rustc_hash::FxHashMap;

use wavetap_amdgpu::{
    self, AluWait, Counter, Encoding, EventHazards as Rules, Flags, Inst, Memory, Opcode, Reg, RegFile, Target, Value,
    WaitCount, scalar, wait_count,
};
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::edit::{Item, Label};
use wavetap_base::error::{Error, Result};

/// Where a snippet is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    /// At a kernel's entry: nothing came before. The registers are those that no original code names.
    Entry(RegSet),
    /// In the middle of original code. The registers are those that no original code names.
    Middle(RegSet),
    /// Before the end of the wave. The registers are those that no original code names.
    End(RegSet),
}

/// An instruction that waits.
pub(crate) fn wait(target: Target, mnemonic: &str, bits: u16) -> Result<Inst> {
    let null = Value::Reg(Reg::scalar(scalar::NULL, 1));
    let count = Value::Imm(bits.into());
    // Those of gfx10 and gfx11 for one counter add a register to the count.
    wavetap_amdgpu::build(target, mnemonic, &[count])
        .or_else(|_| wavetap_amdgpu::build(target, mnemonic, &[null, count]))
}

/// `v_nop`s after which a vector instruction may use registers of any matrix or transcendental instruction before it
/// (LLVM, `checkWMMACoexecutionHazards`: the longest there is).
const COEXECUTED: u32 = 8;
/// `v_nop`s between a vector instruction and a write of MODE (LLVM, `fixSetRegMode`).
const BEFORE_MODE: u32 = 2;

/// A memory instruction's class for the rule of LDS, branches and vector memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Lds,
    Vector,
}

/// What may be pending at some place of a snippet.
#[derive(Debug, Clone, Copy, Default)]
struct Pending {
    /// Scalar registers that memory instructions may still read.
    memory_reads: RegSet,
    /// Original memory instructions may still read any register of theirs.
    original_memory_reads: bool,
    /// Scalar loads may still read any register.
    scalar_loads_read: bool,
    /// Scalar registers that scalar instructions wrote.
    scalar_writes: RegSet,
    /// Scalar registers that vector instructions wrote.
    vector_writes: RegSet,
    /// Original instructions may have written any register of theirs that is not up to date yet.
    original_writes: bool,
    /// The last memory instructions may have been of these classes: LDS, vector memory.
    last: [bool; 2],
    /// There may have been a branch since.
    branched: bool,
    /// There was a branch of the snippet's own after original memory instructions.
    own_branch: bool,
    /// What memory instructions may have to read again, as long as their addresses are not translated.
    untranslated: RegSet,
    /// Original memory instructions may have to read any register of theirs again.
    original_untranslated: bool,
    /// Vector instructions of original code may run beside the next ones.
    coexecuted: bool,
}

impl Pending {
    fn join(self, other: Pending) -> Pending {
        Pending {
            memory_reads: self.memory_reads.union(other.memory_reads),
            original_memory_reads: self.original_memory_reads || other.original_memory_reads,
            scalar_loads_read: self.scalar_loads_read || other.scalar_loads_read,
            scalar_writes: self.scalar_writes.union(other.scalar_writes),
            vector_writes: self.vector_writes.union(other.vector_writes),
            original_writes: self.original_writes || other.original_writes,
            last: [self.last[0] || other.last[0], self.last[1] || other.last[1]],
            branched: self.branched || other.branched,
            own_branch: self.own_branch || other.own_branch,
            untranslated: self.untranslated.union(other.untranslated),
            original_untranslated: self.original_untranslated || other.original_untranslated,
            coexecuted: self.coexecuted || other.coexecuted,
        }
    }
}

/// What waits for what, as a wait for ALU results.
const SCALAR_RESULTS: AluWait = AluWait { sa_sdst: Some(0), ..NOTHING };
const VECTOR_RESULTS: AluWait = AluWait { va_sdst: Some(0), va_vcc: Some(0), ..NOTHING };
const MEMORY_SOURCES: AluWait = AluWait { vm_vsrc: Some(0), ..NOTHING };
/// Vector registers that vector instructions write.
pub(crate) const VECTOR_REGISTERS: AluWait = AluWait { va_vdst: Some(0), ..NOTHING };
/// All that vector instructions read and write, and what memory instructions have yet to read.
pub(crate) const ALL_REGISTERS: AluWait =
    AluWait { va_vdst: Some(0), va_sdst: Some(0), vm_vsrc: Some(0), va_vcc: Some(0), sa_sdst: Some(0), ..NOTHING };
const NOTHING: AluWait =
    AluWait { va_vdst: None, va_sdst: None, va_ssrc: None, hold_cnt: None, vm_vsrc: None, va_vcc: None, sa_sdst: None };

fn both(a: AluWait, b: AluWait) -> AluWait {
    AluWait {
        va_sdst: a.va_sdst.or(b.va_sdst),
        vm_vsrc: a.vm_vsrc.or(b.vm_vsrc),
        va_vcc: a.va_vcc.or(b.va_vcc),
        sa_sdst: a.sa_sdst.or(b.sa_sdst),
        ..NOTHING
    }
}

struct Settler {
    target: Target,
    rules: Rules,
    own: RegSet,
    /// Original code comes before.
    middle: bool,
    items: Vec<Item>,
    pending: Pending,
    /// What is pending where code is left out that is placed elsewhere.
    before_aside: Pending,
    /// What branches bring to labels.
    at_labels: FxHashMap<Label, Pending>,
    /// Scalar registers of original code were changed.
    lent_writes: bool,
    /// Scalar registers of original code, or that are taken for the same, were read by vector instructions.
    lent_reads: bool,
}

/// The items with what is missing between them.
pub(crate) fn settle(target: Target, place: &Place, items: Vec<Item>) -> Result<Vec<Item>> {
    let mut rules = target.event_hazards();
    if target.wave_size() == 32 {
        rules.remove(Rules::VALU_MASK_WRITE);
    }
    let handled = Rules::VMEM_TO_SCALAR_WRITE
        | Rules::SMEM_TO_VECTOR_WRITE
        | Rules::VCMPX_EXEC_WAR
        | Rules::LDS_BRANCH_VMEM
        | Rules::VALU_MASK_WRITE
        | Rules::VALU_READ_SGPR;
    let replayed = target.largest_wait(Counter::X).is_some();
    if !(rules.intersects(handled) || replayed || target.has_coexecution()) || items.is_empty() {
        return Ok(items);
    }
    let (own, middle, goes_on) = match place {
        Place::Entry(own) => (*own, false, true),
        Place::Middle(own) => (*own, true, true),
        Place::End(own) => (*own, true, false),
    };
    let pending = Pending {
        original_memory_reads: middle,
        scalar_loads_read: middle,
        // Compilers before LLVM 20 end that with any use of a scalar register, and the hardware does not.
        original_writes: middle && rules.contains(Rules::VALU_MASK_WRITE),
        last: [middle; 2],
        branched: middle,
        original_untranslated: middle && replayed,
        coexecuted: middle && target.has_coexecution(),
        ..Pending::default()
    };
    let room = items.len() + 8;
    let mut settler = Settler {
        target,
        rules,
        own,
        middle,
        items: Vec::with_capacity(room),
        pending,
        before_aside: Pending::default(),
        at_labels: FxHashMap::default(),
        lent_writes: false,
        lent_reads: false,
    };
    if middle && rules.contains(Rules::VALU_READ_SGPR) {
        settler.wait(both(SCALAR_RESULTS, VECTOR_RESULTS))?;
    }
    for item in items {
        settler.item(item)?;
    }
    if goes_on {
        settler.leave(matches!(place, Place::Entry(_)))?;
    }
    Ok(settler.items)
}

impl Settler {
    fn item(&mut self, mut item: Item) -> Result<()> {
        match &mut item {
            Item::Inst(inst) => self.before(inst)?,
            Item::Label(label) => {
                if let Some(brought) = self.at_labels.remove(label) {
                    self.pending = self.pending.join(brought);
                }
            }
            Item::Branch { opcode, label } => {
                self.pending.branched = true;
                self.pending.own_branch |= self.pending.last != [false; 2];
                let there = self.at_labels.entry(*label).or_default();
                *there = there.join(self.pending);
                if *opcode == Opcode::S_BRANCH {
                    self.pending = Pending::default();
                }
            }
            Item::Aside => self.before_aside = std::mem::take(&mut self.pending),
            Item::AsideEnd => {
                self.pending.branched = true;
                self.pending.own_branch |= self.pending.last != [false; 2];
                self.pending = self.pending.join(std::mem::take(&mut self.before_aside));
            }
            Item::Address { pair, settle, .. } => {
                *settle = self.middle && self.rules.contains(Rules::VALU_READ_SGPR);
                self.overwrite([*pair].into_iter())?;
                self.scalar_write(*pair)?;
                self.pending.scalar_writes.insert(*pair);
                self.pending.scalar_loads_read = false;
            }
        }
        let after = if let Item::Inst(inst) = &item { Some(Effects::of(inst)) } else { None };
        if let Item::Inst(inst) = &item
            && wavetap_amdgpu::issued(inst).contains(Counter::X.flag())
        {
            inst.reads().for_each(|reg| self.pending.untranslated.insert(reg));
        }
        if let Item::Inst(inst) = &item
            && wait_count(self.target, inst).is_some_and(|counts| counts.get(Counter::Vs) == Some(0))
        {
            self.stores_are_complete();
        }
        self.items.push(item);
        if let Some(effects) = after {
            self.after(&effects);
        }
        Ok(())
    }

    /// A scalar instruction is about to write a register.
    fn scalar_write(&mut self, reg: Reg) -> Result<()> {
        let pending =
            self.pending.memory_reads.overlaps(reg) || (self.pending.original_memory_reads && !self.own.overlaps(reg));
        if self.rules.contains(Rules::VMEM_TO_SCALAR_WRITE) && pending {
            self.wait(MEMORY_SOURCES)?;
        }
        Ok(())
    }

    /// Registers are about to be overwritten that memory instructions may have to read again.
    fn overwrite(&mut self, mut registers: impl Iterator<Item = Reg>) -> Result<()> {
        let Pending { untranslated, original_untranslated, .. } = self.pending;
        if registers.any(|reg| reg != Reg::SCC && (original_untranslated || untranslated.overlaps(reg))) {
            self.wait_for(Counter::X)?;
            (self.pending.untranslated, self.pending.original_untranslated) = (RegSet::EMPTY, false);
        }
        Ok(())
    }

    /// A vector instruction that shares registers with original ones, of which some may run beside it.
    fn keep_apart(&mut self, inst: &Inst) -> Result<()> {
        let lent = |reg: &Reg| reg.file == RegFile::Vector && !self.own.overlaps(*reg);
        if self.pending.coexecuted
            && inst.variant.flags.contains(Flags::VALU)
            && inst.reads().chain(inst.writes()).any(|reg| lent(&reg))
        {
            for _ in 0..COEXECUTED {
                self.items.push(Item::Inst(wavetap_amdgpu::build(self.target, "v_nop", &[])?));
            }
            self.pending.coexecuted = false;
        }
        Ok(())
    }

    fn before(&mut self, inst: &Inst) -> Result<()> {
        self.overwrite(inst.writes())?;
        self.keep_apart(inst)?;
        let effects = Effects::of(inst);
        let mut needed = NOTHING;
        if self.rules.intersects(Rules::VALU_READ_SGPR | Rules::VALU_MASK_WRITE) && !effects.waits {
            if self.pending.scalar_writes.intersects(&effects.reads) {
                needed = both(needed, SCALAR_RESULTS);
            }
            if self.pending.original_writes && !effects.reads.is_subset(&self.own) {
                needed = both(needed, both(SCALAR_RESULTS, VECTOR_RESULTS));
            }
            // Registers of original code may have been masks of its vector instructions; then scalar ones have to wait,
            // too.
            let masks = self.middle && self.rules.contains(Rules::VALU_MASK_WRITE);
            let written = if masks && !effects.valu {
                self.pending.vector_writes.difference(self.own)
            } else {
                self.pending.vector_writes
            };
            if (effects.valu || masks) && written.intersects(&effects.reads) {
                needed = both(needed, VECTOR_RESULTS);
            }
        }
        if needed != NOTHING {
            self.wait(needed)?;
        }
        if effects.scalar {
            for reg in effects.writes.iter() {
                self.scalar_write(reg)?;
            }
        }
        if effects.valu
            && !effects.writes.is_empty()
            && self.pending.scalar_loads_read
            && self.rules.contains(Rules::SMEM_TO_VECTOR_WRITE)
        {
            let null = Value::Reg(Reg::scalar(scalar::NULL, 1));
            self.items.push(Item::Inst(wavetap_amdgpu::build(self.target, "s_mov_b32", &[null, Value::InlineInt(0)])?));
            self.pending.scalar_loads_read = false;
        }
        if let Some(class) = effects.class
            && self.rules.contains(Rules::LDS_BRANCH_VMEM)
            && self.pending.branched
            && self.pending.last[usize::from(class == Class::Lds)]
        {
            self.wait_stores()?;
        }
        Ok(())
    }

    fn after(&mut self, effects: &Effects) {
        let pending = &mut self.pending;
        if effects.valu {
            pending.memory_reads = RegSet::EMPTY;
            pending.original_memory_reads = false;
            pending.vector_writes = pending.vector_writes.union(effects.writes);
            pending.scalar_writes = pending.scalar_writes.difference(effects.writes);
        }
        if effects.salu {
            pending.scalar_loads_read = false;
            pending.scalar_writes = pending.scalar_writes.union(effects.writes.difference(exempt()));
            pending.vector_writes = pending.vector_writes.difference(effects.writes);
        }
        if effects.scalar_load {
            pending.scalar_loads_read = true;
        }
        if let Some(class) = effects.class {
            pending.memory_reads = pending.memory_reads.union(effects.reads);
            pending.memory_reads.insert(Reg::EXEC);
            pending.last = [class == Class::Lds, class == Class::Vector];
            pending.branched = false;
        }
        self.lent_reads |=
            effects.valu && self.rules.contains(Rules::VALU_READ_SGPR) && !pairs(&effects.reads).is_subset(&self.own);
        self.lent_writes |= !effects.writes.difference(exempt()).difference(self.own).is_empty();
    }

    /// What original code after the snippet must find done.
    fn leave(&mut self, entry: bool) -> Result<()> {
        if !self.pending.untranslated.is_empty() {
            self.wait_for(Counter::X)?;
        }
        if self.target.has_coexecution() {
            // MODE may be written next, for which vector instructions have to be this far away.
            for _ in 0..BEFORE_MODE {
                self.items.push(Item::Inst(wavetap_amdgpu::build(self.target, "v_nop", &[])?));
            }
        }
        let mut needed = NOTHING;
        if self.rules.contains(Rules::VCMPX_EXEC_WAR) {
            needed = both(needed, both(SCALAR_RESULTS, MEMORY_SOURCES));
        }
        if self.rules.intersects(Rules::VALU_READ_SGPR | Rules::VALU_MASK_WRITE) && (entry || self.lent_writes) {
            needed = both(needed, both(SCALAR_RESULTS, VECTOR_RESULTS));
        }
        if needed != NOTHING {
            self.wait(needed)?;
        }
        let has_memory = self.items.iter().any(|item| matches!(item, Item::Inst(inst) if class(inst).is_some()));
        if self.rules.contains(Rules::LDS_BRANCH_VMEM) && (has_memory || self.pending.own_branch) {
            self.wait_stores()?;
        }
        if self.rules.contains(Rules::VALU_READ_SGPR) && self.lent_reads {
            // What original code does without waiting is right as long as no vector instruction has read the register:
            // the hardware forgets which were after so many of these in a row.
            for _ in 0..self.target.forgetting_nops() {
                self.items.push(Item::Inst(wavetap_amdgpu::build(self.target, "ds_nop", &[])?));
            }
        }
        Ok(())
    }

    /// `s_waitcnt_depctr`, or `s_wait_alu`.
    fn wait(&mut self, what: AluWait) -> Result<()> {
        let mask = [Value::Imm(what.bits().into())];
        self.items.push(Item::Inst(wavetap_amdgpu::build(self.target, "s_waitcnt_depctr", &mask)?));
        if what.sa_sdst.is_some() {
            self.pending.scalar_writes = RegSet::EMPTY;
        }
        if what.va_sdst.is_some() {
            self.pending.vector_writes = RegSet::EMPTY;
        }
        self.pending.original_writes &= what.sa_sdst.is_none() || what.va_sdst.is_none();
        if what.vm_vsrc.is_some() {
            self.pending.memory_reads = RegSet::EMPTY;
            self.pending.original_memory_reads = false;
        }
        Ok(())
    }

    /// Waits until nothing is outstanding in a counter.
    fn wait_for(&mut self, counter: Counter) -> Result<()> {
        let counts = WaitCount::default().with(counter, 0);
        let waits = wavetap_amdgpu::waits_for(self.target, counts)
            .ok_or_else(|| Error::internal(format!("no wait for {}", counter.name())))?;
        for (mnemonic, bits) in waits {
            self.items.push(Item::Inst(wait(self.target, mnemonic, bits)?));
        }
        Ok(())
    }

    fn wait_stores(&mut self) -> Result<()> {
        self.wait_for(Counter::Vs)?;
        self.stores_are_complete();
        Ok(())
    }

    /// What came before is of no consequence to memory instructions after branches.
    fn stores_are_complete(&mut self) {
        (self.pending.last, self.pending.branched, self.pending.own_branch) = ([false; 2], false, false);
    }
}

/// Scalar registers with those that the hardware takes for the same: which ones vector instructions have read is known
/// by pairs.
fn pairs(registers: &RegSet) -> RegSet {
    registers.iter().flat_map(|reg| [reg.first & !1, reg.first | 1].map(|number| Reg::scalar(number, 1))).collect()
}

/// Registers that every reader finds up to date.
fn exempt() -> RegSet {
    [Reg::EXEC, Reg::SCC, Reg::scalar(scalar::M0, 1), Reg::scalar(scalar::NULL, 1)].into_iter().collect()
}

/// The class of a memory instruction.
fn class(inst: &Inst) -> Option<Class> {
    match inst.variant.memory {
        Memory::Lds => Some(Class::Lds),
        Memory::Global | Memory::Flat | Memory::Scratch | Memory::Buffer | Memory::Image => Some(Class::Vector),
        _ => None,
    }
}

/// What an instruction is, and its scalar registers.
struct Effects {
    valu: bool,
    /// A scalar instruction that computes.
    salu: bool,
    scalar_load: bool,
    /// Either of these: it writes its registers in the scalar unit.
    scalar: bool,
    waits: bool,
    class: Option<Class>,
    reads: RegSet,
    writes: RegSet,
}

impl Effects {
    fn of(inst: &Inst) -> Effects {
        let scalars = |reg: &Reg| reg.file == RegFile::Scalar && reg.first < scalar::SCC;
        let computes =
            matches!(inst.variant.encoding, Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopc | Encoding::Sopk);
        let waits = inst.variant.flags.contains(Flags::WAIT);
        let salu = computes && !waits;
        let scalar_load = inst.variant.encoding == Encoding::Smem;
        Effects {
            valu: inst.variant.flags.contains(Flags::VALU),
            salu,
            scalar_load,
            scalar: salu || scalar_load,
            waits,
            class: class(inst),
            reads: inst.reads().filter(scalars).collect::<RegSet>().difference(exempt()),
            writes: inst.writes().filter(scalars).collect(),
        }
    }
}
