//! Which accesses are ordered: dispatches, workgroups with their waves, barriers, and what is handed over in memory.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::cells::Access;
use super::clock::{Clock, Progress, Row, join_row};
use super::dispatches::{DispatchNumber, DispatchOrder};
use crate::address::ObjectId;
use crate::fault::{GlobalAccess, MemoryAccess, MissingSynchronisation};

/// Most dwords in memory of which it is remembered what was handed over there.
const MOST_PLACES: usize = 1 << 20;
/// Most rows of clocks of all these places together.
const MOST_ROWS: usize = 1 << 22;

/// An instruction that accesses memory.
pub(crate) struct Site {
    pub pc: u64,
    pub object: Option<ObjectId>,
    pub address: u64,
    pub name: &'static str,
    pub how: MemoryAccess,
    /// An atomic that returns the old value.
    pub returns: bool,
    /// A load or store with the bits or the scope that make it coherent beyond a wave: what compilers make of atomic
    /// loads and stores.
    pub coherent: bool,
    /// Bytes of a lane.
    pub size: usize,
    /// Whether it polls, once that was found out.
    pub polls: Option<bool>,
}

impl Site {
    /// Whether it may be an atomic load or store: those have at most 8 bytes.
    pub(crate) fn is_narrow(&self) -> bool {
        self.size <= 8
    }
}

/// What a wave is ordered after.
#[derive(Clone)]
pub(crate) struct WaveView {
    /// Its workgroup.
    pub row: Row,
    /// Others.
    pub others: Arc<Clock>,
}

impl WaveView {
    fn join(&mut self, other: &WaveView) {
        join_row(&mut self.row, &other.row);
        join_clock(&mut self.others, &other.others);
    }
}

fn join_clock(mine: &mut Arc<Clock>, other: &Arc<Clock>) {
    if Arc::ptr_eq(mine, other) || other.is_empty() {
        return;
    }
    if mine.is_empty() {
        *mine = Arc::clone(other);
    } else if !mine.is_all() {
        Arc::make_mut(mine).join(other);
    }
}

/// The waves of a workgroup that has not ended.
pub(crate) struct LiveGroup {
    pub views: Vec<WaveView>,
    /// The first operation of each wave that stores.
    first_stores: Vec<Option<u32>>,
    /// Of a split barrier: its phase, what those that have signalled it released, and that of the phase before.
    phase: u64,
    arriving: Option<WaveView>,
    arrived: Option<WaveView>,
    /// What waves that have ended did.
    ended: Option<WaveView>,
}

/// A workgroup, or an access of the host.
pub(crate) struct Group {
    pub dispatch: DispatchNumber,
    /// What its dispatch is ordered after, unless that is everything before.
    order: Option<Arc<DispatchOrder>>,
    pub id: [u32; 3],
    live: Option<Box<LiveGroup>>,
    /// What it was ordered after when it ended.
    after: Option<Arc<Clock>>,
}

/// How far a wave is when it lets others go on.
#[derive(Clone, Copy)]
pub(crate) struct Released {
    pub wave: u32,
    /// The next operation.
    pub next: u32,
    /// The first operation that writes memory and may still be in flight, or the next one.
    pub oldest_write: u32,
    /// Other waves of the workgroup may use another first-level cache.
    pub apart: bool,
}

/// What was handed over at a dword in memory.
#[derive(Default)]
struct Place {
    clock: Clock,
    /// Workgroups that have changed it by atomics that return a value.
    exchanged: Vec<u32>,
    /// It was accessed by coherent loads or atomics.
    is_flag: bool,
    /// A wave has stored to it alone, after it had waited for what it stored before.
    is_release: bool,
}

/// All that orders accesses.
#[derive(Default)]
pub(crate) struct Order {
    pub groups: Vec<Group>,
    /// What dispatches are ordered after, unless that is everything before.
    dispatches: FxHashMap<DispatchNumber, Arc<DispatchOrder>>,
    pub sites: Vec<Site>,
    site_of: FxHashMap<u64, usize>,
    recent_site: Option<(u64, usize)>,
    places: FxHashMap<u64, Place>,
    rows: usize,
    /// There are more places than are remembered.
    overflows: bool,
}

/// Whether the dispatch of one of two workgroups is over before that of the other begins.
fn are_ordered(one: &Group, other: &Group) -> bool {
    let (first, last) = if one.dispatch.number < other.dispatch.number { (one, other) } else { (other, one) };
    last.order.as_ref().is_none_or(|order| order.has(first.dispatch))
}

/// The dwords of an access.
pub(crate) fn dwords(address: u64, size: usize) -> impl Iterator<Item = u64> {
    (address & !3..address + size as u64).step_by(4)
}

impl Order {
    /// The number of an instruction, none if there are too many.
    #[inline]
    pub(crate) fn site(&mut self, pc: u64, site: impl FnOnce() -> Site) -> Option<usize> {
        if let Some((known, at)) = self.recent_site
            && known == pc
        {
            return Some(at);
        }
        let at = match self.site_of.get(&pc) {
            Some(&at) => at,
            None if self.sites.len() == Access::MOST_SITES => return None,
            None => {
                self.sites.push(site());
                self.site_of.insert(pc, self.sites.len() - 1);
                self.sites.len() - 1
            }
        };
        self.recent_site = Some((pc, at));
        Some(at)
    }

    /// A dispatch, or an access of the host, begins.
    pub(crate) fn begin(&mut self, dispatch: DispatchNumber, order: DispatchOrder) {
        if order != DispatchOrder::everything() {
            self.dispatches.insert(dispatch, Arc::new(order));
        }
    }

    /// A workgroup begins; its number, or none if there are too many.
    pub(crate) fn start(&mut self, dispatch: DispatchNumber, id: [u32; 3], waves: usize) -> Option<u32> {
        if self.groups.len() >= Access::MOST_GROUPS as usize {
            return None;
        }
        let view = WaveView { row: vec![Progress::default(); waves], others: Arc::default() };
        let live = LiveGroup {
            views: vec![view; waves],
            first_stores: vec![None; waves],
            phase: 0,
            arriving: None,
            arrived: None,
            ended: None,
        };
        let order = self.dispatches.get(&dispatch).cloned();
        self.groups.push(Group { dispatch, order, id, live: Some(Box::new(live)), after: None });
        Some((self.groups.len() - 1) as u32)
    }

    /// A workgroup has ended.
    pub(crate) fn end(&mut self, group: u32) {
        let Some(group) = self.groups.get_mut(group as usize) else { return };
        if let Some(live) = group.live.take() {
            let mut after = Arc::default();
            live.views.iter().for_each(|view| join_clock(&mut after, &view.others));
            group.after = (!after.is_empty()).then_some(after);
        }
    }

    pub(crate) fn live(&mut self, group: u32) -> Option<&mut LiveGroup> {
        self.groups.get_mut(group as usize)?.live.as_deref_mut()
    }

    pub(crate) fn view(&self, group: u32, wave: usize) -> Option<&WaveView> {
        self.groups.get(group as usize)?.live.as_ref()?.views.get(wave)
    }

    fn view_mut(&mut self, group: u32, wave: usize) -> Option<&mut WaveView> {
        self.live(group)?.views.get_mut(wave)
    }

    /// What a wave releases: what it has done, and what it is ordered after.
    fn released(&self, group: u32, done: Released) -> Option<WaveView> {
        let mut view = self.view(group, done.wave as usize)?.clone();
        let issued = if done.apart { done.oldest_write } else { done.next };
        view.row[done.wave as usize] = Progress { issued, complete: done.oldest_write, read: done.next };
        Some(view)
    }

    /// All waves of a workgroup have come to the barrier.
    pub(crate) fn barrier(&mut self, group: u32, waves: impl Iterator<Item = Released>) {
        let mut all: Option<WaveView> = None;
        for done in waves {
            let Some(released) = self.released(group, done) else { return };
            match &mut all {
                None => all = Some(released),
                Some(all) => all.join(&released),
            }
        }
        if let (Some(all), Some(live)) = (all, self.live(group)) {
            live.views.iter_mut().for_each(|view| view.join(&all));
        }
    }

    /// A wave signals the split barrier, which is in a phase.
    pub(crate) fn signal(&mut self, group: u32, phase: u64, done: Released) {
        let Some(released) = self.released(group, done) else { return };
        let Some(live) = self.live(group) else { return };
        if live.phase != phase {
            live.arrived = live.arriving.take();
            live.phase = phase;
        }
        match &mut live.arriving {
            None => live.arriving = Some(released),
            Some(all) => all.join(&released),
        }
    }

    /// A wave is let through the split barrier that it signalled in a phase.
    pub(crate) fn pass(&mut self, group: u32, wave: u32, signalled: u64) {
        let Some(live) = self.live(group) else { return };
        let released = if live.phase == signalled { &live.arriving } else { &live.arrived };
        if let Some(view) = live.views.get_mut(wave as usize) {
            [released, &live.ended].into_iter().flatten().for_each(|released| view.join(released));
        }
    }

    /// A wave has ended, which completes its writes: every barrier is one that it has come to.
    pub(crate) fn wave_ends(&mut self, group: u32, wave: u32, next: u32) {
        let done = Released { wave, next, oldest_write: next, apart: false };
        let Some(released) = self.released(group, done) else { return };
        let Some(live) = self.live(group) else { return };
        live.views[wave as usize] = released.clone();
        match &mut live.ended {
            None => live.ended = Some(released),
            Some(all) => all.join(&released),
        }
    }

    /// A wave has waited for all its writes, in a workgroup with one first-level cache: that covers what it has seen of
    /// the other waves.
    pub(crate) fn waited(&mut self, group: u32, wave: u32) {
        if let Some(view) = self.view_mut(group, wave as usize) {
            view.row.iter_mut().for_each(|progress| progress.complete = progress.complete.max(progress.issued));
        }
    }

    /// Whether an access is over before what a wave does now.
    pub(crate) fn is_before(&self, earlier: Access, writes: bool, (group, wave): (u32, usize)) -> bool {
        let Some(view) = self.view(group, wave) else { return true };
        let behind = |progress: &Progress, write: u32| earlier.id() < if writes { write } else { progress.read };
        if earlier.group() == group {
            return view.row.get(earlier.wave()).is_none_or(|progress| behind(progress, progress.issued));
        }
        let (Some(its), Some(mine)) = (self.groups.get(earlier.group() as usize), self.groups.get(group as usize))
        else {
            return true;
        };
        if its.dispatch != mine.dispatch && are_ordered(its, mine) {
            return true;
        }
        view.others.is_all()
            || view
                .others
                .row(earlier.group())
                .and_then(|row| row.get(earlier.wave()))
                .is_some_and(|progress| behind(progress, progress.complete))
    }

    /// An earlier access as a race names it.
    pub(crate) fn describe(&self, earlier: Access, missing: MissingSynchronisation) -> GlobalAccess {
        let (site, group) = (&self.sites[earlier.site()], &self.groups[earlier.group() as usize]);
        GlobalAccess {
            access: site.how,
            instruction: site.name,
            address: site.address,
            object: site.object,
            dispatch: group.dispatch.number,
            workgroup: group.id,
            wave: earlier.wave() as u32,
            missing,
        }
    }

    /// Whether two accesses are of different dispatches.
    pub(crate) fn dispatches_differ(&self, one: u32, other: u32) -> bool {
        let dispatch = |group: u32| self.groups.get(group as usize).map(|group| group.dispatch);
        dispatch(one) != dispatch(other)
    }

    /// A wave joins what was handed over at a place.
    pub(crate) fn acquire(&mut self, address: u64, (group, wave): (u32, usize)) {
        let Order { places, groups, overflows, .. } = self;
        let view = groups.get_mut(group as usize).and_then(|group| group.live.as_mut());
        let Some(view) = view.and_then(|live| live.views.get_mut(wave)) else { return };
        let Some(place) = places.get(&(address & !3)) else {
            if *overflows {
                view.others = Arc::new(Clock::everything());
            }
            return;
        };
        if let Some(row) = place.clock.row(group) {
            join_row(&mut view.row, row);
        }
        // Usually nothing but the wave's own row is there.
        if place.clock.is_all() || place.clock.len() > usize::from(place.clock.row(group).is_some()) {
            Arc::make_mut(&mut view.others).join(&place.clock);
        }
    }

    /// A wave has seen a store of another: it is ordered after that and what that wave did before, at least.
    pub(crate) fn acquire_from(&mut self, written: Access, (group, wave): (u32, usize)) {
        let next = written.id() + 1;
        let Some(its) = self.groups.get(written.group() as usize) else { return };
        let of_wave = Progress { issued: next, complete: next, read: next };
        let (mut row, others) = match its.live.as_ref().and_then(|live| live.views.get(written.wave())) {
            Some(view) => (view.row.clone(), Arc::clone(&view.others)),
            // All that the workgroup did.
            None => {
                let done = Progress { issued: u32::MAX, complete: u32::MAX, read: u32::MAX };
                (vec![done; 1 << 5], its.after.clone().unwrap_or_default())
            }
        };
        if let Some(own) = row.get_mut(written.wave()) {
            *own = Progress {
                issued: own.issued.max(of_wave.issued),
                complete: own.complete.max(of_wave.complete),
                read: own.read.max(of_wave.read),
            };
        }
        // What waves of its workgroup stored before a barrier may be handed over, too.
        row.iter_mut().for_each(|progress| progress.complete = progress.complete.max(progress.issued));
        let Some(view) = self.view_mut(group, wave) else { return };
        join_clock(&mut view.others, &others);
        if written.group() == group {
            join_row(&mut view.row, &row);
        } else {
            Arc::make_mut(&mut view.others).add(written.group(), &Arc::new(row));
        }
    }

    /// What a wave hands over.
    pub(crate) fn handed(&self, group: u32, done: Released) -> Option<(Arc<Row>, Arc<Clock>)> {
        let view = self.released(group, done)?;
        Some((Arc::new(view.row), view.others))
    }

    /// A wave hands over what it did at a place in memory.
    pub(crate) fn release(&mut self, address: u64, group: u32, handed: &(Arc<Row>, Arc<Clock>)) {
        self.release_by(address, group, handed, |_| {});
    }

    /// A wave stores.
    pub(crate) fn stores(&mut self, group: u32, wave: usize, operation: u32) {
        if let Some(first) = self.live(group).and_then(|live| live.first_stores.get_mut(wave)) {
            first.get_or_insert(operation);
        }
    }

    /// Whether a wave has stored before an operation, and waited for that.
    pub(crate) fn has_waited(&mut self, group: u32, wave: usize, operation: u32, done: Released) -> bool {
        let first = self.live(group).and_then(|live| *live.first_stores.get(wave)?);
        first.is_some_and(|first| first < operation) && done.oldest_write >= operation
    }

    /// A wave has stored to a place, after it had waited for what it stored before.
    pub(crate) fn note_release(&mut self, address: u64) {
        if let Some(place) = self.place(address) {
            place.is_release = true;
        }
    }

    /// Whether waves have handed something over at a place by plain stores: whether one had waited before.
    pub(crate) fn release_at(&self, address: u64) -> Option<bool> {
        self.places.get(&(address & !3)).map(|place| place.is_release)
    }

    /// The same by an atomic, which may return a value.
    pub(crate) fn exchange(&mut self, address: u64, group: u32, handed: &(Arc<Row>, Arc<Clock>), returns: bool) {
        self.release_by(address, group, handed, |place| {
            place.is_flag = true;
            if returns && let Err(at) = place.exchanged.binary_search(&group) {
                place.exchanged.insert(at, group);
            }
        });
    }

    fn release_by(
        &mut self,
        address: u64,
        group: u32,
        (row, others): &(Arc<Row>, Arc<Clock>),
        note: impl FnOnce(&mut Place),
    ) {
        let Some(place) = self.place(address) else { return };
        note(place);
        let before = place.clock.len();
        place.clock.add(group, row);
        place.clock.join(others);
        let more = place.clock.len().saturating_sub(before);
        self.rows += more;
        self.overflows |= self.rows > MOST_ROWS;
    }

    fn place(&mut self, address: u64) -> Option<&mut Place> {
        let full = self.places.len() >= MOST_PLACES || self.rows > MOST_ROWS;
        match self.places.entry(address & !3) {
            Entry::Occupied(place) => Some(place.into_mut()),
            Entry::Vacant(_) if full => {
                self.overflows = true;
                None
            }
            Entry::Vacant(place) => Some(place.insert(Place::default())),
        }
    }

    /// A place is accessed by atomics, or by loads that are coherent.
    pub(crate) fn note_flag(&mut self, address: u64) {
        if let Some(place) = self.place(address) {
            place.is_flag = true;
        }
    }

    /// Whether a place was accessed so.
    pub(crate) fn is_flag(&self, address: u64) -> bool {
        self.overflows || self.places.get(&(address & !3)).is_some_and(|place| place.is_flag)
    }

    /// Whether a workgroup has changed a place by an atomic that returns a value.
    pub(crate) fn has_exchanged(&self, address: u64, group: u32) -> bool {
        let place = self.places.get(&(address & !3));
        self.overflows || place.is_some_and(|place| place.exchanged.binary_search(&group).is_ok())
    }
}
