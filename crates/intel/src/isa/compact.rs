//! Compacted instructions: 8 bytes that stand for 16.
//!
//! A compacted word has the opcode, SWSB and registers as they are, and indices into tables. An entry of a table is the
//! contents of some fields of the full word, from its lowest bit. Where indices are was found by comparing 15,654
//! compacted words with what an assembler makes of their text.

use super::word::Word;

/// Fields of the full word that one table fills: bits `first..=last`, in the order of an entry's bits.
type Fields = &'static [(u32, u32)];

struct Table {
    fields: Fields,
    entries: &'static [u64],
}

impl Table {
    fn fill(&self, full: &mut u128, index: u64) {
        // Indices have as many bits as tables have entries.
        let mut entry = self.entries[index as usize % self.entries.len()];
        for (first, last) in self.fields {
            let width = last - first + 1;
            *full |= u128::from(entry & ((1 << width) - 1)) << first;
            entry >>= width;
        }
    }
}

/// Control bits of instructions with one or two sources.
const CONTROL: Table = Table {
    fields: &[(18, 28), (31, 31), (32, 32), (34, 34), (92, 95)],
    entries: &[
        0x4, 0x800, 0x84, 0x0, 0x802, 0x5, 0x803, 0x804, 0x14802, 0x10802, 0x801, 0x10800, 0x14800, 0x14803, 0x14004,
        0x10803, 0x10004, 0x8000, 0x14005, 0xc000, 0x10005, 0xc800, 0x4800, 0x884, 0x38800, 0x3, 0x4004, 0x104, 0x125,
        0x2, 0x14025, 0x14015,
    ],
};

const TYPES_ENTRIES: [u64; 32] = [
    0xbe8ee, 0x800, 0x6844, 0xd6954, 0x2ecee, 0x6954, 0x6866, 0x2b54, 0x36cce, 0xb68cc, 0xde976, 0x7044, 0x2eccc,
    0x68cc, 0x2a44, 0x2aac, 0x2cccc, 0x36cee, 0x68ee, 0xa40, 0xd4954, 0x8c44, 0x968ee, 0x4844, 0x8c8cc, 0x7844, 0x695a,
    0x2ec4e, 0x36ccc, 0xec44, 0x2ecce, 0x16c44,
];

/// Types and register files. With an immediate there is no file of source 1.
const TYPES: Table = Table { fields: &[(35, 43), (46, 50), (66, 66), (88, 91), (98, 98)], entries: &TYPES_ENTRIES };
const TYPES_IMMEDIATE: Table = Table { fields: &[(35, 43), (46, 50), (66, 66), (88, 91)], entries: &TYPES_ENTRIES };

/// Subregisters.
const SUBREGISTERS: Table = Table {
    fields: &[(33, 33), (51, 55), (67, 71), (87, 87)],
    entries: &[0x0, 0x400, 0x80, 0x200, 0x100, 0x4, 0x8, 0x20, 0x180, 0x10, 0x600, 0x108, 0x500, 0x300, 0xc, 0x210],
};

/// Region and modifiers of source 0.
const SOURCE_0: Table =
    Table { fields: &[(44, 45), (64, 65), (80, 86)], entries: &[0x100, 0x0, 0x200, 0x300, 0x710, 0x102, 0x2, 0x110] };

/// Region and modifiers of source 1.
const SOURCE_1: Table = Table {
    fields: &[(96, 97), (99, 103), (112, 118), (120, 121)],
    entries: &[0x0, 0x800, 0x10, 0x50, 0x1000, 0x8800, 0x40, 0x20, 0x18, 0x8, 0x30, 0x60, 0x70, 0x840, 0x820, 0x1808],
};

/// Control bits, types and files of instructions with three sources.
const CONTROL_FIELDS: Fields =
    &[(18, 28), (31, 31), (32, 32), (34, 34), (36, 42), (48, 50), (80, 82), (88, 90), (92, 93), (94, 95)];
const TERNARY_CONTROL: Table = Table {
    fields: CONTROL_FIELDS,
    entries: &[
        0x1b8ec004, 0x1b8ec084, 0x1b0ec004, 0x128a8005, 0x120a8005, 0x1b0ec084, 0x128a8004, 0x36998005, 0x2a8a8004,
        0x1b8ec800, 0x1b0ec003, 0x120a8004, 0x2a0a8004, 0x36998004, 0x2a8b4004, 0x36998800,
    ],
};
const DPAS_CONTROL: Table = Table {
    fields: CONTROL_FIELDS,
    entries: &[
        0xf99004, 0x4f99004, 0x20f99004, 0x24f99004, 0xf98004, 0x24f98004, 0x2dea9004, 0x2df69004, 0x2deb5004,
        0x2df75004, 0x2dea8004, 0x9ea9004, 0x9e69004, 0x9ea5004, 0x9e65004, 0x9ea8004,
    ],
};

/// Regions and modifiers of three sources.
const SOURCE_FIELDS: Fields = &[(35, 35), (43, 47), (64, 66), (83, 87), (91, 91), (96, 98), (112, 114)];
const TERNARY_SOURCES: Table = Table {
    fields: SOURCE_FIELDS,
    entries: &[
        0x160b01, 0x160301, 0x120201, 0x160a01, 0x160201, 0x16e142, 0x14c142, 0x122201, 0x120100, 0x120301, 0x160001,
        0x160101, 0x16c142, 0x120300, 0x122301, 0x140300,
    ],
};
const DPAS_SOURCES: Table = Table {
    fields: SOURCE_FIELDS,
    entries: &[
        0x120100, 0x120500, 0x120900, 0x121100, 0x121500, 0x121900, 0x122100, 0x122500, 0x122900, 0x120102, 0x120502,
        0x121102, 0x121502, 0x122902, 0x12010e, 0x12150e,
    ],
};
const TERNARY_SUBREGISTERS: Table = Table {
    fields: &[(51, 55), (67, 71), (99, 103), (115, 119)],
    entries: &[
        0x0, 0x80000, 0x4000, 0xe0000, 0x40000, 0xa0000, 0x20000, 0x60000, 0xc0000, 0x2101, 0x2102, 0xa103, 0x20806,
        0x4e8, 0x20c27, 0x3a101, 0x22105, 0x29880, 0x804, 0x300, 0x1000, 0x280, 0x2000, 0x10000, 0x800, 0xb0000,
        0x90000, 0x30000, 0x50000, 0xd0000, 0x70000, 0xf0000,
    ],
};

/// In a full and in a compacted word.
pub(super) const COMPACTED: u32 = 29;
const DEBUG: u32 = 30;
/// Immediate markers of sources 0 and 1 in the full word.
const IMMEDIATES: [u32; 2] = [46, 47];

/// How the fields of an instruction are arranged, as far as compaction depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// One or two sources.
    Binary,
    /// Three sources.
    Ternary,
    /// Products of matrices.
    Dpas,
}

/// The full word of a compacted one.
pub(super) fn expand(compact: u64, layout: Layout) -> Word {
    let bits = |low: u32, width: u32| compact >> low & ((1 << width) - 1);
    // Index in bits 26-28 and 30-31: bit 29 marks compaction.
    let split = bits(26, 3) | bits(30, 2) << 3;
    // Opcode and SWSB, and the three registers that are the same in all layouts.
    let mut full = u128::from(bits(0, 7) | bits(8, 10) << 8);
    full |= u128::from(bits(7, 1)) << DEBUG;
    full |= u128::from(bits(32, 8)) << 56 | u128::from(bits(40, 8)) << 72;
    if layout != Layout::Binary {
        let (control, sources) = match layout {
            Layout::Dpas => (&DPAS_CONTROL, &DPAS_SOURCES),
            _ => (&TERNARY_CONTROL, &TERNARY_SOURCES),
        };
        control.fill(&mut full, bits(18, 4));
        sources.fill(&mut full, bits(22, 4));
        TERNARY_SUBREGISTERS.fill(&mut full, split);
        full |= u128::from(bits(48, 8)) << 120 | u128::from(bits(56, 8)) << 104;
        return Word(full);
    }
    CONTROL.fill(&mut full, bits(18, 5));
    SUBREGISTERS.fill(&mut full, bits(48, 4));
    SOURCE_0.fill(&mut full, bits(23, 3));
    let mut typed = full;
    TYPES_IMMEDIATE.fill(&mut typed, split);
    let word = Word(typed);
    let [first, second] = IMMEDIATES.map(|bit| word.bit(bit));
    if !first && !second {
        TYPES.fill(&mut full, split);
        SOURCE_1.fill(&mut full, bits(52, 4));
        return Word(full | u128::from(bits(56, 8)) << 104);
    }
    let ty = if second { word.field(88, 4) } else { word.field(40, 4) };
    Word(typed | u128::from(immediate(bits(52, 12) as u32, ty)) << 96)
}

/// The 32 bits of an immediate of twelve, by type code: integers of 16 bits are there twice and are extended by their
/// sign if they have one; of a floating-point number they are the highest bits.
fn immediate(bits: u32, ty: u8) -> u32 {
    let signed = (bits << 20).cast_signed() >> 20;
    match ty {
        UW => bits << 16 | bits,
        W => {
            let half = signed.cast_unsigned() & 0xffff;
            half << 16 | half
        }
        D => signed.cast_unsigned(),
        HF => bits << 20 | bits << 4,
        F => bits << 20,
        _ => bits,
    }
}

const UW: u8 = 1;
const W: u8 = 5;
const D: u8 = 6;
const HF: u8 = 9;
const F: u8 = 10;
