//! What waits waited for and where values came from, collected over a run by code object.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use wavetap::emulator::{DispatchStats, Origin};
use wavetap::error::Result;
use wavetap::isa::{Reg, RegFile};
use wavetap::profile::origins::{
    JumpRecord, ObjectOrigins, OriginPlace, OriginRecord, OriginsFile, OutstandingRecord, SCHEMA, ValueRecord,
    WaitRecord,
};

use crate::images::Loaded;
use crate::trace::Names;

type Counts = BTreeMap<(OriginPlace, Option<u64>), u64>;

#[derive(Default)]
struct Wait {
    executions: u64,
    forced: Counts,
    possible: Counts,
}

#[derive(Default)]
struct Object {
    digest: String,
    target: String,
    waits: BTreeMap<(u64, &'static str), Wait>,
    values: BTreeMap<(u64, Reg), Counts>,
    outstanding: BTreeMap<(u64, &'static str), Counts>,
    jumps: BTreeMap<u64, BTreeSet<u64>>,
}

/// Collects origins.
#[derive(Default)]
pub(crate) struct OriginCollector {
    objects: HashMap<u32, Object>,
}

fn place(origin: &Origin) -> (OriginPlace, Option<u64>) {
    match origin {
        Origin::Here(place) => (OriginPlace::Here, Some(place.address)),
        Origin::Callee { call, .. } => (OriginPlace::Callee, Some(call.address)),
        Origin::Caller(_) => (OriginPlace::Caller, None),
    }
}

/// Adds the counts of a dispatch.
fn add(counts: &mut Counts, origins: &BTreeMap<Origin, u64>) {
    for (origin, times) in origins {
        *counts.entry(place(origin)).or_default() += times;
    }
}

fn records(counts: &Counts) -> Vec<OriginRecord> {
    counts.iter().map(|(&(place, address), &times)| OriginRecord { place, address, times }).collect()
}

fn register(reg: Reg) -> String {
    let file = match reg.file {
        RegFile::Scalar => 's',
        RegFile::Vector => 'v',
        RegFile::Accum => 'a',
    };
    format!("{file}{}", reg.first)
}

impl OriginCollector {
    /// Adds a dispatch of a kernel of this object.
    pub(crate) fn add(&mut self, loaded: &Loaded, stats: &DispatchStats) -> Result<()> {
        let Some(origins) = &stats.origins else { return Ok(()) };
        let id = loaded.object.id;
        let object = match self.objects.entry(id.0) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                let names = Names::of(loaded)?;
                entry.insert(Object { digest: names.original, target: names.target, ..Object::default() })
            }
        };
        for ((place, counter), wait) in origins.waits.iter().filter(|((place, _), _)| place.object == id) {
            let mine = object.waits.entry((place.address, counter.name())).or_default();
            mine.executions += wait.executions;
            add(&mut mine.forced, &wait.forced);
            add(&mut mine.possible, &wait.possible);
        }
        for (place, registers) in origins.values.iter().filter(|(place, _)| place.object == id) {
            for (reg, values) in registers {
                add(object.values.entry((place.address, *reg)).or_default(), values);
            }
        }
        for ((at, counter), operations) in origins.outstanding.iter().filter(|((at, _), _)| at.object == id) {
            let mine = object.outstanding.entry((at.address, counter.name())).or_default();
            mine.extend(operations.iter().map(|origin| (place(origin), 1)));
        }
        for (from, targets) in origins.jumps.iter().filter(|(from, _)| from.object == id) {
            let inside = targets.iter().filter(|target| target.object == id).map(|target| target.address);
            object.jumps.entry(from.address).or_default().extend(inside);
        }
        Ok(())
    }

    pub(crate) fn file(&self) -> OriginsFile {
        let object = |object: &Object| ObjectOrigins {
            object: object.digest.clone(),
            target: object.target.clone(),
            waits: object
                .waits
                .iter()
                .map(|(&(address, counter), wait)| WaitRecord {
                    address,
                    counter: counter.to_owned(),
                    executions: wait.executions,
                    forced: records(&wait.forced),
                    possible: records(&wait.possible),
                })
                .collect(),
            values: object
                .values
                .iter()
                .map(|(&(address, reg), counts)| ValueRecord {
                    address,
                    register: register(reg),
                    origins: records(counts),
                })
                .collect(),
            outstanding: object
                .outstanding
                .iter()
                .map(|(&(address, counter), operations)| OutstandingRecord {
                    address,
                    counter: counter.to_owned(),
                    operations: records(operations),
                })
                .collect(),
            jumps: object
                .jumps
                .iter()
                .map(|(&address, targets)| JumpRecord { address, targets: targets.iter().copied().collect() })
                .collect(),
        };
        OriginsFile { schema: SCHEMA.to_owned(), objects: self.objects.values().map(object).collect() }
    }
}
