//! Coverage against what the original program executed: the emulator's counts of each instruction in the original
//! code, the instructions that `llvm-objdump` lists, and their lines by `llvm-symbolizer`. The code that works out
//! coverage reads none of it. Then the tools that read tracefiles.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use goblin::elf::Elf;
use goblin::elf::sym::STT_FUNC;
use rewriter_tests::command::{self, Finished};
use rewriter_tests::place::root;
use serde_json::Value;
use tempfile::TempDir;

use super::{rows, sample, time, wavetap};

/// Samples with line tables, and targets that they have code for.
const RUNS: [(&str, &str); 16] = [
    ("bin/calls", "gfx90a"),
    ("bin/constants", "gfx942"),
    ("bin/divergence", "gfx90a"),
    ("bin/dynamic_lds", "gfx906"),
    ("bin/early_exit", "gfx942"),
    ("bin/histogram", "gfx90a"),
    ("bin/lds_reduce", "gfx906"),
    ("bin/nested_loops", "gfx90a"),
    ("bin/o0", "gfx90a"),
    ("bin/spmv", "gfx942"),
    ("bin/transpose", "gfx906"),
    ("bin/two_kernels", "gfx90a"),
    ("memory/bin/accesses", "gfx1100"),
    ("counts/bin/flops", "gfx1030"),
    ("memory/bin/patterns", "gfx90a"),
    ("steps/bin/product_tiled", "gfx1100"),
];

/// Probes whose counts say how often lines were executed.
const PROBES: [&str; 3] = ["branches,blocks", "blocks", "branches"];

/// A file of a tracefile.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Covered {
    functions: BTreeMap<String, u64>,
    lines: BTreeMap<u32, u64>,
    /// By line, number and side.
    branches: BTreeMap<(u32, u32, u32), Option<u64>>,
}

type Tracefile = BTreeMap<String, Covered>;

/// Reads a tracefile, whose sums have to be right.
fn read(text: &str) -> Tracefile {
    let mut all = Tracefile::new();
    let mut name = String::new();
    let number = |text: &str| text.parse::<u64>().expect("a number");
    for line in text.lines().filter(|line| *line != "end_of_record") {
        let (tag, rest) = line.split_once(':').expect("a record");
        if tag == "SF" {
            rest.clone_into(&mut name);
            assert!(all.insert(name.clone(), Covered::default()).is_none(), "{name} twice");
        }
        let Some(file) = all.get_mut(&name) else { continue };
        let parts: Vec<&str> = rest.split(',').collect();
        let sums = |found: usize, hit: usize| {
            assert_eq!((number(rest) as usize), if tag.ends_with('F') { found } else { hit })
        };
        match tag {
            "TN" | "SF" => {}
            "FN" => assert!(file.functions.insert(parts[1].to_owned(), 0).is_none(), "{line}"),
            "FNDA" => *file.functions.get_mut(parts[1]).expect("FN is first") = number(parts[0]),
            "DA" => assert!(file.lines.insert(number(parts[0]) as u32, number(parts[1])).is_none(), "{line}"),
            "BRDA" => {
                let [at, block, side] = [0, 1, 2].map(|part| number(parts[part]) as u32);
                let taken = (parts[3] != "-").then(|| number(parts[3]));
                assert!(file.branches.insert((at, block, side), taken).is_none(), "{line}");
            }
            "LF" | "LH" => sums(file.lines.len(), file.lines.values().filter(|count| **count > 0).count()),
            "FNF" | "FNH" => sums(file.functions.len(), file.functions.values().filter(|count| **count > 0).count()),
            "BRF" | "BRH" => {
                sums(file.branches.len(), file.branches.values().flatten().filter(|count| **count > 0).count())
            }
            _ => panic!("{line}"),
        }
    }
    all
}

/// Where an instruction comes from: file, line and column, then those of the calls that were inlined, innermost first.
type Place = Vec<(String, u32, u32)>;

/// An instruction as other tools see it.
#[derive(Debug)]
struct Instruction {
    address: u64,
    text: String,
    /// Empty if it has no line.
    place: Place,
}

impl Instruction {
    fn line(&self) -> Option<(String, u32)> {
        self.place.first().map(|(file, line, _)| (file.clone(), *line))
    }

    /// Whether it belongs to the same line, inlined at the same calls.
    fn is_beside(&self, other: &Instruction) -> bool {
        self.line() == other.line() && self.place.get(1..) == other.place.get(1..)
    }

    fn is_branch(&self) -> bool {
        self.text.starts_with("s_cbranch") || self.text.starts_with("s_branch") || self.text.contains("setpc")
    }
}

fn tool(name: &str, arguments: &[&str], folder: &Path) -> Finished {
    command::run(name.as_ref(), arguments, &[], folder)
        .and_then(|ended| ended.exited(0))
        .expect("a tool that ends well")
}

/// The functions of a code object, by name, with their instructions.
fn functions(object: &Path, folder: &Path) -> BTreeMap<String, Vec<Instruction>> {
    let bytes = fs::read(object).expect("a code object");
    let elf = Elf::parse(&bytes).expect("an ELF file");
    let path = object.to_str().expect("a path");
    let listing = tool("llvm-objdump-19", &["-d", path], folder).out();
    let instructions: Vec<(u64, &str)> = listing
        .lines()
        .filter_map(|line| {
            let (text, rest) = line.strip_prefix('\t')?.split_once("// ")?;
            Some((u64::from_str_radix(rest.split(':').next()?, 16).ok()?, text.trim()))
        })
        .collect();
    let addresses: String = instructions.iter().map(|(address, _)| format!("{address:#x}\n")).collect();
    fs::write(folder.join("addresses"), addresses).expect("a file");
    let script = "llvm-symbolizer-19 --obj=\"$0\" --output-style=JSON < addresses";
    let places = tool("/bin/sh", &["-c", script, path], folder).out();
    let places: BTreeMap<u64, Place> = places.lines().map(place).collect();
    let entries = elf.syms.iter().filter(|symbol| symbol.st_type() == STT_FUNC).map(|symbol| symbol.st_value);
    let reached = reached(&instructions, &entries.collect());
    let is_of = |symbol: &goblin::elf::Sym, address: u64| {
        (symbol.st_value..symbol.st_value + symbol.st_size).contains(&address)
    };
    elf.syms
        .iter()
        .filter(|symbol| symbol.st_type() == STT_FUNC)
        .map(|symbol| {
            let name = elf.strtab.get_at(symbol.st_name).expect("a name").to_owned();
            let own = instructions.iter().filter(|(address, _)| is_of(&symbol, *address) && reached.contains(address));
            let of = |(address, text): &(u64, &str)| Instruction {
                address: *address,
                text: (*text).to_owned(),
                place: places[address].clone(),
            };
            (name, own.map(of).collect())
        })
        .collect()
}

/// The addresses of instructions that control can reach, as far as branches say: the compiler leaves code after the end
/// of a wave to which nothing branches.
fn reached(instructions: &[(u64, &str)], entries: &BTreeSet<u64>) -> BTreeSet<u64> {
    let target = |(address, text): &(u64, &str)| -> Option<u64> {
        let (name, offset) = text.split_once(' ')?;
        let offset = offset.trim().parse::<u16>().ok().filter(|_| name.contains("branch"))?.cast_signed();
        Some(address.wrapping_add(4).wrapping_add_signed(4 * i64::from(offset)))
    };
    let targets: BTreeSet<u64> = instructions.iter().filter_map(target).collect();
    let mut reached = BTreeSet::new();
    let mut goes_on = true;
    for (address, text) in instructions {
        goes_on |= targets.contains(address) || entries.contains(address);
        if goes_on {
            reached.insert(*address);
        }
        goes_on &= !["s_endpgm", "s_branch ", "s_setpc"].iter().any(|end| text.starts_with(end));
    }
    reached
}

/// What the symbolizer says of an address; of line 0, nothing.
fn place(line: &str) -> (u64, Place) {
    let found: Value = serde_json::from_str(line).expect("JSON");
    let address = found["Address"].as_str().expect("an address").trim_start_matches("0x");
    let frame = |frame: &Value| {
        let file = frame["FileName"].as_str().unwrap_or_default();
        let file = file.strip_prefix("./").unwrap_or(file).to_owned();
        let number = |field: &str| frame[field].as_u64().unwrap_or(0) as u32;
        (file, number("Line"), number("Column"))
    };
    let frames: Place = found["Symbol"].as_array().expect("frames").iter().map(frame).collect();
    let has_line = frames.first().is_some_and(|(_, line, _)| *line > 0);
    (u64::from_str_radix(address, 16).expect("hex"), if has_line { frames } else { Place::new() })
}

/// A sample that ran once as it is, and once counted.
struct Subject {
    folder: TempDir,
    program: String,
    target: &'static str,
    functions: BTreeMap<String, Vec<Instruction>>,
    /// How often the original executed each instruction.
    executed: BTreeMap<u64, u64>,
}

impl Subject {
    fn new(name: &str, target: &'static str) -> Subject {
        Subject::of(sample(name), target)
    }

    fn of(program: PathBuf, target: &'static str) -> Subject {
        let folder = tempfile::tempdir().expect("a folder");
        let program = program.to_str().expect("a path").to_owned();
        let (_, time) = time(&program, target, folder.path());
        wavetap(&["inspect", &program, "--target", target, "--extract", "objects"], folder.path());
        let objects: Vec<PathBuf> = fs::read_dir(folder.path().join("objects"))
            .expect("objects")
            .map(|entry| entry.expect("it").path())
            .collect();
        let [object] = objects.as_slice() else { panic!("{program} has one code object for {target}: {objects:?}") };
        let functions = functions(object, folder.path());
        let mut executed: BTreeMap<u64, u64> = BTreeMap::new();
        for at in time.kernels.iter().flat_map(|kernel| &kernel.instructions) {
            *executed.entry(at.address).or_default() += at.executions;
        }
        Subject { folder, program, target, functions, executed }
    }

    fn profile(&self, probes: &str, file: &str) {
        let arguments = ["profile", "--probe", probes, "--target", self.target, "--force", "-o", file, "--report"];
        wavetap(&[&arguments[..], &["/dev/null", "--", &self.program]].concat(), self.folder.path());
    }

    /// What is exported, and what is said to be missing.
    fn lcov(&self, file: &str, more: &[&str]) -> (Tracefile, String) {
        let arguments = [&["export", "lcov", &self.program, "--counters", file][..], more].concat();
        let ended = command::run(&command::wavetap().expect("the command"), &arguments, &[], self.folder.path());
        let ended = ended.expect("it ends");
        let code = i32::from(!ended.err().is_empty());
        let ended = ended.exited(code).expect("0, or 1 with what is missing");
        (read(&ended.out()), ended.err())
    }

    fn count(&self, instruction: &Instruction) -> u64 {
        self.executed.get(&instruction.address).copied().unwrap_or(0)
    }

    /// Lines of the file, with whether one of their instructions was executed.
    fn lines(&self) -> BTreeMap<(String, u32), bool> {
        let mut lines = BTreeMap::new();
        for instruction in self.functions.values().flatten() {
            if let Some(line) = instruction.line() {
                *lines.entry(line).or_default() |= self.count(instruction) > 0;
            }
        }
        lines
    }

    /// What is known of a line's number: it is at least what the instruction was executed that was executed most, and
    /// exact where the line is one stretch of code that a wave passes once.
    fn check_counts(&self, covered: &Tracefile) -> usize {
        let mut all: BTreeMap<(String, u32), Vec<&[Instruction]>> = BTreeMap::new();
        for function in self.functions.values() {
            for stretch in function.chunk_by(|one, other| one.is_beside(other) && !one.is_branch()) {
                if let Some(line) = stretch[0].line() {
                    all.entry(line).or_default().push(stretch);
                }
            }
        }
        let mut exact = 0;
        for ((file, line), stretches) in all {
            let said = covered[&file].lines[&line];
            let counts = || stretches.iter().copied().flatten().map(|instruction| self.count(instruction));
            let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
            let sum: u64 = counts().sum();
            assert!(most <= said && said <= sum, "{}: {file}:{line}: {said} of {least}..{most}, {sum}", self.program);
            if stretches.len() == 1 && least == most {
                assert_eq!(said, most, "{}: {file}:{line}", self.program);
                exact += 1;
            }
        }
        exact
    }
}

/// What was compared: lines, those that were not executed, those whose number is known exactly.
#[derive(Debug, Default)]
struct Compared {
    lines: usize,
    not_executed: usize,
    exact: usize,
}

/// Compares the coverage of a program with what its original executed, with counts of each probe.
fn compare(subject: &Subject, compared: &mut Compared) -> Tracefile {
    let name = &subject.program;
    let expected = subject.lines();
    let (mut first, mut is_complete) = (Tracefile::new(), true);
    for (place, probes) in PROBES.into_iter().enumerate() {
        subject.profile(probes, "counts");
        let (covered, missing) = subject.lcov("counts", &[]);
        let lines_of = |covered: &Tracefile| -> BTreeMap<(String, u32), u64> {
            let lines = |(file, of): (&String, &Covered)| -> Vec<((String, u32), u64)> {
                of.lines.iter().map(|(line, count)| ((file.clone(), *line), *count)).collect()
            };
            covered.iter().flat_map(lines).collect()
        };
        let found = lines_of(&covered);
        let executed = || found.iter().map(|(line, count)| (line.clone(), *count > 0));
        if missing.is_empty() {
            assert_eq!(executed().collect::<BTreeMap<_, _>>(), expected, "{name}, {probes}");
        } else {
            // What is not known is left out, and said; nothing that is there is wrong.
            let unknown_calls = missing.lines().all(|line| line.contains("targets are not known"));
            assert!(unknown_calls || probes == "branches", "{name}, {probes}: {missing}");
            assert!(executed().all(|(line, executed)| expected[&line] == executed), "{name}, {probes}: {missing}");
            assert!(found.len() < expected.len() || probes == "branches", "{name}, {probes}: {missing}");
        }
        if place == 0 {
            compared.exact += if missing.is_empty() { subject.check_counts(&covered) } else { 0 };
            compared.lines += found.len();
            compared.not_executed += found.values().filter(|count| **count == 0).count();
            (first, is_complete) = (covered, missing.is_empty());
        } else if missing.is_empty() {
            assert_eq!(found, lines_of(&first), "{name}, {probes}");
        }
    }
    // Kernels and functions are entered as often as their first instructions are executed.
    for (function, executions) in first.values().flat_map(|covered| &covered.functions) {
        let executed = subject.count(&subject.functions[function][0]);
        // What is called at unknown places is counted as often as it is known.
        let is_right = *executions == executed || !is_complete && (1..executed).contains(executions);
        assert!(is_right, "{name}: {function}: {executions} of {executed}");
    }
    first
}

#[test]
fn lines_are_those_that_were_executed() {
    let mut compared = Compared::default();
    for (name, target) in RUNS {
        compare(&Subject::new(name, target), &mut compared);
    }
    assert!(compared.lines > 200 && compared.not_executed > 3 && compared.exact > 100, "{compared:?}");
}

/// Builds with all debug information, at several levels of optimisation, with lines that are not executed.
#[test]
fn lines_of_other_builds_are_those_that_were_executed() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = root().join("rewriter-tests/tests/exports/coverage.hip");
    let mut compared = Compared::default();
    for flags in [&["-O0", "-g"][..], &["-O1", "-g"], &["-O3", "-g"], &["-O3", "-g", "-DUNROLL=4"]] {
        let program = folder.path().join("app");
        let (from, to) = (source.to_str().expect("a path"), program.to_str().expect("a path"));
        let headers = format!("-I{}", root().join("hip-samples/src").display());
        let arguments = [flags, &["--offload-arch=gfx1030", &headers, from, "-o", to]].concat();
        tool(root().join("hip-samples/hipclang").to_str().expect("a path"), &arguments, folder.path());
        let subject = Subject::of(program, "gfx1030");
        let covered = compare(&subject, &mut compared);
        let own = &covered[from];
        let text = fs::read_to_string(&source).expect("the source");
        let line = |mark: &str| text.lines().position(|line| line.contains(mark)).expect("a line") as u32 + 1;
        // What the source says, whatever the compiler makes of it: 4 workgroups of two waves of 32 lanes.
        assert_eq!(own.functions["_Z7coveredPjj"], 8, "{flags:?}");
        assert_eq!(own.functions["_Z10not_calledPj"], 0, "{flags:?}");
        assert_eq!(own.lines[&line("// in no dispatch")], 0, "{flags:?}");
        // Optimised code of these calls is of the lines of the functions that were inlined.
        let of_calls = ["// by no lane", "// by some lanes"].map(|mark| own.lines.get(&line(mark)).copied());
        assert!(flags[0] != "-O0" || of_calls.iter().all(Option::is_some), "{of_calls:?}");
        assert!(of_calls[0].is_none_or(|count| count == 0), "{flags:?}: {of_calls:?}");
        assert!(of_calls[1].is_none_or(|count| count > 0), "{flags:?}: {of_calls:?}");
        // Template instances are added up: of the one 8 waves, of the other 16.
        assert_eq!(own.lines[&line("// in both instances")], 24, "{flags:?}");
        // A function's line is that of its declaration.
        subject.profile(PROBES[0], "counts");
        let export = ["export", "lcov", &subject.program, "--counters", "counts"];
        let ended = command::run(&command::wavetap().expect("the command"), &export, &[], subject.folder.path());
        let tracefile = ended.expect("it ends").out();
        let declared = format!("FN:{},_Z7coveredPjj\n", line("__global__ void covered("));
        assert!(tracefile.contains(&declared), "{flags:?}: {tracefile}");
    }
    assert!(compared.lines > 60 && compared.not_executed > 8 && compared.exact > 20, "{compared:?}");
}

/// Without a line table there is nothing to say, and that is an error which says what to do.
#[test]
fn code_without_lines_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = sample("nine/bin/hotspot");
    let program = program.to_str().expect("a path");
    let run = ["profile", "--target", "gfx90a", "-o", "counts", "--report", "/dev/null", "--", program];
    wavetap(&run, folder.path());
    let export = ["export", "lcov", program, "--counters", "counts"];
    let ended = command::run(&command::wavetap().expect("the command"), &export, &[], folder.path());
    let ended = ended.and_then(|ended| ended.exited(2)).expect("an error");
    assert!(ended.out().is_empty() && ended.err().contains("-gline-tables-only"), "{}", ended.err());
}

/// Both sides of each branch are what the emulator saw of it in the original: of what narrows EXEC and of uniform
/// branches, but for those that only ask whether what narrowed EXEC before left a lane.
#[test]
fn branches_are_those_that_were_taken() {
    let mut compared = 0;
    for name in ["bin/nested_loops", "bin/early_exit", "bin/spmv", "bin/histogram", "bin/two_kernels"] {
        let subject = Subject::new(name, "gfx90a");
        let run = ["run", "--backend", "emulator", "--target", "gfx90a", "--trace", "trace", "--", &subject.program];
        wavetap(&run, subject.folder.path());
        let traced = rows(&wavetap(&["export", "sites", "--counters", "trace"], subject.folder.path()));
        let mut fields: BTreeMap<u64, BTreeMap<&str, u64>> = BTreeMap::new();
        for row in &traced {
            let address = u64::from_str_radix(row["address"].trim_start_matches("0x"), 16).expect("hex");
            fields.entry(address).or_default().insert(&row["field"], row["value"].parse().expect("a number"));
        }
        let mut expected: BTreeMap<(String, u32), Vec<[Option<u64>; 2]>> = BTreeMap::new();
        let by_address: BTreeMap<u64, &Instruction> =
            subject.functions.values().flatten().map(|instruction| (instruction.address, instruction)).collect();
        let mut narrowed = false;
        for instruction in by_address.values() {
            let text = &instruction.text;
            let narrows = text.contains("saveexec") && !text.contains("_or_") && !text.contains("andn2_save")
                || text.starts_with("s_andn2_b64 exec, exec")
                || text.starts_with("s_and_b64 exec, exec")
                || text.starts_with("v_cmpx");
            let is_lane_test = text.starts_with("s_cbranch_exec");
            if narrows || text.starts_with("s_cbranch") && !(is_lane_test && narrowed) {
                let line = instruction.line().expect("a branch has a line");
                let of = fields.get(&instruction.address);
                let sides = of.map(|of| match of.get("taken") {
                    Some(taken) => [*taken, of["executions"] - taken],
                    None => [of["lanes_after"], of["lanes_before"] - of["lanes_after"]],
                });
                expected.entry(line).or_default().push(sides.map_or([None; 2], |sides| sides.map(Some)));
            }
            // Whether EXEC was written in this block.
            let writes = narrows || text.contains("saveexec") || text.contains(" exec, exec");
            narrowed = if instruction.is_branch() { false } else { narrowed || writes };
        }
        subject.profile("branches,blocks", "counts");
        let (covered, missing) = subject.lcov("counts", &[]);
        assert_eq!(missing, "", "{name}");
        let mut found: BTreeMap<(String, u32), Vec<[Option<u64>; 2]>> = BTreeMap::new();
        for (file, of) in &covered {
            for ((line, number, side), taken) in &of.branches {
                let of_line = found.entry((file.clone(), *line)).or_default();
                of_line.resize(of_line.len().max(*number as usize + 1), [None; 2]);
                of_line[*number as usize][*side as usize] = *taken;
            }
        }
        assert_eq!(found, expected, "{name}");
        compared += found.values().flatten().filter(|sides| sides.iter().all(|side| *side > Some(0))).count();
    }
    assert!(compared > 8, "{compared} branches of which both sides were taken");
    // Without counts of branches there are none.
    let subject = Subject::new("bin/nested_loops", "gfx90a");
    subject.profile("blocks", "counts");
    assert!(subject.lcov("counts", &[]).0.values().all(|covered| covered.branches.is_empty()));
}

/// A number from the line of `lcov --summary` that begins with a word.
fn summary(out: &str, word: &str) -> (usize, usize) {
    let line = out.lines().find(|line| line.trim_start().starts_with(word)).unwrap_or_else(|| panic!("{word}: {out}"));
    let numbers: Vec<usize> = line.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
    // The rate has a point: 97, 5, hit, found.
    (numbers[2], numbers[3])
}

/// Runs of one program add up in the same way before and after the export, and lcov and genhtml read what is exported.
#[test]
fn tools_read_and_add_up_tracefiles() {
    let subject = Subject::new("bin/early_exit", "gfx90a");
    let folder = subject.folder.path();
    subject.profile("branches,blocks", "one");
    subject.profile("branches,blocks", "two");
    wavetap(&["merge", "one", "two", "-o", "all"], folder);
    // lcov keeps tests of different names apart.
    for (profile, test) in [("one", "night"), ("two", "night"), ("all", "all")] {
        let info = format!("{profile}.info");
        let export = ["export", "lcov", &subject.program, "--counters", profile, "--test-name", test, "-o", &info];
        wavetap(&export, folder);
        assert!(fs::read_to_string(folder.join(&info)).expect("a file").starts_with(&format!("TN:{test}\n")));
    }
    let with_branches = ["--rc", "lcov_branch_coverage=1"];
    let add = [&with_branches[..], &["-a", "one.info", "-a", "two.info", "-o", "sum.info"]].concat();
    tool("lcov", &add, folder);
    let of = |file: &str| read(&fs::read_to_string(folder.join(file)).expect("a file"));
    // lcov makes names absolute, and has its records in another order.
    let lines = |of: Tracefile| -> Vec<Covered> { of.into_values().collect() };
    let (one, all) = (lines(of("one.info")), lines(of("all.info")));
    assert_eq!(lines(read_of_lcov(&folder.join("sum.info"))), all);
    let doubled = |count: &u64| 2 * count;
    for (one, all) in one.iter().zip(&all) {
        assert_eq!(
            one.lines.values().map(doubled).collect::<Vec<_>>(),
            all.lines.values().copied().collect::<Vec<_>>()
        );
    }
    let said = tool("lcov", &[&with_branches[..], &["--summary", "all.info"]].concat(), folder);
    let said = format!("{}{}", said.out(), said.err());
    let sums = |count: fn(&Covered) -> (usize, usize)| {
        all.iter().map(count).fold((0, 0), |sum, more| (sum.0 + more.0, sum.1 + more.1))
    };
    assert_eq!(summary(&said, "lines"), sums(|of| hit(of.lines.values().copied().collect())));
    assert_eq!(summary(&said, "functions"), sums(|of| hit(of.functions.values().copied().collect())));
    assert_eq!(summary(&said, "branches"), sums(|of| hit(of.branches.values().map(|n| n.unwrap_or(0)).collect())));
    // With the sources genhtml makes pages, in which a name is demangled.
    let below = subject.program.rsplit_once("/bin/").expect("the folder of samples").0.to_owned() + "/src";
    let export = ["export", "lcov", &subject.program, "--counters", "all", "--source-path", &below, "-o", "here.info"];
    wavetap(&export, folder);
    let own: String = fs::read_to_string(folder.join("here.info"))
        .expect("a file")
        .split_inclusive("end_of_record\n")
        .filter(|record| record.contains("early_exit.hip"))
        .collect();
    fs::write(folder.join("own.info"), own).expect("a file");
    tool("genhtml", &["--branch-coverage", "--demangle-cpp", "own.info", "-o", "pages"], folder);
    let pages = fs::read_to_string(folder.join("pages/src/early_exit.hip.func.html"))
        .or_else(|_| fs::read_to_string(find(&folder.join("pages"), "early_exit.hip.func.html")))
        .expect("a page of functions");
    assert!(pages.contains("early_exit("), "{pages}");
}

/// How many of these are above 0, and how many there are.
fn hit(counts: Vec<u64>) -> (usize, usize) {
    (counts.iter().filter(|count| **count > 0).count(), counts.len())
}

/// A file of this name below a folder.
fn find(folder: &Path, name: &str) -> PathBuf {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    let mut below = entries.map(|path| if path.is_dir() { find(&path, name) } else { path });
    below.find(|path| path.ends_with(name)).unwrap_or_default()
}

/// A tracefile of lcov, which has branches and functions that count nothing as others are.
fn read_of_lcov(path: &Path) -> Tracefile {
    let text = fs::read_to_string(path).expect("a file");
    read(&text)
}

/// What is left out is said, and nothing stands for it.
#[test]
fn what_is_not_known_is_left_out() {
    let subject = Subject::new("bin/two_kernels", "gfx90a");
    let folder = subject.folder.path();
    let kernels: BTreeSet<String> = subject.functions.keys().filter(|name| name.starts_with("_Z")).cloned().collect();
    assert!(kernels.len() > 1, "{kernels:?}");
    // A kernel that was dispatched and not counted is not one that was not executed.
    let run = ["profile", "--kernel", "checker", "--target", "gfx90a", "-o", "some", "--report", "/dev/null", "--"];
    wavetap(&[&run[..], &[&subject.program]].concat(), folder);
    let (covered, missing) = subject.lcov("some", &[]);
    assert!(missing.contains("dispatches were not counted: it was not selected"), "{missing}");
    let functions = |covered: &Tracefile| -> BTreeSet<String> {
        covered.values().flat_map(|of| of.functions.keys().cloned()).collect()
    };
    assert_eq!(functions(&covered), BTreeSet::from(["_Z7checkerPjjj".to_owned()]));
    // With that kernel alone nothing is missing.
    let (of_kernel, missing) = subject.lcov("some", &["--kernel", "checker"]);
    assert_eq!(missing, "");
    let of_lines = |covered: &Tracefile| -> BTreeMap<String, BTreeMap<u32, u64>> {
        let lines = covered.iter().map(|(file, of)| (file.clone(), of.lines.clone()));
        lines.filter(|(_, lines)| !lines.is_empty()).collect()
    };
    assert_eq!(of_lines(&of_kernel), of_lines(&covered));
    // Of all lines that the other kernels have for themselves, none is there.
    let own: BTreeSet<(String, u32)> =
        subject.functions["_Z7checkerPjjj"].iter().filter_map(Instruction::line).collect();
    for (file, of) in &covered {
        assert!(of.lines.keys().all(|line| own.contains(&(file.clone(), *line))), "{file}: {of:?}");
    }
}

/// By lanes: a line under a condition that no lane of a wave fulfils is passed by the wave all the same where the
/// compiler does not branch, and by no lane.
#[test]
fn lanes_are_counted() {
    let subject = Subject::new("bin/divergence", "gfx90a");
    subject.profile("branches,blocks", "counts");
    let (waves, _) = subject.lcov("counts", &["--count", "waves"]);
    let (lanes, missing) = subject.lcov("counts", &["--count", "lanes"]);
    assert_eq!(missing, "");
    let (waves, lanes) = (&waves["divergence.hip"], &lanes["divergence.hip"]);
    // 16 workgroups of 128 work-items are 32 waves, and `if (threadIdx.x < 32)` is line 7.
    let kernel = "_Z9divergentPjS_";
    assert_eq!((waves.functions[kernel], lanes.functions[kernel]), (32, 16 * 128));
    assert!(waves.lines.keys().eq(lanes.lines.keys()), "{lanes:?}");
    let both = |line: u32| (waves.lines[&line], lanes.lines[&line]);
    // Line 8 is for 32 of the first wave's lanes, 10 for the other 32 and all of the second wave's.
    assert_eq!([7, 8, 10].map(both), [(32, 16 * 128), (16, 16 * 32), (32, 16 * 96)]);
    // Lines 17 and 19 are for whole waves.
    assert_eq!([16, 17, 19].map(both), [(32, 16 * 128), (16, 16 * 64), (16, 16 * 64)]);
}
