//! Why an instruction could not be completed, and the result of running one.

use super::FaultKind;

/// Why an instruction could not be completed.
#[derive(Debug)]
pub(crate) struct Stop {
    pub kind: FaultKind,
    pub lane: Option<u8>,
}

/// The result of running an instruction, or a part of it.
pub(crate) type ExecResult<T = ()> = std::result::Result<T, Box<Stop>>;

pub(crate) fn stop<T>(kind: FaultKind) -> ExecResult<T> {
    Err(Box::new(Stop { kind, lane: None }))
}

pub(crate) fn at_lane<T>(result: std::result::Result<T, FaultKind>, lane: usize) -> ExecResult<T> {
    result.map_err(|kind| Box::new(Stop { kind, lane: Some(lane as u8) }))
}

pub(crate) fn undefined<T>(what: impl Into<Box<str>>) -> ExecResult<T> {
    stop(FaultKind::Undefined { what: what.into() })
}
