//! Files that are like an earlier one but for their numbers, without parsing them.
//!
//! A [`Template`] is the text of a profile with holes at each number that adds up, at the rank and at the host's name.
//! A file that has the text between the holes byte for byte, and a number in each hole, is the profile of the template
//! with these numbers, by the definition of JSON. Anything else is parsed.
//!
//! Where the holes are, the writer says: the profile is written with numbers in place of its own that nothing else in
//! the text has, and these are found in the text. A template is used only if it reads the profile's own numbers out of
//! the file that it was made of.

use std::collections::BTreeMap;
use std::ops::Range;

use super::groups::GroupKey;
use super::total::{Same, Total};
use crate::file::{Dimension, Profile};
use crate::host::HostStep;
use wavetap_base::error::{Error, Result};

/// How many templates there are at once. Ranks of one program have few structures: that of the first rank, of those at
/// the edge of a domain, and of the others.
const MOST_TEMPLATES: usize = 16;
/// So many files in a row that are like none make a template each; of those after them one of [`SELDOM`] does.
const OFTEN: u32 = 32;
const SELDOM: u32 = 16;
/// The first of the numbers that mark holes. All of them have 20 digits.
const FIRST_MARK: u64 = 10_000_000_000_000_000_000;
/// How the lines of the rank and of the host's name begin: the profile's own fields have two blanks before them.
const RANK_FIELD: &[u8] = b"  \"rank\": ";
const HOST_FIELD: &[u8] = b"  \"hostname\": \"";

/// How a number in a file adds to that of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// As its schema says.
    Field(crate::schema::Merge),
    /// Up to the largest number.
    Saturate,
    /// It is of one process and is dropped of several.
    Drop,
}

/// What is in a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hole {
    /// The number of this index.
    Number(usize),
    Rank,
    Hostname,
}

/// The text before each hole.
type Holes = Vec<(Range<usize>, Hole)>;

/// What was read of a file.
#[derive(Debug, Default)]
struct Numbers {
    values: Vec<u64>,
    rank: Option<u32>,
    /// The bytes of the file that are the name.
    hostname: Option<Range<usize>>,
}

/// The sum of files like the one of the template, which itself is not in it.
#[derive(Debug)]
struct Batch {
    files: u32,
    values: Vec<u64>,
    rank: Same<u32>,
    hostname: Same<String>,
}

/// A profile with holes.
#[derive(Debug)]
pub(super) struct Template {
    profile: Profile,
    text: Vec<u8>,
    holes: Holes,
    /// The text after the last one.
    tail: Range<usize>,
    rules: Vec<Rule>,
    batches: BTreeMap<GroupKey, Batch>,
}

/// Templates, the one that was used last first.
#[derive(Debug, Default)]
pub(super) struct Templates {
    templates: Vec<Template>,
    scratch: Numbers,
    /// Files since the last one that a template was like.
    unlike: u32,
}

impl Templates {
    /// Adds a file if a template is like it; gives whether one is.
    ///
    /// # Errors
    /// Unsupported if what is kept apart is not known of it; Limit if a sum exceeds 64 bits.
    pub(super) fn add(&mut self, data: &[u8], by: &[Dimension]) -> Result<bool> {
        let Templates { templates, scratch, unlike } = self;
        let Some(at) = templates.iter().position(|template| template.read(data, scratch)) else { return Ok(false) };
        templates[..=at].rotate_right(1);
        *unlike = 0;
        templates[0].add(data, scratch, by)?;
        Ok(true)
    }

    /// Makes a template of a profile that was read from `data`, if it has no entries that do not add up and templates
    /// are of use. Gives the one in whose place it is.
    pub(super) fn learn(&mut self, profile: Profile, data: &[u8]) -> Option<Template> {
        self.unlike = self.unlike.saturating_add(1);
        if self.unlike > OFTEN && !self.unlike.is_multiple_of(SELDOM) {
            return None;
        }
        let template = Template::of(profile, data, &mut self.scratch)?;
        let oldest = if self.templates.len() < MOST_TEMPLATES { None } else { self.templates.pop() };
        self.templates.insert(0, template);
        oldest
    }

    /// All templates.
    pub(super) fn into_iter(self) -> impl Iterator<Item = Template> {
        self.templates.into_iter()
    }
}

impl Template {
    fn of(mut profile: Profile, data: &[u8], scratch: &mut Numbers) -> Option<Template> {
        let Profile { waves, accesses, out_of_bounds, groups, .. } = &profile;
        if !(waves.is_empty() && accesses.is_empty() && out_of_bounds.is_empty() && groups.is_empty()) {
            return None;
        }
        let mut own = Vec::new();
        let mut rules = Vec::new();
        each_number(&mut profile, &mut |number, rule| {
            own.push(*number);
            rules.push(rule);
        });
        let mut marks = FIRST_MARK..;
        each_number(&mut profile, &mut |number, _| *number = marks.next().unwrap_or_default());
        let text = profile.to_json();
        let mut values = own.iter().copied();
        each_number(&mut profile, &mut |number, _| *number = values.next().unwrap_or_default());
        let text = text.ok()?;
        let (holes, tail) = holes(&text, own.len())?;
        let template = Template { profile, text, holes, tail, rules, batches: BTreeMap::new() };
        let is_own = template.read(data, scratch)
            && scratch.values == own
            && scratch.rank == template.profile.rank
            && scratch.name(data) == template.profile.hostname.as_deref();
        is_own.then_some(template)
    }

    /// Reads the numbers of a file; gives whether it is like the template.
    fn read(&self, data: &[u8], numbers: &mut Numbers) -> bool {
        numbers.values.clear();
        numbers.values.resize(self.rules.len(), 0);
        (numbers.rank, numbers.hostname) = (None, None);
        let mut rest = data;
        for (before, hole) in &self.holes {
            let Some(after) = rest.strip_prefix(&self.text[before.clone()]) else { return false };
            rest = match hole {
                Hole::Number(index) => {
                    let Some((value, after)) = number(after) else { return false };
                    numbers.values[*index] = value;
                    after
                }
                Hole::Rank => {
                    let Some((value, after)) = number(after) else { return false };
                    let Ok(rank) = u32::try_from(value) else { return false };
                    numbers.rank = Some(rank);
                    after
                }
                Hole::Hostname => {
                    let is_end = |byte: &u8| !(byte.is_ascii_alphanumeric() || b"-._".contains(byte));
                    let Some(length) = after.iter().position(is_end) else { return false };
                    let begin = data.len() - after.len();
                    numbers.hostname = Some(begin..begin + length);
                    &after[length..]
                }
            };
        }
        rest == &self.text[self.tail.clone()]
    }

    /// Adds what was read of a file.
    fn add(&mut self, data: &[u8], numbers: &Numbers, by: &[Dimension]) -> Result<()> {
        let hostname = numbers.name(data);
        let batch = self.batches.entry(GroupKey::new(by, numbers.rank, hostname)?).or_insert_with(|| Batch {
            files: 0,
            values: self.rules.iter().map(|rule| rule.identity()).collect(),
            rank: Same::Unset,
            hostname: Same::Unset,
        });
        for ((sum, value), rule) in batch.values.iter_mut().zip(&numbers.values).zip(&self.rules) {
            *sum = rule.combine(*sum, *value).ok_or_else(|| Error::limit("a sum exceeds 64 bits"))?;
        }
        batch.files = batch.files.saturating_add(1);
        batch.rank.add(numbers.rank);
        batch.hostname.add(hostname.map(str::to_owned));
        Ok(())
    }

    /// Adds the files that were like it to a sum that has the one that it was made of.
    pub(super) fn add_to(self, total: &mut Total) -> Result<()> {
        let Template { mut profile, batches, .. } = self;
        let processes = profile.processes;
        for batch in batches.into_values() {
            let mut values = batch.values.into_iter();
            each_number(&mut profile, &mut |number, _| *number = values.next().unwrap_or_default());
            profile.processes = processes.saturating_mul(batch.files);
            (profile.rank, profile.hostname) = (batch.rank.get(), batch.hostname.get());
            total.add(&profile, "files that are alike")?;
        }
        Ok(())
    }
}

impl Numbers {
    /// The host's name, which is ASCII.
    fn name<'d>(&self, data: &'d [u8]) -> Option<&'d str> {
        std::str::from_utf8(data.get(self.hostname.clone()?)?).ok()
    }
}

impl Rule {
    fn identity(self) -> u64 {
        match self {
            Rule::Field(merge) => merge.identity(),
            Rule::Saturate | Rule::Drop => 0,
        }
    }

    /// None if the sum exceeds 64 bits.
    fn combine(self, a: u64, b: u64) -> Option<u64> {
        match self {
            Rule::Field(merge) => merge.combine(a, b),
            Rule::Saturate => Some(a.saturating_add(b)),
            Rule::Drop => Some(b),
        }
    }
}

/// All numbers of a profile that may differ between files that are alike.
fn each_number(profile: &mut Profile, each: &mut impl FnMut(&mut u64, Rule)) {
    const SUM: Rule = Rule::Field(crate::schema::Merge::Sum);
    for kernel in profile.kernels.iter_mut().chain(&mut profile.regions) {
        for number in [&mut kernel.dispatches, &mut kernel.waves, &mut kernel.dropped, &mut kernel.unfinished] {
            each(number, SUM);
        }
        kernel.launches.iter_mut().for_each(|launch| each(&mut launch.dispatches, SUM));
        if let Some(work) = &mut kernel.work {
            for number in [&mut work.instructions, &mut work.global_bytes, &mut work.lds_bytes] {
                each(number, SUM);
            }
        }
        for site in &mut kernel.sites {
            site.counts.each(|value, field| each(value, Rule::Field(field.merge)));
        }
    }
    profile.uncounted.iter_mut().for_each(|uncounted| each(&mut uncounted.dispatches, SUM));
    let mut step = |step: &mut HostStep, rule: Rule| {
        each(&mut step.count, rule);
        each(&mut step.bytes, rule);
    };
    profile.host.totals.iter_mut().for_each(|total| step(total, Rule::Saturate));
    profile.host.order.iter_mut().for_each(|entry| step(entry, Rule::Drop));
    // What is not written has no place in the text.
    if !profile.host.is_empty() {
        each(&mut profile.host.later, Rule::Drop);
    }
}

/// The holes of a text with so many marks, and what is after the last one; none if a mark is not there once.
///
/// Every number is the end of a line, and no string in JSON has a line break.
fn holes(text: &[u8], marks: usize) -> Option<(Holes, Range<usize>)> {
    let (mut holes, mut seen) = (Vec::new(), vec![false; marks]);
    let (mut filled, mut begin) = (0, 0);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let end = begin + line.strip_suffix(b",\n").or_else(|| line.strip_suffix(b"\n")).unwrap_or(line).len();
        let content = &text[begin..end];
        let hole = if let Some(rank) = content.strip_prefix(RANK_FIELD) {
            Some((end - rank.len(), end, Hole::Rank))
        } else if let Some(name) = content.strip_prefix(HOST_FIELD) {
            Some((end - name.len(), end - 1, Hole::Hostname))
        } else {
            let digits = content.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
            let index = number(&content[content.len() - digits..]).and_then(|(value, _)| value.checked_sub(FIRST_MARK));
            let index = index.and_then(|index| usize::try_from(index).ok()).filter(|index| *index < marks);
            index.map(|index| (end - digits, end, Hole::Number(index)))
        };
        if let Some((from, to, hole)) = hole {
            if let Hole::Number(index) = hole
                && std::mem::replace(&mut seen[index], true)
            {
                return None;
            }
            holes.push((filled..from, hole));
            filled = to;
        }
        begin += line.len();
    }
    seen.iter().all(|seen| *seen).then_some((holes, filled..text.len()))
}

/// The number in decimal at the start of a text, as JSON has it, and what is after it.
fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    let mut length = 0;
    while let Some(digit) = text.get(length).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit <= 9) {
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
        length += 1;
    }
    let is_number = length == 1 || length > 1 && text[0] != b'0';
    is_number.then(|| (value, &text[length..]))
}
