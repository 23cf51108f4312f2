//! Findings as the log that is written as SARIF.

use serde_json::{Map, Value, json};
use wavetap_explain::check::identity;
use wavetap_profile::check::{CheckReport, Class, CodePlace, Finding, HostCall, Severity};

use super::{by_text, executor, order_of, sentence};
use crate::findings::{FindingLog, Level, LoggedFinding, NamedKernel, RelatedPlace, RuleText};
use crate::table::grouped;

impl From<Severity> for Level {
    fn from(severity: Severity) -> Level {
        match severity {
            Severity::Note => Level::Note,
            Severity::Warning => Level::Warning,
            Severity::Error => Level::Error,
        }
    }
}

/// The log of a report. `file` is the application's file, `base` the folder that names of files are relative to.
#[must_use]
pub fn log(report: &CheckReport, file: &str, base: Option<&str>) -> FindingLog {
    let mut classes: Vec<Class> = report.findings.iter().map(|finding| finding.class).collect();
    classes.sort_unstable();
    classes.dedup();
    let rule = |class: &Class| {
        let text = class.text();
        let level = class.severity().into();
        RuleText { id: text.name, name: text.name, summary: text.summary, explanation: text.hint, level }
    };
    let place = |class: Class| classes.iter().position(|known| *known == class).unwrap_or_default();
    FindingLog {
        file: file.to_owned(),
        base: base.map(str::to_owned),
        pass: "wavetap-check",
        fingerprint: "checkFinding/v1",
        rules: classes.iter().map(rule).collect(),
        findings: report.findings.iter().map(|finding| logged(finding, place(finding.class))).collect(),
        notes: Vec::new(),
        run: report.not_checked.iter().map(|what| (Level::Warning, format!("not checked: {what}"))).collect(),
        unread: Vec::new(),
    }
}

fn logged(finding: &Finding, rule: usize) -> LoggedFinding {
    let caller = finding.call.as_ref().and_then(|call| call.stack.first());
    let name = match (&finding.at, caller.and_then(|frame| frame.function.as_ref()), &finding.call) {
        (Some(at), ..) => at.kernel.clone(),
        (None, Some(function), _) => function.clone(),
        (None, None, Some(call)) => call.function.clone(),
        (None, None, None) => String::new(),
    };
    let source = match &finding.at {
        Some(at) => at.source.clone(),
        None => caller.and_then(|frame| frame.source.clone()),
    };
    let mut message = sentence(finding);
    let (at, by) = (&finding.at, &finding.by);
    message.extend(at.as_ref().map(|at| format!("; in kernel {}", at.kernel)));
    match by {
        Some(by) => message.push_str(&format!("{}{}", if at.is_some() { " " } else { "; " }, by_text(finding, by))),
        None if finding.count > 1 => message.push_str(&format!("; {} times", grouped(finding.count))),
        None => {}
    }
    let mut properties: Map<String, Value> = Map::new();
    properties.insert("tool".to_owned(), json!(finding.tool));
    properties.insert("count".to_owned(), json!(finding.count));
    LoggedFinding {
        rule,
        level: finding.severity.into(),
        is_missed: true,
        kernel: NamedKernel { name: name.clone(), demangled: name, target: String::new() },
        source,
        related: related(finding),
        address: finding.at.as_ref().map(|at| at.address),
        place: identity(finding),
        arguments: vec![("String", message.clone())],
        message,
        share: None,
        executions: None,
        properties,
    }
}

/// The other places that a finding is about: the other access of a race, the calls that allocated and freed memory or
/// destroyed a handle, and the call itself where the finding is at a place in a kernel.
fn related(finding: &Finding) -> Vec<RelatedPlace> {
    let mut places = Vec::new();
    if let Some(other) = &finding.other {
        let (_, which) = order_of(other);
        let by = other.by.as_ref().map(|by| format!(" of {}", executor(by))).unwrap_or_default();
        let kind = other.kind.with_article();
        let text = format!("the {which} access, {kind}{by}; missing: {}", other.missing);
        places.extend(other.at.as_ref().map(|at| in_kernel(text.clone(), at)));
        places.extend(other.call.as_ref().map(|call| in_host(format!("{text}; in {}", call.function), call)));
    }
    if let Some(allocation) = &finding.allocation {
        for (word, call) in [("allocated by", &allocation.made), ("freed by", &allocation.freed)] {
            places.extend(call.as_ref().map(|call| in_host(format!("{word} {}", call.function), call)));
        }
    }
    let destroyed = finding.destroyed.as_ref();
    places.extend(destroyed.map(|call| in_host(format!("destroyed by {}", call.function), call)));
    let call = finding.call.as_ref().filter(|_| finding.at.is_some());
    places.extend(call.map(|call| in_host(format!("in {}", call.function), call)));
    places
}

fn in_kernel(message: String, at: &CodePlace) -> RelatedPlace {
    RelatedPlace { message, function: named(&at.kernel), source: at.source.clone(), address: Some(at.address) }
}

/// The innermost caller that has a source line, else the innermost one.
fn in_host(message: String, call: &HostCall) -> RelatedPlace {
    let frame = call.stack.iter().find(|frame| frame.source.is_some()).or(call.stack.first());
    let function = frame.and_then(|frame| frame.function.as_ref()).unwrap_or(&call.function);
    let source = frame.and_then(|frame| frame.source.clone());
    RelatedPlace { message, function: named(function), source, address: None }
}

fn named(name: &str) -> NamedKernel {
    NamedKernel { name: name.to_owned(), demangled: name.to_owned(), target: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::sarif;
    use serde_json::to_value;
    use wavetap_profile::check::{
        Access, AccessKind, Allocation, CheckReport, Executor, HostFrame, OtherAccess, SCHEMA, Tool,
    };
    use wavetap_profile::map::Source;

    fn source(line: u32) -> Option<Source> {
        Some(Source { file: "k.hip".to_owned(), line })
    }

    fn place(line: u32) -> Option<CodePlace> {
        Some(CodePlace {
            kernel: "k".to_owned(),
            address: 4,
            instruction: String::new(),
            source: source(line),
            function: None,
            inlined_at: Vec::new(),
        })
    }

    fn call(function: &str, line: u32) -> Option<HostCall> {
        let frame = HostFrame { module: "a".to_owned(), address: 8, function: None, source: source(line) };
        Some(HostCall { function: function.to_owned(), stack: vec![frame] })
    }

    #[test]
    fn results_have_their_other_places() {
        let by = |wave| Some(Executor { launch: 3, workgroup: [1, 0, 0], wave, lanes: vec![0, 1] });
        let mut race = Finding::new(Class::LdsRace, "store of byte 0x10 of LDS, not ordered before a load of wave 2");
        (race.at, race.by, race.count) = (place(20), by(1), 1500);
        race.other = Some(OtherAccess {
            kind: AccessKind::Load,
            at: place(26),
            by: by(2),
            call: None,
            later: true,
            missing: "a barrier between the two".to_owned(),
        });
        let mut freed = Finding::new(Class::UseAfterFree, "load of 4 bytes at 0x1000");
        freed.at = place(30);
        freed.access = Some(Access { kind: AccessKind::Load, address: "0x1000".to_owned(), size: 4 });
        freed.allocation = Some(Allocation {
            address: 0x1000,
            size: 64,
            offset: 0,
            variable: None,
            made: call("hipMalloc", 40),
            freed: call("hipFree", 50),
        });
        let report = CheckReport {
            schema: SCHEMA.to_owned(),
            command: Vec::new(),
            tools: vec![Tool::Races],
            seed: 0,
            schedule_seeds: Vec::new(),
            exit_code: 0,
            findings: vec![race, freed],
            suppressed: 0,
            in_baseline: 0,
            not_checked: Vec::new(),
        };
        let log = to_value(sarif(&log(&report, "app", None))).expect("JSON");
        let results = &log["runs"][0]["results"];
        let text = results[0]["message"]["text"].as_str().expect("text");
        assert_eq!(
            text,
            "store of byte 0x10 of LDS, not ordered before a load of wave 2; in kernel k by launch 3, workgroup \
                (1, 0, 0), wave 1, lanes 0-1; 1500 times in all"
        );
        let related = |result: usize, n: usize| {
            let place = &results[result]["relatedLocations"][n];
            let line = &place["physicalLocation"]["region"]["startLine"];
            (line.as_u64(), place["message"]["text"].as_str().unwrap_or_default().to_owned())
        };
        let later = "the later access, a load of launch 3, workgroup (1, 0, 0), wave 2, lanes 0-1; missing: a \
                     barrier between the two";
        assert_eq!(related(0, 0), (Some(26), later.to_owned()));
        assert_eq!(related(1, 0), (Some(40), "allocated by hipMalloc".to_owned()));
        assert_eq!(related(1, 1), (Some(50), "freed by hipFree".to_owned()));
    }
}
