//! From a mnemonic and values to an instruction.

use std::cell::RefCell;
use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;
use smallvec::SmallVec;

use super::encode;
use super::inst::{Half, Inst, Modifiers, Operand, Reg, Value};
use super::table::{Variant, Written};
use super::target::Target;
use super::vocabulary::{Coding, Encoding, Flags, Modifier};
use super::{decode, spelling};
use wavetap_base::error::{Error, Result};

/// `row_mask` and `bank_mask` that leave no lane out.
const ALL_ROWS: u8 = 0xf;
/// SDWA selector of the whole register.
const SELECT_DWORD: u8 = 6;

/// An instruction that was built, and of what.
struct Built {
    target: Target,
    mnemonic: Box<str>,
    values: SmallVec<[Value; 5]>,
    inst: Inst,
}

/// So many instructions are remembered, by hash.
const REMEMBERED: usize = 1024;

thread_local! {
    /// Inserted code is made of the same few instructions over and over.
    static BUILT: RefCell<Vec<Option<Built>>> = RefCell::new((0..REMEMBERED).map(|_| None).collect());
}

/// Builds an instruction: the first form of that mnemonic into which the values fit.
pub(super) fn build(target: Target, mnemonic: &str, values: &[Value]) -> Result<Inst> {
    let mut hasher = FxHasher::default();
    (target.name(), target.wave_size(), mnemonic, values).hash(&mut hasher);
    let place = hasher.finish() as usize % REMEMBERED;
    let built = BUILT.try_with(|all| {
        let mut all = all.borrow_mut();
        if let Some(built) = &all[place]
            && (built.target, &*built.mnemonic, &built.values[..]) == (target, mnemonic, values)
        {
            return Ok(built.inst.clone());
        }
        let inst = build_anew(target, mnemonic, values)?;
        all[place] = Some(Built { target, mnemonic: mnemonic.into(), values: values.into(), inst: inst.clone() });
        Ok(inst)
    });
    // A thread that ends has no memory any more.
    built.unwrap_or_else(|_| build_anew(target, mnemonic, values))
}

fn build_anew(target: Target, mnemonic: &str, values: &[Value]) -> Result<Inst> {
    let mut forms = 0;
    for variant in spelling::forms(target, mnemonic) {
        forms += 1;
        if let Some(inst) = form(target, variant, values) {
            return Ok(inst);
        }
    }
    Err(Error::unsupported(match forms {
        0 => format!("{} has no instruction {mnemonic}", target.name()),
        _ => format!("{mnemonic} on {} takes no operands like {values:?}", target.name()),
    }))
}

/// The instruction, if the values fit this form.
fn form(target: Target, variant: &'static Variant, values: &[Value]) -> Option<Inst> {
    let wave_size = target.wave_size() as u8;
    let mut inst = Inst {
        variant,
        size: variant.layout.bytes,
        operands: SmallVec::new(),
        modifiers: initial_modifiers(variant),
        ignored: 0,
        wave_size,
    };
    let (values, offset) = operand_values(variant, values)?;
    if let Some(offset) = offset {
        inst.modifiers.offset = i32::try_from(offset).ok()?;
    }
    if variant.encoding == Encoding::Exp {
        // The first value is the target; a source that is absent is not enabled.
        let sources = values.iter().skip(1).enumerate();
        inst.modifiers.export_enable =
            sources.fold(0, |enable, (source, value)| enable | u8::from(*value != Value::Off) << source);
    }
    for (spec, value) in variant.operands.iter().zip(&values) {
        inst.operands.push(Operand {
            role: spec.role,
            value: *value,
            access: spec.access,
            ty: spec.ty,
            dwords: spec.dwords,
            half: Half::Whole,
        });
    }
    // What decodes to the same is what was meant: this checks register files, widths, alignment and literals in one
    // place.
    let bytes = encode::encode(target, &inst).ok()?;
    let decoded = decode(target, &bytes).ok()?;
    let same =
        decoded.variant == variant && decoded.operands.iter().map(|operand| operand.value).eq(values.iter().copied());
    same.then_some(decoded)
}

/// The values of the operands that have fields, and the byte offset of a scalar memory form, from the values as they
/// are written. Words that a form always has (`vcc`, `off`) may be given or left out, and so may an offset of 0.
fn operand_values(variant: &Variant, values: &[Value]) -> Option<(SmallVec<[Value; 5]>, Option<i64>)> {
    let fields = variant.operands.len();
    // Where the offset is written among the operands it is one of the positions below.
    let has_offset = variant.encoding == Encoding::Smem
        && variant.layout.modifiers.iter().any(|(modifier, _)| *modifier == Modifier::Offset)
        && !variant.written.contains(&Written::Offset);
    let (values, mut offset) = match values.split_last() {
        Some((Value::Imm(offset), rest)) if has_offset => (rest, Some(*offset)),
        _ => (values, None),
    };
    if values.len() == fields && (!values.contains(&Value::Off) || variant.encoding == Encoding::Exp) {
        return Some((values.iter().copied().collect(), offset));
    }
    if values.len() != variant.written.len() {
        return None;
    }
    let mut kept = SmallVec::new();
    for (written, value) in variant.written.iter().zip(values) {
        match (written, value) {
            (Written::Operand, Value::Off) => return None,
            (Written::Offset, Value::Imm(bytes)) => offset = Some(*bytes),
            (Written::Operand, value) => kept.push(*value),
            (Written::Off, Value::Off) => {}
            (Written::Vcc, Value::Reg(reg)) if *reg == Reg::VCC => {}
            _ => return None,
        }
    }
    Some((kept, offset))
}

/// What an assembler takes for modifiers that are not written.
fn initial_modifiers(variant: &Variant) -> Modifiers {
    let mut modifiers = Modifiers::default();
    for (modifier, bits) in &variant.layout.modifiers {
        modifiers.set(*modifier, bits.get(variant.matches), None);
        let free = bits.mask() & !variant.mask != 0;
        match modifier {
            // Packed operations use the high halves for the high result.
            Modifier::OpSelHi if variant.flags.contains(Flags::PACKED) => {
                modifiers.op_sel_hi = bits.get(u128::MAX) as u8;
            }
            Modifier::RowMask => modifiers.dpp.get_or_insert_default().row_mask = ALL_ROWS,
            Modifier::BankMask => modifiers.dpp.get_or_insert_default().bank_mask = ALL_ROWS,
            Modifier::DstSel if free => modifiers.sdwa.get_or_insert_default().dst_sel = SELECT_DWORD,
            Modifier::Src0Sel if free => modifiers.sdwa.get_or_insert_default().src0_sel = SELECT_DWORD,
            Modifier::Src1Sel if free => modifiers.sdwa.get_or_insert_default().src1_sel = SELECT_DWORD,
            _ => {}
        }
    }
    if variant.operands.iter().any(|spec| spec.kind.coding == Coding::Sdwa) {
        modifiers.sdwa.get_or_insert_default();
    }
    modifiers
}
