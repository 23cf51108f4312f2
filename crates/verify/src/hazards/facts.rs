//! What an instruction is, as far as the rules about wait states ask: found once for each, so that a rule is only asked
//! about pairs that it may apply to.

use rustc_hash::FxHashMap;

use super::super::matrix;
use super::{RULES, WaitRule, is_dpp, is_lds, is_vector_memory, swaps_rows, wide_data, writes_part};
use wavetap_amdgpu::{
    Encoding, Flags, Implicit, Inst, Memory, Opcode, OpcodeFlags, Reg, RegFile, Value, WaitStates, scalar,
};
use wavetap_analysis::dataflow::RegSet;

bitflags::bitflags! {
    /// Properties of an instruction, and of the target that it is for. A property may be there though it does not hold,
    /// where finding out costs more than asking a rule; it is never missing.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub(in crate) struct Facts: u64 {
        /// Executes on the vector ALU.
        const VALU = 1;
        /// Executes on the scalar ALU.
        const SALU = 1 << 1;
        /// Vector memory.
        const VECTOR_MEMORY = 1 << 2;
        /// Takes vector registers elsewhere: memory, LDS, export.
        const MEMORY_SIDE = 1 << 3;
        /// Uses vector registers: on the vector ALU, or to take them elsewhere.
        const USES = 1 << 4;
        /// Writes `sN` or VCC.
        const WRITES_SGPR = 1 << 5;
        const WRITES_VCC = 1 << 6;
        const WRITES_EXEC = 1 << 7;
        const WRITES_M0 = 1 << 8;
        /// Writes a vector or accumulation register.
        const WRITES_VECTOR = 1 << 9;
        /// Reads a scalar register other than EXEC.
        const READS_SGPR = 1 << 10;
        /// Reads a vector or accumulation register.
        const READS_VECTOR = 1 << 11;
        const DPP = 1 << 12;
        /// `v_div_fmas`.
        const DIV_FMAS = 1 << 13;
        /// Its lane may be chosen by a scalar register.
        const SELECTS_LANE = 1 << 14;
        /// `v_readlane`, `v_writelane`, `v_readfirstlane`.
        const LANE = 1 << 15;
        /// Sends a message, or goes to global data share.
        const MESSAGE = 1 << 16;
        /// M0 may be an index of it.
        const INDEXES = 1 << 17;
        /// Stores wide data that it takes late.
        const WIDE_STORE = 1 << 18;
        const TRANS = 1 << 19;
        /// Writes a part of a register.
        const PARTIAL = 1 << 20;
        /// Names VCCZ or EXECZ.
        const NAMES_ZERO_FLAG = 1 << 21;
        /// Names EXEC.
        const NAMES_EXEC = 1 << 22;
        /// Accesses a hardware register.
        const HARDWARE_REGISTER = 1 << 23;
        /// Returns from the trap handler.
        const TRAP_RETURN = 1 << 24;
        const SWAPS_ROWS = 1 << 25;
        /// A matrix instruction.
        const MATRIX = 1 << 26;
        /// A matrix instruction, or to or from accumulation registers.
        const MATRIX_SIDE = 1 << 27;
        /// To or from accumulation registers.
        const ACCUM_MOVE = 1 << 28;
        const DOT = 1 << 29;
        /// A fused multiply-add in double precision.
        const FMA_F64 = 1 << 30;
        /// The target forwards fewer results in hardware.
        const STRICT = 1 << 31;
        /// The target is of gfx950.
        const GFX950 = 1 << 32;
        /// The target is of gfx908.
        const GFX908 = 1 << 33;
        /// The target has a rule more about M0.
        const INDEXED_BY_M0 = 1 << 34;
    }
}

/// Rules by number: those of `hazards`, then those of `matrix`.
pub(super) type Numbers = u32;

/// The rule of a number.
pub(super) fn rule(number: usize) -> &'static WaitRule {
    RULES.get(number).unwrap_or_else(|| &matrix::RULES[number - RULES.len()])
}

/// All rules, by number.
fn rules() -> impl Iterator<Item = (usize, &'static WaitRule)> {
    RULES.iter().chain(&matrix::RULES).enumerate()
}

/// The numbers of a set, ascending.
pub(super) fn each(mut numbers: Numbers) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = numbers.trailing_zeros() as usize;
        numbers &= numbers.checked_sub(1)?;
        Some(lowest)
    })
}

/// Which rules an instruction may be the producer of, and which the consumer of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Sides {
    pub(super) produces: Numbers,
    pub(super) consumes: Numbers,
}

impl Sides {
    fn of(facts: Facts) -> Sides {
        let numbers = |concerns: fn(&WaitRule) -> Facts| {
            let may_be = rules().filter(|(_, rule)| facts.contains(concerns(rule)));
            may_be.fold(0, |numbers, (number, _)| numbers | 1 << number)
        };
        Sides { produces: numbers(|rule| rule.producer), consumes: numbers(|rule| rule.consumer) }
    }
}

/// Tells the [`Sides`] of instructions of one target.
pub(super) struct Teller {
    target: Facts,
    /// Most instructions of a body have the properties of others.
    told: FxHashMap<Facts, Sides>,
    /// What was told last: many are like the one before.
    last: (Facts, Sides),
}

impl Teller {
    pub(super) fn new(states: WaitStates, indexed_by_m0: bool) -> Teller {
        let mut target = Facts::empty();
        target.set(Facts::STRICT, matches!(states, WaitStates::Gfx94x | WaitStates::Gfx950));
        target.set(Facts::GFX950, states == WaitStates::Gfx950);
        target.set(Facts::GFX908, states == WaitStates::Gfx908);
        target.set(Facts::INDEXED_BY_M0, indexed_by_m0);
        Teller { target, told: FxHashMap::default(), last: (Facts::empty(), Sides::of(Facts::empty())) }
    }

    pub(super) fn sides(&mut self, inst: &Inst) -> Sides {
        let facts = Facts::of(inst) | self.target;
        if facts != self.last.0 {
            self.last = (facts, *self.told.entry(facts).or_insert_with(|| Sides::of(facts)));
        }
        let told = self.last.1;
        // No rule has instructions like this one come first: a scalar instruction that writes neither M0 nor a hardware
        // register.
        let harmless = is_scalar(inst)
            && !facts.intersects(Facts::VALU | Facts::WRITES_M0)
            && !inst.variant.opcode_flags.contains(OpcodeFlags::STATEFUL);
        Sides { produces: if harmless { 0 } else { told.produces }, ..told }
    }
}

fn is_scalar(inst: &Inst) -> bool {
    matches!(inst.variant.encoding, Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopk | Encoding::Sopc | Encoding::Sopp)
}

impl Facts {
    fn of(inst: &Inst) -> Facts {
        let variant = inst.variant;
        let mut facts = Facts::of_variant(inst);
        for operand in &inst.operands {
            let Value::Reg(reg) = operand.value else { continue };
            facts |= Facts::of_named(reg);
            if operand.access.reads() {
                facts |= Facts::of_read(reg);
            }
            if operand.access.writes() {
                facts |= Facts::of_written(reg);
            }
        }
        let not_sgprs = Implicit::SCC | Implicit::EXEC | Implicit::MODE;
        facts.add_if(Facts::READS_SGPR, !(variant.implicit_reads - not_sgprs).is_empty() || inst.modifiers.gds);
        let writes = variant.implicit_writes;
        facts.add_if(
            Facts::WRITES_SGPR,
            writes.intersects(Implicit::VCC | Implicit::FLAT_SCRATCH | Implicit::XNACK_MASK),
        );
        facts.add_if(Facts::WRITES_VCC, writes.contains(Implicit::VCC));
        facts.add_if(Facts::WRITES_EXEC, writes.contains(Implicit::EXEC));
        facts.add_if(Facts::WRITES_M0, writes.contains(Implicit::M0));
        facts
    }

    fn add_if(&mut self, facts: Facts, met: bool) {
        if met {
            *self |= facts;
        }
    }

    /// What its name, its flags and its modifiers say.
    fn of_variant(inst: &Inst) -> Facts {
        let variant = inst.variant;
        let mut facts = Facts::empty();
        let (flags, opcode_flags) = (variant.flags, variant.opcode_flags);
        facts.add_if(Facts::VALU | Facts::USES, flags.contains(Flags::VALU));
        facts.add_if(Facts::SALU, flags.contains(Flags::SALU));
        facts.add_if(Facts::MESSAGE, variant.memory == Memory::Message || inst.modifiers.gds);
        facts.add_if(Facts::HARDWARE_REGISTER, opcode_flags.contains(OpcodeFlags::HARDWARE_REGISTER));
        facts.add_if(Facts::DPP, is_dpp(inst));
        if is_vector_memory(inst) {
            facts |= Facts::VECTOR_MEMORY | Facts::MEMORY_SIDE | Facts::USES;
            facts.add_if(Facts::WIDE_STORE, wide_data(inst).is_some());
        } else if is_lds(inst) || variant.encoding == Encoding::Exp {
            facts |= Facts::MEMORY_SIDE | Facts::USES;
        }
        if !flags.contains(Flags::VALU) && (is_scalar(inst) || variant.encoding == Encoding::Smem) {
            facts.add_if(Facts::MESSAGE, inst.opcode() == Opcode::S_TTRACEDATA);
            facts.add_if(Facts::TRAP_RETURN, opcode_flags.contains(OpcodeFlags::TRAP_RETURN));
            facts.add_if(Facts::INDEXES, opcode_flags.contains(OpcodeFlags::SCALAR_RELATIVE) || inst.modifiers.lds);
            return facts;
        }
        // LDS and memory with M0 are among these; too many do no harm here.
        if variant.memory != Memory::None
            || variant.encoding == Encoding::Exp
            || opcode_flags.contains(OpcodeFlags::INTERP)
        {
            facts |= Facts::INDEXES;
        }
        facts.add_if(Facts::TRANS, flags.contains(Flags::TRANS));
        facts.add_if(Facts::PARTIAL, writes_part(inst));
        facts.add_if(Facts::DIV_FMAS, opcode_flags.contains(OpcodeFlags::DIV_FMAS));
        facts.add_if(Facts::SWAPS_ROWS, swaps_rows(inst));
        match inst.opcode() {
            Opcode::V_READLANE_B32 | Opcode::V_WRITELANE_B32 => facts |= Facts::SELECTS_LANE | Facts::LANE,
            Opcode::V_READFIRSTLANE_B32 => facts |= Facts::LANE,
            Opcode::V_FMA_F64 | Opcode::V_FMAC_F64 => facts |= Facts::FMA_F64,
            _ => {}
        }
        if matrix::concerns(inst) {
            facts.add_if(Facts::MATRIX | Facts::MATRIX_SIDE, matrix::is_matrix(inst));
            facts.add_if(Facts::ACCUM_MOVE | Facts::MATRIX_SIDE, opcode_flags.contains(OpcodeFlags::ACCUM_MOVE));
            facts.add_if(Facts::DOT, opcode_flags.contains(OpcodeFlags::DOT));
        }
        facts
    }

    fn of_named(reg: Reg) -> Facts {
        let mut facts = Facts::empty();
        if reg.file == RegFile::Scalar {
            facts.add_if(Facts::NAMES_ZERO_FLAG, matches!(reg.first, scalar::VCCZ | scalar::EXECZ));
            facts.add_if(Facts::NAMES_EXEC, reg.overlaps(Reg::EXEC));
        }
        facts
    }

    fn of_read(reg: Reg) -> Facts {
        match reg.file {
            RegFile::Scalar if matches!(reg.first, scalar::EXEC | scalar::EXECZ) => Facts::empty(),
            RegFile::Scalar => Facts::READS_SGPR,
            RegFile::Vector | RegFile::Accum => Facts::READS_VECTOR,
        }
    }

    fn of_written(reg: Reg) -> Facts {
        if reg.file != RegFile::Scalar {
            return Facts::WRITES_VECTOR;
        }
        let mut facts = Facts::empty();
        facts.add_if(Facts::WRITES_SGPR, reg.first < scalar::VCC + 2);
        let positions = RegSet::positions(reg);
        let overlaps = |first: u16, count: usize| {
            positions.start < usize::from(first) + count && usize::from(first) < positions.end
        };
        facts.add_if(Facts::WRITES_VCC, overlaps(scalar::VCC, 2));
        facts.add_if(Facts::WRITES_EXEC, overlaps(scalar::EXEC, 2));
        facts.add_if(Facts::WRITES_M0, overlaps(scalar::M0, 1));
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Known, Pair};
    use super::*;
    use wavetap_amdgpu::{Target, Variant};
    use wavetap_analysis::kernel::random::Random;

    /// An instruction with any fields, of few registers, so that many are the same.
    fn random_inst(random: &mut Random, target: Target, variant: &Variant) -> Option<Inst> {
        const SCALARS: [u16; 6] = [20, scalar::VCC, scalar::VCC, scalar::EXEC, scalar::M0, scalar::VCCZ];
        // Some have fields that are right by chance only: registers that must be even.
        let mut inst = (0..100).find_map(|_| {
            let word = u128::from(random.bits()) << 64 | u128::from(random.bits());
            wavetap_amdgpu::decode(target, &(word & !variant.mask | variant.matches).to_le_bytes()).ok()
        })?;
        for operand in &mut inst.operands {
            let choices = SCALARS.len() as u64 - u64::from(operand.access.writes());
            if let Value::Reg(reg) = &mut operand.value {
                reg.first = if reg.file == RegFile::Scalar {
                    SCALARS[random.below(choices) as usize]
                } else {
                    random.below(3) as u16
                };
            }
            // Few of the hardware registers are asked for.
            if inst.variant.opcode_flags.contains(OpcodeFlags::HARDWARE_REGISTER)
                && let Value::Imm(fields) = &mut operand.value
            {
                *fields = 2 + random.below(2) as i64;
            }
        }
        Some(inst)
    }

    fn is_harmless(inst: &Inst) -> bool {
        is_scalar(inst)
            && !inst.variant.flags.contains(Flags::VALU)
            && !inst.variant.opcode_flags.contains(OpcodeFlags::STATEFUL)
            && !inst.writes().any(|reg| reg.overlaps(Reg::M0))
    }

    #[test]
    fn no_rule_applies_where_it_is_not_asked() {
        let mut applied = 0;
        for target in ["gfx900", "gfx908", "gfx90a", "gfx942", "gfx950"] {
            let target = Target::by_name(target).expect("a target");
            let (states, indexed_by_m0) = (target.wait_states(), !target.lds_limit_in_m0());
            let (mut random, mut teller) = (Random::new(7), Teller::new(states, indexed_by_m0));
            let rows: Vec<&Variant> = wavetap_amdgpu::variants(target).collect();
            let insts: Vec<Inst> = rows
                .iter()
                .cycle()
                .take(3 * rows.len())
                .filter_map(|row| random_inst(&mut random, target, row))
                .collect();
            let known = |inst| Known { inst, reads: inst.reads().collect(), writes: inst.writes().collect() };
            let known: Vec<(Known<'_>, Sides)> = insts.iter().map(|inst| (known(inst), teller.sides(inst))).collect();
            // Pairs that some of the rules apply to are rare: half of them are looked for, by rule and by the beginning
            // of the producer's name.
            let mut groups: FxHashMap<(usize, &str), Vec<usize>> = FxHashMap::default();
            for (index, (inst, sides)) in known.iter().enumerate() {
                let name = inst.name();
                each(sides.produces)
                    .for_each(|number| groups.entry((number, &name[..name.len().min(10)])).or_default().push(index));
            }
            let groups_of =
                |number: usize| groups.iter().filter(move |((rule, _), _)| *rule == number).map(|(_, group)| group);
            let groups: Vec<Vec<&Vec<usize>>> =
                (0..rules().count()).map(|number| groups_of(number).collect()).collect();
            for (consumer, consumer_sides) in &known {
                let consumes: Vec<usize> =
                    each(consumer_sides.consumes).filter(|number| !groups[*number].is_empty()).collect();
                for attempt in 0..100 {
                    let mut choose = |count: usize| random.below(count as u64) as usize;
                    let index = if attempt % 2 == 0 || consumes.is_empty() {
                        choose(known.len())
                    } else {
                        let groups = &groups[consumes[choose(consumes.len())]];
                        let group = groups[choose(groups.len())];
                        group[choose(group.len())]
                    };
                    let (producer, producer_sides) = &known[index];
                    if is_harmless(producer) {
                        assert_eq!(producer_sides.produces, 0, "{}", producer.name());
                        continue;
                    }
                    let pair = Pair { producer, consumer, states, indexed_by_m0 };
                    for (number, rule) in rules() {
                        let Some(slots) = (rule.needed)(&pair) else { continue };
                        let asked = (producer_sides.produces & consumer_sides.consumes) >> number & 1 != 0;
                        assert!(asked, "{}: {:?}, then {:?}", rule.what, producer.inst, consumer.inst);
                        assert!(slots <= rule.most, "{}: {slots}", rule.what);
                        applied |= 1 << number;
                    }
                }
            }
        }
        let never: Vec<&str> =
            rules().filter(|(number, _)| applied >> number & 1 == 0).map(|(_, rule)| rule.what).collect();
        assert!(never.is_empty(), "never applied: {never:?}");
    }
}
