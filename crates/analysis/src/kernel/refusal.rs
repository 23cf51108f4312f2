//! Why a kernel is refused: fixed reasons, each with its location.
//!
//! A kernel is instrumented whole or not at all. Every stage that can say no (planning of registers and LDS, code
//! placement) says it with a [`Refusal`]; a fault of this program or of the input is an [`Error`] instead.

use std::fmt;

use wavetap_base::error::Error;

/// The reason of a refusal. Its name is stable: scripts compare it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Control reaches bytes that are no instruction, or leaves the code.
    Undecodable,
    /// A jump through a register goes to an unknown place.
    IndirectJump,
    /// A direct call (`s_call_b64`): its target would have to be within reach of the new code.
    DirectCall,
    /// The kernel returns or tail-calls: it is no kernel as the ABI knows it.
    KernelReturns,
    /// A site, or an end of the wave, where vector registers are indexed at run time (between `s_set_gpr_idx_on` and
    /// `off`).
    RegisterIndexMode,
    /// The MODE register is written in bits that change which instructions execute or which registers they name.
    ModeWrite,
    /// A site's condition is read from a register that inserted code changes (SCC, VCCZ, EXECZ).
    MaskOperand,
    /// Not enough scalar registers that no code uses.
    ScalarRegisters,
    /// Not enough vector registers that no code uses.
    VectorRegisters,
    /// More of a SIMD's waves would be lost than the user allows.
    OccupancyLoss,
    /// A workgroup that ran before would not fit on a compute unit.
    Unlaunchable,
    /// What the prologue needs does not fit the 16 user SGPRs.
    UserSgprs,
    /// Kernel arguments are preloaded into SGPRs, and neither code at the entry nor inserted code can load them.
    KernargPreload,
    /// The wave's vector registers change in number while it runs, its halves share some, or some have two names.
    VectorAllocation,
    /// A site in the middle of a clause (`s_clause`).
    InsideClause,
    /// The LDS size in the metadata does not fit 32 bits.
    LdsSize,
    /// Workgroups of the kernel have no LDS, because their waves may run on different compute units.
    ThreadgroupSplit,
    /// An argument points to LDS that the launcher places.
    LdsArguments,
    /// A called function may end the wave, which would lose counters kept in LDS.
    CalleeEndsWave,
    /// The largest workgroup is not known.
    WorkgroupSize,
    /// This probe does not support this counter mode.
    CounterMode,
    /// A branch does not reach its target after code was inserted.
    BranchOutOfReach,
    /// The program counter is read where SCC must survive and no scalar register is free.
    PcRead,
    /// A loop goes back to the instruction at which the time of a wave begins.
    TimedLoop,
    /// The addresses of an access to global memory cannot be compared with what is allocated.
    UncheckedAccess,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Reason; 25] = [
        Reason::Undecodable,
        Reason::IndirectJump,
        Reason::DirectCall,
        Reason::KernelReturns,
        Reason::RegisterIndexMode,
        Reason::ModeWrite,
        Reason::MaskOperand,
        Reason::ScalarRegisters,
        Reason::VectorRegisters,
        Reason::OccupancyLoss,
        Reason::Unlaunchable,
        Reason::UserSgprs,
        Reason::KernargPreload,
        Reason::VectorAllocation,
        Reason::InsideClause,
        Reason::LdsSize,
        Reason::ThreadgroupSplit,
        Reason::LdsArguments,
        Reason::CalleeEndsWave,
        Reason::WorkgroupSize,
        Reason::CounterMode,
        Reason::BranchOutOfReach,
        Reason::PcRead,
        Reason::TimedLoop,
        Reason::UncheckedAccess,
    ];

    /// The fixed name, in snake case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Reason::Undecodable => "undecodable",
            Reason::IndirectJump => "indirect_jump",
            Reason::DirectCall => "direct_call",
            Reason::KernelReturns => "kernel_returns",
            Reason::RegisterIndexMode => "register_index_mode",
            Reason::ModeWrite => "mode_write",
            Reason::MaskOperand => "mask_operand",
            Reason::ScalarRegisters => "scalar_registers",
            Reason::VectorRegisters => "vector_registers",
            Reason::OccupancyLoss => "occupancy_loss",
            Reason::Unlaunchable => "unlaunchable",
            Reason::UserSgprs => "user_sgprs",
            Reason::KernargPreload => "kernarg_preload",
            Reason::VectorAllocation => "vector_allocation",
            Reason::InsideClause => "inside_clause",
            Reason::LdsSize => "lds_size",
            Reason::ThreadgroupSplit => "threadgroup_split",
            Reason::LdsArguments => "lds_arguments",
            Reason::CalleeEndsWave => "callee_ends_wave",
            Reason::WorkgroupSize => "workgroup_size",
            Reason::CounterMode => "counter_mode",
            Reason::BranchOutOfReach => "branch_out_of_reach",
            Reason::PcRead => "pc_read",
            Reason::TimedLoop => "timed_loop",
            Reason::UncheckedAccess => "unchecked_access",
        }
    }

    /// What it means for the user of a refused kernel, in a sentence or two.
    #[must_use]
    pub fn explanation(self) -> &'static str {
        match self {
            Reason::Undecodable => {
                "Control can reach bytes that are not an instruction of the target, or leaves the code. Such code \
                    cannot be moved."
            }
            Reason::IndirectJump => {
                "A jump through a register has an unknown target, which may be code that has moved."
            }
            Reason::DirectCall => "`s_call_b64` reaches 128 KB. The new code is too far from the called function.",
            Reason::KernelReturns => {
                "The kernel ends with a return or with a jump into another function, so the end of its wave, where \
                    counters are written, is not known."
            }
            Reason::RegisterIndexMode => {
                "Between `s_set_gpr_idx_on` and `off`, instructions access other registers than those that they name, \
                    so nothing can be counted there."
            }
            Reason::ModeWrite => {
                "The kernel changes the meaning of instructions (wave mode bits that select which instructions run or \
                    which registers they name), or it resolves dependences in software in a way that is not supported: \
                    the scheduling mode of gfx12 depends on the path or on a value, is not 0 or 2, or is set where \
                    other code is entered."
            }
            Reason::MaskOperand => {
                "The condition of a divergent branch is read from a register that inserted code changes by reading it \
                    (SCC, VCCZ, EXECZ)."
            }
            Reason::ScalarRegisters => "Too few SGPRs are unused, and at some site none can be spilled.",
            Reason::VectorRegisters => {
                "The kernel, or functions that it may call, use all VGPRs, and too few SGPRs are unused to spill lanes \
                    to them. No other place for spills exists: no AGPRs, and no scratch memory whose address and size \
                    are known."
            }
            Reason::UserSgprs => {
                "The command processor can initialise 16 SGPRs. The kernel enables so many values that those for the \
                    counters do not fit."
            }
            Reason::KernargPreload => {
                "Kernel arguments are preloaded into registers, and neither the code at the entry loads them, as it \
                    must for firmware without preloading, nor can inserted code: no register has their address (not \
                    on gfx125x, where waves always begin at the entry)."
            }
            Reason::VectorAllocation => {
                "The number of its VGPRs changes at run time, the halves of a wave share VGPRs, some VGPRs are also \
                    AGPRs, or the path determines which VGPRs above v255 its instructions use at a site."
            }
            Reason::InsideClause => {
                "A site is inside a clause (`s_clause`), a sequence of memory instructions that must not be \
                    interrupted."
            }
            Reason::LdsSize => "The LDS size in the metadata does not fit 32 bits.",
            Reason::ThreadgroupSplit => {
                "The kernel is compiled for threadgroup split mode (`-mtgsplit`), in which a workgroup has no LDS. It \
                    can be instrumented with counters in memory."
            }
            Reason::LdsArguments => {
                "An argument points to LDS (OpenCL's `__local`): the launcher places it where counters in LDS would \
                    be. The kernel can be instrumented with counters in memory."
            }
            Reason::CalleeEndsWave => {
                "A called function may end the wave, which would lose counters in LDS, or the time of the wave's last \
                    block. Executions can be counted in memory."
            }
            Reason::WorkgroupSize => {
                "Neither metadata nor descriptor has the maximum workgroup size, so the LDS size of the counters is \
                    not known."
            }
            Reason::CounterMode => "This probe does not support the requested counter mode.",
            Reason::BranchOutOfReach => {
                "A branch does not reach its target once code has been inserted, and no register is free for a longer \
                    jump."
            }
            Reason::TimedLoop => {
                "`--probe time` starts to measure a wave before the kernel's first instruction, and a loop of the \
                    kernel returns there, so the measurement would start again."
            }
            Reason::UncheckedAccess => {
                "`--probe bounds` cannot compute the addresses of an access to global memory where inserted code can \
                    be: the kernel would be checked in part."
            }
            Reason::PcRead => {
                "The program counter is read at a place where SCC is live and no SGPR is free to correct the value."
            }
            Reason::Unlaunchable => {
                "With the LDS or the registers for its counters, the largest workgroups that the kernel allows would \
                    not fit on a compute unit, so no GPU could launch them."
            }
            Reason::OccupancyLoss => {
                "With the registers or LDS for its counters, fewer waves would run than `--max-occupancy-loss` allows."
            }
        }
    }
}

/// A kernel that cannot be instrumented, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The fixed reason.
    pub reason: Reason,
    /// One sentence with what was found.
    pub detail: String,
    /// Original virtual address of the instruction, where it is one.
    pub address: Option<u64>,
}

impl Refusal {
    /// A refusal of the kernel as a whole.
    pub fn new(reason: Reason, detail: impl Into<String>) -> Refusal {
        Refusal { reason, detail: detail.into(), address: None }
    }

    /// A refusal because of one instruction.
    pub fn at(reason: Reason, address: u64, detail: impl Into<String>) -> Refusal {
        Refusal { reason, detail: detail.into(), address: Some(address) }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason.name(), self.detail)?;
        match self.address {
            Some(address) => write!(f, " (at {address:#x})"),
            None => Ok(()),
        }
    }
}

/// Why there is no instrumented kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// It cannot be done correctly: the kernel stays as it is and is reported.
    Refused(Refusal),
    /// A fault of the input or of this program.
    Failed(Error),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Stop {
        Stop::Refused(refusal)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Refused(refusal) => refusal.fmt(f),
            Stop::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Stop {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_and_are_snake_case() {
        let mut names: Vec<&str> = Reason::ALL.iter().map(|reason| reason.name()).collect();
        assert!(names.iter().all(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '_')));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Reason::ALL.len());
    }
}
