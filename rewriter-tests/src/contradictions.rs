//! What the summary of a report says, against the tables of the same report. It reads JSON and shares no code with what
//! makes the summary.

use serde_json::Value;

/// What is rounded in a sentence: shares in percent, and lines.
const ROUNDED: f64 = 1.0;
/// Lanes of the waves of most targets.
const WAVE: f64 = 64.0;

/// Contradictions between the summary of a report of `profile --probe branches,blocks --timing` and its tables, and how
/// many statements were compared.
#[must_use]
pub fn contradictions(report: &Value) -> (Vec<String>, usize) {
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for time in list(&report["time"]["kernels"]) {
        for resource in list(&time["resources"]) {
            compared += 1;
            if number(&resource["modelled_busy"]) > number(&resource["modelled_available"]) {
                wrong.push(format!("{}: more than busy: {resource}", time["demangled"]));
            }
        }
    }
    for summary in list(&report["summary"]["kernels"]) {
        let Some(kernel) = Tables::of(report, summary) else { continue };
        let name = summary["demangled"].as_str().unwrap_or_default();
        let mut check = |what: Option<String>| {
            compared += 1;
            wrong.extend(what.map(|what| format!("{name}: {what}")));
        };
        if !summary["bound"].is_null() {
            check(kernel.bound(&summary["bound"]["first"]));
        }
        for finding in list(&summary["findings"]) {
            let said = |what: String| format!("{what}, and the summary says: {}", finding["text"]);
            check(kernel.gain(finding).map(said));
            match finding["kind"].as_str() {
                Some("divergence" | "unfilled_workgroups") => check(kernel.lanes(finding).map(said)),
                Some("memory") => check(kernel.lines(finding).map(said)),
                Some("lds_banks") => check(kernel.conflicts(finding).map(said)),
                Some("wait") => check(kernel.waits(finding).map(said)),
                Some("idle_waves") => check(kernel.idle().map(said)),
                _ => {}
            }
        }
    }
    (wrong, compared)
}

/// The tables of a kernel.
struct Tables<'r> {
    kernel: &'r Value,
    time: &'r Value,
    wave: f64,
}

impl<'r> Tables<'r> {
    fn of(report: &'r Value, summary: &Value) -> Option<Tables<'r>> {
        let is_it = |other: &&Value| other["name"] == summary["name"] && other["object"] == summary["object"];
        let kernel = list(&report["kernels"]).iter().find(is_it)?;
        let time = list(&report["time"]["kernels"]).iter().find(is_it)?;
        let wave = kernel["before"]["wave_size"].as_f64().filter(|lanes| *lanes > 0.0).unwrap_or(WAVE);
        Some(Tables { kernel, time, wave })
    }

    /// Rows of a table at a line that a finding is about; of code that was inlined from a header, whose rows have
    /// another line, all.
    fn at(&self, rows: &'r Value, finding: &Value) -> Vec<&'r Value> {
        let lines: Vec<&Value> = std::iter::once(&finding["source"]).chain(list(&finding["also"])).collect();
        let named = |row: &&Value| lines.iter().any(|line| !line.is_null() && row["source"]["line"] == line["line"]);
        let there: Vec<&Value> = list(rows).iter().filter(named).collect();
        if there.is_empty() { list(rows).iter().collect() } else { there }
    }

    fn cycles(&self) -> f64 {
        list(&self.time["instructions"]).iter().map(|each| number(&each["modelled_issued"]) + stalled(each)).sum()
    }

    /// Nothing is busier than it can be, and waves wait no longer than they do.
    fn bound(&self, first: &Value) -> Option<String> {
        let part = number(&first["part"]);
        let waits = |reasons: &[&str]| {
            let of = |each: &Value| -> f64 { reasons.iter().map(|why| number(&each["modelled_stalled"][*why])).sum() };
            list(&self.time["instructions"]).iter().map(of).sum::<f64>() / self.cycles().max(1.0)
        };
        let most = match first["limit"].as_str()? {
            "memory_latency" | "lds_latency" => waits(&["WAITCNT"]),
            "barriers" => waits(&["BARRIER_WAIT"]),
            "dependencies" => waits(&["ALU_DEPENDENCY"]),
            "branches" => waits(&["NO_INSTRUCTION_AVAILABLE"]),
            "few_waves" => 1.0 - self.busy("simd"),
            "launches" | "idle_waves" => 1.0,
            limit => self.busy(limit).max(self.busy(limit) / self.busy("simd").max(f64::MIN_POSITIVE)),
        };
        (part > most + 0.01).then(|| format!("bound by {first}, and the tables have {most:.3}"))
    }

    fn busy(&self, name: &str) -> f64 {
        let is_it = |resource: &&Value| resource["resource"] == name;
        let resource = list(&self.time["resources"]).iter().find(is_it);
        resource.map_or(0.0, |of| number(&of["modelled_busy"]) / number(&of["modelled_available"]).max(1.0))
    }

    /// What is mended is not more than there is.
    fn gain(&self, finding: &Value) -> Option<String> {
        let gain = finding["modelled_gain"].as_f64()?;
        let most = match finding["kind"].as_str()? {
            // Starting launches is in no modelled cycle.
            "launch" => f64::INFINITY,
            _ => 1.0 / (1.0 - number(&finding["weight"])).max(0.01),
        };
        (!(1.0..=most * 1.001).contains(&gain)).then(|| format!("{gain} times as fast, at most {most:.2}"))
    }

    /// Lanes disagreed at a branch of the line, and blocks ran with fewer lanes than a wave has.
    fn lanes(&self, finding: &Value) -> Option<String> {
        let branches = self.at(&self.kernel["branches"], finding);
        if !branches.iter().any(|branch| number(&branch["divergences"]) > 0.0) {
            return Some(format!("no branch of the line diverges: {branches:?}"));
        }
        let fewer = |block: &Value| number(&block["lanes"]) < self.wave * number(&block["executions"]);
        let blocks = list(&self.kernel["blocks"]);
        (!blocks.is_empty() && !blocks.iter().any(fewer)).then(|| "all blocks ran with all lanes".to_owned())
    }

    /// An access of the line took so many lines of L1 in the model.
    fn lines(&self, finding: &Value) -> Option<String> {
        let said = before(finding, " lines of a wave")?;
        let each = |row: &Value| number(&row["lines"]) / number(&row["executions"]).max(1.0);
        let most = self.at(&self.time["instructions"], finding).into_iter().map(each).fold(0.0, f64::max);
        (said > most + ROUNDED).then(|| format!("an access took {most:.1} lines at most"))
    }

    fn conflicts(&self, finding: &Value) -> Option<String> {
        let rows = self.at(&self.time["instructions"], finding);
        let all: f64 = rows.into_iter().map(|row| number(&row["modelled_lds_conflict_cycles"])).sum();
        (all == 0.0).then(|| "no access of the line had a conflict".to_owned())
    }

    /// Waves stood at waits or barriers at least so long in all.
    fn waits(&self, finding: &Value) -> Option<String> {
        let said = before(finding, " % of cycles")?;
        let stood: f64 = list(&self.time["instructions"])
            .iter()
            .map(|each| {
                number(&each["modelled_stalled"]["WAITCNT"]) + number(&each["modelled_stalled"]["BARRIER_WAIT"])
            })
            .sum();
        let part = 100.0 * stood / self.cycles().max(1.0);
        (said > part + ROUNDED).then(|| format!("waves stood at waits for {part:.1} % of their cycles"))
    }

    /// Some waves had no lane for what comes after a test: not all blocks were executed as often.
    fn idle(&self) -> Option<String> {
        let executions: Vec<f64> =
            list(&self.kernel["blocks"]).iter().map(|block| number(&block["executions"])).collect();
        let (most, least) = (max(&executions), executions.iter().copied().fold(f64::INFINITY, f64::min));
        (!executions.is_empty() && least >= most).then(|| "all blocks were executed as often".to_owned())
    }
}

fn max(all: &[f64]) -> f64 {
    all.iter().copied().fold(0.0, f64::max)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

fn stalled(instruction: &Value) -> f64 {
    instruction["modelled_stalled"].as_object().map_or(0.0, |all| all.values().map(number).sum())
}

/// The number in the text of a finding before these words.
fn before(finding: &Value, words: &str) -> Option<f64> {
    let text = finding["text"].as_str()?;
    let end = text.find(words)?;
    text[..end].rsplit([' ', '(']).next()?.replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(finding: Value) -> Value {
        let source = json!({"file": "k.hip", "line": 7});
        json!({
            "summary": {"kernels": [{"name": "k", "demangled": "k()", "object": "0", "findings": [finding]}]},
            "kernels": [{
                "name": "k", "object": "0", "before": {"wave_size": 64},
                "branches": [{"source": source, "divergences": 0}],
                "blocks": [{"executions": 2, "lanes": 128}],
            }],
            "time": {"kernels": [{
                "name": "k", "object": "0",
                "resources": [{"resource": "simd", "modelled_busy": 5, "modelled_available": 9}],
                "instructions": [{
                    "source": source, "executions": 10, "lines": 42, "modelled_issued": 60,
                    "modelled_stalled": {"WAITCNT": 40},
                }],
            }]},
        })
    }

    #[test]
    fn what_the_tables_do_not_have_is_found() {
        let found = |kind: &str, text: &str| {
            let finding = json!({
                "kind": kind, "text": text, "weight": 0.2, "source": {"file": "k.hip", "line": 7},
            });
            let (wrong, compared) = contradictions(&report(finding));
            assert!(compared >= 3, "{compared}");
            !wrong.is_empty()
        };
        assert!(found("divergence", "divergence: 31 % of instructions run with 48.0 of 64.0 lanes"));
        assert!(found("memory", "memory: load 4 B of argument 4: 64 lines of a wave where 4 would do"));
        assert!(!found("memory", "memory: load 4 B of argument 4: 4 lines of a wave where 1 would do"));
        assert!(found("wait", "waits for global loads: 63 % of cycles"));
        assert!(!found("wait", "waits for global loads: 40 % of cycles"));
        assert!(found("lds_banks", "LDS: up to 8-way bank conflicts"));
        assert!(found("idle_waves", "idle waves"));
        let gain = json!({"kind": "wait", "text": "", "weight": 0.5, "modelled_gain": 2.5});
        assert!(!contradictions(&report(gain)).0.is_empty());
    }
}
