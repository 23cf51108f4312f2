//! What the summary says of kernels in pairs, one of which it is to say something of and the other not, against
//! `hip-samples/summary/expected.yaml`, which was written before.

use std::path::{Path, PathBuf};

use rewriter_tests::{Failure, command, place};
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
    /// Runs it with modelled time and these probes, and compares what the summary says.
    fn check(&self, probes: &str, within: &Path) -> Result<(), Failure> {
        let program = folder().join("bin/findings").display().to_string();
        let (report, profile) = (format!("{}.json", self.run), format!("{}.profile", self.run));
        let arguments = ["profile", "--target", "gfx90a", "--probe", probes, "--timing", "-o", &profile, "--format"];
        let arguments: Vec<&str> =
            arguments.into_iter().chain(["json", "--report", &report, "--", &program, &self.run]).collect();
        command::run(&command::wavetap()?, &arguments, &[], within)?.exited(0)?;
        let json = std::fs::read(within.join(&report)).map_err(|e| format!("{report}: {e}"))?;
        let json: Value = serde_json::from_slice(&json).map_err(|e| format!("{report}: {e}"))?;
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
        let arguments = ["report", &profile, "--binary", &program, "--details", "summary"];
        let text = command::run(&command::wavetap()?, &arguments, &[], within)?.exited(0)?.out();
        match text.lines().find(|line| line.chars().count() > LONGEST) {
            _ if text.lines().count() > 10 => Err(format!("more than ten lines:\n{text}")),
            Some(line) => Err(format!("a long line: {line}")),
            None => Ok(()),
        }
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
        let is_sample = found["source"]["file"].as_str().is_some_and(|file| file.ends_with("findings.hip"));
        let source = std::fs::read_to_string(folder().join("findings.hip")).expect("the sample is there");
        let number = found["source"]["line"].as_u64().unwrap_or(0) as usize;
        is_sample && number > 0 && source.lines().nth(number - 1).is_some_and(|line| line.contains(part))
    }
}

fn expectations() -> Expectations {
    let text = std::fs::read_to_string(folder().join("expected.yaml")).expect("the expectations are there");
    let expected: Expectations = serde_yaml::from_str(&text).expect("they can be read");
    assert_eq!(expected.schema, "wavetap.summary-expectations/1");
    assert!(expected.runs.len() >= 14, "{expected:?}");
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
