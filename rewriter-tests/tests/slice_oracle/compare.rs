//! What the emulator saw beside what the analyses say.

use std::collections::{BTreeMap, BTreeSet};

use wavetap::cfg::{Cfg, Program};
use wavetap::dataflow::{
    Accesses, Certainty, Definition, Definitions, Indexing, Operation, Summaries, WaitSummaries, Waits,
};
use wavetap::emulator::{Origin, Origins};
use wavetap::isa::{Reg, RegFile};
use wavetap::kernel::Body;
use wavetap::profile::origins::{ObjectOrigins, OriginPlace, OriginRecord};

use super::shared::SharedTally;

/// Where something was done, as the function sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Here(u64),
    Callee(u64),
    Caller,
}

/// One counter of one wait.
#[derive(Default)]
pub struct SeenWait {
    pub executions: u64,
    /// With the executions in which it was forced.
    pub forced: BTreeMap<Place, u64>,
    pub possible: BTreeSet<Place>,
}

/// What was seen of a code object.
#[derive(Default)]
pub struct Seen {
    pub waits: BTreeMap<(u64, String), SeenWait>,
    pub values: BTreeMap<(u64, Reg), BTreeSet<Place>>,
    /// By address and counter.
    pub outstanding: BTreeMap<(u64, String), BTreeSet<Place>>,
    pub jumps: BTreeMap<u64, BTreeSet<u64>>,
}

impl Seen {
    /// What the emulator says of a dispatch.
    pub fn of(origins: &Origins) -> Seen {
        let place = |origin: &Origin| match origin {
            Origin::Here(place) => Place::Here(place.address),
            Origin::Callee { call, .. } => Place::Callee(call.address),
            Origin::Caller(_) => Place::Caller,
        };
        let mut seen = Seen::default();
        for ((at, counter), wait) in &origins.waits {
            let mine = seen.waits.entry((at.address, counter.name().to_owned())).or_default();
            mine.executions = wait.executions;
            // Several instructions of the caller are one place.
            for (origin, times) in &wait.forced {
                *mine.forced.entry(place(origin)).or_default() += times;
            }
            mine.possible = wait.possible.keys().map(place).collect();
        }
        for (at, registers) in &origins.values {
            for (reg, values) in registers {
                seen.values.insert((at.address, *reg), values.keys().map(place).collect());
            }
        }
        for ((at, counter), operations) in &origins.outstanding {
            let key = (at.address, counter.name().to_owned());
            seen.outstanding.insert(key, operations.iter().map(place).collect());
        }
        for (from, targets) in &origins.jumps {
            seen.jumps.insert(from.address, targets.iter().map(|target| target.address).collect());
        }
        seen
    }

    /// What a file of a run says of an object.
    pub fn read(object: &ObjectOrigins) -> Seen {
        let place = |record: &OriginRecord| match (record.place, record.address) {
            (OriginPlace::Here, Some(address)) => Place::Here(address),
            (OriginPlace::Callee, Some(address)) => Place::Callee(address),
            _ => Place::Caller,
        };
        let mut seen = Seen::default();
        for wait in &object.waits {
            let mine = seen.waits.entry((wait.address, wait.counter.clone())).or_default();
            mine.executions = wait.executions;
            mine.forced = wait.forced.iter().map(|record| (place(record), record.times)).collect();
            mine.possible = wait.possible.iter().map(place).collect();
        }
        for value in &object.values {
            let (file, number) = value.register.split_at(1);
            let file = match file {
                "s" => RegFile::Scalar,
                "v" => RegFile::Vector,
                _ => RegFile::Accum,
            };
            let reg = Reg { file, first: number.parse().expect("a number"), dwords: 1 };
            seen.values.insert((value.address, reg), value.origins.iter().map(place).collect());
        }
        for record in &object.outstanding {
            let key = (record.address, record.counter.clone());
            seen.outstanding.insert(key, record.operations.iter().map(place).collect());
        }
        for jump in &object.jumps {
            seen.jumps.insert(jump.address, jump.targets.iter().copied().collect());
        }
        seen
    }
}

/// What was compared.
#[derive(Default, Clone)]
pub struct Tally {
    pub kernels: u64,
    /// Waits that were executed, by counter, their edges, and those of them that were never seen.
    pub waits: u64,
    pub wait_edges: u64,
    pub unseen_wait_edges: u64,
    /// Those that must be waited for.
    pub musts: u64,
    /// Uses of a dword that were executed, what may have written them, and how much of that was never seen.
    pub uses: u64,
    pub value_edges: u64,
    pub unseen_value_edges: u64,
    pub shared: SharedTally,
    pub wrong: Vec<String>,
}

impl Tally {
    pub fn add(&mut self, other: Tally) {
        self.kernels += other.kernels;
        self.waits += other.waits;
        self.wait_edges += other.wait_edges;
        self.unseen_wait_edges += other.unseen_wait_edges;
        self.musts += other.musts;
        self.uses += other.uses;
        self.value_edges += other.value_edges;
        self.unseen_value_edges += other.unseen_value_edges;
        self.shared.add(other.shared);
        self.wrong.extend(other.wrong);
    }

    pub fn line(&self) -> String {
        let share = |part: u64, all: u64| 100.0 * part as f64 / all.max(1) as f64;
        format!(
            "{} kernels; {} waits, {} edges ({} must), {:.1} % never seen; {} uses, {} edges, {:.1} % never seen; {} \
                outstanding; jumps: {} resolved, {} returns, {} unknown; {} wrong",
            self.kernels,
            self.waits,
            self.wait_edges,
            self.musts,
            share(self.unseen_wait_edges, self.wait_edges),
            self.uses,
            self.value_edges,
            share(self.unseen_value_edges, self.value_edges),
            self.shared.outstanding,
            self.shared.resolved,
            self.shared.returns,
            self.shared.unknown,
            self.wrong.len()
        )
    }
}

/// The analyses of a program, and what was seen of it.
pub struct Subject<'a> {
    pub program: &'a Program,
    pub waits: WaitSummaries,
    pub values: Summaries,
}

impl<'a> Subject<'a> {
    pub fn new(program: &'a Program) -> Subject<'a> {
        Subject { program, waits: WaitSummaries::compute(program), values: Summaries::compute(program) }
    }

    /// Compares everything that was seen of the program.
    pub fn compare(&self, label: &str, seen: &Seen) -> Tally {
        let mut tally = Tally { kernels: 1, ..Tally::default() };
        for body in self.program.bodies().iter().filter(|body| self.was_run(body, seen)) {
            let cfg = Cfg::build(body);
            let mut complain = |what: String| tally.wrong.push(format!("{label} {}: {what}", body.name()));
            let counts = self.waits_of(body, &cfg, seen, &mut complain);
            let uses = self.values_of(body, &cfg, seen, &mut complain);
            let outstanding = self.outstanding_of(body, &cfg, seen, &mut complain);
            let jumps = self.jumps_of(body, seen, &mut complain);
            tally.shared.add(SharedTally { outstanding, ..jumps });
            (tally.waits, tally.wait_edges) = (tally.waits + counts[0], tally.wait_edges + counts[1]);
            (tally.unseen_wait_edges, tally.musts) = (tally.unseen_wait_edges + counts[2], tally.musts + counts[3]);
            tally.uses += uses[0];
            (tally.value_edges, tally.unseen_value_edges) =
                (tally.value_edges + uses[1], tally.unseen_value_edges + uses[2]);
        }
        tally
    }

    /// Whether it is a body's code that was run there. A function that never returns may run on into another, as far as
    /// its code tells; that other's is then in both.
    fn was_run(&self, body: &Body, seen: &Seen) -> bool {
        let shares =
            |other: &Body| other.entry_address() != body.entry_address() && body.at(other.entry_address()).is_some();
        let entered = |address: u64| {
            seen.waits.keys().any(|(at, _)| *at == address) || seen.values.keys().any(|(at, _)| *at == address)
        };
        !self.program.bodies().iter().any(shares) || entered(body.entry_address())
    }

    fn waits_of(&self, body: &Body, cfg: &Cfg, seen: &Seen, complain: &mut impl FnMut(String)) -> [u64; 4] {
        let waits = Waits::compute(body, cfg, &self.waits);
        let mut counts = [0; 4];
        let mut known = BTreeSet::new();
        for wait in waits.all() {
            let address = body.address(wait.inst);
            known.insert((address, wait.counter.name()));
            let Some(dynamic) = seen.waits.get(&(address, wait.counter.name().to_owned())) else { continue };
            let forced: BTreeMap<Place, u64> = merged(body, &dynamic.forced);
            let possible: BTreeSet<Place> = dynamic.possible.iter().map(|place| seen_by(body, *place)).collect();
            let edges: BTreeMap<Place, Certainty> =
                wait.operations.iter().map(|edge| (place_of(body, edge.operation), edge.certainty)).collect();
            let at = format!("{:#x} {} {}", address, wait.counter.name(), wait.count);
            for place in forced.keys().chain(&possible).filter(|place| !edges.contains_key(place)) {
                complain(format!("the wait at {at} waited for {place:x?}, which is none of {edges:x?}"));
            }
            for (place, _) in edges.iter().filter(|(_, certainty)| **certainty == Certainty::Must) {
                let times = forced.get(place).copied().unwrap_or(0);
                if times != dynamic.executions {
                    complain(format!(
                        "the wait at {at} must wait for {place:x?}, and did {times} times of {}",
                        dynamic.executions
                    ));
                }
                counts[3] += 1;
            }
            counts[0] += 1;
            counts[1] += edges.len() as u64;
            counts[2] +=
                edges.keys().filter(|place| !forced.contains_key(place) && !possible.contains(place)).count() as u64;
        }
        for (address, counter) in seen.waits.keys().filter(|(address, _)| body.at(*address).is_some()) {
            if !known.contains(&(*address, counter.as_str())) {
                complain(format!("{address:#x} waited for {counter}, and is not known to"));
            }
        }
        counts
    }

    fn values_of(&self, body: &Body, cfg: &Cfg, seen: &Seen, complain: &mut impl FnMut(String)) -> [u64; 3] {
        let definitions = Definitions::new(body, cfg, &self.values);
        let indexing = Indexing::of(body);
        let mut counts = [0; 3];
        for (&(address, reg), places) in &seen.values {
            let Some(id) = body.at(address) else { continue };
            if !Accesses::at(body, id, &indexing).reads.contains(reg) {
                complain(format!("{} at {address:#x} read {reg:?}, and is not known to", body.inst(id).name()));
            }
            let reaching: BTreeSet<Place> = definitions
                .reaching(id, reg)
                .into_iter()
                .map(|definition| match definition {
                    Definition::Entry => Place::Caller,
                    Definition::Inst(id) => Place::Here(body.address(id)),
                    Definition::Call(id) => Place::Callee(body.address(id)),
                })
                .collect();
            let places: BTreeSet<Place> = places.iter().map(|place| seen_by(body, *place)).collect();
            for place in places.difference(&reaching) {
                let name = body.inst(id).name();
                complain(format!(
                    "{name} at {address:#x} read {reg:?} from {place:x?}, which is none of {reaching:x?}"
                ));
            }
            counts[0] += 1;
            counts[1] += reaching.len() as u64;
            counts[2] += reaching.difference(&places).count() as u64;
        }
        counts
    }
}

/// As the body sees it: what another did that ended in it is its caller's.
pub fn seen_by(body: &Body, place: Place) -> Place {
    match place {
        Place::Here(address) | Place::Callee(address) if body.at(address).is_none() => Place::Caller,
        place => place,
    }
}

fn merged(body: &Body, forced: &BTreeMap<Place, u64>) -> BTreeMap<Place, u64> {
    let mut all = BTreeMap::new();
    for (place, times) in forced {
        *all.entry(seen_by(body, *place)).or_default() += times;
    }
    all
}

pub fn place_of(body: &Body, operation: Operation) -> Place {
    match operation {
        Operation::Caller => Place::Caller,
        Operation::Inst(id) => Place::Here(body.address(id)),
        Operation::Callee(id) => Place::Callee(body.address(id)),
    }
}
