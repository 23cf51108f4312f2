//! What is worth a change: patterns of accesses that cost more than they have to.
//!
//! Each pattern has a condition on the accesses that were recorded. The conditions of arrays are those of cuThermo
//! (arXiv 2507.18729) as numbers: how many of a workgroup's waves access each word and each sector, where a sector is a
//! line of L1.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::accesses::{Operation, Space};
use crate::analysis::Analysis;
use crate::arrays::{Array, WORD};
use crate::heat::{Sector, WorkgroupWords};
use crate::measured::Measured;
use crate::neighbours::{Neighbours, Users};

/// A finding of less than this share of the kernel's traffic is folded away.
const SMALL_SHARE: f64 = 0.05;
/// Waves of a workgroup from which on two that access the same are too few to be worth a change.
const MANY_WAVES: u32 = 8;
/// The coldest word of a hot sector has at least this share of the hottest one's waves.
const EVEN: f64 = 0.75;
/// A hot sector has at most this many times the waves of its hottest word.
const HARDLY_MORE: f64 = 1.25;
/// A word that each wave accesses less often is a constant, if it is in the array's only sector.
const FEW_EXECUTIONS: f64 = 8.0;
/// Waves on a sector from which on it is divided in slices; two are a border.
const LEAST_SLICES: u32 = 3;
/// Words of a sector, in a row, that are slices.
const LEAST_WORDS: usize = 3;
/// Sectors from which on something is strided.
const LEAST_SECTORS: u64 = 3;
/// Of a sparse sector at most this share of the words is accessed.
const SPARSE: f64 = 0.5;
/// This share of executions is as good as all.
const NEARLY_ALL: f64 = 0.95;
/// This share of executions is a pattern.
const MOSTLY: f64 = 0.75;
/// Where this share of executions is misaligned, the instruction is.
const OFTEN: f64 = 0.25;
/// Lines for each ideal line, and lines, from which on an access is uncoalesced.
const UNCOALESCED: f64 = 2.0;
const LEAST_LINES: f64 = 4.0;
/// At a coalesced access, fewer lanes than this share of a wave are too few; one lane alone is meant.
const FEW_LANES: f64 = 0.25;
const LEAST_LANES: f64 = 2.0;
/// Cycles of LDS for each one without conflicts, from which on conflicts matter.
const CONFLICTS: f64 = 1.25;

/// A pattern of accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// Most waves of a workgroup access the same words: each fetches them for itself.
    Hot,
    /// Most waves access the same sectors, at words that depend on data.
    HotRandom,
    /// The slice of an array that each wave accesses is smaller than a line, so that several waves access each line.
    SmallSlices,
    /// At regular distances a few words of each line are accessed, and the others never, also not by neighbouring
    /// workgroups.
    Strided,
    /// Lanes lie next to each other, but do not begin where a line does.
    Misaligned,
    /// The same, where the waves also access the array where a line begins: neighbours of what they are at.
    Halo,
    /// Lanes lie in more lines than their bytes fill.
    Uncoalesced,
    /// Each word of an array in LDS is accessed by one lane only.
    LdsThreadPrivate,
    /// Each word of an array in LDS is accessed by the lanes of one wave only.
    LdsWaveLocal,
    /// Lanes want different words of one bank of LDS.
    BankConflict,
    /// An access is coalesced, and a few lanes make it.
    FewLanes,
    /// Lanes load the same by a vector instruction.
    UniformLoad,
}

/// What may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Fix {
    /// Load once for each workgroup, to LDS.
    StageInLds,
    /// Sort or block the data: the kernel is as it has to be.
    ReorderData,
    /// Exchange which index of the work-item runs over which dimension.
    ExchangeIndices,
    /// Store next to each other what is used together: transposed, or a structure of arrays.
    ChangeLayout,
    /// Begin rows at multiples of a line.
    AlignRows,
    /// Let lanes next to each other access what lies next to each other.
    CoalesceLanes,
    /// Keep it in registers instead of LDS.
    UseRegisters,
    /// Exchange between the lanes of a wave (DPP, `ds_bpermute`, `v_readlane`): LDS and its barrier may go.
    UseCrossLane,
    /// Pad the rows of LDS, or exchange their parts by XOR.
    PadRows,
    /// Let active lanes lie together, or give each more to do.
    CompactLanes,
    /// Load it by a scalar load: by a pointer that is `const` and `__restrict__`.
    LoadScalar,
}

impl FindingKind {
    /// What may help; none if it is as it has to be.
    #[must_use]
    pub fn fix(self) -> Option<Fix> {
        Some(match self {
            FindingKind::Hot => Fix::StageInLds,
            FindingKind::HotRandom => Fix::ReorderData,
            FindingKind::SmallSlices => Fix::ExchangeIndices,
            FindingKind::Strided => Fix::ChangeLayout,
            FindingKind::Misaligned => Fix::AlignRows,
            FindingKind::Halo => return None,
            FindingKind::Uncoalesced => Fix::CoalesceLanes,
            FindingKind::LdsThreadPrivate => Fix::UseRegisters,
            FindingKind::LdsWaveLocal => Fix::UseCrossLane,
            FindingKind::BankConflict => Fix::PadRows,
            FindingKind::FewLanes => Fix::CompactLanes,
            FindingKind::UniformLoad => Fix::LoadScalar,
        })
    }

    /// Whether it is worth knowing and often right as it is.
    #[must_use]
    pub fn is_note(self) -> bool {
        matches!(self, FindingKind::Halo | FindingKind::LdsWaveLocal)
    }
}

/// The numbers that a finding rests on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// Sectors that look so, of all that workgroups access.
    Sectors {
        /// Sectors that do.
        matching: u64,
        /// All sectors.
        of: u64,
        /// The most waves of a workgroup on one of the first.
        waves: u32,
    },
    /// Words of LDS that look so, of all that workgroups access.
    Words {
        /// Words that do.
        matching: u64,
        /// All words.
        of: u64,
    },
    /// Lines of an execution, on average.
    Lines {
        /// Lines.
        lines: f64,
        /// Those that its bytes would fill.
        ideal: f64,
    },
    /// Cycles of LDS of an execution, on average.
    Cycles {
        /// Cycles.
        cycles: f64,
        /// Those without conflicts.
        ideal: f64,
        /// The most ways of a conflict.
        ways: u64,
    },
    /// Lanes of an execution, on average.
    Lanes {
        /// Active ones.
        active: f64,
        /// Lanes of a wave.
        of: u32,
    },
    /// Executions that look so, of all.
    Executions {
        /// Executions that do.
        matching: u64,
        /// All executions.
        of: u64,
    },
}

/// A pattern that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The pattern.
    pub kind: FindingKind,
    /// The array: of a finding about an instruction the first that it accesses.
    pub array: Option<Array>,
    /// The instructions, by address.
    pub sites: Vec<u64>,
    /// The numbers.
    pub evidence: Evidence,
    /// The instructions' share of the kernel's requests to L1, or of its cycles of LDS: 0 to 1.
    pub share: f64,
    /// Whether that share is too small to matter.
    pub is_folded: bool,
    /// Whether executions of the instructions are missing for which there was no room.
    pub is_truncated: bool,
    /// Whether it holds for all workgroups of the launch, not only for those that were recorded.
    pub is_whole: bool,
}

/// What is worth a change: the largest share first, small shares and notes last.
#[must_use]
pub fn findings(analysis: &Analysis<'_>) -> Vec<Finding> {
    let collector = Collector {
        analysis,
        is_whole: analysis.is_whole(),
        requests: analysis.measured.iter().map(|measured| measured.requests).sum(),
        cycles: analysis.measured.iter().map(lds_cycles).sum(),
    };
    let mut all = Vec::new();
    for (array, groups) in &analysis.heat.arrays {
        match array {
            Array::Lds(_) => collector.lds_array(*array, groups, &mut all),
            _ => collector.array(*array, groups, &mut all),
        }
    }
    for measured in &analysis.measured {
        match measured.space {
            Space::Lds => collector.lds_site(measured, &mut all),
            Space::Scratch => {}
            _ => collector.site(measured, &mut all),
        }
    }
    let share = |finding: &Finding| (finding.share * 1e9) as u64;
    all.sort_by_key(|finding| (finding.is_folded, finding.kind.is_note(), Reverse(share(finding)), finding.kind));
    all
}

struct Collector<'a> {
    analysis: &'a Analysis<'a>,
    is_whole: bool,
    /// Of the whole kernel.
    requests: u64,
    cycles: u64,
}

fn lds_cycles(measured: &Measured) -> u64 {
    measured.lds.map_or(0, |lds| lds.cycles)
}

/// Sectors of an array, over all workgroups.
#[derive(Debug, Clone, Copy, Default)]
struct Sectors {
    all: u64,
    hot: u64,
    random: u64,
    slices: u64,
    sparse: u64,
    /// Those whose rest neighbouring workgroups that were not recorded may access.
    open: u64,
    /// The most waves on one that is hot or random, or on one that is divided.
    most_hot: u32,
    most_slices: u32,
    most_sparse: u32,
    /// The most sectors of a workgroup.
    most_of_group: u64,
    /// Executions of words, and waves of words: over all words.
    executions: u64,
    waves: u64,
}

impl Sectors {
    fn of(
        groups: &[WorkgroupWords],
        line: u32,
        need: u32,
        neighbours: &Neighbours<'_>,
        is_left: impl Fn(&WorkgroupWords, u64) -> bool,
    ) -> Sectors {
        let mut sectors = Sectors::default();
        for group in groups {
            let before = sectors.all;
            for sector in group.sectors(line) {
                let users = || neighbours.users(group, sector.number);
                sectors.add(&sector, line, need, users, |word| is_left(group, word));
            }
            sectors.most_of_group = sectors.most_of_group.max(sectors.all - before);
        }
        sectors
    }

    fn add(
        &mut self,
        sector: &Sector<'_>,
        line: u32,
        need: u32,
        users: impl Fn() -> Users,
        is_left: impl Fn(u64) -> bool,
    ) {
        let waves = sector.temperature();
        let mut temperatures: Vec<u32> = sector.words.iter().map(|word| word.temperature()).collect();
        temperatures.sort_unstable();
        let (least, most) = (temperatures[0], temperatures[temperatures.len() - 1]);
        let median = temperatures[temperatures.len() / 2];
        self.all += 1;
        self.executions += sector.words.iter().map(|word| u64::from(word.executions)).sum::<u64>();
        self.waves += temperatures.iter().map(|waves| u64::from(*waves)).sum::<u64>();
        let is_even = f64::from(least) >= EVEN * f64::from(most) && f64::from(waves) <= HARDLY_MORE * f64::from(most);
        if waves >= need && is_even {
            self.hot += 1;
            self.most_hot = self.most_hot.max(waves);
        } else if waves >= need && median >= 2 {
            self.random += 1;
            self.most_hot = self.most_hot.max(waves);
        }
        let (first, last) = (sector.words[0].number, sector.words[sector.words.len() - 1].number);
        let is_one_run = last - first + 1 == sector.words.len() as u64;
        if waves >= LEAST_SLICES && waves >= 2 * most && median == 1 && is_one_run && sector.words.len() >= LEAST_WORDS
        {
            self.slices += 1;
            self.most_slices = self.most_slices.max(waves);
        }
        let in_line = u64::from(line) / WORD;
        if sector.words.len() as f64 <= SPARSE * in_line as f64 {
            // The rest of the line, which other workgroups may need.
            let touched: HashSet<u64> = sector.words.iter().map(|word| word.number).collect();
            let begin = sector.number * in_line;
            // What begins or ends here, and goes on in the line before or after, is no word alone.
            let goes_on = |word: u64, beside: Option<u64>| {
                touched.contains(&word) && beside.is_some_and(|beside| !is_left(beside))
            };
            let is_border =
                goes_on(begin, begin.checked_sub(1)) || goes_on(begin + in_line - 1, begin.checked_add(in_line));
            if !is_border && (begin..begin + in_line).all(|word| touched.contains(&word) || is_left(word)) {
                if users() == Users::Unknown {
                    self.open += 1;
                } else {
                    self.sparse += 1;
                    self.most_sparse = self.most_sparse.max(waves);
                }
            }
        }
    }
}

impl Collector<'_> {
    /// Waves on a sector from which on it is hot.
    fn need(&self) -> u32 {
        let waves = self.analysis.kernel.waves;
        waves.div_ceil(2).max(if waves >= MANY_WAVES { 4 } else { 2 })
    }

    fn array(&self, array: Array, groups: &[WorkgroupWords], all: &mut Vec<Finding>) {
        let dispatches: BTreeMap<u32, HashSet<u64>> = groups
            .iter()
            .map(|group| group.dispatch)
            .collect::<HashSet<u32>>()
            .into_iter()
            .map(|dispatch| (dispatch, self.analysis.heat.touched(array, dispatch)))
            .collect();
        let is_left = |group: &WorkgroupWords, word: u64| {
            dispatches.get(&group.dispatch).is_none_or(|touched| !touched.contains(&word))
        };
        let neighbours = self.neighbours(groups);
        let sectors = Sectors::of(groups, self.analysis.kernel.line_bytes(), self.need(), &neighbours, is_left);
        let sites: Vec<&Measured> = self.analysis.sites_of(array).collect();
        let judged = |kind, matching, of, waves| {
            self.finding(kind, Some(array), &sites, Evidence::Sectors { matching, of, waves })
        };
        let found = |kind, matching, waves| judged(kind, matching, sectors.all, waves);
        let is_constant =
            sectors.most_of_group <= 1 && (sectors.executions as f64) < FEW_EXECUTIONS * sectors.waves as f64;
        let is_half = |count: u64| count > 0 && 2 * count >= sectors.all;
        if is_half(sectors.hot) && !is_constant {
            all.push(found(FindingKind::Hot, sectors.hot, sectors.most_hot));
        } else if is_half(sectors.hot + sectors.random) && !is_constant {
            all.push(found(FindingKind::HotRandom, sectors.hot + sectors.random, sectors.most_hot));
        }
        if is_half(sectors.slices) {
            all.push(found(FindingKind::SmallSlices, sectors.slices, sectors.most_slices));
        }
        let (regular, executions) = sites
            .iter()
            .fold((0, 0), |(regular, executions), site| (regular + site.regular, executions + site.executions));
        let is_regular = regular as f64 >= MOSTLY * executions as f64;
        // Nothing is said of lines whose other users are not known.
        let closed = sectors.all - sectors.open;
        let is_sparse = sectors.sparse >= LEAST_SECTORS && 2 * sectors.sparse >= closed;
        if sectors.most_of_group >= LEAST_SECTORS && is_sparse && is_regular {
            all.push(judged(FindingKind::Strided, sectors.sparse, closed, sectors.most_sparse));
        }
    }

    fn neighbours(&self, groups: &[WorkgroupWords]) -> Neighbours<'_> {
        let kernel = self.analysis.kernel;
        Neighbours::of(groups, kernel.line_bytes(), &kernel.grids, self.is_whole)
    }

    /// Whether neighbouring workgroups access the rest of most lines that a workgroup accesses a part of, or may.
    fn is_shared(&self, array: Array) -> bool {
        let Some(groups) = self.analysis.heat.arrays.get(&array) else { return false };
        let (neighbours, line) = (self.neighbours(groups), self.analysis.kernel.line_bytes());
        let (mut alone, mut shared, mut unknown) = (0_u64, 0_u64, 0_u64);
        for group in groups {
            for sector in group.sectors(line) {
                if (sector.words.len() as u64) < u64::from(line) / WORD {
                    match neighbours.users(group, sector.number) {
                        Users::Alone => alone += 1,
                        Users::Neighbours => shared += 1,
                        Users::Unknown => unknown += 1,
                    }
                }
            }
        }
        // Lines whose users are known stand for the others.
        match alone + shared {
            0 => unknown > 0,
            known => shared as f64 >= MOSTLY * known as f64,
        }
    }

    fn lds_array(&self, array: Array, groups: &[WorkgroupWords], all: &mut Vec<Finding>) {
        let words = || groups.iter().flat_map(|group| &group.words);
        let count = words().count() as u64;
        let private = words().filter(|word| !word.several_lanes).count() as u64;
        let local = words().filter(|word| word.temperature() == 1).count() as u64;
        let sites: Vec<&Measured> = self.analysis.sites_of(array).collect();
        let is_nearly_all = |matching: u64| matching as f64 >= NEARLY_ALL * count as f64;
        let found = |kind, matching| self.finding(kind, Some(array), &sites, Evidence::Words { matching, of: count });
        if count > 0 && is_nearly_all(private) {
            all.push(found(FindingKind::LdsThreadPrivate, private));
        } else if count > 0 && is_nearly_all(local) && self.analysis.kernel.waves > 1 {
            all.push(found(FindingKind::LdsWaveLocal, local));
        }
    }

    fn site(&self, site: &Measured, all: &mut Vec<Finding>) {
        let found = |kind, evidence| self.finding(kind, site.arrays.first().copied(), &[site], evidence);
        let (lines, ideal) = (site.mean_lines(), site.mean_ideal_lines());
        let executions = site.executions as f64;
        let is_uniform = site.uniform as f64 >= NEARLY_ALL * executions;
        let of_lines = Evidence::Lines { lines, ideal };
        // Lanes that overlap have a line more before and after: of a wave that needs two that is twice as many.
        let is_adjacent = site.adjacent as f64 >= MOSTLY * executions;
        let is_uncoalesced = lines >= UNCOALESCED * ideal && lines >= LEAST_LINES && !is_adjacent;
        // Lanes next to each other take no more requests than the best, and neighbours use the rest of the lines: more
        // lines for the wave are no more traffic.
        let is_in_rows = site.requests as f64 <= HARDLY_MORE * site.least_requests as f64;
        let is_shared = || is_in_rows && site.arrays.iter().all(|array| self.is_shared(*array));
        if is_uncoalesced && !is_shared() {
            all.push(found(FindingKind::Uncoalesced, of_lines));
        } else if !is_uncoalesced && site.misaligned as f64 >= OFTEN * executions {
            let kind = if self.has_aligned_neighbour(site) { FindingKind::Halo } else { FindingKind::Misaligned };
            all.push(found(kind, of_lines));
        }
        if is_uniform && site.operation == Operation::Load {
            let evidence = Evidence::Executions { matching: site.uniform, of: site.executions };
            all.push(found(FindingKind::UniformLoad, evidence));
        }
        let (active, of) = (site.mean_lanes(), self.analysis.kernel.lanes());
        let is_few = active >= LEAST_LANES && active <= FEW_LANES * f64::from(of);
        if is_few && !is_uniform && lines <= HARDLY_MORE * ideal {
            all.push(found(FindingKind::FewLanes, Evidence::Lanes { active, of }));
        }
    }

    /// Whether another instruction that the same waves execute accesses the same array where a line begins.
    fn has_aligned_neighbour(&self, site: &Measured) -> bool {
        self.analysis.measured.iter().any(|other| {
            other.address != site.address
                && other.line_starts as f64 >= MOSTLY * other.executions as f64
                && !other.arrays.is_disjoint(&site.arrays)
                && other.waves.keys().any(|wave| site.waves.contains_key(wave))
        })
    }

    fn lds_site(&self, site: &Measured, all: &mut Vec<Finding>) {
        let Some(lds) = site.lds else { return };
        let mean = |cycles: u64| cycles as f64 / site.executions.max(1) as f64;
        let (cycles, ideal) = (mean(lds.cycles), mean(lds.cycles - lds.conflicts));
        if cycles > CONFLICTS * ideal {
            let evidence = Evidence::Cycles { cycles, ideal, ways: lds.ways };
            all.push(self.finding(FindingKind::BankConflict, site.arrays.first().copied(), &[site], evidence));
        }
    }

    fn finding(&self, kind: FindingKind, array: Option<Array>, sites: &[&Measured], evidence: Evidence) -> Finding {
        let in_lds = sites.iter().all(|site| site.space == Space::Lds);
        let (part, whole): (u64, u64) = match in_lds {
            true => (sites.iter().map(|site| lds_cycles(site)).sum(), self.cycles),
            false => (sites.iter().map(|site| site.requests).sum(), self.requests),
        };
        let share = part as f64 / whole.max(1) as f64;
        Finding {
            kind,
            array,
            sites: sites.iter().map(|site| site.address).collect(),
            evidence,
            share,
            is_folded: share < SMALL_SHARE,
            is_truncated: sites.iter().any(|site| site.dropped > 0),
            is_whole: self.is_whole,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::testing::{BASE, kernel, record};
    use crate::recorded::{Allocation, Recorded, RecordedKernel};
    use wavetap_amdgpu::Target;

    /// A load at an address of the code, of so many bytes: where lane l of wave w goes.
    type Load<'p> = (u64, u32, &'p dyn Fn(u64, u64) -> u64);

    /// Loads of so many waves.
    fn of(waves: u32, loads: &[Load<'_>]) -> RecordedKernel {
        let mut records = Vec::new();
        for &(address, bytes, place) in loads {
            records.extend(
                (0..waves)
                    .map(|wave| Recorded { wave, ..record(address, bytes, u64::MAX, |lane| place(wave.into(), lane)) }),
            );
        }
        kernel("gfx90a", records)
    }

    fn kinds(kernel: &RecordedKernel) -> Vec<FindingKind> {
        findings(&Analysis::of(kernel)).iter().map(|finding| finding.kind).collect()
    }

    #[test]
    fn what_all_waves_read_is_hot() {
        assert_eq!(kinds(&of(8, &[(0, 4, &|_, lane| 4 * lane)])), [FindingKind::Hot]);
        let one_each = of(8, &[(0, 4, &|wave, lane| 256 * wave + 4 * lane)]);
        assert_eq!(kinds(&one_each), [], "nothing is wrong with it");
        let shared_by_three = of(8, &[(0, 4, &|wave, lane| 256 * (wave / 3) + 4 * lane)]);
        assert_eq!(kinds(&shared_by_three), [], "three waves of eight are too few");
    }

    #[test]
    fn a_constant_is_not_hot() {
        let constant: &dyn Fn(u64, u64) -> u64 = &|_, _| 0;
        assert_eq!(kinds(&of(8, &[(0, 4, constant)])), [FindingKind::UniformLoad]);
        let often: Vec<Load<'_>> = (0..8).map(|site| (site, 4, constant)).collect();
        assert!(kinds(&of(8, &often)).contains(&FindingKind::Hot));
    }

    #[test]
    fn slices_of_a_line() {
        let slices = of(16, &[(0, 4, &|wave, lane| 64 * lane + 4 * wave)]);
        assert_eq!(kinds(&slices), [FindingKind::SmallSlices, FindingKind::Uncoalesced]);
        let borders = of(2, &[(0, 4, &|wave, lane| 256 * wave + 4 * lane + 32)]);
        assert_eq!(kinds(&borders), [FindingKind::Misaligned], "two waves are a border");
    }

    #[test]
    fn what_no_other_workgroup_uses_is_strided() {
        let strided = of(4, &[(0, 4, &|wave, lane| 32 * (64 * wave + lane))]);
        let found = findings(&Analysis::of(&strided));
        let kinds: Vec<FindingKind> = found.iter().map(|finding| finding.kind).collect();
        assert_eq!(kinds, [FindingKind::Strided, FindingKind::Uncoalesced]);
        assert_eq!(found[0].evidence, Evidence::Sectors { matching: 128, of: 128, waves: 1 });
        assert_eq!((found[0].share, found[0].is_folded, found[0].is_whole), (1.0, false, true));
        // Another workgroup uses what lies between.
        let mut both = strided;
        for group in 1..8_u32 {
            let other = |record: &Recorded| Recorded {
                workgroup: [group, 0, 0],
                addresses: record.addresses.iter().map(|address| address + 4 * u64::from(group)).collect(),
                ..record.clone()
            };
            let more: Vec<Recorded> =
                both.records.iter().filter(|record| record.workgroup == [0; 3]).map(other).collect();
            both.records.extend(more);
        }
        assert_eq!(self::kinds(&both), [FindingKind::Uncoalesced]);
    }

    #[test]
    fn what_is_scattered_is_neither_strided_nor_regular() {
        let scattered = of(4, &[(0, 4, &|wave, lane| 64 * ((64 * wave + lane) * 37 * (lane + 3) % 4001))]);
        assert_eq!(kinds(&scattered), [FindingKind::Uncoalesced]);
    }

    #[test]
    fn neighbours_of_what_is_aligned_are_a_halo() {
        let left: &dyn Fn(u64, u64) -> u64 = &|wave, lane| 256 * wave + 4 * lane + 60;
        let here: &dyn Fn(u64, u64) -> u64 = &|wave, lane| 256 * wave + 4 * lane + 64;
        assert_eq!(kinds(&of(2, &[(0, 4, left)])), [FindingKind::Misaligned]);
        assert_eq!(kinds(&of(2, &[(0, 4, left), (4, 4, here)])), [FindingKind::Halo]);
        // What is left, here and right by one load: four lines of 128 bytes for two.
        let three: &dyn Fn(u64, u64) -> u64 = &|_, lane| 4 * lane + 124;
        let kernel =
            RecordedKernel { target: Target::by_name("gfx942").expect("a target"), ..of(1, &[(0, 12, three)]) };
        let found = findings(&Analysis::of(&kernel));
        assert_eq!(
            (found[0].kind, found[0].evidence),
            (FindingKind::Misaligned, Evidence::Lines { lines: 4.0, ideal: 2.0 })
        );
    }

    fn in_lds(records: RecordedKernel) -> RecordedKernel {
        let mut kernel = records;
        for record in &mut kernel.records {
            record.space = Space::Lds;
            record.addresses.iter_mut().for_each(|address| *address -= BASE);
        }
        kernel
    }

    #[test]
    fn private_and_local_lds() {
        let own: &dyn Fn(u64, u64) -> u64 = &|wave, lane| 256 * wave + 4 * lane;
        let reversed: &dyn Fn(u64, u64) -> u64 = &|wave, lane| 256 * wave + 4 * (63 - lane);
        let other: &dyn Fn(u64, u64) -> u64 = &|wave, lane| 256 * (3 - wave) + 4 * lane;
        assert_eq!(kinds(&in_lds(of(4, &[(0, 4, own), (4, 4, own)]))), [FindingKind::LdsThreadPrivate]);
        assert_eq!(kinds(&in_lds(of(4, &[(0, 4, own), (4, 4, reversed)]))), [FindingKind::LdsWaveLocal]);
        assert_eq!(kinds(&in_lds(of(4, &[(0, 4, own), (4, 4, other)]))), []);
        // A tile of 32 words by 32, and its columns.
        let rows: &dyn Fn(u64, u64) -> u64 = &|wave, lane| 256 * wave + 4 * lane;
        let columns: &dyn Fn(u64, u64) -> u64 = &|wave, lane| 128 * (lane % 32) + 4 * (2 * wave + lane / 32);
        assert_eq!(kinds(&in_lds(of(16, &[(0, 4, rows), (4, 4, columns)]))), [FindingKind::BankConflict]);
    }

    #[test]
    fn few_lanes() {
        let few = kernel("gfx90a", vec![record(0, 4, 0xff, |lane| 4 * lane)]);
        let found = findings(&Analysis::of(&few));
        assert_eq!(found[0].evidence, Evidence::Lanes { active: 8.0, of: 64 });
        assert_eq!(kinds(&kernel("gfx90a", vec![record(0, 4, 1, |_| 0)])), [], "one lane is meant");
        assert_eq!(kinds(&kernel("gfx90a", vec![record(0, 4, 0x1ffff, |lane| 4 * lane)])), [], "17 lanes");
    }

    #[test]
    fn little_traffic_is_folded_and_missing_records_are_marked() {
        let mut kernel = of(1, &[(4, 4, &|_, lane| 4 * lane + 4096 + 4)]);
        let much = of(1, &[(0, 4, &|_, lane| 4 * lane)]);
        kernel.records.extend(std::iter::repeat_n(much.records[0].clone(), 40));
        kernel.allocations.push(Allocation { base: 0x80_0000, size: 4, ordinal: 1, name: None });
        kernel.records[0].addresses.iter_mut().for_each(|address| *address += 0x70_0000);
        kernel.dropped.insert(4, 7);
        let found = findings(&Analysis::of(&kernel));
        let [one] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((one.kind, one.array), (FindingKind::Misaligned, Some(Array::Elsewhere)));
        assert!(one.is_folded && one.is_truncated && !one.is_whole);
    }
}
