//! One wave in the middle of an instruction: access to its registers with every check the strict mode makes.

use std::sync::Arc;

use wavetap_amdgpu::{Counter, EventHazards, Half, RegFile, Target, VgprMsb, WaitStates, print, scalar};

use super::random::Random;
use crate::address::CodeAddress;
use crate::address::aperture::FLAT_SCRATCH_BASE;
use crate::address::aperture::LANES_APERTURE;
use crate::address::aperture::PRIVATE_APERTURE;
use crate::address::aperture::SHARED_APERTURE;
use crate::exec::memory::gws::Ask;
use crate::exec::vector::fast::Work;
use crate::fault::FaultKind;
use crate::fault::findings::Passes;
use crate::fault::overrun::Overrun;
use crate::fault::stop::Step;
use crate::fault::stop::at_lane;
use crate::fault::stop::stop;
use crate::fault::stop::undefined;
use crate::float::Env;
use crate::lanes::LANES;
use crate::lanes::Lanes;
use crate::lanes::Registers;
use crate::lanes::active;
use crate::lanes::{Register, Row};
use crate::memory::View;
use crate::op::registers::register_name;
use crate::op::{Op, Source, Ty};
use crate::shadow::hazard::Hazards;
use crate::shadow::in_flight::Pending;
use crate::strict::store_order;
use crate::strict::{GroupChecks, WaveChecks};
use crate::trace::DispatchStats;
use crate::trace::origins::WaveOrigins;

/// What a wave is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Running,
    AtBarrier,
    /// Has signalled the barrier, and waits until all have (gfx12).
    AtSplitBarrier,
    /// Waits for waves of other workgroups, too: see [`Wave::asks`].
    AtGws,
    /// `s_sleep` and friends: lets others run first.
    Yielding,
    Ended,
}

/// The state of a wave.
pub(crate) struct Wave {
    /// By operand code: `s0..s101`, FLAT_SCRATCH, XNACK_MASK, VCC, TTMPs, M0, EXEC.
    pub sgpr: [u32; 128],
    pub vgpr: Registers,
    pub agpr: Registers,
    pub scc: bool,
    pub mode: u32,
    /// What MODE means for arithmetic.
    pub env: Env,
    /// What it means for the short ways of instructions.
    pub way: Way,
    /// The high bits of vector register numbers, which MODE has as well.
    pub vgpr_msb: VgprMsb,
    /// Behind the last instruction that wrote a literal to MODE (gfx125x).
    pub behind_mode_write: Option<u64>,
    /// Bits 1:0 of the scheduling mode (gfx12): whether the hardware looks after vector registers between VALU and
    /// memory, as it does at first.
    pub scheduling: u32,
    pub trapsts: u32,
    pub pc: u64,
    /// The instruction took a branch.
    pub jumped: bool,
    pub status: Status,
    /// Scalar registers below this one are allocated.
    pub sgpr_count: u16,
    /// Device address of the wave's scratch.
    pub scratch: u64,
    /// FLAT_SCRATCH where it is no pair of scalar registers (gfx10).
    pub flat_scratch: u64,
    /// Lanes that take part: all 64, or the first 32.
    pub lanes: u64,
    /// The phase of the workgroup's barrier when the wave signalled it (gfx12).
    pub signalled: u64,
    /// What it asks of global wave sync.
    pub asks: Option<Ask>,
    /// The workgroup's slot among those running.
    pub group: usize,
    /// Workgroup id.
    pub group_id: [u32; 3],
    /// Index within the workgroup.
    pub index: u32,
    pub pending: Pending,
    pub hazards: Hazards,
    pub checks: WaveChecks,
    /// Where its values came from, if that is asked for.
    pub origins: Option<Box<WaveOrigins>>,
}

impl Wave {
    pub(crate) fn exec(&self) -> u64 {
        self.mask(scalar::EXEC)
    }

    /// The lane mask at an operand code: as many bits as the wave has lanes.
    pub(crate) fn mask(&self, code: u16) -> u64 {
        self.pair(code) & self.lanes
    }

    pub(crate) fn pair(&self, code: u16) -> u64 {
        u64::from(self.sgpr[usize::from(code)]) | u64::from(self.sgpr[usize::from(code) + 1]) << 32
    }

    pub(crate) fn set_pair(&mut self, code: u16, value: u64) {
        self.sgpr[usize::from(code)] = value as u32;
        self.sgpr[usize::from(code) + 1] = (value >> 32) as u32;
    }

    pub(crate) fn set_mode(&mut self, mode: u32) {
        self.mode = mode;
        self.env = Env::from_mode(mode);
        self.way = Way::of(mode);
    }

    /// Sets the high bits of vector register numbers.
    pub(crate) fn set_vgpr_msb(&mut self, msb: VgprMsb) {
        self.vgpr_msb = msb;
        self.mode = msb.in_mode(self.mode);
    }
}

/// What the target and the dispatch fix for all waves.
#[derive(Clone)]
pub(crate) struct Launch {
    pub strict: bool,
    /// Findings that do not stop it.
    pub passes: Arc<Passes>,
    /// The target, with the wave size of the kernel.
    pub target: Target,
    /// Lanes of a wave.
    pub lanes: usize,
    /// The wait states that are checked.
    pub wait_states: WaitStates,
    /// The hazards that are checked, of those that are not counted in slots.
    pub event_hazards: EventHazards,
    /// Waves of a workgroup may not share a first-level cache that keeps their operations in order
    /// (`docs/reference/memory-scopes.md`).
    pub apart: bool,
    /// The hardware sets up scratch.
    pub architected_scratch: bool,
    /// FLAT_SCRATCH is a hardware register, no pair of scalar registers.
    pub flat_scratch_hidden: bool,
    /// FLAT_SCRATCH holds the size and the offset.
    pub offset_scratch: bool,
    pub private_size: u32,
    pub lds_size: u32,
    /// First device address behind the scratch of all waves, and the first in it.
    pub scratch_arena: (u64, u64),
    pub wave_scratch_size: u64,
}

impl Launch {
    /// Halves of 32 lanes that a wave has: 1 or 2.
    pub(crate) fn halves(&self) -> usize {
        self.lanes / 32
    }

    /// The same without checks.
    pub(crate) fn friendly(&self) -> Launch {
        Launch { strict: false, ..self.clone() }
    }

    /// CDNA3 and relatives, which need more wait states.
    pub(crate) fn is_gfx94(&self) -> bool {
        matches!(self.wait_states, WaitStates::Gfx94x | WaitStates::Gfx950)
    }
}

/// What a MODE means for the short ways of instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// [`Env::USUAL`].
    Usual,
    /// [`Env::FLUSHING`].
    Flushing,
    /// What is open to operations that are no arithmetic on floats.
    Bits,
    /// Registers are indexed: none is open.
    Closed,
}

impl Way {
    pub(crate) fn of(mode: u32) -> Way {
        match Env::from_mode(mode) {
            _ if mode & GPR_IDX_EN != 0 => Way::Closed,
            Env::USUAL => Way::Usual,
            Env::FLUSHING => Way::Flushing,
            _ => Way::Bits,
        }
    }
}

/// MODE bit that offsets vector registers by M0.
pub(crate) const GPR_IDX_EN: u32 = 1 << 27;
/// MODE bit that lets vector instructions be skipped (gfx8 and gfx9).
pub(crate) const VSKIP: u32 = 1 << 28;

/// The barrier of a workgroup that waves signal and wait for in two steps (gfx12).
#[derive(Default)]
pub(crate) struct Barrier {
    /// Waves that have not ended.
    pub members: u32,
    /// Those that have signalled.
    pub arrived: u32,
    /// How often all have.
    pub phase: u64,
    /// What the strict mode knows of the workgroup.
    pub checks: GroupChecks,
}

impl Barrier {
    /// Begins the next phase when all waves have signalled.
    pub(crate) fn settle(&mut self) {
        if self.arrived >= self.members {
            self.arrived = 0;
            self.phase += 1;
        }
    }
}

/// A wave that is executing an instruction.
pub(crate) struct Core<'a> {
    pub memory: &'a View<'a>,
    pub lds: &'a mut [u8],
    pub wave: &'a mut Wave,
    pub launch: &'a Launch,
    pub random: &'a mut Random,
    pub stats: &'a mut DispatchStats,
    /// The shader clock.
    pub clock: &'a mut u64,
    pub barrier: &'a mut Barrier,
    pub work: &'a mut Work,
}

impl Core<'_> {
    /// If the instruction that was just run went past the end of an allocation, within its last page, notes that once.
    #[inline]
    pub(crate) fn note_overrun(&mut self, op: &Op) {
        if self.memory.has_overrun() {
            self.keep_overrun(op);
        }
    }

    #[cold]
    fn keep_overrun(&mut self, op: &Op) {
        let Some(found) = self.memory.take_overrun() else { return };
        let place = CodeAddress { object: op.object, address: op.address };
        self.stats.add_overrun(&Overrun { place, instruction: print(self.launch.target, &op.inst).into(), ..found });
    }
}

impl Core<'_> {
    /// Whether the wave passes over vector instructions.
    #[inline]
    pub(crate) fn skips_vectors(&self) -> bool {
        // Later targets have another bit there.
        self.wave.mode & VSKIP != 0 && self.launch.wait_states != WaitStates::None
    }

    /// Checks that a run of registers may be read now by this instruction.
    pub(crate) fn reading(&mut self, op: &Op, file: RegFile, first: u16, count: u16) -> Step {
        self.reading_half(op, file, first, count, Half::Whole)
    }

    /// [`Core::reading`] of what a memory instruction stores.
    pub(crate) fn reading_data(&mut self, op: &Op, file: RegFile, first: u16, count: u16) -> Step {
        self.reading_half(op, file, first, count, op.data_half)
    }

    fn reading_half(&mut self, op: &Op, file: RegFile, first: u16, count: u16, half: Half) -> Step {
        self.bounds(file, first, count)?;
        if self.launch.strict {
            if let Some(origins) = &mut self.wave.origins {
                origins.reads.push((file, first, count));
            }
            let Wave { pending, hazards, .. } = &*self.wave;
            if !pending.are_free(file, first, count) || hazards.looks_at_reads(op, self.launch, file) {
                for index in first..first + count {
                    let waited = self.wave.pending.check_read(file, index, half);
                    self.passed(waited)?;
                    let safe = self.wave.hazards.check_read(op, self.launch, file, index);
                    self.passed(safe)?;
                }
            }
        }
        Ok(())
    }

    /// Checks that a run of registers may be written now by this instruction, and notes that it is.
    pub(crate) fn writing(&mut self, op: &Op, file: RegFile, first: u16, count: u16) -> Step {
        self.writing_half(op, file, first, count, Half::Whole)
    }

    /// [`Core::writing`] of what a memory instruction loads.
    pub(crate) fn writing_data(&mut self, op: &Op, file: RegFile, first: u16, count: u16) -> Step {
        self.writing_half(op, file, first, count, op.data_half)
    }

    fn writing_half(&mut self, op: &Op, file: RegFile, first: u16, count: u16, half: Half) -> Step {
        self.bounds(file, first, count)?;
        if self.launch.strict {
            if let Some(origins) = &mut self.wave.origins {
                origins.writes.push((file, first, count));
            }
            let Wave { pending, hazards, .. } = &*self.wave;
            if !pending.are_free(file, first, count) || hazards.looks_at_writes(op, file) {
                for index in first..first + count {
                    let waited = self.wave.pending.check_write(op, file, index, half);
                    self.passed(waited)?;
                    let safe = self.wave.hazards.check_write(op, self.launch, file, index);
                    self.passed(safe)?;
                }
            }
            self.wave.hazards.note_writes(op, self.launch, file, (first, count));
            let whole = if self.launch.lanes == 32 { 1 } else { 2 };
            if file == RegFile::Scalar && first <= scalar::VCC && first + count >= scalar::VCC + whole {
                self.wave.hazards.note_vcc();
            }
        }
        Ok(())
    }

    fn bounds(&self, file: RegFile, first: u16, count: u16) -> Step {
        // What M0 adds to a number may be anything.
        let end = first.saturating_add(count);
        let allocated = match file {
            RegFile::Vector => self.wave.vgpr.len() as u16,
            RegFile::Accum => self.wave.agpr.len() as u16,
            // FLAT_SCRATCH, VCC and what follows are there whatever is allocated.
            RegFile::Scalar if first >= scalar::FLAT_SCRATCH => 128,
            RegFile::Scalar => self.wave.sgpr_count,
        };
        if end > allocated {
            let index = allocated.max(first);
            return stop(FaultKind::RegisterBounds {
                register: register_name(file, index).into(),
                allocated: u32::from(allocated),
            });
        }
        Ok(())
    }

    /// A scalar by operand code.
    pub(crate) fn scalar(&mut self, op: &Op, code: u16) -> Step<u32> {
        // Outside the strict mode a register that is there may be read.
        if !self.launch.strict && code < self.wave.sgpr_count {
            return Ok(self.wave.sgpr[usize::from(code)]);
        }
        if code == scalar::NULL {
            return Ok(0);
        }
        if code < 128 {
            self.reading(op, RegFile::Scalar, code, 1)?;
            return Ok(self.wave.sgpr[usize::from(code)]);
        }
        Ok(match code {
            // The apertures are in the high halves of these 64-bit values.
            scalar::SHARED_BASE..=239 => 0,
            // Scratch by flat addresses: see `vector_memory`.
            FLAT_SCRATCH_BASE if self.launch.target.has_flat_scratch_base() => 0,
            231 if self.launch.target.has_flat_scratch_base() => LANES_APERTURE,
            scalar::VCCZ => u32::from(self.wave.mask(scalar::VCC) == 0),
            scalar::EXECZ => u32::from(self.wave.exec() == 0),
            scalar::SCC => u32::from(self.wave.scc),
            _ => return undefined(format!("read of scalar operand {code}")),
        })
    }

    /// A 64-bit scalar by the code of its low half.
    pub(crate) fn scalar64(&mut self, op: &Op, code: u16) -> Step<u64> {
        if !self.launch.strict && code.saturating_add(1) < self.wave.sgpr_count {
            return Ok(self.wave.pair(code));
        }
        if code == scalar::NULL {
            return Ok(0);
        }
        if code < 127 {
            self.reading(op, RegFile::Scalar, code, 2)?;
            return Ok(self.wave.pair(code));
        }
        let aperture = |base: u32, limit: bool| u64::from(base) << 32 | if limit { 0xffff_ffff } else { 0 };
        Ok(match code {
            FLAT_SCRATCH_BASE if self.launch.target.has_flat_scratch_base() => aperture(LANES_APERTURE, false),
            235 => aperture(SHARED_APERTURE, false),
            236 => aperture(SHARED_APERTURE, true),
            237 => aperture(PRIVATE_APERTURE, false),
            238 => aperture(PRIVATE_APERTURE, true),
            code => u64::from(self.scalar(op, code)?),
        })
    }

    pub(crate) fn set_scalar(&mut self, op: &Op, code: u16, value: u32) -> Step {
        if !self.launch.strict && code < self.wave.sgpr_count {
            self.wave.sgpr[usize::from(code)] = value;
            return Ok(());
        }
        if code >= 128 {
            return undefined(format!("write of scalar operand {code}"));
        }
        if code == scalar::NULL {
            return Ok(());
        }
        self.writing(op, RegFile::Scalar, code, 1)?;
        self.wave.sgpr[usize::from(code)] = value;
        Ok(())
    }

    /// A lane mask: one scalar register in waves of 32, two in waves of 64.
    pub(crate) fn mask(&mut self, op: &Op, code: u16) -> Step<u64> {
        if self.launch.lanes == 32 { Ok(self.scalar(op, code)?.into()) } else { self.scalar64(op, code) }
    }

    /// Writes a lane mask.
    pub(crate) fn set_mask(&mut self, op: &Op, code: u16, mask: u64) -> Step {
        if self.launch.lanes == 32 { self.set_scalar(op, code, mask as u32) } else { self.set_scalar64(op, code, mask) }
    }

    pub(crate) fn set_scalar64(&mut self, op: &Op, code: u16, value: u64) -> Step {
        if code >= 127 {
            return undefined(format!("64-bit write of scalar operand {code}"));
        }
        if code == scalar::NULL {
            return Ok(());
        }
        self.writing(op, RegFile::Scalar, code, 2)?;
        self.wave.set_pair(code, value);
        Ok(())
    }

    /// The register number with `s_set_gpr_idx` applied; `position` is 0-2 for sources and 3 for the destination.
    pub(crate) fn indexed(&self, register: u16, position: u8) -> u16 {
        let m0 = self.wave.sgpr[usize::from(scalar::M0)];
        if self.wave.mode & GPR_IDX_EN != 0 && m0 >> (12 + position) & 1 != 0 {
            register + (m0 & 0xff) as u16
        } else {
            register
        }
    }

    /// A source operand of every lane.
    pub(crate) fn lanes(&mut self, op: &Op, source: Source, ty: Ty, position: u8) -> Step<Lanes> {
        let wide = ty.dwords() == 2;
        match source {
            Source::Vector(first) => {
                let first = self.indexed(first, position);
                self.reading(op, RegFile::Vector, first, u16::from(ty.dwords()))?;
                Ok(join(&self.wave.vgpr, first, wide))
            }
            Source::Accum(first) => {
                self.reading(op, RegFile::Accum, first, u16::from(ty.dwords()))?;
                Ok(join(&self.wave.agpr, first, wide))
            }
            Source::Scalar(code) if ty == Ty::Mask => {
                let mask = self.mask(op, code)?;
                Ok(std::array::from_fn(|lane| mask >> lane & 1))
            }
            Source::Scalar(code) if wide => Ok([self.scalar64(op, code)?; LANES]),
            Source::Scalar(code) => Ok([u64::from(self.scalar(op, code)?); LANES]),
            Source::Const(bits) if ty == Ty::Mask => Ok(std::array::from_fn(|lane| bits >> lane & 1)),
            Source::Const(bits) => Ok([bits; LANES]),
            Source::None => Ok([0; LANES]),
            Source::LdsDirect => {
                let m0 = self.scalar(op, scalar::M0)?;
                let at = (m0 & 0xffff) as usize;
                match self.lds.get(at..at + 4) {
                    Some(bytes) => Ok([u64::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])); LANES]),
                    None => stop(FaultKind::LdsBounds { offset: at as u64, size: 4, allocated: self.launch.lds_size }),
                }
            }
        }
    }

    /// Writes 32- or 64-bit results of the lanes in `mask`.
    pub(crate) fn set_lanes(&mut self, op: &Op, first: u16, wide: bool, values: &Lanes, mask: u64) -> Step {
        let first = self.indexed(first, 3);
        self.writing(op, RegFile::Vector, first, if wide { 2 } else { 1 })?;
        let at = usize::from(first);
        for lane in active(mask) {
            self.wave.vgpr[at][lane] = values[lane] as u32;
        }
        if wide {
            for lane in active(mask) {
                self.wave.vgpr[at + 1][lane] = (values[lane] >> 32) as u32;
            }
        }
        Ok(())
    }

    /// What is in a run of registers; the caller has called [`Core::reading`].
    pub(crate) fn rows(&mut self, file: RegFile, first: u16, count: u16) -> Vec<Row> {
        self.file(file)[usize::from(first)..usize::from(first + count)].iter().map(|register| register.0).collect()
    }

    /// The vector or accumulation registers, for writing; the caller has called [`Core::writing`].
    pub(crate) fn file(&mut self, file: RegFile) -> &mut Registers {
        if file == RegFile::Accum { &mut self.wave.agpr } else { &mut self.wave.vgpr }
    }
}

impl Core<'_> {
    /// A wait for at most `allowed` operations of a counter: results become usable, stores visible.
    pub(crate) fn wait_for(&mut self, counter: Counter, allowed: u32) -> Step {
        if !self.launch.strict {
            return Ok(());
        }
        self.wave.pending.wait(counter as usize, allowed);
        at_lane(self.wave.pending.publish(None, false, self.memory, self.lds), 0)?;
        store_order::after_wait(self, counter, allowed)
    }
}

fn join(registers: &[Box<Register>], first: u16, wide: bool) -> Lanes {
    let at = usize::from(first);
    if wide {
        std::array::from_fn(|lane| u64::from(registers[at][lane]) | u64::from(registers[at + 1][lane]) << 32)
    } else {
        std::array::from_fn(|lane| u64::from(registers[at][lane]))
    }
}
