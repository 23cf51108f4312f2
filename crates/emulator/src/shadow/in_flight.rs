//! What is in flight: results that no wait has guaranteed yet, and stores that other waves cannot see yet.
//!
//! A loaded value is put into its register at once, but the register is *owned* by the operation until a wait
//! guarantees it; to read or to overwrite it before then is a fault whatever the timing would have been. A wait for at
//! most N outstanding operations guarantees one that completes in order if more than N operations of its kind, itself
//! included, were issued since; and one that completes out of order only if N is 0. A counter that is full holds the
//! next operation back, which is a wait like any other: code with more than 63 loads in flight depends on it.

use smallvec::SmallVec;

use wavetap_amdgpu::{Counter, Counters, Half, RegFile, Target};

use super::store_buffer::LaneStores;
use super::xcnt_replay::XcntReplay;
use crate::address::range::Range;
use crate::fault::stop::{ExecResult, stop};
use crate::fault::{FaultKind, MemoryAccess};
use crate::memory::{Span, View};
use crate::op::registers::{SLOTS, register, register_name, slot};
use crate::op::semantics::AtomicFn;
use crate::op::{Class, ResolvedInst};

/// Which operations complete in order among themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperationKind {
    /// Vector memory: in order.
    Vmem,
    /// Through a sampler: in order, but not with other vector memory when results are written.
    Sample,
    /// LDS: in order.
    Lds,
    /// Scalar memory: any order.
    Smem,
    /// Messages that answer: in order among themselves, as LLVM has it (SIInsertWaitcnts).
    Message,
    /// Flat: counts in both counters, any order.
    Flat,
    /// Flat that went to no LDS, where that completes in the order of vector memory; LDS's counter counts it, too.
    FlatMemory,
    /// Copies from memory to LDS, and from LDS to memory: either in order.
    AsyncLoad,
    AsyncStore,
}

/// How many orders there are.
const ORDERS: usize = 2;

impl OperationKind {
    /// Which operations of a counter it completes in order with, if with any: those of vector memory, or those of LDS.
    fn order(self, counter: Counter, flat_in_order: bool) -> Option<usize> {
        match self {
            OperationKind::Vmem | OperationKind::Sample | OperationKind::AsyncLoad | OperationKind::Message => Some(0),
            OperationKind::Lds | OperationKind::AsyncStore => Some(1),
            OperationKind::Flat if flat_in_order => Some(usize::from(LOCAL.contains(&counter))),
            OperationKind::FlatMemory => (!LOCAL.contains(&counter)).then_some(0),
            OperationKind::Smem | OperationKind::Flat => None,
        }
    }
}

/// An operation in flight.
struct Operation {
    id: u32,
    kind: OperationKind,
    /// The operations that it completes in order with.
    order: Option<usize>,
    /// The wait counters that count it.
    counters: Counters,
    /// Its text and address, for the message.
    text: &'static str,
    address: u64,
    /// The registers it writes: the slot of the first, and how many.
    written: SmallVec<[(u16, u16); 2]>,
    /// Which half of the registers it writes.
    half: Half,
}

/// Where a delayed store goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    Global,
    Lds,
}

/// Stores, or an atomic without return, that are visible to their own wave only.
pub(crate) struct Effect {
    /// The operation it belongs to.
    pub id: u32,
    pub space: Space,
    /// Its wave has come to a barrier since.
    pub before_barrier: bool,
    what: What,
}

enum What {
    One(EffectParts),
    Lanes(Box<LaneStores>),
}

/// All that a wave has in flight.
pub(crate) struct InFlight {
    /// By counter; an operation that two counters count is in both lists.
    operations: [Vec<Operation>; COUNTERS],
    /// For each register slot, the operations that will write its halves (0: none).
    owner: Vec<[u32; 2]>,
    next: u32,
    replay: XcntReplay,
    effects: Vec<Effect>,
    /// Room for the next ones: boxes, as they move to the effects and back without a copy.
    #[allow(clippy::vec_box)]
    spare: Vec<Box<LaneStores>>,
    /// What a counter can count: a wave with so many operations outstanding issues the next one when one of them is
    /// done.
    most: [usize; COUNTERS],
}

/// How many counters there are.
const COUNTERS: usize = Counter::ALL.len();
/// The counters of what stores do to memory, and of what LDS operations do to LDS.
const STORES: [Counter; 3] = [Counter::Vs, Counter::Store, Counter::Vm];
const LOCAL: [Counter; 2] = [Counter::Ds, Counter::Lgkm];

/// The counters of a set.
fn counted(counters: Counters) -> impl Iterator<Item = Counter> {
    let mut rest = counters.bits();
    std::iter::from_fn(move || {
        let next = *Counter::ALL.get(rest.trailing_zeros() as usize)?;
        rest &= !next.flag().bits();
        Some(next)
    })
}

/// The slots of runs of registers.
fn slots(runs: &[(u16, u16)]) -> impl Iterator<Item = usize> + '_ {
    runs.iter().flat_map(|&(first, count)| usize::from(first)..usize::from(first + count))
}

/// The halves that one means.
fn parts(half: Half) -> std::ops::Range<usize> {
    match half {
        Half::Whole => 0..2,
        Half::Low => 0..1,
        Half::High => 1..2,
    }
}

impl InFlight {
    pub(crate) fn new(strict: bool, target: Target) -> Self {
        // What is counted as exported has only been read.
        let counts = |counter: Counter| strict && counter != Counter::Exp;
        let most =
            |counter: Counter| target.largest_wait(counter).filter(|_| counts(counter)).map_or(usize::MAX, usize::from);
        InFlight {
            operations: std::array::from_fn(|_| Vec::new()),
            owner: if strict { vec![[0; 2]; SLOTS] } else { Vec::new() },
            next: 1,
            replay: XcntReplay::default(),
            effects: Vec::new(),
            spare: Vec::new(),
            most: Counter::ALL.map(most),
        }
    }

    /// Notes an operation that was issued; returns its id.
    pub(crate) fn issue(&mut self, op: &ResolvedInst, kind: OperationKind, written: &[(RegFile, u16, u16)]) -> u32 {
        for counter in counted(op.counters).map(|counter| counter as usize) {
            if self.operations[counter].len() >= self.most[counter] {
                self.wait(counter, self.most[counter] as u32 - 1);
            }
        }
        let id = self.next;
        self.next += 1;
        let written: SmallVec<[(u16, u16); 2]> =
            written.iter().map(|&(file, first, count)| (slot(file, first) as u16, count)).collect();
        for at in slots(&written) {
            self.owner[at][parts(op.data_half)].fill(id);
        }
        if op.is_translated {
            self.replay.issue(id, op, &written);
        }
        for counter in counted(op.counters) {
            let order = kind.order(counter, op.flat_in_order);
            let operation = Operation {
                id,
                kind,
                order,
                counters: op.counters,
                text: op.inst.variant.name,
                address: op.address,
                written: written.clone(),
                half: op.data_half,
            };
            self.operations[counter as usize].push(operation);
        }
        id
    }

    /// The id of the operation that was issued last, and of the next.
    pub(crate) fn ids(&self) -> (u32, u32) {
        (self.next - 1, self.next)
    }

    /// Whether no wait has guaranteed an operation yet.
    pub(crate) fn is_in_flight(&self, id: u32) -> bool {
        self.operation(id).is_some()
    }

    /// An operation in flight. Lists are in the order of issue, which is that of ids.
    fn operation(&self, id: u32) -> Option<&Operation> {
        let find = |list: &'_ Vec<Operation>| list.binary_search_by_key(&id, |operation| operation.id).ok();
        self.operations.iter().find_map(|list| find(list).map(|at| &list[at]))
    }

    /// Stores to memory that no wait has guaranteed: the operation, where, how long, by which instruction (its name and
    /// address), and their counters.
    pub(crate) fn stores(&self) -> impl Iterator<Item = (u32, u64, u32, &'static str, u64, Box<str>)> + '_ {
        let global = self.effects.iter().filter(|effect| effect.space == Space::Global);
        global
            .filter_map(|effect| {
                let found = self.operation(effect.id)?;
                let counters = self.counters_of(effect.id);
                Some(
                    effect
                        .places()
                        .into_iter()
                        .map(move |(at, bytes)| (effect.id, at, bytes, found.text, found.address, counters.clone())),
                )
            })
            .flatten()
    }

    /// The names of the counters that are to be waited for.
    fn counters_of(&self, id: u32) -> Box<str> {
        let waiting = Counter::ALL
            .into_iter()
            .filter(|counter| self.operations[*counter as usize].iter().any(|other| other.id == id));
        waiting.map(Counter::name).collect::<Vec<_>>().join(" and ").into()
    }

    /// A wait for at most `allowed` outstanding operations of a counter.
    pub(crate) fn wait(&mut self, counter: usize, allowed: u32) {
        if counter == Counter::X as usize {
            return self.replay.wait(allowed);
        }
        // So many are no more than may be, whatever their order.
        if self.operations[counter].len() <= allowed as usize {
            return;
        }
        let mut later = [0_u32; ORDERS];
        let mut done: SmallVec<[Operation; 4]> = SmallVec::new();
        for at in (0..self.operations[counter].len()).rev() {
            let outstanding = match self.operations[counter][at].order {
                Some(order) => {
                    later[order] += 1;
                    later[order]
                }
                None => 1,
            };
            if outstanding > allowed {
                done.push(self.operations[counter].remove(at));
            }
        }
        for operation in done {
            // What LDS's counter says of an operation that went to memory proves nothing of that.
            if operation.kind == OperationKind::FlatMemory && operation.order.is_none() {
                continue;
            }
            self.complete(&operation);
            // A flat operation is done when either counter has proved it.
            let others = counted(operation.counters).filter(|other| *other as usize != counter);
            others.for_each(|other| self.leave_queue(other, operation.id));
        }
    }

    /// An operation that one counter has proved done leaves the queue of another. Where it keeps its place among LDS
    /// operations, those before it are done, too.
    fn leave_queue(&mut self, counter: Counter, id: u32) {
        let list = &mut self.operations[counter as usize];
        let Ok(at) = list.binary_search_by_key(&id, |operation| operation.id) else { return };
        let keeps_place = LOCAL.contains(&counter) && list[at].order.is_some();
        let before: SmallVec<[Operation; 4]> = if keeps_place {
            list.extract_if(..at, |operation| operation.kind == OperationKind::Lds).collect()
        } else {
            SmallVec::new()
        };
        list.retain(|operation| operation.id != id);
        before.iter().for_each(|operation| self.complete(operation));
    }

    /// What an operation writes may be used.
    fn complete(&mut self, operation: &Operation) {
        self.replay.complete(operation.id);
        for owner in slots(&operation.written).flat_map(|at| parts(operation.half).map(move |part| (at, part))) {
            let owner = &mut self.owner[owner.0][owner.1];
            if *owner == operation.id {
                *owner = 0;
            }
        }
    }

    /// All addresses are translated.
    pub(crate) fn translate(&mut self) {
        self.replay.clear();
    }

    /// The oldest operation that is not guaranteed yet, if there is any; effects of older ones may be made visible.
    fn oldest(&self, space: Space) -> u32 {
        let counters: &[Counter] = if space == Space::Global { &STORES } else { &LOCAL };
        let pending = counters.iter().flat_map(|counter| &self.operations[*counter as usize]);
        pending.map(|operation| operation.id).min().unwrap_or(u32::MAX)
    }

    /// Whether no operation in flight will write any of a run of registers, or read it again: [`InFlight::check_read`]
    /// and [`InFlight::check_write`] find nothing.
    #[inline]
    pub(crate) fn are_free(&self, file: RegFile, first: u16, count: u16) -> bool {
        (first..first + count).all(|index| self.owner[slot(file, index)] == [0; 2])
            && (self.replay.is_empty() || self.replay.are_free(file, first, count))
    }

    /// Checks that a half of a register, or all of it, may be read.
    pub(crate) fn check_read(&self, file: RegFile, index: u16, half: Half) -> ExecResult {
        let slot = slot(file, index);
        let id = self.owner[slot][parts(half)].iter().find(|id| **id != 0);
        id.map_or(Ok(()), |id| self.missing(*id, slot, false))
    }

    /// Checks that an instruction may overwrite a half of a register, or all of it.
    pub(crate) fn check_write(&self, op: &ResolvedInst, file: RegFile, index: u16, half: Half) -> ExecResult {
        let owners = &self.owner[slot(file, index)][parts(half)];
        if owners.iter().any(|id| *id != 0) {
            return owners
                .iter()
                .filter(|id| **id != 0)
                .try_for_each(|id| self.check_overwrite(op, *id, slot(file, index)));
        }
        let Some((pending, pending_at)) = self.replay.reader(op, slot(file, index), half) else { return Ok(()) };
        let (register, counter) = (register_name(file, index).into(), Counter::X.name().into());
        stop(FaultKind::MissingWait { register, pending, pending_at, counter, overwritten: true })
    }

    /// Checks that an instruction may overwrite what an operation has yet to write.
    fn check_overwrite(&self, op: &ResolvedInst, id: u32, slot: usize) -> ExecResult {
        // Results of one in-order kind arrive in the order of issue: the later one wins.
        let kind =
            self.operations.iter().flatten().find(|operation| operation.id == id).map(|operation| operation.kind);
        match (kind, op.class) {
            (Some(kind @ (OperationKind::Vmem | OperationKind::Sample)), Class::Vmem)
                if op.inst.variant.encoding != wavetap_amdgpu::Encoding::Flat
                    && (kind == OperationKind::Sample) == op.samples =>
            {
                Ok(())
            }
            (Some(OperationKind::Lds), Class::Lds) => Ok(()),
            _ => self.missing(id, slot, true),
        }
    }

    fn missing(&self, id: u32, slot: usize, overwritten: bool) -> ExecResult {
        let (file, index) = register(slot);
        let found = self.operations.iter().flatten().find(|operation| operation.id == id);
        let half = match found.map(|operation| operation.half) {
            Some(Half::Low) => ".l",
            Some(Half::High) => ".h",
            _ => "",
        };
        let register = format!("{}{half}", register_name(file, index)).into();
        let counter = self.counters_of(id);
        let (pending, pending_at) = found.map_or(("", 0), |operation| (operation.text, operation.address));
        stop(FaultKind::MissingWait { register, pending, pending_at, counter, overwritten })
    }

    /// Holds back the effect of operation `id`.
    pub(crate) fn buffer(&mut self, id: u32, effect: EffectParts) {
        self.effects.push(Effect { id, space: effect.space, before_barrier: false, what: What::One(effect) });
    }

    /// Holds back what the lanes of a mask store, `size` bytes each; the caller fills in what and where.
    pub(crate) fn buffer_lanes(&mut self, id: u32, space: Space, (mask, size): (u64, usize)) -> &mut LaneStores {
        let mut stores = self.spare.pop().unwrap_or_default();
        (stores.mask, stores.size, stores.elements, stores.in_a_row) = (mask, size, 0, None);
        self.effects.push(Effect { id, space, before_barrier: false, what: What::Lanes(stores) });
        match self.effects.last_mut() {
            Some(Effect { what: What::Lanes(stores), .. }) => stores,
            _ => unreachable!("it was just added"),
        }
    }

    pub(crate) fn has_effects(&self) -> bool {
        !self.effects.is_empty()
    }

    /// The effects that are visible to the wave only, in the order of issue.
    pub(crate) fn effects(&mut self) -> &mut Vec<Effect> {
        &mut self.effects
    }

    /// The wave has come to a barrier.
    pub(crate) fn at_barrier(&mut self) {
        self.effects.iter_mut().for_each(|effect| effect.before_barrier = true);
    }

    /// Makes effects visible, in order: those a wait has guaranteed, or all of a space.
    pub(crate) fn publish(
        &mut self,
        all: Option<Space>,
        everything: bool,
        memory: &View,
        lds: &mut [u8],
    ) -> Result<(), FaultKind> {
        let Some(first) = self.effects.first() else { return Ok(()) };
        let oldest = [self.oldest(Space::Global), self.oldest(Space::Lds)];
        // Effects are in the order of their operations.
        if all.is_none() && !everything && oldest.iter().all(|&oldest| first.id >= oldest) {
            return Ok(());
        }
        let InFlight { effects, spare, .. } = self;
        publish_if(effects, spare, memory, lds, |effect| {
            let guaranteed = effect.id < oldest[if effect.space == Space::Global { 0 } else { 1 }];
            everything || guaranteed || all == Some(effect.space)
        })
    }
}

/// Makes those of some effects visible, in order, that a condition chooses.
#[allow(clippy::vec_box)]
pub(crate) fn publish_if(
    effects: &mut Vec<Effect>,
    spare: &mut Vec<Box<LaneStores>>,
    memory: &View,
    lds: &mut [u8],
    mut is_due: impl FnMut(&Effect) -> bool,
) -> Result<(), FaultKind> {
    let (mut span, mut result) = (None, Ok(()));
    effects.retain_mut(|effect| {
        if result.is_err() || !is_due(effect) {
            return true;
        }
        result = match &effect.what {
            What::One(one) => one.apply(memory, &mut span, lds),
            What::Lanes(stores) if effect.space == Space::Lds => {
                stores.to_lds(lds);
                Ok(())
            }
            What::Lanes(stores) => stores.to_memory(memory),
        };
        if let What::Lanes(stores) = std::mem::replace(&mut effect.what, What::One(EffectParts::NONE)) {
            spare.push(stores);
        }
        false
    });
    result
}

/// The parts of a delayed store.
#[derive(Clone, Copy)]
pub(crate) struct EffectParts {
    pub space: Space,
    pub address: u64,
    pub bytes: u8,
    pub data: u64,
    pub compare: u64,
    pub atomic: Option<AtomicFn>,
}

impl Effect {
    /// All of what is stored lies in there.
    pub(crate) fn range(&self) -> Range {
        match &self.what {
            What::One(one) => (one.address, one.address.saturating_add(one.bytes.into())),
            What::Lanes(stores) => stores.range,
        }
    }

    /// The first addresses and lengths of what is stored.
    fn places(&self) -> SmallVec<[(u64, u32); 1]> {
        match &self.what {
            What::One(one) => SmallVec::from_elem((one.address, one.bytes.into()), 1),
            What::Lanes(stores) => stores.ranges(),
        }
    }
}

impl EffectParts {
    /// Nothing.
    const NONE: EffectParts =
        EffectParts { space: Space::Lds, address: 0, bytes: 0, data: 0, compare: 0, atomic: None };

    /// `span` is the allocation where the last one was.
    fn apply<'m>(&self, memory: &View<'m>, span: &mut Option<Span<'m>>, lds: &mut [u8]) -> Result<(), FaultKind> {
        let n = usize::from(self.bytes);
        let new = |old: u64| self.atomic.map_or(self.data, |f| f(old, self.data, self.compare));
        let mut buffer = [0; 8];
        match self.space {
            Space::Global => {
                if self.atomic.is_some() {
                    return memory.update(self.address, n, new).map(|_| ());
                }
                if self.store(memory, span).is_some() {
                    return Ok(());
                }
                memory.write(self.address, &self.data.to_le_bytes()[..n], MemoryAccess::Store)
            }
            Space::Lds => {
                // Bounds were checked when the operation was issued.
                let place = &mut lds[self.address as usize..][..n];
                buffer[..n].copy_from_slice(place);
                place.copy_from_slice(&new(u64::from_le_bytes(buffer)).to_le_bytes()[..n]);
                Ok(())
            }
        }
    }

    /// The fast path of stores of one or two dwords into an allocation of the device.
    fn store<'m>(&self, memory: &View<'m>, span: &mut Option<Span<'m>>) -> Option<()> {
        if span.is_none_or(|span| self.address.wrapping_sub(span.start) >= span.len() as u64) {
            *span = memory.span_to_write(self.address);
        }
        let span = (*span)?;
        let at = self.address.wrapping_sub(span.start) as usize;
        match self.bytes {
            4 => span.store32(at, self.data as u32),
            8 => span.store64(at, self.data),
            _ => None,
        }
    }
}
