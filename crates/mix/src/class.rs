//! The class of an instruction: which unit executes it, and what it does there.

use std::fmt;

use smallvec::{SmallVec, smallvec};
use wavetap_amdgpu::{
    Branch, Encoding, Flags, Inst, MatrixInfo, Memory, NumberFormat, Opcode, OpcodeFlags, RegFile, Role, VectorOp,
};

/// The numbers that an instruction works on; of matrices and dot products the factors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // The names say it.
pub enum NumberType {
    I4,
    I8,
    I16,
    I32,
    I64,
    /// 4 bits.
    F4,
    /// 6 bits.
    F6,
    /// 8 bits, in either form.
    F8,
    /// 8, 6 or 4 bits, as fields of the instruction say.
    F8F6F4,
    F16,
    Bf16,
    /// Single precision of which 10 bits of the fraction count.
    Xf32,
    F32,
    F64,
}

impl NumberType {
    /// All of them.
    pub const ALL: [NumberType; 14] = {
        use NumberType::{Bf16, F4, F6, F8, F8F6F4, F16, F32, F64, I4, I8, I16, I32, I64, Xf32};
        [I4, I8, I16, I32, I64, F4, F6, F8, F8F6F4, F16, Bf16, Xf32, F32, F64]
    };

    fn of(format: NumberFormat) -> NumberType {
        match format {
            NumberFormat::F16 => NumberType::F16,
            NumberFormat::Bf16 => NumberType::Bf16,
            NumberFormat::F32 => NumberType::F32,
            NumberFormat::Xf32 => NumberType::Xf32,
            NumberFormat::F64 => NumberType::F64,
            NumberFormat::Fp8 | NumberFormat::Bf8 => NumberType::F8,
            NumberFormat::Fp6 | NumberFormat::Bf6 => NumberType::F6,
            NumberFormat::Fp4 | NumberFormat::F4 => NumberType::F4,
            NumberFormat::F8f6f4 => NumberType::F8F6F4,
            NumberFormat::I8 | NumberFormat::Iu8 => NumberType::I8,
            NumberFormat::Iu4 => NumberType::I4,
            NumberFormat::I16 | NumberFormat::U16 => NumberType::I16,
            NumberFormat::I32 | NumberFormat::U32 => NumberType::I32,
            NumberFormat::I64 | NumberFormat::U64 => NumberType::I64,
        }
    }

    /// Whether they are integers.
    #[must_use]
    pub fn is_integer(self) -> bool {
        matches!(self, NumberType::I4 | NumberType::I8 | NumberType::I16 | NumberType::I32 | NumberType::I64)
    }

    /// `f32`, `i8`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            NumberType::I4 => "i4",
            NumberType::I8 => "i8",
            NumberType::I16 => "i16",
            NumberType::I32 => "i32",
            NumberType::I64 => "i64",
            NumberType::F4 => "f4",
            NumberType::F6 => "f6",
            NumberType::F8 => "f8",
            NumberType::F8F6F4 => "f8f6f4",
            NumberType::F16 => "f16",
            NumberType::Bf16 => "bf16",
            NumberType::Xf32 => "xf32",
            NumberType::F32 => "f32",
            NumberType::F64 => "f64",
        }
    }
}

/// What vector arithmetic does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Arithmetic {
    /// Adds or subtracts.
    Add,
    /// Multiplies.
    Mul,
    /// Multiplies and adds.
    Fma,
    /// A transcendental, a reciprocal or a root.
    Trans,
    /// Adds products to a number.
    Dot,
    /// Shifts, bits, minima, roundings.
    Other,
}

/// What is done to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessKind {
    /// It is read.
    Read,
    /// It is written.
    Write,
    /// It is read and written at once.
    Atomic,
}

/// The memory that vector memory instructions access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VectorSpace {
    /// Global memory.
    Global,
    /// Global memory, LDS or scratch, as the address says.
    Flat,
    /// Memory through a buffer descriptor.
    Buffer,
    /// The private memory of lanes: the stack and spilled registers.
    Scratch,
    /// Images.
    Image,
}

/// Which matrix instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // The names are the manuals'.
pub enum MatrixUnit {
    Mfma,
    Smfmac,
    Wmma,
    Swmmac,
}

/// What the scalar ALU does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScalarKind {
    /// Integers, bits, addresses.
    Integer,
    /// Floats.
    Float,
    /// Writes EXEC.
    Exec,
    /// Moves and selections.
    Move,
    /// Compares: the result is SCC alone.
    Compare,
}

/// The class of an instruction, of a pair (VOPD) that of one of its operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Vector arithmetic.
    Vector(NumberType, Arithmetic),
    /// Vector conversions between formats.
    Conversion,
    /// Vector moves, to and from AGPRs too.
    Move,
    /// Vector compares: the result is a mask.
    Compare,
    /// Vector selections by a mask.
    Select,
    /// Exchanges between lanes, or between lanes and scalar registers.
    LaneExchange,
    /// Matrix multiplications, by their factors.
    Matrix(MatrixUnit, NumberType),
    /// The scalar ALU.
    Scalar(ScalarKind),
    /// Scalar memory.
    ScalarMemory(AccessKind),
    /// Vector memory.
    VectorMemory(VectorSpace, AccessKind),
    /// LDS.
    Lds(AccessKind),
    /// Exchanges between lanes by the LDS hardware.
    LdsExchange,
    /// Global data share, global wave sync.
    Gds,
    /// Copies of tensors between memory and LDS.
    Tensor,
    /// Branches, calls and returns.
    Branch,
    /// Waits for counters.
    Wait,
    /// Barriers.
    Barrier,
    /// Messages.
    Message,
    /// Exports.
    Export,
    /// Everything else: ends of waves, hints, caches, modes.
    Control,
}

impl fmt::Display for Class {
    /// The name in reports: `valu.f32.fma`, `vmem.global.read`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Class::Vector(number, arithmetic) => {
                let what = match arithmetic {
                    Arithmetic::Add => "add",
                    Arithmetic::Mul => "mul",
                    Arithmetic::Fma => "fma",
                    Arithmetic::Trans => "trans",
                    Arithmetic::Dot => "dot",
                    Arithmetic::Other => "other",
                };
                write!(f, "valu.{}.{what}", number.name())
            }
            Class::Conversion => f.write_str("valu.conversion"),
            Class::Move => f.write_str("valu.move"),
            Class::Compare => f.write_str("valu.compare"),
            Class::Select => f.write_str("valu.select"),
            Class::LaneExchange => f.write_str("valu.exchange"),
            Class::Matrix(unit, number) => {
                let unit = match unit {
                    MatrixUnit::Mfma => "mfma",
                    MatrixUnit::Smfmac => "smfmac",
                    MatrixUnit::Wmma => "wmma",
                    MatrixUnit::Swmmac => "swmmac",
                };
                write!(f, "matrix.{unit}.{}", number.name())
            }
            Class::Scalar(kind) => f.write_str(match kind {
                ScalarKind::Integer => "salu.integer",
                ScalarKind::Float => "salu.float",
                ScalarKind::Exec => "salu.exec",
                ScalarKind::Move => "salu.move",
                ScalarKind::Compare => "salu.compare",
            }),
            Class::ScalarMemory(kind) => write!(f, "smem.{}", kind.name()),
            Class::VectorMemory(space, kind) => {
                let space = match space {
                    VectorSpace::Global => "global",
                    VectorSpace::Flat => "flat",
                    VectorSpace::Buffer => "buffer",
                    VectorSpace::Scratch => "scratch",
                    VectorSpace::Image => "image",
                };
                write!(f, "vmem.{space}.{}", kind.name())
            }
            Class::Lds(kind) => write!(f, "lds.{}", kind.name()),
            Class::LdsExchange => f.write_str("lds.exchange"),
            Class::Gds => f.write_str("gds"),
            Class::Tensor => f.write_str("tensor"),
            Class::Branch => f.write_str("branch"),
            Class::Wait => f.write_str("wait"),
            Class::Barrier => f.write_str("barrier"),
            Class::Message => f.write_str("message"),
            Class::Export => f.write_str("export"),
            Class::Control => f.write_str("control"),
        }
    }
}

impl AccessKind {
    fn of(flags: Flags) -> AccessKind {
        match flags {
            flags if flags.contains(Flags::ATOMIC) => AccessKind::Atomic,
            flags if flags.contains(Flags::STORE) => AccessKind::Write,
            _ => AccessKind::Read,
        }
    }

    fn name(self) -> &'static str {
        match self {
            AccessKind::Read => "read",
            AccessKind::Write => "write",
            AccessKind::Atomic => "atomic",
        }
    }
}

/// What one vector operation is: its class, how many operations it does in a lane, and how many counters of the
/// hardware take it for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VectorOperation {
    pub class: Class,
    /// As the hardware counts: 2 for what multiplies and adds, a pair once.
    pub convention: u64,
    /// Each product and each sum.
    pub effective: u64,
}

impl VectorOperation {
    fn none(class: Class) -> VectorOperation {
        VectorOperation { class, convention: 0, effective: 0 }
    }

    /// None of an operation that is no vector operation, and of matrices.
    fn of(opcode: Opcode) -> Option<VectorOperation> {
        let float_other = |format| Class::Vector(NumberType::of(format), Arithmetic::Other);
        let Some(vector) = opcode.vector() else {
            return match (opcode.compare(), opcode.scale(), opcode.minmax()) {
                (Some(_), _, _) => Some(VectorOperation::none(Class::Compare)),
                (_, Some(_), _) => Some(VectorOperation::none(Class::Conversion)),
                (_, _, Some(minmax)) => Some(VectorOperation::none(float_other(minmax.format))),
                _ => None,
            };
        };
        let (number, count) = (NumberType::of(vector.format), u64::from(vector.count));
        let (arithmetic, each) = match vector.operation {
            VectorOp::Add => (Arithmetic::Add, 1),
            VectorOp::Mul => (Arithmetic::Mul, 1),
            VectorOp::Fma => (Arithmetic::Fma, 2),
            VectorOp::Trans => (Arithmetic::Trans, 1),
            VectorOp::Dot => (Arithmetic::Dot, 2),
            VectorOp::Other if number.is_integer() => (Arithmetic::Other, 1),
            VectorOp::Other => (Arithmetic::Other, 0),
            VectorOp::Convert => return Some(VectorOperation::none(Class::Conversion)),
            VectorOp::Move => return Some(VectorOperation::none(Class::Move)),
            VectorOp::Select => return Some(VectorOperation::none(Class::Select)),
            VectorOp::Exchange => return Some(VectorOperation::none(Class::LaneExchange)),
            VectorOp::None => return Some(VectorOperation::none(Class::Control)),
        };
        // An integer instruction is one operation of the hardware's counters, whatever it does.
        let convention = if number.is_integer() { 1 } else { each };
        Some(VectorOperation { class: Class::Vector(number, arithmetic), convention, effective: each * count })
    }
}

/// The vector operations of an instruction: one, or two of a pair. None if it is no vector arithmetic, or a matrix
/// multiplication.
pub(crate) fn vector_operations(inst: &Inst) -> SmallVec<[VectorOperation; 2]> {
    if !inst.variant.flags.contains(Flags::VALU) || inst.is_any(OpcodeFlags::MATRIX) && inst.opcode().vector().is_none()
    {
        return SmallVec::new();
    }
    [Some(inst.opcode()), inst.variant.second].into_iter().flatten().filter_map(VectorOperation::of).collect()
}

/// The matrix multiplication of an instruction.
pub(crate) fn matrix(inst: &Inst) -> Option<(MatrixUnit, NumberType, MatrixInfo)> {
    let matrix = inst.opcode().matrix()?;
    let unit = match () {
        () if inst.is_any(OpcodeFlags::MFMA) => MatrixUnit::Mfma,
        () if inst.is_any(OpcodeFlags::SMFMAC) => MatrixUnit::Smfmac,
        () if inst.is_any(OpcodeFlags::WMMA) => MatrixUnit::Wmma,
        () => MatrixUnit::Swmmac,
    };
    Some((unit, NumberType::of(matrix.a), matrix))
}

/// The classes of an instruction: one, or those of both operations of a pair. `is_scratch`: it accesses the lanes'
/// private memory, although it is a buffer instruction.
#[must_use]
pub fn classes(inst: &Inst, is_scratch: bool) -> SmallVec<[Class; 2]> {
    if let Some((unit, number, _)) = matrix(inst) {
        return smallvec![Class::Matrix(unit, number)];
    }
    let vector = vector_operations(inst);
    if !vector.is_empty() {
        return vector.iter().map(|operation| operation.class).collect();
    }
    smallvec![class(inst, is_scratch)]
}

fn class(inst: &Inst, is_scratch: bool) -> Class {
    let variant = inst.variant;
    let kind = AccessKind::of(variant.flags);
    // Caches, prefetches and clocks are no accesses.
    let accesses = variant.flags.intersects(Flags::LOAD | Flags::STORE | Flags::ATOMIC);
    match variant.branch {
        Branch::None => {}
        Branch::End | Branch::Trap => return Class::Control,
        _ => return Class::Branch,
    }
    if inst.is_any(OpcodeFlags::BARRIER) {
        return Class::Barrier;
    }
    if inst.is_any(OpcodeFlags::SENDMSG) {
        return Class::Message;
    }
    if variant.flags.contains(Flags::WAIT) || inst.is_any(OpcodeFlags::ALU_WAIT) {
        return Class::Wait;
    }
    match variant.encoding {
        Encoding::Tensor => return Class::Tensor,
        Encoding::Exp => return Class::Export,
        _ => {}
    }
    if inst.modifiers.gds || inst.is_any(OpcodeFlags::GWS) {
        return Class::Gds;
    }
    if inst.is_any(OpcodeFlags::CROSSBAR) {
        return Class::LdsExchange;
    }
    let space = match variant.memory {
        Memory::Scalar if accesses => return Class::ScalarMemory(kind),
        Memory::Lds if accesses => return Class::Lds(kind),
        Memory::Gds => return Class::Gds,
        Memory::Global => VectorSpace::Global,
        Memory::Flat => VectorSpace::Flat,
        Memory::Scratch => VectorSpace::Scratch,
        Memory::Buffer if is_scratch => VectorSpace::Scratch,
        Memory::Buffer => VectorSpace::Buffer,
        Memory::Image => VectorSpace::Image,
        _ if variant.flags.contains(Flags::SALU) => return scalar(inst),
        _ => return Class::Control,
    };
    if accesses { Class::VectorMemory(space, kind) } else { Class::Control }
}

fn scalar(inst: &Inst) -> Class {
    use Opcode as O;
    if inst.is_any(OpcodeFlags::STATEFUL | OpcodeFlags::NOP | OpcodeFlags::DELAY | OpcodeFlags::CLAUSE) {
        return Class::Control;
    }
    let in_exec = |reg: wavetap_amdgpu::Reg| reg.overlaps(wavetap_amdgpu::Reg::EXEC);
    let results = inst.operands.iter().filter(|operand| operand.access.writes()).count();
    Class::Scalar(match inst.opcode() {
        _ if inst.writes().any(in_exec) => ScalarKind::Exec,
        O::S_MOV_B32
        | O::S_MOV_B64
        | O::S_MOVK_I32
        | O::S_CMOV_B32
        | O::S_CMOV_B64
        | O::S_CMOVK_I32
        | O::S_CSELECT_B32
        | O::S_CSELECT_B64 => ScalarKind::Move,
        _ if results == 0 && inst.writes().any(|reg| reg == wavetap_amdgpu::Reg::SCC) => ScalarKind::Compare,
        // What writes nothing has no number.
        _ if results == 0 => return Class::Control,
        _ if inst.is_any(OpcodeFlags::FLOAT) => ScalarKind::Float,
        _ => ScalarKind::Integer,
    })
}

/// Whether an instruction that works on vectors leaves its result in scalar registers alone, once for the wave.
pub(crate) fn is_once_per_wave(inst: &Inst) -> bool {
    let mut results = inst.operands.iter().filter(|operand| operand.access.writes()).filter_map(|o| o.reg());
    inst.operand(Role::Vdst).is_none_or(|operand| operand.reg().is_some_and(|reg| reg.file == RegFile::Scalar))
        && results.all(|reg| reg.file == RegFile::Scalar)
}
