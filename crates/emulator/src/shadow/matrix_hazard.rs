//! Required wait states around matrix and dot-product instructions, which take many cycles and are not interlocked with
//! everything that follows.
//!
//! The numbers depend on the passes an instruction takes (P) and on its kind; they are the ones LLVM's hazard
//! recognizer inserts.

use wavetap_amdgpu::{Reg, RegFile, WaitStates};

use crate::fault::FaultKind;
use crate::fault::stop::{ExecResult, stop};
use crate::launch::Launch;
use crate::op::matrix_shape::{MfmaShape, has_bytes};
use crate::op::registers::{SCALAR_SLOTS, register_name, slot};
use crate::op::semantics::Source;
use crate::op::{Class, ResolvedInst};

/// The kind of a producer or consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProducerKind {
    None,
    /// Inputs narrower than single precision.
    Xdl,
    /// Single-precision inputs.
    Sgemm,
    /// Double precision; `true`: 16x16.
    Dgemm(bool),
    /// A dot product, by a tag of its opcode.
    Dot(u16),
}

/// The last operation of these kinds that wrote a register, or read it as C.
#[derive(Debug, Clone, Copy)]
struct Access {
    time: u64,
    passes: u64,
    kind: ProducerKind,
    /// First register of the run, to tell an exact overlap from a partial one.
    first: u16,
    count: u16,
}

const NEVER: Access = Access { time: 0, passes: 0, kind: ProducerKind::None, first: 0, count: 0 };

/// VGPRs and AGPRs.
const VECTOR_SLOTS: usize = SCALAR_SLOTS;

/// The state of a wave.
pub(crate) struct MatrixHazards {
    written: Vec<Access>,
    read_as_c: Vec<Access>,
    /// When `v_accvgpr_write` last wrote a register (gfx908).
    accum_write: Vec<u64>,
    /// When `v_accvgpr_read` last wrote a register (gfx908).
    accum_read: Vec<u64>,
    used: bool,
}

fn kind_of(op: &ResolvedInst) -> ProducerKind {
    match op.matrix {
        Some(shape) if shape.is_double() => ProducerKind::Dgemm(shape.size == 16),
        Some(shape) if shape.is_single() => ProducerKind::Sgemm,
        Some(_) => ProducerKind::Xdl,
        None if op.dot => ProducerKind::Dot(op.inst.variant.op),
        None => ProducerKind::None,
    }
}

/// A move to or from an AGPR that has rules of its own.
fn is_accum_move(op: &ResolvedInst, launch: &Launch) -> bool {
    (op.accum_read || op.accum_write) && launch.wait_states == WaitStates::Gfx908
}

/// The rules of a target; gfx950 has those of gfx94x with some longer waits.
fn rules(launch: &Launch) -> WaitStates {
    if launch.is_gfx94() { WaitStates::Gfx94x } else { launch.wait_states }
}

fn passes(op: &ResolvedInst, shape: MfmaShape, launch: &Launch) -> u64 {
    let newest = launch.wait_states == WaitStates::Gfx950;
    if shape.is_double() {
        return match shape.size {
            16 if newest => 16,
            16 => 8,
            _ => 4,
        };
    }
    if shape.is_mixed() {
        let half = if has_bytes(&op.inst) { 1 } else { 2 };
        return if shape.size == 16 { 8 / half } else { 16 / half };
    }
    // Of single precision and of XF32 half as many rows count.
    let k = shape.k() * if shape.is_xf32() { 2 } else { 1 };
    match (shape.size, rules(launch)) {
        (4, _) => 2,
        (16, WaitStates::Gfx94x) if k >= 16 => 4,
        (32, WaitStates::Gfx94x) if k >= 8 => 8,
        (16, _) => 8,
        _ => 16,
    }
}

/// What more than P + 3 a result of a matrix instruction needs on gfx950.
fn later(launch: &Launch, passes: u64) -> u64 {
    u64::from(launch.wait_states == WaitStates::Gfx950 && passes != 2)
}

/// Wait states from a product in double precision to a reader of its result.
fn double_read(launch: &Launch, large: bool) -> u64 {
    match (large, launch.wait_states) {
        (true, WaitStates::Gfx950) => 19,
        (true, _) => 11,
        _ => 6,
    }
}

impl MatrixHazards {
    pub(crate) fn new() -> Self {
        MatrixHazards {
            written: Vec::new(),
            read_as_c: Vec::new(),
            accum_write: Vec::new(),
            accum_read: Vec::new(),
            used: false,
        }
    }

    /// Called before the first matrix or dot instruction is noted: most kernels have none.
    fn prepare(&mut self) {
        if !self.used {
            self.used = true;
            self.written = vec![NEVER; VECTOR_SLOTS];
            self.read_as_c = vec![NEVER; VECTOR_SLOTS];
            self.accum_write = vec![0; VECTOR_SLOTS];
            self.accum_read = vec![0; VECTOR_SLOTS];
        }
    }

    /// Whether a register holds the result of a matrix or dot instruction.
    pub(crate) fn is_result(&self, file: RegFile, index: u16) -> bool {
        self.used && self.written[slot(file, index)].kind != ProducerKind::None
    }

    fn require(now: u64, since: u64, states: u64, rule: &'static str, file: RegFile, index: u16) -> ExecResult {
        let found = now - since - 1;
        if since == 0 || found >= states {
            return Ok(());
        }
        stop(FaultKind::Hazard {
            rule,
            required: states as u32,
            found: found as u32,
            resource: register_name(file, index).into(),
        })
    }

    /// A read by anything but a matrix instruction.
    pub(crate) fn check_read(
        &self,
        op: &ResolvedInst,
        launch: &Launch,
        now: u64,
        file: RegFile,
        index: u16,
    ) -> ExecResult {
        if !self.used || file == RegFile::Scalar || op.matrix.is_some() {
            return Ok(());
        }
        let at = slot(file, index);
        let memory = matches!(op.class, Class::Vmem | Class::Lds);
        if launch.wait_states == WaitStates::Gfx908 && memory {
            Self::require(
                now,
                self.accum_read[at],
                2,
                "v_accvgpr_read writes VGPR, memory instruction reads it",
                file,
                index,
            )?;
        }
        if launch.wait_states == WaitStates::Gfx908 && op.accum_read {
            Self::require(now, self.accum_write[at], 3, "v_accvgpr_write, then v_accvgpr_read", file, index)?;
        }
        let producer = self.written[at];
        let p = producer.passes;
        let states = match (producer.kind, rules(launch)) {
            (ProducerKind::None, _) => return Ok(()),
            (ProducerKind::Dot(_), WaitStates::None | WaitStates::Gfx9 | WaitStates::Gfx908) => return Ok(()),
            (ProducerKind::Dot(opcode), _) => {
                let accumulates = kind_of(op) == ProducerKind::Dot(opcode) && op.src[2] == Source::Vector(index);
                if accumulates { 0 } else { 3 }
            }
            (ProducerKind::Dgemm(large), _) if memory => [9, 18][usize::from(large)],
            (ProducerKind::Dgemm(large), _) => double_read(launch, large),
            (_, WaitStates::Gfx908) => p + 2,
            (ProducerKind::Sgemm, WaitStates::Gfx94x) => p + 2,
            _ => p + 3 + later(launch, p),
        };
        Self::require(
            now,
            producer.time,
            states,
            "matrix or dot instruction writes register, another reads it",
            file,
            index,
        )
    }

    /// A write by anything but a matrix instruction.
    pub(crate) fn check_write(
        &self,
        op: &ResolvedInst,
        launch: &Launch,
        now: u64,
        file: RegFile,
        index: u16,
    ) -> ExecResult {
        if !self.used || file == RegFile::Scalar || op.matrix.is_some() {
            return Ok(());
        }
        let at = slot(file, index);
        let producer = self.written[at];
        let p = producer.passes;
        let states = match (producer.kind, rules(launch)) {
            (ProducerKind::None, _)
            | (ProducerKind::Dot(_), WaitStates::None | WaitStates::Gfx9 | WaitStates::Gfx908) => 0,
            (ProducerKind::Dot(opcode), _) => {
                if kind_of(op) == ProducerKind::Dot(opcode) {
                    0
                } else {
                    3
                }
            }
            (ProducerKind::Dgemm(large), _) => [6, 11][usize::from(large)],
            (_, WaitStates::Gfx908) => p - 1,
            (ProducerKind::Sgemm, WaitStates::Gfx94x) => p + 2,
            _ => p + 3 + later(launch, p),
        };
        Self::require(
            now,
            producer.time,
            states,
            "matrix or dot instruction writes register, another overwrites it",
            file,
            index,
        )?;
        let reader = self.read_as_c[at];
        let p = reader.passes;
        let states = match (reader.kind, rules(launch)) {
            (ProducerKind::None | ProducerKind::Dgemm(_) | ProducerKind::Dot(_), _)
            | (ProducerKind::Sgemm, WaitStates::Gfx94x) => 0,
            (_, WaitStates::Gfx908) => p.saturating_sub(3),
            _ => p - 1,
        };
        Self::require(
            now,
            reader.time,
            states,
            "matrix instruction reads accumulator, another overwrites it",
            file,
            index,
        )
    }

    /// A source of a matrix instruction; `accumulator` says that it is C.
    pub(crate) fn check_source(
        &self,
        op: &ResolvedInst,
        launch: &Launch,
        now: u64,
        reg: Reg,
        accumulator: bool,
    ) -> ExecResult {
        let Reg { file, first, dwords } = reg;
        let count = u16::from(dwords);

        if !self.used {
            return Ok(());
        }
        let consumer = kind_of(op);
        for index in first..first + count {
            let at = slot(file, index);
            if launch.wait_states == WaitStates::Gfx908 {
                Self::require(
                    now,
                    self.accum_write[at],
                    if accumulator { 1 } else { 3 },
                    "v_accvgpr_write, then a matrix instruction reads it",
                    file,
                    index,
                )?;
            }
            let producer = self.written[at];
            let p = producer.passes;
            let exact = accumulator && producer.first == first && producer.count == count;
            let states = match (producer.kind, rules(launch)) {
                (ProducerKind::None, _)
                | (ProducerKind::Dot(_), WaitStates::None | WaitStates::Gfx9 | WaitStates::Gfx908) => 0,
                (ProducerKind::Dot(_), _) => 3,
                (_, WaitStates::Gfx908) if !accumulator => 4,
                (_, WaitStates::Gfx908) if exact => 0,
                (_, WaitStates::Gfx908) => 2,
                (ProducerKind::Dgemm(large), _) if !accumulator => double_read(launch, large),
                (ProducerKind::Dgemm(false), _) if exact && consumer == ProducerKind::Dgemm(false) => 4,
                (ProducerKind::Dgemm(_), _) if exact => 0,
                (ProducerKind::Dgemm(large), rules) => match consumer {
                    ProducerKind::Xdl => 0,
                    ProducerKind::Sgemm if rules == WaitStates::Gfx90a => 0,
                    _ if !large => 4,
                    _ => 9 + 8 * later(launch, p),
                },
                (ProducerKind::Sgemm, WaitStates::Gfx94x) if !accumulator => p + 2,
                _ if !accumulator => p + 3 + later(launch, p),
                (_, WaitStates::Gfx94x) if exact => {
                    if p == 2 {
                        2
                    } else {
                        0
                    }
                }
                _ if exact => 0,
                (_, WaitStates::Gfx90a) => {
                    if matches!(consumer, ProducerKind::Dgemm(_)) {
                        p + 1
                    } else {
                        p
                    }
                }
                (ProducerKind::Sgemm, _) => {
                    if consumer == ProducerKind::Xdl {
                        0
                    } else {
                        p
                    }
                }
                _ => p + 1 + later(launch, p),
            };
            let rule = if accumulator {
                "matrix instruction writes register, another accumulates on it"
            } else {
                "matrix instruction writes register, another multiplies it"
            };
            Self::require(now, producer.time, states, rule, file, index)?;
        }
        Ok(())
    }

    /// A matrix instruction reads its accumulator.
    pub(crate) fn note_accumulator(&mut self, op: &ResolvedInst, launch: &Launch, now: u64, reg: Reg) {
        let Reg { file, first, dwords } = reg;
        let count = u16::from(dwords);

        self.prepare();
        let Some(shape) = op.matrix else { return };
        let access = Access { time: now, passes: passes(op, shape, launch), kind: kind_of(op), first, count };
        for index in first..first + count {
            self.read_as_c[slot(file, index)] = access;
        }
    }

    /// Whether there is anything to check.
    pub(crate) fn is_used(&self) -> bool {
        self.used
    }

    /// Whether writes of an instruction are to be noted.
    #[inline]
    pub(crate) fn notes(&self, op: &ResolvedInst, launch: &Launch) -> bool {
        self.used || op.matrix.is_some() || op.dot || is_accum_move(op, launch)
    }

    /// A write by an instruction of which [`MatrixHazards::notes`] says so.
    pub(crate) fn note_write(
        &mut self,
        op: &ResolvedInst,
        launch: &Launch,
        now: u64,
        file: RegFile,
        index: u16,
        run: (u16, u16),
    ) {
        let kind = kind_of(op);
        let accum_move = is_accum_move(op, launch);
        if file == RegFile::Scalar {
            return;
        }
        self.prepare();
        let at = slot(file, index);
        let passes = op.matrix.map_or(0, |shape| passes(op, shape, launch));
        self.written[at] = if kind == ProducerKind::None {
            NEVER
        } else {
            Access { time: now, passes, kind, first: run.0, count: run.1 }
        };
        self.accum_write[at] = if accum_move && op.accum_write { now } else { 0 };
        self.accum_read[at] = if accum_move && op.accum_read { now } else { 0 };
    }
}
