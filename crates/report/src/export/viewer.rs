//! A run in modelled time as a folder for AMD's viewer of thread traces (ROCprof Compute Viewer), in the form of
//! `rocprofv3 --att`.
//!
//! - `code.json`: all instructions that were executed, with executions, cycles and stalls of all waves;
//! - `filenames.json`: which waves there are; the viewer recognises a folder by it;
//! - `se*_sm*_sl*_wv*.json`, `occupancy.json`: what waves did, if the time has it: those of one compute unit, in the
//!   first dispatch of each kernel, one kernel after the other;
//! - `snapshots.json`, `source_*`: the source files.
//!
//! The viewer needs no more: `realtime.json` compares clocks of several shader engines, and `wstates*.json` is read by
//! older viewers only. Every file that has numbers says that they are modelled.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use wavetap_amdgpu::Target;
use wavetap_base::error::{Error, Result};
use wavetap_profile::time::{KernelTime, TimeProfile, TracedInstruction, TracedWave};
use wavetap_profile::viewer::{CODE_FILE, CodeFile, FUNCTION_MARK, HEADER, Row, VERSION};

/// The file that the viewer recognises a folder by.
pub const NAMES_FILE: &str = "filenames.json";
const OCCUPANCY_FILE: &str = "occupancy.json";
const SNAPSHOTS_FILE: &str = "snapshots.json";
/// What copies of source files are called, before their number and name.
const SOURCE_PREFIX: &str = "source_";

/// States of waves in the files' timelines.
const EXECUTES: u8 = 2;
const WAITS: u8 = 3;
const STALLED: u8 = 4;

/// A file of the folder: its name and contents.
pub type ViewerFile = (String, Vec<u8>);

/// The files of a folder for the viewer, with the selected kernels. `source` gives the contents of a source file as the
/// line table names it, if it is there.
///
/// # Errors
/// Malformed if no kernel is selected; unsupported if the selected ones are of several targets.
pub fn folder(
    time: &TimeProfile,
    is_selected: impl Fn(&KernelTime) -> bool,
    source: impl Fn(&str) -> Option<Vec<u8>>,
) -> Result<Vec<ViewerFile>> {
    let kernels: Vec<&KernelTime> = time.kernels.iter().filter(|kernel| is_selected(kernel)).collect();
    let targets: BTreeSet<&str> = kernels.iter().map(|kernel| kernel.target.as_str()).collect();
    let targets: Vec<&str> = targets.into_iter().collect();
    let target = match targets[..] {
        [target] => target,
        [] => return Err(Error::malformed("the file of modelled time has no such kernel")),
        _ => {
            let message = format!("viewer is of one target: --target says which of {}", targets.join(", "));
            return Err(Error::unsupported(message));
        }
    };
    let code = Code::of(&kernels);
    let mut files = vec![(CODE_FILE.to_owned(), code.file()?)];
    let waves = waves(&kernels, &code, &mut files)?;
    files.push((NAMES_FILE.to_owned(), bytes(&names(target, waves))?));
    snapshots(&code, source, &mut files)?;
    Ok(files)
}

/// Whether a file of this name may be in a folder for the viewer.
#[must_use]
pub fn is_of_folder(name: &str) -> bool {
    let wave = name.starts_with("se") && name.contains("_wv") && name.ends_with(".json");
    wave || name.starts_with(SOURCE_PREFIX) || [CODE_FILE, NAMES_FILE, OCCUPANCY_FILE, SNAPSHOTS_FILE].contains(&name)
}

fn bytes(json: &impl serde::Serialize) -> Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(json).map_err(|error| Error::internal(format!("viewer: {error}")))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// The rows of `code.json`.
struct Code<'a> {
    rows: Vec<Row>,
    /// Where an instruction is in them, by code object and address.
    places: BTreeMap<(u64, u64), usize>,
    /// Numbers of code objects, by MD5.
    objects: BTreeMap<&'a str, u64>,
    /// Source files, as line tables name them.
    sources: BTreeSet<&'a str>,
}

impl<'a> Code<'a> {
    fn of(kernels: &[&'a KernelTime]) -> Code<'a> {
        let mut code =
            Code { rows: Vec::new(), places: BTreeMap::new(), objects: BTreeMap::new(), sources: BTreeSet::new() };
        // Several kernels may have called a function.
        let mut sums: BTreeMap<(u64, u64), Row> = BTreeMap::new();
        let mut begins: BTreeMap<(u64, u64), Vec<&str>> = BTreeMap::new();
        for kernel in kernels {
            let next = code.objects.len() as u64 + 1;
            let object = *code.objects.entry(&kernel.object).or_insert(next);
            if let Some(first) = kernel.instructions.first() {
                begins.entry((object, first.address)).or_default().push(&kernel.name);
            }
            for each in &kernel.instructions {
                let line = each.source.as_ref().map(|at| format!("{}:{}", at.file, at.line)).unwrap_or_default();
                code.sources.extend(each.source.as_ref().map(|at| at.file.as_str()));
                let row = sums
                    .entry((object, each.address))
                    .or_insert_with(|| Row(each.instruction.clone(), 0, 0, line, object, each.address, 0, 0, 0, 0));
                let stalled = each.modelled_stalled.values().copied().fold(0, u64::saturating_add);
                row.6 = row.6.saturating_add(each.executions);
                row.7 = row.7.saturating_add(each.modelled_issued.saturating_add(stalled));
                row.8 = row.8.saturating_add(stalled);
            }
        }
        for (place, row) in sums {
            for name in begins.get(&place).into_iter().flatten() {
                let (number, text) = (code.rows.len(), format!("{FUNCTION_MARK} {name}"));
                code.rows.push(Row(text, 0, number, String::new(), place.0, place.1, 0, 0, 0, 0));
            }
            let number = code.rows.len();
            code.places.insert(place, number);
            code.rows.push(Row(row.0, row.1, number, row.3, row.4, row.5, row.6, row.7, row.8, row.9));
        }
        code
    }

    fn file(&self) -> Result<Vec<u8>> {
        bytes(&CodeFile { code: self.rows.clone(), header: HEADER, modelled: true, version: VERSION })
    }

    fn number(&self, object: u64, address: u64) -> Option<usize> {
        self.places.get(&(object, address)).copied()
    }
}

fn names(target: &str, waves: Option<Value>) -> Value {
    let generation = Target::by_name(target.split(':').next().unwrap_or_default()).map_or(9, Target::generation);
    // gfx1250 is of 12, and what is before 9 is as it.
    let major = if generation > 100 { generation / 100 } else { generation.max(9) };
    let mut names = json!({
        "counter_names": [],
        "gfxip": major,
        "gfxv": if major >= 10 { "navi" } else { "vega" },
        "global_begin_time": 0,
        "modelled": true,
        "version": VERSION,
    });
    match waves {
        Some(waves) => names["wave_filenames"] = waves,
        None => {
            // Without waves the viewer lists instructions only if it is told of PC samples.
            names["wave_filenames"] = json!({});
            names["thread_trace"] = json!(true);
            names["pc_sampling"] = json!(true);
        }
    }
    names
}

/// The waves that were in a slot of a SIMD, one after the other: name, begin, end.
type Slot = Vec<(String, u64, u64)>;

/// Adds the files of waves; which there are by SIMD and slot, if there are some.
fn waves(kernels: &[&KernelTime], code: &Code<'_>, files: &mut Vec<ViewerFile>) -> Result<Option<Value>> {
    let mut slots: BTreeMap<u32, Vec<Slot>> = BTreeMap::new();
    let mut occupancy: Vec<[u64; 6]> = Vec::new();
    let mut dispatches = Map::new();
    let mut start = 0_u64;
    for (id, kernel) in (1_u64..).zip(kernels) {
        let Some(traced) = &kernel.traced else { continue };
        let object = code.objects.get(kernel.object.as_str()).copied().unwrap_or_default();
        let types: BTreeMap<u64, &str> = traced.types.iter().map(|each| (each.address, each.kind.as_str())).collect();
        dispatches.insert(id.to_string(), json!(kernel.name));
        let mut waves: Vec<&TracedWave> = traced.waves.iter().collect();
        waves.sort_by_key(|wave| (wave.modelled_begin, wave.workgroup, wave.wave));
        for wave in waves {
            let (begin, end) = (start.saturating_add(wave.modelled_begin), start.saturating_add(wave.modelled_end));
            let of_simd = slots.entry(wave.simd).or_default();
            let is_free = |waves: &Slot| waves.last().is_none_or(|(.., ended)| *ended <= begin);
            let slot = of_simd.iter().position(is_free).unwrap_or_else(|| {
                of_simd.push(Vec::new());
                of_simd.len() - 1
            });
            let number = of_simd[slot].len();
            let name = format!("se0_sm{}_sl{slot}_wv{number}.json", wave.simd);
            let tokens: Vec<Token> = tokens(wave, &types, |address| code.number(object, address), start);
            files.push((
                name.clone(),
                bytes(&json!({
                    "duration": end.saturating_sub(begin),
                    "modelled": true,
                    "name": "SE0",
                    "num_insts": tokens.len(),
                    "num_stitched": tokens.len(),
                    "wave": {
                        "begin": begin, "cu": 0, "end": end, "id": number,
                        "instructions": tokens.iter().map(Token::row).collect::<Vec<Value>>(),
                        "simd": wave.simd, "slot": slot,
                        "timeline": timeline(&tokens),
                        "waitcnt": [],
                    },
                }))?,
            ));
            for (at, starts) in [(begin, 1), (end, 0)] {
                occupancy.push([at, 0, wave.simd.into(), slot as u64, starts, id]);
            }
            of_simd[slot].push((name, begin, end));
        }
        start = traced.waves.iter().map(|wave| start.saturating_add(wave.modelled_end)).fold(start, u64::max);
    }
    if slots.is_empty() {
        return Ok(None);
    }
    occupancy.sort_unstable();
    let occupancy = json!({ "0": occupancy, "dispatches": dispatches, "modelled": true, "version": VERSION });
    files.push((OCCUPANCY_FILE.to_owned(), bytes(&occupancy)?));
    let numbered = |list: Vec<Value>| -> Value {
        list.into_iter().enumerate().map(|(number, value)| (number.to_string(), value)).collect::<Map<_, _>>().into()
    };
    let simds = slots.into_iter().map(|(simd, slots)| {
        let slot = |waves: Vec<(String, u64, u64)>| {
            numbered(waves.into_iter().map(|(name, begin, end)| json!([name, begin, end])).collect())
        };
        (simd.to_string(), numbered(slots.into_iter().map(slot).collect()))
    });
    Ok(Some(json!({ "0": simds.collect::<Map<String, Value>>() })))
}

/// An instruction of a wave, as its file has it.
struct Token {
    begin: u64,
    category: u8,
    stall: u64,
    duration: u64,
    number: usize,
}

impl Token {
    fn row(&self) -> Value {
        json!([self.begin, self.category, self.stall, self.duration, self.number])
    }
}

/// What a wave executed; its dispatch begins at `start`.
fn tokens(
    wave: &TracedWave,
    types: &BTreeMap<u64, &str>,
    number: impl Fn(u64) -> Option<usize>,
    start: u64,
) -> Vec<Token> {
    let all = &wave.instructions;
    let token = |(index, each): (usize, &TracedInstruction)| {
        let TracedInstruction(address, begin, issued, duration) = *each;
        let here = number(address)?;
        // What follows a branch that is not taken was executed, and so is in the next row.
        let taken = || all.get(index + 1).and_then(|next| number(next.0)) != Some(here + 1);
        let category = match types.get(&address).copied().unwrap_or_default() {
            "SMEM" => 1,
            "SALU" => 2,
            "VMEM" => 3,
            "FLAT" => 4,
            "LDS" => 5,
            "VALU" => 6,
            "BRANCH" if taken() => 7,
            "BRANCH" => 8,
            "MESSAGE" => 11,
            _ => 9,
        };
        let stall = duration.saturating_sub(issued);
        Some(Token { begin: start.saturating_add(begin), category, stall, duration, number: here })
    };
    all.iter().enumerate().filter_map(token).collect()
}

/// In which state the wave was, and for how long: one state after the other.
fn timeline(tokens: &[Token]) -> Vec<(u8, u64)> {
    /// Of the sequencer: its stalls are waits.
    const IMMED: u8 = 9;
    let mut states: Vec<(u8, u64)> = Vec::new();
    for token in tokens {
        let stalled = if token.category == IMMED { WAITS } else { STALLED };
        for (state, cycles) in [(stalled, token.stall), (EXECUTES, token.duration.saturating_sub(token.stall))] {
            match states.last_mut() {
                _ if cycles == 0 => {}
                Some((last, sum)) if *last == state => *sum = sum.saturating_add(cycles),
                _ => states.push((state, cycles)),
            }
        }
    }
    states
}

/// Adds the source files that are there, and the tree of them.
fn snapshots(code: &Code<'_>, source: impl Fn(&str) -> Option<Vec<u8>>, files: &mut Vec<ViewerFile>) -> Result<()> {
    let mut tree = Map::new();
    let mut count = 0;
    for path in &code.sources {
        let Some(contents) = source(path) else { continue };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let base: String =
            path.rsplit('/').next().unwrap_or_default().chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        let name = format!("{SOURCE_PREFIX}{count}_{base}");
        if put(&mut tree, path, &name) {
            files.push((name, contents));
            count += 1;
        }
    }
    files.push((SNAPSHOTS_FILE.to_owned(), bytes(&tree)?));
    Ok(())
}

/// Puts a file into the tree of folders; false if it is there as a folder, or below a file.
fn put(tree: &mut Map<String, Value>, path: &str, name: &str) -> bool {
    let root = path.starts_with('/').then_some("/");
    let mut parts: Vec<&str> = root.into_iter().chain(path.split('/').filter(|part| !part.is_empty())).collect();
    let Some(last) = parts.pop() else { return false };
    let mut folder = tree;
    for part in parts {
        let next = folder.entry(part).or_insert_with(|| json!({}));
        let Some(next) = next.as_object_mut() else { return false };
        folder = next;
    }
    if folder.contains_key(last) {
        return false;
    }
    folder.insert(last.to_owned(), json!(name));
    true
}

#[cfg(test)]
mod tests;
