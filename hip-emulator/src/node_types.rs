//! The sorts of nodes of a graph, as HIP numbers them.

use std::ffi::c_int;

use crate::raw::loaded_as_hip_5;
use crate::stream_op::StreamOp;

/// `hipGraphNodeType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeType {
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

impl NodeType {
    /// Its number: HIP 5 counted from 1 and had no nodes for memory.
    pub(crate) fn number(self) -> c_int {
        if !loaded_as_hip_5() {
            return match self {
                NodeType::Kernel => 0,
                NodeType::Copy => 1,
                NodeType::Fill => 2,
                NodeType::Host => 3,
                NodeType::Graph => 4,
                NodeType::Empty => 5,
                NodeType::Wait => 6,
                NodeType::Record => 7,
                NodeType::Allocate => 10,
                NodeType::Free => 11,
                NodeType::FromSymbol => 12,
                NodeType::ToSymbol => 13,
            };
        }
        match self {
            NodeType::Kernel => 1,
            NodeType::Copy => 2,
            NodeType::Fill => 3,
            NodeType::Host => 4,
            NodeType::Graph => 5,
            NodeType::Empty | NodeType::Allocate | NodeType::Free => 6,
            NodeType::Wait => 7,
            NodeType::Record => 8,
            NodeType::FromSymbol => 10,
            NodeType::ToSymbol => 11,
        }
    }
}

/// What sort of node does this.
pub(crate) fn type_of(operation: &StreamOp) -> NodeType {
    match operation {
        StreamOp::Empty => NodeType::Empty,
        StreamOp::Kernel(_) => NodeType::Kernel,
        StreamOp::Copy(_) | StreamOp::Staged { .. } => NodeType::Copy,
        StreamOp::SymbolCopy { to_symbol: true, .. } => NodeType::ToSymbol,
        StreamOp::SymbolCopy { to_symbol: false, .. } => NodeType::FromSymbol,
        StreamOp::Fill(_) => NodeType::Fill,
        StreamOp::Host { .. } => NodeType::Host,
        StreamOp::Record(_) => NodeType::Record,
        StreamOp::Wait(_) | StreamOp::WaitValue(_) => NodeType::Wait,
        StreamOp::Allocate { .. } => NodeType::Allocate,
        StreamOp::Free(_) | StreamOp::Release(_) => NodeType::Free,
        StreamOp::Child(_) | StreamOp::Steps(_) => NodeType::Graph,
    }
}
