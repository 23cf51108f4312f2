//! Rewritten objects are damaged in every way that is listed here, one at a time; the checker finds each, and nothing
//! in the objects as they are.
//!
//! What is damaged are bytes of real rewritten objects, of targets of every generation and in all counter modes: new
//! code ([`registers::KINDS`], [`counters::KINDS`], [`homes::KINDS`], [`flow::KINDS`], [`hazards::KINDS`]), every field
//! of a kernel descriptor ([`descriptor::FIELDS`]), the numbers of the metadata ([`descriptor::NUMBERS`]) and what is
//! around them ([`object::KINDS`], [`tables::KINDS`]). Objects whose bad accesses are dropped have damages of their own
//! ([`dropped::KINDS`]). A finding has to break one of the rules that the kind names and, where the damage is in a
//! kernel, to name the kernel. A kind that cannot be done anywhere is a fault of this test.
//!
//! Quick: each kind on one of the objects. Full (`WAVETAP_FULL_TESTS=1`): on each of them, and on more, several times.
//! The kinds are listed with `--nocapture`; `WAVETAP_DAMAGE=wait_missing` does those with this in their name.

mod counters;
mod descriptor;
mod dropped;
mod flow;
mod hazards;
mod homes;
mod object;
mod registers;
mod subject;
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rewriter_tests::full;
use subject::{DROPPED, Harm, OWN, PRELOADED, SCHEDULED, Subject};
use wavetap::code_object::CodeObject;
use wavetap::error::{Error, Kind as ErrorKind};
use wavetap::isa::Target;
use wavetap::pipeline::Counters;
use wavetap::verify::{Finding, Rule, check_object};

/// A way of damaging.
pub struct Kind {
    /// What it is called.
    pub name: &'static str,
    /// What it does.
    pub what: &'static str,
    /// The rules of which it breaks one; [`UNREADABLE`] where the checker refuses to look at the file.
    pub rules: &'static [Rule],
    /// The damaged files; none where a subject has nothing that could be damaged so.
    pub harm: fn(&Subject) -> Vec<Harm>,
}

/// Such a file is no code object.
pub const UNREADABLE: &[Rule] = &[Rule::Skeleton];

/// Why a kernel is left out whose new code the checker does not accept.
const UNVERIFIED: &str = "unverified";

/// Source, target, wave size, level: what is damaged.
type What = (&'static str, &'static str, u32, &'static str, Counters);

const SUBJECTS: &[What] = &[
    (OWN, "gfx803", 64, "O2", Counters::Lds),
    (OWN, "gfx803", 64, "O2", Counters::Global),
    (OWN, "gfx90a", 64, "O2", Counters::Lds),
    (OWN, "gfx1030", 32, "O2", Counters::Lds),
    (OWN, "gfx1100", 64, "O2", Counters::Global),
    (OWN, "gfx1200", 32, "O2", Counters::Global),
    (OWN, "gfx942", 64, "O2", Counters::Global),
    (OWN, "gfx1010", 32, "O2", Counters::Global),
    (OWN, "gfx1100", 32, "O2", Counters::Lds),
    (OWN, "gfx90a", 64, "O2", Counters::Register),
    (OWN, "gfx1100", 32, "O2", Counters::Register),
    (PRELOADED, "gfx90a", 64, "O2", Counters::Global),
    (SCHEDULED, "gfx1200", 32, "O2", Counters::Global),
    ("memory", "gfx1250", 32, "O2", Counters::Lds),
    (DROPPED, "gfx90a", 64, "O2", Counters::Global),
    (DROPPED, "gfx1100", 32, "O2", Counters::Global),
    // Not all of its kernels are selected.
    ("memory", "gfx908", 64, "O2", Counters::Lds),
];

/// Those of the long run alone.
const MORE: &[What] = &[
    (OWN, "gfx906", 64, "O2", Counters::Global),
    (OWN, "gfx1010", 64, "O2", Counters::Lds),
    (OWN, "gfx1201", 64, "O2", Counters::Lds),
    ("control", "gfx90a", 64, "O0", Counters::Global),
    ("control", "gfx803", 64, "O2", Counters::Global),
    ("control", "gfx90a", 64, "O2", Counters::Lds),
    ("control", "gfx1201", 32, "O2", Counters::Register),
    ("memory", "gfx942", 64, "O2", Counters::Global),
    ("control", "gfx1030", 32, "O2", Counters::Lds),
    ("memory", "gfx1100", 64, "O2", Counters::Lds),
    ("control", "gfx1200", 32, "O2", Counters::Global),
];

fn compile(&(source, name, lanes, level, counters): &What) -> Subject {
    let target = Target::by_name(name).and_then(|target| target.with_wave_size(lanes)).expect("a target");
    Subject::compile(source, target, level, counters)
}

/// Does the damage, in every place where it can be done.
type Harming = Box<dyn Fn(&Subject) -> Vec<Harm>>;

/// A kind of any of the lists.
struct Case {
    name: String,
    what: &'static str,
    rules: &'static [Rule],
    harm: Harming,
    /// It damages objects whose bad accesses are dropped, and no others.
    of_drops: bool,
    damaged: usize,
    targets: BTreeSet<&'static str>,
    by: BTreeMap<&'static str, usize>,
    missed: Vec<String>,
}

impl Case {
    fn new(
        name: String,
        what: &'static str,
        rules: &'static [Rule],
        harm: impl Fn(&Subject) -> Vec<Harm> + 'static,
    ) -> Case {
        Case {
            name,
            what,
            rules,
            harm: Box::new(harm),
            of_drops: false,
            damaged: 0,
            targets: BTreeSet::new(),
            by: BTreeMap::new(),
            missed: Vec::new(),
        }
    }

    /// Damages an object; tells whether that could be done.
    fn run(&mut self, subject: &Subject) -> bool {
        let harms = (self.harm)(subject);
        for (index, harm) in harms.iter().enumerate() {
            assert!(harm.bytes != subject.rewritten, "{}: {} changes nothing", subject.name, self.name);
            self.damaged += 1;
            self.targets.insert(subject.target.name());
            let of_kernel = |finding: &&Finding| harm.kernel.is_none() || finding.kernel == harm.kernel;
            let found = match check(subject, &harm.bytes) {
                // A file that is refused is a damage that was found.
                Err(error) if matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Unsupported) => Ok("not read"),
                Err(error) => Err(format!("not read: {error}")),
                Ok(findings) => {
                    match findings.iter().filter(of_kernel).find(|finding| self.rules.contains(&finding.rule)) {
                        Some(finding) => Ok(finding.rule.name()),
                        None => {
                            Err(format!("{:?}", findings.iter().take(3).map(ToString::to_string).collect::<Vec<_>>()))
                        }
                    }
                }
            };
            match found {
                Ok(rule) => *self.by.entry(rule).or_default() += 1,
                Err(instead) => self
                    .missed
                    .push(format!("{}: {} #{index} of {:?}: {instead}", subject.name, self.name, harm.kernel)),
            }
        }
        !harms.is_empty()
    }
}

fn cases() -> Vec<Case> {
    let kinds = registers::KINDS
        .iter()
        .chain(counters::KINDS)
        .chain(flow::KINDS)
        .chain(hazards::KINDS)
        .chain(homes::KINDS)
        .chain(object::KINDS)
        .chain(tables::KINDS);
    let kinds = kinds.map(|kind| Case::new(kind.name.to_owned(), kind.what, kind.rules, kind.harm));
    let drops = dropped::KINDS.iter();
    let drops =
        drops.map(|kind| Case { of_drops: true, ..Case::new(kind.name.to_owned(), kind.what, kind.rules, kind.harm) });
    let fields = descriptor::FIELDS.iter().map(|kind| {
        Case::new(format!("descriptor: {}", kind.0), "a descriptor's field is another", kind.4, |subject| {
            descriptor::field(subject, kind)
        })
    });
    let numbers = descriptor::NUMBERS.iter().map(|kind| {
        Case::new(format!("metadata: {}", kind.0), "a number of the metadata is another", kind.4, |subject| {
            descriptor::number(subject, kind)
        })
    });
    let wanted = std::env::var("WAVETAP_DAMAGE").unwrap_or_default();
    kinds.chain(fields).chain(numbers).chain(drops).filter(|case| case.name.contains(&wanted)).collect()
}

/// What the checker finds in a damaged object; an error where it cannot be read.
fn check(subject: &Subject, bytes: &[u8]) -> Result<Vec<Finding>, Error> {
    let original = CodeObject::parse(&subject.original).expect("an object");
    let damaged = CodeObject::parse(bytes)?;
    let checked = catch_unwind(AssertUnwindSafe(|| check_object(&original, &damaged).1));
    Ok(checked.unwrap_or_else(|_| panic!("{}: the checker panics", subject.name)))
}

#[test]
fn unharmed_objects_have_no_findings_and_every_damage_is_found() {
    let mut cases = cases();
    // The names tell the kinds apart.
    assert_eq!(cases.iter().map(|case| &case.name).collect::<BTreeSet<_>>().len(), cases.len());
    let more = if full() { MORE } else { &[] };
    let subjects: Vec<Subject> = SUBJECTS.iter().chain(more).map(compile).collect();
    for subject in &subjects {
        println!("{}: {} kernels", subject.name, subject.map.kernels.len());
        for refused in &subject.map.refused {
            println!("    without {}: {}", refused.name, refused.detail);
            assert_ne!(refused.reason, UNVERIFIED, "{}: {}: {}", subject.name, refused.name, refused.detail);
        }
        assert_eq!(check(subject, &subject.rewritten).expect("an object"), Vec::new(), "{}", subject.name);
    }
    for (number, case) in cases.iter_mut().enumerate() {
        // The quick run begins with another object for each kind.
        let subjects: Vec<&Subject> = subjects.iter().filter(|subject| subject.drops == case.of_drops).collect();
        let from = if full() { 0 } else { number % subjects.len() };
        for subject in subjects[from..].iter().chain(&subjects[..from]) {
            if case.run(subject) && !full() {
                break;
            }
        }
    }
    for Case { name, what, by, damaged, targets, .. } in &cases {
        let found: usize = by.values().sum();
        let rules: Vec<&str> = by.keys().copied().collect();
        let targets: Vec<&str> = targets.iter().copied().collect();
        println!("{found:3} of {damaged:3} {name}: {what} ({}; {})", rules.join(", "), targets.join(" "));
    }
    let damages: usize = cases.iter().map(|case| case.damaged).sum();
    println!("{} kinds, {damages} damages in {} objects", cases.len(), subjects.len());
    let missed: Vec<&String> = cases.iter().flat_map(|case| &case.missed).collect();
    assert!(missed.is_empty(), "{} damages were not found:\n{missed:#?}", missed.len());
    let never: Vec<&String> = cases.iter().filter(|case| case.damaged == 0).map(|case| &case.name).collect();
    assert!(never.is_empty(), "kinds that nothing was damaged by: {never:?}");
    assert!(cases.len() >= 50 || std::env::var_os("WAVETAP_DAMAGE").is_some(), "{} kinds", cases.len());
}
