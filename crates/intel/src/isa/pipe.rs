//! Which unit an instruction is worked on by.

use wavetap_base::error::{Error, Result};

use super::decode::Inst;
use super::opcode::Format;
use super::operand::Operand;
use super::swsb::Pipe;

impl Inst {
    /// The in-order pipe that works on it: that of the result's type, for branches that of integers. None: a message, a
    /// product of matrices, or a wait.
    #[must_use]
    pub fn pipe(&self) -> Option<Pipe> {
        match self.opcode.format {
            Format::Math => Some(Pipe::Math),
            Format::Unary | Format::Binary | Format::Ternary | Format::TernaryMacro => {
                Some(self.result_type.map_or(Pipe::Integer, |ty| ty.pipe))
            }
            Format::BranchBoth | Format::BranchOne | Format::Jump | Format::Call | Format::Return => {
                Some(Pipe::Integer)
            }
            Format::Dpas | Format::Send | Format::Sync | Format::Bare => None,
        }
    }

    fn source_pipes(&self) -> impl Iterator<Item = Pipe> {
        let registers = self.sources.iter().filter(|source| !matches!(source, Operand::Immediate { .. }));
        registers.filter_map(|source| source.ty().map(|ty| ty.pipe))
    }

    /// The pipe of which `@n` tells a distance: the one of all operands.
    ///
    /// # Errors
    /// Unsupported if operands belong to different pipes: it is not published which one is meant.
    pub(crate) fn own_pipe(&self) -> Result<Pipe> {
        let pipe = self.result_type.map(|ty| ty.pipe).or_else(|| self.source_pipes().next());
        match pipe {
            Some(pipe) if self.source_pipes().all(|other| other == pipe) => Ok(pipe),
            _ => {
                let text = format!("@n of {}, whose operands belong to no single pipe", self.name);
                Err(Error::unsupported(text).at(self.address))
            }
        }
    }
}
