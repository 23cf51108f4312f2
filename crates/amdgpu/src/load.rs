//! The instruction tables in memory: read once from the binary table that the build script made of `isa-tables/`.
//!
//! The lists of names are in the order of the same lists in `build.rs`. The table is our own, made at build time: a fault in it
//! is a fault of this program, found by every test that decodes, so reading it does not return errors.

use std::sync::{LazyLock, OnceLock};

use super::decode::Plan;
use super::dispatch::Dispatch;
use super::image::{Gradients, Image, ImageAddress, ImageData};
use super::inst::{Access, Role, ValueType};
use super::layout::{Accepts, Bits, Coding, Form, Kind, Layout, MAX_RUNS, Modifier, Plain, Run};
use super::table::{Branch, Condition, Counters, Encoding, Flags, Implicit, Latency, Memory, OperandSpec, Variant, Written};
use super::target::{INSTRUCTION_SETS, Target};
use super::traits::Traits;

static TABLE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/instructions.bin"));

const CODINGS: [Coding; 17] = [
    Coding::Vector,
    Coding::Accum,
    Coding::VectorAcc,
    Coding::Source,
    Coding::SourceAcc,
    Coding::SourceAccum,
    Coding::Sdwa,
    Coding::SdwaSdst,
    Coding::Literal,
    Coding::Signed,
    Coding::Unsigned,
    Coding::VectorOtherParity,
    Coding::SrcLow128,
    Coding::SrcHalf,
    Coding::VectorLow128,
    Coding::VectorHalf,
    Coding::VectorBehind,
];
const TYPES: [ValueType; 18] = [
    ValueType::B16,
    ValueType::B32,
    ValueType::B64,
    ValueType::I16,
    ValueType::I32,
    ValueType::I64,
    ValueType::F16,
    ValueType::Bf16,
    ValueType::F32,
    ValueType::F64,
    ValueType::V2I16,
    ValueType::V2F16,
    ValueType::V2Bf16,
    ValueType::V2I32,
    ValueType::V2F32,
    ValueType::Untyped,
    ValueType::V2F16Splat,
    ValueType::V2F16Literal,
];
const FORMS: [Form; 6] = [Form::Decimal, Form::Hex, Form::Inline, Form::IndexMode, Form::Slot, Form::Endpgm];
const ROLES: [Role; 50] = [
    Role::Vdst,
    Role::Sdst,
    Role::Src0,
    Role::Src1,
    Role::Src2,
    Role::Old,
    Role::Imm,
    Role::Simm16,
    Role::SimmTarget,
    Role::Sbase,
    Role::Soffset,
    Role::Sdata,
    Role::Vaddr,
    Role::Saddr,
    Role::Vdata,
    Role::Srsrc,
    Role::Ssamp,
    Role::Addr,
    Role::Data0,
    Role::Data1,
    Role::Hwreg,
    Role::Message,
    Role::WaitCount,
    Role::Attribute,
    Role::AttributeChannel,
    Role::ExportTarget,
    Role::Format,
    Role::Dmask,
    Role::Other,
    Role::Delay,
    Role::DepCtr,
    Role::Version,
    Role::WaitEvent,
    Role::VdstY,
    Role::Src0Y,
    Role::Src1Y,
    Role::Src2Y,
    Role::Scale0,
    Role::Scale1,
    Role::Vaddr1,
    Role::Vaddr2,
    Role::Vaddr3,
    Role::Vaddr4,
    Role::Vaddr5,
    Role::Vaddr6,
    Role::Vaddr7,
    Role::Vaddr8,
    Role::Vaddr9,
    Role::Vaddr10,
    Role::Vaddr11,
];
const MODIFIERS: [Modifier; 69] = [
    Modifier::Neg,
    Modifier::Abs,
    Modifier::NegHi,
    Modifier::OpSel,
    Modifier::OpSelHi,
    Modifier::Sext,
    Modifier::Clamp,
    Modifier::Omod,
    Modifier::Offset,
    Modifier::Offset1,
    Modifier::Glc,
    Modifier::Slc,
    Modifier::Scc,
    Modifier::Lds,
    Modifier::Tfe,
    Modifier::Lwe,
    Modifier::Nv,
    Modifier::Gds,
    Modifier::Idxen,
    Modifier::Offen,
    Modifier::Unorm,
    Modifier::Da,
    Modifier::R128,
    Modifier::D16,
    Modifier::Cbsz,
    Modifier::Abid,
    Modifier::Blgp,
    Modifier::Imm,
    Modifier::SoffsetEn,
    Modifier::High,
    Modifier::DppCtrl,
    Modifier::RowMask,
    Modifier::BankMask,
    Modifier::BoundCtrl,
    Modifier::DstSel,
    Modifier::DstUnused,
    Modifier::Src0Sel,
    Modifier::Src1Sel,
    Modifier::ExportEnable,
    Modifier::ExportCompressed,
    Modifier::ExportValidMask,
    Modifier::Cache,
    Modifier::Done,
    Modifier::Dlc,
    Modifier::A16,
    Modifier::Fi,
    Modifier::Dpp8,
    Modifier::Dim,
    Modifier::WaitExp,
    Modifier::WaitVdst,
    Modifier::WaitVsrc,
    Modifier::Bitop3,
    Modifier::ByteSel,
    Modifier::ScaleSel,
    Modifier::IndexKey,
    Modifier::MatrixAFmt,
    Modifier::MatrixBFmt,
    Modifier::MatrixAScale,
    Modifier::MatrixBScale,
    Modifier::MatrixAScaleFmt,
    Modifier::MatrixBScaleFmt,
    Modifier::MatrixAReuse,
    Modifier::MatrixBReuse,
    Modifier::Th,
    Modifier::Scope,
    Modifier::ScaleOffset,
    Modifier::Nsa,
    Modifier::RowEn,
    Modifier::Dpp8Fi,
];
const ACCESSES: [Access; 4] = [Access::Read, Access::Write, Access::ReadWrite, Access::None];
const ENCODINGS: [Encoding; 39] = [
    Encoding::Sop1,
    Encoding::Sop2,
    Encoding::Sopk,
    Encoding::Sopc,
    Encoding::Sopp,
    Encoding::Smem,
    Encoding::Vop1,
    Encoding::Vop2,
    Encoding::Vopc,
    Encoding::Vop3,
    Encoding::Vop3p,
    Encoding::Vintrp,
    Encoding::Ds,
    Encoding::Flat,
    Encoding::Global,
    Encoding::Scratch,
    Encoding::Mubuf,
    Encoding::Mtbuf,
    Encoding::Mimg,
    Encoding::Exp,
    Encoding::Vop1Dpp,
    Encoding::Vop2Dpp,
    Encoding::Vop1Sdwa,
    Encoding::Vop2Sdwa,
    Encoding::VopcSdwa,
    Encoding::Vop1Dpp8,
    Encoding::Vop2Dpp8,
    Encoding::VopcDpp,
    Encoding::VopcDpp8,
    Encoding::Vop3Dpp,
    Encoding::Vop3Dpp8,
    Encoding::Vop3pDpp,
    Encoding::Vop3pDpp8,
    Encoding::Vopd,
    Encoding::Vinterp,
    Encoding::Ldsdir,
    Encoding::Vimage,
    Encoding::Vsample,
    Encoding::Tensor,
];
const BRANCHES: [Branch; 15] = [
    Branch::None,
    Branch::Jump,
    Branch::Call,
    Branch::IndirectCall,
    Branch::IndirectJump,
    Branch::End,
    Branch::Obsolete,
    Branch::Trap,
    Branch::Conditional(Condition::Scc0),
    Branch::Conditional(Condition::Scc1),
    Branch::Conditional(Condition::VccZ),
    Branch::Conditional(Condition::VccNz),
    Branch::Conditional(Condition::ExecZ),
    Branch::Conditional(Condition::ExecNz),
    Branch::Conditional(Condition::Debug),
];
const MEMORIES: [Memory; 10] = [
    Memory::None,
    Memory::Scalar,
    Memory::Global,
    Memory::Flat,
    Memory::Scratch,
    Memory::Buffer,
    Memory::Image,
    Memory::Lds,
    Memory::Gds,
    Memory::Message,
];
const LATENCIES: [Latency; 14] = Latency::ALL;
const IMAGE_DATA: [ImageData; 5] = [ImageData::Mask, ImageData::Four, ImageData::Atomic, ImageData::Swap, ImageData::Fixed];
const GRADIENTS: [Gradients; 3] = [Gradients::None, Gradients::Whole, Gradients::Half];
/// Set in the role's place for an operand position without a field.
const FIXED_OPERAND: u8 = 0x80;
const FIXED_WORDS: [Written; 6] = [Written::Vcc, Written::Off, Written::M0, Written::Second, Written::LiteralX, Written::Offset];

/// Every row, and for every instruction set what finds the row of a word.
pub(super) struct Tables {
    pub(super) variants: Vec<Variant>,
    /// By instruction set, for waves of 64 and then of 32.
    dispatch: Vec<OnceLock<Dispatch>>,
}

impl Tables {
    /// What finds the row of a word of the target; made at its first use.
    pub(super) fn dispatch(&self, target: Target) -> &Dispatch {
        let (set, wave_size) = (target.instruction_table(), target.wave_size());
        self.dispatch[2 * set + usize::from(wave_size == 32)].get_or_init(|| Dispatch::new(&self.variants, 1 << set, wave_size))
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
    // The rows live as long as the program, as every instruction refers to its row: their parts are leaked on purpose, once.
    let kinds: &'static [Kind] = (0..cursor.u16())
        .map(|_| {
            let coding = CODINGS[cursor.index()];
            let accepts = Accepts::from_bits_truncate(cursor.u16());
            let (dwords, shown) = (cursor.u8(), cursor.u8());
            let (ty, flags) = (TYPES[cursor.index()], cursor.u8());
            let form = FORMS[cursor.index()];
            Kind { coding, accepts, dwords, shown, ty, even: flags & 1 != 0, signs: flags & 2 != 0, mask: flags & 4 != 0, form }
        })
        .collect::<Vec<_>>()
        .leak();
    let layouts: &'static [Layout] = (0..cursor.u16())
        .map(|_| {
            let (bytes, signed_offset) = (cursor.u8(), cursor.u8() != 0);
            let modifiers = (0..cursor.u8()).map(|_| (MODIFIERS[cursor.index()], cursor.bits())).collect();
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
    let encoding = ENCODINGS[cursor.index()];
    let mask = cursor.u128();
    let layout = &layouts[usize::from(cursor.u16())];
    let (mut operands, mut written) = (Vec::new(), Vec::new());
    for _ in 0..cursor.u8() {
        let role = cursor.u8();
        if role & FIXED_OPERAND != 0 {
            written.push(FIXED_WORDS[usize::from(role & !FIXED_OPERAND)]);
            continue;
        }
        let access = ACCESSES[cursor.index()];
        let kind = &kinds[usize::from(cursor.u16())];
        let bits = cursor.bits();
        operands.push(OperandSpec {
            role: ROLES[usize::from(role)],
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
    let printed: Vec<Modifier> = (0..cursor.u8()).map(|_| MODIFIERS[cursor.index()]).collect();
    let mut variant = Variant {
        name: "",
        mnemonic: "",
        encoding,
        opcode: 0,
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
        memory: MEMORIES[cursor.index()],
        memory_bytes: cursor.u8(),
        counters: Counters::from_bits_truncate(cursor.u16()),
        latency: LATENCIES[cursor.index()],
        flags: Flags::from_bits_truncate(cursor.u16().into()),
        image,
        wave_size: cursor.u8(),
        targets: 0,
        plan: Plan::BLANK,
        traits: Traits::empty(),
    };
    if cursor.u8() != 0 {
        variant.halves = Some([(); 2].map(|()| Implicit::from_bits_truncate(cursor.u8().into())));
    }
    variant
}

/// What a form says about the registers of an image instruction.
fn image(cursor: &mut Cursor) -> Option<Image> {
    let data = IMAGE_DATA[cursor.index().checked_sub(1)?];
    let (separate, extra, coordinates, lod) = (cursor.u8() != 0, cursor.u8(), cursor.u8() != 0, cursor.u8() != 0);
    let gradients = GRADIENTS[cursor.index()];
    let sizes = cursor.u32();
    let address = (sizes != 0).then_some(ImageAddress { extra, coordinates, lod, gradients, sizes });
    Some(Image { data, separate, address })
}

fn row(cursor: &mut Cursor, form: &Variant) -> Variant {
    let (name, mnemonic) = (cursor.text(), cursor.text());
    let mut row = Variant { name, mnemonic, opcode: cursor.u16(), matches: cursor.u128(), targets: cursor.u32(), ..*form };
    row.plan = Plan::of(&row);
    row.traits = Traits::of(name);
    row
}
