//! What one execution of an instruction does: operations and bytes.

use serde::{Deserialize, Serialize};

use smallvec::SmallVec;
use wavetap_amdgpu::{Flags, Implicit, Inst, Memory, NumberFormat, OpcodeFlags, Role};
use wavetap_analysis::dataflow::Aperture;

use crate::class::{Class, MatrixUnit, NumberType, VectorSpace, classes, is_once_per_wave, matrix, vector_operations};

/// What the work of an instruction depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executes {
    /// Every active lane does it.
    InActiveLanes,
    /// All lanes of the wave do it, whatever EXEC is, or the wave does it once.
    ByWave,
}

/// The memory whose bytes are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Traffic {
    /// Global memory by vector instructions.
    Global,
    /// What FLAT instructions access where the code does not say whether it is global memory, LDS or scratch.
    Flat,
    /// LDS.
    Lds,
    /// Memory through the scalar cache.
    Scalar,
    /// The private memory of lanes.
    Scratch,
}

impl Traffic {
    /// All of them.
    pub const ALL: [Traffic; 5] = [Traffic::Global, Traffic::Flat, Traffic::Lds, Traffic::Scalar, Traffic::Scratch];
}

/// Operations on numbers of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operations {
    /// Of which numbers.
    pub number: NumberType,
    /// Of a wave, as rocprof-compute counts: all lanes whatever EXEC is, a packed pair once, a dot product as one
    /// multiplication and addition, sparse matrices as if they were dense.
    pub convention: u64,
    /// Of each active lane, or of the wave: every product and every sum.
    pub effective: u64,
}

/// What one execution of an instruction does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkOfInstruction {
    /// Its class, of a pair those of its two operations.
    pub classes: SmallVec<[Class; 2]>,
    /// Who does it.
    pub executes: Executes,
    /// What it computes.
    pub operations: SmallVec<[Operations; 2]>,
    /// What it requests of memory: bytes of each active lane, or of the wave. None where a register or a descriptor
    /// says how many.
    pub bytes: SmallVec<[(Traffic, Option<u64>); 2]>,
}

impl WorkOfInstruction {
    /// Of an instruction; `is_scratch` as in [`classes`], `aperture` where that of a FLAT instruction is known.
    #[must_use]
    pub fn of(inst: &Inst, is_scratch: bool, aperture: Option<Aperture>) -> WorkOfInstruction {
        let flags = inst.variant.flags;
        // Compares leave one bit of every lane in scalar registers.
        let is_scalar_result = flags.contains(Flags::VALU) && is_once_per_wave(inst) && !inst.is_any(OpcodeFlags::CMP);
        let in_lanes = inst.variant.implicit_reads.contains(Implicit::EXEC)
            && !inst.is_any(OpcodeFlags::MATRIX)
            && !is_scalar_result
            && !flags.contains(Flags::SALU);
        let executes = if in_lanes { Executes::InActiveLanes } else { Executes::ByWave };
        WorkOfInstruction {
            classes: classes(inst, is_scratch),
            executes,
            operations: operations(inst, executes),
            bytes: bytes(inst, is_scratch, aperture),
        }
    }

    /// Its class, of a pair that of its first operation. A FLAT access of which the code says that it is of LDS or
    /// scratch has the class of one of that memory; which instruction it is [`WorkOfInstruction::classes`] says.
    #[must_use]
    pub fn class_by_memory(&self) -> Option<Class> {
        let class = *self.classes.first()?;
        let Class::VectorMemory(VectorSpace::Flat, kind) = class else { return Some(class) };
        Some(match self.bytes.first() {
            Some((Traffic::Lds, _)) => Class::Lds(kind),
            Some((Traffic::Scratch, _)) => Class::VectorMemory(VectorSpace::Scratch, kind),
            _ => class,
        })
    }
}

fn operations(inst: &Inst, executes: Executes) -> SmallVec<[Operations; 2]> {
    let wave = u64::from(inst.wave_size);
    if let Some((unit, number, matrix)) = matrix(inst) {
        let sides = u64::from(matrix.rows) * u64::from(matrix.columns);
        // MFMA may multiply several pairs of matrices at once: as many as the result has registers for.
        let blocks = match unit {
            MatrixUnit::Mfma => {
                let result = inst.operand(Role::Vdst).map_or(0, |operand| u64::from(operand.dwords));
                let dwords = if matrix.d == NumberFormat::F64 { 2 } else { 1 };
                (result * wave / dwords / sides).max(1)
            }
            _ => 1,
        };
        let dense = 2 * sides * u64::from(matrix.depth) * blocks;
        let sparse = matches!(unit, MatrixUnit::Smfmac | MatrixUnit::Swmmac);
        // Of four numbers of A two are zero and not multiplied.
        let effective = if sparse { dense / 2 } else { dense };
        return SmallVec::from_iter([Operations { number, convention: dense, effective }]);
    }
    let lanes = if executes == Executes::ByWave { 1 } else { wave };
    let of = vector_operations(inst).into_iter().filter_map(|operation| match operation.class {
        Class::Vector(number, _) if operation.effective > 0 => {
            Some(Operations { number, convention: operation.convention * lanes, effective: operation.effective })
        }
        _ => None,
    });
    of.collect()
}

fn bytes(inst: &Inst, is_scratch: bool, aperture: Option<Aperture>) -> SmallVec<[(Traffic, Option<u64>); 2]> {
    let variant = inst.variant;
    let accesses = variant.flags.intersects(Flags::LOAD | Flags::STORE | Flags::ATOMIC);
    if !accesses || inst.modifiers.gds || inst.is_any(OpcodeFlags::CROSSBAR | OpcodeFlags::GWS) {
        return SmallVec::new();
    }
    let traffic = match variant.memory {
        Memory::Global | Memory::Image => Traffic::Global,
        Memory::Flat => match aperture {
            Some(Aperture::Lds) => Traffic::Lds,
            Some(Aperture::Scratch) => Traffic::Scratch,
            None => Traffic::Flat,
        },
        Memory::Buffer if is_scratch => Traffic::Scratch,
        Memory::Buffer => Traffic::Global,
        Memory::Scratch => Traffic::Scratch,
        Memory::Lds => Traffic::Lds,
        Memory::Scalar => Traffic::Scalar,
        _ => return SmallVec::new(),
    };
    // M0 says how many registers, a mask which components there are.
    let unknown = inst.is_any(OpcodeFlags::BLOCK | OpcodeFlags::LDS_SRC2) || variant.memory_bytes == 0;
    let bytes = (!unknown).then(|| u64::from(variant.memory_bytes));
    let mut all = SmallVec::from_iter([(traffic, bytes)]);
    // What goes past the registers is in LDS as well. Of scratch instructions the bit says something else.
    if inst.modifiers.lds && variant.memory == Memory::Buffer
        || inst.is_any(OpcodeFlags::TO_LDS | OpcodeFlags::FROM_LDS)
    {
        all.push((Traffic::Lds, bytes));
    }
    all
}
