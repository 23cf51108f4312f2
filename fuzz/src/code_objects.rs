//! Code objects: ELF tables, symbols, metadata, descriptors, line table, listing.

use wavetap::code_object::{CodeObject, metadata};
use wavetap::elf::Elf;
use wavetap::pipeline::{Listed, disassemble};
use wavetap::report::disassembly::Disassembly;

use crate::read;
use crate::seeds::{code_objects, small_objects};

/// Addresses of a kernel that are looked up in the line table.
const LOOKED_UP: usize = 64;

/// Reads all that a code object has.
///
/// # Panics
/// If something does not fit together.
pub fn run(data: &[u8]) {
    let _ = read(Elf::parse(data));
    if let Some(code) = read(CodeObject::parse(data)) {
        let _ = read(code.check_tables());
        let _ = code.target_id();
        let lines = read(code.line_table()).flatten();
        for kernel in code.kernels() {
            assert!(kernel.code.start <= kernel.code.end, "a kernel that ends before it begins");
            let steps = (kernel.code.start..kernel.code.end).step_by(4).take(LOOKED_UP);
            for address in steps.filter(|_| lines.is_some()) {
                let _ = lines.as_ref().and_then(|lines| lines.location(address));
            }
        }
        if let Some(value) = code.metadata().and_then(|metadata| read(metadata.value())) {
            let encoded = metadata::encode(&value).expect("metadata that was read is written");
            let again =
                metadata::Metadata::decode(&encoded, 0).and_then(|metadata| metadata::encode(&metadata.value()?));
            // Bytes, since a number in it may be no number, which is unequal to itself.
            assert_eq!(again.ok(), Some(encoded), "metadata changes when it is written");
        }
    }
    let _ = read(disassemble(data, &Listed::default(), &mut Disassembly::default()));
}

/// The small objects and one of each target of a sample.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    small_objects().into_iter().chain(code_objects("vectoradd")).chain(code_objects("two_kernels")).collect()
}
