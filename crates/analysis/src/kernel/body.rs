//! The instructions of one kernel or function, in address order, and how control leaves each of them.

use smallvec::SmallVec;

use super::{Scheduling, expert_scheduling, vgpr_msb, vskip};
use wavetap_amdgpu::{Access, Inst, OpcodeFlags, Operand, Reg, Target, VgprMsb, scalar};
use wavetap_base::entity::InstId;

/// Whether a body is entered by the dispatcher or by a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BodyKind {
    /// A kernel: nothing is pending at its entry and it cannot return.
    Kernel,
    /// A device function: returns through `s[30:31]` (AMDGPUUsage, "Call convention").
    Function,
}

/// Where a call goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallTarget {
    /// To code at this address.
    Known(u64),
    /// Not known: any function, of this code object or of another.
    Unknown,
}

/// How control leaves an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flow {
    /// To the next instruction.
    Next,
    /// To another instruction of the body.
    Jump(InstId),
    /// To this instruction of the body, or to the next one.
    Branch(InstId),
    /// To a function that returns to the next instruction.
    Call(CallTarget),
    /// To a function that returns to this body's caller.
    TailCall(CallTarget),
    /// Back to the caller.
    Return,
    /// To an unknown place.
    IndirectJump,
    /// The wave ends.
    End,
}

impl Flow {
    /// Whether control can go on to the next instruction.
    #[must_use]
    pub fn falls_through(self) -> bool {
        matches!(self, Flow::Next | Flow::Branch(_) | Flow::Call(_))
    }
}

/// The registers that the instructions of a body read and write, one instruction after the other: they are asked for
/// again and again.
#[derive(Debug, Clone, Default)]
pub(super) struct Registers {
    regs: Vec<Reg>,
    /// Of each instruction: where those that it reads begin, and those that it writes.
    starts: Vec<[u32; 2]>,
}

impl Registers {
    /// Of instructions, as they name them.
    pub(super) fn of(insts: &[Inst]) -> Registers {
        let mut all = Registers { regs: Vec::with_capacity(6 * insts.len()), starts: Vec::with_capacity(insts.len()) };
        let mut writes: SmallVec<[Reg; 8]> = SmallVec::new();
        for inst in insts {
            let start = all.regs.len() as u32;
            inst.accesses(|reg| all.regs.push(reg), |reg| writes.push(reg));
            debug_assert!(
                inst.reads().eq(all.regs[start as usize..].iter().copied()) && inst.writes().eq(writes.iter().copied())
            );
            all.starts.push([start, all.regs.len() as u32]);
            all.regs.extend_from_slice(&writes);
            writes.clear();
        }
        all
    }

    fn reads(&self, id: InstId) -> &[Reg] {
        let [reads, writes] = self.starts[id.index()];
        &self.regs[reads as usize..writes as usize]
    }

    fn writes(&self, id: InstId) -> &[Reg] {
        let end = self.starts.get(id.index() + 1).map_or(self.regs.len(), |next| next[0] as usize);
        &self.regs[self.starts[id.index()][1] as usize..end]
    }
}

/// One kernel or device function: every instruction that is reachable from its entry, in address order.
///
/// An [`InstId`] is the index of an instruction in that order. Instructions that follow each other by index need not
/// follow each other in memory: bytes between them are not reachable.
#[derive(Debug, Clone)]
pub struct Body {
    pub(super) name: String,
    pub(super) kind: BodyKind,
    pub(super) target: Target,
    pub(super) entry: InstId,
    pub(super) entry_address: u64,
    pub(super) insts: Vec<Inst>,
    pub(super) addresses: Vec<u64>,
    pub(super) flows: Vec<Flow>,
    /// The calls among them: functions may be asked for those often.
    pub(super) calls: Vec<InstId>,
    /// Whether control may go to an unknown place without a call.
    pub(super) jumps_away: bool,
    /// The high bits of vector register numbers at each instruction, where they are known; empty if they are 0
    /// everywhere.
    pub(super) vgpr_msb: Vec<Option<VgprMsb>>,
    /// Whether vector instructions may be skipped at each instruction; empty if they are nowhere.
    pub(super) vskip: Vec<bool>,
    /// What checks dependences of vector registers at each instruction; empty if the hardware does everywhere.
    pub(super) scheduling: Vec<Scheduling>,
    /// What its instructions read and write, with those high bits.
    pub(super) registers: Registers,
    /// Those of its instructions.
    pub(super) opcode_flags: OpcodeFlags,
}

impl Body {
    /// The symbol's name, or one made from the address.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Kernel or function.
    #[must_use]
    pub fn kind(&self) -> BodyKind {
        self.kind
    }

    /// The processor it is for.
    #[must_use]
    pub fn target(&self) -> Target {
        self.target
    }

    /// The instruction at which it is entered (not always the first one in memory). Of a kernel with preloaded
    /// arguments (gfx90a, gfx94x, gfx950), the one at its entry address, for firmware that does not preload them, if
    /// the way from there leads on to the one for firmware that does, as compilers have it; otherwise the latter.
    #[must_use]
    pub fn entry(&self) -> InstId {
        self.entry
    }

    /// The address that a symbol or a kernel descriptor has for it: that of [`Body::entry`], unless
    /// [`Body::begins_after_entry`].
    #[must_use]
    pub fn entry_address(&self) -> u64 {
        self.entry_address
    }

    /// Whether it is the code of a kernel whose arguments are in registers already, and which the code at the entry
    /// address leads around.
    #[must_use]
    pub fn begins_after_entry(&self) -> bool {
        self.address(self.entry) != self.entry_address
    }

    /// How many instructions it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.insts.len()
    }

    /// Never true: the entry is an instruction.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.insts.is_empty()
    }

    /// All instruction indices in address order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = InstId> + ExactSizeIterator + use<> {
        (0..self.insts.len() as u32).map(InstId)
    }

    /// All instructions, in address order.
    #[must_use]
    pub fn insts(&self) -> &[Inst] {
        &self.insts
    }

    /// What is true of the operation of one of its instructions at least.
    #[must_use]
    pub fn opcode_flags(&self) -> OpcodeFlags {
        self.opcode_flags
    }

    /// Whether one of its instructions changes FLAT_SCRATCH.
    #[must_use]
    pub fn sets_flat_scratch(&self) -> bool {
        self.ids().any(|id| self.sets_flat_scratch_at(id))
    }

    /// Whether an instruction changes FLAT_SCRATCH, or a half of it.
    ///
    /// # Panics
    /// If `id` is not of this body.
    #[must_use]
    pub fn sets_flat_scratch_at(&self, id: InstId) -> bool {
        let inst = self.inst(id);
        match self.target.flat_scratch_hwreg() {
            None => inst.writes().any(|reg| reg.overlaps(Reg::scalar(scalar::FLAT_SCRATCH, 2))),
            Some(low) => inst.sets_hwreg().is_some_and(|number| number == low || number == low + 1),
        }
    }

    /// One instruction.
    ///
    /// # Panics
    /// If `id` is not of this body.
    #[must_use]
    pub fn inst(&self, id: InstId) -> &Inst {
        &self.insts[id.index()]
    }

    /// The registers of an operand of an instruction, if it is registers. With `s_set_vgpr_msb` (gfx1250) the vector
    /// registers that an instruction means depend on where it is: these are those, while those of [`Inst`] are the ones
    /// that its encoding names.
    ///
    /// # Panics
    /// If `id` is not of this body.
    #[must_use]
    pub fn register(&self, id: InstId, operand: &Operand) -> Option<Reg> {
        let reg = operand.reg()?;
        Some(match self.vgpr_msb.get(id.index()) {
            Some(Some(msb)) => msb.actual(self.inst(id), operand.role, reg).unwrap_or(reg),
            _ => reg,
        })
    }

    /// The high bits of vector register numbers before an instruction (gfx1250, [`VgprMsb`]); none if they depend
    /// on the path there, or on a value. 0 on targets that have none.
    ///
    /// # Panics
    /// If `id` is not of this body and its code sets high bits.
    #[must_use]
    pub fn vgpr_msb_before(&self, id: InstId) -> Option<VgprMsb> {
        if self.vgpr_msb.is_empty() { Some(VgprMsb::default()) } else { self.vgpr_msb[id.index()] }
    }

    /// [`Body::vgpr_msb_before`] the instruction that `id` falls through to, by that way.
    ///
    /// # Panics
    /// If `id` is not of this body.
    #[must_use]
    pub fn vgpr_msb_after(&self, id: InstId) -> Option<VgprMsb> {
        if self.vgpr_msb.is_empty() {
            Some(VgprMsb::default())
        } else {
            vgpr_msb::after(self, id, self.vgpr_msb_before(id))
        }
    }

    /// Whether a vector instruction that stood before this one might be skipped (`s_setvskip`, gfx8 and gfx9).
    ///
    /// # Panics
    /// If `id` is not of this body and its code has them skipped.
    #[must_use]
    pub fn skips_vectors_before(&self, id: InstId) -> bool {
        !self.vskip.is_empty() && self.vskip[id.index()]
    }

    /// What checks dependences of vector registers before an instruction (`HW_REG_WAVE_SCHED_MODE`, gfx12).
    ///
    /// # Panics
    /// If `id` is not of this body and its code sets that.
    #[must_use]
    pub fn scheduling_before(&self, id: InstId) -> Scheduling {
        if self.scheduling.is_empty() { Scheduling::Hardware } else { self.scheduling[id.index()] }
    }

    /// [`Body::scheduling_before`] the instruction that `id` falls through to, by that way.
    ///
    /// # Panics
    /// If `id` is not of this body.
    #[must_use]
    pub fn scheduling_after(&self, id: InstId) -> Scheduling {
        expert_scheduling::after(self, id, self.scheduling_before(id))
    }

    /// Whether some code of it sets what checks these dependences.
    #[must_use]
    pub fn sets_scheduling(&self) -> bool {
        !self.scheduling.is_empty()
    }

    /// The first instruction that enters other code, a caller's included, where dependences may be left to software.
    /// Functions of compilers have none: they are entered and left with all checks (LLVM, SIInsertWaitcnts).
    #[must_use]
    pub fn leaves_without_checks(&self) -> Option<InstId> {
        let leaves = |flow| matches!(flow, Flow::Call(_) | Flow::TailCall(_) | Flow::Return | Flow::IndirectJump);
        self.ids().find(|id| self.scheduling_before(*id) != Scheduling::Hardware && leaves(self.flow(*id)))
    }

    /// Whether an instruction is one that may be skipped where it is: what it says of registers and counters may then
    /// not happen.
    ///
    /// # Panics
    /// As [`Body::skips_vectors_before`].
    #[must_use]
    #[inline]
    pub fn may_be_skipped(&self, id: InstId) -> bool {
        self.skips_vectors_before(id) && vskip::is_vector(self.inst(id))
    }

    /// Every register run that an instruction reads where it is, explicitly and implicitly: see [`Inst::reads`] and
    /// [`Body::register`].
    ///
    /// # Panics
    /// If `id` is not of this body.
    #[inline]
    pub fn reads(&self, id: InstId) -> impl Iterator<Item = Reg> + '_ {
        self.registers.reads(id).iter().copied()
    }

    /// Every register run that an instruction writes where it is: see [`Inst::writes`] and [`Body::register`].
    ///
    /// # Panics
    /// If `id` is not of this body.
    #[inline]
    pub fn writes(&self, id: InstId) -> impl Iterator<Item = Reg> + '_ {
        self.registers.writes(id).iter().copied()
    }

    /// Sets the high bits of vector register numbers; what instructions read and write are from now on the registers
    /// that are meant.
    pub(super) fn set_vgpr_msb(&mut self, states: Vec<Option<VgprMsb>>) {
        self.vgpr_msb = states;
        if self.vgpr_msb.iter().all(|msb| msb.unwrap_or_default() == VgprMsb::default()) {
            return;
        }
        let mut regs = std::mem::take(&mut self.registers.regs);
        for id in self.ids() {
            let inst = &self.insts[id.index()];
            let [reads, writes] = self.registers.starts[id.index()].map(|start| start as usize);
            // The first ones are those of the operands.
            for (start, accessed) in [(reads, Access::reads as fn(Access) -> bool), (writes, Access::writes)] {
                let operands = inst.operands.iter().filter(|operand| accessed(operand.access));
                for (index, actual) in operands.filter_map(|operand| self.register(id, operand)).enumerate() {
                    regs[start + index] = actual;
                }
            }
        }
        self.registers.regs = regs;
    }

    /// The original virtual address of an instruction.
    ///
    /// # Panics
    /// If `id` is not of this body.
    #[must_use]
    pub fn address(&self, id: InstId) -> u64 {
        self.addresses[id.index()]
    }

    /// The address after an instruction.
    ///
    /// # Panics
    /// If `id` is not of this body.
    #[must_use]
    pub fn end_address(&self, id: InstId) -> u64 {
        self.address(id) + u64::from(self.inst(id).size)
    }

    /// The lowest and the highest address, the latter exclusive. There may be gaps in between.
    #[must_use]
    pub fn span(&self) -> std::ops::Range<u64> {
        match (self.addresses.first(), self.insts.len().checked_sub(1)) {
            (Some(&first), Some(last)) => first..self.end_address(InstId(last as u32)),
            _ => 0..0,
        }
    }

    /// The instruction that starts at `address`.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<InstId> {
        self.addresses.binary_search(&address).ok().map(|index| InstId(index as u32))
    }

    /// [`Body::at`] for addresses that mostly ascend: `next` is where the search begins, 0 at first, and is kept up to
    /// date.
    pub fn at_next(&self, address: u64, next: &mut usize) -> Option<InstId> {
        let found = if self.addresses.get(*next) == Some(&address) { InstId(*next as u32) } else { self.at(address)? };
        *next = found.index() + 1;
        Some(found)
    }

    /// The instruction whose bytes contain `address`.
    #[must_use]
    pub fn containing(&self, address: u64) -> Option<InstId> {
        let index = self.addresses.partition_point(|&start| start <= address).checked_sub(1)?;
        let id = InstId(index as u32);
        (address < self.end_address(id)).then_some(id)
    }

    /// How control leaves an instruction.
    ///
    /// # Panics
    /// If `id` is not of this body.
    #[must_use]
    pub fn flow(&self, id: InstId) -> Flow {
        self.flows[id.index()]
    }

    /// The instruction that follows in memory, when control falls through to it.
    #[must_use]
    pub fn next(&self, id: InstId) -> Option<InstId> {
        if !self.flow(id).falls_through() {
            return None;
        }
        let (behind, end) = (InstId(id.0 + 1), self.end_address(id));
        // Where it does not follow by index, there may be another at this address in a damaged body only.
        if self.addresses.get(behind.index()) == Some(&end) { Some(behind) } else { self.at(end) }
    }

    /// The instructions of this body that control can reach directly from `id`. A call is followed by the instruction
    /// it returns to.
    pub fn successors(&self, id: InstId) -> impl Iterator<Item = InstId> + use<> {
        let taken = match self.flow(id) {
            Flow::Jump(to) | Flow::Branch(to) => Some(to),
            _ => None,
        };
        taken.into_iter().chain(self.next(id))
    }

    /// The calls: instruction and target, tail calls included.
    pub fn calls(&self) -> impl Iterator<Item = (InstId, CallTarget)> + '_ {
        self.calls.iter().filter_map(|id| match self.flow(*id) {
            Flow::Call(target) | Flow::TailCall(target) => Some((*id, target)),
            _ => None,
        })
    }

    /// The calls that do not return, as nothing of this body follows them: see
    /// [`Image::set_end`](super::Image::set_end).
    pub fn last_calls(&self) -> impl Iterator<Item = (InstId, CallTarget)> + '_ {
        self.calls().filter(|(id, _)| matches!(self.flow(*id), Flow::Call(_)) && self.next(*id).is_none())
    }

    /// Whether control may leave it for an unknown place other than by a call ([`Flow::IndirectJump`]).
    #[must_use]
    pub fn jumps_away(&self) -> bool {
        self.jumps_away
    }
}
