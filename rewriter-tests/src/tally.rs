//! Tests whose trials add to sums, which are printed and judged when all have run.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;

use libtest_mimic::{Arguments, Trial};

use crate::Failure;

/// What some trials have compared.
pub trait Tally: Default + Send {
    /// Adds what others have.
    fn add(&mut self, other: Self);
}

/// The sums of all trials of a test, by target or by way of compiling.
pub struct Tallies<T>(Mutex<BTreeMap<String, T>>);

impl<T: Tally> Default for Tallies<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Tally> Tallies<T> {
    /// No sums.
    #[must_use]
    pub const fn new() -> Self {
        Tallies(Mutex::new(BTreeMap::new()))
    }

    /// Adds what a trial has compared.
    ///
    /// # Panics
    /// If another thread panicked while it added.
    pub fn add(&self, name: impl Into<String>, tally: T) {
        self.0.lock().expect("additions do not panic").entry(name.into()).or_default().add(tally);
    }

    /// The `main` of such a test: runs the trials that its arguments choose, then has the sums printed and judged.
    /// `judge` says what is wrong although each trial passed: that too little was compared.
    ///
    /// # Panics
    /// If a trial panicked while it added.
    pub fn run(
        &self,
        trials: Result<Vec<Trial>, Failure>,
        judge: impl FnOnce(&BTreeMap<String, T>) -> Result<(), Failure>,
    ) -> ExitCode {
        let arguments = Arguments::from_args();
        let trials = match trials {
            Ok(trials) if trials.is_empty() => {
                eprintln!("there is nothing to try");
                return ExitCode::FAILURE;
            }
            Ok(trials) => trials,
            Err(failure) => {
                eprintln!("{failure}");
                return ExitCode::FAILURE;
            }
        };
        let conclusion = libtest_mimic::run(&arguments, trials);
        let judged = judge(&self.0.lock().expect("additions do not panic"));
        if let Err(failure) = judged {
            println!("{failure}");
            return ExitCode::FAILURE;
        }
        conclusion.exit_code()
    }
}

/// Adds counts to others, name by name.
pub fn add_counts<K: Ord>(sums: &mut BTreeMap<K, u64>, counts: impl IntoIterator<Item = (K, u64)>) {
    for (name, count) in counts {
        *sums.entry(name).or_default() += count;
    }
}

/// That of all kernels enough are instrumented.
///
/// # Errors
/// If fewer than `goal` of a hundred are.
pub fn at_least(goal: u64, instrumented: u64, kernels: u64) -> Result<(), Failure> {
    if instrumented * 100 < kernels * goal {
        return Err(format!("{instrumented} of {kernels} kernels are instrumented, fewer than {goal} of a hundred"));
    }
    Ok(())
}
