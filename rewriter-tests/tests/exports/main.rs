//! `wavetap export`: each form is read again here, and compared with what another part says of the same run: the
//! emulator's own counts of instructions with the table of metrics, the recorded addresses with the heat map.

mod coverage;
mod datasets;
mod findings;
mod python_module;
mod unknown_probe;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;
use rewriter_tests::command;
use rewriter_tests::place::root;
use serde_json::Value;
use wavetap::profile::time::TimeProfile;

/// Samples with branches, LDS, atomics, and several kernels, and targets that they have code for.
const RUNS: [(&str, &str); 7] = [
    ("bin/spmv", "gfx90a"),
    ("bin/two_kernels", "gfx906"),
    ("bin/histogram", "gfx942"),
    ("bin/lds_reduce", "gfx90a"),
    ("memory/bin/accesses", "gfx1030"),
    ("memory/bin/accesses", "gfx1100"),
    ("memory/bin/patterns", "gfx90a"),
];

fn sample(name: &str) -> PathBuf {
    root().join("hip-samples").join(name)
}

/// What a command prints that ends well.
fn wavetap(arguments: &[&str], folder: &Path) -> String {
    let ended = command::run(&command::wavetap().expect("the command is built"), arguments, &[], folder);
    let ended = ended.expect("it ends");
    let (out, said) = (ended.out().to_string(), ended.err().to_string());
    ended.exited(0).unwrap_or_else(|error| panic!("{arguments:?}: {error:?}: {said}"));
    out
}

/// Rows by the names of their columns.
fn rows(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(|row| row.expect("a row")).collect()
}

/// A program's modelled time, which has how often each instruction was executed.
fn time(program: &str, target: &str, folder: &Path) -> (PathBuf, TimeProfile) {
    let file = folder.join("time");
    let report = ["run", "--timing", "--target", target, "--format", "json", "--force", "--report"];
    let rest = [file.to_str().expect("a path"), "--", program];
    wavetap(&[&report[..], &rest].concat(), folder);
    let time = TimeProfile::from_json(&fs::read(&file).expect("a file")).expect("modelled time");
    (file, time)
}

/// rocprof-compute's metrics by the names of instructions, as the hardware's counters have them, and two of our own.
/// Integers are by what a mnemonic's first type is, but for what moves, selects, compares, converts or exchanges.
const METRICS: [(&str, &str); 15] = [
    ("10.1.0", "^v_(?!mfma|smfmac|wmma|swmmac)"),
    ("10.1.1", "^(global|flat|buffer|scratch|tbuffer|image)_(?!wbl2|inv|gl|wb)"),
    ("10.1.2", "^ds_"),
    ("10.1.5", "^s_(buffer_)?load_|^s_dcache|^s_memtime|^s_memrealtime"),
    ("10.1.6", "^s_(cbranch|branch|call|setpc|swappc)"),
    ("10.2.6", "^v_(pk_)?(add|sub|subrev)_f32"),
    ("10.2.7", "^v_(pk_)?mul_(legacy_)?f32"),
    ("10.2.8", "^v_(pk_)?(div_fmas|fma|fmac|mac|mad|fmaak|fmamk|madak|madmk)_(legacy_)?f32"),
    ("10.2.14", "^v_cvt_"),
    ("10.3.1", "^(global|flat)_load"),
    ("10.3.2", "^(global|flat)_store"),
    ("10.3.3", "^(global|flat)_atomic"),
    ("10.3.5", "^scratch_load"),
    (
        "INT32, by class",
        "^v_(?!mov|pk_mov|accvgpr|cndmask|cmp|cvt|frexp|read|writelane|permlane|mad_[iu]64)([a-z0-9]+_)*[iub]32",
    ),
    ("INT64, by class", "^v_(lshlrev|lshrrev|ashrrev|lshl_add|add|mad)_[iub]64"),
];

#[test]
fn metrics_are_what_the_emulator_executed() {
    let folder = tempfile::tempdir().expect("a folder");
    let profile = folder.path().join("profile");
    let profile = profile.to_str().expect("a path");
    let mut compared = 0;
    for (name, target) in RUNS {
        let program = sample(name);
        let program = program.to_str().expect("a path");
        let (_, time) = time(program, target, folder.path());
        let blocks = ["profile", "--probe", "blocks", "--target", target, "--force", "-o", profile, "--report"];
        wavetap(&[&blocks[..], &["/dev/null", "--", program]].concat(), folder.path());
        let table = rows(&wavetap(&["export", "csv", program, "--counters", profile], folder.path()));
        let mix = ["mix", program, "--counters", profile, "--format", "json"];
        let mix: Value = serde_json::from_str(&wavetap(&mix, folder.path())).expect("JSON");
        for kernel in &time.kernels {
            let of_kernel = || table.iter().filter(|row| row["kernel"] == kernel.demangled && row["target"] == target);
            assert!(of_kernel().count() > 0, "{name}: no rows of {}", kernel.demangled);
            let unknown = |row: &&BTreeMap<String, String>| row["metric"].contains("not counted");
            assert_eq!(of_kernel().find(unknown).expect("a row")["value"], "0", "{name}");
            for (id, pattern) in METRICS {
                // Without looking ahead, which the engine does not have.
                let (pattern, but) = match pattern.split_once("(?!") {
                    Some((begin, rest)) => {
                        let (but, rest) = rest.split_once(')').expect("it ends");
                        (format!("{begin}{rest}"), Some(format!("{begin}({but})")))
                    }
                    None => (pattern.to_owned(), None),
                };
                let [is, is_not] =
                    [Some(pattern), but].map(|text| text.map(|text| Regex::new(&text).expect("a pattern")));
                let of_metric = |text: &str| {
                    is.as_ref().is_some_and(|is| is.is_match(text))
                        && !is_not.as_ref().is_some_and(|not| not.is_match(text))
                };
                // A pair counts as both of its operations.
                let operations =
                    |text: &str| text.split(" :: ").filter(|text| of_metric(&text.replace("v_dual_", "v_"))).count();
                let executed =
                    |at: &wavetap::profile::time::InstructionCycles| at.executions * operations(&at.instruction) as u64;
                let expected: u64 = kernel.instructions.iter().map(executed).sum();
                let row = of_kernel().find(|row| row["metric_id"] == id || row["metric"] == id).expect("the metric");
                assert_eq!(row["value"], expected.to_string(), "{name} on {target}, {}: {id}", kernel.demangled);
                compared += usize::from(expected > 0);
            }
            // Operations by type are those of `mix`, which has a test of its own, and add up.
            let of_mix = mix["kernels"].as_array().expect("kernels").iter().find(|of| of["name"] == kernel.name);
            let of_mix = of_mix.expect("the kernel")["total"]["operations"].as_array().expect("operations");
            let value = |metric: &str| -> u64 {
                let row = of_kernel().find(|row| row["metric"] == metric).unwrap_or_else(|| panic!("{metric}"));
                row["value"].parse().expect("a number")
            };
            for (lanes, field) in [("all lanes", "convention"), ("active lanes", "effective")] {
                let mut integers = 0;
                for row in of_mix {
                    let number = row["number"].as_str().expect("a type").to_uppercase();
                    let found = value(&format!("{number} operations, {lanes}"));
                    assert_eq!(found, row[field].as_u64().expect("a number"), "{name}: {number}, {lanes}");
                    integers += if number.starts_with('I') { found } else { 0 };
                }
                assert_eq!(integers, value(&format!("IOPs, {lanes}")), "{name}");
                value(&format!("I64 operations, {lanes}"));
            }
        }
    }
    assert!(compared > 300, "{compared} metrics that are not 0");
}

#[test]
fn modelled_time_is_exported_without_loss() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = sample("bin/two_kernels");
    let (file, time) = time(program.to_str().expect("a path"), "gfx90a", folder.path());
    let file = file.to_str().expect("a path");
    let trace: Value =
        serde_json::from_str(&wavetap(&["export", "trace", "--time", file], folder.path())).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let mut dispatches: Vec<(f64, f64, &str)> = events
        .iter()
        .filter(|event| event["ph"] == "X")
        .map(|event| {
            let number = |field: &str| event[field].as_f64().expect("a number");
            (number("ts"), number("dur"), event["name"].as_str().expect("a name"))
        })
        .collect();
    assert_eq!(dispatches.len(), time.kernels.iter().map(|kernel| kernel.dispatches.len()).sum::<usize>());
    dispatches.sort_by(|one, other| one.0.total_cmp(&other.0));
    for pair in dispatches.windows(2) {
        assert!((pair[0].0 + pair[0].1 - pair[1].0).abs() < 1e-6, "one begins where the one before it ends: {pair:?}");
    }
    for kernel in &time.kernels {
        let of_kernel = dispatches.iter().filter(|dispatch| dispatch.2 == kernel.demangled);
        let cycles: f64 = of_kernel.map(|dispatch| dispatch.1 * 1000.0).sum();
        assert!((cycles - kernel.modelled_cycles as f64).abs() < 0.5, "{}: {cycles}", kernel.demangled);
    }
    let folded = wavetap(&["export", "folded", "--time", file], folder.path());
    let total: u64 =
        folded.lines().map(|line| line.rsplit(' ').next().expect("a count").parse::<u64>().expect("it")).sum();
    assert_eq!(total, time.kernels.iter().map(|kernel| kernel.modelled_wave_cycles).sum::<u64>());
}

/// Sector to the waves that access each of its words, and any of them.
type Sectors = BTreeMap<u64, ([u32; 8], u32)>;

/// Of heat maps of all workgroups those that come first of each array.
fn first_of_each_array(heat: &str) -> String {
    let (mut text, mut kernel, mut seen, mut is_first) = (String::new(), "", BTreeSet::new(), true);
    for line in heat.lines() {
        if line.starts_with("# kernel ") {
            (kernel, is_first) = (line, true);
        } else if let Some(array) = line.strip_prefix("# ") {
            is_first = seen.insert((kernel, array.rsplit_once(", dispatch ").expect("a dispatch").0));
        }
        if is_first {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// Kernel, dispatch, workgroup, whether in LDS: to words, each with the waves that access it.
type Words = BTreeMap<(String, String, [String; 3], bool), BTreeMap<u64, u32>>;

/// The heat maps of `wavetap.memory/1`, word by word.
fn words_of_json(memory: &Value) -> Words {
    fn list(value: &Value) -> &[Value] {
        value.as_array().map(Vec::as_slice).unwrap_or_default()
    }
    let number = |value: &Value| value.as_u64().expect("a number");
    let mut all = Words::new();
    for kernel in list(&memory["kernels"]) {
        for array in list(&kernel["recorded"]["arrays"]) {
            assert!(array["heat_left_out"].is_null(), "there is room");
            for map in std::iter::once(&array["heat"]).chain(list(&array["other_heat"])).filter(|map| map.is_object()) {
                let axes: Vec<String> = list(&map["workgroup"]).iter().map(ToString::to_string).collect();
                let name = kernel["demangled"].as_str().expect("a name").to_owned();
                let workgroup: [String; 3] = axes.try_into().expect("three axes");
                let words = all.entry((name, map["dispatch"].to_string(), workgroup, array["space"] == "lds"));
                let words = words.or_default();
                for run in list(&map["runs"]) {
                    let address =
                        run["address"].as_str().and_then(|text| text.strip_prefix("0x")).expect("hexadecimal");
                    let begin = u64::from_str_radix(address, 16).expect("an address") / 4;
                    let pattern = &map["patterns"][number(&run["pattern"]) as usize]["words"];
                    let in_sector = list(pattern).len() as u64;
                    for sector in 0..number(&run["sectors"]) {
                        for (word, waves) in (0..).zip(list(pattern)).filter(|(_, waves)| number(waves) > 0) {
                            *words.entry(begin + sector * in_sector + word).or_default() += number(waves) as u32;
                        }
                    }
                }
            }
        }
    }
    all
}

#[test]
fn heat_maps_are_those_of_the_exported_accesses() {
    let folder = tempfile::tempdir().expect("a folder");
    let profile = folder.path().join("profile");
    let profile = profile.to_str().expect("a path");
    let mut sectors = 0;
    for name in ["bin/spmv", "bin/lds_reduce", "memory/bin/patterns"] {
        let program = sample(name);
        let program = program.to_str().expect("a path");
        let records = ["profile", "--probe", "memory", "--target", "gfx90a", "--force", "-o", profile, "--report"];
        wavetap(&[&records[..], &["/dev/null", "--", program]].concat(), folder.path());
        let accesses = rows(&wavetap(&["export", "accesses", program, "--counters", profile], folder.path()));
        let export = ["export", "heat-map", program, "--counters", profile];
        let first = wavetap(&export, folder.path());
        let heat = wavetap(&[&export[..], &["--all-workgroups"]].concat(), folder.path());
        assert_eq!(first, first_of_each_array(&heat), "{name}");
        let of_json = ["memory", program, "--target", "gfx90a", "--format", "json", "--counters", profile];
        let of_json = wavetap(&[&of_json[..], &["--all-workgroups"]].concat(), folder.path());
        let of_json = words_of_json(&serde_json::from_str(&of_json).expect("JSON"));
        let text = fs::read_to_string(profile).expect("a profile");
        let profile: Value = serde_json::from_str(&text).expect("JSON");
        let names: BTreeMap<&str, &str> = profile["kernels"]
            .as_array()
            .expect("kernels")
            .iter()
            .map(|kernel| (kernel["name"].as_str().expect("one"), kernel["demangled"].as_str().expect("one")))
            .collect();
        let (mut kernel, mut place) = ("", None);
        let mut shown: BTreeMap<(&str, String, [String; 3], bool), Sectors> = BTreeMap::new();
        for line in heat.lines() {
            if let Some(name) = line.strip_prefix("# kernel ") {
                kernel = names[name];
            } else if let Some(array) = line.strip_prefix("# ") {
                let (of, rest) = array.rsplit_once(", dispatch ").expect("a dispatch");
                let (dispatch, workgroup) = rest.split_once(", workgroup ").expect("a workgroup");
                let workgroup: Vec<String> = workgroup.split(',').map(str::to_owned).collect();
                let workgroup: [String; 3] = workgroup.try_into().expect("three axes");
                place = Some((kernel, dispatch.to_owned(), workgroup, of.starts_with("LDS")));
            } else {
                let numbers: Vec<&str> = line.split(' ').collect();
                assert_eq!(numbers.len(), 10, "the viewer takes a tag and nine numbers: {line}");
                let tag = u64::from_str_radix(numbers[0].strip_prefix("0x").expect("hexadecimal"), 16).expect("a tag");
                let counts: Vec<u32> = numbers[1..].iter().map(|number| number.parse().expect("a number")).collect();
                let words = counts[..8].try_into().expect("eight words");
                let of_place = shown.entry(place.clone().expect("a place")).or_default();
                // Parts of LDS may meet in a sector.
                let sector = of_place.entry(tag).or_insert(([0; 8], 0));
                for (sum, count) in sector.0.iter_mut().zip::<[u32; 8]>(words) {
                    *sum += count;
                }
                sector.1 = sector.1.max(counts[8]);
            }
        }
        let recorded: BTreeSet<(String, String, [String; 3], bool)> = accesses
            .iter()
            .filter(|row| row["space"] != "scratch" && !row["addresses"].is_empty())
            .map(|row| {
                let workgroup = ["workgroup_x", "workgroup_y", "workgroup_z"].map(|axis| row[axis].clone());
                (row["kernel"].clone(), row["dispatch"].clone(), workgroup, row["space"] == "lds")
            })
            .collect();
        let places: BTreeSet<(String, String, [String; 3], bool)> = shown
            .keys()
            .map(|(kernel, rest, group, is_lds)| ((*kernel).to_owned(), rest.clone(), group.clone(), *is_lds))
            .collect();
        assert_eq!(places, recorded, "{name}: every workgroup that was recorded has maps");
        assert_eq!(of_json.len(), shown.len(), "{name}: and in JSON");
        for ((kernel, dispatch, workgroup, is_lds), of_place) in &shown {
            let words = of_place.iter().flat_map(|(tag, (words, _))| {
                (0_u64..).zip(words).filter(|(_, waves)| **waves > 0).map(move |(word, waves)| (8 * tag + word, *waves))
            });
            let place = ((*kernel).to_owned(), dispatch.clone(), workgroup.clone(), *is_lds);
            assert!(of_json.get(&place) == Some(&words.collect()), "{name}, {place:?}: the words of JSON");
            let space = if *is_lds { "lds" } else { "global" };
            let mut waves: BTreeMap<u64, BTreeSet<&str>> = BTreeMap::new();
            for row in accesses.iter().filter(|row| {
                row["kernel"] == *kernel
                    && row["dispatch"] == *dispatch
                    && row["space"] == space
                    && ["workgroup_x", "workgroup_y", "workgroup_z"].map(|axis| row[axis].clone()) == *workgroup
            }) {
                let bytes: u64 = row["bytes"].parse().expect("bytes");
                let lanes = u64::from_str_radix(row["lanes"].strip_prefix("0x").expect("a mask"), 16).expect("a mask");
                assert_eq!(row["addresses"].split(' ').count(), lanes.count_ones() as usize);
                for address in row["addresses"].split(' ') {
                    let address =
                        u64::from_str_radix(address.strip_prefix("0x").expect("an address"), 16).expect("one");
                    for word in address / 4..=(address + bytes - 1) / 4 {
                        waves.entry(word).or_default().insert(&row["wave"]);
                    }
                }
            }
            let mut expected: BTreeMap<u64, ([u32; 8], BTreeSet<&str>)> = BTreeMap::new();
            for (word, of_word) in &waves {
                let sector = expected.entry(word / 8).or_default();
                sector.0[(word % 8) as usize] = of_word.len() as u32;
                sector.1.extend(of_word);
            }
            let found: Vec<(u64, [u32; 8])> = of_place.iter().map(|(tag, (words, _))| (*tag, *words)).collect();
            let wanted: Vec<(u64, [u32; 8])> = expected.iter().map(|(tag, (words, _))| (*tag, *words)).collect();
            assert!(found == wanted, "{name}, {kernel}, {space}");
            if !*is_lds {
                for (tag, (_, all)) in of_place {
                    assert_eq!(*all as usize, expected[tag].1.len(), "{name}, {kernel}, sector {tag:#x}");
                }
            }
            sectors += found.len();
        }
    }
    assert!(sectors > 1000, "{sectors} sectors");
}

#[test]
fn what_a_form_needs_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = sample("bin/spmv");
    let program = program.to_str().expect("a path");
    let other = sample("bin/vectoradd");
    let other = other.to_str().expect("a path");
    let [profile, time] = ["profile", "time"].map(|name| folder.path().join(name).display().to_string());
    wavetap(&["profile", "-o", &profile, "--report", "/dev/null", "--", program], folder.path());
    fs::write(&time, "{}").expect("a file");
    for (arguments, what) in [
        (&["export", "trace", program, "--counters", &profile][..], "--time"),
        (&["export", "csv", program, "--counters", &profile], "--probe blocks"),
        (&["export", "folded", program, "--counters", &profile], "--probe blocks"),
        (&["export", "accesses", program, "--counters", &profile], "--probe memory"),
        (&["export", "heat-map", program, "--counters", &profile], "--probe memory"),
        (&["export", "csv", program], "--counters"),
        (&["export", "csv", program, "--time", &time], "--counters"),
        (&["export", "csv", program, "--counters", &profile, "--time", &time], "`wavetap export trace`"),
        (&["export", "folded", program, "--counters", &profile, "--time", &time], "cannot be used with"),
        (&["export", "folded", "--counters", &profile], "<FILE"),
        (&["export", "folded", program], "--counters"),
        (&["export", "folded"], "--counters"),
        (&["export", "sarif", "--time", &time], "--counters"),
        (&["export", "sarif", program, "--counters", &profile, "--counters", &profile], "2 without"),
        (&["export", "sarif", program, "--counters", &profile, "--time", &time], "not a file of modelled time"),
        (&["export", "remarks", other, "--counters", &profile], "the profile is of another file"),
        (&["export", "remarks", program, "--counters", &profile, "--kernel", "none"], "no kernel matches"),
        (&["export", "accesses", "--time", &time], "--counters"),
        (&["export", "trace", "--time", &time], "not a file of modelled time"),
        (&["export", "csv", program, "--counters", &profile, "--all-workgroups"], "`wavetap export heat-map`"),
        (&["memory", program, "--counters", &profile, "--all-workgroups"], "only --format json and yaml"),
        (&["export", "trace", "--time", &time, "-o", &profile], "--force"),
        (&["export", "tape", program, "--counters", &profile], "there are trace, folded"),
    ] {
        let ended = command::run(&command::wavetap().expect("it is built"), arguments, &[], folder.path());
        let ended = ended.expect("it ends");
        let said = ended.err().to_string();
        assert!(said.contains(what), "{arguments:?}: {said}");
        ended.exited(2).expect("refused");
    }
}
