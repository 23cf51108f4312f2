//! What the vector ALU works on: functions of which compilers make many instructions, and kinds of numbers.

use std::collections::BTreeMap;

use super::super::subject::Subject;
use crate::code::ExecutedInstruction;
use wavetap_amdgpu::{MachineFact, Target};
use wavetap_mix::{Arithmetic, Class, MathFunction, NumberType};

/// Kinds with this part of the vector ALU are named.
const NAMED: f64 = 0.05;
/// So many at most.
const MOST: usize = 3;

/// ` (45 % division, 12 % square root)`: what the vector ALU of a kernel works on, by modelled cycles, or by executed
/// instructions and their rates; nothing where that is not known.
pub(super) fn of_vector_alu(subject: &Subject<'_>) -> String {
    let (Some(code), Some(target)) = (subject.code, subject.kernel.processor()) else { return String::new() };
    let modelled: Option<BTreeMap<u64, u64>> = subject
        .time
        .map(|time| time.instructions.iter().map(|each| (each.address, each.modelled_vector_alu)).collect());
    let mut kinds: BTreeMap<&'static str, f64> = BTreeMap::new();
    let mut all = 0.0;
    for (address, instruction) in &code.instructions {
        let cost = match &modelled {
            Some(cycles) => cycles.get(address).copied().unwrap_or(0) as f64,
            None => instruction.executions.unwrap_or(0) as f64 * passes(target, instruction.class),
        };
        all += cost;
        if let Some(kind) = kind(instruction) {
            *kinds.entry(kind).or_default() += cost;
        }
    }
    let mut kinds: Vec<(&str, f64)> = kinds.into_iter().map(|(name, cost)| (name, cost / f64::max(all, 1.0))).collect();
    kinds.retain(|(_, part)| *part >= NAMED);
    // A function says more than the numbers that it works on.
    let is_function = |name: &str| MathFunction::ALL.iter().any(|function| function.name() == name);
    kinds.sort_by(|a, b| is_function(b.0).cmp(&is_function(a.0)).then(b.1.total_cmp(&a.1)));
    let named: Vec<String> =
        kinds.iter().take(MOST).map(|(name, part)| format!("{:.0} % {name}", 100.0 * part)).collect();
    if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) }
}

/// The function that an instruction is of, or what it computes with.
fn kind(instruction: &ExecutedInstruction) -> Option<&'static str> {
    if let Some(function) = instruction.math {
        return Some(function.name());
    }
    Some(match instruction.class {
        Class::Vector(NumberType::F64, _) => "double precision",
        Class::Vector(NumberType::F32, _) => "single precision",
        Class::Vector(NumberType::F16 | NumberType::Bf16, _) => "half precision",
        Class::Vector(number, _) if number.is_integer() => "integers",
        Class::Conversion => "conversions",
        Class::Compare | Class::Select => "compares",
        Class::Move => "moves",
        Class::LaneExchange => "lane exchanges",
        _ => return None,
    })
}

/// How many times as long as an operation on 32 bits an instruction keeps the vector ALU; 0 of others.
pub(super) fn passes(target: Target, class: Class) -> f64 {
    let rate = |fact| f64::from(target.machine(fact).typical.max(1));
    match class {
        Class::Vector(_, Arithmetic::Trans) => rate(MachineFact::RateTrans),
        Class::Vector(NumberType::F64, Arithmetic::Add) => rate(MachineFact::RateF64Add),
        Class::Vector(NumberType::F64, _) => rate(MachineFact::RateF64),
        Class::Vector(NumberType::I64, _) => rate(MachineFact::RateValu64),
        Class::Vector(..) | Class::Conversion | Class::Move | Class::Compare | Class::Select | Class::LaneExchange => {
            1.0
        }
        _ => 0.0,
    }
}
