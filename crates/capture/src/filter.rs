//! Which dispatch of a run is captured.

use wavetap_base::glob::matches;
use wavetap_object::code_object::demangle;
use wavetap_object::selection::bare_name;

/// Selects one dispatch: the n-th of all whose kernel matches.
///
/// ```
/// use wavetap_capture::Filter;
///
/// let mut filter = Filter::new(vec!["mul_mat*".to_owned()], 2);
/// let kernels = ["mul_mat_f16", "copy", "mul_mat_q4", "mul_mat_f16"];
/// assert_eq!(kernels.map(|kernel| filter.selects(kernel)), [false, false, true, false]);
/// assert_eq!(filter.seen(), 3);
/// ```
#[derive(Debug, Clone)]
pub struct Filter {
    patterns: Vec<String>,
    number: u64,
    seen: u64,
}

impl Filter {
    /// The dispatch with this number, from 1, of kernels whose mangled or demangled name, or that without parameters,
    /// matches one of these patterns; of any kernel if there are none.
    #[must_use]
    pub fn new(patterns: Vec<String>, number: u64) -> Filter {
        Filter { patterns, number: number.max(1), seen: 0 }
    }

    /// Whether the kernel matches, whichever dispatch of it.
    #[must_use]
    pub fn matches(&self, kernel: &str) -> bool {
        let demangled = demangle(kernel);
        let names = [kernel, &demangled, bare_name(&demangled)];
        self.patterns.is_empty() || self.patterns.iter().any(|pattern| names.iter().any(|name| matches(pattern, name)))
    }

    /// Counts a dispatch of a kernel; whether it is the one.
    pub fn selects(&mut self, kernel: &str) -> bool {
        if !self.matches(kernel) {
            return false;
        }
        self.seen += 1;
        self.seen == self.number
    }

    /// Dispatches of kernels that match so far.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.seen
    }
}
