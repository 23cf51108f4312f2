//! Which dispatches are counted, of kernels that count: those in chosen ranges of the program, while it does not have
//! profilers pause, with chosen numbers.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::str::FromStr;

use wavetap_base::error::{Error, Result};
use wavetap_profile::launches::NotCounted;
use wavetap_profile::regions::{FURTHER, is_inside};

use crate::uncounted::Why;

/// Regions that have counts of their own: a program may give each of its steps a name, and each region has all that is
/// counted of its kernels.
pub const MOST_REGIONS: usize = 256;

/// Numbers of dispatches of a kernel, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DispatchNumbers {
    /// The first one.
    pub first: u64,
    /// The last one.
    pub last: u64,
}

impl DispatchNumbers {
    /// Whether a number is one of them.
    #[must_use]
    pub fn has(self, number: u64) -> bool {
        (self.first..=self.last).contains(&number)
    }
}

impl FromStr for DispatchNumbers {
    type Err = Error;

    /// `N` for the first N, or `A-B`.
    fn from_str(text: &str) -> Result<DispatchNumbers> {
        let number = |text: &str| text.parse::<u64>().ok().filter(|number| *number > 0);
        let numbers = match text.split_once('-') {
            None => number(text).map(|last| DispatchNumbers { first: 1, last }),
            Some((first, last)) => number(first).zip(number(last)).map(|(first, last)| DispatchNumbers { first, last }),
        };
        numbers.filter(|numbers| numbers.first <= numbers.last).ok_or_else(|| {
            Error::malformed(format!("dispatches {text:?}: expected N for the first N of each kernel, or A-B, from 1"))
        })
    }
}

impl fmt::Display for DispatchNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first {
            1 => self.last.fmt(f),
            first => write!(f, "{first}-{}", self.last),
        }
    }
}

/// Where a program is when it dispatches something.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Submitted {
    /// The ranges that are open, outermost first, separated by `/`.
    pub region: Option<String>,
    /// Whether it has profilers pause; none if it has not said so.
    pub paused: Option<bool>,
}

/// Which dispatches are counted. The default counts all while the program does not have profilers pause.
#[derive(Debug, Clone, Default)]
pub struct Selected {
    regions: Vec<String>,
    from_resume: bool,
    numbers: Option<DispatchNumbers>,
    /// Dispatches of each kernel so far, of those in the regions.
    seen: HashMap<String, u64>,
    /// Names of regions so far.
    named: HashSet<String>,
}

impl Selected {
    /// Dispatches inside ranges that match one of these patterns, if there are any; with `from_resume` from where the
    /// program first has profilers go on; and of those of each kernel the ones with these numbers.
    #[must_use]
    pub fn new(regions: Vec<String>, from_resume: bool, numbers: Option<DispatchNumbers>) -> Selected {
        Selected { regions, from_resume, numbers, ..Selected::default() }
    }

    /// The name of the region that a dispatch is counted in: that of its ranges, or [`FURTHER`] where those of
    /// [`MOST_REGIONS`] have names already.
    pub fn named(&mut self, region: Option<&str>) -> Option<String> {
        let name = region?;
        if !self.named.contains(name) {
            if self.named.len() >= MOST_REGIONS {
                return Some(FURTHER.to_owned());
            }
            self.named.insert(name.to_owned());
        }
        Some(name.to_owned())
    }

    /// Counts a dispatch of a kernel; why it is not to be counted, if it is not. Kernels that record accesses have
    /// numbers of their own: all their dispatches are listed, and those with other numbers record nothing.
    pub fn why_not(&mut self, kernel: &str, submitted: &Submitted, records_accesses: bool) -> Option<Why> {
        if submitted.paused.unwrap_or(self.from_resume) {
            let detail = match submitted.paused {
                Some(_) => "the program had paused profilers (roctxProfilerPause, hipProfilerStop)",
                None => "the program had not begun what is to be profiled (roctxProfilerResume, hipProfilerStart)",
            };
            return Some((NotCounted::OutsideRegion, detail.to_owned()));
        }
        let region = submitted.region.as_deref().unwrap_or_default();
        if !self.regions.is_empty() && !self.regions.iter().any(|pattern| is_inside(region, pattern)) {
            let detail = format!("it was launched outside of the ranges {}", self.regions.join(", "));
            return Some((NotCounted::OutsideRegion, detail));
        }
        let numbers = self.numbers.filter(|_| !records_accesses)?;
        let seen = match self.seen.get_mut(kernel) {
            Some(seen) => seen,
            None => self.seen.entry(kernel.to_owned()).or_default(),
        };
        *seen += 1;
        let why = format!("it is not among the dispatches {}-{} of its kernel", numbers.first, numbers.last);
        (!numbers.has(*seen)).then_some((NotCounted::OtherDispatch, why))
    }
}

/// Libraries of roctx that are not this project's.
const OTHERS: [&str; 2] = ["libroctx64.so", "librocprofiler-sdk-roctx.so"];

/// What a person has to know where the process has loaded a library of roctx past this project's: ranges that are
/// marked there are not seen.
#[must_use]
pub fn unseen_ranges() -> Option<String> {
    unseen_in(&std::fs::read_to_string("/proc/self/maps").ok()?)
}

fn unseen_in(maps: &str) -> Option<String> {
    let path = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..])).find(|path| {
        let name = path.rsplit('/').next().unwrap_or_default();
        OTHERS.iter().any(|other| name.starts_with(other))
    })?;
    Some(format!("the application has loaded {path}: ranges that it marks through that library are not seen"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_others_are_named() {
        let line = |path: &str| format!("7f00-7f01 r-xp 00000000 08:01 5        {path}\n");
        let ours =
            line("/usr/lib/wavetap/libwavetap_ranges.so") + &line("/usr/lib/libc.so.6") + "7f05-7f06 rw-p 0 0 0\n";
        assert_eq!(unseen_in(&ours), None);
        let found = unseen_in(&(ours + &line("/opt/rocm 6/lib/libroctx64.so.4.1.0"))).unwrap();
        assert!(found.contains("has loaded /opt/rocm 6/lib/libroctx64.so.4.1.0: "), "{found}");
    }

    #[test]
    fn numbers_of_dispatches() {
        for (text, numbers) in [("3", Some((1, 3))), ("2-4", Some((2, 4))), ("5-5", Some((5, 5)))] {
            let parsed: DispatchNumbers = text.parse().unwrap();
            assert_eq!((Some((parsed.first, parsed.last)), parsed.to_string()), (numbers, text.to_owned()));
        }
        for text in ["", "0", "0-3", "4-2", "-3", "3-", "a"] {
            assert!(text.parse::<DispatchNumbers>().is_err(), "{text}");
        }
    }

    #[test]
    fn names_have_an_end() {
        let mut all = Selected::default();
        let names: Vec<_> = (0..=MOST_REGIONS).map(|step| all.named(Some(&format!("step {step}")))).collect();
        assert_eq!(names[MOST_REGIONS - 1].as_deref(), Some("step 255"));
        assert_eq!(names[MOST_REGIONS].as_deref(), Some(FURTHER));
        assert_eq!((all.named(Some("step 7")).as_deref(), all.named(None)), (Some("step 7"), None));
    }

    #[test]
    fn ranges_pauses_and_numbers_together() {
        let at = |region: Option<&str>, paused| Submitted { region: region.map(str::to_owned), paused };
        let why = |found: Option<Why>| found.map(|(why, _)| why);
        let mut all = Selected::default();
        assert_eq!(all.why_not("k", &at(None, None), false), None);
        assert_eq!(why(all.why_not("k", &at(None, Some(true)), false)), Some(NotCounted::OutsideRegion));
        assert_eq!(all.why_not("k", &at(None, Some(false)), false), None);
        let mut resumed = Selected::new(Vec::new(), true, None);
        assert_eq!(why(resumed.why_not("k", &at(None, None), false)), Some(NotCounted::OutsideRegion));
        assert_eq!(resumed.why_not("k", &at(None, Some(false)), false), None);
        let mut second = Selected::new(vec!["decode".to_owned()], false, "2-2".parse().ok());
        let inside = at(Some("step/decode"), None);
        let found: Vec<_> = ["k", "k", "other", "k"]
            .into_iter()
            .map(|kernel| {
                assert_eq!(
                    why(second.why_not(kernel, &at(Some("step"), None), false)),
                    Some(NotCounted::OutsideRegion)
                );
                why(second.why_not(kernel, &inside, false))
            })
            .collect();
        let other = Some(NotCounted::OtherDispatch);
        assert_eq!(found, [other, None, other, other]);
        assert_eq!(second.why_not("recorded", &inside, true), None);
    }
}
