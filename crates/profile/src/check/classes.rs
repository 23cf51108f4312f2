//! What can be wrong, by tool.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use wavetap_base::error::{Error, Result};

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// Accesses out of bounds, of freed memory, misaligned.
    Memory,
    /// Accesses that nothing orders.
    Races,
    /// Uses of what was never written.
    Init,
    /// Barriers, waits and wait states.
    Sync,
    /// Calls of HIP.
    Api,
}

impl Tool {
    /// All of them.
    pub const ALL: [Tool; 5] = [Tool::Memory, Tool::Races, Tool::Init, Tool::Sync, Tool::Api];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Tool::Memory => "memory",
            Tool::Races => "races",
            Tool::Init => "init",
            Tool::Sync => "sync",
            Tool::Api => "api",
        }
    }

    /// What compute-sanitizer calls the same, if it has it.
    #[must_use]
    pub fn alias(self) -> Option<&'static str> {
        match self {
            Tool::Memory => Some("memcheck"),
            Tool::Races => Some("racecheck"),
            Tool::Init => Some("initcheck"),
            Tool::Sync => Some("synccheck"),
            Tool::Api => None,
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Tool {
    type Err = Error;

    fn from_str(text: &str) -> Result<Tool> {
        let found = Tool::ALL.into_iter().find(|tool| tool.name() == text || tool.alias() == Some(text));
        found.ok_or_else(|| {
            let names = Tool::ALL.map(Tool::name).join(", ");
            Error::unsupported(format!("`{text}` is no tool: {names} expected"))
        })
    }
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Wrong, and harmless on most runs.
    Warning,
    /// Results may be wrong, or the program may end.
    Error,
}

impl Severity {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A class in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassText {
    /// Its name, which does not change.
    pub name: &'static str,
    /// What is wrong, in one sentence.
    pub summary: &'static str,
    /// What usually mends it.
    pub hint: &'static str,
}

macro_rules! classes {
    ($($(#[$meta:meta])* $variant:ident $tool:ident $severity:ident $name:literal $summary:literal $hint:literal)*) => {
        /// What is wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "kebab-case")]
        pub enum Class {
            $($(#[$meta])* #[doc = $summary] #[serde(rename = $name)] $variant,)*
        }

        impl Class {
            /// All of them.
            pub const ALL: &[Class] = &[$(Class::$variant),*];

            /// The tool that finds it.
            #[must_use]
            pub fn tool(self) -> Tool {
                match self { $(Class::$variant => Tool::$tool,)* }
            }

            /// How bad it is.
            #[must_use]
            pub fn severity(self) -> Severity {
                match self { $(Class::$variant => Severity::$severity,)* }
            }

            /// It in words.
            #[must_use]
            pub fn text(self) -> ClassText {
                match self { $(Class::$variant => ClassText { name: $name, summary: $summary, hint: $hint },)* }
            }
        }
    };
}

classes! {
    OutOfBoundsLoad Memory Error "out-of-bounds-load"
        "A load is outside of every allocation."
        "compare the index with the allocation's size before the access, and the size with what the launch covers"
    OutOfBoundsStore Memory Error "out-of-bounds-store"
        "A store is outside of every allocation."
        "compare the index with the allocation's size before the access, and the size with what the launch covers"
    OutOfBoundsAtomic Memory Error "out-of-bounds-atomic"
        "An atomic is outside of every allocation."
        "compare the index with the allocation's size before the access, and the size with what the launch covers"
    Overread Memory Warning "overread"
        "A load is after the end of an allocation, in its last page of 4 KiB, which a GPU does not notice."
        "mask the last lanes, or allocate a whole number of vectors"
    UseAfterFree Memory Error "use-after-free"
        "Memory is accessed that was freed."
        "free it after the stream that uses it was synchronised, or with hipFreeAsync in that stream"
    HostPointer Memory Error "host-pointer"
        "A kernel accesses memory of the host that was neither allocated with HIP nor registered."
        "copy it to the device, or allocate it with hipHostMalloc or hipMallocManaged"
    NullPointer Memory Error "null-pointer"
        "A kernel accesses an address near zero."
        "check the pointer that the kernel is given: an allocation may have failed, or an argument is missing"
    LdsOutOfBounds Memory Error "lds-out-of-bounds"
        "An access is outside of the LDS of the workgroup."
        "compare the index with the size of the __shared__ array, and dynamic LDS with what the launch requests"
    ScratchOutOfBounds Memory Error "scratch-out-of-bounds"
        "An access is outside of the scratch of a lane: its stack or its local arrays."
        "compare the index with the size of the array, or raise hipLimitStackSize for recursion"
    Misaligned Memory Error "misaligned"
        "An access is at an address that the instruction does not support."
        "align the pointer to the size of the type that is accessed"
    LdsRace Races Error "lds-race"
        "Two waves access the same bytes of LDS, one of them writes, and nothing orders the two."
        "put __syncthreads() between the two accesses, also between two uses of one buffer"
    GlobalRace Races Error "global-race"
        "Two waves access the same bytes of memory, one of them writes, and nothing orders the two."
        "use atomics, a barrier within the workgroup, or two kernels; a flag needs a fence on both sides"
    StreamRace Races Error "stream-race"
        "Two launches, or a launch and a copy, access the same bytes of memory, and nothing orders the two."
        "have one stream wait for an event of the other, or use one stream for both"
    HostRace Races Error "host-race"
        "The host accesses memory that the device may still access."
        "synchronise with the stream before the host reads or writes the memory"
    LaneConflict Races Warning "lane-conflict"
        "Lanes of one instruction store different values to one place, of which one remains."
        "use an atomic, or have one work-item store"
    SameValue Races Note "same-value"
        "Two stores of the same value to one place are not ordered, which is harmless while the value is the same."
        "have one work-item store it"
    OrderDependent Races Warning "order-dependent"
        "A kernel leaves other results in memory in another order of its workgroups and waves, without a race."
        "store what is independent of the order, or ignore this where any of the results is right"
    UninitialisedRegister Init Error "uninitialised"
        "Bits that were never written decide something: a branch, an address or what is stored."
        "give the variable, array or LDS buffer a value on every path before it is used"
    UnwrittenCopy Init Note "unwritten-copy"
        "A copy to the host has bytes of device memory that nothing has written."
        "have the kernel write all of it, or copy what it writes; hipMemset where the rest does not matter"
    MissingWait Sync Error "missing-wait"
        "A result is used before a wait has guaranteed it."
        "inline assembly needs s_waitcnt before the use; compiled code that has this is a compiler's fault"
    Hazard Sync Error "hazard"
        "Two instructions follow each other more closely than the processor supports."
        "inline assembly needs s_nop between the two; compiled code that has this is a compiler's fault"
    DifferentBarriers Sync Warning "different-barriers"
        "Waves of a workgroup wait at different barriers, which the hardware takes for one."
        "move the barrier out of the branch, so that all work-items come to the same one"
    DivergentBarrier Sync Warning "divergent-barrier"
        "Not all waves of a workgroup, or not all lanes of a wave, come to a barrier."
        "move the barrier out of the branch or the loop, and have work-items without work come to it before they return"
    CooperativeTooLarge Sync Error "cooperative-too-large"
        "A cooperative launch has more workgroups than the GPU can hold at once."
        "launch at most what hipOccupancyMaxActiveBlocksPerMultiprocessor says, times the compute units"
    NotResident Sync Error "no-progress"
        "All waves of a kernel wait for what no other wave that runs, or can be begun, will write."
        "wait only for workgroups that are certainly resident: use a cooperative launch, or hand out work by an atomic"
    Stopped Sync Error "kernel-stopped"
        "A kernel did something after which it cannot go on."
        "mend this first: what the kernel had still to do was not checked"
    CallFailed Api Error "call-failed"
        "A call of HIP returned an error."
        "check the result of the call, and its arguments"
    DoubleFree Api Error "double-free"
        "Memory is freed that was freed before."
        "free it once, and set the pointer to null"
    DestroyedHandle Api Error "destroyed-handle"
        "A call uses a stream, an event or a module that was destroyed."
        "destroy it after its last use"
    WrongKind Api Error "wrong-kind"
        "The direction of a copy is not that of its addresses."
        "name the direction of the copy, or hipMemcpyDefault"
    PageableCopy Api Note "pageable-copy"
        "An asynchronous copy uses memory of the host that is not page-locked, so that it may block, or go on later."
        "allocate the memory with hipHostMalloc, or register it with hipHostRegister"
    Leak Api Warning "leak"
        "Memory, a stream or an event still exists when the application has ended."
        "free it, or let an object own it that does"
}

impl Class {
    /// The class with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Class> {
        Class::ALL.iter().copied().find(|class| class.text().name == name)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text().name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_json() {
        for class in Class::ALL {
            let json = serde_json::to_string(class).expect("JSON");
            assert_eq!(json, format!("\"{class}\""));
            assert_eq!(Class::by_name(class.text().name), Some(*class));
        }
        assert_eq!("racecheck".parse::<Tool>().expect("an alias"), Tool::Races);
        assert!("leakcheck".parse::<Tool>().is_err_and(|error| error.to_string().contains("memory, races")));
    }
}
