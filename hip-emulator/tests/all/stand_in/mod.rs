//! Starts HIP programs with the built library in place of `libamdhip64`.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The folder of the project.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is inside the workspace")
}

/// Clang with the device libraries that it needs.
pub struct Compiler {
    bitcode: tempfile::TempDir,
}

impl Compiler {
    /// Puts the device libraries together.
    pub fn new() -> Self {
        let bitcode = tempfile::tempdir().expect("a temporary folder");
        let script = root().join("hip-samples/bitcode.sh");
        assert!(Command::new(script).arg(bitcode.path()).status().expect("the script starts").success());
        Compiler { bitcode }
    }

    /// Compiles a HIP source for a target.
    pub fn compile(&self, target: &str, arguments: &[&str], source: &Path, out: &Path) {
        let output = Command::new("clang++-19")
            .args(["-w", "-x", "hip", "-std=c++17", "-O2"])
            .arg(format!("--offload-arch={target}"))
            .arg(format!("--rocm-device-lib-path={}", self.bitcode.path().display()))
            .arg(source)
            .arg("-o")
            .arg(out)
            .args(arguments)
            .output()
            .expect("clang++-19 starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// A folder that has the library under the name that executables ask for.
pub struct StandIn {
    folder: tempfile::TempDir,
}

impl StandIn {
    /// Finds the library beside this test, where cargo builds it.
    pub fn new() -> Self {
        let test = std::env::current_exe().expect("the test's own path");
        let library = test.parent().expect("a folder").join("libamdhip64.so");
        assert!(library.is_file(), "{} is not built", library.display());
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in ["libamdhip64.so.5", "libamdhip64.so.6", "libamdhip64.so.7"] {
            symlink(&library, folder.path().join(name)).expect("a link");
        }
        StandIn { folder }
    }

    /// The folder, for `LD_LIBRARY_PATH`.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A file in the folder, which goes when the value does.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a program with these variables set.
    pub fn run(&self, program: &Path, variables: &[(&str, &str)]) -> Output {
        self.run_with(program, &[], variables)
    }

    /// Runs a program with these arguments and variables.
    pub fn run_with(&self, program: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = Command::new(program);
        command.args(arguments);
        command.env("LD_LIBRARY_PATH", self.folder.path());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("WAVETAP_")) {
            command.env_remove(name);
        }
        command.envs(variables.iter().copied());
        // Another test's thread that is starting a program holds what this one has just written open for a moment.
        loop {
            match command.output() {
                Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
                output => return output.unwrap_or_else(|error| panic!("{}: {error}", program.display())),
            }
        }
    }

    /// Runs a program that must end with `PASS`, say nothing on standard error and exit with 0; gives its output.
    pub fn passes(&self, program: &Path, variables: &[(&str, &str)]) -> String {
        let output = self.run(program, variables);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && text.ends_with("PASS\n") && errors.is_empty(),
            "{} with {variables:?}: {}\n{text}{errors}",
            program.display(),
            output.status
        );
        text
    }
}
