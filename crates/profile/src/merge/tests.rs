use std::sync::Arc;

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::*;
use crate::file::{Backend, KernelTotals, Origin, SiteTotals, WaveCounts, Work};
use crate::host::{HostOperation, LaunchSize};
use crate::launches::{LaunchShape, NotCounted, UncountedDispatches};
use crate::map::{CounterMode, Refused};
use crate::probes::branches::{ExecCounts, ScalarCounts};
use crate::schema::{Counts, FieldSchema, KindSchema, Merge, Unit};

const TIMED: &[FieldSchema] = &[
    FieldSchema::new("visits", Unit::Executions, Merge::Sum),
    FieldSchema::new("longest", Unit::Cycles, Merge::Max),
    FieldSchema::new("shortest", Unit::Cycles, Merge::Min),
];

/// Random numbers of a seed.
struct Random {
    numbers: SplitMix64,
    /// Whether what is chosen now may be unusual.
    varies: bool,
}

impl Random {
    fn new(seed: u64) -> Random {
        Random { numbers: SplitMix64::seed_from_u64(seed), varies: true }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.numbers.next_u64() % limit
    }

    fn one_in(&mut self, of: u64) -> bool {
        self.varies && self.below(of) == 0
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at as u64 + 1) as usize);
        }
    }
}

fn site(address: u64, counts: Counts) -> SiteTotals {
    SiteTotals { address, instruction: "s_cbranch_scc1 4".to_owned(), source: None, counts }
}

fn shape(grid: u32, dispatches: u64) -> LaunchShape {
    LaunchShape { grid: Some([grid, 1, 1]), workgroup: [64, 1, 1], dynamic_lds: 0, dispatches }
}

/// A kernel that counts; a minimum may have measured nothing.
fn kernel(name: &str, region: Option<&str>, random: &mut Random) -> KernelTotals {
    let timed = Arc::new(KindSchema::new("test", "timed", TIMED));
    let shortest = if random.one_in(3) { u64::MAX } else { random.below(1000) };
    let values = vec![random.below(100), random.below(1000), shortest];
    let exec =
        ExecCounts { executions: random.below(1 << 40), agreements: 3, lanes_before: 64, lanes_after: 9, empty: 0 };
    let (instructions, global_bytes, lds_bytes) = (random.below(1 << 50), random.below(100), 0);
    let shapes = if random.one_in(8) { 90 } else { 1 };
    KernelTotals {
        name: name.to_owned(),
        demangled: format!("{name}()"),
        target: "gfx90a".to_owned(),
        object: "d41d8cd98f00b204e9800998ecf8427e".to_owned(),
        region: region.map(str::to_owned),
        mode: Some(CounterMode::Lds),
        dispatches: random.below(9),
        launches: (0..shapes).map(|_| shape(64 * (1 + random.below(shapes)) as u32, random.below(5))).collect(),
        waves: random.below(1 << 30),
        dropped: random.below(2),
        work: (!random.one_in(9)).then_some(Work { instructions, global_bytes, lds_bytes }),
        sites: vec![
            site(0x1000, exec.into()),
            site(0x1000, Counts::new(&timed, values).unwrap()),
            site(0x1010, ScalarCounts { executions: random.below(1000), taken: random.below(1000) }.into()),
        ],
        ..KernelTotals::default()
    }
}

/// A profile of a rank. Most are alike but for their numbers, as those of a program's ranks.
fn rank(number: u32, random: &mut Random) -> Profile {
    random.varies = random.below(2) == 0;
    let mut profile = Profile::new(Origin::Counters, Backend::Emulator);
    profile.rank = Some(number);
    profile.hostname = Some(format!("node-{}", number / 4));
    profile.set_ended(!random.one_in(20));
    let mut names = vec!["zeta", "alpha", "mid"];
    if random.one_in(5) {
        random.shuffle(&mut names);
        names.pop();
    }
    for name in &names {
        let mut totals = kernel(name, None, random);
        totals.launches = crate::launches::smallest(&[&totals.launches]).unwrap();
        profile.kernels.push(totals);
    }
    if !random.one_in(4) {
        let mut totals = kernel("zeta", Some("step/solve"), random);
        totals.launches.truncate(2);
        profile.regions.push(totals);
    }
    profile.uncounted.push(UncountedDispatches {
        name: "copy".to_owned(),
        demangled: "copy()".to_owned(),
        target: "gfx90a".to_owned(),
        object: String::new(),
        region: None,
        why: NotCounted::NotSelected,
        detail: "not selected".to_owned(),
        dispatches: random.below(50),
    });
    if random.one_in(6) {
        profile.refused.push(Refused {
            name: format!("bad{}", random.below(3)),
            demangled: "bad()".to_owned(),
            target: "gfx90a".to_owned(),
            reason: "indirect_jump".to_owned(),
            detail: "at 0x10".to_owned(),
            address: None,
        });
    }
    if !random.one_in(7) {
        let size = LaunchSize { grid: [64, 1, 1], workgroup: [64, 1, 1], dynamic_lds: 0 };
        profile.host.add(HostOperation::HostToDevice, random.below(1 << 20));
        profile.host.add_launch("zeta", size);
    }
    if random.one_in(10) {
        profile.processes = 2;
    }
    if random.one_in(12) {
        let (kernel, counters) = (random.below(profile.kernels.len() as u64) as u32, vec![random.below(9); 10]);
        let (dispatch, wave) = (Some(random.below(3) as u32), random.below(4) as u32);
        profile.waves.push(WaveCounts { kernel, dispatch, region: None, workgroup: [0; 3], wave, counters });
    }
    profile
}

fn files(seed: u64, count: u32) -> Vec<Vec<u8>> {
    let mut random = Random::new(seed);
    (0..count).map(|number| rank(number, &mut random).to_json().unwrap()).collect()
}

fn options(by: &[Dimension]) -> MergeOptions {
    MergeOptions { by: Some(by.to_vec()), different_builds: false }
}

fn merged(files: &[Vec<u8>], options: &MergeOptions) -> Result<Vec<u8>> {
    let mut merger = Merger::new(options.clone());
    for (at, file) in files.iter().enumerate() {
        merger.add(file, &format!("file {at}"))?;
    }
    merger.finish()?.to_json()
}

/// Adds up in groups of random size until one is left.
fn nested(mut files: Vec<Vec<u8>>, options: &MergeOptions, random: &mut Random) -> Vec<u8> {
    loop {
        random.shuffle(&mut files);
        let mut sums = Vec::new();
        let mut rest = files.as_slice();
        while !rest.is_empty() {
            let (first, others) = rest.split_at(1 + random.below(rest.len() as u64) as usize);
            sums.push(merged(first, options).unwrap());
            rest = others;
        }
        if sums.len() == 1 {
            return sums.remove(0);
        }
        files = sums;
    }
}

#[test]
fn neither_order_nor_sums_of_sums_change_a_byte() {
    let mut read_as_alike = 0;
    for seed in 0..10 {
        let files = files(seed, 24);
        for by in [&[][..], &[Dimension::Rank], &[Dimension::Host], &[Dimension::Rank, Dimension::Host]] {
            let options = options(by);
            let expected = merged(&files, &options).unwrap();
            let mut random = Random::new(!seed);
            let mut shuffled = files.clone();
            for _ in 0..3 {
                random.shuffle(&mut shuffled);
                assert_eq!(merged(&shuffled, &options).unwrap(), expected, "seed {seed}, by {by:?}");
            }
            for _ in 0..3 {
                assert!(nested(files.clone(), &options, &mut random) == expected, "seed {seed}, by {by:?}: nested");
            }
            // Without templates: each file parsed.
            let mut total = Total::new(options.by.clone(), false);
            for file in &files {
                total.add(&Profile::from_json(file).unwrap(), "a file").unwrap();
            }
            assert!(total.finish().unwrap().to_json().unwrap() == expected, "seed {seed}, by {by:?}: parsed");
        }
        let mut templates = Templates::default();
        for file in &files {
            let is_alike = templates.add(file, &[]).unwrap();
            read_as_alike += u32::from(is_alike);
            if !is_alike {
                templates.learn(Profile::from_json(file).unwrap(), file);
            }
        }
    }
    assert!(read_as_alike > 80, "few files are alike: {read_as_alike} of 240");
}

#[test]
fn the_sum_has_what_the_profiles_have() {
    let all: Vec<Profile> = files(7, 25).iter().map(|file| Profile::from_json(file).unwrap()).collect();
    let sum = Profile::from_json(&merged(&files(7, 25), &options(&[Dimension::Rank])).unwrap()).unwrap();
    let of = |profile: &Profile, name: &str| profile.kernels.iter().find(|kernel| kernel.name == name).cloned();
    for name in ["alpha", "mid", "zeta"] {
        let kernels: Vec<KernelTotals> = all.iter().filter_map(|profile| of(profile, name)).collect();
        let total = of(&sum, name).unwrap();
        assert_eq!(total.waves, kernels.iter().map(|kernel| kernel.waves).sum::<u64>(), "{name}");
        let field = |at: usize, kernel: &KernelTotals| kernel.sites[1].counts.values()[at];
        assert_eq!(field(1, &total), kernels.iter().map(|kernel| field(1, kernel)).max().unwrap(), "{name}");
        assert_eq!(field(2, &total), kernels.iter().map(|kernel| field(2, kernel)).min().unwrap(), "{name}");
        let dispatches: u64 = total.launches.iter().map(|launch| launch.dispatches).sum();
        let launched = kernels.iter().flat_map(|kernel| &kernel.launches).map(|launch| launch.dispatches).sum::<u64>();
        assert_eq!(dispatches, launched, "{name}");
    }
    assert_eq!(sum.groups.len(), 25);
    for (group, profile) in sum.groups.iter().zip(&all) {
        assert_eq!((group.rank, group.processes), (profile.rank, profile.processes));
        assert_eq!(group.kernels.len(), profile.kernels.len());
        for part in &group.kernels {
            let whole = of(profile, &sum.kernels[part.kernel as usize].name).unwrap();
            let counters: Vec<u64> = whole.sites.iter().flat_map(|site| site.counts.values()).copied().collect();
            assert_eq!((part.dispatches, part.waves, part.work), (whole.dispatches, whole.waves, whole.work));
            assert_eq!(part.counters, counters);
        }
    }
    assert_eq!(sum.complete, all.iter().all(|profile| profile.complete));
    assert_eq!((sum.rank, sum.processes), (None, all.iter().map(|profile| profile.processes).sum()));
}

/// Every change of a file is the change of its profile, or an error.
#[test]
fn a_file_that_is_nearly_alike_is_parsed() {
    let mut random = Random::new(3);
    let mut profile = rank(0, &mut random);
    profile.waves.clear();
    profile.kernels.truncate(1);
    let file = profile.to_json().unwrap();
    let text = String::from_utf8(file.clone()).unwrap();
    let mut accepted = 0;
    for at in 0..file.len() {
        for byte in [b'0', b'7', b'.', b'-', b'e', b'"', b' '] {
            let mut changed = file.clone();
            changed[at] = byte;
            let parsed = Profile::from_json(&changed).ok();
            let sum = merged(&[file.clone(), changed], &options(&[])).ok();
            let expected = parsed.and_then(|parsed| {
                let mut total = Total::new(Some(Vec::new()), false);
                total.add(&profile, "a file").ok()?;
                total.add(&parsed, "a file").ok()?;
                total.finish().ok()?.to_json().ok()
            });
            accepted += u32::from(sum.is_some());
            assert!(sum == expected, "byte {at} is {}: {}", char::from(byte), &text[at.saturating_sub(30)..at]);
        }
    }
    assert!(accepted > 1000, "{accepted}");
}

#[test]
fn what_does_not_add_up_is_named() {
    let file = |change: &dyn Fn(&mut Profile)| {
        let mut profile = rank(3, &mut Random::new(11));
        change(&mut profile);
        profile.to_json().unwrap()
    };
    let plain = file(&|_| {});
    let fault =
        |other: Vec<u8>, options: &MergeOptions| merged(&[plain.clone(), other], options).unwrap_err().to_string();
    let default = MergeOptions::default();
    let digest = file(&|profile| profile.kernels[0].object = "f".repeat(32));
    let found = fault(digest.clone(), &default);
    let name = Profile::from_json(&plain).unwrap().kernels[0].name.clone();
    let said = format!("file 1: kernel {name} (gfx90a) is of another build than in file 0: code digest fff");
    assert!(found.starts_with(&said), "{found}");
    let apart = merged(&[plain.clone(), digest], &MergeOptions { different_builds: true, ..default.clone() }).unwrap();
    let apart = Profile::from_json(&apart).unwrap();
    assert_eq!(apart.kernels.iter().filter(|kernel| kernel.name == name).count(), 2);
    for (change, said) in [
        (
            &(|p: &mut Profile| p.kernels[0].mode = Some(CounterMode::Global)) as &dyn Fn(&mut Profile),
            "counters are in",
        ),
        (&|p| p.kernels[0].sites[2].address = 0x1014, "it has a site at 0x1014 of branches/scalar, not at 0x1010"),
        (&|p| drop(p.kernels[0].sites.pop()), "it has 2 sites, not 3 as in file 0"),
        (&|p| p.backend = Backend::Gpu, "it is of counters on a GPU, file 0 is of counters on the emulator"),
    ] {
        let found = fault(file(change), &MergeOptions { different_builds: true, ..default.clone() });
        assert!(found.contains(said) && found.contains("file 1"), "{found}");
    }
    let unranked = fault(file(&|profile| profile.rank = None), &options(&[Dimension::Rank]));
    assert!(unranked.contains("no rank is known of it") && unranked.contains("file 1"), "{unranked}");
    let by_host = merged(std::slice::from_ref(&plain), &options(&[Dimension::Host])).unwrap();
    let mixed = fault(by_host.clone(), &default);
    assert!(mixed.contains("parts by host") && mixed.contains("--by says"), "{mixed}");
    assert!(fault(by_host, &options(&[Dimension::Rank])).contains("what each rank has of them is not known"));
    let large = file(&|profile| profile.kernels[0].waves = u64::MAX);
    assert!(fault(large, &default).contains("exceeds 64 bits"));
    assert!(Merger::new(default).finish().unwrap_err().to_string().contains("no profile"));
}

/// A kernel of a header is in several code objects of one program, and a rank may use any of them.
#[test]
fn code_objects_of_one_file_are_of_one_build() {
    let of = |objects: &[&str]| {
        let mut profile = Profile::new(Origin::Counters, Backend::Emulator);
        for object in objects {
            let totals = kernel("k", None, &mut Random::new(1));
            profile.kernels.push(KernelTotals { object: (*object).to_owned(), ..totals });
        }
        profile.to_json().unwrap()
    };
    let [a, b, both] = [of(&["a"]), of(&["b"]), of(&["b", "a"])];
    let default = MergeOptions::default();
    assert!(merged(&[a.clone(), b.clone()], &default).is_err());
    let expected = merged(&[a.clone(), b.clone(), both.clone()], &default).unwrap();
    assert_eq!(merged(&[both, b, a], &default).unwrap(), expected);
}
