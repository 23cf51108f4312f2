//! Addresses that may not have been translated yet (gfx1250): until then an operation may be replayed, and reads its
//! registers again.
//!
//! `xcnt` counts them. Those of vector memory come in order, those of scalar memory in any; before one kind follows the
//! other the hardware waits by itself. To overwrite a register that such an operation reads is a fault, except by an
//! operation that comes in order after it.
//!
//! Where the hardware's rule is not published, what LLVM relies on (`SIInsertWaitcnts`, `SIInstrInfo::isXcntDrain`) is
//! taken for it: EXEC, M0 and the like are kept with the operation; a vector memory operation that overwrites what an
//! earlier one reads proves that one, and those before it, translated; and so do messages, barriers, accesses of
//! hardware registers, branches and `s_set_vgpr_msb` (`AMDGPULowerVGPREncoding`), for all of them. That is so in the
//! mode of replay that compilers set at the entry (MODE bit 25, several operations are replayed); nothing is published
//! on the other one, for which compilers before LLVM 22 make the same code.

use smallvec::SmallVec;

use wavetap_amdgpu::{Half, Reg, RegFile, Role, scalar};

use crate::op::registers::slot;
use crate::op::{Class, ResolvedInst};

/// An operation that may be replayed.
struct ReplayableOperation {
    id: u32,
    /// Its text and address, for the message.
    text: &'static str,
    address: u64,
    /// The registers it reads: the slot of the first, how many, and what of them.
    sources: SmallVec<[(u16, u16, Half); 4]>,
}

impl ReplayableOperation {
    /// Whether it reads any of a run of registers, given by the slot of the first and how many, or a half of them.
    fn reads_any(&self, (first, count): (u16, u16), half: Half) -> bool {
        let common = |its: Half| its == half || its == Half::Whole || half == Half::Whole;
        self.sources.iter().any(|&(at, n, its)| at < first + count && first < at + n && common(its))
    }
}

/// What an operation reads, by slot: of what it stores, perhaps a half.
fn sources(op: &ResolvedInst) -> SmallVec<[(u16, u16, Half); 4]> {
    let of = |reg: Reg, half: Half| (slot(reg.file, reg.first) as u16, reg.dwords.into(), half);
    if op.data_half == Half::Whole {
        return op.inst.reads().filter(is_kept_by_compilers).map(|reg| of(reg, Half::Whole)).collect();
    }
    let operands = op.inst.operands.iter().filter(|operand| operand.access.reads());
    let named = operands.filter_map(|operand| {
        let half =
            if matches!(operand.role, Role::Vdata | Role::Data0 | Role::Vdst) { op.data_half } else { Half::Whole };
        operand.reg().filter(is_kept_by_compilers).map(|reg| of(reg, half))
    });
    named.collect()
}

/// All of a wave, in the order of issue.
#[derive(Default)]
pub(crate) struct XcntReplay {
    list: Vec<ReplayableOperation>,
    /// Whether they are of scalar memory.
    scalar: bool,
}

impl XcntReplay {
    /// Whether none is outstanding.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// An operation is issued that writes these runs of registers.
    pub(crate) fn issue(&mut self, id: u32, op: &ResolvedInst, written: &[(u16, u16)]) {
        let scalar = op.class == Class::Smem;
        if self.scalar != scalar {
            self.list.clear();
            self.scalar = scalar;
        }
        let reads_any =
            |translation: &ReplayableOperation| written.iter().any(|&run| translation.reads_any(run, op.data_half));
        if let Some(last) = self.list.iter().rposition(reads_any)
            && !scalar
        {
            self.list.drain(..=last);
        }
        self.list.push(ReplayableOperation {
            id,
            text: op.inst.variant.name,
            address: op.address,
            sources: sources(op),
        });
    }

    /// A wait for at most so many translations.
    pub(crate) fn wait(&mut self, allowed: u32) {
        if !self.scalar || allowed == 0 {
            let done = self.list.len().saturating_sub(allowed as usize);
            self.list.drain(..done);
        }
    }

    /// An operation is done: its addresses are translated, and with one of vector memory those of all before
    /// it.
    pub(crate) fn complete(&mut self, id: u32) {
        match self.list.binary_search_by_key(&id, |translation| translation.id) {
            Ok(at) if self.scalar => drop(self.list.remove(at)),
            Ok(at) => drop(self.list.drain(..=at)),
            Err(_) => {}
        }
    }

    /// All are done.
    pub(crate) fn clear(&mut self) {
        self.list.clear();
    }

    /// The operation, its text and address, that may read a register (by its slot), or a half of it, after `op` has
    /// overwritten it.
    pub(crate) fn reader(&self, op: &ResolvedInst, slot: usize, half: Half) -> Option<(&'static str, u64)> {
        // What vector memory brings comes after the translations of what was issued before.
        if !self.scalar && op.is_translated && op.class != Class::Smem {
            return None;
        }
        let found = self.list.iter().find(|translation| translation.reads_any((slot as u16, 1), half))?;
        Some((found.text, found.address))
    }

    /// Whether none reads any of a run of registers.
    pub(crate) fn are_free(&self, file: RegFile, first: u16, count: u16) -> bool {
        let run = (slot(file, first) as u16, count);
        !self.list.iter().any(|translation| translation.reads_any(run, Half::Whole))
    }
}

/// Vector registers, scalar registers, VCC.
fn is_kept_by_compilers(reg: &Reg) -> bool {
    reg.file != RegFile::Scalar || reg.first < scalar::NULL && reg.first != scalar::M0
}
