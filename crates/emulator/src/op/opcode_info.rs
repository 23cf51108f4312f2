//! What is known of an instruction by its operation and form. It is found once for each of them.

use wavetap_amdgpu::{Branch, Condition, Encoding, Flags, Inst, MaskOp, Memory, Opcode, OpcodeFlags, Target, Variant};

use super::definedness::DefinednessTraits;
use super::event_facts::EventOpcodeInfo;
use super::matrix_shape::MfmaShape;
use super::sampling::is_sampling;
use super::{Class, pair};

/// What is known of an instruction by its operation and form.
#[derive(Clone, Copy)]
pub(crate) struct OpcodeInfo {
    pub class: Class,
    /// The trace may count something there, which its operands decide.
    pub may_be_site: bool,
    /// See `Op::straight_line`; where it is a site it is not.
    pub straight_line: bool,
    pub trans: bool,
    pub signed64: bool,
    pub dot: bool,
    pub accum_write: bool,
    pub accum_read: bool,
    pub scalar_buffer: bool,
    pub samples: bool,
    pub matrix: Option<MfmaShape>,
    /// What it does to undefined bits.
    pub traits: DefinednessTraits,
    /// What it is for hazards that are no matter of slots, where the target has any.
    pub events: Option<EventOpcodeInfo>,
    /// The rows that the operations of a pair have alone.
    pub halves: Option<[&'static Variant; 2]>,
}

impl OpcodeInfo {
    /// What is said of an instruction. Of its modifiers only GDS and TFE count.
    pub(crate) fn of(target: Target, inst: &Inst) -> OpcodeInfo {
        let variant = inst.variant;
        let opcode = variant.opcode;
        let class = classify(variant);
        OpcodeInfo {
            class,
            may_be_site: may_be_site(variant),
            straight_line: is_straight_line(variant, class),
            trans: variant.flags.contains(Flags::TRANS),
            signed64: opcode.is_any(OpcodeFlags::SIGNED_LITERAL),
            dot: opcode.is_any(OpcodeFlags::DOT),
            accum_write: opcode == Opcode::V_ACCVGPR_WRITE_B32,
            accum_read: opcode == Opcode::V_ACCVGPR_READ_B32,
            scalar_buffer: opcode.is_any(OpcodeFlags::SCALAR_BUFFER),
            samples: is_sampling(opcode),
            matrix: MfmaShape::of(opcode),
            traits: DefinednessTraits::of(variant, class),
            events: (!target.event_hazards().is_empty()).then(|| EventOpcodeInfo::of(variant)),
            halves: pair::rows(target, inst),
        }
    }
}

fn classify(variant: &Variant) -> Class {
    use Encoding as E;
    match variant.encoding {
        E::Sop1 | E::Sop2 | E::Sopk | E::Sopc => {
            if matches!(variant.branch, Branch::Call | Branch::IndirectCall | Branch::IndirectJump) {
                Class::Branch
            } else {
                Class::Salu
            }
        }
        E::Sopp => {
            if matches!(variant.branch, Branch::Jump | Branch::Conditional(_)) {
                Class::Branch
            } else if variant.flags.contains(Flags::WAIT) || variant.opcode == Opcode::S_BARRIER {
                Class::Wait
            } else {
                Class::Other
            }
        }
        E::Smem => Class::Smem,
        E::Ds => Class::Lds,
        E::Flat | E::Global | E::Scratch | E::Mubuf | E::Mtbuf | E::Mimg => Class::Vmem,
        E::Exp => Class::Other,
        _ => match variant.memory {
            Memory::None => Class::Valu,
            _ => Class::Vmem,
        },
    }
}

/// Whether all it does is to change registers and memory, unless it is a site.
fn is_straight_line(variant: &Variant, class: Class) -> bool {
    let opcode = variant.opcode;
    let kind = match class {
        Class::Valu | Class::Vmem => true,
        Class::Salu => {
            const OTHERS: OpcodeFlags = OpcodeFlags::GET_PC
                .union(OpcodeFlags::HARDWARE_REGISTER)
                .union(OpcodeFlags::SET_VSKIP)
                .union(OpcodeFlags::SET_VGPR_MSB)
                .union(OpcodeFlags::SENDMSG)
                .union(OpcodeFlags::BARRIER);
            let alone = matches!(
                opcode,
                Opcode::S_GET_SHADER_CYCLES_U64
                    | Opcode::S_SUBVECTOR_LOOP_BEGIN
                    | Opcode::S_SUBVECTOR_LOOP_END
                    | Opcode::S_ADD_PC_I64
                    | Opcode::S_SLEEP_VAR
            );
            !alone && !opcode.is_any(OTHERS)
        }
        Class::Smem => opcode.is_any(OpcodeFlags::SMEM_LOAD),
        Class::Lds => !opcode.is_any(OpcodeFlags::GWS),
        Class::Wait => opcode != Opcode::S_BARRIER,
        Class::Branch => false,
        Class::Other => matches!(opcode, Opcode::S_NOP | Opcode::S_DELAY_ALU | Opcode::S_CLAUSE),
    };
    kind && variant.branch == Branch::None
}

/// Whether there are instructions of this operation that the trace counts. The list, with that of `classify_site`, is
/// the emulator's own on purpose: it is what the counters are compared with.
fn may_be_site(variant: &Variant) -> bool {
    use MaskOp as M;
    let mask = variant.opcode.mask().map(|mask| mask.operation);
    let narrows = matches!(
        mask,
        Some(
            M::And | M::Andn2 | M::AndSaveexec | M::Andn1Saveexec | M::Andn2Saveexec | M::Andn1Wrexec | M::Andn2Wrexec
        )
    );
    let branches = matches!(variant.branch, Branch::Conditional(condition) if condition != Condition::Debug);
    narrows || branches || variant.opcode.is_any(OpcodeFlags::CMPX)
}
