//! Instruction words. The first byte chooses the target, and with its wave size; the others are code.

use std::sync::OnceLock;

use wavetap::isa::{self, Inst, Target};

/// Longest text of an instruction, in bytes.
const TEXT_BYTES: usize = 400;

/// Every target that has instructions, in each of its wave sizes.
fn targets() -> &'static [Target] {
    static TARGETS: OnceLock<Vec<Target>> = OnceLock::new();
    TARGETS.get_or_init(|| {
        let known = Target::all().filter(|target| target.has_instructions());
        known.flat_map(|target| [32, 64].into_iter().filter_map(move |lanes| target.with_wave_size(lanes))).collect()
    })
}

/// Decodes, prints and encodes one instruction after the other.
///
/// # Panics
/// If an instruction does not encode to its own bytes, has no text, or decodes where it is cut short.
pub fn run(data: &[u8]) {
    let Some((&choice, mut code)) = data.split_first() else { return };
    let target = targets()[usize::from(choice) % targets().len()];
    while code.len() >= 4 {
        let size = match isa::decode(target, code) {
            Ok(inst) => check(target, code, &inst),
            Err(error) => {
                crate::check_error(&error);
                4
            }
        };
        code = &code[size..];
    }
}

/// Returns the size of the instruction.
fn check(target: Target, code: &[u8], inst: &Inst) -> usize {
    let size = usize::from(inst.size);
    let name = inst.variant.mnemonic;
    assert!(size.is_multiple_of(4) && (4..=code.len()).contains(&size), "{name} has {size} bytes");
    let encoded =
        isa::encode(target, inst).unwrap_or_else(|error| panic!("{}: {name} does not encode: {error}", target.name()));
    assert_eq!(encoded, code[..size], "{}: {name} encodes to other bytes", target.name());
    let text = isa::print(target, inst);
    assert!(!text.is_empty() && text.len() <= TEXT_BYTES, "{}: {name} is printed as {text:?}", target.name());
    assert!(
        inst.reads().chain(inst.writes()).all(|reg| reg.dwords > 0),
        "{}: {text} accesses no register",
        target.name()
    );
    let _ = (inst.branch_displacement(), isa::wait_count(target, inst));
    for cut in 0..size {
        assert!(isa::decode(target, &code[..cut]).is_err(), "{}: {cut} bytes of {text} decode", target.name());
    }
    size
}

/// Two rows' fixed bits for each target.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (choice, &target) in targets().iter().enumerate().filter(|(choice, _)| *choice <= usize::from(u8::MAX)) {
        let variants: Vec<_> = isa::variants(target).collect();
        // Every fifteenth row: the fuzzer finds what is near.
        for rows in variants.iter().step_by(15).collect::<Vec<_>>().chunks(8) {
            let code = rows.iter().flat_map(|variant| variant.matches.to_le_bytes().into_iter().take(12));
            seeds.push(std::iter::once(choice as u8).chain(code).collect());
        }
    }
    seeds
}
