//! Case files: a text file that says how to run itself and what it expects.
//!
//! `rewriter-tests/cases/how-cases-work.case` explains the lines to whoever writes one. A line is `NAME: words` or a
//! comment (`#`) or empty; lines act in order, and one that expects something of a program speaks of the last `RUN`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{self, Finished};
use crate::{Failure, place};

/// One line of a case that is no comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Line number from 1.
    pub number: usize,
    /// The word before the colon.
    pub name: String,
    /// What follows the colon, trimmed.
    pub value: String,
}

/// No JSON document that a case makes is larger, in bytes.
const LARGEST_DOCUMENT: u64 = 64 << 20;

/// A case file, or one of the cases that a `FOR` line makes of it.
#[derive(Debug, Clone)]
pub struct Case {
    /// The file.
    pub path: PathBuf,
    /// The file's name relative to the case folder, without extension, and the value that `FOR` gave.
    pub name: String,
    /// Its lines, with `FOR`'s value put in.
    pub lines: Vec<Line>,
}

/// The folder of all cases.
#[must_use]
pub fn folder() -> PathBuf {
    place::root().join("rewriter-tests/cases")
}

/// Reads every case file below [`folder`].
///
/// # Errors
/// If a file is no case, or is neither a case nor something beside one: nothing may lie there without being run.
pub fn read_all() -> Result<Vec<Case>, Failure> {
    let mut files = Vec::new();
    walk(&folder(), &mut files)?;
    files.sort();
    let mut cases = Vec::new();
    for file in &files {
        match file.extension().and_then(|e| e.to_str()) {
            Some("case") => cases.extend(read(file)?),
            Some("stdout") if file.with_extension("case").is_file() => {}
            _ => return Err(format!("{}: no case, and not the expected output of one", file.display())),
        }
    }
    Ok(cases)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    for entry in fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))? {
        let path = entry.map_err(|e| e.to_string())?.path();
        if path.is_dir() { walk(&path, files)? } else { files.push(path) }
    }
    Ok(())
}

/// Reads one case file; a `FOR` line makes several cases of it.
///
/// # Errors
/// If a line has no colon, or `FOR` is not `name in words`.
pub fn read(path: &Path) -> Result<Vec<Case>, Failure> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let relative = path.strip_prefix(folder()).unwrap_or(path).with_extension("");
    let case = Case {
        path: path.to_path_buf(),
        name: relative.display().to_string(),
        lines: parse(&text).map_err(|e| format!("{}: {e}", path.display()))?,
    };
    match case.lines.iter().position(|l| l.name == "FOR") {
        Some(at) => expand(&case, at).map_err(|e| format!("{}:{}: {e}", path.display(), case.lines[at].number)),
        None => Ok(vec![case]),
    }
}

fn parse(text: &str) -> Result<Vec<Line>, Failure> {
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) =
            line.split_once(':').ok_or_else(|| format!("line {}: no `NAME: …` and no comment", index + 1))?;
        lines.push(Line { number: index + 1, name: name.trim().to_owned(), value: value.trim().to_owned() });
    }
    if lines.is_empty() { Err("nothing to run".into()) } else { Ok(lines) }
}

fn expand(case: &Case, at: usize) -> Result<Vec<Case>, Failure> {
    let (variable, words) = case.lines[at].value.split_once(" in ").ok_or("`FOR: name in words` was expected")?;
    let values: Vec<String> = match words.trim() {
        "SAMPLES" => place::sample_names(),
        words => words.split_whitespace().map(str::to_owned).collect(),
    };
    if values.is_empty() {
        return Err("no values".into());
    }
    let hole = format!("{{{}}}", variable.trim());
    let with = |value: &str| {
        let lines = case.lines.iter().enumerate().filter(|(index, _)| *index != at);
        let lines = lines.map(|(_, l)| Line { value: l.value.replace(&hole, value), ..l.clone() }).collect();
        Case { path: case.path.clone(), name: format!("{} {value}", case.name), lines }
    };
    Ok(values.iter().map(|v| with(v)).collect())
}

impl Case {
    /// The value of the one line of this name.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        self.lines.iter().find(|l| l.name == name).map(|l| l.value.as_str())
    }

    /// Acts on the lines in order, in an empty folder of its own.
    ///
    /// # Errors
    /// What went otherwise than the case says, with the line.
    pub fn run(&self) -> Result<(), Failure> {
        self.run_checking(&|_| Ok(()))
    }

    /// [`Case::run`], with a check of each JSON document that the programs print, and of each that is in the folder at
    /// the end.
    ///
    /// # Errors
    /// As [`Case::run`], and what the check says.
    pub fn run_checking(&self, check: &dyn Fn(&str) -> Result<(), Failure>) -> Result<(), Failure> {
        let temporary = tempfile::tempdir().map_err(|e| e.to_string())?;
        let mut running = Running { case: self, folder: temporary.path().to_path_buf(), last: None };
        for line in &self.lines {
            let place =
                |e: Failure| format!("{}:{}: {}: {}\n{e}", self.path.display(), line.number, line.name, line.value);
            running.act(line).map_err(place)?;
            if line.name == "RUN" {
                running.check(check).map_err(place)?;
            }
        }
        running.settle()?;
        let mut files = Vec::new();
        walk(temporary.path(), &mut files)?;
        for file in files {
            // Not a pipe, to which nothing is written, and no sparse file of many gigabytes.
            let is_document = fs::metadata(&file).is_ok_and(|data| data.is_file() && data.len() <= LARGEST_DOCUMENT);
            let json = Some(&file).filter(|_| is_document).and_then(|file| fs::read(file).ok());
            let json = json.filter(|bytes| bytes.starts_with(b"{")).and_then(|bytes| String::from_utf8(bytes).ok());
            json.map_or(Ok(()), |text| check(&text))
                .map_err(|e| format!("{}: {}\n{e}", self.path.display(), file.display()))?;
        }
        Ok(())
    }
}

/// A case in progress.
struct Running<'c> {
    case: &'c Case,
    folder: PathBuf,
    /// The last program, until its exit code has been looked at, and then still for its output.
    last: Option<(Finished, bool)>,
}

impl Running<'_> {
    fn act(&mut self, line: &Line) -> Result<(), Failure> {
        let value = self.fill(&line.value)?;
        let words = words(&value);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match (line.name.as_str(), words.as_slice()) {
            ("NEEDS", _) => Ok(()),
            ("RUN", [program, args @ ..]) => {
                self.settle()?;
                let program = if *program == "wavetap" { command::wavetap()? } else { PathBuf::from(program) };
                self.last = Some((command::run(&program, args, &[], &self.folder)?, false));
                Ok(())
            }
            ("EXIT", [code]) => {
                let code = code.parse().map_err(|_| "a number was expected")?;
                let (finished, seen) = self.last.as_mut().ok_or("no RUN before")?;
                *seen = true;
                finished.clone().exited(code).map(|_| ())
            }
            ("STDOUT" | "STDERR" | "STDOUT-NOT" | "STDERR-NOT", _) => {
                let finished = self.finished()?;
                let text = if line.name.starts_with("STDOUT") { finished.out() } else { finished.err() };
                let wanted = !line.name.ends_with("-NOT");
                // Runs of blanks count as one, so that the width of a table's column may change.
                let plain = |s: &str| s.split_whitespace().collect::<Vec<_>>().join(" ");
                let found = text.lines().any(|l| plain(l).contains(&plain(&value)));
                if found == wanted {
                    Ok(())
                } else {
                    Err(finished.failure(if wanted { "this text is missing" } else { "this text is there" }))
                }
            }
            ("STDOUT-LINES" | "STDERR-LINES", [count]) => {
                let finished = self.finished()?;
                let text = if line.name.starts_with("STDOUT") { finished.out() } else { finished.err() };
                if text.lines().count().to_string() == *count {
                    Ok(())
                } else {
                    Err(finished.failure("another number of lines"))
                }
            }
            ("STDOUT-FILE", []) => self.compare_stdout(),
            ("SAME", [a, b]) => {
                self.settle()?;
                if self.bytes(a)? == self.bytes(b)? { Ok(()) } else { Err(format!("{a} and {b} differ")) }
            }
            ("DIFFERENT", [a, b]) => {
                self.settle()?;
                if self.bytes(a)? == self.bytes(b)? { Err(format!("{a} and {b} are the same")) } else { Ok(()) }
            }
            ("ABSENT", [file]) => {
                self.settle()?;
                if self.folder.join(file).exists() { Err("the file is there".into()) } else { Ok(()) }
            }
            ("TRUNCATE", [input, size, output]) => {
                let bytes = self.bytes(input)?;
                let size: usize = size.parse().map_err(|_| "a number was expected")?;
                self.write(output, bytes.get(..size).ok_or("the file is shorter")?)
            }
            ("PATCH", [input, offset, hex, output]) => {
                let mut bytes = self.bytes(input)?;
                let offset = usize::from_str_radix(offset.trim_start_matches("0x"), 16)
                    .map_err(|_| "a hexadecimal offset was expected")?;
                let patch = bytes_of_hex(hex)?;
                bytes.get_mut(offset..offset + patch.len()).ok_or("the file is shorter")?.copy_from_slice(&patch);
                self.write(output, &bytes)
            }
            ("WRITE", [output, hex @ ..]) => self.write(output, &bytes_of_hex(&hex.concat())?),
            ("ACCEPTED", [original, rewritten]) => {
                self.settle()?;
                crate::accept::rewritten(&self.folder.join(original), &self.folder.join(rewritten))
            }
            _ => Err("no such line, or not with these words: see how-cases-work.case".into()),
        }
    }

    /// Checks what the last program printed, if that is a JSON document.
    fn check(&self, check: &dyn Fn(&str) -> Result<(), Failure>) -> Result<(), Failure> {
        let text = self.finished()?.out();
        if text.starts_with('{') { check(&text) } else { Ok(()) }
    }

    /// The last program must have ended with 0 where the case said nothing else.
    fn settle(&mut self) -> Result<(), Failure> {
        match self.last.as_mut() {
            Some((finished, seen)) if !*seen => {
                *seen = true;
                finished.clone().exited(0).map(|_| ())
            }
            _ => Ok(()),
        }
    }

    fn finished(&self) -> Result<&Finished, Failure> {
        self.last.as_ref().map(|(finished, _)| finished).ok_or_else(|| "no RUN before".into())
    }

    fn fill(&self, value: &str) -> Result<String, Failure> {
        let mut value = value.replace("{samples}", &place::samples().display().to_string());
        value = value.replace("{root}", &place::root().display().to_string());
        if value.contains("{wavetap}") {
            value = value.replace("{wavetap}", &command::wavetap()?.display().to_string());
        }
        if value.contains("{variants}") {
            value = value.replace("{variants}", &place::variants()?.display().to_string());
        }
        Ok(value)
    }

    fn bytes(&self, file: &str) -> Result<Vec<u8>, Failure> {
        fs::read(self.folder.join(file)).map_err(|e| format!("{file}: {e}"))
    }

    fn write(&self, file: &str, bytes: &[u8]) -> Result<(), Failure> {
        fs::write(self.folder.join(file), bytes).map_err(|e| format!("{file}: {e}"))
    }

    /// Compares the last program's output with the file beside the case; with `BLESS=1` in the environment it becomes
    /// that file.
    fn compare_stdout(&self) -> Result<(), Failure> {
        let finished = self.finished()?;
        // Machine-dependent folders become their names again.
        let text = finished.out().replace(&place::samples().display().to_string(), "{samples}");
        let text = text.replace(&place::build_folder().join("hip-variants").display().to_string(), "{variants}");
        let file = self.case.path.with_extension("stdout");
        if std::env::var_os("BLESS").is_some() {
            return fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()));
        }
        let expected = fs::read_to_string(&file).map_err(|e| format!("{}: {e} (BLESS=1 writes it)", file.display()))?;
        match expected.lines().zip(text.lines()).position(|(a, b)| a != b) {
            None if expected == text => Ok(()),
            at => Err(finished.failure(&format!(
                "differs from {} in line {} (BLESS=1 accepts it)",
                file.display(),
                at.map_or(0, |l| l + 1)
            ))),
        }
    }
}

/// Words as a shell makes them, as far as single quotes go.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut quoted, mut within) = (false, false);
    for c in text.chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                if !within {
                    words.push(String::new());
                }
                within = true;
            }
            c if c.is_whitespace() && !quoted => within = false,
            c => {
                if !within {
                    words.push(String::new());
                }
                within = true;
                words.last_mut().expect("pushed above").push(c);
            }
        }
    }
    words
}

fn bytes_of_hex(hex: &str) -> Result<Vec<u8>, Failure> {
    if !hex.len().is_multiple_of(2) || !hex.is_ascii() {
        return Err("an even number of hexadecimal digits was expected".into());
    }
    (0..hex.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).map_err(|e| format!("{hex}: {e}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(text: &str) -> Case {
        Case { path: "test.case".into(), name: "test".into(), lines: parse(text).unwrap() }
    }

    #[test]
    fn an_unexpected_exit_code_fails() {
        assert!(case("RUN: /bin/true").run().is_ok());
        assert!(case("RUN: /bin/false").run().is_err());
        assert!(case("RUN: /bin/false\nEXIT: 1").run().is_ok());
        assert!(case("RUN: /bin/false\nRUN: /bin/true").run().is_err());
        assert!(case("RUN: /bin/true\nEXIT: 1").run().is_err());
    }

    #[test]
    fn expectations_can_fail() {
        assert!(case("RUN: /bin/echo a  b\nSTDOUT: a b\nSTDOUT-LINES: 1\nSTDERR-LINES: 0").run().is_ok());
        assert!(case("RUN: /bin/echo a\nSTDOUT: b").run().is_err());
        assert!(case("RUN: /bin/echo a\nSTDOUT-NOT: a").run().is_err());
        assert!(case("WRITE: x 00\nWRITE: y 01\nSAME: x y").run().is_err());
        assert!(case("WRITE: x 00\nWRITE: y 01\nDIFFERENT: x y\nABSENT: z").run().is_ok());
        assert!(case("WRITE: x 0011\nTRUNCATE: x 1 y\nPATCH: x 1 22 x\nWRITE: z 0022\nSAME: x z").run().is_ok());
        assert!(case("EXPECT: x").run().is_err(), "an unknown line must not pass");
    }

    #[test]
    fn quotes_keep_words_together() {
        assert_eq!(words("a 'b c' d'e f' ''"), ["a", "b c", "de f", ""]);
    }

    #[test]
    fn for_makes_a_case_of_each_value() {
        let cases = expand(&case("FOR: x in a b\nRUN: /bin/echo {x}"), 0).unwrap();
        assert_eq!(cases.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["test a", "test b"]);
        assert_eq!(cases[1].lines[0].value, "/bin/echo b");
    }
}
