//! From bytes to an instruction.
//!
//! [`super::dispatch`] finds the row. Nothing here knows an encoding by name except where a field changes a width or an
//! access.

use smallvec::SmallVec;

use super::image;
use super::inst::{Half, Inst, Matrix, Modifiers, Operand, Reg, RegFile, Value, scalar};
use super::layout::{Bits, Kind, scalar_alignment};
use super::load::tables;
use super::opcode::OpcodeFlags;
use super::table::{OperandSpec, Variant};
use super::target::{InstructionSet, Target};
use super::vocabulary::{Accepts, Access, Coding, Encoding, Flags, Memory, Modifier, NumberFormat, Role};
use wavetap_base::error::{Error, Result};

/// Operand code: a literal follows.
const LITERAL: u64 = 255;
/// Source operand codes from here on are vector registers.
const FIRST_VECTOR: u64 = 256;
/// Registers of a vector file that have a number in a field.
const VECTOR_REGISTERS: u64 = 256;
/// Registers of a vector file whose numbers have high bits elsewhere: a run that begins below v256 may end above (LLVM,
/// `AMDGPUDisassembler`).
const ALL_VECTOR_REGISTERS: u64 = 1024;
/// The bit of a field that says AGPR.
const ACCUM_BIT: u64 = 1 << 9;
/// The bit of a 16-bit operand's field that says high half.
const HALF_BIT: u64 = 1 << 7;
/// The bit of an SDWA source that says scalar operand.
const SDWA_SCALAR_BIT: u64 = 1 << 8;
/// The bit of an SDWA compare that says that the destination is named.
const SDWA_SDST_BIT: u64 = 1 << 7;
/// `dst_unused` of SDWA: the other bits of the destination stay.
const UNUSED_PRESERVE: u8 = 2;
/// Largest offset of a buffer instruction (RDNA4 ISA guide, "VBUFFER"; earlier ones have narrower fields).
const MAX_BUFFER_OFFSET: i32 = 0x7f_ffff;
/// Operand code: a 64-bit literal follows.
const LITERAL64: u64 = 254;
/// Operand code of `src_flat_scratch_base_lo`; the high half follows.
const FLAT_SCRATCH_BASE: u16 = 230;

/// What decoding would otherwise work out from a row for every word: made from the row when the tables are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Bits that neither the form nor an operand or modifier gives a meaning.
    ignored: u128,
    /// What is done when all fields are read.
    adjust: Adjust,
    /// Whether an operand is a literal that the form has inside.
    literal_inside: bool,
}

impl Plan {
    /// Of a row that says nothing.
    pub(crate) const BLANK: Plan = Plan { ignored: 0, adjust: Adjust::Nothing, literal_inside: false };

    /// Of a row.
    pub(crate) fn of(variant: &Variant) -> Plan {
        let operands = variant.operands.iter().filter(|spec| spec.kind.coding != Coding::VectorBehind);
        let fields = operands.fold(variant.layout.modifier_bits, |mask, spec| mask | spec.bits.mask());
        let all = u128::MAX >> (128 - 8 * u32::from(variant.layout.bytes));
        Plan {
            ignored: all & !variant.mask & !fields,
            adjust: Adjust::of(variant),
            literal_inside: variant.operands.iter().any(|spec| spec.kind.coding == Coding::Literal),
        }
    }
}

/// What fields of a form change about operands, or which values of fields mean nothing together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Adjust {
    Nothing,
    Sdwa,
    SdwaCompare,
    Dpp,
    GdsBit,
    FlatOffset,
    BufferOffset,
    ScalarBufferOffset,
    ExportSources,
    Image,
    MatrixFormats,
    MatrixSources,
}

impl Adjust {
    fn of(variant: &Variant) -> Adjust {
        match variant.encoding {
            Encoding::Vop1Sdwa | Encoding::Vop2Sdwa => Adjust::Sdwa,
            Encoding::VopcSdwa => Adjust::SdwaCompare,
            Encoding::Vop1Dpp | Encoding::Vop2Dpp | Encoding::VopcDpp | Encoding::Vop3Dpp | Encoding::Vop3pDpp => {
                Adjust::Dpp
            }
            Encoding::Ds if variant.memory != Memory::Gds => Adjust::GdsBit,
            Encoding::Flat if !variant.layout.signed_offset => Adjust::FlatOffset,
            Encoding::Mubuf | Encoding::Mtbuf => Adjust::BufferOffset,
            Encoding::Smem if variant.opcode_flags.contains(OpcodeFlags::SCALAR_BUFFER) => Adjust::ScalarBufferOffset,
            Encoding::Exp => Adjust::ExportSources,
            Encoding::Mimg | Encoding::Vimage | Encoding::Vsample => Adjust::Image,
            Encoding::Vop3p if variant.opcode.matrix().is_some_and(|matrix| matrix.a == NumberFormat::F8f6f4) => {
                Adjust::MatrixSources
            }
            Encoding::Vop3p if variant.layout.modifiers.iter().any(|(modifier, _)| is_matrix_format(*modifier)) => {
                Adjust::MatrixFormats
            }
            _ => Adjust::Nothing,
        }
    }
}

/// Decodes the instruction at the start of `bytes` to `inst`, which has no operands and modifiers yet.
pub(super) fn decode_into(inst: &mut Inst, target: Target, bytes: &[u8]) -> Result<()> {
    if bytes.len() < 4 {
        return Err(Error::malformed(format!(
            "expected an instruction of {}, found {} bytes",
            target.name(),
            bytes.len()
        )));
    }
    let word = word(bytes);
    let tables = tables();
    let mut found = tables.dispatch(target).rows(word).map(|row| &tables.variants[usize::from(row)]);
    // The most specific row decides: where its operands mean nothing, a less specific one would misread the word.
    let Some(variant) = found.find(|variant| is_dpp8_source(variant, word)) else {
        return Err(malformed(target, word, "no instruction", ""));
    };
    if bytes.len() < usize::from(variant.layout.bytes) {
        return Err(malformed(target, word, "the code ends within ", variant.mnemonic));
    }
    inst.variant = variant;
    inst.size = variant.layout.bytes;
    inst.ignored = word & variant.plan.ignored;
    inst.wave_size = target.wave_size() as u8;
    match fields(target, inst, word, bytes) {
        Some(()) => Ok(()),
        None => Err(malformed(target, word, "fields that mean nothing in ", variant.mnemonic)),
    }
}

#[cold]
fn malformed(target: Target, word: u128, what: &'static str, of: &'static str) -> Error {
    Error::no_instruction(what, of, target.name(), [word as u32, (word >> 32) as u32])
}

/// Whether the source code of a DPP8 form is one of its two, 233 and 234; the row fixes the upper bits. Always true of
/// other forms.
fn is_dpp8_source(variant: &Variant, word: u128) -> bool {
    let at = match variant.encoding {
        Encoding::Vop1Dpp8 | Encoding::Vop2Dpp8 | Encoding::VopcDpp8 => 0,
        Encoding::Vop3Dpp8 | Encoding::Vop3pDpp8 => 32,
        _ => return true,
    };
    matches!(word >> at & 3, 1 | 2)
}

/// The first 16 bytes as a number; what is missing is 0.
fn word(bytes: &[u8]) -> u128 {
    match bytes.first_chunk() {
        Some(all) => u128::from_le_bytes(*all),
        None => {
            let mut all = [0; 16];
            all[..bytes.len()].copy_from_slice(bytes);
            u128::from_le_bytes(all)
        }
    }
}

/// Reads the operands of one instruction.
struct Reader<'a> {
    target: Target,
    set: &'static InstructionSet,
    /// Registers of a lane mask.
    mask_dwords: u8,
    /// The code after the fixed bits: the literal, of which there is at most one.
    rest: &'a [u8],
    /// The literal that the form has inside.
    inside: Option<u64>,
    /// Bytes of the literal that was read.
    literal_size: u8,
}

/// Reads the fields of an instruction whose row is known, or `None` if an operand's number means nothing there.
fn fields(target: Target, inst: &mut Inst, word: u128, bytes: &[u8]) -> Option<()> {
    let variant = inst.variant;
    let layout = variant.layout;
    if layout.has_parts || word & layout.modifier_bits != 0 {
        for (modifier, bits) in &layout.modifiers {
            let value = bits.get(word);
            if value != 0 || layout.has_parts {
                inst.modifiers.set(*modifier, value, variant.signed_offset(bits));
            }
        }
    }
    // `v_madmk` and `v_madak` have their literal inside; a source that is a literal is the same one.
    let inside = match variant.plan.literal_inside {
        true => {
            variant.operands.iter().find(|spec| spec.kind.coding == Coding::Literal).map(|spec| spec.bits.get(word))
        }
        false => None,
    };
    let mut reader = Reader {
        target,
        set: target.set(),
        mask_dwords: (target.wave_size() / 32) as u8,
        rest: &bytes[usize::from(layout.bytes)..],
        inside,
        literal_size: 0,
    };
    for spec in variant.operands {
        let OperandSpec { role, access, ty, dwords, kind, bits, plain } = spec;
        let operand =
            |value| Operand { role: *role, value, access: *access, ty: *ty, dwords: *dwords, half: Half::Whole };
        if let Some(number) = bits.get_single(word)
            && let Some(reg) = plain.registers(number, *dwords)
        {
            inst.operands.push(operand(Value::Reg(reg)));
            continue;
        }
        let number = match kind.coding {
            Coding::VectorBehind => bits.get(reader.literal()?.into()),
            _ => bits.get(word),
        };
        inst.operands.push(operand(Value::Off));
        let (operand, before) = inst.operands.split_last_mut()?;
        match kind.coding {
            Coding::Vector => operand.value = Value::Reg(reader.vector(kind, number, false)?),
            Coding::Source => reader.source(kind, number, false, &mut operand.value)?,
            Coding::VectorHalf | Coding::SrcHalf | Coding::VectorLow128 | Coding::SrcLow128 => {
                let (number, half) = half(&inst.modifiers, *role, kind.coding, number);
                reader.value(kind, bits, number, &mut operand.value)?;
                if matches!(operand.value, Value::Reg(reg) if reg.file == RegFile::Vector) {
                    operand.half = half;
                    // The other half of the register stays.
                    if operand.access == Access::Write {
                        operand.access = Access::ReadWrite;
                    }
                }
            }
            Coding::VectorOtherParity => {
                let first = before.first()?.reg()?.first;
                operand.value = Value::Reg(reader.vector(kind, number | u64::from(!first & 1), false)?);
            }
            Coding::SdwaSdst => {
                reader.value(kind, bits, number, &mut operand.value)?;
                if matches!(operand.value, Value::Reg(reg) if reg.first == scalar::VCC) {
                    // VCC is written without being named, the rest of the field being ignored, or by its code: keep
                    // which.
                    inst.ignored |= word & bits.mask();
                }
            }
            _ => reader.value(kind, bits, number, &mut operand.value)?,
        }
        if kind.mask {
            operand.dwords = reader.mask_dwords;
        }
    }
    inst.size += reader.literal_size;
    match variant.plan.adjust {
        Adjust::Nothing => Some(()),
        what => adjust(target, inst, what, reader.rest),
    }
}

/// The number in a field without the bit that chooses a half, and the half.
fn half(modifiers: &Modifiers, role: Role, coding: Coding, number: u64) -> (u64, Half) {
    let choose = |high: bool| if high { Half::High } else { Half::Low };
    match coding {
        Coding::VectorLow128 => (number & !HALF_BIT, choose(number & HALF_BIT != 0)),
        Coding::SrcLow128 if number >= FIRST_VECTOR => (number & !HALF_BIT, choose(number & HALF_BIT != 0)),
        Coding::VectorHalf | Coding::SrcHalf => (number, choose(modifiers.op_sel >> op_sel_bit(role) & 1 != 0)),
        _ => (number, Half::Whole),
    }
}

/// The bit of `op_sel` that chooses an operand's half.
pub(super) fn op_sel_bit(role: Role) -> u8 {
    match role {
        Role::Src0 => 0,
        Role::Src1 => 1,
        Role::Src2 => 2,
        _ => 3,
    }
}

/// What fields change about operands; `None` if their values mean nothing together.
fn adjust(target: Target, inst: &mut Inst, what: Adjust, rest: &[u8]) -> Option<()> {
    let offset = inst.modifiers.offset;
    match what {
        Adjust::Nothing => {}
        Adjust::Sdwa => {
            // `v_nop` has no fields at all.
            let sdwa = inst.modifiers.sdwa.unwrap_or_default();
            // Selector 7 and dst_unused 3 are reserved.
            if sdwa.dst_sel > 6 || sdwa.src0_sel > 6 || sdwa.src1_sel > 6 || sdwa.dst_unused > UNUSED_PRESERVE {
                return None;
            }
            if sdwa.dst_unused == UNUSED_PRESERVE
                && let Some(destination) = inst.operands.first_mut()
                && destination.access == Access::Write
            {
                destination.access = Access::ReadWrite;
            }
        }
        Adjust::SdwaCompare => {
            let sdwa = inst.modifiers.sdwa?;
            if sdwa.src0_sel > 6 || sdwa.src1_sel > 6 {
                return None;
            }
        }
        Adjust::Dpp => {
            let control = inst.modifiers.dpp.map_or(0, |dpp| dpp.ctrl);
            let wide = inst.variant.flags.contains(Flags::DOUBLE_RATE)
                || inst.operands.iter().any(|operand| operand.dwords == 2);
            return legal_dpp(target, control, wide).then_some(());
        }
        Adjust::GdsBit => return (!inst.modifiers.gds || target.has_gds()).then_some(()),
        // The flat segment has unsigned offsets of a bit less than the other segments' field.
        Adjust::FlatOffset => return (offset as u32 <= target.max_flat_offset()).then_some(()),
        // Buffer offsets are not negative, though the field is as wide as that of other segments.
        Adjust::BufferOffset => return (offset <= MAX_BUFFER_OFFSET).then_some(()),
        Adjust::ScalarBufferOffset => return (offset >= 0 || target.set().generation < 12).then_some(()),
        Adjust::ExportSources => export_sources(inst),
        Adjust::Image => image::adjust(target, inst, rest)?,
        Adjust::MatrixFormats => return legal_matrix_formats(&inst.modifiers.matrix).then_some(()),
        Adjust::MatrixSources => {
            if !legal_matrix_formats(&inst.modifiers.matrix) {
                return None;
            }
            matrix_sources(inst);
        }
    }
    Some(())
}

/// Whether the formats of elements and scales mean something: the other codes are reserved, and LLVM refuses them.
fn legal_matrix_formats(matrix: &Matrix) -> bool {
    let most = |codes: [u8; 2], last: u8| codes.iter().all(|code| *code <= last);
    most([matrix.a_fmt, matrix.b_fmt], 4) && most([matrix.a_scale_fmt, matrix.b_scale_fmt], 2)
}

fn is_matrix_format(modifier: Modifier) -> bool {
    matches!(
        modifier,
        Modifier::MatrixAFmt | Modifier::MatrixBFmt | Modifier::MatrixAScaleFmt | Modifier::MatrixBScaleFmt
    )
}

/// The matrices of `f8f6f4` operations are as wide as the format of their elements (2 and 3: six bits, 4: four bits;
/// CDNA4 ISA guide, "Matrix arithmetic", and LLVM's tables of the same forms for gfx1250).
fn matrix_sources(inst: &mut Inst) {
    let formats = if inst.is_any(OpcodeFlags::MFMA) {
        [inst.modifiers.cbsz, inst.modifiers.blgp]
    } else {
        [inst.modifiers.matrix.a_fmt, inst.modifiers.matrix.b_fmt]
    };
    for (role, format) in [Role::Src0, Role::Src1].into_iter().zip(formats) {
        let Some(operand) = inst.operands.iter_mut().find(|operand| operand.role == role) else { continue };
        let Value::Reg(reg) = &mut operand.value else { continue };
        let widest = operand.dwords;
        operand.dwords = match format {
            2 | 3 => widest / 4 * 3,
            4 => widest / 2,
            _ => widest,
        };
        reg.dwords = reg.dwords.min(operand.dwords);
    }
}

/// Sources of an export that it does not read become absent; their fields are ignored bits.
fn export_sources(inst: &mut Inst) {
    const SOURCES: [Role; 4] = [Role::Src0, Role::Src1, Role::Src2, Role::Other];
    let enable = inst.modifiers.export_enable;
    // Compressed, a source has two channels, and there are two sources.
    let read = |source: usize| {
        if inst.modifiers.export_compressed {
            source < 2 && enable >> (2 * source) & 3 != 0
        } else {
            enable >> source & 1 != 0
        }
    };
    let unread: SmallVec<[Role; 4]> =
        (0..SOURCES.len()).filter(|&source| !read(source)).map(|source| SOURCES[source]).collect();
    for (spec, operand) in inst.variant.operands.iter().zip(&mut inst.operands) {
        if unread.contains(&operand.role)
            && let Value::Reg(reg) = operand.value
        {
            inst.ignored |= spec.bits.put(reg.first.into()).unwrap_or(0);
            (operand.value, operand.access) = (Value::Off, Access::None);
        }
    }
}

/// Whether a `dpp_ctrl` means something (Vega, CDNA and RDNA ISA guides, "DPP_CTRL").
fn legal_dpp(target: Target, control: u16, wide: bool) -> bool {
    match control {
        0x150..=0x15f => target.row_newbcast() || target.row_share(),
        _ if wide && target.wide_broadcast_only() => false,
        0x160..=0x16f => target.row_share(),
        0..=0xff | 0x101..=0x10f | 0x111..=0x11f | 0x121..=0x12f | 0x140 | 0x141 => true,
        0x130 | 0x134 | 0x138 | 0x13c | 0x142 | 0x143 => target.wave_shifts(),
        _ => false,
    }
}

impl Reader<'_> {
    /// Puts into `value` what the number in an operand's field means; `None` if nothing. Values are put where they
    /// belong instead of returned, because moving them costs more than reading them.
    fn value(&mut self, kind: &Kind, bits: &Bits, number: u64, value: &mut Value) -> Option<()> {
        match kind.coding {
            Coding::Vector
            | Coding::VectorLow128
            | Coding::VectorHalf
            | Coding::VectorOtherParity
            | Coding::VectorBehind => {
                *value = Value::Reg(self.vector(kind, number, false)?);
            }
            Coding::Accum => *value = Value::Reg(self.vector(kind, number, true)?),
            Coding::VectorAcc => {
                *value = Value::Reg(self.vector(kind, number & (VECTOR_REGISTERS - 1), number & ACCUM_BIT != 0)?)
            }
            Coding::Source | Coding::SrcLow128 | Coding::SrcHalf => self.source(kind, number, false, value)?,
            Coding::SourceAcc => self.source(kind, number & !ACCUM_BIT, number & ACCUM_BIT != 0, value)?,
            Coding::SourceAccum => self.source(kind, number, true, value)?,
            Coding::Sdwa if number & SDWA_SCALAR_BIT == 0 => *value = Value::Reg(self.vector(kind, number, false)?),
            Coding::Sdwa => self.source(kind, number & !SDWA_SCALAR_BIT, false, value)?,
            Coding::SdwaSdst if number & SDWA_SDST_BIT == 0 => {
                *value = Value::Reg(Reg::scalar(scalar::VCC, self.mask_dwords))
            }
            Coding::SdwaSdst => self.source(kind, number & !SDWA_SDST_BIT, false, value)?,
            Coding::Literal if kind.dwords == 2 => *value = Value::Literal64(number),
            Coding::Literal => *value = Value::Literal(number as u32),
            Coding::Unsigned => *value = Value::Imm(number as i64),
            Coding::Signed => {
                let unused = u64::BITS - bits.width();
                *value = Value::Imm((number << unused) as i64 >> unused);
            }
        }
        Some(())
    }

    #[inline]
    fn vector(&self, kind: &Kind, number: u64, accum: bool) -> Option<Reg> {
        // Nearly all of them: what else there is to know of registers is not needed for these.
        let odd = kind.even && number % 2 == 1;
        if !accum
            && !odd
            && number + u64::from(kind.dwords) <= VECTOR_REGISTERS
            && kind.accepts.contains(Accepts::VECTOR)
        {
            return Some(Reg::vector(number as u16, kind.dwords));
        }
        self.unusual_vector(kind, number, accum)
    }

    #[inline(never)]
    fn unusual_vector(&self, kind: &Kind, number: u64, accum: bool) -> Option<Reg> {
        let wanted = if accum { Accepts::ACCUM } else { Accepts::VECTOR };
        let odd = kind.even && number % 2 == 1 && self.target.aligned_vgprs();
        // Where both files are possible, memory instructions reach AGPRs only if the allocation is
        // one.
        let unreachable = accum && kind.coding == Coding::VectorAcc && !self.target.unified_accum();
        // Image addresses are as long as the image needs: `dwords` is the most, and the file ends the run.
        let file = if self.target.has_vgpr_msb() && !accum { ALL_VECTOR_REGISTERS } else { VECTOR_REGISTERS };
        let dwords = u64::from(kind.dwords).min(file.checked_sub(number)?);
        if !kind.accepts.contains(wanted) || odd || unreachable || dwords < u64::from(kind.shown) {
            return None;
        }
        let (first, dwords) = (number as u16, dwords as u8);
        Some(if accum { Reg::accum(first, dwords) } else { Reg::vector(first, dwords) })
    }

    #[inline(always)]
    fn source(&mut self, kind: &Kind, number: u64, accum: bool, value: &mut Value) -> Option<()> {
        if number >= FIRST_VECTOR {
            *value = Value::Reg(self.vector(kind, number - FIRST_VECTOR, accum)?);
            return Some(());
        }
        self.scalar_source(kind, number, value)
    }

    fn scalar_source(&mut self, kind: &Kind, number: u64, value: &mut Value) -> Option<()> {
        let inline = kind.accepts.contains(Accepts::INLINE);
        match number {
            // Most of them.
            0..=127 => *value = Value::Reg(self.scalar_register(kind, number as u16)?),
            LITERAL if kind.accepts.contains(Accepts::LITERAL) => *value = Value::Literal(self.literal()?),
            LITERAL64 if self.set.literal64 => {
                if !kind.accepts.contains(Accepts::LITERAL) || kind.dwords != 2 {
                    return None;
                }
                *value = Value::Literal64(self.literal64()?);
            }
            128..=192 if inline => *value = Value::InlineInt((number - 128) as i8),
            193..=208 if inline => *value = Value::InlineInt(-((number - 192) as i8)),
            240..=248 if inline => *value = Value::InlineFloat(number as u8),
            128..=208 | 240..=248 => return None,
            _ => *value = Value::Reg(self.scalar_register(kind, number as u16)?),
        }
        Some(())
    }

    fn literal(&mut self) -> Option<u32> {
        if let Some(literal) = self.inside {
            return Some(literal as u32);
        }
        // There is one literal, whatever the number of sources that take it.
        if self.literal_size == 8 {
            return None;
        }
        self.literal_size = 4;
        Some(u32::from_le_bytes(*self.rest.first_chunk()?))
    }

    fn literal64(&mut self) -> Option<u64> {
        if let Some(literal) = self.inside {
            return Some(literal);
        }
        if self.literal_size == 4 {
            return None;
        }
        self.literal_size = 8;
        Some(u64::from_le_bytes(*self.rest.first_chunk()?))
    }

    /// The scalar registers at an operand code.
    fn scalar_register(&self, kind: &Kind, code: u16) -> Option<Reg> {
        let set = self.set;
        let dwords = u16::from(if kind.mask { self.mask_dwords } else { kind.dwords });
        let aligned = |index: u16| index.is_multiple_of(scalar_alignment(dwords));
        let reg = |canonical: u16, needed: Accepts, fits: bool| {
            // The null register and the read-only sources are numbered one by one: none is a half of another, however
            // wide the operand.
            let single = needed == Accepts::NULL || needed == Accepts::READ_ONLY && canonical >= scalar::SHARED_BASE;
            let dwords = if single { 1 } else { dwords };
            (fits && kind.accepts.contains(needed)).then_some(Reg::scalar(canonical, dwords as u8))
        };
        match code {
            _ if code < set.sgprs => reg(code, Accepts::SCALAR, aligned(code) && code + dwords <= set.sgprs),
            _ if (set.ttmp_code..set.ttmp_code + set.ttmps).contains(&code) => {
                let index = code - set.ttmp_code;
                reg(code, Accepts::SCALAR, aligned(index) && index + dwords <= set.ttmps)
            }
            // FLAT_SCRATCH, XNACK_MASK and VCC; on gfx8 also TBA and TMA.
            scalar::FLAT_SCRATCH..scalar::M0 => reg(code, Accepts::SCALAR, dwords <= 2 && aligned(code)),
            _ if code == set.m0_code => reg(scalar::M0, Accepts::M0, dwords == 1),
            _ if code == set.null_code => reg(scalar::NULL, Accepts::NULL, true),
            scalar::EXEC if dwords == 1 => reg(code, Accepts::EXEC_LO, true),
            scalar::EXEC => reg(code, Accepts::EXEC_LO.union(Accepts::EXEC_HI), dwords == 2),
            127 => reg(code, Accepts::EXEC_HI, dwords == 1),
            FLAT_SCRATCH_BASE if set.flat_scratch_base => reg(code, Accepts::READ_ONLY, dwords <= 2),
            231 if set.flat_scratch_base => reg(code, Accepts::READ_ONLY, dwords == 1),
            scalar::SHARED_BASE..=239 | scalar::VCCZ..=scalar::SCC => reg(code, Accepts::READ_ONLY, dwords <= 2),
            scalar::LDS_DIRECT if set.lds_direct => reg(code, Accepts::LDS_DIRECT, dwords == 1),
            _ => None,
        }
    }
}
