//! Which source lines, branches and functions of GPU code were executed, and how often.

use std::collections::BTreeMap;

/// What executions of lines and functions are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CoverageUnit {
    /// By waves, whatever EXEC is.
    #[default]
    Waves,
    /// By active lanes, summed.
    Lanes,
}

/// The coverage of the code of an input.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Coverage {
    /// By the name of the source file.
    pub files: BTreeMap<String, FileCoverage>,
    /// Code whose executions are not all known, each with the reason. Lines, branches and functions that may have been
    /// executed, and of which no execution is known, are not in [`Coverage::files`].
    pub missing: Vec<String>,
    /// Kernels and code objects that contradict their format, each with what is wrong and where.
    pub unread: Vec<String>,
}

/// The coverage of a source file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileCoverage {
    /// Kernels and functions that have code of their own, by mangled name.
    pub functions: BTreeMap<String, FunctionCoverage>,
    /// Executions by line. Lines that no instruction belongs to are not here.
    pub lines: BTreeMap<u32, u64>,
    /// Branches by line.
    pub branches: BTreeMap<u32, Vec<BranchCoverage>>,
}

/// The coverage of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionCoverage {
    /// Its line.
    pub line: u32,
    /// How often it was entered.
    pub executions: u64,
}

/// The coverage of a branch: an instruction that narrows EXEC, or a conditional uniform branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchCoverage {
    /// Its number among the branches of its line in the code: the same whatever was executed.
    pub number: u32,
    /// How often either side was taken; none if it was not executed. Of an instruction that narrows EXEC, the lanes
    /// that stay active and those that do not; of a uniform branch, the waves that branch and those that fall through.
    pub sides: Option<[u64; 2]>,
}

impl BranchCoverage {
    /// How many of its sides were taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.sides.iter().flatten().filter(|count| **count > 0).count()
    }
}
