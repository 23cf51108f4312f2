//! What the new code's registers hold in terms of the original's: the state of the preservation check.
//!
//! Two machines run in step: the original and the rewritten one. At corresponding instructions each scalar register of
//! the rewritten machine holds the value that some register of the original machine has now, or a constant, or SCC in
//! the form of a flag, or something else.
//!
//! The lattice of a scalar register is flat: any two different words join to `Word::Other`, which names the place of
//! the join, and which no join leaves. Of vector registers the state has what may differ (a set, joined by union) and
//! what is known of lanes, constants and spill slots (maps, of which a join keeps what both sides have). `undefined`
//! has the registers that the original has set on no path, joined by intersection. Such a register may hold anything in
//! the original, so also what the rewritten machine holds: where only one side of a join has it, it is *adopted* there
//! first, so that this choice is made once for each path and never contradicts an earlier one.

use std::ops::Range;

use crate::values::small_map::SmallMap;
use wavetap_amdgpu::{Inst, Reg, RegFile, Role, Value, scalar};
use wavetap_analysis::dataflow::RegSet;
use wavetap_object::code_object::KernargPreload;

/// The content of a 32-bit scalar register, or of SCC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    /// What this scalar register of the original machine holds (by operand code; SCC by its code).
    Original(u16),
    /// Of what this scalar register of the original machine holds (EXEC alone), some bits and no others.
    Subset(u16),
    /// Of EXEC: what it was at the last original instruction where it may be a subset ([`State::dropping`]).
    Executed,
    /// Of EXEC: the lanes of the original's that did not execute that instruction.
    Dropped,
    /// A constant.
    Constant(u32),
    /// Not known, but no bits other than these are set.
    Within(u32),
    /// Not zero exactly if SCC of the original machine is set: then this constant.
    Flag(u32),
    /// What this lane of a vector register of the original machine holds.
    Lane(u16, u8),
    /// What the hardware gives a wave to find its scratch memory, where the original did not ask for it: the halves of
    /// an address, and an offset from there; then four dwords that describe the scratch memory of all waves.
    Given(u8),
    /// What FLAT_SCRATCH has to be, so that it leads to the wave's scratch memory: its halves, and the carry from one
    /// to the other.
    FlatScratch(u8),
    /// What four registers have to be, so that they describe the wave's scratch memory, and the carry from the first to
    /// the second.
    Resource(u8),
    /// Anything; the new instruction that wrote it, by index.
    Other(u32),
}

/// What inserted code does to FLAT_SCRATCH before the first original instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlatScratch {
    /// What the hardware puts into registers at entry: both halves of the address of scratch memory, and the wave's
    /// offset from there.
    pub(crate) given: [Word; 3],
    /// What was put into FLAT_SCRATCH.
    pub(crate) set: [Word; 2],
}

impl FlatScratch {
    /// Whether it leads to the wave's scratch memory.
    pub(crate) fn is_set(&self) -> bool {
        self.set == [Word::FlatScratch(0), Word::FlatScratch(1)]
    }
}

/// Of a vector register that is written in more lanes than so many, all are taken for written.
const MOST_LANES: u32 = 8;
/// Scalar registers with operand codes below this are tracked.
const SCALARS: usize = 128;

/// The scalar registers' words; most hold what the original's do.
#[derive(Debug, Clone)]
struct Words {
    words: [Word; SCALARS],
    /// By code: those that hold something else than the original's register of the same number.
    changed: u128,
    /// Registers of the original whose value another register may hold: more than do.
    copied: u128,
    /// Whether a register may hold SCC, as it is or in the form of a flag.
    flags: bool,
    /// Whether a register may hold a lane's word.
    lanes: bool,
}

impl Words {
    fn same() -> Words {
        Words {
            words: std::array::from_fn(|code| Word::Original(code as u16)),
            changed: 0,
            copied: 0,
            flags: false,
            lanes: false,
        }
    }

    fn get(&self, code: usize) -> Option<Word> {
        self.words.get(code).copied()
    }

    fn set(&mut self, code: usize, word: Word) {
        let Some(place) = self.words.get_mut(code) else { return };
        *place = word;
        let bit = 1u128 << code;
        if word == Word::Original(code as u16) {
            self.changed &= !bit
        } else {
            self.changed |= bit
        }
        match word {
            Word::Original(scalar::SCC) | Word::Flag(_) => self.flags = true,
            Word::Original(of) | Word::Subset(of) if usize::from(of) != code && usize::from(of) < SCALARS => {
                self.copied |= 1 << of;
            }
            Word::Lane(..) => self.lanes = true,
            _ => {}
        }
    }

    /// Those that differ between the two.
    fn different(&self, other: &Words) -> u128 {
        codes(self.changed | other.changed)
            .filter(|code| self.words[*code] != other.words[*code])
            .fold(0, |all, code| all | 1 << code)
    }

    /// The original machine wrote a scalar register: those that held its old value hold something else now.
    fn forget_original(&mut self, code: u16, at: u32) {
        let holds = match code {
            scalar::SCC => std::mem::take(&mut self.flags),
            _ if usize::from(code) >= SCALARS => true,
            // A register that holds what the original's of the same number does, does so still.
            _ => {
                let holds = self.copied >> code & 1 != 0;
                self.copied &= !(1 << code);
                holds
            }
        };
        if holds {
            self.for_each_changed(|word| stale(word, code, at));
        }
    }

    /// Changes those that hold something else than the original's registers.
    fn for_each_changed(&mut self, mut change: impl FnMut(&mut Word)) {
        for code in codes(self.changed) {
            let mut word = self.words[code];
            change(&mut word);
            self.set(code, word);
        }
    }
}

/// A scalar register of the original was written: a word that is its old value is something else now, and so is a flag
/// that says what SCC was.
fn stale(word: &mut Word, code: u16, at: u32) {
    if *word == Word::Original(code)
        || *word == Word::Subset(code)
        || (code == scalar::SCC && matches!(word, Word::Flag(_)))
    {
        *word = Word::Other(at);
    }
}

/// The mask of codes in a range.
fn mask(codes: Range<usize>) -> u128 {
    if codes.is_empty() { 0 } else { u128::MAX >> (SCALARS - codes.len()) << codes.start }
}

/// The codes in a mask.
fn codes(mut mask: u128) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let code = mask.trailing_zeros() as usize;
        mask &= mask.checked_sub(1)?;
        Some(code)
    })
}

/// A place for all lanes of a vector register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SpillSlot {
    /// An AGPR.
    Accum(u16),
    /// Each lane's scratch memory at this offset.
    Scratch(i64),
}

/// The relation between the two machines.
#[derive(Debug, Clone)]
pub(crate) struct State {
    words: Words,
    scc: Word,
    mode: Word,
    /// Vector registers whose value may differ from the original's in some lane.
    vectors: RegSet,
    /// Words that inserted code put into single lanes: vector register, lane.
    lanes: SmallMap<(u16, u32), Word>,
    /// Single lanes that may differ from the original's.
    changed_lanes: SmallMap<(u16, u32), ()>,
    /// Where inserted code put whole vector registers of the original's, which are still what they were then.
    spill_slots: SmallMap<SpillSlot, u16>,
    /// v0 holds more work-item ids than the original's; these bits are the original's.
    pub(crate) packed_ids: Option<u32>,
    /// Constants that the *original* machine's registers hold (a program counter), by code.
    constants: SmallMap<usize, u32>,
    /// Registers that the original has not set yet: it cannot depend on their values.
    pub(crate) undefined: RegSet,
    /// At a kernel's entry, where software sets FLAT_SCRATCH.
    pub(crate) flat_scratch: Option<FlatScratch>,
    /// At a kernel's entry, where inserted code accesses scratch memory by registers that describe it: what describes
    /// that of all waves, and the wave's offset.
    pub(crate) resource: Option<[Word; 5]>,
    /// At a kernel's entry, arguments that inserted code has to load, and the original's first register of the pointer
    /// to them.
    pub(crate) preloaded: Option<(KernargPreload, u16)>,
    /// The original instruction before, if lanes may not have executed it: nothing original came after it.
    pub(crate) dropping: Option<u32>,
}

impl State {
    /// All registers hold what the original's hold.
    pub(crate) fn same() -> State {
        State {
            words: Words::same(),
            scc: Word::Original(scalar::SCC),
            mode: Word::Original(scalar::MODE),
            vectors: RegSet::EMPTY,
            lanes: SmallMap::new(),
            changed_lanes: SmallMap::new(),
            spill_slots: SmallMap::new(),
            packed_ids: None,
            constants: SmallMap::new(),
            undefined: RegSet::EMPTY,
            flat_scratch: None,
            resource: None,
            preloaded: None,
            dropping: None,
        }
    }

    /// Keeps what both agree on; tells whether that changed `self`.
    pub(crate) fn join(&mut self, other: &State, at: u32) -> bool {
        if self.undefined == other.undefined {
            return self.merge(other, at);
        }
        // A register that the original has not set on one path may there as well hold what the rewritten machine has.
        // Where both hold the same there is nothing to choose: what inserted code put there stays known.
        let different = self.words.different(&other.words);
        let chosen = |mut unset: RegSet| {
            unset.keep_scalar_codes(different);
            unset
        };
        let mine_only = self.undefined.difference(other.undefined);
        let (mine, theirs) = (chosen(mine_only), chosen(other.undefined.difference(self.undefined)));
        if self.may_differ(&mine) {
            self.adopt(&mine);
        }
        let changed = if other.may_differ(&theirs) {
            let mut other = other.clone();
            other.adopt(&theirs);
            self.merge(&other, at)
        } else {
            self.merge(other, at)
        };
        // What is set on one path only is no longer unset.
        changed || !mine_only.is_empty()
    }

    /// Keeps what both agree on; tells whether that changed `self`.
    fn merge(&mut self, other: &State, at: u32) -> bool {
        let mut changed = false;
        let mut merge = |mine: &mut Word, theirs: Word| {
            let merged = match (*mine, theirs) {
                (mine, theirs) if mine == theirs => mine,
                (mine @ Word::Other(_), _) => mine,
                (_, Word::Other(_)) => theirs,
                (Word::Original(one), Word::Subset(other)) | (Word::Subset(one), Word::Original(other))
                    if one == other =>
                {
                    Word::Subset(one)
                }
                _ => Word::Other(at),
            };
            changed |= merged != *mine;
            *mine = merged;
        };
        for code in codes(self.words.different(&other.words)) {
            // A constant that the original's register is known to hold on one path is that register on the other.
            let original = Word::Original(code as u16);
            let mut word = self.words.words[code];
            if self.resolve(code) == original && other.resolve(code) == original {
                merge(&mut word, Word::Other(at));
                word = original;
            } else {
                merge(&mut word, other.words.words[code]);
            }
            self.words.set(code, word);
        }
        merge(&mut self.scc, other.scc);
        merge(&mut self.mode, other.mode);
        let flat_scratch = match (self.flat_scratch, other.flat_scratch) {
            (Some(mut mine), Some(theirs)) => {
                mine.set.iter_mut().zip(theirs.set).for_each(|(mine, theirs)| merge(mine, theirs));
                Some(mine)
            }
            // Where it was looked at already there is nothing to say of it.
            (mine, theirs) => mine.or(theirs),
        };
        changed |= self.flat_scratch != flat_scratch;
        self.flat_scratch = flat_scratch;
        if other.resource.is_none() {
            changed |= self.resource.take().is_some();
        }
        if other.preloaded != self.preloaded {
            changed |= self.preloaded.take().is_some();
        }
        if other.dropping != self.dropping {
            changed |= self.dropping.take().is_some();
        }
        changed |= self.constants.keep_common(&other.constants);
        changed |= self.changed_lanes.add_all(&other.changed_lanes);
        changed |= self.lanes.keep_common(&other.lanes);
        changed |= self.spill_slots.keep_common(&other.spill_slots);
        if self.packed_ids != other.packed_ids {
            let v0 = Reg::vector(0, 1);
            changed |= self.packed_ids.take().is_some() || !self.vectors.contains(v0);
            self.vectors.insert(v0);
        }
        if !other.vectors.is_subset(&self.vectors) {
            self.vectors.add_all(&other.vectors);
            changed = true;
        }
        if !self.undefined.is_subset(&other.undefined) {
            self.undefined.keep_all(&other.undefined);
            changed = true;
        }
        changed
    }

    /// Declares that the original holds what the rewritten machine holds, in registers that the original has not set.
    pub(crate) fn adopt(&mut self, unset: &RegSet) {
        self.undefined.remove_all(unset);
        self.vectors.remove_all(unset);
        self.changed_lanes.retain(|(vector, _), ()| !unset.contains(Reg::vector(vector, 1)));
        if unset.contains(Reg::vector(0, 1)) {
            self.packed_ids = None;
        }
        for code in codes(unset.scalar_codes() & self.words.changed) {
            self.set(Reg::scalar(code as u16, 1), 0, Word::Original(code as u16));
        }
        for special in [Reg::SCC, Reg::scalar(scalar::MODE, 1)] {
            if unset.contains(special) {
                self.set(special, 0, Word::Original(special.first));
            }
        }
    }

    /// A scalar register's word; a constant that the original's register of the same number holds is that register's
    /// value.
    fn resolve(&self, code: usize) -> Word {
        match self.words.words[code] {
            Word::Constant(value) if self.constants.get(code) == Some(value) => Word::Original(code as u16),
            word => word,
        }
    }

    /// A 32-bit part of a register. A constant stays one even if it is the original's value: arithmetic goes on from
    /// it.
    pub(crate) fn word(&self, reg: Reg, index: u8) -> Word {
        match (reg.file, reg.first) {
            (RegFile::Scalar, scalar::SCC) => self.scc,
            (RegFile::Scalar, scalar::MODE) => self.mode,
            (RegFile::Scalar, scalar::NULL) => Word::Constant(0),
            (RegFile::Scalar, first) => {
                self.words.get(usize::from(first) + usize::from(index)).unwrap_or(Word::Other(u32::MAX))
            }
            _ => Word::Other(u32::MAX),
        }
    }

    /// A 32-bit part of a source operand.
    pub(crate) fn source(&self, inst: &Inst, role: Role, index: u8) -> Word {
        match inst.operand(role).map(|operand| operand.value) {
            Some(Value::Reg(reg)) if index < reg.dwords => self.word(reg, index),
            Some(Value::Literal(literal)) => Word::Constant(if index == 0 { literal } else { 0 }),
            Some(Value::InlineInt(value)) => {
                Word::Constant(if index == 0 { i32::from(value) as u32 } else { (i32::from(value) >> 31) as u32 })
            }
            _ => Word::Other(u32::MAX),
        }
    }

    /// Sets a 32-bit part of a scalar register, SCC or MODE.
    pub(crate) fn set(&mut self, reg: Reg, index: u8, word: Word) {
        match (reg.file, reg.first) {
            (RegFile::Scalar, scalar::SCC) => self.scc = word,
            (RegFile::Scalar, scalar::MODE) => self.mode = word,
            (RegFile::Scalar, scalar::NULL) => {}
            (RegFile::Scalar, first) => self.words.set(usize::from(first) + usize::from(index), word),
            _ => {}
        }
    }

    /// Some lanes of a vector register may differ from now on.
    pub(crate) fn clobber_vector(&mut self, reg: Reg) {
        self.vectors.insert(reg);
        self.spill_slots
            .retain(|slot, _| !matches!(slot, SpillSlot::Accum(number) if reg.overlaps(Reg::accum(number, 1))));
        self.lanes.retain(|(vector, _), _| !reg.overlaps(Reg::vector(vector, 1)));
        self.changed_lanes.retain(|(vector, _), ()| !reg.overlaps(Reg::vector(vector, 1)));
        if reg.overlaps(Reg::vector(0, 1)) {
            self.packed_ids = None;
        }
    }

    /// Whether EXEC has no other lanes than the original's.
    pub(crate) fn executes_subset(&self, wave_size: u32) -> bool {
        self.exec_words(wave_size)
            .zip(scalar::EXEC..)
            .all(|(word, code)| matches!(word, Word::Original(of) | Word::Subset(of) if of == code))
    }

    /// The original instruction is executed in the lanes of EXEC, which are a subset of the original's.
    pub(crate) fn execute_subset(&mut self, original: u32, wave_size: u32) {
        for half in 0..wave_size / 32 {
            if matches!(self.word(Reg::EXEC, half as u8), Word::Subset(_)) {
                self.set(Reg::EXEC, half as u8, Word::Executed);
            }
        }
        self.dropping = Some(original);
    }

    /// Whether the active lanes are those that did not execute [`State::dropping`].
    pub(crate) fn are_dropped(&self, wave_size: u32) -> bool {
        self.exec_words(wave_size).all(|word| word == Word::Dropped)
    }

    /// The words of EXEC in waves of this size.
    fn exec_words(&self, wave_size: u32) -> impl Iterator<Item = Word> + '_ {
        (0..wave_size / 32).map(|half| self.word(Reg::EXEC, half as u8))
    }

    /// Both machines write some lanes of a vector register: those that did not execute the instruction before.
    pub(crate) fn both_write_dropped(&mut self, reg: Reg, at: u32) {
        if self.follows_vectors() {
            self.both_write_vector(reg, at);
        }
    }

    /// Whether every lane is active, whatever the wave's size.
    pub(crate) fn all_lanes(&self, wave_size: u32) -> bool {
        (0..wave_size / 32).all(|half| self.word(Reg::EXEC, half as u8) == Word::Constant(u32::MAX))
    }

    /// Inserted code writes a vector register in those lanes that are active, and in no others.
    pub(crate) fn write_active_lanes(&mut self, reg: Reg, wave_size: u32, word: Word) {
        let lanes = self.active_lanes(wave_size).filter(|lanes| lanes.count_ones() <= MOST_LANES);
        match lanes {
            Some(lanes) if reg.file == RegFile::Vector && !self.vectors.overlaps(reg) => {
                for vector in reg.first..reg.first + u16::from(reg.dwords) {
                    (0..wave_size)
                        .filter(|lane| lanes >> lane & 1 != 0)
                        .for_each(|lane| self.write_lane(vector, lane, word));
                }
            }
            _ => self.clobber_vector(reg),
        }
    }

    /// The lanes of which all others are certainly not active, if something is known of EXEC.
    fn active_lanes(&self, wave_size: u32) -> Option<u64> {
        (0..wave_size / 32).try_fold(0, |lanes, half| match self.word(Reg::EXEC, half as u8) {
            Word::Constant(bits) | Word::Within(bits) => Some(lanes | u64::from(bits) << (32 * half)),
            _ => None,
        })
    }

    /// Inserted code copies a vector register to a slot: all lanes, or else some. What the original has not set may be
    /// anything, and so may its copy in the slot, until it is restored.
    pub(crate) fn spill(&mut self, register: u16, slot: SpillSlot, all_lanes: bool) {
        let whole = Reg::vector(register, 1);
        if all_lanes && self.undefined.contains(whole) {
            self.adopt(&RegSet::from_iter([whole]));
        }
        if all_lanes && self.differing(whole).is_none() {
            self.spill_slots.insert(slot, register);
        } else {
            self.spill_slots.remove(slot);
        }
    }

    /// Inserted code loads a vector register from a slot: all lanes, or else some.
    pub(crate) fn restore(&mut self, register: u16, slot: SpillSlot, all_lanes: bool) {
        let whole = Reg::vector(register, 1);
        self.clobber_vector(whole);
        if all_lanes && self.spill_slots.get(slot) == Some(register) {
            self.vectors.remove(whole);
        }
    }

    /// Inserted code writes to an unknown place of scratch memory.
    pub(crate) fn forget_scratch(&mut self) {
        self.spill_slots.retain(|slot, _| !matches!(slot, SpillSlot::Scratch(_)));
    }

    /// Inserted code puts a word into one lane of a vector register; the other lanes stay.
    pub(crate) fn write_lane(&mut self, vector: u16, lane: u32, word: Word) {
        if vector == 0 && self.packed_ids.is_some() {
            self.clobber_vector(Reg::vector(0, 1));
        }
        if word == Word::Lane(vector, lane as u8) {
            self.changed_lanes.remove((vector, lane));
        } else {
            self.changed_lanes.insert((vector, lane), ());
        }
        self.lanes.insert((vector, lane), word);
    }

    /// What is in a lane, if that is known.
    pub(crate) fn lane(&self, vector: u16, lane: u32) -> Option<Word> {
        let ids = vector == 0 && self.packed_ids.is_some();
        let changed =
            ids || self.vectors.contains(Reg::vector(vector, 1)) || self.changed_lanes.get((vector, lane)).is_some();
        self.lanes.get((vector, lane)).or_else(|| (!changed).then_some(Word::Lane(vector, lane as u8)))
    }

    /// v0 holds the original's work-item ids again.
    pub(crate) fn restore_ids(&mut self) {
        self.packed_ids = None;
    }

    /// Whether any of these may differ from the original's: quick, and false only if [`State::differing`] finds
    /// nothing.
    pub(crate) fn may_differ(&self, registers: &RegSet) -> bool {
        self.words.changed & registers.scalar_codes() != 0
            || self.scc != Word::Original(scalar::SCC) && registers.contains(Reg::SCC)
            || self.mode != Word::Original(scalar::MODE) && registers.contains(Reg::scalar(scalar::MODE, 1))
            || self.vectors.intersects(registers)
            || self.changed_lanes.keys().any(|(vector, _)| registers.contains(Reg::vector(vector, 1)))
            || self.packed_ids.is_some() && registers.contains(Reg::vector(0, 1))
    }

    /// [`State::may_differ`] of one register run.
    pub(crate) fn may_differ_in(&self, reg: Reg) -> bool {
        match (reg.file, reg.first) {
            (RegFile::Scalar, scalar::SCC) => self.scc != Word::Original(scalar::SCC),
            (RegFile::Scalar, scalar::MODE) => self.mode != Word::Original(scalar::MODE),
            (RegFile::Scalar, _) => self.words.changed & mask(RegSet::positions(reg)) != 0,
            (RegFile::Accum, _) => self.vectors.overlaps(reg),
            (RegFile::Vector, first) => {
                self.vectors.overlaps(reg)
                    || self.changed_lanes.has_within((first, 0), (first + u16::from(reg.dwords), 0))
                    || first == 0 && self.packed_ids.is_some()
            }
        }
    }

    /// The parts of a register that differ from the original's, with the new instruction that is to blame where one is
    /// known.
    pub(crate) fn differing(&self, reg: Reg) -> Option<(Reg, Option<u32>)> {
        for index in 0..reg.dwords {
            let part = Reg { first: reg.first + u16::from(index), dwords: 1, ..reg };
            match reg.file {
                RegFile::Scalar => {
                    let code = usize::from(part.first);
                    let word = if code < SCALARS { self.resolve(code) } else { self.word(part, 0) };
                    match word {
                        Word::Original(code) if code == part.first => {}
                        _ if !matches!(part.first, scalar::SCC | scalar::MODE) && code >= SCALARS => {}
                        Word::Other(at) => return Some((part, Some(at))),
                        _ => return Some((part, None)),
                    }
                }
                RegFile::Vector | RegFile::Accum => {
                    let ids = part == Reg::vector(0, 1) && self.packed_ids.is_some();
                    let lane = part.file == RegFile::Vector
                        && self.changed_lanes.has_within((part.first, 0), (part.first + 1, 0));
                    if self.vectors.overlaps(part) || lane || ids {
                        return Some((part, None));
                    }
                }
            }
        }
        None
    }

    /// The original machine wrote a scalar register: other registers that held its old value hold something else now.
    fn forget_original(&mut self, code: u16, at: u32) {
        self.words.forget_original(code, at);
        self.lanes.values_mut().for_each(|word| stale(word, code, at));
        stale(&mut self.scc, code, at);
        stale(&mut self.mode, code, at);
        self.constants.remove(usize::from(code));
    }

    /// An original instruction that both machines execute: what it writes as a whole is the same in both afterwards;
    /// what it may leave as it was (`kills` does not have it) is the same only if it was the same, or if the original
    /// had not set it: then whatever the rewritten machine has there may as well be what the original has.
    pub(crate) fn both_write(&mut self, writes: &RegSet, kills: &RegSet, at: u32) {
        if self.undefined.intersects(writes) {
            self.adopt(&self.undefined.intersection(*writes));
        }
        for reg in writes.scalars() {
            self.both_write_scalar(reg, kills.contains(reg), at);
        }
        if self.follows_vectors() {
            writes.vectors().iter().for_each(|reg| self.both_write_vector(reg, at));
        }
    }

    /// [`State::both_write`] for each of the runs that an instruction writes, if it writes all scalar registers as a
    /// whole, but for MODE. What becomes of one run does not depend on the others then, so nothing is lost by taking
    /// them one by one, and most instructions write one register or two.
    pub(crate) fn both_overwrite(&mut self, reg: Reg, at: u32) {
        if self.undefined.overlaps(reg) {
            if self.may_differ_in(reg) {
                self.adopt(&self.undefined.intersection(RegSet::from_iter([reg])));
            } else {
                self.undefined.remove(reg);
            }
        }
        if reg.file == RegFile::Scalar {
            for part in RegSet::positions(reg).map(RegSet::reg_at) {
                self.both_write_scalar(part, part.first != scalar::MODE, at);
            }
        } else if self.follows_vectors() {
            self.both_write_vector(reg, at);
        }
    }

    /// One of the scalar registers of [`State::both_write`].
    fn both_write_scalar(&mut self, reg: Reg, is_whole: bool, at: u32) {
        let same = is_whole || self.differing(reg).is_none();
        self.forget_original(reg.first, at);
        self.set(reg, 0, if same { Word::Original(reg.first) } else { Word::Other(at) });
    }

    /// Whether something is known of vector registers: what inserted code put into lanes, and where lanes, work-item
    /// ids and whole registers went.
    fn follows_vectors(&self) -> bool {
        self.packed_ids.is_some() || !self.lanes.is_empty() || self.words.lanes || !self.spill_slots.is_empty()
    }

    /// One of the runs of vector registers of [`State::both_write`].
    fn both_write_vector(&mut self, reg: Reg, at: u32) {
        let v0 = Reg::vector(0, 1);
        if reg.overlaps(v0) && self.packed_ids.take().is_some() {
            self.vectors.insert(v0);
        }
        if reg.file == RegFile::Vector && self.lanes.has_within((reg.first, 0), (reg.first + u16::from(reg.dwords), 0))
        {
            self.lanes.retain(|(vector, _), _| !reg.overlaps(Reg::vector(vector, 1)));
        }
        self.spill_slots.retain(|slot, register| {
            !reg.overlaps(Reg::vector(register, 1))
                && !matches!(slot, SpillSlot::Accum(number) if reg.overlaps(Reg::accum(number, 1)))
        });
        let stale = |word: &mut Word| {
            if matches!(*word, Word::Lane(vector, _) if reg.overlaps(Reg::vector(vector, 1))) {
                *word = Word::Other(at);
            }
        };
        if self.words.lanes {
            self.words.for_each_changed(stale);
        }
        self.lanes.values_mut().for_each(stale);
    }

    /// Nothing is known any more of scalar registers that no original code names, of lanes and of spill_slots. Where
    /// original code alone ran, what describes scratch memory is still there.
    pub(crate) fn forget_unnamed(&mut self, named: RegSet, is_original: bool, at: u32) {
        let special = |code: usize| code >= usize::from(scalar::VCC);
        let stays = |word: Word| is_original && matches!(word, Word::Resource(_));
        for code in (0..SCALARS).filter(|code| !special(*code) && !named.contains(Reg::scalar(*code as u16, 1))) {
            if !stays(self.words.words[code]) {
                self.words.set(code, Word::Other(at));
            }
        }
        self.lanes.clear();
        self.spill_slots.clear();
    }

    /// Both machines read their own program counter: they differ by a known amount.
    pub(crate) fn both_read_counter(&mut self, pair: Reg, original: u64, new: u64) {
        for index in 0..2 {
            self.set(pair, index, Word::Constant((new >> (32 * u32::from(index))) as u32));
            let code = usize::from(pair.first) + usize::from(index);
            if code < SCALARS {
                self.constants.insert(code, (original >> (32 * u32::from(index))) as u32);
            }
        }
    }
}
