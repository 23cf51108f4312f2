//! Findings that are not to be reported.

use wavetap_base::error::{Error, Result};
use wavetap_base::glob;
use wavetap_profile::check::{Class, Finding, Tool};

/// What a line names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Any,
    Tool(Tool),
    Class(Class),
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Suppression {
    what: What,
    /// Of the kernel, or of the function of HIP.
    name: String,
    /// `FILE:LINE` with the end of the file's name, or the address of an instruction.
    place: Option<String>,
}

/// Findings that are not to be reported.
///
/// One in a line: a class or a tool (`*` for any), a kernel or a function of HIP (in which `*` stands for any
/// characters, blanks included, and `?` for any one), and, if it is only meant there, `FILE:LINE` or the address of the
/// instruction. What follows `#` is a comment.
///
/// ```
/// use wavetap_explain::check::CheckSuppressions;
///
/// CheckSuppressions::parse("# harmless\nlds-race *merge* merge.hpp:40\napi hipFree\n")?;
/// # Ok::<(), wavetap_base::error::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckSuppressions(Vec<Suppression>);

impl CheckSuppressions {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// Malformed if a line is not of this form, with its number.
    pub fn parse(text: &str) -> Result<CheckSuppressions> {
        let lines = text.lines().enumerate().map(|(n, line)| (n + 1, line.split('#').next().unwrap_or_default()));
        lines
            .filter(|(_, line)| !line.trim().is_empty())
            .map(|(n, line)| parse(n, line))
            .collect::<Result<_>>()
            .map(CheckSuppressions)
    }

    /// Whether a finding is named.
    #[must_use]
    pub fn covers(&self, finding: &Finding) -> bool {
        self.0.iter().any(|suppression| suppression.covers(finding))
    }
}

fn parse(n: usize, line: &str) -> Result<Suppression> {
    let wrong = |what: String| Error::malformed(format!("line {n}: {what}"));
    let mut fields = line.split_whitespace();
    let (Some(what), Some(name), place, None) = (fields.next(), fields.next(), fields.next(), fields.next()) else {
        return Err(wrong("CLASS KERNEL [FILE:LINE] expected (write * for blanks in a kernel's name)".into()));
    };
    let what = match (what, what.parse::<Tool>(), Class::by_name(what)) {
        ("*", ..) => What::Any,
        (_, Ok(tool), _) => What::Tool(tool),
        (_, _, Some(class)) => What::Class(class),
        _ => {
            let tools = Tool::ALL.map(Tool::name).join(", ");
            return Err(wrong(format!("`{what}` is no class of findings: one of a report, {tools} or * expected")));
        }
    };
    glob::check(name).map_err(|error| wrong(error.to_string()))?;
    if let Some(place) = place
        && !place.starts_with("0x")
        && place.rsplit_once(':').is_none_or(|(file, line)| file.is_empty() || line.parse::<u32>().is_err())
    {
        return Err(wrong(format!("`{place}` is no place: FILE:LINE or 0x and hexadecimal digits expected")));
    }
    Ok(Suppression { what, name: name.to_owned(), place: place.map(str::to_owned) })
}

impl Suppression {
    fn covers(&self, finding: &Finding) -> bool {
        let is_meant = match self.what {
            What::Any => true,
            What::Tool(tool) => finding.tool == tool,
            What::Class(class) => finding.class == class,
        };
        let kernel = finding.at.iter().map(|at| at.kernel.as_str());
        let mut names = kernel.chain(finding.call.iter().map(|call| call.function.as_str()));
        is_meant && names.any(|name| glob::matches(&self.name, name)) && self.is_there(finding)
    }

    fn is_there(&self, finding: &Finding) -> bool {
        let Some(place) = &self.place else { return true };
        let code = finding.at.iter().flat_map(|at| {
            [at.source.as_ref().map(|it| format!("{}:{}", it.file, it.line)), Some(format!("{:#x}", at.address))]
        });
        let host = finding.call.iter().flat_map(|call| &call.stack);
        let host = host.map(|frame| frame.source.as_ref().map(|it| format!("{}:{}", it.file, it.line)));
        code.chain(host).flatten().any(|known| {
            known.strip_suffix(place.as_str()).is_some_and(|before| before.is_empty() || before.ends_with('/'))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_profile::check::CodePlace;
    use wavetap_profile::map::Source;

    #[test]
    fn lines_name_findings() {
        let mut finding = Finding::new(Class::LdsRace, "a race");
        finding.at = Some(CodePlace {
            kernel: "void merge<int>(int*)".to_owned(),
            address: 0x1a40,
            instruction: "ds_read_b32".to_owned(),
            source: Some(Source { file: "src/merge.hpp".to_owned(), line: 40 }),
            function: None,
            inlined_at: Vec::new(),
        });
        for (line, covers) in [
            ("* *", true),
            ("races *merge*", true),
            ("racecheck *merge*", true),
            ("lds-race *merge* merge.hpp:40", true),
            ("lds-race *merge* 0x1a40", true),
            ("lds-race *merge* erge.hpp:40", false),
            ("lds-race *merge* merge.hpp:4", false),
            ("lds-race sort", false),
            ("memory *", false),
        ] {
            assert_eq!(CheckSuppressions::parse(line).expect(line).covers(&finding), covers, "{line}");
        }
        for (text, part) in [("lds-race", "line 1: CLASS KERNEL"), ("\nfoo *", "line 2: `foo`"), ("* k here", "`here`")]
        {
            let error = CheckSuppressions::parse(text).expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
