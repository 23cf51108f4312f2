//! What Triton's cache says of the code objects of a profile: with which options each was compiled.
//!
//! The cache has a folder for each kernel that was compiled, with the code object in `NAME.hsaco` and what it was
//! compiled with in `NAME.json`. A code object of a profile is found by its bytes: both have the same MD5.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use wavetap::code_object::digest;
use wavetap::profile::file::Profile;
use wavetap::report::{Build, Compiler};
use wavetap::stderr_line;

/// Options that are shown, where the cache has them (Triton, `HIPOptions`).
const OPTIONS: [&str; 6] = ["num_warps", "num_stages", "num_ctas", "waves_per_eu", "matrix_instr_nonkdim", "kpack"];
/// Larger files are no kernels of Triton's.
const LARGEST: u64 = 64 << 20;

/// What the cache of this process's environment says, by MD5 of the code object. Nothing where there is no cache.
pub fn builds(profile: &Profile) -> BTreeMap<String, Build> {
    cache(|name| std::env::var_os(name)).map_or_else(BTreeMap::new, |folder| builds_in(&folder, profile))
}

/// The folder of the cache: as Triton's `knobs.cache` finds it.
fn cache(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let home = || Some(PathBuf::from(set("TRITON_HOME").or_else(|| set("HOME"))?).join(".triton").join("cache"));
    set("TRITON_CACHE_DIR").map(PathBuf::from).or_else(home)
}

/// What a cache says of the kernels of a profile.
fn builds_in(folder: &Path, profile: &Profile) -> BTreeMap<String, Build> {
    let names: BTreeSet<&str> =
        profile.kernels.iter().map(|kernel| kernel.name.as_str()).filter(is_file_name).collect();
    let objects: BTreeSet<&str> = profile.kernels.iter().map(|kernel| kernel.object.as_str()).collect();
    let Ok(entries) = fs::read_dir(folder) else { return BTreeMap::new() };
    let mut builds: BTreeMap<String, Build> = BTreeMap::new();
    for entry in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        for name in &names {
            let Some(object) = digest_of(&entry.join(format!("{name}.hsaco"))) else { continue };
            if !objects.contains(object.as_str()) {
                continue;
            }
            let path = entry.join(format!("{name}.json"));
            match build(&path) {
                Some(build) => add(&mut builds, object, build),
                None => stderr_line!("wavetap: {}: this is not what Triton writes there: not used", path.display()),
            }
        }
    }
    builds
}

/// A name that can be one of a file in a folder.
fn is_file_name(name: &&str) -> bool {
    !name.is_empty() && !name.contains(['/', '\0'])
}

/// The MD5 of a file, if there is one of a size that a kernel may have.
fn digest_of(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    let is_kernel = metadata.is_file() && metadata.len() <= LARGEST;
    is_kernel.then(|| fs::read(path).ok()).flatten().map(|bytes| digest(&bytes))
}

/// What a file of the cache says.
fn build(path: &Path) -> Option<Build> {
    let metadata: Value = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    let option = |name: &&str| Some(((*name).to_owned(), metadata.get(*name)?.as_u64()?));
    let options = OPTIONS.iter().filter_map(option).collect();
    Some(Build { compiler: Compiler::Triton, hash: metadata.get("hash")?.as_str()?.to_owned(), options })
}

/// The same code may have been compiled more than once: then what differs is not known.
fn add(builds: &mut BTreeMap<String, Build>, object: String, build: Build) {
    let Some(known) = builds.get_mut(&object) else {
        builds.insert(object, build);
        return;
    };
    known.options.retain(|name, value| build.options.get(name) == Some(value));
    known.hash = known.hash.as_str().min(&build.hash).to_owned();
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap::profile::file::{Backend, KernelTotals, Origin};

    /// A folder of the cache with a file in place of a code object, and metadata of the shape that Triton 3.9 writes.
    fn entry(cache: &Path, folder: &str, code: &str, metadata: &str) {
        let folder = cache.join(folder);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("matmul.hsaco"), code).expect("written");
        fs::write(folder.join("matmul.json"), metadata).expect("written");
        fs::write(folder.join("__grp__matmul.json"), r#"{"child_paths": {}}"#).expect("written");
    }

    fn metadata(hash: &str, warps: u64, stages: u64) -> String {
        format!(
            r#"{{"hash": "{hash}", "target": {{"backend": "hip", "arch": "gfx942", "warp_size": 64}},
                "num_warps": {warps}, "num_stages": {stages},
                "num_ctas": 1, "debug": false, "shared": 4096, "llvm_fn_attrs": [],
                "schedule_hint": "", "name": "matmul"}}"#
        )
    }

    fn profile(objects: &[&str]) -> Profile {
        let mut profile = Profile::new(Origin::Counters, Backend::Emulator);
        profile.kernels = objects
            .iter()
            .map(|object| KernelTotals {
                name: "matmul".to_owned(),
                object: digest(object.as_bytes()),
                ..KernelTotals::default()
            })
            .collect();
        profile
    }

    #[test]
    fn code_objects_are_found_by_their_bytes() {
        let cache = tempfile::tempdir().expect("a folder");
        entry(cache.path(), "AAAA", "code of one", &metadata("e99266f0", 4, 2));
        entry(cache.path(), "BBBB", "code of another", &metadata("a92ead28", 2, 3));
        entry(cache.path(), "CCCC", "of another process", &metadata("00000000", 8, 1));
        // The same code for two keys, of which one says something else.
        entry(cache.path(), "DDDD", "code of one", &metadata("a7e27d6a", 4, 3));
        // Not what it should be.
        entry(cache.path(), "EEEE", "damaged", "{\"hash\": 3");
        let found = builds_in(cache.path(), &profile(&["code of one", "code of another", "damaged", "not there"]));
        let options = |options: &[(&str, u64)]| {
            options.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect::<BTreeMap<String, u64>>()
        };
        let build = |hash: &str, options| Build { compiler: Compiler::Triton, hash: hash.to_owned(), options };
        let expected = BTreeMap::from([
            (digest(b"code of one"), build("a7e27d6a", options(&[("num_ctas", 1), ("num_warps", 4)]))),
            (
                digest(b"code of another"),
                build("a92ead28", options(&[("num_ctas", 1), ("num_stages", 3), ("num_warps", 2)])),
            ),
        ]);
        assert_eq!(found, expected);
        assert!(builds_in(&cache.path().join("none"), &profile(&["code of one"])).is_empty());
    }

    #[test]
    fn the_cache_is_where_triton_has_it() {
        let with = |set: &[(&str, &str)]| {
            let set: BTreeMap<String, String> = set.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            cache(move |name| set.get(name).map(OsString::from))
        };
        let home = ("HOME", "/users/u");
        assert_eq!(with(&[home]), Some("/users/u/.triton/cache".into()));
        assert_eq!(with(&[home, ("TRITON_HOME", "/t")]), Some("/t/.triton/cache".into()));
        assert_eq!(with(&[home, ("TRITON_HOME", "/t"), ("TRITON_CACHE_DIR", "/c")]), Some("/c".into()));
        assert_eq!(with(&[home, ("TRITON_CACHE_DIR", "")]), Some("/users/u/.triton/cache".into()));
        assert_eq!(with(&[]), None);
    }
}
