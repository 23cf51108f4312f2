//! What is known of an instruction by its operation and form. It is found once for each of them.

use rustc_hash::FxHashMap;

use wavetap_amdgpu::{Branch, Condition, Encoding, Flags, Inst, MaskOp, Memory, Opcode, OpcodeFlags, Target, Variant};

use super::{Class, Meaning};
use crate::exec::matrix::mfma::Shape;
use crate::exec::memory::sampler::is_sampling;
use crate::exec::pair;
use crate::run::code::meaning;
use crate::shadow::event_hazard::EventNames;
use crate::strict::shadow_copy::Move;
use crate::strict::undefined::Kind;

/// What is known of an instruction by its operation and form.
#[derive(Clone, Copy)]
pub(crate) struct Named {
    /// What it does; none is not known.
    pub meaning: Option<Meaning>,
    pub class: Class,
    /// The trace may count something there, which its operands decide.
    pub may_be_site: bool,
    /// See [`super::Op::is_plain`]; where it is a site it is not.
    pub plain: bool,
    pub trans: bool,
    pub signed64: bool,
    pub dot: bool,
    pub accum_write: bool,
    pub accum_read: bool,
    pub scalar_buffer: bool,
    pub samples: bool,
    pub matrix: Option<Shape>,
    /// What it does to undefined bits.
    pub traits: Traits,
    /// What it is for hazards that are no matter of slots, where the target has any.
    pub events: Option<EventNames>,
    /// The rows that the operations of a pair have alone.
    pub halves: Option<[&'static Variant; 2]>,
}

impl Named {
    /// What is said of an instruction. Of its modifiers only GDS and TFE count.
    pub(crate) fn of(target: Target, inst: &Inst) -> Named {
        let variant = inst.variant;
        let opcode = variant.opcode;
        let class = classify(variant);
        Named {
            meaning: meaning(target, inst),
            class,
            may_be_site: may_be_site(variant),
            plain: is_plain(variant, class),
            trans: variant.flags.contains(Flags::TRANS),
            signed64: opcode.is_any(OpcodeFlags::SIGNED_LITERAL),
            dot: opcode.is_any(OpcodeFlags::DOT),
            accum_write: opcode == Opcode::V_ACCVGPR_WRITE_B32,
            accum_read: opcode == Opcode::V_ACCVGPR_READ_B32,
            scalar_buffer: opcode.is_any(OpcodeFlags::SCALAR_BUFFER),
            samples: is_sampling(opcode),
            matrix: Shape::of(opcode),
            traits: Traits::of(variant, class),
            events: (!target.event_hazards().is_empty()).then(|| EventNames::of(variant)),
            halves: pair::rows(target, inst),
        }
    }
}

/// What is said of the instructions that a device has met.
#[derive(Default)]
pub(crate) struct Names(FxHashMap<(usize, u8, bool), Named>);

impl Names {
    /// [`Named::of`].
    pub(crate) fn of(&mut self, target: Target, inst: &Inst) -> Named {
        let odd = inst.modifiers.gds || inst.modifiers.tfe;
        let key = (std::ptr::from_ref(inst.variant).addr(), target.wave_size() as u8, odd);
        *self.0.entry(key).or_insert_with(|| Named::of(target, inst))
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
fn is_plain(variant: &Variant, class: Class) -> bool {
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

/// Which of the register numbers that an instruction names M0 is added to.
#[derive(Clone, Copy)]
pub(crate) struct Relative {
    pub source: bool,
    pub destination: bool,
    /// Ten bits for the source and ten from bit 16 on for the destination; otherwise the whole of it for both.
    pub parts: bool,
    /// Both registers are read and written.
    pub swaps: bool,
}

impl Relative {
    pub(crate) fn of(opcode: Opcode) -> Option<Relative> {
        let (source, destination, parts, swaps) = match opcode {
            Opcode::S_MOVRELS_B32 | Opcode::S_MOVRELS_B64 | Opcode::V_MOVRELS_B32 => (true, false, false, false),
            Opcode::S_MOVRELD_B32 | Opcode::S_MOVRELD_B64 | Opcode::V_MOVRELD_B32 => (false, true, false, false),
            Opcode::V_MOVRELSD_B32 => (true, true, false, false),
            Opcode::S_MOVRELSD_2_B32 | Opcode::V_MOVRELSD_2_B32 => (true, true, true, false),
            Opcode::V_SWAPREL_B32 => (true, true, true, true),
            _ => return None,
        };
        Some(Relative { source, destination, parts, swaps })
    }

    /// The bits of M0 that count.
    pub(crate) fn bits(self) -> u32 {
        if self.parts { 0x03ff_03ff } else { u32::MAX }
    }

    /// What is added to the numbers of the source and of the destination.
    pub(crate) fn offsets(self, m0: u32) -> [u32; 2] {
        let [source, destination] = if self.parts { [m0 & 0x3ff, m0 >> 16 & 0x3ff] } else { [m0, m0] };
        [if self.source { source } else { 0 }, if self.destination { destination } else { 0 }]
    }
}

/// What an operation does with undefined bits.
#[derive(Clone, Copy)]
pub(crate) struct Traits {
    pub kind: Kind,
    /// It moves values between lanes.
    pub lanes: bool,
    /// It may write parts of registers.
    pub parts: bool,
    pub matrix: bool,
    pub selects_lane: bool,
    pub relative: Option<Relative>,
    /// All that it does is to move bits.
    pub moves: Option<Move>,
}

impl Traits {
    pub(crate) fn of(variant: &Variant, class: Class) -> Traits {
        let opcode = variant.opcode;
        // Of a pair of operations: either one's.
        let is = |flags: OpcodeFlags| variant.opcode_flags.intersects(flags);
        let kind = match (class, variant.branch) {
            _ if is(OpcodeFlags::HARDWARE_REGISTER | OpcodeFlags::SET_VGPR_MSB | OpcodeFlags::BARRIER) => Kind::Nothing,
            // The exchanges between lanes are computations.
            (Class::Lds, _) if is(OpcodeFlags::CROSSBAR) => Kind::Compute,
            (Class::Smem | Class::Vmem | Class::Lds, _) => Kind::Memory,
            (Class::Branch, Branch::Conditional(Condition::Scc0 | Condition::Scc1)) => Kind::BranchScc,
            (Class::Branch, Branch::Conditional(Condition::VccZ | Condition::VccNz)) => Kind::BranchVcc,
            (Class::Branch, _) => Kind::Memory,
            (Class::Valu | Class::Salu, _) => Kind::Compute,
            (Class::Wait | Class::Other, _) => Kind::Nothing,
        };
        Traits {
            kind,
            lanes: is(OpcodeFlags::MOVES_LANES),
            parts: is(OpcodeFlags::MAY_WRITE_PART),
            matrix: is(OpcodeFlags::MATRIX),
            selects_lane: matches!(opcode, Opcode::V_READLANE_B32 | Opcode::V_WRITELANE_B32),
            relative: Relative::of(opcode),
            moves: Move::named(opcode),
        }
    }
}
