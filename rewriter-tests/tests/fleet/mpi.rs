//! Ranks that a real `mpirun` starts: one profile each, which add up to what one process counts, as often as there are
//! ranks. Open MPI is a package of `./test.sh --full`; elsewhere the test says that it is missing.

use std::path::Path;

use rewriter_tests::command::{self, Finished};
use rewriter_tests::place::root;
use serde_json::Value;
use wavetap::profile::file::Dimension;

use super::{has_program, read};

const RANKS: u32 = 2;

fn run(program: &Path, arguments: &[&str], folder: &Path) -> Finished {
    let ended = command::run(program, arguments, &[], folder).and_then(|ended| ended.exited(0));
    ended.unwrap_or_else(|failure| panic!("{failure}"))
}

#[test]
fn ranks_have_a_profile_each_and_add_up() {
    if !has_program("mpirun") {
        assert!(!rewriter_tests::full(), "mpirun is missing (Debian: openmpi-bin)");
        eprintln!("skipped: mpirun is missing (Debian: openmpi-bin)");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let wavetap = command::wavetap().expect("the command is built");
    let [command, sample] =
        [&wavetap, &root().join("hip-samples/bin/divergence")].map(|path| path.display().to_string());
    let profile = ["profile", "--backend", "emulator", "--target", "gfx90a", "--report", "/dev/null", "-o"];
    run(&wavetap, &[&profile[..], &["one.profile", "--", &sample]].concat(), folder.path());
    let ranks = RANKS.to_string();
    let launcher = ["--allow-run-as-root", "--oversubscribe", "-n", &ranks, &command];
    let of_ranks = [&launcher[..], &profile, &["x.%r.profile", "--", &sample]].concat();
    run(Path::new("mpirun"), &of_ranks, folder.path());

    let one = read(&folder.path().join("one.profile"));
    assert_eq!((one.rank, &one.hostname), (None, &None));
    for rank in 0..RANKS {
        let profile = read(&folder.path().join(format!("x.{rank}.profile")));
        assert_eq!(profile.rank, Some(rank));
        assert!(profile.hostname.is_some_and(|name| !name.is_empty()));
        assert_eq!(profile.kernels, one.kernels, "each rank runs the whole program");
    }

    let merged = |arguments: &[&str]| {
        run(&wavetap, &[&["merge"], arguments, &["-o", "sum", "--force"]].concat(), folder.path());
        read(&folder.path().join("sum"))
    };
    let twice = merged(&["one.profile", "one.profile"]);
    let sum = merged(&["x.0.profile", "x.1.profile"]);
    assert_eq!((&sum.kernels, &sum.host, sum.processes), (&twice.kernels, &twice.host, RANKS));
    let by_rank = merged(&["x.1.profile", "x.0.profile", "--by", "rank,host"]);
    assert_eq!((&by_rank.kernels, &by_rank.by), (&sum.kernels, &vec![Dimension::Rank, Dimension::Host]));
    let of_groups: Vec<Option<u32>> = by_rank.groups.iter().map(|group| group.rank).collect();
    assert_eq!(of_groups, [Some(0), Some(1)]);

    let report = run(&wavetap, &["report", "sum", "--format", "json"], folder.path()).out();
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let of_rank = &report["imbalance"][0];
    assert_eq!((&of_rank["by"], &of_rank["count"]), (&"rank".into(), &RANKS.into()));
    let waves = &of_rank["kernels"][0]["totals"][1];
    assert_eq!(
        (&waves["what"], &waves["imbalance"], &waves["max"]),
        (&"waves".into(), &1.0.into(), &one.kernels[0].waves.into())
    );
    let text = run(&wavetap, &["report", "sum"], folder.path()).out();
    assert!(text.contains("imbalance of 2 ranks") && text.contains("imbalance of 1 host"), "{text}");
}
