//! Which instructions compute a division, a root or another function of which compilers make many instructions.
//!
//! A division of floats ends in `v_div_fixup`; what it is computed from, back to `v_div_scale`, belongs to it. Other
//! functions have no such frame. They are known by an instruction or a constant that they have and hardly anything else
//! has, and a function's instructions are taken to be those of its source line: code that was inlined from the device
//! libraries has the line of the call. A line with many more instructions than its functions can have is not one of
//! theirs.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use wavetap_amdgpu::{Flags, Inst, Opcode, Reg, Value};
use wavetap_analysis::dataflow::{Definition, Definitions};
use wavetap_analysis::kernel::Body;
use wavetap_base::entity::InstId;

/// A function of which compilers make many instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MathFunction {
    /// A division of floats.
    Division,
    /// A division, or a remainder, of integers.
    IntegerDivision,
    /// A square root, or its reciprocal.
    SquareRoot,
    /// A sine, cosine or tangent.
    Sine,
    /// An exponential, or what is made of one.
    Exponential,
    /// A logarithm.
    Logarithm,
    /// A power.
    Power,
    /// Several of these, which cannot be told apart.
    Several,
}

impl MathFunction {
    /// All of them.
    pub const ALL: [MathFunction; 8] = [
        MathFunction::Division,
        MathFunction::IntegerDivision,
        MathFunction::SquareRoot,
        MathFunction::Sine,
        MathFunction::Exponential,
        MathFunction::Logarithm,
        MathFunction::Power,
        MathFunction::Several,
    ];

    /// In words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            MathFunction::Division => "division",
            MathFunction::IntegerDivision => "integer division",
            MathFunction::SquareRoot => "square root",
            MathFunction::Sine => "sine and cosine",
            MathFunction::Exponential => "exponential",
            MathFunction::Logarithm => "logarithm",
            MathFunction::Power => "power",
            MathFunction::Several => "elementary functions",
        }
    }

    /// Instructions that one of them has at most, about: of single, and of double precision (of integers: 32 and 64
    /// bits). Counted in code that clang 17 to 20 made with ROCm's device libraries.
    fn most(self) -> usize {
        match self {
            MathFunction::Division | MathFunction::Several => 0,
            MathFunction::SquareRoot | MathFunction::Exponential | MathFunction::Logarithm => 60,
            MathFunction::IntegerDivision => 150,
            MathFunction::Sine | MathFunction::Power => 250,
        }
    }
}

/// What a line has of the marks of functions.
#[derive(Debug, Clone, Default)]
struct Marks {
    /// How many instructions mark each.
    of: BTreeMap<Mark, usize>,
    /// Its instructions of the vector ALU that belong to no division.
    others: Vec<InstId>,
}

/// What marks a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    Function(MathFunction),
    /// Powers and logarithms take numbers apart.
    Mantissa,
}

/// The function that each instruction is of, by instruction; those of none are not in it. `line` tells the source lines
/// apart.
#[must_use]
pub fn math_functions<L: Ord>(
    body: &Body,
    definitions: &Definitions<'_>,
    line: impl Fn(InstId) -> Option<L>,
) -> FxHashMap<InstId, MathFunction> {
    let mut functions = FxHashMap::default();
    for inst in body.ids().filter(|inst| ends_division(body.inst(*inst).opcode())) {
        division(body, definitions, inst, &mut functions);
    }
    let constants = constants(body);
    let mut lines: BTreeMap<L, Marks> = BTreeMap::new();
    for inst in body.ids() {
        let code = body.inst(inst);
        if functions.contains_key(&inst) || is_move(code.opcode()) {
            continue;
        }
        let by_register = || Some(Mark::Function(reads_constant(body, definitions, &constants, inst)?));
        let mark = mark(code).or_else(by_register);
        if let Some(Mark::Function(function)) = mark {
            functions.insert(inst, function);
        }
        let Some(line) = line(inst) else { continue };
        let marks = lines.entry(line).or_default();
        mark.into_iter().for_each(|mark| *marks.of.entry(mark).or_default() += 1);
        if code.variant.flags.contains(Flags::VALU) {
            marks.others.push(inst);
        }
    }
    for marks in lines.into_values() {
        let Some((function, most)) = marks.function() else { continue };
        if marks.others.len() <= most {
            functions.extend(marks.others.into_iter().map(|inst| (inst, function)));
        }
    }
    functions
}

impl Marks {
    /// The function of a line, and how many instructions all of its functions may have.
    fn function(&self) -> Option<(MathFunction, usize)> {
        use MathFunction::{Exponential, IntegerDivision, Logarithm, Power, Several, Sine, SquareRoot};
        let has = |mark: MathFunction| self.of.contains_key(&Mark::Function(mark));
        let takes_apart = self.of.contains_key(&Mark::Mantissa);
        let are_several = usize::from(has(Sine)) + usize::from(has(Exponential) || has(Logarithm)) > 1;
        let function = match () {
            () if are_several => Several,
            () if has(Exponential) && (takes_apart || has(Logarithm)) => Power,
            () if has(Logarithm) => Logarithm,
            () => [Sine, Exponential, IntegerDivision, SquareRoot].into_iter().find(|function| has(*function))?,
        };
        let of_marks = self.of.iter().map(|(mark, count)| match mark {
            Mark::Function(function) => function.most() * count,
            Mark::Mantissa => 0,
        });
        Some((function, of_marks.sum::<usize>().max(function.most())))
    }
}

/// Constants of functions in registers, where moves put them: loops have them outside.
fn constants(body: &Body) -> Vec<(InstId, Reg, MathFunction)> {
    let of_move = |inst: InstId| {
        let code = body.inst(inst);
        let function = literal(code).and_then(of_constant).filter(|_| is_move(code.opcode()))?;
        Some((inst, body.writes(inst).next()?, function))
    };
    body.ids().filter_map(of_move).collect()
}

fn is_move(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::S_MOV_B32 | Opcode::V_MOV_B32)
}

/// The function whose constant an instruction of the vector ALU reads from a register.
fn reads_constant(
    body: &Body,
    definitions: &Definitions<'_>,
    constants: &[(InstId, Reg, MathFunction)],
    inst: InstId,
) -> Option<MathFunction> {
    if constants.is_empty() || !body.inst(inst).variant.flags.contains(Flags::VALU) {
        return None;
    }
    body.reads(inst).find_map(|read| {
        constants.iter().find_map(|(from, reg, function)| {
            let is_it = read.overlaps(*reg) && definitions.reaching(inst, *reg) == [Definition::Inst(*from)];
            is_it.then_some(*function)
        })
    })
}

fn literal(code: &Inst) -> Option<u32> {
    code.operands.iter().find_map(|operand| match operand.value {
        Value::Literal(value) => Some(value),
        _ => None,
    })
}

fn ends_division(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::V_DIV_FIXUP_F16 | Opcode::V_DIV_FIXUP_F32 | Opcode::V_DIV_FIXUP_F64)
}

/// The instructions from which the last one of a division computes the quotient.
fn division(body: &Body, definitions: &Definitions<'_>, last: InstId, functions: &mut FxHashMap<InstId, MathFunction>) {
    /// One has fewer than 20.
    const MOST: usize = 32;
    let mut work = vec![last];
    let mut count = 0;
    while let Some(inst) = work.pop() {
        if count == MOST || functions.insert(inst, MathFunction::Division).is_some() {
            continue;
        }
        count += 1;
        // The operands of the division are scaled, or taken as they are by its last instruction.
        let code = body.inst(inst);
        if matches!(code.opcode(), Opcode::V_DIV_SCALE_F32 | Opcode::V_DIV_SCALE_F64) {
            continue;
        }
        for reg in body.reads(inst) {
            for definition in definitions.reaching(inst, reg) {
                let Definition::Inst(from) = definition else { continue };
                if is_step(body.inst(from).opcode()) {
                    work.push(from);
                }
            }
        }
    }
}

/// What a division is made of.
fn is_step(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::V_DIV_SCALE_F32
            | Opcode::V_DIV_SCALE_F64
            | Opcode::V_DIV_FMAS_F32
            | Opcode::V_DIV_FMAS_F64
            | Opcode::V_RCP_F32
            | Opcode::V_RCP_F64
    ) || (matches!(opcode.vector(), Some(vector) if matches!(
        vector.operation,
        wavetap_amdgpu::VectorOp::Fma | wavetap_amdgpu::VectorOp::Mul
    )))
}

fn mark(code: &Inst) -> Option<Mark> {
    let function = match code.opcode() {
        Opcode::V_RCP_IFLAG_F32 => MathFunction::IntegerDivision,
        Opcode::V_SQRT_F16 | Opcode::V_SQRT_F32 | Opcode::V_SQRT_F64 => MathFunction::SquareRoot,
        Opcode::V_RSQ_F16 | Opcode::V_RSQ_F32 | Opcode::V_RSQ_F64 => MathFunction::SquareRoot,
        Opcode::V_SIN_F16 | Opcode::V_SIN_F32 | Opcode::V_COS_F16 | Opcode::V_COS_F32 => MathFunction::Sine,
        Opcode::V_TRIG_PREOP_F64 => MathFunction::Sine,
        Opcode::V_EXP_F16 | Opcode::V_EXP_F32 => MathFunction::Exponential,
        Opcode::V_LOG_F16 | Opcode::V_LOG_F32 => MathFunction::Logarithm,
        Opcode::V_FREXP_MANT_F32 | Opcode::V_FREXP_MANT_F64 => return Some(Mark::Mantissa),
        _ => return literal(code).and_then(of_constant).map(Mark::Function),
    };
    Some(Mark::Function(function))
}

/// The function that reduces its argument by a constant; of double precision the upper half.
fn of_constant(literal: u32) -> Option<MathFunction> {
    Some(match literal {
        // 2/π as f32 and f64, and the bits of 2/π that follow.
        0x3f22_f983 | 0x3fe4_5f30 | 0xfe51_63ab | 0x4e44_1529 => MathFunction::Sine,
        // log₂ e as f64; that of f32 is beside `v_exp_f32`.
        0x3ff7_1547 => MathFunction::Exponential,
        _ => return None,
    })
}
