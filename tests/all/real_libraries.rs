//! Libraries of third parties. `rewriter-tests/fetch-corpora.sh` fetches them for the long tests.

use std::path::PathBuf;

use wavetap::code_object::{CodeObject, initial_registers, metadata};
use wavetap::emit::code_object::{Changes, Plan};
use wavetap::emit::{Packing, Replacement, merge};
use wavetap::offload_bundle::Input;

/// Set by the long tests.
const FULL: &str = "WAVETAP_FULL_TESTS";

/// Every object parses, its metadata encodes to the same bytes, every kernel's registers are known; all are rewritten,
/// merged and read back.
#[test]
fn rocrand_is_taken_apart_and_put_together() {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target"), PathBuf::from);
    let path = target.join("corpora/librocrand.so");
    if std::env::var_os(FULL).is_none() && !path.exists() {
        eprintln!("SKIPPED: {} is not there; the long tests fetch it", path.display());
        return;
    }
    let data = std::fs::read(&path).expect("the long tests fetch it first");
    let input = Input::parse(&data).expect("parses");
    let mut replacements = Vec::new();
    for found in input.code_objects() {
        let object = CodeObject::parse(found.bytes).expect("parses");
        assert_eq!(Some(object.target_id()), found.target.map(ToString::to_string));
        assert_eq!(object.kernels().len(), 80);
        let note = object.metadata().expect("note");
        let encoded = metadata::encode(&note.value().expect("values")).expect("encodes");
        assert_eq!(encoded, found.bytes[note.file_offset as usize..][..note.size as usize]);
        let plan = Plan::new(&object, 64).expect("planned");
        let mut descriptors = Vec::new();
        for kernel in object.kernels() {
            assert!(kernel.metadata.is_some(), "{}", kernel.name);
            if let Some(target) = object.target() {
                let registers = initial_registers(&kernel.descriptor, target).expect("registers");
                assert!(registers.kernarg_ptr.is_some());
            }
            let mut descriptor = kernel.descriptor;
            descriptor.set_entry_byte_offset(plan.code_address().wrapping_sub(kernel.descriptor_address) as i64);
            descriptors.push((kernel.descriptor_address, descriptor));
        }
        let changes = Changes {
            code: &[0; 256],
            symbols: &[],
            descriptors: &descriptors,
            metadata: &encoded,
            control: &[0; 64],
            map: b"map",
        };
        replacements.push(Replacement { place: found.place, bytes: plan.finish(&changes).expect("written").into() });
    }
    assert_eq!(replacements.len(), 7);
    let merged = merge(&input, &replacements, Packing::AsFound).expect("merged");
    let again = Input::parse(&merged).expect("parses");
    let bytes: Vec<Vec<u8>> = again.code_objects().map(|found| found.bytes.to_vec()).collect();
    assert!(replacements.iter().map(|replacement| replacement.bytes.bytes().expect("kept").into_owned()).eq(bytes));
}
