//! The emulator's own counts, in the form of a profile: the oracle that a profile of counters is compared with.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use wavetap::code_object::{CodeObject, LineTable, demangle, digest};
use wavetap::collect::rank;
use wavetap::emulator::{DispatchStats, Trace};
use wavetap::error::Result;
use wavetap::instrument::resources_of;
use wavetap::isa::{self, Inst, Target};
use wavetap::profile::file::{Backend, KernelTotals, Origin, Profile, SiteTotals, Work};
use wavetap::profile::map::{Resources, Site, Source};
use wavetap::profile::schema::KindSchema;

use crate::images::Loaded;
use crate::kernarg::Shape;

/// Collects traces.
pub(crate) struct Tracer {
    profile: Profile,
    places: HashMap<(String, String), usize>,
    region_places: HashMap<(usize, String), usize>,
    objects: HashMap<u32, Names>,
}

/// What is known of an object's addresses.
pub(crate) struct Names {
    /// MD5 of the original code object.
    pub(crate) original: String,
    pub(crate) target: String,
    pub(crate) lines: Option<LineTable>,
}

impl Tracer {
    /// Collects what kernels execute, or for [`Origin::Launches`] only what is launched.
    pub(crate) fn new(origin: Origin) -> Self {
        let (places, region_places, objects) = Default::default();
        Tracer { profile: rank::profile(origin, Backend::Emulator), places, region_places, objects }
    }

    /// Whether it is of what kernels execute.
    pub(crate) fn traces(&self) -> bool {
        self.profile.origin == Origin::Trace
    }

    pub(crate) fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The trace so far, for a journal, which leaves it as it is.
    pub(crate) fn profile_mut(&mut self) -> &mut Profile {
        &mut self.profile
    }

    pub(crate) fn finish(&mut self) {
        self.profile.end();
    }

    /// Adds a dispatch of `kernel` and gives the kernel's place.
    pub(crate) fn add(
        &mut self,
        (kernel, region): (&str, Option<&str>),
        loaded: &Loaded,
        target: Target,
        stats: &DispatchStats,
        shape: &Shape,
    ) -> Result<usize> {
        let id = loaded.object.id;
        let names = match self.objects.entry(id.0) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => entry.insert(Names::of(loaded)?),
        };
        let place = *self.places.entry((names.original.clone(), kernel.to_owned())).or_insert_with(|| {
            let mut totals = empty(kernel, names);
            if self.profile.origin == Origin::Launches {
                totals.before = needs(kernel, loaded, target);
            }
            self.profile.kernels.push(totals);
            self.profile.kernels.len() - 1
        });
        let of_region = region.map(|name| {
            *self.region_places.entry((place, name.to_owned())).or_insert_with(|| {
                self.profile.regions.push(self.profile.kernels[place].without_counts(name.to_owned()));
                self.profile.regions.len() - 1
            })
        });
        let Profile { kernels, regions, .. } = &mut self.profile;
        let rows = kernels.get_mut(place).into_iter().chain(of_region.and_then(|at| regions.get_mut(at)));
        let mut rows: Vec<&mut KernelTotals> = rows.collect();
        for totals in &mut rows {
            totals.dispatches += 1;
            shape.launched().add_to(&mut totals.launches);
            totals.waves += stats.waves;
            let work = totals.work.get_or_insert_default();
            work.instructions += stats.instructions;
            work.global_bytes += stats.global_bytes;
            work.lds_bytes += stats.lds_bytes;
        }
        let Some(trace) = &stats.trace else { return Ok(place) };
        let code = CodeObject::parse(&loaded.bytes)?;
        let original = Originals::of(loaded, kernel, &code);
        let found =
            trace.sites(id).into_iter().filter_map(|(address, counts)| Some((original.address(address)?, counts)));
        let of_map = original.sites.iter().filter(|site| !Trace::finds(&site.kind));
        let of_map = of_map.filter_map(|site| Some((site.address, trace.counts(&site.kind, id, &site.rewritten)?)));
        for (address, counts) in found.chain(of_map) {
            let kind = counts.kind();
            for totals in &mut rows {
                match totals.sites.binary_search_by_key(&(address, &*kind.probe, &*kind.name), SiteTotals::key) {
                    Ok(at) => totals.sites[at].counts.merge(&counts)?,
                    Err(at) => {
                        let instruction = original.instruction(&code, target, address);
                        let source = names.source(address);
                        let counts = counts.clone();
                        totals.sites.insert(at, SiteTotals { address, instruction, source, counts });
                    }
                }
            }
        }
        Ok(place)
    }
}

/// From addresses of a rewritten kernel to those of the original. Instructions that the rewrite added have none.
pub(crate) struct Originals {
    /// By rewritten address; `None` when the kernel runs as it was compiled.
    rewritten: Option<BTreeMap<u64, u64>>,
    /// Text of the counted instructions, by original address.
    texts: HashMap<u64, String>,
    /// Where original code ends.
    original_end: u64,
    /// The sites that are counted.
    sites: Vec<CountedSite>,
}

/// A site of a rewritten kernel.
struct CountedSite {
    /// Original address.
    address: u64,
    kind: Arc<KindSchema>,
    /// Where its instruction is now.
    rewritten: Vec<u64>,
}

impl Originals {
    pub(crate) fn of(loaded: &Loaded, kernel: &str, code: &CodeObject<'_>) -> Self {
        let map = loaded
            .counters
            .as_ref()
            .and_then(|counters| counters.map.kernels.iter().find(|mapped| mapped.name == kernel));
        let Some(map) = map else {
            return Originals { rewritten: None, texts: HashMap::new(), original_end: 0, sites: Vec::new() };
        };
        let mut moved: HashMap<u64, Vec<u64>> = HashMap::new();
        map.addresses.iter().for_each(|pair| moved.entry(pair.original).or_default().push(pair.rewritten));
        let rewritten = |address: u64| moved.get(&address).cloned().unwrap_or_default();
        let site = |site: &Site| CountedSite {
            address: site.address,
            kind: Arc::clone(&site.kind),
            rewritten: rewritten(site.address),
        };
        Originals {
            rewritten: Some(map.addresses.iter().map(|pair| (pair.rewritten, pair.original)).collect()),
            original_end: code.elf().section(".text").map_or(0, |section| section.address + section.size),
            sites: map.sites.iter().map(site).collect(),
            texts: map.sites.iter().map(|site| (site.address, site.instruction.clone())).collect(),
        }
    }

    pub(crate) fn address(&self, address: u64) -> Option<u64> {
        match &self.rewritten {
            None => Some(address),
            // A function that the rewrite left alone is still where it was, below all new code.
            Some(map) => map.get(&address).copied().or_else(|| (address < self.original_end).then_some(address)),
        }
    }

    pub(crate) fn instruction(&self, code: &CodeObject<'_>, target: Target, address: u64) -> String {
        self.texts.get(&address).cloned().unwrap_or_else(|| text_at(code, target, address).unwrap_or_default())
    }
}

/// The longest instruction: a 64-bit encoding with a 64-bit literal.
const LONGEST: u64 = 12;

/// The instruction at an original address.
pub(crate) fn instruction_at(code: &CodeObject<'_>, target: Target, address: u64) -> Option<Inst> {
    let bytes = (4..=LONGEST).rev().step_by(4).find_map(|length| code.bytes_at(address, length).ok())?;
    isa::decode(target, bytes).ok()
}

/// The same, printed.
fn text_at(code: &CodeObject<'_>, target: Target, address: u64) -> Option<String> {
    Some(isa::print(target, &instruction_at(code, target, address)?))
}

impl Names {
    pub(crate) fn of(loaded: &Loaded) -> Result<Self> {
        let (original, target) = identity(loaded)?;
        Ok(Names { original, target, lines: CodeObject::parse(&loaded.bytes)?.line_table()? })
    }

    /// The source line of an original address.
    pub(crate) fn source(&self, address: u64) -> Option<Source> {
        let place = self.lines.as_ref()?.location(address)?;
        // Line 0 is DWARF's for code of no line.
        (place.line > 0).then_some(Source { file: place.file, line: place.line })
    }
}

/// MD5 of the original of a code object, and its target id.
pub(crate) fn identity(loaded: &Loaded) -> Result<(String, String)> {
    Ok(match &loaded.counters {
        Some(counters) => (counters.map.original.clone(), counters.map.target.clone()),
        None => (digest(&loaded.bytes), CodeObject::parse(&loaded.bytes)?.target_id()),
    })
}

/// What a kernel that was not rewritten needs of the machine; its code is not measured.
fn needs(kernel: &str, loaded: &Loaded, target: Target) -> Option<Resources> {
    resources_of(target, CodeObject::parse(&loaded.bytes).ok()?.kernel(kernel)?)
}

fn empty(kernel: &str, names: &Names) -> KernelTotals {
    KernelTotals {
        name: kernel.to_owned(),
        demangled: demangle(kernel).into_owned(),
        target: names.target.clone(),
        object: names.original.clone(),
        work: Some(Work::default()),
        ..KernelTotals::default()
    }
}
