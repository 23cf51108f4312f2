//! Operations that instruction sets spell differently (`isa-tables/spellings.yaml`), and the forms of a mnemonic.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use super::load::tables;
use super::opcode::Opcode;
use super::table::Variant;
use super::target::Target;
use super::vocabulary::Modifier;

include!(concat!(env!("OUT_DIR"), "/spellings.rs"));

/// By mnemonic, the rows of all instruction sets.
static BY_MNEMONIC: LazyLock<FxHashMap<&'static str, Vec<&'static Variant>>> = LazyLock::new(|| {
    let mut by_mnemonic: FxHashMap<&str, Vec<&Variant>> = FxHashMap::default();
    for variant in &tables().variants {
        by_mnemonic.entry(variant.mnemonic).or_default().push(variant);
    }
    by_mnemonic
});

/// By mnemonic, all that it may be called.
static GROUP_OF: LazyLock<FxHashMap<&'static str, &'static [&'static str]>> =
    LazyLock::new(|| SPELLINGS.iter().flat_map(|group| group.iter().map(move |name| (*name, *group))).collect());

/// What the library calls the operation of a mnemonic: the same for all instruction sets that spell it differently.
///
/// ```
/// assert_eq!(wavetap_amdgpu::operation("s_and_not1_b32"), "s_andn2_b32");
/// assert_eq!(wavetap_amdgpu::operation("s_and_b32"), "s_and_b32");
/// ```
#[must_use]
pub fn operation(mnemonic: &str) -> &str {
    GROUP_OF.get(mnemonic).map_or(mnemonic, |group| group[0])
}

/// Whether the target has an instruction whose mnemonic is this operation's name, or another spelling of it.
#[must_use]
pub fn has_operation(target: Target, opcode: Opcode) -> bool {
    forms(target, opcode.name()).next().is_some()
}

/// The largest byte offset that the first form of a memory instruction takes; 0 if it has none.
#[must_use]
pub fn largest_offset(target: Target, mnemonic: &str) -> u32 {
    let layout = forms(target, mnemonic).next().map(|variant| variant.layout);
    let bits = layout.and_then(|layout| {
        layout.modifiers.iter().find(|(modifier, _)| *modifier == Modifier::Offset).map(|(_, bits)| bits)
    });
    let width: u32 = bits.map_or(0, |bits| bits.runs().iter().map(|run| u32::from(run.length)).sum());
    let signed = layout.is_some_and(|layout| layout.signed_offset);
    (1 << width.saturating_sub(signed.into())) - 1
}

/// The rows of `target` with this mnemonic or, if it has none, with another spelling of it.
pub(super) fn forms(target: Target, mnemonic: &str) -> impl Iterator<Item = &'static Variant> {
    let rows = move |name: &str| {
        let rows = BY_MNEMONIC.get(name).map_or(&[][..], Vec::as_slice);
        rows.iter().copied().filter(move |variant| variant.is_of(target))
    };
    let others = match rows(mnemonic).next() {
        Some(_) => &[][..],
        None => GROUP_OF.get(mnemonic).copied().unwrap_or_default(),
    };
    rows(mnemonic).chain(others.iter().flat_map(move |name| rows(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_an_instruction_and_no_target_has_two() {
        for group in SPELLINGS {
            for name in group {
                assert!(BY_MNEMONIC.contains_key(name), "{name}");
            }
            for target in Target::all() {
                let spellings =
                    group.iter().filter(|name| BY_MNEMONIC[**name].iter().any(|variant| variant.is_of(target)));
                // gfx10 to gfx12 know both: LLVM keeps the old name of this one.
                assert!(spellings.count() <= 1, "{}: {group:?}", target.name());
            }
        }
    }
}
