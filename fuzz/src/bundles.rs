//! Host files and bundles. The first byte says what the others are: a file, or the contents of a bundle that is
//! compressed first, since no
//! mutation finds a checksum.

use wavetap::offload_bundle::{Input, Method, has_no_device_code, write_compressed};
use wavetap::pipeline::{Inspected, inspect};

use crate::{read, seeds::samples};

/// What the bytes after the first are.
const FILE: u8 = 0;
const COMPRESSIONS: [(u16, Method); 3] = [(2, Method::Zstd), (2, Method::Zlib), (3, Method::Zstd)];

/// Finds and inspects the code objects of a file.
///
/// # Panics
/// If something does not fit together.
pub fn run(data: &[u8]) {
    let Some((&form, content)) = data.split_first() else { return };
    let compressed = form.checked_sub(1).map(|index| COMPRESSIONS[usize::from(index) % COMPRESSIONS.len()]);
    let packed = compressed.and_then(|(version, method)| write_compressed(content, version, method).ok());
    let file = packed.as_deref().unwrap_or(content);
    let _ = has_no_device_code(file);
    if let Some(input) = read(Input::parse(file)) {
        for (number, bundle) in input.bundles.iter().enumerate() {
            assert!(bundle.offset <= file.len() as u64, "a bundle beyond the end of its file");
            let _ = input.is_live(number);
            for (index, entry) in bundle.entries.iter().enumerate().filter(|(_, entry)| entry.has_contents()) {
                assert_eq!(
                    bundle.entry_bytes(index).len() as u64,
                    entry.size,
                    "entry {index} has another size than its table says"
                );
            }
        }
        for found in input.code_objects() {
            assert!(!found.bytes.is_empty(), "an empty code object");
        }
    }
    let _ = read(inspect(file, &Inspected::default(), None));
}

/// Two samples, their bundles by themselves, and contents to be compressed.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for file in samples(&["vectoradd", "divergence"]) {
        let input = Input::parse(&file).expect("a sample");
        for bundle in &input.bundles {
            seeds.push([&[FILE], &*bundle.content].concat());
            for (index, (version, method)) in COMPRESSIONS.into_iter().enumerate() {
                seeds.push([&[index as u8 + 1], &*bundle.content].concat());
                seeds.push(
                    [&[FILE], &*write_compressed(&bundle.content, version, method).expect("it is compressed")].concat(),
                );
            }
        }
        seeds.push([&[FILE], &*file].concat());
    }
    seeds
}
