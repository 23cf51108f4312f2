//! What the names of instructions say. It is found once for each of them: to look for the parts of a name takes longer than to decode.

use rustc_hash::FxHashMap;

use wavetap_amdgpu::{Branch, Condition, Encoding, Flags, Inst, Memory, Target, Variant};

use super::code::meaning;
use super::copied::Move;
use super::events::EventNames;
use super::matrix::Shape;
use super::op::{Class, Meaning};
use super::pair;
use super::sampler::is_sampling;
use super::undefined::Kind;

/// What the name of an instruction says.
#[derive(Clone, Copy)]
pub(super) struct Named {
    /// What it does; none is not known.
    pub meaning: Option<Meaning>,
    pub class: Class,
    /// The trace may count something there, which its operands decide.
    pub may_be_site: bool,
    /// See [`super::op::Op::is_plain`]; where it is a site it is not.
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
    pub(super) fn of(target: Target, inst: &Inst) -> Named {
        let variant = inst.variant;
        let name = variant.name;
        let class = classify(variant);
        Named {
            meaning: meaning(target, inst),
            class,
            may_be_site: may_be_site(variant),
            plain: is_plain(variant, class),
            trans: variant.flags.contains(Flags::TRANS),
            signed64: is_signed64(name),
            dot: name.starts_with("v_dot"),
            accum_write: name == "v_accvgpr_write_b32",
            accum_read: name == "v_accvgpr_read_b32",
            scalar_buffer: name.starts_with("s_buffer_"),
            samples: is_sampling(name),
            matrix: Shape::parse(name),
            traits: Traits::of(variant, class),
            events: (!target.event_hazards().is_empty()).then(|| EventNames::of(variant)),
            halves: pair::rows(target, inst),
        }
    }
}

/// What is said of the instructions that a device has met.
#[derive(Default)]
pub(super) struct Names(FxHashMap<(usize, u8, bool), Named>);

impl Names {
    /// [`Named::of`].
    pub(super) fn of(&mut self, target: Target, inst: &Inst) -> Named {
        let odd = inst.modifiers.gds || inst.modifiers.tfe;
        let key = (std::ptr::from_ref(inst.variant).addr(), target.wave_size() as u8, odd);
        *self.0.entry(key).or_insert_with(|| Named::of(target, inst))
    }
}

/// A 32-bit literal is sign-extended where the operation is one on signed 64-bit numbers, and zero-extended elsewhere.
fn is_signed64(name: &str) -> bool {
    name.contains("_i64")
}

fn classify(variant: &Variant) -> Class {
    use Encoding as E;
    let name = variant.name;
    match variant.encoding {
        E::Sop1 | E::Sop2 | E::Sopk | E::Sopc => {
            if matches!(variant.branch, Branch::Call | Branch::IndirectCall | Branch::IndirectJump) {
                Class::Branch
            } else {
                Class::Salu
            }
        }
        E::Sopp => {
            if name.starts_with("s_cbranch") || name == "s_branch" {
                Class::Branch
            } else if variant.flags.contains(Flags::WAIT) || name == "s_barrier" {
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
    let name = variant.name;
    let kind = match class {
        Class::Valu | Class::Vmem => true,
        Class::Salu => {
            let others = [
                "s_getpc",
                "s_get_pc",
                "s_getreg",
                "s_get_shader_cycles",
                "s_setreg",
                "s_setvskip",
                "s_set_vgpr_msb",
                "s_subvector",
                "s_cbranch",
                "s_sendmsg",
                "s_add_pc",
                "s_barrier",
                "s_sleep",
            ];
            !others.iter().any(|other| name.starts_with(other))
        }
        Class::Smem => name.starts_with("s_load_") || name.starts_with("s_buffer_load_"),
        Class::Lds => !name.contains("gws"),
        Class::Wait => name.starts_with("s_wait"),
        Class::Branch => false,
        Class::Other => matches!(name, "s_nop" | "s_delay_alu" | "s_clause"),
    };
    kind && variant.branch == Branch::None
}

/// Whether there are instructions of this name that the trace counts. The list, with that of `classify_site`, is the emulator's own on purpose: it is what
/// the counters are compared with.
fn may_be_site(variant: &Variant) -> bool {
    let name = variant.name;
    let narrows = ["s_and_", "s_andn1_", "s_andn2_", "v_cmpx_"].iter().any(|start| name.starts_with(start));
    narrows || (name.starts_with("s_cbranch_") && variant.branch != Branch::Conditional(Condition::Debug))
}

/// Which of the register numbers that an instruction names M0 is added to.
#[derive(Clone, Copy)]
pub(super) struct Relative {
    pub source: bool,
    pub destination: bool,
    /// Ten bits for the source and ten from bit 16 on for the destination; otherwise the whole of it for both.
    pub parts: bool,
    /// Both registers are read and written.
    pub swaps: bool,
}

impl Relative {
    pub(super) fn of(name: &str) -> Option<Relative> {
        let swaps = name.starts_with("v_swaprel");
        let (source, destination) = (swaps || name.contains("movrels"), swaps || name.contains("movreld") || name.contains("movrelsd"));
        (source || destination).then_some(Relative { source, destination, parts: swaps || name.contains("movrelsd_2"), swaps })
    }

    /// The bits of M0 that count.
    pub(super) fn bits(self) -> u32 {
        if self.parts { 0x03ff_03ff } else { u32::MAX }
    }

    /// What is added to the numbers of the source and of the destination.
    pub(super) fn offsets(self, m0: u32) -> [u32; 2] {
        let [source, destination] = if self.parts { [m0 & 0x3ff, m0 >> 16 & 0x3ff] } else { [m0, m0] };
        [if self.source { source } else { 0 }, if self.destination { destination } else { 0 }]
    }
}

/// What the name of an instruction says of undefined bits.
#[derive(Clone, Copy)]
pub(super) struct Traits {
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
    pub(super) fn of(variant: &Variant, class: Class) -> Traits {
        let name = variant.name;
        let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        let starts = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
        let kind = match (class, variant.branch) {
            _ if starts(&["s_setreg", "s_set_vgpr_msb", "s_getreg", "s_barrier"]) => Kind::Nothing,
            // The exchanges between lanes are computations.
            (Class::Lds, _) if has(&["permute", "swizzle"]) => Kind::Compute,
            (Class::Smem | Class::Vmem | Class::Lds, _) => Kind::Memory,
            (Class::Branch, Branch::Conditional(Condition::Scc0 | Condition::Scc1)) => Kind::BranchScc,
            (Class::Branch, Branch::Conditional(Condition::VccZ | Condition::VccNz)) => Kind::BranchVcc,
            (Class::Branch, _) => Kind::Memory,
            (Class::Valu | Class::Salu, _) => Kind::Compute,
            (Class::Wait | Class::Other, _) => Kind::Nothing,
        };
        Traits {
            kind,
            lanes: has(&["readlane", "readfirstlane", "writelane", "permlane", "movrel", "swap", "mov_b64_dpp"]),
            parts: has(&["16", "fp8", "bf8", "u8"]),
            matrix: starts(&["v_mfma", "v_smfmac", "v_wmma", "v_swmmac"]),
            selects_lane: has(&["readlane", "writelane"]),
            relative: Relative::of(name),
            moves: Move::named(name),
        }
    }
}
