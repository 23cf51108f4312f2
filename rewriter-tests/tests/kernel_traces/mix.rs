//! What `mix` says that kernels executed, against what the emulator saw of each instruction: executions and active
//! lanes, and in sum the classes, operations and bytes. Classes and operations are expected from the instructions' text
//! alone, which `oracle` reads: it shares nothing with the tables that the product takes them from. How many lanes are
//! unknown is printed, by target.

use std::collections::{BTreeMap, BTreeSet};

use rewriter_tests::Failure;
use rewriter_tests::kernels::Test;
use rewriter_tests::tally;
use wavetap::cfg::{BodyId, Cfg, Program};
use wavetap::code_object::digest;
use wavetap::dataflow::{Definitions, Summaries};
use wavetap::emulator::{AccessedMemory, CodeAddress, DispatchStats, ObjectId, Trace};
use wavetap::isa::Target;
use wavetap::mix::{Executes, SiteCounts, instructions};
use wavetap::pipeline::{self, Selection};
use wavetap::profile::file::{Backend, KernelTotals, Origin, Profile, SiteTotals};
use wavetap::profile::probes::blocks::BlockCounts;
use wavetap::report::mix::{MixCounts, Traffic};

use crate::oracle::{self, Expected};

/// Of the kernels of a way of compiling.
#[derive(Debug, Default)]
pub struct Tally {
    kernels: u64,
    instructions: u64,
    /// Executions whose lanes matter, and of these those whose lanes are unknown: with counts of blocks, and with those
    /// of branches as well.
    in_lanes: u64,
    unknown: [u64; 2],
    /// Kernels whose bytes were compared.
    bytes: u64,
}

/// Prints what was compared, by way of compiling, and says whether that is enough.
pub fn judge<'t>(tallies: impl Iterator<Item = (&'t String, &'t Tally)> + Clone) -> Result<(), Failure> {
    for (way, tally) in tallies.clone() {
        let percent = |part: u64| 100.0 * part as f64 / tally.in_lanes.max(1) as f64;
        println!(
            "{way}: {} kernels, {} instructions executed; lanes unknown of {:.1} %, with counts of branches \
                {:.1} %; bytes of {} compared",
            tally.kernels,
            tally.instructions,
            percent(tally.unknown[0]),
            percent(tally.unknown[1]),
            tally.bytes
        );
    }
    let mut instructions = tallies.map(|(_, tally)| tally.instructions).peekable();
    if instructions.peek().is_some() && instructions.all(|instructions| instructions == 0) {
        return Err("nothing was compared".to_owned());
    }
    Ok(())
}

impl tally::Tally for Tally {
    fn add(&mut self, other: Tally) {
        self.kernels += other.kernels;
        self.instructions += other.instructions;
        self.in_lanes += other.in_lanes;
        self.unknown.iter_mut().zip(other.unknown).for_each(|(sum, more)| *sum += more);
        self.bytes += other.bytes;
    }
}

/// Operations of matrix kernels of `rewriter-tests/kernels`, worked out by hand: an instruction multiplies and adds
/// rows x columns x depth x blocks numbers, each kernel has two for a wave, and its 128 work-items are two waves in
/// wave64 and four in wave32.
const MATRICES: &[(&str, &str, u64)] = &[
    ("matrix_f32_32x32x2f32", "f32", 2 * 32 * 32 * 2),
    ("matrix_f32_16x16x4f32", "f32", 2 * 16 * 16 * 4),
    ("matrix_f32_32x32x1f32", "f32", 2 * 32 * 32 * 2),
    ("matrix_f32_16x16x1f32", "f32", 2 * 16 * 16 * 4),
    ("matrix_f32_4x4x1f32", "f32", 2 * 4 * 4 * 16),
    ("matrix_f32_32x32x8f16", "f16", 16_384),
    ("matrix_f32_4x4x4f16", "f16", 2 * 4 * 4 * 4 * 16),
    ("matrix_i32_4x4x4i8", "i8", 2 * 4 * 4 * 4 * 16),
    ("matrix_f64_16x16x4f64", "f64", 2 * 16 * 16 * 4),
    ("matrix_f32_32x32x8bf16_1k", "bf16", 16_384),
    ("matrix_f32_16x16x8_xf32", "xf32", 2 * 16 * 16 * 8),
    ("wave_matrix_11_f32_16x16x16_f16", "f16", 8192),
    ("wave_matrix_11_i32_16x16x16_iu4", "i4", 8192),
    ("wave_matrix_12_f32_16x16x16_f16", "f16", 8192),
    ("wave_matrix_12_i32_16x16x32_iu4", "i4", 16_384),
];

/// A kernel.
pub struct Subject<'a> {
    /// The object.
    pub object: &'a [u8],
    /// Its code.
    pub program: &'a Program,
    /// What its functions do.
    pub summaries: &'a Summaries,
    /// The kernel, and how it is launched.
    pub test: &'a Test,
}

/// What the emulator saw, by class and type.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sums {
    instructions: u64,
    /// Issued.
    classes: BTreeMap<String, u64>,
    /// In rocprof-compute's convention, and effective.
    operations: BTreeMap<String, [u64; 2]>,
}

impl Subject<'_> {
    /// Compares what was seen with what is said.
    pub fn compare(&self, stats: &DispatchStats, tally: &mut Tally) -> Result<(), Failure> {
        let trace = stats.trace.as_ref().ok_or("no trace")?;
        let loaded = trace.executed.keys().next().ok_or("nothing was executed")?.object;
        let id = self.program.by_name(&self.test.name).ok_or("no code")?;
        let callees = self.program.callees(id);
        let reached: BTreeSet<BodyId> = callees.bodies.iter().copied().chain([id]).collect();
        tally.kernels += 1;
        tally.instructions += stats.instructions;
        for with_branches in [false, true] {
            let totals = self.totals(trace, loaded, stats.waves, &reached, with_branches);
            for body in &reached {
                self.each_instruction(*body, &totals, trace, loaded, tally, with_branches)?;
            }
            self.sums(&totals, stats, trace, loaded, &callees.unknown, tally)?;
        }
        Ok(())
    }

    /// What the probes of blocks, and of branches, would have counted.
    fn totals(
        &self,
        trace: &Trace,
        object: ObjectId,
        waves: u64,
        reached: &BTreeSet<BodyId>,
        with_branches: bool,
    ) -> KernelTotals {
        let at = |counts: &BTreeMap<CodeAddress, u64>, address| {
            counts.get(&CodeAddress { object, address }).copied().unwrap_or(0)
        };
        let mut blocks: BTreeMap<u64, BlockCounts> = BTreeMap::new();
        for body in reached.iter().map(|id| self.program.body(*id)) {
            let cfg = Cfg::build(body);
            for address in cfg.ids().map(|block| body.address(cfg.block(block).first)) {
                let counts = BlockCounts { executions: at(&trace.executed, address), lanes: at(&trace.lanes, address) };
                blocks.insert(address, counts);
            }
        }
        let site = |(address, counts)| SiteTotals { address, instruction: String::new(), source: None, counts };
        let mut sites: Vec<SiteTotals> =
            blocks.into_iter().map(|(address, counts)| site((address, counts.into()))).collect();
        if with_branches {
            sites.extend(trace.sites(object).into_iter().map(site));
        }
        KernelTotals {
            name: self.test.name.clone(),
            demangled: self.test.name.clone(),
            object: digest(self.object),
            dispatches: 1,
            waves,
            sites,
            ..KernelTotals::default()
        }
    }

    /// Executions and lanes of every instruction are what the emulator saw, or unknown.
    fn each_instruction(
        &self,
        id: BodyId,
        totals: &KernelTotals,
        trace: &Trace,
        object: ObjectId,
        tally: &mut Tally,
        with_branches: bool,
    ) -> Result<(), Failure> {
        let body = self.program.body(id);
        let cfg = Cfg::build(body);
        let definitions = Definitions::new(body, &cfg, self.summaries);
        for one in instructions(body, &cfg, &definitions, &SiteCounts::of(totals), !body.jumps_away()) {
            let place = CodeAddress { object, address: one.address };
            let seen = trace.executed.get(&place).copied().unwrap_or(0);
            let text = wavetap::isa::print(body.target(), body.inst(one.inst));
            match one.executions {
                Some(executions) if executions != seen => {
                    return Err(format!("{:#x} `{text}`: {executions} executions, {seen} were seen", one.address));
                }
                None if !body.may_be_skipped(one.inst) => {
                    return Err(format!("{:#x} `{text}`: executions are unknown", one.address));
                }
                _ => {}
            }
            if one.work.executes == Executes::InActiveLanes {
                let lanes = trace.lanes.get(&place).copied().unwrap_or(0);
                if let Some(said) = one.lanes.filter(|said| *said != lanes) {
                    return Err(format!("{:#x} `{text}`: {said} lanes, {lanes} were seen", one.address));
                }
                tally.in_lanes += if with_branches { 0 } else { seen };
                tally.unknown[usize::from(with_branches)] += if one.lanes.is_none() { seen } else { 0 };
            }
        }
        Ok(())
    }

    /// The sums over the kernel.
    fn sums(
        &self,
        totals: &KernelTotals,
        stats: &DispatchStats,
        trace: &Trace,
        object: ObjectId,
        calls_unknown: &bool,
        tally: &mut Tally,
    ) -> Result<(), Failure> {
        let mut profile = Profile::new(Origin::Trace, Backend::Emulator);
        profile.kernels.push(totals.clone());
        profile.set_ended(true);
        let selection = Selection { kernels: vec![self.test.name.clone()], ..Selection::default() };
        let report = pipeline::mix(self.object, &selection, &profile).map_err(|e| e.to_string())?;
        let kernel = report.kernels.iter().find(|kernel| kernel.name == self.test.name).ok_or("no mix")?;
        let total = &kernel.total;
        // What is called through a pointer is not among what was counted, and what is skipped is not known.
        if *calls_unknown || total.uncounted > 0 {
            return if kernel.uncounted_callees.is_empty() && total.uncounted == 0 {
                Err("nothing says that something is missing".to_owned())
            } else {
                Ok(())
            };
        }
        if total.instructions != stats.instructions {
            return Err(format!("{} instructions, {} were executed", total.instructions, stats.instructions));
        }
        let mut expected = Sums { instructions: stats.instructions, ..Sums::default() };
        for (place, executed) in trace.executed.iter().filter(|(place, _)| place.object == object) {
            let inst = self.instruction(place.address).ok_or_else(|| format!("{:#x}: no code", place.address))?;
            let text = wavetap::isa::print(inst.1, inst.0);
            let wave = u64::from(inst.1.wave_size());
            let lanes = trace.lanes.get(place).copied().unwrap_or(0);
            for Expected { class, operations } in oracle::expected(&text)? {
                *expected.classes.entry(class).or_default() += executed;
                let Some(operations) = operations else { continue };
                let sum = expected.operations.entry(operations.number).or_default();
                let (all, active) = if operations.by_wave { (*executed, *executed) } else { (executed * wave, lanes) };
                sum[0] += operations.convention * all;
                sum[1] += operations.effective * active;
            }
        }
        let is_buffer = |class: &str| class.starts_with("vmem.buffer.") || class.starts_with("vmem.scratch.");
        let same =
            |class: &String| if is_buffer(class) { class.replace(".buffer.", ".scratch.") } else { class.clone() };
        // Whether a buffer is scratch, the text does not say: the emulator's records do, see below.
        let merged = |classes: &mut dyn Iterator<Item = (String, u64)>| -> BTreeMap<String, u64> {
            let mut all = BTreeMap::new();
            classes
                .filter(|(_, count)| *count > 0)
                .for_each(|(class, count)| *all.entry(same(&class)).or_default() += count);
            all
        };
        let found = merged(&mut total.classes.iter().map(|row| (row.class.clone(), row.issued)));
        let wanted = merged(&mut expected.classes.into_iter());
        if found != wanted {
            return Err(format!("classes {}", differences(&wanted, &found)));
        }
        let unknown =
            |number: &str| total.operations.iter().any(|row| row.number == number && row.sum.lanes_unknown > 0);
        let all = total.operations.iter().map(|row| (row.number.clone(), [row.sum.convention, row.sum.effective]));
        let (mut found, mut wanted): (BTreeMap<_, _>, _) = (all.collect(), expected.operations);
        for operations in [&mut found, &mut wanted] {
            operations.retain(|_, counts: &mut [u64; 2]| counts[0] > 0);
            operations.iter_mut().filter(|(number, _)| unknown(number)).for_each(|(_, counts)| counts[1] = 0);
        }
        if found != wanted {
            return Err(format!("operations {}", differences(&wanted, &found)));
        }
        if let Some((_, number, each)) = MATRICES.iter().find(|(name, ..)| *name == self.test.name) {
            let expected = each * 2 * stats.waves;
            let row = total.operations.iter().find(|row| row.number == *number).ok_or("no matrices")?;
            if (row.sum.convention, row.sum.effective) != (expected, expected) {
                return Err(format!("{row:?}, worked out by hand: {expected}"));
            }
        }
        self.bytes(total, stats, tally)
    }

    fn instruction(&self, address: u64) -> Option<(&wavetap::isa::Inst, Target)> {
        let at = |body: &'_ wavetap::kernel::Body| body.at(address);
        let body = self.program.bodies().iter().find(|body| at(body).is_some())?;
        Some((body.inst(body.at(address)?), body.target()))
    }

    /// Bytes of vector memory, against the addresses that lanes accessed.
    fn bytes(&self, total: &MixCounts, stats: &DispatchStats, tally: &mut Tally) -> Result<(), Failure> {
        let vector = [Traffic::Global, Traffic::Scratch, Traffic::Lds];
        let is_vector = |memory| vector.contains(&memory) || memory == Traffic::Flat;
        let unknown = total.bytes.iter().any(|row| is_vector(row.memory) && row.unknown > 0);
        let of = |name: &str| total.classes.iter().any(|row| row.class.starts_with(name));
        // Images have no records.
        if unknown || stats.accesses.dropped > 0 || of("vmem.image") || of("tensor") {
            return Ok(());
        }
        tally.bytes += 1;
        let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
        for record in &stats.accesses.records {
            let memory = match record.memory {
                AccessedMemory::Global => "global",
                AccessedMemory::Scratch => "scratch",
                AccessedMemory::Lds => "LDS",
            };
            let bytes = u64::from(record.bytes) * u64::from(record.lanes.count_ones());
            *seen.entry(memory).or_default() += bytes;
            // What loads into LDS has one record, of the memory that it reads.
            let (inst, target) = self.instruction(record.place.address).ok_or("no code")?;
            let text = wavetap::isa::print(target, inst);
            if memory != "LDS" && text.split([' ', '_']).any(|word| word == "lds") {
                *seen.entry("LDS").or_default() += bytes;
            }
        }
        let said = vector.map(|memory| total.bytes_of(memory));
        let seen = ["global", "scratch", "LDS"].map(|memory| seen.get(memory).copied().unwrap_or(0));
        let (all, all_seen) = (said.iter().sum::<u64>() + total.bytes_of(Traffic::Flat), seen.iter().sum::<u64>());
        let same = match () {
            // Lanes beyond the end of a buffer request bytes, and access none.
            () if of("vmem.buffer") => all >= all_seen,
            // Where a flat address leads, often only the address says.
            () if of("vmem.flat") => all == all_seen && said.iter().zip(&seen).all(|(said, seen)| said <= seen),
            () => said == seen,
        };
        if same { Ok(()) } else { Err(format!("bytes of global, scratch, LDS: {said:?}, and {seen:?} were seen")) }
    }
}

/// What two maps differ in.
fn differences<V: PartialEq + std::fmt::Debug>(wanted: &BTreeMap<String, V>, found: &BTreeMap<String, V>) -> String {
    let keys: BTreeSet<&String> = wanted.keys().chain(found.keys()).collect();
    let different = keys.into_iter().filter(|key| wanted.get(*key) != found.get(*key));
    different
        .map(|key| format!("{key}: {:?}, expected {:?}", found.get(key), wanted.get(key)))
        .collect::<Vec<_>>()
        .join("; ")
}
