//! Which source lines, branches and functions were executed, from counts of blocks and branches.
//!
//! An instruction is executed as often as its block, and a body (a kernel or a function) as its callers count it. The
//! executions of a line in a body are those of some of its blocks, added up: of a block that another block of the line
//! dominates within the same innermost loop, that other block alone, as waves pass it before. Code that was inlined at
//! different places counts as often as at each of them. So a line was executed if and only if its number is above 0,
//! and the numbers of two runs add up to those of their merged profile: which blocks count follows from the code.
//!
//! What may have been executed and was not counted is missing: its number is what is known, and where none is known it
//! has none.

use std::collections::{BTreeMap, BTreeSet};

use super::mix::{KernelToCount, totals};
use super::object::{Object, objects};
use wavetap_amd_code::begins_after_entry;
use wavetap_amdgpu::{Branch, Condition, MaskOp, Reg};
use wavetap_analysis::cfg::{BodyId, Cfg};
use wavetap_analysis::dataflow::Summaries;
use wavetap_analysis::kernel::{Body, BodyKind};
use wavetap_base::entity::{BlockId, InstId};
use wavetap_base::error::{Error, Result, ResultExt};
use wavetap_explain::coverage::{BranchCoverage, Coverage, CoverageUnit, FunctionCoverage};
use wavetap_instrument::probe::branch_sites;
use wavetap_mix::{CountedInstruction, Executes, SiteCounts};
use wavetap_object::code_object::{SourceLocation, demangle};
use wavetap_object::offload_bundle::{Input, location};
use wavetap_object::selection::Selection;
use wavetap_profile::file::{KernelTotals, Profile};
use wavetap_profile::launches::NotCounted;
use wavetap_profile::map::Source;
use wavetap_profile::probes::branches::{BranchCounts, EXEC};
use wavetap_report::counted::{self, CountedObject};

/// What coverage is worked out from.
pub struct CoverageInputs<'a> {
    /// What was counted.
    pub profile: &'a Profile,
    /// What executions are counted by.
    pub unit: CoverageUnit,
    /// The name that a source file is given, from that in the debug information.
    pub file: &'a dyn Fn(&str) -> String,
}

impl std::fmt::Debug for CoverageInputs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CoverageInputs").field("unit", &self.unit).finish_non_exhaustive()
    }
}

/// The coverage of the selected kernels of an input and the functions that they call, or of all code: of the selected
/// targets, or those of which code was dispatched.
///
/// # Errors
/// Malformed or unsupported if the input cannot be decoded; malformed if the profile is of another input; unsupported
/// if the run did not end, its code has no line table, or nothing of what the profile has says what was executed;
/// limit if a sum does not fit 64 bits.
pub fn coverage(data: &[u8], selection: &Selection, inputs: &CoverageInputs<'_>) -> Result<Coverage> {
    let profile = inputs.profile;
    let input = Input::parse(data)?;
    let mut coverage = Coverage::default();
    let mut objects = objects(&input, selection, &mut coverage.unread)?;
    counted::check(profile, &CountedObject::all(&input, &[])?)?;
    if !profile.has_ended() {
        return Err(Error::unsupported(
            "the run of the profile did not end, so what it did not execute is not known: coverage needs a run that \
                ended",
        ));
    }
    let counts =
        |kernel: &KernelTotals| kernel.sites.is_empty() || SiteCounts::of(kernel).has_blocks() || has_branches(kernel);
    if !profile.kernels.is_empty() && !profile.kernels.iter().any(counts) {
        return Err(Error::unsupported(
            "the profile has no counts of branches or basic blocks: make it with `wavetap profile --probe \
                branches,blocks`",
        ));
    }
    if selection.targets.is_empty() {
        let ran = |object: &&Object<'_>| {
            profile.kernels.iter().any(|kernel| kernel.object == object.digest)
                || profile.uncounted.iter().any(|uncounted| uncounted.object == object.digest)
        };
        let targets: BTreeSet<String> = objects.iter().filter(ran).map(|object| object.target_id.clone()).collect();
        if targets.is_empty() {
            return Err(Error::unsupported(
                "no kernel of this file was dispatched in the run of the profile: --target GFX says for which target \
                    the lines of its code are not executed",
            ));
        }
        objects.retain(|object| targets.contains(&object.target_id));
    }
    with_lines(&mut objects, &mut coverage.missing)?;
    let mut branches = Branches::default();
    let with_branches = profile.kernels.iter().any(has_branches);
    for object in &objects {
        let place = || location(object.place);
        let mut of_object = ObjectCoverage::new(object, selection, inputs);
        of_object.count(&mut coverage.missing).within(place)?;
        of_object.add_lines(&mut coverage).within(place)?;
        if with_branches {
            of_object.add_branches(&mut branches)?;
        }
    }
    for ((file, line), of_line) in branches {
        let known: Vec<BranchCoverage> = of_line.into_iter().flatten().collect();
        if !known.is_empty() {
            coverage.files.entry(file).or_default().branches.insert(line, known);
        }
    }
    Ok(coverage)
}

/// By file and line: its branches, none for those that are missing.
type Branches = BTreeMap<(String, u32), Vec<Option<BranchCoverage>>>;

/// A line, and the calls through which it was inlined, innermost first.
type InlinedLine = (Source, Vec<Option<SourceLocation>>);

fn has_branches(kernel: &KernelTotals) -> bool {
    kernel.sites.iter().any(|site| BranchCounts::of(&site.counts).is_some())
}

/// Leaves the objects that have line tables.
fn with_lines(objects: &mut Vec<Object<'_>>, missing: &mut Vec<String>) -> Result<()> {
    let without: Vec<String> = objects
        .iter()
        .filter(|object| !object.has_lines())
        .map(|object| match object.code.line_table() {
            Err(error) => format!("{}: its debug information is damaged: {error}", location(object.place)),
            Ok(_) => format!(
                "{}: the code for {} has no line table: compile it with -g or -gline-tables-only",
                location(object.place),
                object.target_id
            ),
        })
        .collect();
    objects.retain(Object::has_lines);
    match without.first() {
        Some(first) if objects.is_empty() => Err(Error::unsupported(first.clone())),
        _ => {
            missing.extend(without);
            Ok(())
        }
    }
}

/// A number of which a part may be missing.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    known: u64,
    missing: bool,
}

impl Sum {
    fn add(&mut self, value: Option<u64>) -> Result<()> {
        match value {
            Some(value) => self.known = sum(self.known, value)?,
            None => self.missing = true,
        }
        Ok(())
    }

    fn merge(&mut self, other: Sum) -> Result<()> {
        self.missing |= other.missing;
        self.add(Some(other.known))
    }
}

fn sum(one: u64, other: u64) -> Result<u64> {
    one.checked_add(other).ok_or_else(|| Error::limit("a sum of executions does not fit 64 bits"))
}

/// What was counted of a body, over all kernels.
#[derive(Debug, Clone)]
struct BodyCounts {
    /// By instruction: executions in the unit of the coverage.
    instructions: Vec<Sum>,
    /// By instruction: executions by waves.
    waves: Vec<Sum>,
    /// By instruction: whether it works in active lanes.
    in_lanes: Vec<bool>,
    /// Kernels that ran it, as far as is known.
    kernels: u32,
    missing: bool,
}

/// What was counted of a branch.
#[derive(Debug, Clone, Copy, Default)]
struct BranchSum {
    executions: u64,
    sides: [u64; 2],
    kernels: u32,
}

/// The code of an object with what was counted of it.
struct ObjectCoverage<'a> {
    object: &'a Object<'a>,
    selection: &'a Selection,
    inputs: &'a CoverageInputs<'a>,
    /// By body; none for those that are not to be covered.
    bodies: Vec<Option<BodyCounts>>,
    /// By address.
    branches: BTreeMap<u64, BranchSum>,
}

impl<'a> ObjectCoverage<'a> {
    fn new(object: &'a Object<'a>, selection: &'a Selection, inputs: &'a CoverageInputs<'a>) -> ObjectCoverage<'a> {
        let program = &object.program;
        let of_body = |id: BodyId| {
            let body = program.body(id);
            BodyCounts {
                instructions: vec![Sum::default(); body.len()],
                waves: vec![Sum::default(); body.len()],
                in_lanes: vec![false; body.len()],
                kernels: 0,
                missing: false,
            }
        };
        let is_selected = |id: &BodyId| {
            let body = program.body(*id);
            body.kind() == BodyKind::Kernel && selection.has_kernel(body.name())
        };
        let everything = selection.kernels.is_empty();
        let selected: BTreeSet<BodyId> = program
            .ids()
            .filter(is_selected)
            .flat_map(|id| program.callees(id).bodies.into_iter().chain([id]))
            .collect();
        let bodies = program.ids().map(|id| (everything || selected.contains(&id)).then(|| of_body(id))).collect();
        ObjectCoverage { object, selection, inputs, bodies, branches: BTreeMap::new() }
    }

    /// Adds up what was counted of each kernel.
    fn count(&mut self, missing: &mut Vec<String>) -> Result<()> {
        let (object, profile) = (self.object, self.inputs.profile);
        let program = &object.program;
        let summaries = Summaries::compute(program);
        for (name, address, error) in program.undecodable() {
            if self.selection.kernels.is_empty() || self.selection.has_kernel(name) {
                missing.push(format!("{}: not decoded, at {address:#x}: {error}", demangle(name)));
            }
        }
        for id in program.ids() {
            let body = program.body(id);
            if body.kind() != BodyKind::Kernel || !self.selection.has_kernel(body.name()) {
                continue;
            }
            let mut say = |why: &str| missing.push(format!("{}: {why}", demangle(body.name())));
            let uncounted = profile.uncounted.iter().find(|uncounted| {
                uncounted.object == object.digest && uncounted.name == body.name() && may_have_run(uncounted.why)
            });
            if let Some(uncounted) = uncounted {
                say(&format!("dispatches were not counted: {}", uncounted.detail));
                self.may_run(id);
            }
            let Some(totals) = totals(profile, object, body)? else { continue };
            if totals.dropped > 0 || totals.unfinished > 0 {
                let waves = totals.dropped.saturating_add(totals.unfinished);
                say(&format!("counts of {waves} of its {} waves are missing", totals.waves));
                self.may_run(id);
            }
            if program.callees(id).unknown || totals.uncounted_callees.iter().any(|name| name == "?") {
                say("it calls functions whose targets are not known: what they execute is not counted");
                self.may_run_functions();
            } else if let Some(first) = totals.uncounted_callees.first() {
                say(&format!("it calls functions that are not counted: {first}"));
                self.may_run_named(&totals.uncounted_callees);
            }
            self.add_kernel(id, &totals, &summaries)?;
        }
        Ok(())
    }

    /// A kernel may have run uncounted, with all that it may call.
    fn may_run(&mut self, kernel: BodyId) {
        let callees = self.object.program.callees(kernel);
        if callees.unknown {
            self.may_run_functions();
        }
        for id in callees.bodies.into_iter().chain([kernel]) {
            if let Some(body) = &mut self.bodies[id.index()] {
                body.missing = true;
            }
        }
    }

    /// Any function may have run uncounted.
    fn may_run_functions(&mut self) {
        for (id, counts) in self.object.program.ids().zip(&mut self.bodies) {
            if let Some(counts) = counts.as_mut().filter(|_| self.object.program.body(id).kind() != BodyKind::Kernel) {
                counts.missing = true;
            }
        }
    }

    /// Functions with these names, demangled, may have run uncounted.
    fn may_run_named(&mut self, names: &[String]) {
        for (id, counts) in self.object.program.ids().zip(&mut self.bodies) {
            let name = demangle(self.object.program.body(id).name());
            if let Some(counts) = counts.as_mut().filter(|_| names.iter().any(|named| *named == *name)) {
                counts.missing = true;
            }
        }
    }

    /// Adds what was counted of a kernel.
    fn add_kernel(&mut self, id: BodyId, totals: &KernelTotals, summaries: &Summaries) -> Result<()> {
        let program = &self.object.program;
        let counts = SiteCounts::of(totals);
        let kernel = KernelToCount::new(self.object, id, totals, &counts, summaries);
        let mut result = Ok(());
        let begin = self.begin(id);
        let (bodies, unit) = (&mut self.bodies, self.inputs.unit);
        kernel.each_body(|body, _, _, instructions| {
            let Some(at) = program.at(body.entry_address()) else { return };
            let Some(of_body) = &mut bodies[at.index()] else { return };
            of_body.kernels += 1;
            let own = (at == id).then_some(begin).flatten();
            let relevant = instructions.iter().filter(|one| own.is_none_or(|begin| one.address >= begin));
            for one in relevant {
                let index = one.inst.index();
                of_body.in_lanes[index] = one.work.executes == Executes::InActiveLanes;
                let added = of_body.waves[index].add(one.executions);
                let added = added.and_then(|()| of_body.instructions[index].add(value(one, unit)));
                if result.is_ok() {
                    result = added;
                }
            }
        });
        for site in &totals.sites {
            let Some(counts) = BranchCounts::of(&site.counts) else { continue };
            let of_site = self.branches.entry(site.address).or_default();
            let (executions, sides) = match counts {
                BranchCounts::Exec(exec) => {
                    let off = exec.lanes_before.saturating_sub(exec.lanes_after);
                    (exec.executions, [exec.lanes_after, off])
                }
                BranchCounts::Scalar(scalar) => {
                    (scalar.executions, [scalar.taken, scalar.executions.saturating_sub(scalar.taken)])
                }
            };
            of_site.executions = sum(of_site.executions, executions)?;
            for (all, more) in of_site.sides.iter_mut().zip(sides) {
                *all = sum(*all, more)?;
            }
            of_site.kernels += 1;
        }
        result
    }

    /// Where the code of a kernel begins that waves run on hardware with preloaded arguments. The code before loads the
    /// arguments for other hardware, and is not counted.
    fn begin(&self, id: BodyId) -> Option<u64> {
        let body = self.object.program.body(id);
        self.object.code.kernel(body.name()).filter(|_| body.kind() == BodyKind::Kernel).and_then(begins_after_entry)
    }

    /// The bodies that are covered, with what was counted of them.
    fn covered(&self) -> impl Iterator<Item = (BodyId, &Body, &BodyCounts)> {
        let program = &self.object.program;
        program.ids().zip(&self.bodies).filter_map(|(id, counts)| Some((id, program.body(id), counts.as_ref()?)))
    }

    /// Adds the lines and functions of all bodies.
    fn add_lines(&self, coverage: &mut Coverage) -> Result<()> {
        let mut lines: BTreeMap<(String, u32), Sum> = BTreeMap::new();
        let mut seen: BTreeSet<u64> = BTreeSet::new();
        for (id, body, counts) in self.covered() {
            let begin = self.begin(id).unwrap_or(0);
            let is_new = |inst: InstId| body.address(inst) >= begin && seen.insert(body.address(inst));
            let of_body = self.lines_of(body, counts, is_new)?;
            let unknown = of_body.values().filter(|of_line| of_line.missing && !counts.missing).count();
            if unknown > 0 {
                coverage.missing.push(format!(
                    "{}: the executions of {unknown} of its {} lines do not all follow from the counts; `--probe \
                        branches,blocks` counts the most",
                    demangle(body.name()),
                    of_body.len()
                ));
            }
            for (source, of_line) in of_body {
                let name = (self.inputs.file)(&source.file);
                lines.entry((name, source.line)).or_default().merge(of_line)?;
            }
            self.add_function(id, body, counts, coverage)?;
        }
        let is_known = |of_line: &Sum| of_line.known > 0 || !of_line.missing;
        for ((name, line), of_line) in lines.into_iter().filter(|(_, of_line)| is_known(of_line)) {
            let executions = coverage.files.entry(name).or_default().lines.entry(line).or_default();
            *executions = sum(*executions, of_line.known)?;
        }
        Ok(())
    }

    fn add_function(&self, id: BodyId, body: &Body, counts: &BodyCounts, coverage: &mut Coverage) -> Result<()> {
        let begin = self.begin(id).and_then(|begin| body.at(begin)).unwrap_or(body.entry());
        let frames = self.object.frames(body.entry_address());
        let outermost = frames.last().and_then(|frame| frame.location.as_ref());
        // Functions that are only found because they are called have no name in the file.
        let is_named = self.object.image.entry_name(body.entry_address()).is_some();
        let Some(outermost) = outermost.filter(|_| is_named) else { return Ok(()) };
        let line = self.object.declaration(body.entry_address()).unwrap_or(outermost.line);
        let entered = counts.instructions[begin.index()];
        if line == 0 || (entered.known == 0 && (entered.missing || counts.missing)) {
            return Ok(());
        }
        let functions = &mut coverage.files.entry((self.inputs.file)(&outermost.file)).or_default().functions;
        let of = functions.entry(body.name().to_owned()).or_insert(FunctionCoverage { line, executions: 0 });
        of.executions = sum(of.executions, entered.known)?;
        Ok(())
    }

    /// The executions of the lines of a body.
    fn lines_of(
        &self,
        body: &Body,
        counts: &BodyCounts,
        mut is_covered: impl FnMut(InstId) -> bool,
    ) -> Result<BTreeMap<Source, Sum>> {
        let cfg = Cfg::build(body);
        let (dominators, loops) = (cfg.dominators(), cfg.loops());
        // By line and where it was inlined: its blocks, with the instruction that counts.
        let mut places: BTreeMap<InlinedLine, BTreeMap<BlockId, InstId>> = BTreeMap::new();
        for inst in body.ids().filter(|inst| is_covered(*inst)) {
            let Some(source) = self.object.line(body.address(inst)) else { continue };
            let frames = self.object.frames(body.address(inst));
            let calls = frames.into_iter().skip(1).map(|frame| frame.location).collect();
            let first = places.entry((source, calls)).or_default().entry(cfg.block_of(inst)).or_insert(inst);
            if !counts.in_lanes[first.index()] && counts.in_lanes[inst.index()] {
                *first = inst;
            }
        }
        let mut lines: BTreeMap<Source, Sum> = BTreeMap::new();
        for ((source, _), blocks) in places {
            let mut of_place = Sum { known: 0, missing: counts.missing };
            let mut most = 0;
            for (block, inst) in &blocks {
                let is_before = |other: &BlockId| {
                    other != block
                        && loops.innermost(*other) == loops.innermost(*block)
                        && dominators.dominates(*other, *block)
                };
                let of_block = counts.instructions[inst.index()];
                most = most.max(of_block.known);
                if !blocks.keys().any(is_before) {
                    of_place.merge(of_block)?;
                }
            }
            // At least as often as what is known of it.
            if of_place.missing {
                of_place.known = of_place.known.max(most);
            }
            lines.entry(source).or_default().merge(of_place)?;
        }
        Ok(lines)
    }

    /// Adds the branches of all bodies.
    fn add_branches(&self, branches: &mut Branches) -> Result<()> {
        let mut seen: BTreeSet<u64> = BTreeSet::new();
        for (id, body, counts) in self.covered() {
            let cfg = Cfg::build(body);
            let begin = self.begin(id).unwrap_or(0);
            for site in branch_sites(body) {
                let address = body.address(site.inst);
                let repeats = *site.kind != *EXEC && tests_lanes(body, &cfg, site.inst);
                if repeats || address < begin || !seen.insert(address) {
                    continue;
                }
                let Some(source) = self.object.line(address) else { continue };
                let found = self.branches.get(&address).copied().unwrap_or_default();
                let executed = counts.waves[site.inst.index()];
                // Each kernel that ran the code counted it, or did not come here.
                let uncounted = found.kernels < counts.kernels && (executed.known > 0 || executed.missing);
                let missing = counts.missing || uncounted;
                let sides = (found.executions > 0 || found.kernels > 0 && executed.known > 0).then_some(found.sides);
                let is_known = !missing || found.sides.iter().all(|side| *side > 0);
                let of_line = branches.entry(((self.inputs.file)(&source.file), source.line)).or_default();
                let number = of_line.len() as u32;
                of_line.push(is_known.then_some(BranchCoverage { number, sides }));
            }
        }
        Ok(())
    }
}

/// Whether dispatches that were not counted for this reason may have executed code that belongs to the coverage.
fn may_have_run(why: NotCounted) -> bool {
    !why.is_chosen() && !matches!(why, NotCounted::LaunchFailed | NotCounted::NoCode)
}

/// How often an instruction was executed.
fn value(instruction: &CountedInstruction, unit: CoverageUnit) -> Option<u64> {
    match unit {
        CoverageUnit::Waves => instruction.executions,
        CoverageUnit::Lanes => instruction.lanes,
    }
}

/// Whether a branch says whether lanes are left after an instruction of its block that narrowed EXEC, which is the
/// branch in the source, or that goes on with the lanes of the other side.
fn tests_lanes(body: &Body, cfg: &Cfg, branch: InstId) -> bool {
    if !matches!(body.inst(branch).variant.branch, Branch::Conditional(Condition::ExecZ | Condition::ExecNz)) {
        return false;
    }
    let before = cfg.block(cfg.block_of(branch)).insts().rev().skip_while(|inst| *inst >= branch);
    let mut writes = before.filter(|inst| body.writes(*inst).any(|reg| reg.overlaps(Reg::EXEC)));
    // A mask of an ordinary register is no branch that is counted.
    let is_copy = |inst: InstId| body.inst(inst).opcode().mask().is_some_and(|mask| mask.operation == MaskOp::Mov);
    writes.next().is_some_and(|inst| !is_copy(inst))
}
