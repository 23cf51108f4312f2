//! Runs every case below `rewriter-tests/cases`: one test for each file, for each value of its `FOR` line, and for each
//! target and counter mode of a sample.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::LazyLock;

use libtest_mimic::{Failed, Trial};
use rewriter_tests::case::{self, Case};
use rewriter_tests::{Failure, full, place, sample};

#[path = "schemas/mod.rs"]
mod validator;

use validator::Validator;

fn main() -> ExitCode {
    rewriter_tests::run_trials(trials())
}

fn trials() -> Result<Vec<Trial>, Failure> {
    let cases = case::read_all()?;
    let tested: BTreeSet<String> =
        cases.iter().filter_map(|c| c.value("SAMPLE")).flat_map(str::split_whitespace).map(str::to_owned).collect();
    if let Some(forgotten) = place::sample_names().into_iter().find(|name| !tested.contains(name)) {
        return Err(format!("no case has a line `SAMPLE: {forgotten}`: hip-samples/bin/{forgotten} is not tested"));
    }
    let mut trials = Vec::new();
    for case in cases {
        if case.value("SAMPLE").is_some() {
            for test in sample::tests_of(&case)? {
                let name = format!("{} {} {} {}", case.name, test.sample, test.target, test.mode);
                trials.push(Trial::test(name, move || test.run().map_err(Failed::from)));
            }
        } else {
            let long = needs_full(&case)?;
            trials.push(
                Trial::test(case.name.clone(), move || case.run_checking(&is_as_its_schema_says).map_err(Failed::from))
                    .with_ignored_flag(long && !full()),
            );
        }
    }
    Ok(trials)
}

/// Every JSON document that a case makes is what the committed schema says.
fn is_as_its_schema_says(text: &str) -> Result<(), Failure> {
    static VALIDATOR: LazyLock<Result<Validator, Failure>> = LazyLock::new(Validator::new);
    VALIDATOR.as_ref().map_err(Clone::clone)?.check(text).map(|_| ())
}

fn needs_full(case: &Case) -> Result<bool, Failure> {
    match case.value("NEEDS") {
        None => Ok(false),
        Some("full") => Ok(true),
        Some(other) => Err(format!("{}: NEEDS: {other}: only `full` has a meaning", case.path.display())),
    }
}
