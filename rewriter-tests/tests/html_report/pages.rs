//! The pages that are tested: of a sample with all that a page can have, and made-up ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rewriter_tests::{Failure, command, place};
use serde_json::Value;
use wavetap::pipeline;
use wavetap::profile::file::{KernelTotals, Profile};
use wavetap::profile::probes::branches::{BranchCounts, ExecCounts};
use wavetap::profile::time::TimeProfile;
use wavetap::report::diff::{Condition, Diff};
use wavetap::report::html::{self, KernelCode, PageData};
use wavetap::report::memory::HeatMap;
use wavetap::report::summary::SummaryInputs;
use wavetap::report::{Report, RunInfo};

/// The sample, which has source lines, loops, divergent branches and waits.
const SAMPLE: &str = "nested_loops";
const TARGET: &str = "gfx90a";

/// What was counted, recorded and modelled of the sample.
pub struct Sample {
    folder: tempfile::TempDir,
}

impl Sample {
    /// Runs the sample three times.
    pub fn get() -> Result<&'static Sample, Failure> {
        static MADE: OnceLock<Result<Sample, Failure>> = OnceLock::new();
        MADE.get_or_init(Sample::make).as_ref().map_err(Clone::clone)
    }

    fn make() -> Result<Sample, Failure> {
        let sample = Sample { folder: tempfile::tempdir().map_err(|error| error.to_string())? };
        let binary = Sample::binary();
        let binary = binary.to_str().ok_or("a path that is no text")?;
        sample.wavetap(&["profile", "--probe", "branches,blocks", "--target", TARGET, "-o", "profile", binary])?;
        sample.wavetap(&["profile", "--probe", "memory", "--target", TARGET, "-o", "accesses", binary])?;
        let time = ["run", "--timing", "--target", TARGET, "--format", "json", "--report", "time", binary];
        sample.wavetap(&time)?;
        Ok(sample)
    }

    fn wavetap(&self, args: &[&str]) -> Result<(), Failure> {
        command::run(&command::wavetap()?, args, &[], self.folder.path())?.exited(0).map(drop)
    }

    fn binary() -> PathBuf {
        place::samples().join(SAMPLE)
    }

    /// The page as the command writes it.
    pub fn page(&self) -> Result<String, Failure> {
        let (binary, sources) = (Sample::binary(), place::root().join("hip-samples/src"));
        let page = self.folder.path().join("page.html");
        let [binary, sources, page] = [&binary, &sources, &page].map(|path| path.to_string_lossy().into_owned());
        self.wavetap(&[
            "report",
            "profile",
            "--html",
            &page,
            "--force",
            "--binary",
            &binary,
            "--accesses",
            "accesses",
            "--time",
            "time",
            "--source-path",
            &sources,
        ])?;
        fs::read_to_string(&page).map_err(|error| error.to_string())
    }

    fn profile(&self) -> Result<Profile, Failure> {
        let read = |path: &Path| fs::read(path).map_err(|error| error.to_string());
        let journal = read(&self.folder.path().join("profile"))?;
        wavetap::profile::journal::read_profile(&journal).map_err(|error| error.to_string())
    }

    fn time(&self) -> Result<TimeProfile, Failure> {
        let json = fs::read(self.folder.path().join("time")).map_err(|error| error.to_string())?;
        TimeProfile::from_json(&json).map_err(|error| error.to_string())
    }

    /// A page of so many kernels, all with the sample's code under names of their own.
    pub fn many(&self, kernels: usize, name: impl Fn(usize) -> String) -> Result<String, Failure> {
        let (mut profile, mut time) = (self.profile()?, self.time()?);
        let code = self.code(&profile)?;
        let totals = profile.kernels.pop().ok_or("no kernel was counted")?;
        let modelled = time.kernels.pop().ok_or("no time was modelled")?;
        let mut data = PageData::default();
        data.has_binary = true;
        for number in 0..kernels {
            let mangled = format!("_Z{number}");
            *data.kernel_mut(&totals.object, &mangled) = code.clone();
            let mut kernel = KernelTotals { name: mangled.clone(), demangled: name(number), ..totals.clone() };
            kernel.waves += number as u64;
            profile.kernels.push(kernel);
            let mut of_kernel = modelled.clone();
            (of_kernel.name, of_kernel.demangled) = (mangled, name(number));
            of_kernel.modelled_cycles += number as u64;
            of_kernel.dispatches.iter_mut().for_each(|each| each.dispatch = number as u64);
            time.kernels.push(of_kernel);
        }
        let mut report = Report::new(&profile, RunInfo::default());
        report.time = Some(time);
        report.summarise(&SummaryInputs { profile: &profile, board: None, code: &[] });
        Ok(html::render(&report, &data))
    }

    /// A page of what differs between the sample's counts and such with more divergence, another name and sites of one
    /// profile only.
    pub fn differences(&self, name: &str) -> Result<String, Failure> {
        let (mut old, mut new) = (self.profile()?, self.profile()?);
        for profile in [&mut old, &mut new] {
            let kernel = profile.kernels.first_mut().ok_or("no kernel was counted")?;
            let more = KernelTotals { demangled: format!("same as {name}"), ..kernel.clone() };
            kernel.demangled = name.to_owned();
            profile.kernels.push(more);
        }
        let totals = &mut new.kernels[0];
        totals.waves += 3;
        totals.sites.pop();
        for site in &mut totals.sites {
            if let Some(BranchCounts::Exec(counts)) = BranchCounts::of(&site.counts) {
                site.counts = ExecCounts { agreements: counts.agreements / 2, ..counts }.into();
            }
        }
        let condition = Condition::parse("divergence>+1%")?;
        let diff = Diff::new(&old, &new, &[condition]);
        if diff.same || diff.failed.is_empty() {
            return Err(format!("they differ: {diff:?}"));
        }
        Ok(html::render_diff(&diff, "old <b>", "new"))
    }

    /// A page of the sample, of which an array has this heat map.
    pub fn with_heat(&self, heat: HeatMap) -> Result<String, Failure> {
        let profile = self.profile()?;
        let kernel = profile.kernels.first().ok_or("no kernel was counted")?;
        let mut code = self.code(&profile)?;
        let recorded =
            code.memory.as_mut().and_then(|memory| memory.recorded.as_mut()).ok_or("nothing was recorded")?;
        recorded.arrays.first_mut().ok_or("no array was accessed")?.heat = Some(heat);
        let mut data = PageData::default();
        *data.kernel_mut(&kernel.object, &kernel.name) = code;
        Ok(html::render(&Report::new(&profile, RunInfo::default()), &data))
    }

    fn code(&self, profile: &Profile) -> Result<KernelCode, Failure> {
        let binary = fs::read(Sample::binary()).map_err(|error| error.to_string())?;
        let journal = fs::read(self.folder.path().join("accesses")).map_err(|error| error.to_string())?;
        let accesses = wavetap::profile::journal::read_profile(&journal).map_err(|error| error.to_string())?;
        let mut data = PageData::default();
        pipeline::page(&mut data, &binary, profile, Some(&accesses)).map_err(|error| error.to_string())?;
        let kernel = profile.kernels.first().ok_or("no kernel was counted")?;
        data.kernel(&kernel.object, &kernel.name).cloned().ok_or_else(|| "the kernel has no code".to_owned())
    }
}

/// A program with two kernels.
const TWO_KERNELS: &str = "divergence";
/// Ranks, their hosts, and how often each ran the program.
const RANKS: [(u32, &str, usize); 3] = [(0, "n0", 1), (1, "n0", 2), (10, "n1", 4)];

/// The report of ranks that did not do the same: the last never dispatched one of the kernels.
pub struct Ranks {
    pub page: String,
    pub report: Value,
}

impl Ranks {
    /// Adds up profiles of ranks and reports on the sum, as a page and as JSON.
    pub fn get() -> Result<&'static Ranks, Failure> {
        static MADE: OnceLock<Result<Ranks, Failure>> = OnceLock::new();
        MADE.get_or_init(Ranks::make).as_ref().map_err(Clone::clone)
    }

    fn make() -> Result<Ranks, Failure> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let wavetap = |args: &[&str]| command::run(&command::wavetap()?, args, &[], folder.path())?.exited(0);
        let binary = place::samples().join(TWO_KERNELS);
        let binary = binary.to_str().ok_or("a path that is no text")?;
        wavetap(&["profile", "--target", TARGET, "--report", "/dev/null", "-o", "one", binary])?;
        let journal = fs::read(folder.path().join("one")).map_err(|error| error.to_string())?;
        let one = wavetap::profile::journal::read_profile(&journal).map_err(|error| error.to_string())?;
        let last = RANKS.len() - 1;
        let mut runs = Vec::new();
        for (at, (rank, host, times)) in RANKS.into_iter().enumerate() {
            let mut profile = Profile { rank: Some(rank), hostname: Some(host.to_owned()), ..one.clone() };
            profile.kernels.retain(|kernel| at != last || !kernel.demangled.starts_with("non_divergent("));
            let name = format!("rank-{rank}");
            let json = profile.to_json().map_err(|error| error.to_string())?;
            fs::write(folder.path().join(&name), json).map_err(|error| error.to_string())?;
            runs.extend(vec![name; times]);
        }
        let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
        wavetap(&[&["merge", "--by", "rank,host", "-o", "sum"], &runs[..]].concat())?;
        wavetap(&["report", "sum", "--html", "page.html", "--binary", binary])?;
        let json = wavetap(&["report", "sum", "--format", "json"])?.out();
        Ok(Ranks {
            page: fs::read_to_string(folder.path().join("page.html")).map_err(|error| error.to_string())?,
            report: serde_json::from_str(&json).map_err(|error| error.to_string())?,
        })
    }
}
