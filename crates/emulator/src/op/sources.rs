//! The sources of vector instructions, by operand.

use wavetap_amdgpu::{Half, Inst, OpcodeFlags, Operand, Reg, RegFile, Role, scalar};

use super::semantics::{Source, Ty, source};

/// The sources of an instruction in the order its meaning takes them.
pub(crate) fn sources(inst: &Inst, types: &[Ty; 4], dst: Option<Reg>, signed64: bool) -> [Source; 4] {
    let role = |role: Role, ty: Ty| by_role(inst, role, ty, signed64);
    let mut all = [role(Role::Src0, types[0]), role(Role::Src1, types[1]), role(Role::Src2, types[2]), Source::None];
    let literal = || role(Role::Imm, types[1]);
    if inst.is_any(OpcodeFlags::LITERAL_FACTOR) {
        // D = S0 * K + S1
        all = [all[0], literal(), role(Role::Src1, types[2]), Source::None];
    } else if inst.is_any(OpcodeFlags::LITERAL_SUMMAND) {
        all[2] = literal();
    } else if types[2] == Ty::Mask && all[2] == Source::None {
        // The carry-in or condition of the short encodings.
        all[2] = Source::Scalar(scalar::VCC);
    } else if types[2] != Ty::None && all[2] == Source::None {
        // Accumulating forms: the destination is the third source.
        all[2] = destination_source(dst);
    }
    if types[3] == Ty::Mask {
        all[3] = Source::Scalar(scalar::VCC);
    }
    all
}

/// For each source that [`sources`] gives, which half of its registers it is, where operations name halves.
pub(crate) fn halves(inst: &Inst, sources: &[Source; 4]) -> [Option<Half>; 4] {
    let half = |role: Role, source: Source| {
        let named =
            inst.operand(role).filter(|operand| operand.half != Half::Whole && matches!(source, Source::Vector(_)));
        named.map(|operand| operand.half)
    };
    let accumulates = inst.operand(Role::Src2).is_none();
    let third = if accumulates { Role::Vdst } else { Role::Src2 };
    [half(Role::Src0, sources[0]), half(Role::Src1, sources[1]), half(third, sources[2]), None]
}

pub(crate) fn destination_source(dst: Option<Reg>) -> Source {
    match dst {
        Some(Reg { file: RegFile::Vector, first, .. }) => Source::Vector(first),
        Some(Reg { file: RegFile::Accum, first, .. }) => Source::Accum(first),
        Some(Reg { file: RegFile::Scalar, first, .. }) => Source::Scalar(first),
        None => Source::None,
    }
}

/// The source of a role, in a type.
pub(crate) fn by_role(inst: &Inst, role: Role, ty: Ty, signed64: bool) -> Source {
    inst.operand(role).map_or(Source::None, |operand| source(operand, ty, signed64))
}

/// The scalar register code of an operand.
pub(crate) fn scalar_of(inst: &Inst, role: Role) -> Option<u16> {
    inst.operand(role).and_then(Operand::reg).filter(|reg| reg.file == RegFile::Scalar).map(|reg| reg.first)
}
