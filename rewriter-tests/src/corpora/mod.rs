//! Real libraries of third parties: what `fetch-corpora.sh` fetches, what is known to be in it, and where it
//! lies.
//!
//! - [`kernels`]: their kernels, in an order that depends on nothing but their names;
//! - [`arguments`]: arguments that are made up from what the metadata says of a kernel.

pub mod arguments;
pub mod kernels;
mod products;

use std::fs;
use std::path::PathBuf;

use crate::place;

/// A distribution of libraries with device code, at one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Corpus {
    /// Its name, and that of its folder or only file.
    pub name: &'static str,
    /// Libraries with device code.
    pub libraries: usize,
    /// Processors that they have code for.
    pub processors: usize,
    /// Code objects in them.
    pub objects: usize,
    /// Kernels in these.
    pub kernels: usize,
    /// Bytes of their kernels and functions: the sizes of their symbols.
    pub code_bytes: u64,
    /// Bytes of their executable sections, padding included.
    pub section_bytes: u64,
}

/// The real code of third parties. The counts are not our own: the bundles were unpacked with zstd, and
/// `llvm-readelf` of LLVM 22 listed the symbols and sections of each object.
pub const CORPORA: [Corpus; 4] = [
    Corpus {
        name: "bitsandbytes",
        libraries: 6,
        processors: 25,
        objects: 218,
        kernels: 19_075,
        code_bytes: 61_135_056,
        section_bytes: 63_599_436,
    },
    Corpus {
        name: "jax-rocm7-plugin",
        libraries: 3,
        processors: 27,
        objects: 108,
        kernels: 567,
        code_bytes: 1_487_852,
        section_bytes: 1_559_780,
    },
    Corpus {
        name: "jax-rocm60-plugin",
        libraries: 4,
        processors: 11,
        objects: 44,
        kernels: 66,
        code_bytes: 47_068,
        section_bytes: 73_204,
    },
    Corpus {
        name: "librocrand",
        libraries: 1,
        processors: 6,
        objects: 7,
        kernels: 560,
        code_bytes: 1_943_804,
        section_bytes: 2_013_192,
    },
];

impl Corpus {
    /// The corpus of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Corpus> {
        CORPORA.into_iter().find(|corpus| corpus.name == name)
    }

    /// Its libraries, sorted by name; none if it was not fetched.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        let place = place::corpora().join(self.name);
        let entries = fs::read_dir(&place).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut files: Vec<PathBuf> =
            entries.chain([place.with_extension("so")]).filter(|path| path.is_file()).collect();
        files.sort();
        files
    }
}

/// The libraries that are there; but where time is short those of bitsandbytes, which take long to be unpacked.
#[must_use]
pub fn libraries() -> Vec<PathBuf> {
    let corpora = CORPORA.into_iter().filter(|corpus| crate::full() || corpus.name != "bitsandbytes");
    corpora.flat_map(|corpus| corpus.files()).collect()
}
