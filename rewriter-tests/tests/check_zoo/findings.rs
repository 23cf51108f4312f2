//! The findings of a report, and how they differ from what is expected.

use std::path::Path;

use rewriter_tests::Failure;
use serde_json::{Value, json};

use crate::expectations::{Expected, Program};

/// A finding as far as it is compared.
#[derive(Debug)]
struct Found {
    tool: String,
    class: String,
    severity: String,
    /// Source lines of the program or its header: that of the access, and those that it is inlined into.
    lines: Vec<String>,
    /// The same of the other access.
    other: Vec<String>,
    allocation: Option<u64>,
    after: Option<u64>,
    before: Option<u64>,
    /// Everything, for calls that have no source line, and for people.
    text: String,
}

impl Found {
    fn of(program: &Program, finding: &Value) -> Found {
        let text = |name: &str| finding[name].as_str().unwrap_or_default().to_ascii_lowercase().replace('_', "-");
        let allocation = &finding["allocation"];
        let (size, offset) = (allocation["size"].as_u64(), allocation["offset"].as_i64());
        // A call has no place in a kernel: those who call it have.
        let callers = finding["call"]["stack"].as_array().into_iter().flatten();
        let callers = callers.filter_map(|frame| line(program, &frame["source"]));
        Found {
            tool: text("tool"),
            class: text("class"),
            severity: text("severity"),
            lines: lines(program, &finding["at"]).into_iter().chain(callers).collect(),
            other: lines(program, &finding["other"]["at"]),
            allocation: size,
            after: size.zip(offset).and_then(|(size, offset)| u64::try_from(offset).ok()?.checked_sub(size)),
            before: offset.and_then(|offset| u64::try_from(offset.checked_neg()?).ok()),
            text: finding.to_string(),
        }
    }

    fn is(&self, expected: &Expected) -> bool {
        let is_tool = self.tool == expected.tool || !expected.or.is_empty();
        is_tool && expected.classes.contains(&self.class) && self.is_at(expected) && self.has_numbers(expected)
    }

    fn is_at(&self, expected: &Expected) -> bool {
        let (line, other) = (&expected.line, &expected.other);
        let has = |lines: &[String], texts: &crate::expectations::Texts| lines.iter().any(|line| texts.are_in(line));
        if self.lines.is_empty() {
            return expected.call.as_ref().is_some_and(|call| self.text.contains(call.as_str()));
        }
        // Only of a race both sides have to be named.
        if other.all().is_empty() || self.other.is_empty() && expected.tool != "races" {
            return has(&self.lines, line) || has(&self.other, line);
        }
        has(&self.lines, line) && has(&self.other, other) || has(&self.lines, other) && has(&self.other, line)
    }

    /// Sizes and distances are compared where a report has them.
    fn has_numbers(&self, expected: &Expected) -> bool {
        let within = |found: Option<u64>, range: Option<[u64; 2]>| match (found, range) {
            (Some(found), Some([least, most])) => (least..=most).contains(&found),
            _ => true,
        };
        let is_size =
            self.allocation.is_none() || expected.allocation.is_none() || self.allocation == expected.allocation;
        let is_severity =
            expected.severity.as_ref().is_none_or(|severity| self.severity.is_empty() || *severity == self.severity);
        // Constant memory is global memory to the hardware.
        let is_space = match expected.space.as_deref() {
            Some(space @ ("lds" | "scratch")) => self.text.to_ascii_lowercase().contains(space),
            _ => true,
        };
        is_size && is_severity && is_space && within(self.after, expected.after) && within(self.before, expected.before)
    }
}

/// The program's own lines among those of a place and of what it is inlined into.
fn lines(program: &Program, at: &Value) -> Vec<String> {
    let inlined = at["inlined_at"].as_array().into_iter().flatten();
    std::iter::once(at).chain(inlined).filter_map(|place| line(program, &place["source"])).collect()
}

fn line(program: &Program, place: &Value) -> Option<String> {
    let (file, number) = (place["file"].as_str()?, place["line"].as_u64()?);
    let name = Path::new(file).file_name()?.to_str()?;
    let at = usize::try_from(number).ok()?.checked_sub(1)?;
    program.lines.get(name)?.get(at).cloned()
}

/// How the findings of a report differ from what is expected of a version on a target. Notes are
/// compared only where one of their class is expected.
pub fn differences(program: &Program, mended: bool, target: &str, report: &Value) -> Result<Vec<Failure>, Failure> {
    let findings = report["findings"].as_array().ok_or("the report has no findings")?;
    let mut found: Vec<Found> = findings.iter().map(|finding| Found::of(program, finding)).collect();
    if program.stops && !mended {
        found.retain(|found| found.tool != "api");
    }
    let expected: Vec<&Expected> =
        if mended { Vec::new() } else { program.buggy.iter().filter(|expected| expected.is_on(target)).collect() };
    let is_note = |each: &&Expected| each.severity.as_deref() == Some("note");
    let is_compared =
        |found: &Found| program.buggy.iter().filter(is_note).any(|each| each.classes.contains(&found.class));
    found.retain(|found| found.severity != "note" || is_compared(found));
    let mut wrong = Vec::new();
    for each in &found {
        if !expected.iter().any(|expected| each.is(expected)) {
            wrong.push(format!("not expected: {} {} at {:?}: {}", each.tool, each.class, each.lines, each.text));
        }
    }
    for each in &expected {
        if !each.optional && program.not_found.is_none() && !found.iter().any(|found| found.is(each)) {
            wrong.push(format!("not found: {} {} at {:?}", each.tool, each.class, each.line.all()));
        }
    }
    Ok(wrong)
}

/// Whether the exit code is that of the findings.
pub fn is_code(code: i32, report: &Value) -> bool {
    let severities = |severity: &str| {
        let findings = report["findings"].as_array().into_iter().flatten();
        findings.filter(|finding| finding["severity"] == severity).count()
    };
    match (severities("error"), severities("warning")) {
        (0, 0) => code == 0,
        (0, _) => code == 0 || code == 1,
        _ => code == 1,
    }
}

/// Made-up reports of one program, right and wrong ones.
pub fn checked(programs: &[Program]) -> Result<(), Failure> {
    let program = programs.iter().find(|program| program.program == "wave_tail").ok_or("no wave_tail")?;
    let source = program.source();
    let place = |part: &str| {
        let at = program.lines[&source].iter().position(|line| line.contains(part)).expect("a line");
        json!({"file": format!("./{source}"), "line": at + 1})
    };
    let race = |line: &str, other: &str| {
        json!({"tool": "races", "class": "lds-race", "severity": "error", "at": {"source": place(line)},
            "other": {"at": {"source": place(other)}}})
    };
    let (first, second) = ("// of two or four waves", "// one wave of 64 lanes, two of 32");
    let third = "red[tid] = red[tid] + red[tid + 32]; // one wave";
    let both = [race(first, second), race(third, second)];
    let mut noted = both.to_vec();
    noted.push(json!({"tool": "api", "class": "anything", "severity": "note"}));
    let inlined = {
        let mut inlined = both.to_vec();
        inlined[0]["at"] = json!({"source": {"file": "hip/amd_device_functions.h", "line": 7},
            "inlined_at": [{"source": place(first)}]});
        inlined
    };
    let with = |change: &dyn Fn(&mut Value)| {
        let mut changed = both.to_vec();
        change(&mut changed[0]);
        changed
    };
    let cases: Vec<(&str, bool, &str, Vec<Value>, usize)> = vec![
        ("both races", false, "gfx1030", both.to_vec(), 0),
        ("in the other order", false, "gfx1030", vec![race(second, first), race(second, third)], 0),
        ("with a note", false, "gfx1030", noted, 0),
        ("inlined", false, "gfx1030", inlined, 0),
        ("one of two", false, "gfx1030", vec![race(first, second)], 1),
        ("none", false, "gfx1030", vec![], 2),
        ("only one where waves have 64 lanes", false, "gfx90a", vec![race(first, second)], 0),
        ("one too many there", false, "gfx90a", both.to_vec(), 1),
        ("another line", false, "gfx90a", vec![race(first, "if (tid == 0) out[blockIdx.x]")], 2),
        ("another class", false, "gfx1030", with(&|finding| finding["class"] = json!("global-race")), 2),
        ("without the other line", false, "gfx1030", with(&|finding| finding["other"] = Value::Null), 2),
        ("another tool", false, "gfx1030", with(&|finding| finding["tool"] = json!("memory")), 2),
        ("the mended version", true, "gfx1030", vec![], 0),
        ("a finding of the mended version", true, "gfx1030", vec![race(first, second)], 1),
    ];
    for (name, mended, target, findings, count) in cases {
        let wrong = differences(program, mended, target, &json!({ "findings": findings }))?;
        if wrong.len() != count {
            return Err(format!("{name}: {count} differences are expected, not {wrong:#?}"));
        }
    }
    numbers(programs)
}

/// Sizes, distances, later calls, and calls without a line.
fn numbers(programs: &[Program]) -> Result<(), Failure> {
    let named =
        |name: &str| programs.iter().find(|program| program.program == name).ok_or_else(|| format!("no {name}"));
    let program = named("gemm_rows")?;
    let at = program.lines[&program.source()].iter().position(|line| line.contains("// no guard"));
    let store = |size: u64, after: u64| {
        json!({"tool": "memory", "class": "out_of_bounds_store", "severity": "error",
            "at": {"source": {"file": "gemm_rows.hip", "line": at.expect("a line") + 1}},
            "allocation": {"size": size, "offset": size + after}})
    };
    let call = |name: &str| {
        let message = format!("{name} was not undone");
        json!({"tool": "api", "class": "leak", "severity": "error", "message": message})
    };
    let cases = [
        (program, vec![store(25600, 0)], 0),
        (program, vec![store(25600, 3068), call("hipMalloc")], 0),
        (program, vec![store(25600, 3072)], 2),
        (program, vec![store(28672, 0)], 2),
        (named("leak_memory")?, vec![call("hipMalloc")], 0),
        (named("leak_memory")?, vec![call("hipEventCreate")], 2),
    ];
    for (program, findings, count) in cases {
        let report = json!({ "findings": findings });
        let wrong = differences(program, false, "gfx90a", &report)?;
        if wrong.len() != count || !is_code(1, &report) || is_code(0, &report) {
            return Err(format!("{}: {report}: {count} differences are expected, not {wrong:#?}", program.program));
        }
    }
    Ok(())
}
