//! Required wait states: what the gfx9 family leaves to software, checked in issued instructions.
//!
//! A rule says how many issue slots must lie between a producer and a consumer; `s_nop k` fills k + 1 of them, any
//! other instruction one.

use std::collections::VecDeque;

use wavetap_amdgpu::{Flags, Reg, RegFile, WaitStates, scalar};

use super::matrix_hazard::MatrixHazards;
use crate::fault::FaultKind;
use crate::fault::stop::{ExecResult, stop};
use crate::launch::Launch;
use crate::op::memory_registers::MemoryRegisters;
use crate::op::registers::{SLOTS, register_name, slot};
use crate::op::semantics::Source;
use crate::op::{Class, ResolvedInst};

/// When things were last done to a register, in issue slots; 0: never.
#[derive(Clone, Copy, Default)]
struct Times {
    /// Written by a vector ALU instruction.
    valu: u64,
    /// Written by anything.
    any: u64,
    /// Written by a transcendental.
    trans: u64,
    /// Written in part.
    partial: u64,
    /// Read as data of a store wider than 64 bits.
    wide_store: u64,
}

/// When things were last done to the registers of a wave.
pub(crate) struct Hazards {
    /// Whether the target has required wait states at all.
    checked: bool,
    now: u64,
    /// By slot.
    times: Vec<Times>,
    exec_valu: u64,
    m0_salu: u64,
    setreg: [u64; 64],
    /// One half of VCC was written alone, which does not update VCCZ.
    vccz_stale: bool,
    matrix: MatrixHazards,
    clause: Clause,
}

/// Consecutive memory instructions of a class.
#[derive(Default)]
struct Clause {
    class: Option<Class>,
    /// The last of them, with what each names.
    members: VecDeque<MemoryRegisters>,
    /// Some of these write what another reads.
    overlaps: bool,
}

/// So many consecutive memory instructions are checked together. LLVM's look back over five; beyond that its clauses
/// are as they come.
const CLAUSE: usize = 6;

/// Long enough ago for every rule.
const START: u64 = 1000;

/// The first register that one of some instructions writes and one of others reads.
fn overlap<'a>(
    writers: impl Iterator<Item = &'a MemoryRegisters>,
    readers: impl Iterator<Item = &'a MemoryRegisters> + Clone,
) -> Option<Reg> {
    let mut written = writers.flat_map(|member| &member[0]);
    written.find(|written| readers.clone().any(|member| member[1].iter().any(|read| read.overlaps(**written)))).copied()
}

impl Clause {
    fn check(&mut self, op: &ResolvedInst, registers: &MemoryRegisters) -> ExecResult {
        let Clause { class, members, overlaps } = self;
        if *class != Some(op.class) {
            *class = Some(op.class);
            members.clear();
            *overlaps = false;
        }
        let alone = members.iter().all(|member| member[0].is_empty());
        let stores = op.inst.variant.flags.contains(Flags::STORE);
        let this = || std::iter::once(registers);
        // Those before were checked when they were issued.
        *overlaps |=
            overlap(this(), members.iter().chain(this())).or_else(|| overlap(members.iter(), this())).is_some();
        members.push_back(registers.clone());
        if members.len() > CLAUSE {
            members.pop_front();
        }
        let first = if *overlaps { overlap(members.iter(), members.iter()) } else { None };
        *overlaps = first.is_some();
        match first {
            Some(reg) if !alone => stop(FaultKind::Hazard {
                rule: "with XNACK, consecutive memory instructions write what one of them reads",
                required: 1,
                found: 0,
                resource: register_name(reg.file, reg.first).into(),
            }),
            _ if stores && !alone => stop(FaultKind::Hazard {
                rule: "with XNACK, a store directly after loads",
                required: 1,
                found: 0,
                resource: "memory".into(),
            }),
            _ => Ok(()),
        }
    }
}

impl Hazards {
    pub(crate) fn new(strict: bool, wait_states: WaitStates) -> Self {
        Hazards {
            checked: wait_states != WaitStates::None,
            now: START,
            times: if strict { vec![Times::default(); SLOTS] } else { Vec::new() },
            exec_valu: 0,
            m0_salu: 0,
            setreg: [0; 64],
            vccz_stale: false,
            matrix: MatrixHazards::new(),
            clause: Clause::default(),
        }
    }

    /// An instruction is about to be issued. With replay, no instruction of a run of consecutive scalar (or vector)
    /// memory instructions may write what one of them reads or writes, and a store begins a run of its own. Compilers
    /// keep that rule for [`CLAUSE`] instructions, so no more are checked.
    #[inline]
    pub(crate) fn check_clause(&mut self, op: &ResolvedInst) -> ExecResult {
        match &op.memory_registers {
            Some(registers) if op.replay && self.checked => self.clause.check(op, registers),
            _ => {
                self.clause.class = None;
                Ok(())
            }
        }
    }

    /// An instruction was issued; `slots` is 1 but for `s_nop`.
    pub(crate) fn advance(&mut self, slots: u64) {
        self.now += slots;
    }

    fn require(&self, since: u64, states: u64, rule: &'static str, resource: impl FnOnce() -> String) -> ExecResult {
        // The producer itself took the slot `since`.
        let found = self.now - since - 1;
        if since == 0 || found >= states || !self.checked {
            return Ok(());
        }
        stop(FaultKind::Hazard { rule, required: states as u32, found: found as u32, resource: resource().into() })
    }

    /// Whether [`Hazards::check_read`] may find anything in an instruction's reads of a file.
    #[inline]
    pub(crate) fn looks_at_reads(&self, op: &ResolvedInst, launch: &Launch, file: RegFile) -> bool {
        let of_times = match (op.class, file) {
            (Class::Vmem, RegFile::Scalar) => true,
            (Class::Valu, RegFile::Scalar) => launch.is_gfx94(),
            (Class::Valu, RegFile::Vector) => op.inst.modifiers.dpp.is_some() || launch.is_gfx94(),
            _ => false,
        };
        (of_times && self.checked) || self.matrix.is_used()
    }

    pub(crate) fn check_read(&self, op: &ResolvedInst, launch: &Launch, file: RegFile, index: u16) -> ExecResult {
        let times = &self.times[slot(file, index)];
        let name = || register_name(file, index);
        match (op.class, file) {
            (Class::Vmem, RegFile::Scalar) => {
                self.require(times.valu, 5, "VALU writes SGPR, vector memory reads it", name)?
            }
            (Class::Valu, RegFile::Scalar) if launch.is_gfx94() && index < scalar::M0 => {
                self.require(times.valu, 2, "VALU writes SGPR, VALU reads it", name)?;
            }
            (Class::Valu, RegFile::Vector) => {
                if op.inst.modifiers.dpp.is_some() && op.src[0] == Source::Vector(index) {
                    self.require(times.any, 2, "write of VGPR, DPP reads it", name)?;
                    self.require(self.exec_valu, 5, "VALU writes EXEC, DPP", || "exec".into())?;
                }
                if launch.is_gfx94() {
                    if !op.trans {
                        self.require(times.trans, 1, "transcendental writes VGPR, VALU reads it", name)?;
                    }
                    self.require(times.partial, 1, "VALU writes part of VGPR, VALU reads it", name)?;
                }
            }
            _ => {}
        }
        self.matrix.check_read(op, launch, self.now, file, index)
    }

    /// A source of a matrix instruction; `accumulator` says that it is C.
    pub(crate) fn check_matrix_source(
        &mut self,
        op: &ResolvedInst,
        launch: &Launch,
        reg: Reg,
        accumulator: bool,
    ) -> ExecResult {
        let checked = self.check_source(op, launch, reg, accumulator);
        // The run may go on after a finding.
        if accumulator {
            self.matrix.note_accumulator(op, launch, self.now, reg);
        }
        checked
    }

    fn check_source(&self, op: &ResolvedInst, launch: &Launch, reg: Reg, accumulator: bool) -> ExecResult {
        let Reg { file, first, dwords } = reg;
        for index in first..first + u16::from(dwords) {
            let valu = self.times[slot(file, index)].valu;
            // Results of matrix instructions have rules of their own.
            if file == RegFile::Vector && !self.matrix.is_result(file, index) {
                self.require(valu, 2, "VALU writes VGPR, matrix instruction reads it", || register_name(file, index))?;
            }
        }
        self.require(self.exec_valu, 4, "VALU writes EXEC, matrix instruction", || "exec".into())?;
        self.matrix.check_source(op, launch, self.now, reg, accumulator)
    }

    /// Whether [`Hazards::check_write`] may find anything in an instruction's writes of a file.
    #[inline]
    pub(crate) fn looks_at_writes(&self, op: &ResolvedInst, file: RegFile) -> bool {
        (self.checked && op.class == Class::Valu && file != RegFile::Scalar) || self.matrix.is_used()
    }

    pub(crate) fn check_write(&self, op: &ResolvedInst, launch: &Launch, file: RegFile, index: u16) -> ExecResult {
        if op.class == Class::Valu && file != RegFile::Scalar {
            let states = if launch.is_gfx94() { 2 } else { 1 };
            self.require(
                self.times[slot(file, index)].wide_store,
                states,
                "store of more than 64 bits, VALU overwrites its data",
                || register_name(file, index),
            )?;
        }
        self.matrix.check_write(op, launch, self.now, file, index)
    }

    /// Notes that a run of registers is written.
    #[inline]
    pub(crate) fn note_writes(&mut self, op: &ResolvedInst, launch: &Launch, file: RegFile, run: (u16, u16)) {
        let (first, count) = run;
        // Where nothing is checked, nothing need be known.
        if self.checked {
            (first..first + count).for_each(|index| self.note_write(op, file, index));
        }
        if self.matrix.notes(op, launch) {
            (first..first + count).for_each(|index| self.matrix.note_write(op, launch, self.now, file, index, run));
        }
    }

    #[inline]
    fn note_write(&mut self, op: &ResolvedInst, file: RegFile, index: u16) {
        let times = &mut self.times[slot(file, index)];
        times.any = self.now;
        if op.class == Class::Valu {
            times.valu = self.now;
            times.trans = if op.trans { self.now } else { 0 };
            times.partial = if op.partial { self.now } else { 0 };
            if file == RegFile::Scalar && index >= scalar::EXEC {
                self.exec_valu = self.now;
            }
        }
        if file == RegFile::Scalar {
            if index == scalar::M0 && op.class == Class::Salu {
                self.m0_salu = self.now;
            }
            if index == scalar::VCC || index == scalar::VCC + 1 {
                // Until `note_vcc` says that both were.
                self.vccz_stale = true;
            }
        }
    }

    /// A 64-bit write of VCC brings VCCZ up to date.
    pub(crate) fn note_vcc(&mut self) {
        self.vccz_stale = false;
    }

    /// `s_cbranch_vccz` and `s_cbranch_vccnz`.
    pub(crate) fn check_vccz(&self) -> ExecResult {
        if self.vccz_stale && self.checked {
            return stop(FaultKind::Hazard {
                rule: "one half of VCC was written alone, which does not update VCCZ",
                required: 0,
                found: 0,
                resource: "vccz".into(),
            });
        }
        Ok(())
    }

    /// `v_div_fmas` reads VCC.
    pub(crate) fn check_div_fmas(&self) -> ExecResult {
        for half in 0..2 {
            let at = slot(RegFile::Scalar, scalar::VCC + half);
            self.require(self.times[at].valu, 4, "VALU writes VCC, v_div_fmas reads it", || "vcc".into())?;
        }
        Ok(())
    }

    /// A scalar register selects a lane.
    pub(crate) fn check_lane_select(&self, index: u16) -> ExecResult {
        let at = slot(RegFile::Scalar, index);
        self.require(
            self.times[at].valu,
            4,
            "VALU writes SGPR, which selects the lane of v_readlane or v_writelane",
            || register_name(RegFile::Scalar, index),
        )
    }

    /// `v_readlane`, `v_readfirstlane`, `v_writelane`.
    pub(crate) fn check_lane_access(&self, launch: &Launch, source: Option<u16>) -> ExecResult {
        if !launch.is_gfx94() {
            return Ok(());
        }
        self.require(self.exec_valu, 4, "VALU writes EXEC, then a lane is read or written", || "exec".into())?;
        match source {
            Some(index) => {
                let at = slot(RegFile::Vector, index);
                self.require(self.times[at].valu, 1, "VALU writes VGPR, v_readlane reads it", || {
                    register_name(RegFile::Vector, index)
                })
            }
            None => Ok(()),
        }
    }

    /// M0 is read by a message, GDS or an LDS operation that adds to it.
    pub(crate) fn check_m0(&self) -> ExecResult {
        self.require(self.m0_salu, 1, "SALU writes M0, which a message or indexed operation reads", || "m0".into())
    }

    /// `s_getreg` or `s_setreg` of a hardware register.
    pub(crate) fn check_setreg(&self, id: usize) -> ExecResult {
        self.require(self.setreg[id & 63], 2, "s_setreg, then s_getreg or s_setreg of the same register", || {
            format!("hwreg({id})")
        })
    }

    pub(crate) fn note_setreg(&mut self, id: usize) {
        self.setreg[id & 63] = self.now;
    }

    /// A store reads more than 64 bits of data.
    pub(crate) fn note_wide_store(&mut self, file: RegFile, first: u16, count: u16) {
        for index in first..first + count {
            self.times[slot(file, index)].wide_store = self.now;
        }
    }
}
