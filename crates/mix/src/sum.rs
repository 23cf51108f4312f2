//! Sums over instructions.

use std::collections::BTreeMap;

use wavetap_base::error::{Error, Result};

use crate::class::{Class, NumberType};
use crate::count::CountedInstruction;
use crate::work::{Executes, Traffic};

/// How often instructions of a class were issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClassCount {
    /// By waves.
    pub issued: u64,
    /// Of these, those that work in active lanes, and whose lanes are known.
    pub in_lanes: u64,
    /// Active lanes of those, summed.
    pub lanes: u64,
    /// Issued instructions that work in active lanes, whose lanes are not known.
    pub lanes_unknown: u64,
}

/// Operations on numbers of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OperationCount {
    /// As rocprof-compute counts: see [`crate::Operations::convention`].
    pub convention: u64,
    /// Of active lanes: see [`crate::Operations::effective`]. Without those of instructions whose lanes are not known.
    pub effective: u64,
    /// Issued instructions whose lanes are not known.
    pub lanes_unknown: u64,
}

/// Bytes that were requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bytes {
    /// By the instructions of which that is known.
    pub requested: u64,
    /// Issued instructions of which it is not.
    pub unknown: u64,
}

/// What a piece of code executed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mix {
    /// Instructions issued, one per wave.
    pub instructions: u64,
    /// By class; both operations of a pair count.
    pub classes: BTreeMap<Class, ClassCount>,
    /// Operations by the numbers that they are on.
    pub operations: BTreeMap<NumberType, OperationCount>,
    /// Of these operations, those of matrix instructions.
    pub matrix_operations: BTreeMap<NumberType, OperationCount>,
    /// Bytes by memory.
    pub bytes: BTreeMap<Traffic, Bytes>,
    /// Vector instructions issued that compute addresses only.
    pub vector_addresses: u64,
    /// Scalar instructions issued that compute addresses only.
    pub scalar_addresses: u64,
    /// Issued instructions that work in active lanes, whose lanes are not known.
    pub lanes_unknown: u64,
    /// Instructions of the code of which it is not known how often they were executed: they are in no other number.
    pub uncounted: u64,
}

impl Mix {
    /// Adds an instruction.
    ///
    /// # Errors
    /// Limit if a sum does not fit 64 bits.
    pub fn add(&mut self, instruction: &CountedInstruction) -> Result<()> {
        self.checked_add(instruction)
            .ok_or_else(|| Error::limit(format!("a sum does not fit 64 bits, at {:#x}", instruction.address)))
    }

    fn checked_add(&mut self, instruction: &CountedInstruction) -> Option<()> {
        let CountedInstruction { executions, lanes, work, makes_addresses, .. } = instruction;
        let Some(executions) = *executions else {
            self.uncounted += 1;
            return Some(());
        };
        sum(&mut self.instructions, Some(executions))?;
        let in_lanes = work.executes == Executes::InActiveLanes;
        let lanes = lanes.filter(|_| in_lanes);
        let unknown = if in_lanes && lanes.is_none() { executions } else { 0 };
        sum(&mut self.lanes_unknown, Some(unknown))?;
        for class in &work.classes {
            let count = self.classes.entry(*class).or_default();
            sum(&mut count.issued, Some(executions))?;
            sum(&mut count.lanes_unknown, Some(unknown))?;
            if let Some(lanes) = lanes {
                sum(&mut count.in_lanes, Some(executions))?;
                sum(&mut count.lanes, Some(lanes))?;
            }
        }
        // How often each active lane, or each wave, does it.
        let times = if in_lanes { lanes } else { Some(executions) };
        let is_matrix = work.classes.iter().any(|class| matches!(class, Class::Matrix(..)));
        for operations in &work.operations {
            let of_matrices = is_matrix.then_some(&mut self.matrix_operations);
            for all in [Some(&mut self.operations), of_matrices].into_iter().flatten() {
                let count = all.entry(operations.number).or_default();
                sum(&mut count.convention, operations.convention.checked_mul(executions))?;
                sum(&mut count.lanes_unknown, Some(unknown))?;
                if let Some(times) = times {
                    sum(&mut count.effective, operations.effective.checked_mul(times))?;
                }
            }
        }
        for (traffic, bytes) in &work.bytes {
            let count = self.bytes.entry(*traffic).or_default();
            match (bytes, times) {
                (Some(bytes), Some(times)) => sum(&mut count.requested, bytes.checked_mul(times))?,
                _ => sum(&mut count.unknown, Some(executions))?,
            }
        }
        if *makes_addresses == Some(true) {
            let scalar = work.classes.iter().all(|class| matches!(class, Class::Scalar(_)));
            let count = if scalar { &mut self.scalar_addresses } else { &mut self.vector_addresses };
            sum(count, Some(executions))?;
        }
        Some(())
    }
}

fn sum(to: &mut u64, value: Option<u64>) -> Option<()> {
    *to = to.checked_add(value?)?;
    Some(())
}
