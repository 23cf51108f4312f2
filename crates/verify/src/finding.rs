//! What a check found.

use std::fmt;

/// The rule that is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// An original byte is not at its virtual address any more.
    OriginalByte,
    /// Program headers, section headers or segments break what loaders demand.
    Segments,
    /// Symbols or relocations were lost or changed.
    Symbols,
    /// The host file around the code object was changed where it must not be.
    HostFile,
    /// A kernel descriptor was changed where it must not be, or contradicts the code.
    Descriptor,
    /// The metadata note was changed where it must not be, or contradicts the descriptor.
    Metadata,
    /// The site table is missing or contradicts the code.
    Map,
    /// Code uses registers that are not allocated.
    Allocation,
    /// A workgroup that fitted on a compute unit does not any more.
    Launch,
    /// LDS of the probes does not lie after the kernel's own.
    Lds,
    /// Inserted code accesses scratch memory that is not its own.
    Scratch,
    /// The new code is not the original instructions with others inserted.
    Skeleton,
    /// A branch leads to another place than the original one.
    Branch,
    /// Inserted code stands between instructions that must follow each other.
    Adjacent,
    /// Inserted code contains what it must not: calls, barriers, ends, messages.
    Forbidden,
    /// An original instruction reads a register that inserted code changed.
    Clobbered,
    /// Inserted code reads an undefined register.
    Undefined,
    /// Inserted code counts in a register that original code names.
    Counter,
    /// EXEC is not what it would be in the original.
    Exec,
    /// SCC is not what it would be in the original.
    Scc,
    /// A register is used while an operation that writes it may be outstanding.
    Wait,
    /// Instructions follow each other, of which one was inserted, that the hardware does not keep apart as it must: too
    /// few wait states, or no event that makes it safe.
    Hazard,
}

impl Rule {
    /// A fixed short name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Rule::OriginalByte => "original_byte",
            Rule::Segments => "segments",
            Rule::Symbols => "symbols",
            Rule::HostFile => "host_file",
            Rule::Descriptor => "descriptor",
            Rule::Metadata => "metadata",
            Rule::Map => "map",
            Rule::Allocation => "allocation",
            Rule::Launch => "launch",
            Rule::Lds => "lds",
            Rule::Scratch => "scratch",
            Rule::Skeleton => "skeleton",
            Rule::Branch => "branch",
            Rule::Adjacent => "adjacent",
            Rule::Forbidden => "forbidden",
            Rule::Clobbered => "clobbered",
            Rule::Undefined => "undefined",
            Rule::Counter => "counter",
            Rule::Exec => "exec",
            Rule::Scc => "scc",
            Rule::Wait => "wait",
            Rule::Hazard => "hazard",
        }
    }
}

/// One broken rule and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// The kernel (mangled name), where it concerns one.
    pub kernel: Option<String>,
    /// Virtual address in the rewritten object, where there is one.
    pub address: Option<u64>,
    /// What is wrong.
    pub message: String,
}

impl Finding {
    pub(crate) fn new(rule: Rule, message: impl Into<String>) -> Finding {
        Finding { rule, kernel: None, address: None, message: message.into() }
    }

    #[must_use]
    pub(crate) fn at(mut self, address: u64) -> Finding {
        self.address = Some(address);
        self
    }

    /// It concerns the copy of a function.
    #[must_use]
    pub(crate) fn in_function(mut self, name: &str) -> Finding {
        self.message = format!("copy of {name}: {}", self.message);
        self
    }

    #[must_use]
    pub(crate) fn in_kernel(mut self, name: &str) -> Finding {
        self.kernel.get_or_insert_with(|| name.to_owned());
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule.name(), self.message)?;
        if let Some(address) = self.address {
            write!(f, " (at {address:#x})")?;
        }
        if let Some(kernel) = &self.kernel {
            write!(f, ", in kernel {kernel}")?;
        }
        Ok(())
    }
}
