//! Enums of the slicer as they are named in JSON.

use crate::mirror::mirror;

mirror! {
    /// The rule by which a stall is divided among what it may be for.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
    pub enum Blame = wavetap_slice::Blame {
        /// By what is left of each operation's latency when the wait begins.
        #[default]
        Exposed,
        /// As LEO (arXiv 2604.20032) is published, to compare with.
        Leo,
    }
}

mirror! {
    /// How sure it is that a wait waits for an operation.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum WaitCertainty = wavetap_slice::WaitCertainty {
        /// On every path.
        Must,
        /// On some path.
        May,
        /// One of several that complete out of order.
        Unordered,
        /// An invalidation of caches, if the hardware counts it: compilers take it that it does not.
        IfCounted,
    }
}

mirror! {
    /// How a number of executions is known.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum CountSource = wavetap_slice::counts::CountSource {
        /// A site in the same block counted it.
        Counted,
        /// It follows from other sites' counters and the number of waves.
        Derived,
        /// It does not follow from what was counted.
        Unknown,
    }
}

mirror! {
    /// How much a blame is worth.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Confidence = wavetap_slice::Confidence {
        /// The operation is waited for on every path, executions were counted or follow from counts, and other
        /// latencies would not change who is blamed.
        High,
        /// One of these does not hold.
        Medium,
        /// Several do not hold.
        Low,
    }
}

mirror! {
    /// How a step follows from the one before.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Edge = wavetap_slice::Edge {
        /// It is the wait.
        Stall,
        /// The wait waits for it.
        Wait,
        /// It may have written a register that the step before reads.
        Register,
        /// It wrote what the step before loads: to the same place of LDS or scratch memory.
        Memory,
        /// It is the one instruction that writes the LDS that the step before loads.
        ThroughMemory,
        /// It formed the mask of lanes under which the operation runs.
        Mask,
    }
}

mirror! {
    /// Why a wave stands at an instruction if nothing before it is to blame.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum SelfBlame = wavetap_slice::SelfBlame {
        /// It waits for memory, and by prediction nothing should be left to wait for: latencies were longer, or the
        /// caller of the function had something outstanding.
        MemoryLatency,
        /// It waits for a result of the vector or scalar ALU.
        Dependency,
        /// It waits for other waves of its workgroup.
        Barrier,
        /// The next instruction was not there yet.
        InstructionFetch,
        /// Another wave was issued first.
        IssueContention,
        /// The unit that it needs was busy.
        BusyPipe,
        /// The program said so.
        Sleep,
        /// Something that has no name here.
        Other,
        /// The samples do not tell.
        Unknown,
    }
}

mirror! {
    /// How it is known what the workgroups of a kernel look like.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum WorkgroupSource = wavetap_memory::WorkgroupSource {
        /// It was launched with such, most often.
        Launched,
        /// Who asks says so.
        Given,
        /// The source requires them.
        Required,
        /// It is not: the largest that the metadata allows is taken, with one dimension.
        Assumed,
    }
}
