//! The files that are written, and their form beside that of folders that `rocprofv3` wrote.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use wavetap_profile::map::Source;
use wavetap_profile::pc_samples::{self, SampleKind};
use wavetap_profile::time::{InstructionCycles, InstructionType, TracedWaves};

/// A folder below which folders of `rocprofv3` are.
const REAL: &str = "WAVETAP_VIEWER_FOLDERS";

fn instruction(address: u64, text: &str, executions: u64, issued: u64, stalled: &[(&str, u64)]) -> InstructionCycles {
    InstructionCycles {
        address,
        instruction: text.to_owned(),
        source: Some(Source { file: "/src/a b/k.hip".to_owned(), line: 7 }),
        executions,
        modelled_issued: issued,
        modelled_stalled: stalled.iter().map(|(reason, cycles)| ((*reason).to_owned(), *cycles)).collect(),
        modelled_waits_for: Vec::new(),
        modelled_vector_alu: 0,
        lines: 0,
        modelled_lds_conflict_cycles: 0,
    }
}

fn wave(wave: u32, begin: u64, skips: bool) -> TracedWave {
    let mut at = begin;
    let all = [(0x100, 0, 4), (0x104, 8, 4), (0x108, 0, 4), (0x10c, 2, 4), (0x110, 0, 4)];
    let executed = all.into_iter().filter(|(address, ..)| !skips || *address != 0x10c);
    let instructions = executed.map(|(address, stall, issued)| {
        let each = TracedInstruction(address, at, issued, stall + issued);
        at += stall + issued;
        each
    });
    let instructions: Vec<TracedInstruction> = instructions.collect();
    let modelled_end = at;
    TracedWave { workgroup: [0; 3], wave, simd: wave % 2, modelled_begin: begin, modelled_end, instructions }
}

/// A kernel that waits, and branches over an addition.
fn kernel(name: &str, object: &str) -> KernelTime {
    let mut kernel = KernelTime::new(name, name, "gfx90a:xnack-", object);
    kernel.instructions = vec![
        instruction(0x100, "s_load_dword s0, s[0:1], 0x0", 3, 12, &[]),
        instruction(0x104, "s_waitcnt lgkmcnt(0)", 3, 12, &[("WAITCNT", 20), ("ARBITER_NOT_WIN", 4)]),
        instruction(0x108, "s_cbranch_scc1 1", 3, 12, &[]),
        instruction(0x10c, "v_add_u32_e32 v0, v0, v1", 2, 8, &[("ALU_DEPENDENCY", 4)]),
        instruction(0x110, "s_endpgm", 3, 12, &[]),
    ];
    let kinds = [(0x100, "SMEM"), (0x104, "IMMED"), (0x108, "BRANCH"), (0x10c, "VALU"), (0x110, "MESSAGE")];
    let types = kinds.map(|(address, kind)| InstructionType { address, kind: kind.to_owned() });
    // The third begins in the place of the first.
    let waves = vec![wave(0, 0, false), wave(1, 4, true), wave(2, 40, false)];
    kernel.traced = Some(TracedWaves { dispatch: 0, lost: 0, types: types.to_vec(), waves });
    kernel
}

fn time(kernels: Vec<KernelTime>) -> TimeProfile {
    TimeProfile { kernels, ..TimeProfile::new(Vec::new()) }
}

fn written(time: &TimeProfile) -> BTreeMap<String, Vec<u8>> {
    let source = |path: &str| path.ends_with("k.hip").then(|| b"text".to_vec());
    let files = folder(time, |_| true, source).expect("a folder");
    assert!(files.iter().all(|(name, _)| is_of_folder(name)), "{:?}", files.iter().map(|(name, _)| name));
    files.into_iter().collect()
}

fn json(files: &BTreeMap<String, Vec<u8>>, name: &str) -> Value {
    serde_json::from_slice(&files[name]).expect("JSON")
}

#[test]
fn what_was_written_is_read_with_the_stalls_of_the_time() {
    let time = time(vec![kernel("k", "one")]);
    let samples = pc_samples::read(&written(&time)[CODE_FILE]).expect("samples");
    assert_eq!((samples.kind, samples.modelled), (SampleKind::ThreadTrace, true));
    let [object] = samples.objects.as_slice() else { panic!("{samples:?}") };
    assert_eq!(object.kernels, ["k"]);
    for each in &time.kernels[0].instructions {
        let place = &object.places[&each.address];
        assert_eq!(place.waiting(), each.modelled_stalled.values().sum::<u64>(), "{each:?}");
        assert_eq!((place.samples, place.executions), (each.modelled_cycles(), Some(each.executions)));
        assert_eq!(place.instruction.as_deref(), Some(each.instruction.as_str()));
    }
    assert_eq!(object.places.len(), 5);
}

#[test]
fn waves_are_in_slots_and_have_categories_and_states() {
    let files = written(&time(vec![kernel("k", "one")]));
    let names = json(&files, NAMES_FILE);
    assert_eq!((&names["gfxip"], &names["gfxv"]), (&json!(9), &json!("vega")));
    assert_eq!(
        names["wave_filenames"],
        json!({"0": {
            "0": {"0": {"0": ["se0_sm0_sl0_wv0.json", 0, 30], "1": ["se0_sm0_sl0_wv1.json", 40, 70]}},
            "1": {"0": {"0": ["se0_sm1_sl0_wv0.json", 4, 28]}},
        }})
    );
    let first = json(&files, "se0_sm0_sl0_wv0.json");
    // Begin, category, stall, duration, row: 1 of code.json is the first instruction.
    assert_eq!(
        first["wave"]["instructions"],
        json!([[0, 1, 0, 4, 1], [4, 9, 8, 12, 2], [16, 8, 0, 4, 3], [20, 6, 2, 6, 4], [26, 11, 0, 4, 5]])
    );
    assert_eq!(first["wave"]["timeline"], json!([[2, 4], [3, 8], [2, 8], [4, 2], [2, 8]]));
    let skips = json(&files, "se0_sm1_sl0_wv0.json");
    assert_eq!(skips["wave"]["instructions"][2], json!([20, 7, 0, 4, 3]), "the branch is taken");
    let occupancy = json(&files, OCCUPANCY_FILE);
    assert_eq!(occupancy["0"].as_array().map(Vec::len), Some(6));
    assert_eq!(occupancy["0"][1], json!([4, 0, 1, 0, 1, 1]));
    assert_eq!(occupancy["dispatches"], json!({"1": "k"}));
}

#[test]
fn kernels_follow_one_another_and_code_objects_have_numbers() {
    let files = written(&time(vec![kernel("k", "one"), kernel("l", "two")]));
    let code = json(&files, CODE_FILE);
    let row = |number: usize| (code["code"][number][0].clone(), code["code"][number][4].clone());
    assert_eq!((row(0), row(6)), ((json!("; k"), json!(1)), (json!("; l"), json!(2))));
    assert!(code["code"].as_array().expect("rows").iter().enumerate().all(|(at, row)| row[2] == json!(at)));
    let second = json(&files, "se0_sm0_sl0_wv2.json");
    assert_eq!((&second["wave"]["begin"], &second["wave"]["instructions"][0][4]), (&json!(70), &json!(7)));
}

#[test]
fn without_waves_the_viewer_is_told_of_samples() {
    let mut kernel = kernel("k", "one");
    kernel.traced = None;
    let files = written(&time(vec![kernel]));
    assert_eq!(files.len(), 4, "{:?}", files.keys());
    assert_eq!(json(&files, NAMES_FILE)["pc_sampling"], json!(true));
}

#[test]
fn source_files_are_in_a_tree() {
    let files = written(&time(vec![kernel("k", "one")]));
    assert_eq!(json(&files, SNAPSHOTS_FILE), json!({"/": {"src": {"a b": {"k.hip": "source_0_k.hip"}}}}));
    assert_eq!(files["source_0_k.hip"], b"text");
    let mut tree = Map::new();
    assert!(put(&mut tree, "./a.hip", "x") && put(&mut tree, "/b/c", "y"));
    assert!(!put(&mut tree, "/b/c/d", "z") && !put(&mut tree, "/b", "z") && !put(&mut tree, "", "z"));
    assert_eq!(Value::from(tree), json!({".": {"a.hip": "x"}, "/": {"b": {"c": "y"}}}));
}

#[test]
fn kernels_of_several_targets_or_none_are_refused() {
    let mut other = kernel("l", "two");
    other.target = "gfx1100".to_owned();
    let time = time(vec![kernel("k", "one"), other]);
    let refused = folder(&time, |_| true, |_| None).expect_err("two targets").to_string();
    assert!(refused.contains("--target says which of gfx1100, gfx90a:xnack-"), "{refused}");
    assert!(folder(&time, |_| false, |_| None).is_err());
    let navi = folder(&time, |kernel| kernel.target == "gfx1100", |_| None).expect("one target");
    let names = navi.iter().find(|(name, _)| name == NAMES_FILE).expect("names");
    assert!(String::from_utf8_lossy(&names.1).contains("\"gfxip\":11,\"gfxv\":\"navi\""));
}

/// Types of values; of an object by key, of a list those of its elements, each once.
fn shape(value: &Value) -> Value {
    match value {
        Value::Null => json!("null"),
        Value::Bool(_) => json!("truth"),
        Value::Number(number) => json!(if number.is_f64() { "fraction" } else { "number" }),
        Value::String(_) => json!("text"),
        Value::Array(all) => all.iter().map(shape).collect::<Vec<Value>>().into(),
        Value::Object(all) => {
            all.iter().filter(|(key, _)| *key != "modelled").map(|(key, value)| (key.clone(), shape(value))).collect()
        }
    }
}

/// The shape of the first element of a list: what each of them has to have.
fn shape_of_each(list: &Value) -> Value {
    let shapes: Vec<Value> = list.as_array().expect("a list").iter().map(shape).collect();
    let first = shapes.first().cloned().unwrap_or_default();
    assert!(shapes.iter().all(|each| *each == first), "elements differ: {first}");
    first
}

fn keys(value: &Value) -> Vec<&str> {
    let all = value.as_object().expect("an object");
    all.keys().map(String::as_str).filter(|key| *key != "modelled").collect()
}

/// The first value below keys that are numbers, so many levels deep.
fn below(value: &Value, levels: usize) -> &Value {
    (0..levels).fold(value, |value, _| {
        let (key, inner) = value.as_object().and_then(|all| all.iter().next()).expect("an object with a key");
        assert!(key.parse::<u32>().is_ok(), "{key}");
        inner
    })
}

/// Cycles of an issue slot: what timelines of hardware may be too long.
const SLOT: i64 = 4;

fn real_folders(at: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(at).expect("a folder").flatten().map(|entry| entry.path());
    for path in entries.filter(|path| path.is_dir()) {
        let named = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ui_output_agent_"));
        if named { found.push(path) } else { real_folders(&path, found) }
    }
}

/// Compares form, not contents: keys, columns and types of values.
#[test]
fn files_have_the_form_of_real_ones() {
    let Some(at) = std::env::var_os(REAL) else { return };
    let mut folders = Vec::new();
    real_folders(Path::new(&at), &mut folders);
    assert!(!folders.is_empty(), "{REAL} has no folder ui_output_agent_*");
    let files = written(&time(vec![kernel("k", "one")]));
    for real in &folders {
        let of = |name: &str| -> Value {
            let bytes = fs::read(real.join(name)).unwrap_or_else(|error| panic!("{}: {error}", real.display()));
            serde_json::from_slice(&bytes).expect("JSON")
        };
        let (ours, theirs) = (json(&files, CODE_FILE), of(CODE_FILE));
        assert_eq!(keys(&ours), keys(&theirs), "{}", real.display());
        assert_eq!((&ours["header"], &ours["version"]), (&theirs["header"], &theirs["version"]));
        assert_eq!(shape_of_each(&ours["code"]), shape_of_each(&theirs["code"]));
        let is_numbered =
            |code: &Value| code["code"].as_array().expect("rows").iter().enumerate().all(|(n, row)| row[2] == json!(n));
        assert!(is_numbered(&ours) && is_numbered(&theirs));
        pc_samples::read(&fs::read(real.join(CODE_FILE)).expect("a file")).expect("samples");

        let (ours, theirs) = (json(&files, NAMES_FILE), of(NAMES_FILE));
        assert_eq!(keys(&ours), keys(&theirs));
        let entry = |names: &Value| below(&names["wave_filenames"], 4).clone();
        assert_eq!(shape(&entry(&ours)), shape(&entry(&theirs)));
        for key in ["counter_names", "gfxip", "gfxv", "global_begin_time", "version"] {
            assert_eq!(shape(&ours[key]), shape(&theirs[key]), "{key}");
        }

        let wave = entry(&theirs)[0].as_str().expect("a name").to_owned();
        let (ours, theirs) = (json(&files, "se0_sm0_sl0_wv0.json"), of(&wave));
        assert_eq!(keys(&ours), keys(&theirs));
        assert_eq!(keys(&ours["wave"]), keys(&theirs["wave"]));
        for list in ["instructions", "timeline"] {
            assert_eq!(shape_of_each(&ours["wave"][list]), shape_of_each(&theirs["wave"][list]), "{list}");
        }
        // What is executed adds up, in both.
        for wave in [&ours["wave"], &theirs["wave"]] {
            let last = wave["instructions"].as_array().and_then(|all| all.last()).expect("an instruction");
            let sum = |at: usize, list: &str| -> i64 {
                wave[list].as_array().expect("a list").iter().filter_map(|each| each[at].as_i64()).sum()
            };
            let number = |value: &Value| value.as_i64().expect("a number");
            let length = number(&wave["end"]) - number(&wave["begin"]);
            assert!((sum(1, "timeline") - length).abs() <= SLOT, "{}", real.display());
            assert!(sum(2, "instructions") <= sum(3, "instructions"));
            assert!(number(&last[0]) <= number(&wave["end"]));
        }

        let (ours, theirs) = (json(&files, OCCUPANCY_FILE), of(OCCUPANCY_FILE));
        assert_eq!(shape_of_each(&ours["0"]), shape_of_each(&theirs["0"]));
        let named = |value: &Value| -> Vec<String> {
            keys(value).into_iter().filter(|key| key.parse::<u32>().is_err()).map(str::to_owned).collect()
        };
        assert_eq!(named(&ours), named(&theirs));
    }
}
