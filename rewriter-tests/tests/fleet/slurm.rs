//! The batch script of the guide as a user submits it, on a cluster of two nodes on this machine: `slurmctld` and two
//! `slurmd`. Needs root and Debian's `slurm-wlm`, a package of `./test.sh --full`; elsewhere the test says what is
//! missing.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rewriter_tests::{command, place};
use wavetap::profile::file::{Dimension, Profile};

use super::{has_program, read};

const NODES: usize = 2;
/// Until the nodes are up, on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);
/// What is between the head of the recipe and its end.
const SCRIPT: (&str, &str) = ("## Slurm", "```text\n");

/// A cluster of this machine alone, which ends when it is dropped.
struct Cluster {
    folder: tempfile::TempDir,
    daemons: Vec<Child>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The nodes first: they end what runs on them.
        for mut daemon in self.daemons.drain(..).rev() {
            let _ = Command::new("kill").arg(daemon.id().to_string()).status();
            let _ = daemon.wait();
        }
    }
}

impl Cluster {
    fn start() -> Cluster {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path();
        // What accepts only folders that others cannot change.
        fs::set_permissions(place, fs::Permissions::from_mode(0o755)).expect("its owner");
        for name in ["state", "munge"] {
            fs::create_dir(place.join(name)).expect("a folder");
        }
        let key = place.join("munge/key");
        fs::write(&key, [0x5a; 1024]).expect("a key");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o400)).expect("its owner");
        fs::write(place.join("slurm.conf"), configuration(place)).expect("a configuration");
        let mut cluster = Cluster { folder, daemons: Vec::new() };
        let munge = |option: &str, name: &str| format!("--{option}={}", cluster.path("munge").join(name).display());
        let options = [("key-file", "key"), ("socket", "socket"), ("pid-file", "pid"), ("log-file", "log")];
        let mut options: Vec<String> = options.iter().map(|(option, name)| munge(option, name)).collect();
        options.extend([munge("seed-file", "seed"), "--foreground".to_owned(), "--force".to_owned()]);
        cluster.daemon("munged", &options);
        cluster.wait("munged", || cluster.path("munge/socket").exists());
        cluster.daemon("slurmctld", &["-D".to_owned()]);
        for node in 0..NODES {
            cluster.daemon("slurmd", &["-D".to_owned(), "-N".to_owned(), format!("n{node}")]);
        }
        cluster.wait("nodes", || {
            let idle = cluster.client("sinfo").args(["-h", "-N", "-t", "idle", "-o", "%N"]).output();
            idle.is_ok_and(|idle| String::from_utf8_lossy(&idle.stdout).lines().count() == NODES)
        });
        cluster
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn daemon(&mut self, name: &str, options: &[String]) {
        let log = fs::File::create(self.path(&format!("{name}-{}.log", self.daemons.len()))).expect("a log");
        let mut command = self.client(name);
        command.args(options).stdout(log.try_clone().expect("a log")).stderr(log).stdin(Stdio::null());
        self.daemons.push(command.spawn().unwrap_or_else(|error| panic!("{name}: {error}")));
    }

    /// A command of this cluster.
    fn client(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command.env("SLURM_CONF", self.path("slurm.conf")).env("PATH", paths());
        command
    }

    fn wait(&self, what: &str, is_there: impl Fn() -> bool) {
        let begin = Instant::now();
        while !is_there() {
            assert!(begin.elapsed() < PATIENCE, "no {what} after {PATIENCE:?}:\n{}", self.logs());
            sleep(Duration::from_millis(100));
        }
    }

    fn logs(&self) -> String {
        let files = fs::read_dir(self.folder.path()).expect("a folder").map(|entry| entry.expect("a file").path());
        let logs = files.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
        logs.map(|path| format!("{}:\n{}", path.display(), fs::read_to_string(&path).unwrap_or_default())).collect()
    }
}

/// Where programs are, the daemons and the command among them.
fn paths() -> OsString {
    let wavetap = command::wavetap().expect("the command is built");
    let known = std::env::var_os("PATH").expect("where programs are");
    let folders = std::env::split_paths(&known).chain(["/usr/sbin".into()]);
    let folders = [wavetap.parent().expect("its folder").to_owned()].into_iter().chain(folders);
    std::env::join_paths(folders).expect("paths")
}

fn configuration(place: &Path) -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name of this machine");
    let host = host.trim().split('.').next().expect("a name");
    // Kept until all are known, so that no two are the same.
    let free: Vec<TcpListener> = (0..=NODES).map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port")).collect();
    let port = |at: usize| free[at].local_addr().expect("an address").port();
    let place = place.display();
    let mut text = format!(
        "ClusterName=test\nSlurmctldHost={host}(localhost)\nSlurmctldPort={}\nSlurmUser=root\nSlurmdUser=root\n\
            AuthType=auth/munge\nAuthInfo=socket={place}/munge/socket\nCredType=cred/munge\n\
            StateSaveLocation={place}/state\nSlurmdSpoolDir={place}/spool-%n\nSlurmctldPidFile={place}/slurmctld.pid\n\
            SlurmdPidFile={place}/slurmd-%n.pid\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
            SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nMpiDefault=none\nReturnToService=2\n",
        port(NODES)
    );
    for node in 0..NODES {
        text += &format!("NodeName=n{node} NodeHostname={host} NodeAddr=localhost Port={} CPUs=1\n", port(node));
    }
    text + "PartitionName=all Nodes=ALL Default=YES State=UP\n"
}

/// The batch script of the page.
fn recipe() -> String {
    let page = fs::read_to_string(place::root().join("docs/guide/fleet.md")).expect("the page");
    let (head, fence) = SCRIPT;
    let section = page.split_once(head).expect("the section").1;
    let script = section.split_once(fence).expect("a script").1;
    script.split_once("```").expect("its end").0.to_owned()
}

#[test]
fn the_batch_script_of_the_guide_runs() {
    let missing = ["slurmctld", "slurmd", "munged", "sbatch", "srun"].into_iter().find(|name| !has_program(name));
    if let Some(missing) = missing {
        assert!(!rewriter_tests::full(), "{missing} is missing (Debian: slurm-wlm, munge)");
        eprintln!("skipped: {missing} is missing (Debian: slurm-wlm, munge)");
        return;
    }
    if fs::metadata("/proc/self").expect("this process").uid() != 0 {
        eprintln!("skipped: slurmd needs root");
        return;
    }
    let cluster = Cluster::start();
    let folder = cluster.path("job");
    fs::create_dir(&folder).expect("a folder");
    fs::copy(place::samples().join("divergence"), folder.join("app")).expect("the program");
    fs::write(folder.join("job.sh"), recipe()).expect("a script");
    let run = |mut command: Command| {
        let ended = command.current_dir(&folder).output().expect("it starts");
        let said = || String::from_utf8_lossy(&[&ended.stdout[..], &ended.stderr].concat()).into_owned();
        assert!(ended.status.success(), "{command:?}: {}\n{}", said(), cluster.logs());
        said()
    };
    let mut one = cluster.client("wavetap");
    one.args(["profile", "-o", "one.profile", "--report", "/dev/null", "--", "./app", "input"]);
    run(one);
    let nodes = NODES.to_string();
    let mut batch = cluster.client("sbatch");
    batch.args(["--wait", "--parsable", "--ntasks", &nodes, "--nodes", &nodes, "--output", "said", "job.sh"]);
    let job = run(batch).trim().to_owned();

    let said = fs::read_to_string(folder.join("said")).expect("what the job wrote");
    assert_eq!(said.matches("PASS").count(), NODES, "the program keeps its output: {said}");
    let one = read(&folder.join("one.profile"));
    let of_job = folder.join(format!("profiles-{job}"));
    let mut names: Vec<String> = fs::read_dir(&of_job)
        .expect("a folder of profiles")
        .map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let profiles: Vec<Profile> = names.iter().map(|name| read(&of_job.join(name))).collect();
    for (rank, (name, profile)) in (0..).zip(names.iter().zip(&profiles)) {
        let host = profile.hostname.as_deref().expect("a host");
        assert_eq!(*name, format!("{host}-{rank}.profile"), "{names:?}");
        assert_eq!((profile.rank, &profile.kernels), (Some(rank), &one.kernels), "{name}: {said}");
    }
    assert_eq!(profiles.len(), NODES, "{names:?}");
    let sum = read(&folder.join(format!("{job}.profile")));
    assert_eq!(sum.by, [Dimension::Rank, Dimension::Host]);
    let ranks: Vec<Option<u32>> = sum.groups.iter().map(|group| group.rank).collect();
    assert_eq!(ranks, [Some(0), Some(1)]);
    let waves = |profile: &Profile, times: u64| -> BTreeMap<String, u64> {
        profile.kernels.iter().map(|kernel| (kernel.name.clone(), times * kernel.waves)).collect()
    };
    assert_eq!(waves(&sum, 1), waves(&one, NODES as u64));
}
