//! From bytes to an instruction.
//!
//! A target's rows are found through a tree of switches over bits that all rows at that point fix, built from the rows themselves; what is left at a leaf
//! is tried in order, the row with most fixed bits first. Nothing here knows an encoding by name except where a field changes a width or an access.

use smallvec::SmallVec;

use super::inst::{Access, Half, Inst, Matrix, Modifiers, Operand, Reg, RegFile, Role, Value, scalar};
use super::layout::{Accepts, Bits, Coding, Kind};
use super::load::tables;
use super::table::{Encoding, Flags, Memory, Variant};
use super::target::Target;
use crate::error::{Error, Result};

/// The first switch: the top bits of the first dword, which hold the encoding family and often the opcode.
const ROOT_LOW: u32 = 23;
const ROOT_BITS: u32 = 9;
/// Widest later switch.
const MAX_SWITCH_BITS: u32 = 10;
/// Fewest rows for which a switch is worth its table.
const MIN_SWITCH_ROWS: usize = 4;
/// Operand code: a literal follows.
const LITERAL: u64 = 255;
/// Source operand codes from here on are vector registers.
const FIRST_VECTOR: u64 = 256;
/// Registers of a vector file.
const VECTOR_REGISTERS: u64 = 256;
/// The bit of a field that says accumulation register.
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

#[derive(Debug)]
enum Node {
    /// Rows `first..first + count` of the leaf list.
    Leaf { first: u32, count: u32 },
    /// Bits `low..low + bits` choose among as many nodes from `first` on.
    Switch { low: u8, bits: u8, first: u32 },
}

/// Finds a target's rows by the bits of a word.
#[derive(Debug)]
pub(super) struct Dispatch {
    nodes: Vec<Node>,
    rows: Vec<u16>,
}

impl Dispatch {
    /// Of the rows that the sets of the mask have with this wave size.
    pub(super) fn new(variants: &[Variant], sets: u32, wave_size: u32) -> Self {
        let has = |row: &Variant| row.targets & sets != 0 && (row.wave_size == 0 || u32::from(row.wave_size) == wave_size);
        let mut all: Vec<u16> = (0..variants.len() as u16).filter(|&index| has(&variants[usize::from(index)])).collect();
        // The most specific row first.
        all.sort_by_key(|&index| std::cmp::Reverse(variants[usize::from(index)].mask.count_ones()));
        let mut dispatch = Dispatch { nodes: Vec::new(), rows: Vec::new() };
        dispatch.nodes.push(Node::Leaf { first: 0, count: 0 });
        dispatch.switch(variants, 0, &all, 0, ROOT_LOW, ROOT_BITS);
        dispatch
    }

    /// Makes node `at` a switch over the given bits. `used` are the bits that were switched over on the way.
    fn switch(&mut self, variants: &[Variant], at: usize, rows: &[u16], used: u128, low: u32, bits: u32) {
        let first = self.nodes.len();
        self.nodes[at] = Node::Switch { low: low as u8, bits: bits as u8, first: first as u32 };
        self.nodes.extend((0..1 << bits).map(|_| Node::Leaf { first: 0, count: 0 }));
        let used = used | ((1 << bits) - 1) << low;
        for choice in 0..1u128 << bits {
            let matching: Vec<u16> = rows
                .iter()
                .copied()
                .filter(|&index| {
                    let row = &variants[usize::from(index)];
                    let fixed = row.mask >> low & ((1 << bits) - 1);
                    row.matches >> low & fixed == choice & fixed
                })
                .collect();
            self.node(variants, first + choice as usize, &matching, used);
        }
    }

    fn node(&mut self, variants: &[Variant], at: usize, rows: &[u16], used: u128) {
        let fixed_by_all = rows.iter().fold(!used, |mask, &index| mask & variants[usize::from(index)].mask);
        if rows.len() >= MIN_SWITCH_ROWS {
            let (low, bits) = longest_run(fixed_by_all);
            if bits > 0 {
                return self.switch(variants, at, rows, used, low, bits);
            }
        }
        self.nodes[at] = Node::Leaf { first: self.rows.len() as u32, count: rows.len() as u32 };
        self.rows.extend(rows);
    }

    /// The rows that may match.
    pub(super) fn candidates(&self, word: u128) -> &[u16] {
        let mut node = &self.nodes[0];
        loop {
            match *node {
                Node::Leaf { first, count } => return &self.rows[first as usize..(first + count) as usize],
                Node::Switch { low, bits, first } => {
                    node = &self.nodes[first as usize + (word >> low & ((1 << bits) - 1)) as usize];
                }
            }
        }
    }
}

/// The longest run of ones, as its lowest bit and its length (at most [`MAX_SWITCH_BITS`]).
fn longest_run(mask: u128) -> (u32, u32) {
    let (mut best, mut low) = ((0, 0), 0);
    while low < u128::BITS {
        let length = (mask >> low).trailing_ones();
        if length > best.1 {
            best = (low, length.min(MAX_SWITCH_BITS));
        }
        low += length.max(1);
    }
    best
}

/// Decodes the instruction at the start of `bytes`.
pub(super) fn decode(target: Target, bytes: &[u8]) -> Result<Inst> {
    if bytes.len() < 4 {
        return Err(Error::malformed(format!("expected an instruction of {}, found {} bytes", target.name(), bytes.len())));
    }
    let word = word(bytes);
    let tables = tables();
    let mut found = tables.dispatch(target).candidates(word).iter().map(|&index| &tables.variants[usize::from(index)]);
    // The most specific row decides: where its operands mean nothing, a less specific one would misread the word.
    let malformed =
        |what: &str| Error::malformed(format!("{what} of {}: {:#010x} {:#010x}", target.name(), word as u32, (word >> 32) as u32));
    let Some(variant) = found.find(|variant| word & variant.mask == variant.matches && is_dpp8_source(variant, word)) else {
        return Err(malformed("no instruction"));
    };
    if bytes.len() < usize::from(variant.layout.bytes) {
        return Err(malformed(&format!("the code ends within {}", variant.mnemonic)));
    }
    operands(target, variant, word, bytes).ok_or_else(|| malformed(&format!("fields that mean nothing in {}", variant.mnemonic)))
}

/// Whether the source code of a DPP8 form is one of its two, 233 and 234; the row fixes the upper bits. Always true of other forms.
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

/// What follows an instruction's fixed bits: its literal, of which there is at most one.
struct Literals<'a> {
    /// The code behind the fixed bits.
    rest: &'a [u8],
    /// The literal that the form has inside.
    inside: Option<u64>,
    /// Bytes of the literal that was read.
    size: u8,
}

impl Literals<'_> {
    fn dword(&mut self) -> Option<u32> {
        if let Some(literal) = self.inside {
            return Some(literal as u32);
        }
        // There is one literal, whatever the number of sources that take it.
        if self.size == 8 {
            return None;
        }
        self.size = 4;
        Some(u32::from_le_bytes(*self.rest.first_chunk()?))
    }

    fn quad(&mut self) -> Option<u64> {
        if let Some(literal) = self.inside {
            return Some(literal);
        }
        if self.size == 4 {
            return None;
        }
        self.size = 8;
        Some(u64::from_le_bytes(*self.rest.first_chunk()?))
    }
}

/// The instruction of a row, or `None` if an operand's number means nothing there.
fn operands(target: Target, variant: &'static Variant, word: u128, bytes: &[u8]) -> Option<Inst> {
    let mut inst = Inst {
        variant,
        size: variant.layout.bytes,
        operands: SmallVec::new(),
        modifiers: Modifiers::default(),
        ignored: 0,
        wave_size: target.wave_size() as u8,
    };
    let mut used = variant.mask;
    for (modifier, bits) in &variant.layout.modifiers {
        used |= bits.mask();
        inst.modifiers.set(*modifier, bits.get(word), variant.signed_offset(bits));
    }
    // `v_madmk` and `v_madak` have their literal inside; a source that is a literal is the same one.
    let inside = variant.operands.iter().find(|spec| spec.kind.coding == Coding::Literal).map(|spec| spec.bits.get(word));
    let mut literals = Literals { rest: &bytes[usize::from(variant.layout.bytes)..], inside, size: 0 };
    for spec in variant.operands {
        used |= spec.bits.mask();
        let number = spec.bits.get(word);
        let (number, half) = half(&inst, spec.role, spec.kind.coding, number);
        let value = match spec.kind.coding {
            Coding::VectorOtherParity => vector(target, spec.kind, number | u64::from(!first_number(&inst)? & 1), false),
            _ => value(target, spec.kind, &spec.bits, number, &mut literals),
        }?;
        let half = if matches!(value, Value::Reg(reg) if reg.file == RegFile::Vector) { half } else { Half::Whole };
        let dwords = if spec.kind.mask { (target.wave_size() / 32) as u8 } else { spec.dwords };
        // The other half of the register stays.
        let access = if half != Half::Whole && spec.access == Access::Write { Access::ReadWrite } else { spec.access };
        inst.operands.push(Operand { role: spec.role, value, access, ty: spec.ty, dwords, half });
        if spec.kind.coding == Coding::SdwaSdst && matches!(value, Value::Reg(reg) if reg.first == scalar::VCC) {
            // VCC is written without being named, the rest of the field being ignored, or by its code: keep which.
            inst.ignored |= word & spec.bits.mask();
        }
    }
    inst.size += literals.size;
    let fixed = u128::MAX >> (128 - 8 * u32::from(variant.layout.bytes));
    inst.ignored |= word & !used & fixed;
    adjust(target, &mut inst)?;
    Some(inst)
}

/// The register number of the first destination.
fn first_number(inst: &Inst) -> Option<u16> {
    inst.operands.first()?.reg().map(|reg| reg.first)
}

/// The number in a field without the bit that chooses a half, and the half.
fn half(inst: &Inst, role: Role, coding: Coding, number: u64) -> (u64, Half) {
    let choose = |high: bool| if high { Half::High } else { Half::Low };
    match coding {
        Coding::VectorLow128 => (number & !HALF_BIT, choose(number & HALF_BIT != 0)),
        Coding::SrcLow128 if number >= FIRST_VECTOR => (number & !HALF_BIT, choose(number & HALF_BIT != 0)),
        Coding::VectorHalf | Coding::SrcHalf => (number, choose(inst.modifiers.op_sel >> op_sel_bit(role) & 1 != 0)),
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

/// What fields change about operands.
fn adjust(target: Target, inst: &mut Inst) -> Option<()> {
    match inst.variant.encoding {
        Encoding::Vop1Sdwa | Encoding::Vop2Sdwa => {
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
        Encoding::VopcSdwa => {
            let sdwa = inst.modifiers.sdwa?;
            if sdwa.src0_sel > 6 || sdwa.src1_sel > 6 {
                return None;
            }
        }
        Encoding::Vop1Dpp | Encoding::Vop2Dpp | Encoding::VopcDpp | Encoding::Vop3Dpp | Encoding::Vop3pDpp => {
            let control = inst.modifiers.dpp.map_or(0, |dpp| dpp.ctrl);
            let wide = inst.variant.flags.contains(Flags::DOUBLE_RATE) || inst.operands.iter().any(|operand| operand.dwords == 2);
            return legal_dpp(target, control, wide).then_some(());
        }
        Encoding::Ds if inst.modifiers.gds && !target.has_gds() && inst.variant.memory != Memory::Gds => return None,
        // The flat segment has unsigned offsets of a bit less than the other segments' field.
        Encoding::Flat if inst.modifiers.offset as u32 > target.max_flat_offset() && !inst.variant.layout.signed_offset => return None,
        // Buffer offsets are not negative, though the field is as wide as that of other segments.
        Encoding::Mubuf | Encoding::Mtbuf if inst.modifiers.offset > MAX_BUFFER_OFFSET => return None,
        Encoding::Smem if inst.modifiers.offset < 0 && target.set().generation >= 12 && is_scalar_buffer(inst.variant.name) => {
            return None;
        }
        Encoding::Exp => export_sources(inst),
        Encoding::Mimg => image_data(target, inst)?,
        Encoding::Vop3p => {
            if !legal_matrix_formats(&inst.modifiers.matrix) {
                return None;
            }
            if inst.variant.name.contains("f8f6f4") {
                matrix_sources(inst);
            }
        }
        _ => {}
    }
    Some(())
}

/// Whether the formats of elements and scales mean something: the other codes are reserved, and LLVM refuses them.
fn legal_matrix_formats(matrix: &Matrix) -> bool {
    let most = |codes: [u8; 2], last: u8| codes.iter().all(|code| *code <= last);
    most([matrix.a_fmt, matrix.b_fmt], 4) && most([matrix.a_scale_fmt, matrix.b_scale_fmt], 2)
}

/// The matrices of `f8f6f4` operations are as wide as the format of their elements (2 and 3: six bits, 4: four bits; CDNA4 ISA guide, "Matrix
/// arithmetic", and LLVM's tables of the same forms for gfx1250).
fn matrix_sources(inst: &mut Inst) {
    let formats = if inst.variant.name.starts_with("v_mfma") {
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

/// Whether a scalar memory instruction reaches memory through a buffer descriptor.
fn is_scalar_buffer(name: &str) -> bool {
    name.starts_with("s_buffer_") || name == "s_atc_probe_buffer"
}

/// Sources of an export that it does not read become absent; their fields are ignored bits.
fn export_sources(inst: &mut Inst) {
    const SOURCES: [Role; 4] = [Role::Src0, Role::Src1, Role::Src2, Role::Other];
    let enable = inst.modifiers.export_enable;
    // Compressed, a source has two channels, and there are two sources.
    let read = |source: usize| {
        if inst.modifiers.export_compressed { source < 2 && enable >> (2 * source) & 3 != 0 } else { enable >> source & 1 != 0 }
    };
    let unread: SmallVec<[Role; 4]> = (0..SOURCES.len()).filter(|&source| !read(source)).map(|source| SOURCES[source]).collect();
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

/// How many registers of data an image instruction has, TFE's status included; `None` if its channel mask means nothing.
pub(super) fn image_data_dwords(target: Target, inst: &Inst) -> Option<u32> {
    let name = inst.variant.name;
    let Value::Imm(mask) = inst.operand(Role::Dmask)?.value else { return None };
    let channels = if name.starts_with("image_gather4") { 4 } else { mask.count_ones().max(1) };
    // Atomics take one or two registers of data, a compare and swap twice as many.
    let legal = match name {
        "image_atomic_cmpswap" => mask == 0x3 || mask == 0xf,
        _ if name.starts_with("image_atomic") => mask == 0x1 || mask == 0x3,
        _ => true,
    };
    let data = if inst.modifiers.d16 && !target.set().unpacked_d16 { channels.div_ceil(2) } else { channels };
    legal.then_some(data + u32::from(inst.modifiers.tfe))
}

/// The registers of an image instruction's data follow from its channel mask.
fn image_data(target: Target, inst: &mut Inst) -> Option<()> {
    let mut dwords = image_data_dwords(target, inst)?;
    let modifiers = inst.modifiers;
    let data = inst.operands.iter_mut().find(|operand| operand.role == Role::Vdata)?;
    let Value::Reg(reg) = &mut data.value else { return None };
    let room = VECTOR_REGISTERS as u32 - u32::from(reg.first);
    let odd = reg.first % 2 == 1 && dwords > 1 && target.aligned_vgprs();
    if dwords > room || odd {
        return None;
    }
    // LWE has a status too, which assemblers do not count: at the end of the file it has no register.
    if modifiers.lwe && !modifiers.tfe {
        dwords = room.min(dwords + 1);
    }
    reg.dwords = dwords as u8;
    data.dwords = dwords as u8;
    // With 16-bit data the last register may be written in half.
    if modifiers.d16 && !target.set().unpacked_d16 && data.access == Access::Write {
        data.access = Access::ReadWrite;
    }
    Some(())
}

/// What the number in an operand's field means, or `None` if nothing.
fn value(target: Target, kind: &Kind, bits: &Bits, number: u64, literals: &mut Literals<'_>) -> Option<Value> {
    match kind.coding {
        Coding::Vector | Coding::VectorLow128 | Coding::VectorHalf | Coding::VectorOtherParity => vector(target, kind, number, false),
        Coding::Accum => vector(target, kind, number, true),
        Coding::VectorAcc => vector(target, kind, number & (VECTOR_REGISTERS - 1), number & ACCUM_BIT != 0),
        Coding::Source | Coding::SrcLow128 | Coding::SrcHalf => source(target, kind, number, false, literals),
        Coding::SourceAcc => source(target, kind, number & !ACCUM_BIT, number & ACCUM_BIT != 0, literals),
        Coding::SourceAccum => source(target, kind, number, true, literals),
        Coding::Sdwa if number & SDWA_SCALAR_BIT == 0 => vector(target, kind, number, false),
        Coding::Sdwa => source(target, kind, number & !SDWA_SCALAR_BIT, false, literals),
        Coding::SdwaSdst if number & SDWA_SDST_BIT == 0 => Some(Value::Reg(Reg::scalar(scalar::VCC, (target.wave_size() / 32) as u8))),
        Coding::SdwaSdst => source(target, kind, number & !SDWA_SDST_BIT, false, literals),
        Coding::Literal if kind.dwords == 2 => Some(Value::Literal64(number)),
        Coding::Literal => Some(Value::Literal(number as u32)),
        Coding::Unsigned => Some(Value::Imm(number as i64)),
        Coding::Signed => {
            let unused = u64::BITS - bits.width();
            Some(Value::Imm((number << unused) as i64 >> unused))
        }
    }
}

fn vector(target: Target, kind: &Kind, number: u64, accum: bool) -> Option<Value> {
    let wanted = if accum { Accepts::ACCUM } else { Accepts::VECTOR };
    let odd = kind.even && number % 2 == 1 && target.aligned_vgprs();
    // Where both files are possible, memory instructions reach accumulation registers only if the allocation is one.
    let unreachable = accum && kind.coding == Coding::VectorAcc && !target.unified_accum();
    // Image addresses are as long as the image needs: `dwords` is the most, and the file ends the run.
    let dwords = u64::from(kind.dwords).min(VECTOR_REGISTERS.checked_sub(number)?);
    if !kind.accepts.contains(wanted) || odd || unreachable || dwords < u64::from(kind.shown) {
        return None;
    }
    let (first, dwords) = (number as u16, dwords as u8);
    Some(Value::Reg(if accum { Reg::accum(first, dwords) } else { Reg::vector(first, dwords) }))
}

fn source(target: Target, kind: &Kind, number: u64, accum: bool, literals: &mut Literals<'_>) -> Option<Value> {
    if number >= FIRST_VECTOR {
        return vector(target, kind, number - FIRST_VECTOR, accum);
    }
    let accepts = |what: Accepts, value: Value| kind.accepts.contains(what).then_some(value);
    match number {
        LITERAL if kind.accepts.contains(Accepts::LITERAL) => Some(Value::Literal(literals.dword()?)),
        LITERAL64 if target.set().literal64 => {
            if !kind.accepts.contains(Accepts::LITERAL) || kind.dwords != 2 {
                return None;
            }
            Some(Value::Literal64(literals.quad()?))
        }
        128..=192 => accepts(Accepts::INLINE, Value::InlineInt((number - 128) as i8)),
        193..=208 => accepts(Accepts::INLINE, Value::InlineInt(-((number - 192) as i8))),
        240..=248 => accepts(Accepts::INLINE, Value::InlineFloat(number as u8)),
        _ => scalar_register(target, kind, number as u16).map(Value::Reg),
    }
}

/// The scalar registers at an operand code.
fn scalar_register(target: Target, kind: &Kind, code: u16) -> Option<Reg> {
    let set = target.set();
    let dwords = if kind.mask { (target.wave_size() / 32) as u16 } else { u16::from(kind.dwords) };
    let aligned = |index: u16| index.is_multiple_of(dwords.next_power_of_two().min(4));
    let reg = |canonical: u16, needed: Accepts, fits: bool| {
        // The null register and the read-only sources are numbered one by one: none is a half of another, however wide the operand.
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
