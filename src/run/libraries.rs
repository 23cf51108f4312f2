//! The libraries that applications are run with: the stand-in `libamdhip64`, which is put before a real one, and the
//! one that stands in for the kernel driver; and the tool that counts under the real ROCm libraries.

use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use wavetap_base::error::{Error, Kind, Result};

use crate::files;

/// Names under which executables of HIP 4 to 7 ask for the runtime, and for hipRTC where it is a library of its own. A
/// loader loads one file once, whatever its names.
const NAMES: [&str; 9] = [
    "libamdhip64.so",
    "libamdhip64.so.4",
    "libamdhip64.so.5",
    "libamdhip64.so.6",
    "libamdhip64.so.7",
    "libhiprtc.so",
    "libhiprtc.so.5",
    "libhiprtc.so.6",
    "libhiprtc.so.7",
];

/// Names under which programs ask for what they mark ranges with.
const RANGE_NAMES: [&str; 6] = [
    "libroctx64.so",
    "libroctx64.so.1",
    "libroctx64.so.4",
    "librocprofiler-sdk-roctx.so",
    "librocprofiler-sdk-roctx.so.0",
    "librocprofiler-sdk-roctx.so.1",
];

/// A library that cargo builds.
pub(super) struct Library {
    what: &'static str,
    /// File name as built.
    file: &'static str,
    /// Names it when it is not where it is looked for.
    variable: &'static str,
    /// Builds it.
    build: &'static str,
    /// Where the caller says that it is.
    given: fn(&Libraries) -> Option<&Path>,
}

/// The emulator's HIP runtime.
pub(super) const HIP_RUNTIME: Library = Library {
    what: "the emulator's HIP runtime",
    file: "libamdhip64.so",
    variable: "WAVETAP_HIP_RUNTIME",
    build: "cargo build --release",
    given: |libraries| libraries.hip_runtime.as_deref(),
};

/// What stands in for the kernel driver.
pub(super) const KERNEL_DRIVER: Library = Library {
    what: "the emulated kernel driver",
    file: "libwavetap_kfd.so",
    variable: "WAVETAP_KFD",
    build: "cargo build --release -p wavetap-kfd-emulator",
    given: |libraries| libraries.kernel_driver.as_deref(),
};

/// What counts under the real ROCm libraries.
pub(super) const HSA_TOOL: Library = Library {
    what: "the HSA tool",
    file: "libwavetap_hsa.so",
    variable: "WAVETAP_HSA_TOOL",
    build: "cargo build --release -p wavetap-hsa-tool",
    given: |libraries| libraries.hsa_tool.as_deref(),
};

/// What programs mark ranges with, under the real ROCm libraries.
pub(super) const RANGES: Library = Library {
    what: "the library of ranges",
    file: "libwavetap_ranges.so",
    variable: "WAVETAP_RANGES",
    build: "cargo build --release -p wavetap-ranges",
    given: |libraries| libraries.ranges.as_deref(),
};

/// Where the shared libraries are that applications are run with.
///
/// A library that is not named here is the one that its environment variable names, else the first that is found beside
/// the running executable, in `deps/` or `../deps/` beside it (where cargo builds it), or in `../lib/wavetap/` (where
/// an installation has it). A path may be that of the library or of the folder that it is in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Libraries {
    /// The emulator's HIP runtime, `libamdhip64.so`; variable `WAVETAP_HIP_RUNTIME`.
    pub hip_runtime: Option<PathBuf>,
    /// The emulated kernel driver, `libwavetap_kfd.so`; variable `WAVETAP_KFD`.
    pub kernel_driver: Option<PathBuf>,
    /// The HSA tool, `libwavetap_hsa.so`; variable `WAVETAP_HSA_TOOL`.
    pub hsa_tool: Option<PathBuf>,
    /// What programs mark ranges with, `libwavetap_ranges.so`; variable `WAVETAP_RANGES`.
    pub ranges: Option<PathBuf>,
}

impl Libraries {
    /// All of them in one folder.
    #[must_use]
    pub fn in_folder(folder: impl Into<PathBuf>) -> Libraries {
        let folder = Some(folder.into());
        Libraries {
            hip_runtime: folder.clone(),
            kernel_driver: folder.clone(),
            hsa_tool: folder.clone(),
            ranges: folder,
        }
    }

    /// Where each of them is: the name of its field, and the path, or why it was not found.
    #[must_use]
    pub fn find_each(&self) -> Vec<(&'static str, Result<PathBuf>)> {
        let all = [
            ("hip_runtime", HIP_RUNTIME),
            ("hsa_tool", HSA_TOOL),
            ("kernel_driver", KERNEL_DRIVER),
            ("ranges", RANGES),
        ];
        all.into_iter().map(|(name, library)| (name, library.find(self))).collect()
    }
}

/// Where libraries are that are found nowhere else.
static LAST: OnceLock<fn() -> Result<PathBuf>> = OnceLock::new();

/// Has `folder` asked for the folder of libraries that are found nowhere else: that of a program which has them in
/// itself. The first one stays.
pub fn find_libraries_with(folder: fn() -> Result<PathBuf>) {
    let _ = LAST.set(folder);
}

impl Library {
    /// Finds it: where the caller or the environment says, or beside this executable.
    pub(super) fn find(&self, libraries: &Libraries) -> Result<PathBuf> {
        let Library { what, file, variable, build, given } = self;
        let named = |path: PathBuf, by: &str| {
            let place = if path.is_dir() { path.join(file) } else { path };
            place
                .canonicalize()
                .map_err(|error| files::io(&place, &format!("{by} names it, but it cannot be opened"), &error))
        };
        if let Some(path) = given(libraries) {
            return named(path.to_owned(), "the caller");
        }
        if let Some(path) = std::env::var_os(variable) {
            return named(path.into(), variable);
        }
        let executable = std::env::current_exe()
            .map_err(|error| Error::new(Kind::Io, format!("cannot find this executable: {error}")))?;
        let beside = executable.parent().unwrap_or(Path::new("."));
        let folders = ["deps", "", "../deps", "../lib/wavetap"];
        let places = folders.map(|folder| beside.join(folder).join(file));
        if let Some(place) = places.iter().find_map(|place| place.canonicalize().ok()) {
            return Ok(place);
        }
        if let Some(folder) = LAST.get() {
            return named(folder()?, "this program");
        }
        let tried: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
        let message = format!(
            "{what} {file} is not at {}; build it with `{build}`, or name it in {variable}",
            tried.join(" or ")
        );
        Err(Error::new(Kind::Io, message))
    }
}

/// Makes `folder` a library folder in which every name of the HIP runtime is the stand-in.
pub(super) fn make_folder(folder: &Path, stand_in: &Path) -> Result<()> {
    // It has what programs mark ranges with, too.
    make_links(folder, stand_in, NAMES.into_iter().chain(RANGE_NAMES))
}

/// Makes `folder` a library folder in which what programs mark ranges with is this library.
pub(super) fn make_folder_of_ranges(folder: &Path, ranges: &Path) -> Result<()> {
    make_links(folder, ranges, RANGE_NAMES.into_iter())
}

fn make_links(folder: &Path, to: &Path, names: impl Iterator<Item = &'static str>) -> Result<()> {
    for name in names {
        let link = folder.join(name);
        symlink(to, &link).map_err(|error| files::io(&link, "cannot make a link", &error))?;
    }
    Ok(())
}

/// A search path: `first`, then `present`, what the variable `name` holds, then `last`.
pub(super) fn search_path(name: &str, present: Option<OsString>, first: &Path, last: &[PathBuf]) -> Result<OsString> {
    let present = present.unwrap_or_default();
    let present: Vec<PathBuf> = std::env::split_paths(&present).filter(|path| !path.as_os_str().is_empty()).collect();
    std::env::join_paths(
        std::iter::once(first).chain(present.iter().map(PathBuf::as_path)).chain(last.iter().map(PathBuf::as_path)),
    )
    .map_err(|error| Error::new(Kind::Io, format!("{name}: {error}")))
}
