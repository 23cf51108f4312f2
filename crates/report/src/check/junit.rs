//! Findings as JUnit's XML, in which servers of tests show what fails: a suite for each tool, in it a failing case for
//! each place, or one case that passes.

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};
use wavetap_base::error::{Error, Result};
use wavetap_explain::check::identity;
use wavetap_profile::check::{CheckReport, Finding, Severity, Tool};

use super::{finding_lines, sentence};
use crate::style::Style;

/// The XML of a report. A finding of this severity or a higher one is a failure, others are passed cases with output.
///
/// # Errors
/// Internal if it cannot be written.
pub fn junit(report: &CheckReport, least: Severity) -> Result<String> {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    write(report, least, &mut writer).map_err(|error| Error::internal(format!("XML: {error}")))?;
    let mut text = String::from_utf8_lossy(&writer.into_inner()).into_owned();
    text.push('\n');
    Ok(text)
}

fn write(report: &CheckReport, least: Severity, writer: &mut Writer<Vec<u8>>) -> std::io::Result<()> {
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let fails = |finding: &&Finding| finding.severity >= least;
    let failures = report.findings.iter().filter(fails).count().to_string();
    let cases: usize = report.tools.iter().map(|tool| of(report, *tool).count().max(1)).sum();
    let suites = [("name", "wavetap check"), ("tests", &cases.to_string()), ("failures", &failures)];
    writer.write_event(Event::Start(BytesStart::new("testsuites").with_attributes(suites)))?;
    for tool in &report.tools {
        let failures = of(report, *tool).filter(fails).count().to_string();
        let cases = of(report, *tool).count().max(1).to_string();
        let suite = [("name", tool.name()), ("tests", &cases), ("failures", &failures)];
        writer.write_event(Event::Start(BytesStart::new("testsuite").with_attributes(suite)))?;
        if of(report, *tool).next().is_none() {
            let case = [("name", "nothing found"), ("classname", tool.name())];
            writer.write_event(Event::Empty(BytesStart::new("testcase").with_attributes(case)))?;
        }
        for finding in of(report, *tool) {
            case(finding, finding.severity >= least, writer)?;
        }
        writer.write_event(Event::End(BytesEnd::new("testsuite")))?;
    }
    writer.write_event(Event::End(BytesEnd::new("testsuites")))
}

fn of(report: &CheckReport, tool: Tool) -> impl Iterator<Item = &Finding> {
    report.findings.iter().filter(move |finding| finding.tool == tool)
}

fn case(finding: &Finding, fails: bool, writer: &mut Writer<Vec<u8>>) -> std::io::Result<()> {
    let (name, tool) = (identity(finding), finding.tool.name());
    let case = [("name", name.as_str()), ("classname", tool)];
    writer.write_event(Event::Start(BytesStart::new("testcase").with_attributes(case)))?;
    let message = sentence(finding);
    let (element, attributes) = match fails {
        true => ("failure", vec![("type", finding.class.text().name), ("message", message.as_str())]),
        false => ("system-out", Vec::new()),
    };
    let mut lines = Vec::new();
    finding_lines(finding, Style::default(), &mut lines);
    writer.write_event(Event::Start(BytesStart::new(element).with_attributes(attributes)))?;
    writer.write_event(Event::Text(BytesText::new(&lines.join("\n"))))?;
    writer.write_event(Event::End(BytesEnd::new(element)))?;
    writer.write_event(Event::End(BytesEnd::new("testcase")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_profile::check::{Class, SCHEMA};

    #[test]
    fn names_are_escaped_and_each_tool_has_a_case() {
        let report = CheckReport {
            schema: SCHEMA.to_owned(),
            command: Vec::new(),
            tools: vec![Tool::Races, Tool::Api],
            seed: 0,
            schedule_seeds: Vec::new(),
            exit_code: 0,
            findings: vec![Finding::new(Class::Leak, "a<b> & c")],
            suppressed: 0,
            in_baseline: 0,
            not_checked: Vec::new(),
        };
        let text = junit(&report, Severity::Warning).expect("XML");
        assert!(text.contains("<testsuites name=\"wavetap check\" tests=\"2\" failures=\"1\">"), "{text}");
        assert!(text.contains("message=\"a&lt;b&gt; &amp; c\""), "{text}");
        assert!(text.contains("<testcase name=\"nothing found\" classname=\"races\"/>"), "{text}");
        assert!(junit(&report, Severity::Error).expect("XML").contains("failures=\"0\""));
    }
}
