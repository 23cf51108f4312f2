//! Findings of strict mode that a dispatch can go on after: it is defined how, whatever the hardware would do.

use std::fmt;

use rustc_hash::FxHashMap;

use wavetap_base::error::{Error, Result};
use wavetap_base::glob;

use super::{Fault, FaultKind, MemoryAccess};
use crate::address::ObjectId;
use crate::address::allocation::Allocation;

/// Pages in which the memory of a GPU is mapped: the rest of an allocation's last one can be read.
const PAGE: u64 = 4096;

/// The kinds of findings after which a dispatch can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingKind {
    /// Undefined bits decide something. Their values differ with every seed.
    Uninitialised,
    /// Accesses of LDS that nothing orders: they come in the order in which the waves run.
    LdsRace,
    /// A result that no wait has guaranteed: it is used as if it had been waited for.
    MissingWait,
    /// Too few wait states, or a forbidden sequence: instructions do what they do elsewhere.
    Hazard,
    /// A vector load from after the end of an allocation, in its last page: it gives zeros.
    Overread,
    /// Accesses of global memory that nothing orders: they come in the order in which the waves run.
    GlobalRace,
    /// The same of two stores of one value: harmless in itself, a run always goes on after it.
    SameValue,
    /// Lanes of one instruction store different values to one place: that of the last one is there.
    Lanes,
    /// Any other access outside of allocations. It does not happen: a load gives zeros.
    Memory,
    /// An access outside of the workgroup's LDS. It does not happen.
    LdsBounds,
    /// An access outside of the lane's scratch. It does not happen.
    ScratchBounds,
    /// An atomic at an address that it does not support. It does not happen.
    Misaligned,
    /// A barrier that not all of a workgroup come to.
    Barrier,
    /// Workgroups that wait for one that has no room beside them: it begins all the same.
    NoProgress,
}

impl FindingKind {
    /// The kinds after which a dispatch goes on as hardware might: those that can be suppressed.
    pub const DEFINED: [FindingKind; 8] = [
        FindingKind::Uninitialised,
        FindingKind::LdsRace,
        FindingKind::MissingWait,
        FindingKind::Hazard,
        FindingKind::Overread,
        FindingKind::GlobalRace,
        FindingKind::SameValue,
        FindingKind::Lanes,
    ];

    /// Its name in a file of suppressions.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FindingKind::Uninitialised => "uninitialised",
            FindingKind::LdsRace => "lds-race",
            FindingKind::MissingWait => "missing-wait",
            FindingKind::Hazard => "hazard",
            FindingKind::Overread => "overread",
            FindingKind::Memory => "memory",
            FindingKind::LdsBounds => "lds-bounds",
            FindingKind::ScratchBounds => "scratch-bounds",
            FindingKind::Misaligned => "misaligned",
            FindingKind::Barrier => "barrier",
            FindingKind::NoProgress => "no-progress",
            FindingKind::GlobalRace => "race",
            FindingKind::SameValue => "same-value",
            FindingKind::Lanes => "lanes",
        }
    }

    /// Of a fault; none if nothing can go on after it.
    #[must_use]
    pub fn of(fault: &FaultKind) -> Option<FindingKind> {
        match fault {
            FaultKind::Uninitialised { .. } => Some(FindingKind::Uninitialised),
            FaultKind::LdsRace { .. } => Some(FindingKind::LdsRace),
            FaultKind::MissingWait { .. } => Some(FindingKind::MissingWait),
            FaultKind::GlobalRace { same_value: true, .. } => Some(FindingKind::SameValue),
            FaultKind::GlobalRace { .. } => Some(FindingKind::GlobalRace),
            FaultKind::LaneConflict { .. } => Some(FindingKind::Lanes),
            FaultKind::Hazard { .. } => Some(FindingKind::Hazard),
            FaultKind::Memory {
                address,
                size,
                access: MemoryAccess::Load,
                nearest: Some(Allocation { address: start, size: length, .. }),
            } => {
                let end = start.saturating_add(*length);
                let mapped = end.checked_next_multiple_of(PAGE).unwrap_or(end);
                let inside = address >= start && address.checked_add((*size).into()).is_some_and(|last| last <= mapped);
                Some(if inside { FindingKind::Overread } else { FindingKind::Memory })
            }
            FaultKind::Memory { access: MemoryAccess::Fetch, .. } => None,
            FaultKind::Memory { .. } => Some(FindingKind::Memory),
            FaultKind::LdsBounds { .. } => Some(FindingKind::LdsBounds),
            FaultKind::ScratchBounds { .. } => Some(FindingKind::ScratchBounds),
            FaultKind::Misaligned { .. } => Some(FindingKind::Misaligned),
            FaultKind::Barrier { .. } => Some(FindingKind::Barrier),
            FaultKind::NoProgress(_) => Some(FindingKind::NoProgress),
            _ => None,
        }
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which findings a dispatch goes on after.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Passes {
    /// Any of [`FindingKind::DEFINED`].
    pub all: bool,
    /// Accesses out of bounds, which then do not happen, and barriers that not all come to.
    pub accesses: bool,
    /// Those that are suppressed in this kernel.
    pub suppressed: Suppressions,
}

impl Passes {
    /// Whether a dispatch goes on after a finding of the instruction at a code address.
    pub(crate) fn allow(&self, kind: FindingKind, address: u64) -> bool {
        match FindingKind::DEFINED.contains(&kind) {
            true => self.all || kind == FindingKind::SameValue || self.suppressed.covers(kind, address),
            false => self.accesses,
        }
    }
}

/// A line of a file of suppressions.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Suppression {
    /// Any if none.
    kind: Option<FindingKind>,
    kernel: String,
    /// Any if none.
    address: Option<u64>,
}

/// Findings that are not to be reported.
///
/// One in a line: a kind ([`FindingKind::name`], or `*` for any), a kernel (its symbol or its demangled name, in which
/// `*` stands for any characters, blanks included, and `?` for any one), and, if it is only meant there, the address of
/// the instruction as reports have it. What follows `#` is a comment.
///
/// ```
/// use wavetap_emulator::{FindingKind, Suppressions};
///
/// let suppressions = Suppressions::parse("# harmless\nlds-race *merge_kernel* 0x1a40\nuninitialised *\n")?;
/// assert_eq!(suppressions.of_kernel(&["saxpy"]).kinds(), [FindingKind::Uninitialised]);
/// # Ok::<(), wavetap_base::error::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Suppressions(Vec<Suppression>);

impl Suppressions {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// Malformed if a line is not of this form, with its number.
    pub fn parse(text: &str) -> Result<Suppressions> {
        let lines = text.lines().enumerate().map(|(n, line)| (n + 1, line.split('#').next().unwrap_or_default()));
        let found = lines.filter(|(_, line)| !line.trim().is_empty()).map(|(n, line)| {
            let wrong = |what: String| Error::malformed(format!("line {n}: {what}"));
            let mut fields = line.split_whitespace();
            let (Some(kind), Some(kernel), address, None) =
                (fields.next(), fields.next(), fields.next(), fields.next())
            else {
                return Err(wrong("KIND KERNEL [ADDRESS] expected (write * for blanks in a kernel's name)".into()));
            };
            let kind = match kind {
                "*" => None,
                name => Some(FindingKind::DEFINED.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
                    let names = FindingKind::DEFINED.map(FindingKind::name).join(", ");
                    wrong(format!("`{name}` is no kind that can be suppressed: {names} or * expected"))
                })?),
            };
            let parse = |text: &str| match text.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok(),
                None => None,
            };
            let address = address.map(|text| {
                parse(text).ok_or_else(|| wrong(format!("`{text}` is no address: 0x and hexadecimal digits expected")))
            });
            Ok(Suppression { kind, kernel: kernel.to_owned(), address: address.transpose()? })
        });
        found.collect::<Result<_>>().map(Suppressions)
    }

    /// Those for a kernel with these names.
    #[must_use]
    pub fn of_kernel(&self, names: &[&str]) -> Suppressions {
        let fits = |suppression: &&Suppression| names.iter().any(|name| glob::matches(&suppression.kernel, name));
        Suppressions(self.0.iter().filter(fits).cloned().collect())
    }

    /// The same with other addresses: those of code that was rewritten, for reports that have the original's.
    #[must_use]
    pub fn with_addresses(mut self, mut rewritten: impl FnMut(u64) -> u64) -> Suppressions {
        for suppression in &mut self.0 {
            suppression.address = suppression.address.map(&mut rewritten);
        }
        self
    }

    /// The kinds that are suppressed somewhere.
    #[must_use]
    pub fn kinds(&self) -> Vec<FindingKind> {
        let any = |kind: &FindingKind| self.0.iter().any(|suppression| suppression.kind.is_none_or(|it| it == *kind));
        FindingKind::DEFINED.into_iter().filter(any).collect()
    }

    /// Whether a finding is suppressed.
    fn covers(&self, kind: FindingKind, address: u64) -> bool {
        let fits = |suppression: &Suppression| {
            suppression.kind.is_none_or(|it| it == kind) && suppression.address.is_none_or(|it| it == address)
        };
        self.0.iter().any(fits)
    }
}

/// A finding after which a dispatch went on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What strict mode would have stopped with, when it was found first.
    pub fault: Fault,
    /// Its kind.
    pub kind: FindingKind,
    /// The lanes of which it was found then: a bit for each.
    pub lanes: u64,
    /// How often it was found at this instruction: of how many lanes, in all executions.
    pub count: u64,
    /// It is among the suppressed ones.
    pub suppressed: bool,
}

/// The findings of a device, each place once.
#[derive(Default)]
pub(crate) struct Findings {
    list: Vec<Finding>,
    places: FxHashMap<(Option<ObjectId>, u64, FindingKind), usize>,
}

impl Findings {
    /// Counts a finding at a place that has one of its kind already, which is cheaper than to describe it again; false
    /// if there is none.
    pub(crate) fn again(&mut self, place: Option<(ObjectId, u64)>, kind: &FaultKind) -> bool {
        let (Some((object, address)), Some(kind)) = (place, FindingKind::of(kind)) else { return false };
        let known = self.places.get(&(Some(object), address, kind)).and_then(|at| self.list.get_mut(*at));
        known.map(|known| known.count += 1).is_some()
    }

    /// Adds what was found when an instruction ran.
    pub(crate) fn add_all(&mut self, faults: Vec<Fault>, passes: &Passes) {
        let bit = |fault: &Fault| fault.lane.map_or(0, |lane| 1 << lane);
        let kinds: Vec<Option<FindingKind>> = faults.iter().map(|fault| FindingKind::of(&fault.kind)).collect();
        let of_kind = |kind: &Option<FindingKind>| {
            let same = faults.iter().zip(&kinds).filter(|(_, other)| *other == kind);
            same.fold(0, |lanes, (fault, _)| lanes | bit(fault))
        };
        let lanes: Vec<u64> = kinds.iter().map(of_kind).collect();
        faults.into_iter().zip(lanes).for_each(|(fault, lanes)| self.add(fault, lanes, passes));
    }

    fn add(&mut self, fault: Fault, lanes: u64, passes: &Passes) {
        let Some(kind) = FindingKind::of(&fault.kind) else { return };
        let at = *self.places.entry((fault.object, fault.address, kind)).or_insert(self.list.len());
        match self.list.get_mut(at) {
            Some(known) => known.count += 1,
            None => {
                let suppressed = passes.suppressed.covers(kind, fault.address);
                self.list.push(Finding { fault, kind, lanes, count: 1, suppressed });
            }
        }
    }

    /// All of them; none are left.
    pub(crate) fn take(&mut self) -> Vec<Finding> {
        self.places.clear();
        std::mem::take(&mut self.list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::allocation::AllocationKind;

    #[test]
    fn lines_of_a_file() {
        let parsed = Suppressions::parse("# all\n\nhazard k*\n  * other 0x10 # there\n").expect("it is right");
        assert!(parsed.of_kernel(&["kernel"]).covers(FindingKind::Hazard, 7));
        assert!(!parsed.of_kernel(&["kernel"]).covers(FindingKind::LdsRace, 7));
        assert!(parsed.of_kernel(&["x", "other"]).covers(FindingKind::LdsRace, 0x10));
        assert!(!parsed.of_kernel(&["x", "other"]).covers(FindingKind::LdsRace, 0x14));
        let elsewhere = parsed.of_kernel(&["other"]).with_addresses(|address| address + 4);
        assert!(elsewhere.covers(FindingKind::LdsRace, 0x14) && !elsewhere.covers(FindingKind::LdsRace, 0x10));
        for (text, part) in [
            ("hazard", "line 1: KIND KERNEL"),
            ("\nmemory *", "line 2: `memory`"),
            ("* k 16", "`16`"),
            ("* k 0x1 more", "KIND KERNEL"),
        ] {
            let error = Suppressions::parse(text).expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn the_rest_of_a_page_can_be_read() {
        let nearest = Some(Allocation { address: 0x10000, size: 100, kind: AllocationKind::Device });
        let of = |address, size, access| FindingKind::of(&FaultKind::Memory { address, size, access, nearest });
        assert_eq!(of(0x10064, 4, MemoryAccess::Load), Some(FindingKind::Overread));
        assert_eq!(of(0x10062, 4, MemoryAccess::Load), Some(FindingKind::Overread));
        assert_eq!(of(0x10ffc, 4, MemoryAccess::Load), Some(FindingKind::Overread));
        assert_eq!(of(0x10ffe, 4, MemoryAccess::Load), Some(FindingKind::Memory));
        assert_eq!(of(0xffff, 4, MemoryAccess::Load), Some(FindingKind::Memory));
        assert_eq!(of(0x10064, 4, MemoryAccess::Store), Some(FindingKind::Memory));
        assert_eq!(of(u64::MAX, 4, MemoryAccess::Load), Some(FindingKind::Memory));
        assert_eq!(of(0x10064, 4, MemoryAccess::Fetch), None);
    }
}
