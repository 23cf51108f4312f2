//! What `wavetap check` found, as text, for editors ([`log`] with [`sarif`](crate::findings::sarif)) and for servers of
//! tests ([`junit`]).

mod junit;
mod log;

use wavetap_profile::check::{
    Allocation, CheckReport, Class, CodePlace, Executor, Finding, HostCall, HostFrame, OtherAccess, Severity, Tool,
};
use wavetap_profile::map::Source;

use crate::style::{Style, counted};
use crate::table::grouped;

pub use junit::junit;
pub use log::log;

/// Callers of a call that are shown: JSON has all.
const CALLERS: usize = 4;

/// All of it as text: how much was found, then each place.
#[must_use]
pub fn render(report: &CheckReport, style: Style) -> String {
    let mut lines = vec![style.bold(&summary(report))];
    lines.extend(orders(report));
    for finding in &report.findings {
        lines.push(String::new());
        finding_lines(finding, style, &mut lines);
    }
    let left_out = [(report.suppressed, "suppressed"), (report.in_baseline, "in the baseline")];
    for (count, why) in left_out.into_iter().filter(|(count, _)| *count > 0) {
        lines.push(String::new());
        lines.push(format!("{} not listed: {why}", counted(count, "finding is", "findings are")));
    }
    if !report.not_checked.is_empty() {
        lines.push(String::new());
        lines.extend(report.not_checked.iter().map(|what| style.warn(&format!("not checked: {what}"))));
    }
    lines.join("\n") + "\n"
}

/// `wavetap check: 2 errors and 1 warning (memory 2, api 1)`.
fn summary(report: &CheckReport) -> String {
    let count = |severity| report.findings.iter().filter(|finding| finding.severity == severity).count() as u64;
    let numbers = [
        (count(Severity::Error), "error", "errors"),
        (count(Severity::Warning), "warning", "warnings"),
        (count(Severity::Note), "note", "notes"),
    ];
    let numbers: Vec<String> =
        numbers.iter().filter(|(count, ..)| *count > 0).map(|(count, one, more)| counted(*count, one, more)).collect();
    let tools = report.tools.iter().map(|tool| tool.name()).collect::<Vec<_>>().join(", ");
    if numbers.is_empty() && !report.not_checked.is_empty() {
        return format!("wavetap check: nothing found by {tools} in what was checked");
    }
    if numbers.is_empty() {
        return format!("wavetap check: nothing found by {tools}");
    }
    let by_tool = |tool: &Tool| {
        let count = report.findings.iter().filter(|finding| finding.tool == *tool).count();
        (count > 0).then(|| format!("{tool} {count}"))
    };
    let by_tool: Vec<String> = report.tools.iter().filter_map(by_tool).collect();
    format!("wavetap check: {} ({})", numbers.join(", "), by_tool.join(", "))
}

/// How many orders were tried, and what that means.
fn orders(report: &CheckReport) -> Option<String> {
    let (first, last) = (report.schedule_seeds.get(1)?, report.schedule_seeds.last()?);
    let seeds = if first == last { format!("seed {first}") } else { format!("seeds {first} to {last}") };
    let count = report.schedule_seeds.len() as u64;
    Some(format!(
        "{} of workgroups and waves were tried (the usual one, and {seeds}): others may have more findings",
        counted(count, "order", "orders")
    ))
}

fn finding_lines(finding: &Finding, style: Style, lines: &mut Vec<String>) {
    let head = format!("{}: {}:", finding.severity, finding.class);
    let head = match finding.severity {
        Severity::Error => style.bad(&head),
        Severity::Warning => style.warn(&head),
        Severity::Note => style.dim(&head),
    };
    lines.push(format!("{head} {}", sentence(finding)));
    if let Some(at) = &finding.at {
        code_lines("at", at, style, lines);
    }
    if let Some(by) = &finding.by {
        lines.push(format!("  {}", by_text(finding, by)));
    } else if finding.count > 1 {
        lines.push(format!("  {} times", grouped(finding.count)));
    }
    if let Some(found) = &finding.schedules {
        let again = match found.first {
            0 => "the usual one first".to_owned(),
            first if finding.class == Class::OrderDependent => {
                format!("again with --schedules 2 --schedule-seed {first}")
            }
            first => format!("again with --schedule-seed {first}"),
        };
        lines.push(format!("  in {}; {again}", counted(found.count, "order", "orders")));
    }
    if let Some(other) = &finding.other {
        let by = other.by.as_ref().map(|by| format!(" of {}", executor(by))).unwrap_or_default();
        let (order, which) = order_of(other);
        lines.push(format!("  {order} {}{by}; missing: {}", other.kind.with_article(), other.missing));
        if let Some(at) = &other.at {
            code_lines(&format!("the {which} one at"), at, style, lines);
        }
        if let Some(call) = &other.call {
            lines.push(format!("  the {which} one in {}", call_text(call, style)));
            caller_lines(call, style, lines);
        }
    }
    if let Some(allocation) = &finding.allocation {
        allocation_lines(allocation, style, lines);
    }
    if let Some(call) = &finding.call {
        lines.push(format!("  in {}", call_text(call, style)));
        caller_lines(call, style, lines);
    }
    if let Some(destroyed) = &finding.destroyed {
        lines.push(format!("  destroyed by {}", call_text(destroyed, style)));
        caller_lines(destroyed, style, lines);
    }
    if finding.stopped {
        lines.push(style.warn("  the kernel did not go on after this: the rest of it was not checked"));
    }
    if !finding.hint.is_empty() {
        lines.push(style.dim(&format!("  to mend it: {}", finding.hint)));
    }
}

/// What is wrong, with where its allocation ends.
pub(super) fn sentence(finding: &Finding) -> String {
    let Some(allocation) = &finding.allocation else { return finding.message.clone() };
    let Allocation { size, offset, freed, .. } = allocation;
    let bytes = |count: u64| counted(count, "byte", "bytes");
    let of = match &allocation.variable {
        Some(variable) => format!("the variable {variable} of {}", bytes(*size)),
        None => format!("an allocation of {}", bytes(*size)),
    };
    let place = match u64::try_from(*offset) {
        Ok(at) if at < *size && freed.is_some() => format!("{} into {of}, which was freed", bytes(at)),
        Ok(at) if at < *size && finding.tool != Tool::Memory => format!("{} into {of}", bytes(at)),
        Ok(at) if at < *size => format!("{} before the end of {of}", bytes(size - at)),
        Ok(at) => format!("{} after the end of {of}", bytes(at - size)),
        Err(_) => format!("{} before {of}", bytes(offset.unsigned_abs())),
    };
    if finding.access.is_none() {
        format!("{}: {of}", finding.message)
    } else {
        format!("{}, {place}", finding.message)
    }
}

fn code_lines(word: &str, at: &CodePlace, style: Style, lines: &mut Vec<String>) {
    let kernel = style.name(&at.kernel);
    let function = at.function.as_ref().filter(|function| !at.kernel.contains(function.as_str()));
    let within = function.map(|function| format!("{}, ", style.name(function))).unwrap_or_default();
    let place = match &at.source {
        Some(source) => format!("{} in {within}kernel {kernel}", place_of(source)),
        None => format!("{within}kernel {kernel}"),
    };
    lines.push(match at.instruction.is_empty() {
        true => format!("  {word} {place} ({:#x})", at.address),
        false => format!("  {word} {place}: {} ({:#x})", at.instruction, at.address),
    });
    for frame in &at.inlined_at {
        let function = frame.function.as_ref().map(|function| format!(" in {}", style.name(function)));
        if let Some(source) = &frame.source {
            lines.push(format!("    inlined at {}{}", place_of(source), function.unwrap_or_default()));
        }
    }
}

/// `by launch 1, workgroup (2, 6, 0), wave 1, lanes 0-63; 768 times in all`.
fn by_text(finding: &Finding, by: &Executor) -> String {
    let times = match (finding.count, finding.stopped) {
        (1, _) => String::new(),
        (count, false) => format!("; {} times in all", grouped(count)),
        (count, true) => format!("; at least {} times", grouped(count)),
    };
    format!("by {}{times}", executor(by))
}

/// What the first access comes after or before, and which of the two the other one is.
fn order_of(other: &OtherAccess) -> (&'static str, &'static str) {
    if other.later { ("before", "later") } else { ("after", "earlier") }
}

fn executor(by: &Executor) -> String {
    let [x, y, z] = by.workgroup;
    let lanes = match &by.lanes[..] {
        [] => String::new(),
        [lane] => format!(", lane {lane}"),
        lanes => format!(", lanes {}", ranges(lanes)),
    };
    format!("launch {}, workgroup ({x}, {y}, {z}), wave {}{lanes}", by.launch, by.wave)
}

/// `0-31, 40`.
fn ranges(lanes: &[u8]) -> String {
    let mut found: Vec<(u8, u8)> = Vec::new();
    for lane in lanes {
        match found.last_mut() {
            Some((_, last)) if *last + 1 == *lane => *last = *lane,
            _ => found.push((*lane, *lane)),
        }
    }
    let text = |(first, last): &(u8, u8)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    found.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn allocation_lines(allocation: &Allocation, style: Style, lines: &mut Vec<String>) {
    for (word, call) in [("allocated by", &allocation.made), ("freed by", &allocation.freed)] {
        let Some(call) = call else { continue };
        lines.push(format!("  {word} {}", call_text(call, style)));
        caller_lines(call, style, lines);
    }
}

fn call_text(call: &HostCall, style: Style) -> String {
    let by = call.stack.first().map(|frame| format!(" {}", frame_text(frame, style))).unwrap_or_default();
    format!("{}{by}", call.function)
}

fn caller_lines(call: &HostCall, style: Style, lines: &mut Vec<String>) {
    let callers = call.stack.iter().skip(1).take(CALLERS);
    lines.extend(callers.map(|frame| style.dim(&format!("    called {}", frame_text(frame, style)))));
}

fn frame_text(frame: &HostFrame, style: Style) -> String {
    let function = frame.function.as_ref().map(|function| format!(" in {}", style.name(function)));
    match &frame.source {
        Some(source) => format!("at {}{}", place_of(source), function.unwrap_or_default()),
        None => {
            let module = frame.module.rsplit('/').next().unwrap_or_default();
            format!("at {module}+{:#x}{}", frame.address, function.unwrap_or_default())
        }
    }
}

pub(super) fn place_of(source: &Source) -> String {
    let file = source.file.rsplit('/').next().unwrap_or_default();
    format!("{file}:{}", source.line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2, 5, 7-8");
    }
}
