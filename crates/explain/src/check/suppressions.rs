//! Findings that are not to be reported.

use wavetap_base::error::{Error, Result};
use wavetap_base::glob;
use wavetap_profile::check::{Class, CodePlace, Finding, HostCall, Tool};
use wavetap_profile::map::Source;

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
    /// Its number in the file, from 1.
    line: usize,
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

    /// The numbers of the lines that name none of these findings, from 1.
    #[must_use]
    pub fn unmatched(&self, findings: &[Finding]) -> Vec<usize> {
        let names_none = |suppression: &&Suppression| !findings.iter().any(|finding| suppression.covers(finding));
        self.0.iter().filter(names_none).map(|suppression| suppression.line).collect()
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
    Ok(Suppression { line: n, what, name: name.to_owned(), place: place.map(str::to_owned) })
}

impl Suppression {
    fn covers(&self, finding: &Finding) -> bool {
        let is_meant = match self.what {
            What::Any => true,
            What::Tool(tool) => finding.tool == tool,
            What::Class(class) => finding.class == class,
        };
        let other = finding.other.as_ref();
        let ends = [
            End { at: finding.at.as_ref(), call: finding.call.as_ref() },
            End { at: other.and_then(|other| other.at.as_ref()), call: other.and_then(|other| other.call.as_ref()) },
        ];
        is_meant && ends.iter().any(|end| end.has_name(&self.name) && self.place.iter().all(|place| end.is_at(place)))
    }
}

/// A place that a finding is about: a race has two.
struct End<'f> {
    at: Option<&'f CodePlace>,
    call: Option<&'f HostCall>,
}

impl End<'_> {
    /// Whether its kernel, or its function of HIP, has a name like this.
    fn has_name(&self, pattern: &str) -> bool {
        let kernel = self.at.map(|at| at.kernel.as_str());
        kernel.into_iter().chain(self.call.map(|call| call.function.as_str())).any(|name| glob::matches(pattern, name))
    }

    /// Whether it is at `FILE:LINE` with the end of the file's name, or at the address of an instruction.
    fn is_at(&self, place: &str) -> bool {
        let line = |source: &Source| format!("{}:{}", source.file, source.line);
        let code =
            self.at.into_iter().flat_map(|at| [at.source.as_ref().map(line), Some(format!("{:#x}", at.address))]);
        let host = self.call.into_iter().flat_map(|call| &call.stack).map(|frame| frame.source.as_ref().map(line));
        code.chain(host)
            .flatten()
            .any(|known| known.strip_suffix(place).is_some_and(|before| before.is_empty() || before.ends_with('/')))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_profile::check::{AccessKind, OtherAccess};

    fn place(kernel: &str, address: u64, line: u32) -> CodePlace {
        CodePlace {
            kernel: kernel.to_owned(),
            address,
            instruction: "ds_read_b32".to_owned(),
            source: Some(Source { file: "src/merge.hpp".to_owned(), line }),
            function: None,
            inlined_at: Vec::new(),
        }
    }

    #[test]
    fn lines_name_findings() {
        let mut finding = Finding::new(Class::LdsRace, "a race");
        finding.at = Some(place("void merge<int>(int*)", 0x1a40, 40));
        finding.other = Some(OtherAccess {
            kind: AccessKind::Store,
            at: Some(place("void fill<int>(int*)", 0x1b00, 50)),
            by: None,
            call: None,
            later: false,
            missing: String::new(),
        });
        for (line, covers) in [
            ("* *", true),
            ("races *merge*", true),
            ("racecheck *merge*", true),
            ("lds-race *merge* merge.hpp:40", true),
            ("lds-race *merge* 0x1a40", true),
            ("lds-race *fill* merge.hpp:50", true),
            ("lds-race *fill* 0x1b00", true),
            ("lds-race *merge* merge.hpp:50", false),
            ("lds-race *merge* erge.hpp:40", false),
            ("lds-race *merge* merge.hpp:4", false),
            ("lds-race sort", false),
            ("memory *", false),
        ] {
            assert_eq!(CheckSuppressions::parse(line).expect(line).covers(&finding), covers, "{line}");
        }
        let both = CheckSuppressions::parse("# two\nlds-race *fill*\n\nlds-race sort").expect("two lines");
        assert_eq!(both.unmatched(&[finding]), [4]);
        assert_eq!(both.unmatched(&[]), [2, 4]);
        for (text, part) in [("lds-race", "line 1: CLASS KERNEL"), ("\nfoo *", "line 2: `foo`"), ("* k here", "`here`")]
        {
            let error = CheckSuppressions::parse(text).expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
