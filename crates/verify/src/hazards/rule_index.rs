//! Which rules about wait states an instruction may take part in: found once for each instruction, so that a rule is
//! checked only for pairs that it may apply to.

use rustc_hash::FxHashMap;

use super::instruction_facts::{Facts, is_scalar};
use super::matrix;
use super::wait_rule::WaitRule;
use super::wait_rules::RULES;
use wavetap_amdgpu::{Inst, OpcodeFlags, WaitStates};

/// Rules by number: those of `wait_rules`, then those of `matrix`.
pub(crate) type Numbers = u32;

/// The rule of a number.
pub(crate) fn rule(number: usize) -> &'static WaitRule {
    RULES.get(number).unwrap_or_else(|| &matrix::RULES[number - RULES.len()])
}

/// All rules, by number.
fn rules() -> impl Iterator<Item = (usize, &'static WaitRule)> {
    RULES.iter().chain(&matrix::RULES).enumerate()
}

/// The numbers of a set, ascending.
pub(crate) fn each(mut numbers: Numbers) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = numbers.trailing_zeros() as usize;
        numbers &= numbers.checked_sub(1)?;
        Some(lowest)
    })
}

/// Which rules an instruction may be the producer of, and which the consumer of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sides {
    pub(crate) produces: Numbers,
    pub(crate) consumes: Numbers,
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

/// Finds the [`Sides`] of instructions of one target.
pub(crate) struct SidesCache {
    target: Facts,
    /// Most instructions of a body have the properties of others.
    known: FxHashMap<Facts, Sides>,
    /// What was known last: many are like the one before.
    last: (Facts, Sides),
}

impl SidesCache {
    pub(crate) fn new(states: WaitStates, indexed_by_m0: bool) -> SidesCache {
        let mut target = Facts::empty();
        target.set(Facts::STRICT, matches!(states, WaitStates::Gfx94x | WaitStates::Gfx950));
        target.set(Facts::GFX950, states == WaitStates::Gfx950);
        target.set(Facts::GFX908, states == WaitStates::Gfx908);
        target.set(Facts::INDEXED_BY_M0, indexed_by_m0);
        SidesCache { target, known: FxHashMap::default(), last: (Facts::empty(), Sides::of(Facts::empty())) }
    }

    pub(crate) fn sides(&mut self, inst: &Inst) -> Sides {
        let facts = Facts::of(inst) | self.target;
        if facts != self.last.0 {
            self.last = (facts, *self.known.entry(facts).or_insert_with(|| Sides::of(facts)));
        }
        let known = self.last.1;
        // No rule has instructions like this one come first: a scalar instruction that writes neither M0 nor a hardware
        // register.
        let harmless = is_scalar(inst)
            && !facts.intersects(Facts::VALU | Facts::WRITES_M0)
            && !inst.variant.opcode_flags.contains(OpcodeFlags::STATEFUL);
        Sides { produces: if harmless { 0 } else { known.produces }, ..known }
    }
}

#[cfg(test)]
mod tests {
    use super::super::wait_rule::{Known, Pair};
    use super::*;
    use wavetap_amdgpu::{Flags, Reg, RegFile, Target, Value, Variant, scalar};
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
            // Few of the hardware registers are named.
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
            let (mut random, mut cache) = (Random::new(7), SidesCache::new(states, indexed_by_m0));
            let rows: Vec<&Variant> = wavetap_amdgpu::variants(target).collect();
            let insts: Vec<Inst> = rows
                .iter()
                .cycle()
                .take(3 * rows.len())
                .filter_map(|row| random_inst(&mut random, target, row))
                .collect();
            let known = |inst| Known { inst, reads: inst.reads().collect(), writes: inst.writes().collect() };
            let known: Vec<(Known<'_>, Sides)> = insts.iter().map(|inst| (known(inst), cache.sides(inst))).collect();
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
