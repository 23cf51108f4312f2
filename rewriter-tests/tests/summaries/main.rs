//! What the summary says of kernels in pairs, one of which it is to say something of and the other not, against
//! `hip-samples/summary/expected.yaml`, which was written before.

use std::path::{Path, PathBuf};

use rewriter_tests::contradictions::contradictions;
use rewriter_tests::{Failure, command, full, place};
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expectations {
    schema: String,
    runs: Vec<Run>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    run: String,
    #[serde(default)]
    finds: Vec<Expected>,
    #[serde(default)]
    never: Vec<String>,
    #[serde(default)]
    never_text: Vec<String>,
    title: Option<String>,
    program: Option<String>,
    bound: Option<Bound>,
    untimed: Option<Bound>,
    #[serde(default)]
    launches: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bound {
    limit: String,
    text: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    kind: String,
    text: String,
    help: Option<String>,
    line: Option<String>,
}

fn folder() -> PathBuf {
    place::root().join("hip-samples/summary")
}

/// Characters of the longest line of a summary.
const LONGEST: usize = 160;

impl Run {
    fn program(&self) -> String {
        let name = self.program.as_deref().unwrap_or("findings");
        folder().join("bin").join(name).display().to_string()
    }

    /// Runs it with these options; the report, with the name of the profile beside it.
    fn profile(&self, options: &[&str], within: &Path) -> Result<(Value, String), Failure> {
        let (report, profile) = (format!("{}.json", self.run), format!("{}.profile", self.run));
        let program = self.program();
        let before =
            ["profile", "--target", "gfx90a", "--force", "-o", &profile, "--format", "json", "--report", &report];
        let arguments = [&before[..], options, &["--", &program, &self.run]].concat();
        command::run(&command::wavetap()?, &arguments, &[], within)?.exited(0)?;
        let json = std::fs::read(within.join(&report)).map_err(|e| format!("{report}: {e}"))?;
        Ok((serde_json::from_slice(&json).map_err(|e| format!("{report}: {e}"))?, profile))
    }

    /// Runs it with modelled time and these probes, and compares what the summary says.
    fn check(&self, probes: &str, within: &Path) -> Result<(), Failure> {
        if let Some(bound) = &self.untimed {
            let (json, _) = self.profile(&["--probe", probes], within)?;
            bound.compare(&json, "predicted")?;
        }
        let (json, profile) = self.profile(&["--probe", probes, "--timing"], within)?;
        self.bound.as_ref().map_or(Ok(()), |bound| bound.compare(&json, "modelled"))?;
        if self.launches == json["summary"]["launches"].is_null() {
            return Err(format!("launches: {}", json["summary"]["launches"]));
        }
        let program = self.program();
        let kernel = &json["summary"]["kernels"][0];
        let findings = kernel["findings"].as_array().ok_or("no findings")?;
        for expected in &self.finds {
            if !findings.iter().any(|found| expected.is(found)) {
                return Err(format!("{expected:?} is not among {findings:#?}"));
            }
        }
        let text = |finding: &Value, text: &String| finding["text"].as_str().is_some_and(|of| of.contains(&**text));
        let wrong = findings.iter().find(|finding| {
            self.never.iter().any(|kind| finding["kind"] == **kind)
                || self.never_text.iter().any(|of| text(finding, of))
        });
        if let Some(wrong) = wrong {
            return Err(format!("found: {wrong:#}"));
        }
        if let Some(title) = self.title.as_ref().filter(|title| kernel["title"] != **title) {
            return Err(format!("it is called {}, not {title}", kernel["title"]));
        }
        let arguments = ["report", "--wide", &profile, "--binary", &program, "--details", "summary"];
        let text = command::run(&command::wavetap()?, &arguments, &[], within)?.exited(0)?.out();
        match text.lines().find(|line| line.chars().count() > LONGEST) {
            _ if text.lines().count() > 12 => Err(format!("more than a dozen lines:\n{text}")),
            Some(line) => Err(format!("a long line: {line}")),
            None => Ok(()),
        }
    }
}

impl Bound {
    fn compare(&self, json: &Value, basis: &str) -> Result<(), Failure> {
        let found = &json["summary"]["kernels"][0]["bound"];
        let says = found["first"]["text"].as_str().is_some_and(|text| text.contains(&self.text));
        let is_it = found["first"]["limit"] == *self.limit && found["basis"] == basis;
        if says && is_it { Ok(()) } else { Err(format!("{self:?}, {basis}, is not {found:#}")) }
    }
}

impl Expected {
    fn is(&self, found: &Value) -> bool {
        let has = |field: &str, part: &str| found[field].as_str().is_some_and(|text| text.contains(part));
        found["kind"] == *self.kind
            && has("text", &self.text)
            && self.help.as_ref().is_none_or(|help| has("help", help))
            && self.line.as_ref().is_none_or(|line| self.is_at(line, found))
    }

    /// Whether a finding names a line of the sample that has this part.
    fn is_at(&self, part: &str, found: &Value) -> bool {
        let file = found["source"]["file"].as_str().and_then(|file| file.rsplit('/').next()).unwrap_or_default();
        let Ok(source) = std::fs::read_to_string(folder().join(file)) else { return false };
        let number = found["source"]["line"].as_u64().unwrap_or(0) as usize;
        number > 0 && source.lines().nth(number - 1).is_some_and(|line| line.contains(part))
    }
}

fn expectations() -> Expectations {
    let text = std::fs::read_to_string(folder().join("expected.yaml")).expect("the expectations are there");
    let expected: Expectations = serde_yaml::from_str(&text).expect("they can be read");
    assert_eq!(expected.schema, "wavetap.summary-expectations/1");
    assert!(expected.runs.len() >= 26, "{expected:?}");
    expected
}

#[test]
fn what_costs_is_found_and_what_does_not_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let failures: Vec<String> = expectations()
        .runs
        .iter()
        .filter_map(|run| Some(format!("{}: {}", run.run, run.check("branches,blocks", folder.path()).err()?)))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// What guarded code costs follows from counts of branches alone, too, where the compiler left their structure as it
/// was.
#[test]
fn branches_alone_say_what_a_branch_guards() {
    let folder = tempfile::tempdir().expect("a folder");
    for run in expectations().runs.iter().filter(|run| ["heavy_branch", "light_branch"].contains(&&*run.run)) {
        run.check("branches", folder.path()).unwrap_or_else(|failure| panic!("{}: {failure}", run.run));
    }
}

/// Samples whose summaries are compared with the tables of their reports, quickly: all in the full tests.
const FOLDERS: [&str; 2] = ["hip-samples/bin", "hip-samples/nine/bin"];

#[test]
fn no_finding_contradicts_a_table_of_its_report() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for folder in FOLDERS {
        let entries = std::fs::read_dir(place::root().join(folder)).expect("prebuilt programs");
        let mut programs: Vec<PathBuf> =
            entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
        programs.sort();
        assert!(programs.len() >= 6, "{folder}: {programs:?}");
        // A part each day, so that every program comes round.
        let parts = if full() { 1 } else { 3 };
        for program in programs.iter().skip(rewriter_tests::day() as usize % parts).step_by(parts) {
            let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let report = format!("{name}.json");
            let arguments = ["profile", "--target", "gfx90a", "--force", "--probe", "branches,blocks", "--timing"];
            let output = ["--format", "json", "--report", &report, "-o", "profile", "--"];
            let program = program.display().to_string();
            let all = [&arguments[..], &output, &[&program]].concat();
            let ran = command::wavetap().and_then(|wavetap| command::run(&wavetap, &all, &[], scratch.path()));
            ran.and_then(|finished| finished.exited(0)).unwrap_or_else(|failure| panic!("{name}: {failure}"));
            let json = std::fs::read(scratch.path().join(&report)).expect("a report");
            let (found, count) = contradictions(&serde_json::from_slice(&json).expect("JSON"));
            wrong.extend(found.into_iter().map(|found| format!("{name}: {found}")));
            compared += count;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared > 100, "{compared} statements were compared");
}
