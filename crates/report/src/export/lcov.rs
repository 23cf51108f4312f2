//! Coverage as a tracefile of lcov (geninfo(1), "FILES"), which genhtml, `lcov --summary` and coverage services read.
//!
//! Names of functions are mangled: lcov 1.x ends a name at its first comma.

use std::fmt::Write;

use wavetap_base::error::{Error, Result};
use wavetap_explain::coverage::{BranchCoverage, Coverage, FileCoverage};

/// The tracefile. `test` is the name of the test: letters, digits and `_`, or nothing.
///
/// # Errors
/// Malformed if the name of a source file or a function cannot be in it.
pub fn lcov(coverage: &Coverage, test: &str) -> Result<String> {
    let mut text = String::new();
    for (name, file) in &coverage.files {
        check("source file", name, &[])?;
        for function in file.functions.keys() {
            check("function", function, &[','])?;
        }
        // A String takes everything.
        let _ = write_file(&mut text, test, name, file);
    }
    Ok(text)
}

/// Refuses a name with a control character, or one of these.
fn check(what: &str, name: &str, forbidden: &[char]) -> Result<()> {
    match name.chars().find(|c| c.is_control() || forbidden.contains(c)) {
        None => Ok(()),
        Some(found) => {
            Err(Error::malformed(format!("the {what} {name:?} has {found:?} in its name, which lcov cannot read")))
        }
    }
}

fn write_file(text: &mut String, test: &str, name: &str, file: &FileCoverage) -> std::fmt::Result {
    writeln!(text, "TN:{test}\nSF:{name}")?;
    for (function, of) in &file.functions {
        writeln!(text, "FN:{},{function}", of.line)?;
    }
    for (function, of) in &file.functions {
        writeln!(text, "FNDA:{},{function}", of.executions)?;
    }
    let entered = file.functions.values().filter(|of| of.executions > 0).count();
    writeln!(text, "FNF:{}\nFNH:{entered}", file.functions.len())?;
    for (line, branches) in &file.branches {
        for BranchCoverage { number, sides } in branches {
            for side in 0..2 {
                match sides {
                    Some(counts) => writeln!(text, "BRDA:{line},{number},{side},{}", counts[side])?,
                    None => writeln!(text, "BRDA:{line},{number},{side},-")?,
                }
            }
        }
    }
    let branches = || file.branches.values().flatten();
    if branches().next().is_some() {
        let taken: usize = branches().map(BranchCoverage::taken).sum();
        writeln!(text, "BRF:{}\nBRH:{taken}", 2 * branches().count())?;
    }
    for (line, executions) in &file.lines {
        writeln!(text, "DA:{line},{executions}")?;
    }
    let executed = file.lines.values().filter(|executions| **executions > 0).count();
    writeln!(text, "LF:{}\nLH:{executed}\nend_of_record", file.lines.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_explain::coverage::FunctionCoverage;

    fn coverage(file: &str, function: &str) -> Coverage {
        let mut of_file = FileCoverage::default();
        of_file.functions.insert(function.to_owned(), FunctionCoverage { line: 3, executions: 8 });
        of_file.functions.insert("_Z5otherv".to_owned(), FunctionCoverage { line: 9, executions: 0 });
        of_file.lines.extend([(4, 8), (5, 0), (10, 0)]);
        let sides = [Some([64, 0]), Some([3, 5]), None];
        let branches = sides.iter().zip(0..).map(|(sides, number)| BranchCoverage { number, sides: *sides });
        of_file.branches.insert(4, branches.collect());
        Coverage { files: [(file.to_owned(), of_file)].into(), ..Coverage::default() }
    }

    #[test]
    fn a_tracefile_has_each_record_and_its_sums() {
        let text = lcov(&coverage("/p/k.hip", "_Z1kv"), "night").expect("text");
        let expected = "TN:night
SF:/p/k.hip
FN:3,_Z1kv
FN:9,_Z5otherv
FNDA:8,_Z1kv
FNDA:0,_Z5otherv
FNF:2
FNH:1
BRDA:4,0,0,64
BRDA:4,0,1,0
BRDA:4,1,0,3
BRDA:4,1,1,5
BRDA:4,2,0,-
BRDA:4,2,1,-
BRF:6
BRH:3
DA:4,8
DA:5,0
DA:10,0
LF:3
LH:1
end_of_record
";
        assert_eq!(text, expected);
    }

    #[test]
    fn names_that_would_be_read_as_others_are_refused() {
        for (file, function) in [("/p/k\n.hip", "k"), ("/p/k.hip", "k,j"), ("/p/k.hip", "k\nDA:1,1")] {
            let error = lcov(&coverage(file, function), "").expect_err("refused");
            assert!(error.to_string().contains("which lcov cannot read"), "{error}");
        }
        assert!(lcov(&coverage("/p/a,b c.hip", "k"), "").is_ok());
    }
}
