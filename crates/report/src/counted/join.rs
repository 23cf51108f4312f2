//! Joining a profile with code piece by piece: which counts belong to which instruction, of whose runs they are, and
//! what did not run.
//!
//! A counter belongs to an address, and several kernels may run what is there: a function is run by all that call it.
//! Each of them has counters of its own, and those of one address are added up. What the profile has no counts of is
//! said beside them: kernels that were refused or did not run, and functions whose originals may have run uncounted.
//! Executions of whole blocks are given only where nothing of that is missing.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::{CountedKernel, CountedText, Uncounted, UncountedKernel};
use crate::disassembly::{CodeKind, CodeText};
use crate::style::counted;
use wavetap_amd_code::{always_returns, begins_after_entry, graph};
use wavetap_amdgpu::Target;
use wavetap_analysis::cfg::{BodyId, Cfg, Program};
use wavetap_analysis::kernel::{Body, Flow, Image};
use wavetap_base::error::{Error, Result, ResultExt};
use wavetap_code::Entries;
use wavetap_object::code_object::{CodeObject, Kernel, demangle, digest};
use wavetap_object::offload_bundle::{Input, location};
use wavetap_object::selection::{Opened, Selection};
use wavetap_profile::file::{KernelTotals, Origin, Profile, SiteTotals};
use wavetap_profile::map::{EVERY_KERNEL, Refused};
use wavetap_profile::probes::branches::BranchCounts;
use wavetap_profile::schema::Counts;
use wavetap_slice::counts::{BlockCounts, KernelCounts};

/// What a profile knows a code object by.
#[derive(Debug)]
pub struct CountedObject<'a> {
    digest: String,
    target: String,
    code: CodeObject<'a>,
}

impl<'a> CountedObject<'a> {
    /// MD5 of the object, by which profiles know it.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The objects of an input, those of the named entries of bundles among them. Of all targets: that the selected
    /// code did not run does not make it another file's.
    ///
    /// # Errors
    /// As [`Selection::objects`].
    pub fn all(input: &'a Input<'_>, entries: &[String]) -> Result<Vec<CountedObject<'a>>> {
        let (mut objects, all): (Vec<CountedObject<'a>>, _) = (Vec::new(), Selection::default());
        for found in all.objects(input, &[])?.into_iter().chain(all.objects(input, entries)?) {
            // One that cannot be read is no object that was counted.
            let Ok(code) = CodeObject::parse(found.bytes) else { continue };
            let digest = digest(found.bytes);
            if !objects.iter().any(|object| object.digest == digest) {
                objects.push(CountedObject { target: found.target_id(&code), digest, code });
            }
        }
        Ok(objects)
    }

    fn has(&self, refused: &Refused) -> bool {
        refused.target == self.target && (refused.name == EVERY_KERNEL || self.code.kernel(&refused.name).is_some())
    }
}

/// Refuses a profile of another input than the one with these objects.
///
/// # Errors
/// Malformed if none of what the profile names is in them.
pub fn check(profile: &Profile, objects: &[CountedObject<'_>]) -> Result<()> {
    let counted = |kernel: &KernelTotals| objects.iter().any(|object| object.digest == kernel.object);
    let missing = match (profile.kernels.as_slice(), profile.refused.as_slice()) {
        ([], []) => return Ok(()),
        // A refusal does not say of which object it is.
        ([], refused) if refused.iter().any(|refused| objects.iter().any(|object| object.has(refused))) => {
            return Ok(());
        }
        ([], _) => "none of the kernels that it names",
        (kernels, _) if kernels.iter().any(counted) => return Ok(()),
        _ => "none of its code objects",
    };
    let rewritten = objects.iter().any(|object| object.code.is_rewritten());
    let hint = if rewritten { "; this one was rewritten, and counts belong to the original" } else { "" };
    Err(Error::malformed(format!("the profile is of another file: {missing} is in this one{hint}")))
}

/// What a profile has of other builds of these objects' kernels, a sentence for each.
#[must_use]
pub fn other_builds(profile: &Profile, objects: &[CountedObject<'_>]) -> Vec<String> {
    let is_other = |kernel: &&KernelTotals| {
        let of_kernel = || objects.iter().filter(|object| object.target == kernel.target);
        !objects.iter().any(|object| object.digest == kernel.object)
            && of_kernel().any(|object| object.code.kernel(&kernel.name).is_some())
    };
    let sentence = |kernel: &KernelTotals| {
        let dispatches = counted(kernel.dispatches, "dispatch is", "dispatches are");
        format!("{}: {dispatches} of another build, with code digest {}", kernel.demangled, kernel.object)
    };
    profile.kernels.iter().filter(is_other).map(sentence).collect()
}

/// A profile that is of the input at hand.
#[derive(Debug)]
pub struct ProfileOfInput<'p> {
    profile: &'p Profile,
    /// Targets and names of refused kernels that are in several objects: nothing says which of them was refused.
    ambiguous: BTreeSet<(&'p str, &'p str)>,
}

impl<'p> ProfileOfInput<'p> {
    /// `entries` are the ids of entries of bundles that are meant, besides those that the HIP runtime will see;
    /// `opened` is what is to be shown.
    ///
    /// # Errors
    /// As [`check`]; unsupported if something that is to be shown was rewritten.
    pub fn of(
        profile: &'p Profile,
        input: &Input<'_>,
        entries: &[String],
        opened: &[Opened<'_>],
    ) -> Result<ProfileOfInput<'p>> {
        let objects = CountedObject::all(input, entries)?;
        check(profile, &objects)?;
        if let Some(rewritten) = opened.iter().find(|object| object.code.is_rewritten()) {
            let error = Error::unsupported("this code was rewritten, and counts belong to the original");
            return Err(error).within(|| location(rewritten.place));
        }
        let several = |refused: &&Refused| objects.iter().filter(|object| object.has(refused)).count() > 1;
        let ambiguous =
            profile.refused.iter().filter(several).map(|refused| (&*refused.target, &*refused.name)).collect();
        Ok(ProfileOfInput { profile, ambiguous })
    }

    /// What of it is of one object. `target` is its processor.
    ///
    /// # Errors
    /// Unsupported if the profile has a kernel twice with different sites; limit if a sum does not fit 64 bits.
    pub fn object(
        &self,
        object: &Opened<'_>,
        digest: &str,
        target: Target,
        image: &Image<'_>,
    ) -> Result<ObjectCounts<'p>> {
        let program = Program::of(target, image);
        let runs = object.code.kernels().iter().map(|kernel| self.run(kernel, object, digest, &program));
        let runs = runs.collect::<Result<Vec<Run<'p>>>>()?;
        let shared = shared(&program);
        let jumps = |body: &Body| body.ids().any(|inst| body.flow(inst) == Flow::IndirectJump);
        let jumps = program.bodies().iter().any(jumps);
        Ok(ObjectCounts { profile: self.profile, runs, program, shared, jumps })
    }

    fn run(&self, kernel: &Kernel, object: &Opened<'_>, digest: &str, program: &Program) -> Result<Run<'p>> {
        let mut all =
            self.profile.kernels.iter().filter(|totals| totals.object == digest && totals.name == kernel.name);
        let mut totals = all.next().map(Cow::Borrowed);
        for more in all {
            totals.as_mut().map(|totals| totals.to_mut().merge(more)).transpose()?;
        }
        let body = program.at(kernel.entry);
        let callees = body.map(|id| program.callees(id));
        let mut reached: BTreeSet<BodyId> = callees.iter().flat_map(|callees| callees.bodies.iter().copied()).collect();
        reached.extend(body);
        Ok(Run {
            name: kernel.name.clone(),
            entry: kernel.entry,
            also_begins: begins_after_entry(kernel),
            why: self.why(kernel, &object.target_id),
            missing: self.missing(kernel, digest),
            totals,
            reached,
            unknown: callees.is_none_or(|callees| callees.unknown),
        })
    }

    /// The dispatches of a kernel that are known not to be counted.
    fn missing(&self, kernel: &Kernel, digest: &str) -> Vec<Uncounted> {
        let of_kernel = self
            .profile
            .uncounted
            .iter()
            .filter(|uncounted| uncounted.object == digest && uncounted.name == kernel.name);
        of_kernel
            .map(|uncounted| Uncounted::Dispatches {
                dispatches: uncounted.dispatches,
                detail: uncounted.detail.clone(),
            })
            .collect()
    }

    /// Why there may be no counts of a kernel.
    fn why(&self, kernel: &Kernel, target: &str) -> Uncounted {
        let named =
            |name: &str| self.profile.refused.iter().find(|refused| refused.target == target && refused.name == name);
        match named(&kernel.name).or_else(|| named(EVERY_KERNEL)) {
            Some(Refused { target, name, reason, detail, .. }) => {
                let (reason, detail) = (reason.clone(), detail.clone());
                // An object whose kernels are not known is maybe another one.
                if name == EVERY_KERNEL || self.ambiguous.contains(&(target, name)) {
                    Uncounted::PerhapsRefused { reason, detail }
                } else {
                    Uncounted::Refused { reason, detail }
                }
            }
            // The emulator's trace leaves out nothing that ran.
            None if self.profile.origin == Origin::Trace && self.profile.has_ended() => Uncounted::NotDispatched,
            None => Uncounted::NotCounted,
        }
    }
}

/// Bodies that have instructions in common, both ways.
fn shared(program: &Program) -> BTreeMap<BodyId, BTreeSet<BodyId>> {
    let bodies = program.ids().map(|id| (id, program.body(id)));
    let mut places: Vec<(u64, BodyId)> =
        bodies.flat_map(|(id, body)| body.ids().map(move |inst| (body.address(inst), id))).collect();
    places.sort_unstable();
    let mut shared: BTreeMap<BodyId, BTreeSet<BodyId>> = BTreeMap::new();
    for place in places.chunk_by(|a, b| a.0 == b.0).filter(|place| place.len() > 1) {
        for (_, id) in place {
            shared.entry(*id).or_default().extend(place.iter().map(|(_, other)| *other).filter(|other| other != id));
        }
    }
    shared
}

/// A kernel, and what of the profile is of it.
#[derive(Debug)]
struct Run<'p> {
    name: String,
    entry: u64,
    /// Where its waves may begin instead of at its entry, if they may.
    also_begins: Option<u64>,
    totals: Option<Cow<'p, KernelTotals>>,
    /// Why there are no totals, if there are none.
    why: Uncounted,
    /// Dispatches that are not in the totals.
    missing: Vec<Uncounted>,
    /// The bodies that it can run, its own included.
    reached: BTreeSet<BodyId>,
    /// Whether it can run others, through pointers.
    unknown: bool,
}

/// What a profile knows of the code of one object.
#[derive(Debug)]
pub struct ObjectCounts<'p> {
    profile: &'p Profile,
    /// By kernel.
    runs: Vec<Run<'p>>,
    program: Program,
    shared: BTreeMap<BodyId, BTreeSet<BodyId>>,
    /// Whether some body jumps to an unknown place, maybe into the middle of a function.
    jumps: bool,
}

impl ObjectCounts<'_> {
    /// Puts the counts of a piece of code to its instructions and blocks.
    ///
    /// # Errors
    /// Limit if a sum does not fit 64 bits; malformed if kernels count the same instruction in different ways.
    pub fn annotate(&self, code: &mut CodeText) -> Result<()> {
        // The bodies that may run what is here: its own first.
        let own = self.program.at(code.address);
        let sharing = own.and_then(|id| self.shared.get(&id));
        let bodies: Vec<BodyId> = own.into_iter().chain(sharing.into_iter().flatten().copied()).collect();
        let names: Vec<Cow<'_, str>> = bodies.iter().map(|id| demangle(self.program.body(*id).name())).collect();
        let mut counted =
            CountedText { complete: self.profile.has_ended(), kernels: Vec::new(), uncounted: Vec::new(), more: false };
        let mut sites: BTreeMap<SiteKey, SiteTotals> = BTreeMap::new();
        for run in &self.runs {
            let itself = code.kind == CodeKind::Kernel && run.entry == code.address;
            let runs_it = itself || bodies.iter().any(|id| run.reached.contains(id));
            let uncounted =
                |why| UncountedKernel { name: run.name.clone(), demangled: demangle(&run.name).into_owned(), why };
            if runs_it {
                counted.uncounted.extend(run.missing.iter().cloned().map(uncounted));
            }
            let Some(totals) = &run.totals else {
                if runs_it && run.missing.is_empty() {
                    counted.uncounted.push(uncounted(run.why.clone()));
                }
                counted.more |= code.kind != CodeKind::Kernel && run.unknown && run.why != Uncounted::NotDispatched;
                continue;
            };
            let is_here = |name: &String| name == "?" || names.iter().any(|here| here == name);
            let original = code.kind != CodeKind::Kernel && totals.uncounted_callees.iter().any(is_here);
            let here = || totals.sites.iter().filter(|site| (code.address..code.end).contains(&site.address));
            if here().next().is_some() || (runs_it && !original) {
                counted.kernels.push(CountedKernel::of(totals));
            } else if runs_it {
                counted.uncounted.push(uncounted(Uncounted::Original));
            }
            counted.more |= original;
            // Added up with a run that was instrumented in another way.
            if runs_it && matches!(run.why, Uncounted::Refused { .. }) {
                counted.uncounted.push(uncounted(run.why.clone()));
            }
            for site in here() {
                add(&mut sites, site).within(|| format!("kernel {}", totals.demangled))?;
            }
        }
        let branches: BTreeMap<u64, BranchCounts> =
            sites.values().filter_map(|site| Some((site.address, BranchCounts::of(&site.counts)?))).collect();
        for inst in code.instructions.iter_mut().filter(|inst| inst.times == 1) {
            inst.counts = branches.get(&inst.address).copied();
        }
        if let Some(own) = own.filter(|_| sharing.is_none() && counted.is_everything()) {
            let sites: Vec<SiteTotals> = sites.into_values().collect();
            self.annotate_blocks(code, own, &counted.kernels, &sites);
        }
        if code.name.is_some() || !counted.kernels.is_empty() {
            code.counted = Some(counted);
        }
        Ok(())
    }

    /// Says how often blocks were executed where that follows. All counts of the piece are there.
    fn annotate_blocks(&self, code: &mut CodeText, own: BodyId, kernels: &[CountedKernel], sites: &[SiteTotals]) {
        let body = self.program.body(own);
        let cfg = Cfg::build(body);
        // What goes into a block comes out of it only if calls return and no jump goes to an unknown place.
        if !always_returns(&self.program, own) {
            return;
        }
        let at = |address| body.at(address);
        let counts = if code.kind == CodeKind::Kernel {
            let Some(run) = self.runs.iter().find(|run| run.entry == code.address) else { return };
            // Others that run it enter it as they like.
            let (Some(totals), [_]) = (run.totals.as_deref(), kernels) else { return };
            let entries = Entries { also_begins: run.also_begins, ..Entries::PLAIN };
            BlockCounts::derive(&graph(&cfg), &at, Some(KernelCounts { totals, entries }))
        } else if self.jumps {
            return;
        } else {
            BlockCounts::derive_entered(&graph(&cfg), &at, sites)
        };
        if !counts.is_consistent() {
            return;
        }
        let by_address: BTreeMap<u64, _> =
            cfg.ids().map(|id| (body.address(cfg.block(id).first), counts.of(id))).collect();
        for block in &mut code.blocks {
            if let Some((Some(executions), source)) = by_address.get(&block.address) {
                (block.executions, block.executions_source) = (Some(*executions), Some(*source));
            }
        }
    }
}

/// An address and a probe: kernels that share code count an instruction in the same way.
type SiteKey = (u64, String);

/// Adds the counts of one kernel to those of others.
fn add(sites: &mut BTreeMap<SiteKey, SiteTotals>, site: &SiteTotals) -> Result<()> {
    let key = (site.address, site.counts.kind().probe.to_string());
    let sum =
        sites.entry(key).or_insert_with(|| SiteTotals { counts: Counts::zero(site.counts.kind()), ..site.clone() });
    if sum.counts.kind() != site.counts.kind() {
        return Err(Error::malformed(format!(
            "the counts at {:#x} are of another kind than other kernels' there",
            site.address
        )));
    }
    sum.counts.merge(&site.counts)
}
