//! The instruction tables in memory: read once from the binary table that the build script made of `isa-tables/`.
//!
//! A word of the tables is its number in its list of `isa-tables/vocabulary.yaml`. The table is our own, made at build
//! time: a fault in it is a fault of this program, found by every test that decodes, so reading it does not return
//! errors.

use std::sync::{LazyLock, OnceLock};

use super::decode::Plan;
use super::dispatch::Dispatch;
use super::image::{Image, ImageAddress};
use super::layout::{Bits, Kind, Layout, MAX_RUNS, Plain, Run};
use super::opcode::{Opcode, OpcodeFlags};
use super::table::{OperandSpec, Variant, Written};
use super::target::{INSTRUCTION_SETS, Target};
use super::vocabulary::{
    Accepts, Access, BRANCHES, Coding, Counters, Encoding, FIXED_WORDS, Flags, Form, Gradients, ImageData, Implicit,
    Latency, Memory, Modifier, Role, ValueType,
};

static TABLE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/instructions.bin"));

/// Set in the role's place for an operand position without a field.
const FIXED_OPERAND: u8 = 0x80;

/// Every row, and for every instruction set what finds the row of a word.
pub(super) struct Tables {
    pub(super) variants: Vec<Variant>,
    /// By instruction set, for wave64 and then wave32.
    dispatch: Vec<OnceLock<Dispatch>>,
}

impl Tables {
    /// What finds the row of a word of the target; made at its first use.
    pub(super) fn dispatch(&self, target: Target) -> &Dispatch {
        let (set, wave_size) = (target.instruction_table(), target.wave_size());
        self.dispatch[2 * set + usize::from(wave_size == 32)]
            .get_or_init(|| Dispatch::new(&self.variants, 1 << set, wave_size))
    }
}

static TABLES: LazyLock<Tables> = LazyLock::new(load);

/// The tables, read at the first use.
pub(super) fn tables() -> &'static Tables {
    &TABLES
}

/// A cursor over the table.
struct Cursor(usize);

impl Cursor {
    fn bytes(&mut self, count: usize) -> &'static [u8] {
        self.0 += count;
        &TABLE[self.0 - count..self.0]
    }

    fn u8(&mut self) -> u8 {
        self.bytes(1)[0]
    }

    fn u16(&mut self) -> u16 {
        self.u8() as u16 | (self.u8() as u16) << 8
    }

    fn u32(&mut self) -> u32 {
        u32::from(self.u16()) | u32::from(self.u16()) << 16
    }

    fn u64(&mut self) -> u64 {
        u64::from(self.u32()) | u64::from(self.u32()) << 32
    }

    fn u128(&mut self) -> u128 {
        u128::from(self.u64()) | u128::from(self.u64()) << 64
    }

    fn index(&mut self) -> usize {
        self.u8().into()
    }

    fn text(&mut self) -> &'static str {
        let length = self.index();
        std::str::from_utf8(self.bytes(length)).unwrap_or("")
    }

    fn bits(&mut self) -> Bits {
        let mut runs = [Run::default(); MAX_RUNS];
        let runs = &mut runs[..usize::from(self.u8())];
        for run in &mut *runs {
            *run = Run { low: self.u8(), length: self.u8(), shift: self.u8() };
        }
        Bits::new(runs)
    }
}

fn load() -> Tables {
    let cursor = &mut Cursor(0);
    // The rows live as long as the program, as every instruction refers to its row: their parts are leaked on purpose,
    // once.
    let kinds: &'static [Kind] = (0..cursor.u16())
        .map(|_| {
            let coding = Coding::ALL[cursor.index()];
            let accepts = Accepts::from_bits_truncate(cursor.u16());
            let (dwords, shown) = (cursor.u8(), cursor.u8());
            let (ty, flags) = (ValueType::ALL[cursor.index()], cursor.u8());
            let form = Form::ALL[cursor.index()];
            Kind {
                coding,
                accepts,
                dwords,
                shown,
                ty,
                even: flags & 1 != 0,
                signs: flags & 2 != 0,
                mask: flags & 4 != 0,
                form,
            }
        })
        .collect::<Vec<_>>()
        .leak();
    let layouts: &'static [Layout] = (0..cursor.u16())
        .map(|_| {
            let (bytes, signed_offset) = (cursor.u8(), cursor.u8() != 0);
            let modifiers = (0..cursor.u8()).map(|_| (Modifier::ALL[cursor.index()], cursor.bits())).collect();
            Layout::new(bytes, signed_offset, modifiers)
        })
        .collect::<Vec<_>>()
        .leak();
    let mut variants = Vec::new();
    for _ in 0..cursor.u16() {
        let form = form(cursor, kinds, layouts);
        variants.extend((0..cursor.u16()).map(|_| row(cursor, &form)));
    }
    variants.shrink_to_fit();
    let dispatch = (0..2 * INSTRUCTION_SETS.len()).map(|_| OnceLock::new()).collect();
    Tables { variants, dispatch }
}

/// What the rows of a group have in common, as a row without name and opcode.
fn form(cursor: &mut Cursor, kinds: &'static [Kind], layouts: &'static [Layout]) -> Variant {
    let encoding = Encoding::ALL[cursor.index()];
    let mask = cursor.u128();
    let layout = &layouts[usize::from(cursor.u16())];
    let (mut operands, mut written) = (Vec::new(), Vec::new());
    for _ in 0..cursor.u8() {
        let role = cursor.u8();
        if role & FIXED_OPERAND != 0 {
            written.push(FIXED_WORDS[usize::from(role & !FIXED_OPERAND)]);
            continue;
        }
        let access = Access::ALL[cursor.index()];
        let kind = &kinds[usize::from(cursor.u16())];
        let bits = cursor.bits();
        operands.push(OperandSpec {
            role: Role::ALL[usize::from(role)],
            access,
            ty: kind.ty,
            dwords: kind.dwords,
            kind,
            bits,
            plain: Plain::of(kind),
        });
        written.push(Written::Operand);
    }
    let image = image(cursor);
    let printed: Vec<Modifier> = (0..cursor.u8()).map(|_| Modifier::ALL[cursor.index()]).collect();
    let mut variant = Variant {
        name: "",
        mnemonic: "",
        encoding,
        opcode: Opcode::INVALID,
        second: None,
        op: 0,
        mask,
        matches: 0,
        layout,
        operands: operands.leak(),
        written: written.leak(),
        printed: printed.leak(),
        implicit_reads: Implicit::from_bits_truncate(cursor.u8().into()),
        implicit_writes: Implicit::from_bits_truncate(cursor.u8().into()),
        halves: None,
        branch: BRANCHES[cursor.index()],
        memory: Memory::ALL[cursor.index()],
        memory_bytes: cursor.u8(),
        counters: Counters::from_bits_truncate(cursor.u16()),
        latency: Latency::ALL[cursor.index()],
        flags: Flags::from_bits_truncate(cursor.u16().into()),
        image,
        wave_size: cursor.u8(),
        targets: 0,
        plan: Plan::BLANK,
        opcode_flags: OpcodeFlags::empty(),
    };
    if cursor.u8() != 0 {
        variant.halves = Some([(); 2].map(|()| Implicit::from_bits_truncate(cursor.u8().into())));
    }
    variant
}

/// What a form says about the registers of an image instruction.
fn image(cursor: &mut Cursor) -> Option<Image> {
    let data = ImageData::ALL[cursor.index().checked_sub(1)?];
    let (separate, extra, coordinates, lod) = (cursor.u8() != 0, cursor.u8(), cursor.u8() != 0, cursor.u8() != 0);
    let gradients = Gradients::ALL[cursor.index()];
    let sizes = cursor.u32();
    let address = (sizes != 0).then_some(ImageAddress { extra, coordinates, lod, gradients, sizes });
    Some(Image { data, separate, address })
}

fn row(cursor: &mut Cursor, form: &Variant) -> Variant {
    let (opcode, second) = (Opcode::from_number(cursor.u16()), Opcode::from_number(cursor.u16()));
    let second = Some(second).filter(|second| *second != Opcode::INVALID);
    let mnemonic = cursor.text();
    let mut row = Variant {
        // The operations of a pair have no ending that says their encoding.
        name: if second.is_some() { mnemonic } else { opcode.name() },
        mnemonic,
        opcode,
        second,
        opcode_flags: opcode.flags() | second.map_or(OpcodeFlags::empty(), Opcode::flags),
        op: cursor.u16(),
        matches: cursor.u128(),
        targets: cursor.u32(),
        ..*form
    };
    row.plan = Plan::of(&row);
    row
}
