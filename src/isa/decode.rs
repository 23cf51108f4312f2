//! From bytes to an instruction.
//!
//! A target's rows are found through a tree of switches over bits that all rows at that point fix, built from the rows themselves; what is left at a leaf
//! is tried in order, the row with most fixed bits first. Nothing here knows an encoding by name except where a field changes a width or an access.

use smallvec::SmallVec;

use super::inst::{Access, Inst, Modifiers, Operand, Reg, Role, Value, scalar};
use super::layout::{Accepts, Coding, Kind};
use super::load::tables;
use super::table::{Encoding, Memory, Variant};
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
/// The bit of an SDWA source that says scalar operand.
const SDWA_SCALAR_BIT: u64 = 1 << 8;
/// The bit of an SDWA compare that says that the destination is named.
const SDWA_SDST_BIT: u64 = 1 << 7;
/// `dst_unused` of SDWA: the other bits of the destination stay.
const UNUSED_PRESERVE: u8 = 2;
/// Largest offset of a flat instruction (Vega and CDNA ISA guides, "FLAT").
const MAX_FLAT_OFFSET: i32 = 0xfff;
/// Number of `s` registers that operand codes name (gfx9 ISA guides, "SGPRs").
const SCALAR_REGISTERS: u16 = 102;
/// Trap temporaries: `ttmp0..ttmp15`.
const TRAP_REGISTERS: u16 = 16;

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
    pub(super) fn new(variants: &[Variant], target: u32) -> Self {
        let mut all: Vec<u16> = (0..variants.len() as u16).filter(|&index| variants[usize::from(index)].targets & target != 0).collect();
        // The most specific row first.
        all.sort_by_key(|&index| std::cmp::Reverse(variants[usize::from(index)].mask.count_ones()));
        let mut dispatch = Dispatch { nodes: Vec::new(), rows: Vec::new() };
        dispatch.nodes.push(Node::Leaf { first: 0, count: 0 });
        dispatch.switch(variants, 0, &all, 0, ROOT_LOW, ROOT_BITS);
        dispatch
    }

    /// Makes node `at` a switch over the given bits. `used` are the bits that were switched over on the way.
    fn switch(&mut self, variants: &[Variant], at: usize, rows: &[u16], used: u64, low: u32, bits: u32) {
        let first = self.nodes.len();
        self.nodes[at] = Node::Switch { low: low as u8, bits: bits as u8, first: first as u32 };
        self.nodes.extend((0..1 << bits).map(|_| Node::Leaf { first: 0, count: 0 }));
        let used = used | ((1 << bits) - 1) << low;
        for choice in 0..1u64 << bits {
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

    fn node(&mut self, variants: &[Variant], at: usize, rows: &[u16], used: u64) {
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
    fn candidates(&self, word: u64) -> &[u16] {
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
fn longest_run(mask: u64) -> (u32, u32) {
    let (mut best, mut low) = ((0, 0), 0);
    while low < u64::BITS {
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
    let dword =
        |index: usize| bytes.get(4 * index..4 * index + 4).map(|four| u64::from(u32::from_le_bytes([four[0], four[1], four[2], four[3]])));
    let Some(low) = dword(0) else {
        return Err(Error::malformed(format!("expected an instruction of {}, found {} bytes", target.name(), bytes.len())));
    };
    let word = low | dword(1).unwrap_or(0) << 32;
    let tables = tables();
    let found = tables.dispatch[target.instruction_table()].candidates(word).iter().map(|&index| &tables.variants[usize::from(index)]);
    // The most specific row decides: where its operands mean nothing, a less specific one would misread the word.
    let malformed = |what: &str| Error::malformed(format!("{what} of {}: {low:#010x} {:#010x}", target.name(), word >> 32));
    let Some(variant) = found.into_iter().find(|variant| word & variant.mask == variant.matches) else {
        return Err(malformed("no instruction"));
    };
    let size = usize::from(variant.layout.bytes);
    if bytes.len() < size {
        return Err(malformed(&format!("the code ends within {}", variant.mnemonic)));
    }
    operands(target, variant, word, dword(size / 4).map(|literal| literal as u32))
        .ok_or_else(|| malformed(&format!("fields that mean nothing in {}", variant.mnemonic)))
}

/// The instruction of a row, or `None` if an operand's number means nothing there.
fn operands(target: Target, variant: &'static Variant, word: u64, next: Option<u32>) -> Option<Inst> {
    let mut inst = Inst { variant, size: variant.layout.bytes, operands: SmallVec::new(), modifiers: Modifiers::default(), ignored: 0 };
    let mut used = variant.mask;
    for (modifier, bits) in &variant.layout.modifiers {
        used |= bits.mask();
        inst.modifiers.set(*modifier, bits.get(word), variant.signed_offset(bits));
    }
    // `v_madmk` and `v_madak` have their literal inside; a source that is a literal is the same one.
    let inside = variant.operands.iter().any(|spec| spec.kind.coding == Coding::Literal);
    let next = if inside { Some((word >> 32) as u32) } else { next };
    let mut literal = false;
    for spec in variant.operands {
        used |= spec.bits.mask();
        let number = spec.bits.get(word);
        let value = value(target, spec.kind, &spec.bits, number, next, &mut literal)?;
        inst.operands.push(Operand { role: spec.role, value, access: spec.access, ty: spec.ty, dwords: spec.dwords });
        if spec.kind.coding == Coding::SdwaSdst && value == Value::Reg(Reg::VCC) {
            // VCC is written without being named, the rest of the field being ignored, or by its code: keep which.
            inst.ignored |= word & spec.bits.mask();
        }
    }
    if literal && !inside {
        inst.size += 4;
    }
    let size_mask = if variant.layout.bytes == 4 { u64::from(u32::MAX) } else { u64::MAX };
    inst.ignored |= word & !used & size_mask;
    adjust(target, &mut inst)?;
    Some(inst)
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
        Encoding::Vop1Dpp | Encoding::Vop2Dpp => {
            let control = inst.modifiers.dpp.map_or(0, |dpp| dpp.ctrl);
            let wide = inst.operands.iter().any(|operand| operand.dwords == 2);
            return legal_dpp(target, control, wide).then_some(());
        }
        Encoding::Ds if inst.modifiers.gds && !target.has_gds() && inst.variant.memory != Memory::Gds => return None,
        // The offset of the flat segment has 12 bits, unsigned; the field's 13th is for the other segments.
        Encoding::Flat if inst.modifiers.offset > MAX_FLAT_OFFSET => return None,
        Encoding::Exp => export_sources(inst),
        Encoding::Mimg => image_data(target, inst)?,
        _ => {}
    }
    Some(())
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

/// Whether a `dpp_ctrl` means something (Vega and CDNA ISA guides, "DPP_CTRL").
fn legal_dpp(target: Target, control: u16, wide: bool) -> bool {
    match control {
        0x150..=0x15f => target.row_newbcast(),
        _ if wide && target.row_newbcast() => false,
        0..=0xff | 0x101..=0x10f | 0x111..=0x11f | 0x121..=0x12f | 0x130 | 0x134 | 0x138 | 0x13c | 0x140..=0x143 => true,
        _ => false,
    }
}

/// How many registers of data an image instruction has, TFE's status included; `None` if its channel mask means nothing.
pub(super) fn image_data_dwords(inst: &Inst) -> Option<u32> {
    let name = inst.variant.name;
    let Value::Imm(mask) = inst.operand(Role::Dmask)?.value else { return None };
    let channels = if name.starts_with("image_gather4") { 4 } else { mask.count_ones().max(1) };
    // Atomics take one or two registers of data, a compare and swap twice as many.
    let legal = match name {
        "image_atomic_cmpswap" => mask == 0x3 || mask == 0xf,
        _ if name.starts_with("image_atomic") => mask == 0x1 || mask == 0x3,
        _ => true,
    };
    let data = if inst.modifiers.d16 { channels.div_ceil(2) } else { channels };
    legal.then_some(data + u32::from(inst.modifiers.tfe))
}

/// The registers of an image instruction's data follow from its channel mask.
fn image_data(target: Target, inst: &mut Inst) -> Option<()> {
    let mut dwords = image_data_dwords(inst)?;
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
    if modifiers.d16 && data.access == Access::Write {
        data.access = Access::ReadWrite;
    }
    Some(())
}

/// What the number in an operand's field means, or `None` if nothing.
fn value(target: Target, kind: &Kind, bits: &super::layout::Bits, number: u64, next: Option<u32>, literal: &mut bool) -> Option<Value> {
    match kind.coding {
        Coding::Vector => vector(target, kind, number, false),
        Coding::Accum => vector(target, kind, number, true),
        Coding::VectorAcc => vector(target, kind, number & (VECTOR_REGISTERS - 1), number & ACCUM_BIT != 0),
        Coding::Source => source(target, kind, number, false, next, literal),
        Coding::SourceAcc => source(target, kind, number & !ACCUM_BIT, number & ACCUM_BIT != 0, next, literal),
        Coding::SourceAccum => source(target, kind, number, true, next, literal),
        Coding::Sdwa if number & SDWA_SCALAR_BIT == 0 => vector(target, kind, number, false),
        Coding::Sdwa => source(target, kind, number & !SDWA_SCALAR_BIT, false, next, literal),
        Coding::SdwaSdst if number & SDWA_SDST_BIT == 0 => Some(Value::Reg(Reg::VCC)),
        Coding::SdwaSdst => source(target, kind, number & !SDWA_SDST_BIT, false, next, literal),
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
    let dwords = u64::from(kind.dwords).min(VECTOR_REGISTERS - number);
    if !kind.accepts.contains(wanted) || odd || unreachable || dwords < u64::from(kind.shown) {
        return None;
    }
    let (first, dwords) = (number as u16, dwords as u8);
    Some(Value::Reg(if accum { Reg::accum(first, dwords) } else { Reg::vector(first, dwords) }))
}

fn source(target: Target, kind: &Kind, number: u64, accum: bool, next: Option<u32>, literal: &mut bool) -> Option<Value> {
    if number >= FIRST_VECTOR {
        return vector(target, kind, number - FIRST_VECTOR, accum);
    }
    let accepts = |what: Accepts, value: Value| kind.accepts.contains(what).then_some(value);
    match number {
        LITERAL => {
            *literal = true;
            accepts(Accepts::LITERAL, Value::Literal(next?))
        }
        128..=192 => accepts(Accepts::INLINE, Value::InlineInt((number - 128) as i8)),
        193..=208 => accepts(Accepts::INLINE, Value::InlineInt(-((number - 192) as i8))),
        240..=248 => accepts(Accepts::INLINE, Value::InlineFloat(number as u8)),
        _ => scalar_register(kind, number as u16).map(Value::Reg),
    }
}

/// The scalar registers at an operand code.
fn scalar_register(kind: &Kind, code: u16) -> Option<Reg> {
    let dwords = u16::from(kind.dwords);
    let aligned = |index: u16| index.is_multiple_of(dwords.next_power_of_two().min(4));
    let (needed, fits) = match code {
        0..SCALAR_REGISTERS => (Accepts::SCALAR, aligned(code) && code + dwords <= SCALAR_REGISTERS),
        scalar::FLAT_SCRATCH..scalar::TTMP0 => (Accepts::SCALAR, dwords <= 2 && aligned(code)),
        scalar::TTMP0..scalar::M0 => {
            let index = code - scalar::TTMP0;
            (Accepts::SCALAR, aligned(index) && index + dwords <= TRAP_REGISTERS)
        }
        scalar::M0 => (Accepts::M0, dwords == 1),
        scalar::EXEC if dwords == 1 => (Accepts::EXEC_LO, true),
        scalar::EXEC => (Accepts::EXEC_LO.union(Accepts::EXEC_HI), dwords == 2),
        127 => (Accepts::EXEC_HI, dwords == 1),
        scalar::SHARED_BASE..=239 | scalar::VCCZ..=scalar::SCC => (Accepts::READ_ONLY, dwords <= 2),
        scalar::LDS_DIRECT => (Accepts::LDS_DIRECT, dwords == 1),
        _ => return None,
    };
    // The read-only sources are numbered one by one: none is a half of another, however wide the operand.
    let dwords = if needed == Accepts::READ_ONLY { 1 } else { kind.dwords };
    (fits && kind.accepts.contains(needed)).then_some(Reg::scalar(code, dwords))
}
