//! Which words of an array how many waves access: the heat map.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::accesses::Space;
use crate::arrays::{Array, Arrays, WORD};
use crate::measured::active;
use crate::recorded::{Recorded, RecordedKernel};
use crate::site_sets::{SetNumber, SiteSets};

/// More waves than a workgroup has on any target.
const MOST_WAVES: u32 = 64;
/// Runs of a heat map; what is beyond them is counted and not kept.
const MOST_RUNS: usize = 1 << 18;

/// A word of four bytes, as the waves of a workgroup access it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// Its number: its address, divided by four.
    pub number: u64,
    /// The waves of the workgroup that access it: a bit for each.
    pub waves: u64,
    /// Whether more than one lane does, of one wave or of several.
    pub several_lanes: bool,
    /// Executions of instructions that access it.
    pub executions: u32,
    /// The instructions that do: a set of [`WorkgroupWords::sites`].
    pub sites: SetNumber,
}

impl Word {
    /// How many waves access it.
    #[must_use]
    pub fn temperature(&self) -> u32 {
        self.waves.count_ones()
    }
}

/// The words of an array that a workgroup accesses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkgroupWords {
    /// The dispatch.
    pub dispatch: u32,
    /// The workgroup's id.
    pub workgroup: [u32; 3],
    /// By rising number.
    pub words: Vec<Word>,
    /// The sets of instructions that access the same word.
    pub sites: SiteSets,
}

/// The words of a sector that a workgroup accesses.
#[derive(Debug, Clone, Copy)]
pub struct Sector<'w> {
    /// Its number: its address, divided by its size.
    pub number: u64,
    /// The words of it that are accessed, by rising number; at least one.
    pub words: &'w [Word],
}

impl Sector<'_> {
    /// How many waves access it.
    #[must_use]
    pub fn temperature(&self) -> u32 {
        self.words.iter().fold(0, |waves, word| waves | word.waves).count_ones()
    }
}

impl WorkgroupWords {
    /// The sectors of so many bytes that are accessed, by rising number.
    ///
    /// # Panics
    /// If a sector is no whole number of words.
    pub fn sectors(&self, bytes: u32) -> impl Iterator<Item = Sector<'_>> {
        let words = u64::from(bytes) / WORD;
        assert!(words > 0 && u64::from(bytes).is_multiple_of(WORD), "{bytes}");
        let sector = move |word: &Word| word.number / words;
        self.words
            .chunk_by(move |one, other| sector(one) == sector(other))
            .map(move |words| Sector { number: sector(&words[0]), words })
    }

    /// The heat map with sectors of so many bytes.
    ///
    /// # Panics
    /// If a sector is no whole number of words.
    #[must_use]
    pub fn heat_map(&self, sector_bytes: u32) -> HeatMap {
        let in_sector = (u64::from(sector_bytes) / WORD) as usize;
        let mut map = HeatMap { sector_bytes, ..HeatMap::default() };
        let mut sets = self.sites.clone();
        let mut numbers: HashMap<Pattern, u32> = HashMap::new();
        for sector in self.sectors(sector_bytes) {
            let mut pattern = Pattern { words: vec![0; in_sector], sector: sector.temperature() as u8 };
            for word in sector.words {
                pattern.words[(word.number % in_sector as u64) as usize] = word.temperature() as u8;
            }
            let sites = sector.words.iter().fold(SetNumber::default(), |all, word| sets.union(all, word.sites));
            let next = map.patterns.len() as u32;
            let known = numbers.get(&pattern).copied();
            let is_full = map.runs.len() == MOST_RUNS;
            let last = map.runs.last_mut().filter(|run| run.sector + run.sectors == sector.number);
            if let Some(run) = last.filter(|run| known == Some(run.pattern) && run.sites == sites) {
                run.sectors += 1;
                continue;
            }
            if is_full {
                map.left_out += 1;
                continue;
            }
            let number = known.unwrap_or_else(|| {
                numbers.insert(pattern.clone(), next);
                map.patterns.push(pattern);
                next
            });
            map.runs.push(Run { sector: sector.number, sectors: 1, pattern: number, sites });
        }
        map.sites = sets;
        map
    }
}

/// How many waves of a workgroup access each word and each sector of an array: most sectors look like others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeatMap {
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// What sectors look like; each one differs from the others.
    pub patterns: Vec<Pattern>,
    /// The sectors that are accessed, by rising number.
    pub runs: Vec<Run>,
    /// The sets of instructions that access the same sector.
    pub sites: SiteSets,
    /// Sectors for which there was no room.
    pub left_out: u64,
}

/// A sector: how many waves access it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pattern {
    /// Each of its words.
    pub words: Vec<u8>,
    /// Any of them.
    pub sector: u8,
}

/// Sectors in a row that look the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The first: its address, divided by its size.
    pub sector: u64,
    /// How many.
    pub sectors: u64,
    /// What they look like, by the number in [`HeatMap::patterns`].
    pub pattern: u32,
    /// The instructions that access them: a set of [`HeatMap::sites`].
    pub sites: SetNumber,
}

/// The words of all arrays that workgroups access which were recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Heat {
    /// By array, in the order of dispatches and workgroups.
    pub arrays: BTreeMap<Array, Vec<WorkgroupWords>>,
    /// Accesses that are in no heat map, because their wave has a number that no wave of a workgroup has.
    pub left_out: u64,
}

/// How much of an array is used, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArrayUse {
    /// Words that some workgroup accesses.
    pub words: u64,
    /// Words of it altogether; 0 if that is not known.
    pub of: u64,
    /// Words that several workgroups access.
    pub shared_words: u64,
    /// Executions of instructions that access a word, over all words and workgroups.
    pub executions: u64,
    /// Workgroups that access it.
    pub workgroups: u64,
}

impl ArrayUse {
    /// Executions for each word that is accessed.
    #[must_use]
    pub fn reuse(&self) -> f64 {
        if self.words == 0 { 0.0 } else { self.executions as f64 / self.words as f64 }
    }

    /// The share of its words that is accessed; none if its size is not known.
    #[must_use]
    pub fn touched(&self) -> Option<f64> {
        (self.of > 0).then(|| self.words as f64 / self.of as f64)
    }

    /// The share of the accessed words that several workgroups access: the halo of a stencil, or what all need.
    #[must_use]
    pub fn halo(&self) -> f64 {
        if self.words == 0 { 0.0 } else { self.shared_words as f64 / self.words as f64 }
    }
}

/// A word while it is counted.
#[derive(Debug, Clone, Copy)]
struct Counted {
    waves: u64,
    /// Wave and lane of the first access.
    first: (u32, usize),
    several_lanes: bool,
    executions: u32,
    /// The record that was counted last: several of its lanes may access the word.
    last: usize,
    sites: SetNumber,
}

/// The words of an array while they are counted.
#[derive(Debug, Default)]
struct CountedArray {
    words: HashMap<u64, Counted>,
    sites: SiteSets,
}

impl Heat {
    /// Of everything that was recorded.
    #[must_use]
    pub fn of(kernel: &RecordedKernel, arrays: &Arrays<'_>) -> Heat {
        let mut order: Vec<usize> = (0..kernel.records.len()).collect();
        let workgroup = |index: usize| (kernel.records[index].dispatch, kernel.records[index].workgroup);
        order.sort_by_key(|index| workgroup(*index));
        let mut heat = Heat::default();
        for group in order.chunk_by(|one, other| workgroup(*one) == workgroup(*other)) {
            let mut words: BTreeMap<Array, CountedArray> = BTreeMap::new();
            for &index in group {
                let record = &kernel.records[index];
                if record.space == Space::Scratch {
                    continue;
                }
                if record.wave >= MOST_WAVES {
                    heat.left_out += 1;
                    continue;
                }
                count(record, index, arrays, &mut words);
            }
            let (dispatch, workgroup) = workgroup(group[0]);
            for (array, counted) in words {
                let CountedArray { words, sites } = counted;
                let words = sorted(words);
                heat.arrays.entry(array).or_default().push(WorkgroupWords { dispatch, workgroup, words, sites });
            }
        }
        heat
    }

    /// The words of an array that any workgroup of a dispatch accesses.
    #[must_use]
    pub fn touched(&self, array: Array, dispatch: u32) -> HashSet<u64> {
        let groups = self.arrays.get(&array).map(Vec::as_slice).unwrap_or_default();
        let of_dispatch = groups.iter().filter(|group| group.dispatch == dispatch);
        of_dispatch.flat_map(|group| group.words.iter().map(|word| word.number)).collect()
    }

    /// How much of an array is used.
    #[must_use]
    pub fn array_use(&self, array: Array, arrays: &Arrays<'_>) -> ArrayUse {
        let groups = self.arrays.get(&array).map(Vec::as_slice).unwrap_or_default();
        let mut of_word: HashMap<u64, u32> = HashMap::new();
        let mut executions = 0;
        for word in groups.iter().flat_map(|group| &group.words) {
            *of_word.entry(word.number).or_default() += 1;
            executions += u64::from(word.executions);
        }
        ArrayUse {
            words: of_word.len() as u64,
            of: arrays.bytes(array).map_or(0, |bytes| bytes.div_ceil(WORD)),
            shared_words: of_word.values().filter(|groups| **groups > 1).count() as u64,
            executions,
            workgroups: groups.len() as u64,
        }
    }
}

fn count(record: &Recorded, index: usize, arrays: &Arrays<'_>, words: &mut BTreeMap<Array, CountedArray>) {
    for (lane, &address) in active(record.lanes).into_iter().zip(&record.addresses) {
        let Some(array) = arrays.of_address(record, address) else { continue };
        let of_array = words.entry(array).or_default();
        let last = address.saturating_add(u64::from(record.bytes.max(1)) - 1);
        for word in address / WORD..=last / WORD {
            let first = (record.wave, lane);
            let sites = SetNumber::default();
            let new = Counted { waves: 0, first, several_lanes: false, executions: 0, last: usize::MAX, sites };
            let counted = of_array.words.entry(word).or_insert(new);
            counted.waves |= 1 << record.wave;
            counted.several_lanes |= counted.first != first;
            if counted.last != index {
                counted.executions = counted.executions.saturating_add(1);
                counted.last = index;
                counted.sites = of_array.sites.with(counted.sites, record.address);
            }
        }
    }
}

fn sorted(counted: HashMap<u64, Counted>) -> Vec<Word> {
    let word = |(number, counted): (u64, Counted)| Word {
        number,
        waves: counted.waves,
        several_lanes: counted.several_lanes,
        executions: counted.executions,
        sites: counted.sites,
    };
    let mut words: Vec<Word> = counted.into_iter().map(word).collect();
    words.sort_unstable_by_key(|word| word.number);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::testing::{BASE, kernel, record};

    fn of_waves(waves: u32, place: impl Fn(u64, u64) -> u64) -> (RecordedKernel, Heat) {
        let records =
            (0..waves).map(|wave| Recorded { wave, ..record(0, 4, u64::MAX, |lane| place(wave.into(), lane)) });
        let kernel = kernel("gfx90a", records.collect());
        let heat = Heat::of(&kernel, &Arrays::of(&kernel));
        (kernel, heat)
    }

    fn map(heat: &Heat, bytes: u32) -> HeatMap {
        heat.arrays[&Array::Allocation(0)][0].heat_map(bytes)
    }

    #[test]
    fn equal_sectors_are_one_run() {
        let (kernel, heat) = of_waves(8, |_, lane| 4 * lane);
        let mut sets = SiteSets::default();
        let sites = sets.with(SetNumber::default(), 0);
        let expected = HeatMap {
            sector_bytes: 32,
            patterns: vec![Pattern { words: vec![8; 8], sector: 8 }],
            runs: vec![Run { sector: BASE / 32, sectors: 8, pattern: 0, sites }],
            sites: sets,
            left_out: 0,
        };
        assert_eq!(map(&heat, 32), expected);
        let used = heat.array_use(Array::Allocation(0), &Arrays::of(&kernel));
        assert_eq!((used.words, used.of, used.executions, used.shared_words), (64, 1 << 18, 8 * 64, 0));
        assert_eq!(used.reuse(), 8.0);
    }

    #[test]
    fn slices_of_waves_share_a_sector() {
        let (_, heat) = of_waves(8, |wave, lane| 32 * lane + 4 * wave);
        assert_eq!(map(&heat, 32).patterns, [Pattern { words: vec![1; 8], sector: 8 }]);
        assert_eq!(map(&heat, 64).patterns, [Pattern { words: vec![1; 16], sector: 8 }]);
    }

    #[test]
    fn a_misaligned_start_has_borders() {
        let (_, heat) = of_waves(4, |wave, lane| 256 * wave + 4 * lane + 4);
        let map = map(&heat, 32);
        let temperatures: Vec<u8> = map.runs.iter().map(|run| map.patterns[run.pattern as usize].sector).collect();
        assert_eq!(temperatures, [1, 1, 2, 1, 2, 1, 2, 1, 1], "wave by wave: the first sector, and each border");
        assert_eq!(map.runs.iter().map(|run| run.sectors).sum::<u64>(), 33);
    }

    #[test]
    fn sectors_of_other_instructions_are_other_runs() {
        let record = |address| record(address, 4, u64::MAX, |lane| 4 * lane + 8 * address);
        let kernel = kernel("gfx90a", vec![record(0x10), record(0x18)]);
        let heat = Heat::of(&kernel, &Arrays::of(&kernel));
        let map = map(&heat, 32);
        let runs: Vec<(u64, &[u64])> = map.runs.iter().map(|run| (run.sectors, map.sites.get(run.sites))).collect();
        // From byte 128 to 384, and from 192 to 448.
        assert_eq!(runs, [(2, &[0x10][..]), (6, &[0x10, 0x18]), (2, &[0x18])]);
        assert_eq!(map.patterns.len(), 1, "all look the same");
    }

    #[test]
    fn words_of_lanes_and_of_executions() {
        let same = record(0, 4, u64::MAX, |_| 0);
        let own = record(4, 8, u64::MAX, |lane| 64 + 8 * lane);
        let kernel = kernel("gfx90a", vec![same.clone(), same, own]);
        let heat = Heat::of(&kernel, &Arrays::of(&kernel));
        let words = &heat.arrays[&Array::Allocation(0)][0].words;
        assert_eq!((words[0].executions, words[0].several_lanes, words.len()), (2, true, 129));
        assert!(words[1..].iter().all(|word| word.executions == 1 && !word.several_lanes));
    }

    #[test]
    fn what_workgroups_share_is_the_halo() {
        let group =
            |x: u32| Recorded { workgroup: [x, 0, 0], ..record(0, 4, u64::MAX, |lane| 4 * (60 * u64::from(x) + lane)) };
        let kernel = kernel("gfx90a", vec![group(1), group(0)]);
        let arrays = Arrays::of(&kernel);
        let used = Heat::of(&kernel, &arrays).array_use(Array::Allocation(0), &arrays);
        assert_eq!((used.words, used.shared_words, used.workgroups), (124, 4, 2));
    }
}
