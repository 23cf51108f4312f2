//! `wavetap diff` on builds of one program that differ in one way each: levels of optimisation, inlining, source lines
//! that moved, folders, kernels that were renamed, added and removed, an unrolled loop. What has to differ, and what
//! must not, follows from the source (`app.hip`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use rewriter_tests::{command, hip, place};
use serde_json::Value;
use tempfile::TempDir;

/// A workgroup of 256 work-items is launched of each kernel: waves of gfx90a.
const WAVES: i64 = 4;

/// Lines that `moved` has before its kernels, and those that `edited` has within.
const MOVED: u32 = 10;

/// A build: its name, what is done to the source, flags.
type Build = (&'static str, fn(&str) -> String, &'static [&'static str]);

fn as_it_is(source: &str) -> String {
    source.replace("LINES\n", "\n")
}

fn moved(source: &str) -> String {
    // The line of the mark, too, is one.
    source.replace("LINES\n", &"\n".repeat(1 + MOVED as usize))
}

/// Lines between the kernel with the branch and its loop.
fn edited(source: &str) -> String {
    as_it_is(source).replace(
        "    while (value != 1) {\n        value = next",
        "\n\n\n    while (value != 1) {\n        value = next",
    )
}

const BUILDS: [Build; 10] = [
    ("base", as_it_is, &["-O2"]),
    ("again", as_it_is, &["-O2"]),
    ("o3", as_it_is, &["-O3"]),
    ("calls", as_it_is, &["-O2", "-DCALLS"]),
    ("moved", moved, &["-O2"]),
    ("edited", edited, &["-O2"]),
    ("renamed", as_it_is, &["-O2", "-DNAME=steps"]),
    ("other_kernels", as_it_is, &["-O2", "-DWITHOUT_GUARD", "-DWITH_TWICE"]),
    ("unrolled", as_it_is, &["-O2", "-DUNROLL=4"]),
    // The same in another folder, whose name the line table has.
    ("elsewhere", as_it_is, &["-O2"]),
];

/// The folder with a profile of each build, which is made once.
static PROFILES: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let library = folder.path().join("library");
    hip::device_libraries(&library).expect("device libraries");
    let source = fs::read_to_string(place::root().join("rewriter-tests/tests/diff_builds/app.hip")).expect("a source");
    for (name, of, flags) in BUILDS {
        let program = build(folder.path(), &library, name, &of(&source), flags);
        let profile = format!("{name}.profile");
        let arguments = ["profile", "--target", "gfx90a", "--probe", "branches,blocks", "-o", &profile, "--report"];
        let program = program.display().to_string();
        run(&[&arguments[..], &["/dev/null", "--", &program]].concat(), folder.path(), 0);
    }
    folder
});

fn build(folder: &Path, library: &Path, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let of_build = folder.join(name);
    fs::create_dir(&of_build).expect("a folder");
    fs::write(of_build.join("app.hip"), source).expect("a file");
    let headers = place::root().join("hip-samples/src");
    let mut clang = Command::new("clang++-19");
    clang.current_dir(&of_build).args(["-w", "-x", "hip", "-std=c++17", "-Xarch_device", "-gline-tables-only"]);
    clang.args(["--offload-arch=gfx90a", "-cuid=app", "app.hip", "-o", "app"]).args(flags);
    clang.arg(format!("--rocm-device-lib-path={}", library.display())).arg(format!("-I{}", headers.display()));
    if name != "elsewhere" {
        clang.arg("-fdebug-compilation-dir=.").arg(format!("-ffile-prefix-map={}=.", of_build.display()));
    }
    let compiled = clang.arg("-lamdhip64").output().expect("clang++-19 starts");
    assert!(compiled.status.success(), "{name}: {}", String::from_utf8_lossy(&compiled.stderr));
    of_build.join("app")
}

/// What the command prints, which has to end with this code.
fn run(arguments: &[&str], folder: &Path, code: i32) -> String {
    let arguments = [&["--wide"], arguments].concat();
    let ended = command::run(&command::wavetap().expect("the command is built"), &arguments, &[], folder);
    let ended = ended.and_then(|ended| ended.exited(code)).unwrap_or_else(|failure| panic!("{failure}"));
    ended.out() + &ended.err()
}

/// The difference of two builds as JSON.
fn diff(old: &str, new: &str) -> Value {
    let (old, new) = (format!("{old}.profile"), format!("{new}.profile"));
    let text = run(&["diff", &old, &new, "--format", "json"], PROFILES.path(), 0);
    serde_json::from_str(&text).expect("JSON")
}

/// With conditions, and the exit code that these lead to.
fn fails(old: &str, new: &str, conditions: &[&str], code: i32) -> String {
    let (old, new) = (format!("{old}.profile"), format!("{new}.profile"));
    let conditions = conditions.iter().flat_map(|condition| ["--fail-if", condition]);
    let arguments: Vec<&str> = ["diff", &old, &new].into_iter().chain(conditions).collect();
    run(&arguments, PROFILES.path(), code)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).expect("a list")
}

fn kernel<'d>(diff: &'d Value, name: &str) -> &'d Value {
    let is_it = |kernel: &&Value| kernel["demangled"].as_str().is_some_and(|demangled| demangled.starts_with(name));
    list(&diff["kernels"]).iter().find(is_it).unwrap_or_else(|| panic!("no {name} in {diff}"))
}

fn change(kernel: &Value, number: &str) -> i64 {
    let of = |side: &str| kernel[side][number].as_i64().unwrap_or_else(|| panic!("{side} has no {number}: {kernel}"));
    of("new") - of("old")
}

/// All sites have partners, and no count differs.
fn is_same(kernel: &Value) -> bool {
    kernel["old"] == kernel["new"]
        && ["changed", "only_old", "only_new"].iter().all(|sites| list(&kernel[sites]).is_empty())
}

/// Nothing is worse, by any metric.
const NOTHING_WORSE: [&str; 9] = [
    "divergence>+0%",
    "divergences>+0",
    "branches>+0",
    "blocks>+0",
    "lanes<-0",
    "instructions>+0",
    "waves>+0",
    "dispatches>+0",
    "global_bytes>+0",
];

#[test]
fn the_same_build_is_the_same() {
    assert_eq!(diff("base", "again")["same"], true);
    let said = fails("base", "again", &NOTHING_WORSE, 0);
    assert!(said.contains("no difference: 3 kernels"), "{said}");
}

/// Lines that moved, and folders that changed, change no count; where a site went to is said.
#[test]
fn lines_that_moved_are_the_same() {
    for name in ["moved", "edited", "elsewhere"] {
        let diff = diff("base", name);
        let kernels = list(&diff["kernels"]);
        assert_eq!(kernels.len(), 3, "{name}");
        for kernel in kernels {
            assert!(is_same(kernel), "{name}: {kernel}");
        }
        assert_eq!(diff["same"], true, "{name}");
        fails("base", name, &NOTHING_WORSE, 0);
    }
    let moved = diff("base", "moved");
    assert!(kernel(&moved, "guard")["moved"].as_u64() > Some(0), "{moved}");
    assert_eq!(kernel(&diff("base", "again"), "guard")["moved"], 0);
    // The kernel's own lines after the edit moved, and those of the function before it did not.
    let edited = diff("base", "edited");
    assert!(kernel(&edited, "steps_to_one")["moved"].as_u64() > Some(0), "{edited}");
    let said = fails("base", "moved", &[], 0);
    assert!(said.contains("on other lines"), "{said}");
}

/// What waves do at branches follows from the data: the level of optimisation changes neither launches nor how often
/// lanes leave the loop.
#[test]
fn levels_of_optimisation_have_the_same_kernels() {
    let diff = diff("base", "o3");
    assert_eq!((list(&diff["only_old"]).len(), list(&diff["only_new"]).len()), (0, 0), "{diff}");
    for kernel in list(&diff["kernels"]) {
        assert_eq!((change(kernel, "waves"), change(kernel, "dispatches")), (0, 0), "{kernel}");
    }
    let guard = kernel(&diff, "guard");
    assert_eq!((change(guard, "branches"), change(guard, "divergences")), (0, 0), "{guard}");
    fails("base", "o3", &["waves>+0", "dispatches>+0"], 0);
}

/// A call costs instructions, and changes nothing about which lanes take which side.
#[test]
fn calls_cost_instructions_and_no_divergence() {
    let diff = diff("base", "calls");
    let steps = kernel(&diff, "steps_to_one");
    assert!(change(steps, "instructions") > 0, "{steps}");
    assert_eq!((change(steps, "waves"), change(steps, "dispatches")), (0, 0), "{steps}");
    for name in ["sums", "guard"] {
        assert!(is_same(kernel(&diff, name)), "{diff}");
    }
    let said = fails("base", "calls", &["instructions>+0"], 1);
    assert!(said.contains("condition holds: instructions>+0: steps_to_one"), "{said}");
    fails("calls", "base", &["instructions>+0"], 0);
}

#[test]
fn kernels_that_were_renamed_added_and_removed_are_named() {
    let renamed = diff("base", "renamed");
    let names = |side: &str, of: &Value| -> Vec<String> {
        list(&of[side]).iter().map(|name| name.as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names("only_old", &renamed), ["steps_to_one(unsigned int*, unsigned int*)"]);
    assert_eq!(names("only_new", &renamed), ["steps(unsigned int*, unsigned int*)"]);
    let kernels = diff("base", "other_kernels");
    assert_eq!(names("only_old", &kernels), ["guard(unsigned int*, unsigned int)"]);
    assert_eq!(names("only_new", &kernels), ["twice(unsigned int*)"]);
    for diff in [&renamed, &kernels] {
        assert_eq!(diff["same"], false);
        assert_eq!(list(&diff["kernels"]).len(), 2);
        assert!(list(&diff["kernels"]).iter().all(is_same), "{diff}");
    }
    let said = fails("base", "renamed", &NOTHING_WORSE, 0);
    assert!(said.contains("only in the old profile") && said.contains("only in the new profile"), "{said}");
}

/// A loop of 16 rounds has 4 where it is unrolled by 4: a block is executed 12 times less by each wave.
#[test]
fn an_unrolled_loop_has_fewer_blocks() {
    let diff = diff("base", "unrolled");
    let sums = kernel(&diff, "sums");
    assert_eq!(change(sums, "blocks"), -12 * WAVES, "{sums}");
    assert!(change(sums, "instructions") < 0, "{sums}");
    for name in ["steps_to_one", "guard"] {
        assert!(is_same(kernel(&diff, name)), "{diff}");
    }
    fails("base", "unrolled", &["blocks>+0", "instructions>+0%"], 0);
    let said = fails("base", "unrolled", &["blocks<-47", "blocks<-48"], 1);
    assert!(said.contains("condition holds: blocks<-47: sums") && !said.contains("holds: blocks<-48"), "{said}");
    // 16 rounds and 4: what is said are numbers of the profiles.
    let said = fails("unrolled", "base", &["blocks>+50%"], 1);
    let blocks = |side: &str| sums[side]["blocks"].as_i64().expect("blocks");
    let (base, unrolled) = (blocks("old"), blocks("new"));
    assert!(said.contains(&format!("{unrolled} → {base}")), "{said}, {sums}");
}

#[test]
fn conditions_and_files_that_cannot_be_read_end_with_2() {
    let said = fails("base", "unrolled", &["blocks>+0", "blocks=3"], 2);
    assert!(said.contains("blocks=3"), "{said}");
    let said = fails("base", "none", &[], 2);
    assert!(said.contains("none.profile"), "{said}");
}

#[test]
fn counts_of_another_build_are_left_out_and_named() {
    let merge = ["merge", "base.profile", "unrolled.profile", "--different-builds", "-o", "two.profile"];
    run(&merge, PROFILES.path(), 0);
    for (form, counters, code) in
        [("csv", "two.profile", 1), ("lcov", "two.profile", 1), ("csv", "base.profile", 0), ("lcov", "base.profile", 0)]
    {
        let said = run(&["export", form, "base/app", "--counters", counters], PROFILES.path(), code);
        let other = said.lines().any(|line| {
            line.starts_with("wavetap: not known: sums(") && line.contains(": 1 dispatch is of another build")
        });
        assert_eq!(other, code == 1, "{form} of {counters}: {said}");
    }
}
