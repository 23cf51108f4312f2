//! Chooses operands and modifiers for a row of the instruction tables.

use wavetap::isa::{
    self, Accepts, Coding, Encoding, Flags, Implicit, Inst, Modifier, RegFile, Role, Target, Value, Variant, scalar,
};

use super::machine::{FIRST_SCALAR, FIRST_VECTOR, Registers};
use super::random::Random;

/// What a definition wants of the operands.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wishes {
    /// No inline float constants: what they are in this operation is not said anywhere.
    pub no_float_constants: bool,
    /// No literals.
    pub no_literals: bool,
    /// No modifiers of sources and result.
    pub plain: bool,
    /// Every operand has registers of its own.
    pub apart: bool,
    /// No constants.
    pub no_inline: bool,
    /// Denormals are kept: what else the operation does with them is not documented.
    pub denormals: bool,
}

/// What a definition chooses itself.
pub struct Special<'a> {
    pub modifier: &'a dyn Fn(&mut Random, Modifier) -> Option<u64>,
    pub operand: &'a dyn Fn(&mut Random, Role) -> Option<u64>,
}

/// The next free registers, and the ones chosen before.
struct Pool {
    vector: u16,
    accum: u16,
    scalar: u16,
    /// Of one dword.
    used: Vec<u16>,
    /// Scalars that the instruction reads: most targets allow one.
    scalars: u32,
    literal: bool,
}

fn valu(variant: &Variant) -> bool {
    variant.flags.contains(Flags::VALU)
}

impl Pool {
    fn vectors(&mut self, random: &mut Random, dwords: u16, even: bool, apart: bool) -> u16 {
        if dwords == 1 && !apart && !even && !self.used.is_empty() && random.one_in(5) {
            return random.pick(&self.used);
        }
        let first = if even { self.vector.next_multiple_of(2) } else { self.vector + u16::from(random.one_in(4)) };
        // One is left between operands, to see whether it is written.
        self.vector = first + dwords + 1;
        if dwords == 1 {
            self.used.push(first);
        }
        first
    }

    fn accums(&mut self, dwords: u16) -> u16 {
        let first = self.accum.next_multiple_of(2);
        self.accum = first + dwords + 1;
        first
    }

    fn scalars(&mut self, dwords: u16) -> u16 {
        let first = self.scalar.next_multiple_of(match dwords {
            1 => 1,
            2 => 2,
            _ => 4,
        });
        self.scalar = first + dwords;
        first
    }
}

/// The number of an operand's field.
fn number(
    random: &mut Random,
    target: Target,
    variant: &Variant,
    at: usize,
    pool: &mut Pool,
    wishes: Wishes,
) -> Option<u64> {
    let spec = &variant.operands[at];
    let kind = spec.kind;
    let lane_mask = if kind.mask { target.wave_size() as u16 / 32 } else { kind.dwords.into() };
    let even = kind.even && target.aligned_vgprs();
    let accepts = |what: Accepts| kind.accepts.intersects(what);
    let source = |register: u64| register | 256;
    let vector_or_accum = |random: &mut Random, pool: &mut Pool| {
        let both = accepts(Accepts::ACCUM) && target.unified_accum() && random.one_in(4);
        if both {
            u64::from(pool.accums(kind.dwords.into())) | 512
        } else {
            pool.vectors(random, kind.dwords.into(), even, wishes.apart).into()
        }
    };
    let written = spec.access != isa::Access::Read && spec.access != isa::Access::None;
    Some(match kind.coding {
        Coding::Vector => {
            pool.vectors(random, kind.dwords.into(), even, wishes.apart || written && kind.dwords > 1).into()
        }
        Coding::VectorAcc => vector_or_accum(random, pool),
        Coding::Accum => pool.accums(kind.dwords.into()).into(),
        Coding::Source | Coding::SourceAcc | Coding::SourceAccum | Coding::Sdwa => {
            // SDWA has a flag for scalars instead of one for vectors.
            let sdwa = kind.coding == Coding::Sdwa;
            let vector = |number: u64| if sdwa { number } else { source(number) };
            let other = |number: u64| if sdwa { number | 256 } else { number };
            let room = !valu(variant) || pool.scalars == 0;
            if written || spec.role == Role::Sdst {
                return Some(if accepts(Accepts::VECTOR) {
                    source(pool.vectors(random, kind.dwords.into(), even, wishes.apart).into())
                } else if lane_mask == target.wave_size() as u16 / 32 && valu(variant) && random.one_in(4) {
                    scalar::VCC.into()
                } else {
                    pool.scalars(lane_mask).into()
                });
            }
            for _ in 0..20 {
                match random.below(12) {
                    0..=5 if accepts(Accepts::VECTOR) => {
                        return Some(vector(pool.vectors(random, kind.dwords.into(), even, wishes.apart).into()));
                    }
                    6 if accepts(Accepts::ACCUM) && (target.unified_accum() || kind.coding != Coding::Source) => {
                        let first = u64::from(pool.accums(kind.dwords.into()));
                        return Some(if kind.coding == Coding::SourceAccum { source(first) } else { first | 3 << 8 });
                    }
                    7 | 8 if accepts(Accepts::SCALAR) && room => {
                        pool.scalars += 1;
                        let special = lane_mask == 1 && random.one_in(6);
                        let code =
                            if special && accepts(Accepts::M0) { m0(target) } else { pool.scalars(lane_mask).into() };
                        return Some(other(code));
                    }
                    9 | 10 if accepts(Accepts::INLINE) && !wishes.no_inline => {
                        let float = 240 + random.below(9);
                        let integer = if random.one_in(2) {
                            128 + random.below(81)
                        } else {
                            random.pick(&[128, 129, 192, 193, 208])
                        };
                        return Some(other(if wishes.no_float_constants || random.one_in(2) {
                            integer
                        } else {
                            float
                        }));
                    }
                    11 if accepts(Accepts::LITERAL) && room && !pool.literal && !wishes.no_literals => {
                        pool.literal = true;
                        pool.scalars += 1;
                        return Some(255);
                    }
                    _ => {}
                }
            }
            if accepts(Accepts::VECTOR) {
                vector(pool.vectors(random, kind.dwords.into(), even, wishes.apart).into())
            } else if accepts(Accepts::SCALAR) {
                other(pool.scalars(lane_mask).into())
            } else {
                return None;
            }
        }
        Coding::SdwaSdst => {
            if random.one_in(2) {
                0
            } else {
                u64::from(pool.scalars(target.wave_size() as u16 / 32)) | 1 << 7
            }
        }
        Coding::Literal if kind.dwords == 2 => super::random::bits(random, super::random::Bits::Double),
        Coding::Literal => super::random::bits(random, super::random::Bits::Single),
        Coding::Signed | Coding::Unsigned => match random.below(3) {
            0 => random.below(70),
            _ => random.next() & (u64::MAX >> (64 - spec.bits.width())),
        },
        Coding::VectorHalf | Coding::VectorLow128 => {
            pool.vectors(random, kind.dwords.into(), even, wishes.apart).into()
        }
        Coding::SrcHalf | Coding::SrcLow128 => {
            source(pool.vectors(random, kind.dwords.into(), even, wishes.apart).into())
        }
        // The lowest bit is the opposite of the first result's.
        Coding::VectorOtherParity => (pool.vectors(random, kind.dwords.into(), even, true) & !1).into(),
        Coding::VectorBehind => return None,
    })
}

fn m0(target: Target) -> u64 {
    // The encoder knows the code: the operand of a move.
    let inst = isa::build(target, "s_mov_b32", &[Value::Reg(isa::Reg::scalar(16, 1)), Value::Reg(isa::Reg::M0)])
        .expect("a move of M0");
    u64::from(isa::encode(target, &inst).expect("it was built")[0])
}

/// Control numbers of DPP that a target has.
fn dpp_control(random: &mut Random, target: Target, variant: &Variant) -> u64 {
    let wide =
        variant.operands.iter().any(|spec| matches!(spec.role, Role::Src0 | Role::Vdst) && spec.kind.dwords == 2);
    if wide && target.wide_broadcast_only() {
        return 0x150 + random.below(16);
    }
    match random.below(8) {
        0 => 0x101 + random.below(15),
        1 => 0x111 + random.below(15),
        2 => 0x121 + random.below(15),
        3 if target.wave_shifts() => random.pick(&[0x130, 0x134, 0x138, 0x13c, 0x142, 0x143]),
        4 => random.pick(&[0x140, 0x141]),
        5 if target.row_newbcast() => 0x150 + random.below(16),
        5 if target.row_share() => random.pick(&[0x150, 0x160]) + random.below(16),
        _ => random.below(256),
    }
}

/// The sources whose signs an instruction may change: of the second of two operations from bit 4 on.
fn signs(variant: &Variant) -> u64 {
    let source = |role: Role| match role {
        Role::Src0 => Some(0),
        Role::Src1 => Some(1),
        Role::Src2 => Some(2),
        Role::Src0Y => Some(4),
        Role::Src1Y => Some(5),
        Role::Src2Y => Some(6),
        _ => None,
    };
    variant
        .operands
        .iter()
        .filter(|spec| spec.kind.signs)
        .filter_map(|spec| source(spec.role))
        .fold(0, |all, at| all | 1 << at)
}

/// The number of a modifier's field.
fn modifier(random: &mut Random, target: Target, variant: &Variant, modifier: Modifier, wishes: Wishes) -> u64 {
    let sources =
        variant.operands.iter().filter(|spec| matches!(spec.role, Role::Src0 | Role::Src1 | Role::Src2)).count() as u32;
    let some = (1_u64 << sources) - 1;
    let often = |random: &mut Random, value: u64| if random.one_in(2) { value } else { 0 };
    let any = random.next();
    match modifier {
        Modifier::DppCtrl => dpp_control(random, target, variant),
        Modifier::RowMask | Modifier::BankMask => {
            if random.one_in(3) {
                any & 15
            } else {
                15
            }
        }
        Modifier::BoundCtrl | Modifier::Fi => any & 1,
        Modifier::Dpp8 => any & 0xff_ffff,
        Modifier::Dpp8Fi => 1 + any % 2,
        Modifier::DstSel | Modifier::Src0Sel | Modifier::Src1Sel => {
            if random.one_in(3) {
                6
            } else {
                any % 7
            }
        }
        Modifier::DstUnused => any % 3,
        Modifier::Sext => often(random, any & 3),
        Modifier::OpSelHi if variant.flags.contains(Flags::PACKED) => {
            if random.one_in(2) {
                some
            } else {
                any & some
            }
        }
        // Operations that mix precisions choose types with it.
        Modifier::OpSelHi => often(random, any & some),
        _ if wishes.plain => 0,
        // Integers have no signs to change.
        Modifier::Neg | Modifier::Abs if !variant.flags.contains(Flags::PACKED) => often(random, any & signs(variant)),
        Modifier::Neg | Modifier::Abs | Modifier::NegHi => often(random, any & some),
        Modifier::OpSel => often(random, any & (some | if variant.encoding == Encoding::Vop3 { 8 } else { 0 })),
        Modifier::Clamp => u64::from(any & 3 == 0),
        Modifier::Omod if any & 3 == 0 => random.below(4),
        _ => 0,
    }
}

/// A random legal encoding of a row, decoded.
pub fn instance(
    random: &mut Random,
    target: Target,
    variant: &'static Variant,
    wishes: Wishes,
    special: &Special,
) -> Option<(Inst, Vec<u8>)> {
    let implicit_vcc = variant.implicit_reads.contains(Implicit::VCC);
    let mut pool = Pool {
        vector: FIRST_VECTOR,
        accum: 0,
        scalar: FIRST_SCALAR,
        used: Vec::new(),
        scalars: u32::from(implicit_vcc),
        // What has a literal inside has no other.
        literal: variant.operands.iter().any(|spec| spec.kind.coding == Coding::Literal),
    };
    if pool.literal {
        pool.scalars += 1;
    }
    let mut word = variant.matches;
    for (which, bits) in &variant.layout.modifiers {
        if bits.mask() & variant.mask != 0 {
            continue;
        }
        let number =
            (special.modifier)(random, *which).unwrap_or_else(|| modifier(random, target, variant, *which, wishes));
        word |= bits.put(number & (u64::MAX >> (64 - bits.width())))?;
    }
    let mut literal = None;
    for at in 0..variant.operands.len() {
        let bits = variant.operands[at].bits;
        let number = match (special.operand)(random, variant.operands[at].role) {
            Some(number) => number,
            None => number(random, target, variant, at, &mut pool, wishes)?,
        };
        if number == 255 && matches!(variant.operands[at].kind.coding, Coding::Source | Coding::Sdwa) {
            literal = Some(super::random::bits(random, super::random::Bits::Word32) as u32);
        }
        // Fields without the lowest bits.
        word = word & !bits.mask() | bits.put(number)? & !variant.mask | variant.matches & bits.mask();
    }
    let mut bytes = word.to_le_bytes()[..usize::from(variant.layout.bytes)].to_vec();
    if let Some(literal) = literal {
        bytes.extend(literal.to_le_bytes());
    }
    let mut padded = bytes.clone();
    padded.resize(24, 0);
    let inst = isa::decode(target, &padded).ok()?;
    if inst.variant != variant || usize::from(inst.size) != bytes.len() {
        return None;
    }
    Some((inst, bytes))
}

/// The registers that an instruction names, with the ones after its operands.
pub fn registers(inst: &Inst) -> Registers {
    let mut all = Registers::default();
    for operand in &inst.operands {
        let Some(reg) = operand.reg() else { continue };
        let dwords = operand.dwords.max(reg.dwords);
        let last = u16::from(dwords);
        match reg.file {
            RegFile::Vector => all.vector.extend(reg.first..=(reg.first + last).min(255)),
            RegFile::Accum => all.accum.extend(reg.first..=(reg.first + last).min(255)),
            RegFile::Scalar if reg.first >= FIRST_SCALAR && reg.first < 100 => {
                all.scalar.extend(reg.first..=reg.first + last)
            }
            RegFile::Scalar => {}
        }
    }
    for list in [&mut all.vector, &mut all.accum, &mut all.scalar] {
        list.sort_unstable();
        list.dedup();
    }
    all
}
