//! Accesses in words.

use super::{Category, KernelMemory, MemoryAccess, Operation, Space, Unknown};

/// Bytes of a word, which is aligned in what compilers make of most programs.
const WORD: u32 = 4;
/// Lanes of a wave64.
const MOST_LANES: u32 = 64;
/// At an access that is coalesced, fewer lanes than this share of a wave are too few.
const FEW_LANES: f64 = 0.25;

/// Whether it is coalesced, and few lanes make it.
#[must_use]
pub fn has_few_lanes(access: &MemoryAccess) -> bool {
    // Of 32 lanes at least; a wave of 64 with as many is no better.
    access.category == Category::Coalesced
        && access.space != Space::Scratch
        && access.active_lanes.is_some_and(|lanes| lanes <= 32.0 * FEW_LANES)
}

/// A category in a word.
#[must_use]
pub fn word(category: Category) -> &'static str {
    match category {
        Category::Uniform => "uniform",
        Category::Coalesced => "coalesced",
        Category::Misaligned => "misaligned",
        Category::Reversed => "reversed",
        Category::Strided => "strided",
        Category::Rows => "in rows",
        Category::Indirect => "indirect",
        Category::Unknown => "unknown",
    }
}

/// `load 4 B of a`.
#[must_use]
pub fn what(access: &MemoryAccess) -> String {
    let operation = match access.operation {
        Operation::Load => "load",
        Operation::Store => "store",
        Operation::Atomic => "atomic",
    };
    let times = if access.addresses > 1 { format!("{} x ", access.addresses) } else { String::new() };
    let space = match access.known_space() {
        Space::Lds => " of LDS",
        Space::Scratch => " of scratch",
        _ => "",
    };
    let array = access.array.as_ref().map(|array| format!(" of {array}")).unwrap_or_default();
    let flat = match access.space {
        // The code does not say which memory, and recorded addresses do, or do not.
        Space::Flat if access.known_space() == Space::Flat => " (FLAT: memory not known)",
        Space::Flat => " (FLAT: as recorded)",
        _ => "",
    };
    format!("{operation} {times}{} B{space}{array}{flat}", access.bytes)
}

/// What the lanes of an access look like.
#[must_use]
pub fn looks_like(access: &MemoryAccess, kernel: &KernelMemory) -> String {
    let mut text = match (access.category, access.stride) {
        (Category::Strided, Some(stride)) => format!("lanes {stride} B apart"),
        (Category::Strided, None) => "each lane elsewhere".to_owned(),
        (Category::Uniform, _) if access.is_uniform_load() => "all lanes the same: a scalar load would do".to_owned(),
        (Category::Uniform, _) => "all lanes the same".to_owned(),
        (Category::Misaligned, _) => format!("not where a line of {} B begins", kernel.line_bytes),
        (Category::Rows, _) => "rows of lanes apart".to_owned(),
        (category, _) => word(category).to_owned(),
    };
    if let Some(lds) = access.lds.filter(|lds| lds.ways > 1) {
        text.push_str(&format!(", {}-way bank conflict", lds.ways));
    }
    // Where lanes are anywhere, more than a line each are those of words that are not aligned to their own size.
    let is_anywhere = access.category == Category::Strided && access.stride.is_none() && access.bytes <= WORD;
    let inexact = access.lines.filter(|lines| !lines.exact && lines.most > lines.likely);
    if let Some(lines) = inexact.filter(|_| !is_anywhere) {
        // A word that is aligned to its size is in one line: compilers say where one is not.
        let most = if access.bytes <= WORD { lines.most.min(f64::from(MOST_LANES)) } else { lines.most };
        if most > lines.likely {
            text.push_str(&format!(", up to {} lines", number(most)));
        }
    }
    if let Some(step) = access.step {
        text.push_str(&format!(", {step} B further each round"));
    }
    if let Some(lanes) = access.active_lanes.filter(|_| has_few_lanes(access)) {
        text.push_str(&format!(", {lanes:.1} lanes active"));
    }
    if let Some(why) = access.unknown {
        text.push_str(match why {
            Unknown::Loaded => "",
            Unknown::Stride => ": stride not in the code",
            Unknown::Paths => ": lanes came by different ways",
            Unknown::Operation => ": an operation is not followed",
        });
    }
    text
}

/// A number, with a digit where it is no whole one.
#[must_use]
pub fn number(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}
