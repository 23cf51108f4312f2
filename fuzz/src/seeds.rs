//! What the targets' first inputs are made of: the prebuilt samples, and small code objects that are kept in the tree.

use std::fs;

use rewriter_tests::place::{root, samples as folder};
use wavetap::offload_bundle::Input;

/// The samples of these names.
///
/// # Panics
/// If one cannot be read.
#[must_use]
pub fn samples(names: &[&str]) -> Vec<Vec<u8>> {
    names.iter().map(|name| fs::read(folder().join(name)).expect("a sample")).collect()
}

/// The small code objects of other targets than the samples are for, sorted by name.
///
/// # Panics
/// If they cannot be read.
#[must_use]
pub fn small_objects() -> Vec<Vec<u8>> {
    let folder = root().join("rewriter-tests/triton/objects");
    let mut paths: Vec<_> =
        fs::read_dir(folder).expect("the small objects").flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "co"));
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("a code object")).collect()
}

/// The code objects of a sample.
///
/// # Panics
/// If there are none.
#[must_use]
pub fn code_objects(sample: &str) -> Vec<Vec<u8>> {
    let file = fs::read(folder().join(sample)).expect("a sample");
    let objects: Vec<_> =
        Input::parse(&file).expect("a sample").code_objects().map(|found| found.bytes.to_vec()).collect();
    assert!(!objects.is_empty(), "{sample} has no code objects");
    objects
}
