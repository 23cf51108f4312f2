//! What the library exports, against what AMD's libraries do.
//!
//! `tests/exports` has the names that the `libamdhip64` and `libhiprtc` of Debian's releases export. They are made from
//! the packages: `nm -D --defined-only`, without absolute symbols, of each version's library.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use crate::stand_in::{StandIn, root};

/// The library that Debian 12 has, whose names must be those of the list.
const INSTALLED: &str = "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5";
const INSTALLED_VERSION: &str = "5.2.3";

/// Names that a library defines, each with its version node if it has one.
fn exports(library: &Path) -> BTreeMap<String, String> {
    let output = Command::new("llvm-nm-19").args(["-D", "--defined-only"]).arg(library).output();
    let output = output.expect("llvm-nm-19 starts");
    assert!(output.status.success(), "{}: {}", library.display(), String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("symbols are ASCII");
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let symbols = lines.filter(|words| words.len() == 3 && words[1] != "A");
    let split = |symbol: &str| {
        let (name, node) = symbol.split_once('@').unwrap_or((symbol, "-"));
        (name.to_owned(), node.trim_start_matches('@').to_owned())
    };
    symbols.map(|words| split(words[2])).collect()
}

/// Lines of a list: name, version node, versions of the library.
fn list(name: &str) -> Vec<[String; 3]> {
    let file = root().join("hip-emulator/tests/exports").join(name);
    let text = std::fs::read_to_string(&file).expect("a list");
    let line = |line: &str| {
        let mut words = line.splitn(3, ' ').map(str::to_owned);
        std::array::from_fn(|_| words.next().unwrap_or_else(|| panic!("{name}: {line}")))
    };
    text.lines().filter(|line| !line.starts_with('#')).map(line).collect()
}

#[test]
fn all_names_of_amds_libraries_are_exported() {
    let own = exports(&StandIn::new().file("libamdhip64.so.5"));
    for library in ["libamdhip64.txt", "libhiprtc.txt"] {
        let wanted = list(library);
        assert!(wanted.len() > 15, "{library}: {}", wanted.len());
        let missing: Vec<_> = wanted.iter().map(|[name, ..]| name).filter(|name| !own.contains_key(*name)).collect();
        assert!(missing.is_empty(), "{library}: {missing:?}");
    }
    // Declared in headers of HIP, and exported by none of these libraries.
    for name in ["hipExtHostAlloc", "hipExternalMemoryGetMappedMipmappedArray", "hip_init"] {
        assert!(own.contains_key(name), "{name}");
    }
}

/// An executable names the nodes of what it imports, and the loader wants them all.
#[test]
fn all_version_nodes_of_amds_libraries_are_known() {
    let build = std::fs::read_to_string(root().join("hip-emulator/build.rs")).expect("the build script");
    let nodes: BTreeSet<_> = list("libamdhip64.txt").into_iter().map(|[_, node, _]| node).collect();
    assert!(nodes.len() > 15, "{nodes:?}");
    for node in nodes {
        assert!(build.contains(&format!("\"{node}\"")), "{node}");
    }
}

#[test]
fn the_list_is_that_of_the_installed_library() {
    let installed = exports(Path::new(INSTALLED));
    let listed = list("libamdhip64.txt").into_iter();
    let listed = listed.filter(|[_, _, versions]| versions.split(' ').any(|version| version == INSTALLED_VERSION));
    assert_eq!(listed.map(|[name, node, _]| (name, node)).collect::<BTreeMap<_, _>>(), installed);
}
