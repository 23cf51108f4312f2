//! The sorts of nodes of a graph, as HIP numbers them.

use std::ffi::c_int;

use crate::memory::loaded_as_hip_5;
use crate::operation::Operation;

/// `hipGraphNodeType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Kernel,
    Copy,
    Fill,
    Host,
    Graph,
    Empty,
    Wait,
    Record,
    Allocate,
    Free,
    FromSymbol,
    ToSymbol,
}

impl Kind {
    /// Its number: HIP 5 counted from 1 and had no nodes for memory.
    pub(crate) fn number(self) -> c_int {
        if !loaded_as_hip_5() {
            return match self {
                Kind::Kernel => 0,
                Kind::Copy => 1,
                Kind::Fill => 2,
                Kind::Host => 3,
                Kind::Graph => 4,
                Kind::Empty => 5,
                Kind::Wait => 6,
                Kind::Record => 7,
                Kind::Allocate => 10,
                Kind::Free => 11,
                Kind::FromSymbol => 12,
                Kind::ToSymbol => 13,
            };
        }
        match self {
            Kind::Kernel => 1,
            Kind::Copy => 2,
            Kind::Fill => 3,
            Kind::Host => 4,
            Kind::Graph => 5,
            Kind::Empty | Kind::Allocate | Kind::Free => 6,
            Kind::Wait => 7,
            Kind::Record => 8,
            Kind::FromSymbol => 10,
            Kind::ToSymbol => 11,
        }
    }
}

/// What sort of node does this.
pub(crate) fn kind_of(operation: &Operation) -> Kind {
    match operation {
        Operation::Empty => Kind::Empty,
        Operation::Kernel(_) => Kind::Kernel,
        Operation::Copy(_) | Operation::Staged { .. } => Kind::Copy,
        Operation::SymbolCopy { to_symbol: true, .. } => Kind::ToSymbol,
        Operation::SymbolCopy { to_symbol: false, .. } => Kind::FromSymbol,
        Operation::Fill(_) => Kind::Fill,
        Operation::Host { .. } => Kind::Host,
        Operation::Record(_) => Kind::Record,
        Operation::Wait(_) | Operation::WaitValue(_) => Kind::Wait,
        Operation::Allocate { .. } => Kind::Allocate,
        Operation::Free(_) | Operation::Release(_) => Kind::Free,
        Operation::Child(_) | Operation::Steps(_) => Kind::Graph,
    }
}
